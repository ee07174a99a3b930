"""Vectors for items from whatever embedder is at hand, and what happens when it fails: nothing is lost, it is said."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tui_agent.memory.types import TextKind, Vector

logger = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT = 2.0, 60.0


class ItemVectors:
    """Wraps an :class:`~tui_agent.memory.types.Embedder`, or the article's ``llm`` whose ``embed(texts, model=…)``
    gives lists of floats.

    After a failure it is left alone for a while (2 s, doubling up to a minute), so that a server that is down does not
    slow down every step; ``trouble`` says what is wrong, and is empty when all is well.
    """

    def __init__(self, llm: Any, model: str = "nomic-embed-text") -> None:
        self._llm = llm
        self._model = model
        self._ours = hasattr(llm, "identity")
        self._takes_model = not self._ours and llm is not None and "model" in inspect.signature(llm.embed).parameters
        self._wait = self._until = 0.0
        self.first_wait = _FIRST_WAIT
        self.trouble = ""

    @property
    def present(self) -> bool:
        return self._llm is not None

    @property
    def identity(self) -> str:
        """Names the space the vectors live in; vectors of two identities are never compared."""
        if self._llm is None:
            return ""
        return str(self._llm.identity) if self._ours else f"{type(self._llm).__name__}:{self._model}"

    async def embed(self, texts: Sequence[str], kind: TextKind) -> list[Vector | None]:
        """One float32 vector of length 1 per text, shape ``(dimension,)``, or ``None`` where there is none."""
        nothing: list[Vector | None] = [None] * len(texts)
        wanted = [index for index, text in enumerate(texts) if text.strip()]
        if self._llm is None or not wanted or time.monotonic() < self._until:
            return nothing
        asked = [texts[index] for index in wanted]
        try:
            if self._ours:
                found = await self._llm.embed(asked, kind)
            elif self._takes_model:
                found = await self._llm.embed(asked, model=self._model)
            else:
                found = await self._llm.embed(asked)
        except Exception as error:
            self._wait = min(_LONGEST_WAIT, 2 * self._wait or self.first_wait)
            self._until = time.monotonic() + self._wait
            if not self.trouble:
                logger.warning("texts cannot be embedded now, ranking goes without meaning: %s", error)
            self.trouble = f"The embedder does not answer ({error}); ranking goes on without meaning."
            return nothing
        self._wait, self.trouble = 0.0, ""
        for index, vector in zip(wanted, found, strict=False):
            nothing[index] = _unit(vector)
        return nothing


def _unit(vector: Any) -> Vector | None:
    """``vector`` as float32 of length 1; ``None`` when it has no direction or is not finite."""
    if vector is None:
        return None
    if isinstance(vector, np.ndarray) and vector.dtype == np.float32 and vector.ndim == 1:
        square = float(vector @ vector)
        if abs(square - 1.0) < 1e-5:  # as an embedder of ours gives it
            return vector
    values = np.asarray(vector, dtype=np.float64).reshape(-1)
    length = float(np.sqrt(values @ values)) if len(values) else 0.0
    if not length or not np.isfinite(length):
        return None
    return (values / length).astype(np.float32)
