"""Finding put-away items: by the names they define and mention, by their words, and by meaning; one fused order.

Each channel is scaled to 0 … 1 in absolute terms, so that a poor best match stays poor: names and words by the share of
those asked for (weighed by rarity) that an item holds, meaning by the calibrated cosine. The sum is linear;
equal-weight rank fusion loses to plain BM25 on material like this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tui_agent.memory.cold_terms import asked_words
from tui_agent.memory.database import Database
from tui_agent.memory.scoring import Calibration, Floats, kind_weight
from tui_agent.memory.sketches import Sketches
from tui_agent.memory.symbols import Asked, asked
from tui_agent.memory.text import fts_any
from tui_agent.memory.types import Term, Vector

WEIGHTS = {"names": 0.5, "words": 0.7, "meaning": 1.0, "kind": 0.1, "references": 0.04, "freshness": 0.01}
"""Factors of the channels; the last three only decide between near equals."""

_CANDIDATES = 64  # taken from the vector sketches
_LEXICAL = 48
_DESCRIBED = 48  # candidates whose rows are read
THRESHOLD = 0.2
"""What names, words and meaning must add up to."""

_FEWEST_WORDS = 0.14  # a fifth of the question's words, by rarity
_MOST_ROWS = 3000  # rows scored by BM25 at most: common words are left out of a question that has rarer ones
_MOST_SYMBOLS = 400
FRESH_STEPS = 60.0
SATURATION = 0.2  # how soon more mentions of a word stop counting
_SHORTEST_PREFIX = 4
_REBUILD_UNTIL = 4096  # sketches are made anew with a better mean as their number doubles, up to this


@dataclass(frozen=True, slots=True)
class Query:
    """A question. ``limit`` counts items that are not hot in ``session_id``; those come along, marked.

    ``own`` is how many items are hot there, ``crowded`` says that other scopes share the database.
    """

    scope: str
    session_id: str
    text: str
    limit: int
    step: int = 0
    vector: Vector | None = None
    identity: str = ""
    calibration: Calibration | None = None
    only_zone: str = ""
    own: int = 0
    crowded: bool = False


@dataclass(slots=True)
class Hit:
    """A found item. ``words`` and ``share`` are what it holds of the words and names asked for, by rarity.

    ``cosine`` is the plain cosine with the question, ``None`` without vectors; ``names`` are the asked names it holds
    (``named`` where they are not listed), ``defines`` whether it defines one that was asked for as a name.
    """

    number: int
    id: str = ""
    kind: str = ""
    zone: str = ""
    session_id: str = ""
    lineage: str = ""
    digest: bytes = b""
    important: bool = False
    reason: str = ""
    put_away_step: int = 0
    tokens: int = 0
    references: int = 0
    created_at: str = ""
    source: str = ""
    summary: str = ""
    text: str = ""
    shown: bool = False
    words: float = 0.0
    share: float = 0.0
    cosine: float | None = None
    calibrated: float = 0.0
    names: list[str] = field(default_factory=list)
    named: bool = False
    inside: list[str] = field(default_factory=list)
    own: bool = False
    defines: bool = False
    score: float = 0.0
    told: tuple[float, float, float] = (0.0, 0.0, 0.0)
    terms: tuple[Term, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether it has to do with the question at all: it holds an asked name, a fair share of the words, or names,
        words and meaning (``told``) together reach :data:`THRESHOLD`."""
        return bool(self.names) or self.named or self.told[1] >= _FEWEST_WORDS or sum(self.told) >= THRESHOLD


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the question: the terms that items hold for it, with how many items, and how rare it is."""

    terms: dict[str, int]
    rarity: float
    total: int

    @classmethod
    def of(cls, terms: tuple[str, ...], known: dict[str, int], total: int) -> _Word:
        return cls(known, max((rarity(count, total) for count in known.values()), default=rarity(1, total)), total)

    def share(self, text: str, spread: float) -> float:
        """What a text that holds the word gets of its rarity; more for several times, less in a long text."""
        best = 0.0
        for term, count in self.terms.items():
            times = text.count(f" {term} ")
            if times:
                best = max(best, rarity(count, self.total) * times * (1 + SATURATION) / (times + SATURATION * spread))
        return best


class ColdSearch:
    """Search over the items of one database. Keeps sketches of the vectors and counts of common terms in memory."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._sketches: dict[str, tuple[Sketches, int, int]] = {}  # by embedder: sketches, last vector, size when made
        self._counts: dict[str, tuple[int, int]] = {}  # by term: items that hold it, items there were

    def search(self, query: Query) -> list[Hit]:
        """The best ``query.limit`` items with their terms and texts, best first."""
        hits: dict[int, Hit] = {}
        total = int(self._db.value("SELECT coalesce(max(number), 0) FROM wm_items"))
        names = asked(query.text)
        self._by_words(query, hits, total, names.strong)
        wanted = self._by_names(query, hits, total, names)
        self._by_meaning(query, hits)
        for hit in hits.values():
            hit.told = _told(hit, wanted)
        likely = sorted(hits.values(), key=lambda h: -sum(h.told))
        hits = {hit.number: hit for hit in likely[: _DESCRIBED + 2 * query.limit + query.own]}
        self._describe(query, hits)
        for hit in hits.values():
            hit.score = sum(_values(hit, query))
        seen: set[bytes] = set()
        chosen: list[Hit] = []
        left = query.limit
        for hit in sorted(hits.values(), key=lambda h: (-h.score, not h.own, h.number)):
            if hit.digest not in seen and left > 0:
                seen.add(hit.digest)
                chosen.append(hit)
                left -= not hit.own
        self._complete({hit.number: hit for hit in chosen})
        for hit in chosen:
            hit.terms = _terms(hit, query)
        return chosen

    # --- words ------------------------------------------------------------------------------------

    def _by_words(self, query: Query, hits: dict[int, Hit], total: int, strong: frozenset[str]) -> None:
        """Adds hits by full text and how much of the question's words each holds.

        FTS5 finds the candidates. Their share is computed here: its BM25 gives nothing for a word that half of the
        items hold, and in a young project that may be every word of the question.
        """
        words = [_Word.of(terms, self._known(terms, total), total) for terms in asked_words(query.text)]
        weight = sum(word.rarity for word in words)
        terms = sorted({(count, term) for word in words for term, count in word.terms.items()})
        if not terms:
            return
        taken: list[str] = []
        rows = 0
        for count, term in terms:
            if taken and rows + count > _MOST_ROWS:
                break
            taken.append(term)
            rows += count
        expression = fts_any(taken)
        if rows > _MOST_ROWS and len(terms) > 1:  # even the rarest word is everywhere: ask for two together
            expression = f"({fts_any([terms[0][1]])}) AND ({fts_any([terms[1][1]])})"
        visible, values = _visible(query) if query.crowded else ("1", ())
        # Other scopes share the index: what must not be seen must not take the places.
        join = "JOIN wm_items i ON i.number = t.rowid" if query.crowded else ""
        found = self._db.rows(
            f"SELECT t.rowid, head, body FROM wm_terms t {join} WHERE wm_terms MATCH ? AND {visible} "
            "ORDER BY t.rank LIMIT ?",
            (expression, *values, _LEXICAL + query.own),
        )
        usual = sum(len(body) for _, _, body in found) / max(1, len(found))
        for number, head, body in found:
            text = f" {head} {head} {body} "  # summary and source count twice
            spread = 0.6 + 0.4 * len(body) / max(1.0, usual)
            hit = hits.setdefault(int(number), Hit(int(number)))
            hit.words = sum(word.share(text, spread) for word in words) / weight
            hit.inside = [name for name in strong if f" {name} " in text]

    def _known(self, terms: tuple[str, ...], total: int) -> dict[str, int]:
        """Those of ``terms`` that items hold, with how many; for none of them, terms with the same beginning."""
        counted = {term: count for term in terms if (count := self._count(term, total))}
        if counted or (start := beginning(terms)) is None:
            return counted
        rows = self._db.rows(
            "SELECT term, doc FROM wm_vocabulary WHERE term >= ? AND term < ? LIMIT 6", (start, f"{start}\uffff")
        )
        return {str(term): int(count) for term, count in rows}

    def _count(self, term: str, total: int) -> int:
        """In how many items a term is; counted again when their number has grown by a fifth."""
        known = self._counts.get(term)
        if known is not None and known[1] <= total <= max(known[1] * 6 // 5, known[1] + 5) and known[0]:
            return known[0]
        count = int(self._db.value("SELECT doc FROM wm_vocabulary WHERE term = ?", (term,)) or 0)
        if len(self._counts) > 50_000:
            self._counts.clear()
        self._counts[term] = (count, total)
        return count

    # --- names ------------------------------------------------------------------------------------

    def _by_names(self, query: Query, hits: dict[int, Hit], total: int, names: Asked) -> float:
        """Adds hits by names; returns the weight of all names asked for. A name that is only part of another one (of a
        test, a path) counts as mentioned."""
        wanted = 0.0
        for name, is_strong in [*((name, True) for name in names.strong), *((name, False) for name in names.weak)]:
            only = "" if is_strong else " AND defined = 1"
            found = self._db.rows(
                f"SELECT item, defined FROM wm_symbols WHERE key = ?{only} ORDER BY item DESC LIMIT ?",
                (name, _MOST_SYMBOLS),
            )
            weight = rarity(len(found), total) * (1.0 if is_strong else 0.4)
            if is_strong or found:
                wanted += weight
            for row in found:
                hit = hits.setdefault(int(row["item"]), Hit(int(row["item"])))
                hit.share += weight * (1.0 if row["defined"] else 0.6)
                hit.names.append(name)
                hit.defines = hit.defines or (bool(row["defined"]) and is_strong)
            for hit in hits.values():
                if name in hit.inside and name not in hit.names:
                    hit.share += weight * 0.6
                    hit.names.append(name)
        return wanted

    # --- meaning ----------------------------------------------------------------------------------

    def _by_meaning(self, query: Query, hits: dict[int, Hit]) -> None:
        """Adds hits by vectors, and the cosine to hits of the other channels."""
        if query.vector is None or not query.identity:
            return
        embedder = self._db.value("SELECT number FROM wm_embedders WHERE identity = ?", (query.identity,))
        if embedder is None:
            return
        sketches = self._refreshed(query, int(embedder))
        near = sketches.nearest(query.vector, _CANDIDATES + query.own)
        found: list[tuple[int, bytes]] = []
        for part in _parts(list(dict.fromkeys([*near.tolist(), *hits]))):
            marks = ", ".join("?" * len(part))
            sql = f"SELECT item, vector FROM wm_vectors WHERE embedder = ? AND item IN ({marks})"
            found.extend((int(row[0]), bytes(row[1])) for row in self._db.rows(sql, (int(embedder), *part)))
        found = [(number, blob) for number, blob in found if len(blob) == 4 * len(query.vector)]
        if not found:
            return
        matrix = np.frombuffer(b"".join(blob for _, blob in found), dtype="<f4").reshape(len(found), -1)
        plain, calibrated = (query.calibration or Calibration()).of_units(matrix, query.vector)
        for (number, _), cos, cal in zip(found, plain.tolist(), calibrated.tolist(), strict=True):
            hit = hits.setdefault(number, Hit(number))
            hit.cosine, hit.calibrated = cos, cal

    def _refreshed(self, query: Query, embedder: int) -> Sketches:
        """The sketches of an embedder with everything that was written since, by this or another process."""
        assert query.vector is not None
        made, last, size = self._sketches.get(query.identity, (None, 0, 0))
        mean: Floats | None = query.calibration.mean if query.calibration is not None else None
        if made is None or made.dimension != len(query.vector) or (len(made) >= 2 * size and size < _REBUILD_UNTIL):
            made, last = Sketches(len(query.vector), mean), 0
        while True:
            rows = self._db.rows(
                "SELECT number, item, vector FROM wm_vectors WHERE number > ? AND embedder = ? "
                "ORDER BY number LIMIT 1000",
                (last, embedder),
            )
            if not rows:
                break
            fitting = [row for row in rows if len(row["vector"]) == 4 * made.dimension]
            blob = b"".join(row["vector"] for row in fitting)
            made.add(
                [int(row["item"]) for row in fitting], np.frombuffer(blob, dtype="<f4").reshape(-1, made.dimension)
            )
            last = int(rows[-1]["number"])
        if last != self._sketches.get(query.identity, (None, 0, 0))[1]:
            grown = size if size and len(made) < 2 * size else max(64, len(made))
            self._sketches[query.identity] = (made, last, grown)
        return made

    # --- together ---------------------------------------------------------------------------------

    def _describe(self, query: Query, hits: dict[int, Hit]) -> None:
        """Reads what the score needs to know of the hits, and drops those that must not be seen."""
        visible, values = _visible(query)
        known: set[int] = set()
        for part in _parts(list(hits)):
            rows = self._db.rows(
                "SELECT number, id, kind, source, session_id, digest, put_away_step, refs, zone, important, reason "
                "FROM wm_items i "
                f"WHERE number IN ({', '.join('?' * len(part))}) AND {visible}",
                (*part, *values),
            )
            for number, item_id, kind, source, session_id, digest, step, references, zone, important, reason in rows:
                hit = hits[number]
                hit.own = zone == "hot" and session_id == query.session_id
                hit.id, hit.kind, hit.source, hit.session_id, hit.digest = item_id, kind, source, session_id, digest
                hit.zone, hit.important, hit.reason = zone, bool(important), reason
                hit.put_away_step, hit.references = step, references
                known.add(number)
        for number in [number for number in hits if number not in known]:
            del hits[number]

    def _complete(self, hits: dict[int, Hit]) -> None:
        """Reads the rest of the chosen hits."""
        rows = []
        for part in _parts(list(hits)):
            rows += self._db.rows(f"SELECT * FROM wm_items WHERE number IN ({', '.join('?' * len(part))})", part)
        for row in rows:
            hit = hits[int(row["number"])]
            hit.lineage, hit.tokens = str(row["lineage"]), int(row["tokens"])
            hit.created_at, hit.summary = str(row["created_at"]), str(row["summary"])
            hit.shown, hit.text = bool(row["shown"]), str(row["text"])


def beginning(terms: Sequence[str]) -> str | None:
    """What terms that may stand for an unknown word begin with; ``None`` for a short one or one with other signs."""
    first = terms[0]
    if len(first) < _SHORTEST_PREFIX + 1 or not first.isalpha():
        return None
    return first[: max(_SHORTEST_PREFIX, len(first) - 2)]


def _visible(query: Query) -> tuple[str, tuple[str, ...]]:
    """What a question may see. Items hot in its own session are seen too, marked as ``own``."""
    if query.only_zone:
        return "i.scope = ? AND i.zone = ?", (query.scope, query.only_zone)
    return "i.scope = ?", (query.scope,)


def rarity(count: int, total: int) -> float:
    """Inverse document frequency that never reaches zero; what nobody has counts as what one has."""
    count = max(1, count)
    return math.log(1.0 + (max(total, count) - count + 0.5) / (count + 0.5)) + 0.25


def references_share(references: int) -> float:
    """How much later mentions of its names say for an item, 0..1."""
    return min(1.0, math.log1p(references) / 2.4)


def _told(hit: Hit, wanted: float) -> tuple[float, float, float]:
    """The terms of a hit that the question decides."""
    w = WEIGHTS
    return (
        w["names"] * min(1.0, hit.share / wanted) if wanted else 0.0,
        w["words"] * min(1.0, hit.words),
        w["meaning"] * max(0.0, hit.calibrated),
    )


def _values(hit: Hit, query: Query) -> tuple[float, ...]:
    w = WEIGHTS
    age = query.step - hit.put_away_step if hit.session_id == query.session_id else FRESH_STEPS
    return (
        *hit.told,
        w["kind"] * kind_weight(hit.kind) / 3.0,
        w["references"] * references_share(hit.references),
        w["freshness"] * math.exp(-max(0, age) / FRESH_STEPS),
    )


def _terms(hit: Hit, query: Query) -> tuple[Term, ...]:
    notes = (
        f"holds {', '.join(hit.names[:4])}" if hit.names else "",
        f"{min(1.0, hit.words):.0%} of the question's words, by rarity" if hit.words else "",
        f"cosine {hit.cosine:.2f}" if hit.cosine is not None else "no vector",
        hit.kind,
        f"{hit.references} later mentions of its names",
        "since it was put away",
    )
    values = _values(hit, query)
    return tuple(Term(name, value, note) for name, value, note in zip(WEIGHTS, values, notes, strict=True))


def _parts(numbers: Sequence[int], size: int = 500) -> Iterable[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))
