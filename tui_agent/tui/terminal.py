"""What Textual does not know of terminals yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from textual import _ansi_sequences

ALT_ENTER = "alt+enter"


def teach_alt_enter() -> None:
    """Read escape followed by return as ``alt+enter``: that is what terminals without the newer key protocol send for
    it, and Textual reads it as plain enter, which would send a half-written message."""
    known = cast("dict[str, Any]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    known.setdefault("\x1b\r", (SimpleNamespace(value=ALT_ENTER),))
