"""Chroma as a projection: filled, swapped, owned by one process, and never believed when it is damaged."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tui_agent.memory import chroma_collection
from tui_agent.memory.chroma_collection import BATCH, Rows, clean_metadata, open_client, space_of
from tui_agent.memory.chroma_index import ChromaIndex
from tui_agent.memory.owner_lock import OwnerLock
from tui_agent.memory.types import Kind

DIMENSION = 16
PROJECT = "a1b2c3d4e5f6"


def vectors(count: int, seed: int = 0, dimension: int = DIMENSION) -> NDArray[np.float32]:
    made = np.random.default_rng(seed).normal(size=(count, dimension))
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def names(count: int) -> list[str]:
    return [f"f{n:04}" for n in range(count)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".agent-memory" / "vector-store"


@pytest.fixture
def index(folder: Path) -> Iterator[ChromaIndex]:
    made = ChromaIndex(folder, PROJECT, "usem3/1")
    yield made
    made.close()


@contextlib.contextmanager
def looked_into(folder: Path) -> Iterator[Any]:
    client = open_client(folder)
    try:
        yield client
    finally:
        client.close()


def nearest(ids: list[str], matrix: NDArray[np.float32], vector: NDArray[np.float32], n: int) -> list[str]:
    return [ids[int(at)] for at in np.argsort(-(matrix @ vector), kind="stable")[:n]]


def answers_rightly(index: ChromaIndex, ids: list[str], matrix: NDArray[np.float32]) -> bool:
    hits = index.query(matrix[3], 3)
    return hits is not None and [hit.id for hit in hits] == nearest(ids, matrix, matrix[3], 3)


# --- filling and asking ---------------------------------------------------------------------------


def test_rows_are_found_by_their_cosine_distance_nearest_first(index: ChromaIndex) -> None:
    ids, matrix = names(40), vectors(40)
    assert index.query(matrix[0]) is None  # nothing is asked before it was compared with the database
    assert index.sync(ids, matrix, [{"importance": n % 10} for n in range(40)])
    hits = index.query(matrix[7], 5)
    assert hits is not None
    assert [hit.id for hit in hits] == nearest(ids, matrix, matrix[7], 5)
    assert [hit.distance for hit in hits] == pytest.approx(sorted(1 - matrix @ matrix[7])[:5], abs=1e-5)
    assert (index.state, index.problem, index.count()) == ("ready", "", 40)
    assert index.query(matrix[0], 0) == []
    assert len(index.query(matrix[0], 500) or ()) == 40  # fewer rows than asked for are no error


def test_the_collection_is_named_after_the_project_and_made_with_cosine_and_without_texts(
    index: ChromaIndex, folder: Path
) -> None:
    assert index.sync(names(3), vectors(3), [{"category": "decision"}] * 3)
    index.close()
    with looked_into(folder) as client:
        assert [collection.name for collection in client.list_collections()] == [f"pamiec-{PROJECT}"]
        collection = client.get_collection(f"pamiec-{PROJECT}", embedding_function=None)
        assert space_of(collection) == "cosine"
        assert collection.get()["documents"] == [None] * 3
        assert collection.metadata["identity"] == "usem3/1"


def test_sync_writes_only_what_differs_and_takes_out_what_is_gone(
    index: ChromaIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, matrix = names(30), vectors(30)
    about: list[dict[str, Any]] = [{"importance": 5, "timestamp": 1e9 + n} for n in range(30)]
    assert index.sync(ids, matrix, about)
    written: list[str] = []
    put = chroma_collection.ProjectCollection._write

    def watched(self: Any, collection: Any, rows: Rows, progress: Any) -> None:
        written.extend(rows.ids)
        put(self, collection, rows, progress)

    monkeypatch.setattr(chroma_collection.ProjectCollection, "_write", watched)
    about[4] = {"importance": 9, "timestamp": 1e9}
    assert index.sync([*ids[:20], "new"], np.vstack([matrix[:20], vectors(1, seed=5)]), [*about[:20], {}])
    assert sorted(written) == ["f0004", "new"]
    assert index.count() == 21
    found = {hit.id for hit in index.query(matrix[25], 30) or ()}
    assert "f0025" not in found
    assert "new" in found


def test_rows_are_added_and_removed_between_two_syncs(index: ChromaIndex) -> None:
    ids, matrix = names(20), vectors(20)
    assert index.sync(ids[:10], matrix[:10])
    assert index.add(ids[10:], matrix[10:])
    assert answers_rightly(index, ids, matrix)
    assert index.remove(["f0003", "unknown"])
    assert "f0003" not in {hit.id for hit in index.query(matrix[3], 20) or ()}
    assert not index.add(["odd"], vectors(1, dimension=8))  # another embedder's; the next sync will do it
    assert index.state == "ready"


def test_large_sets_go_in_batches_and_report_progress(index: ChromaIndex) -> None:
    steps: list[tuple[int, int]] = []
    count = 2 * BATCH + 30
    assert index.sync(names(count), vectors(count), progress=lambda done, total: steps.append((done, total)))
    assert steps == [(100, 230), (200, 230), (230, 230)]


def test_an_empty_store_is_in_order_and_can_be_filled_later(index: ChromaIndex) -> None:
    assert index.sync([], np.empty((0, 0), np.float32))
    assert index.count() == 0
    assert index.query(vectors(1)[0]) is None  # it knows no dimension yet
    assert index.sync(names(5), vectors(5))
    assert answers_rightly(index, names(5), vectors(5))


def test_vectors_that_are_no_numbers_and_repeated_ids_do_not_stop_the_others(index: ChromaIndex) -> None:
    matrix = vectors(6)
    matrix[2, 0] = np.nan
    matrix[4] = 0.0
    assert index.sync(["a", "b", "c", "d", "zero", "a"], matrix)
    assert index.count() == 4
    hits = index.query(matrix[5], 1)
    assert hits is not None
    assert hits[0].id == "a"  # the last one of an id counts


def test_metadata_that_chroma_refuses_is_left_out(index: ChromaIndex) -> None:
    cleaned = clean_metadata(
        {"kind": Kind.FACT, "n": np.int64(3), "x": 0.5, "none": None, "list": [], "dict": {"a": 1}, "nan": float("nan")}
    )
    assert cleaned == {"kind": "fact", "n": 3, "x": 0.5}
    assert clean_metadata({"tags": [], "more": {}}) is None
    assert index.sync(names(3), vectors(3), [{"tags": []}, {}, {"broken": "\udcff", "ok": True}])


def test_rows_that_do_not_belong_together_are_an_error_of_the_caller(index: ChromaIndex) -> None:
    with pytest.raises(ValueError, match="do not belong together"):
        index.sync(names(3), vectors(2))
    with pytest.raises(ValueError, match="no project id"):
        ChromaIndex(Path("x"), "../other", "i")


# --- other identities and other programs ----------------------------------------------------------


def test_another_identity_builds_a_new_collection_that_takes_the_name(folder: Path) -> None:
    first = ChromaIndex(folder, PROJECT, "small/1")
    assert first.sync(names(8), vectors(8, dimension=8))
    first.close()
    second = ChromaIndex(folder, PROJECT, "large/1")
    assert second.open()
    assert second.query(vectors(1)[0]) is None  # vectors of two embedders are never compared
    assert second.count() is None
    assert second.sync(names(12), vectors(12))
    assert answers_rightly(second, names(12), vectors(12))
    second.close()
    with looked_into(folder) as client:
        assert [collection.name for collection in client.list_collections()] == [f"pamiec-{PROJECT}"]


@pytest.mark.parametrize("complete", [True, False])
def test_a_swap_that_was_interrupted_is_ended_or_begun_again(folder: Path, complete: bool) -> None:
    ids, matrix = names(9), vectors(9)
    with ChromaIndexOpen(folder) as index:
        assert index.sync(ids, matrix)
    with looked_into(folder) as client:
        collection = client.get_collection(f"pamiec-{PROJECT}", embedding_function=None)
        about = {name: value for name, value in collection.metadata.items() if complete or name != "complete"}
        collection.modify(name=f"pamiec-{PROJECT}-new", metadata=about)
    (folder / "made-by-tui-agent").unlink()  # as on a server, where nobody sees the files
    with ChromaIndexOpen(folder) as index:
        assert index.open()
        assert index.count() == (9 if complete else None)
        assert index.sync(ids, matrix)
        assert answers_rightly(index, ids, matrix)


class ChromaIndexOpen(contextlib.AbstractContextManager[ChromaIndex]):
    """An index that is closed at the end, so that the next one can own it."""

    def __init__(self, folder: Path, identity: str = "usem3/1") -> None:
        self.index = ChromaIndex(folder, PROJECT, identity)

    def __enter__(self) -> ChromaIndex:
        return self.index

    def __exit__(self, *_: object) -> None:
        self.index.close()


def test_a_collection_in_l2_that_another_program_made_is_kept_and_never_compared_as_cosine(folder: Path) -> None:
    with looked_into(folder) as client:
        theirs = client.get_or_create_collection(f"pamiec-{PROJECT}", embedding_function=None)
        assert space_of(theirs) == "l2"
        theirs.upsert(ids=["fact-1"], embeddings=[[1.0, 2.0]], documents=["Projekt używa REST."])
    with ChromaIndexOpen(folder) as index:
        assert index.sync(names(4), vectors(4))
        assert answers_rightly(index, names(4), vectors(4))
    with looked_into(folder) as client:
        assert space_of(client.get_collection(f"pamiec-{PROJECT}", embedding_function=None)) == "cosine"
        kept = client.get_collection(f"pamiec-{PROJECT}-article", embedding_function=None)
        assert kept.get()["documents"] == ["Projekt używa REST."]


def test_our_own_collection_in_l2_is_built_anew(folder: Path) -> None:
    with looked_into(folder) as client:
        about = {"made_by": "tui-agent", "identity": "usem3/1", "dimension": DIMENSION}
        client.create_collection(f"pamiec-{PROJECT}", metadata=about, embedding_function=None).upsert(
            ids=["x"], embeddings=vectors(1)
        )
    with ChromaIndexOpen(folder) as index:
        assert index.sync(names(4), vectors(4))
    with looked_into(folder) as client:
        assert space_of(client.get_collection(f"pamiec-{PROJECT}", embedding_function=None)) == "cosine"


def test_projects_in_one_folder_never_see_each_other(folder: Path, index: ChromaIndex) -> None:
    with looked_into(folder) as client:
        client.create_collection("pamiec-other", embedding_function=None).upsert(ids=["theirs"], embeddings=vectors(1))
    assert index.sync(names(3), vectors(3))
    assert {hit.id for hit in index.query(vectors(1)[0], 10) or ()} == set(names(3))
    assert index.drop()
    with looked_into(folder) as client:
        assert [collection.name for collection in client.list_collections()] == ["pamiec-other"]


def test_dropping_the_only_collection_leaves_no_folder(index: ChromaIndex, folder: Path) -> None:
    assert index.sync(names(3), vectors(3))
    assert index.drop()
    assert not folder.exists()
    assert index.sync(names(3), vectors(3))


# --- one owner ------------------------------------------------------------------------------------


def test_a_second_window_gets_none_and_says_who_has_the_index(index: ChromaIndex, folder: Path) -> None:
    assert index.sync(names(5), vectors(5))
    second = ChromaIndex(folder, PROJECT, "usem3/1")
    assert not second.open()
    assert not second.sync(names(5), vectors(5))
    assert second.query(vectors(1)[0]) is None
    assert second.state == "elsewhere"
    assert f"another window of this project (process {os.getpid()})" in second.problem
    assert "nothing is lost" in second.problem
    assert not second.rebuild(names(5), vectors(5))
    index.close()
    assert second.sync(names(5), vectors(5))  # whoever comes next owns it
    second.close()


CHILD = """
import os, sys
from pathlib import Path
from tui_agent.memory.owner_lock import OwnerLock
lock = OwnerLock(Path(sys.argv[1]))
assert lock.acquire()
if sys.argv[2] == "die":
    lock.busy("be searched")
    os._exit(9)
