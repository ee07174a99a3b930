"""Thinking, formats and embeddings: what models do to them, and what the session and the embedder make of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest

from tests.agent.conftest import Desk, Open, of
from tests.faults.ollama_table import play, record, steady  # noqa: F401
from tui_agent.agent.events import TextDelta, ThinkingDelta
from tui_agent.llm.client import ModelClient
from tui_agent.llm.embeddings import BATCH, OllamaEmbedder, choose_embedder, format_prefixes
from tui_agent.llm.types import ModelInfo
from tui_agent.llm.wire.backend import BackendError
from tui_agent.llm.wire.catalog import embed_model, model
from tui_agent.llm.wire.faults import think_unsupported
from tui_agent.llm.wire.script import Say, Script, Think, answer
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer
from tui_agent.memory.extraction_parse import json_values

THINKER = model(capabilities=("completion", "tools", "thinking"))
NOTHING_ON_DISK = "nothing: vectors are made beside the conversation"


def shown(events: Sequence[object]) -> str:
    return "".join(event.text for event in of(list(events), TextDelta))  # type: ignore[arg-type]


# -- G: thinking and formats -------------------------------------------------------------------------------------------


async def test_a_stray_closing_tag_makes_what_stood_before_it_thinking(desk: Desk) -> None:
    desk.backend.queue(answer("The user wants a port.</think>Port 8080."))
    seen = await play(desk, "G71", "thinking in the text, with a closing tag only")
    assert seen.text == "Port 8080."
    assert (await desk.session.transcript())[-1].thinking.strip() == "The user wants a port."


async def test_both_tags_in_one_piece_are_seen(desk: Desk) -> None:
    desk.backend.queue(Script(Say("<think>A port.</think>Port 8080.")))
    seen = await play(desk, "G72", "opening and closing tag in one chunk")
    assert shown(seen.events) == "Port 8080."


async def test_thinking_in_a_field_of_its_own_is_shown_as_thinking(desk: Desk) -> None:
    desk.backend.queue(Script(Think("A port."), Say("Port 8080.")))
    seen = await play(desk, "G73", "thinking in the field `thinking`")
    assert [event.text for event in of(seen.events, ThinkingDelta)] == ["A port."]


async def test_a_model_that_refuses_to_think_is_asked_without(open_desk: Open) -> None:
    desk = await open_desk(think=True)
    desk.backend.installed[:] = [THINKER]
    desk.backend.queue(think_unsupported(), "Port 8080.", "Yes.")
    await play(desk, "G74", "400: the model cannot think, although the server says so")
    await desk.say("Sure?")
    assert ["think" in record.body for record in desk.server.chats] == [True, False, False]


async def test_with_a_format_no_thinking_is_asked_for_and_prose_around_the_json_is_let_be(open_desk: Open) -> None:
    desk = await open_desk(think=True)
    desk.backend.installed[:] = [THINKER]
    await play(desk, "G75", "a reply in JSON is wanted from a thinking model; prose and a fence stand around it")
    core = desk.session.core
    desk.backend.queue(answer('Sure! ```json\n["We use port 8080."]\n``` Done.'))
    text = ""
    async for chunk in core.client.chat(core.model, core.prompt.messages(), options=core.options, format="json"):
        text += chunk.content
    assert desk.server.log.of("/api/chat")[-1].body["think"] is False
    assert ["We use port 8080."] in list(json_values(text))


async def test_format_and_tools_never_go_together(desk: Desk) -> None:
    await play(desk, "G76", "a plain question: no format is sent beside tools")
    assert "format" not in desk.body
    core = desk.session.core
    with pytest.raises(ValueError, match="together"):
        async for _ in core.client.chat(
            core.model, core.prompt.messages(), options=core.options, tools=core.prompt.tools, format="json"
        ):
            pass


async def test_endless_unused_tokens_are_stopped(desk: Desk) -> None:
    desk.backend.default = lambda request: Script(*(Say("<unused50>") for _ in range(2000)))
    seen = await play(desk, "G77", "the token <unused50> for ever")
    assert any("repeated itself" in notice for notice in seen.notices)
    assert len(seen.text) < 6000


# -- H: embeddings -----------------------------------------------------------------------------------------------------


class Vectors:
    """An embedder on a scripted server."""

    def __init__(self, server: WireServer, client: ModelClient, dimension: int = 768) -> None:
        self.server = server
        self.client = client
        self.info = ModelInfo(
            "nomic-embed-text:latest",
            digest="aa",
            capabilities=frozenset({"embedding"}),
            context_length=2048,
            embedding_length=dimension,
        )
        self.embedder = OllamaEmbedder(client, self.info)

    @property
    def inputs(self) -> list[list[str]]:
        return [record.body["input"] for record in self.server.log.of("/api/embed")]

    @property
    def most_at_once(self) -> int:
        return self.server.log.in_flight_max


@pytest.fixture
async def vectors() -> AsyncIterator[Vectors]:
    async with WireServer(ScriptedBackend([model(), embed_model()])) as server:
        client = ModelClient(server.url)
        yield Vectors(server, client)
        await client.aclose()


async def test_a_text_that_is_too_long_is_halved_and_the_others_are_kept(vectors: Vectors) -> None:
    def too_long(inputs: Sequence[str]) -> BackendError | None:
        if any(len(text) > 600 for text in inputs):
            return BackendError(400, "the input length exceeds the context length")
        return None

    vectors.server.backend.refuse_embed(too_long)
    found = await vectors.embedder.embed(["word " * 400, "a port", "another port"], "document")
    assert all(vector is not None for vector in found)
    record("H78", "400 for every text above 600 characters, in spite of truncating", "nothing: all three texts have a "
           "vector, the long one by its beginning", NOTHING_ON_DISK)  # fmt: skip


async def test_a_text_that_gives_nan_is_varied_and_else_skipped(vectors: Vectors) -> None:
    def nan(inputs: Sequence[str]) -> BackendError | None:
        if any("poison" in text or text.endswith("odd") for text in inputs):
            return BackendError(400, "embedding contains NaN or Inf values")
        return None

    vectors.server.backend.refuse_embed(nan)
    found = await vectors.embedder.embed(["fine", "something odd", "poison"], "document")
    assert [vector is not None for vector in found] == [True, True, False]
    assert all(np.isfinite(vector).all() for vector in found if vector is not None)
    assert "NaN" in vectors.embedder.last_error
    record("H79", "400: NaN for one text always, for another only in one spelling", "nothing: the second text has its "
           "vector after a trivial change, the first is found by words alone", NOTHING_ON_DISK)  # fmt: skip


async def test_a_batch_with_one_bad_text_is_bisected(vectors: Vectors) -> None:
    def bad(inputs: Sequence[str]) -> BackendError | None:
        return BackendError(500, "something odd") if any("text 11" in text for text in inputs) else None

    vectors.server.backend.refuse_embed(bad)
    found = await vectors.embedder.embed([f"text {number}" for number in range(16)], "document")
    assert [at for at, vector in enumerate(found) if vector is None] == [11]
    assert "something odd" in vectors.embedder.last_error
    assert len(vectors.inputs) <= 2 * 5 + 1
    record("H80", "500 for every batch that holds one certain text of 16", "nothing: 15 texts have their vector, the "
           "one is found by words alone, and its error is kept", NOTHING_ON_DISK)  # fmt: skip


async def test_one_request_at_a_time_in_small_batches(vectors: Vectors) -> None:
    await asyncio.gather(*(vectors.embedder.embed([f"{job} {n}" for n in range(40)], "document") for job in range(3)))
    assert vectors.most_at_once == 1
    assert max(map(len, vectors.inputs)) <= BATCH <= 32
    record("H81", "three jobs of 40 texts at the same time", "nothing: one request at a time, at most "
           f"{BATCH} texts each", NOTHING_ON_DISK)  # fmt: skip


async def test_vectors_of_another_size_are_refused_and_the_identity_tells_models_apart(vectors: Vectors) -> None:
    wrong = Vectors(vectors.server, vectors.client, dimension=512)
    with pytest.raises(Exception, match="768 numbers, not 512") as caught:
        await wrong.embedder.embed(["a port"], "document")
    assert wrong.embedder.identity != vectors.embedder.identity
    chat = [ModelInfo(model().name, capabilities=frozenset({"completion"}), embedding_length=1536, context_length=4096)]
    embedder, sentence = await choose_embedder(model().name, vectors.client, chat)
    assert not isinstance(embedder, OllamaEmbedder)
    record("H82", "vectors of another size than the model's; a chat model as embedder", f"{caught.value} / {sentence}",
           "vectors are kept by model, digest, size and prefixes; those of another model are not compared")  # fmt: skip


async def test_prefixes_of_the_family_are_sent_with_every_text(vectors: Vectors) -> None:
    await vectors.embedder.embed(["which port?"], "query")
    await vectors.embedder.embed(["port 8080"], "document")
    assert vectors.inputs == [["search_query: which port?"], ["search_document: port 8080"]]
    assert format_prefixes("bge-m3:latest") == ("", "")
    record("H83", "a query and a document for nomic-embed-text", "nothing: `search_query: ` and `search_document: ` "
           "stand before them, and nothing before those of families that have none", NOTHING_ON_DISK)  # fmt: skip
