"""Bringing a backup back: checked first, shown first, the present state kept first, and nothing deleted returns."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.memory.backup import (
    DAMAGED,
    DATABASE,
    FILES,
    STAGE,
    VECTORS,
    Backup,
    Backups,
    copy_synced,
    file_hash,
    live_ids,
    row_counts,
)
from tui_agent.memory.changes import Tombstones
from tui_agent.memory.chroma_index import set_aside
from tui_agent.memory.cold import ColdStore
from tui_agent.memory.connection import StoreError, connect, explained
from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.facts_file import FactsFile
from tui_agent.memory.history import History
from tui_agent.memory.holding import holding, in_use, take_alone
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.scrubbing import scrub_database, scrub_text, texts_of, without_mark
from tui_agent.memory.shredding import plain_journal
from tui_agent.memory.text import new_id, parse_utc, utc_now
from tui_agent.memory.textfile import TextFileError, folder_lock, read_text, sync_folder
from tui_agent.memory.traces import Spans, files_below
from tui_agent.memory.upkeep_store import UpkeepNotes
from tui_agent.project import Project

_MARKER = "restore-under-way.json"
# Files with lines that belong to rows: after a restore there are those of the backup and no others.
_WITH_ROWS = ("AGENTS.md", "knowledge", "conversations")


class RestoreRefused(Exception):
    """Nothing was changed; ``str(error)`` says why and what to do."""


@dataclass(slots=True)
class RestorePlan:
    """What a restore would change. Facts are live ones, by their text; ``rows`` maps a table to its number of rows now
    and then, where they differ; ``notes`` are sentences."""

    backup: Backup
    facts_back: list[str] = field(default_factory=list)
    facts_gone: list[str] = field(default_factory=list)
    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    files_changed: list[str] = field(default_factory=list)
    files_back: list[str] = field(default_factory=list)
    files_removed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    damaged: bool = False
    """The present database cannot be read; it is put aside, not backed up."""

    @property
    def changes(self) -> bool:
        """Whether anything would be different afterwards."""
        return bool(self.damaged or self.facts_back or self.facts_gone or self.rows or self.files_changed
                    or self.files_back or self.files_removed)  # fmt: skip


@dataclass(slots=True)
class Restored:
    """A restore that happened: what it changed, and where the state from before it is kept."""

    plan: RestorePlan
    kept: str
    held_back: int = 0
    """Facts of the backup that were deleted forever since, and did not return."""
    notes: list[str] = field(default_factory=list)


def unfinished(project: Project) -> str:
    """One sentence about a restore that was killed in the middle, or an empty string."""
    try:
        marker = json.loads((project.backups_dir / _MARKER).read_text("utf-8"))
        backup, kept = str(marker["backup"]), str(marker["kept"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return (
        f"Restoring {Path(backup).name} was interrupted, so files and database may be of two moments. Run "
        f"`tui-agent memory restore {backup}` again, or go back with `tui-agent memory restore {kept}`."
    )


def plan_restore(project: Project, backup: Backup) -> RestorePlan:
    """What bringing ``backup`` back would change; nothing is touched.

    Raises:
        RestoreRefused: the backup is not sound, or from a newer version of the program.
    """
    backups = Backups(project)
    faults = backups.verify(backup)
    if faults:
        others = "Another one may be: `tui-agent memory restore latest` takes the last sound one."
        raise RestoreRefused(f"This backup is not restored: {faults[0]} {others}")
    plan = RestorePlan(backup)
    made_for = backup.manifest.get("project", {})
    if made_for.get("id") != project.id:
        plan.notes.append(f"The backup was made in another place or project ({made_for.get('name', '?')}).")
    _compare_rows(project, backup, plan)
    _compare_files(project, backup, plan)
    if not backups.vectors_match(backup):
        plan.notes.append("The vector index is made anew from the vectors in the database.")
    return plan


def _compare_rows(project: Project, backup: Backup, plan: RestorePlan) -> None:
    then, now = _live_texts(backup.database), {}
    try:
        if project.db_path.exists():
            now, counts = _live_texts(project.db_path), row_counts(project.db_path)
        else:
            counts = {}
    except (StoreError, sqlite3.Error) as error:
        plan.damaged, counts = True, {}
        plan.notes.append(f"The present database cannot be read ({error}); it is put aside as it is.")
    plan.facts_back = [text for fact_id, text in then.items() if fact_id not in now]
    plan.facts_gone = [text for fact_id, text in now.items() if fact_id not in then]
    if not plan.damaged:
        shown = ("messages", "sessions", "memory", "quarantine", "wm_items")
        pairs = {name: (counts.get(name, 0), backup.counts.get(name, 0)) for name in shown}
        plan.rows = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _live_texts(database: Path) -> dict[str, str]:
    with contextlib.closing(connect(database, readonly=True)) as connection, explained(database):
        return {str(row[0]): str(row[1]) for row in connection.execute("SELECT id, fact FROM live_memory")}


def _compare_files(project: Project, backup: Backup, plan: RestorePlan) -> None:
    kept = {path.relative_to(backup.path / FILES).as_posix(): path for path in files_below([backup.path / FILES])}
    for name, path in sorted(kept.items()):
        target = project.memory_dir / name
        if (link := _link_on_the_way(project.memory_dir, target)) is not None:
            raise RestoreRefused(
                f"This backup is not restored: {link} is a link. Put a real file or folder in its place."
            )
        if not target.exists():
            plan.files_back.append(name)
        elif file_hash(target) != file_hash(path):
            plan.files_changed.append(name)
    here = files_below([project.memory_dir / name for name in _WITH_ROWS])
    plan.files_removed = [
        name for path in here if (name := path.relative_to(project.memory_dir).as_posix()) not in kept
    ]  # fmt: skip


def restore(project: Project, backup: Backup, *, clock: Callable[[], str] = utc_now) -> Restored:
    """Brings a backup back: database, memory files and vector index together.

    The present state is kept first, as a backup "before restore" (or, when the database is damaged, as its bare files).
    What was deleted forever since the backup was made stays deleted. A restore that is killed leaves a note that
    :func:`unfinished` reads; running it again finishes it.

    Raises:
        RestoreRefused: the backup is not sound, or the project is open in another window or command.
        StoreError: the disk failed; the sentence says where the state from before is.
    """
    plan = plan_restore(project, backup)
    backups = Backups(project, clock=clock)
    if not plan.damaged and in_use(project.db_path):
        raise _held(project)
    with holding(project.lock_path) as mine:
        if not mine:
            raise _held(project)
        try:
            with _staged(project, backup) as stage:
                held_back = _respect_deletions(project, stage, plan.damaged)
                kept = _keep_present(project, backups, plan, clock)
                result = Restored(plan, kept, held_back, list(plan.notes))
                _write_marker(project, backup, kept)
                _put_database(project, stage / DATABASE, plan.damaged)
                _put_files(project, stage, plan)
                _put_vectors(project, backups, backup, result)
                (project.backups_dir / _MARKER).unlink()
        except OSError as error:
            where = error.filename or project.memory_dir
            raise StoreError(
                f"The restore stopped at {where}: {error.strerror or error}. Make room or mend that, and run it again; "
                "the state from before is in the newest backup “before restore”.", "io", project.db_path,
            ) from error  # fmt: skip
    return result


def _held(project: Project) -> RestoreRefused:
    return RestoreRefused(
        f"{project.name} is open in another window or command. Close it and run this again; nothing was changed."
    )


@contextlib.contextmanager
def _staged(project: Project, backup: Backup) -> Iterator[Path]:
    """A private copy of what is to be restored, so that the backup itself stays as it is."""
    for left in project.backups_dir.glob(f"{STAGE}*"):  # of a run that was killed; we hold the project
        shutil.rmtree(left, ignore_errors=True)
    folder = project.backups_dir / f"{STAGE}{new_id()}"
    folder.mkdir(parents=True, mode=0o700)
    try:
        copy_synced(backup.database, folder / DATABASE)
        for path in files_below([backup.path / FILES]):
            copy_synced(path, folder / FILES / path.relative_to(backup.path / FILES))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _respect_deletions(project: Project, stage: Path, damaged: bool) -> int:
    """Takes what was deleted forever in the present store out of the staged copy, and carries the tombstones over, so
    that it stays deleted. Also brings the copy's schema up to date. Returns the number of facts taken out."""
    key, stones = (None, []) if damaged or not project.db_path.exists() else _tombstones(project.db_path)
    try:
        db = Database(stage / DATABASE)
    except StoreError as error:
        raise RestoreRefused(f"This backup is not restored: {error}") from error
    with contextlib.closing(db):
        try:
            facts = FactStore(db)
            History(db)
            ColdStore(db)
            UpkeepNotes(db)
        except StoreError as error:  # made by a newer version
            raise RestoreRefused(f"This backup is not restored: {error}") from error
        if key is not None:
            with db.transaction() as connection:
                own = db.value("SELECT value FROM store_keys WHERE name = 'tombstones'")
                if own is not None and bytes(own) != key:
                    connection.execute("DELETE FROM tombstones")  # hashes under a key that nobody will have any more
                connection.execute("INSERT OR REPLACE INTO store_keys VALUES ('tombstones', ?)", (key,))
                connection.executemany("INSERT OR IGNORE INTO tombstones VALUES (?, ?, ?)", stones)
        gone = _take_out_deleted(facts, db, stage)
        db.vacuum()
    plain_journal(stage / DATABASE)
    return gone


