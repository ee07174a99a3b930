"""Hand-off: the packet for another agent, part by part, corrected and confirmed here before it goes anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.review_views import HandoffDraft, HandoffView
from tui_agent.agent.views import ActionResult
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import Lines, join, label, text, wrapped
from tui_agent.tui.screens.panel import Page, Panel, Question
from tui_agent.tui.text import fit, plural
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.rows import Row, RowList

_NAMES = 13
_PREVIEW_FROM = 28
"""Rows of the terminal from which on the packet itself is shown below its parts."""


class PartRow(Row):
    """``✓ requirement  exclude archived``; confirmed or not."""

    def __init__(self, key: str, name: str, said: str, *, confirmed: bool) -> None:
        super().__init__(key)
        self.name, self.said, self.confirmed = name, said, confirmed

    def lines(self, width: int) -> list[Content]:
        mark = ("✓ ", "bold $said") if self.confirmed else ("· ", "$warning")
        if not self.said:
            mark = ("  ", "")
        head = join(mark, (fit(self.name, _NAMES), "$quiet"))
        said = label(self.said) if self.said else Content.styled("none", "$faint")
        return wrapped(said, width, first=head, rest=" " * head.cell_length)


class PacketLines(Lines):
    """The packet as it would be handed on, or why it cannot be."""

    def __init__(self, view: HandoffView) -> None:
        super().__init__()
        self.view = view

    def lines(self, width: int) -> list[Content]:
        if self.view.refused:
            return wrapped(label(self.view.refused, "$warning"), width, first=("▲ ", "$warning"), rest="  ")
        return wrapped(text(self.view.text, "$quiet"), width)


class PacketScreen(Panel[None]):
    """The packet alone, for terminals with few rows."""

    kind = "page"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("page"))

    def __init__(self, view: HandoffView) -> None:
        super().__init__()
        self.view = view

    def on_mount(self) -> None:
        self.set_title("The packet", f"{self.view.tokens} tokens" if self.view.text else "")
        self.query_one("#page", Plain).update(PacketLines(self.view))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "rebuild" and (action != "copy" or bool(self.view.text))

    def action_copy(self) -> None:
        self.host.copy(self.view.text, "the packet")


class HandoffScreen(Panel[None]):
    """
    | Key | What |
    | :- | :- |
    | c, space | this part is right |
    | e, enter | change the part |
    | o, d | add a requirement, leave one out |
    | y, s, v | copy, save to a file, show the packet |
    """

    kind = "handoff"
    DEFAULT_CSS = """
    HandoffScreen {
        & #about { padding: 0 1; margin-top: 1; }
        & #packet { padding: 0 1; margin-top: 1; max-height: 14; height: auto; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("handoff"))

    def __init__(self) -> None:
        super().__init__()
        self.job = ""
        self.form = ""
        self.requirements: list[str] = []
        self.confirmed: set[str] = set()
        self.view = HandoffView()

    def body(self) -> ComposeResult:
        yield Plain(id="about")
        yield RowList(id="list")
        yield Plain(id="packet")

    @property
    def parts(self) -> RowList:
        """The parts of the packet as rows."""
        return self.query_one("#list", RowList)

    def on_mount(self) -> None:
        self.set_title("Hand-off")
        self.query_one("#about", Plain).update(
            Page([("", Content.styled(
                "Another agent goes on from this: what was decided, never the conversation. Confirm each part (c).",
                "$quiet",
            ))])
        )  # fmt: skip
        self.parts.focus()
        self.action_redraft()

    def on_resize(self) -> None:
        self._place_packet()

    def _place_packet(self) -> None:
        self.query_one("#packet").display = self.size.height >= _PREVIEW_FROM or bool(self.view.refused)

    # -- the parts -------------------------------------------------------------------------------------------------

    def action_redraft(self) -> None:
        self.host.fetch(self.session.handoff_draft(), self.show, owner=self)

    def show(self, draft: HandoffDraft) -> None:
        """Begin with a draft; nothing in it is confirmed yet."""
        self.job, self.form, self.requirements = draft.task, draft.format, [*draft.requirements]
        self.confirmed = set()
        self.changed()

    def _parts(self) -> list[tuple[str, str, str]]:
        """Key, name and text of each part."""
        parts = [("task", "task", self.job)]
        parts += [(f"r{number}", "requirement", said) for number, said in enumerate(self.requirements)]
        return [*parts, ("format", "format", self.form)]

    @property
    def all_confirmed(self) -> bool:
        """Whether the user has said yes to every part that has a text, on this screen."""
        return all(key in self.confirmed for key, _, said in self._parts() if said) and bool(self.job)

    def changed(self) -> None:
        """Show the parts, and ask for the packet they make."""
        parts = self._parts()
        rows: list[Row] = [PartRow(key, name, said, confirmed=key in self.confirmed) for key, name, said in parts]
        self.parts.show(rows)
        wanted = self.session.handoff(self.job, self.requirements, self.form, confirmed=self.all_confirmed)
        self.host.fetch(wanted, self._show_packet, owner=self)

    def _show_packet(self, view: HandoffView) -> None:
        self.view = view
        said = [key for key, _, text_ in self._parts() if text_]
        yes = sum(key in self.confirmed for key in said)
        size = f"{view.tokens} tokens of about {view.aim}" if view.text else "not ready"
        state = "confirmed by you" if view.confirmed else f"{yes} of {plural(len(said), 'part')} confirmed"
        self.set_title("Hand-off", f"{state} · {size}")
        self.query_one("#packet", Plain).update(PacketLines(view))
        self._place_packet()
        self.show_keys()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "drop":
            return bool(self.requirements)
        return True

    # -- keys ------------------------------------------------------------------------------------------------------

    def _current(self) -> PartRow | None:
        row = self.parts.current
        return row if isinstance(row, PartRow) else None

    def action_down(self) -> None:
        self.parts.action_cursor_down()

    def action_up(self) -> None:
        self.parts.action_cursor_up()

    def action_confirm(self) -> None:
        row = self._current()
        if row is None or not row.said:
            return
        if row.key in self.confirmed:
            self.confirmed.discard(row.key)
        else:
            self.confirmed.add(row.key)
            self.call_after_refresh(self.action_down)
        self.changed()

    def action_edit(self) -> None:
        row = self._current()
        if row is not None:
            self._ask(f"Change the {row.name}", row.said, lambda said: self._set(row.key, said))

    def on_option_list_option_selected(self, event: RowList.OptionSelected) -> None:
        event.stop()
        self.action_edit()

    def action_add(self) -> None:
        def add(said: str) -> None:
            if said:
                self.requirements.append(said)
                self.changed()

        self._ask("A requirement", "", add)

    def action_drop(self) -> None:
        row = self._current()
        if row is None or not row.key.startswith("r"):
            self.host.say("Only requirements can be left out; e changes the other parts.")
            return
        # Confirmations belong to places, and the places behind this one move up.
        kept = [(said, f"r{number}" in self.confirmed) for number, said in enumerate(self.requirements)]
        del kept[int(row.key[1:])]
        self.requirements = [said for said, _ in kept]
        self.confirmed = {key for key in self.confirmed if not key.startswith("r")}
        self.confirmed |= {f"r{number}" for number, (_, yes) in enumerate(kept) if yes}
        self.changed()

    def _set(self, key: str, said: str) -> None:
        if key == "task":
            self.job = said or self.job
        elif key == "format":
            self.form = said
        elif said:
            self.requirements[int(key[1:])] = said
        self.confirmed.discard(key)
        self.changed()

    def _ask(self, title: str, value: str, then: Callable[[str], None]) -> None:
        words = "The conclusion alone, such as “exclude archived items”: no questions, nothing that was only weighed."

        def answered(answer: str | None) -> None:
            if answer is not None and self.is_attached:
                then(" ".join(answer.split()))

        self.app.push_screen(Question(title, words, value=value), answered)

    def _ready(self) -> bool:
        if self.view.refused:
            self.host.say(self.view.refused, "warning")
        return bool(self.view.text)

    def action_copy(self) -> None:
        if self._ready():
            self.host.copy(self.view.text, "the packet" if self.view.confirmed else "the packet, unconfirmed,")

    def action_view(self) -> None:
        self.app.push_screen(PacketScreen(self.view))

    def action_save(self) -> None:
        if not self._ready():
            return
        unsaid = "" if self.view.confirmed else "\n\nIt says that you have not confirmed it: some parts have no ✓ yet."

        def answered(name: str | None) -> None:
            if name is not None and name.strip() and self.is_attached:
                self._save(name.strip(), replace=False)

        words = f"A file in the project.{unsaid}"
        self.app.push_screen(Question("Save the packet", words, value="handoff.json"), answered)

    def _save(self, name: str, *, replace: bool) -> None:
        def done(result: ActionResult) -> None:
            exists = result.extra.get("exists")
            if exists and self.is_attached:
                question = Question(f"Replace {exists}?", "What it holds now is lost.", must="replace")
                self.app.push_screen(
                    question, lambda answer: self._save(name, replace=True) if answer is not None else None
                )

        session = self.session
        self.host.act(
            session.save_handoff(
                name, self.job, self.requirements, self.form, confirmed=self.all_confirmed, replace=replace
            ),
            done,
        )
