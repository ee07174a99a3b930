"""How much an item of the working memory is worth: the article's five terms, and two of our own beside them.

The formula and its constants are those of ``protoprompt`` 0.20 (its ``MemoryScorer``), which the article on working
memory documents::

    score = kind weight
          + ln(1 + references)
          + max(0, cosine(goal, item))
          + 0.7 · exp(-age / 12)
          - 0.6 · √tokens / 100

``age`` is the number of steps since the item was added, touched or last referred to. The constant 12 is an e-folding
time: after 12 steps freshness has fallen to 37 %, not to a half. Two terms are ours and are zero when switched off:

* ``calibration``: cosines of many embedders sit high even for unrelated text. The mean direction of everything embedded
  so far is taken off both vectors before they are compared; the term is the difference to the plain cosine.
* ``names``: a reference through a name that half of the items mention says little. The term is the difference between
  ``ln(1 + weighted references)`` and ``ln(1 + references)``; it is never positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.types import Vector

Floats = NDArray[np.float64]

KIND_WEIGHTS: dict[str, float] = {
    "edit": 3.0,
    "note": 2.5,
    "recalled": 2.0,
    "file": 1.5,
    "test_result": 1.0,
    "tool_output": 0.8,
    "log": 0.5,
}
"""What an item is worth by its nature alone; a kind that is not listed is worth :data:`UNKNOWN_KIND_WEIGHT`."""
UNKNOWN_KIND_WEIGHT = 1.0

IMPORTANT_KINDS = frozenset({"edit", "note", "recalled"})
"""Kinds that may come back from the cold zone while their cooldown still runs."""

TERM_NAMES = ("kind", "references", "goal", "freshness", "size", "calibration", "names")
"""The terms in the order in which :meth:`Scorer.terms` stacks and every view shows them."""

_FEWEST_SAMPLES = 8  # below this the mean direction is chance, and taking it off would be noise
_PRIOR_SAMPLES = 2  # the mean is shrunk towards zero as if this many vectors without a direction had been seen


def kind_weight(kind: str) -> float:
    """The weight of a kind of item, any case."""
    return KIND_WEIGHTS.get(kind, KIND_WEIGHTS.get(kind.casefold(), UNKNOWN_KIND_WEIGHT))


@dataclass(frozen=True, slots=True)
class Weights:
    """The factors of the formula. ``recency_steps`` is the e-folding time of freshness in steps; with
    ``ref_half_life`` (steps) the term of the references halves in that time after the last one, ``None`` keeps it."""

    kind: float = 1.0
    refs: float = 1.0
    semantic: float = 1.0
    recency: float = 0.7
    size: float = 0.6
    recency_steps: float = 12.0
    ref_half_life: float | None = None


@dataclass(frozen=True, slots=True)
class Scorer:
    """The formula over many items at once. All arrays have shape ``(n,)``; results are float64."""

    weights: Weights = Weights()

    def lasting(self, kinds: Floats, tokens: Floats, calibrated: Floats, weighted: Floats) -> Floats:
        """The part of the score that only changes when the item does: everything but freshness (and the references,
        when they fade). ``calibrated`` are the cosines after calibration, ``weighted`` the weighted references."""
        w = self.weights
        total = w.kind * kinds - w.size * np.sqrt(np.maximum(tokens, 0.0)) / 100.0
        total += w.semantic * np.maximum(calibrated, 0.0)
        if w.ref_half_life is None:
            total += w.refs * np.log1p(weighted)
        return np.asarray(total, dtype=np.float64)

    def lasting_one(self, kind: float, tokens: float, calibrated: float, weighted: float) -> float:
        """:meth:`lasting` of one item."""
        w = self.weights
        total = w.kind * kind - w.size * math.sqrt(max(tokens, 0.0)) / 100.0 + w.semantic * max(calibrated, 0.0)
        return total + (w.refs * math.log1p(weighted) if w.ref_half_life is None else 0.0)

    def passing(self, ages: Floats, weighted: Floats) -> Floats:
        """The part of the score that changes with every step. ``ages`` are steps, not negative."""
        w = self.weights
        total = ages / -w.recency_steps
        np.exp(total, out=total)
        total *= w.recency
        if w.ref_half_life is not None:
            total += w.refs * np.log1p(weighted) * 0.5 ** (ages / max(w.ref_half_life, 1e-9))
        return np.asarray(total, dtype=np.float64)

    def terms(
        self,
        kinds: Floats,
        references: Floats,
        ages: Floats,
        tokens: Floats,
        cosines: Floats,
        calibrated: Floats | None = None,
        weighted: Floats | None = None,
    ) -> Floats:
        """Every term of every item, shape ``(7, n)`` in the order of :data:`TERM_NAMES`; columns add up to the score.

        ``cosines`` are plain cosines with the goal, 0 where either vector is missing. Without ``calibrated`` and
        ``weighted`` the last two terms are zero and the sum is the article's.
        """
        w = self.weights
        ages = np.maximum(ages, 0.0)
        fading = 1.0 if w.ref_half_life is None else 0.5 ** (ages / max(w.ref_half_life, 1e-9))
        refs = w.refs * np.log1p(references) * fading
        goal = w.semantic * np.maximum(cosines, 0.0)
        zero = np.zeros_like(goal)
        return np.vstack(
            [
                w.kind * kinds,
                refs,
                goal,
                w.recency * np.exp(-ages / w.recency_steps),
                -w.size * np.sqrt(np.maximum(tokens, 0.0)) / 100.0,
                zero if calibrated is None else w.semantic * np.maximum(calibrated, 0.0) - goal,
                zero if weighted is None else w.refs * np.log1p(weighted) * fading - refs,
            ]
        )

    def explain(
        self,
        *,
        kind: str,
        references: int = 0,
        age: int = 0,
        tokens: int = 0,
        vector: Vector | None = None,
        goal: Vector | None = None,
    ) -> dict[str, float]:
        """The article's five terms of one item by name, and their ``total``."""
        found = self.terms(
            np.array([kind_weight(kind)]),
            np.array([float(references)]),
            np.array([float(age)]),
            np.array([float(tokens)]),
            np.array([cosine(vector, goal)]),
        )[:5, 0]
        named = dict(zip(TERM_NAMES, map(float, found), strict=False))
        named["total"] = float(found.sum())
        return named


