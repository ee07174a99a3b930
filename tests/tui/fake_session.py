"""A session that plays a script: everything the screens can meet, without model, disk or clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from fake_desk import FakeDesk
from fake_upkeep import FakeUpkeep

from tui_agent.agent.events import (
    ContextUsage,
    Event,
    Learned,
    MemoryChanged,
    Notice,
    PhaseChanged,
    Recalled,
    SaveMissing,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UserSaved,
)
from tui_agent.agent.views import (
    ActionResult,
    ColdRow,
    ColdView,
    Comparison,
    ContextView,
    Field,
    HotRow,
    HotView,
    Inspection,
    PromptPart,
    ServerStatus,
    SessionRow,
    ToolRow,
    TranscriptEntry,
)
from tui_agent.llm.types import ModelInfo
from tui_agent.memory.types import RecalledItem, RecallRecord, Term

MODEL = "qwen2.5-coder:7b"
ANSWER = '''You agreed on 2026-08-15 to put data access behind repositories so that the payments module can be tested \
without a database. New ones implement `IRepository<T>`:

```python
class OrderRepository(IRepository[Order]):
    """Orders by customer; no SQL outside this file."""

    def by_customer(self, customer_id: str) -> list[Order]:
        return [self._load(row) for row in self._rows(customer_id)]
```

As of May the migrations ran through **EF Core**; not confirmed since.'''


@dataclass
class Wait:
    """A place in a script where the turn stands still until ``go`` is set (or the turn is stopped)."""

    go: asyncio.Event = field(default_factory=asyncio.Event)


def terms(**values: float) -> tuple[Term, ...]:
    return tuple(Term(name, value) for name, value in values.items())


RECALL = RecallRecord(
    query="Why did we drop direct SQL in the controllers?",
    goal="count attempts in retry.py",
    items=(
        RecalledItem(
            "fact",
            "01kf3m9zz00000000000000a1f",
            "Data access goes through repositories; no SQL in controllers.",
            0.81,
            terms(words=0.44, meaning=0.29, fresh=0.05, weight=0.03),
            rank=1,
            kind="decision",
            source="session of 2026-08-15, message 12",
            quote="let's hide all SQL behind repositories",
            created_at="2026-08-15 09:12:00",
            confirmed_at="2026-08-15 09:12:00",
            tokens=18,
        ),
        RecalledItem(
            "fact",
            "01kf3m9zz000000000000007c2",
            "New repositories implement IRepository<T>.",
            0.64,
            terms(words=0.31, meaning=0.25, fresh=0.06, weight=0.02),
            rank=2,
            kind="convention",
            source="session of 2026-08-15, message 14",
            created_at="2026-08-15 09:20:00",
            confirmed_at="2026-11-02 08:00:00",
            tokens=11,
        ),
        RecalledItem(
            "fact",
            "01kf3m9zz000000000000009de",
            "Migrations run through EF Core.",
            0.41,
            terms(words=0.19, meaning=0.27, fresh=-0.08, weight=0.03),
            rank=3,
            kind="fact",
            source="session of 2026-05-11, message 3",
            created_at="2026-05-11 10:00:00",
            confirmed_at="2026-05-11 10:00:00",
            tokens=9,
        ),
    ),
    near=(
        RecalledItem(
            "fact",
            "01kf3m9zz00000000000000b07",
            "PostgreSQL 16 is the database.",
            0.22,
            terms(meaning=0.22),
            "threshold",
        ),
        RecalledItem("fact", "01kf3m9zz00000000000000c18", "We use npm.", 0.19, terms(words=0.19), "superseded"),
    ),
    threshold=0.3,
    channels=("words", "meaning"),
    took_ms=6.4,
    rules_hash="9f31c2aa",
)

_HOT = (
    ("note", "retry_it lives in retry.py and takes `attempts`", 24, 4.12, True),
    ("edit", "new module attempts.py with count_attempts()", 310, 3.87, False),
    ("note", "tests first in payments", 18, 3.60, True),
    ("recall", "repository pattern, not direct SQL", 41, 2.41, False),
    ("file", "src/orders/repository.py", 640, 1.98, False),
    ("test", "pytest: 3 failed, 41 passed in 2.1s", 180, 1.12, False),
    ("log", "uvicorn start-up", 199, 0.71, False),
)
_COLD = (
    ("tool", "project tree", 880, "over budget, weakest (0.52)", 41, "2026-11-30 09:43:00", 2),
    ("log", "migration output", 2310, "over budget, weakest (0.31)", 37, "2026-11-30 09:40:00", 0),
    ("file", "src/payments/gateway.py", 512, "put away by you", 30, "2026-11-30 09:22:00", 0),
    ("test", "pytest: 12 failed, 30 passed", 420, "over budget, weakest (0.66)", 22, "2026-11-30 09:10:00", 0),
    ("note", "старая заметка о миграциях", 14, "put away by you", 9, "2026-11-29 17:02:00", 0),
)


def hot_rows() -> list[HotRow]:
    return [
        HotRow(
            f"h{number}",
            kind,
            text,
            text,
            tokens,
            score,
            terms(kind=3.0, references=score - 3.0),
            pinned,
            number,
            source="tool call",
            created_at="2026-11-30 09:40:00",
            in_prompt=number < 4,
        )
        for number, (kind, text, tokens, score, pinned) in enumerate(_HOT)
    ]


def cold_rows() -> list[ColdRow]:
    return [
        ColdRow(f"c{number}", kind, text, text, tokens, reason, step, at, cooldown)
        for number, (kind, text, tokens, reason, step, at, cooldown) in enumerate(_COLD)
    ]


def history() -> list[TranscriptEntry]:
    return [
        TranscriptEntry("m1", "user", "Why did we drop direct SQL in the controllers?", "2026-11-30 09:41:00"),
        TranscriptEntry(
            "m2",
            "assistant",
            ANSWER,
            "2026-11-30 09:41:20",
            recall=RECALL,
            tokens_per_second=38.2,
            memory_line="1 touched, 1 put away",
            tools=(
                ToolRow(
                    "t1",
                    "recall",
                    {"query": "direct SQL controllers"},
                    "1. Data access goes through repositories",
                    summary="3 hits",
                ),
                ToolRow(
                    "t2",
                    "read_file",
                    {"path": "src/orders/repository.py"},
                    "class OrderRepository:\n    ...",
                    summary="lines 1-58",
                ),
            ),
        ),
        TranscriptEntry("m3", "user", "From now on we write tests first in payments.", "2026-11-30 09:43:00"),
        TranscriptEntry(
            "m4",
            "assistant",
            "Noted: in the payments module, tests come first.",
            "2026-11-30 09:43:10",
            recall=replace(RECALL, items=RECALL.items[1:2], near=()),
            memory_line="1 saved",
            tools=(
                ToolRow(
                    "t3",
                    "remember",
                    {"text": "we write tests first in payments"},
                    "saved",
                    summary="convention, live",
                    rescued=True,
                ),
            ),
        ),
    ]


def facts() -> list[Inspection]:
    rows = (
        ("f1", "preference", "Prefers pnpm over npm", "I prefer pnpm", "2026-11-02", True),
        ("f2", "fact", "Name: Kacper", "My name is Kacper", "2026-10-28", False),
        (
            "f3",
            "decision",
            "Data access goes through repositories; no SQL in controllers.",
            "hide all SQL",
            "2026-08-15",
            False,
        ),
        ("f4", "convention", "W module płatności najpierw piszemy testy", "najpierw testy", "2026-11-30", False),
    )
    return [fact(id, kind, text, quote, confirmed, pinned) for id, kind, text, quote, confirmed, pinned in rows]


def fact(id: str, kind: str, text: str, quote: str, confirmed: str, pinned: bool = False) -> Inspection:
    return Inspection(
        f"fact:{id}",
        kind,
        text,
        fields=(
            Field("kind", kind),
            Field("created", "2026-08-15"),
            Field("confirmed", confirmed),
            Field("used", "4 times"),
        ),
        quote=quote,
        source="session of 2026-08-15, message 12",
        pinned=pinned,
        history=("2026-06-02 We write SQL in controllers (replaced 2026-08-15)",),
        actions=("pin", "put_away", "confirm", "correct", "expire", "set_expiry", "promote", "delete_forever"),
        log=("2026-08-15 09:12:00 UTC  remembered",),
    )


class FakeSession(FakeUpkeep):
    """Implements ``SessionLike``. ``calls`` records what was asked; ``scripts`` are the turns to play, in order."""

    def __init__(
        self,
        entries: Sequence[TranscriptEntry] | None = None,
        *,
        empty: bool = False,
        server: ServerStatus | None = None,
        draft: str = "",
        prompts: Sequence[str] = (),
        goal: str = "count attempts in retry.py",
    ) -> None:
        self.id = "s1"
        self.title = "Repositories"
        self.goal = "" if empty else goal
        self.server = server or ServerStatus(
            "http://127.0.0.1:11434", MODEL, ready=True, num_ctx=8192, embedder="builtin"
        )
        self.busy = False
        self.model_desk = FakeDesk(self)
        self.setup: Any = None
        self.findings: list[Any] = []
        self.problems: tuple[Notice, ...] = ()
        self.entries = [] if empty else list(history() if entries is None else entries)
        self.hot_items = [] if empty else hot_rows()
        self.cold_items = [] if empty else cold_rows()
        self.facts = [] if empty else facts()
        self.waiting = (
            []
            if empty
            else [
                Inspection(
                    "quarantine:q1",
                    "fact",
                    "The retry limit is 5",
                    fields=(Field("kind", "fact"),),
                    why="the model's own idea",
                    source="answer of 09:41",
                    actions=("approve", "reject"),
                )
            ]
        )
        self.draft = draft
        self.prompts = list(prompts)
        self.scripts: list[list[Event | Wait | Exception]] = []
        self.calls: list[tuple[str, ...]] = []
        self.found: list[tuple[str, Learned]] = []
        self.listeners: list[Callable[[Event], None]] = []
        self.stopped = asyncio.Event()
        self.closed = False
        self.comparing: Wait | None = None
        self.last_event = "" if empty else 'evicted 09:43: tool_output "tree" (0.52, 880 tok)'

    async def examine(self, terminal: Any) -> list[Any]:
        self.calls.append(("examine", str(terminal.columns), str(terminal.rows)))
        return list(self.findings)

    # -- turns ---------------------------------------------------------------------------------------------------

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        self.listeners.append(callback)
        return lambda: self.listeners.remove(callback)

    def emit(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)

    def emit_later(self, event: Event) -> None:
        """Emit from a callback of the loop, as background work does."""
        asyncio.get_running_loop().call_soon(self.emit, event)

    async def start(self) -> None:
        self.calls.append(("start",))
        self.emit(PhaseChanged("idle"))

    async def send(self, text: str, *, masked: Collection[str] = ()) -> AsyncIterator[Event]:
        self.calls.append(("send", text))
        self.busy = True
        self.stopped.clear()
        number = len(self.calls)
        yield UserSaved(f"u{number}", text)
        script = self.scripts.pop(0) if self.scripts else [TextDelta(f"Answer to {text[:60]}.")]
        spoken = ""
        try:
            for step in script:
                if isinstance(step, Wait):
                    waits = [asyncio.ensure_future(step.go.wait()), asyncio.ensure_future(self.stopped.wait())]
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                    for wait in waits:
                        wait.cancel()
                elif isinstance(step, Exception):
                    raise step
                elif isinstance(step, TurnFinished):
                    yield replace(step, message_id=step.message_id or f"a{number}", text=step.text or spoken)
                    return
                else:
                    spoken += step.text if isinstance(step, TextDelta) else ""
                    yield step
                if self.stopped.is_set():
                    yield TurnFinished("stopped", f"a{number}", spoken)
                    return
                await asyncio.sleep(0)
        finally:
            self.busy = False
        yield TurnFinished("answered", f"a{number}", spoken, output_tokens=20, tokens_per_second=38.0)

    def hurry(self) -> None:
        self.calls.append(("hurry",))

    def learned(self) -> list[tuple[str, Learned]]:
        return self.found

    async def stop(self) -> None:
        self.calls.append(("stop",))
        self.stopped.set()

    async def close(self) -> None:
        self.closed = True

    # -- views ---------------------------------------------------------------------------------------------------

    async def hot(self, sort: str = "score") -> HotView:
        keys = {"score": lambda row: -row.score, "age": lambda row: row.age, "tokens": lambda row: -row.tokens}
        rows = sorted(self.hot_items, key=keys[sort])
        pinned = sum(row.tokens for row in rows if row.pinned)
        return HotView(tuple(rows), sum(row.tokens for row in rows), 2048, pinned, self.last_event)

    async def cold(self, query: str = "", limit: int = 200) -> ColdView:
        rows = [row for row in self.cold_items if query.casefold() in row.text.casefold()]
        return ColdView(tuple(rows[:limit]), len(self.cold_items), query)

    async def recall_of(self, message_id: str) -> RecallRecord | None:
        self.calls.append(("recall_of", message_id))
        return next((entry.recall for entry in self.entries if entry.message_id == message_id), None)

    async def transcript(self) -> list[TranscriptEntry]:
        return list(self.entries)

    async def inspect(self, ref: str) -> Inspection:
        self.calls.append(("inspect", ref))
        kind, _, id = ref.partition(":")
        for item in (*self.facts, *self.waiting):
            if item.ref == ref:
                return item
        for row in self.hot_items:
            if kind == "hot" and row.id == id:
                fields = (Field("kind", row.kind), Field("tokens", str(row.tokens)), Field("age", f"{row.age} steps"))
                actions = ("pin", "put_away", "touch", "correct")
                return Inspection(
                    ref,
                    "Hot item",
                    row.text,
                    fields,
                    row.terms,
                    row.score,
                    source=row.source,
                    pinned=row.pinned,
                    actions=actions,
                )
        for hit in (*RECALL.items, *RECALL.near):
            if hit.id == id:
                found = fact(id, hit.kind, hit.text, hit.quote, hit.confirmed_at[:10])
                return replace(
                    found,
                    ref=ref,
                    terms=hit.terms,
                    total=hit.score,
                    why="words “SQL” and “controllers”, same subject",
                )
        return Inspection(ref, "Item", f"the text of {ref}", actions=("bring_back",) if kind == "cold" else ())

    async def quarantined(self) -> list[Inspection]:
        return list(self.waiting)

    async def remembered(self) -> list[Inspection]:
        return list(self.facts)

    async def context(self) -> ContextView:
        parts = (
            PromptPart("system", "You are a careful assistant.\nCRITICAL: Context Window Limitations", 910),
            PromptPart("rules", "- tests first in payments\n- no SQL in controllers [/x]", 208),
            PromptPart("recalled", "Data access goes through repositories.", 312),
            PromptPart("hot", "retry_it lives in retry.py", 604),
            PromptPart("history", "Why did we drop direct SQL?", 1100),
        )
        return ContextView(parts, 3134, 8192, 1024)

    async def sessions(self) -> list[SessionRow]:
        return [
            SessionRow(
                "s1", "Repositories", "2026-11-30 09:00:00", "2026-11-30 09:43:00", 4, "count attempts in retry.py"
            ),
            SessionRow("s0", "Где живут миграции", "2026-11-28 10:00:00", "2026-11-28 11:30:00", 22),
        ]

    async def switch(self, session_id: str) -> None:
        self.calls.append(("switch", session_id))
        self.id = session_id
        self.entries = [] if session_id == "new" else history()[:2]

    async def search_history(self, query: str) -> list[TranscriptEntry]:
        return [entry for entry in self.entries if query.casefold() in entry.text.casefold()]

    async def models(self) -> list[ModelInfo]:
        return [
            ModelInfo(
                MODEL,
                capabilities=frozenset({"completion", "tools"}),
                context_length=32768,
                parameter_size="7.6B",
                quantization="Q4_K_M",
                size=4_700_000_000,
            ),
            ModelInfo(
                "gemma3:4b",
                capabilities=frozenset({"completion"}),
                context_length=131072,
                parameter_size="4.3B",
                quantization="Q4_K_M",
                size=3_300_000_000,
            ),
        ]

    async def switch_model(self, name: str) -> ActionResult:
        self.calls.append(("switch_model", name))
        self.server = replace(self.server, model=name)
        return ActionResult(True, f"{name} answers from the next message on.")

    async def save_draft(self, text: str) -> None:
        self.draft = text

    async def load_draft(self) -> str:
        return self.draft

    async def prompt_history(self) -> list[str]:
        return list(self.prompts)

    # -- actions -------------------------------------------------------------------------------------------------

    def _did(self, verb: str, *what: str, text: str = "", undo: bool = True) -> ActionResult:
        self.calls.append((verb, *what))
        return ActionResult(True, text or f"{verb} {' '.join(what)}", undo=undo)

    def _change_hot(self, ref: str, **changes: Any) -> None:
        self.hot_items = [replace(row, **changes) if f"hot:{row.id}" == ref else row for row in self.hot_items]

    async def pin(self, ref: str) -> ActionResult:
        self._change_hot(ref, pinned=True)
        self.facts = [replace(item, pinned=True) if item.ref == ref else item for item in self.facts]
        return self._did("pin", ref, text="Pinned.")

    async def unpin(self, ref: str) -> ActionResult:
        self._change_hot(ref, pinned=False)
        self.facts = [replace(item, pinned=False) if item.ref == ref else item for item in self.facts]
        return self._did("unpin", ref, text="Unpinned.")

    async def put_away(self, ref: str) -> ActionResult:
        gone = [row for row in self.hot_items if f"hot:{row.id}" == ref]
        self.hot_items = [row for row in self.hot_items if row not in gone]
        self.cold_items[:0] = [
            ColdRow(row.id, row.kind, row.text, row.summary, row.tokens, "put away by you", 42, "2026-11-30 09:44:00")
            for row in gone
        ]
        return self._did("put_away", ref, text="Put away.")

    async def bring_back(self, ref: str) -> ActionResult:
        gone = [row for row in self.cold_items if f"cold:{row.id}" == ref]
        self.cold_items = [row for row in self.cold_items if row not in gone]
        self.hot_items += [
            HotRow(row.id, "recall", row.text, row.summary, row.tokens, 2.0, (), False, 0) for row in gone
        ]
        return self._did("bring_back", ref, text="Brought back.")

    async def note(self, text: str) -> ActionResult:
        self.hot_items.insert(0, HotRow("noted", "note", text, text, 9, 9.5, (), True, 0))
        return self._did("note", text, text="Noted.")

    async def touch(self, ref: str) -> ActionResult:
        self._change_hot(ref, age=0, score=9.0)
        return self._did("touch", ref, text="Touched.")

    async def confirm(self, ref: str) -> ActionResult:
        return self._did("confirm", ref, text="Confirmed today.")

    async def correct(self, ref: str, text: str) -> ActionResult:
        self._change_hot(ref, text=text, summary=text)
        self.facts = [replace(item, text=text) if item.ref == ref else item for item in self.facts]
        return self._did("correct", ref, text)

    async def edit(self, ref: str, text: str) -> ActionResult:
        self._change_hot(ref, text=text, summary=text)
        return self._did("edit", ref, text)

    async def retry(self, way: str) -> AsyncIterator[Event]:
        self.calls.append(("retry", way))
        yield TextDelta(f"Answered again, {way}.")
        yield TurnFinished("answered", f"r{len(self.calls)}", f"Answered again, {way}.")

    async def ask_without(
        self, message_id: str, refs: Collection[str], on_text: Callable[[str], None] | None = None
    ) -> Comparison:
        self.calls.append(("ask_without", message_id, *refs))
        if on_text is not None:
            on_text("Without it ")
        if self.comparing is not None:
            waits = [asyncio.ensure_future(self.comparing.go.wait()), asyncio.ensure_future(self.stopped.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        status = "stopped" if self.stopped.is_set() else "answered"
        after = "Without it I would [guess]."
        return Comparison(message_id, "q", "", after, tuple(refs), ("x",), status, notes=("Earlier answers stay.",))

    def stop_comparing(self) -> None:
        self.calls.append(("stop_comparing",))
        self.stopped.set()

    async def never_for_topic(self, ref: str, question: str) -> ActionResult:
        return self._did("never_for_topic", ref, question, text="Not recalled again for that.")

    async def allow(self, ref: str) -> ActionResult:
        return self._did("allow", ref, text="Recalled again.")

    async def expire(self, ref: str) -> ActionResult:
        return self._did("expire", ref, text="It no longer holds.")

    async def delete_forever(self, ref: str) -> ActionResult:
        self.facts = [item for item in self.facts if item.ref != ref]
        return self._did("delete_forever", ref, text="Deleted: 0 occurrences left.", undo=False)

    async def undo(self) -> ActionResult:
        return self._did("undo", text="Taken back.", undo=False)

    async def save_sentence(self, message_id: str, sentence: str, target: str = "") -> ActionResult:
        return self._did(
            "save_sentence", message_id, sentence, target, text=f"Saved “{sentence}” in {target or 'memory'}."
        )

    async def approve(self, id: str) -> ActionResult:
        self.facts += [replace(item, ref=f"fact:{id}") for item in self.waiting if item.ref == f"quarantine:{id}"]
        self.waiting = [item for item in self.waiting if item.ref != f"quarantine:{id}"]
        return self._did("approve", id, text="Approved.")

    async def reject(self, id: str) -> ActionResult:
        self.waiting = [item for item in self.waiting if item.ref != f"quarantine:{id}"]
        return self._did("reject", id, text="Rejected.")

    async def set_goal(self, text: str) -> ActionResult:
        self.goal = text
        return self._did("set_goal", text, text="Goal set.")

    async def offer_tools(self, how: Literal["on", "off", "once"]) -> ActionResult:
        return self._did("offer_tools", how, text=f"Tools: {how}.", undo=False)

    async def reindex(self) -> ActionResult:
        return self._did("reindex", text="4 facts are in the vector index.")

    async def rebuild_prompt(self) -> ActionResult:
        return self._did("rebuild_prompt", text="The next prompt starts anew.")


def rich_turn(wait: Wait | None = None) -> list[Event | Wait | Exception]:
    """A turn with every kind of event, standing still near its end when ``wait`` is given."""
    return [
        PhaseChanged("recalling"),
        Recalled(RECALL),
        PhaseChanged("reading", "reading 3,900 tokens"),
        ContextUsage(3134, 8192, {"system": 910, "rules": 208, "recalled": 312, "hot": 604, "history": 1100}),
        ThinkingDelta("The user wants attempts counted. "),
        ThinkingDelta("I look at retry.py first."),
        PhaseChanged("tool", "read_file"),
        ToolStarted("x1", "read_file", {"path": "retry.py"}),
        ToolFinished("x1", "read_file", True, "def retry_it(attempts=3):\n    ...", "lines 1-40"),
        ToolStarted("x2", "edit_file", {"path": "../x", "old_string": "", "new_string": "y"}, rescued=True),
        ToolFinished("x2", "edit_file", False, "refused: outside the memory folder", "outside the memory folder"),
        PhaseChanged("generating"),
        *[TextDelta(piece) for piece in ANSWER.split(" ") for piece in (piece, " ")],
        MemoryChanged("saved", "fact", "f9", "tests first in payments", target="AGENTS.md", undo=True),
        MemoryChanged("evicted", "hot", "h6", "uvicorn start-up", reason="weakest"),
        *([wait] if wait is not None else []),
        SaveMissing("", "I prefer pnpm over npm", claimed=True, target="AGENTS.md#User Preferences"),
        TurnFinished("answered", tool_calls=2, output_tokens=180, tokens_per_second=38.4),
    ]
