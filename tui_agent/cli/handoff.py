"""``tui-agent handoff``: a packet of conclusions for another agent, confirmed by the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tui_agent.cli.memory_common import opened
from tui_agent.cli.options import ProjectOption, fail, stdin_text
from tui_agent.cli.printing import USAGE, Printer, agreed, asks, many_lines, write_private

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores


EPILOG = (
    "\b\nExamples:\n"
    "  tui-agent handoff           a draft from the last session, to be confirmed\n"
    '  tui-agent handoff --task "Port the report" -r "no archived" -o packet.json\n'
    "  tui-agent handoff --from packet.json --no-ask | other-agent\n\n"
    "\b\nExit codes: 0 handed on, 1 the store failed, 2 wrong usage or no packet,\n6 no memory here"
)


def handoff(
    project: ProjectOption = Path(),
    task: Annotated[
        str | None, typer.Option("--task", help="What is to be done; the session's goal by default.")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", "-r", help="A requirement; again for more. Replaces the drafted ones."),
    ] = None,
    format_: Annotated[str | None, typer.Option("--format", help="How the result should look.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FILE|-", help="A packet as JSON to start from.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="The session it is from; the last by default.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    no_ask: Annotated[bool, typer.Option("--no-ask", help="Do not ask; the packet says it is unconfirmed.")] = False,
) -> None:
    """Hand the task on: conclusions only, about 50 tokens of JSON, confirmed by you."""
    from tui_agent.memory.handoff import AIM_TOKENS, HandoffRefused, packet

    printer = Printer()
    with opened(project) as stores:
        said, data = _begin(stores, session, source)
    for name, value in (("task", task), ("requirements", list(require) if require else None), ("format", format_)):
        if value is not None:
            data[name] = value
    if not str(data.get("task", "")).strip():
        fail("There is no task to hand on. Give it with --task.", USAGE)
    try:
        made = packet(data, transcript=said)
    except HandoffRefused as error:
        fail(f"Nothing was handed on: {error}", USAGE)
    printer.note(f"{made.tokens} tokens (about {AIM_TOKENS} are meant)")
    if not no_ask and asks():
        printer.note(many_lines(made.text(indent=2)))
        made = made.confirmed(agreed("Are the task and these requirements right?"))
    if not made.constraints_confirmed_by_user:
        printer.note("Unconfirmed: whoever takes it should ask you about these requirements.")
    text = made.text(indent=2)
    if output is not None:
        write_private(Path(output), f"{text}\n", force)
        printer.data(None, [output])
    else:
        printer.data(None, [text])


def _begin(stores: Stores, session: str | None, source: str | None) -> tuple[list[str], dict[str, Any]]:
    """The messages of the conversation, and the packet to start from: the file's, or a draft of what was concluded."""
    import json

    from tui_agent.memory.conclusions import draft

    chosen = _session(stores, session)
    messages = stores.history.messages(chosen.id) if chosen is not None else []
    said = [message.content for message in messages if message.role in ("user", "assistant")]
    if source is not None:
        try:
            text = stdin_text() if source == "-" else Path(source).read_text("utf-8")
            data = json.loads(text)
        except OSError as error:
            fail(f"{source} cannot be read: {error.strerror or error}.", USAGE)
        except ValueError as error:
            fail(f"The packet is not JSON ({error}).", USAGE)
        if not isinstance(data, dict):
            fail("The packet must be one JSON object with task, requirements and format.", USAGE)
        return said, data
    ids = {message.id for message in messages}
    facts = [fact for fact in stores.facts.live() if fact.message_id in ids]
    users = [message.content for message in messages if message.role == "user"]
    goal = (chosen.goal or chosen.title) if chosen is not None else ""
    return said, draft(goal, facts, users)


def _session(stores: Stores, given: str | None) -> Any:
    if given is None:
        return stores.history.latest_session()
    found = [row for row in stores.history.sessions(limit=100_000) if row.id.endswith(given)]
    if len(found) != 1:
        fail(f"{len(found)} sessions end in {given!r}; give the id of one.", USAGE)
    return found[0]
