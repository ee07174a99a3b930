"""Finding by meaning: exact search over vectors that are kept in SQLite, with a copy in memory that follows them.

Vectors are compared only inside one index identity. Cosines are calibrated against the query's own background (the
median over the store), because embedders give unrelated texts anything from 0.0 to 0.8.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.types import Vector

_FEW = 8
_FLOOR = 0.15


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A document found by meaning: ``cosine`` as computed, ``calibrated`` 0..1 above the background."""

    ref: str
    cosine: float
    calibrated: float


@dataclass(frozen=True, slots=True)
class Neighbours:
    """What a vector index answered: the ids it named as nearest, of all those it holds."""

    named: Collection[str]
    held: Collection[str]


def calibrate(cosines: NDArray[np.float32], background: float | None = None) -> NDArray[np.float32]:
    """Cosines above their background, scaled so that 1 stays 1 and the background is 0; never negative.

    With fewer than 8 documents their median says nothing, so a fixed floor of 0.15 is used.
    """
    if background is None:
        background = float(np.median(cosines)) if len(cosines) >= _FEW else _FLOOR
    background = min(max(background, 0.0), 0.95)
    return np.asarray(np.clip((cosines - background) / (1.0 - background), 0.0, 1.0), dtype=np.float32)


def search(
    ids: Sequence[str], matrix: NDArray[np.float32], query: Vector, limit: int = 50, background: float | None = None
) -> list[VectorHit]:
    """Nearest documents, best first. ``matrix`` has one L2-normalised row per id, shape ``(len(ids), d)``.

    Raises:
        ValueError: the dimensions differ; vectors of two embedders must never be compared.
    """
    if not len(ids) or limit < 1:
        return []
    if matrix.shape[1] != query.shape[0]:
        raise ValueError(f"The query has {query.shape[0]} dimensions, the index {matrix.shape[1]}.")
    cosines = matrix @ query
    calibrated = calibrate(cosines, background)
    count = min(limit, len(ids))
    nearest = np.argpartition(-cosines, count - 1)[:count]
    nearest = nearest[np.argsort(-cosines[nearest], kind="stable")]
    return [VectorHit(ids[int(n)], float(cosines[n]), float(calibrated[n])) for n in nearest]


class VectorTable:
    """Vectors of one identity by id, as rows of one matrix that is searched whole. Not thread-safe."""

    def __init__(self, identity: str = "") -> None:
        self.identity = identity
        self._matrix: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._ids: list[str] = []
        self._row: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, ref: object) -> bool:
        return ref in self._row

    def ids(self) -> Set[str]:
        """The ids that have a vector."""
        return self._row.keys()

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Add or replace vectors. The first one decides the dimension; others of another size are passed over."""
        fresh = [ref for ref in vectors if ref not in self._row]
        if not self._ids:
            size = next((len(vector) for vector in vectors.values()), 0)
            # With some rows to spare, so that the next facts need no copy of the whole; unused rows cost no memory.
            self._matrix = np.zeros((max(64, len(fresh) * 9 // 8), size), dtype=np.float32)
        needed = len(self._ids) + len(fresh)
        if needed > len(self._matrix):
            grown = np.zeros((max(needed, len(self._matrix) * 5 // 4), self._matrix.shape[1]), dtype=np.float32)
            grown[: len(self._ids)] = self._matrix[: len(self._ids)]
            self._matrix = grown
        for ref, vector in vectors.items():
            if len(vector) != self._matrix.shape[1]:
                continue
            row = self._row.get(ref)
            if row is None:
                row = self._row[ref] = len(self._ids)
                self._ids.append(ref)
            self._matrix[row] = vector

    def discard(self, ref: str) -> None:
        """Take a vector out; the last row moves into its place."""
        row = self._row.pop(ref, None)
        if row is None:
            return
        last = self._ids.pop()
        if last != ref:
            self._ids[row] = last
            self._row[last] = row
            self._matrix[row] = self._matrix[len(self._ids)]
        self._matrix[len(self._ids)] = 0.0

    def search(
        self, query: Vector, limit: int, also: Collection[str] = (), near: Neighbours | None = None
    ) -> dict[str, VectorHit]:
        """The nearest ``limit`` ids and those of ``also``, with their cosines; nothing when the dimension differs.

        Where an index has named ``near`` ones, no other of the ids it holds is a candidate. How near each is is always
        computed here, so that a score does not depend on whether the index was asked.
        """
        count = len(self._ids)
        if not count or len(query) != self._matrix.shape[1]:
            return {}
        cosines = self._matrix[:count] @ query.astype(np.float32, copy=False)
        calibrated = calibrate(cosines)
        chosen = cosines if near is None else self._only(cosines, near)
        wanted = min(max(0, limit), count)
        rows = np.argpartition(-chosen, wanted - 1)[:wanted].tolist() if wanted else []
        rows = [row for row in rows if chosen[row] > -np.inf]
        rows += [self._row[ref] for ref in also if ref in self._row]
        return {self._ids[n]: VectorHit(self._ids[n], float(cosines[n]), float(calibrated[n])) for n in rows}

    def _only(self, cosines: NDArray[np.float32], near: Neighbours) -> NDArray[np.float32]:
        """The cosines of what the index named and of what it does not hold; the others count as infinitely far."""
        passed_over = [row for ref, row in self._row.items() if ref in near.held and ref not in near.named]
        chosen: NDArray[np.float32] = cosines.copy()
        chosen[passed_over] = -np.inf
        return chosen
