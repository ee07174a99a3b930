"""The index of facts follows the store, whatever happens to it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory.database import Database
from tui_agent.memory.fact_index import FactIndex, statement
from tui_agent.memory.facts import FactStore
from tui_agent.memory.text import format_utc, parse_utc
from tui_agent.memory.types import NewFact


class Clock:
    def __init__(self) -> None:
        self.now = "2026-05-02 10:00:00"

    def __call__(self) -> str:
        return self.now

    def forward(self, **how: float) -> None:
        self.now = format_utc(parse_utc(self.now) + timedelta(**how))


def new(text: str, subject: str = "", **more: str | None) -> NewFact:
    return NewFact(subject, text, "message 1", **more)


def test_a_fact_deleted_while_the_question_is_on_its_way_is_not_given(tmp_path: Path) -> None:
    db = Database(tmp_path / "memory.db")
    facts = FactStore(db)
    fact = facts.add(new("The gateway listens on port 7443."))
    index = FactIndex(db, facts)
    delta = index.read("")
    assert delta is not None
    index.apply(delta)
    facts.delete_chain(fact.id)
    hits = index.find("gateway port", None, {})
    assert set(hits.words) == {f"fact:{fact.id}"}
    assert index.rows([fact.id]) == {}
    db.close()


WORDS = st.sampled_from(
    ["gateway", "port", "brama", "bramy", "retry_it", "ёлка", "7443", "money", "sea", "łódź", "the"]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "record", "expire", "delete", "undo", "confirm", "wait", "pin"]),
        st.integers(0, 5),
        SENTENCES,
    ),
    max_size=15,
)


@settings(max_examples=60, deadline=None)
@given(ACTIONS)
def test_an_index_that_follows_equals_one_made_anew(actions: list[tuple[str, int, str]]) -> None:
    clock = Clock()
    with Database(":memory:") as db:
        facts = FactStore(db, clock)
        index = FactIndex(db, facts)

        def follow() -> None:
            delta = index.read("")
            if delta is not None:
                index.apply(delta)

        for action, number, text in actions:
            live = facts.live()
            chosen = live[number % len(live)].id if live else None
            if action == "add":
                facts.add(
                    new(
                        text,
                        expires_at=format_utc(parse_utc(clock.now) + timedelta(hours=number + 1))
                        if number > 2
                        else None,
                    )
                )
            elif action == "record":
                facts.record(new(text, f"subject {number % 2}"))
            elif action == "undo":
                facts.undo_last()
            elif action == "wait":
                clock.forward(hours=number)
            elif chosen is not None:
                {"expire": facts.expire, "delete": facts.delete_chain, "confirm": facts.confirm, "pin": facts.pin}[
                    action
                ](chosen)
            if number % 2:
                follow()
        follow()
        fresh = FactIndex(db, facts)
        delta = fresh.read("")
        assert delta is not None
        fresh.apply(delta)
        for query in ("gateway port", "brama ёлка 7443", "retry_it money"):
            kept = {ref: hit.bm25 for ref, hit in index.find(query, None, {}).words.items()}
            made = {ref: hit.bm25 for ref, hit in fresh.find(query, None, {}).words.items()}
            assert kept == pytest.approx(made)
        assert index.read("") is None


def test_a_bare_statement_is_embedded_with_its_subject() -> None:
    assert statement("gateway port", "It is 7443.") == "gateway port: It is 7443."
    assert statement("Gateway", "The gateway is old.") == "The gateway is old."
    assert statement(" ", "x") == "x"
