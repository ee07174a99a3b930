"""From every starting state to a chat in at most two answers: the state machine, and the hands that carry it out."""

from __future__ import annotations

import asyncio
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tui_agent.agent.firstlook import FirstLook
from tui_agent.agent.firstrun import Act, FirstRun, Surroundings, missing, next_commands, step_for
from tui_agent.agent.session import Session
from tui_agent.agent.setting_up import SetUp
from tui_agent.llm.hardware import GB, Memory
from tui_agent.llm.ollama_files import LocalModel
from tui_agent.llm.types import ModelInfo
from tui_agent.llm.wire.catalog import embed_model, model
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

BASE = Surroundings(
    url="http://127.0.0.1:11434", wanted="qwen2.5-coder:7b", memory=Memory(total=16 * GB), free_disk=100 * GB
)
SMALL = ModelInfo("small:1b", capabilities=frozenset({"completion", "tools"}), size=GB)
CLOUD = ModelInfo("gpt-oss:120b-cloud", capabilities=frozenset({"completion", "tools"}), remote=True)
BLOB = LocalModel("llama3.2:3b", Path("/models/blobs/sha256-" + "a" * 64), 2 * GB, "a" * 64)

NOTHING = BASE
STOPPED = replace(BASE, program="/usr/bin/ollama")
EMPTY = replace(STOPPED, answers=True)
MODELS = replace(EMPTY, models=(SMALL,))
READY = replace(EMPTY, models=(replace(SMALL, name="qwen2.5-coder:7b"),))


def labels(facts: Surroundings) -> list[str]:
    return [choice.label for choice in step_for(facts).choices]


def key(facts: Surroundings, what: str, value: str = "") -> str:
    fits = (one for one in step_for(facts).choices if one.act.what == what and one.act.value.startswith(value))
    return next(fits).key


# -- states ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (NOTHING, "nothing"),
        (STOPPED, "stopped"),
        (EMPTY, "empty"),
        (MODELS, "models"),
        (READY, "ready"),
        (replace(READY, wanted="qwen2.5-coder:7b:latest"), "ready"),
        (replace(NOTHING, odd=True, trouble="A web page answers."), "odd"),
        (replace(NOTHING, local=False, url="http://box:11434"), "far"),
        (replace(NOTHING, local=False, leaves_to="http://box:11434"), "remote"),
        (replace(MODELS, leaves_to="https://ollama.com"), "cloud"),
        (replace(NOTHING, connected=True), "ready"),
    ],
)
def test_the_facts_tell_the_state(facts: Surroundings, state: str) -> None:
    assert facts.state == state


@pytest.mark.parametrize("facts", [NOTHING, STOPPED, EMPTY, MODELS], ids=lambda facts: facts.state)
def test_every_state_has_numbered_answers_with_a_way_out(facts: Surroundings) -> None:
    choices = step_for(facts).choices
    assert [choice.key for choice in choices] == [*map(str, range(1, len(choices))), "0"]
    assert choices[-1].act.what == "later"
    assert len({choice.label for choice in choices}) == len(choices)
    assert all(choice.detail for choice in choices)


def test_a_running_server_with_the_model_asks_nothing() -> None:
    assert FirstRun(READY).outcome == "ready"


def test_a_stopped_server_with_the_model_takes_one_answer() -> None:
    walk = FirstRun(STOPPED)
    assert walk.answer("1") == Act("serve")
    walk.done(READY)
    assert (walk.outcome, walk.answers) == ("ready", 1)


def test_a_stopped_server_without_models_takes_two_answers() -> None:
    walk = FirstRun(STOPPED)
    walk.answer("1")
    walk.done(EMPTY)
    assert walk.outcome == ""
    act = walk.answer("1")
    assert act == Act("pull", "qwen2.5-coder:7b")
    walk.done(READY)
    assert (walk.outcome, walk.answers) == ("ready", 2)


def test_an_empty_server_takes_one_answer_and_what_does_not_fit_the_memory_is_not_offered() -> None:
    tiny = replace(EMPTY, memory=Memory(total=4 * GB))
    assert "Download qwen2.5-coder:7b" in labels(EMPTY)
    assert [label for label in labels(tiny) if "Download" in label] == ["Download qwen2.5-coder:1.5b"]


def test_a_download_that_does_not_fit_on_the_disk_says_so() -> None:
    details = [choice.detail for choice in step_for(replace(EMPTY, free_disk=2 * GB)).choices]
    assert details[0] == "4.7 GB, but only 2.0 GB are free"
    assert "but only" not in details[1]


