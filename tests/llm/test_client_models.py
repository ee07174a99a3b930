"""What the client asks about models, and loading, pulling and embedding with them."""

from __future__ import annotations

import httpx
import pytest

from tests.llm.lines import OPTIONS, Scripted, error, ndjson
from tui_agent.llm.client import ModelClient, freeze_options
from tui_agent.llm.errors import (
    ModelError,
    ModelMissing,
    ServerUnreachable,
    StreamIncomplete,
)
from tui_agent.llm.types import ModelInfo, PullProgress

# -- models -----------------------------------------------------------------------------------------------------------


async def test_tags_read_what_new_and_old_servers_send(scripted: Scripted) -> None:
    new = {
        "name": "qwen3:8b", "model": "qwen3:8b", "size": 5_000, "digest": "abc",
        "capabilities": ["completion", "tools"],
        "details": {"family": "qwen3", "parameter_size": "8.2B", "quantization_level": "Q4_K_M",
                    "context_length": 40960, "embedding_length": 4096},
    }  # fmt: skip
    cloud = {"model": "gpt-oss:120b-cloud", "details": None, "digest": "sha256:def"}
    client, _, _ = scripted(httpx.Response(200, json={"models": [new, cloud, 3]}))
    assert await client.tags() == [
        ModelInfo(
            name="qwen3:8b", digest="abc", capabilities=frozenset({"completion", "tools"}), context_length=40960,
            embedding_length=4096, family="qwen3", parameter_size="8.2B", quantization="Q4_K_M", size=5000,
        ),
        ModelInfo(name="gpt-oss:120b-cloud", digest="def", remote=True),
    ]  # fmt: skip
    client, _, _ = scripted(httpx.Response(200, json={"models": None}))
    assert await client.tags() == []


async def test_show_reads_lengths_by_architecture_and_the_parameters(scripted: Scripted) -> None:
    reply = {
        "details": {"family": "qwen2"},
        "model_info": {
            "general.architecture": "qwen2", "qwen2.context_length": 32768, "qwen2.embedding_length": 1536,
            "qwen2.vision.context_length": 7,
        },
        "parameters": 'stop           "<|im_start|>"\nstop           "<|im_end|>"\nnum_ctx        4096\n',
        "capabilities": ["completion", "tools", "thinking"],
    }  # fmt: skip
    client, script, _ = scripted(httpx.Response(200, json=reply))
    info = await client.show("qwen2.5:7b")
    assert script.bodies == [{"model": "qwen2.5:7b"}]
    assert (info.name, info.context_length, info.embedding_length) == ("qwen2.5:7b", 32768, 1536)
    assert info.tools
    assert info.thinking
    assert info.parameters == {"stop": '"<|im_start|>"\n"<|im_end|>"', "num_ctx": "4096"}


async def test_show_lives_with_replies_that_lack_nearly_everything(scripted: Scripted) -> None:
    client, _, _ = scripted(httpx.Response(200, json={"template": "{{ if .Tools }}x{{ end }}", "model_info": None}))
    info = await client.show("old")
    assert (info.name, info.context_length, info.tools, info.thinking) == ("old", None, True, False)
    client, _, _ = scripted(error(404, "model 'old:latest' not found"))
    with pytest.raises(ModelMissing, match="The model old is not installed"):
        await client.show("old")


async def test_ps_reads_size_share_window_and_expiry(scripted: Scripted) -> None:
    row = {"name": "m", "size": 10, "size_vram": 0, "context_length": 4096, "expires_at": "2318-01-01T00:00:00Z"}
    client, _, _ = scripted(httpx.Response(200, json={"models": [row, {}]}))
    first, second = await client.ps()
    assert (first.size, first.size_vram, first.context_length) == (10, 0, 4096)
    assert first.expires_at.startswith("2318")
    assert second.size_vram is None


async def test_load_sends_the_options_of_every_later_call_and_unload_ends_the_stay(scripted: Scripted) -> None:
    loaded = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "load"}
    client, script, _ = scripted(ndjson(loaded))
    await client.load("m", OPTIONS)
    await client.unload("m")
    load, unload = script.bodies
    assert (load["messages"], load["options"], load["keep_alive"]) == ([], OPTIONS.as_options(), "30m")
    assert unload["messages"] == []
    assert unload["keep_alive"] == 0


async def test_an_embedding_model_is_loaded_by_an_empty_embedding_request(scripted: Scripted) -> None:
    client, script, _ = scripted(error(400, '"m" does not support chat'), httpx.Response(200, json={"embeddings": []}))
    await client.load("m", OPTIONS)
    assert script.requests[1].url.path == "/api/embed"
    assert script.bodies[1]["input"] == []
    assert script.bodies[1]["options"] == OPTIONS.as_options()


