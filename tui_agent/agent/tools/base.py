"""What a tool is: a flat schema for the model, and a coroutine that answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tui_agent.agent.events import Event
from tui_agent.memory.types import RecallRecord

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Param:
    """One argument: ``type`` is ``string``, ``integer`` or ``array`` (of strings); limits belong in ``description``."""

    type: str
    description: str = ""
    required: bool = True


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call.

    ``text`` is what the model reads, ``summary`` the few words of the folded line. ``item_kind`` is the kind under
    which the result enters the working memory (empty: it does not), ``item_text`` the text kept there when it is
    not ``text``. ``wrote`` is true only when something durable was written. ``found`` is what a search of memory found.
    """

    ok: bool
    text: str
    summary: str = ""
    item_kind: str = ""
    item_text: str = ""
    source: str = ""
    wrote: bool = False
    events: tuple[Event, ...] = ()
    found: RecallRecord | None = None


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What a tool may know of the turn it runs in: the user's words are the only evidence for a durable write."""

    user_text: str
    message_id: str
    session_id: str
    masked: frozenset[str] = frozenset()


Run = Callable[[JSON, TurnContext], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the registry holds it."""

    name: str
    description: str
    params: Mapping[str, Param]
    run: Run

    def schema(self) -> JSON:
        """The object sent under ``tools``: flat scalars and arrays of strings, nothing servers strip."""
        properties: JSON = {}
        for name, param in self.params.items():
            spec: JSON = {"type": param.type}
            if param.type == "array":
                spec["items"] = {"type": "string"}
            if param.description:
                spec["description"] = param.description
            properties[name] = spec
        required = [name for name, param in self.params.items() if param.required]
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": {"type": "object", "properties": properties, "required": required},
            },
        }


def failed(text: str, summary: str = "failed") -> ToolResult:
    """A result that tells the model what went wrong and what it can do instead."""
    return ToolResult(ok=False, text=text, summary=summary)
