"""What the shell completes, through the same variables the shells set, and in a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import MODEL, Shell
from tui_agent.cli.completing import fix_bash_words
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer


def complete(*words: str, cwd: Path | None = None, **env: str) -> list[str]:
    """What fish would be offered after these words; the last one is incomplete."""
    line = {"_TUI_AGENT_COMPLETE": "complete_bash", "COMP_WORDS": "\n".join(("tui-agent", *words))}
    full = {**os.environ, **line, "COMP_CWORD": str(len(words)), **env}
    done = subprocess.run(
        [sys.executable, "-m", "tui_agent"], env=full, cwd=cwd, capture_output=True, text=True, timeout=30
    )
    return done.stdout.split("\n")[:-1] if done.stdout.endswith("\n") else done.stdout.split("\n")


def test_the_first_word_may_be_a_command_or_an_option_of_the_chat() -> None:
    assert complete("m") == ["memory", "models"]
    assert {"chat", "ask", "setup", "doctor", "models", "memory", "help"} <= set(complete(""))
    assert {"--model", "--continue", "--version", "--help"} <= set(complete("--"))
    assert complete("--vers") == ["--version"]


def test_commands_below_a_group_are_completed() -> None:
    assert complete("models", "p") == ["pull", "ps"]
    assert complete("memory", "sh") == ["show", "share"]
    assert complete("help", "memory", "wh") == ["why"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("tui-agent models ", "show\tShow one model: size, window, abilities, how it calls tools, and …"),
        ("tui-agent memo", "memory\tLook at what is remembered, and change it"),
        ("tui-agent memory delete --", "--text\tTake this text out of everything, although no fact says it."),
    ],
)
def test_each_completion_has_its_words_on_one_line(line: str, words: str) -> None:
    env = {**os.environ, "_TUI_AGENT_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = subprocess.run(
        [sys.executable, "-m", "tui_agent"], env={**env, "_TYPER_COMPLETE_ARGS": line}, capture_output=True, text=True
    )
    assert words in done.stdout.splitlines()
    assert all("\t" in each for each in done.stdout.splitlines())


def test_options_of_the_chat_work_without_naming_it(shell: Shell) -> None:
    assert "--theme" in complete("--continue", "--th")


def test_model_names_come_from_the_server(shell: Shell) -> None:
    with WireServer(ScriptedBackend(models=[model("qwen3:4b"), model("llama3.2:3b")])) as server:
        assert complete("-m", "", OLLAMA_HOST=server.url) == ["qwen3:4b", "llama3.2:3b"]
        assert complete("models", "show", "ll", OLLAMA_HOST=server.url) == ["llama3.2:3b"]
        assert complete("ask", "--host", server.url, "--model", "q", OLLAMA_HOST="") == ["qwen3:4b"]
        assert "builtin" in complete("--embed-model", "", OLLAMA_HOST=server.url)


def test_another_machine_is_not_asked_for_names(tmp_path: Path) -> None:
    assert complete("-m", "", OLLAMA_HOST="models.example.invalid", OLLAMA_MODELS=str(tmp_path)) == [""]


def test_sessions_and_memories_are_completed_by_the_end_of_their_ids(shell: Shell) -> None:
    shell.ask("hello")
    shell.run("memory", "add", "We deploy on Fridays", "-C", str(shell.root))
    (session,) = complete("--session", "", cwd=shell.root)
    assert len(session) == 5
    assert shell.ask("and again", "--session", session).code == 0
    (fact,) = complete("memory", "show", "-C", str(shell.root), "")
    assert "We deploy on Fridays" in shell.run("memory", "show", fact, "-C", str(shell.root)).out
    assert complete("memory", "show", "-C", str(shell.root), fact[:2]) == [fact]


def test_a_folder_without_memory_completes_nothing_and_stays_as_it_is(tmp_path: Path) -> None:
    assert complete("--session", "", cwd=tmp_path) == [""]
    assert list(tmp_path.iterdir()) == []


def test_themes_are_completed() -> None:
    assert "terminal" in complete("--theme", "t")


@pytest.mark.parametrize(
    ("words", "current", "joined", "place"),
    [
        (["tui-agent", "-m", "qwen3", ":", "4"], 4, ["tui-agent", "-m", "qwen3:4"], 2),
        (["tui-agent", "-m", "qwen3", ":"], 3, ["tui-agent", "-m", "qwen3:"], 2),
        (["tui-agent", "-m", "qwen3", ":", "4b", "--c"], 5, ["tui-agent", "-m", "qwen3:4b", "--c"], 3),
        (["tui-agent", "me"], 1, ["tui-agent", "me"], 1),
        (["tui-agent"], 1, ["tui-agent"], 1),
    ],
)
def test_words_that_bash_cut_at_a_colon_are_put_together(
    words: list[str], current: int, joined: list[str], place: int
) -> None:
    env = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(current)}
    fix_bash_words(env)
    assert env == {"COMP_WORDS": "\n".join(joined), "COMP_CWORD": str(place)}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes_commands_and_model_names_with_a_colon(shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "tui-agent"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tui_agent "$@"\n', "utf-8")
    program.chmod(0o755)
    script = """
    eval "$(tui-agent --show-completion bash)"
    try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tui_agent_completion tui-agent; echo "${COMPREPLY[*]}"; }
    try tui-agent doc
    try tui-agent -m qwen2.5-coder : 1
    """
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "OLLAMA_HOST": shell.server.url}
    # Without this Typer looks at the parent process to guess the shell, which is this test.
    env["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, timeout=30)
    assert done.stdout.split() == ["doctor", MODEL.partition(":")[2]], done.stderr


def test_the_completion_is_installed_for_a_shell_that_is_named(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "tui_agent", "--install-completion", "bash"]
    env = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    scripts = [
        path for path in tmp_path.rglob("*") if path.is_file() and "_TUI_AGENT_COMPLETE" in path.read_text("utf-8")
    ]
    assert scripts
    assert "tui-agent" in (tmp_path / ".bashrc").read_text("utf-8")


def test_completing_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom tui_agent.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print({'pydantic', 'httpx', 'ollama', 'textual', 'numpy', 'chromadb'} & set(sys.modules))"
    )
    env = {
        **os.environ,
        "_TUI_AGENT_COMPLETE": "complete_bash",
        "COMP_WORDS": "tui-agent\nmemory\nsh",
        "COMP_CWORD": "2",
    }
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=30)
    assert done.stdout.splitlines()[-1] == "set()"
