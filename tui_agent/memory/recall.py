"""The recaller: what is worth sending with a message, how it was scored, and what was close and left out.

Candidates come from words (:mod:`~tui_agent.memory.lexical`) and meaning (:mod:`~tui_agent.memory.vectors`) over live
facts, put-away items, notes about projects and, on request, past messages. No model is asked. Every term of a score is
kept and shown, and the terms add up to the score. How the scores are made is in :mod:`~tui_agent.memory.ranking`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypeVar

from tui_agent.memory.choosing import NEAR, Candidate, Limits, choose, to_item
from tui_agent.memory.cold_index import ColdIndex
from tui_agent.memory.cold_ranking import candidates, ranked
from tui_agent.memory.cold_search import Query
from tui_agent.memory.database import Database
from tui_agent.memory.fact_candidates import CANDIDATES, fact_candidates
from tui_agent.memory.fact_index import FactIndex, embedded_text
from tui_agent.memory.facts import FactStore
from tui_agent.memory.history import History
from tui_agent.memory.passages import Found, PassageReader
from tui_agent.memory.places import is_memory_edit
from tui_agent.memory.ranking import Ranked, Weights, rank_passages
from tui_agent.memory.types import Embedder, Fact, RecalledItem, RecallRecord, Vector
from tui_agent.memory.vectors import Neighbours
from tui_agent.memory.widening import embed_wide
from tui_agent.memory.working import WorkingMemory

__all__ = ["Recaller"]

log = logging.getLogger(__name__)
_T = TypeVar("_T")

STORES = ("fact", "cold", "file")
"""The stores that feed an answer by themselves; ``message`` is searched on request."""

INDEX_PATIENCE_S = 0.001
"""How long the index of vectors may take to answer. Without its answer search is exact, which takes less than that."""

_CATCH_UPS = 3
_MESSAGES = 40
_COLD_HITS = 24
_EMBED_BATCH = 64
_EMBED_PATIENCE_S = 2.5


class NeighbourIndex(Protocol):
    """An index of the facts' vectors that follows the store (Chroma), and may be unable to answer at any moment."""

    async def nearest(self, vector: Vector, n: int, identity: str) -> Neighbours | None:
        """The ``n`` nearest facts, or ``None`` when it cannot be asked now: then search is exact."""
        ...

    def follow(self, identity: str) -> None:
        """Facts or their vectors may have changed; takes over what has, in the background."""
        ...


