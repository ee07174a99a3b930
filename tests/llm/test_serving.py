"""A server that the user asked us to start: its log, its end, and what is said when it does not come up."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tui_agent.llm.errors import ServerUnreachable
from tui_agent.llm.host import parse_host
from tui_agent.llm.keeper import MARK, mark, marks, unmark
from tui_agent.llm.serving import OllamaServer, ServerUse, ollama_program, uses_of

SLEEPS = "import os, sys, time; print('host', os.environ['OLLAMA_HOST'], *sys.argv[1:], flush=True); time.sleep(60)"


def program(folder: Path, code: str) -> str:
    path = folder / "ollama"
    path.write_text(f'#!/bin/sh\nexec \'{sys.executable}\' -c "{code}" "$@"\n', "utf-8")
    path.chmod(0o755)
    return str(path)


def ours(folder: Path, code: str, host: str = "127.0.0.1:11999") -> OllamaServer:
    return OllamaServer(program(folder, code), parse_host(host), folder / "logs/ollama.log", folder / "servers")


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
    server = OllamaServer(str(tmp_path / "nowhere"), parse_host(""), tmp_path / "ollama.log", tmp_path / "servers")

    async def never() -> bool:
        return False

    with pytest.raises(ServerUnreachable, match="ollama serve"):
        await server.start(never)


def test_the_program_is_found_on_the_path(tmp_path: Path) -> None:
    assert ollama_program({"PATH": ""}) == ""
    found = program(tmp_path, SLEEPS)
    assert ollama_program({"PATH": str(tmp_path)}) == found


# -- several windows on one server -------------------------------------------------------------------------------------

HOST = parse_host("127.0.0.1:11999")
HOLDS = (
    "import sys, time; from pathlib import Path; from tui_agent.llm.keeper import mark; "
    "kept = mark(Path(sys.argv[1])); print('holds', flush=True); time.sleep(60)"
)


async def begun(server: OllamaServer) -> int:
    """Start it; the process id of the program."""

    async def answers() -> bool:
        return server.log_path.exists() and "host" in server.log_path.read_text("utf-8")

    await server.start(answers)
    assert server.pid is not None
    (child,) = children(server.pid)
    return child


def holder(folder: Path) -> subprocess.Popen[bytes]:
    """Another process that uses the server until it is killed."""
    other = subprocess.Popen([sys.executable, "-c", HOLDS, str(folder)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == b"holds\n"
    return other


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(true: Callable[[], bool], limit_s: float = 10.0) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)


def until_gone(pid: int) -> None:
    until(lambda: not is_running(pid))


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
async def test_the_window_that_started_it_leaves_it_to_another_and_the_last_one_out_stops_it(tmp_path: Path) -> None:
    server = ours(tmp_path, SLEEPS)
    second, third = ServerUse(tmp_path / "servers"), ServerUse(tmp_path / "servers")
    second.begin(parse_host("http://localhost:11999"))
    child = await begun(server)
    third.begin(HOST)
    server.stop()
    until(lambda: "2 others use it, and the last one out stops it" in server.log_path.read_text("utf-8"))
    second.end()
    second.end()
    await asyncio.sleep(0.1)
    assert is_running(child)
    third.end()
    until_gone(child)
    log = server.log_path.read_text("utf-8")
    assert "the window that started this server is closed; 2 others use it, and the last one out stops it" in log
    assert "the last window that used this server is closed, so it is stopped" in log
    assert list((tmp_path / "servers").rglob(f"*{MARK}")) == []


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
async def test_a_second_window_that_is_killed_keeps_nothing_running(tmp_path: Path) -> None:
    server = ours(tmp_path, SLEEPS)
    other = holder(uses_of(tmp_path / "servers", HOST))
    child = await begun(server)
    server.stop()
    assert is_running(child)
    other.kill()
    other.communicate()
    until_gone(child)


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
async def test_a_start_that_is_given_up_ends_the_server_although_this_window_looks_for_one_there(
    tmp_path: Path,
) -> None:
    own = ServerUse(tmp_path / "servers")
    own.begin(HOST)
    server = ours(tmp_path, SLEEPS)

    async def never() -> bool:
        return False

    start = asyncio.ensure_future(server.start(never))
    while server.pid is None or not children(server.pid):
        await asyncio.sleep(0.02)
    (child,) = children(server.pid)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not is_running(child)
    own.end()


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
async def test_what_a_killed_window_left_behind_does_not_count(tmp_path: Path) -> None:
    stale = uses_of(tmp_path / "servers", HOST) / f"1-00000000{MARK}"
    stale.parent.mkdir(parents=True)
    stale.touch()
    server = ours(tmp_path, SLEEPS)
    child = await begun(server)
    server.stop()
    assert not is_running(child)
    assert not stale.exists()


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
async def test_a_window_on_another_port_does_not_count(tmp_path: Path) -> None:
    other = ServerUse(tmp_path / "servers")
    other.begin(parse_host("127.0.0.1:11998"))
    server = ours(tmp_path, SLEEPS)
    child = await begun(server)
    server.stop()
    assert not is_running(child)
    other.end()


def test_uses_are_private_counted_while_they_last_and_only_of_this_machine(tmp_path: Path) -> None:
    folder = uses_of(tmp_path, HOST)
    first, second = mark(folder), mark(folder)
    assert first is not None
    assert second is not None
    assert len(marks(folder)) == 2
    assert folder.stat().st_mode & 0o077 == 0
    unmark(first)
    assert len(marks(folder)) == 1
    unmark(second)
    assert marks(folder) == []
    far = ServerUse(tmp_path)
    far.begin(parse_host("http://box:11999"))
    assert marks(folder) == []


def test_a_use_that_cannot_be_written_down_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "servers").write_text("a file in the way", "utf-8")
    use = ServerUse(tmp_path / "servers")
    use.begin(HOST)
    use.end()
