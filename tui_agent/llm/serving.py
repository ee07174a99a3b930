"""Starts the user's own ``ollama serve`` when asked to, keeps its output, and ends it with the last window using it.

The server is the child of a small keeper process whose standard input is a pipe from the app: when the app ends,
however it ends, the pipe closes. The keeper then waits for other windows that have marked their use of the same server
(:class:`ServerUse`), and stops the server it started, and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import IO

from tui_agent.llm.errors import ServerUnreachable
from tui_agent.llm.host import Host
from tui_agent.llm.keeper import mark, marks, unmark

START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 5.0
_POLL_S = 0.15
_MAX_LOG_BYTES = 1_000_000
_TAIL_BYTES = 4000


def ollama_program(env: Mapping[str, str] | None = None) -> str:
    """The path of the ``ollama`` program, empty when it is not installed."""
    env = os.environ if env is None else env
    found = shutil.which("ollama", path=env.get("PATH"))
    if found:
        return found
    usual = [Path("/usr/local/bin/ollama"), Path("/opt/homebrew/bin/ollama")]
    usual += [Path("/Applications/Ollama.app/Contents/Resources/ollama")] if sys.platform == "darwin" else []
    usual += [Path(env["LOCALAPPDATA"], "Programs", "Ollama", "ollama.exe")] if env.get("LOCALAPPDATA") else []
    # Someone who sets PATH to nothing means it; these are for desktops whose programs get a short PATH.
    return next((str(path) for path in usual if path.is_file()), "") if env.get("PATH") else ""


class ServerUse:
    """This window's use of a server on this machine. While it lasts, a server that another window of ours started is
    not stopped; it ends with the process, however that ends.

    Args:
        folder: holds a folder for each port with the uses of the server there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mark: IO[bytes] | None = None

    def begin(self, host: Host) -> None:
        """Mark that this window uses the server at ``host``, in place of an earlier one. Never raises."""
        self.end()
        if host.loopback:
            self._mark = mark(uses_of(self._folder, host))

    def end(self) -> None:
        """Take the mark back; safe to call twice."""
        file, self._mark = self._mark, None
        if file is not None:
            unmark(file)


def uses_of(folder: Path, host: Host) -> Path:
    """The folder with the uses of a server of this machine. The names of this machine are all the same to it."""
    return folder / str(host.port)


class OllamaServer:
    """One ``ollama serve`` of ours.

    Args:
        program: the path of ``ollama``.
        host: where it should listen; an address of this machine.
        log_path: gets everything it prints; moved to ``….1`` when it has grown over a megabyte.
        uses: where windows mark their use of servers, see :class:`ServerUse`.
    """

    def __init__(self, program: str, host: Host, log_path: Path, uses: Path) -> None:
        self.program = program
        self.host = host
        self.log_path = log_path
        self._uses = uses_of(uses, host)
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the keeper while it runs."""
        keeper = self._keeper
        return keeper.pid if keeper is not None and keeper.poll() is None else None

    async def start(self, answers: Callable[[], Awaitable[bool]], *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Start it and wait until ``answers()`` says that it does. Cancelling stops it again.

        Raises:
            ServerUnreachable: it cannot be started, ends at once, or does not answer in time; its last words are in
                the sentence.
        """
        self._spawn()  # milliseconds; in a thread it could outlive a cancelled start
        end = time.monotonic() + timeout_s
        try:
            while True:
                if await answers():
                    return
                if self.pid is None:
                    raise self._failure("ended at once")
                if time.monotonic() > end:
                    raise self._failure(f"did not answer at {self.host.url} within {timeout_s:.0f} seconds")
                await asyncio.sleep(_POLL_S)
        except BaseException:
            # Windows mark that they look for a server here, this one too; none can use what has not answered.
            self.stop(for_all=True)
            raise

    def _spawn(self) -> None:
        name = f"[{self.host.hostname}]" if ":" in self.host.hostname else self.host.hostname
        env = {**os.environ, "OLLAMA_HOST": f"{name}:{self.host.port}"}
        keeper = str(Path(__file__).with_name("keeper.py"))
        command = [sys.executable, "-I", keeper, str(self._uses), self.program, "serve"]
        try:
            with self._open_log() as log:
                self._keeper = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=env,
                    # The project may hold anything; and a Ctrl+C in the terminal is for the app alone.
                    cwd=self.log_path.parent,
                    start_new_session=os.name == "posix",
                )
        except OSError as error:
            raise ServerUnreachable(
                f"`ollama serve` could not be started: {error.strerror or error}.",
                fix="Start it in another terminal.",
            ) from error

    def _open_log(self) -> IO[bytes]:
        self.log_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(OSError):
            if self.log_path.stat().st_size > _MAX_LOG_BYTES:
                self.log_path.replace(self.log_path.with_name(self.log_path.name + ".1"))
        descriptor = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "ab")

    def stop(self, *, for_all: bool = False) -> None:
        """End it, or leave it to the other windows that use it unless it ends ``for_all``; safe to call twice. Waits at
        most some seconds."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        with contextlib.suppress(OSError):
            assert keeper.stdin is not None
            if for_all:
                keeper.stdin.write(b"end")
            keeper.stdin.close()
        end = time.monotonic() + _STOP_TIMEOUT_S + 1
        while time.monotonic() < end:
            if not for_all and marks(self._uses):
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                keeper.wait(_POLL_S)
                return
        keeper.kill()
        keeper.wait()

    def _failure(self, what: str) -> ServerUnreachable:
        tail = self._tail()
        words = f" Its last words: {tail}." if tail else ""
        return ServerUnreachable(f"`ollama serve` {what}.{words}", fix=f"Its log is {self.log_path}.", detail=tail)

    def _tail(self) -> str:
        with contextlib.suppress(OSError), self.log_path.open("rb") as file:
            file.seek(max(0, self.log_path.stat().st_size - _TAIL_BYTES))
            lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
            last = "".join(c if c.isprintable() else " " for c in (lines[-1] if lines else ""))
            return (last if len(last) <= 200 else last[:199] + "…").rstrip(". ")
        return ""
