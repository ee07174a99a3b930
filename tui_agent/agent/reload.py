"""Files edited in another window take effect from the next message, and are said with a one-line diff."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.agent.events import Event, FileChanged, Notice
from tui_agent.memory.rules import one_line_diff
from tui_agent.memory.sections import line_diff
from tui_agent.memory.watcher import MemoryWatcher

if TYPE_CHECKING:
    from tui_agent.agent.session import Session

log = logging.getLogger(__name__)


class LiveReload:
    """Watches the memory files and settings of a session while a person is looking."""

    def __init__(self, session: Session, emit: Callable[[Event], None]) -> None:
        self._session = session
        self._emit = emit
        self._watcher: MemoryWatcher | None = None
        self._watching: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Begin to watch. The program's own writes are not reported."""
        session = self._session
        self._watcher = MemoryWatcher(session.project, session.stores.paths, on_change=self._changed)
        session.stores.files.announce = self._watcher.ignore
        self._watching = self._watcher.start()

    async def watching(self) -> None:
        """Wait until changes are noticed."""
        if self._watching is not None:
            await self._watching

    async def stop(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            await self._watcher.stop()
            self._watcher = None

    async def _changed(self, paths: set[Path]) -> None:
        session = self._session
        project = session.project
        config = {project.config_path, session.stores.paths.config_path}
        if paths & config:
            await self._config_changed(sorted(paths & config))
        await session._files_edited(paths)
        if paths - config:
            await self.refresh()

    async def refresh(self) -> None:
        """Read the sources again and say what differs."""
        core = self._session.core
        rules_before = core.sources.rules
        before = {section.name: section.text for section in core.sources.sections()}
        problems_before = set(core.sources.problems())
        await asyncio.to_thread(core.sources.refresh)
        rules = core.sources.rules
        rule_names = {entry.name for entry in (*rules_before.entries, *rules.entries)}
        if diff := one_line_diff(rules_before, rules):
            names = sorted(
                {e.name for e in rules.entries if before.get(e.name) != e.text}
                | {e.name for e in rules_before.entries if e.name not in {n.name for n in rules.entries}}
            )
            home = f"{self._session.project.memory_dir.name}/"
            shown = ", ".join(name.removeprefix(home) for name in names)
            self._emit(FileChanged(shown or "rules", diff))
        now = {section.name: section.text for section in core.sources.sections()}
        for name in {**now, **before}:  # one that was emptied or deleted is no longer among them
            diff = line_diff(before.get(name, ""), now.get(name, ""))
            if diff and name not in rule_names:
                self._emit(FileChanged(name, diff))
        for text in core.sources.problems():
            if text not in problems_before:
                self._emit(Notice("warning", text, key=f"source:{text}"))

    async def _config_changed(self, paths: list[Path]) -> None:
        session = self._session
        before = session.loaded
        loaded = await asyncio.to_thread(before.reload)
        known = {problem.text for problem in before.problems}
        for problem in loaded.problems:
            if problem.text not in known:
                self._emit(Notice(problem.level, problem.text, key=f"settings:{problem.key}"))
        old = {row.key: row.value for row in before.describe()}
        changed = [
            (row.key, old.get(row.key, ""), row.value) for row in loaded.describe() if old.get(row.key) != row.value
        ]
        if not changed:
            session.loaded = loaded
            return
        await session.apply_settings(loaded)
        diff = "  ".join(f"{key}: {was} → {now}" for key, was, now in changed)
        self._emit(FileChanged(paths[0].name, diff[:200]))
        if any(key == "rules" for key, _, _ in changed):
            await self.refresh()
