"""Opening a SQLite file the same careful way everywhere, and saying what is wrong when that fails.

Every connection of the program comes from :func:`connect`, because foreign keys, the busy timeout and secure delete are
settings of a connection, not of a file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeVar

T = TypeVar("T")

BUSY_TIMEOUT_MS = 5000
IN_MEMORY = ":memory:"
LOCK_RETRIES = 3

ErrorKind = Literal["locked", "full", "readonly", "corrupt", "unopenable", "io", "newer", "exists", "closed"]


class StoreError(Exception):
    """The store cannot be used. The text says what happened, to which file, and what to do; ``kind`` is stable."""

    def __init__(self, text: str, kind: ErrorKind, path: Path | str = "") -> None:
        super().__init__(text)
        self.kind: ErrorKind = kind
        self.path = str(path)


# SQLite's own words, since Python 3.10 does not tell the error's number.
_EXPLANATIONS: tuple[tuple[str, ErrorKind, str], ...] = (
    (
        "locked",
        "locked",
        "Another program is holding {path} and did not let go in time. Nothing was changed; close the other window or "
        "command that uses this project and try again.",
    ),
    (
        "disk is full",
        "full",
        "There is no room left on the disk to write {path}. Nothing was changed and nothing is lost; free some space "
        "and try again.",
    ),
    (
        "readonly database",
        "readonly",
        "{path} cannot be written. Nothing was changed; check who owns the file and its folder, and whether the disk "
        "is mounted read-only.",
    ),
    (
        "malformed",
        "corrupt",
        "{path} is damaged. Keep the file as it is and restore the last good copy with `tui-agent memory restore`.",
    ),
    (
        "not a database",
        "corrupt",
        "{path} is not a SQLite database, or it is damaged. Move it away to start empty, or restore the last good copy "
        "with `tui-agent memory restore`.",
    ),
    (
        "unable to open",
        "unopenable",
        "{path} cannot be opened. Check that its folder exists and that you may read and write there.",
    ),
    ("disk i/o", "io", "The disk failed while using {path}. Check the disk and whether the folder is still there."),
)


def explain(error: sqlite3.Error, path: Path | str) -> StoreError | None:
    """The sentence for an error of the file or its surroundings; ``None`` for an error of the program itself."""
    if isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError)):
        return None
    text = str(error).lower()
    for mark, kind, sentence in _EXPLANATIONS:
        if mark in text:
            return StoreError(f"{sentence.format(path=path)} (SQLite: {error})", kind, path)
    return None


@contextlib.contextmanager
def explained(path: Path | str) -> Iterator[None]:
    """Turns SQLite's errors about the file ``path`` into :class:`StoreError`; other errors pass."""
    try:
        yield
    except sqlite3.Error as error:
        known = explain(error, path)
        if known is None:
            raise
        raise known from error


def connect(path: Path | str, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection with every setting the stores rely on; rows are ``sqlite3.Row``, transactions are explicit.

    ``readonly`` opens an existing file and refuses writes. Raises :class:`StoreError` when the file cannot be used.
    """
    in_memory = str(path) == IN_MEMORY
    with explained(path):
        if in_memory:
            connection = sqlite3.connect(IN_MEMORY, isolation_level=None, check_same_thread=False)
        else:
            if not readonly:
                _create_private(Path(path))
            # "rw", not the default: a file that vanished meanwhile must not come back empty and readable by all.
            uri = f"{Path(path).absolute().as_uri()}?mode={'ro' if readonly else 'rw'}"
            connection = sqlite3.connect(
                uri, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_MS / 1000
            )
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            connection.execute("PRAGMA secure_delete = ON")
            # Temporary tables and the copies that VACUUM makes stay out of /tmp, which nobody would search.
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute("PRAGMA synchronous = FULL")
            if readonly:
                connection.execute("PRAGMA query_only = ON")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            else:
                retry_locked(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        except BaseException:
            connection.close()
            raise
    return connection


def _create_private(path: Path) -> None:
    """Makes the folder and an empty file only its owner can read; SQLite gives the same mode to its side files."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise StoreError(
            f"{path} cannot be created ({error.strerror}). Check that you may write in {path.parent}.",
            "unopenable",
            path,
        ) from error


def retry_locked(action: Callable[[], T], retries: int = LOCK_RETRIES) -> T:
    """Runs ``action`` again while SQLite says "locked". Each try has waited for the busy timeout where SQLite waits at
    all; it does not where two connections switch a new file to WAL at once."""
    for attempt in range(retries):
        try:
            return action()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            threading.Event().wait(0.02 * 2**attempt)
    return action()


def check_file(path: Path | str) -> list[str]:
    """What is wrong with a database file nobody has open: integrity and foreign keys; an empty list is good."""
    try:
        with contextlib.closing(connect(path, readonly=True)) as connection, explained(path):
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            faults = [] if found == ["ok"] else found
            faults += [
                f"{table} row {rowid} points to nothing in {parent}"
                for table, rowid, parent, _ in connection.execute("PRAGMA foreign_key_check")
            ]
    except StoreError as error:
        return [str(error)]
    return faults
