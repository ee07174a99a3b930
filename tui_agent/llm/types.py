"""Values that cross the border between the model server and the rest of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model wants to make.

    ``arguments`` is always an object, never a JSON string. ``rescued`` is true when the call arrived as text and
    was recognised by :mod:`tui_agent.llm.toolcalls`.
    """

    name: str
    arguments: JSON = field(default_factory=dict)
    rescued: bool = False
    id: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counters of one finished generation. Durations are seconds; counts are tokens, ``None`` when not reported.

    ``prompt_tokens`` is cached plus newly read tokens (``prompt_eval_count``); ``cached_tokens`` is known only from
    servers that report it (our own wire app, through the ``X-Prompt-Cached`` header).
    """

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    total_s: float | None = None
    load_s: float | None = None
    prompt_s: float | None = None
    output_s: float | None = None

    @property
    def tokens_per_second(self) -> float | None:
        """Generation speed, or ``None`` when the server gave no figures."""
        if not self.output_tokens or not self.output_s:
            return None
        return self.output_tokens / self.output_s


@dataclass(frozen=True, slots=True)
class ChatChunk:
    """One line of a chat stream. Every field of every chunk counts, also on the one with ``done``."""

    content: str = ""
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    done: bool = False
    done_reason: str | None = None
    metrics: Metrics | None = None


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Options sent unchanged with every call for one model, so that the server never reloads it.

    ``num_ctx`` and ``num_predict`` are tokens. ``keep_alive`` is a Go duration string with a unit, or seconds.
    ``extra`` holds further Ollama options (temperature, seed, num_gpu, …).
    """

    num_ctx: int
    num_predict: int
    keep_alive: str | float = "30m"
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_options(self) -> JSON:
        """The ``options`` object of a request body, keys in a stable order."""
        return {"num_ctx": self.num_ctx, "num_predict": self.num_predict, **dict(sorted(self.extra.items()))}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What ``/api/show`` (and ``/api/tags``) tell of one model."""

    name: str
    digest: str = ""
    capabilities: frozenset[str] = frozenset()
    context_length: int | None = None
    embedding_length: int | None = None
    family: str = ""
    parameter_size: str = ""
    quantization: str = ""
    size: int | None = None
    remote: bool = False
    remote_host: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def tools(self) -> bool:
        """Whether the server says the model can call tools."""
        return "tools" in self.capabilities

    @property
    def thinking(self) -> bool:
        """Whether the server says the model can think."""
        return "thinking" in self.capabilities


@dataclass(frozen=True, slots=True)
class RunningModel:
    """One row of ``/api/ps``. Sizes are bytes; ``expires_at`` is the server's RFC 3339 text."""

    name: str
    size: int | None = None
    size_vram: int | None = None
    context_length: int | None = None
    expires_at: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class PullProgress:
    """One line of a pull: ``total`` and ``completed`` are bytes of the layer ``digest`` (absent on status lines)."""

    status: str
    digest: str = ""
    total: int | None = None
    completed: int | None = None
