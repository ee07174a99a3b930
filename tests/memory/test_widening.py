"""Vectors that stand for more words than were said, for embedders that want them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tui_agent.memory.thesaurus import LONGEST
from tui_agent.memory.types import TextKind, Vector
from tui_agent.memory.widening import embed_wide, widened


class Letters:
    """An embedder that counts letters; it keeps what it was asked for."""

    identity = "letters"
    dimension = 26

    def __init__(self, *, widens: bool) -> None:
        self.widens = widens
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str], kind: TextKind = "document") -> list[Vector | None]:
        self.asked += texts
        found: list[Vector | None] = []
        for text in texts:
            counts = np.array([text.lower().count(chr(97 + n)) for n in range(26)], dtype=np.float32)
            found.append(counts / np.linalg.norm(counts) if counts.any() else None)
        return found


def test_a_text_gets_words_of_its_own_language_that_could_stand_for_its_own() -> None:
    english = widened("Who carries the pager?")
    assert english.startswith("Who carries the pager? (")
    assert "on call" in english
    assert "дежур" in widened("Кто сегодня дежурит с пейджером?").partition("(")[2]
    assert widened("xyzzy plugh") == "xyzzy plugh"
    long = "pager " * LONGEST
    assert widened(long) == long


async def test_the_vector_of_more_words_is_half_of_the_one_that_is_compared() -> None:
    embedder = Letters(widens=True)
    ((plain, wide),) = await embed_wide(embedder, ["Who carries the pager?"], "query")
    assert embedder.asked == ["Who carries the pager?", widened("Who carries the pager?")]
    first, second = await embedder.embed(embedder.asked[:2])
    assert plain is not None
    assert wide is not None
    assert first is not None
    assert second is not None
    assert np.array_equal(plain, first)
    assert np.allclose(wide, (first + second) / np.linalg.norm(first + second), atol=1e-6)
    assert float(np.linalg.norm(wide)) == pytest.approx(1.0, abs=1e-5)


async def test_texts_without_other_words_and_without_a_vector_keep_their_place() -> None:
    texts = ["xyzzy", "Who carries the pager?", "1234", "xyzzy"]
    found = await embed_wide(Letters(widens=True), texts, "document")
    assert [wide is None for _, wide in found] == [False, False, True, False]
    assert found[0][0] is found[0][1]
    assert not np.array_equal(found[1][0], found[1][1])  # type: ignore[arg-type]
    assert found[2] == (None, None)


async def test_an_embedder_that_knows_the_words_itself_is_asked_once() -> None:
    embedder = Letters(widens=False)
    ((plain, wide),) = await embed_wide(embedder, ["Who carries the pager?"], "query")
    assert embedder.asked == ["Who carries the pager?"]
    assert plain is wide


async def test_where_no_fact_is_searched_nothing_more_is_embedded() -> None:
    embedder = Letters(widens=True)
    await embed_wide(embedder, ["Who carries the pager?"], "query", wide=False)
    assert embedder.asked == ["Who carries the pager?"]
