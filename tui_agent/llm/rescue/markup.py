"""Calls in XML-like markup: parameters as tags, and tags around a call of another kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tui_agent.llm.rescue import literals
from tui_agent.llm.rescue.source import Cut, Hopeless, NeedMore, Reader, Undecided, Unit, skip_closers

Body = Callable[[Reader, int, int, bool], Unit | None]

_NS = r"(?:[A-Za-z][\w-]*:)?"
_TAG = re.compile(r"<([A-Za-z_][\w.:-]*)((?:\s+[\w:.-]+\s*=\s*(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s<>\"']+))*)\s*(/?)>")
_TAG_PART = re.compile(
    r"<(?:[A-Za-z_][\w.:-]*(?:\s*=[^<>\n]{0,80}"
    r"|(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s<>\"']+))*"
    r"(?:\s+(?:[\w:.-]+(?:\s*=\s*(?:\"[^\"\n]*|'[^'\n]*|[^\s<>\"']*))?)?)?\s*/?)?)?"
)
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s<>\"']+))")
_FUNCTION = re.compile(
    rf"<{_NS}(?:function|invoke|tool|tool_call|call)(?:[ \t]*=[ \t]*|\s+name\s*=\s*)[\"']?([\w.\-]+)[\"']?[ \t]*>"
)
_PARAMETER_NAMES = r"(?:parameter|param|arg|argument)"
_PARAMETER = re.compile(
    rf"<{_NS}{_PARAMETER_NAMES}(?:[ \t]*=[ \t]*|\s+name\s*=\s*)[\"']?([\w.\-]+)[\"']?"
    r"(?:\s+[\w.-]+=\"[^\"\n]*\")*[ \t]*>"
)
_PARAMETER_END = re.compile(rf"</{_NS}{_PARAMETER_NAMES}>")
_AFTER_PARAMETER = re.compile(rf"\s*(?:<{_NS}(?:{_PARAMETER_NAMES}|function|invoke)\b|</)")
_FUNCTION_END = re.compile(rf"</{_NS}(?:function|invoke)>")
_ARG_KEY = re.compile(r"\s*<arg_key>([^<>\n]{1,80})</arg_key>\s*<arg_value>")
_ARG_VALUE_END = re.compile(r"</arg_value>")
_AFTER_ARG_VALUE = re.compile(r"\s*(?:<arg_key>|</|<tool_call>)")
_GLM_NAME = re.compile(r"\s*([\w.\-]+)(?=\s*<arg_key>|\s*</tool_call>)")
_MAX_TAG = 300

# Tags that mean "a call is inside": the body may also be a bare Python call or a name with its arguments.
_CALL_TAGS = re.compile(
    r"(?:[a-z][\w-]*:)?(?:start_)?(?:tool|function|invoke|action|call|command)[\w-]*", re.IGNORECASE
)
# Tags around what a tool gave back: skipped as a whole.
RESULT_TAGS = re.compile(
    r"(?:[a-z][\w-]*:)?(?:tool|function)[_-]?(?:call[_-]?)?(?:response|result|output)s?", re.IGNORECASE
)
# Tags around quoted material: a call inside is shown, not made.
_SHOWING_TAGS = re.compile(
    r"code|pre|blockquote|q|quote|samp|kbd|tt|xmp|textarea|script|summary|results?|observations?|documents?|logs?|files?"
    r"|examples?",
    re.IGNORECASE,
)


def tag_at(reader: Reader, pos: int) -> re.Match[str] | None:
    """The opening tag at ``pos`` (groups: name, attributes, slash), or ``None``; waits while it may become one."""
    match = _TAG.match(reader.text, pos)
    if match is None and tag_may_follow(reader, pos):
        raise NeedMore
    return match


def tag_may_follow(reader: Reader, pos: int) -> bool:
    """Whether the text from ``pos`` on is the beginning of a tag that is not finished yet."""
    rest = len(reader.text) - pos
    return not reader.final and rest <= _MAX_TAG and _TAG_PART.fullmatch(reader.text, pos) is not None


def read_markup(reader: Reader, pos: int, depth: int, body: Body) -> Unit | None:
    """A call in markup at ``pos``: by parameters, or a tag around a call. ``None`` when the tag is only a tag."""
    function = _FUNCTION.match(reader.text, pos)
    if function is not None:
        return _read_function(reader, function.group(1), function.end())
    tag = tag_at(reader, pos)
    if tag is None:
        return None
    name = tag.group(1)
    if RESULT_TAGS.fullmatch(name) or _SHOWING_TAGS.fullmatch(name):
        return None
    tool = reader.catalog.get(name)
    if tool is not None and (unit := _read_named_tag(reader, tag)) is not None:
        return unit
    if tag.group(3):
        return None
    return _read_wrapper(reader, tag, depth, body)


def _read_wrapper(reader: Reader, tag: re.Match[str], depth: int, body: Body) -> Unit | None:
    marked = _CALL_TAGS.fullmatch(tag.group(1)) is not None
    pos = reader.space(tag.end())
    char = reader.char(pos)
    if not char or (not marked and char not in "{["):
        return None
    if marked:
        glm = _read_glm(reader, pos)
        if glm is not None:
            return glm
    units: list[Unit] = []
    try:
        while (unit := body(reader, pos, depth + 1, marked)) is not None:
            units.append(unit)
            pos = _next_in_wrapper(reader, unit.end)
            if pos >= len(reader.text) or reader.text.startswith("</", pos):
                break
    except Hopeless:
        pass
    except Undecided:
        raise NeedMore if units else Undecided from None
    except Cut:
        if not units:
            raise
    if not units:
        return None
    if not marked and reader.char(reader.space(units[-1].end)) not in ("", "<"):
        return None
    return Unit.join(skip_closers(reader, units[-1].end), units)


def _next_in_wrapper(reader: Reader, pos: int) -> int:
    while True:
        pos = reader.space(pos)
        if reader.char(pos) not in (",", ";"):
            return pos
        pos += 1


def _read_function(reader: Reader, name: str, pos: int) -> Unit | None:
    """What follows ``<function=name>``: parameters, or one JSON object with the arguments."""
    at = reader.space(pos)
    char = reader.char(at)
    if char == "{":
        return _json_arguments(reader, name, at)
    arguments: dict[str, Any] = {}
    while True:
        at = reader.space(pos)
        char = reader.char(at)
        parameter = _PARAMETER.match(reader.text, at) if char == "<" else None
        if parameter is None:
            if char == "<" and tag_may_follow(reader, at):
                raise NeedMore
            closed = char == "<" and (reader.text.startswith("</", at) or _FUNCTION.match(reader.text, at) is not None)
            if not arguments and not closed:
                return None
            break
        value, pos = _read_until(reader, parameter.end(), _PARAMETER, _PARAMETER_END, _AFTER_PARAMETER)
        arguments[parameter.group(1)] = value
    return Unit.of(skip_closers(reader, pos), [reader.check(name, _typed(reader, name, arguments))], core=pos)


def _json_arguments(reader: Reader, name: str, pos: int) -> Unit:
    value, end = literals.read_value(reader, pos, ",}")
    return Unit.of(skip_closers(reader, end), [reader.check(name, value)], core=end)


def _read_until(
    reader: Reader, pos: int, opener: re.Pattern[str], closer: re.Pattern[str], after: re.Pattern[str]
) -> tuple[str, int]:
    """A value up to the closing tag that belongs to it, and the index behind that tag.

    A value may quote the markup itself: a closing tag counts only where a tag of the call follows, and openers in
    the value need their own closers. When that never works out, the first closing tag with a fit follower ends it, or
    the only closing tag, if it ends its line.
    """
    first: re.Match[str] | None = None
    loose: re.Match[str] | None = None
    scan, opened, closers = pos, 0, 0
    while True:
        match = closer.search(reader.text, scan)
        if match is None:
            if not reader.final:
                reader.more()
            if first is None and closers == 1 and loose is not None:
                first = loose
            if first is None:
                return _closed_by_function(reader, pos, opener)
            return _one_newline(reader.text[pos : first.start()]), first.end()
        closers += 1
        opened += sum(1 for _ in opener.finditer(reader.text, scan, match.start()))
        scan = match.end()
        at = reader.space(scan)
        if at >= len(reader.text):
            if not reader.final:
                raise NeedMore
            fits = True
        else:
            fits = after.match(reader.text, scan) is not None
            if not fits and reader.text[at] == "<" and tag_may_follow(reader, at):
                raise NeedMore
        if opened == 0 and fits:
            return _one_newline(reader.text[pos : match.start()]), match.end()
        if fits and first is None:
            first = match
        elif not fits and "\n" in reader.text[scan:at]:
            loose = match
        opened = max(0, opened - 1)


def _closed_by_function(reader: Reader, pos: int, opener: re.Pattern[str]) -> tuple[str, int]:
    """The last value without a closing tag of its own: the end of the function shows that it is complete."""
    end = _FUNCTION_END.search(reader.text, pos)
    if end is None or opener.search(reader.text, pos, end.start()):
        raise Cut
    return _one_newline(reader.text[pos : end.start()]), end.start()


def _one_newline(value: str) -> str:
    """The value without one leading and one trailing newline."""
    for newline in ("\r\n", "\n"):
        if value.startswith(newline):
            value = value[len(newline) :]
            break
    for newline in ("\r\n", "\n"):
        if value.endswith(newline):
            return value[: -len(newline)]
    return value


def _typed(reader: Reader, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Text values; nothing or a null word for an optional argument that is not text means that it is left out."""
    tool = reader.catalog.get(name)
    if tool is None:
        return arguments
    typed: dict[str, Any] = {}
    for key, value in arguments.items():
        optional = key in tool.parameters and key not in tool.required
        text = tool.parameters.get(key, {}).get("type", "string") == "string"
        typed[key] = None if optional and not text and value.strip() in ("", "null", "None") else value
    return typed


