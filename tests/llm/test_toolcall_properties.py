"""What holds for every text: no errors, the same result for every way to cut the stream, nothing lost."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.llm.toolcalls import HoldBack, Rescued, is_bare_unknown_call, rescue, validate_call


def _tool(name: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [
    _tool("recall", {"query": {"type": "string"}, "limit": {"type": "integer"}}, ["query"]),
    _tool("todo", {"items": {"type": "array", "items": {"type": "string"}}}, ["items"]),
    _tool("notes", {}, []),
]

# Pieces that mean something to one of the grammars, and such that mean nothing.
_PIECES = [
    '{"name": "recall", "arguments": {"query": "x"}}', '{"name": "recall", "arguments": ', '{"query": "x"}',
    '{"query": "', '{"name": "nope", "arguments": {"a": 1}}', '"name": "recall"', '{"a": 1, "b": [',
    "{'name': 'recall', 'args': {'query': 'it's'}}", '[{"name": "notes", "arguments": {}}', '{"tool_calls": [',
    "{", "}", "[", "]", "(", ")", ",", ";", ":", '"', "'", "`", "``", "```", "```json\n", "```python\n",
    "```bash\n", "\n```", "\n```\n", "~~~\n", "<tool_call>", "</tool_call>", "<tools>", "</tools>",
    "<function=recall>", "<parameter=query>", "</parameter>", "</function>", "<function_calls>",
    '<invoke name="recall">', "<action>", "<tool_call>recall", "<arg_key>query</arg_key>", "<arg_value>",
    "</arg_value>", "<|python_tag|>", "recall.call(", 'query="x")', 'recall(query="x")', "recall(", "notes()",
    "print(", "[TOOL_CALLS]", "recall[ARGS]", "[/TOOL_CALLS]", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>",
    "function<｜tool▁sep｜>recall\n```json\n", "<｜tool▁call▁end｜>", "<start_function_call>", "call:recall{query:",
    "<escape>", '<|"|>', "<|tool_call>", "<tool_call|>", "call:", "<|channel|>analysis<|message|>", "<|end|>",
    "<|start|>assistant", "<|channel|>commentary to=functions.recall <|constrain|>json<|message|>", "<|call|>",
    "<|channel>thought\n", "<channel|>", "<think>", "</think>", "<antThinking>", "</antThinking>",
    "<tool_response>", "</tool_response>", "<code>", "</code>", "<doc>", "</doc>", "recall", "recall query=x",
    "recall query='x y'\n", "to=functions.recall", "commentary ", "tool_code\n", "json\n", "\n", "\n\n", " ",
    "\t", "\r\n", "> ", "- ", "+ ", "| ", "@@ -1 +1 @@\n", "For example:\n", "Let me look: ", "The format is",
    "ok", "This is an example of the format and explains all of it.", "\\", '\\"', "„", "”", "«", "»", "ł", "ж",
    '\ud83d', "5", "null", "True", "<", ">", "|", "=", "#", "...", "\u2028", "\x00",
]  # fmt: skip

_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=14).map("".join) | st.text(max_size=60)


def _streamed(content: str, cuts: list[int], cap: int | None) -> tuple[str, Rescued]:
    hold = HoldBack(TOOLS, cap=cap)
    shown, start = "", 0
    for cut in sorted({min(cut, len(content)) for cut in cuts} | {len(content)}):
        shown += hold.feed(content[start:cut])
        start = cut
    return shown, hold.finish()


@settings(max_examples=300, deadline=None)
@given(_TEXTS, st.lists(st.integers(0, 300), max_size=40))
def test_every_way_to_cut_a_stream_gives_the_same_result(content: str, cuts: list[int]) -> None:
    shown, result = _streamed(content, cuts, None)
    assert result == rescue(content, TOOLS)
    assert result.text.startswith(shown)


@settings(max_examples=200, deadline=None)
@given(_TEXTS)
def test_a_stream_of_single_characters_gives_the_same_result_as_the_whole(content: str) -> None:
    shown, result = _streamed(content, list(range(len(content))), None)
    assert result == rescue(content, TOOLS)
    assert result.text.startswith(shown)


@settings(max_examples=150, deadline=None)
@given(_TEXTS, st.integers(1, 40))
def test_a_cap_changes_what_is_shown_but_not_which_calls_are_found(content: str, cap: int) -> None:
    shown, result = _streamed(content, list(range(0, len(content), 2)), cap)
    assert result.calls == rescue(content, TOOLS).calls
    assert result.text.startswith(shown)
    if not result.calls:
        assert result.text == content


@settings(max_examples=200, deadline=None)
@given(_TEXTS)
def test_text_without_calls_stays_exactly_as_it_came(content: str) -> None:
    result = rescue(content, TOOLS)
    if not result.calls:
        assert result.text == content
    assert all(call.rescued and isinstance(call.arguments, dict) for call in result.calls)
    assert all(call.name in ("recall", "todo", "notes") for call in result.calls)


@settings(max_examples=100, deadline=None)
@given(_TEXTS)
def test_without_offered_tools_nothing_is_a_call_and_nothing_is_kept_back(content: str) -> None:
    hold = HoldBack([])
    assert hold.feed(content) == content.rstrip()
    assert hold.finish() == Rescued((), content) == rescue(content, [])
    assert is_bare_unknown_call(content, []) is None


@settings(max_examples=150, deadline=None)
@given(_TEXTS)
def test_a_bare_unknown_call_is_never_a_call_that_may_run(content: str) -> None:
    name = is_bare_unknown_call(content, TOOLS)
    if name is not None:
        assert name not in ("recall", "todo", "notes")
        assert rescue(content, TOOLS) == Rescued((), content)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("query"), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["recall", "todo", "notes", " functions.recall<|x", "", "recal"]) | st.text(max_size=8), _JSON)
def test_validation_gives_a_call_or_a_sentence_and_never_raises(name: str, arguments: Any) -> None:
    outcome = validate_call(name, arguments, TOOLS)
    if isinstance(outcome, str):
        assert outcome.strip()
    else:
        assert outcome.name in ("recall", "todo", "notes")
        assert not outcome.rescued