def test_installed_models_with_tools_come_first_and_cloud_models_last() -> None:
    plain = ModelInfo("old:1b", capabilities=frozenset({"completion"}))
    facts = replace(MODELS, models=(CLOUD, plain, SMALL))
    assert labels(facts)[:3] == ["Use small:1b", "Use old:1b", "Use gpt-oss:120b-cloud"]
    assert "leaves this machine" in step_for(facts).choices[2].detail


def test_nothing_installed_leads_on_as_soon_as_something_is() -> None:
    walk = FirstRun(NOTHING)
    assert walk.step.watch
    assert not walk.seen(NOTHING)
    assert walk.seen(STOPPED)
    assert walk.step.state == "stopped"
    assert walk.answers == 0


def test_the_engine_that_is_not_installed_shows_its_command_and_installs_nothing() -> None:
    walk = FirstRun(NOTHING)
    act = walk.answer(key(NOTHING, "tell"))
    assert act is not None
    assert walk.working is None
    assert "pip install 'tui-agent[embedded]'" in walk.note
    assert "1.1 GB" in walk.note
    assert walk.answers == 0


def test_the_engine_that_is_there_takes_one_answer_and_says_how_large_it_is() -> None:
    facts = replace(NOTHING, engine=True, engine_model=True)
    choice = next(choice for choice in step_for(facts).choices if choice.act.what == "engine")
    assert "1.1 GB" in choice.detail
    walk = FirstRun(facts)
    walk.answer(choice.key)
    walk.done(replace(facts, connected=True))
    assert (walk.outcome, walk.answers) == ("ready", 1)


def test_downloaded_models_can_be_run_without_the_server() -> None:
    facts = replace(STOPPED, engine=True, blobs=(BLOB,))
    assert "Run llama3.2:3b without Ollama" in labels(facts)
    assert FirstRun(facts).answer(key(facts, "engine", str(BLOB.path))) == Act("engine", str(BLOB.path))
    without = replace(STOPPED, blobs=(BLOB,))
    assert not any("without Ollama" in label for label in labels(without))
    told = next(choice.act.value for choice in step_for(without).choices if choice.act.what == "tell")
    assert "pip install xllamacpp uvicorn starlette" in told


def test_the_downloaded_model_that_the_settings_name_comes_first() -> None:
    wanted = replace(BLOB, name="qwen2.5-coder:7b", path=Path("/models/blobs/sha256-" + "b" * 64))
    facts = replace(STOPPED, engine=True, blobs=(BLOB, replace(BLOB, name="third:1b"), wanted))
    assert next(label for label in labels(facts) if "without" in label) == "Run qwen2.5-coder:7b without Ollama"


def test_another_machine_is_asked_for_once_and_this_one_is_the_other_way() -> None:
    facts = replace(NOTHING, local=False, leaves_to="http://box:11434", url="http://box:11434")
    step = step_for(facts)
    assert "http://box:11434 is not this machine" in step.text
    walk = FirstRun(facts)
    assert walk.answer("1") == Act("allow", "http://box:11434")
    walk.done(READY)
    assert (walk.outcome, walk.answers) == ("ready", 1)
    assert FirstRun(facts).answer("2") == Act("here")


def test_a_failure_stays_at_the_question_and_says_why() -> None:
    walk = FirstRun(STOPPED)
    walk.answer("1")
    assert walk.answer("1") is None, "nothing is answered while something is going on"
    walk.failed("`ollama serve` ended at once.", STOPPED)
    assert walk.error == "`ollama serve` ended at once."
    assert walk.outcome == ""
    assert walk.answer("1") == Act("serve")
    assert walk.error == ""


def test_a_stopped_download_stays_at_the_question_and_nothing_is_lost() -> None:
    walk = FirstRun(EMPTY)
    walk.answer("1")
    walk.cancelled()
    assert walk.working is None
    assert "goes on there" in walk.note


def test_a_key_that_means_nothing_changes_nothing() -> None:
    walk = FirstRun(STOPPED)
    assert walk.answer("9") is None
    assert walk.answer("") is None
    assert (walk.answers, walk.outcome) == (0, "")


