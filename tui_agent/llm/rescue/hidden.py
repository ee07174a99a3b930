"""Thinking and channel wrappers that were left in the answer. Nothing in them is a call."""

from __future__ import annotations

import re

from tui_agent.llm.rescue.markers import analysis_end, read_header
from tui_agent.llm.rescue.source import NeedMore, Reader

_THINKING = re.compile(
    r"<((?:[a-z]{1,20}:)?\w{0,20}(?:think|thought|reason|reflect|scratchpad|analysis|monolog|planning|ponder|deliberat)\w{0,20})>",
    re.IGNORECASE,
)
_THINKING_TOKENS = {"<|channel>thought": "<channel|>", "<|START_THINKING|>": "<|END_THINKING|>"}
_THINKING_CALL = re.compile(r"\n[ \t]*(?=<tool_call>|<function=|<\|tool_call|\[TOOL_CALLS\])")
_HEADERS = ("<|start|>", "<|channel|>")
_MESSAGE_ENDS = ("<|end|>", "<|return|>", "<|call|>")

UNFINISHED = -1
"""The thinking goes on to the end of the answer; it is all there is."""


def thinking_end(reader: Reader, pos: int, *, plain: bool) -> int | None:
    """The index behind the thinking that begins at ``pos``, :data:`UNFINISHED`, or ``None`` when none does.

    ``plain``: the place is the beginning of a line and not quoted, so that a tag there is not just mentioned.
    """
    for token, closer in _THINKING_TOKENS.items():
        if reader.starts(pos, token):
            # Gemma writes its call inside the thinking when it forgets to close it.
            return _end(reader, pos + len(token), closer, "<|tool_call>")
    tag = _THINKING.match(reader.text, pos) if plain else None
    return _end(reader, tag.end(), f"</{tag.group(1)}>") if tag is not None else None


def _end(reader: Reader, begin: int, closer: str, stop: str = "") -> int:
    text = reader.text
    closed = text.find(closer, begin)
    stopped = text.find(stop, begin, closed if closed >= 0 else len(text)) if stop else -1
    if stopped >= 0:
        return stopped
    if closed >= 0:
        return closed + len(closer)
    if not reader.final:
        raise NeedMore
    # Nobody closed the thinking. A call with its own marks, on a line of its own, ends it as well.
    call = _THINKING_CALL.search(text, begin)
    return call.end() if call else UNFINISHED


def channel_end(reader: Reader, pos: int, *, inside: bool) -> int | None:
    """The index behind a channel header of gpt-oss (with its analysis), or behind the end mark of a message.

    ``None``: neither begins at ``pos``. ``inside``: a header came before, so that end marks are no plain text.
    """
    if not any(reader.starts(pos, token) for token in _HEADERS):
        marks = [token for token in _MESSAGE_ENDS if inside and reader.starts(pos, token)]
        return pos + len(marks[0]) if marks else None
    header = read_header(reader, pos)
    if header.recipient or not header.complete:
        return None
    return analysis_end(reader, header.end) if "analysis" in header.words else header.end
