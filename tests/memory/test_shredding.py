"""Deleting forever: no byte of it is left in anything the program owns, and what is beyond reach is named."""

from __future__ import annotations

import fcntl
import json
import os
import random
import sqlite3
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.world import USER, World
from tui_agent.memory import shredding
from tui_agent.memory.backup import Backups
from tui_agent.memory.checks import check
from tui_agent.memory.cold import ColdStore
from tui_agent.memory.hand_edits import pending
from tui_agent.memory.restoring import restore
from tui_agent.memory.shredding import (
    STALE_INDEX,
    index_is_stale,
    mask_everywhere,
    note_index_emptied,
    resume,
    shred,
)
from tui_agent.memory.traces import Spans, can_be_sought, overwrite_bytes, traces_in
from tui_agent.memory.types import Origin, Proposal, RecalledItem, RecallRecord
from tui_agent.memory.upkeep import working_scope
from tui_agent.memory.upkeep_store import UpkeepNotes
from tui_agent.memory.working import WorkingMemory


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.stores.close()


async def spread(world: World, said: str) -> str:
    """Puts a statement on every path a text can take, and returns the id of its fact."""
    stores = world.stores
    session = stores.history.start_session(title=said, goal=f"talk about {said}")
    message = stores.history.append(session.id, "user", f"Well, {said} And remember it.")
    answer = stores.history.append(
        session.id, "assistant", f"Noted: {said}", thinking=f"The user says {said}",
        tool_calls=[{"function": {"name": "edit_file", "arguments": {"new_string": f"- {said}"}}}],
        meta={"raw": json.dumps({"new_string": said})},
    )  # fmt: skip
    stores.history.wire_append(session.id, 0, [{"role": "user", "content": f"recalled: {said}"}])
    item = RecalledItem("fact", "x", said, 0.5, (), quote=said)
    stores.history.save_recall(answer.id, RecallRecord(said, "goal", (item,)))
    stores.history.save_draft(session.id, f"I wanted to add that {said}")
    stores.history.add_prompt(said)
    stores.history.save_state(session.id, "prompt", {"system": f"Rules. {said}"})
    stores.history.search(said)  # makes the index
    fact = world.remember(said, target=USER, quote=said, message_id=message.id, subject=f"secret {message.id}")
    stores.facts.put_vectors("test:4", {fact.id: [0.1, 0.2, 0.3, 0.4]})
    stores.facts.quarantine(Proposal(said, Origin.MODEL, "remember", "message 9"), "the model thought of it")
    working = WorkingMemory(stores.db, scope=working_scope(world.project), session_id=session.id)
    await working.set_goal(f"find out about {said}")
    kept = await working.add("tool_output", f"first line\n{said}\nlast line", summary=f"about {said}")
    note = await working.note(said)
    await working.edit(kept, f"first line, changed\n{said}\nlast line")
    await working.forget(note)
    await working.save()
    stores.files.edit_file("AGENTS.md", "", f"In passing: {said} That was it.")
    (world.project.summaries_dir / "2026-11.md").write_text(f"They talked. {said}\n", encoding="utf-8")
    (world.project.logs_dir / "app.log").write_text(f"12:00 embedding {said}\n", encoding="utf-8")
    (world.memory_dir / "seed.jsonl").write_text(json.dumps({"fact": said}) + "\n", encoding="utf-8")
    world.project.vector_dir.mkdir(exist_ok=True)
    (world.project.vector_dir / "data.bin").write_bytes(b"\0\1" + said.encode() + b"\0")
    world.stores.paths.slots_dir.mkdir(parents=True, exist_ok=True)
    (world.stores.paths.slots_dir / "slot.bin").write_bytes(said.encode())
    return fact.id


