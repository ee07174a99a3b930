"""One server's connections: open a request, read it as lines or as a whole, and explain what goes wrong on the way."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.llm import explain
from tui_agent.llm.bodies import encode
from tui_agent.llm.errors import BadRequest, ModelError, ServerUnreachable, StreamBroken
from tui_agent.llm.explain import Call
from tui_agent.llm.host import Host
from tui_agent.llm.types import JSON

if TYPE_CHECKING:
    import ssl

    import httpx

MAX_LINE_BYTES = 16 * 2**20
MAX_ERROR_BYTES = 2**20


class Connection:
    """Sends requests to one host. Raises :class:`ModelError` only.

    Args:
        host: the address; replaced by another loopback address when only that one answers.
        build: makes the HTTP client on first use. Runs in a thread, since its imports take long enough to be felt.
        connect_timeout: seconds for one connection attempt.
    """

    def __init__(self, host: Host, build: Callable[[], httpx.AsyncClient], *, connect_timeout: float) -> None:
        self.host = host
        self._build = build
        self._connect_timeout = connect_timeout
        self._http: httpx.AsyncClient | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    async def json(self, method: str, call: Call, body: JSON | None = None) -> JSON:
        """The JSON object of a whole reply."""
        async with self.open(method, call, body) as response:
            content: bytes = await response.aread()
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            shown = explain.quote(content.decode("utf-8", "replace"), 200)
            raise explain.not_ollama(call, f"its reply to {call.path} is no JSON object", shown, 200)
        if reply.get("error"):
            raise explain.explain_line(reply["error"], call)
        return reply

    async def lines(self, call: Call, body: JSON) -> AsyncGenerator[tuple[JSON, Mapping[str, str]], None]:
        """The JSON objects of a streamed reply, each with the response headers. Blank lines are skipped.

        Bytes are split at ``\\n`` only: a JSON string may hold U+0085 and U+2028 as they are, which text line
        splitters cut at. No multi-byte character contains that byte, so decoding whole lines is safe.
        """
        begun = False
        async with self.open("POST", call, body) as response:
            buffer = bytearray()
            async for data in response.aiter_bytes():
                scanned = len(buffer)
                buffer += data
                while (end := buffer.find(b"\n", scanned)) >= 0:
                    line = bytes(buffer[:end])
                    del buffer[: end + 1]
                    scanned = 0
                    if line.strip():
                        yield _object(line, call, begun), response.headers
                        begun = True
                if len(buffer) > MAX_LINE_BYTES:
                    raise StreamBroken(f"The stream from {call.url} broke: a line has no end.", fix="Send it again.")
            if buffer.strip():
                yield _object(bytes(buffer), call, begun), response.headers

    @asynccontextmanager
    async def open(self, method: str, call: Call, body: JSON | None) -> AsyncIterator[httpx.Response]:
        """A response with status 200, streamed. Leaving the context closes the connection.

        Also translates what goes wrong while the caller reads from the response.
        """
        begun = False
        try:
            content = None if body is None else encode(body)
        except (TypeError, ValueError) as error:
            raise BadRequest("The request holds a value that JSON cannot express.", detail=str(error)) from error
        try:
            async with AsyncExitStack() as stack:
                response = await self._connect(stack, method, content, call)
                if response.status_code >= 300:
                    raise explain.explain_status(response.status_code, await _limited(response), call)
                begun = True
                yield response
        except ModelError:
            raise
        except _transport_errors() as error:
            failed = replace(call, url=self.host.url)
            raise explain.explain_transport(error, failed, begun=begun) from error

    async def _connect(self, stack: AsyncExitStack, method: str, content: bytes | None, call: Call) -> httpx.Response:
        http = await self._ready()
        import httpx  # loaded by now, in a thread

        timeout = httpx.Timeout(None, connect=self._connect_timeout, read=call.read_timeout)

        async def trace(event: str, _: object) -> None:
            if call.sent is not None and event == "http11.send_request_body.complete":
                call.sent()

        extensions = {"trace": trace} if call.sent is not None else None

        def request() -> Awaitable[httpx.Response]:
            stream = http.stream(method, call.path, content=content, timeout=timeout, extensions=extensions)
            return stack.enter_async_context(stream)

        try:
            return await request()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            first, tried = self.host, []
            for other in first.others(await _resolved(first)):
                # `localhost` may mean only one of 127.0.0.1 and ::1 here, and the server may listen on the other.
                tried.append(other.url)
                http.base_url = httpx.URL(other.url)
                try:
                    response = await request()
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    http.base_url = httpx.URL(first.url)
                    continue
                self.host = other
                return response
            failed = replace(call, tried=tuple(tried))
            raise explain.explain_transport(error, failed) from error

    async def _ready(self) -> httpx.AsyncClient:
        async with self._lock:
            if self._closed:
                raise ModelError("The connection to the model server is closed.", fix="Start the program again.")
            if self._http is None:
                try:
                    # Imports and certificates take long enough to be felt, so they do not happen on the event loop.
                    self._http = await asyncio.to_thread(self._build)
                except (ImportError, ValueError) as error:
                    raise explain.bad_environment(self.host.url, error) from error
            return self._http

    async def aclose(self) -> None:
        """Close everything; later requests are refused."""
        self._closed = True
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()


def _transport_errors() -> tuple[type[Exception], ...]:
    httpx = sys.modules.get("httpx")
    if httpx is None:
        return (OSError,)
    return (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError)


async def _resolved(host: Host) -> set[str]:
    """The IP addresses the first attempt has already tried."""
    if not host.any_family or host.hostname != "localhost":
        return {host.hostname}
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host.hostname, host.port)
    except OSError:
        return set()
    return {str(entry[4][0]) for entry in found}


async def _limited(response: httpx.Response) -> bytes:
    body = bytearray()
    async for data in response.aiter_bytes():
        body += data
        if len(body) >= MAX_ERROR_BYTES:
            break
    return bytes(body[:MAX_ERROR_BYTES])


def _object(line: bytes, call: Call, begun: bool) -> JSON:
    try:
        value = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise explain.not_json(line, call, begun=begun) from None
    if not isinstance(value, dict):
        raise explain.not_json(line, call, begun=begun)
    if value.get("error"):
        raise explain.explain_line(value["error"], call)
    return value


def own_certificates() -> ssl.SSLContext | None:
    """What ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name, which httpx reads only together with proxy variables.

    Raises:
        ServerUnreachable: they cannot be read.
    """
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        return None
    import ssl

    try:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    except OSError as error:
        raise ServerUnreachable(
            f"The certificates of SSL_CERT_FILE or SSL_CERT_DIR cannot be read: {explain.quote(str(error), 160)}.",
            fix="Correct the variable or unset it.",
            detail=f"{file} {folder}",
        ) from error
