"""Loading, streams and connections: what a model server does to them, and what the session makes of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.agent.conftest import Desk, Open, of
from tests.faults.ollama_table import QUESTION, play, steady  # noqa: F401
from tui_agent.agent.events import Notice, PhaseChanged, TextDelta, ToolStarted
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.catalog import embed_model
from tui_agent.llm.wire.script import Calls, Cut, Done, Fail, Gate, Joined, Raw, Say, Script, Stop, Wait, call
from tui_agent.llm.wire.serve import LoopServer, WireServer

# -- D: loading, reloading, memory -------------------------------------------------------------------------------------


def phases(events: list[object]) -> list[str]:
    return [event.phase for event in events if isinstance(event, PhaseChanged)]


async def test_every_call_has_the_same_load_options(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=4096)
    desk.backend.default = " ".join(f"Port {8080 + number}." for number in range(90))
    for number in range(8):
        await desk.say(f"Question {number}? " + "More words about it. " * 30)
    await play(desk, "D44", "nine turns, some of them with a summary of older ones")
    assert {record.body["options"]["num_ctx"] for record in desk.server.chats} == {4096}
    assert any("summaris" in notice.text for notice in of(desk.heard, Notice)) or len(desk.server.chats) > 9
    assert desk.backend.runners.reloads == 0


async def test_a_new_window_is_told_before_it_reloads_the_model(desk: Desk) -> None:
    await desk.say("Is there a port?")
    loaded = desk.session.loaded
    await desk.session.apply_settings(replace(loaded, settings=loaded.settings.model_copy(update={"num_ctx": 4096})))
    told = [event.text for event in of(desk.heard, Notice)]
    assert any("loads qwen2.5-coder:1.5b anew" in text for text in told)
    await play(desk, "D45", "the window is changed in config.yaml while the app runs", also=told[-1])
    assert desk.backend.runners.reloads == 1


async def with_vectors(open_desk: Open, **flags: object) -> Desk:
    """A session whose vectors come from the scripted server."""
    desk = await open_desk(**flags)
    if not any("embed" in one.name for one in desk.backend.installed):
        desk.backend.installed.append(embed_model())
    desk.session._connection.given_embedder = None
    return desk


async def test_vectors_come_from_a_model_of_their_own_with_the_same_options_each_time(open_desk: Open) -> None:
    desk = await with_vectors(open_desk)
    await desk.say("Is there a port?")
    await play(desk, "D46", "vectors by an embedding model of the same server")
    embeds = desk.server.log.of("/api/embed")
    assert embeds
    assert len({str(record.body["options"]) for record in embeds}) == 1
    assert desk.backend.runners.reloads == 0


async def test_two_models_that_push_each_other_out_are_told_once(open_desk: Open) -> None:
    desk = await with_vectors(open_desk)
    desk.backend.runners.max_loaded = 1
    await desk.say("Is there a port?")
    seen = await play(desk, "D47", "memory for one model only: chat and embedding model evict each other")
    assert sum("do not fit" in notice for notice in seen.notices) == 1
    assert desk.backend.runners.evictions > 1


async def test_a_cold_start_is_waited_for_and_named(desk: Desk) -> None:
    desk.backend.queue(Script("Port 8080.", load_delay=0.3))
    seen = await play(desk, "D48", "a model that takes its time to load; nothing comes meanwhile, not even headers")
    assert phases(seen.events).index("loading") < phases(seen.events).index("generating")


async def test_a_load_is_never_given_up_by_the_client(desk: Desk) -> None:
    desk.backend.queue(Script("Port 8080.", load_delay=0.4))
    await play(desk, "D49", "a load longer than the time for connecting")
    assert desk.backend.runners.aborted_loads == 0
    assert len(desk.server.chats) == 1


async def test_a_load_that_the_server_gives_up_names_the_setting(desk: Desk) -> None:
    desk.backend.queue(faults.load_failure("timed out waiting for llama-server to start - "))
    seen = await play(desk, "D50", "500: the server's own time for loading is over")
    assert "OLLAMA_LOAD_TIMEOUT" in seen.end.error


async def test_no_watchdog_ends_the_silence_before_the_first_token(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.agent.waiting.STALL_S", 0.05)
    desk.backend.queue(Script(Wait(0.3), "Port 8080."))
    seen = await play(desk, "D51", "long silence while the prompt is read")
    assert not [event for event in of(seen.events, PhaseChanged) if event.silent_s]
    assert any("tokens" in event.detail for event in of(seen.events, PhaseChanged) if event.phase == "reading")


async def test_a_model_that_was_unloaded_meanwhile_is_loaded_again(desk: Desk) -> None:
    await desk.say("Is there a port?")
    await desk.backend.unload("qwen2.5-coder:1.5b")
    await play(desk, "D52", "the model was unloaded between two messages")
    assert {record.body["keep_alive"] for record in desk.server.chats} == {"30m"}


async def test_keep_alive_without_a_unit_goes_as_a_number(open_desk: Open) -> None:
    desk = await open_desk(keep_alive=-1)
    await play(desk, "D53", "`keep_alive: -1`, which is an error as text")
    assert desk.body["keep_alive"] == -1


async def test_an_answer_that_only_says_loaded_is_asked_for_again(desk: Desk) -> None:
    desk.backend.queue(faults.load_reply(), "Port 8080.")
    await play(desk, "D54", "an empty answer with the reason `load`, once")
    assert len(desk.server.chats) == 2


async def test_a_crashed_runner_gets_one_more_try(desk: Desk) -> None:
    desk.backend.queue(faults.runner_died(), "Port 8080.")
    assert desk.last(await desk.say("Is there a port?")).text == "Port 8080."
    desk.backend.queue(faults.runner_died(), faults.runner_died())
    seen = await play(desk, "D55", "500: the runner has died, twice")
    assert "num_ctx: 4096" in seen.end.error
    assert seen.end.exit_code == 5


async def test_a_full_queue_is_waited_for_three_times(desk: Desk) -> None:
    desk.backend.queue(faults.server_busy(), faults.server_busy(), "Port 8080.")
    assert desk.last(await desk.say("Is there a port?")).text == "Port 8080."
    desk.backend.queue(*(faults.server_busy() for _ in range(3)))
    seen = await play(desk, "D56", "503 three times: the queue is full")
    assert seen.end.error_kind == "server_busy"


# -- E: streams that stall, end or corrupt -----------------------------------------------------------------------------


async def test_an_end_without_done_keeps_the_text_and_runs_no_calls(desk: Desk) -> None:
    desk.backend.queue(Script("It is port ", Calls((call("read_memory", {"path": "AGENTS.md"}),)), Stop()))
    seen = await play(desk, "E57", "text and a call, then the stream ends without its last object")
    assert seen.end.status == "incomplete"
    assert not of(seen.events, ToolStarted)


async def test_a_stall_is_named_and_left_to_the_user(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.agent.waiting.STALL_S", 0.05)
    desk.backend.queue(Script("It is port ", Gate()))
    said: list[PhaseChanged] = []

    async def stop_when_named() -> None:
        while not any(phase.silent_s for phase in said):
            await asyncio.sleep(0.01)
        await desk.session.stop()

    watcher = asyncio.create_task(stop_when_named())
    send = desk.session.send

    def listened(text: str, **more: object) -> object:
        async def events() -> object:
            async for event in send(text, **more):  # type: ignore[arg-type]
                if isinstance(event, PhaseChanged):
                    said.append(event)
                yield event

        return events()

    monkeypatch.setattr(desk.session, "send", listened)
    seen = await play(
        desk,
        "E58",
        "silence in the middle of the answer; the user stops it",
        also="no data for 20 s · esc stop · alt+r ask again",
    )
    await watcher
    assert seen.end.status == "stopped"
    assert seen.text.strip() == "It is port"


async def test_a_model_in_a_loop_is_stopped(desk: Desk) -> None:
    desk.backend.default = lambda request: Script(*(Say("port ") for _ in range(2000)))
    seen = await play(desk, "E59", "the same word for ever")
    assert any("repeated itself" in notice for notice in seen.notices)
    assert 0 < desk.body["options"]["num_predict"] <= 2048


async def test_blank_lines_and_next_line_characters_do_no_harm(desk: Desk) -> None:
    desk.backend.queue(Script(Say("Port"), Raw((b"\n", b"\r\n\n")), Say("\u0085 8080.")))
    seen = await play(desk, "E60", "blank lines between the objects, and a raw U+0085 in the text")
    assert seen.text == "Port\u0085 8080."


async def test_characters_cut_by_the_network_are_whole_again(desk: Desk) -> None:
    desk.backend.queue(faults.split_emoji("Порт 8080 🦊 gotowe"))
    seen = await play(desk, "E61", "every byte in a packet of its own, through Cyrillic and emoji")
    assert seen.text == "Порт 8080 🦊 gotowe"


async def test_stop_closes_the_connection_and_the_server_is_free(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script("It is port ", gate))
    stopper = asyncio.create_task(_stop_at(desk, gate))
    seen = await play(desk, "E62", "the user stops while the answer is written")
    await stopper
    await desk.server.log.until(lambda log: log.in_flight == 0)
    assert desk.server.chats[0].outcome == "disconnected"
    assert desk.backend.active == 0
    assert seen.end.status == "stopped"


async def _stop_at(desk: Desk, gate: Gate) -> None:
    await gate.reached()
    await desk.session.stop()


async def test_a_server_that_died_is_a_sentence_with_the_address(desk: Desk) -> None:
    await desk.say("Is there a port?")
    await desk.server.stop()
    seen = await play(desk, "E63", "the server is gone when the message is sent")
    assert seen.end.exit_code == 3
    assert desk.server.url in seen.end.error
    await desk.server.start()


async def test_a_bind_all_address_means_this_machine(open_desk: Open, server: WireServer) -> None:
    port = server.url.rsplit(":", 1)[1]
    desk = await open_desk(host=f"0.0.0.0:{port}")
    await play(desk, "E64", "OLLAMA_HOST=0.0.0.0, which no client can talk to on Windows")
    assert desk.session.server.url == f"http://127.0.0.1:{port}"


# -- F: connection and environment -------------------------------------------------------------------------------------


async def test_the_other_loopback_address_is_tried_and_the_url_is_named(
    open_desk: Open, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def only_one(host: object) -> set[str]:
        return {"127.0.0.1"}

    monkeypatch.setattr("tui_agent.llm.connection._resolved", only_one)
    port = server.url.rsplit(":", 1)[1]
    desk = await open_desk(host=f"http://localhost:{port}")
    assert desk.last(await desk.say("Is there a port?")).status == "answered"
    await desk.server.stop()
    seen = await play(desk, "F65", "`localhost`, and nothing listens there any more")
    assert f":{port}" in seen.end.error
    await desk.server.start()


async def test_in_a_container_the_hosts_name_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.llm.explain.in_container", lambda: True)
    await desk.server.stop()
    seen = await play(desk, "F66", "no server, and the app runs in a container")
    assert "host.docker.internal" in seen.end.error
    await desk.server.start()


async def test_proxy_variables_do_not_touch_this_machine(open_desk: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    await play(await open_desk(), "F67", "HTTP_PROXY and ALL_PROXY point to a proxy that does not answer")


async def test_a_path_before_the_api_is_kept(open_desk: Open, server: WireServer) -> None:
    behind = LoopServer(Starlette(routes=[Mount("/ollama", server.app)]))
    await behind.start()
    try:
        desk = await open_desk(host=f"{behind.url}/ollama")
        await play(desk, "F68", "a server behind a path, http://h/ollama")
        assert desk.session.server.url.endswith("/ollama")
        await desk.session.close()
    finally:
        await behind.stop()


async def test_a_cloud_model_without_an_account_shows_how_to_sign_in(desk: Desk) -> None:
    desk.backend.queue(faults.sign_in())
    seen = await play(desk, "F69", "401 with a link for signing in")
    assert "ollama signin" in seen.end.error
    assert "https://ollama.com/connect" in seen.end.error
    assert len(desk.server.chats) == 1


async def test_an_overloaded_cloud_is_waited_for_and_named(desk: Desk) -> None:
    desk.backend.queue(*(Script(Fail(503, "the service is overloaded, try again later")) for _ in range(3)))
    seen = await play(desk, "F70", "503 of the cloud, three times")
    assert "cloud service" in seen.end.error
    assert len(desk.server.chats) == 3


async def test_lines_that_arrive_together_are_read_one_by_one(desk: Desk) -> None:
    desk.backend.queue(Script(Joined((Say("Port "), Say("8080."))), Done()), Script("No", Cut(False)))
    events = await desk.say(QUESTION)
    assert "".join(event.text for event in of(events, TextDelta)) == "Port 8080."
    assert desk.last(await desk.say("Really?")).status == "incomplete"
