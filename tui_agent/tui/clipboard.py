"""Copying, and saying what really happened: the terminal's own way (OSC 52) and the system's tools."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tui_agent.copies import keep_copy

OSC52_LIMIT = 74_994  # bytes before base64: terminals such as xterm drop a sequence over 100,000
_TOOLS = (
    ("pbcopy",),
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("xsel", "--clipboard", "--input"),
    ("clip.exe",),
)


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did: ``ways`` that took it, or the ``file`` it was written to when none could; ``masked`` when it
    had to be written without a secret, and ``trouble`` when not even that was possible."""

    ways: tuple[str, ...]
    file: str = ""
    masked: bool = False
    trouble: str = ""


def osc52(text: str, environment: Mapping[str, str]) -> str:
    """The sequence that hands ``text`` to the terminal's clipboard, wrapped for tmux and screen; empty if too long."""
    data = text.encode("utf-8", "replace")
    if len(data) > OSC52_LIMIT:
        return ""
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    if environment.get("TMUX"):
        return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    if environment.get("TERM", "").startswith("screen"):
        return "\x1bP" + sequence + "\x1b\\"
    return sequence


def native_tool(environment: Mapping[str, str], which: Callable[[str], str | None] = shutil.which) -> tuple[str, ...]:
    """The command of this system that takes the clipboard on its standard input; empty when there is none."""
    for command in _TOOLS:
        if command[0] == "wl-copy" and not environment.get("WAYLAND_DISPLAY"):
            continue
        if command[0] in ("xclip", "xsel") and not environment.get("DISPLAY"):
            continue
        if which(command[0]):
            return command
    return ()


async def copy(
    text: str,
    write: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Copied:
    """Copy by every way there is. ``write`` sends a sequence to the terminal. What none takes goes to a file in
    ``folder``, by default one of the app's own. Never raises for a missing tool."""
    environment = os.environ if environment is None else environment
    ways: list[str] = []
    command = native_tool(environment)
    if command and await _feed(command, text):
        ways.append(command[0])
    if sequence := osc52(text, environment):
        write(sequence)
        ways.append("terminal")
    if ways:
        return Copied(tuple(ways))
    return await asyncio.to_thread(_to_file, text, folder)


async def _feed(command: tuple[str, ...], text: str) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await asyncio.wait_for(process.communicate(text.encode("utf-8", "replace")), timeout=2)
    except (OSError, asyncio.TimeoutError):
        return False
    return process.returncode == 0


def _to_file(text: str, folder: Path | None) -> Copied:
    kept = keep_copy(text, folder)
    return Copied((), kept.file, kept.masked, kept.trouble)


def sentence(copied: Copied, what: str) -> str:
    """What to tell the user."""
    if copied.trouble:
        return f"The clipboard cannot take {what}, and {copied.trouble}."
    if copied.file:
        masked = " without what looks like a password, key or token" if copied.masked else ""
        return f"The clipboard cannot take {what}; until you close the app it is in {copied.file}{masked}."
    if copied.ways == ("terminal",):
        return f"Copied {what} through the terminal. If nothing arrives, your terminal does not allow it."
    return f"Copied {what} with {copied.ways[0]}."
