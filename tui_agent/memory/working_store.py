"""The inside of the working memory: its state, and how that reaches the database."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tui_agent.memory.cold import ColdStore
from tui_agent.memory.cold_search import Hit
from tui_agent.memory.cold_tables import Batch, Change, LogLine
from tui_agent.memory.database import Database, StoreError
from tui_agent.memory.hot import HotZone, Item
from tui_agent.memory.item_vectors import ItemVectors
from tui_agent.memory.references import ReferenceIndex
from tui_agent.memory.rendering import Renderer
from tui_agent.memory.scoring import Scorer, Weights
from tui_agent.memory.text import new_id
from tui_agent.memory.types import RecalledItem
from tui_agent.memory.working_types import (
    MemoryEvent,
    MemoryScope,
    Pending,
    TokenCounter,
    estimate_tokens,
    stamp,
)

logger = logging.getLogger(__name__)

_KEPT_EVENTS = 200
_UNINDEXED = 32  # items that may wait for the index while more are coming


class Stored:
    """State, and writing it. Coroutines of the subclasses take the lock; what is synchronous happens between two awaits
    and needs none. Every change is noted in ``_pending`` and written with :meth:`_flush`; until then the item stays
    here, so a full disk or a locked file loses nothing."""

    def __init__(
        self,
        store: Database | ColdStore | Path | str | None,
        llm: Any,
        counter: TokenCounter | None,
        max_tokens: int,
        scope: Any,
        max_pinned_tokens: float | None,
        session_id: str | None,
        weights: Weights | None,
        calibrate: bool,
        weigh_names: bool,
        embed_model: str,
    ) -> None:
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {max_tokens}.")
        if store is None or isinstance(store, (str, Path)):
            store = Database(":memory:" if store is None else store)
        self.store = store if isinstance(store, ColdStore) else ColdStore(store)
        self.scope = MemoryScope.of(scope)
        self._scope = self.scope.key
        self.max_tokens = max_tokens
        self.max_pinned_tokens: float = max_tokens // 3 if max_pinned_tokens is None else max_pinned_tokens
        self.events: deque[MemoryEvent] = deque(maxlen=_KEPT_EVENTS)
        self.evictions = 0
        self.proposals: tuple[RecalledItem, ...] = ()
        self._count = _counting(counter)
        self._vectors = ItemVectors(llm, embed_model)
        self._session_given = session_id is not None
        self.session_id = session_id or new_id()
        self._goal = ""
        self._step = 0
        self._scorer = Scorer(weights or Weights())
        self._flags = (calibrate, weigh_names)
        self._hot = HotZone(self._scorer, calibrate=calibrate, weigh_names=weigh_names)
        self._index = ReferenceIndex()
        self._rename(new_id()[-3:])
        self._lock = asyncio.Lock()
        self._ready = False
        self._calibrated_for = ""
        self._calibration_saved = 0
        self._session_written: tuple[str, str, str] = ("", "", "")
        self._pending: dict[str, tuple[Item, Pending]] = {}
        self._log: list[LogLine] = []
        self._unsaved = False
        self._imported: list[Item] | None = None
        self._cold_known = 0
        self._in_prompt: frozenset[str] = frozenset()
        self._was_over = False
        self._manifest_found: tuple[str, int, list[Hit]] = ("", 0, [])
        self._store_trouble = ""
        self._saving: asyncio.Task[None] | None = None
        self._indexing: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    # --- what is known without waiting --------------------------------------------------------------

    @property
    def step(self) -> int:
        """The step counter: it grows with every item added, touched, merged or brought back, and never goes back."""
        return self._step

    @property
    def goal(self) -> str:
        return self._goal

    @property
    def used_tokens(self) -> int:
        """Tokens that the hot items take when rendered, with headers and frame; 0 when there are none."""
        return self._hot.used + self._frame_tokens if len(self._hot) else 0

    @property
    def pinned_tokens(self) -> int:
        """The part of :attr:`used_tokens` that pinned items take."""
        return self._hot.pinned_cost

    @property
    def trouble(self) -> str:
        """What does not work now (the store, the embedder), as a sentence; empty when all is well."""
        return self._store_trouble or self._vectors.trouble

    # --- the frame and the zone ------------------------------------------------------------------------

    def _rename(self, word: str) -> None:
        self._renderer = Renderer(word, self._count)
        self._reframe()

    def _reframe(self) -> None:
        """Measures the frame; in a small budget its explanation and the goal give way to the items."""
        head, tail = self._renderer.frame(self._goal)
        for kept in (head, head[:1], ()):
            tokens = self._renderer.count("\n".join((*kept, *tail))) + 1
            if tokens * 8 <= self.max_tokens:
                break
        else:
            if tokens * 8 > self.max_tokens:
                kept, tail, tokens = (), (), 0
        self._frame, self._frame_tokens = (kept, tail), tokens
        manifest = f"{self._renderer.manifest_head()}\n+9999 more"
        reserve = self._renderer.count(manifest) + 1
        self._manifest_reserve = reserve if reserve * 16 <= self.max_tokens else 0

    @property
    def _limit(self) -> int:
        """Tokens for items: the budget without the frame and the least that the put-away lines take."""
        return self.max_tokens - self._frame_tokens - (self._manifest_reserve if self._cold_known else 0)

    def _take_in(self, item: Item) -> None:
        """Puts an item into the hot zone, measured anew (the mark may differ from when it was last there)."""
        self._renderer.measure(item)
        self._hot.add(item)
        self._index.register([item])

    def _let_go(self, item: Item) -> None:
        self._hot.remove(item)
        self._index.forget(item)

    # --- telling and writing ------------------------------------------------------------------------

    def _tell(self, event: str, item: Item | None, text: str, reason: str, *, automatic: bool = True) -> None:
        item_id = item.id if item is not None else ""
        at = stamp()
        self.events.append(MemoryEvent(self._step, at, event, item_id, text, automatic))
        self._log.append(LogLine(self._step, at, event, item_id, reason))

    def _note(
        self,
        item: Item,
        zone: str,
        *,
        new: bool = False,
        vector: bool = False,
        claim: bool = False,
        replaced: tuple[str, str] | None = None,
    ) -> None:
        """Remembers that an item has to be written."""
        _, pending = self._pending.setdefault(item.id, (item, Pending(zone)))
        pending.zone = zone
        pending.new, pending.claim = pending.new or new, pending.claim or claim
        pending.vector = pending.vector or vector
        if replaced is not None:
            pending.replaced.append(replaced)

    async def _flush(self) -> None:
        """Writes everything noted, in one transaction. A store that fails keeps it for the next time, and is told."""
        if not (self._pending or self._log or self._unsaved):
            return
        pending, log, self._pending, self._log, self._unsaved = self._pending, self._log, {}, [], False
        session = (self.session_id, self._goal, self._renderer.word)
        changed = session != self._session_written or not pending
        batch = Batch(self._scope, self.session_id, self._step, self._goal, self._renderer.word, changed, log=log)
        for item, what in pending.values():
            if what.zone == "hot":
                item.session_id = self.session_id
            embedded = item.vector is not None and (what.vector or what.new or what.replaced)
            batch.changes.append(
                Change.of(
                    item, what.zone, self.session_id, new=what.new, replaced=tuple(what.replaced), claim=what.claim,
                    identity=self._vectors.identity if embedded else "",
                )
            )  # fmt: skip
        calibration = self._hot.calibration
        if calibration.total is not None and self._calibrated_for and calibration.version != self._calibration_saved:
            batch.calibration = (self._calibrated_for, calibration.count, calibration.total.copy())
        try:
            run = self.store.db.run_small if batch.small else self.store.db.run
            taken = await run(self.store.write, batch)
        except BaseException as error:
            self._keep(pending, log)
            if not isinstance(error, StoreError):
                raise
            if not self._store_trouble:
                logger.warning("the working memory is not saved: %s", error)
            self._store_trouble = f"The working memory is kept in this window only. {error}"
            return
        self._store_trouble, self._session_written = "", session
        self._calibration_saved = calibration.version
        self._index_soon()
        for item_id in taken:
            lost = self._hot.items.get(item_id)
            if lost is not None:
                self._let_go(lost)
                self._tell("evicted", lost, f"“{lost.label}” was taken by another window.", "taken elsewhere")

    def _keep(self, pending: dict[str, tuple[Item, Pending]], log: list[LogLine]) -> None:
        """Takes back what could not be written; newer notes of the same item win."""
        for item_id, (item, old) in pending.items():
            newer = self._pending.get(item_id)
            if newer is not None:
                old.zone = newer[1].zone
                old.vector = old.vector or newer[1].vector
                old.replaced += newer[1].replaced
            self._pending[item_id] = (item, old)
        self._log[:0] = log
        self._unsaved = True

    def _index_soon(self) -> None:
        """Indexes what was written, in the background, when it has been quiet for a moment or has become much."""
        if self.store.unindexed and (self._indexing is None or self._indexing.done()):
            self._indexing = asyncio.get_running_loop().create_task(self._index_quietly())

    async def _index_quietly(self) -> None:
        for _ in range(20):
            before = self.store.unindexed
            await asyncio.sleep(0.05)
            if self.store.unindexed in (0, before) or self.store.unindexed >= _UNINDEXED:
                break
        with contextlib.suppress(StoreError):  # the next search will do it, or say what is wrong
            await self.store.db.run(self.store.index)


def _counting(counter: TokenCounter | None) -> Callable[[str], int]:
    if counter is None:
        return estimate_tokens
    count = getattr(counter, "count", None)
    if callable(count) and not isinstance(counter, (str, bytes)):
        return count  # type: ignore[no-any-return]
    if callable(counter):
        return counter
    raise TypeError("counter must be a function of a text, or an object with count(text).")
