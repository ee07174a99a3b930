"""What a small real model saves of what people state: in the same turn, at the right place, and what it saves wrongly.

    python benchmarks/save_immediately.py [CASES] [--sample 12] [--seed 1] [--resume rows.jsonl] [--json] [--check]

Each row of CASES (tests/cases/utterances.jsonl) is one message to a fresh project with the built-in model, through the
same session as the chat. All projects have one name, so that the fixed part of the prompt is the same and every row
starts from its stored state. Three columns: what the model saved by calls of its own; with the calls that stood in its
text; and with the promise check, which asks the model for the user's words when something is missing.

Saved means: live at the end of the turn, at the place the row names (or one it also allows), with every wanted word
and no unwanted one. A row with nothing to keep counts as wrongly saved when anything is live at its end. Finished rows
are kept in the --resume file, which a later run goes on with. The temperature is 0, so that a run can be repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import sys
import tempfile
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from _report import Report, one_blas_thread, parser, table

from tui_agent.agent.events import MemoryChanged, PhaseChanged, SaveMissing, ToolFinished, ToolStarted, TurnFinished
from tui_agent.agent.session import Session
from tui_agent.llm.client import ModelClient
from tui_agent.llm.embedded.process import EmbeddedEngine
from tui_agent.memory.types import Fact
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

CASES = Path(__file__).parents[1] / "tests" / "cases" / "utterances.jsonl"
COLUMNS = ("model alone", "plus rescue", "plus promise check")
SHARE_GOAL, WRONG_GOAL = 0.95, 1
NAME = "notebook"
NUM_CTX = 4096


@dataclass
class Seen:
    """What one turn did: ids of rows written by the model's own calls, by rescued ones, and by the check."""

    own: set[str] = field(default_factory=set)
    rescued: set[str] = field(default_factory=set)
    checked: set[str] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    missing: str = ""
    answer: str = ""


async def run_row(row: dict[str, Any], client: ModelClient, model: str, base: Path, user: UserPaths) -> dict[str, Any]:
    """One message in a project of its own; what was saved, and by whom."""
    root = base / row["id"] / NAME
    root.mkdir(parents=True)
    home = base / row["id"] / "home"
    paths = UserPaths(home / "config", home / "data", home / "state", user.cache)
    project = Project.open(root)
    flags = {"model": model, "embedder": "none", "num_ctx": NUM_CTX, "temperature": 0.0, "seed": 1}
    began = time.perf_counter()
    session = await Session.open(
        project, load_settings(project, paths, {}, flags), user_paths=paths, client=client, interactive=False
    )
    seen = Seen()
    replies = _Replies()
    logger = logging.getLogger("tui_agent.agent.promise_check")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(replies)
    checked_at = 0.0
    writer = seen.checked
    try:
        async for event in session.send(row["text"]):
            if isinstance(event, ToolStarted):
                writer = seen.rescued if event.rescued else seen.own
                arguments = json.dumps(event.arguments, ensure_ascii=False)
                seen.calls.append(f"{event.name}{' (rescued)' if event.rescued else ''} {arguments}")
            elif isinstance(event, ToolFinished):
                seen.calls[-1] += f" -> {event.result}"
                writer = seen.checked
            elif isinstance(event, MemoryChanged) and event.zone == "fact" and event.id:
                writer.add(event.id)
                seen.places[event.id] = event.target
            elif isinstance(event, MemoryChanged) and event.zone == "file":
                seen.files.append(event.text)
            elif isinstance(event, PhaseChanged) and event.phase == "checking":
                checked_at = time.perf_counter()
            elif isinstance(event, SaveMissing):
                seen.missing = event.sentence
            elif isinstance(event, TurnFinished):
                seen.answer = event.text or event.error
        ended = time.perf_counter()
        live = session.stores.facts.live()
        return {
            "id": row["id"],
            "saved": [_fact(fact, seen) for fact in live],
            "files": seen.files,
            "calls": seen.calls,
            "missing": seen.missing,
            "answer": seen.answer,
            "quoted": replies.text,
            "seconds": round(ended - began, 1),
            "check_s": round(ended - checked_at, 1) if checked_at else None,
        }
    finally:
        logger.removeHandler(replies)
        await session.close()


