"""What the conversation is made of, as lines. Pure: no widget, no session; the transcript draws what these return.

Answers, the longest of them, have a module of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from tui_agent.tui.layout import Line, join, label, spread, wrapped
from tui_agent.tui.text import clean, clock, one_line

if TYPE_CHECKING:
    from tui_agent.agent.events import FileChanged, Notice

MOST_USER_LINES = 24
MOST_CHARACTERS = 40_000  # of one foreign text on screen; wrapping a megabyte would stall typing


@dataclass(slots=True)
class View:
    """How an entry is seen: selected or not, and how keys are written just now (``hint("why")`` gives ``w why``)."""

    selected: bool = False
    hint: Callable[[str, str], str] = lambda name, label: label


class Entry:
    """One entry. ``key`` is unique in a transcript; after a change, ``touch`` makes it draw anew."""

    selectable = False

    def __init__(self, key: str) -> None:
        self.key = key
        self._kept: tuple[object, list[Line]] | None = None

    def lines(self, width: int, view: View) -> list[Line]:
        """The lines at ``width`` cells, kept until width, selection or content change."""
        state = (width, view.selected, view.hint("why", "") if view.selected else "")
        if self._kept is None or self._kept[0] != state:
            self._kept = (state, [*self.draw(width, view), Line(Content(""))])
        return self._kept[1]

    def touch(self) -> None:
        """Forget the drawn lines."""
        self._kept = None

    def estimate(self, width: int) -> int:
        """A guess of the number of lines, made without laying out."""
        return 3

    def draw(self, width: int, view: View) -> list[Line]:
        raise NotImplementedError

    def toggle(self, target: str) -> bool:
        """Fold or unfold a part; whether there was one."""
        return False


class UserEntry(Entry):
    """What the user said. Never markdown: it is shown as it was typed."""

    def __init__(
        self, message_id: str, said: str, created_at: str, *, redacted: bool = False, queued: bool = False
    ) -> None:
        super().__init__(f"user:{message_id}")
        self.message_id = message_id
        self.said = clean(said)
        self.created_at = created_at
        self.redacted = redacted
        self.unfolded = False

    def estimate(self, width: int) -> int:
        return 2 + min(MOST_USER_LINES, self.said.count("\n") + len(self.said) // width + 1)

    def draw(self, width: int, view: View) -> list[Line]:
        header = join(
            ("You", "bold $act"), (f" · {clock(self.created_at)}" if clock(self.created_at) else "", "$quiet")
        )
        if self.redacted:
            header = join(header, (" · a secret was removed", "$warning"))
        most = MOST_CHARACTERS if self.unfolded else width * MOST_USER_LINES
        body = [Line(line) for line in wrapped(Content(self.said[:most]), width)]
        if len(self.said) > most or (len(body) > MOST_USER_LINES and not self.unfolded):
            body = body if self.unfolded else body[: MOST_USER_LINES // 2]
            size = f"{len(self.said):,} characters in all"
            words = f"… {size}, too long to show here" if self.unfolded else f"▸ more · {size}"
            body.append(Line(join((words, "$quiet")), "fold:said"))
        return [Line(header), *body]

    def toggle(self, target: str) -> bool:
        self.unfolded = not self.unfolded
        self.touch()
        return True


class NoticeEntry(Entry):
    """A sentence from the program: a notice, or a memory file that changed on disk."""

    _MARKS: ClassVar[dict[str, tuple[str, str]]] = {
        "info": ("·", "$quiet"),
        "warning": ("▲", "$warning"),
        "error": ("✗", "$error"),
    }

    def __init__(self, key: str, level: str, sentence: str, about: str = "") -> None:
        """``about`` is the stable key of a notice that goes when its trouble does."""
        super().__init__(key)
        self.level = level
        self.sentence = clean(sentence)
        self.about = about

    @classmethod
    def of(cls, notice: Notice, number: int) -> NoticeEntry:
        return cls(f"notice:{number}", notice.level, notice.text, notice.key)

    def draw(self, width: int, view: View) -> list[Line]:
        mark, style = self._MARKS.get(self.level, self._MARKS["info"])
        body = Content.styled(self.sentence, "$quiet" if self.level == "info" else "")
        return [Line(line) for line in wrapped(body, width, first=(f"{mark} ", style), rest="  ")]


class WelcomeEntry(Entry):
    """What an empty conversation says."""

    def __init__(self, project: str) -> None:
        super().__init__("welcome")
        self.project = one_line(project)

    def draw(self, width: int, view: View) -> list[Line]:
        sentences = (
            "What you say about you and your work is remembered at once, with your own words as proof.",
            "What is remembered, what is at hand and what fed each answer stands in the panes. Every item says why.",
            "rules.md in .agent-memory/ is always in the prompt; an edit in any editor applies from the next message.",
        )
        lines = [Line(Content("")), Line(join(("A conversation in ", "$quiet"), (self.project, "bold $text")))]
        for sentence in sentences:
            lines += [Line(Content("")), *map(Line, wrapped(Content.styled(sentence, "$quiet"), min(width, 72)))]
        keys = join(("F1", "$act"), (" every key   ", "$quiet"), ("/", "$act"), (" commands", "$quiet"))
        return [*lines, Line(Content("")), Line(keys)]


class FileEntry(Entry):
    """A memory file changed on disk: what, when it applies, and the diff; on one line where the diff fits whole."""

    def __init__(self, key: str, event: FileChanged) -> None:
        super().__init__(key)
        self.event = event

    def draw(self, width: int, view: View) -> list[Line]:
        event = self.event
        name, applies = join(("± ", "$said"), label(event.path, "bold")), label(event.applies, "$quiet")
        whole = join(name, "  ", label(event.diff, "$quiet"))
        if whole.cell_length + applies.cell_length + 2 <= width:
            return [Line(spread(whole, applies, width))]
        diff = wrapped(label(event.diff, "$quiet"), width, first=("  ", ""), rest="  ")
        return [Line(spread(name, applies, width)), *map(Line, diff[:3])]
