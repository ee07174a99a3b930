"""Finding by meaning: calibration, exact search, and a table that follows its rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory.vectors import VectorTable, calibrate, search


def unit(*values: float) -> np.ndarray:
    vector = np.array(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def test_the_nearest_come_first_with_cosine_and_calibrated_cosine() -> None:
    ids = ["same", "near", "far"]
    matrix = np.stack([unit(1, 0), unit(1, 1), unit(0, 1)])
    hits = search(ids, matrix, unit(1, 0))
    assert [hit.ref for hit in hits] == ["same", "near", "far"]
    assert hits[0].cosine == pytest.approx(1.0)
    assert hits[0].calibrated == pytest.approx(1.0)
    assert hits[1].calibrated == pytest.approx((np.sqrt(0.5) - 0.15) / 0.85, abs=1e-5)
    assert hits[2].calibrated == 0.0


def test_vectors_of_another_dimension_are_refused() -> None:
    with pytest.raises(ValueError, match="3 dimensions, the index 2"):
        search(["a"], np.stack([unit(1, 0)]), unit(1, 0, 0))


def test_nothing_is_found_in_nothing() -> None:
    assert search([], np.zeros((0, 2), dtype=np.float32), unit(1, 0)) == []
    assert search(["a"], np.stack([unit(1, 0)]), unit(1, 0), limit=0) == []


def test_the_background_of_a_store_is_taken_off() -> None:
    cosines = np.array([0.8] * 20 + [0.9], dtype=np.float32)
    calibrated = calibrate(cosines)
    assert calibrated[:20] == pytest.approx(0.0, abs=1e-6)
    assert calibrated[20] == pytest.approx(0.5, abs=1e-5)


def test_a_few_cosines_use_a_fixed_background() -> None:
    assert calibrate(np.array([0.15, 1.0], dtype=np.float32)) == pytest.approx([0.0, 1.0])
    assert calibrate(np.array([-0.5, 0.2], dtype=np.float32), background=-0.3) == pytest.approx([0.0, 0.2])


def test_a_table_finds_the_nearest_and_those_asked_for() -> None:
    table = VectorTable("model")
    table.put({"a": unit(1, 0), "b": unit(1, 1), "c": unit(0, 1)})
    assert set(table.search(unit(1, 0), 1)) == {"a"}
    assert set(table.search(unit(1, 0), 1, also=["c", "unknown"])) == {"a", "c"}
    assert set(table.search(unit(1, 0), 0, also=["c"])) == {"c"}
    assert table.search(unit(1, 0, 0), 3) == {}


def test_a_table_passes_over_vectors_of_another_size() -> None:
    table = VectorTable()
    table.put({"a": unit(1, 0)})
    table.put({"b": unit(1, 0, 0)})
    assert set(table.ids()) == {"a"}
    table.discard("a")
    table.put({"b": unit(1, 0, 0)})
    assert set(table.search(unit(1, 0, 0), 5)) == {"b"}


STEPS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.integers(0, 359)), max_size=200)


@settings(max_examples=80, deadline=None)
@given(STEPS, st.integers(0, 359))
def test_after_any_changes_a_table_equals_its_vectors(steps: list[tuple[str, int | None]], asked: int) -> None:
    def at(degrees: int) -> np.ndarray:
        return unit(np.cos(np.radians(degrees)), np.sin(np.radians(degrees)))

    table, kept = VectorTable(), {}
    for ref, degrees in steps:
        if degrees is None:
            kept.pop(ref, None)
            table.discard(ref)
        else:
            kept[ref] = at(degrees)
            table.put({ref: kept[ref]})
    hits = table.search(at(asked), 100)
    assert len(table) == len(kept)
    assert {ref: pytest.approx(float(vector @ at(asked)), abs=1e-5) for ref, vector in kept.items()} == {
        ref: hit.cosine for ref, hit in hits.items()
    }
