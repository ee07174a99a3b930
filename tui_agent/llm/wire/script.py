"""Scripts: what a scripted model says and does for one request, step by step.

A script is ``Script(step, step, …)``; a plain string is a content chunk. Unless the last step ends the answer itself
(:class:`Done`, :class:`Stop`, :class:`Fail`, :class:`Reply`, :class:`Cut`), a :class:`Done` is added.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .backend import JSON

AUTO_ID = "auto"
_ID_ALPHABET = string.ascii_lowercase + string.digits


def call(name: str, arguments: JSON | None = None, *, id: str = AUTO_ID, index: int = 0) -> JSON:
    """One tool call. The id is ``call_`` and eight random characters; give another, or ``""`` for none."""
    if id == AUTO_ID:
        id = "call_" + "".join(random.choices(_ID_ALPHABET, k=8))
    value: JSON = {"function": {"index": index, "name": name, "arguments": arguments or {}}}
    return {"id": id, **value} if id else value


@dataclass(frozen=True, slots=True)
class Say:
    """A content chunk. ``pieces`` > 1 cuts its line into that many HTTP chunks, through characters where it must."""

    text: str
    delay: float = 0.0
    pieces: int = 1


@dataclass(frozen=True, slots=True)
class Think:
    """A thinking chunk (its ``content`` is empty)."""

    text: str
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Calls:
    """One chunk with one or more tool calls, made with :func:`call`, and maybe content beside them."""

    calls: tuple[JSON, ...]
    content: str = ""
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Joined:
    """Several chunks whose lines arrive in one HTTP chunk."""

    steps: tuple[str | Say | Think | Calls, ...]
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are, one HTTP chunk each: blank lines, broken JSON, half a line."""

    data: tuple[bytes, ...]
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing happens for ``seconds``."""

    seconds: float


class Gate:
    """A step at which the answer waits until the test opens it, from any thread; never opened = until the client goes.

    ``await gate.reached()`` returns when an answer stands at the gate.
    """

    def __init__(self) -> None:
        self.opened = False
        self.waiting = 0
        self._events: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def open(self) -> None:
        """Let the answer go on, and all later ones pass."""
        self.opened = True
        self._wake()

    async def wait(self) -> None:
        """Used by the server: wait until opened."""
        self.waiting += 1
        self._wake()
        try:
            await self._until(lambda: self.opened)
        finally:
            self.waiting -= 1

    async def reached(self, timeout: float = 10.0) -> None:
        """Wait until an answer stands here; ``asyncio.TimeoutError`` when none comes."""
        await asyncio.wait_for(self._until(lambda: self.waiting > 0), timeout)

    async def _until(self, condition: Any) -> None:
        entry = (asyncio.get_running_loop(), asyncio.Event())
        self._events.append(entry)
        try:
            while not condition():
                await entry[1].wait()
                entry[1].clear()
        finally:
            self._events.remove(entry)

    def _wake(self) -> None:
        for loop, event in list(self._events):
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits there any more
                loop.call_soon_threadsafe(event.set)


@dataclass(frozen=True, slots=True)
class Fail:
    """An error: a status answer before the first chunk, an error line after it."""

    status: int
    error: Any
    extra: JSON = field(default_factory=dict)
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete HTTP answer that is not the API's (a proxy's page). Must be the first step."""

    status: int
    content: bytes = b""
    content_type: str = ""
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Cut:
    """Drop the connection: TCP reset, or a plain close in the middle of the body."""

    reset: bool = True
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Stop:
    """End the stream cleanly but without the final object."""


@dataclass(frozen=True, slots=True)
class Done:
    """The final object. ``calls`` and ``content`` ride on it; counts left ``None`` are computed."""

    reason: str = "stop"
    calls: tuple[JSON, ...] = ()
    content: str = ""
    eval_count: int | None = None
    prompt_eval_count: int | None = None
    delay: float = 0.0


Step = Say | Think | Calls | Joined | Raw | Wait | Gate | Fail | Reply | Cut | Stop | Done
_ENDINGS = (Done, Stop, Fail, Reply, Cut)


class Script:
    """The steps of one answer.

    Args:
        steps: what happens, in order. Strings are content chunks.
        load_delay: seconds the load takes, when this request causes one. A disconnect meanwhile aborts the load.
        load_error: the load fails with this instead.
        prompt_delay: seconds before the first step, as reading the prompt takes.
    """

    def __init__(
        self,
        *steps: str | Step,
        load_delay: float = 0.0,
        load_error: Fail | None = None,
        prompt_delay: float = 0.0,
    ) -> None:
        plain: list[Step] = [Say(step) if isinstance(step, str) else step for step in steps]
        if not plain or not isinstance(plain[-1], _ENDINGS):
            plain.append(Done())
        self.steps: Sequence[Step] = tuple(plain)
        self.load_delay = load_delay
        self.load_error = load_error
        self.prompt_delay = prompt_delay

    def __repr__(self) -> str:
        return f"Script({', '.join(map(repr, self.steps))})"


def words(text: str, *, delay: float = 0.0, size: int = 1) -> Iterator[Say]:
    """The text as content chunks of ``size`` words each, white space kept, as a model streams it."""
    found = re.findall(r"\S+\s*|\s+", text)
    for start in range(0, len(found), size):
        yield Say("".join(found[start : start + size]), delay)


def answer(text: str, *, delay: float = 0.0, size: int = 1, thinking: str = "") -> Script:
    """A plain streamed answer, with a thinking part before it when given."""
    before: list[Step] = [Think(piece.text, delay) for piece in words(thinking, size=size)]
    return Script(*before, *words(text, delay=delay, size=size))


def calling(*calls: JSON, text: str = "") -> Script:
    """An answer that calls tools, all in one chunk before the final object, after some text if given."""
    return Script(*words(text), Calls(tuple(calls)))
