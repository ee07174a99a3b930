"""The toolbox: validates a call, guards against loops, runs it, and bounds what comes back."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tui_agent.agent.tools.base import Tool, ToolResult, TurnContext, failed
from tui_agent.llm.toolcalls import validate_call
from tui_agent.llm.types import ToolCall

JSON = dict[str, Any]
log = logging.getLogger(__name__)

_SAME_CALL_LIMIT = 4


class Toolbox:
    """The tools of a session, in a stable order.

    Args:
        tools: the tools on offer.
        count: tokens of a text.
        cap: the most tokens one result may have (a share of the window).
    """

    def __init__(self, tools: Sequence[Tool], *, count: Callable[[str], int], cap: int) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._count = count
        self.cap = cap
        self.most: int | None = None

    @property
    def schemas(self) -> list[JSON]:
        """The ``tools`` of a request, the first ``most`` of them; equal bytes for equal tools."""
        return [tool.schema() for tool in list(self._tools.values())[: self.most]]

    async def run(self, call: ToolCall, turn: TurnContext) -> tuple[ToolCall, ToolResult]:
        """Validate and run one call. Never raises for what a model or a file can do wrong."""
        checked = validate_call(call.name, call.arguments, self.schemas)
        if isinstance(checked, str):
            return call, failed(checked, "not a valid call")
        tool = self._tools[checked.name]
        clean = ToolCall(checked.name, checked.arguments, rescued=call.rescued, id=call.id)
        try:
            result = await tool.run(clean.arguments, turn)
        except Exception as error:  # a broken tool must not end the turn
            log.exception("tool %s failed", tool.name)
            result = failed(f"{tool.name} failed inside the app ({type(error).__name__}). Nothing was changed.")
        return clean, self._bounded(result)

    def _bounded(self, result: ToolResult) -> ToolResult:
        if self._count(result.text) <= self.cap:
            return result
        text = head_and_tail(result.text, self._count, self.cap)
        kept = result.item_text or result.text
        return replace(result, text=text, item_text=kept)


def head_and_tail(text: str, count: Callable[[str], int], cap: int) -> str:
    """The beginning and the end of ``text`` within ``cap`` tokens, with a line that says what is missing."""
    share = max(200, int(len(text) * cap / max(1, count(text)) * 0.9))
    while True:
        head, tail = text[: share * 2 // 3], text[len(text) - share // 3 :]
        missing = len(text) - len(head) - len(tail)
        cut = f"{head}\n… {missing:,} characters left out; ask for a smaller part …\n{tail}"
        if share <= 200 or count(cut) <= cap:
            return cut
        share = int(share * 0.8)


class LoopGuard:
    """Notices a model that repeats itself. One per turn."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def note(self, call: ToolCall) -> int:
        """Count this call; returns how often exactly it has now been made in this turn."""
        key = json.dumps([call.name, call.arguments], sort_keys=True, ensure_ascii=False, default=str)
        self._seen[key] = self._seen.get(key, 0) + 1
        return self._seen[key]

    @property
    def stuck(self) -> bool:
        """Whether one call was made so often that tools stop for this turn."""
        return any(times >= _SAME_CALL_LIMIT for times in self._seen.values())
