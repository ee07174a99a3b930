"""Rules: found without registration, always whole, in one order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.memory import rules as rules_module
from tui_agent.memory.rules import RulesSet, find_rules, load_rules, one_line_diff


def put(root: Path, name: str, text: str = "- rule\n") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def names(found: RulesSet) -> list[str]:
    return [entry.name for entry in found.entries]


def test_without_any_rules_there_is_nothing_to_say(tmp_path: Path) -> None:
    found = load_rules(tmp_path)
    assert (found.entries, found.problems, found.text) == ((), (), "")
    assert len(found.hash) == 12


def test_every_file_of_that_name_is_loaded_nearest_the_root_first(tmp_path: Path) -> None:
    for name in (
        "src/b/rules.md",
        "src/a/rules.md",
        "z/rules.md",
        ".agent-memory/rules.md",
        "rules.md",
        "docs/other.md",
    ):
        put(tmp_path, name, f"- from {name}\n")
    found = load_rules(tmp_path, ["keep   it\nshort", " "])
    assert names(found) == [
        ".agent-memory/rules.md", "rules.md", "z/rules.md", "src/a/rules.md", "src/b/rules.md", "rules in config.yaml",
    ]  # fmt: skip
    assert [entry.kind for entry in found.entries] == ["memory", "file", "file", "file", "file", "config"]
    assert found.text.startswith("### .agent-memory/rules.md\n- from .agent-memory/rules.md\n\n### rules.md\n")
    assert found.text.endswith("### rules in config.yaml\n- keep it short")
    assert found == load_rules(tmp_path, ["keep   it\nshort"])


def test_the_file_in_the_memory_folder_is_never_cut_and_others_are_with_a_notice(tmp_path: Path) -> None:
    long = "\n".join(f"- rule number {n}" for n in range(1000))
    put(tmp_path, ".agent-memory/rules.md", long)
    put(tmp_path, "rules.md", long)
    found = load_rules(tmp_path, max_tokens=100)
    whole, cut = found.entries
    assert whole.text == long
    assert not whole.truncated
    assert cut.truncated
    assert "lines are shown; the rest is in rules.md]" in cut.text
    assert len(cut.text) < 600
    (problem,) = found.problems
    assert "rules.md is cut in the prompt" in problem
    assert "files.rules_max_tokens (100)" in problem
    assert [section.uncut for section in found.sections()] == [True, False]


def test_ignored_folders_hold_no_rules(tmp_path: Path) -> None:
    put(tmp_path, ".gitignore", "build/\n*.tmp\n/vendor\n!src/build/\nsecret/rules.md\n[bad\n")
    put(tmp_path, "src/.gitignore", "gen\n!keep/\n")
    for name in ("build/rules.md", "vendor/x/rules.md", "src/gen/rules.md", "src/keep/rules.md", "src/build/rules.md",
                 "secret/rules.md", "node_modules/p/rules.md", ".venv/lib/rules.md", ".git/rules.md",
                 ".agent-memory/skills/rules.md", ".github/rules.md", "lib/vendor/rules.md"):  # fmt: skip
        put(tmp_path, name)
    assert names(load_rules(tmp_path)) == [
        ".github/rules.md", "lib/vendor/rules.md", "src/build/rules.md", "src/keep/rules.md",
    ]  # fmt: skip


def test_a_deeper_gitignore_has_the_last_word(tmp_path: Path) -> None:
    put(tmp_path, ".gitignore", "rules.md\n")
    put(tmp_path, "a/rules.md")
    put(tmp_path, "b/.gitignore", "!rules.md\n")
    put(tmp_path, "b/rules.md")
    assert names(load_rules(tmp_path)) == ["b/rules.md"]


def test_links_that_lead_out_of_the_project_are_not_followed(tmp_path: Path) -> None:
    outside = put(tmp_path, "outside/rules.md", "private\n")
    root = tmp_path / "project"
    (root / "a").mkdir(parents=True)
    (root / ".agent-memory").mkdir()
    (root / "a/rules.md").symlink_to(outside)
    (root / ".agent-memory/rules.md").symlink_to(outside)
    (root / "linked").symlink_to(outside.parent)
    put(root, "b/rules.md", "- own\n")
    (root / "c").mkdir()
    (root / "c/rules.md").symlink_to(root / "b/rules.md")
    found = load_rules(root)
    assert names(found) == ["b/rules.md", "c/rules.md"]
    assert "private" not in found.text
    assert len(found.problems) == 2
    assert all("leads out of the project" in problem for problem in found.problems)


def test_a_file_that_cannot_be_read_as_text_is_named_and_the_others_hold(tmp_path: Path) -> None:
    put(tmp_path, "a/rules.md", "- good\n")
    (tmp_path / "rules.md").write_bytes("- zażółć\n".encode("cp1250"))
    put(tmp_path, "b/rules.md", "x" * 70_000)
    put(tmp_path, "c/rules.md", " \n")
    found = load_rules(tmp_path)
    assert names(found) == ["a/rules.md"]
    assert "The rules in rules.md are not in force: line 1 is not UTF-8 text" in found.problems[0]
    assert "longer than 64 KB" in found.problems[1]


def test_the_search_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(25):
        put(tmp_path, f"d{number:02}/rules.md", f"- {number}\n")
    found = load_rules(tmp_path)
    assert len(found.entries) == 20
    assert "25 files named rules.md; the 20 nearest its root count" in found.problems[0]
    monkeypatch.setattr(rules_module, "MAX_FOLDERS", 5)
    scan = find_rules(tmp_path)
    assert len(scan.folders) == 5
    assert "first 5 folders" in scan.problems[0]


def test_a_folder_that_cannot_be_listed_or_is_missing_is_passed_over(tmp_path: Path) -> None:
    assert find_rules(tmp_path / "nowhere").files == ()
    put(tmp_path, "a/rules.md")
    (tmp_path / "deep").mkdir()
    path = tmp_path / "deep"
    for _ in range(20):
        path = path / "d"
    put(path, "rules.md")
    assert names(load_rules(tmp_path)) == ["a/rules.md"]


def test_literal_rules_that_look_like_paths_open_nothing(tmp_path: Path) -> None:
    put(tmp_path, "docs/style.md", "content of the file")
    found = load_rules(tmp_path, ["docs/style.md"])
    assert found.text == "### rules in config.yaml\n- docs/style.md"


def test_the_hash_tells_whether_the_rules_are_the_same(tmp_path: Path) -> None:
    path = put(tmp_path, ".agent-memory/rules.md", "- tests first\n")
    first = load_rules(tmp_path)
    path.write_bytes(b"- tests first\r\n\r\n")
    assert load_rules(tmp_path).hash == first.hash
    path.write_text("- tests last\n")
    assert load_rules(tmp_path).hash != first.hash


def test_the_difference_of_two_sets_is_one_plain_line(tmp_path: Path) -> None:
    path = put(tmp_path, ".agent-memory/rules.md", "# Rules\n\n- use npm\n")
    before = load_rules(tmp_path)
    path.write_text("# Rules\n\n- tests first in payments\n- be brief\n")
    after = load_rules(tmp_path)
    assert one_line_diff(before, after) == '+ 2 rules: "tests first in payments"; "be brief"  − 1 rule: "use npm"'
    assert one_line_diff(before, before) == ""
    assert one_line_diff("", "- a") == '+ 1 rule: "a"'
    assert one_line_diff("- a\n- b", "- b\n- a") == "rules moved"
    assert one_line_diff("# One\n- a", "# Two\n- a") == '+ 1 line: "# Two"  − 1 line: "# One"'
