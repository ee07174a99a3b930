"""Lines written into memory files by hand: each has a date, and comes up for a look every month."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.world import USER, World
from tui_agent.memory.hand_lines import dated, dates_of_file, lines_to_review, note_looked
from tui_agent.memory.own_notes import all_lines, own_lines
from tui_agent.memory.text import parse_utc
from tui_agent.memory.upkeep_store import UpkeepNotes

DAY_1, DAY_20, DAY_31, DAY_62 = (
    "2026-10-01 09:00:00", "2026-10-20 09:00:00", "2026-11-01 09:00:00", "2026-12-02 09:00:01"
)  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.stores.close()


def write(world: World, name: str, text: str, when: str = DAY_1) -> None:
    path = world.memory_dir / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    os.utime(path, (parse_utc(when).timestamp(),) * 2)


def test_a_line_has_the_date_it_names_or_the_day_it_was_first_seen(world: World) -> None:
    write(world, USER, "- Works on routing\n- Leads the team (since 2026-02-03)\n- Urlop ustalony 5.3.2026\n")
    found = dated(world.stores, own_lines(world.stores), lambda: DAY_20)
    assert [(one.line.text[:5], one.date[:10], one.own_date) for one in found] == [
        ("Works", "2026-10-01", False),
        ("Leads", "2026-02-03", True),
        ("Urlop", "2026-03-05", True),
    ]


def test_a_line_keeps_its_date_when_others_are_written_into_the_file(world: World) -> None:
    write(world, USER, "- Works on routing\n")
    dated(world.stores, own_lines(world.stores), lambda: DAY_1)
    write(world, USER, "- Works on routing\n- Likes tea\n", DAY_20)
    found = dated(world.stores, own_lines(world.stores), lambda: DAY_20)
    assert [one.date for one in found] == [DAY_1, DAY_20]


def test_a_date_to_come_and_one_that_is_none_are_no_date_of_the_line(world: World) -> None:
    write(world, USER, "- Leaves 2031-01-01\n- Version 2026-99-99\n")
    assert [one.date for one in dated(world.stores, own_lines(world.stores), lambda: DAY_20)] == [DAY_1, DAY_1]


def test_lines_of_every_memory_file_are_found_and_those_of_facts_are_not(world: World) -> None:
    world.remember("Likes tea", target=USER)
    path = world.memory_dir / USER
    path.write_text(path.read_text("utf-8") + "- Works on routing\n", "utf-8")
    write(world, "AGENTS.md", "# A\n\n## Identity\n\nYou are it.\n\n## User Preferences\n\n- Short answers\n")
    write(world, "rules.md", "# Rules\n\n- Tests first\n")
    write(world, "knowledge/projects/harbor.md", "# Harbor\n\nTracks parcels.\n\n| - | - |\n")
    assert [(line.name, line.text) for line in all_lines(world.stores)] == [
        (USER, "Works on routing"),
        ("AGENTS.md", "Short answers"),
        ("rules.md", "Tests first"),
        ("knowledge/projects/harbor.md", "Tracks parcels."),
    ]


def test_lines_come_up_after_a_month_oldest_first_and_again_a_month_after_the_look(world: World) -> None:
    write(world, USER, "- Works on routing\n")
    write(world, "rules.md", "- Tests first (2026-09-01)\n")
    assert lines_to_review(world.stores, lambda: "2026-09-30 09:00:00") == []
    due = lines_to_review(world.stores, lambda: DAY_31)
    assert [one.line.text for one in due] == ["Tests first (2026-09-01)", "Works on routing"]
    note_looked(world.stores, due[1].line, lambda: DAY_31)
    assert [one.line.name for one in lines_to_review(world.stores, lambda: DAY_31)] == ["rules.md"]
    again = lines_to_review(world.stores, lambda: DAY_62)
    assert [(one.line.name, one.looked_at) for one in again] == [("rules.md", ""), (USER, DAY_31)]


def test_a_line_that_changes_is_a_new_line_and_one_that_is_gone_leaves_nothing(world: World) -> None:
    write(world, USER, "- Works on routing\n")
    lines_to_review(world.stores, lambda: DAY_1)
    write(world, USER, "- Works on billing\n", DAY_31)
    assert lines_to_review(world.stores, lambda: DAY_31) == []
    (one,) = dated(world.stores, own_lines(world.stores), lambda: DAY_31)
    assert one.date == DAY_31
    assert list(UpkeepNotes(world.stores.db).get("lines by hand")) == [one.line.id]


def test_what_is_kept_of_a_line_is_no_word_of_it(world: World) -> None:
    write(world, USER, "- Works on routing\n")
    lines_to_review(world.stores, lambda: DAY_31)
    assert "routing" not in str(UpkeepNotes(world.stores.db).get("lines by hand"))


def test_each_line_of_a_file_is_shown_with_its_date(world: World) -> None:
    fact = world.remember("Likes tea", target=USER)
    path = world.memory_dir / USER
    path.write_text(path.read_text("utf-8") + "- Works on routing (2026-02-03)\n", "utf-8")
    assert dates_of_file(world.stores, USER) == [
        f"{fact.confirmed_at[:10]}  Likes tea",
        "2026-02-03  Works on routing (2026-02-03)  (by hand)",
    ]
