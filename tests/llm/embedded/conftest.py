"""Small model files: a GGUF header, and a model cut in package parts."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tui_agent.llm.embedded.models import SplitModel

TEMPLATE = "{% if tools %}{{ tools }}{% endif %}{{ messages[0].content }}"


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf_bytes(values: dict[str, Any], version: int = 3) -> bytes:
    """A GGUF file without tensors. Lists become arrays of texts."""
    out = b"GGUF" + struct.pack("<IQQ", version, 0, len(values))
    for key, value in values.items():
        out += _text(key)
        if isinstance(value, str):
            out += struct.pack("<I", 8) + _text(value)
        elif isinstance(value, list):
            out += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
        elif isinstance(value, float):
            out += struct.pack("<If", 6, value)
        else:
            out += struct.pack("<II", 4, value)
    return out


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    """A file whose header is right and which holds no model."""
    path = tmp_path / "My Model-Q4.gguf"
    values = {
        "general.architecture": "qwen2",
        "general.size_label": "1.5B",
        "general.file_type": 15,
        "tokenizer.ggml.tokens": ["a", "bc", "ł"],
        "qwen2.context_length": 2048,
        "qwen2.embedding_length": 64,
        "qwen2.rope.freq_base": 1000.0,
        "tokenizer.chat_template": TEMPLATE,
    }
    path.write_bytes(gguf_bytes(values))
    return path


MakeParts = Callable[..., SplitModel]


@pytest.fixture
def make_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeParts:
    """Installs a made-up model cut in parts where importlib.metadata finds it."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def make(content: bytes = b"0123456789" * 100, parts: int = 3, *, record: bool = True) -> SplitModel:
        size = -(-len(content) // parts)
        for number in range(1, parts + 1):
            package = f"made_up_part{number}"
            data = site / package / "data"
            data.mkdir(parents=True)
            # Importing a part would fail: they are data.
            (site / package / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
            (data / f"part{number:02d}.bin").write_bytes(content[(number - 1) * size : number * size])
            info = site / f"{package}-0.1.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: made-up-part{number}\nVersion: 0.1\n", encoding="utf-8"
            )
            if record:
                lines = f"{package}/__init__.py,,\n{package}/data/part{number:02d}.bin,,\n"
                (info / "RECORD").write_text(lines, encoding="utf-8")
        return SplitModel("made-up.gguf", "made-up-part", parts, len(content), hashlib.sha256(content).hexdigest())

    return make
