"""Hot and Cold in a real terminal, on the real program and its store: every key, and what the screen shows then."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.terminal import Terminal, environment, scripted_server

pytestmark = pytest.mark.pty

SAMPLE = Path(__file__).parent.parent.parent / "sample_project"
SCRIPT: dict[str, Any] = {
    "models": [{"name": "qwen2.5-coder:7b", "capabilities": ["completion", "tools"], "context_length": 32768}],
    "default": "Certainly.",
}
WIDTH, HEIGHT = 140, 40

Start = Callable[[], Terminal]


@pytest.fixture
def sample(tmp_path: Path) -> Iterator[Start]:
    running: list[Terminal] = []
    with scripted_server(SCRIPT, tmp_path) as url:

        def start() -> Terminal:
            env = {**environment(tmp_path / "home"), "OLLAMA_HOST": url, "TUI_AGENT_EMBEDDER": "none"}
            argv = [sys.executable, "-m", "tui_agent.cli.sample", str(SAMPLE)]
            terminal = Terminal(argv, env, WIDTH, HEIGHT)
            running.append(terminal)
            terminal.wait("ready")
            terminal.wait(lambda text: "plan for attempts.py" in pane(text, "HOT"))
            return terminal

        yield start
        for terminal in running:
            if terminal.process.isalive():
                terminal.kill()


def pane(screen: str, name: str) -> str:
    """What the screen shows of one pane at the right: from its title to the rule below it."""
    lines = [line.split("│", 1)[1] if "│" in line else "" for line in screen.splitlines()]
    start = next((number for number, line in enumerate(lines) if line.strip().startswith(name)), None)
    if start is None:
        return ""
    end = next((n for n in range(start + 1, len(lines)) if set(lines[n].strip()) == {"─"}), len(lines))
    return "\n".join(line.strip() for line in lines[start:end])


def hot_rows(screen: str) -> list[str]:
    """The rows of the Hot pane as ``pin kind text``, from the top."""
    found = re.findall(r"^(◆ )?-?\d\.\d\d +[━╸]* *(\S+) +[\d,]+ +(?:› )?(.+)$", pane(screen, "HOT"), re.M)
    return [f"{pin}{kind} {text.strip()}" for pin, kind, text in found]


def tokens(screen: str) -> list[int]:
    """Tokens of each row of the Hot pane."""
    return [int(n.replace(",", "")) for n in re.findall(r"[━╸] +\S+ +([\d,]+) ", pane(screen, "HOT"))]


def on(name: str, *seen: str) -> Callable[[str], bool]:
    return lambda screen: all(each in pane(screen, name) for each in seen)


def used(screen: str) -> int:
    """Tokens of the hot zone, as its title says."""
    found = re.search(r"([\d,]+) of 2,048 tokens", pane(screen, "HOT"))
    assert found, screen
    return int(found[1].replace(",", ""))


def test_every_key_of_the_hot_pane_changes_what_it_shows(sample: Start) -> None:
    terminal = sample()
    rows = hot_rows(terminal.text)
    assert [row.split()[0] for row in rows] == ["edit", "file", "◆", "file", "test_r…"]
    title = pane(terminal.text, "HOT").splitlines()[0]
    assert re.search(r"of 2,048 tokens · pins 2 % +by score", title)
    whole = used(terminal.text)

    terminal.type("f2")
    terminal.wait("t touch")

    terminal.type("s")
    terminal.wait(on("HOT", "by age"))
    terminal.type("s")
    terminal.wait(on("HOT", "by tokens"))
    largest_first = terminal.wait(lambda text: tokens(text) == sorted(tokens(text), reverse=True))
    assert len(tokens(largest_first)) == 5
    terminal.type("s")
    terminal.wait(on("HOT", "by score"))
    terminal.wait(lambda text: hot_rows(text) == rows)

    terminal.type("p")  # the first row, the plan
    terminal.wait(lambda text: hot_rows(text)[:1] == [f"◆ {rows[0]}"])
    terminal.wait(lambda text: re.search(r"pins [45] %", pane(text, "HOT")) is not None)
    terminal.type("p")
    terminal.wait(lambda text: hot_rows(text)[:1] == [rows[0]] and "pins 2 %" in pane(text, "HOT"))

    terminal.type("down", "down", "down", "t")  # repository.py grows fresh, all others a step older
    terminal.wait("Touched")
    terminal.wait(on("HOT", "3.33 ", "2.0"))

    terminal.type("up", "up", "up", "enter")
    terminal.wait("score = kind + references + goal")
    for term in ("kind", "references", "goal", "freshness", "size", "calibration", "names"):
        terminal.wait(lambda text, t=term: re.search(rf"│ +{t} +[^\w+-]*[+-]\d\.\d\d\d", text) is not None)
    terminal.wait("unrelated texts score 0.00 with this embedder")
    terminal.wait(lambda text: re.search(r"freshness .* 1 steps old", text) is not None)
    terminal.type("esc")
    terminal.wait(lambda text: "score = kind" not in text)

    terminal.type("down", "down", "down", "e")
    terminal.wait("ctrl+j new line")
    terminal.wait("def by_customer")  # all its lines are there to be edited
    terminal.type("\x01", "class Repository:", "ctrl+j", "    every query stands here", "enter")
    terminal.wait(on("HOT", "was edited"))
    terminal.wait(lambda text: whole < used(text) < whole + 40)
    terminal.type("u")
    terminal.wait(lambda text: used(text) == whole)

    terminal.type("f")
    terminal.wait(on("COLD", "3 items", "repository.py"))
    terminal.wait(lambda text: len(hot_rows(text)) == 4)
    terminal.wait(on("HOT", "repository.py” was put away"))
    terminal.type("u")
    terminal.wait(on("COLD", "2 items"))
    terminal.wait(lambda text: sorted(hot_rows(text)) == sorted(rows))  # under its own kind again
    assert terminal.leave() == 0


def test_the_cold_pane_is_searched_inspected_and_brought_back_and_a_restart_shows_the_same(sample: Start) -> None:
    terminal = sample()
    terminal.type("/note deploys happen on Friday", "enter")
    terminal.wait(lambda text: any("◆ note deploys happen" in row for row in hot_rows(text)))
    terminal.type("/goal find the slow carrier of Monday", "enter")
    terminal.wait("A put-away item")
    terminal.wait(on("COLD", "carrier log"))  # proposed, not moved
    terminal.wait("goal: find the slow carrier")
    terminal.wait(on("HOT", "1 put-away item matches it"))

    terminal.type("f3")
    terminal.wait("r bring back")
    terminal.wait(on("COLD", "2 items", "put away by hand"))  # the reason of the highlighted row
    row = r"log +430 carrier log of Monday +step +2 +\d\d:\d\d"
    terminal.wait(lambda text: re.search(row, pane(text, "COLD")) is not None)

    terminal.type("/")
    terminal.wait("search what was put away")
    terminal.type("orders routing")
    terminal.wait(on("COLD", "orders routing", "1 of 2", "project tree"))
    terminal.wait(lambda text: "carrier log" not in pane(text, "COLD"))
    terminal.type("enter")
    terminal.wait("enter inspect")
    terminal.type("enter")
    shown = ("src/parcels/tracking.py", "put away by hand", "returns by itself  when it fits", "this one")
    terminal.wait(lambda text: all(words in text for words in shown))
    terminal.type("esc")
    terminal.wait(lambda text: "returns by itself" not in text)
    terminal.type("r")
    terminal.wait(lambda text: any(re.fullmatch(r"recall\S* project tree", row) for row in hot_rows(text)))
    terminal.wait(on("HOT", "project tree” was brought back"))
    terminal.type("esc")
    terminal.wait(on("COLD", "1 item", "carrier log"))

    before = sorted(hot_rows(terminal.wait(lambda text: len(hot_rows(text)) == 7)))
    assert terminal.leave() == 0

    again = sample()
    screen = again.wait(lambda text: sorted(hot_rows(text)) == before)
    again.wait(on("COLD", "1 item", "carrier log"))
    assert "goal: find the slow carrier" in screen
    again.kill()  # and a crash loses nothing either
    third = sample()
    third.wait(lambda text: sorted(hot_rows(text)) == before)
    assert third.leave() == 0


def test_the_log_command_tells_every_move_of_the_working_memory(sample: Start, tmp_path: Path) -> None:
    terminal = sample()
    terminal.type("/goal count the attempts of each carrier", "enter")
    terminal.wait("goal: count the attempts of each carrier")
    terminal.type("f2")
    terminal.wait("t touch")
    terminal.type("f")
    terminal.wait(on("COLD", "3 items"))
    terminal.type("u")
    terminal.wait(on("COLD", "2 items"))
    assert terminal.leave() == 0
    store = next((tmp_path / "home").rglob("memory.db"), None) or next((tmp_path / "home").rglob("*.db"))
    with sqlite3.connect(store) as db:
        moves = [row[0] for row in db.execute("SELECT event FROM wm_log ORDER BY number DESC LIMIT 3")]
    assert moves == ["brought_back", "put_away", "goal"]
    project = next(path.parent for path in (tmp_path / "home").rglob(".agent-memory"))
    argv = [sys.executable, "-m", "tui_agent", "memory", "log", "--working", "-C", str(project)]
    told = subprocess.run(argv, env=environment(tmp_path / "home"), capture_output=True, text=True, timeout=60)
    lines = told.stdout.splitlines()
    for word in ("goal", "brought_back", "put_away"):
        assert any(word in line for line in lines), told.stdout + told.stderr


def test_what_the_model_was_given_is_marked_and_what_was_put_away_is_named_to_it(sample: Start) -> None:
    terminal = sample()
    terminal.type("f2")
    terminal.wait("t touch")
    terminal.type("down", "down", "down", "f")
    terminal.wait(on("COLD", "3 items", "repository.py"))
    terminal.type("f3", "\x1b[H")  # to the first row
    terminal.wait(on("COLD", "put away by hand · rests 3 steps more"))
    terminal.wait("r bring back")  # the keys are those of that pane now
    assert "›" not in pane(terminal.text, "HOT")
    terminal.type("f3")  # and back to writing
    terminal.wait("to act on an item")
    terminal.type("is the repository class asynchronous?", "enter")
    terminal.wait("Certainly.")
    terminal.wait(lambda text: re.search(r"[\d,]+ › ", pane(text, "HOT")) is not None)
    terminal.wait(lambda text: re.search(r"recalled \d+ put away \d+", text) is not None)  # the budget bar
    terminal.type("/context", "enter")
    terminal.wait("You are the assistant")
    terminal.type("\x1b[F")
    terminal.wait("[put away · recall with an id shows one]")
    terminal.wait(lambda text: re.search(r"[0-9a-z]{4} file .*repository.py.* \(\d+\)\s", text) is not None)
    terminal.wait(lambda text: re.search(r"\+\d more", text) is not None)
    terminal.type("esc")
    terminal.wait(lambda text: "[put away ·" not in text)
    assert terminal.leave() == 0
