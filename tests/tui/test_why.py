"""Why an item was recalled: keys on each item, the question without it, and an answer whose beginning was not seen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import MEDIUM, NARROW, WIDE, conversation, driven, notices, screen_text, wait_until
from fake_session import RECALL, FakeSession, Wait, history
from textual.widgets import Input

from tests.agent.conftest import WordEmbedder
from tui_agent.agent.events import NotSeen, TextDelta, TurnFinished
from tui_agent.agent.session import Session
from tui_agent.llm.wire.script import answer, call, calling
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings
from tui_agent.tui.app import TuiAgentApp
from tui_agent.tui.screens import panel
from tui_agent.tui.screens.inspector import InspectorScreen
from tui_agent.tui.screens.why import CompareLines, CompareScreen, WhyScreen

REF = "fact:01kf3m9zz00000000000000a1f"
UNSEEN = NotSeen("u1", 5000, 2050, 4096, larger=8192, tool_tokens=900)


@pytest.fixture(autouse=True)
def quick_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "QUESTION_DELAY_S", 0.001)


def why(message_id: str = "") -> WhyScreen:
    return WhyScreen(RECALL, "2026-11-30 09:41:00", message_id)


@pytest.mark.parametrize(
    ("key", "called"),
    [
        ("x", ("expire", REF)),
        ("f", ("put_away", REF)),
        ("p", ("pin", REF)),
        ("n", ("never_for_topic", REF, RECALL.query)),
        ("u", ("undo",)),
    ],
)
async def test_keys_of_the_explanation_act_on_the_highlighted_item(key: str, called: tuple[str, ...]) -> None:
    async with driven() as (app, pilot, session):
        app.push_screen(why())
        await wait_until(pilot, lambda: "Data access goes through" in screen_text(app))
        await pilot.press(key)
        await wait_until(pilot, lambda: called in session.calls)


async def test_wrong_asks_for_the_right_text() -> None:
    async with driven() as (app, pilot, session):
        app.push_screen(why())
        await wait_until(pilot, lambda: "Data access goes through" in screen_text(app))
        await pilot.press("j", "c")
        await wait_until(pilot, lambda: isinstance(app.focused, Input))
        assert isinstance(app.focused, Input)
        app.focused.value = "New repositories need no interface."
        await pilot.press("enter")
        await wait_until(
            pilot,
            lambda: (
                ("correct", "fact:01kf3m9zz000000000000007c2", "New repositories need no interface.") in session.calls
            ),
        )


async def test_every_item_is_explained_with_bars_and_the_near_ones_with_a_reason() -> None:
    extra = {
        "skills": [{"name": "deploy", "text": "x"}],
        "notes": ["rules.md was changed"],
        "date": "2026-11-30",
        "in_view": ["fact:f1", "message:m1", "listed:c1"],
        "put_away": {"head": "x", "lines": [{"id": "c1", "line": "abcd log carrier (430)"}], "more": 7, "tokens": 20},
        "fixed": [{"name": "AGENTS.md", "hash": "1", "tokens": 5}],
    }
    async with driven(size=(140, 60)) as (app, pilot, _):
        app.push_screen(WhyScreen(replace(RECALL, extra=extra), "2026-11-30 09:41:00"))
        await wait_until(pilot, lambda: "just missed" in screen_text(app))
        shown = screen_text(app)
        assert "━" in shown
        assert "╌" in shown
        assert "We use npm.  replaced by a newer one" in shown
        assert "skill deploy; note: rules.md was changed; the date 2026-11-30" in shown
        assert "abcd log carrier (430); +7 more" in shown
        assert "1 item of earlier messages" in shown
        assert "AGENTS.md" in shown
        assert "n never for this topic" in shown


async def test_going_to_the_message_an_item_is_from() -> None:
    inside = replace(RECALL.items[0], source=f"message {'01m8nhkc9f9t0qs2ekf3n0kw5m'}")
    elsewhere = replace(RECALL.items[1], source=f"message {'01zzzzzzzzzzzzzzzzzzzzzzzz'}")
    entries = [replace(entry) for entry in history()]
    entries[0] = replace(entries[0], message_id="01m8nhkc9f9t0qs2ekf3n0kw5m")
    session = FakeSession(entries)
    async with driven(session) as (app, pilot, _):
        screen = WhyScreen(replace(RECALL, items=(inside, elsewhere, RECALL.items[2])), "")
        app.push_screen(screen)
        await wait_until(pilot, lambda: "Data access goes through" in screen_text(app))
        await pilot.press("j", "g")
        await wait_until(pilot, lambda: isinstance(app.screen, InspectorScreen))
        assert app.screen.ref == "message:01zzzzzzzzzzzzzzzzzzzzzzzz"
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.screen is screen)
        await pilot.press("j", "g")
        await wait_until(pilot, lambda: any("not from a message" in words for words in notices(app)))
        await pilot.press("k", "k", "g")
        await wait_until(pilot, lambda: app.screen is app.chat)


@pytest.mark.parametrize("size", [WIDE, MEDIUM, NARROW])
async def test_the_question_without_an_item_shows_both_answers(size: tuple[int, int]) -> None:
    session = FakeSession()
    session.comparing = Wait()
    answered = [entry for entry in session.entries if entry.recall is not None][-1]
    async with driven(session, size=size) as (app, pilot, _):
        app.push_screen(why(answered.message_id))
        await wait_until(pilot, lambda: "just missed" in screen_text(app) or "Data access" in screen_text(app))
        await pilot.press("a")
        await wait_until(pilot, lambda: isinstance(app.screen, CompareScreen))
        await wait_until(pilot, lambda: "asking …" in screen_text(app))
        assert ("ask_without", answered.message_id, REF) in session.calls
        session.comparing.go.set()
        await wait_until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.result is not None)
        await pilot.pause()
        plain = " ".join(screen_text(app).split())
        assert "without it" in plain
        assert "asking" not in plain
        app.screen.query_one(".panel--body").scroll_end(animate=False)
        await wait_until(pilot, lambda: "Earlier answers stay." in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: isinstance(app.screen, WhyScreen))
        assert ("stop_comparing",) in session.calls


async def test_a_comparison_can_be_stopped_by_a_key() -> None:
    session = FakeSession()
    session.comparing = Wait()
    async with driven(session) as (app, pilot, _):
        app.push_screen(CompareScreen("m", "q", RECALL.items[0], None))
        await wait_until(pilot, lambda: any(call[0] == "ask_without" for call in session.calls))
        await pilot.press("s")
        await wait_until(pilot, lambda: "stopped here" in screen_text(app))


async def test_without_a_finished_answer_nothing_is_asked_again() -> None:
    async with driven() as (app, pilot, session):
        app.push_screen(why())
        await wait_until(pilot, lambda: "Data access goes through" in screen_text(app))
        await pilot.press("a")
        await wait_until(pilot, lambda: any("Wait for the end" in words for words in notices(app)))
        assert not any(call[0] == "ask_without" for call in session.calls)


def test_two_answers_stand_beside_each_other_where_there_is_room() -> None:
    lines = CompareLines("q?", "item", "left [b]", "right", "", ())
    wide = [line.plain for line in lines.lines(100)]
    assert any("left [b]" in line and "right" in line for line in wide)
    narrow = [line.plain for line in lines.lines(40)]
    assert not any("left [b]" in line and "right" in line for line in narrow)
    assert all(len(line) <= 100 for line in wide)


async def test_an_answer_whose_beginning_was_not_seen_says_so_and_offers_keys() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta("It is three."), UNSEEN, TurnFinished("answered")]]
    async with driven(session) as (app, pilot, _):
        app.chat.send("How many?")
        await wait_until(pilot, lambda: not app.chat.running)
        app.chat.transcript.focus()
        await wait_until(pilot, lambda: "L ask again with 8,192 tokens" in screen_text(app))
        assert "The model did not see the beginning: about 5,000 tokens were sent, 2,050 read." in conversation(app)
        assert "O ask again without tool output" in screen_text(app)
        await pilot.press("O")
        await wait_until(pilot, lambda: ("retry", "shorter") in session.calls)
        await wait_until(pilot, lambda: "Answered again, shorter." in conversation(app))
        assert "L ask again" not in screen_text(app)


async def test_ignoring_takes_the_keys_away_and_an_ordinary_answer_has_none() -> None:
    session = FakeSession()
    session.scripts = [[TextDelta("It is three."), replace(UNSEEN, larger=0), TurnFinished("answered")]]
    async with driven(session) as (app, pilot, _):
        app.chat.transcript.focus()
        await pilot.press("L")
        await wait_until(pilot, lambda: any("saw everything" in words for words in notices(app)))
        app.chat.send("How many?")
        await wait_until(pilot, lambda: not app.chat.running)
        app.chat.transcript.focus()
        await wait_until(pilot, lambda: "i ignore" in screen_text(app))
        await pilot.press("L")
        await wait_until(pilot, lambda: any("no larger window" in words for words in notices(app)))
        await pilot.press("i")
        await wait_until(pilot, lambda: "i ignore" not in screen_text(app))
        assert not any(call[0] == "retry" for call in session.calls)


@pytest.fixture
async def short_of_memory() -> AsyncIterator[WireServer]:
    async with WireServer(ScriptedBackend(default="OK.", most_ctx=2560)) as running:
        yield running


async def test_on_a_server_that_cuts_the_prompt_the_alarm_is_raised_and_a_key_heals_it(
    tmp_path: Path, short_of_memory: WireServer
) -> None:
    server = short_of_memory
    (tmp_path / "project").mkdir()
    paths = UserPaths(*(tmp_path / name for name in ("config", "data", "state", "cache")))
    project = Project.open(tmp_path / "project")
    (project.root / "big.py").write_text("def retry(order):\n    return order\n" * 10, "utf-8")
    flags = {"host": server.url, "model": "qwen2.5-coder:1.5b", "num_ctx": 4096, "check_saves": False}
    loaded = load_settings(project, paths, {}, flags)

    async def factory() -> Session:
        return await Session.open(
            project, loaded, user_paths=paths, embedder=WordEmbedder(), interactive=False, fallback=False
        )

    app = TuiAgentApp(factory, project_name="p")
    long = "the retry loop treats a gateway that answers 503 like a slow one " * 10
    async with app.run_test(size=WIDE) as pilot:
        await wait_until(pilot, lambda: app.session is not None and not app.chat.running, "connected")
        for number in range(12):
            reads = calling(call("read_file", {"path": "big.py", "start_line": number + 1}))
            server.backend.queue(reads, answer("Three times."))
            app.chat.send(f"question {number}: {long}")
            await wait_until(pilot, lambda: not app.chat.running, "the turn is over")
            if "did not see the beginning" in conversation(app):
                break
        assert "did not see the beginning" in conversation(app)
        server.backend._queue.clear()
        server.backend.queue(answer("Now with everything in view."))
        app.chat.transcript.focus()
        await wait_until(pilot, lambda: "O ask again without tool output" in screen_text(app))
        await pilot.press("O")
        await wait_until(pilot, lambda: "Now with everything in view." in conversation(app))
        await wait_until(pilot, lambda: not app.chat.running)
        assert app.session is not None
        await app.session.close()


async def test_a_cut_off_answer_is_continued_on_the_same_prefix_by_r(tmp_path: Path) -> None:
    from tui_agent.llm.wire import faults

    (tmp_path / "project").mkdir()
    paths = UserPaths(*(tmp_path / name for name in ("config", "data", "state", "cache")))
    project = Project.open(tmp_path / "project")
    async with WireServer(ScriptedBackend(default="OK.")) as server:
        flags = {"host": server.url, "model": "qwen2.5-coder:1.5b", "check_saves": False}
        loaded = load_settings(project, paths, {}, flags)

        async def factory() -> Session:
            return await Session.open(
                project, loaded, user_paths=paths, embedder=WordEmbedder(), interactive=False, fallback=False
            )

        app = TuiAgentApp(factory, project_name="p")
        async with app.run_test(size=WIDE) as pilot:
            await wait_until(pilot, lambda: app.session is not None, "connected")
            server.backend.queue(faults.too_long("Once upon a time there was a"))
            app.chat.send("Tell me a story.")
            await wait_until(pilot, lambda: "cut off: the answer reached its limit" in conversation(app))
            await wait_until(pilot, lambda: not app.chat.running)
            first = server.chats[-1].body["messages"]
            server.backend.queue(answer("gateway that never slept."))
            app.chat.transcript.focus()
            await pilot.press("r")
            await wait_until(pilot, lambda: "gateway that never slept." in conversation(app))
            messages = server.chats[-1].body["messages"]
            assert messages[: len(first)] == first
            assert messages[len(first)] == {"role": "assistant", "content": "Once upon a time there was a"}
            assert messages[-1]["content"].endswith("Continue exactly where you stopped.")
            assert app.session is not None
            await app.session.close()
