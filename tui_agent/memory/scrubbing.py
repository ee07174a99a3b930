"""Taking texts out of what the program has written: rows with their indexes, and text files."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from tui_agent.memory.changes import ChangeLog
from tui_agent.memory.cold import ColdStore
from tui_agent.memory.cold_tables import digest
from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore, fact_key
from tui_agent.memory.history import History
from tui_agent.memory.listing import label_of
from tui_agent.memory.records import MASK
from tui_agent.memory.sections import statement
from tui_agent.memory.text import utc_now
from tui_agent.memory.textfile import ChangedOnDisk, TextFileError, read_text, write_text
from tui_agent.memory.topics import Topics
from tui_agent.memory.traces import Spans

log = logging.getLogger(__name__)

_LEAST_PIECE = 16  # characters; less of a statement says nothing, and would be masked in much else


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What was changed in a database: facts deleted, messages and records masked, items of the working memory."""

    facts: int = 0
    records: int = 0
    items: int = 0


def texts_of(facts: FactStore, db: Database, fact_id: str) -> list[str]:
    """Every text that goes with a fact: what it and all it replaced said, their quotes, and their lines in files."""
    changes = ChangeLog(db, utc_now)
    family = changes.ancestors(fact_id)
    rows = [fact for each in family if (fact := facts.get(each)) is not None]
    gone = family - {fact.id for fact in rows}
    # A row that was taken out of the chain again (its correction was undone) is not deleted with it.
    rows = [fact for fact in rows if fact.id == fact_id or fact.superseded_by in family]
    texts = [text for fact in rows for text in (fact.fact, fact.quote, without_mark(fact.target_line))]
    texts += sorted(changes.statements(gone | {fact.id for fact in rows}))
    texts = [text for text in texts if text]
    return list(dict.fromkeys((*texts, *_cut_in_labels(db, Spans(texts)))))


def _cut_in_labels(db: Database, spans: Spans) -> list[str]:
    """The beginnings of spans that stand at the end of an item's label, where that was cut: the lists of put-away items
    show it so, and no search for the whole would find them there."""
    found = []
    for summary, text in ColdStore(db).db.rows("SELECT summary, text FROM wm_items"):  # which makes the table, too
        label = label_of(str(summary), str(text))
        if not label.endswith("…") or not (spans.count(str(summary)) or spans.count(str(text))):
            continue
        whole = " ".join((str(summary).strip() or str(text).strip()).split("\n", 1)[0].split()).encode()
        cut = len(label[:-1].encode())
        found += [whole[start:cut].decode() for start, stop in spans.places(whole) if start < cut < stop]
    return [piece for piece in found if len(piece) >= _LEAST_PIECE]


def without_mark(line: str) -> str:
    """A line of a file without its list mark."""
    return line.strip().removeprefix("- ").removeprefix("* ").removeprefix("+ ").strip()


def scrub_database(db: Database, ids: Collection[str], texts: Collection[str], spans: Spans) -> Scrubbed:
    """Deletes facts by id, and those that say one of ``texts``; masks ``spans`` in everything else but the words of
    other facts. Free pages keep the old text until :meth:`Database.vacuum`."""
    facts, history, cold = FactStore(db), History(db), ColdStore(db)
    keys = {fact_key(text) for text in texts if text.strip()}
    with db.transaction() as connection:
        gone = 0
        same = [str(row["id"]) for row in db.rows("SELECT id, fact FROM memory") if fact_key(row["fact"]) in keys]
        for fact_id in dict.fromkeys((*ids, *same)):
            with contextlib.suppress(LookupError):
                gone += len(facts.delete_chain(fact_id))
        records = history.mask(spans.texts)
        records += _mask_columns(connection, "changes", "id", ("old", "new"), spans)
        records += _mask_columns(connection, "memory", "rowid", ("quote", "source"), spans)
        for row in db.rows("SELECT id, text, quote FROM quarantine"):
            if spans.count(row["text"]) or spans.count(row["quote"]):
                records += db.execute("DELETE FROM quarantine WHERE id = ?", (row["id"],))
        records += Topics(db).forget(ids, lambda text: bool(spans.count(text)))
        items = _scrub_working(connection, cold, spans)
    return Scrubbed(gone, records, items)


