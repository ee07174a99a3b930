"""A wire server on a real socket, and a plain HTTP client for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from tui_agent.llm.wire.catalog import embed_model, model
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer


@pytest.fixture
def backend() -> ScriptedBackend:
    return ScriptedBackend(
        [
            model("chat"),
            model("thinker:8b", capabilities=("completion", "tools", "thinking")),
            model("plain", capabilities=("completion",)),
            embed_model("embed", dimensions=64),
        ],
        default="fine",
    )


@pytest.fixture
async def server(backend: ScriptedBackend) -> AsyncIterator[WireServer]:
    async with WireServer(backend) as running:
        yield running


@pytest.fixture
async def http(server: WireServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, trust_env=False, timeout=10) as client:
        yield client
