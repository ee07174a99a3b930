"""The recaller: what is worth sending with a message, how it was scored, and what was close and left out.

Candidates come from words (:mod:`~tui_agent.memory.lexical`) and meaning (:mod:`~tui_agent.memory.vectors`) over live
facts, put-away items, notes about projects and, on request, past messages. No model is asked. Every term of a score is
kept and shown, and the terms add up to the score. How the scores are made is in :mod:`~tui_agent.memory.ranking`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from tui_agent.memory.answers import answer_term, asked_for
from tui_agent.memory.choosing import NEAR, Candidate, Limits, choose, to_item
from tui_agent.memory.database import Database
from tui_agent.memory.fact_index import FactHits, FactIndex, embedded_text
from tui_agent.memory.facts import FactStore
from tui_agent.memory.history import History
from tui_agent.memory.passages import Found, PassageReader
from tui_agent.memory.places import is_memory_edit
from tui_agent.memory.ranking import RELATED, RELATED_ALONE, Ranked, Weights, blend, rank_passages
from tui_agent.memory.text import parse_utc, utc_now
from tui_agent.memory.types import Embedder, Fact, RecalledItem, RecallRecord, Term, Vector
from tui_agent.memory.vectors import Neighbours
from tui_agent.memory.widening import embed_wide
from tui_agent.memory.working import WorkingMemory
from tui_agent.memory.working_types import Named

__all__ = ["Recaller", "fact_terms"]

log = logging.getLogger(__name__)
_T = TypeVar("_T")

AGE, IMPORTANCE, USE, PIN = 0.04, 0.03, 0.02, 0.03
"""The most that age takes away, and that importance, recent use and a pin add: they decide between facts that fit
about equally well, and nothing else."""
STORES = ("fact", "cold", "file")
"""The stores that feed an answer by themselves; ``message`` is searched on request."""

INDEX_PATIENCE_S = 0.004
"""How long the index of vectors may take to answer. Without its answer search is exact, which takes less than that."""
_LATE_OFTEN, _ASKED_AGAIN = 3, 32  # an index that is late so often in a row is asked only with every 32nd question

_CATCH_UPS = 3
_CANDIDATES = 40
_COLD_HITS, _COLD_KEPT = 24, 16
_OLD_DAYS, _RECENT_DAYS = 365.0, 30.0
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
        self._index_late = self._questions = 0
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
        this topic. ``session_id`` is the conversation
        that asks: its own messages are not searched. The record also names the nearest candidates that were left out,
        and why; ``channels`` says whether meaning took part, ``extra["embed_ms"]`` what the embedder took of
        ``took_ms``, ``extra["index"]`` whether ``chroma`` named the facts that are near or search was ``exact``.
        ``put_away_hits`` gets the ids of all put-away items that have to do with ``query``, chosen or not, best first.
        """
        started = time.perf_counter()
        query = _sound(query)
        vector, wide = await self._query_vectors(query, for_facts="fact" in stores)
        embedded = time.perf_counter()
        sets = [frozenset(refs) for refs in (visible, masked, put_away, never)]
        limits = Limits(top_k, threshold, max_tokens, *sets)
        # Side by side: one waits for another process while the other looks into the database.
        nearest, named, said = await asyncio.gather(
            self._near(wide, top_k) if "fact" in stores else _none(),
            self._cold_named(query, vector, _COLD_HITS, put_away_hits) if "cold" in stores else _none(),
            self._messages(query, None, session_id) if "message" in stores else _none(),
        )
        wanted = frozenset(store for store in ("fact", "file") if store in stores)
        # All the rest at once, on one thread: handing it from thread to thread takes longer than some of the steps.
        items, near, meaning = await self._with_facts(
            lambda: self._chosen(query, (vector, wide), limits, wanted, nearest, named or {}, said or [], count)
        )
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
        return [to_item(candidate, query, _no_count) for candidate in found[:limit]]

    async def search_cold(self, query: str, limit: int = 10) -> list[RecalledItem]:
        """Put-away items that fit ``query``, best first, with the items around them taken into account; none moves."""
        query = _sound(query)
        vector, _ = await self._query_vectors(query, for_facts=False)
        found = await self._cold(query, vector, max(60, 6 * limit), limit)
        return [to_item(candidate, query, _no_count) for candidate in found]

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

    async def _near(self, vector: Vector | None, top_k: int) -> Neighbours | None:
        if self.index is None or vector is None or self._embedder is None:
            return None
        self._questions += 1
        if self._index_late >= _LATE_OFTEN and self._questions % _ASKED_AGAIN:
            return None  # exact search is there sooner, and asking takes a millisecond from it
        asked = self.index.nearest(vector, max(_CANDIDATES, top_k), self._embedder.identity)
        try:
            found = await asyncio.wait_for(asked, self.index_patience_s)
        except asyncio.TimeoutError:
            self._index_late += 1
            return None
        self._index_late = 0
        return found

    # -- facts and notes ------------------------------------------------------------------------------------------

    async def warm(self) -> None:
        """Build the index of facts, so that the first question does not wait for it."""
        await self._refresh()

    async def _refresh(self) -> None:
        async with self._refreshing:
            delta = await self._db.run(self._index.read, self._identity)
            if delta is not None:
                await asyncio.to_thread(self._index.apply, delta)

    @property
    def _identity(self) -> str:
        return self._embedder.identity if self._embedder is not None else ""

    async def _with_facts(self, work: Callable[[], _T]) -> _T:
        """``work()`` on the database's thread, with the index of facts as the store is at that moment.

        A few new facts are taken over in the same go. For many the thread is left free for writes meanwhile; where
        another process writes all the time, the index is soon good enough as it is.
        """

        def at_once() -> tuple[_T] | None:
            return (work(),) if self._index.keep_up(self._identity) else None

        for _ in range(_CATCH_UPS):
            async with self._refreshing:
                done = await self._db.run(at_once)
            if done is not None:
                return done[0]
            await self._refresh()
        return await self._db.run(work)

    def _chosen(
        self,
        query: str,
        vectors: tuple[Vector | None, Vector | None],
        limits: Limits,
        wanted: Collection[str],
        nearest: Neighbours | None,
        named: Mapping[str, Named],
        said: Sequence[Candidate],
        count: Callable[[str], int],
    ) -> tuple[list[RecalledItem], list[RecalledItem], bool]:
        """What is sent, what was near, and whether meaning took part. On the database's thread."""
        candidates = [
            *(self._known(query, vectors[1], limits, wanted, nearest) if wanted else ()),
            *self._cold_described(query, vectors[0], named, _COLD_KEPT),
            *said,
        ]
        return *choose(candidates, limits, count, query), any(_by_meaning(candidate) for candidate in candidates)

    def _known(
        self,
        query: str,
        vector: Vector | None,
        limits: Limits,
        wanted: Collection[str],
        near: Neighbours | None = None,
    ) -> list[Candidate]:
        """Facts and notes that fit ``query``, best first, as many as the answer and its explanation can use."""
        notes = self._notes() if "file" in wanted and self._notes is not None else {}
        hits = self._index.find(query, vector, notes, max(_CANDIDATES, limits.top_k), near)
        passed_over = sum(
            any(ref in refs for refs in (limits.visible, limits.masked, limits.put_away, limits.never))
            for ref in {*hits.words, *hits.meaning, *hits.related}
        )
        found = self._described(hits, notes, 2 * (limits.top_k + NEAR) + passed_over)
        if kind := asked_for(query):
            for candidate in found:
                candidate.terms.append(answer_term(kind, candidate.text))
        return [candidate for candidate in found if candidate.ref.partition(":")[0] in wanted]

    def _described(self, hits: FactHits, notes: Mapping[str, str], most: int) -> list[Candidate]:
        """The best hits with their rows as they are at this moment: what has expired or gone since is dropped."""
        scored = {}
        for ref in dict.fromkeys((*hits.words, *hits.meaning, *hits.related)):
            words, meaning, related = hits.words.get(ref), hits.meaning.get(ref), hits.related.get(ref)
            near = meaning.calibrated if meaning is not None else None
            found = words.words if words is not None else 0.0
            by_words, by_meaning = blend(found, hits.quality if near is not None else 1.0, near)
            scored[ref] = [Term("words", by_words, ", ".join(words.matched) if words is not None else "")]
            if hits.has_vectors:
                note = f"cosine {meaning.cosine:.2f}" if meaning is not None else "no vector"
                scored[ref].append(Term("meaning", by_meaning, note))
            if related is not None:
                weight = RELATED if near is not None else RELATED_ALONE
                note = f"other words for {', '.join(related.matched)}"
                scored[ref].append(Term("related", weight * related.share, note))
        kept = sorted(scored, key=lambda ref: (-sum(term.value for term in scored[ref]), ref))[:most]
        rows, rivals = self._rows([ref[5:] for ref in kept if ref.startswith("fact:")])
        now = utc_now()
        candidates: list[Candidate] = []
        for ref in kept:
            store, _, name = ref.partition(":")
            if store == "file":
                if name in notes:
                    candidates.append(Candidate(ref, notes[name], "file", name, terms=scored[ref]))
            elif name in rows:
                fact, live = rows[name]
                terms = scored[ref] + fact_terms(fact, now)
                others = [text for other, text in rivals.get(fact.subject_key, ()) if other != fact.id]
                if live and others:
                    terms.append(Term("contradiction", 0.0, f"also held to be true: {'; '.join(others)}"))
                candidate = Candidate(
                    ref, fact.fact, str(fact.kind), fact.source, fact.quote, fact.created_at, fact.confirmed_at,
                    superseded=not live, terms=terms,
                )  # fmt: skip
                candidates.append(candidate)
        return candidates

    def _rows(self, ids: Sequence[str]) -> tuple[dict[str, tuple[Fact, bool]], dict[str, list[tuple[str, str]]]]:
        rows = self._index.rows(ids)
        return rows, self._index.rivals([fact.subject_key for fact, live in rows.values() if live])

    # -- put-away items and messages ------------------------------------------------------------------------------

    async def _cold(self, query: str, vector: Vector | None, hits: int, kept: int) -> list[Candidate]:
        """Put-away items, ranked together with those around them."""
        named = await self._cold_named(query, vector, hits)
        return await self._db.run(self._cold_described, query, vector, named, kept)

    async def _cold_named(
        self, query: str, vector: Vector | None, hits: int, fitting: list[str] | None = None
    ) -> dict[str, Named]:
        """The candidates among put-away items, by id: the working memory names them."""
        working = self._working
        if working is None or not query.strip():
            return {}
        try:
            # Without a vector the working memory asks its embedder itself, which may be the slow one again.
            patience = None if vector is not None else _EMBED_PATIENCE_S
            found_there = await asyncio.wait_for(working.candidates(query, hits, vector=vector), patience)
        except asyncio.TimeoutError:
            log.info("put-away items are not searched: the embedder takes too long")
            return {}
        found_there = [hit for hit in found_there if not is_memory_edit(hit.kind, hit.source)]
        if fitting is not None:
            fitting += [hit.id for hit in found_there if hit.status != "threshold"]
        return {hit.id: hit for hit in found_there}

    def _cold_described(
        self, query: str, vector: Vector | None, named: Mapping[str, Named], kept: int
    ) -> list[Candidate]:
        """The best ``kept`` of the candidates and their neighbours, as they are now. On the database's thread."""
        working = self._working
        if working is None or not named:
            return []
        scope = working.scope.key
        found = self._passages.items(scope, [one.number for one in named.values()], vector, self._identity)
        ranked = _ranked(query, found, kept, self._weights)
        texts = self._passages.texts(scope, [r.passage.ref for r in ranked])
        known = {one.passage.ref: one for one in found}
        candidates = []
        for entry in ranked:
            one, hit = known[entry.passage.ref], named.get(entry.passage.ref)
            if entry.passage.ref not in texts or is_memory_edit(one.kind, one.source):
                continue
            candidate = _candidate("cold", entry, one, texts[entry.passage.ref])
            if hit is not None:
                candidate.cooldown = hit.status == "cooldown"
            elif entry.passage.group == working.session_id:
                candidate.cooldown = working.step - one.put_away_step < working.recall_cooldown_steps
            candidates.append(candidate)
        return candidates

    async def _messages(self, query: str, session_id: str | None, without_session: str) -> list[Candidate]:
        if not query.strip():
            return []

        def read() -> list[Found]:
            return self._passages.messages(query, session_id=session_id, without_session=without_session)

        found = await self._db.run(read)
        ranked = await asyncio.to_thread(_ranked, query, found, _CANDIDATES, self._weights)
        known = {one.passage.ref: one for one in found}
        return [_candidate("message", r, known[r.passage.ref], r.passage.text) for r in ranked]

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


