"""The probe of tool calling, what it makes of the number of tools, versions, and models that push each other out."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tui_agent.llm.client import ModelClient
from tui_agent.llm.errors import ServerBusy
from tui_agent.llm.probe import billions, most_tools, probe_tools
from tui_agent.llm.swapping import LoadWatch
from tui_agent.llm.types import ModelInfo, ModelOptions
from tui_agent.llm.versions import is_too_old, parse_version, trouble_with
from tui_agent.llm.wire.catalog import embed_model, model
from tui_agent.llm.wire.faults import server_busy
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer

OPTIONS = ModelOptions(8192, 1024, extra={"temperature": 0.9})
NAMES = ("a:1b", "b:1b", "c:1b", "d:1b")


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    models = [model(name, capabilities=("completion", *(["tools"] if name != "d:1b" else []))) for name in NAMES]
    backend = ScriptedBackend(models, tool_calling={"a:1b": "native", "b:1b": "text", "c:1b": "none"})
    async with WireServer(backend) as running:
        yield running


@pytest.fixture
async def client(server: WireServer) -> AsyncIterator[ModelClient]:
    async def at_once(seconds: float) -> None:
        return None

    made = ModelClient(server.url, sleep=at_once)
    yield made
    await made.aclose()


@pytest.mark.parametrize(("name", "found"), zip(NAMES, ("native", "text", "none", "none"), strict=True))
async def test_the_probe_tells_how_a_model_calls_tools(client: ModelClient, name: str, found: str) -> None:
    assert await probe_tools(client, ModelInfo(name), OPTIONS) == found


async def test_the_probe_is_tiny_cold_and_reloads_nothing(server: WireServer, client: ModelClient) -> None:
    await client.load("a:1b", OPTIONS)
    await probe_tools(client, ModelInfo("a:1b", capabilities=frozenset({"thinking"})), OPTIONS)
    body = server.probes[0].body
    assert body["options"] == {"num_ctx": 8192, "num_predict": 96, "seed": 0, "temperature": 0.0}
    assert body["keep_alive"] == OPTIONS.keep_alive
    assert len(body["tools"]) == 1
    assert server.probes[0].prompt_tokens is not None
    assert server.probes[0].prompt_tokens < 200
    assert server.backend.debug()["reloads"] == 0
    assert server.backend.debug()["loads"] == 1


async def test_trouble_of_the_server_is_no_finding(server: WireServer, client: ModelClient) -> None:
    server.backend._probed = lambda request: server_busy()  # type: ignore[attr-defined]
    with pytest.raises(ServerBusy):
        await probe_tools(client, ModelInfo("a:1b"), OPTIONS)


@pytest.mark.parametrize(
    ("calling", "size", "most"),
    [
        ("native", "7.6B", None),
        ("native", "1.5B", 8),
        ("text", "7.6B", 7),
        ("text", "1.5B", 5),
        ("none", "70B", 0),
        ("", "8B", None),
        ("", "137M", 8),
        ("", "", None),
    ],
)
def test_small_models_and_those_that_write_calls_as_text_get_few_tools(
    calling: str, size: str, most: int | None
) -> None:
    assert most_tools(calling, ModelInfo("m", parameter_size=size)) == most


def test_sizes_of_models_are_read() -> None:
    assert [billions(text) for text in ("7.6B", "137M", "", "8.2 B", "?", "1.2.3B")] == [7.6, 0.137, 0, 8.2, 0, 0]


def test_versions_are_judged() -> None:
    assert parse_version("v0.33.0-rc2") == (0, 33, 0)
    assert parse_version("0.0.0") is None
    assert is_too_old("0.6.2")
    assert not is_too_old("0.0.0")
    assert "too old" in trouble_with("0.6.2")
    assert "known fault" in trouble_with("0.32.5")
    assert "0.30.1 or newer is better" in trouble_with("0.12.0")
    assert trouble_with("0.33.3") == trouble_with("dev") == ""


def test_loads_that_alternate_are_noticed_once() -> None:
    now = [0.0]
    watch = LoadWatch(clock=lambda: now[0])
    for name, load_s in (("chat", 5.0), ("embed", 2.0), ("chat", 0.02)):
        watch.note(name, load_s)
    assert watch.take() is None  # both stay: a warm model takes milliseconds
    watch.note("chat", 5.0)
    assert watch.take() == ("chat", "embed")
    assert watch.take() is None


def test_a_model_whose_time_was_over_or_that_was_unloaded_is_no_sign_of_swapping() -> None:
    now = [0.0]
    watch = LoadWatch(clock=lambda: now[0])
    watch.note("chat", 5.0)
    watch.note("embed", 2.0)
    now[0] = 1000.0
    watch.note("chat", 5.0)
    assert watch.take() is None
    watch.note("embed", 2.0)
    watch.forget("chat")
    watch.note("chat", 5.0)
    assert watch.take() is None


async def test_chats_and_embeddings_take_turns(server: WireServer, client: ModelClient) -> None:
    import asyncio

    server.backend.installed.append(embed_model())  # type: ignore[attr-defined]
    server.backend.default = "OK."  # type: ignore[attr-defined]

    async def chat() -> None:
        async for _ in client.chat("a:1b", [{"role": "user", "content": "hi"}], options=OPTIONS):
            pass

    await asyncio.gather(chat(), client.embed("nomic-embed-text", ["x"]), chat(), client.load("b:1b", OPTIONS))
    assert server.log.in_flight_max == 1
    assert not client.busy
