"""Fixtures of the screens' tests: one clock, one time zone, a driven application."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_session import FakeSession
from textual.pilot import Pilot

from tui_agent.tui import text
from tui_agent.tui.app import TuiAgentApp

WIDE, MEDIUM, NARROW = (140, 40), (100, 30), (70, 20)


@pytest.fixture(autouse=True)
def frozen_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screens' clock stands still, in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(text, "now", lambda: datetime(2026, 11, 30, 9, 45, tzinfo=timezone.utc))


@pytest.fixture(autouse=True)
def no_clipboard(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test touches the clipboard of the machine."""
    monkeypatch.setattr("tui_agent.tui.clipboard.native_tool", lambda environment: ())


async def wait_until(pilot: Pilot[Any], predicate: Callable[[], object], what: str = "") -> None:
    """Let the application work until ``predicate`` holds; fail after twenty seconds."""
    deadline = time.monotonic() + 20
    while not predicate():
        assert time.monotonic() < deadline, f"it never happened: {what or predicate}"
        await pilot.pause(0.005)


@asynccontextmanager
async def driven(
    session: FakeSession | None = None, size: tuple[int, int] = WIDE, **options: Any
) -> AsyncIterator[tuple[TuiAgentApp, Pilot[Any], FakeSession]]:
    """The application at ``size`` on a fake session, connected and loaded."""
    session = session or FakeSession()

    async def factory() -> FakeSession:
        return session

    app = TuiAgentApp(factory, project_name="parcel-service", **options)
    async with app.run_test(size=size) as pilot:
        await wait_until(pilot, lambda: ("start",) in session.calls and app.chat.transcript.entries, "connected")
        await wait_until(pilot, lambda: app.chat.hot.view.budget, "panes loaded")
        await wait_until(pilot, lambda: app.chat.status.status.reviews == len(session.waiting), "reviews counted")
        await pilot.pause()
        yield app, pilot, session


def notices(app: TuiAgentApp) -> list[str]:
    """The short notices in the corner, as text."""
    return [notification.message for notification in app._notifications]


def conversation(app: TuiAgentApp) -> str:
    """The whole conversation as laid out, on one line."""
    transcript = app.chat.transcript
    lines = [line.content.plain for index in range(len(transcript.entries)) for line in transcript._lines(index)]
    return " ".join(" ".join(lines).split())


def screen_text(app: TuiAgentApp) -> str:
    """What is on the screen, as text."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip)[:width].rstrip() for strip in lines[:height])
