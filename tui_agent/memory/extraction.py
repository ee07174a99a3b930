"""Extraction: what a conversation leaves behind, found by a model and believed only as far as the user's words go.

It runs once per session (and per part of a session that grew), in the background. Nothing that a model writes is taken
as true: items are parsed tolerantly (:mod:`~tui_agent.memory.extraction_parse`), tied to a quote of the user
(:mod:`~tui_agent.memory.extraction_ground`) and then decided on by the gate.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tui_agent.memory.database import Database
from tui_agent.memory.extraction_ground import (
    Asked,
    Decides,
    Dropped,
    asked_to_remember,
    conversation_of,
    covers,
    ground,
    judged,
)
from tui_agent.memory.extraction_parse import ExtractedItem, parse_items
from tui_agent.memory.extraction_prompt import (
    EXTRACTION_SCHEMA,
    MOST_ITEMS,
    Said,
    continuing_messages,
    extraction_messages,
    extraction_prompt,
    language_hint,
    transcript,
)
from tui_agent.memory.facts import FactStore
from tui_agent.memory.history import History, StoredMessage
from tui_agent.memory.secrets import redact
from tui_agent.memory.statements import Label, read
from tui_agent.memory.text import normalise
from tui_agent.memory.types import Action, Kind, Origin, Proposal, Verdict

__all__ = [
    "EXTRACTION_SCHEMA",
    "MOST_ITEMS",
    "Dropped",
    "ExtractedItem",
    "ExtractionReport",
    "Extractor",
    "Outcome",
    "asked_to_remember",
    "conversation_of",
    "extraction_messages",
    "extraction_prompt",
    "ground",
    "parse_items",
]

log = logging.getLogger(__name__)

Complete = Callable[[list[dict[str, str]]], Awaitable[str]]
"""One answer of a model to these messages, as text. Bind :data:`EXTRACTION_SCHEMA` to it where the server takes one."""

STATE = "extraction"
_BATCH_CHARACTERS = 12_000
_NOTHING_TO_KEEP = {Label.SMALL_TALK, Label.FOLLOW_UP}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item. ``rule`` is the stable word of the gate or of grounding, ``reason`` a sentence."""

    text: str
    kind: Kind
    reason: str
    rule: str
    quote: str = ""
    message_id: str = ""
    fact_id: str | None = None


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What one run found in a session.

    ``kept`` are new rows, ``known`` were confirmed, ``waiting`` are in quarantine, ``refused`` were dropped.
    ``missed`` are sentences in which the user asked to remember something and the model found nothing: they wait in
    quarantine. ``tokens_in`` is the size of the conversation, ``tokens_out`` of what was kept. ``error`` is a sentence
    when the model could not be asked; the session is tried again then. ``nothing_new`` says that no model was needed.
    """

    session_id: str
    kept: tuple[Outcome, ...] = ()
    known: tuple[Outcome, ...] = ()
    waiting: tuple[Outcome, ...] = ()
    refused: tuple[Outcome, ...] = ()
    missed: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    error: str = ""
    nothing_new: bool = False

    @property
    def compression(self) -> float | None:
        """How many times smaller what was kept is than the conversation, or ``None`` when nothing was kept."""
        return self.tokens_in / self.tokens_out if self.tokens_out else None

    @property
    def summary(self) -> str:
        """One sentence for the user."""
        if self.error:
            return f"This session could not be searched for facts: {self.error}"
        if self.nothing_new:
            return "Nothing new was said in this session."
        said = f"Kept {_facts(len(self.kept))}"
        if self.kept:
            said += f" ({self.tokens_out} of {self.tokens_in} tokens)"
        for count, words in (
            (len(self.known), "known already"),
            (len(self.waiting), "waiting for you"),
            (len(self.refused), "refused"),
        ):
            said += f", {count} {words}" if count else ""
        for sentence in self.missed:
            said += f". You asked to remember “{sentence}”, and the model found no fact in it; it waits for you"
        return f"{said}."


def _facts(count: int) -> str:
    return {0: "no facts", 1: "1 fact"}.get(count, f"{count} facts")


class Extractor:
    """Runs extraction over sessions of the history.

    Args:
        gate: decides on every item and writes it.
        history: where sessions are, and where it is noted which were searched.
        complete: asks the model; see :data:`Complete`.
        db: the database of ``history`` and of the gate's facts; writes are one transaction on its thread.
        facts: the fact store, to see what was saved during the session already.
        count: tokens of a text.
        batch_characters: how much of a conversation goes into one call.
    """

    def __init__(
        self,
        gate: Decides,
        history: History,
        complete: Complete,
        *,
        db: Database,
        facts: FactStore,
        count: Callable[[str], int] = lambda text: len(text) // 4 + 1,
        batch_characters: int = _BATCH_CHARACTERS,
    ) -> None:
        self._gate = gate
        self._history = history
        self._complete = complete
        self._db = db
        self._facts = facts
        self._count = count
        self._batch = batch_characters
        self._turn = asyncio.Lock()

    async def run(self, session_id: str, *, in_window: bool = False) -> ExtractionReport:
        """Searches what the user has said in a session since it was last searched, and keeps what is proved.

        ``in_window`` says that the model has the conversation before it already (``complete`` appends to the chat's own
        prompt), so that only the question is sent. Raises ``LookupError`` for an unknown session; an error of the model
        is in the report.
        """
        async with self._turn:
            seen, messages = await self._db.run(self._load, session_id)
            said = [Said(message.id, message.role, message.content) for message in messages]
            new = {message.id for message in messages if message.role == "user" and message.seq > seen}
            report = ExtractionReport(session_id, tokens_in=self._count("\n".join(message.content for message in said)))
            up_to = max((message.seq for message in messages), default=0)
            if not _worth_asking(said, new):
                if new:
                    await self._db.run(self._history.mark_extracted, session_id, up_to)
                return replace(report, nothing_new=True)
            try:
                items = await (self._ask_in_window(said, new) if in_window else self._ask(said, new))
            except Exception as error:
                log.warning("session %s could not be searched for facts: %s", session_id, error)
                return replace(report, error=str(error) or type(error).__name__)
            return await self._db.run(self._finish, report, said, new, items, seen, up_to)

    async def run_pending(self, exclude: Collection[str] = ()) -> list[ExtractionReport]:
        """Searches the sessions that were left unsearched (by a crash, say), oldest first; ends at the first error."""
        reports = []
        for session in await self._db.run(self._history.unextracted_sessions, exclude):
            reports.append(await self.run(session.id))
            if reports[-1].error:
                break
        return reports

    def last_report(self, session_id: str) -> dict[str, Any] | None:
        """What the last run on a session found, as plain data, for whoever looks later."""
        found = self._history.load_state(session_id, STATE)
        return found if isinstance(found, dict) else None

    # --- asking -----------------------------------------------------------------------------------

    def _load(self, session_id: str) -> tuple[int, list[StoredMessage]]:
        return self._history.session(session_id).extracted_seq, self._history.messages(session_id)

    async def _ask(self, said: Sequence[Said], new: Collection[str]) -> list[ExtractedItem]:
        """The items of all parts of a conversation that hold something new. Messages get short ids for the model."""
        short = {message.id: f"m{n}" for n, message in enumerate(said, 1)}
        real = {name: message_id for message_id, name in short.items()}
        language = language_hint(said)
        items: list[ExtractedItem] = []
        for part in _parts(said, self._batch):
            if not transcript([message for message in part if message.id in new]):
                continue
            shown = [replace(message, id=short[message.id]) for message in part]
            answer = await self._complete(extraction_messages(shown, language))
            items += [replace(item, message_id=real.get(item.message_id, "")) for item in parse_items(answer)]
        return items

    async def _ask_in_window(self, said: Sequence[Said], new: Collection[str]) -> list[ExtractedItem]:
        first = next(message for message in said if message.id in new)
        return parse_items(await self._complete(continuing_messages(first, language_hint(said))))

    # --- keeping ----------------------------------------------------------------------------------

    def _finish(
        self,
        report: ExtractionReport,
        said: list[Said],
        new: Collection[str],
        items: list[ExtractedItem],
        seen: int,
        up_to: int,
    ) -> ExtractionReport:
        """Writes facts and the mark that the session was searched in one transaction: both or neither, and once."""
        session_id = report.session_id
        with self._db.transaction():
            if self._history.session(session_id).extracted_seq != seen:
                return replace(report, nothing_new=True)  # another window was quicker
            before = self._history.load_state(session_id, STATE) or {}
            kept_before = int(before.get("kept_in_all", 0))
            good, dropped = ground(items, said, quotable=new, limit=max(MOST_ITEMS - kept_before, 0))
            sorted_out: dict[Action, list[Outcome]] = {action: [] for action in Action}
            for item in good:
                source = f"session {session_id}, message {item.message_id}"
                verdict = self._gate.admit(judged(self._gate, item, said, source))
                sorted_out[verdict.action].append(_outcome(item, verdict))
            refused = [_refused(each) for each in dropped if each.rule != "duplicate"] + sorted_out[Action.REFUSE]
            done = replace(
                report,
                kept=tuple(sorted_out[Action.LIVE]),
                known=tuple(sorted_out[Action.TOUCH]),
                waiting=tuple(sorted_out[Action.QUARANTINE]),
                refused=tuple(refused),
                tokens_out=sum(self._count(each.text) for each in sorted_out[Action.LIVE]),
            )
            done = replace(done, missed=self._missed(done, said, new))
            self._history.mark_extracted(session_id, up_to)
            self._history.save_state(session_id, STATE, _plain(done, kept_before + len(done.kept)))
        return done

    def _missed(self, done: ExtractionReport, said: Sequence[Said], new: Collection[str]) -> tuple[str, ...]:
        """The sentences the user asked to remember and nobody found; each waits in quarantine, to be let in by key."""
        found = [each.quote for group in (done.kept, done.known, done.waiting) for each in group]
        refused = [
            each.quote for each in done.refused if each.rule in {"secret", "world_state", "off_record", "tombstone"}
        ]
        live = self._facts.live()
        missed = []
        for asked in asked_to_remember([message for message in said if message.id in new]):
            if any(covers(quote, asked.sentence) for quote in (*found, *refused)):
                continue
            if any(_saved(fact.message_id, fact.quote or fact.fact, fact.fact, asked) for fact in live):
                continue
            proposal = Proposal(
                text=asked.what,
                origin=Origin.USER,
                proposer="extraction",
                source=f"session {done.session_id}, message {asked.message_id}",
                kind=Kind.FACT,
                quote=asked.sentence,
                user_text=asked.sentence,
                message_id=asked.message_id,
            )
            if self._gate.decide(proposal).action in (Action.REFUSE, Action.TOUCH):
                continue  # a secret, say; or it is known in these words
            why = "You asked to remember this, and the model found no fact in it."
            self._facts.quarantine(replace(proposal, user_text=""), why, "missed")
            missed.append(asked.sentence)
        return tuple(missed)


def _saved(message_id: str | None, quote: str, fact: str, asked: Asked) -> bool:
    """Whether a fact was saved from this sentence, in this turn or before."""
    if normalise(fact) == normalise(asked.what):
        return True
    return message_id == asked.message_id and covers(quote, asked.sentence)


def _worth_asking(said: Sequence[Said], new: Collection[str]) -> bool:
    """Whether anything new is more than questions, "ok" and "thanks"."""
    fresh = [message for message in said if message.id in new]
    told = any(each.label not in _NOTHING_TO_KEEP for message in fresh for each in read(message.content))
    return told and bool(transcript(fresh))


def _parts(said: Sequence[Said], characters: int) -> list[list[Said]]:
    """The conversation in parts of about ``characters``, cut between messages."""
    parts: list[list[Said]] = [[]]
    size = 0
    for message in said:
        length = len(transcript([message]))
        if size + length > characters and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(message)
        size += length
    return parts


def _outcome(item: ExtractedItem, verdict: Verdict) -> Outcome:
    return Outcome(
        text=redact(verdict.text).text,
        kind=verdict.kind,
        reason=verdict.reason,
        rule=verdict.rule,
        quote=redact(verdict.quote or item.quote).text,
        message_id=item.message_id,
        fact_id=verdict.fact_id,
    )


def _refused(dropped: Dropped) -> Outcome:
    item = dropped.item
    return Outcome(
        redact(item.fact).text, item.kind, dropped.reason, dropped.rule, redact(item.quote).text, item.message_id
    )


def _plain(done: ExtractionReport, kept_in_all: int) -> dict[str, Any]:
    """A report as it is kept with the session: counts, ids and reasons, no second copy of what was refused."""
    return {
        "kept_in_all": kept_in_all,
        "kept": [each.fact_id for each in done.kept],
        "known": len(done.known),
        "waiting": len(done.waiting),
        "refused": [{"rule": each.rule, "reason": each.reason} for each in done.refused],
        "missed": len(done.missed),
        "tokens_in": done.tokens_in,
        "tokens_out": done.tokens_out,
    }
