"""Facts and notes on their way into an answer: those found, with the terms of their scores and their rows of now."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tui_agent.memory.answers import answer_term, asked_for
from tui_agent.memory.choosing import NEAR, Candidate, Limits
from tui_agent.memory.fact_index import FactHits, FactIndex, FactRow
from tui_agent.memory.ranking import RELATED, RELATED_ALONE, meaning_weight, words_beside_meaning
from tui_agent.memory.text import parse_utc, utc_now
from tui_agent.memory.types import Fact, Kind, Term, Vector, kind_of
from tui_agent.memory.vectors import Neighbours

AGE, IMPORTANCE, USE, PIN = 0.04, 0.03, 0.02, 0.03
"""The most that age takes away, and that importance, recent use and a pin add: they decide between facts that fit
about equally well, and nothing else."""
CANDIDATES = 32
"""How many are found by each of words, meaning and other words."""

_OLD_DAYS, _RECENT_DAYS = 365.0, 30.0


def fact_candidates(
    index: FactIndex,
    query: str,
    vector: Vector | None,
    notes: Mapping[str, str],
    limits: Limits,
    wanted: Collection[str],
    near: Neighbours | None = None,
) -> list[Candidate]:
    """Facts and ``notes`` (text by name) that fit ``query``, best first, as many as the answer and its explanation can
    use; of the stores in ``wanted``. On the database's thread."""
    hits = index.find(query, vector, notes, max(CANDIDATES, limits.top_k), near)
    passed_over = sum(map(limits.pass_over, {*hits.words, *hits.meaning, *hits.related}))
    # The small terms change the order a little: half as many again are looked at.
    found = _described(index, hits, notes, 3 * (limits.top_k + NEAR) // 2 + passed_over)
    if kind := asked_for(query):
        for candidate in found:
            candidate.terms.append(answer_term(kind, candidate.text))
    return [candidate for candidate in found if candidate.ref.partition(":")[0] in wanted]


def _described(index: FactIndex, hits: FactHits, notes: Mapping[str, str], most: int) -> list[Candidate]:
    """The best hits with their rows as they are at this moment: what has expired or gone since is dropped."""
    values = _values(hits)
    kept = sorted(values, key=lambda ref: (-sum(values[ref]), ref))[:most]
    rows = index.rows([ref[5:] for ref in kept if ref.startswith("fact:")])
    rivals = index.rivals([fact.subject_key for fact in rows.values() if fact.live])
    now = utc_now()
    described: list[Candidate] = []
    for ref in kept:
        store, _, name = ref.partition(":")
        if store == "file":
            if name in notes:
                described.append(Candidate(ref, notes[name], "file", name, terms=_terms(ref, values[ref], hits)))
        elif name in rows:
            fact = rows[name]
            terms = _terms(ref, values[ref], hits) + fact_terms(fact, now)
            others = [text for other, text in rivals.get(fact.subject_key, ()) if other != fact.id]
            if fact.live and others:
                terms.append(Term("contradiction", 0.0, f"also held to be true: {'; '.join(others)}"))
            candidate = Candidate(
                ref, fact.fact, str(kind_of(fact.kind, Kind.FACT)), fact.source, fact.quote, fact.created_at,
                fact.confirmed_at, superseded=not fact.live, terms=terms,
            )  # fmt: skip
            described.append(candidate)
    return described


def _values(hits: FactHits) -> dict[str, list[float]]:
    """What words, meaning and other words say for each hit."""
    weight = meaning_weight(hits.quality)
    values = {ref: [0.0, weight * hit.calibrated, 0.0] for ref, hit in hits.meaning.items()}
    for ref, hit in hits.words.items():
        if ref in values:
            values[ref][0] = words_beside_meaning(hit.words)
        else:
            values[ref] = [hit.words, 0.0, 0.0]
    for ref, other in hits.related.items():
        values.setdefault(ref, [0.0, 0.0, 0.0])[2] = (RELATED if ref in hits.meaning else RELATED_ALONE) * other.share
    return values


def _terms(ref: str, values: Sequence[float], hits: FactHits) -> list[Term]:
    """The terms of one hit for these values."""
    words, meaning, related = hits.words.get(ref), hits.meaning.get(ref), hits.related.get(ref)
    terms = [Term("words", values[0], ", ".join(words.matched) if words is not None else "")]
    if hits.has_vectors:
        terms.append(Term("meaning", values[1], f"cosine {meaning.cosine:.2f}" if meaning is not None else "no vector"))
    if related is not None:
        terms.append(Term("related", values[2], f"other words for {', '.join(related.matched)}"))
    return terms


def fact_terms(fact: Fact | FactRow, now: str) -> list[Term]:
    """Small terms that decide between facts that fit equally well; age counts from the last confirmation, and what it
    takes away is capped: expiry and review deal with what is really old."""
    days = _days_between(fact.confirmed_at, now)
    terms = [
        Term("age", -AGE * min(days / _OLD_DAYS, 1.0), f"confirmed {int(days)} days ago"),
        Term("importance", IMPORTANCE * (fact.importance - 5) / 5, f"importance {fact.importance}"),
    ]
    if fact.last_used_at and _days_between(fact.last_used_at, now) <= _RECENT_DAYS:
        terms.append(Term("use", USE, f"used on {fact.last_used_at[:10]}"))
    if fact.pinned:
        terms.append(Term("pin", PIN, "pinned"))
    return terms


def _days_between(earlier: str, later: str) -> float:
    try:
        return max(0.0, (parse_utc(later) - parse_utc(earlier)).total_seconds() / 86400)
    except ValueError:
        return 0.0  # a time somebody wrote by hand
