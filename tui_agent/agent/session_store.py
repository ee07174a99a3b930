"""What a session offers on its store: the vector index beside the facts, and what waits for a decision on it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Collection, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.agent.actions import MemoryActions
from tui_agent.agent.core import Core
from tui_agent.agent.decisions import Decisions
from tui_agent.agent.events import Event, IndexChanged
from tui_agent.agent.indexing import IndexKeeper
from tui_agent.agent.session_memory import SessionMemory
from tui_agent.agent.views import ActionResult, Inspection, ServerStatus
from tui_agent.memory.index_status import IndexStatus, index_on_disk
from tui_agent.settings import Settings

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores
    from tui_agent.memory.legacy_store import LegacyRow, LegacyStore

log = logging.getLogger(__name__)


class SessionStore(SessionMemory):
    """The store half of :class:`~tui_agent.agent.session.Session`."""

    _core: Core
    _emit: Callable[[Event], None]
    _actions: MemoryActions
    _keeper: IndexKeeper | None = None
    _decisions: Decisions | None = None

    @property
    def stores(self) -> Stores:
        """The project's stores."""
        raise NotImplementedError

    @property
    def settings(self) -> Settings:
        """Settings in force."""
        raise NotImplementedError

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        raise NotImplementedError

    # -- the vector index -----------------------------------------------------------------------------------------

    @property
    def index(self) -> IndexStatus:
        """How facts are found by meaning now: by Chroma or exactly, and why."""
        if self._keeper is not None:
            return self._keeper.status
        return dataclasses.replace(index_on_disk(self.stores.project, self.settings.chroma.mode), owner=False)

    def _with_index(self, status: ServerStatus) -> ServerStatus:
        """The server's status; a vector store on another machine leaves this one too."""
        leaves = self._keeper is not None and self._keeper.leaves
        return dataclasses.replace(status, local=False, memory_elsewhere=True) if leaves else status

    def _use_index(self) -> None:
        """From now on facts are kept in Chroma as well, once the session has started."""
        if self._keeper is None:
            self._keeper = IndexKeeper(self.stores, self.settings, self._index_changed)
        self._core.use_index(self._keeper)

    def _index_changed(self, event: Event) -> None:
        if isinstance(event, IndexChanged):
            degraded = self._core.connection.degraded
            degraded.pop("index", None)
            if event.mark:
                degraded["index"] = event.mark
        self._emit(event)

    async def _index_settings(self, before: Settings) -> None:
        """The settings have changed; another index is used when they say so."""
        about = ("chroma", "allow_remote", "allow_hosts")
        if self._keeper is None or all(getattr(self.settings, name) == getattr(before, name) for name in about):
            return
        await self._keeper.close()
        self._core.connection.degraded.pop("index", None)
        self._keeper = None
        self._use_index()
        self._begin_index()

    def _begin_index(self) -> None:
        """The first screen and the first answer are not waiting any more: the index may load."""
        if self._keeper is not None:
            self._keeper.begin(self._core.connection.lazy_embedder.identity)

    async def _close_index(self) -> None:
        if self._keeper is not None:
            await self._keeper.close()

    # -- what waits for a decision --------------------------------------------------------------------------------

    def _begin_decisions(self) -> None:
        """Look for edits made while the app was not running, and watch for those to come."""
        self._decisions = Decisions(lambda: self._core, self._emit, self._actions.noted, self._read_legacy)
        self._spawn(self._decisions.begin())

    def _read_legacy(self, store: LegacyStore) -> list[LegacyRow]:
        """In a process of its own: it is another program's data, read by native code."""
        from tui_agent.memory.index_process import IndexProcess

        reader = IndexProcess(self.stores.project.pending_dir / "none", self.stores.project.id, "none")
        try:
            return reader.read_legacy(store)
        finally:
            reader.close()

    async def _files_edited(self, paths: Collection[Path]) -> None:
        if self._decisions is not None:
            await self._decisions.edited(sorted(paths))

    @property
    def decisions(self) -> Decisions:
        """Edits by hand, pairs of facts and another program's memory, as far as they wait for a yes."""
        if self._decisions is None:
            self._decisions = Decisions(lambda: self._core, self._emit, self._actions.noted, self._read_legacy)
        return self._decisions

    async def quarantined(self) -> list[Inspection]:
        """What waits for approval: statements, files changed by hand, pairs of facts."""
        return [*await self.decisions.listed(), *await super().quarantined()]

    async def inspect(self, ref: str) -> Inspection:
        """Everything known of one item.

        Raises:
            LookupError: there is no such item any more.
        """
        store, _, id = ref.partition(":")
        if store == "quarantine" and self.decisions.knows(id):
            for item in await self.decisions.listed():
                if item.ref == ref:
                    return item
            raise LookupError("That does not wait any more.")
        return await super().inspect(ref)

    async def approve(self, id: str) -> ActionResult:
        """Say yes to something that waits."""
        if self.decisions.knows(id):
            return await self.decisions.decide(id, True)
        return await super().approve(id)

    async def reject(self, id: str) -> ActionResult:
        """Say no to something that waits."""
        if self.decisions.knows(id):
            return await self.decisions.decide(id, False)
        return await super().reject(id)

    async def consolidate(self, *, everything: bool = False) -> ActionResult:
        """Look for facts that say the same or exclude each other, by their words; they wait for the user."""
        found = await self.decisions.propose(everything=everything)
        return ActionResult(True, f"{len(found)} pairs wait for your yes." if found else "No two facts look like one.")

    async def reindex(self) -> ActionResult:
        """Throw the vector index away and make it anew from the rows, with the embedding model as it is now."""
        await self._core.connection.choose_embedder_again(self._emit)
        await self._core.recaller.index_missing()
        if self._keeper is None:
            return ActionResult(False, "The vector index is kept by the chat; there is none in this session.")
        return await self._keeper.rebuild(self._core.connection.lazy_embedder.identity)
