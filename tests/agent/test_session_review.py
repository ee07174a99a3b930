"""What a session offers to people who look after their memory, over real stores."""

from __future__ import annotations

import asyncio
import subprocess
from datetime import timedelta

import pytest

from tests.agent.conftest import Desk, Open, of
from tui_agent.agent.events import MemoryChanged, Notice, SaveMissing, TextDelta
from tui_agent.agent.fact_actions import end_of
from tui_agent.agent.telling import LISTED
from tui_agent.llm.wire.script import answer
from tui_agent.memory.text import format_utc, parse_utc, utc_now
from tui_agent.memory.types import Fact, Kind, NewFact, Origin, Proposal


def ago(days: float) -> str:
    return format_utc(parse_utc(utc_now()) - timedelta(days=days))


def add(desk: Desk, text: str, *, days: float = 0, subject: str = "", **more: object) -> Fact:
    new = NewFact(subject, text, "message m1", created_at=ago(days) if days else None, quote=text, **more)  # type: ignore[arg-type]
    return desk.session.stores.facts.add(new)


async def test_the_review_sorts_facts_into_its_parts_with_a_reason_each(desk: Desk) -> None:
    old = add(desk, "Migrations run through EF Core.", days=120, kind=Kind.DECISION)
    ancient = add(desk, "We deploy on Fridays.", days=200, kind=Kind.CONVENTION)
    new = add(desk, "The team has 8 people.")
    desk.session.stores.facts.quarantine(Proposal("Retries are 5", Origin.FILE, "import", "README.md"), "from a file")
    view = await desk.session.review()
    assert [item.ref for item in view.queue] == [f"fact:{ancient.id}", f"fact:{old.id}"]
    assert "not confirmed since" in view.queue[0].why
    assert [item.ref for item in view.unused] == [f"fact:{ancient.id}"]
    assert "never recalled since" in view.unused[0].why
    assert [item.ref for item in view.new] == [f"fact:{new.id}"]
    assert [item.ref for item in view.fetchable] == [f"fact:{new.id}"]
    assert view.fetchable[0].why.startswith("A count")
    assert len(view.waiting) == 1
    assert (view.queue_total, view.live, view.rows) == (2, 3, 3)
    assert view.due


async def test_looking_at_the_review_puts_the_next_notice_off_for_a_week(open_desk: Open) -> None:
    desk = await open_desk()
    add(desk, "Migrations run through EF Core.", days=120)
    await desk.session.look_after()
    notices = of(desk.heard, Notice)
    assert [notice.text for notice in notices] == ["1 fact was not confirmed for 90 days. /review shows them."]
    await desk.session.look_after()
    assert len(of(desk.heard, Notice)) == 1
    assert (await desk.session.review(seen=True)).reviewed_at
    assert not (await desk.session.review()).due


async def test_the_inspector_shows_the_chain_the_log_and_the_verbs_that_fit(desk: Desk) -> None:
    fact = add(desk, "We use npm.", subject="package manager")
    result = await desk.session.correct(f"fact:{fact.id}", "We use pnpm.")
    item = await desk.session.inspect(f"fact:{result.id}")
    assert "undo_correction" in item.actions
    assert len(item.history) == 2
    assert any("replaced: We use npm. → We use pnpm." in line for line in item.log)
    older = await desk.session.inspect(f"fact:{fact.id}")
    assert older.actions == ("delete_forever",)
    assert any(field.label == "state" and field.value.startswith("replaced") for field in older.fields)


async def test_undoing_a_correction_brings_back_what_it_replaced(desk: Desk) -> None:
    fact = add(desk, "We use npm.", subject="package manager")
    corrected = await desk.session.correct(f"fact:{fact.id}", "We use pnpm.")
    result = await desk.session.undo_correction(f"fact:{corrected.id}")
    assert result.ok
    assert result.id == fact.id
    assert [f.fact for f in desk.session.stores.facts.live()] == ["We use npm."]
    assert not (await desk.session.undo_correction(f"fact:{fact.id}")).ok


async def test_an_end_is_set_from_what_a_person_types_and_can_be_undone(desk: Desk) -> None:
    fact = add(desk, "We freeze the API this sprint.")
    ref = f"fact:{fact.id}"
    result = await desk.session.set_expiry(ref, "14 days")
    assert result.ok
    until = desk.session.stores.facts.get(fact.id)
    assert until is not None
    assert 13 <= (parse_utc(until.expires_at or "") - parse_utc(utc_now())).days <= 14
    assert (await desk.session.undo()).ok
    again = desk.session.stores.facts.get(fact.id)
    assert again is not None
    assert again.expires_at is None
    refused = await desk.session.set_expiry(ref, "soonish")
    assert not refused.ok
    assert "is no date" in refused.text


