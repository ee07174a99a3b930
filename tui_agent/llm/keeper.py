"""Keeps one program running until the last window that uses it is gone: ``python keeper.py FOLDER PROGRAM …``.

Every window marks its use by a file in ``FOLDER`` that it holds locked. The lock goes with the window, however that
ends, so what a killed one left behind never counts. The window that started the program is known by this process's
standard input too: while that is open nothing is looked at. A word on it says that the program ends for all, since its
start has failed.

Stands alone, so that it starts quickly and depends on nothing that the working directory or the environment may change.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO
from uuid import uuid4

MARK = ".window"
_STOP_TIMEOUT_S = 5.0
_TRIES = 5
_SETTLE_S = 0.1  # a killed window's own mark goes in the same instant as its end of the pipe, and may be the second

if sys.platform == "win32":
    import msvcrt

    def lock(file: IO[bytes], *, wait: bool = False) -> bool:
        """Lock an open file for this process; whether it worked. ``wait`` waits for whoever holds it."""
        while True:
            file.seek(0)
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    return False
                time.sleep(0.5)
            else:
                return True

else:
    import fcntl

    def lock(file: IO[bytes], *, wait: bool = False) -> bool:
        """Lock an open file for this process; whether it worked. ``wait`` waits for whoever holds it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            return False
        return True


def mark(folder: Path) -> IO[bytes] | None:
    """A use of what ``folder`` stands for, as a file that stays locked until it is closed; ``None`` where that cannot
    be written down."""
    for _ in range(_TRIES):
        path = folder / f"{os.getpid()}-{uuid4().hex[:8]}{MARK}"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = open(  # noqa: SIM115 - it stays open as long as the use
                path, "x+b", buffering=0, opener=lambda name, flags: os.open(name, flags, 0o600)
            )
        except OSError:
            return None
        # In the instant before it is locked someone may take it for a stale one.
        if lock(file) and path.exists():
            return file
        unmark(file)
    return None


def unmark(file: IO[bytes]) -> None:
    """End a use."""
    file.close()
    with contextlib.suppress(OSError):
        Path(file.name).unlink()


def marks(folder: Path) -> list[Path]:
    """The files of those who use it now; stale ones are removed."""
    return [path for path in sorted(folder.glob(f"*{MARK}")) if _is_held(path)]


def _is_held(path: Path, *, wait: bool = False) -> bool:
    """Whether someone holds the file. With ``wait`` not until nobody does."""
    try:
        file = path.open("r+b", buffering=0)
    except OSError:
        return False
    with file:
        if not lock(file, wait=wait):
            time.sleep(1.0 if wait else 0.0)  # this file system has no locks
            return True
        with contextlib.suppress(OSError):
            path.unlink()
        return False


def keep(command: list[str], folder: Path) -> int:
    """Run ``command`` until it ends, or standard input and every use does; then terminate it, and kill it when it
    lingers."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def end(*_: object) -> None:
        with contextlib.suppress(OSError):
            child.terminate()
        try:
            child.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()

    def watch() -> None:
        for_all = False
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                for_all = True
        if for_all:
            end()
            return
        time.sleep(_SETTLE_S)
        others = marks(folder)
        if others:
            count = f"{len(others)} others use" if len(others) > 1 else "another uses"
            _say(f"the window that started this server is closed; {count} it, and the last one out stops it")
        while others:
            _is_held(others[0], wait=True)
            others = marks(folder)
        _say("the last window that used this server is closed, so it is stopped")
        end()

    signal.signal(signal.SIGTERM, lambda *_: end())
    threading.Thread(target=watch, daemon=True).start()
    return child.wait()


def _say(words: str) -> None:
    """A line in the log, which is this process's standard output."""
    with contextlib.suppress(OSError, ValueError):
        print(f"tui-agent {time.strftime('%Y-%m-%d %H:%M:%S')}: {words}", flush=True)


if __name__ == "__main__":
    sys.exit(keep(sys.argv[2:], Path(sys.argv[1])))
