"""Calls of Gemma: ``call:name{key:value,…}``, strings between ``<escape>`` or ``<|"|>`` marks, or bare."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tui_agent.llm.rescue import literals
from tui_agent.llm.rescue.catalog import types_of
from tui_agent.llm.rescue.source import Cut, Hopeless, NeedMore, Reader, Unit

_HEAD = re.compile(r"call:\s{0,4}([\w.\-]{1,80}(?:\s?:\s?[\w.\-]{1,80}){0,2})\s{0,4}([{(])")
_HEAD_PART = re.compile(r"call:\s{0,4}(?:[\w.\-]{1,80}\s?(?::\s?)?){0,3}\s{0,4}")
_KEY = re.compile(r"[\"']?([A-Za-z_][\w\-]*)[\"']?\s*[:=]\s*")
_KEY_PART = re.compile(r"[\"']?(?:[A-Za-z_][\w\-]*[\"']?\s*(?:[:=]\s*)?)?")
_MAX_DEPTH = 20
_MARKS = ('<|"|>', "<escape>")
_CLOSER_OF = {"{": "}", "(": ")", "[": "]"}
_RAW_STOP = re.compile(r"[{}()\[\],\n]")


def read_call(reader: Reader, pos: int, *, wrapped: bool) -> Unit | None:
    """``call:name{…}`` or ``call:name(…)`` at ``pos``, also with the name doubled.

    ``wrapped``: it stands inside call marks, so bare values may go over several lines.
    """
    if not reader.starts(pos, "call:"):
        return None
    head = _HEAD.match(reader.text, pos)
    if head is None:
        if not reader.final and _HEAD_PART.fullmatch(reader.text, pos):
            raise NeedMore
        return None
    names = [part.strip() for part in head.group(1).split(":")]
    tool = reader.catalog.get(names[-1])
    try:
        values, end = _Values(reader, tool.parameters if tool else {}, wrapped).read_members(head.end(), head.group(2))
    except Hopeless:
        return None
    if tool is not None:
        # A bare null is how these models leave an optional argument out.
        values = {k: None if v == "null" and k not in tool.required else v for k, v in values.items()}
    return Unit.of(end, [reader.check(names[-1], values)])


class _Values:
    """Reader of the members of one call; the parameters decide where a bare value ends."""

    def __init__(self, reader: Reader, parameters: Mapping[str, Mapping[str, Any]], wrapped: bool) -> None:
        self.reader = reader
        self.parameters = parameters
        self.wrapped = wrapped
        self.depth = 0

    def read_members(self, pos: int, opener: str) -> tuple[dict[str, Any], int]:
        """The members behind ``opener`` and the index behind the closer."""
        reader, own = self.reader, _CLOSER_OF[opener]
        values: dict[str, Any] = {}
        pos = reader.space(pos)
        while True:
            char = reader.char(pos)
            if not char:
                raise Cut
            if char == own:
                return values, pos + 1
            key = _KEY.match(reader.text, pos)
            if key is None or key.end() == len(reader.text):
                if _KEY_PART.fullmatch(reader.text, pos):
                    reader.more()
                raise Hopeless
            values[key.group(1)], pos = self._read_value(key.end(), own, self._types(key.group(1)))
            end, pos = literals.member_end(reader, pos, own)
            if end != "comma":
                return values, pos
            pos = reader.space(pos)

    def _types(self, key: str) -> tuple[str, ...]:
        return types_of(self.parameters.get(key, {}))

    def _read_value(self, pos: int, own: str, types: tuple[str, ...]) -> tuple[Any, int]:
        reader = self.reader
        char = reader.char(pos)
        for mark in _MARKS:
            if char == "<" and reader.starts(pos, mark):
                end = reader.text.find(mark, pos + len(mark))
                if end < 0:
                    reader.more()
                return reader.text[pos + len(mark) : end], end + len(mark)
        if char and char in "\"'":
            return literals.read_string(reader, pos, "," + own)
        if char == "[" and "array" in types:
            return self._read_items(pos + 1)
        if char == "{" and "object" in types:
            if self.depth >= _MAX_DEPTH:
                raise Hopeless
            self.depth += 1
            members = self.read_members(pos + 1, "{")
            self.depth -= 1
            return members
        return self._read_bare(pos, own)

    def _read_items(self, pos: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        pos = self.reader.space(pos)
        while True:
            char = self.reader.char(pos)
            if not char:
                raise Cut
            if char == "]":
                return items, pos + 1
            item, pos = self._read_value(pos, "]", ())
            items.append(item)
            end, pos = literals.member_end(self.reader, pos, "]")
            if end != "comma":
                return items, pos
            pos = self.reader.space(pos)

    def _read_bare(self, pos: int, own: str) -> tuple[str, int]:
        """A value without any marks: up to the closer, or to a comma before the next parameter."""
        reader, start, depth = self.reader, pos, 0
        while True:
            stop = _RAW_STOP.search(reader.text, pos)
            if stop is None:
                reader.more()
            char = stop.group()
            if char == "\n" and not self.wrapped:
                raise Hopeless
            if char in "{([":
                depth += 1
            elif char in "})]":
                if depth == 0 and char == own:
                    return reader.text[start : stop.start()].strip(), stop.start()
                depth = max(0, depth - 1)
            elif char == "," and depth == 0 and self._member_follows(stop.end(), own):
                return reader.text[start : stop.start()].strip(), stop.start()
            pos = stop.end()

    def _member_follows(self, pos: int, own: str) -> bool:
        if own == "]":
            return True
        pos = self.reader.space(pos)
        key = _KEY.match(self.reader.text, pos)
        if key is not None:
            return key.group(1) in self.parameters
        if not self.reader.final and (pos >= len(self.reader.text) or _KEY_PART.fullmatch(self.reader.text, pos)):
            raise NeedMore
        return False
