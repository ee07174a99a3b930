"""``tui-agent memory`` commands that search, explain, and go through what waits or is old."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tui_agent.cli.memory_common import (
    changed,
    cold_store,
    fact_data,
    fact_rows,
    find,
    opened,
    text_of,
    verdict_line,
)
from tui_agent.cli.options import JsonOption, ProjectOption, fail, open_project, settings_for
from tui_agent.cli.printing import NOTHING_FOUND, USAGE, Printer, one_line, plain, short_ids, table

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores
    from tui_agent.memory.types import RecalledItem, RecallRecord

LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most this many.")]
WordsOption = Annotated[bool, typer.Option("--words", help="By words alone, without an embedder.")]

_LEFT_OUT = {
    "threshold": "score below the threshold",
    "budget": "no room for it",
    "visible": "the model saw it already",
    "superseded": "a newer statement replaced it",
    "cooldown": "put away moments before",
    "masked": "left out on request",
    "put away": "put away for that session",
    "topic": "never for this topic",
}


def search(
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for, or - for a pipe.")],
    project: ProjectOption = Path(),
    limit: LimitOption = 10,
    words: WordsOption = False,
    messages: Annotated[bool, typer.Option("--messages", "-m", help="Search past messages instead.")] = False,
    json_: JsonOption = False,
) -> None:
    """Search facts, put-away items and project notes; with --messages, everything said."""
    asked = text_of(query)
    with opened(project) as stores:
        printer = Printer(json_)
        if messages:
            found = stores.history.search(asked, limit=limit)
            ends = short_ids(message.id for message in found)
            rows = [[ends[m.id], m.created_at[:16], m.role, one_line(m.content)] for m in found]
            printer.data(found, table(rows))
            if not found:
                fail(f"Nothing said matches {asked!r}.", NOTHING_FOUND)
            return
        record = _recall(stores, project, asked, limit, words)
        ends = short_ids(item.id for item in record.items)
        rows = [
            [ends[item.id], f"{item.score:.2f}", item.kind or item.store, one_line(item.text)] for item in record.items
        ]
        printer.data(record.items, table(rows))
        if not record.items:
            near = f" The nearest was “{one_line(record.near[0].text, 60)}”." if record.near else ""
            fail(f"Nothing remembered fits {asked!r}.{near}", NOTHING_FOUND)


def why(
    asked: Annotated[
        list[str], typer.Argument(metavar="MESSAGE|QUERY", help="The id of a message, `last`, or a question.")
    ],
    project: ProjectOption = Path(),
    words: WordsOption = False,
    json_: JsonOption = False,
) -> None:
    """Which memories fed an answer, with every term of their scores; or what would feed the answer to a question."""
    from tui_agent.agent.explaining import block_of

    with opened(project) as stores:
        stored = _stored_record(stores, asked)
        if stored is not None:
            message_id, record = stored
            title = f"What fed the answer {message_id[-3:]}"
        else:
            message_id, record = "", _recall(stores, project, text_of(asked), 5, words)
            title = "What would be recalled now"
        data = {"message_id": message_id, **plain(record)}
        lines = [f"{title} (question: “{one_line(record.query, 80)}”):", *_record_lines(record)]
        if record.extra.get("place"):
            tools = _tools(stores, message_id)
            data |= {"as_sent": block_of(record), "tools": tools}
            lines += _rest_lines(record, tools)
        Printer(json_).data(data, lines)
        if not record.items and not record.near and not data.get("as_sent"):
            raise typer.Exit(NOTHING_FOUND)


def _tools(stores: Stores, message_id: str) -> list[dict[str, Any]]:
    """What tools gave the model while it answered."""
    calls = stores.history.message(message_id).meta.get("tools", ())
    return [{name: call.get(name) for name in ("name", "arguments", "result")} for call in calls]


def _rest_lines(record: RecallRecord, tools: list[dict[str, Any]]) -> list[str]:
    """Everything else of memory and tools that the request carried, so that nothing in it is unexplained."""
    extra = record.extra
    in_view = [ref for ref in extra.get("in_view", ()) if not str(ref).startswith(("message:", "listed:"))]
    named = extra.get("put_away") or {"lines": (), "more": 0}
    rows = [
        ("also sent", f"the date {extra['date']}" if extra.get("date") else ""),
        *(("also sent", f"skill {skill['name']}") for skill in extra.get("skills", ())),
        *(("also sent", f"note: {one_line(str(note), 90)}") for note in extra.get("notes", ())),
        *(("put away, named", one_line(str(one["line"]), 90)) for one in named["lines"]),
        ("put away, named", f"+{named['more']} more" if named["lines"] and named["more"] else ""),
        ("in view already", ", ".join(map(str, in_view))),
        ("fixed part", ", ".join(f"{part['name']} ({part['tokens']:,} tokens)" for part in extra.get("fixed", ()))),
        *(("read by a tool", f"{call['name']}: {one_line(str(call['result']), 90)}") for call in tools),
    ]
    shown = [f"{name:<16}{value}" for name, value in rows if value]
    return ["", *shown] if shown else []


def _stored_record(stores: Stores, asked: list[str]) -> tuple[str, RecallRecord] | None:
    """The record of the answer that the only word names: by its own id, or by the id of the question before it."""
    if len(asked) != 1 or " " in asked[0].strip():
        return None
    given = asked[0].strip().removeprefix("message:")
    if given == "last":
        row = stores.db.row(
            "SELECT r.message_id FROM recalls r JOIN messages m ON m.id = r.message_id ORDER BY m.n DESC"
        )
        if row is None:
            fail("No answer has a record of what fed it yet.", NOTHING_FOUND)
        ids = [str(row["message_id"])]
    else:
        rows = stores.db.rows("SELECT id FROM messages WHERE substr(id, -?) = ? LIMIT 2", (len(given), given))
        ids = [str(row["id"]) for row in rows] if len(given) >= 3 else []
        if not ids:
            if len(given) == 26 or asked[0].startswith("message:"):
                fail(f"There is no message {given}.", NOTHING_FOUND)
            return None
        if len(ids) > 1:
            fail(f"Several messages end in {given!r}; give more of the id.", USAGE)
    message = stores.history.message(ids[0])
    record = stores.history.recall(message.id)
    if record is None and message.role == "user":
        later = stores.db.rows(
            "SELECT id, role FROM messages WHERE session_id = ? AND seq > ? ORDER BY seq",
            (message.session_id, message.seq),
        )
        for row in later:
            if row["role"] == "user":
                break
            if (record := stores.history.recall(str(row["id"]))) is not None:
                return str(row["id"]), record
    if record is None:
        fail(f"Nothing was recalled for the message {message.id[-3:]}, or no record of it was kept.", NOTHING_FOUND)
    return message.id, record


def _record_lines(record: RecallRecord) -> list[str]:
    ends = short_ids(item.id for item in (*record.items, *record.near))
    lines: list[str] = []
    for item in record.items:
        lines += ["", f"{item.rank}. {item.store}:{ends[item.id]}  {one_line(item.text)}", *_terms(item)]
    if not record.items:
        lines += ["", "Nothing fits."]
    if record.near:
        lines += ["", "left out:"]
    for item in record.near:
        reason = _LEFT_OUT.get(item.status, item.status)
        lines += [f"-  {item.store}:{ends[item.id]}  {one_line(item.text)}", f"   because: {reason}", *_terms(item)]
    found = " and ".join(record.channels) or "nothing"
    return [*lines, "", f"found by {found}; threshold {record.threshold:.2f}; {record.took_ms:.0f} ms"]


def _terms(item: RecalledItem) -> list[str]:
    lines = [f"   {item.score:+.3f}  score"]
    for term in item.terms:
        note = f"  ({one_line(term.note, 60)})" if term.note else ""
        lines.append(f"   {term.value:+.3f}  {term.name}{note}")
    where = [text for text in (item.source, f"confirmed {item.confirmed_at[:10]}" if item.confirmed_at else "") if text]
    if where:
        lines.append(f"           {one_line(', '.join(where))}")
    if item.quote and item.quote != item.text:
        lines.append(f"           you said: “{one_line(item.quote, 100)}”")
    return lines


def _recall(stores: Stores, directory: Path, query: str, top_k: int, words: bool) -> RecallRecord:
    """The recaller of the chat, over the same stores; meaning takes part where stored vectors can be compared."""
    import asyncio

    from tui_agent.memory.recall import Recaller
    from tui_agent.memory.upkeep import working_scope
    from tui_agent.memory.working import WorkingMemory

    project, paths = open_project(directory)
    settings = settings_for(project, paths, {}).settings
    embedder = None if words or settings.embedder == "none" else _embedder(stores)

    async def run() -> RecallRecord:
        working = WorkingMemory(stores.db, embedder, scope=working_scope(stores.project))
        recaller = Recaller(stores.db, stores.facts, stores.history, working, embedder, notes=lambda: _notes(stores))
        return await recaller.recall(
            query,
            top_k=top_k,
            never=stores.topics.hidden(query),
            threshold=settings.recall.threshold,
            max_tokens=max(settings.recall.max_tokens, 4000),
        )

    return asyncio.run(run())


def _embedder(stores: Stores) -> Any:
    """The built-in embedder, when vectors that it made are stored. Those of a model server are not asked for here: a
    command must not start a model."""
    rows = stores.db.rows("SELECT DISTINCT identity FROM fact_vectors")
    if not any(str(row["identity"]).startswith("builtin") for row in rows):
        return None
    from tui_agent.llm.embeddings import BuiltinEmbedder

    return BuiltinEmbedder()


def _notes(stores: Stores) -> dict[str, str]:
    from tui_agent.memory.places import MemoryFileError

    found = {}
    for name in stores.files.listing():
        if name.startswith("knowledge/projects/"):
            try:
                found[name] = stores.files.read(name)
            except MemoryFileError:
                continue
    return found


# --- queues ---------------------------------------------------------------------------------------


def review(
    project: ProjectOption = Path(),
    limit: LimitOption = 20,
    days: Annotated[int, typer.Option("--days", min=1, help="Not confirmed for this many days.")] = 90,
    unused: Annotated[bool, typer.Option("--unused", help="What was not recalled for six months, instead.")] = False,
    fetchable: Annotated[
        bool, typer.Option("--fetchable", help="What a tool could look up (counts, statuses, dates), instead.")
    ] = False,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Lines you wrote into memory files, not looked at for a month, instead.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="With --by-hand: those that are listed still hold.")] = False,
    json_: JsonOption = False,
) -> None:
    """Facts nobody has confirmed for long, oldest first: confirm or correct each."""
    from tui_agent.memory.audit import check_hint
    from tui_agent.memory.audit import fetchable as audit
    from tui_agent.memory.reviewing import note_reviewed

    if unused + fetchable + by_hand > 1:
        fail("--unused, --fetchable and --by-hand are lists of their own; ask for one of them.", USAGE)
    if keep and not by_hand:
        fail("--keep goes with --by-hand; facts are confirmed by `memory confirm ID`.", USAGE)
    with opened(project) as stores:
        printer = Printer(json_)
        if by_hand:
            _review_lines(stores, printer, limit, keep=keep)
            return
        if fetchable:
            found = audit(stores.facts.live())[:limit]
            data = [{**fact_data(stores, one.fact), "what": one.what, "instead": one.how} for one in found]
            rows = fact_rows([one.fact for one in found])
            printer.data(data, table([[*row[:4], one.what, row[4]] for row, one in zip(rows, found, strict=True)]))
            if not json_:
                ways = "A tool can fetch these: `memory expire ID` lets go, `memory confirm ID` keeps it."
                printer.note(ways if found else "Nothing that a tool could fetch is remembered.")
            return
        facts = stores.facts.unused()[:limit] if unused else stores.facts.review(limit, days)
        if not unused:
            note_reviewed(stores.db)
        hints = [check_hint(fact) for fact in facts]
        data = [{**fact_data(stores, fact), "check": hint} for fact, hint in zip(facts, hints, strict=True)]
        lines = table(fact_rows(facts, source=True))
        shown = [[line, *([f"     to check: {hint}"] if hint else [])] for line, hint in zip(lines, hints, strict=True)]
        printer.data(data, [line for pair in shown for line in pair])
        if not json_:
            ways = "Still true: `memory confirm ID`; changed: `memory correct ID TEXT`; over: `memory expire ID`."
            printer.note(ways if facts else "There is nothing to review.")


def _review_lines(stores: Stores, printer: Printer, limit: int, *, keep: bool) -> None:
    from tui_agent.memory.hand_lines import lines_to_review, note_looked

    found = lines_to_review(stores)[:limit]
    for one in found if keep else ():
        note_looked(stores, one.line)
    data = [
        {"id": f"note:{one.line.id}", "text": one.line.text, "file": one.line.name, "path": one.line.path,
         "date": one.date[:10], "own_date": one.own_date, "looked_at": one.looked_at, "kept": keep}
        for one in found
    ]  # fmt: skip
    printer.data(data, table([[one.date[:10], one.line.name, one.line.text] for one in found]))
    if printer.as_json:
        return
    if not found:
        printer.note("No line that you wrote by hand has gone a month without a look.")
    elif keep:
        printer.note("They come up again in a month.")
    else:
        printer.note("Still right: the same with --keep, or c in /review; wrong: edit the file.")


def new(
    project: ProjectOption = Path(),
    days: Annotated[float, typer.Option("--days", min=0.001, help="Of the last days.")] = 1.0,
    json_: JsonOption = False,
) -> None:
    """Facts made in the last day, with their sources; read those from elsewhere twice."""
    with opened(project) as stores:
        facts = stores.facts.new_since(days)
        printer = Printer(json_)
        printer.data([fact_data(stores, fact) for fact in facts], table(fact_rows(facts, source=True)))
        if not facts and not json_:
            printer.note("Nothing new was remembered in that time.")


def quarantine(project: ProjectOption = Path(), json_: JsonOption = False) -> None:
    """What wants to be remembered but is not your own word, and why it waits."""
    with opened(project) as stores:
        waiting = stores.facts.quarantined()
        ends = short_ids(item.id for item in waiting)
        rows = [
            [ends[item.id], item.created_at[:10], f"{item.proposal.origin}", f"{item.proposal.text}  ({item.reason})"]
            for item in waiting
        ]
        printer = Printer(json_)
        printer.data(waiting, table(rows))
        if not json_:
            printer.note("`memory approve ID` or `memory reject ID`." if waiting else "Nothing waits.")


def approve(
    given: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids, or their unique ends.")] = None,
    project: ProjectOption = Path(),
    all_: Annotated[bool, typer.Option("--all", help="Everything that waits.")] = False,
    json_: JsonOption = False,
) -> None:
    """Let waiting statements in: by your decision they are yours."""
    from tui_agent.memory.types import Action

    with opened(project) as stores:
        ids = _waiting(stores, given, all_)
        verdicts = [stores.ledger.approve(each) for each in ids]
        changed(stores)
        Printer(json_).data(verdicts, map(verdict_line, verdicts))
        if any(verdict.action not in (Action.LIVE, Action.TOUCH) for verdict in verdicts):
            raise typer.Exit(USAGE)


def reject(
    given: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids, or their unique ends.")] = None,
    project: ProjectOption = Path(),
    all_: Annotated[bool, typer.Option("--all", help="Everything that waits.")] = False,
    json_: JsonOption = False,
) -> None:
    """Turn waiting statements away for good; they do not come back."""
    with opened(project) as stores:
        items = [stores.facts.reject(each) for each in _waiting(stores, given, all_)]
        Printer(json_).data(items, [f"{item.id[-3:]}  turned away: {one_line(item.proposal.text)}" for item in items])


def _waiting(stores: Stores, given: list[str] | None, all_: bool) -> list[str]:
    if bool(given) == all_:
        fail("Give ids, or --all for everything that waits.", USAGE)
    if not all_:
        return [find(stores, each, ("waiting",)).id for each in given or ()]
    ids = [item.id for item in stores.facts.quarantined()]
    if not ids:
        fail("Nothing waits.", NOTHING_FOUND)
    return ids


# --- log and numbers ------------------------------------------------------------------------------


def log(
    given: Annotated[str | None, typer.Argument(metavar="[ID]", help="Only of this item.")] = None,
    project: ProjectOption = Path(),
    limit: LimitOption = 30,
    facts: Annotated[bool, typer.Option("--facts", help="Only changes of facts.")] = False,
    working: Annotated[bool, typer.Option("--working", help="Only moves of the working memory.")] = False,
    json_: JsonOption = False,
) -> None:
    """What happened to facts and in the working memory, newest first."""
    from tui_agent.memory.upkeep import happened

    with opened(project) as stores:
        cold_store(stores)
        item_id = None if given is None else find(stores, given, ("fact", "hot", "cold", "waiting")).id
        zone = "fact" if facts and not working else "working" if working and not facts else ""
        lines = happened(stores, item_id=item_id, zone=zone, limit=limit)
        rows = [[one.at, one.zone, one.event, one.id[-3:], one.told] for one in lines]
        printer = Printer(json_)
        printer.data(lines, table(rows))
        if not lines and not json_:
            printer.note("Nothing has happened yet.")


def stats(
    project: ProjectOption = Path(),
    schema: Annotated[bool, typer.Option("--schema", help="Also the tables, as SQL.")] = False,
    json_: JsonOption = False,
) -> None:
    """What the store holds, and whether dead rows have piled up."""
    from tui_agent.cli.options import settings_for
    from tui_agent.memory.index_status import index_on_disk
    from tui_agent.memory.upkeep import happened
    from tui_agent.memory.upkeep import stats as count

    with opened(project) as stores:
        now = count(stores)
        index = index_on_disk(stores.project, settings_for(stores.project, stores.paths, {}).settings.chroma.mode)
        data = plain(now)
        data["index"] = {**plain(index), "search": index.search}
        if not schema:
            data["tables"] = list(now.tables)
        last = happened(stores, zone="fact", limit=5)
        data["last_changes"] = plain(last)
        facts = now.facts
        rows = [
            ["facts", f"{facts['live_memory']} live of {facts['memory']} rows"],
            ["", f"{facts['superseded']} replaced, {facts['expired']} expired, {facts['pinned']} pinned"],
            ["", f"{facts['quarantine']} wait, {now.review} to review, {now.unused} unused for six months"],
            ["", f"{facts['tombstones']} deleted or rejected statements are known by their hash"],
            ["health", now.health],
            ["vectors", str(facts["vectors"])],
            ["index", index.sentence()],
            ["changes", ", ".join(f"{count} {event}" for event, count in now.events.items()) or "none"],
            ["working", f"{now.working['hot']} hot, {now.working['cold']} put away, {now.working['pinned']} pinned"],
            ["history", ", ".join(f"{count} {name}" for name, count in now.history.items())],
            ["clean-up", f"last ran {now.last_prune} UTC" if now.last_prune else "never ran yet"],
            ["files", ", ".join(f"{name} {size:,} bytes" for name, size in now.sizes.items())],
        ]
        lines = [*table(rows), "", f"tables: {', '.join(now.tables)}"]
        if last:
            lines += ["", "last changes:", *table([["", one.at, one.event, one.id[-3:], one.told] for one in last])]
        if schema:
            lines += ["", *(sql for sql in now.tables.values())]
        Printer(json_).data(data, lines)
