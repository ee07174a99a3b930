"""One generation: what the client sends, what it reads, what it tries again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.llm.lines import DONE, HELLO, OPTIONS, Scripted, collect, error, ndjson, say
from tui_agent.llm.client import ModelClient
from tui_agent.llm.errors import (
    BadRequest,
    GenerationFailed,
    ModelError,
    ModelMissing,
    ServerBusy,
    StreamIncomplete,
    ThinkUnsupported,
)
from tui_agent.llm.types import ModelOptions, ToolCall
from tui_agent.llm.wire.script import Gate, Script
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer

# -- what chat sends --------------------------------------------------------------------------------------------------


async def test_every_chat_request_carries_window_answer_limit_and_keep_alive_and_nothing_unasked(
    scripted: Scripted,
) -> None:
    client, script, _ = scripted(ndjson(DONE))
    await collect(client)
    assert script.bodies[0] == {
        "model": "m",
        "messages": HELLO,
        "stream": True,
        "options": {"num_ctx": 8192, "num_predict": 1024, "temperature": 0.2},
        "keep_alive": "30m",
    }
    assert script.requests[0].url == "http://127.0.0.1:11434/api/chat"


async def test_tools_think_and_format_are_sent_when_given(scripted: Scripted) -> None:
    client, script, _ = scripted(ndjson(DONE))
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    await collect(client, tools=[tool], think=False)
    await collect(client, think="low", format={"type": "object"})
    assert script.bodies[0]["tools"] == [tool]
    assert script.bodies[0]["think"] is False
    assert (script.bodies[1]["think"], script.bodies[1]["format"]) == (False, {"type": "object"})
    with pytest.raises(ValueError, match="together"):
        await collect(client, tools=[tool], format="json")


async def test_tool_call_arguments_are_sent_as_objects_and_empty_content_beside_calls_is_left_out(
    scripted: Scripted,
) -> None:
    client, script, _ = scripted(ndjson(DONE))
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "x", "thinking": None, "images": []},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "call_1", "function": {"name": "a", "arguments": '{"path": "ż"}'}},
                {"id": "", "function": {"name": "b", "arguments": None}},
            ],
        },
        {"role": "tool", "tool_name": "a", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": []},
    ]
    await collect(client, history)
    assert script.bodies[0]["messages"] == [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "call_1", "function": {"name": "a", "arguments": {"path": "ż"}}},
                {"function": {"name": "b", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_name": "a", "content": ""},
        {"role": "assistant", "content": ""},
    ]


async def test_a_keep_alive_of_digits_alone_is_sent_as_a_number_because_servers_refuse_it_as_text(
    scripted: Scripted,
) -> None:
    client, script, _ = scripted(ndjson(DONE))
    options = ModelOptions(num_ctx=1024, num_predict=512, keep_alive="-1")
    assert [c.done async for c in client.chat("m", HELLO, options=options)] == [True]
    assert script.bodies[0]["keep_alive"] == -1


async def test_half_a_surrogate_pair_in_a_message_does_not_break_the_request(scripted: Scripted) -> None:
    client, script, _ = scripted(ndjson(DONE))
    await collect(client, [{"role": "user", "content": "a\ud83d"}])
    assert script.bodies[0]["messages"][0]["content"] == "a?"


async def test_an_empty_conversation_is_refused_since_it_would_only_load_the_model(scripted: Scripted) -> None:
    client, script, _ = scripted(ndjson(DONE))
    with pytest.raises(BadRequest):
        await collect(client, [])
    assert script.requests == []


async def test_nothing_limits_how_long_a_model_may_load_but_connecting_and_small_questions_are_limited(
    scripted: Scripted,
) -> None:
    client, script, _ = scripted(ndjson(DONE), httpx.Response(200, json={"version": "0.33.0"}), connect_timeout=3.0)
    await collect(client)
    assert await client.version() == "0.33.0"
    chat, version = (request.extensions["timeout"] for request in script.requests)
    assert (chat["connect"], chat["read"], chat["write"], chat["pool"]) == (3.0, None, None, None)
    assert version["read"] == 30.0


# -- what chat reads --------------------------------------------------------------------------------------------------


async def test_thinking_content_and_metrics_arrive_as_they_are_sent(scripted: Scripted) -> None:
    client, _, _ = scripted(ndjson(say("", thinking="hm"), say("Hel"), say("lo"), DONE))
    chunks = await collect(client)
    assert [(c.thinking, c.content, c.done) for c in chunks] == [
        ("hm", "", False), ("", "Hel", False), ("", "lo", False), ("", "", True),
    ]  # fmt: skip
    metrics = chunks[-1].metrics
    assert metrics is not None
    assert (metrics.prompt_tokens, metrics.output_tokens, metrics.cached_tokens) == (120, 40, None)
    assert (metrics.total_s, metrics.load_s, metrics.prompt_s, metrics.output_s) == (2.5, 0.001, 0.5, 2.0)
    assert metrics.tokens_per_second == 20.0


async def test_calls_content_and_thinking_on_the_done_object_are_read(scripted: Scripted) -> None:
    call = {"id": "call_ab12cd34", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}
    last = {**DONE, "message": {"role": "assistant", "content": "x", "thinking": "t", "tool_calls": [call]}}
    client, _, _ = scripted(ndjson(last))
    (chunk,) = await collect(client)
    assert chunk.tool_calls == (ToolCall("f", {"a": 1}, id="call_ab12cd34"),)
    assert (chunk.content, chunk.thinking, chunk.done, chunk.done_reason) == ("x", "t", True, "stop")


async def test_calls_and_empty_content_in_one_chunk_several_calls_and_missing_ids_are_all_read(
    scripted: Scripted,
) -> None:
    calls = [{"function": {"name": "a", "arguments": {}}}, {"function": {"name": "b", "arguments": {}, "index": 0}}]
    client, _, _ = scripted(ndjson(say("so"), say("", tool_calls=calls), say("", tool_calls=calls[:1]), DONE))
    chunks = await collect(client)
    assert [[call.name for call in chunk.tool_calls] for chunk in chunks] == [[], ["a", "b"], ["a"], []]
    assert {call.id for chunk in chunks for call in chunk.tool_calls} == {""}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"a": 1}, {"a": 1}), (None, {}), ("", {}), ('{"a": "ł"}', {"a": "ł"}), ("{'a': 1,}", {"a": 1}), ([1], {}),
    ],
)  # fmt: skip
async def test_arguments_always_become_an_object(scripted: Scripted, sent: Any, read: dict[str, Any]) -> None:
    client, _, _ = scripted(ndjson(say("", tool_calls=[{"function": {"name": "f", "arguments": sent}}]), DONE))
    assert (await collect(client))[0].tool_calls[0].arguments == read


@pytest.mark.parametrize("name", ["functions.search", " search", "search<|channel|>commentary"])
async def test_channel_debris_around_a_call_name_is_removed(scripted: Scripted, name: str) -> None:
    client, _, _ = scripted(ndjson(say("", tool_calls=[{"function": {"name": name, "arguments": {}}}]), DONE))
    assert (await collect(client))[0].tool_calls[0].name == "search"


async def test_odd_fields_are_ignored_instead_of_breaking_the_stream(scripted: Scripted) -> None:
    odd = {"done": False, "message": {"content": None, "thinking": 3, "tool_calls": [7, {"function": "x"}]}, "new": 1}
    client, _, _ = scripted(ndjson(odd, {"done": False}, {"done": True, "eval_count": "many", "done_reason": 4}))
    chunks = await collect(client)
    assert [(c.content, c.thinking, c.tool_calls) for c in chunks] == [("", "", ())] * 3
    assert chunks[-1].done_reason is None
    assert chunks[-1].metrics is not None
    assert chunks[-1].metrics.output_tokens is None


async def test_any_cut_of_the_bytes_gives_the_same_text_and_only_newlines_split_lines(scripted: Scripted) -> None:
    text = "żółć 👩🏽‍🚀 a\u0085b\u2028c\x7f Привет"
    data = b"\n" + ndjson(say(text), say("…")) + b"\r\n" + ndjson(DONE)[:-1]
    for size in (1, 2, 3, 7, len(data)):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]

        async def body(pieces: list[bytes] = pieces) -> AsyncIterator[bytes]:
            for piece in pieces:
                yield piece

        client, _, _ = scripted(httpx.Response(200, content=body()))
        chunks = await collect(client)
        assert "".join(chunk.content for chunk in chunks) == text + "…"
        assert chunks[-1].done


async def test_half_a_surrogate_pair_from_a_server_becomes_a_replacement_character(scripted: Scripted) -> None:
    data = b'{"message":{"content":"a\\ud83d"},"done":false}\n' + ndjson(DONE)
    client, _, _ = scripted(data)
    assert (await collect(client))[0].content == "a\ufffd"


@pytest.mark.parametrize(("header", "cached"), [("1509", 1509), ("0", 0), ("x", None), ("-3", None)])
async def test_the_cached_count_comes_from_the_private_header(
    scripted: Scripted, header: str, cached: int | None
) -> None:
    client, _, _ = scripted(httpx.Response(200, headers={"X-Prompt-Cached": header}, content=ndjson(DONE)))
    metrics = (await collect(client))[-1].metrics
    assert metrics is not None
    assert metrics.cached_tokens == cached


async def test_a_cached_count_in_the_last_line_is_read_too(scripted: Scripted) -> None:
    client, _, _ = scripted(ndjson({**DONE, "prompt_eval_cached_count": 99}))
    metrics = (await collect(client))[-1].metrics
    assert metrics is not None
    assert metrics.cached_tokens == 99


# -- trying again -----------------------------------------------------------------------------------------------------


async def test_a_missing_model_is_named_with_url_and_both_ways_out(scripted: Scripted) -> None:
    client, script, waits = scripted(error(404, "model 'm' not found"))
    with pytest.raises(ModelMissing) as caught:
        await collect(client)
    assert str(caught.value) == (
        "The model m is not installed at http://127.0.0.1:11434. "
        "Run `ollama pull m` or choose another model with ctrl+o."
    )
    assert (len(script.requests), waits, caught.value.exit_code) == (1, [], 4)


async def test_a_model_that_cannot_think_is_asked_again_without_and_this_is_remembered_for_it_alone(
    scripted: Scripted,
) -> None:
    client, script, _ = scripted(error(400, '"m" does not support thinking'), ndjson(say("hi"), DONE))
    assert (await collect(client, think=True))[0].content == "hi"
    await collect(client, think=True)
    assert [body.get("think") for body in script.bodies] == [True, None, None]
    async for _ in client.chat("other", HELLO, options=OPTIONS, think=True):
        pass
    assert script.bodies[-1]["think"] is True


async def test_a_think_error_without_think_in_the_request_is_not_tried_again(scripted: Scripted) -> None:
    client, script, _ = scripted(error(400, '"m" does not support thinking'))
    with pytest.raises(ThinkUnsupported):
        await collect(client)
    assert len(script.requests) == 1


async def test_a_full_queue_is_tried_three_times_with_longer_waits(scripted: Scripted) -> None:
    busy = "server busy, please try again.  maximum pending requests exceeded"
    client, script, waits = scripted(error(503, busy))
    with pytest.raises(ServerBusy, match="queue is full"):
        await collect(client)
    assert (len(script.requests), waits) == (3, [1.5, 3.0])
    client, script, waits = scripted(error(503, busy), ndjson(say("hi"), DONE))
    assert (await collect(client))[0].content == "hi"
    assert (len(script.requests), waits) == (2, [1.5])


async def test_a_full_queue_is_waited_for_when_loading_and_embedding_too(scripted: Scripted) -> None:
    client, script, _ = scripted(error(503, "server busy"), httpx.Response(200, json={"embeddings": [[1.0]]}))
    assert await client.embed("m", ["x"]) == [[1.0]]
    assert len(script.requests) == 2
    client, script, _ = scripted(error(503, "server busy"))
    with pytest.raises(ServerBusy):
        await client.load("m", OPTIONS)
    assert len(script.requests) == 3


CRASH = "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error"


async def test_a_runner_crash_before_any_token_is_tried_once_more(scripted: Scripted) -> None:
    client, script, waits = scripted(error(500, CRASH), ndjson(say("hi"), DONE))
    assert (await collect(client))[0].content == "hi"
    assert (len(script.requests), waits) == (2, [1.5])
    client, script, _ = scripted(error(500, CRASH))
    with pytest.raises(GenerationFailed, match="num_ctx: 4096"):
        await collect(client)
    assert len(script.requests) == 2


async def test_a_crash_after_a_token_or_another_500_is_not_tried_again(scripted: Scripted) -> None:
    client, script, _ = scripted(ndjson(say("x"), {"error": CRASH}))
    with pytest.raises(GenerationFailed):
        await collect(client)
    assert len(script.requests) == 1
    client, script, _ = scripted(error(500, "XML syntax error on line 1"))
    with pytest.raises(ModelError):
        await collect(client)
    assert len(script.requests) == 1


async def test_an_answer_that_only_says_loaded_is_asked_for_again_once(scripted: Scripted) -> None:
    loaded = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "load"}
    client, script, _ = scripted(ndjson(loaded), ndjson(say("hi"), DONE))
    assert [c.content for c in await collect(client)] == ["hi", ""]
    assert script.bodies[0] == script.bodies[1]
    client, script, _ = scripted(ndjson(loaded))
    with pytest.raises(StreamIncomplete, match="did not answer"):
        await collect(client)
    assert len(script.requests) == 2


async def test_it_is_said_when_the_request_has_left_before_anything_comes_back() -> None:
    gate = Gate()
    left: list[bool] = []
    backend = ScriptedBackend(default=Script(gate, "Hello."))
    async with WireServer(backend) as server:
        client = ModelClient(server.url)
        options = ModelOptions(num_ctx=4096, num_predict=64)
        stream = client.chat("qwen2.5-coder:1.5b", HELLO, options=options, sent=lambda: left.append(gate.opened))
        first = asyncio.create_task(anext(stream))
        await gate.reached()
        assert left == [False]
        gate.open()
        await first
        await stream.aclose()
        assert left == [False]
        await client.aclose()
