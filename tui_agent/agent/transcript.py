"""A stored session as the transcript shows it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tui_agent.agent.events import NotSeen
from tui_agent.agent.views import ToolRow, TranscriptEntry
from tui_agent.memory.history import StoredMessage
from tui_agent.memory.types import RecallRecord

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

_COUNTED = ("saved", "superseded", "touched", "quarantined", "refused", "evicted", "brought_back", "put_away", "merged")


def memory_line(changes: list[dict[str, Any]]) -> str:
    """``1 saved, 2 put away``: what a turn did to memory, in the words it was said in, or an empty string."""
    counts: dict[str, int] = {}
    for change in changes:
        what = str(change.get("what", ""))
        if what in _COUNTED:
            counts[what] = counts.get(what, 0) + 1
    words = {"evicted": "put away", "put_away": "put away", "brought_back": "brought back", "superseded": "replaced",
             "quarantined": "to review"}  # fmt: skip
    merged: dict[str, int] = {}
    for what, number in counts.items():
        word = words.get(what, what)
        merged[word] = merged.get(word, 0) + number
    return ", ".join(f"{number} {word}" for word, number in merged.items())


async def transcript_of(core: Core) -> list[TranscriptEntry]:
    """All messages of the session in order. An answer that was never finished is marked ``partial``."""
    messages: list[StoredMessage] = await core.db.run(core.history.messages, core.session_id)
    recalls: dict[str, RecallRecord] = await core.db.run(core.history.recalls, core.session_id)
    entries: list[TranscriptEntry] = []
    for message in messages:
        if message.role == "tool":
            continue
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
                recall=recalls.get(message.id),
                memory_line=memory_line(list(meta.get("memory", ()))),
                tokens_per_second=meta.get("tokens_per_second"),
                unseen=not_seen_of(meta),
            )
        )
    return entries


def not_seen_of(meta: dict[str, Any]) -> NotSeen | None:
    """What was kept of an answer whose model did not see the beginning."""
    kept = meta.get("unseen")
    if not isinstance(kept, dict):
        return None
    known = {field.name for field in dataclasses.fields(NotSeen)}
    return NotSeen(**{name: value for name, value in kept.items() if name in known})


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
