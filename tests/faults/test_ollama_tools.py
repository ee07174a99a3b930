"""Tool calls and the loop of rounds: what models and servers do to them, and what the session makes of it."""

from __future__ import annotations

import json

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.agent.conftest import Desk, Open, of
from tests.faults.ollama_table import play, steady  # noqa: F401
from tui_agent.agent.events import MemoryChanged, Notice, PhaseChanged, TextDelta, ToolFinished, ToolStarted
from tui_agent.agent.prompt import legal_problem
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.script import Calls, Done, Fail, Gate, Raw, Say, Script, Think, answer, call, calling

READ = call("read_memory", {"path": "AGENTS.md"})


async def test_a_swallowed_call_is_asked_for_once_more_with_the_valid_names(desk: Desk) -> None:
    desk.backend.queue(faults.empty_answer(), "Port 8080.")
    seen = await play(desk, "B1", "empty message although tokens were generated, then an answer")
    assert seen.text == "Port 8080."
    assert "edit_file" in desk.server.chats[1].messages[-1]["content"]


async def test_an_unknown_tool_is_answered_with_those_that_exist(desk: Desk) -> None:
    desk.backend.queue(calling(call("open_door", {})), "Port 8080.")
    seen = await play(desk, "B2", "a call of a tool that does not exist")
    assert "edit_file" in desk.body["messages"][-1]["content"]
    assert seen.end.status == "answered"


async def test_a_misspelt_tool_is_not_run_and_the_closest_one_is_named(desk: Desk) -> None:
    desk.backend.queue(calling(call("read_memmory", {"path": "AGENTS.md"})), "Port 8080.")
    seen = await play(desk, "B3", "a call of `read_memmory`")
    assert not of(seen.events, ToolFinished)[0].ok
    assert "read_memory" in of(seen.events, ToolFinished)[0].result


async def test_a_small_model_is_offered_few_tools_and_its_empty_turn_is_told(desk: Desk) -> None:
    desk.backend.queue(Script(Think("Which of them?")), Script(Think("Hmm.")))
    seen = await play(desk, "B4", "a 1.5B model that thinks and says nothing, twice")
    assert len(desk.body["tools"]) <= 8
    assert seen.end.status == "empty"
    assert seen.end.exit_code == 5


async def test_an_empty_turn_after_a_tool_result_is_asked_for_once_more(desk: Desk) -> None:
    desk.backend.queue(calling(READ), faults.empty_answer(), faults.empty_answer())
    seen = await play(desk, "B5", "a tool result, then nothing, twice")
    assert len(desk.server.chats) == 3
    assert seen.end.status == "empty"
    assert of(seen.events, ToolFinished)[0].ok


async def test_an_empty_answer_stands_in_the_request_as_a_placeholder(desk: Desk) -> None:
    desk.backend.queue(faults.empty_answer(), faults.empty_answer(), "Port 8080.")
    await desk.say("First question?")
    await play(desk, "B6", "an empty answer, then the next question")
    assert all(m.get("content") or m.get("tool_calls") for m in desk.body["messages"] if m["role"] == "assistant")


async def test_the_servers_version_is_known_and_an_old_one_is_named(desk: Desk) -> None:
    desk.server.app.routes[:] = [route for route in desk.server.app.routes if route.path != "/api/version"]

    async def old(request: Request) -> JSONResponse:
        return JSONResponse({"version": "0.6.2"})

    desk.server.app.routes.append(Route("/api/version", old))
    seen = await play(desk, "B7", "a server of version 0.6.2")
    assert desk.session.server.version == "0.6.2"
    assert any("too old" in notice for notice in seen.notices)


FENCED = '```json\n{"name": "read_memory", "arguments": {"path": "AGENTS.md"}}\n```'


async def test_a_call_written_as_json_is_rescued(desk: Desk) -> None:
    desk.backend.queue(answer(FENCED), "Port 8080.")
    seen = await play(desk, "B8", "a call as fenced JSON in the text")
    assert of(seen.events, ToolStarted)[0].rescued


async def test_empty_content_beside_calls_is_not_sent(desk: Desk) -> None:
    desk.backend.queue(calling(READ), "Port 8080.")
    await play(desk, "B9", "a call without any text beside it")
    assert "content" not in next(m for m in desk.body["messages"] if m.get("tool_calls"))


async def test_a_call_in_xml_without_its_opener_is_rescued(desk: Desk) -> None:
    text = "<function=read_memory>\n<parameter=path>\nAGENTS.md\n</parameter>\n</function>\n</tool_call>"
    desk.backend.queue(answer(text), "Port 8080.")
    seen = await play(desk, "B10", "a call in XML, its opening tag missing")
    assert of(seen.events, ToolFinished)[0].ok
    assert "<function" not in "".join(e.text for e in of(seen.events, TextDelta))


async def test_a_call_the_server_cannot_read_is_asked_for_again_with_other_sampling(desk: Desk) -> None:
    desk.backend.queue(faults.tool_parser_failed(), "Port 8080.")
    seen = await play(desk, "B11", "500: the server's parser fails on the model's call, once")
    first, second = (record.body for record in desk.server.chats)
    assert first["messages"] == second["messages"]
    assert first["options"] != second["options"]
    assert desk.backend.runners.reloads == 0
    assert seen.text == "Port 8080."


