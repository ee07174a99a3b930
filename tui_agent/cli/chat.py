"""``tui-agent chat``: the terminal interface. The screen is painted before anything heavy is imported."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from tui_agent.cli.options import USAGE
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Loaded
from tui_agent.settings_write import keep_setting


def run_chat(project: Project, paths: UserPaths, loaded: Loaded, resume: str, seed: Path | None = None) -> int:
    """Run the app; returns the exit code. ``seed`` is imported first when the project's memory is still empty."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) and not os.environ.get("TUI_AGENT_FORCE_TTY"):
        print(
            "tui-agent: The chat needs a terminal. In a pipe use `tui-agent ask`.",
            file=sys.stderr,
        )
        return USAGE
    from tui_agent.tui.app import TuiAgentApp

    async def open_session() -> Any:
        session_class = await asyncio.to_thread(_import_session)
        if seed is not None:
            await _seed(project, paths, loaded, seed)
        return await session_class.open(project, loaded, resume=resume, user_paths=paths, interactive=True)

    def keep_theme(name: str) -> None:
        with contextlib.suppress(OSError):  # a theme is not worth an error; it holds until the app is closed
            keep_setting(paths.config_path, "theme", name)

    settings = loaded.settings
    app = TuiAgentApp(
        open_session,
        theme=None if settings.theme == "default" else settings.theme,
        keymap=settings.keymap,
        project_name=project.name,
        theme_folders=(paths.themes_dir,),
        cursor_blink=settings.ui.cursor_blink,
        on_theme=keep_theme,
    )
    app.run()
    return app.return_code or 0


def _import_session() -> Any:
    """The session's modules take a while to load; the screen is painted already and must not stand still."""
    from tui_agent.agent.session import Session

    return Session


async def _seed(project: Project, paths: UserPaths, loaded: Loaded, path: Path) -> None:
    from tui_agent.agent.seed import import_seed, needs_seed
    from tui_agent.agent.stores import Stores

    stores = await asyncio.to_thread(Stores.open, project, loaded.settings, paths)
    try:
        if await stores.db.run(needs_seed, stores, path):
            await import_seed(stores, loaded.settings, path)
    finally:
        await asyncio.to_thread(stores.close)
