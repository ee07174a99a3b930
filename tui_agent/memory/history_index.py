"""The tables of sessions and messages, and the full-text index over the messages."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection
from typing import Any

from tui_agent.memory.database import Database, Migration, StoreError
from tui_agent.memory.text import STOPWORDS, fold, fts_any, fts_terms, split_identifier, stems, terms, words

_TABLES = (
    """
    CREATE TABLE sessions (
      id            TEXT PRIMARY KEY,
      title         TEXT NOT NULL DEFAULT '',
      model         TEXT NOT NULL DEFAULT '',
      goal          TEXT NOT NULL DEFAULT '',
      started_at    TEXT NOT NULL,
      last_at       TEXT NOT NULL,
      ended_at      TEXT,
      epoch         INTEGER NOT NULL DEFAULT 0,
      extracted_seq INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX sessions_last ON sessions(last_at)",
    """
    CREATE TABLE messages (
      n          INTEGER PRIMARY KEY,
      id         TEXT NOT NULL UNIQUE,
      session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
      seq        INTEGER NOT NULL,
      role       TEXT NOT NULL,
      content    TEXT NOT NULL,
      thinking   TEXT NOT NULL DEFAULT '',
      tool_calls TEXT NOT NULL DEFAULT '[]',
      tool_name  TEXT NOT NULL DEFAULT '',
      status     TEXT NOT NULL DEFAULT 'complete',
      meta       TEXT NOT NULL DEFAULT '{}',
      created_at TEXT NOT NULL,
      indexed    INTEGER NOT NULL DEFAULT 0,
      UNIQUE (session_id, seq)
    )
    """,
    # The rows whose index entry is missing or old: few, so that finding them costs nothing.
    "CREATE INDEX messages_unindexed ON messages(n) WHERE indexed = 0",
    # The index keeps its own folded text: deleting from an index without content needs the exact old words back, and a
    # newer stemmer would not give them.
    """
    CREATE VIRTUAL TABLE message_index USING fts5(
      words, stems, folded UNINDEXED, tokenize = 'unicode61 remove_diacritics 0'
    )
    """,
    """
    CREATE TRIGGER messages_deleted AFTER DELETE ON messages BEGIN
      DELETE FROM message_index WHERE rowid = old.n;
    END
    """,
    """
    CREATE TABLE wire_log (
      n          INTEGER PRIMARY KEY,
      session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
      epoch      INTEGER NOT NULL,
      message    TEXT NOT NULL,
      created_at TEXT NOT NULL
    )
    """,
    "CREATE INDEX wire_log_session ON wire_log(session_id, epoch)",
    """
    CREATE TABLE recalls (
      message_id TEXT PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
      record     TEXT NOT NULL
    )
    """,
    "CREATE TABLE drafts (session_id TEXT PRIMARY KEY, text TEXT NOT NULL)",
    "CREATE TABLE prompts (n INTEGER PRIMARY KEY, text TEXT NOT NULL)",
    """
    CREATE TABLE session_state (
      session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
      key        TEXT NOT NULL,
      value      TEXT NOT NULL,
      PRIMARY KEY (session_id, key)
    )
    """,
)


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)


ROOM = "history"
MIGRATIONS: tuple[Migration, ...] = (("001 sessions and messages", _create),)


def _literal(text: str) -> str:
    """Text as the index compares it character by character: folded, white space as single spaces."""
    return fold(" ".join(text.split()))


