"""Connections, transactions, migrations, care of the file, and what happens when the file is in trouble."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tui_agent.memory.connection import explain
from tui_agent.memory.database import BUSY_TIMEOUT_MS, Database, StoreError, check_file, connect

_PRAGMAS = {"foreign_keys": 1, "journal_mode": "wal", "busy_timeout": 5000, "secure_delete": 1, "synchronous": 2}


def _pragmas(connection: sqlite3.Connection) -> dict[str, object]:
    return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _PRAGMAS}


def _table(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE items(n INTEGER PRIMARY KEY, text TEXT NOT NULL)")


ITEMS = [("001 items", _table)]


def _insert(db: Database, *texts: str | None) -> None:
    with db.transaction() as connection:
        connection.executemany("INSERT INTO items(text) VALUES (?)", [(text,) for text in texts])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store" / "memory.db"


def test_every_connection_has_every_setting(path: Path) -> None:
    assert BUSY_TIMEOUT_MS == 5000
    with Database(path) as db, db.transaction() as own:
        pass
    with Database(path) as db:
        with db.transaction() as own:
            assert _pragmas(own) == _PRAGMAS
        other = connect(path)
        reader = connect(path, readonly=True)
        try:
            assert _pragmas(other) == _PRAGMAS
            assert reader.execute("PRAGMA foreign_keys").fetchone()[0] == 1
            assert reader.execute("PRAGMA busy_timeout").fetchone()[0] == 5000
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("CREATE TABLE x(a)")
        finally:
            other.close()
            reader.close()


def test_the_file_and_its_side_files_are_private(path: Path) -> None:
    with Database(path) as db:
        db.migrate("items", ITEMS)
        files = db.files()
        assert [each.name for each in files] == ["memory.db", "memory.db-wal", "memory.db-shm"]
        if os.name == "posix":
            assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert db.files() == [path]


def test_a_transaction_is_all_or_nothing_and_an_inner_one_can_fail_alone() -> None:
    with Database(":memory:") as db:
        db.migrate("items", ITEMS)
        with pytest.raises(sqlite3.IntegrityError):
            _insert(db, "lost", None)
        with db.transaction():
            _insert(db, "outer")
            with pytest.raises(sqlite3.IntegrityError):
                _insert(db, "inner", None)
            _insert(db, "last")
        assert [row["text"] for row in db.rows("SELECT text FROM items ORDER BY n")] == ["outer", "last"]


def test_a_single_statement_in_a_transaction_fails_alone_and_whole(path: Path) -> None:
    with Database(path) as db:
        db.migrate("items", ITEMS)
        with db.transaction():
            _insert(db, "first")
            with pytest.raises(sqlite3.IntegrityError):
                db.execute("INSERT INTO items(text) SELECT 'x' UNION ALL SELECT NULL")
            assert db.execute("UPDATE items SET text = text || '!'") == 1
        assert [row["text"] for row in db.rows("SELECT text FROM items")] == ["first!"]


def test_changes_of_rows_are_told_of_this_connection_alone(path: Path) -> None:
    heard: list[int] = []
    with Database(path) as db, Database(path) as other:
        db.migrate("items", ITEMS)
        db.on_change("items", "n", heard.append)
        _insert(db, "a")
        _insert(db, "b")
        _insert(other, "c")
        db.execute("UPDATE items SET text = 'd' WHERE text = 'a'")
        db.execute("DELETE FROM items WHERE text = 'b'")
        assert heard == [1, 2, 1, 2]
        with pytest.raises(sqlite3.IntegrityError):
            _insert(db, "e", None)
        assert heard == [1, 2, 1, 2, 4]
    with Database(path) as again:  # nothing of it is in the file
        _insert(again, "f")
    assert len(heard) == 5


def test_threads_wait_for_each_other(path: Path) -> None:
    with Database(path) as db:
        db.migrate("items", ITEMS)

        def write(name: int) -> None:
            for number in range(20):
                with db.transaction() as connection:
                    connection.execute("INSERT INTO items(text) VALUES (?)", (f"{name}-{number}",))

        threads = [threading.Thread(target=write, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert db.value("SELECT count(DISTINCT text) FROM items") == 80


async def test_coroutines_write_on_one_thread_in_order_and_close_waits_for_them(path: Path) -> None:
    db = Database(path)
    db.migrate("items", ITEMS)
    threads: set[int] = set()

    def write(text: str) -> None:
        threads.add(threading.get_ident())
        db.execute("INSERT INTO items(text) VALUES (?)", (text,))

    pending = [asyncio.ensure_future(db.run(write, str(number))) for number in range(10)]
    await asyncio.sleep(0)
    cancelled = asyncio.ensure_future(db.run(write, "cancelled"))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(*pending)
    db.close()
    db.close()
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    with pytest.raises(StoreError, match="closed already"):
        db.rows("SELECT 1")
    with pytest.raises(StoreError, match="closed already"):
        await db.run(write, "late")
    with Database(path) as again:
        texts = [row["text"] for row in again.rows("SELECT text FROM items ORDER BY n")]
    assert texts[:10] == [str(number) for number in range(10)]


async def test_a_few_rows_are_written_in_place_when_nobody_has_to_be_waited_for(path: Path) -> None:
    def write(text: str, synced: bool) -> tuple[int, dict[str, object]]:
        with db.transaction(synced=synced) as connection:
            connection.execute("INSERT INTO items(text) VALUES (?)", (text,))
            return threading.get_ident(), _pragmas(connection)

    here = threading.get_ident()
    with Database(path) as db:
        db.migrate("items", ITEMS)
        thread, relaxed = await db.run_small(write, "in place", False)
        assert thread == here
        # No waiting for other processes in place: then the write goes to the thread, which waits.
        assert relaxed == {**_PRAGMAS, "synchronous": 1, "busy_timeout": 0}
        thread, full = await db.run_small(write, "must be on the disk", True)
        assert thread != here
        assert full == _PRAGMAS
        holding = threading.Event()
        release = threading.Event()

        def hold() -> None:
            with db.transaction():
                holding.set()
                release.wait(10)

        holder = threading.Thread(target=hold)
        holder.start()
        holding.wait(10)
        waiting = asyncio.ensure_future(db.run_small(write, "another thread writes", False))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        release.set()
        assert (await waiting)[0] != here
        holder.join()
        with Database(path) as other, other.transaction():  # as another process would
            waiting = asyncio.ensure_future(db.run_small(write, "another connection writes", False))
            await asyncio.sleep(0.01)
            assert not waiting.done()
        assert (await waiting)[0] != here
        assert (await db.run_small(write, "in place again", False))[0] == here
        assert db.value("PRAGMA busy_timeout") == BUSY_TIMEOUT_MS
        assert db.value("SELECT count(*) FROM items") == 5


async def test_writing_in_place_never_moves_the_log_into_the_file(path: Path) -> None:
    """That waits for the disk; the next write in the thread does it."""

    def write(size: int) -> None:
        with db.transaction(synced=False) as connection:
            connection.execute("INSERT INTO items(text) VALUES (?)", ("x" * size,))

    with Database(path) as db:
        db.migrate("items", ITEMS)
        db.checkpoint()
        before = path.stat().st_size
        for _ in range(30):
            await db.run_small(write, 200_000)
        assert path.stat().st_size == before
        await db.run(write, 1)
        assert path.stat().st_size > 30 * 200_000
        assert db.value("SELECT count(*) FROM items") == 31


async def test_many_writes_in_place_neither_grow_the_log_for_ever_nor_keep_the_loop_busy(path: Path) -> None:
    def write(number: int) -> None:
        with db.transaction(synced=False) as connection:
            connection.execute("INSERT INTO items(text) VALUES (?)", ("x" * 20_000,))

    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    with Database(path) as db:
        db.migrate("items", ITEMS)
        other = asyncio.ensure_future(others())
        for number in range(1000):
            await db.run_small(write, number)
        other.cancel()
        log = next(file for file in db.files() if file.name.endswith("-wal"))
        assert log.stat().st_size < 10_000_000
        assert turns >= 1000


async def test_an_error_of_a_small_write_is_told_and_leaves_nothing(path: Path) -> None:
    def fail() -> None:
        with db.transaction(synced=False) as connection:
            connection.execute("INSERT INTO items(text) VALUES ('half')")
            raise ValueError("in the middle")

    with Database(path) as db:
        db.migrate("items", ITEMS)
        with pytest.raises(ValueError, match="in the middle"):
            await db.run_small(fail)
        assert db.value("SELECT count(*) FROM items") == 0
    with pytest.raises(StoreError, match="closed already"):
        await db.run_small(fail)


def test_migrations_run_once_in_order_and_all_together(path: Path) -> None:
    ran: list[str] = []

    def second(connection: sqlite3.Connection) -> None:
        ran.append("second")
        connection.execute("ALTER TABLE items ADD COLUMN size INTEGER NOT NULL DEFAULT 0")

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half(a)")
        raise RuntimeError("broken step")

    steps = [*ITEMS, ("002 size", second)]
    asked: list[list[str]] = []
    with Database(path, before_migration=lambda _, names: asked.append(names)) as db:
        assert db.migrate("items", ITEMS) == ["001 items"]
        assert asked == []
        assert db.migrate("items", steps) == ["002 size"]
        assert asked == [["002 size"]]
        assert db.migrate("items", steps) == []
        with pytest.raises(RuntimeError, match="broken step"):
            db.migrate("items", [*steps, ("003 broken", broken)])
        assert db.value("SELECT count(*) FROM sqlite_master WHERE name = 'half'") == 0
        assert db.migrate("other", [("001 items", lambda connection: None)]) == ["001 items"]
    assert ran == ["second"]


def test_a_file_of_a_newer_program_is_refused_with_a_sentence(path: Path) -> None:
    with Database(path) as db:
        db.migrate("items", [*ITEMS, ("002 future", lambda connection: None)])
    with Database(path) as db, pytest.raises(StoreError, match="newer version of tui-agent") as caught:
        db.migrate("items", ITEMS)
    assert caught.value.kind == "newer"
    assert str(path) in str(caught.value)


def _open_and_write(path: str, name: int, count: int) -> None:
    with Database(path) as db:
        db.migrate("items", ITEMS)
        for number in range(count):
            db.execute("INSERT INTO items(text) VALUES (?)", (f"{name}-{number}",))


def test_two_processes_that_create_and_write_at_once_lose_nothing(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_open_and_write, args=(str(path), name, 40)) for name in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    with Database(path) as db:
        assert db.value("SELECT count(DISTINCT text) FROM items") == 80
        assert db.integrity_check() == []


_WRITER = """
import sys
from tui_agent.memory.database import Database
db = Database(sys.argv[1])
for number in range(100000):
    db.execute("INSERT INTO items(text) VALUES (?)", (str(number),))
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_kill_9(path: Path) -> None:
    with Database(path) as db:
        db.migrate("items", ITEMS)
    process = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    seen = [int(process.stdout.readline()) for _ in range(25)]
    process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    seen += [int(line) for line in process.stdout.read().split("\n")[:-1]]
    process.wait()
    process.stdout.close()
    with Database(path) as db:
        assert db.integrity_check() == []
        kept = {int(row["text"]) for row in db.rows("SELECT text FROM items")}
    assert set(seen) <= kept


