"""What a session offers on memory: the panes, and every verb a key can do to an item."""

from __future__ import annotations

import logging
from collections.abc import Callable

from tui_agent.agent.actions import MemoryActions
from tui_agent.agent.core import Core
from tui_agent.agent.events import Event
from tui_agent.agent.inspecting import Inspector
from tui_agent.agent.transcript import transcript_of
from tui_agent.agent.views import (
    ActionResult,
    ColdView,
    HotView,
    Inspection,
    TranscriptEntry,
)
from tui_agent.memory.types import RecallRecord

log = logging.getLogger(__name__)


class SessionMemory:
    """The memory half of :class:`~tui_agent.agent.session.Session`."""

    _core: Core
    _actions: MemoryActions
    _inspector: Inspector
    _emit: Callable[[Event], None]

    # -- panes ----------------------------------------------------------------------------------------------------

    async def hot(self, sort: str = "score") -> HotView:
        """The hot pane, sorted by ``score``, ``age`` or ``tokens``."""
        return await self._inspector.hot(sort)

    async def cold(self, query: str = "", limit: int = 200) -> ColdView:
        """The cold pane, searched by ``query``."""
        return await self._inspector.cold(query, limit)

    async def recall_of(self, message_id: str) -> RecallRecord | None:
        """What fed an answer."""
        record: RecallRecord | None = await self._core.db.run(self._core.history.recall, message_id)
        return record

    async def transcript(self) -> list[TranscriptEntry]:
        """The session's messages."""
        return await transcript_of(self._core)

    async def inspect(self, ref: str) -> Inspection:
        """Everything known of one item.

        Raises:
            LookupError: there is no such item any more.
        """
        return await self._inspector.inspect(ref)

    async def remembered(self) -> list[Inspection]:
        """Everything that is remembered for long."""
        return await self._inspector.remembered()

    async def quarantined(self) -> list[Inspection]:
        """What waits for approval."""
        return await self._inspector.quarantined()

    # -- memory by key --------------------------------------------------------------------------------------------

    async def pin(self, ref: str) -> ActionResult:
        """Pin a hot item or a fact."""
        return await self._actions.pin(ref)

    async def unpin(self, ref: str) -> ActionResult:
        """Release a pin."""
        return await self._actions.unpin(ref)

    async def put_away(self, ref: str) -> ActionResult:
        """Hot to cold; for a fact: not now (it is not recalled again in this session)."""
        return await self._actions.put_away(ref)

    async def bring_back(self, ref: str) -> ActionResult:
        """Cold to hot."""
        return await self._actions.bring_back(ref)

    async def note(self, text: str) -> ActionResult:
        """Add a note to the hot zone."""
        return await self._actions.note(text)

    async def touch(self, ref: str) -> ActionResult:
        """Say that an item matters now."""
        return await self._actions.touch(ref)

    async def edit(self, ref: str, text: str) -> ActionResult:
        """Change the text of a hot item."""
        return await self._actions.edit(ref, text)

    async def confirm(self, ref: str) -> ActionResult:
        """Say that a fact still holds."""
        return await self._actions.confirm(ref)

    async def correct(self, ref: str, text: str) -> ActionResult:
        """Replace a fact by ``text``; the old one stays in its history."""
        return await self._actions.correct(ref, text)

    async def expire(self, ref: str) -> ActionResult:
        """Say that a fact no longer holds."""
        return await self._actions.expire(ref)

    async def delete_forever(self, ref: str) -> ActionResult:
        """Destroy a fact and what it replaced, everywhere the app keeps it."""
        return await self._actions.delete_forever(ref)

    async def undo(self) -> ActionResult:
        """Take back the last memory action."""
        return await self._actions.undo()

    async def save_sentence(self, message_id: str, sentence: str, target: str = "") -> ActionResult:
        """Save a sentence the user said, by one key."""
        return await self._actions.save_sentence(message_id, sentence, target)

    async def approve(self, id: str) -> ActionResult:
        """Let a waiting statement in."""
        return await self._actions.approve(id)

    async def reject(self, id: str) -> ActionResult:
        """Turn a waiting statement away."""
        return await self._actions.reject(id)

    async def set_goal(self, text: str) -> ActionResult:
        """Set the session's goal."""
        events = await self._core.set_goal(text.strip())
        for event in events:
            self._emit(event)
        proposed = self._core.working.proposals
        if not proposed:
            return ActionResult(True, f"Goal: {text.strip()}")
        first = next(iter(proposed[0].text.strip().splitlines()), "")[:60]
        what = "A put-away item matches" if len(proposed) == 1 else f"{len(proposed)} put-away items match"
        told = f"Goal: {text.strip()}. {what} it, first “{first}”. F3 and / find them, r brings one back."
        return ActionResult(True, told)
