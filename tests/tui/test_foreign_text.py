"""Foreign text is never markup, never a command to the terminal: brackets through every widget and notification."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from conftest import NARROW, WIDE, driven, notices, screen_text, wait_until
from fake_session import RECALL, FakeSession
from textual.widget import Widget

from tui_agent.agent.events import (
    FileChanged,
    MemoryChanged,
    Notice,
    PhaseChanged,
    Recalled,
    SaveMissing,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from tui_agent.agent.views import Field, Inspection, PromptPart, SessionRow, ToolRow, TranscriptEntry
from tui_agent.llm.types import ModelInfo
from tui_agent.memory.types import Term
from tui_agent.tui.widgets.base import Plain

PIECES = [
    "[",
    "]",
    "[/x]",
    "[bold",
    "[/]",
    "[@click=app.quit]x[/]",
    "\\[",
    "[red on blue]",
    "]]",
    "[[",
    "[#f",
    "{}",
    "$x",
    "\x1b[2J",
    "\x07",
    "\u202e",
    "漢",
    "\t",
    "[link=javascript:x]",
    "'",
    '"',
    "%s",
    "\n",
    "a",
]


def noise(seed: int) -> str:
    chosen = random.Random(seed)
    return "".join(chosen.choice(PIECES) for _ in range(chosen.randint(3, 14)))


class HostileSession(FakeSession):
    """Every text it shows is brackets."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        n = self.n
        self.goal = n()
        self.last_event = n()
        self.server = replace(self.server, model=n(), degraded=(n(),))
        self.hot_items = [replace(row, kind=n(), text=n(), summary=n(), source=n()) for row in self.hot_items]
        self.cold_items = [replace(row, kind=n(), text=n(), summary=n(), reason=n()) for row in self.cold_items]
        self.record = replace(
            RECALL,
            query=n(),
            goal=n(),
            channels=(n(),),
            items=tuple(self.item(item) for item in RECALL.items),
            near=tuple(self.item(item) for item in RECALL.near),
        )
        self.facts = [self.inspection(item.ref) for item in self.facts]
        self.waiting = [self.inspection(item.ref) for item in self.waiting]
        tool = ToolRow("t", n(), {n(): n()}, n(), summary=n())
        self.entries = [
            TranscriptEntry("m1", "user", n(), "2026-11-30 09:41:00"),
            TranscriptEntry(
                "m2", "assistant", n(), n(), recall=self.record, tools=(tool,), thinking=n(), memory_line=n()
            ),
            TranscriptEntry("m3", "notice", n(), n()),
        ]
        self.problems = (Notice("warning", n()),)

    def n(self) -> str:
        self.seed += 1
        return noise(self.seed)

    def item(self, item: object) -> object:
        n = self.n
        terms = (Term(n(), 0.5, n()),)
        return replace(item, text=n(), kind=n(), source=n(), quote=n(), created_at=n(), terms=terms)  # type: ignore[type-var]

    def inspection(self, ref: str) -> Inspection:
        n = self.n
        return Inspection(
            ref,
            n(),
            n(),
            (Field(n(), n()),),
            (Term(n(), -1.0, n()),),
            1.0,
            n(),
            n(),
            n(),
            (n(),),
            True,
            ("pin", n(), "correct"),
        )

    async def inspect(self, ref: str) -> Inspection:
        return self.inspection(ref)

    async def sessions(self) -> list[SessionRow]:
        return [SessionRow(self.n(), self.n(), self.n(), self.n(), 3, self.n())]

    async def models(self) -> list[ModelInfo]:
        return [ModelInfo(self.n(), parameter_size=self.n(), quantization=self.n())]

    async def context(self) -> object:  # type: ignore[override]
        view = await super().context()
        return replace(view, parts=(PromptPart(self.n(), self.n(), 5),))


@pytest.mark.parametrize("seed", [0, 1000])
@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_brackets_in_every_place_are_shown_and_break_nothing(seed: int, size: tuple[int, int]) -> None:
    session = HostileSession(seed)
    n = session.n
    session.scripts = [
        [
            PhaseChanged("reading", n()),
            Recalled(session.record),
            ThinkingDelta(n()),
            ToolStarted("c", n(), {n(): n()}),
            ToolFinished("c", n(), False, n(), n()),
            TextDelta(n()),
            TextDelta("```" + n() + "\n" + n() + "\n```\n" + n()),
            MemoryChanged("saved", "fact", "x", n(), n(), n(), True),
            MemoryChanged("refused", "fact", "x", n(), n(), n()),
            SaveMissing("", n(), True, n()),
            FileChanged(n(), n(), n()),
            Notice("error", n()),
            TurnFinished("failed", error=n()),
        ]
    ]
    async with driven(session, size) as (app, pilot, _):
        app.chat.send(n())
        await wait_until(pilot, lambda: not app.chat.running)
        app.say(n(), "error")
        await wait_until(pilot, lambda: notices(app))
        app.chat.composer.enqueue(n())
        app.chat.transcript.focus()
        await pilot.press("enter", "d")
        for keys in (("f2", "enter"), ("f4", "enter"), ("f5",), ("ctrl+l",), ("ctrl+o",), ("f6",), ("alt+w",)):
            await pilot.press(*keys)
            await pilot.pause()
            assert "\x1b" not in screen_text(app)
            if app.screen is not app.chat:
                await pilot.press("escape")
        assert app.is_running


def test_the_base_widget_keeps_brackets() -> None:
    assert str(Plain("[/x] [bold]y[/bold]").visual) == "[/x] [bold]y[/bold]"


async def test_no_widget_of_ours_parses_markup() -> None:
    async with driven() as (app, _, _session):
        for widget in app.chat.query("*"):
            if type(widget).__module__.startswith("tui_agent") and isinstance(widget, Plain):
                assert widget._render_markup is False
        assert isinstance(app.chat.transcript, Widget)
