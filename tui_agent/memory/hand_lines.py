"""The date of each line that the user wrote into memory files by hand, and when it is due for a look: every month.

A line that carries a date of its own ("agreed 2026-08-15") has that one. Else the day counts on which the program first
saw it, which is never later than the file's own time says. What is kept of a line is a hash, only while it is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from tui_agent.memory.own_notes import OwnLine, all_lines
from tui_agent.memory.scrubbing import without_mark
from tui_agent.memory.text import format_utc, parse_utc, utc_now
from tui_agent.memory.upkeep import Memory
from tui_agent.memory.upkeep_store import UpkeepNotes

REVIEW_LINES_DAYS = 30
"""Lines by hand come up for review when nobody has looked at them for so long."""

_NOTE = "lines by hand"
_ISO = re.compile(r"(?<!\d)(20\d\d)-(\d\d)-(\d\d)(?!\d)")
_DOTTED = re.compile(r"(?<!\d)(\d{1,2})\.(\d{1,2})\.(20\d\d)(?!\d)")


@dataclass(frozen=True, slots=True)
class DatedLine:
    """A line with its date. ``own_date`` is whether the line itself names it; ``looked_at`` is UTC text, or empty."""

    line: OwnLine
    date: str
    own_date: bool = False
    looked_at: str = ""

    @property
    def since(self) -> str:
        """From when on the month until the next look counts."""
        return max(self.date, self.looked_at)


def dated(memory: Memory, lines: Iterable[OwnLine], clock: Callable[[], str] = utc_now) -> list[DatedLine]:
    """The lines with their dates, in their order. Lines never seen before are noted as seen."""
    notes, now = UpkeepNotes(memory.db), clock()
    known: dict[str, list[str]] = notes.get(_NOTE, {})
    fresh = dict(known)
    found = []
    for line in lines:
        seen, looked = fresh.setdefault(line.id, [min(line.changed_at or now, now), ""])
        own = _date_in(line.text, now)
        found.append(DatedLine(replace(line, changed_at=own or seen), own or seen, bool(own), looked))
    if fresh != known:
        notes.set(_NOTE, fresh)
    return found


def lines_to_review(memory: Memory, clock: Callable[[], str] = utc_now) -> list[DatedLine]:
    """The lines of all memory files that nobody has looked at for a month, oldest first. Lines that are gone are no
    longer known afterwards."""
    lines = all_lines(memory)
    found = dated(memory, lines, clock)
    notes = UpkeepNotes(memory.db)
    known: dict[str, list[str]] = notes.get(_NOTE, {})
    there = {line.id for line in lines}
    if any(line_id not in there for line_id in known):
        notes.set(_NOTE, {line_id: value for line_id, value in known.items() if line_id in there})
    border = format_utc(parse_utc(clock()) - timedelta(days=REVIEW_LINES_DAYS))
    return sorted((one for one in found if one.since <= border), key=lambda one: one.since)


def dates_of_file(memory: Memory, name: str, clock: Callable[[], str] = utc_now) -> list[str]:
    """Each dated line of a memory file as ``2026-08-15  what it says``: lines of facts with the day of their last
    confirmation, lines by hand with theirs."""
    facts = [fact for fact in memory.facts.live_written() if fact.target.partition("#")[0] == name and fact.target_line]
    found = [f"{fact.confirmed_at[:10]}  {without_mark(fact.target_line)}" for fact in facts]
    own = [line for line in all_lines(memory) if line.name == name and line.where == "project"]
    return found + [f"{one.date[:10]}  {one.line.text}  (by hand)" for one in dated(memory, own, clock)]


def note_looked(memory: Memory, line: OwnLine, clock: Callable[[], str] = utc_now) -> None:
    """Somebody has looked at the line, and it still holds."""
    notes = UpkeepNotes(memory.db)
    known: dict[str, list[str]] = notes.get(_NOTE, {})
    seen = known.get(line.id, [line.changed_at or clock(), ""])[0]
    notes.set(_NOTE, {**known, line.id: [seen, clock()]})


def _date_in(text: str, now: str) -> str:
    """The last date that a line names and that is not still to come, as UTC text, or an empty string."""
    named = [(year, month, day) for year, month, day in _ISO.findall(text)]
    named += [(year, month, day) for day, month, year in _DOTTED.findall(text)]
    found = []
    for year, month, day in named:
        try:
            found.append(format_utc(parse_utc(f"{year}-{int(month):02}-{int(day):02}")))
        except ValueError:
            continue
    return max((date for date in found if date <= now), default="")
