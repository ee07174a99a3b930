"""Consolidation proposes and never deletes; only the user's yes changes anything, and undo takes it back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pytest

from tui_agent.memory.consolidation import Consolidator, Relation
from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.text import format_utc, parse_utc
from tui_agent.memory.types import Fact, Kind, NewFact, Scope


class Clock:
    def __init__(self) -> None:
        self.now = "2026-05-02 10:00:00"

    def __call__(self) -> str:
        return self.now

    def forward(self, days: float) -> None:
        self.now = format_utc(parse_utc(self.now) + timedelta(days=days))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db() -> Iterator[Database]:
    with Database(":memory:") as opened:
        yield opened


@pytest.fixture
def facts(db: Database, clock: Clock) -> FactStore:
    return FactStore(db, clock)


@pytest.fixture
def consolidator(db: Database, facts: FactStore, clock: Clock) -> Consolidator:
    return Consolidator(db, facts, clock=clock)


def add(facts: FactStore, text: str, subject: str = "", **more: object) -> Fact:
    return facts.add(NewFact(subject=subject, fact=text, source="m1", quote=text, **more))  # type: ignore[arg-type]


class Model:
    """Answers with a script and keeps what it was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(self, messages: list[dict[str, str]]) -> str:
        assert [message["role"] for message in messages] == ["user"]
        self.asked.append(messages[0]["content"])
        return self.answer


# --- proposing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older", "newer", "relation"),
    [
        ("Commit titles are in the imperative mood.", "Commit titles are in the imperative mood, always.", "duplicate"),
        ("Testy odpalamy przez nox.", "Przez nox odpalamy testy", "duplicate"),
        ("Отчёты отправляем по пятницам.", "Отчет отправляем по пятницам", "duplicate"),
        ("We deploy on Fridays.", "We do not deploy on Fridays.", "contradiction"),
        ("Ukończone zadania pokazujemy.", "Ukończonych zadań nie pokazujemy.", "contradiction"),
        ("The maximum line length is 100 characters.", "The maximum line length is 120 characters.", "contradiction"),
    ],
)
async def test_what_words_alone_show_is_proposed_with_the_newer_text_kept(
    facts: FactStore, consolidator: Consolidator, clock: Clock, older: str, newer: str, relation: str
) -> None:
    old = add(facts, older)
    clock.forward(1)
    new = add(facts, newer)
    before = facts.stats()
    (proposal,) = await consolidator.propose()
    assert (proposal.relation.value, proposal.keep.id, proposal.retire.id) == (relation, new.id, old.id)
    assert proposal.reason.endswith((".", "stays."))
    assert proposal.by == "rule"
    assert facts.stats() == before  # nothing is changed by looking


async def test_unrelated_facts_that_share_words_are_never_proposed(
    facts: FactStore, consolidator: Consolidator
) -> None:
    for text in (
        "The importer crashes on files with a byte order mark.",
        "The exporter writes files with a byte order mark, and that is right.",
        "Backups of the database go to the server kora.",
        "The database is PostgreSQL.",
        "Отступ четыре пробела.",
        "Логи храним четыре недели.",
    ):
        add(facts, text)
    assert await consolidator.propose() == []


async def test_two_live_facts_about_one_subject_cannot_both_be_current(
    facts: FactStore, consolidator: Consolidator, clock: Clock
) -> None:
    old = add(facts, "Anna manages Northwest.", "Anna's region")
    clock.forward(1)
    new = add(facts, "National belongs to Anna now.", "anna's-region")
    (proposal,) = await consolidator.propose()
    assert (proposal.relation, proposal.retire.id, proposal.keep.id) == (Relation.CONTRADICTION, old.id, new.id)
    assert "Anna's region" in proposal.reason or "anna's-region" in proposal.reason


async def test_facts_of_the_user_and_of_a_project_are_never_merged(
    facts: FactStore, consolidator: Consolidator
) -> None:
    add(facts, "Answers are short and without emojis.")
    add(facts, "Answers are short and without emojis, please.", scope=Scope.USER)
    assert await consolidator.propose() == []


async def test_each_fact_is_in_one_proposal_and_the_rest_comes_next_time(
    facts: FactStore, consolidator: Consolidator, clock: Clock
) -> None:
    for ending in ("", ", please", ", thanks"):
        add(facts, f"Commit titles in this repository are always written in the imperative mood{ending}.")
        clock.forward(1)
    (first,) = await consolidator.propose()
    consolidator.apply(first)
    (second,) = await consolidator.propose(everything=True)
    consolidator.apply(second)
    assert await consolidator.propose(everything=True) == []
    assert len(facts.live()) == 1
    assert len(facts.chain(facts.live()[0].id)) == 5


