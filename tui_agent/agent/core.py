"""The inside of a session: stores, prompt, model and working memory, wired together for one conversation."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from functools import cached_property
from typing import Any

from tui_agent.agent.events import ContextUsage, Event, MemoryChanged
from tui_agent.agent.explaining import put_away_tokens
from tui_agent.agent.keeping import Keeping
from tui_agent.agent.pasted import kind_of_paste
from tui_agent.agent.prompt import NO_TEXT, LogEntry
from tui_agent.agent.room import Room
from tui_agent.agent.tools.base import ToolResult
from tui_agent.agent.views import HotRow
from tui_agent.llm.types import Metrics, ToolCall
from tui_agent.memory.history import StoredMessage
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.records import MASK
from tui_agent.memory.types import RecallRecord
from tui_agent.memory.working_types import ColdItem, HotItem, MemoryEvent

log = logging.getLogger(__name__)

_PROMPT_STATE = "prompt"
_MOVES = {"pin_released": "released"}
_ZONES = {"evicted": "cold", "put_away": "cold"}
_GOAL_CHARS = 160
_LONG_PASTE = 2_000


class Core(Keeping):
    """One conversation. Turns and the session facade share it; nothing outside the agent package does."""

    asked_at: tuple[str, int, int] | None = None
    """The last question: its id, the epoch, and how many messages of the log come before it."""

    # -- room in the window ---------------------------------------------------------------------------------------

    @cached_property
    def room(self) -> Room:
        """The window, and what gives way when it fills."""
        return Room(self)

    def observe(self, estimated: int, metrics: Metrics) -> None:
        """Let the server's count of the prompt, as it stands in the log now, correct our estimate."""
        self.room.counted(len(self.prompt.log), estimated, metrics.prompt_tokens)
        if metrics.prompt_tokens:
            self.estimator.observe(estimated, metrics.prompt_tokens)

    def usage(self, metrics: Metrics | None, record: RecallRecord | None) -> ContextUsage:
        """Tokens of the last request by part."""
        parts = self.prompt.tokens()
        rules = sum(self.count(section.text) for section in self.prompt.sections.values())
        recalled = sum(item.tokens for item in record.items) if record else 0
        named = put_away_tokens(record) if record else 0
        options = self.connection.options
        window = options.num_ctx if options else self.settings.num_ctx
        shown = {
            "system": max(0, parts["system"] - rules),
            "files": rules,
            "tools": parts["tools"],
            "recalled": recalled,
            "put away": named,
            "history": max(0, parts["history"] - recalled - named),
            "reply": options.num_predict if options else 0,
        }
        used = sum(shown.values()) - shown["reply"]
        measured = bool(metrics and metrics.prompt_tokens)
        if metrics and metrics.prompt_tokens:
            used = metrics.prompt_tokens + (metrics.output_tokens or 0)
        self.last_usage = ContextUsage(used, window, shown, measured)
        return self.last_usage

    # -- memory ---------------------------------------------------------------------------------------------------

    async def keep_said(self, text: str, *, goal: bool) -> StoredMessage:
        """Bring the user's words to disk. With ``goal`` the first request of a session is its goal as well, until the
        user says otherwise; the working memory hears of it when the request has been sent."""
        goal = goal and not self.goal
        row: StoredMessage = await self.db.run(
            self.history.said, self.session_id, text, goal_of=first_line if goal else None
        )
        if goal and (line := first_line(row.content)):
            self.goal = self.stores.secrets.clean(line)
            self.title = self.title or self.goal[:80]
            self.after_sending(lambda: self.working_events(self.working.set_goal(self.goal)))
        return row

    def after_sending(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Do this in the background when the request has left: the user should not wait for it."""
        self._later.append(work)

    def sent(self) -> None:
        """The request has left, or there will be none."""
        self.collection.end()
        later, self._later = self._later, []
        for work in later:
            self._spawn(work())

    async def set_goal(self, text: str) -> list[Event]:
        """Set the goal for scoring and recall; returns what the working memory proposes."""
        self.goal = text = self.stores.secrets.clean(text)  # it is stored and embedded
        await self.db.run(self.history.set_goal, self.session_id, text)
        return await self.working_events(self.working.set_goal(text))

    async def working_events(self, action: Awaitable[Any]) -> list[Event]:
        """Await one working-memory call and return the automatic moves it caused, as events."""
        events = self.working.events
        last = events[-1] if events else None
        await action
        self.working_save()
        moves: list[MemoryEvent] = []
        for move in reversed(self.working.events):
            if move is last:
                break
            moves.append(move)
        return [
            MemoryChanged(_MOVES.get(move.event, move.event), _ZONES.get(move.event, "hot"), move.item_id, move.text)
            for move in reversed(moves)
            if move.automatic
        ]

    async def bring_recalled(self, record: RecallRecord) -> list[Event]:
        """Put-away items of this session that were recalled become hot again, as ``recalled``."""
        wanted = [item.id for item in record.items if item.store == "cold"]
        events: list[Event] = []
        for row in await self.working.own_cold_items(wanted) if wanted else ():
            events += await self.working_events(self.working.bring_back(row.id, found=True))
            events.append(MemoryChanged("brought_back", "hot", row.id, row.summary, "it fits the question"))
        return events

    def hot_row(self, item_id: str) -> HotItem | None:
        """One hot item."""
        return next((row for row in self.working.hot() if row.id == item_id), None)

    async def cold_row(self, item_id: str) -> ColdItem | None:
        """One put-away item."""
        return await self.working.cold_item(item_id)

    async def remember_result(self, call: ToolCall, result: ToolResult) -> tuple[tuple[str, ...], list[Event]]:
        """Put a tool's result into the working memory; returns the references that became visible, and the moves."""
        if not result.item_kind or not result.ok:
            return (), []
        return await self.add_item(
            result.item_kind,
            result.item_text or result.text,
            summary=f"{call.name} {result.source}".strip(),
            source=result.source or call.name,
        )

    async def add_item(self, kind: str, text: str, *, summary: str, source: str) -> tuple[tuple[str, ...], list[Event]]:
        """Add one item to the working memory, secrets left out: its cold zone is on disk."""
        item_id = ""
        text, summary = self.stores.secrets.clean(text), self.stores.secrets.clean(summary)

        async def add() -> None:
            nonlocal item_id
            item_id = await self.working.add(kind, text, summary=summary, source=source)

        events = await self.working_events(add())
        return (f"hot:{item_id}", f"cold:{item_id}"), events

    async def keep_paste(self, text: str, message_id: str) -> tuple[tuple[str, ...], list[Event]]:
        """A long paste becomes an item of its own, so that it can be put away and found again."""
        if len(text) < _LONG_PASTE:
            return (), []
        first = next((line.strip() for line in text.splitlines() if line.strip()), "paste")[:72]
        kind = kind_of_paste(text)
        return await self.add_item(kind, text, summary=f"pasted: {first}", source=f"message {message_id}")

    async def hot_rows(self) -> list[HotRow]:
        """The hot zone, best first."""
        return [
            HotRow(
                id=row.id,
                kind=row.kind,
                text=row.text,
                summary=row.summary,
                tokens=row.tokens,
                score=row.score,
                terms=row.terms,
                pinned=row.pinned,
                age=row.age,
                source=row.source,
                created_at=row.created_at,
                in_prompt=f"hot:{row.id}" in self.prompt.visible,
            )
            for row in self.working.hot()
        ]

    def working_save(self) -> None:
        """Save hot zone and prompt state in the background."""
        self._spawn(self._save())

    async def _save(self) -> None:
        await self.working.save()
        await self.save_prompt_state()

    async def facts_changed(self, note: str = "") -> None:
        """Facts were written or changed: files are read again, ``facts.json`` is written, vectors follow.

        Our own lines in a file are no news to announce with the whole file. What the model has not done itself is
        told by ``note``, in the next message.
        """
        before = {section.name: section.hash for section in self.sections()}
        await asyncio.to_thread(self.sources.refresh)
        announced = self.prompt.announced
        now = {section.name: section.hash for section in self.sections()}
        for name in {**before, **now}:
            if announced.get(name) == before.get(name):
                announced[name] = now.get(name, NO_TEXT)
        if note:
            self._notes.append(note)
        try:
            await self.db.run(self.stores.ledger.write_facts_json)
        except MemoryFileError as error:  # the rows are safe; the next change writes the file again
            log.warning("%s", error)
        self._spawn(self.recaller.index_missing())

    def tell_model(self, note: str) -> None:
        """Have the next message carry this note for the model."""
        self._notes.append(note)

    def take_notes(self) -> list[str]:
        """What happened to memory since the last message, for the model; each note once."""
        notes, self._notes = self._notes, []
        return notes

    async def model_changed(self) -> None:
        """Another model answers: a new prefix for it, with the same log."""
        self.room.window = None
        await self.db.run(self.history.set_model, self.session_id, self.model)
        await self.start_epoch(self.prompt.log)

    def masked_log(self, spans: Sequence[str]) -> list[LogEntry]:
        """The log with every span replaced, for the new prefix after something was deleted for good."""
        masked = []
        for entry in self.prompt.log:
            text = json.dumps(entry.message, ensure_ascii=False)
            for span in sorted(spans, key=len, reverse=True):
                text = text.replace(json.dumps(span, ensure_ascii=False)[1:-1], MASK)
            masked.append(LogEntry(json.loads(text), entry.refs))
        return masked

    async def leave(self) -> None:
        """The conversation is left in an orderly way."""
        await self.working.close()
        await self.save_prompt_state()
        await self.db.run(self.history.end_session, self.session_id)

    async def settled(self) -> None:
        """Wait until background saves are done."""
        while self._saving:
            await asyncio.gather(*tuple(self._saving), return_exceptions=True)

    def refs_in_files(self) -> set[str]:
        """Facts whose line already stands in the fixed part of the prompt."""
        return self.sources.refs_in(self.prompt.sections.values())

    def mark_used(self, ids: Collection[str]) -> None:
        """Facts that really go into a prompt; noted when it has been sent."""
        if ids:
            self.after_sending(lambda: self.db.run(self.stores.facts.used, list(ids)))


def first_line(text: str) -> str:
    """The first line of a message that holds anything, as a goal or title."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:_GOAL_CHARS]
