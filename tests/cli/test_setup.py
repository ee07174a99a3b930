"""``setup`` and ``allow`` without a terminal, and the next commands that ``ask`` and ``chat`` print."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.cli.conftest import MODEL, Shell
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer


@pytest.fixture(autouse=True)
def no_ollama(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No ``ollama`` program on the PATH, and none of its models."""
    monkeypatch.setattr("tui_agent.agent.firstlook.ollama_program", lambda env=None: "")
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "none"))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_without_a_server_setup_says_what_to_type_and_exits_3(shell: Shell) -> None:
    ran = shell.run("setup", str(shell.root), "--host", f"127.0.0.1:{free_port()}")
    assert ran.code == 3
    assert "A model is needed." in ran.out
    assert "  https://ollama.com/download" in ran.out
    assert "--embedded" in ran.out


def test_a_stopped_ollama_is_started_by_its_command(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui_agent.agent.firstlook.ollama_program", lambda env=None: "/usr/bin/ollama")
    ran = shell.run("setup", str(shell.root), "--host", f"127.0.0.1:{free_port()}")
    assert ran.code == 3
    assert ran.out.splitlines()[2].strip().startswith("ollama serve")


def test_a_server_without_models_gets_a_pull_and_exits_4(shell: Shell) -> None:
    with WireServer(ScriptedBackend(models=[])) as server:
        ran = shell.run("setup", str(shell.root), "--host", server.url)
    assert ran.code == 4
    assert "ollama pull qwen2.5-coder:" in ran.out


def test_a_server_with_other_models_gets_their_names(shell: Shell) -> None:
    with WireServer(ScriptedBackend(models=[model("small:1b")])) as server:
        ran = shell.run("setup", str(shell.root), "--host", server.url, "--model", "big:70b")
    assert ran.code == 4
    assert "tui-agent --model small:1b" in ran.out
    assert "ollama pull big:70b" in ran.out


def test_with_a_model_there_is_nothing_to_do(shell: Shell) -> None:
    ran = shell.run("setup", str(shell.root), "--host", shell.server.url, "--model", MODEL)
    assert ran.code == 0
    assert f"{MODEL} is there." in ran.out


def test_ask_prints_the_next_commands_after_its_error(shell: Shell) -> None:
    ran = shell.run("ask", "-C", str(shell.root), "--host", f"127.0.0.1:{free_port()}", "hello")
    assert ran.code == 3
    assert ran.out == ""
    lines = ran.err.splitlines()
    assert "Nothing answers at" in lines[0]
    assert "To go on:" in lines
    assert any(line.startswith("  https://ollama.com/download") for line in lines)


def test_ask_with_json_keeps_to_its_events(shell: Shell) -> None:
    ran = shell.run("ask", "--json", "-C", str(shell.root), "--host", f"127.0.0.1:{free_port()}", "hello")
    assert ran.code == 3
    assert ran.events[-1]["event"] == "turn_finished"
    assert "To go on:" not in ran.err


def test_ask_refuses_another_machine_and_names_the_command_that_allows_it(shell: Shell) -> None:
    remote = "http://models.example.invalid:11434"
    refused = shell.run("ask", "-C", str(shell.root), "--host", remote, "my secret plan")
    assert refused.code == 2
    assert f"`tui-agent allow {remote}`" in refused.err
    assert f"  tui-agent allow {remote} " in refused.err
    assert shell.run("allow", remote).code == 0
    tried = shell.run("ask", "-C", str(shell.root), "--host", remote, "hello")
    assert tried.code == 3
    assert "is not known" in tried.err or "Nothing answers" in tried.err


def test_ask_refuses_a_cloud_model_until_it_is_allowed(shell: Shell) -> None:
    name = "gpt-oss:120b-cloud"
    with WireServer(ScriptedBackend(models=[model(name)], default="From afar.")) as server:
        ask = ("ask", "-C", str(shell.root), "--host", server.url, "--model", name, "--embed-model", "none", "hello")
        refused = shell.run(*ask)
        assert refused.code == 2
        assert "tui-agent allow https://ollama.com" in refused.err
        assert server.log.of("/api/chat") == []
        assert shell.run("allow", "https://ollama.com").code == 0
        assert shell.run(*ask).out == "From afar.\n"


def test_the_chat_in_a_pipe_names_ask_and_the_next_commands(shell: Shell) -> None:
    ran = shell.run("chat", str(shell.root), "--host", f"127.0.0.1:{free_port()}")
    assert ran.code == 2
    assert "tui-agent ask" in ran.err
    assert "To go on:" in ran.err


def test_allowed_hosts_are_listed_and_taken_back(shell: Shell) -> None:
    assert "No other machine" in shell.run("allow").err
    shell.run("allow", "box")
    listed = json.loads(shell.run("allow", "--json").out)
    assert [row["host"] for row in listed] == ["http://box:11434"]
    assert listed[0]["source"].endswith(f"state{os.sep}allowed-hosts")
    assert json.loads(shell.run("allow", "--remove", "box", "--json").out) == {"host": "box", "allowed": False}
    assert "was not allowed" in shell.run("allow", "--remove", "box").out


def test_an_address_that_is_none_is_a_usage_error(shell: Shell) -> None:
    ran = shell.run("allow", "ftp://box")
    assert ran.code == 2
    assert "cannot be used" in ran.err
