"""Sessions and their messages: everything said is on disk, findable, and never sent anywhere by being here."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.memory.database import Database
from tui_agent.memory.history_index import MIGRATIONS, ROOM, MessageIndex
from tui_agent.memory.records import MASK, TEXT_COLUMNS, Redact, SessionRecords, map_strings, span_pattern, to_json
from tui_agent.memory.text import new_id, parse_utc, utc_now

ROLES = frozenset({"user", "assistant", "tool", "notice"})
STATUSES = frozenset({"complete", "partial", "cut_off", "failed"})
SEARCHED_ROLES = ("user", "assistant")  # results of tools would bring back what a search has just printed

SEARCH_LIMIT, SEARCH_MOST, SEARCH_CHARACTERS = 10, 50, 500
_TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class StoredSession:
    """One session. ``messages`` counts what was said by user and assistant, ``preview`` is the first user message's
    beginning, ``extracted_seq`` the number of the last message that extraction has seen."""

    id: str
    title: str
    model: str
    goal: str
    started_at: str
    last_at: str
    ended_at: str | None
    epoch: int
    extracted_seq: int
    messages: int = 0
    preview: str = ""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message. ``seq`` counts from 1 inside the session; ``tool_calls`` and ``meta`` are plain JSON data."""

    id: str
    session_id: str
    seq: int
    role: str
    content: str
    created_at: str
    thinking: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_name: str = ""
    status: str = "complete"
    meta: dict[str, Any] = field(default_factory=dict)


def _message(row: sqlite3.Row) -> StoredMessage:
    return StoredMessage(
        id=row["id"],
        session_id=row["session_id"],
        seq=row["seq"],
        role=row["role"],
        content=row["content"],
        created_at=row["created_at"],
        thinking=row["thinking"],
        tool_calls=tuple(json.loads(row["tool_calls"])),
        tool_name=row["tool_name"],
        status=row["status"],
        meta=json.loads(row["meta"]),
    )


_SESSION_ROWS = """
    SELECT s.id, s.title, s.model, s.goal, s.started_at, s.last_at, s.ended_at, s.epoch, s.extracted_seq,
      (SELECT count(*) FROM messages m WHERE m.session_id = s.id AND m.role IN ('user', 'assistant')) AS messages,
      coalesce((SELECT substr(m.content, 1, 80) FROM messages m
                WHERE m.session_id = s.id AND m.role = 'user' ORDER BY m.seq LIMIT 1), '') AS preview
    FROM sessions s
"""


