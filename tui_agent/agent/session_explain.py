"""What a session offers to people who ask why: the same question without an item, topics an item is not for, and what
can be done when the model did not see the beginning."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection
from typing import Literal

from tui_agent.agent.actions import MemoryActions
from tui_agent.agent.comparing import Comparing
from tui_agent.agent.core import Core
from tui_agent.agent.events import Event, MemoryChanged
from tui_agent.agent.prompt import LogEntry, turns
from tui_agent.agent.turn import Turn
from tui_agent.agent.views import ActionResult, Comparison, TopicRow
from tui_agent.memory.topics import Topic

log = logging.getLogger(__name__)

Way = Literal["larger", "shorter"]
_LEFT_OUT = "(This tool output was left out to make room. Call the tool again if you need it.)"


class SessionExplain:
    """A part of :class:`~tui_agent.agent.session.Session`."""

    _core: Core
    _actions: MemoryActions
    _emit: Callable[[Event], None]
    _comparing: Comparing | None = None

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        raise NotImplementedError

    def _play(self, turn: Turn) -> AsyncIterator[Event]:
        raise NotImplementedError

    # -- the same question without an item ------------------------------------------------------------------------

    async def ask_without(
        self, message_id: str, refs: Collection[str], on_text: Callable[[str], None] | None = None
    ) -> Comparison:
        """Ask the question of an answer once more without some items, beside the conversation: nothing is stored.

        ``on_text`` gets the whole text so far, as it comes.

        Raises:
            LookupError: what the answer was given was not kept; the sentence says so.
            ModelError: the server's trouble.
            RuntimeError: an answer is running.
        """
        if self.busy:
            raise RuntimeError("An answer is running; wait for its end or stop it, then ask again without an item.")
        self.stop_comparing()
        comparing = self._comparing = Comparing(self._core)
        try:
            return await comparing.run(message_id, refs, on_text or (lambda text: None))
        finally:
            if self._comparing is comparing:
                self._comparing = None

    def stop_comparing(self) -> None:
        """Give up a comparison that is running; its text so far is its result."""
        if self._comparing is not None:
            self._comparing.stop()

    # -- never for this topic -------------------------------------------------------------------------------------

    async def never_for_topic(self, ref: str, question: str) -> ActionResult:
        """Do not recall an item for questions like this one any more."""
        core = self._core
        if ref.partition(":")[0] not in ("fact", "cold", "file"):
            return ActionResult(False, "That is in the working memory now; put it away with f instead.")
        try:
            topic: Topic = await core.db.run(core.stores.topics.add, ref, question)
        except ValueError as error:
            return ActionResult(False, str(error))
        words = ", ".join(topic.words[:5])
        self._actions.can_undo(f"never for: {words}", lambda: self.allow_topic(topic.id))
        self._emit(MemoryChanged("left_out", ref.partition(":")[0], ref.partition(":")[2], f"never for: {words}"))
        return ActionResult(True, f"Not recalled again for questions about {words}.", undo=True, id=topic.id)

    async def allow_topic(self, topic_id: str) -> ActionResult:
        """Let an item be recalled again for a topic."""
        core = self._core
        try:
            topic: Topic = await core.db.run(core.stores.topics.remove, topic_id)
        except LookupError:
            return ActionResult(False, "That is not in force any more.")
        return ActionResult(True, f"Recalled again for questions about {', '.join(topic.words[:5])}.", id=topic.ref)

    async def allow(self, ref: str) -> ActionResult:
        """Let an item be recalled again for every topic."""
        rows = await self.topics(ref)
        for row in rows:
            await self.allow_topic(row.id)
        return ActionResult(bool(rows), "Recalled again for every topic." if rows else "Nothing was left out for it.")

    async def topics(self, ref: str = "") -> list[TopicRow]:
        """What is never recalled for a topic: all, or only of one item."""
        core = self._core
        found: list[Topic] = (
            await core.db.run(core.stores.topics.of, ref) if ref else await core.db.run(core.stores.topics.all)
        )
        rows = []
        for topic in found:
            store, _, item_id = topic.ref.partition(":")
            fact = await core.db.run(core.stores.facts.get, item_id) if store == "fact" else None
            text = fact.fact if fact is not None else (item_id if store == "file" else "")
            rows.append(TopicRow(topic.id, topic.ref, text, topic.question, topic.words, topic.created_at))
        return rows

    # -- the model did not see the beginning ----------------------------------------------------------------------

    async def retry(self, way: Way) -> AsyncIterator[Event]:
        """Answer the last question again, after making room: a ``larger`` window, or a ``shorter`` prompt without the
        output of tools. The answer that was there stays in the transcript; its turn leaves what the model is sent.

        Raises:
            LookupError: there is no question yet.
            RuntimeError: an answer is running.
        """
        if self.busy:
            raise RuntimeError("An answer is running; wait for its end or stop it.")
        core = self._core
        messages = await core.db.run(core.history.messages, core.session_id)
        question = next((message for message in reversed(messages) if message.role == "user"), None)
        if question is None:
            raise LookupError("There is no question to ask again.")
        if way == "larger" and (wanted := core.room.larger()):
            core.connection.widen(wanted, self._emit)
            core.room.window = None
        log_ = self._log_before(question.id)
        if way == "shorter":
            log_ = [_without_output(entry) for entry in log_]
        await core.start_epoch(log_)
        # What a tool printed is also in the hot memory, from where it would come straight back.
        hot = {f"hot:{row.id}" for row in await core.hot_rows()} if way == "shorter" else set()
        turn = Turn(core, question.content, hot, again=question.id)
        async for event in self._play(turn):
            yield event

    def _log_before(self, question_id: str) -> list[LogEntry]:
        """What was sent before the last question. A question that was never sent has everything before it."""
        core = self._core
        log_ = core.prompt.log
        if core.asked_at is None or core.asked_at[0] != question_id:
            return list(log_)
        _, epoch, index = core.asked_at
        if epoch == core.prompt.epoch:
            return log_[:index]
        return [entry for group in turns(log_)[:-1] for entry in group]


def _without_output(entry: LogEntry) -> LogEntry:
    if entry.message["role"] != "tool" or len(str(entry.message["content"])) <= len(_LEFT_OUT):
        return entry
    return LogEntry({**entry.message, "content": _LEFT_OUT})
