from __future__ import annotations

import pytest

from tui_agent.llm.wire.names import parse_name


@pytest.mark.parametrize(
    ("text", "full", "short"),
    [
        ("x", "registry.ollama.ai/library/x:latest", "x:latest"),
        ("qwen2.5-coder:1.5b", "registry.ollama.ai/library/qwen2.5-coder:1.5b", "qwen2.5-coder:1.5b"),
        ("me/x:q4", "registry.ollama.ai/me/x:q4", "me/x:q4"),
        ("hf.co/a/b:Q4_K_M", "hf.co/a/b:Q4_K_M", "hf.co/a/b:Q4_K_M"),
        ("localhost:5000/a/b", "localhost:5000/a/b:latest", "localhost:5000/a/b:latest"),
    ],
)
def test_defaults_are_filled_in(text: str, full: str, short: str) -> None:
    name = parse_name(text)
    assert name is not None
    assert (name.full, name.short) == (full, short)


@pytest.mark.parametrize("text", ["", "a b", "../x", "a/b/c/d", "x:", ":x", "-x"])
def test_invalid_names_are_none(text: str) -> None:
    assert parse_name(text) is None


def test_names_are_compared_without_case() -> None:
    first, second = parse_name("Llama3:8B"), parse_name("llama3:8b")
    assert first is not None
    assert second is not None
    assert first.key == second.key
