"""The conversation: following, folding, selecting, copying, and two hundred turns."""

from __future__ import annotations

import base64

import pytest
from conftest import MEDIUM, driven, notices, screen_text, wait_until
from fake_session import ANSWER, RECALL, FakeSession, Wait, history, rich_turn

from tui_agent.agent.events import TextDelta
from tui_agent.agent.views import TranscriptEntry
from tui_agent.tui.answer import AnswerEntry
from tui_agent.tui.app import TuiAgentApp


def long_history(turns: int) -> list[TranscriptEntry]:
    entries = []
    for number in range(turns):
        entries.append(TranscriptEntry(f"q{number}", "user", f"question {number}", "2026-11-30 08:00:00"))
        entries.append(TranscriptEntry(f"a{number}", "assistant", f"{ANSWER}\n\nend {number}", "2026-11-30 08:01:00"))
    return entries


def selected(app: TuiAgentApp) -> AnswerEntry:
    entry = app.chat.transcript.selected
    assert entry is not None
    return entry


async def test_a_long_session_opens_at_its_end_without_a_widget_per_answer() -> None:
    async with driven(FakeSession(long_history(200))) as (app, pilot, _):
        assert "end 199" in screen_text(app)
        assert len(app.chat.query("*")) < 80
        await wait_until(pilot, lambda: all(app.chat.transcript._settled))
        assert "end 199" in screen_text(app)
        assert app.chat.transcript.following


async def test_scrolling_away_stops_following_and_coming_back_starts_it_again() -> None:
    async with driven(FakeSession(long_history(20))) as (app, pilot, session):
        transcript = app.chat.transcript
        await wait_until(pilot, lambda: all(transcript._settled))
        transcript.scroll_to(y=10, animate=False)
        await wait_until(pilot, lambda: not transcript.following)
        place = transcript.scroll_offset.y
        session.emit_later(TextDelta("late"))
        await wait_until(pilot, lambda: transcript.unseen)
        assert transcript.scroll_offset.y == place
        assert "↓ new" in screen_text(app)
        await pilot.press("alt+end")
        await wait_until(pilot, lambda: transcript.following)
        assert "↓ new" not in screen_text(app)
        assert transcript.scroll_offset.y == transcript.max_scroll_y
        transcript.scroll_to(y=10, animate=False)
        await wait_until(pilot, lambda: not transcript.following)
        transcript.scroll_to(y=transcript.max_scroll_y, animate=False)
        await wait_until(pilot, lambda: transcript.following)


async def test_a_wheel_tick_and_back_follows_again() -> None:
    async with driven(FakeSession(long_history(10))) as (app, pilot, _):
        transcript = app.chat.transcript
        await wait_until(pilot, lambda: all(transcript._settled))
        transcript.action_scroll_up()
        await wait_until(pilot, lambda: not transcript.following)
        transcript.action_scroll_down()
        await wait_until(pilot, lambda: transcript.following)


