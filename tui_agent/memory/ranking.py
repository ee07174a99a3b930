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
"""What words and meaning weigh for single statements. What words cannot say, meaning takes over (see :func:`blend`).
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


def blend(words_score: float, quality: float, calibrated: float | None) -> tuple[float, float]:
    """The two terms of a single statement, words and meaning.

    ``quality`` is the best share of the question's words that any document holds (0..1): the part of the weight that
    words cannot fill goes to meaning, as when question and memory are in two languages. Beside meaning, a few words of
    many in common say less than their share (``words_score`` to the power of 1.5). Without a vector (``calibrated`` is
    ``None``) words carry the whole weight.
    """
    if calibrated is None:
        return words_score, 0.0
    weight = MEANING + WORDS * (1.0 - min(1.0, max(0.0, quality)))
    return WORDS * float(max(0.0, words_score)) ** WORDS_POWER, weight * calibrated


# --- passages -------------------------------------------------------------------------------------


def rank_passages(
    query: str, passages: Sequence[Passage], limit: int | None = None, weights: Weights | None = None
) -> list[Ranked]:
    """The best ``limit`` passages (all, when ``None``), best first, each with the terms of its score.

    ``passages`` are the candidates with their neighbours, in any order. Without vectors the terms of words stand alone.
    """
    w = weights or Weights()
    if not passages:
        return []
    ordered = sorted(passages, key=lambda passage: (passage.group, passage.place))
    asked = concepts(query)
    counts, rarity = _counts(query, asked, ordered)
    lengths = np.array([max(1, sum(passage.stems.values())) for passage in ordered], dtype=np.float64)
    follows = _follows(ordered)
    groups = np.unique([passage.group for passage in ordered], return_inverse=True)[1]

    together = counts + _shift(counts, follows)
    per_group = np.zeros((len(asked), int(groups.max()) + 1))
    np.add.at(per_group.T, groups, counts.T)
    own, held = _bm25(counts, lengths, rarity)
    pair, pair_held = _bm25(together, lengths + _shift(lengths[None], follows)[0], rarity)
    whole = _bm25(per_group, np.bincount(groups, lengths).astype(np.float64), _rarity(per_group))[0][groups]
    quality = max(float(held.max(initial=0.0)), float(pair_held.max(initial=0.0)))

    cosines = np.array([np.nan if p.cosine is None else p.cosine for p in ordered])
    known = ~np.isnan(cosines)
    meaning = np.zeros(len(ordered))
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
    before = w.before * _shift(base[None], follows)[0]
    after = w.after * _shift_back(base[None], follows)[0]
    total = base + before + after
    said = _asked_speaker(query, ordered)
    speaker = w.speaker * float(total.max()) * said if said.any() else np.zeros(len(ordered))
    total = total + speaker

    found = []
    for n in map(int, np.argsort(-total, kind="stable")[:limit]):
        matched = ", ".join(word for word, row in zip(asked, counts, strict=True) if row[n])
        terms = [
            Term("words", float(parts[0, n]), matched),
            Term("context", float(parts[1, n]), "with the passage before"),
            Term("conversation", float(parts[2, n]), "what the whole conversation holds"),
            Term("meaning", float(parts[3, n]), f"cosine {cosines[n]:.2f}" if known[n] else "no vector"),
            Term("neighbours", float(before[n] + after[n]), "the passages before and after"),
        ]
        if speaker[n]:
            terms.append(Term("speaker", float(speaker[n]), "said by whom the question names"))
        found.append(Ranked(ordered[n], sum(term.value for term in terms), tuple(terms)))
    return found


def _counts(query: str, asked: Sequence[str], passages: Sequence[Passage]) -> tuple[Floats, Floats]:
    """How often each passage holds each word asked for, shape ``(words, passages)``, and the rarity of each word."""
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
    return counts, _rarity(counts)


def _rarity(counts: Floats) -> Floats:
    """Inverse document frequency per word, shape ``(words,)``."""
    held = (counts > 0).sum(axis=1)
    return np.asarray(np.log(1.0 + (counts.shape[1] - held + 0.5) / (held + 0.5)))


def _bm25(counts: Floats, lengths: Floats, rarity: Floats) -> tuple[Floats, Floats]:
    """BM25 per passage, and the share of the question (weighed by rarity) that it holds."""
    norm = K1 * (1.0 - B + B * lengths / max(1e-9, float(lengths.mean())))
    scores = (rarity[:, None] * counts * (K1 + 1.0) / (counts + norm)).sum(axis=0)
    held = (rarity[:, None] * (counts > 0)).sum(axis=0) / max(1e-9, float(rarity.sum()))
    return scores, held


def _relative(scores: Floats) -> Floats:
    return scores / max(1e-9, float(scores.max(initial=0.0)))


def _follows(passages: Sequence[Passage]) -> NDArray[np.bool_]:
    """Whether each passage comes right after the one before it in the list."""
    return np.array(
        [
            n > 0 and p.group == passages[n - 1].group and 0 < p.place - passages[n - 1].place <= _NEAR
            for n, p in enumerate(passages)
        ]
    )


def _shift(rows: Floats, follows: NDArray[np.bool_]) -> Floats:
    """Each column's values of the column before it, 0 where that is no neighbour."""
    return np.where(follows[None], np.roll(rows, 1, axis=1), 0.0)


def _shift_back(rows: Floats, follows: NDArray[np.bool_]) -> Floats:
    followed = np.append(follows[1:], False)
    return np.where(followed[None], np.roll(rows, -1, axis=1), 0.0)


_LABEL_MOST = 160  # characters
_LABEL = re.compile(r"([^\W\d_][\w.’'\-]{0,30}(?: [^\W\d_][\w.’'\-]{0,30}){0,2})(?: \([^)\n]{0,60}\))?:\s")


@lru_cache(maxsize=8192)
def _speaker(head: str) -> str:
    found = _LABEL.match(head)
    return fold(found[1]) if found else ""


def speaker_of(text: str) -> str:
    """The name in front of a line of a transcript (``Anna: …``), folded, or an empty string."""
    return _speaker(text[:_LABEL_MOST])


def _asked_speaker(query: str, passages: Sequence[Passage]) -> NDArray[np.float64]:
    """1 for passages said by the one person that the question names; all 0 when it names none or several."""
    said = [speaker_of(passage.text) for passage in passages]
    often = {name for name, number in Counter(said).items() if name and number > 1}
    asked = {part for word in words(query.replace("’", "'")) for part in (word, word.removesuffix("'s"))}
    named = {name for name in often if set(name.split()) & asked}
    if len(named) != 1 or len(often) < 2:
        return np.zeros(len(passages))
    return np.array([float(name in named) for name in said])
