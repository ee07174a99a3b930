"""What panes and inspector show: rows of the working memory, and everything known of one item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from tui_agent.agent.review_views import event_words
from tui_agent.agent.views import ColdRow, ColdView, Field, HotView, Inspection
from tui_agent.memory.audit import check_hint
from tui_agent.memory.hand_lines import dates_of_file
from tui_agent.memory.quarantine import Quarantined
from tui_agent.memory.text import fold, parse_utc, utc_now
from tui_agent.memory.types import Change, Fact, RecalledItem
from tui_agent.memory.upkeep import counted
from tui_agent.memory.working_types import MemoryEvent

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

_MEANINGS = {
    "visible": "it is in the conversation or the files already, so it was not sent again",
    "threshold": "its score is below the threshold",
    "budget": "there was no room for it in this message",
    "superseded": "a newer statement replaced it",
    "cooldown": "it was put away moments ago",
    "masked": "it was left out on request",
    "topic": "you said: never for this topic",
    "put away": "you put it away for this session",
}


def age_words(when: str, now: str | None = None) -> str:
    """``today``, ``3 days ago``, ``7 months ago`` for a stored time, or an empty string."""
    if not when:
        return ""
    days = (parse_utc(now or utc_now()) - parse_utc(when)).days
    if days <= 0:
        return "today"
    if days == 1:
        return "yesterday"
    if days < 60:
        return f"{days} days ago"
    return f"{days // 30} months ago" if days < 720 else f"{days // 365} years ago"


def _rest(steps: int) -> str:
    """When a put-away item may come back by itself."""
    return f"not for {counted(steps, 'more step')}" if steps else "when it fits"


_MOVES = {"evicted": "put away", "pin_released": "pins released", "excerpted": "shown in part"}


def _last_moves(events: Sequence[MemoryEvent]) -> str:
    """The last move as a sentence; where the same step did several by itself, first what they were."""
    if not events:
        return ""
    last = events[-1]
    together = list(takewhile(lambda event: event.automatic and event.step == last.step, reversed(events)))
    if len(together) < 2:
        return last.text
    counts = Counter(_MOVES.get(event.event, event.event.replace("_", " ")) for event in reversed(together))
    return f"{', '.join(f'{number} {word}' for word, number in counts.items())}; last: {last.text}"


class Inspector:
    """Read-only views over the current core."""

    def __init__(self, core: Callable[[], Core]) -> None:
        self._core = core

    async def hot(self, sort: str = "score") -> HotView:
        """The hot pane."""
        core = self._core()
        rows = await core.hot_rows()
        if sort == "age":
            rows.sort(key=lambda row: row.age)
        elif sort == "tokens":
            rows.sort(key=lambda row: -row.tokens)
        return HotView(
            rows=tuple(rows),
            used=core.working.used_tokens,
            budget=core.working.max_tokens,
            pinned_tokens=core.working.pinned_tokens,
            last_event=_last_moves(core.working.events),
        )

    async def cold(self, query: str = "", limit: int = 200) -> ColdView:
        """The cold pane."""
        core = self._core()
        page = await core.working.cold(query, limit)
        return ColdView(
            rows=tuple(
                ColdRow(
                    id=row.id,
                    kind=row.kind,
                    text=row.text,
                    summary=row.summary,
                    tokens=row.tokens,
                    reason=row.reason,
                    step=row.step,
                    put_away_at=row.put_away_at,
                    cooldown=row.cooldown,
                    source=row.source,
                    session_id=row.session_id,
                    pinned=row.pinned,
                )
                for row in page.rows
            ),
            total=page.total,
            query=query,
        )

    async def inspect(self, ref: str) -> Inspection:
        """Everything known of the item behind ``ref``.

        Raises:
            LookupError: there is no such item any more.
        """
        store, _, item_id = ref.partition(":")
        core = self._core()
        if store == "fact":
            fact: Fact | None = await core.db.run(core.stores.facts.get, item_id)
            if fact is None:
                raise LookupError("That fact is not there any more.")
            return await self._fact(fact)
        if store == "hot":
            for row in await core.hot_rows():
                if row.id == item_id:
                    fields = [
                        Field("kind", row.kind),
                        Field("tokens", f"{row.tokens:,}"),
                        Field("since", f"{row.created_at} UTC" if row.created_at else ""),
                        Field("last used", f"{row.age} steps ago"),
                        Field("in the prompt", "yes, the model sees it" if row.in_prompt else "not now"),
                    ]
                    actions = ("unpin" if row.pinned else "pin", "put_away", "touch", "edit")
                    return Inspection(
                        ref,
                        row.summary or row.kind,
                        row.text,
                        _known(fields),
                        row.terms,
                        row.score,
                        source=row.source,
                        why="score = kind + references + goal + freshness − size",
                        pinned=row.pinned,
                        actions=actions,
                    )
            ref, store = f"cold:{item_id}", "cold"
        if store == "cold":
            cold = await core.cold_row(item_id)
            if cold is None:
                raise LookupError("That item is not there any more.")
            fields = [
                Field("kind", cold.kind),
                Field("tokens", f"{cold.tokens:,}"),
                Field("put away", f"{cold.put_away_at} UTC, step {cold.step}"),
                Field("because", cold.reason),
                Field("returns by itself", _rest(cold.cooldown)),
                Field("session", "this one" if cold.session_id == core.session_id else "an earlier one"),
            ]
            never = await self._never(ref)
            fields += never
            return Inspection(
                ref,
                cold.summary or cold.kind,
                cold.text,
                _known(fields),
                source=cold.source,
                actions=("bring_back", "allow") if never else ("bring_back",),
            )
        if store == "message":
            message = await core.db.run(core.history.message, item_id)
            fields = [Field("said by", message.role), Field("when", f"{message.created_at} UTC")]
            if message.status != "complete":
                fields.append(Field("status", message.status.replace("_", " ")))
            return Inspection(ref, "message", message.content, tuple(fields))
        if store == "quarantine":
            for item in await core.db.run(core.stores.facts.quarantined):
                if item.id == item_id:
                    return _waiting(item)
            raise LookupError("It does not wait any more.")
        if store == "file":
            file = await core.db.run(core.stores.files.file, item_id)
            fields = [Field("file", str(file.path)), Field("changed", f"{file.modified_at} UTC")]
            dates: list[str] = await core.db.run(dates_of_file, core.stores, file.name)
            return Inspection(ref, item_id, file.text, tuple(fields), source=item_id, history=tuple(dates))
        raise LookupError(f"Nothing is known as {ref!r}.")

    async def _fact(self, fact: Fact) -> Inspection:
        core = self._core()
        chain: list[Fact] = await core.db.run(core.stores.facts.chain, fact.id)
        changes: list[Change] = await core.db.run(core.stores.facts.changes, fact.id, 30)
        live = await core.db.run(core.stores.facts.is_live, fact.id)
        recalled = await self._last_recall(fact.id)
        fields = [
            Field("state", _state(fact, live=live)),
            Field("kind", str(fact.kind)),
            Field("about", fact.subject),
            Field("importance", f"{fact.importance} of 10"),
            Field("scope", "all projects" if str(fact.scope) == "user" else "this project"),
            Field("said", f"{fact.created_at} UTC, {age_words(fact.created_at)}"),
            Field("confirmed", f"{fact.confirmed_at} UTC, {age_words(fact.confirmed_at)}"),
            Field("holds until", f"{fact.expires_at} UTC" if fact.expires_at else "further notice"),
            Field("last used", f"{fact.last_used_at} UTC" if fact.last_used_at else "never yet"),
            Field("to check", check_hint(fact)),
            Field("written in", fact.target),
        ]
        never = await self._never(f"fact:{fact.id}")
        fields += never
        history = tuple(
            f"{row.created_at[:10]}  {row.fact}" + ("" if row.id != fact.id else "  (this one)") for row in chain
        )
        actions = fact_verbs(fact)
        if any(row.superseded_by == fact.id for row in chain):
            actions = (*actions, "undo_correction")
        if never:
            actions = (*actions, "allow")
        return Inspection(
            f"fact:{fact.id}",
            fact.subject or str(fact.kind),
            fact.fact,
            _known(fields),
            recalled.terms if recalled is not None else (),
            recalled.score if recalled is not None else None,
            fact.quote,
            foreign(fact),
            why=_why(recalled) if recalled is not None else "not recalled in this session yet",
            history=history if len(history) > 1 else (),
            pinned=fact.pinned,
            actions=actions if live else ("delete_forever",),
            log=tuple(map(_changed, changes)),
        )

    async def _never(self, ref: str) -> list[Field]:
        """The topics an item is not recalled for."""
        core = self._core()
        topics = await core.db.run(core.stores.topics.of, ref)
        return [Field("never for", topic.question) for topic in topics]

    async def _last_recall(self, fact_id: str) -> RecalledItem | None:
        """How the fact fared when it was last a candidate in this session."""
        core = self._core()

        def last() -> RecalledItem | None:
            for record in core.history.recalls_of(core.session_id, fact_id):
                for item in (*record.items, *record.near):
                    if item.store == "fact" and item.id == fact_id:
                        return item
            return None

        found: RecalledItem | None = await core.db.run(last)
        return found

    async def remembered(self) -> list[Inspection]:
        """Every live fact, the user's own notes first, then by kind and age."""
        core = self._core()
        facts: list[Fact] = await core.db.run(core.stores.facts.live)
        facts.sort(
            key=lambda f: (str(f.scope) != "user", f.target != "knowledge/user.md", str(f.kind), fold(f.subject))
        )
        return [self.row(fact) for fact in facts]

    def row(self, fact: Fact, why: str = "") -> Inspection:
        """A fact as a row of a list; ``why`` says why it is in it."""
        fields = [
            Field("kind", str(fact.kind)),
            Field("said", fact.created_at[:10]),
            Field("confirmed", fact.confirmed_at[:10]),
            Field("holds until", fact.expires_at or ""),
            Field("scope", "all projects" if str(fact.scope) == "user" else ""),
            Field("to check", check_hint(fact)),
            Field("written in", fact.target),
        ]
        return Inspection(
            f"fact:{fact.id}",
            fact.subject or str(fact.kind),
            fact.fact,
            _known(fields),
            quote=fact.quote,
            source=foreign(fact),
            why=why,
            pinned=fact.pinned,
            actions=fact_verbs(fact),
        )

    async def quarantined(self) -> list[Inspection]:
        """What waits for the user's decision."""
        core = self._core()
        waiting: list[Any] = await core.db.run(core.stores.facts.quarantined)
        return [_waiting(item) for item in waiting]


