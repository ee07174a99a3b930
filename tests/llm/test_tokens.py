"""Token estimates: close by script, corrected by the server's counts, never led astray by odd ones."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from tui_agent.llm.tokens import TokenEstimator

# Counted with the Qwen 2.5 tokenizer.
COUNTED = [
    ("Please never use emoji when you write to me, and keep your answers under ten lines unless I ask for more.", 23),
    ("Zapamiętaj, że nasze spotkania zespołu odbywają się w każdą środę o dziesiątej rano.", 33),
    ("Запомни, пожалуйста, что наши встречи проходят каждую среду в десять часов утра.", 29),
    ('{"name": "edit_file", "arguments": {"path": "AGENTS.md", "append": "- Keep answers short"}}', 26),
    ("def load(path: Path) -> list[str]:\n    return path.read_text().splitlines()\n", 19),
    ("2024-11-30 01:37:22 192.168.1.10", 32),
]


@pytest.mark.parametrize(("text", "tokens"), COUNTED)
def test_an_estimate_is_within_a_third_of_the_real_count_for_each_script(text: str, tokens: int) -> None:
    assert 0.67 * tokens <= TokenEstimator().estimate(text) <= 1.34 * tokens


def test_the_same_length_costs_more_in_polish_and_russian_than_in_english() -> None:
    estimator = TokenEstimator()
    english, polish, russian = (estimator.estimate(text) / len(text) for text, _ in COUNTED[:3])
    assert polish > 1.3 * english
    assert russian > 1.3 * english


def test_nothing_costs_nothing_and_anything_costs_something() -> None:
    estimator = TokenEstimator()
    assert estimator.estimate("") == 0
    assert all(estimator.estimate(text) >= 1 for text in ("a", " ", "\n", "😀", "你", "\ud83d", "\x00", "ⴰ"))


def test_more_text_never_costs_less() -> None:
    estimator = TokenEstimator()
    text = "The quick brown fox — 42 прыжков, żółw {x: 1}\n    return 你好 😀\n" * 3
    counts = [estimator.estimate(text[:size]) for size in range(0, len(text), 7)]
    assert all(later >= earlier - 2 for earlier, later in pairwise(counts))


def test_a_text_costs_the_same_alone_in_a_message_and_behind_a_head() -> None:
    estimator = TokenEstimator()
    text = "The gateway listens on port 7443.\n\n  It is called “brama”.  \nЭто порт."
    lines = [estimator.estimate(line.strip()) for line in text.splitlines() if line.strip()]
    ends = text.count("\n")
    assert estimator.estimate(text) == pytest.approx(sum(lines) + ends, abs=len(lines))
    head = "[fact · abc · confirmed 2026-03-01] "
    together = estimator.estimate(f"{head}{text}")
    assert together == pytest.approx(estimator.estimate(head) + estimator.estimate(text), abs=1)


def test_messages_count_their_marks_calls_images_and_the_tool_list() -> None:
    estimator = TokenEstimator()
    user: dict[str, Any] = {"role": "user", "content": "What is in the file?"}
    one = estimator.estimate_messages([user])
    assert one > estimator.estimate(user["content"])
    call = {"function": {"name": "read_file", "arguments": {"path": "a.txt"}}}
    assert estimator.estimate_messages([user, {"role": "assistant", "tool_calls": [call]}]) > one + 20
    assert estimator.estimate_messages([{**user, "images": ["x", "y"]}]) >= one + 2 * 768
    assert estimator.estimate_messages([{**user, "thinking": "hm " * 50}]) > one + 40
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    with_tool = estimator.estimate_messages([user], [tool])
    assert with_tool > one + 90
    assert estimator.estimate_messages([user], [tool, tool]) > with_tool
    assert estimator.estimate_messages([]) == 0
    assert estimator.estimate_messages([{"role": "assistant", "content": None, "tool_calls": None}]) > 0


def test_the_servers_counts_correct_later_estimates_of_that_model_only() -> None:
    estimator = TokenEstimator("a")
    text = "word " * 400
    before = estimator.estimate(text)
    assert estimator.observe(before, round(before * 1.25))
    assert estimator.estimate(text) == pytest.approx(before * 1.25, abs=2)
    estimator.use("b")
    assert estimator.estimate(text) == before
    estimator.use("a")
    assert estimator.factor == pytest.approx(1.25, abs=0.01)


def test_repeated_true_counts_keep_the_correction_where_it_is() -> None:
    estimator = TokenEstimator()
    text = "word " * 400
    real = round(estimator.estimate(text) * 1.4)
    for _ in range(20):
        estimator.observe(estimator.estimate(text), real)
    assert estimator.estimate(text) == pytest.approx(real, abs=3)


def test_counts_that_say_nothing_about_the_tokenizer_are_not_learned() -> None:
    estimator = TokenEstimator()
    assert not estimator.observe(1000, None)
    assert not estimator.observe(1000, 400)  # cut by the server, or cached tokens left out
    assert not estimator.observe(1000, 4000)
    assert not estimator.observe(10, 14)
    assert not estimator.observe(0, 0)
    assert estimator.factor == 1.0


def test_one_odd_count_among_true_ones_moves_nothing() -> None:
    estimator = TokenEstimator()
    for _ in range(5):
        estimator.observe(1000, round(1000 / estimator.factor * 1.1))
    before = estimator.factor
    estimator.observe(1000, 2400)
    assert estimator.factor == pytest.approx(before, rel=0.02)


def test_the_correction_is_bounded_whatever_is_observed() -> None:
    estimator = TokenEstimator()
    for _ in range(30):
        estimator.observe(1000, 2400)
    assert estimator.factor == 2.5
    for _ in range(30):
        estimator.observe(1000, 510)
    assert estimator.factor == 0.5


def test_what_was_learned_survives_as_json() -> None:
    estimator = TokenEstimator("qwen3:8b")
    estimator.observe(1000, 1300)
    state = json.loads(json.dumps(estimator.to_state()))
    assert TokenEstimator.from_state(state, "qwen3:8b").factor == pytest.approx(1.3)
    assert TokenEstimator.from_state(state).factor == 1.0


@pytest.mark.parametrize(
    "state",
    [
        None,
        3,
        [],
        {},
        {"ratios": []},
        {"ratios": {"m": 1}},
        {"ratios": {"m": [0, -1, 99, "x", None, True, float("nan")]}},
    ],
)
def test_a_damaged_state_is_left_out(state: Any) -> None:
    assert TokenEstimator.from_state(state, "m").factor == 1.0
