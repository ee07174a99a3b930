"""The recaller: what is sent, what was close, why, and that nothing dead is ever among it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui_agent.memory.choosing import Candidate, Limits, choose
from tui_agent.memory.database import Database
from tui_agent.memory.fact_candidates import fact_terms
from tui_agent.memory.facts import FactStore
from tui_agent.memory.history import History
from tui_agent.memory.recall import Recaller
from tui_agent.memory.records import record_from_json, record_to_json
from tui_agent.memory.text import format_utc, parse_utc
from tui_agent.memory.types import NewFact, RecalledItem, Term
from tui_agent.memory.vectors import Neighbours
from tui_agent.memory.working import WorkingMemory

CASES = Path(__file__).parents[1] / "cases" / "retrieval.jsonl"
T = TypeVar("T")


class Clock:
    def __init__(self) -> None:
        self.now = "2026-05-02 10:00:00"

    def __call__(self) -> str:
        return self.now

    def forward(self, **how: float) -> None:
        self.now = format_utc(parse_utc(self.now) + timedelta(**how))


class Topics:
    """An embedder that knows a few topics: a text's vector is the sum of those whose words it holds."""

    WORDS = ("money price payment kwota pieniądze деньги", "sea boat harbour statek port море")

    def __init__(self, identity: str = "topics:1", fails: bool = False) -> None:
        self.identity, self.fails, self.asked = identity, fails, 0
        self.dimension = 8

    async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
        if self.fails:
            raise RuntimeError("the model is not there")
        self.asked += len(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Any:
        vector = np.full(self.dimension, 0.1, dtype=np.float32)
        for place, words in enumerate(self.WORDS):
            vector[place] += sum(word in text.casefold() for word in words.split())
        vector[5] += (len(text) % 7) / 30
        return vector / np.linalg.norm(vector)


def run(coroutine: Awaitable[T]) -> T:
    async def main() -> T:
        return await coroutine

    return asyncio.run(main())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "memory.db") as opened:
        yield opened


@pytest.fixture
def facts(db: Database, clock: Clock) -> FactStore:
    return FactStore(db, clock)


def recaller(db: Database, facts: FactStore, embedder: Any = None, working: Any = None, notes: Any = None) -> Recaller:
    return Recaller(db, facts, History(db), working, embedder, notes)


def new(text: str, subject: str = "", **more: Any) -> NewFact:
    return NewFact(subject, text, more.pop("source", "message 1"), **more)


def texts(items: Sequence[RecalledItem]) -> list[str]:
    return [item.text for item in items]


def near(record: Any) -> dict[str, str]:
    return {item.text: item.status for item in record.near}


GATEWAY = "The gateway listens on port 7443."


# --- what is found --------------------------------------------------------------------------------


def test_a_fact_is_found_by_words_with_its_source_and_dates(db: Database, facts: FactStore) -> None:
    facts.add(new(GATEWAY, "gateway", quote="the gateway is on 7443", created_at="2026-04-01", source="message 9"))
    facts.add(new("Lunch is at noon."))
    record = run(recaller(db, facts).recall("which port has the gateway?", "ship it"))
    assert texts(record.items) == [GATEWAY]
    item = record.items[0]
    assert (item.store, item.rank, item.status, item.source) == ("fact", 1, "sent", "message 9")
    assert (item.quote, item.confirmed_at) == ("the gateway is on 7443", "2026-04-01 00:00:00")
    assert (record.goal, record.channels) == ("ship it", ("words",))
    assert record.took_ms >= 0


def test_an_empty_store_and_an_empty_question_find_nothing(db: Database, facts: FactStore) -> None:
    asking = recaller(db, facts, Topics())
    assert run(asking.recall("anything")).items == ()
    facts.add(new(GATEWAY))
    assert run(asking.recall("")).items == ()
    assert run(asking.recall("   \n")).near == ()


def test_meaning_finds_what_shares_no_word(db: Database, facts: FactStore) -> None:
    for number in range(10):
        facts.add(new(f"Rule number {number} concerns soup and bread."))
    facts.add(new("Each payment is kept in cents.", "amounts"))
    asking = recaller(db, facts, Topics())
    assert run(asking.index_missing()) == 11
    record = run(asking.recall("где деньги"))
    assert texts(record.items)[:1] == ["Each payment is kept in cents."]
    assert record.channels == ("words", "meaning")
    assert "cosine" in {term.name: term.note for term in record.items[0].terms}["meaning"]


