"""What keeps the screen alive while much is read leaves the process as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tui_agent.agent.quiet import CollectionPause, no_collection


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.enable()
    yield
    gc.unfreeze()
    if was_on:
        gc.enable()
    else:
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


def test_a_pause_holds_the_collector_back_once_and_ends_once() -> None:
    pause, other = CollectionPause(), CollectionPause()
    pause.end()
    assert gc.isenabled()
    pause.begin()
    pause.begin()
    other.begin()
    assert not gc.isenabled()
    pause.end()
    assert not gc.isenabled()
    other.end()
    pause.end()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_what_was_loaded_is_passed_over_although_a_turn_is_waiting() -> None:
    pause = CollectionPause()
    pause.begin()
    with no_collection():
        pass
    assert gc.get_freeze_count() > 0
    assert not gc.isenabled()
    pause.end()
    assert gc.isenabled()
