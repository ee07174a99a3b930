"""Panels with a list: everything remembered, sessions, and search in what was said."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Input, OptionList

from tui_agent.agent.views import Inspection, SessionRow, TranscriptEntry
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import join, label, spread
from tui_agent.tui.screens.fact_keys import FactKeys
from tui_agent.tui.screens.inspector import InspectorScreen
from tui_agent.tui.screens.panel import Panel, Result
from tui_agent.tui.text import one_line, plural, stamp
from tui_agent.tui.widgets.rows import Empty, Heading, Row, RowList


class ListPanel(Panel[Result]):
    """A panel with a search line (hidden until asked for) and a list."""

    searchable: ClassVar[bool] = True

    def body(self) -> ComposeResult:
        yield Input(placeholder="search", select_on_focus=False, id="search")
        yield RowList(id="list")

    def on_mount(self) -> None:
        self.add_class("-tall")
        self.query_one("#search", Input).display = False
        self.list.focus()

    @property
    def list(self) -> RowList:
        return self.query_one("#list", RowList)

    @property
    def words(self) -> str:
        """What is searched for."""
        return self.query_one("#search", Input).value.strip()

    def search_changed(self) -> None:
        """The search text changed."""

    def chosen(self, row: Row) -> None:
        """A row was chosen."""

    def action_search(self) -> None:
        field = self.query_one("#search", Input)
        field.display = True
        field.focus()

    def action_close(self) -> None:
        field = self.query_one("#search", Input)
        if field.display and (field.has_focus or field.value):
            field.value = ""
            field.display = False
            self.list.focus()
        else:
            self.dismiss(None)

    @on(Input.Changed, "#search")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.search_changed()

    @on(Input.Submitted, "#search")
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        self.list.focus()

    @on(OptionList.OptionSelected, "#list")
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        row = self.list.current
        if row is not None:
            self.chosen(row)

    def action_down(self) -> None:
        self.list.action_cursor_down()

    def action_up(self) -> None:
        self.list.action_cursor_up()

    def action_inspect(self) -> None:
        self.list.action_select()

    def action_choose(self) -> None:
        self.list.action_select()


# -- everything remembered -------------------------------------------------------------------------------------


class MemoryRow(Row):
    """One thing remembered, or a proposal that waits."""

    def __init__(self, item: Inspection, *, waiting: bool) -> None:
        super().__init__(item.ref)
        self.item = item
        self.waiting = waiting

    def lines(self, width: int) -> list[Content]:
        item = self.item
        facts = {one_line(row.label).lower(): one_line(row.value) for row in item.fields}
        mark = ("? ", "$warning") if self.waiting else ("◆ " if item.pinned else "  ", "$act")
        right = facts.get("confirmed") or facts.get("created") or facts.get("date") or ""
        title = one_line(item.title)
        kind = facts.get("kind") or (title if len(title) < 12 else "")
        first = join(mark, (f"{kind:<11} " if kind else "", "$quiet"), label(item.text))
        lines = [spread(first, Content.styled(right[:10], "$quiet"), width)]
        if self.waiting:
            why = one_line(item.why) or one_line(item.source)
            lines.append(join(("  ", ""), (why, "$quiet")).truncate(width, ellipsis=True))
        return lines


class RememberedScreen(ListPanel[None], FactKeys[None]):
    """Everything remembered, and what waits for approval.

    | Key | What |
    | :- | :- |
    | a, n | approve, reject a waiting proposal |
    | c, e, x, h, D | confirm, correct, expire, set until when, delete forever |
    | / | search |
    """

    kind = "remembered"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("remembered"))

    def __init__(self) -> None:
        super().__init__()
        self.items: list[Inspection] = []
        self.waiting: list[Inspection] = []
        self.facts = ""

    def on_mount(self) -> None:
        self.set_title("Remembered")
        self.load()

    def load(self) -> None:
        session = self.session

        async def all_of_it() -> tuple[list[Inspection], list[Inspection], str]:
            notes, cap = await session.notes_counted()
            sharing = await session.sharing()
            mode = "custom sharing" if sharing.mode == "custom" else sharing.mode
            facts = f"notes about you {notes} of {cap} · {mode}"
            return await session.remembered(), await session.quarantined(), facts

        self.host.fetch(all_of_it(), self.show, owner=self)

    def show(self, found: tuple[list[Inspection], list[Inspection], str]) -> None:
        self.items, self.waiting, self.facts = found
        self.search_changed()

    def search_changed(self) -> None:
        needle = self.words.casefold()

        def fits(item: Inspection) -> bool:
            return needle in f"{item.title} {item.text} {item.source}".casefold()

        waiting = [MemoryRow(item, waiting=True) for item in self.waiting if fits(item)]
        known = [MemoryRow(item, waiting=False) for item in self.items if fits(item)]
        rows: list[Row] = []
        if waiting:
            rows += [Heading("w", join(("waits for your yes", "bold $warning"))), *waiting]
        if known:
            rows += [Heading("k", join(("remembered", "bold $said"))), *known] if waiting else known
        nothing = (
            f"Nothing remembered contains “{self.words}”."
            if needle
            else "Nothing yet. Say something about you or the project (“my name is …”, “we use pnpm”) and it is kept "
            "here, with your words as proof."
        )
        self.list.show(rows or [Empty(nothing)])
        counts = plural(len(self.items), "item")
        to_review = f"{counts} · {len(self.waiting)} to review" if self.waiting else counts
        self.set_title("Remembered", f"{to_review} · {self.facts}" if self.size.width >= 90 else to_review)
        self.host.reviews(len(self.waiting))

    def chosen(self, row: Row) -> None:
        self.open_item(row.key)

    def current_item(self) -> tuple[Inspection, bool] | None:
        row = self.list.current
        return (row.item, row.waiting) if isinstance(row, MemoryRow) else None


# -- sessions --------------------------------------------------------------------------------------------------


class SessionItem(Row):
    """``title   12 messages  2026-08-15``, with the goal below."""

    def __init__(self, item: SessionRow, *, current: bool) -> None:
        super().__init__(item.id)
        self.item = item
        self.current = current

    def lines(self, width: int) -> list[Content]:
        item = self.item
        right = f"{plural(item.messages, 'message')}  {stamp(item.updated_at)}"
        title = label(item.title or "untitled", "bold" if self.current else "")
        first = spread(join(("● " if self.current else "  ", "$said"), title), Content.styled(right, "$quiet"), width)
        if not item.goal or one_line(item.goal) == one_line(item.title):
            return [first]
        return [first, join(("  goal: ", "$faint"), label(item.goal, "$quiet")).truncate(width, ellipsis=True)]


class SessionsScreen(ListPanel[str]):
    """Earlier sessions. Dismissed with a session id, ``new``, or nothing."""

    kind = "picker"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("picker"))

    def __init__(self) -> None:
        super().__init__()
        self.items: list[SessionRow] = []

    def on_mount(self) -> None:
        self.set_title("Sessions")
        self.host.fetch(self.session.sessions(), self.show, owner=self)

    def show(self, items: list[SessionRow]) -> None:
        self.items = items
        self.search_changed()

    def search_changed(self) -> None:
        needle = self.words.casefold()
        found = [item for item in self.items if needle in f"{item.title} {item.goal}".casefold()]
        current = self.session.id
        rows: list[Row] = [SessionItem(item, current=item.id == current) for item in found]
        nothing = f"No session is about “{self.words}”." if needle else "This is the first session in this project."
        self.list.show(rows or [Empty(nothing)])
        self.set_title("Sessions", plural(len(self.items), "session"))

    def chosen(self, row: Row) -> None:
        self.dismiss(row.key)

    def action_new(self) -> None:
        self.dismiss("new")


# -- search in history -----------------------------------------------------------------------------------------


class FoundRow(Row):
    """One message that was said, on two lines."""

    def __init__(self, item: TranscriptEntry, number: int) -> None:
        super().__init__(f"{number}")
        self.item = item

    def lines(self, width: int) -> list[Content]:
        item = self.item
        head = join(("You" if item.role == "user" else "Assistant", "bold"), (f" · {stamp(item.created_at)}", "$quiet"))
        return [head, label(item.text).truncate(width, ellipsis=True)]


class FoundScreen(ListPanel[None]):
    """What was said about something, in all sessions of the project."""

    kind = "picker"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("picker"))

    def __init__(self, needle: str) -> None:
        super().__init__()
        self.needle = needle

    def on_mount(self) -> None:
        self.set_title(f"Said about “{self.needle}”")
        self.host.fetch(self.session.search_history(self.needle), self.show, owner=self)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("new", "search")

    def show(self, found: list[TranscriptEntry]) -> None:
        self.list.show(
            [FoundRow(item, number) for number, item in enumerate(found)] or [Empty("Nothing was said about it.")]
        )
        self.set_title(f"Said about “{self.needle}”", plural(len(found), "message"))

    def chosen(self, row: Row) -> None:
        assert isinstance(row, FoundRow)
        self.app.push_screen(InspectorScreen(f"message:{row.item.message_id}"))
