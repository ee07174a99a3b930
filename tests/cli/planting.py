"""Faults that are planted for the doctor to find, each for real: in a server, a file, the database, the environment."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import MODEL, Shell
from tui_agent.agent.model_notes import ModelNotes
from tui_agent.agent.stores import Stores
from tui_agent.llm.embeddings import BuiltinEmbedder
from tui_agent.llm.hardware import read_memory
from tui_agent.llm.wire.backend import BackendModel
from tui_agent.llm.wire.catalog import embed_model, model
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer
from tui_agent.memory import restoring
from tui_agent.memory.chroma_collection import open_client
from tui_agent.memory.shredding import STALE_INDEX
from tui_agent.memory.upkeep_store import UpkeepNotes
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings


def filled(shell: Shell) -> Project:
    """A project that was used: a fact and an answer."""
    assert shell.run("memory", "add", "We deploy on Fridays", "-C", str(shell.root)).code == 0
    assert shell.ask("hello").code == 0
    return Project.open(shell.root)


@dataclass
class World:
    """Where a fault is planted; ``stack`` ends what runs."""

    shell: Shell
    patch: pytest.MonkeyPatch
    stack: contextlib.ExitStack

    @property
    def root(self) -> Path:
        return self.shell.root

    @property
    def memory(self) -> Path:
        return self.root / ".agent-memory"

    def models(self, *models: BackendModel, version: str = "0.33.0") -> str:
        """Another server with these models; its address."""
        server = WireServer(ScriptedBackend(models, default="OK."), version=version)
        return self.stack.enter_context(server).url

    def listens(self, answer: bytes) -> str:
        """Something on a port that is no model server: it says ``answer``, or nothing at all."""
        sock = socket.create_server(("127.0.0.1", 0))
        self.stack.callback(sock.close)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = sock.accept()
                    self.stack.callback(connection.close)
                    if answer:
                        connection.recv(4096)
                        connection.sendall(answer)
                        connection.close()

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{sock.getsockname()[1]}"

    def note(self, **changes: Any) -> None:
        """What an earlier run found out about the model."""
        digest = model(MODEL).digest
        ModelNotes(UserPaths.find().model_notes_path).put(digest, name=MODEL, **changes)


Plant = Callable[[World], "dict[str, Any] | None"]
PLANTED: dict[str, Plant] = {}


def plants(id: str) -> Callable[[Plant], Plant]:
    def keep(function: Plant) -> Plant:
        PLANTED[id] = function
        return function

    return keep


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def ours() -> str:
    return BuiltinEmbedder().identity


def give_vectors(project: Project, identity: str) -> None:
    with contextlib.closing(sqlite3.connect(project.db_path)) as connection, connection:
        connection.execute("DELETE FROM fact_vectors")
        connection.execute(
            "INSERT INTO fact_vectors SELECT id, ?, 2, x'0000803f00000000' FROM live_memory", (identity,)
        )


def bound_by_permissions() -> list[str]:
    """What a command is started with so that permissions hold for it, even where the tests run as root."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may read and write everywhere")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