async def test_a_statement_on_every_path_is_gone_from_every_file(world: World) -> None:
    said = "My grandmother's house is Zażółć 17, the key hangs on the left."
    world.remember("We use pnpm.", target=USER)
    backups = Backups(world.project)
    fact_id = await spread(world, said)
    made = backups.make(world.stores.db, "before import")
    assert world.files_with(said)
    report = shred(world.stores, fact_id)
    assert (report.occurrences, report.facts) == (0, 1)
    assert report.records > 5
    assert report.items >= 2
    assert report.backups == [made.name]
    assert report.left == ()
    assert "0 occurrences left" in report.sentence()
    assert world.files_with(said) == []
    world.reopen()
    assert world.files_with(said) == []
    assert world.says() == ["We use pnpm."]


async def test_what_surrounded_a_deleted_statement_stays_readable(world: World) -> None:
    said = "My locker is number 4471 in hall B."
    shred(world.stores, await spread(world, said))
    session = world.stores.history.latest_session()
    assert session is not None
    assert [message.content for message in world.stores.history.messages(session.id)] == [
        "Well, [deleted] And remember it.",
        "Noted: [deleted]",
    ]
    assert world.text("AGENTS.md").endswith("In passing: [deleted] That was it.\n")
    assert world.text(USER) == ""
    working = WorkingMemory(world.stores.db, scope=working_scope(world.project), session_id=session.id)
    await working.load(session.id)
    assert [row.text for row in working.hot()] == ["first line, changed\n[deleted]\nlast line"]
    assert (await working.cold()).rows == ()


async def test_the_words_of_a_deleted_statement_are_in_no_index(world: World) -> None:
    said = "My grandfather kept a Xylorimba4471 in the cellar."
    fact_id = await spread(world, said)
    shred(world.stores, fact_id)
    assert world.stores.history.search("Xylorimba4471") == []
    assert ColdStore(world.stores.db).matching(working_scope(world.project).key, "Xylorimba4471", 5) == []
    found = [
        path for path in world.memory_dir.rglob("*") if path.is_file() and b"ylorimba" in path.read_bytes().lower()
    ]
    assert found == []


async def test_a_cleaned_backup_is_sound_and_restores_without_the_statement(world: World) -> None:
    said = "My badge number is 99-Q-1234 as of today."
    world.remember("We use pnpm.")
    fact_id = await spread(world, said)
    made = Backups(world.project).make(world.stores.db)
    shred(world.stores, fact_id)
    found = Backups(world.project).find(made.name)
    assert Backups(world.project).verify(found) == []
    assert found.counts["memory"] == 1
    assert not (found.path / "vector-store").exists()
    world.stores.close()
    restore(world.project, found)
    world.reopen()
    assert world.says() == ["We use pnpm."]
    assert world.files_with(said) == []


def test_a_backup_that_was_tampered_with_is_not_made_sound_by_cleaning_it(world: World) -> None:
    fact = world.remember("My badge number is 99-Q-1234.", target=USER)
    made = Backups(world.project).make(world.stores.db)
    (made.path / "files/AGENTS.md").write_text("not what was copied\n", encoding="utf-8")
    shred(world.stores, fact.id)
    found = Backups(world.project).find(made.name)
    assert "AGENTS.md" in Backups(world.project).verify(found)[0]
    assert world.files_with("My badge number is 99-Q-1234.") == []


def test_what_a_fact_replaced_goes_with_it_and_its_successor_stays(world: World) -> None:
    first = world.remember("I live in Gdynia Orłowo.", subject="home", target=USER)
    second = world.remember("I live in Sopot now.", subject="home", target=USER)
    third = world.remember("I live in Hel now.", subject="home", target=USER)
    shred(world.stores, second.id)
    assert world.says() == ["I live in Hel now."]
    assert world.files_with("I live in Gdynia Orłowo.") == []
    assert world.files_with("I live in Sopot now.") == []
    assert world.stores.facts.get(third.id) is not None
    assert world.stores.facts.get(first.id) is None


def test_a_deleted_statement_is_known_by_its_hash_and_does_not_come_back(world: World) -> None:
    fact = world.remember("I am allergic to hazelnuts.")
    shred(world.stores, fact.id)
    assert world.stores.facts.is_tombstoned("I am allergic to hazelnuts!")
    rejected = world.stores.gate.admit(
        Proposal(
            "I am allergic to hazelnuts.", Origin.IMPORT, "import", "facts.json", quote="I am allergic to hazelnuts."
        )
    )
    assert rejected.action.value == "refuse"


