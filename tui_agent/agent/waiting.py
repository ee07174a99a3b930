"""What the silence of a model server is, said while it lasts: connecting, draining, loading, reading, or a stall.

The server sends nothing at all before its first token, not even headers, so a request alone cannot tell a model that
is loaded from a server that hangs. Its list of loaded models can.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Protocol

from tui_agent.agent.events import Event, PhaseChanged
from tui_agent.llm.errors import ModelError
from tui_agent.llm.types import RunningModel

STALL_S = 20.0
POLL_S = 1.0
FIRST_LOOK_S = 0.05
PS_TIMEOUT_S = 2.0
# A server that reads a prompt looks up only between pieces of it; the built-in engine needs about two seconds.
DRAIN_S = 2.0


class Server(Protocol):
    """The part of ``ModelClient`` this asks."""

    async def ps(self) -> list[RunningModel]: ...


class Waiting:
    """Says the phase of one request, from :meth:`begin` to :meth:`end`.

    Args:
        client: asked every second which models are loaded, until the first token.
        emit: receives ``PhaseChanged``.
        prompt_tokens: our estimate of the whole prompt; ``known_tokens`` of it were read by the server before.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        client: Server,
        emit: Callable[[Event], None],
        model: str,
        prompt_tokens: int,
        known_tokens: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._emit = emit
        self._model = model.removesuffix(":latest")
        self._prompt_tokens = prompt_tokens
        self._known_tokens = known_tokens
        self._clock = clock
        self._heard_at = clock()
        self._begun = False
        self._stalled = False
        self._last: PhaseChanged | None = None
        self._task: asyncio.Task[None] | None = None
        self._over = False

    async def begin(self, *, draining: bool = False) -> None:
        """Start watching. Returns when this client's own previous request is over, so that it can be sent."""
        free: Any = getattr(self._client, "free", None)
        if free is not None and getattr(self._client, "busy", False):
            self._say(PhaseChanged("draining", "waiting for the previous request to end"))
            await free()
        self._heard_at = self._clock()
        if draining:
            self._say(PhaseChanged("draining", "waiting for the previous prompt to drain"))
        else:
            self._say(PhaseChanged("connecting"))
        self._task = asyncio.create_task(self._watch(DRAIN_S if draining else 0.0))

    def heard(self) -> None:
        """Data came."""
        self._heard_at = self._clock()
        if not self._begun or self._stalled:
            self._begun, self._stalled = True, False
            self._say(PhaseChanged("generating"))

    def end(self) -> None:
        """The request is over."""
        self._over = True  # a cancellation that meets the end of a look gets lost in wait_for before Python 3.12
        if self._task is not None:
            self._task.cancel()

    def _is_over(self) -> bool:
        return self._over

    def _say(self, phase: PhaseChanged) -> None:
        if phase != self._last:
            self._last = phase
            self._emit(phase)

    async def _watch(self, drain_s: float) -> None:
        # The request itself goes first, and a server that answers at once need not be asked at all.
        await asyncio.sleep(drain_s or FIRST_LOOK_S)
        while not self._is_over():
            if not self._begun:
                await self._look()
            if self._is_over():
                return
            silent = self._clock() - self._heard_at
            # Loading and reading have ages of their own and may take minutes; only a server that says neither, or
            # that fell silent in the middle of an answer, is called stalled.
            may_be_stuck = self._begun or (self._last is not None and self._last.phase == "connecting")
            if may_be_stuck and silent >= STALL_S and not self._stalled:
                self._stalled = True
                self._say(PhaseChanged("generating" if self._begun else "connecting", "", silent))
            await asyncio.sleep(POLL_S)

    async def _look(self) -> None:
        running: list[RunningModel] | None = None
        with contextlib.suppress(ModelError, asyncio.TimeoutError):
            running = await asyncio.wait_for(self._client.ps(), PS_TIMEOUT_S)
        if self._begun or self._is_over() or running is None:
            return
        self._stalled = False
        if any(model.name.removesuffix(":latest") == self._model for model in running):
            left = max(0, self._prompt_tokens - self._known_tokens)
            self._say(PhaseChanged("reading", f"reading {max(1, left):,} tokens"))
        else:
            self._known_tokens = 0
            self._say(PhaseChanged("loading", f"loading {self._model}"))
