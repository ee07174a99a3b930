"""The doctor on screen: faults first, each with what mends it."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import NARROW, WIDE, driven, notices, screen_text, wait_until
from fake_session import FakeSession

from tui_agent.agent.doctor.troubles import found, well
from tui_agent.tui import clipboard
from tui_agent.tui.screens.doctor import DoctorScreen
from tui_agent.tui.terminal_facts import terminal_facts

FINDINGS = [
    well("address", "http://127.0.0.1:11434, this machine (default)"),
    found("server.closed", url="http://127.0.0.1:11434"),
    found("terminal.colours", colours=16),
    well("python", "Python 3.11.7, SQLite 3.45.1"),
]


async def opened(pilot: Any, app: Any) -> None:
    await pilot.press(*"/doctor", "enter")
    await wait_until(pilot, lambda: isinstance(app.screen, DoctorScreen) and app.screen.findings)
    await pilot.pause()


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_what_is_broken_stands_first_with_its_command(size: tuple[int, int]) -> None:
    session = FakeSession()
    session.findings = FINDINGS
    async with driven(session, size) as (app, pilot, _):
        await opened(pilot, app)
        shown = screen_text(app)
        assert shown.index("Nothing answers at http://127.0.0.1:11434.") < shown.index("16 colours")
        assert "→ ollama serve, or tui-agent setup" in shown
        assert "2 faults" in shown
        assert ("examine", str(size[0]), str(size[1])) in session.calls


async def test_only_faults_are_shown_when_asked_and_all_again() -> None:
    session = FakeSession()
    session.findings = FINDINGS
    async with driven(session) as (app, pilot, _):
        await opened(pilot, app)
        assert "Python 3.11.7" in screen_text(app)
        await pilot.press("a")
        await wait_until(pilot, lambda: "Python 3.11.7" not in screen_text(app))
        await wait_until(pilot, lambda: app.screen.query_one(".panel").size.height < 20, "no tall, empty panel")
        await pilot.press("a")
        await wait_until(pilot, lambda: "Python 3.11.7" in screen_text(app))


async def test_looking_again_shows_that_it_is_mended() -> None:
    session = FakeSession()
    session.findings = FINDINGS
    async with driven(session) as (app, pilot, _):
        await opened(pilot, app)
        session.findings = FINDINGS[:1]
        await pilot.press("r")
        await wait_until(pilot, lambda: "all is well" in screen_text(app))
        await pilot.press("escape")
        await wait_until(pilot, lambda: not isinstance(app.screen, DoctorScreen))


async def test_the_page_is_copied_with_its_fixes(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []

    async def copy(text: str, write: Any) -> clipboard.Copied:
        copied.append(text)
        return clipboard.Copied(("terminal",))

    monkeypatch.setattr(clipboard, "copy", copy)
    session = FakeSession()
    session.findings = FINDINGS
    async with driven(session) as (app, pilot, _):
        await opened(pilot, app)
        await pilot.press("y")
        await wait_until(pilot, lambda: notices(app))
    assert "broken    Server: Nothing answers at http://127.0.0.1:11434. ollama serve" in copied[0]


@pytest.mark.parametrize(
    ("env", "colours", "copies", "newline"),
    [
        ({"TERM": "xterm-256color"}, 256, "the terminal (OSC 52)", ("ctrl+j", "alt+enter")),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, 2**24, "the terminal (OSC 52)", ("ctrl+j", "alt+enter")),
        ({"TERM": "xterm-kitty"}, 256, "the terminal (OSC 52)", ("ctrl+j", "alt+enter", "shift+enter")),
        (
            {"TERM": "tmux-256color", "TMUX": "/tmp/tmux-0/default", "TERM_PROGRAM": "WezTerm"},
            256,
            "the terminal (OSC 52)",
            ("ctrl+j", "alt+enter"),
        ),
        ({"TERM": "linux"}, 16, "", ("ctrl+j", "alt+enter")),
        ({"TERM": "dumb"}, 0, "", ("ctrl+j", "alt+enter")),
    ],
    ids=lambda value: value.get("TERM", "") if isinstance(value, dict) else "",
)
def test_what_a_terminal_can_do_is_told_by_its_variables(
    env: dict[str, str], colours: int, copies: str, newline: tuple[str, ...]
) -> None:
    facts = terminal_facts(env, here=False, which=lambda _: None)
    assert facts.colours == colours
    assert facts.copies == ((copies,) if copies else ())
    assert facts.newline == newline


def test_a_clipboard_tool_comes_before_the_terminals_own_way() -> None:
    facts = terminal_facts(
        {"TERM": "xterm", "DISPLAY": ":0"}, here=False, which=lambda name: "/usr/bin/xclip" if name == "xclip" else None
    )
    assert facts.copies == ("xclip", "the terminal (OSC 52)")
