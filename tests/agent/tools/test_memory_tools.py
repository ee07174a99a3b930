"""How paths and texts of small models become proposals."""

from __future__ import annotations

import pytest

from tests.agent.conftest import Desk, of
from tui_agent.agent.events import MemoryChanged, ToolFinished
from tui_agent.agent.tools.memory_tools import memory_path, proposals_of
from tui_agent.llm.wire.script import answer, call, calling


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("knowledge/user.md", "knowledge/user.md"),
        ("./.agent-memory/knowledge/user.md", "knowledge/user.md"),
        ("/memory/AGENTS.md", "AGENTS.md"),
        ("user.md", "knowledge/user.md"),
        ("agents.md", "AGENTS.md"),
        ("projects/shop.md", "knowledge/projects/shop.md"),
        ("knowledge\\user.md", "knowledge/user.md"),
        ("../x.md", "../x.md"),
    ],
)
def test_paths_are_understood_as_they_are_written(given: str, path: str) -> None:
    assert memory_path(given) == path


def test_headings_rules_and_list_marks_are_no_statements() -> None:
    text = "# User\n\nAbout the user:\n- Name: Kacper\n* prefers pnpm\n---\n1. tests first\n"
    assert proposals_of(text) == ["Name: Kacper", "prefers pnpm", "tests first"]


async def test_each_line_of_an_edit_is_judged_by_itself(desk: Desk) -> None:
    text = "# User\nName: Kacper\nLives in Atlantis\n"
    desk.backend.queue(
        calling(call("edit_file", {"path": "user.md", "old_string": "", "new_string": text})), answer("Noted.")
    )
    events = await desk.say("My name is Kacper")
    assert {(e.what, e.text) for e in of(events, MemoryChanged)} >= {("saved", "Name: Kacper")}
    assert "Atlantis" not in desk.memory("knowledge/user.md")


@pytest.mark.parametrize("path", ["../outside.md", "/etc/passwd", "rules.md", "config.yaml", "memory.db"])
async def test_files_that_are_not_memory_are_refused_with_a_reason(desk: Desk, path: str) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": path, "old_string": "", "new_string": "Name: Kacper\n"})), answer("No.")
    )
    events = await desk.say("My name is Kacper")
    finished = of(events, ToolFinished)[0]
    assert not finished.ok
    assert len(finished.result) > 20


async def test_replacing_a_saved_line_corrects_its_fact(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"})),
        answer("Noted."),
        calling(call("edit_file", {"path": "knowledge/user.md", "old_string": "Kacper", "new_string": "Kasper"})),
        answer("Corrected."),
    )
    await desk.say("My name is Kacper")
    await desk.say("No, my name is Kasper, with an s.")
    text = desk.memory("knowledge/user.md")
    assert "Kasper" in text
    assert "Kacper" not in text
    assert [item.text for item in await desk.session.remembered()] == ["Name: Kasper"]


async def test_an_edit_that_does_not_match_says_so_and_changes_nothing(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("edit_file", {"path": "AGENTS.md", "old_string": "nowhere", "new_string": "I prefer tea"})),
        answer("Hm."),
    )
    before = desk.memory("AGENTS.md")
    events = await desk.say("I prefer tea")
    assert not of(events, ToolFinished)[0].ok
    assert desk.memory("AGENTS.md") == before


async def test_todos_are_shown_and_kept(desk: Desk) -> None:
    desk.backend.queue(calling(call("write_todos", {"todos": ["[x] read", "write the test"]})), answer("Planned."))
    events = await desk.say("plan it")
    assert of(events, ToolFinished)[0].summary == "1/2 done"
    assert desk.session.todos == ["[x] read", "write the test"]


async def test_memory_files_are_read_and_listed(desk: Desk) -> None:
    desk.backend.queue(
        calling(call("read_memory", {"path": ""})), calling(call("read_memory", {"path": "AGENTS.md"})), answer("Ok.")
    )
    events = await desk.say("what do you know?")
    listed, read = of(events, ToolFinished)
    assert "AGENTS.md" in listed.result
    assert "User Preferences" in read.result


async def test_history_search_finds_by_words_in_any_form_and_never_the_question_itself(desk: Desk) -> None:
    desk.backend.queue(answer("Noted, staging it is."))
    await desk.say("Wdrażamy moduł płatności z gałęzi staging.")
    await desk.say("The release is 50% done.")
    await desk.say("Something else entirely.")
    desk.backend.queue(
        calling(call("search_history", {"query": "wdrażania modułów płatności"})),
        calling(call("search_history", {"query": "50%"})),
        calling(call("search_history", {"query": "kangaroo jumping", "role": "user"})),
        answer("Found."),
    )
    events = await desk.say("Search for wdrażania modułów płatności, 50% and kangaroo jumping, please.")
    polish, literal, none = (event.result for event in of(events, ToolFinished))
    assert polish.startswith("Found ")
    assert "message(s):\n\n[" in polish
    assert polish.split("\n\n")[1].endswith("User: Wdrażamy moduł płatności z gałęzi staging.")
    assert "Search for" not in polish
    assert literal.startswith("Found 1 message(s):")
    assert none == "No messages found matching 'kangaroo jumping'"
