"""What opens over the chat: inspector, why, remembered, sessions, models, prompt, help, palette, questions."""

from __future__ import annotations

import pytest
from conftest import MEDIUM, driven, notices, screen_text, wait_until
from fake_session import RECALL, FakeSession
from textual.command import CommandPalette
from textual.widgets import Input

from tui_agent.memory.types import Term
from tui_agent.tui.actions import ACTIONS
from tui_agent.tui.commands import COMMANDS
from tui_agent.tui.keymap import Keymap
from tui_agent.tui.screens import panel
from tui_agent.tui.screens.inspector import InspectorScreen, score_lines
from tui_agent.tui.screens.lists import FoundScreen, RememberedScreen, SessionsScreen
from tui_agent.tui.screens.models import ModelsScreen
from tui_agent.tui.screens.pages import ContextScreen, HelpLines
from tui_agent.tui.screens.panel import Question
from tui_agent.tui.screens.why import WhyScreen

FACT = "fact:01kf3m9zz00000000000000a1f"


@pytest.fixture(autouse=True)
def quick_questions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    delay = 60 if "first_moment" in request.node.name else 0.001
    monkeypatch.setattr(panel, "QUESTION_DELAY_S", delay)


async def test_the_inspector_shows_text_proof_score_dates_and_history() -> None:
    async with driven() as (app, pilot, _):
        app.push_screen(InspectorScreen(FACT))
        await wait_until(pilot, lambda: "Data access goes through repositories" in screen_text(app))
        shown = screen_text(app)
        assert "“let's hide all SQL behind repositories”" in shown
        assert "from session of 2026-08-15, message 12" in shown
        assert "words “SQL” and “controllers”, same subject" in shown
        assert "+0.440" in shown
        assert "0.810" in shown
        assert "2026-06-02 We write SQL in controllers" in shown
        assert "D delete forever" in shown


def test_score_terms_add_up_to_the_score() -> None:
    terms = [Term("words", 0.44), Term("meaning", 0.29, "cosine 0.58"), Term("fresh", -0.08)]
    lines = [line.plain for line in score_lines(terms, None, 90)]
    assert "+0.440" in lines[0]
    assert "cosine 0.58" in lines[1]
    assert "-0.080" in lines[2]
    assert lines[-1].strip().endswith("0.650")
    assert sum(item.score for item in RECALL.items) == pytest.approx(
        sum(term.value for item in RECALL.items for term in item.terms)
    )


@pytest.mark.parametrize(("key", "verb"), [("p", "pin"), ("c", "confirm"), ("x", "expire"), ("f", "put_away")])
async def test_keys_of_the_inspector_act_on_its_item(key: str, verb: str) -> None:
    async with driven() as (app, pilot, session):
        app.push_screen(InspectorScreen("fact:f2"))
        await wait_until(pilot, lambda: "Name: Kacper" in screen_text(app))
        await pilot.press(key)
        await wait_until(pilot, lambda: (verb, "fact:f2") in session.calls)


async def test_keys_an_item_does_not_have_do_nothing_and_are_not_shown() -> None:
    async with driven() as (app, pilot, session):
        app.push_screen(InspectorScreen("cold:c1"))
        await wait_until(pilot, lambda: "bring back" in screen_text(app))
        assert "delete forever" not in screen_text(app)
        await pilot.press("D", "x", "p", "c")
        assert not isinstance(app.screen, Question)
        assert {call[0] for call in session.calls} <= {"start", "recall_of", "inspect"}
        await pilot.press("r")
        await wait_until(pilot, lambda: ("bring_back", "cold:c1") in session.calls)
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_correcting_asks_for_the_new_text() -> None:
    async with driven() as (app, pilot, session):
        app.push_screen(InspectorScreen("fact:f2"))
        await wait_until(pilot, lambda: "Name: Kacper" in screen_text(app))
        await pilot.press("e")
        await wait_until(pilot, lambda: isinstance(app.focused, Input))
        assert isinstance(app.focused, Input)
        app.focused.value = "Name: Kasper [K]"
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("correct", "fact:f2", "Name: Kasper [K]") in session.calls)
        await wait_until(pilot, lambda: "Name: Kasper [K]" in screen_text(app))


async def test_deleting_forever_wants_the_word_typed() -> None:
    async with driven() as (app, pilot, session):
        app.push_screen(InspectorScreen("fact:f2"))
        await wait_until(pilot, lambda: "Name: Kacper" in screen_text(app))
        await pilot.press("D")
        await wait_until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press("y", "enter")
        await wait_until(pilot, lambda: "not done: type delete" in screen_text(app))
        assert not any(call[0] == "delete_forever" for call in session.calls)
        assert isinstance(app.focused, Input)
        app.focused.value = "delete"
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("delete_forever", "fact:f2") in session.calls)
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_a_question_ignores_keys_of_the_first_moment() -> None:
    async with driven() as (app, pilot, _):
        answers: list[str | None] = []
        app.push_screen(Question("Delete forever?", "It is gone then.", must="delete"), answers.append)
        await pilot.pause()
        await pilot.press("escape", "enter", "y")
        assert isinstance(app.screen, Question)
        assert answers == []
        assert panel.QUESTION_DELAY_S == 60
        app.screen._open()  # what the timer does
        await wait_until(pilot, lambda: isinstance(app.focused, Input))
        assert app.screen.query_one(Input).value == ""
        await pilot.press("escape")
        await wait_until(pilot, lambda: answers == [None])


