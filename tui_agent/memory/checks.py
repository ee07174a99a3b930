"""Looking for what is wrong with a project's memory, and mending what can be mended without asking."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_agent.memory.backup import Backups, indexed_ids
from tui_agent.memory.chroma_index import CRASHES_BORNE, set_aside
from tui_agent.memory.cold import ColdStore
from tui_agent.memory.connection import StoreError
from tui_agent.memory.database import Database
from tui_agent.memory.files import EditRefused
from tui_agent.memory.history import History
from tui_agent.memory.owner_lock import OwnerLock
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.restoring import unfinished
from tui_agent.memory.scrubbing import without_mark
from tui_agent.memory.shredding import index_is_stale, note_index_emptied, resume
from tui_agent.memory.textfile import TextFileError, read_text
from tui_agent.memory.types import Fact
from tui_agent.memory.upkeep import Memory, counted, prune_due, stats
from tui_agent.memory.upkeep_store import UpkeepNotes

Level = Literal["ok", "degraded", "broken", "mended"]
_LITTLE_ROOM = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. ``text`` is a sentence; ``fix`` the command or step that mends it, if one does."""

    level: Level
    what: str
    text: str
    fix: str = ""


def check(memory: Memory, *, fix: bool = False, every_backup: bool = False) -> list[Finding]:
    """Looks at database, indexes, lines and rows, backups, and what was interrupted.

    ``fix`` mends what can be made again from the rows: indexes, lines in files, an interrupted deletion. Of the backups
    the newest is read whole, with ``every_backup`` all of them.
    """
    found: list[Finding] = []
    for step in (
        _database,
        _interrupted,
        _word_indexes,
        _lines,
        _vectors,
        _vector_index,
        _facts_json,
        _backlog,
        _places,
    ):
        try:
            found += step(memory, fix)
        except (StoreError, MemoryFileError, OSError) as error:
            found.append(Finding("broken", step.__name__.strip("_").replace("_", " "), str(error)))
    return found + _backups(memory, every_backup)


def worst(findings: list[Finding]) -> Level:
    """The worst level among the findings; ``mended`` counts as ``ok``."""
    levels = {finding.level for finding in findings}
    return "broken" if "broken" in levels else "degraded" if "degraded" in levels else "ok"


def _database(memory: Memory, fix: bool) -> list[Finding]:
    db = memory.db
    faults = db.integrity_check()
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return [
            Finding("broken", "database", f"{faults[0]}{more}", "tui-agent memory restore latest"),
        ]
    dangling = db.foreign_key_check()
    if dangling:
        table, row, parent, _ = dangling[0]
        # Setting such pointers to nothing would bring back what was replaced.
        text = f"{counted(len(dangling), 'row')} pointing to nothing (the first: {table} row {row} → {parent})."
        return [Finding("broken", "database", text, "tui-agent memory restore latest")]
    size = sum(path.stat().st_size for path in db.files())
    return [Finding("ok", "database", f"{memory.project.db_path.name} is sound ({size:,} bytes).")]


def _interrupted(memory: Memory, fix: bool) -> list[Finding]:
    found = []
    if text := unfinished(memory.project):
        found.append(Finding("broken", "restore", text))
    if UpkeepNotes(memory.db).get("shred", []):
        if fix and (report := resume(memory)) is not None:
            found.append(Finding("mended", "deletion", f"An interrupted deletion was finished: {report.sentence()}"))
        else:
            text = "A deletion was interrupted, so the deleted text is still in some files."
            found.append(Finding("broken", "deletion", text, "tui-agent memory check --fix"))
    return found


def _word_indexes(memory: Memory, fix: bool) -> list[Finding]:
    """Full-text indexes are projections: each row has an entry, or is marked as having none yet."""
    db = memory.db
    history, cold = History(db), ColdStore(db)
    found = []
    for name, rows, index, rebuild in (
        ("messages", "messages WHERE indexed = 1", "message_index", history.rebuild_index),
        ("working memory", "wm_items WHERE indexed = 1", "wm_terms", lambda: _rebuild_cold(db, cold)),
    ):
        wrong = ""
        try:
            db.execute(f"INSERT INTO {index}({index}) VALUES ('integrity-check')")
            there, listed = db.value(f"SELECT count(*) FROM {rows}"), db.value(f"SELECT count(*) FROM {index}")
            if there != listed:
                wrong = f"The word index of the {name} has {listed} entries for {there} rows."
        except StoreError as error:
            if error.kind != "corrupt":
                raise
            wrong = f"The word index of the {name} is damaged."
        if not wrong:
            found.append(Finding("ok", f"words of {name}", "The word index fits its rows."))
        elif fix:
            rebuild()
            found.append(Finding("mended", f"words of {name}", f"{wrong} It was made anew."))
        else:
            found.append(Finding("degraded", f"words of {name}", wrong, "tui-agent memory check --fix"))
    return found


