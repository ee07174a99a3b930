from __future__ import annotations

import json
from typing import Any

import pytest

from tui_agent.llm.embedded.openai import Answer, body_for, error_of, messages_for
from tui_agent.llm.wire.backend import BackendError, ChatRequest

USER = {"role": "user", "content": "hi"}


def call(name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}, **more}


def test_calls_without_ids_get_the_same_ones_every_time_and_results_find_them() -> None:
    history: list[dict[str, Any]] = [
        USER,
        {"role": "assistant", "tool_calls": [call("f", {"a": "ł"}), call("g", {})], "thinking": "hm"},
        {"role": "tool", "tool_name": "f", "content": "one"},
        {"role": "tool", "tool_name": "g", "content": "two"},
    ]
    made = messages_for(history)
    assert made == messages_for(history)
    first, second = made[1]["tool_calls"]
    assert json.loads(first["function"]["arguments"]) == {"a": "ł"}
    assert first["id"] != second["id"]
    assert [one["tool_call_id"] for one in made[2:]] == [first["id"], second["id"]]
    assert made[2]["name"] == "f"
    assert "thinking" not in made[1]
    assert made[1]["content"] == ""


def test_given_ids_are_kept() -> None:
    made = messages_for(
        [
            {"role": "assistant", "tool_calls": [call("f", {}, id="call_x")]},
            {"role": "tool", "tool_call_id": "call_x", "content": "r"},
            {"role": "tool", "content": "an orphan"},
        ]
    )
    assert made[0]["tool_calls"][0]["id"] == made[1]["tool_call_id"] == "call_x"
    assert made[2]["tool_call_id"]


def test_images_are_refused() -> None:
    with pytest.raises(BackendError, match="cannot see images"):
        messages_for([{**USER, "images": ["AA=="]}])


def test_sampling_has_ollamas_defaults_and_generation_always_a_limit() -> None:
    body = body_for(ChatRequest("m", [USER]), 4096)
    assert (body["temperature"], body["top_p"], body["min_p"], body["repeat_penalty"]) == (0.8, 0.9, 0.0, 1.0)
    assert body["max_tokens"] == 4096
    assert body["cache_prompt"] is True
    assert "tools" not in body
    options = {"temperature": 0, "num_predict": 5, "stop": ["x"], "seed": 3}
    given = body_for(ChatRequest("m", [USER], [{"type": "function"}], options=options, think=False), 4096)
    assert (given["temperature"], given["max_tokens"], given["stop"], given["seed"]) == (0, 5, ["x"], 3)
    assert given["chat_template_kwargs"] == {"enable_thinking": False}
    assert body_for(ChatRequest("m", [USER], options={"num_predict": 0}), 4096)["max_tokens"] == 1
    assert body_for(ChatRequest("m", [USER], options={"num_predict": -1}), 4096)["max_tokens"] == 4096


def test_formats() -> None:
    schema = {"type": "object"}
    assert body_for(ChatRequest("m", [USER], format="json"), 10)["response_format"] == {"type": "json_object"}
    assert body_for(ChatRequest("m", [USER], format=schema), 10)["response_format"]["json_schema"] == {"schema": schema}
    with pytest.raises(BackendError, match="invalid format"):
        body_for(ChatRequest("m", [USER], format="yaml"), 10)


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": None}]}


def test_tool_calls_are_put_together_from_their_pieces() -> None:
    answer = Answer()
    pieces: list[dict[str, Any]] = [
        {"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}},
        {"index": 1, "id": "c2", "function": {"name": "g", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": '{"a":'}},
        {"index": 0, "function": {"arguments": '"b"}'}},
    ]
    for piece in pieces:
        assert answer.take(delta(tool_calls=[piece])) == ("", "")
    answer.take({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    assert answer.tool_calls == [
        {"id": "c1", "function": {"index": 0, "name": "f", "arguments": {"a": "b"}}},
        {"id": "c2", "function": {"index": 1, "name": "g", "arguments": {}}},
    ]
    assert answer.done_reason == "stop"


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", '"x"'])
def test_arguments_that_are_no_object_are_an_error_in_the_servers_words(arguments: str) -> None:
    answer = Answer()
    answer.take(delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": arguments}}]))
    with pytest.raises(BackendError, match='invalid tool call arguments for "f"'):
        _ = answer.tool_calls


def test_counters_come_from_the_timings() -> None:
    answer = Answer()
    timings = {"cache_n": 10, "prompt_n": 3, "prompt_ms": 5.5, "predicted_n": 2, "predicted_ms": 7.0}
    assert answer.take({**delta(content="a", reasoning_content="b"), "timings": timings}) == ("a", "b")
    assert (answer.cached, answer.read, answer.written) == (10, 3, 2)
    answer.take({"prompt_progress": {"total": 13, "processed": 10}})
    assert (answer.processed, answer.total) == (10, 13)


def test_a_full_window_is_a_string_of_json_and_other_errors_are_sentences() -> None:
    inner = {"code": 400, "type": "exceed_context_size_error", "message": "too long", "n_ctx": 10}
    full = error_of(400, {"error": inner})
    assert full.status == 400
    assert json.loads(full.error)["error"] == inner
    other = error_of(500, {"error": {"code": 500, "type": "server_error", "message": "boom"}})
    assert (other.status, other.error) == (500, "an error was encountered while running the model: boom")
    assert error_of(502, "").error == "the model gave no answer"
    with pytest.raises(BackendError, match="boom"):
        Answer().take({"error": {"message": "boom"}})
