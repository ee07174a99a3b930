"""One truth for one statement: what the user does to a fact changes its row and its line in a file together.

Every verb here runs in one database transaction; the files are changed inside it, so an error in a file takes the
row back too. Lines follow rows by comparison: what had a line before and has none now is removed, and the reverse.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.facts_file import FactsFile
from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.gate import Gate
from tui_agent.memory.places import USER
from tui_agent.memory.sections import statement
from tui_agent.memory.text import format_utc, parse_utc, utc_now
from tui_agent.memory.types import Action, Fact, Kind, NewFact, Origin, Proposal, Scope, Verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Line:
    target: str
    text: str
    scope: Scope = Scope.PROJECT


class Ledger:
    """The user's verbs over facts and the files they are projected into.

    Args:
        facts_json: where the live facts of the project are written as plain JSON after each change, or ``None``.
        everywhere: the user's notes for all projects, outside of this one; without them nothing can be promoted.
    """

    def __init__(
        self,
        db: Database,
        facts: FactStore,
        files: MemoryFiles,
        gate: Gate,
        facts_json: Path | None = None,
        everywhere: MemoryFiles | None = None,
    ) -> None:
        self._db = db
        self._facts = facts
        self._files = files
        self._gate = gate
        self.facts_file = None if facts_json is None else FactsFile(facts_json, db, facts, lambda: files.announce)
        self._everywhere = everywhere

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

    def replace(self, fact_id: str, proposal: Proposal, *, line: str = "", kind: Kind | None = None) -> Verdict:
        """Replace a live fact by what ``proposal`` says, when the gate lets it live; row and line change together.

        ``line`` is the new line where a hand has written it into the file already; ``kind`` another kind.

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
            same_kind = kind is None or kind is old.kind
            if verdict.action is Action.TOUCH and verdict.fact_id == fact_id and same_kind and not line:
                self._facts.touch([fact_id])
                return verdict
            new = NewFact(
                subject=old.subject,
                fact=verdict.text,
                source=proposal.source,
                kind=kind or old.kind,
                importance=old.importance,
                source_kind=Origin.USER,
                quote=verdict.quote or verdict.text,
                message_id=proposal.message_id,
                subject_key=old.subject_key,
                scope=old.scope,
                expires_at=_expiry(verdict.ttl_days),
                target=old.target,
                target_line=line or self._line_like(old, verdict.text),
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

    def set_expiry(self, fact_id: str, expires_at: str | None) -> Fact:
        """Set until when a live fact holds (UTC text; ``None``: until further notice). A time that has passed ends it
        now, and its line leaves the file.

        Raises:
            LookupError: the fact is gone or no longer live.
        """
        if expires_at is not None and parse_utc(expires_at) <= parse_utc(utc_now()):
            return self.expire(fact_id)
        try:
            return self._facts.set_expiry(fact_id, expires_at)
        except ValueError as error:
            raise LookupError(str(error)) from None

    def undo_correction(self, fact_id: str) -> Fact:
        """Take a correction back: what it replaced holds again, row and line; the correction is gone.

        Raises:
            LookupError: there is no such fact, or it replaced nothing that is still known.
        """
        with self._projected():
            try:
                return self._facts.undo_correction(fact_id)
            except ValueError as error:
                raise LookupError(str(error)) from None

    def promote(self, fact_id: str, *, most: int = 40) -> Fact:
        """Keep a fact for all projects of the user: its line moves from this project to the user's own notes, which
        are in every prompt; ``most`` is how many lines those may have.

        Raises:
            LookupError: the fact is gone or no longer live.
            ValueError: it is kept for all projects already, or there is no room.
            MemoryFileError: a file cannot be changed; then nothing was.
        """
        everywhere = self._everywhere
        old = self._live(fact_id)
        if everywhere is None or old.scope is Scope.USER:
            raise ValueError("It is kept for all your projects already.")
        everywhere.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = len(everywhere.lines(USER)) if everywhere.exists(USER) else 0
        if kept >= most:
            raise ValueError(f"Your notes for all projects hold {kept} lines already, and every prompt carries them.")
        written = Verdict(Action.LIVE, old.fact, "", "ok", kind=old.kind, target=USER)
        line = old.target_line or self._gate.project_line(written)[2]
        with self._projected():
            return self._facts.rescope(fact_id, Scope.USER, USER, line)

    def demote(self, fact_id: str) -> Fact:
        """Keep a promoted fact for this project only, where it stood before; raises as :meth:`promote` does."""
        old = self._live(fact_id)
        if old.scope is not Scope.USER:
            raise ValueError("It is kept for this project only already.")
        with self._projected():
            target, line = self._facts.home(fact_id) or (USER, old.target_line)
            return self._facts.rescope(fact_id, Scope.PROJECT, target, line)

    def follow_everywhere(self) -> list[Fact]:
        """End the promoted facts whose line is no longer among the user's notes for all projects: they were ended or
        changed in another project, or by hand. Returns them. Notes that cannot be read end nothing."""
        everywhere = self._everywhere
        if everywhere is None or not everywhere.exists(USER):
            return []
        gone = [
            fact
            for fact in self._facts.live(Scope.USER)
            if fact.target == USER and fact.target_line and not everywhere.has_line(USER, "", fact.target_line)
        ]
        return [self._facts.expire(fact.id) for fact in gone]

    def merge(self, ids: Sequence[str], new: NewFact) -> Fact:
        """Replace several live facts by one, rows and lines together; one undo brings all of them back.

        Raises:
            LookupError: one of them is gone.
            ValueError: one of them is no longer current.
            MemoryFileError: a file cannot be changed; then nothing was.
        """
        with self._projected():
            pinned = any(fact.pinned for fact in map(self._facts.get, ids) if fact is not None)
            fact = self._facts.supersede_many(ids, new)
            if pinned:
                self._facts.pin(fact.id)
            return fact

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
                files = self._files_of(_Line(fact.target, fact.target_line, fact.scope))
                removed += bool(files.remove_line(path, section, fact.target_line))
        return removed

    def write_facts_json(self) -> bool:
        """Write the project's live facts as plain JSON, readable and reviewable; the rows stay the truth. False when
        somebody has edited the file and that was not taken over yet: it is left alone then.

        Raises ``MemoryFileError`` when it cannot be written; it stays as it was then.
        """
        return self.facts_file is None or self.facts_file.write()

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
                files = self._files_of(line)
                twin = next((other for other in come if (other.target, other.scope) == (line.target, line.scope)), None)
                if twin is not None and files.replace_line(path, section, line.text, twin.text):
                    come.remove(twin)
                elif line not in after.values():
                    files.remove_line(path, section, line.text)
            for line in come:
                path, _, section = line.target.partition("#")
                files = self._files_of(line)
                if not files.has_line(path, section, line.text):
                    files.append_line(path, section, line.text)

    def says(self, where: str, target: str, text: str) -> bool:
        """Whether a live fact is written as this line; ``where`` is ``project``, or ``everywhere`` for the user's notes
        for all projects."""
        key = statement(text)
        return any(
            line.target == target and statement(line.text) == key and (where == "everywhere") == self._is_outside(line)
            for line in self._lines().values()
        )

    def _is_outside(self, line: _Line) -> bool:
        return line.scope is Scope.USER and self._everywhere is not None

    def _files_of(self, line: _Line) -> MemoryFiles:
        """The files a line is in: the project's, or the user's for all projects."""
        return self._everywhere if self._everywhere is not None and self._is_outside(line) else self._files

    def _lines(self) -> dict[str, _Line]:
        return {
            fact_id: _Line(target, line, Scope(scope)) for fact_id, target, line, scope in self._facts.written_lines()
        }

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
