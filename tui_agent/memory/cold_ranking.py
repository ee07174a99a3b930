"""Put-away items for a question: which come into question at all, and those ranked together with what lies around them.

The candidates are found as :mod:`~tui_agent.memory.cold_search` does it, by names, words and meaning, but from the
index in memory and over all items at once; how they are ranked is in :mod:`~tui_agent.memory.ranking`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.cold_index import ColdIndex, ColdRow, Entries, Rows, counted
from tui_agent.memory.cold_search import FRESH_STEPS, SATURATION, WEIGHTS, Hit, Query, beginning, rarity
from tui_agent.memory.cold_terms import asked_words
from tui_agent.memory.dates import date_terms, mentions_date
from tui_agent.memory.lexical import concepts, matched_terms
from tui_agent.memory.ranking import Counted, Weights, score
from tui_agent.memory.scoring import Calibration
from tui_agent.memory.symbols import asked
from tui_agent.memory.types import Term, Vector

Floats = NDArray[np.float32]

_MENTIONED, _WEAK = 0.6, 0.4  # of a name's weight: when it is only mentioned, when it is a plain word
_SAME_BEGINNING = 6  # terms that may stand for a word nobody has used
_MOST_ENTRIES = 100_000  # looked at for one question: the commonest words of a very long one are left out
_MOST_CELLS = 1_000_000  # words times items that are computed in one go
_FEW = 24  # entries, up to which they are gone through one by one
_CLOSE = 256  # vectors compared where there are too many to compare them all


def candidates(index: ColdIndex, query: Query) -> list[Hit]:
    """The best ``query.limit`` put-away items, best first, each text once; without texts and terms."""
    if not len(index):
        return []
    names = asked(query.text)
    words = _words(index, query.text)
    share, wanted, holds, defines = _names(index, names.strong, names.weak)
    of_names = np.zeros_like(words)
    if wanted:
        np.minimum(1.0, share / np.float32(wanted), out=of_names)
        of_names *= np.float32(WEIGHTS["names"])
    of_words = np.float32(WEIGHTS["words"]) * np.minimum(np.float32(1.0), words)
    plain, calibrated = _meaning(index, query, of_names + of_words)
    of_meaning = np.float32(WEIGHTS["meaning"]) * np.maximum(np.float32(0.0), calibrated)
    total = of_names + of_words + of_meaning + index.steady + _freshness(index, query)
    total[~index.live] = -1.0
    chosen = _best(total, index, query.limit)
    rows = [row for row, _ in chosen]
    told = np.stack([of_names[rows], of_words[rows], of_meaning[rows]], axis=1).tolist()
    cosines, held, defined = plain[rows].tolist(), holds[rows].tolist(), defines[rows].tolist()
    return [
        Hit(
            one.number, one.id, one.kind, "cold", one.session_id, important=bool(one.important), reason=one.reason,
            put_away_step=one.put_away_step, source=one.source, cosine=None if math.isnan(cosine) else cosine,
            named=named, defines=defining, told=tuple(parts),
        )
        for (_, one), parts, cosine, named, defining in zip(chosen, told, cosines, held, defined, strict=True)
    ]  # fmt: skip


def _best(total: Floats, index: ColdIndex, limit: int) -> list[tuple[int, ColdRow]]:
    """The ``limit`` rows with the largest ``total``, each text once; of equals the older item comes first."""
    looked_at = min(2 * limit, len(total))
    while True:
        least = np.partition(total, len(total) - looked_at)[len(total) - looked_at]
        rows = np.flatnonzero(total >= least)
        chosen: dict[bytes, tuple[int, ColdRow]] = {}
        for row in rows[np.lexsort((index.number[rows], -total[rows]))].tolist():
            if (one := index.known[row]) is not None:
                chosen.setdefault(one.digest, (row, one))
        if len(chosen) >= limit or len(rows) == len(total):
            return list(chosen.values())[:limit]
        looked_at = min(4 * looked_at, len(total))  # many texts are there more than once


# --- the channels ---------------------------------------------------------------------------------


def _words(index: ColdIndex, text: str) -> Floats:
    """What of the question's words each item holds, 0..1 by rarity; more for several times, less in a long text."""
    total = len(index)
    asked_for = [_standing_for(index, terms) for terms in asked_words(text)]
    rarities = [max(rarity(count, total) for count in known.values() or (1,)) for known in asked_for]
    share = np.zeros(index.size, dtype=np.float32)
    rarest = sorted(zip(rarities, asked_for, strict=True), key=lambda pair: -pair[0])
    at_once = max(1, _MOST_CELLS // index.size)
    left = _MOST_ENTRIES
    for start in range(0, len(rarest), at_once):
        block = rarest[start : start + at_once]
        left -= sum(sum(known.values()) for _, known in block)
        if left < 0 and start:
            break
        share += _shares_of(index, [known for _, known in block], total)
    return np.asarray(share / np.float32(max(1e-9, sum(rarities))))


def _shares_of(index: ColdIndex, words: Sequence[dict[str, int]], total: int) -> Floats:
    """The sum over some words, each given by the terms that stand for it, of what each item gets of their rarity. All
    in one go: word by word, most of the time goes into the calls."""
    places = [(place, term, count) for place, known in enumerate(words) for term, count in known.items()]
    if not places:
        return np.zeros(index.size, dtype=np.float32)
    counts = [count for _, _, count in places]
    rows, head, body = Entries.of(np.concatenate([index.packed(term) for _, term, _ in places]))
    times = 2 * head + body  # summary and source count twice
    weights = np.repeat(np.array([rarity(count, total) for count in counts], dtype=np.float32), counts)
    values = weights * times * (1 + SATURATION) / (times + SATURATION * index.spread[rows])
    best = np.zeros(len(words) * index.size, dtype=np.float32)
    np.maximum.at(best, rows + index.size * np.repeat([place for place, _, _ in places], counts), values)
    return np.asarray(best.reshape(len(words), index.size).sum(axis=0))


def _standing_for(index: ColdIndex, terms: Sequence[str]) -> dict[str, int]:
    """Those of ``terms`` that items hold, with how many; for none of them, terms with the same beginning."""
    known = {term: count for term in terms if (count := index.count(term))}
    if known or (start := beginning(terms)) is None:
        return known
    alike = sorted(term for term in index.starting(start) if term.startswith(start))[:_SAME_BEGINNING]
    return {term: index.count(term) for term in alike}


def _names(
    index: ColdIndex, strong: frozenset[str], weak: frozenset[str]
) -> tuple[Floats, float, NDArray[np.bool_], NDArray[np.bool_]]:
    """What each item holds of the names asked for, the weight of them all, whether it holds any, and whether it defines
    one that was asked for as a name. A name that is only part of another one counts as mentioned."""
    share = np.zeros(index.size, dtype=np.float32)
    holds, defines = np.zeros(index.size, dtype=bool), np.zeros(index.size, dtype=bool)
    wanted = 0.0
    for name, is_strong in [*((name, True) for name in strong), *((name, False) for name in weak)]:
        rows, defined = index.named(name)
        if not is_strong:
            rows, defined = rows[defined], defined[defined]
        weight = rarity(len(rows), len(index)) * (1.0 if is_strong else _WEAK)
        if is_strong or len(rows):
            wanted += weight
        if len(rows):
            share[rows] += weight * np.where(defined, 1.0, _MENTIONED)
            holds[rows] = True
        if is_strong:
            defines[rows[defined]] = True
            inside = np.setdiff1d(Entries.of(index.packed(name)).rows, rows)
            share[inside] += weight * _MENTIONED
            holds[inside] = True
    return share, wanted, holds, defines


def _meaning(index: ColdIndex, query: Query, told: Floats) -> tuple[Floats, Floats]:
    """Plain and calibrated cosine of each item; ``nan`` and 0 for one that was not compared."""
    plain, calibrated = np.full(index.size, np.nan, dtype=np.float32), np.zeros(index.size, dtype=np.float32)
    vector = query.vector
    if vector is None or index.matrix.shape[1] != len(vector):
        return plain, calibrated
    calibration = query.calibration or Calibration()
    rows = index.near(vector, _CLOSE)
    if rows is None:
        # Rows without a vector are zeros, which give 0; they are few.
        found, above = calibration.of_units(index.matrix, vector, index.along(calibration))
        return np.where(index.has_vector, found, np.float32(np.nan)), np.where(index.has_vector, above, np.float32(0))
    by_words = np.flatnonzero((told > 0) & index.has_vector)
    rows = np.union1d(rows, by_words[np.argsort(-told[by_words], kind="stable")[:_CLOSE]])
    if len(rows):
        plain[rows], calibrated[rows] = calibration.of_units(index.matrix[rows], vector)
    return plain, calibrated


def _freshness(index: ColdIndex, query: Query) -> Floats:
    fresh = np.full(index.size, WEIGHTS["freshness"] * math.exp(-1.0), dtype=np.float32)
    own = np.flatnonzero(index.group == index.group_of(query.session_id))
    fresh[own] = WEIGHTS["freshness"] * np.exp(-np.maximum(0, query.step - index.step[own]) / FRESH_STEPS)
    return fresh


# --- together with those around -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RankedItem:
    """A put-away item and the terms of its score."""

    item: ColdRow
    terms: tuple[Term, ...]


def ranked(
    index: ColdIndex,
    text: str,
    numbers: Sequence[int],
    vector: Vector | None,
    kept: int,
    weights: Weights | None = None,
) -> list[RankedItem]:
    """The best ``kept`` of the items ``numbers`` and of those put in right before and after them, best first."""
    around = {row for number in numbers for step in (-1, 0, 1) if (row := index.row(number + step)) is not None}
    if not around:
        return []
    rows = np.array(sorted(around), dtype=np.int64)
    rows = rows[np.lexsort((index.number[rows], index.group[rows]))]
    asked_for = concepts(text)
    cosines = np.full(len(rows), np.nan)
    if vector is not None and index.matrix.shape[1] == len(vector):
        compared = index.has_vector[rows]
        cosines[compared] = index.matrix[rows[compared]] @ vector
    given = Counted(
        asked_for,
        _Held(index, rows, text).counts(asked_for),
        index.length[rows].astype(np.float64),
        np.unique(index.group[rows], return_inverse=True)[1],
        index.number[rows],
        cosines,
        [index.speakers[row] for row in rows.tolist()],
    )
    found = []
    for place, terms in score(text, given, kept, weights):
        one = index.known[int(rows[place])]
        if one is not None and sum(term.value for term in terms) > 0:
            found.append(RankedItem(one, terms))
    return found


class _Held:
    """The terms that some rows hold, with how often each of these rows does; days when the question names one."""

    def __init__(self, index: ColdIndex, rows: Rows, text: str) -> None:
        self._index = index
        self._count = len(rows)
        self._place = np.full(index.size, -1, dtype=np.int64)
        self._place[rows] = np.arange(len(rows))
        self._among = {row: place for place, row in enumerate(rows.tolist())}
        self._known: dict[str, NDArray[np.float64] | None] = {}
        self._days: dict[str, list[int]] = {}
        if mentions_date(text):
            for place, row in enumerate(rows.tolist()):
                if (one := index.known[row]) is not None:
                    for term in date_terms(one.created_at):
                        self._days.setdefault(term, []).append(place)

    def counts(self, asked_for: Sequence[str]) -> NDArray[np.float64]:
        """How often each row holds each word asked for, shape ``(words, rows)``."""
        counts = np.zeros((len(asked_for), self._count))
        for number, forms in enumerate(matched_terms(asked_for, self, self._starting, self._index)):
            for term, weight in forms.items():
                if (held := self._of(term)) is not None:
                    counts[number] = np.maximum(counts[number], weight * held)
        return counts

    def __contains__(self, term: object) -> bool:
        return self._of(str(term)) is not None

    def _starting(self, start: str) -> list[str]:
        days = [term for term in self._days if term.startswith(start)]
        return [*self._index.starting(start), *days]

    def _of(self, term: str) -> NDArray[np.float64] | None:
        if term in self._known:
            return self._known[term]
        held = None
        if term in self._index or term in self._days:
            places, counts = self._places(self._index.packed(term))
            if len(places) or term in self._days:
                held = np.zeros(self._count)
                held[places] = counts
                held[self._days.get(term, [])] += 1
        self._known[term] = held
        return held

    def _places(self, packed: Rows) -> tuple[Sequence[int], Sequence[float]]:
        """The places of the rows that hold a term, and how often each does."""
        if len(packed) > _FEW:
            rows, head, body = Entries.of(packed)
            places = self._place[rows]
            here = places >= 0
            return places[here].tolist(), (head + body)[here].tolist()
        found = [(place, n) for row, n in counted(packed) if (place := self._among.get(row)) is not None]
        return [place for place, _ in found], [n for _, n in found]
