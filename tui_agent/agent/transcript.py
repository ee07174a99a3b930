"""A stored session as the transcript shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui_agent.agent.views import ToolRow, TranscriptEntry
from tui_agent.memory.history import StoredMessage

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

_COUNTED = ("saved", "superseded", "touched", "quarantined", "refused", "evicted", "brought_back", "put_away", "merged")


def memory_line(changes: list[dict[str, Any]]) -> str:
    """``1 saved, 2 put away``: what a turn did to memory, or an empty string."""
    counts: dict[str, int] = {}
    for change in changes:
        what = str(change.get("what", ""))
        if what in _COUNTED:
            counts[what] = counts.get(what, 0) + 1
    words = {"evicted": "put away", "put_away": "put away", "brought_back": "brought back"}
    merged: dict[str, int] = {}
    for what, number in counts.items():
        word = words.get(what, what)
        merged[word] = merged.get(word, 0) + number
    return ", ".join(f"{number} {word}" for word, number in merged.items())


async def transcript_of(core: Core) -> list[TranscriptEntry]:
    """All messages of the session in order. An answer that was never finished is marked ``partial``."""
    messages: list[StoredMessage] = await core.db.run(core.history.messages, core.session_id)
    entries: list[TranscriptEntry] = []
    for message in messages:
        if message.role == "tool":
            continue
        recall = await core.db.run(core.history.recall, message.id) if message.role == "assistant" else None
        meta = message.meta
        entries.append(
            TranscriptEntry(
                message_id=message.id,
                role=message.role,
                text=message.content,
                created_at=message.created_at,
                status=message.status,
                thinking=message.thinking,
                tools=tuple(_tool_row(tool) for tool in meta.get("tools", ())),
                recall=recall,
                memory_line=memory_line(list(meta.get("memory", ()))),
                tokens_per_second=meta.get("tokens_per_second"),
            )
        )
    return entries


def _tool_row(tool: dict[str, Any]) -> ToolRow:
    return ToolRow(
        call_id=str(tool.get("call_id", "")),
        name=str(tool.get("name", "")),
        arguments=dict(tool.get("arguments") or {}),
        result=str(tool.get("result", "")),
        ok=bool(tool.get("ok", True)),
        rescued=bool(tool.get("rescued", False)),
        summary=str(tool.get("summary", "")),
    )
