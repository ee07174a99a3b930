from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tui_agent.llm.embedded import models
from tui_agent.llm.embedded.models import DEFAULT_MODEL, SplitModel, assemble, assembled_path, find_parts
from tui_agent.llm.errors import LoadFailed, ModelMissing

MakeParts = Callable[..., SplitModel]
Usage = namedtuple("Usage", "total used free")


class Steps(list[tuple[str, int, int]]):
    """Collects progress."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        self.append((stage, done, total))

    @property
    def stages(self) -> list[str]:
        return list(dict.fromkeys(step[0] for step in self))


def test_parts_are_joined_in_order_and_checked(tmp_path: Path, make_parts: MakeParts) -> None:
    content = bytes(range(256)) * 40
    model = make_parts(content, parts=12)  # part 10 comes after part 9, not after part 1
    steps = Steps()
    path = assemble(tmp_path / "cache", steps, model)
    assert path.read_bytes() == content
    assert steps[-1] == ("unpacking", len(content), len(content))
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)
    assert not list((tmp_path / "cache").glob("*.partial"))


def test_a_checked_file_is_not_read_again(tmp_path: Path, make_parts: MakeParts) -> None:
    model = make_parts()
    first = assemble(tmp_path / "cache", Steps(), model)
    steps = Steps()
    assert assemble(tmp_path / "cache", steps, model) == first
    assert steps == []


def test_a_file_of_unknown_history_is_checked_and_kept(tmp_path: Path, make_parts: MakeParts) -> None:
    model = make_parts()
    path = assemble(tmp_path / "cache", Steps(), model)
    inode = path.stat().st_ino
    path.with_name(path.name + ".checked").unlink()
    steps = Steps()
    assemble(tmp_path / "cache", steps, model)
    assert steps.stages == ["checking"]
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("damage", [b"x" * 1000, b"short"])
def test_a_changed_file_is_made_again(tmp_path: Path, make_parts: MakeParts, damage: bytes) -> None:
    model = make_parts(b"0123456789" * 100)
    path = assemble(tmp_path / "cache", Steps(), model)
    path.write_bytes(damage)
    assert assemble(tmp_path / "cache", Steps(), model).read_bytes() == b"0123456789" * 100


def test_what_a_killed_run_left_is_replaced(tmp_path: Path, make_parts: MakeParts) -> None:
    model = make_parts()
    target = assembled_path(tmp_path, model)
    target.with_name(target.name + ".partial").write_bytes(b"half")
    assert assemble(tmp_path, Steps(), model).stat().st_size == model.size
    assert not target.with_name(target.name + ".partial").exists()


def test_damaged_parts_never_become_the_model(tmp_path: Path, make_parts: MakeParts) -> None:
    model = replace(make_parts(), sha256="0" * 64)
    with pytest.raises(LoadFailed, match=r"package files are damaged.*force-reinstall"):
        assemble(tmp_path, Steps(), model)
    assert not assembled_path(tmp_path, model).exists()
    assert not list(tmp_path.glob("*.partial"))


def test_an_interruption_leaves_nothing_behind(tmp_path: Path, make_parts: MakeParts) -> None:
    def stop(stage: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    model = make_parts()
    with pytest.raises(KeyboardInterrupt):
        assemble(tmp_path, stop, model)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [f"{model.file_name}.lock"]
    assert assemble(tmp_path, Steps(), model).is_file()


def test_a_full_disk_is_named_before_anything_is_written(
    tmp_path: Path, make_parts: MakeParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_parts()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 95, 5))
    with pytest.raises(LoadFailed, match=r"needs 67 MB in .*, where 0 MB are free\. Free some space"):
        assemble(tmp_path, Steps(), model)
    assert not list(tmp_path.glob("*.partial"))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, make_parts: MakeParts) -> None:
    model = make_parts()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(LoadFailed, match="could not be written to"):
        assemble(tmp_path / "file", Steps(), model)


def test_a_missing_package_and_a_missing_file_are_named(tmp_path: Path, make_parts: MakeParts) -> None:
    model = make_parts(parts=3)
    with pytest.raises(ModelMissing, match=r"made-up-part4 is missing\. Install it with: pip install 'tui-agent"):
        find_parts(replace(model, parts=4))
    find_parts(model)[1].unlink()
    with pytest.raises(ModelMissing, match=r"made-up-part2 is installed but its file part02\.bin is missing"):
        find_parts(model)


def test_parts_are_found_without_a_file_list(make_parts: MakeParts) -> None:
    model = make_parts(record=False)
    assert [path.name for path in find_parts(model)] == ["part01.bin", "part02.bin", "part03.bin"]


def test_parts_are_never_imported(tmp_path: Path, make_parts: MakeParts) -> None:
    assemble(tmp_path, Steps(), make_parts())
    assert not [name for name in sys.modules if name.startswith("made_up_part")]


def test_a_second_program_waits_and_finds_the_file(
    tmp_path: Path, make_parts: MakeParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_parts()
    monkeypatch.setattr(models, "_LOCK_POLL_S", 0.01)
    inside, go = threading.Event(), threading.Event()

    def hold(stage: str, done: int, total: int) -> None:
        inside.set()
        go.wait(10)

    first = threading.Thread(target=assemble, args=(tmp_path, hold, model))
    first.start()
    assert inside.wait(10)
    steps = Steps()

    def second(stage: str, done: int, total: int) -> None:
        steps(stage, done, total)
        go.set()

    assemble(tmp_path, second, model)
    first.join(10)
    assert steps == [("waiting", 0, 0)]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_program_leaves_the_lock_free(tmp_path: Path, make_parts: MakeParts) -> None:
    model = make_parts()
    code = (
        "import os, pathlib, sys; from tui_agent.llm.embedded import models\n"
        "with models._locked(pathlib.Path(sys.argv[1]), lambda: None): os.kill(os.getpid(), 9)\n"
    )
    lock = tmp_path / f"{model.file_name}.lock"
    assert subprocess.run([sys.executable, "-c", code, str(lock)], check=False).returncode == -9
    steps = Steps()
    assemble(tmp_path, steps, model)
    assert "waiting" not in steps.stages


def test_the_default_model_is_the_one_of_the_packages() -> None:
    assert DEFAULT_MODEL.parts == 22
    assert DEFAULT_MODEL.size == 1_117_320_768
    assert DEFAULT_MODEL.sha256.startswith("cc324af0")
    assert len(DEFAULT_MODEL.sha256) == 64
