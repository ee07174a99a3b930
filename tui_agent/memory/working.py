"""The working memory of the article: a hot zone within a token budget, a cold zone that loses nothing, and scores.

Items enter hot. When the rendered hot zone outgrows the budget, the items whose loss costs least move to the cold zone,
and ``recall`` brings them back. What an item is worth is explained in :mod:`tui_agent.memory.scoring`. The interface
and the formula are those of the article (``protoprompt.agent.WorkingMemory``); on purpose different are:

* the budget holds for the rendered text, headers and put-away lines included, and only pins can exceed it;
* what leaves is the cheapest set of items, not one weakest after another;
* an item larger than the budget is shown in part and pushes nobody out;
* of two similar notes the newer text wins, the older is kept as a version;
* pins have a share of their own (a third) unless told otherwise.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tui_agent.memory.cold import ColdStore
from tui_agent.memory.database import Database
from tui_agent.memory.hot import HotZone, Item
from tui_agent.memory.references import ReferenceIndex
from tui_agent.memory.scoring import Weights, cosine
from tui_agent.memory.text import format_utc, new_id, normalise
from tui_agent.memory.types import Embedder, RecalledItem
from tui_agent.memory.working_reading import Reading
from tui_agent.memory.working_recall import MANUAL
from tui_agent.memory.working_state import item_from_state, item_to_state
from tui_agent.memory.working_types import ItemId, MemoryScope, TokenCounter, stamp

__all__ = ["MemoryScope", "WorkingMemory"]

_STATE_VERSION = 1
_PROPOSED = 3


class WorkingMemory(Reading):
    """Scored, reversible memory of one session.

    ``store`` is the project's database (or a path, or ``None`` for memory only). ``llm`` is an
    :class:`~tui_agent.memory.types.Embedder`, or any object with the article's ``embed``; without one, ranking goes on
    without meaning. ``counter`` counts tokens. ``max_pinned_tokens`` is the share of pins (default a third of
    ``max_tokens``; ``math.inf`` for none). An item put away less than ``recall_cooldown_steps`` steps ago is not
    recalled unless the question asks for a name it defines, its cosine reaches ``recall_bypass_sim``, or it is
    important. Notes whose cosine reaches ``dedup_threshold`` are merged. ``calibrate`` and ``weigh_names`` switch the
    two terms that the article does not have; without them scores equal the reference.

    With a ``session_id`` that the store knows, the hot items of that session are there from the first call on (or call
    :meth:`load`). Nothing here blocks the event loop; ``pin``, ``unpin`` and ``touch`` are written in the background,
    :meth:`save` writes at once.
    """

    def __init__(
        self,
        store: Database | ColdStore | Path | str | None = None,
        llm: Embedder | Any | None = None,
        counter: TokenCounter | None = None,
        max_tokens: int = 2048,
        scope: MemoryScope | Any | None = None,
        max_pinned_tokens: float | None = None,
        recall_cooldown_steps: int = 0,
        recall_bypass_sim: float | None = None,
        dedup_threshold: float = 0.92,
        session_id: str | None = None,
        *,
        weights: Weights | None = None,
        calibrate: bool = True,
        weigh_names: bool = True,
        embed_model: str = "nomic-embed-text",
    ) -> None:
        super().__init__(
            store, llm, counter, max_tokens, scope, max_pinned_tokens, session_id, weights, calibrate, weigh_names,
            embed_model,
        )  # fmt: skip
        self.recall_cooldown_steps = recall_cooldown_steps
        self.recall_bypass_sim = recall_bypass_sim
        self.dedup_threshold = dedup_threshold

    # --- the goal -----------------------------------------------------------------------------------

    async def set_goal(self, text: str) -> list[RecalledItem]:
        """Sets what the work is about and scores everything anew. Returns put-away items that match the new goal, best
        first, at most three (also as ``proposals``); none of them is moved."""
        async with self._lock:
            await self._prepare()
            changed, self._goal = text != self._goal, _stored(text)
            await self._embed_goal()
            self._reframe()
            self._balance()
            self.proposals = ()
            if self._goal and self._cold_known:
                hits = await self._find(self._goal, 4 * _PROPOSED, vector=self._hot.goal, only_cold=True)
                self._manifest_found = (self._goal, self._cold_known, hits)
                fitting = [hit for hit in hits if hit.fits][:_PROPOSED]
                self.proposals = tuple(self._explained(hit, "sent", rank) for rank, hit in enumerate(fitting, 1))
            if changed:
                found = len(self.proposals)
                fits = f"{found} put-away item{'s match' if found != 1 else ' matches'} it" if found else ""
                reason = fits or "no put-away item matches it"
                self._tell("goal", None, f"The goal changed.{fits and f' {fits}.'}", reason, automatic=False)
            self._unsaved = True
            await self._flush()
            return list(self.proposals)

    # --- writing ------------------------------------------------------------------------------------

    async def add(self, kind: str, text: str, *, summary: str = "", pin: bool = False, source: str = "") -> ItemId:
        """Adds an item and puts the budget in order. ``summary`` is what panes and put-away lines show, ``source``
        where the text is from (a path, a command, a message).

        Returns the id, which also says where the item is now (see :class:`~tui_agent.memory.working_types.ItemId`).
        The text is stored before it is embedded; an embedder that fails costs ranking, not text.
        """
        item = Item(new_id(), kind, _stored(text), _stored(summary), _stored(source), pin, created_at=stamp())
        async with self._lock:
            await self._prepare()
            return await self._add(item, None)

    async def _add(self, item: Item, vector: Any | None) -> ItemId:
        await self._read(item)
        self._step += 1
        item.birth, item.lineage, item.session_id = self._step, item.id, self.session_id
        for owner, _ in self._index.refer(item, self._step):
            self._hot.update(owner)
            self._note(owner, "hot")
        self._fit(item, self._limit - self._hot.used)
        self._hot.add(item)
        self._index.register([item])
        self._note(item, "hot", new=True)
        if vector is None and self._vectors.present and item.text.strip():
            vector = await self._embedded(item.text)
        if vector is not None:
            await self._set_vector(item, vector)
        self._hold_pins(item)
        self._balance()
        await self._flush()
        return ItemId(item.id, "hot" if item.row >= 0 else "cold", whole=not item.shown)

    async def _embedded(self, text: str) -> Any | None:
        """The vector of a text. An embedder that answers at once leaves it all to one transaction; while another one
        works, what is noted is written, so the text is safe before it has answered, or failed."""
        loop = asyncio.get_running_loop()
        writing: list[asyncio.Task[None]] = []
        turn = loop.call_soon(lambda: writing.append(loop.create_task(self._flush())))
        try:
            return (await self._vectors.embed([text], "document"))[0]
        finally:
            turn.cancel()
            if writing:
                await writing[0]

    async def note(self, text: str, *, pin: bool = True, source: str = "") -> ItemId:
        """The agent's own conclusion, pinned unless told otherwise.

        A note that says the same as a hot one (equal when normalised, or by cosine) is merged into it: the newer text
        stays, the older is kept among the versions, and the result is pinned if either was.
        """
        text = _stored(text)
        async with self._lock:
            await self._prepare()
            twin = self._same_note(text)
            vector = None
            if twin is None or twin.text != text:
                vector = (await self._vectors.embed([text], "document"))[0]
            if twin is None and vector is not None and self.dedup_threshold > 0:
                twin = self._near_note(vector)
            if twin is None:
                return await self._add(Item(new_id(), "note", text, "", source, pin, created_at=stamp()), vector)
            self._step += 1
            twin.touched = self._step
            if twin.text != text:
                await self._change_text(twin, text, vector, "merged with a newer note")
                self._tell("merged", twin, f"A note was merged: “{twin.label}”.", "the newer text stays")
            twin.pinned = twin.pinned or pin
            self._hot.update(twin)
            self._note(twin, "hot")
            self._refit(twin)
            self._hold_pins(twin)
            self._balance()
            await self._flush()
            return ItemId(twin.id, "hot" if twin.row >= 0 else "cold", whole=not twin.shown, merged=True)

    def _same_note(self, text: str) -> Item | None:
        wanted = normalise(text)
        notes = [item for item in self._hot.items.values() if item.kind == "note"]
        return next((item for item in notes if item.text == text or normalise(item.text) == wanted), None)

    def _near_note(self, vector: Any) -> Item | None:
        notes = [item for item in self._hot.items.values() if item.kind == "note" and item.vector is not None]
        best = max(notes, key=lambda item: cosine(item.vector, vector), default=None)
        return best if best is not None and cosine(best.vector, vector) >= self.dedup_threshold else None

    async def _change_text(self, item: Item, text: str, vector: Any | None, reason: str) -> None:
        """Gives a hot item another text, with everything that hangs on it."""
        old = item.text
        self._index.forget(item)
        item.text, item.shown = text, ()
        await self._read(item)
        self._index.register([item])
        item.vector = None
        self._note(item, "hot", replaced=(old, reason))
        self._hot.update(item, vector=True)
        if vector is None and text.strip():
            vector = (await self._vectors.embed([text], "document"))[0]
        if vector is not None:
            await self._set_vector(item, vector)

    async def edit(self, item_id: str, text: str) -> bool:
        """Replaces the text of a hot or cold item; the old one stays among its :meth:`versions`. False when there is no
        such item."""
        text = _stored(text)
        async with self._lock:
            await self._prepare()
            item = self._hot.items.get(item_id)
            if item is not None:
                await self._change_text(item, text, None, "edited")
                self._refit(item)
                self._hold_pins(item)
                self._balance()
            else:
                await self._flush()
                found = (await self.store.db.run(self.store.items, self._scope, [item_id])).get(item_id)
                if found is None or found[1] != "cold":
                    return False
                item, old = found[0], found[0].text
                item.text = text
                await self._read(item)
                item.vector = (await self._vectors.embed([text], "document"))[0]
                self._note(item, "cold", vector=True, replaced=(old, "edited"))
            self._tell("edited", item, f"“{item.label}” was edited.", "edited", automatic=False)
            await self._flush()
            return True

    def _refit(self, item: Item) -> None:
        """Shows the whole of a hot item where that fits, else a part."""
        item.shown = ()
        self._renderer.measure(item)
        self._hot.update(item)
        self._fit(item, self._limit - self._hot.used + item.cost)
        self._hot.update(item)
        self._note(item, "hot")

    def pin(self, item_id: str) -> bool:
        """Keeps a hot item from being put away; false when it is not hot. When pins outgrow their share, the oldest
        others are released; a pin larger than the share is shown in part."""
        item = self._hot.items.get(item_id)
        if item is None:
            return False
        item.pinned = True
        self._refit(item)
        self._hold_pins(item)
        self._soon()
        return True

    def unpin(self, item_id: str) -> bool:
        """Makes a hot item like any other again; false when it is not hot."""
        item = self._hot.items.get(item_id)
        if item is None:
            return False
        item.pinned = False
        self._refit(item)
        self._soon()
        return True

    def touch(self, item_id: str) -> bool:
        """Says that a hot item matters now: its age starts anew. False when it is not hot."""
        item = self._hot.items.get(item_id)
        if item is None:
            return False
        self._step += 1
        item.touched = self._step
        self._hot.update(item)
        self._note(item, "hot")
        self._soon()
        return True

    async def pin_cold(self, item_id: str, pinned: bool = True) -> bool:
        """Keeps a put-away item from being pruned, or stops keeping it; false when it is not put away."""
        return await self.store.db.run(self.store.set_pinned, self._scope, item_id, pinned)

    async def forget(self, item_id: str) -> bool:
        """Puts a hot item away by hand, pinned or not; false when it is not hot. Nothing is deleted."""
        async with self._lock:
            await self._prepare()
            item = self._hot.items.get(item_id)
            if item is None:
                return False
            self._put_away(item, MANUAL, "put_away", automatic=False)
            await self._flush()
            return True

    async def delete_forever(self, item_id: str) -> bool:
        """Destroys a hot or cold item with its versions, vectors and index terms; false when there is none."""
        async with self._lock:
            await self._prepare()
            item = self._hot.items.get(item_id)
            if item is not None:
                self._let_go(item)
            was_pending = self._pending.pop(item_id, None) is not None
            gone = await self.store.db.run(self.store.delete, self._scope, [item_id])
            for event in [event for event in self.events if event.item_id == item_id]:
                self.events.remove(event)
            self._cold_known = await self.store.db.run(self.store.cold_count, self._scope)
            if gone or was_pending:
                self._tell("deleted", None, "An item was deleted for good.", f"id {item_id[-4:]}", automatic=False)
            await self._flush()
            return bool(gone or was_pending)

    async def prune(self, days: int = 180, now: datetime | None = None) -> list[str]:
        """Deletes what was put away more than ``days`` days ago and is not pinned; returns the ids."""
        before = format_utc((now or datetime.now(timezone.utc)) - timedelta(days=days))
        async with self._lock:
            await self._prepare()
            ids = await self.store.db.run(self.store.prune, self._scope, before)
            self._cold_known = await self.store.db.run(self.store.cold_count, self._scope)
            if ids:
                text = f"{len(ids)} items put away more than {days} days ago were deleted."
                self._tell("pruned", None, text, f"{len(ids)} items older than {days} days")
            await self._flush()
            return ids

    async def reembed(self, limit: int = 64) -> int:
        """Gives up to ``limit`` put-away items the vector they lack (the embedder failed, or is another one now);
        returns how many got one. Call it when idle until it returns 0."""
        run = self.store.db.run
        missing = await run(self.store.without_vector, self._scope, self._vectors.identity, limit)
        if not missing or not self._vectors.present:
            return 0
        vectors = await self._vectors.embed([text for _, text in missing], "document")
        made = [(number, vector) for (number, _), vector in zip(missing, vectors, strict=True) if vector is not None]
        await run(self.store.write_vectors, self._vectors.identity, made)
        return len(made)

    # --- sessions -----------------------------------------------------------------------------------

    async def load(self, session_id: str) -> bool:
        """Goes on with a session as it was saved; false when the store does not know it (it then begins empty). What
        was hot here before is saved with its own session."""
        await self.save()
        async with self._lock:
            known = await self.store.db.run(self.store.session, self._scope, session_id)
            self._reset(session_id)
            await self._prepare()
            await self._flush()
            return known is not None

    def _reset(self, session_id: str) -> None:
        calibration = self._hot.calibration
        self.session_id, self._session_given, self._ready = session_id, True, False
        self._hot = HotZone(self._scorer, calibrate=self._flags[0], weigh_names=self._flags[1])
        self._hot.calibration = calibration
        self._index = ReferenceIndex()
        self._goal, self._step, self.proposals, self._in_prompt = "", 0, (), frozenset()
        self._was_over = False

    def export_state(self) -> dict[str, Any]:
        """The hot zone as JSON values: step, goal, mark, items with their vectors. What is put away is in the store."""
        return {
            "version": _STATE_VERSION,
            "session_id": self.session_id,
            "step": self._step,
            "goal": self._goal,
            "word": self._renderer.word,
            "evictions": self.evictions,
            "identity": self._vectors.identity,
            "items": [item_to_state(item) for item in self._hot.items.values()],
        }

    def import_state(self, state: dict[str, Any]) -> None:
        """Makes the hot zone what :meth:`export_state` gave, also in another process or after more has happened.

        Hot items that are not in ``state`` are put away. An item that has another text in the store by now comes in
        under a new id; neither text is lost. It is written with the next call. Raises ``ValueError`` when ``state`` is
        not an exported state.
        """
        try:
            same = str(state.get("identity", "")) == self._vectors.identity
            items = [item_from_state(raw, with_vector=same) for raw in state["items"]]
            step, goal = int(state["step"]), str(state.get("goal", state.get("goal_text", "")))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"This is not a state of the working memory: {error!r}.") from error
        wanted = {item.id for item in items}
        for item in list(self._hot.items.values()):
            if item.id not in wanted:
                self._put_away(item, "not in the imported state", "put_away", automatic=True)
            else:
                self._let_go(item)
        if not self._session_given and state.get("session_id"):
            self.session_id = str(state["session_id"])
            self._ready = False
        self._step, self._goal = max(self._step, step), goal
        self._hot.set_goal(None)
        self._rename(str(state.get("word") or self._renderer.word))
        for item in items:
            item.session_id = self.session_id
            self._pending.pop(item.id, None)
            self._take_in(item)
        self._imported = items
        self._tell("imported", None, f"{len(items)} items were taken from a saved state.", f"{len(items)} items")


def _stored(text: str) -> str:
    """``text`` as it can be stored: half surrogates, which no encoding can write, become U+FFFD; all else stays."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
