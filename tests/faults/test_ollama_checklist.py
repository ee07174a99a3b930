"""What the scripted server can play, item by item, each against a whole session; and whether the table is complete."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.agent.conftest import Desk, Open, of
from tests.faults.old_sessions import old_session
from tests.faults.ollama_table import on_disk, play, record, steady  # noqa: F401
from tests.faults.on_screen import at, command
from tui_agent.agent.events import PhaseChanged, TextDelta, ToolFinished
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.catalog import embed_model, model
from tui_agent.llm.wire.script import Calls, Done, Gate, Joined, Say, Script, Think, Wait, answer, call, calling

MODEL = "qwen2.5-coder:1.5b"
READ = call("read_memory", {"path": "AGENTS.md"})


@pytest.fixture
async def raw(desk: Desk) -> AsyncIterator[httpx.AsyncClient]:
    """A plain HTTP client for what the session itself never sends."""
    async with httpx.AsyncClient(base_url=desk.server.url, trust_env=False) as client:
        yield client


def chat_body(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], **more}


# -- 13.1 and 13.2: what arrives when, and byte for byte ---------------------------------------------------------------


async def test_nothing_is_sent_before_the_first_chunk(desk: Desk) -> None:
    desk.backend.queue(Script("Port 8080.", load_delay=0.15, prompt_delay=0.15))
    seen = await play(desk, "13.1a", "headers held back until the first token; a slow load, then a slow prompt")
    phases = [event.phase for event in of(seen.events, PhaseChanged)]
    assert phases.index("loading") < phases.index("reading") < phases.index("generating")
    sent = desk.server.chats[0]
    assert sent.first_byte_at is not None
    assert sent.first_byte_at - sent.received_at >= 0.25


async def test_a_call_is_held_back_until_it_is_whole_without_any_sign_of_life(desk: Desk) -> None:
    desk.backend.queue(Script(Wait(0.2), Calls((READ,)), Wait(0.2), Done()), "Port 8080.")
    seen = await play(desk, "13.1b", "a call that is held back until it is whole, and nothing else meanwhile")
    assert [event.ok for event in of(seen.events, ToolFinished)] == [True]
    first = desk.server.chats[0]
    assert first.first_byte_at is not None
    assert first.first_byte_at - first.received_at >= 0.2


async def test_the_bytes_are_those_of_the_real_server(desk: Desk, raw: httpx.AsyncClient) -> None:
    desk.backend.queue("a < b & c", calling(READ))
    lines = (await raw.post("/api/chat", json=chat_body())).content.split(b"\n")
    assert rb"a \u003c b \u0026 c" in lines[0]
    assert lines[0].startswith(b'{"model":"qwen2.5-coder:1.5b","created_at":"')
    assert b": " not in re.sub(rb'"[^"]*"', b"", lines[0])
    assert json.loads(lines[-2])["message"]["content"] == ""
    loaded = json.loads((await raw.post("/api/chat", json=chat_body(messages=[]))).content)
    assert loaded["done_reason"] == "load"
    assert not any(key.endswith(("_count", "_duration")) for key in loaded)
    body = chat_body(tools=[{"type": "function", "function": {"name": "read_memory"}}])
    called = json.loads((await raw.post("/api/chat", json=body)).content.split(b"\n")[0])
    assert re.fullmatch(r"call_[a-z0-9]{8}", called["message"]["tool_calls"][0]["id"])
    assert called["message"]["content"] == ""
    assert called["message"]["tool_calls"][0]["function"]["index"] == 0
    desk.backend.queue("a < b & c")
    seen = await play(desk, "13.2", "compact JSON with Go's escapes, its order of keys and its ids")
    assert seen.text == "a < b & c"


# -- 13.3: variants of an answer ---------------------------------------------------------------------------------------

VARIANTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "13.3a": ("a call before the last object", (calling(READ), "Port 8080.")),
    "13.3b": ("a call on the last object", (faults.done_call("read_memory", {"path": "AGENTS.md"}), "Port 8080.")),
    "13.3c": ("a call without an id", (calling(call("read_memory", {"path": "AGENTS.md"}, id="")), "Port 8080.")),
    "13.3d": ("two calls in one chunk", (faults.many_calls(READ, call("recall", {"query": "port"})), "Port 8080.")),
    "13.3e": (
        "two calls in a chunk each",
        (faults.many_calls(READ, call("recall", {"query": "port"}), one_chunk=False), "Port 8080."),
    ),
    "13.3f": ("text, then a call", (calling(READ, text="I look."), "Port 8080.")),
    "13.3g": ("thinking, then a call", (Script(Think("I look."), Calls((READ,))), "Port 8080.")),
    "13.3h": ("an empty message although tokens were generated", (faults.empty_answer(), "Port 8080.")),
    "13.3i": ("a stream without its last object", (faults.no_done("It is port"),)),
    "13.3j": ("the connection is reset before anything came", (faults.cut_connection("", reset=True),)),
    "13.3k": ("the connection is closed in the middle", (faults.cut_connection("It is port"),)),
    "13.3l": ("an error line in the middle", (faults.error_mid_stream("It is port"),)),
    "13.3m": ("400 whose error is JSON in a string: the prompt is too long", (faults.context_exceeded(),)),
    "13.3n": ("the same as an object in the middle of the stream", (faults.context_exceeded_mid_stream("It is"),)),
    "13.3o": ("503 three times", (faults.server_busy(), faults.server_busy(), faults.server_busy())),
    "13.3p": ("404 in the middle of a session: the model was removed", (faults.missing_model("qwen2.5-coder:1.5b"),)),
    "13.3q": ("400: the model cannot use tools", (faults.tools_unsupported("qwen2.5-coder"), "Port 8080.")),
    "13.3r": ("400: the model cannot think, although nobody asked it to", (faults.think_unsupported(MODEL),)),
    "13.3s": ("401 with a link for signing in", (faults.sign_in(),)),
    "13.3t": ("403 with an empty body", (faults.forbidden(),)),
    "13.3u": ("502 with a proxy's page", (faults.html_502(),)),
}


@pytest.mark.parametrize("row", list(VARIANTS))
async def test_every_variant_of_an_answer_ends_in_a_defined_state(desk: Desk, row: str) -> None:
    injected, scripts = VARIANTS[row]
    desk.backend.queue(*scripts)
    seen = await play(desk, row, injected)
    assert desk.backend.unused == 0
    failed = row in {f"13.3{letter}" for letter in "ijklmnoprstu"}
    assert (seen.end.status in ("failed", "incomplete")) == failed
    assert bool(seen.end.error) == failed
    if not failed:
        assert seen.text.endswith("Port 8080.")
    desk.backend.queue("Still here.")
    assert desk.last(await desk.say("And now?")).text == "Still here."


async def test_a_missing_model_has_three_wordings_and_one_sentence(
    open_desk: Open, desk: Desk, raw: httpx.AsyncClient
) -> None:
    chat = (await raw.post("/api/chat", json=chat_body(model="nope"))).json()["error"]
    embed = (await raw.post("/api/embed", json={"model": "nope", "input": "x"})).json()["error"]
    show = (await raw.post("/api/show", json={"model": "nope"})).json()["error"]
    assert len({chat, embed, show}) == 3
    other = await open_desk(model="nope:latest")
    seen = await play(other, "13.3v", "404 to /api/show: the model was never installed")
    assert seen.end.exit_code == 4
    embedding = await open_desk()
    embedding.backend.installed.append(embed_model())
    embedding.session._connection.given_embedder = None
    await embedding.say("Is there a port?")
    del embedding.backend.installed[-1]
    await embedding.session.save_sentence("m1", "The server uses port 8080.")
    seen = await play(embedding, "13.3x", "404 to /api/embed: the embedding model was removed meanwhile")
    (told,) = [notice for notice in seen.notices if "by words alone" in notice]
    assert "nomic-embed-text:latest is not installed" in told
    assert seen.end.status == "answered"


async def test_a_model_that_another_program_deletes_is_missed_in_a_sentence(desk: Desk, raw: httpx.AsyncClient) -> None:
    desk.backend.installed.append(model("spare:1b"))
    await desk.say("Is there a port?")
    assert (await desk.session.switch_model("spare:1b")).ok
    gone = await raw.request("DELETE", "/api/delete", json={"model": "spare:1b"})
    assert (gone.status_code, gone.content) == (200, b"")
    seen = await play(desk, "13.3w", "another program deletes the model in use; the answer to that has no body")
    assert "spare:1b is not installed" in seen.end.error
    assert (await desk.session.switch_model(MODEL)).ok
    assert desk.last(await desk.say("And now?")).status == "answered"


# -- 13.4: state -------------------------------------------------------------------------------------------------------


async def test_other_load_options_reload_and_are_counted(desk: Desk, raw: httpx.AsyncClient) -> None:
    await play(desk, "13.4a", "the runner's options, and a counter of reloads")
    await raw.post("/api/chat", json=chat_body(options={"num_ctx": 512}))
    assert desk.backend.runners.reloads == 1


async def test_a_runner_expires(desk: Desk) -> None:
    await desk.say("Is there a port?")
    first = await desk.session.model_desk.installed()
    assert first[0].running is not None
    desk.backend.runners.clock = lambda: 4e9
    assert (await desk.session.model_desk.installed())[0].running is None
    await play(desk, "13.4b", "the model's time is over between two messages")


async def test_keep_alive_without_a_unit_is_refused_by_the_server_and_never_sent(
    open_desk: Open, desk: Desk, raw: httpx.AsyncClient
) -> None:
    refused = await raw.post("/api/chat", json=chat_body(keep_alive="-1"))
    assert (refused.status_code, refused.json()["error"]) == (400, 'time: missing unit in duration "-1"')
    ours = await open_desk(keep_alive="-1")
    seen = await play(ours, "13.4c", '400 for `keep_alive: "-1"`, which is what config.yaml says')
    assert seen.end.status == "answered"
    assert ours.body["keep_alive"] == -1
    (row,) = await ours.session.core.client.ps()
    assert row.expires_at > "2300"


async def test_empty_messages_load_and_unload(desk: Desk) -> None:
    await desk.session.start()
    await desk.server.log.until(lambda log: any(one.body.get("messages") == [] for one in log.of("/api/chat")))
    await desk.session.stop()
    await desk.say("Is there a port?")
    _, before, _ = await command(desk, "models", "ps", *at(desk))
    assert MODEL in before
    code, out, _ = await command(desk, "models", "unload", MODEL, *at(desk))
    assert code == 0
    _, _, after = await command(desk, "models", "ps", *at(desk))
    assert "No model is loaded" in after
    sent = [one.body for one in desk.server.log.of("/api/chat") if one.body.get("messages") == []]
    assert [body.get("keep_alive") for body in sent] == ["30m", 0]
    seen = f"`models unload`: {out.strip()} / `models ps`: {after.strip()}"
    record("13.4d", "empty messages: loaded at the start, unloaded with `keep_alive: 0`", seen, on_disk(desk))


async def test_a_load_is_given_up_when_the_client_goes(desk: Desk) -> None:
    desk.backend.queue(Script("Port 8080.", load_delay=30))
    stream = desk.session.send("Which port does the server use?")
    async for event in stream:
        if isinstance(event, PhaseChanged) and event.phase == "loading":
            await desk.session.stop()
    await desk.server.log.until(lambda log: desk.backend.runners.aborted_loads == 1)
    desk.backend.queue("Port 8080.")
    await play(desk, "13.4e", "stopped while the model was loading, then asked again")


async def test_the_time_of_a_disconnect_is_kept(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script("It is port ", gate))
    stream = desk.session.send("Is there a port?")
    async for event in stream:
        if isinstance(event, TextDelta):
            await desk.session.stop()
    await desk.server.log.until(lambda log: log.in_flight == 0)
    gone = desk.server.chats[0]
    assert gone.disconnected_at is not None
    assert gone.finished_at is not None
    assert gone.finished_at - gone.disconnected_at < 1
    await play(desk, "13.4f", "stopped in the middle of an answer, then asked again")


# -- 13.5: what the server enforces ------------------------------------------------------------------------------------


async def test_arguments_as_text_are_refused_and_never_sent(open_desk: Open) -> None:
    poisoned = {"role": "assistant", "tool_calls": [{"function": {"name": "read_memory", "arguments": "{}"}}]}
    asked = {"role": "user", "content": "And?"}
    result = {"role": "tool", "tool_name": "read_memory", "content": "nothing"}
    desk = await old_session(open_desk, asked, poisoned, result, {"role": "assistant", "content": "Yes."})
    async with httpx.AsyncClient(base_url=desk.server.url, trust_env=False) as raw:
        refused = await raw.post("/api/chat", json=chat_body(messages=[asked, poisoned]))
    assert refused.status_code == 400
    assert "closing '}'" in refused.json()["error"]
    seen = await play(desk, "13.5a", "400 for arguments that are a string, as an old session has them")
    assert seen.end.status == "answered"


async def test_a_list_as_content_is_refused_and_never_sent(open_desk: Open) -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": "And?"}, {"type": "text", "text": "Well?"}]}
    desk = await old_session(open_desk, parts, {"role": "assistant", "content": "Yes."})
    async with httpx.AsyncClient(base_url=desk.server.url, trust_env=False) as raw:
        refused = await raw.post("/api/chat", json=chat_body(messages=[parts]))
    assert refused.status_code == 400
    seen = await play(desk, "13.5b", "400 for content that is a list, as another program left it in a session")
    assert seen.end.status == "answered"
    assert "And?\nWell?" in [message.get("content") for message in desk.body["messages"]]


async def test_the_server_drops_the_oldest_messages_and_we_never_let_it(
    open_desk: Open, desk: Desk, raw: httpx.AsyncClient
) -> None:
    messages = [{"role": "system", "content": "s"}]
    messages += [{"role": "user", "content": f"{number} " + "word " * 80} for number in range(12)]
    desk.backend.queue("Short.")
    await raw.post("/api/chat", json=chat_body(messages=messages, options={"num_ctx": 512}))
    assert desk.server.chats[-1].notes["dropped_messages"] > 0
    small = await open_desk(num_ctx=4096)
    small.backend.default = " ".join(f"Port {8080 + number}." for number in range(90))
    before = len(small.server.chats)
    for number in range(8):
        await small.say(f"Question {number}? " + "More words about it. " * 30)
    await play(small, "13.5c", "a server that drops the oldest messages without a word; nine long turns")
    assert all(record_.notes["dropped_messages"] == 0 for record_ in small.server.chats[before:])


async def test_the_cached_prefix_is_counted(desk: Desk) -> None:
    await desk.say("Is there a port?")
    seen = await play(desk, "13.5d", "the second question of a session: the common prefix is counted")
    assert seen.end.cached_tokens is not None
    assert seen.end.prompt_tokens is not None
    assert seen.end.cached_tokens > 0.5 * seen.end.prompt_tokens


# -- 13.7: odd bytes ---------------------------------------------------------------------------------------------------

BYTES: dict[str, tuple[str, Script, str]] = {
    "13.7a": ("a raw U+0085 in the text", faults.next_line_character("Port\u00858080."), "Port\u00858080."),
    "13.7b": ("an emoji cut over packets", faults.split_emoji("Port 8080 🦊"), "Port 8080 🦊"),
    "13.7c": ("two lines in one packet", Script(Joined((Say("Port "), Say("8080.")))), "Port 8080."),
    "13.7d": ("one line over many packets", Script(Say("Port 8080.", pieces=7)), "Port 8080."),
}


@pytest.mark.parametrize("row", list(BYTES))
async def test_odd_bytes_arrive_as_they_were_meant(desk: Desk, row: str) -> None:
    injected, script, text = BYTES[row]
    desk.backend.queue(script)
    assert (await play(desk, row, injected)).text == text


async def test_a_turn_whose_text_and_call_come_in_one_packet_runs_the_call(desk: Desk) -> None:
    desk.backend.queue(Script(Joined((Say("I look."), Calls((READ,))))), answer("Port 8080."))
    events = await desk.say("Which port does the server use?")
    assert of(events, ToolFinished)[0].ok