def cosine(left: Vector | None, right: Vector | None) -> float:
    """Cosine of two vectors in float64; 0 when one is missing or zero, or when their dimensions differ (vectors of two
    models say nothing about each other)."""
    if left is None or right is None or left.shape != right.shape:
        return 0.0
    a, b = left.astype(np.float64), right.astype(np.float64)
    norms = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return float(a @ b) / norms if norms else 0.0


def cosines(matrix: NDArray[np.float32], vector: Vector) -> Floats:
    """Cosines of the rows of ``matrix``, shape ``(n, dimension)``, with ``vector``, in float64; 0 for zero rows."""
    found = np.zeros(len(matrix), dtype=np.float64)
    target = vector.astype(np.float64)
    length = math.sqrt(float(target @ target))
    if not length:
        return found
    for start in range(0, len(matrix), 1024):  # in pieces, so that the float64 copy stays small
        rows = matrix[start : start + 1024].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * length
        np.divide(rows @ target, norms, out=found[start : start + 1024], where=norms > 0)
    return found


class Calibration:
    """The mean direction of what one embedder has embedded, and cosines with it taken off.

    ``mean`` has shape ``(dimension,)`` or is ``None`` while too few vectors were seen. It is a snapshot: it moves only
    when the number of vectors has grown by a quarter, so that scores stay comparable in between and whoever caches
    cosines knows by ``version`` when to compute them again.
    """

    def __init__(self, total: Floats | None = None, count: int = 0) -> None:
        self.total = total
        self.count = count
        self.mean: Floats | None = None
        self.version = 0
        self._taken = 0
        self._refresh()

    def add(self, vector: Vector) -> bool:
        """Counts one more unit vector; true when the snapshot moved."""
        if self.total is None or self.total.shape != vector.shape:
            self.total, self.count, self._taken = np.zeros(vector.shape, dtype=np.float64), 0, 0
        self.total += vector
        self.count += 1
        return self._refresh()

    def _refresh(self) -> bool:
        if self.total is None or self.count < max(_FEWEST_SAMPLES, self._taken * 5 // 4):
            return False
        self.mean = self.total / (self.count + _PRIOR_SAMPLES)
        self._taken = self.count
        self.version += 1
        return True

    @property
    def level(self) -> float:
        """How alike two arbitrary texts look to this embedder, 0 … 1 (the squared length of the mean direction)."""
        return float(self.mean @ self.mean) if self.mean is not None else 0.0

    def of_units(
        self, matrix: NDArray[np.float32], vector: Vector, with_centre: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Plain and calibrated cosines of unit vectors, shape ``(n, dimension)``, with a unit vector, in float32. Zero
        rows give 0. The centred vectors are never made: what is needed follows from two products, of which that of
        the matrix ``with_centre`` may be given (see :meth:`along`)."""
        mean = self.mean
        if mean is None or mean.shape != vector.shape:
            plain = matrix @ vector
            return plain, plain
        centre = mean.astype(np.float32)
        if with_centre is None:
            plain, with_centre = (matrix @ np.stack([vector, centre], axis=1)).T
        else:
            plain = matrix @ vector
        square, of_vector = float(centre @ centre), float(vector @ centre)
        lengths = np.sqrt(np.maximum(1 - 2 * with_centre + square, 1e-9))
        lengths *= math.sqrt(max(1 - 2 * of_vector + square, 1e-9))
        calibrated = (plain - with_centre - of_vector + square) / lengths
        return plain, np.where((plain == 0) & (with_centre == 0), np.float32(0), calibrated)

    def along(self, matrix: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """How far each row of ``matrix`` goes along the mean direction, shape ``(n,)``; ``None`` without one."""
        mean = self.mean
        return matrix @ mean.astype(np.float32) if mean is not None and len(mean) == matrix.shape[1] else None

    def cosine(self, vector: Vector, other: Vector) -> float:
        """The calibrated cosine of two vectors of any length, in float64."""
        return Comparison(other, self).cosines(vector)[1]


class Comparison:
    """One vector, the goal, made ready for being compared with many one by one; a snapshot of the calibration."""

    def __init__(self, vector: Vector, calibration: Calibration | None) -> None:
        self._vector = vector.astype(np.float64)
        self._length = math.sqrt(float(self._vector @ self._vector))
        mean = calibration.mean if calibration is not None else None
        self._mean = mean if mean is not None and mean.shape == vector.shape else None
        if self._mean is not None and self._length:
            self._square = float(self._mean @ self._mean)
            self._with_mean = float(self._vector @ self._mean) / self._length
            self._centred = math.sqrt(max(1 - 2 * self._with_mean + self._square, 0.0))

    def cosines(self, vector: Vector) -> tuple[float, float]:
        """The plain and the calibrated cosine with ``vector``, in float64; the same where there is no calibration."""
        if vector.shape != self._vector.shape or not self._length:
            return 0.0, 0.0
        other = vector.astype(np.float64)
        length = math.sqrt(float(other @ other))
        if not length:
            return 0.0, 0.0
        plain = float(other @ self._vector) / (length * self._length)
        if self._mean is None:
            return plain, plain
        with_mean = float(other @ self._mean) / length
        norms = math.sqrt(max(1 - 2 * with_mean + self._square, 0.0)) * self._centred
        return plain, (plain - with_mean - self._with_mean + self._square) / norms if norms > 1e-9 else 0.0
