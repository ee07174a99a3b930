"""Thinking and formats: what models do with them, and what the session makes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.agent.conftest import Desk, Open, of
from tests.faults.ollama_table import play, steady  # noqa: F401
from tui_agent.agent.events import Learned, TextDelta, TextReplaced, ThinkingDelta
from tui_agent.llm.wire.backend import ChatRequest
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.faults import think_unsupported
from tui_agent.llm.wire.script import Say, Script, Think, answer, call, calling

THINKER = model(capabilities=("completion", "tools", "thinking"))
DECISION = "We agreed to go with Redis Streams for the job queue."


def shown(events: Sequence[object]) -> str:
    """What stands on the screen in the end."""
    text = ""
    for event in events:
        if isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, TextReplaced):
            text = event.text
    return text


async def test_a_stray_closing_tag_makes_what_stood_before_it_thinking(open_desk: Open) -> None:
    desk = await open_desk(think=False)
    desk.backend.installed[:] = [THINKER]
    desk.backend.queue(answer("The user wants a port.</think>Port 8080."))
    seen = await play(desk, "G71", "`think: false`, and thinking in the text all the same, with a closing tag only")
    assert desk.body["think"] is False
    assert seen.text == shown(seen.events) == "Port 8080."
    assert (await desk.session.transcript())[-1].thinking.strip() == "The user wants a port."


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("<think>", "</think>"),
        ("<thinking>", "</thinking>"),
        ("<reasoning>", "</reasoning>"),
        ("[THINK]", "[/THINK]"),
        ("<|channel>thought\n", "<channel|>"),
    ],
)
async def test_every_known_pair_of_tags_is_thinking(desk: Desk, before: str, after: str) -> None:
    desk.backend.queue(answer(f"{before}A port.{after}Port 8080."))
    events = await desk.say("Which port?")
    assert shown(events) == desk.last(events).text == "Port 8080."


async def test_tags_inside_code_and_later_in_the_answer_are_text(desk: Desk) -> None:
    text = "Write it like this:\n\n```xml\n<think>a port</think>\n```\n\nPort 8080."
    desk.backend.queue(answer(text))
    seen = await play(desk, "G71b", "an answer about the tags, with a pair of them in a code block")
    assert seen.text == shown(seen.events) == text


async def test_both_tags_in_one_piece_are_seen(desk: Desk) -> None:
    desk.backend.queue(Script(Say("<think>A port.</think>Port 8080.")))
    seen = await play(desk, "G72", "opening and closing tag in one chunk")
    assert shown(seen.events) == "Port 8080."


async def test_tags_cut_over_chunks_are_seen(desk: Desk) -> None:
    desk.backend.queue(Script(*map(Say, "<think>A port.</think>Port 8080.")))
    seen = await play(desk, "G72b", "the same with every character in a chunk of its own")
    assert shown(seen.events) == "Port 8080."
    assert "".join(event.text for event in of(seen.events, ThinkingDelta)) == "A port."


async def test_thinking_in_a_field_of_its_own_is_shown_as_thinking(desk: Desk) -> None:
    desk.backend.queue(Script(Think("A port."), Say("Port 8080.")))
    seen = await play(desk, "G73", "thinking in the field `thinking`")
    assert [event.text for event in of(seen.events, ThinkingDelta)] == ["A port."]
    assert (await desk.session.transcript())[-1].thinking == "A port."


async def test_a_model_that_refuses_to_think_is_asked_without_and_that_is_remembered(open_desk: Open) -> None:
    desk = await open_desk(think=True)
    desk.backend.installed[:] = [THINKER]
    desk.backend.queue(think_unsupported(), "Port 8080.", "Yes.")
    seen = await play(desk, "G74", "400: the model cannot think, although the server says so")
    assert any("cannot think" in notice and "remembered" in notice for notice in seen.notices)
    await desk.say("Sure?")
    assert ["think" in record.body for record in desk.server.chats] == [True, False, False]
    await desk.session.close()
    again = await open_desk(think=True)
    await again.say("Hello?")
    assert "think" not in again.body
    assert not again.session.server.thinking
    again.backend.installed[:] = [model(capabilities=("completion", "tools", "thinking"), digest="another")]
    await again.session.close()
    pulled_anew = await open_desk(think=True)
    await pulled_anew.say("Hello?")
    assert pulled_anew.body["think"] is True


async def test_a_model_that_cannot_think_is_never_asked_to(open_desk: Open) -> None:
    desk = await open_desk(think=True)
    await play(desk, "G74b", "`think: true` for a model that the server says cannot")
    assert "think" not in desk.body


async def left_over(open_desk: Open, *replies: Any) -> Desk:
    """A chat in which an earlier conversation is searched with a format, because nobody did it then."""
    left = await open_desk(check_saves=False, think=True)
    left.backend.installed[:] = [THINKER]
    left.backend.queue("Good.")
    await left.say(DECISION)
    await left.session.close()
    answers = list(replies)

    def job(request: ChatRequest) -> Script | str:
        return answers.pop(0) if answers else "[]"

    left.backend.when(lambda request: request.format is not None, job)
    desk = await open_desk(interactive=True, extract_after_turns=1, check_saves=False, watch=False, think=True)
    desk.session.learner.lull_s = desk.session.learner.quiet_s = 0.01
    return desk


async def test_a_job_for_json_asks_for_no_thinking_once_more_after_prose_and_reads_json_in_prose(
    open_desk: Open,
) -> None:
    fact = {"fact": DECISION, "category": "decision", "importance": 8, "quote": DECISION, "message_id": "m1"}
    wrapped = f"Sure! Here it is:\n```json\n[{json.dumps(fact)},]\n``` Done."
    desk = await left_over(open_desk, "I would say that there is something.", wrapped)
    heard = len(desk.heard)
    await desk.session.start()
    end = desk.server.log
    await end.until(lambda log: sum(bool(one.body.get("format")) for one in log.of("/api/chat")) >= 2)
    await desk.session.learner._task if desk.session.learner._task else None
    (learned,) = of(desk.heard[heard:], Learned)
    jobs = [one.body for one in desk.server.log.of("/api/chat") if one.body.get("format")]
    assert [job["think"] for job in jobs] == [False] * len(jobs)
    assert len(jobs) == 2
    assert not any("tools" in job for job in jobs)
    assert [fact.fact for fact in desk.session.stores.facts.live()] == [DECISION]
    desk.session.learner.quiet_s = 60.0
    seen = await play(
        desk,
        "G75",
        "a background job for JSON on a thinking model: prose, then JSON in prose, a fence, a comma too many",
        also=f"before it: {learned.summary}",
    )
    assert seen.end.status == "answered"


async def test_format_and_tools_never_go_together(open_desk: Open) -> None:
    desk = await left_over(open_desk)
    await desk.session.start()
    await desk.server.log.until(lambda log: any(one.body.get("format") for one in log.of("/api/chat")))
    desk.session.learner.quiet_s = 60.0
    desk.backend.queue(calling(call("recall", {"query": "queue"})), "Port 8080.")
    await play(desk, "G76", "a question with a tool round, after a background job for JSON")
    bodies = [one.body for one in desk.server.log.of("/api/chat")]
    assert any("format" in body for body in bodies)
    assert any("tools" in body for body in bodies)
    assert not any("format" in body and "tools" in body for body in bodies)
    core = desk.session.core
    with pytest.raises(ValueError, match="together"):
        async for _ in core.client.chat(
            core.model, core.prompt.messages(), options=core.options, tools=core.prompt.tools, format="json"
        ):
            pass


async def test_endless_unused_tokens_are_stopped(desk: Desk) -> None:
    desk.backend.default = lambda request: Script(*(Say("<unused50>") for _ in range(2000)))
    seen = await play(desk, "G77", "the token <unused50> for ever")
    assert any("repeated itself" in notice for notice in seen.notices)
    assert len(seen.text) < 6000
    assert desk.server.chats[-1].outcome == "disconnected"
