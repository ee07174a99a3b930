"""A download as people follow it: layers, one share that never falls, speed, and silence by name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Protocol

from tui_agent.llm.types import PullProgress

STALL_S = 20.0
_SPEED_S = 5.0


class Pulls(Protocol):
    """The part of ``ModelClient`` this needs."""

    def pull(self, model: str) -> AsyncGenerator[PullProgress, None]: ...


@dataclass(frozen=True, slots=True)
class Layer:
    """One file of a model: ``completed`` of ``total`` bytes. ``digest`` is hex without its prefix."""

    digest: str
    total: int
    completed: int


@dataclass(frozen=True, slots=True)
class PullState:
    """Where a download stands.

    ``share`` (0 to 1) never falls, though the server's figures do when a part is fetched again or a layer is
    announced late. ``silent_s`` is 0 while data comes, else for how long none has come. ``resumed`` counts lost
    connections that were taken up again. ``done`` only after the server said ``success``.
    """

    model: str
    status: str = ""
    layers: tuple[Layer, ...] = ()
    share: float = 0.0
    bytes_per_second: float | None = None
    silent_s: float = 0.0
    resumed: int = 0
    done: bool = False

    @property
    def completed(self) -> int:
        """Bytes that are there."""
        return sum(layer.completed for layer in self.layers)

    @property
    def total(self) -> int:
        """Bytes of all layers named so far."""
        return sum(layer.total for layer in self.layers)

    @property
    def seconds_left(self) -> float | None:
        """How long it will take at the present speed, or ``None``."""
        if not self.bytes_per_second or self.done:
            return None
        return max(0, self.total - self.completed) / self.bytes_per_second


async def follow_pull(
    client: Pulls, model: str, *, stall_s: float = STALL_S, clock: Callable[[], float] = time.monotonic
) -> AsyncGenerator[PullState, None]:
    """States of a download, one for each line of the server, and one a second while it is silent for too long.

    Closing the generator stops the download; what arrived stays on the server's disk for the next one.

    Raises:
        ModelError: see ``ModelClient.pull``. Only a state with ``done`` means success.
    """
    layers: dict[str, Layer] = {}
    marks: list[tuple[float, int]] = []
    share, status, resumed = 0.0, "", 0
    heard = clock()
    tick = max(0.01, min(1.0, stall_s / 2))
    async with aclosing(client.pull(model)) as lines:
        coming: asyncio.Future[PullProgress] | None = None
        try:
            while True:
                if coming is None:
                    coming = asyncio.ensure_future(lines.__anext__())
                await asyncio.wait({coming}, timeout=tick)
                now = clock()
                if not coming.done():
                    if now - heard >= stall_s:
                        yield PullState(model, status, tuple(layers.values()), share, None, now - heard, resumed)
                    continue
                try:
                    line = coming.result()
                except StopAsyncIteration:
                    return
                coming, heard, status = None, now, line.status
                resumed += line.status.startswith("connection lost")
                if line.digest and line.total:
                    layers[line.digest] = Layer(
                        line.digest.removeprefix("sha256:"), line.total, min(line.completed or 0, line.total)
                    )
                done = line.status == "success"
                completed = sum(layer.completed for layer in layers.values())
                total = sum(layer.total for layer in layers.values())
                share = 1.0 if done else max(share, min(1.0, completed / total) if total else 0.0)
                yield PullState(
                    model, status, tuple(layers.values()), share, _speed(marks, now, completed), 0.0, resumed, done
                )
        finally:
            if coming is not None and not coming.done():
                # The generator below runs in this task; only its end closes the connection.
                coming.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await coming


def _speed(marks: list[tuple[float, int]], now: float, completed: int) -> float | None:
    """Bytes a second over the last seconds; ``None`` until there is something to tell."""
    marks.append((now, completed))
    while len(marks) > 2 and now - marks[0][0] > _SPEED_S:
        del marks[0]
    (first, begun), span = marks[0], now - marks[0][0]
    return (completed - begun) / span if span > 0.2 and completed > begun and first < now else None
