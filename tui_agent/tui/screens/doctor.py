"""The doctor on screen: a line for each thing that was looked at, faults first, each with what mends it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.doctor.facts import TerminalFacts
from tui_agent.agent.doctor.troubles import TITLES, Finding
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import Lines, join, label, wrapped
from tui_agent.tui.screens.panel import Panel
from tui_agent.tui.terminal_facts import terminal_facts
from tui_agent.tui.text import fit, plural
from tui_agent.tui.widgets.base import Plain

_MARKS = {"ok": ("✓", "$said"), "degraded": ("▲", "$warning"), "broken": ("✗", "$error")}
_TITLES = {name: title for name, (title, _) in TITLES.items()}
_GROUPS = {name: group for name, (_, group) in TITLES.items()}
_COLUMN = 17


class DoctorLines(Lines):
    """What is wrong first, then what is well, by group."""

    def __init__(self, findings: list[Finding], *, every: bool) -> None:
        super().__init__()
        self.findings = findings
        self.every = every

    def lines(self, width: int) -> list[Content]:
        wrong = [one for one in self.findings if one.level != "ok"]
        wrong.sort(key=lambda one: one.level != "broken")
        lines: list[Content] = []
        for one in wrong:
            lines += self._finding(one, width)
        if not self.every:
            return lines or [Content.styled("All is well. a shows what was looked at.", "$quiet")]
        group = ""
        for one in self.findings:
            if one.level != "ok":
                continue
            if _GROUPS[one.check] != group:
                group = _GROUPS[one.check]
                lines += [*([Content("")] if lines else []), join((group, "bold $said"))]
            lines += self._finding(one, width)
        return lines

    def _finding(self, one: Finding, width: int) -> list[Content]:
        mark, style = _MARKS[one.level]
        if width < 64:
            head = wrapped(label(one.text), width, first=(f"{mark} ", style), rest="  ")
            indent = "  "
        else:
            first = join((f"{mark} ", style), (fit(_TITLES[one.check], _COLUMN), "$quiet"))
            indent = " " * (_COLUMN + 2)
            head = wrapped(label(one.text), width, first=first, rest=indent)
        if not one.fix or one.level == "ok":
            return head
        return [*head, *wrapped(label(one.fix, "$act"), width, first=(f"{indent}→ ", "$quiet"), rest=f"{indent}  ")]


class DoctorScreen(Panel[None]):
    """Every check, with what is wrong first.

    | Key | What |
    | :- | :- |
    | r | look again |
    | a | all checks, or only faults |
    | y | copy the page |
    """

    kind = "doctor"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("doctor"))
    DEFAULT_CSS = "DoctorScreen > .panel { width: 116; }"

    def __init__(self) -> None:
        super().__init__()
        self.findings: list[Finding] = []
        self.every = True

    def on_mount(self) -> None:
        self.set_class(self.every, "-tall")
        self.load()

    def load(self) -> None:
        """Look at everything again."""
        self.set_title("Doctor", "looking …")
        self.host.fetch(self.session.examine(self._terminal()), self.show, owner=self)

    def _terminal(self) -> TerminalFacts:
        """The variables tell what the terminal can do; its size is known better here."""
        return replace(terminal_facts(here=True), columns=self.app.size.width, rows=self.app.size.height)

    def show(self, findings: list[Finding]) -> None:
        self.findings = findings
        wrong = sum(one.level != "ok" for one in findings)
        self.set_title("Doctor", plural(wrong, "fault") if wrong else "all is well")
        self._draw()

    def _draw(self) -> None:
        self.set_class(self.every, "-tall")
        self.query_one("#page", Plain).update(DoctorLines(self.findings, every=self.every))

    def action_again(self) -> None:
        self.load()

    def action_all(self) -> None:
        self.every = not self.every
        self._draw()

    def action_copy(self) -> None:
        rows = [f"{one.level:<8}  {_TITLES[one.check]}: {one.text} {one.fix}".rstrip() for one in self.findings]
        self.host.copy("\n".join(rows), "the doctor's page")
