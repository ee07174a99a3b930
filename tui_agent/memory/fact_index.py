"""What is kept in memory to find facts: an index of their words and a copy of their vectors, both following the store.

Reading what has changed runs on the database's thread and costs what has changed; an unchanged store costs one look at
a few numbers. Everything else runs on a worker thread, so that neither the event loop nor a write waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.lexical import LexicalHit, LexicalIndex, RelatedHit
from tui_agent.memory.text import normalise
from tui_agent.memory.types import Fact, Vector
from tui_agent.memory.vectors import Neighbours, VectorHit, VectorTable

_FEW_CHANGES = 200  # lines of the store's log, up to which only what they name is looked at
_LATE_OFTEN, _ASKED_AGAIN = 3, 32
_AT_ONCE = 1000  # vectors taken over in one piece
_WHOLE_TABLE = 2000  # vectors to read, from which one look through the table is cheaper than asking by id

# What is live, and what was replaced (to be shown as such when it would have been found).
_KNOWN = (
    "SELECT id, length(fact) + length(subject) AS size FROM memory "
    "WHERE (superseded_by IS NOT NULL OR expires_at IS NULL OR expires_at > datetime('now'))"
)


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where the store stood. The numbers are cheap to read; as long as they stay, nothing has changed."""

    change: int = -1
    row: int = -1
    vector_row: int = -1
    next_end: str = ""
    others: int = -1  # moves when another connection writes anything
    revision: int = 0


