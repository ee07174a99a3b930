"""How much memory this machine has, and which suggested model fits into it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

GB = 10**9
_GPU_TIMEOUT_S = 2.0
# Two places a container's limit may stand in: control groups version 2 and 1.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of main memory in all and free now, and of the largest graphics card; 0 where it cannot be known.

    ``shared`` says that the graphics card uses the main memory.
    """

    total: int = 0
    free: int = 0
    graphics: int = 0
    shared: bool = False

    @property
    def for_models(self) -> int:
        """Bytes a model and its window may take without pushing everything else out."""
        main = int(self.total * (0.7 if self.shared else 0.6))
        return max(main, int(self.graphics * 0.9))


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A model to begin with. ``download`` and ``needs`` are bytes: of the download, and of memory with an 8k window."""

    name: str
    download: int
    needs: int
    good_for: str


# Sizes as the library lists them (4-bit files); ``needs`` adds the window's cache and the runner itself.
SUGGESTIONS: tuple[Suggestion, ...] = (
    Suggestion("qwen2.5-coder:7b", int(4.7 * GB), int(6.0 * GB), "the default"),
    Suggestion("qwen2.5-coder:3b", int(1.9 * GB), int(3.0 * GB), "quicker, weaker"),
    Suggestion("qwen2.5-coder:1.5b", int(1.0 * GB), int(1.8 * GB), "for small machines"),
)


def suggestions(memory: Memory, wanted: str = "") -> list[Suggestion]:
    """Models that fit, the best first; the smallest alone where none does. ``wanted`` (from the settings) leads."""
    fits = [one for one in SUGGESTIONS if not memory.total or one.needs <= memory.for_models] or [SUGGESTIONS[-1]]
    if wanted and all(one.name != wanted for one in SUGGESTIONS):
        fits.insert(0, Suggestion(wanted, 0, 0, "named in your settings"))
    return fits


def read_memory() -> Memory:
    """What this machine has. Asks the graphics driver for at most two seconds; never raises."""
    total, free = _main()
    limit = _limit()
    if limit and (not total or limit < total):
        total, free = limit, min(free, limit)
    if sys.platform == "darwin":
        return Memory(total, free, 0, shared=True)
    return Memory(total, free, _graphics())


def _main() -> tuple[int, int]:
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            return meminfo(Path("/proc/meminfo").read_text("ascii", "replace"))
    if sys.platform == "win32":
        return _windows()
    total = 0
    with contextlib.suppress(OSError, ValueError, AttributeError):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    free = 0
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(["vm_stat"], capture_output=True, text=True, timeout=_GPU_TIMEOUT_S, check=True).stdout
        size = re.search(r"page size of (\d+)", told)
        pages = sum(map(int, re.findall(r"Pages (?:free|inactive|speculative):\s+(\d+)", told)))
        free = pages * int(size[1]) if size else 0
    return total, free


def meminfo(text: str) -> tuple[int, int]:
    """Total and available bytes in the text of ``/proc/meminfo``; 0 for what is not there."""
    found = {name: int(value) * 1024 for name, value in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    return found.get("MemTotal", 0), found.get("MemAvailable", found.get("MemFree", 0))


def _limit() -> int:
    for path in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            found = int(Path(path).read_text("ascii").strip())  # the word "max" means that there is none
            if 0 < found < 1 << 60:
                return found
    return 0


def _graphics() -> int:
    """The largest card, as NVIDIA's tool tells it."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_GPU_TIMEOUT_S, check=True,
        )  # fmt: skip
        return max(
            (int(one) * 1024 * 1024 for one in re.findall(r"^\s*(\d+)\s*$", told.stdout, re.MULTILINE)), default=0
        )
    return 0


def _windows() -> tuple[int, int]:
    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "a", "b", "c", "d", "e")),
        )

    status = Status()
    status.length = ctypes.sizeof(Status)
    kernel = getattr(ctypes, "windll", None)
    if kernel is None or not kernel.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return 0, 0
    return int(status.total), int(status.free)
