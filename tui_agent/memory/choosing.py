"""From ranked candidates to what is sent: each once, within the budget; and what was close, with the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from tui_agent.memory.lexical import best_line
from tui_agent.memory.text import normalise
from tui_agent.memory.types import RecalledItem, Term

NEAR = 5
"""How many left-out candidates a record names."""
_LONG = 600  # characters from which only the beginning and the best line are sent


@dataclass(slots=True)
class Candidate:
    """A document on its way to becoming a :class:`RecalledItem`; ``ref`` is ``fact:ID``, ``cold:ID``, ``file:NAME`` or
    ``message:ID``."""

    ref: str
    text: str
    kind: str = ""
    source: str = ""
    quote: str = ""
    created_at: str = ""
    confirmed_at: str = ""
    superseded: bool = False
    cooldown: bool = False
    terms: list[Term] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The sum of the terms."""
        return sum(term.value for term in self.terms)


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be sent. The references in ``visible`` are in the window already, those in ``put_away`` were put away by
    the user for this session, those in ``masked`` must not be used for this question, those in ``never`` not for any
    question about its topic."""

    top_k: int
    threshold: float
    max_tokens: int
    visible: Collection[str] = ()
    masked: Collection[str] = ()
    put_away: Collection[str] = ()
    never: Collection[str] = ()

    def pass_over(self, ref: str) -> bool:
        """Whether a reference is not sent, however well it fits."""
        return ref in self.visible or ref in self.masked or ref in self.put_away or ref in self.never


def choose(
    candidates: Sequence[Candidate], limits: Limits, count: Callable[[str], int], query: str
) -> tuple[list[RecalledItem], list[RecalledItem]]:
    """Cuts candidates into those sent and the nearest that were not, each with its reason as ``status``.

    The same words are sent once, whichever store they are from: by the best-ranked one that may be sent.
    """
    sent: list[RecalledItem] = []
    near: list[tuple[str, RecalledItem]] = []
    said: set[str] = set()
    left = limits.max_tokens
    scored = sorted(((-candidate.score, candidate.ref, candidate) for candidate in candidates), key=lambda s: s[:2])
    for minus, _, candidate in scored:
        # Of what follows nothing is sent: there is no place left, or all of it is below the threshold.
        if len(near) >= NEAR and (len(sent) >= limits.top_k or -minus < limits.threshold):
            break
        status = _why_not(candidate, limits)
        if status and len(near) >= NEAR:
            continue
        key = normalise(candidate.text)
        if key in said:
            continue
        # Tokens are counted only of what may be sent: it takes longer than all else here.
        rank = 0 if status else len(sent) + 1
        item = to_item(candidate, query, None if status else count, status or "sent", rank)
        if not status and (rank > limits.top_k or item.tokens > left):
            status = "budget"
            item = replace(item, status=status, rank=0)
        if not status:
            said.add(key)
            left -= item.tokens
            sent.append(item)
        elif len(near) < NEAR:
            near.append((key, item))
    # A left-out twin of something sent further down explains nothing.
    return sent, [item for key, item in near if key not in said]


def _why_not(candidate: Candidate, limits: Limits) -> str:
    if candidate.ref in limits.masked:
        return "masked"
    if candidate.ref in limits.never:
        return "topic"
    if candidate.superseded:
        return "superseded"
    if candidate.ref in limits.visible:
        return "visible"
    if candidate.ref in limits.put_away:
        return "put away"
    if candidate.score < limits.threshold:
        return "threshold"
    return "cooldown" if candidate.cooldown else ""


def to_item(
    candidate: Candidate, query: str, count: Callable[[str], int] | None = None, status: str = "sent", rank: int = 0
) -> RecalledItem:
    """A candidate as it would be sent: a long text is cut to its beginning and the line that fits the question. Without
    ``count`` its tokens stay 0: not counted."""
    store, _, item_id = candidate.ref.partition(":")
    text = candidate.text
    if len(text) > _LONG:
        line, head = best_line(query, text), text[: _LONG // 2].rstrip()
        text = f"{head}\n…\n{line}" if line not in head else f"{text[:_LONG].rstrip()} …"
    return RecalledItem(
        store=store,
        id=item_id,
        text=text,
        score=candidate.score,
        terms=tuple(candidate.terms),
        status=status,
        rank=rank,
        kind=candidate.kind,
        source=candidate.source,
        quote=candidate.quote,
        created_at=candidate.created_at,
        confirmed_at=candidate.confirmed_at,
        tokens=count(text) if count is not None else 0,
    )
