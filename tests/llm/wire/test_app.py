"""The endpoints over a real socket: bytes, order, errors."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import httpx
import pytest

from tui_agent.llm.wire.script import Calls, Done, Script, Think, answer, call, calling
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer

USER = [{"role": "user", "content": "hi"}]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


def body(**more: Any) -> dict[str, Any]:
    return {"model": "chat", "messages": USER, **more}


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.content.split(b"\n") if line]


async def test_the_root_says_that_ollama_is_running(http: httpx.AsyncClient) -> None:
    assert (await http.get("/")).text == "Ollama is running"
    head = await http.head("/")
    assert (head.status_code, head.content) == (200, b"")


async def test_version_is_one_compact_object(http: httpx.AsyncClient) -> None:
    assert (await http.get("/api/version")).content == b'{"version":"0.33.0"}'


async def test_wrong_paths_and_methods_are_answered_with_text(http: httpx.AsyncClient) -> None:
    missing = await http.get("/api/nothing")
    assert (missing.status_code, missing.content) == (404, b"404 page not found")
    wrong = await http.get("/api/chat")
    assert (wrong.status_code, wrong.content) == (405, b"405 method not allowed")
    assert (await http.get("/api/tags/")).status_code == 404


async def test_a_foreign_host_header_gets_an_empty_403(http: httpx.AsyncClient) -> None:
    for host in ("evil.example", "evil.example:80", "93.184.216.34"):
        refused = await http.get("/api/version", headers={"Host": host})
        assert (refused.status_code, refused.content) == (403, b"")
    for host in ("localhost:1", "app.localhost", "192.168.1.4:11434", "[::1]:80", ""):
        assert (await http.get("/api/version", headers={"Host": host})).status_code == 200


async def test_tags_lists_models_newest_first_with_their_tag(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    from tui_agent.llm.wire.catalog import model

    backend.installed.append(model("newer", modified_at=1_800_000_000.0))
    answered = await http.get("/api/tags")
    rows = answered.json()["models"]
    assert rows[0]["name"] == rows[0]["model"] == "newer:latest"
    assert list(rows[1]) == ["name", "model", "modified_at", "size", "digest", "details", "capabilities"]
    assert re.fullmatch(r"[0-9a-f]{64}", rows[1]["digest"])
    assert b", " not in answered.content


async def test_no_models_is_an_empty_list(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.installed.clear()
    assert (await http.get("/api/tags")).content == b'{"models":[]}'


async def test_show_gives_context_length_under_the_architecture(http: httpx.AsyncClient) -> None:
    value = (await http.post("/api/show", json={"model": "thinker:8b"})).json()
    assert value["model_info"][value["model_info"]["general.architecture"] + ".context_length"] == 32768
    assert value["capabilities"] == ["completion", "tools", "thinking"]
    assert "template" not in value


async def test_a_missing_model_is_worded_differently_by_each_endpoint(http: httpx.AsyncClient) -> None:
    async def error(method: str, path: str, **payload: Any) -> tuple[int, str]:
        answered = await http.request(method, path, json=payload)
        return answered.status_code, answered.json()["error"]

    assert await error("POST", "/api/chat", model="x", messages=USER) == (404, "model 'x' not found")
    assert await error("POST", "/api/embed", model="x", input="a") == (
        404,
        'model "x" not found, try pulling it first',
    )
    assert await error("POST", "/api/show", model="x") == (404, "model 'x:latest' not found")
    assert await error("DELETE", "/api/delete", model="x") == (404, "model 'x' not found")
    assert await error("POST", "/api/chat", model="", messages=USER) == (400, "model is required")
    assert await error("POST", "/api/chat", model="a b", messages=USER) == (400, "invalid model name")


async def test_a_deleted_model_is_gone_and_the_answer_is_empty(http: httpx.AsyncClient) -> None:
    gone = await http.request("DELETE", "/api/delete", json={"model": "plain"})
    assert (gone.status_code, gone.content) == (200, b"")
    assert "plain:latest" not in [one["name"] for one in (await http.get("/api/tags")).json()["models"]]


async def test_the_stream_has_gos_bytes(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(Script("a<b>&\u2028", Calls((call("f", {"z": 1, "a": 2}, id="call_12345678"),))))
    answered = await http.post("/api/chat", json=body(tools=TOOLS))
    assert answered.headers["content-type"] == "application/x-ndjson"
    first, second, last, rest = answered.content.split(b"\n")
    stamp = rb'"created_at":"[0-9T:.-]+Z"'
    assert re.fullmatch(
        rb'\{"model":"chat",'
        + stamp
        + rb',"message":\{"role":"assistant","content":"a\\u003cb\\u003e\\u0026\\u2028"\},"done":false\}',
        first,
    )
    assert re.fullmatch(
        rb'\{"model":"chat",' + stamp + rb',"message":\{"role":"assistant","content":"","tool_calls":\[\{'
        rb'"id":"call_12345678","function":\{"index":0,"name":"f","arguments":\{"z":1,"a":2\}\}\}\]\},"done":false\}',
        second,
    )
    value = json.loads(last)
    assert list(value) == [
        "model",
        "created_at",
        "message",
        "done",
        "done_reason",
        "total_duration",
        "load_duration",
        "prompt_eval_count",
        "prompt_eval_duration",
        "eval_count",
        "eval_duration",
    ]
    assert value["message"] == {"role": "assistant", "content": ""}
    assert rest == b""


async def test_zero_metrics_are_left_out(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(Script(Done(eval_count=0, prompt_eval_count=0)))
    last = lines(await http.post("/api/chat", json=body()))[-1]
    assert "eval_count" not in last
    assert "prompt_eval_count" not in last
    assert "eval_duration" not in last


async def test_without_stream_everything_is_one_object(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    script = Script(Think("hm "), Think("so"), "one ", "two", Calls((call("f"),)))
    backend.queue(script, script)
    answered = await http.post("/api/chat", json=body(model="thinker:8b", stream=False, tools=TOOLS))
    assert answered.headers["content-type"] == "application/json; charset=utf-8"
    message = answered.json()["message"]
    assert message["content"] == "one two"
    assert message["thinking"] == "hm so"
    assert message["tool_calls"][0]["function"] == {"index": 0, "name": "f", "arguments": {}}
    assert not answered.content.endswith(b"\n")
    # Calls are collected only for a request that offered tools.
    without = await http.post("/api/chat", json=body(model="thinker:8b", stream=False))
    assert "tool_calls" not in without.json()["message"]


async def test_the_model_is_echoed_as_it_was_asked_for(http: httpx.AsyncClient) -> None:
    assert lines(await http.post("/api/chat", json=body(model="CHAT:latest")))[0]["model"] == "CHAT:latest"


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]},
            400,
            "Value looks like object, but can't find closing '}' symbol",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
            400,
            "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string",
        ),
        (
            {"messages": "hi"},
            400,
            "json: cannot unmarshal string into Go struct field ChatRequest.messages of type []api.Message",
        ),
        ({"keep_alive": "-1"}, 400, 'time: missing unit in duration "-1"'),
        ({"think": True}, 400, '"chat" does not support thinking'),
        (
            {"think": "loud"},
            400,
            'invalid think value: "loud" (must be "high", "medium", "low", "max", true, or false)',
        ),
        ({"model": "plain", "tools": TOOLS}, 400, "registry.ollama.ai/library/plain:latest does not support tools"),
        ({"model": "plain", "tools": TOOLS, "think": "high"}, 400, '"plain" does not support thinking'),
        ({"model": "embed"}, 400, '"embed" does not support chat'),
        (
            {"messages": [{"role": "user", "content": "x", "images": ["data:image/png;base64,AA"]}]},
            400,
            "illegal base64 data at input byte 4",
        ),
        ({"options": {"num_ctx": "big"}}, 500, 'option "num_ctx" must be of type integer'),
    ],
)
async def test_the_rules_of_a_chat_body_are_enforced(
    http: httpx.AsyncClient, change: dict[str, Any], status: int, words: str
) -> None:
    answered = await http.post("/api/chat", json={**body(), **change})
    assert (answered.status_code, answered.json()) == (status, {"error": words})


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [{"role": "user", "content": None}]},
        {"think": False},
        {"keep_alive": -1},
        {"keep_alive": "5m"},
        {"options": {"num_ctx": 2048.0, "unknown": "x"}},
        {"tools": []},
        {"format": None, "nobody_knows": 1},
    ],
)
async def test_what_the_server_accepts_is_accepted(http: httpx.AsyncClient, change: dict[str, Any]) -> None:
    answered = await http.post("/api/chat", json={**body(), **change})
    assert lines(answered)[-1]["done"] is True


async def test_bodies_that_are_not_json_are_400(http: httpx.AsyncClient) -> None:
    assert (await http.post("/api/chat")).json() == {"error": "missing request body"}
    assert (await http.post("/api/chat", content=b'{"model"')).json() == {"error": "unexpected EOF"}
    assert (await http.post("/api/chat", content=b"[]")).status_code == 400


async def test_empty_messages_load_and_unload(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    loaded = await http.post("/api/chat", json={"model": "chat", "messages": []})
    assert loaded.headers["content-type"].startswith("application/json")
    value = loaded.json()
    assert list(value) == ["model", "created_at", "message", "done", "done_reason"]
    assert (value["done"], value["done_reason"], value["message"]["content"]) == (True, "load", "")
    assert [one["name"] for one in (await http.get("/api/ps")).json()["models"]] == ["chat:latest"]
    gone = await http.post("/api/chat", json={"model": "chat", "messages": [], "keep_alive": 0})
    assert gone.json()["done_reason"] == "unload"
    assert (await http.get("/api/ps")).json() == {"models": []}
    # Unloading what is not loaded, or what cannot chat, is fine too.
    again = await http.post("/api/chat", json={"model": "embed", "messages": [], "keep_alive": "0"})
    assert again.json()["done_reason"] == "unload"
    assert backend.runners.loads == 1


async def test_embed_keeps_order_and_normalises(http: httpx.AsyncClient) -> None:
    value = (await http.post("/api/embed", json={"model": "embed", "input": ["a b", "c", "a b"]})).json()
    assert list(value) == ["model", "embeddings", "total_duration", "load_duration", "prompt_eval_count"]
    first, second, third = value["embeddings"]
    assert first == third != second
    assert len(first) == 64
    assert math.isclose(sum(x * x for x in first), 1, abs_tol=1e-5)


async def test_dimensions_cut_and_normalise_and_more_is_ignored(http: httpx.AsyncClient) -> None:
    async def vector(dimensions: int) -> list[float]:
        payload = {"model": "embed", "input": "some words", "dimensions": dimensions}
        found: list[float] = (await http.post("/api/embed", json=payload)).json()["embeddings"][0]
        return found

    whole, cut = await vector(1000), await vector(8)
    assert (len(whole), len(cut)) == (64, 8)
    assert math.isclose(sum(x * x for x in cut), 1, abs_tol=1e-5)
    assert cut[0] / cut[1] == pytest.approx(whole[0] / whole[1], rel=1e-4)


async def test_texts_that_share_words_have_near_vectors(http: httpx.AsyncClient) -> None:
    texts = ["the database uses sqlite", "which database is used, sqlite", "cats like warm laps"]
    a, b, c = (await http.post("/api/embed", json={"model": "embed", "input": texts})).json()["embeddings"]
    near, far = (sum(x * y for x, y in zip(a, other, strict=True)) for other in (b, c))
    assert near > far


async def test_nothing_to_embed_gives_no_vectors(http: httpx.AsyncClient) -> None:
    bodies: list[dict[str, Any]] = [{"input": ""}, {"input": []}, {}]
    for given in bodies:
        answered = await http.post("/api/embed", json={"model": "embed", **given})
        assert (answered.status_code, answered.json()) == (200, {"model": "embed", "embeddings": []})


async def test_embed_faults(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    async def error(**payload: Any) -> tuple[int, str]:
        answered = await http.post("/api/embed", json={"model": "embed", **payload})
        return answered.status_code, answered.json()["error"]

    assert await error(input=[1]) == (400, "invalid input type")
    assert await error(input="word " * 9000, truncate=False) == (
        400,
        "the input length exceeds the context length",
    )
    backend.fail_embed(400, "embedding contains NaN or Inf values")
    assert await error(input="x") == (400, "embedding contains NaN or Inf values")
    assert (await http.post("/api/embed", json={"model": "embed", "input": "word " * 9000})).status_code == 200


async def test_the_debug_page_needs_the_token(server: WireServer, http: httpx.AsyncClient) -> None:
    assert (await http.get("/debug/requests")).status_code == 403
    assert (await http.get("/debug/requests", headers={"Authorization": "Bearer no"})).status_code == 403
    await http.post("/api/chat", json=body())
    page = await server.debug()
    assert page["counter"] == "a token is 4 bytes of a ChatML rendering"
    assert page["in_flight_max"] == 1
    (row,) = page["requests"]
    assert row["body"] == body()
    assert row["outcome"] == "done"
    assert row["prompt_tokens"] > 10


async def test_without_a_token_there_is_no_debug_page_and_no_bodies_are_kept() -> None:
    from tui_agent.llm.wire.app import create_app

    app = create_app(ScriptedBackend(default="x"), prompt_log=False)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        assert (await client.get("/debug/requests")).status_code == 404
        await client.post("/api/chat", json={"model": "qwen2.5-coder:1.5b", "messages": USER})
    (record,) = app.state.log.records
    assert record.body is None
    assert "hi" not in json.dumps(record.as_json())


async def test_the_cached_prefix_is_in_a_private_header(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(answer("Hello, you."))
    first = await http.post("/api/chat", json=body())
    assert first.headers["X-Prompt-Cached"] == "0"
    longer = [*USER, {"role": "assistant", "content": "Hello, you."}, {"role": "user", "content": "more"}]
    backend.queue(calling(call("f")))
    second = await http.post("/api/chat", json=body(messages=longer, stream=False))
    done = lines(first)[-1]
    assert int(second.headers["X-Prompt-Cached"]) >= done["prompt_eval_count"]
    assert "cached" not in second.text
