"""Which documents hold, for a word of a question, another word that people use for it; see :mod:`~.thesaurus`."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.thesaurus import LONGEST, thesaurus

Floats = NDArray[np.float32]

BITS = 8
"""Of a posting, below the document's number: how often it holds a term, or in 255ths how surely it means a group."""
_SURE = (1 << BITS) - 1
_LEAST_RARITY = 0.05  # of a word that is everywhere


class Senses:
    """The groups of words that documents hold, by the documents' numbers. Not thread-safe."""

    def __init__(self) -> None:
        self._postings: dict[int, array[int]] = {}
        self._held: dict[int, tuple[int, ...]] = {}

    def put(self, number: int, text: str) -> None:
        """Take a document in that is not there."""
        if len(text) > LONGEST:
            return
        sure: dict[int, float] = {}
        for _, groups in thesaurus().groups(text):
            for group in groups:
                # A word of many senses says little about each of them.
                sure[group] = max(sure.get(group, 0.0), len(groups) ** -0.5)
        if sure:
            self._held[number] = tuple(sure)
        for group, share in sure.items():
            self._postings.setdefault(group, array("q")).append(number << BITS | round(_SURE * share))

    def discard(self, number: int) -> None:
        """Take a document out, if it is there."""
        for group in self._held.pop(number, ()):
            posting = self._postings[group]
            take_out(posting, number)
            if not posting:
                del self._postings[group]

    def shares(
        self, query: str, size: int, count: int, holding: Callable[[str], NDArray[np.int64]]
    ) -> tuple[Floats, list[tuple[str, Floats]]]:
        """For each of ``size`` document numbers the share of the question, weighed by rarity among ``count`` documents,
        for which it has other words (0..1); and the same for each word that has any.

        ``holding`` gives the numbers of documents that hold a word itself: for those it is no other word.
        """
        total = 0.0
        shares = np.zeros(size, dtype=np.float32)
        found: list[tuple[str, Floats]] = []
        seen: set[int] = set()
        for word, groups in dict(thesaurus().groups(query)).items():
            held = [group for group in groups if group in self._postings]
            total += rarity(min((len(self._postings[group]) for group in held), default=0), count)
            own = np.zeros(size, dtype=np.float32)
            for group in held:
                if group not in seen:  # two words for one thing say it once
                    packed = np.frombuffer(self._postings[group], dtype=np.int64)
                    value = rarity(len(packed), count) * len(groups) ** -0.5
                    numbers = packed >> BITS
                    own[numbers] = np.maximum(own[numbers], value * (packed & _SURE) / _SURE)
            seen.update(held)
            if held:
                own[holding(word)] = 0.0
                shares += own
                found.append((word, own))
        return shares / max(total, _LEAST_RARITY), found


def take_out(posting: array[int], number: int, bits: int = BITS) -> None:
    """Remove the document's entry from a posting that has it, with so many bits below its number."""
    place = int(np.flatnonzero(np.frombuffer(posting, dtype=np.int64) >> bits == number)[0])
    del posting[place]


def rarity(holders: int, count: int) -> float:
    """Inverse document frequency of what ``holders`` of ``count`` documents hold, never quite zero."""
    return max(_LEAST_RARITY, math.log(1 + (count - holders + 0.5) / (holders + 0.5)))
