"""What was found in conversations while nothing else ran: kept, known, waiting, refused, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.events import Learned
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import Lines, label, text, wrapped
from tui_agent.tui.screens.panel import Panel
from tui_agent.tui.text import fit, one_line
from tui_agent.tui.widgets.base import Plain

_STYLES = {"kept": "$said", "waiting": "$act", "missed": "$act"}
_NOTHING = (
    "Nothing was found since the app was opened. Conversations are searched after some messages, when they are left, "
    "and at the next start; `tui-agent memory extract` does it now."
)


class LearnedLines(Lines):
    """One conversation after the other: its title, the summary, and each item with the reason."""

    def __init__(self, found: Sequence[tuple[str, Learned]]) -> None:
        super().__init__()
        self.found = found

    def lines(self, width: int) -> list[Content]:
        if not self.found:
            return wrapped(Content(_NOTHING), width)
        lines: list[Content] = []
        for title, event in self.found:
            lines += [Content("")] if lines else []
            lines.append(label(one_line(title) or "(no title)", "bold $text").truncate(width))
            smaller = f" That is {event.compression:.0f} times smaller." if event.compression else ""
            lines += wrapped(text(event.summary + smaller, "$quiet"), width)
            for item in event.items:
                head = (fit(item.what, 8) + " ", _STYLES.get(item.what, "$quiet"))
                lines += wrapped(text(one_line(item.text)), width, first=head, rest=" " * 9)
                if item.what != "kept" and item.reason:
                    lines += wrapped(text(one_line(item.reason), "$quiet"), width, first=" " * 9, rest=" " * 9)
        return lines


class LearnedScreen(Panel[None]):
    """The last findings."""

    kind = "page"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("page"))

    def on_mount(self) -> None:
        super().on_mount()
        self.set_title("Found in conversations", "memory keeps what you said, word for word")
        self.query_one("#page", Plain).update(LearnedLines(self.session.learned()))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("rebuild", "copy")
