"""What must not be recalled for a topic, because the user said so: an item, and the words of the question it came up
for. A later question about the same leaves the item out, and the explanation says why."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tui_agent.memory.database import Database
from tui_agent.memory.records import Redact
from tui_agent.memory.text import content_words, new_id, stems, utc_now

ROOM = "topics"
_MOST_WORDS = 24
_COUNTED = 5
_SHARE = 0.6


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE topics(id TEXT PRIMARY KEY, ref TEXT NOT NULL, question TEXT NOT NULL, words TEXT NOT NULL, "
        "created_at TEXT NOT NULL)"
    )
    connection.execute("CREATE INDEX topics_ref ON topics(ref)")


@dataclass(frozen=True, slots=True)
class Topic:
    """``ref`` (``fact:ID``, ``cold:ID``, ``file:NAME``) is not recalled for questions like ``question``."""

    id: str
    ref: str
    question: str
    words: tuple[str, ...]
    created_at: str

    def covers(self, said: Collection[str]) -> bool:
        """Whether a question with these stems is about the topic: most of its first words are met, in any inflected
        form; of a long question three are enough."""
        met = sum(any(stem in said for stem in stems(word)) for word in self.words)
        return met >= max(1, math.ceil(_SHARE * min(len(self.words), _COUNTED)))


class Topics:
    """All of a project's. Methods that name an unknown id raise ``LookupError``."""

    def __init__(self, db: Database, redact: Redact = str, clock: Callable[[], str] = utc_now) -> None:
        db.migrate(ROOM, (("001 topics", _create),))
        self._db = db
        self._redact = redact
        self._clock = clock

    def add(self, ref: str, question: str) -> Topic:
        """Keeps that ``ref`` is not for questions like this one. The same again changes nothing.

        Raises ``ValueError`` for a question without a word that names a topic.
        """
        question = " ".join(self._redact(question).split())
        words = list(dict.fromkeys(content_words(question)))[:_MOST_WORDS]
        if not words:
            raise ValueError("The question has no word that names a topic.")
        with self._db.transaction():
            same = next((topic for topic in self.of(ref) if list(topic.words) == words), None)
            if same is not None:
                return same
            topic = Topic(new_id(), ref, question, tuple(words), self._clock())
            self._db.execute(
                "INSERT INTO topics VALUES (?, ?, ?, ?, ?)",
                (topic.id, ref, question, json.dumps(words, ensure_ascii=False), topic.created_at),
            )
        return topic

    def remove(self, topic_id: str) -> Topic:
        """Lets the item be recalled again."""
        topic = next((topic for topic in self.all() if topic.id == topic_id), None)
        if topic is None:
            raise LookupError(f"There is no topic {topic_id}.")
        self._db.execute("DELETE FROM topics WHERE id = ?", (topic_id,))
        return topic

    def all(self) -> list[Topic]:
        """All of them, newest first."""
        return _topics(self._db.rows("SELECT * FROM topics ORDER BY created_at DESC, id DESC"))

    def of(self, ref: str) -> list[Topic]:
        """Those of one item, newest first."""
        return _topics(self._db.rows("SELECT * FROM topics WHERE ref = ? ORDER BY created_at DESC, id DESC", (ref,)))

    def hidden(self, question: str) -> frozenset[str]:
        """The references that must not be recalled for ``question``."""
        topics = self.all()
        if not topics:
            return frozenset()
        said = frozenset(stems(question))
        return frozenset(topic.ref for topic in topics if topic.covers(said))

    def forget(self, ids: Collection[str], speaks_of: Callable[[str], bool]) -> int:
        """Removes what belongs to facts that are deleted for good, and questions that hold what is deleted."""
        gone = {f"fact:{fact_id}" for fact_id in ids}
        doomed = [topic.id for topic in self.all() if topic.ref in gone or speaks_of(topic.question)]
        for topic_id in doomed:
            self._db.execute("DELETE FROM topics WHERE id = ?", (topic_id,))
        return len(doomed)


def _topics(rows: Sequence[sqlite3.Row]) -> list[Topic]:
    return [
        Topic(row["id"], row["ref"], row["question"], tuple(json.loads(row["words"])), row["created_at"])
        for row in rows
    ]
