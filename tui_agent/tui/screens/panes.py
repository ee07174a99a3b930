"""The memory panes of the chat: fetching them, showing them, and what their keys ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import on

from tui_agent.tui.answer import AnswerEntry
from tui_agent.tui.keymap import shown
from tui_agent.tui.screens.turns import TurnScreen
from tui_agent.tui.text import clean
from tui_agent.tui.widgets.bars import PANES, Strip, TabBar
from tui_agent.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from tui_agent.agent.views import ColdView, HotView
    from tui_agent.memory.types import RecallRecord
    from tui_agent.tui.widgets.cold_pane import ColdPane
    from tui_agent.tui.widgets.hot_pane import HotPane
    from tui_agent.tui.widgets.panes import Pane
    from tui_agent.tui.widgets.recalled_pane import RecalledPane


class PanesScreen(TurnScreen):
    """The half of the chat screen that keeps the memory panes."""

    def __init__(self) -> None:
        super().__init__()
        self.cold_query = ""
        self.sort = "score"
        self._panes_pending = False

    def _pane(self, name: str) -> Pane:
        return cast("Pane", self.query_one(f"#{name}"))

    @property
    def hot(self) -> HotPane:
        return cast("HotPane", self.query_one("#hot"))

    @property
    def cold(self) -> ColdPane:
        return cast("ColdPane", self.query_one("#cold"))

    @property
    def recalled(self) -> RecalledPane:
        return cast("RecalledPane", self.query_one("#recalled"))

    # -- panes -----------------------------------------------------------------------------------------------------

    def refresh_panes(self) -> None:
        """Fetch hot and cold anew; several wishes in a row become one fetch."""
        if not self._panes_pending and self.host.session is not None:
            self._panes_pending = True
            self.call_after_refresh(self._fetch_panes)

    def _fetch_panes(self) -> None:
        self._panes_pending = False
        session = self.host.session
        if session is None:
            return
        current, sort, query = session, self.sort, self.cold_query

        async def both() -> tuple[HotView, ColdView]:
            return await current.hot(sort), await current.cold(query)

        self.host.fetch(both(), self._show_panes, owner=self)

    def _show_panes(self, views: tuple[HotView, ColdView]) -> None:
        hot, cold = views
        self.hot.sort = self.sort
        self.hot.show(hot)
        if cold.query == self.cold_query:
            self.cold.show(cold)
        self.refresh_counts()

    def refresh_counts(self) -> None:
        """Write tabs and strip anew."""
        from tui_agent.tui.widgets.panes import counts

        numbers = counts(self.hot.view, self.cold.view, self.recalled.record)
        active = next((name for name, _ in PANES if self._pane(name).has_class("-active")), "hot")
        self.query_one("#tabs", TabBar).tabs(numbers, active)
        self._refresh_strip(numbers)

    def _refresh_strip(self, numbers: dict[str, str]) -> None:
        keys = {name: shown(self.host.keymap.keys(f"chat.{name}")) for name, _ in PANES}
        self.query_one("#strip", Strip).counts(numbers, keys, self.status.status.reviews)

    def refresh_reviews(self) -> None:
        session = self.host.session
        if session is not None:
            self.host.fetch(session.quarantined(), lambda waiting: self.reviews(len(waiting)), owner=self)

    def reviews(self, count: int) -> None:
        """So many proposals wait for approval."""
        self.status.status.reviews = count
        self.status.redraw()
        self.refresh_counts()

    @on(Transcript.Selected)
    def _answer_selected(self, event: Transcript.Selected) -> None:
        entry = event.entry
        session = self.host.session
        if entry is not None and entry.message_id and not entry.recall_known and session is not None:
            entry.recall_known = True

            def found(record: RecallRecord | None) -> None:
                entry.recall = record
                self.transcript.changed_quietly(entry)
                self.show_recall(entry)

            self.host.fetch(session.recall_of(entry.message_id), found, owner=self)
        self.show_recall(entry)

    def show_recall(self, entry: AnswerEntry | None) -> None:
        if entry is self.transcript.selected:
            record = entry.recall if entry is not None else None
            has_answer = entry is not None and not (entry.live and record is None)
            self.recalled.show(record, entry.created_at if entry is not None else "", has_answer=has_answer)
            self.refresh_counts()

    def on_cold_pane_searched(self, event: ColdPane.Searched) -> None:
        self.cold_query = event.query
        self.refresh_panes()

    def on_pane_asked(self, event: Pane.Asked) -> None:
        from tui_agent.tui.screens.inspector import InspectorScreen
        from tui_agent.tui.widgets.hot_pane import SORTS

        session = self.host.session
        if session is None:
            return
        ref, what, item = event.ref, event.what, event.item
        if what == "undo":
            self.action_undo()
        elif what == "sort":
            self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
            self.refresh_panes()
        elif what == "why":
            self._why(self.transcript.selected)
        elif not ref or item is None:
            return
        elif what == "inspect":
            self.app.push_screen(InspectorScreen(ref), lambda _: self.refresh_panes())
        elif what == "edit":
            self._edit(ref, clean(getattr(item, "text", "")))
        else:
            verb = "unpin" if what == "pin" and getattr(item, "pinned", False) else what
            self.host.act(getattr(session, verb)(ref))

    def _edit(self, ref: str, current: str) -> None:
        from tui_agent.tui.screens.edit_text import EditText
        from tui_agent.tui.screens.panel import Question

        def answered(text: str | None) -> None:
            session = self.host.session
            if text is not None and text.strip() and text.strip() != current.strip() and session is not None:
                self.host.act(session.edit(ref, text.strip()))

        lines = "\n" in current.strip() or "\t" in current  # a field of one line would draw them over the screen
        kind: type[EditText] | type[Question] = EditText if lines else Question
        self.app.push_screen(kind("Edit", "The text as it stands in the hot memory.", value=current.strip()), answered)