@pytest.mark.parametrize(
    ("words", "days"),
    [("7 days", 7), ("2 weeks", 14), ("3 months", 90), ("1 rok", 365), ("2 tygodnie", 14), ("5 дней", 5)],
)
def test_spans_of_time_are_read_in_three_languages(words: str, days: int) -> None:
    end = end_of(words)
    assert end is not None
    assert round((parse_utc(end) - parse_utc(utc_now())).total_seconds() / 86400) == days


def test_never_has_no_end_and_a_date_is_its_midnight() -> None:
    assert [end_of(word) for word in ("never", "nigdy", "никогда")] == [None] * 3
    assert end_of("2027-01-31") == "2027-01-31 00:00:00"


async def test_promoting_is_announced_undone_and_listed_as_for_all_projects(desk: Desk) -> None:
    fact = add(desk, "Prefers short answers", kind=Kind.PREFERENCE)
    ref = f"fact:{fact.id}"
    assert (await desk.session.promote(ref)).ok
    assert [e.what for e in of(desk.heard, MemoryChanged)] == ["promoted"]
    assert desk.paths.user_notes_path.read_text("utf-8") == "- Prefers short answers\n"
    item = await desk.session.inspect(ref)
    assert "demote" in item.actions
    assert any(field.value == "all projects" for field in item.fields)
    assert not (await desk.session.promote(ref)).ok
    assert (await desk.session.undo()).ok
    assert desk.paths.user_notes_path.read_text("utf-8").strip() == ""


async def test_lines_by_hand_are_remembered_corrected_and_deleted_like_facts(desk: Desk) -> None:
    notes = desk.paths.user_notes_path
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text("Name: Maja\nWorks on routing\n", "utf-8")
    items = [item for item in await desk.session.remembered() if item.ref.startswith("note:")]
    assert [item.text for item in items] == ["Name: Maja", "Works on routing"]
    assert (await desk.session.inspect(items[0].ref)).text == "Name: Maja"
    assert (await desk.session.correct(items[0].ref, "Name: Maja Nowak")).ok
    assert (await desk.session.delete_forever(items[1].ref)).ok
    assert notes.read_text("utf-8") == "Name: Maja Nowak\n"
    assert not (await desk.session.expire(items[1].ref)).ok


async def test_the_change_log_says_what_each_change_was_about(desk: Desk) -> None:
    fact = add(desk, "We use pnpm.")
    await desk.session.confirm(f"fact:{fact.id}")
    await desk.session.set_expiry(f"fact:{fact.id}", "2030-01-01")
    told = [line.told for line in await desk.session.change_log(zone="fact")]
    assert told[0] == "We use pnpm. (2030-01-01 00:00:00)"
    assert told[-1] == "We use pnpm."
    of_it = await desk.session.change_log(f"fact:{fact.id}")
    assert {line.id for line in of_it} == {fact.id}


async def test_the_files_of_the_prompt_have_their_paths(desk: Desk) -> None:
    desk.project.rules_path.write_text("# Rules\n\n- tests first\n", "utf-8")
    files = await desk.session.prompt_files()
    assert str(desk.project.rules_path) in {section.path for section in files}
    assert any("tests first" in section.text for section in files)


async def test_sharing_looks_first_and_needs_a_yes_for_what_looks_personal(desk: Desk) -> None:
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(desk.project.root)], check=True)
    assert (await desk.session.sharing()).mode == "private"
    add(desk, "Write to maja.nowak@example.org about routing.")
    refused = await desk.session.share(True)
    assert not refused.ok
    assert refused.extra
    assert (await desk.session.sharing()).mode == "private"
    assert (await desk.session.share(True, anyway=True)).ok
    assert (await desk.session.sharing()).mode == "shared"
    assert (await desk.session.share(False)).ok
    assert (await desk.session.sharing()).mode == "private"


# -- "what do you remember about me?" ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "heading"),
    [
        ("What do you remember about me?", "About you"),
        ("Co o mnie pamiętasz?", "O Tobie"),
        ("Что ты помнишь обо мне?", "О тебе"),
    ],
)
async def test_everything_is_told_from_the_store_without_a_model(desk: Desk, question: str, heading: str) -> None:
    await desk.say("hello")
    asked = len(desk.server.chats)
    add(desk, "Name: Kacper", target="knowledge/user.md", target_line="Name: Kacper")
    add(desk, "We use pnpm.", kind=Kind.DECISION)
    add(desk, "Prefers short answers", kind=Kind.PREFERENCE)
    desk.session.stores.facts.quarantine(Proposal("Retries are 5", Origin.FILE, "import", "README.md"), "from a file")
    events = await desk.say(question)
    told = "".join(event.text for event in of(events, TextDelta))
    assert len(desk.server.chats) == asked
    assert heading in told
    for text in ("Name: Kacper", "We use pnpm.", "Prefers short answers", utc_now()[:10]):
        assert text in told
    assert "Retries are 5" not in told
    assert desk.last(events).status == "answered"
    assert not of(events, SaveMissing)
    transcript = await desk.session.transcript()
    assert transcript[-1].text == told


