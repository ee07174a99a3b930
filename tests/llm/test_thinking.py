"""Thinking tags in content, cut at any place."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.llm.thinking import Piece, ThinkingSplitter

FENCE = "`" * 3


def split(*pieces: str) -> tuple[str, str]:
    splitter = ThinkingSplitter()
    for piece in pieces:
        splitter.feed(piece)
    return splitter.finish()


@pytest.mark.parametrize(
    ("reply", "content", "thinking"),
    [
        ("<think>why</think>\n\nHi", "Hi", "why"),
        ("\n <think>\nwhy\n</think>Hi", "Hi", "why\n"),
        ("<THINK>why</Think>Hi", "Hi", "why"),
        ("<thinking>why</thinking>Hi", "Hi", "why"),
        ("<reasoning>why</reasoning>Hi", "Hi", "why"),
        ("[THINK]why[/THINK]Hi", "Hi", "why"),
        ("<think></think>\n\nHi", "Hi", ""),
        ("<think>a</think>\n<think>b</think>Hi", "Hi", "a\nb"),
        ("<think>a < b and </b></think>x <think> y", "x <think> y", "a < b and </b>"),
        ("<|channel>thought\nwhy<channel|>Hi", "Hi", "why"),
        ("<|channel>thought\n<channel|>Hi", "Hi", ""),
        ("<|channel>why not<channel|>Hi", "Hi", "why not"),
        (
            "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>",
            "Hi",
            "why",
        ),
        ("<|start|>assistant<|channel|>analysis<|message|>why<|channel|>final<|message|>Hi", "Hi", "why"),
        ("<|channel|>final<|message|>Hi", "Hi", ""),
        ("<|channel|>analysis why", "", "why"),
        ("<think>İstanbul ẞ</think>Ⱥ", "Ⱥ", "İstanbul ẞ"),
        ("Hi", "Hi", ""),
        ("  Hi", "  Hi", ""),
        ("", "", ""),
        ("<thin ice", "<thin ice", ""),
        ("<", "<", ""),
    ],
)
def test_tags_at_the_start_of_a_reply_part_thinking_from_answer(reply: str, content: str, thinking: str) -> None:
    assert split(reply) == (content, thinking)
    assert split(*reply) == (content, thinking)


def test_both_tags_in_one_piece_are_seen() -> None:
    splitter = ThinkingSplitter()
    assert splitter.feed("<think>a</think>b") == [("thinking", "a"), ("content", "b")]
    assert not splitter.reclassified


def test_thinking_that_is_never_closed_is_all_thinking() -> None:
    assert split("<think>I wonder", " whether </thi") == ("", "I wonder whether </thi")


def test_a_stray_closing_tag_makes_everything_before_it_thinking() -> None:
    splitter = ThinkingSplitter()
    assert splitter.feed("The user greets me. ") == [("content", "The user greets me. ")]
    assert splitter.feed("I greet back.</th") == [("content", "I greet back.")]
    before = splitter.reclassified
    assert splitter.feed("ink>\n\nHello") == [("content", "Hello")]
    assert (before, splitter.reclassified) == (False, True)
    assert (splitter.content, splitter.thinking) == ("Hello", "The user greets me. I greet back.")
    assert splitter.finish() == ("Hello", "The user greets me. I greet back.")


def test_a_stray_closing_tag_at_the_very_start_just_goes() -> None:
    assert split("</think>\n\nHello") == ("Hello", "")
    assert split("\n</think>Hello") == ("Hello", "")


def test_only_the_first_stray_closing_tag_counts() -> None:
    assert split("a</think>b</think>c") == ("b</think>c", "a")


@pytest.mark.parametrize(
    "reply",
    [
        "Use `</think>` to close it.",
        "Use ``a ` </think>`` to close it.",
        f"Like this:\n{FENCE}html\n<think>x\n</think>\n{FENCE}\nand done",
        f"{FENCE}\n</think>\n",
        "- item\n  ~~~\n  </think>\n  ~~~\n",
        f"{FENCE}html </think>\nx\n{FENCE}\n",
        "The pair <think>…</think> marks thinking.",
        f"  {FENCE}`\n{FENCE}\n</think>\n{FENCE}`\n",
    ],
)
def test_tags_in_code_and_pairs_in_the_answer_are_part_of_the_answer(reply: str) -> None:
    assert split(reply) == (reply, "")
    assert split(*reply) == (reply, "")


def test_a_backtick_that_is_never_closed_on_its_line_hides_no_closing_tag() -> None:
    assert split("it`s done</think>Hello") == ("Hello", "it`s done")
    assert split("it`s done</think>Hello\nworld `x`") == ("Hello\nworld `x`", "it`s done")
    assert split(f"{FENCE}py\nx\n{FENCE}\ndone</think>Hello") == ("Hello", f"{FENCE}py\nx\n{FENCE}\ndone")


def test_calls_in_a_commentary_channel_stay_whole_for_whoever_looks_for_calls() -> None:
    call = '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a":1}<|call|>'
    assert split(call) == (call, "")
    assert split(f"<|channel|>analysis<|message|>why<|end|><|start|>assistant{call}") == (call, "why")


def test_a_piece_is_handed_out_as_soon_as_it_can_be_nothing_else() -> None:
    splitter = ThinkingSplitter()
    assert splitter.feed("<") == []
    assert splitter.feed("b") == [("content", "<b")]
    splitter = ThinkingSplitter()
    assert splitter.feed("<think>one ") == [("thinking", "one ")]
    assert splitter.feed("two") == [("thinking", "two")]


ATOMS = st.sampled_from(
    [
        "<think>", "</think>", "<thinking>", "</THINKING>", "<reasoning>", "</reasoning>", "[THINK]", "[/THINK]",
        "<|channel|>", "<|channel>", "<channel|>", "analysis", "final", "commentary", "thought", "<|message|>",
        "<|end|>", "<|start|>assistant", "<|return|>", "`", "``", FENCE, "~~~", FENCE + "py\n", "\n", " ", "a", "<",
        "</", "[", "> ", "- ", "text ", "</thi", "İ", "ß", "😀", "\u2028",
    ]
)  # fmt: skip
REPLIES = st.lists(ATOMS, max_size=14).map("".join) | st.text(max_size=60)


def feed(pieces: list[str]) -> tuple[tuple[str, str], bool, list[Piece], tuple[str, str]]:
    splitter = ThinkingSplitter()
    shown = [piece for text in pieces for piece in splitter.feed(text)]
    so_far = splitter.content, splitter.thinking
    early = splitter.reclassified
    return splitter.finish(), early, shown, so_far


@settings(max_examples=400, deadline=None)
@given(reply=REPLIES, data=st.data())
def test_any_chunking_gives_the_same_result(reply: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(reply)), max_size=6)) | {0, len(reply)})
    pieces = [reply[a:b] for a, b in pairwise(cuts)]
    whole = feed([reply])[0]
    assert feed(pieces)[0] == whole
    assert feed(list(reply))[0] == whole


@settings(max_examples=300, deadline=None)
@given(reply=REPLIES)
def test_what_is_shown_piece_by_piece_is_the_truth_unless_it_was_reclassified(reply: str) -> None:
    (content, thinking), reclassified, shown, so_far = feed(list(reply))
    if reclassified:
        return
    assert "".join(text for part, text in shown if part == "content") == so_far[0]
    assert "".join(text for part, text in shown if part == "thinking") == so_far[1]
    assert thinking.startswith(so_far[1]) or content.startswith(so_far[0])


@settings(max_examples=200, deadline=None)
@given(reply=st.text(alphabet=st.characters(exclude_characters="<["), max_size=80))
def test_a_reply_without_tags_comes_back_as_it_was(reply: str) -> None:
    assert split(*reply) == (reply, "")
