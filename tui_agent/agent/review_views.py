"""What the review, the change log and a hand-off look like to panes and commands: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui_agent.agent.views import Inspection


@dataclass(frozen=True, slots=True)
class ReviewView:
    """Everything that wants the user's look, each item with its reason in ``why``.

    ``queue`` are facts nobody has confirmed for 90 days, oldest first, at most 20 of ``queue_total``; ``new`` those of
    the last day, ``waiting`` what is in quarantine, ``unused`` what was not recalled for six months, ``fetchable`` what
    a tool could look up, ``by_hand`` lines of memory files that nobody has looked at for a month (at most 20 of
    ``by_hand_total``). ``live`` of ``rows`` are current; ``health`` says whether dead rows have piled up. ``due`` is
    true when there is something in the queue and nobody has looked at it for a week.
    """

    queue: tuple[Inspection, ...] = ()
    queue_total: int = 0
    new: tuple[Inspection, ...] = ()
    waiting: tuple[Inspection, ...] = ()
    unused: tuple[Inspection, ...] = ()
    fetchable: tuple[Inspection, ...] = ()
    by_hand: tuple[Inspection, ...] = ()
    by_hand_total: int = 0
    live: int = 0
    rows: int = 0
    health: str = ""
    healthy: bool = True
    due: bool = False
    reviewed_at: str = ""


@dataclass(frozen=True, slots=True)
class SharingView:
    """Whether git may take this memory. ``mode`` is ``private``, ``shared`` or ``custom``; ``files`` are those git may
    take, ``notes`` sentences."""

    mode: Literal["private", "shared", "custom"] = "private"
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HandoffDraft:
    """The beginnings of a packet, for the user to correct: the task, conclusions, and how the result should look."""

    task: str = ""
    requirements: tuple[str, ...] = ()
    format: str = ""


@dataclass(frozen=True, slots=True)
class HandoffView:
    """A packet as it would be handed on, or why there is none (``refused``). ``text`` is its JSON; ``most`` the tokens
    a packet is meant to have."""

    text: str = ""
    tokens: int = 0
    aim: int = 0
    refused: str = ""
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One change of the log. ``zone`` is ``fact`` or ``working``; ``told`` says what happened, on one line."""

    at: str
    zone: str
    event: str
    id: str
    told: str = ""


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A file in the fixed part of the prompt: its text as it is sent, what that costs, and why it was cut, if it
    was."""

    name: str
    path: str
    text: str
    tokens: int = 0
    cut: str = ""


_EVENTS = {
    "add": "remembered",
    "supersede": "replaced",
    "touch": "said again",
    "confirm": "confirmed",
    "expire": "ended",
    "expiry": "holds until",
    "pin": "pinned",
    "unpin": "unpinned",
    "undo": "taken back",
    "prune": "cleaned up",
    "delete": "deleted",
    "promote": "all projects",
    "demote": "this project",
    "quarantine": "waits",
    "approve": "approved",
    "reject": "turned away",
}


def event_words(event: str) -> str:
    """A change of the log, for people."""
    return _EVENTS.get(event, event.replace("_", " "))
