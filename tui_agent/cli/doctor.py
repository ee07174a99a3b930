"""``tui-agent doctor``: one line for each thing that was looked at, and the command that mends what is wrong."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tui_agent.cli.options import (
    EmbeddedOption,
    EmbedOption,
    HostOption,
    JsonOption,
    ModelOption,
    ProjectOption,
    flags_of,
    open_project,
    settings_for,
)
from tui_agent.cli.quick import QuickCommand

if TYPE_CHECKING:
    from tui_agent.agent.doctor.troubles import Finding

EPILOG = (
    "\b\nExamples:\n  tui-agent doctor                  a line for every check\n"
    "  tui-agent doctor --faults         only what is wrong\n"
    "  tui-agent doctor --host box:11434 -C ~/src/shop\n"
    "  tui-agent doctor --json | jq '.findings[] | select(.level != \"ok\")'\n\n"
    "\b\nExit codes: 0 all is well, 1 something is degraded, 2 something is broken"
)


def register(app: typer.Typer) -> None:
    """Adds ``doctor`` to the program's commands."""
    app.command("doctor", cls=QuickCommand, epilog=EPILOG)(doctor)


def doctor(
    project: ProjectOption = Path(),
    model: ModelOption = None,
    embed_model: EmbedOption = None,
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    faults: Annotated[bool, typer.Option("--faults", help="Show only what is not well.")] = False,
    json_: JsonOption = False,
) -> None:
    """Look at server, model, memory, files, disk and terminal: what is wrong, and what mends it.

    It only reads: nothing is created or changed, and nothing you wrote is sent anywhere.
    """
    from tui_agent.agent.doctor.checks import examine
    from tui_agent.agent.doctor.look import look
    from tui_agent.agent.doctor.troubles import LEVELS, worst
    from tui_agent.tui.terminal_facts import terminal_facts

    opened, paths = open_project(project)
    loaded = settings_for(opened, paths, flags_of(model=model, embed_model=embed_model, host=host, embedded=embedded))
    findings = examine(asyncio.run(look(opened, paths, loaded, terminal_facts())))
    level = worst(findings)
    shown = [one for one in findings if one.level != "ok"] if faults else findings
    if json_:
        rows = [
            {"level": one.level, "check": one.check, "id": one.id, "text": one.text, "fix": one.fix} for one in shown
        ]
        data = {"level": level, "project": str(opened.root), "findings": rows}
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    else:
        _print(shown)
        print(_summary(findings))
    raise typer.Exit(LEVELS.index(level))


def _print(findings: list[Finding]) -> None:
    from tui_agent.agent.doctor.troubles import TITLES

    titles = {name: title for name, (title, _) in TITLES.items()}
    names = max((len(titles[one.check]) for one in findings), default=0)
    for one in findings:
        line = f"{one.level:<8}  {titles[one.check]:<{names}}  {one.text}"
        print(f"{line} → {one.fix}" if one.fix and one.level != "ok" else line)


def _summary(findings: list[Finding]) -> str:
    counts = {level: sum(one.level == level for one in findings) for level in ("broken", "degraded")}
    if not any(counts.values()):
        return "All is well."
    return ", ".join(f"{count} {level}" for level, count in counts.items() if count) + "."
