"""The change log of the facts, and the hashes that stay of what was deleted."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from tui_agent.memory.database import Database
from tui_agent.memory.facts_schema import fact_key
from tui_agent.memory.text import stems, words
from tui_agent.memory.types import Change

_NEGATIONS = frozenset({"no", "not", "never", "cannot", "nie", "nigdy", "bez", "не", "нет", "ни", "никогда", "без"})


@dataclass(frozen=True, slots=True)
class Step:
    """A change that can be taken back: which one, of which row, and the column values from before it."""

    id: int
    memory_id: str
    event: str
    before: dict[str, Any]


class ChangeLog:
    """What happened to which fact, with the texts before and after, until someone deletes them."""

    def __init__(self, db: Database, clock: Callable[[], str]) -> None:
        self._db = db
        self._clock = clock

    def add(
        self,
        memory_id: str,
        event: str,
        *,
        old: str = "",
        new: str = "",
        other_id: str | None = None,
        before: dict[str, Any] | None = None,
    ) -> None:
        """One line of the log. ``before`` makes the change one that can be taken back."""
        self._db.execute(
            "INSERT INTO changes(memory_id, event, old, new, created_at, other_id, undo) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (memory_id, event, old, new, self._clock(), other_id, None if before is None else json.dumps(before)),
        )

    def entries(self, memory_id: str | None, limit: int) -> list[Change]:
        """The last changes, newest first; of one fact, those in which it was replaced included."""
        where, values = ("", ()) if memory_id is None else ("WHERE memory_id = ? OR other_id = ?", (memory_id,) * 2)
        found = self._db.rows(
            f"SELECT id, memory_id, event, old, new, created_at, is_deleted FROM changes {where} "
            "ORDER BY id DESC LIMIT ?",
            (*values, limit),
        )
        return [Change(**{**dict(row), "is_deleted": bool(row["is_deleted"])}) for row in found]

    def counts(self) -> dict[str, int]:
        """The number of changes by event."""
        return {
            row["event"]: row["count"]
            for row in self._db.rows("SELECT event, count(*) AS count FROM changes GROUP BY event ORDER BY event")
        }

    def ancestors(self, memory_id: str) -> set[str]:
        """A row's id and the ids of all rows it ever superseded, also of those that prune has removed since."""
        found = self._db.rows(
            "WITH RECURSIVE family(id) AS (SELECT ? UNION SELECT c.other_id FROM changes c JOIN family f "
            "ON c.memory_id = f.id WHERE c.event = 'supersede') SELECT id FROM family",
            (memory_id,),
        )
        return {row["id"] for row in found}

    def statements(self, memory_ids: Collection[str]) -> set[str]:
        """What these rows said, as far as the log still holds it."""
        found: set[str] = set()
        for memory_id in memory_ids:
            for row in self._db.rows(
                "SELECT new AS text FROM changes WHERE memory_id = ? AND event IN ('add', 'supersede') "
                "UNION SELECT old FROM changes WHERE memory_id = ? AND event = 'prune' "
                "UNION SELECT old FROM changes WHERE other_id = ? AND event = 'supersede'",
                (memory_id,) * 3,
            ):
                found.add(row["text"])
        return found - {""}

    def redact(self, memory_ids: Iterable[str]) -> None:
        """Takes the texts of these rows out of the log; that something happened, and when, stays."""
        with self._db.transaction() as connection:
            for memory_id in memory_ids:
                connection.execute(
                    "UPDATE changes SET old = '', new = '', is_deleted = 1, undo = NULL WHERE memory_id = ?",
                    (memory_id,),
                )
                connection.execute("UPDATE changes SET old = '' WHERE other_id = ?", (memory_id,))

    def step(self, change_id: int | None = None, skip: Collection[int] = ()) -> Step | None:
        """The last change that can be taken back (or the one named), or ``None``."""
        for row in self._db.rows(
            "SELECT id, memory_id, event, undo FROM changes WHERE undo IS NOT NULL AND (? IS NULL OR id = ?) "
            "ORDER BY id DESC LIMIT ?",
            (change_id, change_id, len(skip) + 1),
        ):
            if row["id"] not in skip:
                return Step(row["id"], row["memory_id"], row["event"], json.loads(row["undo"]))
        return None

    def before(self, memory_id: str, event: str) -> dict[str, Any]:
        """The column values from before the last such change of a row; empty where that is not known."""
        found = self._db.rows(
            "SELECT undo FROM changes WHERE memory_id = ? AND event = ? AND undo IS NOT NULL ORDER BY id DESC LIMIT 1",
            (memory_id, event),
        )
        return dict(json.loads(found[0]["undo"])) if found else {}

    def settle(self, change_id: int) -> None:
        """Marks a change as one that can no longer be taken back."""
        self._db.execute("UPDATE changes SET undo = NULL WHERE id = ?", (change_id,))

    def forget_before(self, days: int) -> int:
        """Removes lines older than ``days`` of rows that no longer exist; returns their number."""
        return self._db.execute(
            "DELETE FROM changes WHERE created_at < datetime('now', ?) "
            "AND memory_id NOT IN (SELECT id FROM memory) AND coalesce(other_id, '') NOT IN (SELECT id FROM memory)",
            (f"-{int(days)} days",),
        )


class Tombstones:
    """Knows deleted and rejected statements again without keeping them: HMAC-SHA256 with a random key of the store.

    A statement is known by its normalised text and by the set of its stems, so that another order, form or punctuation
    of the same words is known too.
    """

    def __init__(self, db: Database, clock: Callable[[], str]) -> None:
        self._db = db
        self._clock = clock
        self._key: bytes | None = None

    def _digests(self, text: str) -> list[bytes]:
        if self._key is None:
            with self._db.transaction() as connection:
                connection.execute(
                    "INSERT OR IGNORE INTO store_keys VALUES ('tombstones', ?)", (secrets.token_bytes(32),)
                )
                self._key = bytes(self._db.value("SELECT value FROM store_keys WHERE name = 'tombstones'"))
        forms = ["text:" + fact_key(text)]
        roots = sorted(set(stems(text)))
        if len(roots) > 1:  # one stem alone would stand for any form of a word
            negated = any(word in _NEGATIONS or word.endswith("n't") for word in words(text))
            forms.append(f"stems:{'not ' * negated}{' '.join(roots)}")
        return [hmac.new(self._key, form.encode(), hashlib.sha256).digest() for form in forms]

    def add(self, text: str, why: Literal["deleted", "rejected"]) -> None:
        """Remembers that ``text`` was deleted or rejected."""
        if not text.strip():
            return
        now = self._clock()
        with self._db.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO tombstones VALUES (?, ?, ?)",
                [(digest, why, now) for digest in self._digests(text)],
            )

    def has(self, text: str, why: Literal["deleted", "rejected"]) -> bool:
        """Whether ``text``, in this or another form, was deleted or rejected."""
        digests = self._digests(text)
        marks = ", ".join("?" * len(digests))
        return bool(self._db.rows(f"SELECT 1 FROM tombstones WHERE why = ? AND digest IN ({marks})", (why, *digests)))

    def lift(self, text: str) -> None:
        """Forgets that ``text`` was deleted or rejected."""
        with self._db.transaction() as connection:
            connection.executemany("DELETE FROM tombstones WHERE digest = ?", [(d,) for d in self._digests(text)])
