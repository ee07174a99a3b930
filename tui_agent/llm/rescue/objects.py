"""Calls as JSON: an object, an array of them, a ``tool_calls`` wrapper, or several in a row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tui_agent.llm.rescue import literals
from tui_agent.llm.rescue.source import Cut, Hopeless, NeedMore, Reader, Refusal, Undecided, Unit
from tui_agent.llm.types import ToolCall

_NAME_KEYS = ("name", "tool", "tool_name", "function_name", "recipient_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args")
_WRAPPER_KEYS = ("toolcalls", "toolcall", "functioncalls", "functioncall", "tooluses")
_META_KEYS = ("id", "tool_call_id", "call_id", "index")
_TYPES = ("function", "tool", "tool_call", "tool_use", "function_call")
# Every key that may stand at the level of a call. One other key makes the object a document.
_KEYS = (*_NAME_KEYS, *_ARGUMENT_KEYS, *_META_KEYS, "function", "type", "content")
_KEY = re.compile(
    r"(?:(?P<quote>[\"'])(?P<quoted>[^\"'\n<`{}\[\]():=]{0,80})(?P=quote)|(?P<bare>[A-Za-z_]\w{0,40}))\s*:"
)
_KEY_PART = re.compile(r"[\"'][^\"'\n<`{}\[\]():=]{0,80}(?:[\"']\s*)?|[A-Za-z_]\w{0,40}\s*")
_PLAIN_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_PLAIN_STRING_PART = re.compile(r"\"(?:[^\"\\\n]|\\.)*\\?|'(?:[^'\\\n]|\\.)*\\?")


@dataclass(slots=True)
class _Members:
    """What was read of one object at call level."""

    name: str | None = None
    arguments: Any = None
    has_arguments: bool = False
    calls: list[ToolCall | Refusal] | None = None


def looks_like_object(reader: Reader, pos: int) -> bool:
    """Whether the brace at ``pos`` opens an object (a key and a colon follow), not just a brace in prose."""
    key = reader.space(pos + 1)
    if _KEY.match(reader.text, key):
        return True
    if not reader.final and (key >= len(reader.text) or _KEY_PART.fullmatch(reader.text, key)):
        part = reader.text[key:].rstrip().strip("\"'")
        if any(known.startswith(part) for known in _KEYS) or _normal(part) in _WRAPPER_KEYS or _begins_wrapper(part):
            raise NeedMore
        raise Undecided
    return False


def _begins_wrapper(part: str) -> bool:
    return any(known.startswith(_normal(part)) for known in _WRAPPER_KEYS)


def _normal(key: str) -> str:
    return re.sub(r"[^a-z]", "", key.casefold())


def read_objects(reader: Reader, pos: int) -> Unit | None:
    """A JSON object or array at ``pos`` as a unit.

    ``None``: no structure begins here. :class:`Hopeless`: a structure that is no call.
    """
    if reader.text[pos] == "[":
        first = reader.space(pos + 1)
        if reader.char(first) != "{" or not looks_like_object(reader, first):
            return None
        outcomes, end = _read_array(reader, pos, 0)
    else:
        # Some chat templates show the call with doubled braces, and the model copies them. Glued to other text (as in
        # ``${{…}}``) they are a template's own.
        doubled = reader.text.startswith("{{", pos) and reader.text[pos - 1 : pos] in ("", " ", "\t", "\n", ">", "`")
        begin = pos + doubled
        if not looks_like_object(reader, begin):
            return None
        outcomes, end = _read_object(reader, begin, 0)
        if doubled:
            end = _second_brace(reader, end)
    return Unit.of(end, outcomes, data=True)


def _second_brace(reader: Reader, end: int) -> int:
    closer = reader.space(end)
    return closer + 1 if reader.char(closer) == "}" else end


def _read_array(reader: Reader, pos: int, level: int) -> tuple[list[ToolCall | Refusal], int]:
    outcomes: list[ToolCall | Refusal] = []
    pos = reader.space(pos + 1)
    while True:
        char = reader.char(pos)
        if not char:
            raise Cut
        if char == "]" and outcomes:
            return outcomes, pos + 1
        if char != "{":
            raise Hopeless
        found, pos = _read_object(reader, pos, level + 1)
        outcomes += found
        end, pos = literals.member_end(reader, pos, "]")
        if end != "comma":
            return outcomes, pos
        pos = reader.space(pos)


def _read_object(reader: Reader, pos: int, level: int) -> tuple[list[ToolCall | Refusal], int]:
    if level > 4:
        raise Hopeless
    members = _Members()
    pos = reader.space(pos + 1)
    while True:
        char = reader.char(pos)
        if not char:
            raise Cut
        if char == "}":
            return _outcome(reader, members), pos + 1
        key, pos = _read_call_key(reader, pos)
        pos = _read_member(reader, reader.space(pos), key, members, level)
        end, pos = literals.member_end(reader, pos, "}")
        if end != "comma":
            return _outcome(reader, members), pos
        pos = reader.space(pos)


def _read_call_key(reader: Reader, pos: int) -> tuple[str, int]:
    match = _KEY.match(reader.text, pos)
    if match is None:
        part = _KEY_PART.fullmatch(reader.text, pos)
        if part is not None:
            text = part.group().rstrip().strip("\"'")
            if reader.final or any(known.startswith(text) for known in _KEYS) or _begins_wrapper(text):
                reader.more()
        raise Hopeless
    return match.group("quoted") if match.group("quote") else match.group("bare"), match.end()


def _read_member(reader: Reader, pos: int, key: str, members: _Members, level: int) -> int:
    char = reader.char(pos)
    if not char:
        raise Cut
    if key in _NAME_KEYS or (key == "function" and char in "\"'"):
        if members.name is not None:
            raise Hopeless
        members.name, pos = _plain_string(reader, pos)
        return pos
    if key in _ARGUMENT_KEYS:
        if members.has_arguments or char not in "{\"'nN":
            raise Hopeless
        members.has_arguments = True
        members.arguments, pos = literals.read_value(reader, pos, ",}]")
        return pos
    if key == "function" or _normal(key) in _WRAPPER_KEYS:
        if members.calls is not None:
            raise Hopeless
        members.calls, pos = _inner_calls(reader, pos, level)
        return pos
    if key == "type":
        value, pos = _plain_string(reader, pos)
        if value.casefold() not in _TYPES:
            raise Hopeless
        return pos
    if key in _META_KEYS or key == "content":
        if char in "{[":
            raise Hopeless
        value, pos = literals.read_value(reader, pos, ",}]")
        if key == "content" and value not in (None, ""):
            raise Hopeless
        return pos
    raise Hopeless


def _plain_string(reader: Reader, pos: int) -> tuple[str, int]:
    match = _PLAIN_STRING.match(reader.text, pos)
    if match is None:
        if _PLAIN_STRING_PART.fullmatch(reader.text, pos):
            reader.more()
        raise Hopeless
    quoted = match.group()
    return literals.unescape(quoted[1:-1], quoted[0]), match.end()


def _inner_calls(reader: Reader, pos: int, level: int) -> tuple[list[ToolCall | Refusal], int]:
    char = reader.text[pos]
    if char == "{":
        return _read_object(reader, pos, level + 1)
    if char == "[":
        return _read_array(reader, pos, level + 1)
    if char in "\"'":
        text, end = literals.read_string(reader, pos, ",}]")
        inner = Reader(text, final=True, catalog=reader.catalog)
        begin = inner.space(0)
        if inner.char(begin) not in ("{", "["):
            raise Hopeless
        unit = read_objects(inner, begin)
        if unit is None or inner.space(unit.end) < len(text):
            raise Hopeless
        return [*unit.calls, *unit.refusals], end
    raise Hopeless


def _outcome(reader: Reader, members: _Members) -> list[ToolCall | Refusal]:
    if members.calls is not None:
        if members.name is not None or members.has_arguments:
            raise Hopeless
        return members.calls
    if members.name is None or not members.name.strip():
        raise Hopeless
    if not members.has_arguments:
        # A name alone is data, unless a tool of this name works without arguments.
        tool = reader.catalog.get(members.name)
        if tool is None or tool.required:
            raise Hopeless
    return [reader.check(members.name, members.arguments)]
