"""The first run's panel: numbered answers that work before a model does, on every width, with nothing typed lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import MEDIUM, NARROW, WIDE, conversation, driven, notices, screen_text, wait_until
from fake_session import FakeSession
from textual.pilot import Pilot

from tui_agent.agent.events import Notice
from tui_agent.agent.firstrun import Act, FirstRun, Surroundings
from tui_agent.agent.views import ServerStatus
from tui_agent.llm.hardware import GB, Memory
from tui_agent.llm.ollama_files import LocalModel
from tui_agent.llm.types import ModelInfo
from tui_agent.tui import commanding
from tui_agent.tui.app import TuiAgentApp
from tui_agent.tui.screens import setup as screen_module
from tui_agent.tui.screens.setup import SetupScreen

URL = "http://127.0.0.1:11434"
SMALL = ModelInfo("small:1b", capabilities=frozenset({"completion", "tools"}), size=GB)
STOPPED = Surroundings(
    url=URL,
    wanted="qwen2.5-coder:7b",
    program="/usr/bin/ollama",
    memory=Memory(total=16 * GB),
    engine=True,
    engine_model=True,
)
EMPTY = replace(STOPPED, answers=True, version="0.33.0")
READY = replace(EMPTY, models=(replace(SMALL, name="qwen2.5-coder:7b"),), connected=True)


class FakeSetUp:
    """Hands that do what a test says: ``after`` are the facts after the next act, ``go`` lets it end."""

    def __init__(self, session: FakeSession, facts: Surroundings) -> None:
        self.session = session
        self.facts = facts
        self.after: Surroundings | Exception = READY
        self.acts: list[Act] = []
        self.go = asyncio.Event()
        self.go.set()
        self.model = ""
        self.server: Any = None
        self.cancelled = 0

    async def look(self) -> Surroundings:
        return self.facts

    async def connect(self) -> bool:
        self.session.server = replace(self.session.server, ready=True)
        return True

    async def carry_out(self, run: FirstRun, act: Act, on_progress: Any) -> None:
        self.acts.append(act)
        on_progress("1.20 of 4.70 GB · 3 min left", 0.25)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            run.cancelled()
            raise
        if isinstance(self.after, Exception):
            run.failed(str(self.after), self.facts)
            return
        self.facts = self.after
        if self.after.connected:
            await self.connect()
        run.done(self.after)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "QUESTION_DELAY_S", 0.0)
    monkeypatch.setattr(screen_module, "WATCH_S", 0.05)
    monkeypatch.setattr(commanding, "TYPING_PAUSE_S", 0.05)


@asynccontextmanager
async def asked(
    facts: Surroundings = STOPPED, size: tuple[int, int] = WIDE
) -> AsyncIterator[tuple[TuiAgentApp, Pilot[Any], FakeSetUp]]:
    """The application before it has a model, with its question open."""
    session = FakeSession(empty=True, server=ServerStatus(URL, "qwen2.5-coder:7b", ready=False))
    hands = session.setup = FakeSetUp(session, facts)
    async with driven(session, size) as (app, pilot, _):
        await wait_until(pilot, lambda: isinstance(app.screen, SetupScreen), "the question is open")
        await pilot.pause()
        yield app, pilot, hands


def asked_for(hands: FakeSetUp) -> list[Act]:
    """What the user asked for; on a busy machine the screen looks at the server between."""
    return [act for act in hands.acts if act.what != "look"]


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_every_answer_and_the_way_out_are_visible_on_every_width(size: tuple[int, int]) -> None:
    async with asked(size=size) as (app, _, _hands):
        shown = screen_text(app)
        for words in ("Ollama is not running", "1  Start it now", "2  Use the built-in engine", "0  Not now"):
            assert words in shown
        assert "runs `ollama serve`; it stops when you leave" in shown
        assert "enter choose" in shown
        assert "esc close" in shown


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_a_number_answers_and_the_chat_is_there(size: tuple[int, int]) -> None:
    async with asked(size=size) as (app, pilot, hands):
        await pilot.press("1")
        await wait_until(pilot, lambda: not isinstance(app.screen, SetupScreen))
        assert asked_for(hands) == [Act("serve")]
        await wait_until(pilot, lambda: any("qwen2.5-coder:7b answers from now on." in words for words in notices(app)))
        await wait_until(pilot, lambda: "no model yet" not in screen_text(app))


async def test_enter_answers_the_highlighted_row() -> None:
    async with asked() as (app, pilot, hands):
        await pilot.press("down", "enter")
        await wait_until(pilot, lambda: hands.acts)
        assert asked_for(hands) == [Act("engine")]
        await wait_until(pilot, lambda: not isinstance(app.screen, SetupScreen))


async def test_a_download_shows_its_progress_and_x_stops_it() -> None:
    async with asked(EMPTY, NARROW) as (app, pilot, hands):
        hands.go.clear()
        await pilot.press("2")
        await wait_until(pilot, lambda: "25%" in screen_text(app))
        shown = screen_text(app)
        assert "1.20 of 4.70 GB" in shown
        assert "━" in shown
        assert "─── " in shown, "what is left of the bar"
        assert "x stop" in shown
        assert "esc stop" in shown
        await pilot.press("3")
        assert len(hands.acts) == 1
        await pilot.press("x")
        await wait_until(pilot, lambda: "What was downloaded stays" in screen_text(app))
        assert hands.cancelled == 1
        assert isinstance(app.screen, SetupScreen)
        assert "esc close" in screen_text(app)
        hands.go.set()
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(hands.acts) == 2)
        assert hands.acts[0] == hands.acts[1], "enter goes on with what was stopped"


async def test_escape_stops_what_is_going_on_first_and_closes_then() -> None:
    async with asked(EMPTY) as (app, pilot, hands):
        hands.go.clear()
        await pilot.press("1")
        await wait_until(pilot, lambda: "25%" in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: hands.cancelled == 1)
        await wait_until(pilot, lambda: "goes on there" in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: not isinstance(app.screen, SetupScreen))
        assert "no model yet · /setup" in screen_text(app)


async def test_a_failure_is_said_and_the_question_stands() -> None:
    async with asked() as (app, pilot, hands):
        hands.after = RuntimeError("`ollama serve` ended at once. Its last words: [red]address in use[/].")
        await pilot.press("1")
        await wait_until(pilot, lambda: "ended at once" in screen_text(app))
        assert "[red]address in use[/]" in screen_text(app)
        hands.after = READY
        await pilot.press("1")
        await wait_until(pilot, lambda: not isinstance(app.screen, SetupScreen))


async def test_two_answers_lead_from_a_stopped_server_without_models_to_the_chat() -> None:
    async with asked() as (app, pilot, hands):
        hands.after = EMPTY
        await pilot.press("1")
        await wait_until(pilot, lambda: "Download a model" in screen_text(app))
        assert "Ollama 0.33.0" in screen_text(app)
        hands.after = READY
        await pilot.press("1")
        await wait_until(pilot, lambda: not isinstance(app.screen, SetupScreen))
        assert asked_for(hands) == [Act("serve"), Act("pull", "qwen2.5-coder:7b")]


async def test_a_server_that_is_started_elsewhere_is_noticed() -> None:
    async with asked() as (app, pilot, hands):
        hands.facts = EMPTY
        await wait_until(pilot, lambda: "Download a model" in screen_text(app))


async def test_a_model_that_appears_meanwhile_is_connected_to() -> None:
    async with asked() as (app, pilot, hands):
        hands.facts = replace(READY, connected=False)
        await wait_until(pilot, lambda: not isinstance(app.screen, SetupScreen))
        assert set(hands.acts) == {Act("look")}
        assert "no model yet" not in screen_text(app)


async def test_the_command_for_the_engine_is_shown_and_nothing_is_done() -> None:
    async with asked(replace(STOPPED, engine=False, engine_model=False)) as (app, pilot, hands):
        await pilot.press("2")
        await wait_until(pilot, lambda: "pip install" in screen_text(app))
        assert hands.acts == []


async def test_names_of_models_are_never_markup() -> None:
    odd = ModelInfo("[bold]x[/]:1b", capabilities=frozenset({"completion"}))
    async with asked(replace(EMPTY, models=(odd,))) as (app, _, _hands):
        assert "Use [bold]x[/]:1b" in screen_text(app)


async def test_the_question_waits_for_a_pause_in_typing_and_what_was_typed_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commanding, "TYPING_PAUSE_S", 0.4)
    session = FakeSession(empty=True, server=ServerStatus(URL, "qwen2.5-coder:7b", ready=False), draft="we have ")
    session.setup = FakeSetUp(session, STOPPED)
    async with driven(session) as (app, pilot, _):
        await pilot.press("1", "2")
        assert not isinstance(app.screen, SetupScreen)
        await wait_until(pilot, lambda: isinstance(app.screen, SetupScreen))
        assert app.chat.composer.text == "we have 12"
        assert session.setup.acts == []


async def test_the_first_keys_after_it_opened_are_no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_module, "QUESTION_DELAY_S", 60.0)
    async with asked() as (app, pilot, hands):
        await pilot.press("1", "enter")
        await pilot.pause(0.05)
        assert hands.acts == []
        assert isinstance(app.screen, SetupScreen)


async def test_quitting_keeps_the_draft_while_the_question_is_open() -> None:
    session = FakeSession(empty=True, server=ServerStatus(URL, "m", ready=False), draft="half a thought")
    session.setup = FakeSetUp(session, STOPPED)
    async with driven(session) as (app, pilot, _):
        await wait_until(pilot, lambda: isinstance(app.screen, SetupScreen))
        await pilot.press("ctrl+q")
        await wait_until(pilot, lambda: session.closed)
        assert session.draft == "half a thought"


async def test_quitting_in_the_instant_the_question_opens_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    session = FakeSession(empty=True, server=ServerStatus(URL, "m", ready=False))
    session.setup = FakeSetUp(session, STOPPED)
    monkeypatch.setattr(SetupScreen, "compose", lambda self: iter(()))  # as it is when the app ends meanwhile
    async with driven(session) as (app, pilot, _):
        await wait_until(pilot, lambda: isinstance(app.screen, SetupScreen))
        await pilot.press("ctrl+q")
        await wait_until(pilot, lambda: session.closed)


@pytest.mark.parametrize("part", ["#page", "#list", "#progress"])
async def test_quitting_while_the_parts_of_the_question_go_is_no_error(part: str) -> None:
    async with asked() as (app, pilot, _):
        screen = app.screen
        assert isinstance(screen, SetupScreen)
        await screen.query_one(part).remove()
        screen.show()
        await pilot.pause()
        assert not screen.has_parts


async def test_setup_says_when_there_is_nothing_to_do() -> None:
    session = FakeSession()
    session.setup = FakeSetUp(session, READY)
    async with driven(session) as (app, pilot, _):
        await pilot.press(*"/setup", "enter")
        await wait_until(pilot, lambda: any("Everything is there" in words for words in notices(app)))
        assert not isinstance(app.screen, SetupScreen)


async def test_choosing_a_cloud_model_asks_before_anything_is_sent() -> None:
    from tui_agent.agent.views import ActionResult

    session = FakeSession()
    cloud = replace(EMPTY, wanted="big-cloud", models=(SMALL,), leaves_to="https://ollama.com")
    hands = session.setup = FakeSetUp(session, cloud)
    refused = ActionResult(False, "big-cloud is a cloud model.", extra={"allow": "https://ollama.com"})

    async def switch_model(name: str) -> ActionResult:
        return refused

    session.switch_model = switch_model  # type: ignore[method-assign]
    async with driven(session) as (app, pilot, _):
        app.switch_model("big-cloud")
        await wait_until(pilot, lambda: "Your words would leave this machine" in screen_text(app))
        assert hands.model == "big-cloud"
        await pilot.press("1")
        await wait_until(pilot, lambda: hands.acts == [Act("allow", "https://ollama.com")])


async def test_the_notice_that_nothing_answers_goes_once_something_does_and_comes_back_with_the_trouble() -> None:
    async with asked() as (app, pilot, hands):
        hands.session.emit(Notice("error", "Nothing answers at http://127.0.0.1:11434.", key="server"))
        hands.session.emit(Notice("warning", "The theme is unknown.", key="theme"))
        await wait_until(pilot, lambda: "Nothing answers" in conversation(app))
        await pilot.press("1")
        await wait_until(pilot, lambda: not isinstance(app.screen, SetupScreen))
        await wait_until(pilot, lambda: "Nothing answers" not in conversation(app))
        assert "The theme is unknown." in conversation(app)
        assert "A conversation in parcel-service" in conversation(app)
        hands.session.emit(Notice("error", "Nothing answers at http://127.0.0.1:11434.", key="server"))
        await wait_until(pilot, lambda: "Nothing answers" in conversation(app))


async def test_leaving_the_question_says_what_is_missing_now_in_place_of_what_was_said_at_the_start() -> None:
    async with asked() as (app, pilot, hands):
        refused = "http://box is not this machine. Run `tui-agent allow http://box`."
        hands.session.emit(Notice("error", refused, key="server"))
        await wait_until(pilot, lambda: "http://box is not" in conversation(app))
        await pilot.press("0")
        await wait_until(pilot, lambda: "Ollama is not running: nothing answers" in conversation(app))
        assert "/setup asks again." in conversation(app)
        assert "http://box is not" not in conversation(app)


async def test_nothing_is_said_to_leave_the_machine_before_it_does() -> None:
    session = FakeSession(empty=True, server=ServerStatus("http://box:11434", "m", ready=False, local=False))
    session.setup = FakeSetUp(session, STOPPED)
    async with driven(session) as (app, pilot, _):
        await wait_until(pilot, lambda: isinstance(app.screen, SetupScreen))
        assert "leaves this machine" not in screen_text(app)
        session.server = replace(session.server, ready=True)
        app.chat.refresh_server()
        await pilot.press("escape")
        await wait_until(pilot, lambda: "leaves this machine" in screen_text(app))


async def test_answers_stand_on_one_line_each_or_all_on_two() -> None:
    blob = LocalModel("qwen2.5-coder:1.5b-instruct-q4_K_M", Path("/models/blob"), GB, "a" * 64)
    async with asked(replace(STOPPED, blobs=(blob,)), MEDIUM) as (app, _, _hands):
        lines = [line.strip("│ ").rstrip() for line in screen_text(app).splitlines()]
        first = next(place for place, line in enumerate(lines) if "1  Start it now" in line)
        assert "ollama serve" in lines[first + 1]
        assert lines[first + 4].endswith("Use the built-in engine")
        assert "1.1 GB" in lines[first + 5]
    async with asked(size=MEDIUM) as (app, _, _hands):
        assert "Start it now             runs `ollama serve`; it stops when you leave" in screen_text(app)


async def test_facts_kept_elsewhere_are_marked_before_any_model_is_ready_too() -> None:
    server = ServerStatus(URL, "qwen2.5-coder:7b", ready=False, local=False, memory_elsewhere=True)
    async with driven(FakeSession(empty=True, server=server)) as (app, pilot, _):
        await wait_until(pilot, lambda: "leaves this machine" in screen_text(app))
