"""What our side adds between the user's "send" and the first byte of the request to the model server.

Whole sessions, as the app holds them: ``Session.send`` with the settings a new user has, real stores on disk, and the
real client, which talks to a server that answers at once from another process. The clock starts before ``send`` and
stops when the client begins to write the request's header. Only the time inside the embedder is taken off.

Stores of 100 to 50,000 facts in three languages, each with a vector; 500 put-away items and 1,000 earlier messages.
Each of the questions is another one. Before every fifth a fact is written, so that everything has to follow. Every
twentieth begins a new session. The embedder answers at once, and where Chroma is installed it is there too. There are
three rounds of questions; median and p95 are those of the middle round, since other programs take part of the time.
Stalls are looked for in a fourth one, because to look takes time too.

The longest stall is the longest time in which the event loop answered nobody: while the project is opened and all that
is read and built for it in the background, and while questions are asked and what follows an answer is done. A quiet
loop in the same process shows what the machine itself takes; "cpu" is the processor's time of the process until the
request leaves, all threads together, which other programs do not change as much. Memory is what a process with so many
facts takes more than one with none.

    python benchmarks/overhead.py [--quick] [--sizes 100,10000] [--json] [--check]
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

sys.path.insert(0, str(Path(__file__).parent))
from _overhead_data import Data
from _overhead_server import MODEL
from _report import Report, one_blas_thread, parser, table

if __name__ == "__main__":
    one_blas_thread()

import httpx
import numpy as np

from tui_agent.agent.events import Notice, TurnFinished
from tui_agent.agent.session import Session
from tui_agent.agent.stores import Stores
from tui_agent.llm.client import ModelClient
from tui_agent.memory.types import NewFact, TextKind, Vector
from tui_agent.memory.upkeep import working_scope
from tui_agent.memory.working import WorkingMemory
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

if TYPE_CHECKING:
    from tui_agent.memory.facts import FactStore

SIZES = (100, 1_000, 10_000, 50_000)
QUESTIONS, ROUNDS = 100, 3
PER_SESSION = 20
COLD_ITEMS, MESSAGES = 500, 1_000
DIMENSION = 512
QUIET_S = 3.0
NUM_CTX = 32_768  # twenty questions fit, so that no summary is written between them


class Instant:
    """An embedder that costs next to nothing: a vector from the hash of the text, with a direction common to all."""

    identity = f"instant:{DIMENSION}"
    dimension = DIMENSION

    def __init__(self) -> None:
        self._common = np.random.default_rng(1).normal(size=DIMENSION)
        self.spent = self.processor = 0.0

    def vector(self, text: str) -> Vector:
        """Always the same for a text."""
        noise = np.random.default_rng(int.from_bytes(text.encode()[-64:], "big") % 2**32).normal(size=DIMENSION)
        vector = 0.7 * self._common + noise
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)

    async def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[Vector | None]:
        """Vectors of texts; the time is noted, in seconds."""
        began, processor = time.perf_counter(), time.process_time()
        found: list[Vector | None] = [self.vector(text) for text in texts]
        self.spent += time.perf_counter() - began
        self.processor += time.process_time() - processor
        return found


class Wire(httpx.AsyncHTTPTransport):
    """The network, with the moments noted at which a request for an answer leaves: seconds on the clock and of the
    processor, both without what the embedder took."""

    def __init__(self, embedder: Instant) -> None:
        super().__init__(trust_env=False)
        self._embedder = embedder
        self.left: list[tuple[float, float]] = []

    def now(self) -> tuple[float, float]:
        """The present moment, in these terms."""
        return time.perf_counter() - self._embedder.spent, time.process_time() - self._embedder.processor

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request."""
        if request.url.path == "/api/chat":
            client = request.extensions.get("trace")

            async def trace(event: str, info: dict[str, Any]) -> None:
                if event == "http11.send_request_headers.started":
                    self.left.append(self.now())
                if client is not None:
                    await client(event, info)

            request.extensions["trace"] = trace
        return await super().handle_async_request(request)


