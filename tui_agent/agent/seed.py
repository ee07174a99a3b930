"""Brings a sample's memory to life: ``seed.jsonl`` is read once, through the real stores.

One JSON object a line, in order: ``fact`` rows (with ``supersedes`` naming an earlier ``ref``), ``waiting`` proposals,
one ``session`` with its ``item``/``note`` entries for the working memory, and its ``user``/``assistant`` messages with
what was recalled for them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tui_agent.agent.stores import Stores
from tui_agent.memory.facts import subject_key
from tui_agent.memory.types import Fact, NewFact, Origin, Proposal, RecalledItem, RecallRecord, Term, kind_of
from tui_agent.memory.upkeep import working_scope
from tui_agent.memory.working import WorkingMemory
from tui_agent.settings import Settings

JSON = dict[str, Any]


class SeedError(ValueError):
    """A line of the seed cannot be used; the message names file and line."""


def needs_seed(stores: Stores, path: Path) -> bool:
    """Whether there is a seed and the project's memory is still empty."""
    return path.is_file() and stores.facts.stats()["memory"] == 0 and stores.history.latest_session() is None


async def import_seed(stores: Stores, settings: Settings, path: Path) -> str:
    """Import the seed; returns the id of its session, or an empty string when it has none.

    Raises:
        SeedError: a line is not usable; nothing of what came before it is taken back.
    """
    seed = _Seed(stores, settings)
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                await seed.take(json.loads(line))
            except (ValueError, KeyError, LookupError) as error:
                raise SeedError(f"{path}:{number} cannot be used: {error}") from error
    await seed.finish()
    return seed.session_id


class _Seed:
    def __init__(self, stores: Stores, settings: Settings) -> None:
        self._stores = stores
        self._settings = settings
        self._facts: dict[str, Fact] = {}
        self._working: WorkingMemory | None = None
        self.session_id = ""

    async def take(self, row: JSON) -> None:
        """One line."""
        kind = row["type"]
        if kind == "fact":
            await self._stores.db.run(self._fact, row)
        elif kind == "waiting":
            proposal = Proposal(
                row["text"], Origin(row["origin"]), row["proposer"], row["source"], target=row.get("target", "")
            )
            await self._stores.db.run(self._stores.facts.quarantine, proposal, row["reason"])
        elif kind == "session":
            await self._session(row)
        elif kind in ("item", "note"):
            await self._item(row)
        elif kind in ("user", "assistant"):
            await self._stores.db.run(self._message, row)
        else:
            raise ValueError(f"{kind!r} is no kind of line")

    async def finish(self) -> None:
        """Everything is in."""
        if self._working is not None:
            await self._working.save()
            history = self._stores.history
            await self._stores.db.run(history.end_session, self.session_id)
            await self._stores.db.run(history.mark_extracted, self.session_id)

    def _fact(self, row: JSON) -> None:
        new = NewFact(
            subject=row["subject"],
            fact=row["fact"],
            source=row["source"],
            kind=kind_of(row["kind"]),
            importance=int(row.get("importance", 5)),
            quote=row.get("quote", ""),
            subject_key=subject_key(row["subject"]),
            created_at=row["created_at"],
            confirmed_at=row.get("confirmed_at", row["created_at"]),
            target=row.get("target", ""),
            target_line=row.get("target_line", ""),
        )
        facts = self._stores.facts
        older = self._facts.get(row.get("supersedes", ""))
        fact = facts.supersede(older.id, new) if older is not None else facts.add(new)
        self._facts[row["ref"]] = facts.pin(fact.id) if row.get("pinned") else fact

    async def _session(self, row: JSON) -> None:
        stores, wm = self._stores, self._settings.working_memory
        session = await stores.db.run(
            stores.history.start_session, row["title"], row["model"], row["goal"], started_at=row["started_at"]
        )
        self.session_id = session.id
        self._working = WorkingMemory(
            stores.db,
            None,
            None,
            max_tokens=wm.max_tokens,
            scope=working_scope(stores.project),
            session_id=session.id,
        )
        await self._working.set_goal(row["goal"])

    async def _item(self, row: JSON) -> None:
        if self._working is None:
            raise ValueError("an item stands before its session")
        if row["type"] == "note":
            await self._working.note(row["text"], source="note")
            return
        root = self._stores.project.root
        text = (root / row["file"]).read_text("utf-8") if "file" in row else row["text"]
        item_id = await self._working.add(
            row["kind"], text, summary=row.get("summary", ""), source=row.get("source", "")
        )
        if row.get("put_away"):
            await self._working.forget(item_id)

    def _message(self, row: JSON) -> None:
        if not self.session_id:
            raise ValueError("a message stands before its session")
        history = self._stores.history
        meta: JSON = {}
        if row["type"] == "assistant":
            tools = [
                {"call_id": f"seed-{n}", "ok": True, "rescued": False, **tool}
                for n, tool in enumerate(row.get("tools", ()), 1)
            ]
            meta = {
                "tools": tools,
                "memory": row.get("memory", []),
                "tokens_per_second": row.get("tokens_per_second"),
            }
        message = history.append(self.session_id, row["type"], row["text"], meta=meta, created_at=row["created_at"])
        if row.get("recalled"):
            items = [
                self._recalled(ref, score, terms, "sent", n) for n, (ref, score, terms) in enumerate(row["recalled"], 1)
            ]
            near = [self._recalled(ref, score, terms, status) for ref, score, terms, status in row.get("near", ())]
            record = RecallRecord(
                query="", goal="", items=tuple(items), near=tuple(near), threshold=0.25, channels=("words", "meaning")
            )
            history.save_recall(message.id, record)

    def _recalled(
        self, ref: str, score: float, terms: dict[str, float], status: str = "sent", rank: int = 0
    ) -> RecalledItem:
        fact = self._facts[ref]
        return RecalledItem(
            store="fact",
            id=fact.id,
            text=fact.fact,
            score=score,
            terms=tuple(Term(name, value) for name, value in terms.items()),
            status=status,
            rank=rank,
            kind=str(fact.kind),
            source=fact.source,
            quote=fact.quote,
            created_at=fact.created_at,
            confirmed_at=fact.confirmed_at,
        )
