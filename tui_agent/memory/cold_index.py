"""What is kept in memory of the put-away items of a project: their words, names and vectors, following the store.

A question is answered from here, so that it does not read the same rows out of the database each time. What this
process writes is heard from the connection, row by row; when another process has written, the rows are compared.
Everything here runs on the database's thread.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.cold import ColdStore
from tui_agent.memory.cold_search import WEIGHTS, references_share
from tui_agent.memory.ranking import speaker_of
from tui_agent.memory.scoring import Calibration, kind_weight
from tui_agent.memory.senses import take_out
from tui_agent.memory.sketches import Sketches

__all__ = ["ColdIndex", "ColdRow", "Entries", "counted"]

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

_ALL = 4096  # vectors up to which every one is compared; of more, sketches say which
_AT_ONCE = 200  # items read in one go
_TEXT = 1000  # characters of a text that are kept: most are no longer, and are sent from here
_SHIFT, _PART = 16, 8  # bits: a row, below it how often the head and the body of its text hold a term
_MOST = (1 << _PART) - 1


class ColdRow(NamedTuple):
    """A put-away item without its text, which ``digest`` identifies."""

    number: int
    id: str
    digest: bytes
    session_id: str
    kind: str
    source: str
    created_at: str
    put_away_step: int
    references: int
    important: bool
    reason: str


class Entries(NamedTuple):
    """Where a term is: ``rows``, each once for a term, and how often the head and the body of each hold it."""

    rows: Rows
    head: Floats
    body: Floats

    @classmethod
    def of(cls, packed: Rows) -> Entries:
        """The entries of one or several terms."""
        head = packed >> _PART & _MOST
        return cls(packed >> _SHIFT, head.astype(np.float32), (packed & _MOST).astype(np.float32))


def counted(packed: Rows) -> list[tuple[int, int]]:
    """The entries of a term one by one: a row, and how often the text holds it, head and body together."""
    return [(one >> _SHIFT, (one >> _PART & _MOST) + (one & _MOST)) for one in packed.tolist()]


class ColdIndex:
    """The put-away items of one scope. Everything by row; a row is used again when its item has gone.

    ``live`` says which rows are in use, ``steady`` is what kind and references add to a score, ``group`` a number for
    each session, ``length`` how many terms a text has, ``spread`` how long it is beside the usual one (both at least a
    little above 0), ``has_vector`` whether ``matrix`` holds a vector in that row.
    """

    def __init__(self, store: ColdStore, scope: str) -> None:
        self._db = store.db
        self._store = store
        self._scope = scope
        self._touched: deque[int] = deque()
        self._listening = False
        self._todo: dict[int, None] = {}
        self._others = -1  # moves when another connection writes
        self._last_vector = 0
        self._identity = ""
        self._embedder = 0
        self._row: dict[int, int] = {}
        self._free: list[int] = []
        self.known: list[ColdRow | None] = []
        self.speakers: list[str] = []
        self._texts: list[str | None] = []
        self._held: list[tuple[str, ...]] = []
        self._names_held: list[tuple[str, ...]] = []
        self._postings: dict[str, array[int]] = {}
        self._names: dict[str, array[int]] = {}
        self._starts: dict[str, dict[str, None]] = {}
        self._groups: dict[str, int] = {}
        self._live = np.zeros(64, dtype=bool)
        self._steady, self._length, self._size = (np.zeros(64, dtype=np.float32) for _ in range(3))
        self._total_size = 0.0
        self._number, self._group, self._step = (np.zeros(64, dtype=np.int64) for _ in range(3))
        self._has_vector = np.zeros(64, dtype=bool)
        self._matrix: Floats = np.zeros((64, 0), dtype=np.float32)
        self._sketches: Sketches | None = None
        self._sketched = 0
        self._vector_changes = 0
        self._along: tuple[object, tuple[int, int], Floats | None] = (None, (-1, 0), None)

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, term: object) -> bool:
        """Whether any item holds a term."""
        return term in self._postings

    # --- following the store ----------------------------------------------------------------------

    def follow(self, identity: str) -> bool:
        """Takes over what has changed, a few hundred items at most; whether that was all. Vectors are those of the
        embedder ``identity``."""
        self._notice(identity)
        self._read_some()
        return not self._todo

    def keep_up(self, identity: str, others: int | None = None) -> bool:
        """As :meth:`follow`, but takes over nothing when there is more than should be done while somebody waits.
        ``others`` is the database's ``data_version``, where it was asked for just now."""
        self._notice(identity, others)
        if len(self._todo) > _AT_ONCE:
            return False
        self._read_some()
        return True

    def _read_some(self) -> None:
        if part := list(islice(self._todo, _AT_ONCE)):
            self._read(part)
            for number in part:
                del self._todo[number]

    def _notice(self, identity: str, others: int | None = None) -> None:
        if not self._listening:
            # Also what is rolled back is heard of; then it is read again, and is as it was.
            self._db.on_change("wm_items", "number", self._touched.append)
            self._db.on_change("wm_vectors", "item", self._touched.append)
            self._listening = True
        if others is None:
            others = int(self._db.value("PRAGMA data_version") or 0)
        if self._touched or others != self._others:
            self._store.index()  # an item has its words when it is read here
            while self._touched:  # another thread may be writing
                self._todo[self._touched.popleft()] = None
        if identity != self._identity:
            self._identity, self._embedder, self._last_vector = identity, 0, 0
            self._has_vector[:] = False
            self._vector_changes += 1
            self._matrix, self._sketches = np.zeros((len(self._live), 0), dtype=np.float32), None
            self._todo.update(dict.fromkeys(self._row))
        if identity and not self._embedder:
            sql = "SELECT number FROM wm_embedders WHERE identity = ?"
            self._embedder = int(self._db.value(sql, (identity,)) or 0)
        if others != self._others:
            self._others = others
            self._compare()

    def _compare(self) -> None:
        """Notes which items differ from what is known of them."""
        known = {row.number: row for row in self.known if row is not None}
        gone = dict.fromkeys(known)
        for row in self._db.rows(f"{_SELECT} WHERE scope = ? AND zone = 'cold'", (self._scope,)):
            number = int(row[0])
            gone.pop(number, None)
            if known.get(number) != tuple(row):
                self._todo[number] = None
        self._todo.update(gone)
        sql = "SELECT max(number) FROM wm_vectors"
        newest = int(self._db.value(sql) or 0)
        if known and newest > self._last_vector:
            sql = "SELECT item FROM wm_vectors WHERE number > ? AND embedder = ?"
            rows = self._db.rows(sql, (self._last_vector, self._embedder))
            self._todo.update((int(row[0]), None) for row in rows)
        self._last_vector = newest

    def _read(self, numbers: Sequence[int]) -> None:
        marks = ", ".join("?" * len(numbers))
        sql = f"{_SELECT} WHERE scope = ? AND zone = 'cold' AND number IN ({marks})"
        found = {int(row[0]): ColdRow(*row) for row in self._db.rows(sql, (self._scope, *numbers))}
        for number in numbers:
            if number in self._row and number not in found:
                self._drop(number)
        fresh = []
        for number, one in found.items():
            place = self._row.get(number)
            before = self.known[place] if place is not None else None
            if place is None or before is None or before.digest != one.digest:
                if place is not None:
                    self._drop(number)
                fresh.append(number)
            else:
                self._describe(place, one)
        if fresh:
            self._put(found, fresh)
        if self._embedder:
            sql = f"SELECT item, vector FROM wm_vectors WHERE embedder = ? AND item IN ({marks})"
            self._put_vectors(self._db.rows(sql, (self._embedder, *numbers)))

    def _put(self, found: dict[int, ColdRow], fresh: Sequence[int]) -> None:
        marks = ", ".join("?" * len(fresh))
        names: dict[int, list[tuple[str, int]]] = {}
        for item, key, defined in self._db.rows(
            f"SELECT item, key, defined FROM wm_symbols WHERE item IN ({marks})", tuple(fresh)
        ):
            names.setdefault(item, []).append((sys.intern(key), defined))
        for number, beginning, head, body in self._db.rows(
            "SELECT i.number, substr(i.text, 1, ?), t.head, t.body FROM wm_items i "
            f"JOIN wm_terms t ON t.rowid = i.number WHERE i.number IN ({marks})",
            (_TEXT + 1, *fresh),
        ):
            place = self._place(number)
            self._describe(place, found[number])
            self.speakers[place] = speaker_of(beginning)
            self._texts[place] = beginning if len(beginning) <= _TEXT else None
            self._put_terms(place, head, body)
            self._put_names(place, names.get(number, ()))

    def _place(self, number: int) -> int:
        place = self._row[number] = self._free.pop() if self._free else len(self.known)
        if place == len(self.known):
            self.known.append(None)
            self.speakers.append("")
            self._texts.append(None)
            self._held.append(())
            self._names_held.append(())
        if place == len(self._live):
            for name in _BY_ROW:
                before = getattr(self, name)
                setattr(self, name, np.concatenate([before, np.zeros_like(before)]))
        self._live[place], self._number[place] = True, number
        return place

    def _describe(self, place: int, one: ColdRow) -> None:
        self.known[place] = one
        self._group[place] = self._groups.setdefault(one.session_id, len(self._groups))
        self._step[place] = one.put_away_step
        kind = WEIGHTS["kind"] * kind_weight(one.kind) / 3.0
        self._steady[place] = kind + WEIGHTS["references"] * references_share(one.references)

    def _put_terms(self, place: int, head: str, body: str) -> None:
        in_head, in_body = Counter(head.split()), Counter(body.split())
        held = tuple(map(sys.intern, in_head | in_body))
        for term in held:
            packed = place << _SHIFT | min(in_head[term], _MOST) << _PART | min(in_body[term], _MOST)
            posting = self._postings.get(term)
            if posting is None:
                self._postings[term] = array("q", (packed,))
                self._starts.setdefault(term[:2], {})[term] = None
            else:
                posting.append(packed)
        self._held[place] = held
        self._length[place] = max(1, in_head.total() + in_body.total())
        self._size[place] = len(body)
        self._total_size += len(body)

    def _put_names(self, place: int, names: Iterable[tuple[str, int]]) -> None:
        held = dict(names)
        for name, defined in held.items():
            self._names.setdefault(name, array("q")).append(place << 1 | int(defined))
        self._names_held[place] = tuple(held)

    def _drop(self, number: int) -> None:
        place = self._row.pop(number)
        for term in self._held[place]:
            posting = self._postings[term]
            take_out(posting, place, _SHIFT)
            if not posting:
                del self._postings[term]
                del self._starts[term[:2]][term]
        for name in self._names_held[place]:
            take_out(self._names[name], place, 1)
            if not self._names[name]:
                del self._names[name]
        self.known[place], self.speakers[place], self._texts[place] = None, "", None
        self._held[place] = self._names_held[place] = ()
        self._total_size -= float(self._size[place])
        self._live[place] = self._has_vector[place] = False
        self._steady[place] = self._size[place] = 0.0
        self._free.append(place)

    def _put_vectors(self, rows: Sequence[sqlite3.Row]) -> None:
        if not rows:
            return
        places = []
        self._vector_changes += 1
        for number, blob in rows:
            place = self._row.get(number)
            if place is None or len(blob) % 4:
                continue
            vector = np.frombuffer(blob, dtype="<f4")
            if not self._matrix.shape[1]:
                self._matrix = np.zeros((len(self._live), len(vector)), dtype=np.float32)
            if len(vector) == self._matrix.shape[1]:
                self._matrix[place] = vector
                self._has_vector[place] = True
                places.append(place)
        count = int(self._has_vector.sum()) if len(self._row) > _ALL else 0
        if count > _ALL and (self._sketches is None or count >= 2 * self._sketched):
            places = np.flatnonzero(self._has_vector).tolist()
            mean = self._matrix[places[:: max(1, count // 2048)]].mean(axis=0, dtype=np.float64)
            self._sketches, self._sketched = Sketches(self._matrix.shape[1], mean), count
        if self._sketches is not None and places:
            self._sketches.add(places, self._matrix[places])

    # --- what is asked for ------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many rows there are, with those that are free."""
        return len(self.known)

    def row(self, number: int) -> int | None:
        """The row of an item."""
        return self._row.get(number)

    def count(self, term: str) -> int:
        """How many items hold a term."""
        posting = self._postings.get(term)
        return len(posting) if posting is not None else 0

    def packed(self, term: str) -> Rows:
        """Where a term is and how often, to be taken apart by :meth:`Entries.of`."""
        return np.frombuffer(self._postings.get(term) or _NOWHERE, dtype=np.int64)

    def named(self, name: str) -> tuple[Rows, NDArray[np.bool_]]:
        """The rows of items that mention a name, and which of them define it."""
        packed = np.frombuffer(self._names.get(name) or _NOWHERE, dtype=np.int64)
        return packed >> 1, (packed & 1).astype(bool)

    def starting(self, start: str) -> Iterable[str]:
        """Terms that begin with ``start``: two letters, or one that is a whole term."""
        return self._starts.get(start[:2], {})

    @property
    def spread(self) -> Floats:
        """How long the text in each row is beside the usual one."""
        usual = max(1.0, self._total_size / max(1, len(self._row)))
        return np.asarray(0.6 + np.float32(0.4 / usual) * self._size[: self.size])

    @property
    def live(self) -> NDArray[np.bool_]:
        return self._live[: self.size]

    @property
    def steady(self) -> Floats:
        return self._steady[: self.size]

    @property
    def number(self) -> Rows:
        return self._number[: self.size]

    @property
    def length(self) -> Floats:
        return self._length[: self.size]

    @property
    def group(self) -> Rows:
        return self._group[: self.size]

    @property
    def step(self) -> Rows:
        return self._step[: self.size]

    @property
    def has_vector(self) -> NDArray[np.bool_]:
        return self._has_vector[: self.size]

    @property
    def matrix(self) -> Floats:
        return self._matrix[: self.size]

    def group_of(self, session_id: str) -> int:
        """The number of a session, -1 where nothing of it was put away."""
        return self._groups.get(session_id, -1)

    def near(self, vector: Floats, limit: int) -> Rows | None:
        """Rows whose vectors may be near ``vector``; ``None`` where so few are there that all should be compared."""
        if self._sketches is None or int(self.has_vector.sum()) <= _ALL:
            return None
        rows = self._sketches.nearest(vector, limit)
        return rows[self.has_vector[rows]]

    def along(self, calibration: Calibration) -> Floats | None:
        """:meth:`Calibration.along` of the whole matrix; the same for most questions."""
        now = (self._vector_changes, self.size)
        mean, then, found = self._along
        if mean is not calibration.mean or then != now:
            found = calibration.along(self.matrix)
            self._along = (calibration.mean, now, found)
        return found

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Whole texts by number, of those that are put away still."""
        found: dict[int, str] = {}
        long = []
        for number in numbers:
            place = self._row.get(number)
            if place is not None and (text := self._texts[place]) is not None:
                found[number] = text
            else:
                long.append(number)
        if long:
            marks = ", ".join("?" * len(long))
            sql = f"SELECT number, text FROM wm_items WHERE zone = 'cold' AND number IN ({marks})"
            found.update((int(row[0]), str(row[1])) for row in self._db.rows(sql, tuple(long)))
        return found


_NOWHERE: array[int] = array("q")
_BY_ROW = ("_live", "_steady", "_length", "_size", "_number", "_group", "_step", "_has_vector", "_matrix")
_SELECT = (
    "SELECT number, id, digest, session_id, kind, source, created_at, put_away_step, refs, important, reason "
    "FROM wm_items"
)
