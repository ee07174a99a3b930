"""The article's weighting of what a vector search found: similarity by importance, minus a penalty for age."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DEFAULT_IMPORTANCE = 5


@dataclass(frozen=True, slots=True)
class Weighed:
    """A document found by vectors. ``distance`` is the cosine distance (0 is the same), ``timestamp`` seconds since
    the epoch, of the last confirmation, so that an old rule that was confirmed counts as new."""

    document: str
    distance: float
    importance: float = DEFAULT_IMPORTANCE
    timestamp: float = 0.0


def weighted_score(distance: float, importance: float, age_days: float, recency_days: float = 90.0) -> float:
    """``(1 - distance) · importance / 10 - 0.2 · max(0, age / recency_days)``.

    ``1 - distance`` is a similarity only in cosine space. A time in the future is no bonus. The penalty has no bound:
    after 450 days it is a whole point.
    """
    penalty = max(0.0, age_days / recency_days)
    return (1.0 - distance) * importance / 10.0 - penalty * 0.2


def rank_weighted(
    candidates: Iterable[Weighed], now: float, top_k: int = 5, recency_days: float = 90.0
) -> list[tuple[float, str]]:
    """The ``top_k`` best of ``candidates`` (the article takes the nearest ``3 · top_k``), each with its score; ``now``
    in seconds since the epoch. Equal scores keep their order."""
    scored = [
        (weighted_score(c.distance, c.importance, (now - c.timestamp) / 86400.0, recency_days), c.document)
        for c in candidates
    ]
    scored.sort(key=lambda pair: -pair[0])
    return scored[: max(0, top_k)]
