"""ctrl+c while ``tui-agent models pull`` runs as a process: it says so, exits with 130, and a new pull goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.e2e.terminal import Terminal, environment
from tui_agent.llm.wire import pulls

NAME = "qwen3:4b"
SAID = "Stopped. What arrived stays on the server, and the next pull goes on there."


def command(shell: Shell, *more: str) -> list[str]:
    where = ["-C", str(shell.root), "--host", shell.server.url]
    return [sys.executable, "-m", "tui_agent", "models", "pull", NAME, *where, *more]


def begun(shell: Shell, *more: str) -> subprocess.Popen[str]:
    """A pull that has half of the first layer, and gets no more until it is stopped."""
    shell.backend.queue_pulls(NAME, pulls.stalled(400, 100, at=200), pulls.whole(400, 100))
    process = subprocess.Popen(command(shell, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    stream, half = (process.stdout, '"share": 0.5') if more else (process.stderr, "50%")
    assert stream is not None
    assert any(half in line for line in iter(stream.readline, ""))
    return process


def is_there(shell: Shell) -> dict[str, int]:
    """Bytes of each layer on the server's disk."""
    return dict(shell.backend.blobs)


def test_ctrl_c_exits_with_130_says_what_stays_and_the_next_pull_goes_on_there(shell: Shell) -> None:
    process = begun(shell)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == f"tui-agent: {SAID}"
    assert "Traceback" not in err
    assert sorted(is_there(shell).values()) == [200]
    again = subprocess.run(command(shell, "--json"), capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode == 0
    first = next(event for event in map(json.loads, again.stdout.splitlines()) if event["layers"])
    assert first["layers"][0]["completed"] == 200
    assert NAME in shell.run("models", "list", "--host", shell.server.url).out


def test_ctrl_c_ends_the_json_lines_with_stopped(shell: Shell) -> None:
    process = begun(shell, "--json")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out.splitlines()[-1]) == {
        "event": "pull_finished", "status": "stopped", "text": SAID, "exit_code": 130,
    }  # fmt: skip
    assert err == ""


def test_ctrl_c_twice_is_no_error_either(shell: Shell) -> None:
    process = begun(shell)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.pty
def test_the_key_in_a_terminal_leaves_the_bars_and_the_sentence(shell: Shell, tmp_path: Path) -> None:
    shell.backend.queue_pulls(NAME, pulls.stalled(400_000_000, 1_000, at=200_000_000))
    terminal = Terminal(command(shell), environment(tmp_path / "home"), 100, 24)
    terminal.wait("200.0/400.0 MB")
    terminal.type("ctrl+c")
    shown = terminal.wait("the next pull goes on there.")
    assert "200.0/400.0 MB" in shown
    assert "Traceback" not in shown
    end = time.monotonic() + 10
    while terminal.process.isalive() and time.monotonic() < end:
        time.sleep(0.05)
    terminal.process.wait()
    assert terminal.process.exitstatus == 130
