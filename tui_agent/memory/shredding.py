"""Deleting forever: out of rows, indexes, logs, conversations, files, their earlier versions, and backups.

What was asked to be deleted is written down (in the database itself) until it is gone everywhere, so that a run that
was killed is finished by the next one; then everything the program owns is searched, and what is left is named.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.memory.backup import (
    DATABASE,
    FACTS,
    MANIFEST,
    VECTORS,
    Backup,
    Backups,
    file_hash,
    hashes_below,
    live_ids,
    row_counts,
    write_facts,
    write_manifest,
)
from tui_agent.memory.chroma_index import set_aside
from tui_agent.memory.connection import StoreError, check_file, connect
from tui_agent.memory.database import Database
from tui_agent.memory.holding import holding
from tui_agent.memory.scrubbing import scrub_database, scrub_text, texts_of
from tui_agent.memory.text import new_id, utc_now
from tui_agent.memory.traces import Spans, Trace, can_be_sought, files_below, overwrite_bytes, traces_in
from tui_agent.memory.upkeep import Memory, counted
from tui_agent.memory.upkeep_store import UpkeepNotes
from tui_agent.project import Project, UserPaths

_PENDING = "shred"
_CLEANING = "cleaning"
STALE_INDEX = "stale index"
# What the program writes by itself, and may therefore change; other memory files are the user's own words.
_WRITTEN = ("AGENTS.md", "facts.json", "seed.jsonl", "knowledge", "conversations")


@dataclass(slots=True)
class ShredReport:
    """What a deletion did.

    ``facts`` are rows deleted, ``records`` messages and records in which the text was masked, ``items`` items of the
    working memory, ``files`` and ``backups`` what was rewritten. ``left`` names where the text still is; ``beyond``
    what the program cannot reach, as sentences; ``notes`` what else the user must know.
    """

    facts: int = 0
    records: int = 0
    items: int = 0
    files: list[str] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)
    left: tuple[Trace, ...] = ()
    searched: int = 0
    beyond: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def occurrences(self) -> int:
        """How often the text is still found in the files the program owns."""
        return sum(trace.count for trace in self.left)

    def sentence(self) -> str:
        """The outcome in one sentence."""
        done = [
            f"{counted(self.facts, 'fact')} deleted for good" if self.facts else "",
            f"masked in {counted(self.records, 'message or record', 'messages and records')}" if self.records else "",
            f"taken out of {counted(self.items, 'item')} of the working memory" if self.items else "",
            f"out of {counted(len(self.files), 'file')}" if self.files else "",
            f"out of {counted(len(self.backups), 'backup')}" if self.backups else "",
        ]
        left = f"{counted(self.occurrences, 'occurrence')} left in the {counted(self.searched, 'file')} searched."
        return f"{', '.join(part for part in done if part) or 'nothing had to be changed'}; {left}"


def shred(memory: Memory, fact_id: str, *, drop_index: Callable[[], bool] | None = None) -> ShredReport:
    """Deletes a fact and all it replaced, everywhere, and looks whether anything is left.

    ``drop_index`` empties the vector index where this process owns it, and says whether that worked; without it the
    index's folder is removed when nobody holds it (it is made anew from the vectors in the database).

    Raises:
        LookupError: there is no such fact.
        MemoryFileError: a memory file cannot be changed; then nothing was deleted.
        StoreError: the database cannot be written.
    """
    texts = texts_of(memory.facts, memory.db, fact_id)
    if not texts:
        raise LookupError(f"There is no fact {fact_id}; it was deleted or pruned.")
    notes = UpkeepNotes(memory.db)
    waiting = notes.get(_PENDING, [])
    # First of all, and for itself: from here on it will be gone, whatever happens to this process.
    notes.set(_PENDING, [*waiting, {"ids": [fact_id], "texts": texts}])
    try:
        deleted = memory.ledger.delete(fact_id)
    except Exception:
        notes.set(_PENDING, waiting or None)
        raise
    report = _finish(memory, drop_index)
    report.facts += len(deleted)
    return report


def resume(memory: Memory, *, drop_index: Callable[[], bool] | None = None) -> ShredReport | None:
    """Finishes deletions that a killed run began; ``None`` when there are none."""
    return _finish(memory, drop_index) if UpkeepNotes(memory.db).get(_PENDING, []) else None


def mask_everywhere(
    memory: Memory, texts: Iterable[str], *, drop_index: Callable[[], bool] | None = None
) -> ShredReport:
    """Takes texts that belong to no fact (something said by mistake) out of everything, as :func:`shred` does."""
    notes = UpkeepNotes(memory.db)
    notes.set(_PENDING, [*notes.get(_PENDING, []), {"ids": [], "texts": list(texts)}])
    return _finish(memory, drop_index)


def _finish(memory: Memory, drop_index: Callable[[], bool] | None) -> ShredReport:
    notes = UpkeepNotes(memory.db)
    pending = notes.get(_PENDING, [])
    ids = [each for one in pending for each in one["ids"]]
    texts = list(dict.fromkeys(text for one in pending for text in one["texts"]))
    spans = Spans(texts)
    report = ShredReport()
    too_short = [text for text in texts if text.strip() and not can_be_sought(text)]
    if too_short:
        report.notes.append(
            f"{len(too_short)} of the deleted texts say too little to be looked for (such as “yes”); they were removed "
            "from the fact and stay in the conversation."
        )
    done = scrub_database(memory.db, ids, texts, spans)
    report.facts, report.records, report.items = done.facts, done.records, done.items
    current = memory.ledger.write_facts_json()
    others = [fact for fact in memory.facts.live() if spans.count(fact.fact)]
    _scrub_files(memory, spans, report, {fact.target_line.strip() for fact in others}, facts_json=not current)
    if others:
        ends = ", ".join(fact.id[-3:] for fact in others[:5]) + (", …" if len(others) > 5 else "")
        which = "Another fact says" if len(others) == 1 else f"{len(others)} other facts say"
        report.notes.append(f"{which} it too ({ends}) and stays; `tui-agent memory delete ID` destroys a fact.")
    _drop_vectors(memory, spans, drop_index, report)
    _scrub_backups(memory.project, ids, texts, spans, report)
    # Only now is it forgotten what was to be forgotten; that a vacuum is due stays known until it is done.
    notes.set(_PENDING, [{"ids": [], "texts": []}])
    cut = memory.db.vacuum()
    notes.set(_PENDING, None)
    if not cut:
        report.notes.append(
            "Another window is reading the project, so its write-ahead log could not be cut; it is cut when that "
            "window closes, or by `tui-agent memory check`."
        )
    report.left, report.searched = search(memory.project, memory.paths, spans)
    report.beyond = beyond_reach(memory.project)
    return report


# --- files ----------------------------------------------------------------------------------------


def _scrub_files(memory: Memory, spans: Spans, report: ShredReport, keep: Collection[str], *, facts_json: bool) -> None:
    """Files the program writes, without the spans. ``keep`` are lines of other facts, which stay as their rows do;
    ``facts_json`` is whether that file holds edits by hand, so that it could not be written anew from the rows."""
    project, paths = memory.project, memory.paths
    root = project.memory_dir
    written = files_below([*(root / name for name in _WRITTEN), paths.user_notes_path])
    versions = files_below([project.backups_dir / "files"])
    logs = files_below([project.logs_dir, paths.logs_dir, paths.copies_dir])
    for path in written:
        if path == project.facts_json_path and not facts_json:
            continue
        if scrub_text(path, spans, memory.files.announce, keep):
            report.files.append(_shown(path, project))
    for path in versions:
        if scrub_text(path, spans, memory.files.announce):
            report.files.append(_shown(path, project))
    # What a writer left that was killed before it gave its file the name; one that is at work must not lose it.
    halves = [path for path in files_below([root]) if _half_written(path)]
    for path in (*logs, *halves):
        with contextlib.suppress(OSError):
            if overwrite_bytes(path, spans):
                report.files.append(_shown(path, project))
    # The engine's stored prompt state holds the old text as numbers; it is made again in a moment.
    for path in files_below([paths.slots_dir]):
        with contextlib.suppress(OSError):
            path.unlink()


def index_is_stale(db: Database) -> str:
    """A mark of the last deletion that could not empty the vector index, because another window held it; empty when
    there is none. The index's owner makes it anew."""
    return str(UpkeepNotes(db).get(STALE_INDEX, ""))


