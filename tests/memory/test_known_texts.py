"""The texts of all that is remembered, kept and followed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.known_texts import KnownTexts
from tui_agent.memory.text import normalise
from tui_agent.memory.types import NewFact


@pytest.fixture
def db() -> Iterator[Database]:
    with Database(":memory:") as opened:
        yield opened


def new(text: str, quote: str = "") -> NewFact:
    return NewFact("", text, "a test", quote=quote)


def test_texts_and_quotes_of_live_facts_are_known_in_their_normal_form(db: Database) -> None:
    facts, known = FactStore(db), KnownTexts(db)
    facts.add(new("We deploy on Fridays.", "so: we DEPLOY on Fridays"))
    assert set(known.read()) == {normalise("We deploy on Fridays."), normalise("so: we DEPLOY on Fridays")}


def test_what_is_added_replaced_ended_and_taken_back_is_followed(db: Database) -> None:
    facts, known = FactStore(db), KnownTexts(db)
    first = facts.add(new("The port is 7443."))
    known.read()
    facts.supersede(first.id, new("The port is 8443."))
    assert set(known.read()) == {normalise("The port is 8443.")}
    facts.undo_last()
    assert set(known.read()) == {normalise("The port is 7443.")}
    facts.expire(first.id)
    assert not known.read()


def test_a_text_that_two_facts_share_stays_until_both_have_gone(db: Database) -> None:
    facts, known = FactStore(db), KnownTexts(db)
    ids = [facts.add(new(text, "the same quote")).id for text in ("one thing", "another thing")]
    known.read()
    facts.delete_chain(ids[0])
    assert "the same quote" in known.read()
    facts.delete_chain(ids[1])
    assert not known.read()


def test_reading_ahead_in_pieces_gives_the_same_and_what_came_meanwhile_too(db: Database) -> None:
    facts, known = FactStore(db), KnownTexts(db)
    with db.transaction():
        for number in range(1203):
            facts.add(new(f"Fact number {number}."))
    pieces = 0
    while known.begin():
        pieces += 1
        if pieces == 1:
            facts.add(new("Said while it was read."))
    assert pieces == 3
    assert len(known.read()) == 1204
    assert normalise("Said while it was read.") in known.read()
    assert not known.begin()
