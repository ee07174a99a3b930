"""``python -m tests.faults.full_disk FOLDER``: a project on a disk of a few megabytes that gets full, and has room
again.

Prints one JSON object: what was said while it was full, and what is there afterwards.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.memory.world import USER, World
from tui_agent.memory.backup import Backups
from tui_agent.memory.checks import check
from tui_agent.memory.types import Action, Origin, Proposal
from tui_agent.memory.upkeep import working_scope
from tui_agent.memory.working import WorkingMemory

FACT = "I keep the heron book behind shelf 4."
LINE = "I keep the willow book behind shelf 9."


def attempt(work: Callable[[], Any]) -> str:
    """The error's sentence with its type, or an empty string when it worked."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


class Disk:
    """Fills a small disk to its last byte, and empties it again."""

    def __init__(self, folder: Path) -> None:
        self.ballast = folder / "ballast"

    def fill(self) -> None:
        """Leaves no room, not even for one page."""
        for size in (1 << 16, 1 << 12, 1 << 9, 1):
            try:
                with self.ballast.open("ab", buffering=0) as file:
                    while file.write(b"x" * size) == size:
                        pass
            except OSError:
                continue

    def empty(self) -> None:
        """Makes room."""
        self.ballast.unlink()


def admit(world: World, text: str, target: str) -> None:
    proposal = Proposal(text, Origin.USER, "user", "typed", user_text=text, target=target)
    assert world.stores.gate.admit(proposal).action is Action.LIVE


async def working_on(world: World, session: str, disk: Disk) -> dict[str, Any]:
    """Items of the working memory added while the disk is full are written later."""
    working = WorkingMemory(world.stores.db, scope=working_scope(world.project), session_id=session)
    disk.fill()
    made = await working.add("log", "the harbour crane is broken " * 40)
    trouble = working.trouble
    disk.empty()
    await working.save()
    kept = world.stores.db.value("SELECT text FROM wm_items WHERE id = ?", (made,))
    return {"trouble": trouble, "kept": kept == "the harbour crane is broken " * 40, "after": working.trouble}


def main(folder: Path) -> dict[str, Any]:
    """Runs it; returns what happened."""
    world = World.make(folder)
    stores, disk = world.stores, Disk(folder)
    session = stores.history.start_session()
    stores.history.append(session.id, "user", "the harbour, said before")
    admit(world, "I keep the copper book behind shelf 1.", USER)
    stores.history.search("harbour")  # what is indexed can be searched on a full disk too
    before = Backups(world.project).make(stores.db)
    file_before = world.text(USER)
    disk.fill()
    full = {
        "message": attempt(lambda: stores.history.append(session.id, "user", "said while it was full " * 400)),
        "fact": attempt(lambda: admit(world, FACT, "fact")),
        "fact with line": attempt(lambda: admit(world, LINE, USER)),
        "file": attempt(lambda: stores.files.edit_file("knowledge/user.md", "", "long text " * 2000)),
        "facts.json": attempt(stores.ledger.write_facts_json),
        "backup": attempt(lambda: Backups(world.project).make(stores.db)),
    }
    while_full = {
        "says": world.says(),
        "messages": [message.content for message in stores.history.messages(session.id)],
        "file kept": world.text(USER) == file_before,
        "found": [message.content for message in stores.history.search("harbour")],
        "backups": [Backups(world.project).verify(backup) for backup in Backups(world.project).all()],
        "rest": sorted(path.name for path in world.memory_dir.rglob("*.tmp")),
    }
    disk.empty()
    again = {
        "message": attempt(lambda: stores.history.append(session.id, "user", "said afterwards")),
        "fact": attempt(lambda: admit(world, FACT, "fact")),
        "fact with line": attempt(lambda: admit(world, LINE, USER)),
        "file": attempt(lambda: stores.files.edit_file("knowledge/user.md", "", "- short text\n")),
        "facts.json": attempt(stores.ledger.write_facts_json),
        "backup": attempt(lambda: Backups(world.project).make(stores.db)),
    }
    working = asyncio.run(working_on(world, session.id, disk))
    world.reopen()
    findings = check(world.stores, every_backup=True)
    after = {
        "says": world.says(),
        "messages": [message.content for message in world.stores.history.messages(session.id)],
        "line": f"- {LINE}" in world.text(USER).splitlines(),
        "wrong": [f.text for f in findings if f.level in ("broken", "degraded") and f.what != "disk"],
        "first backup": Backups(world.project).verify(before) if before.path.exists() else ["gone"],
    }
    world.stores.close()
    return {"full": full, "while_full": while_full, "again": again, "working": working, "after": after,
            "free": shutil.disk_usage(folder).free}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1])), ensure_ascii=False))
