"""Housekeeping: the daily clean-up, what the store holds, and what happened in it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol

from tui_agent.memory.backup import Backups
from tui_agent.memory.cold import ColdStore
from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.facts_schema import PRUNE_SUPERSEDED
from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.ledger import Ledger
from tui_agent.memory.text import format_utc, parse_utc, utc_now
from tui_agent.memory.upkeep_store import UpkeepNotes
from tui_agent.memory.working_types import MemoryScope
from tui_agent.project import Project, UserPaths

log = logging.getLogger(__name__)

COLD_DAYS = 180
PRUNE_EVERY_HOURS = 24
BULK = 20
"""From this many rows on a backup is made before they are removed."""

_LAST_PRUNE = "last prune"
# Events whose values are a time, or a scope, and not what the fact says.
_ABOUT_TIME, _ABOUT_PLACE = frozenset({"confirm", "expire", "expiry"}), frozenset({"promote", "demote"})
_DECIDED = frozenset({"quarantine", "approve", "reject"})


class Memory(Protocol):
    """The stores of a project, as the composition root opens them."""

    @property
    def project(self) -> Project: ...
    @property
    def paths(self) -> UserPaths: ...
    @property
    def db(self) -> Database: ...
    @property
    def facts(self) -> FactStore: ...
    @property
    def files(self) -> MemoryFiles: ...
    @property
    def ledger(self) -> Ledger: ...


def counted(number: int, one: str, many: str = "") -> str:
    """``1 fact``, ``2 facts``."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def working_scope(project: Project) -> MemoryScope:
    """Under which the working memory of a project is kept."""
    return MemoryScope(tenant="local", kind=f"project:{project.id}")


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What a clean-up removed, or (``dry``) would remove. ``cold`` are items put away more than 180 days ago."""

    expired: int = 0
    superseded: int = 0
    along: int = 0
    cold: int = 0
    lines: int = 0
    changes: int = 0
    last_run: str = ""
    dry: bool = False
    backup: str = ""

    @property
    def total(self) -> int:
        """Rows removed, of facts and of the working memory."""
        return self.expired + self.superseded + self.along + self.cold

    def sentence(self) -> str:
        """The counts in one line."""
        verb = "Would remove" if self.dry else "Removed"
        replaced = counted(self.superseded + self.along, "replaced one")
        put_away = f"{counted(self.cold, 'item')} put away long ago"
        return f"{verb} {counted(self.expired, 'expired fact')}, {replaced}, {put_away}."


def prune_due(db: Database, clock: Callable[[], str] = utc_now) -> bool:
    """Whether the last clean-up was more than a day ago, however long the program was off in between."""
    last = UpkeepNotes(db).get(_LAST_PRUNE)
    try:
        return last is None or parse_utc(clock()) - parse_utc(last) >= timedelta(hours=PRUNE_EVERY_HOURS)
    except ValueError:
        return True


def prune(memory: Memory, *, clock: Callable[[], str] = utc_now, dry: bool = False) -> PruneReport:
    """Removes expired facts, long superseded ones and what was put away long ago, once; lines of expired facts go too.

    Safe beside a running app. Many rows at once are backed up first. Raises ``StoreError``.
    """
    notes, cold = UpkeepNotes(memory.db), ColdStore(memory.db)
    last = str(notes.get(_LAST_PRUNE) or "")
    before = format_utc(parse_utc(clock()) - timedelta(days=COLD_DAYS))
    scope = working_scope(memory.project).key
    expected = _expected(memory, scope, before, last)
    if dry:
        return expected
    backup = Backups(memory.project, clock=clock).make(memory.db, "before prune").name if expected.total >= BULK else ""
    lines = memory.ledger.sync_files()  # while the rows still say which lines they were
    with memory.db.transaction():
        pruned = memory.facts.prune()
        put_away = cold.prune(scope, before)
        notes.set(_LAST_PRUNE, clock())
    memory.ledger.write_facts_json()
    report = PruneReport(
        len(pruned.expired), len(pruned.superseded), len(pruned.cascaded), len(put_away), lines, pruned.changes, last,
        backup=backup,
    )  # fmt: skip
    log.info("%s", report.sentence())
    return report


def prune_if_due(memory: Memory, *, clock: Callable[[], str] = utc_now) -> PruneReport | None:
    """The daily clean-up, made up for when it was missed; ``None`` when it is not due."""
    return prune(memory, clock=clock) if prune_due(memory.db, clock) else None


def _expected(memory: Memory, scope: str, before: str, last: str) -> PruneReport:
    db = memory.db
    where = PRUNE_SUPERSEDED.partition("WHERE")[2]
    replaced = int(db.value(f"SELECT count(*) FROM memory WHERE {where}") or 0)
    cold = db.value(
        "SELECT count(*) FROM wm_items WHERE scope = ? AND zone = 'cold' AND pinned = 0 AND put_away_at < ?",
        (scope, before),
    )
    return PruneReport(len(memory.facts.expired()), replaced, 0, int(cold or 0), last_run=last, dry=True)


# --- what there is --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stats:
    """What the store holds. ``facts`` as :meth:`FactStore.stats`; ``events`` counts the change log; ``working`` and
    ``history`` count rows; ``sizes`` are bytes; ``health`` is a sentence about rows that are dead but not removed."""

    facts: dict[str, int]
    events: dict[str, int]
    working: dict[str, int]
    history: dict[str, int]
    sizes: dict[str, int]
    review: int
    unused: int
    last_prune: str
    health: str
    healthy: bool
    tables: dict[str, str] = field(default_factory=dict)


def stats(memory: Memory) -> Stats:
    """Counts, sizes, and whether dead rows have piled up."""
    db, facts = memory.db, memory.facts
    ColdStore(db)
    counts = facts.stats()
    scope = working_scope(memory.project).key

    def count(sql: str, *values: Any) -> int:
        return int(db.value(f"SELECT count(*) FROM {sql}", values) or 0)

    working = {
        "hot": count("wm_items WHERE scope = ? AND zone = 'hot'", scope),
        "cold": count("wm_items WHERE scope = ? AND zone = 'cold'", scope),
        "pinned": count("wm_items WHERE scope = ? AND pinned = 1", scope),
    }
    history = {name: count(name) for name in ("sessions", "messages", "recalls")}
    sizes = {path.name: path.stat().st_size for path in db.files()}
    health, healthy = _health(counts)
    return Stats(
        facts=counts,
        events=facts.event_counts(),
        working=working,
        history=history,
        sizes=sizes,
        review=len(facts.review(limit=100_000)),
        unused=len(facts.unused()),
        last_prune=str(UpkeepNotes(db).get(_LAST_PRUNE) or ""),
        health=health,
        healthy=healthy,
        tables={str(row["name"]): str(row["sql"]) for row in db.rows(
            "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND sql IS NOT NULL ORDER BY name"
        )},
    )  # fmt: skip


def _health(counts: dict[str, int]) -> tuple[str, bool]:
    dead = counts["memory"] - counts["live_memory"]
    text = f"{counts['live_memory']:,} of {counted(counts['memory'], 'row')} live"
    if counts["expired"] >= BULK or dead > max(BULK, counts["live_memory"]):
        return f"{text}: {dead} dead rows wait. `tui-agent memory prune` removes those whose time has come.", False
    return f"{text}; {counted(counts['superseded'], 'replaced one')} kept as history.", True


# --- what happened --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Happened:
    """One line of the log of facts or working memory. ``zone`` is ``fact`` or ``working``; ``old`` and ``new`` are
    texts, empty once they were deleted; ``about`` is what the item says now, while it is there."""

    at: str
    zone: str
    event: str
    id: str
    old: str = ""
    new: str = ""
    note: str = ""
    about: str = ""

    @property
    def told(self) -> str:
        """What happened, as one line: the texts before and after, or what it is about, and a time or a reason."""
        if self.event in _ABOUT_TIME:
            return f"{self.about} ({self.new or 'until further notice'})" if self.about else self.new
        said = f"{self.old} → {self.new}" if self.old and self.new else self.new or self.old or self.about
        if self.event in _ABOUT_PLACE:
            said = self.about
        if not said and not self.note and self.event in _DECIDED:
            return "its text is not kept once it was decided"
        return f"{said} ({self.note})" if said and self.note else said or self.note


def happened(memory: Memory, *, item_id: str | None = None, zone: str = "", limit: int = 50) -> list[Happened]:
    """What happened to facts and to the working memory, newest first."""
    found: list[Happened] = []
    if zone in ("", "fact"):
        found += [
            Happened(
                change.created_at, "fact", change.event, change.memory_id, change.old, change.new,
                "deleted" if change.is_deleted else "",
            )
            for change in memory.facts.changes(item_id, limit)
        ]  # fmt: skip
    if zone in ("", "working"):
        for line in ColdStore(memory.db).log(working_scope(memory.project).key, limit if item_id is None else 100_000):
            if item_id is None or line.item_id == item_id:
                found.append(Happened(line.at, "working", line.event, line.item_id, note=line.reason))
    found.sort(key=lambda one: one.at, reverse=True)
    return _with_texts(memory.db, found[:limit])


def _with_texts(db: Database, lines: list[Happened]) -> list[Happened]:
    """The lines with what their items say now."""
    ids = list(dict.fromkeys(line.id for line in lines))
    said: dict[str, str] = {}
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        marks = ", ".join("?" * len(some))
        for table, text in (
            ("memory", "fact"),
            ("quarantine", "text"),
            ("wm_items", "coalesce(nullif(summary, ''), text)"),
        ):
            rows = db.rows(f"SELECT id, {text} AS text FROM {table} WHERE id IN ({marks})", tuple(some))
            said.update({str(row["id"]): str(row["text"]) for row in rows})
    return [replace(line, about=said.get(line.id, "")) for line in lines]
