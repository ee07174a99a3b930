"""An embedder that may come later: memory works on words until it is there."""

from __future__ import annotations

from collections.abc import Sequence

from tui_agent.memory.types import Embedder, TextKind, Vector


class LateEmbedder:
    """Stands for the embedder of a session from the start; until :meth:`set` it embeds nothing.

    ``identity`` is empty and every vector ``None`` while there is none, which the stores read as "no vectors".
    """

    def __init__(self) -> None:
        self._inner: Embedder | None = None

    def set(self, inner: Embedder | None) -> None:
        """Use ``inner`` from now on."""
        self._inner = inner

    @property
    def ready(self) -> bool:
        """Whether there is an embedder."""
        return self._inner is not None

    @property
    def identity(self) -> str:
        """Identity of the embedder, empty while there is none."""
        return self._inner.identity if self._inner is not None else ""

    @property
    def dimension(self) -> int:
        """Length of its vectors, 0 while there is none."""
        return self._inner.dimension if self._inner is not None else 0

    async def embed(self, texts: Sequence[str], kind: TextKind) -> list[Vector | None]:
        """Vectors of ``texts``, or as many ``None``."""
        if self._inner is None:
            return [None] * len(texts)
        return await self._inner.embed(texts, kind)
