"""Chroma in a process of its own: the same answers, and an app that goes on when that process dies."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tui_agent.memory.index_process import PROGRAM, IndexProcess
from tui_agent.memory.owner_lock import OwnerLock

PROJECT = "a1b2c3d4e5f6"
Make = Callable[..., IndexProcess]

# The process with one thing changed: what is done to a store when it is opened or asked.
BROKEN = """
import os, signal, sys, time
from tui_agent.memory import chroma_collection, chroma_index, index_process

def {what}(*args, **more):
    {deed}

{where}.{what} = {what}
index_process.main()
"""


def vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    made = np.random.default_rng(seed).normal(size=(count, 16))
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def names(count: int) -> list[str]:
    return [f"f{n:04}" for n in range(count)]


def broken(where: str, what: str, deed: str) -> tuple[str, ...]:
    return (sys.executable, "-c", BROKEN.format(where=where, what=what, deed=deed))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".agent-memory").mkdir()
    return tmp_path / ".agent-memory" / "vector-store"


@pytest.fixture
def make(folder: Path) -> Iterator[Make]:
    made: list[IndexProcess] = []

    def make_(identity: str = "words/1", program: tuple[str, ...] = PROGRAM) -> IndexProcess:
        made.append(IndexProcess(folder, PROJECT, identity, program=program))
        return made[-1]

    yield make_
    for each in made:
        each.close()


def test_it_answers_as_the_index_itself_does(make: Make, folder: Path) -> None:
    index = make()
    assert index.pid is None  # nothing runs before it is needed
    steps: list[tuple[int, int]] = []
    ids, matrix = names(130), vectors(130)
    about = [{"importance": n % 10} for n in range(130)]
    assert index.sync(ids, matrix, about, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(100, 130), (130, 130)]
    assert (index.state, index.problem, index.count()) == ("ready", "", 130)
    hits = index.query(matrix[7], 5)
    assert hits is not None
    assert hits[0].id == "f0007"
    assert [hit.distance for hit in hits] == pytest.approx(sorted(1 - matrix @ matrix[7])[:5], abs=1e-5)
    assert index.add(["new"], vectors(1, seed=9))
    assert index.remove(["f0003"])
    assert index.count() == 130
    assert index.drop()
    assert not folder.exists()


def test_its_process_ends_with_it_and_gives_the_lock_back(make: Make, folder: Path) -> None:
    index = make()
    assert index.sync(names(4), vectors(4))
    pid = index.pid
    assert pid is not None
    probe = OwnerLock(folder.with_name("vector-store.lock"))
    assert not probe.acquire()
    index.close()
    assert index.state == "closed"
    assert probe.acquire()
    assert probe.crashes == 0
    probe.release()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_its_process_ends_when_the_app_is_killed(make: Make, folder: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    app = os.fork()
    if app == 0:
        index = IndexProcess(folder, PROJECT, "words/1")
        index.sync(names(4), vectors(4))
        os.write(writing, f"{index.pid}\n".encode())
        threading.Event().wait(60)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        pid = int(told.readline())
    os.kill(app, signal.SIGKILL)
    os.waitpid(app, 0)
    wait_until(lambda: not alive(pid))
    index = make()
    assert index.sync(names(4), vectors(4))  # nobody owns it any more
    assert index.healed == ""  # and it was closed in order


def wait_until(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    pause, left = threading.Event(), seconds
    while not holds() and left > 0:
        pause.wait(0.02)
        left -= 0.02
    assert holds()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize(
    ("deed", "named"), [("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"), ("os.abort()", "SIGABRT")]
)
def test_a_native_crash_while_opening_leaves_the_app_running_and_is_said(make: Make, deed: str, named: str) -> None:
    index = make(program=broken("chroma_index", "open_client", deed))
    assert not index.open()
    assert index.state == "broken"
    assert named in index.problem
    assert "Search goes exactly over the vectors in the database instead; nothing is lost." in index.problem
    assert index.query(vectors(1)[0]) is None
    assert not index.sync(names(4), vectors(4))  # it is not started again by itself
    assert index.pid is None


def test_after_a_crash_while_opening_the_next_start_makes_the_index_anew_instead_of_opening_it(
    make: Make, folder: Path
) -> None:
    with_facts = make()
    assert with_facts.sync(names(4), vectors(4))
    with_facts.close()
    dying = make(program=broken("chroma_index", "open_client", "os.abort()"))
    assert not dying.open()
    (folder / "as it was").write_text("a mark in the old folder")
    again = make()
    assert again.sync(names(6), vectors(6))
    assert not (folder / "as it was").exists()
    assert again.count() == 6


def test_an_index_that_keeps_crashing_is_left_alone_until_it_is_rebuilt(make: Make) -> None:
    for _ in range(3):
        assert not make(program=broken("chroma_index", "open_client", "os.abort()")).open()
    index = make()
    assert not index.sync(names(4), vectors(4))
    assert "has ended the program 3 times" in index.problem
    assert index.rebuild(names(4), vectors(4))
    assert index.state == "ready"
    hits = index.query(vectors(4)[2], 1)
    assert hits is not None
    assert hits[0].id == "f0002"


def test_a_process_that_dies_between_two_questions_is_noticed_and_a_rebuild_starts_another(make: Make) -> None:
    index = make()
    assert index.sync(names(4), vectors(4))
    assert index.pid is not None
    os.kill(index.pid, signal.SIGKILL)
    assert index.query(vectors(1)[0]) is None
    assert index.state == "broken"
    assert index.query(vectors(1)[0]) is None
    assert index.rebuild(names(5), vectors(5))
    assert index.count() == 5


def test_another_identity_is_served_by_the_same_process(make: Make) -> None:
    index = make()
    assert index.sync(names(4), vectors(4))
    pid = index.pid
    index.identity = "other/1"
    assert index.sync(names(6), vectors(6, seed=3))
    assert index.pid == pid
    assert index.count() == 6


def test_a_second_window_does_not_own_it_and_names_who_does(make: Make) -> None:
    first, second = make(), make()
    assert first.sync(names(4), vectors(4))
    assert not second.sync(names(4), vectors(4))
    assert second.state == "elsewhere"
    assert str(first.pid) in second.problem


def test_what_a_library_prints_does_not_come_between_the_answers(make: Make) -> None:
    noisy = broken("chroma_index", "_digest", "print('hello from a library', flush=True); return 'x'")
    index = make(program=noisy)
    assert index.sync(names(4), vectors(4))
    index.close()
    assert index.open()
    assert index.state == "ready"


def test_a_question_that_takes_too_long_is_answered_exactly_and_its_late_answer_is_dropped(make: Make) -> None:
    slow = "time.sleep(0.7); return []"
    index = make(program=broken("chroma_index.ChromaIndex", "query", slow))
    assert index.sync(names(4), vectors(4))
    assert index.query(vectors(1)[0], 1) is None
    assert index.state == "ready"
    assert index.count() == 4  # not the answer of before
