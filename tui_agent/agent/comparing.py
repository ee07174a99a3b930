"""The same question once more, without some of what memory gave: a side request that changes nothing.

The request is the conversation as it stood before the question, then the question without the masked items. It enters
neither the transcript nor the log of what was sent, so the next real message still extends the last one. Tools are
offered, since the server has read them at the front of the prompt, but none is run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from tui_agent.agent.explaining import place_of, put_away_of, question_entry
from tui_agent.agent.prompt import LogEntry, render_item
from tui_agent.agent.rounds import Outcome, Request, Round
from tui_agent.agent.views import Comparison
from tui_agent.memory.types import RecalledItem, RecallRecord

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

JSON = dict[str, Any]

_NO_TOOLS = "(Tools are off for this comparison. Answer in plain text, with what you have.)"
_ROUNDS = 2


class Comparing:
    """One question asked again. ``run`` is called once, ``stop`` at any time from the same loop."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._round: Round | None = None
        self._stopped = False
        self._named: list[str] = []  # lines of lists of put-away items that name what is left out

    def stop(self) -> None:
        """Give it up; what was said so far stays in the result."""
        self._stopped = True
        if self._round is not None:
            self._round.stop()

    async def run(self, message_id: str, refs: Collection[str], on_text: Callable[[str], None]) -> Comparison:
        """Ask the question behind the answer ``message_id`` without the items ``refs``.

        Raises:
            LookupError: the answer has no record of what it was given, or its question is gone.
            ModelError: no server or no model.
        """
        core = self._core
        answer = await core.db.run(core.history.message, message_id)
        record = await core.db.run(core.history.recall, message_id)
        place = place_of(record) if record is not None else None
        if record is None or place is None:
            raise LookupError("For this answer it was not kept what it was given, so it cannot be asked again.")
        question = await self._question(answer.session_id, answer.seq)
        await core.connected(lambda event: None)
        before = await self._before(answer.session_id, place.epoch, place.index)
        items = await self._items(answer.session_id, refs)
        system, entries, places = await self._without(before, items, refs)
        entries.append(question_entry(core, question, record, tuple(refs)))
        outcome = await self._ask(system, entries, on_text)
        left_out = tuple(f"{item.store}:{item.id}" for item in record.items if f"{item.store}:{item.id}" in refs)
        notes = list(places)
        if not left_out and not places and not self._named:
            notes.append("It was not in what the model was given for this answer.")
        if place.epoch != core.prompt.epoch:
            notes.append("The fixed part of the prompt is the one of today.")
        status = {"done": "answered", "length": "cut_off"}.get(outcome.end, outcome.end)
        return Comparison(
            message_id, question, answer.content, outcome.text, tuple(refs), tuple(item.text for item in items), status,
            str(outcome.error or ""), tuple(notes),
        )  # fmt: skip

    async def _question(self, session_id: str, seq: int) -> str:
        core = self._core
        messages = await core.db.run(core.history.messages, session_id)
        for message in reversed(messages):
            if message.seq < seq and message.role == "user":
                return str(message.content)
        raise LookupError("The question of this answer is not there any more.")

    async def _before(self, session_id: str, epoch: int, index: int) -> list[LogEntry]:
        core = self._core
        if session_id == core.session_id and epoch == core.prompt.epoch:
            return list(core.prompt.log[:index])
        rows = await core.db.run(core.history.wire_log, session_id, epoch)
        return [LogEntry(row["message"], tuple(row.get("refs", ()))) for _, row in rows[:index]]

    async def _items(self, session_id: str, refs: Collection[str]) -> list[RecalledItem]:
        """The masked items as they were sent in this session, each wording once."""
        core = self._core
        records: dict[str, RecallRecord] = await core.db.run(core.history.recalls, session_id)
        found: dict[str, RecalledItem] = {}
        wanted = {ref.partition(":")[2] for ref in refs}
        lists = filter(None, map(put_away_of, records.values()))
        self._named = [line for each in lists for item_id, line in each.lines if item_id in wanted]
        for record in records.values():
            for item in (*record.items, *record.near):
                if f"{item.store}:{item.id}" in refs:
                    found.setdefault(render_item(item), item)
        return list(found.values())

    async def _without(
        self, before: Sequence[LogEntry], items: Sequence[RecalledItem], refs: Collection[str]
    ) -> tuple[str, list[LogEntry], list[str]]:
        """System part and log with the items taken out, and where they stood, in words."""
        core = self._core
        lines = [*(render_item(item) for item in items), *self._named]
        entries, hits = [], 0
        for entry in before:
            content = str(entry.message.get("content", ""))
            cut = content
            if entry.message["role"] in ("user", "tool"):
                for line in lines:
                    cut = cut.replace(f"\n{line}", "").replace(line, "")
            hits += cut != content
            message = entry.message if cut == content else {**entry.message, "content": cut or "(nothing)"}
            entries.append(LogEntry({key: value for key, value in message.items() if key != "thinking"}, entry.refs))
        places = [f"It was also taken out of {hits} earlier message{'s' if hits > 1 else ''}."] if hits else []
        system = core.prompt.system
        for ref in refs:
            store, _, item_id = ref.partition(":")
            fact = await core.db.run(core.stores.facts.get, item_id) if store == "fact" else None
            if fact is not None and fact.target_line and fact.target_line in system:
                system = system.replace(fact.target_line, "", 1)
                places.append(f"It was also taken out of {fact.target.partition('#')[0]} in the fixed part.")
        if any(entry.message["role"] == "assistant" for entry in entries):
            places.append("Earlier answers are as they were, and may speak of it.")
        return system, entries, places

    async def _ask(self, system: str, entries: list[LogEntry], on_text: Callable[[str], None]) -> Outcome:
        core = self._core
        messages: list[JSON] = [{"role": "system", "content": system}, *(entry.message for entry in entries)]
        said: list[str] = []
        outcome = Outcome(end="stopped")
        for _ in range(_ROUNDS):

            def heard(text: str, _thinking: str) -> None:
                on_text("\n\n".join(part for part in (*said, text) if part.strip()))

            self._round = Round(core.client, lambda event: None, heard)
            if self._stopped:
                self._round.stop()
            tokens = core.estimator.estimate_messages(messages, core.prompt.tools)
            outcome = await self._round.run(
                Request(core.model, messages, core.prompt.tools, core.options, core.think, tokens)
            )
            if outcome.text.strip():
                said.append(outcome.text)
            if not outcome.calls:
                break
            calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in outcome.calls]
            messages.append({"role": "assistant", "content": outcome.text, "tool_calls": calls})
            messages += [{"role": "tool", "tool_name": call.name, "content": _NO_TOOLS} for call in outcome.calls]
        self._round = None
        outcome.text = "\n\n".join(said)
        return outcome
