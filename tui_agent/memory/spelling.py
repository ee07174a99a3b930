"""Which words are spelled alike: trigrams narrow a whole vocabulary down to a few, which are then compared closely.

A word of a question is compared with every word the facts hold, tens of thousands, while the user waits. So the words
are numbered, each trigram keeps the numbers of its words in one flat array, and one count over these arrays says how
many trigrams each word shares with the one asked for.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import DamerauLevenshtein, Prefix

from tui_agent.memory.text import ngrams

_COMPARED = 32  # spellings looked at closely for one word
_FEWEST_SHARED = 0.3  # of the trigrams, before two spellings are compared at all
_SHORTEST = 3
_FARTHEST = 2  # edits
_LONG = 8  # letters, from which two edits leave a word recognisable
_START, _LONGER_BY = 4, 4  # letters of a common beginning, and of what may follow it


class Spellings:
    """A vocabulary in which similar spellings are found. Not thread-safe."""

    def __init__(self) -> None:
        # A word keeps its number when it is taken out, since it is likely to come again; its length is 0 meanwhile.
        self._words: list[str] = []
        self._number: dict[str, int] = {}
        self._lengths: NDArray[np.int32] = np.zeros(256, dtype=np.int32)
        self._starts: NDArray[np.int32] = np.zeros(256, dtype=np.int32)
        self._start_ids: dict[str, int] = {}
        self._grams: dict[str, array[int]] = {}
        self._gone = 0

    def __len__(self) -> int:
        return len(self._words) - self._gone

    def add(self, word: str) -> None:
        """Take a word in that is not there."""
        number = self._number.get(word)
        if number is None:
            number = self._number[word] = len(self._words)
            self._words.append(word)
            if number >= len(self._lengths):
                self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
                self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
            self._starts[number] = self._start_ids.setdefault(word[:_START], len(self._start_ids))
            for gram in set(ngrams(word, (3,))):
                numbers = self._grams.get(gram)
                if numbers is None:
                    numbers = self._grams[gram] = array("i")
                numbers.append(number)
        else:
            self._gone -= 1
        self._lengths[number] = len(word)

    def discard(self, word: str) -> None:
        """Take a word out that is there. What is left of it goes when half of all words have gone."""
        self._lengths[self._number[word]] = 0
        self._gone += 1
        if self._gone > 1000 and 2 * self._gone > len(self._words):
            kept = [each for each, length in zip(self._words, self._lengths.tolist(), strict=False) if length]
            self.__init__()  # type: ignore[misc]
            for each in kept:
                self.add(each)

    def near(self, word: str, least: float) -> list[tuple[str, float]]:
        """Other words spelled like ``word``, the most alike first, each with how likely the two are one word
        (``least`` to 1); see :func:`similarity`."""
        if any(map(str.isdigit, word)):
            return []
        grams = set(ngrams(word, (3,)))
        known = [numbers for gram in grams if (numbers := self._grams.get(gram)) is not None]
        if not known:
            return []
        held = np.concatenate([np.frombuffer(numbers, dtype=np.intc) for numbers in known])
        shared = np.bincount(held, minlength=len(self._words))
        # A word of n letters has about n padded trigrams; the share of common ones bounds how alike two spellings are.
        # Few share enough for any length, and only their shares are computed.
        places = np.flatnonzero(shared >= math.ceil(_FEWEST_SHARED * (len(grams) + _SHORTEST) / 2))
        lengths = self._lengths[places]
        shares = 2 * shared[places] / (len(grams) + lengths)
        # Without the same beginning only edits make them alike, of which a shorter word may have but one.
        farthest = _FARTHEST if len(word) >= _LONG else 1
        same_start = self._starts[places] == self._start_ids.get(word[:_START], -1)
        apart = np.abs(lengths - len(word))
        fits = (apart <= farthest) | (same_start & (apart <= _LONGER_BY))
        near = fits & (shares >= _FEWEST_SHARED) & (lengths >= _SHORTEST)
        found = [pair for pair in alike(word, self._most_alike(places[near], shares[near]), least) if pair[0] != word]
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        return found

    def _most_alike(self, places: NDArray[np.int64], shares: NDArray[np.float64]) -> list[str]:
        """The words with the largest shares, about :data:`_COMPARED` at most; of equals all or none."""
        if len(places) > _COMPARED:
            least = np.partition(shares, len(shares) - _COMPARED)[len(shares) - _COMPARED]
            places = above if len(above := places[shares > least]) else places
        return [self._words[place] for place in places.tolist()]


def alike(word: str, terms: Sequence[str], least: float) -> list[tuple[str, float]]:
    """Those of ``terms`` whose :func:`similarity` to ``word`` is at least ``least``, with that, in their order."""
    if not terms:
        return []
    distances = process.cdist([word], terms, scorer=DamerauLevenshtein.distance, score_cutoff=_FARTHEST)[0]
    starts = process.cdist([word], terms, scorer=Prefix.similarity)[0]
    likely = np.flatnonzero((distances <= _FARTHEST) | (starts >= _START))
    return [
        (terms[place], score)
        for place, distance, start in zip(
            likely.tolist(), distances[likely].tolist(), starts[likely].tolist(), strict=True
        )
        if (score := _likeness(word, terms[place], distance, int(start))) >= least
    ]


def similarity(word: str, term: str) -> float:
    """How likely two spellings are one word, 0..1: one edit in a longer word, or a long common beginning."""
    distance = DamerauLevenshtein.distance(word, term, score_cutoff=_FARTHEST)
    return _likeness(word, term, distance, int(Prefix.similarity(word, term)))


def _likeness(word: str, term: str, distance: int, start: int) -> float:
    """:func:`similarity` for the number of edits, and of letters at the beginning that are the same."""
    shorter, longest = (len(word), len(term)) if len(word) < len(term) else (len(term), len(word))
    score = 0.0
    if distance == 1 and shorter >= 4:
        score = 0.9
    elif distance == 1 and shorter == 3 and longest == 4 and start >= 2:
        score = 0.6
    elif distance == 2 and shorter >= _LONG:
        score = 0.75
    elif start >= _START and longest - start <= _LONGER_BY:
        score = 0.55 + 0.35 * start / longest
    # 7443 is not 7433, v2 is not v3
    if not score or (word.isalpha() and term.isalpha()):
        return score
    return 0.0 if any(map(str.isdigit, word + term)) else score
