"""What was found in conversations: one quiet line in the chat, and a page with the details."""

from __future__ import annotations

from conftest import conversation, driven, screen_text, wait_until
from fake_session import FakeSession, Wait

from tui_agent.agent.events import Learned, LearnedItem, PhaseChanged, TextDelta

FOUND = Learned(
    "s1",
    "Kept 1 fact (12 of 4000 tokens), 1 refused.",
    (
        LearnedItem("kept", "We use [Redis] Streams.", "", "f1"),
        LearnedItem("refused", "The team has 8 people.", "That is a state of the world."),
    ),
    333.3,
)


async def test_a_finding_is_one_line_and_its_page_says_why() -> None:
    session = FakeSession()
    session.found = [("the job queue", FOUND)]
    async with driven(session) as (app, pilot, _):
        session.emit(FOUND)
        await wait_until(pilot, lambda: "Kept 1 fact (12 of 4000 tokens), 1 refused. /learned" in conversation(app))
        app.command("/learned")
        await wait_until(pilot, lambda: "the job queue" in screen_text(app))
        shown = screen_text(app)
        assert "That is 333 times smaller." in shown
        assert "We use [Redis] Streams." in shown
        assert "That is a state of the world." in shown
        await pilot.press("escape")
        await wait_until(pilot, lambda: "the job queue" not in screen_text(app))


async def test_the_page_without_findings_says_when_there_will_be_some() -> None:
    async with driven(FakeSession()) as (app, pilot, _):
        app.command("/learned")
        await wait_until(pilot, lambda: "Nothing was found since the app was opened" in screen_text(app))


async def test_a_message_written_meanwhile_hurries_what_follows_the_answer() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta("Nice."), PhaseChanged("checking"), Wait()], [TextDelta("Four.")]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("I prefer pnpm")
        await wait_until(pilot, lambda: "checking what to save" in screen_text(app))
        app.chat.focus_editor()
        await pilot.press(*"hi", "enter")
        await wait_until(pilot, lambda: ("hurry",) in session.calls)
