"""What the engine needs to know of the machine, and how its processes end with the program that started them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def physical_cores() -> int:
    """Cores that do real work in parallel, of those this process may use; at least 1.

    Two hyper-threads share one core's arithmetic units, and generating text is slower with a thread on each.
    """
    try:
        usable = len(os.sched_getaffinity(0))  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError):
        usable = os.cpu_count() or 1
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError):
            found = cores_in(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
            if found:
                return max(1, min(found, usable))
    if sys.platform == "darwin":
        for name in ("hw.perflevel0.physicalcpu", "hw.physicalcpu"):
            with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
                told = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=True)
                return max(1, int(told.stdout))
    # Elsewhere assume two threads a core on anything that is not small.
    return max(1, usable // 2 if usable > 4 else usable)


def cores_in(cpuinfo: str) -> int:
    """Different (package, core) pairs in the text of ``/proc/cpuinfo``; 0 when it does not tell."""
    pairs = set()
    for block in cpuinfo.split("\n\n"):
        package = re.search(r"^physical id\s*:\s*(\d+)", block, re.M)
        core = re.search(r"^core id\s*:\s*(\d+)", block, re.M)
        if core:
            pairs.add((package.group(1) if package else "0", core.group(1)))
    return len(pairs)


def die_with_parent() -> None:
    """Ask the system to kill this process when its parent dies (Linux; elsewhere the end of stdin does it)."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def on_stdin_end(action: Callable[[], object]) -> None:
    """Call ``action`` from a thread when standard input ends, which it does when the parent is gone."""

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        action()

    threading.Thread(target=watch, name="stdin-watch", daemon=True).start()
