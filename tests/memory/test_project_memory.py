"""The article's class over our stores: its example, its formula, its traps, and the stores its own code left behind."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tui_agent.memory.chroma_collection import open_client, space_of
from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.gate import Gate
from tui_agent.memory.project_memory import (
    CHAT_MODEL,
    EMBED_MODEL,
    ProjectMemory,
    RememberRefused,
    find_legacy_store,
    import_legacy,
    own_lines_of,
    weighted_score,
)
from tui_agent.memory.text import stems
from tui_agent.memory.types import Kind, NewFact, Origin
from tui_agent.project import Project, project_id

ID = "a1b2c3d4e5f6"
CONVERSATION = """
Programista: Chcemy wprowadzić wzorzec Repository zamiast bezpośrednich zapytań SQL w kontrolerach.
Asystent: Dobry pomysł, ułatwi to testowanie jednostkowe.
Programista: Ustalmy, że wszystkie nowe repozytoria implementują interfejs IRepository<T>.
"""
AGREED = [
    "Projekt używa wzorca Repository zamiast bezpośrednich zapytań SQL w kontrolerach.",
    "Wszystkie nowe repozytoria implementują interfejs IRepository<T>.",
]
QUESTION = "Jak powinienem zaimplementować dostęp do danych dla nowego modułu Zamówienia?"
WORDS = 64


def by_words(text: str) -> list[float]:
    """An embedder without a model: texts that share stems point the same way. Not of length 1, like some real ones."""
    vector = np.zeros(WORDS)
    for stem in stems(text):
        vector[sum(ord(letter) * (n + 7) for n, letter in enumerate(stem)) % WORDS] += 1
    return list(3.0 * (vector + 0.01))


class Server:
    """An ``ollama.Client`` that answers from a script and notes what it was asked."""

    def __init__(self, answer: str = "[]", embed: Callable[[str], Sequence[float]] = by_words) -> None:
        self.answer = answer
        self.make = embed
        self.embedded: list[str] = []
        self.models: list[str] = []
        self.chats: list[list[dict[str, str]]] = []

    def embed(self, *, model: str, input: str) -> dict[str, Any]:
        self.models.append(model)
        self.embedded.append(input)
        return {"embeddings": [list(self.make(input))]}

    def chat(self, *, model: str, messages: Any) -> dict[str, Any]:
        self.models.append(model)
        self.chats.append(list(messages))
        return {"message": {"role": "assistant", "content": self.answer}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".agent-memory" / "vector-store"


@pytest.fixture
def opened(path: Path) -> Iterator[Callable[..., ProjectMemory]]:
    made: list[ProjectMemory] = []

    def open_one(server: Server | None = None, name: str = ID, **more: Any) -> ProjectMemory:
        made.append(ProjectMemory(name, more.pop("path", path), client=server or Server(), **{"chroma": False, **more}))
        return made[-1]

    yield open_one
    for memory in made:
        memory.close()


class Clock:
    """Seconds since 1970 that stand until they are moved."""

    def __init__(self, now: float = 1_790_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def forward(self, days: float) -> None:
        self.now += days * 86400


# --- the article's example ------------------------------------------------------------------------


def test_the_articles_example_runs_and_a_new_session_recalls_both_conventions(path: Path) -> None:
    answer = json.dumps(
        [
            {"fact": AGREED[0], "category": "konwencja", "importance": 8},
            {"fact": AGREED[1], "category": "konwencja", "importance": 9},
        ]
    )
    server = Server(answer)
    with ProjectMemory(project_id=ID, path=path, client=server) as memory:
        facts = memory.consolidate_session(CONVERSATION)
        assert facts == [
            {"fact": AGREED[0], "category": "konwencja", "importance": 8},
            {"fact": AGREED[1], "category": "konwencja", "importance": 9},
        ]
        assert [(fact.kind, fact.importance) for fact in memory.facts.live()] == [
            (Kind.CONVENTION, 8),
            (Kind.CONVENTION, 9),
        ]
    with ProjectMemory(project_id=ID, path=path, client=Server()) as later:
        assert set(later.recall(QUESTION)) == set(AGREED)
        assert set(later.recall_weighted(QUESTION)) == set(AGREED)
    assert set(server.models) == {EMBED_MODEL, CHAT_MODEL} == {"nomic-embed-text", "qwen2.5-coder:7b"}
    with_chroma = open_client(path)
    collection = with_chroma.get_collection(f"pamiec-{ID}", embedding_function=None)
    assert space_of(collection) == "cosine"
    stored = collection.get()
    assert sorted(data["importance"] for data in stored["metadatas"]) == [8, 9]
    assert {data["category"] for data in stored["metadatas"]} == {"konwencja"}
    assert all(abs(data["timestamp"] - time.time()) < 600 for data in stored["metadatas"])
    with_chroma.close()


def test_extraction_sends_one_user_message_with_the_conversation_and_stores_nothing(
    opened: Callable[..., ProjectMemory],
) -> None:
    server = Server('```json\n{"facts": [{"fact": "Piszemy w Go", "category": "Decision"}]}\n```')
    memory = opened(server)
    assert memory.extract_facts_from_conversation(CONVERSATION) == [
        {"fact": "Piszemy w Go", "category": "decyzja", "importance": 5}
    ]
    assert [message["role"] for message in server.chats[0]] == ["user"]
    assert CONVERSATION in server.chats[0][0]["content"]
    assert "preferencje, decyzje, konwencje, znane problemy" in server.chats[0][0]["content"]
    assert memory.facts.live() == []
    assert memory.recall("Go") == []
    assert memory.extract_facts_from_conversation("  \n") == []
    assert len(server.chats) == 1


@pytest.mark.parametrize("answer", ["", "null", "Nie znalazłem faktów.", '"zdanie"', '[{"category": "decyzja"}]', "[{"])
def test_an_answer_that_cannot_be_read_gives_an_empty_list(opened: Callable[..., ProjectMemory], answer: str) -> None:
    memory = opened(Server(answer))
    assert memory.extract_facts_from_conversation(CONVERSATION) == []
    assert memory.consolidate_session(CONVERSATION) == []


def test_only_what_people_said_is_remembered_and_the_rest_waits_for_approval(
    opened: Callable[..., ProjectMemory],
) -> None:
    invented = "Projekt używa Memcached z TTL 300 sekund."
    server = Server(json.dumps([{"fact": AGREED[1]}, {"fact": invented}, {"fact": AGREED[1]}]))
    memory = opened(server)
    talk = f"{CONVERSATION}Asystent: Polecam Memcached z TTL 300 sekund.\n"
    assert memory.consolidate_session(talk) == [{"fact": AGREED[1], "category": "decyzja", "importance": 5}]
    assert memory.recall("Memcached") == [AGREED[1]]
    assert [item.proposal.text for item in memory.facts.quarantined()] == [invented]
    assert memory.consolidate_session(talk)  # the same again confirms
    assert len(memory.facts.live()) == 1


def test_the_lines_of_an_assistant_are_not_the_users_words() -> None:
    talk = "User: We use tabs.\nand Go.\n**Assistant:** I note:\nDecision: spaces\nПользователь: Ещё тесты."
    assert own_lines_of(talk) == "We use tabs.\nand Go.\nЕщё тесты."
    assert own_lines_of("We use tabs.\nDecision: no spaces.") == "We use tabs.\nDecision: no spaces."


# --- remember -------------------------------------------------------------------------------------


def test_ids_are_unique_when_clock_and_embedder_stand_still(
    opened: Callable[..., ProjectMemory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_790_000_000.0)
    monkeypatch.setattr(time, "time_ns", lambda: 1_790_000_000_000_000_000)
    memory = opened(now=Clock())
    ids = [memory.remember(f"Moduł {name} ma własne repozytorium") for name in ("Alfa", "Beta", "Gamma", "Delta")]
    assert len(set(ids)) == 4
    assert all(fact_id.startswith("fact-") for fact_id in ids)
    assert len(memory.recall("repozytorium", top_k=10)) == 4


def test_the_same_statement_again_confirms_the_one_there_is(opened: Callable[..., ProjectMemory]) -> None:
    clock = Clock()
    memory = opened(now=clock)
    first = memory.remember("Piszemy w Go.")
    clock.forward(days=100)
    assert memory.remember("piszemy  w Go") == first
    (fact,) = memory.facts.live()
    assert (fact.created_at[:10], fact.confirmed_at[:10]) == ("2026-09-21", "2026-12-30")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        *((5, 5), (0, 1), (-3, 1), (11, 10), (10**30, 10), ("8", 8), ("9/10", 9), ("high", 5), (None, 5), (7.9, 7)),
        *((float("nan"), 5), (float("inf"), 10), (True, 5), ([], 5)),
    ],
)
def test_importance_is_clamped_to_one_to_ten(opened: Callable[..., ProjectMemory], given: Any, kept: int) -> None:
    memory = opened()
    memory.remember("Mam na imię Kacper.", importance=given)
    assert [fact.importance for fact in memory.facts.live()] == [kept]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        *(("decyzja", Kind.DECISION), ("Konwencja", Kind.CONVENTION), ("preferencja", Kind.PREFERENCE)),
        *(("problem", Kind.PROBLEM), ("соглашение", Kind.CONVENTION), ("fact", Kind.FACT), ("coś", Kind.DECISION)),
    ],
)
def test_categories_are_understood_in_three_languages(
    opened: Callable[..., ProjectMemory], given: str, kept: Kind
) -> None:
    memory = opened()
    memory.remember("Testy piszemy przed implementacją.", given)
    assert [fact.kind for fact in memory.facts.live()] == [kept]


def test_a_secret_is_refused_before_anything_is_embedded_or_written(
    opened: Callable[..., ProjectMemory], path: Path
) -> None:
    secret = "ghp_" + "a1B2" * 9
    server = Server(json.dumps([{"fact": f"Token do CI to {secret}"}]))
    memory = opened(server)
    with pytest.raises(RememberRefused, match="secrets are never stored") as refused:
        memory.remember(f"Token do CI to {secret}")
    assert refused.value.rule == "secret"
    assert memory.consolidate_session(f"Programista: Token do CI to {secret}") == []
    memory.close()
    assert server.embedded == []
    assert all(secret.encode() not in file.read_bytes() for file in path.parent.rglob("*") if file.is_file())


def test_a_state_of_the_world_is_refused_with_the_reason(opened: Callable[..., ProjectMemory]) -> None:
    with pytest.raises(RememberRefused, match="looked up when needed"):
        opened().remember("The team has 8 people.")
    with pytest.raises(ValueError, match="needs a text"):
        opened(name="other").remember("  \n")


def test_a_fact_survives_an_embedder_that_fails_and_is_embedded_later(opened: Callable[..., ProjectMemory]) -> None:
    def down(text: str) -> list[float]:
        raise ConnectionError("no server")

    memory = opened(embed=down)
    memory.remember("Bazą danych jest PostgreSQL.")
    memory.remember("Testy piszemy przed implementacją.")
    assert memory.recall("jaka baza danych?") == ["Bazą danych jest PostgreSQL."]  # by words
    assert memory.recall_weighted("jaka baza danych?") == ["Bazą danych jest PostgreSQL."]
    again = opened(Server())
    assert again.recall("PostgreSQL", top_k=1) == ["Bazą danych jest PostgreSQL."]
    assert len(again.facts.vectors(f"project-memory/{EMBED_MODEL}/cosine")[0]) == 2


@pytest.mark.parametrize("broken", [[], [0.0] * 8, [float("nan")] * 8, [[1.0, 2.0]], "text", None])
def test_a_vector_that_is_none_costs_ranking_only(opened: Callable[..., ProjectMemory], broken: Any) -> None:
    memory = opened(embed=lambda text: broken)
    memory.remember("Bazą danych jest PostgreSQL.")
    assert memory.recall("PostgreSQL") == ["Bazą danych jest PostgreSQL."]


# --- recall ---------------------------------------------------------------------------------------


def test_recall_gives_the_nearest_first_and_as_many_as_there_are(opened: Callable[..., ProjectMemory]) -> None:
    memory = opened()
    assert memory.recall("cokolwiek") == []
    assert memory.recall_weighted("cokolwiek") == []
    memory.remember("Bazą danych jest PostgreSQL.")
    memory.remember("Testy piszemy przed implementacją.")
    memory.remember("Logi trzymamy czternaście dni.")
    assert memory.recall("kiedy piszemy testy")[0] == "Testy piszemy przed implementacją."
    assert len(memory.recall("testy", top_k=2)) == 2
    assert len(memory.recall("testy", top_k=50)) == 3
    assert memory.recall("testy", top_k=0) == memory.recall("testy", top_k=-1) == memory.recall("  ") == []
    assert all(fact.last_used_at for fact in memory.facts.live())


def test_what_was_replaced_or_has_expired_is_not_recalled(opened: Callable[..., ProjectMemory]) -> None:
    clock = Clock()
    memory = opened(now=clock)
    old = memory.remember("Bazą danych jest MySQL.").removeprefix("fact-")
    ended = memory.remember("Bazą testową jest SQLite.").removeprefix("fact-")
    memory.facts.supersede(old, NewFact(subject="", fact="Bazą danych jest PostgreSQL.", source="test"))
    memory.facts.expire(ended)
    assert memory.recall("baza danych", top_k=10) == ["Bazą danych jest PostgreSQL."]


@pytest.mark.parametrize(
    ("distance", "importance", "age", "score"),
    [
        *((0.2, 8, 45, 0.54), (0.0, 10, 0, 1.0), (0.0, 10, 450, 0.0), (1.0, 10, 450, -1.0), (2.0, 5, 0, -0.5)),
        *((0.2, 8, -30, 0.64), (0.5, 5, 90, 0.05)),
    ],
)
def test_the_formula_gives_the_articles_values(distance: float, importance: int, age: float, score: float) -> None:
    assert weighted_score(distance, importance, age, 90) == pytest.approx(score)


def test_recall_weighted_orders_three_times_as_many_candidates_by_the_formula(
    opened: Callable[..., ProjectMemory],
) -> None:
    clock = Clock()
    cosines = {"pytanie": 1.0, "pierwszy": 0.95, "drugi": 0.9, "trzeci": 0.85, "czwarty": 0.8}

    def embed(text: str) -> list[float]:
        cosine = next(value for word, value in cosines.items() if word in text)
        return [cosine, float(np.sqrt(1 - cosine**2))]

    memory = opened(embed=embed, now=clock)
    memory.remember("pierwszy wpis o kolejce", importance=5)
    memory.remember("czwarty wpis o kolejce", importance=10)  # near enough only with more candidates
    clock.forward(days=45)
    memory.remember("drugi wpis o kolejce", importance=8)
    memory.remember("trzeci wpis o kolejce", importance=10)
    expected = {
        "pierwszy wpis o kolejce": 0.95 * 0.5 - 0.1,
        "drugi wpis o kolejce": 0.9 * 0.8,
        "trzeci wpis o kolejce": 0.85,
        "czwarty wpis o kolejce": 0.8 - 0.1,
    }
    best = sorted(expected, key=lambda text: -expected[text])
    assert memory.recall_weighted("pytanie", top_k=4) == best
    assert memory.recall("pytanie", top_k=1) == ["pierwszy wpis o kolejce"]
    assert memory.recall_weighted("pytanie", top_k=1) == ["trzeci wpis o kolejce"]  # of three candidates, not four
    memory.facts.confirm(memory.facts.by_text("pierwszy wpis o kolejce").id)  # type: ignore[union-attr]
    clock.forward(days=-400)  # a clock that was wrong: nobody gains by lying ahead
    assert memory.recall_weighted("pytanie", top_k=4)[0] == "trzeci wpis o kolejce"
    with pytest.raises(ValueError, match="above zero"):
        memory.recall_weighted("pytanie", recency_days=0)


def test_two_projects_in_one_folder_never_see_each_other(opened: Callable[..., ProjectMemory], path: Path) -> None:
    one, two = opened(), opened(name="0123456789ab")
    one.remember("Bazą danych jest PostgreSQL.")
    two.remember("Bazą danych jest SQLite.")
    assert one.recall("baza danych", top_k=10) == ["Bazą danych jest PostgreSQL."]
    assert two.recall("baza danych", top_k=10) == ["Bazą danych jest SQLite."]
    assert sorted(file.name for file in path.parent.glob("*.db")) == ["memory-0123456789ab.db", f"memory-{ID}.db"]


def test_without_a_path_the_store_lies_in_the_memory_folder_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with ProjectMemory(ID, client=Server()) as memory:
        memory.remember("Bazą danych jest PostgreSQL.")
        assert memory.recall("baza danych") == ["Bazą danych jest PostgreSQL."]
    assert (tmp_path / ".agent-memory" / "vector-store" / "chroma.sqlite3").is_file()
    assert Project.open(tmp_path).vector_dir == tmp_path / ".agent-memory" / "vector-store"


def test_the_folders_own_project_shares_the_database_of_the_chat(
    opened: Callable[..., ProjectMemory], path: Path, tmp_path: Path
) -> None:
    opened(name=project_id(tmp_path)).remember("Bazą danych jest PostgreSQL.")
    with Database(path.parent / "memory.db") as db:
        assert [fact.fact for fact in FactStore(db).live()] == ["Bazą danych jest PostgreSQL."]


def test_an_id_that_would_leave_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no project id"):
        ProjectMemory("../../etc", tmp_path / "vector-store")
    assert not list(tmp_path.iterdir())


def test_a_broken_projection_changes_no_answer(path: Path) -> None:
    with ProjectMemory(ID, path, client=Server()) as memory:
        memory.remember("Bazą danych jest PostgreSQL.")
        memory.remember("Testy piszemy przed implementacją.")
        assert memory.recall("testy", top_k=1) == ["Testy piszemy przed implementacją."]
        (path / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
        memory.remember("Logi trzymamy czternaście dni.")
        assert memory.recall("logi", top_k=1) == ["Logi trzymamy czternaście dni."]
    with ProjectMemory(ID, path, client=Server()) as memory:
        assert len(memory.recall("logi", top_k=9)) == 3


def test_nothing_leaves_the_machine_and_ambient_proxies_are_ignored(
    opened: Callable[..., ProjectMemory], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def refused(self: socket.socket, address: Any) -> None:
        asked.append(address)
        raise ConnectionRefusedError(111, "refused")

    monkeypatch.setattr(socket.socket, "connect", refused)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://203.0.113.9:3128")
    monkeypatch.setenv("OLLAMA_HOST", "http://203.0.113.8:11434")
    memory = opened()
    memory._client = None  # the default one
    memory.remember("Bazą danych jest PostgreSQL.")
    with pytest.raises(ConnectionError):
        memory.consolidate_session(CONVERSATION)
    assert asked
    assert {address[0] for address in asked} == {"127.0.0.1"}


# --- stores of the article's own code -------------------------------------------------------------


def write_with_the_articles_code(path: Path, rows: list[tuple[str, str, Any, Any]], cosine: bool = False) -> None:
    """What the article's ``remember`` does, row by row: category, importance and timestamp as they are."""
    client = open_client(path)
    how: dict[str, Any] = {"metadata": {"hnsw:space": "cosine"}} if cosine else {}
    collection = client.get_or_create_collection(f"pamiec-{ID}", embedding_function=None, **how)
    for number, (fact, category, importance, timestamp) in enumerate(rows):
        collection.upsert(
            ids=[f"fact-{1_700_000_000_000 + number}"],
            embeddings=[by_words(fact)],
            documents=[fact],
            metadatas=[{"category": category, "importance": importance, "timestamp": timestamp}],
        )
    client.close()


