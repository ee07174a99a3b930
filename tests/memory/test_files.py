"""Memory files: exact edits, confined paths, nothing lost, nothing of others overwritten."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.memory.files import EditRefused, EditResult, MemoryFiles, ReadRefused
from tui_agent.memory.textfile import TextFile, TextFileError, digest, read_text, write_text
from tui_agent.project import Project


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Project.open(tmp_path).ensure().memory_dir


@pytest.fixture
def files(root: Path) -> MemoryFiles:
    return MemoryFiles(root, has_secret=lambda text: "hunter" + "2" in text)


def put(root: Path, name: str, data: str | bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


# --- edit_file ------------------------------------------------------------------------------------


def test_an_empty_old_string_creates_the_file_with_exactly_the_text(files: MemoryFiles, root: Path) -> None:
    result = files.edit_file("knowledge/user.md", old_string="", new_string="Name: Kacper\n")
    assert (root / "knowledge/user.md").read_text() == "Name: Kacper\n"
    assert (result.name, result.created, result.changed) == ("knowledge/user.md", True, True)
    assert (result.before, result.after, result.version) == ("", "Name: Kacper\n", "")
    assert result.diff_line == '+ 1 line: "Name: Kacper"'
    assert result.digest == digest(b"Name: Kacper\n")


@pytest.mark.parametrize(
    ("before", "new", "after"),
    [
        ("a\n", "b\n", "a\nb\n"),
        ("a", "b", "a\nb\n"),
        ("a\n\n", "b", "a\n\nb\n"),
        ("", "b", "b\n"),
        ("a\r\n", "b\nc", "a\r\nb\r\nc\r\n"),
        ("a\r\nb", "c\r\n", "a\r\nb\r\nc\r\n"),
    ],
)
def test_an_empty_old_string_appends_at_a_line_of_its_own(
    before: str, new: str, after: str, files: MemoryFiles, root: Path
) -> None:
    path = put(root, "knowledge/user.md", before)
    assert not files.edit_file("knowledge/user.md", "", new).created
    assert path.read_bytes().decode() == after


def test_a_text_that_occurs_once_is_replaced_and_the_rest_stays_byte_for_byte(files: MemoryFiles, root: Path) -> None:
    data = "\ufeffOne\r\ntwo  \nthree\twide\r\n\r\nzażółć ё\u2028x".encode()
    path = put(root, "knowledge/a.md", data)
    path.chmod(0o640)
    files.edit_file("knowledge/a.md", "three\twide", "3\n4")
    assert path.read_bytes() == data.replace(b"three\twide", b"3\r\n4")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_line_ends_of_both_kinds_match_each_other(files: MemoryFiles, root: Path) -> None:
    path = put(root, "knowledge/a.md", "one\r\ntwo\nthree\r\nfour\r\n")
    files.edit_file("knowledge/a.md", "one\ntwo\nthree", "1\n2")
    assert path.read_bytes() == b"1\r\n2\r\nfour\r\n"


def test_a_text_that_does_not_occur_is_refused_with_the_closest_line(files: MemoryFiles, root: Path) -> None:
    path = put(root, "knowledge/a.md", "- Uses pnpm\n- Lives in Kraków\n")
    with pytest.raises(EditRefused, match="does not occur") as caught:
        files.edit_file("knowledge/a.md", "- uses pnpm.", "- Uses npm")
    assert 'closest line is 1: "- Uses pnpm"; it differs only in case' in str(caught.value)
    with pytest.raises(EditRefused, match="Read the file first"):
        files.edit_file("knowledge/a.md", "something else entirely", "x")
    assert path.read_text() == "- Uses pnpm\n- Lives in Kraków\n"


@pytest.mark.parametrize(("text", "old", "times", "lines"), [("x\ny\nx\n", "x", 2, "1, 3"), ("aaa\n", "aa", 2, "1, 1")])
def test_a_text_that_occurs_more_than_once_is_refused_with_the_places(
    text: str, old: str, times: int, lines: str, files: MemoryFiles, root: Path
) -> None:
    path = put(root, "knowledge/a.md", text)
    with pytest.raises(EditRefused) as caught:
        files.edit_file("knowledge/a.md", old, "z")
    assert f"occurs {times} times in knowledge/a.md (lines {lines})" in str(caught.value)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [("x", "x", "already holds exactly"), ("", "", "new_string is empty"), ("", " \n", "new_string is empty")],
)
def test_an_edit_that_changes_nothing_is_refused(
    old: str, new: str, words: str, files: MemoryFiles, root: Path
) -> None:
    put(root, "knowledge/a.md", "x\n")
    with pytest.raises(EditRefused, match=words):
        files.edit_file("knowledge/a.md", old, new)


def test_replacing_in_a_missing_file_says_how_to_create_it(files: MemoryFiles, root: Path) -> None:
    with pytest.raises(EditRefused, match="empty old_string"):
        files.edit_file("knowledge/new.md", "a", "b")
    assert not (root / "knowledge/new.md").exists()


def test_a_text_with_a_secret_is_refused_whole(files: MemoryFiles, root: Path) -> None:
    word = "hunter" + "2"
    with pytest.raises(EditRefused, match="password, key or token"):
        files.edit_file("knowledge/user.md", "", f"Name: Kacper\nPassword: {word}\n")
    assert not (root / "knowledge/user.md").exists()
    put(root, "knowledge/user.md", "hunter-\n")
    with pytest.raises(EditRefused, match="would hold"):
        files.edit_file("knowledge/user.md", "-", "2")
    assert word.encode() not in b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())


def test_a_very_long_text_and_zero_bytes_are_refused(files: MemoryFiles) -> None:
    with pytest.raises(EditRefused, match="grow beyond"):
        files.edit_file("knowledge/a.md", "", "x" * 300_000)
    with pytest.raises(EditRefused, match="zero byte"):
        files.edit_file("knowledge/a.md", "", "a\0b")


# --- places ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("../outside.md", "leads out"), ("knowledge/../../x.md", "leads out"), ("/etc/passwd.md", "absolute"),
        ("~/x.md", "absolute"), ("C:/x.md", "absolute"), ("C:x.md", "absolute"), ("\\\\host\\x.md", "absolute"),
        ("knowledge\\user.md", "parted by /"), ("knowledge/a\0b.md", "character"), ("knowledge/a:b.md", "character"),
        ("knowledge/con.md", "not a name"), ("knowledge/NUL", "not a name"),
        ("knowledge/x./a.md", "not a name"), ("knowledge/.hidden.md", "hidden"), (".git/x.md", "hidden"),
        ("knowledge//a.md", "empty part"), ("", "empty"), ("   ", "empty"),
        ("knowledge/" + "a" * 200 + ".md", "too long"),
        ("knowledge/a/b/c/d/e/f/g.md", "too long"), ("knowledge/\ud800.md", "not valid text"),
        ("notes.md", "not a place for memory"), ("knowledge/a.py", "end in .md"), ("knowledge", "folder"),
        ("rules.md", "only the user"), ("RULES.md", "only the user"), ("knowledge/rules.md", "only the user"),
        ("config.yaml", "settings"), ("facts.json", "program itself"), ("memory.db", "program itself"),
        ("backups/x.md", "program itself"), ("skills/plan.md", "skills are the user's"),
    ],
)  # fmt: skip
def test_a_place_that_is_not_for_memory_is_refused_with_the_reason(
    path: str, words: str, files: MemoryFiles, root: Path, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(EditRefused) as caught:
        files.edit_file(path, "", "x\n")
    assert words in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(EditRefused):
        files.check_path(path)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("./knowledge/user.md", "knowledge/user.md"), (".agent-memory/AGENTS.md", "AGENTS.md"),
        ("agents.md", "AGENTS.md"), (" knowledge/a.md ", "knowledge/a.md"), ("Knowledge/User.md", "knowledge/user.md"),
        ("knowledge/projects/ATLAS.md", "knowledge/projects/atlas.md"), ("knowledge/notatki-łódź.txt", None),
        ("conversations/summaries/2026-11-30.md", None), ("knowledge/stack.yaml", None),
    ],
)  # fmt: skip
def test_one_file_has_one_spelling(given: str, name: str | None, files: MemoryFiles, root: Path) -> None:
    put(root, "knowledge/projects/atlas.md", "x\n")
    assert files.check_path(given) == (name or given)


def test_a_name_in_the_other_unicode_form_is_the_same_file(files: MemoryFiles, root: Path) -> None:
    put(root, "knowledge/zo\u0301łw.md", "x\n")
    files.edit_file("knowledge/żółw.md".replace("ż", "z"), "", "y")
    assert len(list((root / "knowledge").glob("*.md"))) == 1


def test_links_are_never_followed(files: MemoryFiles, root: Path, tmp_path: Path) -> None:
    outside = put(tmp_path, "outside/secret.md", "private\n")
    (root / "knowledge/link.md").symlink_to(outside)
    (root / "knowledge/folder").symlink_to(outside.parent)
    (root / "knowledge/dangling.md").symlink_to(tmp_path / "nowhere.md")
    for path in ("knowledge/link.md", "knowledge/folder/secret.md", "knowledge/dangling.md"):
        with pytest.raises(EditRefused, match="through a link"):
            files.edit_file(path, "", "x\n")
        with pytest.raises(ReadRefused, match="through a link"):
            files.read(path)
    assert outside.read_text() == "private\n"
    assert not (tmp_path / "nowhere.md").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_refused_and_does_not_block(files: MemoryFiles, root: Path) -> None:
    os.mkfifo(root / "knowledge/pipe.md")
    with pytest.raises(EditRefused, match="not a regular file"):
        files.edit_file("knowledge/pipe.md", "", "x\n")


# --- reading --------------------------------------------------------------------------------------


def test_reading_gives_plain_line_ends_and_a_hash(files: MemoryFiles, root: Path) -> None:
    put(root, "knowledge/user.md", "\ufeffa\r\nb\r\n")
    assert files.read("knowledge/user.md") == "a\nb\n"
    file = files.file("KNOWLEDGE/user.md")
    assert (file.name, file.size) == ("knowledge/user.md", 9)
    assert file.digest == digest((root / "knowledge/user.md").read_bytes())
    assert len(file.modified_at) == 19
    assert files.exists("knowledge/user.md")
    assert not files.exists("knowledge/none.md")
    assert not files.exists("../x")


def test_a_missing_file_names_those_that_are_there(files: MemoryFiles, root: Path) -> None:
    put(root, "rules.md", "r\n")
    put(root, "skills/plan/SKILL.md", "s\n")
    put(root, "knowledge/projects/atlas.md", "a\n")
    put(root, "knowledge/.hidden.md", "h\n")
    put(root, "knowledge/image.png", "p")
    assert files.listing() == ["AGENTS.md", "rules.md", "knowledge/projects/atlas.md", "skills/plan/SKILL.md"]
    with pytest.raises(ReadRefused, match=r"no memory file knowledge/none.md. Files there: AGENTS.md, rules.md"):
        files.read("knowledge/none.md")
    assert files.read("rules.md") == "r\n"
    with pytest.raises(ReadRefused, match="is no memory file"):
        files.read("config.yaml")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("ok\nzażółć\n".encode("cp1250"), "line 2 is not UTF-8 text"),
        ("a\n".encode("utf-16"), "UTF-16"),
        (b"a\0b\n", "zero bytes"),
        (b"x" * (1024 * 1024 + 1), "longer than 1024 KB"),
    ],
)
def test_a_file_that_is_no_plain_text_is_left_alone_in_a_sentence(
    data: bytes, words: str, files: MemoryFiles, root: Path
) -> None:
    path = put(root, "knowledge/user.md", data)
    for call in (lambda: files.read("knowledge/user.md"), lambda: files.edit_file("knowledge/user.md", "", "x\n")):
        with pytest.raises(EditRefused, match=words) as caught:
            call()
        assert str(caught.value).endswith(".")
    assert path.read_bytes() == data
    assert [words in problem for problem in files.problems()] == [True]
    assert [file.name for file in files.startup_files()] == ["AGENTS.md"]


def test_the_files_of_the_start_come_in_the_articles_order(files: MemoryFiles, root: Path) -> None:
    put(root, "knowledge/tech-stack.md", "t\n")
    put(root, "knowledge/user.md", "u\n")
    put(root, "knowledge/other.md", "o\n")
    assert [file.name for file in files.startup_files()] == [
        "AGENTS.md",
        "knowledge/user.md",
        "knowledge/tech-stack.md",
    ]
    put(root, "knowledge/user.md", " \n")
    assert [file.name for file in files.startup_files()] == ["AGENTS.md", "knowledge/tech-stack.md"]


# --- nothing lost ---------------------------------------------------------------------------------


def test_an_edit_from_outside_between_reading_and_writing_survives(
    files: MemoryFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(root, "knowledge/user.md", "old\n")
    left = [1]

    def write(target: Path, text: str, before: TextFile | None, announce: object = None) -> str:
        if target == path and left:
            left.pop()
            path.write_text("from the user\n")
        return write_text(target, text, before)

    monkeypatch.setattr("tui_agent.memory.files.write_text", write)
    files.edit_file("knowledge/user.md", "", "from the model\n")
    assert path.read_text() == "from the user\nfrom the model\n"


def test_an_edit_whose_text_was_changed_from_outside_is_refused(
    files: MemoryFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(root, "knowledge/user.md", "old\n")

    def write(target: Path, text: str, before: TextFile | None, announce: object = None) -> str:
        if target == path:
            path.write_text("from the user\n")
        return write_text(target, text, before)

    monkeypatch.setattr("tui_agent.memory.files.write_text", write)
    with pytest.raises(EditRefused, match="does not occur"):
        files.edit_file("knowledge/user.md", "old", "new")
    assert path.read_text() == "from the user\n"


def test_a_file_that_never_stands_still_is_left_alone(
    files: MemoryFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(root, "knowledge/user.md", "0\n")
    count = [0]

    def write(target: Path, text: str, before: TextFile | None, announce: object = None) -> str:
        if target == path:
            count[0] += 1
            path.write_text(f"{count[0]}\n")
        return write_text(target, text, before)

    monkeypatch.setattr("tui_agent.memory.files.write_text", write)
    with pytest.raises(EditRefused, match="another program right now"):
        files.edit_file("knowledge/user.md", "", "x\n")
    assert path.read_text() == f"{count[0]}\n"


def test_a_new_file_never_takes_the_place_of_one_that_just_appeared(root: Path) -> None:
    path = put(root, "knowledge/user.md", "mine\n")
    with pytest.raises(TextFileError, match="someone else"):
        write_text(path, "theirs\n", None)
    assert path.read_text() == "mine\n"


def test_a_write_that_fails_leaves_the_file_and_no_rest(
    files: MemoryFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(root, "knowledge/user.md", "old\n")
    before = sorted(path.parent.iterdir())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(EditRefused, match="No space left on device"):
        files.edit_file("knowledge/user.md", "", "new\n")
    assert path.read_text() == "old\n"
    assert sorted(path.parent.iterdir()) == before


def test_previous_versions_are_kept_in_a_bounded_number_and_come_back(root: Path) -> None:
    files = MemoryFiles(root, keep_versions=3)
    for number in range(6):
        result = files.edit_file("knowledge/user.md", "", f"line {number}\n")
    versions = files.versions("knowledge/user.md")
    assert [version.path.read_text().count("\n") for version in versions] == [5, 4, 3]
    assert result.version == versions[0].id
    assert all(version.size and len(version.saved_at) == 19 for version in versions)
    assert versions[0].path.is_relative_to(root / "backups" / "files")
    files.restore("knowledge/user.md", versions[2].id)
    assert files.read("knowledge/user.md") == "line 0\nline 1\nline 2\n"
    assert files.versions("knowledge/user.md")[0].path.read_text().count("\n") == 6
    with pytest.raises(EditRefused, match="no kept version"):
        files.restore("knowledge/user.md", "nothing")


def test_an_edit_can_be_taken_back_unless_the_file_changed_since(files: MemoryFiles, root: Path) -> None:
    made = files.edit_file("knowledge/user.md", "", "Name: Kacper\n")
    added = files.edit_file("knowledge/user.md", "", "City: Łódź\n")
    assert not files.revert(made)
    assert files.revert(added)
    assert files.read("knowledge/user.md") == "Name: Kacper\n"
    assert files.revert(made)
    assert not (root / "knowledge/user.md").exists()
    assert files.versions("knowledge/user.md")[0].path.read_text() == "Name: Kacper\n"
    assert not files.revert(added)


def test_every_write_is_announced_before_it_happens(root: Path) -> None:
    heard: list[tuple[Path, str, bool]] = []
    files = MemoryFiles(root)
    files.announce = lambda path, content: heard.append((path, content, path.exists()))
    result = files.edit_file("knowledge/user.md", "", "a\n")
    assert heard == [(root / "knowledge/user.md", result.digest, False)]


def test_two_processes_that_append_lose_no_line(root: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tui_agent.memory.files import MemoryFiles\n"
        "files = MemoryFiles(Path(sys.argv[1]), keep_versions=2)\n"
        "for n in range(25): files.append_line('AGENTS.md', 'User Preferences', f'- {sys.argv[2]} {n}')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(root), name]) for name in ("one", "two")]
    assert [process.wait(60) for process in running] == [0, 0]
    lines = MemoryFiles(root).lines("AGENTS.md", "User Preferences")
    assert sorted(lines) == sorted(f"- {name} {n}" for name in ("one", "two") for n in range(25))


def test_a_memory_folder_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(EditRefused, match="is gone"):
        MemoryFiles(tmp_path / "nowhere").edit_file("knowledge/user.md", "", "x\n")


# --- single lines ---------------------------------------------------------------------------------


def test_a_line_goes_under_its_heading_and_nothing_else_moves(files: MemoryFiles, root: Path) -> None:
    before = (root / "AGENTS.md").read_text()
    result = files.append_line("AGENTS.md", "User Preferences", "- Prefers pnpm")
    after = (root / "AGENTS.md").read_text()
    assert after == before.replace("## User Preferences\n", "## User Preferences\n\n- Prefers pnpm\n")
    assert result == EditResult(
        "AGENTS.md", root / "AGENTS.md", False, True, '+ 1 line: "Prefers pnpm"', before, after,
        digest(after.encode()), result.version,
    )  # fmt: skip
    files.append_line("AGENTS.md", "User Preferences", "- Short answers")
    assert files.lines("AGENTS.md", "User Preferences") == ["- Prefers pnpm", "- Short answers"]
    files.append_line("AGENTS.md", "Learned Behaviors", "- No apologies")
    assert (root / "AGENTS.md").read_text().endswith("## Learned Behaviors\n\n- No apologies\n")


def test_a_line_that_is_there_already_is_not_written_again(files: MemoryFiles, root: Path) -> None:
    files.append_line("AGENTS.md", "User Preferences", "- Prefers pnpm.")
    again = files.append_line("AGENTS.md", "User Preferences", "* prefers  PNPM")
    assert not again.changed
    assert again.before == again.after
    assert files.has_line("AGENTS.md", "User Preferences", "prefers pnpm")
    assert not files.has_line("AGENTS.md", "Learned Behaviors", "prefers pnpm")
    assert files.append_line("AGENTS.md", "Learned Behaviors", "- Prefers pnpm").changed


def test_file_and_section_are_made_when_missing(files: MemoryFiles, root: Path) -> None:
    assert files.append_line("knowledge/user.md", "", "Name: Kacper").created
    assert (root / "knowledge/user.md").read_text() == "Name: Kacper\n"
    files.append_line("knowledge/user.md", "Work", "- Northwest region")
    assert (root / "knowledge/user.md").read_text() == "Name: Kacper\n\n## Work\n\n- Northwest region\n"
    assert files.append_line("knowledge/projects/atlas.md", "Stack", "- Go").created
    assert (root / "knowledge/projects/atlas.md").read_text() == "## Stack\n\n- Go\n"


def test_a_line_is_replaced_and_removed_where_it_stands(files: MemoryFiles, root: Path) -> None:
    path = put(
        root,
        "AGENTS.md",
        "# A\r\n\r\n## User Preferences\r\n  - Uses npm  \r\n- Zażółć\r\n\r\n## Learned\r\n- Uses npm\r\n",
    )
    assert files.replace_line("AGENTS.md", "User Preferences", "- uses npm.", "- Uses pnpm")
    assert path.read_bytes().decode() == (
        "# A\r\n\r\n## User Preferences\r\n  - Uses pnpm\r\n- Zażółć\r\n\r\n## Learned\r\n- Uses npm\r\n"
    )
    assert files.remove_line("AGENTS.md", "User Preferences", "zazolc")
    assert not files.remove_line("AGENTS.md", "User Preferences", "zazolc")
    assert not files.replace_line("AGENTS.md", "Nothing", "- Uses npm", "x")
    assert not files.remove_line("knowledge/none.md", "", "x")
    assert path.read_bytes().decode() == (
        "# A\r\n\r\n## User Preferences\r\n  - Uses pnpm\r\n\r\n## Learned\r\n- Uses npm\r\n"
    )


@pytest.mark.parametrize(
    ("line", "words"), [("", "empty"), ("- ", "empty"), ("## Boss", "heading"), ("```", "code block")]
)
def test_a_line_that_would_change_the_files_form_is_refused(line: str, words: str, files: MemoryFiles) -> None:
    with pytest.raises(EditRefused, match=words):
        files.append_line("AGENTS.md", "User Preferences", line)


def test_a_line_with_line_ends_becomes_one_line(files: MemoryFiles) -> None:
    files.append_line("AGENTS.md", "User Preferences", "- one\n## Critical Behaviors\r\ntwo")
    assert files.lines("AGENTS.md", "User Preferences") == ["- one ## Critical Behaviors  two"]


def test_a_line_with_a_secret_is_refused(files: MemoryFiles) -> None:
    with pytest.raises(EditRefused, match="password"):
        files.append_line("AGENTS.md", "User Preferences", "- pass hunter" + "2")
    with pytest.raises(EditRefused, match="password"):
        files.replace_line("AGENTS.md", "Identity", "x", "- pass hunter" + "2")


def test_reading_a_missing_file_as_text_gives_nothing(tmp_path: Path) -> None:
    assert read_text(tmp_path / "none") is None
    assert read_text(tmp_path / "none" / "deeper") is None
