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


def test_a_table_that_shrinks_changes_and_grows_again_finds_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.memory.vectors._ALL", 100)
    monkeypatch.setattr("tui_agent.memory.vectors._CLOSE", 30)
    numbers = np.random.default_rng(4)

    def fresh(*names: str) -> dict[str, np.ndarray]:
        rows = numbers.normal(size=(len(names), 128)).astype(np.float32)
        return dict(zip(names, rows / np.linalg.norm(rows, axis=1, keepdims=True), strict=True))

    table, known = VectorTable("x"), fresh(*(f"f{n}" for n in range(120)))
    table.put(known)
    for n in range(40):
        table.discard(f"f{n}")
        del known[f"f{n}"]
    for changed in (fresh(*(f"f{n}" for n in range(60, 90))), fresh(*(f"g{n}" for n in range(60)))):
        known |= changed
        table.put(changed)
    assert all(next(iter(table.search(vector, 1))) == ref for ref, vector in known.items())


def test_of_many_vectors_the_nearest_are_found_as_if_all_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.memory.vectors._ALL", 200)
    monkeypatch.setattr("tui_agent.memory.vectors._CLOSE", 400)
    numbers = np.random.default_rng(3)
    topics = np.repeat(numbers.normal(size=(300, 128)), 10, axis=0)
    rows = (topics + 0.5 * numbers.normal(size=(3000, 128)) + 0.5).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    table, known = VectorTable("x"), {f"f{n}": row for n, row in enumerate(rows)}
    for start in range(0, 3000, 500):  # the sketches grow with the table
        table.put({ref: known[ref] for ref in list(known)[start : start + 500]})
    for ref in list(known)[::7]:
        table.discard(ref)
        del known[ref]
    matrix, ids = np.stack(list(known.values())), list(known)
    for _ in range(20):
        near = known[ids[int(numbers.integers(len(ids)))]] + 0.02 * numbers.normal(size=128)
        query = np.asarray(near / np.linalg.norm(near), dtype=np.float32)
        exact = {hit.ref: hit for hit in search(ids, matrix, query, 10)}
        found = table.search(query, 10, also=[ids[0]])
        assert len(exact.keys() & found.keys()) >= 9
        assert ids[0] in found
        best = next(iter(exact))
        assert found[best].cosine == pytest.approx(exact[best].cosine, abs=1e-5)
        assert found[best].calibrated == pytest.approx(exact[best].calibrated, abs=0.03)


def test_the_background_of_a_large_table_follows_it_while_it_grows_in_parts() -> None:
    rng = np.random.default_rng(5)

    def rows(count: int, towards: float, start: int) -> dict[str, np.ndarray]:
        made = rng.normal(size=(count, 16)).astype(np.float32)
        made[:, 0] += towards
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return {f"f{start + n}": row for n, row in enumerate(made)}

    table, query = VectorTable("x"), unit(1, *[0] * 15)
    known: dict[str, np.ndarray] = {}
    for start in range(0, 24_000, 1_000):
        part = rows(1_000, -4.0 if start < 6_000 else 4.0, start)
        table.put(part, 24_000)
        known |= part
        table.search(query, 5)
    hit = next(iter(table.search(query, 1).values()))
    exact = calibrate(
        np.array([hit.cosine], dtype=np.float32), float(np.median(np.stack(list(known.values())) @ query))
    )
    assert hit.calibrated == pytest.approx(float(exact[0]), abs=0.05)
