"""The fact store: what is known for long, with where it is from, until when it holds and what it replaced.

The table and the view are those of a plain SQL memory with expiry dates and supersede chains. A row is never changed in
what it says: a correction is a new row that the old one points to. Everything here is one transaction per call.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from tui_agent.memory.changes import Step
from tui_agent.memory.exchange import export_tier2
from tui_agent.memory.facts_read import FactReader
from tui_agent.memory.facts_schema import PRUNE_EXPIRED, PRUNE_SUPERSEDED, PRUNE_SUPERSEDED_SINCE, fact_key, subject_key
from tui_agent.memory.quarantine import QuarantineShelf
from tui_agent.memory.text import format_utc, new_id, parse_utc
from tui_agent.memory.types import Fact, NewFact, Scope

__all__ = ["FactStore", "Pruned", "Recorded", "Undone", "fact_key", "subject_key"]

CHANGE_LOG_DAYS = 730


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a statement: the row that says it now, the rows it replaced, and whether it was there before."""

    fact: Fact
    superseded: tuple[Fact, ...] = ()
    touched: bool = False


@dataclass(frozen=True, slots=True)
class Undone:
    """What was taken back, in words; the row that is gone and those that are live again or have their old values."""

    description: str
    event: str
    removed: Fact | None = None
    restored: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Pruned:
    """The rows a prune removed: by their expiry, by the age of what was superseded, and those that went with them."""

    expired: tuple[Fact, ...] = ()
    superseded: tuple[Fact, ...] = ()
    cascaded: tuple[Fact, ...] = ()
    changes: int = 0

    @property
    def total(self) -> int:
        """The number of rows removed."""
        return len(self.expired) + len(self.superseded) + len(self.cascaded)


