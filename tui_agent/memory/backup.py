"""Backups: one dated directory that holds database, memory files and vector index of one moment, with their hashes.

A backup appears under its name only when it is whole and checked; nothing ever takes the place of an earlier one.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui_agent import __version__
from tui_agent.memory.chroma_collection import MADE_BY
from tui_agent.memory.connection import StoreError, check_file, connect, explained, retry_locked
from tui_agent.memory.database import Database
from tui_agent.memory.exchange import export_tier2
from tui_agent.memory.facts_schema import fact_of
from tui_agent.memory.holding import holding
from tui_agent.memory.text import new_id, parse_utc, utc_now
from tui_agent.memory.textfile import TextFileError, folder_lock, sync_folder
from tui_agent.memory.traces import files_below, is_database, tables
from tui_agent.memory.types import Scope
from tui_agent.project import Project

FORMAT = 1
DATABASE, FACTS, MANIFEST = "memory.db", "facts.json", "manifest.json"
FILES, VECTORS = "files", "vector-store"
KEEP_DAILY = 14
DAMAGED = "-damaged"

STAGE = ".restoring-"
"""What the names of a restore's private copies begin with."""
_UNFINISHED = ".unfinished-"
_NAME = re.compile(r"\d{4}-\d\d-\d\d-\d{6}(?:-[a-z0-9-]+)?")
# What a backup of the folder leaves out: what is in it in a better form, what can be made again, and the backups.
_LEFT_OUT = ("memory.db", "vector-store", "backups", "logs", "facts.json")


