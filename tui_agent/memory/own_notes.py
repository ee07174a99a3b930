"""What is remembered without a row: lines that the user wrote by hand into memory files, here or for all projects.

Those about the user are in every prompt, so they belong to the answer to "what do you remember about me?".
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.places import RULES, USER, MemoryFileError
from tui_agent.memory.sections import statement
from tui_agent.memory.statements import LEARNED, PREFERENCES
from tui_agent.memory.types import Fact, Scope
from tui_agent.memory.upkeep import Memory

Where = Literal["project", "everywhere"]


@dataclass(frozen=True, slots=True)
class OwnLine:
    """A line by hand that no fact of this project is written on. ``id`` is made of what it says; ``path`` is for
    people; ``name`` is the memory file, ``section`` the heading above it where that matters; ``changed_at`` is the
    file's time, UTC text."""

    id: str
    where: Where
    text: str
    path: str
    changed_at: str
    name: str = USER
    section: str = ""


def files_for_all(memory: Memory) -> MemoryFiles:
    """The user's notes for all projects, as memory files; their earlier versions are not kept."""
    return MemoryFiles(memory.paths.config, has_secret=memory.files.has_secret, keep_versions=0)


def own_lines(memory: Memory) -> list[OwnLine]:
    """The lines about the user, those for all projects first. A file that cannot be read has none here; the fixed part
    of the prompt leaves it out too, and says so."""
    live = [fact for fact in memory.facts.live_written() if fact.target == USER]
    everywhere = [fact for fact in live if fact.scope is Scope.USER]
    return [
        *_lines(files_for_all(memory), "everywhere", everywhere),
        *_lines(memory.files, "project", [fact for fact in live if fact.scope is Scope.PROJECT]),
    ]


def all_lines(memory: Memory) -> list[OwnLine]:
    """The lines by hand of all memory files that are no skills or summaries: those about the user, then AGENTS.md
    (preferences and learned behaviours), rules, and the rest of ``knowledge/``."""
    live = [fact for fact in memory.facts.live_written(Scope.PROJECT, include_user=False) if fact.target_line]
    found = own_lines(memory)
    for name, section in [*(tuple(place.split("#")) for place in (PREFERENCES, LEARNED)), (RULES, "")]:
        found += _lines(memory.files, "project", _written_in(live, name), name, section)
    for name in memory.files.listing():
        if name.startswith("knowledge/") and name != USER:
            found += _lines(memory.files, "project", _written_in(live, name), name)
    return found


def _written_in(facts: list[Fact], name: str) -> list[Fact]:
    return [fact for fact in facts if fact.target.partition("#")[0] == name]


def _lines(
    files: MemoryFiles, where: Where, facts: list[Fact], name: str = USER, section: str = ""
) -> Iterator[OwnLine]:
    known = {statement(fact.target_line) for fact in facts}
    with contextlib.suppress(MemoryFileError):
        if not files.exists(name):
            return
        file = files.file(name)
        for line in files.lines(name, section):
            said = statement(line)
            if said and said not in known and any(map(str.isalpha, said)):
                known.add(said)
                place = where if name == USER else f"{where}:{name}"
                digest = hashlib.sha256(f"{place}:{said}".encode()).hexdigest()[:12]
                text = line.strip().removeprefix("- ")
                yield OwnLine(digest, where, text, str(file.path), file.modified_at, name, section)


def find_line(memory: Memory, line_id: str) -> OwnLine:
    """One of them by its id. Raises ``LookupError`` when no line says that any more."""
    for line in all_lines(memory):
        if line.id == line_id:
            return line
    raise LookupError("That line is not there any more.")


def change_line(memory: Memory, line: OwnLine, new: str = "") -> bool:
    """Puts ``new`` in its place, or takes it out. False when the line is gone. Raises ``MemoryFileError``, also for the
    rules, which only the user edits."""
    files = files_for_all(memory) if line.where == "everywhere" else memory.files
    there = files.lines(line.name, line.section)
    whole = next((one for one in there if statement(one) == statement(line.text)), line.text)
    if not new.strip():
        return files.remove_line(line.name, line.section, whole)
    mark = "- " if whole.lstrip().startswith("- ") else ""
    return files.replace_line(line.name, line.section, whole, f"{mark}{' '.join(new.split())}")
