"""Skills: two file forms, triggers in three languages, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.memory.skills import Skill, index_text, load_skills, match

PLAN = """\
# Task Planning Skill

**Trigger**: User gives a complex task or asks to "implement", "build", "create"

## Before Starting ANY Complex Task
Use write_todos.
"""


def put(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def skill(tmp_path: Path, trigger: str, description: str = "") -> Skill:
    head = f"---\nname: one\ndescription: {description}\n---\n" if description else ""
    put(tmp_path, "one.md", f"{head}**Trigger**: {trigger}\n\nbody\n" if trigger else f"{head}body\n")
    return load_skills([tmp_path]).skills[0]


def test_the_articles_skill_is_read_with_its_trigger(tmp_path: Path) -> None:
    put(tmp_path, "task-planning.md", PLAN)
    (one,) = load_skills([tmp_path]).skills
    assert one.name == "task-planning"
    assert one.trigger == 'User gives a complex task or asks to "implement", "build", "create"'
    assert one.phrases == ("implement", "build", "create")
    assert one.description == "Task Planning Skill"
    assert one.body == PLAN.strip()


def test_a_folder_with_front_matter_is_read(tmp_path: Path) -> None:
    put(
        tmp_path,
        "sql-review/SKILL.md",
        "---\nname: sql-review\ndescription: Reviews SQL migrations.\n---\n# Steps\n1. Read\n",
    )
    put(tmp_path, "sql-review/helper.md", "not a skill")
    found = load_skills([tmp_path])
    (one,) = found.skills
    assert found.problems == ()
    assert (one.name, one.description, one.body) == ("sql-review", "Reviews SQL migrations.", "# Steps\n1. Read")


@pytest.mark.parametrize(
    ("folder", "head", "words"),
    [
        ("a", "description: d", "has no name"),
        ("a", "name: A\ndescription: d", "must be 1-64 of a-z, 0-9"),
        ("a", "name: a--b\ndescription: d", "must be 1-64"),
        ("a", "name: -a\ndescription: d", "must be 1-64"),
        ("a", "name: b\ndescription: d", "differs from the folder 'a'"),
        ("a" * 65, "name: " + "a" * 65 + "\ndescription: d", "must be 1-64"),
        ("a", "name: a", "has no description"),
        ("a", "name: a\ndescription: " + "d" * 1025, "longer than 1024"),
        ("a", "name: a\ndescription: [x]", "has no description"),
        ("a", "name: [", "line 2 is not valid YAML"),
        ("a", "- name", "key: value"),
    ],
)
def test_front_matter_that_breaks_the_format_is_named_and_the_skill_still_loads(
    folder: str, head: str, words: str, tmp_path: Path
) -> None:
    put(tmp_path, f"{folder}/SKILL.md", f'---\n{head}\n---\n**Trigger**: "x1"\nbody\n')
    found = load_skills([tmp_path])
    assert len(found.skills) == 1
    assert any(words in problem for problem in found.problems), found.problems
    assert all(problem.endswith(".") for problem in found.problems)
    assert len(found.skills[0].name) <= 64
    assert len(found.skills[0].description) <= 1024


def test_faults_of_files_are_named_and_hide_no_other_skill(tmp_path: Path) -> None:
    put(tmp_path, "good.md", PLAN)
    put(tmp_path, "empty.md", " \n")
    put(tmp_path, "silent.md", "just text\n")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / ".hidden.md").write_text("x")
    outside = put(tmp_path.parent, f"{tmp_path.name}-out.md", PLAN)
    (tmp_path / "link.md").symlink_to(outside)
    found = load_skills([tmp_path, tmp_path / "missing"])
    assert [one.name for one in found.skills] == ["good", "silent"]
    text = "\n".join(found.problems)
    assert "bad.md is not loaded: it is written in UTF-16" in text
    assert "empty.md is not loaded: it is empty" in text
    assert "silent.md has no **Trigger**: line" in text
    assert "link.md is not loaded: it is a link" in text
    assert len(found.problems) == 4


def test_the_projects_skill_stands_before_the_users_of_the_same_name(tmp_path: Path) -> None:
    put(tmp_path, "project/plan.md", PLAN)
    put(tmp_path, "user/plan.md", '**Trigger**: "other"\n')
    found = load_skills([tmp_path / "project", tmp_path / "user"])
    assert [one.path.parent.name for one in found.skills] == ["project"]
    assert "user/plan.md is hidden by project/plan.md" in found.problems[0]


@pytest.mark.parametrize(
    ("trigger", "text", "matches"),
    [
        ('"implement", "build", "create"', "Please implement the login", True),
        ('"implement", "build", "create"', "I was implementing it", True),
        ('"implement", "build", "create"', "we built it", True),
        ('"implement", "build", "create"', "BUILDS fail", True),
        ('"implement", "build", "create"', "created yesterday", True),
        ('"implement", "build", "create"', "What is a list?", False),
        ('"implement", "build", "create"', "the builtin print", False),
        ('"implement", "build", "create"', "", False),
        ('"code review"', "do a code review now", True),
        ('"code review"', "review the code", False),
        ('"zaimplementuj", "zbuduj", „utwórz”', "Zaimplementujmy logowanie", True),
        ('"zaimplementuj", "zbuduj", „utwórz”', "chcę zbudować moduł", True),
        ('"zaimplementuj", "zbuduj", „utwórz”', "utworzyć plik", True),
        ('"zaimplementuj", "zbuduj", „utwórz”', "co to jest lista?", False),
        ('"przegląd kodu"', "Po przeglądzie kodu", True),
        ('"przegląd kodu"', "zrób przegląd tego kodu", True),
        ('"przegląd kodu"', "przegladow kodu", True),
        ('"migracja bazy"', "dwie migracje baz danych", True),
        ('"brama"', "nowe bramy", True),
        ("«реализуй», «создай», «рисуй»", "Реализуйте вход", True),
        ("«реализуй», «создай», «рисуй»", "надо реализовать это", True),
        ("«реализуй», «создай», «рисуй»", "создание файла", True),
        ("«реализуй», «создай», «рисуй»", "рисовать схему", True),
        ("«реализуй», «создай», «рисуй»", "как дела?", False),
        ("«ревью кода»", "сделай ревью кода", True),
        ("«миграция базы»", "миграцию базы данных", True),
        ("`SELECT`, `psql`", "run psql please", True),
    ],
)
def test_quoted_words_match_in_any_inflected_form(trigger: str, text: str, matches: bool, tmp_path: Path) -> None:
    one = skill(tmp_path, trigger)
    assert match(text, [one]) == ([one] if matches else [])


def test_a_trigger_without_quotes_needs_two_of_its_words(tmp_path: Path) -> None:
    one = skill(tmp_path, "When the user wants a database migration reviewed")
    assert match("please review the migration", [one]) == [one]
    assert match("I want a migration", [one]) == []
    assert match("the user wants help", [one]) == []
    described = skill(tmp_path, "", "Reviews SQL migrations before they run")
    assert match("can you review my migrations?", [described]) == [described]


def test_the_skill_with_more_words_met_comes_first(tmp_path: Path) -> None:
    put(tmp_path, "a.md", '**Trigger**: "test"\n')
    put(tmp_path, "b.md", '**Trigger**: "write tests", "test"\n')
    put(tmp_path, "c.md", '**Trigger**: "deploy"\n')
    skills = load_skills([tmp_path]).skills
    assert [one.name for one in match("write tests for it", skills)] == ["b", "a"]


def test_the_index_is_one_line_for_each_skill(tmp_path: Path) -> None:
    put(tmp_path, "plan.md", PLAN)
    put(tmp_path, "sql/SKILL.md", "---\nname: sql\ndescription: " + "Long " * 100 + "\n---\nbody\n")
    lines = index_text(load_skills([tmp_path]).skills).split("\n")
    assert lines[0].startswith("- plan: Task Planning Skill (trigger: User gives")
    assert lines[1].startswith("- sql: Long Long")
    assert lines[1].endswith("…")
    assert all(len(line) <= 200 for line in lines)
    assert index_text(()) == ""


@pytest.mark.parametrize(
    "line", ['**Trigger:** "go"', '- **Triggers**: "go"', '**Wyzwalacz**: "go"', "**Триггер**: «go»"]
)
def test_the_trigger_line_may_be_written_in_several_ways(line: str, tmp_path: Path) -> None:
    put(tmp_path, "one.md", f"# T\n\n{line}\n")
    assert load_skills([tmp_path]).skills[0].phrases == ("go",)