@dataclass(frozen=True, slots=True)
class Backup:
    """One backup. ``manifest`` is empty when it has none that can be read; ``reason`` says what it was made for."""

    path: Path
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of its directory, which begins with its date."""
        return self.path.name

    @property
    def made_at(self) -> str:
        """UTC ``YYYY-MM-DD HH:MM:SS``; from the name when there is no manifest."""
        day, clock = self.name[:10], self.name[11:17]
        return str(self.manifest.get("made_at") or f"{day} {clock[:2]}:{clock[2:4]}:{clock[4:6]}")

    @property
    def reason(self) -> str:
        """What it was made for: empty for an ordinary one, else "before …" or "damaged"."""
        return str(self.manifest.get("reason", "damaged" if self.name.endswith(DAMAGED) else ""))

    @property
    def kept(self) -> bool:
        """Whether rotation leaves it alone."""
        return bool(self.reason)

    @property
    def counts(self) -> dict[str, int]:
        """Rows by table at the moment it was made."""
        return dict(self.manifest.get("counts", {}))

    @property
    def database(self) -> Path:
        """The copy of the database."""
        return self.path / DATABASE

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(path.stat().st_size for path in files_below([self.path]))


class Backups:
    """The backups of one project.

    Args:
        clock: UTC ``YYYY-MM-DD HH:MM:SS``.
        keep_daily: of how many days the last ordinary backup is kept. Those made before something risky stay.
    """

    def __init__(self, project: Project, *, clock: Callable[[], str] = utc_now, keep_daily: int = KEEP_DAILY) -> None:
        self.project = project
        self.folder = project.backups_dir
        self._clock = clock
        self._keep_daily = max(1, keep_daily)

    # --- looking ----------------------------------------------------------------------------------

    def all(self) -> list[Backup]:
        """Every backup, newest first, also one whose manifest is gone or broken."""
        if not self.folder.is_dir():
            return []
        found = [path for path in self.folder.iterdir() if path.is_dir() and _NAME.fullmatch(path.name)]
        return [Backup(path, read_manifest(path)) for path in sorted(found, key=lambda path: path.name, reverse=True)]

    def find(self, name: str) -> Backup:
        """The backup of this name (its beginning will do when only one begins so), this folder, or the ``latest`` sound
        one. Raises ``LookupError`` with what there is."""
        every = self.all()
        if name == "latest":
            for backup in every:
                if not self.verify(backup):
                    return backup
            raise LookupError(
                "There is no sound backup of this project yet. `tui-agent memory backup` makes one."
                if not every
                else f"None of the {len(every)} backups is sound; `tui-agent memory check` says what is wrong."
            )
        fitting = [backup for backup in every if backup.name == name] or [
            backup for backup in every if name and backup.name.startswith(name)
        ]
        if len(fitting) == 1:
            return fitting[0]
        if len(fitting) > 1:
            raise LookupError(f"{len(fitting)} backups begin with {name}: {', '.join(b.name for b in fitting[:5])}.")
        folder = Path(name).expanduser()
        if (folder / MANIFEST).is_file():
            return Backup(folder.resolve(), read_manifest(folder))
        there = ", ".join(backup.name for backup in every[:8]) or "none"
        raise LookupError(f"There is no backup {name}. Backups of this project: {there}.")

    def verify(self, backup: Backup) -> list[str]:
        """What is wrong with a backup, as sentences; an empty list means that it can be restored as it is.

        The vector index is left out: it can be made again, see :meth:`vectors_match`.
        """
        manifest = backup.manifest
        if not manifest:
            return [f"{backup.path / MANIFEST} is missing or cannot be read, so nothing vouches for this backup."]
        if manifest.get("format") != FORMAT:
            return [f"{backup.name} was made by another version of tui-agent (format {manifest.get('format')})."]
        faults = []
        listed: dict[str, Any] = manifest["files"]
        for name, expected in listed.items():
            if name.startswith(f"{VECTORS}/"):
                continue
            path = backup.path / name
            if not _inside(backup.path, name) or path.is_symlink() or not path.is_file():
                faults.append(f"{name} is missing from {backup.name}.")
            elif file_hash(path) != expected["sha256"]:
                faults.append(f"{name} in {backup.name} is not as it was when the backup was made.")
        here = {path.relative_to(backup.path).as_posix() for path in files_below([backup.path])}
        added = sorted(name for name in here - set(listed) - {MANIFEST} if not name.startswith(f"{VECTORS}/"))
        if added:
            faults.append(f"{added[0]} in {backup.name} was not there when the backup was made.")
        if DATABASE not in listed:
            faults.append(f"{backup.name} holds no database.")
        if not faults:
            faults = [f"{DATABASE} in {backup.name}: {fault}" for fault in check_file(backup.database)]
        if not faults and row_counts(backup.database) != backup.counts:
            faults.append(f"{DATABASE} in {backup.name} does not hold the number of rows that its manifest says.")
        return faults

    def vectors_match(self, backup: Backup) -> bool:
        """Whether the backup holds a vector index that belongs to its database, unchanged."""
        listed = {name for name in backup.manifest.get("files", {}) if name.startswith(f"{VECTORS}/")}
        here = {path.relative_to(backup.path).as_posix() for path in files_below([backup.path / VECTORS])}
        return (
            bool(listed)
            and listed == here
            and all(file_hash(backup.path / name) == backup.manifest["files"][name]["sha256"] for name in listed)
        )

    # --- making -----------------------------------------------------------------------------------

    def make(self, db: Database, reason: str = "") -> Backup:
        """Makes a backup of the project now; others may go on writing, they wait while the copy is taken.

        ``reason`` such as "before import" becomes part of the name and keeps the backup from rotation.
        Raises :class:`StoreError` when the copy cannot be made or is not sound; earlier backups are never touched.
        """
        if db.path != self.project.db_path:
            raise ValueError(f"{db.path} is not the database of {self.project.root}.")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with folder_lock(self.folder):
                self._clear_unfinished()
                temporary = self.folder / f"{_UNFINISHED}{new_id()}"
                temporary.mkdir(mode=0o700)
                try:
                    made = self._fill(temporary, db, reason)
                    name = self._free_name(reason)
                    temporary.rename(self.folder / name)
                    sync_folder(self.folder)
                finally:
                    shutil.rmtree(temporary, ignore_errors=True)
                if not reason:
                    self._rotate()
        except TextFileError as error:
            raise StoreError(f"The backup was not made: {error}.", "locked", self.folder) from error
        except OSError as error:
            raise StoreError(
                f"The backup was not made: {error.filename or self.folder}: {error.strerror or error}. Earlier "
                "backups are as they were.", "full" if error.errno == errno.ENOSPC else "io", self.folder,
            ) from error  # fmt: skip
        return Backup(self.folder / name, made)

    def clear_unfinished(self) -> None:
        """Removes what killed backups and restores left. Only for a process that has the project's database open: then
        no restore can be under way. Raises :class:`StoreError` when another process makes a backup just now."""
        if not self.folder.is_dir():
            return
        try:
            with folder_lock(self.folder):
                self._clear_unfinished()
                for path in self.folder.glob(f"{STAGE}*"):
                    shutil.rmtree(path, ignore_errors=True)
        except TextFileError as error:
            raise StoreError(str(error), "locked", self.folder) from error

    def _fill(self, target: Path, db: Database, reason: str) -> dict[str, Any]:
        with writers_held(self.project.db_path):
            db.vacuum_into(target / DATABASE)
            self._copy_files(target)
        write_facts(target)
        note = self._copy_vectors(target)
        manifest = {
            "format": FORMAT,
            "made_at": self._clock(),
            "reason": reason,
            "project": {"id": self.project.id, "name": self.project.name},
            "program": __version__,
            "schema": schema_names(target / DATABASE),
            "counts": row_counts(target / DATABASE),
            "live_facts": len(live_ids(target / DATABASE)),
            "integrity": "ok",
            "vector_store": note,
            "files": hashes_below(target),
        }
        write_manifest(target, manifest)
        faults = self.verify(Backup(target, manifest))
        if faults:
            raise StoreError(f"The backup is not sound and was thrown away: {faults[0]}", "corrupt", target)
        return manifest

    def _copy_files(self, target: Path) -> None:
        source = self.project.memory_dir
        for path in files_below([source], [source / name for name in _LEFT_OUT]):
            name = path.relative_to(source)
            if not name.parts[0].startswith(_LEFT_OUT) and not name.name.endswith(".tmp"):
                copy_synced(path, target / FILES / name)

    def _copy_vectors(self, target: Path) -> str:
        """Copies the vector index when it rests and fits the copied database; returns what was done, as a sentence."""
        source = self.project.vector_dir
        rebuilt = "a restore makes it anew from the vectors in memory.db"
        if not source.is_dir():
            return f"There was no vector index; {rebuilt}."
        with holding(self.project.lock_path) as mine:
            if not mine:
                return f"The vector index was in use; {rebuilt}."
            before = hashes_below(source)
            index, database = indexed_ids(source), live_ids(target / DATABASE)
            if index is None or index != database:
                return f"The vector index did not hold the same facts as the database; {rebuilt}."
            for name in before:
                copy_synced(source / name, target / VECTORS / name)
            if hashes_below(source) != before or hashes_below(target / VECTORS) != before:
                shutil.rmtree(target / VECTORS)
                return f"The vector index changed while it was copied; {rebuilt}."
        return "The vector index was copied."

    def _free_name(self, reason: str) -> str:
        moment = parse_utc(self._clock()).strftime("%Y-%m-%d-%H%M%S")
        words = "-".join(re.findall(r"[a-z0-9]+", reason.lower()))[:40].strip("-")
        base = f"{moment}-{words}" if words else moment
        names = (base, *(f"{base}-{number}" for number in range(2, 1000)))
        return next(name for name in names if not (self.folder / name).exists())

    def _clear_unfinished(self) -> None:
        """Removes what a killed run left; the folder's lock says that no run is under way."""
        for path in self.folder.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(path, ignore_errors=True)

    def _rotate(self) -> list[str]:
        """Keeps the last ordinary backup of each of the last days that have one; returns the names removed."""
        days: set[str] = set()
        removed = []
        for backup in self.all():
            day = backup.name[:10]
            if backup.kept:
                continue
            if day in days or len(days) >= self._keep_daily:
                # Out of the list in one step: a run that is killed here leaves no half of a backup.
                going = backup.path.rename(self.folder / f"{_UNFINISHED}{backup.name}")
                shutil.rmtree(going, ignore_errors=True)
                removed.append(backup.name)
            days.add(day)
        return removed


