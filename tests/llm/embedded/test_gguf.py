from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.llm.embedded.gguf import describe, fingerprint, model_name, read_gguf
from tui_agent.llm.errors import LoadFailed, ModelMissing


def test_the_header_says_what_the_model_is(gguf: Path) -> None:
    model = describe(gguf)
    assert model.name == "my-model-q4:latest"
    assert (model.family, model.parameter_size, model.quantization) == ("qwen2", "1.5B", "Q4_K_M")
    assert (model.context_length, model.embedding_length) == (2048, 64)
    assert model.capabilities == ("completion", "tools")
    assert model.size == gguf.stat().st_size


def test_thinking_is_read_from_the_template(gguf: Path) -> None:
    gguf.write_bytes(gguf.read_bytes().replace(b"{% if tools %}", b"<think>,qwen2}"))
    assert describe(gguf).capabilities == ("completion", "tools", "thinking")


def test_what_is_not_a_model_file_is_named(tmp_path: Path) -> None:
    other = tmp_path / "x.gguf"
    other.write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(LoadFailed, match=r"x\.gguf is not a GGUF model file\. Give the path"):
        read_gguf(other)
    with pytest.raises(ModelMissing, match=r"There is no model file at .*none\.gguf"):
        read_gguf(tmp_path / "none.gguf")
    with pytest.raises(LoadFailed, match="cannot be read"):
        read_gguf(tmp_path)


@pytest.mark.parametrize("cut", [4, 6, 20, 40, 90, 200])
def test_a_header_that_ends_early_is_damaged(gguf: Path, cut: int) -> None:
    gguf.write_bytes(gguf.read_bytes()[:cut])
    with pytest.raises(LoadFailed, match="damaged"):
        read_gguf(gguf)


def test_an_unknown_version_is_damaged(gguf: Path) -> None:
    data = bytearray(gguf.read_bytes())
    data[4] = 99
    gguf.write_bytes(bytes(data))
    with pytest.raises(LoadFailed, match="damaged") as caught:
        read_gguf(gguf)
    assert "version 99" in caught.value.detail


def test_the_fingerprint_changes_with_the_content(gguf: Path) -> None:
    before = fingerprint(gguf)
    assert before == fingerprint(gguf)
    gguf.write_bytes(gguf.read_bytes() + b"x")
    assert fingerprint(gguf) != before


@pytest.mark.parametrize(
    ("file", "name"),
    [("Llama-3.2 1B (Q8).gguf", "llama-3.2-1b-q8:latest"), ("..gguf", "model:latest"), ("żółć.gguf", "model:latest")],
)
def test_names_are_made_from_file_names(file: str, name: str) -> None:
    from tui_agent.llm.wire.names import parse_name

    assert model_name(Path(file)) == name
    assert parse_name(name) is not None
