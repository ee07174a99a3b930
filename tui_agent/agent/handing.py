"""Handing a task on: the packet for another agent, drafted from the conversation and confirmed by the user."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tui_agent.agent.core import Core
from tui_agent.agent.review_views import HandoffDraft, HandoffView
from tui_agent.agent.views import ActionResult
from tui_agent.memory.conclusions import draft
from tui_agent.memory.handoff import AIM_TOKENS, Handoff, HandoffRefused, packet
from tui_agent.memory.textfile import ChangedOnDisk, TextFileError, read_text, write_text
from tui_agent.project import MEMORY_DIR

_NAME_CHARS = 200


class SessionHanding:
    """The hand-off half of :class:`~tui_agent.agent.session.Session`."""

    _core: Core

    async def handoff_draft(self) -> HandoffDraft:
        """What can be handed on of this conversation: conclusions only, for the user to correct."""
        core = self._core
        messages = await core.db.run(core.history.messages, core.session_id)
        ids = {message.id for message in messages}
        facts = [fact for fact in await core.db.run(core.stores.facts.live) if fact.message_id in ids]
        said = [message.content for message in messages if message.role == "user"]
        made: dict[str, Any] = draft(core.goal or core.title, facts, said)
        return HandoffDraft(str(made["task"]), tuple(made["requirements"]), str(made["format"]))

    async def handoff(
        self, task: str, requirements: Sequence[str], form: str, *, confirmed: bool = False
    ) -> HandoffView:
        """The packet of these parts, or why they cannot be handed on. ``confirmed`` is the user's yes to all of them,
        given on the screen that shows them."""
        try:
            made = await self._packet(task, requirements, form)
        except HandoffRefused as error:
            return HandoffView(refused=str(error), aim=AIM_TOKENS)
        made = made.confirmed(confirmed)
        return HandoffView(made.text(indent=2), made.tokens, AIM_TOKENS, confirmed=confirmed)

    async def save_handoff(
        self,
        name: str,
        task: str,
        requirements: Sequence[str],
        form: str,
        *,
        confirmed: bool = False,
        replace: bool = False,
    ) -> ActionResult:
        """Write the packet to a file inside the project. An existing file is replaced only with ``replace``; without
        it ``extra["exists"]`` names it."""
        try:
            made = await self._packet(task, requirements, form)
            path = inside(self._core.stores.project.root, name)
        except (HandoffRefused, ValueError) as error:
            return ActionResult(False, str(error))
        text = f"{made.confirmed(confirmed).text(indent=2)}\n"
        return await asyncio.to_thread(_write, path, text, self._core.stores.project.root, replace)

    async def _packet(self, task: str, requirements: Sequence[str], form: str) -> Handoff:
        core = self._core
        if not task.strip():
            raise HandoffRefused("There is no task yet: say what is to be done.")
        messages = await core.db.run(core.history.messages, core.session_id)
        said = [message.content for message in messages if message.role in ("user", "assistant")]
        data = {"task": task, "requirements": list(requirements), "format": form}
        return packet(data, transcript=said)


def inside(root: Path, name: str) -> Path:
    """The file a user names, inside the project and outside of its memory and of git.

    Raises:
        ValueError: it is somewhere else, a folder, or its folder does not exist.
    """
    given = name.strip()
    if not given or len(given) > _NAME_CHARS or not given.isprintable():
        raise ValueError("Give a file name, such as handoff.json.")
    path = Path(given).expanduser()
    path = path if path.is_absolute() else root / path
    # Links are followed before looking: a folder in the project may lead out of it.
    folder = path.parent.resolve()
    if not folder.is_relative_to(root.resolve()) or path.name in ("", ".", ".."):
        raise ValueError(f"{given} is outside of the project; the packet is written inside of it only.")
    parts = (folder / path.name).relative_to(root.resolve()).parts
    if parts[0] in (MEMORY_DIR, ".git"):
        raise ValueError(f"{parts[0]} belongs to the program; choose another place in the project.")
    if not folder.is_dir():
        raise ValueError(f"There is no folder {path.parent} in the project. Create it, or choose another one.")
    target = folder / path.name
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise ValueError(f"{given} is a link or a folder; choose another name.")
    return target


def _write(path: Path, text: str, root: Path, replace: bool) -> ActionResult:
    shown = path.relative_to(root.resolve()).as_posix()
    try:
        before = read_text(path)
        if before is not None and not replace:
            return ActionResult(False, f"{shown} exists already.", extra={"exists": shown})
        write_text(path, text, before)
    except ChangedOnDisk:
        return ActionResult(False, f"{shown} was made or changed by another program just now. Nothing was written.")
    except TextFileError as error:
        return ActionResult(False, f"{shown}: {error}.")
    return ActionResult(True, f"Written to {shown}. Deleting a fact later does not reach this copy.")
