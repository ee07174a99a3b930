"""One turn: from the user's words to the stored answer, as a stream of typed events.

The order is the promise: the user's message is on disk before anything can fail, the answer's text is flushed while
it streams, and every end (answer, stop, cut, error) leaves a transcript the strictest template accepts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tui_agent.agent import promise_check
from tui_agent.agent.asking import Asking
from tui_agent.agent.events import (
    Event,
    MemoryChanged,
    Notice,
    NotSeen,
    PhaseChanged,
    Recalled,
    Status,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaved,
)
from tui_agent.agent.explaining import with_request
from tui_agent.agent.feeding import feed
from tui_agent.agent.prompt import STOPPED, LogEntry
from tui_agent.agent.put_away import after_recall
from tui_agent.agent.reading import after, known_tokens
from tui_agent.agent.recovering import Recovery
from tui_agent.agent.rounds import Outcome, Request, Round
from tui_agent.agent.telling import LISTED, tell_everything
from tui_agent.agent.tools.base import ToolResult, TurnContext
from tui_agent.agent.tools.registry import LoopGuard
from tui_agent.agent.turn_keeping import AnswerSoFar, TurnLog
from tui_agent.agent.unseen import look as unseen_by_server
from tui_agent.agent.unseen import not_seen
from tui_agent.llm.errors import ContextExceeded, ModelError
from tui_agent.llm.toolcalls import is_bare_unknown_call
from tui_agent.llm.types import Metrics, ToolCall
from tui_agent.memory.asked import asked_among
from tui_agent.memory.database import StoreError
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.types import RecallRecord

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

log = logging.getLogger(__name__)
JSON = dict[str, Any]

_LEFT_S = 0.05  # after which a request has surely left
_NO_ANSWER = "(no answer)"
_EMPTY_NUDGE = "Your last reply was empty. Answer the user now, in plain text."
_EMPTY_NUDGE_TOOLS = (
    "Your last reply was empty. Answer in plain text, or call one of these tools exactly by name: {names}."
)
_UNKNOWN_NUDGE = 'There is no tool called "{name}". Answer the user\'s last question now, in plain text, without tools.'
_ANSWER_NOW = "\n(That was the last tool call of this turn. Answer the user now, in plain text.)"
_DONE_ALREADY = "This exact call was already made in this turn; its result is above. Do not repeat it."


class Turn:
    """A single turn. ``run`` is called once; ``stop`` may be called at any time from the same loop."""

    def __init__(self, core: Core, text: str, masked: Collection[str] = (), *, again: str = "") -> None:
        """``again`` is the id of a question that is in the history already and is answered once more."""
        self._core = core
        self._again = again
        self._text = text
        self._masked = frozenset(masked)
        self._round: Round | None = None
        self._tool: asyncio.Future[Any] | None = None
        self._stopped = False
        self._told = False
        self._listed = ""
        self._asking: Asking | None = None
        self._hurried = False
        self.settling = False
        self._log = TurnLog(core)
        self._said = AnswerSoFar(core, self._emit)
        self._changes: list[MemoryChanged] = []
        self._record: RecallRecord | None = None
        self._metrics: Metrics | None = None
        self._output_tokens = 0
        self._first_token_s: float | None = None
        self._unseen: NotSeen | None = None
        self._tools_once = core.tools_off == "once"
        self.events: asyncio.Queue[Event | None] = asyncio.Queue()

    # -- from outside ---------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the turn as soon as possible; what was said so far stays, marked."""
        self._stopped = True
        if self._round is not None:
            self._round.stop()
        if self._tool is not None:
            self._tool.cancel()
        if self._asking is not None:
            self._asking.stop()
        self._core.room.stop()

    @property
    def speed(self) -> float | None:
        """Tokens a second of the last reply, when the server told."""
        return self._metrics.tokens_per_second if self._metrics is not None else None

    def hurry(self) -> None:
        """The user has something new to say: give up what follows the answer, if anything does."""
        self._hurried = True
        if self._asking is not None:
            self._asking.stop()

    def _was_stopped(self) -> bool:
        return self._stopped

    async def run(self) -> None:
        """Run the turn; its events are in ``events``, ended by ``None``."""
        self._core.collection.begin()
        try:
            await self._run()
        except StoreError as error:
            self._finish_with("failed", error=str(error), kind="store_error")
        except asyncio.CancelledError:
            await asyncio.shield(self._settle_stopped())
            raise
        except Exception as error:
            log.exception("turn failed")
            await self._log.close(_NO_ANSWER)
            self._finish_with("failed", error=f"The turn failed inside the app: {error}", kind="internal_error")
        finally:
            self._core.sent()
            self._core.working_save()
            self.events.put_nowait(None)

    # -- the turn -------------------------------------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        if isinstance(event, MemoryChanged):
            self._changes.append(event)
        self.events.put_nowait(event)

    async def _run(self) -> None:
        core = self._core
        self._emit(PhaseChanged("saving"))
        if self._again:
            self._message_id = self._again
            await self._answer(self._text)
            return
        asked = asked_among(self._text)
        row = await core.keep_said(self._text, goal=not asked.all)
        self._message_id = row.id
        self._emit(UserSaved(row.id, row.content, redacted=row.content != self._text))
        if row.content != self._text:
            self._emit(
                Notice(
                    "warning",
                    "Your message had something like a password or key in it. It was kept out of the history on disk; "
                    "the model sees it until the app is closed.",
                )
            )
        if asked.all:
            await self._tell_everything(asked.language)
            return
        if asked.language:
            await self._tell_beside(asked.language)
        await self._answer(row.content)

    async def _answer(self, stored: str) -> None:
        """Feed and ask the model; ``stored`` are the user's words as they are on disk."""
        core = self._core
        trouble: ModelError | None = None
        try:
            await core.connected(self._emit)
        except ModelError as error:
            trouble = error
        await core.choose_embedder(self._emit)
        self._emit(PhaseChanged("recalling"))
        pasted, moves = await core.keep_paste(stored, self._message_id)
        if trouble is None:
            core.prompt.drop_thinking()
            await core.room.before_turn(self._text, self._emit)
        fed = await feed(core, self._text, self._masked, query=stored, shown=pasted)
        self._record = fed.record
        self._emit(Recalled(fed.record))
        moves += await core.bring_recalled(fed.record)
        for event in (*moves, *fed.events):
            self._emit(event)
        if trouble is not None:
            # The model never saw this message: it enters the log with a stand-in answer so that roles alternate.
            await self._log.say(fed.entry)
            await self._log.close(_NO_ANSWER)
            await self._end(Outcome(end="failed", error=trouble))
            return

        try:
            entry = await core.room.fit(fed.entry, self._text, self._emit)
            whole = pasted if str(entry.message["content"]).endswith(self._text) else ()
            entry = LogEntry(entry.message, (*entry.refs, *whole, f"message:{self._message_id}"))
        except ModelError as error:
            await self._end(Outcome(end="failed", error=error))
            return
        self._record = with_request(core, fed.record, fed.block)
        core.asked_at = (self._message_id, core.prompt.epoch, len(core.prompt.log))
        # The user's words are on disk. That they were sent is written when they were: the model reads meanwhile.
        self._log.add(entry)
        core.after_sending(self._log.write)
        outcome = await self._converse()
        await self._end(outcome)

    async def _tell_everything(self, language: str) -> None:
        """Answer "what do you remember about me?" from the store: complete, at once, and without a server too."""
        core = self._core
        told = await core.db.run(tell_everything, core.stores, language)
        self._told = True
        self._said.texts.append(told)
        self._emit(TextDelta(told))
        core.prompt.drop_thinking()
        await self._log.say(LogEntry({"role": "user", "content": self._text}))
        options = core.connection.options
        window = options.num_ctx if options is not None else core.settings.num_ctx
        short = told if core.count(told) <= 0.15 * window else "(The user was shown everything that is remembered.)"
        await self._log.close(short)
        await self._end(Outcome(end="done"))

    async def _tell_beside(self, language: str) -> None:
        """The message asks that beside something else: the list comes from the store first, then the model answers the
        rest of it."""
        self._listed = await self._core.db.run(tell_everything, self._core.stores, language)
        self._said.texts.append(self._listed)
        self._emit(TextDelta(f"{self._listed}\n\n"))
        self._core.tell_model(LISTED)

    async def _converse(self) -> Outcome:
        core = self._core
        guard = LoopGuard()
        recovery = Recovery(core)
        retried = False
        rounds = 0
        context = TurnContext(self._text, self._message_id, core.session_id, masked=self._masked)
        while True:
            try:
                await core.room.within_turn(self._emit)
            except ModelError as error:
                return Outcome(end="failed", error=error)
            outcome = await self._request(recovery)
            if outcome.end in ("stopped", "failed", "incomplete"):
                again, notices = await recovery.again(outcome) if outcome.end == "failed" else (False, [])
                for notice in notices:
                    self._emit(notice)
                if again:
                    continue
                return recovery.final(outcome)
            for notice in await recovery.worked():
                self._emit(notice)
            if outcome.calls:
                rounds += 1
                over = rounds > core.settings.max_tool_rounds or guard.stuck
                await self._call_tools(outcome, guard, context, rounds >= core.settings.max_tool_rounds)
                if self._was_stopped():
                    return Outcome(end="stopped")
                if over:  # the round before was the last one, and said so
                    self._emit(
                        Notice("warning", "The model kept calling tools without answering, so the turn was ended.")
                    )
                    return Outcome(end="done")
                continue
            unknown = is_bare_unknown_call(outcome.raw, core.prompt.tools) if core.prompt.tools else None
            if not retried and (outcome.empty or unknown) and outcome.end == "done":
                retried = True
                await self._nudge(outcome, unknown)
                continue
            if unknown and outcome.end == "done":
                outcome.text = ""
            self._said.texts.append(outcome.text)
            self._said.reply_over()
            if outcome.text.strip() or outcome.thinking:
                message: JSON = {"role": "assistant", "content": outcome.text or _NO_ANSWER}
                await self._log.say(LogEntry(message))
            else:
                await self._log.close(_NO_ANSWER)
            return outcome

    async def _request(self, recovery: Recovery) -> Outcome:
        core = self._core
        before = "\n\n".join(text for text in self._said.texts if text)
        self._round = Round(core.client, self._emit, self._said.streams, before, core.sent)
        if self._was_stopped():
            self._round.stop()
        request = Request(
            core.model,
            core.prompt.messages(),
            core.prompt.tools,
            core.options,
            core.think,
            sum(core.prompt.tokens().values()),
            known_tokens(core.connection.sent, core.model, core.prompt),
            core.connection.sent.draining,
        )
        request = recovery.changed(request)
        leaving = asyncio.get_running_loop().call_later(_LEFT_S, core.sent)
        try:
            outcome = await self._round.run(request)
        finally:
            leaving.cancel()
            core.sent()
        self._round = None
        after(core.connection.sent, request, outcome)
        if outcome.thinking:
            self._said.thinking.append(outcome.thinking)
        if outcome.metrics is not None:
            self._metrics = outcome.metrics
            self._output_tokens += outcome.metrics.output_tokens or 0
            new = sum(core.prompt.message_tokens(e) for e in core.prompt.log[core.room.counted_entries :])
            if (unseen := await unseen_by_server(core, request, outcome.metrics, new)) is not None:
                self._unseen = replace(unseen, message_id=self._message_id)
            else:
                core.observe(request.prompt_tokens, outcome.metrics)
            self._emit(core.usage(outcome.metrics, self._record))
        if self._first_token_s is None:
            self._first_token_s = outcome.first_token_s
        core.tell_embedding(self._emit)
        for notice in (core.connection.swapped(), core.connection.unthinking()):
            if notice is not None:
                self._emit(notice)
        if outcome.repeated:
            self._emit(Notice("warning", "The model repeated itself without end, so its answer was stopped."))
        return outcome

    async def _nudge(self, outcome: Outcome, unknown: str | None) -> None:
        core = self._core
        if unknown:
            nudge = _UNKNOWN_NUDGE.format(name=unknown[:60])
            said = outcome.raw.strip() or _NO_ANSWER
        else:
            names = ", ".join(tool["function"]["name"] for tool in core.prompt.tools)
            nudge = _EMPTY_NUDGE_TOOLS.format(names=names) if names else _EMPTY_NUDGE
            said = _NO_ANSWER
        await self._log.say(LogEntry({"role": "assistant", "content": said}))
        await self._log.say(LogEntry({"role": "user", "content": nudge}))

    # -- tools ----------------------------------------------------------------------------------------------------

    async def _call_tools(self, outcome: Outcome, guard: LoopGuard, context: TurnContext, last: bool) -> None:
        message: JSON = {"role": "assistant"}
        if outcome.text.strip():
            message["content"] = outcome.text
            self._said.texts.append(outcome.text)
        if outcome.thinking:
            message["thinking"] = outcome.thinking
        self._said.reply_over()
        message["tool_calls"] = [{"function": {"name": c.name, "arguments": c.arguments}} for c in outcome.calls]
        await self._log.say(LogEntry(message))
        for number, call in enumerate(outcome.calls):
            call_id = f"{self._message_id}-{len(self._said.tools) + 1}"
            await self._call_tool(call, call_id, guard, context, number == len(outcome.calls) - 1, last)
        await self._said.flush(force=True)

    async def _call_tool(
        self, call: ToolCall, call_id: str, guard: LoopGuard, context: TurnContext, final: bool, last: bool
    ) -> None:
        core = self._core
        self._emit(PhaseChanged("tool", call.name))
        self._emit(ToolStarted(call_id, call.name, call.arguments, call.rescued))
        times = guard.note(call)
        if self._was_stopped():
            result = ToolResult(False, "Cancelled by the user before it ran.", "cancelled")
        elif times > 1:
            result = ToolResult(False, _DONE_ALREADY, "repeated")
        else:
            self._tool = asyncio.ensure_future(core.toolbox.run(call, context))
            try:
                call, result = await self._tool
            except asyncio.CancelledError:
                if not self._was_stopped():
                    raise
                result = ToolResult(False, "Cancelled by the user.", "cancelled")
            finally:
                self._tool = None
        for event in result.events:
            self._emit(event)
        if result.wrote:
            await core.facts_changed()
        refs, events = await core.remember_result(call, result)
        refs += tuple(f"fact:{e.id}" for e in result.events if isinstance(e, MemoryChanged) and e.zone == "fact")
        for event in events:
            self._emit(event)
        hint = _ANSWER_NOW if final and (last or guard.stuck) else ""
        text = core.room.for_result((result.text or "(no output)") + hint)
        if result.found is not None:
            seen, moves = await after_recall(core, result.found, text)
            refs += seen
            for event in moves:
                self._emit(event)
        await self._log.say(LogEntry({"role": "tool", "tool_name": call.name, "content": text}, refs))
        self._said.tools.append(
            {
                "call_id": call_id,
                "name": call.name,
                "arguments": call.arguments,
                "result": result.text,
                "ok": result.ok,
                "rescued": call.rescued,
                "summary": result.summary,
                "wrote": result.wrote,
            }
        )
        self._emit(ToolFinished(call_id, call.name, result.ok, result.text, result.summary))

    # -- the end --------------------------------------------------------------------------------------------------

    async def _settle_stopped(self) -> None:
        await self._end(Outcome(end="stopped", text=self._said.live))

    async def _end(self, outcome: Outcome) -> None:
        """Store the answer as it is, check promises, and say how the turn ended."""
        core = self._core
        await self._said.streamed()
        if outcome.end in ("stopped", "failed", "incomplete"):
            if outcome.text.strip():
                self._said.texts.append(outcome.text)
            said = outcome.text.strip()
            stand_in = f"{said} {STOPPED}".strip() if outcome.end == "stopped" else (said or _NO_ANSWER)
            await self._log.close(stand_in)
        else:
            await self._log.close(_NO_ANSWER)
        self._said.reply_over()
        if isinstance(outcome.error, ContextExceeded):
            sent = sum(core.prompt.tokens().values())
            unseen = not_seen(core, sent, 0, core.room.size, refused=True)
            self._unseen = replace(unseen, message_id=self._message_id)
        status = self._status(outcome)
        content, thinking = self._said.read()
        kept = {"answered": "complete", "cut_off": "cut_off", "failed": "failed"}.get(status, "partial")
        meta: JSON = {
            "tools": self._said.tools,
            "memory": [e.as_dict() for e in self._changes],
            "tokens_per_second": self._metrics.tokens_per_second if self._metrics else None,
        }
        if self._unseen is not None:
            meta["unseen"] = self._unseen.as_dict()
        await self._said.finish(kept, meta)
        if self._said.id is not None and self._record is not None:
            await core.db.run(core.history.save_recall, self._said.id, self._record)
        if self._unseen is not None:
            self._emit(self._unseen)
        if status in ("answered", "empty", "cut_off") and not self._told:
            await self._check_promises(content.removeprefix(self._listed))
        error = outcome.error
        if status == "empty":
            reason = "The model gave no answer" + (", only thinking" if thinking else "")
            hint = "Ask again, or try another model with ctrl+o."
            if core.prompt.tools and not self._said.tools:
                # Small models with tools to choose from tend to say nothing at all.
                hint = "Ask again, send it without tools (/tools), or try another model with ctrl+o."
            if last := next((tool for tool in reversed(self._said.tools) if tool["ok"]), None):
                # What the tool found is then the only thing there is to read.
                hint = f"{last['name']} said: “{_one_line(last['result'])}”. {hint}"
            self._emit(Notice("error", f"{reason}. {hint}"))
        self._finish_with(
            status,
            error=str(error) if error else "",
            kind=error.kind if error else ("empty_answer" if status == "empty" else ""),
            exit_code=error.exit_code if error else (5 if status in ("empty", "failed", "incomplete") else 0),
            text=content,
        )

    async def _check_promises(self, answer: str) -> None:
        """Ask once more for what should have been saved; what is not proved then is offered to the user.

        The answer is complete and stored by now.
        """
        core = self._core
        self.settling = True
        wrote = any(tool["wrote"] for tool in self._said.tools)
        missing = await promise_check.missing_after(core, self._message_id, self._text, answer, wrote=wrote)
        if missing is None:
            return
        wanted = core.settings.check_saves and promise_check.worth_asking(self._text)
        if wanted and not self._hurried and not self._was_stopped():
            self._emit(PhaseChanged("checking"))
            self._asking = Asking(core)
            try:
                settled = await promise_check.settle(core, self._asking, missing, self._text, answer)
                missing = settled.missing
                for change in settled.changes:
                    self._emit(change)
                if settled.changes and self._said.id is not None:
                    changes = [change.as_dict() for change in self._changes]
                    await core.db.run(core.history.set_meta, self._said.id, memory=changes)
            except (StoreError, MemoryFileError) as error:
                self._emit(Notice("error", str(error), key="store"))
            finally:
                self._asking = None
        if missing is not None:
            self._emit(missing)

    def _status(self, outcome: Outcome) -> Status:
        if outcome.end == "stopped":
            return "stopped"
        if outcome.end == "failed":
            return "failed"
        if outcome.end == "incomplete":
            return "incomplete"
        if outcome.end == "length":
            return "cut_off"
        return "answered" if any(text.strip() for text in self._said.texts[bool(self._listed) :]) else "empty"

    def _finish_with(
        self, status: Status, *, error: str = "", kind: str = "", exit_code: int = 5, text: str = ""
    ) -> None:
        metrics = self._metrics
        if self._tools_once and self._core.tools_off == "once":
            self._core.tools_off = ""
        self._emit(PhaseChanged("idle"))
        self._emit(
            TurnFinished(
                status,
                self._said.id,
                text,
                error,
                kind,
                exit_code,
                len(self._said.tools),
                self._output_tokens or None,
                metrics.tokens_per_second if metrics else None,
                metrics.prompt_tokens if metrics else None,
                metrics.cached_tokens if metrics else None,
                self._first_token_s,
            )
        )


def _one_line(text: str, most: int = 240) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"
