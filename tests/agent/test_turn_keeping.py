"""What a turn keeps: what was sent is written when it has left, in order and once, and an answer has one row."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.agent.conftest import Desk, Open
from tui_agent.agent.prompt import LogEntry
from tui_agent.agent.turn_keeping import AnswerSoFar
from tui_agent.llm.wire.script import Fail, Gate, Script
from tui_agent.memory.database import StoreError


def written(desk: Desk) -> list[str]:
    """Who said each message of the log on disk, in order."""
    core = desk.session.core
    log = core.history.wire_log(core.session_id, core.prompt.epoch)
    return [message["message"]["role"] if "message" in message else message["role"] for _, message in log]


async def until(true: Any) -> None:
    for _ in range(500):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


async def test_the_message_is_in_the_log_on_disk_while_the_model_reads(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script(gate, "Read."))
    turn = asyncio.create_task(desk.say("Where is the lamp?"))
    await gate.reached()
    await until(lambda: written(desk) == ["user"])
    gate.open()
    assert desk.last(await turn).status == "answered"
    assert written(desk) == ["user", "assistant"]


async def test_it_is_not_written_before_the_request_has_left_but_the_users_words_are(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[Any] = []
    core = desk.session.core
    write = core.history.wire_write

    def noted(*args: Any, **more: Any) -> None:
        before.append((len(desk.server.chats), [m.content for m in core.history.messages(core.session_id)]))
        write(*args, **more)

    await desk.say("Hello")  # everything that a first message brings with it
    monkeypatch.setattr(core.history, "wire_write", noted)
    gate = Gate()
    desk.backend.queue(Script(gate, "Read."))
    turn = asyncio.create_task(desk.say("Where is the lamp?"))
    await gate.reached()
    await until(lambda: before)
    gate.open()
    await turn
    requests, said = before[0]
    assert requests == 2
    assert "Where is the lamp?" in said


async def test_a_request_that_fails_leaves_a_log_that_can_be_sent_again(desk: Desk) -> None:
    desk.backend.queue(Script(Fail(500, "boom")), Script(Fail(500, "boom")))
    assert desk.last(await desk.say("Where is the lamp?")).status == "failed"
    await desk.session.core.settled()
    assert written(desk) == ["user", "assistant"]
    assert desk.last(await desk.say("And now?")).status == "answered"
    assert written(desk) == ["user", "assistant"] * 2


async def test_a_turn_stopped_before_the_first_token_is_in_the_log_in_order(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script(gate, "Never."))
    turn = asyncio.create_task(desk.say("Where is the lamp?"))
    await gate.reached()
    await desk.session.stop()
    gate.open()
    assert desk.last(await turn).status == "stopped"
    await desk.session.core.settled()
    assert written(desk) == ["user", "assistant"]


async def test_what_could_not_be_written_at_first_is_written_before_the_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = desk.session.core
    write, tries = core.history.wire_write, 0

    def full_once(*args: Any, **more: Any) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise StoreError("The disk is full.")
        write(*args, **more)

    monkeypatch.setattr(core.history, "wire_write", full_once)
    assert desk.last(await desk.say("Where is the lamp?")).status == "answered"
    assert written(desk) == ["user", "assistant"]


async def test_a_new_prefix_that_begins_meanwhile_has_each_message_once(open_desk: Open) -> None:
    desk = await open_desk()
    core = desk.session.core
    gate = Gate()
    desk.backend.queue(Script(gate, "Read."))
    release = asyncio.Event()
    after = core.after_sending
    core.after_sending = lambda work: after(lambda: _later(release, work))  # type: ignore[method-assign]
    turn = asyncio.create_task(desk.say("Where is the lamp?"))
    await gate.reached()
    await core.start_epoch(core.prompt.log)
    release.set()
    gate.open()
    await turn
    await core.settled()
    assert written(desk) == ["user", "assistant"]


async def _later(release: asyncio.Event, work: Any) -> Any:
    await release.wait()
    return await work()


async def test_after_a_restart_the_same_bytes_are_sent_again(open_desk: Open) -> None:
    desk = await open_desk()
    await desk.say("Where is the lamp?")
    sent = desk.body["messages"]
    await desk.session.close()
    again = await open_desk(resume="continue")
    await again.say("And the chair?")
    assert json.dumps(again.body["messages"][: len(sent)]) == json.dumps(sent)
    assert isinstance(again.session.core.prompt.log[0], LogEntry)


async def test_two_writes_of_an_answer_at_once_begin_one_row(desk: Desk) -> None:
    core = desk.session.core
    await desk.say("Hello")
    said = AnswerSoFar(core, desk.heard.append)
    said.texts.append("The lamp is blue.")
    await asyncio.gather(said.flush(force=True), said.flush(force=True))
    await said.finish("complete", {})
    answers = [row.content for row in core.history.messages(core.session_id) if row.role == "assistant"]
    assert answers == ["OK.", "The lamp is blue."]


async def test_an_answer_without_a_word_has_no_row(desk: Desk) -> None:
    core = desk.session.core
    said = AnswerSoFar(core, desk.heard.append)
    await said.flush(force=True)
    await said.finish("partial", {})
    assert said.id is None
    assert core.history.messages(core.session_id) == []
