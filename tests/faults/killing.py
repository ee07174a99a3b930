"""``python -m tests.faults.killing SEED ROUNDS``: a process works on one memory and is killed, again and again.

The worker says each finished operation on a pipe, after it is on disk and not before; whoever reads the pipe knows what
was promised. After each kill a second process opens the memory as a restart does and reports what is there. This
process itself opens nothing, so that it can fork cheaply and safely. Prints what went wrong; exits 1 if anything did.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import select
import signal
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chromadb  # noqa: F401  # imported once here, not in each child
import numpy as np

from tests.memory.world import USER, World
from tui_agent.memory.backup import Backups
from tui_agent.memory.checks import check
from tui_agent.memory.chroma_index import ChromaIndex
from tui_agent.memory.facts import FactStore
from tui_agent.memory.recall import Recaller
from tui_agent.memory.restoring import restore, unfinished
from tui_agent.memory.secrets import has_secret
from tui_agent.memory.shredding import resume, shred
from tui_agent.memory.statements import read
from tui_agent.memory.traces import Spans, files_below, traces_in
from tui_agent.memory.types import Action, Origin, Proposal

LONGEST_S = 0.5
PLACES = ("fact", "fact", USER, "AGENTS.md#User Preferences")
VERBS = ("remember",) * 5 + ("correct",) * 3 + ("delete", "delete", "backup", "restore", "re-index")
# What an operation that was cut off may leave: made again from the rows by one command, without a question.
MENDABLE = {"lines", "facts.json", "vectors", "vector index", "backlog"}


class Letters:
    """Vectors from a hash of the text; two identities, so that an index of one can be replaced by the other's."""

    dimension = 16

    def __init__(self, identity: str) -> None:
        self.identity = identity

    async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Any:
        raw = np.frombuffer(hashlib.blake2b(f"{self.identity}{text}".encode(), digest_size=32).digest(), np.uint8)
        vector = raw[:16].astype(np.float32) - 127.5
        return vector / np.linalg.norm(vector)


@dataclass
class Known:
    """What was promised: live facts by id, texts deleted forever, what each backup holds, what each fact replaced."""

    live: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    backups: dict[str, dict[str, str]] = field(default_factory=dict)
    chain: dict[str, list[str]] = field(default_factory=dict)

    def apply(self, done: dict[str, Any]) -> None:
        """One finished operation."""
        what = done["what"]
        if what == "remember":
            self.live[done["id"]] = done["text"]
            self.chain[done["id"]] = [done["text"]]
        elif what == "correct":
            self.chain[done["id"]] = [*self.chain[done["old"]], done["text"]]
            del self.live[done["old"]]
            self.live[done["id"]] = done["text"]
        elif what == "delete":
            self.forget(done["id"])
        elif what == "backup":
            self.backups[done["name"]] = dict(self.live)
        elif what == "restore":
            self.backups[done["kept"]] = dict(self.live)
            self.live = self.restored(done["name"])

    def forget(self, fact_id: str) -> None:
        """Deleted forever: it and all it replaced."""
        self.gone |= set(self.chain[fact_id])
        self.live = self.without_gone(self.live)

    def without_gone(self, facts: dict[str, str]) -> dict[str, str]:
        """Those of ``facts`` that were not deleted."""
        return {fact_id: text for fact_id, text in facts.items() if text not in self.gone}

    def restored(self, name: str) -> dict[str, str]:
        """What is live once this backup is back."""
        return self.without_gone(self.backups[name])


