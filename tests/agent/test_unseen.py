"""A prompt whose beginning the server cut away is noticed, said, and healed by a key."""

from __future__ import annotations

import pytest

from tests.agent.conftest import Desk, Open, of
from tui_agent.agent.events import Event, Notice, NotSeen
from tui_agent.agent.prompt import legal_problem
from tui_agent.agent.unseen import Reading
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.script import answer, call, calling

LONG = "the retry loop in the payments module treats a gateway that answers 503 like a slow one " * 8


@pytest.mark.parametrize(
    ("reading", "cut"),
    [
        (Reading(sent=3000, read=2900, asked=4096), False),
        (Reading(sent=3000, read=None, asked=4096), False),
        (Reading(sent=200, read=20, asked=4096), False),
        # The server really has a smaller window, which the prompt did not fit into.
        (Reading(sent=3000, read=1600, asked=4096, window=2048, new=100), True),
        (Reading(sent=1500, read=700, asked=4096, window=2048, new=100), False),
        # Half of a full window: how some servers cut a prompt that is too long.
        (Reading(sent=4000, read=2050, asked=4096, new=100), True),
        # Only what was new was counted: the server leaves out what it had in its cache. That proves nothing.
        (Reading(sent=3800, read=140, asked=4096, new=120, before=3700), False),
        # It should have grown by 200 and did not: one old message fell out at the edge of the window.
        (Reading(sent=2600, read=2510, asked=4096, new=200, before=2500, window=2560), True),
        (Reading(sent=2600, read=2510, asked=4096, new=200, before=2500), False),
        # Less than the request before it, which this one extends.
        (Reading(sent=2500, read=1700, asked=4096, new=200, before=2300), True),
        (Reading(sent=2500, read=1700, asked=4096, new=200, before=2300, cached=0), True),
        # A count far below the estimate alone: neither is to be trusted.
        (Reading(sent=2000, read=900, asked=8192, new=300), False),
        (Reading(sent=2000, read=900, asked=8192, new=300, cached=0), False),
    ],
)
def test_a_low_count_is_a_cut_only_when_something_else_says_so_too(reading: Reading, cut: bool) -> None:
    assert reading.cut is cut


async def fill(desk: Desk) -> list[Event]:
    """Talk until the server, whose window is smaller than it was asked for, cuts the beginning away."""
    desk.backend.runners.most_ctx = 2560
    for number in range(12):
        desk.backend.queue(
            calling(call("read_file", {"path": "big.py", "start_line": 1 + number})), answer("It retries.")
        )
        events = await desk.say(f"question {number}: {LONG}")
        if found := of(events, NotSeen):
            assert len(found) == 1
            return events
    raise AssertionError("the server never cut anything away")


async def test_a_cut_beginning_is_marked_in_the_turn_and_after_a_restart(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=4096)
    (desk.project.root / "big.py").write_text("def retry(order):\n    return order\n" * 10, "utf-8")
    events = await fill(desk)
    unseen = of(events, NotSeen)[0]
    assert unseen.window == 2560
    assert unseen.read < unseen.sent
    assert unseen.larger == 0, "the server gives no more, so a larger window is not offered"
    assert unseen.tool_tokens > 0
    assert any(record.notes.get("dropped_messages") for record in desk.server.chats)
    assert unseen in [entry.unseen for entry in await desk.session.transcript()]
    await desk.session.close()
    again = await open_desk(resume="continue", num_ctx=4096)
    assert unseen in [entry.unseen for entry in await again.session.transcript()]


async def test_from_then_on_nothing_larger_than_the_real_window_is_sent(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=4096)
    (desk.project.root / "big.py").write_text("def retry(order):\n    return order\n" * 10, "utf-8")
    await fill(desk)
    before = len(desk.server.chats)
    for number in range(4):
        events = await desk.say(f"and {number}? {LONG}")
        assert not of(events, NotSeen)
    for record in desk.server.chats[before:]:
        assert record.notes.get("dropped_messages", 0) == 0
        assert (record.prompt_tokens or 0) <= 2560 - record.body["options"]["num_predict"]


async def test_without_tool_output_the_question_is_asked_again_and_the_history_stays_legal(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=4096)
    (desk.project.root / "big.py").write_text("def retry(order):\n    return order\n" * 10, "utf-8")
    await fill(desk)
    entries = len(await desk.session.transcript())
    desk.backend._queue.clear()
    desk.backend.queue(answer("Now I see all of it."))
    events = [event async for event in desk.session.retry("shorter")]
    assert desk.last(events).text == "Now I see all of it."
    assert not of(events, NotSeen)
    messages = desk.body["messages"]
    assert legal_problem(messages) == ""
    assert "def retry" not in str(messages)
    assert sum(LONG in str(m["content"]) and m["role"] == "user" for m in messages) >= 1
    transcript = await desk.session.transcript()
    assert (
        len([e for e in transcript if e.role != "notice"])
        == len([e for e in transcript[:entries] if e.role != "notice"]) + 1
    ), "the question is in the history once, and the first answer stays"


async def test_a_prompt_the_server_refuses_as_too_long_offers_a_larger_window(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=4096)
    await desk.say("hello")
    desk.backend.queue(faults.context_exceeded(prompt=9412, num_ctx=4096))
    events = await desk.say("and now?")
    unseen = of(events, NotSeen)[0]
    assert unseen.refused
    assert unseen.larger == 8192
    assert desk.last(events).error_kind == "context_exceeded"
    desk.backend.queue(answer("With more room it works."))
    again = [event async for event in desk.session.retry("larger")]
    assert desk.last(again).text == "With more room it works."
    assert desk.body["options"]["num_ctx"] == 8192
    assert any("8,192" in notice.text for notice in of(desk.heard, Notice))
    assert legal_problem(desk.body["messages"]) == ""
    assert [m["content"] for m in desk.body["messages"] if m["role"] == "user"][-1].endswith("and now?")
    assert sum("and now?" in str(m["content"]) for m in desk.body["messages"]) == 1


async def test_a_count_without_cached_tokens_is_no_alarm(desk: Desk) -> None:
    from tui_agent.llm.wire.script import Done, Script

    for number in range(4):
        desk.backend.queue(Script(f"Answer {number}.", Done(prompt_eval_count=60)))
        events = await desk.say(f"question {number}: {LONG}")
        assert not of(events, NotSeen)


async def test_retrying_without_a_question_is_a_sentence(desk: Desk) -> None:
    with pytest.raises(LookupError, match="no question"):
        async for _ in desk.session.retry("larger"):
            pass
