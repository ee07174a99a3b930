"""Vectors of statements and of questions about them that stand for more words than were said.

A small encoder knows few other ways to say a thing, and the thesaurus knows many. So a text is embedded twice, as it is
and with words behind it that could stand for its own, and the two vectors are added: measured on questions in other
words, that finds more than the encoder alone (``benchmarks/retrieval.py``). Large encoders know the words themselves:
an embedder says by ``widens`` whether this is for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tui_agent.memory.text import language_of
from tui_agent.memory.thesaurus import LONGEST, thesaurus
from tui_agent.memory.types import Embedder, TextKind, Vector

_SHARE = 0.5  # of the vector with more words


def widened(text: str) -> str:
    """``text`` with words in brackets that could stand for its own, or as it is."""
    if len(text) > LONGEST:
        return text
    others = thesaurus().others(text, language_of(text) or "en")
    return f"{text} ({', '.join(others)})" if others else text


async def embed_wide(
    embedder: Embedder, texts: Sequence[str], kind: TextKind, *, wide: bool = True
) -> list[tuple[Vector | None, Vector | None]]:
    """For each text its plain vector, and the one to compare statements and questions by, which is the plain one where
    nobody wants a ``wide`` one; both of length 1.

    Raises what the embedder raises.
    """
    if not wide or not getattr(embedder, "widens", False):
        return [(vector, vector) for vector in await embedder.embed(texts, kind)]
    wider = {text: more for text in texts if (more := widened(text)) != text}
    found = await embedder.embed([*texts, *wider.values()], kind)
    of_wider = dict(zip(wider, found[len(texts) :], strict=True))
    return [(plain, _added(plain, of_wider.get(text))) for text, plain in zip(texts, found, strict=False)]


def _added(plain: Vector | None, wide: Vector | None) -> Vector | None:
    if plain is None or wide is None:
        return plain
    total = (1 - _SHARE) * plain + _SHARE * wide
    return np.asarray(total / max(1e-9, float(np.linalg.norm(total))), dtype=np.float32)
