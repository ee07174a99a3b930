"""Which words are spelled alike: trigrams narrow a whole vocabulary down to a few, which are then compared closely.

A word of a question is compared with every word the facts hold, tens of thousands, while the user waits. So the words
are numbered, each trigram keeps the numbers of its words in one flat array, and one count over these arrays says how
many trigrams each word shares with the one asked for.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import DamerauLevenshtein, Prefix

from tui_agent.memory.text import ngrams

_COMPARED = 60  # spellings looked at closely for one word
_FEWEST_SHARED = 0.3  # of the trigrams, before two spellings are compared at all
_SHORTEST = 3
_FARTHEST = 2  # edits


class Spellings:
    """A vocabulary in which similar spellings are found. Not thread-safe."""

    def __init__(self) -> None:
        # A word keeps its number when it is taken out, since it is likely to come again; its length is 0 meanwhile.
        self._words: list[str] = []
        self._number: dict[str, int] = {}
        self._lengths: NDArray[np.int32] = np.zeros(256, dtype=np.int32)
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
        count = len(self._words)
        held = np.concatenate([np.frombuffer(numbers, dtype=np.intc) for numbers in known])
        shared = np.bincount(held, minlength=count)
        lengths = self._lengths[:count]
        # A word of n letters has about n padded trigrams; the share of common ones bounds how alike two spellings are.
        shares = 2 * shared / (len(grams) + lengths)
        places = np.flatnonzero((shares >= _FEWEST_SHARED) & (lengths >= _SHORTEST))
        places = places[places != self._number.get(word, -1)]
        alike = self._most_alike(places, shares[places])
        distances = process.cdist([word], alike, scorer=DamerauLevenshtein.distance, score_cutoff=_FARTHEST)[0]
        found = [
            (other, score)
            for other, distance in zip(alike, distances.tolist(), strict=True)
            if (score := _likeness(word, other, distance)) >= least
        ]
        found.sort(key=lambda pair: (-pair[1], pair[0]))
        return found

    def _most_alike(self, places: NDArray[np.int64], shares: NDArray[np.float64]) -> list[str]:
        """The words with the largest shares, at most :data:`_COMPARED`; of equals the last by the alphabet."""
        if len(places) <= _COMPARED:
            return [self._words[place] for place in places.tolist()]
        least = np.partition(shares, len(shares) - _COMPARED)[len(shares) - _COMPARED]
        chosen = [self._words[place] for place in places[shares > least].tolist()]
        equal = sorted((self._words[place] for place in places[shares == least].tolist()), reverse=True)
        return chosen + equal[: _COMPARED - len(chosen)]


def similarity(word: str, term: str) -> float:
    """How likely two spellings are one word, 0..1: one edit in a longer word, or a long common beginning."""
    return _likeness(word, term, DamerauLevenshtein.distance(word, term, score_cutoff=_FARTHEST))


def _likeness(word: str, term: str, distance: int) -> float:
    shorter, longest = min(len(word), len(term)), max(len(word), len(term))
    score = 0.0
    if distance == 1 and shorter >= 4:
        score = 0.9
    elif distance == 1 and shorter == 3 and longest == 4 and word[:2] == term[:2]:
        score = 0.6
    elif distance == 2 and shorter >= 8:
        score = 0.75
    elif word[:4] == term[:4]:
        prefix = int(Prefix.similarity(word, term))
        if prefix >= 4 and longest - prefix <= 4:
            score = 0.55 + 0.35 * prefix / longest
    # 7443 is not 7433, v2 is not v3
    return 0.0 if score and any(map(str.isdigit, word + term)) else score