def test_of_two_that_fit_alike_the_one_that_names_a_time_answers_when(db: Database, facts: FactStore) -> None:
    facts.add(NewFact("market stall", "The market stall is painted green.", "s"))
    facts.add(NewFact("market stall hours", "The market stall opens at nine.", "s"))
    facts.add(NewFact("market stall day", "The market stall is there on Saturdays.", "s"))
    recaller = Recaller(db, facts, History(db))
    record = run(recaller.recall("When is the market stall there?", threshold=-1.0))
    assert record.items[0].text == "The market stall is there on Saturdays."
    notes = {item.text: term.note for item in record.items for term in item.terms if term.name == "answer"}
    assert notes["The market stall is there on Saturdays."] == "asked for a time, and it names one"
    assert notes["The market stall is painted green."] == "asked for a time, and it names none"
    assert all(item.score == pytest.approx(sum(term.value for term in item.terms)) for item in record.items)
    plain = run(recaller.recall("Who painted the market stall?", threshold=-1.0))
    assert not any(term.name == "answer" for item in plain.items for term in item.terms)


def test_an_embedder_that_fails_costs_nothing_but_meaning(db: Database, facts: FactStore) -> None:
    facts.add(new(GATEWAY))
    asking = recaller(db, facts, Topics(fails=True))
    assert run(asking.index_missing()) == 0
    record = run(asking.recall("gateway port"))
    assert texts(record.items) == [GATEWAY]
    assert record.channels == ("words",)


