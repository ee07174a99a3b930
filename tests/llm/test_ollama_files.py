"""Models that Ollama has downloaded, found while its server is not running."""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path

import pytest

from tui_agent.llm.ollama_files import is_embedding, local_models, models_folders, name_of

WEIGHTS = "application/vnd.ollama.image.model"


def gguf(architecture: str = "qwen2", template: str = "{{ messages }} {{ tools }}") -> bytes:
    """The smallest file whose header can be read."""

    def text(value: str) -> bytes:
        data = value.encode()
        return struct.pack("<Q", len(data)) + data

    keys = {"general.architecture": architecture, "tokenizer.chat_template": template}
    body = b"".join(text(key) + struct.pack("<I", 8) + text(value) for key, value in keys.items() if value)
    count = sum(bool(value) for value in keys.values())
    return b"GGUF" + struct.pack("<IQQ", 3, 0, count) + body


def put(folder: Path, name: str, weights: bytes = b"", *, kind: str = WEIGHTS, digest: str = "") -> Path:
    """A model as ``ollama pull`` leaves it; returns the file of its weights."""
    weights = weights or gguf()
    digest = digest or hashlib.sha256(weights).hexdigest()
    blob = folder / "blobs" / f"sha256-{digest}"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(weights)
    manifest = folder / "manifests" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    layers = [{"mediaType": kind, "digest": f"sha256:{digest}", "size": len(weights)},
              {"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "0" * 64}]  # fmt: skip
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}), "utf-8")
    return blob


def test_names_are_those_that_ollama_shows(tmp_path: Path) -> None:
    put(tmp_path, "registry.ollama.ai/library/qwen3/4b", gguf("a"))
    put(tmp_path, "registry.ollama.ai/someone/qwen3/latest", gguf("b"))
    put(tmp_path, "hf.co/bartowski/Llama-3.2-1B-GGUF/Q4_K_M", gguf("c"))
    found = {model.name: model for model in local_models([tmp_path])}
    assert set(found) == {"qwen3:4b", "someone/qwen3:latest", "hf.co/bartowski/Llama-3.2-1B-GGUF:Q4_K_M"}
    model = found["qwen3:4b"]
    assert model.path.read_bytes() == gguf("a")
    assert (model.size, model.path.name) == (len(gguf("a")), f"sha256-{model.digest}")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "manifests/registry.ollama.ai/library/m/1b").write_text("{not json"),
        lambda folder: (folder / "manifests/registry.ollama.ai/library/m/1b").write_text('{"layers": 3}'),
        lambda folder: [blob.unlink() for blob in (folder / "blobs").iterdir()],
        lambda folder: [blob.write_bytes(b"half a do") for blob in (folder / "blobs").iterdir()],
    ],
    ids=["no JSON", "no layers", "no weights", "not a model file"],
)
def test_what_is_damaged_is_left_out_and_the_others_stay(tmp_path: Path, damage: object) -> None:
    put(tmp_path, "registry.ollama.ai/library/m/1b", gguf("m"))
    assert callable(damage)
    damage(tmp_path)
    put(tmp_path, "registry.ollama.ai/library/whole/1b", gguf("w"))
    assert [model.name for model in local_models([tmp_path])] == ["whole:1b"]


def test_a_manifest_cannot_name_a_file_elsewhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside.gguf"
    outside.write_bytes(gguf())
    manifest = tmp_path / "models/manifests/registry.ollama.ai/library/evil/1b"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": WEIGHTS, "digest": "sha256:../../../outside.gguf"}
    manifest.write_text(json.dumps({"layers": [layer]}), "utf-8")
    assert local_models([tmp_path / "models"]) == []


def test_adapters_are_no_models_of_their_own(tmp_path: Path) -> None:
    put(tmp_path, "registry.ollama.ai/library/tuned/1b", kind="application/vnd.ollama.image.adapter")
    assert local_models([tmp_path]) == []


def test_the_variable_stands_alone_and_without_it_user_and_service_folders_are_searched(tmp_path: Path) -> None:
    assert models_folders({"OLLAMA_MODELS": str(tmp_path)}) == [tmp_path]
    folders = models_folders({}, tmp_path)
    assert folders[0] == tmp_path / ".ollama/models"
    assert models_folders({"HOME": str(tmp_path)})[0] == tmp_path / ".ollama/models"


def test_an_embedding_model_is_told_from_a_chat_model_by_its_header(tmp_path: Path) -> None:
    chat = put(tmp_path, "registry.ollama.ai/library/chat/1b", gguf())
    bert = put(tmp_path, "registry.ollama.ai/library/embed/1b", gguf("nomic-bert", ""))
    assert not is_embedding(chat)
    assert is_embedding(bert)
    assert is_embedding(tmp_path / "nothing")


def test_a_blob_is_called_by_its_models_name(tmp_path: Path) -> None:
    blob = put(tmp_path, "registry.ollama.ai/library/qwen3/4b")
    assert name_of(str(blob)) == "qwen3:4b"
    assert name_of("/models/mine.gguf") == ""
