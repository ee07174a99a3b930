"""The program's root command: ``chat`` by default, commands in groups, completion of both, and ``help``."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from tui_agent.cli.quick import QuickCommand, QuickGroup, first_sentence

_GLOBAL = frozenset({"--help", "-h", "--version", "--install-completion", "--show-completion"})
# Headings of the list of commands; what is named nowhere comes last.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Talk", ("chat", "ask", "setup")),
    ("Memory", ("memory", "handoff")),
    ("Server and models", ("models", "doctor", "allow")),
    ("Help", ("help",)),
)
ENVIRONMENT: tuple[tuple[str, str], ...] = (
    ("OLLAMA_HOST", "address of the model server, when no setting names one"),
    ("OLLAMA_MODELS", "where Ollama keeps its models; found there even when it does not run"),
    ("OLLAMA_API_KEY", "sent as a bearer token"),
    ("TUI_AGENT_HOME", "holds config, data, state and cache instead of the platform's folders"),
    ("TUI_AGENT_MODEL, …", "any setting: TUI_AGENT_RECALL__TOP_K is recall.top_k"),
    ("NO_COLOR", "no colours"),
    ("NO_PROXY", "hosts that proxy variables must not apply to"),
)
EXIT_CODES: tuple[tuple[str, str], ...] = (
    ("0", "done"),
    ("1", "the memory cannot be used; doctor: something is degraded"),
    ("2", "usage, configuration or missing consent; doctor: something is broken"),
    ("3", "the server cannot be reached"),
    ("4", "the model is missing"),
    ("5", "the server failed, or the generation did"),
    ("6", "memory: nothing found"),
    ("130", "interrupted"),
)


class DefaultToChat(QuickGroup):
    """``tui-agent [PROJECT]`` is ``tui-agent chat [PROJECT]``; a folder named like a command is ``./memory``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert ``chat`` when the first argument is neither a command nor a global flag.

        While a shell completes the first word (there are no arguments before it then) nothing is inserted.
        """
        completing = ctx.resilient_parsing and not args
        if not completing and (not args or (args[0] not in self.commands and args[0] not in _GLOBAL)):
            args = ["chat", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands and global flags, and the options of ``chat``, which may be left out."""
        found = list(super().shell_complete(ctx, incomplete))
        if incomplete.startswith("-"):
            chat = self.commands["chat"]
            with chat.make_context("chat", [], parent=ctx, resilient_parsing=True) as inner:
                known = {item.value for item in found}
                found += [item for item in chat.shell_complete(inner, incomplete) if item.value not in known]
        return found

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the groups."""
        named = [name for _, names in GROUPS for name in names if name in self.commands]
        return [*named, *(name for name in self.commands if name not in named)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One list for each group, each command with its first sentence whole."""
        left = dict.fromkeys(self.list_commands(ctx))
        for title, names in (*GROUPS, ("More", tuple(left))):
            shown = [name for name in names if name in left]
            for name in shown:
                del left[name]
            rows = [(name, first_sentence(self.commands[name])) for name in shown if not self.commands[name].hidden]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def complete_command(ctx: Any, args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Commands below what was named so far."""
    command: Any = ctx.find_root().command
    for name in ctx.params.get("command") or ():
        command = getattr(command, "get_command", lambda *_: None)(ctx, name)
    if not hasattr(command, "list_commands"):
        return []
    names = (name for name in command.list_commands(ctx) if name.startswith(incomplete))
    return [(name, first_sentence(command.get_command(ctx, name))) for name in names]


def register(app: typer.Typer) -> None:
    """Adds ``help`` to the program's commands."""
    app.command(
        "help",
        cls=QuickCommand,
        epilog="\b\nExamples:\n  tui-agent help                 everything on one page\n"
        "  tui-agent help memory why      one command\n  tui-agent help | less",
    )(help_)


def help_(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND]...", help="A command.", autocompletion=complete_command),
    ] = None,
) -> None:
    """Show the page of a command, or of the program: commands, files, variables, exit codes."""
    root = ctx.find_root()
    found: Any = root.command
    inner: Any = root
    for number, name in enumerate(command or ()):
        below = found.get_command(inner, name) if hasattr(found, "get_command") else None
        if below is None:
            path = " ".join(("tui-agent", *(command or ())[:number]))
            typer.echo(f"tui-agent: {path} has no command {name!r}. `{path} --help` lists them.", err=True)
            raise typer.Exit(2)
        found, inner = below, below.make_context(name, [], parent=inner, resilient_parsing=True)
    if command:
        typer.echo(inner.get_help())
        return
    for line in page(root):
        sys.stdout.write(line + "\n")


def page(root: Any) -> list[str]:
    """The program's page, like one of man's: 78 columns."""
    from tui_agent.project import Project, UserPaths

    commands = root.command
    lines = [
        "NAME",
        "  tui-agent - a chat with your own local model, whose memory you can see",
        "",
        "SYNOPSIS",
    ]
    lines += ["  tui-agent [PROJECT] [OPTIONS of chat]", "  tui-agent COMMAND [OPTIONS] [ARGUMENTS]", ""]
    for title, names in GROUPS:
        lines.append(f"COMMANDS: {title.upper()}")
        for name in names:
            command = commands.get_command(root, name)
            if command is None:
                continue
            lines += _entry(name, first_sentence(command))
            if hasattr(command, "list_commands"):
                below = ", ".join(command.list_commands(root))
                lines += textwrap.wrap(below, 78, initial_indent=" " * 20, subsequent_indent=" " * 20)
        lines.append("")
    lines.append("FILES")
    here = Project.open(".")
    for owned in (*here.owned_paths(), *UserPaths.find(os.environ).owned_paths()):
        path = owned.path
        shown = str(path.relative_to(here.root)) if path.is_relative_to(here.root) else _short(path)
        lines += _entry(shown, owned.purpose)
    lines += ["", "ENVIRONMENT"]
    for name, what in ENVIRONMENT:
        lines += _entry(name, what)
    lines += ["", "EXIT CODES"]
    for code, what in EXIT_CODES:
        lines += _entry(code, what)
    return [*lines, "", "SEE ALSO", "  tui-agent help COMMAND, tui-agent doctor, F1 in the chat"]


def _entry(name: str, what: str) -> list[str]:
    if len(name) > 16:
        return [f"  {name}", *textwrap.wrap(what, 78, initial_indent=" " * 20, subsequent_indent=" " * 20)]
    return textwrap.wrap(what, 78, initial_indent=f"  {name:<18}", subsequent_indent=" " * 20)


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
