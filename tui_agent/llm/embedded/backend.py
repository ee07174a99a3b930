"""The wire app's backend on llama.cpp: one model, one slot, the fixed part of the prompt kept across restarts.

The model is held by a server process of its own (:mod:`~tui_agent.llm.embedded.llama`) and spoken to over HTTP on
loopback, so closing a stream stops the generation. Requests run one after another.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from ..errors import ModelError
from ..wire.backend import JSON, BackendChunk, BackendError, BackendModel, ChatRequest, EmbedRequest, EmbedResult
from ..wire.gojson import FOREVER_S
from ..wire.objects import ps_row
from ..wire.validate import load_options
from .llama import LlamaWorker, ModelServer, ServerConfig, WorkerFailed
from .openai import Answer, body_for, error_of, messages_for
from .slots import SlotStates

log = logging.getLogger(__name__)

# A fixed part shorter than this is read faster than it is worth storing.
_MIN_STORED_TOKENS = 64
_GONE = "the engine's process ended unexpectedly; the next message starts it again"

Launch = Callable[[ServerConfig], Awaitable[ModelServer]]
# (stage, done, total): "loading" with zeros, "reading" with tokens, "ready" with zeros.
OnProgress = Callable[[str, int, int], None]


def _quiet(stage: str, done: int, total: int) -> None:
    """Nobody wants to know."""


class LlamaBackend:
    """One GGUF model.

    The model is loaded with the first request that needs it, and stays: the engine belongs to one app, so a
    ``keep_alive`` is a promise kept until the app ends, except 0, which unloads. A request with other load options
    (``num_ctx``, ``num_thread``, ``num_gpu``) loads the model again and loses what it had read.

    The fixed part of a prompt is its leading system messages and the tools. The first request with a fixed part reads
    that part alone and stores the slot's state under a hash of its text, the model, ``num_ctx`` and the engine's
    version; after a restart the state is restored instead of read.

    Args:
        model: what the API says about it.
        path: gives the model's file, maybe after a while; an exception is the answer to every chat.
        slots: where states are stored.
        num_ctx: window in tokens for requests that do not name one.
        threads: for the arithmetic; one per physical core when not given.
        on_progress: told what takes time.
        launch: starts the server process; tests give their own.
    """

    def __init__(
        self,
        model: BackendModel,
        path: Callable[[], Awaitable[Path]],
        slots: SlotStates,
        *,
        num_ctx: int = 8192,
        threads: int | None = None,
        on_progress: OnProgress = _quiet,
        launch: Launch = LlamaWorker.start,
    ) -> None:
        self._model = model
        self._path = path
        self._slots = slots
        self._num_ctx = num_ctx
        self._threads = threads
        self._on_progress = on_progress
        self._launch = launch
        self._turn = asyncio.Lock()
        self._server: ModelServer | None = None
        self._options: JSON = {}
        self._loading: asyncio.Task[ModelServer] | None = None
        # llama.cpp drops idle connections after five seconds; a kept one would fail with the next message.
        self._http = httpx.AsyncClient(
            trust_env=False,
            timeout=httpx.Timeout(None, connect=10),
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        # Fixed parts this server has read: their state is in the slot or in its RAM cache.
        self._known: set[str] = set()
        self._holds_something = False
        self.loads = self.reloads = self.restored = self.stored = 0

    # --- loading ----------------------------------------------------------------------------------------------------

    def _wanted(self, options: Mapping[str, Any]) -> JSON:
        return load_options(options, self._model.context_length, self._num_ctx)

    async def _ready(self, options: Mapping[str, Any]) -> tuple[ModelServer, bool]:
        """The running server and whether this request had to wait for a load. The caller holds the turn."""
        wanted = self._wanted(options)
        if self._loading is not None and self._options != wanted:
            await asyncio.gather(asyncio.shield(self._loading), return_exceptions=True)
        if self._server is not None and not self._server.ended and self._options == wanted:
            return self._server, False
        if self._loading is None:
            self._options = wanted
            self._loading = asyncio.ensure_future(self._load(wanted))
            self._loading.add_done_callback(self._loaded)
        # A client that leaves does not undo the load: the next message will need it.
        return await asyncio.shield(self._loading), True

    def _loaded(self, task: asyncio.Task[ModelServer]) -> None:
        self._loading = None
        if not task.cancelled() and task.exception() is None:
            self._server = task.result()

    async def _load(self, wanted: JSON) -> ModelServer:
        if self._server is not None:
            if not self._server.ended:
                self.reloads += 1
            await self._server.stop()
            self._server = None
        self._known.clear()
        self._holds_something = False
        try:
            path = await self._path()
        except ModelError as error:
            raise BackendError(500, str(error)) from error
        self._on_progress("loading", 0, 0)
        try:
            await asyncio.to_thread(self._slots.prepare)
        except OSError as error:  # states are a convenience; without them every start reads the prompt again
            log.warning("%s cannot be used, so nothing is stored there: %s", self._slots.folder, error)
        try:
            config = ServerConfig.make(
                path,
                self._slots.folder,
                wanted["num_ctx"],
                threads=wanted.get("num_thread") or self._threads,
                gpu_layers=wanted.get("num_gpu"),
            )
            server = await self._launch(config)
        except WorkerFailed as error:
            raise BackendError(
                500, f"The model {path} could not be loaded with a window of {wanted['num_ctx']} tokens: {error}."
            ) from error
        except OSError as error:
            raise BackendError(500, f"The engine's process could not be started: {error}.") from error
        self.loads += 1
        self._on_progress("ready", 0, 0)
        return server

    # --- chat -------------------------------------------------------------------------------------------------------

    async def chat(self, request: ChatRequest) -> AsyncGenerator[BackendChunk, None]:
        """One answer; a warm-up request gives its counters and no text."""
        begun = time.monotonic_ns()
        async with self._turn:
            server, fresh = await self._ready(request.options)
            load_ns = time.monotonic_ns() - begun
            request.notes.update(loaded=fresh, warm_up=request.is_warm_up)
            try:
                before = await self._prepare(server, request)
                body = body_for(request, self._options["num_ctx"])
                answer = Answer()
                async with contextlib.aclosing(self._stream(server, body, answer)) as pieces:
                    async for content, thinking in pieces:
                        if (content or thinking) and not request.is_warm_up:
                            cached = self._cached(answer, before)
                            yield BackendChunk(content=content, thinking=thinking, cached_tokens=cached)
            except httpx.TransportError as error:
                log.warning("the connection to the model's process was lost: %r", error)
                raise BackendError(500, f"an error was encountered while running the model: {_GONE}") from error
            yield BackendChunk(
                tool_calls=answer.tool_calls,
                done=True,
                done_reason=answer.done_reason,
                cached_tokens=self._cached(answer, before),
                prompt_eval_count=(answer.cached or 0) + answer.read,
                eval_count=answer.written,
                total_duration=time.monotonic_ns() - begun,
                load_duration=load_ns,
                prompt_eval_duration=int((before.read_ms + answer.read_ms) * 1e6),
                eval_duration=int(answer.write_ms * 1e6),
            )
            if request.keep_alive == 0:
                await self._stop()

    @staticmethod
    def _cached(answer: Answer, before: Answer) -> int:
        """Prompt tokens that nobody had to read for this request: what was read ahead for it does not count."""
        return max(0, (answer.cached or 0) - before.read)

    async def _stream(self, server: ModelServer, body: JSON, answer: Answer) -> AsyncGenerator[tuple[str, str], None]:
        """Content and thinking as they come; counters go to ``answer``. Closing it stops the generation."""
        url = f"{server.url}/v1/chat/completions"
        async with self._http.stream("POST", url, json=body, headers=_auth(server)) as reply:
            if reply.status_code >= 400:
                raise error_of(reply.status_code, _parsed(await reply.aread()))
            self._holds_something = True
            last = -1
            async for event in _events(reply):
                piece = answer.take(event)
                if answer.processed != last and not answer.written:
                    last = answer.processed
                    self._on_progress("reading", answer.processed, answer.total)
                yield piece
        if answer.cached is None:
            raise BackendError(500, f"an error was encountered while running the model: {_GONE}")

    async def _prepare(self, server: ModelServer, request: ChatRequest) -> Answer:
        """Have the fixed part in the slot, restored or read; returns the counters of what was read for it."""
        answer = Answer()
        systems = _leading_systems(request.messages)
        if not systems and not request.tools:
            return answer
        fixed = [*systems, {"role": "user", "content": ""}]
        ahead = ChatRequest(
            request.model,
            fixed,
            request.tools,
            options={**request.options, "num_predict": 1, "stop": None},
            think=request.think,
        )
        key = await self._key(server, ahead)
        if key is None or key in self._known:
            return answer
        if await asyncio.to_thread(self._slots.has, key) and await self._restore(server, key):
            request.notes["restored"] = True
            self._known.add(key)
            return answer
        async with contextlib.aclosing(
            self._stream(server, body_for(ahead, self._options["num_ctx"]), answer)
        ) as pieces:
            async for _ in pieces:
                pass
        self._known.add(key)
        request.notes["read_ahead"] = answer.read
        if (answer.cached or 0) + answer.read >= _MIN_STORED_TOKENS:
            await self._store(server, key)
        return answer

    async def _key(self, server: ModelServer, ahead: ChatRequest) -> str | None:
        """The name of the fixed part's state, or ``None`` when the template does not take it alone."""
        body: JSON = {"messages": messages_for(ahead.messages)}
        if ahead.tools:
            body["tools"] = ahead.tools
        if ahead.think is not None:
            body["chat_template_kwargs"] = {"enable_thinking": bool(ahead.think)}
        reply = await self._http.post(f"{server.url}/apply-template", json=body, headers=_auth(server))
        if reply.status_code != 200:
            return None
        text = str(reply.json().get("prompt", ""))
        return SlotStates.key(self._model.digest, str(self._options["num_ctx"]), _engine_version(), text)

    async def _restore(self, server: ModelServer, key: str) -> bool:
        if self._holds_something:
            # Restoring overwrites the slot. A short foreign prompt first makes the server put what it holds into its
            # RAM cache, from where the conversation comes back without being read again.
            await self._http.post(
                f"{server.url}/completion",
                json={"prompt": "\n", "n_predict": 1, "cache_prompt": True},
                headers=_auth(server),
            )
        reply = await self._slot(server, "restore", self._slots.file(key).name)
        if reply.status_code != 200:
            log.warning("a stored prompt state could not be used and is deleted: %s", reply.text)
            await asyncio.to_thread(self._slots.drop, key)
            return False
        self._holds_something = True
        self.restored += 1
        return True

    async def _store(self, server: ModelServer, key: str) -> None:
        """Keep the slot's state for the next start. Failing costs time then, so it is only logged."""
        if not await asyncio.to_thread(self._slots.has_room):
            return
        written = f"{key}.part"
        reply = await self._slot(server, "save", written)
        if reply.status_code != 200:
            log.warning("the state of the prompt could not be stored: %s", reply.text)
            return
        try:
            await asyncio.to_thread(self._slots.accept, key, written)
            self.stored += 1
        except OSError as error:
            log.warning("the state of the prompt could not be stored: %s", error)

    async def _slot(self, server: ModelServer, action: str, name: str) -> httpx.Response:
        url = f"{server.url}/slots/0?action={action}"
        return await self._http.post(url, json={"filename": name}, headers=_auth(server))

    # --- the other endpoints ----------------------------------------------------------------------------------------

    async def models(self) -> Sequence[BackendModel]:
        """The one model."""
        return (self._model,)

    async def embed(self, request: EmbedRequest) -> EmbedResult:
        """Refused: embeddings are made in the app's own process."""
        raise BackendError(400, "this engine serves a chat model only and makes no embeddings")

    async def running(self) -> Sequence[JSON]:
        """One row when the model is loaded."""
        if self._server is None or self._server.ended:
            return ()
        return (ps_row(self._model, num_ctx=self._options["num_ctx"], expires_at=time.time() + FOREVER_S),)

    async def load(self, model: str, options: Mapping[str, Any], keep_alive: float | None = None) -> None:
        """Load the model; waits for the file to be unpacked when it is the first time."""
        async with self._turn:
            await self._ready(options)

    async def unload(self, model: str) -> None:
        """End the process that holds the model."""
        async with self._turn:
            if self._loading is not None:
                await asyncio.gather(asyncio.shield(self._loading), return_exceptions=True)
            await self._stop()

    async def pull(self, model: str) -> AsyncGenerator[JSON | BackendChunk, None]:
        """Nothing can be downloaded here."""
        yield {"status": "pulling manifest"}
        raise BackendError(
            500, "the built-in engine cannot download models; name a .gguf file in the settings, or use Ollama"
        )

    async def delete(self, model: str) -> None:
        """Refused: the file is not ours, or belongs to installed packages."""
        raise BackendError(400, "the built-in engine does not delete its model file")

    def debug(self) -> JSON:
        """Counters for ``/debug/requests``."""
        return {
            "counter": "the model's own tokenizer",
            "loads": self.loads,
            "reloads": self.reloads,
            "states_restored": self.restored,
            "states_stored": self.stored,
            "runners": [{"model": self._model.name, "options": self._options}] if self._server else [],
        }

    async def close(self) -> None:
        """End everything."""
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        await self._stop()
        await self._http.aclose()

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()


def _auth(server: ModelServer) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.key}"}


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _leading_systems(messages: Sequence[JSON]) -> list[JSON]:
    found = []
    for message in messages:
        if message.get("role") != "system":
            break
        found.append(message)
    return found


def _engine_version() -> str:
    try:
        return importlib.metadata.version("xllamacpp")
    except importlib.metadata.PackageNotFoundError:
        return ""


async def _events(reply: httpx.Response) -> AsyncGenerator[JSON, None]:
    """The server-sent events of an answer. Lines end at LF alone: content may hold U+2028 or U+0085."""
    rest = b""
    async for part in reply.aiter_raw():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            kind, _, data = line.strip().partition(b":")
            data = data.strip()
            if kind == b"error":
                yield {"error": _parsed(data)}
            elif kind == b"data" and data != b"[DONE]":
                event = _parsed(data)
                if isinstance(event, dict):
                    yield event
