"""What waits for a decision of the user on whole files and stores: edits made while the app was not looking, pairs of
facts of which one may go, and a memory that another program has left here.

Edits that are seen while the app runs are taken over at once, because the person who makes them is there; what is found
at the start waits for one yes per file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.agent.events import Event, FileChanged, MemoryChanged, Notice
from tui_agent.agent.views import ActionResult, Field, Inspection
from tui_agent.memory.backup import Backups
from tui_agent.memory.consolidation import RELATIONS_SCHEMA, Complete, Consolidator, MergeProposal
from tui_agent.memory.database import StoreError
from tui_agent.memory.facts_file import NAME, FileChange, verbs_counted
from tui_agent.memory.hand_edits import Taken, pending, pending_lines, put_back, sentences, take_over
from tui_agent.memory.legacy_store import (
    LegacyImport,
    LegacyStore,
    decline_legacy,
    find_legacy_store,
    import_legacy,
    not_imported,
)
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.upkeep import counted

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

log = logging.getLogger(__name__)

FILE, MERGE, LEGACY = "file", "merge", "legacy"
_EVENTS = {"added": "saved", "changed": "superseded", "moved": "superseded", "removed": "expired", "dated": "confirmed"}


class Decisions:
    """The waiting list of one session beside the quarantine.

    Args:
        core: the conversation that is open now.
        emit: hears of what is taken over and what waits.
        noted: told of every change, so that it can be taken back.
        read_legacy: reads another program's store somewhere it can do no harm.
    """

    def __init__(
        self,
        core: Callable[[], Core],
        emit: Callable[[Event], None],
        noted: Callable[[MemoryChanged], None],
        read_legacy: Callable[[LegacyStore], Sequence[Any]] | None = None,
    ) -> None:
        self._core = core
        self._emit = emit
        self._noted = noted
        self._read_legacy = read_legacy
        self._one = asyncio.Lock()
        self._begun = asyncio.Event()
        self._texts: dict[str, str] = {}
        self._said: set[str] = set()
        self.waiting: dict[str, FileChange] = {}
        self.legacy: LegacyStore | None = None

    # -- edits of files -------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Look what was changed while the app was not running."""
        async with self._one:
            stores = self._core().stores
            try:
                found = await self._core().db.run(pending, stores)
                self._texts = await self._core().db.run(self._read_texts)
                self.legacy = await self._core().db.run(self._find_legacy)
            finally:
                self._begun.set()
            for change in found:
                if change.problem:
                    self._trouble(change)
                    continue
                self.waiting[change.name] = change
                text = f"{change.name} was changed while the app was not running: {change.words()}. It waits for your "
                self._emit(Notice("info", f"{text}yes (f5).", key=f"changed:{change.name}"))
            if self.legacy is not None:
                rows = sum(each.rows for each in self.legacy.collections)
                text = f"Another program has left {counted(rows, 'fact')} in {self.legacy.folder.name}. "
                self._emit(Notice("info", f"{text}They can be imported (f5).", key="legacy"))

    async def edited(self, paths: Sequence[Path]) -> None:
        """These files were changed by somebody else while the app runs."""
        await self._begun.wait()
        async with self._one:
            core = self._core()
            root = core.stores.project.memory_dir
            for path in paths:
                if not path.is_relative_to(root):
                    continue
                name = path.relative_to(root).as_posix()
                change = await core.db.run(self._change_of, name)
                if change is None:
                    self.waiting.pop(name, None)
                    continue
                if change.problem:
                    self._trouble(change)
                elif name in self.waiting or change.large:
                    if name not in self.waiting:
                        text = f"Much of {name} is gone ({change.words()}), so it waits for your yes (f5)."
                        self._emit(Notice("warning", text, key=f"changed:{name}"))
                    self.waiting[name] = change
                else:
                    await self._take(change)

    def _change_of(self, name: str) -> FileChange | None:
        stores = self._core().stores
        if name == NAME:
            return stores.ledger.facts_file.pending() if stores.ledger.facts_file is not None else None
        return pending_lines(stores, name, self._texts.get(name))

    def _read_texts(self) -> dict[str, str]:
        files = self._core().stores.files
        found = {}
        for name in files.listing():
            try:
                found[name] = files.read(name)
            except MemoryFileError:
                continue
        return found

    async def _take(self, change: FileChange) -> list[Taken]:
        core = self._core()
        try:
            taken: list[Taken] = await core.db.run(take_over, core.stores, change)
        except MemoryFileError as error:
            self._emit(Notice("warning", str(error), key=f"changed:{change.name}"))
            return []
        self._texts = await core.db.run(self._read_texts)
        for one in taken:
            if (what := _EVENTS.get(one.verb)) is not None:
                event = MemoryChanged(what, "fact", one.fact_id, one.text, f"{change.name}, by hand", undo=True)
                self._noted(event)
                self._emit(event)
        for sentence in sentences(change, taken):
            if sentence not in self._said:
                self._said.add(sentence)
                self._emit(Notice("warning", sentence, key=f"changed:{change.name}:{sentence}"))
        done = [one for one in taken if one.verb in _EVENTS]
        if done:
            if change.name == NAME:
                self._emit(FileChanged(NAME, verbs_counted(one.verb for one in done)))
            said = "; ".join(f"{'no longer holds' if o.verb == 'removed' else 'now'}: {o.text}" for o in done)
            await core.facts_changed(f"The user edited {change.name}. {said}")
        return taken

    def _trouble(self, change: FileChange) -> None:
        if change.problem not in self._said:
            self._said.add(change.problem)
            self._emit(Notice("warning", change.problem, key=f"changed:{change.name}:{change.problem}"))

    # -- another program's memory ---------------------------------------------------------------------------------

    def _find_legacy(self) -> LegacyStore | None:
        stores = self._core().stores
        found = find_legacy_store(stores.project.vector_dir)
        mine = found.of(stores.project.id) if found is not None else None
        return None if mine is None else not_imported(mine, stores.db)

    async def _import_legacy(self, store: LegacyStore) -> ActionResult:
        core = self._core()
        stores = core.stores

        def work() -> LegacyImport:
            Backups(stores.project).make(stores.db, "before import")
            return import_legacy(
                store, stores.facts, stores.db, gate=stores.gate, approved=True, read=self._read_legacy
            )

        try:
            done = await asyncio.to_thread(work)
        except (OSError, StoreError) as error:
            return ActionResult(False, str(error))
        self.legacy = None
        await core.facts_changed("")
        refused = f", {len(done.refused)} refused" if done.refused else ""
        waiting = f", {done.waiting} wait for your yes" if done.waiting else ""
        text = f"Imported {counted(done.imported, 'fact')}; {done.known} were known{waiting}{refused}."
        self._emit(Notice("info", text, key="legacy"))
        return ActionResult(True, text)

    # -- pairs of facts -------------------------------------------------------------------------------------------

    def consolidator(self, complete: Complete | None = None) -> Consolidator:
        """Finds pairs of facts that say the same or exclude each other."""
        core = self._core()
        identity = core.connection.lazy_embedder.identity
        return Consolidator(core.db, core.stores.facts, complete, identity=identity)

    async def propose(self, complete: Complete | None = None, *, everything: bool = False) -> list[MergeProposal]:
        """Look for pairs now; they wait for the user. A model is asked where ``complete`` is given."""
        consolidator = await self._core().db.run(self.consolidator, complete)
        found: list[MergeProposal] = await consolidator.propose(everything=everything)
        if found:
            text = f"{counted(len(found), 'pair')} of facts may say the same or exclude each other (f5 shows them)."
            self._emit(Notice("info", text, key="consolidation"))
        return found

    schema = RELATIONS_SCHEMA
    """The form in which a model is asked about pairs."""

    async def run(self, complete: Complete) -> None:
        """The weekly look, with a model."""
        await self.propose(complete)

    async def due(self) -> bool:
        """Whether it is time to look for pairs again, and there is something to compare."""
        return bool(await self._core().db.run(lambda: self.consolidator().due() and self._several()))

    def _several(self) -> bool:
        # Asked after every answer: not by counting them all.
        return len(self._core().stores.db.rows("SELECT 1 FROM live_memory LIMIT 2")) > 1

    async def _decide_merge(self, pair: str, yes: bool) -> ActionResult:
        core = self._core()

        def work() -> tuple[MergeProposal, str]:
            consolidator = self.consolidator()
            proposal = consolidator.find(pair)
            if not yes:
                consolidator.decline(proposal)
                return proposal, ""
            return proposal, consolidator.apply(proposal, core.stores.ledger.merge).id

        try:
            proposal, fact_id = await core.db.run(work)
        except (LookupError, ValueError, MemoryFileError) as error:
            return ActionResult(False, str(error))
        if not yes:
            return ActionResult(True, "Both stay; the pair is not proposed again.")
        event = MemoryChanged("superseded", "fact", fact_id, proposal.keep.fact, proposal.reason, undo=True)
        self._noted(event)
        self._emit(event)
        await core.facts_changed(f"The user merged two facts. It now says: {proposal.keep.fact}")
        return ActionResult(True, f"One fact now: {proposal.keep.fact}", undo=True, id=fact_id)

    # -- the list -------------------------------------------------------------------------------------------------

    async def listed(self) -> list[Inspection]:
        """Everything that waits here, as the remembered screen and the review show it."""
        found = [_of_file(change) for change in self.waiting.values()]
        if self.legacy is not None:
            found.append(_of_legacy(self.legacy))
        pairs = await self._core().db.run(lambda: self.consolidator().waiting())
        return [*found, *map(_of_pair, pairs)]

    def knows(self, id: str) -> bool:
        """Whether an id (of ``approve`` and ``reject``) is one of this list."""
        return id.partition(":")[0] in (FILE, MERGE, LEGACY)

    async def decide(self, id: str, yes: bool) -> ActionResult:
        """The user's yes or no to one of them."""
        what, _, rest = id.partition(":")
        if what == MERGE:
            return await self._decide_merge(rest, yes)
        if what == LEGACY:
            store = self.legacy
            if store is None:
                return ActionResult(False, "There is nothing left to import.")
            if yes:
                return await self._import_legacy(store)
            await self._core().db.run(decline_legacy, store, self._core().stores.db)
            self.legacy = None
            return ActionResult(True, "It stays where it is and is not offered again.")
        async with self._one:
            waiting = self.waiting.pop(rest, None)
            if waiting is None:
                return ActionResult(False, "That change is not there any more.")
            # What is in the file now counts, not what was when it was first seen.
            change = await self._core().db.run(self._change_of, rest)
            if change is None:
                return ActionResult(True, f"{rest} says what is remembered again; there is nothing to decide.")
            if change.problem:
                return ActionResult(False, change.problem)
            return await (self._accept(change) if yes else self._refuse(change))

    async def _accept(self, change: FileChange) -> ActionResult:
        taken = await self._take(change)
        refused = sentences(change, taken)
        return ActionResult(
            bool(taken) and not refused, " ".join(refused) or f"Taken over: {change.words()}.", undo=True
        )

    async def _refuse(self, change: FileChange) -> ActionResult:
        core = self._core()
        try:
            kept = await core.db.run(put_back, core.stores, change)
        except MemoryFileError as error:
            return ActionResult(False, str(error))
        await core.facts_changed("")
        where = f" The file as it was is kept as {kept}." if kept else ""
        return ActionResult(True, f"{change.name} says again what is remembered.{where}")