def note_index_emptied(db: Database, mark: str = "") -> None:
    """The vector index was made anew (or removed) since the deletion of this mark; without one, since the last."""
    notes = UpkeepNotes(db)
    with db.transaction():
        if not mark or notes.get(STALE_INDEX, "") == mark:
            notes.set(STALE_INDEX, None)


def _drop_vectors(memory: Memory, spans: Spans, drop_index: Callable[[], bool] | None, report: ShredReport) -> None:
    """The index keeps deleted documents in its free pages, so it goes as a whole; vectors stay in the database."""
    project = memory.project
    if project.vector_dir.exists():
        if _drop_index(project, drop_index, report):
            note_index_emptied(memory.db)
        else:
            UpkeepNotes(memory.db).set(STALE_INDEX, new_id())
    for path in files_below(sorted(project.memory_dir.glob(f"{project.vector_dir.name}.unreadable-*"))):
        with contextlib.suppress(OSError):
            overwrite_bytes(path, spans)


def _drop_index(project: Project, drop_index: Callable[[], bool] | None, report: ShredReport) -> bool:
    if drop_index is not None and drop_index():
        return True
    with holding(project.lock_path) as mine:
        if mine and drop_index is None:
            try:
                kept = set_aside(project.vector_dir)
            except OSError as error:
                report.notes.append(f"The vector index could not be removed: {error.strerror or error}.")
                return False
            if kept is not None:
                report.notes.append(
                    f"Another program's data are in the vector store, so it is kept as {kept.name}; the text was "
                    "overwritten in it."
                )
            return True
    report.notes.append(
        "The vector index is in use by another window and still holds the deleted vectors; that window makes it anew "
        "after its next answer or at its next start. Or close it, and run `tui-agent memory check --fix`."
    )
    return False