def test_a_text_that_says_too_little_is_not_taken_out_of_every_conversation(world: World) -> None:
    session = world.stores.history.start_session()
    world.stores.history.append(session.id, "user", "yes, and yes again")
    fact = world.remember("The deploy day is Friday.", quote="yes")
    report = shred(world.stores, fact.id)
    assert world.stores.history.messages(session.id)[0].content == "yes, and yes again"
    assert "say too little" in report.notes[0]


@pytest.mark.parametrize(
    ("text", "sought"),
    [("yes", False), ("tak", False), ("да", False), ("it is", False), ("pnpm", True), ("Łódź", True), ("", False)],
)
def test_only_texts_that_say_something_are_looked_for(text: str, sought: bool) -> None:
    assert can_be_sought(text) is sought


def test_other_spellings_of_the_same_span_go_too(world: World) -> None:
    session = world.stores.history.start_session()
    for text in (
        "MY   CAT IS\nŻÓŁWIK",
        "my cat is z\u0307o\u0301łwik",
        '{"text": "My cat is \\u017b\\u00f3\\u0142wik"}',
    ):
        world.stores.history.append(session.id, "user", text)
    fact = world.remember("My cat is Żółwik")
    assert shred(world.stores, fact.id).occurrences == 0
    contents = [message.content for message in world.stores.history.messages(session.id)]
    assert contents == ["[deleted]", "[deleted]", '{"text": "[deleted]"}']


def test_the_users_own_rules_are_not_rewritten_but_named(world: World) -> None:
    fact = world.remember("We never deploy on Fridays.")
    world.project.rules_path.write_text("# Rules\n\n- We never deploy on Fridays.\n", encoding="utf-8")
    report = shred(world.stores, fact.id)
    assert [(trace.path.name, trace.where, trace.count) for trace in report.left] == [("rules.md", "line 3", 1)]
    assert report.occurrences == 1


def test_another_fact_that_says_the_same_words_is_named_and_not_touched(world: World) -> None:
    fact = world.remember("blue house")
    world.remember("The blue house is for sale since May.")
    report = shred(world.stores, fact.id)
    assert world.says() == ["The blue house is for sale since May."]
    assert any(trace.where == "memory.fact" for trace in report.left)
    assert any("Another fact says it too" in note for note in report.notes)


def test_the_line_and_the_json_entry_of_another_fact_stay_as_its_row_does(world: World) -> None:
    fact = world.remember("blue house")
    other = world.remember("The blue house is for sale since May.", target="AGENTS.md#User Preferences")
    assert world.stores.ledger.write_facts_json()
    path = world.memory_dir / "AGENTS.md"
    path.write_text(path.read_text("utf-8") + "\n- I saw the blue house.\n", "utf-8")
    report = shred(world.stores, fact.id)
    assert other.target_line in world.text("AGENTS.md")
    assert "I saw the [deleted]" in world.text("AGENTS.md")
    assert "The blue house is for sale" in world.text("facts.json")
    assert pending(world.stores) == []  # nothing looks as if a hand had changed it
    assert {trace.path.name for trace in report.left} == {"AGENTS.md", "facts.json", "memory.db"}


