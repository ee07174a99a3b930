"""An embedder that may come later: memory works on words until it is there."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tui_agent.llm.errors import Forbidden, SignInRequired
from tui_agent.memory.types import Embedder, TextKind, Vector

REFUSED_S = 60.0


class LateEmbedder:
    """Stands for the embedder of a session from the start; until :meth:`set` it embeds nothing.

    ``identity`` is empty and every vector ``None`` while there is none, which the stores read as "no vectors".
    """

    def __init__(self) -> None:
        self._inner: Embedder | None = None
        self._trouble = ""
        self._refused_at: float | None = None

    def set(self, inner: Embedder | None) -> None:
        """Use ``inner`` from now on."""
        self._inner = inner
        self._trouble = ""
        self._refused_at = None

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

    @property
    def widens(self) -> bool:
        """Whether it gets texts with more words than were said as well."""
        return bool(getattr(self._inner, "widens", False))

    async def embed(self, texts: Sequence[str], kind: TextKind) -> list[Vector | None]:
        """Vectors of ``texts``, or as many ``None``."""
        if self._inner is None or self._is_refused():
            return [None] * len(texts)
        try:
            found = await self._inner.embed(texts, kind)
        except Exception as error:
            if isinstance(error, (SignInRequired, Forbidden)):
                self._refused_at = time.monotonic()
            self._trouble = f"Memories could not be embedded, so they are found by words alone. {error}"
            raise
        without = sum(vector is None and bool(text.strip()) for text, vector in zip(texts, found, strict=True))
        if without and (said := getattr(self._inner, "last_error", "")):
            which = "One text has" if without == 1 else f"{without} texts have"
            self._trouble = f"{which} no vector and can be found by words alone: the embedding model said “{said}”."
        return found

    def _is_refused(self) -> bool:
        """Whether the server has just said that we may not: asking again at once would change nothing."""
        return self._refused_at is not None and time.monotonic() - self._refused_at < REFUSED_S

    def take_trouble(self) -> str:
        """What went wrong since the last time this was asked, as sentences; empty when nothing did."""
        trouble, self._trouble = self._trouble, ""
        return trouble
