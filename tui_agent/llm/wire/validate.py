"""Request bodies checked as the Go server checks them, with its words for what is wrong."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

from .backend import JSON, BackendError, ChatRequest, EmbedRequest
from .gojson import parse_keep_alive

THINK_LEVELS = ("high", "medium", "low", "max")

_INT_OPTIONS = frozenset(
    {
        "num_ctx",
        "num_predict",
        "num_batch",
        "num_gpu",
        "num_thread",
        "num_keep",
        "main_gpu",
        "top_k",
        "seed",
        "repeat_last_n",
        "draft_num_predict",
    }
)
_FLOAT_OPTIONS = frozenset(
    {
        "temperature",
        "top_p",
        "min_p",
        "typical_p",
        "repeat_penalty",
        "presence_penalty",
        "frequency_penalty",
    }
)
_BOOL_OPTIONS = frozenset({"use_mmap", "penalize_newline", "numa"})

# Options that the runner is started with: any difference means unload and load.
LOAD_OPTIONS = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "draft_num_predict")

_MESSAGE_STRINGS = ("role", "content", "thinking", "tool_name", "tool_call_id")


def _kind(value: Any) -> str:
    """The JSON kind of a value in Go's words."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _typed(owner: str, path: str, value: Any, kind: str, go_type: str) -> None:
    """Refuse a value of the wrong JSON kind; ``null`` leaves the Go field alone and is fine."""
    if value is not None and _kind(value) != kind:
        text = f"json: cannot unmarshal {_kind(value)} into Go struct field {owner}.{path} of type {go_type}"
        raise BackendError(400, text)


def check_options(options: Mapping[str, Any]) -> None:
    """Types of known options; unknown ones are ignored. The server answers these with 500, not 400."""
    for key, value in options.items():
        if value is None:
            continue
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if key in _INT_OPTIONS and not number:
            raise BackendError(500, f'option "{key}" must be of type integer')
        if key in _FLOAT_OPTIONS and not number:
            raise BackendError(500, f'option "{key}" must be of type float32')
        if key in _BOOL_OPTIONS and not isinstance(value, bool):
            raise BackendError(500, f'option "{key}" must be of type boolean')
        if key == "stop" and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise BackendError(500, 'option "stop" must be of type array of strings')


def load_options(options: Mapping[str, Any], context_length: int, default_ctx: int) -> JSON:
    """The effective options a runner is started with; ``num_ctx`` is clamped to ``4 … context_length``."""
    wanted = {key: options[key] for key in LOAD_OPTIONS if options.get(key) is not None}
    if wanted.get("num_gpu", 0) < 0:
        del wanted["num_gpu"]  # negative means automatic, the same as not given
    asked = int(wanted.get("num_ctx", default_ctx))
    wanted["num_ctx"] = max(4, min(asked if asked > 0 else default_ctx, context_length))
    return wanted


def _check_message(message: Any) -> None:
    _typed("ChatRequest", "messages", message, "object", "api.Message")
    if message is None:
        return
    for key in _MESSAGE_STRINGS:
        _typed("ChatRequest", f"messages.{key}", message.get(key), "string", "string")
    images = message.get("images")
    _typed("ChatRequest", "messages.images", images, "array", "[]api.ImageData")
    for image in images or ():
        _typed("ChatRequest", "messages.images", image, "string", "api.ImageData")
        try:
            base64.b64decode(image or "", validate=True)
        except (binascii.Error, ValueError):
            raise BackendError(400, "illegal base64 data at input byte 4") from None
    calls = message.get("tool_calls")
    _typed("ChatRequest", "messages.tool_calls", calls, "array", "[]api.ToolCall")
    for call in calls or ():
        _typed("ChatRequest", "messages.tool_calls", call, "object", "api.ToolCall")
        function = (call or {}).get("function")
        _typed("ChatRequest", "messages.tool_calls.function", function, "object", "api.ToolCallFunction")
        _typed("ChatRequest", "messages.tool_calls.function.name", (function or {}).get("name"), "string", "string")
        arguments = (function or {}).get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            raise BackendError(400, "Value looks like object, but can't find closing '}' symbol")


def _check_think(think: Any) -> None:
    if think is None or isinstance(think, bool) or think in THINK_LEVELS:
        return
    levels = '"high", "medium", "low", "max", true, or false'
    if isinstance(think, str):
        raise BackendError(400, f'invalid think value: "{think}" (must be {levels})')
    raise BackendError(400, f"think must be a boolean or string ({levels})")


def parse_chat(body: Any) -> ChatRequest:
    """A checked ``/api/chat`` body; existence and capabilities of the model are not looked at here."""
    if not isinstance(body, dict):
        raise BackendError(400, f"json: cannot unmarshal {_kind(body)} into Go value of type api.ChatRequest")
    _typed("ChatRequest", "model", body.get("model"), "string", "string")
    messages, tools = body.get("messages"), body.get("tools")
    _typed("ChatRequest", "messages", messages, "array", "[]api.Message")
    for message in messages or ():
        _check_message(message)
    _typed("ChatRequest", "tools", tools, "array", "api.Tools")
    for tool in tools or ():
        _typed("ChatRequest", "tools", tool, "object", "api.Tool")
        _typed("ChatRequest", "tools.function", (tool or {}).get("function"), "object", "api.ToolFunction")
    for key in ("stream", "truncate", "shift"):
        _typed("ChatRequest", key, body.get(key), "bool", "bool")
    _typed("ChatRequest", "options", body.get("options"), "object", "map[string]interface {}")
    _check_think(body.get("think"))
    keep_alive = parse_keep_alive(body.get("keep_alive"))
    return ChatRequest(
        model=body.get("model") or "",
        messages=[{**message, "role": str(message.get("role") or "").lower()} for message in messages or () if message],
        tools=[tool for tool in tools or () if tool],
        stream=body.get("stream") is not False,
        options=body.get("options") or {},
        think=body.get("think"),
        format=body.get("format"),
        keep_alive=keep_alive,
        truncate=body.get("truncate") is not False,
        raw=body,
    )


def parse_embed(body: Any) -> tuple[EmbedRequest, int]:
    """A checked ``/api/embed`` body and its ``dimensions`` (0 when not given). ``inputs`` may be empty."""
    if not isinstance(body, dict):
        raise BackendError(400, f"json: cannot unmarshal {_kind(body)} into Go value of type api.EmbedRequest")
    _typed("EmbedRequest", "model", body.get("model"), "string", "string")
    _typed("EmbedRequest", "options", body.get("options"), "object", "map[string]interface {}")
    _typed("EmbedRequest", "truncate", body.get("truncate"), "bool", "bool")
    _typed("EmbedRequest", "dimensions", body.get("dimensions"), "number", "int")
    keep_alive = parse_keep_alive(body.get("keep_alive"))
    given = body.get("input")
    if given is None or given == "":
        inputs: list[str] = []
    elif isinstance(given, str):
        inputs = [given]
    elif isinstance(given, list) and all(isinstance(item, str) for item in given):
        inputs = list(given)
    else:
        raise BackendError(400, "invalid input type")
    dimensions = body.get("dimensions") or 0
    request = EmbedRequest(
        model=body.get("model") or "",
        inputs=inputs,
        truncate=body.get("truncate") is not False,
        options=body.get("options") or {},
        keep_alive=keep_alive,
        raw=body,
    )
    return request, max(0, math.floor(dimensions))
