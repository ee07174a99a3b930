"""The layers of the settings: one file, the environment, the flags. Each keeps only what is valid."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_origin

from tui_agent.project import HOME_VARIABLE
from tui_agent.settings_fields import (
    FIELDS,
    LISTS,
    LOCAL_ONLY,
    SECTIONS,
    USER_ONLY,
    Settings,
    allowed,
    check,
    is_this_machine,
    kinds_of,
    nullable,
)
from tui_agent.settings_yaml import MAPPING, Entry, read_config

PREFIX = "TUI_AGENT_"
_MAPPINGS = frozenset({*SECTIONS, "keymap"})
_PATH_LIKE = re.compile(
    r"(\.{0,2}[/\\]|~[/\\]|[A-Za-z]:\\)\S*|\S+\.(md|mdc|txt|ya?ml|toml|json|rst)|[\w.-]+([/\\][\w.-]+)+", re.IGNORECASE
)


class SettingsError(Exception):
    """A flag is wrong; ``str(error)`` names it and what is allowed."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The valid values of one layer, by dotted key, each with the place it came from."""

    name: str
    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A fault before it is known which value stays in force."""

    level: Literal["warning", "error"]
    where: str
    what: str
    file: str = ""
    line: int | None = None
    key: str = ""
    kept: bool = False


def file_layer(path: Path, root: Path, of_project: bool, before: Layer | None, troubles: list[Trouble]) -> Layer:
    """One ``config.yaml``; ``before`` is what it said when it was last read, kept where it is wrong now.

    A relative ``gguf`` is taken from ``root``. Faults are added to ``troubles``.
    """
    found = read_config(path, _MAPPINGS)
    values: dict[str, Any] = {}
    places: dict[str, str] = {}

    def complain(what: str, line: int | None, key: str = "", *, warning: bool = False) -> None:
        where = f"{path}, line {line}" if line else str(path)
        level: Literal["warning", "error"] = "warning" if warning else "error"
        troubles.append(Trouble(level, where, what, str(path), line, key, kept=before is not None))
        if before and not warning and key in before.values and key not in values:
            values[key], places[key] = before.values[key], before.places[key]

    def warn_of_rules(what: str, line: int) -> None:
        complain(what, line, "rules", warning=True)

    for fault in found.faults:
        complain(fault.text, fault.line, fault.key, warning=fault.warning)
    if found.broken:
        return before if before else Layer(path.name, path)
    for entry in found.entries:
        key = entry.key
        reason = _reject(entry, of_project)
        if reason:
            complain(reason, entry.line, key)
            continue
        try:
            value = _from_yaml(entry, warn_of_rules)
        except ValueError:
            complain(f"must be {allowed(key)}, not {quote(entry.value)}", entry.line, key)
            continue
        if key == "gguf" and value:
            value = os.path.join(root, os.path.expanduser(value))  # noqa: PTH111, PTH118 - an unknown "~user" stays
        values[key], places[key] = value, f"{path}:{entry.line}"
    return Layer(path.name, path, values, places)


def _reject(entry: Entry, of_project: bool) -> str:
    """Why this key cannot be taken at all, or an empty string."""
    key = entry.key
    if key in _MAPPINGS:
        inner = "action: keys" if key == "keymap" else ", ".join(SECTIONS[key].model_fields)
        return f"must hold indented lines ({inner}), not {quote(entry.value)}"
    if key not in FIELDS and not key.startswith("keymap."):
        return f"is not a setting{_suggest(key)}"
    if of_project and key in USER_ONLY:
        return (
            "can be set only in your own config.yaml, by a variable or a flag, because a project may come from others"
        )
    if of_project and key in LOCAL_ONLY and isinstance(entry.value, str) and not is_this_machine(entry.value):
        return (
            "may name only this machine in a project's config.yaml, because a project may come from others; "
            f"put {quote(entry.value)} into your own config.yaml or a variable"
        )
    return ""


def _from_yaml(entry: Entry, warn: Callable[[str, int], None]) -> Any:
    if entry.key == "rules":
        return _rules(entry, warn)
    if entry.key in LISTS:
        listed = entry.value if isinstance(entry.value, tuple) else (entry,)
        return check(entry.key, tuple(item.written.strip() for item in listed), strict=True)
    if entry.value is MAPPING:
        raise ValueError("mapping")
    if isinstance(entry.value, tuple):
        raise ValueError("list")
    # YAML reads `off`, `no` and `5` as something else than the word that was written.
    words_only = entry.key.startswith("keymap.") or all(get_origin(kind) is Literal for kind in kinds_of(entry.key))
    if words_only and entry.value is not None:
        return check(entry.key, entry.written, strict=True)
    return check(entry.key, entry.value, strict=True)


def _rules(entry: Entry, warn: Callable[[str, int], None]) -> tuple[str, ...]:
    """The entries as literal text, as written: a date or number is text, and so is ``Note: do this``."""
    if not isinstance(entry.value, tuple):
        raise ValueError("no list")
    rules = []
    for number, item in enumerate(entry.value, start=1):
        text = item.written.strip()
        if not text or item.value is None:
            what = "is no text" if isinstance(item.value, tuple) or item.value is MAPPING else "is empty"
            warn(f"entry {number} {what} and is left out", item.line)
            continue
        if item.value is MAPPING:
            warn(f"entry {number} holds a colon, so YAML does not read it as text; it is taken as written "
                 f"({quote(text)}), and quotes around it make that sure", item.line)  # fmt: skip
        if _PATH_LIKE.fullmatch(text):
            warn(f"entry {number} ({quote(text)}) looks like a path; it is taken as the text of a rule and no file is "
                 "opened. Files named rules.md are loaded by themselves", item.line)  # fmt: skip
        rules.append(text)
    return tuple(rules)


def env_layer(env: Mapping[str, str], troubles: list[Trouble]) -> Layer:
    """The variables of this program, and ``OLLAMA_HOST`` below ``TUI_AGENT_HOST``. An empty variable is not set."""
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    host = env.get("OLLAMA_HOST", "").strip()
    if host:
        try:
            values["host"], places["host"] = check("host", host, strict=True), "OLLAMA_HOST"
        except ValueError:
            what = f"must be {allowed('host')}, not {quote(host)}"
            troubles.append(Trouble("error", "OLLAMA_HOST", what, key="host"))
    known = {PREFIX + key.upper().replace(".", "__"): key for key in FIELDS if key != "keymap"}
    for name, text in sorted(env.items()):
        if not name.startswith(PREFIX) or name == HOME_VARIABLE or not text.strip():
            continue
        key = known.get(name, "")
        if not key:
            close = difflib.get_close_matches(name, known, 1, 0.85)
            if close:  # other variables of this prefix may belong to other tools; only a likely slip is named
                troubles.append(
                    Trouble("warning", name, f"is not a variable of this program; did you mean {close[0]}?")
                )
            continue
        try:
            values[key], places[key] = _from_text(key, text), name
        except ValueError:
            troubles.append(Trouble("error", name, f"must be {allowed(key)}, not {quote(text)}", key=key))
    return Layer("environment", None, values, places)


def _from_text(key: str, text: str) -> Any:
    """A value written as text, from the environment: the setting's type decides how it is read."""
    if key == "rules":
        return check(key, tuple(line.strip() for line in text.splitlines() if line.strip()), strict=True)
    if key in LISTS:
        return check(key, tuple(text.replace(",", " ").split()), strict=True)
    if nullable(key) and text.strip().casefold() in ("null", "none", "~"):
        return None
    value = check(key, text.strip(), strict=False)
    return _absolute(value) if key == "gguf" else value