def _tombstones(database: Path) -> tuple[bytes | None, list[tuple[bytes, str, str]]]:
    try:
        with contextlib.closing(connect(database, readonly=True)) as connection:
            row = connection.execute("SELECT value FROM store_keys WHERE name = 'tombstones'").fetchone()
            stones = connection.execute("SELECT digest, why, created_at FROM tombstones").fetchall()
    except (StoreError, sqlite3.Error):
        return None, []
    return (None if row is None else bytes(row[0])), [(bytes(r[0]), str(r[1]), str(r[2])) for r in stones]


def _take_out_deleted(facts: FactStore, db: Database, stage: Path) -> int:
    stones = Tombstones(db, utc_now)
    rows = db.rows("SELECT id, fact, quote FROM memory")
    dead = [str(row["id"]) for row in rows if stones.has(row["fact"], "deleted")]
    texts = [text for fact_id in dead for text in texts_of(facts, db, fact_id)]
    asked = db.rows("SELECT id, text FROM quarantine")
    waiting = [str(row["id"]) for row in asked if stones.has(row["text"], "deleted")]
    with db.transaction() as connection:
        scrub_database(db, dead, texts, Spans(texts))
        connection.executemany("DELETE FROM quarantine WHERE id = ?", [(each,) for each in waiting])
    spans = Spans(texts)
    for path in files_below([stage / FILES]):
        found = read_text(path) if path.suffix == ".md" else None
        lines = [] if found is None else [without_mark(line) for line in found.text.splitlines()]
        dead_lines = [line for line in lines if line and stones.has(line, "deleted")]
        scrub_text(path, Spans([*texts, *dead_lines]) if dead_lines else spans)
    return len(dead)


