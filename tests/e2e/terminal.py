"""The real program in a real pseudo-terminal, read through a terminal emulator."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ptyprocess
import pyte

KEYS = {
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "f3": "\x1bOR",
    "f4": "\x1bOS",
    "f5": "\x1b[15~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "ctrl+j": "\n",
    "ctrl+q": "\x11",
    "ctrl+c": "\x03",
    "ctrl+l": "\x0c",
}


class Terminal:
    """A program in a pty of ``columns`` x ``rows`` and what its screen shows."""

    def __init__(self, argv: list[str], env: dict[str, str], columns: int = 120, rows: int = 40) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.process = ptyprocess.PtyProcess.spawn(argv, env=env, dimensions=(rows, columns))

    @property
    def text(self) -> str:
        """The screen as lines."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def type(self, *keys: str) -> None:
        """Type text and keys (named as in ``KEYS``)."""
        for key in keys:
            self.process.write(KEYS.get(key, key).encode())

    def wait(self, seen: str | Callable[[str], bool], limit_s: float = 20.0) -> str:
        """Read until the screen shows ``seen``; returns the screen."""
        shows = seen if callable(seen) else (lambda text: seen in text)
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if shows(self.text):
                return self.text
            if not self._read(0.1):
                break
        raise AssertionError(f"the screen never showed {seen!r}; it shows:\n{self.text}")

    def _read(self, wait_s: float) -> bool:
        """Feed what has arrived; false when the program has ended."""
        ready, _, _ = select.select([self.process.fd], [], [], wait_s)
        if ready:
            try:
                self._stream.feed(self.process.read(65536))
            except EOFError:
                return False
        return True

    def kill(self) -> None:
        """SIGKILL, as by a crash."""
        self.process.kill(signal.SIGKILL)
        self.process.wait()

    def leave(self) -> int:
        """Quit by key; returns the exit status."""
        self.type("ctrl+q")
        end = time.monotonic() + 10
        while self.process.isalive() and time.monotonic() < end:
            if not self._read(0.1):
                break
        with contextlib.suppress(ptyprocess.PtyProcessError):
            self.process.wait()
        return int(self.process.exitstatus or 0)


def environment(home: Path) -> dict[str, str]:
    """An environment with its own user folders and a capable terminal."""
    # COLUMNS and LINES would overrule the size of the terminal.
    ours = ("OLLAMA", "TUI_AGENT", "NO_COLOR", "COLUMNS", "LINES")
    env = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return {**env, "TUI_AGENT_HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor"}


@contextlib.contextmanager
def scripted_server(script: dict[str, Any], folder: Path) -> Iterator[str]:
    """A stand-in model server as a process of its own; yields its URL."""
    path = folder / "script.json"
    path.write_text(json.dumps(script), "utf-8")
    argv = [sys.executable, "-m", "tui_agent.llm.wire", "--script", str(path), "--port", "0", "--with-stdin"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.stdin.close()
            server.wait(10)
