"""The backend against a made-up llama.cpp server on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tui_agent.llm.embedded.backend import LlamaBackend
from tui_agent.llm.embedded.llama import ServerConfig, WorkerFailed
from tui_agent.llm.embedded.slots import SlotStates
from tui_agent.llm.errors import LoadFailed
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.prompt import common_prefix, render
from tui_agent.llm.wire.serve import LoopServer, WireServer

SYSTEM = {"role": "system", "content": "You keep a memory. " * 30}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


class FakeLlama(LoopServer):
    """Enough of llama.cpp's server: one slot, a character is a token, states as files."""

    def __init__(self, config: ServerConfig) -> None:
        routes = [
            Route("/apply-template", self._template, methods=["POST"]),
            Route("/completion", self._completion, methods=["POST"]),
            Route("/slots/0", self._slots, methods=["POST"]),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
        ]
        super().__init__(Starlette(routes=routes))
        self.config = config
        self.key = config.key
        self.slot = ""
        self.aside = ""
        self.calls: list[str] = []
        self.reply: list[dict[str, Any]] = [{"content": "fine"}]
        self.gate: asyncio.Event | None = None
        self.cut_after: int | None = None
        self.open_streams = 0
        self.ended = False

    async def stop(self) -> None:
        self.ended = True
        await super().stop()

    async def _body(self, request: Request) -> dict[str, Any]:
        assert request.headers["authorization"] == f"Bearer {self.key}"
        found: dict[str, Any] = await request.json()
        return found

    async def _template(self, request: Request) -> Response:
        body = await self._body(request)
        return JSONResponse({"prompt": render(body["messages"], body.get("tools", []))})

    async def _completion(self, request: Request) -> Response:
        await self._body(request)
        self.calls.append("displace")
        self.aside, self.slot = self.slot, ""
        return JSONResponse({})

    async def _slots(self, request: Request) -> Response:
        body = await self._body(request)
        action = request.query_params["action"]
        self.calls.append(action)
        path = Path(self.config.slots) / body["filename"]
        if action == "save":
            path.write_text(self.slot, encoding="utf-8")
            return JSONResponse({"n_saved": len(self.slot)})
        text = path.read_text(encoding="utf-8")
        if text == "damaged":
            return JSONResponse({"error": {"message": "Unable to restore slot"}}, 400)
        self.slot = text
        return JSONResponse({"n_restored": len(text)})

    async def _chat(self, request: Request) -> Response:
        body = await self._body(request)
        prompt = render(body["messages"], body.get("tools", []))
        if len(prompt) > self.config.num_ctx:
            error = {"code": 400, "type": "exceed_context_size_error", "message": "too long", "n_ctx": 1}
            return JSONResponse({"error": error}, 400)
        shared = max(common_prefix(self.slot, prompt), common_prefix(self.aside, prompt))
        cached = min(shared, len(prompt) - 1)
        self.calls.append(f"chat {len(prompt) - cached} of {len(prompt)}")
        self.slot = prompt
        return StreamingResponse(self._events(body, prompt, cached), media_type="text/event-stream")

    async def _events(self, body: dict[str, Any], prompt: str, cached: int) -> AsyncGenerator[bytes, None]:
        def event(delta: dict[str, Any], finish: str | None = None, written: int = 0) -> bytes:
            timings = {"cache_n": cached, "prompt_n": len(prompt) - cached, "predicted_n": written}
            progress = {"total": len(prompt), "processed": cached if not delta else len(prompt)}
            choice = {"delta": delta, "finish_reason": finish}
            value = {"choices": [choice], "timings": timings, "prompt_progress": progress}
            return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"

        self.open_streams += 1
        try:
            yield event({})
            for number, delta in enumerate(self.reply[: body["max_tokens"]], 1):
                if self.gate is not None:
                    await self.gate.wait()
                if self.cut_after is not None and number > self.cut_after:
                    raise ConnectionResetError
                yield event(delta, written=number)
            yield event({}, "length" if body["max_tokens"] < len(self.reply) else "stop", len(self.reply))
            yield b"data: [DONE]\n\n"
        finally:
            self.open_streams -= 1


class Launcher:
    """Starts made-up servers and remembers them."""

    def __init__(self) -> None:
        self.servers: list[FakeLlama] = []
        self.error = ""
        self.hold: asyncio.Event | None = None

    async def __call__(self, config: ServerConfig) -> FakeLlama:
        if self.hold is not None:
            await self.hold.wait()
        if self.error:
            raise WorkerFailed(self.error)
        server = FakeLlama(config)
        await server.start()
        self.servers.append(server)
        return server

    @property
    def last(self) -> FakeLlama:
        return self.servers[-1]


