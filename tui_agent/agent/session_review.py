"""What a session offers to people who look after their memory: the review, the log, sharing, and more verbs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from tui_agent.agent.actions import MemoryActions
from tui_agent.agent.core import Core
from tui_agent.agent.events import Event, Notice
from tui_agent.agent.inspecting import Inspector, age_words
from tui_agent.agent.review_views import ChangeView, PromptFile, ReviewView, SharingView
from tui_agent.agent.session_memory import SessionMemory
from tui_agent.agent.views import ActionResult, Field, Inspection
from tui_agent.memory.audit import fetchable
from tui_agent.memory.hand_lines import DatedLine, dated, lines_to_review, note_looked
from tui_agent.memory.own_notes import find_line, own_lines
from tui_agent.memory.places import RULES, USER, MemoryFileError
from tui_agent.memory.reviewing import announce_review, note_reviewed, review_due, reviewed_at
from tui_agent.memory.sharing import SharingRefused, scan, share, sharing_state, unshare
from tui_agent.memory.types import Fact
from tui_agent.memory.upkeep import Happened, counted, happened
from tui_agent.memory.upkeep import stats as count

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores

log = logging.getLogger(__name__)

_NOTE = "note"
_MOST_LINES = 20


class SessionReview(SessionMemory):
    """The part of :class:`~tui_agent.agent.session.Session` behind the review, the log and the remembered screen."""

    _core: Core
    _actions: MemoryActions
    _inspector: Inspector
    _emit: Callable[[Event], None]

    @property
    def stores(self) -> Stores:
        """The project's stores."""
        raise NotImplementedError

    # -- looking --------------------------------------------------------------------------------------------------

    async def review(self, *, seen: bool = False) -> ReviewView:
        """Everything that wants a look. ``seen`` says that a person is looking: the week until the next notice begins
        anew."""
        waiting = await self.quarantined()
        view: ReviewView = await self._core.db.run(self._review, tuple(waiting), seen)
        return view

    def _review(self, waiting: tuple[Inspection, ...], seen: bool) -> ReviewView:
        facts, row, db = self.stores.facts, self._inspector.row, self.stores.db
        queue, total = facts.review(), len(facts.review(limit=100_000))
        if seen:
            note_reviewed(db)
        numbers = count(self.stores)
        by_hand = lines_to_review(self.stores)
        return ReviewView(
            queue=tuple(row(fact, _unconfirmed(fact)) for fact in queue),
            queue_total=total,
            new=tuple(row(fact, _new(fact, live=facts.is_live(fact.id))) for fact in facts.new_since(1)),
            waiting=waiting,
            unused=tuple(row(fact, _unused(fact)) for fact in facts.unused()),
            fetchable=tuple(row(one.fact, one.reason) for one in fetchable(facts.live())),
            by_hand=tuple(_shown(one, _by_hand(one)) for one in by_hand[:_MOST_LINES]),
            by_hand_total=len(by_hand),
            live=numbers.facts["live_memory"],
            rows=numbers.facts["memory"],
            health=numbers.health,
            healthy=numbers.healthy,
            due=review_due(db, total + len(by_hand)),
            reviewed_at=reviewed_at(db),
        )

    async def change_log(self, ref: str = "", zone: str = "", limit: int = 300) -> list[ChangeView]:
        """What happened to memory (or to one item), newest first. ``zone`` is ``fact``, ``working`` or empty: both."""
        item = ref.partition(":")[2] or None
        lines: list[Happened] = await self._core.db.run(happened, self.stores, item_id=item, zone=zone, limit=limit)
        return [ChangeView(line.at, line.zone, line.event, line.id, line.told) for line in lines]

    async def prompt_files(self) -> list[PromptFile]:
        """Rules, AGENTS.md and the other files in the fixed part of the prompt, as they are on disk now."""
        await asyncio.to_thread(self._core.sources.refresh)
        return [
            PromptFile(part.name, part.path, part.text, part.tokens, part.note) for part in self._core.sources.files()
        ]

    async def sharing(self) -> SharingView:
        """Whether git may take this memory, and which files of it."""
        state = await asyncio.to_thread(sharing_state, self.stores.project)
        return SharingView(state.mode, state.files, state.notes)

    async def share(self, on: bool, *, anyway: bool = False) -> ActionResult:
        """Let git take the team's part of the memory, or keep it private again. Secrets stop it; personal data stops it
        unless ``anyway``, and is then listed in ``extra`` by place."""
        try:
            if not on:
                state = await asyncio.to_thread(unshare, self.stores.project)
                if state.mode == "custom":
                    return ActionResult(False, " ".join(state.notes))
                return ActionResult(True, " ".join(("The memory is private again.", *state.notes)))
            await self._core.db.run(self.stores.ledger.write_facts_json)
            found = await asyncio.to_thread(scan, self.stores)
            if found.secrets:
                first = found.secrets[0]
                where = f"{first.file}:{first.line}"
                return ActionResult(
                    False,
                    f"Nothing was shared: {where} holds what looks like a password, key or token. Remove it first.",
                )
            if found.concerns and not anyway:
                places = {f"{one.file}:{one.line}": f"{one.kind}: {one.excerpt}" for one in found.concerns}
                text = f"{counted(len(found.concerns), 'place')} in it look personal."
                return ActionResult(False, text, extra=places)
            state = await asyncio.to_thread(share, self.stores.project)
        except (SharingRefused, MemoryFileError) as error:
            return ActionResult(False, str(error))
        return ActionResult(True, " ".join((f"Git may now take {', '.join(state.files)}.", *state.notes)))

    async def notes_counted(self) -> tuple[int, int]:
        """How many notes about the user every prompt carries, and how many it can."""
        cap = self._core.settings.user_notes_max_lines
        found = await self._core.db.run(self.stores.facts.live_user_notes, cap)
        return found.total, cap

    async def look_after(self) -> None:
        """At the start: follow what other projects did to the user's notes, and say once when a review is due."""
        db = self._core.db
        for fact in await db.run(self.stores.ledger.follow_everywhere):
            self._emit(Notice("info", f"No longer among your notes for all projects, so it ended here: {fact.fact}"))

        def due() -> tuple[int, int]:
            facts, lines = len(self.stores.facts.review(limit=100_000)), len(lines_to_review(self.stores))
            return (facts, lines) if announce_review(self.stores.db, facts + lines) else (0, 0)

        facts, lines = await db.run(due)
        old = [f"{counted(facts, 'fact was', 'facts were')} not confirmed for 90 days"] if facts else []
        if lines:
            old.append(f"{counted(lines, 'line')} that you wrote by hand had no look for a month")
        if old:
            self._emit(Notice("info", f"{' and '.join(old)}. /review shows them.", key="review"))

    # -- verbs ----------------------------------------------------------------------------------------------------

    async def set_expiry(self, ref: str, when: str) -> ActionResult:
        """Set until when a fact holds: ``2027-01-31``, ``7 days``, or ``never``."""
        return await self._actions.set_expiry(_id(ref), when)

    async def undo_correction(self, ref: str) -> ActionResult:
        """Take a correction back: what it replaced holds again, and the correction is gone."""
        return await self._actions.undo_correction(_id(ref))

    async def promote(self, ref: str) -> ActionResult:
        """Keep a fact for all projects of the user."""
        return await self._actions.promote(_id(ref))

    async def demote(self, ref: str) -> ActionResult:
        """Keep a promoted fact for this project only."""
        return await self._actions.demote(_id(ref))

    # -- lines written by hand, beside the facts ------------------------------------------------------------------

    async def remembered(self) -> list[Inspection]:
        """Everything that is remembered for long: facts, then lines about the user that the user wrote by hand."""

        def read() -> list[DatedLine]:
            return dated(self.stores, own_lines(self.stores))

        lines: list[DatedLine] = await self._core.db.run(read)
        return [*await super().remembered(), *map(_shown, lines)]

    async def inspect(self, ref: str) -> Inspection:
        """Everything known of one item.

        Raises:
            LookupError: there is no such item any more.
        """
        if not _is_note(ref):
            return await super().inspect(ref)

        def read() -> DatedLine:
            return dated(self.stores, [find_line(self.stores, _id(ref))])[0]

        return _shown(await self._core.db.run(read))

    async def confirm(self, ref: str) -> ActionResult:
        """Say that a fact (or a line by hand) still holds today."""
        if not _is_note(ref):
            return await super().confirm(ref)

        def look() -> str:
            line = find_line(self.stores, _id(ref))
            note_looked(self.stores, line)
            return line.text

        try:
            text: str = await self._core.db.run(look)
        except LookupError as error:
            return ActionResult(False, str(error))
        return ActionResult(True, f"Still holds; it comes up again in a month: {text}", id=_id(ref))

    async def correct(self, ref: str, text: str) -> ActionResult:
        """Replace a fact by ``text``; the old one stays in its history."""
        return await (self._actions.correct_line(_id(ref), text) if _is_note(ref) else super().correct(ref, text))

    async def expire(self, ref: str) -> ActionResult:
        """Say that a fact no longer holds."""
        return await (self._actions.remove_line(_id(ref)) if _is_note(ref) else super().expire(ref))

    async def delete_forever(self, ref: str) -> ActionResult:
        """Destroy a fact and what it replaced, everywhere the app keeps it."""
        return await (self._actions.delete_line(_id(ref)) if _is_note(ref) else super().delete_forever(ref))


