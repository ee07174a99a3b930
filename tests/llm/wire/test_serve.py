"""The server in a thread and as a process, and script files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import ollama
import pytest

from tui_agent.llm.wire.script import answer
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.scriptfile import ScriptFileError, backend_from, load_backend
from tui_agent.llm.wire.serve import WireServer

MODEL = "qwen2.5-coder:1.5b"


def ask(url: str, *messages: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{url}/api/chat", json={"model": MODEL, "messages": list(messages)}, trust_env=False, timeout=10)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def text_of(answered: httpx.Response) -> str:
    return "".join(json.loads(line)["message"]["content"] for line in answered.content.split(b"\n") if line)


def test_the_server_runs_in_a_thread_for_programs_with_their_own_loop() -> None:
    backend = ScriptedBackend(default="from a thread")
    with WireServer(backend) as server:
        assert text_of(ask(server.url, user("hi"))) == "from a thread"
        assert server.chats[0].outcome == "done"
    with pytest.raises(httpx.ConnectError):
        ask(server.url, user("hi"))


async def test_the_official_client_understands_it() -> None:
    backend = ScriptedBackend()
    backend.queue(answer("Hello there"))
    async with WireServer(backend) as server:
        client = ollama.AsyncClient(host=server.url)
        parts = [part async for part in await client.chat(model=MODEL, messages=[user("hi")], stream=True)]
        assert "".join(part.message.content or "" for part in parts) == "Hello there"
        assert parts[-1].done
        assert parts[-1].prompt_eval_count
        assert [one.model for one in (await client.list()).models] == [MODEL]
        assert "tools" in ((await client.show(MODEL)).capabilities or [])
        assert (await client.ps()).models[0].model == MODEL
        with pytest.raises(ollama.ResponseError, match="not found"):
            await client.chat(model="nope", messages=[user("hi")])


@contextmanager
def process(script: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    command = [sys.executable, "-m", "tui_agent.llm.wire", "--script", str(script), "--with-stdin"]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert running.stdin is not None
    assert running.stdout is not None
    try:
        first = json.loads(running.stdout.readline())
        yield running, first["url"], first["debug_token"]
    finally:
        running.stdin.close()
        running.wait(10)
        running.stdout.close()


def test_the_process_answers_from_its_script_and_ends_with_its_standard_input(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps(
            {
                "turns": [
                    {"match": "pnpm", "steps": [{"call": {"name": "edit_file", "arguments": {"path": "x"}}}]},
                    {"match": "pnpm", "after_tool": True, "steps": ["Saved: ", {"answer": "you prefer pnpm."}]},
                    {"match": "busy", "steps": [{"fault": "server_busy"}]},
                    {"match": "load", "steps": [{"fault": "load_failure"}]},
                ],
                "default": "Zażółć.",
            }
        ),
        encoding="utf-8",
    )
    with process(script) as (running, url, token):
        called = ask(url, user("I prefer pnpm"))
        assert b'"name":"edit_file"' in called.content
        result = {"role": "tool", "content": "done"}
        assert text_of(ask(url, user("I prefer pnpm"), result)) == "Saved: you prefer pnpm."
        assert text_of(ask(url, user("I prefer pnpm"))) == "Zażółć."
        assert ask(url, user("busy?")).status_code == 503
        page = httpx.get(f"{url}/debug/requests", headers={"Authorization": f"Bearer {token}"}, trust_env=False).json()
        assert [row["status"] for row in page["requests"]] == [200, 200, 200, 503]
        assert page["requests"][0]["body"]["messages"] == [user("I prefer pnpm")]
    assert running.returncode == 0


def test_a_bad_script_ends_the_process_with_a_sentence(tmp_path: Path) -> None:
    script = tmp_path / "bad.json"
    script.write_text('{"turns": [{"steps": [{"fault": "no_such"}]}]}', encoding="utf-8")
    command = [sys.executable, "-m", "tui_agent.llm.wire", "--script", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert ended.returncode == 2
    assert "unknown fault 'no_such'" in ended.stderr
    assert "Traceback" not in ended.stderr


async def test_every_kind_of_step_can_be_written() -> None:
    backend = backend_from(
        {
            "models": [{"name": "m", "capabilities": ["completion", "tools", "thinking"]}],
            "turns": [
                {
                    "steps": [
                        {"think": "hm"},
                        "a",
                        {"say": "b", "pieces": 3},
                        {"answer": "c d"},
                        {"calls": [{"name": "f"}, {"name": "g", "id": ""}], "content": "e"},
                        {"joined": ["f", {"think": "g"}]},
                        {"raw": ["\n"]},
                        {"wait": 0},
                        {"done": {"reason": "length", "calls": [{"name": "h"}], "eval_count": 3}},
                    ]
                },
                ["x", {"stop": True}],
                {"steps": [{"fail": {"status": 500, "error": "no"}}], "times": 2},
                {"steps": [{"reply": {"status": 502, "content": "<p>", "content_type": "text/html"}}]},
                {"steps": ["x", {"cut": "close"}]},
                {"steps": [], "load_error": {"status": 500, "error": "cannot load"}, "match": "never"},
            ],
        }
    )
    async with WireServer(backend) as server, httpx.AsyncClient(base_url=server.url, trust_env=False) as http:

        async def post() -> httpx.Response:
            return await http.post("/api/chat", json={"model": "m", "messages": [user("hi")]})

        rows = [json.loads(line) for line in (await post()).content.split(b"\n") if line]
        assert "".join(row["message"]["content"] for row in rows) == "abc def"
        calls = [one for row in rows for one in row["message"].get("tool_calls", ())]
        assert [one["function"]["name"] for one in calls] == ["f", "g", "h"]
        assert [bool(one.get("id")) for one in calls] == [True, False, True]
        assert (rows[-1]["done_reason"], rows[-1]["eval_count"]) == ("length", 3)
        assert b'"done":true' not in (await post()).content
        assert [(await post()).status_code for _ in range(3)] == [500, 500, 502]
        with pytest.raises(httpx.RemoteProtocolError):
            await post()
        assert (await post()).status_code == 500  # nothing fits, and there is no default


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "one JSON object"),
        ({"turn": []}, "unknown key 'turn'"),
        ({"turns": [{"steps": [], "macth": "x"}]}, "turn 1: unknown key 'macth'"),
        ({"turns": [{"match": "x"}]}, "turn 1: expected a list of steps"),
        ({"turns": [[{"sya": "x"}]]}, "unknown step"),
        ({"turns": [[3]]}, "a step is a string or an object"),
        ({"turns": [[{"call": {}}]]}, "turn 1, step 1"),
    ],
)
def test_mistakes_in_a_script_file_are_named(data: Any, words: str) -> None:
    with pytest.raises(ScriptFileError, match=words):
        backend_from(data)


def test_a_script_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScriptFileError, match="cannot be read"):
        load_backend(tmp_path / "none.json")