class _Replies(logging.Handler):
    """Holds what the model answered to the check, for the report."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


def _fact(fact: Fact, seen: Seen) -> dict[str, str]:
    by = "own" if fact.id in seen.own else "rescued" if fact.id in seen.rescued else "check"
    target = fact.target or seen.places.get(fact.id, "").replace("fact", "")
    return {"text": fact.fact, "line": fact.target_line, "target": target, "kind": fact.kind.value, "by": by}


# --- judging --------------------------------------------------------------------------------------


def judged(row: dict[str, Any], done: dict[str, Any]) -> list[bool]:
    """For each column whether the row is right: saved where something was to be saved, and nothing where not."""
    columns = []
    for writers in (("own",), ("own", "rescued"), ("own", "rescued", "check")):
        saved = [fact for fact in done["saved"] if fact["by"] in writers]
        if row["expect"] in ("save", "ttl"):
            columns.append(is_saved(row, saved))
        else:
            columns.append(not saved and not done["files"])
    return columns


def is_saved(row: dict[str, Any], saved: Sequence[dict[str, str]]) -> bool:
    """Whether what is live says it all, at a right place, and nothing that must not be kept."""
    texts = [_stem(fact["text"]) for fact in saved]
    if any(_stem(word) in text for word in row.get("must_not_contain", ()) for text in texts):
        return False
    places = [row["target"], *row.get("target_alt", ())]
    right = [_stem(fact["text"] + "\n" + fact["line"]) for fact in saved if _at(fact, places)]
    return bool(right) and all(any(_stem(word) in text for text in right) for word in row.get("must_contain", ()))


def _at(fact: dict[str, str], places: Sequence[str]) -> bool:
    """Whether a row is at one of the places. A rule is kept as a row, since only the user writes the rules file."""
    target = fact["target"]
    row = target in ("", "rules.md")
    for place in places:
        if row and (place == "fact" or (place == "rules" and (target or fact["kind"] == "convention"))):
            return True
        if target and fnmatchcase(target, place):
            return True
    return False


def _stem(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold().replace("ё", "е")


# --- the run --------------------------------------------------------------------------------------


async def run_rows(rows: Sequence[dict[str, Any]], resume: Path | None, limit_s: float) -> dict[str, dict[str, Any]]:
    """Runs the rows that are not finished yet, one after another."""
    finished = read_finished(resume)
    left = [row for row in rows if row["id"] not in finished]
    if not left:
        return finished
    user = UserPaths.find()
    with tempfile.TemporaryDirectory(prefix="save-") as folder:
        base = Path(folder)
        engine = EmbeddedEngine(
            num_ctx=NUM_CTX, models_dir=user.models_dir, slots_dir=user.slots_dir, log_path=base / "engine.log"
        )
        client = ModelClient(await engine.start())
        until = time.monotonic() + limit_s
        try:
            model = (await client.tags())[0].name
            for number, row in enumerate(left, 1):
                if time.monotonic() > until:
                    print(f"{len(left) - number + 1} rows are left; run again with the same --resume file.", flush=True)
                    break
                done = await run_row(row, client, model, base, user)
                finished[row["id"]] = done
                if resume is not None:
                    with resume.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(done, ensure_ascii=False) + "\n")
                marks = "".join("+" if right else "-" for right in judged(row, done))
                print(f"{number}/{len(left)} {row['id']} {marks} {done['seconds']:.0f} s", flush=True)
        finally:
            await client.aclose()
            await engine.stop()
    return finished


def read_finished(resume: Path | None) -> dict[str, dict[str, Any]]:
    """The rows that an earlier run has finished."""
    if resume is None or not resume.exists():
        return {}
    found = [json.loads(line) for line in resume.read_text("utf-8").splitlines() if line.strip()]
    return {done["id"]: done for done in found}


def sample(rows: list[dict[str, Any]], count: int, seed: int) -> list[dict[str, Any]]:
    """A share of every language and expectation, the same for the same seed; all rows when ``count`` is 0."""
    if not count or count >= len(rows):
        return rows
    groups: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["lang"], row["expect"] in ("save", "ttl")), []).append(row)
    shuffle = random.Random(seed)
    for group in groups.values():
        shuffle.shuffle(group)
    # By how much of its group each row comes after, so that any number of rows is spread over the groups.
    ordered = sorted(
        ((place + 0.5) / len(group), row["id"], row) for group in groups.values() for place, row in enumerate(group)
    )
    return sorted((row for _, _, row in ordered[:count]), key=lambda row: str(row["id"]))


def report(rows: Sequence[dict[str, Any]], finished: dict[str, dict[str, Any]], arguments: argparse.Namespace) -> int:
    """Prints table, failures and goals."""
    made = Report("save_immediately")
    measured = [row for row in rows if row["id"] in finished]
    wanted = [row for row in measured if row["expect"] in ("save", "ttl")]
    unwanted = [row for row in measured if row["expect"] not in ("save", "ttl")]
    results = {row["id"]: judged(row, finished[row["id"]]) for row in measured}
    for row in measured:
        done = finished[row["id"]]
        if not results[row["id"]][-1] or arguments.verbose:
            print(f"\n{row['id']} {row['expect']} {row['target'] or ''}: {row['text']}")
            for call in done["calls"]:
                print(f"   call    {call[:300]}")
            for fact in done["saved"]:
                print(f"   saved   [{fact['by']}] {fact['target'] or 'fact'}: {fact['text']}")
            print(f"   answer  {' '.join(done['answer'].split())[:200]}")
            if done.get("quoted"):
                print(f"   check   {done['quoted'][:300]}")
            if done["missing"]:
                print(f"   offered {done['missing']}")
    print()
    lines = []
    for number, column in enumerate(COLUMNS):
        peer = "" if number == 2 else column
        right = sum(results[row["id"]][number] for row in wanted)
        wrong = sum(not results[row["id"]][number] for row in unwanted)
        share = right / len(wanted) if wanted else None
        made.put("saved", share, peer=peer)
        made.put("wrongly saved", wrong, peer=peer)
        by_language = []
        for language in ("en", "pl", "ru"):
            own = [row for row in wanted if row["lang"] == language]
            part = sum(results[row["id"]][number] for row in own) / len(own) if own else None
            made.put("saved", part, peer=peer, category=language)
            by_language.append(part)
        lines.append([column, share, *by_language, wrong])
    table(["", f"saved of {len(wanted)}", "en", "pl", "ru", f"wrongly saved of {len(unwanted)}"], lines)
    times = sorted(finished[row["id"]]["seconds"] for row in measured)
    checks = sorted(finished[row["id"]]["check_s"] for row in measured if finished[row["id"]]["check_s"])
    if times:
        made.put("turn_s", times[len(times) // 2])
        print(f"\nmedian seconds of a turn: {times[len(times) // 2]}", end="")
    if checks:
        made.put("check_s", checks[len(checks) // 2])
        print(f"; of a check: {checks[len(checks) // 2]}, needed in {len(checks)} of {len(measured)} turns")
    made.put("rows", len(measured))
    share, wrong = made.ours["overall"]["saved"], made.ours["overall"]["wrongly saved"]
    made.goal("statements saved in the same turn", ">= 95 %", share, None if share is None else share >= SHARE_GOAL)
    made.goal("wrongly saved", "at most 1", wrong, wrong <= WRONG_GOAL if unwanted else None)
    made.notes.append(f"{len(measured)} of {len(rows)} rows; built-in model, window {NUM_CTX} tokens, temperature 0")
    return made.finish(arguments)


def main() -> int:
    """Runs the benchmark."""
    made = parser(__doc__ or "")
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("cases", nargs="?", type=Path, default=CASES, help="the cases, one JSON object a line")
    made.add_argument("--sample", type=int, default=0, metavar="N", help="only N rows, spread over the languages")
    made.add_argument("--seed", type=int, default=1, help="which rows a sample takes")
    made.add_argument("--resume", type=Path, metavar="FILE", help="keep finished rows here, and go on with those there")
    made.add_argument("--limit", type=float, default=1e9, metavar="SECONDS", help="start no row after this long")
    made.add_argument("--verbose", action="store_true", help="print every row, not only those that failed")
    arguments = made.parse_args()
    if arguments.quick and not arguments.sample:
        arguments.sample = 12
    lines = arguments.cases.read_text("utf-8").splitlines()
    rows = sample([json.loads(line) for line in lines if line.strip()], arguments.sample, arguments.seed)
    os.environ.pop("OLLAMA_HOST", None)
    finished = asyncio.run(run_rows(rows, arguments.resume, arguments.limit))
    return report(rows, finished, arguments)


if __name__ == "__main__":
    one_blas_thread()
    sys.exit(main())
