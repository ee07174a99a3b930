"""The command palette: every action of the chat, the commands without an action of their own, and the themes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui_agent.tui import commands
from tui_agent.tui.actions import ACTIONS
from tui_agent.tui.keymap import shown

if TYPE_CHECKING:
    from tui_agent.tui.app import TuiAgentApp

_PALETTE = ("app", "chat", "transcript", "hot", "cold", "recalled")
_NOT_IN_PALETTE = {"app.interrupt", "app.palette"} | {
    f"transcript.{name}" for name in ("next", "previous", "why", "copy", "save", "undo", "last")
}


class ActionCommands(Provider):
    """The palette: every action of the chat, the commands without argument, and the themes."""

    def _rows(self) -> list[tuple[str, str, Callable[[], None]]]:
        """What is shown, one more word it is found by, and what it does."""
        app = cast("TuiAgentApp", self.app)
        rows: list[tuple[str, str, Callable[[], None]]] = []
        for action in ACTIONS:
            if action.context in _PALETTE and action.name not in ("up", "down") and action.id not in _NOT_IN_PALETTE:
                place = "" if action.context in ("app", "chat") else f"{action.context.capitalize()}: "
                key = shown(app.keymap.keys(action.id))
                rows.append(
                    (f"{place}{action.help.rstrip('.')}  ·  {key}", action.label, partial(app.run_id, action.id))
                )
        rows += [
            (
                f"{command.help.rstrip('.')}  ·  /{command.name}",
                command.name,
                partial(app.command_from_palette, command),
            )
            for command in commands.COMMANDS
            if not command.action
        ]
        rows += [(f"Theme: {name}", "theme", partial(app.use_theme, name)) for name in app.theme_names]
        return rows

    async def discover(self) -> Hits:
        for title, _, run in self._rows():
            yield DiscoveryHit(title, run)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, word, run in self._rows():
            if (score := max(matcher.match(title), matcher.match(word))) > 0:
                yield Hit(score, title, run)
