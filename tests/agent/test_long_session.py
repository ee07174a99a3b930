"""Thirty turns as a good guest: one request at a time, nothing loaded twice, the prefix kept."""

from __future__ import annotations

import asyncio

from tests.agent.conftest import Open, of
from tui_agent.agent.events import Notice, PhaseChanged
from tui_agent.llm.wire.backend import ChatRequest
from tui_agent.llm.wire.catalog import embed_model
from tui_agent.llm.wire.script import Script, answer, call, calling

STATEMENTS = (
    "We deploy on Fridays.",
    "I prefer pnpm over npm.",
    "The server uses port 8080.",
    "We write tests first in payments.",
    "Migrations run through Alembic.",
)


def replies(request: ChatRequest) -> Script:
    """A tool call for every third question, a long answer else."""
    last = request.messages[-1]
    text = str(last.get("content", ""))
    if last["role"] == "user" and "Recall" in text and request.tools:
        return calling(call("recall", {"query": text[-30:]}))
    if request.format is not None or "JSON" in text:
        return answer("[]")
    return answer(" ".join(f"Point {number} about {len(request.messages)}." for number in range(40)))


async def test_thirty_turns_with_recalls_summaries_and_embeddings_reload_nothing(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=4096)
    desk.backend.installed.append(embed_model())
    desk.session._connection.given_embedder = None
    desk.backend.default = replies
    await desk.session.start()
    while not any(isinstance(event, PhaseChanged) and event.phase == "idle" for event in desk.heard):
        await asyncio.sleep(0.01)
    summaries = 0
    for number in range(30):
        words = STATEMENTS[number % 5] if number % 3 == 0 else f"Question {number}: what about part {number}?"
        events = await desk.say(f"Recall it. {words}" if number % 3 == 1 else words)
        assert desk.last(events).status in ("answered", "cut_off"), desk.last(events)
        summaries += sum("summarised" in notice.text for notice in of(events, Notice))
        await desk.session.hot()
    await desk.session.core.settled()
    await desk.server.log.until(lambda log: log.in_flight == 0)

    debug = desk.backend.debug()
    assert debug["reloads"] == 0
    assert debug["evictions"] == 0
    assert debug["loads"] == 2  # the chat model and the embedding model
    assert desk.server.log.in_flight_max == 1
    assert len(desk.server.log.of("/api/embed")) >= 30
    assert summaries >= 2
    assert all(record.notes["dropped_messages"] == 0 for record in desk.server.chats)
    assert {record.body["options"]["num_ctx"] for record in desk.server.chats} == {4096}
    assert not [notice for notice in of(desk.heard, Notice) if notice.key == "swapping"]
