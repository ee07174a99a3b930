"""Calls that arrive as text: the shared cases, validation, unknown calls, and what a stream shows when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tui_agent.llm.toolcalls import HoldBack, Rescued, is_bare_unknown_call, rescue, validate_call
from tui_agent.llm.types import ToolCall

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "cases" / "toolcalls.jsonl").read_text(encoding="utf-8").splitlines()
]


def _tools(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools of a case as they are sent to ``/api/chat``."""
    tools = []
    for name in case["offered_tools"]:
        schema = dict(case["schemas"][name])
        required = schema.pop("required")
        properties = {
            key: {"type": "array", "items": {"type": "string"}} if kind == "array<string>" else {"type": kind}
            for key, kind in schema.items()
        }
        parameters = {"type": "object", "properties": properties, "required": required}
        tools.append({"type": "function", "function": {"name": name, "description": "", "parameters": parameters}})
    return tools


TOOLS = _tools(next(case for case in CASES if len(case["offered_tools"]) == 8))
RECALL = '{"name": "recall", "arguments": {"query": "port"}}'


def _assert_right(case: dict[str, Any], result: Rescued) -> None:
    assert [{"name": call.name, "arguments": call.arguments} for call in result.calls] == case["expect"]
    assert result.text.strip() in [text.strip() for text in (case["text"], *case.get("text_alt", []))]
    if not case["expect"]:
        assert result.text == case["content"]


def _stream(content: str, size: int = 1, tools: list[dict[str, Any]] | None = None) -> tuple[list[str], Rescued]:
    """What is on the screen after each piece, and the end result."""
    hold = HoldBack(TOOLS if tools is None else tools)
    shown, screens = "", []
    for start in range(0, len(content), size):
        shown += hold.feed(content[start : start + size])
        screens.append(shown)
    return screens, hold.finish()


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_shared_case_gives_its_calls_and_its_visible_text(case: dict[str, Any]) -> None:
    _assert_right(case, rescue(case["content"], _tools(case)))


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_shared_case_gives_the_same_when_it_streams(case: dict[str, Any], size: int) -> None:
    screens, result = _stream(case["content"], size, _tools(case))
    assert result == rescue(case["content"], _tools(case))
    assert not screens or result.text.startswith(screens[-1])


@pytest.mark.parametrize("case", [case for case in CASES if case["expect"]], ids=lambda case: case["id"])
def test_nothing_of_a_call_is_ever_on_the_screen(case: dict[str, Any]) -> None:
    screens, result = _stream(case["content"], 1, _tools(case))
    assert all(result.text.startswith(screen) for screen in screens)


def test_a_rescued_call_is_marked_and_holds_an_object() -> None:
    assert rescue(RECALL, TOOLS).calls == (ToolCall("recall", {"query": "port"}, rescued=True),)


def test_tools_of_an_unknown_shape_are_ignored() -> None:
    odd: list[Any] = [{}, {"type": "function"}, {"function": {"name": 5}}, {"function": {"name": "x", "parameters": 3}}]
    assert rescue(RECALL, [*odd, *TOOLS]).calls
    assert rescue('{"name": "x", "arguments": {}}', odd).calls == (ToolCall("x", {}, rescued=True),)


# --- the screen while an answer streams

ORDINARY = """Hello! You prefer **short** answers, so here is one.

1. Open `config.yaml` and set `port: 8443` (see [the docs](https://example.test/a?b=c)).
2. Run "make test"; it's quick. recall is a metric, and remember that a < b && c > d, x<y.
- [ ] todo {a, b} and [c]

```python
from pathlib import Path

def recall(tp, fn):
    return {"a": tp / (tp + fn)}

print(recall(42, 8))
```

```bash
make test && echo '{"name": "x"}'
```

Data: {"users": [{"name": "Anna", "age": 5}, {"name": "Ola"}], "total": 2} and more „cytat” 🎉.

> quoted, with {"name": "recall"}

assistant: analysis follows. <b>bold</b> <br> Done."""


def test_ordinary_prose_and_code_stream_without_noticeable_delay() -> None:
    screens, result = _stream(ORDINARY)
    assert result == Rescued((), ORDINARY)
    behind = [count + 1 - len(screen) for count, screen in enumerate(screens)]
    # The longest thing that is kept back is the opening of a Python block with its first word.
    assert max(behind) <= len("\n\n```python\nfrom ")
    assert sum(delay > 8 for delay in behind) < len(behind) / 10


def test_a_python_block_is_released_as_soon_as_it_is_ordinary_code() -> None:
    screens, _ = _stream("Like this:\n```python\nimport os\nprint(os.name)\n```")
    assert screens[len("Like this:\n```python\nimp") - 1].endswith("imp")


def test_a_json_document_the_user_asked_for_streams_from_its_first_foreign_key_on() -> None:
    content = '```json\n{\n  "name": "shop",\n  "version": "1.0.0",\n  "private": true\n}\n```\nThat is all.'
    screens, result = _stream(content)
    assert screens[content.index('"version"') - 1] == ""
    assert screens[content.index('": "1.0') + 2].startswith('```json\n{\n  "name": "shop",\n  "version')
    assert result == Rescued((), content)


