"""Streamed markdown: blocks and tail are always the source, and the end looks like a fresh render."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.tui.answer import AnswerEntry, TextPart
from tui_agent.tui.entries import View
from tui_agent.tui.markdown import lay_out
from tui_agent.tui.streaming import StreamingMarkdown, block_starts
from tui_agent.tui.text import clean

LINES = st.sampled_from(
    [
        "",
        "",
        "text",
        "more text with `code`",
        "# heading",
        "## two",
        "- item",
        "  - nested",
        "  continued",
        "1. one",
        "2. two",
        "> quote",
        "lazy",
        "```",
        "```python",
        "x = [1]",
        "~~~",
        "| a | b |",
        "|---|---|",
        "| 1 | 2 |",
        "---",
        "===",
        "    indented",
        "\tx",
        "* star",
        "[/x] [bold]",
        "<div>",
        "**open",
        "    - deep",
        "10) ten",
        "[a](http://b.c)",
        "żółć ё 漢字",
        "[docs]: https://e.org",
        "see [docs]",
        "> [docs]: /quoted",
    ]
)
DOCUMENTS = st.lists(LINES, max_size=24).map("\n".join)


def feed(source: str, cuts: list[int]) -> StreamingMarkdown:
    stream = StreamingMarkdown()
    at = 0
    for cut in cuts:
        stream.feed(source[at : at + cut])
        at += cut
        stream.advance()
        assert stream.source == clean(source[:at].removesuffix("\r")) or "\r" in source
    stream.feed(source[at:])
    stream.finish()
    return stream


@given(DOCUMENTS, st.lists(st.integers(1, 9), max_size=40))
@settings(max_examples=200, deadline=None)
def test_blocks_put_together_are_the_source(source: str, cuts: list[int]) -> None:
    stream = feed(source, cuts)
    assert "".join(stream.finished) == clean(source)
    assert stream.tail == ""


@given(DOCUMENTS, st.lists(st.integers(1, 9), max_size=40))
@settings(max_examples=200, deadline=None)
def test_after_the_end_the_screen_equals_a_fresh_render(source: str, cuts: list[int]) -> None:
    part = TextPart(feed(source, cuts), done=True)
    shown = [line.content.plain.rstrip() for line in part.lines(40, 1)]
    assert shown == lay_out(clean(source), 40).plain
    assert part.codes == lay_out(clean(source), 40).codes


@given(st.text(max_size=200), st.lists(st.integers(1, 5), max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_survives_in_any_pieces(source: str, cuts: list[int]) -> None:
    assert "".join(feed(source, cuts).finished) == clean(source)


def test_a_carriage_return_at_the_end_of_a_piece_waits_for_its_line_feed() -> None:
    stream = StreamingMarkdown()
    stream.feed("one\r")
    stream.feed("\ntwo\r")
    stream.finish()
    assert "".join(stream.finished) == "one\ntwo\n"


def test_a_list_stays_open_until_another_block_begins() -> None:
    stream = StreamingMarkdown("- one\n\n")
    stream.advance()
    assert stream.finished == []
    stream.feed("- two\n\ntext\n")
    stream.advance()
    assert stream.finished == ["- one\n\n- two\n\n"]
    assert stream.tail == "text\n"


def test_an_unfinished_line_never_closes_a_block() -> None:
    stream = StreamingMarkdown("1. a\n\n2")
    stream.advance()
    assert stream.finished == []


def test_link_definitions_make_the_answer_one_block_at_the_end() -> None:
    part = TextPart()
    part.stream.feed("See [the docs].\n\nMore.\n\n[the docs]: https://example.org\n")
    part.stream.advance()
    part.finish()
    assert part.stream.needs_whole
    assert part.lines(60, 1)[0].content.plain == "See the docs."


def test_block_starts_are_line_numbers() -> None:
    assert block_starts("a\n\n- b\n- c\n\n# d\n") == [0, 2, 5]


def test_a_finished_block_is_laid_out_once() -> None:
    entry = AnswerEntry("k")
    entry.add_text("first\n\nsecond\n\nthird\nline")
    entry.advance()
    entry.lines(60, View())
    part = entry.parts[0]
    assert isinstance(part, TextPart)
    kept = list(part._laid)
    entry.add_text(" and more")
    entry.advance()
    entry.lines(60, View())
    assert all(a is b for a, b in zip(part._laid, kept, strict=True))
    assert len(kept) == 2
