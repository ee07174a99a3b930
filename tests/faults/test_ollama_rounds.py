"""The loop of rounds and what is sent in it: repeated calls, roles, arguments, ids, and whether tools are offered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.agent.conftest import Desk, Open, of
from tests.faults.old_sessions import old_session
from tests.faults.ollama_table import on_disk, play, record, steady  # noqa: F401
from tests.faults.on_screen import line_with, lines_of, on_screen, said, until, warmed
from tui_agent.agent.events import MemoryChanged, Notice, PhaseChanged, TextDelta, ToolFinished, ToolStarted
from tui_agent.agent.prompt import legal_problem
from tui_agent.agent.tools.base import ToolResult
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.script import Calls, Done, Gate, Raw, Script, Think, call, calling

READ = call("read_memory", {"path": "AGENTS.md"})
ANSWER_NOW = "Answer the user now, in plain text."


async def test_a_model_that_repeats_a_call_is_told_and_then_stopped(desk: Desk) -> None:
    orders = ({"query": "port", "limit": 3}, {"limit": 3, "query": "port"})
    desk.backend.default = lambda request: calling(call("search_history", orders[len(request.messages) % 4 // 2]))
    seen = await play(desk, "B19", "the same call for ever, its arguments in this order and in that")
    finished = of(seen.events, ToolFinished)
    assert [event.ok for event in finished] == [True, False, False, False, False]
    assert all("already made" in event.result and "result is above" in event.result for event in finished[1:])
    assert len({json.dumps(event.arguments) for event in of(seen.events, ToolStarted)}) == 2
    log = [entry.message for entry in desk.session.core.prompt.log]
    told = [ANSWER_NOW in m["content"] for m in log if m["role"] == "tool"]
    assert told == [False, False, False, True, True]
    assert any("kept calling tools" in notice for notice in seen.notices)
    assert all(one.body.get("tools") == desk.body["tools"] for one in desk.server.chats)


async def test_the_last_round_still_has_the_tools_and_an_instruction_to_answer(desk: Desk) -> None:
    most = desk.session.settings.max_tool_rounds

    def again(request: Any) -> Any:
        last = str(request.messages[-1].get("content", ""))
        return "Port 8080." if ANSWER_NOW in last else calling(call("recall", {"query": f"q{len(request.messages)}"}))

    desk.backend.default = again
    seen = await play(desk, "B19b", "another call in every round, until the model is told to answer")
    assert len(of(seen.events, ToolFinished)) == most
    assert seen.text == "Port 8080."
    assert ANSWER_NOW in desk.body["messages"][-1]["content"]
    assert all(one.body["tools"] == desk.server.chats[0].body["tools"] for one in desk.server.chats)


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
async def test_the_last_text_is_kept_after_any_number_of_rounds(desk: Desk, rounds: int) -> None:
    desk.backend.queue(*(calling(call("recall", {"query": f"port {n}"})) for n in range(rounds)), "Port 8080.")
    if rounds == 5:
        await play(desk, "B20", "five rounds of calls, then the answer")
    else:
        await desk.say("Which port does the server use?")
    assert (await desk.session.transcript())[-1].text == "Port 8080."
    assert desk.session.stores.history.messages(desk.session.id)[-1].content == "Port 8080."
    assert len(desk.server.chats) == rounds + 1


async def test_the_phase_comes_from_the_loop_and_ends_in_idle(desk: Desk) -> None:
    desk.backend.queue(calling(call("recall", {"query": "port"})), faults.empty_answer(), faults.empty_answer())
    seen = await play(desk, "B21", "nothing at all after the tool")
    phases = [event.phase for event in of(seen.events, PhaseChanged)]
    assert "tool" in phases
    assert phases[-1] == "idle"
    assert not desk.session.busy


async def test_thinking_is_sent_back_within_the_turn_and_dropped_after_it(desk: Desk) -> None:
    desk.backend.installed[:] = [model(capabilities=("completion", "tools", "thinking"))]
    desk.backend.queue(Script(Think("I look it up."), Calls((READ,))), "Port 8080.", "Yes.")
    await play(desk, "B22", "thinking before a call")
    assert [m["thinking"] for m in desk.body["messages"] if m.get("thinking")] == ["I look it up."]
    await desk.say("Sure?")
    assert not any(m.get("thinking") for m in desk.body["messages"])


async def test_results_have_the_role_tool_and_the_tools_name(desk: Desk) -> None:
    desk.backend.queue(calling(READ), "Port 8080.")
    await play(desk, "B23", "one call and its result")
    last = desk.body["messages"][-1]
    assert (last["role"], last["tool_name"]) == ("tool", "read_memory")


async def test_a_call_for_a_greeting_writes_nothing_without_proof(desk: Desk) -> None:
    claim = {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Bob\n"}
    desk.backend.queue(calling(call("edit_file", claim)), "Hello!")
    seen = await play(desk, "B24", "a call of edit_file as the answer to a greeting", "hello")
    assert "Bob" not in desk.memory("knowledge/user.md")
    assert not [event for event in of(seen.events, MemoryChanged) if event.what == "saved"]
    assert desk.session.stores.facts.live() == []


async def test_tools_are_switched_off_for_one_message_by_a_command(open_desk: Open) -> None:
    desk = await open_desk(check_saves=False)
    desk.backend.default = lambda request: calling(READ) if request.tools and len(request.messages) == 2 else "Hello!"
    async with on_screen(desk) as (app, pilot):
        await warmed(desk, app, pilot)

        async def ask(text: str) -> dict[str, Any]:
            before = len(desk.server.chats)
            app.chat.composer.editor.replace_all(text)
            await pilot.press("enter")
            await until(pilot, lambda: len(desk.server.chats) > before and not app.chat.running, "answered")
            return desk.server.chats[before].body

        app.chat.composer.editor.replace_all("/tools")
        await pilot.press("enter")
        await until(pilot, lambda: line_with(app, "next one without tools"), "the mark")
        mark = "▲ next one without tools"
        assert mark in line_with(app, mark)
        notice = said(app)[-1]
        without = await ask("hello")
        assert "tools" not in without
        assert "You have no tools here" in without["messages"][0]["content"]
        seen = f"{notice} / {mark} / then: “Hello!”"
        assert any("Hello!" in line for line in lines_of(app))
        disk = on_disk(desk)
        await until(pilot, lambda: not line_with(app, mark), "the mark is gone")
        assert len((await ask("And now?"))["tools"]) == 8
        app.chat.composer.editor.replace_all("/tools off")
        await pilot.press("enter")
        await until(pilot, lambda: line_with(app, "▲ tools off"), "the lasting mark")
        assert "tools" not in await ask("Sure?")
        assert "tools" not in await ask("Really?")
        app.chat.composer.editor.replace_all("/tools on")
        await pilot.press("enter")
        await until(pilot, lambda: not line_with(app, "tools off"), "no mark")
        assert len((await ask("Done?"))["tools"]) == 8
    assert all(legal_problem(one.messages) == "" for one in desk.server.chats)
    record("B24b", "a model that calls a tool for a greeting; the user typed /tools before it", seen, disk)


async def test_arguments_are_stored_and_sent_as_objects(desk: Desk) -> None:
    as_text = {"function": {"name": "read_memory", "arguments": json.dumps({"path": "AGENTS.md"})}}
    line = {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [as_text]}, "done": False}
    desk.backend.queue(Script(Raw((json.dumps(line).encode() + b"\n",)), Done()), "Port 8080.", "Yes.")
    await play(desk, "B25", "arguments as a JSON string, which would poison every later request")
    await desk.say("Sure?")
    sent = [m["tool_calls"][0]["function"]["arguments"] for m in desk.body["messages"] if m.get("tool_calls")]
    assert sent == [{"path": "AGENTS.md"}]
    kept = desk.session.stores.history.wire_log(desk.session.id, desk.session.core.prompt.epoch)
    calls = [entry["message"]["tool_calls"] for _, entry in kept if entry["message"].get("tool_calls")]
    assert [one[0]["function"]["arguments"] for one in calls] == [{"path": "AGENTS.md"}]


CALLED = {
    "role": "assistant",
    "tool_calls": [{"function": {"name": "read_memory", "arguments": {"path": "AGENTS.md"}}}],
}


async def test_an_old_session_with_arguments_as_text_is_repaired(open_desk: Open) -> None:
    poisoned = {
        "role": "assistant",
        "tool_calls": [{"function": {"name": "read_memory", "arguments": '{"path": "x"}'}}],
    }
    result = {"role": "tool", "tool_name": "read_memory", "content": "nothing"}
    asked = {"role": "user", "content": "And?"}
    desk = await old_session(open_desk, asked, poisoned, result, {"role": "assistant", "content": "Yes."})
    desk.backend.queue("Port 8080.")
    seen = await play(desk, "B25b", "a session of an older version whose arguments are stored as text")
    assert seen.text == "Port 8080."
    sent = [m["tool_calls"][0]["function"]["arguments"] for m in desk.body["messages"] if m.get("tool_calls")]
    assert sent == [{"path": "x"}]


async def test_values_as_text_become_what_the_schema_says(desk: Desk) -> None:
    desk.backend.queue(calling(call("search_history", {"query": "port", "limit": "3"})), "Port 8080.")
    seen = await play(desk, "B26", 'a number argument as the text "3"')
    assert of(seen.events, ToolFinished)[0].ok
    stored = desk.session.stores.history.messages(desk.session.id)[-1].meta["tools"][0]
    assert stored["arguments"] == {"query": "port", "limit": 3}


async def test_results_are_matched_by_order_when_calls_have_no_ids(desk: Desk) -> None:
    two = (call("read_memory", {"path": "AGENTS.md"}, id=""), call("recall", {"query": "port"}, id=""))
    desk.backend.queue(calling(*two), "Port 8080.")
    seen = await play(desk, "B27", "two calls without ids")
    results = [m for m in desk.body["messages"] if m["role"] == "tool"]
    assert [m["tool_name"] for m in results] == ["read_memory", "recall"]
    assert len({event.call_id for event in of(seen.events, ToolStarted)}) == 2


async def test_our_own_ids_are_unique_over_turns_and_foreign_ones_are_not_sent(desk: Desk) -> None:
    two = (call("read_memory", {"path": "AGENTS.md"}, id="1"), call("recall", {"query": "port"}, id="1"))
    desk.backend.queue(calling(*two), "Yes.", calling(*two), "Port 8080.")
    first = await desk.say("Is there a port?")
    seen = await play(desk, "B28", "parallel calls whose ids are the same, in two turns")
    started = [*of(first, ToolStarted), *of(seen.events, ToolStarted)]
    assert len({event.call_id for event in started}) == 4
    sent = [one for m in desk.body["messages"] for one in m.get("tool_calls", ())]
    assert len(sent) == 4
    assert not any("id" in one for one in sent)


async def test_tool_schemas_are_flat_and_their_limits_are_checked_in_code(desk: Desk) -> None:
    desk.backend.queue(calling(call("search_history", {"query": "port", "limit": 9_999_999})), "Port 8080.")
    await play(desk, "B29", "a limit far above what the schema's description says")
    specs = [spec for tool in desk.body["tools"] for spec in tool["function"]["parameters"]["properties"].values()]
    assert specs
    for spec in specs:
        assert set(spec) <= {"type", "description", "items", "enum"}
        assert spec["type"] in ("string", "integer", "array", "boolean")
        assert spec.get("items", {"type": "string"}) == {"type": "string"}


async def test_a_call_without_arguments_is_a_call_with_none(desk: Desk) -> None:
    def line(**arguments: Any) -> bytes:
        function = {"name": "read_memory", **arguments}
        message = {"role": "assistant", "content": "", "tool_calls": [{"function": function}]}
        return json.dumps({"model": "m", "message": message, "done": False}).encode() + b"\n"

    odd = (line(arguments=None), line(arguments=""), line())
    desk.backend.queue(Script(Raw(odd), Done()), "Port 8080.")
    seen = await play(desk, "B30", "three calls whose arguments are null, an empty text, and missing")
    assert [event.arguments for event in of(seen.events, ToolStarted)] == [{}, {}, {}]
    assert '"path"' in of(seen.events, ToolFinished)[0].result
    assert seen.text == "Port 8080."
    assert all("properties" in tool["function"]["parameters"] for tool in desk.body["tools"])


async def test_no_empty_list_of_tools_is_sent(open_desk: Open) -> None:
    desk = await open_desk(tools=False)
    await play(desk, "B31", "a session without tools")
    assert "tools" not in desk.body


async def test_the_servers_version_is_kept_with_the_session(desk: Desk) -> None:
    await desk.say("Is there a port?")
    kept = desk.session.stores.history.load_state(desk.session.id, "server")
    assert kept == {"url": desk.server.url, "version": "0.33.0", "model": "qwen2.5-coder:1.5b"}
    assert desk.session.server.version == "0.33.0"
    await play(
        desk,
        "B32",
        "any server: its version is read at the beginning",
        disk=f"with the session: server {kept['version']}, model {kept['model']}",
    )


async def test_a_tool_that_is_cancelled_leaves_a_result_and_an_answer(desk: Desk) -> None:
    running = asyncio.Event()

    async def slow(arguments: Any, context: Any) -> ToolResult:
        running.set()
        await asyncio.sleep(60)
        raise AssertionError

    tool = desk.session.core.toolbox._tools["read_memory"]
    object.__setattr__(tool, "run", slow)
    desk.backend.queue(calling(READ, call("recall", {"query": "port"}), text="Let me see."), "Port 8080.")
    turn = asyncio.create_task(desk.say("Is there a port?"))
    await running.wait()
    await desk.session.stop()
    assert desk.last(await turn).status == "stopped"
    await play(desk, "B33", "stopped while a tool ran, then the next question")
    messages = desk.body["messages"]
    results = [m["content"] for m in messages if m["role"] == "tool"]
    assert len(results) == 2
    assert all("Cancelled by the user" in result for result in results)
    assert [m["role"] for m in messages] == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]


async def test_a_call_that_a_killed_app_left_without_its_result_is_closed(open_desk: Open) -> None:
    asked = {"role": "user", "content": "And?"}
    desk = await old_session(open_desk, asked, asked, CALLED)
    desk.backend.queue("Port 8080.")
    seen = await play(desk, "B33b", "a session that was killed in the middle of a tool round, after two user turns")
    assert seen.text == "Port 8080."
    messages = desk.body["messages"]
    assert [m["role"] for m in messages[3:]] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[3]["content"] == "And?\n\nAnd?"
    assert messages[5]["content"] == "(cancelled by the user)"


async def test_a_call_that_was_cut_by_a_stop_is_not_in_the_history(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script("Let me see.", Calls((READ,)), gate), "Port 8080.")
    async for event in desk.session.send("Is there a port?"):
        if isinstance(event, TextDelta):
            await desk.session.stop()
    await play(desk, "B33c", "stopped in the middle of a reply with a call, then the next question")
    assert not any(m.get("tool_calls") for m in desk.body["messages"])
    assert desk.body["messages"][2]["content"].endswith("(stopped by the user)")


async def test_a_full_window_is_cut_between_turns_only(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=2048)
    desk.backend.default = lambda request: (
        "A short summary." if "summar" in request.messages[-1]["content"].casefold() else "Port 8080. " * 30
    )
    heard: list[Any] = []
    for number in range(12):
        desk.backend.queue(calling(call("recall", {"query": f"port {number}"})))
        heard += await desk.say(f"Question {number}? " + "Some more words about it. " * 12)
        assert legal_problem(desk.body["messages"]) == ""
    await play(desk, "B34", "twelve long turns with tool results in a window of 2,048 tokens")
    assert any("summarised for the model" in notice.text for notice in of(heard, Notice))
    for one in desk.server.chats:
        assert one.notes["dropped_messages"] == 0
        calls = sum(len(m.get("tool_calls", ())) for m in one.messages)
        assert calls == sum(m["role"] == "tool" for m in one.messages)
