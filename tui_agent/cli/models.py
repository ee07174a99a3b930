"""``tui-agent models …``: what the model server has and holds, downloads, and freeing its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tui_agent.cli.completing import complete_model
from tui_agent.cli.options import EmbeddedOption, HostOption, JsonOption, ProjectOption
from tui_agent.cli.quick import QuickCommand, QuickGroup

EXIT_CODES = (
    "Exit codes: 0 done, 2 wrong usage or refused, 3 server unreachable,\n"
    "4 no such model, 5 the server failed, 130 stopped"
)
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The model, as the server names it.", autocompletion=complete_model)
]

models = typer.Typer(
    cls=QuickGroup,
    name="models",
    no_args_is_help=True,
    rich_markup_mode=None,
    help=(
        "Look at the models of the server, download one, or free its memory.\n\n"
        "\b\nExamples:\n"
        "  tui-agent models list\n"
        "  tui-agent models pull qwen3:4b   goes on where an earlier download stopped\n"
        "  tui-agent models ps              what is loaded, where it runs, when it goes\n\n"
        f"\b\n{EXIT_CODES}"
    ),
)


def register(app: typer.Typer) -> None:
    """Adds ``models`` to the program's commands."""
    app.add_typer(models, name="models")


def _examples(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  tui-agent models {line}" for line in lines) + f"\n\n\b\n{EXIT_CODES}"


@models.command("list", cls=QuickCommand, epilog=_examples("list", "list --json", "list --host http://box:11434"))
def list_(
    project: ProjectOption = Path(),
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    json_: JsonOption = False,
) -> None:
    """List the installed models: size, what they can do, window, and what is loaded now."""
    from tui_agent.cli.models_run import run_list

    raise typer.Exit(run_list(project, host, embedded, as_json=json_))


@models.command(
    "show", cls=QuickCommand, epilog=_examples("show qwen3:4b", "show qwen3:4b --probe", "show qwen3:4b --json")
)
def show(
    name: NameArgument,
    project: ProjectOption = Path(),
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    probe: Annotated[bool, typer.Option("--probe", help="Try now whether it can call tools, and remember it.")] = False,
    json_: JsonOption = False,
) -> None:
    """Show one model: size, window, abilities, how it calls tools, and where it runs."""
    from tui_agent.cli.models_run import run_show

    raise typer.Exit(run_show(project, host, embedded, name, probe=probe, as_json=json_))


@models.command("pull", cls=QuickCommand, epilog=_examples("pull qwen2.5-coder:7b", "pull nomic-embed-text --json"))
def pull(
    name: NameArgument,
    project: ProjectOption = Path(),
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    json_: JsonOption = False,
) -> None:
    """Download a model, layer by layer. ctrl+c stops it; what arrived stays, and the next pull goes on there."""
    from tui_agent.cli.models_pull import run_pull

    raise typer.Exit(run_pull(project, host, embedded, name, as_json=json_))


@models.command("ps", cls=QuickCommand, epilog=_examples("ps", "ps --json"))
def ps(
    project: ProjectOption = Path(),
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    json_: JsonOption = False,
) -> None:
    """List the loaded models: memory, GPU or CPU, window, and when each is unloaded."""
    from tui_agent.cli.models_run import run_ps

    raise typer.Exit(run_ps(project, host, embedded, as_json=json_))


@models.command("unload", cls=QuickCommand, epilog=_examples("unload qwen3:4b"))
def unload(
    name: NameArgument,
    project: ProjectOption = Path(),
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    json_: JsonOption = False,
) -> None:
    """Free the memory of a model now."""
    from tui_agent.cli.models_run import run_unload

    raise typer.Exit(run_unload(project, host, embedded, name, as_json=json_))
