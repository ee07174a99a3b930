"""Reads the surroundings of what a search found: put-away items and messages with their neighbours, as passages.

The stores keep the stems of every text beside their full-text index, so nothing is stemmed again here.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from tui_agent.memory.database import Database
from tui_agent.memory.history import SEARCHED_ROLES
from tui_agent.memory.history_index import MessageIndex
from tui_agent.memory.ranking import Passage
from tui_agent.memory.text import fts_any, fts_terms, stems
from tui_agent.memory.types import Vector

_CANDIDATES = 250  # messages taken from the full-text index
_MOST_ROWS = 6000  # rows that it may have to score: common words are left out of a question that has rarer ones
_KEPT = 2000  # items whose terms stay in memory
_HEAD = 200  # characters of a neighbour that are read; enough for the name in front of it


@dataclass(frozen=True, slots=True)
class Found:
    """A passage with what the stores know of it. ``put_away_step`` and ``cold`` only mean something for items."""

    passage: Passage
    kind: str
    source: str
    put_away_step: int = 0


@dataclass(frozen=True, slots=True)
class _Item:
    """What of a put-away item changes only with its text, whose ``digest`` is kept: the beginning, the terms counted,
    and its vectors by the number of their embedder."""

    digest: bytes
    head: str
    stems: Mapping[str, int]
    vectors: dict[int, Vector]


class PassageReader:
    """Reads passages out of one database. Synchronous; coroutines call it through ``await db.run(…)``."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._index = MessageIndex(db)
        self._items: dict[int, _Item] = {}

    # --- put-away items ---------------------------------------------------------------------------

    def items(self, scope: str, numbers: Sequence[int], vector: Vector | None, identity: str) -> list[Found]:
        """Cold items by number, with those put in right before and after them."""
        around = sorted({number + step for number in numbers for step in (-1, 0, 1)})
        embedder = int(self._db.value("SELECT number FROM wm_embedders WHERE identity = ?", (identity,)) or 0)
        rows: list[sqlite3.Row] = []
        for part in _parts(around):
            rows += self._db.rows(
                "SELECT number, digest, id, session_id, kind, source, created_at, put_away_step FROM wm_items "
                f"WHERE scope = ? AND zone = 'cold' AND number IN ({_marks(part)})",
                (scope, *part),
            )
        kept = self._kept({row[0]: row[1] for row in rows}, embedder)
        found = []
        for number, _, item_id, session_id, kind, source, created_at, step in rows:
            if (item := kept.get(number)) is None:
                continue  # its words are not indexed yet
            near = item.vectors.get(embedder)
            fits = near is not None and vector is not None and len(near) == len(vector)
            cosine = float(near @ vector) if fits else None  # type: ignore[operator]
            passage = Passage(item_id, item.head, item.stems, session_id, number, created_at, cosine)
            found.append(Found(passage, kind, source, step))
        return found

    def _kept(self, digests: Mapping[int, bytes], embedder: int) -> dict[int, _Item]:
        """Beginnings, terms and vectors of items, whose texts are those of ``digests``; most were read before."""
        known = self._items
        for number, digest in digests.items():
            if number in known and known[number].digest != digest:
                del known[number]
        for part in _parts([number for number in digests if number not in known]):
            for number, head, of_head, stems_kept in self._db.rows(
                "SELECT i.number, substr(i.text, 1, ?), t.head, t.body FROM wm_items i "
                f"JOIN wm_terms t ON t.rowid = i.number WHERE i.number IN ({_marks(part)})",
                (_HEAD, *part),
            ):
                known[number] = _Item(digests[number], head, Counter(f"{of_head} {stems_kept}".split()), {})
        for part in _parts([n for n in digests if n in known and embedder not in known[n].vectors]):
            for number, blob in self._db.rows(
                f"SELECT item, vector FROM wm_vectors WHERE embedder = ? AND item IN ({_marks(part)})",
                (embedder, *part),
            ):
                known[number].vectors[embedder] = np.frombuffer(blob, dtype="<f4")
        asked = {number: known.pop(number) for number in digests if number in known}
        known.update(asked)  # the last asked for stay longest
        for number in list(islice(known, max(0, len(known) - _KEPT))):
            del known[number]
        return asked

    def texts(self, scope: str, ids: Sequence[str]) -> dict[str, str]:
        """Whole texts of cold items by id."""
        found: dict[str, str] = {}
        for part in _parts(list(ids)):
            sql = f"SELECT id, text FROM wm_items WHERE scope = ? AND zone = 'cold' AND id IN ({_marks(part)})"
            found.update((str(row["id"]), str(row["text"])) for row in self._db.rows(sql, (scope, *part)))
        return found

    # --- messages ---------------------------------------------------------------------------------

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
