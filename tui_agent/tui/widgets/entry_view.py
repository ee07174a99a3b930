"""Entries drawn as lines: one widget that draws only what is in view, however many turns there are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from time import perf_counter
from typing import ClassVar

from rich.segment import Segment
from textual.cache import LRUCache
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from tui_agent.tui.answer import AnswerEntry
from tui_agent.tui.entries import Entry, View
from tui_agent.tui.layout import Line

MAX_TEXT_WIDTH = 104
_SETTLE_S = 0.012  # layout work in one go, so that a key never waits longer


class EntryView(ScrollView, can_focus=True):
    """Entries as lines, virtual. It follows the end until the user scrolls away, and again when they come back."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {"transcript--selected"}
    DEFAULT_CSS = """
    EntryView {
        height: 1fr;
        width: 1fr;
        text-wrap: nowrap;
        text-overflow: clip;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        & .transcript--selected { color: $act; }
    }
    """

    following: var[bool] = var(True)
    """Whether new text keeps the end in view."""
    unseen: var[bool] = var(False)
    """Whether something new is below what is in view."""

    class Selected(Message):
        """Another answer was selected, or the selected one became complete."""

        def __init__(self, view: EntryView, entry: AnswerEntry | None) -> None:
            super().__init__()
            self.view = view
            self.entry = entry

        @property
        def control(self) -> EntryView:
            return self.view

    class Followed(Message):
        """Following the end began or ended, or something new appeared below."""

    def __init__(self, hint: Callable[[str, str, bool], str], *, id: str | None = None) -> None:
        """``hint(action, label, focused)`` writes the key of an action."""
        super().__init__(id=id)
        self.entries: list[Entry] = []
        self.selected: AnswerEntry | None = None
        self._hint = hint
        self._tops: list[int] = [0]
        self._heights: list[int] = []
        self._settled: list[bool] = []
        self._width = 0
        # By identity of the line, which is kept beside the strip so that the identity stays its own: lines of finished
        # blocks are the same objects from frame to frame.
        self._strips: LRUCache[tuple[int, int, bool], tuple[Line, Strip]] = LRUCache(4096)
        self._settling = False
        self._scrolling = False

    # -- content -------------------------------------------------------------------------------------------------

    def load(self, entries: Iterable[Entry]) -> None:
        """Replace everything, and go to the end."""
        self.entries = list(entries)
        self._heights = [entry.estimate(self._text_width) for entry in self.entries]
        self._settled = [False] * len(self.entries)
        self._strips.clear()
        self.following, self.unseen = True, False
        self.selected = next((entry for entry in reversed(self.entries) if isinstance(entry, AnswerEntry)), None)
        self._measure(0)
        self.post_message(self.Selected(self, self.selected))

    def add(self, entry: Entry) -> None:
        """Append an entry; a new answer becomes the selected one while the end is followed."""
        self.entries.append(entry)
        self._heights.append(0)
        self._settled.append(False)
        if isinstance(entry, AnswerEntry) and (self.following or self.selected is None):
            self.select(entry, reveal=False)
        self._lay_out(len(self.entries) - 1)
        self._measure(len(self.entries) - 1)
        self._note_new()

    def take_out(self, gone: Callable[[Entry], bool]) -> bool:
        """Take out the entries for which ``gone`` holds, and keep the place; whether there were any."""
        kept = [index for index, entry in enumerate(self.entries) if not gone(entry)]
        if len(kept) == len(self.entries):
            return False
        self.entries = [self.entries[index] for index in kept]
        self._heights = [self._heights[index] for index in kept]
        self._settled = [self._settled[index] for index in kept]
        self._measure(0)
        return True

    def changed(self, entry: Entry) -> None:
        """Draw an entry anew after its content changed."""
        index = self._index(entry)
        if index is None:
            return
        entry.touch()
        before = self._heights[index]
        self._lay_out(index)
        self._measure(index)
        if self._heights[index] != before or index == len(self.entries) - 1:
            self._note_new()

    def select(self, entry: AnswerEntry | None, *, reveal: bool = True) -> None:
        """Select an answer and, unless told otherwise, bring it into view."""
        previous, self.selected = self.selected, entry
        for changed in (previous, entry):
            index = self._index(changed) if changed is not None else None
            if index is not None:
                self._lay_out(index)
        self._measure(0)
        if reveal and entry is not None:
            self._reveal(entry)
        if previous is not entry:
            self.post_message(self.Selected(self, entry))

    def answer(self, message_id: str) -> AnswerEntry | None:
        """The answer with this message id, if it is here."""
        found = (e for e in reversed(self.entries) if isinstance(e, AnswerEntry) and e.message_id == message_id)
        return next(found, None)

    def redraw(self) -> None:
        """Draw the selected answer anew, for hints that changed with the focus."""
        if self.selected is not None:
            self.changed_quietly(self.selected)

    def changed_quietly(self, entry: Entry) -> None:
        """Like :meth:`changed`, without telling anyone that something is new."""
        index = self._index(entry)
        if index is not None:
            entry.touch()
            self._lay_out(index)
            self._measure(index)

    def _index(self, entry: Entry) -> int | None:
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index] is entry:
                return index
        return None

    def _note_new(self) -> None:
        if not self.following and not self.unseen:
            self.unseen = True
            self.post_message(self.Followed())

    # -- geometry ------------------------------------------------------------------------------------------------

    @property
    def _text_width(self) -> int:
        return max(16, min(MAX_TEXT_WIDTH, (self._width or 80) - 3))

    def _view(self, entry: Entry) -> View:
        focused = self.has_focus
        return View(entry is self.selected, lambda name, label: self._hint(name, label, focused))

    def _lines(self, index: int) -> list[Line]:
        entry = self.entries[index]
        return entry.lines(self._text_width, self._view(entry))

    def _lay_out(self, index: int) -> None:
        self._heights[index] = len(self._lines(index))
        self._settled[index] = True

    def _measure(self, first: int) -> None:
        """Recompute tops from entry ``first`` on, keep the place, and follow the end if that is on."""
        self._tops[first + 1 :] = []
        start = self._tops[first] if first < len(self._tops) else self._tops[-1]
        self._tops[first:] = accumulate(self._heights[first:], initial=start)
        self._scrolling = True
        try:
            self._resize_content(Size(max(1, self.scrollable_content_region.width), self._tops[-1]))
            if self.following:
                self.scroll_end(animate=False, immediate=True, force=True, x_axis=False)
        finally:
            self._scrolling = False
        self.refresh()
        if not all(self._settled) and not self._settling and self._width:
            self._settling = True
            self.call_later(self._settle)

    def _resize_content(self, size: Size) -> None:
        """Take a new content size. Only when the scroll bar comes or goes does anything else on the screen move;
        otherwise a layout of the whole screen, twelve times a second while text streams, is saved."""
        view = self.size.height
        if (self.virtual_size.height > view) != (size.height > view) or not self.show_vertical_scrollbar:
            self.virtual_size = size
        elif size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
            self.scroll_y = self.validate_scroll_y(self.scroll_y)

    def _settle(self) -> None:
        """Lay out what was only estimated, newest first, a slice at a time."""
        self._settling = False
        began = perf_counter()
        lowest: int | None = None
        above = 0
        first_visible = self._entry_at(self.scroll_offset.y)
        for index in range(len(self.entries) - 1, -1, -1):
            if self._settled[index]:
                continue
            before = self._heights[index]
            self._lay_out(index)
            lowest = index
            if index < first_visible:
                above += self._heights[index] - before
            if perf_counter() - began > _SETTLE_S:
                break
        if lowest is None:
            return
        place = self.scroll_offset.y + above
        self._measure(lowest)
        if above and not self.following:
            self._scrolling = True
            self.scroll_to(y=place, animate=False, immediate=True, force=True)
            self._scrolling = False

    def _entry_at(self, y: int) -> int:
        return max(0, min(bisect_right(self._tops, y) - 1, len(self.entries) - 1))

    def _settle_view(self) -> None:
        """Lay out what is in view before it is drawn."""
        if not self.entries:
            return
        for _ in range(8):
            first = self._entry_at(self.scroll_offset.y)
            last = self._entry_at(self.scroll_offset.y + self.size.height)
            if self.following:
                last = len(self.entries) - 1
            todo = [index for index in range(first, last + 1) if not self._settled[index]]
            if not todo:
                return
            for index in todo:
                self._lay_out(index)
            self._measure(todo[0])

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width != self._width:
            self._width = width
            self._strips.clear()
            self._settled = [False] * len(self.entries)
        self._settle_view()
        self._measure(0)

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """A scroll bar that has just appeared does not know yet how far the view was scrolled without it."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if not self._scrolling:
            following = new_value >= self.max_scroll_y
            if following != self.following:
                self.following = following
                if following:
                    self.unseen = False
                self.post_message(self.Followed())
            self._settle_view()

    def _reveal(self, entry: Entry) -> None:
        index = self._index(entry)
        if index is None:
            return
        self._settle_view()
        top, height = self._tops[index], self._heights[index]
        view = Region(0, self.scroll_offset.y, 1, self.size.height)
        if top < view.y or top + height > view.bottom:
            last = index == len(self.entries) - 1
            self.scroll_to(
                y=self.max_scroll_y if last and height <= view.height else top, animate=False, immediate=True
            )

    # -- drawing -------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = self.scroll_offset.y + y
        if not self.entries or row >= self._tops[-1] or row < 0:
            return Strip.blank(width, self.rich_style)
        index = self._entry_at(row)
        number = row - self._tops[index]
        lines = self._lines(index)
        line = lines[number] if number < len(lines) else Line(Content(""))
        marked = self.entries[index] is self.selected and self._marks_selection and number < len(lines) - 1
        selection = self.text_selection
        if selection is not None:
            return self._draw(line, marked, width, selection.get_span(row)).apply_offsets(-2, row)
        key = (id(line), width, marked)
        kept = self._strips.get(key)
        if kept is None:
            kept = (line, self._draw(line, marked, width, None))
            self._strips[key] = kept
        return kept[1].apply_offsets(-2, row)

    def _draw(self, line: Line, marked: bool, width: int, span: tuple[int, int] | None) -> Strip:
        content = line.content
        if span is not None:
            start, end = span
            style = self.screen.get_visual_style("screen--selection")
            content = content.stylize(style, max(0, start), len(content.plain) if end == -1 else end)
        strips = Visual.to_strips(self, content, max(1, width - 2), 1, self.visual_style, apply_selection=False)
        rich_style = self.rich_style
        body = strips[0] if strips else Strip.blank(width - 2, rich_style)
        mark_style = self.get_component_rich_style("transcript--selected") if marked else rich_style
        gutter = Segment("▎ " if marked else "  ", mark_style)
        return Strip([gutter, *body], body.cell_length + 2).adjust_cell_length(width, rich_style)

    @property
    def _marks_selection(self) -> bool:
        """The latest answer needs no mark while nobody walks through the conversation."""
        return self.has_focus or self.selected is not self._latest

    @property
    def _latest(self) -> AnswerEntry | None:
        return next((entry for entry in reversed(self.entries) if isinstance(entry, AnswerEntry)), None)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        rows = [line.content.plain.rstrip() for index in range(len(self.entries)) for line in self._lines(index)]
        return selection.extract("\n".join(rows)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def _focus_changed(self) -> None:
        self._strips.clear()
        self.redraw()

    def on_focus(self) -> None:
        self._focus_changed()

    def on_blur(self) -> None:
        self._focus_changed()
