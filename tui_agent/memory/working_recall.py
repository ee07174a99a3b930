"""Bringing put-away items back: search, cooldown, room first, and the explanation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tui_agent.memory.cold_search import THRESHOLD, Hit, Query
from tui_agent.memory.cold_terms import index_terms
from tui_agent.memory.hot import Item
from tui_agent.memory.text import new_id, utc_now
from tui_agent.memory.types import RecalledItem, RecallRecord, Vector
from tui_agent.memory.working_core import Core
from tui_agent.memory.working_types import ColdItem, ColdPage, ItemId, Recalled

_NEAR = 5  # left-out items that the record names
_PASSAGE = 80  # characters of a window when the best place in a long text is looked for
_SMALLEST_PASSAGE = 40  # tokens


class Recalling(Core):
    """Search and recall. ``recall_cooldown_steps`` and ``recall_bypass_sim`` are set by the constructor."""

    recall_cooldown_steps: int
    recall_bypass_sim: float | None

    # --- looking ------------------------------------------------------------------------------------

    async def search(
        self, query: str, limit: int = 10, *, vector: Vector | None = None, only_cold: bool = False
    ) -> list[RecalledItem]:
        """Items that are not hot here and match ``query``, best first, with the terms of their scores; nothing moves.

        ``vector`` saves embedding the query again. ``only_cold`` leaves out what other sessions keep hot. ``status``
        says what recall would make of each: ``sent``, ``threshold`` or ``cooldown``.
        """
        async with self._lock:
            await self._prepare()
            hits = await self._find(query, limit, vector=vector, only_cold=only_cold)
        hits = [hit for hit in hits if not hit.own]
        return [
            self._explained(hit, self._why_not(hit) or "sent", rank) for rank, hit in enumerate(hits[:limit], start=1)
        ]

    async def question(self, text: str, limit: int, vector: Vector | None) -> Query:
        """A question to the put-away items as this session asks it; ``vector`` is that of ``text``."""
        async with self._lock:
            await self._prepare()
            if vector is not None:
                await self._calibrate(len(vector))
            return Query(
                self._scope, self.session_id, text, limit, self._step, vector, self._vectors.identity,
                self._hot.calibration if self._flags[0] else None, "cold", len(self._hot),
            )  # fmt: skip

    def status(self, hit: Hit) -> str:
        """What recall would make of a hit: ``sent``, ``threshold`` or ``cooldown``."""
        return self._why_not(hit) or "sent"

    async def _find(
        self, query: str, limit: int, *, vector: Vector | None = None, only_cold: bool = False
    ) -> list[Hit]:
        if vector is None:
            vector = (await self._vectors.embed([query], "query"))[0]
        if vector is not None:
            await self._calibrate(len(vector))
        asked = Query(
            self._scope, self.session_id, query, limit, self._step, vector,
            self._vectors.identity, self._hot.calibration if self._flags[0] else None, "cold" if only_cold else "",
            len(self._hot),
        )  # fmt: skip
        return await self.store.db.run(self.store.search, asked)

    def _why_not(self, hit: Hit) -> str:
        """Why a hit is not brought back: ``threshold``, ``cooldown``, or an empty string when it may be."""
        if not hit.fits:
            return "threshold"
        return "cooldown" if self._cooling(hit) else ""

    def _cooling(self, hit: Hit) -> bool:
        """Whether the cooldown holds a hit back. It counts steps of the session that put the item away; a question for
        a name it defines, a close enough meaning, or importance (unless a person put it away) lift it."""
        if hit.zone != "cold" or self._cooldown_left(hit.session_id, hit.put_away_step) == 0 or hit.defines:
            return False
        if self.recall_bypass_sim is not None and hit.cosine is not None and hit.cosine >= self.recall_bypass_sim:
            return False
        return not hit.important or hit.reason == MANUAL

    def _cooldown_left(self, session_id: str, put_away_step: int) -> int:
        if session_id != self.session_id:
            return 0
        return max(0, self.recall_cooldown_steps - max(0, self._step - put_away_step))

    def _explained(self, hit: Hit, status: str, rank: int = 0, text: str = "") -> RecalledItem:
        return RecalledItem(
            store="cold", id=hit.id, text=text or hit.text, score=hit.score, terms=hit.terms, status=status, rank=rank,
            kind=hit.kind, source=hit.source, created_at=hit.created_at, tokens=hit.tokens,
        )  # fmt: skip

    # --- bringing back ------------------------------------------------------------------------------

    async def recall(self, query: str, top_k: int = 3) -> Recalled:
        """Brings back the put-away items that fit ``query`` best, at most ``top_k``; returns their ids, best first.

        Channels are names (defined and mentioned), full text and, with an embedder, meaning; without a model the first
        two work alone. Room is made before anything is brought back, and what is brought back never pushes itself out.
        A text larger than the room comes back as its head, its tail and the passage that fits the question. The result
        is a list of ids with a ``record`` that explains every hit and the nearest that were left out.
        """
        start = time.perf_counter()
        async with self._lock:
            await self._prepare()
            await self._fill_vectors()
            hits = await self._find(query, 4 * top_k + 8)
            chosen, near = self._choose(hits, top_k)
            restored = await self._bring_in(query, chosen, near)
            await self._flush()
        record = RecallRecord(
            query=query,
            goal=self._goal,
            items=tuple(self._explained(hit, "sent", rank, item.text) for rank, (hit, item) in enumerate(restored, 1)),
            near=tuple(near[:_NEAR]),
            threshold=THRESHOLD,
            channels=("names", "words", "meaning") if self._vectors.present else ("names", "words"),
            took_ms=(time.perf_counter() - start) * 1000,
        )
        return Recalled([item.id for _, item in restored], record)

    def _choose(self, hits: Sequence[Hit], top_k: int) -> tuple[list[Hit], list[RecalledItem]]:
        """Hits to keep or bring back, in order, and those that are left out. Of the first there are at most ``top_k``
        that are not hot; hot ones are taken along as far as the last of these, so that what answers the question does
        not leave to make room for what fits it less."""
        hot = {item.lineage or item.id: item for item in self._hot.items.values()}
        chosen: list[Hit] = []
        near: list[RecalledItem] = []
        lineages: set[str] = set()
        wanted = top_k
        for hit in hits:
            mine = hot.get(hit.lineage)
            status = self._why_not(hit)
            if hit.lineage in lineages or (hit.own and mine is None):
                status = "visible"
            elif not status and mine is None and wanted <= 0:
                status = "budget"
            if not status and wanted > 0:
                lineages.add(hit.lineage)
                chosen.append(hit)
                wanted -= mine is None or bool(mine.shown and hit.id == mine.id)
            if status or mine is not None:
                near.append(self._explained(hit, status or "visible"))
        return chosen, near

    async def _bring_in(self, query: str, chosen: Sequence[Hit], near: list[RecalledItem]) -> list[tuple[Hit, Item]]:
        """Measures the chosen, makes room for those that fit together, and takes them in."""
        hot = {item.lineage or item.id: item for item in self._hot.items.values()}
        asked_for = [hit.id for hit in chosen if hit.lineage not in hot]
        loaded = await self.store.db.run(self.store.items, self._scope, asked_for, self._vectors.identity)
        most = left = max(0, self._limit - self._hot.pinned_cost)
        staged: list[tuple[Hit, Item, bool]] = []
        kept: set[str] = set()
        for hit in chosen:
            mine = hot.get(hit.lineage)
            if mine is not None and not (mine.shown and hit.id == mine.id):
                if mine.pinned or mine.cost <= left:
                    kept.add(mine.id)
                    left -= 0 if mine.pinned else mine.cost
                continue
            item, zone = (mine, "part") if mine is not None else loaded.get(hit.id, (None, ""))
            if item is None:
                continue
            if mine is None:
                item.tokens = 0  # counted anew: it may be another model's counter now
            if not await self._fits_in(item, zone, query, left, most, first=not staged):
                near.insert(0, self._explained(hit, "budget"))
                continue
            left -= item.cost
            staged.append((hit, item, zone == "part"))
            if zone == "part":
                kept.add(item.id)
                self._hot.update(item)
        need = sum(item.cost for _, item, part in staged if not part)
        self._balance("to make room for recall", frozenset(kept), need)
        for hit, item, part in staged:
            self._step += 1
            item.touched, item.recalls = self._step, item.recalls + 1
            if part:
                self._hot.update(item)
                self._note(item, "hot")
            else:
                self._enter(item, hit.zone)
            reason = f"found by “{', '.join(t.name for t in hit.terms[:3] if t.value > 0) or 'its id'}”"
            self._tell("brought_back", item, f"{item.origin_kind or item.kind} “{item.label}” came back.", reason)
        return [(hit, item) for hit, item, _ in staged]

    async def _fits_in(self, item: Item, zone: str, query: str, room: int, most: int, *, first: bool) -> bool:
        """Prepares an item that comes back and says whether it fits into what is left; a text too large for the whole
        room is cut to the passage that fits the question."""
        before, kind, origin = item.shown, item.kind, item.origin_kind
        item.shown = ()
        self._recast(item, zone)
        self._renderer.measure(item)
        if item.cost > room and (item.cost > most or first) and room >= min(_SMALLEST_PASSAGE, most) > 0:
            around = await asyncio.to_thread(_passage, item.text, query)
            item.shown = self._renderer.fit(item, min(room, max(most // 2, _SMALLEST_PASSAGE)), around)
            self._renderer.measure(item)
        if item.cost <= room:
            return True
        if zone == "part":
            item.shown, item.kind, item.origin_kind = before, kind, origin
            self._renderer.measure(item)
        return False

    def _recast(self, item: Item, zone: str) -> None:
        """What an item becomes when it is brought back."""
        item.pinned = False if zone == "cold" else item.pinned
        if item.kind != "recalled":
            item.origin_kind, item.kind = item.kind, "recalled"

    def _enter(self, item: Item, zone: str) -> None:
        """Cold → hot; what another session keeps hot is copied."""
        copied = zone == "hot"
        if copied:
            item.id, item.pinned = new_id(), False
        if item.session_id != self.session_id:
            item.birth = self._step
            item.session_id = self.session_id
        item.put_away_at, item.reason = "", ""
        self._cold_known = max(0, self._cold_known - (0 if copied else 1))
        self._take_in(item)
        self._note(item, "hot", new=copied, vector=copied, claim=not copied)

    async def bring_back(self, item_id: str, *, as_it_was: bool = False, found: bool = False) -> ItemId | None:
        """Brings one put-away item back, whatever its cooldown; ``None`` when there is no such item.

        With ``as_it_was`` it gets its kind and pin back (undo of putting away), else it comes back as ``recalled``.
        ``found`` says for the log that a search brought it, and nobody asked for this one.
        The id may be given by its ending, as shown to the model. The id returned differs for an item that another
        session keeps hot: that one gets a copy.
        """
        async with self._lock:
            await self._prepare()
            run = self.store.db.run
            loaded = await run(self.store.items, self._scope, [item_id], self._vectors.identity)
            if item_id not in loaded:
                full = await run(self.store.resolve, self._scope, item_id)
                if full is None:
                    return None
                item_id, loaded = full, await run(self.store.items, self._scope, [full], self._vectors.identity)
            item, zone = loaded[item_id]
            item.tokens = 0  # counted anew: it may be another model's counter now
            if item_id in self._hot.items or (zone == "hot" and item.session_id == self.session_id):
                return None
            pinned = item.pinned
            if not as_it_was:
                self._recast(item, zone)
            item.shown = ()
            self._renderer.measure(item)
            self._fit(item, self._limit - self._hot.used)
            self._step += 1
            item.touched = self._step
            item.pinned = pinned and as_it_was
            self._balance("to make room for recall", need=item.cost)
            self._enter(item, zone)
            self._hold_pins(item)
            self._balance(keep=frozenset([item.id]))
            how, reason = ("came back: it fits the question", "found") if found else ("was brought back", "asked for")
            self._tell("brought_back", item, f"“{item.label}” {how}.", reason, automatic=False)
            await self._flush()
            return ItemId(item.id, whole=not item.shown)

    # --- the pane -----------------------------------------------------------------------------------

    async def cold(self, query: str = "", limit: int = 200) -> ColdPage:
        """Put-away items of the project, of all sessions: the last put away first, or the best match for ``query``."""
        async with self._lock:
            await self._prepare()
            await self._flush()
            run, scope = self.store.db.run, self._scope
            total = await run(self.store.cold_count, scope)
            self._cold_known = total
            if not query.strip():
                items = await run(self.store.newest_cold, scope, limit)
            else:
                items = await run(self.store.matching, scope, query, limit)
                if not items and self._vectors.present:
                    ids = [hit.id for hit in await self._find(query, limit, only_cold=True) if hit.fits]
                    known = await run(self.store.items, scope, ids)
                    items = [known[item_id][0] for item_id in ids]
        return ColdPage(tuple(map(self._cold_row, items)), total)

    async def cold_item(self, item_id: str) -> ColdItem | None:
        """One put-away item, or ``None`` when there is none of that id."""
        return next(iter(await self.cold_items([item_id])), None)

    async def cold_items(self, ids: Sequence[str]) -> list[ColdItem]:
        """Put-away items by id, in that order; those that are none are left out."""
        async with self._lock:
            await self._prepare()
            await self._flush()
            found = await self.store.db.read_small(self.store.items, self._scope, ids)
        return [self._cold_row(item) for item, zone in found.values() if zone == "cold"]

    async def own_cold_items(self, ids: Sequence[str]) -> list[ColdItem]:
        """As :meth:`cold_items`, those alone that this session has put away."""
        own = await self.store.db.read_small(self.store.put_away_by, self._scope, self.session_id, ids)
        return await self.cold_items(own) if own else []

    def _cold_row(self, item: Item) -> ColdItem:
        return ColdItem(
            id=item.id, kind=item.kind, text=item.text, summary=item.label, tokens=item.tokens, reason=item.reason,
            step=item.put_away_step, put_away_at=item.put_away_at or utc_now(),
            cooldown=self._cooldown_left(item.session_id, item.put_away_step), source=item.source,
            session_id=item.session_id, pinned=item.pinned,
        )  # fmt: skip


MANUAL = "put away by hand"
"""The reason of an item that a person or the agent put away on purpose."""


def _passage(text: str, query: str) -> tuple[int, int] | None:
    """Where in a long text most of the question's terms are found: character positions, or ``None``."""
    wanted = set(index_terms(query))
    best, place = 0.0, None
    start = 0
    seen: dict[str, int] = {}
    windows: list[tuple[int, int, set[str]]] = []
    while start < len(text):
        stop = min(len(text), start + _PASSAGE)
        if stop < len(text):
            stop = text.rfind("\n", start + _PASSAGE // 2, stop) + 1 or stop
        found = wanted.intersection(index_terms(text[start:stop]))
        for term in found:
            seen[term] = seen.get(term, 0) + 1
        windows.append((start, stop, found))
        start = stop
    for start, stop, found in windows:
        value = sum(1.0 / seen[term] for term in found)
        if value > best:
            best, place = value, (start, stop)
    return place
