"""Starts the engine as a process of its own, watches it, and ends it with the app.

Nothing heavy is imported here: the app's process needs none of the engine's packages.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import IO, Any

import platformdirs

from ..errors import GenerationFailed, LoadFailed, ModelError, ModelMissing, ServerUnreachable
from .models import INSTALL
from .slots import delete_slot_states

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 5.0
# More crashes than this within a minute are not an accident.
_MAX_RESTARTS = 3
_RESTART_WINDOW_S = 60.0
_MAX_LOG_BYTES = 1_000_000
_LINE_LIMIT = 1024 * 1024
_NEEDED = ("xllamacpp", "uvicorn", "starlette")
_ERRORS: dict[str, type[ModelError]] = {kind.kind: kind for kind in (ModelMissing, LoadFailed, ServerUnreachable)}


class Progress(str):
    """One line about what the engine is doing, for people; the figures behind it are attributes.

    ``stage`` is ``unpacking``, ``checking``, ``waiting``, ``loading``, ``reading``, ``ready``, ``restarting`` or
    ``failed``. ``done`` and ``total`` are bytes while unpacking and checking, tokens while reading, else 0.
    """

    stage: str
    done: int
    total: int

    def __new__(cls, text: str, stage: str = "", done: int = 0, total: int = 0) -> Progress:
        made = super().__new__(cls, text)
        made.stage, made.done, made.total = stage, done, total
        return made


def describe(stage: str, done: int, total: int) -> Progress:
    """The line for a stage."""
    if stage in ("unpacking", "checking"):
        verb = "unpacking the built-in model (only once)" if stage == "unpacking" else "checking the built-in model"
        text = f"{verb}, {done / 1e6:,.0f} of {total / 1e6:,.0f} MB"
    elif stage == "reading":
        text = f"reading the prompt, {done:,} of {total:,} tokens"
    else:
        text = {
            "waiting": "waiting for another window that unpacks the built-in model",
            "loading": "loading the model",
            "ready": "the model is ready",
            "restarting": "the built-in engine stopped unexpectedly and is started again",
        }.get(stage, stage)
    return Progress(text, stage, done, total)


OnProgress = Callable[[Progress], None]


def missing_packages() -> list[str]:
    """The packages of the ``embedded`` extra that are not installed, the model's parts left aside."""
    return [name for name in _NEEDED if importlib.util.find_spec(name) is None]


