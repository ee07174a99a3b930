"""Two scopes: what is kept for one project, and what the user keeps for all of them; lines written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.world import USER, World
from tui_agent.memory.checks import check
from tui_agent.memory.own_notes import change_line, find_line, own_lines
from tui_agent.memory.reviewing import announce_review, note_reviewed, review_due, reviewed_at
from tui_agent.memory.shredding import shred
from tui_agent.memory.types import Scope


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.stores.close()


def everywhere(world: World) -> str:
    path = world.stores.paths.user_notes_path
    return path.read_text("utf-8") if path.exists() else ""


def test_promoting_moves_the_line_to_the_users_own_notes(world: World) -> None:
    fact = world.remember("Prefers short answers", target=USER)
    kept = world.stores.ledger.promote(fact.id)
    assert kept.scope is Scope.USER
    assert everywhere(world) == "- Prefers short answers\n"
    assert "short answers" not in world.text(USER)
    world.stores.ledger.write_facts_json()
    assert "short answers" not in world.text("facts.json")


def test_promoting_a_fact_without_a_line_writes_one(world: World) -> None:
    fact = world.remember("We like tabs")
    world.stores.ledger.promote(fact.id)
    assert everywhere(world) == "- We like tabs\n"


def test_promoting_can_be_undone_and_taken_back(world: World) -> None:
    fact = world.remember("Prefers short answers", target=USER)
    ledger = world.stores.ledger
    ledger.promote(fact.id)
    assert "keeping for all projects" in ledger.undo()
    assert "short answers" in world.text(USER)
    assert everywhere(world).strip() == ""
    ledger.promote(fact.id)
    assert ledger.demote(fact.id).scope is Scope.PROJECT
    assert "short answers" in world.text(USER)


def test_a_fact_that_is_taken_back_from_all_projects_stands_where_it_stood(world: World) -> None:
    bare = world.remember("Weights are integers in grams")
    placed = world.remember("Prefers tabs", target="AGENTS.md#User Preferences")
    ledger = world.stores.ledger
    for fact in (bare, placed):
        ledger.promote(fact.id)
        ledger.demote(fact.id)
    assert everywhere(world).strip() == ""
    assert "Weights" not in world.text(USER)
    assert "Prefers tabs" in world.text("AGENTS.md")
    ledger.write_facts_json()
    assert "Weights" in world.text("facts.json")


def test_promoting_twice_and_beyond_the_cap_is_refused_with_a_reason(world: World) -> None:
    one, two = world.remember("Likes tea", target=USER), world.remember("Likes rain", target=USER)
    ledger = world.stores.ledger
    ledger.promote(one.id, most=1)
    with pytest.raises(ValueError, match="already"):
        ledger.promote(one.id)
    with pytest.raises(ValueError, match="hold 1 lines"):
        ledger.promote(two.id, most=1)
    assert "Likes rain" in world.text(USER)


def test_a_correction_and_an_end_of_a_promoted_fact_change_the_users_notes(world: World) -> None:
    fact = world.remember("Prefers short answers", target=USER)
    ledger = world.stores.ledger
    ledger.promote(fact.id)
    verdict = ledger.correct(fact.id, "Prefers long answers", "typed by you")
    assert everywhere(world) == "- Prefers long answers\n"
    assert verdict.fact_id is not None
    ledger.undo_correction(verdict.fact_id)
    assert everywhere(world) == "- Prefers short answers\n"
    ledger.expire(fact.id)
    assert everywhere(world).strip() == ""
    assert not any(one.level == "degraded" and one.what == "lines" for one in check(world.stores))


def test_what_another_project_ended_ends_here_too(world: World) -> None:
    fact = world.remember("Prefers short answers", target=USER)
    world.stores.ledger.promote(fact.id)
    assert world.stores.ledger.follow_everywhere() == []
    world.stores.paths.user_notes_path.write_text("Something else\n", "utf-8")
    assert [gone.id for gone in world.stores.ledger.follow_everywhere()] == [fact.id]
    assert world.says() == []


def test_missing_notes_end_nothing(world: World) -> None:
    fact = world.remember("Prefers short answers", target=USER)
    world.stores.ledger.promote(fact.id)
    world.stores.paths.user_notes_path.unlink()
    assert world.stores.ledger.follow_everywhere() == []


def test_deleting_a_promoted_fact_forever_leaves_no_copy_in_the_users_notes(world: World) -> None:
    fact = world.remember("My sister is called Zuzanna", target=USER)
    world.stores.ledger.promote(fact.id)
    report = shred(world.stores, fact.id)
    assert report.occurrences == 0
    assert world.files_with("sister is called Zuzanna") == []


def test_a_correction_is_undone_with_its_line(world: World) -> None:
    fact = world.remember("Lives in Gdynia", target=USER)
    verdict = world.stores.ledger.correct(fact.id, "Lives in Sopot", "typed by you")
    assert "Sopot" in world.text(USER)
    assert verdict.fact_id is not None
    assert world.stores.ledger.undo_correction(verdict.fact_id).fact == "Lives in Gdynia"
    assert "Gdynia" in world.text(USER)
    assert "Sopot" not in world.text(USER)
    with pytest.raises(LookupError, match="nothing to go back to"):
        world.stores.ledger.undo_correction(fact.id)


def test_an_expiry_in_the_past_ends_the_fact_and_its_line(world: World) -> None:
    fact = world.remember("Lives in Gdynia", target=USER)
    world.stores.ledger.set_expiry(fact.id, "2020-01-01 00:00:00")
    assert world.says() == []
    assert "Gdynia" not in world.text(USER)
    with pytest.raises(LookupError):
        world.stores.ledger.set_expiry(fact.id, None)


# -- lines written by hand ---------------------------------------------------------------------------------------


def test_lines_by_hand_are_known_beside_the_facts_and_those_of_facts_are_not_twice(world: World) -> None:
    world.remember("Likes tea", target=USER)
    path = world.memory_dir / USER
    path.write_text(path.read_text("utf-8") + "# About\n- Works on routing\n", "utf-8")
    notes = world.stores.paths.user_notes_path
    notes.parent.mkdir(parents=True)
    notes.write_text("Name: Maja\n", "utf-8")
    found = own_lines(world.stores)
    assert [(line.where, line.text) for line in found] == [
        ("everywhere", "Name: Maja"),
        ("project", "Works on routing"),
    ]
    assert find_line(world.stores, found[0].id) == found[0]


def test_a_line_by_hand_is_changed_in_place_and_taken_out(world: World) -> None:
    path = world.memory_dir / USER
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("- Works on routing\n- Likes tea\n", "utf-8")
    routing, tea = own_lines(world.stores)
    assert change_line(world.stores, routing, "Works on   billing")
    assert change_line(world.stores, tea)
    assert path.read_text("utf-8") == "- Works on billing\n"
    assert not change_line(world.stores, tea)
    with pytest.raises(LookupError):
        find_line(world.stores, tea.id)


# -- when a review is due ------------------------------------------------------------------------------------------


def test_a_review_is_due_weekly_and_said_once_a_day(world: World) -> None:
    db = world.stores.db
    now = "2026-11-30 09:00:00"

    def clock() -> str:
        return now

    assert not review_due(db, 0, clock)
    assert announce_review(db, 3, clock)
    assert not announce_review(db, 3, clock)
    now = "2026-12-01 10:00:00"
    assert announce_review(db, 3, clock)
    note_reviewed(db, clock)
    assert reviewed_at(db) == now
    now = "2026-12-05 10:00:00"
    assert not review_due(db, 3, clock)
    now = "2026-12-08 11:00:00"
    assert announce_review(db, 3, clock)
