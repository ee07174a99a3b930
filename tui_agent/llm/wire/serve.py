"""Runs the wire app on a free loopback port: in a test's event loop, in a thread, or as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from .app import VERSION, create_app
from .backend import JSON, Backend
from .records import RequestLog, RequestRecord
from .stream import ABORT


def listen(port: int = 0, host: str = "127.0.0.1") -> socket.socket:
    """A listening socket; port 0 takes a free one. ``OSError`` when the port is taken or there is no such address."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere this option would let two programs share the port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    sock.set_inheritable(False)
    return sock


def config_for(app: ASGIApp, **more: Any) -> uvicorn.Config:
    """Uvicorn's settings for the wire app: silent, and no header that Ollama does not send."""
    options: dict[str, Any] = {
        "log_config": None,
        "log_level": "critical",
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "http": "h11",
        "ws": "none",
        "timeout_keep_alive": 75,
    }
    return uvicorn.Config(WithAbort(app), **{**options, **more})


class WithAbort:
    """Gives the app a way to drop its connection, which ASGI itself does not have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            transport = getattr(getattr(send, "__self__", None), "transport", None)
            if transport is not None:
                scope.setdefault("extensions", {})[ABORT] = lambda reset: _drop(transport, reset)
        await self._app(scope, receive, send)


def _drop(transport: asyncio.Transport, reset: bool) -> None:
    if reset:
        sock = transport.get_extra_info("socket")
        with contextlib.suppress(OSError, AttributeError):
            # Linger of zero seconds makes close() send RST instead of FIN.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


class LoopServer:
    """Any ASGI app on a loopback port, in the current event loop; starts and stops at once.

    ``host`` may be ``::1`` too. ``certificate`` names the files of a certificate and its key: then it speaks https.
    """

    def __init__(
        self, app: ASGIApp, *, port: int = 0, host: str = "127.0.0.1", certificate: tuple[str, str] | None = None
    ) -> None:
        self._app = app
        self._port = port
        self._host = host
        self._certificate = certificate
        self._sock: socket.socket | None = None
        self._server: uvicorn.Server | None = None

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``; after a stop still the address it had."""
        name = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._certificate else 'http'}://{name}:{self._port}"

    async def start(self) -> None:
        """Listen. A stopped server can be started again on its port."""
        self._sock = listen(self._port, self._host)
        self._port = self._sock.getsockname()[1]
        secure: dict[str, Any] = {}
        if self._certificate is not None:
            secure = {"ssl_certfile": self._certificate[0], "ssl_keyfile": self._certificate[1]}
        config = config_for(self._app, lifespan="off", **secure)
        config.load()
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._sock])
        await self._server.on_tick(0)

    async def stop(self) -> None:
        """Stop at once, dropping what is in flight, as a killed server would."""
        server, self._server = self._server, None
        if server is None:
            return
        # Uvicorn's own shutdown waits for answers to finish, which an answer held by a test never does.
        for listener in server.servers:
            listener.close()
        for connection in list(server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        tasks = list(server.server_state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._sock is not None:
            self._sock.close()


class WireServer(LoopServer):
    """A wire app on a loopback port for tests.

    ``async with WireServer(backend) as server`` runs it in the current event loop, ``with WireServer(backend) as
    server`` in a thread of its own (for programs with their own loop). ``server.url`` is the address.
    """

    def __init__(self, backend: Backend, *, port: int = 0, version: str = VERSION) -> None:
        self.backend = backend
        self.debug_token = secrets.token_urlsafe(16)
        self.log = RequestLog()
        self.app: Starlette = create_app(backend, debug_token=self.debug_token, log=self.log, version=version)
        super().__init__(self.app, port=port)
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] | None = None

    @property
    def requests(self) -> list[RequestRecord]:
        """All requests with a body of their own, oldest first."""
        return list(self.log.records)

    @property
    def chats(self) -> list[RequestRecord]:
        """The ``/api/chat`` requests, without warm-ups, probes and loads."""
        aside = ("warm_up", "probe")
        return [one for one in self.log.of("/api/chat") if one.messages and not any(map(one.notes.get, aside))]

    @property
    def probes(self) -> list[RequestRecord]:
        """The requests that asked whether the model can call tools."""
        return [one for one in self.log.of("/api/chat") if one.notes.get("probe")]

    async def debug(self) -> JSON:
        """What ``/debug/requests`` answers over the socket."""
        async with httpx.AsyncClient(trust_env=False) as client:
            headers = {"Authorization": f"Bearer {self.debug_token}"}
            answer = await client.get(f"{self.url}/debug/requests", headers=headers)
            answer.raise_for_status()
            value: JSON = answer.json()
            return value

    async def __aenter__(self) -> WireServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        await self.backend.close()

    def __enter__(self) -> WireServer:
        ready = threading.Event()
        failed: list[BaseException] = []

        async def main() -> None:
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            self._stop = lambda: loop.call_soon_threadsafe(stop.set)
            try:
                await self.start()
            except BaseException as error:
                failed.append(error)
                return
            finally:
                ready.set()
            await stop.wait()
            await self.stop()
            await self.backend.close()

        self._thread = threading.Thread(target=lambda: asyncio.run(main()), name="wire-server", daemon=True)
        self._thread.start()
        ready.wait()
        if failed:
            raise failed[0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stop is not None:
            self._stop()
        if self._thread is not None:
            self._thread.join(10)
