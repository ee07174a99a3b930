"""Keeps Chroma beside the facts of a session: loads it in the background, follows the rows, and says what it is doing.

Nothing here is ever waited for by a question: while Chroma loads, is filled, belongs to another window or is broken,
search by meaning is exact over the vectors in the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tui_agent.agent.consent import Consent
from tui_agent.agent.events import Event, IndexChanged, Notice
from tui_agent.agent.views import ActionResult
from tui_agent.memory.index_process import IndexProcess
from tui_agent.memory.index_status import IndexStatus
from tui_agent.memory.shredding import index_is_stale, note_index_emptied
from tui_agent.memory.vectors import Neighbours
from tui_agent.settings_fields import is_this_machine

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tui_agent.agent.stores import Stores
    from tui_agent.memory.types import Vector
    from tui_agent.settings import Settings

log = logging.getLogger(__name__)

_LOOK_AGAIN_S = 30.0
_SHOWN_S = 0.2  # how often progress is told at most
_PIECE = 1000  # rows read in one go
_FROM_ROWS = 200  # rows from which filling the index is worth showing
_ANSWER_S = 1.0


class _Stale(Exception):
    """The index was emptied for a deletion since the rows for it were read: they may hold what was deleted."""


class IndexKeeper:
    """The vector index of one open project.

    Args:
        emit: hears :class:`IndexChanged` and, once per reason, a :class:`Notice`. Called on the event loop.
        make: makes the index; another one in tests.
    """

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        emit: Callable[[Event], None],
        make: Callable[..., IndexProcess] = IndexProcess,
    ) -> None:
        self._stores = stores
        self._settings = settings
        self._emit = emit
        self._make = make
        self._index: IndexProcess | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tui-agent-index")
        self._known: dict[str, int] = {}
        self._held: frozenset[str] = frozenset()
        self._wanted = ""
        self._rebuild = False
        self._drops = 0
        self._work: asyncio.Task[None] | None = None
        self._closed = False
        self._begun = False
        self._looked_at = 0.0
        self._told_at = 0.0
        self._said: set[str] = set()
        self.status = IndexStatus(settings.chroma.mode, "off" if settings.chroma.mode == "off" else "empty")

    # -- what the recaller asks ------------------------------------------------------------------------------------

    async def nearest(self, vector: Vector, n: int, identity: str) -> Neighbours | None:
        """The ``n`` nearest facts, or ``None`` at once when the index is busy, elsewhere, broken or of another kind."""
        index, held = self._index, self._held
        if index is None or self.status.state != "ready" or identity != self.status.identity or self._busy:
            return None
        try:
            hits = await asyncio.wait_for(self._run(index.query, vector, n), _ANSWER_S)
        except (asyncio.TimeoutError, RuntimeError):
            return None
        if hits is None:
            if index.state == "broken":
                self._trouble(index)
            return None
        return Neighbours(frozenset(hit.id for hit in hits), held)

    def follow(self, identity: str) -> None:
        """Facts or their vectors may have changed: the index takes over what has, in the background."""
        if self._closed or self.status.state == "off" or not identity:
            return
        self._wanted = identity
        if self._begun and (self._work is None or self._work.done()):
            self._work = asyncio.get_running_loop().create_task(self._follow(), name="vector-index")

    async def look_for_deletions(self) -> None:
        """Make the index anew when a deletion in another process could not empty it, because this one holds it."""
        db = self._stores.db
        if self.owns and self.status.identity and await db.run(index_is_stale, db):
            self.follow(self.status.identity)

    def begin(self, identity: str) -> None:
        """Nobody waits for the first screen any more: the index may be loaded."""
        self._begun = True
        self.follow(identity or self._wanted)

    # -- what a person does ----------------------------------------------------------------------------------------

    async def rebuild(self, identity: str) -> ActionResult:
        """Throw the index away and make it anew from the rows."""
        if self.status.state == "off":
            return ActionResult(False, "The vector index is switched off; set chroma.mode to local first.")
        if not identity:
            return ActionResult(False, "There is no embedder, so there are no vectors to index; words find the facts.")
        await self.settled()
        self._begun = self._rebuild = True
        self._stores.fact_index.pace.again()
        self._said.clear()
        self.follow(identity)
        await self.settled()
        done = self.status.state in ("ready", "empty")
        return ActionResult(done, self.status.sentence())

    def drop(self) -> bool:
        """Empties the index where this process owns it, for a deletion; blocking, from a thread. ``False`` when it
        could not be done."""
        index = self._index
        if index is None:
            return False
        self._drops += 1  # before the thread's turn: rows that were read by now must not follow behind it
        self._known, self._held = {}, frozenset()
        return self._thread.submit(index.drop).result()

    @property
    def owns(self) -> bool:
        """Whether this process has the index's folder in hand, so that nobody else may touch it."""
        index = self._index
        return index is not None and index.state != "broken" and self._settings.chroma.mode == "local"

    async def read_legacy(self, store: Any) -> list[Any]:
        """The texts of another program's store, read in the index's process. Raises ``OSError``."""
        index = self._index or self._new_index(self._wanted or "none")
        try:
            return list(await self._run(index.read_legacy, store))
        finally:
            if index is not self._index:
                await self._run(index.close)

    async def settled(self) -> None:
        """Wait until what was to be taken over has been."""
        while self._work is not None and not self._work.done():
            await asyncio.wait({self._work})

    async def close(self) -> None:
        """Let the index go."""
        self._closed = True
        index, busy = self._index, self._busy
        self._index = None
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        if index is not None and busy:
            await asyncio.to_thread(index.abandon)
        if index is not None:
            with contextlib.suppress(RuntimeError):
                await self._run(index.close)
        await asyncio.to_thread(self._thread.shutdown, True)

    # -- following -------------------------------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        return self._work is not None and not self._work.done()

    async def _run(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(func, *args, **kwargs))

    def _write(self, drops: int, func: Callable[..., Any], *args: Any) -> Any:
        """In the index's thread: write rows that were read when it had been emptied ``drops`` times."""
        if self._drops != drops:
            raise _Stale
        return func(*args)

    async def _follow(self) -> None:
        while self._wanted:
            identity, self._wanted = self._wanted, ""
            anew, self._rebuild = self._rebuild, False
            try:
                await self._take_over(identity, anew)
            except _Stale:
                self._wanted = self._wanted or identity
            except Exception:
                log.exception("the vector index could not follow the facts")
                return

    async def _take_over(self, identity: str, anew: bool) -> None:
        drops = self._drops
        # A deletion in another process could not empty the index that this one holds. Looked at before any row is read.
        local = self._settings.chroma.mode == "local"
        stale = await self._stores.db.run(index_is_stale, self._stores.db) if local else ""
        known = await self._stores.db.run(_rows_of, self._stores, identity)
        anew = anew or bool(stale)
        if not known and self._index is None and not anew:
            self._show("empty", identity=identity)
            return
        if (why := self._forbidden()) is not None:
            self._show("exact", reason=why)
            self._say(why)
            return
        index = self._index
        if index is None:
            if not self._worth_a_try(anew):
                return
            index = self._index = self._new_index(identity)
            self._show("loading", identity=identity)
        elif index.state == "broken" and not anew:
            return
        whole = anew or index.state != "ready" or index.identity != identity or not self._known
        if whole:
            await self._fill(index, identity, anew, drops)
            if stale and self.status.state == "ready":
                await self._stores.db.run(note_index_emptied, self._stores.db, stale)
        else:
            await self._change(index, identity, known, drops)

    def _new_index(self, identity: str) -> IndexProcess:
        project, chroma = self._stores.project, self._settings.chroma
        mode = "http" if chroma.mode == "http" else "local"
        return self._make(project.vector_dir, project.id, identity, mode, chroma.host, chroma.port)

    def _forbidden(self) -> str | None:
        host = self._settings.chroma.host
        if self._elsewhere and not Consent(self._stores.paths, self._settings).allows_machine(host):
            return (
                f"The Chroma server {host} is not on this machine, so it is not asked: run `tui-agent allow {host}` "
                "once if vectors of your facts may go there. Search is exact meanwhile."
            )
        return None

    @property
    def _elsewhere(self) -> bool:
        chroma = self._settings.chroma
        return chroma.mode == "http" and not is_this_machine(chroma.host)

    @property
    def leaves(self) -> bool:
        """Whether vectors of facts go to another machine."""
        return self._elsewhere and self._index is not None

    def _worth_a_try(self, anew: bool) -> bool:
        """Another window that owns the index may have gone since."""
        if self.status.state != "exact" or anew:
            return True
        now = time.monotonic()
        if now - self._looked_at < _LOOK_AGAIN_S:
            return False
        self._looked_at = now
        return True

    async def _fill(self, index: IndexProcess, identity: str, anew: bool, drops: int) -> None:
        """All rows at once: at the start, for another identity, and to rebuild."""
        self._held = frozenset()
        index.identity = identity
        ids, matrix, about, known = await self._everything(identity)
        show = anew or (len(ids) >= _FROM_ROWS and bool(self.status.identity))
        loop = asyncio.get_running_loop()

        def progress(done: int, total: int) -> None:
            if show or total >= _FROM_ROWS:
                loop.call_soon_threadsafe(self._progress, done, total, identity)

        filled = await self._run(
            self._write, drops, index.rebuild if anew else index.sync, ids, matrix, about, progress
        )
        if not filled:
            self._trouble(index)
            return
        if index.healed:
            self._say(index.healed, "info")
        self._holds(known, drops)
        self._show("ready", owner=True, rows=len(ids), identity=identity)

    async def _everything(
        self, identity: str
    ) -> tuple[list[str], NDArray[np.float32], list[dict[str, Any]], dict[str, int]]:
        """All rows, read in pieces, so that a message need not wait until the last of them is read. What changes
        meanwhile is seen as a change the next time."""
        import numpy as np

        run = self._stores.db.run
        rows = await run(_rows_of, self._stores, identity)
        wanted, ids, about = list(rows), list[str](), list[dict[str, Any]]()
        matrix = np.zeros((0, 0), dtype=np.float32)
        for start in range(0, len(wanted), _PIECE):
            found, vectors, more = await run(_some, self._stores, identity, wanted[start : start + _PIECE])
            if not matrix.shape[1]:
                matrix = np.zeros((len(wanted), vectors.shape[1]), dtype=np.float32)
            if vectors.shape[1] != matrix.shape[1]:
                continue  # of an embedder that now gives vectors of another size
            matrix[len(ids) : len(ids) + len(found)] = vectors
            ids += found
            about += more
        return ids, matrix[: len(ids)], about, {ref: rows[ref] for ref in ids}

    async def _change(self, index: IndexProcess, identity: str, known: dict[str, int], drops: int) -> None:
        """Only what differs from what the index was given before."""
        before = self._known
        gone = [ref for ref in before if ref not in known]
        come = [ref for ref, row in known.items() if before.get(ref) != row]
        if not gone and not come:
            self._show("ready", owner=True, rows=len(known), identity=identity)
            return
        ids, matrix, about = await self._stores.db.run(_some, self._stores, identity, come)
        done = not gone or await self._run(index.remove, gone)
        if done and ids:
            done = await self._run(self._write, drops, index.add, ids, matrix, about)
        if not done:
            if index.state == "broken":
                self._trouble(index)
                return
            await self._fill(index, identity, False, drops)
            return
        self._holds({ref: row for ref, row in known.items() if ref in before or ref in set(ids)}, drops)
        self._show("ready", owner=True, rows=len(self._known), identity=identity)

    def _holds(self, known: dict[str, int], drops: int) -> None:
        """The index holds these rows, unless it has been emptied since it had been ``drops`` times."""
        self._known, self._held = known, frozenset(known)
        if self._drops != drops:  # looked at last: a deletion counts first and forgets the rows then
            self._known, self._held = {}, frozenset()
            raise _Stale

    # -- saying ----------------------------------------------------------------------------------------------------

    def _trouble(self, index: IndexProcess) -> None:
        self._held, self._known = frozenset(), {}
        reason = index.problem
        if index.state == "broken":
            reason += " /reindex makes it anew."
        self._show("exact", reason=reason)
        self._say(reason, "info" if index.state == "elsewhere" else "warning")
        if index.state == "elsewhere":
            self._looked_at = time.monotonic()
            self._index = None
            self._thread.submit(index.close)

    def _say(self, text: str, level: str = "warning") -> None:
        if text not in self._said:
            self._said.add(text)
            self._emit(Notice("info" if level == "info" else "warning", text, key="vector-index"))

    def _progress(self, done: int, total: int, identity: str) -> None:
        now = time.monotonic()
        if self._closed or (done < total and now - self._told_at < _SHOWN_S):
            return
        self._told_at = now
        self._show("rebuilding", owner=True, done=done, total=total, identity=identity)

    def _show(self, state: Any, **more: Any) -> None:
        fresh = replace(IndexStatus(self._settings.chroma.mode, state), **more)
        if fresh != self.status:
            self.status = fresh
            self._emit(IndexChanged(fresh.state, fresh.reason, fresh.done, fresh.total, fresh.mark))


# --- reading, on the database's thread --------------------------------------------------------------------------


def _rows_of(stores: Stores, identity: str) -> dict[str, int]:
    """Live facts with a vector of this identity, and the row of the vector, which changes when it is made anew."""
    return stores.facts.vector_rows(identity)


def _some(
    stores: Stores, identity: str, wanted: Sequence[str]
) -> tuple[list[str], NDArray[np.float32], list[dict[str, Any]]]:
    ids, matrix = stores.facts.vectors(identity, wanted)
    return ids, matrix, stores.facts.index_rows(ids, matrix)
