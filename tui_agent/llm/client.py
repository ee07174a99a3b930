"""The one object that talks to a model server over Ollama's HTTP API.

Requests go through the HTTP client inside ``ollama.AsyncClient``, and :meth:`ModelClient._build` is the one place that
takes this private attribute: the public methods drop tool-call ids and unknown fields, split lines at characters that
are legal inside them, and raise validation errors for replies that are merely unusual.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import random
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tui_agent.llm import explain
from tui_agent.llm.bodies import DEFAULT_KEEP_ALIVE, chat_body, freeze_options, wire_keep_alive
from tui_agent.llm.connection import Connection, own_certificates
from tui_agent.llm.errors import BadRequest, GenerationFailed, ModelError, ServerBusy, ThinkUnsupported
from tui_agent.llm.host import Host, parse_host
from tui_agent.llm.replies import PullMeter, chat_chunk, clean, integer, metrics, model_info, rows, running_model
from tui_agent.llm.swapping import LoadWatch
from tui_agent.llm.types import JSON, ChatChunk, ModelInfo, ModelOptions, PullProgress, RunningModel

if TYPE_CHECKING:
    import httpx

__all__ = ["ModelClient", "freeze_options"]

QUICK_READ_S = 30.0
ALIVE_READ_S = 5.0
BUSY_TRIES = 3
PULL_RETRIES = 3
DRAIN_S = 0.5

_T = TypeVar("_T")


class ModelClient:
    """A client of one model server, for one event loop. All methods raise :class:`ModelError` and nothing else.

    To stop a stream cancel the task that consumes it, or call ``aclose()`` on the generator (from the task that
    iterates it); both close the connection at once, and the server stops generating. Chats, loads and embeddings take
    turns: there is never more than one of them in flight.

    Args:
        host: address as in ``OLLAMA_HOST`` (which is used when this is empty); see :func:`parse_host`.
        api_key: sent as a bearer token. Without it ``OLLAMA_API_KEY`` is used.
        connect_timeout: seconds for one connection attempt. Nothing limits how long a model may load or think.
        allow_remote: whether a server that is not on this machine may be talked to at all.
        sleep: how to wait between tries (seconds); for tests.
        jitter: a number in [0, 1) for the length of such waits; for tests.
        transport: replaces the network; for tests.
    """

    def __init__(
        self,
        host: str | None = None,
        *,
        api_key: str | None = None,
        connect_timeout: float = 5.0,
        allow_remote: bool = False,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._problem: ModelError | None = None
        try:
            address = parse_host(host or os.environ.get("OLLAMA_HOST"))
        except ModelError as error:
            address, self._problem = Host(), error
        if self._problem is None and not address.loopback and not allow_remote:
            self._problem = explain.remote_refused(address.url)
        self._api_key = api_key
        self._connect_timeout = connect_timeout
        self._sleep = sleep
        self._jitter = jitter
        self._transport = transport
        self._connection = Connection(address, self._build, connect_timeout=connect_timeout)
        self._cannot_think: set[str] = set()
        # Servers before 0.9 give raw JSON instead of calls when they stream with tools.
        self.streams_tools = True
        self.loads = LoadWatch()
        # One generation or embedding at a time: a second one would wait inside the server without a word, or make it
        # load a second model while the first one answers.
        self._turn = asyncio.Lock()

    @property
    def url(self) -> str:
        """The base URL in use, without credentials."""
        return self.host.url

    @property
    def host(self) -> Host:
        """The parsed address in use (another loopback address may have replaced the first one)."""
        return self._connection.host

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine, so that nothing leaves it (cloud models aside)."""
        return self.host.loopback

    @property
    def problem(self) -> ModelError | None:
        """Why this client will not send anything (bad address, remote host not allowed), or ``None``."""
        return self._problem

    @property
    def busy(self) -> bool:
        """Whether a chat, a load or an embedding of this client is in flight."""
        return self._turn.locked()

    def refused_to_think(self, model: str) -> bool:
        """Whether the server has said of this model that it cannot think, when it was asked to."""
        return model in self._cannot_think

    async def free(self) -> None:
        """Wait until none of those that are in flight or wait now is left."""
        async with self._turn:
            pass

    # -- small questions ---------------------------------------------------------------------------------------------

    async def version(self) -> str:
        """The server's version, like ``0.33.0``; ``0.0.0`` for development builds and servers that do not say."""
        reply = await self._get("/api/version", QUICK_READ_S)
        version = reply.get("version")
        return clean(version) if isinstance(version, str) else "0.0.0"

    async def alive(self) -> bool:
        """Whether an Ollama server answers now. Never raises; :meth:`version` says what is wrong."""
        try:
            await self._get("/api/version", ALIVE_READ_S)
        except ModelError:
            return False
        return True

    async def tags(self) -> list[ModelInfo]:
        """The installed models, newest first."""
        reply = await self._get("/api/tags", QUICK_READ_S)
        return [model_info(entry) for entry in rows(reply.get("models"))]

    async def ps(self) -> list[RunningModel]:
        """The loaded models, the one that stays longest first."""
        reply = await self._get("/api/ps", QUICK_READ_S)
        return [running_model(entry) for entry in rows(reply.get("models"))]

    async def show(self, model: str) -> ModelInfo:
        """What the server knows of one model. ``digest`` and ``size`` are empty: only :meth:`tags` has them.

        Raises:
            ModelMissing: it is not installed.
        """
        call = self._call("/api/show", model, read_timeout=QUICK_READ_S)
        reply = await self._connection.json("POST", call, {"model": model})
        return replace(model_info(reply, name=model), name=model)

    # -- loading and unloading ---------------------------------------------------------------------------------------

    async def load(self, model: str, options: ModelOptions) -> None:
        """Load the model with these options (the ones every later call sends), and wait until it is ready."""

        async def chat_load() -> None:
            await self._finish(self._call("/api/chat", model, options), chat_body(model, [], options))

        try:
            async with self._turn:
                await self._while_busy(chat_load)
        except BadRequest as error:
            if "does not support" not in error.detail:
                raise
            await self.embed(model, [], options=options)  # an embedding model is loaded by an empty embedding request

    async def unload(self, model: str) -> None:
        """Free the model's memory now. Works for embedding models, and for models that are not loaded."""
        body: JSON = {"model": model, "messages": [], "stream": True, "keep_alive": 0}
        self.loads.forget(model)
        await self._finish(self._call("/api/chat", model), body)

    async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        """Download a model. Ends normally only after the server said ``success``.

        ``completed`` of a layer never falls. A cut download is taken up where it stopped, up to three times; each
        time a status line says so. Closing the generator stops the download; what arrived stays for the next one.
        """
        meter = PullMeter()
        begun = False
        call = self._call("/api/pull", model)
        for attempt in range(PULL_RETRIES + 1):
            try:
                async with aclosing(self._connection.lines(call, {"model": model, "stream": True})) as lines:
                    async for line, _ in lines:
                        progress, begun = meter.read(line), True
                        yield progress
                        if progress.status == "success":
                            self._cannot_think.discard(model)
                            return
                raise explain.incomplete(call, "the download ended before the model was complete")
            except ModelError as error:
                if attempt == PULL_RETRIES or not begun or not _worth_pulling_again(error):
                    raise
            yield PullProgress(status=f"connection lost, going on where it stopped ({attempt + 1} of {PULL_RETRIES})")
            await self._sleep(self._pause(attempt))

    # -- chat --------------------------------------------------------------------------------------------------------

    async def chat(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        options: ModelOptions,
        tools: Sequence[Mapping[str, Any]] = (),
        think: bool | str | None = None,
        format: Any = None,
        sent: Callable[[], None] | None = None,
    ) -> AsyncGenerator[ChatChunk, None]:
        """One generation, chunk by chunk as it arrives; the last chunk has ``done`` and the metrics.

        With a ``format`` the model is asked not to think, whatever ``think`` says. ``sent`` is called when the request
        has left, maybe more than once.

        Before anything was yielded these are tried again: a full queue (three tries, waiting longer each time), a
        crashed runner (once), ``think`` for a model that cannot think (once without it, and never again for this
        model), an answer that only says the model was loaded (once).

        Raises:
            ModelError: see :mod:`tui_agent.llm.errors`. ``StreamIncomplete`` and ``StreamBroken`` may come after
                chunks that stay valid as a partial answer.
            ValueError: ``format`` and ``tools`` together.
        """
        if not messages:
            raise BadRequest("There is nothing to answer: the conversation is empty.", fix="Write a message first.")
        if format is not None:
            think = False  # thinking and a reply format together give JSON that is none
        if model in self._cannot_think:
            think = None
        body = chat_body(model, messages, options, tools=tools, think=think, format=format)
        if tools and not self.streams_tools:
            body["stream"] = False
        call = replace(self._call("/api/chat", model, options), sent=sent)
        async with self._turn, aclosing(self._chat_patiently(call, body)) as chunks:
            async for chunk in chunks:
                if chunk.metrics is not None:
                    self.loads.note(model, chunk.metrics.load_s)
                yield chunk

    async def _chat_patiently(self, call: explain.Call, body: JSON) -> AsyncGenerator[ChatChunk, None]:
        busy = crashes = loads = 0
        while True:
            begun = False
            try:
                async with aclosing(self._chat_once(body, call)) as chunks:
                    async for chunk in chunks:
                        if chunk.done and chunk.done_reason in ("load", "unload") and not begun and not _says(chunk):
                            break
                        begun = True
                        yield chunk
                    else:
                        return
                loads += 1
                if loads > 1:
                    raise explain.incomplete(call, "the server loaded the model twice and did not answer")
            except ThinkUnsupported:
                if begun or "think" not in body:
                    raise
                self._cannot_think.add(call.model)
                del body["think"]
            except ServerBusy:
                busy += 1
                if begun or busy >= BUSY_TRIES:
                    raise
                await self._sleep(self._pause(busy - 1))
            except GenerationFailed as error:
                crashes += 1
                if begun or crashes > 1 or not explain.is_runner_crash(error):
                    raise
                await self._sleep(self._pause(0))

    async def _chat_once(self, body: JSON, call: explain.Call) -> AsyncGenerator[ChatChunk, None]:
        async with aclosing(self._connection.lines(call, body)) as lines:
            async for line, headers in lines:
                chunk = chat_chunk(line, cached_tokens=_header_number(headers, "x-prompt-cached"))
                if not chunk.done:
                    yield chunk
                    continue
                # Reading on to the end lets the server see a finished reply instead of a client that went away.
                with suppress(ModelError, asyncio.TimeoutError):
                    await asyncio.wait_for(_exhaust(lines), DRAIN_S)
                yield chunk
                return
        raise explain.incomplete(call)

    # -- embeddings --------------------------------------------------------------------------------------------------

    async def embed(
        self,
        model: str,
        inputs: Sequence[str],
        *,
        options: ModelOptions | None = None,
        keep_alive: str | float | None = None,
    ) -> list[list[float]]:
        """One vector per input, in order, as the server gave them; no input loads the model and gives ``[]``.

        One bad input fails the whole call; :class:`tui_agent.llm.embeddings.OllamaEmbedder` deals with that.
        """
        if keep_alive is None:
            keep_alive = options.keep_alive if options is not None else DEFAULT_KEEP_ALIVE
        body: JSON = {"model": model, "input": list(inputs), "truncate": True}
        if options is not None:
            body["options"] = options.as_options()
        body["keep_alive"] = wire_keep_alive(keep_alive)

        call = self._call("/api/embed", model, options)

        async def once() -> JSON:
            return await self._connection.json("POST", call, body)

        async with self._turn:
            reply = await self._while_busy(once)
        self.loads.note(model, metrics(reply).load_s)
        vectors = reply.get("embeddings")
        if not isinstance(vectors, list) or len(vectors) != len(inputs) or not all(map(_is_vector, vectors)):
            found = f"{len(vectors)} vectors" if isinstance(vectors, list) else "no vectors"
            raise explain.incomplete(call, f"{found} came back for {len(inputs)} texts, or not of numbers")
        return vectors

    async def aclose(self) -> None:
        """Close all connections. The client cannot be used afterwards."""
        await self._connection.aclose()

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _get(self, path: str, read_timeout: float) -> JSON:
        return await self._connection.json("GET", self._call(path, read_timeout=read_timeout))

    async def _finish(self, call: explain.Call, body: JSON) -> None:
        async with aclosing(self._connection.lines(call, body)) as lines:
            await _exhaust(lines)

    def _build(self) -> httpx.AsyncClient:
        import httpx

        _note_what_is_missing()
        local = self.host.private
        options: dict[str, Any] = {
            # Proxy variables name machines that cannot reach this one's loopback or private network.
            "trust_env": not local,
            "follow_redirects": False,
            # Each request has its own connection: an idle one that the server just closed would fail at random.
            "limits": httpx.Limits(max_keepalive_connections=0),
        }
        if self._api_key:
            options["headers"] = {"authorization": f"Bearer {self._api_key}"}
        elif self.host.user:
            options["auth"] = (self.host.user, self.host.password)
        if self._transport is not None:
            options["transport"] = self._transport
        elif local and self.host.scheme == "http":
            options["verify"] = False  # nothing is encrypted, so the list of authorities need not be read
        elif local and self.host.scheme == "https" and (trusted := own_certificates()) is not None:
            options["verify"] = trusted
        client = _async_client_class()(host=self.host.url, timeout=None, **options)
        inner: httpx.AsyncClient = client._client
        return inner

    def _call(
        self, path: str, model: str = "", options: ModelOptions | None = None, read_timeout: float | None = None
    ) -> explain.Call:
        """The description of a request. Every request starts with one, so this is where they are refused."""
        if self._problem is not None:
            raise self._problem.with_traceback(None)
        return explain.Call(
            url=self.url,
            path=path,
            model=model,
            num_ctx=options.num_ctx if options is not None else None,
            connect_timeout=self._connect_timeout,
            read_timeout=read_timeout,
            loopback=self.is_local,
            key_sent=bool(self._api_key or os.environ.get("OLLAMA_API_KEY")),
        )

    async def _while_busy(self, action: Callable[[], Awaitable[_T]]) -> _T:
        for attempt in range(BUSY_TRIES - 1):
            try:
                return await action()
            except ServerBusy:
                await self._sleep(self._pause(attempt))
        return await action()

    def _pause(self, attempt: int) -> float:
        """Seconds to wait before the next try: 1, 2, 4, … times a random factor between 1 and 2."""
        return float(2**attempt) * (1.0 + self._jitter())


def _note_what_is_missing() -> None:
    """Note that a module is not there which the HTTP library looks for on the disk five times for every request."""
    name = "sniffio"
    if name not in sys.modules and importlib.util.find_spec(name) is None:
        sys.modules[name] = None  # type: ignore[assignment]


def _async_client_class() -> Any:
    try:
        return importlib.import_module("ollama").AsyncClient
    except Exception:
        # The package builds a default client while it is imported, which fails for a bad OLLAMA_HOST or an odd proxy
        # variable. Its module with the class was loaded before that, and we pass a host of our own.
        module = sys.modules.get("ollama._client")
        if module is None:
            raise
        return module.AsyncClient


async def _exhaust(lines: AsyncIterator[object]) -> None:
    async for _ in lines:
        pass


def _header_number(headers: Mapping[str, str], name: str) -> int | None:
    text = headers.get(name, "")
    return integer(int(text)) if text.isascii() and text.isdigit() else None


def _says(chunk: ChatChunk) -> bool:
    return bool(chunk.content or chunk.thinking or chunk.tool_calls)


def _is_vector(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in value)


def _worth_pulling_again(error: ModelError) -> bool:
    return error.retryable or error.kind in ("stream_broken", "stream_incomplete", "server_unreachable")