def _of_file(change: FileChange) -> Inspection:
    fields = [
        Field(edit.verb, f"{f'line {edit.line}: ' if edit.line else ''}{edit.text}"
              + (f" (was: {edit.before})" if edit.before and edit.before != edit.text else ""))
        for edit in change.edits
    ]  # fmt: skip
    return Inspection(
        f"quarantine:{FILE}:{change.name}", "changed by hand", f"{change.name}: {change.words()}", tuple(fields),
        source=change.name, why="It was changed by hand; nothing of it is taken over without your yes.",
        actions=("approve", "reject"),
    )  # fmt: skip


def _of_pair(pair: MergeProposal) -> Inspection:
    word = "say the same" if str(pair.relation) == "duplicate" else "exclude each other"
    return Inspection(
        f"quarantine:{MERGE}:{pair.id}", "two facts", f"{pair.keep.fact}  ←  {pair.retire.fact}",
        (Field("stays", pair.keep.fact), Field("is replaced", pair.retire.fact), Field("found by", pair.by)),
        source=pair.keep.source, why=f"They may {word}. {pair.reason}", actions=("approve", "reject"),
    )  # fmt: skip


def _of_legacy(store: LegacyStore) -> Inspection:
    rows = sum(each.rows for each in store.collections)
    return Inspection(
        f"quarantine:{LEGACY}:store", "another memory", f"{counted(rows, 'fact')} in {store.folder.name}",
        tuple(Field("collection", f"{each.name}, {counted(each.rows, 'fact')}") for each in store.collections),
        source=str(store.folder), actions=("approve", "reject"),
        why="A plain Chroma script wrote it. A yes imports what may be kept; the store itself stays as it is.",
    )  # fmt: skip
