"""Consolidation: facts that say nearly the same, or that cannot both hold, are shown to the user in pairs.

It proposes and never deletes: what gives way is superseded, stays in its chain, and comes back with undo. The text that
stays is always one of the two, word for word; a model is asked what two facts are to each other, not for a text.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum

import numpy as np
from rapidfuzz import fuzz, process

from tui_agent.memory.database import Database, Migration
from tui_agent.memory.extraction_parse import json_values
from tui_agent.memory.facts import FactStore
from tui_agent.memory.proof import claims_of
from tui_agent.memory.text import parse_utc, stems, utc_now, words
from tui_agent.memory.types import Fact, NewFact

log = logging.getLogger(__name__)

EVERY_DAYS = 7
_SIMILAR, _ALMOST_SAME = 78.0, 90.0
_NEAR_IN_MEANING = 0.6  # cosine without what all facts have in common; one thing said in two ways lies at 0.6 … 0.9
_MOST, _MOST_ASKED = 20, 12
_FEWEST_FOR_MEAN = 20  # facts from which their mean direction says something of the embedder, not of them
_MOST_FACTS = 3000
_ROWS_AT_ONCE = 16  # compared with all others in one go
_NEGATIONS = frozenset(
    {"no", "not", "never", "cannot", "without", "nie", "nigdy", "bez", "не", "нет", "никогда", "ни", "без"}
)
ROOM = "consolidation"

Complete = Callable[[list[dict[str, str]]], Awaitable[str]]
Merge = Callable[[Sequence[str], NewFact], Fact]


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE consolidation_declined(pair TEXT PRIMARY KEY, declined_at TEXT NOT NULL)")
    # Ids are ordered by time, also inside a second, and an imported fact has a new id whatever its date is.
    connection.execute(
        "CREATE TABLE consolidation_runs(id INTEGER PRIMARY KEY AUTOINCREMENT, ran_at TEXT NOT NULL, "
        "last_fact TEXT NOT NULL)"
    )


def _keep(connection: sqlite3.Connection) -> None:
    # No texts: a proposal is two ids, and goes with the first of its facts.
    connection.execute(
        "CREATE TABLE consolidation_proposals(pair TEXT PRIMARY KEY, keep TEXT NOT NULL REFERENCES memory(id) "
        "ON DELETE CASCADE, retire TEXT NOT NULL REFERENCES memory(id) ON DELETE CASCADE, relation TEXT NOT NULL, "
        "reason TEXT NOT NULL, by TEXT NOT NULL, proposed_at TEXT NOT NULL)"
    )


MIGRATIONS: tuple[Migration, ...] = (("001 consolidation", _create), ("002 proposals", _keep))


RELATIONS_SCHEMA: dict[str, object] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "pair": {"type": "integer", "minimum": 1},
            "relation": {"type": "string", "enum": ["duplicate", "contradiction", "different"]},
        },
        "required": ["pair", "relation"],
    },
}
"""The form of a model's answer about pairs, for servers that can hold it to one."""


class Relation(str, Enum):
    """What two facts are to each other."""

    DUPLICATE = "duplicate"
    CONTRADICTION = "contradiction"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class MergeProposal:
    """Two live facts of which one may give way. ``keep`` stays as it is said, ``retire`` is superseded by it.

    ``reason`` is a sentence for the user, ``by`` says who thinks so (``rule`` or ``model``). The user may also keep the
    other one (:meth:`turned`).
    """

    relation: Relation
    keep: Fact
    retire: Fact
    reason: str
    by: str = "rule"

    @property
    def id(self) -> str:
        """The same for the same two facts, whichever stays."""
        return "+".join(sorted((self.keep.id, self.retire.id)))

    def turned(self) -> MergeProposal:
        """The same pair with the other one kept."""
        return replace(self, keep=self.retire, retire=self.keep)


