"""Judging a name and the value beside it: does the name promise a secret, and does the value look like one."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

from tui_agent.memory import secret_rules as rules
from tui_agent.memory.text import fold

Span = tuple[str, int, int]
"""Kind, start and end of a secret."""

PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-ZА-ЯЁĄĆĘŁŃÓŚŹŻ]?[a-zа-яёąćęłńóśźż]+|\d+")


@lru_cache(maxsize=4096)
def family_of(name: str) -> str:
    """What a name promises: ``password``, ``token``, ``key`` (weak) or nothing."""
    raw = name.strip("._-$")
    parts = [fold(part) for part in PARTS.findall(raw) if not part.isdigit()]
    if not parts:
        return ""
    whole = fold(raw)
    last = parts[-1]
    if last in rules.NOT_A_SECRET or any(part in rules.NOT_A_SECRET_ANYWHERE for part in parts):
        return ""
    if any(part in rules.PASSWORD_PARTS or part.endswith(rules.PASSWORD_ENDINGS) for part in parts):
        return "password"
    if any(
        part in rules.SECRET_PARTS or part in rules.TOKEN_PARTS or part.endswith(rules.TOKEN_ENDINGS) for part in parts
    ):
        return "token"
    if "key" in parts:
        owners = parts[: parts.index("key")]
        if any(part in rules.KEY_OWNERS for part in owners) or whole.endswith(rules.TOKEN_ENDINGS):
            return "token"
        return "" if any(part in rules.KEY_NOT_A_SECRET for part in owners) else "key"
    if any(part in rules.KEY_PARTS for part in parts) or last in rules.AUTH_PARTS or whole.endswith("keydata"):
        return "key"
    return ""


def stands_in(value: str) -> bool:
    """Whether ``value`` is a place holder, a reference or a mask rather than a secret."""
    return bool(rules.STAND_IN.search(value))


def is_name(value: str) -> bool:
    return value.replace("_", "").isalpha() and value.isascii()


def is_code(text: str, start: int, end: int) -> bool:
    """Whether the value is an expression: a dotted path into settings, a call, a name that repeats the key."""
    value = text[start:end]
    if text.startswith(("(", "["), end):
        return True
    if rules.CODE_PATH.fullmatch(value) and (rules.CODE_ROOT.match(value) or rules.STEM.search(value)):
        return True
    return bool(is_name(value) and "_" in value and rules.STEM.search(value))


def prose_value(value: str) -> bool:
    """Whether a word of prose can be a secret at all."""
    return not (
        stands_in(value)
        or (value.startswith(("#", "@")) and value[1:].replace("-", "").replace("_", "").isalpha())
        or rules.TECH_WORD.fullmatch(value)
        or rules.HOST_OR_PATH.fullmatch(value)
        or fold(value).strip("!") in rules.PLAIN_WORDS
    )


def classes(value: str) -> int:
    return (
        any(map(str.isdigit, value))
        + any(map(str.islower, value))
        + any(map(str.isupper, value))
        + any(not char.isalnum() for char in value)
    )


def strength(value: str) -> int:
    """0 nothing or digits, 1 a plain word, 2 words joined by ``. _ -``, 3 letters with digits or with other signs."""
    if len(value) < 3:
        return 0
    letters = any(map(str.isalpha, value))
    if not letters:
        return 0
    if any(map(str.isdigit, value)):
        return 3 if len(value) >= 4 else 1
    inner = value[:-1] if value[-1] in "!?" else value
    if any(char in "!@#$%^&*+=~?:/" for char in inner):
        return 3
    return 2 if any(char in "._-" for char in value) else 1


def looks_random(value: str, shortest: int) -> bool:
    """Whether a token has the mixture and the entropy (bits a character) of something generated."""
    if len(value) < shortest or not any(map(str.isalpha, value)):
        return False
    digits = sum(map(str.isdigit, value))
    mixed = any(map(str.islower, value)) and any(map(str.isupper, value))
    if not digits and not (
        mixed and len(value) >= 16 and not rules.CODE_PATH.fullmatch(value) and not _PARTS_ONLY.fullmatch(value)
    ):
        return False
    counts = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    return entropy >= 2.6 if len(value) < 20 else entropy >= 3.0


_PARTS_ONLY = re.compile(r"(?:[A-Z]?[a-z]{3,}[_-]?)+|[\w-]*[a-z]{8,}[\w-]*")
