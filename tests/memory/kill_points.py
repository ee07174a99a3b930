"""``python -m tests.memory.kill_points SEED COUNT``: kills housekeeping at random points and looks at what is left.

One process forks a child per round, so that no round pays for imports. Prints what went wrong; exits 1 if anything did.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import traceback
from collections import Counter
from pathlib import Path

from tests.memory.world import USER, World
from tui_agent.memory.backup import Backups
from tui_agent.memory.checks import check
from tui_agent.memory.restoring import restore, unfinished
from tui_agent.memory.shredding import resume, shred

LONGEST_S = 0.5
KEPT = "The base fact is that the lamp is green."
MENDABLE = {"lines", "facts.json", "vectors", "backlog"}


def act(world: World, what: str, fact_id: str, said: str) -> None:
    """One piece of housekeeping, as a command does it."""
    if what == "restore":
        restore(world.project, Backups(world.project).find("latest"))
        return
    world.reopen()
    if what == "delete":
        shred(world.stores, fact_id)
    elif what == "backup":
        Backups(world.project, keep_daily=1).make(world.stores.db)
    else:
        for number in range(5):
            world.remember(f"{said} Again, {number} times.", target=USER)
    world.stores.close()


def killed(world: World, what: str, fact_id: str, said: str, after: float) -> bool:
    """Runs :func:`act` in a child and kills it ``after`` seconds; false when it was done before."""
    child = os.fork()
    if child == 0:
        try:
            act(world, what, fact_id, said)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    threading.Event().wait(after)
    done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    elif status:
        print(f"{what} failed by itself")
        sys.exit(1)
    return not done


def faults(world: World, what: str, fact_id: str, said: str) -> list[str]:
    """What is wrong after a kill, once a restart has done its part."""
    if unfinished(world.project):
        world.stores.close()
        restore(world.project, Backups(world.project).find("latest"))
        world.reopen()
    found = []
    report = resume(world.stores)
    if report is not None and report.occurrences:
        found.append(f"still there after it was finished: {report.left}")
    if what == "delete" and world.stores.facts.get(fact_id) is None and world.files_with(said):
        found.append(f"bytes left in {world.files_with(said)}")
    if KEPT not in world.says():
        found.append("an acknowledged fact is missing")
    found += [
        f"{finding.what}: {finding.text}"
        for finding in check(world.stores, every_backup=True)
        if finding.level == "broken" or (finding.level == "degraded" and finding.what not in MENDABLE)
    ]
    check(world.stores, fix=True)
    left = [one for one in check(world.stores) if one.level in ("degraded", "broken")]
    return found + [f"not mended: {finding.text}" for finding in left]


def main(seed: int, count: int) -> int:
    """Runs the rounds; returns the exit code."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        world = World.make(Path(folder))
        world.remember(KEPT, target=USER)
        session = world.stores.history.start_session()
        for number in range(40):
            world.stores.history.append(session.id, "user", f"message {number} about this and that")
        Backups(world.project).make(world.stores.db, "before test")
        rounds: Counter[tuple[str, bool]] = Counter()
        wrong = 0
        for number in range(count):
            what = chance.choice(("delete", "backup", "restore", "remember"))
            said = f"The hidden place number {number} is behind the {chance.random()} oak."
            fact = world.remember(said, target=USER)
            world.stores.close()
            rounds[what, killed(world, what, fact.id, said, chance.random() * LONGEST_S)] += 1
            world.reopen()
            for text in faults(world, what, fact.id, said):
                print(f"round {number}, {what}: {text}")
                wrong += 1
        world.stores.close()
    print(f"seed {seed}: {sum(number for (_, cut), number in rounds.items() if cut)} of {count} killed, {wrong} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
