"""The texts of all that is remembered, normalised, to see whether something said is among them.

After every answer it is looked whether the user's statements are remembered. To normalise the texts of ten thousand
facts takes a second, so they are kept, and only what has changed is read again.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from tui_agent.memory.database import Database
from tui_agent.memory.text import normalise

_FEW = 500  # changes, up to which only what they name is read
_PIECE = 500

_ROWS = (
    "SELECT m.rowid AS n, m.id, m.fact, m.quote, m.target_line FROM memory m "
    "WHERE EXISTS (SELECT 1 FROM live_memory l WHERE l.id = m.id)"
)


class KnownTexts:
    """Texts, quotes and lines of the live facts. Synchronous; on the database's thread."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._of: dict[str, tuple[str, ...]] = {}
        self._counts: dict[str, int] = {}
        self._mark: tuple[int, int, int, str] | None = None
        self._after: int | None = 0  # the last row of the first reading; None when that is complete

    def begin(self) -> bool:
        """Reads a piece ahead; false when there is nothing left to read ahead."""
        with self._lock:
            if self._after is not None and self._mark is None:
                self._mark = self._look()
            return self._piece()

    def read(self) -> Collection[str]:
        """The texts as they are now; not to be changed, and good until the next call."""
        with self._lock:
            mark = self._look()
            last, self._mark = self._mark, mark
            # A last change that is gone was redacted or forgotten: then nothing is sure.
            if last is None or last[0] != mark[0] or not 0 <= mark[1] - last[1] <= _FEW:
                self._of, self._counts, self._after = {}, {}, 0
            while self._piece():
                pass
            if last is not None and last != mark:
                self._some(last)
            return self._counts.keys()

    def _look(self) -> tuple[int, int, int, str]:
        row = self._db.row(
            "SELECT (SELECT max(id) FROM changes), (SELECT max(rowid) FROM memory), "
            "(SELECT min(expires_at) FROM memory WHERE expires_at > datetime('now'))"
        )
        change, newest, end = tuple(row) if row is not None else (0, 0, "")
        return int(self._db.value("PRAGMA data_version") or 0), change or 0, newest or 0, end or ""

    def _piece(self) -> bool:
        if self._after is None:
            return False
        rows = self._db.rows(f"{_ROWS} AND m.rowid > ? ORDER BY m.rowid LIMIT {_PIECE}", (self._after,))
        for row in rows:
            self._drop(row["id"])
            self._put(row["id"], (row["fact"], row["quote"], row["target_line"]))
        self._after = rows[-1]["n"] if rows else None
        return bool(rows)

    def _some(self, last: tuple[int, int, int, str]) -> None:
        """What the log names since then, rows it does not know, and what has ended meanwhile."""
        touched = [
            row[0]
            for row in self._db.rows(
                "SELECT memory_id FROM changes WHERE id > ? UNION SELECT other_id FROM changes WHERE id > ? "
                "UNION SELECT id FROM memory WHERE rowid > ? "
                "UNION SELECT id FROM memory WHERE expires_at <= datetime('now') AND expires_at >= ?",
                (last[1], last[1], last[2], last[3] or "9999"),
            )
            if row[0]
        ]
        for start in range(0, len(touched), _PIECE):
            part = touched[start : start + _PIECE]
            for ref in part:
                self._drop(ref)
            for row in self._db.rows(f"{_ROWS} AND m.id IN ({', '.join('?' * len(part))})", tuple(part)):
                self._put(row["id"], (row["fact"], row["quote"], row["target_line"]))

    def _put(self, ref: str, texts: tuple[str, ...]) -> None:
        normal = tuple(dict.fromkeys(normalise(text) for text in texts if text))
        self._of[ref] = normal
        for text in normal:
            self._counts[text] = self._counts.get(text, 0) + 1

    def _drop(self, ref: str) -> None:
        for text in self._of.pop(ref, ()):
            self._counts[text] -= 1
            if not self._counts[text]:
                del self._counts[text]