def test_a_slow_embedder_is_not_waited_for(db: Database, facts: FactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    class Never(Topics):
        async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
            await asyncio.Event().wait()
            return []

    monkeypatch.setattr("tui_agent.memory.recall._EMBED_PATIENCE_S", 0.01)
    facts.add(new(GATEWAY))

    async def main() -> Any:
        working = WorkingMemory(db, Never(), session_id="s")
        return await recaller(db, facts, Never(), working).recall("gateway port")

    assert texts(run(main()).items) == [GATEWAY]


def test_after_a_change_of_the_embedder_vectors_of_the_old_one_are_not_compared(db: Database, facts: FactStore) -> None:
    for number in range(10):
        facts.add(new(f"Price {number} is paid in money."))
    embedder = Topics("model:a")
    asking = recaller(db, facts, embedder)
    run(asking.index_missing())
    assert run(asking.recall("price")).channels == ("words", "meaning")
    embedder.identity, embedder.dimension = "model:b", 12
    record = run(asking.recall("price"))
    assert record.channels == ("words",)
    assert record.items
    assert run(asking.index_missing()) == 10
    assert run(asking.recall("price")).channels == ("words", "meaning")
    embedder.identity, embedder.dimension = "model:a", 8
    assert run(asking.index_missing()) == 0  # those of the first are still there
    assert run(asking.recall("price")).channels == ("words", "meaning")


def test_the_question_is_embedded_once(db: Database, facts: FactStore) -> None:
    embedder = Topics()
    asking = recaller(db, facts, embedder)
    run(asking.recall("price"))
    run(asking.recall("price"))
    assert embedder.asked == 1


def test_vectors_that_come_later_take_part_from_then_on(db: Database, facts: FactStore) -> None:
    asking = recaller(db, facts, Topics())
    fact = facts.add(new("A boat."))
    assert run(asking.recall("boat")).channels == ("words",)
    facts.put_vectors("topics:1", {fact.id: np.ones(8, dtype=np.float32) / np.sqrt(8)})
    assert run(asking.recall("boat")).channels == ("words", "meaning")
    facts.undo_last()
    other = facts.add(new("A harbour."))
    assert texts(run(asking.recall("harbour")).items) == ["A harbour."]
    assert run(asking.index_missing()) == 1  # its row may stand where the other one was
    record = run(asking.recall("harbour"))
    assert (record.items[0].id, record.channels) == (other.id, ("words", "meaning"))


# --- what must not be found -----------------------------------------------------------------------


def test_an_expired_fact_is_gone_in_the_second_it_ends(db: Database, facts: FactStore, clock: Clock) -> None:
    facts.add(new("The gateway freeze lasts until noon.", expires_at="2026-05-02 12:00:00"))
    asking = recaller(db, facts)
    assert run(asking.recall("gateway freeze")).items
    clock.now = "2026-05-02 11:59:59"
    assert run(asking.recall("gateway freeze")).items
    clock.now = "2026-05-02 12:00:00"
    record = run(asking.recall("gateway freeze"))
    assert record.items == record.near == ()


def test_a_deleted_fact_leaves_nothing(db: Database, facts: FactStore) -> None:
    fact = facts.add(new(GATEWAY))
    asking = recaller(db, facts)
    assert run(asking.recall("gateway port")).items
    facts.delete_chain(fact.id)
    record = run(asking.recall("gateway port"))
    assert record.items == record.near == ()


def test_only_the_newest_version_is_sent_and_the_older_one_is_named(db: Database, facts: FactStore) -> None:
    facts.record(new("The gateway port is 7443.", "gateway port"))
    facts.record(new("The gateway port is 8443.", "gateway port"))
    record = run(recaller(db, facts).recall("gateway port"))
    assert texts(record.items) == ["The gateway port is 8443."]
    assert near(record) == {"The gateway port is 7443.": "superseded"}
    facts.undo_last()
    assert texts(run(recaller(db, facts).recall("gateway port")).items) == ["The gateway port is 7443."]


def test_a_correction_taken_back_is_followed_by_an_index_that_saw_it(db: Database, facts: FactStore) -> None:
    facts.record(new("The gateway port is 7443.", "gateway port"))
    asking = recaller(db, facts)
    run(asking.recall("gateway"))
    facts.record(new("The gateway port is 8443.", "gateway port"))
    assert texts(run(asking.recall("gateway")).items) == ["The gateway port is 8443."]
    facts.undo_last()
    record = run(asking.recall("gateway"))
    assert (texts(record.items), record.near) == (["The gateway port is 7443."], ())


def test_a_window_that_writes_all_the_time_holds_no_question_up(
    db: Database, facts: FactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts.add(new(GATEWAY))
    asking = recaller(db, facts)
    run(asking.recall("gateway"))
    with Database(tmp_path / "memory.db") as other:
        look = asking._index._look

        def meanwhile(last: Any) -> Any:
            other.execute("UPDATE memory SET importance = importance")
            return look(last)

        monkeypatch.setattr(asking._index, "_look", meanwhile)
        assert texts(run(asyncio.wait_for(asking.recall("gateway port"), 20)).items) == [GATEWAY]


def test_what_another_window_writes_is_found(db: Database, facts: FactStore, tmp_path: Path) -> None:
    asking = recaller(db, facts)
    run(asking.recall("gateway"))
    with Database(tmp_path / "memory.db") as other:
        FactStore(other).add(new(GATEWAY))
        assert texts(run(asking.recall("gateway port")).items) == [GATEWAY]
        other.execute("UPDATE memory SET fact = 'The gateway was retired for good.'")
        assert texts(run(asking.recall("gateway retired")).items) == ["The gateway was retired for good."]
        other.execute("UPDATE memory SET fact = 'The gateway was repaired for good'")
        assert texts(run(asking.recall("repaired")).items) == ["The gateway was repaired for good"]


# --- choice and reasons ---------------------------------------------------------------------------


def test_every_reason_for_leaving_out_is_named(db: Database, facts: FactStore) -> None:
    ids = [facts.add(new(f"Gateway rule {name} for the port.")).id for name in ("one", "two", "three", "four")]
    asking = recaller(db, facts)
    record = run(
        asking.recall(
            "gateway port rule",
            visible=[f"fact:{ids[0]}"],
            masked=[f"fact:{ids[1]}"],
            put_away=[f"fact:{ids[2]}"],
        )
    )
    assert texts(record.items) == ["Gateway rule four for the port."]
    assert near(record) == {
        "Gateway rule one for the port.": "visible",
        "Gateway rule two for the port.": "masked",
        "Gateway rule three for the port.": "put away",
    }


def test_top_k_and_tokens_are_kept_and_the_rest_is_named(db: Database, facts: FactStore) -> None:
    for name in ("one", "two", "three"):
        facts.add(new(f"Gateway rule {name} for the port."))
    asking = recaller(db, facts)
    record = run(asking.recall("gateway port rule", top_k=1))
    assert (len(record.items), set(near(record).values())) == (1, {"budget"})
    record = run(asking.recall("gateway port rule", max_tokens=15, count=lambda text: 10))
    assert (len(record.items), set(near(record).values())) == (1, {"budget"})
    assert run(asking.recall("gateway port rule", top_k=0)).items == ()


def test_what_fits_too_little_is_a_near_miss(db: Database, facts: FactStore) -> None:
    facts.add(new("The harbour has one crane."))
    record = run(recaller(db, facts).recall("harbour zebra xylophone quartet umbrella", threshold=0.5))
    assert record.items == ()
    assert near(record) == {"The harbour has one crane.": "threshold"}
    assert record.threshold == 0.5


def test_the_same_words_are_sent_once(db: Database, facts: FactStore) -> None:
    facts.add(new(GATEWAY))
    facts.add(new("the gateway listens on port 7443", "another"))
    asking = recaller(db, facts, notes=lambda: {"net.md": GATEWAY})
    record = run(asking.recall("gateway port"))
    assert len(record.items) == 1
    assert record.near == ()


def test_two_live_facts_about_one_subject_are_marked_as_contradicting(db: Database, facts: FactStore) -> None:
    facts.add(new("The port is 7443.", "gateway port"))
    facts.add(new("The port is 8443.", "Gateway-Port"))
    facts.add(new("The port of the tracker is 9187.", "tracker"))
    record = run(recaller(db, facts).recall("gateway port"))
    notes = {item.text: {term.name: term.note for term in item.terms}.get("contradiction") for item in record.items}
    assert notes["The port is 7443."] == "also held to be true: The port is 8443."
    assert notes["The port is 8443."] == "also held to be true: The port is 7443."
    assert notes.get("The port of the tracker is 9187.") is None


def test_a_note_is_found_and_a_long_one_is_cut_to_what_fits(db: Database, facts: FactStore) -> None:
    long = "\n".join(["Beginning.", *["filler line about nothing"] * 60, "The crane is serviced in March.", "End."])
    asking = recaller(db, facts, notes=lambda: {"knowledge/projects/harbour.md": long})
    record = run(asking.recall("when is the crane serviced"))
    item = record.items[0]
    assert (item.store, item.id, item.kind) == ("file", "knowledge/projects/harbour.md", "file")
    assert item.text.startswith("Beginning.")
    assert item.text.endswith("The crane is serviced in March.")
    assert len(item.text) < 600


def test_a_note_that_is_gone_or_changed_is_not_found_by_its_old_words(db: Database, facts: FactStore) -> None:
    notes = {"a.md": "The crane is old.", "b.md": "The crane is new."}
    asking = recaller(db, facts, notes=lambda: notes)
    assert len(run(asking.recall("crane")).items) == 2
    del notes["a.md"]
    notes["b.md"] = "The winch is new."
    assert run(asking.recall("crane")).items == ()


def test_a_left_out_twin_of_something_sent_is_not_named() -> None:
    twins = [
        Candidate("fact:a", "Same.", terms=[Term("words", 0.9)]),
        Candidate("cold:b", "same", terms=[Term("words", 0.8)]),
    ]
    sent, left = choose(twins, Limits(5, 0.1, 100, masked={"fact:a"}), len, "same")
    assert [item.id for item in sent] == ["b"]
    assert left == []


def test_tokens_are_counted_of_what_may_be_sent_and_of_what_found_no_room() -> None:
    found = [
        Candidate("fact:a", "alpha", terms=[Term("words", 0.9)]),
        Candidate("fact:b", "beta beta", terms=[Term("words", 0.8)]),
        Candidate("fact:c", "gamma", terms=[Term("words", 0.7)]),
        Candidate("fact:d", "delta", terms=[Term("words", 0.01)]),
    ]
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    sent, left = choose(found, Limits(5, 0.1, 6, visible={"fact:c"}), count, "same")
    assert [(item.id, item.tokens) for item in sent] == [("a", 5)]
    assert [(item.id, item.status, item.tokens) for item in left] == [
        ("b", "budget", 9), ("c", "visible", 0), ("d", "threshold", 0),
    ]  # fmt: skip
    assert counted == ["alpha", "beta beta"]


# --- scores ---------------------------------------------------------------------------------------


def test_importance_age_use_and_pin_decide_between_equals(db: Database, facts: FactStore, clock: Clock) -> None:
    old = facts.add(new("Gateway port rule alpha.", created_at="2020-01-01"))
    plain = facts.add(new("Gateway port rule beta."))
    weighty = facts.add(new("Gateway port rule gamma.", importance=10))
    pinned = facts.pin(facts.add(new("Gateway port rule delta.", importance=10)).id)
    record = run(recaller(db, facts).recall("gateway port rule"))
    assert [item.id for item in record.items] == [pinned.id, weighty.id, plain.id, old.id]


def test_what_age_takes_away_is_capped_and_counts_from_the_last_confirmation(facts: FactStore, clock: Clock) -> None:
    def terms(**how: Any) -> dict[str, float]:
        return {term.name: term.value for term in fact_terms(facts.add(new("x", **how)), clock.now)}

    assert terms(created_at="2016-05-02") == terms(created_at="2024-05-02")
    assert terms(created_at="2016-05-02")["age"] == pytest.approx(-0.04)
    assert terms(created_at="2016-05-02", confirmed_at=clock.now)["age"] == 0.0
    assert terms(created_at="2030-01-01")["age"] == 0.0  # a clock that was wrong earns nothing


def test_a_record_is_readable_after_the_fact_has_gone(db: Database, facts: FactStore) -> None:
    fact = facts.add(new(GATEWAY))
    record = run(recaller(db, facts).recall("gateway port"))
    facts.delete_chain(fact.id)
    kept = record_from_json(json.loads(json.dumps(record_to_json(record))))
    assert kept.items[0].text == GATEWAY
    assert kept.items[0].terms == record.items[0].terms


WORDS = st.sampled_from(
    ["gateway", "port", "brama", "bramy", "retry_it", "ёлка", "7443", "money", "sea", "łódź", "the"]
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SENTENCES, max_size=12), SENTENCES, st.booleans())
def test_terms_always_add_up_to_the_score(said: list[str], question: str, with_vectors: bool) -> None:
    async def main() -> Any:
        with Database(":memory:") as db:
            store = FactStore(db)
            for number, text in enumerate(said):
                store.add(new(text, importance=number % 10 + 1))
            asking = recaller(db, store, Topics() if with_vectors else None, notes=lambda: {"n.md": "gateway\nport"})
            await asking.index_missing()
            return await asking.recall(question, threshold=0.0)

    record = asyncio.run(main())
    for item in (*record.items, *record.near):
        assert item.score == pytest.approx(sum(term.value for term in item.terms), abs=1e-9)
    assert [item.rank for item in record.items] == list(range(1, len(record.items) + 1))
    scores = [item.score for item in record.items]
    assert scores == sorted(scores, reverse=True)
    assert len({item.text for item in record.items}) == len(record.items)


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(), max_size=80))
def test_no_question_makes_it_fail(question: str) -> None:
    async def main() -> Any:
        with Database(":memory:") as db:
            store, history = FactStore(db), History(db)
            store.add(new("port “quoted” 7443"))
            history.append(history.start_session().id, "user", "the port")
            working = WorkingMemory(db, Topics())
            await working.forget(await working.add("log", "the port is open"))
            asking = Recaller(db, store, history, working, Topics(), lambda: {"n.md": "port"})
            await asking.search_messages(question)
            return await asking.recall(question, stores=("fact", "cold", "file", "message"))

    assert isinstance(asyncio.run(main()).items, tuple)


