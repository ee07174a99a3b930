"""The list of models and its downloads, and what the status line says of a stall."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import MEDIUM, NARROW, WIDE, conversation, driven, notices, screen_text, wait_until
from fake_session import MODEL, FakeSession, Wait

from tui_agent.agent.events import Notice, PhaseChanged, TextDelta, TurnFinished
from tui_agent.agent.models import ModelView
from tui_agent.llm.pulling import Layer, PullState
from tui_agent.llm.types import ModelInfo, RunningModel
from tui_agent.tui.screens import panel
from tui_agent.tui.screens.models import ModelRow, ModelsScreen, facts_of
from tui_agent.tui.screens.panel import Question

HALF = PullState(
    "", "pulling aabbccddeeff", (Layer("aabbccddeeff00", 2_000_000_000, 1_000_000_000),), 0.5, 50_000_000.0
)


@pytest.fixture(autouse=True)
def quick_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "QUESTION_DELAY_S", 0.001)


async def test_a_loaded_model_says_where_it_runs_and_when_it_goes() -> None:
    session = FakeSession()
    session.model_desk.running[MODEL] = RunningModel(MODEL, 5_000, 3_100, 8192, "2026-11-30T09:57:00Z")
    session.model_desk.found[MODEL] = "text"
    async with driven(session) as (app, pilot, _):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "loaded" in screen_text(app))
        shown = screen_text(app)
        assert "loaded · 62 % GPU, 38 % CPU · window 8k · unloads in 12 min" in shown
        assert "writes tool calls as text" in shown
        assert "2 models · http://127.0.0.1:11434" in shown


@pytest.mark.parametrize("size", [MEDIUM, NARROW])
async def test_the_list_fits_small_terminals(size: tuple[int, int]) -> None:
    async with driven(size=size) as (app, pilot, _):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "gemma3:4b" in screen_text(app))
        assert isinstance(app.screen, ModelsScreen)


async def test_a_download_shows_its_layers_names_a_stall_and_can_be_stopped() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "gemma3:4b" in screen_text(app))
        assert "stop download" not in screen_text(app)
        await pilot.press("p")
        await wait_until(pilot, lambda: isinstance(app.screen, Question) and app.screen.ready)
        await pilot.press(*"qwen3:4b", "enter")
        await wait_until(pilot, lambda: ("pull", "qwen3:4b") in session.calls)
        session.model_desk.states.put_nowait(HALF)
        await wait_until(pilot, lambda: "50% · 1.0 GB of 2.0 GB · 50.0 MB/s · 20 s left" in screen_text(app))
        assert "aabbccddeeff" in screen_text(app)
        assert "x stop download" in screen_text(app)
        session.model_desk.states.put_nowait(PullState("", HALF.status, HALF.layers, 0.5, None, 31.0))
        await wait_until(pilot, lambda: "no data for 31 s" in screen_text(app))
        await pilot.press("x")
        await wait_until(pilot, lambda: session.model_desk.ended == ["qwen3:4b"])
        await wait_until(pilot, lambda: "stopped; what arrived stays" in screen_text(app))


async def test_a_download_goes_on_when_the_list_is_closed_and_its_end_is_told() -> None:
    async with driven() as (app, pilot, session):
        app.downloads.start("qwen3:4b", session.model_desk.pull)
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "qwen3:4b" in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is app.chat)
        session.model_desk.states.put_nowait(PullState("", "success", (), 1.0, done=True))
        session.model_desk.states.put_nowait(None)
        await wait_until(pilot, lambda: any("qwen3:4b is installed." in words for words in notices(app)))
        assert app.downloads.shown == []


async def test_a_failed_download_stays_in_the_list_with_its_reason() -> None:
    async with driven() as (app, pilot, session):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "gemma3:4b" in screen_text(app))
        app.downloads.start("nope", session.model_desk.pull)
        session.model_desk.states.put_nowait(ValueError("There is no model called nope to download."))
        await wait_until(pilot, lambda: "There is no model called nope" in screen_text(app))
        assert not app.downloads.running("nope")


async def test_unload_and_trying_tools_act_on_the_highlighted_model() -> None:
    session = FakeSession()
    session.model_desk.running["gemma3:4b"] = RunningModel("gemma3:4b", 10, 10, 8192, "2318-01-01T00:00:00Z")
    async with driven(session) as (app, pilot, _):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "stays loaded" in screen_text(app))
        await pilot.press("j", "u")
        await wait_until(pilot, lambda: ("unload", "gemma3:4b") in session.calls)
        await wait_until(pilot, lambda: "stays loaded" not in screen_text(app))
        await pilot.press("t")
        await wait_until(pilot, lambda: ("probe", "gemma3:4b") in session.calls)
        await wait_until(pilot, lambda: any("writes tool calls as text" in words for words in notices(app)))


async def test_only_names_that_contain_the_search_are_shown() -> None:
    async with driven() as (app, pilot, _):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "gemma3:4b" in screen_text(app))
        await pilot.press("slash", *"zz")
        await wait_until(pilot, lambda: "No model is called" in screen_text(app))


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_sizes_windows_and_abilities_stand_in_columns_at_every_width(size: tuple[int, int]) -> None:
    async with driven(size=size) as (app, pilot, _):
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "gemma3:4b" in screen_text(app))
        qwen, gemma = (line for line in screen_text(app).splitlines() if " GB " in line and "window" in line)
        assert qwen.index(" GB") == gemma.index(" GB")
        assert qwen.index("tools") == gemma.index("no tools")
        assert "window 128k" in gemma
        assert ("Q4_K_M" in qwen) == (size is not NARROW)


def test_where_columns_do_not_fit_everything_stands_below_the_name() -> None:
    info = ModelInfo(
        "qwen3:4b-instruct-2507-q4_K_M", context_length=262144,
        capabilities=frozenset({"completion", "thinking"}), size=2_500_000_000,
    )  # fmt: skip
    view = ModelView(info, None, "native")
    widths = [max(map(len, column)) for column in zip((info.name, *facts_of(view)), strict=True)]
    first, second = (line.plain.rstrip() for line in ModelRow(view, widths).lines(58))
    assert first == "  qwen3:4b-instruct-2507-q4_K_M"
    assert second == "    2.5 GB · window 256k · calls tools, thinking"


async def test_another_model_is_told_in_the_conversation_and_what_it_lacked_goes_with_it() -> None:
    session = FakeSession()
    lacks = Notice("warning", "gemma3:4b cannot call tools.", key="no_tools")
    async with driven(session) as (app, pilot, _):
        session.server = replace(session.server, tools=False)
        session.emit(lacks)
        session.emit(lacks)
        app.switch_model("gemma3:4b")
        await wait_until(pilot, lambda: "gemma3:4b answers from the next message on." in conversation(app))
        assert conversation(app).count("cannot call tools") == 1
        session.emit(Notice("warning", "phi:1b cannot call tools.", key="no_tools"))
        await wait_until(pilot, lambda: "phi:1b cannot call tools." in conversation(app))
        assert "gemma3:4b cannot call tools." not in conversation(app)
        session.server = replace(session.server, tools=True)
        app.switch_model(MODEL)
        await wait_until(pilot, lambda: f"{MODEL} answers from the next message on." in conversation(app))
        assert "cannot call tools" not in conversation(app)


async def test_the_line_about_another_model_stays_with_its_conversation() -> None:
    session = FakeSession()
    async with driven(session) as (app, pilot, _):
        session.emit(Notice("warning", "The theme is unknown.", key="theme"))
        app.switch_model("gemma3:4b")
        await wait_until(pilot, lambda: "gemma3:4b answers from the next message on." in conversation(app))
        app.switch("new")
        await wait_until(pilot, lambda: "A conversation in parcel-service" in conversation(app))
        assert "answers from the next message on" not in conversation(app)
        assert "The theme is unknown." in conversation(app)


async def test_the_model_is_not_changed_under_a_running_answer() -> None:
    session, wait = FakeSession(), Wait()
    session.scripts = [[TextDelta("Port "), wait]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("Which port?")
        await wait_until(pilot, lambda: app.chat.running)
        app.switch_model("gemma3:4b")
        await pilot.pause()
        assert ("switch_model", "gemma3:4b") not in session.calls
        assert any("An answer is running" in words for words in notices(app))
        wait.go.set()


# -- phases in the status line -----------------------------------------------------------------------------------------


async def test_a_stall_is_named_with_the_keys_that_help() -> None:
    session, wait = FakeSession(), Wait()
    session.scripts = [[PhaseChanged("generating"), TextDelta("Port "), PhaseChanged("generating", "", 21.0), wait]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("Which port?")
        await wait_until(pilot, lambda: "no data for 21 s" in screen_text(app))
        assert "esc stop" in screen_text(app)
        assert "alt+r ask again" in screen_text(app)
        app.chat.status.phase("generating")
        await wait_until(pilot, lambda: "no data" not in screen_text(app))
        wait.go.set()


async def test_ask_again_stops_the_answer_and_sends_the_same_message() -> None:
    session, wait = FakeSession(), Wait()
    session.scripts = [
        [PhaseChanged("generating"), TextDelta("Port "), wait],
        [TextDelta("8080."), TurnFinished("answered", text="8080.")],
    ]
    async with driven(session) as (app, pilot, _):
        app.chat.send("Which port?")
        await wait_until(pilot, lambda: "Port" in conversation(app))
        await pilot.press("alt+r")
        await wait_until(pilot, lambda: conversation(app).endswith("8080.") or "8080." in conversation(app))
        sent = [call[1] for call in session.calls if call[0] == "send"]
        assert sent == ["Which port?", "Which port?"]
