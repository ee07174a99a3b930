"""What a key does to memory: pin, put away, confirm, correct, save, undo, delete forever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.agent.events import Event, MemoryChanged
from tui_agent.agent.fact_actions import FactActions
from tui_agent.agent.tools.memory_tools import verdict_event
from tui_agent.agent.views import ActionResult
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.scrubbing import texts_of
from tui_agent.memory.shredding import on_a_server, shred
from tui_agent.memory.statements import classify
from tui_agent.memory.types import Action, Fact, Origin, Proposal, Verdict

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

_UNDO_KEPT = 100


@dataclass(frozen=True, slots=True)
class _Undo:
    """One step back: what it takes back, in words, and how."""

    text: str
    run: Callable[[], Awaitable[object]]


class MemoryActions(FactActions):
    """The verbs of panes and inspector over the current core. Every one is announced; most can be undone."""

    def __init__(self, core: Callable[[], Core], emit: Callable[[Event], None]) -> None:
        self._core = core
        self._emit = emit
        self._undo: list[_Undo] = []

    # -- hot and cold ---------------------------------------------------------------------------------------------

    async def pin(self, ref: str) -> ActionResult:
        """Pin a hot item or a fact."""
        return await self._set_pin(ref, True)

    async def unpin(self, ref: str) -> ActionResult:
        """Release the pin of a hot item or a fact."""
        return await self._set_pin(ref, False)

    async def _set_pin(self, ref: str, on: bool) -> ActionResult:
        store, item_id = _split(ref)
        core = self._core()
        word = "pinned" if on else "unpinned"
        if store == "fact":
            fact = await self._fact(item_id)
            if fact is None:
                return _gone()
            await core.db.run(core.stores.facts.pin if on else core.stores.facts.unpin, item_id)
            text = fact.fact
        elif store == "hot":
            row = core.hot_row(item_id)
            if row is None:
                return _gone()
            text = row.text
            await self._moves(core.working_events(_call(core.working.pin if on else core.working.unpin, item_id)))
        else:
            return ActionResult(False, "Only hot items and facts can be pinned. Bring it back first (r).")
        undo = self.unpin if on else self.pin
        self._push(f"{word}: {_short(text)}", lambda: undo(ref))
        self._emit(MemoryChanged(word, store, item_id, text, undo=True))
        return ActionResult(True, f"{word.capitalize()}: {_short(text)}", undo=True, id=item_id)

    async def put_away(self, ref: str) -> ActionResult:
        """Hot to cold. A fact is left out of recall for the rest of this session."""
        store, item_id = _split(ref)
        core = self._core()
        if store == "hot":
            row = core.hot_row(item_id)
            if row is None:
                return _gone()
            await self._moves(core.working_events(core.working.forget(item_id)))
            self._push(f"put away: {_short(row.text)}", lambda: self._bring_back(item_id, as_it_was=True))
            self._emit(MemoryChanged("put_away", "hot", item_id, row.text, undo=True))
            return ActionResult(True, f"Put away: {_short(row.text)}. Bring it back with r.", undo=True, id=item_id)
        if store == "fact":
            fact = await self._fact(item_id)
            if fact is None:
                return _gone()
            core.not_now.add(ref)
            self._push(f"not now: {_short(fact.fact)}", lambda: _call(core.not_now.discard, ref))
            self._emit(MemoryChanged("put_away", "fact", item_id, fact.fact, "not recalled in this session", undo=True))
            return ActionResult(True, f"Not recalled again in this session: {_short(fact.fact)}", undo=True, id=item_id)
        return ActionResult(False, "It is put away already.")

    async def bring_back(self, ref: str) -> ActionResult:
        """Cold to hot, as ``recalled``; a fact that was put away is recalled again."""
        store, item_id = _split(ref)
        if store == "fact":
            self._core().not_now.discard(ref)
            return ActionResult(True, "Recalled again from the next message on.", id=item_id)
        return await self._bring_back(item_id, as_it_was=False)

    async def _bring_back(self, item_id: str, *, as_it_was: bool) -> ActionResult:
        core = self._core()
        new = ""

        async def back() -> None:
            nonlocal new
            new = await core.working.bring_back(item_id, as_it_was=as_it_was) or ""

        await self._moves(core.working_events(back()))
        if not new:
            return _gone()
        row = core.hot_row(new)
        text = row.text if row is not None else ""
        self._push(f"brought back: {_short(text)}", lambda: self.put_away(f"hot:{new}"))
        self._emit(MemoryChanged("brought_back", "hot", new, text, undo=True))
        return ActionResult(True, f"Brought back: {_short(text)}", undo=True, id=new)

    async def note(self, text: str) -> ActionResult:
        """Add a note to the hot zone, pinned; one that says the same as another is merged into it."""
        core = self._core()
        text = core.stores.secrets.clean(text).strip()  # put-away items are on disk
        if not text:
            return ActionResult(False, "Say what to note: /note TEXT.")
        before = {row.id: row.text for row in core.working.hot()}
        made = ""

        async def add() -> None:
            nonlocal made
            made = await core.working.note(text, source="you")

        await self._moves(core.working_events(add()))
        old = before.get(made)
        if old is None:
            self._push(f"noted: {_short(text)}", lambda: self.put_away(f"hot:{made}"))
        elif old != text:
            self._push(f"noted: {_short(text)}", lambda: self.edit(f"hot:{made}", old))
        undo = old != text
        self._emit(MemoryChanged("noted" if old is None else "merged", "hot", made, text, undo=undo))
        if not undo:
            return ActionResult(True, f"Noted already: {_short(text)}", id=made)
        return ActionResult(True, f"Noted: {_short(text)}", undo=True, id=made)

    async def touch(self, ref: str) -> ActionResult:
        """Say that an item matters now: it counts as fresh. For a fact this confirms it."""
        store, item_id = _split(ref)
        if store == "fact":
            return await self.confirm(ref)
        core = self._core()
        row = core.hot_row(item_id)
        if store != "hot" or row is None:
            return _gone()
        await self._moves(core.working_events(_call(core.working.touch, item_id)))
        return ActionResult(True, f"Touched: {_short(row.text)}", id=item_id)

    async def edit(self, ref: str, text: str) -> ActionResult:
        """Change the text of a hot item; a fact is corrected."""
        store, item_id = _split(ref)
        if store == "fact":
            return await self.correct(ref, text)
        core = self._core()
        row = core.hot_row(item_id)
        if store != "hot" or row is None:
            return _gone()
        if not text.strip():
            return ActionResult(False, "The text is empty. Put the item away with f instead.")
        old, text = row.text, core.stores.secrets.clean(text)  # put-away items are on disk
        await self._moves(core.working_events(core.working.edit(item_id, text)))
        self._push(f"edited: {_short(old)}", lambda: self.edit(ref, old))
        return ActionResult(True, f"Changed: {_short(text)}", undo=True, id=item_id)

    # -- facts ----------------------------------------------------------------------------------------------------

    async def confirm(self, ref: str) -> ActionResult:
        """Say that a fact still holds."""
        _, item_id = _split(ref)
        core = self._core()
        fact = await self._fact(item_id)
        if fact is None:
            return _gone()
        await core.db.run(core.stores.facts.confirm, item_id)
        self._from_log(f"confirmed: {_short(fact.fact)}")
        self._emit(MemoryChanged("confirmed", "fact", item_id, fact.fact, undo=True))
        return ActionResult(True, f"Confirmed today: {_short(fact.fact)}", undo=True, id=item_id)

    async def correct(self, ref: str, text: str) -> ActionResult:
        """Replace a fact; the old wording stays in its history."""
        _, item_id = _split(ref)
        core = self._core()
        try:
            verdict = await core.db.run(core.stores.ledger.correct, item_id, text.strip(), "typed by you in the app")
        except (LookupError, MemoryFileError) as error:
            return ActionResult(False, str(error))
        self._emit(verdict_event(verdict))
        if verdict.action not in (Action.LIVE, Action.TOUCH):
            return ActionResult(False, verdict.reason)
        await core.facts_changed(f"The user corrected memory. It now says: {verdict.text}")
        self._from_log(f"corrected: {_short(text)}")
        return ActionResult(True, f"Now: {_short(verdict.text)}", undo=True, id=verdict.fact_id or "")

    async def expire(self, ref: str) -> ActionResult:
        """Say that a fact no longer holds; it leaves recall and stays in the history."""
        _, item_id = _split(ref)
        core = self._core()
        try:
            fact = await core.db.run(core.stores.ledger.expire, item_id)
        except (LookupError, MemoryFileError) as error:
            return ActionResult(False, str(error))
        await core.facts_changed(f"The user says that this no longer holds: {fact.fact}")
        self._from_log(f"no longer holds: {_short(fact.fact)}")
        self._emit(MemoryChanged("expired", "fact", item_id, fact.fact, undo=True))
        return ActionResult(True, f"No longer holds: {_short(fact.fact)}", undo=True, id=item_id)

    async def delete_forever(self, ref: str) -> ActionResult:
        """Destroy an item: row and predecessors, file lines, vectors, masked in messages and records."""
        store, item_id = _split(ref)
        core = self._core()
        if store in ("hot", "cold"):
            if not await core.working.delete_forever(item_id):
                return _gone()
            core.working_save()
            self._emit(MemoryChanged("deleted", store, item_id, ""))
            return ActionResult(
                True, "Deleted for good. The messages it came from stay in the conversation.", id=item_id
            )
        spans = await core.db.run(texts_of, core.stores.facts, core.db, item_id)
        try:
            report = await asyncio.to_thread(shred, core.stores, item_id, drop_index=core.drop_index)
        except (LookupError, MemoryFileError) as error:
            return ActionResult(False, str(error))
        await core.connection.forget_states()
        await core.working.load(core.session_id)  # hot items in memory still hold the text
        await core.facts_changed()
        await core.start_epoch(core.masked_log(spans))
        self._undo.clear()
        self._emit(MemoryChanged("deleted", "fact", item_id, ""))
        chroma = core.settings.chroma
        beyond = [*report.beyond, *on_a_server(chroma.mode, chroma.host)]
        words = [report.sentence(), *(str(trace) for trace in report.left), *beyond, *report.notes]
        return ActionResult(not report.left, " ".join(words), id=item_id)

    async def save_sentence(self, message_id: str, sentence: str, target: str = "") -> ActionResult:
        """Save what the user said, because the user says so now. Each line is a statement of its own."""
        core = self._core()
        saved: list[Verdict] = []
        refused = ""
        for line in filter(None, map(str.strip, sentence.splitlines())):
            for text, place in _statements(line, target):
                proposal = Proposal(
                    text=text,
                    origin=Origin.USER,
                    proposer="user",
                    source=f"message {message_id}",
                    user_text=line,
                    message_id=message_id,
                    target=place,
                )
                verdict = await core.db.run(core.stores.gate.admit, proposal)
                self._emit(verdict_event(verdict))
                if verdict.action not in (Action.LIVE, Action.TOUCH):
                    refused = verdict.reason
                    continue
                saved.append(verdict)
                if verdict.action is Action.LIVE:
                    self._from_log(f"saved: {_short(verdict.text)}")
        if not saved:
            return ActionResult(False, refused or "There is nothing to save.")
        said = [str(entry.message["content"]) for entry in core.prompt.log if entry.message["role"] == "user"]
        # What the model still reads in the user's own words need not be told to it in full again.
        told = [_short(v.text, 28) if any(v.text in each for each in said) else v.text for v in saved]
        await core.facts_changed("The user saved: " + "; ".join(told))
        places = dict.fromkeys(v.target for v in saved if v.target and v.target != "fact")
        where = f" in {' and '.join(places)}" if places else ""
        what = ", ".join(f"“{_short(v.text, 40)}”" for v in saved)
        return ActionResult(True, f"Saved{where}: {what}", undo=True, id=saved[0].fact_id or "")

    async def approve(self, item_id: str) -> ActionResult:
        """Let a waiting statement in, by the user's decision."""
        core = self._core()
        try:
            verdict = await core.db.run(core.stores.ledger.approve, _split(item_id)[1])
        except LookupError:
            return _gone()
        self._emit(verdict_event(verdict))
        kept = verdict.action in (Action.LIVE, Action.TOUCH)
        await core.facts_changed(f"The user approved: {verdict.text}" if kept else "")
        if kept:
            self._from_log(f"approved: {_short(verdict.text)}")
            return ActionResult(True, f"Saved: {_short(verdict.text)}", undo=True, id=verdict.fact_id or "")
        return ActionResult(False, verdict.reason)

    async def reject(self, item_id: str) -> ActionResult:
        """Turn a waiting statement away for good."""
        core = self._core()
        try:
            item = await core.db.run(core.stores.facts.reject, _split(item_id)[1])
        except LookupError:
            return _gone()
        self._emit(MemoryChanged("rejected", "fact", item_id, item.proposal.text))
        return ActionResult(True, f"Turned away: {_short(item.proposal.text)}")

    # -- undo -----------------------------------------------------------------------------------------------------

    async def undo(self) -> ActionResult:
        """Take back the last action. After a restart the change log of the facts is what can be taken back."""
        if self._undo:
            step = self._undo.pop()
            kept = len(self._undo)
            result = await step.run()
            del self._undo[kept:]  # taking back is not itself a step to take back
            if isinstance(result, ActionResult) and not result.ok:
                return result
            self._emit(MemoryChanged("undone", "fact", "", step.text))
            return ActionResult(True, f"Taken back: {step.text}")
        return await self._undo_log()

    async def _undo_log(self) -> ActionResult:
        core = self._core()
        text = await core.db.run(core.stores.ledger.undo)
        if not text:
            return ActionResult(False, "There is nothing to take back.")
        await core.facts_changed(f"The user took back: {text}")
        self._emit(MemoryChanged("undone", "fact", "", text))
        return ActionResult(True, f"Taken back: {text}")

    def noted(self, event: MemoryChanged) -> None:
        """A turn saved something: ``undo`` takes that back too."""
        if event.undo and event.zone == "fact" and event.what in ("saved", "superseded", "expired"):
            ended = event.what == "expired"
            self._from_log(f"{'no longer holds' if ended else 'saved'}: {_short(event.text)}")

    def _from_log(self, text: str) -> None:
        self._push(text, self._undo_log)

    def can_undo(self, text: str, run: Callable[[], Awaitable[object]]) -> None:
        """Something was done that ``run`` takes back."""
        self._push(text, run)

    def _push(self, text: str, run: Callable[[], Awaitable[object]]) -> None:
        self._undo.append(_Undo(text, run))
        del self._undo[:-_UNDO_KEPT]

    async def _moves(self, events: Awaitable[list[Event]]) -> None:
        for event in await events:
            self._emit(event)

    async def _fact(self, item_id: str) -> Fact | None:
        core = self._core()
        fact: Fact | None = await core.db.run(core.stores.facts.get, item_id)
        return fact


def _split(ref: str) -> tuple[str, str]:
    store, colon, item_id = ref.partition(":")
    return (store, item_id) if colon else ("", ref)


async def _call(func: Callable[[str], object], item_id: str) -> object:
    result = func(item_id)
    if isinstance(result, Awaitable):
        return await result
    return result


def _statements(line: str, target: str) -> list[tuple[str, str]]:
    """The statements in a line with their places; the line itself where none is recognised."""
    found = [(statement.text, target or statement.target) for statement in classify(line)]
    return found or [(line, target)]


def _gone() -> ActionResult:
    return ActionResult(False, "That item is not there any more; the pane shows what is.")


def _short(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
