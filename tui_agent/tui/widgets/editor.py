"""The text area of the composer."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from tui_agent.tui.actions import BY_ID, bindings
from tui_agent.tui.attachments import is_large
from tui_agent.tui.prompts import PromptHistory


class Editor(TextArea):
    """The text area of the composer. ``enter`` sends, printable text always inserts.

    | Key | What |
    | :- | :- |
    | enter | send |
    | ctrl+j, shift+enter, alt+enter | new line |
    | up, down | on the first and last line: older and newer prompts |
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("composer"),
        Binding("up", "older", show=False),
        Binding("down", "newer", show=False),
        Binding("tab", "complete_or_next", show=False),
    ]

    class Asked(Message):
        """A key asks the composer or the screen for something: ``send``, ``page_up``, ``unqueue``, …

        ``text`` is what stood in the editor at that moment.
        """

        def __init__(self, editor: Editor, what: str, text: str = "") -> None:
            super().__init__()
            self.editor = editor
            self.what = what
            self.text = text

    class Pasted(Message):
        """A paste too large for the editor."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, *, id: str | None = None, blink: bool = False) -> None:
        super().__init__(
            id=id, compact=True, highlight_cursor_line=False, tab_behavior="focus", show_line_numbers=False
        )
        self.cursor_blink = blink
        self.prompts = PromptHistory()
        self.choosing = False
        self.send_keys = frozenset(BY_ID["composer.send"].keys.split(","))
        self.newline_keys = frozenset(BY_ID["composer.newline"].keys.split(","))

    async def _on_key(self, event: events.Key) -> None:
        # Bindings are looked up when a key has travelled up to the application; letters typed meanwhile would overtake
        # it. So the two keys whose place between letters matters are obeyed here, at once.
        if event.key in self.send_keys or event.key in self.newline_keys:
            event.prevent_default()
            event.stop()
            (self.action_send if event.key in self.send_keys else self.action_newline)()
        elif event.key == "enter" or event.key.startswith("alt+"):
            event.prevent_default()  # terminals report alt with a letter as printable; TextArea would insert it

    async def _on_paste(self, event: events.Paste) -> None:
        # Terminals send each end of a line in a paste as a carriage return.
        event.text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        if is_large(event.text):
            event.prevent_default()
            event.stop()
            self.post_message(self.Pasted(event.text))

    def replace_all(self, text: str) -> None:
        """Show another text with the cursor at its end; undo brings the old one back."""
        self.replace(text, self.document.start, self.document.end)
        self.move_cursor(self.document.end)

    def _ask(self, what: str) -> None:
        self.post_message(self.Asked(self, what))

    def action_send(self) -> None:
        """Hand the text over and begin anew, so that what is typed next is the next message."""
        text = self.text
        what = "choose" if self.choosing else "send"
        self.replace_all("")
        self.post_message(self.Asked(self, what, text))

    def action_newline(self) -> None:
        start, end = self.selection
        self._replace_via_keyboard("\n", start, end)
        self.scroll_cursor_visible()

    def action_older(self) -> None:
        if self.choosing:
            self._ask("choice_up")
        elif self.cursor_at_first_line:
            older = self.prompts.older(self.text)
            if older is not None:
                self.replace_all(older)
        else:
            self.action_cursor_up()

    def action_newer(self) -> None:
        if self.choosing:
            self._ask("choice_down")
        elif self.cursor_at_last_line:
            newer = self.prompts.newer(self.text)
            if newer is not None:
                self.replace_all(newer)
        else:
            self.action_cursor_down()

    def action_complete_or_next(self) -> None:
        if self.choosing:
            self._ask("complete")
        else:
            self.screen.focus_next()

    def action_page_up(self) -> None:
        self._ask("page_up")

    def action_page_down(self) -> None:
        self._ask("page_down")

    def action_line_up(self) -> None:
        self._ask("line_up")

    def action_line_down(self) -> None:
        self._ask("line_down")

    def action_unqueue(self) -> None:
        self._ask("unqueue")

    def action_detach(self) -> None:
        self._ask("detach")
