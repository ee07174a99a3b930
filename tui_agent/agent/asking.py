"""One more question to the model beside the conversation: never in the log, and given up at any moment.

On the same prefix (the chat's messages and tools, then the question) the server reads only the question. The sampling
is cold, since such an answer is read by a program; sampling options never make a server load the model again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tui_agent.agent.prompt import LogEntry
from tui_agent.llm.errors import ModelError
from tui_agent.llm.thinking import ThinkingSplitter
from tui_agent.llm.toolcalls import rescue
from tui_agent.llm.types import Metrics, ModelOptions, ToolCall
from tui_agent.memory.extraction_parse import json_values

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

JSON = dict[str, Any]

_MOST_THINKING = 4_000
_MOST_TEXT = 6_000
_AFTER_THE_END = 12
_MOST_BLANK = 400
_JSON_ONLY = "Answer with the JSON list only; [] when there is nothing."


class Answering(Protocol):
    """Who is asked: a client, a model, and what is sent with every question. ``Core`` is one."""

    @property
    def client(self) -> Any: ...

    @property
    def model(self) -> str: ...

    @property
    def options(self) -> ModelOptions: ...

    @property
    def think(self) -> bool | str | None: ...


@dataclass(slots=True)
class Reply:
    """What came back. ``text`` is without thinking; ``calls`` are tool calls, native or written as text."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    end: Literal["done", "stopped", "failed"] = "done"
    error: ModelError | None = None
    metrics: Metrics | None = None


class Asking:
    """A single question. ``run`` is called once; ``stop`` at any time from the same loop."""

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._task: asyncio.Task[Reply] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Give the question up: the connection is closed at once, and the server is free."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def _was_stopped(self) -> bool:
        return self._stopped

    async def run(
        self,
        messages: Sequence[JSON],
        *,
        tools: Sequence[JSON] = (),
        format: Any = None,
        enough: Callable[[str], bool] | None = None,
        most: int = 0,
    ) -> Reply:
        """Send ``messages`` and read the reply. Trouble of the model is in the reply.

        ``enough`` looks at the text so far and says whether the rest is not needed. ``most`` tokens are asked for; as
        many as for any answer when it is 0.
        """
        if self._was_stopped():
            return Reply(end="stopped")
        self._task = asyncio.create_task(self._read(messages, tools, format, enough or _complete, most))
        try:
            return await self._task
        except asyncio.CancelledError:
            if not self._was_stopped():
                self._task.cancel()
                raise
            return Reply(end="stopped")
        except ModelError as error:
            return Reply(end="failed", error=error)

    async def _read(
        self, messages: Sequence[JSON], tools: Sequence[JSON], format: Any, enough: Callable[[str], bool], most: int
    ) -> Reply:
        who = self._answering
        options = replace(who.options, extra={**who.options.extra, "temperature": 0.0})
        if most:
            options = replace(options, num_predict=most)
        splitter = ThinkingSplitter()
        calls: list[ToolCall] = []
        metrics: Metrics | None = None
        thought = blank = 0
        stream = who.client.chat(who.model, messages, options=options, tools=tools, think=who.think, format=format)
        async with contextlib.aclosing(stream):
            async for chunk in stream:
                thought += len(chunk.thinking)
                splitter.feed(chunk.content)
                calls += chunk.tool_calls
                metrics = chunk.metrics or metrics
                text = splitter.content
                blank = 0 if chunk.content.strip() else blank + len(chunk.content)
                if blank > _MOST_BLANK:  # models asked for JSON alone may write line ends for ever
                    break
                if thought + len(splitter.thinking) > _MOST_THINKING or len(text) > _MOST_TEXT or enough(text):
                    break
        splitter.finish()
        text = splitter.content
        if tools and not calls:
            found = rescue(text, list(tools))
            if found.calls:
                return Reply(found.text, found.calls, metrics=metrics)
        return Reply(text, tuple(calls), metrics=metrics)


async def ask_for_json(ask: Callable[[Sequence[JSON]], Awaitable[Reply]], messages: Sequence[JSON]) -> Reply:
    """What ``ask`` brings for ``messages``, asked once more, in other words, when there is no JSON in it at all."""
    reply = await ask(messages)
    if reply.end != "done" or reply.calls or any(True for _ in json_values(reply.text)):
        return reply
    last = messages[-1]
    again = await ask([*messages[:-1], {**last, "content": f"{last['content']}\n\n{_JSON_ONLY}"}])
    return again if again.end != "failed" else reply


def room_for(core: Core, text: str) -> bool:
    """Whether a question of this text fits behind the conversation, with the longest reply behind it."""
    return core.room.fits([LogEntry({"role": "user", "content": text})])


def _complete(text: str) -> bool:
    """Whether a JSON list is closed and the model goes on talking behind it."""
    start, end = text.find("["), text.rfind("]")
    if start < 0 or end < start or len(text) - end <= _AFTER_THE_END:
        return False
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(text[start : end + 1]), list)
    return False
