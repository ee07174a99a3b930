"""Chooses the grammar for one place in the text, and reads code blocks that are nothing but calls."""

from __future__ import annotations

import re

from tui_agent.llm.rescue import gemma, markers, markup, objects, pythonic
from tui_agent.llm.rescue.source import Cut, Hopeless, NeedMore, Reader, Undecided, Unit

# Languages of a code block that may be a call. Everything else is code for a reader.
_CALL_LANGUAGES = frozenset({"", "json", "tool_code", "python", "tool_call"})
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([^\n`]*)(?:\n|$)")
_ONE_LINE_FENCE = re.compile(r"(`{3,})[ \t]*(?:json)?[ \t]*(?=[{\[])", re.IGNORECASE)
_LABEL = re.compile(r"(?:json|tool_code)\r?\n")
# What is left of a gpt-oss header when its tokens are lost: ``assistantcommentary to=functions.name json{…}``.
ROLE_WORDS = r"(?:(?:assistant|commentary|analysis)[ \t]?){0,3}"
_HARMONY_BARE = re.compile(rf"{ROLE_WORDS}to=functions\.")
_HARMONY_PART = re.compile(rf"{ROLE_WORDS}([a-z]*(?:=[a-z]*)?)")
_HARMONY_WORDS = ("assistant", "commentary", "analysis", "to=functions.")
_LABELS = ("json\n", "json\r\n", "tool_code\n", "tool_code\r\n", "print(", "functions.", "call:")
_MAX_DEPTH = 4
SEPARATORS = re.compile(r"[\s;,]*")


def read_body(reader: Reader, pos: int, depth: int, marked: bool) -> Unit | None:
    """One call at ``pos`` inside a wrapper. ``marked``: the wrapper says that it is a call, so weak forms count."""
    if depth > _MAX_DEPTH:
        return None
    char = reader.char(pos)
    if char in ("{", "["):
        unit = _bracket(reader, pos, depth)
        return Unit(unit.end, unit.calls, unit.refusals, core=unit.core) if unit is not None else None
    if char == "<":
        return read_angle(reader, pos, depth)
    if char == "`" and depth > 0:
        return read_fence(reader, pos, depth) if reader.starts(pos, "```") else None
    if not marked or not (char.isalpha() or char == "_"):
        return None
    gemma_call = gemma.read_call(reader, pos, wrapped=True)
    if gemma_call is not None:
        return gemma_call
    return pythonic.read_call(reader, pos) or markers.read_named_arguments(reader, pos)


def _bracket(reader: Reader, pos: int, depth: int, *, bare_list: bool = True) -> Unit | None:
    if reader.text[pos] == "[":
        unit = markers.read_mistral(reader, pos, depth, read_body)
        if unit is not None:
            return unit
        first = reader.char(reader.space(pos + 1))
        if first != "{":
            return pythonic.read_list(reader, pos) if first and bare_list else None
    return objects.read_objects(reader, pos)


def read_angle(reader: Reader, pos: int, depth: int) -> Unit | None:
    """A call that begins with ``<``: special tokens first, then tags."""
    following = reader.char(pos + 1)
    if following in ("|", "｜"):
        if markers.special_may_follow(reader, pos):
            raise NeedMore
        return (
            markers.read_deepseek(reader, pos)
            or (
                markers.read_harmony(reader, pos) if reader.text.startswith(("<|start|>", "<|channel|>"), pos) else None
            )
            or markers.read_special(reader, pos, depth, read_body)
        )
    return markup.read_markup(reader, pos, depth, read_body)


def unit_at(reader: Reader, pos: int, *, line_start: bool) -> Unit | None:
    """The unit that begins at ``pos``. ``line_start``: nothing but blanks stand before it on its line."""
    char = reader.char(pos)
    if char in ("{", "["):
        return _bracket(reader, pos, 0, bare_list=line_start)
    if char == "<":
        return read_angle(reader, pos, 0)
    if char in ("`", "~"):
        return read_fence(reader, pos, 0) if fence_at(reader, pos, line_start=line_start) else None
    if not (char.isalpha() or char == "_"):
        return None
    return read_word(reader, pos, line_start=line_start)


# --- words: calls without any mark


def read_word(reader: Reader, pos: int, *, line_start: bool) -> Unit | None:
    """A call that begins with a word: ``call:…``, ``to=functions.…``, and at a line's start an offered name."""
    if not reader.final and _word_may_follow(reader, pos, line_start):
        raise NeedMore
    if reader.text.startswith("call:", pos):
        return gemma.read_call(reader, pos, wrapped=False)
    harmony = _HARMONY_BARE.match(reader.text, pos)
    if harmony is not None:
        return markers.read_harmony(reader, pos)
    if not line_start:
        return None
    label = _LABEL.match(reader.text, pos)
    if label is not None:
        at = reader.space(label.end())
        char = reader.char(at)
        if char in ("{", "["):
            return _bracket(reader, at, 0)
        return _named_lines(reader, at) if char.isalpha() else None
    return _named_lines(reader, pos)


def _word_may_follow(reader: Reader, pos: int, line_start: bool) -> bool:
    rest = reader.text[pos : pos + 120]
    if pos + 120 < len(reader.text):
        return False
    part = _HARMONY_PART.fullmatch(rest)
    if part is not None and any(word.startswith(part.group(1)) for word in _HARMONY_WORDS):
        return True
    if "call:".startswith(rest):
        return True
    if not line_start:
        return False
    if any(label.startswith(rest) for label in _LABELS):
        return True
    bare = rest.removeprefix("functions.")
    return any(name.startswith(bare) for name in reader.catalog.names)


def _named_lines(reader: Reader, pos: int) -> Unit | None:
    """Calls by an offered name that fill their line; several on a line are separated by ``;`` or ``,``."""
    units: list[Unit] = []
    while True:
        unit = _named_call(reader, pos)
        if unit is None:
            return None
        units.append(unit)
        pos = reader.blank(unit.end)
        char = reader.char(pos)
        if char in (";", ","):
            pos = reader.blank(pos + 1)
            char = reader.char(pos)
        if char in ("", "\n", "\r", "<"):
            return Unit.join(unit.end, units)


def _named_call(reader: Reader, pos: int) -> Unit | None:
    text = reader.text
    if not reader.final and _word_may_follow(reader, pos, True):
        raise NeedMore
    if text.startswith("print(", pos):
        unit = pythonic.read_call(reader, pos)
        return unit if unit is not None and (unit.calls or not any(r.unknown for r in unit.refusals)) else None
    name = reader.catalog.name_start.match(text, pos)
    if name is None:
        return None
    here = name.end()
    char = reader.char(here)
    if char in ("(", "."):
        if char == "." and not reader.starts(here, ".call("):
            return None
        return pythonic.read_call(reader, pos)
    if char in ("[", "{"):
        return markers.read_named_arguments(reader, pos)
    if char == "<" and reader.starts(here, "<|"):
        return markers.read_named_debris(reader, name.group(1), here)
    arguments = reader.space(here)
    if reader.char(arguments) == "<":
        return markup.read_arg_pairs(reader, name.group(1), here) if reader.starts(arguments, "<arg_key>") else None
    return pythonic.read_shell_line(reader, here, name.group(1))


# --- fences


def fence_at(reader: Reader, pos: int, *, line_start: bool) -> bool:
    """Whether a code block opens at ``pos``. In the middle of a line it needs a call language and a line break."""
    mark = reader.text[pos]
    run = re.compile(rf"{mark}+").match(reader.text, pos)
    if run is None:
        return False
    if run.end() == len(reader.text) and not reader.final:
        raise NeedMore
    if run.end() - pos < 3 or (mark == "~" and not line_start):
        return False
    fence = _FENCE.match(reader.text, pos)
    if fence is None:
        return line_start and _ONE_LINE_FENCE.match(reader.text, pos) is not None
    if line_start:
        return True
    language = fence.group(2).strip().casefold()
    if not fence.group().endswith("\n"):
        if not reader.final and any(known.startswith(language) for known in _CALL_LANGUAGES):
            raise NeedMore
        return False
    return language in _CALL_LANGUAGES and language != ""


def fence_marks(reader: Reader, pos: int) -> str:
    """The run of marks that opens the code block at ``pos``."""
    match = re.compile(r"`+|~+").match(reader.text, pos)
    return match.group() if match else ""


def read_fence(reader: Reader, pos: int, depth: int) -> Unit | None:
    """A code block that is nothing but calls. ``None`` when it is any other block."""
    fence = _FENCE.match(reader.text, pos)
    one_line = _ONE_LINE_FENCE.match(reader.text, pos) if fence is None else None
    if one_line is not None:
        marks, language, at = one_line.group(1), "json", one_line.end()
    elif fence is not None:
        if not fence.group().endswith("\n") and not reader.final:
            raise NeedMore
        marks, language, at = fence.group(1), fence.group(2).strip().casefold(), fence.end()
    else:
        return None
    if language not in _CALL_LANGUAGES:
        return None
    units: list[Unit] = []
    try:
        while True:
            at = _skip_separators(reader, at)
            if not reader.char(at) or reader.starts(at, marks):
                break
            unit = _fence_unit(reader, at, language, depth)
            if unit is None:
                closed = reader.text.find(marks, at) >= 0
                return None if closed or not units or language == "python" else _unclosed(reader, units)
            units.append(unit)
            at = unit.end
    except Hopeless:
        return None
    except Undecided:
        raise NeedMore if units else Undecided from None
    except Cut:
        if not units:
            raise
        at = len(reader.text)
    if not any(unit.calls or unit.refusals for unit in units):
        return None
    closing = re.compile(rf"{re.escape(marks)}{re.escape(marks[0])}*").match(reader.text, at)
    if closing is not None and closing.end() == len(reader.text) and not reader.final:
        raise NeedMore
    return Unit.join(closing.end() if closing else at, units, fenced=True)


def _unclosed(reader: Reader, units: list[Unit]) -> Unit:
    """Calls in a block that nobody closed, with prose behind them."""
    if not reader.final:
        raise NeedMore
    return Unit.join(units[-1].end, units, fenced=True)


def _skip_separators(reader: Reader, pos: int) -> int:
    match = SEPARATORS.match(reader.text, pos)
    return match.end() if match else pos


def _fence_unit(reader: Reader, pos: int, language: str, depth: int) -> Unit | None:
    char = reader.text[pos]
    if language in ("tool_code", "python"):
        if char.isalpha() or char in "_#":
            return pythonic.read_statement(reader, pos, executed=language == "tool_code")
        return read_body(reader, pos, depth + 1, False)
    if char.isalpha() or char == "_":
        unit = gemma.read_call(reader, pos, wrapped=False)
        if unit is not None:
            return unit
        return _named_call(reader, pos)
    if char == "<" or char in "{[":
        unit = read_body(reader, pos, depth + 1, False)
        return skip_extra(reader, unit) if unit is not None else None
    return None


def skip_extra(reader: Reader, unit: Unit) -> Unit:
    """A unit together with closing brackets that are one too many."""
    extra = re.compile(r"\s*[}\]]+(?=\s*(?:```|~~~|$))").match(reader.text, unit.end)
    if extra is None:
        return unit
    return Unit(extra.end(), unit.calls, unit.refusals, core=unit.core)
