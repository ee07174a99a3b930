"""``tui-agent memory …`` and ``tui-agent handoff``: everything the panes can do, for scripts and timers.

Commands open the same stores as the chat and are safe beside it. The table of commands is loaded when one of them is
asked for, and what a command needs when it runs, so that they cost the other commands nothing.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.main import get_command

from tui_agent.cli.handoff import EPILOG, handoff
from tui_agent.cli.printing import EXIT_CODES
from tui_agent.cli.quick import QuickGroup


class _Loaded(QuickGroup):
    """The commands of :mod:`tui_agent.cli.memory_table`, read when they are first looked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        if not self.commands:
            from tui_agent.cli.memory_table import memory as table

            self.commands.update(get_command(table).commands)  # type: ignore[attr-defined]
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or ``None``."""
        self.list_commands(ctx)
        return super().get_command(ctx, cmd_name)


memory = typer.Typer(
    cls=_Loaded,
    name="memory",
    no_args_is_help=True,
    invoke_without_command=False,
    rich_markup_mode=None,
    help=(
        "Look at what is remembered, and change it.\n\n"
        "\b\nExamples:\n"
        "  tui-agent memory list                      everything that is remembered\n"
        '  tui-agent memory add "We deploy on Fridays"\n'
        '  tui-agent memory why "how do we deploy?"   what would be recalled, and why\n'
        "  tui-agent memory backup -C ~/src/shop      a checked backup\n\n"
        f"\b\n{EXIT_CODES}"
    ),
    epilog="Ids may be given by their unique end, as the chat shows them. Every command takes -C PROJECT and --json.",
)


@memory.callback()
def _memory() -> None:
    """Makes it a group, although its own commands come later."""


def register(app: typer.Typer) -> None:
    """Adds ``memory`` and ``handoff`` to the program's commands."""
    app.add_typer(memory, name="memory")
    app.command("handoff", epilog=EPILOG)(handoff)
