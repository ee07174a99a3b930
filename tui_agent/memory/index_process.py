"""Chroma in a process of its own, so that its native code cannot take the app down and its import cannot hold it up.

``python -m tui_agent.memory.index_process`` answers requests on stdin, one at a time: a line of JSON, followed by as
many bytes of float32 vectors as it says. It ends when stdin does, so it never outlives the app. It inherits the lock
rules of :class:`~tui_agent.memory.chroma_index.ChromaIndex`, which does the work inside; what kills it in the middle of
something is noted in the lock file, and the next owner makes the index anew instead of opening it again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from tui_agent.memory.owner_lock import OwnerLock

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tui_agent.memory.chroma_collection import IndexHit, Metadata, Progress
    from tui_agent.memory.chroma_index import ChromaIndex, State
    from tui_agent.memory.legacy_store import LegacyRow, LegacyStore
    from tui_agent.memory.types import Vector

EXACT = "Search goes exactly over the vectors in the database instead; nothing is lost."
PROGRAM = (sys.executable, "-m", "tui_agent.memory.index_process")

_OPEN_S, _SILENT_S, _QUERY_S, _CLOSE_S = 60.0, 120.0, 0.5, 5.0
_PIECE_BYTES = 1 << 20
_NICE = 5  # the index is never worth a stutter

Frame = tuple[dict[str, Any], bytes]

# Chroma writes memory to its files as it got it, with whatever stood there before: texts of deleted facts, too. So the
# C library is told to overwrite what it hands out (glibc, and macOS under two names).
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_PERTURB_": "165",
    "MallocPreScribble": "1",
    "MallocScribble": "1",
}


class IndexProcess:
    """The same index as :class:`~tui_agent.memory.chroma_index.ChromaIndex`, in another process. Calls block: use a
    thread. Nothing here raises (but for rows that do not belong together): see ``state``, ``problem`` and ``healed``.

    When the process dies, the index is ``broken`` until it is rebuilt or closed; nothing starts it again by itself.

    Args:
        program: the command of the process; another one in tests.
    """

    def __init__(
        self,
        vector_dir: Path,
        project_id: str,
        identity: str,
        mode: Literal["local", "http"] = "local",
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self.vector_dir = vector_dir
        self.identity = identity
        self.state: State = "closed"
        self.problem = self.healed = ""
        self._settings: dict[str, object] = {
            "vector_dir": str(vector_dir), "project_id": project_id, "mode": mode, "host": host, "port": port,
        }  # fmt: skip
        self._program = list(program)
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._frames: queue.Queue[Frame | None] = queue.Queue()
        self._numbers = itertools.count(1)

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    # --- the same verbs as the index itself ---------------------------------------------------------

    def open(self) -> bool:
        """Starts the process, which takes the lock and opens the store; whether the index may be used."""
        with self._lock:
            return self.state != "broken" and bool(self._call("open", wait_s=_OPEN_S))

    def sync(
        self,
        ids: Sequence[str],
        matrix: NDArray[np.float32],
        metadata: Sequence[Metadata] = (),
        progress: Progress | None = None,
    ) -> bool:
        """Makes the index hold exactly these rows; whether it can be asked now."""
        return self._with_rows("sync", ids, matrix, metadata, progress)

    def rebuild(
        self,
        ids: Sequence[str],
        matrix: NDArray[np.float32],
        metadata: Sequence[Metadata] = (),
        progress: Progress | None = None,
    ) -> bool:
        """Throws the index away, whatever state it is in, and makes it anew, in a new process when the old one died."""
        with self._lock:
            if self.pid is None:
                self._forget()
            self.state, self.problem = "closed", ""
            return self._with_rows("rebuild", ids, matrix, metadata, progress)

    def add(self, ids: Sequence[str], matrix: NDArray[np.float32], metadata: Sequence[Metadata] = ()) -> bool:
        """Adds or replaces some rows; ``False`` when that was not possible."""
        return self._with_rows("add", ids, matrix, metadata, None)

    def remove(self, ids: Collection[str]) -> bool:
        """Takes rows out; ``False`` when that was not possible."""
        with self._lock:
            return self.state == "ready" and bool(self._call("remove", {"ids": list(ids)}))

    def drop(self) -> bool:
        """Removes the project's collection, and the folder when nothing else is in it."""
        with self._lock:
            return self.state != "broken" and bool(self._call("drop"))

    def count(self) -> int | None:
        """The number of rows, or ``None`` when the index cannot be asked."""
        with self._lock:
            found = self._call("count") if self.state == "ready" else None
            return None if found is None else int(found)

    def query(self, vector: Vector, n: int = 10) -> list[IndexHit] | None:
        """The ``n`` nearest rows, or ``None`` when the index cannot be asked at once (search exactly then)."""
        from tui_agent.memory.chroma_collection import IndexHit

        if self.state != "ready" or not self._lock.acquire(blocking=False):
            return None
        try:
            found = self._call("query", {"n": n, "shape": [1, len(vector)]}, _bytes(vector), wait_s=_QUERY_S, late=True)
        finally:
            self._lock.release()
        return None if found is None else [IndexHit(str(ref), float(distance)) for ref, distance in found]

    def read_legacy(self, store: LegacyStore) -> list[LegacyRow]:
        """The texts of a store a plain script has written (see :mod:`~tui_agent.memory.legacy_store`). Raises
        ``OSError`` when it cannot be read."""
        from tui_agent.memory.legacy_store import LegacyRow
        from tui_agent.memory.types import kind_of

        given = {"folder": str(store.folder), "names": [each.name for each in store.collections]}
        with self._lock:
            state, problem = self.state, self.problem
            found = self._call("read_legacy", given)
            if found is None and self.pid is None:
                raise OSError(f"The store in {store.folder} cannot be read: it ended the program that tried.")
            self.state, self.problem = state, problem
        if not isinstance(found, list):
            raise OSError(str(found))
        return [LegacyRow(**{**row, "kind": kind_of(row["kind"])}) for row in found]

    def close(self) -> None:
        """Closes the store, gives the lock back and ends the process. The index can be opened again."""
        with self._lock:
            process = self._process
            if process is not None and process.poll() is None:
                self._call("close", wait_s=_CLOSE_S)
                with contextlib.suppress(OSError):
                    assert process.stdin is not None
                    process.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_CLOSE_S)
            self._forget()
            self.state, self.problem = "closed", ""

    def abandon(self, wait_s: float = 2.0) -> None:
        """Ends the process while another thread may be waiting for its answer, which then comes as "not possible".

        It may finish what it does for so long; after that it is killed, which is no crash of its own.
        """
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError, ValueError):
            assert process.stdin is not None
            process.stdin.close()
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            owner = OwnerLock(self.vector_dir.with_name(f"{self.vector_dir.name}.lock"))
            with contextlib.suppress(OSError):
                if owner.acquire():
                    owner.settle()
                    owner.release()

    # --- talking ------------------------------------------------------------------------------------

    def _with_rows(
        self,
        verb: str,
        ids: Sequence[str],
        matrix: NDArray[np.float32],
        metadata: Sequence[Metadata],
        progress: Progress | None,
    ) -> bool:
        from tui_agent.memory.chroma_collection import Rows

        rows = Rows.of(ids, matrix, metadata)
        data = {"ids": rows.ids, "metadata": rows.metadata, "shape": list(rows.matrix.shape)}
        with self._lock:
            if self.state == "broken" or (verb == "add" and self.state != "ready"):
                return False
            return bool(self._call(verb, data, _bytes(rows.matrix), progress=progress))

    def _call(
        self,
        verb: str,
        data: Mapping[str, Any] | None = None,
        blob: bytes | memoryview = b"",
        *,
        wait_s: float = _SILENT_S,
        progress: Progress | None = None,
        late: bool = False,
    ) -> Any:
        """One request and its answer, or ``None`` when there is none. ``late``: an answer that takes longer than
        ``wait_s`` is passed over; else a process that says nothing for so long is ended."""
        number = next(self._numbers)
        try:
            process = self._running()
            assert process.stdin is not None
            head = {**(data or {}), "op": verb, "number": number, "identity": self.identity, "bytes": len(blob)}
            # In pieces: to encode or copy many rows at once would keep all other threads waiting, the screen's too. And
            # in large ones: a thread that waits for its turn never gets it from one that gives way for moments only.
            for block in _blocks(json.JSONEncoder().iterencode(head)):
                process.stdin.write(block)
            process.stdin.write(b"\n")
            for start in range(0, len(blob), _PIECE_BYTES):
                process.stdin.write(blob[start : start + _PIECE_BYTES])
            process.stdin.flush()
        except (OSError, ValueError) as error:
            return self._lost(verb, error)
        while True:
            try:
                frame = self._frames.get(timeout=wait_s)
            except queue.Empty:
                if late:
                    return None
                process.kill()
                return self._lost(verb, f"it said nothing for {wait_s:.0f} seconds")
            if frame is None:
                return self._lost(verb, None)
            answer, _ = frame
            if "progress" in answer:
                if progress is not None and answer["number"] == number:
                    progress(*answer["progress"])
            elif answer["number"] == number:
                self.state, self.problem, self.healed = answer["state"], answer["problem"], answer["healed"]
                return answer["value"]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._frames = queue.Queue()
            flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # Windows would open a console
            process = self._process = subprocess.Popen(
                self._program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True, creationflags=flags,
                env={**os.environ, **_ENVIRONMENT},
            )  # fmt: skip
            assert process.stdout is not None
            read = threading.Thread(
                target=_read_all, args=(process.stdout, self._frames), name="tui-agent-index", daemon=True
            )
            read.start()
            assert process.stdin is not None
            process.stdin.write(json.dumps(self._settings).encode() + b"\n")
        return self._process

    def _lost(self, verb: str, why: object) -> None:
        """The process is gone. It is not started again by itself: what killed it may do so again."""
        process = self._process
        code = None
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(_CLOSE_S)
        self._forget()
        self.state = "broken"
        # How it ended says more than the pipe that broke because of it.
        reason = _ending(code) if code or why is None else str(why)
        self.problem = f"The process of the vector index is gone ({reason}, while asked to {verb}). {EXACT}"

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _blocks(pieces: Iterable[str]) -> Iterator[bytes]:
    """Many short texts as a few long ones."""
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES:
            yield "".join(held).encode()
            held, size = [], 0
    yield "".join(held).encode()