def _keep_present(project: Project, backups: Backups, plan: RestorePlan, clock: Callable[[], str]) -> str:
    """Keeps the state from before the restore; returns the name of what it is kept in."""
    project.ensure()
    if not plan.damaged:
        with contextlib.closing(Database(project.db_path)) as db:
            try:
                return backups.make(db, "before restore").name
            except StoreError as error:
                if error.kind != "corrupt":
                    raise
                plan.damaged = True
    moment = parse_utc(clock()).strftime("%Y-%m-%d-%H%M%S")
    folder = backups.folder / f"{moment}{DAMAGED}"
    folder.mkdir(parents=True, mode=0o700)
    for path in (project.db_path, *(Path(f"{project.db_path}{end}") for end in ("-wal", "-shm"))):
        if path.exists():
            copy_synced(path, folder / path.name)
    for path in files_below([project.memory_dir / name for name in (*_WITH_ROWS, "rules.md", "config.yaml", "skills")]):
        copy_synced(path, folder / FILES / path.relative_to(project.memory_dir))
    return folder.name


def _write_marker(project: Project, backup: Backup, kept: str) -> None:
    own = backup.path.parent == project.backups_dir
    marker = {"backup": backup.name if own else str(backup.path), "kept": kept}
    path = project.backups_dir / _MARKER
    with os.fdopen(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        json.dump(marker, file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def _put_database(project: Project, staged: Path, damaged: bool) -> None:
    target = project.db_path
    if damaged:
        # Nothing to be careful with any more: it is kept, and cannot be opened. The side files belong to it.
        for end in ("-wal", "-shm"):
            Path(f"{target}{end}").unlink(missing_ok=True)
        beside = target.with_name(".memory.db.restored")
        copy_synced(staged, beside)
        beside.replace(target)
        sync_folder(target.parent)
        return
    connection = take_alone(target)
    if connection is None:
        raise _held(project)
    # One transaction of SQLite: whoever is killed in it finds the old state, whoever comes after it the new one.
    source = connect(staged, readonly=True)
    with contextlib.closing(connection), contextlib.closing(source), explained(target):
        source.backup(connection)


def _put_files(project: Project, stage: Path, plan: RestorePlan) -> None:
    root = project.memory_dir
    try:
        with folder_lock(root):
            for path in files_below([stage / FILES]):
                target = root / path.relative_to(stage / FILES)
                beside = target.with_name(f".{target.name}.restored")
                copy_synced(path, beside)
                beside.replace(target)
                sync_folder(target.parent)
            for name in plan.files_removed:
                (root / name).unlink(missing_ok=True)
            project.facts_json_path.unlink(missing_ok=True)
        _write_facts_json(project)
    except (TextFileError, MemoryFileError) as error:
        raise StoreError(f"The files were not restored: {error}. Run the restore again.", "locked", root) from error


def _write_facts_json(project: Project) -> None:
    """The file as the chat writes it: without notes about the user, and known as the program's own. An older schema has
    no such rows; the chat writes the file then."""
    with contextlib.closing(Database(project.db_path)) as db:
        FactsFile(project.facts_json_path, db, FactStore(db), lambda: None).write()


def _link_on_the_way(root: Path, target: Path) -> Path | None:
    """A memory folder that came from elsewhere must not lead the files of a backup out of the project."""
    below = [folder for folder in (target, *target.parents) if folder.is_relative_to(root) and folder != root]
    return next((folder for folder in below if folder.is_symlink()), None)


def _put_vectors(project: Project, backups: Backups, backup: Backup, result: Restored) -> None:
    if (kept := set_aside(project.vector_dir)) is not None:
        result.notes.append(f"Another program's data were in the vector store; it is kept as {kept.name}.")
    if not backups.vectors_match(backup):
        return
    if live_ids(project.db_path) != live_ids(backup.database):
        result.notes.append("The vector index is made anew, because deleted facts were left out.")
        return
    source = backup.path / VECTORS
    for path in files_below([source]):
        copy_synced(path, project.vector_dir / path.relative_to(source))
