"""Reading a memory that a plain Chroma script has written: collections ``pamiec-{id}`` with texts, category, importance
and time of writing, compared by whatever distance Chroma had as its default.

Nothing of it is changed: it is looked at with SQLite and read from a copy. The vectors are left behind, because nobody
knows what made them; the texts are embedded anew.
"""

from __future__ import annotations

import contextlib
import math
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from tui_agent.memory.chroma_collection import MADE_BY, PREFIX, open_client
from tui_agent.memory.database import Database, Migration
from tui_agent.memory.extraction_parse import clamp_importance
from tui_agent.memory.facts import FactStore
from tui_agent.memory.secrets import has_secret
from tui_agent.memory.text import format_utc
from tui_agent.memory.types import Action, Kind, NewFact, Origin, Proposal, Verdict, kind_of

_SQLITE = "chroma.sqlite3"
_PAGE = 500
ROOM = "legacy_store"


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE legacy_imports(collection TEXT PRIMARY KEY, folder TEXT NOT NULL, name TEXT NOT NULL, "
        "imported_at TEXT NOT NULL)"
    )


MIGRATIONS: tuple[Migration, ...] = (("001 imports", _create),)


class Admits(Protocol):
    """The gate, as far as an import needs it."""

    def admit(self, proposal: Proposal) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class Listed:
    """A collection as Chroma's SQLite file names it. ``ours`` are the indexes this program makes, without texts."""

    name: str
    rows: int
    ours: bool
    uid: str = ""


@dataclass(frozen=True, slots=True)
class LegacyStore:
    """A store of the script: its folder and its collections with texts, largest first."""

    folder: Path
    collections: tuple[Listed, ...]

    def of(self, project_id: str) -> LegacyStore | None:
        """The same store with the collections of one project only (also one that was set aside), or ``None``."""
        name = f"{PREFIX}{project_id}"
        found = tuple(each for each in self.collections if each.name == name or each.name.startswith(f"{name}-article"))
        return LegacyStore(self.folder, found) if found else None


@dataclass(frozen=True, slots=True)
class LegacyRow:
    """One remembered text of the script. ``written_at`` is UTC text, or ``None`` where it was missing or lies ahead."""

    id: str
    text: str
    kind: Kind
    importance: int
    written_at: str | None
    collection: str


@dataclass(frozen=True, slots=True)
class LegacyImport:
    """What became of the rows: numbers of new facts, of proposals that wait for approval, and of texts that were known
    (or deleted or rejected before); refused ones with the reason, without their text."""

    imported: int = 0
    waiting: int = 0
    known: int = 0
    refused: tuple[str, ...] = ()


def list_collections(folder: Path) -> list[Listed] | None:
    """The collections in a Chroma folder, without loading Chroma; ``None`` when there is no readable store."""
    path = folder / _SQLITE
    if not path.is_file():
        return None
    try:
        # as_uri() escapes what a URI would misread; read-only does not create what is missing.
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2)) as store:
            found = store.execute(
                "SELECT c.name, (SELECT count(*) FROM embeddings e JOIN segments s ON s.id = e.segment_id "
                "WHERE s.collection = c.id), EXISTS (SELECT 1 FROM collection_metadata m WHERE m.collection_id = c.id "
                "AND m.key = 'made_by' AND m.str_value = ?), c.id FROM collections c ORDER BY 2 DESC, 1",
                (MADE_BY,),
            ).fetchall()
    except (sqlite3.Error, ValueError):
        return None
    return [Listed(str(name), int(rows), bool(ours), str(uid)) for name, rows, ours, uid in found]


def find_legacy_store(path: Path | str = ".") -> LegacyStore | None:
    """The script's store at ``path`` (its folder, ``.agent-memory`` or the project), or ``None`` when there is none
    with anything in it."""
    base = Path(path)
    beside = sorted(base.parent.glob(f"{base.name}.unreadable-*")) if base.name else []
    for folder in (base, base / "vector-store", base / ".agent-memory" / "vector-store", *beside):
        found = [
            each
            for each in list_collections(folder) or ()
            if each.name.startswith(PREFIX) and each.rows and not each.ours
        ]
        if found:
            return LegacyStore(folder.absolute(), tuple(found))
    return None


def not_imported(store: LegacyStore, db: Database) -> LegacyStore | None:
    """The same store with the collections that were neither imported nor declined yet, or ``None``."""
    db.migrate(ROOM, MIGRATIONS)
    # By its own id: the folder may move, and a collection gets another name when our index needs its own.
    done = {row["collection"] for row in db.rows("SELECT collection FROM legacy_imports")}
    left = tuple(each for each in store.collections if each.uid not in done)
    return LegacyStore(store.folder, left) if left else None


def decline_legacy(store: LegacyStore, db: Database) -> None:
    """The user does not want these collections; they stay where they are and are not offered again."""
    db.migrate(ROOM, MIGRATIONS)
    _done(store.folder, store.collections, db)


def _done(folder: Path, collections: Sequence[Listed], db: Database) -> None:
    now = format_utc(datetime.now(timezone.utc))
    with db.transaction() as connection:
        connection.executemany(
            "INSERT OR REPLACE INTO legacy_imports VALUES (?, ?, ?, ?)",
            [(each.uid, str(folder), each.name, now) for each in collections],
        )


