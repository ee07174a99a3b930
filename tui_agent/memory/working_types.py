"""What the working memory takes and gives: scopes, rows for the panes, events, results."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tui_agent.memory.text import utc_now
from tui_agent.memory.types import RecallRecord, Term


class CountsTokens(Protocol):
    """A token counter as an object; a plain callable will do as well."""

    def count(self, text: str) -> int: ...


TokenCounter = Callable[[str], int] | CountsTokens


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """Whose memory it is. Items of two scopes never see, overwrite or delete each other, also when their ids are equal:
    the scope is part of every key and of every question."""

    tenant: str = ""
    user: str = ""
    thread: str = ""
    kind: str = ""

    @property
    def key(self) -> str:
        """The scope as one text; different scopes have different keys."""
        return json.dumps([self.tenant, self.user, self.thread, self.kind], ensure_ascii=False)

    @classmethod
    def of(cls, scope: Any) -> MemoryScope:
        """``scope`` itself, an empty one for ``None``, or one with the same-named attributes of another class."""
        if isinstance(scope, cls):
            return scope
        return cls(*(str(getattr(scope, name, "") or "") for name in ("tenant", "user", "thread", "kind")))


@dataclass(frozen=True, slots=True)
class HotItem:
    """One row of the hot pane. ``score`` is the sum of ``terms``; ``tokens`` is what the item takes of the budget,
    ``text_tokens`` the length of its whole text; ``age`` is in steps; ``whole`` is false when only parts are shown."""

    id: str
    kind: str
    text: str
    summary: str
    tokens: int
    score: float
    terms: tuple[Term, ...]
    pinned: bool
    age: int
    source: str = ""
    created_at: str = ""
    in_prompt: bool = False
    text_tokens: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ColdItem:
    """One row of the cold pane. ``step`` is the step at which it was put away (of ``session_id``), ``cooldown`` the
    steps until recall may bring it back by itself."""

    id: str
    kind: str
    text: str
    summary: str
    tokens: int
    reason: str
    step: int
    put_away_at: str
    cooldown: int = 0
    source: str = ""
    session_id: str = ""
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class ColdPage:
    """Rows of the cold pane, and how many items the cold zone of the project holds in all."""

    rows: tuple[ColdItem, ...] = ()
    total: int = 0


class MemoryEvent(NamedTuple):
    """Something the memory did by itself or was told to do; ``text`` is a sentence for the pane. ``event`` is one of
    :data:`tui_agent.memory.cold_tables.LOG_EVENTS`; ``automatic`` is false for what a key or a caller asked for."""

    step: int
    at: str
    event: str
    item_id: str
    text: str
    automatic: bool = True


class ItemId(str):
    """The id that ``add`` and ``note`` return, which also says what became of the item.

    ``zone`` is ``hot`` or ``cold`` (it was the least valuable at once), ``whole`` is false when it is too large for the
    budget and only its head and tail are shown, ``merged`` is true when it became part of an older note.
    """

    __slots__ = ("merged", "whole", "zone")

    zone: str
    whole: bool
    merged: bool

    def __new__(cls, item_id: str, zone: str = "hot", whole: bool = True, merged: bool = False) -> ItemId:
        made = super().__new__(cls, item_id)
        made.zone, made.whole, made.merged = zone, whole, merged
        return made


class Recalled(list[str]):
    """Ids of the items that ``recall`` brought back, best first; ``record`` explains each and names the nearest that
    were left out, with the reason."""

    def __init__(self, ids: Iterable[str] = (), record: RecallRecord | None = None) -> None:
        super().__init__(ids)
        self.record = record if record is not None else RecallRecord(query="", goal="")


@dataclass(slots=True)
class Pending:
    """What is not in the database yet of one item."""

    zone: str
    new: bool = False
    vector: bool = False
    claim: bool = False
    replaced: list[tuple[str, str]] = field(default_factory=list)


_second = (0, "")


def stamp() -> str:
    """Now, as UTC ``YYYY-MM-DD HH:MM:SS``; formatted once a second."""
    global _second
    second = int(time.time())
    if second != _second[0]:
        _second = (second, utc_now())
    return _second[1]


_TOKEN = re.compile(r"\w+|[^\w\s]")


def estimate_tokens(text: str) -> int:
    """A rough token count for when no counter is given: four letters of Latin script to a token, two of any other,
    one for each other sign. Never less than what splitting at spaces would give."""
    total = 0
    for found in _TOKEN.finditer(text):
        word = found[0]
        total += (len(word) + 3) // 4 if word.isascii() else (len(word) + 1) // 2
    return total
