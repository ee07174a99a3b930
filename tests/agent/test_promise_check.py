"""The promise check's second half: the model is asked for the user's words, and what is proved is saved."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Desk, Open, of
from tui_agent.agent.asking import Reply
from tui_agent.agent.events import MemoryChanged, PhaseChanged, SaveMissing, TextDelta, TurnFinished
from tui_agent.agent.promise_check import proposals, quotes_of, request_for, worth_asking
from tui_agent.agent.promises import check, is_known
from tui_agent.agent.prompt import legal_problem
from tui_agent.llm.types import ToolCall
from tui_agent.llm.wire.script import Fail, Gate, Script, answer, call, calling
from tui_agent.memory.statements import classify
from tui_agent.memory.types import Fact

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "utterances.jsonl").read_text("utf-8").splitlines()
]


def quotes(*texts: str) -> Script:
    return answer(json.dumps(list(texts), ensure_ascii=False))


def phases(events: list[Any]) -> list[str]:
    return [event.phase for event in of(events, PhaseChanged)]


async def test_what_the_model_quotes_is_saved_in_its_place_and_can_be_taken_back(desk: Desk) -> None:
    desk.backend.queue(answer("Nice to meet you!"), quotes("My name is Kacper", "I prefer pnpm"))
    events = await desk.say("My name is Kacper and I prefer pnpm")
    assert "Kacper" in desk.memory("knowledge/user.md")
    assert "pnpm" in desk.memory("AGENTS.md")
    assert not of(events, SaveMissing)
    assert [(e.what, e.target) for e in of(events, MemoryChanged)] == [
        ("saved", "knowledge/user.md"),
        ("saved", "AGENTS.md#User Preferences"),
    ]
    assert all(e.undo for e in of(events, MemoryChanged))
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].status == "answered"
    assert (await desk.session.undo()).ok
    assert "pnpm" not in desk.memory("AGENTS.md")
    assert (await desk.session.undo()).ok
    assert "Kacper" not in desk.memory("knowledge/user.md")


async def test_the_answer_is_complete_and_stored_before_anything_is_checked(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(answer("Nice to meet you!"), Script(gate, '["My name is Kacper"]'))
    stored: list[tuple[str, str]] = []
    seen: list[Any] = []
    async for event in desk.session.send("My name is Kacper."):
        seen.append(event)
        if isinstance(event, PhaseChanged) and event.phase == "checking":
            await gate.reached()
            stored = [(m.content, m.status) for m in desk.session.stores.history.messages(desk.session.id)]
            gate.open()
    assert stored[-1] == ("Nice to meet you!", "complete")
    text = "".join(event.text for event in of(seen, TextDelta))
    assert text == "Nice to meet you!" == desk.last(seen).text
    assert (await desk.session.transcript())[-1].memory_line == "1 saved"


async def test_the_question_extends_the_prefix_and_never_enters_the_log(desk: Desk) -> None:
    desk.backend.queue(answer("Nice!"), quotes("My name is Kacper."), answer("Hello again."))
    await desk.say("My name is Kacper.")
    first, asked = (record.body for record in desk.server.chats)
    assert asked["messages"][: len(first["messages"])] == first["messages"]
    assert asked["tools"] == first["tools"]
    assert "format" not in asked
    assert asked["options"]["num_predict"] == first["options"]["num_predict"]
    assert legal_problem(asked["messages"]) == ""
    log = desk.session.stores.history.wire_log(desk.session.id, desk.session.core.prompt.epoch)
    assert [entry["message"]["role"] for _, entry in log] == ["user", "assistant"]
    await desk.say("hello")
    assert desk.body["messages"][: len(asked["messages"]) - 1] == asked["messages"][:-1]
    assert asked["messages"][-1] not in desk.body["messages"]


@pytest.mark.parametrize(
    "reply",
    ["I do not know.", "[]", "", '["His name is Zbigniew"]', '["the"]', "null", '{"quote": 7}', "[[[[", "Kacper?"],
)
async def test_what_is_not_proved_stays_offered_by_key(desk: Desk, reply: str) -> None:
    desk.backend.queue(answer("Nice."), answer(reply))
    events = await desk.say("I prefer pnpm over npm.")
    assert [missing.sentence for missing in of(events, SaveMissing)] == ["I prefer pnpm over npm."]
    assert not of(events, MemoryChanged)
    assert desk.last(events).status == "answered"


async def test_a_model_that_fails_leaves_the_one_key_and_the_answer(desk: Desk) -> None:
    desk.backend.queue(answer("Nice."), Script(Fail(400, "bad request")))
    events = await desk.say("I prefer pnpm over npm.")
    assert len(of(events, SaveMissing)) == 1
    assert desk.last(events).status == "answered"
    assert desk.last(events).error == ""


async def test_a_call_that_comes_instead_of_a_list_points_at_words_too(desk: Desk) -> None:
    desk.backend.queue(
        answer("Nice."),
        calling(call("remember", {"fact": "I prefer pnpm over npm.", "category": "preference"})),
    )
    events = await desk.say("I prefer pnpm over npm.")
    assert [e.what for e in of(events, MemoryChanged)] == ["saved"]
    assert "I prefer pnpm over npm." in desk.memory("AGENTS.md")


async def test_stopping_ends_the_check_and_keeps_the_answer(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(answer("Nice."), Script("[", gate))
    seen: list[Any] = []
    async for event in desk.session.send("I prefer pnpm over npm."):
        seen.append(event)
        if isinstance(event, PhaseChanged) and event.phase == "checking":
            await gate.reached()
            await desk.session.stop()
    assert desk.last(seen).status == "answered"
    assert len(of(seen, SaveMissing)) == 1
    assert (await desk.session.transcript())[-1].status == "complete"


async def test_a_new_message_does_not_wait_for_the_check(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(answer("Nice."), Script("[", gate), answer("Four."))
    first: list[Any] = []

    async def listen() -> None:
        first.extend([event async for event in desk.session.send("I prefer pnpm over npm.")])

    task = asyncio.create_task(listen())
    await gate.reached()
    events = await desk.say("What is two and two?")
    assert desk.last(events).text == "Four."
    await task
    assert desk.last(first).status == "answered"
    assert len(of(first, SaveMissing)) == 1
    assert legal_problem(desk.body["messages"]) == ""


async def test_a_message_written_during_the_answer_spares_the_check(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script("Ni", gate, "ce."))
    seen: list[Any] = []
    async for event in desk.session.send("I prefer pnpm over npm."):
        seen.append(event)
        if isinstance(event, TextDelta) and not gate.opened:
            desk.session.hurry()
            gate.open()
    assert "checking" not in phases(seen)
    assert len(of(seen, SaveMissing)) == 1
    assert len(desk.server.chats) == 1


async def test_it_can_be_switched_off(open_desk: Open) -> None:
    desk = await open_desk(check_saves=False)
    desk.backend.queue(answer("Nice."))
    events = await desk.say("I prefer pnpm over npm.")
    assert len(of(events, SaveMissing)) == 1
    assert len(desk.server.chats) == 1


async def test_a_model_without_tools_is_asked_too(open_desk: Open) -> None:
    desk = await open_desk(tools=False)
    desk.backend.queue(answer("Nice."), quotes("I prefer pnpm over npm."))
    events = await desk.say("I prefer pnpm over npm.")
    assert "tools" not in desk.body
    assert [e.what for e in of(events, MemoryChanged)] == ["saved"]


async def test_half_a_save_is_completed(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Bernadette\n"})),
        answer("Hello!"),
        quotes("everyone calls me Bernie"),
    )
    await desk.say("Hi, I'm Bernadette, but everyone calls me Bernie.")
    live = [row.fact for row in desk.session.stores.facts.live()]
    assert any("Bernie" in fact for fact in live)
    assert "Bernie" in desk.memory("knowledge/user.md")


async def test_the_secret_beside_a_statement_is_neither_shown_again_nor_saved(desk: Desk) -> None:
    word = "Quince" + "-Ladder7"
    desk.backend.queue(answer("Fine."), quotes(f"its password is {word}", "we only ever do blue-green deployments"))
    await desk.say(f"The deploy user is ops and its password is {word}, and we only ever do blue-green deployments.")
    asked = desk.server.chats[1].body["messages"][-1]["content"]
    assert word not in asked
    live = desk.session.stores.facts.live()
    assert [row.fact for row in live] == ["we only ever do blue-green deployments."]


async def test_nobody_is_asked_about_what_cannot_be_kept(desk: Desk) -> None:
    desk.backend.queue(answer("I've saved that there are 214 open tickets."))
    events = await desk.say("There are 214 open tickets in the tracker.")
    assert "checking" not in phases(events)
    assert of(events, SaveMissing)[0].claimed


# --- the cases, end to end ------------------------------------------------------------------------


def at_a_right_place(fact: Fact, row: dict[str, Any], change: MemoryChanged) -> bool:
    for place in (row["target"], *row.get("target_alt", ())):
        if place == change.target or (place == "rules" and change.target == "rules.md"):
            return True
        if place.endswith("*") and change.target.startswith(place[:-1]):
            return True
    return False


def plain(text: str) -> str:
    return text.casefold().replace("ё", "е")


@pytest.mark.parametrize("language", ["en", "pl", "ru"])
async def test_a_model_that_only_quotes_saves_every_statement_of_the_cases(open_desk: Open, language: str) -> None:
    desk = await open_desk()
    wrong = []
    for row in ROWS:
        if row["lang"] != language or row["expect"] not in ("save", "ttl"):
            continue
        desk.backend.queue(answer("Hm."), quotes(*row["text"].split("\n")))
        changes = of(await desk.say(row["text"]), MemoryChanged)
        written = [(change, desk.session.stores.facts.get(change.id)) for change in changes if change.zone == "fact"]
        texts = [plain(fact.fact) for _, fact in written if fact is not None]
        good = all(any(plain(stem) in text for text in texts) for stem in row["must_contain"])
        good = good and not any(plain(stem) in text for stem in row["must_not_contain"] for text in texts)
        if not good or not any(fact and at_a_right_place(fact, row, change) for change, fact in written):
            wrong.append((row["id"], changes))
    assert wrong == []


@pytest.mark.parametrize("language", ["en", "pl", "ru"])
async def test_a_model_that_quotes_everything_saves_nothing_that_must_not_be(open_desk: Open, language: str) -> None:
    desk = await open_desk()
    claim = {"en": "I've saved that.", "pl": "Zapisałem to.", "ru": "Я это запомнил."}[language]
    for row in ROWS:
        if row["lang"] != language or row["expect"] in ("save", "ttl"):
            continue
        desk.backend.queue(answer(claim))
        desk.backend.default = quotes(*row["text"].split("\n"), row["text"])
        await desk.say(row["text"])
        assert desk.session.stores.facts.live() == [], row["id"]
        desk.backend.default = answer("OK.")


# --- the pieces -----------------------------------------------------------------------------------


def test_the_question_is_in_the_language_of_the_message_and_repeats_it() -> None:
    for text, word in (
        ("My name is Oda Brandt.", "lasting"),
        ("Mam na imię Oda i mieszkam w Łodzi.", "trwałe"),
        ("Меня зовут Ода.", "постоянное"),
    ):
        assert text in request_for(text)
        assert word in request_for(text)


def test_of_a_long_message_only_what_states_something_is_repeated() -> None:
    text = "What does this line do, and why is it slow? " * 60 + "I prefer tabs over spaces."
    request = request_for(text)
    assert "I prefer tabs over spaces." in request
    assert len(request) < 1_500


def test_a_reply_points_at_words_in_any_shape() -> None:
    assert quotes_of(Reply('["one thing", "another"]')) == ["one thing", "another"]
    assert quotes_of(Reply('Sure: [{"quote": "one thing", "kind": "fact"}]'))[0] == "one thing"
    assert quotes_of(Reply("You said “one thing”.")) == ["one thing"]
    assert quotes_of(Reply("", (ToolCall("edit_file", {"path": "AGENTS.md", "new_string": "a\nb"}),))) == [
        "AGENTS.md",
        "a",
        "b",
    ]
    assert quotes_of(Reply("no idea")) == []


def test_a_quote_takes_the_whole_statement_it_belongs_to() -> None:
    text = "How do I reverse a list? Also, from now on always show types in the examples."
    (made,) = proposals("m1", text, ["always show types"])
    assert made.text == "from now on always show types in the examples."
    assert made.target == "AGENTS.md#User Preferences"
    assert made.user_text == text
    assert proposals("m1", text, ["How do I reverse a list?"]) == []


def test_what_was_saved_from_the_message_in_other_words_is_known() -> None:
    (statement,) = classify("I like tea.")
    assert is_known(statement, {"tea"})
    (name,) = classify("Hi, I'm Bernadette, but everyone calls me Bernie.")
    assert not is_known(name, {"bernadette"}, ["Name: Bernadette\nBernadette"])
    (rule,) = classify("Keep your answers under ten lines unless I ask for more.")
    assert is_known(rule, (), ["Answers under ten lines, unless asked for more"])
    assert not is_known(rule, (), [])


def test_a_claim_without_a_statement_is_offered_and_not_asked_when_it_is_a_question() -> None:
    missing = check("m1", "What time is it?", "I've saved that.", wrote=False)
    assert missing is not None
    assert missing.claimed
    assert not worth_asking("What time is it?")
    assert worth_asking("I prefer tea.")
