"""One project's collection in a Chroma store: finding it, filling it, checking it and asking it.

Everything here may raise whatever Chroma raises; :mod:`~tui_agent.memory.chroma_index` decides what that means. Chroma
is imported inside functions only: it takes a second.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tui_agent.memory.types import Vector

log = logging.getLogger(__name__)

PREFIX = "pamiec-"
MADE_BY = "tui-agent"
BATCH = 100
_PROBES = 8
_CLOSE = 1e-3
_HTTP_TIMEOUT_S = 10.0
_failures: Counter[Path] = Counter()
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,480}[A-Za-z0-9])?")

Metadata = Mapping[str, Any]
Progress = Callable[[int, int], None]
CleanMetadata = dict[str, str | int | float | bool]


class IndexDamaged(Exception):
    """The index answers something else than its own vectors say."""


@dataclass(frozen=True, slots=True)
class IndexHit:
    """A neighbour: the id of a fact and its cosine distance (0 = same direction, 2 = opposite)."""

    id: str
    distance: float


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as they are written: finite float32 vectors of shape ``(len(ids), dimension)``, each id once."""

    ids: list[str]
    matrix: NDArray[np.float32]
    metadata: list[CleanMetadata | None]

    @classmethod
    def of(cls, ids: Sequence[str], matrix: NDArray[np.float32], metadata: Sequence[Metadata] = ()) -> Rows:
        """The rows worth writing: the last of each id, without those that hold NaN or infinity.

        Raises ``ValueError`` when the lengths do not belong together.
        """
        if len(ids) != len(matrix) or (len(metadata) and len(metadata) != len(ids)):
            raise ValueError(
                f"{len(ids)} ids, {len(matrix)} vectors and {len(metadata)} metadata do not belong together."
            )
        values = np.empty((0, 0), np.float32)
        if len(ids):
            values = np.asarray(matrix, dtype=np.float32).reshape(len(ids), -1)
        last = {row_id: n for n, row_id in enumerate(ids)}
        kept = [n for n in last.values() if np.isfinite(values[n]).all()]
        data = [clean_metadata(metadata[n]) if len(metadata) else None for n in kept]
        # A copy of very many vectors is felt by all threads; usually all of them are kept.
        matrix = values if kept == list(range(len(values))) else values[kept]
        return cls([ids[n] for n in kept], matrix, data)

    @property
    def dimension(self) -> int:
        """The length of the vectors, 0 without any."""
        return int(self.matrix.shape[1]) if self.ids else 0

    def only(self, numbers: Sequence[int]) -> Rows:
        """Some of the rows."""
        chosen = list(numbers)
        return Rows([self.ids[n] for n in chosen], self.matrix[chosen], [self.metadata[n] for n in chosen])


def collection_name(project_id: str) -> str:
    """The name of a project's collection. Raises ``ValueError`` for an id Chroma would not take as a name."""
    if not _NAME.fullmatch(project_id):
        raise ValueError(
            f"{project_id!r} is no project id: letters, digits, “.”, “_” and “-”, with a letter or digit at both ends."
        )
    return f"{PREFIX}{project_id}"


def open_client(folder: Path) -> Any:
    """A local client on ``folder``, without telemetry. Close it: clients of one path share what they hold."""
    # A failed opening leaves something half-made in Chroma's cache, under the path as it was spelt.
    path = os.path.join(folder, *["."] * _failures[folder])  # noqa: PTH118 - Path would take the dots out again
    try:
        return importlib.import_module("chromadb").PersistentClient(path=path, settings=_settings())
    except BaseException:
        _failures[folder] += 1
        raise


def http_client(host: str, port: int) -> Any:
    """A client of a Chroma server, without telemetry and proxies."""
    with _no_proxies():
        client = importlib.import_module("chromadb").HttpClient(host=host, port=port, settings=_settings())
    # Its session waits for ever by default. Best effort: the attribute is not public.
    session = getattr(getattr(client, "_server", None), "_session", None)
    if session is not None:
        session.timeout = _HTTP_TIMEOUT_S
    return client