def _rebuild_cold(db: Database, cold: ColdStore) -> int:
    with db.transaction() as connection:
        connection.execute("DELETE FROM wm_terms")
        connection.execute("DELETE FROM wm_symbols")
        connection.execute("UPDATE wm_items SET indexed = 0")
        return cold.index()


def _lines(memory: Memory, fix: bool) -> list[Finding]:
    """Each live row that has a line has it in its file; no line says what was replaced, expired or deleted."""
    facts, files = memory.facts, memory.files
    # Lines of facts for all projects are in the user's own notes, which another project or a hand may change.
    live = [fact for fact in facts.live() if fact.target and fact.target_line and str(fact.scope) == "project"]
    found = []
    for fact in live:
        path, _, section = fact.target.partition("#")
        if files.has_line(path, section, fact.target_line):
            continue
        text = f"The line “{_short(fact.target_line)}” is missing from {path}."
        if fix:
            files.append_line(path, section, fact.target_line)
            found.append(Finding("mended", "lines", f"{text} It was written again."))
        else:
            found.append(Finding("degraded", "lines", text, "tui-agent memory check --fix, or expire the fact"))
    said = {(fact.target, without_mark(fact.target_line)) for fact in live}
    for fact in (*facts.superseded(), *facts.expired()):
        if str(fact.scope) != "project":
            continue
        if fact.target and fact.target_line and (fact.target, without_mark(fact.target_line)) not in said:
            found += _stale_line(memory, fact, fix)
    found += _deleted_lines(memory)
    return found or [Finding("ok", "lines", f"{counted(len(live), 'line')} in the memory files as the rows say.")]


def _stale_line(memory: Memory, fact: Fact, fix: bool) -> list[Finding]:
    path, _, section = fact.target.partition("#")
    if not memory.files.has_line(path, section, fact.target_line):
        return []
    text = f"{path} still says “{_short(fact.target_line)}”, which no longer holds."
    if fix:
        try:
            memory.files.remove_line(path, section, fact.target_line)
            return [Finding("mended", "lines", f"{text} The line was removed.")]
        except EditRefused as error:
            text = f"{text} {error}"
    return [Finding("degraded", "lines", text, "tui-agent memory check --fix")]


def _deleted_lines(memory: Memory) -> list[Finding]:
    """Somebody, or an old copy from version control, may have put a deleted line back. Only the user decides that."""
    found = []
    for name in ("AGENTS.md", "knowledge/user.md", "knowledge/tech-stack.md"):
        try:
            lines = memory.files.lines(name)
        except MemoryFileError as error:
            found.append(Finding("degraded", "files", str(error)))
            continue
        back = [line for line in lines if memory.facts.is_tombstoned(without_mark(line))]
        if back and not any(memory.facts.by_text(without_mark(line)) for line in back):
            text = f"{name} holds {counted(len(back), 'line')} deleted forever before."
            found.append(Finding("degraded", "lines", text, f"remove them from {name}, or state them anew"))
    return found


def _vectors(memory: Memory, fix: bool) -> list[Finding]:
    """The identities of the stored vectors: which embedder made them, and whether each live fact has one."""
    rows = memory.db.rows(
        "SELECT v.identity, count(*) AS vectors, count(DISTINCT v.dimension) AS dimensions, "
        "sum(l.id IS NOT NULL) AS live FROM fact_vectors v LEFT JOIN live_memory l ON l.id = v.fact_id "
        "GROUP BY v.identity ORDER BY live DESC"
    )
    live = memory.facts.stats()["live_memory"]
    if not rows:
        return [Finding("ok", "vectors", "No vectors are stored yet; facts are found by their words.")] if live else []
    found = []
    for row in rows:
        if row["dimensions"] > 1:
            text = f"Vectors of {row['identity']} have {row['dimensions']} different lengths."
            found.append(Finding("degraded", "vectors", text, "open the chat once: they are made anew"))
    missing = live - int(rows[0]["live"])
    if missing > 0:
        text = f"{missing} of {live} facts have no vector of {rows[0]['identity']} yet; their words find them."
        found.append(Finding("degraded", "vectors", text, "open the chat once: they are made in the background"))
    return found or [Finding("ok", "vectors", f"{rows[0]['identity']}: a vector for each of {counted(live, 'fact')}.")]


