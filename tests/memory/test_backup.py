"""Backups and restoring: whole or not at all, checked, never over a good one, and nothing deleted comes back."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.world import USER, World
from tests.memory.world import plant_index as plant_folder
from tui_agent.memory import restoring
from tui_agent.memory.backup import Backup, Backups, file_hash, read_manifest
from tui_agent.memory.checks import check
from tui_agent.memory.connection import StoreError
from tui_agent.memory.database import Database
from tui_agent.memory.hand_edits import pending
from tui_agent.memory.restoring import RestoreRefused, plan_restore, restore, unfinished
from tui_agent.memory.shredding import shred
from tui_agent.memory.types import Scope


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    yield made
    made.stores.close()


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, now: str) -> None:
        self.now = now

    def __call__(self) -> str:
        return self.now


def make(world: World, reason: str = "") -> Backup:
    return Backups(world.project).make(world.stores.db, reason)


def closed(world: World) -> None:
    """Lets go of the project, as `memory restore` demands."""
    world.stores.close()


def plant_index(world: World, ids: set[str]) -> None:
    """A resting vector index as Chroma leaves it on disk, with these facts."""
    plant_folder(world.project.vector_dir, ids)


# --- making ---------------------------------------------------------------------------------------


def test_a_backup_is_one_dated_directory_with_counts_hashes_and_schema(world: World) -> None:
    world.remember("I prefer short answers.", target=USER)
    world.stores.history.append(world.stores.history.start_session().id, "user", "hello")
    made = make(world)
    assert made.path.parent == world.project.backups_dir
    assert made.name[:10] == made.made_at[:10]
    manifest = json.loads((made.path / "manifest.json").read_text("utf-8"))
    assert manifest["counts"]["memory"] == 1
    assert manifest["counts"]["messages"] == 1
    assert manifest["live_facts"] == 1
    assert "facts/001 facts" in manifest["schema"]
    assert manifest["files"]["memory.db"]["sha256"] == file_hash(made.path / "memory.db")
    assert (made.path / "files/knowledge/user.md").read_text("utf-8") == "- I prefer short answers.\n"
    facts = json.loads((made.path / "facts.json").read_text("utf-8"))
    assert [item["fact"] for item in facts["facts"]] == ["I prefer short answers."]
    assert Backups(world.project).verify(made) == []


def test_a_backup_leaves_out_logs_earlier_backups_and_the_live_database_files(world: World) -> None:
    make(world)
    (world.project.logs_dir / "app.log").write_text("noise", encoding="utf-8")
    again = make(world)
    names = {path.relative_to(again.path).parts[:2] for path in again.path.rglob("*") if path.is_file()}
    assert not any("logs" in parts or "backups" in parts for parts in names)
    assert ("files", "memory.db") not in names


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_nobody_else_can_read_a_backup(world: World) -> None:
    made = make(world)
    assert stat.S_IMODE(made.path.stat().st_mode) & 0o077 == 0
    for name in ("memory.db", "manifest.json", "facts.json"):
        assert stat.S_IMODE((made.path / name).stat().st_mode) & 0o077 == 0


def test_two_backups_in_one_second_have_two_names(world: World) -> None:
    backups = Backups(world.project, clock=Clock("2026-11-30 02:10:00"), keep_daily=9)
    first = backups.make(world.stores.db, "before import")
    second = backups.make(world.stores.db, "before import")
    assert (first.name, second.name) == ("2026-11-30-021000-before-import", "2026-11-30-021000-before-import-2")


def test_a_backup_can_be_made_while_another_process_writes(world: World) -> None:
    script = (
        "import sys; from tui_agent.memory.database import Database; from tui_agent.memory.facts import FactStore\n"
        "from tui_agent.memory.types import NewFact\n"
        "store = FactStore(Database(sys.argv[1]))\n"
        "print('ready', flush=True)\n"
        "for n in range(150): store.add(NewFact('', f'fact number {n} of the other process', 'test'))\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(world.project.db_path)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    other.stdout.readline()
    made = make(world, "before test")
    assert other.wait(60) == 0
    other.stdout.close()
    assert Backups(world.project).verify(made) == []
    assert len(world.says()) == 150


def test_a_damaged_database_gives_no_backup_and_leaves_the_earlier_ones(world: World) -> None:
    for number in range(300):
        world.stores.db.execute(
            "INSERT INTO memory(id, subject, fact, source) VALUES (?, '', ?, 'test')", (f"m{number}", "word " * 60)
        )
    good = make(world)
    world.stores.close()
    with world.project.db_path.open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * 4096 * 4)
    db = Database(world.project.db_path)
    with contextlib.closing(db), pytest.raises(StoreError) as raised:
        Backups(world.project).make(db)
    assert raised.value.kind == "corrupt"
    assert [backup.name for backup in Backups(world.project).all()] == [good.name]
    assert Backups(world.project).verify(good) == []
    assert not list(world.project.backups_dir.glob(".unfinished*"))


def test_what_a_killed_run_left_is_cleared_by_the_next(world: World) -> None:
    left = world.project.backups_dir / ".unfinished-x"
    left.mkdir(parents=True)
    (left / "memory.db").write_bytes(b"half")
    assert Backups(world.project).all() == []
    make(world)
    assert not left.exists()


def test_rotation_keeps_the_last_of_each_day_and_everything_made_before_something(world: World) -> None:
    clock = Clock("2026-11-01 10:00:00")
    backups = Backups(world.project, clock=clock, keep_daily=3)
    for day in range(1, 7):
        for hour in (9, 18):
            clock.now = f"2026-11-{day:02d} {hour:02d}:00:00"
            backups.make(world.stores.db)
        if day == 1:
            backups.make(world.stores.db, "before import")
    assert [backup.name for backup in backups.all()] == [
        "2026-11-06-180000",
        "2026-11-05-180000",
        "2026-11-04-180000",
        "2026-11-01-180000-before-import",
    ]


# --- the vector index -----------------------------------------------------------------------------


def test_a_resting_index_that_fits_is_copied_and_restored_with_its_database(world: World) -> None:
    fact = world.remember("We use pnpm.")
    plant_index(world, {fact.id})
    made = make(world)
    assert made.manifest["vector_store"] == "The vector index was copied."
    assert Backups(world.project).vectors_match(made)
    shutil.rmtree(world.project.vector_dir)
    closed(world)
    restore(world.project, made)
    assert (world.project.vector_dir / "chroma.sqlite3").exists()


def test_an_index_of_another_moment_is_not_copied(world: World) -> None:
    world.remember("We use pnpm.")
    plant_index(world, {"an-older-fact"})
    made = make(world)
    assert "did not hold the same facts" in made.manifest["vector_store"]
    assert not (made.path / "vector-store").exists()


def test_an_index_in_use_is_not_copied(world: World) -> None:
    fact = world.remember("We use pnpm.")
    plant_index(world, {fact.id})
    with world.project.lock_path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        made = make(world)
    assert "in use" in made.manifest["vector_store"]


def test_an_index_that_was_changed_in_the_backup_is_left_out_of_the_restore(world: World) -> None:
    fact = world.remember("We use pnpm.")
    plant_index(world, {fact.id})
    made = make(world)
    (made.path / "vector-store/extra").write_bytes(b"not ours")
    closed(world)
    done = restore(world.project, made)
    assert not world.project.vector_dir.exists()
    assert any("made anew" in note for note in done.notes)


# --- verifying ------------------------------------------------------------------------------------


def test_a_changed_or_missing_file_makes_a_backup_unsound(world: World) -> None:
    world.remember("I prefer tea.", target=USER)
    backups = Backups(world.project)
    made = make(world)
    (made.path / "files/knowledge/user.md").write_text("- I prefer coffee.\n", encoding="utf-8")
    assert "not as it was" in backups.verify(made)[0]
    (made.path / "files/knowledge/user.md").unlink()
    assert "missing" in backups.verify(made)[0]


def test_a_backup_without_a_manifest_is_vouched_for_by_nothing(world: World) -> None:
    made = make(world)
    (made.path / "manifest.json").write_text("{}", encoding="utf-8")
    found = Backups(world.project).find(made.name)
    assert "nothing vouches" in Backups(world.project).verify(found)[0]


def test_latest_is_the_last_sound_one(world: World) -> None:
    clock = Clock("2026-11-01 10:00:00")
    backups = Backups(world.project, clock=clock)
    good = backups.make(world.stores.db)
    clock.now = "2026-11-02 10:00:00"
    bad = backups.make(world.stores.db)
    with (bad.path / "memory.db").open("r+b") as file:
        file.seek(100)
        file.write(b"x")
    assert backups.find("latest").name == good.name
    assert backups.find("2026-11-02").name == bad.name
    with pytest.raises(LookupError, match="There is no backup 1999"):
        backups.find("1999")


# --- restoring ------------------------------------------------------------------------------------


def test_a_plan_says_what_would_change_and_changes_nothing(world: World) -> None:
    world.remember("We use npm.", subject="package manager")
    made = make(world)
    world.remember("We use pnpm.", subject="package manager")
    world.remember("I live in Gdynia.", target=USER)
    before = {path: file_hash(path) for path in world.memory_dir.rglob("*") if path.is_file()}
    plan = plan_restore(world.project, made)
    assert plan.facts_back == ["We use npm."]
    assert plan.facts_gone == ["We use pnpm.", "I live in Gdynia."]
    assert plan.files_removed == [USER]
    assert plan.rows["memory"] == (3, 1)
    after = {path: file_hash(path) for path in before if path.exists() and not path.name.endswith(("-shm", "-wal"))}
    assert after == {path: digest for path, digest in before.items() if not path.name.endswith(("-shm", "-wal"))}


def test_a_restore_brings_rows_and_files_back_and_keeps_the_present_state(world: World) -> None:
    world.remember("We use npm.", subject="package manager")
    world.remember("I prefer tea.", target=USER)
    made = make(world)
    world.remember("We use pnpm.", subject="package manager")
    world.remember("I live in Gdynia.", target="knowledge/tech-stack.md")
    closed(world)
    done = restore(world.project, made)
    world.reopen()
    assert world.says() == ["We use npm.", "I prefer tea."]
    assert world.text(USER) == "- I prefer tea.\n"
    assert world.text("knowledge/tech-stack.md") == ""
    assert [item["fact"] for item in json.loads(world.text("facts.json"))["facts"]] == ["We use npm."]
    assert done.kept.endswith("before-restore")
    assert all(finding.level == "ok" for finding in check(world.stores)), check(world.stores)
    closed(world)
    restore(world.project, Backups(world.project).find(done.kept))
    world.reopen()
    assert "We use pnpm." in world.says()
    assert world.text("knowledge/tech-stack.md") == "- I live in Gdynia.\n"


def test_nothing_is_restored_while_another_connection_has_the_project(world: World) -> None:
    made = make(world)
    world.remember("Said since.")
    with pytest.raises(RestoreRefused, match="open in another window or command"):
        restore(world.project, made)
    assert world.says() == ["Said since."]


def test_nothing_is_restored_while_somebody_owns_the_vector_index(world: World) -> None:
    made = make(world)
    closed(world)
    with world.project.lock_path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RestoreRefused, match="Close it"):
            restore(world.project, made)


def test_a_pair_that_does_not_match_is_not_restored(world: World) -> None:
    made = make(world)
    with (made.path / "memory.db").open("r+b") as file:
        file.seek(60)
        file.write(b"\x01")
    closed(world)
    with pytest.raises(RestoreRefused, match="not as it was"):
        restore(world.project, made)


def test_what_was_deleted_forever_does_not_come_back_from_an_old_copy(world: World, tmp_path: Path) -> None:
    fact = world.remember("My cat is called Filemon.", target=USER)
    world.remember("We use pnpm.")
    session = world.stores.history.start_session()
    world.stores.history.append(session.id, "user", "By the way: My cat is called Filemon. And so on.")
    made = make(world)
    outside = tmp_path / "usb-stick"
    shutil.copytree(made.path, outside)
    shred(world.stores, fact.id)
    closed(world)
    done = restore(world.project, Backups(world.project).find(str(outside)))
    world.reopen()
    assert done.held_back == 1
    assert world.says() == ["We use pnpm."]
    assert "Filemon" not in world.text(USER)
    assert world.files_with("My cat is called Filemon.") == []
    assert world.stores.facts.is_tombstoned("my cat is called Filemon")


def test_a_damaged_database_is_put_aside_and_the_last_good_copy_takes_its_place(world: World) -> None:
    world.remember("We use pnpm.", target="knowledge/tech-stack.md")
    made = make(world)
    closed(world)
    world.project.db_path.write_bytes(b"this is no database" * 999)
    done = restore(world.project, made)
    world.reopen()
    assert world.says() == ["We use pnpm."]
    aside = world.project.backups_dir / done.kept
    assert aside.name.endswith("-damaged")
    assert (aside / "memory.db").read_bytes().startswith(b"this is no database")


def test_a_project_without_a_database_gets_one_back(world: World) -> None:
    world.remember("We use pnpm.")
    made = make(world)
    closed(world)
    for path in world.memory_dir.glob("memory.db*"):
        path.unlink()
    restore(world.project, made)
    world.reopen()
    assert world.says() == ["We use pnpm."]


@pytest.mark.parametrize("step", ["_put_database", "_put_files", "_put_vectors"])
def test_a_restore_that_is_killed_says_so_and_can_be_finished(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    world.remember("I prefer tea.", target=USER)
    made = make(world)
    world.remember("I prefer coffee.", target=USER)
    closed(world)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(restoring, step, die)
        with pytest.raises(KeyboardInterrupt):
            restore(world.project, made)
    assert f"Restoring {made.name} was interrupted" in unfinished(world.project)
    world.reopen()
    assert any(one.what == "restore" and one.level == "broken" for one in check(world.stores))
    closed(world)
    restore(world.project, made)
    assert unfinished(world.project) == ""
    world.reopen()
    assert world.says() == ["I prefer tea."]
    assert world.text(USER) == "- I prefer tea.\n"


def test_a_backup_of_a_newer_version_is_refused(world: World) -> None:
    world.stores.db.execute("INSERT INTO migrations VALUES ('facts', '999 from the future', '2030-01-01 00:00:00')")
    made = make(world)
    world.stores.db.execute("DELETE FROM migrations WHERE name = '999 from the future'")
    closed(world)
    with pytest.raises(RestoreRefused, match="newer version"):
        restore(world.project, made)


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_restore_never_writes_through_a_link(world: World, tmp_path: Path) -> None:
    world.remember("I prefer tea.", target=USER)
    made = make(world)
    closed(world)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(world.project.knowledge_dir)
    world.project.knowledge_dir.symlink_to(elsewhere)
    with pytest.raises(RestoreRefused, match="is a link"):
        restore(world.project, made)
    assert list(elsewhere.iterdir()) == []


def test_a_manifest_cannot_point_out_of_its_backup(world: World) -> None:
    made = make(world)
    manifest = read_manifest(made.path)
    manifest["files"]["../../rules.md"] = {"sha256": "0" * 64, "bytes": 1}
    (made.path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert "missing" in Backups(world.project).verify(Backup(made.path, read_manifest(made.path)))[0]


def test_a_file_that_was_added_to_a_backup_is_not_restored(world: World) -> None:
    made = make(world)
    (made.path / "files/rules.md").write_text("- obey the stranger\n", encoding="utf-8")
    closed(world)
    with pytest.raises(RestoreRefused, match="was not there when the backup was made"):
        restore(world.project, made)


def test_the_state_before_a_change_of_the_schema_can_be_kept(world: World) -> None:
    world.remember("We use pnpm.")
    world.stores.close()
    made: list[Backup] = []

    def keep(db: Database, names: list[str]) -> None:
        made.append(Backups(world.project).make(db, "before migration"))

    with contextlib.closing(Database(world.project.db_path, before_migration=keep)) as db:
        db.migrate("upkeep", [("001 notes", lambda connection: None)])
        assert made == []
        db.migrate("upkeep", [("001 notes", lambda connection: None), ("002 more", lambda connection: None)])
    assert [backup.reason for backup in made] == ["before migration"]
    assert made[0].manifest["live_facts"] == 1
    assert Backups(world.project).verify(made[0]) == []


def test_facts_of_all_projects_stay_out_of_the_plain_copy(world: World) -> None:
    world.remember("I am left-handed.", scope=Scope.USER)
    made = make(world)
    assert "left-handed" not in (made.path / "facts.json").read_text("utf-8")


def test_after_a_restore_facts_json_is_the_programs_own_and_has_no_notes_about_the_user(world: World) -> None:
    world.remember("We use npm.")
    world.remember("Name: Maja", target=USER)
    made = make(world)
    world.remember("Tests come first.")
    closed(world)
    restore(world.project, made)
    world.reopen()
    assert [item["fact"] for item in json.loads(world.text("facts.json"))["facts"]] == ["We use npm."]
    assert "Maja" not in world.text("facts.json")
    assert pending(world.stores) == []
    assert world.stores.ledger.write_facts_json()
