"""What encloses a place in the text: quotation marks, inline code, brackets and tags that opened before it.

Something that opened before a call counts only when it closes behind the call; a stray mark encloses nothing.
Quotation marks, inline code and round brackets live inside one paragraph, other brackets and tags in the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_CLOSERS = {"„": "”“", "“": "”", "«": "»", "»": "«", "‘": "’", "‚": "‘’", '"': '"', "'": "'"}
_BRACKETS = {"{": "}", "[": "]", "(": ")"}
_MAX_OPEN = 64


class Context:
    """The marks that are open at the scanner's position."""

    def __init__(self) -> None:
        self.ticks = 0
        self.quote = ""
        self.round = 0
        self._brackets: list[str] = []
        self._tags: list[str] = []
        # The farthest closing mark found for what is open now, so that many calls in one document are not each
        # searched for it again. Any change of what is open makes it void.
        self._closes_at = {False: -1, True: -1}

    def shift(self, by: int) -> None:
        """The text lost ``by`` characters at its beginning."""
        self._closes_at = {block: index - by for block, index in self._closes_at.items()}

    def _changed(self) -> None:
        self._closes_at = {False: -1, True: -1}

    def paragraph(self) -> None:
        """A blank line or a code block: what lives inside one paragraph is over."""
        self._changed()
        self.ticks = 0
        self.quote = ""
        self.round = 0

    def backticks(self, length: int) -> None:
        """A run of backticks opens inline code, or closes that of the same length."""
        self._changed()
        if self.ticks == length:
            self.ticks = 0
        elif not self.ticks:
            self.ticks = length

    def mark(self, char: str, before: str, after: str) -> None:
        """A quotation mark between two characters (empty at the ends of the text)."""
        if self.ticks:
            return
        self._changed()
        if self.quote:
            if char in _CLOSERS[self.quote] and (char != "'" or not after.isalnum()):
                self.quote = ""
            return
        if char not in _CLOSERS:
            return
        if char in "\"'" and (before.isalnum() or (char == "'" and (not after or after.isspace()))):
            return
        self.quote = char

    def bracket(self, char: str) -> None:
        """A bracket in prose."""
        if self.ticks:
            return
        self._changed()
        if char in "()":
            self.round = max(0, self.round + (1 if char == "(" else -1))
        elif char in "{[":
            if len(self._brackets) < _MAX_OPEN:
                self._brackets.append(char)
        elif self._brackets and _BRACKETS[self._brackets[-1]] == char:
            self._brackets.pop()

    def open_tag(self, name: str) -> None:
        """An opening tag that is not part of a call."""
        if not self.ticks and len(self._tags) < _MAX_OPEN:
            self._changed()
            self._tags.append(name.casefold())

    def close_tag(self, name: str) -> None:
        """A closing tag."""
        name = name.casefold()
        if name in self._tags:
            self._changed()
            while self._tags.pop() != name:
                pass

    def encloses(self, text: str, end: int, final: bool, *, block: bool) -> int | None:
        """Where something that is open now closes behind ``end``: the index of the closing mark.

        -1: nothing encloses the place. ``None``: the text does not tell yet. ``block``: the place is a code block,
        which no quotation mark and no inline code reaches over.
        """
        if self._closes_at[block] >= end:
            return self._closes_at[block]
        waiting = False
        closings: list[int] = []
        if not block and (self.ticks or self.quote or self.round):
            paragraph = _BLANK_LINE.search(text, end)
            # What stands at the very end may still become something else.
            limit = paragraph.start() if paragraph else len(text) if final else len(text) - 1
            closings += self._closings_here(text, end, limit)
            waiting = paragraph is None
        if self._brackets or self._tags:
            closings += self._closings_later(text, end)
            waiting = True
        if closings:
            self._closes_at[block] = max(closings)
            return max(closings)
        return None if waiting and not final else -1

    def closing_ticks(self, text: str, start: int, final: bool) -> int | None:
        """Where the inline code that is open now ends: an index behind ``start``, -1 for nowhere, or not known yet."""
        paragraph = _BLANK_LINE.search(text, start)
        limit = paragraph.start() if paragraph else len(text) if final else len(text) - 1
        for index in _found(self._tick_run(), text, start, limit):
            return index
        return -1 if paragraph or final else None

    def _tick_run(self) -> re.Pattern[str]:
        return re.compile(rf"(?<!`)`{{{self.ticks}}}(?!`)")

    def _closings_here(self, text: str, end: int, limit: int) -> Iterator[int]:
        if self.ticks:
            yield from _found(self._tick_run(), text, end, limit)
        if self.quote:
            pattern = r"'(?!\w)" if self.quote == "'" else f"[{_CLOSERS[self.quote]}]"
            yield from _found(re.compile(pattern), text, end, limit)
        if self.round:
            yield from _unmatched(text, end, limit, "(", ")")

    def _closings_later(self, text: str, end: int) -> Iterator[int]:
        for opener in set(self._brackets):
            yield from _unmatched(text, end, len(text), opener, _BRACKETS[opener])
        for name in set(self._tags):
            yield from _found(re.compile(rf"</{re.escape(name)}\s*>", re.IGNORECASE), text, end, len(text))


def _found(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[int]:
    """The first match that ends in front of ``end``. What follows ``end`` is still looked at."""
    match = pattern.search(text, start)
    if match is not None and match.end() <= end:
        yield match.start()


def _unmatched(text: str, start: int, end: int, opener: str, closer: str) -> Iterator[int]:
    """The first closing bracket without an opening one of its own."""
    depth = 0
    for match in re.compile(rf"[{re.escape(opener + closer)}]").finditer(text, start, end):
        depth += 1 if match.group() == opener else -1
        if depth < 0:
            yield match.start()
            return
