"""Lines of a model server as the client's tests write them out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from tui_agent.llm.client import ModelClient
from tui_agent.llm.types import ChatChunk, ModelOptions

Scripted = Callable[..., tuple[ModelClient, Any, list[float]]]
OPTIONS = ModelOptions(num_ctx=8192, num_predict=1024, keep_alive="30m", extra={"temperature": 0.2})
HELLO = [{"role": "user", "content": "hello"}]
DONE = {
    "model": "m",
    "created_at": "2026-08-21T10:00:00.123456789Z",
    "message": {"role": "assistant", "content": ""},
    "done": True,
    "done_reason": "stop",
    "total_duration": 2_500_000_000,
    "load_duration": 1_000_000,
    "prompt_eval_count": 120,
    "prompt_eval_duration": 500_000_000,
    "eval_count": 40,
    "eval_duration": 2_000_000_000,
}


def say(content: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "message": {"role": "assistant", "content": content, **more}, "done": False}


def ndjson(*lines: Any) -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


def error(status: int, text: Any, **more: Any) -> httpx.Response:
    return httpx.Response(status, json={"error": text, **more})


async def collect(client: ModelClient, messages: Sequence[dict[str, Any]] = HELLO, **options: Any) -> list[ChatChunk]:
    return [chunk async for chunk in client.chat("m", messages, options=OPTIONS, **options)]
