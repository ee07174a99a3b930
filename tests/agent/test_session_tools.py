"""Tools on offer or not: for one message, for the session, and where there are none anyway."""

from __future__ import annotations

from tests.agent.conftest import Desk, Open
from tui_agent.agent.prompt import legal_problem
from tui_agent.llm.wire.script import call, calling


async def test_one_message_goes_without_tools_and_the_next_has_them_again(desk: Desk) -> None:
    await desk.say("Is there a port?")
    assert (await desk.session.offer_tools("once")).ok
    assert not desk.session.server.tools
    assert "next one without tools" in desk.session.server.degraded
    await desk.say("hello")
    assert "tools" not in desk.body
    assert desk.session.server.tools
    await desk.say("And now?")
    assert desk.body["tools"]
    assert legal_problem(desk.body["messages"]) == ""


async def test_a_switch_during_an_answer_counts_from_the_next_message(desk: Desk) -> None:
    desk.backend.queue(calling(call("recall", {"query": "port"})), "Yes.", "Hello.")
    async for event in desk.session.send("Is there a port?"):
        if type(event).__name__ == "ToolStarted":
            await desk.session.offer_tools("once")
    assert desk.body["tools"]
    await desk.say("hello")
    assert "tools" not in desk.body


async def test_off_lasts_until_on_and_not_longer_than_the_session(desk: Desk) -> None:
    await desk.session.offer_tools("off")
    for text in ("One?", "Two?"):
        await desk.say(text)
        assert "tools" not in desk.body
    assert "never say that you saved something" in desk.body["messages"][0]["content"]
    await desk.session.offer_tools("on")
    await desk.say("Three?")
    assert desk.body["tools"]
    await desk.session.offer_tools("off")
    await desk.session.switch("new")
    await desk.say("Four?")
    assert desk.body["tools"]


async def test_where_there_are_none_the_switch_says_why(open_desk: Open) -> None:
    desk = await open_desk(tools=False)
    on = await desk.session.offer_tools("on")
    assert not on.ok
    assert "tools: false" in on.text
    assert (await desk.session.offer_tools("once")).ok
    await desk.say("hello")
    assert "tools" not in desk.body