# --- backups --------------------------------------------------------------------------------------


def _scrub_backups(
    project: Project, ids: Collection[str], texts: Collection[str], spans: Spans, report: ShredReport
) -> None:
    backups = Backups(project)
    try:
        backups.clear_unfinished()
    except (StoreError, OSError) as error:
        report.notes.append(f"What a killed backup or restore left could not be removed: {error}")
    for backup in backups.all():
        touched = _CLEANING in backup.manifest or _holds_any(backup.database, ids)
        if not touched and not any(_has(path, spans) for path in files_below([backup.path])):
            continue
        try:
            _scrub_backup(backup, ids, texts, spans)
            report.backups.append(backup.name)
        except (StoreError, OSError) as error:
            report.notes.append(f"The backup {backup.name} could not be cleaned: {error}")


def _holds_any(database: Path, ids: Collection[str]) -> bool:
    marks = ", ".join("?" * len(ids))
    try:
        with contextlib.closing(connect(database, readonly=True)) as connection:
            found = connection.execute(f"SELECT 1 FROM memory WHERE id IN ({marks})", tuple(ids)).fetchone()
    except (StoreError, sqlite3.Error):
        return False
    return found is not None


def _scrub_backup(backup: Backup, ids: Collection[str], texts: Collection[str], spans: Spans) -> None:
    """Opens, deletes, vacuums, and gives the manifest the new hashes. A damaged database cannot be opened: there the
    bytes are overwritten."""
    shutil.rmtree(backup.path / VECTORS, ignore_errors=True)
    _recover(backup)
    manifest = dict(backup.manifest)
    if manifest and _CLEANING not in manifest:
        # What the manifest did not vouch for before gets no new hash that would; a killed run must know it too.
        manifest[_CLEANING] = [
            name for name, entry in manifest["files"].items()
            if (backup.path / name).is_file() and file_hash(backup.path / name) == entry["sha256"]
        ]  # fmt: skip
        write_manifest(backup.path, manifest)
    if check_file(backup.database):
        for path in files_below([backup.path]):
            overwrite_bytes(path, spans)
        return
    with contextlib.closing(Database(backup.database)) as db:
        scrub_database(db, ids, texts, spans)
        db.vacuum()
    plain_journal(backup.database)
    if FACTS in manifest.get("files", {}):
        (backup.path / FACTS).unlink(missing_ok=True)
        write_facts(backup.path)
    for path in files_below([backup.path]):
        if path.name not in (DATABASE, MANIFEST, FACTS) and not scrub_text(path, spans) and _has(path, spans):
            overwrite_bytes(path, spans)
    if not manifest:
        return
    hashes, trusted = hashes_below(backup.path), set(manifest.pop(_CLEANING))
    manifest["files"] = {
        name: hashes[name] if name in trusted and name in hashes else entry
        for name, entry in manifest["files"].items()
        if not name.startswith(f"{VECTORS}/")
    }
    manifest["counts"] = row_counts(backup.database)
    manifest["live_facts"] = len(live_ids(backup.database))
    manifest["vector_store"] = "The vector index was removed; a restore makes it anew from the vectors in memory.db."
    manifest["cleaned_at"] = utc_now()
    write_manifest(backup.path, manifest)


