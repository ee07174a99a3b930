"""``tui-agent memory`` commands on the store as a whole: the vector index, pairs of facts, edits made by hand."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from tui_agent.cli.memory_common import changed, explained, opened
from tui_agent.cli.options import JsonOption, ProjectOption, fail, open_project, settings_for
from tui_agent.cli.printing import NOTHING_FOUND, STORE_FAILED, USAGE, Printer, plain, table


def reindex(project: ProjectOption = Path(), json_: JsonOption = False) -> None:
    """Make the vector index anew from the vectors in the database. Close the chat first; it owns the index."""
    from tui_agent.memory.index_process import IndexProcess
    from tui_agent.memory.shredding import note_index_emptied

    where, paths = open_project(project)
    chroma = settings_for(where, paths, {}).settings.chroma
    if chroma.mode != "local":
        fail(f"chroma.mode is {chroma.mode}, so there is no index in this project.", USAGE)
    with opened(project) as stores:
        identity = stores.db.value(
            "SELECT identity FROM fact_vectors GROUP BY identity ORDER BY max(rowid) DESC LIMIT 1"
        )
        if identity is None:
            fail("No fact has a vector yet; the chat makes them.", NOTHING_FOUND)
        ids, matrix = stores.facts.vectors(str(identity))
        about = stores.facts.index_rows(ids, matrix)
        index = IndexProcess(where.vector_dir, where.id, str(identity))
        try:
            made = index.rebuild(ids, matrix, about)
            if made:
                note_index_emptied(stores.db)
            problem = index.problem
        finally:
            index.close()
        if not made:
            fail(problem, STORE_FAILED)
        Printer(json_).data({"facts": len(ids), "identity": identity}, [f"{len(ids)} facts are in the vector index."])


def consolidate(
    project: ProjectOption = Path(),
    apply: Annotated[str, typer.Option("--apply", metavar="ID", help="Merge this pair: the newer one stays.")] = "",
    turn: Annotated[bool, typer.Option("--older", help="With --apply: the older one stays.")] = False,
    decline: Annotated[str, typer.Option("--decline", metavar="ID", help="Keep both; not proposed again.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Compare all facts, not only new ones.")] = False,
    json_: JsonOption = False,
) -> None:
    """Propose pairs of facts that say the same or exclude each other. Nothing is changed without --apply."""
    from tui_agent.memory.consolidation import Consolidator

    if apply and decline:
        fail("Give --apply or --decline, not both.", USAGE)
    with opened(project) as stores, explained():
        consolidator = Consolidator(stores.db, stores.facts)
        printer = Printer(json_)
        if decline:
            consolidator.decline(consolidator.find(decline))
            printer.data({"declined": decline}, ["Both stay; the pair is not proposed again."])
            return
        if apply:
            proposal = consolidator.find(apply)
            fact = consolidator.apply(proposal.turned() if turn else proposal, stores.ledger.merge)
            changed(stores)
            printer.data({"fact": plain(fact)}, [f"{fact.id[-3:]}  one fact now: {fact.fact}"])
            return
        asyncio.run(consolidator.propose(everything=everything))
        waiting = consolidator.waiting()
        rows = [[each.id[-3:], str(each.relation), f"{each.keep.fact}  ←  {each.retire.fact}"] for each in waiting]
        data = [{"id": each.id, **plain(each)} for each in waiting]
        printer.data(data, table(rows))
        if not json_:
            ways = "`--apply ID` merges a pair (undo takes it back), `--decline ID` keeps both."
            printer.note(ways if waiting else "No two facts look like one.")


def changes(
    name: Annotated[str, typer.Argument(metavar="[FILE]", help="Only this file.")] = "",
    project: ProjectOption = Path(),
    take: Annotated[bool, typer.Option("--take", help="Make what the file says what is remembered.")] = False,
    put_back: Annotated[bool, typer.Option("--put-back", help="Make the file say what is remembered.")] = False,
    json_: JsonOption = False,
) -> None:
    """Edits made by hand in facts.json and memory files that wait for your yes."""
    from tui_agent.memory import hand_edits

    if take and put_back:
        fail("Give --take or --put-back, not both.", USAGE)
    if (take or put_back) and not name:
        fail("Name the file.", USAGE)
    with opened(project) as stores:
        found = [change for change in hand_edits.pending(stores) if not name or change.name == name]
        printer = Printer(json_)
        if name and not found:
            fail(f"{name} says what is remembered.", NOTHING_FOUND)
        if take or put_back:
            change = found[0]
            # A facts.json that is no JSON can be put back all the same: its text is kept as a version.
            if change.problem and not (put_back and change.digest):
                fail(change.problem, STORE_FAILED)
            if put_back:
                kept = hand_edits.put_back(stores, change)
                where = f" The file as it was is kept as {kept}." if kept else ""
                printer.data({"file": name, "kept": kept}, [f"{name} says again what is remembered.{where}"])
                return
            taken = hand_edits.take_over(stores, change)
            lines = [f"{one.verb}: {one.text}" + (f" ({one.reason})" if one.verb == "refused" else "") for one in taken]
            printer.data({"file": name, "edits": plain(taken)}, lines)
            if any(one.verb == "refused" for one in taken):
                raise typer.Exit(USAGE)
            return
        printer.data(plain(found), table(_rows(found)))
        if not json_:
            ways = "`memory changes FILE --take` or `memory changes FILE --put-back`."
            if found and all(change.problem for change in found):
                ways = "Mend the file, or `memory changes FILE --put-back` makes it say again what is remembered."
            printer.note(ways if found else "No file was changed by hand.")


def _rows(found: list[Any]) -> list[list[str]]:
    rows = [[change.name, "problem", change.problem] for change in found if change.problem]
    rows += [
        [f"{change.name}:{edit.line}" if edit.line else change.name, edit.verb, edit.text]
        for change in found
        for edit in change.edits
    ]
    return rows


def import_legacy_store(stores: Any, printer: Printer, mine: bool) -> None:
    """``memory import --legacy``: what a plain Chroma script has left in this project, through the gate."""
    from tui_agent.memory.backup import Backups
    from tui_agent.memory.index_process import IndexProcess
    from tui_agent.memory.legacy_store import find_legacy_store, import_legacy

    found = find_legacy_store(stores.project.vector_dir)
    store = found.of(stores.project.id) if found is not None else None
    if store is None:
        fail("There is no store of another program for this project.", NOTHING_FOUND)
    Backups(stores.project).make(stores.db, "before import")
    reader = IndexProcess(stores.project.vector_dir, stores.project.id, "none")
    try:
        done = import_legacy(store, stores.facts, stores.db, gate=stores.gate, approved=mine, read=reader.read_legacy)
    finally:
        reader.close()
    changed(stores)
    lines = [f"{done.imported} imported, {done.waiting} wait for you, {done.known} known already.", *done.refused]
    printer.data(plain(done), lines)
