"""Remote and odd hosts: addresses in all their forms, https, keys, cloud models, and what leaves this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.agent.conftest import Desk, Open
from tests.faults.ollama_table import QUESTION, on_disk, play, record, steady  # noqa: F401
from tests.faults.on_screen import command, line_with, on_screen, until
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.catalog import model
from tui_agent.llm.wire.script import Fail, Script
from tui_agent.llm.wire.serve import LoopServer, WireServer
from tui_agent.settings import load_settings

MODEL, CLOUD = "qwen2.5-coder:1.5b", "gpt-oss:120b-cloud"


@asynccontextmanager
async def another(app: ASGIApp, **how: Any) -> AsyncIterator[LoopServer]:
    """The same server at another address."""
    server = LoopServer(app, **how)
    try:
        await server.start()
    except OSError:
        pytest.skip("this machine has no such address")
    try:
        yield server
    finally:
        await server.stop()


def port_of(server: LoopServer) -> str:
    return server.url.rsplit(":", 1)[1]


# -- addresses ---------------------------------------------------------------------------------------------------------


async def test_every_form_of_ollama_host_reaches_the_server(open_desk: Open, server: WireServer) -> None:
    port = port_of(server)
    forms = [f":{port}", f"127.0.0.1:{port}", f"localhost:{port}", f"http://127.0.0.1:{port}/", f"'0.0.0.0:{port}'"]
    urls = []
    for form in forms:
        desk = await open_desk()
        given = load_settings(desk.project, desk.paths, {"OLLAMA_HOST": form}, {"model": MODEL}).settings
        desk = await open_desk(host=given.host)
        assert desk.last(await desk.say("Is there a port?")).status == "answered"
        assert desk.session.server.local
        urls.append(desk.session.server.url.replace(port, "11434"))
    told = ", ".join(f"{form.replace(port, '11434')} is {url}" for form, url in zip(forms, urls, strict=True))
    await play(desk, "R1", "OLLAMA_HOST in five forms", also=told)
    assert set(urls) == {"http://127.0.0.1:11434", "http://localhost:11434"}


async def test_an_address_that_is_none_is_refused_with_the_form_to_use(desk: Desk) -> None:
    given = ("-C", str(desk.project.root), "--model", MODEL, "--embed-model", "none")
    code, _, err = await command(desk, "ask", *given, QUESTION, env={"OLLAMA_HOST": "127.0.0.1:port"})
    assert code == 3
    assert "Write it like http://127.0.0.1:11434" in err
    (row,) = desk.session.stores.history.sessions(limit=10)[:1]
    stored = [f"{one.role} {one.status} “{one.content}”" for one in desk.session.stores.history.messages(row.id)]
    assert stored == [f"user complete “{QUESTION}”"]
    (line,) = [line for line in err.splitlines() if "cannot be used" in line]
    record("R1b", "`tui-agent ask` with OLLAMA_HOST=127.0.0.1:port", line, ", ".join(stored))


async def test_a_server_on_ipv6_is_this_machine(open_desk: Open, server: WireServer) -> None:
    async with another(server.app, host="::1") as six:
        desk = await open_desk(host=f"[::1]:{port_of(six)}")
        await play(desk, "R2", "a server on [::1]")
        assert desk.session.server.url == six.url
        assert desk.session.server.local
        await desk.session.close()


async def test_a_path_is_kept_for_every_request(open_desk: Open, server: WireServer) -> None:
    async with another(Starlette(routes=[Mount("/a/ollama", server.app)])) as behind:
        desk = await open_desk(host=f"{behind.url}/a/ollama/")
        await play(desk, "R3", "a server behind a path with a slash at its end, http://h/a/ollama/")
        assert desk.session.server.url == f"{behind.url}/a/ollama"
        (row,) = await desk.session.models()
        assert row.name == MODEL
        await desk.session.close()


# -- https and keys ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that nobody has signed, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    paths = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
         "subjectAltName=IP:127.0.0.1", "-out", paths[0], "-keyout", paths[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return paths


async def test_https_with_a_certificate_nobody_knows_is_refused_in_a_sentence(
    open_desk: Open, server: WireServer, certificate: tuple[str, str]
) -> None:
    async with another(server.app, certificate=certificate) as secure:
        desk = await open_desk(host=secure.url)
        seen = await play(desk, "R4", "https with a certificate that nobody has signed")
        assert "No secure connection" in seen.end.error
        assert "SSL_CERT_FILE" in seen.end.error
        assert not server.chats
        await desk.session.close()


async def test_https_works_with_the_users_own_certificate(
    open_desk: Open, server: WireServer, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    async with another(server.app, certificate=certificate) as secure:
        desk = await open_desk(host=secure.url)
        seen = await play(desk, "R5", "the same with SSL_CERT_FILE naming that certificate")
        assert seen.end.status == "answered"
        assert desk.session.server.url == secure.url
        await desk.session.close()


async def test_a_certificate_file_that_is_not_there_is_named(
    open_desk: Open, server: WireServer, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/cert.pem")
    async with another(server.app, certificate=certificate) as secure:
        desk = await open_desk(host=secure.url)
        seen = await play(desk, "R5b", "the same with SSL_CERT_FILE naming a file that is not there")
        assert "SSL_CERT_FILE" in seen.end.error
        assert "Correct the variable" in seen.end.error
        await desk.session.close()


class Keyed:
    """The server behind a gate that wants a key."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app, self._wanted = app, f"Bearer {key}".encode()
        self.given: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.given.append(dict(scope["headers"]).get(b"authorization", b""))
        if self.given[-1] != self._wanted:
            await JSONResponse({"error": "unauthorized"}, 401)(scope, receive, send)
            return
        await self._app(scope, receive, send)