class Recaller:
    """Finds what is remembered and explains it. Without an embedder it works on words alone and says so.

    Args:
        db: runs the reading parts on its thread.
        facts: long-term facts.
        history: past messages, searched only on request.
        working: the working memory, for its cold zone.
        embedder: makes the query's vector; may have none yet (empty identity).
        notes: gives texts of memory files by name, called off the event loop.
        weights: of the score of items and messages.
        known: the index of ``facts``, where several recallers (of conversations in one project) share it.
        put_away: the index of what ``working`` has put away, in the same case.

    ``index``, where it is set, names the nearest facts; without it, and whenever it cannot answer, search by meaning is
    exact over the vectors in the database.
    """

    def __init__(
        self,
        db: Database,
        facts: FactStore,
        history: History,
        working: WorkingMemory | None = None,
        embedder: Embedder | None = None,
        notes: Callable[[], dict[str, str]] | None = None,
        *,
        weights: Weights | None = None,
        known: FactIndex | None = None,
        put_away: ColdIndex | None = None,
    ) -> None:
        self._db = db
        self._facts = facts
        self._history = history
        self._working = working
        self._embedder = embedder
        self._notes = notes
        self._weights = weights
        self.index: NeighbourIndex | None = None
        self.index_patience_s = INDEX_PATIENCE_S
        self._index = known if known is not None else FactIndex(db, facts)
        if put_away is None and working is not None:
            put_away = ColdIndex(working.store, working.scope.key)
        self._put_away = put_away
        self._passages = PassageReader(db)
        self._refreshing = asyncio.Lock()
        self._filling = asyncio.Lock()
        self._query_cache: tuple[str, str, tuple[Vector | None, Vector | None]] | None = None

    # -- the question ---------------------------------------------------------------------------------------------

    async def recall(
        self,
        query: str,
        goal: str = "",
        *,
        session_id: str = "",
        visible: Collection[str] = (),
        masked: Collection[str] = (),
        put_away: Collection[str] = (),
        never: Collection[str] = (),
        top_k: int = 5,
        threshold: float = 0.25,
        max_tokens: int = 600,
        count: Callable[[str], int] = lambda text: len(text) // 4 + 1,
        stores: Collection[str] = STORES,
        put_away_hits: list[str] | None = None,
    ) -> RecallRecord:
        """What fits ``query``, best first, within ``top_k`` items and ``max_tokens``.

        ``visible``, ``masked``, ``put_away`` and ``never`` are references (``fact:ID``, ``cold:ID``, ``file:NAME``)
        that are in the window already, must not be used, were put away for this session, or are never to be used for
        this topic. ``session_id`` is the conversation that asks: its own messages are not searched. The record also
        names the nearest candidates that were left out, and why; ``channels`` says whether meaning took part,
        ``extra["embed_ms"]`` what the embedder took of ``took_ms``, ``extra["index"]`` whether ``chroma`` named the
        facts that are near or search was ``exact``.
        ``put_away_hits`` gets the ids of all put-away items that have to do with ``query``, chosen or not, best first.
        """
        started = time.perf_counter()
        query = _sound(query)
        vector, wide = await self._query_vectors(query, for_facts="fact" in stores)
        embedded = time.perf_counter()
        sets = [frozenset(refs) for refs in (visible, masked, put_away, never)]
        limits = Limits(top_k, threshold, max_tokens, *sets)
        asking = self._ask_index(wide, top_k) if "fact" in stores else None
        asked = await self._question(query, vector, _COLD_HITS) if "cold" in stores else None
        said = await self._messages(query, None, session_id) if "message" in stores else []
        cold: list[Candidate] | None = None
        if asking is not None and asked is not None:  # another process looks meanwhile
            cold = await self._with_cold(asked, top_k + NEAR, limits, put_away_hits)
        nearest = await asking if asking is not None else None
        wanted = frozenset(store for store in ("fact", "file") if store in stores)

        def work() -> tuple[list[RecalledItem], list[RecalledItem], bool]:
            # All at once, on one thread: handing it from thread to thread takes longer than some of the steps.
            found = cold or []
            if cold is None and asked is not None:
                found = self._cold(asked, top_k + NEAR, limits, put_away_hits)
            return self._chosen(query, wide, limits, wanted, nearest, [*found, *said], count)

        items, near, meaning = await self._up_to_date(work, cold=cold is None and asked is not None)
        return RecallRecord(
            query=query,
            goal=goal,
            items=tuple(items),
            near=tuple(near),
            threshold=threshold,
            channels=("words", "meaning") if meaning else ("words",),
            took_ms=(time.perf_counter() - started) * 1000,
            extra={
                "embed_ms": round((embedded - started) * 1000, 2),
                "index": "exact" if nearest is None else "chroma",
            },
        )

    async def search_messages(
        self, query: str, limit: int = 10, *, session_id: str | None = None, without_session: str = ""
    ) -> list[RecalledItem]:
        """Past messages of user and assistant that fit ``query``, best first, by words and by what was said around."""
        found = await self._messages(_sound(query), session_id, without_session)
        return [to_item(candidate, query) for candidate in found[:limit]]

    async def search_cold(self, query: str, limit: int = 10) -> list[RecalledItem]:
        """Put-away items that fit ``query``, best first, with the items around them taken into account; none moves."""
        query = _sound(query)
        vector, _ = await self._query_vectors(query, for_facts=False)
        asked = await self._question(query, vector, max(60, 6 * limit))
        found = await self._with_cold(asked, limit) if asked is not None else []
        return [to_item(candidate, query) for candidate in found]

    async def _query_vectors(self, query: str, *, for_facts: bool) -> tuple[Vector | None, Vector | None]:
        """The vector of the question, and the one that is compared with those of facts, where it is wanted."""
        embedder = self._embedder
        if embedder is None or not embedder.identity or not query.strip():
            return None, None
        identity = embedder.identity
        if self._query_cache is not None and self._query_cache[:2] == (identity, query):
            return self._query_cache[2]
        try:
            # A slow embedder must not hold up the answer: words alone are a good second best.
            asked = embed_wide(embedder, [query], "query", wide=for_facts)
            found = await asyncio.wait_for(asked, _EMBED_PATIENCE_S)
        except Exception as error:
            log.info("the query could not be embedded, words alone are used: %s", error)
            return None, None
        vectors = found[0] if found else (None, None)
        if vectors[0] is not None and for_facts:
            self._query_cache = (identity, query, vectors)
        return vectors

    def _ask_index(self, vector: Vector | None, top_k: int) -> asyncio.Task[Neighbours | None] | None:
        """Begins to ask the index of vectors, where there is one that is worth asking."""
        if self.index is None or vector is None or self._embedder is None:
            return None
        if not self._index.pace.worth_asking():
            return None  # exact search is there sooner, and asking takes a millisecond from it
        asked = self.index.nearest(vector, max(CANDIDATES, top_k), self._embedder.identity)
        return asyncio.get_running_loop().create_task(self._answered(asked), name="asking the vector index")

    async def _answered(self, asked: Awaitable[Neighbours | None]) -> Neighbours | None:
        try:
            found = await asyncio.wait_for(asked, self.index_patience_s)
        except asyncio.TimeoutError:
            self._index.pace.answered(late=True)
            return None
        self._index.pace.answered(late=False)
        return found

    # -- facts and notes ------------------------------------------------------------------------------------------

    async def warm(self) -> None:
        """Build the indexes of facts and of put-away items, so that the first question does not wait for them."""
        await self._refresh()
        await self._refresh_cold()

    async def _refresh(self) -> None:
        async with self._refreshing:
            delta = await self._db.run(self._index.read, self._identity)
            if delta is not None:
                await asyncio.to_thread(self._index.apply, delta)

    async def _refresh_cold(self) -> None:
        if self._put_away is not None:
            # A few items at a time: the thread is the one on which everything is written.
            while not await self._db.run(self._put_away.follow, self._identity):
                pass

    @property
    def _identity(self) -> str:
        return self._embedder.identity if self._embedder is not None else ""

    async def _up_to_date(self, work: Callable[[], _T], *, cold: bool) -> _T:
        """``work()`` on the database's thread, with the index of facts (and with ``cold`` that of put-away items) as
        the store is at that moment.

        A few new rows are taken over in the same go. For many the thread is left free for writes meanwhile; where
        another process writes all the time, the index is soon good enough as it is.
        """

        def at_once() -> tuple[_T] | None:
            if not self._index.keep_up(self._identity):
                return None
            if cold and not self._cold_up_to_date(self._index.others):
                return None
            return (work(),)

        for _ in range(_CATCH_UPS):
            async with self._refreshing:
                done = await self._db.run(at_once)
            if done is not None:
                return done[0]
            await self._refresh()
            if cold:
                await self._refresh_cold()
        return await self._db.run(work)

    def _cold_up_to_date(self, others: int | None = None) -> bool:
        """Takes over what was put away since, when that is little. On the database's thread."""
        return self._put_away is None or self._put_away.keep_up(self._identity, others)

    def _chosen(
        self,
        query: str,
        vector: Vector | None,
        limits: Limits,
        wanted: Collection[str],
        nearest: Neighbours | None,
        others: Sequence[Candidate],
        count: Callable[[str], int],
    ) -> tuple[list[RecalledItem], list[RecalledItem], bool]:
        """What is sent, what was near, and whether meaning took part. On the database's thread."""
        found = list(others)
        if wanted:
            notes = self._notes() if "file" in wanted and self._notes is not None else {}
            found += fact_candidates(self._index, query, vector, notes, limits, wanted, nearest)
        return *choose(found, limits, count, query), any(_by_meaning(candidate) for candidate in found)

    # -- put-away items and messages ------------------------------------------------------------------------------

    async def _question(self, query: str, vector: Vector | None, limit: int) -> Query | None:
        """The question to put-away items, as the working memory asks it."""
        if self._working is None or not query.strip():
            return None
        return await self._working.question(query, limit, vector)

    async def _with_cold(
        self, asked: Query, kept: int, limits: Limits | None = None, fitting: list[str] | None = None
    ) -> list[Candidate]:
        """As :meth:`_cold`, from anywhere."""

        def at_once() -> tuple[list[Candidate]] | None:
            return (self._cold(asked, kept, limits, fitting),) if self._cold_up_to_date() else None

        for _ in range(_CATCH_UPS):
            if (done := await self._db.run(at_once)) is not None:
                return done[0]
            await self._refresh_cold()
        return await self._db.run(self._cold, asked, kept, limits, fitting)

    def _cold(
        self, asked: Query, kept: int, limits: Limits | None = None, fitting: list[str] | None = None
    ) -> list[Candidate]:
        """The best ``kept`` put-away items, and as many more as ``limits`` pass over, ranked together with those around
        them, as they are now; ``fitting`` gets the ids of all that have to do with the question. On the database's
        thread."""
        index, working = self._put_away, self._working
        if index is None or working is None:
            return []
        hits = [hit for hit in candidates(index, asked) if not is_memory_edit(hit.kind, hit.source)]
        known = {hit.number: working.status(hit) for hit in hits}
        if fitting is not None:
            fitting += [hit.id for hit in hits if known[hit.number] != "threshold"]
        if limits is not None:
            kept += sum(limits.pass_over(f"cold:{hit.id}") for hit in hits)
        found = ranked(index, asked.text, list(known), asked.vector, kept, self._weights)
        texts = index.texts([one.item.number for one in found])
        described = []
        for one in found:
            item = one.item
            if item.number not in texts or is_memory_edit(item.kind, item.source):
                continue
            candidate = Candidate(
                f"cold:{item.id}", texts[item.number], item.kind, item.source, created_at=item.created_at,
                terms=list(one.terms),
            )  # fmt: skip
            if item.number in known:
                candidate.cooldown = known[item.number] == "cooldown"
            elif item.session_id == working.session_id:
                candidate.cooldown = working.step - item.put_away_step < working.recall_cooldown_steps
            described.append(candidate)
        return described

    async def _messages(self, query: str, session_id: str | None, without_session: str) -> list[Candidate]:
        if not query.strip():
            return []

        def read() -> list[Found]:
            return self._passages.messages(query, session_id=session_id, without_session=without_session)

        found = await self._db.run(read)
        order = await asyncio.to_thread(_ranked, query, found, _MESSAGES, self._weights)
        known = {one.passage.ref: one for one in found}
        return [_candidate(entry, known[entry.passage.ref]) for entry in order]

    # -- keeping vectors ------------------------------------------------------------------------------------------

    async def index_missing(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed live facts that have no vector of the present identity; returns how many were done.

        ``progress(done, total)`` is called after each batch; until all are done, words find the others.

        Text is on disk long before this runs, so a failing embedder costs ranking, never a fact. The index is brought
        up to date as well, so that the next question finds it warm.
        """
        async with self._filling:
            done = await self._fill(progress)
        if done:
            self._index.doubt()
        await self._refresh()
        if self.index is not None and self._embedder is not None and self._embedder.identity:
            self.index.follow(self._embedder.identity)
        return done

    async def _fill(self, progress: Callable[[int, int], None] | None) -> int:
        embedder = self._embedder
        if embedder is None or not embedder.identity:
            return 0
        identity = embedder.identity
        missing: list[Fact] = await self._db.run(self._facts.missing_vectors, identity)
        done = 0
        for start in range(0, len(missing), _EMBED_BATCH):
            batch = missing[start : start + _EMBED_BATCH]
            try:
                found = await embed_wide(embedder, [embedded_text(fact) for fact in batch], "document")
            except Exception as error:
                log.warning("facts could not be embedded; words alone find them: %s", error)
                return done
            made = {fact.id: wide for fact, (_, wide) in zip(batch, found, strict=True) if wide is not None}
            if made:
                done += await self._db.run(self._facts.put_vectors, identity, made)
            if progress is not None:
                progress(min(start + _EMBED_BATCH, len(missing)), len(missing))
        return done


def _ranked(query: str, found: Sequence[Found], limit: int, weights: Weights | None = None) -> list[Ranked]:
    ranked = rank_passages(query, [one.passage for one in found], limit, weights)
    return [entry for entry in ranked if entry.score > 0]


def _candidate(entry: Ranked, one: Found) -> Candidate:
    passage = entry.passage
    return Candidate(
        f"message:{passage.ref}", passage.text, one.kind, one.source, created_at=passage.created_at,
        terms=list(entry.terms),
    )  # fmt: skip


def _by_meaning(candidate: Candidate) -> bool:
    return any(term.name == "meaning" and term.note.startswith("cosine") for term in candidate.terms)


def _sound(text: str) -> str:
    """``text`` without halves of characters, which neither SQLite nor an embedder can take."""
    return text.encode("utf-8", "replace").decode("utf-8")
