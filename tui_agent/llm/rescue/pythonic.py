"""Calls as Python (``name(key="value")``) and as a shell-like line (``name key="value"``)."""

from __future__ import annotations

import re
import shlex
from typing import Any

from tui_agent.llm.rescue import examples, literals
from tui_agent.llm.rescue.source import Cut, Hopeless, NeedMore, Reader, Refusal, Unit
from tui_agent.llm.types import ToolCall

_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_KEYWORD = re.compile(r"([A-Za-z_]\w*)\s*=(?!=)\s*")
_KEYWORD_PART = re.compile(r"[A-Za-z_]\w*\s*(?:=\s*)?")
_TRIPLE = re.compile(r"[rRuU]?(\"\"\"|''')")
_PREFIXED = re.compile(r"[rRuU](?=[\"'])")
_COMMENT = re.compile(r"#[^\n]*(?:\n|$)")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\s*=(?!=)\s*(?=[A-Za-z_])")
_PRINTED = re.compile(r"print\(\s*[A-Za-z_]\w*\s*\)")


def read_call(reader: Reader, pos: int) -> Unit | None:
    """``name(key=value, …)``, ``name.call(…)`` or ``print(name(…))`` at ``pos``.

    ``None`` when it is anything else: positional arguments, other Python code, prose.
    """
    name = _NAME.match(reader.text, pos)
    if name is None:
        return None
    if name.end() == len(reader.text):
        if reader.final:
            return None
        raise NeedMore
    if reader.text[name.end()] != "(":
        return None
    if name.group() == "print":
        inner_at = reader.space(name.end() + 1)
        reader.char(inner_at)
        if reader.starts(inner_at, "print("):
            return None
        inner = read_call(reader, inner_at)
        if inner is None:
            return None
        end = reader.space(inner.end)
        char = reader.char(end)
        if char and char != ")":
            return None
        return Unit.of(end + len(char), [*inner.calls, *inner.refusals])
    try:
        arguments, end = _read_keywords(reader, name.end() + 1)
    except Hopeless:
        return None
    if arguments is None:
        return None
    called = name.group()
    if reader.catalog.get(called) is None:
        called = called.removesuffix(".call")
    return Unit.of(end, [reader.check(called, arguments)])


def _read_keywords(reader: Reader, pos: int) -> tuple[dict[str, Any] | None, int]:
    arguments: dict[str, Any] = {}
    pos = reader.space(pos)
    while True:
        char = reader.char(pos)
        if not char:
            raise Cut
        if char == ")":
            return arguments, pos + 1
        keyword = _KEYWORD.match(reader.text, pos)
        if keyword is None or keyword.end() == len(reader.text):
            if _KEYWORD_PART.fullmatch(reader.text, pos):
                reader.more()
            return None, pos
        key = keyword.group(1)
        if key in arguments:
            return None, pos
        arguments[key], pos = _read_value(reader, keyword.end())
        end, pos = literals.member_end(reader, pos, ")")
        if end != "comma":
            return arguments, pos
        pos = reader.space(pos)


def _read_value(reader: Reader, pos: int) -> tuple[Any, int]:
    triple = _TRIPLE.match(reader.text, pos)
    if triple is not None:
        mark = triple.group(1)
        end = reader.text.find(mark, triple.end())
        if end < 0:
            # Two quotation marks may still be an empty string, but three never are.
            reader.more()
        body = reader.text[triple.end() : end]
        raw = triple.group()[0] in "rR"
        return (body if raw else literals.unescape(body, "'")), end + 3
    prefixed = _PREFIXED.match(reader.text, pos)
    if prefixed is not None:
        start = prefixed.end()
        value, end = literals.read_string(reader, start, ",)")
        return (reader.text[start + 1 : end - 1] if prefixed.group() in "rR" else value), end
    if not reader.final and reader.text[pos:] in ('""', "''", "r", "R", "u", "U"):
        raise NeedMore
    return literals.read_value(reader, pos, ",)")


def read_list(reader: Reader, pos: int) -> Unit | None:
    """``[name(key=value), …]`` at ``pos``."""
    units: list[Unit] = []
    pos = reader.space(pos + 1)
    while True:
        char = reader.char(pos)
        if char == "]" and units:
            return Unit.join(pos + 1, units)
        if not (char.isalpha() or char == "_"):
            return None
        unit = read_call(reader, pos)
        if unit is None:
            return None
        units.append(unit)
        try:
            end, pos = literals.member_end(reader, unit.end, "]")
        except Hopeless:
            return None
        if end != "comma":
            return Unit.join(pos, units)
        pos = reader.space(pos)


def read_statement(reader: Reader, pos: int, *, executed: bool) -> Unit | None:
    """One statement of a code block: a call, or a comment that announces no example.

    ``executed``: the block is meant to run (``tool_code``), not just Python. Then ``x = name(…)`` and ``print(x)``
    are accepted as well.
    """
    comment = _COMMENT.match(reader.text, pos)
    if comment is not None:
        if comment.end() == len(reader.text) and not reader.final:
            raise NeedMore
        return Unit(comment.end()) if examples.announcement(comment.group()) == "none" else None
    if executed:
        printed = _PRINTED.match(reader.text, pos)
        if printed is not None:
            return Unit(printed.end())
        assigned = _ASSIGNED.match(reader.text, pos)
        if assigned is not None:
            pos = assigned.end()
        elif not reader.final and re.fullmatch(r"[A-Za-z_]\w*\s*=?\s*", reader.text[pos : pos + 100]):
            raise NeedMore
    elif not _may_be_offered(reader, pos):
        return None
    return read_call(reader, pos)


def _may_be_offered(reader: Reader, pos: int) -> bool:
    """Whether the word at ``pos`` is, or may become, an offered name."""
    word = _NAME.match(reader.text, pos)
    if word is None:
        return False
    name = word.group().removeprefix("functions.")
    if word.end() < len(reader.text):
        return name in reader.catalog.tools or name == "print"
    return any(known.startswith(name) for known in (*reader.catalog.names, "functions.", "print"))


_SHELL_START = re.compile(r"[ \t]+[A-Za-z_]\w*=")
_SHELL_START_PART = re.compile(r"[ \t]*(?:[A-Za-z_]\w*)?")


def read_shell_line(reader: Reader, pos: int, name: str) -> Unit | None:
    """``name key="value" …`` that fills the rest of the line; ``pos`` is behind the name."""
    if _SHELL_START.match(reader.text, pos) is None:
        if not reader.final and _SHELL_START_PART.fullmatch(reader.text, pos):
            raise NeedMore
        return None
    end = reader.text.find("\n", pos)
    if end < 0:
        if not reader.final:
            raise NeedMore
        end = len(reader.text)
    try:
        words = shlex.split(reader.text[pos:end])
    except ValueError:
        return None
    arguments: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier() or key in arguments:
            return None
        arguments[key] = value
    outcome: ToolCall | Refusal = reader.check(name, arguments)
    return Unit.of(end, [outcome]) if isinstance(outcome, ToolCall) else None
