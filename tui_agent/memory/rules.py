"""Rules: ``.agent-memory/rules.md`` in full, any other ``rules.md`` of the project, and literal ones of the config."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.ignores import IgnoreFile, ignored
from tui_agent.memory.prompt_files import Count, PromptSection, cut_section, estimate_tokens
from tui_agent.memory.sections import line_diff
from tui_agent.memory.textfile import TextFileError, read_text
from tui_agent.project import MEMORY_DIR

RULES_NAME = "rules.md"
LITERAL_NAME = "rules in config.yaml"

MAX_FILES = 20
MAX_FILE_BYTES = 64 * 1024
MAX_FOLDERS = 5000
MAX_DEPTH = 12
# Never a place for a project's own rules, also where no .gitignore says so.
_SKIPPED = frozenset({".git", ".hg", ".svn", MEMORY_DIR, "node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox",
                      ".mypy_cache", ".ruff_cache", ".pytest_cache", "site-packages"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class RulesEntry:
    """One source of rules. ``kind`` is ``memory`` (the file in .agent-memory), ``file`` or ``config``.

    ``name`` is the path relative to the project, ``text`` what is sent (with a notice at its end when ``truncated``).
    """

    kind: str
    name: str
    path: Path | None
    text: str
    truncated: bool = False
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class RulesSet:
    """All rules in force, in order. ``text`` is what :meth:`render` gives, ``hash`` its first 12 hex characters."""

    entries: tuple[RulesEntry, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All rules as one text."""
        return self.render()

    @property
    def hash(self) -> str:
        """Identity of the rules an answer ran under."""
        return hashlib.sha256(self.render().encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def render(self) -> str:
        """Every source under a heading with its path; the same files always give the same text. Empty for none."""
        return "\n\n".join(f"### {entry.name}\n{entry.text}" for entry in self.entries)

    def sections(self) -> tuple[PromptSection, ...]:
        """The same for the prompt; the file in ``.agent-memory`` and the literal rules are never cut there."""
        return tuple(
            PromptSection(
                entry.name, str(entry.path or entry.name), entry.text, entry.truncated,
                f"{entry.name} is cut in the prompt." if entry.truncated else "", entry.tokens, entry.kind != "file",
            )
            for entry in self.entries
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RulesScan:
    """Where rules are: the ``rules.md`` files, all folders looked at (for the watcher), and what was not looked at."""

    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    problems: tuple[str, ...] = ()


def load_rules(
    root: Path,
    literal: Sequence[str] = (),
    *,
    memory_dir: Path | None = None,
    max_tokens: int = 800,
    count: Count = estimate_tokens,
    scan: RulesScan | None = None,
) -> RulesSet:
    """Read all rules of the project at ``root``. Never raises: what cannot be read becomes a sentence in ``problems``.

    The file in the memory folder is taken whole; each other file up to ``max_tokens``, with a notice. ``literal`` are
    the texts under ``rules:`` in the configuration, never opened as files.
    """
    home = memory_dir or root / MEMORY_DIR
    found = scan or find_rules(root)
    problems = list(found.problems)
    entries = []
    for kind, path in [("memory", home / RULES_NAME), *(("file", path) for path in found.files)]:
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        text = "" if _leads_out(path, root, name, problems) else _read(path, name, problems)
        if not text:
            continue
        section = PromptSection(name, str(path), text)
        if kind == "file":
            section = cut_section(section, max_tokens, count)
            if section.truncated:
                problems.append(f"{section.note} Shorten it, or raise files.rules_max_tokens ({max_tokens}).")
        tokens = section.tokens or count(section.text)
        entries.append(RulesEntry(kind, name, path, section.text, section.truncated, tokens))
    rules = [" ".join(rule.split()) for rule in literal if rule.strip()]
    if rules:
        text = "\n".join(f"- {rule}" for rule in rules)
        entries.append(RulesEntry("config", LITERAL_NAME, None, text, tokens=count(text)))
    return RulesSet(tuple(entries), tuple(problems))


def _leads_out(path: Path, root: Path, name: str, problems: list[str]) -> bool:
    """Whether the file is a link out of the project: a project from elsewhere must not point at private files."""
    out = path.is_symlink() and not os.path.realpath(path).startswith(os.path.realpath(root) + os.sep)
    if out:
        problems.append(f"The rules in {name} are not in force: it is a link that leads out of the project.")
    return out


def _read(path: Path, name: str, problems: list[str]) -> str:
    try:
        file = read_text(path, max_bytes=MAX_FILE_BYTES)
    except TextFileError as error:
        problems.append(f"The rules in {name} are not in force: {error}.")
        return ""
    return file.text.replace("\r\n", "\n").strip("\n").rstrip() if file else ""


def find_rules(root: Path) -> RulesScan:
    """Every ``rules.md`` of the project outside its memory folder, nearest the root first, then by path.

    What ``.gitignore`` files ignore is not looked at; nor are links to folders, and links to files that lead out of the
    project. The search is bounded, and says when it stopped early.
    """
    files: list[Path] = []
    folders: list[Path] = []
    problems: list[str] = []
    for folder, names in _walk(root, folders, problems):
        if RULES_NAME not in names:
            continue
        path = folder / RULES_NAME
        if path.is_file() and not _leads_out(path, root, path.relative_to(root).as_posix(), problems):
            files.append(path)
    files.sort(key=lambda path: (len(path.parts), path.as_posix()))
    if len(files) > MAX_FILES:
        problems.append(
            f"The project has {len(files)} files named {RULES_NAME}; the {MAX_FILES} nearest its root count."
        )
    return RulesScan(tuple(files[:MAX_FILES]), tuple(folders), tuple(problems))


def _walk(root: Path, folders: list[Path], problems: list[str]) -> Iterator[tuple[Path, set[str]]]:
    """Folders that are not ignored, breadth first, each with the names of its files that matter here."""
    level: list[tuple[Path, str, tuple[IgnoreFile, ...]]] = [(root, "", ())]
    for depth in range(MAX_DEPTH + 1):
        deeper: list[tuple[Path, str, tuple[IgnoreFile, ...]]] = []
        for folder, inside, ignores in level:
            if len(folders) >= MAX_FOLDERS:
                problems.append(
                    f"Only the first {MAX_FOLDERS:,} folders of the project were searched for {RULES_NAME}."
                )
                return
            try:
                with os.scandir(folder) as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError:
                continue
            folders.append(folder)
            names = {entry.name for entry in found if entry.name in (RULES_NAME, ".gitignore")}
            if ".gitignore" in names:
                ignores = (*ignores, IgnoreFile.read(folder / ".gitignore", inside))
            if RULES_NAME in names and ignored(inside + RULES_NAME, ignores):
                names.discard(RULES_NAME)
            yield folder, names
            if depth < MAX_DEPTH:
                deeper += [
                    (folder / entry.name, f"{inside}{entry.name}/", ignores)
                    for entry in found
                    if entry.name not in _SKIPPED
                    and _is_folder(entry)
                    and not ignored(f"{inside}{entry.name}/", ignores)
                ]  # fmt: skip
        level = deeper


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def one_line_diff(old: RulesSet | str, new: RulesSet | str, width: int = 160) -> str:
    """The change of the rules as one plain line: ``+ 1 rule: "tests first in payments"  − 1 rule: "use npm"``.

    Headings count only where nothing else changed. Empty when nothing changed.
    """
    before, after = (one.render() if isinstance(one, RulesSet) else one for one in (old, new))
    return line_diff(_without_headings(before), _without_headings(after), "rule", width) or line_diff(
        before, after, "line", width
    )


def _without_headings(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
