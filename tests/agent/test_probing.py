"""When a session probes a model's tool calling, what it remembers, and that it never stands in the way."""

from __future__ import annotations

import asyncio

from tests.agent.conftest import Desk, Open, of
from tui_agent.agent.events import Notice, PhaseChanged
from tui_agent.agent.model_notes import ModelNotes
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.script import Gate, Script

NAME = "qwen2.5-coder:1.5b"
DIGEST = model().digest


async def started(desk: Desk) -> None:
    """Start the session and wait until its probe and its warming are over."""
    await desk.session.start()
    while not any(isinstance(event, PhaseChanged) and event.phase == "idle" for event in desk.heard):
        await asyncio.sleep(0.01)


async def test_a_model_of_unknown_content_is_probed_once_before_warming(open_desk: Open) -> None:
    desk = await open_desk()
    await started(desk)
    chats = desk.server.log.of("/api/chat")
    assert chats[0].notes.get("probe")
    assert len(desk.server.probes) == 1
    assert desk.session.server.tool_calling == "native"
    note = ModelNotes(desk.paths.model_notes_path).get(DIGEST)
    assert (note.tools, note.name, note.server) == ("native", NAME, "0.33.0")
    await desk.session.close()
    again = await open_desk()
    await started(again)
    assert len(again.server.probes) == 1
    assert again.session.server.tool_calling == "native"


async def test_the_probe_costs_no_reload_and_the_prefix_is_warm_after_it(open_desk: Open) -> None:
    desk = await open_desk()
    await started(desk)
    await desk.say("Which port?")
    before = desk.server.chats[-1].prompt_tokens or 0
    await desk.say("Which host?")
    assert desk.backend.runners.reloads == 0
    assert desk.backend.runners.loads == 1
    assert (desk.server.chats[-1].cached_tokens or 0) >= 0.9 * before


async def test_a_model_that_calls_nothing_is_offered_nothing_and_that_is_said(open_desk: Open) -> None:
    desk = await open_desk()
    desk.backend.tool_calling[NAME] = "none"
    await started(desk)
    await desk.say("Which port?")
    assert "tools" not in desk.body
    assert any("does not call tools" in notice.text for notice in of(desk.heard, Notice))
    assert "no tools" in desk.session.server.degraded


async def test_a_small_model_that_writes_calls_as_text_gets_the_memory_tools(open_desk: Open) -> None:
    desk = await open_desk()
    desk.backend.tool_calling[NAME] = "text"
    await started(desk)
    await desk.say("Which port?")
    names = [tool["function"]["name"] for tool in desk.body["tools"]]
    assert len(names) == 5
    assert {"edit_file", "remember", "recall"} <= set(names)


async def test_tools_stay_the_same_within_a_session(open_desk: Open) -> None:
    desk = await open_desk()
    await desk.say("Which port?")
    before = desk.body["tools"]
    ModelNotes(desk.paths.model_notes_path).put(DIGEST, tools="text")
    await desk.say("Which host?")
    assert desk.body["tools"] == before


async def test_a_message_during_the_probe_goes_first(open_desk: Open) -> None:
    desk = await open_desk()
    gate = Gate()
    desk.backend._probed = lambda request: Script(gate)  # type: ignore[method-assign]
    await desk.session.start()
    await gate.reached()
    events = await desk.say("Which port?")
    assert desk.last(events).status == "answered"
    assert [record.outcome for record in desk.server.probes] == ["disconnected"]
    assert desk.session.server.tool_calling == ""
    assert ModelNotes(desk.paths.model_notes_path).get(DIGEST).tools == ""


async def test_nobody_is_probed_while_the_user_types(open_desk: Open) -> None:
    desk = await open_desk()
    await desk.session.save_draft("Which po")
    await started(desk)
    assert desk.server.probes == []


async def test_a_single_question_from_the_command_line_probes_nothing(desk: Desk) -> None:
    await desk.say("Which port?")
    assert desk.server.probes == []


async def test_another_model_is_probed_after_switching_and_the_change_is_said(open_desk: Open) -> None:
    desk = await open_desk()
    desk.backend.installed.append(
        model("gemma3:4b", capabilities=("completion", "tools", "thinking"), context_length=4096)
    )
    desk.backend.tool_calling["gemma3:4b"] = "none"
    await started(desk)
    await desk.say("Which port?")
    desk.heard.clear()
    result = await desk.session.switch_model("gemma3:4b")
    assert "window 4,096 tokens instead of 8,192" in result.text
    assert "it can think" in result.text
    assert "The conversation stays" in result.text
    while not any(isinstance(event, PhaseChanged) and event.phase == "idle" for event in desk.heard):
        await asyncio.sleep(0.01)
    await desk.say("And the host?")
    assert "tools" not in desk.body
    assert desk.body["messages"][1]["content"].endswith("Which port?")
    assert len(await desk.session.transcript()) == 4


async def test_damaged_notes_are_empty_notes(desk: Desk) -> None:
    notes = ModelNotes(desk.paths.model_notes_path)
    notes.path.parent.mkdir(parents=True, exist_ok=True)
    for text in ("", "[]", "{}", '{"version": 1, "models": {"aa": 3, "bb": {"tools": 5}}}', "\0"):
        notes.path.write_text(text, "utf-8")
        assert notes.get("bb").tools == ""
    notes.put("bb", tools="native")
    assert notes.get("bb").tools == "native"
    assert notes.path.stat().st_mode & 0o077 == 0
    notes.put("", tools="text")
    assert notes.get("").tools == ""
