"""Starts and stops the process that holds the model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from .machine import physical_cores

# Reading a file of this kind from a slow disk takes long; beyond this something is wrong.
_LOAD_TIMEOUT_S = 900.0
_LINE_LIMIT = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """What llama.cpp is started with. ``gpu_layers`` ``None`` leaves the choice to it."""

    model: str
    slots: str
    num_ctx: int
    threads: int
    key: str
    batch: int = 128
    gpu_layers: int | None = None
    cache_ram_mib: int = 1024

    @classmethod
    def make(
        cls, model: Path, slots: Path, num_ctx: int, *, threads: int | None = None, gpu_layers: int | None = None
    ) -> ServerConfig:
        """A config with a new random key and one thread per physical core."""
        return cls(
            str(model),
            str(slots),
            num_ctx,
            threads or physical_cores(),
            secrets.token_urlsafe(24),
            gpu_layers=gpu_layers,
        )


class ModelServer(Protocol):
    """A running llama.cpp server."""

    @property
    def url(self) -> str:
        """Its address on loopback."""
        ...

    @property
    def key(self) -> str:
        """What requests must carry as a bearer token."""
        ...

    @property
    def ended(self) -> bool:
        """Whether its process is gone."""
        ...

    async def stop(self) -> None:
        """End it at once."""
        ...


class WorkerFailed(Exception):
    """The model could not be loaded; ``str(error)`` is llama.cpp's own reason."""


class LlamaWorker:
    """The worker process. Make one with :meth:`start`."""

    def __init__(self, process: asyncio.subprocess.Process, key: str) -> None:
        self.url = ""
        self.key = key
        self._process = process
        self._words: deque[str] = deque(maxlen=40)
        self._listening = asyncio.ensure_future(self._listen())

    @classmethod
    async def start(cls, config: ServerConfig) -> LlamaWorker:
        """Start llama.cpp and wait until the model is loaded. Cancelling kills it.

        Raises:
            WorkerFailed: the model could not be loaded.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tui_agent.llm.embedded.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LINE_LIMIT,
        )
        worker = cls(process, config.key)
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(asdict(config)).encode() + b"\n")
            line = await asyncio.wait_for(process.stdout.readline(), _LOAD_TIMEOUT_S)
            answer = json.loads(line) if line else {}
            if "url" not in answer:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.shield(worker._listening), 2)
                raise WorkerFailed(worker.reason() or answer.get("error") or "its process ended while it was loading")
            worker.url = answer["url"]
        except asyncio.TimeoutError:
            await worker.stop()
            raise WorkerFailed(f"it was not loaded after {_LOAD_TIMEOUT_S:.0f} seconds") from None
        except BaseException:
            await worker.stop()
            raise
        return worker

    async def _listen(self) -> None:
        """Pass the worker's errors on to our own log and keep the last ones."""
        assert self._process.stderr is not None
        while True:
            try:
                line = await self._process.stderr.readline()
            except ValueError:  # a line beyond the limit; its beginning is dropped
                continue
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip()
            self._words.append(text)
            print(text, file=sys.stderr, flush=True)

    def reason(self) -> str:
        """Why loading failed, in llama.cpp's words: the first error line that says more than "failed"."""
        errors = [text.partition(" E ")[2].partition(": ")[2] for text in self._words if " E " in text]
        return next((text for text in errors if text), "")

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.returncode is not None

    async def stop(self) -> None:
        """Kill the process; it keeps nothing that is not on disk already."""
        if not self.ended:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._process.wait()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