def test_not_now_ends_it() -> None:
    walk = FirstRun(STOPPED)
    walk.answer("0")
    assert walk.outcome == "later"


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        (NOTHING, "https://ollama.com/download"),
        (STOPPED, "ollama serve"),
        (EMPTY, "ollama pull qwen2.5-coder:7b"),
        (MODELS, "tui-agent --model small:1b"),
        (READY, "tui-agent"),
        (replace(NOTHING, local=False, leaves_to="http://box:11434"), "tui-agent allow http://box:11434"),
        (replace(NOTHING, local=False, url="http://box:11434"), "tui-agent doctor --host http://box:11434"),
        (replace(NOTHING, odd=True), "OLLAMA_HOST=127.0.0.1:11435 ollama serve"),
    ],
)
def test_without_questions_the_exact_next_commands_are_there(facts: Surroundings, command: str) -> None:
    assert next_commands(facts)[0][0] == command
    engine = dict(next_commands(replace(facts, engine=True, engine_model=True)))
    assert facts.state in ("ready", "models", "empty", "odd") or "tui-agent --embedded" in engine


# -- hands -------------------------------------------------------------------------------------------------------------


def set_up(tmp_path: Path, host: str, **more: Any) -> SetUp:
    paths = UserPaths.find({"TUI_AGENT_HOME": str(tmp_path / "home")}).ensure()
    loaded = load_settings(None, paths, {}, {"host": host, **more.pop("flags", {})})
    return SetUp(loaded, paths, env={"PATH": ""}, home=tmp_path, **more)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


async def answer(hands: SetUp, walk: FirstRun, what: str, value: str = "") -> list[tuple[str, float | None]]:
    act = walk.answer(key(walk.facts, what, value))
    assert act is not None
    told: list[tuple[str, float | None]] = []
    await hands.carry_out(walk, act, lambda words, share: told.append((words, share)))
    return told


async def test_a_download_shows_its_share_and_the_model_is_kept_in_the_users_config(tmp_path: Path) -> None:
    async with WireServer(ScriptedBackend(models=[])) as server:
        hands = set_up(tmp_path, server.url)
        walk = FirstRun(await hands.look())
        assert walk.step.state == "empty"
        told = await answer(hands, walk, "pull", "qwen2.5-coder:1.5b")
        assert walk.outcome == "ready"
        shares = [share for _, share in told if share is not None]
        assert shares == sorted(shares)
        assert shares[-1] == 1.0
        assert any(" GB" in words for words, _ in told)
        assert 'model: "qwen2.5-coder:1.5b"' in (tmp_path / "home/config/config.yaml").read_text("utf-8")
        assert hands.flags == {"model": "qwen2.5-coder:1.5b"}


async def test_a_model_that_a_flag_or_project_names_is_not_written_over(tmp_path: Path) -> None:
    async with WireServer(ScriptedBackend(models=[model("small:1b")])) as server:
        hands = set_up(tmp_path, server.url, flags={"model": "big:70b"})
        walk = FirstRun(await hands.look())
        await answer(hands, walk, "model", "small:1b")
        assert walk.outcome == "ready"
        assert not (tmp_path / "home/config/config.yaml").exists()


async def test_a_server_with_an_embedding_model_alone_has_no_model_to_chat_with(tmp_path: Path) -> None:
    async with WireServer(ScriptedBackend(models=[embed_model()])) as server:
        assert (await set_up(tmp_path, server.url).look()).state == "empty"


async def test_an_unknown_model_stays_at_the_question(tmp_path: Path) -> None:
    backend = ScriptedBackend(models=[])
    async with WireServer(backend) as server:
        hands = set_up(tmp_path, server.url)
        walk = FirstRun(await hands.look())
        walk.working = Act("pull", "no/such:model")
        backend.queue_pulls("no/such:model", [{"error": "pull model manifest: file does not exist"}])
        await hands.carry_out(walk, walk.working, lambda *_: None)
        assert walk.error
        assert walk.step.state == "empty"


