"""What ``.gitignore`` files leave out of a project. Used wherever the app looks through the user's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pathspec

_MAX_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class IgnoreFile:
    """The patterns of one ``.gitignore``; ``base`` is its folder relative to the root, with ``/`` at the end."""

    base: str
    spec: pathspec.GitIgnoreSpec

    @classmethod
    def read(cls, path: Path, base: str) -> IgnoreFile:
        """The file at ``path``. One that cannot be read has no patterns, a bad pattern is passed over."""
        try:
            with path.open("rb") as file:
                lines = file.read(_MAX_BYTES).decode("utf-8-sig", "replace").splitlines()
        except OSError:
            lines = []
        try:
            return cls(base, pathspec.GitIgnoreSpec.from_lines(lines))
        except ValueError:  # one bad pattern; the others still count
            return cls(base, pathspec.GitIgnoreSpec.from_lines([line for line in lines if _is_good(line)]))


def _is_good(line: str) -> bool:
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def ignored(path: str, ignores: Sequence[IgnoreFile]) -> bool:
    """What the deepest ``.gitignore`` with an opinion says of ``path``.

    Args:
        path: relative to the root, with ``/`` between its parts, and at the end of a folder.
        ignores: the files from the root down to the folder of ``path``. As git does it, nothing inside an ignored
            folder can be taken back in, so ask for the folders above ``path`` first.
    """
    for each in reversed(ignores):
        verdict = each.spec.check_file(path[len(each.base) :]).include
        if verdict is not None:
            return verdict
    return False
