"""Stretches of the answer that hold no call: where do they end? Each can be continued when more text has come.

``advance`` returns the index behind the stretch, or ``None`` when it goes on. A finished text ends it.
"""

from __future__ import annotations

import re
from typing import Protocol

_TO_QUOTE = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*{quote}", re.DOTALL) for quote in "\"'"}
_IN_QUOTE = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*", re.DOTALL) for quote in "\"'"}
_OPENING = re.compile(r"[\[{\s]*")


class Skip(Protocol):
    """A stretch that is being skipped."""

    def advance(self, text: str, final: bool) -> int | None:
        """The index behind the stretch, or ``None``."""

    def shift(self, by: int) -> None:
        """The text lost ``by`` characters at its beginning."""


def fence_end(text: str, marks: str, pos: int, final: bool) -> int | None:
    """The index behind the line that closes a code block, searched from ``pos``; ``None`` when it is not there yet."""
    closer = re.compile(rf"(?:^|\n)[ \t]*{re.escape(marks)}{re.escape(marks[0])}*[ \t]*(\r?\n|$)")
    match = closer.search(text, pos)
    if match is None or (not match.group(1) and not final):
        return len(text) if final else None
    return match.start(1)


class LineSkip:
    """The rest of this line is quoted."""

    def __init__(self, pos: int) -> None:
        self.pos = pos

    def advance(self, text: str, final: bool) -> int | None:
        end = text.find("\n", self.pos)
        if end < 0:
            self.pos = len(text)
            return len(text) if final else None
        return end

    def shift(self, by: int) -> None:
        self.pos -= by


class FenceSkip:
    """A code block for the reader."""

    def __init__(self, marks: str, pos: int) -> None:
        self.marks = marks
        self.pos = pos

    def advance(self, text: str, final: bool) -> int | None:
        end = fence_end(text, self.marks, self.pos, final)
        if end is None:
            # The last line may still become the closing one.
            self.pos = max(self.pos, text.rfind("\n"))
        return end

    def shift(self, by: int) -> None:
        self.pos -= by


class MarkSkip:
    """Everything up to and with a closing mark."""

    def __init__(self, mark: str, pos: int) -> None:
        self.mark = mark
        self.pos = pos

    def advance(self, text: str, final: bool) -> int | None:
        end = text.find(self.mark, self.pos)
        if end >= 0:
            return end + len(self.mark)
        self.pos = max(self.pos, len(text) - len(self.mark) + 1)
        return len(text) if final else None

    def shift(self, by: int) -> None:
        self.pos -= by


class StructureSkip:
    """Finds the end of a JSON-like structure without reading it; can be continued when more text has come.

    Counts brackets outside of strings. Single quotes are strings only where the first key has them.
    """

    def __init__(self, text: str, start: int) -> None:
        self.pos = start
        self._depth = 0
        self._quote = ""
        first = _OPENING.match(text, start)
        single = first is not None and text[first.end() : first.end() + 1] == "'"
        self._marks = re.compile(r"[{}\[\]\"']" if single else r"[{}\[\]\"]")

    def advance(self, text: str, final: bool) -> int | None:
        while True:
            if self._quote:
                match = _TO_QUOTE[self._quote].match(text, self.pos)
                if match is None:
                    return self._out_of_text(text, final)
                self.pos, self._quote = match.end(), ""
            mark = self._marks.search(text, self.pos)
            if mark is None:
                self.pos = len(text)
                return self._out_of_text(text, final)
            self.pos = mark.end()
            char = mark.group()
            if char in "\"'":
                self._quote = char
            elif char in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return self.pos

    def _out_of_text(self, text: str, final: bool) -> int | None:
        if final:
            return len(text)
        if self._quote:
            # Go on behind what is surely inside the string; a backslash waits for its partner.
            inside = _IN_QUOTE[self._quote].match(text, self.pos)
            self.pos = inside.end() if inside else self.pos
        return None

    def shift(self, by: int) -> None:
        self.pos -= by
