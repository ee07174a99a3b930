"""When the weekly review is due. Only the queue is automatic; whether a fact still holds, a person decides."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tui_agent.memory.database import Database
from tui_agent.memory.text import parse_utc, utc_now
from tui_agent.memory.upkeep_store import UpkeepNotes

REVIEW_EVERY_DAYS = 7
_REVIEWED, _ANNOUNCED = "last review", "last review notice"


def reviewed_at(db: Database) -> str:
    """When somebody last looked at the queue, UTC text, or an empty string."""
    return str(UpkeepNotes(db).get(_REVIEWED) or "")


def note_reviewed(db: Database, clock: Callable[[], str] = utc_now) -> None:
    """Somebody has looked at the queue."""
    UpkeepNotes(db).set(_REVIEWED, clock())


def review_due(db: Database, waiting: int, clock: Callable[[], str] = utc_now) -> bool:
    """Whether ``waiting`` facts want a look and nobody has looked for a week."""
    return waiting > 0 and _older(reviewed_at(db), REVIEW_EVERY_DAYS, clock())


def announce_review(db: Database, waiting: int, clock: Callable[[], str] = utc_now) -> bool:
    """Whether to say now that a review is due: once a day at most. Notes that it was said."""
    notes = UpkeepNotes(db)
    if not review_due(db, waiting, clock) or not _older(str(notes.get(_ANNOUNCED) or ""), 1, clock()):
        return False
    notes.set(_ANNOUNCED, clock())
    return True


def _older(when: str, days: int, now: str) -> bool:
    try:
        return not when or parse_utc(now) - parse_utc(when) >= timedelta(days=days)
    except ValueError:
        return True
