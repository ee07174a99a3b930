"""Stored states of the fixed part of the prompt, so that a restart does not read it again.

A state is what llama.cpp writes for one slot: the key-value cache of the tokens read so far, about 28 kB a token for
the built-in model. It is derived from the system prompt, which may hold memories, so the folder is readable by the
user alone and everything in it can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

_SUFFIX = ".slot"
# Below this much free space nothing is stored: reading a prompt again is better than filling a disk.
_MIN_FREE_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SlotStates:
    """The folder of stored states. At most ``keep`` files and ``max_bytes`` together stay, the newest used first."""

    folder: Path
    keep: int = 6
    max_bytes: int = 600_000_000

    @staticmethod
    def key(*parts: str) -> str:
        """The name for a state: a hash over everything it depends on."""
        digest = hashlib.sha256()
        for part in parts:
            data = part.encode("utf-8", "replace")
            digest.update(len(data).to_bytes(8, "big") + data)
        return digest.hexdigest()[:40]

    def prepare(self) -> None:
        """Make the folder, readable by the user alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            self.folder.chmod(0o700)
        for path in self.folder.glob("*.part"):  # what a killed run has left
            path.unlink(missing_ok=True)

    def file(self, key: str) -> Path:
        """Where the state of this key is."""
        return self.folder / f"{key}{_SUFFIX}"

    def has(self, key: str) -> bool:
        """Whether it is stored; marks it as used now."""
        path = self.file(key)
        if not path.is_file():
            return False
        with contextlib.suppress(OSError):
            os.utime(path)
        return True

    def has_room(self) -> bool:
        """Whether the folder is there and its disk has space to spare."""
        try:
            return self.folder.is_dir() and shutil.disk_usage(self.folder).free >= _MIN_FREE_BYTES
        except OSError:
            return False

    def accept(self, key: str, written: str) -> None:
        """Take over a state written under another name in the folder, and delete the oldest beyond the limits."""
        (self.folder / written).replace(self.file(key))
        with contextlib.suppress(OSError):
            self.file(key).chmod(0o600)
        self._prune()

    def drop(self, key: str) -> None:
        """Delete one state, for example because it cannot be read."""
        self.file(key).unlink(missing_ok=True)

    def _prune(self) -> None:
        found = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError):  # another program may prune at the same time
                found.append((path.stat().st_mtime_ns, path.stat().st_size, path))
        total = 0
        for number, (_, size, path) in enumerate(sorted(found, reverse=True)):
            total += size
            if number and (number >= self.keep or total > self.max_bytes):
                path.unlink(missing_ok=True)


def delete_slot_states(folder: Path) -> int:
    """Delete all stored states and say how many there were. Call it when memory that was in a prompt must be gone."""
    count = 0
    for pattern in (f"*{_SUFFIX}", "*.part"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
            count += 1
    return count