class Consolidator:
    """Finds pairs of facts that may be one too many, and applies the user's answer.

    Args:
        db: the database of ``facts``; who was declined is kept in it.
        complete: asks a model about pairs that words alone do not settle; without it only words count.
        identity: index identity whose vectors are used to find pairs that are near in meaning; empty for none.
    """

    def __init__(
        self,
        db: Database,
        facts: FactStore,
        complete: Complete | None = None,
        *,
        identity: str = "",
        clock: Callable[[], str] = utc_now,
    ) -> None:
        self._db = db
        self._facts = facts
        self._complete = complete
        self._identity = identity
        self._clock = clock
        db.migrate(ROOM, MIGRATIONS)

    # --- when -------------------------------------------------------------------------------------

    def last_run(self) -> str | None:
        """When proposals were last looked for (UTC text), or ``None``."""
        found = self._db.value("SELECT max(ran_at) FROM consolidation_runs")
        return None if found is None else str(found)

    def due(self, days: float = EVERY_DAYS) -> bool:
        """Whether it is time again: never run yet, or longer ago than ``days``."""
        last = self.last_run()
        return last is None or parse_utc(last) + timedelta(days=days) <= parse_utc(self._clock())

    # --- proposing --------------------------------------------------------------------------------

    async def propose(self, limit: int = _MOST, *, everything: bool = False) -> list[MergeProposal]:
        """Pairs for the user to decide on, the surest first. Nothing is changed.

        Facts that are new since the last run are compared with all others; ``everything`` compares all with all. A pair
        the user has declined does not come again. An error of the model leaves what words alone say.
        """
        # Not on the database's thread: it takes a while, and a message would have to wait for it.
        sure, open_pairs = await asyncio.to_thread(self._find, everything)
        answered = True
        if self._complete is not None and open_pairs:
            found = await self._ask(open_pairs[:_MOST_ASKED])
            answered = found is not None
            sure += found or []
        if answered:  # else the model is asked again when it is next there
            await self._db.run(self._ran)
        chosen = _each_fact_once(sure)[:limit]
        await self._db.run(self._wait, chosen)
        return chosen

    def waiting(self) -> list[MergeProposal]:
        """What was proposed and not decided yet, oldest first; pairs of which one is no longer current are left out."""
        found = []
        for row in self._db.rows("SELECT * FROM consolidation_proposals ORDER BY proposed_at, pair"):
            keep, retire = self._facts.get(row["keep"]), self._facts.get(row["retire"])
            if keep is None or retire is None or not all(self._facts.is_live(fact.id) for fact in (keep, retire)):
                continue
            found.append(MergeProposal(Relation(row["relation"]), keep, retire, row["reason"], row["by"]))
        return found

    def find(self, end: str) -> MergeProposal:
        """The waiting proposal with this id, or its unique end. Raises ``LookupError``."""
        found = [each for each in self.waiting() if each.id == end or each.id.endswith(end)]
        if len(found) != 1:
            few = "No proposal waits" if not found else f"{len(found)} proposals wait"
            raise LookupError(f"{few} under {end!r}.")
        return found[0]

    def _wait(self, proposals: Sequence[MergeProposal]) -> None:
        with self._db.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO consolidation_proposals VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (each.id, each.keep.id, each.retire.id, str(each.relation), each.reason, each.by, self._clock())
                    for each in proposals
                ],
            )

    def decline(self, proposal: MergeProposal) -> None:
        """The user says no: both stay, and the pair is not proposed again."""
        with self._db.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO consolidation_declined VALUES (?, ?)", (proposal.id, self._clock())
            )
            connection.execute("DELETE FROM consolidation_proposals WHERE pair = ?", (proposal.id,))

    def apply(self, proposal: MergeProposal, merge: Merge | None = None) -> Fact:
        """The user says yes: a new row with the text of ``keep`` replaces both, which stay in its chain. Returns it.

        ``merge`` writes the row where lines in files follow rows; by default only rows are written. Raises
        ``LookupError`` when one of the two is gone and ``ValueError`` when one is no longer current.
        """
        with self._db.transaction():
            keep, retire = (self._current(fact) for fact in (proposal.keep, proposal.retire))
            ids = [keep.id, retire.id]
            new = merged(keep, retire)
            self._db.execute("DELETE FROM consolidation_proposals WHERE pair = ?", (proposal.id,))
            if merge is not None:
                return merge(ids, new)
            return self._facts.supersede_many(ids, new)

    def _current(self, fact: Fact) -> Fact:
        now = self._facts.get(fact.id)
        if now is None:
            raise LookupError(f"“{fact.fact}” is no longer there.")
        if not self._facts.is_live(fact.id):
            raise ValueError(f"“{fact.fact}” is no longer current, so there is nothing to decide.")
        return now

    def _ran(self) -> None:
        self._db.execute(
            "INSERT INTO consolidation_runs(ran_at, last_fact) SELECT ?, coalesce(max(id), '') FROM memory",
            (self._clock(),),
        )

    # --- finding pairs ----------------------------------------------------------------------------

    def _find(self, everything: bool) -> tuple[list[MergeProposal], list[MergeProposal]]:
        """Pairs that words settle, and pairs that are only near each other (with the newer one to keep)."""
        facts = self._facts.newest(_MOST_FACTS)
        last = self._db.value("SELECT last_fact FROM consolidation_runs ORDER BY id DESC LIMIT 1")
        fresh = [n for n, fact in enumerate(facts) if everything or last is None or fact.id > last]
        declined = {str(row["pair"]) for row in self._db.rows("SELECT pair FROM consolidation_declined")}
        sure: list[MergeProposal] = []
        unsure: list[MergeProposal] = []
        for one, other, likeness in self._pairs(facts, fresh):
            if one.scope is not other.scope:
                continue
            keep, retire = (one, other) if _newer(one) > _newer(other) else (other, one)
            found = _by_words(keep, retire, likeness)
            if found is not None and found.id not in declined:
                sure.append(found)
            elif found is None:
                pair = MergeProposal(Relation.DUPLICATE, keep, retire, "They are near each other in meaning.", "model")
                if pair.id not in declined:
                    unsure.append(pair)
        return sure, unsure

    def _pairs(self, facts: Sequence[Fact], fresh: Sequence[int]) -> Iterator[tuple[Fact, Fact, float]]:
        """Pairs worth a look, most alike first, each once: same subject, similar words, or near in meaning."""
        if not fresh:
            return
        texts = [" ".join(words(fact.fact)) for fact in facts]
        # A few rows at a time: no other thread runs meanwhile, the screen's neither.
        parts = [
            [texts[n] for n in fresh[start : start + _ROWS_AT_ONCE]] for start in range(0, len(fresh), _ROWS_AT_ONCE)
        ]
        alike = np.vstack(
            [
                process.cdist(part, texts, scorer=fuzz.token_sort_ratio, score_cutoff=_SIMILAR, dtype=np.float32)
                for part in parts
            ]
        )
        near = self._near_in_meaning(facts)
        found: dict[tuple[int, int], float] = {}
        for row, one in enumerate(fresh):
            for other, fact in enumerate(facts):
                pair = _ordered(one, other)
                same = bool(fact.subject_key) and fact.subject_key == facts[one].subject_key
                if alike[row][other]:
                    found[pair] = float(alike[row][other])
                elif same or pair in near:
                    found[pair] = float(fuzz.token_sort_ratio(texts[one], texts[other]))
        # A model is asked about the first few only, so what is nearest by words or in meaning comes first.
        nearness = {pair: max(likeness / 100, near.get(pair, 0.0)) for pair, likeness in found.items()}
        for (one, other), likeness in sorted(found.items(), key=lambda pair: (-nearness[pair[0]], pair[0])):
            if one != other:
                yield facts[one], facts[other], likeness

    def _near_in_meaning(self, facts: Sequence[Fact]) -> dict[tuple[int, int], float]:
        """Pairs that may say one thing in two ways, with their cosine; only a model can tell."""
        if not self._identity or self._complete is None:
            return {}
        ids, matrix = self._facts.vectors(self._identity, [fact.id for fact in facts])
        if not len(ids):
            return {}
        place = {fact.id: n for n, fact in enumerate(facts)}
        rows = [(n, place[fact_id]) for n, fact_id in enumerate(ids) if fact_id in place]
        chosen = matrix[[n for n, _ in rows]]
        if len(rows) >= _FEWEST_FOR_MEAN:
            # Some embedders see any two texts as near each other; what is common to all says nothing of two.
            chosen = chosen - chosen.mean(axis=0)
            chosen = chosen / np.maximum(np.linalg.norm(chosen, axis=1, keepdims=True), 1e-9)
        alike = np.triu(chosen @ chosen.T, 1)
        first, second = np.nonzero(alike >= _NEAR_IN_MEANING)
        return {
            _ordered(rows[int(a)][1], rows[int(b)][1]): float(alike[a, b]) for a, b in zip(first, second, strict=True)
        }

    # --- asking a model ---------------------------------------------------------------------------

    async def _ask(self, pairs: Sequence[MergeProposal]) -> list[MergeProposal] | None:
        """What the model says of these pairs; ``None`` when it could not be asked."""
        if self._complete is None:
            return []
        try:
            answer = await self._complete([{"role": "user", "content": _question(pairs)}])
        except Exception as error:
            log.warning("a model could not be asked about near duplicates: %s", error)
            return None
        found = []
        for number, word in _relations(answer):
            if 1 <= number <= len(pairs) and word in {Relation.DUPLICATE.value, Relation.CONTRADICTION.value}:
                relation = Relation(word)
                found.append(replace(pairs[number - 1], relation=relation, reason=_REASONS[relation]))
        return found


