"""The project: its root, its stable id, and every path the program writes, in one place."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

APP_NAME = "tui-agent"
MEMORY_DIR = ".agent-memory"
_SET_ASIDE = "vector-store.unreadable-*"
HOME_VARIABLE = "TUI_AGENT_HOME"

# Set by git for hooks and aliases; with them git would answer for another repository than the one at -C.
_GIT_LOCATION = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_NAMESPACE")
_GIT_TIMEOUT_S = 10.0

GITIGNORE = """\
# Private by default: of this folder only this file, rules.md and skills/ can be committed.
# `tui-agent memory share on` adds more, after a scan for secrets.
*
!.gitignore
!rules.md
!skills/
!skills/**
"""

AGENTS_MD = """\
# AGENTS.md

## Identity

You are the assistant of this project.

## Critical Behaviors

- Answer in the language the user writes in.

## User Preferences

## Learned Behaviors
"""


class ProjectError(Exception):
    """The folder cannot be used as a project; ``str(error)`` says why and what to do."""


def project_id(repo_path: str | os.PathLike[str] = ".") -> str:
    """A stable id for the project at ``repo_path``: 12 lower-case hex characters.

    The first 12 characters of the SHA-1 of ``git -C repo_path remote get-url origin`` (stripped), or of the absolute
    path where git reports no remote, is missing, or fails in any other way. Never raises. The remote may carry
    credentials: nothing but its hash leaves this function.
    """
    path = os.fspath(repo_path)
    name = _remote(path)
    if not name:
        try:
            name = os.path.abspath(path)  # noqa: PTH100 - the id is defined by abspath, which follows no links
        except (OSError, ValueError):  # the working directory was deleted
            name = path
    return hashlib.sha1(name.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()[:12]


def _remote(path: str) -> str:
    """The URL of the remote ``origin``, or an empty string."""
    env = {key: value for key, value in os.environ.items() if key not in _GIT_LOCATION}
    try:
        done = subprocess.run(
            ["git", "-C", path, "remote", "get-url", "origin"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=env, timeout=_GIT_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.SubprocessError):  # no git, NUL in the path, git hangs
        return ""
    if done.returncode != 0:
        return ""
    return done.stdout.decode("utf-8", "surrogateescape").strip()


@dataclass(frozen=True, slots=True)
class OwnedPath:
    """One path the program writes, and what for. ``scope`` is ``project`` or ``user``."""

    path: Path
    purpose: str
    scope: str


@dataclass(frozen=True, slots=True)
class UserPaths:
    """The user's own folders, outside every project: configuration, data, state and cache."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @classmethod
    def find(cls, env: Mapping[str, str] | None = None) -> UserPaths:
        """The platform's folders, or all four below ``$TUI_AGENT_HOME`` where that is set. Creates nothing."""
        home = (os.environ if env is None else env).get(HOME_VARIABLE, "").strip()
        if home:
            base = Path(os.path.abspath(os.path.expanduser(home)))  # noqa: PTH100, PTH111 - "~" of an unknown user stays
            return cls(base / "config", base / "data", base / "state", base / "cache")
        dirs = platformdirs.PlatformDirs(APP_NAME, appauthor=False)
        return cls(
            Path(dirs.user_config_dir), Path(dirs.user_data_dir), Path(dirs.user_state_dir), Path(dirs.user_cache_dir)
        )

    @property
    def config_path(self) -> Path:
        """The user's ``config.yaml``, read before the project's."""
        return self.config / "config.yaml"

    @property
    def user_notes_path(self) -> Path:
        """The user-wide twin of ``knowledge/user.md``; written only when the user promotes a fact."""
        return self.config / "knowledge" / "user.md"

    @property
    def skills_dir(self) -> Path:
        """Skills of the user, for all projects."""
        return self.config / "skills"

    @property
    def themes_dir(self) -> Path:
        """Themes the user added."""
        return self.config / "themes"

    @property
    def sample_dir(self) -> Path:
        """The working copy of the sample project, so that a checkout stays clean."""
        return self.data / "sample_project"

    @property
    def logs_dir(self) -> Path:
        """Logs of runs that belong to no project."""
        return self.state / "logs"

    @property
    def copies_dir(self) -> Path:
        """Texts that were too long for the terminal's clipboard; gone when the window that wrote them is closed."""
        return self.state / "copies"

    @property
    def servers_dir(self) -> Path:
        """Which windows use a server of this machine, so that the last one stops what the app started."""
        return self.state / "servers"

    @property
    def model_notes_path(self) -> Path:
        """What was found out about models, by digest: how they call tools."""
        return self.state / "models.json"

    @property
    def allowed_hosts_path(self) -> Path:
        """Other machines that the user allowed to get what is written."""
        return self.state / "allowed-hosts"

    @property
    def models_dir(self) -> Path:
        """The model of the embedded engine, assembled once."""
        return self.cache / "models"

    @property
    def slots_dir(self) -> Path:
        """The embedded engine's stored state of the fixed part of the prompt."""
        return self.cache / "slots"

    def ensure(self) -> UserPaths:
        """Create the four folders, readable by the user alone. Raises :class:`ProjectError` when that fails."""
        for folder in (self.config, self.data, self.state, self.cache):
            try:
                _make_private(folder)
            except OSError as error:
                raise ProjectError(
                    f"Cannot create {folder}: {_reason(error)}. Set {HOME_VARIABLE} to a folder you can write to."
                ) from error
        return self

    def owned_paths(self) -> tuple[OwnedPath, ...]:
        """Every path below the user's folders that the program may write."""
        return tuple(
            OwnedPath(path, purpose, "user")
            for path, purpose in (
                (self.config, "your settings; the program creates the folder and reads config.yaml from it"),
                (self.user_notes_path, "facts about you that you promoted to all projects"),
                (self.data, "program data that belongs to you"),
                (self.sample_dir, "your working copy of the sample project"),
                (self.state, "what the program remembers of itself between runs"),
                (self.logs_dir, "logs outside of projects"),
                (self.copies_dir, "texts too long for the clipboard; removed when the chat is closed"),
                (self.allowed_hosts_path, "other machines that you allowed to get what you write"),
                (self.model_notes_path, "what was found out about models: how they call tools"),
                (self.servers_dir, "which windows use a model server of this machine"),
                (self.cache, "what can be made again"),
                (self.models_dir, "the embedded engine's model"),
                (self.slots_dir, "the embedded engine's stored state of the fixed part of the prompt"),
            )
        )


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with its memory. ``root`` is absolute and free of links, ``id`` is :func:`project_id` of it."""

    root: Path
    id: str
    name: str

    @classmethod
    def open(cls, path: str | os.PathLike[str] = ".") -> Project:
        """The project at exactly this folder; nothing is searched upwards and nothing is created.

        Links are resolved first, so that a project has one id whichever way it is reached.
        Raises :class:`ProjectError` when the path is not a folder that can be listed.
        """
        given = os.fspath(path)
        try:
            folder = Path(given)
            if given.startswith("~") and not folder.exists():
                folder = folder.expanduser()
            root = folder.resolve(strict=True)
            if not root.is_dir():
                raise ProjectError(f"{given} is a file, not a folder. Name the project's folder instead.")
            if not os.access(root, os.R_OK | os.X_OK):
                raise ProjectError(f"The folder {given} cannot be read. Check its permissions.")
        except FileNotFoundError as error:
            raise ProjectError(f"There is no folder {given}. Create it, or name another one.") from error
        except (OSError, ValueError, RuntimeError) as error:
            raise ProjectError(f"The folder {given!r} cannot be opened: {_reason(error)}.") from error
        return cls(root, project_id(root), root.name or str(root))

    @property
    def memory_dir(self) -> Path:
        """``.agent-memory``, home of everything below."""
        return self.root / MEMORY_DIR

    @property
    def rules_path(self) -> Path:
        """Rules of the project, always in the prompt."""
        return self.memory_dir / "rules.md"

    @property
    def agents_path(self) -> Path:
        """Identity, preferences and learned behaviours."""
        return self.memory_dir / "AGENTS.md"

    @property
    def config_path(self) -> Path:
        """Settings of this project."""
        return self.memory_dir / "config.yaml"

    @property
    def knowledge_dir(self) -> Path:
        """What was learned about user, stack and projects."""
        return self.memory_dir / "knowledge"

    @property
    def user_notes_path(self) -> Path:
        """What is known of the user, in this project."""
        return self.knowledge_dir / "user.md"

    @property
    def skills_dir(self) -> Path:
        """Skills of this project."""
        return self.memory_dir / "skills"

    @property
    def summaries_dir(self) -> Path:
        """Summaries of past conversations."""
        return self.memory_dir / "conversations" / "summaries"

    @property
    def facts_json_path(self) -> Path:
        """The live facts as plain JSON."""
        return self.memory_dir / "facts.json"

    @property
    def seed_path(self) -> Path:
        """Rows imported once on the first run (the sample project has one)."""
        return self.memory_dir / "seed.jsonl"

    @property
    def db_path(self) -> Path:
        """The SQLite file: facts, history, working memory, vectors."""
        return self.memory_dir / "memory.db"

    @property
    def vector_dir(self) -> Path:
        """Chroma's folder, a projection of the database."""
        return self.memory_dir / "vector-store"

    @property
    def backups_dir(self) -> Path:
        """Backups of the database, and earlier versions of memory files below ``files``."""
        return self.memory_dir / "backups"

    @property
    def logs_dir(self) -> Path:
        """Logs of this project."""
        return self.memory_dir / "logs"

    @property
    def lock_path(self) -> Path:
        """Held by the process that owns the vector store."""
        return self.memory_dir / "vector-store.lock"

    @property
    def pending_dir(self) -> Path:
        """What is being written to memory files at this moment, so that a killed write can be taken back."""
        return self.memory_dir / "pending"

    def _beside(self, pattern: str) -> list[Path]:
        return sorted(self.memory_dir.glob(pattern)) if self.memory_dir.is_dir() else []

    def ensure(self) -> Project:
        """Create the memory folder's layout, a private ``.gitignore`` and a starter ``AGENTS.md``, each when absent.

        An existing file is never touched. Raises :class:`ProjectError` when the folder cannot be made, or is a link:
        a project that came from elsewhere must not point the program's writes at another place.
        """
        if self.memory_dir.is_symlink():
            raise ProjectError(
                f"{self.memory_dir} is a link, and the program writes only inside the project. "
                "Replace the link by a real folder."
            )
        try:
            _make_private(self.memory_dir)
            for folder in (self.knowledge_dir / "projects", self.skills_dir, self.summaries_dir, self.logs_dir):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for path, text in ((self.memory_dir / ".gitignore", GITIGNORE), (self.agents_path, AGENTS_MD)):
                with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8", newline="\n") as file:
                    file.write(text)
        except OSError as error:
            where = error.filename or self.memory_dir
            raise ProjectError(
                f"Cannot write the memory folder ({where}: {_reason(error)}). "
                "Check the folder's permissions and the free space of the disk."
            ) from error
        return self

    def owned_paths(self) -> tuple[OwnedPath, ...]:
        """Every path inside the project that the program may write, with its purpose."""
        return tuple(
            OwnedPath(path, purpose, "project")
            for path, purpose in (
                (self.memory_dir, "the memory of this project"),
                (self.memory_dir / ".gitignore", "keeps the memory out of git unless you share it"),
                (self.agents_path, "identity, your preferences and learned behaviours"),
                (self.knowledge_dir, "what was learned about you, the stack and the projects"),
                (self.summaries_dir, "summaries of past conversations"),
                (self.facts_json_path, "the live facts as plain JSON"),
                (self.db_path, "facts, history, working memory and vectors (SQLite)"),
                (self.db_path.with_name("memory.db-wal"), "SQLite's write-ahead log"),
                (self.db_path.with_name("memory.db-shm"), "SQLite's shared index of that log"),
                (self.vector_dir, "Chroma's index of the facts; can be rebuilt"),
                (self.lock_path, "says which process owns the vector index"),
                *((path, "a vector store that another program wrote, kept") for path in self._beside(_SET_ASIDE)),
                *((path, "a copy of a vector store that is being imported") for path in self._beside(".import-*")),
                (self.pending_dir, "lines that are being written to memory files; empty when none are"),
                (self.backups_dir, "backups, and earlier versions of memory files"),
                (self.logs_dir, "logs of this project"),
            )
        )


def _make_private(folder: Path) -> None:
    """Create ``folder`` (and parents), for the user alone where it is new; an existing folder keeps its mode."""
    with contextlib.suppress(FileExistsError):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(mode=0o700)
        return
    if not folder.is_dir():
        raise NotADirectoryError(20, "a file of that name is in the way", str(folder))


def _reason(error: BaseException) -> str:
    """The operating system's words, without the number and the path."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