def _read_glm(reader: Reader, pos: int) -> Unit | None:
    """``name<arg_key>k</arg_key><arg_value>v</arg_value>…``; the opening ``<tool_call>`` may be missing."""
    name = _GLM_NAME.match(reader.text, pos)
    if name is None:
        if not reader.final and re.compile(r"[\w.\-]+\s*(?:</?[a-z_]*)?").fullmatch(reader.text, pos):
            raise NeedMore
        return None
    return read_arg_pairs(reader, name.group(1), name.end())


def read_arg_pairs(reader: Reader, name: str, pos: int) -> Unit | None:
    """Pairs of ``<arg_key>`` and ``<arg_value>`` from ``pos`` on."""
    arguments: dict[str, Any] = {}
    while True:
        at = reader.space(pos)
        if not reader.char(at) and not arguments:
            return None
        if not reader.text.startswith("<arg_key>", at):
            if reader.text[at : at + 1] == "<" and "<arg_key>".startswith(reader.text[at:]) and not reader.final:
                raise NeedMore
            break
        pair = _ARG_KEY.match(reader.text, at)
        if pair is None:
            if "</arg_key>" in reader.text[at : at + 120] and "<arg_value>" in reader.text[at : at + 240]:
                return None
            if len(reader.text) - at > 240:
                return None
            reader.more()
        value, pos = _read_until(reader, pair.end(), re.compile(r"<arg_value>"), _ARG_VALUE_END, _AFTER_ARG_VALUE)
        arguments[pair.group(1).strip()] = value
    return Unit.of(skip_closers(reader, pos), [reader.check(name, _typed(reader, name, arguments))], core=pos)


