"""``ollama.md``: every fault of a model server, what was injected, what the user saw, and what was on disk.

The table is written by the tests: run them with ``TUI_AGENT_WRITE_TABLE=1`` (and without ``-n``). Every other run
checks that each test still sees what the table says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Desk, of
from tui_agent.agent.events import Event, Notice, ToolFinished, TurnFinished
from tui_agent.agent.prompt import legal_problem
from tui_agent.memory.history import StoredMessage

TABLE = Path(__file__).with_name("ollama.md")
WRITING = os.environ.get("TUI_AGENT_WRITE_TABLE") == "1"
HEAD = """# Faults of a model server, one by one

Written by the tests `tests/faults/test_ollama_*.py` (`TUI_AGENT_WRITE_TABLE=1 pytest tests/faults -k ollama`); every
other run of them checks this page. Each fault is played by the scripted server over real HTTP against a whole session.
B: tool calls and the loop of rounds. D: loading and memory. E: streams. F: connection and environment. G: thinking and
formats. H: embeddings. 13: what the scripted server itself can play.

| row | what was injected | what the user saw | what was on disk |
| :- | :- | :- | :- |
"""
QUESTION = "Which port does the server use?"


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses before second tries, quick looks at the server, and no sentence about containers, wherever this
    runs."""
    monkeypatch.setattr("tui_agent.llm.client.ModelClient._pause", lambda self, attempt: 0.0)
    monkeypatch.setattr("tui_agent.llm.explain.in_container", lambda: False)
    monkeypatch.setattr("tui_agent.agent.waiting.POLL_S", 0.02)
    monkeypatch.setattr("tui_agent.agent.waiting.DRAIN_S", 0.02)


@dataclass(frozen=True)
class Seen:
    """A turn that is over."""

    events: list[Event]
    end: TurnFinished
    notices: list[str]

    @property
    def text(self) -> str:
        """The answer as shown."""
        return self.end.text


async def play(
    desk: Desk, row: str, injected: str, text: str = QUESTION, *, also: str = "", legal: bool = True
) -> Seen:
    """One turn on what the test has scripted; its row is recorded. ``also`` is something more that the user saw."""
    heard = len(desk.heard)
    events = await desk.say(text)
    end = desk.last(events)
    notices = [event.text for event in of([*desk.heard[heard:], *events], Notice)]
    tools = [f"▸ {event.name} {'ok' if event.ok else 'refused'}" for event in of(events, ToolFinished)]
    record(row, injected, saw(end, [*tools, *notices], desk.server.url, also), on_disk(desk))
    if legal:
        assert legal_problem(desk.session.core.prompt.messages()) == ""
    return Seen(events, end, notices)


def saw(end: TurnFinished, notices: Sequence[str], url: str, also: str = "") -> str:
    """What the screen told of a turn."""
    parts = [f"{end.status}"]
    if end.text.strip():
        parts.append(f"“{_short(end.text)}”")
    said = [*notices, *([end.error] if end.error else []), *([also] if also else [])]
    parts += [_plain(sentence, url) for sentence in said]
    return ": ".join([parts[0], " / ".join(parts[1:])]) if len(parts) > 1 else parts[0]


def on_disk(desk: Desk) -> str:
    """The rows of the history since the last message of the user."""
    rows = desk.session.stores.history.messages(desk.session.id)
    last = max((at for at, row in enumerate(rows) if row.role == "user"), default=0)
    return ", ".join(map(_stored, rows[last:]))


def _stored(row: StoredMessage) -> str:
    words = f"{'answer' if row.role == 'assistant' else row.role} {row.status}"
    if row.content.strip():
        words += f" “{_short(row.content)}”"
    tools = [f"{tool['name']} {'ok' if tool['ok'] else 'refused'}" for tool in row.meta.get("tools", ())]
    return words + (f" with {', '.join(tools)}" if tools else "")


def record(row: str, injected: str, saw: str, disk: str) -> None:
    """Write the row, or check that the table says the same."""
    cells = [row, *(_cell(text) for text in (injected, saw, disk))]
    found = recorded()
    if WRITING:
        found[row] = cells
        lines = [f"| {' | '.join(found[name])} |" for name in sorted(found, key=_order)]
        TABLE.write_text(HEAD + "\n".join(lines) + "\n", "utf-8")
    assert recorded().get(row) == cells, f"row {row} of {TABLE.name}: run with TUI_AGENT_WRITE_TABLE=1 and look at it"


def recorded() -> dict[str, list[str]]:
    """The table's rows by their number."""
    if not TABLE.exists():
        return {}
    lines = [line for line in TABLE.read_text("utf-8").splitlines() if re.match(r"\| (?:[BDEFGH]|13\.)\d", line)]
    return {cells[0]: cells for cells in ([cell.strip() for cell in line[2:-2].split(" | ")] for line in lines)}


def _order(row: str) -> tuple[Any, ...]:
    found = re.fullmatch(r"([BDEFGH]|13\.)(\d+)(.*)", row)
    assert found is not None, row
    return "BDEFGH1".index(found[1][0]), int(found[2]), found[3]


def _plain(text: str, url: str) -> str:
    text = text.replace(url, "http://127.0.0.1:11434")
    return re.sub(r"(http://(?:127\.0\.0\.1|localhost|\[::1\])):\d+", r"\1:11434", text)


def _short(text: str, most: int = 90) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _cell(text: str) -> str:
    return " ".join(text.replace("\u0085", "⟨U+0085⟩").replace("|", "∣").split())