def on_small_disk(folder: Path, size: str) -> list[str]:
    """What a command is started with to see ``folder`` as a disk of its own, of that size."""
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = f'mount -t tmpfs -o mode=0700,size={size} tmpfs "$1" && shift && exec "$@"'
    inside = [*own, "sh", "-c", mount, "sh", str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    return inside


HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<html>hi</html>"


@plants("address.bad")
def _address_bad(world: World) -> dict[str, Any]:
    return {"host": "ftp://127.0.0.1"}


@plants("address.port80")
def _address_port80(world: World) -> dict[str, Any]:
    world.patch.setenv("OLLAMA_HOST", "http://127.0.0.1")
    return {"host": None}


@plants("consent.needed")
def _consent_needed(world: World) -> dict[str, Any]:
    world.patch.setenv("OLLAMA_HOST", "models.example.invalid")
    return {"host": None}


@plants("consent.cloud")
def _consent_cloud(world: World) -> dict[str, Any]:
    return {"host": world.models(model("gpt-oss:120b-cloud")), "chat": "gpt-oss:120b-cloud"}


@plants("proxy.used")
def _proxy_used(world: World) -> dict[str, Any]:
    world.patch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    world.patch.setenv("TUI_AGENT_ALLOW_REMOTE", "true")
    return {"host": "http://models.example.invalid:11434"}


@plants("proxy.broken")
def _proxy_broken(world: World) -> dict[str, Any]:
    world.patch.setenv("ALL_PROXY", "weird://127.0.0.1:1")
    world.patch.setenv("TUI_AGENT_ALLOW_REMOTE", "true")
    return {"host": "http://models.example.invalid:11434"}


@plants("server.closed")
def _server_closed(world: World) -> dict[str, Any]:
    program = world.root / "bin" / "ollama"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    world.patch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return {"host": f"127.0.0.1:{free_port()}"}


@plants("server.absent")
def _server_absent(world: World) -> dict[str, Any]:
    world.patch.setenv("PATH", "")
    return {"host": f"127.0.0.1:{free_port()}"}


@plants("server.not_ollama")
def _server_not_ollama(world: World) -> dict[str, Any]:
    return {"host": world.listens(HTML)}


@plants("server.slow")
def _server_slow(world: World) -> dict[str, Any]:
    return {"host": world.listens(b"")}


@plants("server.refused")
def _server_refused(world: World) -> dict[str, Any]:
    return {"host": world.listens(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}")}


@plants("version.old")
def _version_old(world: World) -> dict[str, Any]:
    return {"host": world.models(model(MODEL), version="0.5.1")}


@plants("version.bad")
def _version_bad(world: World) -> dict[str, Any]:
    return {"host": world.models(model(MODEL), version="0.32.5")}


@plants("model.missing")
def _model_missing(world: World) -> dict[str, Any]:
    return {"chat": "qwen3:4b"}


@plants("model.cannot_chat")
def _model_cannot_chat(world: World) -> dict[str, Any]:
    return {"host": world.models(embed_model()), "chat": "nomic-embed-text"}


@plants("tools.none")
def _tools_none(world: World) -> dict[str, Any]:
    return {"host": world.models(model(MODEL, capabilities=["completion"]))}


@plants("tools.probed_none")
def _tools_probed_none(world: World) -> None:
    world.note(tools="none")


@plants("tools.refused")
def _tools_refused(world: World) -> None:
    world.note(tools_refused=True)


@plants("window.small")
def _window_small(world: World) -> dict[str, Any]:
    return {"host": world.models(model(MODEL, context_length=2048))}


@plants("window.other")
def _window_other(world: World) -> None:
    body = json.dumps({"model": MODEL, "messages": [], "options": {"num_ctx": 16384}}).encode()
    request = urllib.request.Request(f"{world.shell.server.url}/api/chat", body)
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read()


@plants("engine.bad_file")
def _engine_bad_file(world: World) -> None:
    (world.root / "model.gguf").write_bytes(b"not a model")
    world.patch.setenv("TUI_AGENT_GGUF", str(world.root / "model.gguf"))


@plants("embedder.missing")
def _embedder_missing(world: World) -> dict[str, Any]:
    return {"embed": "nomic-embed-text"}


@plants("database.corrupt")
def _database_corrupt(world: World) -> None:
    project = filled(world.shell)
    data = bytearray(project.db_path.read_bytes())
    data[4096:] = b"\x55" * (len(data) - 4096)
    project.db_path.write_bytes(data)


@plants("database.unusable")
def _database_unusable(world: World) -> dict[str, Any]:
    project = filled(world.shell)
    give_vectors(project, ours())
    project.db_path.chmod(0o000)
    world.stack.callback(project.db_path.chmod, 0o600)
    return {"inside": bound_by_permissions()}


@plants("database.locked")
def _database_locked(world: World) -> None:
    project = filled(world.shell)
    give_vectors(project, ours())
    holder = world.stack.enter_context(contextlib.closing(sqlite3.connect(project.db_path)))
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")


@plants("database.interrupted")
def _database_interrupted(world: World) -> None:
    give_vectors(filled(world.shell), ours())
    assert world.shell.run("memory", "backup", "-C", str(world.root)).code == 0
    backups = world.memory / "backups"
    marker = json.dumps({"backup": "2026-11-30-021000", "kept": "2026-11-30-021500"})
    (backups / restoring._MARKER).write_text(marker, "utf-8")


@plants("vectors.identity")
def _vectors_identity(world: World) -> None:
    give_vectors(filled(world.shell), "ollama:nomic-embed-text:latest@abc:768:none:cosine")


@plants("vectors.missing")
def _vectors_missing(world: World) -> None:
    filled(world.shell)


@plants("index.stale")
def _index_stale(world: World) -> None:
    project = filled(world.shell)
    give_vectors(project, ours())
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    project.lock_path.write_text(json.dumps({"pid": dead.pid, "busy": "adding vectors", "crashes": 0}), "utf-8")


@plants("index.crashes")
def _index_crashes(world: World) -> None:
    project = filled(world.shell)
    give_vectors(project, ours())
    project.lock_path.write_text(json.dumps({"pid": 1, "busy": "", "crashes": 5}), "utf-8")


@plants("index.unreadable")
def _index_unreadable(world: World) -> None:
    project = filled(world.shell)
    give_vectors(project, ours())
    project.vector_dir.mkdir()
    (project.vector_dir / "chroma.sqlite3").write_bytes(b"SQLite format 3\0" + b"\x55" * 8000)


@plants("index.deleted")
def _index_deleted(world: World) -> None:
    project = filled(world.shell)
    give_vectors(project, ours())
    client = open_client(project.vector_dir)
    client.get_or_create_collection(f"pamiec-{project.id}", embedding_function=None)
    client.close()
    stores = Stores.open(project, Settings(), UserPaths.find())
    UpkeepNotes(stores.db).set(STALE_INDEX, "a mark")
    stores.close()


@plants("index.link")
def _index_link(world: World) -> None:
    project = filled(world.shell)
    give_vectors(project, ours())
    (world.root / "elsewhere").mkdir()
    project.vector_dir.symlink_to(world.root / "elsewhere")


@plants("index.remote")
def _index_remote(world: World) -> None:
    UserPaths.find().ensure().config_path.write_text("chroma:\n  mode: http\n  host: vectors.example.com\n", "utf-8")


@plants("paths.link")
def _paths_link(world: World) -> None:
    (world.root / "elsewhere").mkdir()
    world.memory.symlink_to(world.root / "elsewhere")


@plants("paths.kind")
def _paths_kind(world: World) -> None:
    cache = UserPaths.find().cache
    cache.parent.mkdir(parents=True)
    cache.write_text("a file in the way", "utf-8")


@plants("paths.write")
def _paths_write(world: World) -> dict[str, Any]:
    project = filled(world.shell)
    give_vectors(project, ours())
    project.memory_dir.chmod(0o500)
    world.stack.callback(project.memory_dir.chmod, 0o700)
    return {"inside": bound_by_permissions()}


@plants("paths.read")
def _paths_read(world: World) -> dict[str, Any]:
    project = filled(world.shell)
    give_vectors(project, ours())
    project.logs_dir.chmod(0o000)
    world.stack.callback(project.logs_dir.chmod, 0o700)
    return {"inside": bound_by_permissions()}


@plants("private.open")
def _private_open(world: World) -> None:
    project = filled(world.shell)
    give_vectors(project, ours())
    project.memory_dir.chmod(0o755)
    project.db_path.chmod(0o644)


@plants("disk.full")
def _disk_full(world: World) -> dict[str, Any]:
    return {"inside": on_small_disk(world.root, "1m")}


@plants("disk.tight")
def _disk_tight(world: World) -> dict[str, Any]:
    return {"inside": on_small_disk(world.root, "100m")}


@plants("disk.forgets")
def _disk_forgets(world: World) -> dict[str, Any]:
    return {"inside": on_small_disk(world.root, "1g")}


@plants("memory.small")
def _memory_small(world: World) -> dict[str, Any]:
    return {"host": world.models(model(MODEL, size=10**14))}


@plants("memory.tight")
def _memory_tight(world: World) -> dict[str, Any]:
    has = read_memory()
    if has.graphics or not has.total:
        pytest.skip("the graphics card has the memory")
    return {"host": world.models(model(MODEL, size=has.total - 700_000_000))}


@plants("settings.warning")
def _settings_warning(world: World) -> None:
    world.patch.setenv("TUI_AGENT_NUMCTX", "16384")


@plants("settings.error")
def _settings_error(world: World) -> None:
    world.memory.mkdir(mode=0o700)
    (world.memory / "config.yaml").write_text("# mine\nnum_ctx: plenty\n", "utf-8")


@plants("rules.problem")
def _rules_problem(world: World) -> None:
    world.memory.mkdir(mode=0o700)
    (world.memory / "rules.md").write_bytes(b"- caf\xe9\n")


@plants("terminal.dumb")
def _terminal_dumb(world: World) -> None:
    world.patch.setenv("TERM", "dumb")


@plants("terminal.colours")
def _terminal_colours(world: World) -> None:
    world.patch.setenv("TERM", "vt220")
    world.patch.delenv("COLORTERM")


@plants("terminal.letters")
def _terminal_letters(world: World) -> None:
    world.patch.setenv("LC_ALL", "pl_PL.ISO-8859-2")


# What goes wrong together with a fault and is named on its own.
ALONG = {
    "address.port80": {"server.closed", "server.absent", "server.not_ollama"},
    "proxy.used": {"server.closed"},
    "paths.link": {"index.link"},
    "index.link": {"paths.link"},
    "index.unreadable": {"index.stale"},
    "database.unusable": {"paths.read"},
    "terminal.dumb": {"terminal.colours"},
}
