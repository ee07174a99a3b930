"""The toolbox validates, bounds and survives its tools."""

from __future__ import annotations

from typing import Any

from tui_agent.agent.tools.base import Param, Tool, ToolResult, TurnContext
from tui_agent.agent.tools.registry import LoopGuard, Toolbox, head_and_tail
from tui_agent.llm.types import ToolCall

TURN = TurnContext("question", "m1", "s1")


def box(result: Any = None, cap: int = 50) -> Toolbox:
    async def run(args: dict[str, Any], turn: TurnContext) -> ToolResult:
        if isinstance(result, Exception):
            raise result
        return result or ToolResult(True, f"got {args}")

    tool = Tool("read_file", "Reads.", {"path": Param("string"), "line": Param("integer", required=False)}, run)
    return Toolbox([tool], count=lambda text: len(text) // 4, cap=cap)


async def test_arguments_are_coerced_by_the_schema() -> None:
    call, result = await box().run(ToolCall("functions.read_file", {"path": "a", "line": "3"}), TURN)
    assert call.name == "read_file"
    assert result.text == "got {'path': 'a', 'line': 3}"


async def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    _, result = await box().run(ToolCall("read_fil", {"path": "a"}), TURN)
    assert not result.ok
    assert "read_file" in result.text


async def test_a_missing_argument_is_named() -> None:
    _, result = await box().run(ToolCall("read_file", {}), TURN)
    assert not result.ok
    assert "path" in result.text


async def test_a_tool_that_breaks_does_not_end_the_turn() -> None:
    _, result = await box(RuntimeError("boom")).run(ToolCall("read_file", {"path": "a"}), TURN)
    assert not result.ok
    assert "RuntimeError" in result.text


async def test_a_long_result_keeps_head_and_tail_and_says_what_is_missing() -> None:
    text = "start " + "x" * 4000 + " end"
    _, result = await box(ToolResult(True, text, item_kind="file"), cap=100).run(
        ToolCall("read_file", {"path": "a"}), TURN
    )
    assert result.text.startswith("start")
    assert result.text.endswith("end")
    assert "characters left out" in result.text
    assert len(result.text) // 4 <= 100
    assert result.item_text == text


def test_cutting_never_loops_on_a_tiny_cap() -> None:
    assert "left out" in head_and_tail("a" * 10_000, lambda text: len(text), 1)


def test_the_guard_counts_equal_calls_whatever_the_order_of_their_arguments() -> None:
    guard = LoopGuard()
    assert guard.note(ToolCall("f", {"a": 1, "b": 2})) == 1
    assert guard.note(ToolCall("f", {"b": 2, "a": 1})) == 2
    assert guard.note(ToolCall("f", {"a": 1})) == 1
    assert not guard.stuck
    guard.note(ToolCall("f", {"a": 1, "b": 2}))
    guard.note(ToolCall("f", {"a": 1, "b": 2}))
    assert guard.stuck
