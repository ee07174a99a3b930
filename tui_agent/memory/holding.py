"""Who else is using a project's memory right now."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from tui_agent.memory.connection import StoreError, connect, explained

if sys.platform != "win32":
    import fcntl


@contextlib.contextmanager
def holding(lock: Path) -> Iterator[bool]:
    """Holds a lock file for the time of the block; the value is false when another process holds it.

    The lock goes with the process, however that ends. Where the platform or the file system has no locks, the value is
    true.
    """
    if sys.platform == "win32" or not lock.parent.is_dir():
        yield True
        return
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            pass
        yield True
    finally:
        os.close(handle)


def take_alone(path: Path) -> sqlite3.Connection | None:
    """A connection that keeps every other one out until it is closed, or ``None`` while another one is open.

    Only a database that nobody else has open can leave the WAL mode, so that is the test. Its journal mode is DELETE
    afterwards; the next :class:`~tui_agent.memory.database.Database` puts it back. Raises ``StoreError`` when the file
    cannot be used.
    """
    connection = connect(path)
    try:
        with explained(path):
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
            if mode == "delete":
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute("COMMIT")
                return connection
    except StoreError as error:
        if error.kind != "locked":
            connection.close()
            raise
    connection.close()
    return None


def is_running(pid: int) -> bool:
    """Whether a process of this machine has this id; false where that cannot be asked (Windows)."""
    if pid <= 0 or os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def in_use(path: Path) -> bool:
    """Whether another connection, of this or another process, has the database open."""
    if not path.exists():
        return False
    connection = take_alone(path)
    if connection is None:
        return True
    # Back to WAL at once: a program that opens the file in between must not find another mode.
    with contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA locking_mode = NORMAL")
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return False
