"""The backend protocol of the wire app: who produces tokens behind the HTTP API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

JSON = dict[str, Any]
# The name of the one tool a client offers to find out whether a model can call tools at all.
PROBE_TOOL = "say_ready"


@dataclass(slots=True)
class ChatRequest:
    """A parsed ``/api/chat`` body. ``raw`` is the body exactly as received.

    ``keep_alive`` is seconds, negative for ever, ``None`` when the request does not say. Whatever the backend puts
    into ``notes`` is shown beside this request in ``/debug/requests`` and is not sent to the client.
    """

    model: str
    messages: list[JSON]
    tools: list[JSON] = field(default_factory=list)
    stream: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    think: bool | str | None = None
    format: Any = None
    keep_alive: float | None = None
    truncate: bool = True
    raw: JSON = field(default_factory=dict)
    notes: JSON = field(default_factory=dict)

    @property
    def is_warm_up(self) -> bool:
        """Whether this request only wants the fixed part read: an empty user turn and at most one token of answer.

        On a server that knows nothing of warm-ups the same request is harmless: it reads the prompt up to the empty
        turn, keeps it in its prompt cache, and generates one token.
        """
        limit = self.options.get("num_predict")
        return (
            isinstance(limit, (int, float))
            and 0 <= limit <= 1
            and bool(self.messages)
            and self.messages[-1].get("role") == "user"
            and not self.messages[-1].get("content")
            and not self.messages[-1].get("images")
        )

    @property
    def is_probe(self) -> bool:
        """Whether this request only asks whether the model can call tools: its one tool has the probe's name."""
        names = [(tool.get("function") or {}).get("name") for tool in self.tools]
        return names == [PROBE_TOOL]


@dataclass(slots=True)
class BackendChunk:
    """What a backend yields.

    ``tool_calls`` are ``{"function": {"name", "arguments"}}`` objects. The last chunk has ``done`` and the counters
    (nanoseconds and tokens, named as on the wire, zero when unknown). ``cached_tokens`` becomes the private
    ``X-Prompt-Cached`` header when it is known with the first chunk, and is kept for ``/debug/requests`` anyway.

    ``wire`` is for backends that play faults: these byte strings are sent as they are, one HTTP chunk each, instead
    of the rendered object. Other fields still count for the records.
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
    wire: Sequence[bytes] | None = None


@dataclass(frozen=True, slots=True)
class BackendModel:
    """One model the backend serves, as ``/api/tags`` and ``/api/show`` need it.

    ``size`` is bytes, ``modified_at`` seconds since the epoch, ``parameters`` the text of ``/api/show`` with one
    ``key   value`` per line.
    """

    name: str
    digest: str
    size: int
    family: str
    parameter_size: str
    quantization: str
    context_length: int
    embedding_length: int
    capabilities: tuple[str, ...]
    modified_at: float = 0.0
    parameters: str = ""
    template: str = ""
    system: str = ""


@dataclass(slots=True)
class EmbedRequest:
    """A parsed ``/api/embed`` body. ``inputs`` is never empty."""

    model: str
    inputs: list[str]
    truncate: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    keep_alive: float | None = None
    raw: JSON = field(default_factory=dict)
    notes: JSON = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """One vector per input in the model's own size; the app normalises them and cuts them to ``dimensions``."""

    vectors: Sequence[Sequence[float]]
    prompt_tokens: int = 0
    load_duration: int = 0


class BackendError(Exception):
    """An error the wire app answers as ``{"error": …}`` with ``status`` (or as a line, once streaming)."""

    def __init__(self, status: int, error: Any, *, extra: JSON | None = None) -> None:
        super().__init__(str(error))
        self.status = status
        self.error = error
        self.extra = extra or {}

    def body(self) -> JSON:
        """The JSON object that goes over the wire."""
        return {"error": self.error, **self.extra}


class RawReply(BackendError):
    """An answer that is not Ollama's at all: an HTML page of a proxy, an empty 403. Only before the first chunk."""

    def __init__(self, status: int, content: bytes = b"", content_type: str = "") -> None:
        super().__init__(status, content.decode("utf-8", "replace"))
        self.content = content
        self.content_type = content_type


class CutConnection(Exception):
    """Drop the connection now, with a TCP reset or with a plain close in the middle of the body."""

    def __init__(self, *, reset: bool = True) -> None:
        super().__init__("connection cut")
        self.reset = reset


class Backend(Protocol):
    """What the wire app needs. Closing the iterator of ``chat`` must stop the generation.

    The app has checked the request (shape, existence of the model, capabilities) before it calls the backend. Every
    method may raise :class:`BackendError`. Closing or cancelling ``load`` aborts the load.
    """

    async def models(self) -> Sequence[BackendModel]:
        """All models, in any order."""
        ...

    def chat(self, request: ChatRequest) -> AsyncGenerator[BackendChunk, None]:
        """One answer. Loads the model first when its load options differ from those it runs with."""
        ...

    async def embed(self, request: EmbedRequest) -> EmbedResult:
        """Vectors for the inputs, in their order."""
        ...

    async def running(self) -> Sequence[JSON]:
        """Rows of ``/api/ps``."""
        ...

    async def load(self, model: str, options: Mapping[str, Any], keep_alive: float | None = None) -> None:
        """Load the model and return when it is ready."""
        ...

    async def unload(self, model: str) -> None:
        """Free the model; fine when it is not loaded."""
        ...

    def pull(self, model: str) -> AsyncGenerator[JSON | BackendChunk, None]:
        """Progress objects of ``/api/pull``; a :class:`BackendChunk` with ``wire`` is sent as it is."""
        ...

    async def delete(self, model: str) -> None:
        """Remove the model from disk."""
        ...

    def debug(self) -> JSON:
        """What ``/debug/requests`` says about the backend: the token counter used, loads and reloads."""
        ...

    async def close(self) -> None:
        """Free everything."""
        ...
