"""A stored session as the transcript shows it."""

from __future__ import annotations

from tui_agent.agent.transcript import memory_line


def test_what_a_turn_did_to_memory_is_said_in_the_words_of_the_live_answer() -> None:
    happened = ["superseded", "saved", "evicted", "put_away", "quarantined", "goal"]
    assert memory_line([{"what": what} for what in happened]) == "1 replaced, 1 saved, 2 put away, 1 to review"
    assert memory_line([{"what": "goal"}]) == ""