# --- put-away items and messages ------------------------------------------------------------------


def test_put_away_items_are_found_beside_facts_and_stay_where_they_are(db: Database, facts: FactStore) -> None:
    async def main() -> Any:
        working = WorkingMemory(db, None, session_id="s")
        item = await working.add("tool_output", "pytest says: 3 failed in test_gateway.py", source="message 4")
        await working.forget(item)
        record = await recaller(db, facts, working=working).recall("what failed in test_gateway.py")
        return item, record, (await working.cold()).total

    item, record, total = asyncio.run(main())
    assert [(found.store, found.id, found.source) for found in record.items] == [("cold", str(item), "message 4")]
    assert total == 1


def test_an_item_whose_cooldown_runs_is_a_near_miss(db: Database, facts: FactStore) -> None:
    async def main() -> Any:
        working = WorkingMemory(db, None, session_id="s", recall_cooldown_steps=5)
        await working.forget(await working.add("log", "the crane stopped at noon"))
        return await recaller(db, facts, working=working).recall("crane stopped noon")

    record = asyncio.run(main())
    assert (record.items, near(record)) == ((), {"the crane stopped at noon": "cooldown"})


def test_messages_are_searched_on_request_and_not_those_of_the_session_that_asks(
    db: Database, facts: FactStore
) -> None:
    history = History(db)
    old, now = history.start_session().id, history.start_session().id
    history.append(old, "user", "The crane is serviced in March.")
    history.append(now, "user", "When is the crane serviced?")
    asking = Recaller(db, facts, history)
    assert run(asking.recall("crane serviced", session_id=now)).items == ()
    record = run(asking.recall("crane serviced", session_id=now, stores=("message",)))
    assert texts(record.items) == ["The crane is serviced in March."]
    found = run(asking.search_messages("crane serviced"))
    assert len(found) == 2
    assert texts(run(asking.search_messages("crane serviced", session_id=now))) == ["When is the crane serviced?"]


