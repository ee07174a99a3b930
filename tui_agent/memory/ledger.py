"""One truth for one statement: what the user does to a fact changes its row and its line in a file together.

Every verb here runs in one database transaction; the files are changed inside it, so an error in a file takes the
row back too. Lines follow rows by comparison: what had a line before and has none now is removed, and the reverse.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tui_agent.memory.database import Database
from tui_agent.memory.exchange import export_tier2
from tui_agent.memory.facts import FactStore
from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.gate import Gate
from tui_agent.memory.places import USER
from tui_agent.memory.text import format_utc, parse_utc, utc_now
from tui_agent.memory.textfile import read_text, write_text
from tui_agent.memory.types import Action, Fact, NewFact, Origin, Proposal, Scope, Verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Line:
    target: str
    text: str


class Ledger:
    """The user's verbs over facts and the files they are projected into.

    Args:
        facts_json: where the live facts of the project are written as plain JSON after each change, or ``None``.
    """

    def __init__(
        self, db: Database, facts: FactStore, files: MemoryFiles, gate: Gate, facts_json: Path | None = None
    ) -> None:
        self._db = db
        self._facts = facts
        self._files = files
        self._gate = gate
        self._facts_json = facts_json

    # -- verbs ----------------------------------------------------------------------------------------------------

    def correct(self, fact_id: str, text: str, source: str) -> Verdict:
        """Replace a live fact by ``text``, the user's own words. Secrets and world state are refused as always.

        Raises:
            LookupError: the fact is gone.
            MemoryFileError: its file cannot be changed; then nothing was.
        """
        old = self._live(fact_id)
        proposal = Proposal(
            text=text,
            origin=Origin.USER,
            proposer="user",
            source=source,
            kind=old.kind,
            importance=old.importance,
            subject=old.subject,
            user_text=text,
            target=old.target,
            scope=old.scope,
        )
        return self.replace(fact_id, proposal)

    def replace(self, fact_id: str, proposal: Proposal) -> Verdict:
        """Replace a live fact by what ``proposal`` says, when the gate lets it live; row and line change together.

        Raises:
            LookupError: the fact is gone.
            MemoryFileError: its file cannot be changed; then nothing was.
        """
        with self._projected():
            old = self._live(fact_id)
            verdict = self._gate.decide(proposal)
            # The cap on notes is no reason against a replacement: their number stays the same.
            if verdict.action in (Action.REFUSE, Action.QUARANTINE) and verdict.rule != "cap":
                return verdict
            if verdict.action is Action.TOUCH and verdict.fact_id == fact_id:
                self._facts.touch([fact_id])
                return verdict
            new = NewFact(
                subject=old.subject,
                fact=verdict.text,
                source=proposal.source,
                kind=old.kind,
                importance=old.importance,
                source_kind=Origin.USER,
                quote=verdict.quote or verdict.text,
                message_id=proposal.message_id,
                subject_key=old.subject_key,
                scope=old.scope,
                expires_at=_expiry(verdict.ttl_days),
                target=old.target,
                target_line=self._line_like(old, verdict.text),
            )
            fact = self._facts.supersede(fact_id, new)
            if old.pinned:
                self._facts.pin(fact.id)
            return dataclasses.replace(verdict, action=Action.LIVE, fact_id=fact.id, superseded_id=fact_id)

    def expire(self, fact_id: str) -> Fact:
        """End a fact now; its line leaves the file.

        Raises:
            LookupError: the fact is gone or no longer live.
        """
        with self._projected():
            try:
                return self._facts.expire(fact_id)
            except ValueError as error:
                raise LookupError(str(error)) from None

    def delete(self, fact_id: str) -> list[Fact]:
        """Delete a fact and everything it replaced for good, lines included; returns the deleted rows.

        Raises:
            LookupError: there is no such fact.
        """
        with self._projected():
            return self._facts.delete_chain(fact_id)

    def approve(self, item_id: str) -> Verdict:
        """Let a waiting statement in: by the user's decision it is the user's own.

        Raises:
            LookupError: nothing waits under this id.
        """
        with self._db.transaction():
            item = self._facts.approve(item_id)
            proposal = dataclasses.replace(
                item.proposal, origin=Origin.USER, user_text=item.proposal.text, quote="", proposer="user"
            )
            return self._gate.admit(proposal)

    def undo(self) -> str:
        """Take back the last change of the facts that can be; returns what it was in words, or an empty string."""
        with self._projected():
            undone = self._facts.undo_last()
            return undone.description if undone is not None else ""

    def sync_files(self) -> int:
        """Remove lines whose facts have expired since the last start; returns how many."""
        dead = [fact for fact in self._facts.expired() if fact.target_line]
        removed = 0
        for fact in dead:
            with contextlib.suppress(OSError, ValueError):
                path, _, section = fact.target.partition("#")
                removed += bool(self._files.remove_line(path, section, fact.target_line))
        return removed

    def write_facts_json(self) -> None:
        """Write the project's live facts as plain JSON, readable and reviewable; the rows stay the truth.

        Notes about the user are left out: the file may be shared, and they never are.
        """
        if self._facts_json is None:
            return
        shared = [fact for fact in self._facts.live(Scope.PROJECT, include_user=False) if fact.target != USER]
        data = export_tier2(shared, "local")
        text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
        before = read_text(self._facts_json)
        if before is None or before.text != text:
            write_text(self._facts_json, text, before, self._files.announce)

    # -- lines follow rows ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _projected(self) -> Iterator[None]:
        with self._db.transaction():
            before = self._lines()
            yield
            after = self._lines()
            gone = [line for fact_id, line in before.items() if after.get(fact_id) != line]
            come = [line for fact_id, line in after.items() if before.get(fact_id) != line]
            for line in gone:
                path, _, section = line.target.partition("#")
                twin = next((other for other in come if other.target == line.target), None)
                if twin is not None and self._files.replace_line(path, section, line.text, twin.text):
                    come.remove(twin)
                elif line not in after.values():
                    self._files.remove_line(path, section, line.text)
            for line in come:
                path, _, section = line.target.partition("#")
                if not self._files.has_line(path, section, line.text):
                    self._files.append_line(path, section, line.text)

    def _lines(self) -> dict[str, _Line]:
        return {f.id: _Line(f.target, f.target_line) for f in self._facts.live() if f.target and f.target_line}

    def _line_like(self, old: Fact, text: str) -> str:
        """The new statement in the form of the old line: a label or a list mark stays."""
        if not old.target_line:
            return ""
        if old.fact and old.fact in old.target_line:
            return old.target_line.replace(old.fact, text)
        mark = "- " if old.target_line.startswith("- ") else ""
        return mark + text

    def _live(self, fact_id: str) -> Fact:
        fact = self._facts.get(fact_id)
        if fact is None or not self._facts.is_live(fact_id):
            raise LookupError("That fact is not there any more, or was replaced; the pane shows what is.")
        return fact


def _expiry(ttl_days: float | None) -> str | None:
    if ttl_days is None:
        return None
    return format_utc(parse_utc(utc_now()) + timedelta(days=ttl_days))