def _vector_index(memory: Memory, fix: bool) -> list[Finding]:
    """Chroma's folder is a projection of the rows: it may be gone, and anything wrong with it is mended by that."""
    project = memory.project
    if not project.vector_dir.exists():
        return []
    owner = OwnerLock(project.lock_path)
    if not owner.acquire():
        return [Finding("ok", "vector index", "It is in use by another window, so it was not looked into.")]
    try:
        ids, live = indexed_ids(project.vector_dir), {fact.id for fact in memory.facts.live()}
        if owner.crashes > CRASHES_BORNE:
            text = f"It has ended the program {owner.crashes} times, so it is left alone."
        elif ids is None:
            text = "It cannot be read."
        elif index_is_stale(memory.db):
            text = "Something was deleted forever while another window held it, so it may hold a deleted vector."
        elif ids <= live:
            return [Finding("ok", "vector index", f"It holds {counted(len(ids), 'fact')}.")]
        else:
            text = f"It holds {counted(len(ids - live), 'fact')} no longer live."
        if fix:
            kept = set_aside(project.vector_dir)
            owner.settle()
            note_index_emptied(memory.db)
            where = f"It is kept as {kept.name}, because another program's data are in it" if kept else "It was removed"
            return [Finding("mended", "vector index", f"{text} {where}; the chat makes it anew.")]
    finally:
        owner.release()
    return [Finding("degraded", "vector index", f"{text} Search goes on without it.", "tui-agent memory check --fix")]


def _facts_json(memory: Memory, fix: bool) -> list[Finding]:
    path = memory.project.facts_json_path
    try:
        before = read_text(path)
        if before is None and not memory.facts.live():
            return []
        if fix and before is None:
            memory.ledger.write_facts_json()
            return [Finding("mended", "facts.json", "It was missing and was written again.")]
    except (TextFileError, MemoryFileError) as error:
        return [Finding("degraded", "facts.json", f"It cannot be used: {error}.", f"remove {path}")]
    if before is None:
        return [Finding("degraded", "facts.json", "It is missing.", "tui-agent memory check --fix")]
    return [Finding("ok", "facts.json", "It is there and readable.")]


def _backlog(memory: Memory, fix: bool) -> list[Finding]:
    now = stats(memory)
    if now.healthy:
        found = [Finding("ok", "backlog", now.health)]
    else:
        last = f"ran last {now.last_prune} UTC" if now.last_prune else "never ran"
        late = f" The daily clean-up {last}." if prune_due(memory.db) else ""
        found = [Finding("degraded", "backlog", now.health + late, "tui-agent memory prune")]
    if now.review:
        text = f"{counted(now.review, 'fact')} not confirmed for 90 days."
        found.append(Finding("ok", "review", text, "tui-agent memory review"))
    return found


def _places(memory: Memory, fix: bool) -> list[Finding]:
    """Files others can read, memory that a restart would take, and a disk that is nearly full."""
    found = [Finding("degraded", "files", text) for text in memory.files.problems()]
    for path in memory.db.files():
        mode = stat.S_IMODE(path.stat().st_mode)
        if os.name == "posix" and mode & 0o077:
            text = f"{path.name} can be read by other users of this machine (mode {mode:03o})."
            if fix:
                path.chmod(0o600)
                found.append(Finding("mended", "files", f"{text} It is yours alone now."))
            else:
                found.append(Finding("degraded", "files", text, f"chmod 600 {path}"))
    kind = file_system(memory.project.memory_dir)
    if kind in ("tmpfs", "ramfs"):
        text = f"{memory.project.memory_dir} lies on {kind}: a restart of the machine empties it."
        found.append(Finding("degraded", "disk", text, "move the project to a real disk"))
    free = shutil.disk_usage(memory.project.memory_dir).free
    if free < _LITTLE_ROOM:
        text = f"Only {free // (1024 * 1024)} MB are free on the disk of the memory folder."
        found.append(Finding("degraded", "disk", text, "make room"))
    return found


def file_system(path: Path, mounts: Callable[[], str] | None = None) -> str:
    """The kind of file system a path lies on, where the system tells (Linux), else an empty string."""
    if sys.platform != "linux" and mounts is None:
        return ""
    try:
        table = mounts() if mounts is not None else Path("/proc/self/mounts").read_text("utf-8", "replace")
    except OSError:
        return ""
    best, kind = -1, ""
    for line in table.splitlines():
        _, point, found, *_ = [*line.split(" "), "", "", ""]
        mount = Path(point.replace("\\040", " ") or "/")
        if path.is_relative_to(mount) and len(mount.parts) >= best:
            best, kind = len(mount.parts), found
    return kind


def _backups(memory: Memory, every: bool) -> list[Finding]:
    backups = Backups(memory.project)
    made = [backup for backup in backups.all() if backup.manifest]
    if not made:
        return [Finding("degraded", "backups", "There is no backup yet.", "tui-agent memory backup")]
    found = []
    for backup in made if every else made[:1]:
        faults = backups.verify(backup)
        if faults:
            found.append(Finding("broken", "backups", faults[0], "tui-agent memory backup"))
        else:
            found.append(Finding("ok", "backups", f"{backup.name} is sound ({len(made)} in all)."))
    return found


def _short(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
