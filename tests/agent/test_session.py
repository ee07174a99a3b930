"""A session over its life: coming back, switching, files edited outside, the window filling up."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable

import pytest

from tests.agent.conftest import Desk, Open, of
from tui_agent.agent.events import FileChanged, MemoryChanged, Notice, Recalled, TurnFinished
from tui_agent.agent.prompt import legal_problem
from tui_agent.llm.wire.script import answer, call, calling
from tui_agent.memory.types import NewFact


async def until(true: Callable[[], bool], limit_s: float = 10.0) -> None:
    """Wait until something holds."""
    end = asyncio.get_running_loop().time() + limit_s
    while not true():
        assert asyncio.get_running_loop().time() < end, "it never came true"
        await asyncio.sleep(0.02)


async def test_going_on_sends_the_same_bytes_as_if_the_app_had_never_closed(open_desk: Open) -> None:
    desk = await open_desk()
    desk.backend.queue(calling(call("recall", {"query": "x"})), answer("One."))
    await desk.say("first")
    before = desk.body
    await desk.session.close()
    again = await open_desk(resume="continue")
    assert again.session.id == desk.session.id
    await again.say("second")
    assert again.body["messages"][: len(before["messages"])] == before["messages"]
    assert again.body["tools"] == before["tools"]


async def test_a_new_session_starts_with_an_empty_hot_zone_and_a_resumed_one_has_its_own(open_desk: Open) -> None:
    desk = await open_desk()
    await desk.session.core.add_item("file", "def retry_it(): ...", summary="retry.py", source="retry.py")
    first = desk.session.id
    await desk.session.switch("new")
    assert (await desk.session.hot()).rows == ()
    await desk.session.switch(first)
    assert [row.text for row in (await desk.session.hot()).rows] == ["def retry_it(): ..."]


async def test_a_session_that_is_not_there_is_a_sentence(open_desk: Open) -> None:
    with pytest.raises(LookupError, match="There is no session 'zzz'"):
        await open_desk(resume="zzz")


async def test_facts_are_recalled_into_the_newest_message_and_only_once(desk: Desk) -> None:
    desk.session.stores.facts.add(NewFact("package manager", "The admin page uses pnpm.", "message m1"))
    events = await desk.say("Which package manager does the admin page use?")
    record = of(events, Recalled)[0].record
    assert [item.text for item in record.items] == ["The admin page uses pnpm."]
    assert sum(term.value for term in record.items[0].terms) == pytest.approx(record.items[0].score)
    assert "The admin page uses pnpm." in desk.body["messages"][-1]["content"]
    assert "confirmed" in desk.body["messages"][-1]["content"]
    events = await desk.say("And again: which package manager does the admin page use?")
    record = of(events, Recalled)[0].record
    assert record.items == ()
    assert [item.status for item in record.near] == ["visible"]
    assert "The admin page uses pnpm." not in desk.body["messages"][-1]["content"]


async def test_what_fed_an_answer_is_kept_with_it(desk: Desk) -> None:
    fact = desk.session.stores.facts.add(NewFact("port", "The gateway listens on port 7443.", "message m1"))
    events = await desk.say("On which port does the gateway listen?")
    message_id = desk.last(events).message_id
    assert message_id is not None
    await desk.session.correct(f"fact:{fact.id}", "The gateway listens on port 8443.")
    record = await desk.session.recall_of(message_id)
    assert record is not None
    assert record.items[0].text == "The gateway listens on port 7443."
    assert record.items[0].text in desk.body["messages"][-1]["content"]


async def test_rules_edited_outside_are_said_and_carried_by_the_next_request(open_desk: Open) -> None:
    desk = await open_desk(interactive=True)
    await desk.session.watching()
    desk.project.rules_path.write_text("# Rules\n\n- answer in rhyme\n", "utf-8")
    await until(lambda: bool(of(desk.heard, FileChanged)))
    change = of(desk.heard, FileChanged)[-1]
    assert "answer in rhyme" in change.diff
    assert "\n" not in change.diff
    system = desk.session.core.prompt.system
    await desk.say("hello")
    assert "answer in rhyme" in desk.body["messages"][-1]["content"]
    assert desk.body["messages"][0]["content"] == system
    await desk.say("again")
    assert "answer in rhyme" not in desk.body["messages"][-1]["content"]
    result = await desk.session.rebuild_prompt()
    assert result.ok
    assert "answer in rhyme" in desk.session.core.prompt.system


@pytest.mark.parametrize("name", ["rules.md", "knowledge/user.md"])
async def test_a_file_emptied_or_deleted_outside_is_said_and_told_to_the_model(open_desk: Open, name: str) -> None:
    desk = await open_desk(interactive=True)
    path = desk.project.memory_dir / name
    path.write_text("- answer in rhyme\n", "utf-8")
    await desk.session._reload.refresh()
    await desk.say("hello")
    assert "answer in rhyme" in desk.body["messages"][-1]["content"]
    path.unlink()
    await desk.session._reload.refresh()
    assert of(desk.heard, FileChanged)[-1].diff.startswith("− 1 ")
    await desk.say("again")
    assert f"{name} was emptied; what it said no longer holds." in desk.body["messages"][-1]["content"]
    await desk.say("once more")
    assert "was emptied" not in desk.body["messages"][-1]["content"]


async def test_config_edited_outside_takes_effect_with_the_next_request(open_desk: Open) -> None:
    desk = await open_desk(interactive=True)
    await desk.session.watching()
    desk.project.config_path.write_text('temperature: 0.25\nrules:\n  - "be kind"\n', "utf-8")
    await until(lambda: any("temperature" in change.diff for change in of(desk.heard, FileChanged)))
    await until(lambda: any("be kind" in str(s.text) for s in desk.session.core.sections()))
    await desk.say("hello")
    assert desk.body["options"]["temperature"] == 0.25
    assert "be kind" in desk.body["messages"][-1]["content"]


async def test_a_broken_config_keeps_the_last_good_value_and_is_said(open_desk: Open) -> None:
    desk = await open_desk(interactive=True)
    await desk.session.watching()
    desk.project.config_path.write_text("temperature: warm\n", "utf-8")
    await until(lambda: any("temperature" in notice.text for notice in of(desk.heard, Notice)))
    await desk.say("hello")
    assert "temperature" not in desk.body["options"]


async def test_a_full_window_is_summarised_once_and_the_session_goes_on(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=3072, keep_messages=4)
    long = "the retry loop in the payments module " * 20
    bodies = []
    for number in range(8):
        events = await desk.say(f"question {number}: {long}")
        assert desk.last(events).status == "answered"
        bodies.append(desk.body)
        assert legal_problem(desk.body["messages"]) == ""
    restarts = [
        number
        for number, (before, after) in enumerate(itertools.pairwise(bodies))
        if after["messages"][: len(before["messages"])] != before["messages"]
    ]
    assert restarts
    assert len(restarts) < 7
    assert any("Summary of the earlier conversation" in m["content"] for m in desk.body["messages"])
    assert all(record.notes.get("dropped_messages", 0) == 0 for record in desk.server.chats)


async def test_pins_and_put_away_items_move_by_key_and_come_back_by_undo(desk: Desk) -> None:
    core = desk.session.core
    refs, _ = await core.add_item("file", "def retry_it(): ...", summary="retry.py", source="retry.py")
    ref = refs[0]
    assert (await desk.session.pin(ref)).ok
    assert (await desk.session.hot()).rows[0].pinned
    assert (await desk.session.put_away(ref)).ok
    assert (await desk.session.hot()).rows == ()
    cold = await desk.session.cold()
    assert [row.text for row in cold.rows] == ["def retry_it(): ..."]
    assert (await desk.session.undo()).ok
    assert [row.text for row in (await desk.session.hot()).rows] == ["def retry_it(): ..."]
    assert (await desk.session.put_away(ref)).ok
    assert (await desk.session.bring_back(f"cold:{cold.rows[0].id}")).ok
    assert len((await desk.session.hot()).rows) == 1


async def test_a_fact_can_be_confirmed_corrected_expired_and_undone(desk: Desk) -> None:
    fact = desk.session.stores.facts.add(NewFact("editor", "I use Vim.", "message m1", quote="I use Vim"))
    assert (await desk.session.confirm(f"fact:{fact.id}")).ok
    corrected = await desk.session.correct(f"fact:{fact.id}", "I use Helix.")
    assert corrected.ok, corrected.text
    assert [item.text for item in await desk.session.remembered()] == ["I use Helix."]
    inspected = await desk.session.inspect(f"fact:{corrected.id}")
    assert any("I use Vim." in line for line in inspected.history)
    assert (await desk.session.undo()).ok
    assert [item.text for item in await desk.session.remembered()] == ["I use Vim."]
    assert (await desk.session.expire(f"fact:{fact.id}")).ok
    assert await desk.session.remembered() == []


async def test_what_is_deleted_for_good_leaves_messages_records_and_the_prompt(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Zenobia\n"})),
        answer("Noted, Zenobia."),
    )
    events = await desk.say("My name is Zenobia")
    fact_id = of(events, MemoryChanged)[0].id
    result = await desk.session.delete_forever(f"fact:{fact_id}")
    assert result.ok, result.text
    assert "Zenobia" not in desk.memory("knowledge/user.md")
    await desk.say("hello")
    assert "Name: Zenobia" not in str(desk.body)


async def test_switching_the_model_keeps_the_transcript_and_says_what_changes(desk: Desk) -> None:
    await desk.say("hello")
    result = await desk.session.switch_model("nope:1b")
    assert not result.ok
    assert "nope:1b" in result.text
    assert desk.session.server.model == "qwen2.5-coder:1.5b"
    assert len(await desk.session.transcript()) == 2


async def test_a_masked_item_is_not_recalled_for_this_question(desk: Desk) -> None:
    fact = desk.session.stores.facts.add(NewFact("port", "The gateway listens on port 7443.", "message m1"))
    events = await desk.say("On which port does the gateway listen?", masked={f"fact:{fact.id}"})
    record = of(events, Recalled)[0].record
    assert record.items == ()
    assert [item.status for item in record.near] == ["masked"]


async def test_two_turns_at_once_are_refused(desk: Desk) -> None:
    stream = desk.session.send("one")
    await stream.__anext__()
    with pytest.raises(RuntimeError, match="running already"):
        await desk.session.send("two").__anext__()
    async for event in stream:
        last = event
    assert isinstance(last, TurnFinished)


async def test_the_exact_prompt_can_be_seen(desk: Desk) -> None:
    await desk.say("hello")
    view = await desk.session.context()
    assert [part.name for part in view.parts] == ["system", "tools", "user", "assistant"]
    assert view.parts[0].text == desk.body["messages"][0]["content"]
    assert view.used + view.reserve <= view.num_ctx


async def test_own_writes_are_not_announced_again_with_the_whole_file(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": "AGENTS.md", "old_string": "", "new_string": "- prefers pnpm\n"})),
        answer("Noted."),
    )
    await desk.say("I prefer pnpm")
    assert "pnpm" in desk.memory("AGENTS.md")
    await desk.say("thanks")
    assert "was changed" not in desk.body["messages"][-1]["content"]
    assert "pnpm" not in desk.body["messages"][-1]["content"]


async def test_what_a_key_does_to_memory_is_told_to_the_model_in_one_note(desk: Desk) -> None:
    desk.backend.queue(answer("Hello."))
    await desk.say("I prefer pnpm")
    result = await desk.session.save_sentence("m1", "I prefer pnpm")
    assert result.ok
    await desk.say("go on")
    newest = desk.body["messages"][-1]["content"]
    assert "The user saved: I prefer pnpm" in newest
    assert "User Preferences" not in newest
    await desk.say("and on")
    assert "The user saved" not in desk.body["messages"][-1]["content"]


async def test_undo_takes_back_the_latest_action_whoever_made_it(desk: Desk) -> None:
    refs, _ = await desk.session.core.add_item("file", "x = 1", summary="x.py", source="x.py")
    await desk.session.pin(refs[0])
    desk.backend.queue(
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"})),
        answer("Noted."),
    )
    await desk.say("My name is Kacper")
    assert (await desk.session.undo()).ok
    assert "Kacper" not in desk.memory("knowledge/user.md")
    assert (await desk.session.hot()).rows[0].pinned or (await desk.session.hot()).rows[1].pinned
    assert (await desk.session.undo()).ok
    assert not any(row.pinned for row in (await desk.session.hot()).rows)


async def test_facts_json_follows_each_change_and_leaves_the_users_notes_out(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"})),
        calling(call("remember", {"fact": "We moved to pnpm", "category": "decision"})),
        answer("Noted."),
    )
    await desk.say("My name is Kacper. We moved to pnpm.")
    data = json.loads(desk.project.facts_json_path.read_text("utf-8"))
    assert [entry["decision"] for entry in data["decisions"]] == ["We moved to pnpm"]
    assert "Kacper" not in str(data)
    assert set(data) == {"user_id", "facts", "preferences", "decisions"}


async def test_a_correction_keeps_the_pin(desk: Desk) -> None:
    fact = desk.session.stores.facts.add(NewFact("editor", "I use Vim.", "message m1"))
    await desk.session.pin(f"fact:{fact.id}")
    corrected = await desk.session.correct(f"fact:{fact.id}", "I use Helix.")
    assert (await desk.session.inspect(f"fact:{corrected.id}")).pinned


async def test_earlier_messages_of_the_project_are_there_for_the_composer_secrets_left_out(desk: Desk) -> None:
    secret = "AKIA" + "Q5ZL2VXN7TWBD3KC"
    await desk.say("first")
    await desk.say(f"my key is {secret}")
    await desk.session.switch("new")
    prompts = await desk.session.prompt_history()
    assert prompts[0] == "first"
    assert len(prompts) == 2
    assert secret not in prompts[1]
