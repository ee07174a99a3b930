"""Streams that are stopped or go wrong, and servers that are hard to reach, on raw sockets and scripted replies."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.llm.lines import DONE, HELLO, OPTIONS, Scripted, collect, error, ndjson, say
from tui_agent.llm.client import ModelClient
from tui_agent.llm.errors import (
    GenerationFailed,
    ModelError,
    ServerUnreachable,
    StreamBroken,
    StreamIncomplete,
)
from tui_agent.llm.types import ChatChunk


async def take(client: ModelClient, into: list[str]) -> None:
    """Keep the texts that arrive before an error too."""
    async for chunk in client.chat("m", HELLO, options=OPTIONS):
        into.append(chunk.content)  # noqa: PERF401


# -- a raw server -----------------------------------------------------------------------------------------------------


class Exchange:
    """One connection of the raw server, after its request was read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
        self.reader, self.writer, self.body = reader, writer, body

    async def raw(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> None:
        await self.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def send(self, data: bytes) -> None:
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def end(self) -> None:
        await self.raw(b"0\r\n\r\n")

    async def until_the_client_leaves(self) -> None:
        assert await self.reader.read() == b""


Handler = Callable[[Exchange], Awaitable[None]]


@asynccontextmanager
async def raw_server(handler: Handler, address: str = "127.0.0.1") -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A TCP server that runs ``handler`` for each request. Yields its port and an event set when a handler ended."""
    finished = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-len")), 0)
        await handler(Exchange(reader, writer, await reader.readexactly(length)))
        finished.set()
        writer.close()

    server = await asyncio.start_server(serve, address, 0)
    try:
        yield server.sockets[0].getsockname()[1], finished
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def client_of(port: int, host: str = "127.0.0.1", **options: Any) -> AsyncIterator[ModelClient]:
    client = ModelClient(f"{host}:{port}", **options)
    try:
        yield client
    finally:
        await client.aclose()


# -- stopping ---------------------------------------------------------------------------------------------------------


async def test_cancelling_the_consuming_task_closes_the_socket_at_once() -> None:
    started = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(ndjson(say("one")))
        await exchange.until_the_client_leaves()

    async def consume(client: ModelClient) -> None:
        async for _ in client.chat("m", HELLO, options=OPTIONS):
            started.set()

    async with raw_server(handler) as (port, finished), client_of(port) as client:
        task = asyncio.create_task(consume(client))
        await asyncio.wait_for(started.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(finished.wait(), 1)


async def test_cancelling_before_the_first_byte_closes_the_socket_at_once() -> None:
    asked = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        asked.set()
        await exchange.until_the_client_leaves()

    async with raw_server(handler) as (port, finished), client_of(port) as client:
        task = asyncio.create_task(collect(client))
        await asyncio.wait_for(asked.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(finished.wait(), 1)


async def test_closing_the_generator_closes_the_socket_at_once() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(ndjson(say("one"), say("two")))
        await exchange.until_the_client_leaves()

    async with raw_server(handler) as (port, finished), client_of(port) as client:
        async with aclosing(client.chat("m", HELLO, options=OPTIONS)) as chunks:
            assert (await anext_of(chunks)).content == "one"
        await asyncio.wait_for(finished.wait(), 1)


async def anext_of(chunks: AsyncIterator[ChatChunk]) -> ChatChunk:
    return await chunks.__anext__()


async def test_a_server_that_keeps_the_line_open_after_the_last_object_does_not_hold_the_answer_back() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(ndjson(say("x"), DONE))
        await exchange.until_the_client_leaves()

    async with raw_server(handler) as (port, finished), client_of(port) as client:
        chunks = await asyncio.wait_for(collect(client), 5)
        assert chunks[-1].done
        await asyncio.wait_for(finished.wait(), 1)


async def test_a_finished_reply_is_read_to_its_end_so_that_the_server_sees_no_client_leaving() -> None:
    whole = asyncio.Event()

    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(ndjson(DONE))
        await asyncio.sleep(0.05)
        await exchange.end()  # would fail or be lost if the client had gone
        whole.set()

    async with raw_server(handler) as (port, _), client_of(port) as client:
        await collect(client)
        assert whole.is_set()


# -- streams that go wrong --------------------------------------------------------------------------------------------


async def test_an_error_line_in_the_middle_keeps_the_text_before_it_and_is_explained(scripted: Scripted) -> None:
    line = {"error": "an error was encountered while running the model: CUDA error"}
    client, script, _ = scripted(ndjson(say("par"), line))
    seen: list[str] = []
    with pytest.raises(GenerationFailed, match=r"m at http://127\.0\.0\.1:11434 stopped unexpectedly"):
        await take(client, seen)
    assert seen == ["par"]
    assert len(script.requests) == 1


async def test_an_error_object_in_the_middle_is_explained_like_its_text(scripted: Scripted) -> None:
    client, _, _ = scripted(ndjson(say("x"), {"error": {"error": {"message": "XML syntax error on line 2"}}}))
    with pytest.raises(ModelError) as caught:
        await collect(client)
    assert caught.value.kind == "tool_parser_failed"


async def test_a_clean_end_without_done_is_incomplete_after_the_text_was_handed_out(scripted: Scripted) -> None:
    client, _, _ = scripted(ndjson(say("a"), say("b")))
    seen: list[str] = []
    with pytest.raises(StreamIncomplete, match="incomplete"):
        await take(client, seen)
    assert seen == ["a", "b"]


async def test_a_cut_connection_is_a_broken_stream_after_the_text_was_handed_out() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(ndjson(say("a")))
        exchange.writer.transport.abort()

    seen: list[str] = []
    async with raw_server(handler) as (port, _), client_of(port) as client:
        with pytest.raises(StreamBroken, match="in the middle of the answer"):
            await take(client, seen)
    assert seen == ["a"]


async def test_a_server_that_dies_before_answering_is_a_broken_stream() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.writer.close()

    async with raw_server(handler) as (port, _), client_of(port) as client:
        with pytest.raises(StreamBroken, match="before an answer came"):
            await collect(client)


async def test_a_line_that_is_not_json_is_a_broken_stream_with_the_line_as_detail(scripted: Scripted) -> None:
    client, _, _ = scripted(ndjson(say("a")) + b"oops\n")
    with pytest.raises(StreamBroken) as caught:
        await collect(client)
    assert caught.value.detail == "oops"


async def test_a_web_page_with_status_200_is_no_ollama_server(scripted: Scripted) -> None:
    client, _, _ = scripted(b"<html><body>Welcome to the hotel network</body></html>")
    with pytest.raises(ServerUnreachable, match="not an Ollama server"):
        await collect(client)
    with pytest.raises(ServerUnreachable, match="not an Ollama server"):
        await client.tags()
    assert await client.alive() is False


async def test_something_that_does_not_speak_http_is_named_as_such() -> None:
    async def handler(exchange: Exchange) -> None:
        await exchange.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    async with raw_server(handler) as (port, _), client_of(port) as client:
        with pytest.raises(ServerUnreachable, match="does not speak HTTP"):
            await collect(client)


async def test_redirects_are_not_followed_because_they_could_lead_off_this_machine(scripted: Scripted) -> None:
    client, script, _ = scripted(httpx.Response(307, headers={"Location": "https://example.com/api/chat"}))
    with pytest.raises(ServerUnreachable, match="sends us elsewhere"):
        await collect(client)
    assert len(script.requests) == 1


# -- connecting -------------------------------------------------------------------------------------------------------


async def free_port(address: str = "127.0.0.1") -> int:
    server = await asyncio.start_server(lambda r, w: None, address, 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def test_a_refused_connection_names_the_url_that_was_tried_and_both_ways_out() -> None:
    port = await free_port()
    async with client_of(port) as client:
        with pytest.raises(ServerUnreachable) as caught:
            await collect(client)
        assert await client.alive() is False
    text = str(caught.value)
    assert f"http://127.0.0.1:{port}" in text
    assert "`ollama serve`" in text
    assert "--embedded" in text
    assert caught.value.exit_code == 3


async def test_localhost_refused_over_one_address_family_is_tried_over_the_other() -> None:
    async def handler(exchange: Exchange) -> None:
        body = b'{"version":"0.33.0"}'
        await exchange.raw(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    try:
        server = raw_server(handler, "::1")
        port, _ = await server.__aenter__()
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    try:
        async with client_of(port, "localhost") as client:
            assert await client.version() == "0.33.0"
            assert await client.version() == "0.33.0"
        async with client_of(port, "0.0.0.0") as client:
            assert await client.version() == "0.33.0"
            assert client.url == f"http://[::1]:{port}"
            assert client.is_local
        async with client_of(port, "127.0.0.1") as client:  # an address that was meant literally is
            assert await client.alive() is False
    finally:
        await server.__aexit__(None, None, None)


async def test_when_both_families_are_refused_both_urls_are_named() -> None:
    port = await free_port()
    async with client_of(port, "0.0.0.0") as client:
        with pytest.raises(ServerUnreachable, match=rf"127\.0\.0\.1:{port} \(also tried http://\[::1\]:{port}\)"):
            await client.version()
        assert client.url == f"http://127.0.0.1:{port}"


async def test_a_connection_that_is_not_taken_in_time_says_how_long_was_waited(scripted: Scripted) -> None:
    client, _, _ = scripted(httpx.ConnectTimeout(""), connect_timeout=2.0)
    with pytest.raises(ServerUnreachable, match="within 2 seconds"):
        await collect(client)


async def test_a_small_question_without_an_answer_says_so_although_the_error_has_no_text(scripted: Scripted) -> None:
    client, _, _ = scripted(httpx.ReadTimeout(""))
    with pytest.raises(ServerUnreachable, match="did not answer /api/tags within 30 seconds"):
        await client.tags()


async def test_proxy_variables_do_not_apply_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "socks5://127.0.0.1:9")

    async def handler(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.send(ndjson(DONE))
        await exchange.end()

    async with raw_server(handler) as (port, _), client_of(port) as client:
        assert (await collect(client))[-1].done


async def test_an_unusable_proxy_variable_for_a_remote_host_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:9")
    client = ModelClient("http://models.example.com", allow_remote=True)
    with pytest.raises(ServerUnreachable, match=r"Unset ALL_PROXY"):
        await client.version()


async def test_a_remote_host_is_refused_before_anything_is_sent_and_the_setting_is_named(scripted: Scripted) -> None:
    client, script, _ = scripted(ndjson(DONE), host="http://192.168.1.7:11434")
    assert not client.is_local
    assert client.problem is not None
    for attempt in (collect(client), client.tags(), client.embed("m", ["x"]), client.load("m", OPTIONS)):
        with pytest.raises(ServerUnreachable, match="allow_remote: true"):
            await attempt
    assert await client.alive() is False
    assert script.requests == []


async def test_an_allowed_remote_host_is_used_with_its_key(scripted: Scripted) -> None:
    client, script, _ = scripted(ndjson(DONE), host="https://example.com/ollama/", allow_remote=True, api_key="k" * 8)
    assert client.problem is None
    await collect(client)
    assert str(script.requests[0].url) == "https://example.com/ollama/api/chat"
    assert script.requests[0].headers["authorization"] == "Bearer " + "k" * 8


async def test_user_and_password_of_an_address_are_sent_but_never_shown(scripted: Scripted) -> None:
    word = "-".join(("long", "word"))
    client, script, _ = scripted(error(500, "boom"), host=f"http://ada:{word}@127.0.0.1:8080")
    with pytest.raises(GenerationFailed) as caught:
        await collect(client)
    assert script.requests[0].headers["authorization"].startswith("Basic ")
    assert word not in str(caught.value) + client.url + repr(client.host)


async def test_a_bad_address_is_a_sentence_at_first_use_and_not_an_exception_at_start() -> None:
    client = ModelClient("ftp://127.0.0.1")
    with pytest.raises(ServerUnreachable, match="cannot be used"):
        await client.version()


async def test_the_host_of_the_environment_is_used_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "0.0.0.0:4242")
    assert ModelClient().url == "http://127.0.0.1:4242"
    assert ModelClient("127.0.0.1:1").url == "http://127.0.0.1:1"


async def test_a_closed_client_says_so(scripted: Scripted) -> None:
    client, _, _ = scripted(ndjson(DONE))
    await collect(client)
    await client.aclose()
    await client.aclose()
    with pytest.raises(ModelError, match="closed"):
        await collect(client)


def test_the_private_attribute_of_the_ollama_client_is_what_this_client_counts_on() -> None:
    import ollama

    inner = ollama.AsyncClient(host="http://127.0.0.1:1/p", trust_env=False, follow_redirects=False)._client
    assert isinstance(inner, httpx.AsyncClient)
    assert callable(inner.stream)
    assert str(inner.base_url) == "http://127.0.0.1:1/p/"
    assert inner.trust_env is False


def test_import_is_cheap_and_bad_variables_that_break_the_ollama_package_do_not_break_the_client() -> None:
    code = """
import asyncio, os, sys
from tui_agent.llm.client import ModelClient
assert not {"ollama", "httpx", "pydantic", "numpy"} & set(sys.modules), "imported too early"
os.environ["OLLAMA_HOST"] = "127.0.0.1:notaport"
try:
    import ollama
except ValueError:
    pass
else:
    raise AssertionError("the package has become robust; the detour can go")
assert "ollama" not in sys.modules
client = ModelClient("127.0.0.1:9")
try:
    asyncio.run(client.version())
except Exception as error:
    print(type(error).__name__, error)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2]
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("ServerUnreachable Nothing answers at http://127.0.0.1:9")


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"error":' * 50_000, b"[1]", b"9" * 5_000])
async def test_a_line_made_to_break_the_reader_is_a_broken_stream(scripted: Scripted, line: bytes) -> None:
    client, _, _ = scripted(ndjson(say("a")) + line + b"\n")
    with pytest.raises(StreamBroken):
        await collect(client)
