"""A turn from the user's words to the stored answer, on a scripted server over real sockets."""

from __future__ import annotations

import gc
import itertools

import pytest

from tests.agent.conftest import Desk, of
from tui_agent.agent.events import (
    ContextUsage,
    MemoryChanged,
    Notice,
    PhaseChanged,
    Recalled,
    SaveMissing,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaved,
)
from tui_agent.agent.prompt import legal_problem
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.script import Gate, Script, Think, answer, call, calling


async def test_an_answer_streams_in_order_and_is_stored_as_shown(desk: Desk) -> None:
    desk.backend.queue(answer("Hello there, how are you?"))
    events = await desk.say("hi")
    kinds = [type(event) for event in events if not isinstance(event, (PhaseChanged, Notice))]
    assert kinds[0] is UserSaved
    assert kinds[1] is Recalled
    assert kinds[-1] is TurnFinished
    text = "".join(event.text for event in of(events, TextDelta))
    assert text == "Hello there, how are you?" == desk.last(events).text
    assert desk.last(events).status == "answered"
    entries = await desk.session.transcript()
    assert [(e.role, e.text, e.status) for e in entries] == [
        ("user", "hi", "complete"),
        ("assistant", "Hello there, how are you?", "complete"),
    ]


async def test_the_users_message_is_on_disk_before_the_request_leaves(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script("late", gate))
    stream = desk.session.send("remember the order of things")
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    stored = desk.session.stores.history.messages(desk.session.id)
    assert stored[0].content == "remember the order of things"
    gate.open()
    async for _ in stream:
        pass