async def test_only_what_is_new_since_the_last_run_is_compared(
    facts: FactStore, consolidator: Consolidator, clock: Clock
) -> None:
    add(facts, "We deploy on Fridays.")
    add(facts, "We never deploy on Fridays.")
    assert len(await consolidator.propose()) == 1
    clock.forward(1)
    assert await consolidator.propose() == []
    assert len(await consolidator.propose(everything=True)) == 1
    add(facts, "We deploy on the Fridays.")
    assert len(await consolidator.propose()) == 1


async def test_it_is_due_every_week(consolidator: Consolidator, clock: Clock) -> None:
    assert consolidator.due()
    await consolidator.propose()
    clock.forward(6.9)
    assert not consolidator.due()
    clock.forward(0.2)
    assert consolidator.due()
    assert consolidator.last_run() == "2026-05-02 10:00:00"


# --- deciding -------------------------------------------------------------------------------------


async def test_yes_leaves_one_current_row_and_both_in_its_history_and_undo_brings_both_back(
    facts: FactStore, consolidator: Consolidator, clock: Clock
) -> None:
    old = add(facts, "The maximum line length is 100 characters.", importance=9, kind=Kind.CONVENTION)
    clock.forward(1)
    new = add(facts, "The maximum line length is 120 characters.", kind=Kind.CONVENTION, target="AGENTS.md#X")
    (proposal,) = await consolidator.propose()
    kept = consolidator.apply(proposal)
    assert [fact.fact for fact in facts.live()] == [new.fact]
    assert (kept.importance, kept.kind, kept.quote, kept.target) == (9, Kind.CONVENTION, new.fact, "AGENTS.md#X")
    assert kept.confirmed_at == new.confirmed_at
    assert {fact.id for fact in facts.chain(kept.id)} == {kept.id, old.id, new.id}
    assert [change.event for change in facts.changes(kept.id)] == ["supersede", "supersede"]
    undone = facts.undo_last()
    assert undone is not None
    assert {fact.id for fact in facts.live()} == {old.id, new.id}


async def test_the_user_may_keep_the_older_one_instead(
    facts: FactStore, consolidator: Consolidator, clock: Clock
) -> None:
    old = add(facts, "We deploy on Fridays.")
    clock.forward(1)
    add(facts, "We do not deploy on Fridays.")
    (proposal,) = await consolidator.propose()
    assert proposal.turned().id == proposal.id
    assert consolidator.apply(proposal.turned()).fact == old.fact
    assert [fact.fact for fact in facts.live()] == [old.fact]


async def test_no_leaves_both_and_the_pair_does_not_come_again(
    facts: FactStore, consolidator: Consolidator, db: Database, clock: Clock
) -> None:
    add(facts, "We deploy on Fridays.")
    add(facts, "We never deploy on Fridays.")
    (proposal,) = await consolidator.propose()
    consolidator.decline(proposal)
    assert len(facts.live()) == 2
    assert await Consolidator(db, facts, clock=clock).propose(everything=True) == []


async def test_a_proposal_that_time_has_overtaken_changes_nothing(facts: FactStore, consolidator: Consolidator) -> None:
    one = add(facts, "We deploy on Fridays.")
    two = add(facts, "We never deploy on Fridays.")
    (proposal,) = await consolidator.propose()
    facts.expire(one.id)
    with pytest.raises(ValueError, match="no longer current"):
        consolidator.apply(proposal)
    facts.delete_chain(one.id)
    with pytest.raises(LookupError, match="no longer there"):
        consolidator.apply(proposal)
    assert [fact.id for fact in facts.live()] == [two.id]


async def test_the_writer_of_lines_in_files_may_do_the_merging(
    facts: FactStore, consolidator: Consolidator, db: Database
) -> None:
    add(facts, "We deploy on Fridays.")
    add(facts, "We never deploy on Fridays.")
    (proposal,) = await consolidator.propose()
    seen: list[tuple[list[str], str]] = []

    def merge(ids: object, new: NewFact) -> Fact:
        seen.append((list(ids), new.fact))  # type: ignore[call-overload]
        return facts.supersede_many(list(ids), new)  # type: ignore[call-overload]

    consolidator.apply(proposal, merge)
    assert seen == [([proposal.keep.id, proposal.retire.id], proposal.keep.fact)]
    assert len(facts.live()) == 1