class Stalls:
    """The longest time between two ticks of the event loop, in milliseconds, beyond the tick itself.

    ``own`` is the longest without the time in which the loop's thread was ready to run and other programs (or other
    threads of ours) had the processors, where the system tells.
    """

    def __init__(self) -> None:
        self.longest = self.own = 0.0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Stalls:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()

    async def _tick(self) -> None:
        told = _told()
        with told or contextlib.nullcontext():
            while True:
                before, waited = time.perf_counter(), _waited(told)
                await asyncio.sleep(0.001)
                late = (time.perf_counter() - before) * 1000 - 1
                self.longest = max(self.longest, late)
                if late > self.own:
                    self.own = max(self.own, late - (_waited(told) - waited))


def _told() -> BinaryIO | None:
    """Where the system tells of this thread, if it does."""
    try:
        return Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").open("rb", buffering=0)
    except OSError:
        return None


def _waited(told: BinaryIO | None) -> float:
    """How long a thread has waited for a processor since it began, in milliseconds."""
    if told is None:
        return 0.0
    told.seek(0)
    return int(told.read().split()[1]) / 1e6


@contextlib.asynccontextmanager
async def model_server() -> AsyncIterator[str]:
    """The address of a server that answers at once, in a process of its own."""
    program = Path(__file__).with_name("_overhead_server.py")
    process = await asyncio.create_subprocess_exec(sys.executable, str(program), stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


def fill(stores: Stores, count: int, data: Data, embedder: Instant) -> None:
    """Facts with their vectors, and earlier messages."""
    facts, history = stores.facts, stores.history
    with stores.db.transaction():
        for start in range(0, count, 1000):
            made = []
            for n in range(start, min(count, start + 1000)):
                said = data.statement()
                made.append(facts.add(NewFact(said.subject, said.text, f"message {n}", importance=n % 10 + 1)))
            facts.put_vectors(embedder.identity, {fact.id: embedder.vector(fact.fact) for fact in made})
        past = history.start_session(title="Earlier").id
        for n in range(MESSAGES):
            history.append(past, "assistant" if n % 2 else "user", data.page() if n % 2 else data.statement().text)
        history.mark_extracted(past)
        history.rebuild_index()


async def prepare(project: Project, paths: UserPaths, settings: Any, size: int, data: Data, embedder: Instant) -> None:
    """A project with a past."""
    stores = Stores.open(project, settings, paths)
    await asyncio.to_thread(fill, stores, size, data, embedder)
    working = WorkingMemory(stores.db, embedder, scope=working_scope(project), session_id="past")
    for _ in range(COLD_ITEMS):
        await working.forget(await working.add("log", data.page()))
    await working.close()
    stores.close()


def state_fact(facts: FactStore, data: Data, embedder: Instant, number: int) -> None:
    """A new fact with its vector, as the background would have made it."""
    said = data.statement()
    fact = facts.add(NewFact(said.subject, said.text, f"question {number}"))
    facts.put_vectors(embedder.identity, {fact.id: embedder.vector(fact.fact)})


async def measure(size: int, questions: int) -> dict[str, float]:
    """One row of the table."""
    data, embedder = Data(size), Instant()
    wire = Wire(embedder)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TUI_AGENT_HOME"] = f"{folder}/home"
        root = Path(folder) / "project"
        root.mkdir()
        project, paths = Project.open(root), UserPaths.find()
        async with model_server() as url:
            loaded = load_settings(project, paths, {}, {"host": url, "model": MODEL, "num_ctx": NUM_CTX})
            await prepare(project, paths, loaded.settings, size, data, embedder)
            # The facts that this program made up are no business of the app's collector.
            gc.collect()
            gc.freeze()
            async with Stalls() as quiet:
                await asyncio.sleep(QUIET_S)
            before = resident()
            async with Stalls() as opening:
                started = time.perf_counter()
                session = await Session.open(
                    project, loaded, user_paths=paths, client=ModelClient(url, transport=wire), embedder=embedder
                )
                heard: list[Notice] = []
                session.subscribe(lambda event: heard.append(event) if isinstance(event, Notice) else None)
                await session.start()
                first = (time.perf_counter() - started) * 1000
                await background(session)
                ready = (time.perf_counter() - started) * 1000
            memory = resident() - before
            times, used = [], []

            async def ask(numbers: range) -> None:
                for number in numbers:
                    if number and number % PER_SESSION == 0:
                        await session.switch("new")
                    if number % 5 == 4:
                        await session.core.db.run(state_fact, session.stores.facts, data, embedder, number)
                    text = data.question(number)
                    wire.left.clear()
                    began, cpu = wire.now()
                    async for event in session.send(text):
                        if isinstance(event, TurnFinished) and event.status != "answered":
                            raise SystemExit(f"the turn ended {event.status}: {event.error}")
                    left = wire.left[0]
                    times.append((left[0] - began) * 1000)
                    used.append((left[1] - cpu) * 1000)
                    await session.core.settled()
                    await asyncio.sleep(0.02)  # nobody types faster

            await ask(range(ROUNDS * questions))
            timed = len(times)
            # To look a thousand times a second whether the loop answers takes time itself: a round of its own.
            async with Stalls() as asking:
                await ask(range(timed, timed + questions))
            await session.close()
        return {
            "median": of_rounds(times[:timed], 50),
            "p95": of_rounds(times[:timed], 95),
            "cpu_median": of_rounds(used[:timed], 50),
            "cpu_p95": of_rounds(used[:timed], 95),
            "open_ms": first,
            "ready_ms": ready,
            "stall_opening": opening.longest,
            "own_opening": opening.own,
            "stall_asking": asking.longest,
            "own_asking": asking.own,
            "stall_quiet": quiet.longest,
            "memory_mib": memory,
        }


def of_rounds(values: Sequence[float], percentile: int) -> float:
    """A percentile of each round of questions; of these the middle one."""
    return float(np.median([np.percentile(one, percentile) for one in np.array_split(values, ROUNDS)]))


async def background(session: Session) -> None:
    """Wait until everything that an opened project still reads and builds in the background is there."""
    while session._background:
        await asyncio.wait(set(session._background))
    await session.core.settled()
    if (keeper := session._keeper) is not None:
        await keeper.settled()


def resident() -> float:
    """Memory of this process in MiB, where the system tells."""
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return float("nan")


def row_of(size: int, questions: int) -> dict[str, float]:
    """A row measured in a process of its own, so that sizes do not share memory."""
    run = [sys.executable, __file__, "--row", str(size), "--questions", str(questions)]
    done = subprocess.run(run, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the run with {size} facts failed")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Run the benchmark."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--sizes", default="", help="numbers of facts, with commas between")
    arguments.add_argument("--questions", type=int, default=QUESTIONS)
    arguments.add_argument("--row", type=int, default=None, help="measure one size, print figures only")
    options = arguments.parse_args()
    if options.row is not None:
        print(json.dumps(asyncio.run(measure(options.row, options.questions))))
        return 0
    sizes = SIZES[:3] if options.quick else SIZES
    if options.sizes:
        sizes = tuple(map(int, options.sizes.split(",")))
    report = Report("overhead")
    rows = []
    found = {}
    for size in sizes:
        found[size] = row_of(size, options.questions)
        rows.append([size, *found[size].values()])
        for key, value in found[size].items():
            report.put(key, value, category=f"{size} facts")
    head = [
        "facts", "ms", "p95", "cpu ms", "cpu p95", "open ms", "all ready ms", "stall opening", "own", "stall asking",
        "own", "quiet loop", "MiB",
    ]  # fmt: skip
    table(head, rows)
    middle = found.get(10_000)
    p95 = middle["p95"] if middle is not None else None
    report.put("p95_at_10000", p95)
    report.put("cpu_p95_at_10000", middle["cpu_p95"] if middle is not None else None)
    report.goal("p95 at 10,000 facts, ms", "< 15", p95, p95 < 15 if p95 is not None else None)
    for what in ("opening", "asking"):
        value = max(figures[f"stall_{what}"] for figures in found.values())
        report.goal(f"longest stall of the event loop while {what}, ms", "< 50", value, value < 50)
    report.notes.append(
        "stalls hold what other programs took; “own” is without the time in which the loop waited for a processor, and "
        "the quiet loop does nothing in the same process"
    )
    report.notes.append(f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    report.notes.append("a synced commit waits for this disk: see the first column for a store of 100 facts")
    return report.finish(options)


if __name__ == "__main__":
    sys.exit(main())
