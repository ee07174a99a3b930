"""How often a fault test repeats: everything in the soak, a tenth of it in the normal run; and its seed, printed."""

from __future__ import annotations

import os
import random

SOAK = bool(os.environ.get("TUI_AGENT_SOAK"))


def share(full: int) -> int:
    """The full number in the soak, else a tenth of it, at least one."""
    return full if SOAK else max(1, full // 10)


def seed() -> int:
    """A seed to draw from, printed so that a failure can be run again: ``TUI_AGENT_SEED`` repeats one."""
    drawn = int(os.environ.get("TUI_AGENT_SEED") or random.SystemRandom().randrange(10**6))
    print(f"seed {drawn}")
    return drawn