async def test_a_second_parser_failure_ends_the_turn_and_offers_to_unload(desk: Desk) -> None:
    desk.backend.queue(faults.tool_parser_failed(), faults.tool_parser_failed())
    seen = await play(desk, "B12", "the same failure twice: the model is wedged")
    assert seen.end.error_kind == "tool_parser_failed"
    assert any("models unload" in notice for notice in seen.notices)
    assert len(desk.server.chats) == 2


async def test_channel_marks_in_a_name_are_cleaned_away(desk: Desk) -> None:
    desk.backend.queue(calling(call("functions.read_memory<|channel|>commentary", {"path": "AGENTS.md"})), "Port 8080.")
    seen = await play(desk, "B13", "a name with `functions.` before it and channel marks after it")
    assert of(seen.events, ToolFinished)[0].ok


async def test_raw_json_of_an_old_server_is_rescued(desk: Desk) -> None:
    desk.backend.queue(answer('[{"name": "read_memory", "arguments": {"path": "AGENTS.md"}}]'), "Port 8080.")
    seen = await play(desk, "B14", "a list of calls as raw JSON, as servers before 0.4.6 stream it")
    assert of(seen.events, ToolStarted)[0].rescued


async def test_a_server_that_fails_on_tools_is_tried_without_them_and_that_is_remembered(
    desk: Desk, open_desk: Open
) -> None:
    failed = Script(Fail(500, "template: :1:69: executing at <.Tools>: can't evaluate field"))
    desk.backend.when(lambda request: bool(request.tools), failed)
    desk.backend.default = "Port 8080."
    seen = await play(desk, "B15", "500 for every request that offers tools")
    assert seen.text == "Port 8080."
    assert any("remembered" in notice for notice in seen.notices)
    again = await open_desk()
    await again.say("Hello?")
    assert "tools" not in again.body


async def test_text_beside_a_call_is_shown_before_it(desk: Desk) -> None:
    desk.backend.queue(calling(READ, text="Let me look."), "Port 8080.")
    seen = await play(desk, "B16", "text, then a call, in one reply")
    kinds = [type(event) for event in seen.events if isinstance(event, (TextDelta, ToolStarted))]
    assert kinds.index(TextDelta) < kinds.index(ToolStarted)
    assert seen.text == "Let me look.\n\nPort 8080."


async def test_a_call_on_the_last_object_counts(desk: Desk) -> None:
    desk.backend.queue(Script(Done(calls=(READ,), content="")), "Port 8080.")
    seen = await play(desk, "B17", "the call rides on the object with `done`, beside empty content")
    assert of(seen.events, ToolFinished)[0].ok


async def test_calls_of_one_request_do_not_come_back_in_the_next(desk: Desk) -> None:
    desk.backend.queue(calling(READ), calling(call("recall", {"query": "port"})), "Port 8080.")
    seen = await play(desk, "B18", "a call in each of two rounds")
    assert [event.name for event in of(seen.events, ToolStarted)] == ["read_memory", "recall"]


async def test_a_model_that_repeats_a_call_is_told_and_then_stopped(desk: Desk) -> None:
    desk.backend.default = lambda request: calling(READ)
    seen = await play(desk, "B19", "the same call for ever")
    finished = of(seen.events, ToolFinished)
    assert [event.ok for event in finished] == [True, False, False, False]
    assert "already" in finished[1].result
    assert "tools" in desk.body


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
async def test_the_last_text_is_kept_after_any_number_of_rounds(desk: Desk, rounds: int) -> None:
    desk.backend.queue(*(calling(call("recall", {"query": f"port {n}"})) for n in range(rounds)), "Port 8080.")
    if rounds == 5:
        await play(desk, "B20", "five rounds of calls, then the answer")
    else:
        await desk.say("Which port does the server use?")
    assert (await desk.session.transcript())[-1].text == "Port 8080."


async def test_the_phase_comes_from_the_loop_and_ends_in_idle(desk: Desk) -> None:
    desk.backend.queue(calling(READ), faults.empty_answer(), faults.empty_answer())
    seen = await play(desk, "B21", "nothing at all after the tool")
    phases = [event.phase for event in of(seen.events, PhaseChanged)]
    assert "tool" in phases
    assert phases[-1] == "idle"


async def test_thinking_is_sent_back_within_the_turn_and_dropped_after_it(desk: Desk) -> None:
    desk.backend.installed[:] = [model(capabilities=("completion", "tools", "thinking"))]
    desk.backend.queue(Script(Think("I look it up."), Calls((READ,))), "Port 8080.", "Yes.")
    await play(desk, "B22", "thinking before a call")
    assert any(m.get("thinking") for m in desk.body["messages"])
    await desk.say("Sure?")
    assert not any(m.get("thinking") for m in desk.body["messages"])


