"""Scripts, faults, load state and the prompt cache, seen through a real socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tui_agent.llm.wire import faults
from tui_agent.llm.wire.catalog import pull_progress
from tui_agent.llm.wire.script import Cut, Done, Fail, Gate, Raw, Script, Wait, answer, call, calling
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object", "properties": {}}}}]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "chat", "messages": list(messages) or [user("hi")], **more}


def lines(answered: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answered.content.split(b"\n") if line.strip()]


def text_of(answered: httpx.Response) -> str:
    return "".join(line["message"]["content"] for line in lines(answered))


# --- which script ---------------------------------------------------------------------------------------------------


async def test_scripts_are_played_in_the_order_they_were_queued(
    http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    backend.queue("one", answer("two words"), lambda request: f"you said {request.messages[-1]['content']}")
    assert backend.unused == 3
    got = [text_of(await http.post("/api/chat", json=body(user("ping")))) for _ in range(4)]
    assert got == ["one", "two words", "you said ping", "fine"]


async def test_a_rule_goes_before_the_queue_and_can_be_limited(
    http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    backend.queue("queued")
    backend.when("pnpm", "by text", times=1)
    backend.when(lambda request: bool(request.tools), "by predicate")
    assert text_of(await http.post("/api/chat", json=body(user("I prefer pnpm")))) == "by text"
    assert text_of(await http.post("/api/chat", json=body(tools=TOOLS))) == "by predicate"
    assert text_of(await http.post("/api/chat", json=body(user("I prefer pnpm")))) == "queued"


async def test_the_text_rule_looks_at_the_last_user_message_also_after_tool_results(
    http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    backend.when("read it", "yes")
    messages = [user("old"), user("read it"), {"role": "assistant", "content": ""}, {"role": "tool", "content": "data"}]
    assert text_of(await http.post("/api/chat", json=body(*messages))) == "yes"


async def test_a_request_without_a_script_is_told_so(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.default = None
    answered = await http.post("/api/chat", json=body())
    assert answered.status_code == 500
    assert "no answer for this request" in answered.json()["error"]


async def test_a_warm_up_uses_no_script_and_reads_the_fixed_part(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    system = {"role": "system", "content": "Be brief. " * 50}
    backend.queue("the answer")
    warm = await http.post("/api/chat", json=body(system, user(""), tools=TOOLS, options={"num_predict": 1}))
    assert [line["done"] for line in lines(warm)] == [True]
    assert (lines(warm)[-1]["done_reason"], lines(warm)[-1]["eval_count"]) == ("length", 1)
    real = await http.post("/api/chat", json=body(system, user("Who?"), tools=TOOLS, options={"num_predict": 512}))
    assert text_of(real) == "the answer"
    assert len(server.chats) == 1
    assert int(real.headers["X-Prompt-Cached"]) > 0.9 * lines(warm)[-1]["prompt_eval_count"]
    assert backend.runners.loads == 1


# --- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        (faults.missing_model, 404, "model 'missing' not found"),
        (faults.server_busy, 503, "server busy, please try again.  maximum pending requests exceeded"),
        (faults.load_failure, 500, "llama-server process has terminated: exit status 1: out of memory"),
        (faults.tools_unsupported, 400, "registry.ollama.ai/library/x:latest does not support tools"),
        (faults.think_unsupported, 400, '"x" does not support thinking'),
        (faults.cloud_disabled, 403, "ollama cloud is disabled: remote model is unavailable"),
    ],
)
async def test_faults_before_the_first_chunk_have_their_status_streamed_or_not(
    http: httpx.AsyncClient, backend: ScriptedBackend, fault: Callable[[], Script], status: int, error: str
) -> None:
    for stream in (True, False):
        backend.queue(fault())
        answered = await http.post("/api/chat", json=body(stream=stream))
        assert (answered.status_code, answered.json()) == (status, {"error": error})


async def test_a_failed_load_leaves_nothing_loaded(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(faults.load_failure())
    await http.post("/api/chat", json=body())
    assert (await http.get("/api/ps")).json() == {"models": []}
    assert backend.runners.loads == 0


async def test_the_context_error_is_a_string_of_json_before_and_an_object_within_the_stream(
    http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    backend.queue(faults.context_exceeded(9412, 8192), faults.context_exceeded_mid_stream())
    before = await http.post("/api/chat", json=body())
    assert before.status_code == 400
    assert json.loads(before.json()["error"])["error"]["n_prompt_tokens"] == 9412
    within = await http.post("/api/chat", json=body())
    assert within.status_code == 200
    assert lines(within)[-1]["error"]["type"] == "exceed_context_size_error"


async def test_an_error_line_ends_the_stream_with_status_200(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    backend.queue(faults.error_mid_stream("So far so", "boom"))
    answered = await http.post("/api/chat", json=body())
    *before, last = lines(answered)
    assert answered.status_code == 200
    assert "".join(line["message"]["content"] for line in before) == "So far so"
    assert last == {"error": "an error was encountered while running the model: boom"}
    assert server.chats[-1].outcome == "error"


async def test_a_stream_can_end_without_the_final_object(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    backend.queue(faults.no_done("the the"), faults.no_done("the the"))
    assert [line["done"] for line in lines(await http.post("/api/chat", json=body()))] == [False, False]
    assert server.chats[-1].outcome == "incomplete"
    whole = (await http.post("/api/chat", json=body(stream=False))).json()
    assert (whole["done"], whole["message"]["content"]) == (False, "the the")
    assert "done_reason" not in whole


async def test_answers_that_are_not_the_apis(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(faults.html_502(), faults.forbidden(), faults.sign_in())
    page = await http.post("/api/chat", json=body())
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html")
    assert page.content.startswith(b"<html>")
    empty = await http.post("/api/chat", json=body())
    assert (empty.status_code, empty.content) == (403, b"")
    sign_in = (await http.post("/api/chat", json=body())).json()
    assert sign_in["error"] == "unauthorized"
    assert sign_in["signin_url"].startswith("https://ollama.com/connect?")


async def test_tool_calls_in_every_place(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(
        calling(call("read_file", {"path": "a"}), text="Reading."),
        faults.done_call("read_file", {"path": "b"}),
        faults.many_calls(one_chunk=True),
        faults.many_calls(one_chunk=False),
    )

    async def calls() -> list[list[dict[str, Any]]]:
        answered = await http.post("/api/chat", json=body(tools=TOOLS))
        return [line["message"]["tool_calls"] for line in lines(answered) if "tool_calls" in line["message"]]

    ((one,),) = await calls()
    assert one["id"].startswith("call_")
    assert len(one["id"]) == 13
    assert one["function"] == {"index": 0, "name": "read_file", "arguments": {"path": "a"}}
    ((on_done,),) = await calls()
    assert "id" not in on_done
    assert [len(chunk) for chunk in await calls()] == [2]
    assert [len(chunk) for chunk in await calls()] == [1, 1]


async def test_odd_answers(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(
        faults.empty_answer(17), faults.thinking_only("hm well"), faults.too_long("cut off"), faults.load_reply()
    )
    empty = lines(await http.post("/api/chat", json=body()))
    assert [(line["message"]["content"], line.get("eval_count")) for line in empty] == [("", 17)]
    thinking = lines(await http.post("/api/chat", json=body(model="thinker:8b")))
    assert [line["message"].get("thinking") for line in thinking] == ["hm ", "well", None]
    assert all(line["message"]["content"] == "" for line in thinking)
    assert lines(await http.post("/api/chat", json=body()))[-1]["done_reason"] == "length"
    assert lines(await http.post("/api/chat", json=body()))[-1]["done_reason"] == "load"


async def test_odd_bytes(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(faults.blank_lines("one two"), faults.next_line_character("a\u0085b"), faults.broken_json("x"))
    blank = await http.post("/api/chat", json=body())
    assert b"}\n\n\r\n\n" in blank.content
    assert text_of(blank) == "one two"
    assert b"a\xc2\x85b" in (await http.post("/api/chat", json=body())).content
    broken = await http.post("/api/chat", json=body())
    assert b'\n{"model":"x","message":{"role":\n' in broken.content


def test_every_fault_makes_a_script() -> None:
    for make in faults.FAULTS.values():
        assert make().steps


# --- load state -----------------------------------------------------------------------------------------------------


async def test_only_load_options_cause_a_reload(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    async def ask(**options: Any) -> None:
        await http.post("/api/chat", json=body(options=options))

    await ask(num_ctx=2048, temperature=0.1)
    await ask(num_ctx=2048.0, temperature=0.9, seed=3, num_predict=5)
    await ask(num_ctx=2048, num_gpu=-1)
    assert (backend.runners.loads, backend.runners.reloads) == (1, 0)
    await ask(num_ctx=4096)
    assert (backend.runners.loads, backend.runners.reloads) == (2, 1)
    await ask()  # automatic, and the automatic value is the same
    await ask(num_ctx=4096, num_thread=2)
    assert (backend.runners.loads, backend.runners.reloads) == (3, 2)


async def test_a_reload_loses_the_prompt_cache(http: httpx.AsyncClient) -> None:
    async def cached(num_ctx: int) -> int:
        answered = await http.post("/api/chat", json=body(options={"num_ctx": num_ctx}))
        return int(answered.headers["X-Prompt-Cached"])

    assert await cached(2048) == 0
    assert await cached(2048) > 0
    assert await cached(1024) == 0


async def test_num_ctx_is_clamped_to_the_model_and_shown_by_ps(http: httpx.AsyncClient) -> None:
    await http.post("/api/chat", json=body(options={"num_ctx": 1_000_000}))
    assert (await http.get("/api/ps")).json()["models"][0]["context_length"] == 32768


async def test_a_model_expires_after_its_keep_alive() -> None:
    now = [1_000_000.0]
    backend = ScriptedBackend(default="x", clock=lambda: now[0])
    async with WireServer(backend) as server, httpx.AsyncClient(base_url=server.url, trust_env=False) as http:

        async def ask(**more: Any) -> None:
            await http.post("/api/chat", json={**body(**more), "model": "qwen2.5-coder:1.5b"})

        async def loaded() -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = (await http.get("/api/ps")).json()["models"]
            return rows

        await ask()
        now[0] += 299
        assert len(await loaded()) == 1
        await ask(keep_alive="10m")
        now[0] += 599
        assert len(await loaded()) == 1
        await ask()  # the value set last stays
        now[0] += 599
        assert len(await loaded()) == 1
        now[0] += 2
        assert await loaded() == []
        await ask(keep_alive=-1)
        assert (await loaded())[0]["expires_at"] > "2200"
        await ask(keep_alive=0)
        assert await loaded() == []


# --- prompt cache and truncation ------------------------------------------------------------------------------------


async def test_an_append_only_chat_reads_only_what_is_new(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    messages = [{"role": "system", "content": "Fixed rules. " * 40}]
    for turn in range(3):
        messages.append(user(f"question number {turn}"))
        backend.queue(answer(f"The answer to {turn} is long enough."))
        await http.post("/api/chat", json=body(*messages, tools=TOOLS))
        messages.append({"role": "assistant", "content": f"The answer to {turn} is long enough."})
    first, second, third = server.chats
    assert first.cached_tokens == 0
    for before, after in ((first, second), (second, third)):
        assert before.prompt_tokens is not None
        assert after.cached_tokens is not None
        assert after.prompt_tokens is not None
        assert after.cached_tokens >= before.prompt_tokens - 1
        assert after.prompt_tokens - after.cached_tokens < 30


async def test_a_change_in_the_system_prompt_costs_everything_after_it(
    server: WireServer, http: httpx.AsyncClient
) -> None:
    for clock in ("12:00", "12:01"):
        await http.post(
            "/api/chat", json=body({"role": "system", "content": f"It is {clock}. " + "x" * 800}, user("q"))
        )
    assert server.chats[1].cached_tokens is not None
    assert server.chats[1].cached_tokens < 15


async def test_the_oldest_messages_are_dropped_silently_and_system_stays(
    server: WireServer, http: httpx.AsyncClient
) -> None:
    messages = [{"role": "system", "content": "RULES"}, user("OLD " * 200), user("NEWER " * 60), user("LAST")]
    answered = await http.post("/api/chat", json=body(*messages, options={"num_ctx": 200}))
    assert answered.status_code == 200
    record = server.chats[0]
    assert record.notes["dropped_messages"] == 1
    assert "OLD" not in record.notes["prompt"]
    assert "RULES" in record.notes["prompt"]
    assert record.prompt_tokens is not None
    assert record.prompt_tokens <= 200


async def test_what_cannot_fit_is_a_context_error(http: httpx.AsyncClient) -> None:
    answered = await http.post("/api/chat", json=body(user("word " * 500), options={"num_ctx": 100}))
    assert answered.status_code == 400
    inner = json.loads(answered.json()["error"])["error"]
    assert inner["n_ctx"] == 100
    assert inner["n_prompt_tokens"] > 600


async def test_truncate_false_is_a_context_error_instead_of_dropping(http: httpx.AsyncClient) -> None:
    messages = [user("old " * 200), user("new")]
    payload = body(*messages, options={"num_ctx": 100}, truncate=False)
    assert (await http.post("/api/chat", json=payload)).status_code == 400


# --- pull -----------------------------------------------------------------------------------------------------------


async def test_a_pull_reports_progress_and_installs(http: httpx.AsyncClient) -> None:
    answered = await http.post("/api/pull", json={"model": "new-one"})
    rows = lines(answered)
    assert answered.headers["content-type"] == "application/x-ndjson"
    assert [rows[0], rows[-1]] == [{"status": "pulling manifest"}, {"status": "success"}]
    assert "completed" not in rows[1]
    assert rows[2]["completed"] < rows[3]["completed"] <= rows[3]["total"]
    assert (await http.post("/api/show", json={"model": "new-one"})).status_code == 200


async def test_a_pull_without_stream_gives_the_last_object(http: httpx.AsyncClient) -> None:
    answered = await http.post("/api/pull", json={"name": "new-one", "stream": False})
    assert answered.content == b'{"status":"success"}'


async def test_a_pull_that_goes_backwards_stalls_and_is_cut(
    server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend
) -> None:
    layer = pull_progress(1000)[1]
    gate = Gate()
    backend.on_pull(
        "slow",
        {**layer, "completed": 900},
        {**layer, "completed": 300},
        Raw((b"\n",)),
        Wait(0),
        gate,
        Cut(reset=False),
    )
    seen: list[int] = []

    async def read() -> None:
        async with http.stream("POST", "/api/pull", json={"model": "slow"}) as answered:
            async for line in answered.aiter_lines():
                seen.extend([json.loads(line)["completed"]] if line else [])
                if len(seen) == 2 and not gate.opened:
                    await gate.reached()
                    gate.open()

    with pytest.raises(httpx.RemoteProtocolError):
        await read()
    assert seen == [900, 300]
    assert "slow:latest" not in [one["name"] for one in (await http.get("/api/tags")).json()["models"]]


async def test_an_unknown_model_is_an_error_line_or_500(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    error = "pull model manifest: file does not exist"
    backend.on_pull("nope", {"status": "pulling manifest"}, Fail(500, error))
    assert lines(await http.post("/api/pull", json={"model": "nope"})) == [
        {"status": "pulling manifest"},
        {"error": error},
    ]
    whole = await http.post("/api/pull", json={"model": "nope", "stream": False})
    assert (whole.status_code, whole.json()) == (500, {"error": error})
    assert (await http.post("/api/pull", json={"model": "no pe"})).json() == {"error": "invalid model name"}


async def test_leaving_cancels_the_pull(server: WireServer, http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    gate = Gate()
    backend.on_pull("slow", {"status": "pulling manifest"}, gate, {"status": "success"})
    async with http.stream("POST", "/api/pull", json={"model": "slow"}) as answered:
        async for _ in answered.aiter_raw():
            break
    await server.log.until(lambda log: log.records[-1].outcome == "disconnected")
    assert gate.waiting == 0


async def test_a_done_step_can_carry_everything(http: httpx.AsyncClient, backend: ScriptedBackend) -> None:
    backend.queue(Script("a", Done("tool_calls", calls=(call("read_file"),), content="b", eval_count=5)))
    last = lines(await http.post("/api/chat", json=body(tools=TOOLS)))[-1]
    assert (last["done_reason"], last["eval_count"], last["message"]["content"]) == ("tool_calls", 5, "b")
    assert last["message"]["tool_calls"][0]["function"]["name"] == "read_file"
