"""``tui-agent memory topics``: what is never recalled for a topic, because the user said so with a key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tui_agent.cli.memory_common import find, opened
from tui_agent.cli.options import JsonOption, ProjectOption, fail
from tui_agent.cli.printing import NOTHING_FOUND, USAGE, Printer, one_line, short_ids, table

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores


def topics(
    given: Annotated[
        list[str] | None, typer.Argument(metavar="[FACT QUESTION...]", help="Leave a fact out for such questions.")
    ] = None,
    project: ProjectOption = Path(),
    remove: Annotated[
        list[str] | None, typer.Option("--remove", "-r", metavar="ID", help="Recall it again; may be repeated.")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """What is not recalled for a topic. With an id and a question one is added, with --remove one is taken back."""
    with opened(project) as stores:
        printer = Printer(json_)
        if remove:
            gone = [stores.topics.remove(_id(stores, each)) for each in remove]
            printer.data(gone, [f"recalled again for “{one_line(topic.question, 60)}”" for topic in gone])
            return
        if given:
            question = " ".join(given[1:]).strip()
            if not question:
                fail("Give the question too: memory topics FACT QUESTION.", USAGE)
            found = find(stores, given[0], ("fact",))
            try:
                made = stores.topics.add(f"fact:{found.id}", question)
            except ValueError as error:
                fail(str(error), USAGE)
            printer.data(made, [f"{made.id[-3:]}  not recalled for questions about {', '.join(made.words[:5])}"])
            return
        rows = stores.topics.all()
        ends = short_ids(topic.id for topic in rows)
        lines = [
            [ends[t.id], t.created_at[:10], _says(stores, t.ref), f"never for: {one_line(t.question)}"] for t in rows
        ]
        printer.data(rows, table(lines))
        if not json_:
            printer.note("`memory topics --remove ID` takes one back." if rows else "Nothing is left out for a topic.")


def _id(stores: Stores, end: str) -> str:
    ids = [topic.id for topic in stores.topics.all() if topic.id.endswith(end.strip())]
    if len(end.strip()) < 3 or len(ids) > 1:
        fail(f"{end!r} is not enough of an id; `memory topics` shows them.", USAGE)
    if not ids:
        fail(f"There is no topic {end!r}; `memory topics` lists them.", NOTHING_FOUND)
    return ids[0]


def _says(stores: Stores, ref: str) -> str:
    store, _, item_id = ref.partition(":")
    fact = stores.facts.get(item_id) if store == "fact" else None
    return one_line(fact.fact, 60) if fact is not None else ref
