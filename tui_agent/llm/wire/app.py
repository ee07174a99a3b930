"""The Ollama HTTP API over a :class:`~tui_agent.llm.wire.backend.Backend`.

Besides Ollama's own endpoints there are two private ones, invisible to an ordinary client: the header
``X-Prompt-Cached`` on chat answers (prompt tokens taken from the cache, when the backend knows), and
``GET /debug/requests`` (loopback and token only) with what was received and what became of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from .backend import JSON, Backend, BackendChunk, BackendError, BackendModel, ChatRequest
from .gojson import dumps, loads
from .names import ModelName, parse_name
from .objects import chat_line, chat_object, embedding, show_object, tags_row
from .records import DISCONNECTED, DONE, ERROR, INCOMPLETE, RequestLog, RequestRecord
from .stream import Sender, Watched
from .validate import check_options, parse_chat, parse_embed

VERSION = "0.33.0"
CACHED_HEADER = "X-Prompt-Cached"
_NDJSON = "application/x-ndjson"

Handler = Callable[[Request, RequestRecord], Awaitable[ASGIApp]]


def create_app(
    backend: Backend,
    *,
    debug_token: str | None = None,
    prompt_log: bool = True,
    version: str = VERSION,
    log: RequestLog | None = None,
) -> Starlette:
    """The ASGI app.

    Args:
        backend: who answers. It is closed by the app's lifespan shutdown.
        debug_token: opens ``/debug/requests`` to ``Authorization: Bearer TOKEN``; without it the path does not exist.
        prompt_log: keep request bodies in the log; off where conversations must not stay in memory.
        version: what ``/api/version`` says.
        log: the record keeper, also at ``app.state.log``.
    """
    wire = _Wire(backend, log or RequestLog(keep_bodies=prompt_log), version, debug_token)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None, None]:
        yield
        await backend.close()

    app = Starlette(
        routes=wire.routes(),
        lifespan=lifespan,
        exception_handlers={404: _not_found, 405: _not_allowed, Exception: _server_error},
    )
    app.router.redirect_slashes = False
    app.state.log = wire.log
    app.add_middleware(HostGuard)
    return app


async def _not_found(request: Request, error: Exception) -> Response:
    return PlainTextResponse("404 page not found", 404)


async def _not_allowed(request: Request, error: Exception) -> Response:
    headers = error.headers if isinstance(error, HTTPException) else None
    return PlainTextResponse("405 method not allowed", 405, headers=headers)


async def _server_error(request: Request, error: Exception) -> Response:
    return Response(dumps({"error": str(error) or type(error).__name__}), 500, media_type="application/json")


class HostGuard:
    """Refuses foreign ``Host`` names with an empty 403, as the server does on loopback: no DNS rebinding."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
            if not host_allowed(host):
                await Response(status_code=403)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def host_allowed(host: str) -> bool:
    """Whether a ``Host`` header names this machine or a private address."""
    name = host.rsplit(":", 1)[0] if host.count(":") == 1 else host
    if name.startswith("["):
        name = name[1:].split("]", 1)[0]
    name = name.lower().rstrip(".")
    if name in ("", "localhost", socket.gethostname().lower()):
        return True
    if name.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_private or address.is_unspecified