def test_a_run_that_was_killed_is_finished_by_the_next(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "My PIN hint is the year of the moon landing."
    fact = world.remember(said, target=USER)
    Backups(world.project).make(world.stores.db)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(shredding, "_scrub_backups", die)
        with pytest.raises(KeyboardInterrupt):
            shred(world.stores, fact.id)
    world.reopen()
    assert world.says() == []
    assert any(one.what == "deletion" and one.level == "broken" for one in check(world.stores))
    report = resume(world.stores)
    assert report is not None
    assert report.occurrences == 0
    assert world.files_with(said) == []
    assert resume(world.stores) is None


def test_a_cleaning_that_was_killed_inside_a_backup_is_finished_and_the_backup_stays_sound(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.remember("We use pnpm.", target=USER)
    fact = world.remember("My badge number is 99-Q-1234.", target=USER)
    made = Backups(world.project).make(world.stores.db)

    def die_while_writing(path: Path) -> None:
        """As a process killed in the middle of a transaction leaves it: pages written, the journal beside them."""
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = DELETE").fetchone()
        db.execute("PRAGMA cache_size = 2")
        db.execute("BEGIN")
        db.execute("CREATE TABLE filler(text)")
        db.executemany("INSERT INTO filler VALUES (?)", [("x" * 2000,) for _ in range(200)])
        db.execute("UPDATE memory SET fact = upper(fact)")
        files = {end: Path(f"{path}{end}").read_bytes() for end in ("", "-journal")}
        db.execute("ROLLBACK")
        db.close()
        for end, content in files.items():
            Path(f"{path}{end}").write_bytes(content)
        (path.parent / "files/knowledge/.user.md.k1ll3d00.tmp").write_text("half of a fi", encoding="utf-8")
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(shredding, "Database", die_while_writing)
        with pytest.raises(KeyboardInterrupt):
            shred(world.stores, fact.id)
    assert Path(f"{made.database}-journal").exists()
    world.reopen()
    report = resume(world.stores)
    assert report is not None
    assert report.left == ()
    found = Backups(world.project).find(made.name)
    assert Backups(world.project).verify(found) == []
    assert found.manifest["live_facts"] == 1
    assert world.files_with("My badge number is 99-Q-1234.") == []


def test_a_file_that_a_killed_writer_left_half_written_is_cleaned_too(world: World) -> None:
    said = "My badge number is 99-Q-1234."
    fact = world.remember(said, target=USER)
    left = world.memory_dir / ".facts.json.k1ll3d00.tmp"
    left.write_text(f'{{"facts": [{{"fact": "{said}"', encoding="utf-8")
    assert shred(world.stores, fact.id).left == ()
    assert world.files_with(said) == []


def test_a_file_that_refuses_takes_the_deletion_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    fact = world.remember("I prefer tea with milk.", target=USER)

    def refuse(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(world.stores.files), "remove_line", refuse)
    with pytest.raises(OSError, match="No space"):
        shred(world.stores, fact.id)
    assert world.says() == ["I prefer tea with milk."]
    assert resume(world.stores) is None


def test_an_index_in_use_is_named_with_what_to_do(world: World) -> None:
    fact = world.remember("My locker code hint is the old phone number.")
    world.project.vector_dir.mkdir()
    (world.project.vector_dir / "chroma.sqlite3").write_bytes(b"My locker code hint is the old phone number.")
    with world.project.lock_path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        report = shred(world.stores, fact.id)
    assert any("vector index is in use" in note for note in report.notes)
    assert report.occurrences == 1
    assert index_is_stale(world.stores.db)  # whoever holds it makes it anew
    assert mask_everywhere(world.stores, ["My locker code hint is the old phone number."]).occurrences == 0
    assert not index_is_stale(world.stores.db)


def test_an_index_made_anew_for_one_deletion_is_still_stale_for_a_later_one(world: World) -> None:
    notes = UpkeepNotes(world.stores.db)
    notes.set(STALE_INDEX, "first")
    first = index_is_stale(world.stores.db)
    notes.set(STALE_INDEX, "second")
    note_index_emptied(world.stores.db, first)
    assert index_is_stale(world.stores.db) == "second"
    note_index_emptied(world.stores.db, "second")
    assert not index_is_stale(world.stores.db)


def test_the_owner_of_the_index_empties_it_itself(world: World) -> None:
    fact = world.remember("My locker code hint is the old phone number.")
    folder = world.project.vector_dir
    folder.mkdir()
    (folder / "data").write_bytes(b"My locker code hint is the old phone number.")

    def drop() -> bool:
        (folder / "data").unlink()
        return True

    report = shred(world.stores, fact.id, drop_index=drop)
    assert (report.occurrences, folder.exists()) == (0, True)


def test_a_copy_that_was_too_long_for_the_clipboard_is_searched_and_cleaned(world: World) -> None:
    fact = world.remember("My locker code hint is the old phone number.")
    copies = world.stores.paths.copies_dir
    copies.mkdir(parents=True)
    copy = copies / "copy-1-x.txt"
    copy.write_text("He said: My locker code hint is the old phone number. And more.", encoding="utf-8")
    report = shred(world.stores, fact.id)
    assert report.occurrences == 0
    assert "locker" not in copy.read_text("utf-8")
    assert any("copy-1-x.txt" in name for name in report.files)


def test_a_log_keeps_its_size_so_that_its_writer_is_not_disturbed(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_bytes(b"one \xff\xfe two " + "Żółw Franek".encode() + b" three\n")
    size, inode = path.stat().st_size, path.stat().st_ino
    assert overwrite_bytes(path, Spans(["żółw franek"])) == 1
    assert (path.stat().st_size, path.stat().st_ino) == (size, inode)
    assert path.read_bytes() == b"one \xff\xfe two " + b"*" * len("Żółw Franek".encode()) + b" three\n"


def test_a_span_across_the_pieces_a_large_file_is_read_in_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.memory.traces._CHUNK", 4096)
    path = tmp_path / "large.txt"
    path.write_bytes(b"x" * 4090 + b"\nthe quick brown fox\n" + b"y" * 9000 + b"\nthe quick brown fox\n")
    (trace,) = traces_in(path, Spans(["the quick brown fox"]))
    assert (trace.count, trace.where) == (2, "line 2, 4")


def test_a_text_in_the_free_pages_of_a_database_is_found(tmp_path: Path) -> None:
    path = tmp_path / "loose.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE t(x)")
    db.execute("INSERT INTO t VALUES (?)", ("the quick brown fox jumps",))
    db.commit()
    db.execute("PRAGMA secure_delete = OFF")
    db.execute("DELETE FROM t")
    db.commit()
    db.close()
    (trace,) = traces_in(path, Spans(["quick brown fox"]))
    assert (trace.where, trace.count) == ("unused pages", 1)


def test_committed_files_are_named_as_beyond_reach(world: World) -> None:
    fact = world.remember("I prefer tea.", target=USER)
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(world.root), *arguments], check=True, env=env, capture_output=True)

    git("init", "-q")
    git("add", "-f", ".agent-memory/knowledge/user.md")
    git("-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-qm", "notes")
    report = shred(world.stores, fact.id)
    assert "Git keeps earlier versions of .agent-memory/knowledge/user.md" in report.beyond[0]
    assert "Copies outside" in report.beyond[-1]


