"""Help: grouped, with examples in every command, and a page of the whole program."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from tests.cli.conftest import Shell
from tui_agent.cli.main import app


def commands(group: Any = None, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command by its path."""
    group = group or get_command(app)
    found = []
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        below = hasattr(command, "list_commands")
        found += commands(command, (*path, name)) if below else [(*path, name)]
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_has_examples_that_begin_with_its_name(shell: Shell, path: tuple[str, ...]) -> None:
    out = shell.run(*path, "--help").out
    assert "Examples:" in out
    assert f"tui-agent {' '.join(path)}" in out


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_says_its_exit_codes_and_names_what_it_takes_as_a_manual_does(
    shell: Shell, path: tuple[str, ...]
) -> None:
    out = shell.run(*path, "--help").out
    if path != ("help",):
        assert "Exit codes: 0 " in out
    usage = out.partition("\n\n")[0]
    assert not re.search(r"[{}<>]|\[\[", usage), usage
    assert "<str>" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("group", ["models", "memory"])
def test_the_commands_of_a_group_are_listed_with_whole_sentences(shell: Shell, group: str) -> None:
    out = shell.run(group, "--help").out
    assert "..." not in out.partition("\nCommands:")[2]
    assert max(map(len, out.splitlines())) <= 80


def test_the_list_of_commands_is_grouped_and_its_sentences_are_whole(shell: Shell) -> None:
    out = shell.run("--help").out
    places = [out.index(f"{title}:") for title in ("Talk", "Memory", "Server and models", "Help")]
    assert places == sorted(places)
    assert "..." not in out[places[0] :]


def test_the_page_names_every_command_file_and_variable(shell: Shell) -> None:
    out = shell.run("help").out
    for path in commands():
        assert path[-1] in out.replace("-\n" + " " * 20, "-"), path
    for word in ("SYNOPSIS", "FILES", "ENVIRONMENT", "EXIT CODES", "OLLAMA_HOST", ".agent-memory/memory.db"):
        assert word in out
    assert max(len(line) for line in out.splitlines() if str(shell.root.parent) not in line) <= 80


def test_help_of_a_command_is_its_own_help(shell: Shell) -> None:
    assert shell.run("help", "memory", "why").out.strip() == shell.run("memory", "why", "--help").out.strip()


def test_an_unknown_command_is_named(shell: Shell) -> None:
    ran = shell.run("help", "memory", "nope")
    assert ran.code == 2
    assert "tui-agent memory has no command 'nope'" in ran.err


def test_help_starts_without_anything_heavy() -> None:
    code = (
        "import sys\nfrom tui_agent.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print({'pydantic', 'httpx', 'ollama', 'textual', 'numpy', 'chromadb', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines()[-1] == "set()"
