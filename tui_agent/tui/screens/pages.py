"""Panels to read: the exact prompt, and every key."""

from __future__ import annotations

from itertools import groupby
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.views import ContextView
from tui_agent.tui.actions import ACTIONS, bindings
from tui_agent.tui.commands import COMMANDS
from tui_agent.tui.keymap import Keymap, shown
from tui_agent.tui.layout import Lines, join, label, text, wrapped
from tui_agent.tui.screens.panel import Panel
from tui_agent.tui.text import bar, fit, one_line
from tui_agent.tui.widgets.base import Plain


class ContextLines(Lines):
    """The prompt: a bar per part first, then the text of each."""

    def __init__(self, view: ContextView) -> None:
        super().__init__()
        self.view = view

    def lines(self, width: int) -> list[Content]:
        view = self.view
        free = max(0, view.num_ctx - view.used - view.reserve)
        rows = [(part.name, part.tokens, "$meter") for part in view.parts]
        rows += [("kept for the answer", view.reserve, "$said"), ("free", free, "$faint")]
        names = min(24, max(len(one_line(name)) for name, _, _ in rows))
        room = max(8, min(40, width - names - 20))
        lines = []
        for name, tokens, style in rows:
            share = f"{tokens / view.num_ctx:4.0%}" if view.num_ctx else ""
            lines.append(
                join(
                    (fit(one_line(name), names) + "  ", "$quiet"),
                    (bar(tokens, view.num_ctx, room), style),
                    (f" {tokens:>7,} {share}", ""),
                )
            )
        for part in view.parts:
            rule = "─" * max(2, width - len(one_line(part.name)) - len(f"{part.tokens:,}") - 12)
            head = join(label(part.name, "bold $said"), (f" {part.tokens:,} tokens ", "$quiet"), (rule, "$faint"))
            lines += [Content(""), head.truncate(width)]
            lines += wrapped(text(part.text), width) if part.text else [Content.styled("empty", "$faint")]
        return lines


class ContextScreen(Panel[None]):
    """The exact prompt, part by part, as it was sent."""

    kind = "page"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("page"))

    def __init__(self) -> None:
        super().__init__()
        self.view = ContextView()

    def on_mount(self) -> None:
        self.add_class("-tall")
        self.set_title("The prompt, as sent")
        self.load()

    def load(self) -> None:
        self.host.fetch(self.session.context(), self.show, owner=self)

    def show(self, view: ContextView) -> None:
        self.view = view
        self.set_title("The prompt, as sent", f"{view.used:,} of {view.num_ctx:,} tokens")
        self.query_one("#page", Plain).update(ContextLines(view))

    def action_copy(self) -> None:
        self.host.copy("\n\n".join(f"## {part.name}\n{part.text}" for part in self.view.parts), "the prompt")

    def action_rebuild(self) -> None:
        self.host.act(self.session.rebuild_prompt(), lambda result: self.load() if self.is_attached else None)


class HelpLines(Lines):
    """All keys by place, in two columns where there is room; then the commands."""

    def __init__(self, keymap: Keymap) -> None:
        super().__init__()
        self.keymap = keymap

    def lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        for group, actions in groupby(ACTIONS, key=lambda action: action.group):
            lines += [Content(""), join((group, "bold $said"))] if lines else [join((group, "bold $said"))]
            for action in actions:
                keys = shown(self.keymap.keys(action.id), first_only=False)
                lines += _entry(keys, action.help, width)
        lines += [Content(""), join(("Commands", "bold $said"))]
        for command in COMMANDS:
            name = f"/{command.name} {command.argument}".rstrip()
            lines += _entry(name, command.help, width)
        return lines


def _entry(keys: str, help: str, width: int) -> list[Content]:
    """A key and what it does; keys too long for their column stand on a line of their own."""
    column = 18
    if len(keys) > column:
        return [join((keys, "$act")), *wrapped(Content(help), width, first=" " * (column + 1), rest=" " * (column + 1))]
    return wrapped(Content(help), width, first=(fit(keys, column) + " ", "$act"), rest=" " * (column + 1))


class HelpScreen(Panel[None]):
    """Every key and every command."""

    kind = "page"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("page"))

    def on_mount(self) -> None:
        self.add_class("-tall")
        self.set_title("Keys and commands", "a keymap in config.yaml changes them")
        self.query_one("#page", Plain).update(HelpLines(self.host.keymap))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in ("rebuild", "copy")