def test_something_said_by_mistake_is_taken_out_without_a_fact(world: World) -> None:
    session = world.stores.history.start_session()
    world.stores.history.append(session.id, "user", "my neighbour Xaviera is moving out")
    report = mask_everywhere(world.stores, ["neighbour Xaviera"])
    assert world.stores.history.messages(session.id)[0].content == "my [deleted] is moving out"
    assert (report.facts, report.occurrences) == (0, 0)


def _secret(chance: random.Random) -> str:
    body = "".join(chance.choices(string.ascii_letters + string.digits + "ąćęłńóśźżабвгдежз", k=20))
    return f"The word of the day is {body[:9]} {body[9:]}."


@pytest.mark.parametrize("count", [pytest.param(100, marks=pytest.mark.soak), 6])
async def test_random_secrets_through_every_path_leave_no_byte(world: World, count: int) -> None:
    if count > 10 and not os.environ.get("TUI_AGENT_SOAK"):
        pytest.skip("the full count runs in the soak")
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    every: list[tuple[str, str]] = []
    for _ in range(count):
        said = _secret(chance)
        every.append((said, await spread(world, said)))
    Backups(world.project).make(world.stores.db)
    for _, fact_id in every:
        if world.stores.facts.get(fact_id) is not None:
            shred(world.stores, fact_id)
    world.reopen()
    left = {said: world.files_with(said) for said, _ in every}
    assert {said: files for said, files in left.items() if files} == {}
