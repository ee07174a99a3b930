"""Themes are YAML files: ours in the package (or the checkout), the user's own in a folder of theirs.

A file has ``name``, ``dark`` (true or false), optional ``ansi``, ``colors`` (Textual's ten base colours, ``primary``
is required) and ``variables`` (any Textual variable, and ours, see :data:`OURS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from textual.color import Color, ColorParseError
from textual.theme import Theme

DEFAULT_THEME = "ink"
_COLORS = (
    "primary", "secondary", "warning", "error", "success", "accent", "foreground", "background", "surface", "panel",
)  # fmt: skip
# Our variables and the Textual variable each falls back to, so that every built-in theme of Textual works too.
OURS: Mapping[str, str] = {
    "act": "primary",  # what the user can act on
    "said": "secondary",  # what the model said
    "quiet": "foreground-muted",  # secondary text
    "faint": "foreground-disabled",  # rules and numbers nobody has to read
    "meter": "primary",  # bars
    "row": "boost",  # the highlighted row of a list without focus
    "row-focus": "panel",  # the same with focus
    "code": "accent",
    "code-keyword": "accent",
    "code-name": "primary",
    "code-string": "success",
    "code-number": "warning",
}


class ThemeError(ValueError):
    """A theme file that cannot be used; the message names file and key."""


def read_theme(source: str, name: str) -> Theme:
    """The theme a YAML text describes. Raises :class:`ThemeError` with a sentence naming ``name`` and the key."""
    try:
        data = yaml.safe_load(source)
    except yaml.YAMLError as error:
        raise ThemeError(f"{name} is not valid YAML: {error}".replace("\n", " ")) from error
    if not isinstance(data, dict) or not isinstance(data.get("colors"), dict):
        raise ThemeError(f"{name} needs a mapping `colors` with at least `primary`.")
    unknown = set(data) - {"name", "dark", "ansi", "colors", "variables", "description"}
    if unknown:
        raise ThemeError(f"{name} has an unknown key `{sorted(map(str, unknown))[0]}`.")
    colors: dict[str, Any] = {}
    for key, value in data["colors"].items():
        if key not in _COLORS:
            raise ThemeError(f"{name}: `colors.{key}` is unknown; known are {', '.join(_COLORS)}.")
        try:
            Color.parse(str(value))
        except ColorParseError as error:
            raise ThemeError(f"{name}: `colors.{key}` is not a colour: {value}.") from error
        colors[key] = str(value)
    if "primary" not in colors:
        raise ThemeError(f"{name} needs `colors.primary`.")
    variables = {str(key): str(value) for key, value in (data.get("variables") or {}).items()}
    return Theme(
        name=str(data.get("name") or Path(name).stem),
        dark=bool(data.get("dark", True)),
        ansi=bool(data.get("ansi", False)),
        variables=variables,
        **colors,
    )


def theme_files() -> list[tuple[str, str]]:
    """``(file name, text)`` of the themes that come with the program, from the wheel or the checkout."""
    packaged = resources.files("tui_agent") / "themes"
    if packaged.is_dir():
        found = [(item.name, item.read_text("utf-8")) for item in packaged.iterdir() if item.name.endswith(".yaml")]
        if found:
            return sorted(found)
    checkout = Path(__file__).resolve().parents[2] / "themes"
    return [(path.name, path.read_text("utf-8")) for path in sorted(checkout.glob("*.yaml"))]


def load_themes(folders: Iterable[Path] = ()) -> tuple[list[Theme], list[str]]:
    """All usable themes, the user's last, and one sentence for each file that is not."""
    themes: list[Theme] = []
    problems: list[str] = []
    sources = theme_files()
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")) if folder.is_dir() else ():
            try:
                sources.append((str(path), path.read_text("utf-8")))
            except (OSError, UnicodeDecodeError) as error:
                problems.append(f"The theme {path} cannot be read: {error}.")
    for name, text in sources:
        try:
            themes.append(read_theme(text, name))
        except ThemeError as error:
            problems.append(f"A theme is left out. {error}")
    return themes, problems


def with_ours(variables: Mapping[str, str]) -> dict[str, str]:
    """``variables`` of a theme with ours filled in where it does not define them."""
    found = {ours: variables.get(theirs, variables["foreground-muted"]) for ours, theirs in OURS.items()}
    return {**found, **variables}