def test_merging_with_a_row_that_is_gone_changes_nothing(db: Database, facts: FactStore) -> None:
    one = add(facts, "We deploy on Fridays.")
    with pytest.raises(LookupError):
        facts.supersede_many([one.id, "gone"], NewFact(subject="", fact="x", source="s"))
    assert [fact.id for fact in facts.live()] == [one.id]


# --- with a model ---------------------------------------------------------------------------------


def similar_vectors(facts: FactStore) -> str:
    live = facts.live()
    facts.put_vectors("id/1", {fact.id: np.array([1.0, 0.01 * n], np.float32) for n, fact in enumerate(live)})
    return "id/1"


async def test_a_model_is_asked_about_pairs_that_are_near_in_meaning_only(
    db: Database, facts: FactStore, clock: Clock
) -> None:
    old = add(facts, "The project talks REST.")
    clock.forward(1)
    new = add(facts, "Our API speaks GraphQL.")
    model = Model('<think>hm</think>```json\n[{"pair": 1, "relation": "Contradiction"}]\n```')
    consolidator = Consolidator(db, facts, model, identity=similar_vectors(facts), clock=clock)
    (proposal,) = await consolidator.propose()
    assert (proposal.relation, proposal.by) == (Relation.CONTRADICTION, "model")
    assert (proposal.keep.id, proposal.retire.id) == (new.id, old.id)
    assert '1. older: "The project talks REST."' in model.asked[0]
    consolidator.apply(proposal)
    assert [fact.fact for fact in facts.live()] == ["Our API speaks GraphQL."]


async def test_what_an_embedder_sees_in_all_facts_alike_makes_no_two_of_them_near(
    db: Database, facts: FactStore, clock: Clock
) -> None:
    """Any two of these vectors have a cosine over 0.9; without their common part only one pair is near."""
    chance = np.random.default_rng(4)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    texts = [" ".join("".join(chance.choice(letters, 9)) for _ in range(5)) for _ in range(22)]
    own = {text: chance.normal(size=64) for text in texts}
    own["Releases go out on Friday."] = own["We ship before each weekend."] = chance.normal(size=64)
    vectors = {}
    for text, vector in own.items():
        vector = 20 * np.eye(64)[0] + 0.5 * vector + 0.1 * chance.normal(size=64)
        vectors[add(facts, text).id] = (vector / np.linalg.norm(vector)).astype(np.float32)
    matrix = np.stack(list(vectors.values()))
    assert (matrix @ matrix.T).min() > 0.9
    facts.put_vectors("id/1", vectors)
    model = Model("[]")
    await Consolidator(db, facts, model, identity="id/1", clock=clock).propose()
    ((asked),) = model.asked
    assert asked.count("older:") == 1
    assert "Releases go out on Friday." in asked
    assert "We ship before each weekend." in asked


@pytest.mark.parametrize(
    "answer",
    [
        *("", "no", '[{"pair": 1, "relation": "different"}]', '[{"pair": 9, "relation": "duplicate"}]', "null"),
        *('[{"pair": 1, "relation": "delete both"}]', "[{", '{"pairs": "x"}', '[{"relation": "duplicate"}]'),
    ],
)
async def test_an_answer_that_says_nothing_usable_proposes_nothing(
    db: Database, facts: FactStore, clock: Clock, answer: str
) -> None:
    add(facts, "The project talks REST.")
    add(facts, "Our API speaks GraphQL.")
    consolidator = Consolidator(db, facts, Model(answer), identity=similar_vectors(facts), clock=clock)
    assert await consolidator.propose() == []
    assert len(facts.live()) == 2


async def test_the_text_that_stays_is_never_the_models(db: Database, facts: FactStore, clock: Clock) -> None:
    add(facts, "The project talks REST.")
    add(facts, "Our API speaks GraphQL.")
    answer = json.dumps([{"pair": 1, "relation": "duplicate", "text": "The API is SOAP.", "merged": "SOAP"}])
    consolidator = Consolidator(db, facts, Model(answer), identity=similar_vectors(facts), clock=clock)
    (proposal,) = await consolidator.propose()
    assert "SOAP" not in consolidator.apply(proposal).fact


async def test_a_model_that_fails_leaves_what_words_alone_say(db: Database, facts: FactStore, clock: Clock) -> None:
    add(facts, "We deploy on Fridays.")
    add(facts, "We never deploy on Fridays.")
    add(facts, "The project talks REST.")

    async def down(messages: list[dict[str, str]]) -> str:
        raise ConnectionError("no server")

    consolidator = Consolidator(db, facts, down, identity=similar_vectors(facts), clock=clock)
    assert [proposal.by for proposal in await consolidator.propose()] == ["rule"]
