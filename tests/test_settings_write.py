"""A choice made in the app is kept, and nothing else in the file changes."""

from __future__ import annotations

from pathlib import Path

import yaml

from tui_agent.settings_write import keep_setting


def test_a_new_key_is_added_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "user" / "config.yaml"
    keep_setting(path, "theme", "paper")
    assert path.read_text("utf-8") == 'theme: "paper"\n'


def test_the_line_of_a_key_is_replaced_and_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("# mine\ntheme: ink  # dark\nmodel: qwen3:4b\nrules:\n  - 'theme: none'", "utf-8")
    keep_setting(path, "theme", "paper")
    assert path.read_text("utf-8") == "# mine\ntheme: \"paper\"\nmodel: qwen3:4b\nrules:\n  - 'theme: none'"
    keep_setting(path, "think", "low")
    assert yaml.safe_load(path.read_text("utf-8")) == {
        "theme": "paper",
        "model": "qwen3:4b",
        "rules": ["theme: none"],
        "think": "low",
    }


def test_odd_values_are_read_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    for value in ("yes", "a: b", 'say "hi" \\1', "żółw"):
        keep_setting(path, "theme", value)
        assert yaml.safe_load(path.read_text("utf-8")) == {"theme": value}
