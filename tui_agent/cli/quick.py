"""Commands that start quickly: parameters that need no conversion to speak of are not sent through a validator.

Typer from 0.29 on builds a pydantic validator for every parameter, given or not, and importing pydantic takes longer
than painting the first screen. Parsing, help and completion stay Typer's; so does every value that is not plainly of
its parameter's type.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup


class QuickGroup(TyperGroup):
    """A group whose own options are taken as they are where that is right."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, ``--help`` included."""
        return [_quick(param) for param in super().get_params(ctx)]


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
