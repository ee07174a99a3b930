"""What all ``tui-agent memory`` commands share: opening the stores, ids by their end, and how a fact is shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tui_agent.cli.completing import complete_memory
from tui_agent.cli.options import fail, open_project, settings_for, stdin_text
from tui_agent.cli.printing import NOTHING_FOUND, STORE_FAILED, USAGE, Printer, many_lines, one_line, plain, short_ids

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores
    from tui_agent.memory.types import Fact, Verdict

IdsArgument = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Ids, or their unique ends.", autocompletion=complete_memory)
]
IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The id, or its unique end.", autocompletion=complete_memory)
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


@contextlib.contextmanager
def opened(directory: Path, *, create: bool = False) -> Iterator[Stores]:
    """The stores of a project; trouble in the block becomes one sentence and an exit code.

    Without ``create`` a folder that has no memory yet is left as it is, and the command ends with "nothing found".
    """
    from tui_agent.agent.stores import Stores
    from tui_agent.project import ProjectError

    project, paths = open_project(directory)
    loaded = settings_for(project, paths, {})
    if not create and not project.db_path.exists():
        fail(f"There is no memory in {project.root} yet. The chat makes one, and so does `memory add`.", NOTHING_FOUND)
    with explained():
        try:
            stores = Stores.open(project, loaded.settings, paths)
        except ProjectError as error:
            fail(str(error), STORE_FAILED)
        try:
            _finish_what_was_killed(stores)
            yield stores
        finally:
            stores.close()


def _finish_what_was_killed(stores: Stores) -> None:
    """A deletion that a killed run began is finished before anything else; a restore is named, for the user to decide
    on."""
    from tui_agent.memory.restoring import unfinished
    from tui_agent.memory.shredding import resume

    printer = Printer()
    if (report := resume(stores)) is not None:
        printer.note(f"An interrupted deletion was finished: {report.sentence()}")
    if text := unfinished(stores.project):
        printer.note(text)


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Errors of the stores as one sentence on stderr and the exit code that goes with them."""
    from tui_agent.memory.connection import StoreError
    from tui_agent.memory.places import MemoryFileError
    from tui_agent.memory.textfile import TextFileError

    try:
        yield
    except (StoreError, MemoryFileError, TextFileError) as error:
        fail(str(error), STORE_FAILED)
    except (KeyError, IndexError, BrokenPipeError):
        raise  # a fault of the program, or a reader that has seen enough
    except LookupError as error:
        fail(str(error.args[0]) if error.args else "There is no such item.", NOTHING_FOUND)
    except ValueError as error:
        fail(str(error), USAGE)
    except OSError as error:
        fail(f"{error.filename or 'The disk'}: {error.strerror or error}.", STORE_FAILED)


def text_of(words: Sequence[str]) -> str:
    """The text a command was given: its words, or stdin for ``-``."""
    text = stdin_text() if list(words) == ["-"] else " ".join(words)
    if not text.strip():
        fail("There is no text. Give it as arguments, or `-` to read it from a pipe.", USAGE)
    return text.strip()


def changed(stores: Stores) -> None:
    """To be called after facts changed: writes ``facts.json`` anew."""
    if not stores.ledger.write_facts_json():
        Printer().note("facts.json was edited by hand, so it was not written: `tui-agent memory changes` shows it.")


# --- ids ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What an id stands for: its ``zone`` (``fact``, ``hot``, ``cold``, ``waiting``, ``message``) and the whole id."""

    zone: str
    id: str


