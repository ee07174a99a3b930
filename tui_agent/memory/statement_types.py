"""What a sentence of the user can be, and the statement it makes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tui_agent.memory.statement_reading import Sentence
from tui_agent.memory.types import Kind

USER, PREFERENCES, LEARNED = "knowledge/user.md", "AGENTS.md#User Preferences", "AGENTS.md#Learned Behaviors"
RULES, FACT, STACK = "rules.md", "fact", "knowledge/tech-stack.md"


class Label(str, Enum):
    """What a sentence is. Only ``STATEMENT`` is worth keeping by itself; ``PLAIN`` when somebody thinks so."""

    STATEMENT = "statement"
    PLAIN = "plain"
    QUESTION = "question"
    SMALL_TALK = "small_talk"
    MUSING = "musing"
    THIRD_PARTY = "third_party"
    REPORTED = "reported"
    WORLD_STATE = "world_state"
    OFF_RECORD = "off_record"
    COMMAND = "command"
    TASK = "task"
    SAVE_COMMAND = "save_command"
    FOLLOW_UP = "follow_up"


@dataclass(frozen=True, slots=True)
class Statement:
    """Something worth keeping, in the user's own words: ``message[start:end]`` holds ``text``.

    ``target`` is a memory file with its section, or ``fact`` for a row without a line. ``ttl_days`` is set where the
    words themselves name an end. ``subject`` is a key that only one statement can hold at a time, or empty.
    """

    text: str
    kind: Kind
    target: str
    start: int
    end: int
    ttl_days: float | None = None
    subject: str = ""
    importance: int = 5
    why: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """One sentence with its label, and the statement it makes, when it makes one."""

    sentence: Sentence
    label: Label
    statement: Statement | None = None
    told: bool = False
    """Whether the sentence asks to remember what it says, or allows it."""
