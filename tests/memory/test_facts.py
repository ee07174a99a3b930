"""The fact store: schema, live view, chains, deletion, queues, quarantine, vectors, undo and the supersede cases."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from tui_agent.memory.database import Database
from tui_agent.memory.exchange import export_tier2, import_tier2
from tui_agent.memory.facts import FactStore, fact_key, subject_key
from tui_agent.memory.facts_schema import MIGRATIONS, PRUNE_EXPIRED, PRUNE_SUPERSEDED
from tui_agent.memory.text import format_utc, parse_utc
from tui_agent.memory.types import Fact, Kind, NewFact, Origin, Proposal, Scope

CASES = Path(__file__).parents[1] / "cases" / "supersede.jsonl"
START = "2026-05-02 10:00:00"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now: str = START) -> None:
        self.now = now

    def __call__(self) -> str:
        return self.now

    def forward(self, **how: float) -> None:
        self.now = format_utc(parse_utc(self.now) + timedelta(**how))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "memory.db") as opened:
        yield opened


@pytest.fixture
def store(db: Database, clock: Clock) -> FactStore:
    return FactStore(db, clock)


def new(fact: str, subject: str = "", **more: Any) -> NewFact:
    return NewFact(subject=subject, fact=fact, source=more.pop("source", "message 1"), **more)


def texts(facts: list[Fact]) -> list[str]:
    return [fact.fact for fact in facts]


def view(db: Database) -> list[str]:
    return [row["fact"] for row in db.rows("SELECT fact FROM live_memory ORDER BY rowid")]


def owned_bytes(db: Database) -> bytes:
    return b"".join(path.read_bytes() for path in db.files())


# --- schema ---------------------------------------------------------------------------------------


def test_the_first_columns_are_those_of_a_plain_sql_memory(store: FactStore, db: Database) -> None:
    columns = [tuple(row)[1:] for row in db.rows("PRAGMA table_info(memory)")][:8]
    now = "datetime('now')"
    assert columns == [
        ("id", "TEXT", 0, None, 1),
        ("subject", "TEXT", 1, None, 0),
        ("fact", "TEXT", 1, None, 0),
        ("source", "TEXT", 1, None, 0),
        ("created_at", "TEXT", 1, now, 0),
        ("confirmed_at", "TEXT", 1, now, 0),
        ("expires_at", "TEXT", 0, None, 0),
        ("superseded_by", "TEXT", 0, None, 0),
    ]
    key = db.row("PRAGMA foreign_key_list(memory)")
    assert key is not None
    assert (key["table"], key["from"], key["to"], key["on_delete"]) == ("memory", "superseded_by", "id", "CASCADE")
    assert {"memory_expires", "memory_superseded"} <= {row["name"] for row in db.rows("PRAGMA index_list(memory)")}
    assert [row["name"] for row in db.rows("PRAGMA table_info(live_memory)")] == [
        "id",
        "subject",
        "fact",
        "source",
        "confirmed_at",
        "expires_at",
    ]


def test_rows_written_with_plain_sql_are_facts_like_others(store: FactStore, db: Database, clock: Clock) -> None:
    db.execute(
        "INSERT INTO memory (id, subject, fact, source, expires_at) VALUES ('m_0191', 'Availability', "
        "'Away from keyboard, replies are delayed', 'chat 2026-08-08', datetime('now', '+7 days'))"
    )
    fact = store.get("m_0191")
    assert fact is not None
    assert (fact.created_at, fact.confirmed_at, fact.expires_at) == (START, START, "2026-05-09 10:00:00")
    assert (fact.kind, fact.importance, fact.scope, fact.pinned) == (Kind.FACT, 5, Scope.PROJECT, False)
    found = store.by_text("away from keyboard, replies are delayed.")
    assert found == fact
    assert texts(store.by_subject("availability")) == [fact.fact]
    newer = store.record(new("Back again", "availability"))
    assert [each.id for each in newer.superseded] == ["m_0191"]


def test_text_edited_with_sql_loses_what_was_derived_from_the_old_text(store: FactStore, db: Database) -> None:
    fact = store.add(new("The port is 8443", "port"))
    store.put_vectors("e", {fact.id: [1.0, 0.0]})
    db.execute("UPDATE memory SET fact = 'The host is kiwi', subject = 'host' WHERE id = ?", (fact.id,))
    assert store.by_text("the port is 8443") is None
    assert store.by_subject("port") == []
    assert texts(store.by_subject("host")) == ["The host is kiwi"]
    assert [each.id for each in store.missing_vectors("e")] == [fact.id]


def test_a_store_of_an_older_schema_can_be_opened_again(db: Database, clock: Clock) -> None:
    FactStore(db, clock).add(new("kept"))
    assert texts(FactStore(db, clock).live()) == ["kept"]
    assert db.value("SELECT count(*) FROM migrations WHERE room = 'facts'") == len(MIGRATIONS)


# --- adding ---------------------------------------------------------------------------------------


def test_a_fact_keeps_everything_it_came_with(store: FactStore) -> None:
    given = NewFact(
        subject="Package Manager",
        fact="  Prefers pnpm  ",
        source="message 12",
        kind=Kind.PREFERENCE,
        importance=8,
        source_kind=Origin.USER,
        quote="I prefer pnpm",
        message_id="m12",
        scope=Scope.USER,
        created_at="2026-01-01 00:00:00",
        confirmed_at="2026-02-01T12:00:00Z",
        expires_at="2027-01-01",
        target="knowledge/user.md",
        target_line="- Prefers pnpm",
    )
    fact = store.add(given)
    assert store.get(fact.id) == fact
    assert (fact.subject, fact.fact, fact.source, fact.kind, fact.importance) == (
        "Package Manager",
        "Prefers pnpm",
        "message 12",
        Kind.PREFERENCE,
        8,
    )
    assert (fact.quote, fact.message_id, fact.scope, fact.target, fact.target_line) == (
        "I prefer pnpm",
        "m12",
        Scope.USER,
        "knowledge/user.md",
        "- Prefers pnpm",
    )
    assert (fact.created_at, fact.confirmed_at, fact.expires_at) == (
        "2026-01-01 00:00:00",
        "2026-02-01 12:00:00",
        "2027-01-01 00:00:00",
    )
    assert (fact.subject_key, fact.superseded_by, fact.last_used_at, fact.pinned) == (
        "package manager",
        None,
        None,
        False,
    )


def test_there_is_no_row_without_a_source_a_text_or_a_real_time(store: FactStore, db: Database) -> None:
    with pytest.raises(ValueError, match="needs a source"):
        store.add(new("something", source="  "))
    with pytest.raises(ValueError, match="needs a text"):
        store.add(new("  "))
    with pytest.raises(ValueError, match="Invalid isoformat"):
        store.add(new("something", expires_at="next week"))
    with pytest.raises(sqlite3.IntegrityError):
        db.execute("INSERT INTO memory(id, subject, fact) VALUES ('a', 'b', 'c')")
    assert store.stats()["memory"] == 0
    assert store.changes() == []


def test_importance_is_clamped(store: FactStore) -> None:
    assert [store.add(new(str(given), importance=given)).importance for given in (-3, 0, 1, 10, 99)] == [
        1,
        1,
        1,
        10,
        10,
    ]


def test_facts_made_in_one_instant_have_different_ids(store: FactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_790_000_000_000_000_000)
    made = [store.add(new("the same words")).id for _ in range(50)]
    assert made == sorted(set(made))
    assert store.stats()["memory"] == 50


def test_times_are_utc_text(store: FactStore, db: Database) -> None:
    fact = FactStore(db).add(new("by the real clock"))
    for moment in (fact.created_at, fact.confirmed_at):
        assert format_utc(parse_utc(moment)) == moment


# --- the live view --------------------------------------------------------------------------------


def test_a_fact_is_dead_at_the_very_second_it_expires_without_any_prune(
    store: FactStore, db: Database, clock: Clock
) -> None:
    fact = store.add(new("Away this week", "availability", expires_at="2026-05-09 10:00:00"))
    store.put_vectors("e", {fact.id: [1.0]})
    clock.now = "2026-05-09 09:59:59"
    assert store.is_live(fact.id)
    assert store.prune().total == 0
    clock.now = "2026-05-09 10:00:00"
    assert not store.is_live(fact.id)
    assert view(db) == []
    assert store.live() == []
    assert store.by_text("away this week") is None
    assert store.by_subject("availability") == []
    assert store.similar("Away this week") == []
    assert store.vectors("e")[0] == []
    assert store.get(fact.id) is not None
    assert store.stats()["expired"] == 1
    assert [each.id for each in store.prune().expired] == [fact.id]
    assert store.get(fact.id) is None


def test_the_view_goes_by_the_real_clock_when_no_other_is_given(db: Database) -> None:
    store = FactStore(db)
    store.add(new("over", expires_at="2020-01-01 00:00:00"))
    store.add(new("holds", expires_at="2999-01-01 00:00:00"))
    assert texts(store.live()) == ["holds"]


def test_live_facts_can_be_narrowed_to_a_scope(store: FactStore) -> None:
    store.add(new("of the project"))
    store.add(new("of the user", scope=Scope.USER))
    assert texts(store.live()) == ["of the project", "of the user"]
    assert texts(store.live(Scope.PROJECT)) == ["of the project", "of the user"]
    assert texts(store.live(Scope.PROJECT, include_user=False)) == ["of the project"]
    assert texts(store.live(Scope.USER)) == ["of the user"]
    assert texts(store.live(include_user=False)) == ["of the project"]


def test_the_same_subject_in_two_scopes_is_two_subjects(store: FactStore) -> None:
    store.record(new("Answers in Polish", "language"))
    store.record(new("Answers in English", "language", scope=Scope.USER))
    assert len(store.live()) == 2
    assert texts(store.by_subject("language", Scope.USER)) == ["Answers in English"]
    assert store.by_text("answers in english", Scope.PROJECT) is None


# --- supersede ------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["Line_Length", "line-length", " LINE  length ", "line\u2013length"])
def test_subjects_are_one_whatever_their_spelling(other: str) -> None:
    assert subject_key(other) == subject_key("line length")


def test_statements_without_a_subject_never_replace_each_other(store: FactStore) -> None:
    first, second = store.record(new("one")), store.record(new("two"))
    again = store.record(new("ONE."))
    assert (first.superseded, second.superseded, again.touched) == ((), (), True)
    assert texts(store.live()) == ["one", "two"]
    assert store.by_subject(" - ") == []
    assert fact_key("?!") == "?!"


def test_a_correction_hides_the_old_row_and_keeps_it_in_the_chain(store: FactStore, db: Database, clock: Clock) -> None:
    old = store.add(new("Uses npm", "packages"))
    clock.forward(days=1)
    newer = store.supersede(old.id, new("Uses pnpm", "packages"))
    assert texts(store.live()) == ["Uses pnpm"]
    hidden = store.get(old.id)
    assert hidden is not None
    assert (hidden.superseded_by, hidden.superseded_at) == (newer.id, "2026-05-03 10:00:00")
    assert texts(store.chain(old.id)) == texts(store.chain(newer.id)) == ["Uses pnpm", "Uses npm"]
    assert store.chain("nothing") == []
    assert db.foreign_key_check() == []


def test_correcting_a_row_that_another_window_has_corrected_replaces_the_newest(store: FactStore) -> None:
    first = store.add(new("one", "n"))
    store.supersede(first.id, new("two", "n"))
    store.supersede(first.id, new("three", "n"))
    assert texts(store.chain(first.id)) == ["three", "two", "one"]
    with pytest.raises(LookupError, match="no fact nothing"):
        store.supersede("nothing", new("x"))


def test_an_exact_repeat_touches_and_another_wording_replaces(store: FactStore, clock: Clock) -> None:
    first = store.record(new("Answers should be short.", "answers"))
    clock.forward(days=2)
    again = store.record(new("answers  should be SHORT", "Answers"))
    assert again.touched
    assert again.fact.id == first.fact.id
    assert again.fact.confirmed_at == "2026-05-04 10:00:00"
    assert not store.record(new("Answers may be long", "answers")).touched
    assert len(store.chain(first.fact.id)) == 2


def test_deleting_the_newer_row_with_sql_takes_the_older_one_along_and_leaves_no_pointer(
    store: FactStore, db: Database
) -> None:
    old = store.add(new("Uses npm", "packages"))
    newer = store.supersede(old.id, new("Uses pnpm", "packages"))
    db.execute("DELETE FROM memory WHERE id = ?", (newer.id,))
    assert store.get(old.id) is None
    assert db.foreign_key_check() == []


# --- life -----------------------------------------------------------------------------------------


def test_confirming_pinning_and_using_change_only_their_column(store: FactStore, clock: Clock) -> None:
    fact = store.add(new("Indent with tabs"))
    clock.forward(days=10)
    assert store.confirm(fact.id).confirmed_at == "2026-05-12 10:00:00"
    assert store.pin(fact.id).pinned
    store.used([fact.id, "nothing"])
    clock.forward(days=1)
    store.touch([fact.id, "nothing"])
    assert not store.unpin(fact.id).pinned
    moved = store.set_target(fact.id, "AGENTS.md#User Preferences", "- Indent with tabs")
    assert (moved.created_at, moved.confirmed_at, moved.last_used_at) == (
        START,
        "2026-05-13 10:00:00",
        "2026-05-12 10:00:00",
    )
    assert (moved.target, moved.target_line) == ("AGENTS.md#User Preferences", "- Indent with tabs")
    assert [change.event for change in store.changes(fact.id)] == ["unpin", "touch", "pin", "confirm", "add"]


def test_an_end_can_be_set_now_later_and_taken_off(store: FactStore, clock: Clock) -> None:
    fact = store.add(new("Mirror is up"))
    assert store.expire(fact.id, "2026-06-01").expires_at == "2026-06-01 00:00:00"
    assert store.is_live(fact.id)
    assert store.set_expiry(fact.id, None).expires_at is None
    store.expire(fact.id)
    assert not store.is_live(fact.id)
    with pytest.raises(ValueError, match="has expired"):
        store.confirm(fact.id)


def test_a_replaced_row_cannot_be_confirmed_or_pinned(store: FactStore) -> None:
    old = store.add(new("one", "n"))
    store.supersede(old.id, new("two", "n"))
    for change in (store.confirm, store.pin, store.expire):
        with pytest.raises(ValueError, match="replaced by a newer one"):
            change(old.id)
    with pytest.raises(LookupError):
        store.confirm("nothing")


# --- undo -----------------------------------------------------------------------------------------


def test_undoing_a_correction_brings_the_predecessor_back_and_does_not_cascade(store: FactStore, db: Database) -> None:
    old = store.add(new("Port is 8443", "port"))
    wrong = store.supersede(old.id, new("Port is 9443", "port"))
    back = store.undo_correction(wrong.id)
    assert back == old
    assert store.get(wrong.id) is None
    assert texts(store.live()) == ["Port is 8443"]
    assert all("9443" not in change.old + change.new for change in store.changes())
    with pytest.raises(ValueError, match="corrected nothing"):
        store.undo_correction(old.id)
    assert db.foreign_key_check() == []


def test_undoing_a_correction_inside_a_chain_closes_the_gap(store: FactStore) -> None:
    one = store.add(new("1", "n"))
    two = store.supersede(one.id, new("2", "n"))
    three = store.supersede(two.id, new("3", "n"))
    middle = store.undo_correction(two.id)
    assert (middle.id, middle.superseded_by) == (one.id, three.id)
    assert texts(store.chain(one.id)) == ["3", "1"]
    assert texts(store.live()) == ["3"]


def test_undo_takes_back_the_last_action_step_by_step(store: FactStore, clock: Clock) -> None:
    fact = store.add(new("Uses npm", "packages"))
    store.pin(fact.id)
    clock.forward(days=1)
    store.confirm(fact.id)
    store.set_expiry(fact.id, "2026-12-01")
    newer = store.supersede(fact.id, new("Uses pnpm", "packages"))
    store.expire(newer.id, "2026-05-20")

    undone = [store.undo_last() for _ in range(6)]
    assert [each and each.event for each in undone] == ["expire", "supersede", "expiry", "confirm", "pin", "add"]
    assert undone[1] is not None
    assert undone[1].description == "Took back the correction “Uses pnpm”; “Uses npm” holds again."
    assert undone[1].removed is not None
    assert [each.fact for each in undone[1].restored] == ["Uses npm"]
    assert undone[3] is not None
    assert undone[3].restored[0].confirmed_at == START
    assert undone[5] is not None
    assert undone[5].removed is not None
    assert store.undo_last() is None
    assert store.stats()["memory"] == 0


def test_undo_passes_over_what_can_no_longer_be_taken_back(store: FactStore) -> None:
    kept = store.add(new("kept"))
    gone = store.add(new("gone", "g"))
    store.pin(gone.id)
    store.delete_chain(gone.id)
    undone = store.undo_last()
    assert undone is not None
    assert undone.removed is not None
    assert undone.removed.id == kept.id
    assert store.live() == []


def test_one_change_of_the_log_can_be_taken_back_by_its_number(store: FactStore) -> None:
    first, second = store.add(new("first")), store.add(new("second"))
    number = next(change.id for change in store.changes(first.id))
    undone = store.undo(number)
    assert undone is not None
    assert texts(store.live()) == ["second"]
    assert store.undo(number) is None
    assert store.undo(10_000) is None
    assert store.get(second.id) is not None


def test_undoing_several_rivals_at_once_restores_them_all(store: FactStore) -> None:
    store.add(new("one", "n"))
    store.add(new("two", "n"))
    merged = store.record(new("both", "n"))
    assert {fact.fact for fact in merged.superseded} == {"one", "two"}
    assert texts(store.live()) == ["both"]
    undone = store.undo_last()
    assert undone is not None
    assert {fact.fact for fact in undone.restored} == {"one", "two"}
    assert set(texts(store.live())) == {"one", "two"}


# --- deletion -------------------------------------------------------------------------------------


def test_deleting_forever_takes_the_chain_its_log_texts_vectors_and_bytes(store: FactStore, db: Database) -> None:
    old = store.add(new("Sponsor is Birch Bank", "sponsor", quote="our sponsor is Birch Bank, ok?"))
    newer = store.supersede(old.id, new("Sponsor is Cedar Bank", "sponsor", target_line="- Cedar"))
    kept = store.add(new("Team is Otter", "team"))
    store.put_vectors("e", {old.id: [1.0], newer.id: [2.0], kept.id: [3.0]})
    store.quarantine(proposal("sponsor is CEDAR bank"), "from a file")
    removed = store.delete_chain(newer.id)
    assert texts(removed) == ["Sponsor is Cedar Bank", "Sponsor is Birch Bank"]
    assert texts(store.live()) == ["Team is Otter"]
    assert store.quarantined() == []
    assert store.stats()["vectors"] == 1
    db.vacuum()
    data = owned_bytes(db).lower()
    assert b"birch" not in data
    assert b"cedar" not in data
    assert b"otter" in data
    log = store.changes(newer.id)
    assert {change.event for change in log} == {"delete", "supersede"}
    assert all(change.is_deleted and not change.new for change in log)
    assert db.foreign_key_check() == []


def test_deleting_an_old_row_leaves_its_correction(store: FactStore, db: Database) -> None:
    old = store.add(new("Studio Klon", "design"))
    newer = store.supersede(old.id, new("Studio Jesion", "design"))
    assert texts(store.delete_chain(old.id)) == ["Studio Klon"]
    assert texts(store.live()) == ["Studio Jesion"]
    db.vacuum()
    assert b"Klon" not in owned_bytes(db)
    assert [(change.event, change.old, change.new) for change in store.changes(newer.id)] == [
        ("supersede", "", "Studio Jesion")
    ]


def test_deleting_reaches_texts_of_rows_that_prune_has_removed(store: FactStore, db: Database, clock: Clock) -> None:
    old = store.add(new("Lives in Tczew", "town"))
    newer = store.supersede(old.id, new("Lives in Gdynia", "town"))
    brief = store.add(new("In Sopot this week", expires_at="2026-05-05"))
    clock.forward(days=181)
    assert store.prune().total == 2
    assert b"Tczew" in owned_bytes(db)
    store.delete_chain(newer.id)
    assert store.delete_chain(brief.id) == []
    db.vacuum()
    assert not any(word in owned_bytes(db) for word in (b"Tczew", b"Gdynia", b"Sopot"))
    assert store.is_tombstoned("lives in tczew")
    with pytest.raises(LookupError):
        store.delete_chain("nothing")
    with pytest.raises(LookupError):
        store.delete_chain(newer.id)


def test_a_row_whose_correction_was_undone_is_not_deleted_with_the_correction(store: FactStore) -> None:
    old = store.add(new("a", "n"))
    wrong = store.supersede(old.id, new("b", "n"))
    store.undo_correction(wrong.id)
    with pytest.raises(LookupError):
        store.delete_chain(wrong.id)
    assert texts(store.live()) == ["a"]


def test_a_deleted_statement_is_known_again_in_other_forms_but_its_text_is_nowhere(
    store: FactStore, db: Database
) -> None:
    fact = store.add(new("Mój lekarz przyjmuje przy ulicy Wiązowej.", quote="lekarz: Wiązowa 7"))
    store.delete_chain(fact.id)
    assert store.is_tombstoned("moj lekarz przyjmuje przy ulicy wiazowej")
    assert store.is_tombstoned("Przy ulicy Wiązowej przyjmuje mój lekarz!")
    assert store.is_tombstoned("lekarz: Wiązowa 7")
    assert not store.is_tombstoned("Mój lekarz nie przyjmuje przy ulicy Wiązowej.")
    assert not store.is_tombstoned("Mój dentysta przyjmuje przy ulicy Wiązowej.")
    assert {len(row["digest"]) for row in db.rows("SELECT digest FROM tombstones")} == {32}


def test_tombstones_of_two_stores_differ_and_survive_a_restart(tmp_path: Path) -> None:
    digests = []
    for name in ("a.db", "b.db"):
        with Database(tmp_path / name) as db:
            store = FactStore(db)
            store.delete_chain(store.add(new("the same words")).id)
        with Database(tmp_path / name) as db:
            assert FactStore(db).is_tombstoned("The same words.")
            digests.append({row["digest"] for row in db.rows("SELECT digest FROM tombstones")})
    assert not digests[0] & digests[1]


def test_saying_it_again_lifts_the_tombstone(store: FactStore) -> None:
    store.delete_chain(store.add(new("Rides a bike to work")).id)
    assert store.is_tombstoned("Rides a bike to work")
    store.add(new("Rides a bike to work"))
    assert not store.is_tombstoned("Rides a bike to work")


# --- prune ----------------------------------------------------------------------------------------


def test_prune_is_the_plain_clean_up_script() -> None:
    assert " ".join(PRUNE_EXPIRED.split()) == (
        "DELETE FROM memory WHERE expires_at IS NOT NULL AND expires_at <= datetime('now')"
    )
    assert " ".join(PRUNE_SUPERSEDED.split()) == (
        "DELETE FROM memory WHERE superseded_by IS NOT NULL AND created_at < datetime('now', '-180 days')"
    )


def test_prune_removes_expired_and_long_superseded_rows_and_keeps_their_history(
    store: FactStore, db: Database, clock: Clock
) -> None:
    old = store.add(new("Uses npm", "packages"))
    clock.forward(days=179)
    newer = store.supersede(old.id, new("Uses pnpm", "packages", expires_at="2027-06-01"))
    brief = store.add(new("Away", expires_at="2026-11-01"))
    first = store.prune()
    assert first.total == 0
    clock.now = "2026-11-01 00:00:00"
    second = store.prune()
    assert (second.expired, second.cascaded, second.total) == ((brief,), (), 2)
    assert texts([*second.superseded]) == ["Uses npm"]
    assert texts(store.live()) == ["Uses pnpm"]
    assert "Uses npm" in {change.old for change in store.changes(newer.id)}
    assert {change.event for change in store.changes(old.id)} == {"add", "supersede", "prune"}
    assert store.prune().total == 0
    assert db.foreign_key_check() == []


def test_an_expired_correction_takes_what_it_replaced_along(store: FactStore, clock: Clock) -> None:
    old = store.add(new("Standard port", "port"))
    brief = store.supersede(old.id, new("Other port this week", "port", expires_at="2026-05-09"))
    clock.now = "2026-05-09 00:00:00"
    pruned = store.prune()
    assert [fact.id for fact in pruned.expired] == [brief.id]
    assert [fact.id for fact in pruned.cascaded] == [old.id]
    assert store.stats()["memory"] == 0


def test_a_fact_replaced_yesterday_can_be_kept_for_its_180_days(store: FactStore, clock: Clock) -> None:
    old = store.add(new("old", "n"))
    clock.forward(days=200)
    store.supersede(old.id, new("new", "n"))
    clock.forward(days=1)
    assert store.prune(by_supersede_date=True).total == 0
    clock.forward(days=180)
    assert [fact.id for fact in store.prune(by_supersede_date=True).superseded] == [old.id]


def test_log_lines_of_rows_that_are_gone_end_after_their_own_time(store: FactStore, clock: Clock) -> None:
    brief = store.add(new("brief", expires_at="2026-05-03"))
    kept = store.add(new("kept"))
    clock.forward(days=2)
    store.prune()
    clock.forward(days=800)
    assert store.prune(changes_days=900).changes == 0
    assert store.prune().changes == 2
    assert store.changes(brief.id) == []
    assert [change.event for change in store.changes(kept.id)] == ["add"]


# --- queues ---------------------------------------------------------------------------------------


def test_the_review_queue_is_the_oldest_confirmations_and_among_equals_the_last_used(
    store: FactStore, clock: Clock
) -> None:
    oldest = store.add(new("oldest", confirmed_at="2026-01-01"))
    never, once, often = (store.add(new(name, confirmed_at="2026-01-15")) for name in ("never", "once", "often"))
    store.add(new("exactly 90 days", confirmed_at="2026-02-01 10:00:00"))
    store.add(new("fresh"))
    store.add(new("expired", confirmed_at="2025-01-01", expires_at="2026-01-01"))
    store.used([once.id])
    clock.forward(minutes=5)
    store.used([often.id])
    clock.now = START
    assert [fact.id for fact in store.review()] == [oldest.id, often.id, once.id, never.id]
    clock.forward(seconds=1)
    assert texts(store.review())[-1] == "exactly 90 days"
    store.confirm(oldest.id)
    assert oldest.id not in {fact.id for fact in store.review()}
    assert len(store.review(limit=2)) == 2
    for number in range(30):
        store.add(new(str(number), confirmed_at="2026-01-01"))
    assert len(store.review()) == 20


def test_facts_unused_for_half_a_year_are_proposed_unless_they_are_pinned(store: FactStore, clock: Clock) -> None:
    unused, used, pinned = (store.add(new(name)) for name in ("unused", "used", "pinned"))
    store.pin(pinned.id)
    clock.forward(days=100)
    store.used([used.id])
    store.add(new("younger"))
    clock.forward(days=83)
    assert store.unused() == []
    clock.forward(seconds=1)
    assert [fact.id for fact in store.unused()] == [unused.id]


def test_the_daily_list_holds_every_row_of_the_last_day(store: FactStore, clock: Clock) -> None:
    store.add(new("before", created_at="2026-05-01 10:00:00"))
    one = store.add(new("within", "n", created_at="2026-05-01 10:00:01"))
    store.supersede(one.id, new("newest", "n"))
    assert texts(store.new_since()) == ["newest", "within"]
    assert len(store.new_since(days=1.5)) == 3


def test_near_duplicates_are_found_in_live_facts_only(store: FactStore) -> None:
    near = store.add(new("We deploy on Tuesdays in the morning"))
    store.add(new("The cat is called Filemon"))
    old = store.add(new("Deploy on Tuesdays in the morning we do", "x"))
    store.supersede(old.id, new("Something else", "x"))
    found = store.similar("we deploy on tuesday in the MORNING")
    assert [fact.id for fact, _ in found] == [near.id]
    assert 85 <= found[0][1] <= 100
    assert store.similar("we deploy on tuesday in the morning", threshold=100) == []


def test_user_notes_are_capped_and_say_so(store: FactStore, clock: Clock) -> None:
    store.add(new("a project fact"))
    for number in range(3):
        clock.forward(minutes=1)
        store.add(new(f"note {number}", target="knowledge/user.md"))
    store.add(new("a preference", target="AGENTS.md#User Preferences"))
    pinned = store.add(new("my name", scope=Scope.USER, confirmed_at="2020-01-01"))
    store.pin(pinned.id)
    notes = store.live_user_notes(cap=3)
    assert notes.facts[0].fact == "my name"
    assert (len(notes.facts), notes.total, notes.cap, notes.full) == (3, 5, 3, True)
    assert not store.live_user_notes().full


def test_counts_say_how_much_is_dead(store: FactStore) -> None:
    old = store.add(new("one", "n"))
    live = store.supersede(old.id, new("two", "n"))
    store.add(new("over", expires_at="2020-01-01"))
    store.pin(live.id)
    store.quarantine(proposal("x"), "why")
    stats = store.stats()
    assert (stats["memory"], stats["live_memory"], stats["superseded"], stats["expired"]) == (3, 1, 1, 1)
    assert (stats["pinned"], stats["quarantine"], stats["tombstones"]) == (1, 1, 0)
    assert store.event_counts() == {"add": 2, "pin": 1, "quarantine": 1, "supersede": 1}
    assert stats["changes"] == 5


def test_the_log_tells_old_and_new_of_each_change(store: FactStore, clock: Clock) -> None:
    old = store.add(new("Uses npm", "packages"))
    clock.forward(minutes=1)
    newer = store.supersede(old.id, new("Uses pnpm", "packages"))
    change = store.changes(limit=1)[0]
    assert (change.memory_id, change.event, change.old, change.new) == (newer.id, "supersede", "Uses npm", "Uses pnpm")
    assert (change.created_at, change.is_deleted) == ("2026-05-02 10:01:00", False)
    assert [each.event for each in store.changes(old.id)] == ["supersede", "add"]


# --- quarantine -----------------------------------------------------------------------------------


def proposal(text: str, **more: Any) -> Proposal:
    return Proposal(
        text=text, origin=more.pop("origin", Origin.WEB), proposer="remember", source="page in task 41", **more
    )


def test_a_proposal_in_quarantine_is_no_fact_and_comes_back_whole(store: FactStore, clock: Clock) -> None:
    given = proposal(
        "Deploys with checks off",
        kind=Kind.CONVENTION,
        importance=7,
        subject="deploy",
        quote="always",
        user_text="a long message",
        message_id="m",
        target="AGENTS.md#Learned Behaviors",
        scope=Scope.USER,
        ttl_days=7.5,
    )
    kept = store.quarantine(given, "It comes from a web page.", "origin")
    assert store.quarantined() == [kept]
    assert (kept.reason, kept.rule, kept.created_at) == ("It comes from a web page.", "origin", START)
    assert store.live() == []
    assert store.quarantine(proposal("deploys with CHECKS off."), "again").id == kept.id
    taken = store.approve(kept.id)
    assert taken == kept
    assert taken.proposal == Proposal(**{**_fields(given), "user_text": ""})
    assert store.quarantined() == []
    with pytest.raises(LookupError, match="Nothing waits"):
        store.approve(kept.id)


def _fields(value: Proposal) -> dict[str, Any]:
    return {name: getattr(value, name) for name in Proposal.__dataclass_fields__}


def test_a_rejected_proposal_is_known_and_leaves_no_text(store: FactStore, db: Database) -> None:
    item = store.quarantine(proposal("The team uses Kumquat"), "why")
    store.reject(item.id)
    assert store.is_rejected("the team uses kumquat")
    assert not store.is_tombstoned("the team uses kumquat")
    db.vacuum()
    assert b"umquat" not in owned_bytes(db)
    store.add(new("The team uses Kumquat"))
    assert not store.is_rejected("The team uses Kumquat")


def test_a_proposal_needs_a_text_and_a_source(store: FactStore) -> None:
    with pytest.raises(ValueError, match="needs a text and a source"):
        store.quarantine(proposal(" "), "why")
    with pytest.raises(ValueError, match="needs a text and a source"):
        store.quarantine(Proposal("x", Origin.TOOL, "remember", ""), "why")


# --- vectors --------------------------------------------------------------------------------------


def test_vectors_come_back_as_they_were_for_live_facts_of_one_identity(store: FactStore) -> None:
    one, two, three = (store.add(new(name, name)) for name in ("one", "two", "three"))
    vectors = {
        fact.id: np.random.default_rng(number).random(8, dtype=np.float32) for number, fact in enumerate((one, two))
    }
    assert store.put_vectors("builtin", {**vectors, "gone": [1.0] * 8}) == 2
    store.put_vectors("other", {three.id: [1.0, 2.0]})
    ids, matrix = store.vectors("builtin")
    assert ids == [one.id, two.id]
    assert matrix.dtype == np.float32
    assert matrix.flags.writeable
    assert np.array_equal(matrix, np.stack([vectors[one.id], vectors[two.id]]))
    assert texts(store.missing_vectors("builtin")) == ["three"]
    store.supersede(one.id, new("newer", "one"))
    assert store.vectors("builtin")[0] == [two.id]
    assert texts(store.missing_vectors("builtin")) == ["three", "newer"]
    empty_ids, empty = store.vectors("nothing")
    assert (empty_ids, empty.shape) == ([], (0, 0))


def test_a_vector_can_be_replaced_dropped_and_must_be_finite(store: FactStore) -> None:
    fact = store.add(new("one"))
    store.put_vectors("e", {fact.id: [1.0, 2.0]})
    store.put_vectors("e", {fact.id: [3.0]})
    assert store.vectors("e")[1].tolist() == [[3.0]]
    with pytest.raises(ValueError, match="finite"):
        store.put_vectors("e", {fact.id: [float("nan")]})
    store.put_vectors("f", {fact.id: [1.0]})
    assert store.drop_vectors(keep=["f"]) == 1
    assert store.vectors("e")[0] == []
    assert store.drop_vectors() == 1


def test_the_revision_changes_with_the_facts_their_vectors_and_time(
    store: FactStore, db: Database, clock: Clock
) -> None:
    seen = [store.revision()]

    def changed() -> bool:
        seen.append(store.revision())
        return seen[-1] != seen[-2]

    first = store.add(new("one", "n", expires_at="2026-05-03"))
    assert changed()
    store.used([first.id])
    assert not changed()
    store.put_vectors("e", {first.id: [1.0]})
    assert changed()
    store.supersede(first.id, new("two", "n", expires_at="2026-06-01"))
    assert changed()
    clock.now = "2026-06-01 00:00:00"
    assert changed()
    db.execute("INSERT INTO memory(id, subject, fact, source) VALUES ('m', 's', 'f', 'by hand')")
    assert changed()


def test_ended_and_replaced_facts_can_be_listed_apart_from_live_ones(store: FactStore, clock: Clock) -> None:
    old = store.add(new("one", "n"))
    ended = store.supersede(old.id, new("two", "n", expires_at="2026-05-03"))
    store.add(new("three"))
    assert (store.expired(), texts(store.superseded())) == ([], ["one"])
    clock.now = "2026-05-03 00:00:00"
    assert [fact.id for fact in store.expired()] == [ended.id]
    assert texts(store.live()) == ["three"]


# --- exchange -------------------------------------------------------------------------------------


def test_the_plain_json_goes_out_and_comes_back_unchanged(store: FactStore, clock: Clock, tmp_path: Path) -> None:
    store.add(new("Manages National", kind=Kind.FACT))
    clock.forward(days=3)
    store.add(new("Zwięzłe odpowiedzi", kind=Kind.PREFERENCE))
    store.add(new("Repository pattern", kind=Kind.CONVENTION))
    store.add(new("hidden", expires_at="2020-01-01"))
    data = store.export_tier2("kacper")
    assert data == {
        "user_id": "kacper",
        "facts": [{"fact": "Manages National", "updated": "2026-05-02"}],
        "preferences": [{"pref": "Zwięzłe odpowiedzi", "updated": "2026-05-05"}],
        "decisions": [{"decision": "Repository pattern", "updated": "2026-05-05"}],
    }
    with Database(tmp_path / "other.db") as other:
        copy = FactStore(other, clock)
        for item in import_tier2(json.loads(json.dumps(data))):
            copy.add(item.new_fact("facts.json"))
        assert copy.export_tier2("kacper") == data
        assert copy.live()[0].source == "facts.json: facts[0]"
    assert export_tier2([], "x") == {"user_id": "x", "facts": [], "preferences": [], "decisions": []}


def test_an_imported_statement_is_a_proposal_with_its_place_as_source() -> None:
    item = import_tier2({"preferences": [{"pref": " pnpm "}]})[0]
    made = item.proposal("facts.json", Origin.USER)
    assert (made.text, made.kind, made.source, made.quote, made.user_text) == (
        "pnpm",
        Kind.PREFERENCE,
        "facts.json: preferences[0]",
        "pnpm",
        "pnpm",
    )
    assert item.proposal("x").origin is Origin.IMPORT


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "one JSON object"),
        ({"notes": []}, "“notes” is not known"),
        ({"facts": {}}, "“facts” must be a list"),
        ({"facts": ["x"]}, r"facts\[0\] must be an object"),
        ({"decisions": [{"decision": "ok"}, {"fact": "x"}]}, r"decisions\[1\] must be an object"),
        ({"facts": [{"fact": "  "}]}, r"facts\[0\] has no text"),
        ({"facts": [{"fact": "x", "updated": "may"}]}, r"facts\[0\] has “updated”: 'may'"),
        ({"facts": [{"fact": "x", "updated": "2026-13-01"}]}, "must be a day"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_place(data: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        import_tier2(data)


# --- the supersede cases --------------------------------------------------------------------------


def _cases() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def _same(stem: str, text: str) -> bool:
    plain: Callable[[str], str] = lambda value: value.casefold().replace("ё", "е")  # noqa: E731
    return plain(stem) in plain(text)


@pytest.mark.parametrize("between", ["nothing", "restart", "prune", "restart and prune"])
@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["id"])
def test_the_newest_statement_wins_and_history_stays(case: dict[str, Any], between: str, tmp_path: Path) -> None:
    clock = Clock()
    path = ":memory:" if "restart" not in between and "gone" not in case else tmp_path / "memory.db"
    db = Database(path)
    store = FactStore(db, clock)
    refs: dict[str, str] = {}
    for step in case["steps"]:
        clock.forward(seconds=1)
        if "say" in step:
            if step.get("origin") == "old_transcript" and store.is_tombstoned(step["say"]):
                continue
            ttl = step.get("ttl_days")
            expires = ttl and format_utc(parse_utc(clock.now) + timedelta(days=ttl))
            refs[step["ref"]] = store.record(new(step["say"], step["subject"], expires_at=expires)).fact.id
        elif "confirm" in step:
            store.confirm(refs[step["confirm"]])
        elif "expire" in step:
            fact = store.get(refs[step["expire"]])
            assert fact is not None
            assert fact.expires_at is not None
            clock.now = fact.expires_at
        elif "undo" in step:
            store.undo_correction(refs[step["undo"]])
        else:
            store.delete_chain(refs[step["delete"]])
        if "restart" in between:
            db.close()
            db = Database(path)
            store = FactStore(db, clock)
        if "prune" in between:
            store.prune()
    live = texts(store.live())
    known = [row["fact"] for row in db.rows("SELECT fact FROM memory")]
    assert len(live) == case["live_count"]
    assert sorted(live) == sorted(view(db))
    assert all(any(_same(stem, text) for text in live) for stem in case["live"])
    assert not any(_same(stem, text) for stem in case["hidden"] for text in live)
    assert all(any(_same(stem, text) for text in known) for stem in case["history"])
    if "gone" in case:
        db.vacuum()
        data = owned_bytes(db).decode("utf-8", "replace")
        assert not any(_same(stem, data) for stem in case["gone"])
    assert db.foreign_key_check() == []
    assert db.integrity_check() == []
    db.close()


# --- any order of actions -------------------------------------------------------------------------

_SUBJECTS = st.sampled_from(["", "port", "Line_Length", "line length"])
_TEXTS = st.sampled_from(["one", "two", "Three.", "żółw"])
_DAYS = st.sampled_from([None, 1, 30, 400])


class Facts(RuleBasedStateMachine):
    """Any order of actions against a plain model: id → (text, replaced by, expires, created)."""

    ids: Bundle[str] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.db = Database(":memory:")
        self.store = FactStore(self.db, self.clock)
        self.model: dict[str, dict[str, Any]] = {}

    def teardown(self) -> None:
        self.db.close()

    def _new(self, text: str, subject: str, days: int | None) -> NewFact:
        expires = days and format_utc(parse_utc(self.clock.now) + timedelta(days=days))
        return new(text, subject, expires_at=expires)

    def _add(self, fact: Fact) -> None:
        self.model[fact.id] = {"by": None, "expires": fact.expires_at, "created": fact.created_at}

    def _live(self, fact_id: str) -> bool:
        row = self.model.get(fact_id)
        return row is not None and not row["by"] and (row["expires"] is None or row["expires"] > self.clock.now)

    def _drop(self, fact_id: str) -> None:
        for each in [each for each, row in self.model.items() if row["by"] == fact_id]:
            self._drop(each)
        self.model.pop(fact_id, None)

    @rule(hours=st.sampled_from([1, 25, 24 * 91, 24 * 181]))
    def time_passes(self, hours: int) -> None:
        self.clock.forward(hours=hours)

    @rule(target=ids, text=_TEXTS, subject=_SUBJECTS, days=_DAYS)
    def state(self, text: str, subject: str, days: int | None) -> Any:
        done = self.store.record(self._new(text, subject, days))
        if done.touched:
            assert self._live(done.fact.id)
            return multiple()
        self._add(done.fact)
        for old in done.superseded:
            assert self._live(old.id)
            self.model[old.id]["by"] = done.fact.id
        return done.fact.id

    @rule(target=ids, old=ids, text=_TEXTS, days=_DAYS)
    def correct(self, old: str, text: str, days: int | None) -> Any:
        if old not in self.model:
            return multiple()
        fact = self.store.supersede(old, self._new(text, "", days))
        self._add(fact)
        while self.model[old]["by"]:
            old = self.model[old]["by"]
        self.model[old]["by"] = fact.id
        return fact.id

    @rule(fact_id=ids, how=st.sampled_from(["confirm", "pin", "unpin", "expire"]))
    def change(self, fact_id: str, how: str) -> None:
        if self._live(fact_id):
            getattr(self.store, how)(fact_id)
            if how == "expire":
                self.model[fact_id]["expires"] = self.clock.now
        else:
            with pytest.raises((LookupError, ValueError)):
                getattr(self.store, how)(fact_id)

    @rule(fact_id=ids)
    def undo_correction(self, fact_id: str) -> None:
        before = [each for each, row in self.model.items() if row["by"] == fact_id]
        if not before:
            with pytest.raises((LookupError, ValueError)):
                self.store.undo_correction(fact_id)
            return
        self.store.undo_correction(fact_id)
        for each in before:
            self.model[each]["by"] = self.model[fact_id]["by"]
        del self.model[fact_id]

    @rule()
    def undo_last(self) -> None:
        undone = self.store.undo_last()
        if undone is None:
            return
        if undone.removed is not None:
            for row in self.model.values():
                if row["by"] == undone.removed.id:
                    row["by"] = None
            del self.model[undone.removed.id]
        for fact in undone.restored:
            self.model[fact.id]["expires"] = fact.expires_at

    @rule(fact_id=consumes(ids))
    def delete(self, fact_id: str) -> None:
        if fact_id in self.model:
            self.store.delete_chain(fact_id)
            self._drop(fact_id)

    @rule()
    def prune(self) -> None:
        before = set(self.model)
        for each, row in list(self.model.items()):
            if row["expires"] is not None and row["expires"] <= self.clock.now:
                self._drop(each)
        edge = format_utc(parse_utc(self.clock.now) - timedelta(days=180))
        for each, row in list(self.model.items()):
            if row["by"] and row["created"] < edge:
                self._drop(each)
        assert self.store.prune().total == len(before - set(self.model))

    @invariant()
    def rows_are_those_of_the_model_and_no_chain_dangles(self) -> None:
        rows = self.db.rows("SELECT id, superseded_by, superseded_at, expires_at FROM memory")
        assert {row["id"]: (row["superseded_by"], row["expires_at"]) for row in rows} == {
            each: (row["by"], row["expires"]) for each, row in self.model.items()
        }
        assert all((row["superseded_by"] is None) == (row["superseded_at"] is None) for row in rows)
        assert self.db.foreign_key_check() == []
        for each in self.model:
            chain = [fact.id for fact in self.store.chain(each)]
            assert each in chain
            assert len(chain) == len(set(chain))
            assert self.model[chain[0]]["by"] is None

    @invariant()
    def the_view_shows_exactly_what_lives(self) -> None:
        alive = {each for each in self.model if self._live(each)}
        assert {row["id"] for row in self.db.rows("SELECT id FROM live_memory")} == alive
        assert {fact.id for fact in self.store.live()} == alive


TestFactsInAnyOrder = Facts.TestCase
TestFactsInAnyOrder.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
