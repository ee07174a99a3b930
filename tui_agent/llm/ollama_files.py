"""Models that Ollama has already downloaded, read from its folder: what is there while its server is not running.

A model is a manifest (JSON) under ``manifests/HOST/NAMESPACE/NAME/TAG`` that names layers by digest; a layer is the
file ``blobs/sha256-HEX``. The layer of the weights is a GGUF file, which the built-in engine can run as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_WEIGHTS = "application/vnd.ollama.image.model"
# Weights that are of no use alone: changes to other weights, and the part that sees pictures.
_ADAPTER = "application/vnd.ollama.image.adapter"
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
_MOST = 500
_MAX_MANIFEST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A downloaded model: its name as Ollama shows it, the file of its weights, bytes, and its digest (hex)."""

    name: str
    path: Path
    size: int
    digest: str


def models_folders(env: Mapping[str, str], home: Path | None = None) -> list[Path]:
    """Where models may lie: ``OLLAMA_MODELS`` alone when it is set, else the user's and the system service's folder."""
    named = env.get("OLLAMA_MODELS", "").strip()
    if named:
        return [Path(os.path.expanduser(named))]  # noqa: PTH111 - "~" of an unknown user stays
    home = home or Path(env.get("HOME") or env.get("USERPROFILE") or Path.home())
    folders = [home / ".ollama" / "models"]
    if sys.platform.startswith("linux"):
        folders += [Path("/usr/share/ollama/.ollama/models"), Path("/var/lib/ollama/models")]
    return folders


def local_models(folders: list[Path]) -> list[LocalModel]:
    """The chat models whose weights can be read, the newest first. What is damaged or unreadable is left out."""
    found: dict[str, tuple[float, LocalModel]] = {}
    for folder in folders:
        for path in _manifests(folder / "manifests"):
            model = _model(path, folder)
            if model is not None and model.name not in found:
                with contextlib.suppress(OSError):
                    found[model.name] = (path.stat().st_mtime, model)
    newest = sorted(found.values(), key=lambda one: (-one[0], one[1].name))
    return [model for _, model in newest]


def name_of(path: str) -> str:
    """What Ollama calls the model whose weights are this file; empty for any other file."""
    wanted = Path(path)
    if not re.fullmatch(r"sha256-[0-9a-f]{64}", wanted.name):
        return ""
    folders = [*models_folders(os.environ), wanted.parent.parent]
    return next((model.name for model in local_models(folders) if model.path == wanted), "")


def _manifests(folder: Path) -> Iterator[Path]:
    """Files exactly four levels deep: host, namespace, name, tag."""
    count = 0
    for parent, folders, files in os.walk(folder, onerror=lambda _: None):
        depth = len(Path(parent).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < 3 else []
        if depth == 3:
            for name in sorted(files):
                if not name.startswith("."):
                    yield Path(parent, name)
                    count += 1
        if count >= _MOST:
            return


def _model(manifest: Path, folder: Path) -> LocalModel | None:
    try:
        if manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return None
        layers: Any = json.loads(manifest.read_text("utf-8"))["layers"]
        kinds = [(str(layer["mediaType"]), str(layer["digest"])) for layer in layers]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    weights = [digest for kind, digest in kinds if kind == _WEIGHTS]
    if len(weights) != 1 or any(kind == _ADAPTER for kind, _ in kinds):
        return None
    digest = _DIGEST.fullmatch(weights[0])
    if digest is None:  # also keeps a manifest from naming a file elsewhere
        return None
    path = folder / "blobs" / f"sha256-{digest[1]}"
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                return None
        return LocalModel(_name(manifest.relative_to(folder / "manifests").parts), path, path.stat().st_size, digest[1])
    except OSError:
        return None


def _name(parts: tuple[str, ...]) -> str:
    """``registry.ollama.ai/library/qwen3/4b`` is ``qwen3:4b``; other registries and namespaces stay in front."""
    host, namespace, name, tag = parts
    front = "" if host == "registry.ollama.ai" else f"{host}/"
    front += "" if namespace == "library" and not front else f"{namespace}/"
    return f"{front}{name}:{tag}"


def is_embedding(path: Path) -> bool:
    """Whether weights make embeddings rather than text, by their header. ``True`` also for what cannot be read."""
    from tui_agent.llm.embedded.gguf import read_gguf
    from tui_agent.llm.errors import ModelError

    try:
        header = read_gguf(path)
    except ModelError:
        return True
    return "bert" in header.architecture or not header.template