def _mask_columns(connection: sqlite3.Connection, table: str, key: str, columns: tuple[str, ...], spans: Spans) -> int:
    changed = 0
    for row in connection.execute(f"SELECT {key}, {', '.join(columns)} FROM {table}").fetchall():
        old = [str(row[name]) for name in columns]
        new = [spans.mask(text) for text in old]
        if new != old:
            assignments = ", ".join(f"{name} = ?" for name in columns)
            connection.execute(f"UPDATE {table} SET {assignments} WHERE {key} = ?", (*new, row[0]))
            changed += 1
    return changed


def _scrub_working(connection: sqlite3.Connection, cold: ColdStore, spans: Spans) -> int:
    """Masks items of the working memory and drops what was made of their text; an item that was nothing else goes."""
    changed = 0
    for row in connection.execute("SELECT number, scope, id, text, summary, source FROM wm_items").fetchall():
        old = [str(row[name]) for name in ("text", "summary", "source")]
        new = [spans.mask(text) for text in old]
        if new == old:
            continue
        changed += 1
        if not statement(new[0].replace(MASK, "")).strip("\"'-*.,;: "):
            cold.delete(str(row["scope"]), [str(row["id"])])
            continue
        # Words and names are indexed again from the row; the vector is made again when the app is idle.
        connection.execute(
            "UPDATE wm_items SET text = ?, summary = ?, source = ?, digest = ?, shown = '', indexed = 0 "
            "WHERE number = ?",
            (*new, digest(new[0]), row["number"]),
        )
        connection.execute("DELETE FROM wm_terms WHERE rowid = ?", (row["number"],))
        for table in ("wm_symbols", "wm_vectors"):
            connection.execute(f"DELETE FROM {table} WHERE item = ?", (row["number"],))
    for row in connection.execute("SELECT number, text FROM wm_versions").fetchall():
        if spans.count(str(row["text"])):
            connection.execute("DELETE FROM wm_versions WHERE number = ?", (row["number"],))
            changed += 1
    _mask_columns(connection, "wm_sessions", "rowid", ("goal",), spans)
    _mask_columns(connection, "wm_log", "number", ("reason",), spans)
    if changed:
        cold.index()
        # Deleted terms stay in older segments of the index until they are merged.
        connection.execute("INSERT INTO wm_terms(wm_terms) VALUES ('optimize')")
    return changed


def scrub_text(
    path: Path,
    spans: Spans,
    announce: Callable[[Path, str], None] | None = None,
    keep: Collection[str] = (),
) -> bool:
    """Takes spans out of a text file; in Markdown a line that says nothing else goes, and lines in ``keep`` stay, which
    belong to other facts. False when there was nothing to take out, or the file is no text or cannot be written (a
    search will name it)."""
    for _ in range(3):
        try:
            found = read_text(path)
            if found is None or not spans.count(found.text):
                return False
            text = _without(found.text, spans, keep) if path.suffix == ".md" else spans.mask(found.text)
            if text == found.text:
                return False
            write_text(path, text, found, announce)
        except ChangedOnDisk:
            continue
        except TextFileError as error:
            log.warning("%s keeps a deleted text: %s", path, error)
            return False
        return True
    return False


def _without(text: str, spans: Spans, keep: Collection[str] = ()) -> str:
    before = {line.strip() for line in text.splitlines()}
    kept = []
    old, new = text.splitlines(keepends=True), spans.mask(text).splitlines(keepends=True)
    if keep and len(old) == len(new):  # else a span runs over the end of a line
        new = [one if one.strip() in keep else other for one, other in zip(old, new, strict=True)]
    for line in new:
        rest = line.replace(MASK, "")
        empty = not statement(rest + " ").strip("\"'-*.,;: ")
        if MASK not in line or line.strip() in before or not empty:
            kept.append(line)
    return "".join(kept)
