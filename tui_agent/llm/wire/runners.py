"""Loaded models of a scripted server: with which options, for how long, how often loaded again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .backend import JSON, BackendError, BackendModel
from .gojson import FOREVER_S
from .objects import ps_row
from .prompt import PromptCache
from .script import Fail
from .validate import load_options


@dataclass(slots=True)
class Runner:
    """One loaded model. ``expires_at`` is seconds since the epoch; the timer runs while nothing is in flight."""

    model: BackendModel
    options: JSON
    cache: PromptCache
    keep_alive: float
    expires_at: float
    slots: asyncio.Semaphore
    in_flight: int = 0

    @property
    def num_ctx(self) -> int:
        """The effective window in tokens."""
        return int(self.options["num_ctx"])


@dataclass(slots=True)
class Runners:
    """All loaded models. ``loads`` counts every load, ``reloads`` those that replaced a runner with other options,
    ``evictions`` those that had to go because no more than ``max_loaded`` fit. A server short of memory gives
    ``most_ctx`` tokens of window, whatever it is asked for."""

    parallel: int = 1
    default_ctx: int = 4096
    default_keep_alive: float = 300.0
    spare_prompts: int = 0
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    max_loaded: int | None = None
    most_ctx: int | None = None
    loads: int = 0
    reloads: int = 0
    evictions: int = 0
    aborted_loads: int = 0
    _loaded: dict[str, Runner] = field(default_factory=dict)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def acquire(
        self,
        model: BackendModel,
        options: Mapping[str, Any],
        keep_alive: float | None,
        *,
        delay: float = 0.0,
        error: Fail | None = None,
    ) -> tuple[Runner, bool]:
        """A loaded runner, counted as in use until :meth:`release`, and whether it was loaded for this request.

        ``delay`` and ``error`` say how a load that becomes necessary goes. Cancelling aborts the load.
        """
        wanted = load_options(
            options, min(model.context_length, self.most_ctx or model.context_length), self.default_ctx
        )
        async with self._locks.setdefault(model.name, asyncio.Lock()):
            self._expire()
            runner = self._loaded.get(model.name)
            fresh = runner is None or runner.options != wanted or error is not None
            if fresh:
                old = self._loaded.pop(model.name, None)
                self._make_room()
                await self._load(delay, error)
                self.loads += 1
                self.reloads += old is not None
                runner = Runner(
                    model,
                    wanted,
                    PromptCache(self.parallel, self.spare_prompts),
                    self.default_keep_alive if old is None else old.keep_alive,
                    0.0,
                    asyncio.Semaphore(self.parallel),
                )
                self._loaded[model.name] = runner
            assert runner is not None
            runner.in_flight += 1
            if keep_alive is not None:
                runner.keep_alive = keep_alive
            self._touch(runner)
            return runner, fresh

    def _make_room(self) -> None:
        """Evict idle runners, the one that would go first at first, until one more model fits."""
        while self.max_loaded is not None and len(self._loaded) >= self.max_loaded:
            idle = [one for one in self._loaded.values() if not one.in_flight]
            if not idle:
                return
            del self._loaded[min(idle, key=lambda one: one.expires_at).model.name]
            self.evictions += 1

    async def _load(self, delay: float, error: Fail | None) -> None:
        try:
            if delay:
                await self.sleep(delay)
        except asyncio.CancelledError:
            self.aborted_loads += 1
            raise
        if error is not None:
            raise BackendError(error.status, error.error, extra=error.extra)

    def release(self, runner: Runner) -> None:
        """The request is over: the timer starts again, or the model goes at once with ``keep_alive`` 0."""
        runner.in_flight -= 1
        self._touch(runner)
        self._expire()

    def unload(self, model: str) -> None:
        """Forget the runner."""
        self._loaded.pop(model, None)

    def rows(self) -> list[JSON]:
        """Rows of ``/api/ps``, longest-lived first."""
        self._expire()
        alive = sorted(self._loaded.values(), key=lambda runner: -runner.expires_at)
        return [ps_row(one.model, num_ctx=one.num_ctx, expires_at=one.expires_at) for one in alive]

    def debug(self) -> list[JSON]:
        """Loaded models with their options, for ``/debug/requests``."""
        return [{"model": one.model.name, "options": one.options} for one in self._loaded.values()]

    def _touch(self, runner: Runner) -> None:
        runner.expires_at = self.clock() + (FOREVER_S if runner.keep_alive < 0 else runner.keep_alive)

    def _expire(self) -> None:
        now = self.clock()
        for name, runner in list(self._loaded.items()):
            if runner.in_flight == 0 and runner.expires_at <= now:
                del self._loaded[name]
