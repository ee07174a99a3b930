"""Words that people use for one another, in English, Polish and Russian, so that a fact is found by what it is about.

"Who carries the pager?" asks for the note about being on call, and shares no word with it. The groups of such words are
written by hand (``tools/thesaurus.txt``); what is loaded here was made of them by ``tools/build_thesaurus.py``: stems,
and phrases of two or three stems, each with the numbers of its groups. Nothing is asked of any model or network.
"""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from tui_agent.memory.text import STOPWORDS, fold, word_stems, words

LANGUAGES = ("en", "pl", "ru")
FILE = "thesaurus.json.gz"
MOST_WORDS = 3
"""Of a phrase."""

LONGEST = 400
"""Characters of a text that is looked up. A longer one has a word of nearly every group, which together say nothing."""

_NO_PHRASE = {"sie"}  # Polish reflexive verbs have it near, but anywhere
_BEGINNING = 5  # letters by which a stem that is not known finds others
_OTHER_LETTERS = 2  # at its end: an inflected form whose stem came out differently
_MOST_KNOWN = 50_000
_FEW_SENSES = 3
_OTHERS_EACH, _OTHERS = 3, 12
_MEMBERS = 8  # of a group and a language that are kept as words

Groups = frozenset[int]
_NONE: Groups = frozenset()


class Thesaurus:
    """Says which groups the words of a text belong to. Safe to use from several threads.

    Args:
        stems: groups by stem.
        phrases: groups by stems with spaces between, of phrases.
        members: for each group by language some of its words, as they are written.
    """

    def __init__(
        self,
        stems: Mapping[str, Sequence[int]],
        phrases: Mapping[str, Sequence[int]],
        members: Sequence[Mapping[str, Sequence[str]]] = (),
    ) -> None:
        self._stems = stems
        self._phrases = phrases
        self._members = members
        self._starts = {phrase.partition(" ")[0] for phrase in phrases}
        self._by_beginning: dict[str, list[str]] = {}
        for stem in stems:
            if len(stem) >= _BEGINNING and stem.isalpha():
                self._by_beginning.setdefault(stem[:_BEGINNING], []).append(stem)
        self._known: dict[str, tuple[Groups, tuple[str, ...]]] = {}

    def groups(self, text: str) -> list[tuple[str, Groups]]:
        """The folded words of ``text`` without stop words, in order, each with the groups that it or a phrase it is
        part of belongs to."""
        said = words(text)
        looked_up = [self._word(word) for word in said]
        content = [place for place, word in enumerate(said) if word not in STOPWORDS]
        in_phrase: dict[int, Groups] = {}
        # A phrase is found with small words between ("logs of access"); one that has small words itself as it is.
        for places in (content, list(range(len(said)))):
            for start, place in enumerate(places):
                if not self._starts.isdisjoint(looked_up[place][1]):
                    for size in range(2, min(MOST_WORDS, len(places) - start) + 1):
                        part = places[start : start + size]
                        if groups := self._phrase([looked_up[each][1] for each in part]):
                            in_phrase.update({each: in_phrase.get(each, _NONE) | groups for each in part})
        # A phrase says which of its words' senses is meant.
        return [(said[place], in_phrase.get(place) or looked_up[place][0]) for place in content]

    def others(self, text: str, language: str) -> list[str]:
        """Some words of ``language`` that could stand in ``text`` for others, in the order of those; words of many
        senses bring none in."""
        folded = fold(text)
        found: dict[str, None] = {}
        for _, groups in self.groups(text):
            if len(groups) <= _FEW_SENSES:
                for group in sorted(groups):
                    members = [one for one in self._members[group].get(language, ()) if fold(one)[:4] not in folded]
                    found.update(dict.fromkeys(members[:_OTHERS_EACH]))
        return list(found)[:_OTHERS]

    def _phrase(self, stems: Sequence[tuple[str, ...]]) -> Groups:
        numbers = (self._phrases.get(" ".join(one)) for one in itertools.product(*stems))
        return frozenset(itertools.chain.from_iterable(filter(None, numbers)))

    def _word(self, word: str) -> tuple[Groups, tuple[str, ...]]:
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            stems = tuple(word_stems(word))
            known = self._known[word] = (_NONE if word in STOPWORDS else self._of(word, stems), stems)
        return known

    def _of(self, word: str, stems: tuple[str, ...]) -> Groups:
        found = [self._stems[stem] for stem in stems if stem in self._stems]
        if not found and word.isalpha():
            near = (other for stem in stems for other in self._by_beginning.get(stem[:_BEGINNING], ()))
            found = [self._stems[other] for other in near if any(_one_word(stem, other) for stem in stems)]
        return frozenset(itertools.chain.from_iterable(found))


def _one_word(stem: str, other: str) -> bool:
    common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(stem, other, strict=False)))
    return common >= _BEGINNING and max(len(stem), len(other)) - common <= _OTHER_LETTERS


@lru_cache(maxsize=1)
def thesaurus() -> Thesaurus:
    """The thesaurus of the program, loaded at its first use (some ten milliseconds)."""
    packed = (resources.files("tui_agent.memory") / FILE).read_bytes()
    made = json.loads(gzip.decompress(packed))
    return Thesaurus(made["stems"], made["phrases"], made["members"])


def compiled(lines: Iterable[str]) -> dict[str, Any]:
    """What is loaded, made of the lines of a source (see ``tools/thesaurus.txt``).

    Raises:
        ValueError: a line is no group; the sentence names it.
    """
    stems: dict[str, set[int]] = {}
    phrases: dict[str, set[int]] = {}
    members: list[dict[str, list[str]]] = []
    for at, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip().partition(":") for part in line.split("|")]
        if tuple(language for language, _, _ in parts) != LANGUAGES:
            raise ValueError(f"Line {at} of the thesaurus is no group of en, pl and ru: {line.strip()[:80]}")
        group = {language: [entry.strip() for entry in entries.split(",")] for language, _, entries in parts}
        for language, entries in group.items():
            for entry in entries:
                _enter(entry, language, len(members), stems, phrases)
        members.append({language: entries[:_MEMBERS] for language, entries in group.items()})
    tables = {"stems": stems, "phrases": phrases}
    sorted_ = {name: {key: sorted(table[key]) for key in sorted(table)} for name, table in tables.items()}
    return {**sorted_, "members": members}


def _enter(entry: str, language: str, number: int, stems: dict[str, set[int]], phrases: dict[str, set[int]]) -> None:
    said = words(entry)
    content = [word for word in said if word not in STOPWORDS]
    if not content:
        return
    if len(said) == 1 or (len(content) == 1 and set(said) - set(content) <= _NO_PHRASE):
        # As it is spelled as well: without its diacritics a Polish word may have another stem.
        spelled = entry if len(said) == 1 else ""
        for stem in {*word_stems(content[0], language), *(word_stems(spelled, language) if spelled else ())}:
            stems.setdefault(stem, set()).add(number)
    else:
        # Where only one word is no small one, the small ones make the phrase: "log out" is not "log".
        parts = content if len(content) > 1 else said
        for one in itertools.product(*(word_stems(word, language) for word in parts[:MOST_WORDS])):
            phrases.setdefault(" ".join(one), set()).add(number)
