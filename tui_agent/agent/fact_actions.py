"""Verbs over facts that the inspector and the review have: until when, whose, and taking a correction back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from tui_agent.agent.events import Event, MemoryChanged
from tui_agent.agent.views import ActionResult
from tui_agent.memory.own_notes import OwnLine, change_line, find_line
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.shredding import mask_everywhere
from tui_agent.memory.text import fold, format_utc, parse_utc, utc_now
from tui_agent.memory.traces import can_be_sought

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

_NEVER = frozenset({"", "never", "none", "-", "nigdy", "никогда"})
# How the words for a span of time begin, in three languages; folded.
_UNITS = (
    ("d", 1), ("д", 1), ("w", 7), ("tyg", 7), ("tydz", 7), ("нед", 7),
    ("m", 30), ("мес", 30), ("y", 365), ("rok", 365), ("lat", 365), ("год", 365), ("лет", 365),
)  # fmt: skip


def end_of(words: str) -> str | None:
    """When a fact ends, from what a user types: ``2027-01-31``, ``2027-01-31 18:00``, ``7 days``, ``never`` (``None``).

    Raises:
        ValueError: it is none of these; the sentence says what is.
    """
    plain = fold(words).strip()
    if plain in _NEVER:
        return None
    number, _, unit = plain.lstrip("+").partition(" ")
    days = next((days for begin, days in _UNITS if unit.startswith(begin)), 0)
    if number.isdigit() and len(number) < 5 and days:
        return format_utc(parse_utc(utc_now()) + timedelta(days=int(number) * days))
    try:
        return format_utc(parse_utc(words.strip()))
    except ValueError:
        raise ValueError(
            f"“{words.strip()}” is no date. Write one as 2027-01-31, a time from now as 7 days, or never."
        ) from None


class FactActions:
    """Verbs for :class:`~tui_agent.agent.actions.MemoryActions`. Every one is announced and can be undone."""

    _core: Callable[[], Core]
    _emit: Callable[[Event], None]

    def _from_log(self, text: str) -> None:
        raise NotImplementedError

    def _push(self, text: str, run: Callable[[], Awaitable[object]]) -> None:
        raise NotImplementedError

    async def set_expiry(self, item_id: str, when: str) -> ActionResult:
        """Set until when a fact holds: a date, a number of days, or ``never``."""
        core = self._core()
        try:
            at = end_of(when)
            fact = await core.db.run(core.stores.ledger.set_expiry, item_id, at)
        except (LookupError, ValueError, MemoryFileError) as error:
            return ActionResult(False, _words(error))
        said = f"Holds until {fact.expires_at} UTC" if fact.expires_at else "Holds until further notice"
        await core.facts_changed()
        self._from_log(f"the new expiry of {_short(fact.fact)}")
        self._emit(MemoryChanged("expiry", "fact", item_id, fact.fact, said, undo=True))
        return ActionResult(True, f"{said}: {_short(fact.fact)}", undo=True, id=item_id)

    async def undo_correction(self, item_id: str) -> ActionResult:
        """Take a correction back: what it replaced holds again, and the correction is gone."""
        core = self._core()
        try:
            fact = await core.db.run(core.stores.ledger.undo_correction, item_id)
        except (LookupError, MemoryFileError) as error:
            return ActionResult(False, _words(error))
        await core.facts_changed(f"The user took a correction back. It says again: {fact.fact}")
        self._emit(MemoryChanged("undone", "fact", fact.id, fact.fact, "the correction is gone"))
        return ActionResult(True, f"The correction is gone; this holds again: {_short(fact.fact)}", id=fact.id)

    async def promote(self, item_id: str) -> ActionResult:
        """Keep a fact for all projects of the user."""
        core = self._core()
        most = core.settings.user_notes_max_lines
        try:
            fact = await core.db.run(core.stores.ledger.promote, item_id, most=most)
        except (LookupError, ValueError, MemoryFileError) as error:
            return ActionResult(False, _words(error))
        await core.facts_changed()
        self._from_log(f"kept for all projects: {_short(fact.fact)}")
        self._emit(MemoryChanged("promoted", "fact", item_id, fact.fact, "for all your projects", undo=True))
        return ActionResult(True, f"Kept for all your projects: {_short(fact.fact)}", undo=True, id=item_id)

    async def demote(self, item_id: str) -> ActionResult:
        """Keep a promoted fact for this project only."""
        core = self._core()
        try:
            fact = await core.db.run(core.stores.ledger.demote, item_id)
        except (LookupError, ValueError, MemoryFileError) as error:
            return ActionResult(False, _words(error))
        await core.facts_changed()
        self._from_log(f"kept for this project only: {_short(fact.fact)}")
        self._emit(MemoryChanged("demoted", "fact", item_id, fact.fact, "for this project only", undo=True))
        return ActionResult(True, f"Kept for this project only: {_short(fact.fact)}", undo=True, id=item_id)

    # -- lines the user wrote by hand -----------------------------------------------------------------------------

    async def correct_line(self, line_id: str, text: str) -> ActionResult:
        """Change a line that the user wrote by hand and no fact is written on."""
        line = await self._line(line_id)
        return await self._change_line(line, text) if line is not None else _gone()

    async def remove_line(self, line_id: str) -> ActionResult:
        """Take such a line out of its file."""
        line = await self._line(line_id)
        return await self._change_line(line, "") if line is not None else _gone()

    async def delete_line(self, line_id: str) -> ActionResult:
        """Take such a line out of its file, and its text out of everything the program owns."""
        line = await self._line(line_id)
        if line is None:
            return _gone()
        core = self._core()
        result = await self._change_line(line, "")
        if not result.ok or not can_be_sought(line.text):
            return ActionResult(result.ok, result.text if not result.ok else "Deleted for good.")
        report = await asyncio.to_thread(mask_everywhere, core.stores, [line.text], drop_index=core.drop_index)
        await core.connection.forget_states()
        await core.facts_changed()
        await core.start_epoch(core.masked_log([line.text]))
        words = [report.sentence(), *map(str, report.left), *report.beyond, *report.notes]
        return ActionResult(not report.left, " ".join(words))

    async def _line(self, line_id: str) -> OwnLine | None:
        core = self._core()
        try:
            line: OwnLine = await core.db.run(find_line, core.stores, line_id)
        except LookupError:
            return None
        return line

    async def _change_line(self, line: OwnLine, new: str) -> ActionResult:
        core = self._core()
        try:
            done = await core.db.run(change_line, core.stores, line, new)
        except MemoryFileError as error:
            return ActionResult(False, str(error))
        if not done:
            return _gone()
        told = f"changed a note: it now says {new}" if new else f"took a note back: {line.text}"
        await core.facts_changed(f"The user {told}")
        self._emit(MemoryChanged("changed" if new else "removed", "file", "", new or line.text, target=line.path))
        return ActionResult(True, f"Now: {_short(new)}" if new else f"Taken out of {line.path}.")


def _gone() -> ActionResult:
    return ActionResult(False, "That line is not there any more; the list shows what is.")


def _words(error: BaseException) -> str:
    return str(error.args[0]) if error.args else str(error)


def _short(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