class History(SessionRecords):
    """Sessions, messages and their full-text search, over one database.

    ``redact`` is applied to every text before it is written; ids come from :func:`~tui_agent.memory.text.new_id`.
    Methods that name a session or message that does not exist raise ``LookupError``; an unknown role or status is a
    ``ValueError``.
    """

    def __init__(self, db: Database, redact: Redact | None = None, clock: Callable[[], str] = utc_now) -> None:
        super().__init__(db, redact, clock)
        db.migrate(ROOM, MIGRATIONS)
        self._index = MessageIndex(db)

    # --- sessions ---------------------------------------------------------------------------------

    def start_session(
        self, title: str = "", model: str = "", goal: str = "", *, started_at: str | None = None
    ) -> StoredSession:
        """A new session, begun now (or at ``started_at``, for an imported one)."""
        session_id, now = new_id(), started_at or self._clock()
        self._db.execute(
            "INSERT INTO sessions(id, title, model, goal, started_at, last_at) VALUES (?, ?, ?, ?, ?, ?)",
            (session_id, self._redact(title), model, self._redact(goal), now, now),
        )
        return self.session(session_id)

    def session(self, session_id: str) -> StoredSession:
        """One session by its id."""
        row = self._db.row(f"{_SESSION_ROWS} WHERE s.id = ?", (session_id,))
        if row is None:
            raise LookupError(f"There is no session {session_id}.")
        return StoredSession(**dict(row))

    def sessions(self, limit: int = 50) -> list[StoredSession]:
        """The sessions last used, newest first."""
        found = self._db.rows(f"{_SESSION_ROWS} ORDER BY s.last_at DESC, s.id DESC LIMIT ?", (limit,))
        return [StoredSession(**dict(row)) for row in found]

    def latest_session(self) -> StoredSession | None:
        """The session last used in which something was said, else the last one, else ``None``."""
        row = self._db.row(f"{_SESSION_ROWS} ORDER BY messages > 0 DESC, s.last_at DESC, s.id DESC LIMIT 1")
        return None if row is None else StoredSession(**dict(row))

    def _set(self, session_id: str, assignment: str, *values: Any) -> None:
        if not self._db.execute(f"UPDATE sessions SET {assignment} WHERE id = ?", (*values, session_id)):
            raise LookupError(f"There is no session {session_id}.")

    def set_goal(self, session_id: str, goal: str) -> None:
        """Sets the session's goal."""
        self._set(session_id, "goal = ?", self._redact(goal))

    def set_title(self, session_id: str, title: str) -> None:
        """Sets the session's title."""
        self._set(session_id, "title = ?", self._redact(title))

    def set_model(self, session_id: str, model: str) -> None:
        """Sets the name of the model that answers in the session."""
        self._set(session_id, "model = ?", model)

    def end_session(self, session_id: str) -> None:
        """Marks the session as left in an orderly way. Going on in it is allowed and takes the mark off."""
        self._set(session_id, "ended_at = ?", self._clock())

    def delete_session(self, session_id: str) -> None:
        """Removes a session with all its messages, records, state and index entries (see :meth:`mask` on traces)."""
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM drafts WHERE session_id = ?", (session_id,))
            connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
            self._index.wipe()

    def unextracted_sessions(self, exclude: Collection[str] = ()) -> list[StoredSession]:
        """Sessions in which the user has said something that extraction has not seen, oldest first."""
        found = self._db.rows(
            f"{_SESSION_ROWS} WHERE EXISTS (SELECT 1 FROM messages m WHERE m.session_id = s.id AND m.role = 'user' "
            "AND m.seq > s.extracted_seq) ORDER BY s.last_at, s.id"
        )
        return [StoredSession(**dict(row)) for row in found if row["id"] not in exclude]

    def unextracted_count(self, session_id: str) -> int:
        """How many messages of the user in a session extraction has not seen."""
        row = self._db.row(
            "SELECT count(*) AS n FROM messages m JOIN sessions s ON s.id = m.session_id WHERE s.id = ? "
            "AND m.role = 'user' AND m.seq > s.extracted_seq",
            (session_id,),
        )
        return int(row["n"]) if row is not None else 0

    def mark_extracted(self, session_id: str, up_to_seq: int | None = None) -> None:
        """Remembers that extraction has seen the session up to message ``up_to_seq`` (its last one by default)."""
        last = "coalesce((SELECT max(seq) FROM messages WHERE session_id = sessions.id), 0)"
        self._set(session_id, f"extracted_seq = max(extracted_seq, coalesce(?, {last}))", up_to_seq)

    # --- messages ---------------------------------------------------------------------------------

    def append(
        self,
        session_id: str,
        role: str,
        content: str,
        *,
        thinking: str = "",
        tool_calls: Sequence[Mapping[str, Any]] = (),
        tool_name: str = "",
        status: str = "complete",
        meta: Mapping[str, Any] | None = None,
        created_at: str | None = None,
    ) -> StoredMessage:
        """Adds a message at the end of a session; when this returns, it is on disk."""
        if role not in ROLES:
            raise ValueError(f"{role!r} is no role of a message; known: {', '.join(sorted(ROLES))}.")
        _check_status(status)
        message_id, now = new_id(), created_at or self._clock()
        values = (self._redact(content), self._redact(thinking), self._clean_json(list(tool_calls)))
        meta_json = self._clean_json(dict(meta or {}))
        with self._db.transaction() as connection:
            self._set(session_id, "last_at = max(last_at, ?), ended_at = NULL", now)
            connection.execute(
                "INSERT INTO messages(id, session_id, seq, role, content, thinking, tool_calls, tool_name, status, "
                "meta, created_at) SELECT ?, ?, coalesce(max(seq), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ? FROM messages "
                "WHERE session_id = ?",
                (message_id, session_id, role, *values, tool_name, status, meta_json, now, session_id),
            )
            return self.message(message_id)

    def said(self, session_id: str, text: str, *, goal_of: Callable[[str], str] | None = None) -> StoredMessage:
        """Adds what the user has just sent, to the session and to the composer's history: the disk is waited for once.

        With ``goal_of`` that gives the session its goal, and its title where it has none, in the same write; it is
        called with the text as it is stored.
        """
        with self._db.transaction() as connection:
            row = self.append(session_id, "user", text)
            self._add_prompt(row.content)  # as it was cleaned; to look for secrets twice is felt
            if goal_of is not None and (goal := goal_of(row.content)):
                connection.execute(
                    "UPDATE sessions SET goal = ?, title = CASE title WHEN '' THEN ? ELSE title END WHERE id = ?",
                    (self._redact(goal), self._redact(goal[:_TITLE_CHARS]), session_id),
                )
            return row

    def begin_answer(self, session_id: str) -> str:
        """The id of a new, empty answer that counts as partial until :meth:`finish_answer`."""
        return self.append(session_id, "assistant", "", status="partial").id

    def extend_answer(self, message_id: str, content: str, thinking: str = "") -> None:
        """Writes what an answer holds so far (all of it, not the new part), so that a crash loses little."""
        self._update(
            message_id, "content = ?, thinking = ?, indexed = 0", self._redact(content), self._redact(thinking)
        )

    def finish_answer(
        self,
        message_id: str,
        content: str,
        thinking: str = "",
        tool_calls: Sequence[Mapping[str, Any]] = (),
        status: str = "complete",
        meta: Mapping[str, Any] | None = None,
    ) -> StoredMessage:
        """Writes the final text of an answer and how it ended."""
        _check_status(status)
        self._update(
            message_id,
            "content = ?, thinking = ?, tool_calls = ?, status = ?, meta = ?, indexed = 0",
            self._redact(content),
            self._redact(thinking),
            self._clean_json(list(tool_calls)),
            status,
            self._clean_json(dict(meta or {})),
        )
        return self.message(message_id)

    def set_meta(self, message_id: str, **values: Any) -> None:
        """Adds values of plain JSON data to a message's ``meta``."""
        with self._db.transaction():
            merged = {**self.message(message_id).meta, **values}
            self._update(message_id, "meta = ?", self._clean_json(merged))

    def _update(self, message_id: str, assignment: str, *values: Any) -> None:
        changed = self._db.execute(f"UPDATE messages SET {assignment} WHERE id = ?", (*values, message_id))
        if not changed:
            raise LookupError(f"There is no message {message_id}.")

    def message(self, message_id: str) -> StoredMessage:
        """One message by its id."""
        row = self._db.row("SELECT * FROM messages WHERE id = ?", (message_id,))
        if row is None:
            raise LookupError(f"There is no message {message_id}.")
        return _message(row)

    def messages(self, session_id: str) -> list[StoredMessage]:
        """All messages of a session in order."""
        found = self._db.rows("SELECT * FROM messages WHERE session_id = ? ORDER BY seq", (session_id,))
        return [_message(row) for row in found]

    # --- search -----------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        session_id: str | None = None,
        limit: int = SEARCH_LIMIT,
        role: str | None = None,
        exclude: Collection[str] = (),
    ) -> list[StoredMessage]:
        """Messages that match ``query``, best first: by words, their parts, their stems, or literally.

        Case and diacritics do not matter; every character of the query is literal. One word that holds more than
        letters and digits (``50%``, ``get_by_id``) gives only messages that hold it as it is, when there are any.
        Without ``role`` the messages of user and assistant are searched. ``exclude`` are ids of messages to leave out.
        """
        roles = SEARCHED_ROLES if role is None else (role.strip().lower(),)
        found = self._index.search(query, roles=roles, session_id=session_id, exclude=exclude, limit=limit)
        return [_message(row) for row in found]

    def search_history_text(
        self,
        query: str,
        limit: int = SEARCH_LIMIT,
        role: str | None = None,
        session_id: str | None = None,
        *,
        exclude: Collection[str] = (),
    ) -> str:
        """The answer of the ``search_history`` tool; ``limit`` is clamped to 1..50, long messages are cut at 500."""
        limit = min(max(1, limit), SEARCH_MOST)
        found = self.search(query, session_id=session_id, limit=limit, role=role, exclude=exclude)
        return self.found_text(query, found)

    @staticmethod
    def found_text(query: str, found: Sequence[StoredMessage]) -> str:
        """Found messages as the ``search_history`` tool prints them."""
        if not found:
            return f"No messages found matching '{query}'"
        blocks = []
        for message in found:
            content = message.content
            if len(content) > SEARCH_CHARACTERS:
                content = content[:SEARCH_CHARACTERS] + "..."
            when = parse_utc(message.created_at).strftime("%Y-%m-%d %H:%M")
            blocks.append(f"[{when}] {message.role.capitalize()}: {content}")
        return f"Found {len(found)} message(s):\n\n" + "\n\n".join(blocks)

    def rebuild_index(self) -> int:
        """Throws the full-text index away and makes it anew; returns the number of messages."""
        return self._index.rebuild()

    # --- deletion ---------------------------------------------------------------------------------

    def mask(self, spans: Iterable[str], replacement: str = MASK) -> int:
        """Replaces each of ``spans`` in every text of every session, in any case and with any white space between its
        words, and takes them out of the index. Returns the number of rows changed.

        Traces stay in free pages and the write-ahead log until :meth:`Database.vacuum`.
        """
        pattern = span_pattern(spans)
        if pattern is None:
            return 0

        def masked(text: str, _key: str = "") -> str:
            return pattern.sub(lambda _: replacement, text)

        changed = 0
        with self._db.transaction() as connection:
            for table, key, plain, encoded in TEXT_COLUMNS:
                columns = (*plain, *encoded)
                for row in connection.execute(f"SELECT {key}, {', '.join(columns)} FROM {table}").fetchall():
                    new = [masked(row[name]) for name in plain]
                    new += [to_json(map_strings(json.loads(row[name]), masked)) for name in encoded]
                    if new != [row[name] for name in columns]:
                        assignments = ", ".join(f"{name} = ?" for name in columns)
                        stale = ", indexed = 0" if table == "messages" else ""
                        connection.execute(f"UPDATE {table} SET {assignments}{stale} WHERE {key} = ?", (*new, row[0]))
                        changed += 1
            if changed:
                self._index.update()
                self._index.wipe()
        return changed


def _check_status(status: str) -> None:
    if status not in STATUSES:
        raise ValueError(f"{status!r} is no status of a message; known: {', '.join(sorted(STATUSES))}.")