async def test_embed_sends_the_same_options_and_checks_that_each_text_got_a_vector(scripted: Scripted) -> None:
    client, script, _ = scripted(httpx.Response(200, json={"embeddings": [[1, 0], [0, 1.5]]}))
    assert await client.embed("m", ["a", "b"], options=OPTIONS) == [[1, 0], [0, 1.5]]
    assert script.bodies[0] == {
        "model": "m", "input": ["a", "b"], "truncate": True, "options": OPTIONS.as_options(), "keep_alive": "30m",
    }  # fmt: skip
    with pytest.raises(StreamIncomplete, match="2 vectors came back for 1 texts"):
        await client.embed("m", ["a"], keep_alive=0)
    assert script.bodies[1]["keep_alive"] == 0
    for broken in ({}, {"embeddings": [None]}, {"embeddings": [["x"]]}):
        client, _, _ = scripted(httpx.Response(200, json=broken))
        with pytest.raises(StreamIncomplete):
            await client.embed("m", ["a"])


async def test_an_embedding_model_that_is_missing_is_named_in_spite_of_the_other_wording(scripted: Scripted) -> None:
    client, _, _ = scripted(error(404, 'model "nomic-embed-text" not found, try pulling it first'))
    with pytest.raises(ModelMissing, match="`ollama pull nomic-embed-text`"):
        await client.embed("nomic-embed-text", ["a"])


# -- pull -------------------------------------------------------------------------------------------------------------

LAYER = {"status": "pulling aabbccddeeff", "digest": "sha256:aabb", "total": 100}


async def pulled(client: ModelClient) -> list[PullProgress]:
    return [progress async for progress in client.pull("m")]


async def test_pull_progress_never_goes_backwards_nor_over_the_total(scripted: Scripted) -> None:
    lines = [{"status": "pulling manifest"}, LAYER, *({**LAYER, "completed": n} for n in (60, 20, 140))]
    client, _, waits = scripted(ndjson(*lines, {"status": "success"}))
    progress = await pulled(client)
    assert [p.completed for p in progress] == [None, 0, 60, 60, 100, None]
    assert progress[-1].status == "success"
    assert waits == []


async def test_a_cut_pull_goes_on_and_keeps_its_progress(scripted: Scripted) -> None:
    first = ndjson({**LAYER, "completed": 70}, {"error": "max retries exceeded: unexpected EOF"})
    second = ndjson({**LAYER, "completed": 10})  # ends without success
    client, script, waits = scripted(first, second, ndjson({**LAYER, "completed": 100}, {"status": "success"}))
    progress = await pulled(client)
    assert [p.completed for p in progress if p.digest] == [70, 70, 100]
    assert [p.status for p in progress if "connection lost" in p.status] == [
        "connection lost, going on where it stopped (1 of 3)",
        "connection lost, going on where it stopped (2 of 3)",
    ]
    assert (len(script.requests), waits) == (3, [1.5, 3.0])


async def test_a_pull_that_never_says_success_fails_after_three_retries(scripted: Scripted) -> None:
    client, script, _ = scripted(ndjson({"status": "pulling manifest"}))
    with pytest.raises(StreamIncomplete, match="before the model was complete"):
        await pulled(client)
    assert len(script.requests) == 4


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("pull model manifest: file does not exist", "model_missing", "no model called m"),
        ("write /models/x: no space left on device", "bad_request", "too full"),
        ("invalid model name", "bad_request", "no model name"),
    ],
)
async def test_a_pull_that_cannot_succeed_is_not_tried_again(
    scripted: Scripted, text: str, kind: str, words: str
) -> None:
    client, script, _ = scripted(ndjson({"status": "pulling manifest"}, {"error": text}))
    with pytest.raises(ModelError, match=words) as caught:
        await pulled(client)
    assert caught.value.kind == kind
    assert len(script.requests) == 1


async def test_a_pull_from_a_server_that_is_down_fails_at_once(scripted: Scripted) -> None:
    client, script, waits = scripted(httpx.ConnectError("All connection attempts failed"))
    with pytest.raises(ServerUnreachable):
        await pulled(client)
    assert (len(script.requests), waits) == (1, [])


# -- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "trained", "num_ctx", "num_predict"),
    [
        (8192, 32768, 8192, 1024),
        (8192, 4096, 4096, 512),
        (262144, 131072, 131072, 2048),
        (0, 32768, 512, 256),
        (600, None, 600, 300),
        (2048, 2048, 2048, 512),
        (8192, 256, 256, 128),
        (16384, None, 16384, 2048),
    ],
)
def test_window_and_answer_limit_fit_the_model_and_each_other(
    wanted: int, trained: int | None, num_ctx: int, num_predict: int
) -> None:
    options = freeze_options(ModelInfo("m", context_length=trained), wanted)
    assert (options.num_ctx, options.num_predict) == (num_ctx, num_predict)


def test_further_options_are_kept_but_cannot_change_window_and_answer_limit() -> None:
    options = freeze_options(ModelInfo("m"), 4096, keep_alive="600", extra={"seed": 1, "num_ctx": 9, "num_predict": -1})
    assert options.as_options() == {"num_ctx": 4096, "num_predict": 512, "seed": 1}
    assert options.keep_alive == 600
