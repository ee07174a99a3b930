"""The embedder of a session: there later, refused for a while, and what goes wrong is told once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tui_agent.agent import embedding
from tui_agent.agent.embedding import LateEmbedder
from tui_agent.llm.errors import GenerationFailed, SignInRequired


class Inner:
    """An embedder whose next answers are set."""

    identity, dimension = "inner", 2

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.last_error = ""
        self.calls = 0

    async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
        self.calls += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_text_without_a_vector_is_told_with_the_models_words_once() -> None:
    inner = Inner([[1.0, 0.0], None, None], [[1.0, 0.0]])
    inner.last_error = "NaN"
    late = LateEmbedder()
    late.set(inner)
    await late.embed(["a", "b", " "], "document")
    assert late.take_trouble().startswith("One text has no vector")
    assert late.take_trouble() == ""
    await late.embed(["c"], "document")
    assert late.take_trouble() == ""


async def test_a_failure_is_raised_and_told() -> None:
    late = LateEmbedder()
    late.set(Inner(GenerationFailed("The model failed.")))
    with pytest.raises(GenerationFailed):
        await late.embed(["a"], "query")
    assert late.take_trouble().endswith("The model failed.")


async def test_after_a_refusal_nothing_is_asked_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(embedding.time, "monotonic", lambda: now[0])
    inner = Inner(SignInRequired("Sign in."), [[1.0, 0.0]])
    late = LateEmbedder()
    late.set(inner)
    with pytest.raises(SignInRequired):
        await late.embed(["a"], "query")
    assert await late.embed(["a"], "query") == [None]
    assert inner.calls == 1
    now[0] += embedding.REFUSED_S + 1
    assert await late.embed(["a"], "query") == [[1.0, 0.0]]
