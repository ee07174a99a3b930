"""Reads the surroundings of what a search found in past messages: each with its neighbours, as passages.

The store keeps the stems of every text beside its full-text index, so nothing is stemmed again here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tui_agent.memory.database import Database
from tui_agent.memory.history import SEARCHED_ROLES
from tui_agent.memory.history_index import MessageIndex
from tui_agent.memory.ranking import Passage
from tui_agent.memory.text import fts_any, fts_terms, stems

_CANDIDATES = 250  # messages taken from the full-text index
_MOST_ROWS = 6000  # rows that it may have to score: common words are left out of a question that has rarer ones


@dataclass(frozen=True, slots=True)
class Found:
    """A passage with what the store knows of it."""

    passage: Passage
    kind: str
    source: str


class PassageReader:
    """Reads passages out of one database. Synchronous; coroutines call it through ``await db.run(…)``."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._index = MessageIndex(db)

    def messages(self, query: str, *, session_id: str | None = None, without_session: str = "") -> list[Found]:
        """Messages of user and assistant that share words with ``query``, with those before and after them.

        Only ``session_id`` when it is named; never those of ``without_session`` (what is in the window already).
        """
        self._index.update()
        expression = self._expression(query)
        if not expression:
            return []
        where = f"m.role IN ({_marks(SEARCHED_ROLES)}) AND m.session_id <> ?"
        values: list[str] = [*SEARCHED_ROLES, without_session]
        if session_id is not None:
            where += " AND m.session_id = ?"
            values.append(session_id)
        rows = self._db.rows(
            "SELECT m.n FROM message_index i JOIN messages m ON m.n = i.rowid "
            f"WHERE message_index MATCH ? AND {where} ORDER BY bm25(message_index, 2.0, 1.0) LIMIT ?",
            (expression, *values, _CANDIDATES),
        )
        around = sorted({int(row[0]) + step for row in rows for step in (-1, 0, 1)})
        found = []
        for part in _parts(around):
            rows = self._db.rows(
                "SELECT m.id, m.session_id, m.seq, m.role, m.content, m.created_at, i.words, i.stems "
                "FROM messages m JOIN message_index i ON i.rowid = m.n "
                f"WHERE {where} AND m.n IN ({_marks(part)})",
                (*values, *part),
            )
            for row in rows:
                passage = Passage(
                    str(row["id"]), str(row["content"]), _counted(str(row["stems"]), str(row["words"])),
                    str(row["session_id"]), int(row["seq"]), str(row["created_at"]),
                )  # fmt: skip
                found.append(Found(passage, str(row["role"]), f"session {str(row['session_id'])[-6:]}"))
        return found

    def _expression(self, query: str) -> str:
        """A full-text query of the rarest words, so that two very common ones cannot make it slow."""
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.message_words USING fts5vocab('main', 'message_index', 'col')"
        )
        asked = [("words", term) for term in fts_terms(query)]
        asked += [("stems", stem) for stem in dict.fromkeys(stems(query))]
        counted = []
        for column, term in asked:
            # The index cuts an identifier in pieces, which it does not know as a whole: it is rare.
            sql = "SELECT doc FROM temp.message_words WHERE term = ? AND col = ?"
            counted.append((int(self._db.value(sql, (term, column)) or 0), column, term))
        taken: dict[str, list[str]] = {"words": [], "stems": []}
        rows = 0
        for count, column, term in sorted(counted):
            if rows and rows + count > _MOST_ROWS:
                break
            rows += count
            taken[column].append(term)
        return " OR ".join(fts_any(terms, column) for column, terms in taken.items() if terms)


@lru_cache(maxsize=2048)
def _counted(stems_kept: str, words_kept: str) -> Mapping[str, int]:
    """Terms of a text as its store keeps them, counted: stems, and of its words those that are names or paths."""
    counted = Counter(stems_kept.split())
    counted.update(word for word in words_kept.split() if not word.isalnum())
    return counted


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _parts(values: Sequence[object], size: int = 500) -> Iterable[Sequence[object]]:
    return (values[start : start + size] for start in range(0, len(values), size))
