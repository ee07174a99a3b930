"""The commands that complete what was typed after a slash."""

from __future__ import annotations

from textual.content import Content

from tui_agent.tui.commands import Command
from tui_agent.tui.layout import join
from tui_agent.tui.widgets.rows import Row, RowList


class CommandRow(Row):
    """``/goal TEXT   what it does``."""

    def __init__(self, command: Command) -> None:
        super().__init__(command.name)
        self.command = command

    def lines(self, width: int) -> list[Content]:
        name = f"/{self.command.name} {self.command.argument}".rstrip()
        return [join((name.ljust(18), "bold $act"), (self.command.help, "$quiet")).truncate(width, ellipsis=True)]


class Completions(RowList):
    """The commands that fit what was typed. It never has the focus: the editor's keys move it."""

    can_focus = False
    DEFAULT_CSS = """
    Completions { height: auto; max-height: 8; display: none; }
    Completions.-shown { display: block; }
    Completions > .option-list--option { padding: 0 2; }
    Completions > .option-list--option-highlighted { background: $row-focus; }
    """
