"""When the window fills: one summary, the last whole turns verbatim, and a new prefix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_agent.agent.prompt import LogEntry, Prompt, neutral, turns

SUMMARY_REQUEST = (
    "Summarise this conversation in at most 150 words, in the user's language, so that it can be continued: what the "
    "user wants, what was decided, what is still open. Facts only, no greeting, no tool calls."
)
_SUMMARY_HEAD = "Summary of the earlier conversation (older messages are no longer shown):"


def limit_of(num_ctx: int, num_predict: int) -> int:
    """Tokens a request may have before the log is compacted; the reply always fits behind it."""
    return int(min(0.8 * num_ctx, num_ctx - num_predict - 256))


@dataclass(frozen=True, slots=True)
class Compacted:
    """The log of the new epoch, and how many messages the summary replaced."""

    log: tuple[LogEntry, ...]
    dropped: int


def keep_whole_turns(
    prompt: Prompt, *, keep_messages: int, budget: int, size: Callable[[LogEntry], int]
) -> tuple[list[LogEntry], list[LogEntry]]:
    """Split the log into (older, kept): the last whole turns, up to ``keep_messages`` and ``budget`` tokens."""
    kept: list[LogEntry] = []
    groups = turns(prompt.log)
    while groups:
        group = groups[-1]
        tokens = sum(size(entry) for entry in kept) + sum(size(entry) for entry in group)
        if len(kept) + len(group) > keep_messages or tokens > budget:
            break
        kept = group + kept
        groups.pop()
    return [entry for group in groups for entry in group], kept


def with_summary(summary: str, kept: Sequence[LogEntry]) -> list[LogEntry]:
    """The kept turns with the summary in front: inside the first user message, so that roles still alternate."""
    block = f"<data>\n{_SUMMARY_HEAD}\n{neutral(summary.strip())}\n</data>"
    if not kept:
        return [
            LogEntry({"role": "user", "content": block}),
            LogEntry({"role": "assistant", "content": "Understood. I continue from here."}),
        ]
    first = kept[0]
    content = f"{block}\n\n{first.message['content']}"
    return [LogEntry({**first.message, "content": content}, first.refs), *kept[1:]]


def plain_summary(older: Sequence[LogEntry], limit: int = 12) -> str:
    """A summary without a model: the user's last requests by their first line. Used when the model gives none."""
    lines = []
    for entry in older:
        if entry.message["role"] != "user":
            continue
        text = str(entry.message["content"]).rsplit("</data>", 1)[-1].strip()
        if text:
            lines.append("- the user said: " + text.splitlines()[0][:160])
    return "\n".join(lines[-limit:]) or "- nothing of note"
