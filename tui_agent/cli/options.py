"""Options shared by the commands, and how they become a project and settings."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tui_agent.cli.completing import complete_embedder, complete_model, complete_session

if TYPE_CHECKING:
    from tui_agent.project import Project, UserPaths
    from tui_agent.settings import Loaded

USAGE = 2

ProjectOption = Annotated[
    Path, typer.Option("-C", "--project", metavar="PROJECT", help="Project folder.", show_default="this folder")
]
ModelOption = Annotated[
    str | None,
    typer.Option("--model", "-m", help="Chat model, as the server names it.", autocompletion=complete_model),
]
EmbedOption = Annotated[
    str | None,
    typer.Option(
        "--embed-model",
        help="Embedding model: auto, builtin, none, or a model of the server.",
        autocompletion=complete_embedder,
    ),
]
HostOption = Annotated[str | None, typer.Option("--host", help="Address of the model server.")]
EmbeddedOption = Annotated[
    bool | None, typer.Option("--embedded/--no-embedded", help="Use the built-in engine instead of a server.")
]
NoToolsOption = Annotated[bool, typer.Option("--no-tools", help="Offer no tools to the model.")]
ThinkOption = Annotated[bool | None, typer.Option("--think/--no-think", help="Ask the model to think, or not to.")]
ContinueOption = Annotated[bool, typer.Option("--continue", "-c", help="Go on with the last session.")]
SessionOption = Annotated[
    str | None,
    typer.Option("--session", help="Go on with this session (id, or its end).", autocompletion=complete_session),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def fail(text: str, code: int = USAGE) -> NoReturn:
    """Say one sentence on stderr and exit."""
    typer.echo(f"tui-agent: {text}", err=True)
    raise typer.Exit(code)


def flags_of(
    *,
    model: str | None = None,
    embed_model: str | None = None,
    host: str | None = None,
    embedded: bool | None = None,
    no_tools: bool = False,
    think: bool | None = None,
    theme: str | None = None,
) -> dict[str, Any]:
    """The settings named on the command line, and only those."""
    flags: dict[str, Any] = {
        "model": model,
        "embedder": embed_model,
        "host": host,
        "embedded": embedded,
        "tools": False if no_tools else None,
        "think": think,
        "theme": theme,
    }
    return {key: value for key, value in flags.items() if value is not None}


def open_project(path: Path) -> tuple[Project, UserPaths]:
    """The project at ``path`` and the user's own folders; exits with a sentence when it is no folder."""
    from tui_agent.project import Project, ProjectError, UserPaths

    try:
        return Project.open(path), UserPaths.find(os.environ)
    except ProjectError as error:
        fail(str(error))


def settings_for(project: Project, paths: UserPaths, flags: dict[str, Any]) -> Loaded:
    """Settings by files, environment and flags; exits with a sentence for a bad flag."""
    from tui_agent.settings import SettingsError, load_settings

    try:
        return load_settings(project, paths, os.environ, flags)
    except SettingsError as error:
        fail(str(error))


def stdin_text() -> str:
    """What was piped in, or an empty string when stdin is a terminal."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return ""
    return sys.stdin.buffer.read().decode("utf-8", errors="replace")
