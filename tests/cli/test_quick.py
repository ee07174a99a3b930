"""Parameters that are taken as they are: the same values as Typer's own, without what it imports for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from tui_agent.cli.quick import QuickCommand

_STARTED = """
import sys
import tui_agent.cli.chat as chat
from tui_agent.cli.main import main
chat.run_chat = lambda folder, flags, resume: print(folder, flags, resume, "pydantic" in sys.modules) or 0
main(sys.argv[1:])
"""


def test_starting_the_chat_imports_no_validator(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", _STARTED, "chat", str(tmp_path), "--model", "m", "--no-tools", "--continue"]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.startswith(f"{tmp_path} ")
    assert result.stdout.rstrip().endswith("continue False")


def loud(value: str | None) -> str | None:
    return value.upper() if value else value


def _run(cls: type[TyperCommand], argv: list[str]) -> tuple[int, list[Any]]:
    seen: list[Any] = []
    app = typer.Typer(rich_markup_mode=None)

    @app.command(cls=cls)
    def command(
        folder: Annotated[Path, typer.Argument()] = Path(),
        other: Annotated[Path | None, typer.Option()] = None,
        name: Annotated[str | None, typer.Option(callback=loud)] = None,
        flag: Annotated[bool | None, typer.Option("--flag/--no-flag")] = None,
        on: Annotated[bool, typer.Option("--on")] = False,
        count: Annotated[int, typer.Option()] = 3,
        words: Annotated[list[str] | None, typer.Option()] = None,
    ) -> None:
        seen.extend([folder, other, name, flag, on, count, words])

    return CliRunner().invoke(app, argv).exit_code, seen


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["."],
        ["no/such/folder", "--other", "/"],
        ["--name", "x", "--flag", "--on"],
        ["--no-flag", "--count", "7", "--words", "a", "--words", "b"],
        ["--count", "seven"],
        ["--name"],
        ["--unknown"],
        ["one", "two"],
        ["--help"],
    ],
    ids=lambda argv: " ".join(argv) or "nothing",
)
def test_values_and_exit_codes_are_those_of_typer(argv: list[str]) -> None:
    assert _run(QuickCommand, argv) == _run(TyperCommand, argv)
