"""Streams and connections: what a model server and the way to it do to them, and what the session makes of it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.agent.conftest import Desk, Open, of
from tests.faults.ollama_table import QUESTION, Pauses, on_disk, plain, play, record, steady  # noqa: F401
from tests.faults.on_screen import at, command, line_with, on_screen, until, warmed
from tui_agent.agent.events import Notice, PhaseChanged, TextDelta, ToolStarted
from tui_agent.llm.host import parse_host
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.backend import BackendError
from tui_agent.llm.wire.catalog import embed_model
from tui_agent.llm.wire.script import Calls, Cut, Done, Fail, Gate, Joined, Raw, Say, Script, Stop, Wait, call
from tui_agent.llm.wire.serve import LoopServer, WireServer

READ = call("read_memory", {"path": "AGENTS.md"})

# -- E: streams that stall, end or corrupt -----------------------------------------------------------------------------


async def test_an_end_without_done_keeps_the_text_and_runs_no_calls(desk: Desk) -> None:
    desk.backend.queue(Script("It is port ", Calls((READ,)), Stop()))
    seen = await play(desk, "E57", "text and a call, then the stream ends without its last object")
    assert (seen.end.status, seen.text.strip()) == ("incomplete", "It is port")
    assert not of(seen.events, ToolStarted)
    assert (await desk.session.transcript())[-1].status == "partial"


async def test_a_stall_is_named_and_left_to_the_user(open_desk: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = await open_desk()
    async with on_screen(desk) as (app, pilot):
        await warmed(desk, app, pilot)
        monkeypatch.setattr("tui_agent.agent.waiting.STALL_S", 0.05)
        desk.backend.queue(Script("It is port ", Gate()))
        app.chat.send(QUESTION)
        words = re.compile(r"no data for \d+ s · esc stop · alt\+r ask again")
        await until(pilot, lambda: words.search(line_with(app, "no data")), "the stall is named")
        found = words.search(line_with(app, "no data"))
        assert found is not None
        await pilot.pause(0.2)
        assert app.chat.running
        await pilot.press("escape")
        await until(pilot, lambda: not app.chat.running, "stopped")
        assert line_with(app, "It is port")
        mark = line_with(app, "stopped")
        assert mark
    shown = f"{plain(found[0], '')}, then esc: “It is port” {mark[mark.index('stopped') :].split('│')[0].strip()}"
    record("E58", "silence in the middle of the answer; the user stops it", shown, on_disk(desk))


async def test_silence_while_a_call_is_written_ends_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.agent.waiting.STALL_S", 0.05)
    desk.backend.queue(Script("I look.", Wait(0.4), Calls((READ,))), "Port 8080.")
    seen = await play(desk, "E58b", "silence in the middle of the answer, then data again")
    phases = [(event.phase, event.silent_s > 0) for event in of(seen.events, PhaseChanged)]
    stalled = phases.index(("generating", True))
    assert ("generating", False) in phases[stalled:]
    assert seen.text == "I look.\n\nPort 8080."


async def test_a_model_in_a_loop_is_stopped(desk: Desk) -> None:
    desk.backend.default = lambda request: Script(*(Say("port ") for _ in range(2000)))
    seen = await play(desk, "E59", "the same word for ever")
    assert any("repeated itself" in notice for notice in seen.notices)
    assert len(seen.text) < 2000
    assert 0 < desk.body["options"]["num_predict"] <= 2048
    assert desk.server.chats[-1].outcome == "disconnected"


async def test_a_job_for_json_names_it_and_does_not_read_on_for_ever(open_desk: Open) -> None:
    left = await open_desk(check_saves=False)
    left.backend.queue("Good.")
    await left.say("We agreed to go with Redis Streams for the job queue.")
    await left.session.close()
    left.backend.when(lambda request: request.format is not None, Script(*(Say("\n" * 50) for _ in range(1000))))
    desk = await open_desk(interactive=True, extract_after_turns=1, check_saves=False, watch=False)
    desk.session.learner.lull_s = desk.session.learner.quiet_s = 0.01
    await desk.session.start()
    await desk.server.log.until(
        lambda log: any(one.body.get("format") and one.outcome == "disconnected" for one in log.of("/api/chat"))
    )
    job = next(one for one in desk.server.log.of("/api/chat") if one.body.get("format"))
    assert "JSON" in job.messages[-1]["content"]
    assert 0 < job.body["options"]["num_predict"] <= 2048
    desk.session.learner.quiet_s = 60.0
    await play(desk, "E59b", "newlines for ever in answer to a job for JSON in the background, then a question")


async def test_blank_lines_and_next_line_characters_do_no_harm(desk: Desk) -> None:
    desk.backend.queue(Script(Say("Port"), Raw((b"\n", b"\r\n\n")), Say("\u0085\u2028 8080.")))
    seen = await play(desk, "E60", "blank lines between the objects, a raw U+0085 and a U+2028 in the text")
    assert seen.text == "Port\u0085\u2028 8080."


async def test_a_line_that_is_no_json_ends_the_answer_in_a_sentence(desk: Desk) -> None:
    desk.backend.queue(faults.broken_json("It is port"), "Port 8080.")
    seen = await play(desk, "E60b", "a line that is not JSON in the middle")
    assert seen.end.status == "incomplete"
    assert "Send it again" in seen.end.error
    assert desk.last(await desk.say("And now?")).text == "Port 8080."


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
    assert (seen.end.status, seen.end.error_kind, seen.end.exit_code) == ("failed", "server_unreachable", 3)
    assert desk.server.url in seen.end.error
    assert desk.session.stores.history.messages(desk.session.id)[-1].content == QUESTION
    await desk.server.start()
    assert desk.last(await desk.say("And now?")).status == "answered"


async def test_a_bind_all_address_means_this_machine(open_desk: Open, server: WireServer) -> None:
    port = server.url.rsplit(":", 1)[1]
    desk = await open_desk(host=f"0.0.0.0:{port}")
    await play(desk, "E64", "OLLAMA_HOST=0.0.0.0, which no client can talk to on Windows")
    assert desk.session.server.url == f"http://127.0.0.1:{port}"
    other = await open_desk(host=f"[::]:{port}")
    assert other.last(await other.say("Is there a port?")).status == "answered"


# -- F: connection and environment -------------------------------------------------------------------------------------


async def test_the_other_loopback_address_is_tried_and_the_url_is_named(
    open_desk: Open, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parse_host("").url == "http://127.0.0.1:11434"

    async def only_one(host: object) -> set[str]:
        return {"127.0.0.1"}

    monkeypatch.setattr("tui_agent.llm.connection._resolved", only_one)
    port = server.url.rsplit(":", 1)[1]
    desk = await open_desk(host=f"http://localhost:{port}")
    assert desk.last(await desk.say("Is there a port?")).status == "answered"
    await desk.server.stop()
    seen = await play(desk, "F65", "`localhost`, and nothing listens there any more")
    assert f"http://localhost:{port} (also tried http://[::1]:{port})" in seen.end.error
    await desk.server.start()


async def test_a_server_on_the_other_family_alone_is_found(open_desk: Open, server: WireServer) -> None:
    other = LoopServer(server.app, host="::1")
    try:
        await other.start()
    except OSError:
        pytest.skip("this machine has no IPv6")
    try:
        port = other.url.rsplit(":", 1)[1]
        desk = await open_desk(host=f":{port}")
        seen = await play(desk, "F65b", "nothing given but a port: the server listens on ::1 only")
        assert seen.end.status == "answered"
        assert desk.session.server.url == f"http://[::1]:{port}"
        await desk.session.close()
    finally:
        await other.stop()


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
    seen = await play(await open_desk(), "F67", "HTTP_PROXY and ALL_PROXY point to a proxy that does not answer")
    assert seen.end.status == "answered"


async def test_a_socks_proxy_does_not_break_the_start(desk: Desk) -> None:
    desk.backend.queue("Port 8080.")
    proxies = dict.fromkeys(("ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"), "socks5://127.0.0.1:9")
    given = at(desk, "--model", "qwen2.5-coder:1.5b", "--embed-model", "none")
    code, out, err = await command(desk, "ask", *given, QUESTION, env={**proxies, "NO_PROXY": "", "no_proxy": ""})
    assert (code, out.strip()) == (0, "Port 8080.")
    (row,) = desk.session.stores.history.sessions(limit=10)[:1]
    stored = desk.session.stores.history.messages(row.id)
    assert [one.content for one in stored] == [QUESTION, "Port 8080."]
    kept = ", ".join(
        f"{'answer' if one.role == 'assistant' else one.role} {one.status} “{one.content}”" for one in stored
    )
    record("F67b", "`tui-agent ask` with ALL_PROXY=socks5://…, which breaks the import of ollama", f"{out} {err}", kept)


async def test_a_path_before_the_api_is_kept(open_desk: Open, server: WireServer) -> None:
    behind = LoopServer(Starlette(routes=[Mount("/ollama", server.app)]))
    await behind.start()
    try:
        desk = await open_desk(host=f"{behind.url}/ollama")
        seen = await play(desk, "F68", "a server behind a path, http://h/ollama")
        assert seen.end.status == "answered"
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


async def test_embedding_through_the_cloud_without_an_account_is_told_and_words_go_on(open_desk: Open) -> None:
    desk = await open_desk()
    desk.backend.installed.append(embed_model())
    desk.session._connection.given_embedder = None
    link = {"signin_url": "https://ollama.com/connect?name=host&key=abc"}
    desk.backend.refuse_embed(lambda inputs: BackendError(401, "unauthorized", extra=link))
    await desk.session.save_sentence("m1", "The server uses port 8080.")
    seen = await play(desk, "F69b", "the same for every request to embed")
    (told,) = [notice for notice in seen.notices if "found by words alone" in notice]
    assert "ollama signin" in told
    assert seen.end.status == "answered"
    texts = [str(one.body["input"]) for one in desk.server.log.of("/api/embed")]
    assert len(set(texts)) == len(texts)
    await desk.say("And what else?")
    assert len(desk.server.log.of("/api/embed")) == len(texts)


async def test_an_overloaded_cloud_is_waited_for_and_named(desk: Desk, steady: Pauses) -> None:  # noqa: F811
    desk.backend.queue(*(Script(Fail(503, "the service is overloaded, try again later")) for _ in range(3)))
    seen = await play(desk, "F70", "503 of the cloud, three times")
    assert "cloud service" in seen.end.error
    assert "its queue is full" not in seen.end.error
    assert len(desk.server.chats) == 3
    assert steady.seconds[0] < steady.seconds[1]


async def test_lines_that_arrive_together_are_read_one_by_one(desk: Desk) -> None:
    desk.backend.queue(Script(Joined((Say("Port "), Say("8080."))), Done()), Script("No", Cut(False)))
    events: list[Any] = await desk.say(QUESTION)
    assert "".join(event.text for event in of(events, TextDelta)) == "Port 8080."
    assert desk.last(await desk.say("Really?")).status == "incomplete"
    assert not of(events, Notice)
