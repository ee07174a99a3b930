"""The inside of the working memory: beginning, items in and out, and the budget."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from typing import Any

from tui_agent.memory.database import StoreError
from tui_agent.memory.hot import Item
from tui_agent.memory.packing import cheapest_cover
from tui_agent.memory.symbols import extract
from tui_agent.memory.text import new_id
from tui_agent.memory.working_store import Stored
from tui_agent.memory.working_types import stamp

logger = logging.getLogger(__name__)

_LONG_TEXT = 16_384  # characters from which a text is read in a thread, so that the event loop stays free
_SMALLEST_EXCERPT = 48  # tokens; less says nothing
_VECTORS_AT_ONCE = 32
_MANY = 1000  # hot items from which all of them are compared in a thread


class Core(Stored):
    """Beginning, items in and out, and the budget."""

    # --- beginning ----------------------------------------------------------------------------------

    async def _prepare(self) -> None:
        """Reads what the database knows of this session, once; then settles an imported state against it."""
        if self._ready and self._imported is None:
            return
        if not self._ready:
            scope, session = self._scope, self.session_id
            run, identity = self.store.db.run, self._vectors.identity
            row = await run(self.store.session, scope, session)
            items = await run(self.store.hot_items, scope, session, identity) if row is not None else []
            self._cold_known = await run(self.store.cold_count, scope)
            self._ready = True
            if row is not None:
                self._step = max(self._step, row[0])
                if self._imported is None:
                    self._goal = self._goal or row[1]
                    self._rename(row[2])
                    for item in items:
                        if item.id not in self._hot.items:
                            item.tokens = 0  # counted anew: it may be another model's counter now
                            self._take_in(item)
                else:
                    for item in items:
                        if item.id not in self._hot.items:
                            self._take_in(item)
                            self._put_away(item, "not in the imported state", "put_away", automatic=True)
        if self._imported is not None:
            await self._settle_import()
        if self._goal and self._vectors.present and self._hot.goal is None:
            await self._embed_goal()

    async def _settle_import(self) -> None:
        """Writes imported items: as new ones, as moves of known ones, or under new ids where their text differs."""
        imported, self._imported = self._imported or [], None
        ids = [item.id for item in imported]
        known = await self.store.db.run(self.store.items, self._scope, ids)
        for item in imported:
            if self._hot.items.get(item.id) is not item:
                continue  # put away again meanwhile
            found = known.get(item.id)
            if found is None:
                self._note(item, "hot", new=True, vector=True)
                continue
            other, zone = found
            foreign = zone == "hot" and other.session_id != self.session_id
            if other.text != item.text or foreign:
                self._let_go(item)
                item.id = new_id()
                if other.text != item.text:
                    item.lineage = item.id
                self._take_in(item)
                self._note(item, "hot", new=True, vector=True)
                if zone == "hot" and not foreign:  # the newer text is not in the imported state
                    other.put_away_at, other.put_away_step, other.shown = stamp(), self._step, ()
                    other.reason = "an earlier text was imported"
                    self._cold_known += 1
                    self._note(other, "cold")
            else:
                self._note(item, "hot", vector=True)
        self._unsaved = True

    async def _embed_goal(self) -> None:
        vector = (await self._vectors.embed([self._goal], "query"))[0]
        if len(self._hot) > _MANY:
            await asyncio.to_thread(self._hot.set_goal, vector)
        else:
            self._hot.set_goal(vector)

    async def _calibrate(self, dimension: int) -> None:
        """Reads the mean direction of the embedder when it is used for the first time."""
        identity = self._vectors.identity
        if identity != self._calibrated_for:
            self._calibrated_for = identity
            self._hot.calibration = await self.store.db.run(self.store.calibration, identity, dimension)
            self._calibration_saved = self._hot.calibration.version
            self._hot.refresh()

    async def _fill_vectors(self) -> None:
        """Embeds hot items that have no vector yet, because the embedder failed or is another one now."""
        missing = [item for item in self._hot.items.values() if item.vector is None and item.text.strip()]
        if missing and self._vectors.present:
            part = missing[:_VECTORS_AT_ONCE]
            for item, vector in zip(part, await self._vectors.embed([i.text for i in part], "document"), strict=True):
                if vector is not None and item.row >= 0:
                    await self._set_vector(item, vector)

    async def _set_vector(self, item: Item, vector: Any) -> None:
        await self._calibrate(len(vector))
        item.vector = vector
        self._hot.calibration.add(vector)
        if item.row >= 0:
            self._hot.set_vector(item)
            self._hot.refresh()
            self._note(item, "hot", vector=True)

    # --- items in and out ---------------------------------------------------------------------------

    async def _read(self, item: Item) -> None:
        """Counts and reads an item's text; a long one in a thread."""

        def read() -> None:
            item.symbols = extract(item.text, item.source)
            item.tokens = 0
            self._renderer.measure(item)

        if len(item.text) < _LONG_TEXT:
            read()
        else:
            await asyncio.to_thread(read)

    def _put_away(self, item: Item, reason: str, event: str, *, automatic: bool) -> None:
        """Hot → cold. The whole text goes, under the kind it had before it was recalled."""
        self._let_go(item)
        if item.kind == "recalled" and item.origin_kind:
            item.kind, item.origin_kind = item.origin_kind, ""
        item.put_away_at, item.put_away_step, item.reason, item.shown = stamp(), self._step, reason, ()
        self._cold_known += 1
        if automatic:
            self.evictions += 1
        self._note(item, "cold")
        self._tell(event, item, f"{item.kind} “{item.label}” was put away: {reason}.", reason, automatic=automatic)

    # --- the budget ---------------------------------------------------------------------------------

    def _fit(self, item: Item, free: int) -> None:
        """Shows a text that is too large for the budget, or a pin too large for the pin cap, in part."""
        most = self._limit - (self._hot.pinned_cost if not item.pinned else 0)
        room = min(most, self.max_pinned_tokens if item.pinned else math.inf)
        if item.cost <= room:
            return
        if item.cost > most and not item.pinned:  # it must not push the others out: what is free, or a little more
            room = min(max(free, min(_SMALLEST_EXCERPT, most)), max(most // 3, _SMALLEST_EXCERPT), most)
        if room < 1:
            return
        item.shown = self._renderer.fit(item, int(room))
        self._renderer.measure(item)
        if item.pinned and item.cost > self.max_pinned_tokens:
            item.pinned, item.shown = False, ()
            self._renderer.measure(item)
            reason = f"pins may take {self.max_pinned_tokens:g} tokens, and not even a part of it fits"
            self._tell("pin_released", item, f"{item.kind} “{item.label}” could not stay pinned: {reason}.", reason)
            self._fit(item, free)
            return
        reason = f"{item.tokens} tokens do not fit into {'the share of pins' if item.pinned else 'the budget'}"
        self._tell("excerpted", item, f"{item.kind} “{item.label}” is shown in part: {reason}.", reason)

    def _hold_pins(self, newest: Item | None = None) -> None:
        """Releases the oldest pins until the pinned ones fit into their share; the newest pin goes last."""
        while self._hot.pinned_cost > self.max_pinned_tokens:
            pinned = [item for item in self._hot.items.values() if item.pinned]
            oldest = min(pinned, key=lambda item: (item is newest, item.birth, item.id))
            oldest.pinned = False
            self._hot.update(oldest)
            self._note(oldest, "hot")
            reason = f"pins take more than {self.max_pinned_tokens:g} tokens"
            self._tell(
                "pin_released", oldest, f"The pin of {oldest.kind} “{oldest.label}” was released: {reason}.", reason
            )

    def _balance(self, reason: str = "over budget", keep: frozenset[str] = frozenset(), need: int = 0) -> None:
        """Puts items away until the rest, and ``need`` more tokens, fit into the budget."""
        over = self._hot.used + need - self._limit
        if over > 0:
            rows, values, costs = self._hot.candidates(self._step, keep)
            had = self._cold_known
            leaving = [(self._hot.at(rows[place]), place) for place in cheapest_cover(values, costs, over)]
            for item, place in leaving:
                score = f"score {values[place]:.2f}, {costs[place]} tokens"
                self._put_away(item, f"{reason} ({score})", "evicted", automatic=True)
            if not had and self._cold_known and self._manifest_reserve:
                self._balance(reason, keep, need)  # the first put-away item makes room for its line
        over = self._hot.used + need - self._limit
        if over > 0 and not keep and not self._was_over:
            text = f"Pinned items alone exceed the budget of {self.max_tokens} tokens by {over}."
            logger.warning(text)
            self._tell("over_budget", None, text, f"by {over} tokens")
        self._was_over = over > 0

    async def save(self) -> None:
        """Writes what is not written yet and puts the budget in order; the hot set then survives a restart."""
        async with self._lock:
            await self._prepare()
            self._balance()
            await self._flush()

    def _soon(self) -> None:
        """Writes after a synchronous change, in the background; ``save`` does so at once."""
        self._unsaved = True
        with contextlib.suppress(RuntimeError):  # no loop: the next coroutine or save() writes
            loop = asyncio.get_running_loop()
            if self._saving is None or self._saving.done():
                self._saving = loop.create_task(self._save_quietly())

    async def _save_quietly(self) -> None:
        with contextlib.suppress(StoreError):
            await self.save()

    async def close(self) -> None:
        """Writes what is left and ends the background work. The database stays open; it belongs to whoever made it."""
        await self.save()
        for task in (self._saving, self._indexing, self._looking):
            if task is not None and not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        with contextlib.suppress(StoreError):
            await self.store.db.run(self.store.index)