# --- pieces ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def writers_held(path: Path) -> Iterator[None]:
    """Makes every writer of the database wait. Rows and their lines in files change inside one transaction, so both are
    of one moment in what is copied here."""
    with contextlib.closing(connect(path)) as connection, explained(path):
        retry_locked(lambda: connection.execute("BEGIN IMMEDIATE"))
        try:
            yield
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a backup, or an empty dict when it is not one."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    shape = isinstance(manifest, dict) and isinstance(manifest.get("files"), dict)
    if not shape or not all(isinstance(entry, dict) and "sha256" in entry for entry in manifest["files"].values()):
        return {}
    return manifest if isinstance(manifest.get("counts"), dict) else {}


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Writes the manifest in one step, readable by the user alone."""
    temporary = folder / f"{MANIFEST}.tmp"
    with os.fdopen(os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        json.dump(manifest, file, ensure_ascii=False, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST)
    sync_folder(folder)


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def hashes_below(folder: Path) -> dict[str, dict[str, Any]]:
    """``{name: {"sha256", "bytes"}}`` of every file below ``folder``, manifest left out."""
    return {
        path.relative_to(folder).as_posix(): {"sha256": file_hash(path), "bytes": path.stat().st_size}
        for path in files_below([folder])
        if path.name != MANIFEST or path.parent != folder
    }


def copy_synced(source: Path, target: Path) -> None:
    """Copies one file with its permission bits, down to the disk."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.copyfile(source, target)
    shutil.copymode(source, target)
    with target.open("rb") as file:
        os.fsync(file.fileno())


