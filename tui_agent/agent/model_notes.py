"""What was found out about models, by digest, in one small file of the user's state folder.

The digest is the model's content: a model that is pulled anew is another one and is looked at again.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tui_agent.memory.text import utc_now

_VERSION = 1
_MOST = 300


@dataclass(frozen=True, slots=True)
class ModelNote:
    """``tools`` is ``native``, ``text``, ``none`` or empty (never tried); ``tools_refused`` means that the server fails
    whenever tools are on offer, ``think_refused`` that it refuses to let the model think although it says it can.
    ``name`` and ``server`` (the server's version) are those of the time ``at`` (UTC) when it was noted.
    """

    tools: str = ""
    tools_refused: bool = False
    think_refused: bool = False
    name: str = ""
    server: str = ""
    at: str = ""


class ModelNotes:
    """Reads and writes the notes. A file that is missing or damaged is an empty one; trouble in writing is not told,
    since everything in it can be found out again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def get(self, digest: str) -> ModelNote:
        """What is known of this content; an empty note when nothing is, or the digest is not known."""
        return self._read().get(digest, ModelNote()) if digest else ModelNote()

    def put(self, digest: str, **changes: Any) -> None:
        """Note something (fields of :class:`ModelNote`)."""
        if not digest:
            return
        with self._lock:
            notes = self._read()
            notes[digest] = replace(notes.pop(digest, ModelNote()), at=utc_now(), **changes)
            self._write(dict(list(notes.items())[-_MOST:]))

    def _read(self) -> dict[str, ModelNote]:
        try:
            data = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        models = data.get("models") if isinstance(data, Mapping) and data.get("version") == _VERSION else None
        if not isinstance(models, Mapping):
            return {}
        return {str(digest): _note(fields) for digest, fields in models.items() if isinstance(fields, Mapping)}

    def _write(self, notes: Mapping[str, ModelNote]) -> None:
        data = {"version": _VERSION, "models": {digest: asdict(note) for digest, note in notes.items()}}
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".models.", suffix=".tmp")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(data, file, ensure_ascii=False, indent=1)
                Path(temporary).replace(self.path)
            finally:
                Path(temporary).unlink(missing_ok=True)


def _note(fields: Mapping[str, Any]) -> ModelNote:
    empty = ModelNote()
    known: dict[str, Any] = {
        name: fields[name] for name, default in asdict(empty).items() if isinstance(fields.get(name), type(default))
    }
    return replace(empty, **known)
