"""Values shared by the rooms of the memory package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]
else:
    Vector = Any  # numpy is not needed to name a vector, and the first screen must not wait for it

TextKind = Literal["query", "document"]


class Embedder(Protocol):
    """Turns text into vectors. Handed to memory by the composition root; memory never imports ``llm``.

    ``identity`` names model, digest, dimension, prefix scheme and space, so that vectors of two identities are never
    compared. ``embed`` returns one L2-normalised float32 vector of shape ``(dimension,)`` per text, in order, or
    ``None`` for a text that cannot be embedded; it raises only when nothing can be embedded at all. One that has a
    true attribute ``widens`` gets facts and questions with more words than were said as well
    (:mod:`~tui_agent.memory.widening`).
    """

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str], kind: TextKind) -> list[Vector | None]: ...


class _Word(str, Enum):
    """A string enum whose text is its value on every Python version."""

    def __str__(self) -> str:
        return str(self.value)


class Kind(_Word):
    """Language-neutral kinds of long-term memory; the articles' Polish names are aliases (see ``kind_of``)."""

    FACT = "fact"
    PREFERENCE = "preference"
    DECISION = "decision"
    CONVENTION = "convention"
    PROBLEM = "problem"


_KIND_ALIASES = {
    "fakt": Kind.FACT, "факт": Kind.FACT,
    "preferencja": Kind.PREFERENCE, "предпочтение": Kind.PREFERENCE,
    "decyzja": Kind.DECISION, "решение": Kind.DECISION,
    "konwencja": Kind.CONVENTION, "соглашение": Kind.CONVENTION, "конвенция": Kind.CONVENTION,
    "problem": Kind.PROBLEM, "проблема": Kind.PROBLEM,
}  # fmt: skip


def kind_of(name: object, default: Kind = Kind.DECISION) -> Kind:
    """The kind a model or user named, in English, Polish or Russian, any case; ``default`` when unknown."""
    key = str(name or "").strip().casefold()
    for kind in Kind:
        if kind.value == key:
            return kind
    return _KIND_ALIASES.get(key, default)


class Origin(_Word):
    """Whose words a proposal is made of. Only ``USER`` may go live without approval."""

    USER = "user"
    MODEL = "model"
    FILE = "file"
    TOOL = "tool"
    WEB = "web"
    IMPORT = "import"


class Scope(_Word):
    """Where a fact belongs: this project, or the user everywhere."""

    PROJECT = "project"
    USER = "user"


@dataclass(frozen=True, slots=True)
class NewFact:
    """A row about to be written, after the gate. Times are UTC ``YYYY-MM-DD HH:MM:SS`` text, or ``None``.

    ``source`` is never empty: a message, file or command it can be traced to. ``target`` is the line's place
    (``knowledge/user.md`` or ``AGENTS.md#User Preferences``) when the row is projected into a file (one truth for
    one statement), and ``target_line`` the exact line written there.
    """

    subject: str
    fact: str
    source: str
    kind: Kind = Kind.FACT
    importance: int = 5
    source_kind: Origin = Origin.USER
    quote: str = ""
    message_id: str | None = None
    subject_key: str = ""
    scope: Scope = Scope.PROJECT
    created_at: str | None = None
    confirmed_at: str | None = None
    expires_at: str | None = None
    target: str = ""
    target_line: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the fact table. ``superseded_by`` is the id of the newer row, or ``None`` when it is current."""

    id: str
    subject: str
    fact: str
    source: str
    kind: Kind
    importance: int
    source_kind: Origin
    quote: str
    message_id: str | None
    subject_key: str
    scope: Scope
    created_at: str
    confirmed_at: str
    expires_at: str | None
    superseded_by: str | None
    superseded_at: str | None
    last_used_at: str | None
    pinned: bool
    target: str
    target_line: str


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the change log. ``event`` is add, supersede, confirm, expire, touch, pin, unpin, undo, delete, …"""

    id: int
    memory_id: str
    event: str
    old: str
    new: str
    created_at: str
    is_deleted: bool


class Action(_Word):
    """What the gate decided."""

    LIVE = "live"
    TOUCH = "touch"
    QUARANTINE = "quarantine"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Proposal:
    """Something that wants to become durable memory.

    ``user_text`` is this turn's user message (the only evidence that counts), ``proposer`` who proposes
    (``edit_file``, ``remember``, ``extraction``, ``user``, ``import``, …), ``source`` where the proposal comes from.
    ``importance`` is 1 to 10 where somebody gave one; with ``None`` what is said decides.
    """

    text: str
    origin: Origin
    proposer: str
    source: str
    kind: Kind | None = None
    importance: int | None = None
    subject: str = ""
    quote: str = ""
    user_text: str = ""
    message_id: str | None = None
    target: str = ""
    scope: Scope = Scope.PROJECT
    ttl_days: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer: what to write (``text``, ``quote``, ``kind``, ``target``, ``ttl_days``) and why.

    ``reason`` is one plain sentence for the user and the model. ``rule`` is a stable word for tests and the log
    (``secret``, ``origin``, ``proof``, ``world_state``, ``off_record``, ``duplicate``, ``cap``, ``ok``, …).
    """

    action: Action
    text: str
    reason: str
    rule: str
    kind: Kind = Kind.FACT
    quote: str = ""
    target: str = ""
    ttl_days: float | None = None
    fact_id: str | None = None
    superseded_id: str | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """One summand of a score, with the words the inspector shows for it."""

    name: str
    value: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class RecalledItem:
    """One candidate of a recall: what it is, its score terms (they add up to ``score``) and where it is from.

    ``store`` is ``fact``, ``cold``, ``message`` or ``file``; ``id`` is unique inside it. ``status`` is ``sent`` for
    items that went into the prompt, else why not: ``threshold``, ``budget``, ``visible``, ``superseded``,
    ``cooldown``, ``masked``, ``topic``, ``put away``. ``text`` is exactly what was, or would have been, sent.
    """

    store: str
    id: str
    text: str
    score: float
    terms: tuple[Term, ...]
    status: str = "sent"
    rank: int = 0
    kind: str = ""
    source: str = ""
    quote: str = ""
    created_at: str = ""
    confirmed_at: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class RecallRecord:
    """What fed one answer; stored with it and readable after the facts have changed."""

    query: str
    goal: str
    items: tuple[RecalledItem, ...] = ()
    near: tuple[RecalledItem, ...] = ()
    threshold: float = 0.0
    channels: tuple[str, ...] = ()
    took_ms: float = 0.0
    rules_hash: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
