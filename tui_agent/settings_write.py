"""Keeps one choice made in the app in the user's own ``config.yaml``, and leaves everything else there as it is."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path


def keep_setting(path: Path, key: str, value: str) -> None:
    """Write ``key: value`` at the top level of the YAML file at ``path``: in place of its line, else at the end.

    Comments, order and other keys stay. The value is written quoted, so that it is read as text.

    Raises:
        OSError: the file cannot be written; it is then as it was.
    """
    before = path.read_text("utf-8") if path.exists() else ""
    line = f"{key}: {json.dumps(value, ensure_ascii=False)}"
    pattern = re.compile(rf"^{re.escape(key)}[ \t]*:.*$", re.MULTILINE)
    if pattern.search(before):
        after = pattern.sub(lambda _: line, before, count=1)
    else:
        gap = "" if not before or before.endswith("\n") else "\n"
        after = f"{before}{gap}{line}\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(after)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
