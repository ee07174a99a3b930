"""Promoting, undoing one correction, what a tool could fetch, and everything that is remembered, by command."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import Any

import pytest

from tests.cli.conftest import Ran, Shell
from tui_agent.agent.stores import Stores
from tui_agent.memory.reviewing import reviewed_at
from tui_agent.memory.types import NewFact
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings


def memory(shell: Shell, command: str, *args: str) -> Ran:
    return shell.run("memory", command, "-C", str(shell.root), *args)


def known(shell: Shell, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(memory(shell, "list", "--json", *args).out)
    return found


def id_of(shell: Shell, text: str) -> str:
    return str(next(fact["id"] for fact in known(shell) if text in fact["fact"]))


def notes_path(shell: Shell) -> Any:
    return UserPaths.find().user_notes_path


def test_promote_keeps_a_fact_for_all_projects_and_off_takes_that_back(shell: Shell) -> None:
    memory(shell, "add", "My name is Kacper")
    fact = id_of(shell, "Kacper")
    ran = memory(shell, "promote", fact[-4:])
    assert ran.code == 0
    assert "everywhere" in ran.out
    assert notes_path(shell).read_text("utf-8") == "Name: Kacper\n"
    again = memory(shell, "promote", fact)
    assert (again.code, "already" in again.err) == (2, True)
    assert memory(shell, "promote", fact, "--off").code == 0
    assert "Name: Kacper" in (shell.root / ".agent-memory/knowledge/user.md").read_text("utf-8")
    assert memory(shell, "promote", "nope").code == 6


def test_what_is_kept_everywhere_is_listed_in_other_projects(shell: Shell) -> None:
    assert memory(shell, "add", "I prefer short answers", "--scope", "user").code == 0
    other = shell.root.parent / "other"
    other.mkdir()
    shell.run("memory", "add", "-C", str(other), "We deploy on Fridays")
    listed = shell.run("memory", "list", "-C", str(other))
    assert "I prefer short answers" in listed.out
    mine = json.loads(shell.run("memory", "list", "-C", str(other), "--scope", "user", "--json").out)
    assert [row["fact"] for row in mine] == ["I prefer short answers"]
    assert mine[0]["id"].startswith("note:")


def test_a_foreign_import_is_never_kept_for_all_projects_at_once(shell: Shell) -> None:
    file = shell.root / "facts.json"
    file.write_text(json.dumps({"user_id": "x", "facts": [{"fact": "We use pnpm", "updated": "2026-11-01"}],
                                "preferences": [], "decisions": []}), "utf-8")  # fmt: skip
    refused = memory(shell, "import", str(file), "--scope", "user")
    assert refused.code == 2
    assert "--mine" in refused.err
    assert memory(shell, "import", str(file), "--scope", "user", "--mine").code == 0
    assert "We use pnpm" in notes_path(shell).read_text("utf-8")


def test_undo_with_an_id_takes_that_correction_back(shell: Shell) -> None:
    memory(shell, "add", "We use npm", "--subject", "package manager")
    memory(shell, "correct", id_of(shell, "npm"), "We use pnpm")
    memory(shell, "add", "We deploy on Fridays")
    ran = memory(shell, "undo", id_of(shell, "pnpm"), "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["fact"]["fact"] == "We use npm"
    assert {fact["fact"] for fact in known(shell)} == {"We use npm", "We deploy on Fridays"}
    nothing = memory(shell, "undo", id_of(shell, "npm"))
    assert (nothing.code, "nothing to go back to" in nothing.err) == (6, True)


@pytest.mark.parametrize(
    ("at", "code", "until"),
    [("7 days", 0, True), ("2030-01-31", 0, True), ("never", 0, False), ("x", 2, False)],
)
def test_an_end_may_be_a_date_a_span_or_never(shell: Shell, at: str, code: int, until: bool) -> None:
    memory(shell, "add", "We freeze the API")
    ran = memory(shell, "expire", id_of(shell, "freeze"), "--at", at)
    assert ran.code == code
    assert bool(known(shell)[0]["expires_at"]) is until


def _store(shell: Shell) -> Stores:
    return Stores.open(Project.open(shell.root), Settings(), UserPaths.find())


def test_review_lists_what_a_tool_could_fetch_and_notes_that_somebody_looked(shell: Shell) -> None:
    stores = _store(shell)
    stores.facts.add(NewFact("", "The deadline is 2026-12-01", "message m1", created_at="2026-01-01 00:00:00"))
    stores.facts.add(NewFact("", "retry_it lives in retry.py", "message m2"))
    stores.close()
    ran = memory(shell, "review", "--fetchable", "--json")
    assert [(row["fact"], row["what"]) for row in json.loads(ran.out)] == [("The deadline is 2026-12-01", "a date")]
    assert "a date" in memory(shell, "review", "--fetchable").out
    assert memory(shell, "review", "--fetchable", "--unused").code == 2
    stores = _store(shell)
    assert reviewed_at(stores.db) == ""
    stores.close()
    assert "The deadline" in memory(shell, "review").out
    stores = _store(shell)
    assert reviewed_at(stores.db)
    stores.close()


def test_stats_has_what_the_four_commands_of_sqlite3_show(shell: Shell) -> None:
    for text in ("We use pnpm", "We deploy on Fridays"):
        memory(shell, "add", text)
    data = json.loads(memory(shell, "stats", "--json", "--schema").out)
    assert {"memory", "live_memory", "changes"} <= set(data["tables"])  # .tables
    assert "superseded_by" in data["tables"]["memory"]  # .schema memory
    assert [one["new"] for one in data["last_changes"]] == ["We deploy on Fridays", "We use pnpm"]  # the last five
    assert data["events"] == {"add": 2}  # events, counted
    shown = memory(shell, "stats").out
    assert "last changes:" in shown
    assert "tables:" in shown


# -- the whole answer ---------------------------------------------------------------------------------------------


def test_ask_prints_everything_that_is_remembered_without_a_model(shell: Shell) -> None:
    memory(shell, "add", "My name is Kacper")
    memory(shell, "add", "We use pnpm, not npm")
    ran = shell.ask("What do you remember about me?")
    assert ran.code == 0
    assert "My name is Kacper" in ran.out
    assert "We use pnpm, not npm" in ran.out
    assert shell.server.chats == []
    assert [message.role for message in shell.history()] == ["user", "assistant"]


def test_ask_about_one_thing_goes_to_the_model(shell: Shell) -> None:
    memory(shell, "add", "We use pnpm, not npm")
    ran = shell.ask("What do you remember about the deploy?")
    assert ran.out == "OK.\n"
    assert len(shell.server.chats) == 1


def test_show_and_review_say_how_a_fact_can_be_checked(shell: Shell) -> None:
    memory(shell, "add", "We use PostgreSQL 16")
    fact = id_of(shell, "PostgreSQL")
    shown = memory(shell, "show", fact[-4:])
    assert "to check" in shown.out
    assert "psql --version" in shown.out
    assert "psql --version" in json.loads(memory(shell, "show", fact, "--json").out)["check"]
    sql = "UPDATE memory SET confirmed_at = '2026-01-01 00:00:00', expires_at = NULL"
    with contextlib.closing(sqlite3.connect(Project.open(shell.root).db_path)) as db, db:
        db.execute(sql)
    assert "to check: `psql --version`" in memory(shell, "review").out
    assert "psql" in json.loads(memory(shell, "review", "--json").out)[0]["check"]


def test_review_lists_lines_by_hand_every_month(shell: Shell) -> None:
    memory(shell, "add", "We deploy on Fridays")
    path = shell.root / ".agent-memory/knowledge/user.md"
    path.write_text("- Works on routing (2026-01-05)\n", "utf-8")
    (line,) = json.loads(memory(shell, "review", "--by-hand", "--json").out)
    assert (line["text"], line["date"], line["file"]) == (
        "Works on routing (2026-01-05)", "2026-01-05", "knowledge/user.md"
    )  # fmt: skip
    assert "2026-01-05  knowledge/user.md  Works on routing" in memory(shell, "review", "--by-hand").out
    assert "in a month" in memory(shell, "review", "--by-hand", "--keep").err
    assert json.loads(memory(shell, "review", "--by-hand", "--json").out) == []
    assert memory(shell, "review", "--by-hand", "--unused").code == 2
    assert memory(shell, "review", "--keep").code == 2


def test_with_a_chroma_server_a_deletion_names_what_the_server_may_still_hold(shell: Shell) -> None:
    memory(shell, "add", "We deploy on Fridays")
    (shell.root / ".agent-memory/config.yaml").write_text("chroma:\n  mode: http\n", "utf-8")
    ran = memory(shell, "delete", id_of(shell, "Fridays"), "--yes")
    assert "The Chroma server" in ran.out
    (shell.root / ".agent-memory/config.yaml").unlink()
    memory(shell, "add", "We deploy on Mondays")
    assert "The Chroma server" not in memory(shell, "delete", id_of(shell, "Mondays"), "--yes").out
