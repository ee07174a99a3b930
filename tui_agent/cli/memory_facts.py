"""``tui-agent memory`` commands that show and change single facts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tui_agent.cli.memory_common import (
    IdArgument,
    IdsArgument,
    YesOption,
    changed,
    cold_store,
    explained,
    fact_data,
    fact_rows,
    fields,
    find,
    opened,
    text_of,
    verdict_line,
)
from tui_agent.cli.memory_scope import own_rows
from tui_agent.cli.options import JsonOption, ProjectOption, fail, open_project, settings_for
from tui_agent.cli.printing import (
    NOTHING_FOUND,
    STORE_FAILED,
    USAGE,
    Printer,
    agreed,
    asks,
    many_lines,
    one_line,
    plain,
    table,
)

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores

SOURCE = "typed by you on the command line"


def list_(
    project: ProjectOption = Path(),
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also what was replaced or has expired.")] = False,
    scope: Annotated[str | None, typer.Option("--scope", help="Only this: project or user.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only this kind, in any of its names.")] = None,
    json_: JsonOption = False,
) -> None:
    """Everything that is remembered."""
    from tui_agent.memory.text import fold
    from tui_agent.memory.types import Kind, kind_of

    with opened(project) as stores:
        facts = stores.facts.live(_scope(scope), include_user=scope is None)
        if all_:
            more = [*stores.facts.superseded(), *stores.facts.expired()]
            facts += [fact for fact in more if scope is None or str(fact.scope) == scope]
        if kind is not None:
            wanted = kind_of(kind, Kind.FACT)
            if wanted is Kind.FACT and fold(kind) not in ("fact", "fakt", "факт"):
                fail(f"{kind!r} is no kind; kinds are {', '.join(map(str, Kind))}.", USAGE)
            facts = [fact for fact in facts if fact.kind is wanted]
        facts.sort(key=lambda fact: (str(fact.scope) != "user", str(fact.kind), fold(fact.subject), fact.created_at))
        notes, note_rows = own_rows(stores, scope) if kind is None else ([], [])
        printer = Printer(json_)
        printer.data([*(fact_data(stores, fact) for fact in facts), *notes], table([*fact_rows(facts), *note_rows]))
        if not facts and not notes and not json_:
            printer.note("Nothing is remembered yet.")


def show(given: IdArgument, project: ProjectOption = Path(), json_: JsonOption = False) -> None:
    """Everything known of one item: text, source, quote, dates, history."""
    with opened(project) as stores:
        found = find(stores, given, ("fact", "hot", "cold", "waiting", "message"))
        data, lines = _shown(stores, found.zone, found.id)
        Printer(json_).data(data, lines)


def _shown(stores: Stores, zone: str, item_id: str) -> tuple[Any, list[str]]:
    if zone == "fact":
        return _shown_fact(stores, item_id)
    if zone == "waiting":
        item = next(item for item in stores.facts.quarantined() if item.id == item_id)
        proposal = item.proposal
        pairs = [
            ("text", proposal.text), ("waits because", item.reason), ("proposed by", f"{proposal.proposer} "
            f"({proposal.origin})"), ("source", proposal.source), ("quote", proposal.quote),
            ("since", f"{item.created_at} UTC"), ("id", item.id),
        ]  # fmt: skip
        return plain(item), fields(pairs)
    if zone == "message":
        message = stores.history.message(item_id)
        pairs = [
            ("said by", message.role), ("when", f"{message.created_at} UTC"), ("status", message.status),
            ("session", message.session_id), ("id", message.id),
        ]  # fmt: skip
        return plain(message), [*fields(pairs), "", many_lines(message.content)]
    row = stores.db.row("SELECT * FROM wm_items WHERE id = ?", (item_id,))
    assert row is not None
    scope = str(row["scope"])
    versions = cold_store(stores).versions(scope, item_id)
    names = ("id", "zone", "kind", "pinned", "tokens", "source", "summary", "reason", "created_at", "put_away_at")
    data = {**{name: row[name] for name in names}, "text": row["text"], "session_id": row["session_id"]}
    pairs = [(name.replace("_", " "), str(row[name])) for name in names if row[name] not in ("", 0)]
    earlier = [f"{at} UTC  ({reason})  {one_line(text)}" for text, at, reason in versions]
    lines = [*fields(pairs), "", many_lines(str(row["text"])), *(["", "earlier texts:", *earlier] if earlier else [])]
    return {**data, "versions": plain(versions)}, lines


def _shown_fact(stores: Stores, fact_id: str) -> tuple[Any, list[str]]:
    from tui_agent.memory.audit import check_hint

    fact = stores.facts.get(fact_id)
    assert fact is not None
    chain, changes = stores.facts.chain(fact_id), stores.facts.changes(fact_id, 20)
    pairs = [
        ("text", fact.fact),
        ("about", fact.subject),
        ("kind", f"{fact.kind}, importance {fact.importance} of 10" + (", pinned" if fact.pinned else "")),
        ("source", fact.source if str(fact.source_kind) == "user" else f"{fact.source} (from {fact.source_kind})"),
        ("your words", fact.quote),
        ("said", f"{fact.created_at} UTC"),
        ("confirmed", f"{fact.confirmed_at} UTC"),
        ("holds until", f"{fact.expires_at} UTC" if fact.expires_at else "further notice"),
        ("replaced at", f"{fact.superseded_at} UTC" if fact.superseded_at else ""),
        ("last used", f"{fact.last_used_at} UTC" if fact.last_used_at else "never yet"),
        ("to check", check_hint(fact)),
        ("scope", "all projects" if str(fact.scope) == "user" else "this project"),
        ("written in", fact.target),
        ("id", fact.id),
    ]
    lines = fields(pairs)
    if len(chain) > 1:
        marks = {fact.id: "→"}
        lines += ["", "history, newest first:"]
        lines += [f"{marks.get(each.id, ' ')} {each.created_at[:10]}  {one_line(each.fact)}" for each in chain]
    lines += ["", "changes:", *(f"  {change.created_at} UTC  {change.event}" for change in changes)]
    data = {**fact_data(stores, fact), "check": check_hint(fact)}
    return {**data, "chain": plain(chain), "changes": plain(changes)}, lines


def add(
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="One statement, or - to read it from a pipe.")],
    project: ProjectOption = Path(),
    kind: Annotated[str | None, typer.Option("--kind", help="fact, preference, decision, convention, problem.")] = None,
    subject: Annotated[str, typer.Option("--subject", help="What it is about; a newer one replaces it.")] = "",
    importance: Annotated[
        int | None, typer.Option("--importance", min=1, max=10, help="From 1 to 10; without it, what is said decides.")
    ] = None,
    days: Annotated[float | None, typer.Option("--days", min=0, help="For how many days it holds.")] = None,
    scope: Annotated[str, typer.Option("--scope", help="project, or user for all your projects.")] = "project",
    target: Annotated[str, typer.Option("--file", help="The memory file its line goes to.")] = "",
    json_: JsonOption = False,
) -> None:
    """Remember one statement, in your words."""
    from tui_agent.memory.types import Action, Origin, Proposal, Scope, kind_of

    said = text_of(text)
    with opened(project, create=True) as stores:
        proposal = Proposal(
            text=said, origin=Origin.USER, proposer="user", source=SOURCE, user_text=said,
            kind=None if kind is None else kind_of(kind), importance=importance, subject=subject, target=target,
            ttl_days=days,
        )  # fmt: skip
        verdict = stores.gate.admit(proposal)
        if _scope(scope) is Scope.USER and verdict.action is Action.LIVE and verdict.fact_id is not None:
            stores.ledger.promote(verdict.fact_id)
            verdict = dataclasses.replace(verdict, target=str(stores.paths.user_notes_path))
        changed(stores)
        printer = Printer(json_)
        kept = verdict.action in (Action.LIVE, Action.TOUCH)
        if kept or json_:
            printer.data(verdict, [verdict_line(verdict)])
        else:
            printer.note(verdict_line(verdict))
        if verdict.action is Action.REFUSE:
            raise typer.Exit(USAGE)


def confirm(given: IdsArgument, project: ProjectOption = Path(), json_: JsonOption = False) -> None:
    """Say that facts still hold: they count as confirmed today."""
    with opened(project) as stores:
        ids = [find(stores, each, ("fact",)).id for each in given]
        facts = [stores.facts.confirm(each) for each in ids]
        changed(stores)
        Printer(json_).data([fact_data(stores, fact) for fact in facts], table(fact_rows(facts)))


def correct(
    given: IdArgument,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="What holds now, or - to read it from a pipe.")],
    project: ProjectOption = Path(),
    json_: JsonOption = False,
) -> None:
    """Replace a fact by what holds now; the old one stays in its history."""
    from tui_agent.memory.types import Action

    said = text_of(text)
    with opened(project) as stores:
        verdict = stores.ledger.correct(find(stores, given, ("fact",)).id, said, SOURCE)
        changed(stores)
        printer = Printer(json_)
        kept = verdict.action in (Action.LIVE, Action.TOUCH)
        if kept or json_:
            printer.data(verdict, [verdict_line(verdict)])
        else:
            printer.note(verdict_line(verdict))
        if not kept:
            raise typer.Exit(USAGE)


def expire(
    given: IdsArgument,
    project: ProjectOption = Path(),
    at: Annotated[
        str | None, typer.Option("--at", help='When it ends: 2027-01-31, or "7 days"; now when not given.')
    ] = None,
    never: Annotated[bool, typer.Option("--never", help="It holds until further notice.")] = False,
    json_: JsonOption = False,
) -> None:
    """Say until when facts hold; those that ended are no longer recalled."""
    from tui_agent.agent.fact_actions import end_of

    if at is not None and never:
        fail("--at and --never contradict each other.", USAGE)
    with opened(project) as stores:
        ids = [find(stores, each, ("fact",)).id for each in given]
        if never:
            facts = [stores.ledger.set_expiry(each, None) for each in ids]
        elif at is not None:
            ends = end_of(at)
            facts = [stores.ledger.set_expiry(each, ends) for each in ids]
        else:
            facts = [stores.ledger.expire(each) for each in ids]
        changed(stores)
        Printer(json_).data([fact_data(stores, fact) for fact in facts], table(fact_rows(facts)))


def undo(
    given: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A correction to take back; the last change when not given.")
    ] = None,
    project: ProjectOption = Path(),
    json_: JsonOption = False,
) -> None:
    """Take back the last change of a fact, or one correction. What was deleted forever stays deleted."""
    with opened(project) as stores:
        if given is not None:
            fact = stores.ledger.undo_correction(find(stores, given, ("fact",)).id)
            changed(stores)
            data = {"undone": f"The correction is gone; this holds again: {fact.fact}", "fact": fact_data(stores, fact)}
            Printer(json_).data(data, table(fact_rows([fact])))
            return
        text = stores.ledger.undo()
        if not text:
            fail("There is nothing to take back.", NOTHING_FOUND)
        changed(stores)
        Printer(json_).data({"undone": text}, [one_line(text)])


def pin(
    given: IdsArgument,
    project: ProjectOption = Path(),
    off: Annotated[bool, typer.Option("--off", help="Take the pin off.")] = False,
    json_: JsonOption = False,
) -> None:
    """Pin facts or items of the working memory, so that they are neither pruned nor pushed out."""
    with opened(project) as stores:
        done = [_pin(stores, each, not off) for each in given]
        word = "unpinned" if off else "pinned"
        Printer(json_).data(done, [f"{one['id'][-3:]}  {word}: {one_line(one['text'])}" for one in done])


def _pin(stores: Stores, given: str, on: bool) -> dict[str, Any]:
    found = find(stores, given, ("fact", "hot", "cold"))
    if found.zone == "fact":
        fact = stores.facts.pin(found.id) if on else stores.facts.unpin(found.id)
        return {"id": fact.id, "zone": "fact", "pinned": on, "text": fact.fact}
    if found.zone == "cold":
        row = stores.db.row("SELECT scope, text FROM wm_items WHERE id = ?", (found.id,))
        assert row is not None
        cold_store(stores).set_pinned(str(row["scope"]), found.id, on)
        return {"id": found.id, "zone": "cold", "pinned": on, "text": str(row["text"])}

    async def change(working: Any) -> str:
        (working.pin if on else working.unpin)(found.id)
        return str(await working.text_of(found.id) or "")

    return {"id": found.id, "zone": "hot", "pinned": on, "text": _in_session(stores, found.id, change)}


def put_away(given: IdsArgument, project: ProjectOption = Path(), json_: JsonOption = False) -> None:
    """Put hot items away: out of the prompt, into the cold zone. Nothing is deleted."""
    with opened(project) as stores:
        done = []
        for each in given:
            found = find(stores, each, ("hot", "cold", "fact"))
            if found.zone == "fact":
                fail(
                    "A fact is put away in the chat, for one session (f in its pane). `memory expire` ends it, and "
                    "keeps it in the history.",
                    USAGE,
                )

            async def change(working: Any, item_id: str = found.id) -> str:
                text = str(await working.text_of(item_id) or "")
                await working.forget(item_id)
                return text

            text = _in_session(stores, found.id, change) if found.zone == "hot" else ""
            done.append({"id": found.id, "was": found.zone, "text": text})
        lines = [
            f"{one['id'][-3:]}  "
            + (f"put away: {one_line(one['text'])}" if one["was"] == "hot" else "was away already")
            for one in done
        ]
        Printer(json_).data(done, lines)


def _in_session(stores: Stores, item_id: str, change: Any) -> str:
    """Runs ``change(working)`` on the working memory of the session that keeps an item hot, and saves it."""
    import asyncio

    from tui_agent.memory.upkeep import working_scope
    from tui_agent.memory.working import WorkingMemory

    session_id = str(stores.db.value("SELECT session_id FROM wm_items WHERE id = ?", (item_id,)))

    async def run() -> str:
        working = WorkingMemory(
            stores.db, scope=working_scope(stores.project), session_id=session_id, max_tokens=131072
        )
        await working.load(session_id)
        text: str = await change(working)
        await working.save()
        return text

    return asyncio.run(run())


def delete(
    given: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids, or their unique ends.")] = None,
    project: ProjectOption = Path(),
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="TEXT|-", help="Take this text out of everything, although no fact says it."),
    ] = None,
    yes: YesOption = False,
    json_: JsonOption = False,
) -> None:
    """Delete forever: facts with their history, from everything the program owns; or items of the working memory."""
    from tui_agent.memory.holding import in_use
    from tui_agent.memory.shredding import on_a_server

    if bool(given) == (text is not None):
        fail("Give ids, or --text with what is to be taken out.", USAGE)
    where, paths = open_project(project)
    with explained():
        elsewhere = in_use(where.db_path)
    printer = Printer(json_)
    with opened(project) as stores:
        found = [find(stores, each, ("fact", "hot", "cold")) for each in given or ()]
        said = text_of([text]) if text is not None else ""
        if not yes:
            if not asks():
                fail("Deleting cannot be undone. Add --yes to do it.", USAGE)
            for one in found:
                data, _ = _shown(stores, one.zone, one.id)
                printer.note(f"{one.id[-3:]}  {one_line(str(data.get('fact') or data.get('text')))}")
            if not agreed("Delete forever, with what was replaced by it? This cannot be undone."):
                fail("Nothing was deleted.", USAGE)
        reports = [_deleted(stores, one.zone, one.id) for one in found] if found else [_taken_out(stores, said)]
        chroma = settings_for(where, paths, {}).settings.chroma
        for report in reports:
            report["beyond"] += on_a_server(chroma.mode, chroma.host)
        if elsewhere:
            printer.note(
                "Another window has this project open; what it holds in memory can be written again. Close it, and "
                "run `tui-agent memory check` afterwards."
            )
        printer.data(reports, [line for report in reports for line in _report_lines(report)])
        if any(report["occurrences"] for report in reports):
            raise typer.Exit(STORE_FAILED)


def _deleted(stores: Stores, zone: str, item_id: str) -> dict[str, Any]:
    from tui_agent.memory.shredding import ShredReport, shred

    if zone == "fact":
        return _report(item_id, zone, shred(stores, item_id))
    row = stores.db.row("SELECT scope FROM wm_items WHERE id = ?", (item_id,))
    assert row is not None
    cold_store(stores).delete(str(row["scope"]), [item_id])
    report = ShredReport(items=1, notes=["The messages it came from stay in the conversation."])
    if not stores.db.vacuum():
        report.notes.append("Another window is reading the project; its bytes go when that window closes.")
    return {**_report(item_id, zone, report), "sentence": "1 item of the working memory deleted for good."}


def _taken_out(stores: Stores, said: str) -> dict[str, Any]:
    from tui_agent.memory.shredding import mask_everywhere
    from tui_agent.memory.traces import can_be_sought

    if not can_be_sought(said):
        fail(f"“{one_line(said, 40)}” says too little: it would be taken out of every conversation. Give more.", USAGE)
    return _report("", "text", mask_everywhere(stores, [said]))


def _report(item_id: str, zone: str, report: Any) -> dict[str, Any]:
    return {
        "id": item_id, "zone": zone, **plain(report), "occurrences": report.occurrences, "sentence": report.sentence()
    }  # fmt: skip


def _report_lines(report: dict[str, Any]) -> list[str]:
    lines = [f"{report['id'][-3:] or 'all'}  {report['sentence']}"]
    lines += [
        f"     still in {trace['path']}" + (f", {trace['where']}" if trace["where"] else "") + f" ({trace['count']}x)"
        for trace in report["left"]
    ]
    return lines + [f"     {text}" for text in (*report["notes"], *report["beyond"])]


def _scope(name: str | None) -> Any:
    from tui_agent.memory.types import Scope

    if name is None:
        return None
    try:
        return Scope(name.strip().casefold())
    except ValueError:
        fail(f"{name!r} is no scope; there are project and user.", USAGE)
