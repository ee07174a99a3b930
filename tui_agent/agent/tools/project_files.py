"""Read-only tools over the project: ``read_file`` and ``search_files``.

Both stay inside the project root (symbolic links included), honour ``.gitignore`` and never open memory files,
version control internals or binary files.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tui_agent.agent.tools.base import JSON, Param, Tool, ToolResult, TurnContext, failed
from tui_agent.ignores import IgnoreFile, ignored

_ALWAYS_HIDDEN = frozenset({".git", ".hg", ".svn", ".agent-memory", "__pycache__", "node_modules", ".venv"})
_MAX_FILE = 2_000_000
_MAX_FILES_SCANNED = 20_000
_MAX_LINE = 300


class OutsideProject(ValueError):
    """The path leaves the project, is hidden, or is not a file."""


class ProjectTree:
    """The files of a project that tools may see. ``.gitignore`` files are read once per instance.

    Args:
        root: the project folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._ignores: dict[str, IgnoreFile] = {}

    def resolve(self, path: str) -> Path:
        """The real file behind ``path``, relative to the root.

        Raises:
            OutsideProject: a sentence that says why the file cannot be read.
        """
        if "\x00" in path or not path.strip():
            raise OutsideProject("The path is empty or has a NUL byte. Give a path inside the project.")
        try:
            target = (self.root / path.strip()).resolve()
        except (OSError, RuntimeError) as error:
            raise OutsideProject(f"The path {path!r} cannot be resolved: {error}.") from None
        if target != self.root and self.root not in target.parents:
            raise OutsideProject(
                f"{path!r} is outside the project {self.root.name!r}; only files inside it can be read."
            )
        if any(part in _ALWAYS_HIDDEN for part in target.relative_to(self.root).parts):
            raise OutsideProject(f"{path!r} is not a project file. Memory files are read with read_memory.")
        if self.ignored(target):
            raise OutsideProject(f"{path!r} is ignored by .gitignore and is not read.")
        return target

    def ignored(self, target: Path) -> bool:
        """Whether a ``.gitignore`` between the root and ``target`` excludes it, or a folder it is in."""
        parts = target.relative_to(self.root).parts
        ignores: tuple[IgnoreFile, ...] = ()
        inside = ""
        for depth, part in enumerate(parts):
            ignores = (*ignores, self._ignore_file(inside))
            is_dir = depth < len(parts) - 1 or target.is_dir()
            inside += f"{part}/" if is_dir else part
            if ignored(inside, ignores):
                return True
        return False

    def _ignore_file(self, base: str) -> IgnoreFile:
        if base not in self._ignores:
            self._ignores[base] = IgnoreFile.read(self.root / base / ".gitignore", base)
        return self._ignores[base]

    def walk(self) -> Iterator[Path]:
        """All visible files, sorted within each folder, links to folders not followed, at most 20,000."""
        seen = 0
        for folder, dirs, names in os.walk(self.root):
            here = Path(folder)
            dirs[:] = sorted(
                d
                for d in dirs
                if d not in _ALWAYS_HIDDEN and not (here / d).is_symlink() and not self.ignored(here / d)
            )
            for name in sorted(names):
                file = here / name
                if file.is_symlink() or self.ignored(file):
                    continue
                seen += 1
                if seen > _MAX_FILES_SCANNED:
                    return
                yield file

    def closest(self, path: str) -> str:
        """A visible file with the same name as ``path``, as help in an error, or an empty string."""
        wanted = PurePosixPath(path).name.casefold()
        for file in self.walk():
            if file.name.casefold() == wanted:
                return file.relative_to(self.root).as_posix()
        return ""


def _text_of(file: Path) -> str | None:
    """The file as text, or ``None`` when it is too large or binary."""
    try:
        if file.stat().st_size > _MAX_FILE:
            return None
        data = file.read_bytes()
    except OSError:
        return None
    if b"\x00" in data[:8192]:
        return None
    return data.decode("utf-8", errors="replace")


def project_tools(root: Path) -> list[Tool]:
    """``read_file`` and ``search_files`` over ``root``."""

    # A tree lives for one call: its view of the .gitignore files is never older than the call.
    async def read_file(args: JSON, turn: TurnContext) -> ToolResult:
        return await asyncio.to_thread(_read, ProjectTree(root), args)

    async def search_files(args: JSON, turn: TurnContext) -> ToolResult:
        return await asyncio.to_thread(_search, ProjectTree(root), args)

    return [
        Tool(
            "read_file",
            "Read a file of the project.",
            {
                "path": Param("string", "relative to the project"),
                "start_line": Param("integer", required=False),
                "end_line": Param("integer", required=False),
            },
            read_file,
        ),
        Tool(
            "search_files",
            "Find text in the project's files, ignoring case. Returns path:line: text.",
            {
                "query": Param("string"),
                "path": Param("string", "folder or file to search, empty for all", required=False),
            },
            search_files,
        ),
    ]


def _read(tree: ProjectTree, args: JSON) -> ToolResult:
    path = str(args.get("path", ""))
    try:
        file = tree.resolve(path)
    except OutsideProject as error:
        return failed(str(error), "refused")
    if file.is_dir():
        names = sorted(p.name + ("/" if p.is_dir() else "") for p in file.iterdir() if p.name not in _ALWAYS_HIDDEN)
        return ToolResult(True, "\n".join(names[:200]) or "(empty folder)", f"{len(names)} entries", "tool_output")
    if not file.is_file():
        hint = tree.closest(path)
        return failed(
            f"There is no file {path!r} in the project." + (f" Did you mean {hint!r}?" if hint else ""), "not found"
        )
    text = _text_of(file)
    if text is None:
        return failed(f"{path!r} is binary or larger than 2 MB and cannot be read as text.", "not text")
    lines = text.splitlines()
    start = max(1, int(args.get("start_line") or 1))
    end = min(len(lines), int(args.get("end_line") or len(lines)))
    if start > max(len(lines), 1):
        return failed(f"{path!r} has only {len(lines)} lines.", "no such line")
    shown = file.relative_to(tree.root).as_posix()
    body = "\n".join(lines[start - 1 : end])
    return ToolResult(
        True,
        f"{shown} lines {start}-{end} of {len(lines)}\n{body}",
        f"{start}-{end} of {len(lines)}",
        "file",
        source=shown,
    )


def _search(tree: ProjectTree, args: JSON) -> ToolResult:
    query = str(args.get("query", "")).strip()
    if not query:
        return failed("The query is empty. Give a word or phrase to look for.")
    base = tree.root
    if args.get("path"):
        try:
            base = tree.resolve(str(args["path"]))
        except OutsideProject as error:
            return failed(str(error), "refused")
    needle = query.casefold()
    hits: list[str] = []
    more = 0
    for file in tree.walk():
        if base != tree.root and base != file and base not in file.parents:
            continue
        text = _text_of(file)
        if text is None or needle not in text.casefold():
            continue
        shown = file.relative_to(tree.root).as_posix()
        for number, line in enumerate(text.splitlines(), 1):
            if needle in line.casefold():
                if len(hits) < 40:
                    hits.append(f"{shown}:{number}: {line.strip()[:_MAX_LINE]}")
                else:
                    more += 1
    if not hits:
        return ToolResult(True, f"No file of the project contains {query!r}.", "0 hits")
    tail = f"\n… and {more} more; search for something narrower." if more else ""
    return ToolResult(
        True, "\n".join(hits) + tail, f"{len(hits) + more} hits", "tool_output", source=f"search {query!r}"
    )
