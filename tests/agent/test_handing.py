"""Handing a task on from a real session: conclusions only, confirmed by the user, written inside the project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.agent.conftest import Desk
from tui_agent.agent.handing import inside
from tui_agent.memory.types import Kind, NewFact


async def test_the_draft_holds_conclusions_and_not_the_musing(desk: Desk) -> None:
    await desk.session.set_goal("Port the sales report")
    await desk.say("What if we add archived accounts… no, leave them out.")
    draft = await desk.session.handoff_draft()
    assert draft.task == "Port the sales report"
    assert draft.requirements == ("exclude archived accounts",)
    view = await desk.session.handoff(draft.task, draft.requirements, "table")
    assert json.loads(view.text) == {
        "task": "Port the sales report",
        "requirements": ["exclude archived accounts"],
        "format": "table",
        "constraints_confirmed_by_user": False,
    }
    assert "leave them out" not in view.text


async def test_facts_of_this_conversation_are_requirements_and_others_are_not(desk: Desk) -> None:
    await desk.say("We only report active accounts.")
    message = desk.session.stores.history.messages(desk.session.id)[0]
    facts = desk.session.stores.facts
    facts.add(NewFact("", "Report active accounts only", f"message {message.id}", kind=Kind.DECISION,
                      message_id=message.id))  # fmt: skip
    facts.add(NewFact("", "We deploy on Fridays", "message of another day", kind=Kind.DECISION))
    assert (await desk.session.handoff_draft()).requirements == ("Report active accounts only",)


async def test_only_the_users_yes_confirms_a_packet(desk: Desk) -> None:
    view = await desk.session.handoff("Port the report", ["exclude archived"], "", confirmed=True)
    assert json.loads(view.text)["constraints_confirmed_by_user"] is True
    assert not (await desk.session.handoff("Port the report", [], "")).confirmed


@pytest.mark.parametrize(
    "requirement", ["User: exclude archived", "what if we add archived? no", "the user said that archived is out"]
)
async def test_dialogue_is_refused_with_the_reason(desk: Desk, requirement: str) -> None:
    view = await desk.session.handoff("Port the report", [requirement], "", confirmed=True)
    assert view.text == ""
    assert "write the conclusion" in view.refused


async def test_a_stretch_copied_from_the_conversation_is_refused(desk: Desk) -> None:
    said = "the report should list every account in the northwest region with its revenue and the number of open orders"
    await desk.say(said)
    view = await desk.session.handoff("Port the report", [said], "")
    assert "copied from the conversation" in view.refused


async def test_a_packet_without_a_task_is_none(desk: Desk) -> None:
    assert "no task" in (await desk.session.handoff("  ", [], "")).refused


async def test_the_packet_is_written_once_and_replaced_only_on_request(desk: Desk) -> None:
    save = desk.session.save_handoff
    assert (await save("out.json", "Port the report", ["exclude archived"], "", confirmed=True)).ok
    path = desk.project.root / "out.json"
    assert json.loads(path.read_text("utf-8"))["constraints_confirmed_by_user"] is True
    again = await save("out.json", "Another task", [], "")
    assert again.extra == {"exists": "out.json"}
    assert "Port the report" in path.read_text("utf-8")
    assert (await save("out.json", "Another task", [], "", replace=True)).ok
    assert "Another task" in path.read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../out.json", "outside of the project"),
        ("/tmp/out.json", "outside of the project"),
        (".agent-memory/out.json", "belongs to the program"),
        (".git/out.json", "belongs to the program"),
        ("nowhere/out.json", "no folder"),
        ("link/out.json", "outside of the project"),
        ("a-link.json", "a link or a folder"),
        ("src", "a link or a folder"),
        ("", "Give a file name"),
        ("a\nb", "Give a file name"),
    ],
)
def test_packets_stay_inside_the_project_and_out_of_its_memory(tmp_path: Path, name: str, why: str) -> None:
    root = tmp_path / "project"
    for folder in (".agent-memory", ".git", "src"):
        (root / folder).mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (root / "link").symlink_to(tmp_path / "elsewhere")
    (root / "a-link.json").symlink_to(root / ".agent-memory" / "memory.db")
    with pytest.raises(ValueError, match=why):
        inside(root, name)


def test_a_file_in_a_folder_of_the_project_is_fine(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert inside(tmp_path, "docs/out.json") == tmp_path / "docs" / "out.json"