class FactStore(QuarantineShelf, FactReader):
    """The facts of a project (or of the user) over one database.

    It checks that a row can exist (text, source, times) and keeps chains and log right; whether something may be
    remembered is decided by the gate. A method that names a fact that does not exist raises ``LookupError``; one that
    makes no sense for its state raises ``ValueError`` with the reason.
    """

    # --- new facts --------------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[Any]:
        """Everything inside is written together or not at all."""
        return self._db.transaction()

    def add(self, new: NewFact) -> Fact:
        """A new live row. Raises ``ValueError`` without a text or a source, or for a time that is none.

        A statement that is made anew is no longer one that was deleted: its tombstone is lifted, so whoever must not
        bring deleted things back asks :meth:`is_tombstoned` before.
        """
        with self._db.transaction():
            fact = self._insert(new)
            self._log.add(fact.id, "add", new=fact.fact, before={})
        return fact

    def supersede(self, old_id: str, new: NewFact) -> Fact:
        """A new row that replaces ``old_id`` (or what has replaced that since), which stays in the chain."""
        with self._db.transaction():
            return self._supersede([self._head(old_id)], new)

    def supersede_many(self, old_ids: Sequence[str], new: NewFact) -> Fact:
        """A new row that replaces several current ones at once; one undo brings all of them back.

        Raises ``LookupError`` when one is gone and ``ValueError`` when one was replaced meanwhile.
        """
        if not old_ids:
            raise ValueError("Nothing was named to be replaced.")
        with self._db.transaction():
            old = [self._need(each) for each in dict.fromkeys(old_ids)]
            for fact in old:
                if fact.superseded_by is not None:
                    raise ValueError(f"“{fact.fact}” was replaced by a newer one.")
            return self._supersede(old, new)

    def record(self, new: NewFact) -> Recorded:
        """The rule for a statement about a subject: the same words as the live row about it only touch it, other words
        supersede it, the newest wins. Without a subject, only the same words meet. Facts about other subjects are
        never touched, whatever words they share."""
        key = subject_key(new.subject_key or new.subject)
        with self._db.transaction():
            rivals = self.by_subject(key, new.scope) if key else []
            same = [fact for fact in rivals if fact_key(fact.fact) == fact_key(new.fact)]
            if not key and (known := self.by_text(new.fact, new.scope)) is not None:
                same = [known]
            if same:
                self.touch([same[0].id])
                return Recorded(self._need(same[0].id), touched=True)
            if rivals:
                return Recorded(self._supersede(rivals, new), tuple(self._need(fact.id) for fact in rivals))
            return Recorded(self.add(new))

    def _insert(self, new: NewFact) -> Fact:
        if not new.fact.strip():
            raise ValueError("A fact needs a text.")
        if not new.source.strip():
            raise ValueError("A fact needs a source: a message, file or command it can be traced to.")
        now = self._clock()
        fact_id, text = new_id(), unicodedata.normalize("NFC", new.fact).strip()
        created = _time(new.created_at) or now
        self._db.execute(
            "INSERT INTO memory(id, subject, fact, source, created_at, confirmed_at, expires_at, kind, importance, "
            "source_kind, quote, message_id, scope, target, target_line, subject_key, fact_key) "
            f"VALUES ({', '.join('?' * 17)})",
            (
                fact_id,
                unicodedata.normalize("NFC", new.subject).strip(),
                text,
                new.source,
                created,
                _time(new.confirmed_at) or created,
                _time(new.expires_at),
                str(new.kind),
                min(max(1, int(new.importance)), 10),
                str(new.source_kind),
                new.quote,
                new.message_id,
                str(new.scope),
                new.target,
                new.target_line,
                subject_key(new.subject_key or new.subject),
                fact_key(text),
            ),
        )
        self._tombstones.lift(text)
        return self._need(fact_id)

    def _supersede(self, old: Sequence[Fact], new: NewFact) -> Fact:
        fact = self._insert(new)
        now = self._clock()
        for each in old:
            self._db.execute(
                "UPDATE memory SET superseded_by = ?, superseded_at = ? WHERE id = ?", (fact.id, now, each.id)
            )
            self._log.add(fact.id, "supersede", old=each.fact, new=fact.fact, other_id=each.id, before={})
        return fact

    def _head(self, fact_id: str) -> Fact:
        """The newest row of the chain of a fact: two windows may correct the same one."""
        fact = self._need(fact_id)
        while fact.superseded_by is not None:
            fact = self._need(fact.superseded_by)
        return fact

    def _need(self, fact_id: str) -> Fact:
        fact = self.get(fact_id)
        if fact is None:
            raise LookupError(f"There is no fact {fact_id}; it was deleted or pruned.")
        return fact

    # --- life of a fact ---------------------------------------------------------------------------

    def touch(self, ids: Iterable[str]) -> None:
        """The user has said these again: they count as confirmed now. Ids that are gone are passed over."""
        now = self._clock()
        with self._db.transaction() as connection:
            for fact_id in ids:
                if connection.execute("UPDATE memory SET confirmed_at = ? WHERE id = ?", (now, fact_id)).rowcount:
                    self._log.add(fact_id, "touch")

    def used(self, ids: Iterable[str]) -> None:
        """These were really retrieved just now; many at once are one write. It is not logged."""
        now = self._clock()
        with self._db.transaction() as connection:
            connection.executemany("UPDATE memory SET last_used_at = ? WHERE id = ?", [(now, each) for each in ids])

    def confirm(self, fact_id: str, at: str | None = None) -> Fact:
        """The fact was checked and still holds, now or ``at``. Raises ``ValueError`` when it is not live."""
        return self._change(fact_id, "confirm", {"confirmed_at": _time(at) or self._clock()})

    def date_new(self, fact_id: str, at: str) -> None:
        """A fact that was added just now was last known to hold ``at``, as its source says: no change of its own."""
        self._db.execute("UPDATE memory SET confirmed_at = ? WHERE id = ?", (_time(at), fact_id))

    def expire(self, fact_id: str, at: str | None = None) -> Fact:
        """Ends a fact now, or at ``at``. It is out of the live view from that second on."""
        return self._change(fact_id, "expire", {"expires_at": _time(at) or self._clock()})

    def set_expiry(self, fact_id: str, expires_at: str | None) -> Fact:
        """Sets until when a live fact holds; ``None`` for no end."""
        return self._change(fact_id, "expiry", {"expires_at": _time(expires_at)})

    def pin(self, fact_id: str) -> Fact:
        """Pins a live fact."""
        return self._change(fact_id, "pin", {"pinned": 1})

    def unpin(self, fact_id: str) -> Fact:
        """Takes the pin off."""
        return self._change(fact_id, "unpin", {"pinned": 0})

    def rescope(self, fact_id: str, scope: Scope, target: str, target_line: str) -> Fact:
        """Moves a live fact between this project and the user's notes for all projects, with the line it is written
        on. Only the user does that."""
        values = {"scope": str(scope), "target": target, "target_line": target_line}
        return self._change(fact_id, "promote" if scope is Scope.USER else "demote", values)

    def home(self, fact_id: str) -> tuple[str, str] | None:
        """Target and line that a fact had before it was kept for all projects; ``None`` where that is not known."""
        before = self._log.before(fact_id, "promote")
        return (str(before["target"]), str(before["target_line"])) if before else None

    def backdate(self, fact_id: str, at: str | None) -> Fact:
        """An imported fact was made, and last confirmed, at this time in the past; ``None`` leaves it at now."""
        when = _time(at)
        if when is not None and when < self._clock():
            self._db.execute("UPDATE memory SET created_at = ?, confirmed_at = ? WHERE id = ?", (when, when, fact_id))
        return self._need(fact_id)

    def set_target(self, fact_id: str, target: str, target_line: str) -> Fact:
        """Remembers the line of a file that a fact is written on (both empty: none)."""
        self._need(fact_id)
        self._db.execute("UPDATE memory SET target = ?, target_line = ? WHERE id = ?", (target, target_line, fact_id))
        return self._need(fact_id)

    def _change(self, fact_id: str, event: str, values: dict[str, Any]) -> Fact:
        with self._db.transaction() as connection:
            fact = self._need(fact_id)
            if fact.superseded_by is not None:
                raise ValueError("This fact was replaced by a newer one; change that one.")
            if not self.is_live(fact_id):
                raise ValueError("This fact has expired; state it again if it holds.")
            before = {name: getattr(fact, name) for name in values}
            if before == values:  # 0 and False, 1 and True are equal
                return fact
            assignments = ", ".join(f"{name} = ?" for name in values)
            connection.execute(f"UPDATE memory SET {assignments} WHERE id = ?", (*values.values(), fact_id))
            shown = "" if event in {"pin", "unpin"} else str(next(iter(values.values())) or "")
            earlier = "" if event in {"pin", "unpin"} else str(next(iter(before.values())) or "")
            self._log.add(fact_id, event, old=earlier, new=shown, before=before)
            return self._need(fact_id)

    # --- taking back ------------------------------------------------------------------------------

    def undo_correction(self, fact_id: str) -> Fact:
        """Takes a correction back: what it replaced is current again, and the correction is gone with its log texts.

        Inside a longer chain, what it replaced is then replaced by what had replaced the correction. Returns the row it
        had replaced (the newest, when there were several). Raises ``ValueError`` when it replaced nothing.
        """
        with self._db.transaction() as connection:
            fact = self._need(fact_id)
            before = self._facts(
                "SELECT * FROM memory WHERE superseded_by = ? ORDER BY created_at DESC, id DESC", fact_id
            )
            if not before:
                raise ValueError("This fact corrected nothing that is still known, so there is nothing to go back to.")
            # The pointers go first: deleting a row takes those that point to it along.
            connection.execute(
                "UPDATE memory SET superseded_by = ?, superseded_at = CASE WHEN ? IS NULL THEN NULL "
                "ELSE superseded_at END WHERE superseded_by = ?",
                (fact.superseded_by, fact.superseded_by, fact_id),
            )
            connection.execute("DELETE FROM memory WHERE id = ?", (fact_id,))
            self._log.redact([fact_id])
            self._log.add(fact_id, "undo", other_id=before[0].id)
            return self._need(before[0].id)

    def undo_last(self) -> Undone | None:
        """Takes back the last change that can be taken back (a new fact, correction, confirmation, end or pin), or
        returns ``None``. What was deleted forever stays deleted."""
        with self._db.transaction():
            passed: list[int] = []
            while (step := self._log.step(skip=passed)) is not None:
                undone = self._undo(step)
                if undone is not None:
                    return undone
                passed.append(step.id)
            return None

    def undo(self, change_id: int) -> Undone | None:
        """Takes back one change of the log; ``None`` when it cannot be taken back (any more)."""
        with self._db.transaction():
            step = self._log.step(change_id)
            return None if step is None else self._undo(step)

    def _undo(self, step: Step) -> Undone | None:
        fact = self.get(step.memory_id)
        if fact is None or fact.superseded_by is not None:
            return None
        if step.event == "supersede":
            before = self._facts("SELECT * FROM memory WHERE superseded_by = ?", fact.id)
            if not before:
                return None
            self.undo_correction(fact.id)
            restored = tuple(self._need(each.id) for each in before)
            said = ", ".join(f"“{each.fact}”" for each in restored)
            return Undone(f"Took back the correction “{fact.fact}”; {said} holds again.", step.event, fact, restored)
        if step.event == "add":
            # A row that has replaced another since then goes by taking that correction back.
            if self._db.rows("SELECT 1 FROM memory WHERE superseded_by = ?", (fact.id,)):
                return None
            self._db.execute("DELETE FROM memory WHERE id = ?", (fact.id,))
            self._log.redact([fact.id])
            self._log.add(fact.id, "undo")
            return Undone(f"Took back “{fact.fact}”; it is no longer remembered.", step.event, fact)
        assignments = ", ".join(f"{name} = ?" for name in step.before)
        self._db.execute(f"UPDATE memory SET {assignments} WHERE id = ?", (*step.before.values(), fact.id))
        self._log.settle(step.id)
        self._log.add(fact.id, "undo")
        words = {
            "confirm": "the confirmation of",
            "expire": "the end of",
            "expiry": "the new expiry of",
            "pin": "the pin on",
            "unpin": "taking the pin off",
            "promote": "keeping for all projects",
            "demote": "keeping for this project only",
        }
        text = f"Took back {words[step.event]} “{fact.fact}”."
        return Undone(text, step.event, restored=(self._need(fact.id),))

    # --- exchange ---------------------------------------------------------------------------------

    def export_tier2(self, user_id: str = "local", scope: Scope | None = None) -> dict[str, Any]:
        """The live facts (of one scope) as plain JSON data; see :mod:`tui_agent.memory.exchange`."""
        return export_tier2(self.live(scope, include_user=scope is None), user_id)

    # --- deletion ---------------------------------------------------------------------------------

    def delete_chain(self, fact_id: str) -> list[Fact]:
        """Deletes a fact and everything it superseded, forever: rows, vectors, the texts in the log (also of rows that
        prune has removed since) and proposals in quarantine that say the same. Keyed hashes stay, so that old
        transcripts do not bring them back. Returns the deleted rows, newest first.

        An id that lives only in the log is taken too; an unknown one raises ``LookupError``. Bytes stay in free pages
        and in the write-ahead log until :meth:`Database.vacuum`.
        """
        with self._db.transaction() as connection:
            family = self._log.ancestors(fact_id)
            gone = self._facts(
                "WITH RECURSIVE family(id) AS (SELECT ? UNION SELECT m.id FROM memory m JOIN family f "
                "ON m.superseded_by = f.id) SELECT m.* FROM memory m JOIN family f ON m.id = f.id "
                "ORDER BY m.created_at DESC, m.id DESC",
                fact_id,
            )
            # A row that has been taken out of this chain (its correction was undone) is not part of it any more.
            alive = {fact.id for fact in gone}
            family = {each for each in family if each in alive or self.get(each) is None} | alive
            texts = self._log.statements(family) | {text for fact in gone for text in (fact.fact, fact.quote)}
            if not texts:
                raise LookupError(f"There is no fact {fact_id}; it was deleted or pruned.")
            for text in texts:
                self._tombstones.add(text, "deleted")
                connection.execute("DELETE FROM quarantine WHERE text_key = ?", (fact_key(text),))
            connection.execute("DELETE FROM memory WHERE id = ?", (fact_id,))
            self._log.redact(family)
            for each in family:
                self._log.add(each, "delete")
                connection.execute("UPDATE changes SET is_deleted = 1 WHERE memory_id = ?", (each,))
        return gone

    def prune(self, *, changes_days: int = CHANGE_LOG_DAYS, by_supersede_date: bool = False) -> Pruned:
        """Removes expired rows, and superseded ones that were made more than 180 days ago, with the rows that hang on
        them. The log keeps their texts, so that the history of decisions outlives them, for ``changes_days``.

        A fact made long ago and replaced yesterday is removed today by that rule; ``by_supersede_date`` counts the 180
        days from the day it was replaced instead.
        """
        with self._db.transaction() as connection:
            before = {fact.id: fact for fact in self._facts("SELECT * FROM memory ORDER BY created_at, id")}
            connection.execute(PRUNE_EXPIRED)
            now = self._clock()
            left = self._ids(connection)
            expired = [fact for fact_id, fact in before.items() if fact_id not in left]
            connection.execute(PRUNE_SUPERSEDED_SINCE if by_supersede_date else PRUNE_SUPERSEDED)
            last = self._ids(connection)
            superseded = [fact for fact_id, fact in before.items() if fact_id in left and fact_id not in last]
            for fact in (*expired, *superseded):
                self._log.add(fact.id, "prune", old=fact.fact)
            changes = self._log.forget_before(changes_days)
        ended = tuple(fact for fact in expired if fact.expires_at is not None and fact.expires_at <= now)
        along = tuple(fact for fact in expired if fact not in ended)
        return Pruned(ended, tuple(superseded), along, changes)

    @staticmethod
    def _ids(connection: sqlite3.Connection) -> set[str]:
        return {row["id"] for row in connection.execute("SELECT id FROM memory")}


def _time(text: str | None) -> str | None:
    """A time as the table holds it; ``ValueError`` for a text that is none."""
    return None if text is None else format_utc(parse_utc(text))
