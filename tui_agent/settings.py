"""Settings: the user's ``config.yaml``, then the project's, then the environment, then flags.

A fault in a file never stops the program: the bad key is left out, what stood below it stays in force, and a
:class:`Problem` says so in one sentence. A fault in a flag is the caller's and raises :class:`SettingsError`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tui_agent.project import Project, UserPaths
from tui_agent.settings_fields import (
    FIELDS,
    SECTIONS,
    FileSettings,
    RecallSettings,
    Settings,
    UiSettings,
    WorkingMemorySettings,
    allowed,
    is_this_machine,
)
from tui_agent.settings_layers import PREFIX, Layer, SettingsError, Trouble, env_layer, file_layer, flag_layer, quote

__all__ = [
    "FileSettings",
    "Loaded",
    "Problem",
    "RecallSettings",
    "SettingRow",
    "Settings",
    "SettingsError",
    "UiSettings",
    "WorkingMemorySettings",
    "is_this_machine",
    "load_settings",
    "settings_reference",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a layer below the flags. ``text`` is the whole sentence, with file, line and key."""

    level: Literal["warning", "error"]
    text: str
    file: str = ""
    line: int | None = None
    key: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting as shown by the doctor and the reference."""

    key: str
    value: str
    source: str
    default: str
    allowed: str
    description: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings with what was wrong and where each value is from.

    ``sources`` maps every key (``section.key`` for nested ones) to ``default``, ``FILE:LINE``, a variable or a flag.
    """

    settings: Settings
    problems: tuple[Problem, ...]
    sources: Mapping[str, str]
    files: tuple[Path, ...]
    _layers: tuple[Layer, ...] = field(repr=False, default=())
    _env: Mapping[str, str] = field(repr=False, default_factory=dict)
    _flags: Mapping[str, Any] = field(repr=False, default_factory=dict)
    _roots: tuple[Path, ...] = field(repr=False, default=())

    def reload(self) -> Loaded:
        """Read the files again. A key that is now wrong keeps its last good value, a broken file all of its values."""
        return _load(self.files, self._roots, self._env, self._flags, self._layers)

    def describe(self) -> tuple[SettingRow, ...]:
        """One row per setting, in the order of the reference."""
        rows = []
        for key, info in FIELDS.items():
            value = _value_of(self.settings, key)
            source = self.sources.get(key, "default")
            rows.append(
                SettingRow(key, _show(value), source, _show(info.default), allowed(key), info.description or "")
            )
        return tuple(rows)


def load_settings(
    project: Project | None = None,
    user_paths: UserPaths | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read all layers. ``flags`` maps dotted keys to values; ``None`` means that a flag was not given.

    Variables are ``TUI_AGENT_MODEL``, ``TUI_AGENT_RECALL__TOP_K`` (two underscores for a section), and ``OLLAMA_HOST``.
    Raises :class:`SettingsError` for a wrong flag, and nothing else.
    """
    env = dict(os.environ if env is None else env)
    user = user_paths or UserPaths.find(env)
    files, roots = [user.config_path], [user.config]
    if project is not None:
        files.append(project.config_path)
        roots.append(project.root)
    return _load(tuple(files), tuple(roots), env, dict(flags or {}), ())


def settings_reference() -> str:
    """The reference of all settings as a Markdown table, for the docs."""
    lines = ["| key | default | allowed | what it does |", "|---|---|---|---|"]
    for key, info in FIELDS.items():
        lines.append(f"| `{key}` | `{_show(info.default)}` | {allowed(key)} | {info.description} |")
    return "\n".join(lines) + "\n"


def _load(
    files: tuple[Path, ...],
    roots: tuple[Path, ...],
    env: Mapping[str, str],
    flags: Mapping[str, Any],
    last_good: tuple[Layer, ...],
) -> Loaded:
    troubles: list[Trouble] = []
    before = {layer.path: layer for layer in last_good if layer.path}
    layers = [
        file_layer(path, root, number > 0, before.get(path), troubles)
        for number, (path, root) in enumerate(zip(files, roots, strict=True))
    ]
    layers += [env_layer(env, troubles), flag_layer(flags)]
    values, sources = _merge(layers)
    settings = _build(values)
    _note_ollama_host(layers, env, troubles)
    order = [str(path) for path in files]
    troubles.sort(key=lambda one: (order.index(one.file) if one.file else len(order), one.line or 0))
    problems = tuple(_problem(trouble, settings, sources) for trouble in troubles)
    return Loaded(settings, problems, sources, files, tuple(layers), env, flags, roots)


def _merge(layers: list[Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    sources = dict.fromkeys(FIELDS, "default")
    for layer in layers:
        for key, value in layer.values.items():
            place = layer.places[key]
            if key == "rules" and layer.path is not None and key in values:
                # Rules add up: the user's own ones hold in every project.
                value = tuple(dict.fromkeys((*values[key], *value)))
                place = f"{sources[key]}, {place}"
            values[key], sources[key] = value, place
    keymap = [sources[key] for key in values if key.startswith("keymap.")]
    if keymap:
        sources["keymap"] = ", ".join(dict.fromkeys([sources["keymap"], *keymap])).removeprefix("default, ")
    return values, sources


def _build(values: Mapping[str, Any]) -> Settings:
    top: dict[str, Any] = {}
    for key, value in values.items():
        section, dot, inner = key.partition(".")
        if dot:
            top.setdefault(section, {})[inner] = value
        else:
            top[key] = value
    return Settings.model_validate(
        {name: SECTIONS[name](**value) if name in SECTIONS else value for name, value in top.items()}
    )


def _note_ollama_host(layers: list[Layer], env: Mapping[str, str], troubles: list[Trouble]) -> None:
    """Say when the server's own variable silently beats what a file says."""
    file = next((layer for layer in reversed(layers) if layer.path and layer.values.get("host")), None)
    surroundings = next(layer for layer in layers if layer.name == "environment")
    if file is None or surroundings.places.get("host") != "OLLAMA_HOST":
        return
    host = surroundings.values["host"]
    if host != file.values["host"]:
        what = f"is {quote(host)} and stands above {quote(file.values['host'])} in {file.places['host']}; set "
        troubles.append(Trouble("warning", "OLLAMA_HOST", what + f"{PREFIX}HOST to choose for this program alone"))


def _problem(trouble: Trouble, settings: Settings, sources: Mapping[str, str]) -> Problem:
    """The finished sentence: where, which key, what is wrong, what is in force instead."""
    key = trouble.key
    text = f"{trouble.where}: {key} {trouble.what}" if trouble.file and key else f"{trouble.where} {trouble.what}"
    if trouble.level == "error" and key in FIELDS:
        text += f"; {_show(_value_of(settings, key))} ({sources[key]}) is in force"
    elif trouble.level == "error" and not key:
        text += "; its last good values stay" if trouble.kept else "; the program goes on without it"
    ending = "" if text.endswith("?") else "."
    return Problem(trouble.level, text + ending, trouble.file, trouble.line, key)


def _value_of(settings: Settings, key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _show(value: Any) -> str:
    """A value as YAML would have it, short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " · ".join(value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {keys}" for key, keys in value.items()) or "none"
    return str(value)
