"""Proof is found in the user's message, never taken from a model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tui_agent.memory.proof import MESSAGE_BREAK, find_proof, find_quote, grounded, quote_occurs

EXTRACTION = Path(__file__).parents[1] / "cases" / "extraction.jsonl"


@pytest.mark.parametrize(
    ("new", "user", "span"),
    [
        ("Name: Kacper", "My name is Kacper and I prefer pnpm", "Kacper"),
        ("- prefers pnpm", "My name is Kacper and I prefer pnpm", "pnpm"),
        ("# User\n- **Language**: Polish", "Please answer in Polish", "Polish"),
        ("Keep answers under 10 lines", "Keep answers under ten lines, please.", "Keep answers under ten lines"),
        ("Imię: Dobrochna", "Mówią na mnie Dobrochną.", "Dobrochną"),
        ("Użytkownik woli zwykłe listy zamiast tabelek", "Nie lubię tabelek, wolę zwykłe listy.", "zwykłe listy"),
        ("Пользователь живёт в Петрозаводске", "Живу в Петрозаводске, в лесу.", "Живу в Петрозаводске"),
        ("All access through IRepository<T>", "All access goes via IRepository<T>.", "access goes via IRepository"),
    ],
)  # fmt: skip
def test_the_shortest_span_with_all_names_numbers_and_half_of_the_words_is_the_proof(
    new: str, user: str, span: str
) -> None:
    assert find_proof(new, user) == span


@pytest.mark.parametrize(
    ("new", "user"),
    [
        ("Uses PostgreSQL 16", "we use PostgreSQL 15"),
        ("Kacper prefers pnpm", "I prefer pnpm"),
        ("User lives in Paris", "I live in Porto"),
        ("User wants short answers", "Odpowiadaj krótko, proszę."),
        ("Prefers tabs", "```\nI prefer tabs\n```\nwhat is this"),
        ("Prefers tabs", "> I prefer tabs\nwho wrote this?"),
        ("", "I prefer tabs"),
        ("the of and", "the of and"),
        ("Calls load_all()", "call load_one instead"),
    ],
)
def test_an_invented_number_name_or_language_has_no_proof(new: str, user: str) -> None:
    assert find_proof(new, user) is None


def test_the_proof_is_verbatim_in_the_message() -> None:
    user = "First things first: we deploy with Kamal 2, on Fridays   only, and never by hand."
    span = find_proof("Deploys with Kamal 2 on Fridays", user)
    assert span is not None
    assert span in user


@pytest.mark.parametrize(
    "quote",
    ["I prefer  «short»   answers", 'i PREFER "short" answers', "prefer “short” answers -", "wolę żółte"],
)
def test_quotes_are_compared_without_white_space_case_quotation_marks_and_dashes(quote: str) -> None:
    text = 'Well, I prefer "short"\nanswers — always. Wolę żółte.'
    assert quote_occurs(quote, text)


@pytest.mark.parametrize("quote", ["prefer long answers", "", "...", 'refer "short"', "inside a fence", "quoted line"])
def test_a_quote_that_is_not_there_does_not_occur(quote: str) -> None:
    text = 'I prefer "short" answers\n```\ninside a fence\n```\n> quoted line\n'
    assert not quote_occurs(quote, text)


def test_the_place_of_a_quote_is_that_of_the_original_text() -> None:
    text = "Ещё раз: «Отвечай   кратко» — всегда."
    place = find_quote("отвечай кратко", text)
    assert place is not None
    assert text[place[0] : place[1]] == "Отвечай   кратко"


def test_facts_are_grounded_in_all_messages_of_the_user_together() -> None:
    messages = ["Tablicę zadań mamy w Trello.", "Przejęzyczyłem się, w Kanboard."]
    assert grounded("Tablicę zadań mamy w Kanboard", messages)
    assert not grounded("Tablicę zadań mamy w Kanboard", messages[1:])
    assert not grounded("We keep the task board in Kanboard", messages)


def test_the_ideal_items_of_the_extraction_cases_are_grounded_and_inventions_are_not() -> None:
    wrong = []
    for line in EXTRACTION.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        users = [message["content"] for message in row["conversation"] if message["role"] == "user"]
        for output in row["model_outputs"]:
            match = re.fullmatch(r"(?s)\s*(?:```json\n)?(\[.*\])\s*(?:```)?\s*", output["raw"])
            if match is None or output["kind"] in {"world_state", "off_record", "secret_only"}:
                continue
            try:
                items = json.loads(match[1])
            except ValueError:
                continue
            accepted = [
                item for item in items
                if isinstance(item, dict) and isinstance(item.get("fact"), str)
                and any(quote_occurs(item.get("quote") or item["fact"], user) for user in users)
                and grounded(item["fact"], users)
            ]  # fmt: skip
            wanted = [row["expect"][number]["must_contain"] for number in output.get("accept", [])]
            allowed = wanted + [row["expect"][number]["must_contain"] for number in output.get("may", [])]
            said = [item["fact"].lower() for item in accepted]
            wrong += [(row["id"], output["kind"], "missing", want) for want in wanted
                      if not any(all(stem.lower() in fact for stem in want) for fact in said)]  # fmt: skip
            wrong += [(row["id"], output["kind"], "extra", fact) for fact in said
                      if not any(all(stem.lower() in fact for stem in want) for want in allowed)]  # fmt: skip
    assert wrong == []


def test_what_the_user_said_word_for_word_is_grounded_however_short() -> None:
    assert grounded("We use Go", ["We use Go."])
    assert not grounded("We use Go", ["We use Rust."])


POLISH = "Wolimy pnpm od npm, bo jest szybszy i mniej waży."
ENGLISH = "What is the best way to do this with npm and pnpm, and when should we prefer to do it?"


def test_the_language_of_the_users_words_is_read_from_the_message_that_holds_the_quote() -> None:
    talk = [POLISH, ENGLISH, ENGLISH]
    assert grounded("Wolimy pnpm, jest szybszy", talk, quote="Wolimy pnpm")
    assert not grounded("We prefer pnpm to npm, which is the best way", talk, quote="Wolimy pnpm")


def test_without_a_quote_one_message_in_the_language_of_the_fact_is_enough() -> None:
    assert grounded("Wolimy pnpm, jest szybszy", [ENGLISH, POLISH])
    assert not grounded("Wolimy pnpm, jest szybszy od npm", [ENGLISH, ENGLISH])


def test_a_proof_lies_in_one_message_and_in_its_language() -> None:
    found = find_proof("Wolimy pnpm, jest szybszy", MESSAGE_BREAK.join([ENGLISH, POLISH, ENGLISH]))
    assert found is not None
    assert found in POLISH
    assert (
        find_proof(
            "We prefer pnpm to npm when it is the best", MESSAGE_BREAK.join([POLISH, "Hello there, how are you?"])
        )
        is None
    )
