"""The backend protocol of the wire app: who produces tokens behind the HTTP API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

JSON = dict[str, Any]


@dataclass(slots=True)
class ChatRequest:
    """A parsed ``/api/chat`` body. ``raw`` is the body exactly as received."""

    model: str
    messages: list[JSON]
    tools: list[JSON] = field(default_factory=list)
    stream: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    think: bool | str | None = None
    format: Any = None
    keep_alive: Any = None
    raw: JSON = field(default_factory=dict)


@dataclass(slots=True)
class BackendChunk:
    """What a backend yields.

    ``tool_calls`` are ``{"function": {"name", "arguments"}}`` objects. The last chunk has ``done`` and the counters
    (nanoseconds and tokens, named as on the wire, zero when unknown). ``cached_tokens`` becomes the private
    ``X-Prompt-Cached`` header when it is known with the first chunk, and is kept for ``/debug/requests`` anyway.
    """

    content: str = ""
    thinking: str = ""
    tool_calls: Sequence[JSON] = ()
    done: bool = False
    done_reason: str = "stop"
    prompt_eval_count: int = 0
    cached_tokens: int | None = None
    eval_count: int = 0
    total_duration: int = 0
    load_duration: int = 0
    prompt_eval_duration: int = 0
    eval_duration: int = 0


@dataclass(frozen=True, slots=True)
class BackendModel:
    """One model the backend serves, as ``/api/tags`` and ``/api/show`` need it."""

    name: str
    digest: str
    size: int
    family: str
    parameter_size: str
    quantization: str
    context_length: int
    embedding_length: int
    capabilities: tuple[str, ...]


class BackendError(Exception):
    """An error the wire app answers as ``{"error": …}`` with ``status`` (or as a line, once streaming)."""

    def __init__(self, status: int, error: Any, *, extra: JSON | None = None) -> None:
        super().__init__(str(error))
        self.status = status
        self.error = error
        self.extra = extra or {}


class Backend(Protocol):
    """What the wire app needs. Closing the iterator of ``chat`` must stop the generation."""

    async def models(self) -> Sequence[BackendModel]: ...

    def chat(self, request: ChatRequest) -> AsyncIterator[BackendChunk]: ...

    async def embed(self, model: str, inputs: Sequence[str], options: Mapping[str, Any]) -> list[list[float]]: ...

    async def running(self) -> Sequence[JSON]:
        """Rows of ``/api/ps``."""
        ...

    async def load(self, model: str, options: Mapping[str, Any]) -> None: ...

    async def unload(self, model: str) -> None: ...

    async def close(self) -> None: ...
