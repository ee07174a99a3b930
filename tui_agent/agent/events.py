"""Typed events of a session. The TUI, ``ask`` and the tests are only listeners.

A turn yields its events in order and always ends with :class:`TurnFinished`. Events that belong to no turn (a file
changed on disk, memory work finished in the background) reach the listeners of ``Session.subscribe``.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any, Literal

from tui_agent.memory.types import RecallRecord

Phase = Literal[
    "idle", "saving", "recalling", "connecting", "loading", "reading", "generating", "tool", "checking", "draining"
]
Status = Literal["answered", "stopped", "cut_off", "failed", "incomplete", "empty"]


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events."""

    def as_dict(self) -> dict[str, Any]:
        """The event as plain JSON data: ``{"event": snake_case_name, …fields}``."""
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()
        return {"event": name, **dataclasses.asdict(self)}


@dataclass(frozen=True, slots=True)
class UserSaved(Event):
    """The user's message is on disk (after redaction); nothing that follows can lose it."""

    message_id: str
    text: str
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class PhaseChanged(Event):
    """What is happening now; ``detail`` is for people (``reading 3,900 tokens``). The listener ages it.

    ``silent_s`` is 0 while data comes; else nothing has come for so many seconds, and the user should be told that the
    answer can be stopped or asked for again.
    """

    phase: Phase
    detail: str = ""
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Recalled(Event):
    """What recall put into this turn's prompt, and what it left out."""

    record: RecallRecord


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """Visible answer text. Concatenated deltas of a round are exactly the text that is stored."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta(Event):
    """Text of the model's thinking, shown folded."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted(Event):
    """A tool call begins. ``rescued`` marks a call that arrived as text."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    rescued: bool = False


@dataclass(frozen=True, slots=True)
class ToolFinished(Event):
    """A tool call ended. ``ok`` is false for errors and refusals; ``result`` is what the model reads."""

    call_id: str
    name: str
    ok: bool
    result: str
    summary: str = ""


@dataclass(frozen=True, slots=True)
class MemoryChanged(Event):
    """One change of memory, in words.

    ``what`` is ``saved``, ``touched``, ``superseded``, ``quarantined``, ``refused``, ``pinned``, ``unpinned``,
    ``put_away``, ``brought_back``, ``evicted``, ``released``, ``merged``, ``undone``, ``deleted``, … ``zone`` is
    ``fact``, ``hot``, ``cold`` or ``file``. ``undo`` is true when the ``u`` key takes it back.
    """

    what: str
    zone: str
    id: str
    text: str
    reason: str = ""
    target: str = ""
    undo: bool = False


@dataclass(frozen=True, slots=True)
class FileChanged(Event):
    """``rules.md``, ``config.yaml`` or another memory file changed on disk. ``diff`` is one line, for people."""

    path: str
    diff: str
    applies: str = "from the next message"


@dataclass(frozen=True, slots=True)
class IndexChanged(Event):
    """The vector index is in another state: ``off``, ``empty``, ``loading``, ``ready``, ``rebuilding`` (``done`` of
    ``total``, search is exact meanwhile) or ``exact`` (``reason`` says why). ``mark`` is a word for the status line,
    empty while all is well. Embedding anew is ``embedding``, with words alone serving meanwhile."""

    state: str
    reason: str = ""
    done: int = 0
    total: int = 0
    mark: str = ""


@dataclass(frozen=True, slots=True)
class ContextUsage(Event):
    """Tokens of the request by part, ``used`` of ``num_ctx``; ``measured`` when the server's count corrected it."""

    used: int
    num_ctx: int
    parts: dict[str, int]
    measured: bool = False


@dataclass(frozen=True, slots=True)
class SaveMissing(Event):
    """The message states something to keep, or the answer claims a save, and nothing was written.

    ``sentence`` is what one key would save; ``claimed`` is true when the answer said it had saved.
    """

    message_id: str
    sentence: str
    claimed: bool
    target: str = ""


@dataclass(frozen=True, slots=True)
class LearnedItem:
    """One thing found in a conversation. ``what`` is ``kept``, ``known``, ``waiting``, ``refused`` or ``missed``."""

    what: str
    text: str
    reason: str = ""
    fact_id: str = ""


@dataclass(frozen=True, slots=True)
class Learned(Event):
    """A conversation was searched for lasting facts in the background; ``summary`` is a sentence for people.

    ``compression`` is how many times smaller what was kept is than the conversation.
    """

    session_id: str
    summary: str
    items: tuple[LearnedItem, ...] = ()
    compression: float | None = None


@dataclass(frozen=True, slots=True)
class NotSeen(Event):
    """The server read clearly less than was sent, so the model did not see the beginning (or, ``refused``, nothing).

    ``sent``, ``read`` and ``window`` are tokens. ``larger`` is the larger window that can be asked for, 0 when there is
    none; ``tool_tokens`` is what leaving out tool output would free. ``message_id`` is the question's.
    """

    message_id: str
    sent: int
    read: int
    window: int
    larger: int = 0
    tool_tokens: int = 0
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something the user should know, one or two sentences. ``key`` is stable so that it can be shown once."""

    level: Literal["info", "warning", "error"]
    text: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class TurnFinished(Event):
    """The last event of every turn."""

    status: Status
    message_id: str | None = None
    text: str = ""
    error: str = ""
    error_kind: str = ""
    exit_code: int = 0
    tool_calls: int = 0
    output_tokens: int | None = None
    tokens_per_second: float | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    first_token_s: float | None = None


@dataclass(frozen=True, slots=True)
class TextReplaced(Event):
    """The visible text of the whole answer so far is ``text`` after all: what was shown before turned out to be
    thinking or a tool call. Listeners replace what they have shown of this turn's answer."""

    text: str