def find(stores: Stores, given: str, zones: Sequence[str]) -> Found:
    """What ``given`` (an id, its unique end, or ``zone:id``) stands for among ``zones``.

    Exits with a sentence when it is nothing (6) or more than one thing (2).
    """
    zone, colon, end = given.strip().partition(":")
    if not colon:
        zone, end = "", given.strip()
    elif zone not in zones:
        fail(f"{given!r} is no id here; ids of this command name one of: {', '.join(zones)}.", USAGE)
    if len(end) < 3:
        fail(f"{given!r} is no id. Give at least its last three characters, as `memory list` shows them.", USAGE)
    candidates = [(name, each) for name in ([zone] if zone else zones) for each in _ids(stores, name, end)]
    exact = [(name, each) for name, each in candidates if each == end]
    candidates = exact or candidates
    if not candidates:
        fail(f"Nothing is known under {given!r}. `tui-agent memory list` shows the ids.", NOTHING_FOUND)
    if len(candidates) > 1:
        ends = short_ids(each for _, each in candidates)
        shown = ", ".join(f"{name}:{ends[each]}" for name, each in candidates[:6])
        fail(f"{len(candidates)} ids end in {given!r}: {shown}. Give more of it.", USAGE)
    return Found(*candidates[0])


_TABLES = {
    "fact": "memory WHERE",
    "waiting": "quarantine WHERE",
    "message": "messages WHERE",
    "hot": "wm_items WHERE zone = 'hot' AND",
    "cold": "wm_items WHERE zone = 'cold' AND",
}


def _ids(stores: Stores, zone: str, end: str) -> list[str]:
    if zone in ("hot", "cold"):
        cold_store(stores)
    rows = stores.db.rows(f"SELECT id FROM {_TABLES[zone]} substr(id, -?) = ? LIMIT 50", (len(end), end))
    return [str(row["id"]) for row in rows]


def cold_store(stores: Stores) -> Any:
    """The store of the working memory; making it brings its tables up to date."""
    from tui_agent.memory.cold import ColdStore

    return ColdStore(stores.db)


# --- showing --------------------------------------------------------------------------------------


def fact_data(stores: Stores, fact: Fact) -> dict[str, Any]:
    """A fact as plain data, with whether it is live."""
    return {**plain(fact), "live": stores.facts.is_live(fact.id)}


def fact_rows(facts: Sequence[Fact], *, source: bool = False) -> list[list[str]]:
    """Rows for :func:`~tui_agent.cli.printing.table`: id, last confirmation, kind, marks, text (and source)."""
    ends = short_ids(fact.id for fact in facts)
    return [
        [ends[fact.id], fact.confirmed_at[:10], str(fact.kind), _marks(fact), _said(fact, source)] for fact in facts
    ]


def _marks(fact: Fact) -> str:
    marks = [
        "pinned" if fact.pinned else "",
        "replaced" if fact.superseded_by else "",
        f"until {fact.expires_at[:10]}" if fact.expires_at else "",
        "everywhere" if str(fact.scope) == "user" else "",
    ]
    return ", ".join(mark for mark in marks if mark)


def _said(fact: Fact, source: bool) -> str:
    about = f"{fact.subject}: " if fact.subject and fact.subject.casefold() not in fact.fact.casefold() else ""
    foreign = "" if str(fact.source_kind) == "user" else f"{fact.source_kind}, "
    return f"{about}{fact.fact}" + (f"  ({foreign}{fact.source})" if source else "")


def fields(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """``name  value`` lines for what has a value, aligned."""
    shown = [(name, value) for name, value in pairs if value]
    most = max((len(name) for name, _ in shown), default=0)
    lines = []
    for name, value in shown:
        first, *more = many_lines(value).split("\n")
        lines.append(f"{name:<{most}}  {first}")
        lines += [f"{'':<{most}}  {line}" for line in more]
    return lines


def verdict_line(verdict: Verdict) -> str:
    """What the gate decided, as one line for people."""
    said = one_line(verdict.text)
    end = (verdict.fact_id or "")[-3:]
    if verdict.action.value == "live":
        where = f" in {verdict.target}" if verdict.target and verdict.target != "fact" else ""
        replaced = ", in place of the older statement" if verdict.superseded_id else ""
        return f"{end}  saved{where}{replaced}: {said}"
    if verdict.action.value == "touch":
        return f"{end}  known already, confirmed now: {said}"
    if verdict.action.value == "quarantine":
        return f"waits for you (`memory quarantine`): {said}. {verdict.reason}"
    return f"refused: {verdict.reason}"
