"""Finding by words: an inverted index over stems and identifiers, forgiving about inflection and one wrong letter.

The index is a projection in memory: it is built from texts the stores hold and can be dropped at any time. A query is
a list of concepts (one per word); each matches terms of the index exactly, by a shared stem, or by similar spelling,
and counts once with its best match. So "bramy" finds "brama" although their Polish stems differ, and a typo of one
letter costs a little instead of everything.
"""

from __future__ import annotations

import hashlib
import re
import threading
from array import array
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.senses import BITS, Senses, rarity, take_out
from tui_agent.memory.spelling import Spellings, alike, similarity
from tui_agent.memory.text import STOPWORDS, split_identifier, terms, word_stems, words

__all__ = [
    "LexicalHit",
    "LexicalIndex",
    "RelatedHit",
    "best_line",
    "concepts",
    "index_terms",
    "matched_terms",
    "similarity",
]

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]

K1, B = 1.2, 0.5
"""Constants of BM25 (Robertson and Zaragoza 2009); memories are short, so length counts less than usual."""
_EXACT, _STEM, _PART, _SPELLING = 1.0, 0.85, 0.5, 0.8
_MIN_SIMILAR = 0.58
_LONGEST_KEPT = 64  # characters of a piece of text whose terms are kept
_MAX_SIMILAR_TERMS = 12
_HELD_OFTEN = 4  # documents that hold a word, from which no other spelling of it is looked for
_MOST_SIMILAR_KEPT, _FEW_RESPELLED = 400, 100  # words asked for, and words that came or went meanwhile
_MOST_COUNTED = (1 << BITS) - 1
_NONE: Numbers = np.zeros(0, dtype=np.int64)
_NOTHING: Floats = np.zeros(0, dtype=np.float32)


class LexicalHit(NamedTuple):
    """A document found by words. ``coverage`` is the weighted share of the query that it has, 0..1; ``bm25`` the usual
    score; ``words`` that score relative to the best one, times the best coverage: 0..1 and low for all when the query
    is hardly there at all. ``matched`` are the query words that were found in it."""

    ref: str
    coverage: float
    bm25: float
    words: float
    matched: tuple[str, ...]


class RelatedHit(NamedTuple):
    """A document that has other words for what is asked: for the weighed ``share`` of the question (0..1), for the
    question's words in ``matched``."""

    ref: str
    share: float
    matched: tuple[str, ...]


@lru_cache(maxsize=65536)
def _term_forms(term: str) -> tuple[str, ...]:
    """A term and its stems, the latter marked by ``~``; nothing for a stop word."""
    if term in STOPWORDS:
        return ()
    return (term, *(f"~{stem}" for stem in word_stems(term)))


@lru_cache(maxsize=65536)
def _chunk_forms(chunk: str) -> tuple[tuple[str, ...], int]:
    """The terms of a piece of text without white space, and how many words it is. No word goes beyond white space."""
    return tuple(form for term in terms(chunk) for form in _term_forms(term)), len(words(chunk))


def index_terms(text: str) -> dict[str, int]:
    """What a document is indexed under, counted: folded words, parts of identifiers, and the stems of both."""
    return _counted(text)[0]


def _counted(text: str) -> tuple[dict[str, int], int]:
    found: dict[str, int] = {}
    length = 0
    for chunk in text.split():
        forms, number = _chunk_forms(chunk) if len(chunk) <= _LONGEST_KEPT else _chunk_forms.__wrapped__(chunk)
        length += number
        for form in forms:
            found[form] = found.get(form, 0) + 1
    return found, max(1, length)