class MessageIndex:
    """Finds messages by words, parts of identifiers, stems, or literally.

    The index is a projection of the messages: it is brought up to date before a search, so that an answer written
    piece by piece costs no indexing, and it can be dropped and made anew.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    def update(self) -> int:
        """Indexes the messages that are new or changed; returns their number."""
        if not self._db.rows("SELECT 1 FROM messages WHERE indexed = 0 LIMIT 1"):
            return 0
        with self._db.transaction() as connection:
            pending = connection.execute("SELECT n, content FROM messages WHERE indexed = 0").fetchall()
            for number, content in pending:
                connection.execute("DELETE FROM message_index WHERE rowid = ?", (number,))
                connection.execute(
                    "INSERT INTO message_index(rowid, words, stems, folded) VALUES (?, ?, ?, ?)",
                    (number, " ".join(terms(content)), " ".join(stems(content)), _literal(content)),
                )
            connection.execute("UPDATE messages SET indexed = 1 WHERE indexed = 0")
        return len(pending)

    def rebuild(self) -> int:
        """Makes the index anew from the messages; returns their number."""
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM message_index")
            connection.execute("UPDATE messages SET indexed = 0")
            count = self.update()
            self.wipe()
        return count

    def wipe(self) -> None:
        """Takes deleted words out of the index file: FTS5 only marks them until its segments are merged into one."""
        self._db.execute("INSERT INTO message_index(message_index) VALUES ('optimize')")

    def search(
        self, query: str, *, roles: Collection[str], session_id: str | None, exclude: Collection[str], limit: int
    ) -> list[sqlite3.Row]:
        """Rows of ``messages``, best first: those that hold the query as it is, then by the share of its words."""
        literal = _literal(query)
        if not literal or limit < 1:
            return []
        try:
            self.update()
        except StoreError as error:
            if error.kind == "corrupt":
                raise
            # A full or busy disk: what is indexed already can still be searched.
        where = f"m.role IN ({', '.join('?' * len(roles))})"
        values: list[Any] = [*roles]
        if session_id is not None:
            where += " AND m.session_id = ?"
            values.append(session_id)
        if exclude:
            where += f" AND m.id NOT IN ({', '.join('?' * len(exclude))})"
            values.extend(exclude)

        ranked = self._by_words(query, literal, where, values, limit)
        found = {row["n"]: row for row, exact in ranked if exact}
        # A single word with signs in it is a name, a path or a figure: only where that is nowhere, messages with all of
        # its parts will do ("getUserById" for "get_user_by_id"); "50%" has no parts, 50 of something is another thing.
        only_exact = re.search(r"\s", literal) is None and re.search(r"[^\w'-]|_", literal) is not None
        if only_exact or len(ranked) < limit:
            for row in self._by_characters(literal, where, values, limit):
                found.setdefault(row["n"], row)
        if not only_exact:
            for row, _ in ranked:
                found.setdefault(row["n"], row)
        elif not found and "%" not in literal:
            parts = set(split_identifier(query)) - STOPWORDS
            found = {row["n"]: row for row, _ in ranked if parts <= set(row["words"].split(" "))}
        return list(found.values())[:limit]

    def _by_words(
        self, query: str, literal: str, where: str, values: list[Any], limit: int
    ) -> list[tuple[sqlite3.Row, bool]]:
        """Rows that hold words of the query, best first, each with whether it holds the query as it is."""
        either = (
            fts_any(fts_terms(query), "words"),
            fts_any(list(dict.fromkeys(stems(query))), "stems"),
        )
        expression = " OR ".join(part for part in either if part)
        if not expression:
            return []
        rows = self._db.rows(
            "SELECT m.*, i.words AS words, i.stems AS stems, instr(i.folded, ?) > 0 AS exact "
            "FROM message_index i JOIN messages m ON m.n = i.rowid "
            f"WHERE message_index MATCH ? AND {where} ORDER BY bm25(message_index, 2.0, 1.0) LIMIT ?",
            (literal, expression, *values, max(5 * limit, 50)),
        )
        asked = [({word, *split_identifier(word)}, set(stems(word))) for word in _asked(query)]
        scored = []
        for position, row in enumerate(rows):
            row_words, row_stems = set(row["words"].split(" ")), set(row["stems"].split(" "))
            hits = sum(bool(own & row_words or own_stems & row_stems) for own, own_stems in asked)
            scored.append((-row["exact"], -hits, position, row))
        scored.sort(key=lambda entry: entry[:3])
        # With a message at hand that has all the words, one that has few of them is noise.
        most = max((-hits for _, hits, _, _ in scored), default=0)
        return [(row, bool(exact)) for exact, hits, _, row in scored if exact or -2 * hits > most]

    def _by_characters(self, literal: str, where: str, values: list[Any], limit: int) -> list[sqlite3.Row]:
        """Rows that hold the query as it is, also inside words; newest first."""
        return self._db.rows(
            "SELECT m.* FROM message_index i JOIN messages m ON m.n = i.rowid "
            f"WHERE instr(i.folded, ?) > 0 AND {where} ORDER BY m.created_at DESC, m.n DESC LIMIT ?",
            (literal, *values, limit),
        )


def _asked(query: str) -> list[str]:
    """The words a good answer holds: those of the query without stop words, or all when nothing else is left."""
    every = list(dict.fromkeys(words(query)))
    return [word for word in every if word not in STOPWORDS] or every