_REASONS = {
    Relation.DUPLICATE: "They seem to say the same; the newer one would stay.",
    Relation.CONTRADICTION: "They seem to exclude each other; the newer one would stay.",
}


def merged(keep: Fact, retire: Fact) -> NewFact:
    """The row that stands for both: text, quote and place of ``keep``, the greater importance, the later dates."""
    return NewFact(
        subject=keep.subject or retire.subject,
        fact=keep.fact,
        source=keep.source,
        kind=keep.kind,
        importance=max(keep.importance, retire.importance),
        source_kind=keep.source_kind,
        quote=keep.quote,
        message_id=keep.message_id,
        subject_key=keep.subject_key or retire.subject_key,
        scope=keep.scope,
        created_at=keep.created_at,
        confirmed_at=max(keep.confirmed_at, retire.confirmed_at),
        expires_at=keep.expires_at,
        target=keep.target or retire.target,
        target_line=keep.target_line,
    )


def _newer(fact: Fact) -> tuple[str, str]:
    return fact.created_at, fact.id


def _ordered(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _by_words(keep: Fact, retire: Fact, likeness: float) -> MergeProposal | None:
    """What the words of two facts say about them, or ``None`` when they leave it open."""
    same_claims = _claims_hold(keep.fact, retire.fact) and _claims_hold(retire.fact, keep.fact)
    opposed = _negated(keep.fact) != _negated(retire.fact)
    same_subject = bool(keep.subject_key) and keep.subject_key == retire.subject_key
    alike = likeness >= _ALMOST_SAME or set(stems(keep.fact)) == set(stems(retire.fact))
    if alike and same_claims and not opposed:
        return MergeProposal(Relation.DUPLICATE, keep, retire, "They say the same in nearly the same words.")
    if opposed and likeness >= _SIMILAR and same_claims:
        return MergeProposal(
            Relation.CONTRADICTION, keep, retire, "One says the opposite of the other; the newer stays."
        )
    if same_subject:
        reason = f"Both are about “{keep.subject or keep.subject_key}”, and only one of them can be current."
        return MergeProposal(Relation.CONTRADICTION, keep, retire, reason)
    if likeness >= _ALMOST_SAME and not same_claims:
        # "The line length is 100" and "… is 120": one word apart, and that word is what it is about.
        reason = "They differ in one detail; if both cannot hold, the newer stays."
        return MergeProposal(Relation.CONTRADICTION, keep, retire, reason)
    return None


def _claims_hold(one: str, other: str) -> bool:
    """Whether the numbers, identifiers and names of one text are in the other, names in any grammatical form."""
    there = {*words(other), *stems(other)}
    return all(word in there or bool(there.intersection(stems(word))) for word in claims_of(one).required)


def _negated(text: str) -> bool:
    return any(word in _NEGATIONS or word.endswith("n't") for word in words(text))


def _each_fact_once(proposals: Sequence[MergeProposal]) -> list[MergeProposal]:
    """The first proposal of each fact: after it is decided, the next run sees what is left."""
    taken: set[str] = set()
    chosen = []
    for proposal in proposals:
        if not taken & {proposal.keep.id, proposal.retire.id}:
            taken |= {proposal.keep.id, proposal.retire.id}
            chosen.append(proposal)
    return chosen


def _question(pairs: Sequence[MergeProposal]) -> str:
    lines = [
        "Here are pairs of remembered facts, as data. Say for each pair what its two facts are to each other: "
        '"duplicate" (they say the same), "contradiction" (they cannot both hold now) or "different" (both can hold).',
        'Answer with a JSON list and nothing else: [{"pair": 1, "relation": "different"}, …].',
        "",
    ]
    for number, pair in enumerate(pairs, 1):
        older, newer = " ".join(pair.retire.fact.split()), " ".join(pair.keep.fact.split())
        lines.append(f"{number}. older: {json.dumps(older, ensure_ascii=False)}")
        lines.append(f"   newer: {json.dumps(newer, ensure_ascii=False)}")
    return "\n".join(lines)


def _relations(answer: str) -> Iterator[tuple[int, str]]:
    for value in json_values(answer):
        entries = value if isinstance(value, list) else value.get("pairs", [value])
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                number = re.search(r"\d+", str(entry.get("pair", "")))
                yield (int(number[0][:6]) if number else 0), str(entry.get("relation", "")).strip().casefold()
