"""Reading facts: look-ups, queues, vectors and counts. Whatever serves retrieval goes through the live view."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from tui_agent.memory.changes import ChangeLog, Tombstones
from tui_agent.memory.database import Database
from tui_agent.memory.facts_schema import MIGRATIONS, ROOM, fact_key, fact_of, subject_key
from tui_agent.memory.text import normalise, parse_utc, utc_now
from tui_agent.memory.types import Change, Fact, Scope, Vector

LIVE = "SELECT m.* FROM live_memory l JOIN memory m ON m.id = l.id"
USER_NOTES_CAP = 40
_AT_ONCE = 500  # ids in one statement
REVIEW_ROWS, REVIEW_DAYS, UNUSED_DAYS = 20, 90, 183


@dataclass(frozen=True, slots=True)
class UserNotes:
    """What is always in the prompt about the user, newest confirmation first, at most ``cap`` of ``total``."""

    facts: tuple[Fact, ...]
    total: int
    cap: int

    @property
    def full(self) -> bool:
        """Whether one more would not be seen."""
        return self.total >= self.cap


class FactReader:
    """The reading half of :class:`~tui_agent.memory.facts.FactStore`.

    Times come from ``clock`` (UTC ``YYYY-MM-DD HH:MM:SS``), also for ``datetime('now')`` inside the view.
    """

    def __init__(self, db: Database, clock: Callable[[], str] = utc_now) -> None:
        self._db = db
        self._clock = clock
        if clock is not utc_now:
            db.set_clock(clock)
        db.migrate(ROOM, MIGRATIONS)
        self._log = ChangeLog(db, clock)
        self._tombstones = Tombstones(db, clock)

    # --- one fact ---------------------------------------------------------------------------------

    def get(self, fact_id: str) -> Fact | None:
        """A fact by its id, in whatever state it is, or ``None``."""
        row = self._db.row("SELECT * FROM memory WHERE id = ?", (fact_id,))
        return None if row is None else fact_of(row)

    def is_live(self, fact_id: str) -> bool:
        """Whether the fact exists, is not superseded and has not expired."""
        return bool(self._db.rows("SELECT 1 FROM live_memory WHERE id = ?", (fact_id,)))

    def chain(self, fact_id: str) -> list[Fact]:
        """The history a fact belongs to, newest first: what it was replaced by and all that was replaced."""
        rows = self._db.rows(
            """
            WITH RECURSIVE
              later(id) AS (
                SELECT ? UNION
                SELECT m.superseded_by FROM memory m JOIN later ON m.id = later.id WHERE m.superseded_by IS NOT NULL
              ),
              family(id, depth) AS (
                SELECT m.id, 0 FROM memory m JOIN later ON m.id = later.id WHERE m.superseded_by IS NULL
                UNION ALL
                SELECT m.id, family.depth + 1 FROM memory m JOIN family ON m.superseded_by = family.id
              )
            SELECT m.* FROM memory m JOIN family ON m.id = family.id ORDER BY family.depth, m.created_at DESC, m.id DESC
            """,
            (fact_id,),
        )
        return [fact_of(row) for row in rows]

    # --- live facts -------------------------------------------------------------------------------

    def live(self, scope: Scope | None = None, *, include_user: bool = True) -> list[Fact]:
        """The live facts, oldest first: all, or those of ``scope``; ``include_user`` adds the user's to a project's."""
        wanted = list(Scope) if scope is None else [scope]
        if include_user and Scope.USER not in wanted:
            wanted.append(Scope.USER)
        if scope is None and not include_user:
            wanted.remove(Scope.USER)
        marks = ", ".join("?" * len(wanted))
        return self._facts(f"{LIVE} WHERE m.scope IN ({marks}) ORDER BY m.created_at, m.id", *map(str, wanted))

    def of_message(self, message_id: str) -> list[Fact]:
        """The live facts that were stated in a message, oldest first."""
        return self._facts(f"{LIVE} WHERE m.message_id = ? ORDER BY m.created_at, m.id", message_id)

    def newest(self, most: int) -> list[Fact]:
        """The last ``most`` of the live facts, oldest first."""
        return self._facts(f"{LIVE} ORDER BY m.created_at DESC, m.id DESC LIMIT ?", most)[::-1]

    def live_written(self, scope: Scope | None = None, *, include_user: bool = True) -> list[Fact]:
        """As :meth:`live`, of those that have a place in a memory file only."""
        wanted = list(Scope) if scope is None else [scope, *([Scope.USER] if include_user else ())]
        if scope is None and not include_user:
            wanted.remove(Scope.USER)
        marks = ", ".join("?" * len(wanted))
        return self._facts(
            f"{LIVE} WHERE (m.target_line <> '' OR m.target NOT IN ('', 'fact')) AND m.scope IN ({marks}) "
            "ORDER BY m.created_at, m.id",
            *map(str, wanted),
        )

    def expired(self) -> list[Fact]:
        """The facts that were current when they ended and that prune has not removed yet, oldest first."""
        return self._facts(
            "SELECT * FROM memory WHERE superseded_by IS NULL AND expires_at <= datetime('now') ORDER BY created_at, id"
        )

    def superseded(self) -> list[Fact]:
        """The facts that were replaced, oldest first. They are history: to be shown as such, never retrieved."""
        return self._facts("SELECT * FROM memory WHERE superseded_by IS NOT NULL ORDER BY created_at, id")

    def by_subject(self, subject: str, scope: Scope | None = None) -> list[Fact]:
        """The live facts about a subject, compared by :func:`subject_key`; newest first. No subject finds nothing."""
        key = subject_key(subject)
        if not key:
            return []
        self._fill_keys()
        return self._facts(
            f"{LIVE} WHERE m.subject_key = ? AND (? IS NULL OR m.scope = ?) ORDER BY m.created_at DESC, m.id DESC",
            key,
            scope and str(scope),
            scope and str(scope),
        )

    def by_text(self, text: str, scope: Scope | None = None) -> Fact | None:
        """The live fact that says the same (see :func:`~tui_agent.memory.text.normalise`), or ``None``."""
        self._fill_keys()
        found = self._facts(
            f"{LIVE} WHERE m.fact_key = ? AND (? IS NULL OR m.scope = ?) ORDER BY m.created_at DESC, m.id DESC LIMIT 1",
            fact_key(text),
            scope and str(scope),
            scope and str(scope),
        )
        return found[0] if found else None

    def similar(self, text: str, threshold: float = 85.0, limit: int = 5) -> list[tuple[Fact, float]]:
        """Live facts in nearly the same words, in any order, with their likeness (0..100, at least ``threshold``)."""
        facts = self.live()
        found = process.extract(
            normalise(text),
            [normalise(fact.fact) for fact in facts],
            scorer=fuzz.token_sort_ratio,
            score_cutoff=threshold,
            limit=limit,
        )
        return [(facts[index], float(score)) for _, score, index in found]

    def live_user_notes(self, cap: int = USER_NOTES_CAP) -> UserNotes:
        """The live facts about the user: those of the user's scope or kept in ``knowledge/user.md`` or in the section
        "User Preferences"; pinned ones first, then by last confirmation, cut at ``cap``."""
        found = self._facts(
            f"{LIVE} WHERE m.scope = 'user' OR m.target LIKE 'knowledge/user.md%' "
            "OR m.target = 'AGENTS.md#User Preferences' ORDER BY m.pinned DESC, m.confirmed_at DESC, m.id DESC"
        )
        return UserNotes(tuple(found[:cap]), len(found), cap)

    def written_lines(self) -> list[tuple[str, str, str, str]]:
        """``(id, target, line, scope)`` of the live facts that are written on a line of a file; cheap."""
        rows = self._db.rows(
            "SELECT m.id, m.target, m.target_line, m.scope FROM live_memory l JOIN memory m ON m.id = l.id "
            "WHERE m.target <> '' AND m.target_line <> '' ORDER BY m.created_at, m.id"
        )
        return [tuple(map(str, row)) for row in rows]  # type: ignore[misc]

    # --- queues -----------------------------------------------------------------------------------

    def review(self, limit: int = REVIEW_ROWS, days: int = REVIEW_DAYS) -> list[Fact]:
        """Live facts nobody has confirmed for ``days``, oldest confirmation first; among equals the last used first."""
        return self._facts(
            f"{LIVE} WHERE l.confirmed_at < datetime('now', ?) "
            "ORDER BY l.confirmed_at, m.last_used_at DESC, m.id LIMIT ?",
            f"-{int(days)} days",
            limit,
        )

    def unused(self, days: int = UNUSED_DAYS) -> list[Fact]:
        """Live facts that were not retrieved for ``days`` (since they were made, when never) and are not pinned."""
        return self._facts(
            f"{LIVE} WHERE coalesce(m.last_used_at, m.created_at) < datetime('now', ?) AND m.pinned = 0 "
            "ORDER BY coalesce(m.last_used_at, m.created_at), m.id",
            f"-{int(days)} days",
        )

    def new_since(self, days: float = 1) -> list[Fact]:
        """Every fact made in the last ``days``, newest first, also those that are no longer live."""
        return self._facts(
            "SELECT * FROM memory WHERE created_at > datetime('now', ?) ORDER BY created_at DESC, id DESC",
            f"-{round(days * 86400)} seconds",
        )

    # --- log and counts ---------------------------------------------------------------------------

    def changes(self, memory_id: str | None = None, limit: int = 100) -> list[Change]:
        """The last changes (of one fact), newest first."""
        return self._log.entries(memory_id, limit)

    def event_counts(self) -> dict[str, int]:
        """The number of changes by event."""
        return self._log.counts()

    def is_tombstoned(self, text: str) -> bool:
        """Whether this statement, in this or another form of the same words, was deleted forever."""
        return self._tombstones.has(text, "deleted")

    def stats(self) -> dict[str, int]:
        """Counts: ``memory`` (all rows), ``live_memory``, ``superseded``, ``expired``, ``pinned``, ``quarantine``,
        ``tombstones``, ``changes``, ``vectors``."""
        row = self._db.row(
            """
            SELECT (SELECT count(*) FROM memory) AS memory,
              (SELECT count(*) FROM live_memory) AS live_memory,
              (SELECT count(*) FROM memory WHERE superseded_by IS NOT NULL) AS superseded,
              (SELECT count(*) FROM memory WHERE superseded_by IS NULL AND expires_at <= datetime('now')) AS expired,
              (SELECT count(*) FROM live_memory l JOIN memory m ON m.id = l.id WHERE m.pinned) AS pinned,
              (SELECT count(*) FROM quarantine) AS quarantine,
              (SELECT count(DISTINCT digest) FROM tombstones) AS tombstones,
              (SELECT count(*) FROM changes) AS changes,
              (SELECT count(*) FROM fact_vectors) AS vectors
            """
        )
        assert row is not None
        return {name: int(row[name]) for name in row.keys()}  # noqa: SIM118  a Row iterates over its values

    # --- vectors ----------------------------------------------------------------------------------

    def put_vectors(self, identity: str, vectors: Mapping[str, Vector | Sequence[float]]) -> int:
        """Keeps vectors of facts under an index identity, float32 of one dimension; returns how many were kept.

        A fact that has gone since its text was embedded is passed over.
        """
        rows = []
        for fact_id, vector in vectors.items():
            values = np.asarray(vector, dtype="<f4")
            if values.ndim != 1 or not np.isfinite(values).all():
                raise ValueError(f"The vector of {fact_id} is not a row of finite numbers.")
            rows.append((identity, len(values), values.tobytes(), fact_id))
        with self._db.transaction() as connection:
            return connection.executemany(
                "INSERT INTO fact_vectors(fact_id, identity, dimension, vector) "
                "SELECT id, ?, ?, ? FROM memory WHERE id = ? "
                "ON CONFLICT(fact_id, identity) DO UPDATE SET dimension = excluded.dimension, vector = excluded.vector",
                rows,
            ).rowcount

    def vectors(self, identity: str, ids: Sequence[str] | None = None) -> tuple[list[str], NDArray[np.float32]]:
        """Ids of the live facts (of ``ids``) with a vector of this identity, and the vectors as a matrix
        ``(len(ids), dimension)``.

        Rows of another dimension than the newest one's are left out (they count as missing).
        """
        sql = (
            "SELECT v.fact_id, v.dimension, v.vector FROM fact_vectors v JOIN live_memory l ON l.id = v.fact_id "
            "WHERE v.identity = ?"
        )
        if ids is None:
            rows = self._db.rows(f"{sql} ORDER BY v.rowid", (identity,))
        else:
            rows = []
            for start in range(0, len(ids), _AT_ONCE):
                part = ids[start : start + _AT_ONCE]
                marks = ", ".join("?" * len(part))
                rows += self._db.rows(f"{sql} AND v.fact_id IN ({marks}) ORDER BY v.rowid", (identity, *part))
        if not rows:
            return [], np.empty((0, 0), dtype=np.float32)
        dimension = rows[-1]["dimension"]
        rows = [row for row in rows if row["dimension"] == dimension]
        matrix = np.frombuffer(b"".join(row["vector"] for row in rows), dtype="<f4").reshape(len(rows), dimension)
        return [row["fact_id"] for row in rows], matrix.astype(np.float32)

    def vector_rows(self, identity: str) -> dict[str, int]:
        """Live facts with a vector of this identity, with the number of the vector's row: another one when the vector
        was made anew. Reads no vectors."""
        rows = self._db.rows(
            "SELECT v.fact_id, v.rowid FROM fact_vectors v JOIN live_memory l ON l.id = v.fact_id "
            "WHERE v.identity = ? ORDER BY v.rowid",
            (identity,),
        )
        return {str(row[0]): int(row[1]) for row in rows}

    def index_rows(self, ids: Sequence[str], matrix: NDArray[np.float32]) -> list[dict[str, str | int | float]]:
        """:meth:`index_metadata` in the order of ``ids``, each with a print of its vector, so that one that was made
        anew is noticed."""
        found = self.index_metadata(ids)
        return [{**found.get(ref, {}), "print": zlib.crc32(matrix[n].tobytes())} for n, ref in enumerate(ids)]

    def index_metadata(self, ids: Sequence[str]) -> dict[str, dict[str, str | int | float]]:
        """What a vector index keeps beside each vector, by id: category, importance, and the time of the last
        confirmation in seconds since 1970."""
        found: dict[str, dict[str, str | int | float]] = {}
        for start in range(0, len(ids), _AT_ONCE):
            part = ids[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(part))
            for row in self._db.rows(
                f"SELECT id, kind, importance, confirmed_at FROM memory WHERE id IN ({marks})", tuple(part)
            ):
                try:
                    stamp = parse_utc(row["confirmed_at"]).timestamp()
                except ValueError:  # a time somebody wrote by hand
                    stamp = 0.0
                about: dict[str, str | int | float] = {
                    "category": str(row["kind"]), "importance": int(row["importance"]), "timestamp": stamp,
                }  # fmt: skip
                found[str(row["id"])] = about
        return found

    def revision(self) -> int:
        """A number that stays as long as the live facts and their vectors stay, whoever changes them; for caches.

        Time alone changes it too, when a fact expires.
        """
        row = self._db.row(
            "SELECT (SELECT max(id) FROM changes), (SELECT count(*) FROM live_memory), "
            "(SELECT max(rowid) FROM memory), (SELECT count(*) FROM fact_vectors), "
            "(SELECT max(rowid) FROM fact_vectors)"
        )
        return hash(None if row is None else tuple(value or 0 for value in row))

    def missing_vectors(self, identity: str) -> list[Fact]:
        """The live facts without a vector of this identity, oldest first."""
        return self._facts(
            f"{LIVE} LEFT JOIN fact_vectors v ON v.fact_id = l.id AND v.identity = ? WHERE v.fact_id IS NULL "
            "ORDER BY m.created_at, m.id",
            identity,
        )

    def drop_vectors(self, keep: Collection[str] = ()) -> int:
        """Removes the vectors of all identities but ``keep``; returns their number."""
        marks = ", ".join("?" * len(keep))
        return self._db.execute(f"DELETE FROM fact_vectors WHERE identity NOT IN ({marks})", tuple(keep))

    # --- inside -----------------------------------------------------------------------------------

    def _facts(self, sql: str, *values: object) -> list[Fact]:
        return [fact_of(row) for row in self._db.rows(sql, values)]

    def _fill_keys(self) -> None:
        """Gives rows that were written or edited with SQL the keys they are compared by."""
        rows = self._db.rows("SELECT id, subject, fact FROM memory WHERE fact_key = ''")
        if rows:
            with self._db.transaction() as connection:
                connection.executemany(
                    "UPDATE memory SET fact_key = ?, subject_key = ? WHERE id = ?",
                    [(fact_key(row["fact"]), subject_key(row["subject"]), row["id"]) for row in rows],
                )