class EmbeddedEngine:
    """The engine's process.

    ``url = await engine.start(on_progress)`` returns as soon as the HTTP API answers, which is before the model is
    unpacked and loaded; a chat sent meanwhile waits. ``on_progress`` goes on being called, in the event loop, for as
    long as the engine runs. A crashed engine is started again at the same address.

    Args:
        gguf: a model file of the user's; the built-in model when not given.
        name: what that model is called; made from the file's name when not given.
        num_ctx: window in tokens to load the model with.
        models_dir: where the built-in model is unpacked (1.1 GB).
        slots_dir: where states of the prompt's fixed part are stored.
        log_path: the engine's messages; ``engine.log`` beside the models when not given.
        threads: for the arithmetic; one per physical core when not given.
    """

    def __init__(
        self,
        *,
        gguf: str | Path | None = None,
        name: str = "",
        num_ctx: int = 8192,
        models_dir: Path | None = None,
        slots_dir: Path | None = None,
        log_path: Path | None = None,
        threads: int | None = None,
    ) -> None:
        cache = Path(platformdirs.user_cache_dir("tui-agent", appauthor=False))
        self.models_dir = (models_dir or cache / "models").absolute()
        self.slots_dir = (slots_dir or cache / "slots").absolute()
        self.log_path = (log_path or self.models_dir / "engine.log").absolute()
        self.gguf = None if gguf is None else Path(gguf).expanduser().absolute()
        self.name = name
        self.num_ctx = num_ctx
        self.threads = threads
        self.url = ""
        self.error: ModelError | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._on_progress: OnProgress = lambda _: None
        self._tasks: set[asyncio.Task[None]] = set()
        self._restarts: list[float] = []
        self._stopping = False

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        running = self._process is not None and self._process.returncode is None
        return self._process.pid if running and self._process else None

    def paths(self) -> tuple[Path, ...]:
        """Everything the engine writes to."""
        return (self.models_dir, self.slots_dir, self.log_path)

    def forget_states(self) -> int:
        """Delete the stored prompt states; call it when memory that was in a prompt must be gone from disk."""
        return delete_slot_states(self.slots_dir)

    async def start(self, on_progress: OnProgress | None = None) -> str:
        """Start the process and return its URL.

        Raises:
            ServerUnreachable: the extra is not installed, or the process does not come up.
            ModelMissing: no model file there, or the built-in model's packages are not installed.
            LoadFailed: the file is not a model.
        """
        if missing := missing_packages():
            raise ServerUnreachable(
                f"The built-in engine is not installed ({', '.join(missing)} missing).", fix=INSTALL
            )
        self._on_progress = on_progress or self._on_progress
        self._stopping = False
        self.error = None
        await self._spawn(0)
        return self.url

    async def stop(self) -> None:
        """End the process; safe to call twice. What is being generated is dropped."""
        self._stopping = True
        process = self._process
        if process is not None and process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            try:
                await asyncio.wait_for(process.wait(), _STOP_TIMEOUT_S)
            except asyncio.TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        current = asyncio.current_task()
        others = [task for task in self._tasks if task is not current]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._process = None

    async def _spawn(self, port: int) -> None:
        command = [
            sys.executable,
            "-m",
            "tui_agent.llm.embedded",
            *("--port", str(port)),
            *("--num-ctx", str(self.num_ctx)),
            *("--models-dir", str(self.models_dir)),
            *("--slots-dir", str(self.slots_dir)),
        ]
        if self.gguf is not None:
            command += ["--model", str(self.gguf)]
            if self.name:
                command += ["--name", self.name]
        if self.threads is not None:
            command += ["--threads", str(self.threads)]
        try:
            self.models_dir.mkdir(parents=True, exist_ok=True)
            with self._open_log() as log:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    limit=_LINE_LIMIT,
                    env=_environment(),
                    # `-m` looks for modules in the working directory first, and the user's project may hold anything.
                    cwd=self.models_dir,
                    # A Ctrl+C in the terminal is for the app to handle, not for the engine.
                    start_new_session=os.name == "posix",
                )
        except OSError as error:
            raise ServerUnreachable(
                f"The built-in engine could not be started: {error}.", fix=f"See {self.log_path}."
            ) from error
        self._process = process
        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._keep(self._read(process, listening))
        try:
            self.url = await asyncio.wait_for(listening, _START_TIMEOUT_S)
        except asyncio.TimeoutError:
            await self.stop()
            raise self._failure(f"did not answer within {_START_TIMEOUT_S:.0f} seconds") from None
        except BaseException:
            await self.stop()
            raise
        self._keep(self._watch(process))

    def _open_log(self) -> IO[bytes]:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            if self.log_path.stat().st_size > _MAX_LOG_BYTES:
                self.log_path.replace(self.log_path.with_name(self.log_path.name + ".1"))
        return self.log_path.open("ab")

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, process: asyncio.subprocess.Process, listening: asyncio.Future[str]) -> None:
        """Digest the process's output until it ends."""
        assert process.stdout is not None
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than any line of ours
                continue
            if not line:
                break
            try:
                said = json.loads(line)
            except ValueError:
                continue
            self._take(said, listening)
        if not listening.done():
            code = await process.wait()
            listening.set_exception(self._failure(f"ended at once with code {code}"))

    def _take(self, said: object, listening: asyncio.Future[str]) -> None:
        if not isinstance(said, dict):
            return
        if "url" in said and not listening.done():
            listening.set_result(str(said["url"]))
        elif isinstance(told := said.get("error"), dict):
            kind = _ERRORS.get(str(told.get("kind")), LoadFailed)
            self.error = kind(str(told.get("message", "")), fix=str(told.get("fix", "")))
            if listening.done():
                self._on_progress(Progress(str(self.error), "failed"))
            else:
                listening.set_exception(self.error)
        elif isinstance(told := said.get("progress"), dict):
            stage, done, total = told.get("stage"), told.get("done"), told.get("total")
            self._on_progress(describe(str(stage), int(done or 0), int(total or 0)))

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Start a crashed engine again, at the same address."""
        await process.wait()
        if self._stopping:
            return
        now = time.monotonic()
        self._restarts = [at for at in self._restarts if now - at < _RESTART_WINDOW_S]
        if len(self._restarts) >= _MAX_RESTARTS:
            self.error = self._failure(f"stopped {len(self._restarts) + 1} times within a minute")
            self._on_progress(Progress(str(self.error), "failed"))
            return
        self._restarts.append(now)
        self._on_progress(describe("restarting", 0, 0))
        try:
            await self._spawn(int(self.url.rpartition(":")[2]))
        except ModelError as error:
            self.error = error
            self._on_progress(Progress(str(error), "failed"))

    def _failure(self, what: str) -> ModelError:
        kind = GenerationFailed if self.url else ServerUnreachable
        return kind(
            f"The built-in engine {what}.", fix=f"Its messages are in {self.log_path}.", detail=self._log_tail()
        )

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError), self.log_path.open("rb") as file:
            file.seek(max(0, self.log_path.stat().st_size - 2000))
            return file.read().decode("utf-8", "replace")
        return ""


def _environment() -> dict[str, str]:
    """The app's environment; where the app runs from a checkout that is not installed, the engine finds it too."""
    found = dict(os.environ)
    try:
        importlib.metadata.distribution("tui-agent")
    except importlib.metadata.PackageNotFoundError:
        root = str(Path(__file__).resolve().parents[3])
        found["PYTHONPATH"] = os.pathsep.join(filter(None, (root, found.get("PYTHONPATH"))))
    return found
