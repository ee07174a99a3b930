"""One SQLite file with one writer and small named migrations, shared by the stores of a project."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tui_agent.memory.connection import (
    BUSY_TIMEOUT_MS,
    IN_MEMORY,
    LOCK_RETRIES,
    StoreError,
    check_file,
    connect,
    explained,
    retry_locked,
)
from tui_agent.memory.text import utc_now

__all__ = ["BUSY_TIMEOUT_MS", "Database", "Migration", "StoreError", "check_file", "connect"]

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Parameters = Sequence[Any] | dict[str, Any]
Migration = tuple[str, Callable[[sqlite3.Connection], None]]
"""A name that is never used again for something else, and what brings the schema there. It runs once, in a transaction
that is already open; it must not commit (so no ``executescript``)."""


_CHECKPOINT_PAGES = 1000  # of the write-ahead log; SQLite's own default
_ROWS_AT_ONCE = 256
_MOST_IN_PLACE = 64  # about as many pages


class _Elsewhere(Exception):
    """Not in place: somebody has to be waited for."""


class Database:
    """One database file for all stores of a project; safe to share between threads.

    There is one connection and one lock: whoever writes or reads holds the lock for as long as that takes, and other
    processes are kept in order by SQLite. Stores call it directly; coroutines go through :meth:`run`.

    ``before_migration`` is called with the database and the names of the steps before an existing schema is changed
    (a good moment for a backup), never when tables are made for the first time.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        before_migration: Callable[[Database, list[str]], None] | None = None,
        lock_retries: int = LOCK_RETRIES,
    ) -> None:
        self.path: Path | str = IN_MEMORY if str(path) == IN_MEMORY else Path(path)
        self._before_migration = before_migration
        self._lock_retries = lock_retries
        self._lock = threading.RLock()
        self._depth = 0
        self._ends: list[Callable[[bool], None]] = []
        self._heard: list[str] = []
        self._in_place = False
        self._placed = 0  # writes in place since the last one in the thread
        self._mode = (True, False)  # synced, in place; as connect() and SQLite set it
        self._waits = True  # whether SQLite waits for other processes; not while writes in place follow each other
        self._closed = self._gone = False
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tui-agent-store")
        self._connection = connect(self.path)
        try:
            with self.transaction() as connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS migrations(room TEXT NOT NULL, name TEXT NOT NULL, "
                    "applied_at TEXT NOT NULL, PRIMARY KEY (room, name))"
                )
        except BaseException:
            self._executor.shutdown(wait=False)
            self._connection.close()
            raise

    # --- schema -----------------------------------------------------------------------------------

    def migrate(self, room: str, migrations: Sequence[Migration]) -> list[str]:
        """Brings the tables of one room (a store's name) up to date and returns the names of the steps taken now.

        Steps run in the given order, each once per file, all in one transaction. Every store calls this when it is
        made. Raises :class:`StoreError` of kind ``newer`` when the file holds steps of this room that the program
        does not know; nothing is changed then.
        """
        names = [name for name, _ in migrations]
        known = self._applied(room)
        unknown = sorted(known - set(names))
        if unknown:
            raise StoreError(
                f"{self.path} was written by a newer version of tui-agent (it knows “{unknown[-1]}” in {room}). "
                "Update tui-agent, or open the project with the version that wrote it; nothing was changed.",
                "newer",
                self.path,
            )
        pending = [name for name in names if name not in known]
        if not pending:
            return []
        if known and self._before_migration is not None:
            self._before_migration(self, pending)
        done: list[str] = []
        with self.transaction() as connection:
            known = self._applied(room)  # another process may have been quicker
            for name, step in migrations:
                if name not in known:
                    step(connection)
                    connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (room, name, utc_now()))
                    done.append(name)
        return done

    def _applied(self, room: str) -> set[str]:
        return {str(row["name"]) for row in self.rows("SELECT name FROM migrations WHERE room = ?", (room,))}

    # --- reading and writing ----------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[sqlite3.Connection]:
        """Everything inside is written together or not at all. Re-entrant: an inner one is a savepoint, so an error
        that is caught around it takes back only the inner part. Raises :class:`StoreError` for trouble with the file.

        When it is over, what was written survives a power cut. With ``synced`` false it survives the end of this
        process, a kill included, but a power cut may take it back, whole, up to the last synced one; that spares
        waiting for the disk. An inner transaction goes by the outer.
        """
        with self._lock, explained(self.path):
            connection = self._open_connection(waiting=not self._in_place)
            outer = self._depth == 0
            savepoint = f"level_{self._depth}"
            if outer:
                self._begin(connection, synced)
            else:
                connection.execute(f"SAVEPOINT {savepoint}")
            self._depth += 1
            committed = False
            try:
                yield connection
                connection.execute("COMMIT" if outer else f"RELEASE {savepoint}")
                committed = True
            except BaseException:
                # A full disk makes SQLite roll back by itself; then there is nothing left to take back.
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK" if outer else f"ROLLBACK TO {savepoint}")
                        if not outer:
                            connection.execute(f"RELEASE {savepoint}")
                raise
            finally:
                self._depth -= 1
                if outer:
                    self._tell_end(committed)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; only who holds it can ask that sensibly."""
        return self._depth > 0

    def on_end(self, callback: Callable[[bool], None]) -> None:
        """``callback(committed)`` is called once, when the outermost transaction that is open now has ended."""
        self._ends.append(callback)

    def _tell_end(self, committed: bool) -> None:
        ends, self._ends = self._ends, []
        for callback in ends:
            try:
                callback(committed)
            except Exception:  # the rows are safe; what follows them is mended at the next opening
                log.exception("what follows a transaction failed")

    def _begin(self, connection: sqlite3.Connection, synced: bool) -> None:
        if self._in_place and synced:
            raise _Elsewhere
        if (synced, self._in_place) != self._mode:
            connection.execute(f"PRAGMA synchronous = {'FULL' if synced else 'NORMAL'}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {0 if self._in_place else _CHECKPOINT_PAGES}")
            self._mode = (synced, self._in_place)
        if not self._in_place:
            retry_locked(lambda: connection.execute("BEGIN IMMEDIATE"), self._lock_retries)
            return
        if self._waits:
            connection.execute("PRAGMA busy_timeout = 0")
            self._waits = False
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise _Elsewhere from error

    def rows(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._lock, explained(self.path):
            connection = self._open_connection()
            return retry_locked(lambda: _fetched(connection.execute(sql, parameters)), self._lock_retries)

    def row(self, sql: str, parameters: Parameters = ()) -> sqlite3.Row | None:
        """The first row of a query, or ``None``."""
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def value(self, sql: str, parameters: Parameters = ()) -> Any:
        """The first column of the first row of a query, or ``None``."""
        found = self.row(sql, parameters)
        return None if found is None else found[0]

    def execute(self, sql: str, parameters: Parameters = ()) -> int:
        """One writing statement in its own transaction (or in the open one); returns the number of rows touched."""
        with self._lock:
            if self._depth:  # one statement is taken back whole by itself
                with explained(self.path):
                    return self._open_connection().execute(sql, parameters).rowcount
            with self.transaction() as connection:
                return connection.execute(sql, parameters).rowcount

    def on_change(self, table: str, column: str, callback: Callable[[Any], None]) -> None:
        """``callback(value of column)`` for each row of ``table`` that is added, changed or deleted through this
        database from now on, also by a transaction that is taken back later. It is called in the middle of the
        statement: it must only note the value. Of what others write nothing is heard here (``PRAGMA data_version``
        tells that they have).
        """
        with self._lock, explained(self.path):
            connection = self._open_connection()
            name = f"changed_{table}_{len(self._heard)}"
            self._heard.append(name)
            connection.create_function(name, 1, callback)
            for event, row in (("INSERT", "new"), ("UPDATE", "new"), ("DELETE", "old")):
                # Of the connection only: nothing of it is in the file.
                connection.execute(
                    f"CREATE TEMP TRIGGER {name}_{event} AFTER {event} ON main.{table} "
                    f"BEGIN SELECT {name}({row}.{column}); END"
                )

    async def run(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """``func(*args, **kwargs)`` on the one writer thread; the event loop stays free.

        Calls run in the order they were made. A cancelled caller does not stop a write that has begun.
        """
        if self._closed:
            raise self._closed_error()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            if answer.cancelled():
                return
            try:
                tell = partial(_answer, answer, func(*args, **kwargs))
            except BaseException as error:
                tell = partial(_fail, answer, error)
            loop.call_soon_threadsafe(tell)

        # Not run_in_executor: chaining two futures costs as much as a small write.
        self._executor.submit(work)
        return await answer

    async def run_small(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As :meth:`run`, for a few rows: done in place where nobody has to be waited for, because handing a tenth of
        a millisecond of work to another thread costs as much again.

        ``func`` does everything in one :meth:`transaction`, its first step. It goes to the thread when that is
        ``synced``, or when another thread or process is writing; and in place no part of the write-ahead log is moved
        into the file, so the event loop never waits for the disk. Now and then one goes to the thread to do that.
        """
        if self._closed:
            raise self._closed_error()
        await asyncio.sleep(0)  # a loop of such writes must not keep everybody else waiting
        if self._placed < _MOST_IN_PLACE and self._lock.acquire(blocking=False):
            try:
                if not self._depth:
                    self._in_place = True
                    self._placed += 1
                    return func(*args, **kwargs)
            except _Elsewhere:
                pass
            finally:
                self._in_place = False
                self._lock.release()
        self._placed = 0
        return await self.run(func, *args, **kwargs)

    async def read_small(self, func: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """As :meth:`run`, for reading a few rows by their keys: done in place where nobody is writing, else it goes to
        the thread. On a busy machine it may take that thread some milliseconds to wake up."""
        if self._closed:
            raise self._closed_error()
        if self._lock.acquire(blocking=False):
            try:
                if not self._depth:
                    return func(*args, **kwargs)
            finally:
                self._lock.release()
        return await self.run(func, *args, **kwargs)

    def set_clock(self, clock: Callable[[], str]) -> None:
        """Makes SQL's ``datetime('now', …)`` in this database go by ``clock`` (UTC ``YYYY-MM-DD HH:MM:SS``).

        The views and clean-up statements stay word for word as they are, and a test can move through time.
        """
        calendar = sqlite3.connect(IN_MEMORY, check_same_thread=False)

        def moment(*arguments: Any) -> Any:
            base = clock() if not arguments or str(arguments[0]).lower() == "now" else arguments[0]
            marks = ", ".join("?" * max(1, len(arguments)))
            return calendar.execute(f"SELECT datetime({marks})", (base, *arguments[1:])).fetchone()[0]

        with self._lock:
            # "deterministic" within one statement: all of it sees one moment, as with the built-in function.
            self._open_connection().create_function("datetime", -1, moment, deterministic=True)

    # --- care -------------------------------------------------------------------------------------

    def integrity_check(self) -> list[str]:
        """What ``PRAGMA integrity_check`` finds wrong; an empty list is good."""
        try:
            found = [str(row[0]) for row in self.rows("PRAGMA integrity_check")]
        except StoreError as error:
            if error.kind != "corrupt":
                raise
            return [str(error)]
        return [] if found == ["ok"] else found

    def foreign_key_check(self) -> list[tuple[str, int, str, int]]:
        """Rows that point to nothing: ``(table, rowid, parent table, number of the key)``; an empty list is good."""
        return [tuple(row) for row in self.rows("PRAGMA foreign_key_check")]

    def checkpoint(self) -> bool:
        """Moves the write-ahead log into the file and cuts it to nothing, so that deleted text is in neither.

        False when another process is in the way; the log is then not cut and the call should be repeated later.
        """
        row = self.row("PRAGMA wal_checkpoint(TRUNCATE)")
        return row is not None and row[0] == 0

    def vacuum(self) -> bool:
        """Rewrites the file without its free pages and cuts the log; false when the log could not be cut (see
        :meth:`checkpoint`). Raises ``RuntimeError`` inside a transaction, where SQLite cannot do it."""
        with self._lock, explained(self.path):
            connection = self._open_connection()
            if self._depth:
                raise RuntimeError("vacuum() inside a transaction")
            retry_locked(lambda: connection.execute("VACUUM"), self._lock_retries)
            return self.checkpoint()

    def vacuum_into(self, target: Path | str) -> Path:
        """A consistent copy of the database at ``target`` while it is in use, checked before it gets its name.

        Raises :class:`StoreError` when ``target`` exists (a good copy is never written over) or the copy is bad.
        """
        target = Path(target)
        if target.exists():
            raise StoreError(f"{target} exists already and is not written over; choose another name.", "exists", target)
        partial_copy = target.with_name(f"{target.name}.partial")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            partial_copy.unlink(missing_ok=True)
            # VACUUM INTO accepts an existing file when it is empty: so the copy is private from its first byte.
            os.close(os.open(partial_copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with self._lock, explained(partial_copy):
                connection = self._open_connection()
                if self._depth:
                    raise RuntimeError("vacuum_into() inside a transaction")
                connection.execute("VACUUM INTO ?", (str(partial_copy),))
            faults = check_file(partial_copy)
            if faults:
                raise StoreError(
                    f"The copy for {target} is not sound ({faults[0]}), so it was thrown away; earlier copies stay.",
                    "corrupt",
                    target,
                )
            with partial_copy.open("rb+") as copy:
                os.fsync(copy.fileno())
            partial_copy.rename(target)
        except OSError as error:
            raise StoreError(f"{target} cannot be written ({error.strerror}).", "unopenable", target) from error
        finally:
            with contextlib.suppress(OSError):
                partial_copy.unlink(missing_ok=True)
        return target

    def files(self) -> list[Path]:
        """The files this database has on disk now: itself, its write-ahead log and that log's index."""
        if self.path == IN_MEMORY:
            return []
        return [path for path in (Path(f"{self.path}{end}") for end in ("", "-wal", "-shm")) if path.exists()]

    def close(self) -> None:
        """Waits for writes that were handed to :meth:`run`, cuts the log and closes. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._executor.shutdown(wait=True)
        with self._lock:
            with contextlib.suppress(sqlite3.Error):  # someone else may hold the file; their close will do it
                self._connection.execute("PRAGMA busy_timeout = 200")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._gone = True
            self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_connection(self, *, waiting: bool = True) -> sqlite3.Connection:
        # "closing" is not "closed": writes that were handed in before close() run while it waits for them.
        if self._gone:
            raise self._closed_error()
        if waiting and not self._waits:
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
            self._waits = True
        return self._connection

    def _closed_error(self) -> StoreError:
        return StoreError(f"{self.path} is closed already.", "closed", self.path)


def _fetched(cursor: sqlite3.Cursor) -> list[sqlite3.Row]:
    """All rows of a cursor, in pieces: one call for very many would keep every other thread waiting until its end."""
    found = rows = cursor.fetchmany(_ROWS_AT_ONCE)
    while len(rows) == _ROWS_AT_ONCE:
        rows = cursor.fetchmany(_ROWS_AT_ONCE)
        found += rows
    return found


def _answer(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