class Engine:
    """A backend with its launcher, and a client for the wire app in front of it."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.launcher = Launcher()
        self.progress: list[tuple[str, int, int]] = []

        async def path() -> Path:
            return folder / "model.gguf"

        self.backend = LlamaBackend(
            model("m", context_length=20_000),
            more.pop("path", path),
            SlotStates(folder / "slots"),
            num_ctx=8000,
            on_progress=lambda *step: self.progress.append(step),
            launch=self.launcher,
            **more,
        )
        self.server = WireServer(self.backend)

    async def ask(self, *messages: dict[str, Any], stream: bool = True, **more: Any) -> httpx.Response:
        body = {"model": "m", "messages": list(messages), "tools": TOOLS, "stream": stream, **more}
        async with httpx.AsyncClient(base_url=self.server.url, trust_env=False, timeout=10) as client:
            return await client.post("/api/chat", json=body)


@asynccontextmanager
async def running(folder: Path, **more: Any) -> AsyncIterator[Engine]:
    engine = Engine(folder, **more)
    async with engine.server:
        yield engine


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with running(tmp_path) as made:
        yield made


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def lines(answered: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answered.content.split(b"\n") if line]


async def test_an_answer_is_streamed_with_its_counters(engine: Engine) -> None:
    engine_reply = [{"content": "Zażółć "}, {"reasoning_content": "hm"}, {"content": "a\u2028b\u0085c"}]
    await engine.ask(SYSTEM, user("first"))
    engine.launcher.last.reply = engine_reply
    rows = lines(await engine.ask(SYSTEM, user("hi")))
    assert [row["message"]["content"] for row in rows] == ["Zażółć ", "", "a\u2028b\u0085c", ""]
    assert rows[1]["message"]["thinking"] == "hm"
    assert rows[-1]["done_reason"] == "stop"
    assert rows[-1]["eval_count"] == 3
    assert rows[-1]["prompt_eval_count"] == len(engine.launcher.last.slot)


async def test_the_fixed_part_is_read_alone_first_and_stored(engine: Engine, tmp_path: Path) -> None:
    answered = await engine.ask(SYSTEM, user("hi"))
    ahead, save, whole = engine.launcher.last.calls
    total = int(ahead.split()[-1])
    assert ahead == f"chat {total} of {total}"
    assert save == "save"
    assert int(whole.split()[1]) < 60
    # What was read ahead for this very request was read for it, not cached.
    assert answered.headers["X-Prompt-Cached"] == "0"
    (state,) = (tmp_path / "slots").glob("*.slot")
    assert "You keep a memory." in state.read_text(encoding="utf-8")
    assert engine.backend.debug()["states_stored"] == 1


async def test_the_second_turn_reads_only_what_is_new(engine: Engine) -> None:
    first = lines(await engine.ask(SYSTEM, user("hi")))[-1]["prompt_eval_count"]
    second = await engine.ask(SYSTEM, user("hi"), {"role": "assistant", "content": "fine"}, user("more"))
    assert int(second.headers["X-Prompt-Cached"]) == first
    assert engine.launcher.last.calls.count("save") == 1


async def test_a_warm_up_reads_and_stores_and_says_nothing(engine: Engine) -> None:
    warm = lines(await engine.ask(SYSTEM, user(""), options={"num_predict": 1}))
    assert [row["message"]["content"] for row in warm] == [""]
    assert warm[0]["done"] is True
    answered = await engine.ask(SYSTEM, user("hi"))
    assert int(answered.headers["X-Prompt-Cached"]) > 600
    assert engine.launcher.last.calls.count("save") == 1
    assert len(engine.launcher.servers) == 1


async def test_after_a_restart_the_fixed_part_is_restored_instead_of_read(tmp_path: Path) -> None:
    async with running(tmp_path) as first:
        await first.ask(SYSTEM, user("hi"))
    async with running(tmp_path) as second:
        answered = await second.ask(SYSTEM, user("a new question"))
        assert second.launcher.last.calls[0] == "restore"
        assert len(second.launcher.last.calls) == 2
        assert int(answered.headers["X-Prompt-Cached"]) > 600
        assert second.backend.debug()["states_restored"] == 1


@pytest.mark.parametrize("change", ["system", "tools", "num_ctx"])
async def test_a_state_is_used_only_for_exactly_what_it_was_made_from(tmp_path: Path, change: str) -> None:
    async with running(tmp_path) as first:
        await first.ask(SYSTEM, user("hi"))
    async with running(tmp_path) as second:
        system = {**SYSTEM, "content": SYSTEM["content"] + "!"} if change == "system" else SYSTEM
        more: dict[str, Any] = {"tools": []} if change == "tools" else {}
        if change == "num_ctx":
            more["options"] = {"num_ctx": 7000}
        await second.ask(system, user("hi"), **more)
        assert "restore" not in second.launcher.last.calls
        assert second.launcher.last.calls.count("save") == 1


async def test_a_damaged_state_is_deleted_and_read_again(tmp_path: Path) -> None:
    async with running(tmp_path) as first:
        await first.ask(SYSTEM, user("hi"))
    (state,) = (tmp_path / "slots").glob("*.slot")
    state.write_text("damaged", encoding="utf-8")
    async with running(tmp_path) as second:
        assert (await second.ask(SYSTEM, user("hi"))).status_code == 200
        assert [one.split()[0] for one in second.launcher.last.calls] == ["restore", "chat", "save", "chat"]
    assert "damaged" not in state.read_text(encoding="utf-8")


async def test_another_fixed_part_does_not_cost_the_conversation(tmp_path: Path) -> None:
    other = {"role": "system", "content": "You make titles. " * 30}
    async with running(tmp_path) as first:
        await first.ask(other, user("title"))
    async with running(tmp_path) as second:
        await second.ask(SYSTEM, user("hi"))
        await second.ask(other, user("title"))
        # The stored state goes into the slot only after the conversation was put aside.
        calls = second.launcher.last.calls
        assert calls[calls.index("restore") - 1] == "displace"
        again = await second.ask(SYSTEM, user("hi"))
        assert int(again.headers["X-Prompt-Cached"]) > 600


async def test_a_short_fixed_part_is_not_worth_a_file(engine: Engine, tmp_path: Path) -> None:
    await engine.ask(user("hi"), tools=[])
    assert [one.split()[0] for one in engine.launcher.last.calls] == ["chat"]
    assert not list((tmp_path / "slots").glob("*"))


async def test_a_folder_for_states_that_cannot_be_made_is_no_reason_not_to_answer(tmp_path: Path) -> None:
    (tmp_path / "slots").write_text("a file is in the way", encoding="utf-8")
    async with running(tmp_path) as engine:
        assert (await engine.ask(SYSTEM, user("hi"))).status_code == 200
        assert "save" not in engine.launcher.last.calls


async def test_other_load_options_load_again_and_sampling_does_not(engine: Engine) -> None:
    await engine.ask(SYSTEM, user("hi"), options={"num_ctx": 8000, "temperature": 1})
    await engine.ask(SYSTEM, user("hi"), options={"temperature": 0, "seed": 4})
    assert len(engine.launcher.servers) == 1
    await engine.ask(SYSTEM, user("hi"), options={"num_ctx": 9000, "num_thread": 3})
    first, second = engine.launcher.servers
    assert first.ended
    assert (second.config.num_ctx, second.config.threads, second.config.batch) == (9000, 3, 128)
    assert (engine.backend.loads, engine.backend.reloads) == (2, 1)
    # More than the model was trained for is cut to that.
    await engine.ask(SYSTEM, user("hi"), options={"num_ctx": 1_000_000})
    assert engine.launcher.last.config.num_ctx == 20_000


async def test_leaving_stops_the_generation(engine: Engine) -> None:
    await engine.ask(SYSTEM, user("hi"))
    fake = engine.launcher.last
    fake.gate = asyncio.Event()
    request = asyncio.ensure_future(engine.ask(SYSTEM, user("hi")))
    await _until(lambda: fake.open_streams == 1)
    request.cancel()
    await engine.server.log.until(lambda log: log.records[-1].outcome == "disconnected")
    await _until(lambda: fake.open_streams == 0)
    fake.gate = None
    assert (await engine.ask(SYSTEM, user("hi"))).status_code == 200


async def test_leaving_while_it_loads_does_not_undo_the_load(engine: Engine) -> None:
    engine.launcher.hold = asyncio.Event()
    request = asyncio.ensure_future(engine.ask(SYSTEM, user("hi")))
    await _until(lambda: ("loading", 0, 0) in engine.progress)
    request.cancel()
    await engine.server.log.until(lambda log: log.records[-1].outcome == "disconnected")
    engine.launcher.hold.set()
    assert (await engine.ask(SYSTEM, user("hi"))).status_code == 200
    assert engine.backend.loads == 1
    assert len(engine.launcher.servers) == 1


async def test_requests_run_one_after_another(engine: Engine) -> None:
    await engine.ask(SYSTEM, user("hi"))
    fake = engine.launcher.last
    fake.gate = asyncio.Event()
    asked = [asyncio.ensure_future(engine.ask(SYSTEM, user(text))) for text in ("a", "b")]
    await engine.server.log.until(lambda log: log.in_flight == 2)
    await _until(lambda: fake.open_streams == 1)
    fake.gate.set()
    assert [one.status_code for one in await asyncio.gather(*asked)] == [200, 200]


async def test_a_crash_while_answering_is_a_sentence_and_the_next_message_works(engine: Engine) -> None:
    await engine.ask(SYSTEM, user("hi"))
    fake = engine.launcher.last
    fake.reply = [{"content": "some "}, {"content": "text"}]
    fake.cut_after = 1
    rows = lines(await engine.ask(SYSTEM, user("hi")))
    assert rows[0]["message"]["content"] == "some "
    assert rows[-1]["error"].startswith("an error was encountered while running the model: the engine's process ended")
    await fake.stop()
    assert (await engine.ask(SYSTEM, user("hi"))).status_code == 200
    assert len(engine.launcher.servers) == 2
    assert engine.backend.reloads == 0


async def test_a_model_that_does_not_load_is_a_sentence_every_time(engine: Engine) -> None:
    engine.launcher.error = "unknown model architecture: 'x'"
    for _ in range(2):
        answered = await engine.ask(SYSTEM, user("hi"))
        assert answered.status_code == 500
        assert "could not be loaded with a window of 8000 tokens: unknown model" in answered.json()["error"]
    engine.launcher.error = ""
    assert (await engine.ask(SYSTEM, user("hi"))).status_code == 200


async def test_a_file_that_cannot_be_made_is_the_answer(tmp_path: Path) -> None:
    async def path() -> Path:
        raise LoadFailed("The disk is full.", fix="Free some space.")

    async with running(tmp_path, path=path) as engine:
        answered = await engine.ask(SYSTEM, user("hi"))
        assert (answered.status_code, answered.json()["error"]) == (500, "The disk is full. Free some space.")


async def test_a_full_window_is_ollamas_error(engine: Engine) -> None:
    answered = await engine.ask(SYSTEM, user("word " * 3000))
    assert answered.status_code == 400
    assert json.loads(answered.json()["error"])["error"]["type"] == "exceed_context_size_error"


async def test_tool_calls_come_with_the_final_object(engine: Engine) -> None:
    await engine.ask(SYSTEM, user("hi"))
    piece = {"index": 0, "id": "c", "function": {"name": "f", "arguments": '{"a": 1}'}}
    engine.launcher.last.reply = [{"content": "So: "}, {"tool_calls": [piece]}]
    *_, last = lines(await engine.ask(SYSTEM, user("hi")))
    assert last["done"] is True
    assert last["message"]["tool_calls"] == [{"id": "c", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}}]


async def test_load_ps_and_unload(engine: Engine) -> None:
    async with httpx.AsyncClient(base_url=engine.server.url, trust_env=False) as http:
        assert (await http.get("/api/ps")).json() == {"models": []}
        loaded = await http.post("/api/chat", json={"model": "m", "messages": []})
        assert loaded.json()["done_reason"] == "load"
        (row,) = (await http.get("/api/ps")).json()["models"]
        assert (row["name"], row["context_length"]) == ("m:latest", 8000)
        await http.post("/api/chat", json={"model": "m", "messages": [], "keep_alive": 0})
        assert (await http.get("/api/ps")).json() == {"models": []}
        assert engine.launcher.last.ended


async def test_a_chat_with_keep_alive_0_unloads_after_its_answer(engine: Engine) -> None:
    assert (await engine.ask(SYSTEM, user("hi"), keep_alive=0)).status_code == 200
    await _until(lambda: engine.launcher.last.ended)


async def test_what_the_engine_does_not_do_is_said(engine: Engine) -> None:
    async with httpx.AsyncClient(base_url=engine.server.url, trust_env=False) as http:
        embed = await http.post("/api/embed", json={"model": "m", "input": "x"})
        assert "makes no embeddings" in embed.json()["error"]
        pull = await http.post("/api/pull", json={"model": "llama3"})
        assert "cannot download" in pull.text
        delete = await http.request("DELETE", "/api/delete", json={"model": "m"})
        assert "does not delete" in delete.json()["error"]


async def test_progress_says_what_takes_time(engine: Engine) -> None:
    await engine.ask(SYSTEM, user("hi"))
    stages = list(dict.fromkeys(step[0] for step in engine.progress))
    assert stages == ["loading", "ready", "reading"]


async def _until(condition: Any, timeout: float = 10.0) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(wait(), timeout)
