"""Whatever happens to Chroma's folder: facts are found, the user is told how to mend it, and nothing is lost."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.conftest import Desk, Open, of
from tests.faults.counts import seed
from tui_agent.agent.events import Notice
from tui_agent.memory.types import NewFact

TEXTS = (
    "We deploy on Fridays",
    "The code style is black",
    "The database is PostgreSQL",
    "Reviews need two people",
    "Tests are written before code",
)


async def idle(desk: Desk) -> None:
    """Until the index has taken over what it was given."""
    session = desk.session
    while session._background:
        await asyncio.gather(*session._background, return_exceptions=True)
    await session.core.settled()
    assert session._keeper is not None
    await session._keeper.settled()


async def begun(open_desk: Open) -> Desk:
    """A session that has started, with its index at work."""
    desk = await open_desk(interactive=True)
    await desk.session.start()
    await idle(desk)
    return desk


async def filled(open_desk: Open) -> Desk:
    """A session with some facts, all in the index."""
    desk = await begun(open_desk)
    for text in TEXTS:
        desk.session.stores.facts.add(NewFact("", text, "message 1"))
    await desk.session.core.facts_changed()
    await idle(desk)
    assert desk.session.index.state == "ready"
    return desk


async def nothing_is_lost(desk: Desk) -> None:
    """All facts are there, and each is found."""
    assert {item.text for item in await desk.session.remembered()} == set(TEXTS)
    for text in TEXTS:
        record = await desk.session.core.recaller.recall(text, threshold=-1, top_k=3)
        assert record.items[0].text == text


def deleted(folder: Path) -> None:
    shutil.rmtree(folder)


def truncated(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size // 2)


def emptied(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")


def garbage(folder: Path) -> None:
    chance = random.Random(seed())
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(chance.randbytes(max(1, path.stat().st_size)))


def replaced_by_a_file(folder: Path) -> None:
    """Nobody, root included, can write into this."""
    shutil.rmtree(folder)
    folder.write_bytes(b"this is no folder")


DAMAGE = [deleted, truncated, emptied, garbage, replaced_by_a_file]


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_folder_damaged_while_the_app_was_closed_costs_nothing(
    open_desk: Open, damage: Callable[[Path], None]
) -> None:
    first = await filled(open_desk)
    await first.session.close()
    damage(first.project.vector_dir)
    desk = await begun(open_desk)
    await nothing_is_lost(desk)
    result = await desk.session.reindex()
    assert result.ok, result.text
    assert desk.session.index.rows == len(TEXTS)
    desk.session.core.recaller.index_patience_s = 20  # a question does not wait as long for the index
    record = await desk.session.core.recaller.recall(TEXTS[0], threshold=-1)
    assert record.extra["index"] == "chroma"


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_folder_damaged_under_the_running_app_costs_nothing(
    open_desk: Open, damage: Callable[[Path], None]
) -> None:
    desk = await filled(open_desk)
    damage(desk.project.vector_dir)
    await nothing_is_lost(desk)
    desk.session.stores.facts.add(NewFact("", "Releases are tagged", "message 2"))
    await desk.session.core.facts_changed()
    await idle(desk)
    record = await desk.session.core.recaller.recall("Releases are tagged", threshold=-1, top_k=3)
    assert record.items[0].text == "Releases are tagged"
    events = await desk.say("When do we deploy?")
    assert desk.last(events).status == "answered"
    result = await desk.session.reindex()
    assert result.ok, result.text
    assert desk.session.index.rows == len(TEXTS) + 1


async def test_a_place_that_cannot_be_written_leaves_exact_search_and_says_how_to_rebuild(open_desk: Open) -> None:
    first = await filled(open_desk)
    await first.session.close()
    lock = first.project.lock_path
    lock.unlink()
    lock.mkdir()  # the lock cannot be taken, so nobody may write the folder: as on a read-only disk, also for root
    desk = await begun(open_desk)
    assert (desk.session.index.state, desk.session.index.search) == ("exact", "exact")
    assert desk.session.server.degraded == ("exact search",)
    assert any("/reindex makes it anew" in notice.text for notice in of(desk.heard, Notice))
    await nothing_is_lost(desk)
    assert not (await desk.session.reindex()).ok
    lock.rmdir()
    assert (await desk.session.reindex()).ok
    assert desk.session.index.state == "ready"
    assert desk.session.server.degraded == ()
