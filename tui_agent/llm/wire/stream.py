"""ASGI answers that stop the work behind them the moment the client goes away, and send nothing before it is due."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.types import Receive, Scope, Send

from .backend import JSON, BackendError, CutConnection, RawReply
from .gojson import dumps
from .records import CUT, DISCONNECTED, DONE, ERROR, RequestLog, RequestRecord

ABORT = "tui_agent.abort"

Work = Callable[["Sender"], Awaitable[None]]


class Sender:
    """Writes one answer; the status line goes out with the first body bytes, not before."""

    def __init__(self, send: Send, log: RequestLog, record: RequestRecord) -> None:
        self._send = send
        self._log = log
        self._record = record
        self.started = False

    async def start(self, status: int, content_type: str, headers: Mapping[str, str] | None = None) -> None:
        """Send status line and headers."""
        self.started = True
        pairs: list[tuple[bytes, bytes]] = []
        if content_type:
            pairs.append((b"content-type", content_type.encode()))
        pairs += [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        self._log.first_byte(self._record, status)
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def part(self, data: bytes) -> None:
        """Send one HTTP chunk and let the reader run."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        await asyncio.sleep(0)

    async def end(self) -> None:
        """Finish the body."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(
        self, status: int, data: bytes, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an answer of known length."""
        sized = {**(headers or {}), "content-length": str(len(data))}
        await self.start(status, content_type, sized)
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def json(self, status: int, value: JSON, headers: Mapping[str, str] | None = None) -> None:
        """Send one JSON object."""
        await self.whole(status, dumps(value), "application/json; charset=utf-8", headers)

    async def error(self, error: BackendError) -> None:
        """The error as an answer with its status, or as the last line once the stream has begun."""
        if self.started:
            await self.part(dumps(error.body()) + b"\n")
            await self.end()
        elif isinstance(error, RawReply):
            await self.whole(error.status, error.content, error.content_type)
        else:
            await self.json(error.status, error.body())


class Watched:
    """Runs ``work`` and cancels it when the client disconnects; keeps the record of the request.

    ``work`` sets the record's outcome by returning (done), by raising :class:`BackendError` or
    :class:`CutConnection`, or by calling ``log.finish`` itself.
    """

    def __init__(self, work: Work, log: RequestLog, record: RequestRecord) -> None:
        self._work = work
        self._log = log
        self._record = record

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sender = Sender(send, self._log, self._record)
        work = asyncio.ensure_future(self._run(sender, scope, receive))
        watch = asyncio.ensure_future(_disconnect(receive))
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self._log.disconnected(self._record)
        finally:
            watch.cancel()
            # A server that shuts down cancels us: the work must not outlive the answer then either.
            work.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)
            self._log.finish(self._record, DISCONNECTED)
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error

    async def _run(self, sender: Sender, scope: Scope, receive: Receive) -> None:
        try:
            await self._work(sender)
        except BackendError as error:
            if not sender.started:
                # The status is known only now; the record must show it even when the client leaves while we write.
                self._record.status = error.status
            await sender.error(error)
            self._log.finish(self._record, ERROR, error.error)
        except CutConnection as cut:
            self._log.finish(self._record, CUT)
            await _abort(scope, cut.reset)
        except Exception as error:
            self._log.finish(self._record, ERROR, f"{type(error).__name__}: {error}")
            raise
        else:
            self._log.finish(self._record, DONE)


async def _disconnect(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _abort(scope: Scope, reset: bool) -> None:
    abort = scope.get("extensions", {}).get(ABORT)
    if abort is None:
        # Any server drops the connection when the app fails in the middle of a body.
        raise ConnectionResetError("the connection is cut on purpose")
    abort(reset)
    # The transport reports the loss in the next rounds of the loop; returning earlier would be logged as an error.
    for _ in range(3):
        await asyncio.sleep(0)