ROWS: list[tuple[str, str, Any, Any]] = [
    ("Nowe repozytoria implementują IRepository<T>.", "konwencja", 9, 1_760_000_000.5),
    ("Projekt używa REST.", "decyzja", 5, 1_750_000_000.0),
    ("Odpowiadaj krótko.", "preferencja", 42, 9_999_999_999.0),
]


@pytest.mark.parametrize("cosine", [False, True])
def test_a_store_of_the_articles_code_is_found_and_taken_over_once(path: Path, cosine: bool) -> None:
    write_with_the_articles_code(path, [*ROWS, ("Hasło do bazy: Lawenda_" + "55x", "decyzja", 5, 1.0)], cosine)
    found = find_legacy_store(path.parent.parent)
    assert found is not None
    assert found.folder == path
    assert [(each.name, each.rows) for each in found.collections] == [(f"pamiec-{ID}", 4)]
    with ProjectMemory(ID, path, client=Server()) as memory:
        assert (memory.imported.imported, len(memory.imported.refused)) == (3, 1)
        assert "Lawenda" not in memory.imported.refused[0]
        facts = {fact.fact: fact for fact in memory.facts.live()}
        assert set(facts) == {row[0] for row in ROWS}
        first = facts["Nowe repozytoria implementują IRepository<T>."]
        assert (first.kind, first.importance, first.created_at) == (Kind.CONVENTION, 9, "2025-10-09 08:53:20")
        assert first.source_kind is Origin.IMPORT
        assert first.source == f"vector-store/pamiec-{ID}: fact-1700000000000"
        assert facts["Odpowiadaj krótko."].importance == 10
        assert facts["Odpowiadaj krótko."].created_at <= memory._utc()  # a time that lies ahead is now
        assert memory.recall("IRepository", top_k=1) == ["Nowe repozytoria implementują IRepository<T>."]
        memory.facts.delete_chain(facts["Projekt używa REST."].id)
        memory.facts.expire(facts["Odpowiadaj krótko."].id)
    with ProjectMemory(ID, path, client=Server()) as memory:
        assert memory.imported.imported == 0
        assert len(memory.facts.live()) == 1  # what was deleted or has ended stays so
        kept = find_legacy_store(path)  # the original is kept under another name, untouched
        assert kept is not None
        again = import_legacy(kept, memory.facts, memory.db, approved=True, again=True)
        assert (again.imported, again.known) == (1, 2)  # what has ended may be said again
    assert not list(path.parent.glob(".import-*"))


