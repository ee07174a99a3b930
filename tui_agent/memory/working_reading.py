"""What the working memory shows: the text for the model, and rows, terms, versions and the log for people."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Literal

from tui_agent.memory.cold_search import Hit
from tui_agent.memory.cold_tables import LogLine
from tui_agent.memory.database import StoreError
from tui_agent.memory.rendering import Assembly, Block, in_order
from tui_agent.memory.types import Term
from tui_agent.memory.working_recall import Recalling
from tui_agent.memory.working_types import HotItem

_MANIFEST_LINES = 5
_SHORTEST_LINE = 12  # tokens; with less left no put-away item is looked for
_STALE_AFTER = 8  # items put away since, after which those that fit the goal are looked up again
_BIG_RENDER = 1500  # items from which rendering goes to a thread
_COUNTED_WHOLE = 32_768  # characters up to which the rendered text is counted once more as a whole


class Reading(Recalling):
    """Reading; nothing here moves an item, except that :meth:`assemble` puts the budget in order first."""

    async def assemble(self, query: str | None = None) -> Assembly:
        """The text for the model, within the budget: the hot items in order of time inside priority classes, and a few
        put-away items that fit ``query`` (else the goal) by name."""
        async with self._lock:
            await self._prepare()
            await self._fill_vectors()
            self._balance()
            await self._flush()
            lines, more = await self._manifest(query or self._goal)
            if len(self._hot) > _BIG_RENDER:
                assembly = await asyncio.to_thread(self._build, lines, more)
            else:
                assembly = self._build(lines, more)
            self._in_prompt = frozenset(block.id for block in assembly.blocks)
            return assembly

    async def _manifest(self, query: str) -> tuple[list[str], int]:
        """Lines for put-away items that fit, and how many there are beyond them."""
        free = self._limit - self._hot.used
        if not self._cold_known or not self._manifest_reserve:
            return [], 0
        lines: list[str] = []
        if query and free >= _SHORTEST_LINE:
            known, at, hits = self._manifest_found
            if known != query:
                hits = await self._look_up(query)
            elif query == self._goal and abs(self._cold_known - at) >= _STALE_AFTER:
                self._look_up_soon()  # what was found last will do for this time
            elif query != self._goal and self._cold_known != at:
                hits = await self._look_up(query)
            for hit in hits:
                label = hit.summary.strip() or hit.text.strip().split("\n", 1)[0]
                line = self._renderer.manifest_line(hit.id, hit.kind, label, hit.tokens)
                cost = self._renderer.count(f"{line}\n") + 1
                if hit.fits and cost <= free and hit.id not in self._hot.items:
                    lines.append(line)
                    free -= cost
        return lines, max(0, self._cold_known - len(lines))

    @property
    def put_away_count(self) -> int:
        """How many items of the project are put away, as far as this window knows."""
        return self._cold_known

    def fitting_goal(self) -> tuple[str, ...]:
        """Ids of put-away items that fit the goal, best first, as found last. Where others were put away since, they
        are looked up again in the background, for the next time."""
        known, at, hits = self._manifest_found
        if self._goal and self._cold_known and (known != self._goal or at != self._cold_known):
            self._look_up_soon()
        return tuple(hit.id for hit in hits if hit.fits) if known == self._goal else ()

    async def _look_up(self, query: str) -> list[Hit]:
        hits = await self._find(query, _MANIFEST_LINES, only_cold=True)
        self._manifest_found = (query, self._cold_known, hits)
        return hits

    def _look_up_soon(self) -> None:
        """Looks up in the background what fits the goal by now."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look_up_quietly())

    async def _look_up_quietly(self) -> None:
        async with self._lock:
            with contextlib.suppress(StoreError):  # then the lines stay as they were
                if self._goal:
                    await self._look_up(self._goal)

    def _build(self, lines: list[str], more: int) -> Assembly:
        hot, step, block = self._hot, self._step, self._renderer.block
        scores = hot.scores(step).tolist()
        blocks = [block(item, scores[item.row], step) for item in in_order(list(hot.items.values()))]
        skipped: list[str] = []
        if hot.used > self._limit:  # pins alone exceed the budget, or a change was not settled yet
            self._leave_out(blocks, skipped, hot.used - self._limit)
        while True:
            made = self._compose(blocks, lines, more, skipped)
            # The counter may find the whole dearer than its parts: then lines of put-away items give way first.
            if made.used_tokens <= self.max_tokens:
                return made
            if lines or made.manifest_shown:
                lines, more = lines[:-1], more + 1 if lines else 0
            elif not self._leave_out(blocks, skipped, made.used_tokens - self.max_tokens):
                return made

    @staticmethod
    def _leave_out(blocks: list[Block], skipped: list[str], tokens: int) -> bool:
        """Takes the weakest blocks that are not pinned out, until ``tokens`` are saved; false when there are none."""
        loose = sorted((block for block in blocks if not block.pinned), key=lambda block: block.score)
        for block in loose:
            if tokens <= 0:
                break
            tokens -= block.tokens
            blocks.remove(block)
            skipped.append(block.id)
        return bool(loose)

    def _compose(self, blocks: list[Block], lines: list[str], more: int, skipped: list[str]) -> Assembly:
        head, tail = self._frame
        manifest: tuple[str, ...] = ()
        if lines or more:
            manifest = (self._renderer.manifest_head(), *lines, *([f"+{more} more"] if more else []))
        if not blocks and not manifest:
            head, tail = (), ()
        text = "\n".join((*head, *(block.text for block in blocks), *manifest, *tail))
        if len(text) <= _COUNTED_WHOLE:
            used = self._renderer.count(text)
        else:  # each part was counted, with something to spare for where they meet
            used = self._frame_tokens + sum(block.tokens for block in blocks)
            used += self._renderer.count("\n".join(manifest)) + 1 if manifest else 0
        return Assembly(tuple(blocks), text, self.max_tokens, used, tuple(skipped), tuple(lines), more, bool(manifest))

    def hot(self, sort: Literal["score", "age", "tokens"] = "score") -> list[HotItem]:
        """The hot items with the terms of their scores: best first, or youngest first, or largest first."""
        terms = self._hot.terms(self._step)
        rows = [
            HotItem(
                id=item.id, kind=item.kind, text=item.text, summary=item.label, tokens=item.cost,
                score=sum(term.value for term in terms[item.id]), terms=terms[item.id], pinned=item.pinned,
                age=max(0, self._step - item.last), source=item.source, created_at=item.created_at,
                in_prompt=item.id in self._in_prompt, text_tokens=item.tokens, whole=not item.shown,
            )
            for item in self._hot.items.values()
        ]  # fmt: skip
        keys = {"score": lambda r: -r.score, "age": lambda r: r.age, "tokens": lambda r: -r.tokens}
        return sorted(rows, key=keys[sort])

    def explain(self, item_id: str) -> tuple[Term, ...]:
        """The terms of a hot item's score; they add up to it. Raises ``KeyError`` when it is not hot."""
        return self._hot.terms(self._step)[item_id]

    async def text_of(self, item_id: str) -> str | None:
        """The whole text of a hot or cold item, or ``None``."""
        item = self._hot.items.get(item_id)
        if item is not None:
            return item.text
        found = await self.store.db.run(self.store.items, self._scope, [item_id])
        return found[item_id][0].text if item_id in found else None

    async def versions(self, item_id: str) -> list[tuple[str, str, str]]:
        """Earlier texts of an item, newest first: ``(text, replaced at, reason)``."""
        return await self.store.db.run(self.store.versions, self._scope, item_id)

    async def log(self, limit: int = 200, *, this_session: bool = False) -> list[LogLine]:
        """The stored log of moves, newest first."""
        async with self._lock:
            await self._prepare()
            await self._flush()
            only = self.session_id if this_session else ""
            return await self.store.db.run(self.store.log, self._scope, limit, only)
