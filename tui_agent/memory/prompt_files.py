"""Which text of the memory files goes into the prompt, in which order, and what is cut when there is too much."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.memory.files import MemoryFile, MemoryFiles
from tui_agent.memory.places import AGENTS, USER
from tui_agent.memory.textfile import TextFileError, read_text

Count = Callable[[str], int]

_NOTICE_TOKENS = 30
_MAX_INSTRUCTION_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class PromptCaps:
    """Limits in tokens. ``user_lines`` is the most non-empty lines of each file about the user."""

    agents_tokens: int = 800
    user_tokens: int = 600
    user_lines: int = 40
    project_tokens: int = 800
    total_tokens: int = 3000


@dataclass(frozen=True, slots=True)
class PromptSection:
    """One file as it goes into the prompt.

    ``name`` is a short title, ``path`` where it is from, ``text`` what is sent (with a notice at its end when it was
    cut), ``truncated`` whether it was cut, ``note`` the sentence for the user then, ``tokens`` the cost of ``text``.
    ``uncut`` sections are sent whole whatever they cost.
    """

    name: str
    path: str
    text: str
    truncated: bool = False
    note: str = ""
    tokens: int = 0
    uncut: bool = False


def estimate_tokens(text: str) -> int:
    """A rough count for where no model is known: 4 ASCII characters or 2 others to a token."""
    ascii_chars = sum(map(str.isascii, text))
    return -(-ascii_chars // 4) + -(-(len(text) - ascii_chars) // 2)


def prompt_sections(
    files: MemoryFiles,
    caps: PromptCaps | None = None,
    *,
    count: Count = estimate_tokens,
    rules: Iterable[PromptSection] = (),
    user_notes: Path | None = None,
    project_root: Path | None = None,
) -> list[PromptSection]:
    """The sections in order: AGENTS.md, what is known of the user, rules, tech stack, instruction files of the project.

    ``user_notes`` is the user-wide file outside the project, ``rules`` comes from :class:`~tui_agent.memory.rules.
    RulesSet`. Each section is cut at its own limit and all together at ``caps.total_tokens``; sections marked ``uncut``
    take their share first. Nothing is left out without a notice in the text and a note for the user.
    """
    caps = caps or PromptCaps()
    startup = {file.name: file for file in files.startup_files()}
    wanted: list[tuple[PromptSection, int, int]] = []

    def add(name: str, path: str, text: str, tokens: int, lines: int = 0) -> None:
        if text.strip():
            wanted.append((PromptSection(name, path, text.strip("\n")), tokens, lines))

    def add_file(file: MemoryFile | None, tokens: int, lines: int = 0) -> None:
        if file:
            add(file.name, str(file.path), file.text, tokens, lines)

    add_file(startup.pop(AGENTS, None), caps.agents_tokens)
    if user_notes is not None:
        add("user.md (all projects)", str(user_notes), _quietly(user_notes), caps.user_tokens, caps.user_lines)
    add_file(startup.pop(USER, None), caps.user_tokens, caps.user_lines)
    wanted += [(section, section.tokens or count(section.text), 0) for section in rules]
    for file in startup.values():
        add_file(file, caps.agents_tokens)
    if project_root is not None:
        for name, path, text in project_instructions(project_root):
            add(name, str(path), text, caps.project_tokens)

    left = caps.total_tokens - sum(count(section.text) for section, _, _ in wanted if section.uncut)
    found = []
    for section, tokens, lines in wanted:
        if section.uncut:
            found.append(replace(section, tokens=count(section.text)))
            continue
        done = cut_section(section, min(tokens, max(0, left)), count, lines)
        left -= done.tokens
        found.append(done)
    return found


def cut_section(section: PromptSection, tokens: int, count: Count, max_lines: int = 0) -> PromptSection:
    """The section within ``tokens`` and ``max_lines`` non-empty lines, cut at a line end, with a notice when cut."""
    lines = section.text.split("\n")
    keep = len(lines)
    if max_lines:
        seen = 0
        for number, line in enumerate(lines):
            seen += bool(line.strip())
            if seen > max_lines:
                keep = number
                break
    if keep == len(lines) and count(section.text) <= tokens:
        return replace(section, tokens=count(section.text))
    room = tokens - _NOTICE_TOKENS
    low, high = 0, keep
    while low < high:  # the most leading lines that fit
        middle = (low + high + 1) // 2
        if count("\n".join(lines[:middle])) <= room:
            low = middle
        else:
            high = middle - 1
    shown = "\n".join(lines[:low]).rstrip()
    filled = sum(bool(line.strip()) for line in lines[:low])
    total = sum(bool(line.strip()) for line in lines)
    if filled:
        notice = f"[cut here: {filled} of {total} lines are shown; the rest is in {section.name}]"
        note = f"{section.name} is cut in the prompt: {filled} of {total} lines fit."
    else:
        notice = f"[{section.name} is left out: there is no room for its {total} lines]"
        note = f"{section.name} is left out of the prompt: there is no room for it."
    text = f"{shown}\n{notice}" if filled else notice
    return replace(section, text=text, truncated=True, note=note, tokens=count(text))


def project_instructions(root: Path) -> list[tuple[str, Path, str]]:
    """Instruction files other tools keep in a project: AGENTS.md, CLAUDE.md, .continue/rules/*.md, as name, path, text.

    They are data like any other file. Links that lead out of the project, unreadable files and repeats are left out.
    """
    folder = root / ".continue" / "rules"
    try:
        extra = sorted(one for one in folder.iterdir() if one.suffix.lower() in (".md", ".mdc"))
    except OSError:
        extra = []
    found: list[tuple[str, Path, str]] = []
    seen: set[str] = set()
    home = os.path.realpath(root)
    for path in [root / "AGENTS.md", root / "CLAUDE.md", *extra]:
        if not os.path.realpath(path).startswith(home + os.sep):
            continue
        text = _quietly(path)
        if text.strip() and text not in seen:
            seen.add(text)
            name = path.relative_to(root).as_posix()
            # The memory folder has an AGENTS.md too.
            found.append((f"{name} (project root)" if path.parent == root else name, path, text))
    return found


def _quietly(path: Path) -> str:
    try:
        found = read_text(path, max_bytes=_MAX_INSTRUCTION_BYTES)
    except TextFileError:
        return ""
    return found.text.replace("\r\n", "\n") if found else ""


def section_notes(sections: Sequence[PromptSection]) -> list[str]:
    """One sentence for each section that was cut."""
    return [section.note for section in sections if section.truncated]
