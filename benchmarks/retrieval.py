"""Finding a fact again: by other words, other forms, names, in another language, misspelt.

All facts of the cases go into one store, with their ages and weights; then every question is asked of the recaller.
Both ways are measured, with the built-in embedder and without vectors, and the plain embedder alone beside them.
Weights are fitted on the rows of ``retrieval_dev.jsonl``. Those of ``retrieval_held_out.jsonl`` were written apart
from all others, with no word of a paraphrase in common with its fact, to see whether a change helps there too.

    python benchmarks/retrieval.py [CASES] [--embedder builtin|minilm|none] [--models DIR] [--json] [--check]
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from _embedders import Kept, chosen
from _report import Report, one_blas_thread, parser, table

if __name__ == "__main__":
    one_blas_thread()

import numpy as np

from tui_agent.memory.database import Database
from tui_agent.memory.fact_index import statement
from tui_agent.memory.facts import FactStore
from tui_agent.memory.history import History
from tui_agent.memory.recall import Recaller
from tui_agent.memory.text import format_utc
from tui_agent.memory.types import NewFact

CASES = Path(__file__).parent.parent / "tests" / "cases" / "retrieval.jsonl"
KINDS = ("paraphrase", "inflected", "keyword", "symbol", "cross_language", "typo")
GOALS = {"inflected": 0.95, "keyword": 0.95, "symbol": 0.95, "typo": 0.95, "paraphrase": 0.90, "cross_language": 0.85}
LEXICAL_GOALS = {
    "inflected": 1.0,
    "keyword": 1.0,
    "symbol": 1.0,
    "typo": 1.0,
    "paraphrase": 0.61,
    "cross_language": 0.21,
}
DEPTH = 50


class Measured:
    """Ranks by kind and language, and by whether the number of the case is odd (rows that settings were chosen on)."""

    def __init__(self) -> None:
        self.ranks: dict[str, list[int]] = defaultdict(list)
        self.times: list[float] = []

    def note(self, case: dict[str, Any], question: dict[str, Any], rank: int) -> None:
        half = "odd" if int(case["id"][-3:]) % 2 else "even"
        for name in ("all", question["kind"], f"{question['kind']} {question['lang']}", f"{question['kind']} {half}"):
            self.ranks[name].append(rank)

    def figures(self, name: str) -> dict[str, Any]:
        ranks = np.array(self.ranks[name])
        found = {f"recall@{k}": float((ranks <= k).mean()) for k in (1, 3, 5, 10)}
        return {"questions": len(ranks), **found, "mrr": float((1.0 / ranks).mean())}


def load(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


async def measure(cases: list[dict[str, Any]], embedder: Kept | None) -> Measured:
    measured = Measured()
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "memory.db") as db:
        facts = FactStore(db)
        now = datetime.now(timezone.utc)
        ids = {}
        for case in cases:
            made = format_utc(now - timedelta(days=case["age_days"]))
            new = NewFact(
                case["subject"], case["fact"], f"case {case['id']}", importance=case["importance"], created_at=made
            )
            ids[case["id"]] = facts.add(new).id
        recaller = Recaller(db, facts, History(db), None, embedder)
        await recaller.index_missing()
        for case in cases:
            for question in case["questions"]:
                record = await recaller.recall(question["text"], top_k=DEPTH, threshold=-1.0, max_tokens=1_000_000)
                order = [item.id for item in record.items]
                right = ids[case["id"]]
                measured.note(case, question, order.index(right) + 1 if right in order else 1_000_000)
                measured.times.append(record.took_ms - record.extra["embed_ms"])
    return measured


def meaning_alone(cases: list[dict[str, Any]], embedder: Kept) -> Measured:
    measured = Measured()
    matrix = np.stack(embedder.now([statement(case["subject"], case["fact"]) for case in cases]))
    for number, case in enumerate(cases):
        for question in case["questions"]:
            cosines = matrix @ embedder.now([question["text"]], "query")[0]
            measured.note(case, question, int((cosines > cosines[number]).sum()) + 1)
    return measured


def main() -> int:
    arguments = parser(__doc__ or "")
    arguments.add_argument("cases", nargs="?", type=Path, default=CASES, metavar="CASES", help="a retrieval.jsonl")
    arguments.add_argument("--embedder", choices=("builtin", "minilm", "none"), default="builtin")
    arguments.add_argument("--models", type=Path, help="folder of the MiniLM files")
    options = arguments.parse_args()
    cases = load(options.cases)
    embedder = chosen(options.embedder, options.models)
    found = {"words": asyncio.run(measure(cases, None))}
    if embedder is not None:
        found = {
            "both": asyncio.run(measure(cases, embedder)),
            **found,
            "meaning": meaning_alone(cases, embedder),
        }
    report = Report("retrieval")
    ours = next(iter(found))
    print(f"{len(cases)} facts, {len(found[ours].ranks['all'])} questions, embedder: {options.embedder}\n")
    rows = []
    for way, measured in found.items():
        peer = "" if way == ours else way
        for name in sorted(measured.ranks, key=_in_order):
            figures = measured.figures(name)
            for key, value in figures.items():
                report.put(key, value, peer=peer, category="" if name == "all" else name)
            if way == ours or " " not in name:
                rows.append([way, name, *figures.values()])
    table(["way", "kind", "n", "@1", "@3", "@5", "@10", "MRR"], rows)
    times = sorted(found[ours].times)
    report.put("ms_median", statistics.median(times))
    slow = times[int(0.95 * len(times))]
    report.put("ms_p95", slow)
    print(f"\nms per question, embedding apart: median {statistics.median(times):.1f}, p95 {slow:.1f}")
    if embedder is not None:
        for kind, goal in GOALS.items():
            value = found["both"].figures(kind)["recall@3"]
            report.goal(f"{kind} recall@3", f">= {goal}", value, value >= goal)
        for kind in KINDS:
            both, words, meaning = (found[way].figures(kind)["recall@3"] for way in ("both", "words", "meaning"))
            best = max(words, meaning)
            report.goal(f"{kind}: both not below either", f">= {best:.3f}", both, both >= best - 1e-9)
    for kind, goal in LEXICAL_GOALS.items():
        value = found["words"].figures(kind)["recall@5"]
        report.goal(f"words alone, {kind} recall@5", f">= {goal}", value, value >= goal - 0.005)
    return report.finish(options)


def _in_order(name: str) -> tuple[int, str]:
    kind = name.partition(" ")[0]
    return (KINDS.index(kind) if kind in KINDS else -1, name)


if __name__ == "__main__":
    sys.exit(main())
