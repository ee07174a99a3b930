"""The score: the article's five terms to the last digit, and the two of our own beside them."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest

from tui_agent.memory.hot import HotZone, Item
from tui_agent.memory.scoring import (
    KIND_WEIGHTS,
    TERM_NAMES,
    Calibration,
    Scorer,
    Weights,
    cosine,
    cosines,
    kind_weight,
)

KINDS = [*KIND_WEIGHTS, "something else"]


def unit(values):
    vector = np.asarray(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def test_the_weights_of_kinds_are_those_of_the_article():
    assert KIND_WEIGHTS == {
        "edit": 3.0,
        "note": 2.5,
        "recalled": 2.0,
        "file": 1.5,
        "test_result": 1.0,
        "tool_output": 0.8,
        "log": 0.5,
    }
    assert kind_weight("unheard of") == 1.0
    assert kind_weight("EDIT") == 3.0


def test_the_five_terms_of_a_worked_example():
    goal, vector = unit([1, 0, 0]), unit([3, 4, 0])
    found = Scorer().explain(kind="file", references=3, age=12, tokens=400, vector=vector, goal=goal)
    assert found["kind"] == 1.5
    assert found["references"] == pytest.approx(math.log(4))
    assert found["goal"] == pytest.approx(0.6, abs=1e-7)
    assert found["freshness"] == pytest.approx(0.7 / math.e)
    assert found["size"] == pytest.approx(-0.6 * 20 / 100)
    assert found["total"] == pytest.approx(sum(found[name] for name in TERM_NAMES[:5]))


def test_without_a_goal_or_a_vector_the_meaning_is_zero():
    vector = unit([1, 2])
    assert Scorer().explain(kind="log", vector=vector)["goal"] == 0
    assert Scorer().explain(kind="log", goal=vector)["goal"] == 0


def test_an_opposite_meaning_is_not_a_penalty():
    vector = unit([1, 2])
    assert Scorer().explain(kind="log", vector=vector, goal=-vector)["goal"] == 0


def test_references_fade_only_when_a_half_life_is_set():
    fading = Scorer(Weights(ref_half_life=5.0))
    assert fading.explain(kind="log", references=4, age=10)["references"] == pytest.approx(math.log(5) / 4)
    assert Scorer().explain(kind="log", references=4, age=10)["references"] == pytest.approx(math.log(5))


@pytest.mark.parametrize("half_life", [None, 6.0])
def test_the_zone_scores_what_its_terms_add_up_to(half_life):
    numbers = np.random.default_rng(3)
    zone = HotZone(Scorer(Weights(ref_half_life=half_life)), calibrate=True, weigh_names=True)
    for step in range(80):
        vector = unit(numbers.normal(size=16) + 1)
        item = Item(
            f"i{step}",
            KINDS[step % 8],
            "x",
            size=step * 7,
            cost=9,
            birth=step,
            references=step % 4,
            weighted=(step % 4) / 2,
            vector=vector if step % 5 else None,
        )
        zone.calibration.add(vector)
        zone.add(item)
        zone.refresh()
    zone.set_goal(unit(numbers.normal(size=16)))
    for number in (3, 70, 12):
        zone.remove(zone.items[f"i{number}"])
    scores, terms = zone.scores(100), zone.terms(100)
    assert len(scores) == len(terms) == 77
    for item in zone.items.values():
        assert sum(term.value for term in terms[item.id]) == pytest.approx(scores[item.row], abs=1e-6)
        assert [term.name for term in terms[item.id]] == list(TERM_NAMES)


def test_vectors_of_different_length_are_not_compared():
    assert cosine(unit([1, 2, 3]), unit([1, 2, 3, 4, 5])) == 0


def test_the_cosine_of_a_zero_vector_is_zero():
    assert cosine(np.zeros(3, np.float32), unit([1, 2, 3])) == 0
    assert list(cosines(np.zeros((2, 3), np.float32), unit([1, 2, 3]))) == [0, 0]


def test_calibration_takes_the_common_direction_off():
    numbers = np.random.default_rng(1)
    common = numbers.normal(size=64) * 2
    topics = numbers.normal(size=(6, 64))

    def text(topic):
        return unit(common + topics[topic] + 0.4 * numbers.normal(size=64))

    calibration = Calibration()
    for number in range(120):
        calibration.add(text(number % 6))
    related, unrelated = (text(1), text(1)), (text(1), text(4))
    assert cosine(*unrelated) > 0.5, "as with real embedders, unrelated texts look alike"
    assert calibration.cosine(*unrelated) < 0.2
    assert calibration.cosine(*related) > 0.6
    assert 0.5 < calibration.level < 1


def test_calibration_waits_for_enough_vectors_and_then_moves_in_jumps():
    calibration = Calibration()
    moves = [calibration.add(unit(np.random.default_rng(number).normal(size=8))) for number in range(40)]
    assert not any(moves[:7])
    assert moves[7]
    assert sum(moves) < 12
    assert calibration.version == sum(moves)


def test_calibrated_cosines_agree_one_by_one_and_all_at_once():
    numbers = np.random.default_rng(5)
    rows = np.stack([unit(numbers.normal(size=32) + 0.5) for _ in range(50)] + [np.zeros(32, np.float32)])
    calibration = Calibration()
    for row in rows[:50]:
        calibration.add(row)
    goal = unit(numbers.normal(size=32) + 0.5)
    plain, calibrated = calibration.of_units(rows.astype(np.float32), goal)
    assert plain == pytest.approx(cosines(rows, goal), abs=1e-6)
    assert calibrated[:50] == pytest.approx([calibration.cosine(row, goal) for row in rows[:50]], abs=1e-5)
    assert calibrated[50] == 0


def test_names_that_everybody_mentions_weigh_less_but_never_add():
    scorer = Scorer()
    ones = np.ones(1)
    full = scorer.terms(ones, 3 * ones, 0 * ones, 0 * ones, 0 * ones, weighted=3 * ones)
    common = scorer.terms(ones, 3 * ones, 0 * ones, 0 * ones, 0 * ones, weighted=0.5 * ones)
    assert full[6, 0] == 0
    assert common[6, 0] == pytest.approx(math.log1p(0.5) - math.log1p(3))


def test_scores_equal_the_reference_on_random_items():
    """The pure scorer beside ``protoprompt.memory.MemoryScorer``: terms to 1e-9, order wherever totals differ."""
    reference = pytest.importorskip("protoprompt.memory")
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    numbers = np.random.default_rng(seed)
    scorer, oracle = Scorer(), reference.MemoryScorer()
    for _ in range(10_000):
        count, dimension = int(numbers.integers(1, 9)), int(numbers.choice([3, 16]))
        now = int(numbers.integers(0, 200))
        has_goal = numbers.random() < 0.8
        goal = numbers.normal(size=dimension).astype(np.float32) if has_goal else None
        items = [
            {
                "kind": KINDS[int(numbers.integers(len(KINDS)))],
                "references": int(numbers.integers(0, 12)),
                "birth": int(numbers.integers(0, 220)),
                "touched": int(numbers.integers(-1, 220)),
                "tokens": int(numbers.integers(0, 5000)),
                "vector": numbers.normal(size=dimension).astype(np.float32) if numbers.random() < 0.8 else None,
            }
            for _ in range(count)
        ]
        ours = scorer.terms(
            np.array([kind_weight(item["kind"]) for item in items]),
            np.array([float(item["references"]) for item in items]),
            np.array([float(now - max(item["birth"], item["touched"])) for item in items]),
            np.array([float(item["tokens"]) for item in items]),
            np.array([cosine(item["vector"], goal) for item in items]),
        )
        theirs = []
        for item in items:
            shape = SimpleNamespace(
                kind_weight=kind_weight(item["kind"]),
                refcount=item["references"],
                last_touched=item["touched"],
                step=item["birth"],
                tokens=item["tokens"],
                vector=None if item["vector"] is None else item["vector"].tolist(),
            )
            theirs.append(oracle.explain(shape, now=now, goal_vector=None if goal is None else goal.tolist()))
        names = ("kind", "refs", "semantic", "recency", "size")
        expected = np.array([[each[name] for each in theirs] for name in names])
        assert np.abs(ours[:5] - expected).max() <= 1e-9
        assert not ours[5:].any()
        totals, wanted = ours.sum(axis=0), np.array([each["total"] for each in theirs])
        above = wanted[:, None] > wanted[None, :] + 1e-9
        assert (totals[:, None] > totals[None, :])[above].all()


def test_the_hot_zone_without_our_terms_scores_as_the_reference():
    """The same through the cached arrays of the zone, calibration and name weights switched off."""
    reference = pytest.importorskip("protoprompt.memory")
    numbers = np.random.default_rng(11)
    zone, oracle = HotZone(Scorer(), calibrate=False, weigh_names=False), reference.MemoryScorer()
    goal = unit(numbers.normal(size=24))
    for step in range(150):
        zone.add(
            Item(
                f"i{step}",
                KINDS[step % 8],
                "x",
                size=int(numbers.integers(0, 900)),
                cost=5,
                birth=step,
                references=step % 7,
                weighted=0.1,
                vector=unit(numbers.normal(size=24)),
            )
        )
        if step == 70:
            zone.set_goal(goal)
    scores = zone.scores(160)
    for item in zone.items.values():
        shape = SimpleNamespace(
            kind_weight=kind_weight(item.kind),
            refcount=item.references,
            last_touched=-1,
            step=item.birth,
            tokens=item.size,
            vector=item.vector.tolist(),
        )
        assert scores[item.row] == pytest.approx(oracle.score(shape, now=160, goal_vector=goal.tolist()), abs=1e-9)
