"""Embedding models of a server: what they and the server do to texts, and what memory makes of it in a session."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest

from tests.agent.conftest import Desk, Open
from tests.faults.ollama_table import play, steady  # noqa: F401
from tui_agent.llm.embeddings import BATCH
from tui_agent.llm.prefixes import format_prefixes
from tui_agent.llm.wire.backend import BackendError
from tui_agent.llm.wire.catalog import embed_model
from tui_agent.llm.wire.script import Gate
from tui_agent.memory.facts import NewFact

PORT = "The server uses port 8080."
EMBEDDER = "nomic-embed-text:latest"


async def with_vectors(open_desk: Open, *facts: str, model: Any = None, named: str = "") -> Desk:
    """A session with facts whose vectors come from the scripted server. ``named`` is the embedder in config.yaml."""
    desk = await open_desk(check_saves=False)
    connection = desk.session._connection
    wanted = model or embed_model()
    if wanted.name not in {one.name for one in desk.backend.installed}:
        desk.backend.installed.append(wanted)
    connection.given_embedder = None
    if named:
        connection.settings = connection.settings.model_copy(update={"embedder": named})
    for fact in facts:
        desk.session.stores.facts.add(NewFact("", fact, "message 1"))
    return desk


async def indexed(desk: Desk) -> None:
    """Let memory make the vectors that it can get, before anything is asked."""
    core = desk.session.core
    await core.connected(desk.heard.append)
    await core.choose_embedder(desk.heard.append)
    await core.settled()


def asked(desk: Desk, kind: str = "search_document") -> list[list[str]]:
    """The texts of each request to embed, of documents or queries."""
    bodies = [one.body["input"] for one in desk.server.log.of("/api/embed")]
    return [texts for texts in bodies if texts and all(text.startswith(kind) for text in texts)]


def told(notices: Sequence[str]) -> str:
    """The one sentence about texts without vectors."""
    (sentence,) = [notice for notice in notices if "by words alone" in notice]
    return sentence


def refuse(desk: Desk, status: int, error: str, when: Any) -> None:
    """Fail every request that holds a text for which ``when`` is true."""

    def rule(inputs: Sequence[str]) -> BackendError | None:
        return BackendError(status, error) if any(map(when, inputs)) else None

    desk.backend.refuse_embed(rule)


TOO_LONG = "the input length exceeds the context length"


# -- H -----------------------------------------------------------------------------------------------------------------


async def test_a_text_that_is_too_long_is_halved_and_the_others_are_kept(open_desk: Open) -> None:
    long = (
        "The server in the cellar, behind the second door on the left, beside the old boiler, has a lamp that blinks."
    )
    desk = await with_vectors(open_desk, PORT, long, "Releases are tagged.")
    refuse(desk, 400, TOO_LONG, lambda text: len(text) > 80)
    await indexed(desk)
    seen = await play(desk, "H78", "400 for every text above 80 characters, in spite of truncating")
    lengths = [[len(text) for text in texts] for texts in asked(desk)]
    assert [len(long) // 2 + len("search_document: ")] in lengths
    assert any(PORT in item and "meaning" in item for item in seen.recalled)
    assert not [notice for notice in seen.notices if "by words alone" in notice]


async def test_a_long_text_is_cut_to_what_the_model_can_read(open_desk: Open) -> None:
    small = replace(embed_model("mxbai-embed-large:latest", dimensions=1024), context_length=512)
    desk = await with_vectors(open_desk, PORT, model=small, named="mxbai-embed-large")
    await indexed(desk)
    await play(
        desk, "H78b", "a paste of 6,000 characters, and an embedding model that reads 512 tokens", "word " * 1200
    )
    lengths = [len(text) for one in desk.server.log.of("/api/embed") for text in one.body["input"]]
    prefix = len("Represent this sentence for searching relevant passages: ")
    assert lengths
    assert max(lengths) == 1000 + prefix


async def test_a_text_that_gives_nan_is_varied_and_else_skipped_with_a_mark(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT, "The lamp is odd", "The poison is green.")
    refuse(desk, 400, "embedding contains NaN or Inf values", lambda text: "poison" in text or text.endswith("odd"))
    await indexed(desk)
    seen = await play(
        desk, "H79", "400: NaN for one text always, for another only in one spelling", "What colour is the poison?"
    )
    assert told(seen.notices).startswith("One text has no vector")
    assert "NaN" in told(seen.notices)
    assert seen.recalled[0] == "“The poison is green.” by words"
    identity = desk.session.core.recaller._embedder.identity  # type: ignore[union-attr]
    ids, matrix = desk.session.stores.facts.vectors(identity)
    assert len(ids) == 2
    assert np.isfinite(matrix).all()
    before = len(asked(desk))
    desk.session.stores.facts.add(NewFact("", "Releases are tagged.", "message 2"))
    await desk.session.core.facts_changed()
    await desk.session.core.settled()
    assert asked(desk)[before:] == [["search_document: Releases are tagged."]]


async def test_a_batch_with_one_bad_text_is_bisected_and_its_error_is_told(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, *(f"Lamp {number} stands on shelf {number}." for number in range(16)))
    refuse(desk, 500, "something odd", lambda text: "Lamp 11" in text)
    await indexed(desk)
    documents = asked(desk)
    seen = await play(desk, "H80", "500 for every batch that holds one certain text of 16", "Where does lamp 11 stand?")
    assert "something odd" in told(seen.notices)
    assert [len(texts) for texts in documents][:2] == [16, 8]
    assert len(documents) <= 2 * 5 + 1
    assert any("Lamp 11 stands" in item and item.endswith("by words") for item in seen.recalled)
    assert not desk.server.log.of("/v1/embeddings")


async def test_one_request_at_a_time_in_small_batches(open_desk: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = await with_vectors(open_desk, *(f"Lamp {number} stands on shelf {number}." for number in range(40)))
    answering = Gate()
    make_vectors = desk.session.core.recaller.index_missing

    async def while_it_answers(*args: Any) -> int:
        await answering.wait()
        return await make_vectors(*args)

    def answer(_: Any) -> str:
        answering.open()
        return "OK."

    monkeypatch.setattr(desk.session.core.recaller, "index_missing", while_it_answers)
    desk.backend.queue(answer)
    seen = await play(desk, "H81", "40 facts without vectors when a question is asked", "Where does lamp 7 stand?")
    await desk.session.core.settled()
    assert desk.server.log.in_flight_max == 1
    assert [len(texts) for texts in asked(desk)] == [BATCH, BATCH, 8]
    assert BATCH <= 32
    assert seen.end.status == "answered"


async def test_vectors_of_another_size_are_refused_told_and_made_anew(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT)
    await indexed(desk)
    at = next(n for n, one in enumerate(desk.backend.installed) if one.name == EMBEDDER)
    desk.backend.installed[at] = replace(embed_model(dimensions=512), digest="another")
    seen = await play(desk, "H82", "another model under the same name, with vectors of another size")
    assert "gives vectors of 512 numbers, not 768" in told(seen.notices)
    assert "/reindex" in told(seen.notices)
    assert seen.recalled == [f"“{PORT}” by words"]
    await desk.session.close()
    again = await with_vectors(open_desk, model=desk.backend.installed[at])
    await indexed(again)
    after = await play(again, "H82b", "the app is started again after that")
    assert after.recalled == [f"“{PORT}” by words and meaning"]
    assert not after.notices
    kept = [row["identity"] for row in again.session.stores.db.rows("SELECT identity FROM fact_vectors")]
    # Model, digest, size and the prefixes it was embedded with: vectors of another one are never compared with these.
    assert len(set(kept)) == 2
    assert all(re.fullmatch(rf"ollama:{EMBEDDER}@\w{{7,12}}:(768|512):[0-9a-f]{{8}}:cosine", one) for one in kept)


async def test_vectors_are_made_anew_by_reindex_in_the_same_session(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT)
    await indexed(desk)
    at = next(n for n, one in enumerate(desk.backend.installed) if one.name == EMBEDDER)
    desk.backend.installed[at] = replace(embed_model(dimensions=512), digest="another")
    await desk.say("What else is there?")
    await desk.session.reindex()
    seen = await play(desk, "H82d", "another model under the same name; /reindex after that was told")
    assert seen.recalled == [f"“{PORT}” by words and meaning"]


async def test_a_chat_model_as_embedder_is_refused_and_told(open_desk: Open) -> None:
    desk = await open_desk(check_saves=False)
    desk.session._connection.settings = desk.session.settings.model_copy(update={"embedder": "qwen2.5-coder:1.5b"})
    desk.session._connection.given_embedder = None
    seen = await play(desk, "H82c", "a chat model as embedder in config.yaml")
    assert any("does not make embeddings" in notice for notice in seen.notices)
    assert not desk.server.log.of("/api/embed")


async def test_prefixes_of_the_family_are_sent_with_every_text(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT)
    await indexed(desk)
    seen = await play(desk, "H83", "a query and a document for nomic-embed-text, which wants prefixes")
    assert asked(desk) == [[f"search_document: {PORT}"]]
    assert ["search_query: Which port does the server use?"] in asked(desk, "search_query")
    assert seen.recalled == [f"“{PORT}” by words and meaning"]


async def test_no_prefixes_are_sent_where_a_family_has_none(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT, model=embed_model("bge-m3:latest", dimensions=1024), named="bge-m3")
    await indexed(desk)
    await play(desk, "H83b", "the same for bge-m3, which wants none")
    sent = [text for one in desk.server.log.of("/api/embed") for text in one.body["input"]]
    assert PORT in sent
    assert "Which port does the server use?" in sent


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("mxbai-embed-large", "Represent this sentence for searching relevant passages: ", ""),
        ("snowflake-arctic-embed:335m", "Represent this sentence for searching relevant passages: ", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("bge-m3", "", ""),
        ("hf.co/x/multilingual-e5-large", "query: ", "passage: "),
        ("all-minilm", "", ""),
        ("granite-embedding:278m", "", ""),
        ("something-unknown", "", ""),
    ],
)
def test_the_table_of_prefixes_is_known_to_the_letter(model: str, query: str, document: str) -> None:
    assert format_prefixes(model) == (query, document)


def test_the_task_of_qwen3_embedding_stands_before_the_query_without_a_space() -> None:
    query, document = format_prefixes("qwen3-embedding:0.6b")
    assert query == ("Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:")
    assert document == ""


# -- 13.6 --------------------------------------------------------------------------------------------------------------


async def embed(desk: Desk, **body: Any) -> httpx.Response:
    """A plain request, for what the session itself never sends."""
    async with httpx.AsyncClient(base_url=desk.server.url, trust_env=False) as client:
        return await client.post("/api/embed", json={"model": EMBEDDER, **body})


async def test_vectors_have_the_length_one_on_the_wire_and_on_disk(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT)
    whole = (await embed(desk, input=["a port"])).json()["embeddings"][0]
    assert np.linalg.norm(whole) == pytest.approx(1, abs=1e-5)
    await indexed(desk)
    row = desk.session.stores.db.row("SELECT vector FROM fact_vectors WHERE identity LIKE 'ollama:%'")
    length = float(np.linalg.norm(np.frombuffer(row["vector"], dtype="<f4")))
    await play(desk, "13.6a", "vectors of length 1", disk=f"its length is {length:.3f}")
    assert length == pytest.approx(1, abs=1e-5)


async def test_dimensions_cut_vectors_and_we_never_ask_for_that(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT)
    cut = (await embed(desk, input=["a port"], dimensions=16)).json()["embeddings"][0]
    assert len(cut) == 16
    assert np.linalg.norm(cut) == pytest.approx(1, abs=1e-5)
    sent = len(desk.server.log.of("/api/embed"))
    await indexed(desk)
    await play(desk, "13.6b", "`dimensions` cuts vectors and makes their length 1 again; we never send it")
    ours = desk.server.log.of("/api/embed")[sent:]
    assert ours
    assert not any("dimensions" in one.body for one in ours)


async def test_a_text_that_is_too_long_is_refused_without_truncating(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT, "The lamp on the second shelf of the cellar blinks when it is warm.")
    long = await embed(desk, input=["word " * 9000], truncate=False)
    assert (long.status_code, long.json()["error"]) == (400, TOO_LONG)
    refuse(desk, 400, TOO_LONG, lambda text: len(text) > 60)
    await indexed(desk)
    await play(desk, "13.6c", "400 for a text that is too long, as without truncating")
    sent = [one.body["truncate"] for one in desk.server.log.of("/api/embed")[1:]]
    assert sent
    assert all(sent)


async def test_a_nan_for_one_request_costs_nothing(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT)
    desk.backend.fail_embed(400, "embedding contains NaN or Inf values")
    assert (await embed(desk, input=["odd"])).status_code == 400
    await desk.say("Is there anything?")
    desk.backend.fail_embed(400, "embedding contains NaN or Inf values")
    await desk.session.core.settled()
    seen = await play(desk, "13.6d", "400: NaN in a vector, for one request")
    assert seen.end.status == "answered"


async def test_nothing_to_embed_loads_an_embedding_model(open_desk: Open) -> None:
    desk = await open_desk(model=EMBEDDER, tools=False)
    desk.backend.installed.append(embed_model())
    assert (await embed(desk, input="")).json()["embeddings"] == []
    await desk.backend.unload(EMBEDDER)
    loads = desk.backend.runners.loads
    await desk.session.start()
    await desk.server.log.until(lambda log: any(one.body["input"] == [] for one in log.of("/api/embed")[1:]))
    await desk.session.core.settled()
    assert desk.backend.runners.loads == loads + 1
    seen = await play(desk, "13.6e", "an embedding model as the chat's model: loaded by nothing to embed, then asked")
    assert seen.end.status == "failed"


async def test_each_embedding_model_has_vectors_of_its_own(open_desk: Open) -> None:
    desk = await with_vectors(open_desk, PORT)
    await indexed(desk)
    await desk.session.close()
    other = embed_model("small-embed:latest", dimensions=64)
    again = await with_vectors(open_desk, model=other, named="small-embed")
    await indexed(again)
    seen = await play(again, "13.6f", "another embedding model, whose vectors have another size")
    assert seen.recalled == [f"“{PORT}” by words and meaning"]
