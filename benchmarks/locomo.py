"""Finding the turns that hold the answer in very long conversations (LoCoMo), through the app's own recaller.

DATA is a folder of conversations, one JSON file each (see its README; licensed for non-commercial use, read only
from there). Each turn becomes a put-away item with text and vector; with ``--history`` a message with text alone.
Questions of categories 1-4 are asked; no model is asked to rewrite, rank or answer. Measured is the share of the
evidence turns among the first k, mean over questions, and the reciprocal rank of the first of them.

Beside ours, in the same run: plain BM25 over the turn, vectors alone, equal-weight rank fusion of these two, and the
article's weighting of similarity, importance and age. To see whether the weights are fitted to these conversations,
neighbouring settings are tried too: for each conversation the one that is best on the others is measured on it.

    python benchmarks/locomo.py DATA [--embedder builtin|minilm|none] [--models DIR] [--history] [--json] [--check]
"""

from __future__ import annotations

import asyncio
import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from _embedders import Kept, chosen
from _report import Report, one_blas_thread, parser, table

if __name__ == "__main__":
    one_blas_thread()

import numpy as np

from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.history import History
from tui_agent.memory.project_memory import weighted_score
from tui_agent.memory.ranking import Weights
from tui_agent.memory.recall import Recaller
from tui_agent.memory.text import content_words
from tui_agent.memory.working import MemoryScope, WorkingMemory

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
DEPTH = 20
SETTINGS = {
    "as shipped": Weights(),
    "more words": Weights(words=0.40, context=0.25),
    "more context": Weights(words=0.15, context=0.48),
    "more meaning": Weights(meaning=0.80),
    "less meaning": Weights(meaning=0.35),
    "more conversation": Weights(group=0.35),
    "less conversation": Weights(group=0.15),
    "stronger neighbours": Weights(before=0.40, after=0.40),
    "weaker neighbours": Weights(before=0.20, after=0.20),
    "weaker speaker": Weights(speaker=0.25),
}


class Conversation:
    """Turns in order, with what a store knows of them, and the questions that have evidence."""

    def __init__(self, path: Path) -> None:
        data = json.loads(path.read_text(encoding="utf-8"))
        self.name = str(data["id"])
        self.turns: list[dict[str, Any]] = []
        for session in data["sessions"]:
            day = datetime.strptime(session["date"].split(" on ")[-1].strip(), "%d %B, %Y")
            for turn in session["turns"]:
                text = f"{turn['speaker']}: {turn['text']}"
                at = day.strftime("%Y-%m-%d 12:00:00")
                self.turns.append({"id": turn["id"], "session": str(session["session"]), "text": text, "at": at})
        known = {turn["id"] for turn in self.turns}
        self.questions = []
        for question in data["questions"]:
            evidence = [name for name in question["evidence"] if name in known]
            if question["category"] in CATEGORIES and evidence:
                self.questions.append((question["question"], question["category"], evidence))


