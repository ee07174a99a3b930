"""Working memory, ours beside ``protoprompt``: adding with eviction, assembling, recalling, memory.

Both run in one process on the same items with the same instant embedder (768 dimensions, unit vectors that share a
common direction, as real embedders have it) and the same token counter, each with a database file of its own.
Figures are lower quartiles of wall time, for both alike. The databases lie in a memory file system where there is one,
so that the figures are the programs' and not the disk's; what a commit costs on the disk is printed beside.

    python benchmarks/working_memory.py [--quick] [--full] [--json] [--check]
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from _report import Report, one_blas_thread, parser, ratio, show, table

if __name__ == "__main__":
    one_blas_thread()

import numpy as np

from tui_agent.memory.database import Database
from tui_agent.memory.working import WorkingMemory

try:
    import protoprompt
    from protoprompt import RegexTokenCounter, SqliteStore
    from protoprompt.agent import WorkingMemory as Reference
    from protoprompt.store.sqlite import _pack
except ImportError:  # Python 3.10 has no wheel of it
    protoprompt = None

DIMENSION = 768
PEER = "protoprompt 0.20.0"
GOAL = "the goal"
_TOPICS = 60
_OURS = 8  # of our additions to one of the reference's


class Instant:
    """An embedder that costs nothing: vectors are made beforehand, one per text."""

    identity = f"instant:{DIMENSION}"
    dimension = DIMENSION

    def __init__(self) -> None:
        self.vectors: dict[str, np.ndarray] = {}
        self.lists: dict[str, list[float]] = {}
        random_numbers = np.random.default_rng(1)
        self._common = random_numbers.normal(size=DIMENSION)
        self._topics = random_numbers.normal(size=(_TOPICS, DIMENSION))
        self.know(GOAL, 7, 99)

    def know(self, text: str, topic: int, seed: int) -> None:
        noise = np.random.default_rng(seed).normal(size=DIMENSION)
        vector = 0.8 * self._common + self._topics[topic] + 0.9 * noise
        self.vectors[text] = (vector / np.linalg.norm(vector)).astype(np.float32)

    async def embed(self, texts: Any, kind: str = "document", model: str = "") -> list[Any]:
        return [self.vectors[text.strip()] for text in texts]


class Lists:
    """The same vectors as lists of floats, as the reference wants them; converted once, outside the clock."""

    def __init__(self, instant: Instant) -> None:
        self._instant = instant
        self._lists: dict[str, list[float]] = {}

    def prepare(self, texts: list[str]) -> None:
        self._lists = {text: self._instant.vectors[text].tolist() for text in texts}

    async def embed(self, texts: Any, model: str = "") -> list[list[float]]:
        return [self._lists[text] for text in texts]


def words(count: int = 4000) -> list[str]:
    letters = random.Random(3)
    return ["".join(letters.choices("abcdefghijklmnoprstuwyz", k=letters.randint(3, 10))) for _ in range(count)]


def make_items(count: int, instant: Instant, seed: int = 0) -> list[tuple[str, str]]:
    """``(kind, text)`` of about 60 tokens: words by Zipf's law, a name, a path, a number that is unique."""
    source = random.Random(seed)
    vocabulary = words()
    weights = [1 / (rank + 3) for rank in range(len(vocabulary))]
    kinds = ["log", "tool_output", "test_result", "file", "edit"]
    items = []
    for number in range(count):
        chosen = source.choices(vocabulary, weights, k=42)
        name = f"{vocabulary[number % 997]}_{vocabulary[(number * 7) % 1009]}"
        chosen[10] = f"{name}() in src/{vocabulary[number % 211]}.py:{number % 400}"
        chosen[30] = f"ticket {100_000 + number}"
        text = " ".join(chosen)
        instant.know(text, number % _TOPICS, seed * 1_000_003 + number)
        items.append((kinds[number % len(kinds)], text))
    return items


def typical_ms(times: list[float]) -> float:
    """The lower quartile: on a machine that others use, what is above it is mostly waiting for a processor."""
    return statistics.quantiles(times, n=4)[0] * 1000 if len(times) > 1 else times[0] * 1000


