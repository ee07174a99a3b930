"""``memory extract`` and ``memory check-extraction`` on a scripted model server."""

from __future__ import annotations

import json

from tests.cli.conftest import MODEL, Ran, Shell
from tui_agent.agent.stores import Stores
from tui_agent.llm.wire.script import Fail, Script, answer
from tui_agent.memory.extraction_check import CheckLog, shipped_cases
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings

DECISION = "We agreed to go with Redis Streams for the job queue."
FOUND = answer(json.dumps([{"fact": DECISION, "category": "decision", "quote": DECISION, "message_id": "m1"}]))


def memory(shell: Shell, *args: str) -> Ran:
    return shell.run("memory", args[0], "-C", str(shell.root), *args[1:])


def to_server(shell: Shell) -> tuple[str, ...]:
    return ("--host", shell.server.url, "--model", MODEL)


def stores(shell: Shell) -> Stores:
    return Stores.open(Project.open(shell.root), Settings(), UserPaths.find())


def talk(shell: Shell, *texts: str) -> str:
    """A session in which the user said something; its id."""
    opened = stores(shell)
    try:
        session = opened.history.start_session()
        for text in texts:
            opened.history.append(session.id, "user", text)
            opened.history.append(session.id, "assistant", "Good.")
        return session.id
    finally:
        opened.close()


def test_extract_searches_what_was_not_searched_and_says_what_it_kept(shell: Shell) -> None:
    session = talk(shell, DECISION, "What is a stream?")
    shell.backend.queue(FOUND)
    ran = memory(shell, "extract", *to_server(shell))
    assert ran.code == 0, ran.err
    assert ran.out.startswith(session[-3:])
    assert "Kept 1 fact" in ran.out
    assert DECISION in ran.out
    assert shell.server.chats[-1].body["format"]["type"] == "array"
    assert "tools" not in shell.server.chats[-1].body
    again = memory(shell, "extract", *to_server(shell), "--json")
    assert (again.code, json.loads(again.out)) == (0, [])
    assert len(shell.server.chats) == 1


def test_extract_of_one_session_as_json(shell: Shell) -> None:
    talk(shell, "We decided to drop Internet Explorer for good.")
    session = talk(shell, DECISION)
    shell.backend.queue(FOUND)
    ran = memory(shell, "extract", *to_server(shell), session[-8:], "--json")
    assert ran.code == 0, ran.err
    (report,) = json.loads(ran.out)
    assert report["session_id"] == session
    assert [(item["what"], item["text"]) for item in report["items"]] == [("kept", DECISION)]
    assert report["compression"] == report["tokens_in"] / report["tokens_out"]
    assert len(shell.server.chats) == 1


def test_extract_says_when_the_model_cannot_be_asked_and_keeps_the_session_for_later(shell: Shell) -> None:
    talk(shell, DECISION)
    shell.backend.queue(Script(Fail(400, "no")))
    ran = memory(shell, "extract", *to_server(shell))
    assert ran.code == 5
    assert "could not be asked" in ran.err
    shell.backend.queue(FOUND)
    assert "Kept 1 fact" in memory(shell, "extract", *to_server(shell)).out


def test_extract_without_a_server_or_of_an_unknown_session(shell: Shell) -> None:
    talk(shell, DECISION)
    assert memory(shell, "extract", "--host", "http://127.0.0.1:9", "--model", MODEL).code == 3
    assert memory(shell, "extract", *to_server(shell), "zzzz").code == 6


def test_the_check_runs_the_shipped_cases_and_keeps_the_result_with_the_model(shell: Shell) -> None:
    shell.backend.default = answer("[]")
    ran = memory(shell, "check-extraction", *to_server(shell), "--json")
    assert ran.code == 0, ran.err
    result = json.loads(ran.out)
    expected = sum(len(case["expect"]) for case in shipped_cases())
    assert (result["score"]["cases"], result["score"]["expected"]) == (len(shipped_cases()), expected)
    assert result["score"]["found"] == 0
    assert set(result["by_language"]) == {"en", "pl", "ru"}
    opened = stores(shell)
    try:
        kept = CheckLog(opened.db).last()
        assert kept is not None
        assert (kept.model, kept.digest) == (MODEL, result["digest"])
        assert CheckLog(opened.db).concern(MODEL, "sha256:other") != ""
    finally:
        opened.close()
    last = memory(shell, "check-extraction", "--last")
    assert f"found 0 of {expected} facts" in last.out


def test_the_last_check_where_there_was_none_is_nothing_found(shell: Shell) -> None:
    talk(shell, "hello")
    ran = memory(shell, "check-extraction", "--last")
    assert ran.code == 6
    assert "never checked" in ran.err


def test_the_shipped_cases_cover_three_languages_and_hold_what_must_not_be_kept() -> None:
    cases = shipped_cases()
    assert {case["lang"] for case in cases} == {"en", "pl", "ru"}
    assert len({case["id"] for case in cases}) == len(cases)
    assert all(case["conversation"] for case in cases)
    assert any(not case["expect"] for case in cases)
    assert sum(bool(case["forbidden"]) for case in cases) >= 10
