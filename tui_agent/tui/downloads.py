"""Downloads of models: they belong to the application, so that closing the list does not stop them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from tui_agent.tui.text import one_line

if TYPE_CHECKING:
    from textual.worker import Worker

    from tui_agent.llm.pulling import PullState
    from tui_agent.tui.host import HostApp

REDRAW_S = 0.2


@dataclass(slots=True)
class Download:
    """One download. ``error`` is why it ended without success, ``over`` whether it ended at all."""

    name: str
    state: PullState | None = None
    error: str = ""
    over: bool = False
    worker: Worker[Any] | None = None


class Downloads:
    """The downloads of this run, by model name, in the order they were asked for."""

    def __init__(self, app: HostApp) -> None:
        self._app = app
        self._jobs: dict[str, Download] = {}
        self._listeners: list[Callable[[], None]] = []

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have ``changed`` called when something moved; returns the function that ends it."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    @property
    def shown(self) -> list[Download]:
        """Those that run, and those that failed."""
        return [job for job in self._jobs.values() if not job.over or job.error]

    def running(self, name: str) -> bool:
        """Whether this model is being downloaded."""
        job = self._jobs.get(name)
        return job is not None and not job.over

    def start(self, name: str, pull: Callable[[str], AsyncGenerator[PullState, None]]) -> None:
        """Begin a download, or go on with one that was stopped."""
        if self.running(name):
            return
        job = self._jobs[name] = Download(name)
        job.worker = self._app.run_worker(self._run(job, pull), group="pull", exit_on_error=False)
        self._changed()

    def stop(self, name: str) -> None:
        """Stop it; what arrived stays on the server."""
        job = self._jobs.get(name)
        if job is not None and job.worker is not None:
            job.worker.cancel()

    async def _run(self, job: Download, pull: Callable[[str], AsyncGenerator[PullState, None]]) -> None:
        drawn = 0.0
        try:
            async with aclosing(pull(job.name)) as states:
                async for state in states:
                    before, job.state = job.state, state
                    now = monotonic()
                    if now - drawn >= REDRAW_S or state.done or before is None or before.status != state.status:
                        drawn = now
                        self._changed()
        except asyncio.CancelledError:
            job.error = "stopped; what arrived stays, and p on this line goes on there"
            raise
        except Exception as error:
            job.error = one_line(error)
            self._app.say(f"{job.name}: {job.error}", "error")
        else:
            self._app.say(f"{job.name} is installed.")
        finally:
            job.over = True
            self._changed()

    def _changed(self) -> None:
        for listener in tuple(self._listeners):
            listener()
