"""A session on a scripted model server, in a project of its own."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tui_agent.agent.events import Event, TurnFinished
from tui_agent.agent.session import Session
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer
from tui_agent.memory.text import stems
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings


class WordEmbedder:
    """Vectors of word stems by hashing: texts that share words are near each other. Instant and always the same."""

    identity = "words:64"
    dimension = 64

    async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Any:
        vector = np.full(self.dimension, 1e-3, dtype=np.float32)
        for stem in stems(text):
            vector[hashlib.blake2b(stem.encode(), digest_size=2).digest()[0] % self.dimension] += 1.0
        return vector / np.linalg.norm(vector)


@dataclass
class Desk:
    """What a test works with."""

    session: Session
    server: WireServer
    backend: ScriptedBackend
    project: Project
    paths: UserPaths
    heard: list[Event] = field(default_factory=list)

    async def say(self, text: str, **more: Any) -> list[Event]:
        """One turn; all its events."""
        return [event async for event in self.session.send(text, **more)]

    def last(self, events: list[Event]) -> TurnFinished:
        """The end of a turn."""
        assert isinstance(events[-1], TurnFinished)
        return events[-1]

    @property
    def body(self) -> dict[str, Any]:
        """The last chat request as it was sent."""
        return self.server.chats[-1].body

    def memory(self, name: str) -> str:
        """A memory file's text, or an empty string."""
        path = self.project.memory_dir / name
        return path.read_text("utf-8") if path.exists() else ""


def of(events: list[Event], kind: type[Any]) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


@pytest.fixture
async def server() -> AsyncIterator[WireServer]:
    async with WireServer(ScriptedBackend(default="OK.")) as running:
        yield running


Open = Callable[..., Awaitable[Desk]]


@pytest.fixture
async def open_desk(tmp_path: Path, server: WireServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    opened: list[Session] = []

    async def open_(resume: str = "new", interactive: bool = False, embedder: Any = None, **flags: Any) -> Desk:
        root = tmp_path / "project"
        root.mkdir(exist_ok=True)
        project, paths = Project.open(root), UserPaths.find()
        loaded = load_settings(project, paths, {}, {"host": server.url, "model": "qwen2.5-coder:1.5b", **flags})
        session = await Session.open(
            project,
            loaded,
            resume=resume,
            user_paths=paths,
            embedder=embedder or WordEmbedder(),
            interactive=interactive,
        )
        opened.append(session)
        desk = Desk(session, server, server.backend, project, paths)
        session.subscribe(desk.heard.append)
        return desk

    yield open_
    for session in opened:
        await session.close()


@pytest.fixture
async def desk(open_desk: Open) -> Desk:
    return await open_desk()