def test_a_lock_that_stays_is_a_sentence_and_one_that_goes_is_waited_for(path: Path) -> None:
    with Database(path, lock_retries=1) as db:
        db.migrate("items", ITEMS)
        other = connect(path)
        other.execute("BEGIN IMMEDIATE")
        with db._lock:
            db._connection.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(StoreError, match="holding") as caught:
            db.execute("INSERT INTO items(text) VALUES ('a')")
        assert caught.value.kind == "locked"
        assert db.rows("SELECT * FROM items") == []
        db._connection.execute("PRAGMA busy_timeout = 5000")
        waiting = threading.Thread(target=db.execute, args=("INSERT INTO items(text) VALUES ('b')",))
        waiting.start()
        other.execute("COMMIT")
        waiting.join()
        other.close()
        assert db.value("SELECT text FROM items") == "b"


def test_a_full_disk_is_a_sentence_and_loses_nothing(path: Path) -> None:
    with Database(path) as db:
        db.migrate("items", ITEMS)
        db.execute("INSERT INTO items(text) VALUES ('kept')")
        pages = db.value("PRAGMA page_count")
        db.value(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="no room left") as caught:
            _insert(db, "part", "x" * 100_000)
        assert caught.value.kind == "full"
        assert [row["text"] for row in db.rows("SELECT text FROM items")] == ["kept"]
        db.value("PRAGMA max_page_count = 100000")
        db.execute("INSERT INTO items(text) VALUES ('again')")
        assert db.value("SELECT count(*) FROM items") == 2


