"""Private by default; shared on request, after a look for secrets and personal data; never the user's own notes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory.world import USER, World
from tui_agent.memory import sharing
from tui_agent.memory.personal import personal_data
from tui_agent.memory.sharing import SHARED_BLOCK, scan, share, sharing_state, unshare
from tui_agent.project import GITIGNORE

TEAM = ("AGENTS.md", "facts.json", "knowledge/projects/shop.md", "knowledge/tech-stack.md")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World.make(tmp_path)
    made.stores.files.edit_file("knowledge/tech-stack.md", "", "- Python 3.12")
    made.stores.files.edit_file("knowledge/projects/shop.md", "", "- The shop sells lamps.")
    made.stores.files.edit_file(USER, "", "- I prefer tea.")
    made.project.rules_path.write_text("- tests first\n", encoding="utf-8")
    made.remember("Data access goes through repositories.")
    yield made
    made.stores.close()


def git(world: World, *arguments: str) -> str:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(world.root), *arguments], check=True, env=env, capture_output=True, text=True
    )
    return done.stdout


def would_add(world: World) -> set[str]:
    """What `git add .` would take of the memory folder, asked of git itself."""
    git(world, "init", "-q")
    listed = git(world, "add", "--dry-run", "--all", ".").splitlines()
    return {line.removeprefix("add '.agent-memory/").rstrip("'") for line in listed if ".agent-memory/" in line}


def test_private_is_the_default_and_git_agrees(world: World) -> None:
    state = sharing_state(world.project)
    assert (state.mode, state.git, set(state.files)) == ("private", False, {".gitignore", "rules.md"})
    assert would_add(world) == set(state.files)
    assert sharing_state(world.project).git


def test_shared_lets_git_take_the_teams_part_and_nothing_else(world: World) -> None:
    state = share(world.project)
    assert (state.mode, set(state.files)) == ("shared", {".gitignore", "rules.md", *TEAM})
    assert would_add(world) == set(state.files)
    assert USER not in state.files


def test_private_again_is_as_before_and_names_what_git_has(world: World) -> None:
    before = world.text(".gitignore")
    share(world.project)
    git(world, "init", "-q")
    git(world, "add", ".")
    state = unshare(world.project)
    assert (state.mode, world.text(".gitignore")) == ("private", before)
    assert any("AGENTS.md" in note and "git rm --cached" in note for note in state.notes)
    assert unshare(world.project).mode == "private"


def test_lines_of_the_user_in_gitignore_stay(world: World) -> None:
    path = world.memory_dir / ".gitignore"
    path.write_text(GITIGNORE + "!notes-for-all.md\n", encoding="utf-8")
    share(world.project)
    share(world.project)
    assert world.text(".gitignore") == GITIGNORE + "!notes-for-all.md\n" + SHARED_BLOCK
    unshare(world.project)
    assert world.text(".gitignore") == GITIGNORE + "!notes-for-all.md\n"


def test_a_gitignore_that_lets_everything_through_is_no_ground_to_build_on(world: World) -> None:
    (world.memory_dir / ".gitignore").write_text("", encoding="utf-8")
    assert sharing_state(world.project).mode == "custom"
    assert any("your own notes" in note for note in sharing_state(world.project).notes)
    assert share(world.project).mode == "shared"
    assert USER not in would_add(world)


def test_a_gitignore_edited_by_hand_is_called_custom(world: World) -> None:
    (world.memory_dir / ".gitignore").write_text(GITIGNORE + "!knowledge/\n!knowledge/**\n", encoding="utf-8")
    state = sharing_state(world.project)
    assert state.mode == "custom"
    assert USER in state.files


def test_a_gitignore_edited_by_hand_is_not_taken_for_private(world: World) -> None:
    path = world.memory_dir / ".gitignore"
    path.write_text(GITIGNORE + "!knowledge/\n!knowledge/**\n", encoding="utf-8")
    state = unshare(world.project)
    assert state.mode == "custom"
    assert any("left as it is" in note for note in state.notes)
    path.unlink()
    assert unshare(world.project).mode == "private"


def test_the_name_of_a_skill_is_no_personal_data(world: World) -> None:
    skill = world.memory_dir / "skills/release/SKILL.md"
    skill.parent.mkdir(parents=True, exist_ok=True)
    skill.write_text("---\nname: release\ndescription: how we release\n---\n", encoding="utf-8")
    assert scan(world.stores).concerns == []


def test_a_folder_that_the_project_ignores_as_a_whole_shares_nothing(world: World) -> None:
    git(world, "init", "-q")
    (world.root / ".gitignore").write_text(".agent-memory\n", encoding="utf-8")
    state = share(world.project)
    assert state.files == ()
    assert any("leaves the whole folder out" in note for note in state.notes)


def test_without_git_the_programs_own_lines_are_known_and_others_count_as_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_run_git", lambda *_, **__: None)
    assert set(sharing_state(world.project).files) == {".gitignore", "rules.md"}
    assert set(share(world.project).files) == {".gitignore", "rules.md", *TEAM}
    (world.memory_dir / ".gitignore").write_text("!something\n", encoding="utf-8")
    assert USER in sharing_state(world.project).files


# --- the look before ------------------------------------------------------------------------------


def test_a_secret_in_what_would_be_shared_is_found_and_covered(world: World) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    (world.memory_dir / "knowledge/tech-stack.md").write_text(f"- Python 3.12\n- token: {token}\n", encoding="utf-8")
    found = scan(world.stores)
    (secret,) = found.secrets
    assert (secret.file, secret.line) == ("knowledge/tech-stack.md", 2)
    assert token not in secret.excerpt
    assert found.concerns[0] is secret


def test_personal_lines_and_facts_are_named_with_their_place(world: World) -> None:
    world.remember("My name is Kacper.")
    world.remember("My name is Maja.", target=USER)  # not in the file, so it cannot be shared
    world.stores.files.append_line("AGENTS.md", "User Preferences", "- short answers")
    world.stores.files.append_line("knowledge/projects/shop.md", "", "- Ask anna.nowak@example.org")
    places = [(concern.file, concern.kind) for concern in scan(world.stores).concerns]
    assert [place for place in places if place[0] == "facts.json"] == [("facts.json", "name")]
    assert ("AGENTS.md", "preference of yours") in places
    assert ("knowledge/projects/shop.md", "e-mail address") in places
    excerpts = " ".join(concern.excerpt for concern in scan(world.stores).concerns)
    assert "anna.nowak@example.org" not in excerpts


def test_notes_about_the_user_are_not_looked_at_because_they_are_never_shared(world: World) -> None:
    world.stores.files.append_line(USER, "", "- call me on +48 601 234 567")
    assert USER not in scan(world.stores).files
    assert not any(concern.kind == "telephone number" for concern in scan(world.stores).concerns)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("write to anna.nowak+x@mail.example.org", ["e-mail address"]),
        ("call +48 601 234 567 or 601-234-567", ["telephone number", "telephone number"]),
        ("звоните +7 (912) 345-67-89", ["telephone number"]),
        ("card 4111 1111 1111 1111", ["payment card"]),
        ("konto PL61 1090 1014 0000 0712 1981 2874", ["bank account"]),
        ("PESEL 44051401359", ["PESEL number"]),
        ("My name is Kacper", ["name"]),
        ("Mam na imię Zofia", ["name"]),
        ("Меня зовут Анна", ["name"]),
        ("Imię: Łukasz", ["name"]),
        ("files in /home/kacper/src", ["home folder"]),
        ("mieszka przy ul. Długiej 12", ["postal address"]),
        ("urodzony 3 maja 1990", ["date of birth"]),
        ("she is allergic to nuts", ["health"]),
    ],
)
def test_shapes_of_personal_data_are_seen(text: str, kinds: list[str]) -> None:
    assert [one.kind for one in personal_data(text)] == kinds


@pytest.mark.parametrize(
    "text",
    [
        "Python 3.12.1 and Postgres 16",
        "released 2026-05-02, reviewed 02.05.2026 10:00",
        "commit 44051401358 is not a person",
        "order 4111 1111 1111 1112 fails its check digit",
        "bind to 127.0.0.1:11434, window 8192",
        "git@github.com and user@host are not mailboxes here",
        "The name of the table is orders.",
        "version 1.2.3-4.5.6 of 2026 10 12",
        "sha1 da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "Data access goes through repositories.",
    ],
)
def test_ordinary_project_text_is_not_personal(text: str) -> None:
    assert [one.kind for one in personal_data(text) if "@" not in text] == []
