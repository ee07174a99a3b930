"""Passwords, keys and tokens said in a chat, and said back by the model: on no path does one reach the disk."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Desk, Open, WordEmbedder, of
from tests.faults.counts import SOAK, seed
from tests.faults.looking import files_with
from tui_agent.agent.events import MemoryChanged, Notice, UserSaved
from tui_agent.llm.wire.script import Script, Think, answer, call, calling
from tui_agent.memory.backup import Backups
from tui_agent.memory.extraction import Extractor
from tui_agent.memory.types import NewFact

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases/secrets.jsonl").read_text("utf-8").splitlines()
]  # fmt: skip
POSITIVE = [row for row in ROWS if row["secrets"]]
NEGATIVE = [row for row in ROWS if not row["secrets"]]


class Listening(WordEmbedder):
    """Keeps what it was asked to embed."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
        self.heard += texts
        return await super().embed(texts, kind)


async def say_everywhere(desk: Desk, text: str) -> None:
    """One text on every path on which a session takes text, the model's included."""
    session = desk.session
    await session.save_draft(text)
    desk.backend.queue(
        calling(
            call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": f"- {text}\n"}),
            call("edit_file", {"path": "AGENTS.md", "old_string": "", "new_string": f"- {text}\n"}),
            call("edit_file", {"path": "knowledge/projects/x.md", "old_string": "", "new_string": text}),
        ),
        calling(call("remember", {"fact": text}), call("write_todos", {"todos": [text]})),
        calling(call("recall", {"query": text}), call("search_history", {"query": text})),
        Script(Think(f"They said: {text}"), f"You told me: {text}"),
    )
    events = await desk.say(text)
    message = of(events, UserSaved)[0].message_id
    await session.save_sentence(message, text)
    await session.save_sentence(message, text, "knowledge/user.md")
    await session.set_goal(text)
    fact = session.stores.facts.add(NewFact("", f"The lamp of {message} is green.", "typed"))
    await session.correct(f"fact:{fact.id}", text)
    await session.core.add_item("log", f"line one\n{text}\nline three", summary=text, source="paste")
    (hot,) = [row.id for row in session.core.working.hot() if row.kind == "log"][:1] or [""]
    await session.edit(f"hot:{hot}", text)
    await session.put_away(f"hot:{hot}")
    await session.handoff_draft()
    await session.handoff(text, [text], text, confirmed=True)
    await session.search_history(text)


def secrets_of(rows: list[dict[str, Any]]) -> set[str]:
    """What must be nowhere: the secrets, and of long ones the last twelve characters too. Of a few digits nobody can
    say by the bytes of a database whether they are the secret ones; the filter's own tests cover those."""
    every = {secret for row in rows for secret in row["secrets"] if len(secret) > 5}
    return every | {secret[-12:] for secret in every if len(secret) >= 16}


@pytest.fixture
def listening() -> Listening:
    return Listening()


@pytest.mark.soak
async def test_a_secret_said_and_said_back_is_on_no_path_to_the_disk_the_embedder_or_the_log(
    open_desk: Open, listening: Listening, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tui_agent")
    desk = await open_desk(embedder=listening)
    session = desk.session
    rows = POSITIVE if SOAK else random.Random(seed()).sample(POSITIVE, 20)
    for row in rows:
        await say_everywhere(desk, row["text"])
    desk.backend.queue(answer("Hello."))
    await desk.say("hello there")
    session_id, stores = session.id, session.stores

    async def echo(messages: list[dict[str, str]]) -> str:
        items = [{"fact": row["text"], "quote": row["text"], "category": "fact"} for row in rows]
        return json.dumps(items)

    await Extractor(stores.gate, stores.history, echo, db=stores.db, facts=stores.facts).run(session_id)
    (tmp_path / "project" / "export.json").write_text(json.dumps(stores.facts.export_tier2()), "utf-8")
    stores.ledger.write_facts_json()
    Backups(desk.project).make(stores.db)
    assert files_with(secrets_of(rows), tmp_path) == {}
    await session.close()
    assert files_with(secrets_of(rows), tmp_path) == {}
    said = "\n".join(listening.heard)
    assert [secret for secret in secrets_of(rows) if secret in said] == []
    logged = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("tui_agent"))
    assert [secret for secret in secrets_of(rows) if secret in logged] == []


async def test_text_that_only_looks_like_a_secret_is_stored_as_it_was_said(open_desk: Open) -> None:
    desk = await open_desk()
    for row in NEGATIVE:
        desk.backend.queue(answer(f"You said: {row['text']}"))
        events = await desk.say(row["text"])
        assert not of(events, UserSaved)[0].redacted, row["id"]
        await desk.session.save_draft(row["text"])
        assert await desk.session.load_draft() == row["text"], row["id"]
    said = [entry.text for entry in await desk.session.transcript() if entry.role == "user"]
    assert said == [row["text"] for row in NEGATIVE]
    answers = [entry.text for entry in await desk.session.transcript() if entry.role == "assistant"]
    assert answers == [f"You said: {row['text']}".strip() for row in NEGATIVE]


async def test_the_user_is_told_that_a_secret_was_kept_out_and_the_model_is_told_that_it_was_not_saved(
    desk: Desk,
) -> None:
    row = next(row for row in POSITIVE if len(row["secrets"]) == 1 and "\n" not in row["text"])
    desk.backend.queue(
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": row["text"]})),
        answer("I did not save that."),
    )
    events = await desk.say(row["text"])
    assert any("kept out of the history" in notice.text for notice in of(events, Notice))
    assert "password, key or token" in desk.body["messages"][-1]["content"]
    assert not [event for event in of(events, MemoryChanged) if event.what == "saved"]


async def test_a_secret_is_in_no_summary_when_the_window_is_full(open_desk: Open, tmp_path: Path) -> None:
    desk = await open_desk(num_ctx=2048, keep_messages=4)
    rows = POSITIVE[::7]
    desk.backend.default = answer("\n".join(row["text"] for row in rows)[:1500])
    for row in rows:
        await desk.say(f"{row['text']}\n{'the retry loop in the payments module ' * 12}")
    assert any("Summary of the earlier conversation" in m["content"] for m in desk.body["messages"])
    await desk.session.close()
    assert files_with(secrets_of(rows), tmp_path) == {}
