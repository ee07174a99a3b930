"""The one door for every durable write: decides what becomes memory, where, for how long, and says why.

The order is fixed: secrets, origin, proof, world state and off the record, duplicates, cap. Only the user's own words
go live; whatever else wants in waits for the user. Nothing here asks a model.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Protocol

from tui_agent.memory.gate_text import Reading, keepable, project_line, same_place, source_words, target_of
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.proof import claims_of, find_proof, find_quote, grounded
from tui_agent.memory.secrets import Redacted, redact
from tui_agent.memory.statement_reading import without_secrets
from tui_agent.memory.statements import FACT, LEARNED, PREFERENCES, RULES, USER, Label, Statement, read
from tui_agent.memory.text import format_utc, normalise, parse_utc, stems, utc_now
from tui_agent.memory.types import Action, Fact, Kind, NewFact, Origin, Proposal, Scope, Verdict

NEAR = 94.0
"""Likeness (0..100) from which two statements without a subject count as the same one said again."""

_FROM_RECORDS = frozenset({"extraction", "consolidation", "import", "summary", "transcript"})
_USER_NOTES = (USER, PREFERENCES, LEARNED)

_NOT_MEANT = {Label.REPORTED, Label.THIRD_PARTY, Label.MUSING}
"""In such a sentence a piece that reads like a statement of the user is none."""

_REASONS = {
    Label.QUESTION: "That is a question, not a statement to keep.",
    Label.SMALL_TALK: "There is nothing in it to keep.",
    Label.MUSING: "The user was thinking aloud or joking; only what is meant is kept.",
    Label.THIRD_PARTY: "That is about somebody else, not about the user or the project.",
    Label.REPORTED: "Those are somebody else's words that the user quoted.",
    Label.COMMAND: "That is an order for one task, not something lasting.",
    Label.TASK: "That is about the task at hand, not something lasting.",
    Label.SAVE_COMMAND: "It asks to save something but does not say what.",
    Label.FOLLOW_UP: "By itself this says nothing to keep.",
}


class FactsPort(Protocol):
    """What the gate needs of the fact store; see :class:`tui_agent.memory.facts.FactStore`."""

    def add(self, new: NewFact) -> Fact: ...

    def supersede(self, old_id: str, new: NewFact) -> Fact: ...

    def touch(self, ids: Sequence[str]) -> None: ...

    def set_expiry(self, fact_id: str, expires_at: str | None) -> Fact: ...

    def by_subject(self, subject: str, scope: Scope | None = None) -> list[Fact]: ...

    def by_text(self, text: str, scope: Scope | None = None) -> Fact | None: ...

    def similar(self, text: str, threshold: float = 85.0, limit: int = 5) -> list[tuple[Fact, float]]: ...

    def quarantine(self, proposal: Proposal, reason: str, rule: str = "") -> Any: ...

    def is_tombstoned(self, text: str) -> bool: ...

    def is_rejected(self, text: str) -> bool: ...

    def live(self, scope: Scope | None = None, *, include_user: bool = True) -> list[Fact]: ...


class FilesPort(Protocol):
    """What the gate needs of the memory files; see :class:`tui_agent.memory.files.MemoryFiles`.

    Each raises ``MemoryFileError`` or ``OSError`` when the file cannot be written; nothing is changed then.
    """

    def append_line(self, name: str, section: str, line: str) -> Any: ...

    def replace_line(self, name: str, section: str, old: str, new: str) -> bool: ...

    def remove_line(self, name: str, section: str, line: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Decision:
    """A verdict with what writing it needs beyond the verdict itself."""

    verdict: Verdict
    proposal: Proposal
    subject: str = ""
    importance: int = 5
    superseded: Fact | None = None


class Gate:
    """Decides on proposals and writes what is admitted: row and line in one operation.

    ``clock`` gives UTC ``YYYY-MM-DD HH:MM:SS``. ``redactor`` finds secrets. ``user_notes_cap`` is how many notes about
    the user are kept at most, since all of them are in every prompt. ``transaction`` spans row and file line; without
    one the fact store's own is used.
    """

    def __init__(
        self,
        facts: FactsPort,
        files: FilesPort | None,
        *,
        clock: Callable[[], str] = utc_now,
        redactor: Callable[[str], Redacted] = redact,
        user_notes_cap: int = 40,
        transaction: Callable[[], AbstractContextManager[Any]] | None = None,
    ) -> None:
        self._facts = facts
        self._files = files
        self._clock = clock
        self._redact = redactor
        self._cap = user_notes_cap
        self._transaction = transaction or _transaction_of(facts)

    def decide(self, proposal: Proposal) -> Verdict:
        """What would become of a proposal, and why. Reads the store, writes nothing."""
        return self._decide(proposal).verdict

    def admit(self, proposal: Proposal) -> Verdict:
        """Decides and writes: a live row with its line in the file, a touched row, or an item in quarantine.

        When the file cannot be written the row is taken back and the verdict says why (rule ``file``). Errors of the
        database are raised.
        """
        with self._transaction():
            decision = self._decide(proposal)
            verdict = decision.verdict
            if verdict.action is Action.TOUCH and verdict.fact_id is not None:
                self._facts.touch([verdict.fact_id])
                self._prolong(verdict)
            elif verdict.action is Action.QUARANTINE:
                self._facts.quarantine(decision.proposal, verdict.reason, verdict.rule)
            elif verdict.action is Action.LIVE:
                return self._write(decision)
            return verdict

    def project_line(self, verdict: Verdict) -> tuple[str, str, str]:
        """``(path, section, line)`` of the file line that a verdict is written as; all empty for a row without one."""
        return project_line(verdict.target, verdict.text)

    # -- deciding --------------------------------------------------------------------------------

    def _decide(self, given: Proposal) -> _Decision:
        proposal, refusal = self._without_secrets(given)
        if refusal is not None:
            return refusal
        if not proposal.text.strip():
            return self._no(proposal, "There is no text to keep.", "empty")
        by_hand = proposal.origin is Origin.USER and proposal.proposer == "user"
        if proposal.origin not in (Origin.USER, Origin.MODEL):
            return self._foreign(proposal)
        evidence = proposal.user_text or (proposal.text if proposal.origin is Origin.USER else "")
        if not evidence.strip():
            return self._wait(proposal, "The model thought of this; the user has not said it.", "origin")
        reading = Reading(evidence, parse_utc(self._clock()))
        proved = self._prove(proposal, reading)
        if not by_hand and reading.off_record("" if isinstance(proved, _Decision) else proved[1]):
            return self._no(proposal, "The user asked for this not to be stored.", "off_record")
        if isinstance(proved, _Decision):
            return proved
        text, quote, statement = proved
        own = self._own_words(proposal, reading, text, quote, statement, by_hand)
        if isinstance(own, _Decision):
            return own
        text, statement = own
        return self._place(proposal, text, quote, statement)

    def _without_secrets(self, given: Proposal) -> tuple[Proposal, _Decision | None]:
        """The proposal without secrets, or its refusal. A message that also states something keeps that part."""
        clean = replace(given, subject="" if self._secret(given.subject) else given.subject)
        clean = replace(
            clean,
            quote="" if self._secret(given.quote) else given.quote,
            user_text=without_secrets(given.user_text, self._redact),
        )
        if not self._secret(given.text) and not self._secret(given.target):
            return clean, None
        rest = without_secrets(given.text, self._redact)
        judged = read(rest, now=parse_utc(self._clock()))
        if self._secret(given.target) or not any(item.statement and item.label is Label.STATEMENT for item in judged):
            reason = "It holds a password, key or token; secrets are never stored."
            masked = replace(clean, text=self._redact(given.text).text, target="")
            return masked, self._no(masked, reason, "secret")
        return replace(clean, text=rest, quote=""), None

    def _secret(self, text: str) -> bool:
        return bool(text) and bool(self._redact(text).findings)

    def _foreign(self, proposal: Proposal) -> _Decision:
        """Files, tools, pages and imports are never the user's own words."""
        if self._facts.by_text(proposal.text, proposal.scope) is not None:
            return self._no(proposal, "This is known already.", "duplicate")
        if self._facts.is_tombstoned(proposal.text) or self._facts.is_rejected(proposal.text):
            return self._no(
                proposal, "The user has deleted or rejected this; it does not come back by itself.", "tombstone"
            )
        return self._wait(proposal, f"It comes from {source_words(proposal)}, not from the user.", "origin")

    def _prove(self, proposal: Proposal, reading: Reading) -> tuple[str, str, Statement | None] | _Decision:
        """The text to keep, the user's words that prove it, and the statement of the user they belong to."""
        text = proposal.text.strip()
        if proposal.proposer in _FROM_RECORDS:
            return self._prove_strictly(proposal, reading)
        place = find_quote(proposal.quote, reading.text) if proposal.quote else None
        whole = find_quote(text, reading.text)
        if whole is not None:
            quote = text if text in reading.text else reading.text[whole[0] : whole[1]]
        elif proposal.origin is Origin.USER and not proposal.user_text:
            quote = text
        else:
            found = find_proof(text, reading.text)
            if found is None:
                return self._own_sentence(proposal, reading)
            quote = reading.text[place[0] : place[1]] if place else found
        return text, quote, reading.statement_at(quote)

    def _prove_strictly(self, proposal: Proposal, reading: Reading) -> tuple[str, str, Statement | None] | _Decision:
        place = find_quote(proposal.quote or proposal.text, reading.text)
        if place is None or not grounded(proposal.text, reading.messages, proposal.quote):
            return self._no(proposal, "The user's messages do not say this, so it was dropped.", "proof")
        quote = reading.text[place[0] : place[1]]
        return proposal.text.strip(), quote, reading.statement_at(quote)

    def _own_sentence(self, proposal: Proposal, reading: Reading) -> tuple[str, str, Statement | None] | _Decision:
        """Not proved, perhaps because the model translated it: the sentence of the user it must be about, if any."""
        candidates = reading.statements
        wanted = set(stems(proposal.text))
        scored = [
            (len(wanted & set(stems(item.text))) + 2 * same_place(item.target, proposal.target), item)
            for item in candidates
        ]
        best = max(scored, key=lambda pair: pair[0], default=None)
        if best is None or (best[0] == 0 and len(candidates) > 1):
            if self._facts.is_rejected(proposal.text):
                return self._no(proposal, "The user has rejected this before.", "rejected")
            return self._wait(proposal, "The user's message does not say this.", "proof")
        return best[1].text, best[1].text, best[1]

    def _own_words(
        self, proposal: Proposal, reading: Reading, text: str, quote: str, statement: Statement | None, by_hand: bool
    ) -> tuple[str, Statement | None] | _Decision:
        """Only what the user states, not what surrounds it: questions, small talk, states of the world."""
        judged = read(text, now=parse_utc(self._clock()))
        kept = keepable(text, judged)
        if kept.text and statement is None:
            # What the model made of it reads like a statement; what the user wrote decides.
            label = reading.label_at(quote)
            if label is not None and (kept.statement is None or label in _NOT_MEANT):
                kept = replace(kept, text="", label=label)
        if by_hand and kept.label not in {Label.WORLD_STATE} and not kept.text:
            return text, statement
        if kept.text:
            return kept.text, kept.statement or statement
        if statement is not None and kept.label is not Label.WORLD_STATE:
            return text, statement  # the model's wording of what the user plainly states
        if kept.label is Label.WORLD_STATE:
            reason = (
                "That is a state of the world (a count, a status, a date); it is looked up when needed, not remembered."
            )
            return self._no(proposal, reason, "world_state")
        if kept.label in {Label.SMALL_TALK, Label.QUESTION, Label.SAVE_COMMAND, Label.FOLLOW_UP}:
            return self._no(proposal, _REASONS[kept.label], kept.label.value)
        if kept.label is None:
            return self._wait(proposal, "Those are pasted or quoted words, not the user's own.", "origin")
        return self._wait(proposal, _REASONS[kept.label], kept.label.value)

    def _place(self, proposal: Proposal, text: str, quote: str, statement: Statement | None) -> _Decision:
        """Target, kind and shelf life; then duplicates and the cap."""
        target = target_of(proposal.target, statement)
        verdict = Verdict(
            Action.LIVE,
            text,
            "The user said so.",
            "ok",
            kind=proposal.kind or (statement.kind if statement else Kind.FACT),
            quote=quote if normalise(quote) in normalise(proposal.user_text or quote) else text,
            target=target,
            ttl_days=proposal.ttl_days if proposal.ttl_days is not None else statement.ttl_days if statement else None,
        )
        given = proposal.importance
        importance = given if given is not None else statement.importance if statement else 5
        subject = proposal.subject or (statement.subject if statement else "")
        decision = _Decision(verdict, proposal, subject, importance)
        if proposal.proposer in _FROM_RECORDS and self._facts.is_tombstoned(text):
            return self._no(proposal, "The user has deleted this; old transcripts do not bring it back.", "tombstone")
        same = self._facts.by_text(text, proposal.scope)
        rivals = self._facts.by_subject(subject, proposal.scope) if subject else []
        if not proposal.subject:
            # "I prefer yarn" is about the user and "we moved to pnpm" about the project: both hold.
            rivals = [fact for fact in rivals if (fact.kind is Kind.PREFERENCE) == (verdict.kind is Kind.PREFERENCE)]
        if subject:
            # Said before but replaced since: true again is a new row.
            same = next((fact for fact in rivals if normalise(fact.fact) == normalise(text)), None if rivals else same)
        if same is not None:
            known = replace(
                verdict,
                action=Action.TOUCH,
                reason="This is known already; it is confirmed now.",
                rule="duplicate",
                fact_id=same.id,
            )
            return replace(decision, verdict=known)
        old = rivals[0] if rivals else self._said_before(text, proposal.scope, verdict.ttl_days)
        if old is not None:
            return replace(
                decision,
                verdict=replace(
                    verdict, superseded_id=old.id, reason="The user said so; it replaces the older statement."
                ),
                superseded=old,
            )
        if target in _USER_NOTES and self._notes() >= self._cap:
            reason = (
                f"There are already {self._cap} notes about the user, as many as every prompt can hold; end one first."
            )
            return self._wait(replace(proposal, text=text, target=target), reason, "cap")
        return decision

    def _said_before(self, text: str, scope: Scope, ttl_days: float | None) -> Fact | None:
        """A live fact in nearly the same words that makes the same claims: the newer wording wins."""
        for fact, likeness in self._facts.similar(text, NEAR):
            if likeness >= NEAR and fact.scope is scope and len(text) >= 12:
                ours, theirs = claims_of(text), claims_of(fact.fact)
                if set(ours.required) == set(theirs.required) and bool(fact.expires_at) == (ttl_days is not None):
                    return fact
        return None

    def _notes(self) -> int:
        return sum(fact.target in _USER_NOTES for fact in self._facts.live())

    def _no(self, proposal: Proposal, reason: str, rule: str) -> _Decision:
        return _Decision(
            Verdict(
                Action.REFUSE, proposal.text, reason, rule, kind=proposal.kind or Kind.FACT, target=proposal.target
            ),
            proposal,
        )

    def _wait(self, proposal: Proposal, reason: str, rule: str) -> _Decision:
        verdict = Verdict(
            Action.QUARANTINE, proposal.text, reason, rule, kind=proposal.kind or Kind.FACT,
            quote=proposal.quote, target=proposal.target, ttl_days=proposal.ttl_days,
        )  # fmt: skip
        return _Decision(verdict, proposal)

    # -- writing ---------------------------------------------------------------------------------

    def _write(self, decision: _Decision) -> Verdict:
        """Row first, then the line; a file that refuses takes the row back (the inner transaction)."""
        verdict, proposal = decision.verdict, decision.proposal
        path, section, line = self.project_line(verdict)
        target = verdict.target if line and self._files is not None else verdict.target.replace(FACT, "")
        if verdict.target == RULES:
            target = line = ""  # the rules file is the user's own; the rule is kept as a row
        new = NewFact(
            subject=decision.subject,
            fact=verdict.text,
            source=proposal.source.strip() or proposal.proposer,
            kind=verdict.kind,
            importance=decision.importance,
            source_kind=Origin.USER,
            quote=verdict.quote,
            message_id=proposal.message_id,
            subject_key=decision.subject,
            scope=proposal.scope,
            expires_at=self._expiry(verdict.ttl_days),
            target=target,
            target_line=line if self._files is not None else "",
        )
        old = decision.superseded
        try:
            with self._transaction():
                fact = self._facts.add(new) if old is None else self._facts.supersede(old.id, new)
                if self._files is not None and line:
                    self._write_line(self._files, path, section, line, old)
                elif self._files is not None and old is not None and old.target_line:
                    old_path, _, old_section = old.target.partition("#")
                    self._files.remove_line(old_path, old_section, old.target_line)
        except (MemoryFileError, OSError) as error:
            return replace(
                verdict,
                action=Action.REFUSE,
                reason=f"{path or verdict.target} could not be written: {error}",
                rule="file",
            )
        return replace(verdict, fact_id=fact.id)

    def _write_line(self, files: FilesPort, path: str, section: str, line: str, old: Fact | None) -> None:
        if old is not None and old.target_line:
            old_path, _, old_section = old.target.partition("#")
            if (old_path, old_section) == (path, section) and files.replace_line(path, section, old.target_line, line):
                return
            if (old_path, old_section) != (path, section):
                files.remove_line(old_path, old_section, old.target_line)
        files.append_line(path, section, line)

    def _prolong(self, verdict: Verdict) -> None:
        """ "This week I am away", said again on Thursday, holds from Thursday on."""
        until = self._expiry(verdict.ttl_days)
        known = self._facts.by_text(verdict.text)
        if until and known is not None and known.id == verdict.fact_id and (known.expires_at or until) < until:
            self._facts.set_expiry(known.id, until)

    def _expiry(self, ttl_days: float | None) -> str | None:
        return None if ttl_days is None else format_utc(parse_utc(self._clock()) + timedelta(days=ttl_days))


def _transaction_of(facts: FactsPort) -> Callable[[], AbstractContextManager[Any]]:
    """The store's transaction, where it has one; a store without any writes each step by itself."""
    own = getattr(facts, "transaction", None)
    return own if callable(own) else _no_transaction


@contextlib.contextmanager
def _no_transaction() -> Iterator[None]:
    yield
