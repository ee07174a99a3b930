"""How long a statement holds, where its own words say so: "this week", "przez dwa tygodnie", "до пятницы"."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime
from functools import lru_cache
from types import ModuleType

from tui_agent.memory import statement_words_en, statement_words_pl, statement_words_ru
from tui_agent.memory.text import fold

WORDS: dict[str, ModuleType] = {"en": statement_words_en, "pl": statement_words_pl, "ru": statement_words_ru}
_FARTHEST = 400.0
_VERSION_DAYS = 180.0
# Days between two releases that change what "the version in use" means, as the products announce them.
_CYCLES: tuple[tuple[str, float], ...] = (
    (r"chrome|chromium|firefox|edge", 30.0),
    (r"rust|rustc", 42.0),
    (r"kubernetes|k8s|minikube", 120.0),
    (r"django", 240.0),
    (r"python|cpython|postgres|postgresql|php|ruby|swift|dotnet|\.net|ios|macos|android|mariadb|erlang", 365.0),
    (r"debian|windows server|sql server", 730.0),
)


@lru_cache(maxsize=1)
def _cycles() -> tuple[tuple[re.Pattern[str], float], ...]:
    # A name may carry a grammatical ending (Pythona, PostgreSQL-a) and a version (python3.11).
    return tuple((re.compile(rf"(?<!\w)(?:{names})(?![a-z]{{4}})"), days) for names, days in _CYCLES)


def version_days(plain: str) -> float:
    """How many days a statement about a version in use holds: the release cycle of what it names, the shortest where it
    names several, half a year where that is not known. ``plain`` is folded text."""
    return min((days for pattern, days in _cycles() if pattern.search(plain)), default=_VERSION_DAYS)


@lru_cache(maxsize=8)
def _spans(language: str) -> tuple[re.Pattern[str], ...]:
    words = WORDS[language]
    number = r"(?P<n>\d{1,3}|" + "|".join(sorted(map(fold, words.NUMBER_WORDS), key=len, reverse=True)) + ")"
    unit = "(?P<unit>" + fold("|".join(words.UNITS)) + ")"
    return tuple(
        re.compile(rf"\b{fold(form)}(?!\w)".replace("{n}", number).replace("{unit}", unit)) for form in words.SPANS
    )


@lru_cache(maxsize=8)
def _fixed(language: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    return tuple((re.compile(fold(pattern)), days) for pattern, days in WORDS[language].FIXED)


@lru_cache(maxsize=8)
def _until(language: str) -> tuple[re.Pattern[str], ...]:
    words = WORDS[language]
    until = fold(words.UNTIL)
    days = "|".join(map(fold, words.WEEKDAYS))
    months = "|".join(map(fold, words.MONTHS))
    # "по пятницу" is until Friday, "по пятницам" is every Friday.
    return (
        re.compile(rf"\b{until} (?:this |next |the |najblizsz\w+ |следующ\w+ )?(?P<weekday>{days})(?!(?:ам|ям)\b)\w*"),
        re.compile(rf"\b{until} (?:the )?(?P<year>20\d\d)-(?P<month>\d\d)-(?P<day>\d\d)"),
        re.compile(rf"\b{until} (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th|-?го|\.)? (?:of )?(?P<name>{months})"),
        re.compile(rf"\b{until} (?P<name>{months}) (?P<day>\d{{1,2}})(?!\d)"),
        re.compile(rf"\b{until} (?:the )?(?P<day>\d{{1,2}})\.(?P<month>\d{{1,2}})(?:\.(?P<year>20\d\d))?(?!\d)"),
        re.compile(rf"\b{until} (?:the end of |konca |конца )(?P<name>{months})"),
    )


@lru_cache(maxsize=8)
def _lasting(language: str) -> re.Pattern[str]:
    return re.compile(fold(WORDS[language].LASTING))


def days_of(plain: str, language: str, now: datetime) -> float | None:
    """Days a folded sentence says it holds for, or ``None``. Today counts as one, this week as seven, and "until
    Friday" runs to the end of that day."""
    for pattern in _until(language):
        match = pattern.search(plain)
        if match is None or _each_week(plain, match, language):
            continue
        if (left := _left(match, language, now)) is not None:
            return left
    for pattern in _spans(language):
        match = pattern.search(plain)
        if match is not None:
            groups = match.groupdict()
            days = _number(groups.get("n"), language) * _unit(groups.get("unit"), language)
            # "for twelve years" looks back; nobody plans that far ahead.
            return days if days <= _FARTHEST else None
    if _lasting(language).search(plain):
        return None
    for pattern, days in _fixed(language):
        if pattern.search(plain):
            return float(days)
    return None


@lru_cache(maxsize=8)
def _week_part(language: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    words = WORDS[language]
    return re.compile(rf"\b(?:{'|'.join(map(fold, words.WEEKDAYS))})\w*,? $"), re.compile(fold(words.AWAY))


def _each_week(plain: str, match: re.Match[str], language: str) -> bool:
    """Whether an end on a weekday is that of a range ("Monday through Friday"), which comes round every week unless
    somebody is away for so long."""
    day_before, away = _week_part(language)
    return "weekday" in match.groupdict() and bool(day_before.search(plain[: match.start()])) and not away.search(plain)


def _number(word: str | None, language: str) -> float:
    if word is None:
        return 1.0
    if word.isdigit():
        return float(word)
    known = {fold(name): value for name, value in WORDS[language].NUMBER_WORDS.items()}
    return float(known.get(word, 1))


def _unit(word: str | None, language: str) -> float:
    for pattern, days in WORDS[language].UNITS.items():
        if word is not None and re.fullmatch(fold(pattern), word):
            return float(days)
    return 1.0


def _left(match: re.Match[str], language: str, now: datetime) -> float | None:
    words, groups = WORDS[language], match.groupdict()
    today = now.date()
    weekday = groups.get("weekday")
    if weekday is not None:
        wanted = next(day for name, day in words.WEEKDAYS.items() if fold(name) == weekday)
        return float((wanted - today.weekday()) % 7 + 1)
    try:
        month = int(groups["month"]) if groups.get("month") else _month(groups.get("name"), language)
        year = int(groups["year"]) if groups.get("year") else today.year
        day = int(groups["day"]) if groups.get("day") else monthrange(year, month)[1]
        end = date(year, month, day)
        if end < today and not groups.get("year"):
            end = date(year + 1, month, min(day, monthrange(year + 1, month)[1]))
    except ValueError:
        return None
    return float((end - today).days + 1) if end >= today else None


def _month(name: str | None, language: str) -> int:
    return [fold(month) for month in WORDS[language].MONTHS].index(name or "") + 1
