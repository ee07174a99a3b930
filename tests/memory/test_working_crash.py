"""Killed at any moment, a full disk, a second window: what was acknowledged is there afterwards."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tui_agent.memory.cold import ColdStore
from tui_agent.memory.database import Database, StoreError
from tui_agent.memory.working import WorkingMemory

SOAK = bool(os.environ.get("TUI_AGENT_SOAK"))

WRITER = """
import asyncio, sys
from tui_agent.memory.database import Database
from tui_agent.memory.working import WorkingMemory

async def main():
    mem = WorkingMemory(Database(sys.argv[1]), counter=lambda t: len(t.split()), max_tokens=120, session_id="s")
    await mem.load("s")
    number = int(sys.argv[2])
    while True:
        text = f"item {number} " + " ".join(f"w{number}x{i}" for i in range(20))
        made = await mem.add(["log", "edit"][number % 2], text)
        print(made, number, flush=True)
        if number % 3 == 0:
            await mem.recall(f"w{number - 5}x3")
        if number % 7 == 0:
            await mem.edit(made, text + " edited")
        number += 1

asyncio.run(main())
"""


def count(text):
    return len(text.split())


def test_killed_at_any_moment_every_acknowledged_item_is_there(tmp_path):
    path = tmp_path / "m.db"
    acknowledged = {}
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    source = random.Random(seed)
    number = 0
    for _ in range(100 if SOAK else 4):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(number)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        time.sleep(source.random() * 0.15)
        writer.send_signal(signal.SIGKILL)
        lines += writer.stdout.read().splitlines(keepends=True)
        writer.wait()
        writer.stdout.close()
        for line in filter(lambda line: line.endswith("\n"), lines):
            item_id, made = line.split()
            acknowledged[item_id] = int(made)
            number = max(number, int(made) + 1)
        number += 1
    with Database(path) as db:
        assert db.integrity_check() == []
        store = ColdStore(db)
        store.index()
        for item_id, made in acknowledged.items():
            row = db.row("SELECT text, zone FROM wm_items WHERE id = ?", (item_id,))
            assert row is not None
            assert row["text"].startswith(f"item {made} w{made}x0 ")
        assert db.value("SELECT count(*) FROM wm_items WHERE indexed = 0") == 0
        assert db.value("SELECT count(*) FROM wm_terms") == db.value("SELECT count(*) FROM wm_items")

        async def look():
            mem = WorkingMemory(db, counter=count, max_tokens=120, session_id="s")
            await mem.load("s")
            assert count((await mem.assemble()).render()) <= 120
            some = source.sample(sorted(acknowledged), min(20, len(acknowledged)))
            for item_id in some:
                made = acknowledged[item_id]
                hot = {row.id for row in mem.hot()}
                assert item_id in hot or item_id in {x.id for x in await mem.search(f"w{made}x3 w{made}x7", limit=3)}

        asyncio.run(look())


async def test_a_full_disk_keeps_everything_in_memory_and_writes_it_later(tmp_path, monkeypatch):
    with Database(tmp_path / "m.db") as db:
        mem = WorkingMemory(db, counter=count, max_tokens=100)
        write = mem.store.write

        def full(batch):
            raise StoreError("There is no room left on the disk.", "full")

        monkeypatch.setattr(mem.store, "write", full)
        made = [await mem.add("log", f"text {number} " + "word " * 20) for number in range(12)]
        await mem.note("a note")
        assert "no room left" in mem.trouble
        assert count((await mem.assemble()).render()) <= 100
        monkeypatch.setattr(mem.store, "write", write)
        await mem.save()
        assert mem.trouble == ""
        kept = {row["id"] for row in db.rows("SELECT id FROM wm_items")}
        assert set(made) <= kept
        assert len(await mem.log()) >= 8


async def test_half_a_step_is_never_written(tmp_path, monkeypatch):
    """An error in the middle of a batch takes all of it back: item, eviction and log line."""
    with Database(tmp_path / "m.db") as db:
        mem = WorkingMemory(db, counter=count, max_tokens=100)
        for number in range(4):
            await mem.add("log", f"text {number} " + "word " * 20)
        before = [tuple(row) for row in db.rows("SELECT id, zone FROM wm_items ORDER BY id")]
        logged = db.value("SELECT count(*) FROM wm_log")
        inner = mem.store._write_item
        calls = []

        def third_fails(connection, batch, change):
            calls.append(change.id)
            if len(calls) == 2:
                raise StoreError("The disk failed.", "io")
            return inner(connection, batch, change)

        monkeypatch.setattr(mem.store, "_write_item", third_fails)
        made = await mem.add("edit", "edit " + "word " * 30)
        assert len(calls) == 2
        assert [tuple(row) for row in db.rows("SELECT id, zone FROM wm_items ORDER BY id")] == before
        assert db.value("SELECT count(*) FROM wm_log") == logged
        await mem.save()
        assert db.value("SELECT count(*) FROM wm_items WHERE id = ?", (made,)) == 1
        assert db.value("SELECT count(*) FROM wm_items WHERE zone = 'hot'") == len(mem.hot())


async def test_notes_and_edits_wait_for_the_disk_and_other_moves_only_for_the_system(tmp_path, monkeypatch):
    """The first survive a power cut, the others a killed process; no half of any move is ever written."""
    with Database(tmp_path / "m.db") as db:
        mem = WorkingMemory(db, counter=count, max_tokens=400)
        await mem.save()
        inner, waited = db.transaction, []

        def watched(*, synced=True):
            waited.append(synced)
            return inner(synced=synced)

        monkeypatch.setattr(db, "transaction", watched)

        async def waits(action):
            waited.clear()
            await action
            await mem.save()
            return any(waited)

        made = await mem.add("log", "a log")
        assert await waits(mem.note("the harbour opens at six"))
        assert await waits(mem.edit(made, "another text"))
        assert not await waits(mem.add("log", "one more log"))
        assert not await waits(mem.forget(made))
        assert not await waits(mem.bring_back(made))


async def test_two_windows_do_not_bring_the_same_item_back_twice(tmp_path):
    path = tmp_path / "m.db"
    with Database(path) as one, Database(path) as two:
        first = WorkingMemory(one, counter=count, session_id="one")
        second = WorkingMemory(two, counter=count, session_id="two")
        made = await first.add("log", "the harbour crane is broken")
        await first.forget(made)
        await second.cold()
        inner = second.store.items

        def taken_meanwhile(scope, ids, identity=""):
            found = inner(scope, ids, identity)
            one.execute("UPDATE wm_items SET zone = 'hot', session_id = 'one' WHERE id = ?", (made,))
            return found

        second.store.items = taken_meanwhile
        await second.recall("harbour crane")
        assert [row.id for row in second.hot()] == []
        assert one.row("SELECT session_id, zone FROM wm_items WHERE id = ?", (made,))["session_id"] == "one"


async def test_what_another_window_puts_away_is_found_here(tmp_path):
    path = tmp_path / "m.db"

    class Letters:
        identity, dimension = "letters", 26

        async def embed(self, texts, kind):
            import numpy as np

            return [np.array([text.count(chr(97 + i)) + 0.01 for i in range(26)], np.float32) for text in texts]

    with Database(path) as one, Database(path) as two:
        first, second = WorkingMemory(one, Letters(), counter=count), WorkingMemory(two, Letters(), counter=count)
        await second.search("nothing yet")
        made = await first.add("log", "the harbour crane is broken")
        await first.forget(made)
        assert [item.id for item in await second.search("harbour crane")] == [made]


async def test_nothing_blocks_the_event_loop_while_a_long_text_is_added(tmp_path):
    """The loop keeps turning while the text is counted, read, written and indexed in threads. How long each turn takes
    is for the benchmark; here it counts that there are turns at all."""
    turns = 0

    async def tick():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    with Database(tmp_path / "m.db") as db:
        mem = WorkingMemory(db, counter=count, max_tokens=500)
        ticking = asyncio.create_task(tick())
        await mem.add("log", "\n".join(f"line {i} of name_{i}" for i in range(20_000)))
        ticking.cancel()
    assert turns > 100


@pytest.mark.parametrize("text", ["\ud800 half a pair", "a\udfffb"])
async def test_text_that_no_encoding_can_write_is_stored_with_a_replacement(text):
    with Database(":memory:") as db:
        mem = WorkingMemory(db, counter=count)
        made = await mem.add("log", text, summary=text, source=text)
        stored = await mem.text_of(made)
        assert "\ufffd" in stored
        assert "half a pair" in stored or "b" in stored
        assert db.value("SELECT count(*) FROM wm_items") == 1
