"""``tui-agent memory promote``: what is kept for this project, and what for all projects of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tui_agent.cli.memory_common import IdsArgument, changed, fact_data, fact_rows, find, opened
from tui_agent.cli.options import JsonOption, ProjectOption, open_project, settings_for
from tui_agent.cli.printing import Printer, table


def promote(
    given: IdsArgument,
    project: ProjectOption = Path(),
    off: Annotated[bool, typer.Option("--off", help="Keep it for this project only again.")] = False,
    json_: JsonOption = False,
) -> None:
    """Keep facts for all your projects: their lines move to your own notes, which every prompt carries."""
    where, paths = open_project(project)
    with opened(project) as stores:
        most = settings_for(where, paths, {}).settings.user_notes_max_lines
        ledger = stores.ledger
        ids = [find(stores, each, ("fact",)).id for each in given]
        facts = [ledger.demote(each) if off else ledger.promote(each, most=most) for each in ids]
        changed(stores)
        printer = Printer(json_)
        printer.data([fact_data(stores, fact) for fact in facts], table(fact_rows(facts)))
        if not json_ and not off:
            printer.note(f"They are in {paths.user_notes_path} now. `memory promote ID --off` takes that back.")


def own_rows(stores: Any, scope: str | None = None) -> tuple[list[dict[str, str]], list[list[str]]]:
    """The lines about the user that the user wrote by hand, as plain data and as rows below the facts;
    those of one scope (``project``, ``user``) where that is given."""
    from tui_agent.memory.hand_lines import dated
    from tui_agent.memory.own_notes import own_lines

    lines = [one.line for one in dated(stores, own_lines(stores))]
    lines = [line for line in lines if scope in (None, _SCOPES[line.where])]
    data = [
        {"id": f"note:{line.id}", "fact": line.text, "path": line.path, "scope": _SCOPES[line.where],
         "changed_at": line.changed_at}
        for line in lines
    ]  # fmt: skip
    marks = {"everywhere": "everywhere", "project": "by hand"}
    return data, [["-", line.changed_at[:10], "note", marks[line.where], line.text] for line in lines]


_SCOPES = {"everywhere": "user", "project": "project"}
