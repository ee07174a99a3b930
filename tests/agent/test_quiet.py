"""What keeps the screen alive while much is read leaves the process as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tui_agent.agent.quiet import no_collection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.enable()
    yield
    gc.unfreeze()
    if not was_on:
        gc.disable()


def test_the_collector_waits_until_the_last_of_several_is_over() -> None:
    with no_collection():
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_turns_the_collector_on_again() -> None:
    with pytest.raises(ValueError, match="unreadable"), no_collection():
        raise ValueError("unreadable")
    assert gc.isenabled()


def test_a_collector_that_was_off_before_stays_off() -> None:
    gc.disable()
    with no_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()
