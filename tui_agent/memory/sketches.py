"""A small index of many vectors: one bit per dimension, compared by counting bits that differ.

The sign of each coordinate, after the mean direction is taken off, keeps enough of a direction to find the few hundred
nearest of many thousands; the exact cosine is then computed for those alone, from the vectors in the database. A sketch
takes 96 bytes where a vector of 768 dimensions takes 3 KiB, so 50,000 items need 5 MB instead of 150 MB.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.scoring import Floats
from tui_agent.memory.types import Vector

Words = NDArray[np.uint64]

_NIBBLES = np.array([bin(i).count("1") for i in range(1 << 16)], dtype=np.uint8)


def _bits_set(words: Words) -> NDArray[np.uint16]:
    """Set bits per column of an array of shape ``(words, n)``."""
    if hasattr(np, "bitwise_count"):  # numpy 2
        return np.asarray(np.bitwise_count(words).sum(axis=0, dtype=np.uint16))
    halves = np.ascontiguousarray(words).view(np.uint16).reshape(words.shape[0], words.shape[1], 4)
    return np.asarray(_NIBBLES[halves].sum(axis=(0, 2), dtype=np.uint16))


class Sketches:
    """Sketches by item number for vectors of one embedder, shape ``(dimension,)`` each."""

    def __init__(self, dimension: int, mean: Floats | None) -> None:
        self.dimension = dimension
        self._mean = mean if mean is not None and mean.shape == (dimension,) else None
        self._words = (dimension + 63) // 64
        self._bits: Words = np.zeros((self._words, 256), dtype=np.uint64)
        self._numbers = np.zeros(256, dtype=np.int64)
        self._column: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._column)

    @property
    def bytes(self) -> int:
        """Memory taken by the arrays."""
        return self._bits.nbytes + self._numbers.nbytes

    def add(self, numbers: Sequence[int], vectors: NDArray[np.float32]) -> None:
        """Adds or replaces sketches; ``vectors`` has shape ``(len(numbers), dimension)``."""
        if not len(numbers):
            return
        sketches = self._sketch(vectors)
        for column, number in enumerate(numbers):
            place = self._column.setdefault(int(number), len(self._column))
            if place == len(self._numbers):
                self._bits = np.concatenate([self._bits, np.zeros_like(self._bits)], axis=1)
                self._numbers = np.concatenate([self._numbers, np.zeros_like(self._numbers)])
            self._bits[:, place] = sketches[:, column]
            self._numbers[place] = number

    def nearest(self, vector: Vector, limit: int) -> NDArray[np.int64]:
        """Numbers of the ``limit`` items whose sketches differ least from that of ``vector``, in no order."""
        n = len(self._column)
        if n <= limit:
            return np.array(self._numbers[:n])
        differing = _bits_set(self._bits[:, :n] ^ self._sketch(vector[None, :]))
        return np.asarray(self._numbers[np.argpartition(differing, limit)[:limit]])

    def _sketch(self, vectors: NDArray[np.float32]) -> Words:
        """Shape ``(words, n)``."""
        rows = vectors.astype(np.float32, copy=False)
        if self._mean is not None:
            lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
            rows = rows / lengths - self._mean.astype(np.float32)
        packed = np.packbits(rows > 0, axis=1)
        padded = np.zeros((len(rows), self._words * 8), dtype=np.uint8)
        padded[:, : packed.shape[1]] = packed
        return np.ascontiguousarray(padded.view(np.uint64).T)
