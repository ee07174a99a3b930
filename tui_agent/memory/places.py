"""Which paths below the memory folder may be read and written. Everything else is refused with a reason."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from tui_agent.memory.text import fold

TEXT_SUFFIXES = frozenset({".md", ".txt", ".yaml", ".yml"})
AGENTS, USER, STACK = "AGENTS.md", "knowledge/user.md", "knowledge/tech-stack.md"
RULES, SUMMARIES = "rules.md", "conversations/summaries"

_PREFIX = ".agent-memory/"
_CANONICAL = {fold(name): name for name in (AGENTS, RULES, USER, STACK)}
_WRITABLE = f"{AGENTS}, {USER}, {STACK}, knowledge/projects/NAME.md or another file in knowledge/"
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\..*)?", re.IGNORECASE)
_FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f\x7f]')
_MAX_NAME_BYTES, _MAX_PATH_CHARS, _MAX_DEPTH = 120, 240, 6


class MemoryFileError(Exception):
    """A memory file cannot be used; ``str(error)`` says why and what to do instead."""


class EditRefused(MemoryFileError):
    """Nothing was written."""


class ReadRefused(EditRefused):
    """Nothing was read. A kind of the other, so that a caller of both needs one ``except``."""


@dataclass(frozen=True, slots=True)
class Place:
    """A checked path: ``name`` relative to the memory folder with ``/``, ``path`` absolute."""

    name: str
    path: Path


def is_memory_edit(kind: str, source: str) -> bool:
    """Whether an item of the working memory is an edit of a memory file. What it wrote is a fact, which has a life of
    its own: sent again as an item it would bring back what was corrected or taken back since."""
    name = source.partition("#")[0]
    return kind == "edit" and (name in (AGENTS, RULES) or name.startswith("knowledge/"))


def readable(root: Path, given: str) -> Place:
    """The memory file a model or user names, for reading. Raises :class:`ReadRefused`."""
    place = _locate(root, given, ReadRefused)
    if not _kind(place.name):
        raise ReadRefused(f"{place.name} is no memory file. Memory files are {AGENTS}, {RULES}, and what is in "
                          f"knowledge/, skills/ and {SUMMARIES}/.")  # fmt: skip
    return place


def writable(root: Path, given: str) -> Place:
    """The memory file a model names, for writing. Raises :class:`EditRefused` for the user's own files and others."""
    place = _locate(root, given, EditRefused)
    name = place.name
    lower = name.casefold()
    if lower.rpartition("/")[2] == RULES:
        raise EditRefused(f"{name} holds the user's own rules; only the user edits such files. Tell the user what "
                          "you would add, or save a preference to AGENTS.md.")  # fmt: skip
    if lower in ("config.yaml", "config.yml"):
        raise EditRefused(f"{name} holds the user's settings; only the user edits it.")
    if lower in ("facts.json", "seed.jsonl", ".gitignore") or lower.startswith(
        ("memory.db", "vector-store", "backups")
    ):
        raise EditRefused(f"{name} is written by the program itself. Write to {_WRITABLE}.")
    kind = _kind(name)
    if kind == "skills":
        raise EditRefused(f"{name}: skills are the user's; only the user edits them. Propose the text in your answer.")
    if not kind:
        hint = f" Memory files end in {', '.join(sorted(TEXT_SUFFIXES))}." if not _suffix_ok(name) else ""
        raise EditRefused(f"{name} is not a place for memory.{hint} Write to {_WRITABLE}.")
    return place


def _kind(name: str) -> str:
    """``agents``, ``rules``, ``knowledge``, ``skills`` or ``summaries``; empty for what is no memory file."""
    if name in (AGENTS, RULES):
        return "agents" if name == AGENTS else "rules"
    if not _suffix_ok(name):
        return ""
    for folder, kind in (("knowledge/", "knowledge"), ("skills/", "skills"), (f"{SUMMARIES}/", "summaries")):
        if name.startswith(folder) and len(name) > len(folder):
            return kind
    return ""


def _suffix_ok(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in TEXT_SUFFIXES  # noqa: PTH122 - a name, not a path on this machine


def _locate(root: Path, given: str, refuse: type[MemoryFileError]) -> Place:
    """Check a path's form, find the file it means whatever its case, and make sure that no link leads out."""
    text = unicodedata.normalize("NFC", given).strip()
    text = text.removeprefix("./").removeprefix(_PREFIX).removeprefix("./")
    shown = "".join(one if one.isprintable() else "?" for one in text)[:80] or "(empty)"

    def no(why: str) -> MemoryFileError:
        return refuse(f"The path {shown} is refused: {why}. Give a path inside the memory folder such as {USER}.")

    if not text:
        raise no("it is empty")
    if text.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:", text):
        raise no("it is absolute")
    if _FORBIDDEN.search(text):
        raise no("it has a character that not every file system takes (folders are parted by /)")
    parts = text.split("/")
    if ".." in parts:
        raise no("it leads out of the memory folder with ..")
    if len(text) > _MAX_PATH_CHARS or len(parts) > _MAX_DEPTH:
        raise no("it is too long")
    for part in parts:
        if not part or part == ".":
            raise no("it has an empty part")
        if part.startswith("."):
            raise no("it names a hidden file")
        if part.endswith((".", " ")) or part.startswith(" ") or _RESERVED.fullmatch(part):
            raise no(f'"{part}" is not a name on every system')
        if len(part.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES:
            raise no("a name in it is too long")
        if any(0xD800 <= ord(one) <= 0xDFFF for one in part):
            raise no("it is not valid text")
    name = _CANONICAL.get(fold(text), text)
    path = root
    names: list[str] = []
    for part in name.split("/"):
        actual = _actual_name(path, part)
        names.append(actual)
        path = path / actual
        if path.is_symlink():
            raise no("it goes through a link")
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return Place("/".join(names), path)
    if not stat.S_ISREG(status.st_mode):
        raise no("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is not a regular file")
    return Place("/".join(names), path)


def _actual_name(folder: Path, part: str) -> str:
    """The name on disk that differs from ``part`` only in case or Unicode form, so that one file has one spelling."""
    try:
        names = {one.name for one in folder.iterdir()}
    except OSError:
        return part
    if part in names:
        return part
    key = unicodedata.normalize("NFC", part).casefold()
    return next((one for one in sorted(names) if unicodedata.normalize("NFC", one).casefold() == key), part)
