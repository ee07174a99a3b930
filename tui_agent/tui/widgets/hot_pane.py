"""The hot zone of the working memory: score, cost, pins."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.views import HotRow, HotView
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import join, label
from tui_agent.tui.text import bar, fit, one_line
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.panes import Pane, PaneList, PaneTitle
from tui_agent.tui.widgets.rows import Empty, Row

SORTS = ("score", "age", "tokens")


class HotItem(Row):
    """``◆ 4.12 ████████ note  24  text``: pin, score and bar, kind, tokens, text."""

    def __init__(self, item: HotRow, best: float) -> None:
        super().__init__(f"hot:{item.id}")
        self.item = item
        self.best = best

    def lines(self, width: int) -> list[Content]:
        item = self.item
        head = join(
            ("◆ " if item.pinned else "  ", "$act"),
            (f"{item.score:4.2f} ", "bold" if item.pinned else ""),
            (bar(item.score, self.best, 8) + " ", "$meter"),
            (fit(one_line(item.kind), 7) + " ", "$quiet"),
            (f"{item.tokens:>5,} ", "$quiet"),
            ("› " if item.in_prompt else "  ", "$said"),
        )
        words = label(item.summary or item.text)
        if width >= 52:
            return [join(head, words.truncate(max(4, width - head.cell_length), ellipsis=True))]
        return [head.truncate(width), join("  ", words).truncate(width, ellipsis=True)]


class HotList(PaneList):
    """
    | Key | What |
    | :- | :- |
    | p | pin, or let the pin go |
    | f | put away |
    | t, e, s | touch, edit, sort |
    """

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("hot"))

    def action_touch(self) -> None:
        self.ask("touch")

    def action_edit(self) -> None:
        self.ask("edit")

    def action_sort(self) -> None:
        self.ask("sort")


class HotPane(Pane):
    """The hot zone of the working memory, by score."""

    kind = "hot"
    empty = "Nothing yet. Files read, edits, test output and notes of this session appear here, best first; p pins one."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = HotView()
        self.sort = "score"

    def make_list(self) -> PaneList:
        return HotList()

    def show(self, view: HotView) -> None:
        """Show this view."""
        self.view = view
        best = max((row.score for row in view.rows), default=1.0)
        self.list.show([HotItem(row, best) for row in view.rows] or [Empty(self.empty)])
        self.refresh_title()
        event = self.query_one(".pane--event", Plain)
        event.set_class(bool(view.last_event), "-shown")
        event.update(label(view.last_event))

    def refresh_title(self) -> None:
        view = self.view
        share = round(100 * view.pinned_tokens / view.budget) if view.budget else 0
        used = f"{view.used:,} of {view.budget:,}"
        facts = (f"{used} tokens · pins {share} %", f"{used} · pins {share} %", used) if view.budget else ()
        over = view.budget and view.used > view.budget
        right = Content.styled("over budget: pins" if over else f"by {self.sort}", "$warning" if over else "$quiet")
        self.title.update(PaneTitle("HOT", facts, right))
