"""What is kept beside the messages of a session: what was sent, what was recalled, drafts, prompts and state."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tui_agent.memory.database import Database
from tui_agent.memory.text import utc_now
from tui_agent.memory.types import RecalledItem, RecallRecord, Term

Redact = Callable[[str], str]
MASK = "[deleted]"
_PROMPTS_KEPT = 500
_LONGEST_KEYED_VALUE = 256
_CLEAN_KEPT = 4096
# Keys that say nothing about whether their value is a secret.
_TELLING_NOTHING = {
    *("content", "fact", "id", "kind", "label", "name", "note", "path", "query", "quote", "role", "source", "status"),
    *("store", "summary", "target", "text", "type"),
}
_T = TypeVar("_T")


# --- JSON that is safe to write -------------------------------------------------------------------


def map_strings(data: Any, change: Callable[[str, str], str], key: str = "") -> Any:
    """A copy of plain JSON data with every string value replaced by ``change(value, nearest key)``."""
    if isinstance(data, str):
        return change(data, key)
    if isinstance(data, Mapping):
        return {str(name): map_strings(value, change, str(name)) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [map_strings(value, change, key) for value in data]
    return data


def redacted(data: Any, redact: Redact) -> Any:
    """A copy of plain JSON data with each string value redacted.

    A short value is also looked at together with its key: in ``{"password": "…"}`` only the key gives it away.
    """

    def change(value: str, key: str) -> str:
        cleaned = redact(value)
        if key and key not in _TELLING_NOTHING and cleaned == value and value and len(value) <= _LONGEST_KEYED_VALUE:
            prefix = f"{key}: "
            in_context = redact(prefix + value)
            if in_context != prefix + value:
                return in_context[len(prefix) :] if in_context.startswith(prefix) else in_context
        return cleaned

    return map_strings(data, change)


class RememberedRedact:
    """A redaction that is not run again on texts it has just found clean: a message is written as message, as sent and
    in the state of the session. Texts with a finding are never kept."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact
        self._clean: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> str:
        with self._lock:
            if text in self._clean:
                return text
        cleaned = self._redact(text)
        if cleaned == text:
            with self._lock:
                self._clean[text] = None
                if len(self._clean) > _CLEAN_KEPT:
                    self._clean.popitem(last=False)
        return cleaned


def to_json(data: Any) -> str:
    """JSON as the stores write it: letters as they are, numbers of numpy as numbers."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


def record_to_json(record: RecallRecord) -> dict[str, Any]:
    """A recall record as plain JSON data; :func:`record_from_json` is its inverse."""
    data: dict[str, Any] = json.loads(to_json(dataclasses.asdict(record)))
    return data


def record_from_json(data: Mapping[str, Any]) -> RecallRecord:
    """The recall record of :func:`record_to_json`. Fields of a later version are passed over."""

    def items(name: str) -> tuple[RecalledItem, ...]:
        return tuple(
            _build(RecalledItem, {**item, "terms": tuple(_build(Term, term) for term in item.get("terms", ()))})
            for item in data.get(name, ())
        )

    return _build(
        RecallRecord,
        {**data, "items": items("items"), "near": items("near"), "channels": tuple(data.get("channels", ()))},
    )


def _build(kind: type[_T], data: Mapping[str, Any]) -> _T:
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in data.items() if name in known})


def span_pattern(spans: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for any of ``spans`` with any white space between their words and in any case; ``None`` for no span.

    Longer spans come first, so that a short one inside them leaves no rest.
    """
    worded = sorted({" ".join(span.split()) for span in spans} - {""}, key=len, reverse=True)
    if not worded:
        return None
    return re.compile("|".join(r"\s+".join(map(re.escape, span.split(" "))) for span in worded), re.IGNORECASE)


# --- the records ----------------------------------------------------------------------------------

# Where text of a session lives: table, its key, plain columns, JSON columns. ``mask`` and the tests go by this list.
TEXT_COLUMNS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("messages", "n", ("content", "thinking"), ("tool_calls", "meta")),
    ("sessions", "rowid", ("title", "goal"), ()),
    ("wire_log", "n", (), ("message",)),
    ("recalls", "rowid", (), ("record",)),
    ("drafts", "rowid", ("text",), ()),
    ("prompts", "n", ("text",), ()),
    ("session_state", "rowid", (), ("value",)),
)