class _Wire:
    """The endpoints."""

    def __init__(self, backend: Backend, log: RequestLog, version: str, debug_token: str | None) -> None:
        self._backend = backend
        self.log = log
        self._version = version
        self._token = debug_token

    def routes(self) -> list[Route]:
        return [
            Route("/", self._alive),
            Route("/api/version", self._api_version),
            Route("/api/tags", self._recorded(self._tags)),
            Route("/api/ps", self._recorded(self._ps)),
            Route("/api/show", self._recorded(self._show), methods=["POST"]),
            Route("/api/chat", self._recorded(self._chat), methods=["POST"]),
            Route("/api/embed", self._recorded(self._embed), methods=["POST"]),
            Route("/api/pull", self._recorded(self._pull), methods=["POST"]),
            Route("/api/delete", self._recorded(self._delete), methods=["DELETE"]),
            Route("/debug/requests", self._debug),
        ]

    # --- plumbing -------------------------------------------------------------------------------------------------

    def _recorded(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            record = self.log.begin(request.method, request.url.path)
            try:
                answer = await handler(request, record)
            except BackendError as error:
                record.status = error.status
                self.log.finish(record, ERROR, error.error)
                return _json(error.status, error.body())
            except ClientDisconnect:
                self.log.disconnected(record)
                self.log.finish(record, DISCONNECTED)
                return Response(status_code=499)
            except BaseException as error:
                self.log.finish(record, ERROR, str(error))
                raise
            if isinstance(answer, Watched):
                return _Answer(answer)
            assert isinstance(answer, Response)
            record.status = answer.status_code
            self.log.finish(record, DONE)
            return answer

        return endpoint

    async def _body(self, request: Request, record: RequestRecord) -> JSON:
        raw = await request.body()
        body = loads(raw)
        self.log.seen(record, body)
        return body  # type: ignore[no-any-return]

    async def _find(self, name: ModelName) -> BackendModel | None:
        for model in await self._backend.models():
            parsed = parse_name(model.name)
            if parsed is not None and parsed.key == name.key:
                return model
        return None

    # --- simple endpoints -----------------------------------------------------------------------------------------

    async def _alive(self, request: Request) -> Response:
        return PlainTextResponse("Ollama is running")

    async def _api_version(self, request: Request) -> Response:
        return _json(200, {"version": self._version})

    async def _tags(self, request: Request, record: RequestRecord) -> Response:
        models = sorted(await self._backend.models(), key=lambda model: model.modified_at, reverse=True)
        return _json(200, {"models": [tags_row(model) for model in models]})

    async def _ps(self, request: Request, record: RequestRecord) -> Response:
        return _json(200, {"models": list(await self._backend.running())})

    async def _show(self, request: Request, record: RequestRecord) -> Response:
        name = _asked_name(await self._body(request, record))
        model = await self._find(name)
        if model is None:
            raise BackendError(404, f"model '{name.short}' not found")
        return _json(200, show_object(model))

    async def _delete(self, request: Request, record: RequestRecord) -> Response:
        body = await self._body(request, record)
        name = _asked_name(body)
        model = await self._find(name)
        if model is None:
            raise BackendError(404, f"model '{body.get('model') or body.get('name')}' not found")
        await self._backend.delete(model.name)
        return Response(status_code=200)

    async def _debug(self, request: Request) -> Response:
        if self._token is None:
            raise HTTPException(404)
        client = request.client.host if request.client else ""
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(client).is_loopback:
                scheme, _, given = request.headers.get("authorization", "").partition(" ")
                if scheme.lower() == "bearer" and secrets.compare_digest(given.encode(), self._token.encode()):
                    return _json(200, {**self._backend.debug(), **self.log.as_json()})
        return Response(status_code=403)

    # --- chat -----------------------------------------------------------------------------------------------------

    async def _chat(self, request: Request, record: RequestRecord) -> ASGIApp:
        chat = parse_chat(await self._body(request, record))
        self.log.seen(record, chat.raw, chat.notes)
        if not chat.model:
            raise BackendError(400, "model is required")
        name = parse_name(chat.model)
        if name is None:
            raise BackendError(400, "invalid model name")
        model = await self._find(name)
        if model is None:
            raise BackendError(404, f"model '{chat.model}' not found")
        if not chat.messages and chat.keep_alive == 0:
            await self._backend.unload(model.name)
            return _json(200, _loaded(chat.model, "unload"))
        _check_capabilities(chat, model, name)
        check_options(chat.options)
        if not chat.messages:
            return Watched(lambda sender: self._load(sender, chat, model), self.log, record)
        if chat.stream:
            return Watched(lambda sender: self._chat_stream(sender, chat, record), self.log, record)
        return Watched(lambda sender: self._chat_once(sender, chat, record), self.log, record)

    async def _load(self, sender: Sender, chat: ChatRequest, model: BackendModel) -> None:
        await self._backend.load(model.name, chat.options, chat.keep_alive)
        await sender.json(200, _loaded(chat.model, "load"))

    async def _chat_stream(self, sender: Sender, chat: ChatRequest, record: RequestRecord) -> None:
        done = False
        async with contextlib.aclosing(self._backend.chat(chat)) as chunks:
            async for chunk in chunks:
                self.log.chunk(record, chunk)
                done = done or chunk.done
                if not sender.started:
                    await sender.start(200, _NDJSON, _cached(chunk.cached_tokens))
                for data in (chat_line(chat.model, chunk),) if chunk.wire is None else chunk.wire:
                    await sender.part(data)
        if not sender.started:
            await sender.start(200, _NDJSON)
        # Recorded before the last bytes leave, so that whoever has read the answer also finds it in the log.
        self.log.finish(record, DONE if done else INCOMPLETE)
        await sender.end()

    async def _chat_once(self, sender: Sender, chat: ChatRequest, record: RequestRecord) -> None:
        whole = BackendChunk()
        cached: int | None = None
        content: list[str] = []
        thinking: list[str] = []
        calls: list[JSON] = []
        async with contextlib.aclosing(self._backend.chat(chat)) as chunks:
            async for chunk in chunks:
                self.log.chunk(record, chunk)
                cached = chunk.cached_tokens if cached is None else cached
                content.append(chunk.content)
                thinking.append(chunk.thinking)
                calls.extend(chunk.tool_calls)
                if chunk.done:
                    whole = chunk
        answer = BackendChunk(
            content="".join(content),
            thinking="".join(thinking),
            tool_calls=calls if chat.tools else (),
            done=whole.done,
            done_reason=whole.done_reason,
            prompt_eval_count=whole.prompt_eval_count,
            eval_count=whole.eval_count,
            total_duration=whole.total_duration,
            load_duration=whole.load_duration,
            prompt_eval_duration=whole.prompt_eval_duration,
            eval_duration=whole.eval_duration,
        )
        self.log.finish(record, DONE if whole.done else INCOMPLETE)
        await sender.json(200, chat_object(chat.model, answer), _cached(cached))

    # --- embed ----------------------------------------------------------------------------------------------------

    async def _embed(self, request: Request, record: RequestRecord) -> ASGIApp:
        embed, dimensions = parse_embed(await self._body(request, record))
        self.log.seen(record, embed.raw, embed.notes)
        name = parse_name(embed.model) if embed.model else None
        model = await self._find(name) if name else None
        if model is None:
            text = f'model "{embed.model}" not found, try pulling it first' if embed.model else "model '' not found"
            raise BackendError(404, text)
        check_options(embed.options)

        async def work(sender: Sender) -> None:
            loop = asyncio.get_running_loop()
            begun = loop.time()
            if not embed.inputs:
                await self._backend.load(model.name, embed.options, embed.keep_alive)
                await sender.json(200, {"model": embed.model, "embeddings": []})
                return
            result = await self._backend.embed(embed)
            try:
                vectors = [embedding(vector, dimensions) for vector in result.vectors]
            except ValueError as error:
                raise BackendError(400, str(error)) from None
            record.prompt_tokens = result.prompt_tokens
            value: JSON = {"model": embed.model, "embeddings": vectors}
            value["total_duration"] = max(1, int((loop.time() - begun) * 1e9))
            if result.load_duration:
                value["load_duration"] = result.load_duration
            if result.prompt_tokens:
                value["prompt_eval_count"] = result.prompt_tokens
            self.log.finish(record, DONE)
            await sender.json(200, value)

        return Watched(work, self.log, record)

    # --- pull -----------------------------------------------------------------------------------------------------

    async def _pull(self, request: Request, record: RequestRecord) -> ASGIApp:
        body = await self._body(request, record)
        name = _asked_name(body)
        stream = body.get("stream") is not False

        async def work(sender: Sender) -> None:
            last: JSON = {}
            async with contextlib.aclosing(self._backend.pull(name.short)) as lines:
                async for line in lines:
                    if isinstance(line, dict):
                        last = line
                        parts: tuple[bytes, ...] = (dumps(line) + b"\n",)
                    else:
                        parts = tuple(line.wire or ())
                    if not stream:
                        continue
                    if not sender.started:
                        await sender.start(200, _NDJSON)
                    for data in parts:
                        await sender.part(data)
            complete = last.get("status") == "success"
            self.log.finish(record, DONE if complete else INCOMPLETE)
            if not stream:
                await sender.json(200, last)
                return
            if not sender.started:
                await sender.start(200, _NDJSON)
            await sender.end()

        return Watched(work, self.log, record)


class _Answer(Response):
    """A Starlette response that leaves everything to a :class:`Watched`."""

    def __init__(self, watched: Watched) -> None:
        super().__init__()
        self._watched = watched

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._watched(scope, receive, send)


def _json(status: int, value: JSON) -> Response:
    return Response(dumps(value), status, media_type="application/json; charset=utf-8")


def _cached(count: int | None) -> dict[str, str]:
    return {} if count is None else {CACHED_HEADER: str(count)}


def _loaded(model: str, reason: str) -> JSON:
    return chat_object(model, BackendChunk(done=True, done_reason=reason))


def _asked_name(body: object) -> ModelName:
    """The model of a show, delete or pull body (``name`` is its older spelling)."""
    asked = (body.get("model") or body.get("name")) if isinstance(body, dict) else None
    if not asked:
        raise BackendError(400, "model is required")
    name = parse_name(asked) if isinstance(asked, str) else None
    if name is None:
        raise BackendError(400, "invalid model name")
    return name


def _check_capabilities(chat: ChatRequest, model: BackendModel, name: ModelName) -> None:
    if chat.think and "thinking" not in model.capabilities:
        raise BackendError(400, f'"{chat.model}" does not support thinking')
    if "completion" not in model.capabilities:
        raise BackendError(400, f'"{chat.model}" does not support chat')
    if chat.tools and "tools" not in model.capabilities:
        raise BackendError(400, f"{name.full} does not support tools")