class Stalls:
    """The longest time in which the event loop answered nobody, in milliseconds.

    It is the delay of a 1 ms tick, but never more than the processor time that this whole process took meanwhile:
    waiting for a processor that other programs hold is not our doing, while work in our own threads is.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Stalls:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()

    async def _tick(self) -> None:
        while True:
            before, cpu = time.perf_counter(), time.process_time()
            await asyncio.sleep(0.001)
            wall, busy = time.perf_counter() - before - 0.001, time.process_time() - cpu
            self.longest = max(self.longest, min(wall, busy) * 1000)


async def hot_figures(report: Report, sizes: list[int], folder: Path) -> None:
    rows: list[list[Any]] = []
    background: list[float] = []
    for size in sizes:
        gc.collect()
        gc.freeze()  # what the benchmark itself holds is not our garbage to look through
        instant = Instant()
        rounds = 24 if size < 5000 else 4
        items = make_items(size + rounds * _OURS + 40, instant)
        counter = RegexTokenCounter() if protoprompt else None
        if protoprompt:
            reference, store = await full_reference(instant, items, size, folder)
        db = Database(folder / f"ours-hot-{size}.db")
        memory = await full_memory(db, instant, items, size, counter)
        extra = items[size:]
        added, assembled, their_added, their_assembled, indexing = [], [], [], [], []
        for turn in range(rounds):  # by turns, so that both meet the same moods of the machine
            if protoprompt:
                their_added.append(await timed(reference.add(*extra[turn])))
                if turn < 3:
                    their_assembled.append(await timed(rendered(reference)))
            # The reference keeps the event loop for so long that our background would mistake it for quiet.
            indexing.append(await timed(indexed(memory)))
            for kind, text in extra[turn * _OURS : turn * _OURS + _OURS]:
                added.append(await timed(memory.add(kind, text)))
            assembled.append(await timed(rendered(memory)))
        async with Stalls() as stalls:  # apart, because its ticks cost time too
            for kind, text in extra[:20]:
                await memory.add(kind, text)
            await memory.assemble()
        theirs = {"add": typical_ms(their_added), "assemble": typical_ms(their_assembled)} if protoprompt else {}
        if protoprompt:
            store.close()
        ours = {"add": typical_ms(added), "assemble": typical_ms(assembled)}
        for name in ("add", "assemble"):
            report.put(f"{name}_ms", ours[name], category=f"{size} hot")
            report.put(f"{name}_ms", theirs.get(name), peer=PEER, category=f"{size} hot")
        rows.append(
            [size, len(memory.hot()), ours["add"], theirs.get("add"), ratio(theirs.get("add"), ours["add"]),
             ours["assemble"], theirs.get("assemble"), ratio(theirs.get("assemble"), ours["assemble"]), stalls.longest]
        )  # fmt: skip
        report.put("stall_ms", stalls.longest, category=f"{size} hot")
        background.append(statistics.median(indexing[1:]) * 1000 / _OURS)
        report.put("indexing_ms", background[-1], category=f"{size} hot")
        await memory.save()
        db.close()
    table(
        ["hot items", "really", "add+evict ms", "reference", "times", "assemble ms", "reference", "times", "stall ms"],
        rows,
    )
    for row in rows:
        if row[0] == 500 and row[4] is not None:
            report.goal("add+evict at 500 items", ">= 100 times faster", row[4], row[4] >= 100)
            report.goal("assemble at 500 items", ">= 50 times faster", row[7], row[7] >= 50)
    report.notes.append(
        f"an item's words and names are indexed afterwards, in the background: {max(background):.2f} ms for each"
    )
    worst = max(row[8] for row in rows)
    report.goal("longest stall while adding and assembling", "<= 20 ms", worst, worst <= 20)


async def indexed(memory: WorkingMemory) -> None:
    """What follows additions in the background: their words and names go into the indexes."""
    await memory.store.db.run(memory.store.index)


async def timed(action: Any) -> float:
    """Seconds that a coroutine takes."""
    start = time.perf_counter()
    await action
    return time.perf_counter() - start


async def rendered(memory: Any) -> str:
    return str((await memory.assemble()).render())


async def full_memory(
    db: Database, instant: Instant, items: list[tuple[str, str]], size: int, counter: Any
) -> WorkingMemory:
    """Ours with ``size`` hot items and room for no more."""
    memory = WorkingMemory(db, instant, counter, max_tokens=1_000_000)
    await memory.set_goal(GOAL)
    for kind, text in items[:size]:
        await memory.add(kind, text)
    state = memory.export_state()
    memory = WorkingMemory(db, instant, counter, max_tokens=memory.used_tokens + 40)
    memory.import_state(state)
    await memory.save()
    return memory


async def full_reference(instant: Instant, items: list[tuple[str, str]], size: int, folder: Path) -> tuple[Any, Any]:
    """The reference with ``size`` hot items and room for no more, and its store."""
    counter = RegexTokenCounter()
    lists = Lists(instant)
    lists.prepare([text for _, text in items] + [GOAL])
    budget = sum(counter.count(text) for _, text in items[:size])
    store = SqliteStore(str(folder / f"reference-hot-{size}.db"))
    memory = Reference(store, lists, counter, max_tokens=10 * budget)
    await memory.set_goal(GOAL)
    for kind, text in items[:size]:
        await memory.add(kind, text)
    memory._max_tokens = budget
    return memory, store


async def cold_figures(report: Report, sizes: list[int], reference_sizes: list[int], folder: Path) -> None:
    rows = []
    largest = max(sizes)
    instant = Instant()
    items = make_items(largest, instant, seed=5)
    db = Database(folder / "ours-cold.db")
    counter = RegexTokenCounter() if protoprompt else None
    memory = WorkingMemory(db, instant, counter, max_tokens=2048)
    gc.collect()
    done = 0
    for size in sizes:
        fill_start = time.perf_counter()
        for kind, text in items[done:size]:
            await memory.add(kind, text)
        fill = (time.perf_counter() - fill_start) / max(1, size - done) * 1000
        done = size
        questions = make_questions(items, size, instant)
        await memory.search(questions[0])  # reads the vectors once
        times, recalled, found = [], [], 0
        for question in questions:
            start = time.perf_counter()
            hits = await memory.search(question, 3)
            times.append(time.perf_counter() - start)
            found += any(question.split()[-1] in hit.text for hit in hits)
        for question in questions[:20]:
            start = time.perf_counter()
            await memory.recall(question)
            recalled.append(time.perf_counter() - start)
        async with Stalls() as stalls:
            for question in questions[20:]:
                await memory.recall(question)
        held = sum(sketches.bytes for sketches, _, _ in memory.store._search._sketches.values()) / 1e6
        theirs: dict[str, Any] = {}
        if protoprompt and size in reference_sizes:
            theirs = await reference_cold(instant, items[:size], questions[:4], folder)
        file_mb = sum(path.stat().st_size for path in db.files()) / 1e6
        ours = typical_ms(recalled)
        times_faster = ratio(theirs.get("recall"), ours)
        rows.append(
            [
                *(size, fill, ours, typical_ms(times), theirs.get("recall"), times_faster, stalls.longest),
                *(theirs.get("stall"), held, theirs.get("memory"), file_mb, theirs.get("file"), found / len(questions)),
            ]
        )
        for name, value in {
            "recall_ms": ours,
            "stall_ms": stalls.longest,
            "index_mb": held,
            "file_mb": file_mb,
            "hit@3": found / len(questions),
        }.items():
            report.put(name, value, category=f"{size} cold")
        for name in ("recall", "stall", "memory", "file"):
            report.put(name, theirs.get(name), peer=PEER, category=f"{size} cold")
    await memory.save()
    db.close()
    print()
    head = "cold items|add ms|recall ms|search ms|reference|times|stall ms|reference|index MB|peak MB, reference"
    table([*head.split("|"), "file MB", "reference", "right in 3"], rows)
    by_size = {row[0]: row for row in rows}
    if 20_000 in by_size:
        row = by_size[20_000]
        report.goal("recall at 20,000 cold items", "< 20 ms", row[2], row[2] < 20)
        report.goal(
            "recall at 20,000 cold items", ">= 100 times faster", row[5], None if row[5] is None else row[5] >= 100
        )
    if len(rows) > 1:
        growth, factor = rows[-1][2] / rows[0][2], rows[-1][0] / rows[0][0]
        logarithmic = np.log(rows[-1][0]) / np.log(rows[0][0])
        report.goal(
            f"growth of recall from {rows[0][0]:,} to {rows[-1][0]:,} items ({factor:.0f}x)",
            f"logarithmic ({logarithmic:.2f}x); else below the square root, and a note says why",
            growth,
            growth <= max(logarithmic, factor**0.5),
        )
        report.notes.append(
            "recall grows in three places: counting the bits in which sketches differ (about 25 ns an item), reading "
            "the postings of the question's words in C, and pages that no longer fit the cache of SQLite"
        )
    worst = max(row[6] for row in rows)
    report.goal("longest stall while recalling", "<= 20 ms", worst, worst <= 20)


def make_questions(items: list[tuple[str, str]], size: int, instant: Instant) -> list[str]:
    """Questions with a few words of one item and its number; the vector is near that item's."""
    source = random.Random(size)
    questions = []
    for _ in range(30):
        number = source.randrange(size // 10, size - 100)
        parts = items[number][1].split()
        question = " ".join([*source.sample(parts[:9], 3), "ticket", str(100_000 + number)])
        instant.know(question, number % _TOPICS, number)
        questions.append(question)
    return questions


async def reference_cold(
    instant: Instant, items: list[tuple[str, str]], questions: list[str], folder: Path
) -> dict[str, Any]:
    """Figures of the reference, whose store is filled directly in the shape eviction gives it (that takes minutes)."""
    path = folder / f"reference-cold-{len(items)}.db"
    store = SqliteStore(str(path))
    lists = Lists(instant)
    lists.prepare([text for _, text in items] + questions)
    memory = Reference(store, lists, RegexTokenCounter(), max_tokens=2048)
    rows = []
    for number, (kind, text) in enumerate(items):
        lineage = f"m{number:06d}"
        document = f"agent:cold:{lineage}"
        meta = {"cold_ns": "agent", "orig_id": lineage, "kind": kind, "summary": text[:72], "evicted_at": number}
        meta |= {"lineage": lineage, "important": False, "symbols": [], "chunk_index": 0, "doc_id": document}
        rows.append((meta["doc_id"], 0, text, json.dumps(meta), _pack(instant.vectors[text].tolist())))
        memory.manifest.record(meta["orig_id"], kind, text[:72], 60, number, lineage=meta["lineage"])
    with store._lock:
        store._conn.executemany(
            "INSERT INTO chunks(doc_id, chunk_index, document, metadata, embedding) VALUES (?, ?, ?, ?, ?)", rows
        )
        store._conn.commit()
    del rows
    times = []
    async with Stalls() as stalls:
        for question in questions:
            start = time.perf_counter()
            await memory.recall(question)
            times.append(time.perf_counter() - start)
            await asyncio.sleep(0.002)
    tracemalloc.start()
    await memory.recall(questions[0])
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    store.close()
    return {"recall": typical_ms(times), "stall": stalls.longest, "memory": peak, "file": path.stat().st_size / 1e6}


def commit_ms(folder: Path, *, synced: bool) -> float:
    """What one commit costs in ``folder``, in milliseconds: ``synced`` against a power cut, or only against a kill."""
    with Database(folder / "commit.db") as db:
        db.execute("CREATE TABLE t(text)")
        times = []
        for _ in range(60):
            start = time.perf_counter()
            with db.transaction(synced=synced) as connection:
                connection.execute("INSERT INTO t VALUES (?)", ("x" * 3500,))
            times.append(time.perf_counter() - start)
    return typical_ms(times)


async def run(arguments: Any) -> int:
    report = Report("working_memory")
    hot = [50, 500] if arguments.quick else [50, 500, 5000]
    cold = [1000, 5000] if arguments.quick else [1000, 10_000, 20_000, 50_000]
    references = cold if arguments.full else [size for size in cold if size <= 20_000]
    if protoprompt is None:
        report.notes.append("protoprompt is not installed (it needs Python 3.11); only our figures are shown.")
    memory_folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(dir=arguments.folder or memory_folder) as folder,
        tempfile.TemporaryDirectory() as disk,
    ):
        kill, power = (commit_ms(Path(disk) / name, synced=name == "power") for name in ("kill", "power"))
        report.notes.append(
            f"a commit on this machine's disk takes {kill:.2f} ms when it must survive a kill (items, moves), "
            f"{power:.2f} ms when a power cut too (notes, edited texts, facts, messages)"
        )
        await hot_figures(report, arguments.hot or hot, Path(folder))
        await cold_figures(report, arguments.cold or cold, references, Path(folder))
    report.put("load", show(os.getloadavg()[0]))
    return report.finish(arguments)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--full", action="store_true", help="measure the reference at 50,000 cold items too")
    made.add_argument("--hot", type=int, nargs="+", help="numbers of hot items")
    made.add_argument("--cold", type=int, nargs="+", help="numbers of cold items, rising")
    made.add_argument("--folder", help="where the databases of the run are put")
    return asyncio.run(run(made.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