@dataclass(slots=True)
class Delta:
    """What has changed since the index was last brought up to date."""

    mark: _Mark
    identity: str
    gone: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    vectors: dict[str, Vector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FactHits:
    """Facts and notes found, by reference: by words, by meaning, by other words. ``quality`` is the best share of the
    question's words any of them has; ``has_vectors`` says whether meaning took part."""

    words: Mapping[str, LexicalHit]
    meaning: Mapping[str, VectorHit]
    quality: float
    has_vectors: bool
    related: Mapping[str, RelatedHit] = field(default_factory=dict)


class FactRow(NamedTuple):
    """What of a fact's row decides its place and is shown with it; the columns are those of the table ``memory``."""

    id: str
    fact: str
    kind: str
    source: str
    quote: str
    created_at: str
    confirmed_at: str
    importance: int
    last_used_at: str | None
    pinned: int
    subject_key: str
    superseded_by: str | None
    live: int


_ROWS = (
    f"SELECT {', '.join(FactRow._fields[:-1])}, "
    "(superseded_by IS NULL AND (expires_at IS NULL OR expires_at > datetime('now'))) FROM memory"
)


class Pace:
    """Whether an index of vectors that may be asked for the nearest facts is worth it: one that was late three times in
    a row is asked only with every 32nd question, until it is in time again."""

    def __init__(self) -> None:
        self._late = self._questions = 0

    def worth_asking(self) -> bool:
        """Whether to ask with this question; called once for each."""
        self._questions += 1
        return self._late < _LATE_OFTEN or self._questions % _ASKED_AGAIN == 0

    def answered(self, *, late: bool) -> None:
        """It was asked, and answered in time or not."""
        self._late = self._late + 1 if late else 0

    def again(self) -> None:
        """The index was made anew: what is known of it holds no longer."""
        self._late = 0


def embedded_text(fact: Fact) -> str:
    """What of a fact is embedded: a subject in front says what an otherwise bare statement is about."""
    return statement(fact.subject, fact.fact)


def statement(subject: str, fact: str) -> str:
    """``subject: fact``, or the fact alone when it names its subject itself."""
    subject = subject.strip()
    return f"{subject}: {fact}" if subject and normalise(subject) not in normalise(fact) else fact


class FactIndex:
    """Finds facts by words and meaning. ``read`` belongs on the database's thread, ``apply`` and ``find`` on any."""

    def __init__(self, db: Database, facts: FactStore) -> None:
        self._db = db
        self._facts = facts
        self._lock = threading.RLock()
        self._lexical = LexicalIndex()
        self._vectors = VectorTable()
        self._sizes: dict[str, int] = {}
        self._notes: set[str] = set()
        self._mark = _Mark()
        self.pace = Pace()

    def __len__(self) -> int:
        return len(self._sizes)

    def doubt(self) -> None:
        """Look for missing vectors the next time: some were written, which leaves no trace in the store's log."""
        with self._lock:
            self._mark = replace(self._mark, vector_row=-1)

    # --- following the store ----------------------------------------------------------------------

    def read(self, identity: str) -> Delta | None:
        """What has changed in the store, or ``None``. Vectors are those of the embedder ``identity``."""
        with self._lock:
            last, same_space = self._mark, identity == self._vectors.identity
        now = self._look(last)
        if now == last and same_space:
            return None
        if self._is_little(last, now, same_space=same_space):
            return self._few_changes(last, now, identity)
        now = replace(now, revision=self._facts.revision())
        # A row edited by hand has lost its key (the table's trigger), and may be as long as before.
        edited = {str(row[0]) for row in self._db.rows("SELECT id FROM memory WHERE fact_key = ''")}
        if now.revision == last.revision and same_space and not edited:
            with self._lock:
                self._mark = now
            return None
        return self._whole(now, identity, edited)

    def keep_up(self, identity: str) -> bool:
        """Takes over what has changed when that is little, on the database's thread; false when there is more to read
        than should be done there in one go (see :meth:`read`)."""
        with self._lock:
            last, same_space = self._mark, identity == self._vectors.identity
        now = self._look(last)
        if now == last and same_space:
            return True
        if not self._is_little(last, now, same_space=same_space):
            return False
        self.apply(self._few_changes(last, now, identity))
        return True

    @property
    def others(self) -> int:
        """The database's ``data_version`` when the store was looked at last."""
        return self._mark.others

    @staticmethod
    def _is_little(last: _Mark, now: _Mark, *, same_space: bool) -> bool:
        return same_space and now.others == last.others and now.change - last.change <= _FEW_CHANGES

    def _look(self, last: _Mark) -> _Mark:
        row = self._db.row(
            "SELECT (SELECT max(id) FROM changes), (SELECT max(rowid) FROM memory), "
            "(SELECT max(rowid) FROM fact_vectors), "
            "(SELECT min(expires_at) FROM memory WHERE expires_at > datetime('now'))"
        )
        others = int(self._db.value("PRAGMA data_version") or 0)
        change, newest, vector, end = tuple(row) if row is not None else (0, 0, 0, "")
        return _Mark(change or 0, newest or 0, vector or 0, end or "", others, last.revision)

    def _few_changes(self, last: _Mark, now: _Mark, identity: str) -> Delta:
        """The facts that the log names since then, rows it does not know, and those that have ended meanwhile."""
        touched = {
            str(row[0])
            for row in self._db.rows(
                "SELECT memory_id FROM changes WHERE id > ? UNION SELECT other_id FROM changes WHERE id > ? "
                "UNION SELECT id FROM memory WHERE rowid > ? "
                "UNION SELECT id FROM memory WHERE expires_at <= datetime('now') AND expires_at >= ?",
                (last.change, last.change, last.row, last.next_end or "9999"),
            )
            if row[0]
        }
        known: dict[str, int] = {}
        for part in _parts(sorted(touched)):
            rows = self._db.rows(f"{_KNOWN} AND id IN ({_marks(part)})", tuple(part))
            known.update((str(row[0]), int(row[1])) for row in rows)
        with self._lock:
            gone = [ref for ref in touched if ref in self._sizes and ref not in known]
            fresh = {ref: size for ref, size in known.items() if self._sizes.get(ref) != size}
            # What is waiting for its vector is asked for again: vectors come later, and leave no trace in the log.
            bare = sorted(self._sizes.keys() - self._vectors.ids()) if identity else []
        wanted = [*dict.fromkeys((*known, *bare))] if identity else []
        return self._filled(Delta(now, identity, gone, sizes=fresh), wanted)

    def _whole(self, now: _Mark, identity: str, edited: set[str]) -> Delta:
        """Everything, compared with what is known. ``edited`` counts as new."""
        with self._lock:
            known = dict(self._sizes)
            have = set(self._vectors.ids()) if identity == self._vectors.identity else set()
        present = {str(row[0]): int(row[1]) for row in self._db.rows(_KNOWN)}
        gone = [ref for ref in known if ref not in present]
        fresh = {ref: size for ref, size in present.items() if known.get(ref) != size or ref in edited}
        wanted = [ref for ref in present if ref not in have or ref in fresh] if identity else []
        return self._filled(Delta(now, identity, gone, sizes=fresh), wanted)

    def _filled(self, delta: Delta, wanted: list[str]) -> Delta:
        for part in _parts(list(delta.sizes)):
            sql = f"SELECT id, subject, fact FROM memory WHERE id IN ({_marks(part)})"
            for row in self._db.rows(sql, tuple(part)):
                delta.texts[str(row["id"])] = statement(str(row["subject"]), str(row["fact"]))
        delta.vectors = self._read_vectors(delta.identity, wanted) if wanted else {}
        return delta

    def _read_vectors(self, identity: str, ids: list[str]) -> dict[str, Vector]:
        rows = []
        if len(ids) > _WHOLE_TABLE:
            rows = self._db.rows("SELECT fact_id, vector FROM fact_vectors WHERE identity = ?", (identity,))
            wanted = set(ids)
            rows = [row for row in rows if row["fact_id"] in wanted]
        else:
            for part in _parts(ids):
                sql = f"SELECT fact_id, vector FROM fact_vectors WHERE identity = ? AND fact_id IN ({_marks(part)})"
                rows += self._db.rows(sql, (identity, *part))
        return {str(row["fact_id"]): np.frombuffer(row["vector"], dtype="<f4") for row in rows}

    def apply(self, delta: Delta) -> None:
        """Brings the index up to what was read."""
        with self._lock:
            if delta.identity != self._vectors.identity:
                self._vectors = VectorTable(delta.identity)
            for ref in delta.gone:
                self._lexical.discard(f"fact:{ref}")
                self._vectors.discard(ref)
                self._sizes.pop(ref, None)
            for ref, text in delta.texts.items():
                self._lexical.put(f"fact:{ref}", text)
                if ref not in delta.vectors:
                    self._vectors.discard(ref)
            self._sizes.update(delta.sizes)
            # Piece by piece, and each let go at once: to free 50,000 vectors in one go stops all threads for a while.
            names, room = list(delta.vectors), len(self._sizes)
            for part in _parts(names, _AT_ONCE):
                self._vectors.put({name: delta.vectors.pop(name) for name in part}, room)
            self._mark = delta.mark

    def find(
        self,
        query: str,
        vector: Vector | None,
        notes: Mapping[str, str],
        limit: int = 60,
        near: Neighbours | None = None,
    ) -> FactHits:
        """Facts (``fact:ID``) and notes (``file:NAME``) that fit ``query``; ``near`` is what an index of vectors named,
        where one was asked."""
        with self._lock:
            for name in self._notes.difference(notes):
                self._lexical.discard(f"file:{name}")
            for name, text in notes.items():
                self._lexical.put(f"file:{name}", text)
            self._notes = set(notes)
            by_words = {hit.ref: hit for hit in self._lexical.search(query, limit)}
            related = {hit.ref: hit for hit in self._lexical.related(query, limit)}
            by_meaning: dict[str, VectorHit] = {}
            if vector is not None:
                named = dict.fromkeys((*by_words, *related))
                also = [ref.removeprefix("fact:") for ref in named if ref.startswith("fact:")]
                found = self._vectors.search(vector, limit, also, near)
                by_meaning = {f"fact:{ref}": hit for ref, hit in found.items()}
        quality = max((hit.coverage for hit in by_words.values()), default=0.0)
        return FactHits(by_words, by_meaning, quality, bool(by_meaning), related)

    # --- rows -------------------------------------------------------------------------------------

    def rows(self, ids: Sequence[str]) -> dict[str, FactRow]:
        """Facts by id as they are now; what has expired or is gone is left out."""
        found: dict[str, FactRow] = {}
        for part in _parts(ids):
            for row in self._db.rows(f"{_ROWS} WHERE id IN ({_marks(part)})", tuple(part)):
                fact = FactRow._make(row)
                if fact.live or fact.superseded_by is not None:
                    found[fact.id] = fact
        return found

    def rivals(self, subject_keys: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """``(id, text)`` of the live facts about each subject that has more than one."""
        found: dict[str, list[tuple[str, str]]] = {}
        for part in _parts(sorted(set(filter(None, subject_keys)))):
            rows = self._db.rows(
                f"SELECT id, subject_key, fact FROM memory m WHERE subject_key IN ({_marks(part)}) "
                "AND EXISTS (SELECT 1 FROM live_memory l WHERE l.id = m.id)",
                tuple(part),
            )
            for row in rows:
                found.setdefault(str(row["subject_key"]), []).append((str(row["id"]), str(row["fact"])))
        return {key: facts for key, facts in found.items() if len(facts) > 1}


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _parts(values: Sequence[str], size: int = 500) -> Iterable[Sequence[str]]:
    return (values[start : start + size] for start in range(0, len(values), size))
