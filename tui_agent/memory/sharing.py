"""Private or shared with the team: what git may take of the memory folder, and a look at it before it does.

Sharing is a few lines in ``.agent-memory/.gitignore`` between two marks; everything else in that file is the user's.
Notes about the user are never among them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tui_agent.memory.personal import personal_data
from tui_agent.memory.places import USER
from tui_agent.memory.secrets import redact
from tui_agent.memory.textfile import TextFile, TextFileError, read_text, write_text
from tui_agent.memory.traces import files_below
from tui_agent.memory.types import Scope
from tui_agent.memory.upkeep import Memory
from tui_agent.project import GITIGNORE, Project

_BEGIN = "# shared with the team: `tui-agent memory share off` takes these lines away"
_END = "# end of shared"
SHARED_BLOCK = f"""\
{_BEGIN}
!AGENTS.md
!facts.json
!knowledge/
!knowledge/tech-stack.md
!knowledge/projects/
!knowledge/projects/**
knowledge/user.md
{_END}
"""
# Samples of what is never shared, whatever stands in the file.
_NEVER = ("knowledge/user.md", "memory.db", "memory.db-wal", "backups/x/memory.db", "logs/app.log", "config.yaml")
_SECRET = "secret"


@dataclass(frozen=True, slots=True)
class Concern:
    """Something in a file that would be shared. ``excerpt`` has the secret or the personal part covered."""

    file: str
    line: int
    kind: str
    excerpt: str

    @property
    def secret(self) -> bool:
        """Whether it is a secret, which nobody shares on purpose."""
        return self.kind == _SECRET


@dataclass(frozen=True, slots=True)
class SharingState:
    """What is in force. ``mode`` is ``private``, ``shared`` or ``custom`` (a ``.gitignore`` edited by hand that lets
    through something else); ``files`` can be committed now, ``committed`` are in git already; ``notes`` are sentences.
    """

    mode: Literal["private", "shared", "custom"]
    git: bool
    files: tuple[str, ...] = ()
    committed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class SharingRefused(Exception):
    """Nothing was changed; ``str(error)`` says why and what to do."""


@dataclass(slots=True)
class Scan:
    """What a look at the files found, secrets first."""

    files: list[str] = field(default_factory=list)
    concerns: list[Concern] = field(default_factory=list)

    @property
    def secrets(self) -> list[Concern]:
        """The secrets among the concerns."""
        return [concern for concern in self.concerns if concern.secret]


def sharing_state(project: Project) -> SharingState:
    """What git may take of the memory folder now, and what it has already."""
    text = _text(project)
    listed = _files_taken(text, project)
    top = _git(project, "rev-parse", "--show-toplevel")
    committed = tuple(
        sorted(line.partition(".agent-memory/")[2] for line in _lines(_git(project, "ls-files", "--", ".agent-memory")))
    )
    notes = []
    if top is None:
        notes.append("The project is not in git; the setting counts from the moment it is.")
    elif _ignored_from_above(project):
        notes.append("A .gitignore above .agent-memory leaves the whole folder out, so nothing in it can be committed.")
        listed = []
    if "knowledge/user.md" in committed or "knowledge/user.md" in listed:
        notes.append(
            "knowledge/user.md, your own notes, can reach git: remove it with `git rm --cached` and ignore it."
        )
    private = set(_files_taken(GITIGNORE, project))
    shared = set(_files_taken(GITIGNORE + SHARED_BLOCK, project))
    mode: Literal["private", "shared", "custom"] = "custom"
    if _BEGIN in text and set(listed) <= shared:
        mode = "shared"
    elif set(listed) <= private and _BEGIN not in text:
        mode = "private"
    return SharingState(mode, top is not None, tuple(listed), committed, tuple(notes))


def scan(memory: Memory) -> Scan:
    """Looks for secrets and personal data in everything that would be shared, line by line, and in the facts."""
    project = memory.project
    result = Scan(_files_taken(GITIGNORE + SHARED_BLOCK, project))
    if "facts.json" not in result.files and memory.facts.live(Scope.PROJECT, include_user=False):
        result.files.append("facts.json")
    for name in result.files:
        if name == "facts.json":
            result.concerns += _facts_concerns(memory)
            continue
        try:
            found = read_text(project.memory_dir / name)
        except TextFileError as error:
            raise SharingRefused(f"{name} cannot be looked at: {error}. Nothing was changed.") from error
        if found is not None:
            result.concerns += _concerns(name, found.text)
    result.concerns.sort(key=lambda concern: (not concern.secret, concern.file, concern.line))
    return result


def _concerns(name: str, text: str) -> Iterator[Concern]:
    whole = redact(text)
    secret_lines = {text.count("\n", 0, finding.start) + 1 for finding in whole.findings}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            section = line.strip("# ").strip()
        if number in secret_lines:
            yield Concern(name, number, _SECRET, redact(line).text.strip()[:120])
            continue
        if name.startswith("skills/") and line.startswith("name:"):
            continue  # the name of the skill
        for one in personal_data(line)[:1]:
            yield Concern(name, number, one.kind, _covered(line, one.start, one.end))
        if name == "AGENTS.md" and section == "User Preferences" and line.strip() and not line.startswith("#"):
            yield Concern(name, number, "preference of yours", line.strip()[:120])


def _facts_concerns(memory: Memory) -> Iterator[Concern]:
    facts = memory.facts.live(Scope.PROJECT, include_user=False)
    # Notes about the user are not in the file.
    for number, fact in enumerate((fact for fact in facts if fact.target != USER), start=1):
        text = fact.fact
        if redact(text).findings:
            yield Concern("facts.json", number, _SECRET, redact(text).text[:120])
        elif found := personal_data(text):
            yield Concern("facts.json", number, found[0].kind, _covered(text, found[0].start, found[0].end))


def _covered(line: str, start: int, end: int) -> str:
    shown = line[start:end]
    cover = shown[:2] + "…" if len(shown) > 4 else "…"
    return f"{line[:start].lstrip()[-40:]}{cover}{line[end:].rstrip()[:40]}"


def share(project: Project) -> SharingState:
    """Lets git take what a team shares. Scan first: this does not look again.

    Raises:
        SharingRefused: ``.gitignore`` cannot be written.
    """
    found, text = _read(project)
    if _BEGIN not in text:
        base = text if _keeps_private(text) else GITIGNORE
        _write(project, f"{_ended(base)}{SHARED_BLOCK}", found)
    return sharing_state(project)


def unshare(project: Project) -> SharingState:
    """Makes the folder private again. What is committed stays in git; the state names it.

    Raises:
        SharingRefused: ``.gitignore`` cannot be written.
    """
    found, text = _read(project)
    if found is None:
        _write(project, GITIGNORE, None)
    elif _BEGIN in text:
        _write(project, _without_block(text), found)
    state = sharing_state(project)
    if state.mode == "custom":
        note = (
            ".agent-memory/.gitignore was edited by hand, so it was left as it is, and git can still take what is "
            "listed. Delete that file and do this again to have the private one."
        )
        state = replace(state, notes=(*state.notes, note))
    ours = [
        name for name in state.committed if name not in (".gitignore", "rules.md") and not name.startswith("skills/")
    ]
    if ours:
        note = (
            f"Git has {', '.join(ours[:5])} already: `git rm --cached` stops it from following them, and its history "
            "keeps what was committed."
        )
        state = replace(state, notes=(*state.notes, note))
    return state


# --- .gitignore -----------------------------------------------------------------------------------


def _path(project: Project) -> Path:
    return project.memory_dir / ".gitignore"


def _read(project: Project) -> tuple[TextFile | None, str]:
    try:
        found = read_text(_path(project))
    except TextFileError as error:
        raise SharingRefused(f"{_path(project)}: {error}. Nothing was changed.") from error
    return found, found.text.replace("\r\n", "\n") if found is not None else ""


def _text(project: Project) -> str:
    return _read(project)[1]


def _write(project: Project, text: str, before: TextFile | None) -> None:
    newline = before.newline if before is not None else "\n"
    try:
        write_text(_path(project), text.replace("\n", newline), before)
    except TextFileError as error:
        raise SharingRefused(f"{_path(project)}: {error}.") from error


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"


def _without_block(text: str) -> str:
    before, _, rest = text.partition(_BEGIN)
    _, found, after = rest.partition(_END)
    return before + after.lstrip("\n") if found else before


def _keeps_private(text: str) -> bool:
    """Whether a ``.gitignore`` leaves out what is never shared; one that does not is no ground to build on."""
    return not _not_ignored(text, _NEVER)


def _files_taken(text: str, project: Project) -> list[str]:
    """Names of the files in the memory folder that git would take under this ``.gitignore``."""
    root = project.memory_dir
    skip = [project.backups_dir, project.vector_dir, project.logs_dir]
    return sorted(_not_ignored(text, [path.relative_to(root).as_posix() for path in files_below([root], skip)]))


def _not_ignored(text: str, names: Iterable[str]) -> list[str]:
    """The names that git would not ignore under this ``.gitignore``, asked of git itself in an empty folder.

    Libraries of its patterns treat a folder that is let through as its content, which git does not: here that would be
    the user's own notes. Without git the lines of this program are known, and any others count as letting all through.
    """
    wanted = list(names)
    with tempfile.TemporaryDirectory(prefix="tui-agent-") as folder:
        Path(folder, ".gitignore").write_text(text, encoding="utf-8")
        ignored = None
        if _run_git(["init", "-q", folder]) is not None:
            ignored = _run_git(
                ["-C", folder, "-c", f"core.excludesFile={os.devnull}", "check-ignore", "--no-index", "-z", "--stdin"],
                "\0".join(wanted), ok=(0, 1),
            )  # fmt: skip
    if ignored is not None:
        left_out = set(ignored.split("\0"))
        return [name for name in wanted if name not in left_out]
    ours: tuple[str, ...] = (".gitignore", "rules.md", "skills/")
    if text == GITIGNORE + SHARED_BLOCK:
        ours = (*ours, "AGENTS.md", "facts.json", "knowledge/tech-stack.md", "knowledge/projects/")
    elif text != GITIGNORE:
        return wanted
    return [name for name in wanted if name.startswith(ours)]


# --- git ------------------------------------------------------------------------------------------


def _git(project: Project, *arguments: str) -> str | None:
    """What git says about the project, or ``None`` when it is not there, fails, or the project is in no repository."""
    return _run_git(["-C", str(project.root), *arguments])


def _run_git(arguments: list[str], given: str = "", ok: tuple[int, ...] = (0,)) -> str | None:
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *arguments], input=given.encode("utf-8", "surrogateescape"), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=env, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode in ok else None


def _lines(text: str | None) -> list[str]:
    return [line for line in (text or "").splitlines() if line.strip()]


def _ignored_from_above(project: Project) -> bool:
    """Whether a ``.gitignore`` of the project, or git's own settings, leave out the whole folder."""
    return _git(project, "check-ignore", "-q", "--no-index", ".agent-memory") is not None
