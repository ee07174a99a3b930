"""What is remembered without a row: lines about the user that the user wrote by hand, here or for all projects.

They are in every prompt, so they belong to the answer to "what do you remember about me?".
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.places import USER, MemoryFileError
from tui_agent.memory.sections import statement
from tui_agent.memory.types import Fact, Scope
from tui_agent.memory.upkeep import Memory

Where = Literal["project", "everywhere"]


@dataclass(frozen=True, slots=True)
class OwnLine:
    """A line about the user that no fact of this project is written on. ``id`` is made of what it says; ``path`` is
    for people."""

    id: str
    where: Where
    text: str
    path: str
    changed_at: str


def files_for_all(memory: Memory) -> MemoryFiles:
    """The user's notes for all projects, as memory files; their earlier versions are not kept."""
    return MemoryFiles(memory.paths.config, has_secret=memory.files.has_secret, keep_versions=0)


def own_lines(memory: Memory) -> list[OwnLine]:
    """The lines of both files, those for all projects first. A file that cannot be read has none here; the fixed part
    of the prompt leaves it out too, and says so."""
    live = [fact for fact in memory.facts.live() if fact.target == USER]
    return [
        *_lines(files_for_all(memory), "everywhere", [fact for fact in live if fact.scope is Scope.USER]),
        *_lines(memory.files, "project", [fact for fact in live if fact.scope is Scope.PROJECT]),
    ]


def _lines(files: MemoryFiles, where: Where, facts: list[Fact]) -> Iterator[OwnLine]:
    known = {statement(fact.target_line) for fact in facts}
    with contextlib.suppress(MemoryFileError):
        if not files.exists(USER):
            return
        file = files.file(USER)
        for line in files.lines(USER):
            said = statement(line)
            if said and said not in known:
                known.add(said)
                digest = hashlib.sha256(f"{where}:{said}".encode()).hexdigest()[:12]
                yield OwnLine(digest, where, line.strip().removeprefix("- "), str(file.path), file.modified_at)


def find_line(memory: Memory, line_id: str) -> OwnLine:
    """One of them by its id. Raises ``LookupError`` when no line says that any more."""
    for line in own_lines(memory):
        if line.id == line_id:
            return line
    raise LookupError("That line is not there any more.")


def change_line(memory: Memory, line: OwnLine, new: str = "") -> bool:
    """Puts ``new`` in its place, or takes it out. False when the line is gone. Raises ``MemoryFileError``."""
    files = files_for_all(memory) if line.where == "everywhere" else memory.files
    whole = next((one for one in files.lines(USER) if statement(one) == statement(line.text)), line.text)
    if not new.strip():
        return files.remove_line(USER, "", whole)
    mark = "- " if whole.lstrip().startswith("- ") else ""
    return files.replace_line(USER, "", whole, f"{mark}{' '.join(new.split())}")
