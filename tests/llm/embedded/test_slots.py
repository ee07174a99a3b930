from __future__ import annotations

import os
import shutil
import stat
import sys
from collections import namedtuple
from pathlib import Path

import pytest

from tui_agent.llm.embedded.slots import SlotStates, delete_slot_states

Usage = namedtuple("Usage", "total used free")


def store(states: SlotStates, key: str, size: int = 10, age: int = 0) -> None:
    (states.folder / f"{key}.part").write_bytes(b"x" * size)
    states.accept(key, f"{key}.part")
    if age and states.file(key).exists():
        at = states.file(key).stat().st_mtime - age
        os.utime(states.file(key), (at, at))


def test_the_key_depends_on_every_part_and_on_where_one_ends() -> None:
    assert SlotStates.key("ab", "c") != SlotStates.key("a", "bc")
    assert SlotStates.key("a", "b") == SlotStates.key("a", "b")


def test_old_states_go_when_there_are_too_many(tmp_path: Path) -> None:
    states = SlotStates(tmp_path, keep=2)
    store(states, "a", age=30)
    store(states, "b", age=20)
    assert states.has("a")  # used now, so it is the newest
    store(states, "c")
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["a", "c"]


def test_old_states_go_when_they_are_too_large_but_the_newest_stays(tmp_path: Path) -> None:
    states = SlotStates(tmp_path, max_bytes=100)
    store(states, "a", 60, age=30)
    store(states, "b", 60, age=20)
    assert [path.stem for path in tmp_path.iterdir()] == ["b"]
    store(states, "c", 500)
    assert [path.stem for path in tmp_path.iterdir()] == ["c"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_states_are_readable_by_the_user_alone(tmp_path: Path) -> None:
    states = SlotStates(tmp_path / "slots")
    states.prepare()
    store(states, "a")
    assert stat.S_IMODE(states.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(states.file("a").stat().st_mode) == 0o600


def test_what_a_killed_run_left_is_cleaned_up(tmp_path: Path) -> None:
    (tmp_path / "x.part").write_bytes(b"half")
    SlotStates(tmp_path).prepare()
    assert not list(tmp_path.iterdir())


def test_all_states_can_be_deleted(tmp_path: Path) -> None:
    states = SlotStates(tmp_path)
    store(states, "a")
    store(states, "b")
    (tmp_path / "other.txt").write_text("mine", encoding="utf-8")
    assert delete_slot_states(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["other.txt"]
    assert delete_slot_states(tmp_path / "none") == 0


def test_a_nearly_full_disk_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10, 9, 1))
    assert not SlotStates(tmp_path).has_room()