def _read_named_tag(reader: Reader, tag: re.Match[str]) -> Unit | None:
    """A tag whose name is an offered tool: arguments as attributes, as JSON inside, or as one tag each."""
    name = tag.group(1)
    tool = reader.catalog.get(name)
    attributes = {m.group(1): m.group(2) or m.group(3) or m.group(4) or "" for m in _ATTRIBUTE.finditer(tag.group(2))}
    if tag.group(3):
        unit = Unit.of(tag.end(), [reader.check(name, attributes)])
        return unit if unit.calls else None
    if attributes or tool is None:
        return None
    pos = reader.space(tag.end())
    char = reader.char(pos)
    if char == "{":
        value, end = literals.read_value(reader, pos, ",}")
        outcome = reader.check(name, value)
        unit = Unit.of(skip_closers(reader, end), [outcome], core=end)
        return unit if unit.calls else None
    arguments: dict[str, Any] = {}
    pos = tag.end()
    while True:
        at = reader.space(pos)
        if reader.char(at) != "<":
            return None
        if reader.starts(at, f"</{name}>"):
            break
        child = tag_at(reader, at)
        if child is None or child.group(1) not in tool.parameters or child.group(2) or child.group(3):
            return None
        key = child.group(1)
        end_tag = re.compile(rf"</{re.escape(key)}>")
        after = re.compile(rf"\s*(?:</{re.escape(name)}>|<[A-Za-z_])")
        arguments[key], pos = _read_until(reader, child.end(), re.compile(rf"<{re.escape(key)}>"), end_tag, after)
    if not arguments:
        return None
    unit = Unit.of(at + len(name) + 3, [reader.check(name, _typed(reader, name, arguments))])
    return unit if unit.calls else None
