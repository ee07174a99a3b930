"""The phases of a request: always one of them, with what is left to read, and a stall by its name."""

from __future__ import annotations

import asyncio

import pytest

from tests.agent.conftest import Desk, Open, of
from tui_agent.agent.events import Event, PhaseChanged, TextDelta
from tui_agent.agent.reading import SentPrefix
from tui_agent.agent.waiting import Waiting
from tui_agent.llm.errors import ServerUnreachable
from tui_agent.llm.types import RunningModel
from tui_agent.llm.wire.script import Gate, Script


class Server:
    """Says what is loaded, or nothing at all."""

    def __init__(self, *loaded: str, dead: bool = False) -> None:
        self.loaded = list(loaded)
        self.dead = dead
        self.asked = 0

    async def ps(self) -> list[RunningModel]:
        self.asked += 1
        if self.dead:
            raise ServerUnreachable("No answer.")
        return [RunningModel(name) for name in self.loaded]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.agent.waiting.POLL_S", 0.005)
    monkeypatch.setattr("tui_agent.agent.waiting.DRAIN_S", 0.005)
    monkeypatch.setattr("tui_agent.agent.waiting.STALL_S", 20.0)


async def settled(server: Server, rounds: int = 3) -> None:
    wanted = server.asked + rounds
    while server.asked < wanted:
        await asyncio.sleep(0.002)


async def test_connecting_loading_reading_generating_in_this_order() -> None:
    server, said = Server(), list[Event]()
    waiting = Waiting(server, said.append, "m:latest", 3900, 900)
    await waiting.begin()
    await settled(server)
    server.loaded = ["m"]
    await settled(server)
    waiting.heard()
    waiting.heard()
    waiting.end()
    assert [(event.phase, event.detail) for event in of(said, PhaseChanged)] == [
        ("connecting", ""),
        ("loading", "loading m"),
        ("reading", "reading 3,900 tokens"),
        ("generating", ""),
    ]


async def test_what_is_cached_is_not_counted_as_left_to_read() -> None:
    server, said = Server("m"), list[Event]()
    waiting = Waiting(server, said.append, "m", 3900, 900)
    await waiting.begin()
    await settled(server)
    waiting.end()
    assert of(said, PhaseChanged)[-1].detail == "reading 3,000 tokens"


async def test_a_server_that_does_not_answer_is_named_after_a_while() -> None:
    server, said, now = Server(dead=True), list[Event](), [0.0]
    waiting = Waiting(server, said.append, "m", 100, clock=lambda: now[0])
    await waiting.begin()
    await settled(server)
    assert not any(event.silent_s for event in of(said, PhaseChanged))
    now[0] = 21.0
    await settled(server)
    waiting.end()
    assert [event.silent_s for event in of(said, PhaseChanged) if event.silent_s] == [21.0]


async def test_silence_in_the_middle_is_named_once_and_over_when_data_comes() -> None:
    server, said, now = Server("m"), list[Event](), [0.0]
    waiting = Waiting(server, said.append, "m", 100, clock=lambda: now[0])
    await waiting.begin()
    waiting.heard()
    now[0] = 25.0
    while not any(event.silent_s for event in of(said, PhaseChanged)):
        await asyncio.sleep(0.002)
    await asyncio.sleep(0.02)
    waiting.heard()
    waiting.end()
    assert [(event.phase, event.silent_s) for event in of(said, PhaseChanged)][-2:] == [
        ("generating", 25.0),
        ("generating", 0.0),
    ]


async def test_a_long_load_is_no_stall() -> None:
    server, said, now = Server(), list[Event](), [0.0]
    waiting = Waiting(server, said.append, "m", 100, clock=lambda: now[0])
    await waiting.begin()
    await settled(server)
    now[0] = 400.0
    await settled(server)
    waiting.end()
    assert not any(event.silent_s for event in of(said, PhaseChanged))


async def test_the_second_question_reads_only_what_is_new(desk: Desk) -> None:
    await desk.say("Which port does the server use?")
    gate = Gate()
    desk.backend.queue(Script(gate, "Port 8080."))
    reading = 0
    async for event in desk.session.send("And which host?"):
        if isinstance(event, PhaseChanged) and event.phase == "reading":
            reading = int(event.detail.split()[1].replace(",", ""))
            gate.open()
    total = desk.server.chats[-1].prompt_tokens or 0
    assert 0 < reading < 0.4 * total


async def test_after_a_stop_before_the_first_token_the_next_request_drains(desk: Desk) -> None:
    gate = Gate()
    desk.backend.queue(Script(gate))
    stream = desk.session.send("Which port?")
    async for event in stream:
        if isinstance(event, PhaseChanged) and event.phase == "reading":
            await desk.session.stop()
    events = await desk.say("Which host?")
    assert [event.phase for event in of(events, PhaseChanged)].count("draining") == 1
    assert desk.last(events).status == "answered"
    assert not any(event.phase == "draining" for event in of(await desk.say("Sure?"), PhaseChanged))


async def test_our_own_running_request_is_waited_for_and_named(open_desk: Open) -> None:
    desk = await open_desk()
    await desk.say("Which port?")
    gate = Gate()
    desk.backend.queue(Script(gate, "Aside."))
    core = desk.session.core

    async def aside() -> None:
        async for _ in core.client.chat(core.model, [{"role": "user", "content": "x"}], options=core.options):
            pass

    other = asyncio.create_task(aside())
    await gate.reached()
    events: list[Event] = []
    async for event in desk.session.send("Which host?"):
        events.append(event)
        if isinstance(event, PhaseChanged) and event.phase == "draining":
            gate.open()
    await other
    assert "draining" in [event.phase for event in of(events, PhaseChanged)]
    assert of(events, TextDelta)
    assert desk.server.log.in_flight_max == 1


def test_the_common_beginning_ends_at_the_first_difference() -> None:
    sent = SentPrefix()
    tools, messages = [{"name": "a"}], [{"content": "s"}, {"content": "u"}, {"content": "v"}]
    assert sent.common("m", tools, messages) == 0
    sent.read("m", tools, messages)
    assert sent.common("m", tools, [*messages[:2], {"content": "w"}]) == 2
    assert sent.common("m", [], messages) == 0
    assert sent.common("n", tools, messages) == 0
    sent.forget()
    assert sent.common("m", tools, messages) == 0


@pytest.mark.parametrize("steps", range(5))
async def test_it_ends_also_when_a_look_is_over_in_the_same_instant(steps: int) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    class Slow(Server):
        async def ps(self) -> list[RunningModel]:
            asked.set()
            await gate.wait()
            return await super().ps()

    said = list[Event]()
    waiting = Waiting(Slow(), said.append, "m", 100)
    await waiting.begin()
    await asked.wait()
    gate.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    waiting.end()
    before = len(said)
    assert waiting._task is not None
    await asyncio.wait({waiting._task}, timeout=2)
    assert waiting._task.done()
    assert len(said) == before
