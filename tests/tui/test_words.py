"""The small pure parts: words, prompts, queue, attachments, commands, clipboard."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui_agent.copies import tidy_copies
from tui_agent.project import UserPaths
from tui_agent.tui import clipboard, commands, text
from tui_agent.tui.attachments import Attachment, is_large, with_attachments
from tui_agent.tui.prompts import PromptHistory, Queue


@given(st.text(), st.integers(0, 40))
def test_fit_is_exactly_as_wide_as_asked(value: str, width: int) -> None:
    line = text.one_line(value)
    assert cell_len(text.fit(line, width)) == width


@given(st.text())
def test_clean_text_has_nothing_a_terminal_obeys(value: str) -> None:
    obeyed = {*range(32), *range(0x7F, 0xA0), *range(0x202A, 0x202F)} - {ord("\n"), ord("\t")}
    assert not obeyed & set(map(ord, text.clean(value)))


def test_an_escape_sequence_is_shown_not_sent() -> None:
    assert text.clean("a\x1b[2Jb\x07") == "a␛[2Jb␇"


@given(st.floats(0, 10), st.floats(0.1, 10), st.integers(1, 30))
def test_a_bar_is_as_wide_as_asked(value: float, full: float, width: int) -> None:
    assert len(text.bar(value, full, width)) == width


@pytest.mark.parametrize(
    ("when", "shown"),
    [("2026-11-30 09:41:00", "09:41"), ("2026-08-15 10:00:00", "08-15"), ("2024-01-01 00:00:00", " 2024"), ("", "")],
)
def test_stamps_take_five_cells(when: str, shown: str) -> None:
    assert text.stamp(when) == shown


def test_counts_are_written_short() -> None:
    assert [text.kilo(n) for n in (0, 812, 3134, 128_000)] == ["0", "812", "3.1k", "128k"]
    assert [text.window(n) for n in (8192, 32768, 5000)] == ["8k", "32k", "5.0k"]
    assert text.plural(1, "answer") == "1 answer"
    assert text.plural(2, "near miss", "near misses") == "2 near misses"


def test_arguments_of_a_call_are_one_line() -> None:
    assert text.arguments({"query": "direct\nSQL"}) == '"direct SQL"'
    assert text.arguments({"a": 1, "b": "x"}) == 'a=1, b="x"'
    assert len(text.arguments({"q": "y" * 500}, 40)) == 40


def test_days_since_counts_whole_days() -> None:
    assert text.days_since("2026-05-11 10:00:00") == 202
    assert text.days_since("yesterday") is None


# -- prompts and queue -----------------------------------------------------------------------------------------


def test_up_and_down_walk_the_prompts_and_come_back_to_what_was_written() -> None:
    prompts = PromptHistory(["one", "two"])
    assert prompts.older("draft") == "two"
    assert prompts.older("two") == "one"
    assert prompts.older("one") is None
    assert prompts.newer("one") == "two"
    assert prompts.newer("two") == "draft"
    assert prompts.newer("draft") is None


def test_an_edited_prompt_is_the_draft_when_walking_again() -> None:
    prompts = PromptHistory(["one", "two"])
    prompts.older("")
    assert prompts.older("two, edited") == "two"
    assert prompts.newer("two") == "two, edited"


def test_a_repeated_prompt_is_kept_once() -> None:
    prompts = PromptHistory(["same"])
    prompts.add("same")
    prompts.add("")
    assert prompts.prompts == ["same"]


def test_the_queue_sends_in_order_and_gives_back_the_last() -> None:
    queue = Queue()
    for message in ("a", "b", "c"):
        queue.add(message)
    assert queue.take_back() == "c"
    assert queue.next() == "a"
    assert queue.take_all() == "b"
    assert queue.next() is None


# -- attachments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paste", "large"),
    [("short", False), ("x" * 20_001, True), ("y" * 5_001, True), ("line\n" * 3_000, False)],
    ids=["short", "long", "long line", "many lines"],
)
def test_a_paste_is_large_by_size_or_by_line(paste: str, large: bool) -> None:
    assert is_large(paste) is large


def test_a_chip_tells_size_lines_tokens_and_the_first_words() -> None:
    chip = Attachment(1, "first words\n" + "x" * 36_000).chip
    assert chip.startswith("paste 1 · 36 kB · 2 lines · about 10.0k tokens · “first words")


def test_an_attachment_is_sent_word_for_word() -> None:
    assert with_attachments("look", [Attachment(2, " raw\n")]) == "look\n\n[paste 2]\n raw\n"


# -- commands --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["/etc/hosts is broken", "text /goal", "/goal one\ntwo", "/", "/2 is half"])
def test_what_is_not_a_command_is_a_message(line: str) -> None:
    assert commands.read(line) is None


def test_a_command_has_a_name_and_an_argument() -> None:
    assert commands.read("  /Goal  fix  retry ") == ("goal", "fix  retry")
    assert commands.read("/memory") == ("memory", "")


def test_completions_are_the_commands_that_fit() -> None:
    assert [command.name for command in commands.complete("/mo")] == ["model"]
    assert len(commands.complete("/")) == len(commands.COMMANDS)
    assert commands.complete("/goal x") == []


# -- clipboard -------------------------------------------------------------------------------------------------


def test_osc52_is_wrapped_for_tmux_and_screen() -> None:
    plain = clipboard.osc52("hej ł", {})
    assert base64.b64decode(plain.removeprefix("\x1b]52;c;").removesuffix("\x07")).decode() == "hej ł"
    assert clipboard.osc52("x", {"TMUX": "1"}).startswith("\x1bPtmux;\x1b\x1b]52")
    assert clipboard.osc52("x", {"TERM": "screen-256color"}).startswith("\x1bP\x1b]52")


async def test_a_text_too_long_for_the_terminal_goes_to_a_file_of_the_app_and_is_said(tmp_path: Path) -> None:
    written: list[str] = []
    copied = await clipboard.copy("x" * 80_000, written.append, {}, tmp_path / "copies")
    assert written == []
    file = Path(copied.file)
    assert file.parent == tmp_path / "copies"
    assert (file.read_text("utf-8"), file.stat().st_mode & 0o777) == ("x" * 80_000, 0o600)
    assert copied.file in clipboard.sentence(copied, "the answer")


async def test_without_a_folder_of_its_own_it_is_where_the_app_lists_its_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path))
    copied = await clipboard.copy("x" * 80_000, [].append, {})
    paths = UserPaths.find()
    assert Path(copied.file).parent == paths.copies_dir
    assert paths.copies_dir in {owned.path for owned in paths.owned_paths()}


async def test_a_secret_in_a_long_copy_is_not_written_to_the_disk(tmp_path: Path) -> None:
    secret = "gl" + "pat-" + "w8RkXoZ2t5LmQv1NcY7d"
    copied = await clipboard.copy(f"token: {secret}\n" + "words " * 20_000, [].append, {}, tmp_path)
    assert secret not in Path(copied.file).read_text("utf-8")
    assert "without what looks like a password" in clipboard.sentence(copied, "the answer")


async def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_raised(tmp_path: Path) -> None:
    (tmp_path / "copies").write_text("a file in the way", "utf-8")
    copied = await clipboard.copy("x" * 80_000, [].append, {}, tmp_path / "copies")
    assert copied.file == ""
    assert str(tmp_path / "copies") in clipboard.sentence(copied, "the answer")


async def test_copies_are_gone_when_the_window_is_closed_and_those_of_killed_ones_at_the_next_start(
    tmp_path: Path,
) -> None:
    own = Path((await clipboard.copy("x" * 80_000, [].append, {}, tmp_path)).file)
    killed, other, foreign = (tmp_path / name for name in ("copy-99999999-a.txt", "copy-1-b.txt", "notes.txt"))
    for path in (killed, other, foreign):
        path.write_text("text", "utf-8")
    tidy_copies(tmp_path)
    assert [path.exists() for path in (own, killed, other, foreign)] == [True, False, True, True]
    tidy_copies(tmp_path, closing=True)
    assert [path.exists() for path in (own, other, foreign)] == [False, True, True]


async def test_a_copy_through_the_terminal_says_that_it_may_not_arrive() -> None:
    written: list[str] = []
    copied = await clipboard.copy("x", written.append, {})
    assert len(written) == 1
    assert "through the terminal" in clipboard.sentence(copied, "the answer")


def test_a_score_that_rounds_to_nothing_has_no_sign() -> None:
    assert [text.decimals(value) for value in (-0.001, 0.004, -0.01, 0.531)] == ["0.00", "0.00", "-0.01", "0.53"]