def read_legacy(store: LegacyStore, now: Callable[[], float] = time.time) -> list[LegacyRow]:
    """The texts of a store, oldest first. Loads Chroma: call it from a thread. Raises ``OSError`` when the store cannot
    be read."""
    rows: list[tuple[float, LegacyRow]] = []
    # Opening a store may bring its tables to a newer form; the original stays as it is. The copy is beside it: texts
    # of a memory have no business in the system's folder for such things.
    with tempfile.TemporaryDirectory(dir=store.folder.parent, prefix=".import-", ignore_cleanup_errors=True) as scratch:
        copy = Path(shutil.copytree(store.folder, Path(scratch) / "store"))
        client = None
        try:
            client = open_client(copy)
            for listed in store.collections:
                collection = client.get_collection(listed.name, embedding_function=None)
                offset = 0
                while (page := collection.get(limit=_PAGE, offset=offset))["ids"]:
                    offset += len(page["ids"])
                    for row_id, text, data in zip(page["ids"], page["documents"], page["metadatas"], strict=True):
                        if isinstance(text, str) and text.strip():
                            rows.append(_row(str(row_id), text, data or {}, listed.name, now()))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of Chroma's native part is no Exception
            raise OSError(f"The store in {store.folder} cannot be read: {error}") from error
        finally:
            if client is not None:
                client.close()
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _row(row_id: str, text: str, data: dict[str, Any], collection: str, now: float) -> tuple[float, LegacyRow]:
    stamp = data.get("timestamp")
    written: float | None = None
    if isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and math.isfinite(stamp) and 0 < stamp <= now:
        written = float(stamp)
    when = None if written is None else format_utc(datetime.fromtimestamp(written, timezone.utc))
    kind = kind_of(data.get("category"), Kind.DECISION)
    row = LegacyRow(row_id, " ".join(text.split()), kind, clamp_importance(data.get("importance")), when, collection)
    return (now if written is None else written), row


def import_legacy(
    store: LegacyStore,
    facts: FactStore,
    db: Database,
    *,
    gate: Admits | None = None,
    approved: bool = False,
    again: bool = False,
    read: Callable[[LegacyStore], Sequence[LegacyRow]] | None = None,
) -> LegacyImport:
    """Takes over the texts of a store, each collection once (``again`` asks for another time).

    Nobody can tell any more whose words they were, so they wait in quarantine; through ``gate`` when it is given.
    ``approved`` says that the user has accepted the store as a whole: they become rows, with their dates, and with a
    ``gate`` only those that it lets live. Secrets are refused either way, and what the user deleted or rejected before
    stays away. ``read`` reads the store, by default in this process. Blocking; raises ``OSError``.
    """
    left = not_imported(store, db)
    new = store.collections if again else left.collections if left is not None else ()
    if not new:
        return LegacyImport()
    imported = waiting = known = 0
    refused: list[str] = []
    rows = (read or read_legacy)(LegacyStore(store.folder, new))
    with db.transaction():
        for row in rows:
            source = f"{store.folder.name}/{row.collection}: {row.id}"
            if has_secret(row.text):
                refused.append(f"{source} holds a secret and was not taken over.")
            elif facts.by_text(row.text) or facts.is_tombstoned(row.text) or facts.is_rejected(row.text):
                known += 1
            elif approved and gate is not None:
                verdict = gate.admit(
                    Proposal(
                        text=row.text,
                        origin=Origin.USER,
                        proposer="user",
                        source=source,
                        kind=row.kind,
                        importance=row.importance,
                        user_text=row.text,
                        target="fact",
                    )
                )
                if verdict.action is Action.LIVE and verdict.fact_id is not None:
                    facts.backdate(verdict.fact_id, row.written_at)
                    imported += 1
                elif verdict.action is Action.REFUSE:
                    refused.append(f"{source}: {verdict.reason}")
                elif verdict.action is Action.QUARANTINE:
                    waiting += 1
                else:
                    known += 1
            elif approved:
                facts.add(
                    NewFact(
                        subject="",
                        fact=row.text,
                        source=source,
                        kind=row.kind,
                        importance=row.importance,
                        source_kind=Origin.IMPORT,
                        created_at=row.written_at,
                        confirmed_at=row.written_at,
                    )
                )
                imported += 1
            else:
                proposal = Proposal(
                    text=row.text,
                    origin=Origin.IMPORT,
                    proposer="import",
                    source=source,
                    kind=row.kind,
                    importance=row.importance,
                )
                if gate is None:
                    facts.quarantine(
                        proposal, "It comes from another store; nobody can tell whose words it is.", "origin"
                    )
                    waiting += 1
                    continue
                verdict = gate.admit(proposal)
                if verdict.action is Action.REFUSE:
                    refused.append(f"{source}: {verdict.reason}")
                elif verdict.action is Action.QUARANTINE:
                    waiting += 1
                elif verdict.action is Action.TOUCH:
                    known += 1
                else:
                    imported += 1
        _done(store.folder, new, db)
    return LegacyImport(imported, waiting, known, tuple(refused))
