"""Tool calls: what models and servers do to them, and what the session makes of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.agent.conftest import Desk, Open, of
from tests.faults.ollama_table import plain, play, steady  # noqa: F401
from tests.faults.on_screen import at, command
from tui_agent.agent.events import Notice, PhaseChanged, TextDelta, ToolFinished, ToolStarted
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.backend import ChatRequest
from tui_agent.llm.wire.script import Calls, Done, Fail, Raw, Script, Think, answer, call, calling

READ = call("read_memory", {"path": "AGENTS.md"})
MODEL = "qwen2.5-coder:1.5b"


def version(desk: Desk, text: str) -> None:
    """Let the server be of this version."""

    async def old(request: Request) -> JSONResponse:
        return JSONResponse({"version": text})

    routes = desk.server.app.routes
    routes[:] = [route for route in routes if route.path != "/api/version"]
    routes.append(Route("/api/version", old))


async def test_a_swallowed_call_is_asked_for_once_more_with_the_valid_names(desk: Desk) -> None:
    desk.backend.queue(faults.empty_answer(), "Port 8080.")
    seen = await play(desk, "B1", "empty message although tokens were generated, then an answer")
    assert seen.text == "Port 8080."
    nudge = desk.server.chats[1].messages[-1]["content"]
    names = [tool["function"]["name"] for tool in desk.body["tools"]]
    assert all(name in nudge for name in names)
    assert len(desk.server.chats) == 2


async def test_an_empty_answer_after_the_second_try_is_a_notice_and_no_blank_bubble(desk: Desk) -> None:
    desk.backend.queue(faults.empty_answer(), faults.empty_answer())
    seen = await play(desk, "B1b", "the same twice")
    assert len(desk.server.chats) == 2
    assert seen.end.status == "empty"
    assert any("gave no answer" in notice for notice in seen.notices)
    assert not of(seen.events, TextDelta)
    assert [entry.role for entry in await desk.session.transcript()] == ["user"]


async def test_an_unknown_tool_is_answered_with_those_that_exist(desk: Desk) -> None:
    desk.backend.queue(calling(call("open_door", {})), "Port 8080.")
    seen = await play(desk, "B2", "a call of a tool that does not exist")
    result = desk.body["messages"][-1]
    assert result["role"] == "tool"
    assert all(tool["function"]["name"] in result["content"] for tool in desk.body["tools"])
    assert (seen.end.status, len(desk.server.chats)) == ("answered", 2)


async def test_a_misspelt_tool_is_not_run_and_the_closest_one_is_named(desk: Desk) -> None:
    desk.backend.queue(calling(call("read_memmory", {"path": "AGENTS.md"})), "Port 8080.")
    seen = await play(desk, "B3", "a call of `read_memmory`")
    (finished,) = of(seen.events, ToolFinished)
    assert not finished.ok
    assert 'Did you mean "read_memory"?' in finished.result


async def test_wrong_arguments_are_refused_before_anything_runs(desk: Desk) -> None:
    wrong = {"path": "knowledge/user.md", "old_string": "", "new_strin": "Name: Bob\n"}
    desk.backend.queue(calling(call("edit_file", wrong)), "Port 8080.")
    before = sorted(path.name for path in desk.project.memory_dir.rglob("*"))
    seen = await play(desk, "B3b", "a call of edit_file with a misspelt argument")
    (finished,) = of(seen.events, ToolFinished)
    assert not finished.ok
    assert 'Did you mean "new_string"?' in finished.result or '"new_string"' in finished.result
    assert sorted(path.name for path in desk.project.memory_dir.rglob("*")) == before


async def test_a_small_model_is_offered_few_tools_and_its_empty_turn_is_told(desk: Desk) -> None:
    offered = desk.session.core.toolbox._tools
    some = next(iter(offered.values()))
    offered.update({f"more_{number}": replace(some, name=f"more_{number}") for number in range(12)})
    desk.backend.queue(Script(Think("Which of them?")), Script(Think("Hmm.")))
    seen = await play(desk, "B4", "a 1.5B model, twenty tools, and twice it thinks and says nothing")
    assert 5 <= len(desk.body["tools"]) <= 8
    assert (seen.end.status, seen.end.error_kind, seen.end.exit_code) == ("empty", "empty_answer", 5)
    (told,) = of(seen.events, Notice)
    assert told.level == "error"
    assert all(words in told.text for words in ("only thinking", "without tools (/tools)", "ctrl+o"))


async def test_an_empty_turn_after_a_tool_result_is_asked_for_once_more_and_then_the_result_is_shown(
    desk: Desk,
) -> None:
    found = call("recall", {"query": "port"})
    desk.backend.queue(calling(found), faults.empty_answer(), faults.empty_answer(), "Port 8080.")
    seen = await play(desk, "B5", "a tool result, then nothing, twice")
    assert len(desk.server.chats) == 3
    (finished,) = of(seen.events, ToolFinished)
    assert finished.ok
    told = f"recall said: “{' '.join(finished.result.split())}”"
    assert any("gave no answer" in one and told in one for one in seen.notices)
    nudge = desk.body["messages"][-1]["content"]
    assert "Your last reply was empty" in nudge
    stored = desk.session.stores.history.messages(desk.session.id)
    assert not [row for row in stored if "last reply was empty" in row.content or "(no answer)" in row.content]
    assert "last reply was empty" not in str(await desk.session.transcript())


async def test_an_empty_answer_stands_in_the_request_as_a_placeholder(desk: Desk) -> None:
    desk.backend.queue(faults.empty_answer(), faults.empty_answer(), "Port 8080.")
    await desk.say("First question?")
    seen = await play(desk, "B6", "an empty answer, then the next question")
    assert all(m.get("content") or m.get("tool_calls") for m in desk.body["messages"] if m["role"] == "assistant")
    assert [m["content"] for m in desk.body["messages"] if m["role"] == "assistant"] == ["(no answer)"] * 2
    stored = desk.session.stores.history.messages(desk.session.id)
    assert [row.content for row in stored if row.role == "assistant"] == [seen.text]


async def test_the_servers_version_is_known_and_an_old_one_is_named_by_the_doctor_too(desk: Desk) -> None:
    version(desk, "0.6.2")
    _, out, _ = await command(desk, "doctor", *at(desk, "--embed-model", "builtin", "--json"))
    (found,) = [one for one in json.loads(out)["findings"] if one["id"] == "version.old"]
    seen = await play(desk, "B7", "a server of version 0.6.2", also=f"doctor: {found['level']}: {found['text']}")
    assert desk.session.server.version == "0.6.2"
    assert any("too old" in notice and "0.30.1 or newer" in notice for notice in seen.notices)


FENCED = '```json\n{"name": "read_memory", "arguments": {"path": "AGENTS.md"}}\n```'


async def test_a_call_written_as_json_is_rescued(desk: Desk) -> None:
    desk.backend.queue(answer(FENCED), "Port 8080.")
    seen = await play(desk, "B8", "a call as fenced JSON in the text")
    assert of(seen.events, ToolStarted)[0].rescued
    assert "```" not in "".join(event.text for event in of(seen.events, TextDelta))
    assert desk.body["messages"][-2]["tool_calls"][0]["function"]["arguments"] == {"path": "AGENTS.md"}


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


LINE = Script(Raw((b'{"error":"XML syntax error on line 127: element <parameter> closed by </function>"}\n',)))


@pytest.mark.parametrize(
    ("row", "injected", "failure"),
    [
        ("B11", "500: the server's parser fails on the model's call, once", faults.tool_parser_failed()),
        ("B11b", "the same as an error line after the headers", LINE),
    ],
)
async def test_a_call_the_server_cannot_read_is_asked_for_again_with_other_sampling(
    desk: Desk, row: str, injected: str, failure: Script
) -> None:
    desk.backend.queue(failure, "Port 8080.")
    seen = await play(desk, row, injected)
    first, second = (record.body for record in desk.server.chats)
    assert first["messages"] == second["messages"]
    assert {name for name in second["options"] if second["options"][name] != first["options"].get(name)} == {
        "seed",
        "temperature",
    }
    assert desk.backend.runners.reloads == 0
    assert seen.text == "Port 8080."


async def test_a_second_parser_failure_ends_the_turn_and_unloading_as_offered_heals_it(desk: Desk) -> None:
    wedged = ["until it is unloaded"]
    unload = desk.backend.unload

    async def heal(name: str) -> None:
        wedged.clear()
        await unload(name)

    desk.backend.unload = heal  # type: ignore[method-assign]
    desk.backend.when(lambda request: bool(wedged), faults.tool_parser_failed())
    seen = await play(desk, "B12", "the same failure twice, and from then on: the model is wedged")
    assert seen.end.error_kind == "tool_parser_failed"
    offered = f"tui-agent models unload {MODEL}"
    assert any(offered in notice for notice in seen.notices)
    assert len(desk.server.chats) == 2
    desk.backend.default = "Port 8080."
    assert desk.last(await desk.say("Sure?")).status == "failed"
    code, out, _ = await command(desk, *offered.split()[1:], *at(desk))
    assert (code, "is unloaded" in out) == (0, True)
    assert desk.last(await desk.say("And now?")).text == "Port 8080."
    assert desk.backend.runners.loads == 2


async def test_channel_marks_in_a_name_are_cleaned_away(desk: Desk) -> None:
    desk.backend.queue(calling(call("functions.read_memory<|channel|>commentary", {"path": "AGENTS.md"})), "Port 8080.")
    seen = await play(desk, "B13", "a name with `functions.` before it and channel marks after it")
    assert [(event.name, event.ok) for event in of(seen.events, ToolFinished)] == [("read_memory", True)]
    sent = next(m for m in desk.body["messages"] if m.get("tool_calls"))
    assert sent["tool_calls"][0]["function"]["name"] == "read_memory"


async def test_a_server_that_cannot_stream_calls_is_asked_for_whole_answers(desk: Desk) -> None:
    version(desk, "0.4.2")
    raw = '{"name": "no such", "parameters": {}}'

    def old(request: ChatRequest) -> Script:
        return calling(READ) if not request.stream else answer(raw)

    desk.backend.queue(old, "Port 8080.")
    seen = await play(desk, "B14", "a server of version 0.4.2, which gives calls only where the answer is not streamed")
    assert [record.body["stream"] for record in desk.server.chats] == [False, False]
    (started,) = of(seen.events, ToolStarted)
    assert not started.rescued
    assert seen.text == "Port 8080."


async def test_raw_json_of_an_old_server_is_rescued(desk: Desk) -> None:
    desk.backend.queue(answer('[{"name": "read_memory", "arguments": {"path": "AGENTS.md"}}]'), "Port 8080.")
    seen = await play(desk, "B14b", "a list of calls as raw JSON, as servers before 0.4.6 stream it")
    assert of(seen.events, ToolStarted)[0].rescued
    assert desk.body["stream"] is True


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
    assert [event.ok for event in of(seen.events, ToolFinished)] == [True]


async def test_text_and_calls_of_one_chunk_both_count(desk: Desk) -> None:
    desk.backend.queue(Script(Calls((READ,), content="I look."), Done(content=" Now.")), "Port 8080.")
    seen = await play(desk, "B17b", "text and a call in one chunk, and more text on the object with `done`")
    assert [event.ok for event in of(seen.events, ToolFinished)] == [True]
    assert seen.text == "I look. Now.\n\nPort 8080."


async def test_calls_of_one_request_do_not_come_back_in_the_next(desk: Desk) -> None:
    desk.backend.queue(calling(READ), calling(call("recall", {"query": "port"})), "Port 8080.", "Yes.")
    seen = await play(desk, "B18", "a call in each of two rounds")
    assert [event.name for event in of(seen.events, ToolStarted)] == ["read_memory", "recall"]
    sent = [m["tool_calls"] for m in desk.body["messages"] if m.get("tool_calls")]
    assert [[one["function"]["name"] for one in calls] for calls in sent] == [["read_memory"], ["recall"]]
    assert not of(await desk.say("Sure?"), ToolStarted)
    assert [event.phase for event in of(seen.events, PhaseChanged)].count("tool") == 2


def test_addresses_in_the_table_are_those_of_the_usual_server() -> None:
    assert plain("at http://127.0.0.1:39999 and http://[::1]:1", "x") == (
        "at http://127.0.0.1:11434 and http://[::1]:11434"
    )
