"""Commands that start quickly: parameters that need no conversion to speak of are not sent through a validator.

Typer from 0.29 on builds a pydantic validator for every parameter, given or not, and importing pydantic takes longer
than painting the first screen. Parsing, help and completion stay Typer's; so does every value that is not plainly of
its parameter's type.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

_WORDS = 70  # characters about a completion
# What an option takes, where its name does not say it.
_TAKES = {"host": "URL", "embed_model": "MODEL", "session": "ID", "theme": "NAME"}


class QuickGroup(TyperGroup):
    """A group whose own options are taken as they are where that is right, and whose help reads like a manual page."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, ``--help`` included."""
        return [_quick(param) for param in super().get_params(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or ``None``."""
        found: Any = super().get_command(ctx, cmd_name)
        if found is None or "shell_complete" in vars(found):
            return found
        for param in found.params:
            _as_in_a_manual(param)
        found.shell_complete = partial(_with_short_words, found.shell_complete)
        return found

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands with what they do, and options."""
        found = list(super().shell_complete(ctx, incomplete))
        for item in found:
            command = self.get_command(ctx, item.value)
            if command is not None:
                item.help = textwrap.shorten(first_sentence(command), _WORDS, placeholder=" …")
        return found

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Each command with its first sentence whole."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(command)) for name, command in found if not command.hidden])


def _with_short_words(complete: Callable[[Any, str], list[Any]], ctx: Any, incomplete: str) -> list[Any]:
    """Typer breaks longer words about a completion into lines, and fish offers each line."""
    found = list(complete(ctx, incomplete))
    for item in found:
        if item.help:
            item.help = textwrap.shorten(item.help, _WORDS, placeholder=" …")
    return found


def first_sentence(command: Any) -> str:
    """What a command does, from its help."""
    return str(command.short_help or command.help or "").partition("\n\n")[0].partition(". ")[0].rstrip(".")


def _as_in_a_manual(param: Any) -> None:
    """``NAME`` for what must be given, ``[HOST]`` for what may be, ``--host URL`` for what an option takes; Typer from
    0.29 on would write ``{NAME}``, ``[[HOST]]`` and ``--host <str>``."""
    kind = getattr(param, "type_descriptor", None)
    if kind is None:
        return
    if param.param_type_name == "argument":
        name = param.metavar = param.metavar or param.name.upper() + ("..." if param.nargs != 1 else "")
        usage = name if param.required or name.startswith("[") else f"[{name}]"
        param._usage_display_name = lambda: usage
        param.display_type_rich = lambda ctx: None
    elif param.metavar is None and not (param.is_flag or param.count or kind.is_choice):
        param.metavar = _TAKES.get(param.name, "N" if kind.annotation in (int, float) else param.name.upper())


class QuickCommand(TyperCommand):
    """A command whose text, path and switch parameters are taken as they are where that is right."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, ``--help`` included."""
        return [_quick(param) for param in super().get_params(ctx)]


def _quick(param: Any) -> Any:
    # The parser calls ``process_value`` on every parameter; an instance may have its own.
    if "process_value" not in vars(param) and not (param.required or param.multiple or param.nargs != 1):
        param.process_value = partial(_process, param, param.process_value)
    return param


def _process(param: Any, thorough: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    wanted = getattr(getattr(param, "type_descriptor", None), "annotation", None)  # Typer before 0.29 has none
    if wanted in (str, bool) and (value is None or isinstance(value, wanted)):
        taken: Any = value
    elif wanted is Path and value is None:
        taken = None
    elif wanted is Path and isinstance(value, (str, Path)) and os.access(value, os.R_OK):
        taken = Path(value)
    else:
        return thorough(ctx, value)
    return param.callback(ctx, param, taken) if param.callback is not None else taken
