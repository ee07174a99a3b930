"""Before the memory panes are mounted: what the first frame shows, and that nothing done meanwhile is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from conftest import MEDIUM, NARROW, WIDE, screen_text, wait_until
from fake_session import FakeSession
from textual.pilot import Pilot

from tui_agent.tui.app import TuiAgentApp

LATE = ("tui_agent.agent.events", "tui_agent.agent.views", "tui_agent.tui.widgets.panes", "tui_agent.llm", "yaml")


@asynccontextmanager
async def first_frame(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int] = WIDE
) -> AsyncIterator[tuple[TuiAgentApp, Pilot[Any], FakeSession, Callable[[], None]]]:
    """The application as it is first painted; it stays so until the last value is called."""
    go_on = threading.Event()
    monkeypatch.setattr("tui_agent.tui.app.import_parts", lambda: go_on.wait(20))
    session = FakeSession(empty=True)

    async def factory() -> FakeSession:
        return session

    app = TuiAgentApp(factory, project_name="parcel-service")
    async with app.run_test(size=size) as pilot:
        try:
            await wait_until(pilot, lambda: app.chat.composer.editor.has_focus, "the composer is there")
            await pilot.pause()
            assert not app.chat.is_complete
            yield app, pilot, session, go_on.set
        finally:
            go_on.set()


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW], ids=["wide", "medium", "narrow"])
async def test_the_first_frame_is_the_chat_without_its_panes(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    async with first_frame(monkeypatch, size) as (app, pilot, _, go_on):
        shown = screen_text(app)
        for words in ("parcel-service", "Ask, or say what to remember", "connecting", "F1 help"):
            assert words in shown
        assert ("enter send" in shown) == (size != NARROW)
        assert ("hot 0 · cold 0 · recalled 0" in shown) == (size == NARROW)
        before = app.chat.composer.region, app.chat.status.region, app.chat.transcript.region
        go_on()
        await wait_until(pilot, lambda: app.chat.is_complete, "complete")
        await pilot.pause()
        assert (app.chat.composer.region, app.chat.status.region, app.chat.transcript.region) == before


async def test_what_is_typed_and_sent_before_the_panes_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async with first_frame(monkeypatch) as (app, pilot, session, go_on):
        await pilot.press(*"hello", "enter", *"more")
        await wait_until(pilot, lambda: app.chat.composer.queue.waiting == ["hello"], "queued")
        assert app.chat.composer.text == "more"
        go_on()
        await wait_until(pilot, lambda: ("send", "hello") in session.calls, "sent")
        assert app.chat.composer.text == "more"


async def test_a_command_begun_before_the_panes_gets_its_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    async with first_frame(monkeypatch) as (app, pilot, _, go_on):
        await pilot.press("/", "h")
        await wait_until(pilot, lambda: app.chat.composer.text == "/h", "typed")
        go_on()
        await wait_until(pilot, lambda: app.chat.composer.editor.choosing, "completions")
        assert app.chat.composer.completions.has_class("-shown")


async def test_a_key_for_a_pane_waits_for_it_and_escape_takes_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with first_frame(monkeypatch) as (app, pilot, _, go_on):
        await pilot.press("f2", "escape", "f3")
        go_on()
        await wait_until(pilot, lambda: app.chat.is_complete and app.chat.cold.list.has_focus, "the pane is open")
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.chat.composer.editor.has_focus, "back to writing")


def test_the_first_paint_imports_nothing_that_only_the_panes_need() -> None:
    code = f"import sys, tui_agent.tui.app; print([name for name in {LATE!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"
