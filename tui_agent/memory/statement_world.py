"""States of the world in a sentence: what a tool can fetch, and so is looked up instead of remembered.

A count of things that can be counted again, a status, a date of the plan, who reports to whom. What looks like one and
lasts is told apart: where a thing stands ("the CI server stands in Kraków"), what comes again ("ends on Fridays"), and
a number whose things are all named ("three modules: core, api and ui").
"""

from __future__ import annotations

import re

from tui_agent.memory.statement_lexicon import Lexicon
from tui_agent.memory.statement_reading import Sentence, unmarked
from tui_agent.memory.text import fold

_NAMED = re.compile(r"\s*(?:[:(,—–-]|called|named)\s*(?P<names>\S.*)$")
_BORDER = re.compile(r",| and | i | oraz | и |\+| & ")

_WHO = r"\b[A-ZА-Я][a-zа-я]\w*"  # no abbreviation: "CI reports to Slack"
# Of other people, in text without diacritics: "I report to Anna" and "Anna is my manager" are the user's own.
_ORG_CHART = {
    "en": re.compile(
        rf"{_WHO} (?:directly )?reports? (?:directly )?to [A-Z]|{_WHO} supervises [A-Z]|"
        rf"{_WHO} is [A-Z]\w+(?:'s|’s|') (?:(?:line|direct|team|project|hiring) )?"
        r"(?:manager|boss|supervisor|superior|lead)\b|"
        r"(?i:\borg(?:ani[sz]ation(?:al)?)? chart\b)"
    ),
    "pl": re.compile(
        rf"{_WHO} (?:bezposrednio )?podlega(?:ja)? [A-Z]|"
        r"\b(?i:przelozon\w+|kierowni\w+|szef\w*) [A-Z]\w+ (?:jest|to) [A-Z]|"
        rf"{_WHO} (?:jest|to) (?:bezposredni\w+ )?(?:przelozon\w+|kierowni\w+|szef\w*) [A-Z]|"
        r"(?i:\b(?:struktur|schemat)\w* organizacyjn)"
    ),
    "ru": re.compile(
        rf"{_WHO} (?:напрямую )?подчиня(?:ется|ются) [А-Я]|"
        r"\b(?i:начальни\w+|руководител\w+|шеф\w*) [А-Я]\w+ ?(?:[—–-]|это) ?[А-Я]|"
        rf"{_WHO} ?(?:[—–-]|это) ?(?:начальни\w+|руководител\w+|шеф\w*) [А-Я]|"
        r"(?i:\bоргструктур|\bорганизационн\w+ структур)"
    ),
}


def is_org_chart(sentence: Sentence, lex: Lexicon) -> bool:
    """Whether the sentence says who of other people reports to whom: a directory knows, and knows when it changes."""
    return bool(_ORG_CHART[lex.language].search(unmarked(sentence.cased)))


def is_count(plain: str, lex: Lexicon, own: bool) -> bool:
    """Whether the folded sentence counts something that a tool can count again.

    ``own`` is that the user speaks of themselves: "I have two monitors" is theirs to say, and "my project has 3
    modules" is still a count.
    """
    if lex.state_not.search(plain):
        return False
    counted = lex.state_amount.search(plain)
    if counted is None and not own:
        counted = lex.state_count.search(plain)
    return counted is not None and not _all_named(plain, lex)


def is_status(sentence: Sentence, plain: str, lex: Lexicon) -> bool:
    """Whether the sentence says how something stands at the moment; what it says for good is left out first."""
    if not lex.state_status.search(plain):
        return False
    if lex.state_now.search(plain):
        return True
    rest = lex.state_lasting.sub(" ", unmarked(sentence.cased))
    return bool(lex.state_status.search(" ".join(fold(rest).split())))


def is_placed(sentence: Sentence, plain: str, lex: Lexicon) -> bool:
    """Whether the sentence says where something of the user's team has its place."""
    return (
        bool(lex.ours.match(plain))
        and bool(lex.state_place.search(unmarked(sentence.cased)))
        and not lex.state_now.search(plain)
        and not is_status(sentence, plain, lex)
    )


def _all_named(plain: str, lex: Lexicon) -> bool:
    """Whether the parts that were counted are listed right behind their number: then it says which, not how many."""
    part = lex.state_part.search(plain)
    named = _NAMED.match(plain[part.end() :]) if part is not None else None
    return named is not None and bool(_BORDER.search(named["names"]))
