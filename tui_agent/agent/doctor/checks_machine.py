"""Checks of files, disks, memory, settings, terminal and Python."""

from __future__ import annotations

import os
from collections.abc import Callable

from tui_agent.agent.doctor.facts import Facts, PathFacts
from tui_agent.agent.doctor.troubles import Finding, found, one_line, well
from tui_agent.agent.models import size_words
from tui_agent.llm.hardware import GB, suggestions

FULL, TIGHT = 20 * 2**20, 300 * 2**20
LEAST_COLUMNS, LEAST_ROWS = 60, 15
_SPARE = 6 * GB // 10  # the window's cache and the runner, for the models people run at home


def paths(facts: Facts) -> list[Finding]:
    """Every path written, with size and mode."""
    lines = []
    for path in facts.paths:
        if path.trouble:
            lines.append(found(f"paths.{path.trouble}", path=path.path, purpose=path.purpose))
        elif path.exists:
            size = "folder" if path.folder else f"{path.size:,} bytes"
            mode = f", mode {path.mode:03o}" if os.name == "posix" else ""
            lines.append(well("paths", f"{path.path} ({size}{mode}): {path.purpose}"))
        else:
            lines.append(well("paths", f"{path.path} (not there yet): {path.purpose}"))
    return lines


def private(facts: Facts) -> list[Finding]:
    """Files that other users of this machine can read."""
    if os.name != "posix":
        return []
    open_ = [path for path in facts.paths if path.private and path.exists and path.mode & 0o077]
    return [_open(path) for path in open_] or [well("private", "Nobody else on this machine can read your memory.")]


def _open(path: PathFacts) -> Finding:
    wanted = "700" if path.folder else "600"
    return found("private.open", path=path.path, mode=f"{path.mode:03o}", wanted=wanted)


def disk(facts: Facts) -> list[Finding]:
    """Room, and disks that forget."""
    lines = []
    for one in facts.disks:
        free = size_words(one.free) or "0 MB"
        if one.free < TIGHT:
            id = "disk.full" if one.free < FULL else "disk.tight"
            lines.append(found(id, free=free, what=one.what, path=one.path))
        elif one.kind in ("tmpfs", "ramfs") and one.what == "the memory folder":
            lines.append(found("disk.forgets", what=one.path, kind=one.kind))
    free = ", ".join(f"{size_words(one.free)} for {one.what}" for one in facts.disks)
    return lines or [well("disk", f"Free: {free}.")]


def memory(facts: Facts) -> list[Finding]:
    """Main memory against the model."""
    has, info = facts.memory, facts.model.info
    if not has.total:
        return []
    words = f"{size_words(has.free)} free of {size_words(has.total)}"
    words += f", graphics {size_words(has.graphics)}" if has.graphics else ""
    if info is None or not info.size or info.remote or not facts.server.local or facts.server.kind:
        return [well("memory", f"{words}.")]
    needs = info.size + _SPARE
    loaded = any(one.name.removesuffix(":latest") == info.name.removesuffix(":latest") for one in facts.server.running)
    if not loaded and needs > max(has.total, has.graphics):
        smaller = suggestions(has)[0].name
        said = {"model": info.name, "needs": size_words(needs), "total": size_words(has.total), "smaller": smaller}
        return [found("memory.small", **said)]
    if not loaded and needs > max(has.free, has.graphics):
        return [found("memory.tight", model=info.name, needs=size_words(needs), free=size_words(has.free))]
    return [well("memory", f"{words}; {info.name} needs about {size_words(needs)}.")]


def settings(facts: Facts) -> list[Finding]:
    """Faults in the settings, each with its file and line."""
    lines = [found(f"settings.{level}", text=text) for level, text in facts.problems]
    return lines or [well("settings", "All settings are understood.")]


def rules(facts: Facts) -> list[Finding]:
    """Rules and other files in the prompt that cannot be read or had to be cut."""
    return [found("rules.problem", text=text) for text in facts.notes] or [
        well("rules", "Rules and memory files are readable.")
    ]


def terminal(facts: Facts) -> list[Finding]:
    """What the terminal can do."""
    look = facts.terminal
    lines = []
    if look.term in ("dumb", "unknown", "") and os.name == "posix":
        lines.append(found("terminal.dumb", terminal=look.term or "not set"))
    elif look.colours < 256 and not look.no_color:
        lines.append(found("terminal.colours", colours=look.colours or "no"))
    if not look.utf8:
        lines.append(found("terminal.letters"))
    if look.here and look.columns > 0 and (look.columns < LEAST_COLUMNS or look.rows < LEAST_ROWS):
        lines.append(found("terminal.small", columns=look.columns, rows=look.rows))
    if lines:
        return lines
    colours = "colours switched off (NO_COLOR)" if look.no_color else f"{look.colours:,} colours"
    inside = f" in {look.multiplexer}" if look.multiplexer else ""
    copies = " and ".join(look.copies) or "a file"
    size = f", {look.columns}x{look.rows}" if look.columns else ""
    newline = ", ".join(look.newline)
    return [
        well("terminal", f"{look.term or 'Windows'}{inside}{size}, {colours}; copies by {copies}; newline: {newline}")
    ]


def python(facts: Facts) -> list[Finding]:
    """The interpreter."""
    if tuple(int(part) for part in facts.python.split(".")[:2]) < (3, 10):
        return [found("python.old", python=facts.python)]
    if not facts.fts5:
        return [found("python.fts", sqlite=facts.sqlite)]
    return [well("python", one_line(f"Python {facts.python}, SQLite {facts.sqlite}"))]


MACHINE_CHECKS: dict[str, Callable[[Facts], list[Finding]]] = {
    "settings": settings,
    "rules": rules,
    "disk": disk,
    "memory": memory,
    "terminal": terminal,
    "python": python,
    "private": private,
    "paths": paths,
}