def _recover(backup: Backup) -> None:
    """Clears up after a run that was killed while it cleaned this backup: half-written files go, and what the database
    was in the middle of is taken back, because a reader cannot do that and would take the file for damaged."""
    for path in filter(_half_written, files_below([backup.path])):
        path.unlink()
    if any(Path(f"{backup.database}{end}").exists() for end in ("-journal", "-wal")):
        with contextlib.suppress(StoreError, sqlite3.Error):
            plain_journal(backup.database)


def _half_written(path: Path) -> bool:
    return path.name.startswith(".") and path.suffix == ".tmp"


def plain_journal(database: Path) -> None:
    """Takes a resting database out of WAL mode, so that reading it later leaves no side files beside it."""
    with contextlib.closing(connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    for end in ("-wal", "-shm"):
        Path(f"{database}{end}").unlink(missing_ok=True)


def _has(path: Path, spans: Spans) -> bool:
    return any(trace.count for trace in traces_in(path, spans))


# --- looking --------------------------------------------------------------------------------------


def search(project: Project, paths: UserPaths, spans: Spans) -> tuple[tuple[Trace, ...], int]:
    """Where the spans still are in the files the program owns, and how many files were searched.

    Models are left out: they are made by others and hold nothing of the user's.
    """
    folders = [owned.path for owned in (*project.owned_paths(), *paths.owned_paths())]
    every = files_below(folders, skip=[paths.models_dir])
    found = [trace for path in every for trace in traces_in(path, spans)] if spans else []
    return tuple(found), len(every)


def beyond_reach(project: Project) -> list[str]:
    """What a deletion cannot reach, as sentences: git's history, where memory files were committed."""
    beyond = []
    committed = _ever_committed(project)
    if committed:
        shown = ", ".join(committed[:5]) + (", …" if len(committed) > 5 else "")
        beyond.append(
            f"Git keeps earlier versions of {shown} in its history, here and in every clone. To take a text out of it, "
            "rewrite the history (git filter-repo) and push it again."
        )
    beyond.append("Copies outside this program's folders (exports, your own backups, snapshots of the disk) stay.")
    return beyond


def on_a_server(mode: str, host: str) -> list[str]:
    """The same for a Chroma server, which keeps its files itself; nothing where the index is in the project."""
    if mode != "http":
        return []
    return [
        f"The Chroma server {host} lets go of the fact with the next look of the chat; its own files may hold the "
        "deleted vector longer."
    ]


def _ever_committed(project: Project) -> list[str]:
    try:
        done = subprocess.run(
            ["git", "-C", str(project.root), "log", "--all", "--format=", "--name-only", "--", ".agent-memory"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=False,
            env={key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    names = done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else []
    return sorted({name for name in names if name.strip()})


def _shown(path: Path, project: Project) -> str:
    return path.relative_to(project.root).as_posix() if path.is_relative_to(project.root) else str(path)
