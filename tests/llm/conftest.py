"""Scripted replies for the model client: what it sends is kept, what it gets is written out in the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tui_agent.llm.client import ModelClient

Scripted = Callable[..., tuple[ModelClient, "Script", list[float]]]


class Script:
    """Answers requests in order (the last answer repeats) and keeps what was asked."""

    def __init__(self, *replies: httpx.Response | Exception | bytes) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, httpx.Response) else httpx.Response(200, content=reply)


@pytest.fixture
def scripted() -> Scripted:
    """A function from replies (in order, the last one repeats) to a client, its requests, and its waits in seconds."""

    def build(*replies: httpx.Response | Exception | bytes, **options: Any) -> tuple[ModelClient, Script, list[float]]:
        script, waits = Script(*replies), []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        client = ModelClient(
            options.pop("host", "http://127.0.0.1:11434"),
            transport=httpx.MockTransport(script),
            sleep=sleep,
            jitter=lambda: 0.5,
            **options,
        )
        return client, script, waits

    return build
