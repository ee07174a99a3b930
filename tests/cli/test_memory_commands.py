"""``tui-agent memory …`` and ``handoff``: every command with its exit codes, text and JSON, beside an open project."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import typer

from tui_agent.agent.stores import Stores
from tui_agent.cli import handoff as handoff_command
from tui_agent.cli import memory_care, memory_facts
from tui_agent.cli.memory import register
from tui_agent.cli.printing import columns, many_lines, one_line, short_ids, table
from tui_agent.memory import shredding
from tui_agent.memory.types import NewFact, Origin, Proposal, RecalledItem, RecallRecord, Term
from tui_agent.memory.upkeep import working_scope
from tui_agent.memory.working import WorkingMemory
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings

COMMANDS = [
    "list",
    "show",
    "add",
    "confirm",
    "correct",
    "expire",
    "undo",
    "pin",
    "promote",
    "put-away",
    "delete",
    "search",
    "why",
    "topics",
    "review",
    "new",
    "log",
    "quarantine",
    "approve",
    "reject",
    "prune",
    "backup",
    "restore",
    "export",
    "import",
    "share",
    "check",
    "paths",
    "extract",
    "check-extraction",
    "stats",
]
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
USER = "knowledge/user.md"

app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]}, rich_markup_mode=None)
register(app)


@dataclass(frozen=True)
class Ran:
    """What a command printed and exited with."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What ``--json`` printed."""
        return json.loads(self.out)


@dataclass
class Desk:
    """A project and the command line in it."""

    root: Path
    home: Path
    run: Callable[..., Ran]

    def memory(self, *args: str, stdin: str = "") -> Ran:
        """``tui-agent memory …`` in the project."""
        return self.run("memory", args[0], "-C", str(self.root), *args[1:], stdin=stdin)

    def stores(self) -> Stores:
        """The project's stores, to be closed by the test."""
        paths = UserPaths.find({"TUI_AGENT_HOME": str(self.home)})
        return Stores.open(Project.open(self.root), Settings(), paths)

    def fill(self, act: Callable[[Stores], Any]) -> Any:
        """Runs ``act`` on the stores and closes them."""
        stores = self.stores()
        try:
            return act(stores)
        finally:
            stores.close()

    def fact(self, text: str, **more: Any) -> str:
        """A fact; returns its id."""
        target = more.pop("target", "")
        new = NewFact(more.pop("subject", ""), text, more.pop("source", "message 1"), quote=more.pop("quote", text),
                      target=target, target_line=f"- {text}" if target else "", **more)  # fmt: skip

        def act(stores: Stores) -> str:
            if target:
                stores.files.append_line(target, "", f"- {text}")
            fact_id = str(stores.facts.record(new).fact.id)
            stores.ledger.write_facts_json()
            return fact_id

        return str(self.fill(act))

    def says(self) -> list[str]:
        """The live facts."""
        return [str(item["fact"]) for item in self.memory("list", "--json").data]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Desk:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OLLAMA_HOST", raising=False)
    root = tmp_path / "project"
    root.mkdir()

    def run(*args: str, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(stdin.encode()), encoding="utf-8"))
        capfd.readouterr()
        with pytest.raises(SystemExit) as exit_:
            app(list(args), prog_name="tui-agent")
        printed = capfd.readouterr()
        return Ran(int(exit_.value.code or 0), printed.out, printed.err)

    return Desk(root, tmp_path / "home", run)


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person is there to be asked; the answer comes from stdin."""
    for module in (memory_facts, memory_care, handoff_command):
        monkeypatch.setattr(module, "asks", lambda: True)


def in_memory(desk: Desk, act: Callable[[WorkingMemory], Any]) -> Any:
    """Runs a coroutine function on the working memory of session ``s1``, and saves it."""

    async def run(stores: Stores) -> Any:
        working = WorkingMemory(stores.db, scope=working_scope(stores.project), session_id="s1")
        await working.load("s1")
        result = await act(working)
        await working.save()
        return result

    return desk.fill(lambda stores: asyncio.run(run(stores)))


# --- help and usage -------------------------------------------------------------------------------


def test_the_group_lists_every_command(desk: Desk) -> None:
    ran = desk.run("memory", "--help")
    assert ran.code == 0
    assert all(f"  {name} " in ran.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_exit_codes_project_and_json(desk: Desk, name: str) -> None:
    text = desk.run("memory", name, "--help").out
    assert "Examples:" in text
    assert f"tui-agent memory {name}" in text
    assert "Exit codes: 0" in text
    assert "-C, --project" in text
    assert "--json" in text


def test_an_unknown_command_or_folder_is_wrong_usage(desk: Desk) -> None:
    assert desk.run("memory", "forget").code == 2
    ran = desk.run("memory", "list", "-C", str(desk.root / "nowhere"))
    assert ran.code == 2
    assert "There is no folder" in ran.err


def test_reading_commands_make_nothing_in_a_folder_without_memory(desk: Desk) -> None:
    for name in (("list",), ("search", "x"), ("stats",), ("check",), ("log",), ("backup",)):
        ran = desk.memory(*name)
        assert ran.code == 6
        assert "There is no memory in" in ran.err
    assert list(desk.root.iterdir()) == []


def test_a_broken_database_is_exit_code_one_with_the_way_out(desk: Desk) -> None:
    desk.fact("We use pnpm.")
    (desk.root / ".agent-memory/memory.db").write_bytes(b"garbage" * 1000)
    ran = desk.memory("list")
    assert (ran.code, ran.out) == (1, "")
    assert "tui-agent memory restore" in ran.err


def test_commands_import_neither_textual_nor_chromadb(tmp_path: Path) -> None:
    script = """
