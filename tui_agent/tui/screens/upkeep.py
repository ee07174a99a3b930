"""What happened to memory, which files every prompt carries, and whether git may take the memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.review_views import ChangeView, PromptFile, SharingView, event_words
from tui_agent.agent.views import ActionResult
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import Lines, join, label, spread, text, wrapped
from tui_agent.tui.screens.inspector import InspectorScreen
from tui_agent.tui.screens.lists import ListPanel
from tui_agent.tui.screens.panel import Panel, Question
from tui_agent.tui.text import fit, one_line, plural, stamp, tail_id
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.rows import Empty, Row

_ZONES = {"": "facts and working memory", "fact": "facts", "working": "working memory"}
_MOST_CONCERNS = 8
_EVENT = 12


class ChangeRow(Row):
    """``09:43  corrected   a1f  we use npm → we use pnpm``."""

    def __init__(self, item: ChangeView, number: int) -> None:
        super().__init__(f"{number}")
        self.item = item

    @property
    def ref(self) -> str:
        """What the inspector opens."""
        return f"{'fact' if self.item.zone == 'fact' else 'hot'}:{self.item.id}"

    def said(self) -> str:
        """The texts before and after, and the reason."""
        return one_line(self.item.told)

    def lines(self, width: int) -> list[Content]:
        item = self.item
        head = join(
            (f"{stamp(item.at)}  ", "$quiet"),
            (f"{fit(event_words(item.event), _EVENT)}  ", "$said" if item.zone == "fact" else "$quiet"),
            label(self.said()),
        )
        return [spread(head, Content.styled(tail_id(item.id), "$faint"), width)]


class LogScreen(ListPanel[None]):
    """What happened to facts and in the working memory, newest first."""

    kind = "log"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("log"))

    def __init__(self) -> None:
        super().__init__()
        self.zone = ""
        self.changes: list[ChangeView] = []

    def on_mount(self) -> None:
        self.set_title("What happened")
        self.load()

    def load(self) -> None:
        """Fetch the log again."""
        self.host.fetch(self.session.change_log(zone=self.zone), self.show, owner=self)

    def show(self, changes: list[ChangeView]) -> None:
        self.changes = changes
        self.search_changed()

    def search_changed(self) -> None:
        needle = self.words.casefold()
        rows: list[Row] = [
            row
            for number, item in enumerate(self.changes)
            if needle in f"{(row := ChangeRow(item, number)).said()} {event_words(item.event)}".casefold()
        ]
        nothing = (
            f"No change is about “{self.words}”."
            if needle
            else "Nothing has happened yet. Whatever is saved, corrected, confirmed, put away or deleted stands here."
        )
        self.list.show(rows or [Empty(nothing)])
        self.set_title("What happened", f"{plural(len(rows), 'change')} · {_ZONES[self.zone]}")

    def chosen(self, row: Row) -> None:
        assert isinstance(row, ChangeRow)
        if row.item.event in ("delete", "reject", "quarantine", "approve"):
            self.host.say("Nothing more is known of it.")
            return
        self.app.push_screen(InspectorScreen(row.ref), lambda _: self.load())

    def action_zone(self) -> None:
        names = list(_ZONES)
        self.zone = names[(names.index(self.zone) + 1) % len(names)]
        self.load()

    def action_undo(self) -> None:
        self.host.act(self.session.undo(), lambda _: self.load() if self.is_attached else None)


# -- files in the prompt ---------------------------------------------------------------------------------------


class FilesLines(Lines):
    """Each file with its path, its cost, and its text as it is sent."""

    def __init__(self, sections: Sequence[PromptFile]) -> None:
        super().__init__()
        self.sections = sections

    def lines(self, width: int) -> list[Content]:
        if not self.sections:
            words = (
                "No file yet. Rules in .agent-memory/rules.md, what AGENTS.md and knowledge/user.md say, and any "
                "rules.md in the project stand here, in the order of the prompt."
            )
            return wrapped(Content.styled(words, "$quiet"), width)
        lines: list[Content] = []
        for section in self.sections:
            right = join(("cut  " if section.cut else "", "$warning"), (f"{section.tokens:,} tokens", "$quiet"))
            head = spread(label(section.name, "bold $said"), right, width)
            lines += [*([Content("")] if lines else []), head, *wrapped(label(section.path, "$quiet"), width)]
            lines += wrapped(text(section.text), width)
            if section.cut:
                lines += wrapped(label(section.cut, "$warning"), width)
        return lines


class FilesScreen(Panel[None]):
    """Rules and the other memory files in the fixed part of every prompt."""

    kind = "page"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("page"))

    def __init__(self) -> None:
        super().__init__()
        self.sections: list[PromptFile] = []

    def on_mount(self) -> None:
        self.add_class("-tall")
        self.set_title("Rules and files in every prompt")
        self.load()

    def load(self) -> None:
        """Read the files again."""
        self.host.fetch(self.session.prompt_files(), self.show, owner=self)

    def show(self, sections: list[PromptFile]) -> None:
        self.sections = sections
        tokens = sum(section.tokens for section in sections)
        self.set_title("Rules and files in every prompt", f"{plural(len(sections), 'part')} · {tokens:,} tokens")
        self.query_one("#page", Plain).update(FilesLines(sections))

    def action_copy(self) -> None:
        words = "\n\n".join(f"# {section.path}\n{section.text}" for section in self.sections)
        self.host.copy(words, "the files")

    def action_rebuild(self) -> None:
        self.host.act(self.session.rebuild_prompt(), lambda result: self.load() if self.is_attached else None)


# -- sharing ---------------------------------------------------------------------------------------------------

_MODES = {
    "private": "Private. Of the memory, git takes only your rules and skills.",
    "shared": "Shared. Git takes the team's part of the memory; notes about you are never part of it.",
    "custom": "Custom. .agent-memory/.gitignore was edited by hand.",
}


class SharingLines(Lines):
    """What is in force, and the files git may take."""

    def __init__(self, view: SharingView) -> None:
        super().__init__()
        self.view = view

    def lines(self, width: int) -> list[Content]:
        view = self.view
        lines = wrapped(Content(_MODES[view.mode]), width)
        for note in view.notes:
            lines += [Content(""), *wrapped(label(note, "$warning"), width)]
        if view.files:
            lines += [Content(""), join(("git may take", "bold $said"))]
            lines += [join("  ", label(name)).truncate(width, ellipsis=True) for name in view.files]
        lines.append(Content(""))
        words = (
            "Sharing puts AGENTS.md, facts.json and the knowledge about stack and projects into the reach of git, "
            "after a look for secrets and personal data. Each later change of them then shows up for review like code."
        )
        return [*lines, *wrapped(Content.styled(words, "$quiet"), width)]


class SharingScreen(Panel[None]):
    """Whether this memory is private or shared with the team."""

    kind = "sharing"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("sharing"))

    def __init__(self) -> None:
        super().__init__()
        self.view = SharingView()

    def on_mount(self) -> None:
        self.set_title("Sharing")
        self.load()

    def load(self) -> None:
        """Ask for the state again."""
        self.host.fetch(self.session.sharing(), self.show, owner=self)

    def show(self, view: SharingView) -> None:
        self.view = view
        self.set_title("Sharing", view.mode)
        self.query_one("#page", Plain).update(SharingLines(view))
        self.show_keys()

    def action_switch(self) -> None:
        self.host.act(self.session.share(self.view.mode != "shared"), self._done)

    def _done(self, result: ActionResult) -> None:
        if not self.is_attached:
            return
        if result.ok or not result.extra:
            self.load()
            return
        places = [f"{place}  {one_line(what)}" for place, what in result.extra.items()]
        more = len(places) - _MOST_CONCERNS
        shown = [*places[:_MOST_CONCERNS], *([f"… and {more} more"] if more > 0 else [])]
        words = f"{result.text}\n\n" + "\n".join(shown) + "\n\nEveryone who has the repository would see them."

        def answered(answer: Any) -> None:
            if answer is not None:
                self.host.act(
                    self.session.share(True, anyway=True), lambda _: self.load() if self.is_attached else None
                )

        self.app.push_screen(Question("Share this too?", words, must="share"), answered)
