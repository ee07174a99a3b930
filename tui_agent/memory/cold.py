"""The durable side of the working memory: every item, hot or cold, is a row from the moment it is added.

Moving between the zones changes one column, so there is no moment in which a text is in neither. Text, vector, where it
is and the line in the log are written in one transaction. The indexes of words and names are projections of the rows:
they follow shortly after, at the latest before the next search, and are complete after a crash too.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from tui_agent.memory.cold_search import ColdSearch, Hit, Query
from tui_agent.memory.cold_tables import INSERT, MIGRATIONS, UPDATE, Batch, Change, LogLine, digest
from tui_agent.memory.cold_terms import index_terms
from tui_agent.memory.database import Database
from tui_agent.memory.hot import Item
from tui_agent.memory.scoring import Calibration
from tui_agent.memory.symbols import Symbols, extract, key
from tui_agent.memory.text import fts_any, utc_now
from tui_agent.memory.types import Vector


class ColdStore:
    """Items of the working memories of one database. Synchronous and thread-safe; coroutines call it through
    ``await store.db.run(store.method, …)``. Raises ``StoreError`` for trouble with the file."""

    def __init__(self, db: Database) -> None:
        self.db = db
        db.migrate("working memory", MIGRATIONS)
        self._search = ColdSearch(db)
        self._unindexed: dict[int, Symbols] = {}
        self._embedders: dict[str, int] = {}

    # --- writing ----------------------------------------------------------------------------------

    def write(self, batch: Batch) -> set[str]:
        """Writes a step in one transaction; returns the ids of claimed items that somebody else had taken.

        Notes and edited texts exist nowhere else and are on the disk when this returns. All else (files read, output of
        tools, moves between the zones) survives a kill, and a power cut too once anything else has been written: the
        messages that follow. To wait for the disk at every eviction would make all of them slower for that moment.
        """
        taken: set[str] = set()
        with self.db.transaction(synced=any(change.precious for change in batch.changes)) as connection:
            for change in batch.changes:
                if not self._write_item(connection, batch, change):
                    taken.add(change.id)
            connection.executemany(
                "INSERT INTO wm_log(scope, session_id, step, at, event, item_id, reason) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(batch.scope, batch.session_id, x.step, x.at, x.event, x.item_id, x.reason) for x in batch.log],
            )
            if batch.session_changed:
                connection.execute(
                    "INSERT INTO wm_sessions VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET step = max(step, "
                    "excluded.step), goal = excluded.goal, word = excluded.word, saved_at = excluded.saved_at",
                    (batch.scope, batch.session_id, batch.step, batch.goal, batch.word, utc_now()),
                )
            if batch.calibration is not None:
                identity, seen, total = batch.calibration
                connection.execute(
                    "UPDATE wm_embedders SET seen = ?, total = ? WHERE number = ?",
                    (seen, total.tobytes(), self._embedder(connection, identity, len(total))),
                )
        return taken

    def _write_item(self, connection: sqlite3.Connection, batch: Batch, change: Change) -> bool:
        values = (*change.values, batch.scope, change.id)
        number = 0
        if change.new:
            # A write whose caller was cancelled may have happened after all; then this is an update.
            cursor = connection.execute(INSERT, (*values, digest(change.text), change.created_at, change.text))
            if cursor.rowcount > 0:
                number = int(cursor.lastrowid or 0)
                self._unindexed[number] = change.symbols
        if not number:
            found = connection.execute(UPDATE + (" AND zone = 'cold'" if change.claim else ""), values)
            if not found.rowcount:
                return False
            if change.zone == "cold" and change.lineage not in ("", change.id) and self._elsewhere(batch.scope, change):
                self.delete(batch.scope, [change.id])  # a copy from another session; its original is kept there
                return True
            if not change.replaced and not change.identity:
                return True
            number = self._number(connection, batch.scope, change.id)
        if change.replaced:
            self._replace_text(connection, number, change)
        if change.identity and change.vector is not None:
            self._write_vector(connection, number, change.identity, change.vector)
        return True

    def _number(self, connection: sqlite3.Connection, scope: str, item_id: str) -> int:
        found = connection.execute("SELECT number FROM wm_items WHERE scope = ? AND id = ?", (scope, item_id))
        row = found.fetchone()
        return int(row[0]) if row is not None else 0

    def _replace_text(self, connection: sqlite3.Connection, number: int, change: Change) -> None:
        connection.executemany(
            "INSERT INTO wm_versions(item, text, replaced_at, reason) VALUES (?, ?, ?, ?)",
            [(number, old, utc_now(), reason) for old, reason in change.replaced],
        )
        connection.execute(
            "UPDATE wm_items SET text = ?, digest = ?, indexed = 0 WHERE number = ?",
            (change.text, digest(change.text), number),
        )
        connection.execute("DELETE FROM wm_terms WHERE rowid = ?", (number,))
        connection.execute("DELETE FROM wm_symbols WHERE item = ?", (number,))
        connection.execute("DELETE FROM wm_vectors WHERE item = ?", (number,))
        self._unindexed[number] = change.symbols

    @property
    def unindexed(self) -> int:
        """How many items this process has written whose words and names are not indexed yet."""
        return len(self._unindexed)

    def index(self) -> int:
        """Indexes words and names of items that were written since, by this or another process; returns how many.

        The index is a projection of the rows: it may lag, so that writing an item does not wait for it, but every
        search brings it up to date first.
        """
        if self.db.row("SELECT 1 FROM wm_items WHERE indexed = 0 LIMIT 1") is None:
            return 0
        with self.db.transaction(synced=False) as connection:
            rows = connection.execute(
                "SELECT number, kind, origin_kind, source, summary, text FROM wm_items WHERE indexed = 0"
            ).fetchall()
            terms, names = [], []
            for row in rows:
                number, source, text = int(row["number"]), str(row["source"]), str(row["text"])
                head = index_terms(f"{row['summary']} {source} {row['origin_kind'] or row['kind']}")
                terms.append((number, " ".join(head), " ".join(index_terms(text))))
                symbols = self._unindexed.get(number) or extract(text, source)
                defined = {key(name) for name in symbols.defs}
                names += [(key(name), number, int(key(name) in defined)) for name in symbols.mentions | symbols.defs]
            connection.executemany("INSERT INTO wm_terms(rowid, head, body) VALUES (?, ?, ?)", terms)
            connection.executemany("INSERT OR IGNORE INTO wm_symbols VALUES (?, ?, ?)", names)
            connection.execute("UPDATE wm_items SET indexed = 1 WHERE indexed = 0")
        self._unindexed.clear()
        return len(rows)

    def _embedder(self, connection: sqlite3.Connection, identity: str, dimension: int) -> int:
        if identity in self._embedders:
            return self._embedders[identity]
        sql = "SELECT number FROM wm_embedders WHERE identity = ?"
        row = connection.execute(sql, (identity,)).fetchone()
        if row is None:
            connection.execute("INSERT INTO wm_embedders(identity, dimension) VALUES (?, ?)", (identity, dimension))
            return int(connection.execute(sql, (identity,)).fetchone()[0])
        self._embedders[identity] = int(row[0])  # only what was there before: a new row may yet be taken back
        return int(row[0])

    def _write_vector(self, connection: sqlite3.Connection, number: int, identity: str, vector: Vector) -> None:
        connection.execute(
            "INSERT OR REPLACE INTO wm_vectors(item, embedder, vector) VALUES (?, ?, ?)",
            (number, self._embedder(connection, identity, len(vector)), vector.astype("<f4").tobytes()),
        )

    def delete(self, scope: str, ids: Sequence[str]) -> int:
        """Removes items for good, with terms, names, vectors, earlier versions; returns how many there were."""
        gone = 0
        with self.db.transaction() as connection:
            for item_id in ids:
                number = self._number(connection, scope, item_id)
                if number:
                    connection.execute("DELETE FROM wm_terms WHERE rowid = ?", (number,))
                    gone += connection.execute("DELETE FROM wm_items WHERE number = ?", (number,)).rowcount
            if gone:
                # Deleted terms stay in older segments of the index until they are merged; deleting means deleting.
                connection.execute("INSERT INTO wm_terms(wm_terms) VALUES ('optimize')")
        return gone

    def prune(self, scope: str, before: str) -> list[str]:
        """Deletes what was put away before the time ``before`` and is not pinned; returns the ids."""
        rows = self.db.rows(
            "SELECT id FROM wm_items WHERE scope = ? AND zone = 'cold' AND pinned = 0 AND put_away_at < ?",
            (scope, before),
        )
        ids = [str(row["id"]) for row in rows]
        with self.db.transaction():
            self.delete(scope, ids)
            self.db.execute("DELETE FROM wm_log WHERE scope = ? AND at < ?", (scope, before))
        return ids

    def set_pinned(self, scope: str, item_id: str, pinned: bool) -> bool:
        """Pins a cold item against pruning, or releases it; false when there is none of that id."""
        sql = "UPDATE wm_items SET pinned = ? WHERE scope = ? AND id = ? AND zone = 'cold'"
        return self.db.execute(sql, (int(pinned), scope, item_id)) > 0

    # --- reading ----------------------------------------------------------------------------------

    def session(self, scope: str, session_id: str) -> tuple[int, str, str] | None:
        """Step, goal and mark of a session, or ``None``."""
        row = self.db.row("SELECT * FROM wm_sessions WHERE scope = ? AND session_id = ?", (scope, session_id))
        if row is None:
            return None
        # An ordinary step is written with its item only.
        sql = "SELECT max(max(birth, touched, put_away_step)) FROM wm_items WHERE scope = ? AND session_id = ?"
        step = max(int(row["step"]), int(self.db.value(sql, (scope, session_id)) or 0))
        return step, str(row["goal"]), str(row["word"])

    def hot_items(self, scope: str, session_id: str, identity: str) -> list[Item]:
        """The hot items of a session in the order they came, with vectors of the embedder ``identity``."""
        rows = self.db.rows(
            "SELECT * FROM wm_items WHERE scope = ? AND session_id = ? AND zone = 'hot' ORDER BY birth, number",
            (scope, session_id),
        )
        return self._items(rows, identity)

    def items(self, scope: str, ids: Iterable[str], identity: str = "") -> dict[str, tuple[Item, str]]:
        """Items by id, each with its zone."""
        found: dict[str, tuple[Item, str]] = {}
        for item_id in ids:
            rows = self.db.rows("SELECT * FROM wm_items WHERE scope = ? AND id = ?", (scope, item_id))
            for row, item in zip(rows, self._items(rows, identity), strict=True):
                found[item_id] = (item, str(row["zone"]))
        return found

    def put_away_by(self, scope: str, session_id: str, ids: Sequence[str]) -> list[str]:
        """Those of ``ids`` that are cold items of a session, in their order."""
        sql = (
            "SELECT id FROM wm_items WHERE scope = ? AND session_id = ? AND zone = 'cold' "
            f"AND id IN ({', '.join('?' * len(ids))})"
        )
        found = {str(row[0]) for row in self.db.rows(sql, (scope, session_id, *ids))}
        return [item_id for item_id in ids if item_id in found]

    def resolve(self, scope: str, ending: str) -> str | None:
        """The id that ends in ``ending`` (at least three characters), when there is exactly one."""
        if len(ending) < 3 or not ending.isalnum():
            return None
        rows = self.db.rows("SELECT id FROM wm_items WHERE scope = ? AND id LIKE ? LIMIT 2", (scope, f"%{ending}"))
        return str(rows[0]["id"]) if len(rows) == 1 else None

    def _items(self, rows: Sequence[sqlite3.Row], identity: str, names: bool = True) -> list[Item]:
        vectors = self._vectors([int(row["number"]) for row in rows], identity) if identity else {}
        return [_item_of(row, vectors.get(int(row["number"])), names) for row in rows]

    def _vectors(self, numbers: Sequence[int], identity: str) -> dict[int, Vector]:
        found: dict[int, Vector] = {}
        for start in range(0, len(numbers), 500):
            part = numbers[start : start + 500]
            rows = self.db.rows(
                "SELECT item, vector FROM wm_vectors JOIN wm_embedders e ON e.number = embedder "
                f"WHERE e.identity = ? AND item IN ({', '.join('?' * len(part))})",
                (identity, *part),
            )
            found.update({int(row["item"]): np.frombuffer(row["vector"], dtype="<f4") for row in rows})
        return found

    def without_vector(self, scope: str, identity: str, limit: int) -> list[tuple[int, str]]:
        """``(number, text)`` of cold items, newest first, that the embedder ``identity`` has not seen."""
        rows = self.db.rows(
            "SELECT number, text FROM wm_items i WHERE scope = ? AND zone = 'cold' AND text <> '' AND NOT EXISTS ("
            "SELECT 1 FROM wm_vectors v JOIN wm_embedders e ON e.number = v.embedder "
            "WHERE v.item = i.number AND e.identity = ?) ORDER BY put_away_at DESC LIMIT ?",
            (scope, identity, limit),
        )
        return [(int(row["number"]), str(row["text"])) for row in rows]

    def write_vectors(self, identity: str, vectors: Sequence[tuple[int, Vector]]) -> None:
        """Stores vectors made later, by item number; items deleted meanwhile are passed over."""
        with self.db.transaction(synced=False) as connection:
            for number, vector in vectors:
                if connection.execute("SELECT 1 FROM wm_items WHERE number = ?", (number,)).fetchone():
                    self._write_vector(connection, number, identity, vector)

    def calibration(self, identity: str, dimension: int) -> Calibration:
        """What is known of the mean direction of an embedder."""
        row = self.db.row("SELECT seen, total FROM wm_embedders WHERE identity = ?", (identity,))
        if row is None or row["total"] is None:
            return Calibration()
        total = np.frombuffer(row["total"], dtype=np.float64).copy()
        return Calibration(total, int(row["seen"])) if len(total) == dimension else Calibration()

    def versions(self, scope: str, item_id: str) -> list[tuple[str, str, str]]:
        """Earlier texts of an item, newest first: ``(text, replaced at, reason)``."""
        rows = self.db.rows(
            "SELECT v.text, v.replaced_at, v.reason FROM wm_versions v JOIN wm_items i ON i.number = v.item "
            "WHERE i.scope = ? AND i.id = ? ORDER BY v.number DESC",
            (scope, item_id),
        )
        return [(str(row[0]), str(row[1]), str(row[2])) for row in rows]

    def log(self, scope: str, limit: int, session_id: str = "") -> list[LogLine]:
        """Lines of the log, newest first; of one session when it is named."""
        only = " AND session_id = ?" if session_id else ""
        rows = self.db.rows(
            f"SELECT step, at, event, item_id, reason, session_id FROM wm_log WHERE scope = ?{only} "
            "ORDER BY number DESC LIMIT ?",
            (scope, session_id, limit) if session_id else (scope, limit),
        )
        return [LogLine(*tuple(row)) for row in rows]

    def has_other_scopes(self, scope: str) -> bool:
        """Whether the database holds items of another scope."""
        sql = (
            "SELECT 1 WHERE EXISTS (SELECT 1 FROM wm_items WHERE scope < ?) "
            "OR EXISTS (SELECT 1 FROM wm_items WHERE scope > ?)"
        )
        return self.db.row(sql, (scope, scope)) is not None

    def cold_count(self, scope: str) -> int:
        return int(self.db.value("SELECT count(*) FROM wm_items WHERE scope = ? AND zone = 'cold'", (scope,)))

    def newest_cold(self, scope: str, limit: int) -> list[Item]:
        """Cold items, the last put away first."""
        rows = self.db.rows(
            "SELECT * FROM wm_items WHERE scope = ? AND zone = 'cold' ORDER BY put_away_at DESC, number DESC LIMIT ?",
            (scope, limit),
        )
        return self._items(rows, "", names=False)

    def _elsewhere(self, scope: str, change: Change) -> bool:
        """Whether another row keeps the same text of the same lineage (a copy was brought into this session)."""
        sql = (
            "SELECT 1 FROM wm_items WHERE scope = ? AND id = ? AND digest = ? UNION ALL "
            "SELECT 1 FROM wm_items WHERE scope = ? AND lineage = ? AND lineage <> id AND id <> ? AND digest = ?"
        )
        same = digest(change.text)
        found = self.db.row(sql, (scope, change.lineage, same, scope, change.lineage, change.id, same))
        return found is not None

    def search(self, query: Query) -> list[Hit]:
        """Candidates for a question, best first (see :mod:`tui_agent.memory.cold_search`)."""
        self.index()
        query = dataclasses.replace(query, crowded=self.has_other_scopes(query.scope))
        return self._search.search(query)

    def matching(self, scope: str, words: str, limit: int) -> list[Item]:
        """Cold items that hold any word of ``words``, best first, for the search field of the pane."""
        self.index()
        expression = fts_any(list(dict.fromkeys(index_terms(words))))
        if not expression:
            return []
        rows = self.db.rows(
            "SELECT i.* FROM wm_terms t JOIN wm_items i ON i.number = t.rowid "
            "WHERE wm_terms MATCH ? AND i.scope = ? AND i.zone = 'cold' ORDER BY t.rank LIMIT ?",
            (expression, scope, limit),
        )
        return self._items(rows, "", names=False)


def _item_of(row: sqlite3.Row, vector: Vector | None, names: bool) -> Item:
    text, source = str(row["text"]), str(row["source"])
    shown = tuple((int(a), int(b)) for a, b in json.loads(row["shown"])) if row["shown"] else ()
    return Item(
        id=str(row["id"]), kind=str(row["kind"]), text=text, summary=str(row["summary"]), source=source,
        pinned=bool(row["pinned"]), tokens=int(row["tokens"]), birth=int(row["birth"]), touched=int(row["touched"]),
        references=int(row["refs"]), weighted=float(row["weighted"]), recalls=int(row["recalls"]),
        lineage=str(row["lineage"]), origin_kind=str(row["origin_kind"]), created_at=str(row["created_at"]),
        put_away_at=str(row["put_away_at"]), put_away_step=int(row["put_away_step"]), reason=str(row["reason"]),
        shown=shown, vector=vector, symbols=extract(text, source) if names else Symbols(),
        session_id=str(row["session_id"]),
    )  # fmt: skip
