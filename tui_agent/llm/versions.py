"""What is known of versions of the model server: which are too old, and which have faults a user should hear of.

A bad one is named, so that its faults are not taken for ours. Only one thing is sent differently: with tools, servers
that are too old are asked for whole answers, since they stream calls as raw text.
"""

from __future__ import annotations

import re

OLDEST = (0, 9, 0)
RECOMMENDED = (0, 30, 1)
# First and last bad version, and what is wrong in between.
_BAD: tuple[tuple[tuple[int, int, int], tuple[int, int, int], str], ...] = (
    ((0, 30, 0), (0, 30, 0), "its token counts leave out what was cached"),
    ((0, 32, 4), (0, 32, 5), "its tool calls are known to fail"),
    ((0, 32, 6), (0, 32, 14), "a tool call it cannot read blocks the model until it is unloaded"),
)


def parse_version(text: str) -> tuple[int, int, int] | None:
    """``0.33.0-rc2`` as ``(0, 33, 0)``; ``None`` for development builds (``0.0.0``) and what is no version."""
    found = re.match(r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?", text.strip())
    if found is None:
        return None
    version = int(found[1]), int(found[2]), int(found[3] or 0)
    return version if any(version) else None


def is_too_old(text: str) -> bool:
    """Whether tools and streaming do not work together with this server."""
    version = parse_version(text)
    return version is not None and version < OLDEST


def trouble_with(text: str) -> str:
    """What to know of this version, as one sentence with what to do; empty when nothing is."""
    version = parse_version(text)
    if version is None:
        return ""
    if version < OLDEST:
        newer = f"{_dotted(RECOMMENDED)} or newer"
        what = "it cannot stream answers with tools, so they come whole"
        return f"Ollama {text} is too old: {what}. Update it to {newer}."
    for first, last, what in _BAD:
        if first <= version <= last:
            return f"Ollama {text} has a known fault: {what}. Update it."
    if version < RECOMMENDED:
        return f"Ollama {text} works, with weaker tool calls; {_dotted(RECOMMENDED)} or newer is better."
    return ""


def _dotted(version: tuple[int, int, int]) -> str:
    return ".".join(map(str, version))
