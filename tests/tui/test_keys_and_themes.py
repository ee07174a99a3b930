"""The action table, the keymap and the themes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from textual.app import App
from textual.color import Color

from tui_agent.tui import themes
from tui_agent.tui.actions import ACTIONS, BY_ID, in_context
from tui_agent.tui.app import TuiAgentApp
from tui_agent.tui.keymap import Keymap, shown
from tui_agent.tui.screens.chat import ChatScreen
from tui_agent.tui.screens.doctor import DoctorScreen
from tui_agent.tui.screens.handoff import HandoffScreen
from tui_agent.tui.screens.inspector import InspectorScreen
from tui_agent.tui.screens.lists import RememberedScreen, SessionsScreen
from tui_agent.tui.screens.models import ModelsScreen
from tui_agent.tui.screens.pages import ContextScreen
from tui_agent.tui.screens.review import ReviewScreen
from tui_agent.tui.screens.setup import SetupScreen
from tui_agent.tui.screens.upkeep import LogScreen, SharingScreen
from tui_agent.tui.screens.why import CompareScreen, WhyScreen
from tui_agent.tui.themes import INK, ThemeError, load_themes, read_theme, with_ours
from tui_agent.tui.widgets.cold_pane import ColdList
from tui_agent.tui.widgets.editor import Editor
from tui_agent.tui.widgets.hot_pane import HotList
from tui_agent.tui.widgets.recalled_pane import RecalledList
from tui_agent.tui.widgets.transcript import Transcript

OWNERS = {
    "app": [TuiAgentApp],
    "chat": [ChatScreen],
    "composer": [Editor],
    "transcript": [Transcript],
    "hot": [HotList],
    "cold": [ColdList],
    "recalled": [RecalledList],
    "inspector": [InspectorScreen],
    "remembered": [RememberedScreen],
    "review": [ReviewScreen],
    "log": [LogScreen],
    "handoff": [HandoffScreen],
    "sharing": [SharingScreen],
    "picker": [SessionsScreen],
    "models": [ModelsScreen],
    "page": [ContextScreen],
    "why": [WhyScreen],
    "compare": [CompareScreen],
    "setup": [SetupScreen],
    "doctor": [DoctorScreen],
}


def test_every_action_has_a_unique_id_and_a_method_where_it_belongs() -> None:
    assert len(BY_ID) == len(ACTIONS)
    for action in ACTIONS:
        owners = OWNERS[action.context]
        assert any(hasattr(owner, f"action_{action.name}") for owner in owners), action.id


@pytest.mark.parametrize("context", sorted(OWNERS))
def test_no_key_means_two_things_in_one_place(context: str) -> None:
    keys = Counter(key for action in in_context(context) for key in action.keys.split(","))
    assert [key for key, count in keys.items() if count > 1] == []


def test_keys_of_the_chat_do_not_hide_printable_text() -> None:
    for action in (*in_context("app"), *in_context("chat"), *in_context("composer")):
        assert all(len(key) > 1 for key in action.keys.split(",")), action.id


def test_keys_are_written_as_people_read_them() -> None:
    assert shown("ctrl+j,shift+enter", first_only=False) == "ctrl+j, shift+enter"
    assert shown("escape") == "esc"
    assert shown("f1") == "F1"
    assert shown("alt+up") == "alt+↑"


def test_a_wrong_keymap_is_told_and_the_rest_is_used() -> None:
    keymap = Keymap({"hot.pinn": "x", "hot.pin": "P", "hot.touch": "ctrl+nonsense"})
    assert keymap.changed == {"hot.pin": "P"}
    assert any("hot.pinn" in problem and "hot.pin?" in problem for problem in keymap.problems)
    assert any("ctrl+nonsense" in problem for problem in keymap.problems)
    assert keymap.hint("hot.pin") == "P pin"


def test_all_shipped_themes_load_and_there_are_enough_kinds() -> None:
    found, problems = load_themes()
    assert problems == []
    assert {theme.name for theme in found} >= {"ink", "paper", "contrast", "terminal"}
    assert any(not theme.dark for theme in found)
    assert any(theme.ansi for theme in found)


def test_the_default_theme_is_what_its_file_says() -> None:
    assert next(theme for theme in load_themes()[0] if theme.name == "ink") == INK


@pytest.mark.parametrize("name", ["ink", "paper", "dusk", "contrast"])
def test_text_of_a_theme_is_readable(name: str) -> None:
    theme = next(theme for theme in load_themes()[0] if theme.name == name)
    variables = with_ours(theme.to_color_system().generate())
    background = Color.parse(variables["background"])
    least = 7.0 if name == "contrast" else 4.5
    for variable in ("text", "quiet", "act", "said", "warning", "error", "code", "code-keyword", "code-string"):
        assert _contrast(Color.parse(variables[variable]), background) >= least, variable


def _contrast(first: Color, second: Color) -> float:
    def luminance(color: Color) -> float:
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("colors: [", "not valid YAML"),
        ("name: x", "needs a mapping `colors`"),
        ("colors: {primary: nope}", "not a colour"),
        ("colors: {background: black}", "colors.primary"),
        ("colors: {primary: red, extra: red}", "colors.extra"),
        ("color: {}\ncolors: {primary: red}", "unknown key `color`"),
    ],
)
def test_a_wrong_theme_file_is_one_sentence_with_its_name(source: str, said: str) -> None:
    with pytest.raises(ThemeError, match=r"mine\.yaml") as caught:
        read_theme(source, "mine.yaml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_theme_of_the_user_stands_beside_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\ncolors: {primary: '#ff0000'}\n")
    (tmp_path / "broken.yaml").write_text("colors: 3")
    found, problems = load_themes([tmp_path, tmp_path / "missing"])
    assert found[-1].name == "mine"
    assert len(problems) == 1


def test_themes_come_from_the_package_when_it_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "themes"
    folder.mkdir()
    (folder / "only.yaml").write_text("name: only\ncolors: {primary: red}\n")
    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    assert [name for name, _ in themes.theme_files()] == ["only.yaml"]


def test_our_variables_exist_in_every_theme_of_textual() -> None:
    for theme in App().available_themes.values():
        variables = with_ours(theme.to_color_system().generate())
        assert set(themes.OURS) <= set(variables), theme.name
