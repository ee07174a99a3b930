"""``tui-agent memory extract`` and ``check-extraction``: what a model finds in conversations, by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tui_agent.cli.memory_common import changed, opened
from tui_agent.cli.options import (
    EmbeddedOption,
    HostOption,
    JsonOption,
    ModelOption,
    ProjectOption,
    fail,
    flags_of,
    open_project,
    settings_for,
)
from tui_agent.cli.printing import NOTHING_FOUND, USAGE, Printer, one_line, short_ids, table

if TYPE_CHECKING:
    from tui_agent.agent.connection import Connection
    from tui_agent.agent.stores import Stores
    from tui_agent.llm.types import ModelOptions
    from tui_agent.memory.extraction import ExtractionReport
    from tui_agent.memory.extraction_check import CheckedCase, ExtractionCheck

T = TypeVar("T")
Complete = Callable[[list[dict[str, str]]], Awaitable[str]]


@dataclass(frozen=True)
class _Model:
    """The model of a connection, to be asked without a conversation around it."""

    client: Any
    model: str
    options: ModelOptions
    think: bool | str | None


def extract(
    session: Annotated[
        str, typer.Argument(metavar="[SESSION]", help="The session's id, or its unique end.", show_default="all new")
    ] = "",
    project: ProjectOption = Path(),
    model: ModelOption = None,
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    json_: JsonOption = False,
) -> None:
    """Search conversations for lasting facts now. Each message is searched once; the chat does this by itself."""
    printer = Printer(json_)
    with opened(project) as stores:
        chosen = _session(stores, session) if session else ""
        waiting = [row.id for row in stores.history.unextracted_sessions()]
        if not chosen and not waiting:
            printer.data([], ["Every conversation was searched already."])
            return
        flags = flags_of(model=model, host=host, embedded=embedded)

        async def work(complete: Complete, connection: Connection) -> list[ExtractionReport]:
            from tui_agent.memory.extraction import Extractor

            extractor = Extractor(stores.gate, stores.history, complete, db=stores.db, facts=stores.facts)
            return [await extractor.run(chosen)] if chosen else await extractor.run_pending()

        reports = asyncio.run(_asked(project, flags, printer, work))
        changed(stores)
        ends = short_ids(row.id for row in stores.history.sessions(limit=100_000))
        printer.data([_data(report) for report in reports], _lines(reports, ends))
    if failed := next((report.error for report in reports if report.error), ""):
        fail(f"The model could not be asked: {failed}", 5)


def check_extraction(
    project: ProjectOption = Path(),
    model: ModelOption = None,
    host: HostOption = None,
    embedded: EmbeddedOption = None,
    last: Annotated[bool, typer.Option("--last", help="Show the last result; ask no model.")] = False,
    json_: JsonOption = False,
) -> None:
    """Try a small set of conversations with known answers on the model. The chat says when the model has changed."""
    from tui_agent.memory.extraction_check import CheckLog, shipped_cases
    from tui_agent.memory.extraction_check import check_extraction as check

    printer = Printer(json_)
    with opened(project, create=True) as stores:
        if last:
            found = CheckLog(stores.db).last() if CheckLog.exists(stores.db) else None
            if found is None:
                fail("Extraction was never checked in this project. Leave --last away to check it.", NOTHING_FOUND)
            printer.data(_check_data(found, ""), _check_lines(found, ""))
            return
        cases = shipped_cases()

        async def work(complete: Complete, connection: Connection) -> ExtractionCheck:
            from tui_agent.agent.learning import digest_of

            digest = await digest_of(connection.client, connection.model)
            count = 0

            def progress(case: CheckedCase) -> None:
                nonlocal count
                count += 1
                printer.note(f"{count} of {len(cases)}: {case.id} {_verdict(case)}")

            return await check(cases, complete, model=connection.model, digest=digest, progress=progress)

        result = asyncio.run(_asked(project, flags_of(model=model, host=host, embedded=embedded), printer, work))
        if all(case.error for case in result.cases):
            fail(f"The model could not be asked: {result.cases[0].error}", 5)
        log = CheckLog(stores.db)
        compared = log.compared(result)
        log.record(result)
        printer.data(_check_data(result, compared), _check_lines(result, compared))


async def _asked(
    directory: Path,
    flags: dict[str, Any],
    printer: Printer,
    work: Callable[[Complete, Connection], Awaitable[T]],
) -> T:
    """Connect as the chat does, and hand ``work`` a way to ask the model for JSON."""
    from tui_agent.agent.asking import Asking, ask_for_json
    from tui_agent.agent.connection import Connection
    from tui_agent.agent.events import Event, Notice
    from tui_agent.agent.learning import answer_of
    from tui_agent.llm.errors import ModelError
    from tui_agent.memory.extraction import EXTRACTION_SCHEMA

    project, paths = open_project(directory)
    settings = settings_for(project, paths, flags).settings

    def told(event: Event) -> None:
        if isinstance(event, Notice):
            printer.note(event.text)

    connection = Connection(project, paths, settings, fallback=settings.host is None)
    try:
        await connection.ensure(told)
        assert connection.options is not None
        think = settings.think if connection.info is not None and connection.info.thinking else None
        asked = _Model(connection.client, connection.model, connection.options, think)

        async def complete(messages: list[dict[str, str]]) -> str:
            reply = await ask_for_json(lambda each: Asking(asked).run(each, format=EXTRACTION_SCHEMA), messages)
            if reply.error is not None:
                raise reply.error
            return answer_of(reply)

        return await work(complete, connection)
    except ModelError as error:
        fail(str(error), error.exit_code)
    finally:
        await connection.aclose()


# --- showing --------------------------------------------------------------------------------------


def _session(stores: Stores, given: str) -> str:
    end = given.removeprefix("session:")
    found = [row.id for row in stores.history.sessions(limit=100_000) if row.id.endswith(end)]
    if not found:
        fail(f"There is no session {given!r} in this project.", NOTHING_FOUND)
    if len(found) > 1:
        fail(f"{len(found)} sessions end in {given!r}; give more of the id.", USAGE)
    return found[0]


def _data(report: ExtractionReport) -> dict[str, Any]:
    from tui_agent.agent.learning import learned

    event = learned(report)
    return {**event.as_dict(), "tokens_in": report.tokens_in, "tokens_out": report.tokens_out, "error": report.error}


def _lines(reports: list[ExtractionReport], ends: dict[str, str]) -> list[str]:
    from tui_agent.agent.learning import learned

    lines = []
    for report in reports:
        smaller = f" That is {report.compression:.0f} times smaller." if report.compression else ""
        lines.append(f"{ends.get(report.session_id, report.session_id)}  {one_line(report.summary)}{smaller}")
        rows = [
            [f"  {item.what}", item.fact_id[-3:], item.text + (f"  ({item.reason})" if item.what != "kept" else "")]
            for item in learned(report).items
        ]
        lines += table(rows)
    return lines


def _check_data(check: ExtractionCheck, compared: str) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        **asdict(check),
        "score": asdict(check.score()),
        "by_language": {language: asdict(check.score(language)) for language in check.languages},
        "summary": check.summary,
        "compared": compared,
    }


def _check_lines(check: ExtractionCheck, compared: str) -> list[str]:
    rows = [["", "conversations", "right", "facts", "found", "not to be kept"]]
    for language in (*check.languages, None):
        score = check.score(language)
        figures = (score.cases, score.right, score.expected, score.found_any_kind, score.forbidden)
        rows.append([language or "all", *map(str, figures)])
    lines = [*table(rows), "", check.summary]
    return [*lines, compared] if compared else lines


def _verdict(case: CheckedCase) -> str:
    if case.error:
        return f"could not be asked: {case.error}"
    kept = f", kept against the rules: {'; '.join(case.forbidden)}" if case.forbidden else ""
    return f"found {case.found_any_kind} of {case.expected}{kept}"