def _settings() -> Any:
    return importlib.import_module("chromadb.config").Settings(anonymized_telemetry=False)


@contextlib.contextmanager
def _no_proxies() -> Iterator[None]:
    """Chroma's client takes proxies from the environment and has no setting against it."""
    before = os.environ.get("no_proxy")
    os.environ["no_proxy"] = "*"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("no_proxy", None)
        else:
            os.environ["no_proxy"] = before


def space_of(collection: Any) -> str:
    """The distance a collection was made with. ``get_or_create_collection`` does not tell when it is another one."""
    config: dict[str, Any] = collection.configuration_json
    for kind in ("hnsw", "spann"):
        if config.get(kind):
            return str(config[kind].get("space", ""))
    return str((collection.metadata or {}).get("hnsw:space", ""))


def clean_metadata(data: Metadata) -> CleanMetadata | None:
    """Metadata as Chroma takes it: plain values only; what is empty, nested or not finite is left out.

    ``None`` when nothing is left, because an empty object is refused.
    """
    cleaned: CleanMetadata = {}
    for key, value in data.items():
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, str):
            # A str enum prints its value, and lone surrogates cannot be stored.
            cleaned[str(key)] = str(plain).encode("utf-8", "replace").decode()
        elif isinstance(plain, (bool, int)) or (isinstance(plain, float) and np.isfinite(plain)):
            cleaned[str(key)] = plain
    return cleaned or None