def row_counts(database: Path) -> dict[str, int]:
    """Rows by table of a database file; tables behind full-text indexes are left out."""
    with contextlib.closing(connect(database, readonly=True)) as connection, explained(database):
        virtual = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        hidden = ("sqlite_", *(f"{row[0]}_" for row in virtual))
        names = [name for name in tables(connection) if not name.startswith(hidden)]
        return {name: int(connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]) for name in names}


def schema_names(database: Path) -> list[str]:
    """The schema steps a database file has taken, as ``room/step``."""
    with contextlib.closing(connect(database, readonly=True)) as connection, contextlib.suppress(sqlite3.Error):
        rows = connection.execute("SELECT room, name FROM migrations ORDER BY room, name").fetchall()
        return [f"{row[0]}/{row[1]}" for row in rows]
    return []


def live_ids(database: Path) -> set[str]:
    """Ids of the live facts in a database file."""
    with contextlib.closing(connect(database, readonly=True)) as connection, contextlib.suppress(sqlite3.Error):
        return {str(row[0]) for row in connection.execute("SELECT id FROM live_memory")}
    return set()


_OUR_IDS = (
    "SELECT DISTINCT e.embedding_id FROM embeddings e JOIN segments s ON s.id = e.segment_id "
    "JOIN collection_metadata m ON m.collection_id = s.collection AND m.key = 'made_by' AND m.str_value = ?"
)


def indexed_ids(vector_dir: Path) -> set[str] | None:
    """Ids of the facts in a resting vector index, read from its SQLite file; ``None`` when that cannot be told.

    Another program's collections in the same folder do not count.
    """
    database = vector_dir / "chroma.sqlite3"
    if not is_database(database) or (vector_dir / "chroma.sqlite3-wal").exists():
        return None
    try:
        with contextlib.closing(connect(database, readonly=True)) as connection:
            # Not its foreign keys: Chroma's own tables name one that does not exist.
            if connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                return None
            return {str(row[0]) for row in connection.execute(_OUR_IDS, (MADE_BY,))}
    except (sqlite3.Error, StoreError):
        return None


def write_facts(target: Path) -> None:
    """Writes the live facts of the copied database in ``target`` as plain JSON beside it, for people and other
    programs. An older schema, before a migration, has none."""
    with contextlib.closing(connect(target / DATABASE, readonly=True)) as connection:
        try:
            rows = connection.execute(
                "SELECT m.* FROM live_memory l JOIN memory m ON m.id = l.id ORDER BY m.created_at, m.id"
            ).fetchall()
            facts = [fact_of(row) for row in rows]
        except (sqlite3.Error, IndexError):
            return
    data = export_tier2((fact for fact in facts if fact.scope is Scope.PROJECT), "local")
    path = target / FACTS
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def _inside(folder: Path, name: str) -> bool:
    return not Path(name).is_absolute() and ".." not in Path(name).parts and (folder / name).is_relative_to(folder)
