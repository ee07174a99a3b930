"""The command line against a scripted model server over real sockets."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tui_agent.cli.main import main
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer
from tui_agent.memory.database import Database
from tui_agent.memory.history import History, StoredMessage
from tui_agent.project import Project

MODEL = "qwen2.5-coder:1.5b"


@dataclass(frozen=True)
class Ran:
    """What a command printed and exited with."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of ``--json``."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Shell:
    """Runs commands in one project."""

    root: Path
    server: WireServer
    run: Callable[..., Ran]

    @property
    def backend(self) -> ScriptedBackend:
        """The script behind the server."""
        return self.server.backend

    def ask(self, *args: str, **more: Any) -> Ran:
        """``tui-agent ask`` with the test's server, model and embedder."""
        fixed = ("-C", str(self.root), "--host", self.server.url, "--model", MODEL, "--embed-model", "none")
        return self.run("ask", *fixed, *args, **more)

    def history(self) -> list[StoredMessage]:
        """All messages of the project's last session."""
        db = Database(Project.open(self.root).db_path)
        try:
            history = History(db)
            latest = history.latest_session()
            return history.messages(latest.id) if latest is not None else []
        finally:
            db.close()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    root = tmp_path / "project"
    root.mkdir()

    def run(*args: str, stdin: str | None = None) -> Ran:
        source = StringIO(stdin or "")
        source.buffer = source  # type: ignore[attr-defined]
        source.read = lambda *_: (stdin or "").encode()  # type: ignore[method-assign,assignment,return-value]
        monkeypatch.setattr(sys, "stdin", source)
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main(list(args))
        printed = capfd.readouterr()
        return Ran(int(exit_.value.code or 0), printed.out, printed.err)

    with WireServer(ScriptedBackend(default="OK.")) as server:
        yield Shell(root, server, run)
