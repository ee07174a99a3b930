"""Our own calls of every family and our own texts that are no calls, beside the shared cases.

The rows of ``toolcall_own_cases.jsonl`` have the fields of ``tests/cases/toolcalls.jsonl``; the tools are below.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tui_agent.llm.toolcalls import HoldBack, Rescued, rescue


def _tool(name: str, required: tuple[str, ...], **types: Any) -> dict[str, Any]:
    properties = {key: {"type": kind} if isinstance(kind, str) else kind for key, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": "…", "parameters": schema}}


TOOLS = [
    _tool("edit_file", ("path", "old_string", "new_string"), path="string", old_string="string", new_string="string"),
    _tool("remember", ("fact",), fact="string", category="string", importance="integer"),
    _tool("recall", ("query",), query="string"),
    _tool("search_history", ("query",), query="string", limit="integer", role="string"),
    _tool("read_file", ("path",), path="string", start_line="integer", end_line="integer"),
    _tool("search_files", ("pattern",), pattern="string", glob="string"),
    _tool("write_todos", ("todos",), todos={"type": "array", "items": {"type": "string"}}),
    _tool("list_notes", (), archived="boolean"),
    _tool("set_rate", ("rate",), rate="number", options={"type": "object"}),
]

CASES = [json.loads(line) for line in Path(__file__).with_name("toolcall_own_cases.jsonl").open(encoding="utf-8")]
FAMILIES = [*(f"F{number}" for number in range(1, 24)), "F20b"]


def _found(result: Rescued) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": call.arguments} for call in result.calls]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_our_own_case_gives_its_calls_and_its_visible_text(case: dict[str, Any]) -> None:
    result = rescue(case["content"], TOOLS)
    assert _found(result) == case["expect"]
    assert result.text == case["text"]
    assert all(call.rescued for call in result.calls)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_our_own_case_gives_the_same_when_it_streams(case: dict[str, Any]) -> None:
    content = case["content"]
    for size in (1, 2, 3, 7, 40):
        hold = HoldBack(TOOLS)
        shown = "".join(hold.feed(content[start : start + size]) for start in range(0, len(content), size))
        result = hold.finish()
        assert _found(result) == case["expect"]
        assert result.text == case["text"]
        assert result.text.startswith(shown)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_at_least_three_cases_of_our_own(family: str) -> None:
    assert sum(case["family"] == family for case in CASES) >= 3
