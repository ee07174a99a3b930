"""What wants to be remembered but is not the user's own word waits here. It is no fact and never retrieved."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from tui_agent.memory.facts_read import FactReader
from tui_agent.memory.facts_schema import fact_key
from tui_agent.memory.text import new_id
from tui_agent.memory.types import Kind, Origin, Proposal, Scope, kind_of


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A proposal that waits for the user, and why. The user's message it was made on is not kept with it."""

    id: str
    proposal: Proposal
    reason: str
    rule: str
    created_at: str


def _quarantined(row: sqlite3.Row) -> Quarantined:
    proposal = Proposal(
        text=row["text"],
        origin=Origin(row["origin"]),
        proposer=row["proposer"],
        source=row["source"],
        kind=None if row["kind"] is None else kind_of(row["kind"], Kind.FACT),
        importance=row["importance"] or None,
        subject=row["subject"],
        quote=row["quote"],
        message_id=row["message_id"],
        target=row["target"],
        scope=Scope(row["scope"]),
        ttl_days=row["ttl_days"],
    )
    return Quarantined(row["id"], proposal, row["reason"], row["rule"], row["created_at"])


class QuarantineShelf(FactReader):
    """The quarantine half of :class:`~tui_agent.memory.facts.FactStore`."""

    def quarantine(self, proposal: Proposal, reason: str, rule: str = "") -> Quarantined:
        """Keeps a proposal until the user decides. The same statement waits only once.

        Raises ``ValueError`` for a proposal without text or source.
        """
        if not proposal.text.strip() or not proposal.source.strip():
            raise ValueError("A proposal needs a text and a source it can be traced to.")
        key = fact_key(proposal.text)
        with self._db.transaction() as connection:
            waiting = connection.execute("SELECT * FROM quarantine WHERE text_key = ?", (key,)).fetchone()
            if waiting is not None:
                return _quarantined(waiting)
            item_id = new_id()
            connection.execute(
                f"INSERT INTO quarantine VALUES ({', '.join('?' * 17)})",
                (
                    item_id,
                    proposal.text,
                    key,
                    str(proposal.origin),
                    proposal.proposer,
                    proposal.source,
                    None if proposal.kind is None else str(proposal.kind),
                    proposal.importance or 0,  # none was given
                    proposal.subject,
                    proposal.quote,
                    proposal.message_id,
                    proposal.target,
                    str(proposal.scope),
                    proposal.ttl_days,
                    reason,
                    rule,
                    self._clock(),
                ),
            )
            self._log.add(item_id, "quarantine")
            return _quarantined(connection.execute("SELECT * FROM quarantine WHERE id = ?", (item_id,)).fetchone())

    def quarantined(self) -> list[Quarantined]:
        """Everything that waits, oldest first."""
        return [_quarantined(row) for row in self._db.rows("SELECT * FROM quarantine ORDER BY created_at, id")]

    def approve(self, item_id: str) -> Quarantined:
        """Takes a proposal out of quarantine and returns it for the gate to write (do both in one transaction).

        Raises ``LookupError`` when nothing waits under this id.
        """
        return self._take(item_id, "approve")

    def reject(self, item_id: str) -> Quarantined:
        """Takes a proposal out of quarantine for good; :meth:`is_rejected` knows its text from now on.

        Raises ``LookupError`` when nothing waits under this id.
        """
        with self._db.transaction():
            item = self._take(item_id, "reject")
            self._tombstones.add(item.proposal.text, "rejected")
        return item

    def is_rejected(self, text: str) -> bool:
        """Whether the user has rejected this statement, in this or another form of the same words."""
        return self._tombstones.has(text, "rejected")

    def _take(self, item_id: str, event: str) -> Quarantined:
        with self._db.transaction() as connection:
            row = connection.execute("SELECT * FROM quarantine WHERE id = ?", (item_id,)).fetchone()
            if row is None:
                raise LookupError(f"Nothing waits in quarantine under {item_id}.")
            connection.execute("DELETE FROM quarantine WHERE id = ?", (item_id,))
            self._log.add(item_id, event)
            return _quarantined(row)
