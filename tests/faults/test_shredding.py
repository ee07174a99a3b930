"""Statements said in a real session reach every place a session writes to; deleted forever, none is left in any."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest

from tests.agent.conftest import Desk, Open, of
from tests.faults.counts import seed, share
from tests.faults.looking import files_with
from tui_agent.agent.events import MemoryChanged, ToolFinished, UserSaved
from tui_agent.llm.wire.script import Script, Think, call, calling
from tui_agent.memory.backup import Backups
from tui_agent.memory.extraction import Extractor
from tui_agent.memory.types import Origin, Proposal

LETTERS = string.ascii_lowercase + "ąćęłńóśźżабвгдежзийклмн"


def statement(chance: random.Random) -> tuple[str, str]:
    """Something a user may say of themselves, and the part of it that nothing else says."""
    name = "".join(chance.choices(LETTERS, k=12))
    return f"I keep my {name} book behind the old lamp.", name


def saving(said: str, number: int) -> list[Script]:
    """The model saves it, each time by another tool or into another file, looks for it and repeats it."""
    save = (
        call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": f"- {said}\n"}),
        call("edit_file", {"path": "AGENTS.md", "old_string": "", "new_string": f"- {said}\n"}),
        call("remember", {"fact": said}),
    )[number % 3]
    return [
        calling(save, call("write_todos", {"todos": [f"think of this: {said}"]})),
        calling(call("recall", {"query": said}), call("search_history", {"query": said})),
        Script(Think(f"They told me: {said}"), f"I noted it: {said}"),
    ]


async def spread(desk: Desk, said: str, name: str, number: int) -> str:
    """Says it on every path; returns the fact's reference."""
    session = desk.session
    desk.backend.queue(*saving(said, number))
    events = await desk.say(said)
    saved = [event for event in of(events, MemoryChanged) if event.zone == "fact" and event.what != "quarantined"]
    assert saved, [event.result for event in of(events, ToolFinished)]
    await session.set_goal(f"find the {name} book")
    await session.core.add_item("log", f"line one\n{said}\nline three", summary=said, source=f"about {name}")
    hot = next(row for row in session.core.working.hot() if name in row.text)
    await session.edit(f"hot:{hot.id}", f"line one, changed\n{said}\nline three")
    await session.put_away(f"hot:{hot.id}")
    await desk.say(f"Where is my {name} book?")
    await session.save_draft(f"and again: {said}")
    session.stores.facts.quarantine(Proposal(said, Origin.MODEL, "remember", "message 1"), "made up", "origin")
    await desk.session.stores.db.run(session.stores.history.append, session.id, "notice", f"Summary: {said}")
    (desk.project.summaries_dir / f"{number}.md").write_text(f"They said: {said}\n", "utf-8")
    with (desk.project.logs_dir / "app.log").open("a", encoding="utf-8") as log:
        log.write(f"12:00:00 {said}\n")
    return f"fact:{saved[0].id}"


@pytest.mark.soak
async def test_statements_said_in_a_session_and_deleted_forever_are_in_no_file_also_after_a_restart_and_re_extraction(
    open_desk: Open, tmp_path: Path
) -> None:
    chance = random.Random(seed())
    desk = await open_desk()
    session = desk.session
    said_all: list[str] = []
    left = share(100)
    while left:  # in parts, because no more than 40 notes about the user are kept at a time
        every: list[tuple[str, str, str]] = []
        for _ in range(min(left, 20)):
            said, name = statement(chance)
            if len(every) % 4 == 3:
                await session.switch("new")
            every.append((said, name, await spread(desk, said, name, len(said_all) + len(every))))
            if len(every) % 8 == 1:
                Backups(desk.project).make(session.stores.db, "before change")
        Backups(desk.project).make(session.stores.db)
        names = [name for _, name, _ in every]
        assert set(files_with(names, tmp_path)) == set(names)
        for said, _, ref in every:
            result = await session.delete_forever(ref)
            assert result.ok, (said, result.text)
        left -= len(every)
        said_all += [said for said, _, _ in every]
    assert files_with(said_all, tmp_path) == {}
    await desk.say("hello again")
    session_ids = [row.id for row in await session.sessions()]
    await session.close()
    assert files_with(said_all, tmp_path) == {}

    again = await open_desk(resume=session_ids[-1])
    await again.say("and once more")
    assert not any(said in json.dumps(again.body, ensure_ascii=False) for said in said_all)
    stores = again.session.stores

    async def echo(messages: list[dict[str, str]]) -> str:
        return json.dumps([{"fact": said, "quote": said, "category": "fact"} for said in said_all])

    extractor = Extractor(stores.gate, stores.history, echo, db=stores.db, facts=stores.facts)
    for session_id in session_ids:
        report = await extractor.run(session_id)
        assert report.kept == report.waiting == ()
    for said in said_all:  # and from a file that came from elsewhere
        stores.gate.admit(Proposal(said, Origin.IMPORT, "import", "facts.json", quote=said))
    assert [fact.fact for fact in stores.facts.live()] == []
    await again.session.close()
    assert files_with(said_all, tmp_path) == {}


async def test_a_statement_deleted_by_mistake_in_another_session_leaves_the_one_that_is_open(open_desk: Open) -> None:
    first = await open_desk()
    first.backend.queue(*saving("I keep my heron book behind the old lamp.", 0))
    events = await first.say("I keep my heron book behind the old lamp.")
    fact = next(event for event in of(events, MemoryChanged) if event.zone == "fact")
    old = first.session.id
    await first.session.switch("new")
    message = of(await first.say("Something else."), UserSaved)[0]
    assert (await first.session.delete_forever(f"fact:{fact.id}")).ok
    assert [entry.text for entry in await first.session.transcript() if entry.message_id == message.message_id] == [
        "Something else."
    ]
    await first.session.switch(old)
    texts = [entry.text for entry in await first.session.transcript() if entry.role == "user"]
    assert texts == ["[deleted]"]
