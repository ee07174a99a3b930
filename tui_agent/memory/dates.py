"""Dates as words: so that "what did we decide on 8 May" finds what was said on that day."""

from __future__ import annotations

import re
from functools import lru_cache

from tui_agent.memory.text import fold, word_stems, words

# Base form and the form after a number (and, where it differs much, "in"), in English, Polish and Russian.
_MONTHS = (
    "january jan styczeń stycznia styczniu январь января январе",
    "february feb luty lutego lutym февраль февраля феврале",
    "march mar marzec marca marcu март марта марте",
    "april apr kwiecień kwietnia kwietniu апрель апреля апреле",
    "may maj maja maju май мая мае",
    "june jun czerwiec czerwca czerwcu июнь июня июне",
    "july jul lipiec lipca lipcu июль июля июле",
    "august aug sierpień sierpnia sierpniu август августа августе",
    "september sep wrzesień września wrześniu сентябрь сентября сентябре",
    "october oct październik października październiku октябрь октября октябре",
    "november nov listopad listopada listopadzie ноябрь ноября ноябре",
    "december dec grudzień grudnia grudniu декабрь декабря декабре",
)
_NAMES: tuple[frozenset[str], ...] = tuple(
    frozenset(form for word in names.split() for form in (fold(word), *word_stems(word), *word_stems(fold(word))))
    for names in _MONTHS
)
# Names that are hardly anything else: not "may", "march", "Jan".
_PLAIN_NAMES = frozenset(
    fold(word) for names in _MONTHS for word in names.split() if len(word) > 3 or not word.isascii()
)
_PLAIN_NAMES -= {"march"}
_AMBIGUOUS = re.compile(r"(?<=\s)(?:May|March)\b")
_NUMERIC = re.compile(r"\b(?:(?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?|\d{1,2}\.\d{1,2}(?:\.\d{2,4})?)\b")


def mentions_date(text: str) -> bool:
    """Whether a month, a year or a written date is in ``text``."""
    return bool(_NUMERIC.search(text) or _AMBIGUOUS.search(text)) or not _PLAIN_NAMES.isdisjoint(words(text))


@lru_cache(maxsize=4096)
def _terms_of_day(day: str) -> tuple[str, ...]:
    year, month, number = day.split("-")
    plain = str(int(number))
    dotted = (f"{plain}.{int(month)}", f"{number}.{month}", f"{number}.{month}.{year}", f"{plain}.{int(month)}.{year}")
    return (year, day, day[:7], *dict.fromkeys((plain, number)), *dotted, *sorted(_NAMES[int(month) - 1]))


def date_terms(created_at: str) -> tuple[str, ...]:
    """The words a question may use for the day of a stored time (``YYYY-MM-DD …``); none for anything else."""
    day = created_at[:10]
    if not re.fullmatch(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", day):
        return ()
    return _terms_of_day(day)
