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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.senses import BITS, Senses, rarity, take_out
from tui_agent.memory.spelling import Spellings, similarity
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

K1, B = 1.2, 0.5
"""Constants of BM25 (Robertson and Zaragoza 2009); memories are short, so length counts less than usual."""
_EXACT, _STEM, _PART, _SPELLING = 1.0, 0.85, 0.5, 0.8
_MIN_SIMILAR = 0.58
_LONGEST_KEPT = 64  # characters of a piece of text whose terms are kept
_MAX_SIMILAR_TERMS = 12
_MOST_COUNTED = (1 << BITS) - 1


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A document found by words. ``coverage`` is the weighted share of the query that it has, 0..1; ``bm25`` the usual
    score; ``words`` that score relative to the best one, times the best coverage: 0..1 and low for all when the query
    is hardly there at all. ``matched`` are the query words that were found in it."""

    ref: str
    coverage: float
    bm25: float
    words: float
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RelatedHit:
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
        self._similar_known.clear()
        if known:
            self._spellings.add(term)
        else:
            self._spellings.discard(term)

    # -- asking ---------------------------------------------------------------------------------------------------

    def search(self, query: str, limit: int = 50) -> list[LexicalHit]:
        """Documents that share words with ``query``, best first."""
        with self._lock:
            count = len(self._number)
            asked = concepts(query)
            if not count or not asked or limit < 1:
                return []
            size = len(self._refs)
            lengths = self._lengths[:size]
            norm = K1 * (1 - B + B * lengths * (count / self._total_length))
            coverage, bm25 = np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
            strengths: list[tuple[str, Floats]] = []
            total = 0.0
            for word in asked:
                found, counted = self._strengths(word, size)
                holders = int(np.count_nonzero(found > 0))
                weight = rarity(holders, count)
                total += weight
                if holders:
                    strengths.append((word, found))
                    coverage += weight * found
                    bm25 += weight * counted * (K1 + 1) / (counted + norm)
            if not strengths:
                return []
            coverage /= total
            quality = float(coverage.max()) / float(bm25.max())
            best = _largest(bm25, limit)
            return [
                LexicalHit(
                    self._refs[number],
                    float(coverage[number]),
                    float(bm25[number]),
                    float(bm25[number]) * quality,
                    tuple(word for word, found in strengths if found[number]),
                )
                for number in map(int, best)
                if bm25[number] > 0
            ]

    def related(self, query: str, limit: int = 50) -> list[RelatedHit]:
        """Documents that say what ``query`` asks for in other words, in any of the three languages, best first."""
        with self._lock:
            size, count = len(self._refs), len(self._number)
            if not count or limit < 1:
                return []
            shares, found = self._senses.shares(query, size, count, self._holding)
            return [
                RelatedHit(
                    self._refs[number], float(shares[number]), tuple(word for word, own in found if own[number] > 0)
                )
                for number in map(int, _largest(shares, limit))
                if shares[number] > 0
            ]

    def _holding(self, word: str) -> NDArray[np.int64]:
        """Numbers of the documents that hold a word or its stem."""
        held = [self._posting(form)[0] for form in _term_forms(word) if form in self._postings]
        return np.concatenate(held) if held else np.zeros(0, dtype=np.int64)

    def _strengths(self, word: str, size: int) -> tuple[Floats, Floats]:
        """For each document the strength of its best match with one query word, and that times how often it occurs;
        0 where there is none."""
        best, counted = np.zeros(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
        for term, weight in self._matches(word).items():
            numbers, counts = self._posting(term)
            best[numbers] = np.maximum(best[numbers], weight)
            counted[numbers] = np.maximum(counted[numbers], weight * counts)
        return best, counted

    def _posting(self, term: str) -> tuple[NDArray[np.int64], Floats]:
        posting = self._postings[term]
        packed = np.array([posting]) if isinstance(posting, int) else np.frombuffer(posting, dtype=np.int64)
        return packed >> BITS, (packed & _MOST_COUNTED).astype(np.float32)

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
        if len(word) >= 3:
            for term, score in self._similar(word):
                # A word of three letters has too many neighbours to look past itself.
                if len(word) > 3 or word not in self._postings:
                    found.setdefault(term, score)
        return found

    def _similar(self, word: str) -> list[tuple[str, float]]:
        """Terms spelled like ``word``: one letter off, or the same beginning with another ending."""
        if (known := self._similar_known.get(word)) is not None:
            return known
        near = self._spellings.near(word, _MIN_SIMILAR)
        self._similar_known[word] = [(term, score * _SPELLING) for term, score in near[:_MAX_SIMILAR_TERMS]]
        return self._similar_known[word]


def _largest(scores: Floats, limit: int) -> NDArray[np.int64]:
    """Indexes of the ``limit`` largest scores, largest first; among equals the older document."""
    if limit < len(scores):
        kept = np.sort(np.argpartition(-scores, limit)[:limit])
        return np.asarray(kept[np.argsort(-scores[kept], kind="stable")])
    return np.asarray(np.argsort(-scores, kind="stable"))


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


def matched_terms(words_asked: Iterable[str], known: Iterable[str]) -> list[dict[str, float]]:
    """For each query word the stems among ``known`` (unmarked) that stand for it, with how sure that is.

    A word none of whose stems is known is looked for by its spelling. For passages, whose stems the stores keep.
    """
    vocabulary = known if isinstance(known, (set, frozenset)) else set(known)
    listed = ""
    found: list[dict[str, float]] = []
    for word in words_asked:
        forms = {part: _PART for part in split_identifier(word) if part in vocabulary and part not in STOPWORDS}
        whole = (*(form.lstrip("~") for form in _term_forms(word)), "".join(filter(str.isalnum, word)))
        forms |= {form: _EXACT for form in whole if form in vocabulary}
        if not forms and len(word) >= 4:
            stem, start = word_stems(word)[0], word[:2]
            listed = listed or "\n".join(vocabulary)  # one search through it all is faster than many comparisons
            alike = re.findall(f"^{re.escape(start)}.*$", listed, re.MULTILINE)
            near = ((term, similarity(stem, term)) for term in alike if abs(len(term) - len(stem)) <= 4)
            forms = {term: score * _SPELLING for term, score in near if score >= _MIN_SIMILAR}
        found.append(forms)
    return found
