"""Chroma beside the facts of a session: loaded in the background, following the rows, and never needed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import Desk, WordEmbedder, of
from tui_agent.agent import indexing
from tui_agent.agent.consent import Consent
from tui_agent.agent.doctor.facts import TerminalFacts
from tui_agent.agent.events import IndexChanged, Notice
from tui_agent.memory import shredding
from tui_agent.memory.chroma_collection import open_client
from tui_agent.memory.fact_index import FactIndex
from tui_agent.memory.index_process import IndexProcess
from tui_agent.memory.owner_lock import OwnerLock
from tui_agent.memory.shredding import index_is_stale, shred
from tui_agent.memory.types import NewFact

Open = Callable[..., Awaitable[Desk]]
TEXTS = ("We deploy on Fridays", "The code style is black", "The database is PostgreSQL 16", "Reviews need two people")


async def started(desk: Desk) -> Desk:
    """The desk once its index has taken over everything."""
    await desk.session.start()
    await idle(desk)
    return desk


async def idle(desk: Desk) -> None:
    session = desk.session
    while session._background:
        await asyncio.gather(*session._background, return_exceptions=True)
    await session.core.settled()
    assert session._keeper is not None
    await session._keeper.settled()


async def add(desk: Desk, *texts: str) -> list[str]:
    made = [desk.session.stores.facts.add(NewFact("", text, "message 1")).id for text in texts]
    await desk.session.core.facts_changed()
    await idle(desk)
    return made


def ids_in(folder: Path, project_id: str) -> set[str]:
    client = open_client(folder)
    try:
        return set(client.get_collection(f"pamiec-{project_id}", embedding_function=None).get(include=[])["ids"])
    finally:
        client.close()


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def recalled(desk: Desk, query: str) -> tuple[list[str], str]:
    desk.session.core.recaller.index_patience_s = 10.0  # the machine may be busy
    record = await desk.session.core.recaller.recall(query, threshold=-1, top_k=3)
    return [item.text for item in record.items if item.store == "fact"], record.extra["index"]


async def test_facts_are_kept_in_chroma_and_it_names_what_is_recalled(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    assert desk.session.index.state == "empty"  # nothing is loaded for nothing
    assert desk.session._keeper is not None
    assert desk.session._keeper._index is None
    ids = await add(desk, *TEXTS)
    status = desk.session.index
    assert (status.state, status.search, status.owner, status.rows) == ("ready", "chroma", True, 4)
    texts, index = await recalled(desk, "when do we deploy")
    assert index == "chroma"
    assert texts[0] == "We deploy on Fridays"
    await desk.session.expire(f"fact:{ids[0]}")
    await idle(desk)
    assert desk.session.index.rows == 3
    await desk.session.close()
    assert ids_in(desk.project.vector_dir, desk.project.id) == set(ids[1:])


async def test_a_score_is_the_same_whether_chroma_or_exact_search_found_it(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    await add(desk, *TEXTS)
    recaller = desk.session.core.recaller
    recaller.index_patience_s = 10.0
    with_chroma = await recaller.recall("which database and style", threshold=-1)
    recaller.index = None
    exactly = await recaller.recall("which database and style", threshold=-1)
    assert with_chroma.extra["index"] == "chroma"
    assert exactly.extra["index"] == "exact"
    assert [(item.id, item.score) for item in with_chroma.items] == [(item.id, item.score) for item in exactly.items]


async def test_what_has_expired_since_the_index_was_filled_is_not_recalled(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    ids = await add(desk, *TEXTS)
    desk.session.stores.db.execute("UPDATE memory SET expires_at = '2020-01-01 00:00:00' WHERE id = ?", (ids[0],))
    texts, index = await recalled(desk, "when do we deploy")
    assert index == "chroma"
    assert "We deploy on Fridays" not in texts


async def test_a_single_question_and_commands_leave_chroma_alone(open_desk: Open) -> None:
    desk = await open_desk()
    await desk.session.start()
    assert desk.session._keeper is None
    assert not (await desk.session.reindex()).ok
    assert desk.session.index.state == "empty"


async def test_a_second_window_searches_exactly_says_so_once_and_takes_over_later(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await open_desk(interactive=True)
    desk.project.memory_dir.mkdir(exist_ok=True)
    other = OwnerLock(desk.project.lock_path)
    assert other.acquire()
    await started(desk)
    await add(desk, *TEXTS)
    assert desk.session.index.state == "exact"
    assert "belongs to another window" in desk.session.index.reason
    assert desk.session.server.degraded == ("exact search",)
    assert (await recalled(desk, "when do we deploy"))[1] == "exact"
    await add(desk, "Tests are written first")
    assert len([n for n in of(desk.heard, Notice) if n.key == "vector-index"]) == 1
    other.release()
    monkeypatch.setattr("tui_agent.agent.indexing._LOOK_AGAIN_S", 0.0)
    await add(desk, "Releases are tagged")
    assert desk.session.index.state == "ready"
    assert desk.session.server.degraded == ()


async def test_a_native_crash_leaves_exact_search_and_one_sentence_and_reindex_mends_it(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    await add(desk, *TEXTS)
    assert desk.session._keeper is not None
    index = desk.session._keeper._index
    assert index is not None
    assert index.pid is not None
    os.kill(index.pid, signal.SIGSEGV)
    texts, how = await recalled(desk, "when do we deploy")
    assert (texts[0], how) == ("We deploy on Fridays", "exact")
    assert desk.session.index.state == "exact"
    assert "SIGSEGV" in desk.session.index.reason
    await add(desk, "Tests are written first")
    said = [n for n in of(desk.heard, Notice) if n.key == "vector-index"]
    assert len(said) == 1
    assert "/reindex makes it anew" in said[0].text
    result = await desk.session.reindex()
    assert result.ok, result.text
    assert desk.session.index.rows == 5
    assert (await recalled(desk, "when do we deploy"))[1] == "chroma"


async def test_a_broken_folder_is_made_anew_and_that_is_said(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    await add(desk, *TEXTS)
    await desk.session.close()
    for path in desk.project.vector_dir.rglob("*"):
        if path.is_file() and path.name != "made-by-tui-agent":
            path.write_bytes(b"garbage")
    again = await started(await open_desk(interactive=True))
    assert again.session.index.state == "ready"
    assert any("made anew from the database; nothing is lost" in n.text for n in of(again.heard, Notice))


class Other(WordEmbedder):
    identity = "others:64"


async def test_another_embedder_builds_the_index_anew_while_search_goes_on(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.agent.indexing._SHOWN_S", 0.0)
    desk = await started(await open_desk(interactive=True))
    await add(desk, *(f"Module number {number} is ready" for number in range(250)))
    await desk.session.close()
    again = await started(await open_desk(interactive=True, embedder=Other()))
    steps = [(e.done, e.total, e.mark) for e in of(again.heard, IndexChanged) if e.state == "rebuilding"]
    assert steps
    assert steps[0][1:] == (250, "indexing 40%")
    assert [e.total for e in of(again.heard, IndexChanged) if e.state == "embedding"][:1] == [250]
    assert again.session.index.identity == "others:64"
    assert again.session.server.degraded == ()
    await again.session.close()
    client = open_client(again.project.vector_dir)
    try:
        collections = client.list_collections()
        assert [each.name for each in collections] == [f"pamiec-{again.project.id}"]
        assert collections[0].metadata["identity"] == "others:64"
    finally:
        client.close()


async def test_delete_forever_takes_the_fact_out_of_chroma(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    ids = await add(desk, *TEXTS)
    result = await desk.session.delete_forever(f"fact:{ids[2]}")
    assert result.ok, result.text
    assert "in use by another window" not in result.text
    await idle(desk)
    assert desk.session.index.rows == 3
    await desk.session.close()
    assert ids_in(desk.project.vector_dir, desk.project.id) == {ids[0], ids[1], ids[3]}
    everything = bytes_below(desk.project.vector_dir)
    assert ids[2].encode() not in everything


async def test_a_deletion_by_another_process_has_the_index_made_anew_by_its_owner(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    ids = await add(desk, *TEXTS)
    report = await asyncio.to_thread(shred, desk.session.stores, ids[2])  # a command has no hand in the index
    assert any("makes it anew" in note for note in report.notes)
    assert index_is_stale(desk.session.stores.db)
    async for _ in desk.session.send("When do we deploy?"):
        pass
    await idle(desk)
    assert desk.session.index.rows == 3
    assert not index_is_stale(desk.session.stores.db)
    await desk.session.close()
    everything = bytes_below(desk.project.vector_dir)
    assert ids[0].encode() in everything
    assert ids[2].encode() not in everything


async def test_a_deletion_that_was_killed_is_finished_at_the_start_and_has_the_index_emptied(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await started(await open_desk(interactive=True))
    ids = await add(desk, *TEXTS)
    stores = desk.session.stores
    with monkeypatch.context() as killed:
        killed.setattr(shredding, "scrub_database", no_power)
        with pytest.raises(RuntimeError):
            await asyncio.to_thread(shred, stores, ids[2])
    events: list[Any] = []
    desk.session.subscribe(events.append)
    assert ids[2].encode() in bytes_below(desk.project.vector_dir)
    await desk.session._tidy()
    await idle(desk)
    assert [e.text for e in of(events, Notice) if "interrupted deletion was finished" in e.text]
    await desk.session.close()
    assert ids[2].encode() not in bytes_below(desk.project.vector_dir)


async def test_a_line_by_hand_that_is_deleted_forever_has_the_index_emptied_by_this_window(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    await add(desk, *TEXTS)
    notes = desk.project.user_notes_path
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text("- I keep bees on the roof of the library.\n", encoding="utf-8")
    (line,) = [one for one in await desk.session.remembered() if one.ref.startswith("note:")]
    result = await desk.session.delete_forever(line.ref)
    assert result.ok, result.text
    assert "in use by another window" not in result.text
    assert not index_is_stale(desk.session.stores.db)
    await idle(desk)
    assert desk.session.index.rows == 4


def no_power(*_: Any) -> None:
    raise RuntimeError("the power is gone")


async def test_rows_read_before_a_deletion_are_not_written_into_the_index_after_it(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await started(await open_desk(interactive=True))
    ids = await add(desk, *TEXTS)
    keeper, reading, times = desk.session._keeper, indexing._some, 0
    assert keeper is not None

    def read_then_delete(stores: Any, identity: str, wanted: Any) -> Any:
        nonlocal times
        found = reading(stores, identity, wanted)
        times += 1
        if times == 1:
            stores.ledger.delete(ids[2])
            assert keeper.drop()
        return found

    monkeypatch.setattr(indexing, "_some", read_then_delete)
    assert (await desk.session.reindex()).ok
    assert times == 2
    assert desk.session.index.rows == 3
    await desk.session.close()
    everything = bytes_below(desk.project.vector_dir)
    assert ids[0].encode() in everything
    assert ids[2].encode() not in everything


async def test_an_index_that_was_emptied_just_after_it_was_written_is_filled_again(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await started(await open_desk(interactive=True))
    keeper = desk.session._keeper
    assert keeper is not None
    run, emptied = keeper._run, []

    async def written_then_emptied(func: Any, *args: Any, **more: Any) -> Any:
        found = await run(func, *args, **more)
        if func == keeper._write and not emptied:
            emptied.append(await asyncio.to_thread(keeper.drop))
        return found

    monkeypatch.setattr(keeper, "_run", written_then_emptied)
    await add(desk, *TEXTS)
    assert emptied == [True]
    assert (desk.session.index.state, desk.session.index.rows) == ("ready", 4)
    assert keeper._index is not None
    assert await asyncio.to_thread(keeper._index.count) == 4


async def index_line(desk: Desk) -> Any:
    """What the doctor says of the index in this window."""
    return next(one for one in await desk.session.examine(TerminalFacts()) if one.check == "index")


async def test_the_doctor_of_the_chat_names_state_and_identity_of_the_index_and_how_far_a_rebuild_is(
    open_desk: Open,
) -> None:
    desk = await started(await open_desk(interactive=True))
    await add(desk, *TEXTS)
    line = await index_line(desk)
    assert (line.level, line.text) == ("ok", "4 facts are in the vector index. Vectors of words:64.")
    keeper = desk.session._keeper
    assert keeper is not None
    keeper.status = replace(keeper.status, state="rebuilding", done=1, total=4)
    assert "1 of 4. Search is exact meanwhile." in (await index_line(desk)).text


async def test_the_doctor_says_why_search_is_exact_and_how_to_mend_it(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    await add(desk, *TEXTS)
    keeper = desk.session._keeper
    assert keeper is not None
    keeper.status = replace(keeper.status, state="exact", reason="The vector index has crashed.")
    line = await index_line(desk)
    assert (line.id, line.level) == ("index.exact", "degraded")
    assert "The vector index has crashed." in line.text
    assert "/reindex" in line.fix


async def test_the_index_can_be_switched_off_while_the_app_runs(open_desk: Open) -> None:
    desk = await started(await open_desk(interactive=True))
    await add(desk, *TEXTS)
    desk.project.config_path.write_text("chroma:\n  mode: off\n", "utf-8")
    await desk.session.apply_settings(desk.session.loaded.reload())
    assert desk.session.index.state == "off"
    assert (await recalled(desk, "when do we deploy"))[1] == "exact"
    assert not (await desk.session.reindex()).ok


async def test_a_server_on_another_machine_is_not_asked_without_leave(
    open_desk: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_CHROMA__MODE", "http")
    monkeypatch.setenv("TUI_AGENT_CHROMA__HOST", "chroma.example.org")
    desk = await open_desk(interactive=True, **{"chroma.mode": "http", "chroma.host": "chroma.example.org"})
    await started(desk)
    await add(desk, *TEXTS)
    assert desk.session.index.state == "exact"
    assert "chroma.example.org is not on this machine" in desk.session.index.reason
    assert "tui-agent allow chroma.example.org" in desk.session.index.reason
    assert desk.session._keeper is not None
    assert desk.session._keeper._index is None
    assert desk.session.server.local


async def test_a_yes_for_a_machine_is_one_for_its_chroma_server_too_and_is_shown_as_leaving(
    open_desk: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_CHROMA__MODE", "http")
    monkeypatch.setenv("TUI_AGENT_CHROMA__HOST", "chroma.invalid")
    desk = await open_desk(interactive=True, **{"chroma.mode": "http", "chroma.host": "chroma.invalid"})
    Consent(desk.session.stores.paths, desk.session.settings).allow("http://chroma.invalid:11434")
    await started(desk)
    await add(desk, *TEXTS)
    assert desk.session._keeper is not None
    assert desk.session._keeper._index is not None
    assert not desk.session.server.local
    assert "not on this machine" not in desk.session.index.reason


async def test_a_project_cannot_send_vectors_elsewhere(open_desk: Open) -> None:
    desk = await open_desk()
    desk.project.config_path.write_text("chroma:\n  mode: http\n  host: chroma.example.org\n", "utf-8")
    loaded = desk.session.loaded.reload()
    assert loaded.settings.chroma.host == "127.0.0.1"
    assert any("may name only this machine" in problem.text for problem in loaded.problems)


@contextlib.contextmanager
def chroma_server(folder: Path) -> Iterator[int]:
    """``chroma run`` on a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = Path(sys.executable).with_name("chroma")
    process = subprocess.Popen(
        [str(command), "run", "--host", "127.0.0.1", "--port", str(port), "--path", str(folder)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
    )  # fmt: skip
    try:
        for _ in range(300):
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=1),
            ):
                break
            if process.poll() is not None:
                pytest.fail(f"the server ended with {process.returncode}")
            import time

            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(10)


