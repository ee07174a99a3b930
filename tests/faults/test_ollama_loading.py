"""Loading, reloading and memory of a model server, and what the session makes of it."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.agent.conftest import Desk, Open, of
from tests.faults.ollama_table import QUESTION, Pauses, on_disk, play, record, steady  # noqa: F401
from tests.faults.on_screen import at, command, line_with, on_screen, until, warmed
from tui_agent.agent.events import Notice, PhaseChanged
from tui_agent.llm.client import ModelClient
from tui_agent.llm.errors import BadRequest
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.catalog import embed_model
from tui_agent.llm.wire.script import Gate, Raw, Script, Wait

MODEL, EMBEDDER = "qwen2.5-coder:1.5b", "nomic-embed-text:latest"


def phases(events: list[Any]) -> list[str]:
    return [event.phase for event in events if isinstance(event, PhaseChanged)]


async def test_every_call_has_the_same_load_options(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=4096)
    await desk.session.start()
    desk.backend.default = " ".join(f"Port {8080 + number}." for number in range(90))
    heard: list[Any] = []
    for number in range(8):
        heard += await desk.say(f"Question {number}? " + "More words about it. " * 30)
    await play(desk, "D44", "nine turns, some of them with a summary of older ones")
    everything = desk.server.log.of("/api/chat")
    assert {one.body["options"]["num_ctx"] for one in everything if "options" in one.body} == {4096}
    assert any("were summarised" in notice.text for notice in of(heard, Notice))
    assert (desk.backend.runners.loads, desk.backend.runners.reloads) == (1, 0)


async def test_a_new_window_is_told_before_it_reloads_the_model_and_new_sampling_reloads_nothing(desk: Desk) -> None:
    await desk.say("Is there a port?")

    async def change(**fields: Any) -> list[str]:
        heard, loaded = len(desk.heard), desk.session.loaded
        await desk.session.apply_settings(replace(loaded, settings=loaded.settings.model_copy(update=fields)))
        return [event.text for event in of(desk.heard[heard:], Notice)]

    assert await change(temperature=0.1, seed=3) == []
    await desk.say("Really?")
    assert desk.body["options"]["temperature"] == 0.1
    assert desk.backend.runners.reloads == 0
    since = len(desk.heard)
    (told,) = await change(num_ctx=4096)
    assert f"loads {MODEL} anew" in told
    assert desk.backend.runners.reloads == 0
    await play(desk, "D45", "the window is changed in config.yaml while the app runs", since=since)
    assert desk.backend.runners.reloads == 1


async def with_vectors(open_desk: Open, **flags: Any) -> Desk:
    """A session whose vectors come from the scripted server."""
    desk = await open_desk(**flags)
    if not any("embed" in one.name for one in desk.backend.installed):
        desk.backend.installed.append(embed_model())
    desk.session._connection.given_embedder = None
    return desk


async def test_vectors_come_from_a_model_of_their_own_with_the_same_options_each_time(open_desk: Open) -> None:
    desk = await with_vectors(open_desk)
    await desk.say("Is there a port?")
    await desk.session.save_sentence("m1", "The server uses port 8080.")
    await desk.session.core.settled()
    seen = await play(desk, "D46", "vectors by an embedding model of the same server")
    embeds = desk.server.log.of("/api/embed")
    assert len(embeds) >= 3
    assert {one.body["model"] for one in embeds} == {EMBEDDER} != {one.body["model"] for one in desk.server.chats}
    assert len({str(one.body["options"]) for one in embeds}) == 1
    assert desk.backend.runners.reloads == 0
    assert "by words and meaning" in seen.recalled[0]


def told_by(events: list[Any]) -> str:
    """The one sentence about models that push each other out."""
    (told,) = [notice.text for notice in of(events, Notice) if "do not fit" in notice.text]
    return str(told)


async def test_two_models_that_push_each_other_out_are_told_once_and_both_are_shown(open_desk: Open) -> None:
    desk = await with_vectors(open_desk)
    await desk.say("Is there a port?")
    code, out, _ = await command(desk, "models", "ps", *at(desk))
    assert code == 0
    shown = [line.split()[0] for line in out.splitlines()[1:]]
    assert sorted(shown) == sorted([MODEL, EMBEDDER])
    desk.backend.runners.max_loaded = 1
    await desk.backend.unload(EMBEDDER)
    first = await desk.say("Is there really a port?")
    seen = await play(
        desk,
        "D47",
        "memory for one model only: chat and embedding model evict each other",
        also=f"at the first time, not again: {told_by(first)} / `models ps` before that: {', '.join(sorted(shown))}",
    )
    assert not [text for text in seen.notices if "do not fit" in text]
    assert all(name in told_by(first) for name in (EMBEDDER, MODEL))
    assert desk.backend.runners.evictions > 1
    assert {one.body["options"]["num_gpu"] for one in desk.server.log.of("/api/embed")} == {0}


async def test_a_cold_start_is_waited_for_and_named_with_its_age(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await open_desk()
    timeouts: list[tuple[str, Any]] = []
    send = httpx.AsyncHTTPTransport.handle_async_request

    async def watched(self: Any, request: httpx.Request) -> httpx.Response:
        timeouts.append((request.url.path, request.extensions["timeout"]))
        return await send(self, request)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", watched)
    gate = Gate()
    async with on_screen(desk) as (app, pilot):
        await warmed(desk, app, pilot)
        await desk.backend.unload(MODEL)
        desk.backend.runners.sleep = lambda seconds: gate.wait()
        desk.backend.queue(Script("Port 8080.", load_delay=60))
        app.chat.send(QUESTION)
        age = re.compile(rf"● loading {re.escape(MODEL)} [1-9]\d* s")
        await until(pilot, lambda: age.search(line_with(app, "loading")), "the age of the load")
        shown = re.sub(r"\d+ s$", "N s", age.search(line_with(app, "loading"))[0])  # type: ignore[index]
        gate.open()
        await until(pilot, lambda: not app.chat.running, "answered")
        assert line_with(app, "Port 8080.")
    assert all(limit["connect"] == 5.0 for _, limit in timeouts)
    chats = [limit["read"] for path, limit in timeouts if path == "/api/chat"]
    assert chats
    assert all(read is None for read in chats)
    record(
        "D48",
        "a model that takes its time to load; nothing comes meanwhile, not even headers",
        f"{shown}, then: “Port 8080.”",
        on_disk(desk),
    )


async def test_a_load_is_never_given_up_by_the_client_and_is_begun_ahead(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ModelClient.__init__.__kwdefaults__, "connect_timeout", 0.2)
    desk = await open_desk()
    await desk.session.start()
    await desk.server.log.until(lambda log: any(one.body.get("messages") == [] for one in log.of("/api/chat")))
    await desk.session.stop()
    await desk.backend.unload(MODEL)
    desk.backend.queue(Script("Port 8080.", load_delay=0.5))
    seen = await play(desk, "D49", "a load longer than the time for connecting, and longer than that of a first look")
    assert desk.session.core.client._connect_timeout == 0.2
    assert seen.text == "Port 8080."
    assert desk.backend.runners.aborted_loads == 0
    assert len(desk.server.chats) == 1


async def test_a_load_that_the_server_gives_up_names_the_setting(desk: Desk) -> None:
    desk.backend.queue(faults.load_failure("timed out waiting for llama-server to start - "))
    seen = await play(desk, "D50", "500: the server's own time for loading is over")
    assert "OLLAMA_LOAD_TIMEOUT" in seen.end.error
    assert len(desk.server.chats) == 1


async def test_no_watchdog_ends_the_silence_before_the_first_token(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from tui_agent.agent import waiting

    assert waiting.STALL_S >= 20
    monkeypatch.setattr("tui_agent.agent.waiting.STALL_S", 0.05)
    desk.backend.queue(Script(Wait(0.3), "Port 8080."))
    seen = await play(desk, "D51", "long silence while the prompt is read")
    assert not [event for event in of(seen.events, PhaseChanged) if event.silent_s]
    assert any("tokens" in event.detail for event in of(seen.events, PhaseChanged) if event.phase == "reading")


async def test_a_model_that_was_unloaded_meanwhile_is_loaded_again_and_when_it_goes_is_shown(open_desk: Open) -> None:
    desk = await with_vectors(open_desk)
    await desk.session.start()
    await desk.say("Is there a port?")
    await desk.backend.unload(MODEL)
    _, out, _ = await command(desk, "models", "ps", *at(desk))
    assert MODEL not in out
    desk.backend.queue("Port 8080.")
    await desk.say("Sure?")
    _, out, _ = await command(desk, "models", "ps", *at(desk))
    (line,) = [line for line in out.splitlines() if MODEL in line]
    shown = line[line.index("unloads") :].strip()
    seen = await play(desk, "D52", "the model was unloaded between two messages", also=f"`models ps`: {MODEL} {shown}")
    assert seen.end.status == "answered"
    assert shown == "unloads in 30 min"
    sent = [one for path in ("/api/chat", "/api/embed") for one in desk.server.log.of(path)]
    assert {one.body.get("keep_alive") for one in sent} == {"30m"}


@pytest.mark.parametrize("given", [-1, "-1"])
async def test_keep_alive_without_a_unit_goes_as_a_number(open_desk: Open, given: str | int) -> None:
    desk = await open_desk(keep_alive=given)
    await play(desk, "D53", "`keep_alive: -1`, as a number and as text, which the server refuses")
    assert desk.body["keep_alive"] == -1
    assert not isinstance(desk.body["keep_alive"], str)


async def test_an_answer_that_only_says_loaded_is_asked_for_again(desk: Desk) -> None:
    desk.backend.queue(faults.load_reply(), "Port 8080.")
    seen = await play(desk, "D54", "an empty answer with the reason `load`, once")
    assert seen.text == "Port 8080."
    first, second = (one.body for one in desk.server.chats)
    assert first == second
    assert any(message["role"] == "user" for message in first["messages"])
    with pytest.raises(BadRequest, match="nothing to answer"):
        async for _ in desk.session.core.client.chat(MODEL, [], options=desk.session.core.options):
            pass


async def test_an_answer_that_only_says_loaded_twice_is_an_error(desk: Desk) -> None:
    desk.backend.queue(faults.load_reply(), faults.load_reply())
    seen = await play(desk, "D54b", "the same twice")
    assert seen.end.status == "incomplete"
    assert "did not answer" in seen.end.error


CRASHED = Script(
    Raw((b'{"error":"model runner has unexpectedly stopped, this may be due to resource limitations"}\n',))
)


@pytest.mark.parametrize(
    ("row", "injected", "crash"),
    [
        ("D55", "500: the runner has died, twice", faults.runner_died()),
        ("D55b", "the same as an error line after the headers, twice", CRASHED),
    ],
)
async def test_a_crashed_runner_gets_one_more_try_and_then_a_smaller_window_is_suggested(
    desk: Desk, steady: Pauses, row: str, injected: str, crash: Script  # noqa: F811
) -> None:  # fmt: skip
    desk.backend.queue(crash, "Port 8080.")
    assert desk.last(await desk.say("Is there a port?")).text == "Port 8080."
    assert len(steady.seconds) == 1
    assert 1 <= steady.seconds[0] <= 2
    desk.backend.queue(crash, crash)
    seen = await play(desk, row, injected)
    assert "num_ctx: 4096" in seen.end.error
    assert seen.end.exit_code == 5
    assert len(desk.server.chats) == 4
    assert desk.session.stores.history.messages(desk.session.id)[-1].content == QUESTION


async def test_a_full_queue_is_waited_for_three_times_ever_longer(desk: Desk, steady: Pauses) -> None:  # noqa: F811
    desk.backend.queue(faults.server_busy(), faults.server_busy(), "Port 8080.")
    assert desk.last(await desk.say("Is there a port?")).text == "Port 8080."
    first, second = steady.seconds
    assert 1 <= first <= 2 <= second <= 4
    desk.backend.queue(*(faults.server_busy() for _ in range(3)))
    seen = await play(desk, "D56", "503 three times: the queue is full")
    assert seen.end.error_kind == "server_busy"
    assert desk.backend.unused == 0


async def test_background_work_gives_way_to_a_message(open_desk: Open) -> None:
    desk = await open_desk(interactive=True, extract_after_turns=1, check_saves=False, watch=False)
    desk.session.learner.lull_s = desk.session.learner.quiet_s = 0.01
    gate = Gate()
    desk.backend.queue("Good.", Script("[", gate), "Port 8080.")
    await desk.say("We agreed to go with Redis Streams for the job queue.")
    await asyncio.wait_for(gate.reached(), 10)
    desk.session.learner.lull_s = 60.0
    seen = await play(desk, "D56b", "one place on the server, taken by the search for facts when a message is sent")
    assert seen.text == "Port 8080."
    assert desk.server.chats[1].outcome == "disconnected"
    assert desk.server.log.in_flight_max == 1
