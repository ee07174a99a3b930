"""Looking for texts in every file of a project and of its user: as bytes, as JSON writes them, and in rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path


def written_forms(text: str) -> set[bytes]:
    """How a text may lie in a file: as it is, and escaped as JSON does it, in UTF-8 and UTF-16."""
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return {form.encode("utf-8", "surrogatepass") for form in forms} | {text.encode("utf-16-le", "surrogatepass")}


def files_with(texts: Iterable[str], *folders: Path) -> dict[str, list[str]]:
    """Each text that is in some file (or in some file's name), with those files."""
    wanted = {text: written_forms(text) for text in texts}
    found: dict[str, list[str]] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            name = str(path.relative_to(folder))
            for text, forms in wanted.items():
                if text in name or any(form in data for form in forms):
                    found.setdefault(text, []).append(name)
    return found
