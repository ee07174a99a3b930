"""What a model cannot do is said, and the chat goes on with what it can."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.conftest import WordEmbedder, of
from tui_agent.agent.events import Event, Notice, SaveMissing, ThinkingDelta, TurnFinished
from tui_agent.agent.session import Session
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.script import Script, Think, answer
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings


class Table:
    """A server with three models, and sessions on it."""

    def __init__(self, server: WireServer, root: Path) -> None:
        self.server = server
        self.root = root
        self.sessions: list[Session] = []

    async def open(self, name: str, **flags: object) -> Session:
        project, paths = Project.open(self.root), UserPaths.find()
        loaded = load_settings(project, paths, {}, {"host": self.server.url, "model": name, **flags})
        session = await Session.open(project, loaded, user_paths=paths, embedder=WordEmbedder(), interactive=False)
        self.sessions.append(session)
        return session


@pytest.fixture
async def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Table]:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))
    models = [
        model("plain:1b", capabilities=("completion",), context_length=4096),
        model("thinker:1b", capabilities=("completion", "tools", "thinking"), context_length=32768),
        model("liar:1b", capabilities=("completion", "tools"), context_length=32768),
    ]
    async with WireServer(ScriptedBackend(models, default="OK.")) as server:
        (tmp_path / "project").mkdir()
        made = Table(server, tmp_path / "project")
        yield made
        for session in made.sessions:
            await session.close()


async def say(session: Session, text: str) -> list[Event]:
    return [event async for event in session.send(text)]


async def test_a_model_without_tools_chats_is_told_so_and_the_user_saves_by_key(table: Table) -> None:
    session = await table.open("plain:1b")
    events = await say(session, "My name is Kacper")
    assert any("cannot call tools" in notice.text for notice in of(events, Notice))
    body = table.server.chats[-1].body
    assert not body.get("tools")
    assert "never say that you saved something" in body["messages"][0]["content"]
    assert not session.server.tools
    missing = of(events, SaveMissing)[0]
    assert (await session.save_sentence(missing.message_id, missing.sentence)).ok


async def test_the_window_is_never_larger_than_the_model_has(table: Table) -> None:
    session = await table.open("plain:1b")
    await say(session, "hello")
    options = table.server.chats[-1].body["options"]
    assert options["num_ctx"] == 4096
    assert options["num_predict"] == 512
    assert session.server.num_ctx == 4096


async def test_thinking_is_asked_for_only_where_the_model_can(table: Table) -> None:
    session = await table.open("thinker:1b", think=False)
    await say(session, "hello")
    assert table.server.chats[-1].body["think"] is False
    other = await table.open("liar:1b", think=True)
    await say(other, "hello")
    assert "think" not in table.server.chats[-1].body


async def test_thinking_is_sent_back_within_a_turn_and_dropped_after_it(table: Table) -> None:
    session = await table.open("thinker:1b")
    table.server.backend.queue(
        Script(Think("I should look."), "Let me see.\n", '{"name": "recall", "arguments": {"query": "x"}}'),
        answer("Nothing."),
    )
    events = await say(session, "look")
    assert of(events, ThinkingDelta)
    within = table.server.chats[-1].body["messages"]
    assert any(message.get("thinking") == "I should look." for message in within)
    await say(session, "and now")
    after = table.server.chats[-1].body["messages"]
    assert not any("thinking" in message for message in after)


async def test_a_server_that_refuses_tools_is_asked_again_without(table: Table) -> None:
    session = await table.open("liar:1b")
    table.server.backend.queue(faults.tools_unsupported("liar:1b"), answer("Hello."))
    events = await say(session, "hello")
    finished = events[-1]
    assert isinstance(finished, TurnFinished)
    assert (finished.status, finished.text) == ("answered", "Hello.")
    assert not table.server.chats[-1].body.get("tools")
    assert any("tools" in notice.text for notice in of(events, Notice))


async def test_no_load_option_ever_changes_so_nothing_reloads(table: Table) -> None:
    session = await table.open("liar:1b")
    await session.start()
    for number in range(5):
        await say(session, f"question {number}")
    assert table.server.backend.runners.reloads == 0
    assert table.server.log.in_flight_max >= 1
    assert {str(record.body["options"]) for record in table.server.chats} == {
        str(table.server.chats[0].body["options"])
    }
    assert {record.body["keep_alive"] for record in table.server.chats} == {"30m"}
