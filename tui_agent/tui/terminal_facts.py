"""What a terminal can do, judged from its variables: for the doctor. Imports no part of the terminal interface."""

from __future__ import annotations

import locale
import os
import shutil
import sys
from collections.abc import Callable, Mapping

from tui_agent.agent.doctor.facts import TerminalFacts
from tui_agent.tui.clipboard import native_tool

# Terminals that tell shift+enter from enter, by the variable they set.
_TELLS_SHIFT = ("kitty", "ghostty", "WezTerm", "iTerm.app", "foot", "alacritty", "rio", "contour")


def terminal_facts(
    env: Mapping[str, str] | None = None,
    *,
    here: bool | None = None,
    which: Callable[[str], str | None] = shutil.which,
) -> TerminalFacts:
    """Colours, ways to the clipboard, newline keys and size. ``here`` is whether the output is this terminal."""
    env = os.environ if env is None else env
    if here is None:
        here = bool(sys.stdout and sys.stdout.isatty())
    term = env.get("TERM", "")
    size = shutil.get_terminal_size((0, 0)) if here else os.terminal_size((0, 0))
    tool = native_tool(env, which)
    copies = (*tool[:1], *(("the terminal (OSC 52)",) if _osc52(term) else ()))
    program = f"{env.get('TERM_PROGRAM', '')} {term}"
    tells = any(name.casefold() in program.casefold() for name in _TELLS_SHIFT) or "KITTY_WINDOW_ID" in env
    newline = ("ctrl+j", "alt+enter", *(("shift+enter",) if tells and not env.get("TMUX") else ()))
    multiplexer = "tmux" if env.get("TMUX") else "screen" if term.startswith("screen") else ""
    return TerminalFacts(
        here=here,
        term=term,
        colours=_colours(env, term),
        no_color=bool(env.get("NO_COLOR")),
        copies=copies,
        newline=newline,
        columns=size.columns,
        rows=size.lines,
        multiplexer=multiplexer,
        utf8=_utf8(env),
    )


def _colours(env: Mapping[str, str], term: str) -> int:
    if term in ("dumb", "unknown"):
        return 0
    if env.get("COLORTERM", "").lower() in ("truecolor", "24bit") or env.get("WT_SESSION") or term.endswith("-direct"):
        return 2**24
    if "256color" in term or any(name in term for name in ("kitty", "ghostty", "alacritty", "foot", "wezterm")):
        return 256
    if sys.platform == "win32":
        return 2**24
    return 16 if term else 0


def _osc52(term: str) -> bool:
    return term not in ("", "dumb", "unknown", "linux")


def _utf8(env: Mapping[str, str]) -> bool:
    named = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG") or ""
    if sys.platform in ("win32", "darwin"):
        return True
    if named and named not in ("C", "POSIX"):
        return "utf" in named.casefold()
    # Python takes the plain C locale for UTF-8, and so do the terminals it runs in.
    return "utf" in locale.getpreferredencoding(False).casefold()
