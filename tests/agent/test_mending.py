"""Transcripts that a strict template would refuse are put right, always in the same way."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tui_agent.agent.mending import CANCELLED, NO_ANSWER, mended
from tui_agent.agent.prompt import legal, legal_problem

SYSTEM = {"role": "system", "content": "s"}


def user(text: Any = "u") -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str = "a") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(*names: str) -> dict[str, Any]:
    return {"role": "assistant", "tool_calls": [{"function": {"name": name, "arguments": {}}} for name in names]}


def result(name: str = "t", text: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_name": name, "content": text}


def test_a_legal_transcript_is_left_as_it_is() -> None:
    messages = [SYSTEM, user(), calls("t", "t"), result(), result(), said(), user("v")]
    assert legal(messages) is messages
    assert mended(messages) == messages


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([SYSTEM, user("a"), user("b")], [SYSTEM, user("a\n\nb")]),
        ([SYSTEM, user(), calls("t"), user("v")],
         [SYSTEM, user(), calls("t"), result(text=CANCELLED), said(NO_ANSWER), user("v")]),
        ([SYSTEM, user(), calls("t", "x"), result()],
         [SYSTEM, user(), calls("t", "x"), result(), result("x", CANCELLED)]),
        ([SYSTEM, user(), result(), said()], [SYSTEM, user(), said()]),
        ([SYSTEM, user(), said("one"), said("two")], [SYSTEM, user(), said("one\n\ntwo")]),
        ([SYSTEM, user(), said(NO_ANSWER), said("two")], [SYSTEM, user(), said("two")]),
        ([SYSTEM, user(), said(""), user("v")], [SYSTEM, user(), said(NO_ANSWER), user("v")]),
        ([SYSTEM, user([{"type": "text", "text": "a"}, {"type": "image"}, "b"])], [SYSTEM, user("a\nb")]),
        ([SYSTEM, user(), {**calls("t"), "content": None}, result(), said()],
         [SYSTEM, user(), {**calls("t"), "content": ""}, result(), said()]),
        ([SYSTEM, user(), {"role": "ipython", "content": "x"}], [SYSTEM, user("u\n\nx")]),
        ([SYSTEM, user(), SYSTEM], [SYSTEM, user("u\n\ns")]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_put_right(given: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert legal_problem(given)
    assert mended(given) == wanted
    assert legal_problem(wanted) == ""


def test_whatever_comes_the_outcome_is_legal_and_mending_it_again_changes_nothing() -> None:
    chance = random.Random(7)
    kinds = [user, said, lambda: said(""), lambda: calls("t"), lambda: calls("t", "x"), result, lambda: SYSTEM]
    for _ in range(500):
        messages = [SYSTEM, *(chance.choice(kinds)() for _ in range(chance.randrange(9)))]
        made = mended(messages)
        assert legal_problem(made) == "", messages
        assert mended(made) == made


def test_a_mended_beginning_stays_the_beginning_when_a_turn_is_added() -> None:
    broken = [SYSTEM, user(), calls("t"), user("v"), said("w")]
    assert mended([*broken, user("x")])[: len(mended(broken))] == mended(broken)
