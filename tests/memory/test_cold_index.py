"""The put-away items that are kept in memory: they follow the store, whoever writes, and are ranked as read anew."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui_agent.memory import cold_index
from tui_agent.memory.cold_index import ColdIndex, Entries
from tui_agent.memory.cold_ranking import candidates, ranked
from tui_agent.memory.cold_terms import index_terms
from tui_agent.memory.database import Database
from tui_agent.memory.ranking import Passage, rank_passages
from tui_agent.memory.working import WorkingMemory

TEXTS = (
    "The crane in the port was painted green on 2026-03-01.",
    "def retry_it(call):\n    return call()",
    "Anna: the crane will be sold in May.",
    "Bert: which crane do you mean?",
    "Żuraw w porcie jest zielony.",
    "Кран в порту покрасили.",
    "Nobody eats soup on Sunday.",
    "The parcels database listens on port 5433.",
)


class Words:
    """An embedder whose vectors are bags of words."""

    identity = "words:64"
    dimension = 64

    async def embed(self, texts: Sequence[str], kind: str = "document") -> list[Any]:
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> Any:
        made = np.full(self.dimension, 0.05, dtype=np.float32)
        for word in text.casefold().split():
            made[int(hashlib.md5(word.encode()).hexdigest(), 16) % self.dimension] += 1
        return made / np.linalg.norm(made)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "memory.db") as made:
        yield made


def memory(db: Database, embedder: Any = None, session: str = "s", **options: Any) -> WorkingMemory:
    return WorkingMemory(db, embedder, counter=lambda text: len(text.split()), session_id=session, **options)


async def put_away(working: WorkingMemory, text: str, **how: Any) -> str:
    item_id = await working.add(how.pop("kind", "log"), text, **how)
    assert await working.forget(item_id)
    return str(item_id)


def followed(index: ColdIndex, identity: str = "") -> ColdIndex:
    while not index.follow(identity):
        pass
    return index


def held(index: ColdIndex) -> dict[str, tuple[object, ...]]:
    """All that an index knows, by id of the item."""
    known: dict[str, tuple[object, ...]] = {}
    for place, row in enumerate(index.known):
        if row is None:
            assert not index.live[place]
            assert not index.has_vector[place]
            continue
        terms = {}
        for term in index._postings:
            entries = Entries.of(index.packed(term))
            for one, head, body in zip(entries.rows.tolist(), entries.head, entries.body, strict=True):
                if one == place:
                    terms[term] = (float(head), float(body))
        names = {}
        for name in index._names:
            rows, defined = index.named(name)
            for one, defines in zip(rows.tolist(), defined.tolist(), strict=True):
                if one == place:
                    names[name] = defines
        vector = tuple(index.matrix[place].tolist()) if index.has_vector[place] else None
        known[row.id] = (
            row, tuple(sorted(terms.items())), tuple(sorted(names.items())), vector, index.speakers[place],
            float(index.steady[place]), float(index.length[place]), int(index.step[place]), int(index.number[place]),
        )  # fmt: skip
    assert len(index) == len(known)
    return known


async def named(index: ColdIndex, working: WorkingMemory, text: str, limit: int = 24, vector: Any = None) -> list[str]:
    return [hit.id for hit in candidates(index, await working.question(text, limit, vector))]


# --- following the store --------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "forget", "back", "edit", "delete", "embed"]),
        st.integers(0, 11),
        st.sampled_from(TEXTS),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.booleans())
def test_after_any_changes_it_equals_one_made_anew(steps: list[tuple[str, int, str]], with_vectors: bool) -> None:
    async def main() -> None:
        with Database(":memory:") as db:
            embedder = Words() if with_vectors else None
            identity = Words.identity if with_vectors else ""
            working = memory(db, embedder)
            index = ColdIndex(working.store, working.scope.key)
            ids: list[str] = []
            for what, which, text in steps:
                chosen = ids[which % len(ids)] if ids else ""
                if what == "add":
                    ids.append(str(await working.add("note" if which % 2 else "log", text, source=f"s{which}")))
                elif what == "forget":
                    await working.forget(chosen)
                elif what == "back" and chosen:
                    await working.bring_back(chosen)
                elif what == "edit" and chosen:
                    await working.edit(chosen, f"{text} {which}")
                elif what == "delete":
                    await working.delete_forever(chosen)
                elif what == "embed":
                    await working.reembed()
                followed(index, identity)
            anew = followed(ColdIndex(working.store, working.scope.key), identity)
            assert held(index) == held(anew)
            cold = {row.id for row in (await working.cold()).rows}
            assert set(held(index)) == cold
            await working.close()

    asyncio.run(main())


async def test_what_another_process_has_put_away_changed_or_deleted_is_seen(db: Database) -> None:
    mine = memory(db, Words())
    index = followed(ColdIndex(mine.store, mine.scope.key), Words.identity)
    with Database(db.path) as elsewhere:
        theirs = memory(elsewhere, Words(), "t")
        first, second = await put_away(theirs, TEXTS[0]), await put_away(theirs, TEXTS[1])
        assert set(held(followed(index, Words.identity))) == {first, second}
        assert index.has_vector.all()
        await theirs.edit(first, "The crane is blue now.")
        await theirs.delete_forever(second)
        assert set(held(followed(index, Words.identity))) == {first}
        assert await named(index, mine, "blue crane") == [first]
        assert index.count("green") == 0
        assert held(index) == held(followed(ColdIndex(mine.store, mine.scope.key), Words.identity))
        await theirs.close()


async def test_vectors_that_another_process_makes_later_are_seen(db: Database) -> None:
    mine = memory(db)
    await put_away(mine, TEXTS[0])
    index = followed(ColdIndex(mine.store, mine.scope.key), Words.identity)
    assert not index.has_vector.any()
    with Database(db.path) as elsewhere:
        theirs = memory(elsewhere, Words(), "t")
        assert await theirs.reembed() == 1
        await theirs.close()
    followed(index, Words.identity)
    assert index.has_vector.all()
    assert index.matrix[0] == pytest.approx(Words().vector(TEXTS[0]))


async def test_with_another_embedder_the_vectors_of_the_first_are_gone(db: Database) -> None:
    working = memory(db, Words())
    await put_away(working, TEXTS[0])
    index = followed(ColdIndex(working.store, working.scope.key), Words.identity)
    assert index.has_vector.all()
    followed(index, "other:3")
    assert not index.has_vector.any()
    assert len(index) == 1
    followed(index, Words.identity)
    assert index.has_vector.all()


async def test_what_is_taken_back_changes_nothing(db: Database) -> None:
    working = memory(db)
    item = await put_away(working, TEXTS[0])
    index = followed(ColdIndex(working.store, working.scope.key))
    before = held(index)

    def fails() -> None:
        with db.transaction() as connection:
            connection.execute("DELETE FROM wm_items")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fails()
    assert held(followed(index)) == before
    assert set(before) == {item}


async def test_items_of_another_scope_are_not_there(db: Database) -> None:
    mine = memory(db)
    from tui_agent.memory.working import MemoryScope

    theirs = memory(db, scope=MemoryScope("local", "elsewhere"))
    await put_away(theirs, TEXTS[0])
    item = await put_away(mine, TEXTS[2])
    index = followed(ColdIndex(mine.store, mine.scope.key))
    assert set(held(index)) == {item}
    assert await named(index, mine, "crane") == [item]


async def test_much_that_is_new_is_not_taken_over_while_somebody_waits(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold_index, "_AT_ONCE", 3)
    working = memory(db)
    index = ColdIndex(working.store, working.scope.key)
    for number in range(3):
        await put_away(working, f"item {number}")
    assert index.keep_up("")
    assert len(index) == 3
    for number in range(4):
        await put_away(working, f"more {number}")
    assert not index.keep_up("")
    assert len(index) == 3
    assert not index.follow("")
    assert index.follow("")
    assert len(index) == 7


# --- what it finds --------------------------------------------------------------------------------


async def test_names_words_and_meaning_find_and_each_text_comes_once(db: Database) -> None:
    working = memory(db, Words())
    ids = [await put_away(working, text) for text in TEXTS]
    twin = await put_away(memory(db, Words(), "t"), TEXTS[0])
    index = followed(ColdIndex(working.store, working.scope.key), Words.identity)
    asked = await working.question("where is retry_it defined?", 3, None)
    hits = candidates(index, asked)
    assert hits[0].id == ids[1]
    assert hits[0].defines
    assert hits[0].fits
    found = await named(index, working, "żurawie w portach", vector=Words().vector("żuraw w porcie"))
    assert found[0] == ids[4]
    found = await named(index, working, "green crane")
    assert found[0] == ids[0]
    assert twin not in found
    assert len(found) == len(TEXTS)
    assert len(await named(index, working, "crane", limit=2)) == 2


async def test_a_limit_is_filled_although_most_of_the_best_are_one_text(db: Database) -> None:
    for number in range(12):
        await put_away(memory(db, session=f"t{number}"), "The crane is green.")
    working = memory(db)
    others = [await put_away(working, f"soup number {number}") for number in range(3)]
    index = followed(ColdIndex(working.store, working.scope.key))
    found = await named(index, working, "green crane", limit=3)
    assert len(found) == 3
    assert set(found[1:]) < set(others)


async def test_a_word_that_nobody_has_used_is_found_by_its_beginning(db: Database) -> None:
    working = memory(db)
    ids = [await put_away(working, text) for text in TEXTS]
    index = followed(ColdIndex(working.store, working.scope.key))
    hits = candidates(index, await working.question("databank", 1, None))
    assert hits[0].id == ids[7]
    assert hits[0].fits
    hits = candidates(index, await working.question("zebra", 8, None))
    assert not any(hit.fits for hit in hits)


async def test_of_many_vectors_those_are_compared_whose_sketches_are_near(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    working = memory(db, Words())
    ids = [await put_away(working, f"{TEXTS[n % 8]} {n} {n * 7}") for n in range(60)]
    whole = followed(ColdIndex(working.store, working.scope.key), Words.identity)
    vector = Words().vector("Żuraw w porcie jest zielony. 4 28")
    expected = await named(whole, working, "zielony", 3, vector)
    monkeypatch.setattr(cold_index, "_ALL", 20)
    monkeypatch.setattr("tui_agent.memory.cold_ranking._CLOSE", 10)
    index = followed(ColdIndex(working.store, working.scope.key), Words.identity)
    near = index.near(vector, 10)
    assert near is not None
    assert len(near) == 10
    assert expected[0] == ids[4]
    assert (await named(index, working, "zielony", 3, vector))[0] == ids[4]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=8),
    st.sampled_from(["crane", "Which crane did Anna mean?", "zielone żurawie", "порт", "retryit", "what on 2026-03-01?",
                     "pbrt databse", "soup soup port"]),
    st.booleans(),
)  # fmt: skip
def test_items_are_ranked_as_passages_are_that_hold_the_same_terms(
    texts: list[str], question: str, with_vectors: bool
) -> None:
    async def main() -> None:
        with Database(":memory:") as db:
            working = memory(db, Words() if with_vectors else None)
            for number, text in enumerate(texts):
                await put_away(working, f"{text} {number}", source=f"file{number}.txt")
            identity = Words.identity if with_vectors else ""
            index = followed(ColdIndex(working.store, working.scope.key), identity)
            vector = Words().vector(question) if with_vectors else None
            passages = []
            for row in index.known:
                assert row is not None
                text = index.texts([row.number])[row.number]
                stems = Counter(index_terms(f" {row.source} {row.kind}")) + Counter(index_terms(text))
                cosine = float(Words().vector(text) @ vector) if vector is not None else None
                passages.append(Passage(row.id, text, stems, row.session_id, row.number, row.created_at, cosine))
            expected = {entry.passage.ref: entry.score for entry in rank_passages(question, passages)}
            found = ranked(index, question, [row.number for row in index.known if row is not None], vector, 99)
            got = {one.item.id: sum(term.value for term in one.terms) for one in found}
            for item_id, score in expected.items():  # what scores nothing is left out
                assert got.get(item_id, 0.0) == pytest.approx(max(score, 0.0), abs=1e-4)
            assert set(got) <= set(expected)
            await working.close()

    asyncio.run(main())


async def test_neighbours_of_what_is_named_are_ranked_too(db: Database) -> None:
    working = memory(db)
    ids = [await put_away(working, text) for text in (TEXTS[6], "Bert: when?", TEXTS[2], "Carl: good", TEXTS[5])]
    index = followed(ColdIndex(working.store, working.scope.key))
    number = next(row.number for row in index.known if row is not None and row.id == ids[2])
    found = [one.item.id for one in ranked(index, "crane sold", [number], None, 9)]
    assert found[0] == ids[2]
    assert set(found) == {ids[1], ids[2], ids[3]}
