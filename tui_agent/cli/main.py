"""The command line. Commands are thin: they open a project, call the session or the stores, and print.

Nothing heavy is imported here: ``--help`` and ``ask`` must not pay for the terminal interface or the vector store.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from tui_agent import __version__
from tui_agent.cli.completing import bash_words, complete_theme
from tui_agent.cli.doctor import register as register_doctor
from tui_agent.cli.memory import register
from tui_agent.cli.models import register as register_models
from tui_agent.cli.options import (
    ContinueOption,
    EmbeddedOption,
    EmbedOption,
    HostOption,
    JsonOption,
    ModelOption,
    NoToolsOption,
    ProjectOption,
    SessionOption,
    ThinkOption,
    flags_of,
    open_project,
    settings_for,
)
from tui_agent.cli.quick import QuickCommand
from tui_agent.cli.root import DefaultToChat
from tui_agent.cli.root import register as register_help
from tui_agent.cli.setup import register as register_setup

app = typer.Typer(
    cls=DefaultToChat,
    add_completion=True,
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "A terminal chat with your own local model, whose memory you can see, trust and steer.\n\n"
        "\b\nExamples:\n"
        "  tui-agent                      chat in this folder\n"
        "  tui-agent ~/src/shop           chat in another project\n"
        "  tui-agent --continue           go on with the last session\n"
        '  tui-agent ask "why pnpm?"      one answer on stdout\n'
        '  git diff | tui-agent ask "review this"'
    ),
)


register(app)
register_models(app)
register_setup(app)
register_doctor(app)
register_help(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"tui-agent {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command(
    cls=QuickCommand,
    epilog="\b\nExamples:\n  tui-agent chat -m qwen3:4b\n  tui-agent chat --embedded sample_project\n"
    "  tui-agent chat --host http://127.0.0.1:11435\n\n"
    "\b\nExit codes: 0 closed, 2 no terminal, no such folder, or wrong settings",
)
def chat(
    project: Annotated[
        Path, typer.Argument(metavar="[PROJECT]", help="Project folder.", show_default="this folder")
    ] = Path(),
    directory: Annotated[Path | None, typer.Option("-C", "--project", metavar="PROJECT", help="The same.")] = None,
    model: ModelOption = None,
    embed_model: EmbedOption = None,
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    resume: ContinueOption = False,
    session: SessionOption = None,
    theme: Annotated[str | None, typer.Option("--theme", help="Colour theme.", autocompletion=complete_theme)] = None,
    no_tools: NoToolsOption = False,
    think: ThinkOption = None,
) -> None:
    """Chat in a project folder (this is what runs without a command)."""
    from tui_agent.cli.chat import run_chat

    flags = flags_of(
        model=model, embed_model=embed_model, host=host, embedded=embedded, no_tools=no_tools, think=think, theme=theme
    )
    raise typer.Exit(run_chat(directory or project, flags, session or ("continue" if resume else "new")))


@app.command(
    epilog='\b\nExamples:\n  tui-agent ask "how do we run the tests?"\n  git diff | tui-agent ask "review this"\n'
    '  tui-agent ask --json -C ~/src/shop "what did we decide about retries?"\n\n'
    "\b\nExit codes: 0 answered, 1 the memory cannot be used, 2 usage or configuration,\n"
    "3 server unreachable, 4 model missing, 5 generation failed, 130 interrupted"
)
def ask(
    text: Annotated[list[str] | None, typer.Argument(help="The question; piped text is added to it.")] = None,
    project: ProjectOption = Path(),
    model: ModelOption = None,
    embed_model: EmbedOption = None,
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    resume: ContinueOption = False,
    session: SessionOption = None,
    no_tools: NoToolsOption = False,
    think: ThinkOption = None,
    json_: JsonOption = False,
) -> None:
    """Answer one question on stdout, without the terminal interface."""
    from tui_agent.cli.ask import run_ask

    flags = flags_of(model=model, embed_model=embed_model, host=host, embedded=embedded, no_tools=no_tools, think=think)
    opened, paths = open_project(project)
    loaded = settings_for(opened, paths, flags)
    code = run_ask(
        opened, paths, loaded, " ".join(text or ()), session or ("continue" if resume else "new"), as_json=json_
    )
    raise typer.Exit(code)


def main(argv: list[str] | None = None) -> Any:
    """Entry point of the console script."""
    if "complete_bash" in os.environ.get("_TUI_AGENT_COMPLETE", ""):
        return bash_words(lambda: app(args=argv, prog_name="tui-agent"))
    return app(args=argv, prog_name="tui-agent")