async def test_the_garbage_collector_waits_until_the_request_has_left_or_the_turn_has_failed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gc.isenabled()
    waits: list[bool] = []
    recall = desk.session.core.recaller.recall

    async def watched(*given: object, **more: object) -> object:
        waits.append(gc.isenabled())
        return await recall(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(desk.session.core.recaller, "recall", watched)
    gate = Gate()
    desk.backend.queue(Script("late", gate))
    stream = desk.session.send("one")
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    assert waits == [False]
    assert gc.isenabled()
    gate.open()
    async for _ in stream:
        pass

    async def broken(*_: object, **__: object) -> object:
        raise RuntimeError("no")

    monkeypatch.setattr(desk.session.core.recaller, "recall", broken)
    events = await desk.say("two")
    assert desk.last(events).status == "failed"
    assert gc.isenabled()


async def test_the_name_is_saved_in_the_same_turn_to_the_letter(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"})),
        answer("Nice to meet you, Kacper! I've noted that for future reference."),
    )
    events = await desk.say("My name is Kacper")
    assert desk.memory("knowledge/user.md").endswith("Name: Kacper\n")
    saved = of(events, MemoryChanged)
    assert [(e.what, e.text, e.target) for e in saved] == [("saved", "Name: Kacper", "knowledge/user.md")]
    assert of(events, ToolFinished)[0].ok
    assert not of(events, SaveMissing)
    assert desk.last(events).text.endswith("I've noted that for future reference.")
    fact = (await desk.session.remembered())[0]
    assert "Kacper" in fact.quote
    assert fact.quote in "My name is Kacper"


async def test_a_fenced_call_is_rescued_and_stored_as_a_structured_call(desk: Desk) -> None:
    desk.backend.queue(
        answer(
            '```json\n{"name": "edit_file", "arguments": {"path": "knowledge/user.md", "old_string": "", '
            '"new_string": "Name: Kacper\\n"}}\n```'
        ),
        answer("Noted."),
    )
    events = await desk.say("My name is Kacper")
    assert of(events, ToolStarted)[0].rescued
    assert "Name: Kacper" in desk.memory("knowledge/user.md")
    assert "```" not in "".join(event.text for event in of(events, TextDelta))
    sent = desk.body["messages"]
    assert sent[-2]["tool_calls"][0]["function"]["name"] == "edit_file"
    assert sent[-1]["role"] == "tool"
    assert "```" not in str(sent[2:])


async def test_a_claimed_save_without_a_write_is_said_and_one_key_saves_it(desk: Desk) -> None:
    desk.backend.queue(answer("Great, I've saved that you prefer pnpm!"))
    events = await desk.say("I prefer pnpm over npm.")
    missing = of(events, SaveMissing)
    assert len(missing) == 1
    assert missing[0].claimed
    assert "pnpm" in missing[0].sentence
    assert "pnpm" not in desk.memory("AGENTS.md")
    result = await desk.session.save_sentence(missing[0].message_id, missing[0].sentence, missing[0].target)
    assert result.ok, result.text
    assert "pnpm" in desk.memory("AGENTS.md")
    taken_back = await desk.session.undo()
    assert taken_back.ok
    assert "pnpm" not in desk.memory("AGENTS.md")


@pytest.mark.parametrize(
    "text",
    ["My name is Kacper.", "Mam na imię Kacper.", "Меня зовут Кирилл.", "Zapamiętaj: testy piszemy przed kodem."],
)
async def test_a_plain_statement_that_was_not_saved_is_offered(desk: Desk, text: str) -> None:
    desk.backend.queue(answer("Nice."))
    events = await desk.say(text)
    assert len(of(events, SaveMissing)) == 1


async def test_of_two_statements_the_one_that_was_not_saved_is_offered(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"})),
        answer("Nice to meet you!"),
    )
    missing = of(await desk.say("My name is Kacper and I prefer pnpm"), SaveMissing)
    assert [m.sentence for m in missing] == ["I prefer pnpm"]


async def test_one_key_saves_every_statement_in_its_own_place(desk: Desk) -> None:
    desk.backend.queue(answer("Hello!"))
    missing = of(await desk.say("My name is Kacper and I prefer pnpm"), SaveMissing)[0]
    result = await desk.session.save_sentence(missing.message_id, missing.sentence, missing.target)
    assert result.ok, result.text
    assert "Kacper" in desk.memory("knowledge/user.md")
    assert "pnpm" in desk.memory("AGENTS.md")
    desk.backend.queue(answer("Hello again!"))
    assert not of(await desk.say("My name is Kacper and I prefer pnpm"), SaveMissing)


@pytest.mark.parametrize("text", ["ok thanks", "możesz powtórzyć?", "What does pytest -x do?", "спасибо"])
async def test_small_talk_and_questions_leave_no_trace(desk: Desk, text: str) -> None:
    desk.backend.queue(answer("Sure."))
    events = await desk.say(text)
    assert not of(events, SaveMissing)
    assert not of(events, MemoryChanged)
    assert await desk.session.remembered() == []


async def test_what_the_model_makes_up_waits_for_approval(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("remember", {"fact": "The user is a senior engineer at Contoso"})), answer("Hello Jan!")
    )
    events = await desk.say("Hi, can you explain decorators?")
    assert [e.what for e in of(events, MemoryChanged)] == ["quarantined"]
    assert await desk.session.remembered() == []
    waiting = await desk.session.quarantined()
    assert len(waiting) == 1
    result = await desk.session.approve(waiting[0].ref)
    assert result.ok, result.text
    assert [item.text for item in await desk.session.remembered()] == ["The user is a senior engineer at Contoso"]


async def test_stop_keeps_the_partial_answer_marked_and_the_next_request_is_legal(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script("The first half", gate, " the second half"), answer("Fine."))
    events = []
    async for event in desk.session.send("tell me a story"):
        events.append(event)
        if isinstance(event, TextDelta):
            await desk.session.stop()
    assert desk.last(events).status == "stopped"
    assert desk.last(events).text == "The first half"
    entries = await desk.session.transcript()
    assert (entries[-1].text, entries[-1].status) == ("The first half", "partial")
    await desk.server.log.until(lambda log: any(record.outcome == "disconnected" for record in log.records))
    await desk.say("go on")
    assert legal_problem(desk.body["messages"]) == ""


