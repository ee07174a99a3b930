"""What the program remembers of its own housekeeping, in the database it keeps house for."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from tui_agent.memory.database import Database, Migration


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE upkeep (name TEXT PRIMARY KEY, value TEXT NOT NULL)")


MIGRATIONS: tuple[Migration, ...] = (("001 notes", _create),)


class UpkeepNotes:
    """Named values of plain JSON data: when the last clean-up ran, which deletion is under way."""

    def __init__(self, db: Database) -> None:
        self._db = db
        db.migrate("upkeep", MIGRATIONS)

    def get(self, name: str, default: Any = None) -> Any:
        """The value of this name, or ``default``."""
        found = self._db.value("SELECT value FROM upkeep WHERE name = ?", (name,))
        return default if found is None else json.loads(found)

    def set(self, name: str, value: Any) -> None:
        """Keeps a value; ``None`` removes it."""
        if value is None:
            self._db.execute("DELETE FROM upkeep WHERE name = ?", (name,))
            return
        self._db.execute(
            "INSERT INTO upkeep VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
            (name, json.dumps(value, ensure_ascii=False)),
        )
