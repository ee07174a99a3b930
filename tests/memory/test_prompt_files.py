"""What of the memory files goes into the prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.prompt_files import (
    PromptCaps,
    PromptSection,
    cut_section,
    estimate_tokens,
    prompt_sections,
    section_notes,
)
from tui_agent.memory.rules import load_rules
from tui_agent.project import Project


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.open(tmp_path).ensure()


def test_the_order_is_agents_user_rules_stack_and_the_projects_own_files(project: Project, tmp_path: Path) -> None:
    home = project.memory_dir
    (home / "AGENTS.md").write_text("agents\n")
    (home / "knowledge/user.md").write_text("user\n")
    (home / "knowledge/tech-stack.md").write_text("stack\n")
    (home / "rules.md").write_text("rule\n")
    (project.root / "AGENTS.md").write_text("root agents\n")
    (project.root / "CLAUDE.md").write_text("claude\n")
    (project.root / ".continue/rules").mkdir(parents=True)
    (project.root / ".continue/rules/style.md").write_text("style\n")
    everywhere = tmp_path / "me.md"
    everywhere.write_text("everywhere\n")
    rules = load_rules(project.root, ["literal"])
    found = prompt_sections(MemoryFiles(home), rules=rules.sections(), user_notes=everywhere, project_root=project.root)
    assert [(section.name, section.text) for section in found] == [
        ("AGENTS.md", "agents"),
        ("user.md (all projects)", "everywhere"),
        ("knowledge/user.md", "user"),
        (".agent-memory/rules.md", "rule"),
        ("rules in config.yaml", "- literal"),
        ("knowledge/tech-stack.md", "stack"),
        ("AGENTS.md (project root)", "root agents"),
        ("CLAUDE.md (project root)", "claude"),
        (".continue/rules/style.md", "style"),
    ]
    assert not any(section.truncated for section in found)
    assert len({section.name for section in found}) == len(found)
    assert all(section.tokens == estimate_tokens(section.text) for section in found)


def test_the_same_files_give_the_same_bytes(project: Project) -> None:
    files = MemoryFiles(project.memory_dir)
    assert prompt_sections(files) == prompt_sections(files)


def test_what_is_cut_says_so_in_the_text_and_to_the_user(project: Project) -> None:
    path = project.memory_dir / "AGENTS.md"
    path.write_text("\n".join(f"- rule number {n}" for n in range(200)))
    (section,) = prompt_sections(MemoryFiles(project.memory_dir), PromptCaps(agents_tokens=100), count=words)
    assert section.truncated
    assert section.tokens <= 100
    assert section.text.startswith("- rule number 0\n- rule number 1\n")
    assert section.text.endswith("lines are shown; the rest is in AGENTS.md]")
    assert section_notes([section]) == ["AGENTS.md is cut in the prompt: 17 of 200 lines fit."]


def test_notes_about_the_user_are_counted_in_lines_too(project: Project) -> None:
    (project.memory_dir / "AGENTS.md").unlink()
    (project.memory_dir / "knowledge/user.md").write_text("\n\n".join(f"note {n}" for n in range(60)))
    (section,) = prompt_sections(MemoryFiles(project.memory_dir), PromptCaps(user_lines=40), count=words)
    assert "note 39" in section.text
    assert "note 40" not in section.text
    assert "40 of 60 lines" in section.note


def test_rules_of_the_memory_folder_are_whole_and_take_their_room_first(project: Project) -> None:
    home = project.memory_dir
    (home / "rules.md").write_text("\n".join(f"- rule {n}" for n in range(200)))
    (home / "AGENTS.md").write_text("\n".join(f"- line {n}" for n in range(200)))
    (home / "knowledge/user.md").write_text("word " * 50)
    rules = load_rules(project.root, count=words)
    found = prompt_sections(MemoryFiles(home), PromptCaps(total_tokens=700), count=words, rules=rules.sections())
    by_name = {section.name: section for section in found}
    assert by_name[".agent-memory/rules.md"].text.count("\n") == 199
    assert by_name["AGENTS.md"].truncated
    assert by_name["knowledge/user.md"].text == "[knowledge/user.md is left out: there is no room for its 1 lines]"
    assert "left out" in by_name["knowledge/user.md"].note


def test_a_link_out_of_the_project_is_no_instruction_file(project: Project, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.md"
    outside.write_text("private\n")
    (project.root / "CLAUDE.md").symlink_to(outside)
    (project.root / "AGENTS.md").write_text("shared\n")
    (project.root / ".continue/rules").mkdir(parents=True)
    (project.root / ".continue/rules/same.md").symlink_to(project.root / "AGENTS.md")
    found = prompt_sections(MemoryFiles(project.memory_dir), project_root=project.root)
    assert [section.name for section in found] == ["AGENTS.md", "AGENTS.md (project root)"]


def test_a_single_line_that_is_too_long_is_left_out_with_a_notice() -> None:
    section = cut_section(PromptSection("a.md", "a.md", "word " * 500), 100, words)
    assert section.text == "[a.md is left out: there is no room for its 1 lines]"


def test_the_rough_count_grows_with_the_text() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcd" * 10) == 10
    assert estimate_tokens("żółw") > estimate_tokens("zolw")