async def test_a_chroma_server_serves_in_mode_http_and_its_loss_is_survived(open_desk: Open, tmp_path: Path) -> None:
    with chroma_server(tmp_path / "server") as port:
        desk = await started(await open_desk(interactive=True, **{"chroma.mode": "http", "chroma.port": port}))
        ids = await add(desk, *TEXTS)
        assert desk.session.index.state == "ready", desk.session.index.reason
        assert (await recalled(desk, "when do we deploy"))[1] == "chroma"
        assert not desk.project.vector_dir.exists()
        assert (await desk.session.delete_forever(f"fact:{ids[2]}")).ok
        await idle(desk)
        assert desk.session.index.rows == 3
    texts, how = await recalled(desk, "when do we deploy")
    assert (texts[0], how) == ("We deploy on Fridays", "exact")
    assert desk.session.index.state == "exact"
    assert "nothing is lost" in desk.session.index.reason


async def test_closing_does_not_wait_for_an_index_that_is_being_filled(open_desk: Open) -> None:
    desk = await open_desk(interactive=True)
    keeper = desk.session._keeper
    assert keeper is not None
    slow = (sys.executable, "-c", _SLOW)

    def make(*args: Any, **more: Any) -> IndexProcess:
        return IndexProcess(*args, **more, program=slow)

    keeper._make = make
    for text in TEXTS:
        desk.session.stores.facts.add(NewFact("", text, "message 1"))
    await desk.session.start()
    while keeper._index is None or keeper._index.pid is None:
        await asyncio.sleep(0.01)
    pid = keeper._index.pid
    await asyncio.wait_for(desk.session.close(), 8)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


_SLOW = """
import time
from tui_agent.memory import chroma_index, index_process
chroma_index.ChromaIndex.sync = lambda *args, **more: time.sleep(60)
index_process.main()
"""


async def test_a_new_conversation_finds_the_facts_without_reading_them_again(
    open_desk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = await started(await open_desk(interactive=True))
    await add(desk, *TEXTS)
    await desk.session.core.recaller.recall(TEXTS[0], threshold=-1)
    reads: list[int] = []
    whole = FactIndex._whole
    monkeypatch.setattr(FactIndex, "_whole", lambda *args: [reads.append(1), whole(*args)][1])
    await desk.session.switch("new")
    record = await desk.session.core.recaller.recall(TEXTS[0], threshold=-1)
    assert record.items[0].text == TEXTS[0]
    assert reads == []
