"""``ollama.md``: every fault of a model server, what was injected, what the user saw, and what was on disk.

The table is written by the tests: run them with ``TUI_AGENT_WRITE_TABLE=1`` (and without ``-n``). Every other run
checks that each test still sees what the table says. What the user saw comes from the events that were really emitted,
from the screen or from a command's output; what was on disk from the stores of the session that really ran.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Desk, of
from tui_agent.agent.events import Event, Notice, Recalled, ToolFinished, TurnFinished
from tui_agent.agent.prompt import legal_problem
from tui_agent.llm.client import ModelClient
from tui_agent.memory.history import StoredMessage

TABLE = Path(__file__).with_name("ollama.md")
WRITING = os.environ.get("TUI_AGENT_WRITE_TABLE") == "1"
WRITTEN: set[str] = set()
HEAD = """# Faults of a model server, one by one

Written by the tests `tests/faults/test_ollama_*.py` (`TUI_AGENT_WRITE_TABLE=1 pytest tests/faults -k ollama`); every
other run of them checks this page. Each fault is played by the scripted server over real HTTP against a whole session,
and where the row is about a screen or a command, against that. B: tool calls and the loop of rounds. D: loading and
memory. E: streams. F: connection and environment. G: thinking and formats. H: embeddings. R: remote and odd hosts.
13: what the scripted server itself can play.

