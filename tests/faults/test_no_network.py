"""A whole session talks to the model server on this machine and to nobody else, and uses no proxy it was not told
of."""

from __future__ import annotations

import ast
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Trap:
    """A port of this machine that proxy variables point at; counts who comes."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.caught: list[Any] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                connection, address = self.socket.accept()
            except OSError:
                return
            self.caught.append(address)
            connection.close()

    @property
    def environment(self) -> dict[str, str]:
        """The process's variables, with every proxy variable set to the trap."""
        url = f"http://127.0.0.1:{self.port}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        proxies = {name: url for upper in names for name in (upper, upper.lower())}
        kept = {name: value for name, value in os.environ.items() if name.lower() not in ("no_proxy", "ollama_host")}
        return {**kept, **proxies}


@pytest.fixture
def trap() -> Iterator[Trap]:
    made = Trap()
    yield made
    made.socket.close()


def is_local(seen: str) -> bool:
    """Whether an address, as ``connect ('127.0.0.1', 80)`` or ``getaddrinfo 'localhost'``, is this machine's."""
    what = ast.literal_eval(seen.partition(" ")[2])
    if isinstance(what, (str, bytes)) and seen.startswith(("connect", "send")):
        return True  # a socket file
    host = what if isinstance(what, (str, bytes)) or what is None else what[0]
    return host in ("127.0.0.1", "::1", "localhost", b"localhost", b"127.0.0.1")


def run(command: list[str], trap: Trap) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=trap.environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_python_code_turns_to_the_model_server_and_loopback_only(trap: Trap, tmp_path: Path) -> None:
    done = run([sys.executable, "-m", "tests.faults.alone", str(tmp_path)], trap)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["texts"] == ["answered"] * 3
    assert (seen["index"], seen["kept"]) == ("ready", 2)
    port = int(seen["server"].rpartition(":")[2])
    assert any(f"'127.0.0.1', {port}" in address for address in seen["addresses"])  # the hook does see
    assert [address for address in seen["addresses"] if not is_local(address)] == []
    assert trap.caught == []


def fenced(tmp_path: Path, trap: Trap, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command with a network of its own; names are asked of a server behind the fence."""
    names = tmp_path / "resolv.conf"
    names.write_text("nameserver 10.255.77.1\noptions timeout:1 attempts:1\n")
    own = ["unshare", "--net", "--mount"] if os.geteuid() == 0 else ["unshare", "--net", "--mount", "--map-root-user"]
    shell = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'
    return run([*own, "sh", "-c", shell, "sh", str(names), sys.executable, "-m", "tests.faults.fenced", *command], trap)


@pytest.fixture
def fence(tmp_path: Path, trap: Trap) -> None:
    """Skips where there can be none, and proves that it catches what it should."""
    if not all(map(shutil.which, ("unshare", "ip"))) or fenced(tmp_path, trap, "true").returncode:
        pytest.skip("this machine lets nobody have a network of its own")
    leak = "import socket\ntry: socket.create_connection(('192.0.2.7', 80), 0.2)\nexcept OSError: pass\n"
    leak += "try: socket.getaddrinfo('telemetry.example.org', 443)\nexcept OSError: pass"
    caught = json.loads(fenced(tmp_path, trap, sys.executable, "-c", leak).stdout.splitlines()[-1])
    assert [6, "192.0.2.7"] in caught
    assert [17, "10.255.77.1"] in caught


@pytest.mark.usefixtures("fence")
def test_no_packet_of_any_process_leaves_the_machine_native_code_included(trap: Trap, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    folder.mkdir()
    done = fenced(tmp_path, trap, sys.executable, "-m", "tests.faults.alone", str(folder))
    assert done.returncode == 0, done.stderr
    *_, seen, caught = done.stdout.splitlines()
    assert json.loads(seen)["texts"] == ["answered"] * 3
    assert json.loads(seen)["index"] == "ready"
    assert json.loads(caught) == []
