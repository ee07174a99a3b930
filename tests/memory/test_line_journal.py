"""Killed between a line in a file and the commit of its row: the next opening brings the two together again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.memory.world import USER, World
from tui_agent.memory import line_journal, textfile
from tui_agent.memory.checks import check
from tui_agent.memory.database import Database
from tui_agent.memory.places import EditRefused
from tui_agent.memory.types import NewFact, Origin, Proposal

TEA, GREEN = "I prefer tea.", "I prefer green tea."
PLACE = "AGENTS.md#User Preferences"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    made.remember(TEA, target=PLACE)
    made.remember("My name is Oda.", target=USER)
    return made


def fact_id(world: World, text: str) -> str:
    fact = world.stores.facts.by_text(text)
    assert fact is not None
    return fact.id


def add(world: World) -> object:
    text = "I prefer short answers."
    return world.stores.gate.admit(Proposal(text, Origin.USER, "user", "message 2", user_text=text, target=PLACE))


def merge(world: World) -> object:
    ids = [fact_id(world, TEA), fact_id(world, "My name is Oda.")]
    new = NewFact("", "Oda prefers tea.", "message 2", target=PLACE, target_line="- Oda prefers tea.")
    return world.stores.ledger.merge(ids, new)


def undo(world: World) -> object:
    return world.stores.ledger.undo()


VERBS: dict[str, Callable[[World], object]] = {
    "add": add,
    "correct": lambda world: world.stores.ledger.correct(fact_id(world, TEA), GREEN, "typed"),
    "expire": lambda world: world.stores.ledger.expire(fact_id(world, TEA)),
    "delete": lambda world: world.stores.ledger.delete(fact_id(world, TEA)),
    "merge": merge,
    "undo": undo,
}


def dying_at(step: int, counted: list[int]) -> Callable[[Callable[..., Any], bool], Callable[..., Any]]:
    """Wraps a call so that the process ends right before or right after the ``step``-th of them."""

    def wrap(call: Callable[..., Any], after: bool = True) -> Callable[..., Any]:
        def wrapped(*args: Any, **more: Any) -> Any:
            counted[0] += 1
            if counted[0] == step:
                os._exit(9)
            result = call(*args, **more)
            if after:
                counted[0] += 1
                if counted[0] == step:
                    os._exit(9)
            return result

        return wrapped

    return wrap


def killed_at(world: World, verb: str, step: int) -> bool:
    """Runs a verb in a child that dies at a step; false when it was through before."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, 9), f"{verb} failed by itself at step {step}"
        return code == 9
    try:
        world.stores = World.open(world.root, world.root.parent / "home")
        wrap = dying_at(step, [0])
        # Every change of a file, and the moment right after the commit.
        textfile.os.replace = wrap(os.replace)  # type: ignore[attr-defined]
        textfile.os.link = wrap(os.link)  # type: ignore[attr-defined]
        Database._tell_end = wrap(Database._tell_end)  # type: ignore[method-assign]
        line_journal.LineJournal._ended = wrap(line_journal.LineJournal._ended)  # type: ignore[method-assign]
        VERBS[verb](world)
    except BaseException:
        os._exit(1)
    os._exit(0)


def disagreements(world: World) -> list[str]:
    return [finding.text for finding in check(world.stores) if finding.what == "lines" and finding.level != "ok"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_killed_at_each_step_leaves_rows_and_lines_that_agree(tmp_path: Path, verb: str) -> None:
    steps = 0
    for step in range(1, 60):
        place = tmp_path / str(step)
        place.mkdir()
        world = World.make(place)
        world.remember(TEA, target=PLACE)
        world.remember("My name is Oda.", target=USER)
        world.stores.close()
        was_killed = killed_at(world, verb, step)
        world.stores = World.open(world.root, place / "home")
        assert disagreements(world) == [], f"killed at step {step}"
        for fact in world.stores.facts.live():
            name = fact.target.partition("#")[0]
            assert world.text(name).count(fact.target_line) == 1, f"killed at step {step}"
        said = world.text("AGENTS.md") + world.text(USER)
        for text in ("green tea", "short answers", "Oda prefers tea"):
            assert (text in said) == any(text in live for live in world.says()), f"killed at step {step}"
        assert list(world.project.pending_dir.glob("*")) == []
        world.stores.close()
        if not was_killed:
            break
        steps += 1
    assert 4 <= steps < 59


def test_nothing_is_noted_once_a_change_is_through(world: World) -> None:
    world.stores.ledger.correct(fact_id(world, TEA), GREEN, "typed")
    assert list(world.project.pending_dir.glob("*")) == []


def test_a_file_that_refuses_takes_back_what_was_written_to_the_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = world.stores.files.remove_line

    def refuse(name: str, section: str, line: str) -> bool:
        if name == USER:
            raise EditRefused("the disk is full")
        return remove(name, section, line)

    monkeypatch.setattr(world.stores.files, "remove_line", refuse)
    with pytest.raises(EditRefused):
        merge(world)
    monkeypatch.undo()
    assert sorted(world.says()) == sorted([TEA, "My name is Oda."])
    assert disagreements(world) == []
    assert "Oda prefers tea" not in world.text("AGENTS.md")


def test_a_line_the_user_had_written_before_is_not_taken_out_with_a_row_that_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.stores.files.append_line("AGENTS.md", "User Preferences", "- I prefer short answers.")

    def add_and_fail() -> None:
        with world.stores.db.transaction():
            add(world)
            raise RuntimeError("something after it")

    with pytest.raises(RuntimeError):
        add_and_fail()
    assert "- I prefer short answers." in world.text("AGENTS.md")
    assert "I prefer short answers." not in world.says()


def test_a_note_that_cannot_be_read_is_thrown_away(world: World) -> None:
    world.project.pending_dir.mkdir(exist_ok=True)
    (world.project.pending_dir / "odd.json").write_text("{", "utf-8")
    world.reopen()
    assert list(world.project.pending_dir.glob("*")) == []
    assert disagreements(world) == []
