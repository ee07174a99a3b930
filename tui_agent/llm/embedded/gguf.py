"""The header of a GGUF model file: what kind of model it is and what its chat template can do.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little endian).
"""

from __future__ import annotations

import hashlib
import mmap
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import LoadFailed, ModelMissing
from ..wire.backend import BackendModel

_FIX = "Give the path of a .gguf model file, or leave it out to use the built-in model."
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_KEYS = 100_000
_EDGE = 1024 * 1024

# general.file_type, as llama.cpp numbers them (llama.h, enum llama_ftype).
_FILE_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    25: "IQ4_NL",
    30: "IQ4_XS",
    32: "BF16",
}


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """The keys of the header that matter here; arrays are left out of ``values``."""

    values: dict[str, Any]

    @property
    def architecture(self) -> str:
        """For example ``qwen2``."""
        return str(self.values.get("general.architecture") or "unknown")

    def number(self, name: str) -> int:
        """An integer below the architecture's name, 0 when it is not there."""
        found = self.values.get(f"{self.architecture}.{name}")
        return found if isinstance(found, int) else 0

    @property
    def template(self) -> str:
        """The chat template (Jinja)."""
        return str(self.values.get("tokenizer.chat_template") or "")

    @property
    def capabilities(self) -> tuple[str, ...]:
        """In Ollama's words, judged from the template."""
        template = self.template
        found = ["completion"]
        if re.search(r"\btools\b", template):
            found.append("tools")
        if "enable_thinking" in template or "<think>" in template:
            found.append("thinking")
        return tuple(found)


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def scalar(self, kind: str) -> Any:
        (value,) = struct.unpack_from("<" + kind, self._data, self._at)
        self._at += struct.calcsize("<" + kind)
        return value

    def text(self) -> str:
        length = self.scalar("Q")
        if self._at + length > len(self._data):
            raise ValueError("a text is longer than the file")
        raw = self._data[self._at : self._at + length]
        self._at += length
        return raw.decode("utf-8", "replace")

    def skip_texts(self, count: int) -> None:
        for _ in range(count):
            length = self.scalar("Q")  # moves the position, so it must not be part of the addition below
            self._at += length

    def value(self, kind: int) -> Any:
        """One value; arrays are skipped and give ``None``."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.scalar(_SCALARS[kind])
        inner, count = self.scalar("I"), self.scalar("Q")
        if inner == _STRING:
            self.skip_texts(count)
        elif inner == _ARRAY:
            for _ in range(count):
                self.value(_ARRAY)
        else:
            self._at += count * struct.calcsize("<" + _SCALARS[inner])
        return None


def read_gguf(path: Path) -> GgufHeader:
    """The header of a model file.

    Raises:
        ModelMissing: there is no such file.
        LoadFailed: it is not a GGUF file, or a damaged one.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise LoadFailed(f"{path} is not a GGUF model file.", fix=_FIX)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _header(data)
    except FileNotFoundError:
        raise ModelMissing(f"There is no model file at {path}.", fix=_FIX) from None
    except OSError as error:
        raise LoadFailed(f"The model file {path} cannot be read: {error.strerror or error}.", fix=_FIX) from error
    except (struct.error, KeyError, ValueError) as error:
        raise LoadFailed(
            f"The header of the model file {path} is damaged.", fix="Download the file again.", detail=str(error)
        ) from error


def _header(data: mmap.mmap) -> GgufHeader:
    reader = _Reader(data)
    reader.scalar("I")  # the magic, looked at already
    version = reader.scalar("I")
    if version not in (2, 3):
        raise ValueError(f"GGUF version {version}")
    reader.scalar("Q")  # number of tensors
    count = reader.scalar("Q")
    if count > _MAX_KEYS:
        raise ValueError(f"{count} keys")
    values = {}
    for _ in range(count):
        key = reader.text()
        value = reader.value(reader.scalar("I"))
        if value is not None:
            values[key] = value
    return GgufHeader(values)


def fingerprint(path: Path) -> str:
    """64 hex characters that tell model files apart without reading all of them: size, first and last megabyte."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_EDGE))
        file.seek(max(0, size - _EDGE))
        digest.update(file.read(_EDGE))
    return digest.hexdigest()


def model_name(path: Path) -> str:
    """A name for ``/api/tags`` made from a file name: ``My Model-Q4.gguf`` becomes ``my-model-q4:latest``."""
    stem = re.sub(r"[^a-z0-9._-]+", "-", path.stem.lower()).strip("-._")
    return f"{stem[:80] or 'model'}:latest"


def describe(path: Path) -> BackendModel:
    """The model as the HTTP API shows it. Raises as :func:`read_gguf`."""
    header = read_gguf(path)
    stat = path.stat()
    return BackendModel(
        name=model_name(path),
        digest=fingerprint(path),
        size=stat.st_size,
        family=header.architecture,
        parameter_size=str(header.values.get("general.size_label") or ""),
        quantization=_FILE_TYPES.get(header.values.get("general.file_type", -1), ""),
        context_length=header.number("context_length") or 4096,
        embedding_length=header.number("embedding_length"),
        capabilities=header.capabilities,
        modified_at=stat.st_mtime,
        template=header.template,
    )
