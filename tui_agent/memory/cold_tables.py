"""The tables of the working memory, and what is written into them in one go."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tui_agent.memory.database import Migration
from tui_agent.memory.hot import Item
from tui_agent.memory.scoring import Floats
from tui_agent.memory.symbols import Symbols
from tui_agent.memory.types import Vector

LOG_EVENTS = (
    "evicted", "put_away", "brought_back", "merged", "edited", "pin_released", "over_budget", "excerpted", "goal",
    "deleted", "pruned", "degraded", "imported",
)  # fmt: skip
"""What a line of the log can say."""


def _first_tables(connection: sqlite3.Connection) -> None:
    for statement in (
        """CREATE TABLE wm_items(
            number INTEGER PRIMARY KEY, scope TEXT NOT NULL, id TEXT NOT NULL, session_id TEXT NOT NULL,
            zone TEXT NOT NULL CHECK (zone IN ('hot', 'cold')), kind TEXT NOT NULL, origin_kind TEXT NOT NULL,
            pinned INTEGER NOT NULL, important INTEGER NOT NULL, tokens INTEGER NOT NULL, birth INTEGER NOT NULL,
            touched INTEGER NOT NULL, refs INTEGER NOT NULL, weighted REAL NOT NULL, recalls INTEGER NOT NULL,
            lineage TEXT NOT NULL, digest BLOB NOT NULL, created_at TEXT NOT NULL, put_away_at TEXT NOT NULL,
            put_away_step INTEGER NOT NULL, reason TEXT NOT NULL, shown TEXT NOT NULL, source TEXT NOT NULL,
            summary TEXT NOT NULL, indexed INTEGER NOT NULL DEFAULT 0, text TEXT NOT NULL, UNIQUE (scope, id))""",
        "CREATE INDEX wm_items_unindexed ON wm_items(number) WHERE indexed = 0",
        "CREATE INDEX wm_items_cold ON wm_items(scope, put_away_at) WHERE zone = 'cold'",
        "CREATE INDEX wm_items_hot ON wm_items(scope, session_id) WHERE zone = 'hot'",
        "CREATE INDEX wm_items_copies ON wm_items(scope, lineage) WHERE lineage <> id",
        """CREATE TABLE wm_embedders(
            number INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL,
            seen INTEGER NOT NULL DEFAULT 0, total BLOB)""",
        # Numbers are never used twice, so "everything after the last one seen" misses nothing.
        """CREATE TABLE wm_vectors(
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            item INTEGER NOT NULL REFERENCES wm_items(number) ON DELETE CASCADE,
            embedder INTEGER NOT NULL REFERENCES wm_embedders(number), vector BLOB NOT NULL,
            UNIQUE (item, embedder))""",
        """CREATE TABLE wm_symbols(
            key TEXT NOT NULL, item INTEGER NOT NULL REFERENCES wm_items(number) ON DELETE CASCADE,
            defined INTEGER NOT NULL, PRIMARY KEY (key, item)) WITHOUT ROWID""",
        "CREATE INDEX wm_symbols_item ON wm_symbols(item)",
        """CREATE TABLE wm_versions(
            number INTEGER PRIMARY KEY, item INTEGER NOT NULL REFERENCES wm_items(number) ON DELETE CASCADE,
            text TEXT NOT NULL, replaced_at TEXT NOT NULL, reason TEXT NOT NULL)""",
        "CREATE INDEX wm_versions_item ON wm_versions(item)",
        """CREATE TABLE wm_sessions(
            scope TEXT NOT NULL, session_id TEXT NOT NULL, step INTEGER NOT NULL, goal TEXT NOT NULL,
            word TEXT NOT NULL, saved_at TEXT NOT NULL, PRIMARY KEY (scope, session_id))""",
        """CREATE TABLE wm_log(
            number INTEGER PRIMARY KEY, scope TEXT NOT NULL, session_id TEXT NOT NULL, step INTEGER NOT NULL,
            at TEXT NOT NULL, event TEXT NOT NULL, item_id TEXT NOT NULL, reason TEXT NOT NULL)""",
        # Holds stems, not text; bm25 weighs the head (summary, source) higher than the body.
        "CREATE VIRTUAL TABLE wm_terms USING fts5(head, body, tokenize = 'unicode61 remove_diacritics 0')",
        "INSERT INTO wm_terms(wm_terms, rank) VALUES ('rank', 'bm25(2.0, 1.0)')",
        "CREATE VIRTUAL TABLE wm_vocabulary USING fts5vocab('wm_terms', 'row')",
    ):
        connection.execute(statement)


MIGRATIONS: list[Migration] = [("first tables", _first_tables)]

_FIELDS = (
    "session_id", "zone", "kind", "origin_kind", "pinned", "important", "tokens", "birth", "touched", "refs",
    "weighted", "recalls", "lineage", "put_away_at", "put_away_step", "reason", "shown", "source", "summary",
)  # fmt: skip
_KIND = _FIELDS.index("kind")
UPDATE = f"UPDATE wm_items SET {', '.join(f'{name} = ?' for name in _FIELDS)} WHERE scope = ? AND id = ?"
_COLUMNS = [*_FIELDS, "scope", "id", "digest", "created_at", "text"]
INSERT = f"INSERT OR IGNORE INTO wm_items({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"

_FEW, _SHORT = 16, 65_536  # items and characters


class LogLine(NamedTuple):
    """One line of the log. ``event`` is one of :data:`LOG_EVENTS`; ``reason`` holds no text of the item itself."""

    step: int
    at: str
    event: str
    item_id: str
    reason: str
    session_id: str = ""


class Change(NamedTuple):
    """One item as it is to be written: a snapshot, so that the item may change meanwhile.

    ``replaced`` holds ``(old text, reason)`` of each change of its text; ``claim`` says that it must still be cold, or
    be new, at the moment of writing; ``vector`` is written when ``identity`` names its embedder.
    """

    id: str
    zone: str
    values: tuple[Any, ...]
    text: str
    created_at: str
    lineage: str
    symbols: Symbols
    new: bool = False
    replaced: tuple[tuple[str, str], ...] = ()
    claim: bool = False
    identity: str = ""
    vector: Vector | None = None

    @property
    def precious(self) -> bool:
        """Whether it brings a text that is kept nowhere else."""
        return bool(self.replaced) or (self.new and self.values[_KIND] == "note")

    @classmethod
    def of(cls, item: Item, zone: str, session_id: str, **how: Any) -> Change:
        """The snapshot of ``item``, hot or cold in the session it belongs to."""
        shown = json.dumps(item.shown) if item.shown else ""
        values = (
            item.session_id or session_id, zone, item.kind, item.origin_kind, int(item.pinned), int(item.important),
            item.tokens, item.birth, item.touched, item.references, item.weighted, item.recalls,
            item.lineage or item.id, item.put_away_at, item.put_away_step, item.reason, shown, item.source,
            item.summary,
        )  # fmt: skip
        return cls(
            item.id, zone, values, item.text, item.created_at, item.lineage, item.symbols, vector=item.vector, **how
        )


@dataclass(slots=True)
class Batch:
    """What one step of the working memory writes, all or nothing. Goal and mark are written when ``session_changed``;
    a step needs no row of its own as long as an item carries it."""

    scope: str
    session_id: str
    step: int
    goal: str
    word: str
    session_changed: bool = True
    changes: list[Change] = field(default_factory=list)
    log: list[LogLine] = field(default_factory=list)
    calibration: tuple[str, int, Floats] | None = None

    @property
    def small(self) -> bool:
        """Whether writing it takes a fraction of a millisecond."""
        return len(self.changes) <= _FEW and sum(len(change.text) for change in self.changes) <= _SHORT


def digest(text: str) -> bytes:
    """Under which equal texts meet."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
