"""Made-up models, vectors and downloads for the scripted server."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from .backend import JSON, BackendModel

CHAT_MODEL = "qwen2.5-coder:1.5b"


def model(
    name: str = CHAT_MODEL,
    *,
    capabilities: Sequence[str] = ("completion", "tools"),
    context_length: int = 32768,
    embedding_length: int = 1536,
    family: str = "qwen2",
    size: int = 986_000_000,
    **more: Any,
) -> BackendModel:
    """A model for :class:`~tui_agent.llm.wire.scripted.ScriptedBackend`; everything else has believable values."""
    values: dict[str, Any] = {
        "name": name,
        "digest": hashlib.sha256(name.encode()).hexdigest(),
        "size": size,
        "family": family,
        "parameter_size": "1.5B",
        "quantization": "Q4_K_M",
        "context_length": context_length,
        "embedding_length": embedding_length,
        "capabilities": tuple(capabilities),
        "modified_at": 1_750_000_000.0,
    }
    return BackendModel(**{**values, **more})


def embed_model(name: str = "nomic-embed-text:latest", *, dimensions: int = 768) -> BackendModel:
    """An embedding-only model."""
    return model(
        name,
        capabilities=("embedding",),
        context_length=2048,
        embedding_length=dimensions,
        family="nomic-bert",
        size=274_000_000,
        parameter_size="137M",
        quantization="F16",
    )


def hash_vector(text: str, dimensions: int) -> list[float]:
    """A vector made of one pseudo-random direction per word; the same text gives the same vector on every machine."""
    folded = unicodedata.normalize("NFC", text).casefold()
    total = np.zeros(dimensions)
    for word in folded.split() or [""]:
        seed = int.from_bytes(hashlib.blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        total += np.random.Generator(np.random.PCG64(seed)).standard_normal(dimensions)
    length = float(np.linalg.norm(total))
    return [float(value) for value in total / (length or 1.0)]


def pull_progress(*sizes: int, steps: int = 4) -> list[JSON]:
    """The lines of a pull of layers of these sizes in bytes; ``completed`` is absent while it is 0."""
    lines: list[JSON] = [{"status": "pulling manifest"}]
    for number, size in enumerate(sizes):
        digest = hashlib.sha256(f"layer {number} {size}".encode()).hexdigest()
        head: JSON = {"status": f"pulling {digest[:12]}", "digest": f"sha256:{digest}", "total": size}
        lines.append(head)
        lines += [{**head, "completed": size * step // steps} for step in range(1, steps + 1)]
    return [*lines, {"status": "verifying sha256 digest"}, {"status": "writing manifest"}, {"status": "success"}]
