"""What ``Session`` shows of itself: plain data for panes, inspector and commands. No view reaches deeper."""

from __future__ import annotations

from dataclasses import dataclass, field

from tui_agent.agent.events import NotSeen
from tui_agent.memory.types import RecallRecord, Term


@dataclass(frozen=True, slots=True)
class HotRow:
    """One item of the hot zone. ``score`` is the sum of ``terms``; ``age`` is in steps of the working memory."""

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


@dataclass(frozen=True, slots=True)
class HotView:
    """The hot pane: rows by score, tokens used of the budget, the share of pins, and the last automatic move."""

    rows: tuple[HotRow, ...] = ()
    used: int = 0
    budget: int = 0
    pinned_tokens: int = 0
    last_event: str = ""


@dataclass(frozen=True, slots=True)
class ColdRow:
    """One item of the cold zone. ``cooldown`` is the number of steps until recall may return it by itself."""

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
class ColdView:
    """The cold pane: matching rows (newest first, or best first when searched) and how many there are in all."""

    rows: tuple[ColdRow, ...] = ()
    total: int = 0
    query: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """A labelled line of the inspector."""

    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything known of one item. ``ref`` is ``hot:ID``, ``cold:ID``, ``fact:ID``, ``message:ID``, ``file:PATH``,
    ``quarantine:ID`` or ``note:ID`` (a line about the user that the user wrote by hand). ``history`` is what was
    replaced by what, ``log`` what happened to it, newest first."""

    ref: str
    title: str
    text: str
    fields: tuple[Field, ...] = ()
    terms: tuple[Term, ...] = ()
    total: float | None = None
    quote: str = ""
    source: str = ""
    why: str = ""
    history: tuple[str, ...] = ()
    pinned: bool = False
    actions: tuple[str, ...] = ()
    log: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool call as the transcript shows it, folded."""

    call_id: str
    name: str
    arguments: dict[str, object]
    result: str = ""
    ok: bool = True
    rescued: bool = False
    summary: str = ""


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message of the session as the transcript shows it.

    ``role`` is ``user``, ``assistant`` or ``notice``. ``status`` is ``complete``, ``partial`` (stopped or killed),
    ``cut_off`` or ``failed``. ``recall`` is present on answers that were fed.
    """

    message_id: str
    role: str
    text: str
    created_at: str
    status: str = "complete"
    thinking: str = ""
    tools: tuple[ToolRow, ...] = ()
    recall: RecallRecord | None = None
    memory_line: str = ""
    tokens_per_second: float | None = None
    unseen: NotSeen | None = None


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """Where answers come from and what of it is degraded, for the header and the status line.

    ``tool_calling`` is what the probe found (``native``, ``text``, ``none``), empty when the model was not probed.
    ``local`` says that nothing leaves this machine once a model is ready, ``memory_elsewhere`` that facts are kept on
    another one, with or without a model.
    """

    url: str
    model: str
    embedded: bool = False
    ready: bool = False
    num_ctx: int = 0
    tools: bool = True
    thinking: bool = False
    embedder: str = ""
    local: bool = True
    memory_elsewhere: bool = False
    degraded: tuple[str, ...] = ()
    version: str = ""
    tool_calling: str = ""


@dataclass(frozen=True, slots=True)
class PromptPart:
    """One part of the request as sent: what it is, its exact text and its tokens."""

    name: str
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ContextView:
    """The exact prompt, part by part."""

    parts: tuple[PromptPart, ...] = ()
    used: int = 0
    num_ctx: int = 0
    reserve: int = 0


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One past session in the picker."""

    id: str
    title: str
    started_at: str
    updated_at: str
    messages: int
    goal: str = ""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The outcome of a key: what to say, whether it worked, and whether ``undo`` can take it back."""

    ok: bool
    text: str
    undo: bool = False
    id: str = ""
    extra: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One question answered twice: as it was, and without the items ``refs`` (their texts in ``left_out``).

    ``status`` is ``answered``, ``cut_off``, ``stopped``, ``incomplete`` or ``failed``; ``notes`` say as sentences what
    else was taken out, and what could not be.
    """

    message_id: str
    question: str
    before: str
    after: str
    refs: tuple[str, ...]
    left_out: tuple[str, ...]
    status: str = "answered"
    error: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicRow:
    """An item that is not recalled for questions like ``question``; ``text`` is what it says, empty when it is gone."""

    id: str
    ref: str
    text: str
    question: str
    words: tuple[str, ...]
    created_at: str