class Scores:
    """Recall and reciprocal rank by category, and recall@10 by conversation."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, dict[int, float], float]] = []
        self.times: list[float] = []
        self.cpu: list[float] = []

    def note(self, conversation: str, category: int, evidence: Sequence[str], order: Sequence[str]) -> None:
        places = {name: number for number, name in enumerate(order)}
        ranks = [places.get(name, math.inf) for name in evidence]
        recalls = {k: statistics.fmean(rank < k for rank in ranks) for k in (5, 10, 20)}
        self.rows.append((conversation, category, recalls, 1.0 / (1.0 + min(ranks))))

    def figures(self, category: int | None = None, conversation: str | None = None) -> dict[str, float]:
        rows = [row for row in self.rows if category in (None, row[1]) and conversation in (None, row[0])]
        found = {f"recall@{k}": statistics.fmean(row[2][k] for row in rows) for k in (5, 10, 20)}
        found["mrr"] = statistics.fmean(row[3] for row in rows)
        if self.times and category is None and conversation is None:
            found["ms"], found["cpu_ms"] = statistics.median(self.times), statistics.median(self.cpu)
        return found


async def fill_cold(db: Database, conversation: Conversation, embedder: Kept | None) -> WorkingMemory:
    """Every turn as a put-away item of its session; returns the working memory of a session that asks."""
    scope = MemoryScope("local", "user", f"project:{conversation.name}")
    ids: list[tuple[str, str]] = []
    working: WorkingMemory | None = None
    for turn in conversation.turns:
        if working is None or working.session_id != turn["session"]:
            if working is not None:
                await working.save()
            working = WorkingMemory(db, embedder, max_tokens=100_000, scope=scope, session_id=turn["session"])
        item_id = await working.add("log", turn["text"], source=turn["id"])
        await working.forget(item_id)
        ids.append((turn["at"], str(item_id)))
    if working is not None:
        await working.save()
    with db.transaction() as connection:  # the items were made when the turns were said
        connection.executemany("UPDATE wm_items SET created_at = ? WHERE id = ?", ids)
    return WorkingMemory(db, embedder, max_tokens=2048, scope=scope, session_id="asking")


def fill_history(history: History, conversation: Conversation) -> dict[str, str]:
    """Every turn as a message; returns the turns by the ids of the messages."""
    names: dict[str, str] = {}
    sessions: dict[str, str] = {}
    for number, turn in enumerate(conversation.turns):
        if turn["session"] not in sessions:
            sessions[turn["session"]] = history.start_session().id
        role = ("user", "assistant")[number % 2]
        message = history.append(sessions[turn["session"]], role, turn["text"], created_at=turn["at"])
        names[message.id] = turn["id"]
    return names


async def measure(
    conversations: Sequence[Conversation], embedder: Kept | None, use_history: bool, settings: dict[str, Weights]
) -> dict[str, Scores]:
    """Our scores by setting."""
    scores: dict[str, Scores] = defaultdict(Scores)
    for conversation in conversations:
        with tempfile.TemporaryDirectory() as folder, Database(Path(folder) / "memory.db") as db:
            history = History(db)
            names, working = {}, None
            if use_history:
                names = fill_history(history, conversation)
            else:
                working = await fill_cold(db, conversation, embedder)
            for setting, weights in settings.items():
                recaller = Recaller(db, FactStore(db), history, working, embedder, weights=weights)
                await recaller.search_messages("warm") if use_history else await recaller.search_cold("warm")
                for question, category, evidence in conversation.questions:
                    if embedder is not None:
                        embedder.now([question], "query")  # embedding is not what is measured
                    started, used = time.perf_counter(), time.process_time()
                    if use_history:
                        order = [names[item.id] for item in await recaller.search_messages(question, DEPTH)]
                    else:
                        order = [item.source for item in await recaller.search_cold(question, DEPTH)]
                    scores[setting].times.append((time.perf_counter() - started) * 1000)
                    scores[setting].cpu.append((time.process_time() - used) * 1000)
                    scores[setting].note(conversation.name, category, evidence, order)
    return scores


# --- what it is compared with ---------------------------------------------------------------------


def bm25(documents: Sequence[Sequence[str]], query: Sequence[str], k1: float = 1.2, b: float = 0.75) -> np.ndarray:
    """Plain BM25 over folded words without stop words."""
    counted = [Counter(document) for document in documents]
    lengths = np.array([max(1, len(document)) for document in documents])
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    total = np.zeros(len(documents))
    for word in dict.fromkeys(query):
        held = np.array([count[word] for count in counted])
        rarity = math.log(1 + (len(documents) - (held > 0).sum() + 0.5) / ((held > 0).sum() + 0.5))
        total += rarity * held * (k1 + 1) / (held + norm)
    return total


def peers(conversations: Sequence[Conversation], embedder: Kept | None) -> dict[str, Scores]:
    """Scores of the usual ways."""
    scores: dict[str, Scores] = defaultdict(Scores)
    for conversation in conversations:
        ids = [turn["id"] for turn in conversation.turns]
        texts = [turn["text"] for turn in conversation.turns]
        documents = [content_words(text) for text in texts]
        times = [datetime.fromisoformat(turn["at"]).timestamp() for turn in conversation.turns]
        matrix = np.stack(embedder.now(texts)) if embedder is not None else None
        for question, category, evidence in conversation.questions:
            lexical = np.argsort(-bm25(documents, content_words(question)), kind="stable")
            orders = {"BM25": [ids[n] for n in lexical]}
            if matrix is not None and embedder is not None:
                cosines = matrix @ embedder.now([question], "query")[0]
                dense = np.argsort(-cosines, kind="stable")
                orders["vectors"] = [ids[n] for n in dense]
                fused = np.zeros(len(ids))
                for order in (lexical, dense):
                    fused[order] += 1.0 / (60 + np.arange(1, len(ids) + 1))
                orders["RRF k=60"] = [ids[n] for n in np.argsort(-fused, kind="stable")]
                weighed = {
                    n: weighted_score(1 - float(cosines[n]), 5, (max(times) - times[n]) / 86400)
                    for n in map(int, dense[: 3 * DEPTH])
                }
                orders["article's formula"] = [ids[n] for n in sorted(weighed, key=lambda n: -weighed[n])[:DEPTH]]
            for name, order in orders.items():
                scores[name].note(conversation.name, category, evidence, order)
    return scores


def held_out(scores: dict[str, Scores], conversations: Sequence[Conversation]) -> tuple[float, dict[str, str]]:
    """Recall@10 when the setting for each conversation is the one that is best on the others, and which that was."""
    total, questions, taken = 0.0, 0, {}
    for left_out in conversations:
        others = [c for c in conversations if c is not left_out]
        best = max(
            scores,
            key=lambda name: sum(
                scores[name].figures(conversation=c.name)["recall@10"] * len(c.questions) for c in others
            ),
        )
        taken[left_out.name] = best
        total += scores[best].figures(conversation=left_out.name)["recall@10"] * len(left_out.questions)
        questions += len(left_out.questions)
    return total / max(1, questions), taken


def main() -> int:
    arguments = parser(__doc__ or "")
    arguments.add_argument("data", type=Path, metavar="DATA", help="folder of LoCoMo conversations")
    arguments.add_argument("--embedder", choices=("builtin", "minilm", "none"), default="builtin")
    arguments.add_argument("--models", type=Path, help="folder of the MiniLM files")
    arguments.add_argument("--history", action="store_true", help="search messages (text alone) instead of items")
    options = arguments.parse_args()
    files = sorted(options.data.glob("*.json"))
    if not files:
        raise SystemExit(f"There are no .json files in {options.data}.")
    conversations = [Conversation(file) for file in files[: 1 if options.quick else None]]
    embedder = None if options.history else chosen(options.embedder, options.models)
    settings = {"as shipped": Weights()} if options.quick else SETTINGS
    scores = asyncio.run(measure(conversations, embedder, options.history, settings))
    ours = scores["as shipped"]
    others = peers(conversations, embedder)

    report = Report("locomo")
    what = "messages, words alone" if options.history else f"put-away items, embedder: {options.embedder}"
    turns, questions = sum(len(c.turns) for c in conversations), sum(len(c.questions) for c in conversations)
    print(f"{len(conversations)} conversations, {turns:,} turns, {questions} questions; {what}\n")
    rows: list[list[Any]] = []
    for name, found in {"ours": ours, **others}.items():
        peer = "" if name == "ours" else name
        figures = found.figures()
        rows.append([name, "all", *[figures[key] for key in ("recall@5", "recall@10", "recall@20", "mrr")]])
        for key, value in figures.items():
            report.put(key, value, peer=peer)
        for category, label in CATEGORIES.items():
            figures = found.figures(category)
            for key, value in figures.items():
                report.put(key, value, peer=peer, category=label)
            if name == "ours":
                rows.append([name, label, *figures.values()])
    for conversation in conversations:
        figures = ours.figures(conversation=conversation.name)
        rows.append(["ours", conversation.name, *figures.values()])
        report.put("recall@10", figures["recall@10"], category=conversation.name)
    table(["system", "questions", "R@5", "R@10", "R@20", "MRR"], rows)
    times = sorted(ours.times)
    report.put("ms_p95", times[int(0.95 * len(times))])
    cpu, slow = statistics.median(ours.cpu), times[int(0.95 * len(times))]
    print(
        f"\nms per question, embedding apart: median {statistics.median(times):.1f}, p95 {slow:.1f}, "
        f"the processor's own {cpu:.1f}"
    )

    if len(settings) > 1:
        print()
        spread = [[name, found.figures()["recall@10"]] for name, found in scores.items()]
        table(["setting", "R@10"], spread)
        value, taken = held_out(scores, conversations)
        report.put("leave_one_conversation_out_recall@10", value)
        chosen_for = ", ".join(f"{number}x {name}" for name, number in Counter(taken.values()).most_common())
        report.notes.append(f"leave one conversation out: R@10 {value:.3f} (taken: {chosen_for})")

    overall = ours.figures()["recall@10"]
    wanted = 0.72 if embedder is None else {"builtin": 0.78, "minilm": 0.80}[options.embedder]
    report.goal("recall@10", f">= {wanted}", overall, overall >= wanted)
    if embedder is not None:
        multi = ours.figures(1)["recall@10"]
        report.goal("multi-hop recall@10", ">= 0.50", multi, multi >= 0.5)
    report.goal("ms per question (processor's time)", "< 20", cpu, cpu < 20)
    return report.finish(options)


if __name__ == "__main__":
    sys.exit(main())
