"""The stored explanation of an answer writes the request's memory again to the byte, and the question can be asked
without an item."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.agent.conftest import Desk, Open, of
from tui_agent.agent.events import Recalled
from tui_agent.agent.explaining import block_of
from tui_agent.agent.prompt import legal_problem
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.script import Gate, Script, answer, call, calling
from tui_agent.memory.types import NewFact

FACTS = (
    ("port", "The gateway listens on port 7443."),
    ("release", "We release on Thursdays."),
    ("tests", "Tests are run with pytest."),
    ("database", "Orders are kept in PostgreSQL."),
    ("logs", "Logs are kept for thirty days."),
)
QUESTIONS = (
    "On which port does the gateway listen?",
    "When do we release?",
    "What are tests run with?",
    "Where are orders kept?",
    "How long are logs kept?",
)
_BLOCK = re.compile(r"\A(<data.*?</data>)(?:\n\n|\Z)", re.DOTALL)


def block_in(message: dict[str, Any]) -> str:
    """The data block of a sent user message, as it is in the body."""
    found = _BLOCK.match(str(message["content"]))
    return found[1] if found else ""


async def test_for_ten_answers_the_record_accounts_for_every_byte_memory_added(desk: Desk) -> None:
    for subject, fact in FACTS:
        desk.session.stores.facts.add(NewFact(subject, fact, "message m0"))
    desk.project.skills_dir.mkdir(parents=True, exist_ok=True)
    (desk.project.skills_dir / "deploy.md").write_text('# Deploy\n\n**Trigger**: "deploy"\n\nUse the blue script.\n')
    bodies, records = [], []
    for number in range(10):
        if number == 3:
            await desk.session.core.add_item("file", "def retry(): ...", summary="retry.py", source="retry.py")
        if number == 4:
            for line in ("kept for thirty days: logs of the night", "logs, kept on the second disk"):
                (hot, _), _ = await desk.session.core.add_item("log", line, summary="", source="x")
                await desk.session.put_away(hot)
        if number == 5:
            desk.project.rules_path.write_text("# Rules\n\n- be brief\n", "utf-8")
            await asyncio.to_thread(desk.session.core.sources.refresh)
        if number == 7:
            await desk.session.save_sentence("m1", "I prefer pnpm")
        desk.backend.queue(
            *([calling(call("recall", {"query": "logs"}))] if number % 4 == 3 else []), answer(f"Answer {number}.")
        )
        asked = f"{QUESTIONS[number % 5]} {'Then deploy it.' if number == 6 else ''}".strip()
        first = len(desk.server.chats)
        events = await desk.say(asked)
        bodies.append(desk.server.chats[first].body)
        message_id = desk.last(events).message_id
        assert message_id is not None
        record = await desk.session.recall_of(message_id)
        assert record is not None
        records.append((asked, record))
    blocks = []
    for body, (asked, record) in zip(bodies, records, strict=True):
        newest = body["messages"][-1]
        block = block_of(record)
        assert newest["content"] == (f"{block}\n\n{asked}" if block else asked)
        blocks.append(block)
        earlier = [block_in(m) for m in body["messages"] if m["role"] == "user"]
        assert earlier == blocks, "nothing of memory stands in a request that no record accounts for"
        said = {f"{i.store}:{i.id}" for _, r in records[: len(blocks) - 1] for i in r.items}
        assert said <= set(record.extra["in_view"]) | {f"{i.store}:{i.id}" for i in record.items}
    whole = "\n".join(blocks)
    for _, fact in FACTS:
        assert fact in whole
    assert records[4][1].extra["put_away"]["lines"]
    for part in ("Use the blue script.", "be brief", "The user saved", "def retry()", "[put away · "):
        assert whole.count(part) == 1, part


async def test_the_fixed_part_is_named_with_its_files(desk: Desk) -> None:
    desk.project.rules_path.write_text("# Rules\n\n- be brief\n", "utf-8")
    await asyncio.to_thread(desk.session.core.sources.refresh)
    await desk.session.rebuild_prompt()
    record = of(await desk.say("hello"), Recalled)[0].record
    assert record.extra == {} or "fixed" not in record.extra
    stored = await desk.session.recall_of((await desk.session.transcript())[-1].message_id)
    assert stored is not None
    assert any("rules" in part["name"].casefold() for part in stored.extra["fixed"])


# --- ask again without this -----------------------------------------------------------------------------------------


async def _answered(desk: Desk) -> tuple[str, str]:
    fact = desk.session.stores.facts.add(NewFact("port", "The gateway listens on port 7443.", "message m0"))
    desk.session.stores.facts.add(NewFact("test port", "In tests the port of the gateway is 9443.", "message m0"))
    desk.backend.queue(answer("On 7443."))
    events = await desk.say("On which port does the gateway listen?")
    message_id = desk.last(events).message_id
    assert message_id is not None
    return message_id, f"fact:{fact.id}"


async def test_the_same_question_without_an_item_changes_nothing_and_shows_both_answers(desk: Desk) -> None:
    message_id, ref = await _answered(desk)
    asked = desk.body
    log = list(desk.session.core.prompt.log)
    desk.backend.queue(answer("I do not know the port."))
    heard: list[str] = []
    comparison = await desk.session.ask_without(message_id, [ref], heard.append)
    assert (comparison.before, comparison.after) == ("On 7443.", "I do not know the port.")
    assert comparison.left_out == ("The gateway listens on port 7443.",)
    assert comparison.status == "answered"
    assert heard[-1] == comparison.after
    side = desk.body
    assert side["messages"][:-1] == asked["messages"][:-1]
    assert "7443" not in str(side["messages"])
    assert "9443" in side["messages"][-1]["content"]
    assert side["tools"] == asked["tools"]
    assert legal_problem(side["messages"]) == ""
    assert desk.session.core.prompt.log == log
    assert len(await desk.session.transcript()) == 2
    await desk.say("thanks")
    assert desk.body["messages"][: len(asked["messages"])] == asked["messages"]


async def test_an_item_of_an_earlier_message_is_taken_out_there_and_that_is_said(desk: Desk) -> None:
    _, ref = await _answered(desk)
    desk.backend.queue(answer("Still 7443."))
    events = await desk.say("Which gateway port again?")
    desk.backend.queue(answer("No idea."))
    message_id = desk.last(events).message_id
    assert message_id is not None
    comparison = await desk.session.ask_without(message_id, [ref])
    assert "listens on port 7443" not in str([m for m in desk.body["messages"] if m["role"] == "user"])
    assert any("1 earlier message" in note for note in comparison.notes)
    assert any("Earlier answers" in note for note in comparison.notes)


async def test_a_call_in_a_comparison_is_not_run(desk: Desk) -> None:
    message_id, ref = await _answered(desk)
    write = call("edit_file", {"path": "AGENTS.md", "old_string": "", "new_string": "- likes tea\n"})
    desk.backend.queue(calling(write), answer("In words, then."))
    comparison = await desk.session.ask_without(message_id, [ref])
    assert comparison.after == "In words, then."
    assert "tea" not in desk.memory("AGENTS.md")
    assert legal_problem(desk.body["messages"]) == ""


async def test_a_comparison_survives_the_end_of_its_epoch_and_says_what_is_of_today(desk: Desk) -> None:
    message_id, ref = await _answered(desk)
    await desk.session.rebuild_prompt()
    desk.backend.queue(answer("No idea."))
    comparison = await desk.session.ask_without(message_id, [ref])
    assert comparison.after == "No idea."
    assert any("of today" in note for note in comparison.notes)
    assert "7443" not in str(desk.body["messages"])


async def test_a_comparison_can_be_stopped_and_a_new_message_stops_it(desk: Desk) -> None:
    message_id, ref = await _answered(desk)
    gate = Gate()
    desk.backend.queue(Script("The beginning", gate), answer("Fine."))
    comparing = asyncio.create_task(desk.session.ask_without(message_id, [ref]))
    await gate.reached()
    events = await desk.say("something else")
    comparison = await comparing
    assert (comparison.status, comparison.after) == ("stopped", "The beginning")
    assert desk.last(events).text == "Fine."


async def test_a_failed_comparison_is_a_sentence(desk: Desk) -> None:
    message_id, ref = await _answered(desk)
    desk.backend.queue(*[faults.error_mid_stream("So")] * 3)
    comparison = await desk.session.ask_without(message_id, [ref])
    assert comparison.status in ("failed", "incomplete")
    assert comparison.error


async def test_an_answer_without_a_record_cannot_be_asked_again(desk: Desk) -> None:
    row = desk.session.stores.history.append(desk.session.id, "assistant", "old answer")
    with pytest.raises(LookupError, match="not kept"):
        await desk.session.ask_without(row.id, ["fact:x"])


# --- never for this topic -------------------------------------------------------------------------------------------


async def test_never_for_this_topic_leaves_the_item_out_and_says_why(open_desk: Open) -> None:
    desk = await open_desk()
    _, ref = await _answered(desk)
    result = await desk.session.never_for_topic(ref, "On which port does the gateway listen?")
    assert result.ok
    assert result.undo
    await desk.session.switch("new")
    record = of(await desk.say("Which port does our gateway listen on?"), Recalled)[0].record
    assert "7443" not in str(record.items)
    assert [item.status for item in record.near if "7443" in item.text] == ["topic"]
    assert "7443" not in desk.body["messages"][-1]["content"]
    rows = await desk.session.topics(ref)
    assert [(row.text, row.question) for row in rows] == [
        ("The gateway listens on port 7443.", "On which port does the gateway listen?")
    ]
    inspected = await desk.session.inspect(ref)
    assert any(field.label == "never for" and "gateway" in field.value for field in inspected.fields)
    assert "allow" in inspected.actions
    assert (await desk.session.allow_topic(rows[0].id)).ok
    await desk.session.switch("new")
    record = of(await desk.say("Which port does our gateway listen on?"), Recalled)[0].record
    assert "7443" in str(record.items)


async def test_never_for_this_topic_can_be_undone(desk: Desk) -> None:
    _, ref = await _answered(desk)
    await desk.session.never_for_topic(ref, "On which port does the gateway listen?")
    assert (await desk.session.undo()).ok
    assert await desk.session.topics() == []
