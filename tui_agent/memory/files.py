"""The memory files: plain text the user can read, edit and version. One door for every write of the program.

An edit is exact or refused, lands in one step, keeps the file's style, and leaves the previous version behind. A file
that somebody else changes at the same moment is never overwritten.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.memory.places import (
    AGENTS,
    RULES,
    STACK,
    SUMMARIES,
    TEXT_SUFFIXES,
    USER,
    EditRefused,
    MemoryFileError,
    Place,
    ReadRefused,
    readable,
    writable,
)
from tui_agent.memory.sections import (
    drop_line,
    has_line,
    insert_line,
    line_diff,
    one_line,
    only_match,
    section_lines,
    swap_line,
)
from tui_agent.memory.text import format_utc, new_id
from tui_agent.memory.textfile import (
    Announce,
    ChangedOnDisk,
    TextFile,
    TextFileError,
    folder_lock,
    read_text,
    write_text,
)

if TYPE_CHECKING:
    from tui_agent.memory.line_journal import LineJournal

__all__ = ["EditRefused", "EditResult", "FileVersion", "MemoryFile", "MemoryFileError", "MemoryFiles", "ReadRefused"]

MAX_FILE_CHARS = 200_000
_TRIES = 4

SecretCheck = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """One file: ``name`` relative to the memory folder, its text with ``\\n`` line ends, hash, size in bytes, date.

    ``digest`` changes with every byte; ``modified_at`` is UTC text.
    """

    name: str
    path: Path
    text: str
    digest: str
    size: int
    modified_at: str


@dataclass(frozen=True, slots=True)
class EditResult:
    """A write that happened, or was not needed (``changed`` is false and ``before == after``).

    ``before`` and ``after`` are the whole texts as on disk; ``diff_line`` is one plain line for people; ``version``
    names the kept previous version, empty for a new file.
    """

    name: str
    path: Path
    created: bool
    changed: bool
    diff_line: str
    before: str
    after: str
    digest: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A kept previous version of a file; ``id`` is time-ordered, ``saved_at`` is UTC text."""

    id: str
    name: str
    path: Path
    size: int
    saved_at: str


