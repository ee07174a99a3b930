"""Which items leave when the budget is full."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory.packing import cheapest_cover


def lost(values, positions):
    return sum(max(values[i], 1e-3) for i in positions)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.floats(0.05, 4), st.integers(1, 40)), min_size=1, max_size=9), st.integers(1, 120))
def test_no_other_set_would_lose_less(items, need):
    values, costs = np.array([v for v, _ in items]), np.array([c for _, c in items])
    found = cheapest_cover(values, costs, need)
    assert len(set(found)) == len(found)
    if costs.sum() <= need:
        assert sorted(found) == list(range(len(items)))
        return
    assert costs[found].sum() >= need
    others = (
        subset
        for size in range(1, len(items) + 1)
        for subset in itertools.combinations(range(len(items)), size)
        if costs[list(subset)].sum() >= need
    )
    assert lost(values, found) <= min(lost(values, subset) for subset in others) + 1e-9


def test_items_of_one_size_leave_by_score_alone():
    values = np.array([3.0, 0.5, 2.0, 1.0])
    assert cheapest_cover(values, np.full(4, 50), 100) == [1, 3]


def test_one_large_weak_item_leaves_before_ten_small_useful_ones():
    values = np.array([1.5, *[1.2] * 10])
    costs = np.array([1000, *[100] * 10])
    assert cheapest_cover(values, costs, 900) == [0]


def test_nothing_leaves_when_nothing_is_needed():
    assert cheapest_cover(np.array([1.0]), np.array([5]), 0) == []
    assert cheapest_cover(np.array([]), np.array([], dtype=np.int64), 10) == []


def test_a_negative_score_is_the_first_to_leave():
    assert cheapest_cover(np.array([-0.4, 0.2, 3.0]), np.array([10, 10, 10]), 10) == [0]
