"""Ranking what was found: one score out of words and meaning, for single statements and for passages of conversations.

Words count by BM25 relative to the best document and times the share of the question that the best one holds, so that
a question whose words are hardly there gives low word scores to all. Meaning counts by calibrated cosines. Both are
added: with ranks alone (equal-weight fusion) the weaker channel drowns the stronger one.

Passages support their neighbours. An answer seldom repeats the words of the question before it, and what one talk is
about says something of each of its turns. Measured on long conversations, that is worth more than a better embedder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.dates import date_terms, mentions_date
from tui_agent.memory.lexical import concepts, matched_terms
from tui_agent.memory.text import fold, words
from tui_agent.memory.types import Term
from tui_agent.memory.vectors import calibrate

Floats = NDArray[np.float64]

WORDS, MEANING = 0.35, 0.90
"""What words and meaning weigh for single statements. What words cannot say, meaning takes over (see
:func:`meaning_weight`).
Cosines above their background seldom pass a half, hence the sum above 1."""
WORDS_POWER = 1.5
RELATED, RELATED_ALONE = 0.2, 1.0
"""What other words for all that is asked weigh, beside meaning and without vectors."""

K1, B = 0.9, 0.4
_NEAR = 2  # places that neighbours may be apart: a tool's message or a deleted one may lie between


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much for a passage: its own words, those together with the passage before, those of the whole
    group, meaning; what it gets from the passages ``before`` and ``after`` it; who speaks, when that is asked for."""

    words: float = 0.27
    context: float = 0.36
    group: float = 0.25
    meaning: float = 0.54
    before: float = 0.30
    after: float = 0.30
    speaker: float = 0.40


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a longer whole. ``stems`` are its terms as the store keeps them (stems of words, names whole);
    ``group`` is the conversation it belongs to and ``place`` its position in there; ``cosine`` that with the question,
    ``None`` without a vector."""

    ref: str
    text: str
    stems: Mapping[str, int]
    group: str = ""
    place: int = 0
    created_at: str = ""
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage with its score, which is the sum of ``terms``."""

    passage: Passage
    score: float
    terms: tuple[Term, ...]


def meaning_weight(quality: float) -> float:
    """What meaning weighs for a single statement: the part of the weight that words cannot fill goes to it, as when
    question and memory are in two languages. ``quality`` is the best share of the question's words that any document
    holds (0..1)."""
    return MEANING + WORDS * (1.0 - min(1.0, max(0.0, quality)))


def words_beside_meaning(words_score: float) -> float:
    """The term of words for a statement that has a vector: a few words of many in common say less than their share
    (0..1). Without a vector words carry the whole weight."""
    return float(WORDS * max(0.0, words_score) ** WORDS_POWER)


# --- passages -------------------------------------------------------------------------------------


def rank_passages(
    query: str, passages: Sequence[Passage], limit: int | None = None, weights: Weights | None = None
) -> list[Ranked]:
    """The best ``limit`` passages (all, when ``None``), best first, each with the terms of its score.

    ``passages`` are the candidates with their neighbours, in any order. Without vectors the terms of words stand alone.
    """
    if not passages:
        return []
    ordered = sorted(passages, key=lambda passage: (passage.group, passage.place))
    asked = concepts(query)
    lengths = np.array([max(1, sum(passage.stems.values())) for passage in ordered], dtype=np.float64)
    numbers: dict[str, int] = {}
    counted = Counted(
        asked,
        _counts(query, asked, ordered),
        lengths,
        np.array([numbers.setdefault(passage.group, len(numbers)) for passage in ordered]),
        np.array([passage.place for passage in ordered]),
        np.array([np.nan if passage.cosine is None else passage.cosine for passage in ordered]),
        [speaker_of(passage.text) for passage in ordered],
    )
    scored = score(query, counted, limit, weights)
    return [Ranked(ordered[n], sum(term.value for term in terms), terms) for n, terms in scored]


@dataclass(frozen=True, slots=True)
class Counted:
    """What the score of passages is made of, in the order of their conversations and places in there.

    ``asked`` are the words of the question and ``counts`` how often each passage holds each, shape
    ``(words, passages)``. All others have one value a passage: ``lengths`` in words (at least 1), ``groups`` a number
    for each conversation from 0 on, ``places`` in it, ``cosines`` with the question (``nan`` without a vector),
    ``speakers`` a folded name or an empty string.
    """

    asked: Sequence[str]
    counts: Floats
    lengths: Floats
    groups: NDArray[np.int64]
    places: NDArray[np.int64]
    cosines: Floats
    speakers: Sequence[str]


