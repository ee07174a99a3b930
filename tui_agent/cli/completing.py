"""What the shell completes: models of the server, sessions, ids of memories, themes. Quick, and silent when it fails.

A key press waits for this, so nothing of the program is loaded that is not needed: settings are glanced at, SQLite is
read directly, and the server gets half a second.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

_SERVER_S = 0.5
_MOST = 200
_ID_END = 5


def bash_words(run: Callable[[], Any]) -> Any:
    """Run a completion for bash, which cuts words at colons and replaces only what stands behind the last one."""
    cut = fix_bash_words(os.environ)
    if not cut:
        return run()
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            return run()
    finally:
        print(*(line.removeprefix(cut) for line in out.getvalue().splitlines()), sep="\n")


def fix_bash_words(env: MutableMapping[str, str]) -> str:
    """Put words together that bash cut at a colon (``qwen3``, ``:``, ``4b``), so that model names can be completed.

    Returns what of the last word bash will keep by itself, and must not be offered again.
    """
    words = env.get("COMP_WORDS", "").split("\n" if "\n" in env.get("COMP_WORDS", "") else None)
    try:
        current = int(env.get("COMP_CWORD", ""))
    except ValueError:
        return ""
    joined: list[str] = []
    place = current
    for number, word in enumerate(words):
        after_colon = bool(joined) and joined[-1].endswith(":") and len(joined) > 1
        if word == ":" and joined:
            joined[-1] += ":"
        elif after_colon and number and words[number - 1] == ":":
            joined[-1] += word
        else:
            joined.append(word)
        if number == current:
            place = len(joined) - 1
    if current >= len(words):
        place = len(joined)
    env["COMP_WORDS"], env["COMP_CWORD"] = "\n".join(joined), str(place)
    if place < len(joined) and ":" in joined[place]:
        return joined[place].rpartition(":")[0] + ":"
    return ""


def complete_model(ctx: Any, args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Names of installed models."""
    return _fitting(((name, "") for name in _models(ctx)), incomplete)


def complete_embedder(ctx: Any, args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """The words of the setting, then models."""
    words = (
        ("auto", "nomic-embed-text, else the built-in one"),
        ("builtin", "needs no server"),
        ("none", "words only"),
    )
    return _fitting((*words, *((name, "") for name in _models(ctx))), incomplete)


def complete_session(ctx: Any, args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Ends of session ids, newest first, each with its title."""
    rows = _rows(ctx, "SELECT id, title || ' ' || last_at FROM sessions ORDER BY last_at DESC LIMIT ?")
    return _fitting(((id[-_ID_END:], said) for id, said in rows), incomplete)


def complete_memory(ctx: Any, args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Ends of the ids of live facts, each with its text."""
    rows = _rows(
        ctx, "SELECT m.id, m.fact FROM live_memory l JOIN memory m ON m.id = l.id ORDER BY m.created_at DESC LIMIT ?"
    )
    return _fitting(((id[-_ID_END:], text) for id, text in rows), incomplete)


def complete_theme(ctx: Any, args: list[str], incomplete: str) -> list[tuple[str, str]]:
    """Names of theme files."""
    from tui_agent.project import UserPaths

    package = Path(__file__).resolve().parents[1]
    folders = (package / "themes", package.parent / "themes", UserPaths.find(os.environ).themes_dir)
    names = sorted({path.stem for folder in folders if folder.is_dir() for path in folder.glob("*.y*ml")})
    return _fitting(((name, "") for name in names), incomplete)


def _fitting(values: Any, incomplete: str) -> list[tuple[str, str]]:
    return [(value, " ".join(str(said).split())[:70]) for value, said in values if value.startswith(incomplete)]


def _models(ctx: Any) -> list[str]:
    from tui_agent.llm.errors import ModelError
    from tui_agent.llm.host import parse_host

    names: list[str] = []
    with contextlib.suppress(ModelError, OSError, ValueError, KeyError, TypeError):
        host = parse_host(_host(ctx))
        # Only this machine is asked without a word: even a list of models tells another one that we are here.
        if host.loopback:
            import http.client

            connection = http.client.HTTPConnection(host.hostname, host.port, timeout=_SERVER_S)
            with contextlib.closing(connection):
                connection.request("GET", f"{host.path}/api/tags")
                models = json.loads(connection.getresponse().read(5_000_000))["models"]
            names = [str(model.get("name") or model["model"]) for model in models]
    if not names:
        from tui_agent.llm.ollama_files import local_models, models_folders

        names = [model.name for model in local_models(models_folders(os.environ))]
    return [name for name in names if name.isprintable()][:_MOST]


def _host(ctx: Any) -> str:
    """The server's address as the program would use it; the user's file is glanced at rather than read."""
    from tui_agent.project import UserPaths

    given = _param(ctx, "host") or os.environ.get("TUI_AGENT_HOST") or os.environ.get("OLLAMA_HOST")
    if given:
        return str(given)
    for file in (Path(_param(ctx, "project") or ".") / ".agent-memory/config.yaml", UserPaths.find().config_path):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found = re.search(r"^host:\s*[\"']?([^\s\"'#]+)", file.read_text("utf-8"), re.MULTILINE)
            if found:
                return found.group(1)
    return ""


def _param(ctx: Any, name: str) -> Any:
    params = getattr(ctx, "params", {})
    return params.get("directory") or params.get(name) if name == "project" else params.get(name)


def _rows(ctx: Any, query: str) -> Iterator[tuple[str, str]]:
    path = Path(_param(ctx, "project") or ".").absolute() / ".agent-memory" / "memory.db"
    still = "" if path.with_name("memory.db-wal").exists() else "&immutable=1"
    with (
        contextlib.suppress(sqlite3.Error, OSError),
        contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro{still}", uri=True, timeout=0.2)) as connection,
    ):
        yield from connection.execute(query, (_MOST,)).fetchall()
