"""Keeping the screen alive while much is read and built: the garbage collector waits, threads give way, and what is
slow the first time is done before anybody waits for it."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Iterator

_SWITCH_S = 0.001
_SAMPLES = ("I prefer tabs, please.", "Wolę krótkie odpowiedzi do piątku.", "Мы пишем тесты до пятницы.")

_lock = threading.Lock()
_holds = _loads = 0
_was_on = True


def _hold() -> None:
    global _holds, _was_on
    with _lock:
        if not _holds:
            _was_on = gc.isenabled()
        _holds += 1
        gc.disable()


def _release() -> None:
    global _holds
    with _lock:
        _holds -= 1
        if not _holds and _was_on:
            gc.enable()


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """The garbage collector waits meanwhile, and passes over what was made until the end.

    It stops every thread while it looks at all objects there are; with the words of many thousand facts among them
    that is long enough to be felt, and they stay as long as the app runs. Objects that nobody needs any more go at once
    as ever; only those that refer to each other in a ring would have to wait.
    """
    global _loads
    _hold()
    with _lock:
        _loads += 1
    try:
        yield
    finally:
        with _lock:
            _loads -= 1
            if not _loads:
                gc.freeze()
        _release()


class CollectionPause:
    """The garbage collector waits from :meth:`begin` to :meth:`end`, while the user waits for their words to leave: it
    takes up to some milliseconds, which are there while the model reads. Both may be called more than once."""

    def __init__(self) -> None:
        self._held = False

    def begin(self) -> None:
        """From now on it waits."""
        if not self._held:
            self._held = True
            _hold()

    def end(self) -> None:
        """It need not wait any more."""
        if self._held:
            self._held = False
            _release()


def give_way() -> None:
    """A thread that computes lets the others have their turn after a millisecond, not five: each key press would wait
    that long, several times."""
    sys.setswitchinterval(min(_SWITCH_S, sys.getswitchinterval()))


def warm_up() -> None:
    """Import and compile what the first answer needs, in a thread. Hundreds of expressions are compiled when a
    statement is read for the first time."""
    import numpy as np

    from tui_agent.agent.promises import check
    from tui_agent.memory.proof import claims_of
    from tui_agent.memory.secrets import has_secret
    from tui_agent.memory.statements import read

    for sample in _SAMPLES:
        check("", sample, sample, wrote=False)
        read(sample)
        claims_of(sample)
        has_secret(sample)
    np.median(np.zeros(8, dtype=np.float32))
