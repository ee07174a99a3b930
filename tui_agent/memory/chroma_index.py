"""Chroma as a projection of the vectors in SQLite: it can be thrown away and made anew at any time.

Nothing is only here: ids, vectors and a little metadata, no text. Whatever goes wrong, the index says so in one
sentence and answers ``None``, and its caller searches exactly over the vectors in the database.

Chroma's local store is not made for two processes, so one owns it by a lock of the operating system. It is native code,
and a damaged folder makes it answer wrongly or end the program; so a folder that is not byte for byte as it was left is
thrown away unopened, and answers are compared with the true vectors before they are used.
Loading Chroma takes a second: call everything here from a thread, never from an event loop.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import platform
import shutil
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.chroma_collection import (
    IndexHit,
    Metadata,
    Progress,
    ProjectCollection,
    Rows,
    collection_name,
    http_client,
    open_client,
)
from tui_agent.memory.legacy_store import list_collections
from tui_agent.memory.owner_lock import OwnerLock
from tui_agent.memory.types import Vector

__all__ = ["ChromaIndex", "IndexHit"]

log = logging.getLogger(__name__)

CRASHES_BORNE = 2
"""An index that has ended the program more often than this is left alone until it is rebuilt."""
_OUR_MARK = "made-by-tui-agent"
_EXACT = "Search goes exactly over the vectors in the database instead; nothing is lost."

T = TypeVar("T")
State = Literal["closed", "ready", "elsewhere", "broken"]


class ChromaIndex:
    """The vector index of one project's facts.

    Args:
        vector_dir: Chroma's folder (local mode). The lock is the file of the same name with ``.lock`` beside it.
        project_id: the collection is ``pamiec-{project_id}``.
        identity: what the vectors were made with; a collection of another identity is never asked.
        mode: ``local``, or ``http`` for a Chroma server at ``host`` and ``port``.

    Nothing here raises (but for a bad ``project_id`` and rows that do not belong together): see ``state`` (``closed``,
    ``ready``, ``elsewhere`` when another process owns it, ``broken``) and ``problem``, a sentence for the user.
    ``healed`` is a sentence after a damaged index was made anew.
    """

    def __init__(
        self,
        vector_dir: Path,
        project_id: str,
        identity: str,
        mode: Literal["local", "http"] = "local",
        host: str = "127.0.0.1",
        port: int = 8000,
    ) -> None:
        self.vector_dir = vector_dir
        self.name = collection_name(project_id)
        self.identity = identity
        self.mode = mode
        self.host, self.port = host, port
        self.state: State = "closed"
        self.problem = self.healed = ""
        self._lock = threading.RLock()
        self._owner = OwnerLock(vector_dir.with_name(f"{vector_dir.name}.lock"))
        self._collection: ProjectCollection | None = None
        self._mendable = False

    # --- life -------------------------------------------------------------------------------------

    def open(self) -> bool:
        """Takes the lock and connects; whether the index may be used. It answers after the first :meth:`sync`."""
        with self._lock:
            if self.state == "ready":
                return True
            if self.state == "broken" or (self.mode == "local" and not self._own()):
                return False
            return self._guarded("be opened", self._connect) is not None

    def close(self) -> None:
        """Disconnects and gives the lock back. The index can be opened again, also after it was broken."""
        with self._lock:
            self._disconnect()
            self._owner.release()
            self.state, self.problem, self._mendable = "closed", "", False

    def _own(self) -> bool:
        if self._owner.held:
            return True
        if self.vector_dir.is_symlink():
            return self._broken(f"{self.vector_dir} is a link, and the index is written only inside the project.")
        try:
            taken = self._owner.acquire()
        except OSError as error:
            return self._broken(f"The vector index cannot be used: {self._owner.path}: {error.strerror or error}.")
        if not taken:
            holder = self._owner.holder()
            who = f"process {holder}" if holder else "another process"
            self.state = "elsewhere"
            self.problem = f"The vector index belongs to another window of this project ({who}). {_EXACT}"
            return False
        if self._owner.crashes > CRASHES_BORNE:
            return self._broken(
                f"The vector index has ended the program {self._owner.crashes} times, so it is left alone. "
                "Rebuild it to try again."
            )
        if self._owner.crashes:
            log.warning("the last owner of %s died while using it; it is made anew", self.vector_dir)
            return self._guarded("be made anew after a crash", self._set_aside) is not None
        return True

    def _connect(self) -> bool:
        if self.mode == "http":
            client = http_client(self.host, self.port)
        else:
            mark = self.vector_dir / _OUR_MARK
            self._throw_away_what_was_not_left_so(mark)
            new = not self.vector_dir.is_dir() or not any(self.vector_dir.iterdir())
            client = open_client(self.vector_dir)
            if new or mark.exists():
                mark.write_text("")  # in use
        self._collection = ProjectCollection(client, self.name, self.identity, self._store_mark())
        self._collection.find()
        self.state, self.problem = "ready", ""
        return True

    def _throw_away_what_was_not_left_so(self, mark: Path) -> None:
        """Only a folder that holds nothing but ours is thrown away; what another program wrote is opened as it is."""
        folder = self.vector_dir
        if not mark.is_file() or not _only_ours(folder):
            return
        left = mark.read_text()
        if left != _digest(folder):
            how = "was changed while it was not in use" if left else "was not closed in order"
            self.healed = f"The vector index {how}. It was made anew from the database; nothing is lost."
            shutil.rmtree(folder)

    def _store_mark(self) -> str:
        """On a server, people with the same project share a collection; each sees and cleans up only their own rows."""
        if self.mode == "local":
            return ""
        place = f"{platform.node()}\0{self.vector_dir.absolute()}"
        return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def _disconnect(self) -> None:
        collection, self._collection = self._collection, None
        if collection is None:
            return
        with contextlib.suppress(Exception):
            collection.client.close()
        mark = self.vector_dir / _OUR_MARK
        if self.mode == "local" and self.state == "ready":
            with contextlib.suppress(OSError):
                if mark.is_file():
                    mark.write_text(_digest(self.vector_dir))

    # --- writing ----------------------------------------------------------------------------------

    def sync(
        self,
        ids: Sequence[str],
        matrix: NDArray[np.float32],
        metadata: Sequence[Metadata] = (),
        progress: Progress | None = None,
    ) -> bool:
        """Makes the index hold exactly these rows, and checks that it answers by them; whether it can be asked now.

        ``matrix`` is ``(len(ids), dimension)``; ``metadata`` one mapping per id, or nothing. Only differences are
        written. For another identity, dimension or distance a new collection is built beside the old one and then
        takes its name; a damaged index is made anew. ``progress(done, total)`` counts rows.
        """
        rows = Rows.of(ids, matrix, metadata)
        with self._lock:
            if self.open() and self._guarded("be brought up to date", lambda: self._sync(rows, progress)):
                return True
            if not self._mendable:
                return False
            # Whatever is wrong with it, all it held is at hand: once from nothing, then it is left alone.
            what_was = self.problem
            if not self._from_nothing(rows, progress):
                return False
            self.healed = what_was.replace(_EXACT, "It was made anew from the database; nothing is lost.")
            return True

    def rebuild(
        self,
        ids: Sequence[str],
        matrix: NDArray[np.float32],
        metadata: Sequence[Metadata] = (),
        progress: Progress | None = None,
    ) -> bool:
        """Throws the index away, whatever state it is in, and makes it anew from these rows."""
        rows = Rows.of(ids, matrix, metadata)
        with self._lock:
            self.close()
            if self.mode == "local":
                try:
                    if not self._owner.acquire():
                        return self._own()
                    self._owner.settle()
                except OSError as error:
                    return self._broken(f"The vector index cannot be made anew: {error.strerror or error}.")
            return self._from_nothing(rows, progress)

    def add(self, ids: Sequence[str], matrix: NDArray[np.float32], metadata: Sequence[Metadata] = ()) -> bool:
        """Adds or replaces some rows; ``False`` when that was not possible (the next :meth:`sync` makes up for it)."""
        rows = Rows.of(ids, matrix, metadata)
        with self._lock:
            collection = self._usable()
            if collection is None or (rows.ids and rows.dimension != collection.dimension):
                return False

            def put() -> bool:
                collection.put(rows)
                return True

            return self._guarded("take new facts", put) is not None

    def remove(self, ids: Collection[str]) -> bool:
        """Takes rows out; unknown ids are passed over. ``False`` when that was not possible."""
        with self._lock:
            collection = self._usable()
            if collection is None:
                return False

            def take_out() -> bool:
                collection.remove(list(ids))
                return True

            return self._guarded("let facts go", take_out) is not None

    def drop(self) -> bool:
        """Removes this project's collection, and the folder when nothing else is in it. The index is closed then."""
        with self._lock:
            if not self.open() or self._guarded("be removed", self._drop) is None:
                return False
            self._owner.settle()
            self.close()
            return True

    def _drop(self) -> bool:
        collection = self._collection
        alone = collection is not None and collection.drop()
        self._disconnect()
        if self.mode == "local" and alone:
            shutil.rmtree(self.vector_dir)
        return True

    def _sync(self, rows: Rows, progress: Progress | None) -> bool:
        if self._collection is None:
            return False
        self._collection.sync(rows, progress)
        if self._owner.crashes:
            self._owner.settle()
        return True

    def _from_nothing(self, rows: Rows, progress: Progress | None) -> bool:
        self.state, self.problem = "closed", ""
        self._disconnect()

        def anew() -> bool:
            if self.mode == "local":
                self._set_aside()
            self._connect()
            if self.mode == "http" and self._collection is not None:
                self._collection.drop()
            return self._sync(rows, progress)

        made = bool(self._guarded("be made anew", anew))
        self._mendable = False
        return made

    def _set_aside(self) -> bool:
        set_aside(self.vector_dir)
        return True

    # --- asking -----------------------------------------------------------------------------------

    def query(self, vector: Vector, n: int = 10) -> list[IndexHit] | None:
        """The ``n`` nearest rows, nearest first, or ``None`` when the index cannot be asked (search exactly then).

        Join the ids back to the live facts: what has expired since the last :meth:`sync` is still here.
        """
        # While it is being filled in another thread, exact search is quicker than waiting.
        if not self._lock.acquire(blocking=False):
            return None
        try:
            collection = self._usable()
            if collection is None or not collection.checked or len(vector) != collection.dimension:
                return None
            return [] if n <= 0 else self._guarded("be searched", lambda: collection.ask(vector, n))
        finally:
            self._lock.release()

    def count(self) -> int | None:
        """The number of rows, or ``None`` when the index cannot be asked."""
        with self._lock:
            collection = self._usable()
            return None if collection is None else self._guarded("be counted", collection.count)

    def _usable(self) -> ProjectCollection | None:
        if self.state != "ready" or self._collection is None or not self._collection.serves:
            return None
        return self._collection

    # --- when it fails ----------------------------------------------------------------------------

    def _guarded(self, what: str, work: Callable[[], T]) -> T | None:
        """``work()``, or ``None`` with the index marked as broken. If the process dies in it, the lock file says so."""
        self._note(what)
        try:
            result = work()
        except (KeyboardInterrupt, SystemExit):
            self._note("")
            raise
        except BaseException as error:  # a panic of the native part is no Exception
            self._note("")
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            self._broken(f"The vector index cannot {what}: {reason.rstrip('.')}.")
            self._mendable = True
            self._disconnect()
            return None
        self._note("")
        return result

    def _note(self, what: str) -> None:
        with contextlib.suppress(OSError):  # a full disk; the note is only for after a crash
            self._owner.busy(what)

    def _broken(self, why: str) -> bool:
        self.state, self._mendable = "broken", False
        self.problem = f"{why} {_EXACT}"
        log.warning("%s", self.problem)
        return False


def set_aside(folder: Path) -> Path | None:
    """Makes an empty place of an index's folder, for whoever holds its lock. A folder with only our collections is
    removed; when another program's data are in it, or may be, it is kept beside, and its new path is returned."""
    if not folder.is_dir():
        folder.unlink(missing_ok=True)
    elif _only_ours(folder):
        shutil.rmtree(folder)
    else:
        number = 1
        while (kept := folder.with_name(f"{folder.name}.unreadable-{number}")).exists():
            number += 1
        folder.rename(kept)
        log.warning("%s is kept as %s", folder, kept)
        return kept
    return None


def _digest(folder: Path) -> str:
    """A hash of the files of a folder, their names and what is in them."""
    seen = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != _OUR_MARK:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            seen.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode("utf-8", "surrogateescape"))
    return seen.hexdigest()


def _only_ours(folder: Path) -> bool:
    """Whether every collection in a folder is known to be this program's."""
    found = list_collections(folder)
    if found is None:
        return (folder / _OUR_MARK).exists() or not any(folder.iterdir())
    return all(each.ours for each in found)