def score(
    query: str, given: Counted, limit: int | None = None, weights: Weights | None = None
) -> list[tuple[int, tuple[Term, ...]]]:
    """The best ``limit`` passages (all, when ``None``), best first: the place of each in the order given, and the terms
    whose sum is its score."""
    w = weights or Weights()
    counts, lengths, groups = given.counts, given.lengths, given.groups
    rarity = _rarity(counts)
    follows = np.zeros(len(lengths), dtype=bool)
    apart = given.places[1:] - given.places[:-1]
    follows[1:] = (groups[1:] == groups[:-1]) & (apart > 0) & (apart <= _NEAR)

    together = counts + _shift(counts, follows)
    per_group = np.zeros((int(groups.max()) + 1, len(counts)))
    np.add.at(per_group, groups, counts.T)
    # A passage by itself and together with the one before it, at once.
    both = np.stack([counts, together])
    both_lengths = np.stack([lengths, lengths + _shift(lengths, follows)])
    (own, pair), held = _bm25(both, both_lengths, rarity)
    whole = _bm25(per_group.T, np.bincount(groups, lengths).astype(np.float64), _rarity(per_group.T))[0][groups]
    quality = float(held.max(initial=0.0))

    cosines = given.cosines
    known = ~np.isnan(cosines)
    meaning = np.zeros(len(lengths))
    if known.any():
        meaning[known] = calibrate(cosines[known].astype(np.float32))

    parts = np.vstack(
        [
            w.words * quality * _relative(own),
            w.context * quality * _relative(pair),
            w.group * quality * _relative(whole) * (own + pair > 0),
            w.meaning * meaning,
        ]
    )
    base = parts.sum(axis=0)
    before = w.before * _shift(base, follows)
    after = w.after * _shift_back(base, follows)
    total = base + before + after
    said = _asked_speaker(query, given.speakers)
    speaker = np.zeros(len(lengths))
    if said is not None:
        speaker = w.speaker * float(total.max()) * said
        total = total + speaker

    best = np.argsort(-total, kind="stable")[:limit]
    of_words, of_pair, of_group, of_meaning = parts[:, best].tolist()
    near, voice = (before + after)[best].tolist(), speaker[best].tolist()
    found = []
    for place, n in enumerate(best.tolist()):
        matched = ", ".join(
            word for word, held_n in zip(given.asked, (counts[:, n] > 0).tolist(), strict=True) if held_n
        )
        terms = [
            Term("words", of_words[place], matched),
            Term("context", of_pair[place], "with the passage before"),
            Term("conversation", of_group[place], "what the whole conversation holds"),
            Term("meaning", of_meaning[place], f"cosine {cosines[n]:.2f}" if known[n] else "no vector"),
            Term("neighbours", near[place], "the passages before and after"),
        ]
        if voice[place]:
            terms.append(Term("speaker", voice[place], "said by whom the question names"))
        found.append((n, tuple(terms)))
    return found


def _counts(query: str, asked: Sequence[str], passages: Sequence[Passage]) -> Floats:
    """How often each passage holds each word asked for, shape ``(words, passages)``."""
    found: list[tuple[Mapping[str, int], frozenset[str]]] = []
    vocabulary: set[str] = set()
    dated = mentions_date(query)
    for passage in passages:
        day = frozenset(date_terms(passage.created_at)) if dated else frozenset[str]()
        found.append((passage.stems, day))
        vocabulary.update(passage.stems, day)
    counts = np.zeros((len(asked), len(passages)))
    for row, forms in enumerate(matched_terms(asked, vocabulary)):
        for term, weight in forms.items():
            held = np.array([stems.get(term, 0) + (term in day) for stems, day in found], dtype=np.float64)
            counts[row] = np.maximum(counts[row], weight * held)
    return counts


def _rarity(counts: Floats) -> Floats:
    """Inverse document frequency per word, shape ``(words,)``."""
    held = (counts > 0).sum(axis=1)
    return np.asarray(np.log(1.0 + (counts.shape[1] - held + 0.5) / (held + 0.5)))


def _bm25(counts: Floats, lengths: Floats, rarity: Floats) -> tuple[Floats, Floats]:
    """BM25 per passage, and the share of the question (weighed by rarity) that it holds. The last two axes of
    ``counts`` are words and passages."""
    norm = K1 * (1.0 - B + B * lengths / np.maximum(1e-9, lengths.mean(axis=-1, keepdims=True)))[..., None, :]
    scores = rarity @ (counts * (K1 + 1.0) / (counts + norm))
    held = rarity @ (counts > 0) / max(1e-9, float(rarity.sum()))
    return scores, held


def _relative(scores: Floats) -> Floats:
    return scores / max(1e-9, float(scores.max(initial=0.0)))


def _shift(rows: Floats, follows: NDArray[np.bool_]) -> Floats:
    """Each column's values of the column before it, 0 where that is no neighbour; the last axis is the passages."""
    moved = np.zeros_like(rows)
    np.multiply(rows[..., :-1], follows[1:], out=moved[..., 1:])
    return moved


def _shift_back(rows: Floats, follows: NDArray[np.bool_]) -> Floats:
    moved = np.zeros_like(rows)
    np.multiply(rows[..., 1:], follows[1:], out=moved[..., :-1])
    return moved


_LABEL_MOST = 160  # characters
_LABEL = re.compile(r"([^\W\d_][\w.’'\-]{0,30}(?: [^\W\d_][\w.’'\-]{0,30}){0,2})(?: \([^)\n]{0,60}\))?:\s")


@lru_cache(maxsize=8192)
def _speaker(head: str) -> str:
    found = _LABEL.match(head)
    return fold(found[1]) if found else ""


def speaker_of(text: str) -> str:
    """The name in front of a line of a transcript (``Anna: …``), folded, or an empty string."""
    return _speaker(text[:_LABEL_MOST])


def _asked_speaker(query: str, said: Sequence[str]) -> NDArray[np.float64] | None:
    """1 for passages said by the one person that the question names; ``None`` when it names none or several."""
    often = {name for name, number in Counter(said).items() if name and number > 1}
    if len(often) < 2:
        return None
    asked = {part for word in words(query.replace("’", "'")) for part in (word, word.removesuffix("'s"))}
    named = {name for name in often if set(name.split()) & asked}
    if len(named) != 1:
        return None
    return np.array([float(name in named) for name in said])