async def test_every_request_extends_the_one_before_byte_for_byte(desk: Desk) -> None:
    desk.backend.queue(
        answer("One."),
        calling(call("recall", {"query": "pnpm"})),
        answer("Two."),
        calling(call("edit_file", {"path": "AGENTS.md", "old_string": "", "new_string": "- likes tea\n"})),
        answer("Three."),
    )
    for text in ("first", "second", "I like tea."):
        await desk.say(text)
    bodies = [record.body for record in desk.server.chats]
    for before, after in itertools.pairwise(bodies):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]
        assert after["options"] == before["options"]
        assert legal_problem(after["messages"]) == ""


async def test_an_empty_answer_is_retried_once_and_then_said(desk: Desk) -> None:
    desk.backend.queue(faults.empty_answer(), answer("Here I am."))
    events = await desk.say("hello?")
    assert desk.last(events).text == "Here I am."
    desk.backend.queue(faults.empty_answer(), faults.empty_answer())
    events = await desk.say("hello again?")
    assert desk.last(events).status == "empty"
    assert desk.last(events).exit_code == 5
    assert any("no answer" in event.text for event in of(events, Notice))


async def test_an_answer_that_is_only_a_call_to_no_tool_gets_one_retry_in_plain_text(desk: Desk) -> None:
    desk.backend.queue(
        answer('```json\n{"name": "run_command", "arguments": {"command": "pytest --help"}}\n```'),
        answer("It stops at the first failure."),
    )
    events = await desk.say("What does pytest -x do?")
    assert desk.last(events).text == "It stops at the first failure."
    assert "run_command" in desk.body["messages"][-1]["content"]


async def test_the_same_call_is_not_run_twice_and_the_loop_ends(desk: Desk) -> None:
    same = calling(call("recall", {"query": "x"}))
    desk.backend.queue(*[same] * 12)
    events = await desk.say("loop please")
    finished = of(events, ToolFinished)
    assert finished[0].ok
    assert all("already made" in event.result for event in finished[1:4])
    assert len(finished) <= 6
    assert desk.last(events).status == "empty"
    assert legal_problem(desk.session.core.prompt.messages()) == ""


async def test_thinking_is_shown_apart_and_kept_out_of_the_answer(desk: Desk) -> None:
    desk.backend.queue(Script("<think>let me ", "see</thi", "nk>The answer is 4."))
    events = await desk.say("2+2?")
    assert "".join(event.text for event in of(events, ThinkingDelta)).strip() == "let me see"
    assert desk.last(events).text == "The answer is 4."
    entry = (await desk.session.transcript())[-1]
    assert "let me see" in entry.thinking


async def test_thinking_in_the_servers_field_is_shown_too(desk: Desk) -> None:
    desk.backend.queue(Script(Think("hmm"), "Yes."))
    events = await desk.say("really?")
    assert [event.text for event in of(events, ThinkingDelta)] == ["hmm"]
    assert desk.last(events).text == "Yes."


async def test_a_cut_off_answer_is_marked(desk: Desk) -> None:
    desk.backend.queue(faults.too_long("A long story that"))
    events = await desk.say("story")
    assert desk.last(events).status == "cut_off"
    assert (await desk.session.transcript())[-1].status == "cut_off"


async def test_usage_is_measured_by_the_server(desk: Desk) -> None:
    events = await desk.say("hi")
    usage = of(events, ContextUsage)[-1]
    assert usage.measured
    assert usage.num_ctx == 8192
    assert 0 < usage.used < usage.num_ctx


async def test_a_secret_never_reaches_the_disk_but_the_model_sees_it_now(desk: Desk) -> None:
    secret = "AKIA" + "Q5ZL2VXN7TWBD3KC"
    desk.backend.queue(answer("Be careful with that."))
    events = await desk.say(f"my key is {secret}, what now?")
    assert of(events, UserSaved)[0].redacted
    assert secret in desk.body["messages"][-1]["content"]
    await desk.session.close()
    for path in desk.project.memory_dir.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


async def test_a_consumer_that_goes_away_does_not_end_the_turn(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script("one", gate, " two"))
    stream = desk.session.send("go")
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()
    gate.open()
    await desk.session.settled()
    assert (await desk.session.transcript())[-1].text == "one two"
