"""One request to the model, streamed: what was said, thought and called, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tui_agent.agent.events import Event, TextDelta, TextReplaced, ThinkingDelta
from tui_agent.agent.waiting import Waiting
from tui_agent.llm.errors import ModelError, StreamBroken, StreamIncomplete
from tui_agent.llm.thinking import ThinkingSplitter
from tui_agent.llm.toolcalls import HoldBack
from tui_agent.llm.types import ChatChunk, Metrics, ModelOptions, RunningModel, ToolCall

JSON = dict[str, Any]
End = Literal["done", "length", "stopped", "incomplete", "failed"]
_REPEAT_WINDOW = 160
_REPEATS = 12
_LEAST_STUCK = 400
_SAMPLE = 32


class ChatClient(Protocol):
    """The part of ``ModelClient`` a round needs."""

    def chat(
        self,
        model: str,
        messages: Sequence[JSON],
        *,
        options: ModelOptions,
        tools: Sequence[JSON] = (),
        think: bool | str | None = None,
        format: Any = None,
        sent: Callable[[], None] | None = None,
    ) -> AsyncGenerator[ChatChunk, None]: ...

    async def ps(self) -> list[RunningModel]: ...


@dataclass(frozen=True, slots=True)
class Request:
    """Everything of one ``/api/chat`` call. ``prompt_tokens`` is our estimate, and ``known_tokens`` how many of them
    the server has surely read before, for the phase line. ``draining`` says that it may still be busy with a request
    that was stopped."""

    model: str
    messages: list[JSON]
    tools: list[JSON]
    options: ModelOptions
    think: bool | str | None
    prompt_tokens: int
    known_tokens: int = 0
    draining: bool = False


@dataclass(slots=True)
class Outcome:
    """How a round ended. ``text`` is what the user sees of it, ``raw`` what the model wrote."""

    text: str = ""
    raw: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    end: End = "done"
    error: ModelError | None = None
    metrics: Metrics | None = None
    first_token_s: float | None = None
    repeated: bool = False

    @property
    def empty(self) -> bool:
        """Neither text nor calls came."""
        return not self.text.strip() and not self.calls


class Round:
    """Streams one request. ``run`` never raises for model trouble; it is in the outcome.

    Args:
        client: the model client.
        emit: receives the round's events, in order, on the event loop.
        on_text: called with (visible text, thinking) so far, so that a partial answer can be kept on disk.
        before: visible text of the turn's earlier rounds, needed when shown text must be replaced.
        sent: called when the request has left, maybe more than once.
    """

    def __init__(
        self,
        client: ChatClient,
        emit: Callable[[Event], None],
        on_text: Callable[[str, str], None],
        before: str = "",
        sent: Callable[[], None] | None = None,
    ) -> None:
        self._client = client
        self._sent = sent
        self._emit = emit
        self._on_text = on_text
        self._before = before
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Cancel the stream; the socket closes at once and the text so far stays."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def _was_stopped(self) -> bool:
        return self._stopped

    async def run(self, request: Request) -> Outcome:
        """Stream ``request`` to its end, its failure or its stop."""
        outcome = Outcome()
        if self._was_stopped():
            outcome.end = "stopped"
            return outcome
        # The stream lives in a task of its own: cancelling it is the one way to close the socket from outside.
        self._task = asyncio.create_task(self._stream(request, outcome))
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._was_stopped():
                self._task.cancel()
                raise
            outcome.end = "stopped"
        except StreamIncomplete as error:
            outcome.end, outcome.error = "incomplete", error
        except StreamBroken as error:
            outcome.end, outcome.error = ("incomplete" if outcome.raw else "failed"), error
        except ModelError as error:
            outcome.end, outcome.error = "failed", error
        return outcome

    async def _stream(self, request: Request, outcome: Outcome) -> None:
        answer = _Answer(request.tools, self._emit, self._before)
        native: list[ToolCall] = []
        started = time.monotonic()
        waiting = Waiting(self._client, self._emit, request.model, request.prompt_tokens, request.known_tokens)
        finished = False
        try:
            await waiting.begin(draining=request.draining)
            stream = self._client.chat(
                request.model,
                request.messages,
                options=request.options,
                tools=request.tools,
                think=request.think,
                sent=self._sent,
            )
            async with contextlib.aclosing(stream):
                async for chunk in stream:
                    if chunk.content or chunk.thinking or chunk.tool_calls:
                        if outcome.first_token_s is None:
                            outcome.first_token_s = time.monotonic() - started
                        waiting.heard()
                    if chunk.thinking:
                        answer.think(chunk.thinking)
                    if chunk.content:
                        outcome.raw += chunk.content
                        answer.feed(chunk.content)
                        self._on_text(answer.shown, answer.thinking)
                        if _is_stuck(outcome.raw):
                            outcome.repeated = True
                            break
                    native.extend(chunk.tool_calls)
                    if chunk.metrics is not None:
                        outcome.metrics = chunk.metrics
                    if chunk.done:
                        finished = True
                        outcome.end = "length" if chunk.done_reason == "length" else "done"
            if not finished and not outcome.repeated:
                raise StreamIncomplete("The model stopped in the middle of its answer without finishing it.")
        finally:
            waiting.end()
            # Calls count only from a stream that was finished: a cut one may have lost half of an argument.
            rescued = answer.close(keep_calls=finished and not native)
            if finished:
                outcome.calls = tuple(native) or rescued
            outcome.text, outcome.thinking = answer.shown, answer.thinking
            self._on_text(outcome.text, outcome.thinking)


class _Answer:
    """What is visible of a reply while it streams, and what was thought."""

    def __init__(self, tools: Sequence[JSON], emit: Callable[[Event], None], before: str) -> None:
        self._tools = list(tools)
        self._emit = emit
        self._before = before
        self._splitter = ThinkingSplitter()
        self._hold = HoldBack(self._tools)
        self._fed = 0
        self._redrawn = False
        self._native_thinking = ""
        self.shown = ""

    @property
    def thinking(self) -> str:
        """Everything thought so far, by the server's field and by tags in the text."""
        return self._native_thinking + self._splitter.thinking

    def think(self, text: str) -> None:
        """Thinking the server recognised itself."""
        self._native_thinking += text
        self._emit(ThinkingDelta(text))

    def feed(self, text: str) -> None:
        """The next piece of the reply's content."""
        before = len(self._splitter.thinking)
        self._splitter.feed(text)
        self._show(before)

    def close(self, *, keep_calls: bool) -> tuple[ToolCall, ...]:
        """Settle what was held back; returns the calls that stood in the text.

        Without ``keep_calls`` a call in the text stays hidden and is not run.
        """
        before = len(self._splitter.thinking)
        self._splitter.finish()
        self._show(before)
        rescued = self._hold.finish()
        text = rescued.text
        if text.startswith(self.shown):
            if rest := text[len(self.shown) :]:
                self._emit(TextDelta(rest))
        else:
            self._emit(TextReplaced(_joined(self._before, text)))
        self.shown = text
        return rescued.calls if keep_calls else ()

    def _show(self, thinking_before: int) -> None:
        splitter = self._splitter
        if new := splitter.thinking[thinking_before:]:
            self._emit(ThinkingDelta(new))
        if splitter.reclassified and not self._redrawn:
            # A closing tag without an opener: all that was shown of this reply was thinking.
            self._redrawn = True
            self._hold = HoldBack(self._tools)
            self._fed = 0
            if self.shown:
                self.shown = ""
                self._emit(TextReplaced(self._before))
        content = splitter.content
        if visible := self._hold.feed(content[self._fed :]):
            self.shown += visible
            self._emit(TextDelta(visible))
        self._fed = len(content)


def _joined(before: str, text: str) -> str:
    return "\n\n".join(part for part in (before.rstrip(), text) if part)


def _is_stuck(text: str) -> bool:
    """Whether the end of ``text`` is one short piece repeated over and over (a model caught in a loop)."""
    tail = text[-_REPEAT_WINDOW * _REPEATS :]
    if len(tail) < _LEAST_STUCK:
        return False
    # The nearest earlier place that reads like the end gives the length of the piece.
    end = tail[-_SAMPLE:]
    before = tail.rfind(end, 0, len(tail) - 1)
    size = len(tail) - _SAMPLE - before
    if before < 0 or size > _REPEAT_WINDOW:
        return False
    piece = tail[-size:]
    return bool(piece.strip("-=_*#. \t|")) and tail.endswith(piece * max(_REPEATS, _LEAST_STUCK // size))
