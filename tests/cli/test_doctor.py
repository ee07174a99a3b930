"""The doctor: nothing to say about a healthy machine, and every planted fault found, named and with its fix."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import MODEL, Ran, Shell
from tests.cli.planting import ALONG, PLANTED, World, filled, free_port, give_vectors, ours
from tui_agent.agent.doctor.checks import CHECKS
from tui_agent.agent.doctor.troubles import TROUBLES
from tui_agent.memory.owner_lock import OwnerLock

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def good_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)


def run(
    shell: Shell,
    *args: str,
    host: str | None = "",
    chat: str = MODEL,
    embed: str = "builtin",
    inside: list[str] | None = None,
) -> Ran:
    """``tui-agent doctor --json``; ``host`` empty is the test's server, ``None`` leaves the flag out. ``inside`` starts
    it as a process of its own, by that command."""
    where = () if host is None else ("--host", host or shell.server.url)
    command = ["doctor", "-C", str(shell.root), *where, "--model", chat, "--embed-model", embed, *args, "--json"]
    if inside is None:
        return shell.run(*command)
    done = subprocess.run(
        [*inside, sys.executable, "-m", "tui_agent", *command], capture_output=True, text=True, check=False
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def faults(ran: Ran) -> dict[str, dict[str, str]]:
    """What is not well, by id."""
    return {one["id"]: one for one in json.loads(ran.out)["findings"] if one["level"] != "ok"}


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# -- health ------------------------------------------------------------------------------------------------------------


def test_a_new_project_on_a_healthy_machine_has_no_fault_and_nothing_is_written(shell: Shell) -> None:
    before = files_below(shell.root.parent)
    ran = run(shell)
    assert faults(ran) == {}
    assert ran.code == 0
    assert json.loads(ran.out)["level"] == "ok"
    assert files_below(shell.root.parent) == before
    assert not (shell.root / ".agent-memory").exists()


def test_a_used_project_has_no_fault_once_its_facts_have_vectors(shell: Shell) -> None:
    project = filled(shell)
    give_vectors(project, ours())
    before = files_below(project.root)
    ran = run(shell)
    assert faults(ran) == {}
    assert ran.code == 0
    assert files_below(project.root) == before


def test_every_check_says_something_in_one_line_and_paths_have_size_and_mode(shell: Shell) -> None:
    filled(shell)
    ran = shell.run("doctor", "-C", str(shell.root), "--host", shell.server.url, "--model", MODEL)
    lines = ran.out.splitlines()
    assert all(line.startswith(("ok ", "degraded ", "broken ")) for line in lines[:-1])
    database = next(line for line in lines if "memory.db (" in line)
    assert " bytes" in database
    assert "mode 600" in database
    assert any("8,192 tokens (num_ctx, default)" in line for line in lines)
    assert any(f"Ollama 0.33.0 answers at {shell.server.url}" in line for line in lines)


def test_only_faults_are_printed_when_asked_for(shell: Shell) -> None:
    ran = shell.run("doctor", "--faults", "-C", str(shell.root), "--host", shell.server.url, "--model", "none:1b")
    assert ran.code == 2
    first, summary = ran.out.splitlines()
    assert first.startswith("broken")
    assert "→ tui-agent models pull none:1b" in first
    assert summary == "1 broken."


def test_nothing_that_was_written_is_sent(shell: Shell) -> None:
    filled(shell)
    before = len(shell.server.requests)
    run(shell)
    asked = [one.path for one in shell.server.requests[before:]]
    assert set(asked) <= {"/api/version", "/api/tags", "/api/ps", "/api/show"}


# -- planted faults ---------------------------------------------------------------------------------------------------


@pytest.fixture
def world(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        yield World(shell, monkeypatch, stack)


@pytest.mark.parametrize("id", PLANTED)
def test_a_planted_fault_is_found_with_its_fix_and_nothing_else_is_named(world: World, id: str) -> None:
    options = PLANTED[id](world) or {}
    ran = run(world.shell, **options)
    found = faults(ran)
    assert id in found, ran.out + ran.err
    assert found[id]["fix"]
    assert "{" not in found[id]["text"] + found[id]["fix"]
    assert set(found) - {id} <= ALONG.get(id, set())
    worst = {"degraded": 1, "broken": 2}
    assert ran.code == max(worst[one["level"]] for one in found.values())


def test_a_fault_that_is_found_makes_the_exit_code_by_the_worst_of_all(world: World) -> None:
    world.patch.setenv("TERM", "vt220")
    world.patch.delenv("COLORTERM")
    ran = run(world.shell, chat="qwen3:4b")
    assert {"terminal.colours", "model.missing"} <= set(faults(ran))
    assert ran.code == 2


def test_the_line_and_key_of_a_broken_setting_are_named(world: World) -> None:
    PLANTED["settings.error"](world)
    text = faults(run(world.shell))["settings.error"]["text"]
    assert "config.yaml, line 2: num_ctx" in text


def test_a_second_window_that_owns_the_index_is_no_fault(world: World) -> None:
    project = filled(world.shell)
    give_vectors(project, ours())
    lock = OwnerLock(project.lock_path)
    assert lock.acquire()
    try:
        ran = run(world.shell)
    finally:
        lock.release()
    assert faults(ran) == {}
    assert f"process {os.getpid()}" in ran.out


def test_an_allowed_cloud_model_is_no_fault_and_is_said_to_leave_the_machine(world: World) -> None:
    assert world.shell.run("allow", "https://ollama.com").code == 0
    ran = run(world.shell, **(PLANTED["consent.cloud"](world) or {}))
    assert "consent.cloud" not in faults(ran)
    assert "You allowed https://ollama.com to get what you write." in ran.out


def test_an_allowed_chroma_server_is_no_fault_and_is_said_to_leave_the_machine(world: World) -> None:
    assert world.shell.run("allow", "vectors.example.com").code == 0
    PLANTED["index.remote"](world)
    ran = run(world.shell)
    assert faults(ran) == {}
    assert "vectors.example.com:8000, which leaves this machine" in ran.out
    assert "You allowed vectors.example.com:8000 to get the vectors of your facts." in ran.out
    assert "Nothing you write leaves this machine." not in ran.out


def test_the_built_in_engine_is_not_asked_for_a_server(world: World) -> None:
    ran = run(world.shell, "--embedded", host=f"127.0.0.1:{free_port()}")
    assert not any(id.startswith("server.") for id in faults(ran))


def test_a_project_that_is_no_folder_is_a_usage_error(shell: Shell) -> None:
    ran = shell.run("doctor", "-C", str(shell.root / "nowhere"))
    assert ran.code == 2
    assert "There is no folder" in ran.err


def test_every_trouble_in_the_table_has_a_fix_and_a_check_of_its_name() -> None:
    names = {check.name for check in CHECKS}
    for id, trouble in TROUBLES.items():
        assert id.partition(".")[0] in names, id
        assert trouble.fix, id
