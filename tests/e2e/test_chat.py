"""A person at a terminal: talk, watch memory, change it by key, crash, come back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.terminal import Terminal, environment, scripted_server

pytestmark = pytest.mark.pty

MODEL = {"name": "small:1b", "capabilities": ["completion", "tools"], "context_length": 32768}
SAVE = {
    "name": "edit_file",
    "arguments": {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"},
}
SCRIPT: dict[str, Any] = {
    "models": [MODEL],
    "turns": [
        {"match": "My name is", "after_tool": False, "steps": [{"call": SAVE}]},
        {"match": "My name is", "after_tool": True, "steps": [{"answer": "I've noted that for future reference."}]},
        {"match": "slow story", "times": 0, "steps": ["Once upon a time ", {"wait": 60}, "the end."]},
    ],
    "default": "Certainly.",
}

Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Terminal] = []
    project = tmp_path / "project"
    project.mkdir()
    with scripted_server(SCRIPT, tmp_path) as url:

        def start_(*args: str, columns: int = 120, rows: int = 40) -> Terminal:
            argv = [sys.executable, "-m", "tui_agent", "chat", str(project), "--host", url, "--model", "small:1b"]
            terminal = Terminal([*argv, "--embed-model", "none", *args], environment(tmp_path / "home"), columns, rows)
            running.append(terminal)
            terminal.wait("ready")
            return terminal

        yield start_
        for terminal in running:
            if terminal.process.isalive():
                terminal.kill()


@pytest.mark.parametrize(("columns", "rows"), [(140, 40), (100, 30), (70, 20)])
def test_a_name_is_saved_and_seen_in_the_transcript_and_the_file(
    start: Start, tmp_path: Path, columns: int, rows: int
) -> None:
    terminal = start(columns=columns, rows=rows)
    terminal.type("My name is Kacper", "enter")
    terminal.wait("noted that for future")
    terminal.wait("saved")
    assert "Name: Kacper\n" in (tmp_path / "project/.agent-memory/knowledge/user.md").read_text("utf-8")
    assert terminal.leave() == 0


def test_an_edit_of_rules_md_in_another_window_shows_as_a_diff(start: Start, tmp_path: Path) -> None:
    terminal = start()
    (tmp_path / "project/.agent-memory/rules.md").write_text("# Rules\n\n- always answer in rhyme\n", "utf-8")
    assert "always answer in rhyme" in terminal.wait("rhyme")


def test_a_killed_answer_is_there_after_the_restart_and_marked(start: Start) -> None:
    terminal = start()
    terminal.type("tell me a slow story", "enter")
    terminal.wait("Once upon a time")
    stopped_writing = terminal.wait("generating")
    assert "Once upon a time" in stopped_writing
    # The partial answer is flushed within half a second of its arrival.
    with pytest.raises(AssertionError):
        terminal.wait("the end.", limit_s=1.0)
    terminal.kill()
    again = start("--continue")
    screen = again.wait("Once upon a time")
    assert "tell me a slow story" in screen
    again.wait(lambda text: "interrupted" in text or "partial" in text or "stopped" in text)
    again.type("go on", "enter")
    again.wait("Certainly.")


def test_escape_stops_the_answer_at_once(start: Start) -> None:
    terminal = start()
    terminal.type("tell me a slow story", "enter")
    terminal.wait("Once upon a time")
    terminal.type("esc")
    terminal.wait("stopped")
    terminal.type("and now?", "enter")
    assert "the end." not in terminal.wait("Certainly.")


def test_the_draft_survives_a_crash(start: Start) -> None:
    terminal = start()
    terminal.type("an unfinished thought")
    terminal.wait("an unfinished thought")
    with pytest.raises(AssertionError):
        terminal.wait("never shown", limit_s=1.5)
    terminal.kill()
    start("--continue").wait("an unfinished thought")


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    running: list[Terminal] = []
    source = Path(__file__).parent.parent.parent / "sample_project"
    with scripted_server({**SCRIPT, "models": [{**MODEL, "name": "qwen2.5-coder:7b"}]}, tmp_path) as url:

        def start_(columns: int = 140, rows: int = 40) -> Terminal:
            argv = [sys.executable, "-m", "tui_agent.cli.sample", str(source)]
            env = {**environment(tmp_path / "home"), "OLLAMA_HOST": url, "TUI_AGENT_EMBEDDER": "none"}
            terminal = Terminal(argv, env, columns, rows)
            running.append(terminal)
            terminal.wait("ready")
            return terminal

        yield start_
        for terminal in running:
            if terminal.process.isalive():
                terminal.kill()


def test_the_sample_is_alive_and_its_items_move_by_key(sample: Callable[..., Terminal]) -> None:
    terminal = sample()
    terminal.wait("plan for attempts.py")
    terminal.wait("carrier log of Monday")
    terminal.type("f2")
    terminal.wait("t touch")
    terminal.type("p")
    terminal.wait("Pinned")
    terminal.type("f")
    terminal.wait("Put away")
    terminal.wait("3 items")
    terminal.type("f3")
    terminal.wait("bring back")
    terminal.type("r")
    terminal.wait("was brought back")
    terminal.type("f4")
    terminal.wait("w why")
    terminal.type("enter")
    terminal.wait("holds until")
    terminal.type("esc")
    terminal.wait(lambda text: "holds until" not in text)
    terminal.type("f5")
    terminal.wait("waits for your yes")
    terminal.type("esc")
    terminal.wait(lambda text: "waits for your yes" not in text)
    assert terminal.leave() == 0


def test_the_same_hot_set_is_there_after_a_restart(sample: Callable[..., Terminal]) -> None:
    terminal = sample()
    before = terminal.wait("plan for attempts.py")
    terminal.type("f2")
    terminal.wait("t touch")
    terminal.type("f")
    terminal.wait("3 items")
    assert terminal.leave() == 0
    again = sample()
    screen = again.wait("3 items")
    assert "plan for attempts.py" in before
    assert "HOT" in screen