class ProjectCollection:
    """The collection of one project, through a client.

    Args:
        identity: what the vectors were made with; rows of another identity are never served.
        store: marks rows as those of one database and hides all others, where people share a server; empty for none.
    """

    def __init__(self, client: Any, name: str, identity: str, store: str = "") -> None:
        self.client = client
        self.name = name
        self.identity = identity
        self.dimension = 0
        self.checked = False
        self._store = store
        self._served: Any = None

    @property
    def serves(self) -> bool:
        """Whether a collection with vectors of this identity is there."""
        return self._served is not None and (self._served.metadata or {}).get("identity") == self.identity

    @property
    def _new_name(self) -> str:
        return f"{self.name}-new"

    def find(self) -> None:
        """Looks what is there, and ends a swap that was interrupted."""
        names = self._names()
        if self._new_name in names:
            built = self._get(self._new_name)
            if self.name not in names and (built.metadata or {}).get("complete"):
                built.modify(name=self.name)
                names.add(self.name)
            else:
                self.client.delete_collection(self._new_name)
        if self.name not in names:
            return
        found = self._get(self.name)
        if (found.metadata or {}).get("made_by") != MADE_BY:
            self._keep_apart(found, names)
        elif space_of(found) == "cosine":
            self._serve(found)

    def _keep_apart(self, collection: Any, names: Collection[str]) -> None:
        """Another program's collection of our name keeps its data under another one."""
        kept, number = f"{self.name}-article", 2
        while kept in names:
            kept, number = f"{self.name}-article{number}", number + 1
        log.info("%s was not made by this program; it is kept as %s", self.name, kept)
        collection.modify(name=kept)

    def sync(self, rows: Rows, progress: Progress | None) -> None:
        """Makes the collection hold exactly these rows and checks it. Raises :class:`IndexDamaged` when it lies."""
        if not self.serves or (rows.ids and self.dimension != rows.dimension):
            self._build(rows, progress)
        else:
            held = self._held()
            wanted = set(rows.ids)
            self.remove([row_id for row_id in held if row_id not in wanted])
            stale = [
                n
                for n, (row_id, data) in enumerate(zip(rows.ids, rows.metadata, strict=True))
                if row_id not in held or held[row_id] != self._stamped(data)
            ]
            self.put(rows.only(stale), progress)
        self._check(rows)

    def _build(self, rows: Rows, progress: Progress | None) -> None:
        """A new collection beside the old one, which takes its name when it is complete."""
        about = {"made_by": MADE_BY, "identity": self.identity, "dimension": rows.dimension}
        if self._new_name in self._names():
            self.client.delete_collection(self._new_name)
        built = self.client.create_collection(
            self._new_name, configuration={"hnsw": {"space": "cosine"}}, metadata=about, embedding_function=None
        )
        if (space := space_of(built)) != "cosine":
            raise IndexDamaged(f"a collection asked to compare by cosine compares by {space!r}")
        self._write(built, rows, progress)
        built.modify(metadata={**about, "complete": 1})
        if self.name in self._names():
            self.client.delete_collection(self.name)
        built.modify(name=self.name)
        self._serve(self._get(self.name))

    def _check(self, rows: Rows) -> None:
        """Asks for some of the vectors themselves: each must find itself (or its equal), and as many as there are."""
        self.checked = False
        held = self.count()
        if held != len(rows.ids):
            raise IndexDamaged(f"it holds {held} rows instead of {len(rows.ids)}")
        probes = np.flatnonzero(np.linalg.norm(rows.matrix, axis=1) > 0) if rows.ids else np.empty(0, int)
        if len(probes):
            probes = probes[np.linspace(0, len(probes) - 1, min(_PROBES, len(probes))).astype(int)]
        wanted, missed = min(5, len(rows.ids)), 0
        for probe in probes:
            hits = self.ask(rows.matrix[probe], wanted)
            # The index of neighbours is approximate, so a sound one may miss one of them.
            missed += len(hits) < wanted or hits[0].distance > _CLOSE
        if missed > len(probes) // _PROBES:
            raise IndexDamaged(f"it does not find {missed} of {len(probes)} vectors that it holds")
        self.checked = True

    def put(self, rows: Rows, progress: Progress | None = None) -> None:
        """Adds or replaces rows, in batches."""
        self._write(self._served, rows, progress)

    def _write(self, collection: Any, rows: Rows, progress: Progress | None) -> None:
        total = len(rows.ids)
        for start in range(0, total, BATCH):
            end = min(start + BATCH, total)
            collection.upsert(
                ids=rows.ids[start:end],
                embeddings=rows.matrix[start:end],
                metadatas=[self._stamped(data) for data in rows.metadata[start:end]],
            )
            if progress is not None:
                progress(end, total)

    def remove(self, ids: Sequence[str]) -> None:
        """Takes rows out, in batches; unknown ids are passed over."""
        for start in range(0, len(ids), BATCH):
            self._served.delete(ids=list(ids[start : start + BATCH]))

    def ask(self, vector: Vector, n: int) -> list[IndexHit]:
        """The ``n`` nearest rows, nearest first."""
        found = self._served.query(
            query_embeddings=np.asarray(vector, dtype=np.float32)[None, :],
            n_results=n,
            include=["distances"],
            **self._mine(),
        )
        pairs = zip(found["ids"][0], found["distances"][0], strict=True)
        return [IndexHit(str(row_id), float(distance)) for row_id, distance in pairs if np.isfinite(distance)]

    def count(self) -> int:
        """The number of rows (of this store)."""
        return len(self._held()) if self._store else int(self._served.count())

    def drop(self) -> bool:
        """Removes the collection; whether nothing else is left in the store."""
        names = self._names()
        ours = {self.name, self._new_name}
        for name in ours & names:
            self.client.delete_collection(name)
        self._served, self.checked = None, False
        return not names - ours

    def _serve(self, collection: Any) -> None:
        self._served, self.checked = collection, False
        self.dimension = int((collection.metadata or {}).get("dimension", 0))

    def _held(self) -> dict[str, dict[str, Any] | None]:
        found = self._served.get(include=["metadatas"], **self._mine())
        return dict(zip(found["ids"], found["metadatas"], strict=True))

    def _stamped(self, data: CleanMetadata | None) -> CleanMetadata | None:
        return {**(data or {}), "store": self._store} if self._store else data

    def _mine(self) -> dict[str, Any]:
        return {"where": {"store": self._store}} if self._store else {}

    def _get(self, name: str) -> Any:
        return self.client.get_collection(name, embedding_function=None)

    def _names(self) -> set[str]:
        return {collection.name for collection in self.client.list_collections()}
