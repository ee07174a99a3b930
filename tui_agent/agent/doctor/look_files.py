"""The doctor's look at every path the program writes, and at the disks they are on."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from tui_agent.agent.doctor.facts import DiskFacts, PathFacts
from tui_agent.memory.checks import file_system
from tui_agent.project import OwnedPath, Project, UserPaths


def look_at_paths(project: Project, paths: UserPaths) -> tuple[PathFacts, ...]:
    """Each path with what is there."""
    secret = {
        project.db_path,
        project.db_path.with_name("memory.db-wal"),
        project.facts_json_path,
        project.backups_dir,
        project.logs_dir,
        paths.logs_dir,
        paths.slots_dir,
        paths.user_notes_path,
        paths.allowed_hosts_path,
    }
    folders = {project.memory_dir, paths.config, paths.data, paths.state, paths.cache}
    bases = (project.memory_dir, paths.config, paths.data, paths.state, paths.cache)
    return tuple(
        _look(one, one.path in folders, one.path in secret, bases)
        for one in (*project.owned_paths(), *paths.owned_paths())
    )


def _look(one: OwnedPath, must_be_folder: bool, secret: bool, bases: tuple[Path, ...]) -> PathFacts:
    path = one.path
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        trouble = ""
        if must_be_folder:
            above = _nearest(path)
            trouble = "" if os.access(above, os.W_OK | os.X_OK) else "write"
        return PathFacts(path, one.purpose, one.scope, trouble=trouble)
    except OSError:
        return PathFacts(path, one.purpose, one.scope, trouble="read")
    folder = stat.S_ISDIR(found.st_mode)
    trouble = ""
    if stat.S_ISLNK(found.st_mode) and one.scope == "project":
        trouble = "link"
    elif must_be_folder and not path.is_dir():
        trouble = "kind"
    elif not os.access(path, os.R_OK | (os.X_OK if folder else 0)):
        trouble = "read"
    elif not os.access(path, os.W_OK):
        trouble = "write"
    mode = stat.S_IMODE(found.st_mode)
    return PathFacts(
        path,
        one.purpose,
        one.scope,
        exists=True,
        folder=folder,
        size=0 if folder else found.st_size,
        mode=mode,
        trouble=trouble,
        private=secret and bool(mode & 0o004) and _reachable(path, bases),
    )


def _reachable(path: Path, bases: tuple[Path, ...]) -> bool:
    """Whether other users get through our own folders to it."""
    for base in bases:
        if path.is_relative_to(base):
            between = [base, *(base.joinpath(*path.relative_to(base).parts[:n]) for n in range(1, 9))]
            steps = [one for one in dict.fromkeys(between) if one != path and path.is_relative_to(one)]
            return all(_mode(one) & 0o001 for one in steps)
    return True


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def look_at_disks(project: Project, paths: UserPaths) -> tuple[DiskFacts, ...]:
    """Room where memory lies, and where models are unpacked."""
    found = []
    for what, path in (("the memory folder", project.memory_dir), ("your caches", paths.cache)):
        above = _nearest(path)
        try:
            free = shutil.disk_usage(above).free
        except OSError:
            continue
        found.append(DiskFacts(what, above, free, file_system(above)))
    return tuple(found)


def _nearest(path: Path) -> Path:
    """The path, or the closest folder above it that is there."""
    return next((one for one in (path, *path.parents) if one.is_dir()), Path(path.anchor or "/"))