print("held", flush=True)
sys.stdin.read()
"""


def child(lock: Path, how: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(lock), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_another_process_holds_the_lock_until_it_ends_however_it_ends(folder: Path) -> None:
    folder.parent.mkdir()
    with child(folder.with_name("vector-store.lock"), "hold") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        index = ChromaIndex(folder, PROJECT, "usem3/1")
        assert not index.open()
        assert f"process {holder.pid}" in index.problem
        holder.kill()
        holder.wait()
        assert index.open()
        index.close()


def test_an_owner_that_died_inside_a_call_makes_the_next_one_start_from_nothing(folder: Path) -> None:
    ids, matrix = names(6), vectors(6)
    with ChromaIndexOpen(folder) as index:
        assert index.sync(ids, matrix)
    left = set(folder.iterdir())
    lock = folder.with_name("vector-store.lock")
    with child(lock, "die") as dying:
        dying.wait()
    with ChromaIndexOpen(folder) as index:
        assert index.open()
        assert index.count() is None
        assert not left & {path for path in folder.iterdir() if path.is_dir()}
        assert index.sync(ids, matrix)
        assert answers_rightly(index, ids, matrix)
    probe = OwnerLock(lock)
    assert probe.acquire()
    assert probe.crashes == 0  # it worked again
    probe.release()


def test_an_index_that_keeps_ending_the_program_is_left_alone_until_it_is_rebuilt(folder: Path) -> None:
    folder.parent.mkdir()
    for _ in range(3):
        with child(folder.with_name("vector-store.lock"), "die") as dying:
            dying.wait()
    with ChromaIndexOpen(folder) as index:
        assert not index.sync(names(4), vectors(4))
        assert index.state == "broken"
        assert "ended the program 3 times" in index.problem
        assert index.rebuild(names(4), vectors(4))
        assert answers_rightly(index, names(4), vectors(4))


# --- damage ---------------------------------------------------------------------------------------


def filled(folder: Path, count: int = 20) -> tuple[list[str], NDArray[np.float32]]:
    ids, matrix = names(count), vectors(count)
    with ChromaIndexOpen(folder) as index:
        assert index.sync(ids, matrix)
    return ids, matrix


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with enough rows that the index of neighbours is on disk."""
    folder = tmp_path_factory.mktemp("large") / "vector-store"
    filled(folder, 1100)
    assert list(folder.glob("*/*.bin"))
    return folder


