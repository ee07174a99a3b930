"""Finding by meaning: exact search over vectors that are kept in SQLite, with a copy in memory that follows them.

Vectors are compared only inside one index identity. Cosines are calibrated against the query's own background (the
median over the store), because embedders give unrelated texts anything from 0.0 to 0.8.

Up to some thousands of vectors all are compared. Of more, sketches of one bit per dimension name some hundreds that
may be near, whose cosines are computed exactly, and the background is that of every so-manieth vector: to read all of
50,000 vectors takes 100 MB through the processor, for each question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.sketches import Sketches
from tui_agent.memory.types import Vector

_FEW = 8
_FLOOR = 0.15
_ALL = 4096  # vectors up to which every one is compared
_CLOSE = 384  # of more, those whose sketches are nearest: 99.4 % of the best ten of 10,000 texts (built-in embedder)
_SAMPLE = 256  # of which the background is taken
_SAMPLE_CHANGES = 64
_AT_ONCE = 4096  # vectors sketched in one go


class VectorHit(NamedTuple):
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
        background = _background(cosines)
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
        # By row. What is left in it behind the last row stays until the row is used again.
        self._sketches: Sketches | None = None
        self._sketched = 0  # how many there were when the sketches were made, with the mean of that time
        self._changes = 0
        self._block: tuple[int, int, NDArray[np.float32]] = (0, 0, self._matrix)
        self._room = self._matrix
        self._not_held: tuple[int, Collection[str], list[int]] = (-1, (), [])

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, ref: object) -> bool:
        return ref in self._row

    def ids(self) -> Set[str]:
        """The ids that have a vector."""
        return self._row.keys()

    def put(self, vectors: Mapping[str, Vector], room: int = 0) -> None:
        """Add or replace vectors. The first one decides the dimension; others of another size are passed over. ``room``
        is how many there will be in all, where that is known."""
        fresh = [ref for ref in vectors if ref not in self._row]
        if not self._ids:
            size = next((len(vector) for vector in vectors.values()), 0)
            # With some rows to spare, so that the next facts need no copy of the whole; unused rows cost no memory.
            self._matrix = np.zeros((max(64, max(len(fresh), room) * 9 // 8), size), dtype=np.float32)
        needed = len(self._ids) + len(fresh)
        if needed > len(self._matrix):
            grown = np.zeros((max(needed, len(self._matrix) * 5 // 4), self._matrix.shape[1]), dtype=np.float32)
            grown[: len(self._ids)] = self._matrix[: len(self._ids)]
            self._matrix = grown
        changed = []
        for ref, vector in vectors.items():
            if len(vector) != self._matrix.shape[1]:
                continue
            row = self._row.get(ref)
            if row is None:
                row = self._row[ref] = len(self._ids)
                self._ids.append(ref)
            self._matrix[row] = vector
            changed.append(row)
        self._changes += 1
        self._sketch(changed)

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
            self._sketch([row])
        self._matrix[len(self._ids)] = 0.0
        self._changes += 1

    def _sketch(self, rows: list[int]) -> None:
        """Bring the sketches of ``rows`` up to date; all are made anew with a better mean as their number doubles."""
        count = len(self._ids)
        if count <= _ALL and self._sketches is None:
            return  # once made they are kept up to date in a smaller table too, which may grow again
        if self._sketches is None or count >= 2 * self._sketched:
            mean = self._sample().mean(axis=0, dtype=np.float64)
            self._sketches, self._sketched, rows = Sketches(self._matrix.shape[1], mean), count, list(range(count))
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            self._sketches.add(part, self._matrix[part])

    def _sample(self) -> NDArray[np.float32]:
        """Vectors from all over the table, at most about :data:`_SAMPLE` and a half more, as one block. A few changes
        of the table move no background, so the block is made anew only after many."""
        count = len(self._ids)
        changes, held, block = self._block
        if self._changes - changes > _SAMPLE_CHANGES or abs(count - held) > held // 16:
            block = np.ascontiguousarray(self._matrix[: count : max(1, count // _SAMPLE)])
            self._block = (self._changes, count, block)
        return block

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
        query = query.astype(np.float32, copy=False)
        rows, background = self._candidates(query, limit, near)
        wanted = min(max(0, limit), len(rows))
        cosines = self._taken(rows) @ query if len(rows) < count else self._matrix[:count] @ query
        if background is None:
            background = _background(cosines if len(rows) == count else self._matrix[:count] @ query)
        nearest = np.argpartition(-cosines, wanted - 1)[:wanted] if wanted else np.zeros(0, dtype=np.int64)
        more = [row for ref in also if (row := self._row.get(ref)) is not None]
        chosen = np.concatenate([rows[nearest], np.array(more, dtype=np.int64)])
        values = np.concatenate([cosines[nearest], self._matrix[more] @ query])
        above = calibrate(values, background)
        return {
            self._ids[row]: VectorHit(self._ids[row], cosine, calibrated)
            for row, cosine, calibrated in zip(chosen.tolist(), values.tolist(), above.tolist(), strict=True)
        }

    def _taken(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """These rows, in room that is used again: to get 2 MB anew for each question takes as long as to fill them."""
        if len(self._room) < len(rows) or self._room.shape[1] != self._matrix.shape[1]:
            self._room = np.empty((len(rows), self._matrix.shape[1]), dtype=np.float32)
        taken = self._room[: len(rows)]
        np.take(self._matrix, rows, axis=0, out=taken, mode="clip")
        return taken

    def _candidates(self, query: Vector, limit: int, near: Neighbours | None) -> tuple[NDArray[np.int64], float | None]:
        """Rows that may be near, and the background where it was taken from a part of the table."""
        count = len(self._ids)
        few = count <= _ALL or self._sketches is None
        background = None if few else _background(self._sample() @ query)
        if near is not None:
            named = [row for ref in near.named if (row := self._row.get(ref)) is not None]
            return np.unique(np.array([*named, *self._rows_not_held(near.held)], dtype=np.int64)), background
        if few:
            return np.arange(count), background
        assert self._sketches is not None
        rows = self._sketches.nearest(query, max(_CLOSE, 4 * limit))
        return rows[rows < count], background

    def _rows_not_held(self, held: Collection[str]) -> list[int]:
        """Rows that an index does not hold; it is asked with the same collection again and again."""
        if self._not_held[0] != self._changes or self._not_held[1] is not held:
            missing = self._row.keys() - held  # at once; 10,000 looks one by one are felt
            self._not_held = (self._changes, held, sorted(self._row[ref] for ref in missing))
        return self._not_held[2]


def _background(cosines: NDArray[np.float32]) -> float:
    return median(cosines) if len(cosines) >= _FEW else _FLOOR


def median(values: NDArray[np.float32]) -> float:
    """The median of some values; what ``np.median`` does besides takes longer than to find it."""
    middle = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, middle)[middle])
    parted = np.partition(values, (middle - 1, middle))
    return float((parted[middle - 1] + parted[middle]) / 2)