class LexicalIndex:
    """An index over ``{ref: text}``. Thread-safe; every change costs only what the changed document holds."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # By number of the document. The garbage collector does not follow lists and dictionaries of plain texts and
        # numbers; many thousands of objects or sets in their place would make it stop the whole app for a while.
        self._refs: list[str] = []
        self._digests: list[bytes] = []
        self._terms: list[tuple[str, ...]] = []
        self._number: dict[str, int] = {}
        self._free: list[int] = []
        self._lengths: Floats = np.zeros(64, dtype=np.float32)
        self._total_length = 0.0
        # Most terms are in one document only: then the posting itself stands here, else a flat array of them.
        self._postings: dict[str, int | array[int]] = {}
        self._spellings = Spellings()
        self._senses = Senses()
        self._similar_known: dict[str, list[tuple[str, float]]] = {}
        self._respelled: list[str] = []

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, ref: object) -> bool:
        return ref in self._number

    # -- changing -------------------------------------------------------------------------------------------------

    def sync(self, texts: Mapping[str, str]) -> int:
        """Make the index hold exactly ``texts``; returns how many documents were added, changed or removed."""
        with self._lock:
            gone = [ref for ref in self._number if ref not in texts]
            return sum(map(self.discard, gone)) + sum(self.put(ref, text) for ref, text in texts.items())

    def put(self, ref: str, text: str) -> bool:
        """Index a document under ``ref``; false when it is there with the same text already."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        with self._lock:
            number = self._number.get(ref)
            if number is not None:
                if self._digests[number] == digest:
                    return False
                self.discard(ref)
            found, length = _counted(text)
            if self._free:
                number = self._free.pop()
                self._refs[number], self._digests[number], self._terms[number] = ref, digest, tuple(found)
            else:
                number = len(self._refs)
                self._refs.append(ref)
                self._digests.append(digest)
                self._terms.append(tuple(found))
            if number >= len(self._lengths):
                self._lengths = np.concatenate([self._lengths, np.zeros_like(self._lengths)])
            self._number[ref] = number
            self._senses.put(number, text)
            self._lengths[number] = length
            self._total_length += length
            for term, count in found.items():
                posting, packed = self._postings.get(term), number << BITS | min(count, _MOST_COUNTED)
                if posting is None:
                    self._postings[term] = packed
                    self._spell(term, known=True)
                elif isinstance(posting, int):
                    self._postings[term] = array("q", (posting, packed))
                else:
                    posting.append(packed)
            return True

    def discard(self, ref: str) -> bool:
        """Take a document out; false when it is not there."""
        with self._lock:
            number = self._number.pop(ref, None)
            if number is None:
                return False
            gone, self._terms[number], self._refs[number] = self._terms[number], (), ""
            self._total_length -= float(self._lengths[number])
            self._free.append(number)
            self._senses.discard(number)
            for term in gone:
                posting = self._postings[term]
                if isinstance(posting, int):
                    del self._postings[term]
                    self._spell(term, known=False)
                    continue
                take_out(posting, number)
                if len(posting) == 1:
                    self._postings[term] = posting[0]
            return True

    def _spell(self, term: str, *, known: bool) -> None:
        """Keep the words among which similar spellings are found; stems are none."""
        if term.startswith("~"):
            return
        if known:
            self._spellings.add(term)
        else:
            self._spellings.discard(term)
        if self._similar_known:
            self._respelled.append(term)

    # -- asking ---------------------------------------------------------------------------------------------------

    def search(self, query: str, limit: int = 50) -> list[LexicalHit]:
        """Documents that share words with ``query``, best first."""
        with self._lock:
            count = len(self._number)
            asked = concepts(query)
            if not count or not asked or limit < 1:
                return []
            size = len(self._refs)
            which, numbers, strengths, counted = self._held_by(asked)
            if not len(numbers):
                return []
            weights = np.array([rarity(n, count) for n in np.bincount(which, minlength=len(asked)).tolist()])
            weight = weights[which]
            norm = K1 * (1 - B) + K1 * B * count / self._total_length * self._lengths[numbers]
            coverage = np.bincount(numbers, weight * strengths, size) / weights.sum()
            scores = weight * (K1 + 1) * counted / (counted + norm)
            bm25 = np.bincount(numbers, scores, size).astype(np.float64)
            quality = float(coverage.max()) / float(bm25.max())
            best = _largest(bm25, limit)
            matched = _holders(best, [(asked[n], numbers[which == n]) for n in np.unique(which).tolist()], size)
            return [
                LexicalHit(self._refs[number], share, scored, scored * quality, words)
                for number, share, scored, words in zip(
                    best.tolist(), coverage[best].tolist(), bm25[best].tolist(), matched, strict=True
                )
            ]

    def related(self, query: str, limit: int = 50) -> list[RelatedHit]:
        """Documents that say what ``query`` asks for in other words, in any of the three languages, best first."""
        with self._lock:
            size, count = len(self._refs), len(self._number)
            if not count or limit < 1:
                return []
            shares, found = self._senses.shares(query, size, count, self._holding)
            best = _largest(shares, limit)
            matched = _holders(best, [(word, np.flatnonzero(own)) for word, own in found], size)
            return [
                RelatedHit(self._refs[number], share, words)
                for number, share, words in zip(best.tolist(), shares[best].tolist(), matched, strict=True)
            ]

    def _holding(self, word: str) -> NDArray[np.int64]:
        """Numbers of the documents that hold a word or its stem."""
        held = [self._documents(form) for form in _term_forms(word) if form in self._postings]
        return np.concatenate(held) if held else np.zeros(0, dtype=np.int64)

    def _held_by(self, asked: Sequence[str]) -> tuple[Numbers, Numbers, Floats, Floats]:
        """Which of the query's words (by place) each document holds, in the order of both; the strength of the best
        match, and that times how often it occurs. All words in one go: word by word, most of the time goes into the
        calls."""
        packed: list[NDArray[np.int64]] = []
        singles: list[int] = []
        of_packed: list[tuple[int, float, int]] = []
        of_singles: list[tuple[int, float, int]] = []
        for place, word in enumerate(asked):
            for term, strength in self._matches(word).items():
                posting = self._postings[term]
                if isinstance(posting, int):
                    singles.append(posting)
                    of_singles.append((place, strength, 1))
                else:
                    packed.append(np.frombuffer(posting, dtype=np.int64))
                    of_packed.append((place, strength, len(posting)))
        if not packed and not singles:
            return _NONE, _NONE, _NOTHING, _NOTHING
        together = np.concatenate([*packed, np.array(singles, dtype=np.int64)])
        told = np.array(of_packed + of_singles)
        times = told[:, 2].astype(np.int64)
        strengths = np.repeat(told[:, 1].astype(np.float32), times)
        keys = np.repeat(told[:, 0].astype(np.int64), times) * len(self._refs) + (together >> BITS)
        order = np.argsort(keys, kind="stable")
        keys, strengths, counts = keys[order], strengths[order], (together & _MOST_COUNTED)[order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        counted = np.maximum.reduceat(strengths * counts.astype(np.float32), starts)
        which, numbers = np.divmod(keys[starts], len(self._refs))
        return which, numbers, np.maximum.reduceat(strengths, starts), counted

    def _documents(self, term: str) -> Numbers:
        posting = self._postings[term]
        packed = np.array([posting]) if isinstance(posting, int) else np.frombuffer(posting, dtype=np.int64)
        return packed >> BITS

    def _matches(self, word: str) -> dict[str, float]:
        """Terms of the index that stand for a query word, with how sure that is."""
        found = {word: _EXACT} if word in self._postings else {}
        for form in _term_forms(word)[1:]:
            if form in self._postings:
                found[form] = _STEM
        for part in split_identifier(word):
            if part != word and part in self._postings and part not in STOPWORDS:
                # Where the name itself is known, another that shares a part with it is another thing.
                found.setdefault(part, _PART / 2 if word in self._postings else _PART)
        if len(word) >= 3 and self._held(found) < _HELD_OFTEN:
            for term, score in self._similar(word):
                # A word of three letters has too many neighbours to look past itself.
                if len(word) > 3 or word not in self._postings:
                    found.setdefault(term, score)
        return found

    def _held(self, terms: Iterable[str]) -> int:
        """How many documents hold the most frequent of some terms."""
        postings = [self._postings[term] for term in terms]
        return max((1 if isinstance(posting, int) else len(posting) for posting in postings), default=0)

    def _similar(self, word: str) -> list[tuple[str, float]]:
        """Terms spelled like ``word``: one letter off, or the same beginning with another ending."""
        if self._respelled:
            self._forget_similar()
        if (known := self._similar_known.get(word)) is not None:
            return known
        if len(self._similar_known) >= _MOST_SIMILAR_KEPT:
            self._similar_known.clear()
        near = self._spellings.near(word, _MIN_SIMILAR)
        self._similar_known[word] = [(term, score * _SPELLING) for term, score in near[:_MAX_SIMILAR_TERMS]]
        return self._similar_known[word]

    def _forget_similar(self) -> None:
        """What was found for words that are spelled like those that came or went since holds no longer."""
        if len(self._respelled) > _FEW_RESPELLED:
            self._similar_known.clear()
        for term in self._respelled:
            for word, _ in alike(term, list(self._similar_known), _MIN_SIMILAR):
                del self._similar_known[word]
        self._respelled.clear()


def _largest(scores: NDArray[np.floating[Any]], limit: int) -> Numbers:
    """Indexes of the ``limit`` largest scores above 0, largest first; among equals the older document."""
    places = np.flatnonzero(scores > 0)
    if limit < len(places):
        places = np.sort(places[np.argpartition(-scores[places], limit)[:limit]])
    return np.asarray(places[np.argsort(-scores[places], kind="stable")])


def _holders(best: Numbers, found: Iterable[tuple[str, Numbers]], size: int) -> list[tuple[str, ...]]:
    """For each document in ``best`` the words whose documents it is among."""
    held = np.zeros(size, dtype=bool)
    matched: list[list[str]] = [[] for _ in range(len(best))]
    for word, numbers in found:
        held[numbers] = True
        for place in np.flatnonzero(held[best]).tolist():
            matched[place].append(word)
        held[numbers] = False
    return [tuple(words) for words in matched]


def concepts(query: str) -> list[str]:
    """The query's words, folded, each once, without stop words; identifiers whole."""
    return list(dict.fromkeys(word for word in words(query) if word not in STOPWORDS and any(map(str.isalnum, word))))


def best_line(query: str, text: str, width: int = 240) -> str:
    """The line of ``text`` that shares most words with ``query``, for showing why a long text was found."""
    wanted = {form for word in concepts(query) for form in _term_forms(word)}
    best, score = "", -1
    for line in text.splitlines():
        if not line.strip():
            continue
        held = len(wanted & _counted(line)[0].keys())
        if held > score:
            best, score = line.strip(), held
    return best[:width]


def matched_terms(
    words_asked: Iterable[str],
    known: Container[str],
    starting: Callable[[str], Iterable[str]] | None = None,
    elsewhere: Container[str] = (),
) -> list[dict[str, float]]:
    """For each query word the stems among ``known`` (unmarked) that stand for it, with how sure that is.

    A word none of whose stems is known is looked for by its spelling, among those that ``starting(two letters)`` gives
    (which may hold others too); without it ``known`` is gone through. Not so a word that is used ``elsewhere``: it is
    spelled as it should be. For passages, whose stems the stores keep.
    """
    if starting is None:
        assert isinstance(known, Iterable)
        starting = _Starting(known)
    found: list[dict[str, float]] = []
    for word in words_asked:
        forms = {part: _PART for part in split_identifier(word) if part in known and part not in STOPWORDS}
        whole = (*(form.lstrip("~") for form in _term_forms(word)), "".join(filter(str.isalnum, word)))
        forms |= {form: _EXACT for form in whole if form in known}
        if not forms and len(word) >= 4 and not any(form in elsewhere for form in whole):
            stem = word_stems(word)[0]
            near = alike(stem, list(starting(word[:2])), _MIN_SIMILAR)
            forms = {term: score * _SPELLING for term, score in near if term in known}
        found.append(forms)
    return found


class _Starting:
    """Those of some terms that begin with given letters: one search through all is faster than many comparisons."""

    def __init__(self, terms: Iterable[str]) -> None:
        self._terms = terms
        self._listed = ""

    def __call__(self, start: str) -> list[str]:
        self._listed = self._listed or "\n".join(self._terms)
        return re.findall(f"^{re.escape(start)}.*$", self._listed, re.MULTILINE)
