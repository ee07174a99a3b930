"""Edits by hand, pairs of facts and another program's memory, in a session: taken over, or waiting for a yes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import chromadb

from tests.agent.conftest import Desk, of
from tui_agent.agent.events import FileChanged, MemoryChanged, Notice
from tui_agent.memory.types import NewFact

Open = Callable[..., Awaitable[Desk]]


async def begun(desk: Desk) -> Desk:
    """The desk once it has looked for what changed while it was closed."""
    await desk.session.decisions._begun.wait()
    async with desk.session.decisions._one:
        return desk


async def with_facts(desk: Desk, *texts: str) -> None:
    for text in texts:
        desk.session.stores.facts.add(NewFact("", text, "message 1"))
    await desk.session.core.facts_changed()
    await desk.session.core.settled()


def edit(desk: Desk, change: Callable[[dict[str, Any]], object]) -> None:
    path = desk.project.facts_json_path
    data = json.loads(path.read_text("utf-8"))
    change(data)
    path.write_text(json.dumps(data, ensure_ascii=False, indent=2), "utf-8")


def says(desk: Desk) -> list[str]:
    return [fact.fact for fact in desk.session.stores.facts.live()]


def add_tagged(data: dict[str, Any]) -> None:
    data["facts"].append({"fact": "Releases are tagged.", "updated": "2026-05-31"})


async def test_an_edit_of_facts_json_while_the_app_runs_is_taken_over_said_and_undone(open_desk: Open) -> None:
    desk = await begun(await open_desk(interactive=True))
    await with_facts(desk, "We deploy on Fridays.")
    edit(desk, add_tagged)
    await desk.session._files_edited({desk.project.facts_json_path})
    assert "Releases are tagged." in says(desk)
    assert [event.what for event in of(desk.heard, MemoryChanged)] == ["saved"]
    assert of(desk.heard, FileChanged)[-1].diff == "1 added"
    assert (await desk.session.undo()).ok
    assert "Releases are tagged." not in says(desk)


async def test_the_watcher_itself_notices_the_edit(open_desk: Open) -> None:
    desk = await begun(await open_desk(interactive=True))
    await desk.session.watching()
    await with_facts(desk, "We deploy on Fridays.")
    edit(desk, add_tagged)
    for _ in range(500):
        if "Releases are tagged." in says(desk):
            break
        await asyncio.sleep(0.02)
    assert "Releases are tagged." in says(desk)


async def test_what_was_changed_while_the_app_was_closed_waits_for_one_yes(open_desk: Open) -> None:
    desk = await begun(await open_desk(interactive=True))
    await with_facts(desk, "We deploy on Fridays.")
    await desk.session.close()
    edit(desk, add_tagged)
    again = await begun(await open_desk(interactive=True))
    assert says(again) == ["We deploy on Fridays."]
    assert any("changed while the app was not running: 1 added" in n.text for n in of(again.heard, Notice))
    (item,) = await again.session.quarantined()
    assert (item.ref, item.text) == ("quarantine:file:facts.json", "facts.json: 1 added")
    assert (await again.session.inspect(item.ref)).fields[0].value.endswith("Releases are tagged.")
    result = await again.session.approve("file:facts.json")
    assert result.ok, result.text
    assert "Releases are tagged." in says(again)
    assert await again.session.quarantined() == []


async def test_a_no_keeps_what_is_remembered_and_the_edited_file_as_a_version(open_desk: Open) -> None:
    desk = await begun(await open_desk(interactive=True))
    await with_facts(desk, "We deploy on Fridays.")
    await desk.session.close()
    edit(desk, add_tagged)
    again = await begun(await open_desk(interactive=True))
    result = await again.session.reject("file:facts.json")
    assert "is kept as backups/files/facts.json/" in result.text
    assert says(again) == ["We deploy on Fridays."]
    assert "Releases" not in again.memory("facts.json")


async def test_a_broken_facts_json_is_said_once_and_nothing_is_lost(open_desk: Open) -> None:
    desk = await begun(await open_desk(interactive=True))
    await with_facts(desk, "We deploy on Fridays.")
    desk.project.facts_json_path.write_text('{\n  "facts": [\n', "utf-8")
    for _ in range(2):
        await desk.session._files_edited({desk.project.facts_json_path})
    said = [n.text for n in of(desk.heard, Notice) if "facts.json, line" in n.text]
    assert len(said) == 1
    assert says(desk) == ["We deploy on Fridays."]
    assert desk.memory("facts.json") == '{\n  "facts": [\n'


async def test_every_line_that_is_refused_is_named_and_only_what_was_taken_over_is_counted(open_desk: Open) -> None:
    desk = await begun(await open_desk(interactive=True))
    await with_facts(desk, "We deploy on Fridays.")

    def add_three(data: dict[str, Any]) -> None:
        add_tagged(data)
        data["facts"] += [{"fact": "The build is red."}, {"fact": "There are 214 tests."}]

    edit(desk, add_three)
    await desk.session._files_edited({desk.project.facts_json_path})
    assert of(desk.heard, FileChanged)[-1].diff == "1 added"
    refused = [notice for notice in of(desk.heard, Notice) if "was not taken over" in notice.text]
    desk.project.facts_json_path.write_text('{\n  "facts": [\n', "utf-8")
    await desk.session._files_edited({desk.project.facts_json_path})
    broken = [notice for notice in of(desk.heard, Notice) if "facts.json, line" in notice.text]
    assert (len(refused), len(broken)) == (2, 1)
    assert len({notice.key for notice in (*refused, *broken)}) == 3  # a key is shown once


async def test_two_facts_that_say_the_same_wait_as_a_pair_and_are_merged_or_left(open_desk: Open) -> None:
    desk = await begun(await open_desk(interactive=True))
    await with_facts(desk, "We deploy on Fridays.", "We deploy on Fridays!!", "Tests come first.", "Tests come first?")
    rows = desk.session.stores.db.rows("SELECT id FROM memory")
    assert len(rows) == 4
    assert (await desk.session.consolidate(everything=True)).text == "2 pairs wait for your yes."
    first, second = await desk.session.quarantined()
    assert len(says(desk)) == 4  # nothing is decided without the user
    result = await desk.session.approve(first.ref.partition(":")[2])
    assert result.ok, result.text
    assert len(says(desk)) == 3
    assert (await desk.session.reject(second.ref.partition(":")[2])).ok
    assert await desk.session.quarantined() == []
    assert (await desk.session.undo()).ok
    assert len(says(desk)) == 4


async def test_a_memory_that_the_articles_own_script_wrote_is_offered_and_imported_through_the_gate(
    open_desk: Open,
) -> None:
    desk = await open_desk()
    project = desk.project
    await desk.session.close()
    client = chromadb.PersistentClient(path=str(project.vector_dir))
    collection = client.get_or_create_collection(f"pamiec-{project.id}", embedding_function=None)
    for number, text in enumerate(("Projekt używa wzorca Repository.", "Hasło: " + "Zaq1" + "2wsxCde3")):
        collection.upsert(
            ids=[f"fact-{number}"], embeddings=[[0.1, 0.2]], documents=[text],
            metadatas=[{"category": "konwencja", "importance": 8, "timestamp": 1755216000.0}],
        )  # fmt: skip
    client.close()
    again = await begun(await open_desk(interactive=True))
    (item,) = await again.session.quarantined()
    assert item.ref == "quarantine:legacy:store"
    result = await again.session.approve("legacy:store")
    assert result.ok, result.text
    assert "1 refused" in result.text
    (fact,) = again.session.stores.facts.live()
    assert (fact.fact, fact.importance, fact.created_at[:10]) == ("Projekt używa wzorca Repository.", 8, "2025-08-15")
    assert await again.session.quarantined() == []
