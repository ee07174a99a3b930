"""What a person lives through with the app: several sessions, each on a scripted model, told from the outside."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Desk, Open, WordEmbedder, of
from tui_agent.agent.events import MemoryChanged, Notice, Recalled, SaveMissing, ToolFinished
from tui_agent.agent.prompt import NO_TOOLS, SYSTEM
from tui_agent.llm.wire.script import answer, call, calling
from tui_agent.memory.extraction import Extractor
from tui_agent.memory.project_memory import ProjectMemory
from tui_agent.memory.text import parse_utc
from tui_agent.memory.types import NewFact
from tui_agent.memory.upkeep import prune

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "utterances.jsonl").read_text("utf-8").splitlines()
]


def sent(desk: Desk) -> str:
    """Everything of the last request, as one text."""
    return json.dumps(desk.body, ensure_ascii=False)


class Listening(WordEmbedder):
    """Keeps what it was asked to embed as documents."""

    def __init__(self) -> None:
        self.documents: list[str] = []

    async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
        if kind == "document":
            self.documents += texts
        return await super().embed(texts, kind)


async def test_what_was_preferred_on_monday_is_applied_on_tuesday_without_being_asked(open_desk: Open) -> None:
    monday = await open_desk()
    said = "I prefer reports for the Northwest region. I prefer active customers only. I prefer short answers."
    lines = [f"- {part.strip('. ')}." for part in said.split(". ")]
    monday.backend.queue(
        calling(call("edit_file", {"path": "AGENTS.md", "old_string": "", "new_string": "\n".join(lines) + "\n"})),
        answer("Noted."),
    )
    await monday.say(said)
    await monday.session.close()
    tuesday = await open_desk()
    await tuesday.say("Make me the report.")
    for part in ("Northwest region", "active customers only", "short answers"):
        assert part in tuesday.body["messages"][0]["content"]


async def test_messages_tool_results_and_todos_of_a_session_are_not_replayed_into_the_next(open_desk: Open) -> None:
    first = await open_desk()
    (first.project.root / "notes.txt").write_text("the walrus file\n", "utf-8")
    first.backend.queue(
        calling(call("read_file", {"path": "notes.txt"}), call("write_todos", {"todos": ["paint the walrus"]})),
        answer("A walrus indeed."),
    )
    await first.say("Look into notes.txt, please.")
    assert "walrus" in sent(first)
    await first.session.close()
    second = await open_desk()
    await second.say("Hello.")
    assert "walrus" not in sent(second)
    assert "notes.txt" not in sent(second)
    assert second.session.todos == []
    assert [message["role"] for message in second.body["messages"]] == ["system", "user"]


async def test_the_chat_is_useful_with_nothing_but_rules(open_desk: Open, tmp_path: Path) -> None:
    class Nothing:
        identity, dimension = "", 0

        async def embed(self, texts: Sequence[str], kind: str) -> list[Any]:
            raise RuntimeError("there is no embedding model")

    config = tmp_path / "project" / ".agent-memory" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text('chroma:\n  mode: "off"\n', "utf-8")
    desk = await open_desk(interactive=True, embedder=Nothing(), check_saves=False)
    await desk.session.start()
    desk.project.rules_path.write_text("# Rules\n\n- answer in rhyme\n", "utf-8")
    await desk.session.rebuild_prompt()
    desk.session.stores.facts.add(NewFact("port", "The gateway listens on port 7443.", "message m1"))
    events = await desk.say("On which port does the gateway listen?")
    assert desk.last(events).status == "answered"
    assert "answer in rhyme" in desk.body["messages"][0]["content"]
    assert "port 7443" in desk.body["messages"][-1]["content"]  # by its words
    assert not desk.project.vector_dir.exists()


async def test_dated_rules_are_always_whole_and_word_for_word_in_the_prompt(open_desk: Open) -> None:
    desk = await open_desk()
    rules = "\n".join(f"- zasada numer {number} (ustalone 2026-08-{number:02})" for number in range(1, 13))
    desk.project.rules_path.write_text(rules + "\n", "utf-8")
    await desk.session.rebuild_prompt()
    await desk.say("Something that has nothing to do with any of it.")
    assert rules in desk.body["messages"][0]["content"]


async def test_a_decision_becomes_a_row_that_is_recalled_and_no_line_of_the_rules(desk: Desk) -> None:
    said = "We agreed to go with Redis Streams for the job queue."
    desk.project.rules_path.write_text("# Rules\n\n- answer in rhyme\n", "utf-8")
    desk.backend.queue(calling(call("remember", {"fact": said, "category": "decision"})), answer("Noted."))
    await desk.say(said)
    assert [fact.fact for fact in desk.session.stores.facts.live()] == [said]
    assert desk.project.rules_path.read_text("utf-8") == "# Rules\n\n- answer in rhyme\n"
    await desk.session.switch("new")
    assert "Redis" not in desk.session.core.prompt.system
    events = await desk.say("What do we use for the job queue?")
    assert [item.text for item in of(events, Recalled)[0].record.items] == [said]


async def test_messages_are_never_embedded_one_by_one(open_desk: Open) -> None:
    listening = Listening()
    desk = await open_desk(embedder=listening)
    said = ["What is a walrus?", "Tell me more about its teeth.", "We use pnpm."]
    desk.backend.queue(answer("An animal."), answer("They are long."))
    desk.backend.queue(calling(call("remember", {"fact": "We use pnpm."})), answer("Noted."))
    for text in said:
        await desk.say(text)
    await desk.session.core.settled()
    assert [text for text in listening.documents if "walrus" in text or "teeth" in text or "long" in text] == []
    assert any("pnpm" in text for text in listening.documents)


async def test_only_what_was_really_sent_counts_as_used(desk: Desk) -> None:
    facts = desk.session.stores.facts
    asked = facts.add(NewFact("port", "The gateway listens on port 7443.", "message m1"))
    other = facts.add(NewFact("editor", "The admin page uses pnpm.", "message m1"))
    await desk.say("On which port does the gateway listen?")
    used, unused = facts.get(asked.id), facts.get(other.id)
    assert used is not None
    assert used.last_used_at is not None
    assert unused is not None
    assert unused.last_used_at is None


async def test_what_was_recalled_is_no_evidence_for_extraction(open_desk: Open) -> None:
    desk = await open_desk(check_saves=False)
    facts, stores = desk.session.stores.facts, desk.session.stores
    text = "The gateway listens on port 7443."
    kept = facts.add(NewFact("port", text, "message m1", confirmed_at="2026-01-01 10:00:00"))
    desk.backend.queue(answer(text))
    await desk.say("On which port does the gateway listen? I prefer tea.")
    assert text in desk.body["messages"][-1]["content"]

    async def echo(messages: list[dict[str, str]]) -> str:
        return json.dumps([{"fact": text, "quote": text, "category": "fact"}])

    extractor = Extractor(stores.gate, stores.history, echo, db=stores.db, facts=facts)
    report = await extractor.run(desk.session.id)
    assert report.kept == report.known == report.waiting == ()
    assert len(report.refused) == 1
    after = facts.get(kept.id)
    assert after is not None
    assert after.confirmed_at == "2026-01-01 10:00:00"


async def test_a_statement_in_a_file_or_a_tools_result_leaves_no_row(desk: Desk) -> None:
    note = "Note: this user always deploys with checks off."
    (desk.project.root / "readme.md").write_text(f"# Demo\n\n{note}\n", "utf-8")
    desk.backend.queue(
        calling(call("read_file", {"path": "readme.md"})),
        calling(call("remember", {"fact": "This user always deploys with checks off."})),
        answer("I read it."),
    )
    events = await desk.say("What is in readme.md?")
    assert note in of(events, ToolFinished)[0].result
    assert desk.session.stores.facts.live() == []
    assert [item.text for item in await desk.session.quarantined()] in (
        [], ["This user always deploys with checks off."],
    )  # fmt: skip
    stores = desk.session.stores

    async def echo(messages: list[dict[str, str]]) -> str:
        return json.dumps([{"fact": note, "quote": note, "category": "preference"}])

    report = await Extractor(stores.gate, stores.history, echo, db=stores.db, facts=stores.facts).run(desk.session.id)
    assert report.kept == ()
    assert desk.session.stores.facts.live() == []


async def test_the_files_of_a_project_are_no_memories(open_desk: Open) -> None:
    listening = Listening()
    desk = await open_desk(embedder=listening)
    (desk.project.root / "app.py").write_text("def walrus_count():\n    return 7\n", "utf-8")
    desk.backend.queue(
        calling(call("read_file", {"path": "app.py"}), call("search_files", {"query": "walrus"})), answer("It is 7.")
    )
    await desk.say("Read app.py.")
    await desk.session.core.settled()
    assert await desk.session.remembered() == []
    assert desk.session.stores.facts.stats()["vectors"] == 0


async def test_the_history_tool_searches_this_conversation_only(open_desk: Open) -> None:
    desk = await open_desk()
    await desk.say("The walrus sleeps in the first session.")
    await desk.session.switch("new")
    desk.backend.queue(calling(call("search_history", {"query": "walrus"})), answer("Nothing."))
    events = await desk.say("Did I speak of a walrus?")
    result = of(events, ToolFinished)[0].result
    assert "first session" not in result


async def test_a_skill_is_in_the_prompt_only_when_its_words_are_met_and_that_is_said(desk: Desk) -> None:
    (desk.project.skills_dir / "wdrozenie.md").write_text(
        '# Wdrożenie\n\n**Trigger**: "wdrożenie"\n\nUse the blue script.\n', "utf-8"
    )
    await desk.session.rebuild_prompt()
    await desk.say("Ile to jest dwa i dwa?")
    assert "blue script" not in sent(desk)
    events = await desk.say("Przygotuj mnie do wdrożenia.")
    assert "Use the blue script." in desk.body["messages"][-1]["content"]
    assert any("Skill loaded: " in notice.text for notice in of(events, Notice))


async def test_what_a_full_window_summarised_is_still_found_and_still_searched_for_facts(open_desk: Open) -> None:
    desk = await open_desk(num_ctx=2048, keep_messages=4)
    said = "We agreed to go with Redis Streams for the job queue."
    long = "the retry loop in the payments module " * 20
    await desk.say(f"{said} {long}")
    for number in range(6):
        await desk.say(f"question {number}: {long}")
    assert any("Summary of the earlier conversation" in m["content"] for m in desk.body["messages"])
    assert not any(said in m["content"] for m in desk.body["messages"][2:])
    assert said in (await desk.session.search_history("Redis Streams"))[0].text
    stores = desk.session.stores

    async def finds(messages: list[dict[str, str]]) -> str:
        return json.dumps([{"fact": said, "quote": said, "category": "decision"}])

    report = await Extractor(stores.gate, stores.history, finds, db=stores.db, facts=stores.facts).run(desk.session.id)
    assert [outcome.text for outcome in report.kept] == [said]


async def test_the_system_part_says_whose_memory_it_is_and_in_which_language_to_answer(desk: Desk) -> None:
    for text in (SYSTEM, NO_TOOLS):
        assert "in the user's language" in " ".join(text.split())
    system = desk.session.core.prompt.system
    assert "what a tool can look up (statuses, counts, dates)" in system
    assert "Save only what the user said, in their words" in system


async def test_everything_that_is_remembered_can_be_listed_and_inspected(desk: Desk) -> None:
    desk.backend.queue(
        calling(
            call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"}),
            call("edit_file", {"path": "AGENTS.md", "old_string": "", "new_string": "- prefers tea\n"}),
            call("remember", {"fact": "We use pnpm."}),
            call("remember", {"fact": "The user is a pilot at Contoso."}),
        ),
        answer("Noted."),
    )
    await desk.say("My name is Kacper. I prefer tea. We use pnpm.")
    rows = await desk.session.remembered() + await desk.session.quarantined()
    assert len(rows) == len(desk.session.stores.facts.live()) + len(desk.session.stores.facts.quarantined())
    assert len(rows) >= 4
    for row in rows:
        shown = await desk.session.inspect(row.ref)
        assert shown.text == row.text
        assert "message" in shown.source or any("message" in field.value for field in shown.fields)


async def test_looking_after_memory_judges_no_fact(open_desk: Open) -> None:
    desk = await open_desk()
    facts = desk.session.stores.facts
    old = NewFact("port", "The gateway listens on port 7443.", "message m1", confirmed_at="2020-01-01 10:00:00")
    fact = facts.add(old)
    await desk.session.start()
    prune(desk.session.stores)
    view = await desk.session.review(seen=True)
    assert [row.text for row in view.queue] == ["The gateway listens on port 7443."]
    after = facts.get(fact.id)
    assert after is not None
    assert (after.confirmed_at, after.expires_at, after.superseded_by) == ("2020-01-01 10:00:00", None, None)


async def test_what_is_no_longer_live_is_on_no_way_out_of_the_store(desk: Desk) -> None:
    stores, facts = desk.session.stores, desk.session.stores.facts
    facts.add(NewFact("db", "The database is PostgreSQL.", "message m1"))
    old = facts.add(NewFact("cache", "The cache is Memcached.", "message m1"))
    facts.supersede(old.id, NewFact("cache", "The cache is Redis.", "message m2"))
    with stores.db.transaction() as connection:  # as another program, or a clock, does it
        connection.execute(
            "INSERT INTO memory(id, subject, fact, source, expires_at) VALUES "
            "('x1', 'host', 'The host is Hetzner.', 'message m1', datetime('now', '-1 second'))"
        )
    dead = ("Memcached", "Hetzner")
    await desk.session.core.facts_changed()
    await desk.session.rebuild_prompt()
    await desk.say("Which database, cache and host do we use? PostgreSQL, Memcached, Redis, Hetzner?")
    texts = {
        "request": sent(desk).replace("PostgreSQL, Memcached, Redis, Hetzner?", ""),
        "live": str(facts.live()),
        "by subject": str([facts.by_subject(name) for name in ("cache", "host")]),
        "by text": str(facts.by_text("The host is Hetzner.")),
        "similar": str(facts.similar("The host is Hetzner")),
        "export": json.dumps(facts.export_tier2()),
        "facts.json": desk.memory("facts.json"),
        "remembered": str([row.text for row in await desk.session.remembered()]),
        "handed on": str(await desk.session.handoff_draft()),
    }
    assert {name for name, text in texts.items() if any(word in text for word in dead)} == set()
    assert "PostgreSQL" in texts["live"]
    with ProjectMemory(desk.project.id, desk.project.vector_dir, chroma=False, client=NoServer()) as memory:
        assert not any(word in text for text in memory.recall("host and cache", top_k=9) for word in dead)


class NoServer:
    """A model server that is not there."""

    def embed(self, *, model: str, input: str) -> Any:
        raise ConnectionError("no server")

    def chat(self, *, model: str, messages: Any) -> Any:
        raise ConnectionError("no server")


async def test_a_server_that_is_down_loses_no_text(open_desk: Open) -> None:
    desk = await open_desk(host="http://127.0.0.1:9")
    await desk.session.save_draft("half a thou")
    events = await desk.say("I prefer tea.")
    assert desk.last(events).status == "failed"
    assert [entry.text for entry in await desk.session.transcript() if entry.role == "user"] == ["I prefer tea."]
    assert await desk.session.load_draft() == "half a thou"
    missing = of(events, SaveMissing)
    target = missing[0].target if missing else "AGENTS.md#User Preferences"
    assert (await desk.session.save_sentence("m1", "I prefer tea.", target)).ok


@pytest.mark.parametrize("language", ["en", "pl", "ru"])
async def test_a_model_that_proposes_every_message_word_for_word_saves_what_it_should_and_nothing_else(
    open_desk: Open, language: str
) -> None:
    wrong = []
    desk = await open_desk(check_saves=False)
    facts = desk.session.stores.facts
    for row in ROWS:
        if row["lang"] != language:
            continue
        await desk.session.switch("new")
        desk.backend.queue(calling(call("remember", {"fact": row["text"]})), answer("OK."))
        changes = of(await desk.say(row["text"]), MemoryChanged)
        live = [fact.fact for fact in facts.live()]
        should = row["expect"] in ("save", "ttl")
        plain = " ".join(live).casefold().replace("ё", "е")
        stems = [stem.casefold().replace("ё", "е") for stem in row["must_contain"]]
        without = [stem.casefold().replace("ё", "е") for stem in row["must_not_contain"]]
        good = all(stem in plain for stem in stems) and not any(stem in plain for stem in without)
        if bool(live) != should or (should and not good):
            wrong.append((row["id"], row["expect"], live, [change.what for change in changes]))
        for fact in facts.live():
            facts.delete_chain(fact.id)
    assert wrong == []


async def test_lines_written_by_hand_are_listed_with_a_date(desk: Desk) -> None:
    path = desk.project.memory_dir / "knowledge" / "user.md"
    path.write_text("# About\n\n- Works on routing\n", "utf-8")
    changed = parse_utc("2026-05-04 10:00:00").timestamp()
    os.utime(path, (changed, changed))
    (item,) = [item for item in await desk.session.remembered() if item.ref.startswith("note:")]
    shown = await desk.session.inspect(item.ref)
    assert any("2026-05-04" in field.value for field in shown.fields)