async def test_results_have_the_role_tool_and_the_tools_name(desk: Desk) -> None:
    desk.backend.queue(calling(READ), "Port 8080.")
    await play(desk, "B23", "one call and its result")
    assert [m["tool_name"] for m in desk.body["messages"] if m["role"] == "tool"] == ["read_memory"]


async def test_a_call_for_a_greeting_writes_nothing_without_proof(desk: Desk) -> None:
    claim = {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Bob\n"}
    desk.backend.queue(calling(call("edit_file", claim)), "Hello!")
    seen = await play(desk, "B24", "a call of edit_file as the answer to a greeting", "hello")
    assert "Bob" not in desk.memory("knowledge/user.md")
    assert not [event for event in of(seen.events, MemoryChanged) if event.what == "saved"]


async def test_arguments_are_stored_and_sent_as_objects(desk: Desk) -> None:
    as_text = {"function": {"name": "read_memory", "arguments": json.dumps({"path": "AGENTS.md"})}}
    line = {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [as_text]}, "done": False}
    desk.backend.queue(Script(Raw((json.dumps(line).encode() + b"\n",)), Done()), "Port 8080.", "Yes.")
    await play(desk, "B25", "arguments as a JSON string, which would poison every later request")
    await desk.say("Sure?")
    sent = [m["tool_calls"][0]["function"]["arguments"] for m in desk.body["messages"] if m.get("tool_calls")]
    assert sent == [{"path": "AGENTS.md"}]


async def test_values_as_text_become_what_the_schema_says(desk: Desk) -> None:
    desk.backend.queue(calling(call("search_history", {"query": "port", "limit": "3"})), "Port 8080.")
    seen = await play(desk, "B26", 'a number argument as the text "3"')
    assert of(seen.events, ToolFinished)[0].ok


async def test_results_are_matched_by_order_when_calls_have_no_ids(desk: Desk) -> None:
    two = (call("read_memory", {"path": "AGENTS.md"}, id=""), call("recall", {"query": "port"}, id=""))
    desk.backend.queue(calling(*two), "Port 8080.")
    await play(desk, "B27", "two calls without ids")
    assert [m["tool_name"] for m in desk.body["messages"] if m["role"] == "tool"] == ["read_memory", "recall"]


async def test_our_own_ids_are_unique_over_turns(desk: Desk) -> None:
    two = (call("read_memory", {"path": "AGENTS.md"}, id="1"), call("recall", {"query": "port"}, id="1"))
    desk.backend.queue(calling(*two), "Yes.", calling(*two), "Port 8080.")
    first = await desk.say("Is there a port?")
    seen = await play(desk, "B28", "parallel calls whose ids are the same, in two turns")
    ids = [event.call_id for event in (*of(first, ToolStarted), *of(seen.events, ToolStarted))]
    assert len(set(ids)) == 4


async def test_tool_schemas_are_flat(desk: Desk) -> None:
    await play(desk, "B29", "a plain question: the schemas that are sent")
    for tool in desk.body["tools"]:
        for spec in tool["function"]["parameters"]["properties"].values():
            assert set(spec) <= {"type", "description", "items", "enum"}
            assert spec["type"] in ("string", "integer", "array", "boolean")


async def test_a_call_without_arguments_is_a_call_with_none(desk: Desk) -> None:
    desk.backend.queue(calling(call("read_memory", None)), "Port 8080.")
    seen = await play(desk, "B30", "a call without arguments")
    assert of(seen.events, ToolFinished)
    assert all("properties" in tool["function"]["parameters"] for tool in desk.body["tools"])


async def test_no_empty_list_of_tools_is_sent(open_desk: Open) -> None:
    desk = await open_desk(tools=False)
    await play(desk, "B31", "a session without tools")
    assert "tools" not in desk.body


async def test_the_servers_version_is_part_of_the_status(desk: Desk) -> None:
    await play(desk, "B32", "any server: its version is read at the beginning", also="the version in the status")
    assert desk.session.server.version == "0.33.0"


async def test_a_cancelled_tool_round_leaves_a_history_every_template_takes(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script(Say("Let me see."), Calls((READ,)), gate), "Port 8080.")
    stream = desk.session.send("Is there a port?")
    async for event in stream:
        if isinstance(event, TextDelta):
            await desk.session.stop()
    await play(desk, "B33", "stopped in the middle of a tool call, then the next question")
    assert legal_problem(desk.body["messages"]) == ""


async def test_a_full_window_is_cut_between_turns_only(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=2048)
    desk.backend.default = lambda request: (
        "A short summary." if "summar" in request.messages[-1]["content"].casefold() else "Port 8080. " * 30
    )
    for number in range(12):
        desk.backend.queue(calling(call("recall", {"query": f"port {number}"})))
        await desk.say(f"Question {number}? " + "Some more words about it. " * 12)
        assert legal_problem(desk.body["messages"]) == ""
    seen = await play(desk, "B34", "twelve long turns with tool results in a window of 2,048 tokens")
    assert any("summar" in notice.text for notice in of([*desk.heard, *seen.events], Notice)) or "summary" in str(
        desk.body["messages"]
    )
    assert all(record.notes["dropped_messages"] == 0 for record in desk.server.chats)
