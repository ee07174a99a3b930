"""Themes are YAML files: ours in the package (or the checkout), the user's own in a folder of theirs.

A file has ``name``, ``dark`` (true or false), optional ``ansi``, ``colors`` (Textual's ten base colours, ``primary``
is required) and ``variables`` (any Textual variable, and ours, see :data:`OURS`). The default theme is kept here too,
so that the first screen is painted without reading YAML; a test holds it to its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

INK = Theme(
    name="ink",
    dark=True,
    primary="#79b0f2",
    secondary="#93cfae",
    accent="#d3b58d",
    warning="#e3b765",
    error="#ef7d7d",
    success="#93cfae",
    foreground="#d9dce3",
    background="#14161c",
    surface="#14161c",
    panel="#232833",
    variables={
        "act": "#79b0f2",
        "said": "#93cfae",
        "quiet": "#919aa9",
        "faint": "#5b6473",
        "meter": "#5b86b8",
        "row": "#1b1f28",
        "row-focus": "#262d3b",
        "code": "#d3b58d",
        "code-keyword": "#b79fe0",
        "code-name": "#86b5ee",
        "code-string": "#a5c79a",
        "code-number": "#dba878",
        "text": "#d9dce3",
        "scrollbar": "#313846",
        "scrollbar-hover": "#434c5e",
        "scrollbar-active": "#79b0f2",
        "scrollbar-background": "#14161c",
        "scrollbar-background-hover": "#14161c",
        "scrollbar-background-active": "#14161c",
        "screen-selection-background": "#34507a",
        "input-selection-background": "#34507a",
    },
)
"""The default theme, as ``themes/ink.yaml`` describes it."""
DEFAULT_THEME = INK.name
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
    import yaml

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
    from importlib import resources

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