def test_a_file_that_cannot_be_written_is_a_sentence() -> None:
    with Database(":memory:") as db:
        db.migrate("items", ITEMS)
        db._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="cannot be written") as caught:
            db.execute("INSERT INTO items(text) VALUES ('a')")
        assert caught.value.kind == "readonly"


def test_garbage_and_damage_are_sentences_with_a_way_out(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StoreError, match="not a SQLite database") as caught:
        Database(path)
    assert caught.value.kind == "corrupt"
    assert "memory restore" in str(caught.value)
    path.unlink()
    with Database(path) as db:
        db.migrate("items", ITEMS)
        for _ in range(50):
            db.execute("INSERT INTO items(text) VALUES (?)", ("text" * 500,))
    data = bytearray(path.read_bytes())
    data[8192:20480] = b"\xff" * 12288
    path.write_bytes(data)
    assert check_file(path)
    with Database(path) as db:
        assert db.integrity_check()


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot be created.*Check that you may write") as caught:
        Database(tmp_path / "file" / "memory.db")
    assert caught.value.kind == "unopenable"
    with pytest.raises(StoreError, match="cannot be opened"):
        connect(tmp_path / "absent.db", readonly=True)


def test_mistakes_of_the_program_are_not_dressed_up_as_trouble_with_the_file() -> None:
    with Database(":memory:") as db, pytest.raises(sqlite3.OperationalError, match="no such table"):
        db.rows("SELECT * FROM absent")
    assert explain(sqlite3.IntegrityError("UNIQUE constraint failed"), "x") is None


