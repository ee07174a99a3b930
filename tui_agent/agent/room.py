"""Room in the window: what a request takes at most, and what gives way when no room for the answer would be left.

A server that is sent too much cuts the beginning away without a word. So before every request the prompt plus the
longest reply are held against the window. The server's own count of the last request is the firm part of that sum;
what came after it is estimated on the safe side, by words and by bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.agent.asking import Asking
from tui_agent.agent.compaction import SUMMARY_REQUEST, keep_whole_turns, limit_of, plain_summary, with_summary
from tui_agent.agent.connection import Emit
from tui_agent.agent.events import Notice, PhaseChanged
from tui_agent.agent.prompt import LogEntry, legal, turns
from tui_agent.agent.tools.registry import head_and_tail
from tui_agent.llm.errors import ContextExceeded

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

_MARGIN = 1.15
_FIXED_MARGIN = 1.08  # our own English and JSON, which the estimate was fitted to
_BYTES_PER_TOKEN = 4
_MESSAGE = 8  # the marks around a message, in templates that are generous with them
_TOOLS = 90  # the sentences with which templates introduce the tools
_LEAST_TEXT = 48
_USUALLY_ADDED = 100  # what memory adds to a message when nothing is known of the last one
NO_ROOM = "(The result does not fit into the window any more. Answer the user now with what you have.)"


@dataclass(frozen=True, slots=True)
class _Counted:
    """The server's count of a request: of which epoch, with how many messages of the log."""

    epoch: int
    entries: int
    tokens: int


