"""What was put away: searchable, and brought back by a key."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList

from tui_agent.agent.views import ColdRow, ColdView
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import join, label, spread
from tui_agent.tui.text import fit, one_line, plural, stamp
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.panes import Pane, PaneList, PaneTitle
from tui_agent.tui.widgets.rows import Empty, Row


class ColdItem(Row):
    """``file   512  summary   step 30  09:22``. The reason is told below the list, for the highlighted row."""

    def __init__(self, item: ColdRow) -> None:
        super().__init__(f"cold:{item.id}")
        self.item = item

    def lines(self, width: int) -> list[Content]:
        item = self.item
        head = join(
            ("◆ " if item.pinned else "  ", "$act"),
            (fit(one_line(item.kind), 7) + " ", "$quiet"),
            (f"{item.tokens:>6,} ", "$quiet"),
        )
        step = f"step {item.step:>2}  " if width >= 52 else ""
        when = Content.styled(f"{step}{stamp(item.put_away_at)}", "$quiet")
        return [spread(join(head, label(item.summary or item.text)), when, width)]

    @property
    def why(self) -> str:
        """Why it was put away, and how long it rests."""
        rests = f"rests {plural(self.item.cooldown, 'step')} more" if self.item.cooldown else ""
        return " · ".join(part for part in (one_line(self.item.reason), rests) if part)


class ColdList(PaneList):
    """
    | Key | What |
    | :- | :- |
    | r | bring back |
    | / | search |
    """

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("cold"))

    def action_bring_back(self) -> None:
        self.ask("bring_back")

    def action_search(self) -> None:
        pane = self.parent
        assert isinstance(pane, ColdPane)
        pane.open_search()


class ColdPane(Pane):
    """What was put away, newest first, or best first when searched."""

    kind = "cold"
    empty = "Nothing was put away yet. When the hot memory is full, or you press f there, items rest here, whole."

    class Searched(Message):
        """The search text changed."""

        def __init__(self, query: str) -> None:
            super().__init__()
            self.query = query

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = ColdView()
        self.query_text = ""

    def compose(self) -> ComposeResult:
        yield Plain(classes="pane--title")
        yield Input(placeholder="search what was put away", select_on_focus=False)
        yield self.make_list()
        yield Plain(classes="pane--event")

    def make_list(self) -> PaneList:
        return ColdList()

    def show(self, view: ColdView) -> None:
        """Show this view."""
        self.view = view
        empty = f"Nothing put away matches “{one_line(view.query)}”." if view.query else self.empty
        self.list.show([ColdItem(row) for row in view.rows] or [Empty(empty)])
        self.refresh_title()
        self._tell_why()

    def refresh_title(self) -> None:
        view = self.view
        found = (
            f"{len(view.rows):,} of {view.total:,}" if view.query else f"{view.total:,} item{'s'[: view.total != 1]}"
        )
        self.title.update(
            PaneTitle("COLD", (found,) if view.total or view.query else (), Content.styled("/ search", "$quiet"))
        )

    @on(OptionList.OptionHighlighted)
    def _tell_why(self) -> None:
        row = self.list.current
        why = row.why if isinstance(row, ColdItem) else ""
        event = self.query_one(".pane--event", Plain)
        event.set_class(bool(why), "-shown")
        event.update(why)

    def open_search(self) -> None:
        """Show the search line and write there."""
        search = self.query_one(Input)
        search.add_class("-shown")
        search.focus()

    def close_search(self) -> bool:
        """Clear and hide the search line; whether it was open."""
        search = self.query_one(Input)
        if not search.has_class("-shown"):
            return False
        search.remove_class("-shown")
        search.value = ""
        self.list.focus()
        return True

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.query_text:
            self.query_text = event.value
            self.post_message(self.Searched(event.value))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.list.focus()