def test_deleted_text_is_in_no_file_after_a_vacuum(path: Path) -> None:
    secret = "needle-in-the-haystack"
    with Database(path) as db:
        db.migrate("items", ITEMS)
        db.execute("INSERT INTO items(text) VALUES (?)", (secret,))
        assert any(secret.encode() in each.read_bytes() for each in db.files())
        db.execute("DELETE FROM items")
        assert db.vacuum()
        assert not any(secret.encode() in each.read_bytes() for each in db.files())
        with db.transaction(), pytest.raises(RuntimeError, match="inside a transaction"):
            db.vacuum()


def test_a_checkpoint_says_when_a_reader_is_in_the_way(path: Path) -> None:
    with Database(path) as db:
        db.migrate("items", ITEMS)
        reader = connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM items").fetchall()
        db.execute("INSERT INTO items(text) VALUES ('a')")
        db._connection.execute("PRAGMA busy_timeout = 10")
        assert not db.checkpoint()
        reader.execute("COMMIT")
        reader.close()
        assert db.checkpoint()
        assert Path(f"{path}-wal").stat().st_size == 0


def test_a_copy_is_whole_private_and_never_written_over_another(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "copies" / "2026-05-02.db"
    with Database(path) as db:
        db.migrate("items", ITEMS)
        db.execute("INSERT INTO items(text) VALUES ('kept')")
        assert db.vacuum_into(target) == target
        with pytest.raises(StoreError, match="exists already") as caught:
            db.vacuum_into(target)
        assert caught.value.kind == "exists"
    assert check_file(target) == []
    assert [each.name for each in target.parent.iterdir()] == ["2026-05-02.db"]
    if os.name == "posix":
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with Database(target) as copy:
        assert copy.value("SELECT text FROM items") == "kept"


def test_a_bad_copy_is_thrown_away(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.memory.database.check_file", lambda _: ["page 3 is torn"])
    with Database(path) as db, pytest.raises(StoreError, match="page 3 is torn"):
        db.vacuum_into(tmp_path / "copies" / "x.db")
    assert list((tmp_path / "copies").iterdir()) == []


def test_rows_that_point_to_nothing_are_found(path: Path) -> None:
    with Database(path) as db:
        with db.transaction() as connection:
            connection.execute("CREATE TABLE parent(id INTEGER PRIMARY KEY)")
            connection.execute("CREATE TABLE child(id INTEGER REFERENCES parent(id))")
        assert db.foreign_key_check() == []
    careless = sqlite3.connect(path)
    careless.execute("INSERT INTO child VALUES (7)")
    careless.commit()
    careless.close()
    with Database(path) as db:
        assert [found[0] for found in db.foreign_key_check()] == ["child"]
    assert check_file(path) == ["child row 1 points to nothing in parent"]


def test_the_clock_of_the_database_can_be_set() -> None:
    now = ["2026-05-02 10:00:00"]
    with Database(":memory:") as db:
        db.set_clock(lambda: now[0])
        assert db.value("SELECT datetime('now', '+7 days')") == "2026-05-09 10:00:00"
        now[0] = "2030-01-01 00:00:00"
        assert db.value("SELECT datetime('now')") == "2030-01-01 00:00:00"
        assert db.value("SELECT datetime('2020-02-28', '+2 days')") == "2020-03-01 00:00:00"


async def test_a_few_rows_are_read_in_place_unless_another_thread_writes(path: Path) -> None:
    def read() -> tuple[int, int]:
        return threading.get_ident(), int(db.value("SELECT count(*) FROM items"))

    here = threading.get_ident()
    with Database(path) as db:
        db.migrate("items", ITEMS)
        assert await db.read_small(read) == (here, 0)
        holding, release = threading.Event(), threading.Event()

        def hold() -> None:
            with db.transaction() as connection:
                connection.execute("INSERT INTO items(text) VALUES ('new')")
                holding.set()
                release.wait(10)

        holder = threading.Thread(target=hold)
        holder.start()
        holding.wait(10)
        waiting = asyncio.ensure_future(db.read_small(read))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        release.set()
        thread, count = await waiting
        holder.join()
        assert thread != here
        assert count == 1
