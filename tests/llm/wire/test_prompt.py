from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.llm.wire.backend import JSON
from tui_agent.llm.wire.prompt import ByteTokenizer, PromptCache, answer_text, common_prefix, fit, render

TOOL: JSON = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def said(role: str, content: str) -> JSON:
    return {"role": role, "content": content}


def test_tools_stand_in_the_system_block() -> None:
    text = render([said("system", "Be brief."), said("user", "hi")], [TOOL])
    assert text.startswith("<|im_start|>system\nBe brief.\n\n# Tools")
    assert text.index('"name": "f"') < text.index("<|im_start|>user")
    assert text.endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")


def test_tool_results_in_a_row_share_one_user_turn() -> None:
    text = render([said("user", "go"), said("tool", "one"), said("tool", "two"), said("user", "on")], [])
    assert text.count("<|im_start|>user") == 3
    assert (
        "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response><|im_end|>\n<|im_start|>user"
    ) in text


def test_a_prompt_that_repeats_the_answer_continues_what_was_generated() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": "ł"}}}]
    before = [said("system", "s"), said("user", "q")]
    generated = render(before, [TOOL]) + answer_text("text", "", calls)
    after = render([*before, {"role": "assistant", "content": "text", "tool_calls": calls}, said("tool", "r")], [TOOL])
    assert after.startswith(generated)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_the_common_prefix_is_the_longest_one(first: str, second: str) -> None:
    length = common_prefix(first, second)
    assert first[:length] == second[:length]
    assert first[length : length + 1] != second[length : length + 1] or length == min(len(first), len(second))


def test_the_oldest_messages_go_first_and_system_and_last_stay() -> None:
    messages = [said("user", "a" * 400), said("system", "rules"), said("assistant", "b" * 400), said("user", "c" * 40)]
    kept, text, tokens = fit(messages, [], 160, ByteTokenizer())
    assert [one["content"][0] for one in kept] == ["r", "b", "c"]
    assert len(tokens) <= 160
    assert text.startswith("<|im_start|>system\nrules")


def test_nothing_is_moved_when_everything_fits() -> None:
    messages = [said("user", "a"), said("system", "rules"), said("user", "b")]
    assert fit(messages, [], 1000, ByteTokenizer())[0] == messages


def test_a_prompt_that_cannot_fit_is_returned_too_long() -> None:
    _, _, tokens = fit([said("system", "s" * 4000), said("user", "u")], [], 100, ByteTokenizer())
    assert len(tokens) > 100


def test_the_last_token_is_always_read_again() -> None:
    cache = PromptCache()
    slot, cached = cache.take("abcdef")
    assert cached == 0
    cache.give_back(slot, "abcdef")
    assert cache.take("abcdef")[1] == 5


def test_the_slot_with_the_largest_share_is_chosen() -> None:
    cache = PromptCache(parallel=2)
    one, _ = cache.take("aaaaaaaaaa")
    two, _ = cache.take("bbbbbbbbbb")
    cache.give_back(one, "aaaaaaaaaa")
    cache.give_back(two, "bbbbbbbbbb")
    slot, cached = cache.take("aaaaaaaaaaX")
    assert (slot.number, cached) == (one.number, 10)
    cache.give_back(slot, "aaaaaaaaaaX")
    # Nothing in common: the slot unused for longest is taken.
    assert cache.take("zzzzzzzzzz")[0].number == two.number


def test_without_spare_states_two_chats_push_each_other_out() -> None:
    def cached_after_switching(spare: int) -> int:
        cache = PromptCache(spare=spare)
        for text in ("a" * 100, "b" * 100):
            slot, _ = cache.take(text)
            cache.give_back(slot, text)
        return cache.take("a" * 100 + "more")[1]

    assert cached_after_switching(0) == 0
    assert cached_after_switching(2) == 100
