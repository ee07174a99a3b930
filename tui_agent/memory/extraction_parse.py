"""Reading what a model answers when it is asked for facts as JSON; small models rarely answer with just that.

Nothing here raises and nothing is invented: what is cut off, unreadable or of another shape is left out.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tui_agent.memory.types import Kind, kind_of

_LONGEST = 200_000
# Repairing is quick only for what is about as large and as deep as an answer; else its parts are looked at one by one.
_LONGEST_REPAIRED, _DEEPEST_REPAIRED = 8_000, 4
_LONGEST_FACT, _LONGEST_QUOTE = 600, 1200
_DEEPEST = 6
_THINKING = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THINKING_END = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_OPENERS = {"{": "}", "[": "]"}
_BEFORE_A_VALUE = "{[,:"
_AFTER_A_STRING = ",:}]\n"

# Plurals and neighbours of the five kinds, as models write them; ``kind_of`` knows the names themselves.
_KIND_WORDS: dict[Kind, str] = {
    Kind.FACT: "facts info information fakty informacja факты информация",
    Kind.PREFERENCE: "preferences preferencje предпочтения",
    Kind.DECISION: "decisions decyzje решения",
    Kind.CONVENTION: "conventions rule rules konwencje zasada zasady reguła reguły соглашения правило правила",
    Kind.PROBLEM: "problems issue issues bug bugs problemy błąd błędy проблемы ошибка ошибки",
}
_KINDS = {word: kind for kind, words in _KIND_WORDS.items() for word in words.split()}


@dataclass(frozen=True, slots=True)
class ExtractedItem:
    """One item of a model's answer, cleaned. ``quote`` and ``message_id`` are what the model claims, or empty.

    ``rated`` is whether the answer named an importance at all; without one it is 5.
    """

    fact: str
    kind: Kind = Kind.DECISION
    importance: int = 5
    quote: str = ""
    message_id: str = ""
    subject: str = ""
    rated: bool = True


def parse_items(raw: str) -> list[ExtractedItem]:
    """The items of an answer in order: a list, one object, objects line by line, a wrapper under any key, in a fence or
    in prose, with trailing commas or single quotes, after thinking. A list that was cut keeps its complete items."""
    return [item for value in json_values(raw) for item in _items(value)]


# --- items ----------------------------------------------------------------------------------------


def _items(value: Any, depth: int = 0) -> Iterator[ExtractedItem]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for entry in value:
            yield from _items(entry, depth + 1)
    elif isinstance(value, dict):
        fields = {str(name).strip().casefold(): entry for name, entry in value.items()}
        fact = _text(fields.get("fact"), _LONGEST_FACT)
        if fact is not None:
            if any(map(str.isalnum, fact)):
                yield _item(fact, fields)
            return
        for entry in value.values():
            if isinstance(entry, (list, dict)):
                yield from _items(entry, depth + 1)


def _item(fact: str, fields: dict[str, Any]) -> ExtractedItem:
    message_id = fields.get("message_id")
    return ExtractedItem(
        fact=fact,
        kind=read_kind(fields.get("category", fields.get("kind"))),
        importance=clamp_importance(fields.get("importance")),
        quote=_text(fields.get("quote"), _LONGEST_QUOTE) or "",
        message_id=str(message_id).strip()[:64] if isinstance(message_id, (str, int)) else "",
        subject=_text(fields.get("subject"), 80) or "",
        rated=clamp_importance(fields.get("importance"), 0) > 0,
    )


def _text(value: Any, longest: int) -> str | None:
    """A text in one line; ``None`` for what is none or is too long to be meant."""
    if not isinstance(value, str):
        return None
    # Half a surrogate pair cannot be stored.
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "")
    line = " ".join(unicodedata.normalize("NFC", whole).split())
    return line if len(line) <= longest else None


def read_kind(name: object) -> Kind:
    """The kind a model names: its own word for it in three languages, also in the plural; a decision when unknown."""
    word = str(name or "").strip().casefold()
    return _KINDS.get(word) or kind_of(word)


def clamp_importance(value: object, default: int = 5) -> int:
    """An importance from 1 to 10, whatever was given; what is no number counts as ``default``."""
    if isinstance(value, bool):
        return default
    if isinstance(value, str):
        value = value.strip().partition("/")[0]  # "8/10" is meant as 8
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return default
    return default if math.isnan(number) else int(min(max(number, 1.0), 10.0))


# --- values in a text -----------------------------------------------------------------------------


def json_values(raw: str) -> Iterator[Any]:
    """The outermost JSON lists and objects in an answer that can be read, in order; thinking is left out."""
    raw = raw[:_LONGEST]
    whole = _loads(raw.strip())
    if isinstance(whole, (list, dict)):
        yield whole
        return
    text = _without_thinking(raw)
    pairs = _pairs(text)
    at = 0
    while at < len(text):
        end, height = pairs.get(at, (at, _DEEPEST + 1))
        if height <= _DEEPEST:
            value = _read(text[at : end + 1], height)
            if isinstance(value, (list, dict)):
                yield value
                at = end
        at += 1


def _without_thinking(raw: str) -> str:
    text = _THINKING.sub(" ", raw)
    closers = list(_THINKING_END.finditer(text))
    return text[closers[-1].end() :] if closers else text


def _pairs(text: str) -> dict[int, tuple[int, int]]:
    """For each bracket the one that closes it, and how many levels of brackets are inside; those of a value that was
    cut off have none."""
    closed: dict[int, tuple[int, int]] = {}
    stack: list[int] = []
    heights: list[int] = []
    waiting = dict.fromkeys(_OPENERS.values(), 0)
    at = 0
    while at < len(text):
        char = text[at]
        if stack and char in "\"'" and _before(text, at) in _BEFORE_A_VALUE:
            at = _string_end(text, at)
        elif char in _OPENERS:
            stack.append(at)
            heights.append(0)
            waiting[_OPENERS[char]] += 1
        elif waiting.get(char):
            # A closer that belongs to an outer bracket leaves the inner ones open.
            while True:
                opener, height = stack.pop(), heights.pop()
                if heights:
                    heights[-1] = max(heights[-1], height + 1)
                waiting[_OPENERS[text[opener]]] -= 1
                if _OPENERS[text[opener]] == char:
                    closed[opener] = at, height
                    break
        at += 1
    return closed


def _before(text: str, at: int) -> str:
    """The last character before a place that is no white space."""
    at -= 1
    while at >= 0 and text[at].isspace():
        at -= 1
    return text[at] if at >= 0 else " "


def _string_end(text: str, start: int) -> int:
    """Where the string that begins at ``start`` ends: at its mark, when something follows that can follow a string (so
    apostrophes and quotation marks that nobody escaped are inside)."""
    mark = text[start]
    at = start + 1
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == mark:
            after = at + 1
            while after < len(text) and text[after] in " \t\r":
                after += 1
            if after == len(text) or text[after] in _AFTER_A_STRING:
                return at
        at += 1
    return len(text)


def _read(text: str, height: int) -> Any:
    value = _loads(text)
    if value is None and len(text) <= _LONGEST_REPAIRED and height <= _DEEPEST_REPAIRED:
        from json_repair import repair_json  # only for damaged text, so loaded only then

        try:
            value = repair_json(text, return_objects=True, skip_json_loads=True)
        except Exception:  # whatever a repair of nonsense may end in
            return None
    return value


def _loads(text: str) -> Any:
    # A number of a million digits takes minutes; no field here has more than a few.
    if any(len(digits) > 400 for digits in _DIGITS.findall(text)):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