def test_an_answer_is_found_by_the_words_of_the_question_before_it(db: Database, facts: FactStore) -> None:
    history = History(db)
    session = history.start_session().id
    for number in range(6):
        history.append(session, "user", f"Chatter number {number} about soup.")
    history.append(session, "user", "Which database do the parcels live in?")
    answer = history.append(session, "assistant", "PostgreSQL, since spring.")
    found = run(Recaller(db, facts, history).search_messages("parcels database", 2))
    assert answer.id in [item.id for item in found]
    assert {term.name for term in found[0].terms} >= {"words", "context", "conversation", "neighbours"}


def test_a_day_is_found_by_its_date_in_three_languages(db: Database, facts: FactStore) -> None:
    history = History(db)
    for day in ("2023-02-01", "2023-05-08", "2023-08-08"):
        history.append(
            history.start_session().id, "user", f"We chose a crane. {day[-2:]}", created_at=f"{day} 12:00:00"
        )
    asking = Recaller(db, facts, history)
    for question in ("crane we chose on 8 May 2023", "dźwig crane, 8 maja", "crane 8 мая", "crane 2023-05-08"):
        assert run(asking.search_messages(question, 1))[0].created_at.startswith("2023-05-08"), question


# --- the cases ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def case_recaller(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[list[dict[str, Any]], Callable[[str], list[str]]]]:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    with Database(tmp_path_factory.mktemp("cases") / "memory.db") as db:
        store = FactStore(db)
        names = {
            store.add(new(case["fact"], case["subject"], importance=case["importance"])).id: case["id"]
            for case in cases
        }
        asking = recaller(db, store)

        def ask(question: str) -> list[str]:
            record = asyncio.run(asking.recall(question, top_k=5, threshold=-1.0, max_tokens=100_000))
            return [names[item.id] for item in record.items]

        yield cases, ask