async def test_cancelling_a_download_closes_it_and_the_question_stands(tmp_path: Path) -> None:
    from tui_agent.llm.wire import pulls

    backend = ScriptedBackend(models=[])
    backend.queue_pulls("qwen2.5-coder:1.5b", pulls.stalled())
    async with WireServer(backend) as server:
        hands = set_up(tmp_path, server.url)
        walk = FirstRun(await hands.look())
        act = walk.answer(key(walk.facts, "pull", "qwen2.5-coder:1.5b"))
        assert act is not None
        begun = asyncio.Event()
        task = asyncio.ensure_future(hands.carry_out(walk, act, lambda words, share: begun.set() if share else None))
        await asyncio.wait_for(begun.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert walk.working is None
        assert "goes on there" in walk.note


async def test_a_closed_port_and_no_program_is_the_state_nothing(tmp_path: Path) -> None:
    facts = await set_up(tmp_path, f"127.0.0.1:{free_port()}").look()
    assert facts.state == "nothing"
    assert facts.memory.total > 0


async def test_a_web_page_on_the_port_is_named(tmp_path: Path) -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(page, "127.0.0.1", 0)
    async with server:
        facts = await set_up(tmp_path, f"127.0.0.1:{server.sockets[0].getsockname()[1]}").look()
    assert facts.state == "odd"
    assert "not an Ollama server" in facts.trouble


async def test_another_machine_is_not_contacted_before_the_yes(tmp_path: Path) -> None:
    hands = set_up(tmp_path, "http://models.example.invalid:11434")
    facts = await hands.look()
    assert facts.state == "remote"
    assert facts.leaves_to == "http://models.example.invalid:11434"
    walk = FirstRun(facts)
    await answer(hands, walk, "allow")
    assert hands.consent.allows("http://models.example.invalid:11434")
    assert walk.step.state == "far"


async def test_downloaded_weights_are_found_by_the_look(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "llm"))
    from test_ollama_files import gguf, put

    put(tmp_path / ".ollama/models", "registry.ollama.ai/library/qwen3/4b")
    put(tmp_path / ".ollama/models", "registry.ollama.ai/library/embed/1b", gguf("nomic-bert", ""))
    facts = await set_up(tmp_path, f"127.0.0.1:{free_port()}").look()
    assert [blob.name for blob in facts.blobs] == ["qwen3:4b"]


# -- session -----------------------------------------------------------------------------------------------------------


async def opened(tmp_path: Path, host: str, **flags: Any) -> Session:
    root = tmp_path / "project"
    root.mkdir(exist_ok=True)
    project, paths = Project.open(root), UserPaths.find({"TUI_AGENT_HOME": str(tmp_path / "home")})
    loaded = load_settings(project, paths, {}, {"host": host, "embedder": "none", **flags})
    return await Session.open(project, loaded, user_paths=paths, ask_first=True)


async def test_a_session_without_a_model_answers_after_the_first_run(tmp_path: Path) -> None:
    async with WireServer(ScriptedBackend(models=[model("small:1b")], default="Certainly.")) as server:
        session = await opened(tmp_path, server.url)
        try:
            await session.start()
            assert not session.server.ready
            walk = FirstRun(await session.setup.look())
            await answer(session.setup, walk, "model", "small:1b")
            assert walk.outcome == "ready"
            assert session.server.ready
            assert session.server.model == "small:1b"
            events = [event async for event in session.send("hello")]
            assert events[-1].status == "answered"  # type: ignore[attr-defined]
        finally:
            await session.close()


async def test_a_cloud_model_is_not_used_before_the_yes_and_is_said_to_leave(tmp_path: Path) -> None:
    name = "gpt-oss:120b-cloud"
    async with WireServer(ScriptedBackend(models=[model("small:1b"), model(name)], default="Yes.")) as server:
        session = await opened(tmp_path, server.url, model="small:1b")
        try:
            await session.start()
            await session.settled()
            refused = await session.switch_model(name)
            assert not refused.ok
            assert refused.extra == {"allow": "https://ollama.com"}
            assert session.server.model == "small:1b"
            assert all(chat.body["model"] == "small:1b" for chat in server.log.of("/api/chat"))
            session.setup.consent.allow("https://ollama.com")
            assert (await session.switch_model(name)).ok
            assert not session.server.local
        finally:
            await session.close()


async def test_a_cloud_embedding_model_gets_no_memories_before_the_yes(tmp_path: Path) -> None:
    embedder = embed_model("embed:cloud")
    async with WireServer(ScriptedBackend(models=[model("small:1b"), embedder], default="Yes.")) as server:
        session = await opened(tmp_path, server.url, model="small:1b", embedder="embed:cloud")
        try:
            await session.start()
            assert not session.server.embedder.startswith("ollama:")
            assert server.log.of("/api/embed") == []
        finally:
            await session.close()


async def test_nothing_is_sent_to_another_machine_before_the_yes(tmp_path: Path) -> None:
    session = await opened(tmp_path, "http://models.example.invalid:11434")
    seen: list[Any] = []
    session.subscribe(seen.append)
    try:
        await session.start()
        assert not session.server.ready
        assert not session.server.local
        events = [event async for event in session.send("my secret plan")]
        last = events[-1]
        assert last.error_kind == "consent_needed"  # type: ignore[attr-defined]
        assert "tui-agent allow http://models.example.invalid:11434" in last.error  # type: ignore[attr-defined]
    finally:
        await session.close()