class SessionRecords:
    """The records of all sessions of a project. Everything passes ``redact`` before it is written."""

    def __init__(self, db: Database, redact: Redact | None = None, clock: Callable[[], str] = utc_now) -> None:
        self._db = db
        self._redact: Redact = str if redact is None else RememberedRedact(redact)
        self._clock = clock

    def _clean_json(self, data: Any) -> str:
        # Through JSON first, so that what is redacted is what is written.
        return to_json(redacted(json.loads(to_json(data)), self._redact))

    # --- what was sent ----------------------------------------------------------------------------

    def epoch(self, session_id: str) -> int:
        """The number of the session's present prompt prefix; 0 at first."""
        return int(self._db.value("SELECT epoch FROM sessions WHERE id = ?", (session_id,)) or 0)

    def new_epoch(self, session_id: str) -> int:
        """Begins a new prompt prefix and returns its number. The log of the earlier ones stays."""
        with self._db.transaction() as connection:
            connection.execute("UPDATE sessions SET epoch = epoch + 1 WHERE id = ?", (session_id,))
            return self.epoch(session_id)

    def wire_append(self, session_id: str, epoch: int, messages: Sequence[Mapping[str, Any]]) -> None:
        """Adds messages, as they were sent or received, to the log; they are never changed afterwards."""
        self.wire_write(session_id, epoch, self.wire_rows(messages))

    def wire_rows(self, messages: Sequence[Mapping[str, Any]]) -> list[str]:
        """Messages as :meth:`wire_write` takes them: JSON without secrets."""
        return [self._clean_json(message) for message in messages]

    def wire_write(self, session_id: str, epoch: int, rows: Sequence[str], *, synced: bool = True) -> None:
        """Writes prepared rows of the log. Without ``synced`` they outlive this program, and a power cut as soon as
        anything else has been written: the answer that follows."""
        now = self._clock()
        with self._db.transaction(synced=synced) as connection:
            connection.executemany(
                "INSERT INTO wire_log(session_id, epoch, message, created_at) VALUES (?, ?, ?, ?)",
                [(session_id, epoch, row, now) for row in rows],
            )

    def wire_log(self, session_id: str, epoch: int | None = None) -> list[tuple[int, dict[str, Any]]]:
        """``(epoch, message)`` of everything sent in a session (or in one epoch of it), oldest first."""
        found = self._db.rows(
            "SELECT epoch, message FROM wire_log WHERE session_id = ? AND (? IS NULL OR epoch = ?) ORDER BY n",
            (session_id, epoch, epoch),
        )
        return [(int(row["epoch"]), json.loads(row["message"])) for row in found]

    # --- what was recalled ------------------------------------------------------------------------

    def save_recall(self, message_id: str, record: RecallRecord) -> None:
        """Keeps what fed an answer; saving again replaces it. Later changes of the facts do not touch it."""
        self._db.execute(
            "INSERT INTO recalls(message_id, record) VALUES (?, ?) "
            "ON CONFLICT(message_id) DO UPDATE SET record = excluded.record",
            (message_id, self._clean_json(record_to_json(record))),
        )

    def recall(self, message_id: str) -> RecallRecord | None:
        """What fed an answer, or ``None`` when nothing was kept."""
        record = self._db.value("SELECT record FROM recalls WHERE message_id = ?", (message_id,))
        return None if record is None else record_from_json(json.loads(record))

    def recalls(self, session_id: str, *, newest: int | None = None) -> dict[str, RecallRecord]:
        """What fed each answer of a session, by message id and in order; with ``newest`` only of the last answers."""
        found = self._db.rows(
            "SELECT r.message_id, r.record FROM messages m JOIN recalls r ON r.message_id = m.id "
            "WHERE m.session_id = ? ORDER BY m.seq DESC LIMIT ?",
            (session_id, -1 if newest is None else newest),
        )
        return {str(row["message_id"]): record_from_json(json.loads(row["record"])) for row in reversed(found)}

    def recalls_of(self, session_id: str, item_id: str) -> Iterator[RecallRecord]:
        """The records of a session that name an item, newest first; the database looks for its id."""
        found = self._db.rows(
            "SELECT r.record FROM messages m JOIN recalls r ON r.message_id = m.id "
            "WHERE m.session_id = ? AND instr(r.record, ?) > 0 ORDER BY m.seq DESC LIMIT 20",
            (session_id, f'"id":"{item_id}"'),
        )
        return (record_from_json(json.loads(row["record"])) for row in found)

    # --- drafts and prompts -----------------------------------------------------------------------

    def save_draft(self, session_id: str | None, text: str) -> None:
        """Keeps the unsent text of a session (``None``: of no session yet); an empty text removes it."""
        with self._db.transaction() as connection:
            connection.execute("DELETE FROM drafts WHERE session_id = ?", (session_id or "",))
            if text:
                connection.execute("INSERT INTO drafts VALUES (?, ?)", (session_id or "", self._redact(text)))

    def load_draft(self, session_id: str | None) -> str:
        """The unsent text of a session, or an empty string."""
        return str(self._db.value("SELECT text FROM drafts WHERE session_id = ?", (session_id or "",)) or "")

    def add_prompt(self, text: str) -> None:
        """Adds a sent text to the history of the composer. A repeat of the last one is not added again."""
        self._add_prompt(self._redact(text))

    def _add_prompt(self, cleaned: str) -> None:
        if not cleaned.strip():
            return
        with self._db.transaction() as connection:
            if self._db.value("SELECT text FROM prompts ORDER BY n DESC LIMIT 1") == cleaned:
                return
            connection.execute("INSERT INTO prompts(text) VALUES (?)", (cleaned,))
            connection.execute(
                "DELETE FROM prompts WHERE n <= (SELECT n FROM prompts ORDER BY n DESC LIMIT 1 OFFSET ?)",
                (_PROMPTS_KEPT,),
            )

    def prompt_history(self, limit: int = _PROMPTS_KEPT) -> list[str]:
        """The last sent texts of the project, oldest first."""
        found = self._db.rows("SELECT text FROM prompts ORDER BY n DESC LIMIT ?", (limit,))
        return [str(row["text"]) for row in reversed(found)]

    # --- state ------------------------------------------------------------------------------------

    def save_state(self, session_id: str, key: str, value: Any) -> None:
        """Keeps a value of plain JSON data under a name of the session (working memory, todos, …)."""
        self._db.execute(
            "INSERT INTO session_state(session_id, key, value) VALUES (?, ?, ?) "
            "ON CONFLICT(session_id, key) DO UPDATE SET value = excluded.value",
            (session_id, key, self._clean_json(value)),
        )

    def load_state(self, session_id: str, key: str, default: Any = None) -> Any:
        """The value kept under a name of the session, or ``default``."""
        found = self._db.row("SELECT value FROM session_state WHERE session_id = ? AND key = ?", (session_id, key))
        return default if found is None else json.loads(found["value"])