import contextlib, io, sys, typer
from tui_agent.cli.memory import register
app = typer.Typer(); register(app)
light = [name for name in ("numpy", "tui_agent.memory.facts", "tui_agent.agent.stores") if name in sys.modules]
assert not light, light
where = ["-C", sys.argv[1]]
for args in (["memory", "--help"], ["memory", "add", *where, "We use pnpm"], ["memory", "list", *where],
             ["memory", "search", *where, "pnpm"], ["memory", "why", *where, "pnpm"], ["memory", "check", *where],
             ["memory", "stats", *where], ["memory", "prune", *where], ["memory", "backup", *where],
             ["memory", "share", *where, "status"], ["memory", "log", *where],
             ["handoff", *where, "--task", "Port it"]):
    nowhere = io.StringIO()
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere), contextlib.suppress(SystemExit):
        app(args, prog_name="tui-agent")
heavy = sorted(name for name in sys.modules if name.split(".")[0] in ("textual", "chromadb", "ollama", "xllamacpp"))
assert not heavy, heavy
"""
    root = tmp_path / "project"
    root.mkdir()
    env = {"TUI_AGENT_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        [sys.executable, "-c", script, str(root)], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (root / ".agent-memory/memory.db").exists()


# --- facts ----------------------------------------------------------------------------------------


def test_add_list_and_show_give_back_what_was_said(desk: Desk) -> None:
    added = desk.memory("add", "We", "use", "pnpm,", "not", "npm", "--subject", "package manager", "--json")
    assert added.code == 0
    assert (added.data["action"], added.data["text"]) == ("live", "We use pnpm, not npm")
    (row,) = desk.memory("list", "--json").data
    assert (row["fact"], row["live"], row["source_kind"]) == ("We use pnpm, not npm", True, "user")
    assert row["source"]
    text = desk.memory("list").out
    assert text.startswith(row["id"][-3:])
    shown = desk.memory("show", row["id"][-3:])
    assert "your words" in shown.out
    assert row["id"] in shown.out
    assert json.loads((desk.root / ".agent-memory/facts.json").read_text("utf-8"))["decisions"]


def test_a_text_can_come_from_a_pipe(desk: Desk) -> None:
    assert desk.memory("add", "-", stdin="We deploy from the staging branch.\n").code == 0
    assert desk.says() == ["We deploy from the staging branch."]
    assert desk.memory("add", "-", stdin="  \n").code == 2


def test_a_secret_is_refused_and_never_stored(desk: Desk) -> None:
    ran = desk.memory("add", f"My token is {TOKEN}")
    assert ran.code == 2
    assert ran.out == ""
    assert "secrets are never stored" in ran.err
    assert TOKEN not in ran.err
    every = [path.read_bytes() for path in desk.root.rglob("*") if path.is_file()]
    assert every
    assert not any(TOKEN.encode() in data for data in every)


def test_correct_keeps_the_history_and_undo_takes_it_back(desk: Desk) -> None:
    fact_id = desk.fact("We use npm.", subject="package manager", target="knowledge/tech-stack.md")
    assert desk.memory("correct", fact_id[-4:], "We use pnpm.").code == 0
    assert desk.says() == ["We use pnpm."]
    path = desk.root / ".agent-memory/knowledge/tech-stack.md"
    assert path.read_text("utf-8") == "- We use pnpm.\n"
    (newer,) = desk.memory("list", "--json").data
    chain = desk.memory("show", newer["id"], "--json").data["chain"]
    assert [row["fact"] for row in chain] == ["We use pnpm.", "We use npm."]
    undone = desk.memory("undo")
    assert undone.code == 0
    assert "holds again" in undone.out
    assert desk.says() == ["We use npm."]
    assert path.read_text("utf-8") == "- We use npm.\n"


def test_undo_without_anything_to_undo_is_exit_code_six(desk: Desk) -> None:
    desk.fill(lambda stores: None)
    assert desk.memory("undo").code == 6


def test_confirm_counts_from_today(desk: Desk) -> None:
    fact_id = desk.fact("We use npm.", created_at="2020-01-01 00:00:00")
    assert [row["id"] for row in desk.memory("review", "--json").data] == [fact_id]
    (row,) = desk.memory("confirm", fact_id[-3:], "--json").data
    assert row["confirmed_at"] > "2026"
    assert desk.memory("review", "--json").data == []


def test_expire_ends_now_or_later_or_never(desk: Desk) -> None:
    fact_id = desk.fact("Away until Monday.", target=USER)
    (row,) = desk.memory("expire", fact_id, "--at", "2099-01-31", "--json").data
    assert row["expires_at"] == "2099-01-31 00:00:00"
    assert desk.memory("expire", fact_id, "--never", "--json").data[0]["expires_at"] is None
    assert desk.memory("expire", fact_id, "--at", "soon").code == 2
    assert desk.memory("expire", fact_id, "--at", "2099-01-31", "--never").code == 2
    assert desk.memory("expire", fact_id).code == 0
    assert desk.says() == []
    assert (desk.root / ".agent-memory" / USER).read_text("utf-8") == ""
    assert desk.memory("list", "--all", "--json").data[0]["live"] is False


def test_ids_are_found_by_their_unique_end_and_nothing_is_guessed(desk: Desk) -> None:
    desk.fill(
        lambda stores: [
            stores.db.execute("INSERT INTO memory(id, subject, fact, source) VALUES (?, '', ?, 'test')", (each, each))
            for each in ("m_0191", "m_1191", "k_777")
        ]
    )
    assert desk.memory("show", "777", "--json").data["id"] == "k_777"
    assert desk.memory("show", "fact:777", "--json").data["id"] == "k_777"
    assert desk.memory("show", "m_0191", "--json").data["id"] == "m_0191"
    many = desk.memory("show", "191")
    assert many.code == 2
    assert "fact:0191, fact:1191" in many.err
    assert desk.memory("show", "nope").code == 6
    assert desk.memory("show", "7").code == 2
    assert desk.memory("confirm", "hot:777").code == 2


def test_kinds_and_scopes_can_be_chosen_in_any_language(desk: Desk) -> None:
    desk.fact("We use pnpm.", kind=memory_kind("decision"))
    desk.fact("I prefer tea.", kind=memory_kind("preference"))
    assert [row["fact"] for row in desk.memory("list", "--kind", "decyzja", "--json").data] == ["We use pnpm."]
    assert desk.memory("list", "--kind", "nonsense").code == 2
    assert desk.memory("list", "--scope", "team").code == 2
    assert desk.memory("list", "--scope", "user", "--json").data == []


def memory_kind(name: str) -> Any:
    """A kind by its name."""
    from tui_agent.memory.types import Kind

    return Kind(name)


# --- working memory -------------------------------------------------------------------------------


def test_hot_items_are_pinned_put_away_shown_and_deleted(desk: Desk) -> None:
    item_id = in_memory(desk, lambda working: working.add("log", "the build took 41 seconds"))
    assert desk.memory("pin", item_id[-4:], "--json").data[0]["zone"] == "hot"
    assert in_memory(desk, _rows)[0].pinned
    desk.memory("pin", item_id, "--off")
    assert not in_memory(desk, _rows)[0].pinned
    away = desk.memory("put-away", item_id)
    assert away.out == f"{item_id[-3:]}  put away: the build took 41 seconds\n"
    assert in_memory(desk, _rows) == []
    assert desk.memory("pin", item_id, "--json").data[0]["zone"] == "cold"
    assert "put away by hand" in desk.memory("show", f"cold:{item_id}").out
    assert "put_away" in desk.memory("log", "--working").out
    assert desk.memory("delete", item_id, "--yes").code == 0
    assert desk.memory("show", item_id).code == 6


async def _rows(working: WorkingMemory) -> list[Any]:
    return working.hot()


def test_a_fact_is_not_put_away_for_good_and_the_way_is_named(desk: Desk) -> None:
    ran = desk.memory("put-away", desk.fact("We use pnpm."))
    assert ran.code == 2
    assert "memory expire" in ran.err


# --- deletion -------------------------------------------------------------------------------------


def test_delete_needs_a_yes_and_leaves_nothing(desk: Desk) -> None:
    fact_id = desk.fact("My cat is called Filemon.", target=USER)
    assert desk.memory("delete", fact_id).code == 2
    assert desk.says() == ["My cat is called Filemon."]
    ran = desk.memory("delete", fact_id, "--yes", "--json")
    assert ran.code == 0
    (report,) = ran.data
    assert (report["occurrences"], report["facts"], report["left"]) == (0, 1, [])
    assert any("Copies outside" in text for text in report["beyond"])
    assert not any(b"Filemon" in path.read_bytes() for path in desk.root.rglob("*") if path.is_file())


@pytest.mark.usefixtures("at_terminal")
def test_delete_asks_and_only_yes_is_yes(desk: Desk) -> None:
    fact_id = desk.fact("My cat is called Filemon.")
    for answer in ("\n", "no\n", "nie\n", ""):
        assert desk.memory("delete", fact_id, stdin=answer).code == 2
    assert desk.says() == ["My cat is called Filemon."]
    asked = desk.memory("delete", fact_id, stdin="tak\n")
    assert asked.code == 0
    assert "My cat is called Filemon." in asked.err
    assert "0 occurrences left" in asked.out


def test_what_is_left_of_a_deletion_is_exit_code_one_with_its_place(desk: Desk) -> None:
    fact_id = desk.fact("We never deploy on Fridays.")
    (desk.root / ".agent-memory/rules.md").write_text("- We never deploy on Fridays.\n", encoding="utf-8")
    ran = desk.memory("delete", fact_id, "--yes")
    assert ran.code == 1
    assert "rules.md, line 1 (1x)" in ran.out


def test_the_next_command_finishes_a_deletion_that_was_killed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    fact_id = desk.fact("My cat is called Filemon.", target=USER)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def act(stores: Stores) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(shredding, "_scrub_files", die)
            with pytest.raises(KeyboardInterrupt):
                shredding.shred(stores, fact_id)

    desk.fill(act)
    assert "An interrupted deletion was finished" in desk.memory("list").err
    assert not any(b"Filemon" in path.read_bytes() for path in desk.root.rglob("*") if path.is_file())
    assert desk.memory("stats").err == ""


def test_a_text_that_no_fact_says_can_be_taken_out_too(desk: Desk) -> None:
    def act(stores: Stores) -> None:
        stores.history.append(stores.history.start_session().id, "user", "my neighbour Xaviera is moving out")

    desk.fill(act)
    assert desk.memory("delete", "--text", "yes", "--yes").code == 2
    assert desk.memory("delete", "--yes").code == 2
    ran = desk.memory("delete", "--text", "-", "--yes", "--json", stdin="neighbour xaviera\n")
    assert (ran.code, ran.data[0]["occurrences"], ran.data[0]["records"]) == (0, 0, 1)
    assert not any(b"Xaviera" in path.read_bytes() for path in desk.root.rglob("*") if path.is_file())


def test_a_deletion_beside_an_open_window_says_so(desk: Desk) -> None:
    fact_id = desk.fact("My cat is called Filemon.")
    stores = desk.stores()
    try:
        ran = desk.memory("delete", fact_id, "--yes")
    finally:
        stores.close()
    assert "Another window has this project open" in ran.err


# --- search and why -------------------------------------------------------------------------------


def test_search_prints_hits_or_exits_six(desk: Desk) -> None:
    desk.fact("We deploy from the staging branch.")
    hits = desk.memory("search", "staging", "--json").data
    assert [hit["text"] for hit in hits] == ["We deploy from the staging branch."]
    none = desk.memory("search", "kangaroo")
    assert (none.code, none.out) == (6, "")
    assert desk.memory("search", "-", stdin="staging").code == 0


def test_past_messages_are_searched_on_request(desk: Desk) -> None:
    def act(stores: Stores) -> None:
        stores.history.append(stores.history.start_session().id, "user", "the Zażółć case is closed")

    desk.fill(act)
    assert "Zażółć" in desk.memory("search", "--messages", "zazolc").out
    assert desk.memory("search", "-m", "kangaroo").code == 6


def _recorded(stores: Stores) -> tuple[str, str]:
    session = stores.history.start_session()
    asked = stores.history.append(session.id, "user", "how do we deploy?")
    answer = stores.history.append(session.id, "assistant", "From staging.")
    terms = (Term("words", 0.5, "deploy"), Term("importance", 0.25))
    item = RecalledItem("fact", "f" * 26, "We deploy from staging.", 0.75, terms, rank=1, source="message 1", quote="q")
    near = RecalledItem("fact", "e" * 26, "We lunch at noon.", 0.1, (Term("words", 0.1),), status="threshold")
    stores.history.save_recall(
        answer.id, RecallRecord("how do we deploy?", "", (item,), (near,), 0.25, ("words",), 3.0)
    )
    return asked.id, answer.id


@pytest.mark.parametrize("which", ["answer", "question", "last", "end", "prefixed"])
def test_why_prints_the_stored_record_of_an_answer(desk: Desk, which: str) -> None:
    asked, answer = desk.fill(_recorded)
    given = {"answer": answer, "question": asked, "last": "last", "end": answer[-5:], "prefixed": f"message:{answer}"}
    ran = desk.memory("why", given[which], "--json")
    assert ran.code == 0
    assert ran.data["message_id"] == answer
    assert [term["value"] for term in ran.data["items"][0]["terms"]] == [0.5, 0.25]
    text = desk.memory("why", given[which]).out
    assert "1. fact:fff  We deploy from staging." in text
    assert "+0.750  score" in text
    assert "+0.500  words  (deploy)" in text
    assert "because: score below the threshold" in text


def test_why_recalls_anew_for_a_question_and_its_terms_add_up(desk: Desk) -> None:
    desk.fact("We deploy from the staging branch.")
    data = desk.memory("why", "where do we deploy from?", "--json").data
    assert data["message_id"] == ""
    (item,) = data["items"]
    assert sum(term["value"] for term in item["terms"]) == pytest.approx(item["score"])
    assert "What would be recalled now" in desk.memory("why", "where do we deploy from?").out


def test_why_shows_the_block_as_it_was_sent_and_what_else_the_request_carried(desk: Desk) -> None:
    def act(stores: Stores) -> str:
        session = stores.history.start_session()
        stores.history.append(session.id, "user", "how do we deploy?")
        answer = stores.history.append(
            session.id,
            "assistant",
            "From staging.",
            meta={"tools": [{"name": "recall", "arguments": {"query": "x"}, "result": "[fact] y", "ok": True}]},
        )
        item = RecalledItem("fact", "f" * 26, "We deploy from staging.", 0.75, (), rank=1, kind="fact", source="m 1")
        extra = {
            "place": {"epoch": 1, "index": 0},
            "date": "2026-11-30",
            "notes": ["rules.md was changed"],
            "skills": [{"name": "deploy", "text": "Use the blue script."}],
            "put_away": {
                "head": "[put away · x]",
                "lines": [{"id": "0abcd", "line": "abcd log one (3)"}],
                "more": 2,
                "tokens": 9,
            },
            "in_view": ["fact:abc"],
            "fixed": [{"name": "AGENTS.md", "hash": "12", "tokens": 7}],
        }
        record = RecallRecord("how do we deploy?", "", (item,), (), 0.25, ("words",), 3.0, extra=extra)
        stores.history.save_recall(answer.id, record)
        return answer.id

    answer = desk.fill(act)
    data = desk.memory("why", answer, "--json").data
    assert data["as_sent"] == (
        '<data date="2026-11-30">\nrules.md was changed\n[fact · fff · m 1] We deploy from staging.\n'
        "[put away · x]\nabcd log one (3)\n+2 more\n"
        '[skill "deploy"]\nUse the blue script.\n</data>'
    )
    assert data["tools"] == [{"name": "recall", "arguments": {"query": "x"}, "result": "[fact] y"}]
    text = desk.memory("why", answer).out
    for part in ("skill deploy", "rules.md was changed", "AGENTS.md", "fact:abc", "recall", "abcd log one", "+2 more"):
        assert part in text


def test_topics_are_listed_added_and_taken_back_and_respected_by_why(desk: Desk) -> None:
    fact = desk.fact("We deploy from the staging branch.")
    assert desk.memory("topics").code == 0
    added = desk.memory("topics", fact, "where do we deploy from?", "--json")
    assert added.code == 0
    assert "never for: where do we deploy from?" in desk.memory("topics").out
    data = desk.memory("why", "where do we deploy from?", "--json").data
    assert data["items"] == []
    assert [item["status"] for item in data["near"]] == ["topic"]
    assert desk.memory("topics", "--remove", added.data["id"]).code == 0
    assert len(desk.memory("why", "where do we deploy from?", "--json").data["items"]) == 1
    assert desk.memory("topics", "--remove", "zzz").code == 6
    assert desk.memory("topics", fact).code == 2


def test_why_without_anything_to_say_is_exit_code_six(desk: Desk) -> None:
    desk.fill(lambda stores: stores.history.append(stores.history.start_session().id, "user", "hello"))
    assert desk.memory("why", "last").code == 6
    assert desk.memory("why", "message:nope").code == 6
    assert desk.memory("why", "kangaroo", "jumps").code == 6


# --- queues ---------------------------------------------------------------------------------------


def _waiting(stores: Stores) -> list[str]:
    return [
        stores.facts.quarantine(
            Proposal(text, Origin.WEB, "remember", "web page fetched in task 41"), "not your word"
        ).id
        for text in ("The API needs Python 3.12.", "Checks are always off.")
    ]


def test_what_waits_is_listed_approved_and_rejected(desk: Desk) -> None:
    first, second = desk.fill(_waiting)
    listed = desk.memory("quarantine")
    assert "not your word" in listed.out
    assert [item["id"] for item in desk.memory("quarantine", "--json").data] == [first, second]
    assert "web page fetched in task 41" in desk.memory("show", f"waiting:{second}").out
    assert desk.memory("approve", first[-4:]).code == 0
    assert desk.memory("reject", second[-4:]).code == 0
    assert desk.says() == ["The API needs Python 3.12."]
    assert desk.memory("quarantine", "--json").data == []
    assert desk.memory("approve", first).code == 6


def test_everything_that_waits_can_be_decided_at_once(desk: Desk) -> None:
    desk.fill(_waiting)
    assert desk.memory("reject").code == 2
    assert desk.memory("reject", "--all").out.count("turned away") == 2
    assert desk.memory("reject", "--all").code == 6


def test_new_rows_show_their_foreign_source(desk: Desk) -> None:
    desk.fact("Old.", created_at="2020-01-01 00:00:00")
    desk.fact("From a page.", source="https://example.org", source_kind=Origin.WEB)
    out = desk.memory("new").out
    assert "From a page. (web, https://example.org)" in out
    assert "Old." not in out
    assert len(desk.memory("new", "--days", "9999", "--json").data) == 2


def test_log_and_stats_count_what_happened(desk: Desk) -> None:
    fact_id = desk.fact("We use npm.", subject="manager")
    newer = desk.fact("We use pnpm.", subject="manager")
    lines = desk.memory("log", "--json").data
    assert [line["event"] for line in lines] == ["supersede", "add"]
    assert "We use npm. → We use pnpm." in desk.memory("log", newer).out
    assert len(desk.memory("log", fact_id, "--json").data) == 2
    stats = desk.memory("stats", "--json").data
    assert (stats["facts"]["memory"], stats["facts"]["live_memory"], stats["healthy"]) == (2, 1, True)
    assert "CREATE VIEW live_memory" in desk.memory("stats", "--schema").out


# --- care -----------------------------------------------------------------------------------------


def test_prune_runs_once_a_day_when_asked_so(desk: Desk) -> None:
    desk.fact("Away.", expires_at="2020-01-01 00:00:00")
    assert desk.memory("prune", "--dry-run", "--json").data["expired"] == 1
    assert desk.memory("prune", "--if-due", "--json").data["expired"] == 1
    assert desk.memory("prune", "--if-due", "--json").data == {"due": False}


def test_backup_prints_its_folder_and_restore_brings_it_back(desk: Desk) -> None:
    desk.fact("We use npm.")
    made = desk.memory("backup")
    folder = Path(made.out.strip())
    assert (folder / "manifest.json").exists()
    assert "1 fact and 0 messages" in made.err
    desk.fact("We use pnpm.")
    assert desk.memory("backup", "--list").out.rstrip().endswith("  1 fact")
    dry = desk.memory("restore", "latest")
    assert dry.code == 0
    assert "− We use pnpm." in dry.out
    assert "Add --yes" in dry.err
    assert set(desk.says()) == {"We use npm.", "We use pnpm."}
    done = desk.memory("restore", folder.name, "--yes", "--json")
    assert (done.code, done.data["restored"]) == (0, True)
    assert desk.says() == ["We use npm."]
    assert desk.memory("restore", "1999").code == 6


@pytest.mark.usefixtures("at_terminal")
def test_restore_asks_at_a_terminal(desk: Desk) -> None:
    desk.fact("We use npm.")
    desk.memory("backup")
    desk.fact("We use pnpm.")
    assert desk.memory("restore", "latest", stdin="n\n").code == 2
    asked = desk.memory("restore", "latest", stdin="y\n")
    assert asked.code == 0
    assert "− We use pnpm." in asked.err
    assert desk.says() == ["We use npm."]


def test_nothing_is_restored_beside_an_open_window_but_everything_else_works(desk: Desk) -> None:
    desk.fact("We use npm.")
    desk.memory("backup")
    stores = desk.stores()
    try:
        assert desk.memory("add", "We use pnpm for the admin page").code == 0
        assert desk.memory("backup").code == 0
        assert desk.memory("prune").code == 0
        assert desk.memory("check").code == 0
        assert len(stores.facts.live()) == 2
        ran = desk.memory("restore", "latest", "--yes")
    finally:
        stores.close()
    assert ran.code == 1
    assert "open in another window or command" in ran.err


def test_a_damaged_database_is_restored_by_the_command_its_error_names(desk: Desk) -> None:
    desk.fact("We use npm.")
    desk.memory("backup")
    (desk.root / ".agent-memory/memory.db").write_bytes(b"garbage" * 1000)
    assert desk.memory("list").code == 1
    assert desk.memory("restore", "latest", "--yes").code == 0
    assert desk.says() == ["We use npm."]


def test_check_exits_one_when_something_is_broken(desk: Desk) -> None:
    desk.fact("We use npm.")
    folder = Path(desk.memory("backup").out.strip())
    fine = desk.memory("check", "--json")
    assert (fine.code, fine.data["state"]) == (0, "ok")
    (folder / "memory.db").write_bytes(b"x")
    broken = desk.memory("check")
    assert broken.code == 1
    assert "broken" in broken.out


def test_paths_name_everything_with_size_and_mode(desk: Desk) -> None:
    desk.fact("We use npm.")
    listed = {Path(row["path"]).name: row for row in desk.memory("paths", "--json").data}
    assert listed["memory.db"]["bytes"] > 0
    assert listed["memory.db"]["mode"] == "-rw-------"
    assert listed["models"]["exists"] is False


# --- exchange and sharing -------------------------------------------------------------------------


def test_export_and_import_give_back_the_same_facts(desk: Desk, tmp_path: Path) -> None:
    desk.fact("We use pnpm.", kind=memory_kind("decision"))
    out = desk.memory("export").data
    assert out["decisions"][0]["decision"] == "We use pnpm."
    target = tmp_path / "facts.json"
    assert desk.memory("export", str(target)).code == 0
    assert desk.memory("export", str(target)).code == 2
    assert json.loads(target.read_text("utf-8")) == out
    other = tmp_path / "other"
    other.mkdir()
    dry = desk.run("memory", "import", str(target), "--dry-run", "-C", str(other), "--json")
    assert dry.data["counts"] == {"quarantine": 1}
    waits = desk.run("memory", "import", str(target), "-C", str(other), "--json")
    assert waits.data["counts"] == {"quarantine": 1}
    assert waits.data["backup"].endswith("before-import")
    assert desk.run("memory", "list", "-C", str(other), "--json").data == []
    mine = desk.run("memory", "import", "-", "--mine", "-C", str(other), "--json", stdin=target.read_text("utf-8"))
    assert mine.data["counts"] == {"live": 1}


def test_a_file_of_another_shape_is_not_imported(desk: Desk, tmp_path: Path) -> None:
    wrong = tmp_path / "facts.json"
    wrong.write_text('{"facts": [{"text": "x"}]}', encoding="utf-8")
    ran = desk.memory("import", str(wrong))
    assert ran.code == 2
    assert "facts[0]" in ran.err
    assert desk.memory("import", str(tmp_path / "none.json")).code == 6


def test_share_looks_first_and_asks_for_a_yes_about_personal_data(desk: Desk) -> None:
    desk.fact("My name is Kacper.")
    assert "private" in desk.memory("share", "status").out
    ran = desk.memory("share", "on")
    assert ran.code == 2
    assert "facts.json:1: name" in ran.err
    assert desk.memory("share", "status", "--json").data["mode"] == "private"
    shared = desk.memory("share", "on", "--yes", "--json")
    assert shared.data["mode"] == "shared"
    assert shared.data["concerns"][0]["kind"] == "name"
    assert desk.memory("share", "off", "--json").data["mode"] == "private"
    assert desk.memory("share", "maybe").code == 2


def test_a_secret_is_never_shared_whatever_was_said(desk: Desk) -> None:
    desk.fact("We use pnpm.")
    (desk.root / ".agent-memory/knowledge/tech-stack.md").write_text(f"token: {TOKEN}\n", encoding="utf-8")
    ran = desk.memory("share", "on", "--yes")
    assert ran.code == 1
    assert "tech-stack.md:1" in ran.err
    assert TOKEN not in ran.err
    assert desk.memory("share", "status", "--json").data["mode"] == "private"


# --- hand-off -------------------------------------------------------------------------------------


def _talk(stores: Stores) -> None:
    session = stores.history.start_session(goal="Make the quarterly report")
    said = stores.history.append(session.id, "user", "Make the quarterly report, only active projects.")
    stores.history.append(session.id, "assistant", "Fine.")
    stores.history.append(session.id, "user", "what if we add archived… no, leave them out")
    stores.facts.add(NewFact("", "Only active projects.", "message", message_id=said.id))
    stores.facts.add(NewFact("", "We lunch at noon.", "another session"))


def test_a_packet_is_drafted_from_what_was_concluded(desk: Desk) -> None:
    desk.fill(_talk)
    ran = desk.run("handoff", "-C", str(desk.root))
    assert ran.code == 0
    assert ran.data == {
        "task": "Make the quarterly report",
        "requirements": ["Only active projects", "exclude archived"],
        "format": "",
        "constraints_confirmed_by_user": False,
    }
    assert "tokens (about 50 are meant)" in ran.err
    assert "Unconfirmed" in ran.err


@pytest.mark.usefixtures("at_terminal")
def test_only_a_yes_of_the_user_confirms_a_packet(desk: Desk) -> None:
    desk.fill(_talk)
    where = ("handoff", "-C", str(desk.root))
    assert desk.run(*where, stdin="n\n").data["constraints_confirmed_by_user"] is False
    confirmed = desk.run(*where, stdin="y\n")
    assert confirmed.data["constraints_confirmed_by_user"] is True
    assert "Are the task and these requirements right?" in confirmed.err
    assert desk.run(*where, "--no-ask", stdin="y\n").data["constraints_confirmed_by_user"] is False


def test_a_packet_from_outside_is_unconfirmed_and_checked(desk: Desk, tmp_path: Path) -> None:
    desk.fill(_talk)
    where = ("handoff", "-C", str(desk.root), "--from", "-")
    good = {"task": "Port it", "requirements": ["no new pages"], "format": "", "constraints_confirmed_by_user": True}
    assert desk.run(*where, stdin=json.dumps(good)).data["constraints_confirmed_by_user"] is False
    for bad, said in (
        ({**good, "history": []}, "does not belong"),
        ({**good, "requirements": ["User: leave them out"]}, "names who speaks"),
        ({**good, "requirements": [f"use {TOKEN}"]}, "password, key or token"),
        ([], "one JSON object"),
    ):
        ran = desk.run(*where, stdin=json.dumps(bad))
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
    target = tmp_path / "packet.json"
    assert desk.run(*where, "-o", str(target), stdin=json.dumps(good)).code == 0
    assert json.loads(target.read_text("utf-8"))["task"] == "Port it"
    assert desk.run(*where, "-o", str(target), stdin=json.dumps(good)).code == 2


def test_flags_replace_what_was_drafted(desk: Desk) -> None:
    desk.fill(_talk)
    ran = desk.run("handoff", "-C", str(desk.root), "--task", "Port it", "-r", "no new pages", "--format", "one table")
    assert (ran.data["task"], ran.data["requirements"], ran.data["format"]) == (
        "Port it",
        ["no new pages"],
        "one table",
    )
    assert desk.run("handoff", "-C", str(desk.root), "--task", " ").code == 2


# --- printing -------------------------------------------------------------------------------------


def test_stored_text_cannot_act_on_the_terminal(desk: Desk) -> None:
    desk.fact("red \x1b[31malert\x1b[0m and\u202e reversed\nsecond line")
    out = desk.memory("list").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert len(out.splitlines()) == 1
    assert "\x1b" in desk.memory("list", "--json").data[0]["fact"]


def test_lines_are_cut_by_columns_and_never_in_the_middle_of_a_letter() -> None:
    assert one_line("a\tb\n c") == "a b c"
    assert one_line("żółć żółć", 5) == "żółć…"
    assert one_line("漢字漢字", 5) == "漢字…"
    assert many_lines("a\x07\r\nb\x1b") == "a·\nb·"
    assert columns("漢字e\u0301") == 5


def test_columns_are_aligned_and_empty_ones_take_no_room() -> None:
    assert table([["a", "", "one"], ["bbb", "", "two\nlines"]]) == ["a    one", "bbb  two lines"]
    assert table([]) == []


def test_ids_are_shown_by_their_shortest_unique_end() -> None:
    assert short_ids(["xxabc", "yyabd"]) == {"xxabc": "abc", "yyabd": "abd"}
    assert short_ids(["1xabc", "2yabc"]) == {"1xabc": "xabc", "2yabc": "yabc"}
    assert short_ids([]) == {}
