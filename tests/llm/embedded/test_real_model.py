"""One real conversation with the built-in model, and what it re-reads: on the second turn, and after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tui_agent.llm.embedded.gguf import describe
from tui_agent.llm.embedded.models import assembled_path, find_parts
from tui_agent.llm.embedded.process import EmbeddedEngine, Progress
from tui_agent.llm.errors import ModelMissing
from tui_agent.project import UserPaths

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.real_model

SYSTEM = {"role": "system", "content": "You are a brief assistant. Answer with one short sentence. " * 8}
TOOL = {
    "type": "function",
    "function": {
        "name": "remember",
        "description": "Save a fact about the user.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "the fact"}},
            "required": ["text"],
        },
    },
}


async def ask(url: str, *messages: dict[str, Any], limit: int = 12) -> tuple[str, dict[str, Any], int]:
    """The text, the final object, and the cached prompt tokens."""
    body = {
        "model": "qwen2.5-coder:1.5b",
        "messages": list(messages),
        "tools": [TOOL],
        "options": {"num_ctx": 1024, "num_predict": limit, "temperature": 0},
    }
    async with httpx.AsyncClient(trust_env=False, timeout=None) as http:
        answered = await http.post(f"{url}/api/chat", json=body)
    rows = [json.loads(line) for line in answered.content.split(b"\n") if line]
    assert "error" not in rows[-1], rows[-1]
    return "".join(row["message"]["content"] for row in rows), rows[-1], int(answered.headers["X-Prompt-Cached"])


async def test_the_second_turn_and_a_restart_read_only_what_is_new(tmp_path: Path) -> None:
    try:
        find_parts()
    except ModelMissing as error:
        pytest.skip(str(error))
    # The model is unpacked where the app keeps it: once for all, not once a test.
    models = UserPaths.find().models_dir
    engine = EmbeddedEngine(num_ctx=1024, models_dir=models, slots_dir=tmp_path, log_path=tmp_path / "engine.log")
    said: list[Progress] = []
    user = {"role": "user", "content": "Say hello."}
    url = await engine.start(said.append)
    try:
        _, warm, cached = await ask(url, SYSTEM, {"role": "user", "content": ""}, limit=1)
        assert cached == 0
        fixed = warm["prompt_eval_count"]
        text, first, cached = await ask(url, SYSTEM, user)
        assert text
        assert fixed - cached < 10
        more = {"role": "user", "content": "Say goodbye."}
        _, second, cached = await ask(url, SYSTEM, user, {"role": "assistant", "content": text}, more)
        assert cached >= first["prompt_eval_count"] - 1
        assert second["prompt_eval_count"] - cached < 40
    finally:
        await engine.stop()
    assert "ready" in [one.stage for one in said]
    url = await engine.start()
    try:
        _, again, cached = await ask(url, SYSTEM, user, limit=1)
        assert fixed - cached < 10
        assert again["prompt_eval_count"] - cached < 20
    finally:
        await engine.stop()


def test_the_header_of_the_built_in_model_says_what_the_engine_claims() -> None:
    from tui_agent.llm.embedded.__main__ import BUILT_IN

    path = assembled_path(UserPaths.find().models_dir)
    if not path.is_file():
        pytest.skip("the built-in model has not been unpacked yet")
    found = describe(path)
    assert (found.family, found.quantization, found.capabilities) == (
        BUILT_IN.family,
        BUILT_IN.quantization,
        BUILT_IN.capabilities,
    )
    assert (found.context_length, found.embedding_length) == (BUILT_IN.context_length, BUILT_IN.embedding_length)
