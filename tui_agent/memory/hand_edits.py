"""What a hand changed in the files that facts are written into, and how it becomes memory.

A line the app wrote is the projection of a row: changed by hand, it corrects the row; taken out, it ends it. Lines the
app did not write stay what they are, text for the prompt. Everything that is taken over is the user's own words, passes
the gate, and can be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rapidfuzz import fuzz

from tui_agent.memory.backup import Backups
from tui_agent.memory.database import Database, StoreError
from tui_agent.memory.facts import FactStore
from tui_agent.memory.facts_file import NAME, FileChange, HandEdit, Verb, too_much
from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.gate import Gate
from tui_agent.memory.ledger import Ledger
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.scrubbing import without_mark
from tui_agent.memory.sections import statement
from tui_agent.memory.text import utc_now
from tui_agent.memory.types import Action, Fact, Origin, Proposal, Scope
from tui_agent.project import Project

_LIKE = 55.0


class HandMemory(Protocol):
    """The stores that hand edits are about."""

    @property
    def project(self) -> Project: ...
    @property
    def db(self) -> Database: ...
    @property
    def facts(self) -> FactStore: ...
    @property
    def files(self) -> MemoryFiles: ...
    @property
    def gate(self) -> Gate: ...
    @property
    def ledger(self) -> Ledger: ...


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one edit: ``verb`` as in the edit or ``refused``, and why."""

    verb: Verb | str
    text: str
    fact_id: str = ""
    reason: str = ""
    line: int = 0


def pending(memory: HandMemory) -> list[FileChange]:
    """What hands have done to all files since the app last wrote or read them."""
    names = dict.fromkeys(fact.target.partition("#")[0] for fact in _written(memory.facts))
    found = [pending_lines(memory, name) for name in names]
    first = memory.ledger.facts_file.pending() if memory.ledger.facts_file is not None else None
    return [change for change in (first, *found) if change is not None]


def pending_lines(memory: HandMemory, name: str, before: str | None = None) -> FileChange | None:
    """What hands have done to the lines of facts in one memory file; ``before`` is its text as it was, where that is
    known, so that only what is new in it can be the new form of a line."""
    facts = [fact for fact in _written(memory.facts) if fact.target.partition("#")[0] == name]
    if not facts:
        return None
    try:
        there = memory.files.exists(name)
        text = memory.files.read(name) if there else ""
        missing = [fact for fact in facts if not _has(memory.files, fact)] if there else facts
    except MemoryFileError as error:
        return FileChange(name, problem=f"{name} is left as it is: {error}")
    if not missing:
        return None
    said = {statement(fact.target_line) for fact in facts}
    old = {statement(line) for line in (before or "").splitlines()}
    free = {
        section: [line for line in memory.files.lines(name, section) if statement(line) not in said | old]
        for section in {fact.target.partition("#")[2] for fact in missing}
    } if there else {}  # fmt: skip
    numbers = {line.strip(): number for number, line in reversed(list(enumerate(text.splitlines(), 1)))}
    edits = []
    for fact in missing:
        lines = free.get(fact.target.partition("#")[2], [])
        best = max(lines, key=lambda line: _likeness(fact.target_line, line), default=None)
        if best is not None and _likeness(fact.target_line, best) >= _LIKE:
            lines.remove(best)
            edits.append(
                HandEdit("changed", _said(fact, best), numbers.get(best.strip(), 1), fact.kind, fact.id, fact.fact,
                         best.strip())
            )  # fmt: skip
        else:
            edits.append(HandEdit("removed", fact.fact, fact_id=fact.id))
    return FileChange(name, tuple(edits), large=not there or too_much(edits, len(facts)))


def take_over(memory: HandMemory, change: FileChange) -> list[Taken]:
    """Makes a change by hand what is remembered. What the gate refuses stays in the file and is named with the reason.
    Where much is gone at once, a backup is made first.

    Raises ``MemoryFileError`` when a file cannot be written, or that backup cannot be made; then nothing is changed.
    """
    if change.large:
        try:
            Backups(memory.project).make(memory.db, "before edits by hand")
        except StoreError as error:
            sentence = f"Nothing of {change.name} was taken over, because no backup could be made: {error}"
            raise MemoryFileError(sentence) from error
    taken = [_take(memory, change.name, edit) for edit in change.edits]
    if change.name == NAME and memory.ledger.facts_file is not None:
        memory.ledger.facts_file.settle(change, whole=all(one.verb != "refused" for one in taken))
    memory.ledger.write_facts_json()
    return taken


