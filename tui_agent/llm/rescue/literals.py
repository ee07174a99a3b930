"""JSON as small models write it, and the Python literals among it.

Containers go to the real JSON decoder first. Only when that refuses, a tolerant reader takes over, which accepts what
models do wrong in practice: raw newlines and invalid escapes in strings, single quotes, unescaped quotation marks
inside a string, trailing commas, Python words, bare keys, and missing final closers. A repair library is not used here
on purpose: the caller needs the end of the value, must know that every string was closed, and nothing may be guessed.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from tui_agent.llm.rescue.source import Cut, Hopeless, NeedMore, Source

_DECODER = json.JSONDecoder(strict=False)
_TO_QUOTE = {quote: re.compile(rf"[^{quote}\\]*(?:\\.[^{quote}\\]*)*{quote}", re.DOTALL) for quote in "\"'"}
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])")
_NUMBER_PART = re.compile(r"[+-]?[\d.eE+-]*")
_WORD = re.compile(r"[A-Za-z]+")
_BARE_KEY = re.compile(r"[A-Za-z_][\w-]*(?=\s*:)")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
# What may stand behind a call whose closers are missing: the end of its wrapper, or the next call.
_TERMINATOR = re.compile(r"</|```|~~~|<\||<｜|\[/|\[TOOL_|\[END_|<\w+\|>|<end_|<[\w-]*(?:tool|function|call)")
_KEY_LIKE = re.compile(r"[\w-]+[\"']?\s*:")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\n|.)", re.DOTALL)
_SIMPLE_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_MAX_DEPTH = 60

End = Literal["comma", "close", "auto"]


def parse_text(text: str) -> Any:
    """The value of a whole text, or ``None`` when it is not one value. A text in a text is opened once more."""
    for _ in range(2):
        source = Source(text, final=True)
        try:
            value, end = read_value(source, source.space(0), ",}]")
        except (Cut, Hopeless):
            return None
        if source.space(end) < len(text):
            return None
        if not isinstance(value, str):
            return value
        text = value
    return None


def read_value(source: Source, pos: int, follow: str, depth: int = 0) -> tuple[Any, int]:
    """One value at ``pos`` and the index behind it. ``follow``: characters that may stand behind a string here.

    Raises :class:`Hopeless` for anything that is no value.
    """
    char = source.char(pos)
    if not char:
        raise Cut
    if char in "\"'":
        return read_string(source, pos, follow)
    if char in "{[":
        return _read_container(source, pos, depth)
    if char.isdigit() or char in "+-":
        return _read_number(source, pos)
    word = _WORD.match(source.text, pos)
    if word is not None:
        if word.end() == len(source.text) and not source.final:
            raise NeedMore
        if word.group() in _WORDS:
            return _WORDS[word.group()], word.end()
        if word.end() == len(source.text):
            raise Cut
    raise Hopeless


def _read_number(source: Source, pos: int) -> tuple[Any, int]:
    part = _NUMBER_PART.match(source.text, pos)
    if part is not None and part.end() == len(source.text) and not source.final:
        raise NeedMore
    match = _NUMBER.match(source.text, pos)
    if match is None or len(match.group()) > 300:
        raise Hopeless
    text = match.group().lstrip("+")
    return (int(text) if text.lstrip("-").isdigit() else float(text)), match.end()


def _read_container(source: Source, pos: int, depth: int) -> tuple[Any, int]:
    try:
        value, end = _DECODER.raw_decode(source.text, pos)
        return value, end
    except (ValueError, RecursionError):
        pass
    if depth > _MAX_DEPTH:
        raise Hopeless
    return _read_object(source, pos, depth) if source.text[pos] == "{" else _read_array(source, pos, depth)


def _read_object(source: Source, pos: int, depth: int) -> tuple[dict[str, Any], int]:
    result: dict[str, Any] = {}
    pos = source.space(pos + 1)
    while True:
        char = source.char(pos)
        if not char:
            raise Cut
        if char == "}":
            return result, pos + 1
        key, pos = read_key(source, pos)
        pos = source.space(pos)
        if source.char(pos) != ":":
            source.more() if pos >= len(source.text) else _hopeless()
        value, pos = read_value(source, source.space(pos + 1), ",}]", depth + 1)
        result[key] = value
        end, pos = member_end(source, pos, "}")
        if end != "comma":
            return result, pos
        pos = source.space(pos)


def _read_array(source: Source, pos: int, depth: int) -> tuple[list[Any], int]:
    result: list[Any] = []
    pos = source.space(pos + 1)
    while True:
        char = source.char(pos)
        if not char:
            raise Cut
        if char == "]":
            return result, pos + 1
        value, pos = read_value(source, pos, ",]}", depth + 1)
        result.append(value)
        end, pos = member_end(source, pos, "]")
        if end != "comma":
            return result, pos
        pos = source.space(pos)


def _hopeless() -> None:
    raise Hopeless


def read_key(source: Source, pos: int) -> tuple[str, int]:
    """An object key, quoted or bare, and the index behind it."""
    char = source.char(pos)
    if char and char in "\"'":
        return read_string(source, pos, ":")
    bare = _BARE_KEY.match(source.text, pos)
    if bare is not None:
        return bare.group(), bare.end()
    if not source.final and re.fullmatch(r"[A-Za-z_][\w-]*\s*", source.text[pos : pos + 100]):
        raise NeedMore
    raise Hopeless


def member_end(source: Source, pos: int, own: str) -> tuple[End, int]:
    """What follows a member of an object or array whose closer is ``own``, and the index behind that.

    ``auto``: the closer is missing, and what follows shows that nothing else is. The index is then left in front of it.
    """
    here = source.space(pos)
    char = source.char(here)
    if not char:
        return "auto", pos
    if char == ",":
        return "comma", here + 1
    if char == own:
        return "close", here + 1
    if char in "}])":
        return "auto", here
    if own == "]" and char == "{":
        return "comma", here
    if _terminates(source, here):
        return "auto", pos
    if "\n" in source.text[pos:here]:
        if char.isalpha():
            line = source.text[here : here + 60]
            if not source.final and re.fullmatch(r"[\w-]+[\"']?\s*", line) and len(line) < 60:
                raise NeedMore
            if not _KEY_LIKE.match(line):
                return "auto", pos
        elif char == "{":
            return "auto", pos
    raise Hopeless


def _terminates(source: Source, pos: int) -> bool:
    if _TERMINATOR.match(source.text, pos):
        return True
    if not source.final and source.text[pos] in "<[`~" and len(source.text) - pos < 20:
        raise NeedMore
    return False


def read_string(source: Source, pos: int, follow: str) -> tuple[str, int]:
    """A quoted string at ``pos`` and the index behind it.

    It ends at the first quotation mark that one of ``follow`` (or the end of a wrapper) follows; others are text.
    """
    quote = source.text[pos]
    to_quote = _TO_QUOTE[quote]
    start = scan = pos + 1
    while True:
        match = to_quote.match(source.text, scan)
        if match is None:
            source.more()
        scan = match.end()
        if _string_ends(source, scan, follow):
            return unescape(source.text[start : scan - 1], quote), scan


def _string_ends(source: Source, pos: int, follow: str) -> bool:
    here = source.space(pos)
    char = source.char(here)
    if not char or char in follow:
        return True
    if ":" in follow:
        return False
    if _terminates(source, here):
        return True
    return "\n" in source.text[pos:here] and (char.isalpha() or char in "{")


def unescape(body: str, quote: str) -> str:
    """The text of a string without its quotation marks. Escapes that JSON does not know stay as they are."""
    if "\\" not in body:
        return body
    if quote == '"':
        try:
            return str(json.loads(f'"{body}"', strict=False))
        except ValueError:
            pass
    text = _ESCAPE.sub(_one_escape, body)
    try:
        # Two escaped halves of one character become that character; a lonely half stays.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return text


def _one_escape(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if code in "\"'\\/":
        return code
    return _SIMPLE_ESCAPES.get(code, match.group())
