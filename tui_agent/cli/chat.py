"""``tui-agent chat``: the terminal interface. The screen is painted before anything heavy is imported.

Settings, project and session are read in a thread after the first paint; what is wrong with them ends the app with a
sentence where it cannot go on, and is shown in it where it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui_agent.project import Project, UserPaths
    from tui_agent.settings import Loaded

USAGE = 2


def run_chat(folder: Path, flags: dict[str, Any], resume: str, *, seed: bool = False) -> int:
    """Run the app; returns the exit code.

    Args:
        folder: the project.
        flags: settings named on the command line.
        resume: ``new``, ``continue``, or a session id or its end.
        seed: whether the project's seed is imported first when its memory is still empty.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("tui-agent: The chat needs a terminal. In a pipe use `tui-agent ask`.", file=sys.stderr)
        _say_next_steps(folder, flags)
        return USAGE
    if not folder.is_dir():
        print(f"tui-agent: {folder} is not a folder. Name the project's folder, or go there first.", file=sys.stderr)
        return USAGE
    # Collecting garbage while modules load finds none and takes a tenth of the start. What they made lives until the
    # end, so it is left out of later collections too, which then never hold up a key.
    gc.disable()
    from tui_agent.copies import tidy_copies
    from tui_agent.tui.app import TuiAgentApp

    trouble: list[str] = []

    async def open_session() -> Any:
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        # The imports take a while, and the painted screen must not stand still meanwhile: so they run in a thread.
        try:
            project, paths, loaded = await asyncio.to_thread(_prepare, folder, flags)
        except Exception as error:
            if not _is_usage(error):
                raise
            trouble.append(str(error))
            app.exit(return_code=USAGE)
            return await asyncio.Event().wait()
        settings = loaded.settings
        app.configure(
            theme=None if settings.theme == "default" else settings.theme,
            keymap=settings.keymap,
            theme_folders=(paths.themes_dir,),
            cursor_blink=settings.ui.cursor_blink,
        )
        session_class = await asyncio.to_thread(_import_session)
        await asyncio.to_thread(tidy_copies)
        if seed:
            await _seed(project, paths, loaded)
        # The sample project is for seeing at once what there is; everyone else is asked what should answer.
        return await session_class.open(
            project, loaded, resume=resume, user_paths=paths, interactive=True, ask_first=not seed
        )

    app = TuiAgentApp(
        open_session, theme=_theme_at_start(flags), project_name=folder.resolve().name, on_theme=_keep_theme
    )
    try:
        app.run()
    finally:
        gc.enable()
        tidy_copies(closing=True)
    for sentence in trouble:
        print(f"tui-agent: {sentence}", file=sys.stderr)
    return app.return_code or 0


def _prepare(folder: Path, flags: dict[str, Any]) -> tuple[Project, UserPaths, Loaded]:
    from tui_agent.project import Project, UserPaths
    from tui_agent.settings import load_settings

    project, paths = Project.open(folder), UserPaths.find(os.environ)
    return project, paths, load_settings(project, paths, os.environ, flags)


def _say_next_steps(folder: Path, flags: dict[str, Any]) -> None:
    """What is missing for an answer, for a script that wanted a chat."""
    from tui_agent.cli.next_steps import say_next_steps

    try:
        _, paths, loaded = _prepare(folder, flags)
    except Exception as error:
        if not _is_usage(error):
            raise
    else:
        say_next_steps(loaded, paths)


def _is_usage(error: Exception) -> bool:
    from tui_agent.project import ProjectError
    from tui_agent.settings import SettingsError

    return isinstance(error, (ProjectError, SettingsError))


def _import_session() -> Any:
    from tui_agent.agent.session import Session

    return Session


def _theme_at_start(flags: dict[str, Any]) -> str | None:
    """The theme to paint the first screen in, by a glance at the user's file: the settings are read after it."""
    if flags.get("theme"):
        return str(flags["theme"])
    with contextlib.suppress(OSError, UnicodeDecodeError):
        found = re.search(r"^theme:\s*[\"']?([\w-]+)", _user_config().read_text("utf-8"), re.MULTILINE)
        if found and found.group(1) != "default":
            return found.group(1)
    return None


def _user_config() -> Path:
    from tui_agent.project import UserPaths

    return UserPaths.find(os.environ).config_path


def _keep_theme(name: str) -> None:
    from tui_agent.settings_write import keep_setting

    with contextlib.suppress(OSError):  # a theme is not worth an error; it holds until the app is closed
        keep_setting(_user_config(), "theme", name)


async def _seed(project: Project, paths: UserPaths, loaded: Loaded) -> None:
    from tui_agent.agent.seed import import_seed, needs_seed
    from tui_agent.agent.stores import Stores

    stores = await asyncio.to_thread(Stores.open, project, loaded.settings, paths)
    try:
        if await stores.db.run(needs_seed, stores, project.seed_path):
            await import_seed(stores, loaded.settings, project.seed_path)
    finally:
        await asyncio.to_thread(stores.close)