class Worker:
    """Works until it is killed."""

    def __init__(self, root: Path, known: Known, chance: random.Random, tell: Callable[[dict[str, Any]], None]) -> None:
        self.world = World(root, World.open(root, root.parent / "home"))
        self.known, self.chance, self.tell = known, chance, tell

    def run(self) -> None:
        """Never comes back."""
        while True:
            what = self.chance.choice(VERBS)
            if what in ("correct", "delete") and not self.known.live:
                continue
            if what == "restore" and not self.known.backups:
                continue
            done = {
                "remember": self.remember,
                "correct": self.correct,
                "delete": self.delete,
                "backup": self.backup,
                "restore": self.restore,
                "re-index": self.reindex,
            }[what]()
            if done is not None:
                self.known.apply(done)
                self.tell({"done": True, **done})

    def _say(self) -> str:
        number = self.chance.getrandbits(40)
        return (
            f"I keep the {self.chance.choice(('heron', 'copper', 'willow'))} book {number} behind shelf {number % 97}."
        )

    def _begin(self, what: str, **more: Any) -> None:
        self.tell({"done": False, "what": what, **more})

    def remember(self) -> dict[str, Any] | None:
        text = self._say()
        self._begin("remember", text=text)
        verdict = self.world.stores.gate.admit(
            Proposal(text, Origin.USER, "user", "typed", user_text=text, target=self.chance.choice(PLACES))
        )
        if verdict.action is not Action.LIVE:
            return None  # the notes about the user are full
        self.world.stores.ledger.write_facts_json()
        return {"what": "remember", "id": verdict.fact_id, "text": text}

    def correct(self) -> dict[str, Any]:
        old, text = self.chance.choice(sorted(self.known.live)), self._say()
        self._begin("correct", old=old, text=text)
        verdict = self.world.stores.ledger.correct(old, text, "typed")
        assert verdict.action is Action.LIVE, verdict
        self.world.stores.ledger.write_facts_json()
        return {"what": "correct", "old": old, "id": verdict.fact_id, "text": text}

    def delete(self) -> dict[str, Any]:
        fact_id = self.chance.choice(sorted(self.known.live))
        self._begin("delete", id=fact_id)
        shred(self.world.stores, fact_id)
        return {"what": "delete", "id": fact_id}

    def backup(self) -> dict[str, Any]:
        self._begin("backup")
        made = Backups(self.world.project, keep_daily=3).make(self.world.stores.db)
        return {"what": "backup", "name": made.name}

    def restore(self) -> dict[str, Any]:
        project = self.world.project
        found = Backups(project).find("latest")
        self._begin("restore", name=found.name)
        self.world.stores.close()
        result = restore(project, found)
        self.world.reopen()
        return {"what": "restore", "name": found.name, "kept": Path(result.kept).name}

    def reindex(self) -> dict[str, Any]:
        self._begin("re-index")
        stores = self.world.stores
        embedder = Letters(self.chance.choice(("first/16", "second/16")))
        asyncio.run(Recaller(stores.db, stores.facts, stores.history, embedder=embedder).index_missing())
        stores.history.rebuild_index()
        fill_chroma(self.world, embedder.identity, anew=self.chance.random() < 0.5)
        return {"what": "re-index"}


def fill_chroma(world: World, identity: str, *, anew: bool) -> list[str]:
    """Brings Chroma up to the rows; returns the ids it then holds."""
    facts = FactStore(world.stores.db)
    ids, matrix = facts.vectors(identity)
    index = ChromaIndex(world.project.vector_dir, world.project.id, identity)
    try:
        # An index whose owner was killed three times in a row is left alone until the user has it made anew.
        assert (not anew and index.sync(ids, matrix)) or index.rebuild(ids, matrix), index.problem
        assert index.count() == len(ids)
    finally:
        index.close()
    return ids


