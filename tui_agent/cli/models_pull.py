"""``tui-agent models pull``: a download with its layers on a terminal, and plain lines or JSON everywhere else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.agent.models import ModelDesk, size_words
from tui_agent.cli.models_run import INTERRUPTED, exit_code, run
from tui_agent.llm.client import ModelClient
from tui_agent.llm.errors import ModelError
from tui_agent.llm.pulling import PullState

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PLAIN_STEP = 0.1


def run_pull(project: Path, host: str | None, embedded: bool | None, name: str, *, as_json: bool) -> int:
    """Download ``name`` and show how it goes."""

    async def job(desk: ModelDesk, client: ModelClient) -> int:
        shown: Any = _Json() if as_json else _Bars(name) if sys.stderr.isatty() else _Plain()
        code, end = await _pull(desk, name, shown)
        shown.finish(end, code)
        return code

    return run(project, host, embedded, job)


async def _pull(desk: ModelDesk, name: str, shown: Any) -> tuple[int, str]:
    """The exit code and the last sentence."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows has no signal handlers in the loop
        loop.add_signal_handler(signal.SIGINT, task.cancel if task is not None else lambda: None)
    try:
        async with aclosing(desk.pull(name)) as states:
            async for state in states:
                shown.show(state)
    except asyncio.CancelledError:
        if task is not None and hasattr(task, "uncancel"):
            task.uncancel()
        return INTERRUPTED, "Stopped. What arrived stays on the server, and the next pull goes on there."
    except ModelError as error:
        return exit_code(error), str(error)
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.remove_signal_handler(signal.SIGINT)
    return 0, f"{name} is installed."


def line_of(state: PullState) -> str:
    """One line that says where the download stands."""
    if state.done:
        return "done"
    if state.silent_s:
        return f"no data for {state.silent_s:.0f} s ({state.status}); ctrl+c stops, and a new pull goes on here"
    if not state.total:
        return state.status
    parts = [f"{state.share:4.0%}", f"{size_words(state.completed) or '0 MB'} of {size_words(state.total)}"]
    if state.bytes_per_second:
        parts.append(f"{state.bytes_per_second / 1e6:.1f} MB/s")
    if state.seconds_left is not None:
        parts.append(f"{state.seconds_left:.0f} s left")
    return "  ".join((*parts, state.status))


class _Json:
    """A JSON object a line: ``pull_progress`` …, and ``pull_finished`` as the last."""

    def __init__(self) -> None:
        self._last: tuple[str, int, int] | None = None

    def show(self, state: PullState) -> None:
        mark = (state.status, int(state.share * 100), int(state.silent_s))
        if mark == self._last:
            return
        self._last = mark
        self._print(
            {
                "event": "pull_progress",
                "model": state.model,
                "status": state.status,
                "share": round(state.share, 4),
                "completed": state.completed,
                "total": state.total,
                "bytes_per_second": state.bytes_per_second and round(state.bytes_per_second),
                "silent_s": round(state.silent_s, 1),
                "resumed": state.resumed,
                "layers": [
                    {"digest": one.digest, "total": one.total, "completed": one.completed} for one in state.layers
                ],
            }
        )

    def finish(self, end: str, code: int) -> None:
        status = {0: "done", INTERRUPTED: "stopped"}.get(code, "failed")
        self._print({"event": "pull_finished", "status": status, "text": end, "exit_code": code})

    @staticmethod
    def _print(value: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
        sys.stdout.flush()


class _Plain:
    """For logs and pipes: a line when something else happens, and one for each tenth."""

    def __init__(self) -> None:
        self._status = ""
        self._step = 0

    def show(self, state: PullState) -> None:
        step = int(state.share / _PLAIN_STEP)
        if state.status == self._status and step == self._step and not state.silent_s:
            return
        self._status, self._step = state.status, step
        print(line_of(state), file=sys.stderr, flush=True)

    def finish(self, end: str, code: int) -> None:
        print(f"tui-agent: {end}" if code else end, file=sys.stderr, flush=True)


class _Bars:
    """A bar for each layer."""

    def __init__(self, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        self._progress: Progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=Console(stderr=True),
            transient=False,
        )
        self._layers: dict[str, TaskID] = {}
        self._status = ""
        self._progress.start()
        self._progress.console.print(f"pulling {name}", markup=False, highlight=False)

    def show(self, state: PullState) -> None:
        for layer in state.layers:
            if layer.digest not in self._layers:
                self._layers[layer.digest] = self._progress.add_task(layer.digest[:12], total=layer.total)
            self._progress.update(self._layers[layer.digest], completed=layer.completed)
        layered = state.status.startswith("pulling ") and bool(state.layers)
        said = line_of(state) if state.silent_s else "" if layered else state.status
        if said and said != self._status:
            self._status = said
            self._progress.console.print(said, markup=False, highlight=False)

    def finish(self, end: str, code: int) -> None:
        self._progress.stop()
        print(f"tui-agent: {end}" if code else end, file=sys.stderr, flush=True)