def test_without_the_users_word_texts_of_another_store_wait_in_quarantine(path: Path, tmp_path: Path) -> None:
    write_with_the_articles_code(path, ROWS)
    store = find_legacy_store(path)
    assert store is not None
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    with Database(tmp_path / "memory.db") as db:
        facts = FactStore(db)
        assert import_legacy(store, facts, db, gate=Gate(facts, None)).waiting == 3
        assert facts.live() == []
        assert {item.proposal.text for item in facts.quarantined()} == {row[0] for row in ROWS}
        assert import_legacy(store, facts, db).waiting == 0
    assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_folders_without_such_a_store_hold_none(path: Path, tmp_path: Path) -> None:
    assert find_legacy_store(tmp_path) is None
    path.mkdir(parents=True)
    (path / "chroma.sqlite3").write_bytes(b"\x00 no database" * 300)
    assert find_legacy_store(path) is None
    (path / "chroma.sqlite3").unlink()
    with ProjectMemory(ID, path, client=Server()) as memory:
        memory.remember("Bazą danych jest PostgreSQL.")
        assert memory.recall("baza")
    assert find_legacy_store(path) is None  # our own projection is none


def test_a_store_that_cannot_be_read_stops_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_with_the_articles_code(path, ROWS)

    class Panic(BaseException):
        """What a panic in Rust arrives as is no Exception."""

    def panics(folder: Path) -> None:
        raise Panic("index out of bounds")

    monkeypatch.setattr("tui_agent.memory.legacy_store.open_client", panics)
    with ProjectMemory(ID, path, client=Server(), chroma=False) as memory:
        assert "cannot be read: index out of bounds" in memory.imported.refused[0]
        memory.remember("Piszemy w Go.")
        assert memory.recall("Go") == ["Piszemy w Go."]


def test_another_projects_collection_in_the_folder_is_not_taken_over(path: Path) -> None:
    write_with_the_articles_code(path, ROWS)
    with ProjectMemory("0123456789ab", path, client=Server(), chroma=False) as memory:
        assert memory.facts.live() == []


def test_opening_a_memory_without_recalling_loads_no_chroma(tmp_path: Path) -> None:
    code = (
        "import sys; from tui_agent.memory.project_memory import ProjectMemory as P\n"
        f"m = P('x1', {str(tmp_path / 'vector-store')!r}, embed=lambda t: [1.0, 2.0])\n"
        "m.remember('Używamy Go.'); m.close(); print('chromadb' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
