"""The project's identity, layout and list of paths."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.project import AGENTS_MD, Project, ProjectError, UserPaths, project_id


def sha12(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()[:12]


def git(*args: str, cwd: Path) -> None:
    subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True)


def repo(path: Path, remote: str | None) -> Path:
    path.mkdir()
    git("init", "-q", cwd=path)
    if remote is not None:
        git("remote", "add", "origin", remote, cwd=path)
    return path


def test_the_id_is_the_hash_of_the_remote_without_its_newline(tmp_path: Path) -> None:
    folder = repo(tmp_path / "a", "https://example.org/parcel.git")
    assert project_id(folder) == sha12("https://example.org/parcel.git")
    assert project_id(str(folder)) == project_id(folder)


def test_without_a_remote_the_id_is_the_hash_of_the_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repo(tmp_path / "a", None)
    assert project_id(folder) == sha12(str(folder))
    monkeypatch.chdir(folder)
    assert project_id() == project_id(".") == sha12(str(folder))


def test_two_projects_have_two_ids_and_one_project_has_one_in_every_process(tmp_path: Path) -> None:
    one = repo(tmp_path / "one", "git@example.org:team/one.git")
    two = repo(tmp_path / "two", "git@example.org:team/two.git")
    assert project_id(one) != project_id(two)
    code = "import sys; from tui_agent.project import project_id; print(project_id(sys.argv[1]))"
    elsewhere = subprocess.run([sys.executable, "-c", code, str(one)], cwd=tmp_path, capture_output=True, check=True)
    assert elsewhere.stdout.decode().strip() == project_id(one)


def test_a_missing_git_program_falls_back_to_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert project_id(tmp_path) == sha12(str(tmp_path))


@pytest.mark.parametrize("path", ["no/such/folder", "", "a\0b", "-x", "~nobody/x", "\udcff"])
def test_the_id_never_raises(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = project_id(path)
    assert len(found) == 12
    assert set(found) <= set("0123456789abcdef")


def test_the_id_survives_a_deleted_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert len(project_id(".")) == 12


def test_git_variables_of_a_hook_do_not_change_whose_id_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = repo(tmp_path / "one", "https://example.org/one")
    two = repo(tmp_path / "two", "https://example.org/two")
    monkeypatch.setenv("GIT_DIR", str(two / ".git"))
    assert project_id(one) == sha12("https://example.org/one")


def test_credentials_in_the_remote_appear_nowhere(tmp_path: Path) -> None:
    token = "tok" + "en" * 8
    folder = repo(tmp_path / "a", f"https://user:{token}@example.org/a.git")
    project = Project.open(folder).ensure()
    assert token not in repr(project)
    written = b"".join(path.read_bytes() for path in project.memory_dir.rglob("*") if path.is_file())
    assert token.encode() not in written


def test_a_project_reached_through_a_link_is_the_same_project(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    link = tmp_path / "link"
    link.symlink_to(real)
    assert Project.open(link) == Project.open(real)
    assert Project.open(link).root == real


def test_opening_searches_no_parent_and_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / ".agent-memory").mkdir()
    inner = tmp_path / "inner"
    inner.mkdir()
    project = Project.open(inner)
    assert project.memory_dir == inner / ".agent-memory"
    assert project.name == "inner"
    assert list(inner.iterdir()) == []


@pytest.mark.parametrize(("path", "words"), [("file.txt", "is a file"), ("nowhere", "no folder"), ("a\0b", "cannot")])
def test_what_is_not_a_folder_is_refused_in_a_sentence(
    path: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProjectError, match=words) as caught:
        Project.open(path)
    assert str(caught.value).endswith(".")


def test_the_layout_is_created_once_and_existing_files_are_left_alone(tmp_path: Path) -> None:
    project = Project.open(tmp_path).ensure()
    for folder in ("knowledge/projects", "skills", "conversations/summaries"):
        assert (project.memory_dir / folder).is_dir()
    text = project.agents_path.read_text(encoding="utf-8")
    assert text == AGENTS_MD
    for heading in ("## Identity", "## Critical Behaviors", "## User Preferences", "## Learned Behaviors"):
        assert heading in text
    project.agents_path.write_text("mine\n")
    (project.memory_dir / ".gitignore").write_text("# mine\n")
    project.ensure()
    assert project.agents_path.read_text() == "mine\n"
    assert (project.memory_dir / ".gitignore").read_text() == "# mine\n"


def test_git_sees_only_rules_skills_and_the_ignore_file(tmp_path: Path) -> None:
    project = Project.open(repo(tmp_path / "a", None)).ensure()
    for name in ("rules.md", "skills/plan.md", "skills/sql/SKILL.md", "knowledge/user.md", "memory.db", "config.yaml",
                 "facts.json", "conversations/summaries/one.md", "logs/app.log"):  # fmt: skip
        path = project.memory_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    done = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"], cwd=project.root, capture_output=True, check=True
    )
    assert sorted(done.stdout.decode().split()) == [
        ".agent-memory/.gitignore",
        ".agent-memory/rules.md",
        ".agent-memory/skills/plan.md",
        ".agent-memory/skills/sql/SKILL.md",
    ]


def test_a_memory_folder_that_is_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".agent-memory").symlink_to(elsewhere)
    with pytest.raises(ProjectError, match="is a link"):
        Project.open(linked).ensure()
    assert list(elsewhere.iterdir()) == []
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / ".agent-memory").write_text("")
    with pytest.raises(ProjectError, match="in the way"):
        Project.open(blocked).ensure()


def test_every_path_the_program_writes_is_listed_with_its_purpose(tmp_path: Path) -> None:
    project = Project.open(tmp_path).ensure()
    owned = project.owned_paths()
    listed = {row.path for row in owned}
    inside = listed - {project.memory_dir}
    for path in project.memory_dir.rglob("*"):
        if path != project.skills_dir:  # made as an empty place; only the user writes there
            assert any(path == one or one in path.parents or path in one.parents for one in inside), path
    assert project.db_path in listed
    assert project.backups_dir in listed
    assert all(row.purpose and row.scope == "project" for row in owned)


def test_one_variable_moves_all_user_folders_and_they_are_private(tmp_path: Path) -> None:
    home = tmp_path / "portable"
    paths = UserPaths.find({"TUI_AGENT_HOME": str(home)}).ensure()
    for folder in (paths.config, paths.data, paths.state, paths.cache, home):
        assert folder == home or folder.parent == home
        if os.name == "posix":
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert paths.config_path == home / "config" / "config.yaml"
    assert all(home in row.path.parents and row.scope == "user" for row in paths.owned_paths())


def test_without_the_variable_the_platform_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "cfg"))
    paths = UserPaths.find({})
    assert paths.config.name == "tui-agent" or "tui-agent" in str(paths.config)
    if sys.platform == "linux":
        assert paths.config == tmp_path / "cfg" / "tui-agent"
    assert paths.config.is_absolute()


def test_user_folders_that_cannot_be_made_are_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProjectError, match="TUI_AGENT_HOME"):
        UserPaths.find({"TUI_AGENT_HOME": str(tmp_path / "file" / "x")}).ensure()
