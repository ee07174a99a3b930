"""The objects of the API: key order, and which fields are left out when empty, as the Go structs have them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from .backend import JSON, BackendChunk, BackendModel
from .gojson import dumps, local_time, now_utc
from .names import parse_name

_COUNTERS = (
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
)


def tool_call(call: JSON) -> JSON:
    """``{"id"?, "function": {"index", "name", "arguments"}}``; ``index`` is always there, the id only when known."""
    function = call.get("function") or {}
    body = {
        "index": function.get("index", 0),
        "name": function.get("name", ""),
        "arguments": function.get("arguments") or {},
    }
    return {"id": call["id"], "function": body} if call.get("id") else {"function": body}


def chat_object(model: str, chunk: BackendChunk, *, final_reason: bool = True) -> JSON:
    """One chunk of ``/api/chat``. ``content`` is always present; metrics only on the last object and only non-zero."""
    message: JSON = {"role": "assistant", "content": chunk.content}
    if chunk.thinking:
        message["thinking"] = chunk.thinking
    if chunk.tool_calls:
        message["tool_calls"] = [tool_call(call) for call in chunk.tool_calls]
    value: JSON = {"model": model, "created_at": now_utc(), "message": message, "done": chunk.done}
    if chunk.done:
        if final_reason and chunk.done_reason:
            value["done_reason"] = chunk.done_reason
        for name in _COUNTERS:
            if count := getattr(chunk, name):
                value[name] = count
    return value


def chat_line(model: str, chunk: BackendChunk) -> bytes:
    """One line of a chat stream."""
    return dumps(chat_object(model, chunk)) + b"\n"


def details(model: BackendModel, *, extended: bool = False) -> JSON:
    """``details`` of tags, ps and show; tags adds the two lengths."""
    value: JSON = {
        "parent_model": "",
        "format": "gguf",
        "family": model.family,
        "families": [model.family],
        "parameter_size": model.parameter_size,
        "quantization_level": model.quantization,
    }
    if extended:
        if model.context_length:
            value["context_length"] = model.context_length
        if model.embedding_length:
            value["embedding_length"] = model.embedding_length
    return value


def digest_of(model: BackendModel) -> str:
    """The digest in hex without ``sha256:``; made from the name when the backend knows none."""
    digest = model.digest.removeprefix("sha256:")
    return digest or hashlib.sha256(model.name.encode()).hexdigest()


def tags_row(model: BackendModel) -> JSON:
    """One row of ``/api/tags``. The name always carries its tag."""
    parsed = parse_name(model.name)
    name = parsed.short if parsed else model.name
    row: JSON = {
        "name": name,
        "model": name,
        "modified_at": local_time(model.modified_at),
        "size": model.size,
        "digest": digest_of(model),
        "details": details(model, extended=True),
    }
    if model.capabilities:
        row["capabilities"] = list(model.capabilities)
    return row


def ps_row(model: BackendModel, *, num_ctx: int, expires_at: float, size_vram: int = 0) -> JSON:
    """One row of ``/api/ps``; ``num_ctx`` is the effective window, ``expires_at`` seconds since the epoch."""
    parsed = parse_name(model.name)
    name = parsed.short if parsed else model.name
    return {
        "name": name,
        "model": name,
        "size": model.size,
        "digest": digest_of(model),
        "details": details(model),
        "expires_at": local_time(expires_at),
        "size_vram": size_vram,
        "context_length": num_ctx,
    }


def show_object(model: BackendModel) -> JSON:
    """The answer of ``/api/show``; empty texts are left out."""
    info: JSON = {"general.architecture": model.family, "general.file_type": 15}
    if model.context_length:
        info[f"{model.family}.context_length"] = model.context_length
    if model.embedding_length:
        info[f"{model.family}.embedding_length"] = model.embedding_length
    value: JSON = {}
    for name in ("parameters", "template", "system"):
        if text := getattr(model, name):
            value[name] = text
    value["details"] = details(model)
    value["model_info"] = dict(sorted(info.items()))
    if model.capabilities:
        value["capabilities"] = list(model.capabilities)
    value["modified_at"] = local_time(model.modified_at)
    return value


def embedding(vector: Sequence[float], dimensions: int) -> list[float]:
    """The vector cut to ``dimensions`` (0 or more than it has: whole), L2-normalised, in float32 precision.

    Raises:
        ValueError: when a component is NaN or infinite.
    """
    values = np.asarray(vector, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("embedding contains NaN or Inf values")
    if 0 < dimensions < len(values):
        values = values[:dimensions]
    length = float(np.linalg.norm(values))
    if length > 0:
        values = values / length
    # str() of a float32 is its shortest decimal form, which is what Go prints too.
    return [float(str(value)) for value in values.astype(np.float32)]