async def test_the_key_goes_with_every_request(
    open_desk: Open, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "k" * 12
    monkeypatch.setenv("OLLAMA_API_KEY", key)
    gate = Keyed(server.app, key)
    async with another(gate) as keyed:
        desk = await open_desk(host=keyed.url)
        seen = await play(desk, "R6", "a server that wants a key, and OLLAMA_API_KEY has it")
        assert seen.end.status == "answered"
        assert set(gate.given) == {f"Bearer {key}".encode()}
        await desk.session.close()
    kept = [path for path in desk.project.memory_dir.rglob("*") if path.is_file()]
    assert not [path for path in kept if key.encode() in path.read_bytes()]


@pytest.mark.parametrize(("row", "given"), [("R6b", None), ("R6c", "wrong" * 3)])
async def test_a_missing_or_wrong_key_is_a_sentence(
    open_desk: Open, server: WireServer, monkeypatch: pytest.MonkeyPatch, row: str, given: str | None
) -> None:
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)
    if given is not None:
        monkeypatch.setenv("OLLAMA_API_KEY", given)
    async with another(Keyed(server.app, "k" * 12)) as keyed:
        desk = await open_desk(host=keyed.url)
        what = "without OLLAMA_API_KEY" if given is None else "with another key in OLLAMA_API_KEY"
        seen = await play(desk, row, f"a server that wants a key, {what}")
        assert seen.end.error_kind == "sign_in_required"
        assert "OLLAMA_API_KEY" in seen.end.error
        assert given is None or given not in seen.end.error
        await desk.session.close()


