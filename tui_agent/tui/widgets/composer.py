"""Where a message is written: editor, command completions, attachments, queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.timer import Timer
from textual.widgets import OptionList, TextArea

from tui_agent.tui.attachments import Attachment, is_large, with_attachments
from tui_agent.tui.commands import complete
from tui_agent.tui.layout import Lines, join, label
from tui_agent.tui.prompts import PromptHistory, Queue
from tui_agent.tui.text import plural
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.editor import Editor

if TYPE_CHECKING:
    from tui_agent.tui.widgets.completions import Completions

DRAFT_DELAY_S = 0.6


class QueueLines(Lines):
    """The waiting messages, one line each."""

    def __init__(self, waiting: list[str], key: str) -> None:
        super().__init__()
        self.waiting = list(waiting)
        self.key = key

    def lines(self, width: int) -> list[Content]:
        rows = [join(("⋯ queued  ", "$said"), label(text)).truncate(width, ellipsis=True) for text in self.waiting]
        if rows:
            rows[-1] = join(
                rows[-1].truncate(max(8, width - len(self.key) - 7), ellipsis=True), (f"  {self.key} edit", "$act")
            )
        return rows


class ChipLines(Lines):
    """The attachments, one line each."""

    def __init__(self, chips: list[str]) -> None:
        super().__init__()
        self.chips = chips

    def lines(self, width: int) -> list[Content]:
        return [join(("▣ ", "$said"), label(chip, "$quiet")).truncate(width, ellipsis=True) for chip in self.chips]


class Rule(Lines):
    """The line above the editor, with a word at its right end when there is something to say."""

    def __init__(self, word: str = "") -> None:
        super().__init__()
        self.word = word

    def lines(self, width: int) -> list[Content]:
        if not self.word:
            return [Content.styled("─" * width, "$faint")]
        return [
            join(
                ("─" * max(0, width - len(self.word) - 4), "$faint"), (f" {self.word} ", "bold $act"), ("──", "$faint")
            )
        ]


class Composer(Vertical):
    """Editor, completions, attachments and queue. It posts what is to be sent and what is to be kept as draft."""

    DEFAULT_CSS = """
    Composer {
        height: auto;
        & > .composer--rule { height: 1; }
        & > .composer--chips, & > .composer--queue { height: auto; display: none; padding: 0 2; }
        & > .-shown { display: block; }
        & > .composer--line { height: auto; layout: horizontal; padding: 0 1 0 0; }
        & .composer--prompt { width: 4; height: 1; padding: 0 0 0 2; color: $faint; text-style: bold; }
        & .composer--prompt.-on { color: $act; }
        & .text-area--placeholder { color: $quiet; }
        & Editor {
            height: auto; max-height: 10; width: 1fr; border: none; padding: 0;
            background: transparent; color: $text;
            scrollbar-size-vertical: 1;
        }
        & Editor:focus { border: none; }
    }
    """

    busy: var[bool] = var(False)

    class Sent(Message):
        """The user sends this text (attachments included). ``typed`` is what stands in the editor."""

        def __init__(self, text: str, typed: str) -> None:
            super().__init__()
            self.text = text
            self.typed = typed

    class Drafted(Message):
        """The draft changed and has settled."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Scrolled(Message):
        """A key in the editor scrolls the conversation: ``page_up``, ``page_down``, ``line_up``, ``line_down``."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    def __init__(self, *, id: str | None = None, blink: bool = False) -> None:
        super().__init__(id=id)
        self.queue = Queue()
        self.attachments: list[Attachment] = []
        self.queue_key = "alt+q"
        self._blink = blink
        self._pasted = 0
        self._draft_timer: Timer | None = None
        self._drafted = ""

    def compose(self) -> ComposeResult:
        yield Plain(Rule(), classes="composer--rule")
        yield Plain(classes="composer--queue")
        yield Plain(classes="composer--chips")
        with Vertical(classes="composer--line"):
            yield Plain(">", classes="composer--prompt")
            yield Editor(id="editor", blink=self._blink)

    async def complete(self) -> None:
        """Mount the completions, which the first paint does without, and show those of what was typed until now."""
        from tui_agent.tui.widgets.completions import Completions

        await self.mount(Completions(), before=".composer--line")
        self._suggest(self.editor.text)

    @property
    def editor(self) -> Editor:
        return self.query_one(Editor)

    @property
    def text(self) -> str:
        """What stands in the editor."""
        return self.editor.text

    def mark(self, word: str) -> None:
        """Write a word into the rule above the editor, or clear it."""
        self.query_one(".composer--rule", Plain).update(Rule(word))

    def set_placeholder(self, sentence: str) -> None:
        self.editor.placeholder = Content(sentence)

    # -- sending, queue, attachments -----------------------------------------------------------------------------

    def put_back(self, text: str) -> None:
        """Put a text into the editor, before what is there."""
        current = self.editor.text
        self.editor.replace_all(f"{text}\n\n{current}" if current.strip() else text)
        self.editor.focus()

    def enqueue(self, text: str) -> None:
        self.queue.add(text)
        self.show_queue()

    def show_queue(self) -> None:
        lines = self.query_one(".composer--queue", Plain)
        lines.set_class(bool(self.queue.waiting), "-shown")
        lines.update(QueueLines(self.queue.waiting, self.queue_key))

    def return_queue(self) -> None:
        """After a stop: what waited comes back into the editor."""
        text = self.queue.take_all()
        if text:
            self.put_back(text)
        self.show_queue()

    def _show_chips(self) -> None:
        chips = self.query_one(".composer--chips", Plain)
        chips.set_class(bool(self.attachments), "-shown")
        chips.update(ChipLines([item.chip for item in self.attachments]))

    @on(Editor.Pasted)
    def _paste_is_large(self, event: Editor.Pasted) -> None:
        event.stop()
        self._add_attachment(event.text)
        self._save_later()
        self.app.notify(
            f"The paste is large ({plural(len(event.text), 'character')}), so it is attached instead of inserted.",
            markup=False,
        )

    def _add_attachment(self, text: str) -> None:
        self._pasted += 1
        self.attachments.append(Attachment(self._pasted, text))
        self._show_chips()

    def _send(self, typed: str) -> None:
        typed = typed.strip()
        text = with_attachments(typed, self.attachments)
        if not text.strip():
            return
        self.editor.prompts.add(typed)
        self.attachments.clear()
        self._show_chips()
        self.post_message(self.Sent(text, typed))

    # -- editor events -------------------------------------------------------------------------------------------

    @on(Editor.Asked)
    def _asked(self, event: Editor.Asked) -> None:
        event.stop()
        match event.what:
            case "send":
                self._send(event.text)
            case "choose":
                self._complete(event.text, run=True)
            case "choice_up":
                self.completions.action_cursor_up()
            case "choice_down":
                self.completions.action_cursor_down()
            case "complete":
                self._complete(self.editor.text, run=False)
            case "unqueue":
                text = self.queue.take_back()
                if text is not None:
                    self.put_back(text)
                    self.show_queue()
            case "detach":
                if self.attachments:
                    self.attachments.pop()
                    self._show_chips()
            case what:
                self.post_message(self.Scrolled(what))

    @property
    def completions(self) -> Completions:
        return cast("Completions", self.query_one("Completions"))

    def _complete(self, typed: str, *, run: bool) -> None:
        """Take the highlighted command for what was typed. One without an argument can run at once."""
        from tui_agent.tui.widgets.completions import CommandRow

        row = self.completions.current
        found = complete(typed)
        self.close_completions()
        if not found:  # the list was of an earlier beginning
            self._send(typed)
            return
        command = row.command if isinstance(row, CommandRow) and row.command in found else found[0]
        if run and not command.argument.isupper():
            self.editor.replace_all("")
            self._send(f"/{command.name}")
        else:
            self.editor.replace_all(f"/{command.name} ")

    def close_completions(self) -> bool:
        """Hide the list of commands; whether it was shown."""
        shown = self.editor.choosing
        self.editor.choosing = False
        if shown:
            self.completions.remove_class("-shown")
        return shown

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._complete(self.editor.text, run=True)

    @on(TextArea.Changed)
    def _changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._suggest(event.text_area.text)
        self._save_later()

    def _suggest(self, text: str) -> None:
        found = complete(text) if len(text) < 40 else []
        if found and self.query("Completions"):
            from tui_agent.tui.widgets.completions import CommandRow

            self.completions.show([CommandRow(command) for command in found])
            self.completions.add_class("-shown")
            self.editor.choosing = True
        else:
            self.close_completions()

    @on(events.DescendantFocus)
    def _focused(self) -> None:
        self.query_one(".composer--prompt").add_class("-on")

    @on(events.DescendantBlur)
    def _blurred(self) -> None:
        self.query_one(".composer--prompt").remove_class("-on")

    # -- draft ---------------------------------------------------------------------------------------------------

    def _save_later(self) -> None:
        if self._draft_timer is not None:
            self._draft_timer.stop()
        self._draft_timer = self.set_timer(DRAFT_DELAY_S, self.save_draft)

    @property
    def draft(self) -> str:
        """What is written, attachments included."""
        return with_attachments(self.editor.text, self.attachments)

    def save_draft(self) -> None:
        """Post the draft when it is another than the last one posted."""
        if self._draft_timer is not None:
            self._draft_timer.stop()
            self._draft_timer = None
        draft = self.draft
        if draft != self._drafted:
            self._drafted = draft
            self.post_message(self.Drafted(draft))

    def restore(self, draft: str, prompts: list[str]) -> None:
        """Show a kept draft and know earlier prompts; what the user already typed stays."""
        typed = self.editor.prompts.prompts
        self.editor.prompts = PromptHistory([*prompts, *typed])
        if draft and not self.editor.text:
            self._drafted = draft
            if is_large(draft):
                self._add_attachment(draft)
            else:
                self.editor.replace_all(draft)
