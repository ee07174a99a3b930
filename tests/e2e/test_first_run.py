"""From nothing, from a stopped server, from a server without models and from one with models to a chat."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.terminal import Terminal, environment

pytestmark = pytest.mark.pty

STAND_IN = Path(__file__).parent / "stand_in_ollama.py"
SMALL = {"name": "small:1b", "capabilities": ["completion", "tools"], "context_length": 32768}
SUGGESTED = "qwen2.5-coder:1.5b"
# Suggestions follow the machine's memory; every one of them can be downloaded here.
PULLS = {
    name: [{"plan": "whole", "sizes": [4_000_000, 1_000]}]
    for name in ("qwen2.5-coder:7b", "qwen2.5-coder:3b", SUGGESTED)
}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class Machine:
    """A machine in one of the starting states, and terminals on it."""

    folder: Path
    host: str = "127.0.0.1"
    port: int = field(default_factory=free_port)
    terminals: list[Terminal] = field(default_factory=list)
    servers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """Its environment: no other ``ollama`` than the stand-in can be found."""
        env = environment(self.folder / "home")
        usual = [one for one in env["PATH"].split(os.pathsep) if not Path(one, "ollama").exists()]
        env["PATH"] = os.pathsep.join([str(self.folder / "bin"), *usual])
        env |= {"OLLAMA_HOST": f"{self.host}:{self.port}", "OLLAMA_MODELS": str(self.folder / "models")}
        env |= {"STAND_IN_SCRIPT": str(self.folder / "script.json"), "TUI_AGENT_EMBEDDER": "none"}
        return env

    def has_script(self, **script: Any) -> None:
        """What the server has and says."""
        full = {"models": [], "default": "Certainly.", "pulls": PULLS, **script}
        (self.folder / "script.json").write_text(json.dumps(full), "utf-8")

    def install(self) -> None:
        """Put the program on the PATH."""
        program = self.folder / "bin" / "ollama"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n', "utf-8")
        program.chmod(0o755)

    def run_server(self) -> None:
        """The user's own server, not the app's."""
        self.servers.append(subprocess.Popen([str(self.folder / "bin" / "ollama"), "serve"], env=self.env))
        until(self.answers, "the server answers")

    def answers(self) -> bool:
        """Whether something listens on the port."""
        with socket.socket() as sock:
            return sock.connect_ex((self.host, self.port)) == 0

    def served(self) -> int:
        """The process id of the last server."""
        return int((self.folder / "pid").read_text())

    def start(self, *args: str, columns: int = 100, rows: int = 30) -> Terminal:
        """The app in a terminal."""
        argv = [sys.executable, "-m", "tui_agent", *args]
        terminal = Terminal(argv, self.env, columns, rows)
        self.terminals.append(terminal)
        return terminal

    def chat(self, *args: str, **size: int) -> Terminal:
        """``tui-agent`` in the project."""
        return self.start("chat", str(self.folder / "project"), *args, **size)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    (tmp_path / "project").mkdir()
    made = Machine(tmp_path)
    made.has_script()
    yield made
    for terminal in made.terminals:
        if terminal.process.isalive():
            terminal.kill()
    for server in made.servers:
        server.kill()
        server.wait()


def until(true: Callable[[], bool], what: str, limit_s: float = 10.0) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, f"it never happened: {what}"
        time.sleep(0.05)


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" if Path("/proc").exists() else True


def answer(terminal: Terminal, seen: str, key: str) -> str:
    """Wait for a question and answer it; keys in its first moment are ignored, so the key comes a little later."""
    screen = terminal.wait(seen)
    time.sleep(0.5)
    terminal.type(key)
    return screen


def talk(terminal: Terminal, question: str = "are you there?") -> None:
    terminal.type(question, "enter")
    terminal.wait("Certainly.")


def number_of(screen: str, label: str) -> str:
    line = next(line for line in screen.splitlines() if label in line)
    return next(part for part in line.replace("│", " ").split() if part.isdigit())


def test_a_stopped_ollama_is_started_with_one_answer_and_stopped_with_the_app(machine: Machine) -> None:
    machine.has_script(models=[{**SMALL, "name": "qwen2.5-coder:7b"}])
    machine.install()
    terminal = machine.chat(columns=70, rows=20)
    screen = answer(terminal, "Start it now", "1")
    assert "Ollama is not running" in screen
    terminal.wait("ready")
    assert "Nothing answers" not in terminal.text, "the notice of the start is out of date"
    talk(terminal)
    pid = machine.served()
    log = machine.folder / "home/state/logs/ollama.log"
    assert "Listening on" in log.read_text("utf-8")
    assert log.stat().st_mode & 0o077 == 0
    assert terminal.leave() == 0
    until(lambda: not runs(pid), "our server ended with the app")


def test_a_stopped_ollama_without_models_takes_two_answers(machine: Machine) -> None:
    machine.install()
    terminal = machine.chat()
    answer(terminal, "Start it now", "1")
    screen = terminal.wait(f"Download {SUGGESTED}")
    answer(terminal, "Download a model", number_of(screen, f"Download {SUGGESTED}"))
    terminal.wait("ready")
    talk(terminal)
    assert f'model: "{SUGGESTED}"' in (machine.folder / "home/config/config.yaml").read_text("utf-8")


def test_a_server_without_models_takes_one_answer_and_is_left_running(machine: Machine) -> None:
    machine.install()
    machine.run_server()
    terminal = machine.chat()
    screen = terminal.wait(f"Download {SUGGESTED}")
    answer(terminal, "fits into it", number_of(screen, f"Download {SUGGESTED}"))
    terminal.wait("ready")
    talk(terminal)
    assert terminal.leave() == 0
    assert machine.answers(), "a server that was there before must not be stopped"


def test_a_server_with_other_models_takes_one_answer_and_none_the_next_time(machine: Machine) -> None:
    machine.has_script(models=[SMALL])
    machine.install()
    machine.run_server()
    terminal = machine.chat()
    screen = terminal.wait("Use small:1b")
    answer(terminal, "Use small:1b", number_of(screen, "Use small:1b"))
    terminal.wait("ready")
    talk(terminal)
    assert terminal.leave() == 0
    again = machine.chat()
    again.wait("ready")
    assert "Choose a model" not in again.text


def test_nothing_installed_notices_the_installation_and_the_server_by_itself(machine: Machine) -> None:
    machine.has_script(models=[{**SMALL, "name": "qwen2.5-coder:7b"}])
    terminal = machine.chat()
    screen = terminal.wait("A model is needed")
    assert "https://ollama.com/download" in screen
    machine.install()
    answer(terminal, "Start it now", "1")
    terminal.wait("ready")
    talk(terminal)


def test_what_was_typed_is_there_after_quitting_in_the_middle(machine: Machine) -> None:
    machine.install()
    terminal = machine.chat()
    terminal.wait("connecting")
    terminal.type("a thought I had before there was a model")
    terminal.wait("Ollama is not running")
    assert terminal.leave() == 0
    again = machine.chat("--continue")
    again.wait("a thought I had before there was a model")


def test_quitting_in_the_middle_of_a_download_leaves_nothing_running(machine: Machine) -> None:
    machine.has_script(pulls={name: [{"plan": "stalled"}] for name in PULLS})
    machine.install()
    terminal = machine.chat()
    answer(terminal, "Start it now", "1")
    screen = terminal.wait(f"Download {SUGGESTED}")
    answer(terminal, "Download a model", number_of(screen, f"Download {SUGGESTED}"))
    terminal.wait("%")
    pid = machine.served()
    assert terminal.leave() == 0
    until(lambda: not runs(pid), "our server ended with the app")
    again = machine.chat()
    again.wait("Ollama is not running")


def test_a_killed_app_does_not_leave_the_server_it_started(machine: Machine) -> None:
    machine.has_script(models=[{**SMALL, "name": "qwen2.5-coder:7b"}])
    machine.install()
    terminal = machine.chat()
    answer(terminal, "Start it now", "1")
    terminal.wait("ready")
    pid = machine.served()
    assert runs(pid)
    terminal.kill()
    until(lambda: not runs(pid), "our server ended with the app")


def test_not_now_leads_to_the_chat_and_setup_opens_the_question_again(machine: Machine) -> None:
    machine.install()
    terminal = machine.chat()
    answer(terminal, "0  Not now", "0")
    terminal.wait(lambda text: "Start it now" not in text)
    terminal.type("/setup", "enter")
    terminal.wait("Start it now")


def test_setup_on_the_command_line_asks_and_opens_the_chat(machine: Machine) -> None:
    machine.install()
    terminal = machine.start("setup", str(machine.folder / "project"))
    terminal.wait("Choose (1")
    terminal.type("1", "enter")
    screen = terminal.wait(lambda text: f"Download {SUGGESTED}" in text and text.rstrip().endswith(":"))
    terminal.type(number_of(screen, f"Download {SUGGESTED}"), "enter")
    terminal.wait("ready")
    talk(terminal)
    pid = machine.served()
    assert terminal.leave() == 0
    until(lambda: not runs(pid), "our server ended with the app")


def test_setup_that_is_left_at_its_question_changes_nothing(machine: Machine) -> None:
    machine.install()
    terminal = machine.start("setup", str(machine.folder / "project"))
    terminal.wait("Choose (1")
    terminal.type("0", "enter")
    terminal.wait("Nothing was changed.")
    assert not (machine.folder / "home/config/config.yaml").exists()
    assert not machine.answers()


def own_address() -> str:
    """An address of this machine that is not loopback, empty when it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return ""
        return str(sock.getsockname()[0])


