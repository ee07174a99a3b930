"""Texts that the clipboard cannot take, as files in a folder of the app's own.

Delete forever reaches them there, `memory paths` names them, and they are gone when the window that wrote them is
closed, or at the next start when that was killed (not on Windows, where it cannot be asked what still runs).
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tui_agent.project import UserPaths

_OURS = re.compile(r"copy-(\d+)-")


@dataclass(frozen=True, slots=True)
class KeptCopy:
    """The ``file`` a text was written to, ``masked`` when a secret was left out of it; ``trouble`` says why there is
    none."""

    file: str = ""
    masked: bool = False
    trouble: str = ""


def keep_copy(text: str, folder: Path | None = None) -> KeptCopy:
    """Write ``text`` to a file for the user alone, in ``folder`` or the app's own. Secrets are left out, as they are of
    everything that is written. Never raises."""
    from tui_agent.memory.secrets import redact

    folder = folder or UserPaths.find().copies_dir
    clean = redact(text)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f"copy-{os.getpid()}-", suffix=".txt", dir=folder)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(clean.text)
    except OSError as error:
        return KeptCopy(trouble=f"{folder} cannot be written: {error.strerror or error}")
    return KeptCopy(name, bool(clean.findings))


def tidy_copies(folder: Path | None = None, *, closing: bool = False) -> None:
    """Remove the files of windows that are gone, and with ``closing`` those of this one."""
    from tui_agent.memory.holding import is_running

    folder = folder or UserPaths.find().copies_dir
    with contextlib.suppress(OSError):
        for path in list(folder.iterdir()):
            found = _OURS.match(path.name)
            pid = int(found[1]) if found else 0
            gone = os.name == "posix" and not is_running(pid)
            if found and (gone or (closing and pid == os.getpid())):
                path.unlink(missing_ok=True)