def test_prose_in_front_of_a_call_is_on_the_screen_before_the_call_is_complete() -> None:
    content = "I will look that up.\n\n" + RECALL + "\nOne moment."
    screens, result = _stream(content)
    assert screens[len("I will look that up.\n\n")] == "I will look that up."
    assert screens[-1] == result.text == "I will look that up."


def test_thinking_in_front_of_a_call_never_shows() -> None:
    content = "<antThinking>I need it.</antThinking>\nLooking.\n" + RECALL
    screens, result = _stream(content)
    assert set(screens) == {""}
    assert result.text == "Looking."
    assert [call.name for call in result.calls] == ["recall"]


def test_a_bare_call_to_an_unknown_tool_does_not_show_before_the_end() -> None:
    content = '```json\n{"name": "write_file", "arguments": {"path": "a"}}\n```\n'
    screens, result = _stream(content)
    assert set(screens) == {""}
    assert result == Rescued((), content)
    assert is_bare_unknown_call(content, TOOLS) == "write_file"


def test_a_call_to_an_unknown_tool_shows_once_prose_follows() -> None:
    content = '{"name": "write_file", "arguments": {"path": "a"}}\nThat is the JSON you wanted.'
    screens, _ = _stream(content)
    assert screens[content.index("JSON") - 1].endswith("the")


def test_long_arguments_of_an_offered_tool_are_not_shown_raw() -> None:
    text = "line\\n" * 3000
    arguments = f'{{"path": "a.md", "old_string": "", "new_string": "{text}"}}'
    screens, result = _stream('{"name": "edit_file", "arguments": ' + arguments + "}", 50)
    assert set(screens) == {""}
    assert result.calls[0].arguments["new_string"] == "line\n" * 3000


def test_beyond_the_cap_text_is_shown_and_stays_visible() -> None:
    content = '{"name": "write_file", "arguments": {"content": "' + "a" * 300 + '"}} and more'
    hold = HoldBack(TOOLS, cap=100)
    shown = "".join(hold.feed(char) for char in content[:200])
    assert len(shown) == 200
    shown += "".join(hold.feed(char) for char in content[200:])
    assert hold.finish() == Rescued((), content)
    assert shown == content


def test_a_call_beyond_the_cap_is_still_found_and_its_shown_part_stays_in_the_text() -> None:
    content = "<thinking>" + "hm " * 100 + "</thinking>\n" + RECALL
    hold = HoldBack(TOOLS, cap=100)
    shown = "".join(hold.feed(char) for char in content)
    result = hold.finish()
    assert [call.name for call in result.calls] == ["recall"]
    assert shown.startswith("<thinking>hm")
    assert result.text.startswith(shown)
    assert "arguments" not in result.text


# --- validation of any call


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("recall", {"query": "port"}, {"query": "port"}),
        (" functions.recall<|channel|>commentary ", '{"query": "port"}', {"query": "port"}),
        ("recall", {"query": 8443}, {"query": "8443"}),
        ("recall", {"query": 0.5}, {"query": "0.5"}),
        ("search_history", {"query": "a", "limit": "5", "role": None}, {"query": "a", "limit": 5}),
        ("search_history", {"query": "a", "limit": 5.0}, {"query": "a", "limit": 5}),
        ("write_todos", {"todos": '["a", "b"]'}, {"todos": ["a", "b"]}),
        ("write_todos", "{'todos': ['a',],}", {"todos": ["a"]}),
        ("recall", {"query": "half \ud83d pair"}, {"query": "half � pair"}),
    ],
)
def test_a_call_is_cleaned_and_its_arguments_get_the_types_of_the_schema(
    name: str, arguments: Any, expected: dict[str, Any]
) -> None:
    outcome = validate_call(name, arguments, TOOLS)
    assert isinstance(outcome, ToolCall)
    assert outcome.arguments == expected
    assert outcome.name == name.strip().removeprefix("functions.").partition("<")[0]
    assert not outcome.rescued


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("recal", {"query": "a"}, ['no tool named "recal"', 'Did you mean "recall"?', "read_memory"]),
        ("Skill", {}, ['no tool named "Skill"', "The tools are: "]),
        ("recall", {}, ['needs the argument "query" (a string)']),
        ("edit_file", {"path": "a"}, ['"old_string" (a string) and "new_string" (a string)', "arguments"]),
        ("recall", {"querry": "a"}, ['no argument "querry"', 'Did you mean "query"?', "Its arguments: query."]),
        (
            "search_history",
            {"query": "a", "limit": "many"},
            ['"limit" of "search_history" must be an integer', '"many"'],
        ),
        ("write_todos", {"todos": {"first": 1}}, ["must be an array, each item a string"]),
        ("recall", {"query": None}, ['"query" of "recall" must be a string, not null']),
        ("recall", ["a"], ['arguments of "recall" must be one JSON object']),
        ("recall", "port", ['arguments of "recall" must be one JSON object']),
        ("recall", {"query": ["x" * 500]}, ["must be a string", "…"]),
    ],
)
def test_a_call_that_does_not_fit_gives_a_sentence_that_says_what_to_do(
    name: str, arguments: Any, words: list[str]
) -> None:
    outcome = validate_call(name, arguments, TOOLS)
    assert isinstance(outcome, str)
    assert all(word in outcome for word in words), outcome
    assert outcome.endswith(".")
    assert len(outcome) < 400


