"""Keeps one program running for as long as this process's standard input stays open: ``python keeper.py PROGRAM …``.

Stands alone, so that it starts quickly and depends on nothing that the working directory or the environment may change.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

_STOP_TIMEOUT_S = 5.0


def keep(command: list[str]) -> int:
    """Run ``command`` until it ends or standard input does; then terminate it, and kill it when it lingers."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def end(*_: object) -> None:
        with contextlib.suppress(OSError):
            child.terminate()
        try:
            child.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        end()

    signal.signal(signal.SIGTERM, lambda *_: end())
    threading.Thread(target=watch, daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1:]))
