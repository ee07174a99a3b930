"""The table of facts, its live view and what belongs to them."""

from __future__ import annotations

import re
import sqlite3
from enum import Enum
from typing import TypeVar

from tui_agent.memory.database import Migration
from tui_agent.memory.text import fold, normalise
from tui_agent.memory.types import Fact, Kind, Origin, Scope, kind_of

_E = TypeVar("_E", bound=Enum)

_TABLES = (
    # The first eight columns are a plain SQL memory that any tool can read and write; the others have defaults, so that
    # an INSERT that knows only those eight works.
    """
    CREATE TABLE memory (
      id            TEXT PRIMARY KEY,
      subject       TEXT NOT NULL,
      fact          TEXT NOT NULL,
      source        TEXT NOT NULL,
      created_at    TEXT NOT NULL DEFAULT (datetime('now')),
      confirmed_at  TEXT NOT NULL DEFAULT (datetime('now')),
      expires_at    TEXT,
      superseded_by TEXT REFERENCES memory(id) ON DELETE CASCADE,
      superseded_at TEXT,
      last_used_at  TEXT,
      kind          TEXT NOT NULL DEFAULT 'fact',
      importance    INTEGER NOT NULL DEFAULT 5,
      source_kind   TEXT NOT NULL DEFAULT 'user',
      quote         TEXT NOT NULL DEFAULT '',
      message_id    TEXT,
      scope         TEXT NOT NULL DEFAULT 'project',
      pinned        INTEGER NOT NULL DEFAULT 0,
      target        TEXT NOT NULL DEFAULT '',
      target_line   TEXT NOT NULL DEFAULT '',
      subject_key   TEXT NOT NULL DEFAULT '',
      fact_key      TEXT NOT NULL DEFAULT ''
    )
    """,
    "CREATE INDEX memory_expires ON memory(expires_at)",
    "CREATE INDEX memory_superseded ON memory(superseded_by)",
    "CREATE INDEX memory_subject_key ON memory(subject_key)",
    "CREATE INDEX memory_fact_key ON memory(fact_key)",
    """
    CREATE VIEW live_memory AS
    SELECT id, subject, fact, source, confirmed_at, expires_at
    FROM memory
    WHERE superseded_by IS NULL
      AND (expires_at IS NULL OR expires_at > datetime('now'))
    """,
    """
    CREATE TABLE fact_vectors (
      fact_id   TEXT NOT NULL REFERENCES memory(id) ON DELETE CASCADE,
      identity  TEXT NOT NULL,
      dimension INTEGER NOT NULL,
      vector    BLOB NOT NULL,
      PRIMARY KEY (fact_id, identity)
    )
    """,
    # A row edited by hand with SQL: what was derived from the old text is wrong now.
    """
    CREATE TRIGGER memory_edited AFTER UPDATE OF subject, fact ON memory
    WHEN new.fact IS NOT old.fact OR new.subject IS NOT old.subject BEGIN
      UPDATE memory SET fact_key = '', subject_key = '' WHERE id = new.id;
      DELETE FROM fact_vectors WHERE fact_id = new.id;
    END
    """,
    """
    CREATE TABLE quarantine (
      id         TEXT PRIMARY KEY,
      text       TEXT NOT NULL,
      text_key   TEXT NOT NULL UNIQUE,
      origin     TEXT NOT NULL,
      proposer   TEXT NOT NULL,
      source     TEXT NOT NULL,
      kind       TEXT,
      importance INTEGER NOT NULL,
      subject    TEXT NOT NULL,
      quote      TEXT NOT NULL,
      message_id TEXT,
      target     TEXT NOT NULL,
      scope      TEXT NOT NULL,
      ttl_days   REAL,
      reason     TEXT NOT NULL,
      rule       TEXT NOT NULL,
      created_at TEXT NOT NULL
    )
    """,
    # Of what was deleted or rejected only a keyed hash stays: enough to know it again, not to read it.
    "CREATE TABLE tombstones (digest BLOB NOT NULL, why TEXT NOT NULL, created_at TEXT NOT NULL, "
    "PRIMARY KEY (digest, why))",
    "CREATE TABLE store_keys (name TEXT PRIMARY KEY, value BLOB NOT NULL)",
    # other_id is the row whose text "old" is, where that is not memory_id; undo is JSON of the values to put back.
    """
    CREATE TABLE changes (
      id         INTEGER PRIMARY KEY AUTOINCREMENT,
      memory_id  TEXT NOT NULL,
      event      TEXT NOT NULL,
      old        TEXT NOT NULL DEFAULT '',
      new        TEXT NOT NULL DEFAULT '',
      created_at TEXT NOT NULL,
      is_deleted INTEGER NOT NULL DEFAULT 0,
      other_id   TEXT,
      undo       TEXT
    )
    """,
    "CREATE INDEX changes_memory ON changes(memory_id)",
    "CREATE INDEX changes_other ON changes(other_id) WHERE other_id IS NOT NULL",
)

# Word for word what a clean-up script run by a timer holds; the connection has foreign keys on.
PRUNE_EXPIRED = """
DELETE FROM memory
WHERE expires_at IS NOT NULL AND expires_at <= datetime('now')
"""
PRUNE_SUPERSEDED = """
DELETE FROM memory
WHERE superseded_by IS NOT NULL
  AND created_at < datetime('now', '-180 days')
"""
PRUNE_SUPERSEDED_SINCE = """
DELETE FROM memory
WHERE superseded_by IS NOT NULL
  AND coalesce(superseded_at, created_at) < datetime('now', '-180 days')
"""


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)


def _find_by_message(connection: sqlite3.Connection) -> None:
    # Every question asks which facts were stated in the messages that the window shows.
    connection.execute("CREATE INDEX memory_message ON memory(message_id) WHERE message_id IS NOT NULL")


ROOM = "facts"
MIGRATIONS: tuple[Migration, ...] = (("001 facts", _create), ("002 facts by message", _find_by_message))


def subject_key(subject: str) -> str:
    """The key under which two subjects are one: ``Line_Length``, ``line-length`` and ``line length`` are the same.

    An empty key stands for "no subject" and is equal to nothing.
    """
    return re.sub(r"[\s_\-‐‑–—]+", " ", fold(subject)).strip()


def fact_key(text: str) -> str:
    """The key under which two statements are the same (never empty for a text that is not blank)."""
    return normalise(text) or fold(text).strip()


def _word(kind: type[_E], text: str, default: _E) -> _E:
    try:
        return kind(text)
    except ValueError:
        return default


def fact_of(row: sqlite3.Row) -> Fact:
    """A row of ``memory``. Words that this version does not know (from a hand-made row) get their default."""
    return Fact(
        id=row["id"],
        subject=row["subject"],
        fact=row["fact"],
        source=row["source"],
        kind=kind_of(row["kind"], Kind.FACT),
        importance=row["importance"],
        source_kind=_word(Origin, row["source_kind"], Origin.IMPORT),
        quote=row["quote"],
        message_id=row["message_id"],
        subject_key=row["subject_key"] or subject_key(row["subject"]),
        scope=_word(Scope, row["scope"], Scope.PROJECT),
        created_at=row["created_at"],
        confirmed_at=row["confirmed_at"],
        expires_at=row["expires_at"],
        superseded_by=row["superseded_by"],
        superseded_at=row["superseded_at"],
        last_used_at=row["last_used_at"],
        pinned=bool(row["pinned"]),
        target=row["target"],
        target_line=row["target_line"],
    )
