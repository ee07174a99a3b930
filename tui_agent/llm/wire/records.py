"""What happened to each request: for tests, for the prefix benchmark, and for finding out what was really sent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .backend import JSON, BackendChunk

RUNNING, DONE, INCOMPLETE, ERROR, CUT, DISCONNECTED = "running", "done", "incomplete", "error", "cut", "disconnected"


@dataclass(slots=True)
class RequestRecord:
    """One request. Times are seconds on the log's clock (0 = when the log was made), ``None`` = did not happen.

    ``outcome`` is ``running``, ``done`` (the final object was sent), ``incomplete`` (ended without it), ``error``,
    ``cut`` (we dropped the connection) or ``disconnected`` (the client went away). ``notes`` come from the backend.
    """

    number: int
    method: str
    path: str
    body: Any
    received_at: float
    status: int | None = None
    outcome: str = RUNNING
    first_byte_at: float | None = None
    finished_at: float | None = None
    disconnected_at: float | None = None
    error: Any = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    done_reason: str | None = None
    notes: JSON = field(default_factory=dict)

    @property
    def messages(self) -> list[JSON]:
        """The messages of a chat body, or nothing."""
        found = self.body.get("messages") if isinstance(self.body, dict) else None
        return found if isinstance(found, list) else []

    def as_json(self) -> JSON:
        """The row of ``/debug/requests``."""
        return {name: getattr(self, name) for name in self.__slots__}


class RequestLog:
    """The newest requests, and the largest number of chat and embed requests that were in flight at once."""

    def __init__(self, *, keep_bodies: bool = True, size: int = 2000, clock: Callable[[], float] = time.monotonic):
        self.keep_bodies = keep_bodies
        self.records: deque[RequestRecord] = deque(maxlen=size)
        self.in_flight = 0
        self.in_flight_max = 0
        self._clock = clock
        self._zero = clock()
        self._count = 0
        self._notes: dict[int, JSON] = {}
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def now(self) -> float:
        """Seconds since the log was made."""
        return self._clock() - self._zero

    def begin(self, method: str, path: str) -> RequestRecord:
        """A record for a request that has just arrived."""
        record = RequestRecord(self._count, method, path, None, self.now())
        self._count += 1
        self.records.append(record)
        if path in ("/api/chat", "/api/embed"):
            self.in_flight += 1
            self.in_flight_max = max(self.in_flight_max, self.in_flight)
        self._changed()
        return record

    def seen(self, record: RequestRecord, body: Any, notes: JSON | None = None) -> None:
        """The body was parsed; ``notes`` is the backend's dictionary, filled later."""
        if self.keep_bodies:
            record.body = body
            record.notes = record.notes if notes is None else notes
        elif notes is not None:
            self._notes[record.number] = notes
        self._changed()

    def first_byte(self, record: RequestRecord, status: int) -> None:
        """Status line and headers are going out."""
        record.status = status
        record.first_byte_at = self.now()
        self._changed()

    def chunk(self, record: RequestRecord, chunk: BackendChunk) -> None:
        """Take the counters of a chunk."""
        if chunk.cached_tokens is not None:
            record.cached_tokens = chunk.cached_tokens
        if chunk.prompt_eval_count:
            record.prompt_tokens = chunk.prompt_eval_count
        if chunk.done:
            record.output_tokens = chunk.eval_count
            record.done_reason = chunk.done_reason

    def disconnected(self, record: RequestRecord) -> None:
        """The client has closed its side while the request was running."""
        record.disconnected_at = self.now()

    def finish(self, record: RequestRecord, outcome: str, error: Any = None) -> None:
        """The request is over and the backend's iterator is closed."""
        if record.finished_at is not None:
            return
        record.outcome = outcome
        record.error = error
        record.finished_at = self.now()
        # Texts are what must not stay in memory here; counters and flags may.
        for name, value in self._notes.pop(record.number, {}).items():
            if not isinstance(value, str):
                record.notes[name] = value
        if record.path in ("/api/chat", "/api/embed"):
            self.in_flight -= 1
        self._changed()

    def of(self, path: str) -> list[RequestRecord]:
        """The records of one path, oldest first."""
        return [record for record in self.records if record.path == path]

    async def until(self, condition: Callable[[RequestLog], bool], timeout: float = 10.0) -> None:
        """Wait, from any event loop, until the condition holds; ``asyncio.TimeoutError`` when it never does."""
        entry = (asyncio.get_running_loop(), asyncio.Event())
        self._waiting.append(entry)
        try:

            async def wait() -> None:
                while not condition(self):
                    await entry[1].wait()
                    entry[1].clear()

            await asyncio.wait_for(wait(), timeout)
        finally:
            self._waiting.remove(entry)

    def _changed(self) -> None:
        for loop, event in list(self._waiting):
            with contextlib.suppress(RuntimeError):  # the waiter's loop may have been closed meanwhile
                loop.call_soon_threadsafe(event.set)

    def as_json(self) -> JSON:
        """The answer of ``/debug/requests``, without the backend's part."""
        return {
            "now": self.now(),
            "in_flight": self.in_flight,
            "in_flight_max": self.in_flight_max,
            "requests": [record.as_json() for record in self.records],
        }
