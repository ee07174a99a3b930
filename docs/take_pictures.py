"""Takes the pictures in this folder from the real app: ``python docs/take_pictures.py [FOLDER]``.

The app runs headless on a copy of the sample project, with its real session and stores, against the scripted model
server, so that the pictures are the same on every machine. Each screen is exported as SVG and turned into PNG.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import cairosvg

ROOT = Path(__file__).resolve().parent.parent
SIZES = {"wide": (140, 40), "medium": (100, 30), "narrow": (70, 20)}
QUESTION = "How often do we try a carrier call, and may I lower the timeout for Stork?"
ANSWER = (
    "Carrier calls are tried **4 times**, starting at 200 ms (decided 2026-09-03).\n\n"
    "Leave the timeout of Stork alone: it answers slowly on Mondays.\n\n"
    "```python\nretry_it(lambda: stork.track(parcel), attempts=4, base_s=0.2)\n```\n"
)


async def _settled(pilot: Any, true: Callable[[], bool], limit_s: float = 20.0) -> None:
    end = asyncio.get_running_loop().time() + limit_s
    while not true():
        if asyncio.get_running_loop().time() > end:
            raise SystemExit("the screen never settled")
        await pilot.pause(0.05)
    await pilot.pause(0.3)


async def _take(folder: Path, home: Path) -> list[Path]:
    from tui_agent.agent.seed import import_seed
    from tui_agent.agent.session import Session
    from tui_agent.agent.stores import Stores
    from tui_agent.llm.wire.catalog import model
    from tui_agent.llm.wire.script import answer
    from tui_agent.llm.wire.scripted import ScriptedBackend
    from tui_agent.llm.wire.serve import WireServer
    from tui_agent.project import Project, UserPaths
    from tui_agent.settings import load_settings
    from tui_agent.tui.app import TuiAgentApp

    taken: list[Path] = []
    backend = ScriptedBackend(default="OK.", models=[model("qwen2.5-coder:7b", context_length=32768)])
    async with WireServer(backend) as server:
        for name, size in SIZES.items():
            root = home / name / "parcel-service"
            shutil.copytree(ROOT / "sample_project", root)
            project, paths = Project.open(root), UserPaths.find()
            loaded = load_settings(project, paths, {}, {"host": server.url, "embedder": "builtin"})
            stores = await asyncio.to_thread(Stores.open, project, loaded.settings, paths)
            await import_seed(stores, loaded.settings, project.seed_path)
            await asyncio.to_thread(stores.close)
            opened: list[Session] = []

            async def open_session(project: Any = project, loaded: Any = loaded, opened: Any = opened) -> Session:
                session = await Session.open(project, loaded, resume="continue", user_paths=UserPaths.find())
                opened.append(session)
                return session

            app = TuiAgentApp(open_session, project_name=project.name)
            async with app.run_test(size=size) as pilot:

                async def shot(label: str, app: Any = app, name: str = name) -> None:
                    svg = re.sub(r"@font-face \{.*?\}", "", app.export_screenshot(), flags=re.S)
                    # A font that is everywhere, at the size at which its cells are as wide as those of the export.
                    svg = svg.replace("Fira Code", "DejaVu Sans Mono").replace("font-size: 20px", "font-size: 20.27px")
                    target = folder / f"{label}-{name}.png"
                    cairosvg.svg2png(bytestring=svg.encode(), write_to=str(target), output_width=1600)
                    taken.append(target)

                await _settled(pilot, lambda opened=opened: bool(opened) and opened[0].server.ready)  # type: ignore[misc]
                await shot("start")
                backend.queue(answer(ANSWER))
                await pilot.press(*QUESTION)
                await pilot.press("enter")
                await _settled(pilot, lambda opened=opened: bool(opened[0].core.last_usage) and not opened[0].busy)  # type: ignore[misc]
                await shot("chat")
                await _screens(pilot, shot)
    return taken


_SCREENS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("f4", "enter"), "why"),
    (("f5",), "remembered"),
    (("f7",), "review"),
    ((*"/handoff", "enter"), "handoff"),
    (("f1",), "help"),
)


async def _screens(pilot: Any, shot: Callable[[str], Awaitable[None]]) -> None:
    for keys, label in _SCREENS:
        await pilot.press(*keys)
        await pilot.pause(0.5)
        await shot(label)
        await pilot.press("escape")
        await pilot.pause(0.2)
        await pilot.press("escape")


def main() -> None:
    """Take all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["TUI_AGENT_HOME"] = f"{home}/user"
        for path in asyncio.run(_take(folder, Path(home))):
            print(path)


if __name__ == "__main__":
    main()
