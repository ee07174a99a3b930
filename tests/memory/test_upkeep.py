"""The daily clean-up, what the store says of itself, and finding what is wrong with it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.world import USER, World, days_ago, plant_index
from tui_agent.memory.backup import Backups
from tui_agent.memory.checks import Finding, check, file_system, worst
from tui_agent.memory.holding import holding, in_use, take_alone
from tui_agent.memory.text import format_utc, parse_utc
from tui_agent.memory.types import Origin, Proposal
from tui_agent.memory.upkeep import BULK, happened, prune, prune_due, prune_if_due, stats, working_scope
from tui_agent.memory.working import WorkingMemory


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.stores.close()


def bad(findings: list[Finding]) -> list[tuple[str, str]]:
    """Level and subject of everything that is not well, the missing first backup apart."""
    return [(f.level, f.what) for f in findings if f.level in ("degraded", "broken") and "no backup" not in f.text]


def mended(findings: list[Finding]) -> list[str]:
    return [finding.what for finding in findings if finding.level == "mended"]


# --- the clean-up ---------------------------------------------------------------------------------


def test_prune_removes_expired_and_long_replaced_rows_and_counts_them(world: World) -> None:
    world.remember("Away this week.", expires_at=days_ago(1))
    world.remember("We use npm.", subject="manager", created_at=days_ago(200))
    world.remember("We use pnpm.", subject="manager")
    report = prune(world.stores)
    assert (report.expired, report.superseded, report.total) == (1, 1, 2)
    assert report.sentence() == "Removed 1 expired fact, 1 replaced one, 0 items put away long ago."
    assert world.stores.facts.stats()["memory"] == 1
    assert world.says() == ["We use pnpm."]


def test_prune_takes_the_lines_of_expired_facts_along(world: World) -> None:
    world.remember("Away this week.", target=USER, expires_at=days_ago(1))
    world.remember("I prefer tea.", target=USER)
    assert prune(world.stores).lines == 1
    assert world.text(USER) == "- I prefer tea.\n"


def test_a_dry_run_counts_and_removes_nothing(world: World) -> None:
    world.remember("Away this week.", expires_at=days_ago(1))
    report = prune(world.stores, dry=True)
    assert (report.expired, report.dry) == (1, True)
    assert report.sentence().startswith("Would remove 1")
    assert world.stores.facts.stats()["memory"] == 1
    assert prune_due(world.stores.db)


async def test_prune_removes_what_was_put_away_long_ago_unless_it_is_pinned(world: World) -> None:
    working = WorkingMemory(world.stores.db, scope=working_scope(world.project), session_id="s1")
    ids = [await working.add("log", f"output of run {number}") for number in range(3)]
    for item_id in ids:
        await working.forget(item_id)
    await working.pin_cold(ids[0])
    world.stores.db.execute("UPDATE wm_items SET put_away_at = ? WHERE id <> ?", (days_ago(181), ids[1]))
    assert prune(world.stores).cold == 1
    assert {row.id for row in (await working.cold()).rows} == {ids[0], ids[1]}


def test_a_missed_clean_up_is_made_up_for_once(world: World) -> None:
    start = parse_utc("2026-05-01 10:00:00")
    now = {"at": start}

    def clock() -> str:
        return format_utc(now["at"])

    assert prune_if_due(world.stores, clock=clock) is not None
    assert prune_if_due(world.stores, clock=clock) is None
    now["at"] = parse_utc("2026-05-02 09:59:59")
    assert not prune_due(world.stores.db, clock)
    now["at"] = parse_utc("2026-06-20 08:00:00")
    report = prune_if_due(world.stores, clock=clock)
    assert report is not None
    assert report.last_run == "2026-05-01 10:00:00"
    assert prune_if_due(world.stores, clock=clock) is None


def test_many_rows_are_backed_up_before_they_go(world: World) -> None:
    for number in range(BULK):
        world.stores.db.execute(
            "INSERT INTO memory(id, subject, fact, source, expires_at) VALUES (?, '', ?, 'test', ?)",
            (f"m{number}", f"fact {number}", days_ago(1)),
        )
    report = prune(world.stores)
    assert report.backup.endswith("before-prune")
    assert Backups(world.project).find(report.backup).counts["memory"] == BULK


# --- what there is --------------------------------------------------------------------------------


def test_stats_show_a_backlog_of_dead_rows(world: World) -> None:
    world.remember("I prefer tea.")
    now = stats(world.stores)
    assert (now.facts["memory"], now.facts["live_memory"], now.healthy) == (1, 1, True)
    assert now.events == {"add": 1}
    assert {"memory", "live_memory", "messages"} <= set(now.tables)
    for number in range(BULK):
        world.stores.db.execute(
            "INSERT INTO memory(id, subject, fact, source, expires_at) VALUES (?, '', 'x', 'test', ?)",
            (f"m{number}", days_ago(1)),
        )
    now = stats(world.stores)
    assert not now.healthy
    assert f"{BULK} dead rows wait" in now.health


async def test_the_log_holds_facts_and_working_memory_in_one_order(world: World) -> None:
    working = WorkingMemory(world.stores.db, scope=working_scope(world.project), session_id="s1")
    item_id = await working.add("log", "output")
    await working.forget(item_id)
    world.remember("We use npm.", subject="manager")
    newer = world.remember("We use pnpm.", subject="manager")
    lines = happened(world.stores)
    assert [line.at for line in lines] == sorted((line.at for line in lines), reverse=True)
    assert {(line.zone, line.event) for line in lines} == {
        ("fact", "add"), ("fact", "supersede"), ("working", "put_away")
    }  # fmt: skip
    (replaced,) = happened(world.stores, item_id=newer.id)
    assert (replaced.old, replaced.new) == ("We use npm.", "We use pnpm.")
    assert [line.event for line in happened(world.stores, item_id=item_id)] == ["put_away"]
    assert [line.zone for line in happened(world.stores, zone="working")] == ["working"]


def test_a_decided_proposal_says_in_the_log_that_its_text_is_gone(world: World) -> None:
    proposal = Proposal(text="We use tabs.", origin=Origin.MODEL, proposer="model", source="message 1")
    item = world.stores.facts.quarantine(proposal, "It is the model's idea.")
    assert happened(world.stores)[0].told == "We use tabs."
    world.stores.facts.reject(item.id)
    assert [(line.event, line.told) for line in happened(world.stores)] == [
        ("reject", "its text is not kept once it was decided"),
        ("quarantine", "its text is not kept once it was decided"),
    ]


async def test_a_new_goal_says_in_the_log_what_of_the_cold_memory_matches(world: World) -> None:
    working = WorkingMemory(world.stores.db, scope=working_scope(world.project), session_id="s1")
    await working.set_goal("ship it")
    (line,) = happened(world.stores)
    assert (line.event, line.told) == ("goal", "no put-away item matches it")


# --- who else is there ----------------------------------------------------------------------------


def test_a_database_that_somebody_has_open_is_in_use(world: World) -> None:
    path = world.project.db_path
    assert in_use(path)
    assert take_alone(path) is None
    world.stores.close()
    assert not in_use(path)
    alone = take_alone(path)
    assert alone is not None
    other = sqlite3.connect(path, timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("SELECT count(*) FROM memory")
    other.close()
    alone.close()
    world.reopen()
    assert world.stores.db.value("PRAGMA journal_mode") == "wal"


def test_asking_whether_a_file_that_is_not_there_is_in_use_makes_none(tmp_path: Path) -> None:
    assert not in_use(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_held_by_one_and_goes_with_the_block(tmp_path: Path) -> None:
    lock = tmp_path / "x.lock"
    with holding(lock) as first:
        assert first
        with holding(lock) as second:
            assert not second
    with holding(lock) as third:
        assert third


# --- what is wrong --------------------------------------------------------------------------------


def test_a_healthy_memory_has_nothing_wrong_with_it(world: World) -> None:
    world.remember("I prefer tea.", target=USER)
    world.remember("We use npm.", subject="manager")
    world.remember("We use pnpm.", subject="manager")
    Backups(world.project).make(world.stores.db)
    findings = check(world.stores)
    assert bad(findings) == []
    assert worst(findings) == "ok"


def test_a_pointer_to_nothing_is_found_and_never_set_to_nothing(world: World) -> None:
    world.remember("We use npm.", subject="manager")
    newer = world.remember("We use pnpm.", subject="manager")
    raw = sqlite3.connect(world.project.db_path)  # foreign keys are off here, as in the sqlite3 shell
    raw.execute("DELETE FROM memory WHERE id = ?", (newer.id,))
    raw.commit()
    raw.close()
    findings = check(world.stores, fix=True)
    assert ("broken", "database") in bad(findings)
    assert "pointing to nothing" in findings[0].text
    assert world.says() == []


@pytest.mark.parametrize("index", ["message_index", "wm_terms"])
async def test_a_word_index_that_lost_entries_is_found_and_made_anew(world: World, index: str) -> None:
    session = world.stores.history.start_session()
    world.stores.history.append(session.id, "user", "the quick brown fox")
    world.stores.history.search("fox")
    working = WorkingMemory(world.stores.db, scope=working_scope(world.project), session_id=session.id)
    await working.forget(await working.add("log", "the lazy dog"))
    await working.search("dog")
    world.stores.db.execute(f"DELETE FROM {index}")
    name = "words of messages" if index == "message_index" else "words of working memory"
    assert bad(check(world.stores)) == [("degraded", name)]
    assert mended(check(world.stores, fix=True)) == [name]
    assert bad(check(world.stores)) == []
    assert [message.content for message in world.stores.history.search("fox")] == ["the quick brown fox"]
    assert [hit.text for hit in await working.search("dog")] == ["the lazy dog"]


def test_a_line_that_was_lost_and_one_that_no_longer_holds_are_mended_by_the_rows(world: World) -> None:
    world.remember("I prefer tea.", target=USER)
    world.remember("We use npm.", subject="manager", target=USER)
    world.remember("We use pnpm.", subject="manager", target=USER)
    (world.memory_dir / USER).write_text("- We use npm.\n- We use pnpm.\n- my own line\n", encoding="utf-8")
    assert bad(check(world.stores)) == [("degraded", "lines")] * 2
    check(world.stores, fix=True)
    assert world.text(USER).splitlines() == ["- We use pnpm.", "- my own line", "- I prefer tea."]
    assert bad(check(world.stores)) == []


def test_a_deleted_line_that_somebody_put_back_is_left_to_the_user(world: World) -> None:
    fact = world.remember("My cat is called Filemon.", target=USER)
    world.stores.ledger.delete(fact.id)
    (world.memory_dir / USER).write_text("- My cat is called Filemon.\n", encoding="utf-8")
    (finding,) = [one for one in check(world.stores, fix=True) if one.level == "degraded" and one.what == "lines"]
    assert "deleted forever before" in finding.text
    assert world.text(USER) == "- My cat is called Filemon.\n"


def test_facts_without_a_vector_of_the_identity_in_use_are_counted(world: World) -> None:
    one, _ = world.remember("I prefer tea."), world.remember("We use pnpm.")
    world.stores.facts.put_vectors("words:2", {one.id: [0.6, 0.8]})
    (finding,) = [one for one in check(world.stores) if one.what == "vectors"]
    assert finding.text == "1 of 2 facts have no vector of words:2 yet; their words find them."


@pytest.mark.parametrize("content", [b"", b"garbage" * 100, None])
def test_a_broken_vector_index_costs_nothing_and_is_removed_on_request(world: World, content: bytes | None) -> None:
    fact = world.remember("I prefer tea.")
    plant_index(world.project.vector_dir, [fact.id, "gone"])
    if content is not None:  # else it is readable, with a fact that is long gone
        (world.project.vector_dir / "chroma.sqlite3").write_bytes(content)
    assert bad(check(world.stores)) == [("degraded", "vector index")]
    assert mended(check(world.stores, fix=True)) == ["vector index"]
    assert not world.project.vector_dir.exists()


def test_another_programs_vector_store_is_never_removed(world: World) -> None:
    plant_index(world.project.vector_dir, ["gone"])
    (world.project.vector_dir / "made-by-tui-agent").unlink()
    with contextlib.closing(sqlite3.connect(world.project.vector_dir / "chroma.sqlite3")) as raw, raw:
        raw.execute("INSERT INTO collections VALUES ('d', 'pamiec-ffffffffffff')")
    check(world.stores, fix=True)
    assert not world.project.vector_dir.exists()
    assert (world.memory_dir / "vector-store.unreadable-1" / "chroma.sqlite3").exists()
    assert world.memory_dir / "vector-store.unreadable-1" in {owned.path for owned in world.project.owned_paths()}


def test_an_index_in_use_is_left_alone(world: World) -> None:
    world.project.vector_dir.mkdir()
    with world.project.lock_path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        check(world.stores, fix=True)
    assert world.project.vector_dir.exists()


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_a_database_that_others_can_read_is_made_private(world: World) -> None:
    world.project.db_path.chmod(0o644)
    assert ("degraded", "files") in bad(check(world.stores))
    check(world.stores, fix=True)
    assert stat.S_IMODE(world.project.db_path.stat().st_mode) == 0o600


def test_an_unsound_backup_is_found_while_its_neighbours_are_fine(world: World) -> None:
    backups = Backups(world.project, keep_daily=9)
    old = backups.make(world.stores.db, "before import")
    backups.make(world.stores.db, "before prune")
    (old.path / "memory.db").write_bytes(b"x")
    assert bad(check(world.stores)) == []
    assert bad(check(world.stores, every_backup=True)) == [("broken", "backups")]


def test_a_missing_facts_json_is_written_again(world: World) -> None:
    world.remember("I prefer tea.")
    world.project.facts_json_path.unlink()
    assert bad(check(world.stores)) == [("degraded", "facts.json")]
    check(world.stores, fix=True)
    assert "I prefer tea." in world.text("facts.json")


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/tmp/x/.agent-memory", "tmpfs"), ("/home/k/p", "ext4"), ("/home/k/my files/p", "fuse"), ("/", "ext4")],
)
def test_the_file_system_of_a_path_is_that_of_its_deepest_mount(path: str, kind: str) -> None:
    table = "/dev/sda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nx /home/k/my\\040files fuse rw 0 0\n"
    assert file_system(Path(path), lambda: table) == kind


def test_a_clean_up_works_beside_another_connection(world: World) -> None:
    other = sqlite3.connect(world.project.db_path)
    other.execute("SELECT count(*) FROM memory").fetchone()
    world.remember("Away this week.", expires_at=days_ago(1))
    assert prune(world.stores).expired == 1
    assert other.execute("SELECT count(*) FROM memory").fetchone() == (0,)
    other.close()
