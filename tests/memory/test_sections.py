"""Lines in sections of Markdown, and one-line differences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.memory.sections import drop_line, has_line, insert_line, line_diff, section_lines, statement, swap_line

TEXT = "# T\n\n## A\n\nprose\n\n- one\n- two\n\n### Sub\n\n- three\n\n## B ##\n- four\n"


@pytest.mark.parametrize(
    ("text", "section", "line", "after"),
    [
        (TEXT, "A", "- new", TEXT.replace("- two\n", "- two\n- new\n")),
        (TEXT, "b", "- new", TEXT + "- new\n"),
        (TEXT, "Sub", "- new", TEXT.replace("- three\n", "- three\n- new\n")),
        (TEXT, "C", "x", TEXT + "\n## C\n\nx\n"),
        ("## A\n## B\n", "A", "x", "## A\n\nx\n\n## B\n"),
        ("## A\n\n## B\n", "A", "x", "## A\n\nx\n\n## B\n"),
        ("## A\n\n\n## B\n", "A", "x", "## A\n\nx\n\n## B\n"),
        ("## A", "A", "x", "## A\n\nx\n"),
        ("## A\n", "A", "x", "## A\n\nx\n"),
        ("## A\n\n", "A", "x", "## A\n\nx\n"),
        ("## A\nprose", "A", "- x", "## A\nprose\n\n- x\n"),
        ("## A\n- a", "A", "- x", "## A\n- a\n- x\n"),
        ("", "A", "x", "## A\n\nx\n"),
        ("p", "A", "x", "p\n\n## A\n\nx\n"),
        ("p\n\n", "A", "x", "p\n\n## A\n\nx\n"),
        ("", "", "x", "x\n"),
        ("a", "", "x", "a\nx\n"),
        ("a\n\n\n", "", "x", "a\nx\n\n\n"),
        ("```\n## A\n```\n", "A", "x", "```\n## A\n```\n\n## A\n\nx\n"),
        ("## A\n```\n## B\n```\n## B\n", "A", "x", "## A\n```\n## B\n```\nx\n## B\n"),
    ],
)
def test_a_line_is_inserted_at_the_end_of_its_section(text: str, section: str, line: str, after: str) -> None:
    assert insert_line(text, section, line) == after


@given(st.text("#ab- \n`\r", max_size=60), st.sampled_from(["", "A", "B"]))
def test_inserting_and_dropping_a_line_adds_and_takes_only_that_line(text: str, section: str) -> None:
    line = "- the new statement"
    after = insert_line(text, section, line)
    assert has_line(after, section, line) or "`" in text
    without = after.replace(line + "\n", "", 1)
    assert without.replace("\n", "").startswith(text.replace("\n", "")[:1])
    for kept in text.split("\n"):
        assert kept in without
    dropped = drop_line(after, section, line)
    if dropped is not None:
        assert line not in dropped


def test_a_section_ends_at_the_next_heading_of_any_level() -> None:
    assert section_lines(TEXT, "A") == ["prose", "- one", "- two"]
    assert section_lines(TEXT, "sub") == ["- three"]
    assert section_lines(TEXT) == ["prose", "- one", "- two", "- three", "- four"]
    assert section_lines(TEXT, "missing") == []
    assert section_lines("", "") == []


def test_lines_are_compared_by_what_they_say() -> None:
    assert statement("  - [x] Zażółć  „Gęślą”. ") == statement('zazolc "gesla"')
    assert swap_line(TEXT, "A", "* ONE", "- 1") == TEXT.replace("- one", "- 1")
    assert swap_line(TEXT, "B", "- one", "- 1") is None
    assert drop_line(TEXT, "A", "two") == TEXT.replace("- two\n", "")
    assert drop_line("a\nlast", "", "last") == "a\n"
    assert drop_line("a\n", "", "...") is None


def test_an_exact_line_is_preferred_to_one_that_says_the_same() -> None:
    assert drop_line("- One\n- one\n", "", "- one") == "- One\n"


def test_lines_in_code_are_not_statements() -> None:
    assert drop_line("```\nx\n```\nx\n", "", "x") == "```\nx\n```\n"


def test_separators_that_are_no_line_ends_stay_in_their_line() -> None:
    text = "a\u2028b\n- c\x0cd\n"
    assert section_lines(text) == ["a\u2028b", "- c\x0cd"]
    assert drop_line(text, "", "c d") == "a\u2028b\n"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("", "a", '+ 1 line: "a"'),
        ("a\nb", "a", '− 1 line: "b"'),
        ("- a\n", "- b\n", '+ 1 line: "b"  − 1 line: "a"'),
        ("", "a\nb\nc\nd", '+ 4 lines: "a"; "b"; "c"'),
        ("a\n\nb", "a  \nb\n", ""),
        ("a\nb", "b\na", "lines moved"),
        ("a", "a\na", '+ 1 line: "a"'),
        ("", "a\x1b[31mb\u202ec", '+ 1 line: "a [31mb c"'),
    ],
)
def test_a_difference_is_one_plain_line(old: str, new: str, line: str) -> None:
    assert line_diff(old, new) == line


def test_a_long_difference_is_cut() -> None:
    shown = line_diff("x" * 500, "y" * 500, width=60)
    assert len(shown) <= 60
    assert "+ 1 line" in shown
    assert "− 1 line" in shown