async def test_why_shows_every_score_of_an_answer() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("alt+up", "alt+w")
        await wait_until(pilot, lambda: isinstance(app.screen, WhyScreen))
        shown = screen_text(app)
        assert "asked  Why did we drop direct SQL in the controllers?" in shown
        assert "threshold 0.30 · words · meaning · 6 ms · rules 9f31c2aa" in shown
        assert "0.810" in shown
        assert "esc close" in shown
        app.screen.list.scroll_end(animate=False)
        await wait_until(pilot, lambda: "We use npm.  replaced by a newer one" in screen_text(app))


async def test_remembered_lists_everything_and_what_waits() -> None:
    async with driven() as (app, pilot, session):
        assert "1 to review" in screen_text(app)
        await pilot.press("f5")
        await wait_until(pilot, lambda: "The retry limit is 5" in screen_text(app))
        shown = screen_text(app)
        for text in (
            "Prefers pnpm",
            "Name: Kacper",
            "W module płatności",
            "the model's own idea",
            "4 items · 1 to review",
        ):
            assert text in shown
        await pilot.press("a")
        await wait_until(pilot, lambda: ("approve", "q1") in session.calls)
        await wait_until(pilot, lambda: "5 items" in screen_text(app))
        await pilot.press("f5")
        await wait_until(pilot, lambda: app.screen is app.chat)
        assert "to review" not in screen_text(app)


async def test_remembered_rejects_confirms_searches_and_inspects() -> None:
    async with driven(size=MEDIUM) as (app, pilot, session):
        app.command("/memory")
        await wait_until(pilot, lambda: "The retry limit is 5" in screen_text(app))
        await pilot.press("n")
        await wait_until(pilot, lambda: ("reject", "q1") in session.calls)
        await wait_until(pilot, lambda: "The retry limit" not in screen_text(app))
        await pilot.press("home", "c")
        await wait_until(pilot, lambda: ("confirm", "fact:f1") in session.calls)
        await pilot.press("slash", *"kacper")
        await wait_until(pilot, lambda: "Prefers pnpm" not in screen_text(app))
        await pilot.press("enter", "enter")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen))
        await pilot.press("escape", "escape")
        assert isinstance(app.screen, RememberedScreen)
        await wait_until(pilot, lambda: "Prefers pnpm" in screen_text(app))
        await pilot.press("escape")
        assert app.screen is app.chat


async def test_an_empty_memory_says_how_it_fills() -> None:
    async with driven(FakeSession(empty=True)) as (app, pilot, _):
        await pilot.press("f5")
        await wait_until(pilot, lambda: "Say something about you or the project" in screen_text(app))


async def test_a_session_is_chosen_or_begun() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("ctrl+l")
        await wait_until(pilot, lambda: "Где живут миграции" in screen_text(app))
        assert "22 messages" in screen_text(app)
        await pilot.press("j", "enter")
        await wait_until(pilot, lambda: ("switch", "s0") in session.calls)
        await pilot.press("ctrl+l")
        await wait_until(pilot, lambda: isinstance(app.screen, SessionsScreen))
        await pilot.press("n")
        await wait_until(pilot, lambda: ("switch", "new") in session.calls)


async def test_a_model_is_chosen() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "gemma3:4b" in screen_text(app))
        mine, other = (line for line in screen_text(app).splitlines() if "Q4_K_M" in line)
        assert "7.6B Q4_K_M  4.7 GB   window 32k  tools" in mine
        assert "no tools" in other
        assert isinstance(app.screen, ModelsScreen)
        await pilot.press("j", "enter")
        await wait_until(pilot, lambda: ("switch_model", "gemma3:4b") in session.calls)


async def test_models_of_a_dead_server_are_an_error_notice_not_a_crash() -> None:
    session = FakeSession()

    async def down() -> list[object]:
        raise ConnectionError("No server at http://127.0.0.1:11434 [refused]")

    session.models = down  # type: ignore[method-assign, assignment]
    async with driven(session) as (app, pilot, _):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: any("[refused]" in words for words in notices(app)))


async def test_the_prompt_is_shown_part_by_part_and_can_be_rebuilt() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("f6")
        await wait_until(pilot, lambda: isinstance(app.screen, ContextScreen) and "3,134 of 8,192" in screen_text(app))
        shown = screen_text(app)
        assert "- no SQL in controllers [/x]" in shown
        assert "kept for the answer" in shown
        await pilot.press("R")
        await wait_until(pilot, lambda: ("rebuild_prompt",) in session.calls)


def test_help_lists_every_action_and_every_command() -> None:
    shown = "\n".join(line.plain for line in HelpLines(Keymap()).lines(90))
    for action in ACTIONS:
        assert action.help in " ".join(shown.split()), action.id
    for command in COMMANDS:
        assert f"/{command.name}" in shown


async def test_f1_opens_and_closes_help() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("f1")
        await wait_until(pilot, lambda: "Keys and commands" in screen_text(app))
        await pilot.press("f1")
        await wait_until(pilot, lambda: app.screen is app.chat)


async def test_the_palette_finds_and_runs_an_action() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("ctrl+p")
        await wait_until(pilot, lambda: CommandPalette.is_open(app))
        app.screen.query_one(Input).value = "put the item away"
        await wait_until(pilot, lambda: "Hot: Put the item away" in screen_text(app))
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("put_away", "hot:h0") in session.calls)


async def test_what_was_said_is_searched() -> None:
    async with driven() as (app, pilot, _):
        app.command("/search payments")
        await wait_until(pilot, lambda: isinstance(app.screen, FoundScreen) and "3 messages" in screen_text(app))
        await pilot.press("enter")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen))
