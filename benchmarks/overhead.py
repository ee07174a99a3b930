"""What our side adds before a request leaves: saving the message, recalling, noting what was used; embedding apart.

Stores of 100 to 50,000 facts in three languages, each with a vector, and 500 put-away items. The embedder answers at
once. Every fifth question a fact was written just before, so that the index has to follow. Beside the times: how long
building the index takes at start (in the background in the app), and the longest time in which the event loop answered
nobody, with a quiet loop beside it. The processor's own time is printed too; on a shared machine it is steadier.

    python benchmarks/overhead.py [--quick] [--json] [--check]
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _report import Report, one_blas_thread, parser, table

if __name__ == "__main__":
    one_blas_thread()

import numpy as np

from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.history import History
from tui_agent.memory.recall import Recaller
from tui_agent.memory.types import NewFact, Vector
from tui_agent.memory.working import MemoryScope, WorkingMemory

SIZES = (100, 1_000, 10_000, 50_000)
QUESTIONS = 100
COLD_ITEMS = 500
DIMENSION = 512
ALPHABETS = ("abcdefghijklmnoprstuwyz", "aąbcćdeęijklłmnńoóprsśtuwyzżź", "абвгдеёжзийклмнопрстуфхцчшщыьэюя")


class Instant:
    """An embedder that costs next to nothing: a vector from the hash of the text, with a direction common to all."""

    identity = f"instant:{DIMENSION}"
    dimension = DIMENSION

    def __init__(self) -> None:
        self._common = np.random.default_rng(1).normal(size=DIMENSION)

    def vector(self, text: str) -> Vector:
        noise = np.random.default_rng(abs(hash(text)) % 2**32).normal(size=DIMENSION)
        vector = 0.7 * self._common + noise
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)

    async def embed(self, texts: Sequence[str], kind: str = "document") -> list[Vector | None]:
        return [self.vector(text) for text in texts]


class Words:
    """Made-up statements over 12,000 words of three alphabets, used as often as words are (Zipf)."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = [
            ["".join(self._random.choices(letters, k=self._random.randint(3, 11))) for _ in range(4_000)]
            for letters in ALPHABETS
        ]
        self._weights = [1 / (rank + 4) for rank in range(4_000)]

    def statement(self, length: int = 12) -> str:
        return " ".join(self._random.choices(self._random.choice(self._words), self._weights, k=length))


class Stalls:
    """The longest time between two ticks of the event loop, in milliseconds, beyond the tick itself."""

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
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, (time.perf_counter() - before) * 1000 - 1)


def fill(db: Database, facts: FactStore, count: int, words: Words, embedder: Instant) -> None:
    with db.transaction():
        for start in range(0, count, 1000):
            made = [
                facts.add(NewFact(words.statement(2), words.statement(), f"message {n}", importance=n % 10 + 1))
                for n in range(start, min(count, start + 1000))
            ]
            facts.put_vectors(embedder.identity, {fact.id: embedder.vector(fact.fact) for fact in made})


async def measure(size: int, questions: int) -> dict[str, float]:
    words, embedder = Words(size), Instant()
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "memory.db") as db:
        facts, history = FactStore(db), History(db)
        await asyncio.to_thread(fill, db, facts, size, words, embedder)
        working = WorkingMemory(db, embedder, scope=MemoryScope("local", "user", "bench"), session_id="past")
        for _ in range(COLD_ITEMS):
            await working.forget(await working.add("log", words.statement(40)))
        await working.save()
        recaller = Recaller(db, facts, history, working, embedder)
        session = history.start_session().id

        async with Stalls() as quiet:
            await asyncio.sleep(5.0)
        async with Stalls() as building:
            started = time.perf_counter()
            await recaller.warm()
            first = (time.perf_counter() - started) * 1000
        times, used = [], []
        async with Stalls() as asking:
            for number in range(questions):
                text = words.statement(8)
                if number % 5 == 4:
                    fact = await db.run(facts.add, NewFact("", words.statement(), f"question {number}"))
                    await db.run(facts.put_vectors, embedder.identity, {fact.id: embedder.vector(fact.fact)})
                began, processor = time.perf_counter(), time.process_time()
                await db.run(history.append, session, "user", text)
                record = await recaller.recall(text, session_id=session)
                await db.run(facts.used, [item.id for item in record.items if item.store == "fact"])
                embedding = record.extra["embed_ms"]
                times.append((time.perf_counter() - began) * 1000 - embedding)
                used.append((time.process_time() - processor) * 1000 - embedding)
        return {
            "median": float(np.median(times)),
            "p95": float(np.percentile(times, 95)),
            "cpu_median": float(np.median(used)),
            "cpu_p95": float(np.percentile(used, 95)),
            "first": first,
            "stall_building": building.longest,
            "stall_asking": asking.longest,
            "stall_quiet": quiet.longest,
        }


def main() -> int:
    options = parser(__doc__ or "").parse_args()
    sizes = SIZES[:3] if options.quick else SIZES
    report = Report("overhead")
    rows = []
    found = {}
    for size in sizes:
        found[size] = asyncio.run(measure(size, QUESTIONS))
        rows.append([size, *found[size].values()])
        for key, value in found[size].items():
            report.put(key, value, category=f"{size} facts")
    head = ["facts", "ms", "p95", "cpu ms", "cpu p95", "build ms", "stall building", "stall asking", "quiet loop"]
    table(head, rows)
    middle = found[10_000]
    report.put("p95_at_10000", middle["p95"])
    report.put("cpu_p95_at_10000", middle["cpu_p95"])
    report.goal("p95 at 10,000 facts, ms", "< 15", middle["p95"], middle["p95"] < 15)
    for what in ("building", "asking"):
        value = max(figures[f"stall_{what}"] for figures in found.values())
        report.goal(f"longest stall of the event loop while {what}, ms", "< 50", value, value < 50)
    report.notes.append("stalls hold what other processes took; compare with the quiet loop in the same run")
    return report.finish(options)


if __name__ == "__main__":
    sys.exit(main())
