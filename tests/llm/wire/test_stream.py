"""What happens when the client, or the server, goes away."""

from __future__ import annotations

import asyncio
import json

import httpx

from tui_agent.llm.wire import faults
from tui_agent.llm.wire.script import Gate, Raw, Script, Wait, answer
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer

BODY = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]}


async def test_no_byte_is_sent_before_the_first_chunk(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    gate = Gate()
    backend.queue(Script(gate, "late"))
    request = asyncio.ensure_future(http.post("/api/chat", json=BODY))
    await gate.reached()
    assert server.chats[0].first_byte_at is None
    assert server.chats[0].status is None
    gate.open()
    assert (await request).status_code == 200
    assert server.chats[0].first_byte_at is not None


async def test_a_disconnect_between_chunks_closes_the_backends_iterator(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    gate = Gate()
    backend.queue(Script("one", gate, "two"))
    async with http.stream("POST", "/api/chat", json=BODY) as answered:
        async for _ in answered.aiter_raw():
            break
    await server.log.until(lambda log: log.records[-1].outcome == "disconnected")
    record = server.chats[0]
    assert record.disconnected_at is not None
    assert record.finished_at is not None
    assert record.finished_at - record.disconnected_at < 0.5
    assert record.notes["said"] == "one"
    assert (backend.active, gate.waiting, server.log.in_flight) == (0, 0, 0)


async def test_a_disconnect_before_the_first_chunk_stops_it_too(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    for stream in (True, False):
        gate = Gate()
        backend.queue(Script(gate))
        request = asyncio.ensure_future(http.post("/api/chat", json={**BODY, "stream": stream}))
        await gate.reached()
        request.cancel()
        await server.log.until(lambda log: log.records[-1].outcome == "disconnected")
        assert gate.waiting == 0


async def test_a_disconnect_while_loading_aborts_the_load(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    loading = asyncio.Event()

    async def sleep(_: float) -> None:
        loading.set()
        await asyncio.Event().wait()

    backend.runners.sleep = sleep
    backend.queue(Script("never", load_delay=60))
    request = asyncio.ensure_future(http.post("/api/chat", json=BODY))
    await loading.wait()
    request.cancel()
    await server.log.until(lambda log: log.records[-1].outcome == "disconnected")
    assert backend.runners.aborted_loads == 1
    assert (await http.get("/api/ps")).json() == {"models": []}


async def test_a_waiting_request_that_leaves_never_starts(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    gate = Gate()
    backend.queue(Script("first", gate), answer("second"), answer("third"))
    first = asyncio.ensure_future(http.post("/api/chat", json=BODY))
    await gate.reached()
    second = asyncio.ensure_future(http.post("/api/chat", json=BODY))
    await server.log.until(lambda log: log.in_flight == 2)
    second.cancel()
    await server.log.until(lambda log: log.records[-1].outcome == "disconnected")
    third = asyncio.ensure_future(http.post("/api/chat", json=BODY))
    await server.log.until(lambda log: log.in_flight == 2)
    gate.open()
    assert b"first" in (await first).content
    assert (await third).status_code == 200
    assert server.log.in_flight_max == 2
    assert "said" not in server.chats[1].notes


async def test_parallel_requests_run_together_up_to_the_limit() -> None:
    backend = ScriptedBackend(parallel=2)
    gates = [Gate(), Gate()]
    backend.queue(*(Script(gate, "x") for gate in gates))
    async with WireServer(backend) as server, httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        payload = {**BODY, "model": "qwen2.5-coder:1.5b"}
        requests = [asyncio.ensure_future(http.post("/api/chat", json=payload)) for _ in gates]
        for gate in gates:
            await gate.reached()
        for gate in gates:
            gate.open()
        await asyncio.gather(*requests)
    assert {record.notes["slot"] for record in server.chats} == {0, 1}


async def test_a_stopped_server_drops_answers_and_can_come_back(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    gate = Gate()
    backend.queue(Script("half", gate))
    request = asyncio.ensure_future(http.post("/api/chat", json=BODY))
    await gate.reached()
    await server.stop()
    (error,) = await asyncio.gather(request, return_exceptions=True)
    assert isinstance(error, httpx.TransportError)
    (refused,) = await asyncio.gather(http.get("/api/version"), return_exceptions=True)
    assert isinstance(refused, httpx.ConnectError)
    await server.start()
    assert (await http.get("/api/version")).status_code == 200
    assert backend.active == 0


async def test_a_reset_and_a_close_both_break_the_body(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    for reset in (True, False):
        backend.queue(faults.cut_connection("some text", reset))
        (error,) = await asyncio.gather(http.post("/api/chat", json=BODY), return_exceptions=True)
        assert isinstance(error, httpx.ReadError if reset else httpx.RemoteProtocolError)
        assert server.chats[-1].outcome == "cut"


async def test_a_connection_cut_before_any_byte(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(faults.cut_connection(""))
    (error,) = await asyncio.gather(http.post("/api/chat", json=BODY), return_exceptions=True)
    assert isinstance(error, httpx.RemoteProtocolError)


async def test_one_line_arrives_in_many_chunks_and_two_lines_in_one(
    http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    async def chunks() -> list[bytes]:
        async with http.stream("POST", "/api/chat", json=BODY) as answered:
            return [part async for part in answered.aiter_raw()]

    backend.queue(faults.split_emoji("🦊"))
    parts = await chunks()
    fox = "🦊".encode()
    assert not any(fox in part for part in parts)
    assert fox in b"".join(parts)
    backend.queue(faults.joined_lines("two lines"))
    parts = await chunks()
    assert parts[0].count(b"\n") == 2
    assert [json.loads(line)["message"]["content"] for line in parts[0].splitlines()] == ["two ", "lines"]


async def test_delays_pass_through_the_given_sleep() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    backend = ScriptedBackend(sleep=sleep)
    backend.queue(Script(Wait(30), Raw((b"\n",), delay=7), load_delay=9, prompt_delay=5))
    async with WireServer(backend) as server, httpx.AsyncClient(trust_env=False) as http:
        await http.post(f"{server.url}/api/chat", json={**BODY, "model": "qwen2.5-coder:1.5b"})
    assert slept == [9, 5, 30, 7]