def put_back(memory: HandMemory, change: FileChange) -> str:
    """Turns a change by hand away: the file says again what is remembered. Returns the name of the version that is kept
    of the file as it was, where one is. Raises ``MemoryFileError``."""
    version = ""
    if change.name == NAME and memory.ledger.facts_file is not None:
        version = memory.files.keep_version(NAME, memory.ledger.facts_file.path)
        memory.ledger.facts_file.path.unlink(missing_ok=True)
        memory.ledger.write_facts_json()
        return version
    for edit in change.edits:
        fact = memory.facts.get(edit.fact_id)
        if fact is None or not memory.facts.is_live(edit.fact_id):
            continue
        path, _, section = fact.target.partition("#")
        swapped = edit.target_line and memory.files.replace_line(path, section, edit.target_line, fact.target_line)
        if not swapped:
            memory.files.append_line(path, section, fact.target_line)
    return version


def _take(memory: HandMemory, name: str, edit: HandEdit) -> Taken:
    source = f"{name}:{edit.line}" if edit.line else name
    if edit.verb == "removed":
        try:
            memory.ledger.expire(edit.fact_id)
        except LookupError as error:
            return Taken("refused", edit.text, edit.fact_id, str(error))
        return Taken("removed", edit.text, edit.fact_id)
    if edit.updated and edit.updated > utc_now()[:10]:
        reason = f"{edit.updated} is still to come; “updated” is the day on which it was last known to hold."
        return Taken("refused", edit.text, edit.fact_id, reason, edit.line)
    if edit.verb == "dated":
        return _dated(memory, edit)
    proposal = Proposal(
        text=edit.text,
        origin=Origin.USER,
        proposer="user",
        source=source,
        kind=edit.kind,
        user_text=edit.text,
        target="fact",
    )
    if edit.verb == "added":
        verdict = memory.gate.admit(proposal)
    else:
        try:
            verdict = memory.ledger.replace(edit.fact_id, proposal, line=edit.target_line, kind=edit.kind)
        except LookupError as error:
            return Taken("refused", edit.text, edit.fact_id, str(error), edit.line)
    if verdict.action is Action.REFUSE:
        return Taken("refused", verdict.text, "", verdict.reason, edit.line)
    verb = "waiting" if verdict.action is Action.QUARANTINE else edit.verb
    if edit.updated and verdict.action is Action.LIVE and verdict.fact_id:
        memory.facts.date_new(verdict.fact_id, f"{edit.updated} 00:00:00")
    return Taken(verb, verdict.text, verdict.fact_id or "", verdict.reason, edit.line)


def _dated(memory: HandMemory, edit: HandEdit) -> Taken:
    """Another day of a statement that is otherwise the same: it was last known to hold then."""
    try:
        memory.facts.confirm(edit.fact_id, f"{edit.updated} 00:00:00")
    except (LookupError, ValueError) as error:
        return Taken("refused", edit.text, edit.fact_id, str(error), edit.line)
    return Taken("dated", edit.text, edit.fact_id, line=edit.line)


def _written(facts: FactStore) -> list[Fact]:
    return [
        fact for fact in facts.live_written(Scope.PROJECT, include_user=False)
        if fact.target_line and fact.target and fact.target != "fact"
    ]  # fmt: skip


def _has(files: MemoryFiles, fact: Fact) -> bool:
    path, _, section = fact.target.partition("#")
    return files.has_line(path, section, fact.target_line)


def _likeness(old: str, new: str) -> float:
    label, colon, _ = old.partition(": ")
    if colon and without_mark(new).startswith(f"{without_mark(label)}: "):
        return 100.0
    return float(fuzz.token_sort_ratio(statement(old), statement(new)))


def _said(fact: Fact, line: str) -> str:
    """What a line says where the old one was the fact in a certain form (a label, a list mark)."""
    before, found, after = fact.target_line.partition(fact.fact)
    line = line.strip()
    if found and line.startswith(before.strip()) and line.endswith(after):
        return line[len(before.strip()) : len(line) - len(after)].strip()
    return without_mark(line)


def sentences(change: FileChange, taken: Iterable[Taken]) -> Sequence[str]:
    """What was done, and what was refused, for people."""
    said = []
    for one in taken:
        where = f"{change.name}:{one.line}" if one.line else change.name
        if one.verb == "refused":
            said.append(f"{where} was not taken over: {one.reason} The file stays as it is until that is changed.")
        elif one.verb == "waiting":
            said.append(f"{where} waits for your yes: {one.reason}")
    return said
