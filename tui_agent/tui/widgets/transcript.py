"""The conversation: entries, and the keys and clicks that act on them."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from tui_agent.tui.actions import bindings
from tui_agent.tui.answer import AnswerEntry
from tui_agent.tui.entries import Entry
from tui_agent.tui.widgets.entry_view import EntryView


class Transcript(EntryView):
    """The conversation.

    | Key | What |
    | :- | :- |
    | j, k | select the next or previous answer |
    | enter, space | unfold or fold its tool calls and thinking |
    | y, 1-9 | copy the answer, one of its code blocks |
    """

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("transcript"))

    class Asked(Message):
        """A key or click asks for what needs the session: ``why``, ``save``, ``copy``, ``retry``, ``undo``,
        ``larger``, ``shorter``, ``ignore``."""

        def __init__(self, transcript: Transcript, what: str, entry: AnswerEntry | None, text: str = "") -> None:
            super().__init__()
            self.transcript = transcript
            self.what = what
            self.entry = entry
            self.text = text

        @property
        def control(self) -> Transcript:
            return self.transcript

    def target_at(self, y: int) -> tuple[Entry, str] | None:
        """The entry and the target of the line at ``y`` (in cells below the top of the view)."""
        row = self.scroll_offset.y + y
        if not self.entries or row >= self._tops[-1]:
            return None
        index = self._entry_at(row)
        lines = self._lines(index)
        return self.entries[index], lines[min(row - self._tops[index], len(lines) - 1)].target

    def on_click(self, event: events.Click) -> None:
        if self.screen.get_selected_text():
            return
        found = self.target_at(event.y)
        if found is None:
            return
        entry, target = found
        if target.startswith("fold:"):
            if entry.toggle(target):
                self.changed_quietly(entry)
        elif isinstance(entry, AnswerEntry):
            self.select(entry, reveal=False)
            if target.startswith("code:"):
                self._copy_code(entry, int(target[5:]))
            elif target:
                self.post_message(self.Asked(self, target, entry))

    def on_key(self, event: events.Key) -> None:
        if event.character and event.character in "123456789" and self.selected is not None:
            event.stop()
            self._copy_code(self.selected, int(event.character))

    def _copy_code(self, entry: AnswerEntry, number: int) -> None:
        if number <= len(entry.codes):
            self.post_message(self.Asked(self, f"code {number}", entry, entry.codes[number - 1]))

    def step(self, direction: int) -> None:
        """Select the next (1) or previous (-1) answer; past the last one, go to the end."""
        answers = [entry for entry in self.entries if isinstance(entry, AnswerEntry)]
        if not answers:
            return
        at = answers.index(self.selected) if self.selected in answers else len(answers)
        if direction > 0 and at + direction >= len(answers):
            self.select(answers[-1], reveal=False)
            self.to_end()
        else:
            self.select(answers[max(0, at + direction)])

    def go_to(self, message_id: str) -> bool:
        """Bring a message into view, by its id; whether it is here."""
        keys = (f"user:{message_id}", f"answer:{message_id}", f"notice:{message_id}")
        found = next((entry for entry in self.entries if entry.key in keys), None)
        if found is None:
            answer = self.answer(message_id)
            if answer is None:
                return False
            found = answer
        self.following = False
        if isinstance(found, AnswerEntry):
            self.select(found)
        self._reveal(found)
        return True

    def to_end(self) -> None:
        """Go to the newest line and follow it."""
        self.following, self.unseen = True, False
        self._settle_view()
        self._measure(0)
        self.post_message(self.Followed())

    def action_next(self) -> None:
        self.step(1)

    def action_previous(self) -> None:
        self.step(-1)

    def action_first(self) -> None:
        self.scroll_home(animate=False)
        self.select(next((entry for entry in self.entries if isinstance(entry, AnswerEntry)), None), reveal=False)

    def action_last(self) -> None:
        self.select(self._latest, reveal=False)
        self.to_end()

    def action_unfold(self) -> None:
        if self.selected is not None and self.selected.toggle(""):
            self.changed_quietly(self.selected)
            self._reveal(self.selected)

    def action_changes(self) -> None:
        if self.selected is not None and self.selected.toggle("fold:changes"):
            self.changed_quietly(self.selected)

    def _ask(self, what: str) -> None:
        self.post_message(self.Asked(self, what, self.selected))

    def action_why(self) -> None:
        self._ask("why")

    def action_copy(self) -> None:
        self._ask("copy")

    def action_save(self) -> None:
        self._ask("save")

    def action_retry(self) -> None:
        self._ask("retry")

    def action_undo(self) -> None:
        self._ask("undo")

    def action_larger(self) -> None:
        self._ask("larger")

    def action_shorter(self) -> None:
        self._ask("shorter")

    def action_ignore(self) -> None:
        self._ask("ignore")