def _bytes(values: Any) -> memoryview:
    import numpy as np

    flat = np.ascontiguousarray(values, dtype="<f4")
    return flat.data.cast("B") if flat.size else memoryview(b"")


def _read_frame(stream: IO[bytes]) -> Frame | None:
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    size = int(head.get("bytes", 0))
    blob = stream.read(size) if size else b""
    return (head, blob) if len(blob) == size else None


def _read_all(stream: IO[bytes], frames: queue.Queue[Frame | None]) -> None:
    """Passes on what the process says; ``None`` at its end."""
    frame: Frame | None = ({}, b"")
    while frame is not None:
        try:
            frame = _read_frame(stream)
        except (OSError, ValueError):
            frame = None
        frames.put(frame)


# --- inside the process -----------------------------------------------------------------------------


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers requests until there are no more, then closes the index."""
    from tui_agent.memory.chroma_index import ChromaIndex

    settings = json.loads(requests.readline())
    settings["vector_dir"] = Path(settings["vector_dir"])
    index: ChromaIndex | None = None

    def say(answer: Mapping[str, Any]) -> None:
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()

    try:
        while (frame := _read_frame(requests)) is not None:
            head, blob = frame
            if index is None or index.identity != head["identity"]:
                if index is not None:
                    index.close()
                index = ChromaIndex(identity=head["identity"], **settings)
            number = head["number"]

            def progress(done: int, total: int, number: int = number) -> None:
                say({"number": number, "progress": [done, total]})

            value = _answer(index, head, blob, progress)
            say({"number": number, "value": value, "state": index.state, "problem": index.problem,
                 "healed": index.healed})  # fmt: skip
            index.healed = ""
    finally:
        if index is not None:
            index.close()


def _answer(index: ChromaIndex, head: Mapping[str, Any], blob: bytes, progress: Callable[[int, int], None]) -> Any:
    import numpy as np

    verb = head["op"]
    if verb in ("sync", "rebuild", "add"):
        matrix = np.frombuffer(blob, dtype="<f4").reshape(head["shape"])
        about = [data or {} for data in head["metadata"]]
        if verb == "add":
            return index.add(head["ids"], matrix, about)
        return (index.sync if verb == "sync" else index.rebuild)(head["ids"], matrix, about, progress)
    if verb == "query":
        hits = index.query(np.frombuffer(blob, dtype="<f4"), head["n"])
        return None if hits is None else [[hit.id, hit.distance] for hit in hits]
    if verb == "remove":
        return index.remove(head["ids"])
    if verb == "read_legacy":
        return _legacy_rows(Path(head["folder"]), head["names"])
    if verb == "close":
        index.close()
        return True
    return {"open": index.open, "drop": index.drop, "count": index.count}[verb]()


def _legacy_rows(folder: Path, names: Collection[str]) -> list[dict[str, Any]] | str:
    import dataclasses

    from tui_agent.memory.legacy_store import LegacyStore, Listed, read_legacy

    try:
        rows = read_legacy(LegacyStore(folder, tuple(Listed(name, 0, False) for name in names)))
    except OSError as error:
        return str(error)
    return [{**dataclasses.asdict(row), "kind": str(row.kind)} for row in rows]


def main() -> None:
    """The process itself. What libraries print must not come between the answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(_NICE)
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
