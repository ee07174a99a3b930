"""``tui-agent models`` against a scripted model server over real sockets."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import MODEL, Ran, Shell
from tui_agent.llm.wire import pulls
from tui_agent.llm.wire.catalog import model


@pytest.fixture
def models(shell: Shell):  # type: ignore[no-untyped-def]
    """Runs ``models`` commands on the test's server."""
    shell.backend.installed.append(model("gemma3:4b", capabilities=("completion",), context_length=8192))

    def run(*args: str) -> Ran:
        return shell.run("models", *args, "-C", str(shell.root), "--host", shell.server.url)

    return run


def test_list_shows_size_window_abilities_and_what_is_loaded(shell: Shell, models) -> None:  # type: ignore[no-untyped-def]
    shell.ask("hi")
    ran = models("list")
    assert ran.code == 0
    assert ran.out.splitlines()[0].split() == ["NAME", "SIZE", "PARAMETERS", "WINDOW", "NOW", "CAN"]
    mine = next(line for line in ran.out.splitlines() if MODEL in line)
    assert "loaded CPU" in mine
    assert "986 MB" in mine
    assert mine.rstrip().endswith("tools")
    assert "no tools" in next(line for line in ran.out.splitlines() if "gemma3:4b" in line)


def test_list_as_json_is_one_document(models) -> None:  # type: ignore[no-untyped-def]
    found = json.loads(models("list", "--json").out)
    assert {one["name"] for one in found} == {MODEL, "gemma3:4b"}
    assert found[0]["loaded"] is None
    assert found[0]["tool_calling"] is None


def test_show_probes_on_request_and_remembers(models) -> None:  # type: ignore[no-untyped-def]
    assert "not tried yet (--probe)" in models("show", MODEL).out
    assert "calls tools" in models("show", MODEL, "--probe").out
    assert json.loads(models("show", MODEL, "--json").out)["tool_calling"] == "native"


def test_ps_and_unload(shell: Shell, models) -> None:  # type: ignore[no-untyped-def]
    assert "No model is loaded" in models("ps").err
    shell.ask("hi")
    ran = models("ps")
    assert MODEL in ran.out
    assert "unloads in 30 min" in ran.out
    assert "is unloaded" in models("unload", MODEL).out
    assert json.loads(models("ps", "--json").out) == []


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("show", "nope"), 4, "not installed"),
        (("unload", "nope"), 4, "not installed"),
        (("pull", "no pe!"), 2, "no model name"),
    ],
)
def test_names_that_are_none_have_their_exit_codes(  # type: ignore[no-untyped-def]
    models, args: tuple[str, ...], code: int, words: str
) -> None:
    ran = models(*args)
    assert ran.code == code
    assert words in ran.err
    assert ran.out == ""


def test_a_dead_server_is_3(shell: Shell) -> None:
    ran = shell.run("models", "list", "-C", str(shell.root), "--host", "http://127.0.0.1:1")
    assert ran.code == 3
    assert "http://127.0.0.1:1" in ran.err


def test_pull_shows_progress_and_the_model_is_there(shell: Shell, models) -> None:  # type: ignore[no-untyped-def]
    shell.backend.queue_pulls("qwen3:4b", pulls.backwards(1_000_000))
    ran = models("pull", "qwen3:4b")
    assert ran.code == 0
    assert ran.out == ""
    assert "qwen3:4b is installed." in ran.err
    shares = [int(line.split("%")[0]) for line in ran.err.splitlines() if "%" in line]
    assert shares == sorted(shares)
    assert "qwen3:4b" in models("list").out


def test_pull_as_json_ends_with_its_outcome(shell: Shell, models, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("tui_agent.llm.client.ModelClient._pause", lambda self, attempt: 0.0)
    shell.backend.queue_pulls("qwen3:4b", pulls.cut_off(400, 100, at=200), pulls.whole(400, 100))
    ran = models("pull", "qwen3:4b", "--json")
    assert ran.code == 0
    assert {event["event"] for event in ran.events[:-1]} == {"pull_progress"}
    assert ran.events[-1] == {
        "event": "pull_finished", "status": "done", "text": "qwen3:4b is installed.", "exit_code": 0,
    }  # fmt: skip
    assert ran.events[-2]["resumed"] == 1
    assert len(ran.events[-2]["layers"]) == 2


@pytest.mark.parametrize(
    ("plan", "code", "words"),
    [
        (pulls.unknown_model(), 4, "no model called qwen3:4b"),
        (pulls.disk_full(400, at=200), 5, "too full"),
        (pulls.offline(), 3, "cannot reach"),
    ],
)
def test_a_pull_that_fails_says_why(  # type: ignore[no-untyped-def]
    shell: Shell, models, plan: tuple[pulls.PullStep, ...], code: int, words: str
) -> None:
    shell.backend.queue_pulls("qwen3:4b", plan)
    ran = models("pull", "qwen3:4b", "--json")
    assert ran.code == code
    assert ran.events[-1]["status"] == "failed"
    assert words in ran.events[-1]["text"]


def test_models_alone_shows_its_help(shell: Shell) -> None:
    ran = shell.run("models", "--help")
    assert ran.code == 0
    for name in ("list", "show", "pull", "ps", "unload"):
        assert name in ran.out
