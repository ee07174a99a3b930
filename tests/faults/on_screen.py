"""The real application on a session of a scripted server, for rows that are about what stands on the screen; and real
commands against the same server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from tests.agent.conftest import Desk
from tui_agent.tui.app import TuiAgentApp


@asynccontextmanager
async def on_screen(desk: Desk) -> AsyncIterator[tuple[TuiAgentApp, Pilot[Any]]]:
    """The application, connected to the desk's session."""

    async def factory() -> Any:
        return desk.session

    app = TuiAgentApp(factory, project_name="project")
    async with app.run_test(size=(140, 40)) as pilot:
        await until(pilot, lambda: app.session is not None and desk.session.server.ready, "connected")
        await until(pilot, lambda: app.chat.is_complete and app.chat.transcript.entries, "painted")
        yield app, pilot


async def warmed(desk: Desk, app: TuiAgentApp, pilot: Pilot[Any]) -> None:
    """Wait until the model is loaded and has read the fixed part ahead, so that nothing of that comes in between."""
    await desk.server.log.until(
        lambda log: any(one.notes.get("warm_up") and one.outcome == "done" for one in log.of("/api/chat"))
    )
    await until(pilot, lambda: not app.chat.running and line_with(app, "○ ready"), "warm")


async def until(pilot: Pilot[Any], true: Callable[[], object], what: str) -> None:
    """Let the application work until ``true`` holds; fail after twenty seconds."""
    end = asyncio.get_running_loop().time() + 20
    while not true():
        assert asyncio.get_running_loop().time() < end, f"it never happened: {what}"
        await pilot.pause(0.01)


def lines_of(app: TuiAgentApp) -> list[str]:
    """The lines on the screen."""
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip)[:width].strip() for strip in strips[:height]]


def line_with(app: TuiAgentApp, words: str) -> str:
    """The first line on the screen with these words; empty when there is none."""
    return next((line for line in lines_of(app) if words in line), "")


def said(app: TuiAgentApp) -> list[str]:
    """The short notices in the corner."""
    return [one.message for one in app._notifications]


async def command(desk: Desk, *args: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """A real ``tui-agent`` in a process of its own; exit code, output and error output."""
    import os

    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tui_agent",
        *args,
        env={**os.environ, **(env or {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return int(process.returncode or 0), out.decode(), err.decode()


def at(desk: Desk, *more: str) -> Sequence[str]:
    """The options that point a command at the desk's project and server."""
    return ("-C", str(desk.project.root), "--host", desk.server.url, *more)
