"""The review, the log, the files of the prompt, sharing, and what keys do to facts in lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from conftest import MEDIUM, NARROW, WIDE, driven, notices, screen_text, wait_until
from fake_session import FakeSession
from textual.pilot import Pilot
from textual.widgets import Input

from tui_agent.agent.views import Field
from tui_agent.tui.app import TuiAgentApp
from tui_agent.tui.screens import panel
from tui_agent.tui.screens.inspector import InspectorScreen
from tui_agent.tui.screens.panel import Question
from tui_agent.tui.screens.review import ReviewScreen
from tui_agent.tui.screens.upkeep import FilesScreen, LogScreen, SharingScreen


@pytest.fixture(autouse=True)
def quick_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "QUESTION_DELAY_S", 0.001)


async def opened(app: TuiAgentApp, pilot: Pilot[Any]) -> ReviewScreen:
    await pilot.press("f7")
    await wait_until(pilot, lambda: isinstance(app.screen, ReviewScreen) and app.screen._loaded, "the review is open")
    await pilot.pause()
    return cast("ReviewScreen", app.screen)


async def answer(app: TuiAgentApp, pilot: Pilot[Any], words: str) -> None:
    await wait_until(pilot, lambda: isinstance(app.screen, Question) and isinstance(app.focused, Input), "a question")
    app.screen.query_one(Input).value = words
    await pilot.press("enter")


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_the_review_counts_its_parts_and_the_live_rows(size: tuple[int, int]) -> None:
    async with driven(size=size) as (app, pilot, session):
        await opened(app, pilot)
        shown = screen_text(app)
        assert "4 live of 6 rows" in shown
        for part in ("1 old 3 of 4", "2 new today 1", "3 waiting 1", "4 unused 0", "5 look up 0", "6 by hand 0"):
            assert part in shown
        assert "not confirmed since 2026-08-15" in shown
        assert ("review", "True") in session.calls


async def test_confirming_takes_a_fact_out_of_the_queue() -> None:
    async with driven() as (app, pilot, session):
        screen = await opened(app, pilot)
        await pilot.press("c")
        await wait_until(pilot, lambda: screen.view.queue_total == 3, "one fewer")
        assert ("confirm", "fact:f1") in session.calls
        assert "fact:f1" not in screen.list.rows


@pytest.mark.parametrize(
    ("key", "words", "call"),
    [
        ("e", "Prefers bun", ("correct", "fact:f1", "Prefers bun")),
        ("h", "7 days", ("set_expiry", "fact:f1", "7 days")),
        ("D", "delete", ("delete_forever", "fact:f1")),
    ],
)
async def test_the_review_asks_before_it_changes_a_fact(key: str, words: str, call: tuple[str, ...]) -> None:
    async with driven() as (app, pilot, session):
        await opened(app, pilot)
        await pilot.press(key)
        await answer(app, pilot, words)
        await wait_until(pilot, lambda: call in session.calls, str(call))


async def test_expire_and_undo_work_at_once() -> None:
    async with driven() as (app, pilot, session):
        await opened(app, pilot)
        await pilot.press("x")
        await wait_until(pilot, lambda: ("expire", "fact:f1") in session.calls, "expired")
        await pilot.press("u")
        await wait_until(pilot, lambda: ("undo",) in session.calls, "undone")


async def test_digits_and_tab_go_through_the_parts() -> None:
    async with driven() as (app, pilot, _):
        screen = await opened(app, pilot)
        assert screen.part == "queue"
        await pilot.press("3")
        assert screen.part == "waiting"
        await pilot.press("tab")
        assert screen.part == "unused"
        await pilot.press("right", "right", "right")
        assert screen.part == "queue"
        await pilot.press("left")
        assert screen.part == "by_hand"
        await pilot.press("5")
        assert screen.part == "fetchable"
        await pilot.pause()
        assert "Nothing here that a tool could fetch." in screen_text(app)


async def test_lines_by_hand_are_confirmed_like_facts_and_have_no_end() -> None:
    session = FakeSession()
    line = replace(session.facts[0], ref="note:abc", text="Deploys go out on Tuesdays.", why="by hand, from 2026-10-01")
    session.lines_by_hand = (line,)
    async with driven(session) as (app, pilot, _):
        await opened(app, pilot)
        await pilot.press("6")
        await wait_until(pilot, lambda: "Deploys go out on Tuesdays." in screen_text(app), "the line is shown")
        assert "by hand, from 2026-10-01" in screen_text(app)
        await pilot.press("h")
        assert not isinstance(app.screen, Question)
        await pilot.press("c")
        await wait_until(pilot, lambda: ("confirm", "note:abc") in session.calls, "confirmed")


async def test_a_fact_that_can_be_checked_says_how() -> None:
    session = FakeSession()
    hint = Field("to check", "`psql --version`, or the image in the compose file")
    session.facts = [replace(session.facts[0], fields=(*session.facts[0].fields, hint)), *session.facts[1:]]
    async with driven(session) as (app, pilot, _):
        await opened(app, pilot)
        assert screen_text(app).count("to check: `psql --version`") == 1


async def test_what_waits_is_approved_and_rejected_in_its_part_only() -> None:
    async with driven() as (app, pilot, session):
        screen = await opened(app, pilot)
        await pilot.press("a", "n")
        assert not any(call[0] in ("approve", "reject") for call in session.calls)
        await pilot.press("3")
        assert "the model's own idea" in screen_text(app) or await _paused(pilot, app, "the model's own idea")
        await pilot.press("c")  # no fact yet, so nothing to confirm
        await pilot.press("a")
        await wait_until(pilot, lambda: ("approve", "q1") in session.calls, "approved")
        await wait_until(pilot, lambda: not screen.view.waiting, "gone from the list")
        assert not any(call[0] == "confirm" for call in session.calls)


async def _paused(pilot: Pilot[Any], app: TuiAgentApp, words: str) -> bool:
    await wait_until(pilot, lambda: words in screen_text(app), words)
    return True


async def test_the_first_part_that_holds_something_is_shown() -> None:
    session = FakeSession()
    session.unused_facts = (replace(session.facts[0], why="never recalled since 2026-01-01"),)
    session.facts, session.waiting = [], []
    async with driven(session) as (app, pilot, _):
        screen = await opened(app, pilot)
        assert screen.part == "unused"
        assert "never recalled" in screen_text(app)


async def test_an_empty_review_says_what_would_be_here() -> None:
    async with driven(FakeSession(empty=True)) as (app, pilot, _):
        await opened(app, pilot)
        assert "Facts that nobody confirms for 90 days come up here." in screen_text(app)


async def test_words_that_are_not_the_users_are_marked_in_the_review() -> None:
    async with driven() as (app, pilot, _):
        await opened(app, pilot)
        await pilot.press("2")
        await _paused(pilot, app, "README.md (file, not your words)")


async def test_the_review_opens_the_inspector_and_a_click_on_a_part_goes_there() -> None:
    async with driven() as (app, pilot, _):
        screen = await opened(app, pilot)
        await pilot.press("enter")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen), "the inspector")
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is screen, "back")
        await pilot.click("#parts", offset=(22, 0))
        await wait_until(pilot, lambda: screen.part == "new", "new today")


async def test_slash_review_opens_it_and_f7_closes_it() -> None:
    async with driven() as (app, pilot, _):
        app.command("/review")
        await wait_until(pilot, lambda: isinstance(app.screen, ReviewScreen), "open")
        await pilot.press("f7")
        await wait_until(pilot, lambda: not isinstance(app.screen, ReviewScreen), "closed")


# -- log, files, sharing -----------------------------------------------------------------------------------------


async def test_the_log_shows_old_and_new_and_can_be_narrowed() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("f8")
        await wait_until(pilot, lambda: isinstance(app.screen, LogScreen) and "pnpm" in screen_text(app), "the log")
        shown = screen_text(app)
        assert "replaced      We use npm → We use pnpm" in shown
        assert "confirmed     Name: Kacper (2026-11-30 09:42:00)" in shown
        assert "uvicorn start-up (weakest)" in shown
        await pilot.press("z")
        await wait_until(pilot, lambda: "uvicorn" not in screen_text(app), "facts alone")
        await pilot.press("enter")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen), "inspected")


async def test_rules_and_files_are_shown_with_their_paths_and_never_as_markup() -> None:
    async with driven() as (app, pilot, _):
        app.command("/rules")
        await wait_until(pilot, lambda: isinstance(app.screen, FilesScreen) and "rules.md" in screen_text(app), "files")
        shown = screen_text(app)
        assert "/p/.agent-memory/rules.md" in shown
        assert "- tests first [/x]" in shown
        assert "2 parts · 18 tokens" in shown


async def test_sharing_asks_about_what_looks_personal() -> None:
    session = FakeSession()
    session.concerns = {"AGENTS.md:7": "e-mail address: ma…@example.org"}
    async with driven(session) as (app, pilot, _):
        app.command("/share")
        await wait_until(
            pilot, lambda: isinstance(app.screen, SharingScreen) and "Private." in screen_text(app), "state"
        )
        await pilot.press("s")
        await wait_until(pilot, lambda: isinstance(app.screen, Question), "asked")
        assert "AGENTS.md:7" in screen_text(app)
        await answer(app, pilot, "no")
        assert session.mode == "private"
        await answer(app, pilot, "share")
        await wait_until(pilot, lambda: session.mode == "shared", "shared")
        await wait_until(pilot, lambda: "Shared." in screen_text(app), "said so")


async def test_the_remembered_screen_counts_notes_and_says_who_may_see_them() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("f5")
        await _paused(pilot, app, "notes about you 2 of 40 · private")
        await pilot.press("down", "h")
        await answer(app, pilot, "never")
        await wait_until(pilot, lambda: any(call[0] == "set_expiry" for call in session.calls), "set")


# -- inspector ---------------------------------------------------------------------------------------------------


async def inspected(app: TuiAgentApp, pilot: Pilot[Any], ref: str) -> InspectorScreen:
    app.push_screen(InspectorScreen(ref))
    await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen) and app.screen.item, "inspected")
    await pilot.pause()
    return cast("InspectorScreen", app.screen)


async def test_the_inspector_promotes_a_fact_and_takes_that_back_with_the_same_key() -> None:
    async with driven() as (app, pilot, session):
        screen = await inspected(app, pilot, "fact:f1")
        await pilot.press("P")
        await wait_until(pilot, lambda: screen.item and "demote" in screen.item.actions, "promoted")
        await pilot.press("P")
        await wait_until(pilot, lambda: ("demote", "fact:f1") in session.calls, "demoted")


async def test_undoing_a_correction_and_deleting_the_chain_are_two_verbs() -> None:
    session = FakeSession()
    first = session.facts[0]
    history = ("2026-11-02  Prefers pnpm (this one)", "2026-06-02  Prefers npm")
    session.facts[0] = replace(first, history=history, actions=(*first.actions, "undo_correction"))
    async with driven(session) as (app, pilot, _):
        await inspected(app, pilot, "fact:f1")
        await pilot.press("D")
        await wait_until(pilot, lambda: isinstance(app.screen, Question), "asked")
        shown = screen_text(app)
        assert "Delete the whole chain forever?" in shown
        assert "1 statement" in shown
        assert "undo the correction (U" in shown
        await wait_until(pilot, lambda: isinstance(app.focused, Input), "ready")
        await pilot.press("escape")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen), "back")
        await pilot.press("U")
        await wait_until(pilot, lambda: ("undo_correction", "fact:f1") in session.calls, "undone")
        assert not any(call[0] == "delete_forever" for call in session.calls)


async def test_a_fact_without_a_correction_has_no_key_to_undo_one() -> None:
    async with driven() as (app, pilot, session):
        await inspected(app, pilot, "fact:f1")
        await pilot.press("U")
        assert not any(call[0] == "undo_correction" for call in session.calls)
        assert "remembered" in screen_text(app)  # the log of its changes


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_every_key_of_a_fact_is_written_in_the_inspector(size: tuple[int, int]) -> None:
    async with driven(size=size) as (app, pilot, _):
        await inspected(app, pilot, "fact:f1")
        shown = screen_text(app)
        for hint in ("c confirm", "e correct", "x expire", "h holds until", "P all projects", "D delete forever"):
            assert hint in shown
        assert not notices(app)
