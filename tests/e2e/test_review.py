"""A person at a terminal looks after the memory: reviews, confirms, asks what is remembered, hands on."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.terminal import Terminal, environment, scripted_server
from tui_agent.agent.stores import Stores
from tui_agent.memory.types import NewFact
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings

pytestmark = pytest.mark.pty

MODEL = {"name": "small:1b", "capabilities": ["completion", "tools"], "context_length": 32768}
F7 = "\x1b[18~"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    root = tmp_path / "project"
    root.mkdir()
    paths = UserPaths.find({"TUI_AGENT_HOME": str(tmp_path / "home")})
    stores = Stores.open(Project.open(root), Settings(), paths)
    for text, day in (("We deploy on Fridays", "2025-01-10"), ("Migrations run through EF Core", "2025-02-11")):
        stores.facts.add(NewFact("", text, f"message of {day}", created_at=f"{day} 10:00:00"))
    stores.close()
    with scripted_server({"models": [MODEL], "turns": [], "default": "Certainly."}, tmp_path) as url:
        argv = [sys.executable, "-m", "tui_agent", "chat", str(root), "--host", url, "--model", "small:1b"]
        running = Terminal([*argv, "--embed-model", "none"], environment(tmp_path / "home"), 120, 40)
        running.wait("ready")
        yield running
        if running.process.isalive():
            running.kill()


def facts(tmp_path: Path) -> list[dict[str, Any]]:
    """The facts as another process sees them, beside the open terminal."""
    argv = [sys.executable, "-m", "tui_agent", "memory", "list", "--json", "-C", str(tmp_path / "project")]
    done = subprocess.run(argv, env=environment(tmp_path / "home"), capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_fact_is_confirmed_in_the_review_and_another_process_sees_it(terminal: Terminal, tmp_path: Path) -> None:
    terminal.wait("2 facts were not confirmed for 90 days")
    terminal.type(F7)
    terminal.wait("1 old 2")
    terminal.wait("2 live of 2 rows")
    terminal.type("c")
    terminal.wait("Confirmed today")
    terminal.wait("1 old 1")
    confirmed = {fact["fact"]: fact["confirmed_at"][:4] for fact in facts(tmp_path)}
    assert confirmed["Migrations run through EF Core"] == "2025"
    assert confirmed["We deploy on Fridays"] != "2025"
    terminal.type("esc")
    terminal.wait(lambda text: "1 old 1" not in text)
    assert terminal.leave() == 0


def test_asking_what_is_remembered_shows_everything_and_handing_on_confirms_it(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.type("What do you remember about me?", "enter")
    terminal.wait("Everything I remember")
    terminal.wait(lambda text: "We deploy on Fridays" in text and "Migrations run through EF Core" in text)
    terminal.type("Port the report", "enter")
    terminal.wait("Certainly.")
    terminal.type("/handoff", "enter")
    terminal.wait("0 of 1 part confirmed")
    terminal.type("c")
    terminal.wait("confirmed by you")
    terminal.type("s")
    terminal.wait("A file in the project")
    terminal.wait("handoff.json")
    # A question does not listen in its first moment, so that typing ahead answers nothing.
    while "handoff.json5" not in terminal.text:
        terminal.type("5")
        with contextlib.suppress(AssertionError):
            terminal.wait("handoff.json5", limit_s=0.2)
    terminal.type("enter")
    terminal.wait("Written to handoff.json5")
    (written,) = (tmp_path / "project").glob("handoff.json5*")
    packet = json.loads(written.read_text("utf-8"))
    assert packet["task"] == "Port the report"
    assert packet["constraints_confirmed_by_user"] is True
