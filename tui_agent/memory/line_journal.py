"""Closes the gap between a line in a file and the row it belongs to, which no transaction spans.

What is about to be done to a line is written down first. When the transaction of the rows is committed, the note goes;
when it is rolled back, or the process is killed before it was committed, the rows are the old ones and the files are
brought back to what they say. Whoever opens the memory next does that.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.memory.database import Database
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.sections import statement
from tui_agent.memory.text import new_id
from tui_agent.memory.textfile import TextFileError, read_text, write_text

if TYPE_CHECKING:
    from tui_agent.memory.files import MemoryFiles

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LineStep:
    """One change of a line: ``old`` is to be replaced by ``new``, taken out (no ``new``) or ``new`` is to be added.

    ``where`` names the folder (``project`` or ``everywhere``); ``was_there``: the file said ``new`` already.
    """

    where: str
    name: str
    section: str
    old: str = ""
    new: str = ""
    was_there: bool = False


class LineJournal:
    """Notes changes of lines for as long as the transaction around them is open.

    Args:
        folder: where the notes are; nothing but them is in it.
        says: whether a live row is written as this line: ``says(where, target, line)``.
    """

    def __init__(self, folder: Path, db: Database, says: Callable[[str, str, str], bool]) -> None:
        self._folder = folder
        self._db = db
        self._says = says
        self._files: dict[str, MemoryFiles] = {}
        self._steps: list[LineStep] = []
        self._path: Path | None = None
        self._failed = self._mending = False

    def watch(self, where: str, files: MemoryFiles) -> None:
        """Note what is done to the lines of these files."""
        self._files[where] = files
        files.journal = self

    def note(self, files: MemoryFiles, name: str, section: str, old: str, new: str) -> None:
        """A line is about to be changed. Outside of a transaction no row hangs on it, and nothing is noted.

        Raises:
            TextFileError: the note cannot be written; then the line must not be changed either.
        """
        if self._mending or not self._db.in_transaction:
            return
        where = next((key for key, known in self._files.items() if known is files), "")
        if not where:
            return
        if not self._steps:
            self._db.on_end(self._ended)
        there = bool(new) and self._has(files, name, section, new)
        self._steps.append(LineStep(where, name, section, old, new, there))
        self._write()

    def failed(self) -> None:
        """A change of a line has failed; the files are compared with the rows once the transaction has ended."""
        self._failed = True

    def recover(self) -> int:
        """Brings files back to the rows where a killed process left them between; returns how many notes it found."""
        if not self._folder.is_dir() or not any(self._folder.iterdir()):
            return 0
        found = 0
        with self._db.transaction():  # whoever is in the middle of something is waited for
            for path in sorted(self._folder.glob("*.json")):
                if path == self._path:
                    continue
                with contextlib.suppress(OSError, ValueError, TypeError, TextFileError):
                    note = read_text(path)
                    self._mend([LineStep(**step) for step in json.loads(note.text if note is not None else "[]")])
                    found += 1
                path.unlink(missing_ok=True)
            for left in self._folder.glob(".*.tmp"):
                left.unlink(missing_ok=True)
        return found

    def _write(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = None
        if self._path is None:
            self._path = self._folder / f"{new_id()}.json"
        else:
            before = read_text(self._path)
        write_text(self._path, json.dumps([asdict(step) for step in self._steps], ensure_ascii=False), before)

    def _ended(self, committed: bool) -> None:
        steps, self._steps = self._steps, []
        path, self._path = self._path, None
        failed, self._failed = self._failed, False
        if not committed or failed:
            self._mend(steps)
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _mend(self, steps: list[LineStep]) -> None:
        """What the rows do not say is taken back, what they do say is put back, last step first."""
        self._mending = True
        try:
            for step in reversed(steps):
                files = self._files.get(step.where)
                if files is None:
                    continue
                try:
                    self._mend_one(files, step)
                except (MemoryFileError, OSError) as error:
                    log.warning("a line of %s could not be brought back: %s", step.name, error)
        finally:
            self._mending = False

    def _mend_one(self, files: MemoryFiles, step: LineStep) -> None:
        target = f"{step.name}#{step.section}" if step.section else step.name
        wrong = bool(step.new) and not step.was_there and not self._says(step.where, target, step.new)
        missing = (
            bool(step.old)
            and self._says(step.where, target, step.old)
            and not self._has(files, step.name, step.section, step.old)
        )
        if wrong and missing and files.replace_line(step.name, step.section, step.new, step.old):
            return
        if wrong and self._has(files, step.name, step.section, step.new):
            files.remove_line(step.name, step.section, step.new)
        if missing:
            files.append_line(step.name, step.section, step.old)

    @staticmethod
    def _has(files: MemoryFiles, name: str, section: str, line: str) -> bool:
        """Whether a line says exactly this: "npm" and "NPM." are the same for a reader, not for a journal."""
        key = statement(line)
        with contextlib.suppress(MemoryFileError):
            return any(statement(each) == key for each in files.lines(name, section))
        return False
