"""Editing a text of several lines: what a single field would fold into one line and lose."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import TextArea

from tui_agent.tui.screens.panel import QUESTION_DELAY_S, Panel
from tui_agent.tui.widgets.bars import KeyBar
from tui_agent.tui.widgets.base import Plain


class _Lines(TextArea):
    """``enter`` is done; ``ctrl+j``, ``shift+enter`` and ``alt+enter`` begin a new line, as in the composer."""

    class Done(Message):
        """The text is as it should be."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            event.prevent_default()  # a text area would only hand on the focus
        if event.key in ("enter", "ctrl+j", "shift+enter", "alt+enter"):
            event.prevent_default()
            event.stop()
            if event.key == "enter":
                self.post_message(self.Done())
            else:
                self._replace_via_keyboard("\n", *self.selection)
                self.scroll_cursor_visible()


class EditText(Panel[str]):
    """Asks for a text of any number of lines. Keys are ignored for the first 0.3 s."""

    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    EditText > .panel > TextArea {
        height: auto; max-height: 24; border: none; border-left: outer $act; padding: 0 1; margin-top: 1;
        background: transparent;
    }
    """

    def __init__(self, title: str, body: str, *, value: str) -> None:
        super().__init__()
        self.words, self.explanation, self.value = title, body, value
        self.ready = False

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="panel--body"):
            yield Plain(id="page")
        yield _Lines(self.value, compact=True, highlight_cursor_line=False, tab_behavior="indent", disabled=True)

    def on_mount(self) -> None:
        self.set_title(self.words)
        self.query_one("#page", Plain).update(self.explanation)
        self.set_timer(QUESTION_DELAY_S, self._open)

    def show_keys(self) -> None:
        if not self.ready:
            return  # none works yet
        hints = [("enter", "do it", ""), ("ctrl+j", "new line", ""), ("esc", "leave it as it is", "page.close")]
        self.query_one(KeyBar).show(hints)

    def _open(self) -> None:
        self.ready = True
        field = self.query_one(_Lines)
        field.disabled = False
        self.set_focus(field)
        self.show_keys()

    def key_escape(self, event: events.Key) -> None:
        event.stop()
        if self.ready:
            self.dismiss(None)

    @on(_Lines.Done)
    def _answered(self, event: _Lines.Done) -> None:
        event.stop()
        self.dismiss(self.query_one(_Lines).text)
