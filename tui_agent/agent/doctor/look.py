"""Gathers the doctor's facts. Reads only: nothing is created, migrated or locked, and no content crosses the wire."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from tui_agent.agent.consent import Consent
from tui_agent.agent.doctor.facts import EngineFacts, Facts, TerminalFacts
from tui_agent.agent.doctor.look_files import look_at_disks, look_at_paths
from tui_agent.agent.doctor.look_server import look_at_server
from tui_agent.agent.doctor.look_store import look_at_index, look_at_store
from tui_agent.llm.errors import ModelError
from tui_agent.llm.hardware import read_memory
from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.rules import load_rules
from tui_agent.memory.skills import load_skills
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Loaded

T = TypeVar("T")


async def look(
    project: Project,
    paths: UserPaths,
    loaded: Loaded,
    terminal: TerminalFacts,
    env: Mapping[str, str] | None = None,
) -> Facts:
    """All facts. One part that cannot be looked at leaves the others alone."""
    env = os.environ if env is None else env
    settings = loaded.settings

    def on_disk() -> Facts:
        store = look_at_store(project)
        return Facts(
            engine=_engine(loaded, project, paths),
            store=store,
            index=look_at_index(project, paths, settings, store.path),
            paths=look_at_paths(project, paths),
            disks=look_at_disks(project, paths),
            memory=read_memory(),
            terminal=terminal,
            problems=tuple((one.level, one.text) for one in loaded.problems),
            notes=_notes(project, paths, loaded),
            allowed_hosts=tuple(one.host for one in Consent(paths, settings).all()),
            python=platform.python_version(),
            sqlite=sqlite3.sqlite_version,
            fts5=_has_fts5(),
            root=project.root,
        )

    around, asked = await asyncio.gather(asyncio.to_thread(on_disk), look_at_server(loaded, paths, env))
    server, model, embedder = asked
    return replace(around, server=server, model=model, embedder=embedder)


def _engine(loaded: Loaded, project: Project, paths: UserPaths) -> EngineFacts:
    from tui_agent.llm.embedded.gguf import read_gguf
    from tui_agent.llm.embedded.models import assembled_path, find_parts
    from tui_agent.llm.embedded.process import missing_packages

    settings = loaded.settings
    error, has_model = "", assembled_path(paths.models_dir).is_file()
    if settings.gguf:
        try:
            read_gguf(Path(settings.gguf))
        except ModelError as found:
            error = found.message
    if not has_model:
        with contextlib.suppress(ModelError):
            has_model = bool(find_parts())
    return EngineFacts(
        wanted=settings.embedded,
        missing=tuple(missing_packages()),
        has_model=has_model,
        gguf=settings.gguf or "",
        gguf_error=error,
        log=str(project.logs_dir / "engine.log"),
    )


def _notes(project: Project, paths: UserPaths, loaded: Loaded) -> tuple[str, ...]:
    settings = loaded.settings
    found: list[str] = []
    found += _quietly(
        lambda: list(
            load_rules(
                project.root,
                settings.rules,
                memory_dir=project.memory_dir,
                max_tokens=settings.files.rules_max_tokens,
            ).problems
        ),
        [],
    )
    found += _quietly(lambda: list(load_skills([project.skills_dir, paths.skills_dir]).problems), [])
    if project.memory_dir.is_dir() and not project.memory_dir.is_symlink():
        found += _quietly(lambda: MemoryFiles(project.memory_dir).problems(), [])
    return tuple(dict.fromkeys(found))


def _quietly(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except (OSError, ValueError):  # what is wrong with the folder itself is told by its own check
        return otherwise


def _has_fts5() -> bool:
    try:
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(a)")
    except sqlite3.Error:
        return False
    return True
