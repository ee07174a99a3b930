"""A server that the user asked us to start: its log, its end, and what is said when it does not come up."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tui_agent.llm.errors import ServerUnreachable
from tui_agent.llm.host import parse_host
from tui_agent.llm.serving import OllamaServer, ollama_program

SLEEPS = "import os, sys, time; print('host', os.environ['OLLAMA_HOST'], *sys.argv[1:], flush=True); time.sleep(60)"


def program(folder: Path, code: str) -> str:
    path = folder / "ollama"
    path.write_text(f'#!/bin/sh\nexec \'{sys.executable}\' -c "{code}" "$@"\n', "utf-8")
    path.chmod(0o755)
    return str(path)


def ours(folder: Path, code: str, host: str = "127.0.0.1:11999") -> OllamaServer:
    return OllamaServer(program(folder, code), parse_host(host), folder / "logs/ollama.log")


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


async def test_it_gets_the_address_and_its_output_goes_to_a_private_log(tmp_path: Path) -> None:
    server = ours(tmp_path, SLEEPS, "[::1]:11999")
    looks = 0

    async def answers() -> bool:
        nonlocal looks
        looks += 1
        return "host" in server.log_path.read_text("utf-8")

    await server.start(answers)
    try:
        assert server.log_path.read_text("utf-8") == "host [::1]:11999 serve\n"
        assert server.log_path.stat().st_mode & 0o077 == 0
        assert looks >= 1
    finally:
        server.stop()


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
async def test_stopping_ends_the_program_and_not_only_its_keeper(tmp_path: Path) -> None:
    server = ours(tmp_path, SLEEPS)

    async def answers() -> bool:
        return server.log_path.exists() and "host" in server.log_path.read_text("utf-8")

    await server.start(answers)
    keeper = server.pid
    assert keeper is not None
    (child,) = children(keeper)
    server.stop()
    assert server.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    server.stop()


async def test_a_program_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    server = ours(tmp_path, "import sys; print('Error: listen tcp 127.0.0.1:11999: bind: address already in use')")

    async def never() -> bool:
        await asyncio.sleep(0.01)
        return False

    with pytest.raises(ServerUnreachable, match=r"ended at once\. Its last words: .*address already in use\."):
        await server.start(never)


async def test_a_program_that_never_answers_is_stopped_again(tmp_path: Path) -> None:
    server = ours(tmp_path, SLEEPS)

    async def never() -> bool:
        return False

    with pytest.raises(ServerUnreachable, match="did not answer"):
        await server.start(never, timeout_s=0.2)
    assert server.pid is None


async def test_cancelling_the_start_stops_the_program(tmp_path: Path) -> None:
    server = ours(tmp_path, SLEEPS)

    async def never() -> bool:
        return False

    task = asyncio.ensure_future(server.start(never))
    await asyncio.sleep(0.05)
    assert server.pid is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.pid is None


async def test_a_program_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    server = OllamaServer(str(tmp_path / "nowhere"), parse_host(""), tmp_path / "ollama.log")

    async def never() -> bool:
        return False

    with pytest.raises(ServerUnreachable, match="ollama serve"):
        await server.start(never)


def test_the_program_is_found_on_the_path(tmp_path: Path) -> None:
    assert ollama_program({"PATH": ""}) == ""
    found = program(tmp_path, SLEEPS)
    assert ollama_program({"PATH": str(tmp_path)}) == found
