"""Notices that two models push each other out of memory, by how long the server says that each call's load took."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

# Below this a "load" is the server's own bookkeeping: a warm model reports some milliseconds.
LOAD_S = 1.0


@dataclass(slots=True)
class LoadWatch:
    """Loads of one server's models, in order.

    Args:
        within_s: a model that was used longer ago than this may have been unloaded by its timer.
        clock: seconds, for tests.
    """

    within_s: float = 300.0
    clock: Callable[[], float] = time.monotonic
    _used: dict[str, float] = field(default_factory=dict)
    _loaded: list[str] = field(default_factory=list)
    _pair: tuple[str, str] | None = None

    def note(self, model: str, load_s: float | None) -> None:
        """A call to ``model`` ended; the server says that loading took ``load_s`` seconds of it."""
        now = self.clock()
        last = self._used.get(model)
        self._used[model] = now
        if load_s is None or load_s < LOAD_S:
            return
        if last is not None and now - last <= self.within_s and self._loaded and self._loaded[-1] != model:
            # It was loaded before, used a moment ago, and another model was loaded since then: that one took its place.
            self._pair = (model, self._loaded[-1])
        self._loaded.append(model)
        del self._loaded[:-20]

    def forget(self, model: str) -> None:
        """The model was unloaded on purpose: that it is loaded again says nothing."""
        self._used.pop(model, None)

    def take(self) -> tuple[str, str] | None:
        """Two models that do not fit into memory together, told once; ``None`` while all is well."""
        pair, self._pair = self._pair, None
        return pair