def flag_layer(flags: Mapping[str, Any]) -> Layer:
    """The flags that were given. Raises :class:`SettingsError` for an unknown one or a wrong value."""
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for key, given in flags.items():
        if given is None:
            continue
        flag = "--" + key.replace("_", "-").replace(".", "-")
        if key not in FIELDS:
            raise SettingsError(f"{flag} is not a setting{_suggest(key)}.".replace("?.", "?"))
        value = os.fspath(given) if isinstance(given, os.PathLike) else given
        try:
            value = check(key, tuple(value) if isinstance(value, list) else value, strict=False)
        except ValueError:
            raise SettingsError(f"{flag} must be {allowed(key)}, not {quote(given)}.") from None
        values[key], places[key] = _absolute(value) if key == "gguf" else value, f"flag {flag}"
    return Layer("flags", None, values, places)


def _suggest(key: str) -> str:
    """``; did you mean …?`` for a slip, a wrong section or a missing one; else the keys there are."""
    section, dot, last = key.rpartition(".")
    inside = list(SECTIONS[section].model_fields if dot and section in SECTIONS else Settings.model_fields)
    near = [section + dot + one for one in difflib.get_close_matches(last, inside, 1, 0.7)]
    if not near:
        near = [full for full in FIELDS if full.rpartition(".")[2] == last] or difflib.get_close_matches(
            key, FIELDS, 1, 0.8
        )
    return f"; did you mean {' or '.join(near)}?" if near else "; known are " + ", ".join(inside)


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111 - an unknown "~user" stays as it is


def quote(value: Any) -> str:
    """A wrong value, short enough for a sentence and without control characters."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is MAPPING:
        return "a mapping"
    if isinstance(value, (tuple, list)):
        return "a list"
    text = str(value)
    text = "".join(one if one.isprintable() else " " for one in (text if len(text) <= 60 else text[:59] + "…"))
    return f'"{text}"' if isinstance(value, str) else text