def _one(properties: dict[str, Any], required: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return [{"type": "function", "function": {"name": "f", "parameters": schema}}]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "boolean"}, "True", True),
        ({"type": "boolean"}, 1, None),
        ({"type": "integer"}, True, None),
        ({"type": "integer"}, " -3 ", -3),
        ({"type": "integer"}, "9" * 5000, None),
        ({"type": "number"}, "2.50", 2.5),
        ({"type": "number"}, "7", 7),
        ({"type": "number"}, float("nan"), None),
        ({"type": "number"}, "1e999", None),
        ({"type": ["string", "null"]}, "5", "5"),
        ({"type": ["integer", "string"]}, "5", "5"),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "array", "items": {"type": "integer"}}, ["1", 2], [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, ["x"], None),
        ({"type": "string", "enum": ["user", "assistant"]}, "User ", "user"),
        ({"type": "string", "enum": ["user", "assistant"]}, "system", None),
        ({"type": "array<string>"}, ["a"], ["a"]),
        ({}, [1, "a"], [1, "a"]),
    ],
)
def test_a_value_fits_its_schema_or_is_refused(schema: dict[str, Any], value: Any, expected: Any) -> None:
    outcome = validate_call("f", {"x": value}, _one({"x": schema}, ("x",)))
    if expected is None:
        assert isinstance(outcome, str)
    else:
        assert isinstance(outcome, ToolCall)
        assert outcome.arguments == {"x": expected}
        assert type(outcome.arguments["x"]) is type(expected)


@pytest.mark.parametrize("arguments", [None, "", "  ", {}, "{}", "null"])
def test_a_tool_without_arguments_takes_every_kind_of_nothing(arguments: Any) -> None:
    assert validate_call("f", arguments, _one({})) == ToolCall("f", {})


def test_arguments_nested_without_end_are_refused() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = {"a": deep}
    assert "nested" in str(validate_call("f", {"x": deep}, _one({"x": {"type": "object"}})))


def test_without_tools_the_sentence_asks_for_plain_text() -> None:
    assert "no tools are available" in str(validate_call("recall", {}, []))


# --- an answer that is nothing but an unknown call


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('{"name": "Skill", "arguments": {"skill": "greeting"}}', "Skill"),
        ('\n```json\n{"name": "write_file", "arguments": {"path": "a"}}\n```\n', "write_file"),
        ('<tool_call>\n{"name": "web.search", "arguments": {"q": "x"}}\n</tool_call>', "web.search"),
        ("<function=run_shell>\n<parameter=command>ls</parameter>\n</function>\n</tool_call>", "run_shell"),
        ('[TOOL_CALLS]send[ARGS]{"to": "x"}', "send"),
        ('{"name": "a", "arguments": {}}\n{"name": "b", "arguments": {}}', "a"),
        ('<|channel|>commentary to=functions.run <|constrain|>json<|message|>{"cmd": "ls"}<|call|>', "run"),
        ("<|tool_call>call:send{to:x}<tool_call|>", "send"),
        (RECALL, None),
        ('{"name": "recall", "arguments": {}}', None),
        ('{"name": "Skill", "arguments": {}}\nHello!', None),
        ('Hello! {"name": "Skill", "arguments": {}}', None),
        ('{"name": "Anna", "age": 5}', None),
        ('{"name": "Anna"}', None),
        ('{"name": "Anna Kowalska", "arguments": {"for": 1}}', None),
        ('{"name": "Skill", "arguments": {"x', None),
        ('send_email(to="x")', None),
        ("Hello.", None),
        ("", None),
    ],
)
def test_only_an_answer_that_is_nothing_but_an_unknown_call_is_reported(content: str, name: str | None) -> None:
    assert is_bare_unknown_call(content, TOOLS) == name


@pytest.mark.parametrize(
    "content",
    [
        '{{"name": "remember", "arguments": {"fact": "x"}}}',
        '<tool_call>\n{{"name": "remember", "arguments": {"fact": "x"}}}\n</tool_call>',
        '```json\n{{"name": "remember", "arguments": {"fact": "x"}}}\n```',
        '{{"name": "remember", "arguments": {"fact": "x"}}',
    ],
)
@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_call_in_doubled_braces_is_a_call(content: str, size: int) -> None:
    parameters = {"type": "object", "properties": {"fact": {"type": "string"}}, "required": ["fact"]}
    tools = [{"type": "function", "function": {"name": "remember", "parameters": parameters}}]
    hold = HoldBack(tools)
    for start in range(0, len(content), size):
        hold.feed(content[start : start + size])
    found = hold.finish()
    assert [(call.name, call.arguments) for call in found.calls] == [("remember", {"fact": "x"})]
    assert found.text.strip() == ""