def fact_terms(fact: Fact, now: str) -> list[Term]:
    """Small terms that decide between facts that fit equally well; age counts from the last confirmation, and what it
    takes away is capped: expiry and review deal with what is really old."""
    days = _days_between(fact.confirmed_at, now)
    terms = [
        Term("age", -AGE * min(days / _OLD_DAYS, 1.0), f"confirmed {int(days)} days ago"),
        Term("importance", IMPORTANCE * (fact.importance - 5) / 5, f"importance {fact.importance}"),
    ]
    if fact.last_used_at and _days_between(fact.last_used_at, now) <= _RECENT_DAYS:
        terms.append(Term("use", USE, f"used on {fact.last_used_at[:10]}"))
    if fact.pinned:
        terms.append(Term("pin", PIN, "pinned"))
    return terms


def _days_between(earlier: str, later: str) -> float:
    try:
        return max(0.0, (parse_utc(later) - parse_utc(earlier)).total_seconds() / 86400)
    except ValueError:
        return 0.0  # a time somebody wrote by hand


def _ranked(query: str, found: Sequence[Found], limit: int, weights: Weights | None = None) -> list[Ranked]:
    ranked = rank_passages(query, [one.passage for one in found], limit, weights)
    return [entry for entry in ranked if entry.score > 0]


def _candidate(store: str, entry: Ranked, one: Found, text: str) -> Candidate:
    return Candidate(
        f"{store}:{entry.passage.ref}", text, one.kind, one.source, created_at=entry.passage.created_at,
        terms=list(entry.terms),
    )  # fmt: skip


async def _none() -> None:
    return None


def _by_meaning(candidate: Candidate) -> bool:
    return any(term.name == "meaning" and term.note.startswith("cosine") for term in candidate.terms)


def _sound(text: str) -> str:
    """``text`` without halves of characters, which neither SQLite nor an embedder can take."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _no_count(_text: str) -> int:
    return 0
