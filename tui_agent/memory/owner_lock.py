"""One owner for a thing that two processes must not use at once, by a lock of the operating system.

The lock goes with the process, however it ends, so nothing has to be cleaned up after a crash. What the owner was doing
is noted in the lock file: whoever gets the lock next learns whether the last owner died in the middle of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    # Windows locks bytes, and locked bytes cannot be read by others: so one far behind the note.
    _FAR = 1 << 30

    def _try_lock(file: BinaryIO) -> bool:
        file.seek(_FAR)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(file: BinaryIO) -> bool:
        # Also without locks on this file system: who cannot know that nobody else is there, is not the owner.
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class OwnerLock:
    """A lock file that at most one process (and one object in it) holds.

    ``crashes`` is, once acquired, the number of owners in a row that died inside :meth:`busy`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.crashes = 0
        self._file: BinaryIO | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._file is not None

    def acquire(self) -> bool:
        """Takes the lock without waiting; ``False`` when someone else holds it. Raises ``OSError`` when the file cannot
        be made."""
        if self._file is not None:
            return True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(self.path, flags, 0o600), "r+b", buffering=0)
        if not _try_lock(file):
            file.close()
            return False
        self._file = file
        note = self._note()
        crashes = note.get("crashes", 0)
        self.crashes = (crashes if isinstance(crashes, int) and crashes > 0 else 0) + bool(note.get("busy"))
        self._write("")
        return True

    def holder(self) -> int | None:
        """The process id of whoever holds the lock, as far as the file says."""
        pid = self._note().get("pid")
        return pid if isinstance(pid, int) else None

    def busy(self, what: str) -> None:
        """Notes that something is being done that a crash may interrupt; an empty text says it is done, and well."""
        self._write(what)

    def settle(self) -> None:
        """Forgets the crashes of earlier owners: it works again."""
        self.crashes = 0
        self._write("")

    def release(self) -> None:
        """Gives the lock back. A second call does nothing."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._write("")
            self._file.close()
            self._file = None

    def _note(self) -> dict[str, object]:
        try:
            found = json.loads(self.path.read_bytes()[:4096] or b"{}")
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, busy: str) -> None:
        if self._file is None:
            return
        note = json.dumps({"pid": os.getpid(), "busy": busy, "crashes": self.crashes}).encode()
        self._file.seek(0)
        self._file.write(note)
        self._file.truncate(len(note))