def _id(ref: str) -> str:
    return ref.partition(":")[2] or ref


def _is_note(ref: str) -> bool:
    return ref.partition(":")[0] == _NOTE


def _shown(one: DatedLine, why: str = "") -> Inspection:
    line = one.line
    everywhere, rules = line.where == "everywhere", line.name == RULES
    about_user = line.name == USER
    fields = (
        Field("kind", "note"),
        Field("scope", "all projects" if everywhere else "this project"),
        Field("written in", f"{line.path}{f', {line.section}' if line.section else ''}"),
        Field("date", one.date[:10] + ("" if one.own_date else ", when it was first seen")),
        *((Field("looked at", one.looked_at[:10]),) if one.looked_at else ()),
    )
    title = "a note for all your projects" if everywhere else "a line of your notes" if about_user else "a line by hand"
    return Inspection(
        f"{_NOTE}:{line.id}",
        title,
        line.text,
        fields,
        source=f"{'kept by you for all projects' if everywhere else 'written by hand'}, in {line.path}",
        why=why or ("every prompt carries it" if about_user else f"it stands in {line.name}"),
        # Nobody but the user edits the rules.
        actions=("confirm",) if rules else ("confirm", "correct", "expire", "delete_forever"),
    )


def _by_hand(one: DatedLine) -> str:
    since = f"looked at {one.looked_at[:10]}" if one.looked_at else f"from {one.date[:10]}"
    return f"by hand, {since}, {age_words(one.since)}"


def _unconfirmed(fact: Fact) -> str:
    return f"not confirmed since {fact.confirmed_at[:10]}, {age_words(fact.confirmed_at)}"


def _new(fact: Fact, *, live: bool) -> str:
    state = "" if live else ", replaced or ended since"
    return f"new since {fact.created_at[:16]} UTC{state}"


def _unused(fact: Fact) -> str:
    if fact.last_used_at:
        return f"last recalled {fact.last_used_at[:10]}, {age_words(fact.last_used_at)}"
    return f"never recalled since {fact.created_at[:10]}, {age_words(fact.created_at)}"
