"""Calls to carriers fail now and then; this tries again, with patience."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class GaveUp(Exception):
    """All attempts failed; the last error is the cause."""


def retry_it(
    call: Callable[[], T],
    *,
    attempts: int = 4,
    base_s: float = 0.2,
    sleep: Callable[[float], None] = time.sleep,
    jitter: Callable[[], float] = random.random,
) -> T:
    """``call`` up to ``attempts`` times; waits base, 2·base, 4·base …, each stretched by up to half at random."""
    for attempt in range(attempts):
        try:
            return call()
        except ConnectionError as error:
            if attempt == attempts - 1:
                raise GaveUp(f"gave up after {attempts} attempts") from error
            sleep(base_s * 2**attempt * (1 + jitter() / 2))
    raise ValueError("attempts must be at least 1")
