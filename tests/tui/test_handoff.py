"""The hand-off: parts corrected and confirmed one by one, then copied or saved."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from conftest import MEDIUM, NARROW, WIDE, driven, notices, screen_text, wait_until
from fake_session import FakeSession
from textual.pilot import Pilot
from textual.widgets import Input

from tui_agent.agent.review_views import HandoffDraft
from tui_agent.tui.app import TuiAgentApp
from tui_agent.tui.screens import panel
from tui_agent.tui.screens.handoff import HandoffScreen, PacketScreen
from tui_agent.tui.screens.panel import Question


@pytest.fixture(autouse=True)
def quick_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "QUESTION_DELAY_S", 0.001)


async def opened(app: TuiAgentApp, pilot: Pilot[Any]) -> HandoffScreen:
    app.command("/handoff")
    await wait_until(pilot, lambda: isinstance(app.screen, HandoffScreen), "open")
    screen = cast("HandoffScreen", app.screen)
    await wait_until(pilot, lambda: screen.view.text or screen.view.refused, "drafted")
    await pilot.pause()
    return screen


async def answer(app: TuiAgentApp, pilot: Pilot[Any], words: str) -> None:
    await wait_until(pilot, lambda: isinstance(app.screen, Question) and isinstance(app.focused, Input), "a question")
    app.screen.query_one(Input).value = words
    await pilot.press("enter")


def packet(screen: HandoffScreen) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(screen.view.text)
    return made


async def confirm_all(pilot: Pilot[Any], screen: HandoffScreen, parts: int) -> None:
    for number in range(parts):
        await pilot.press("c")
        await wait_until(pilot, lambda number=number: len(screen.confirmed) == number + 1, f"part {number}")  # type: ignore[misc]
        await pilot.pause()


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_a_draft_is_shown_part_by_part_and_confirmed_by_nobody(size: tuple[int, int]) -> None:
    async with driven(size=size) as (app, pilot, _):
        screen = await opened(app, pilot)
        shown = screen_text(app)
        for words in ("Port the report", "exclude archived", "region Northwest", "table", "0 of 4 parts confirmed"):
            assert words in shown
        assert packet(screen)["constraints_confirmed_by_user"] is False


async def test_the_packet_is_confirmed_only_when_every_part_is() -> None:
    async with driven() as (app, pilot, _):
        screen = await opened(app, pilot)
        await confirm_all(pilot, screen, 3)
        assert packet(screen)["constraints_confirmed_by_user"] is False
        await pilot.press("c")
        await wait_until(pilot, lambda: screen.view.confirmed, "all of them")
        assert packet(screen)["constraints_confirmed_by_user"] is True
        assert "confirmed by you" in screen_text(app)


async def test_a_part_that_changes_must_be_confirmed_again() -> None:
    async with driven() as (app, pilot, _):
        screen = await opened(app, pilot)
        await confirm_all(pilot, screen, 4)
        await wait_until(pilot, lambda: screen.view.confirmed, "confirmed")
        await pilot.press("up", "up", "e")
        await answer(app, pilot, "region National")
        await wait_until(pilot, lambda: "region National" in screen.view.text, "changed")
        assert packet(screen)["constraints_confirmed_by_user"] is False


async def test_requirements_are_added_and_left_out_and_keep_their_own_ticks() -> None:
    async with driven() as (app, pilot, _):
        screen = await opened(app, pilot)
        await pilot.press("down", "down", "c")  # the second requirement
        await wait_until(pilot, lambda: screen.confirmed == {"r1"}, "ticked")
        await pilot.pause()
        await pilot.press("up", "up", "d")
        await wait_until(pilot, lambda: screen.requirements == ["region Northwest"], "one left out")
        assert screen.confirmed == {"r0"}
        await pilot.press("o")
        await answer(app, pilot, "  active   only ")
        await wait_until(pilot, lambda: screen.requirements == ["region Northwest", "active only"], "added")
        await wait_until(pilot, lambda: "active only" in screen.view.text, "in the packet")


async def test_dialogue_is_refused_on_screen_and_cannot_be_copied_or_saved() -> None:
    session = FakeSession()
    session.handoff_parts = HandoffDraft("Port the report", ("what if we add archived? no, leave them out",), "")
    async with driven(session) as (app, pilot, _):
        screen = await opened(app, pilot)
        assert not screen.view.text
        assert "cannot be handed on" in " ".join(screen_text(app).split())
        await pilot.press("y", "s")
        await pilot.pause()
        assert app.screen is screen
        assert any("cannot be handed on" in words for words in notices(app))
        assert not session.saved


async def test_the_packet_is_saved_where_the_user_says_and_replaced_only_on_request() -> None:
    async with driven() as (app, pilot, session):
        screen = await opened(app, pilot)
        await confirm_all(pilot, screen, 4)
        await wait_until(pilot, lambda: screen.view.confirmed, "confirmed")
        await pilot.press("s")
        await answer(app, pilot, "out.json")
        await wait_until(pilot, lambda: ("save_handoff", "out.json", "True") in session.calls, "saved")
        await pilot.press("s")
        await answer(app, pilot, "out.json")
        await wait_until(pilot, lambda: "Replace out.json?" in screen_text(app), "asked")
        before = len([call for call in session.calls if call[0] == "save_handoff"])
        await answer(app, pilot, "replace")
        await wait_until(
            pilot, lambda: len([c for c in session.calls if c[0] == "save_handoff"]) == before + 1, "replaced"
        )


async def test_a_small_terminal_shows_the_packet_on_a_page_of_its_own() -> None:
    async with driven(size=NARROW) as (app, pilot, _):
        await opened(app, pilot)
        assert "constraints_confirmed_by_user" not in screen_text(app)
        await pilot.press("v")
        await wait_until(pilot, lambda: isinstance(app.screen, PacketScreen), "the page")
        await wait_until(pilot, lambda: "constraints_confirmed_by_user" in screen_text(app), "the packet")


async def test_an_empty_conversation_asks_for_a_task() -> None:
    session = FakeSession()
    session.handoff_parts = HandoffDraft()
    async with driven(session) as (app, pilot, _):
        screen = await opened(app, pilot)
        assert screen.view.refused
        await pilot.press("e")
        await answer(app, pilot, "Port the report")
        await wait_until(pilot, lambda: screen.view.text, "a packet")
        assert packet(screen)["task"] == "Port the report"