def cut(path: Path, part: float) -> None:
    os.truncate(path, int(path.stat().st_size * part))


def garbage(folder: Path, pattern: str) -> None:
    for path in folder.glob(pattern):
        path.write_bytes(np.random.default_rng(1).bytes(path.stat().st_size))


def lose_neighbours(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)


def cut_neighbours(folder: Path) -> None:
    for path in folder.glob("*/*.bin"):
        cut(path, 0.5)


def put_a_file_there(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("not a folder")


DAMAGE: dict[str, Callable[[Path], None]] = {
    "the folder is gone": shutil.rmtree,
    "the tables are cut": lambda folder: cut(folder / "chroma.sqlite3", 0.4),
    "the tables are empty": lambda folder: cut(folder / "chroma.sqlite3", 0.0),
    "the tables are garbage": lambda folder: garbage(folder, "chroma.sqlite3"),
    "the neighbours are garbage": lambda folder: garbage(folder, "*/*.bin"),
    "the neighbours are gone": lose_neighbours,
    "the neighbours are cut": cut_neighbours,
    "a file is in its place": put_a_file_there,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_never_believed_and_is_made_anew(folder: Path, large: Path, damage: str) -> None:
    ids, matrix = names(40), vectors(40)
    folder.parent.mkdir()
    shutil.copytree(large, folder)
    DAMAGE[damage](folder)
    with ChromaIndexOpen(folder) as index:
        assert index.sync(ids, matrix)
        assert index.count() == len(ids)
        assert answers_rightly(index, ids, matrix)
        assert ("made anew" in index.healed) is (damage != "the folder is gone")
    assert not list(folder.parent.glob("*unreadable*"))  # it held nothing but ours


def test_a_folder_that_was_left_in_order_is_used_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, matrix = filled(folder, 20)

    def never(*_: object) -> None:
        raise AssertionError("written")

    monkeypatch.setattr(chroma_collection.ProjectCollection, "_build", never)
    with ChromaIndexOpen(folder) as index:
        assert index.sync(ids, matrix)
        assert index.healed == ""
        assert answers_rightly(index, ids, matrix)


def test_a_folder_whose_owner_was_killed_is_made_anew_and_that_is_said(folder: Path) -> None:
    ids, matrix = filled(folder, 20)
    (folder / "made-by-tui-agent").write_text("")  # as while it is in use
    with ChromaIndexOpen(folder) as index:
        assert index.open()
        assert index.healed.startswith("The vector index was not closed in order. It was made anew")
        assert index.sync(ids, matrix)
        assert answers_rightly(index, ids, matrix)


def test_a_damaged_index_of_neighbours_that_answers_wrongly_is_not_believed(
    index: ChromaIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, matrix = names(30), vectors(30)
    assert index.sync(ids, matrix)
    ask = chroma_collection.ProjectCollection.ask
    lies = iter([True] * 8)

    def lying(self: Any, vector: Any, n: int) -> list[Any]:
        return ask(self, -vector if next(lies, False) else vector, n)

    monkeypatch.setattr(chroma_collection.ProjectCollection, "ask", lying)
    assert index.sync(ids, matrix)  # made anew, and right then
    assert "does not find 8 of 8 vectors that it holds" in index.healed
    assert answers_rightly(index, ids, matrix)


def test_a_broken_index_answers_none_and_says_so_until_it_is_rebuilt(folder: Path) -> None:
    ids, matrix = filled(folder, 20)
    garbage(folder, "chroma.sqlite3")
    (folder / "made-by-tui-agent").unlink()
    with ChromaIndexOpen(folder) as index:
        assert not index.open()
        assert index.state == "broken"
        assert index.problem.startswith("The vector index cannot be opened:")
        assert index.problem.endswith("Search goes exactly over the vectors in the database instead; nothing is lost.")
        assert (index.query(matrix[0]), index.count(), index.add(ids, matrix), index.remove(ids)) == (
            None,
            None,
            False,
            False,
        )
        assert not index.drop()
        assert index.rebuild(ids, matrix)
        assert index.problem == ""
        assert answers_rightly(index, ids, matrix)


def test_the_folder_may_vanish_while_it_is_in_use(index: ChromaIndex, folder: Path) -> None:
    ids, matrix = names(30), vectors(30)
    assert index.sync(ids, matrix)
    shutil.rmtree(folder)
    assert not index.add(["more"], vectors(1, seed=9))
    assert index.state == "broken"
    assert index.query(matrix[0]) is None
    assert index.rebuild(ids, matrix)
    assert answers_rightly(index, ids, matrix)


def test_an_unreadable_folder_of_unknown_making_is_kept_beside_the_new_one(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "chroma.sqlite3").write_bytes(b"\x00 garbage " * 900)
    with ChromaIndexOpen(folder) as index:
        assert index.sync(names(4), vectors(4))
        assert answers_rightly(index, names(4), vectors(4))
    assert (folder.with_name("vector-store.unreadable-1") / "chroma.sqlite3").read_bytes().startswith(b"\x00 garbage")


def test_a_place_that_cannot_be_written_is_said_and_nothing_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    index = ChromaIndex(tmp_path / "file" / "vector-store", PROJECT, "usem3/1")
    assert not index.sync(names(2), vectors(2))
    assert index.state == "broken"
    assert "cannot be used" in index.problem
    assert not index.rebuild(names(2), vectors(2))


def test_a_read_only_folder_is_said_and_nothing_raises(
    folder: Path, index: ChromaIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, matrix = filled(folder, 20)
    if os.geteuid():
        folder.chmod(0o500)
        (folder / "chroma.sqlite3").chmod(0o400)
        folder.parent.chmod(0o500)
    else:  # root may write everywhere, so the operating system has to be played

        def refused(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(chroma_collection.ProjectCollection, "put", refused)
        monkeypatch.setattr(shutil, "rmtree", refused)
    try:
        assert not index.sync([*ids, "more"], np.vstack([matrix, vectors(1, seed=3)]))
        assert index.state == "broken"
        assert "cannot be made anew" in index.problem or "cannot be used" in index.problem
        assert index.query(matrix[0]) is None
    finally:
        folder.parent.chmod(0o700)
        folder.chmod(0o700)


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path, folder: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.parent.mkdir()
    folder.symlink_to(elsewhere)
    index = ChromaIndex(folder, PROJECT, "usem3/1")
    assert not index.sync(names(2), vectors(2))
    assert "is a link" in index.problem
    assert not any(elsewhere.iterdir())


def test_a_panic_of_the_native_part_breaks_the_index_and_not_the_program(
    index: ChromaIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """What a panic in Rust arrives as is no Exception."""

    assert index.sync(names(5), vectors(5))

    def panics(*_: object) -> None:
        raise Panic("index out of bounds")

    monkeypatch.setattr(chroma_collection.ProjectCollection, "ask", panics)
    assert index.query(vectors(1)[0]) is None
    assert "cannot be searched: index out of bounds." in index.problem


def test_asking_never_waits_for_a_long_write_in_another_thread(
    index: ChromaIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert index.sync(names(5), vectors(5))
    writing, done = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        writing.set()
        done.wait(10)

    monkeypatch.setattr(chroma_collection.ProjectCollection, "put", slow)
    thread = threading.Thread(target=index.add, args=(["more"], vectors(1, seed=4)))
    thread.start()
    assert writing.wait(10)
    assert index.query(vectors(1)[0]) is None
    done.set()
    thread.join()
    assert index.query(vectors(1)[0]) is not None


# --- no network -----------------------------------------------------------------------------------


def test_a_local_index_opens_no_socket_and_never_loads_an_embedding_model(
    index: ChromaIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: socket.socket, address: object) -> None:
        raise AssertionError(f"connected to {address}")

    monkeypatch.setattr(socket.socket, "connect", refused)
    assert index.sync(names(5), vectors(5))
    assert index.query(vectors(1)[0]) is not None
    assert index.drop()


def test_importing_the_index_does_not_load_chroma() -> None:
    code = (
        "import sys, tui_agent.memory.chroma_index, tui_agent.memory.project_memory; print('chromadb' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_that_does_not_answer_leaves_exact_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://203.0.113.1:9")
    index = ChromaIndex(tmp_path / "vector-store", PROJECT, "usem3/1", mode="http", port=free_port())
    assert not index.sync(names(3), vectors(3))
    assert index.state == "broken"
    assert index.query(vectors(1)[0]) is None
    assert "nothing is lost" in index.problem
    assert not (tmp_path / "vector-store").exists()


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("TUI_AGENT_SOAK"), reason="starts a server; runs in `make soak`")
def test_a_chroma_server_serves_two_people_who_see_only_their_own_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://203.0.113.1:9")  # must not be asked
    port = free_port()
    program = Path(sys.executable).with_name("chroma")
    command = [str(program), "run", "--path", str(tmp_path / "server"), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                    break
                time.sleep(0.1)
            mine, theirs = (
                ChromaIndex(tmp_path / who / "vector-store", PROJECT, "usem3/1", mode="http", port=port)
                for who in ("me", "you")
            )
            assert mine.sync(names(20), vectors(20)), mine.problem
            assert theirs.sync(["theirs"], vectors(1, seed=8)), theirs.problem
            assert mine.sync(names(19), vectors(20)[:19])
            assert (mine.count(), theirs.count()) == (19, 1)
            assert [hit.id for hit in theirs.query(vectors(1)[0], 5) or ()] == ["theirs"]
            assert [hit.id for hit in mine.query(vectors(20)[7], 3) or ()] == nearest(
                names(19), vectors(20)[:19], vectors(20)[7], 3
            )
            mine.close()
            theirs.close()
        finally:
            server.terminate()
