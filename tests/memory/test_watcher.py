"""The watcher: real changes by others are reported once, whatever way they were made."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.textfile import digest
from tui_agent.memory.watcher import MemoryWatcher
from tui_agent.project import Project, UserPaths

WAIT_S = 8.0


class Listener:
    """Collects reports and waits for one that names a file."""

    def __init__(self) -> None:
        self.reports: list[set[Path]] = []
        self.changed = asyncio.Event()

    async def __call__(self, paths: set[Path]) -> None:
        self.reports.append(paths)
        self.changed.set()

    @property
    def all(self) -> set[Path]:
        return set().union(*self.reports)

    async def hears(self, *paths: Path) -> None:
        async def until() -> None:
            while not set(paths) <= self.all:
                self.changed.clear()
                await self.changed.wait()

        await asyncio.wait_for(until(), WAIT_S)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "project").mkdir()
    return Project.open(tmp_path / "project").ensure()


@pytest.fixture
def user(tmp_path: Path) -> UserPaths:
    return UserPaths.find({"TUI_AGENT_HOME": str(tmp_path / "home")}).ensure()


@pytest.fixture
async def listener() -> Listener:
    return Listener()


@pytest.fixture(params=["notified", "polling"])
async def watcher(
    request: pytest.FixtureRequest, project: Project, user: UserPaths, listener: Listener
) -> AsyncIterator[MemoryWatcher]:
    polling = request.param == "polling"
    one = MemoryWatcher(project, user, on_change=listener, polling=polling, interval=0.05 if polling else 30.0)
    await asyncio.wait_for(one.start(), WAIT_S)
    yield one
    await one.stop()


def replace_as_editors_do(path: Path, text: str) -> None:
    backup = path.with_name(path.name + "~")
    if path.exists():
        path.rename(backup)
    fresh = path.with_name(f".{path.name}.swp")
    fresh.write_text(text)
    fresh.rename(path)


async def test_each_kind_of_file_is_noticed_wherever_it_is(
    watcher: MemoryWatcher, project: Project, user: UserPaths, listener: Listener
) -> None:
    home = project.memory_dir
    paths = [
        project.rules_path, project.agents_path, project.config_path, project.facts_json_path, user.config_path,
        home / "knowledge/user.md", home / "knowledge/projects/atlas.md", home / "skills/plan.md",
        home / "conversations/summaries/one.md", project.root / "AGENTS.md", project.root / "CLAUDE.md",
        project.root / "rules.md",
    ]  # fmt: skip
    for path in paths:
        path.write_text("changed\n")
    await listener.hears(*paths)
    assert listener.all == set(paths)


async def test_files_in_folders_made_later_are_noticed(
    watcher: MemoryWatcher, project: Project, user: UserPaths, listener: Listener
) -> None:
    paths = [
        project.root / "src/payments/rules.md", project.skills_dir / "sql/SKILL.md", user.skills_dir / "mine.md",
        project.root / ".continue/rules/style.md", user.user_notes_path,
    ]  # fmt: skip
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text("new\n")
    await listener.hears(*paths)
    listener.reports.clear()
    for path in paths:
        path.write_text("changed again\n")
    await listener.hears(*paths)


async def test_a_file_replaced_by_an_editor_is_one_change_and_no_deletion(
    watcher: MemoryWatcher, project: Project, listener: Listener
) -> None:
    path = project.agents_path
    for number in range(3):
        listener.reports.clear()
        replace_as_editors_do(path, f"version {number}\n")
        await listener.hears(path)
        assert path.read_text() == f"version {number}\n"
        assert listener.all == {path}


async def test_a_deleted_file_and_a_deleted_memory_folder_are_noticed_and_survived(
    watcher: MemoryWatcher, project: Project, listener: Listener
) -> None:
    project.rules_path.write_text("one\n")
    await listener.hears(project.rules_path)
    listener.reports.clear()
    project.rules_path.unlink()
    await listener.hears(project.rules_path)
    listener.reports.clear()
    shutil.rmtree(project.memory_dir)
    await listener.hears(project.agents_path)
    assert watcher.running
    listener.reports.clear()
    project.ensure()
    project.rules_path.write_text("again\n")
    await listener.hears(project.rules_path, project.agents_path)


async def test_what_does_not_change_the_content_or_is_no_memory_file_is_not_reported(
    watcher: MemoryWatcher, project: Project, listener: Listener
) -> None:
    os.utime(project.agents_path)
    project.agents_path.write_bytes(project.agents_path.read_bytes())
    for name in ("main.py", "README.md", ".agent-memory/memory.db", ".agent-memory/memory.db-wal",
                 ".agent-memory/logs/app.log", ".agent-memory/backups/x.md",
                 ".agent-memory/.AGENTS.md.x.tmp"):  # fmt: skip
        path = project.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    project.rules_path.write_text("real\n")
    await listener.hears(project.rules_path)
    assert listener.all == {project.rules_path}


async def test_the_programs_own_writes_are_not_reported_and_others_still_are(
    watcher: MemoryWatcher, project: Project, listener: Listener
) -> None:
    files = MemoryFiles(project.memory_dir, announce=watcher.ignore)
    for number in range(3):
        files.append_line("AGENTS.md", "User Preferences", f"- own {number}")
    files.edit_file("knowledge/user.md", "", "Name: Kacper\n")
    project.rules_path.write_text("theirs\n")
    await listener.hears(project.rules_path)
    assert listener.all == {project.rules_path}
    with project.agents_path.open("a") as file:
        file.write("- theirs\n")
    await listener.hears(project.agents_path)


async def test_an_announced_content_counts_once(project: Project, listener: Listener) -> None:
    watcher = MemoryWatcher(project, on_change=listener, polling=True, interval=0.03)
    await watcher.start()
    path = project.rules_path
    watcher.ignore(path, digest(b"own\n"))
    path.write_bytes(b"own\n")
    project.config_path.write_text("seed: 1\n")
    await listener.hears(project.config_path)
    path.write_bytes(b"theirs\n")
    await listener.hears(path)
    listener.reports.clear()
    path.write_bytes(b"own\n")
    await listener.hears(path)
    await watcher.stop()


async def test_a_listener_that_fails_does_not_end_the_watch(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    heard = asyncio.Event()
    calls: list[set[Path]] = []

    def fail(paths: set[Path]) -> None:
        calls.append(paths)
        heard.set()
        raise ValueError("broken listener")

    watcher = MemoryWatcher(project, on_change=fail, polling=True, interval=0.03)
    await watcher.start()
    for text in ("one\n", "two\n"):
        heard.clear()
        project.rules_path.write_text(text)
        await asyncio.wait_for(heard.wait(), WAIT_S)
    assert watcher.running
    await watcher.stop()
    assert "broken listener" in caplog.text


async def test_without_notifications_of_the_system_it_looks_by_itself(
    project: Project, listener: Listener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none_left(*_: Any, **__: Any) -> Any:
        raise OSError(28, "no watches left")

    monkeypatch.setattr(watchfiles, "awatch", none_left)
    watcher = MemoryWatcher(project, on_change=listener, interval=0.03)
    await watcher.start()
    project.rules_path.write_text("x\n")
    await listener.hears(project.rules_path)
    await watcher.stop()
    assert "no watches left" in caplog.text


async def test_nothing_is_reported_after_stop_and_a_stopped_watcher_starts_again(
    project: Project, listener: Listener
) -> None:
    watcher = MemoryWatcher(project, on_change=listener, interval=30.0)
    await watcher.stop()
    ready = watcher.start()
    assert watcher.start() is ready
    await ready
    await watcher.stop()
    await watcher.stop()
    assert not watcher.running
    project.rules_path.write_text("while stopped\n")
    await watcher.start()
    assert listener.reports == []
    project.agents_path.write_text("after\n")
    await listener.hears(project.agents_path)
    assert listener.all == {project.agents_path}
    await watcher.stop()


async def test_a_missing_memory_folder_is_waited_for(tmp_path: Path, listener: Listener) -> None:
    project = Project.open(tmp_path)
    watcher = MemoryWatcher(project, on_change=listener, interval=30.0)
    await watcher.start()
    project.ensure()
    await listener.hears(project.agents_path)
    await watcher.stop()


async def test_the_search_for_rules_can_be_shared(project: Project, listener: Listener) -> None:
    path = project.root / "src/deep/rules.md"
    path.parent.mkdir(parents=True)
    path.write_text("- rule\n")
    watcher = MemoryWatcher(project, on_change=listener)
    await watcher.start()
    assert watcher.scan.files == (path,)
    await watcher.stop()
