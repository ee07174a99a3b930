"""``tui-agent memory`` on the store as a whole: index, pairs, edits by hand, another program's memory."""

from __future__ import annotations

import json

import chromadb

from tests.cli.conftest import Ran, Shell
from tui_agent.agent.stores import Stores
from tui_agent.memory.chroma_collection import open_client
from tui_agent.memory.types import NewFact
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings


def memory(shell: Shell, *args: str) -> Ran:
    return shell.run("memory", *args, "-C", str(shell.root))


def stores_of(shell: Shell) -> Stores:
    return Stores.open(Project.open(shell.root), Settings(), UserPaths.find())


def with_facts(shell: Shell, *texts: str, vectors: bool = False) -> list[str]:
    stores = stores_of(shell)
    ids = [stores.facts.add(NewFact("", text, "message 1")).id for text in texts]
    if vectors:
        stores.facts.put_vectors("words:2", {each: [1.0, n / 10] for n, each in enumerate(ids)})
    stores.ledger.write_facts_json()
    stores.close()
    return ids


def says(shell: Shell) -> list[str]:
    stores = stores_of(shell)
    try:
        return [fact.fact for fact in stores.facts.live()]
    finally:
        stores.close()


def test_the_index_is_made_anew_and_counted(shell: Shell) -> None:
    ids = with_facts(shell, "We deploy on Fridays.", "The API speaks REST.", vectors=True)
    done = memory(shell, "reindex", "--json")
    assert (done.code, json.loads(done.out)["facts"]) == (0, 2)
    stats = json.loads(memory(shell, "stats", "--json").out)["index"]
    assert (stats["state"], stats["rows"], stats["search"]) == ("ready", 2, "chroma")
    assert memory(shell, "check").code == 0
    project = Project.open(shell.root)
    client = open_client(project.vector_dir)
    try:
        assert set(client.get_collection(f"pamiec-{project.id}", embedding_function=None).get()["ids"]) == set(ids)
    finally:
        client.close()


def test_without_vectors_there_is_nothing_to_index(shell: Shell) -> None:
    with_facts(shell, "We deploy on Fridays.")
    assert memory(shell, "reindex").code == 6


def test_pairs_are_proposed_and_only_merged_when_asked_for(shell: Shell) -> None:
    with_facts(shell, "We deploy on Fridays.", "We deploy on Fridays!!")
    (pair,) = json.loads(memory(shell, "consolidate", "--json").out)
    assert len(says(shell)) == 2
    done = memory(shell, "consolidate", "--apply", pair["id"][-4:])
    assert done.code == 0, done.err
    assert len(says(shell)) == 1
    assert memory(shell, "undo").code == 0
    assert len(says(shell)) == 2


def test_a_declined_pair_does_not_come_back(shell: Shell) -> None:
    with_facts(shell, "We deploy on Fridays.", "We deploy on Fridays!!")
    (pair,) = json.loads(memory(shell, "consolidate", "--json").out)
    assert memory(shell, "consolidate", "--decline", pair["id"]).code == 0
    assert json.loads(memory(shell, "consolidate", "--all", "--json").out) == []
    assert memory(shell, "consolidate", "--apply", pair["id"]).code == 6


def test_edits_by_hand_are_listed_taken_or_put_back(shell: Shell) -> None:
    with_facts(shell, "We deploy on Fridays.")
    path = Project.open(shell.root).facts_json_path
    data = json.loads(path.read_text("utf-8"))
    data["facts"].append({"fact": "Releases are tagged."})
    path.write_text(json.dumps(data), "utf-8")
    added = memory(shell, "add", "Reviews need two people")
    assert "edited by hand, so it was not written" in added.err
    (change,) = json.loads(memory(shell, "changes", "--json").out)
    assert (change["name"], [edit["verb"] for edit in change["edits"]]) == ("facts.json", ["added"])
    assert memory(shell, "changes", "--take").code == 2
    assert memory(shell, "changes", "facts.json", "--take").code == 0
    assert "Releases are tagged." in says(shell)
    assert "Reviews need two people" in path.read_text("utf-8")
    path.write_text("{}", "utf-8")
    back = memory(shell, "changes", "facts.json", "--put-back")
    assert "is kept as backups/files/facts.json/" in back.out
    assert len(says(shell)) == 3
    assert memory(shell, "changes", "facts.json").code == 6


def test_a_facts_json_that_is_no_json_can_be_put_back_and_is_kept_as_a_version(shell: Shell) -> None:
    with_facts(shell, "We deploy on Fridays.")
    path = Project.open(shell.root).facts_json_path
    path.write_text('{"facts": [', "utf-8")
    listed = memory(shell, "changes")
    assert ("Expecting" in listed.out, "--take" in listed.err, "--put-back" in listed.err) == (True, False, True)
    assert memory(shell, "changes", "facts.json", "--take").code == 1
    back = memory(shell, "changes", "facts.json", "--put-back", "--json")
    assert (path.parent / json.loads(back.out)["kept"]).read_text("utf-8") == '{"facts": ['
    assert "We deploy on Fridays." in path.read_text("utf-8")


def test_a_plain_chroma_memory_waits_or_is_taken_as_ones_own(shell: Shell) -> None:
    stores_of(shell).close()
    project = Project.open(shell.root)
    client = chromadb.PersistentClient(path=str(project.vector_dir))
    client.get_or_create_collection(f"pamiec-{project.id}", embedding_function=None).upsert(
        ids=["fact-1"], embeddings=[[0.1, 0.2]], documents=["Projekt używa wzorca Repository."],
        metadatas=[{"category": "konwencja", "importance": 8, "timestamp": 1755216000.0}],
    )  # fmt: skip
    client.close()
    assert memory(shell, "import").code == 2
    waiting = json.loads(memory(shell, "import", "--legacy", "--json").out)
    assert (waiting["imported"], waiting["waiting"]) == (0, 1)
    assert says(shell) == []
    again = json.loads(memory(shell, "import", "--legacy", "--json").out)
    assert (again["imported"], again["waiting"]) == (0, 0)  # each collection once
