"""Request bodies for the model server, and the options that stay the same for every call to one model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tui_agent.llm.replies import arguments
from tui_agent.llm.types import JSON, ModelInfo, ModelOptions

MIN_NUM_CTX = 512
DEFAULT_NUM_CTX = 8192
MIN_NUM_PREDICT = 512
MAX_NUM_PREDICT = 2048
DEFAULT_KEEP_ALIVE = "30m"

_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def freeze_options(
    info: ModelInfo,
    wanted_num_ctx: int = DEFAULT_NUM_CTX,
    *,
    keep_alive: str | float = DEFAULT_KEEP_ALIVE,
    extra: Mapping[str, Any] | None = None,
) -> ModelOptions:
    """The one options object for every call to this model.

    The server reloads a model (and loses its prompt cache) whenever a load option differs from the last call, so
    these are decided once. ``num_ctx`` is ``wanted_num_ctx`` within 512 and what the model was trained for;
    ``num_predict`` is ``clamp(num_ctx / 8, 512, 2048)`` and never more than half the window, so that a prompt
    always has room. ``extra`` cannot change the two.
    """
    num_ctx = max(MIN_NUM_CTX, int(wanted_num_ctx))
    if info.context_length:
        num_ctx = min(num_ctx, info.context_length)
    num_predict = min(max(num_ctx // 8, MIN_NUM_PREDICT), MAX_NUM_PREDICT, max(1, num_ctx // 2))
    rest = {key: value for key, value in (extra or {}).items() if key not in ("num_ctx", "num_predict")}
    return ModelOptions(num_ctx=num_ctx, num_predict=num_predict, keep_alive=wire_keep_alive(keep_alive), extra=rest)


def wire_keep_alive(value: str | float) -> str | float:
    """``keep_alive`` as the server takes it: a string of digits alone (``"-1"``) is a number of seconds."""
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        return text or DEFAULT_KEEP_ALIVE
    return value


def chat_body(
    model: str,
    messages: Sequence[Mapping[str, Any]],
    options: ModelOptions,
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    think: bool | str | None = None,
    format: Any = None,
) -> JSON:
    """The body of a streaming ``/api/chat`` request.

    Raises:
        ValueError: ``format`` together with ``tools``, which servers answer without any tool call.
    """
    if format is not None and tools:
        raise ValueError("A reply format and tools cannot be asked for together.")
    body: JSON = {"model": model, "messages": [wire_message(message) for message in messages]}
    if tools:
        body["tools"] = list(tools)
    body["stream"] = True
    if format is not None:
        body["format"] = format
    body["options"] = options.as_options()
    body["keep_alive"] = wire_keep_alive(options.keep_alive)
    if think is not None:
        body["think"] = think
    return body


def wire_message(message: Mapping[str, Any]) -> JSON:
    """One message as the server takes it.

    Arguments of tool calls become objects (a JSON string poisons every later request of the session), and an empty
    ``content`` beside tool calls is left out (some models answer it by switching to calls written as text).
    """
    wire = {key: value for key, value in message.items() if value is not None}
    calls = wire.get("tool_calls")
    if calls:
        wire["tool_calls"] = [_wire_call(call) for call in calls]
        if not wire.get("content"):
            wire.pop("content", None)
    else:
        wire.pop("tool_calls", None)
        wire.setdefault("content", "")
    for key in ("thinking", "images", "tool_name", "tool_call_id"):
        if not wire.get(key):
            wire.pop(key, None)
    return wire


def _wire_call(call: Mapping[str, Any]) -> JSON:
    function = call.get("function") or {}
    wire: JSON = {key: value for key, value in call.items() if key not in ("function", "id")}
    if call.get("id"):
        wire["id"] = call["id"]
    wire["function"] = {**function, "arguments": arguments(function.get("arguments"))}
    return wire


def encode(body: Mapping[str, Any]) -> bytes:
    """A body as compact UTF-8 JSON, the same bytes for the same values. Lone surrogates become ``?``."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
