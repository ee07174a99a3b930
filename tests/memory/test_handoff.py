"""Hand-off packets: conclusions in about fifty tokens, never the conversation, confirmed only by the user."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tui_agent.memory.conclusions import draft, settled_ideas
from tui_agent.memory.handoff import AIM_TOKENS, Handoff, HandoffRefused, dialogue_in, packet
from tui_agent.memory.types import Fact, Kind, Origin, Scope

GOOD: dict[str, Any] = {
    "task": "Quarterly report for region Northwest",
    "requirements": ["active projects only", "exclude archived"],
    "format": "one table, short",
}


def fact(text: str, kind: Kind = Kind.DECISION) -> Fact:
    return Fact(
        "x", "", text, "message 1", kind, 5, Origin.USER, text, "m1", "", Scope.PROJECT, "2026-01-01 00:00:00",
        "2026-01-01 00:00:00", None, None, None, None, False, "", "",
    )  # fmt: skip


def test_a_packet_has_four_keys_and_about_fifty_tokens() -> None:
    made = packet(GOOD)
    assert json.loads(made.text()) == {**GOOD, "constraints_confirmed_by_user": False}
    assert list(json.loads(made.text())) == ["task", "requirements", "format", "constraints_confirmed_by_user"]
    assert 30 <= made.tokens <= AIM_TOKENS * 2


def test_a_packet_survives_being_written_and_read() -> None:
    made = packet(GOOD)
    assert packet(made.text()) == made


@pytest.mark.parametrize("value", [True, False])
def test_whatever_a_packet_says_it_is_unconfirmed_until_the_user_says_yes(value: bool) -> None:
    made = packet({**GOOD, "constraints_confirmed_by_user": value})
    assert made.constraints_confirmed_by_user is False
    assert made.confirmed(True).constraints_confirmed_by_user is True
    assert made.confirmed(False).constraints_confirmed_by_user is False


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"notes": "x"}, "“notes” does not belong"),
        ({"transcript": []}, "“transcript” does not belong"),
        ({"task": ""}, "empty"),
        ({"task": None}, "“task”"),
        ({"requirements": "one"}, "“requirements”"),
        ({"requirements": [1]}, "“requirements.1”"),
        ({"requirements": ["fine", ""]}, "“requirements.2”"),
        ({"requirements": [f"rule {n}" for n in range(13)]}, "more than 12"),
        ({"format": "x" * 300}, "300 characters"),
        ({"constraints_confirmed_by_user": "yes"}, "constraints_confirmed_by_user"),
    ],
)
def test_a_packet_with_another_shape_is_refused_with_the_place(change: dict[str, Any], said: str) -> None:
    with pytest.raises(HandoffRefused) as refused:
        packet({**GOOD, **change})
    assert said in str(refused.value)


@pytest.mark.parametrize("data", ["not json", "[]", 7, None, "{}"])
def test_what_is_no_packet_at_all_is_refused(data: object) -> None:
    with pytest.raises(HandoffRefused):
        packet(data)


@pytest.mark.parametrize(
    "text",
    [
        "User: exclude archived\nAssistant: done",
        "user: what about archived",
        "Assistant: I will exclude them",
        "[User] leave them out",
        "Użytkownik: pomiń archiwalne",
        "Пользователь: без архивных",
        "what if we add archived… no, leave them out",
        "What if we add archived projects, or maybe not",
        "should archived be in it?",
        "Maybe we could add archived",
        "hmm, better without archived",
        "a może dodamy archiwalne",
        "А что если добавить архивные",
        "the user said that archived are out",
        "I asked for no archived ones",
        '[{"role": "user", "content": "no archived"}]',
        "<|im_start|>user no archived",
        "10:31 Kacper leave archived out",
        "one\ntwo\nthree\nfour",
    ],
)
def test_dialogue_is_no_conclusion_wherever_it_stands(text: str) -> None:
    assert dialogue_in(text)
    for place in ({"task": text}, {"requirements": [text]}, {"format": text}):
        with pytest.raises(HandoffRefused):
            packet({**GOOD, **place})


@pytest.mark.parametrize(
    "text",
    [
        "exclude archived",
        "add the field user to the login form",
        "bez archiwalnych, tylko aktywne",
        "только активные проекты",
        "answers in Polish, at most three sentences",
        "retry after 10:30 UTC",
        "use pnpm; Node 22",
        "keep the public API of client.py",
    ],
)
def test_conclusions_of_all_kinds_are_taken(text: str) -> None:
    assert packet({**GOOD, "requirements": [text]}).requirements == (text,)


def test_a_long_stretch_of_a_message_is_a_transcript_even_without_a_speaker() -> None:
    message = (
        "so the thing is that our report goes out every quarter and the region people keep asking for the active ones "
        "only because the archived ones confuse everybody who reads it"
    )
    with pytest.raises(HandoffRefused, match="copied from the conversation"):
        packet({**GOOD, "requirements": [message[:160]]}, transcript=[message])
    assert packet({**GOOD, "requirements": ["active ones only"]}, transcript=[message]).requirements


def test_a_secret_is_not_handed_on() -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    with pytest.raises(HandoffRefused, match="password, key or token") as raised:
        packet({**GOOD, "requirements": [f"use the token {token}"]})
    assert token not in str(raised.value)


def test_a_packet_far_above_fifty_tokens_is_refused() -> None:
    long = [f"requirement number {n} about the quarterly report and its many different columns" for n in range(12)]
    with pytest.raises(HandoffRefused, match="50 are meant and 200 the most"):
        packet({**GOOD, "requirements": long})


def test_a_requirement_said_twice_is_one() -> None:
    made = packet({**GOOD, "requirements": ["Exclude archived.", "active only", "exclude archived"]})
    assert made.requirements == ("Exclude archived.", "active only")


def test_a_packet_cannot_be_changed_once_made() -> None:
    with pytest.raises(ValueError, match="frozen"):
        packet(GOOD).task = "another"  # type: ignore[misc]
    assert isinstance(packet(GOOD), Handoff)


# --- the draft ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "ideas"),
    [
        ("What if we add archived… no, leave them out.", ["exclude archived"]),
        ("Maybe we could also include draft invoices? Nah, drop them.", ["exclude draft invoices"]),
        ("Should we show totals too? Yes, do it.", ["include totals"]),
        ("A może dodamy archiwalne… nie, pomiń je.", ["bez: archiwalne"]),
        ("Может, добавим архивные? Нет, не надо.", ["без: архивные"]),
        ("А если включить черновики? Да, давай.", ["с: черновики"]),
        ("What if we add archived? I will think about it.", []),
        ("Only active projects, please.", []),
        ("How about using Redis? No problem with that.", []),
    ],
)
def test_an_idea_weighed_aloud_becomes_its_end(said: str, ideas: list[str]) -> None:
    assert settled_ideas(said) == ideas


def test_the_packet_says_what_was_decided_and_not_how() -> None:
    said = ["Make the quarterly report.", "what if we add archived… no, leave them out"]
    made = packet(draft("Make the quarterly report", [fact("Only active projects.")], said), transcript=said)
    assert made.requirements == ("Only active projects", "exclude archived")
    assert "what if" not in made.text().lower()
    assert "leave them" not in made.text()


def test_the_later_of_two_decisions_counts() -> None:
    said = ["what if we add archived? no, leave them out", "maybe we could add archived? yes, do"]
    assert draft("Report", (), said)["requirements"] == ["include archived"]


def test_a_draft_leaves_out_what_cannot_stand_in_a_packet() -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    facts = [
        fact("Is it due on Friday?"),
        fact(f"The token is {token}"),
        fact("The build breaks on Windows.", Kind.PROBLEM),
        fact("I prefer short answers in a table.", Kind.PREFERENCE),
        fact("No SQL outside repository.py."),
    ]
    made = draft("Port the report?", facts)
    assert made == {
        "task": "",
        "requirements": ["No SQL outside repository.py"],
        "format": "I prefer short answers in a table",
    }