async def test_while_scrolled_away_streamed_text_never_moves_the_view() -> None:
    wait = Wait()
    session = FakeSession(long_history(10))
    session.scripts = [[TextDelta("first\n\n"), wait, *[TextDelta(f"line {n}\n\n") for n in range(60)]]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("go")
        await wait_until(pilot, lambda: app.chat.answer is not None)
        app.chat.transcript.scroll_to(y=5, animate=False)
        await wait_until(pilot, lambda: not app.chat.transcript.following)
        place = app.chat.transcript.scroll_offset.y
        wait.go.set()
        await wait_until(pilot, lambda: not app.chat.running)
        assert app.chat.transcript.scroll_offset.y == place


async def test_a_resize_keeps_the_end_in_view() -> None:
    async with driven(FakeSession(long_history(30))) as (app, pilot, _):
        for width, height in ((100, 30), (70, 20), (140, 40)):
            await pilot.resize_terminal(width, height)
            await wait_until(pilot, lambda: all(app.chat.transcript._settled))
            await wait_until(pilot, lambda: "end 29" in screen_text(app), f"end at {width}")


async def test_selecting_an_older_answer_shows_what_fed_it() -> None:
    async with driven() as (app, pilot, _):
        assert app.chat.recalled.record != RECALL
        await pilot.press("alt+up")
        await wait_until(pilot, lambda: app.chat.recalled.record == RECALL)
        assert "Data access goes through repositories" in screen_text(app)
        assert "for the answer of 09:41" in screen_text(app)
        await pilot.press("alt+down")
        await wait_until(pilot, lambda: app.chat.recalled.record != RECALL)


async def test_j_and_k_walk_through_the_answers() -> None:
    async with driven() as (app, pilot, _):
        app.chat.transcript.focus()
        await pilot.press("k")
        assert selected(app).message_id == "m2"
        await pilot.press("j")
        assert selected(app).message_id == "m4"
        await pilot.press("g")
        assert selected(app).message_id == "m2"
        await pilot.press("G")
        assert selected(app).message_id == "m4"
        assert app.chat.transcript.following


async def test_enter_unfolds_tool_calls_with_arguments_and_result() -> None:
    async with driven() as (app, pilot, _):
        app.chat.transcript.focus()
        await pilot.press("k")
        assert "class OrderRepository:\n" not in screen_text(app)
        await pilot.press("enter")
        await wait_until(pilot, lambda: '"path": "src/orders/repository.py"' in screen_text(app))
        assert "1. Data access goes through" in screen_text(app)
        await pilot.press("space")
        await wait_until(pilot, lambda: '"path"' not in screen_text(app))


async def test_a_click_unfolds_one_tool_call() -> None:
    async with driven() as (app, pilot, _):
        transcript = app.chat.transcript
        lines = screen_text(app).splitlines()
        row = next(index for index, line in enumerate(lines) if "remember(" in line)
        await pilot.click("#transcript", offset=(4, row - transcript.region.y))
        await wait_until(pilot, lambda: '"text": "we write tests first in payments"' in screen_text(app))


async def test_thinking_is_folded_with_a_count() -> None:
    session = FakeSession()
    session.scripts = [rich_turn()]
    async with driven(session) as (app, pilot, _):
        app.chat.send("go")
        await wait_until(pilot, lambda: not app.chat.running)
        assert "thought · 10 words" in screen_text(app)
        assert "I look at retry.py first." not in screen_text(app)
        app.chat.transcript.focus()
        await pilot.press("enter")
        await wait_until(pilot, lambda: "I look at retry.py first." in screen_text(app))


def copied(app: TuiAgentApp, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that reach the terminal's clipboard."""
    texts: list[str] = []
    driver = app._driver
    assert driver is not None
    real = driver.write

    def write(data: str) -> None:
        if data.startswith("\x1b]52;c;"):
            texts.append(base64.b64decode(data[7:-1]).decode())
        real(data)

    monkeypatch.setattr(driver, "write", write)
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return texts


async def test_y_copies_the_answer_and_a_digit_a_code_block(monkeypatch: pytest.MonkeyPatch) -> None:
    async with driven() as (app, pilot, _):
        texts = copied(app, monkeypatch)
        app.chat.transcript.focus()
        await pilot.press("k", "y")
        await wait_until(pilot, lambda: texts)
        assert texts == [ANSWER]
        await pilot.press("1")
        await wait_until(pilot, lambda: len(texts) == 2)
        assert texts[1].startswith("class OrderRepository(IRepository[Order]):\n")
        assert "  " not in texts[1].splitlines()[0]
        await wait_until(pilot, lambda: any("code block 1" in words for words in notices(app)))


async def test_ctrl_c_copies_what_was_selected_with_the_mouse(monkeypatch: pytest.MonkeyPatch) -> None:
    async with driven() as (app, pilot, _):
        texts = copied(app, monkeypatch)
        transcript = app.chat.transcript
        lines = screen_text(app).splitlines()
        row = next(index for index, line in enumerate(lines) if "Noted: in the payments" in line) - transcript.region.y
        await pilot.mouse_down("#transcript", offset=(2, row))
        await pilot.hover("#transcript", offset=(7, row))
        await pilot.mouse_up("#transcript", offset=(7, row))
        assert app.screen.get_selected_text() == "Noted:"
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: texts == ["Noted:"])


async def test_hints_name_the_key_that_works_where_the_focus_is() -> None:
    async with driven() as (app, pilot, _):
        assert "alt+w why" in screen_text(app)
        app.chat.transcript.focus()
        await wait_until(pilot, lambda: "alt+w why" not in screen_text(app))
        assert "w why" in screen_text(app)


async def test_d_shows_what_an_answer_changed() -> None:
    session = FakeSession()
    session.scripts = [rich_turn()]
    async with driven(session) as (app, pilot, _):
        app.chat.send("go")
        await wait_until(pilot, lambda: not app.chat.running)
        assert "saved “tests first in payments” in AGENTS.md" in screen_text(app)
        app.chat.transcript.focus()
        await pilot.press("d")
        await wait_until(pilot, lambda: "uvicorn start-up  weakest" in screen_text(app))


async def test_old_messages_scroll_from_the_editor() -> None:
    async with driven(FakeSession(long_history(10)), MEDIUM) as (app, pilot, _):
        await wait_until(pilot, lambda: all(app.chat.transcript._settled))
        await pilot.press("pageup")
        await wait_until(pilot, lambda: not app.chat.transcript.following)
        await pilot.press("pagedown")
        await wait_until(pilot, lambda: app.chat.transcript.following)
        assert app.chat.composer.editor.has_focus


async def test_partial_and_failed_answers_of_the_history_are_marked() -> None:
    entries = [
        *history()[:1],
        TranscriptEntry("m2", "assistant", "Half", "2026-11-30 09:41:20", status="partial"),
        TranscriptEntry("m3", "user", "Again", "2026-11-30 09:42:20"),
        TranscriptEntry("m4", "assistant", "Long", "2026-11-30 09:42:40", status="cut_off"),
        TranscriptEntry("m5", "user", "Once more", "2026-11-30 09:43:20"),
        TranscriptEntry("m6", "assistant", "", "2026-11-30 09:43:40", status="failed"),
    ]
    async with driven(FakeSession(entries)) as (app, pilot, session):
        shown = screen_text(app)
        assert "stopped here" in shown
        assert "cut off" in shown
        assert "the answer failed" in shown
        app.chat.transcript.focus()
        await pilot.press("r")
        assert app.chat.composer.text == "Once more"
        app.chat.transcript.focus()
        await pilot.press("k", "r")
        await wait_until(pilot, lambda: any(call[0] == "send" for call in session.calls))
        assert next(call for call in session.calls if call[0] == "send")[1].startswith("Continue")