def child(work: Callable[[Callable[[dict[str, Any]], None]], None]) -> tuple[int, int]:
    """Forks; ``work`` gets a function that writes a line to the pipe. Returns process id and the reading end."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    os.close(reading)
    try:
        work(lambda line: os.write(writing, (json.dumps(line) + "\n").encode()) and None)
    except BaseException:
        os.write(writing, (json.dumps({"error": traceback.format_exc()}) + "\n").encode())
    os._exit(0)


def lines_of(reading: int) -> list[dict[str, Any]]:
    """All whole lines of a pipe, to its end."""
    with os.fdopen(reading, "rb") as file:
        return [json.loads(line) for line in file.read().splitlines(keepends=True) if line.endswith(b"\n")]


def facts_in(database: Path) -> dict[str, str]:
    """Live facts of a resting database."""
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        return dict(db.execute("SELECT id, fact FROM live_memory"))


def look(root: Path, seek: list[str], mend: bool) -> Callable[[Callable[[dict[str, Any]], None]], None]:
    """What a restart does and sees, told to the pipe in one line."""

    def work(tell: Callable[[dict[str, Any]], None]) -> None:
        world = World(root, World.open(root, root.parent / "home"))
        project = world.project
        finished = ""
        if unfinished(project):
            finished = json.loads((project.backups_dir / "restore-under-way.json").read_text("utf-8"))["backup"]
            world.stores.close()
            restore(project, Backups(project).find(Path(finished).name))
            world.reopen()
        resume(world.stores)
        world.stores.ledger.sync_files()
        first = check(world.stores, every_backup=True)
        wrong = [f"{f.what}: {f.text}" for f in first if f.level == "broken"]
        wrong += [
            f"{f.what}: {f.text}" for f in first if f.level == "degraded" and f.what not in MENDABLE | {"backups"}
        ]
        if mend:
            check(world.stores, fix=True)
            after = [f for f in check(world.stores) if f.level in ("degraded", "broken")]
            wrong += [
                f"not mended: {f.what}: {f.text}" for f in after if f.what not in ("backups", "backlog", "vectors")
            ]
        live = {fact.id: fact.fact for fact in world.stores.facts.live()}
        spans = Spans(seek)
        left = [
            str(path)
            for path in files_below([world.memory_dir, root.parent / "home"])
            if seek and any(trace.count for trace in traces_in(path, spans))
        ]
        backups = {backup.name: facts_in(backup.database) for backup in Backups(project).all() if backup.manifest}
        world.stores.close()
        tell({"live": live, "wrong": wrong, "left": left, "backups": backups})

    return work


def judge(known: Known, running: dict[str, Any] | None, seen: dict[str, Any]) -> list[str]:
    """Compares what is there with what was promised, and takes over what the cut-off operation may have done."""
    wrong = [*seen["wrong"]]
    live: dict[str, str] = seen["live"]
    what = running["what"] if running else ""
    before = dict(known.live)
    allowed = [before]
    if what == "remember":
        new = {fact_id: text for fact_id, text in live.items() if text == running["text"]}  # type: ignore[index]
        known.chain.update({fact_id: [text] for fact_id, text in new.items()})
        allowed.append({**before, **new})
    elif what == "correct":
        old, text = running["old"], running["text"]  # type: ignore[index]
        for fact_id in (fact_id for fact_id, said in live.items() if said == text):
            known.chain[fact_id] = [*known.chain[old], text]
            allowed.append({**{one: said for one, said in before.items() if one != old}, fact_id: text})
    elif what == "delete":
        fact_id = running["id"]  # type: ignore[index]
        if fact_id not in live:
            known.forget(fact_id)
            allowed.append(dict(known.live))
            if seen["left"]:
                wrong.append(f"deleted, but still in {seen['left']}")
    elif what == "restore":
        allowed.append(known.restored(running["name"]))  # type: ignore[index]
    if live not in allowed:
        lost = {text for fact_id, text in before.items() if fact_id not in live}
        more = {text for fact_id, text in live.items() if fact_id not in before}
        wrong.append(f"not what was promised after {what or 'nothing'}: missing {lost}, besides {more}")
    known.live = dict(live)
    for name, holds in seen["backups"].items():
        # One that was not acknowledged (or was made when a restore was finished after the kill) is only read.
        promised = known.restored(name) if name in known.backups else holds
        if holds != promised:
            wrong.append(f"the backup {name} holds {holds} and not {promised}")
    known.backups = dict(seen["backups"])
    return wrong


def one_round(root: Path, known: Known, chance: random.Random, counts: Counter[str]) -> list[str]:
    """One life of the worker, and what is found after it."""
    draw = random.Random(chance.getrandbits(64))
    pid, reading = child(lambda tell: Worker(root, known, draw, tell).run())
    select.select([reading], [], [], 30)  # it is open and at work; opening itself is cut off, too, now and then
    end = time.monotonic() + chance.random() * LONGEST_S
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))
    os.kill(pid, signal.SIGKILL)
    told = lines_of(reading)
    os.waitpid(pid, 0)
    wrong = [line["error"] for line in told if "error" in line]
    running = None
    for line in told:
        if line.get("done"):
            known.apply(line)
            counts[line["what"]] += 1
        running = line if line.get("done") is False else None
    counts[f"cut off: {running['what'] if running else 'between'}"] += 1
    seek = known.chain.get(running["id"], []) if running and running["what"] == "delete" else []
    pid, reading = child(look(root, seek, mend=True))
    seen = lines_of(reading)
    os.waitpid(pid, 0)
    if not seen or "error" in seen[-1]:
        return [*wrong, f"cannot be opened again after {running}: {seen}"]
    return wrong + [f"{text} (cut off: {running})" for text in judge(known, running, seen[-1])]


def last_look(root: Path, known: Known) -> list[str]:
    """At the end: nothing deleted is anywhere, and Chroma made from the rows holds exactly the live facts."""
    pid, reading = child(look(root, sorted(known.gone), mend=False))
    seen = lines_of(reading)
    os.waitpid(pid, 0)
    wrong = [f"deleted, but still in {seen[-1]['left']}"] if seen[-1]["left"] else []

    def rebuild(tell: Callable[[dict[str, Any]], None]) -> None:
        world = World(root, World.open(root, root.parent / "home"))
        stores = world.stores
        embedder = Letters("first/16")
        asyncio.run(Recaller(stores.db, stores.facts, stores.history, embedder=embedder).index_missing())
        tell({"ids": sorted(fill_chroma(world, embedder.identity, anew=False)), "live": sorted(known.live)})
        stores.close()

    pid, reading = child(rebuild)
    told = lines_of(reading)
    os.waitpid(pid, 0)
    if "error" in told[-1] or told[-1]["ids"] != told[-1]["live"]:
        wrong.append(f"the index does not hold the live facts: {told[-1]}")
    return wrong


def main(seed: int, rounds: int) -> int:
    """Runs the rounds; returns the exit code."""
    has_secret("loads the rules once, before the first fork")
    read("I keep a book.")
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    known = Known()
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        root.mkdir()
        for number in range(rounds):
            for text in one_round(root, known, chance, counts):
                print(f"round {number}: {text}")
                faults += 1
            if faults > 5:
                break
        for text in last_look(root, known):
            print(f"at the end: {text}")
            faults += 1
    print(f"seed {seed}: {dict(sorted(counts.items()))}")
    print(f"{rounds} kills, {len(known.live)} live, {len(known.gone)} texts deleted, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
