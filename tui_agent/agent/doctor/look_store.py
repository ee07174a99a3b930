"""The doctor's look at a project's memory, without opening it as the chat does: read-only, no lock, no migration."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

from tui_agent.agent.consent import Consent
from tui_agent.agent.doctor.facts import IndexFacts, StoreFacts
from tui_agent.memory.backup import indexed_ids
from tui_agent.memory.connection import StoreError, connect, explained
from tui_agent.memory.holding import is_running
from tui_agent.memory.restoring import unfinished
from tui_agent.memory.shredding import STALE_INDEX
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings, is_this_machine


def look_at_store(project: Project) -> StoreFacts:
    """Database: whether it is sound, how many live facts, and whose vectors they have."""
    path = project.db_path
    interrupted = unfinished(project)
    if not path.is_file():
        return StoreFacts(path, interrupted=interrupted)
    size = sum(_size(path.with_name(path.name + tail)) for tail in ("", "-wal", "-shm"))
    try:
        with contextlib.closing(_open(path)) as connection, explained(path):
            faults = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)") if row[0] != "ok"]
            if faults:
                text = f"{path} is damaged: {faults[0]}"
                return StoreFacts(path, True, size, (text,), "corrupt", interrupted=interrupted)
            live, identities = _vectors(connection)
    except StoreError as error:
        return StoreFacts(path, True, size, (str(error),), error.kind, interrupted=interrupted)
    return StoreFacts(path, True, size, (), "", live, identities, interrupted)


def _open(path: Path) -> sqlite3.Connection:
    """A connection that leaves nothing behind: SQLite makes two files beside a database even for a reader, unless it is
    told that nobody writes, which is so while there is no write-ahead log."""
    if path.with_name(f"{path.name}-wal").exists():
        return connect(path, readonly=True)
    with explained(path):
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection


def _vectors(connection: sqlite3.Connection) -> tuple[int, dict[str, int]]:
    tables = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master")}
    if "live_memory" not in tables:  # a file of an older version, or of another program
        return 0, {}
    live = int(connection.execute("SELECT count(*) FROM live_memory").fetchone()[0])
    if "fact_vectors" not in tables:
        return live, {}
    rows = connection.execute(
        "SELECT v.identity, count(*) FROM fact_vectors v JOIN live_memory l ON l.id = v.fact_id GROUP BY v.identity"
    )
    return live, {str(identity): int(count) for identity, count in rows}


def look_at_index(project: Project, paths: UserPaths, settings: Settings, database: Path) -> IndexFacts:
    """Chroma's folder and who owns it."""
    chroma = settings.chroma
    if project.vector_dir.is_symlink():
        return IndexFacts("link", chroma.mode)
    if chroma.mode == "http":
        allowed = Consent(paths, settings).allows_machine(chroma.host)
        where = f"{chroma.host}:{chroma.port}"
        elsewhere = not is_this_machine(chroma.host)
        return IndexFacts("none", "http", remote_host=where, remote_allowed=allowed, elsewhere=elsewhere)
    note = _note(project.lock_path)
    pid = note.get("pid")
    pid = pid if isinstance(pid, int) else 0
    crashes = note.get("crashes")
    busy = str(note.get("busy") or "")
    held = _held(project.lock_path)
    look = IndexFacts(
        "held" if held else "none",
        chroma.mode,
        pid=pid,
        alive=held or is_running(pid),
        busy=busy,
        crashes=(crashes if isinstance(crashes, int) else 0) + bool(busy and not held),
    )
    if held or chroma.mode == "off":
        return look
    file = project.vector_dir / "chroma.sqlite3"
    if not file.is_file() or file.with_name("chroma.sqlite3-wal").exists():
        return look
    ids = indexed_ids(project.vector_dir)
    if ids is None:
        return replace(look, state="unreadable")
    gone = len(ids - _live_ids(database))
    return replace(look, state="ready", size=len(ids), gone=gone, emptied=not _deletion_waits(database))


def _deletion_waits(path: Path) -> bool:
    try:
        with contextlib.closing(_open(path)) as connection:
            sql = "SELECT 1 FROM upkeep WHERE name = ?"
            return connection.execute(sql, (STALE_INDEX,)).fetchone() is not None
    except (StoreError, sqlite3.Error):
        return False


def _live_ids(path: Path) -> set[str]:
    try:
        with contextlib.closing(_open(path)) as connection:
            return {str(row[0]) for row in connection.execute("SELECT id FROM live_memory")}
    except (StoreError, sqlite3.Error):
        return set()


def _note(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes()[:4096] or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _held(path: Path) -> bool:
    """Whether another process holds the lock. Looking takes a shared lock for an instant and changes nothing."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0
