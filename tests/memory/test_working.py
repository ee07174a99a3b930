"""The working memory as the article describes it: interface, budget, zones, recall, scopes, sessions."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import random

import numpy as np
import pytest

from tui_agent.memory.database import Database
from tui_agent.memory.scoring import KIND_WEIGHTS
from tui_agent.memory.working import MemoryScope, WorkingMemory
from tui_agent.memory.working_types import estimate_tokens


class Words:
    """An embedder whose vectors are bags of words, so that shared words mean closeness."""

    identity = "words:256"
    dimension = 256

    def __init__(self):
        self.calls = []

    async def embed(self, texts, kind):
        self.calls.append((list(texts), kind))
        return [self.vector(text) for text in texts]

    def vector(self, text):
        made = np.zeros(self.dimension, np.float32)
        for word in text.lower().split():
            made[int(hashlib.md5(word.encode()).hexdigest(), 16) % self.dimension] += 1
        length = np.linalg.norm(made)
        return made / length if length else None


def count(text):
    return len(text.split())


def filler(words, seed=0):
    source = random.Random(seed)
    return " ".join(f"w{source.randrange(10**6)}" for _ in range(words))


@pytest.fixture
def db():
    with Database(":memory:") as made:
        yield made


def memory(db, llm=None, **options):
    options.setdefault("counter", count)
    return WorkingMemory(db, llm, **options)


def ids(rows):
    return [row.id for row in rows]


# --- the article's own example -------------------------------------------------------------------------


async def test_the_recipe_of_the_article_runs_as_it_is_written():
    class Llm(Words):
        prompt = ""

        async def chat(self, messages):
            self.prompt = messages[0]["content"]
            return "next"

    with Database(":memory:") as store:
        llm, budget = Llm(), 2048
        code_a = "def count_attempts(result):\n    return result.attempts\n"

        mem = WorkingMemory(store=store, llm=llm, max_tokens=budget)
        await mem.set_goal("добавить count_attempts в tenacity")

        tree = "src/tenacity/__init__.py\nsrc/tenacity/retry.py\n" * 20
        await mem.add("tool_output", tree, summary="дерево проекта")

        await mem.add("edit", code_a, summary="новый модуль attempts.py")
        log = "\n".join(f"tests/test_attempts.py::test_{i} PASSED" for i in range(150))
        await mem.add("test_result", log, summary="pytest: attempts.py")

        ctx = await mem.assemble()
        next_move = await llm.chat([{"role": "user", "content": ctx.render()}])
        assert next_move == "next"
        assert code_a in llm.prompt
        assert "добавить count_attempts в tenacity" in llm.prompt
        assert estimate_tokens(llm.prompt) <= budget

        edit = next(row.id for row in mem.hot() if row.kind == "edit")
        await mem.forget(edit)
        restored = await mem.recall("что делает count_attempts?")
        assert edit in restored
        assert code_a in (await mem.assemble()).render()


async def test_the_constructor_of_the_article_is_accepted():
    class ArticleLlm:
        async def embed(self, texts, model="nomic-embed-text"):
            return [[1.0, 0.0] if text.startswith("retry.py: ") else [0.0, 1.0] for text in texts]

    class Counter:
        def count(self, text):
            return len(text)

    with Database(":memory:") as store:
        mem = WorkingMemory(
            store=store,
            llm=ArticleLlm(),
            counter=Counter(),
            max_tokens=2048,
            scope=MemoryScope(tenant="acme", user="u-42", kind="agent"),
            max_pinned_tokens=600,
            recall_cooldown_steps=4,
            recall_bypass_sim=0.9,
            dedup_threshold=0.95,
        )
        await mem.set_goal("исправить падающий тест в retry.py")
        log = await mem.add("log", "retry.py: " + "x" * 300)
        note = await mem.note("retry_it живёт в retry.py:42")
        text = (await mem.assemble()).render()
        assert "retry_it" in text
        assert len(text) <= 2048, "the given counter counts"
        # Each parameter is in force.
        assert await mem.note("retry_it живёт в retry.py:42 ") == note
        assert mem.pin(await mem.add("log", "y" * 400))
        assert mem.pinned_tokens <= 600
        await mem.forget(log)
        assert [(row.id, row.cooldown) for row in (await mem.cold()).rows][:1] == [(log, 4)]
        stranger = WorkingMemory(store=store, scope=MemoryScope(tenant="acme", user="u-43", kind="agent"))
        assert (await stranger.cold()).total == 0
        assert await mem.recall("retry.py", top_k=5) == [], "in its cooldown"
        assert f"{log[-4:]} log" in (await mem.assemble("retry.py")).render(), "named by its line all the same"
        assert await mem.recall("retry.py: what was it?") == [log], "close enough to lift the cooldown"


# --- two zones and the budget --------------------------------------------------------------------------


async def test_over_the_budget_the_weakest_items_move_to_the_cold_zone(db):
    mem = memory(db, max_tokens=200)
    log = await mem.add("log", filler(50, 1))
    edit = await mem.add("edit", filler(50, 2))
    file = await mem.add("file", filler(50, 3))
    assert set(ids(mem.hot())) == {log, edit, file}
    result = await mem.add("edit", filler(50, 4))
    assert set(ids(mem.hot())) == {edit, file, result}
    page = await mem.cold()
    assert [(row.id, row.text) for row in page.rows] == [(log, filler(50, 1))]
    assert "over budget" in page.rows[0].reason
    assert page.rows[0].step == mem.step


async def test_kind_weights_decide_when_all_else_is_equal(db):
    order = sorted(KIND_WEIGHTS, key=KIND_WEIGHTS.get)
    mem = memory(db, max_tokens=2000)
    made = {kind: await mem.add(kind, filler(20, 7)) for kind in random.Random(1).sample(order, len(order))}
    for row_id in made.values():
        mem.touch(row_id)
    left = {row.id: row for row in mem.hot()}
    kinds = [left[made[kind]].terms[0].value for kind in order]
    assert kinds == sorted(KIND_WEIGHTS.values())


@pytest.mark.parametrize(("stronger", "weaker"), [("edit", "log"), ("note", "test_result"), ("file", "tool_output")])
async def test_all_else_equal_the_heavier_kind_outlives_the_lighter(db, stronger, weaker):
    mem = memory(db, max_tokens=200)
    weak, strong = await mem.add(weaker, filler(60, 1)), await mem.add(stronger, filler(60, 2))
    mem.touch(weak)
    mem.touch(strong)
    mem.touch(weak)
    await mem.add("edit", filler(80, 3))
    assert strong in ids(mem.hot())
    assert weak not in ids(mem.hot())


async def test_an_unknown_kind_weighs_one(db):
    mem = memory(db)
    made = await mem.add("diagram", "boxes and arrows")
    assert mem.explain(made)[0].value == 1.0


async def test_scoring_asks_no_model(db):
    llm = Words()
    mem = memory(db, llm, max_tokens=300)
    await mem.set_goal("one goal")
    for number in range(6):
        await mem.add("log", filler(30, number))
    calls = len(llm.calls)
    for _ in range(3):
        mem.hot()
        await mem.assemble()
    assert len(llm.calls) == calls


async def test_terms_add_up_to_the_score_and_totals_to_the_budget(db):
    mem = memory(db, Words(), max_tokens=400)
    await mem.set_goal("fix the retry loop")
    for number in range(12):
        await mem.add(["log", "edit", "file"][number % 3], f"retry loop {filler(20, number)}")
    rows = mem.hot()
    for row in rows:
        assert sum(term.value for term in row.terms) == pytest.approx(row.score)
        assert mem.explain(row.id) == row.terms
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    assert mem.used_tokens >= sum(row.tokens for row in rows)
    assert mem.used_tokens <= 400


async def test_the_rendered_text_fits_the_budget_with_headers_and_put_away_lines(db):
    mem = memory(db, Words(), max_tokens=300)
    await mem.set_goal("find the failing test")
    for number in range(60):
        await mem.add("log", f"failing test {number} {filler(25, number)}", summary=f"run {number}", source="pytest -q")
        made = await mem.assemble()
        assert count(made.render()) == made.used_tokens <= 300
    assert made.more + len(made.manifest_lines) == (await mem.cold()).total
    assert f"+{made.more} more" in made.render()


@pytest.mark.parametrize(
    "counter",
    [lambda t: len(t) // 4, lambda t: math.ceil(len(t) / 3), len, lambda t: round(len(t) / 4.2), estimate_tokens],
)
async def test_the_budget_holds_for_every_way_of_counting(db, counter):
    mem = memory(db, counter=counter, max_tokens=counter("x" * 6000))
    for number in range(60):
        await mem.add("log", filler(40, number))
        made = await mem.assemble()
        assert counter(made.render()) <= mem.max_tokens
    assert len(made.blocks) > 3


async def test_a_counter_that_finds_the_whole_dearer_than_its_parts_is_respected(db):
    def unfair(text):
        return len(text.split()) + max(0, text.count("\n") - 4) * 5

    mem = memory(db, counter=unfair, max_tokens=200)
    for number in range(20):
        await mem.add("log", filler(15, number))
    assert unfair((await mem.assemble()).render()) <= 200


@pytest.mark.parametrize("budget", [1, 5, 12, 30])
async def test_a_tiny_budget_is_kept_too(db, budget):
    mem = memory(db, max_tokens=budget)
    for number in range(5):
        await mem.add("log", filler(3, number))
    assert count((await mem.assemble()).render()) <= budget
    assert (await mem.cold()).total + len(mem.hot()) == 5


async def test_put_away_lines_are_those_that_fit_the_question(db):
    mem = memory(db, Words(), max_tokens=400)
    for number in range(30):
        await mem.add(
            "log", f"topic{number % 6} happened {filler(30, number)}", summary=f"about topic{number % 6} no {number}"
        )
    made = await mem.assemble("what of topic3")
    assert made.manifest_lines
    assert all("topic3" in line for line in made.manifest_lines)


async def test_items_render_in_order_of_time_inside_their_class(db):
    mem = memory(db, max_tokens=2000)
    first_log = await mem.add("log", "the first log")
    first_edit = await mem.add("edit", "the first edit")
    file = await mem.add("file", "a file", source="src/a.py")
    second_log = await mem.add("test_result", "the second log")
    second_edit = await mem.add("edit", "the second edit")
    note = await mem.note("a note")
    order = [block.id for block in (await mem.assemble()).blocks]
    assert order == [note, first_edit, second_edit, file, first_log, second_log]


async def test_every_item_shows_kind_id_age_and_source(db):
    mem = memory(db, max_tokens=2000)
    made = await mem.add("file", "content", source="src/a b.py")
    mem.touch(await mem.add("log", "x"))
    text = (await mem.assemble()).render()
    assert f" file {made[-4:]} 2 src/a b.py\ncontent" in text


# --- pins ----------------------------------------------------------------------------------------------


async def test_pinned_items_stay_until_unpinned_and_notes_are_pinned(db):
    mem = memory(db, max_tokens=300)
    note = await mem.note("the answer is in module seven")
    log = await mem.add("log", filler(30, 0), pin=True)
    for number in range(1, 30):
        await mem.add("edit", filler(30, number))
    assert {note, log} <= set(ids(mem.hot()))
    assert mem.unpin(log)
    await mem.add("edit", filler(30, 99))
    assert log not in ids(mem.hot())
    assert note in ids(mem.hot())


async def test_similar_notes_merge(db):
    mem = memory(db, Words(), dedup_threshold=0.7)
    first = await mem.note("deploys happen on every friday evening")
    assert await mem.note("Deploys happen on every friday evening.") == first, "the same words"
    second = await mem.note("deploys happen on every friday evening late")
    assert second == first, "nearly the same meaning"
    assert second.merged
    assert [row.text for row in mem.hot()] == ["deploys happen on every friday evening late"]
    other = await mem.note("deploys never happen in december")
    assert not other.merged
    assert len(mem.hot()) == 2


async def test_the_oldest_pins_are_released_first_and_it_is_said(db):
    mem = memory(db, max_tokens=1000, max_pinned_tokens=100)
    made = [await mem.add("log", filler(25, number), pin=True) for number in range(5)]
    pinned = {row.id for row in mem.hot() if row.pinned}
    assert pinned == set(made[-len(pinned) :])
    assert 1 <= len(pinned) < 5
    assert mem.pinned_tokens <= 100
    released = [event for event in mem.events if event.event == "pin_released"]
    assert [event.item_id for event in released] == made[: len(released)]


async def test_pins_have_a_third_of_the_budget_unless_told_otherwise(db):
    assert memory(db, max_tokens=900).max_pinned_tokens == 300
    assert memory(db, max_tokens=900, max_pinned_tokens=math.inf).max_pinned_tokens == math.inf


async def test_when_everything_is_pinned_the_budget_is_exceeded_and_a_warning_is_logged(db, caplog):
    mem = memory(db, max_tokens=100, max_pinned_tokens=math.inf)
    with caplog.at_level(logging.WARNING):
        made = [await mem.add("edit", filler(40, number), pin=True) for number in range(4)]
    assert set(ids(mem.hot())) == set(made)
    assembly = await mem.assemble()
    assert assembly.over_by > 0
    assert len(assembly.blocks) == 4
    assert "exceed the budget" in caplog.text
    assert any(event.event == "over_budget" for event in mem.events)


# --- goal, references ----------------------------------------------------------------------------------


async def test_a_new_goal_reorders_the_items(db):
    mem = memory(db, Words(), calibrate=False)
    network = await mem.add("log", "socket timeout network latency")
    parser = await mem.add("log", "parser token grammar syntax")
    await mem.set_goal("network latency timeout")
    assert mem.hot()[0].id == network
    await mem.set_goal("grammar of the parser token")
    assert mem.hot()[0].id == parser


async def test_a_later_mention_of_a_defined_name_is_a_reference(db):
    mem = memory(db, max_tokens=2000)
    defines = await mem.add("file", "def count_attempts(x):\n    return x\n\ndef other_one():\n    pass\n")
    other = await mem.add("file", "def unrelated():\n    pass\n")
    await mem.add("log", "count_attempts raised, then count_attempts again")
    terms = {row.id: {term.name: term.value for term in row.terms} for row in mem.hot()}
    assert terms[defines]["references"] == pytest.approx(math.log(2))
    assert terms[other]["references"] == 0
    await mem.add("test_result", "count_attempts and other_one pass")
    assert {t.name: t.value for t in mem.explain(defines)}["references"] == pytest.approx(math.log(4))


async def test_a_reference_makes_the_item_fresh_again(db):
    mem = memory(db, max_tokens=2000)
    defines = await mem.add("file", "def count_attempts(x):\n    return x\n")
    for number in range(5):
        await mem.add("log", filler(3, number))
    await mem.add("log", "count_attempts was called")
    assert next(row.age for row in mem.hot() if row.id == defines) == 0


async def test_names_that_everybody_mentions_count_less(db):
    mem = memory(db, max_tokens=5000)
    common = await mem.add("file", "def setup_all():\n    pass\n")
    for number in range(10):
        await mem.add("log", f"setup_all ran {number}")
    rare = await mem.add("file", "def teardown_one():\n    pass\n")
    await mem.add("log", "teardown_one ran")
    terms = {row.id: {t.name: t.value for t in row.terms} for row in mem.hot()}
    assert terms[common]["names"] < -0.3
    assert terms[rare]["names"] == pytest.approx(0, abs=0.05)


async def test_touching_starts_the_age_anew(db):
    mem = memory(db)
    made = await mem.add("log", "one")
    await mem.add("log", "two")
    assert mem.touch(made)
    assert next(row.age for row in mem.hot() if row.id == made) == 0
    assert not mem.touch("nothing")


async def test_a_new_goal_proposes_put_away_items_without_moving_them(db):
    mem = memory(db, Words(), max_tokens=200)
    wanted = await mem.add("log", "parser grammar lookahead tokens ambiguous conflict " + filler(30, 77))
    for number in range(12):
        await mem.add("edit", filler(30, number))
    assert wanted not in ids(mem.hot())
    before = ids(mem.hot())
    proposed = await mem.set_goal("resolve the parser grammar conflict")
    assert proposed[0].id == wanted
    assert mem.proposals == tuple(proposed)
    assert len(proposed) <= 3
    assert set(ids(mem.hot())) == set(before)
    assert "1 put-away item matches" in mem.events[-1].text


# --- recall --------------------------------------------------------------------------------------------


async def put_away(mem, text, kind="log", **more):
    made = await mem.add(kind, text, **more)
    await mem.forget(made)
    return made


async def test_recall_finds_names_without_any_model(db):
    mem = memory(db)
    wanted = await put_away(mem, "def count_attempts(x):\n    return x\n", "file")
    for number in range(5):
        await put_away(mem, filler(20, number))
    found = await mem.recall("что делает count_attempts?")
    assert found == [wanted]
    assert found.record.items[0].terms[0].name == "names"
    assert found.record.items[0].terms[0].value > 0


async def test_recall_finds_words_without_any_model(db):
    mem = memory(db)
    wanted = await put_away(mem, "The nightly backup failed because the bucket was locked.")
    await put_away(mem, "Everything compiled.")
    assert await mem.recall("why did the backups fail?") == [wanted]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Serwer pocztowy nie odpowiadał przez całą noc.", "co z serwerem pocztowym?"),
        ("Тест упал из-за блокировки базы данных.", "почему падают тесты базы?"),
        ("Użytkownik Łukasz zmienił próg na pięć.", "jaki prog ustawil lukasz"),
    ],
)
async def test_recall_finds_inflected_words(db, text, question):
    mem = memory(db)
    wanted = await put_away(mem, text)
    await put_away(mem, "Nothing of interest here.")
    assert (await mem.recall(question))[:1] == [wanted]


async def test_recall_finds_meaning_with_a_model(db):
    class Synonyms(Words):
        def vector(self, text):
            return super().vector(text.replace("automobile", "car"))

    mem = memory(db, Synonyms())
    wanted = await put_away(mem, "automobile automobile automobile")
    await put_away(mem, "kitchen garden window")
    found = await mem.recall("car")
    assert found[0] == wanted
    assert {t.name: t.value for t in found.record.items[0].terms}["meaning"] > 0.3


async def test_recalled_items_come_back_as_recalled_with_their_summary(db):
    mem = memory(db)
    wanted = await put_away(mem, "def count_attempts(x):\n    return x\n", "file", summary="attempts.py", source="a.py")
    assert (await mem.cold()).rows[0].summary == "attempts.py"
    await mem.recall("count_attempts")
    row = mem.hot()[0]
    assert (row.id, row.kind, row.summary, row.terms[0].value) == (wanted, "recalled", "attempts.py", 2.0)
    assert (await mem.cold()).total == 0


async def test_a_recalled_item_goes_back_under_its_own_kind(db):
    mem = memory(db)
    wanted = await put_away(mem, "count_attempts failed")
    await mem.recall("count_attempts")
    await mem.forget(wanted)
    assert (await mem.cold()).rows[0].kind == "log"


async def test_recall_brings_back_at_most_top_k_and_explains_the_rest(db):
    mem = memory(db)
    for number in range(8):
        await put_away(mem, f"deploy number {number} went wrong in the harbour")
    found = await mem.recall("deploy harbour", top_k=2)
    assert len(found) == 2
    assert [item.status for item in found.record.near] == ["budget"] * 5
    for item in (*found.record.items, *found.record.near):
        assert sum(term.value for term in item.terms) == pytest.approx(item.score)


async def test_what_has_nothing_to_do_with_the_question_stays_away(db):
    mem = memory(db, Words())
    for number in range(6):
        await put_away(mem, filler(20, number))
    found = await mem.recall("completely different question")
    assert found == []
    assert all(item.status == "threshold" for item in found.record.near)


async def test_room_is_made_first_and_nothing_that_came_back_is_pushed_out(db):
    mem = memory(db, max_tokens=300)
    wanted = [await put_away(mem, f"harbour crane {number} {filler(40, number)}") for number in range(3)]
    for number in range(10, 30):
        await mem.add("edit", filler(30, number))
    start = mem.step
    found = await mem.recall("harbour crane", top_k=3)
    assert found
    assert set(found) <= set(wanted)
    assert set(found) <= set(ids(mem.hot()))
    assert mem.used_tokens <= 300
    after = [event for event in mem.events if event.step >= start]
    last_eviction = max(i for i, event in enumerate(after) if event.event == "evicted")
    assert last_eviction < min(i for i, event in enumerate(after) if event.event == "brought_back")


async def test_what_answers_the_question_already_does_not_leave_for_what_fits_it_less(db):
    mem = memory(db, max_tokens=260)
    answer = await mem.add("log", "the harbour crane lifts forty tons " + filler(30, 1))
    for number in range(2, 5):
        await put_away(mem, f"someone saw the harbour crane {filler(40, number)}")
    for number in range(10, 14):
        await mem.add("edit", filler(20, number))
    mem.touch(answer)
    if answer not in ids(mem.hot()):
        await mem.bring_back(answer)
    found = await mem.recall("the harbour crane lifts tons", top_k=3)
    assert found
    assert answer in ids(mem.hot())
    assert answer in [item.id for item in found.record.near if item.status == "visible"]


async def test_a_name_inside_the_name_of_a_test_is_found(db):
    mem = memory(db)
    wanted = await put_away(mem, "test_retry_it_stops_early PASSED", "test_result")
    await put_away(mem, "test_other_thing PASSED", "test_result")
    found = await mem.recall("what about retryIt?")
    assert found == [wanted]
    assert found.record.items[0].terms[0].value > 0


async def test_a_word_in_every_item_still_finds_them(db):
    mem = memory(db)
    made = [await put_away(mem, f"crane report {number}") for number in range(3)]
    assert set(await mem.recall("crane")) == set(made)


async def test_a_form_that_no_item_holds_meets_words_with_the_same_beginning(db):
    mem = memory(db)
    wanted = await put_away(mem, "the kubernetesization of everything")
    await put_away(mem, "nothing else")
    assert await mem.recall("kubernetesizing") == [wanted]


async def test_one_put_away_item_can_be_looked_up(db):
    mem = memory(db, recall_cooldown_steps=4)
    made = await put_away(mem, "the text", summary="short")
    row = await mem.cold_item(made)
    assert (row.text, row.summary, row.cooldown) == ("the text", "short", 4)
    assert await mem.cold_item("nothing") is None
    assert await mem.cold_item(await mem.add("log", "hot")) is None


async def test_recall_never_displaces_pins(db):
    mem = memory(db, max_tokens=300, max_pinned_tokens=250)
    notes = [await mem.note(filler(30, number)) for number in range(5)]
    wanted = await put_away(mem, f"harbour crane {filler(60, 50)}")
    found = await mem.recall("harbour crane")
    assert found == [wanted]
    assert set(notes) <= set(ids(mem.hot()))
    assert count((await mem.assemble()).render()) <= 300


async def test_an_item_put_away_just_now_is_in_cooldown(db):
    mem = memory(db, max_tokens=400, recall_cooldown_steps=3)
    first = await mem.add("log", "the harbour crane is broken")
    await mem.forget(first)
    assert (await mem.cold()).rows[0].cooldown == 3
    found = await mem.recall("broken harbour crane")
    assert found == []
    assert found.record.near[0].status == "cooldown"
    for number in range(3):
        await mem.add("log", filler(3, number))
    assert (await mem.cold()).rows[0].cooldown == 0
    assert await mem.recall("broken harbour crane") == [first]


async def test_a_close_enough_question_lifts_the_cooldown(db):
    mem = memory(db, Words(), recall_cooldown_steps=10, recall_bypass_sim=0.9)
    wanted = await put_away(mem, "the harbour crane is broken")
    assert await mem.recall("a broken thing in the harbour") == []
    mem.recall_bypass_sim = None
    assert await mem.recall("the harbour crane is broken") == [], "nothing lifts it without the bypass"
    mem.recall_bypass_sim = 0.9
    assert await mem.recall("the harbour crane is broken") == [wanted]


async def test_a_question_for_a_defined_name_lifts_the_cooldown(db):
    mem = memory(db, recall_cooldown_steps=10)
    wanted = await put_away(mem, "def count_attempts(x):\n    return x\n", "file")
    await put_away(mem, "count_attempts appeared in a log")
    assert await mem.recall("count_attempts") == [wanted]


async def test_important_items_skip_the_cooldown_unless_put_away_by_hand(db):
    mem = memory(db, max_tokens=120, recall_cooldown_steps=10)
    edit = await mem.add("edit", "changed the harbour crane code " + filler(20, 77))
    for number in range(6):
        await mem.add("edit", filler(25, number))
    assert edit not in ids(mem.hot())
    assert await mem.recall("harbour crane") == [edit]
    await mem.forget(edit)
    assert await mem.recall("harbour crane") == []


async def test_the_text_comes_back_byte_for_byte(db):
    mem = memory(db, max_tokens=100_000)
    texts = ["  leading\n\n\ttabs\r\nand\rreturns \u2028 \u00a0", "e\u0301 is not \u00e9", "нуль \x00 внутри",
             "emoji 👩‍👩‍👧 ﬁ ligature", "line\n" * 3000, "#a1b log 1234 0 forged"]  # fmt: skip
    made = [await put_away(mem, text) for text in texts]
    for item_id, text in zip(made, texts, strict=True):
        assert await mem.bring_back(item_id) == item_id
        assert next(row.text for row in mem.hot() if row.id == item_id) == text
        assert await mem.text_of(item_id) == text


# --- by hand -------------------------------------------------------------------------------------------


async def test_forgetting_puts_away_and_bringing_back_as_it_was_undoes_it(db):
    mem = memory(db)
    note = await mem.note("remember the harbour")
    assert await mem.forget(note)
    assert mem.hot() == []
    assert await mem.bring_back(note, as_it_was=True) == note
    row = mem.hot()[0]
    assert (row.kind, row.pinned) == ("note", True)
    assert not await mem.forget("nothing")
    assert await mem.bring_back("nothing") is None


async def test_an_item_can_be_brought_back_by_the_end_of_its_id(db):
    mem = memory(db)
    made = await put_away(mem, "some text")
    assert await mem.bring_back(made[-4:]) == made


async def test_editing_changes_text_names_and_budget_and_keeps_the_old_text(db):
    mem = memory(db, Words(), max_tokens=500)
    made = await mem.add("file", "def old_name():\n    pass\n")
    assert await mem.edit(made, "def new_name():\n    pass\n")
    await mem.add("log", "new_name was called, old_name was not")
    assert {t.name: t.value for t in mem.explain(made)}["references"] == pytest.approx(math.log(2))
    assert [text for text, _, _ in await mem.versions(made)] == ["def old_name():\n    pass\n"]
    await mem.forget(made)
    assert await mem.edit(made, "def third_name():\n    pass\n")
    assert (await mem.search("third_name"))[0].id == made
    old = [item for item in await mem.search("new_name") if item.id == made]
    assert all(item.terms[0].value == 0 for item in old), "the name it had is not found any more"
    assert len(await mem.versions(made)) == 2
    assert not await mem.edit("nothing", "x")


async def test_deleting_forever_leaves_no_byte_in_the_files(tmp_path):
    db = Database(tmp_path / "m.db")
    mem = memory(db, Words())
    secret = "xylophone" + "quartz"
    made = await mem.add("log", f"the {secret} incident", summary=secret)
    await mem.edit(made, f"second {secret} text")
    await mem.search(secret)
    await mem.forget(made)
    other = await put_away(mem, "another text")
    assert await mem.delete_forever(made)
    assert not await mem.delete_forever(made)
    assert made not in [item.id for item in await mem.search(secret)]
    assert (await mem.cold()).rows[0].id == other
    await mem.save()
    db.vacuum()
    data = b"".join(path.read_bytes() for path in db.files())
    assert secret.encode() not in data
    db.close()


async def test_pruning_takes_old_put_away_items_but_not_pinned_ones(db):
    from datetime import datetime, timedelta, timezone

    mem = memory(db)
    old, kept, hot = await put_away(mem, "old"), await put_away(mem, "kept"), await mem.add("log", "hot")
    assert await mem.pin_cold(kept)
    assert await mem.prune() == []
    later = datetime.now(timezone.utc) + timedelta(days=181)
    assert await mem.prune(now=later) == [old]
    assert {row.id for row in (await mem.cold()).rows} == {kept}
    assert ids(mem.hot()) == [hot]


async def test_the_log_keeps_every_automatic_move(db):
    mem = memory(db, max_tokens=150, max_pinned_tokens=60)
    for number in range(4):
        await mem.note(filler(20, number))
    for number in range(4, 12):
        await mem.add("log", filler(30, number))
    await mem.recall("w1")
    stored = await mem.log()
    assert {line.event for line in stored} >= {"evicted", "pin_released"}
    assert [(e.step, e.event, e.item_id) for e in mem.events] == [
        (x.step, x.event, x.item_id) for x in reversed(stored)
    ]


async def test_the_log_holds_no_text_of_items(db):
    mem = memory(db, max_tokens=100)
    for number in range(8):
        await mem.add("log", f"confidential{number} {filler(30, number)}", summary=f"confidential{number}")
    for line in await mem.log():
        assert "confidential" not in line.reason


# --- scopes and sessions -------------------------------------------------------------------------------


async def test_scopes_never_see_overwrite_or_delete_each_other(db):
    one = memory(db, Words(), scope=MemoryScope("acme", "u-1", kind="agent"))
    two = memory(db, Words(), scope=MemoryScope("acme", "u-2", kind="agent"))
    first = await put_away(one, "the harbour crane of the first user")
    state = one.export_state()
    kept = await one.add("log", "hot in the first")
    two.import_state(one.export_state())
    assert ids(two.hot()) == [kept]
    await two.edit(kept, "changed by the second")
    await two.forget(kept)
    assert await two.delete_forever(kept)
    assert await one.text_of(kept) == "hot in the first"
    assert [item.id for item in await two.search("harbour crane")] == []
    assert (await two.cold()).total == 0
    assert await two.bring_back(first) is None
    assert [item.id for item in await one.search("harbour crane")] == [first]
    assert await two.log() != await one.log()
    assert state["items"] == []


async def test_many_items_of_another_scope_do_not_hide_ours(db):
    other, ours = memory(db, scope=MemoryScope("b")), memory(db, scope=MemoryScope("a"))
    for number in range(150):
        await other.add("log", f"harbour crane {number}")
    wanted = await put_away(ours, "harbour crane and much more text that makes it rank lower " + filler(50))
    assert await ours.recall("harbour crane") == [wanted]


async def test_a_restart_shows_the_same_hot_set(tmp_path):
    with Database(tmp_path / "m.db") as db:
        mem = memory(db, Words(), max_tokens=400, session_id="s1")
        await mem.set_goal("repair the crane")
        for number in range(20):
            await mem.add(["log", "edit"][number % 2], f"crane {filler(20, number)}", source="make")
        mem.pin(mem.hot()[-1].id)
        mem.touch(mem.hot()[1].id)
        await mem.save()
        before, text, step = mem.hot(), (await mem.assemble()).render(), mem.step
        away = [(row.id, row.kind, row.text, row.reason, row.step) for row in (await mem.cold()).rows]
        assert away
    with Database(tmp_path / "m.db") as db:
        again = memory(db, Words(), max_tokens=400)
        assert await again.load("s1")
        assert [(r.id, r.kind, r.text, r.pinned, r.age, r.tokens) for r in again.hot()] == [
            (r.id, r.kind, r.text, r.pinned, r.age, r.tokens) for r in before
        ]
        assert (again.goal, again.step) == ("repair the crane", step)
        assert (await again.assemble()).render() == text
        assert [(row.id, row.kind, row.text, row.reason, row.step) for row in (await again.cold()).rows] == away


async def test_a_new_session_starts_empty_and_shares_the_cold_zone(db):
    old = memory(db)
    wanted = await put_away(old, "the harbour crane is broken")
    still_hot = await old.add("edit", "the harbour crane was repaired with glue")
    new = memory(db)
    assert new.hot() == []
    assert (await new.assemble()).blocks == ()
    found = await new.recall("harbour crane", top_k=5)
    assert wanted in found
    assert ids(old.hot()) == [still_hot], "what another session keeps hot stays there"
    copies = [row for row in new.hot() if row.id not in {wanted, still_hot}]
    assert [row.text for row in copies] == ["the harbour crane was repaired with glue"]
    await new.forget(copies[0].id)
    assert copies[0].id not in {row.id for row in (await new.cold()).rows}, (
        "the original is kept, the copy is not needed"
    )


async def test_loading_an_unknown_session_begins_empty(db):
    mem = memory(db)
    made = await mem.add("log", "text")
    first = mem.session_id
    assert not await mem.load("unheard")
    assert mem.hot() == []
    assert await mem.load(first)
    assert ids(mem.hot()) == [made]


async def test_a_snapshot_is_plain_json_and_restores_the_hot_zone(db):
    mem = memory(db, Words(), max_tokens=600)
    await mem.set_goal("the goal")
    for number in range(5):
        await mem.add("edit", f"def name_{number}(): pass")
    await mem.note("pinned")
    state = json.loads(json.dumps(mem.export_state()))
    again = memory(db, Words(), max_tokens=600)
    again.import_state(state)
    assert (await again.assemble()).render() == (await mem.assemble()).render()
    assert [(r.id, r.pinned, r.terms) for r in again.hot()] == [(r.id, r.pinned, r.terms) for r in mem.hot()]
    assert again.session_id == mem.session_id
    assert again.goal == "the goal"
    other = Database(":memory:")
    foreign = memory(other, Words(), max_tokens=600)
    foreign.import_state(state)
    await foreign.save()
    assert {r.text for r in foreign.hot()} == {r.text for r in mem.hot()}
    assert foreign.store.db.value("SELECT count(*) FROM wm_items") == 6
    other.close()


async def test_importing_puts_away_what_is_not_in_the_snapshot(db):
    mem = memory(db)
    kept = await mem.add("log", "kept")
    state = mem.export_state()
    later = await mem.add("log", "came later")
    mem.import_state(state)
    await mem.save()
    assert ids(mem.hot()) == [kept]
    assert [row.id for row in (await mem.cold()).rows] == [later]


async def test_importing_an_older_text_loses_neither_text(db):
    mem = memory(db)
    made = await mem.add("log", "first text")
    state = mem.export_state()
    await mem.edit(made, "second text")
    mem.import_state(state)
    await mem.save()
    assert [row.text for row in mem.hot()] == ["first text"]
    assert [(row.id, row.text) for row in (await mem.cold()).rows] == [(made, "second text")]


async def test_a_snapshot_of_the_reference_can_be_imported(db):
    reference = pytest.importorskip("protoprompt.agent")
    theirs = reference.WorkingMemory()
    await theirs.add("edit", "def from_reference(): pass", summary="from there")
    await theirs.note("a note of theirs")
    mem = memory(db)
    mem.import_state(json.loads(json.dumps(theirs.export_state())))
    await mem.save()
    assert {(r.kind, r.text, r.pinned) for r in mem.hot()} == {
        ("edit", "def from_reference(): pass", False),
        ("note", "a note of theirs", True),
    }


@pytest.mark.parametrize("state", [{}, {"items": 3}, {"items": [{}], "step": 1}, {"items": [], "step": "x"}, []])
async def test_something_that_is_no_snapshot_is_refused_and_changes_nothing(db, state):
    mem = memory(db)
    made = await mem.add("log", "text")
    with pytest.raises(ValueError, match="not a state"):
        mem.import_state(state)
    assert ids(mem.hot()) == [made]


async def test_ids_are_unique_and_say_what_became_of_the_item(db):
    mem = memory(db, max_tokens=150)
    made = [await mem.add("log", filler(20, number)) for number in range(40)]
    assert len(set(made)) == 40
    strong = [await mem.add("edit", filler(30, number)) for number in range(50, 54)]
    weak = await mem.add("log", filler(30, 60))
    assert (strong[-1].zone, strong[-1].whole) == ("hot", True)
    assert weak.zone == "cold"


async def test_the_store_may_be_a_path_or_nothing(tmp_path):
    on_disk = memory(tmp_path / "sub" / "m.db")
    await on_disk.add("log", "text")
    assert (tmp_path / "sub" / "m.db").exists()
    on_disk.store.db.close()
    in_memory = memory(None)
    made = await put_away(in_memory, "text")
    assert await in_memory.bring_back(made) == made
    in_memory.store.db.close()


async def test_the_hot_pane_sorts_by_score_age_and_tokens_and_marks_the_prompt(db):
    mem = memory(db)
    big, young = await mem.add("edit", filler(50)), await mem.add("log", "small")
    assert not any(row.in_prompt for row in mem.hot())
    await mem.assemble()
    assert all(row.in_prompt for row in mem.hot())
    assert ids(mem.hot("age"))[0] == young
    assert ids(mem.hot("tokens"))[0] == big
    assert ids(mem.hot("score"))[0] == big


async def test_the_cold_pane_is_searched_by_words_in_any_spelling(db):
    mem = memory(db)
    wanted = await put_away(mem, "Łódź leży w Polsce")
    await put_away(mem, "something else")
    page = await mem.cold("lodz")
    assert [row.id for row in page.rows] == [wanted]
    assert page.total == 2
    assert (await mem.cold("nothing like it")).rows == ()
    assert (await mem.cold(limit=1)).total == 2


async def test_a_pin_set_without_waiting_is_written_in_the_background(tmp_path):
    with Database(tmp_path / "m.db") as db:
        mem = memory(db, session_id="s")
        made = await mem.add("log", "text")
        assert mem.pin(made)
        await asyncio.wait_for(mem._saving, 5)
        assert db.value("SELECT pinned FROM wm_items WHERE id = ?", (made,)) == 1


async def test_closing_writes_everything_and_ends_the_background_work(tmp_path):
    with Database(tmp_path / "m.db") as db:
        mem = memory(db, session_id="s")
        made = await mem.add("log", "text")
        mem.pin(made)
        await mem.close()
        assert db.row("SELECT pinned, indexed FROM wm_items") is not None
        assert tuple(db.row("SELECT pinned, indexed FROM wm_items")) == (1, 1)
        assert [task for task in asyncio.all_tasks() if "Stored" in repr(task) or "Core" in repr(task)] == []


async def test_searching_moves_nothing(db):
    mem = memory(db, Words())
    for number in range(5):
        await put_away(mem, f"harbour crane {number}")
    step = mem.step
    found = await mem.search("harbour crane", limit=3)
    assert [item.rank for item in found] == [1, 2, 3]
    assert mem.hot() == []
    assert mem.step == step


async def test_equal_texts_are_found_once(db):
    mem = memory(db)
    for _ in range(4):
        await put_away(mem, "the harbour crane is broken")
    assert len(await mem.recall("harbour crane", top_k=3)) == 1


def test_the_built_in_estimate_counts_scripts_apart():
    assert estimate_tokens("retry retry") == 4
    assert estimate_tokens("повтор") == 3
    assert estimate_tokens("") == 0
    assert estimate_tokens("a, b!") == 4


@pytest.mark.parametrize("counter", [3, "x"])
def test_a_counter_must_count(counter):
    with pytest.raises(TypeError, match="counter must be"):
        WorkingMemory(None, counter=counter)


def test_a_budget_of_nothing_is_refused():
    with pytest.raises(ValueError, match="max_tokens"):
        WorkingMemory(None, max_tokens=0)


async def test_another_counter_after_a_restart_counts_what_is_hot_anew(tmp_path):
    with Database(tmp_path / "m.db") as db:
        mem = memory(db, session_id="s")
        await mem.add("log", "one two three four")
        before = mem.used_tokens
        await mem.save()
    with Database(tmp_path / "m.db") as db:
        mem = memory(db, session_id="s", counter=len)
        text = (await mem.assemble()).render()
        assert before < len(text) <= mem.used_tokens
