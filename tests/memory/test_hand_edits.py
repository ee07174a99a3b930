"""Edits by hand in facts.json and in the memory files: read, merged, never written over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.memory.world import USER, World
from tui_agent.memory.backup import Backups, live_ids
from tui_agent.memory.facts_file import FileChange
from tui_agent.memory.hand_edits import pending, pending_lines, put_back, take_over
from tui_agent.memory.shredding import shred
from tui_agent.memory.types import Kind, NewFact, Origin

PREFERENCES = "AGENTS.md#User Preferences"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World.make(tmp_path)
    for text, kind in (
        ("We deploy on Fridays.", Kind.DECISION),
        ("The database is PostgreSQL 16.", Kind.FACT),
        ("The API speaks REST.", Kind.FACT),
    ):
        made.remember(text, kind=kind)
    return made


def path(world: World) -> Path:
    return world.project.facts_json_path


def edit(world: World, change: Callable[[dict[str, Any]], object]) -> None:
    """What a person does in an editor, in their own layout."""
    data = json.loads(path(world).read_text("utf-8"))
    change(data)
    path(world).write_text(json.dumps(data, ensure_ascii=False, indent=4), "utf-8")


def found(world: World) -> FileChange:
    changes = pending(world.stores)
    assert len(changes) == 1
    return changes[0]


# --- facts.json -----------------------------------------------------------------------------------


def test_what_the_app_wrote_itself_is_no_edit(world: World) -> None:
    assert pending(world.stores) == []
    world.reopen()
    assert pending(world.stores) == []
    path(world).unlink()
    assert pending(world.stores) == []
    assert world.stores.ledger.write_facts_json()
    assert path(world).exists()


def test_another_layout_of_the_same_statements_is_no_edit_and_is_put_in_order(world: World) -> None:
    edit(world, lambda data: data["facts"].reverse())
    assert pending(world.stores) == []
    assert world.stores.ledger.write_facts_json()


def test_a_day_that_a_hand_changed_is_the_day_of_the_last_confirmation(world: World) -> None:
    edit(world, lambda data: data["facts"][0].update(updated="2026-01-15"))
    assert world.stores.ledger.write_facts_json() is False  # the edit is not written over
    change = found(world)
    assert change.words() == "1 dated"
    (taken,) = take_over(world.stores, change)
    fact = world.stores.facts.get(taken.fact_id)
    assert fact is not None
    assert fact.confirmed_at == "2026-01-15 00:00:00"
    assert pending(world.stores) == []
    assert '"updated": "2026-01-15"' in path(world).read_text("utf-8")
    assert [fact.id for fact in world.stores.facts.review()] == [taken.fact_id]
    world.stores.ledger.undo()
    again = world.stores.facts.get(taken.fact_id)
    assert again is not None
    assert again.confirmed_at > "2026-01-15"


def test_a_day_that_is_still_to_come_is_refused_and_stays_in_the_file(world: World) -> None:
    edit(world, lambda data: data["facts"][0].update(updated="2999-01-01"))
    (taken,) = take_over(world.stores, found(world))
    assert (taken.verb, "still to come" in taken.reason) == ("refused", True)
    assert "2999-01-01" in path(world).read_text("utf-8")


def test_a_day_that_the_app_wrote_and_a_confirmation_after_it_are_no_edit(world: World) -> None:
    edit(world, lambda data: data["facts"].reverse())
    world.stores.facts.confirm(world.stores.facts.live()[0].id, "2026-02-02 10:00:00")
    assert pending(world.stores) == []
    assert world.stores.ledger.write_facts_json()
    assert "2026-02-02" in path(world).read_text("utf-8")


def test_the_day_of_a_new_entry_is_taken_over_with_it(world: World) -> None:
    edit(world, lambda data: data["facts"].append({"fact": "Releases are tagged.", "updated": "2026-05-31"}))
    (taken,) = take_over(world.stores, found(world))
    fact = world.stores.facts.get(taken.fact_id)
    assert fact is not None
    assert fact.confirmed_at == "2026-05-31 00:00:00"


def test_a_new_entry_becomes_a_fact_of_the_user_with_file_and_line_as_its_source(world: World) -> None:
    edit(world, lambda data: data["preferences"].append({"pref": "Short answers, please.", "updated": "2026-05-31"}))
    line = path(world).read_text("utf-8").splitlines().index('            "pref": "Short answers, please.",') + 1
    change = found(world)
    assert (change.name, change.words(), change.problem) == ("facts.json", "1 added", "")
    (taken,) = take_over(world.stores, change)
    fact = world.stores.facts.get(taken.fact_id)
    assert fact is not None
    assert (fact.fact, fact.source, fact.source_kind) == ("Short answers, please.", f"facts.json:{line}", Origin.USER)
    assert fact.kind is Kind.PREFERENCE
    assert pending(world.stores) == []
    assert "Short answers, please." in path(world).read_text("utf-8")


def test_a_changed_entry_corrects_its_fact_and_keeps_the_old_one_in_the_history(world: World) -> None:
    def change(data: dict[str, Any]) -> None:
        data["facts"][0]["fact"] = "The database is PostgreSQL 17."

    edit(world, change)
    (taken,) = take_over(world.stores, found(world))
    chain = [fact.fact for fact in world.stores.facts.chain(taken.fact_id)]
    assert chain == ["The database is PostgreSQL 17.", "The database is PostgreSQL 16."]
    world.stores.ledger.undo()
    assert "The database is PostgreSQL 16." in world.says()


def test_a_removed_entry_ends_its_fact_which_can_be_taken_back(world: World) -> None:
    edit(world, lambda data: data["facts"].pop())
    (taken,) = take_over(world.stores, found(world))
    assert taken.verb == "removed"
    assert "The API speaks REST." not in world.says()
    assert world.stores.facts.get(taken.fact_id) is not None
    world.stores.ledger.undo()
    assert "The API speaks REST." in world.says()


def test_an_entry_moved_to_another_section_changes_its_kind(world: World) -> None:
    def change(data: dict[str, Any]) -> None:
        entry = data["facts"].pop()
        data["decisions"].append({"decision": entry["fact"], "updated": entry["updated"]})

    edit(world, change)
    assert found(world).words() == "1 moved"
    (taken,) = take_over(world.stores, found(world))
    fact = world.stores.facts.get(taken.fact_id)
    assert fact is not None
    assert fact.kind is Kind.DECISION
    assert pending(world.stores) == []


def test_an_edit_is_never_written_over_by_what_the_app_does_meanwhile(world: World) -> None:
    edit(world, lambda data: data["facts"].append({"fact": "Releases are tagged.", "updated": "2026-05-31"}))
    before = path(world).read_bytes()
    world.remember("Reviews need two people.")
    assert path(world).read_bytes() == before
    take_over(world.stores, found(world))
    assert {"Releases are tagged.", "Reviews need two people."} <= set(world.says())
    text = path(world).read_text("utf-8")
    assert "Releases are tagged." in text
    assert "Reviews need two people." in text


def test_what_was_replaced_since_the_file_was_written_is_not_changed_by_an_old_line(world: World) -> None:
    edit(world, lambda data: data["facts"].append({"fact": "Releases are tagged.", "updated": "2026-05-31"}))
    fact = world.stores.facts.by_text("The API speaks REST.")
    assert fact is not None
    world.stores.ledger.correct(fact.id, "The API speaks GraphQL.", "typed")
    assert found(world).words() == "1 added"
    take_over(world.stores, found(world))
    assert "The API speaks GraphQL." in world.says()
    assert "The API speaks REST." not in world.says()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ('{\n  "facts": [\n    {"fact": "x"\n  ]\n}\n', "facts.json, line 4: "),
        ('{\n  "facts": [\n    {"fact": "x"},\n    {"text": "y"}\n  ]\n}\n', "facts.json, line 4: facts[1] must be"),
        ('{\n  "fact": []\n}\n', "facts.json, line 2: “fact” is not known here"),
        ("[]", "facts.json: The file must hold one JSON object"),
    ],
)
def test_a_broken_file_is_one_sentence_with_its_line_and_stays_as_it_is(world: World, broken: str, said: str) -> None:
    path(world).write_text(broken, "utf-8")
    change = found(world)
    assert change.problem.startswith(said)
    assert "Nothing of it was taken over" in change.problem
    world.remember("Reviews need two people.")
    assert path(world).read_text("utf-8") == broken
    assert len(world.says()) == 4


def test_a_secret_in_the_file_is_refused_and_the_file_left_alone(world: World) -> None:
    secret = "ghp_" + "a1B2" * 9
    edit(
        world, lambda data: data["facts"].extend([{"fact": f"The token is {secret}"}, {"fact": "Builds run on Linux."}])
    )
    taken = {one.verb: one for one in take_over(world.stores, found(world))}
    assert set(taken) == {"refused", "added"}
    assert "password, key or token" in taken["refused"].reason
    assert "Builds run on Linux." in world.says()
    assert secret in path(world).read_text("utf-8")  # it is the user's file, and not written until it is right
    assert found(world).words() == "1 added"  # only what was refused is left
    edit(world, lambda data: data["facts"].pop(2))
    assert world.stores.ledger.write_facts_json()
    assert secret not in path(world).read_text("utf-8")


def test_much_that_is_gone_at_once_is_marked_as_such(world: World) -> None:
    for number in range(6):
        world.remember(f"Module {number} belongs to team {number}.")
    assert not found_after(world, lambda data: data["facts"].pop()).large
    assert found_after(world, lambda data: data["facts"].clear()).large


def found_after(world: World, change: Callable[[dict[str, Any]], object]) -> FileChange:
    edit(world, change)
    return found(world)


def test_an_edit_that_is_turned_away_is_kept_as_a_version(world: World) -> None:
    edit(world, lambda data: data["facts"].append({"fact": "Releases are tagged.", "updated": "2026-05-31"}))
    kept = put_back(world.stores, found(world))
    assert "Releases are tagged." in (world.memory_dir / kept).read_text("utf-8")
    assert "Releases are tagged." not in path(world).read_text("utf-8")
    assert pending(world.stores) == []


def test_a_file_that_came_with_a_clone_is_all_new(tmp_path: Path) -> None:
    world = World.make(tmp_path)
    data = {"decisions": [{"decision": "Nowe repozytoria implementują IRepository<T>.", "updated": "2026-08-15"}]}
    path(world).write_text(json.dumps(data), "utf-8")
    world.stores.ledger.write_facts_json()
    assert "IRepository" in path(world).read_text("utf-8")
    assert found(world).words() == "1 added"
    take_over(world.stores, found(world))
    assert world.says() == ["Nowe repozytoria implementują IRepository<T>."]


def test_deleting_forever_leaves_no_text_in_what_is_known_of_the_file(world: World) -> None:
    fact = world.remember("The lantern hangs behind the third door.")
    shred(world.stores, fact.id)
    assert world.files_with("The lantern hangs behind the third door.") == []
    assert pending(world.stores) == []


# --- lines in memory files ------------------------------------------------------------------------


def rewrite(world: World, name: str, old: str, new: str) -> None:
    file = world.memory_dir / name
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")


def test_a_line_changed_by_hand_corrects_its_fact_and_is_not_written_twice(world: World) -> None:
    world.remember("I prefer tea.", target=PREFERENCES)
    rewrite(world, "AGENTS.md", "- I prefer tea.", "* I prefer green tea.")
    change = found(world)
    assert change.words() == "1 changed"
    (taken,) = take_over(world.stores, change)
    fact = world.stores.facts.get(taken.fact_id)
    assert fact is not None
    line = world.text("AGENTS.md").splitlines().index("* I prefer green tea.") + 1
    assert (fact.fact, fact.source, fact.target_line) == (
        "I prefer green tea.",
        f"AGENTS.md:{line}",
        "* I prefer green tea.",
    )
    assert world.text("AGENTS.md").count("tea") == 1
    assert pending(world.stores) == []
    world.stores.ledger.undo()
    assert "- I prefer tea." in world.text("AGENTS.md")
    assert "green" not in world.text("AGENTS.md")


def test_a_line_with_a_label_is_known_by_its_label(world: World) -> None:
    world.stores.files.append_line(USER, "", "Name: Kacper")
    fact = world.remember("My name is Kacper", target="")
    world.stores.facts.set_target(fact.id, USER, "Name: Kacper")
    rewrite(world, USER, "Name: Kacper", "Name: Dobrochna Żmijewska")
    (taken,) = take_over(world.stores, found(world))
    assert taken.verb == "changed"
    assert "Name: Dobrochna Żmijewska" in world.says()
    assert world.text(USER).strip() == "Name: Dobrochna Żmijewska"


def test_a_line_taken_out_by_hand_ends_its_fact(world: World) -> None:
    world.remember("I prefer tea.", target=PREFERENCES)
    rewrite(world, "AGENTS.md", "- I prefer tea.\n", "")
    take_over(world.stores, found(world))
    assert "I prefer tea." not in world.says()
    world.stores.ledger.undo()
    assert "- I prefer tea." in world.text("AGENTS.md")


def test_text_that_the_app_did_not_write_is_never_a_fact(world: World) -> None:
    world.remember("I prefer tea.", target=PREFERENCES)
    with (world.memory_dir / "AGENTS.md").open("a", encoding="utf-8") as file:
        file.write("\n- Prefers long walks.\n")
    assert pending(world.stores) == []


def test_a_line_that_was_there_before_is_not_taken_for_the_new_form(world: World) -> None:
    world.stores.files.append_line("AGENTS.md", "User Preferences", "- I prefer tea, the black kind")
    world.remember("I prefer tea.", target=PREFERENCES)
    before = world.text("AGENTS.md")
    rewrite(world, "AGENTS.md", "- I prefer tea.\n", "")
    change = pending_lines(world.stores, "AGENTS.md", before)
    assert change is not None
    assert change.words() == "1 removed"


def test_lines_turned_away_stand_in_the_file_again(world: World) -> None:
    world.remember("I prefer tea.", target=PREFERENCES)
    world.remember("I prefer short answers.", target=PREFERENCES)
    rewrite(world, "AGENTS.md", "- I prefer tea.", "- I prefer green tea.")
    rewrite(world, "AGENTS.md", "- I prefer short answers.\n", "")
    put_back(world.stores, found(world))
    assert world.stores.files.lines("AGENTS.md", "User Preferences") == ["- I prefer tea.", "- I prefer short answers."]
    assert pending(world.stores) == []


def test_a_file_that_is_gone_waits_for_a_yes(world: World) -> None:
    world.remember("I prefer tea.", target=USER)
    (world.memory_dir / USER).unlink()
    assert found(world).large


def test_before_much_is_taken_out_by_hand_a_backup_is_made(world: World) -> None:
    for number in range(6):
        world.remember(f"Module {number} belongs to team {number}.")
    assert world.stores.ledger.write_facts_json()
    edit(world, lambda data: data["facts"].clear())
    change = found(world)
    assert change.large
    take_over(world.stores, change)
    (backup,) = Backups(world.project).all()
    assert backup.name.endswith("before-edits-by-hand")
    assert len(live_ids(backup.database)) == 9


def test_what_another_window_writes_meanwhile_is_in_the_file_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    file = world.stores.ledger.facts_file
    assert file is not None
    drawn_up = file._drawn_up
    late = iter(["The office has nine plants.", "The office has ten lamps.", "The office has two doors.", "Late."])

    def slowly() -> Any:
        made = drawn_up()
        if not world.stores.db.in_transaction:  # nobody can write any more
            world.stores.facts.add(NewFact("", next(late), "message 1"))
        return made

    monkeypatch.setattr(file, "_drawn_up", slowly)
    assert world.stores.ledger.write_facts_json()
    written = {item["fact"] for item in json.loads(path(world).read_text("utf-8"))["facts"]}
    assert {"The office has nine plants.", "The office has two doors."} <= written
    assert next(late) == "Late."
    assert pending(world.stores) == []