@pytest.mark.parametrize(
    ("kind", "bar"),
    [
        ("symbol", 1.0),
        ("keyword", 1.0),
        ("inflected", 1.0),
        ("typo", 1.0),
        ("paraphrase", 0.60),
        ("cross_language", 0.21),
    ],
)
def test_words_alone_find_the_cases(
    case_recaller: tuple[list[dict[str, Any]], Callable[[str], list[str]]], kind: str, bar: float
) -> None:
    cases, ask = case_recaller
    asked = [(case["id"], q["text"]) for case in cases for q in case["questions"] if q["kind"] == kind]
    missed = [text for right, text in asked if right not in ask(text)]
    assert len(asked) - len(missed) >= bar * len(asked), missed


SUPERSEDE = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "supersede.jsonl").read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", SUPERSEDE, ids=lambda case: case["id"])
async def test_what_the_supersede_cases_hide_is_in_no_recall_also_by_an_index_made_anew(case: dict[str, Any]) -> None:
    def plain(text: str) -> str:
        return text.casefold().replace("ё", "е")

    now = {"at": "2026-05-02 10:00:00"}
    with Database(":memory:") as db:
        db.set_clock(lambda: now["at"])
        facts, history = FactStore(db, clock=lambda: now["at"]), History(db)
        following = Recaller(db, facts, history)  # follows each step
        refs: dict[str, str] = {}
        for step in case["steps"]:
            now["at"] = format_utc(parse_utc(now["at"]) + timedelta(seconds=1))
            if "say" in step:
                if step.get("origin") == "old_transcript" and facts.is_tombstoned(step["say"]):
                    continue
                ends = step.get("ttl_days")
                expires = ends and format_utc(parse_utc(now["at"]) + timedelta(days=ends))
                new = NewFact(step["subject"], step["say"], "message m1", expires_at=expires)
                refs[step["ref"]] = facts.record(new).fact.id
            elif "expire" in step:
                fact = facts.get(refs[step["expire"]])
                assert fact is not None
                assert fact.expires_at is not None
                now["at"] = fact.expires_at
            else:
                verb, ref = next(iter(step.items()))
                {"confirm": facts.confirm, "undo": facts.undo_correction, "delete": facts.delete_chain}[verb](refs[ref])
            await following.warm()
        for recaller in (following, Recaller(db, facts, history)):
            for step in case["steps"]:
                record = await recaller.recall(step.get("say", ""), top_k=20, threshold=-1, max_tokens=5000)
                said = plain(" | ".join(item.text for item in record.items if item.store == "fact"))
                assert [stem for stem in (*case["hidden"], *case.get("gone", ())) if plain(stem) in said] == []
            everything = " ".join(step["say"] for step in case["steps"] if "say" in step)
            record = await recaller.recall(everything, top_k=20, threshold=-1, max_tokens=5000)
            said = plain(" | ".join(item.text for item in record.items))
            assert [stem for stem in case["live"] if plain(stem) not in said] == []


