"""Lists of laid-out rows: what the panes and pickers are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui_agent.tui.layout import Lines, text, wrapped


class Row(Lines):
    """A row of a list. ``key`` is unique in its list; ``selectable`` is false for headings."""

    selectable = True

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key


class Heading(Row):
    """A line between rows that cannot be chosen."""

    selectable = False

    def __init__(self, key: str, content: Content) -> None:
        super().__init__(key)
        self.content = content

    def lines(self, width: int) -> list[Content]:
        return [self.content.truncate(width, ellipsis=True)]


class Empty(Row):
    """What an empty list says: what will appear here, and how."""

    selectable = False

    def __init__(self, sentence: str) -> None:
        super().__init__("empty")
        self.sentence = sentence

    def lines(self, width: int) -> list[Content]:
        return wrapped(text(self.sentence, "$quiet"), width)


class RowList(OptionList, inherit_bindings=False):
    """An option list of :class:`Row` that keeps its place when the rows change.

    A click highlights, a double click or ``enter`` selects. The keys that act on rows are the subclass's.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "first", show=False),
        Binding("end", "last", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
    ]
    DEFAULT_CSS = """
    RowList {
        height: 1fr;
        width: 1fr;
        background: transparent;
        border: none;
        padding: 0;
        scrollbar-size-vertical: 1;
        & > .option-list--option { padding: 0 1; }
        & > .option-list--option-highlighted {
            background: $row; color: $text; text-style: none;
        }
        & > .option-list--option-hover { background: $row; }
        & > .option-list--option-disabled { color: $text; }
        &:focus {
            border: none;
            background-tint: transparent;
            & > .option-list--option-highlighted {
                background: $row-focus; color: $text; text-style: none;
            }
        }
        &:nocolor > .option-list--option-highlighted, &:ansi > .option-list--option-highlighted { text-style: bold; }
        &:nocolor:focus > .option-list--option-highlighted, &:ansi:focus > .option-list--option-highlighted {
            text-style: bold underline;
        }
    }
    """

    follows_top: ClassVar[bool] = False
    """Whether what comes in at the top is shown while the first row is highlighted and the list is not in use."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self.rows: dict[str, Row] = {}

    def show(self, rows: Sequence[Row], *, keep: bool = True) -> None:
        """Show these rows; the highlighted one stays highlighted and in view, else the one now at its place is.

        With ``keep`` off the list starts at its top. So does one that ``follows_top`` and in which nobody has chosen.
        """
        if self.follows_top and self.screen.focused is not self:
            top = next((row.key for row in self.rows.values() if row.selectable), "")
            keep = keep and self.highlighted_key != top
        old, place, scroll = (self.highlighted_key, self.highlighted, self.scroll_offset.y) if keep else ("", 0, 0)
        self.rows = {row.key: row for row in rows}
        self.set_options([Option(row, id=row.key, disabled=not row.selectable) for row in self.rows.values()])
        if old in self.rows and self.rows[old].selectable:
            self.highlighted = self.get_option_index(old)
        else:
            choices = [index for index, row in enumerate(self.rows.values()) if row.selectable]
            if choices:
                self.highlighted = min(choices, key=lambda index: abs(index - (place or 0)))
        if scroll:
            self.scroll_to(y=scroll, animate=False, immediate=True)
            self.scroll_to_highlight()

    @property
    def highlighted_key(self) -> str:
        """The key of the highlighted row, empty when there is none."""
        option = self.highlighted_option if self.highlighted is not None else None
        return (option.id or "") if option is not None else ""

    @property
    def current(self) -> Row | None:
        """The highlighted row."""
        return self.rows.get(self.highlighted_key)

    async def _on_click(self, event: events.Click) -> None:
        event.prevent_default()
        index = event.style.meta.get("option")
        if index is not None and not self.options[index].disabled:
            self.highlighted = index
            if event.chain > 1:
                self.action_select()

    def action_down(self) -> None:
        self.action_cursor_down()

    def action_up(self) -> None:
        self.action_cursor_up()