# -- other machines ----------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(server: WireServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of "another machine": a name that leads here."""
    resolve = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        return resolve("127.0.0.1" if name in ("gpu.internal", "gpu.example") else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return f"http://gpu.internal:{port_of(server)}"


async def test_nothing_is_sent_to_another_machine_without_a_yes(open_desk: Open, elsewhere: str) -> None:
    desk = await open_desk(host=elsewhere)
    seen = await play(desk, "R7", "a server on another machine, not allowed")
    assert (seen.end.error_kind, seen.end.exit_code) == ("consent_needed", 2)
    assert f"tui-agent allow {elsewhere}" in seen.end.error
    assert not desk.server.log.records


async def test_one_yes_is_enough_and_that_it_leaves_is_on_the_screen(open_desk: Open, elsewhere: str) -> None:
    desk = await open_desk(host=elsewhere)
    code, out, _ = await command(desk, "allow", elsewhere)
    assert code == 0
    desk.backend.queue("Port 8080.")
    async with on_screen(desk) as (app, pilot):
        await until(pilot, lambda: line_with(app, "leaves this machine"), "the mark")
        await desk.server.log.until(lambda log: bool(log.of("/api/chat")))
        mark = line_with(app, "leaves this machine")
        app.chat.send(QUESTION)
        await until(pilot, lambda: line_with(app, "Port 8080.") and not app.chat.running, "answered")
    assert not desk.session.server.local
    kept = desk.paths.allowed_hosts_path.read_text("utf-8").splitlines()[-1]
    assert kept == elsewhere
    record(
        "R8",
        "the same after `tui-agent allow` for its address",
        f"`allow`: {out.strip()} / {mark[mark.index('leaves') :]} / “Port 8080.”",
        f"{on_disk(desk)}; allowed: {kept}",
    )


async def test_a_name_that_the_servers_own_guard_refuses_is_explained(open_desk: Open, elsewhere: str) -> None:
    desk = await open_desk(host=elsewhere.replace("internal", "example"), allow_remote=True)
    seen = await play(desk, "R9", "a server that answers to local names only, and another name")
    assert "403" in seen.end.error
    assert not desk.server.chats


# -- cloud models ------------------------------------------------------------------------------------------------------


def cloud(desk: Desk) -> None:
    """Let the server offer a cloud model."""
    desk.backend.installed.append(model(CLOUD))


async def test_a_cloud_model_needs_a_yes(open_desk: Open) -> None:
    desk = await open_desk(model=CLOUD)
    cloud(desk)
    seen = await play(desk, "R10", "a cloud model of the server on this machine, not allowed")
    assert (seen.end.error_kind, seen.end.exit_code) == ("consent_needed", 2)
    assert "tui-agent allow https://ollama.com" in seen.end.error
    assert not desk.server.chats


async def test_an_allowed_cloud_model_shows_how_to_sign_in_and_answers_after_it(open_desk: Open) -> None:
    desk = await open_desk(model=CLOUD, allow_hosts=("https://ollama.com",))
    cloud(desk)
    desk.backend.queue(faults.sign_in(), "Port 8080.")
    seen = await play(desk, "R11", "a cloud model, allowed, and nobody is signed in")
    assert "ollama signin" in seen.end.error
    assert "https://ollama.com/connect" in seen.end.error
    assert len(desk.server.chats) == 1
    assert not desk.session.server.local
    assert desk.last(await desk.say("And now?")).text == "Port 8080."


@pytest.mark.parametrize(
    ("row", "injected", "script", "words"),
    [
        ("R12", "403: cloud models are switched off on the server", faults.cloud_disabled(), "switched off"),
        (
            "R12b",
            "502: the cloud cannot be reached",
            Script(Fail(502, "dial tcp: no route to host")),
            "could not reach",
        ),
        ("R12c", "429: too many requests, three times", Script(Fail(429, "too many requests")), "limits how much"),
    ],
)
async def test_trouble_of_the_cloud_is_named(
    open_desk: Open, row: str, injected: str, script: Script, words: str
) -> None:
    desk = await open_desk(model=CLOUD, allow_hosts=("https://ollama.com",))
    cloud(desk)
    desk.backend.default = script
    seen = await play(desk, row, injected)
    assert words in seen.end.error
    assert seen.end.status == "failed"
    assert Path(desk.project.db_path).exists()