| row | what was injected | what the user saw | what was on disk |
| :- | :- | :- | :- |
"""
QUESTION = "Which port does the server use?"
_ROW = r"([BDEFGHR]|13\.)(\d+)([a-z]*)"


@dataclass
class Pauses:
    """The seconds a client has waited before second tries, as it meant to."""

    seconds: list[float]


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    """No pauses before second tries (how long they would have been is kept), quick looks at the server, and no
    sentence about containers, wherever this runs."""
    meant = ModelClient._pause
    pauses = Pauses([])

    def at_once(client: ModelClient, attempt: int) -> float:
        pauses.seconds.append(meant(client, attempt))
        return 0.0

    monkeypatch.setattr("tui_agent.llm.client.ModelClient._pause", at_once)
    monkeypatch.setattr("tui_agent.llm.explain.in_container", lambda: False)
    monkeypatch.setattr("tui_agent.agent.waiting.POLL_S", 0.02)
    monkeypatch.setattr("tui_agent.agent.waiting.DRAIN_S", 0.02)
    return pauses


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

    @property
    def recalled(self) -> list[str]:
        """What was recalled for it, and how it was found."""
        return [_recalled(item) for event in of(self.events, Recalled) for item in event.record.items]


async def play(
    desk: Desk,
    row: str,
    injected: str,
    text: str = QUESTION,
    *,
    also: str = "",
    legal: bool = True,
    since: int | None = None,
    disk: str = "",
) -> Seen:
    """One turn on what the test has scripted; its row is recorded.

    Args:
        also: something more that the user really saw, as the test has read it from a screen or a command.
        since: from which of the background events on the user's notices count; from now when not given.
        disk: more that was really on disk, as the test has read it.
    """
    heard = len(desk.heard) if since is None else since
    events = await desk.say(text)
    await desk.session.core.settled()
    end = desk.last(events)
    notices = [event.text for event in of([*desk.heard[heard:], *events], Notice)]
    tools = [f"▸ {event.name} {'ok' if event.ok else 'refused'}" for event in of(events, ToolFinished)]
    seen = Seen(events, end, notices)
    recalled = [f"recalled {item}" for item in seen.recalled]
    kept = "; ".join(filter(None, [on_disk(desk), disk]))
    record(row, injected, saw(end, [*recalled, *tools, *notices], desk.server.url, also), kept)
    if legal:
        assert legal_problem(desk.session.core.prompt.messages()) == ""
        ours = [one for one in desk.server.chats if "num_predict" in one.body.get("options", {})]
        assert [legal_problem(one.messages) for one in ours] == [""] * len(ours)
    return seen


def saw(end: TurnFinished, notices: Sequence[str], url: str, also: str = "") -> str:
    """What the screen told of a turn."""
    parts = [f"{end.status}"]
    if end.text.strip():
        parts.append(f"“{_short(end.text)}”")
    said = [*notices, *([end.error] if end.error else []), *([also] if also else [])]
    parts += [plain(sentence, url) for sentence in said]
    return ": ".join([parts[0], " / ".join(parts[1:])]) if len(parts) > 1 else parts[0]


def on_disk(desk: Desk) -> str:
    """The history since the last message of the user, the vectors of facts, and what was noted of models."""
    rows = desk.session.stores.history.messages(desk.session.id)
    last = max((at for at, row in enumerate(rows) if row.role == "user"), default=0)
    parts = [", ".join(map(_stored, rows[last:])), vectors_on_disk(desk), noted_on_disk(desk)]
    return "; ".join(filter(None, parts)) or "nothing"


def vectors_on_disk(desk: Desk) -> str:
    """How many facts there are, and how many vectors of which size; empty without facts."""
    db = desk.session.stores.db
    facts = db.row("SELECT count(*) AS n FROM live_memory")["n"]
    if not facts:
        return ""
    sizes = db.rows(
        "SELECT identity, dimension, count(*) AS n FROM fact_vectors GROUP BY identity, dimension ORDER BY identity"
    )
    made = ", ".join(
        f"{row['n']} vector{'s' * (row['n'] != 1)} of {row['dimension']} numbers ({_embedder(row['identity'])})"
        for row in sizes
        if not row["identity"].startswith("words:")
    )
    return f"{facts} fact{'s' * (facts != 1)}, {made or 'no vector'}"


def noted_on_disk(desk: Desk) -> str:
    """What the file of notes about models says was refused."""
    path = desk.paths.model_notes_path
    if not path.exists():
        return ""
    notes = json.loads(path.read_text("utf-8"))["models"].values()
    found = [f"{note['name']}: {key}" for note in notes for key in ("tools_refused", "think_refused") if note[key]]
    return f"noted of {', '.join(found)}" if found else ""


def _embedder(identity: str) -> str:
    return identity.partition("@")[0]


def _recalled(item: Any) -> str:
    how = [term.name for term in item.terms if term.name in ("words", "meaning") and term.value > 0]
    return f"“{_short(item.text, 60)}” by {' and '.join(how) or 'its place'}"


def _stored(row: StoredMessage) -> str:
    words = f"{'answer' if row.role == 'assistant' else row.role} {row.status}"
    if row.content.strip():
        words += f" “{_short(row.content)}”"
    tools = [f"{tool['name']} {'ok' if tool['ok'] else 'refused'}" for tool in row.meta.get("tools", ())]
    return words + (f" with {', '.join(tools)}" if tools else "")


def record(row: str, injected: str, saw: str, disk: str) -> None:
    """Write the row, or check that the table says the same."""
    cells = [row, *(_cell(plain(text, "")) for text in (injected, saw, disk))]
    found = recorded()
    if WRITING:
        write({**found, row: cells})
        WRITTEN.add(row)
    assert recorded().get(row) == cells, f"row {row} of {TABLE.name}: run with TUI_AGENT_WRITE_TABLE=1 and look at it"


def write(rows: Mapping[str, Sequence[str]]) -> None:
    """The table with these rows."""
    lines = [f"| {' | '.join(rows[name])} |" for name in sorted(rows, key=_order)]
    TABLE.write_text(HEAD + "\n".join(lines) + "\n", "utf-8")


def recorded() -> dict[str, list[str]]:
    """The table's rows by their number."""
    if not TABLE.exists():
        return {}
    lines = [line for line in TABLE.read_text("utf-8").splitlines() if re.match(rf"\| {_ROW} \|", line)]
    return {cells[0]: cells for cells in ([cell.strip() for cell in line[2:-2].split(" | ")] for line in lines)}


def _order(row: str) -> tuple[Any, ...]:
    found = re.fullmatch(_ROW, row)
    assert found is not None, row
    return "BDEFGHR1".index(found[1][0]), int(found[2]), found[3]


def plain(text: str, url: str) -> str:
    """The text with the address of every server as if it were the usual one."""
    text = text.replace(url, "http://127.0.0.1:11434") if url else text
    text = re.sub(r"(https?://(?:127\.0\.0\.1|localhost|\[::1\]|[\w.]+\.(?:internal|example))):\d+", r"\1:11434", text)
    # Where in Python's own source a certificate was refused, and OpenSSL's spelling, differ by version.
    text = re.sub(r" \(_ssl\.c:\d+\)", "", text).replace("self signed certificate", "self-signed certificate")
    return re.sub(r"\b\d+ (s|ms)\b", r"N \1", text) if "no data for" in text else text


def _short(text: str, most: int = 90) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _cell(text: str) -> str:
    return " ".join(text.replace("\u0085", "⟨U+0085⟩").replace("|", "∣").split())