class MemoryFiles:
    """The files below ``root`` (``.agent-memory``). Thread-safe, and safe beside another process of the program.

    ``has_secret`` says whether a text holds a secret; such text is refused whole. ``announce(path, digest)`` is called
    before each write, so that a watcher can tell the program's own writes from others'.
    """

    def __init__(
        self,
        root: Path,
        *,
        has_secret: SecretCheck | None = None,
        announce: Announce | None = None,
        keep_versions: int = 20,
    ) -> None:
        self.root = root
        self.has_secret = has_secret
        self.announce = announce
        self.keep_versions = keep_versions
        self.journal: LineJournal | None = None
        self._lock = threading.RLock()

    # --- reading --------------------------------------------------------------------------------

    def read(self, name: str) -> str:
        """The text of a memory file, with ``\\n`` line ends. Raises :class:`ReadRefused` as :meth:`file` does."""
        return self.file(name).text

    def file(self, name: str) -> MemoryFile:
        """One memory file. Raises :class:`ReadRefused` when there is none, or it is not readable text."""
        place = readable(self.root, name)
        found = self._read(place, ReadRefused)
        if found is None:
            there = ", ".join(self.listing()) or "none"
            raise ReadRefused(f"There is no memory file {place.name}. Files there: {there}.")
        return _memory_file(place, found)

    def exists(self, name: str) -> bool:
        """Whether a memory file of this name can be read."""
        with contextlib.suppress(ReadRefused):
            return self._read(readable(self.root, name), ReadRefused) is not None
        return False

    def listing(self) -> list[str]:
        """Names of all memory files, in the order of the prompt, then by name."""
        found = [name for name in (AGENTS, USER, STACK, RULES) if (self.root / name).is_file()]
        for folder in ("knowledge", "skills", SUMMARIES):
            for path in sorted((self.root / folder).rglob("*")):
                name = path.relative_to(self.root).as_posix()
                hidden = any(part.startswith(".") for part in name.split("/"))
                if path.suffix.lower() in TEXT_SUFFIXES and not hidden and name not in found and path.is_file():
                    found.append(name)
        return found

    def startup_files(self) -> list[MemoryFile]:
        """What is read before the first answer, in this order: AGENTS.md, knowledge/user.md, knowledge/tech-stack.md.

        A file that is missing, empty or not readable is left out; :meth:`problems` names the last kind.
        """
        found = []
        for name in (AGENTS, USER, STACK):
            with contextlib.suppress(ReadRefused):
                file = self.file(name)
                if file.text.strip():
                    found.append(file)
        return found

    def problems(self) -> list[str]:
        """One sentence for each memory file that is there and cannot be read."""
        found = []
        for name in self.listing():
            try:
                self.read(name)
            except ReadRefused as error:
                found.append(str(error))
        return found

    def check_path(self, name: str) -> str:
        """The name under which the model may write this file. Raises :class:`EditRefused` when it may not."""
        return writable(self.root, name).name

    # --- the model's tool -----------------------------------------------------------------------

    def edit_file(self, path: str, old_string: str, new_string: str) -> EditResult:
        """Replace ``old_string``, which must occur exactly once; when it is empty, create the file or append to it.

        Line ends and a byte order mark of the file are kept; appended text starts on a line of its own and ends with a
        line end. Raises :class:`EditRefused`, and then nothing was written: the place is not for memory, the text holds
        a secret, there is no or more than one match, nothing would change, or the file cannot be written.
        """
        place = writable(self.root, path)

        def change(found: TextFile | None) -> str:
            text, newline = (found.text, found.newline) if found else ("", "\n")
            new = _with_newlines(new_string, newline)
            if not old_string:
                if not new_string.strip():
                    raise EditRefused("Nothing was written: new_string is empty. Give the text to save.")
                gap = newline if text and not text.endswith("\n") else ""
                return f"{text}{gap}{new}" + ("" if new.endswith("\n") else newline)
            if found is None:
                raise EditRefused(f"There is no file {place.name} yet. To create it, call edit_file with an empty "
                                  "old_string and the whole text as new_string.")  # fmt: skip
            start, end = only_match(place.name, text, old_string)
            return text[:start] + new + text[end:]

        result = self._rewrite(place, change, checked=new_string)
        if not result.changed:
            raise EditRefused(f"Nothing was written: {place.name} already holds exactly this text.")
        return result

    # --- single lines, each the projection of one row -------------------------------------------

    def append_line(self, name: str, section: str, line: str) -> EditResult:
        """Add ``line`` at the end of ``## section`` (of the file when empty); file and section are made when missing.

        A section that already says the same (apart from case, list mark and punctuation) stays as it is: ``changed`` is
        false. Raises :class:`EditRefused`.
        """
        place, line = writable(self.root, name), one_line(line)

        def change(found: TextFile | None) -> str:
            text, newline = (found.text, found.newline) if found else ("", "\n")
            return text if has_line(text, section, line) else insert_line(text, section, line, newline)

        with self._noted(place.name, section, new=line):
            return self._rewrite(place, change, checked=line)

    def replace_line(self, name: str, section: str, old: str, new: str) -> bool:
        """Put ``new`` where the line that says ``old`` stands. False when the section has no such line (any more)."""
        place, new = writable(self.root, name), one_line(new)
        with self._noted(place.name, section, old, new):
            return self._change_line(place, lambda text: swap_line(text, section, old, new), checked=new)

    def remove_line(self, name: str, section: str, line: str) -> bool:
        """Take out the line that says this. False when the section has no such line (any more)."""
        place = writable(self.root, name)
        with self._noted(place.name, section, line):
            return self._change_line(place, lambda text: drop_line(text, section, line))

    def lines(self, name: str, section: str = "") -> list[str]:
        """The non-empty lines of a section, or of the whole file; empty when there is no such file."""
        found = self._read(readable(self.root, name), ReadRefused)
        return section_lines(found.text, section) if found else []

    def has_line(self, name: str, section: str, line: str) -> bool:
        """Whether the section says this already."""
        found = self._read(readable(self.root, name), ReadRefused)
        return found is not None and has_line(found.text, section, line)

    # --- versions -------------------------------------------------------------------------------

    def versions(self, name: str) -> list[FileVersion]:
        """Kept previous versions of a file, newest first."""
        place = readable(self.root, name)
        found = []
        for path in self._version_folder(place.name).glob("*"):
            with contextlib.suppress(OSError):
                status = path.stat()
                saved = format_utc(datetime.fromtimestamp(status.st_mtime, timezone.utc))
                found.append(FileVersion(path.stem, place.name, path, status.st_size, saved))
        return sorted(found, key=lambda version: version.id, reverse=True)

    def keep_version(self, name: str, path: Path) -> str:
        """Keep the present text of a file of the program itself (``facts.json``) as a version; returns its path below
        the memory folder. A text with a secret in it is not kept. Raises :class:`EditRefused`."""
        try:
            found = read_text(path)
        except TextFileError as error:
            raise EditRefused(f"{name} is left alone: {error}.") from error
        if found is None or (self.has_secret is not None and self.has_secret(found.text)):
            return ""
        kept = self._version_folder(name) / f"{self._keep(name, found)}{Path(name).suffix}"
        return kept.relative_to(self.root).as_posix()

    def restore(self, name: str, version: str) -> EditResult:
        """Bring a kept version back; the present text becomes a version itself. Raises :class:`EditRefused`."""
        place = writable(self.root, name)
        kept = next((one for one in self.versions(name) if one.id == version), None)
        saved = read_text(kept.path) if kept else None
        if saved is None:
            raise EditRefused(f"There is no kept version {version} of {place.name}.")
        return self._rewrite(place, lambda _: saved.text)

    def revert(self, result: EditResult) -> bool:
        """Take an edit back. False when the file has changed since: then nothing is touched."""
        place = writable(self.root, result.name)

        def change(found: TextFile | None) -> str:
            if found is None or found.digest != result.digest:
                raise _Stale
            return result.before

        with self._lock, contextlib.suppress(_Stale):
            if result.created:
                with self._held():
                    found = self._read(place, EditRefused)
                    if found is None or found.digest != result.digest:
                        return False
                    self._keep(place.name, found)
                    try:
                        place.path.unlink()
                    except OSError as error:
                        raise EditRefused(f"{place.name} cannot be removed: {error.strerror or error}.") from error
                    return True
            self._rewrite(place, change)
            return True
        return False

    # --- inside ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _noted(self, name: str, section: str, old: str = "", new: str = "") -> Iterator[None]:
        """A change of a line that may belong to a row, written down before it is made."""
        if self.journal is None:
            yield
            return
        try:
            self.journal.note(self, name, section, old, new)
        except TextFileError as error:
            raise EditRefused(f"Nothing was written to {name}: {error}.") from error
        try:
            yield
        except BaseException:
            self.journal.failed()
            raise

    def _read(self, place: Place, refuse: type[MemoryFileError]) -> TextFile | None:
        try:
            return read_text(place.path)
        except TextFileError as error:
            raise refuse(f"{place.name} is left alone: {error}.") from error

    def _change_line(self, place: Place, change: Callable[[str], str | None], checked: str = "") -> bool:
        def apply(found: TextFile | None) -> str:
            text = change(found.text) if found else None
            if text is None:
                raise _Stale
            return text

        with contextlib.suppress(_Stale):
            self._rewrite(place, apply, checked=checked)
            return True
        return False

    def _rewrite(self, place: Place, change: Callable[[TextFile | None], str], checked: str = "") -> EditResult:
        """Read, change, keep the old version, write; again when somebody else wrote in between."""
        if checked and self.has_secret and self.has_secret(checked):
            raise EditRefused("Nothing was written: the text holds something that looks like a password, key or token. "
                              "Save it without that part.")  # fmt: skip
        with self._lock, self._held():
            for _ in range(_TRIES):
                found = self._read(place, EditRefused)
                before = found.text if found else ""
                after = change(found)
                if found and after == before:
                    return EditResult(place.name, place.path, False, False, "", before, after, found.digest)
                self._check(place, before, after)
                version = self._keep(place.name, found) if found else ""
                try:
                    self._make_folder(place)
                    hashed = write_text(place.path, after, found, self.announce)
                except ChangedOnDisk:
                    continue
                except TextFileError as error:
                    raise EditRefused(f"{place.name}: {error}.") from error
                diff = line_diff(before, after)
                return EditResult(place.name, place.path, found is None, True, diff, before, after, hashed, version)
        raise EditRefused(
            f"{place.name} is being changed by another program right now. Nothing was written; try again."
        )

    def _check(self, place: Place, before: str, after: str) -> None:
        if len(after) > MAX_FILE_CHARS:
            raise EditRefused(f"Nothing was written: {place.name} would grow beyond {MAX_FILE_CHARS:,} characters. "
                              "Memory files are for what matters, in a few lines.")  # fmt: skip
        if "\0" in after:
            raise EditRefused("Nothing was written: the text holds a zero byte.")
        # Two harmless edits could put a secret together.
        if self.has_secret and self.has_secret(after) and not self.has_secret(before):
            raise EditRefused("Nothing was written: with this text the file would hold what looks like a password, key "
                              "or token.")  # fmt: skip

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        try:
            with folder_lock(self.root):
                yield
        except TextFileError as error:
            raise EditRefused(f"Nothing was written: {error}.") from error
        except FileNotFoundError as error:
            raise EditRefused(f"Nothing was written: the memory folder {self.root} is gone.") from error

    def _make_folder(self, place: Place) -> None:
        try:
            place.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TextFileError(f"its folder cannot be made: {error.strerror or error}. Nothing was changed") from error

    def _version_folder(self, name: str) -> Path:
        return self.root / "backups" / "files" / name

    def _keep(self, name: str, found: TextFile) -> str:
        """Save a version and drop the oldest beyond the limit. A full disk stops the edit, not the old version."""
        folder = self._version_folder(name)
        version = new_id()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            kept = folder / f"{version}{Path(name).suffix}"
            write_text(kept, found.text, None)
        except (OSError, TextFileError) as error:
            raise EditRefused(
                f"Nothing was written: the previous version of {name} could not be kept ({error})."
            ) from error
        for old in sorted(folder.iterdir(), key=lambda path: path.name, reverse=True)[self.keep_versions :]:
            with contextlib.suppress(OSError):
                old.unlink()
        return version


class _Stale(Exception):
    """The line or text to change is not there any more."""


def _memory_file(place: Place, found: TextFile) -> MemoryFile:
    status = place.path.stat()
    modified = format_utc(datetime.fromtimestamp(status.st_mtime, timezone.utc))
    text = found.text.replace("\r\n", "\n")
    return MemoryFile(place.name, place.path, text, found.digest, status.st_size, modified)


def _with_newlines(text: str, newline: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", newline)
