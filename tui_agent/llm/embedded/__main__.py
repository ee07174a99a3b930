"""The engine: Ollama's HTTP API over llama.cpp on a loopback port.

``python -m tui_agent.llm.embedded [--model FILE.gguf] [--port 0] [--num-ctx 8192] [--cache DIR]``

Prints JSON lines on standard output: first ``{"url": …, "model": …}`` when the API answers, then
``{"progress": {"stage", "done", "total"}}`` while the built-in model is unpacked, the model is loaded and prompts are
read, and ``{"error": {"kind", "message", "fix"}}`` when something makes answers impossible. Ends when standard input
ends.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from ..errors import LoadFailed, ModelError
from ..wire.app import create_app
from ..wire.backend import BackendError, BackendModel
from ..wire.serve import config_for, listen
from .backend import LlamaBackend
from .gguf import describe
from .machine import die_with_parent, on_stdin_end
from .models import DEFAULT_MODEL, assemble, assembled_path, find_parts
from .slots import SlotStates

# What /api/show says of the built-in model before its file is there; the figures are in the file's header.
BUILT_IN = BackendModel(
    name="qwen2.5-coder:1.5b",
    digest=DEFAULT_MODEL.sha256,
    size=DEFAULT_MODEL.size,
    family="qwen2",
    parameter_size="1.5B",
    quantization="Q4_K_M",
    context_length=32768,
    embedding_length=1536,
    capabilities=("completion", "tools"),
)

_out = threading.Lock()


def say(**line: Any) -> None:
    """Print one JSON line; quiet when nobody reads any more."""
    with _out, contextlib.suppress(OSError, ValueError):
        print(json.dumps(line, ensure_ascii=False), flush=True)


def progress(stage: str, done: int, total: int) -> None:
    """Tell the app what takes time."""
    say(progress={"stage": stage, "done": done, "total": total})


def fail(error: ModelError) -> None:
    """Tell the app why there will be no answers."""
    say(error={"kind": error.kind, "message": error.message, "fix": error.fix})


class ModelFile:
    """The model's path, made once, in a thread; every caller waits for the same work."""

    def __init__(self, path: Path | None, folder: Path) -> None:
        self._path = path
        self._folder = folder
        self._work: asyncio.Task[Path] | None = None
        self._shown = -1

    async def __call__(self) -> Path:
        """The path. A failure is tried again by the next caller: the disk may have room then."""
        if self._path is not None:
            return self._path
        if self._work is None or (self._work.done() and self._work.exception() is not None):
            self._work = asyncio.ensure_future(asyncio.to_thread(assemble, self._folder, self._report))
        return await asyncio.shield(self._work)

    def _report(self, stage: str, done: int, total: int) -> None:
        percent = done * 100 // total if total else -2
        if percent != self._shown:
            self._shown = percent
            progress(stage, done, total)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The parsed command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tui_agent.llm.embedded", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--model", type=Path, help="a GGUF file; the built-in model when not given")
    parser.add_argument("--name", default="", help="what the file's model is called; from the file's name if not given")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--num-ctx", type=int, default=8192, help="window in tokens")
    parser.add_argument("--threads", type=int, help="one per physical core when not given")
    parser.add_argument("--cache", type=Path, default=Path.cwd(), help="holds models/ and slots/")
    parser.add_argument("--models-dir", type=Path, help="where the built-in model is unpacked")
    parser.add_argument("--slots-dir", type=Path, help="where states of the prompt are stored")
    parser.add_argument("--debug-token", default=os.environ.get("TUI_AGENT_ENGINE_TOKEN"), help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve until standard input ends; exit code 1 when there is no usable model or port."""
    options = arguments(argv)
    die_with_parent()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    models_dir = options.models_dir or options.cache / "models"
    slots = SlotStates(options.slots_dir or options.cache / "slots")
    try:
        if options.model is not None:
            model = describe(options.model)
            model = replace(model, name=options.name) if options.name else model
        else:
            model = BUILT_IN
            if not assembled_path(models_dir).is_file():
                find_parts()
        sock = listen(options.port)
    except ModelError as error:
        fail(error)
        return 1
    except OSError as error:
        say(error={"kind": "server_unreachable", "message": f"Port {options.port} cannot be used: {error}.", "fix": ""})
        return 1

    backend = LlamaBackend(
        model,
        ModelFile(options.model, models_dir),
        slots,
        num_ctx=options.num_ctx,
        threads=options.threads,
        on_progress=progress,
    )
    # Conversations stay in the app: the engine keeps counters of requests, not their texts.
    app = create_app(backend, debug_token=options.debug_token, prompt_log=False)
    inner = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(starlette: Starlette) -> AsyncGenerator[None, None]:
        async with inner(starlette):
            loading = asyncio.ensure_future(preload(backend, model.name))
            try:
                yield
            finally:
                loading.cancel()

    app.router.lifespan_context = lifespan
    server = uvicorn.Server(config_for(app, timeout_graceful_shutdown=0))

    def end() -> None:
        server.should_exit = True

    on_stdin_end(end)
    # The socket listens already, so a client that reads this line can connect.
    say(url=f"http://127.0.0.1:{sock.getsockname()[1]}", model=model.name)
    server.run(sockets=[sock])
    return 0


async def preload(backend: LlamaBackend, name: str) -> None:
    """Load the model before anybody asks; what goes wrong is told now and again to the first chat."""
    try:
        await backend.load(name, {})
    except BackendError as error:
        cause = error.__cause__
        fail(cause if isinstance(cause, ModelError) else LoadFailed(str(error)))


if __name__ == "__main__":
    sys.exit(main())
