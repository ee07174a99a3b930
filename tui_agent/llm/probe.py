"""Can this model call tools? One tiny request tells more than what the server says of it.

A server infers "tools" from a template's text, and many models that have such a template write their calls as text,
or not at all. The request has one trivial tool and temperature 0, and the load options of every other call, so that it
never makes the server load the model anew.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal, Protocol

from tui_agent.llm.errors import ToolsUnsupported
from tui_agent.llm.toolcalls import rescue
from tui_agent.llm.types import JSON, ChatChunk, ModelInfo, ModelOptions, ToolCall
from tui_agent.llm.wire.backend import PROBE_TOOL

ToolCalling = Literal["native", "text", "none"]
WORDS: dict[str, str] = {
    "native": "calls tools",
    "text": "writes tool calls as text",
    "none": "does not call tools",
}

PROBE_PREDICT = 96
SMALL_BILLIONS = 4.0
SMALL_NATIVE, FEW, FEWEST = 8, 7, 5
TOOLS: list[JSON] = [
    {
        "type": "function",
        "function": {
            "name": PROBE_TOOL,
            "description": "Say that you are ready.",
            "parameters": {
                "type": "object",
                "properties": {"word": {"type": "string", "description": "the word ready"}},
                "required": ["word"],
            },
        },
    }
]
MESSAGES: list[JSON] = [
    {"role": "user", "content": f'Call the tool {PROBE_TOOL} with the word "ready". Write nothing else.'}
]
_SIZE = re.compile(r"([\d.]+)\s*([BM])", re.IGNORECASE)


class Chats(Protocol):
    """The part of ``ModelClient`` the probe needs."""

    def chat(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        options: ModelOptions,
        tools: Sequence[Mapping[str, Any]] = (),
        think: bool | str | None = None,
        format: Any = None,
    ) -> AsyncGenerator[ChatChunk, None]: ...


async def probe_tools(client: Chats, info: ModelInfo, options: ModelOptions) -> ToolCalling:
    """How the model answers when it is asked to call a tool. Cancelling closes the connection at once.

    Raises:
        ModelError: the server's trouble; nothing is known of the model then.
    """
    extra = {**options.extra, "temperature": 0.0, "seed": 0}
    small = replace(options, num_predict=min(PROBE_PREDICT, options.num_predict), extra=extra)
    calls: list[ToolCall] = []
    text = ""
    try:
        stream = client.chat(info.name, MESSAGES, options=small, tools=TOOLS, think=False if info.thinking else None)
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                calls.extend(chunk.tool_calls)
                text += chunk.content
    except ToolsUnsupported:
        return "none"
    if any(call.name == PROBE_TOOL for call in calls):
        return "native"
    return "text" if any(call.name == PROBE_TOOL for call in rescue(text, TOOLS).calls) else "none"


def most_tools(calling: str, info: ModelInfo | None) -> int | None:
    """How many tools to offer at most: ``None`` for all. ``calling`` is what the probe found, empty when unknown.

    A small model with many tools to choose from tends to answer with nothing at all, and every further schema costs a
    model that writes its calls as text more than it gives.
    """
    small = info is not None and 0 < billions(info.parameter_size) <= SMALL_BILLIONS
    if calling == "none":
        return 0
    if calling == "text":
        return FEWEST if small else FEW
    return SMALL_NATIVE if small else None


def billions(parameter_size: str) -> float:
    """``7.6B`` as 7.6, ``137M`` as 0.137; 0 when unreadable."""
    found = _SIZE.search(parameter_size)
    if found is None:
        return 0.0
    try:
        number = float(found.group(1))
    except ValueError:
        return 0.0
    return number if found.group(2).upper() == "B" else number / 1000
