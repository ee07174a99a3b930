"""Which items leave when the budget is full: the set whose loss costs least, not simply one weakest after another.

Going strictly by score throws away ten useful small items to make room that one large weak one would have given. Here
the candidates are compared as sets: the plain order of scores, the order of score per token, and single items. With
items of one size all three are the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.scoring import Floats

_LEAST_VALUE = 1e-3  # an item is never worth nothing, else a free ride would always beat a good choice
_TRIED = 48  # candidates looked at for the exact choice
_EXACT_NEED = 4096  # tokens up to which the exact choice is computed


def cheapest_cover(values: Floats, costs: NDArray[np.int64], need: int) -> list[int]:
    """Positions of items to give up so that at least ``need`` tokens are freed and the least value is lost.

    ``values`` are scores, ``costs`` tokens, both of shape ``(n,)``; items that must stay are not in them. When all of
    them together free less than ``need``, all are returned. The order is weakest first.
    """
    if need <= 0 or not len(costs):
        return []
    if int(costs.sum()) <= need:
        return [int(i) for i in np.argsort(values, kind="stable")]
    worth = np.maximum(values, _LEAST_VALUE)
    weakest = int(np.argmin(worth))
    if costs[weakest] >= need:  # nothing can cost less than the weakest item alone
        return [weakest]
    single = _single(worth, costs, need)
    if single and worth[single[0]] <= np.partition(worth, 1)[:2].sum():  # the least that any two items cost
        return single
    best: list[int] = []
    least = np.inf
    for candidate in (
        single,
        _prefix(np.argsort(worth, kind="stable"), costs, need),
        _prefix(np.argsort(worth / np.maximum(costs, 1), kind="stable"), costs, need),
        _exact(worth, costs, need),
    ):
        if candidate:
            kept = _without_needless(candidate, worth, costs, need)
            lost = float(worth[kept].sum())
            if lost < least - 1e-12:
                best, least = kept, lost
    return sorted(best, key=lambda i: (float(values[i]), i))


def _prefix(order: NDArray[np.int64], costs: NDArray[np.int64], need: int) -> list[int]:
    """The first items of ``order`` that together free ``need``."""
    freed = np.cumsum(costs[order])
    return [int(i) for i in order[: int(np.searchsorted(freed, need)) + 1]]


def _single(worth: Floats, costs: NDArray[np.int64], need: int) -> list[int]:
    enough = np.flatnonzero(costs >= need)
    return [int(enough[np.argmin(worth[enough])])] if len(enough) else []


def _exact(worth: Floats, costs: NDArray[np.int64], need: int) -> list[int]:
    """The best set among the most likely candidates, by dynamic programming over the tokens still to be freed."""
    if need > _EXACT_NEED:
        return []
    order = np.argsort(worth / np.minimum(np.maximum(costs, 1), need), kind="stable")[:_TRIED]
    if int(costs[order].sum()) < need:
        return []
    least = np.full(need + 1, np.inf)  # least[t]: value lost to free at least t tokens
    least[0] = 0.0
    taken = np.zeros((len(order), need + 1), dtype=bool)
    with_item = np.empty(need + 1)
    for row, item in enumerate(order):
        cost = min(int(costs[item]), need)
        with_item[:cost] = worth[item]
        with_item[cost:] = least[: need + 1 - cost] + worth[item]
        np.less(with_item, least, out=taken[row])
        np.minimum(least, with_item, out=least)
    chosen: list[int] = []
    left = need
    for row in range(len(order) - 1, -1, -1):
        if left > 0 and taken[row, left]:
            chosen.append(int(order[row]))
            left = max(0, left - int(costs[order[row]]))
    return chosen


def _without_needless(chosen: list[int], worth: Floats, costs: NDArray[np.int64], need: int) -> list[int]:
    """``chosen`` without the items that the others make needless, the most valuable first."""
    spare = int(costs[chosen].sum()) - need
    kept = list(chosen)
    for item in sorted(chosen, key=lambda i: -float(worth[i])):
        if costs[item] <= spare:
            kept.remove(item)
            spare -= int(costs[item])
    return kept
