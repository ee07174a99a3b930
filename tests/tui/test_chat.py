"""A turn on screen, connecting, failing, stopping, quitting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from conftest import WIDE, conversation, driven, notices, screen_text, wait_until
from fake_session import FakeSession, Wait, rich_turn

from tui_agent.agent.events import (
    ContextUsage,
    Event,
    FileChanged,
    MemoryChanged,
    Notice,
    PhaseChanged,
    SaveMissing,
    TextDelta,
    TextReplaced,
    ToolFinished,
    TurnFinished,
)
from tui_agent.agent.views import ServerStatus
from tui_agent.tui.app import TuiAgentApp
from tui_agent.tui.widgets.bars import Status, StatusLines


async def test_the_first_paint_does_not_wait_for_the_session() -> None:
    opened = asyncio.Event()
    session = FakeSession()

    async def slow() -> FakeSession:
        await opened.wait()
        return session

    app = TuiAgentApp(slow, project_name="parcel-service")
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: "connecting" in screen_text(app))
        assert "parcel-service" in screen_text(app)
        app.chat.composer.editor.insert("typed before it is there")
        await pilot.press("enter")
        await wait_until(pilot, lambda: "queued  typed before" in screen_text(app))
        opened.set()
        await wait_until(pilot, lambda: ("send", "typed before it is there") in session.calls)


async def test_a_session_that_cannot_open_says_why_and_enter_tries_again() -> None:
    session = FakeSession()
    tries = []

    async def factory() -> FakeSession:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("memory.db is locked by [another] program")
        return session

    app = TuiAgentApp(factory, project_name="p")
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: "memory.db is locked by [another] program." in conversation(app))
        assert "not connected" in screen_text(app)
        app.chat.composer.editor.insert("hello")
        await pilot.press("enter")
        await wait_until(pilot, lambda: ("send", "hello") in session.calls)


async def test_a_turn_shows_every_kind_of_event() -> None:
    wait = Wait()
    session = FakeSession()
    session.scripts = [rich_turn(wait)]
    async with driven(session) as (app, pilot, _):
        app.chat.send("Add count_attempts")
        await wait_until(pilot, lambda: "generating" in screen_text(app))
        await wait_until(pilot, lambda: "not confirmed since." in screen_text(app))
        shown = screen_text(app)
        assert "Add count_attempts" in conversation(app)
        assert "✓ lines 1-40" in shown
        assert "✗ outside the memory" in shown
        assert "from text" in shown
        assert "recalled 3 · a1f 0.81 · 7c2 0.64 · 9de 0.41 · 2 near misses" in shown
        assert "3.1k of 8k (system 910 rules 208 recalled 312 hot 604 history 1.1k)" in shown
        assert "esc stop" in shown
        wait.go.set()
        await wait_until(pilot, lambda: not app.chat.running)
        await wait_until(pilot, lambda: "○ ready · 38 tok/s" in screen_text(app))
        assert "The answer says it saved, but nothing was saved." in screen_text(app)


async def test_one_key_saves_the_sentence_that_was_not_saved() -> None:
    session = FakeSession()
    missing = SaveMissing("", "My name is [Kacper]", claimed=False, target="knowledge/user.md")
    session.scripts = [[TextDelta("Hello."), missing]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("My name is [Kacper]")
        await wait_until(pilot, lambda: not app.chat.running)
        assert "Nothing was saved. ctrl+s saves: “My name is [Kacper]”" in conversation(app)
        await pilot.press("ctrl+s")
        await wait_until(
            pilot, lambda: ("save_sentence", "", "My name is [Kacper]", "knowledge/user.md") in session.calls
        )
        await wait_until(pilot, lambda: "✓ Saved “My name is [Kacper]”" in conversation(app))
        await pilot.press("ctrl+s")
        await wait_until(pilot, lambda: any("nothing to save" in words for words in notices(app)))
        assert sum(call[0] == "save_sentence" for call in session.calls) == 1


async def test_s_saves_from_the_conversation() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta("Hello."), SaveMissing("", "I like tea", claimed=False)]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("I like tea")
        await wait_until(pilot, lambda: not app.chat.running)
        app.chat.transcript.focus()
        await wait_until(pilot, lambda: "s saves: “I like tea”" in screen_text(app))
        await pilot.press("s")
        await wait_until(pilot, lambda: any(call[0] == "save_sentence" for call in session.calls))


async def test_escape_stops_at_once_and_keeps_what_was_said() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta("The beginning"), Wait(), TextDelta("never")]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("go")
        await wait_until(pilot, lambda: "The beginning" in screen_text(app))
        await pilot.press("f2", "escape")
        await wait_until(pilot, lambda: not app.chat.running)
        shown = screen_text(app)
        assert ("stop",) in session.calls
        assert "The beginning" in shown
        assert "◌ stopped here" in shown
        assert "never" not in shown


async def test_a_failed_turn_shows_the_sentence_and_the_question_comes_back() -> None:
    session = FakeSession()
    failed = TurnFinished("failed", error="The model [x] is missing. Run `ollama pull x`.", error_kind="model_missing")
    session.scripts = [[failed]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("why?")
        await wait_until(pilot, lambda: not app.chat.running)
        assert "✗ The model [x] is missing. Run `ollama pull x`." in screen_text(app)
        app.chat.transcript.focus()
        await wait_until(pilot, lambda: "r ask again" in screen_text(app))
        await pilot.press("r")
        assert app.chat.composer.text == "why?"


async def test_an_error_in_the_program_ends_the_turn_with_a_sentence() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta("half"), RuntimeError("[/bad] thing")]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("go")
        await wait_until(pilot, lambda: not app.chat.running)
        assert "[/bad] thing." in screen_text(app)
        app.chat.send("next")
        await wait_until(pilot, lambda: "Answer to next." in screen_text(app))


async def test_text_that_turned_out_to_be_a_call_is_replaced() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta('{"name": "remember"'), TextReplaced(""), TextDelta("Done.")]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("go")
        await wait_until(pilot, lambda: not app.chat.running)
        assert '{"name"' not in screen_text(app)
        assert "Done." in screen_text(app)


async def test_a_tool_result_without_a_start_is_shown_all_the_same() -> None:
    session = FakeSession()
    session.scripts = [[ToolFinished("zz", "recall", True, "1 hit", "1 hit"), TextDelta("ok")]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("go")
        await wait_until(pilot, lambda: not app.chat.running)
        assert "recall()  ✓ 1 hit" in screen_text(app)


async def test_background_events_appear_as_lines_and_notices() -> None:
    async with driven() as (app, pilot, session):
        session.emit(FileChanged(".agent-memory/rules.md", "+ tests [/first]"))
        session.emit(Notice("warning", "No embedder: words only.", key="embedder"))
        session.emit(Notice("warning", "No embedder: words only.", key="embedder"))
        session.emit(MemoryChanged("saved", "fact", "f7", "Prefers [tea]", undo=True))
        await wait_until(pilot, lambda: "No embedder: words only." in screen_text(app))
        shown = screen_text(app)
        assert "± .agent-memory/rules.md  + tests [/first]" in shown
        assert "from the next message" in shown
        assert shown.count("No embedder: words only.") == 1
        assert any("Saved: Prefers [tea] · alt+u undo" in words for words in notices(app))


async def test_a_refused_text_that_is_not_shown_leaves_no_empty_quotes() -> None:
    session = FakeSession()
    refused = MemoryChanged("refused", "fact", "", "", "It holds a password.", "knowledge/user.md")
    session.scripts = [[TextDelta("Noted."), refused, TurnFinished("answered", "m1", "Noted.")]]
    async with driven(session) as (app, pilot, _):
        await pilot.press("x", "enter")
        line = "memory: refused a line in knowledge/user.md · It holds a password."
        await wait_until(pilot, lambda: line in screen_text(app))


async def test_what_a_key_did_is_told_once() -> None:
    async with driven() as (app, pilot, session):

        async def announced(ref: str) -> object:
            session.emit(MemoryChanged("pinned", "fact", "f1", "x"))
            return await FakeSession.pin(session, ref)

        session.pin = announced  # type: ignore[method-assign, assignment]
        await pilot.press("alt+up", "f4", "p")
        await wait_until(pilot, lambda: notices(app))
        await pilot.pause()
        assert notices(app) == ["Pinned. · alt+u undo"]


async def test_problems_of_the_start_are_shown() -> None:
    session = FakeSession()
    session.problems = (Notice("error", "config.yaml:3: unknown key `modle`. Did you mean model?"),)
    async with driven(session) as (app, pilot, _):
        await wait_until(pilot, lambda: "config.yaml:3: unknown key `modle`." in screen_text(app))


async def test_what_is_degraded_stands_in_the_status_line() -> None:
    session = FakeSession()
    session.server = replace(session.server, degraded=("no embedder: words only",), local=False)
    async with driven(session) as (app, _, _session):
        assert "▲ no embedder: words only" in screen_text(app)
        assert "leaves this machine" in screen_text(app)


async def test_no_timer_runs_while_idle_and_one_while_busy() -> None:
    wait = Wait()
    session = FakeSession()
    session.scripts = [[PhaseChanged("loading", "loading model"), wait]]
    async with driven(session) as (app, pilot, _):
        status = app.chat.status
        assert not status.ticking
        assert app.chat._frame is None
        app.chat.send("go")
        await wait_until(pilot, lambda: "loading model" in screen_text(app))
        assert status.ticking
        wait.go.set()
        await wait_until(pilot, lambda: not app.chat.running)
        assert not status.ticking
        assert app.chat._frame is None
        assert not app.chat.composer.editor.cursor_blink


def test_a_phase_shows_its_age_and_the_window_warns_when_it_is_tight() -> None:
    server = ServerStatus("u", "m", num_ctx=8192)
    status = Status("loading", "", since=10.0, server=server, connected=True, usage=ContextUsage(7000, 8192, {}))
    line = StatusLines(status, 22.0).lines(120)[0]
    assert line.plain.startswith("● loading model 12 s")
    assert "7.0k of 8k" in line.plain
    assert any(span.style == "$warning" for span in line.spans)


async def test_ctrl_c_twice_quits_and_once_only_says_so() -> None:
    session = FakeSession()
    async with driven(session) as (app, pilot, _):
        app.chat.composer.editor.insert("keep me")
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: any("again to quit" in words for words in notices(app)))
        assert not session.closed
        await pilot.press("ctrl+c")
        await wait_until(pilot, lambda: session.closed)
    assert session.draft == "keep me"


async def test_quitting_twice_does_not_wait_for_the_session() -> None:
    session = FakeSession()
    never = asyncio.Event()

    async def stuck() -> None:
        await never.wait()

    session.close = stuck  # type: ignore[method-assign]
    async with driven(session) as (app, pilot, _):
        await pilot.press("ctrl+q")
        await wait_until(pilot, lambda: "closing" in screen_text(app))
        await pilot.press("ctrl+q")
        await wait_until(pilot, lambda: not app.is_running or app._exit)


async def test_goal_and_model_stand_in_the_header() -> None:
    async with driven() as (app, pilot, _session):
        first = screen_text(app).splitlines()[0]
        assert "parcel-service ── qwen2.5-coder:7b ── goal: count attempts in retry.py" in first
        app.switch_model("gemma3:4b")
        await wait_until(pilot, lambda: "gemma3:4b" in screen_text(app).splitlines()[0])


async def test_a_new_session_starts_empty_and_an_old_one_shows_its_conversation() -> None:
    async with driven() as (app, pilot, _session):
        app.switch("new")
        await wait_until(pilot, lambda: "A conversation in parcel-service" in screen_text(app))
        app.switch("s0")
        await wait_until(pilot, lambda: "Why did we drop direct SQL" in screen_text(app))


async def test_sessions_are_not_switched_under_a_running_answer() -> None:
    wait = Wait()
    session = FakeSession()
    session.scripts = [[wait]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("go")
        await wait_until(pilot, lambda: session.busy)
        app.switch("new")
        await wait_until(pilot, lambda: any("esc stops it" in words for words in notices(app)))
        assert ("switch", "new") not in session.calls
        wait.go.set()


@pytest.mark.parametrize("theme", ["ink", "paper", "contrast", "terminal", "nord"])
async def test_every_theme_draws_the_chat(theme: str) -> None:
    async with driven(theme=theme) as (app, _, _session):
        assert app.theme == theme
        assert "retry_it lives" in screen_text(app)


async def test_an_unknown_theme_is_told_and_the_default_used() -> None:
    async with driven(theme="nope") as (app, pilot, _):
        await wait_until(pilot, lambda: "There is no theme nope" in screen_text(app))
        assert app.theme == "ink"


async def test_choosing_a_theme_is_reported_and_the_start_is_not() -> None:
    chosen: list[str] = []
    async with driven(on_theme=chosen.append) as (app, pilot, _):
        assert chosen == []
        await pilot.press("f9")
        assert chosen == [app.theme]
        assert app.command("/theme paper")
        assert chosen[-1] == "paper"


async def test_without_colour_the_screen_is_legible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with driven() as (app, pilot, _):
        await pilot.press("f2")
        assert app.no_color
        assert "◆" in screen_text(app)


async def test_a_keymap_of_the_user_moves_keys_and_their_hints() -> None:
    async with driven(keymap={"hot.pin": "x", "app.nothing": "y"}) as (app, pilot, session):
        await wait_until(pilot, lambda: "unknown action: app.nothing" in screen_text(app))
        await pilot.press("f2")
        await wait_until(pilot, lambda: "x pin" in screen_text(app))
        await pilot.press("p")
        await pilot.press("x")
        await wait_until(pilot, lambda: ("unpin", "hot:h0") in session.calls)
        assert sum(call[0] in ("pin", "unpin") for call in session.calls) == 1


async def test_a_message_that_could_not_be_saved_comes_back_into_the_editor() -> None:
    session = FakeSession()

    async def full(text: str, *, masked: object = ()) -> AsyncIterator[Event]:
        yield TurnFinished("failed", error="The disk is full: memory.db could not be written.")

    session.send = full  # type: ignore[method-assign]
    async with driven(session) as (app, pilot, _):
        app.chat.composer.editor.insert("my long prompt")
        await pilot.press("enter")
        await wait_until(pilot, lambda: "The disk is full" in conversation(app))
        await wait_until(pilot, lambda: app.chat.composer.text == "my long prompt")
