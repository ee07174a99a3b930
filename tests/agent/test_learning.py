"""Extraction beside the chat: when conversations are searched, what it costs them, and what comes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from tests.agent.conftest import Desk, Open, of
from tui_agent.agent.events import Learned, MemoryChanged, Notice, Recalled
from tui_agent.agent.prompt import legal_problem
from tui_agent.llm.wire.backend import ChatRequest
from tui_agent.llm.wire.script import Fail, Gate, Script, answer, call, calling
from tui_agent.memory.extraction_check import CheckedCase, CheckLog, ExtractionCheck, prompt_digest
from tui_agent.memory.types import NewFact

DECISION = "We agreed to go with Redis Streams for the job queue."


def found(*facts: str, category: str = "decision") -> Script:
    items = [{"fact": fact, "category": category, "importance": 8, "quote": fact, "message_id": "m1"} for fact in facts]
    return answer(json.dumps(items, ensure_ascii=False))


def is_extraction(request: ChatRequest) -> bool:
    return "JSON" in str(request.messages[-1].get("content", "")) and not request.is_warm_up


def extractions(desk: Desk) -> list[Any]:
    return [r.body for r in desk.server.chats if r.messages and "message_id" in str(r.messages[-1].get("content", ""))]


async def until(true: Callable[[], Any], limit_s: float = 10.0) -> None:
    end = asyncio.get_running_loop().time() + limit_s
    while not true():
        assert asyncio.get_running_loop().time() < end, "it never came true"
        await asyncio.sleep(0.01)


async def desk_of(open_desk: Open, **flags: Any) -> Desk:
    """A chat somebody watches, whose silences are short and in which only extraction asks for more."""
    flags = {"extract_after_turns": 1, "check_saves": False, "watch": False, **flags}
    desk = await open_desk(interactive=True, **flags)
    desk.session.learner.lull_s = desk.session.learner.quiet_s = 0.01
    return desk


def waiting(desk: Desk, session_id: str = "") -> int:
    """How many messages of a session were not searched."""
    return desk.session.stores.history.unextracted_count(session_id or desk.session.id)


async def idle(desk: Desk) -> None:
    await until(lambda: not desk.session.learner.working)


# --- when -----------------------------------------------------------------------------------------


async def test_after_so_many_messages_the_conversation_is_searched_and_the_result_is_told(open_desk: Open) -> None:
    desk = await desk_of(open_desk, extract_after_turns=2)
    desk.backend.queue(answer("Good."), answer("Sure."), found(DECISION))
    await desk.say(DECISION)
    await idle(desk)
    assert extractions(desk) == []
    await desk.say("What is a stream?")
    await until(lambda: of(desk.heard, Learned))
    told = of(desk.heard, Learned)[0]
    assert [(item.what, item.text) for item in told.items] == [("kept", DECISION)]
    assert told.summary.startswith("Kept 1 fact (")
    assert told.compression is not None
    assert [fact.fact for fact in desk.session.stores.facts.live()] == [DECISION]
    assert desk.session.learner.reports[0][0] == DECISION[:80]
    await idle(desk)
    assert waiting(desk) == 0
    assert len(extractions(desk)) == 1


async def test_the_question_stands_behind_the_chats_own_prompt_and_leaves_no_trace_in_it(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    desk.backend.queue(answer("Good."), found(DECISION), answer("Hello."), answer("[]"))
    await desk.say(DECISION)
    await until(lambda: of(desk.heard, Learned))
    first, asked = (record.body for record in desk.server.chats)
    assert asked["messages"][: len(first["messages"])] == first["messages"]
    assert asked["tools"] == first["tools"]
    assert "format" not in asked
    assert legal_problem(asked["messages"]) == ""
    await desk.say("hello")
    following = desk.server.chats[2].body
    assert following["messages"][: len(asked["messages"]) - 1] == asked["messages"][:-1]
    assert asked["messages"][-1] not in following["messages"]
    log = desk.session.stores.history.wire_log(desk.session.id, desk.session.core.prompt.epoch)
    assert [entry["message"]["role"] for _, entry in log] == ["user", "assistant"] * 2
    assert desk.server.log.in_flight_max <= 1


async def test_a_turn_that_begins_ends_the_question_at_once_and_it_is_asked_later(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    gate = Gate()
    desk.backend.queue(answer("Good."), Script("[", gate), answer("Four."), found(DECISION))
    await desk.say(DECISION)
    await gate.reached()
    events = await desk.say("What is two and two?")
    assert desk.last(events).text == "Four."
    await desk.server.log.until(lambda log: any(record.outcome == "disconnected" for record in log.records))
    await until(lambda: of(desk.heard, Learned))
    assert [fact.fact for fact in desk.session.stores.facts.live()] == [DECISION]
    assert desk.server.log.in_flight_max <= 1


async def test_nothing_is_asked_while_a_turn_runs(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    gate = Gate()
    desk.backend.queue(answer("Good."), Script("Fo", gate, "ur."), found(DECISION))
    desk.session.learner.lull_s = 30.0
    await desk.say(DECISION)
    task = asyncio.create_task(desk.say("What is two and two?"))
    await gate.reached()
    desk.session.learner.lull_s = 0.01
    await asyncio.sleep(0.1)
    assert extractions(desk) == []
    gate.open()
    await task
    await until(lambda: of(desk.heard, Learned))


async def test_typing_frees_the_server_before_the_message_comes(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    gate = Gate()
    desk.backend.queue(answer("Good."), Script("[", gate), found(DECISION))
    await desk.say(DECISION)
    await gate.reached()
    await desk.session.save_draft("And what about")
    await desk.server.log.until(lambda log: any(record.outcome == "disconnected" for record in log.records))
    await until(lambda: of(desk.heard, Learned))


async def test_a_crashed_session_is_searched_at_the_next_start_and_only_once(open_desk: Open) -> None:
    crashed = await open_desk(check_saves=False)  # nobody watches, so it ends like a crash: unsearched
    crashed.backend.queue(answer("Good."))
    await crashed.say(DECISION)
    left = crashed.session.id
    await crashed.session.close()
    crashed.backend.when(is_extraction, found(DECISION))
    desk = await desk_of(open_desk)
    assert waiting(desk, left) == 1
    await desk.session.start()
    await until(lambda: of(desk.heard, Learned))
    assert of(desk.heard, Learned)[0].session_id == left
    asked = extractions(desk)
    assert len(asked) == 1
    assert asked[0]["format"]["type"] == "array"
    assert "tools" not in asked[0]
    await idle(desk)
    assert waiting(desk, left) == 0
    await desk.session.close()
    again = await desk_of(open_desk)
    await again.session.start()
    await idle(again)
    assert len(extractions(again)) == 1


async def test_a_prompt_of_its_own_waits_for_a_long_silence_once_a_conversation_goes_on(open_desk: Open) -> None:
    crashed = await open_desk(check_saves=False)
    crashed.backend.queue(answer("Good."))
    await crashed.say(DECISION)
    await crashed.session.close()
    desk = await desk_of(open_desk, extract_after_turns=50)
    desk.session.learner.lull_s, desk.session.learner.quiet_s = 0.01, 30.0
    await desk.say("What is a B-tree?")
    await asyncio.sleep(0.1)
    assert desk.session.learner.working
    assert extractions(desk) == []


async def test_closing_searches_the_conversation_where_the_model_is_quick(open_desk: Open) -> None:
    desk = await desk_of(open_desk, extract_after_turns=50)
    desk.backend.queue(answer("Good."), found(DECISION))
    await desk.say(DECISION)
    await desk.session.close()
    assert len(extractions(desk)) == 1
    again = await desk_of(open_desk)
    assert [fact.fact for fact in again.session.stores.facts.live()] == [DECISION]
    assert again.session.stores.history.unextracted_sessions() == []


async def test_closing_does_not_wait_for_a_slow_model(open_desk: Open) -> None:
    desk = await desk_of(open_desk, extract_after_turns=50)
    desk.backend.queue(answer("Good."), Script("[", Gate()))
    desk.session.learner.close_s = 0.05
    await desk.say(DECISION)
    session_id = desk.session.id
    await asyncio.wait_for(desk.session.close(), 5)
    again = await desk_of(open_desk)
    assert waiting(again, session_id) == 1


async def test_where_answers_come_slowly_closing_does_not_even_ask(open_desk: Open) -> None:
    desk = await desk_of(open_desk, extract_after_turns=50)
    desk.backend.queue(answer("Good."))
    await desk.say(DECISION)
    desk.session.learner.resume(8.0)
    await desk.session.close()
    assert extractions(desk) == []


async def test_a_session_that_is_left_is_searched_behind_its_own_prompt(open_desk: Open) -> None:
    desk = await desk_of(open_desk, extract_after_turns=50)
    desk.backend.queue(answer("Good."), found(DECISION))
    await desk.say(DECISION)
    left = desk.session.id
    await desk.session.switch("new")
    await until(lambda: of(desk.heard, Learned))
    assert of(desk.heard, Learned)[0].session_id == left
    first, asked = (record.body for record in desk.server.chats)
    assert asked["messages"][: len(first["messages"])] == first["messages"]


async def test_a_model_that_fails_leaves_the_conversation_for_later(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    desk.backend.queue(answer("Good."), Script(Fail(400, "no")), answer("Four."), found(DECISION))
    await desk.say(DECISION)
    await idle(desk)
    assert waiting(desk) == 1
    assert of(desk.heard, Learned) == []
    await desk.say("What is two and two?")
    await until(lambda: of(desk.heard, Learned))
    assert waiting(desk) == 0


async def test_it_can_be_switched_off(open_desk: Open) -> None:
    desk = await desk_of(open_desk, extract_after_turns=0)
    desk.backend.queue(answer("Good."))
    await desk.say(DECISION)
    assert not desk.session.learner.working
    await desk.session.close()
    assert extractions(desk) == []


async def test_one_question_on_the_command_line_is_left_for_the_next_chat(open_desk: Open) -> None:
    desk = await open_desk(check_saves=False, extract_after_turns=1)
    desk.backend.queue(answer("Good."))
    await desk.say(DECISION)
    assert not desk.session.learner.working
    await desk.session.close()
    assert extractions(desk) == []


async def test_small_talk_costs_no_question(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    await desk.say("thanks, that works!")
    await idle(desk)
    assert extractions(desk) == []
    assert waiting(desk) == 0


# --- what comes of it -----------------------------------------------------------------------------


async def test_the_repository_pattern_is_kept_and_recalled_by_a_new_session(open_desk: Open) -> None:
    pattern = "We use the Repository pattern for data access."
    interface = "Every repository implements IRepository<T>."
    desk = await desk_of(open_desk)
    desk.backend.queue(answer("Agreed."), found(pattern, interface, category="convention"))
    await desk.say(f"{pattern} {interface}")
    await until(lambda: of(desk.heard, Learned))
    live = desk.session.stores.facts.live()
    assert [(fact.kind.value, fact.fact) for fact in live] == [("convention", pattern), ("convention", interface)]
    await desk.session.switch("new")
    events = await desk.say("How do I implement data access and the repository for the Orders module?")
    assert {item.text for item in of(events, Recalled)[0].record.items} == {pattern, interface}


async def test_what_was_kept_is_taken_back_by_one_key_each(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    desk.backend.queue(answer("Good."), found(DECISION))
    await desk.say(DECISION)
    await until(lambda: of(desk.heard, Learned))
    assert (await desk.session.undo()).ok
    assert desk.session.stores.facts.live() == []
    assert of(desk.heard, MemoryChanged)[-1].what == "undone"


async def test_only_what_the_user_said_is_kept_and_the_rest_says_why(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    desk.backend.queue(
        answer("I would take Memcached."),
        found(DECISION, "We use Memcached with a TTL of 300 seconds.", "The team has 8 people now."),
    )
    await desk.say(f"{DECISION} The team has 8 people now.")
    await until(lambda: of(desk.heard, Learned))
    what = {item.text: item.what for item in of(desk.heard, Learned)[0].items}
    assert what == {
        DECISION: "kept",
        "We use Memcached with a TTL of 300 seconds.": "refused",
        "The team has 8 people now.": "refused",
    }
    assert [fact.fact for fact in desk.session.stores.facts.live()] == [DECISION]


async def test_remember_that_with_nothing_found_is_a_failure_one_can_see(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    desk.backend.queue(answer("Good."), answer("[]"))
    await desk.say("Remember that the staging server is called heron.")
    await until(lambda: of(desk.heard, Learned))
    told = of(desk.heard, Learned)[0]
    assert [item.what for item in told.items] == ["missed"]
    assert "the staging server is called heron" in told.summary
    assert [i.text for i in await desk.session.quarantined()] == ["the staging server is called heron."]


async def test_a_call_instead_of_a_list_counts_as_what_it_wants_to_save(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    desk.backend.queue(answer("Good."), calling(call("remember", {"fact": DECISION, "category": "decision"})))
    await desk.say(DECISION)
    await until(lambda: of(desk.heard, Learned))
    assert [fact.fact for fact in desk.session.stores.facts.live()] == [DECISION]


async def test_at_most_ten_items_are_kept_of_one_session(open_desk: Open) -> None:
    names = ["Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gorse", "Hazel", "Ivy", "Juniper", "Kauri", "Larch"]
    facts = [f"We decided to call cluster number {n} {name}." for n, name in enumerate(names, 100)]
    desk = await desk_of(open_desk)
    desk.backend.queue(answer("Good."), found(*facts))
    await desk.say(" ".join(facts))
    await until(lambda: of(desk.heard, Learned))
    items = of(desk.heard, Learned)[0].items
    assert sum(item.what == "kept" for item in items) <= 10
    assert sum(item.what == "refused" for item in items) >= 2


async def test_a_secret_or_what_is_off_the_record_is_never_kept(open_desk: Open) -> None:
    word = "Quince" + "-Ladder7"
    desk = await desk_of(open_desk)
    desk.backend.queue(answer("Fine."), found(f"The password is {word}.", "I am thinking about quitting."))
    desk.session.learner.lull_s = 0.01
    await desk.say(f"Between us and not for your notes: I am thinking about quitting. The password is {word}.")
    await idle(desk)
    assert desk.session.stores.facts.live() == []
    assert word not in str(of(desk.heard, Learned))


async def test_another_model_since_the_last_check_is_said_at_the_start(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    case = CheckedCase("c1", "en", 1, 1, 1)
    log = CheckLog(desk.session.stores.db)
    log.record(ExtractionCheck("llama3:8b", "sha256:old", prompt_digest(), "2026-01-02 03:04:05", (case,)))
    await desk.session.start()
    await until(lambda: any(notice.key == "extraction_check" for notice in of(desk.heard, Notice)))
    notice = next(notice for notice in of(desk.heard, Notice) if notice.key == "extraction_check")
    assert "llama3:8b" in notice.text
    assert "memory check-extraction" in notice.text


async def test_a_project_without_a_check_is_not_bothered_by_it(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    await desk.session.start()
    await idle(desk)
    assert not CheckLog.exists(desk.session.stores.db)
    assert not any(notice.key == "extraction_check" for notice in of(desk.heard, Notice))


# --- the weekly look at pairs of facts ------------------------------------------------------------

PAIR = ("Deploys of the API happen on Fridays.", "On Fridays we deploy the API and the worker.")
SAME = answer('[{"pair": 1, "relation": "duplicate"}]')


def looks(desk: Desk) -> list[Any]:
    """The questions about pairs of facts."""
    return [r for r in desk.server.chats if r.messages and "pairs of remembered facts" in str(r.messages[-1])]


async def with_pair(open_desk: Open) -> Desk:
    desk = await desk_of(open_desk)
    for text in PAIR:
        desk.session.stores.facts.add(NewFact("", text, "message 1"))
    await desk.session.core.facts_changed()
    await desk.session.core.settled()
    await desk.session.core.recaller.index_missing()
    return desk


def a_week_ago(desk: Desk) -> None:
    desk.session.stores.db.execute("UPDATE consolidation_runs SET ran_at = datetime('now', '-7 days', '-1 minute')")


async def test_once_a_week_a_model_is_asked_about_pairs_in_the_background_and_they_only_wait(open_desk: Open) -> None:
    desk = await with_pair(open_desk)
    desk.backend.queue(answer("Hi."), SAME)
    before = desk.session.stores.facts.live()
    assert await desk.session.decisions.due()
    await desk.say("hello")
    await until(lambda: looks(desk))
    await idle(desk)
    assert len(looks(desk)) == 1
    assert all(text in str(looks(desk)[0].messages[-1]) for text in PAIR)
    assert desk.server.log.in_flight_max <= 1
    (item,) = await desk.session.quarantined()
    assert item.ref.startswith("quarantine:merge:")
    assert desk.session.stores.facts.live() == before  # nothing is decided without the user
    assert any("may say the same" in notice.text for notice in of(desk.heard, Notice))
    assert not of(desk.heard, MemoryChanged)


async def test_the_weekly_look_is_not_taken_twice_in_a_week_and_again_after_it(open_desk: Open) -> None:
    desk = await with_pair(open_desk)
    desk.backend.queue(answer("Hi."), SAME)
    await desk.say("hello")
    await until(lambda: looks(desk))
    await idle(desk)
    assert not await desk.session.decisions.due()
    desk.session.learner.begin()
    await idle(desk)
    assert len(looks(desk)) == 1
    a_week_ago(desk)
    assert await desk.session.decisions.due()
    desk.session.learner.begin()
    await idle(desk)
    assert not await desk.session.decisions.due()
    assert len(looks(desk)) == 1  # nothing is new, so no model is bothered


async def test_the_weekly_look_gives_way_to_a_message_and_is_taken_later(open_desk: Open) -> None:
    desk = await with_pair(open_desk)
    gate = Gate()
    desk.backend.queue(answer("Hi."), Script("[", gate), answer("Four."), SAME)
    await desk.say("hello")
    await gate.reached()
    events = await desk.say("thanks")
    assert desk.last(events).text == "Four."
    await until(lambda: len(looks(desk)) == 2)
    await idle(desk)
    assert len(await desk.session.quarantined()) == 1
    assert desk.server.log.in_flight_max <= 1


async def test_one_fact_or_none_is_nothing_to_compare(open_desk: Open) -> None:
    desk = await desk_of(open_desk)
    assert not await desk.session.decisions.due()
    desk.session.stores.facts.add(NewFact("", PAIR[0], "message 1"))
    assert not await desk.session.decisions.due()