class Room:
    """The window of one conversation."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._counted: _Counted | None = None
        self._asking: Asking | None = None
        # What the server really gives, once it is known to be less than what was asked for.
        self.window: int | None = None
        self._added = _USUALLY_ADDED

    def stop(self) -> None:
        """Give up a summary that is being written; a plain one takes its place."""
        if self._asking is not None:
            self._asking.stop()

    # -- measuring ------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The window in tokens, as far as we know."""
        return min(self._core.options.num_ctx, self.window or self._core.options.num_ctx)

    @property
    def hard(self) -> int:
        """The most tokens a prompt may have: the longest reply fits behind it."""
        return self.size - self._core.options.num_predict

    @property
    def last_count(self) -> int | None:
        """The server's trusted count of the last request of this epoch."""
        known = self._counted
        return known.tokens if known is not None and known.epoch == self._core.prompt.epoch else None

    @property
    def counted_entries(self) -> int:
        """With how many messages of the log that request was sent; 0 when there is none."""
        return self._counted.entries if self._counted is not None and self.last_count is not None else 0

    def larger(self) -> int:
        """Twice the window, as far as the model was trained for it; 0 when that is no more than now."""
        info, now = self._core.connection.info, self._core.options.num_ctx
        most = info.context_length if info is not None and info.context_length else 2 * now
        return wanted if (wanted := min(2 * now, most)) > now else 0

    @property
    def _summary_tokens(self) -> int:
        return min(400, self.size // 12)

    def counted(self, entries: int, estimated: int, tokens: int | None) -> None:
        """The server counted ``tokens`` for a prompt with the first ``entries`` of the log, estimated to ``estimated``.

        A count far from the estimate is of something else (cached tokens left out, a cut prompt) and is not used.
        """
        if tokens and 0.6 <= tokens / max(1, estimated) <= 2.5:
            self._counted = _Counted(self._core.prompt.epoch, entries, tokens)

    def at_most(self, extra: Sequence[LogEntry] = ()) -> int:
        """Tokens of the next request with ``extra`` behind the log, on the safe side."""
        prompt = self._core.prompt
        known = self._counted
        if known is not None and known.epoch == prompt.epoch and known.entries <= len(prompt.log):
            rest = prompt.log[known.entries :]
            return known.tokens + sum(self.entry_at_most(entry) for entry in (*rest, *extra))
        return self._from_the_start([*prompt.log, *extra])

    def _from_the_start(self, entries: Sequence[LogEntry]) -> int:
        """Tokens of a request with these messages behind the fixed part, on the safe side, without any count."""
        prompt = self._core.prompt
        tools = prompt.tools_json
        fixed = self.text_at_most(prompt.system, _FIXED_MARGIN) + self.text_at_most(tools, _FIXED_MARGIN)
        fixed += 2 * _MESSAGE + (_TOOLS if tools else 0)
        return fixed + sum(self.entry_at_most(entry) for entry in entries)

    def entry_at_most(self, entry: LogEntry) -> int:
        """Tokens of one message, on the safe side."""
        message = entry.message
        size = _MESSAGE + self.text_at_most(str(message.get("content", "")))
        size += self.text_at_most(str(message.get("thinking", "")))
        for call in message.get("tool_calls", ()):
            size += 20 + self.text_at_most(json.dumps(call["function"], ensure_ascii=False))
        return size

    def text_at_most(self, text: str, margin: float = _MARGIN) -> int:
        """Tokens of a text, on the safe side."""
        if not text:
            return 0
        size = len(text.encode("utf-8", "replace"))
        return math.ceil(max(margin * self._core.count(text), size / _BYTES_PER_TOKEN))

    def fits(self, extra: Sequence[LogEntry] = ()) -> bool:
        """Whether a request with ``extra`` leaves room for the longest reply."""
        return self.at_most(extra) <= self.hard

    def for_memory(self, text: str, most: int) -> int:
        """Tokens that memory may add to a message of this text: ``most``, or what the window has left."""
        if self._core.connection.options is None:
            return most
        left = self.hard - self.at_most([LogEntry({"role": "user", "content": text})]) - 2 * _MESSAGE
        return max(0, min(most, int(left / _MARGIN)))

    def for_result(self, text: str) -> str:
        """A tool's result, cut to the room that is left, or a sentence that there is none."""
        left = self.hard - self.at_most() - _MESSAGE
        if self.text_at_most(text) <= left:
            return text
        if left < _LEAST_TEXT:
            return NO_ROOM
        cut = head_and_tail(text, self.text_at_most, left)
        return cut if self.text_at_most(cut) <= left else NO_ROOM

    # -- making room ----------------------------------------------------------------------------------------------

    async def before_turn(self, text: str, emit: Emit) -> None:
        """Summarise older turns when a message of this ``text``, with what memory adds to it, would not fit.

        It comes before recall, which must know what is still visible after it.
        """
        core = self._core
        if not core.prompt.log:
            return
        entry = LogEntry({"role": "user", "content": text})
        added = min(self._added, self.size // 10)
        expected = sum(core.prompt.tokens([entry]).values()) + added
        if expected > limit_of(self.size, core.options.num_predict) or self.at_most([entry]) + added > self.hard:
            await self._keep_what_fits(self.entry_at_most(entry) + added, emit)

    async def fit(self, entry: LogEntry, text: str, emit: Emit) -> LogEntry:
        """The newest message as it can be sent: shortened when it does not fit beside the fixed part.

        ``text`` are the user's words at the end of ``entry``.

        Raises:
            ContextExceeded: not even a shortened message fits.
        """
        added = self.entry_at_most(entry) - self.entry_at_most(LogEntry({"role": "user", "content": text}))
        self._added = max(_USUALLY_ADDED, added)
        if not self.fits([entry]) and self._core.prompt.log:
            await self._keep_what_fits(self.entry_at_most(entry), emit)
        if self.fits([entry]):
            return entry
        shorter = self._shortened(entry, text)
        if shorter is None:
            raise self._too_small()
        emit(
            Notice(
                "warning",
                "Your message is longer than the window has room for, so the model sees its beginning and its end. A "
                "larger num_ctx in config.yaml lets it see more.",
            )
        )
        return shorter

    async def within_turn(self, emit: Emit) -> None:
        """Make room for the next request of a running turn: the turns before it become a summary.

        Raises:
            ContextExceeded: the turn alone fills the window.
        """
        if self.fits():
            return
        groups = turns(self._core.prompt.log)
        if older := [entry for group in groups[:-1] for entry in group]:
            await self._compact(older, groups[-1], emit)
        if not self.fits():
            raise self._too_small()

    async def _keep_what_fits(self, newest: int, emit: Emit) -> None:
        core = self._core
        older, kept = keep_whole_turns(
            core.prompt,
            keep_messages=core.settings.keep_messages,
            budget=int(min(0.4 * self.size, self._left_for_log(newest))),
            size=self.entry_at_most,
        )
        if older:
            await self._compact(older, kept, emit)

    def _left_for_log(self, entry: int) -> int:
        """Tokens for turns kept word for word, beside the fixed part, a summary and the newest message."""
        return self.hard - self._from_the_start(()) - entry - self._summary_tokens - 60

    def _shortened(self, entry: LogEntry, text: str) -> LogEntry | None:
        content = str(entry.message["content"])
        before = content[: len(content) - len(text)] if content.endswith(text) else ""
        left = self.hard - self.at_most([LogEntry({"role": "user", "content": before})])
        if left < _LEAST_TEXT:
            return None
        cut = head_and_tail(text, self.text_at_most, left)
        shorter = LogEntry({**entry.message, "content": before + cut}, entry.refs)
        return shorter if self.fits([shorter]) else None

    def _too_small(self) -> ContextExceeded:
        options = self._core.options
        return ContextExceeded(
            f"This does not fit into the window of {self.size:,} tokens, of which {options.num_predict:,} are "
            "kept for the answer.",
            fix="Set a larger `num_ctx` in config.yaml, or shorten the message or the memory files.",
        )

    async def _compact(self, older: Sequence[LogEntry], kept: Sequence[LogEntry], emit: Emit) -> None:
        core = self._core
        emit(PhaseChanged("reading", "summarising older messages"))
        summary = await self._summary(older) or plain_summary(older)
        if self.text_at_most(summary) > self._summary_tokens:
            summary = head_and_tail(summary, self.text_at_most, self._summary_tokens)
        await core.start_epoch(with_summary(summary, kept))
        await core.db.run(
            core.history.append,
            core.session_id,
            "notice",
            f"The window was full: {len(older)} older messages are now a summary for the model. Nothing is lost "
            f"here.\n\n{summary}",
            meta={"compaction": len(older)},
        )
        emit(
            Notice(
                "info",
                f"The window was full, so {len(older)} older messages were summarised for the model; the last "
                f"{len(kept)} stay word for word.",
            )
        )

    async def _summary(self, older: Sequence[LogEntry]) -> str:
        """One more call on the same prefix, so that the model server reads only the request itself.

        The whole log is sent where it fits, since the server has read it; else, or while calls of a running turn wait
        for their answer, only what is to be summarised, without its last turns where that is too much: those are
        summed up without the model.
        """
        core = self._core
        question = LogEntry({"role": "user", "content": SUMMARY_REQUEST})
        sent, rest = list(core.prompt.log), list[LogEntry]()
        if sent[-1].message["role"] != "assistant" or not self.fits([question]):
            sent = list(older)
            while sent and self._from_the_start([*sent, question]) > self.hard:
                last = turns(sent)[-1]
                sent, rest = sent[: -len(last)], [*last, *rest]
        if not sent or sent[-1].message["role"] != "assistant":
            return ""
        messages = legal([core.prompt.messages()[0], *(entry.message for entry in sent), question.message])
        self._asking = Asking(core)
        try:
            reply = await self._asking.run(messages, tools=core.prompt.tools, enough=lambda text: False)
        finally:
            self._asking = None
        said = reply.text.strip() if reply.end == "done" and not reply.calls else ""
        return f"{said}\n{plain_summary(rest)}" if said and rest else said