@pytest.mark.parametrize(
    ("message", "heading"),
    [
        ("What do you remember about me? And how do I run the tests?", "About you"),
        ("Jak uruchomić testy? A co o mnie pamiętasz?", "O Tobie"),
        ("Что ты помнишь обо мне, и как запустить тесты?", "О тебе"),
    ],
)
async def test_asked_beside_something_else_the_list_comes_first_and_the_model_answers_the_rest(
    desk: Desk, message: str, heading: str
) -> None:
    add(desk, "Name: Kacper", target="knowledge/user.md", target_line="Name: Kacper")
    desk.backend.queue(answer("Run make test."))
    events = await desk.say(message)
    shown = "".join(event.text for event in of(events, TextDelta))
    assert shown.index(heading) < shown.index("Name: Kacper") < shown.index("Run make test.")
    newest = desk.body["messages"][-1]["content"]
    assert message in newest
    assert LISTED in newest
    assert desk.last(events).status == "answered"
    assert not of(events, SaveMissing)
    transcript = await desk.session.transcript()
    assert transcript[-1].text.endswith("\n\nRun make test.")
    assert "Name: Kacper" in transcript[-1].text
    desk.backend.queue(answer("Yes."))
    await desk.say("Sure?")
    said = [message for message in desk.body["messages"] if message["role"] == "assistant"]
    assert said[-1]["content"] == "Run make test."  # what the model said, and no more


async def test_greetings_and_thanks_around_the_question_need_no_model(desk: Desk) -> None:
    asked = len(desk.server.chats)
    await desk.say("Hi there! What do you remember about me? Thanks a lot!")
    assert len(desk.server.chats) == asked


async def test_the_list_is_there_when_the_server_is_not(open_desk: Open) -> None:
    desk = await open_desk(host="http://127.0.0.1:9")
    events = await desk.say("What do you remember about me? And how do I run the tests?")
    assert "I remember nothing yet" in "".join(event.text for event in of(events, TextDelta))
    assert desk.last(events).status == "failed"


async def test_the_model_sees_what_was_told_when_the_talk_goes_on(desk: Desk) -> None:
    add(desk, "We use pnpm.", kind=Kind.DECISION)
    await desk.say("What do you remember about me?")
    desk.backend.queue(answer("Sure."))
    await desk.say("The first one is outdated.")
    said = [message["content"] for message in desk.body["messages"]]
    assert "What do you remember about me?" in said
    assert any("We use pnpm." in text for text in said[:-1])
    assert desk.session.goal == "The first one is outdated."


async def test_an_empty_memory_says_so_and_needs_no_server(open_desk: Open) -> None:
    desk = await open_desk(host="http://127.0.0.1:9")
    events = await desk.say("What do you remember about me?")
    assert "I remember nothing yet" in "".join(event.text for event in of(events, TextDelta))
    assert desk.last(events).exit_code == 0


async def test_lines_by_hand_come_up_every_month_and_are_confirmed_like_facts(desk: Desk) -> None:
    desk.project.user_notes_path.write_text("- Works on routing (2026-01-05)\n", "utf-8")
    desk.project.rules_path.write_text("- tests first (2026-01-06)\n", "utf-8")
    view = await desk.session.review()
    assert [(item.text, item.why[:24]) for item in view.by_hand] == [
        ("Works on routing (2026-01-05)", "by hand, from 2026-01-05"),
        ("tests first (2026-01-06)", "by hand, from 2026-01-06"),
    ]
    assert view.by_hand[1].actions == ("confirm",)  # nobody but the user edits the rules
    assert (await desk.session.confirm(view.by_hand[0].ref)).ok
    assert [item.text for item in (await desk.session.review()).by_hand] == ["tests first (2026-01-06)"]
    assert not (await desk.session.correct(view.by_hand[1].ref, "no tests")).ok
    assert not (await desk.session.confirm("note:gone")).ok


async def test_a_line_by_hand_in_any_memory_file_is_corrected_where_it_stands(desk: Desk) -> None:
    path = desk.project.memory_dir / "AGENTS.md"
    path.write_text("# AGENTS.md\n\n## User Preferences\n\n- Short answers (2026-01-05)\n", "utf-8")
    (item,) = (await desk.session.review()).by_hand
    assert (await desk.session.correct(item.ref, "Long answers")).ok
    assert "- Long answers\n" in path.read_text("utf-8")


async def test_a_fact_that_can_be_checked_says_how_when_it_is_inspected(desk: Desk) -> None:
    fact = add(desk, "We use PostgreSQL 16")
    shown = await desk.session.inspect(f"fact:{fact.id}")
    assert [field.value for field in shown.fields if field.label == "to check"] == [
        "`psql --version`, or the image in the compose file"
    ]
