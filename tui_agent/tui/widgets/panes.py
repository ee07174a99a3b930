"""What the memory panes share. They show views and post what a key asks for; they change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList

from tui_agent.agent.views import ColdView, HotView
from tui_agent.memory.types import RecallRecord
from tui_agent.tui.layout import join, spread
from tui_agent.tui.text import kilo
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.rows import Empty, Row, RowList


class Pane(Vertical):
    """A title line, a list, and a line below it. ``kind`` is the context of its keys in the action table."""

    kind: ClassVar[str] = ""
    empty: ClassVar[str] = ""
    DEFAULT_CSS = """
    Pane {
        height: 1fr;
        & > .pane--title { height: 1; padding: 0 1; color: $text; }
        &:focus-within > .pane--title { color: $act; }
        & > .pane--event { height: 1; padding: 0 1; color: $quiet; display: none; }
        & > .pane--event.-shown { display: block; }
        & > Input { display: none; border: none; height: 1; padding: 0 1; background: transparent; }
        & > Input.-shown { display: block; }
        & > Input:focus { border: none; }
    }
    """

    class Asked(Message):
        """A key asks for something to be done with the item ``ref`` (empty when there is none)."""

        def __init__(self, pane: Pane, what: str, ref: str, item: object = None) -> None:
            super().__init__()
            self.pane = pane
            self.what = what
            self.ref = ref
            self.item = item

        @property
        def control(self) -> Pane:
            return self.pane

    def compose(self) -> ComposeResult:
        yield Plain(classes="pane--title")
        yield self.make_list()
        yield Plain(classes="pane--event")

    def make_list(self) -> PaneList:
        raise NotImplementedError

    @property
    def list(self) -> PaneList:
        """The list of the pane."""
        return self.query_one(PaneList)

    @property
    def title(self) -> Plain:
        return self.query_one(".pane--title", Plain)

    def on_mount(self) -> None:
        self.refresh_title()
        self.list.show([Empty(self.empty)])

    def refresh_title(self) -> None:
        """Write the title line anew."""

    def ask(self, what: str) -> None:
        """Post what a key asks for, with the highlighted item."""
        row = self.list.current
        self.post_message(self.Asked(self, what, row.key if row is not None else "", getattr(row, "item", None)))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.ask("inspect")


class PaneList(RowList):
    """The list inside a pane: its keys act through the pane."""

    follows_top = True

    def ask(self, what: str) -> None:
        pane = self.parent
        assert isinstance(pane, Pane)
        pane.ask(what)

    def action_inspect(self) -> None:
        self.action_select()

    def action_pin(self) -> None:
        self.ask("pin")

    def action_put_away(self) -> None:
        self.ask("put_away")

    def action_undo(self) -> None:
        self.ask("undo")


class PaneTitle(Row):
    """A pane's title: the name, then facts, the last of them to the right."""

    def __init__(self, name: str, facts: Sequence[str], right: Content) -> None:
        """``facts`` say the same at falling length; the first that fits is shown."""
        super().__init__(name)
        self.facts = facts
        self.right = right

    def lines(self, width: int) -> list[Content]:
        room = width - len(self.key) - self.right.cell_length - 4
        fact = next((fact for fact in self.facts if len(fact) <= room), "")
        return [spread(join((self.key, "bold"), ("  " + fact if fact else "", "$quiet")), self.right, width)]


def counts(hot: HotView, cold: ColdView, record: RecallRecord | None) -> dict[str, str]:
    """What a tab or strip says of each pane: ``{"hot": "7 ◆2", "cold": "128", "recalled": "3"}``."""
    pins = sum(row.pinned for row in hot.rows)
    return {
        "hot": f"{len(hot.rows)}{f' ◆{pins}' if pins else ''}",
        "cold": kilo(cold.total),
        "recalled": str(len(record.items)) if record is not None else "0",
    }
