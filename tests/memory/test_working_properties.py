"""Whatever is done in whatever order: no text is lost, budget and pins hold, ids are unique, zones are disjoint.

Every step is followed by the checks, among steps are failing embedders, a store that refuses to write, restarts and
snapshots.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

from tui_agent.memory.database import Database, StoreError
from tui_agent.memory.working import WorkingMemory

BUDGET = 160
KINDS = ["edit", "note", "file", "test_result", "tool_output", "log", "strange kind"]
WORDS = [
    "crane",
    "harbour",
    "retry_it",
    "def make_it():",
    "Łódź",
    "тест",
    "count_attempts()",
    "\n",
    "#",
    "42",
    "`name`",
]
texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join),
    st.text(max_size=60),
    st.integers(60, 150).map(lambda n: "\n".join(f"line {i} of {n}" for i in range(n))),
)


def count(text):
    return len(text.split())


class Embedder:
    identity = "words:32"
    dimension = 32
    fails = False

    async def embed(self, texts, kind):
        if self.fails:
            raise ConnectionError("down")
        found = []
        for text in texts:
            made = np.zeros(32, np.float32)
            for word in text.lower().split():
                made[hashlib.md5(word.encode("utf-8", "replace")).digest()[0] % 32] += 1
            length = np.linalg.norm(made)
            found.append(made / length if length else None)
        return found


class Memories(RuleBasedStateMachine):
    ids = Bundle("ids")

    def __init__(self):
        super().__init__()
        memory_folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # spares thousands of disk syncs
        self.folder = Path(tempfile.mkdtemp(dir=memory_folder))
        self.loop = asyncio.new_event_loop()
        self.embedder = Embedder()
        self.given = set()
        self.texts = {}
        self.snapshots = []
        self.refuse = False
        self.open("s")

    def open(self, session):
        self.db = Database(self.folder / "m.db")
        self.mem = WorkingMemory(
            self.db, self.embedder, counter=count, max_tokens=BUDGET, max_pinned_tokens=60, session_id=session,
            recall_cooldown_steps=2, recall_bypass_sim=0.9,
        )  # fmt: skip
        self.mem._vectors.first_wait = 0.0
        write = self.mem.store.write

        def maybe(batch):
            if self.refuse:
                raise StoreError("The disk is full.", "full")
            return write(batch)

        self.mem.store.write = maybe
        self.run(self.mem.save())

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def teardown(self):
        self.refuse = False
        self.run(self.mem.close())
        self.check_texts()
        self.db.close()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.run(asyncio.sleep(0))
        self.loop.close()
        shutil.rmtree(self.folder)

    # --- what can happen ----------------------------------------------------------------------------

    def remember(self, item_id, text):
        stored = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
        self.given.add(stored)
        self.texts[str(item_id)] = stored
        return item_id

    def pinned(self):
        return {row.id for row in self.mem.hot() if row.pinned}

    def check_pins(self, before):
        """No pin has left the hot zone but one that was released for a newer one, and that was said."""
        released = {event.item_id for event in self.mem.events if event.event == "pin_released"}
        gone = before - {row.id for row in self.mem.hot()}
        assert gone <= released
        assert before - self.pinned() <= released

    @rule(target=ids, kind=st.sampled_from(KINDS), text=texts, pin=st.booleans())
    def add(self, kind, text, pin):
        known, pins = set(self.texts), self.pinned()
        self.mem.events.clear()
        made = self.run(self.mem.add(kind, text, pin=pin, source="src/a.py" if pin else ""))
        assert made not in known, "ids are never used twice"
        self.check_pins(pins)
        return self.remember(made, text)

    @rule(target=ids, text=texts, pin=st.booleans())
    def note(self, text, pin):
        pins = self.pinned()
        self.mem.events.clear()
        made = self.run(self.mem.note(text, pin=pin))
        self.check_pins(pins)
        if made.merged and self.texts.get(made) == text:
            return multiple()
        return self.remember(made, text)

    @rule(item_id=ids, text=texts)
    def edit(self, item_id, text):
        if not self.refuse and self.run(self.mem.edit(item_id, text)):
            self.remember(item_id, text)

    @rule(item_id=ids)
    def pin(self, item_id):
        hot = {row.id for row in self.mem.hot()}
        assert self.mem.pin(item_id) == (item_id in hot)

    @rule(item_id=ids)
    def unpin(self, item_id):
        self.mem.unpin(item_id)

    @rule(item_id=ids)
    def touch(self, item_id):
        if self.mem.touch(item_id):
            assert next(row.age for row in self.mem.hot() if row.id == item_id) == 0

    @rule(item_id=ids)
    def forget(self, item_id):
        if self.run(self.mem.forget(item_id)):
            assert item_id not in {row.id for row in self.mem.hot()}

    @rule(item_id=ids, as_it_was=st.booleans())
    def bring_back(self, item_id, as_it_was):
        self.run(self.mem.bring_back(item_id, as_it_was=as_it_was))

    @rule(query=st.one_of(texts, st.sampled_from(WORDS)), top_k=st.integers(1, 4))
    def recall(self, query, top_k):
        pinned = self.pinned()
        found = self.run(self.mem.recall(query[:200], top_k))
        assert len(found) <= top_k
        hot = {row.id for row in self.mem.hot()}
        assert set(found) <= hot, "what came back is not pushed out by what came back with it"
        assert pinned <= hot
        for item in (*found.record.items, *found.record.near):
            assert sum(term.value for term in item.terms) == pytest.approx(item.score)

    @rule(text=texts)
    def set_goal(self, text):
        pins = self.pinned()
        self.run(self.mem.set_goal(text))
        assert self.pinned() == pins

    @rule()
    def export(self):
        self.snapshots.append(json.loads(json.dumps(self.mem.export_state())))

    @precondition(lambda self: self.snapshots)
    @rule(which=st.integers(0, 100))
    def import_snapshot(self, which):
        state = self.snapshots[which % len(self.snapshots)]
        self.mem.import_state(state)
        self.run(self.mem.save())
        assert {row.text for row in self.mem.hot()} <= self.given

    @rule(fails=st.booleans())
    def embedder_fails(self, fails):
        self.embedder.fails = fails

    @rule(refuse=st.booleans())
    def store_refuses(self, refuse):
        self.refuse = refuse
        self.run(self.mem.save())
        if not refuse:
            assert "kept in this window only" not in self.mem.trouble

    @precondition(lambda self: not self.refuse)
    @rule(session=st.sampled_from(["s", "s", "s", "other"]))
    def restart(self, session):
        self.run(self.mem.close())
        before = [(row.id, row.kind, row.text, row.pinned) for row in self.mem.hot("age")]
        same = session == self.mem.session_id
        self.db.close()
        self.open(session)
        if same:
            assert [(row.id, row.kind, row.text, row.pinned) for row in self.mem.hot("age")] == before

    # --- what must hold -----------------------------------------------------------------------------

    @invariant()
    def the_budget_holds(self):
        made = self.run(self.mem.assemble())
        rendered = count(made.render())
        assert rendered == made.used_tokens
        assert rendered <= BUDGET, "pins have a share smaller than the budget here, so nothing may exceed it"
        assert self.mem.pinned_tokens <= 60
        assert {block.id for block in made.blocks} == {row.id for row in self.mem.hot()}

    @invariant()
    def totals_add_up(self):
        rows = self.mem.hot()
        assert sum(row.tokens for row in rows) == self.mem._hot.used
        assert sum(row.tokens for row in rows if row.pinned) == self.mem.pinned_tokens
        for row in rows:
            assert sum(term.value for term in row.terms) == pytest.approx(row.score)
            assert np.isfinite(row.score)

    @invariant()
    def zones_are_disjoint_and_ids_unique(self):
        hot = [row.id for row in self.mem.hot()]
        assert len(hot) == len(set(hot))
        if not self.refuse:
            cold = [row.id for row in self.run(self.mem.cold(limit=10_000)).rows]
            assert len(cold) == len(set(cold))
            assert not set(hot) & set(cold)
            stored = {
                row["id"]
                for row in self.db.rows(
                    "SELECT id FROM wm_items WHERE zone = 'hot' AND session_id = ?", (self.mem.session_id,)
                )
            }
            assert stored == set(hot)

    @invariant()
    def no_text_is_lost(self):
        if not self.refuse:
            self.check_texts()

    def check_texts(self):
        kept = {
            str(row["text"]) for row in self.db.rows("SELECT text FROM wm_items UNION SELECT text FROM wm_versions")
        }
        assert self.given <= kept
        for item_id, text in self.texts.items():
            row = self.db.row("SELECT text FROM wm_items WHERE id = ?", (item_id,))
            assert row is not None
            assert row["text"] == text

    @initialize()
    def start_empty(self):
        assert self.mem.hot() == []
        assert self.run(self.mem.assemble()).render() == ""


SOAK = bool(os.environ.get("TUI_AGENT_SOAK"))
Memories.TestCase.settings = settings(
    max_examples=300 if SOAK else 15,
    stateful_step_count=60 if SOAK else 30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestAnySequence = Memories.TestCase
