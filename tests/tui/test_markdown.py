"""Markdown as lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.style import Style

from tui_agent.tui.markdown import lay_out


def test_html_is_shown_as_the_text_it_is() -> None:
    laid = lay_out("Use List<int> here.\n\n<div>\nkept\n</div>", 60)
    assert "Use List<int> here." in laid.plain
    assert "<div>" in laid.plain


def test_brackets_are_never_markup() -> None:
    assert lay_out("[/x] [bold red] `[/]`", 60).plain == ["[/x] [bold red] [/]"]


def test_code_blocks_are_numbered_and_keep_their_raw_text() -> None:
    laid = lay_out("```python\nx = 1\n\ny = [2]\n```\n\n- a\n\n  ```\n  z\n  ```", 40, first_code=3)
    assert laid.codes == ["x = 1\n\ny = [2]", "z"]
    assert laid.plain[0].endswith("[3]")
    assert any(line.endswith("[4]") for line in laid.plain)
    assert {line.target for line in laid.lines if line.target} == {"code:3", "code:4"}


def test_a_long_line_of_code_breaks_at_a_space_and_is_indented_further() -> None:
    laid = lay_out("```\n    call(first_argument, second_argument, third)\n```", 34)
    assert laid.plain[0].startswith("┃     call(first_argument,")
    assert laid.plain[1].startswith("┃       second_argument,")


def test_lists_hang_under_their_marks() -> None:
    laid = lay_out("9. first item that is long enough to wrap\n10. second", 24)
    assert laid.plain == [" 9. first item that is", "    long enough to wrap", "10. second"]


def test_a_table_gives_narrow_columns_their_room_and_wraps_wide_ones() -> None:
    laid = lay_out("| k | text |\n|---|---|\n| a | one two three four five six |", 20)
    assert laid.plain[0].startswith("k │ text")
    assert laid.plain[1].startswith("──┼─")
    assert len(laid.plain) > 3


@pytest.mark.parametrize("href", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x"])
def test_only_web_and_mail_addresses_become_hyperlinks(href: str) -> None:
    spans = [span.style for line in lay_out(f"[link]({href})", 60).lines for span in line.content.spans]
    assert not any(isinstance(style, Style) and style.link for style in spans)


def test_a_web_address_becomes_a_hyperlink() -> None:
    spans = [span.style for line in lay_out("[link](https://example.org/a)", 60).lines for span in line.content.spans]
    assert any(isinstance(style, Style) and style.link == "https://example.org/a" for style in spans)


def test_line_breaks_of_the_model_stay() -> None:
    assert lay_out("Name: Kacper\nEditor: vim", 60).plain == ["Name: Kacper", "Editor: vim"]


PIECES = st.sampled_from(
    [
        "text ",
        "漢字かな ",
        "żółw ",
        "**b** ",
        "`code` ",
        "\n",
        "\n\n",
        "- ",
        "> ",
        "# ",
        "```\n",
        "| a | b |\n|---|---|\n| 漢 | x |\n",
        "😀 ",
    ]
)


@given(st.lists(PIECES, max_size=20).map("".join), st.integers(12, 60))
@settings(max_examples=120, deadline=None)
def test_no_line_is_wider_than_asked(source: str, width: int) -> None:
    for line in lay_out(source, width).lines:
        assert cell_len(line.content.plain) <= width
