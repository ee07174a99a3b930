"""Pictures of the screens, compared with those kept beside this file. Few, and with the clock standing still."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import MEDIUM, NARROW, WIDE, wait_until
from fake_session import RECALL, FakeSession
from textual.pilot import Pilot

from tui_agent.tui.app import TuiAgentApp
from tui_agent.tui.screens.why import WhyScreen


def app_on(session: FakeSession, theme: str = "ink") -> TuiAgentApp:
    async def factory() -> FakeSession:
        return session

    return TuiAgentApp(factory, project_name="parcel-service", theme=theme)


async def loaded(pilot: Pilot[Any]) -> None:
    app = pilot.app
    assert isinstance(app, TuiAgentApp)
    await wait_until(pilot, lambda: app.chat.is_complete, "complete")
    await wait_until(pilot, lambda: app.chat.hot.view.budget and app.chat.transcript.entries, "loaded")
    session = app.session
    assert isinstance(session, FakeSession)
    await wait_until(pilot, lambda: ("start",) in session.calls, "started")
    await wait_until(pilot, lambda: app.chat.status.status.reviews == len(session.waiting), "reviews counted")
    await wait_until(pilot, lambda: app.chat.recalled.record is not None or not session.entries, "recall shown")
    await wait_until(pilot, lambda: all(app.chat.transcript._settled), "laid out")
    await wait_until(pilot, lambda: app.chat.composer.editor.has_focus, "focused")
    await pilot.pause()


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW], ids=["wide", "medium", "narrow"])
def test_the_chat_looks_as_before(snap_compare: Any, size: tuple[int, int]) -> None:
    assert snap_compare(app_on(FakeSession()), terminal_size=size, run_before=loaded)


def test_the_first_run_looks_as_before(snap_compare: Any) -> None:
    assert snap_compare(app_on(FakeSession(empty=True)), terminal_size=WIDE, run_before=loaded)


def test_the_light_theme_with_a_selected_answer_looks_as_before(snap_compare: Any) -> None:
    async def before(pilot: Pilot[Any]) -> None:
        await loaded(pilot)
        await pilot.press("alt+up", "f4")
        await wait_until(pilot, lambda: pilot.app.chat.recalled.record is RECALL)
        await pilot.pause()

    assert snap_compare(app_on(FakeSession(), "paper"), terminal_size=WIDE, run_before=before)


def test_why_looks_as_before(snap_compare: Any) -> None:
    async def before(pilot: Pilot[Any]) -> None:
        await loaded(pilot)
        await pilot.press("alt+up", "alt+w")
        await wait_until(pilot, lambda: isinstance(pilot.app.screen, WhyScreen))
        await pilot.pause()

    assert snap_compare(app_on(FakeSession()), terminal_size=WIDE, run_before=before)