class Index:
    """An index of vectors that answers at once or never; it counts how often it is asked."""

    def __init__(self) -> None:
        self.asked, self.answers = 0, False

    async def nearest(self, vector: Any, limit: int, identity: str) -> Neighbours | None:
        self.asked += 1
        if not self.answers:
            await asyncio.sleep(60)
        return Neighbours((), ())

    def follow(self, identity: str) -> None: ...


def test_an_index_that_is_always_late_is_asked_now_and_then_until_it_answers_in_time(
    db: Database, facts: FactStore
) -> None:
    async def ask() -> list[int]:
        facts.add(NewFact("", "The boat is in the harbour.", "message 1"))
        recaller = Recaller(db, facts, History(db), None, Topics())
        await recaller.index_missing()
        recaller.index, recaller.index_patience_s = index, 0.001
        counts = []
        for number in range(100):
            index.answers = number >= 40
            record = await recaller.recall(f"Where is the boat, for the {number}th time?")
            assert record.items[0].text == "The boat is in the harbour."
            counts.append(index.asked)
        return counts

    index = Index()
    counts = run(ask())
    assert counts[39] <= 5  # three times late, then every 32nd question
    assert counts[-1] >= 30  # and with every question since it answered in time


ON_CALL = "Amara and Lucian take turns on call, switching every Monday."


def test_a_fact_is_found_by_another_word_without_an_embedder_and_the_record_names_it(
    db: Database, facts: FactStore
) -> None:
    session = "Сеанс водителя в приложении живёт двенадцать часов."
    for text in (ON_CALL, session, *(f"Shelf {number} holds lamp {number}." for number in range(40))):
        facts.add(new(text))
    for question, word in (("Who carries the pager?", "pager"), ("Kto ma dyżur?", "dyzur"), ("дежурство", "дежурство")):
        record = run(recaller(db, facts).recall(question, threshold=0.1))
        assert texts(record.items)[:1] == [ON_CALL], question
        term = next(term for term in record.items[0].terms if term.name == "related")
        assert term.value > 0
        assert word in term.note
    assert texts(run(recaller(db, facts).recall("When am I logged out?")).items)[:1] == [session]
    assert not run(recaller(db, facts).recall("bananas from Ecuador")).items


def test_an_embedder_that_wants_more_words_gets_them_for_facts_and_for_questions_about_them(
    db: Database, facts: FactStore
) -> None:
    class Wide(Topics):
        widens = True
        heard: list[tuple[str, str]]

        async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
            self.heard = [*getattr(self, "heard", []), *((kind, text) for text in texts)]
            return await super().embed(texts, kind)

    facts.add(new(ON_CALL))
    embedder = Wide()
    asking = recaller(db, facts, embedder)
    run(asking.index_missing())
    run(asking.recall("Who carries the pager?"))
    assert [kind for kind, _ in embedder.heard] == ["document", "document", "query", "query"]
    assert [text.partition(" (")[0] for _, text in embedder.heard] == [ON_CALL] * 2 + ["Who carries the pager?"] * 2
    (_, matrix) = facts.vectors(embedder.identity)
    plain, more = run(embedder.embed([embedder.heard[0][1], embedder.heard[1][1]], "document"))
    assert np.allclose(matrix[0], (plain + more) / np.linalg.norm(plain + more), atol=1e-6)
    before = len(embedder.heard)
    run(asking.recall("Where is the sea?", stores=("cold",)))
    assert embedder.heard[before:] == [("query", "Where is the sea?")]