async def test_downloaded_weights_run_in_the_engine_under_their_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, Any]] = []
    blob = tmp_path / "models/blobs" / ("sha256-" + "a" * 64)

    class Engine:
        def __init__(self, **options: Any) -> None:
            made.append(options)

        async def start(self, on_progress: Any) -> str:
            return server.url

        async def stop(self) -> None:
            made.append({"stopped": True})

    monkeypatch.setattr("tui_agent.llm.embedded.process.EmbeddedEngine", Engine)
    monkeypatch.setattr("tui_agent.agent.connection.name_of", lambda path: "qwen3:4b" if path == str(blob) else "")
    async with WireServer(ScriptedBackend(models=[model("qwen3:4b")], default="Hi.")) as server:
        session = await opened(tmp_path, f"127.0.0.1:{free_port()}")
        try:
            await session.start()
            walk = FirstRun(replace(await session.setup.look(), engine=True, blobs=(replace(BLOB, path=blob),)))
            await answer(session.setup, walk, "engine", str(blob))
            assert walk.outcome == "ready"
            assert (made[0]["gguf"], made[0]["name"]) == (str(blob), "qwen3:4b")
            assert (session.server.embedded, session.server.model) == (True, "qwen3:4b")
        finally:
            await session.close()
    assert made[-1] == {"stopped": True}


async def test_the_doctor_of_a_session_knows_what_was_answered(tmp_path: Path) -> None:
    from tui_agent.agent.doctor.facts import TerminalFacts

    async with WireServer(ScriptedBackend(models=[model("small:1b")])) as server:
        session = await opened(tmp_path, server.url)
        try:
            await session.start()
            before = {one.id for one in await session.examine(TerminalFacts(term="xterm"))}
            assert "model.missing" in before
            walk = FirstRun(await session.setup.look())
            await answer(session.setup, walk, "model", "small:1b")
            found = {one.id: one for one in await session.examine(TerminalFacts(term="xterm"))}
            assert "model.missing" not in found
            assert found["model"].text.startswith("small:1b")
        finally:
            await session.close()


def test_the_look_needs_no_session(tmp_path: Path) -> None:
    paths = UserPaths.find({"TUI_AGENT_HOME": str(tmp_path / "home")})
    settings = load_settings(None, paths, {}, {"host": f"127.0.0.1:{free_port()}"}).settings
    facts = asyncio.run(FirstLook(settings, paths, env={"PATH": ""}, home=tmp_path).look())
    assert facts.url.startswith("http://127.0.0.1:")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (NOTHING, "No model server answers at http://127.0.0.1:11434."),
        (STOPPED, "Ollama is not running: nothing answers at http://127.0.0.1:11434."),
        (EMPTY, "The server at http://127.0.0.1:11434 has no model to chat with yet."),
        (MODELS, "qwen2.5-coder:7b is not installed at http://127.0.0.1:11434."),
        (replace(BASE, leaves_to="http://box"), "Sending what you write to http://box is not allowed yet."),
        (replace(BASE, odd=True, trouble="A web page came back."), "A web page came back."),
    ],
)
def test_what_is_missing_is_one_sentence(facts: Surroundings, words: str) -> None:
    assert missing(facts) == words


async def test_a_model_chosen_in_the_first_run_is_not_told_as_a_switch_when_its_line_in_the_config_is_read(
    tmp_path: Path,
) -> None:
    async with WireServer(ScriptedBackend(models=[model("small:1b")], default="Yes.")) as server:
        session = await opened(tmp_path, server.url)
        told: list[str] = []
        session.subscribe(lambda event: told.append(getattr(event, "text", "")))
        try:
            await session.start()
            run = FirstRun(await session.setup.look())
            act = run.answer("1")
            assert act == Act("model", "small:1b")
            # The file is read anew at any moment: before the session is connected to its choice, and after.
            session.setup.model = "small:1b"
            changed = session.loaded.settings.model_copy(update={"model": "small:1b"})
            await session.apply_settings(replace(session.loaded, settings=changed))
            await session.setup.carry_out(run, act, lambda words, share: None)
            await session.apply_settings(replace(session.loaded, settings=changed))
            assert session.server.ready
            assert session.server.model == "small:1b"
            assert not any("answers from now on" in words for words in told)
        finally:
            await session.close()