def test_another_machine_is_asked_for_once_and_shown_as_leaving(machine: Machine) -> None:
    address = own_address()
    if not address or address.startswith("127."):
        pytest.skip("this machine has no address besides loopback")
    machine.has_script(models=[{**SMALL, "name": "qwen2.5-coder:7b"}])
    machine.install()
    machine.host = address
    machine.run_server()
    terminal = machine.chat()
    answer(terminal, "1  Allow", "1")
    terminal.wait("ready")
    talk(terminal)
    terminal.wait("leaves this machine")
    assert terminal.leave() == 0
    again = machine.chat()
    again.wait("ready")
    assert "Your words would leave" not in again.text


def test_a_second_window_keeps_the_server_and_the_last_one_out_stops_it(machine: Machine) -> None:
    machine.has_script(models=[{**SMALL, "name": "qwen2.5-coder:7b"}])
    machine.install()
    first = machine.chat()
    answer(first, "Start it now", "1")
    first.wait("ready")
    second, third = machine.chat(), machine.chat()
    second.wait("ready")
    third.wait("ready")
    pid = machine.served()
    assert first.leave() == 0
    talk(second)
    third.kill()
    talk(second, "and still there?")
    assert runs(pid)
    assert second.leave() == 0
    until(lambda: not runs(pid), "the last window ended the server")
    log = (machine.folder / "home/state/logs/ollama.log").read_text("utf-8")
    assert "2 others use it, and the last one out stops it" in log
    assert "the last window that used this server is closed" in log