def fact_verbs(fact: Fact) -> tuple[str, ...]:
    """What can be done to a live fact."""
    pin = "unpin" if fact.pinned else "pin"
    scope = "demote" if str(fact.scope) == "user" else "promote"
    return (pin, "confirm", "correct", "expire", "set_expiry", scope, "put_away", "delete_forever")


def foreign(fact: Fact) -> str:
    """Where a fact is from; marked when that was not the user."""
    return fact.source if str(fact.source_kind) == "user" else f"{fact.source} ({fact.source_kind}, not your words)"


def _state(fact: Fact, *, live: bool) -> str:
    """What a fact is when it is not simply true now."""
    if live:
        return ""
    if fact.superseded_by is not None:
        return f"replaced {fact.superseded_at} UTC" if fact.superseded_at else "replaced"
    return "no longer holds"


def _changed(change: Change) -> str:
    line = f"{change.created_at} UTC  {event_words(change.event)}"
    if change.is_deleted:
        return f"{line} (its text was deleted)"
    if change.event == "supersede":
        return f"{line}: {change.old} → {change.new}"
    return f"{line} {change.new or 'further notice'}" if change.event == "expiry" else line


def _known(fields: list[Field]) -> tuple[Field, ...]:
    return tuple(field for field in fields if field.value)


def _waiting(item: Quarantined) -> Inspection:
    proposal = item.proposal
    fields = [
        Field("proposed by", f"{proposal.proposer} ({proposal.origin})"),
        Field("since", f"{item.created_at} UTC"),
        Field("would go to", proposal.target),
    ]
    return Inspection(
        f"quarantine:{item.id}",
        "waits for you",
        proposal.text,
        _known(fields),
        quote=proposal.quote,
        source=proposal.source,
        why=item.reason,
        actions=("approve", "reject"),
    )


def _why(item: RecalledItem) -> str:
    if item.status == "sent":
        return f"number {item.rank} of what was recalled for the last answer it was found for"
    return f"close, but not sent: {_MEANINGS.get(item.status, item.status)}"
