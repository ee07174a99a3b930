"""The documentation says what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tui_agent.agent.doctor.reference import doctor_table, error_table
from tui_agent.settings import settings_reference
from tui_agent.tui.actions import ACTIONS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_settings_page_lists_every_setting_as_it_is() -> None:
    assert settings_reference().strip() in (ROOT / "docs" / "settings.md").read_text("utf-8")


def test_the_troubleshooting_page_is_made_from_the_doctors_table_and_the_error_sentences() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    assert doctor_table().strip() in page
    assert error_table().strip() in page


def test_the_settings_page_lists_every_action_with_its_keys() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    for action in ACTIONS:
        assert f"`{action.id}`" in page, action.id


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


def test_every_script_named_in_the_readme_is_there() -> None:
    for name in re.findall(r"python (benchmarks/\w+\.py)", (ROOT / "README.md").read_text("utf-8")):
        assert (ROOT / name).is_file(), name
