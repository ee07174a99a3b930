"""Downloads from the scripted server over real sockets: every way they go, as people follow them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from itertools import pairwise

import pytest

from tui_agent.llm.client import ModelClient
from tui_agent.llm.errors import BadRequest, ModelMissing, ServerUnreachable, StreamBroken, StreamIncomplete
from tui_agent.llm.pulling import PullState, follow_pull
from tui_agent.llm.types import PullProgress
from tui_agent.llm.wire import pulls
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer

NAME = "qwen3:4b"
SIZES = (400, 100)


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    async with WireServer(ScriptedBackend()) as running:
        yield running


@pytest.fixture
async def client(server: WireServer) -> AsyncIterator[ModelClient]:
    async def at_once(seconds: float) -> None:
        return None

    made = ModelClient(server.url, sleep=at_once)
    yield made
    await made.aclose()


def plan(server: WireServer, *plans: tuple[pulls.PullStep, ...]) -> None:
    server.backend.queue_pulls(NAME, *plans)  # type: ignore[attr-defined]


async def pulled(client: ModelClient, **more: float) -> list[PullState]:
    return [state async for state in follow_pull(client, NAME, **more)]


async def test_progress_by_layer_up_to_success_and_the_model_is_there(server: WireServer, client: ModelClient) -> None:
    plan(server, pulls.whole(*SIZES))
    states = await pulled(client)
    assert [one.name for one in await client.tags()][-1] == NAME
    last = states[-1]
    assert (last.done, last.share, last.completed, last.total) == (True, 1.0, 500, 500)
    assert len(last.layers) == 2
    assert [state.done for state in states[:-1]] == [False] * (len(states) - 1)
    assert all(before.share <= after.share for before, after in pairwise(states))


async def test_a_download_that_goes_backwards_is_shown_going_forwards(server: WireServer, client: ModelClient) -> None:
    plan(server, pulls.backwards(1000))
    states = await pulled(client)
    shown = [state.completed for state in states if state.layers and not state.done]
    assert shown == sorted(shown)
    assert max(shown) == 1000
    assert all(before.share <= after.share for before, after in pairwise(states))


async def test_a_layer_that_is_announced_late_does_not_turn_the_share_back() -> None:
    class Lines:
        async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
            yield PullProgress("pulling a", "sha256:a", 100, 90)
            yield PullProgress("pulling b", "sha256:b", 900, 0)
            yield PullProgress("success")

    states = [state async for state in follow_pull(Lines(), NAME)]
    assert [state.share for state in states] == [0.9, 0.9, 1.0]
    assert [state.layers[0].digest for state in states] == ["a", "a", "a"]


async def test_a_stall_is_named_with_its_age_and_ends_when_data_comes(server: WireServer, client: ModelClient) -> None:
    plan(server, pulls.stalled(*SIZES, at=200, seconds=0.3))
    states = await pulled(client, stall_s=0.05)
    silent = [state.silent_s for state in states if state.silent_s]
    assert silent
    assert min(silent) >= 0.05
    assert states[-1].done
    assert states[-1].silent_s == 0


async def test_a_cut_download_goes_on_where_it_stopped(server: WireServer, client: ModelClient) -> None:
    plan(server, pulls.cut_off(*SIZES, at=200), pulls.broken_off(*SIZES, at=300), pulls.whole(*SIZES))
    states = await pulled(client)
    assert states[-1].done
    assert states[-1].resumed == 2
    completed = [state.completed for state in states]
    assert completed == sorted(completed)
    assert len(server.log.of("/api/pull")) == 3
    assert any("going on where it stopped (1 of 3)" in state.status for state in states)


async def test_after_three_retries_it_fails_and_a_later_pull_goes_on(server: WireServer, client: ModelClient) -> None:
    plan(server, *(pulls.cut_off(*SIZES, at=200) for _ in range(4)), pulls.whole(*SIZES))
    with pytest.raises((StreamBroken, StreamIncomplete)):
        await pulled(client)
    assert len(server.log.of("/api/pull")) == 4
    states = await pulled(client)
    assert next(state.completed for state in states if state.layers) == 200
    assert states[-1].done


async def test_an_end_without_success_is_no_success(server: WireServer, client: ModelClient) -> None:
    plan(server, pulls.no_success(*SIZES))
    with pytest.raises(StreamIncomplete, match="before the model was complete"):
        await pulled(client)
    assert NAME not in [one.name for one in await client.tags()]


@pytest.mark.parametrize(
    ("steps", "error", "words"),
    [
        (pulls.disk_full(*SIZES, at=200), BadRequest, "too full"),
        (pulls.unknown_model(), ModelMissing, "no model called qwen3:4b"),
        (pulls.offline(), ServerUnreachable, "cannot reach the place"),
    ],
    ids=["disk full", "unknown model", "offline"],
)
async def test_what_cannot_succeed_ends_with_a_sentence(
    server: WireServer, client: ModelClient, steps: tuple[pulls.PullStep, ...], error: type[Exception], words: str
) -> None:
    plan(server, steps)
    with pytest.raises(error, match=words):
        await pulled(client)


async def test_a_full_disk_is_no_loss_once_there_is_room(server: WireServer, client: ModelClient) -> None:
    plan(server, pulls.disk_full(*SIZES, at=200), pulls.whole(*SIZES))
    with pytest.raises(BadRequest):
        await pulled(client)
    assert len(server.log.of("/api/pull")) == 1
    states = await pulled(client)
    assert next(state.completed for state in states if state.layers) == 200


async def test_leaving_cancels_the_download_and_keeps_what_arrived(server: WireServer, client: ModelClient) -> None:
    plan(server, pulls.stalled(*SIZES, at=200), pulls.whole(*SIZES))
    async with aclosing(follow_pull(client, NAME)) as states:
        async for state in states:
            if state.completed == 200:
                break
    await server.log.until(lambda log: log.of("/api/pull")[0].finished_at is not None)
    assert server.log.of("/api/pull")[0].outcome == "disconnected"
    assert next(state.completed for state in await pulled(client) if state.layers) == 200


async def test_a_cancelled_task_closes_the_connection(server: WireServer, client: ModelClient) -> None:
    plan(server, pulls.stalled(*SIZES, at=200))
    task = asyncio.create_task(pulled(client, stall_s=60))
    await server.log.until(lambda log: any(one.first_byte_at is not None for one in log.of("/api/pull")))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.log.until(lambda log: log.of("/api/pull")[0].outcome == "disconnected")


def test_speed_and_time_left_come_from_the_last_seconds() -> None:
    clock = [0.0]

    class Steady:
        async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
            for number in range(1, 11):
                clock[0] += 1.0
                yield PullProgress("pulling a", "sha256:a", 1000, number * 50)

    async def run() -> PullState:
        return [state async for state in follow_pull(Steady(), NAME, clock=lambda: clock[0])][-1]

    last = asyncio.run(run())
    assert last.bytes_per_second == pytest.approx(50)
    assert last.seconds_left == pytest.approx(10)
