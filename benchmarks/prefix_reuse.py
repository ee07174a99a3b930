"""How much of a prompt the model server need not read again, and how long the first token takes: ours and usual.

A session of 40 turns: a memory is written in every turn, facts are recalled, tools are called in two turns of three, a
rules file is edited once, and the window fills up once. The scripted server counts, token by token, how much of each
prompt it had already. Beside it the usual layout with the same texts (``_usual_layout.py``). The scripted server reads
1,000 tokens a second; times follow from that.

With ``--real`` the built-in model answers: ours up to turn 22 with short answers, of the usual layout only turns 2, 20,
21 and 22, in a window of 4,096 tokens. The engine itself reports how many tokens it had; times are measured. About ten
minutes on two cores.

    python benchmarks/prefix_reuse.py [--real] [--json] [--check]
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from _report import Report, one_blas_thread, parser, ratio, table
from _usual_layout import UsualLayout

from tui_agent.agent.compaction import SUMMARY_REQUEST
from tui_agent.agent.events import Notice, Recalled, ToolFinished, TurnFinished, UserSaved
from tui_agent.agent.session import Session
from tui_agent.llm.client import ModelClient
from tui_agent.llm.types import ChatChunk, Metrics, ModelOptions
from tui_agent.memory.types import NewFact
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

JSON = dict[str, Any]

TURNS, REAL_TURNS = 40, 22
EDITED_AT = 12
COMPARED = (2, 20, 21, 22)
LATE = 20
NUM_CTX, REAL_CTX = 10240, 4096
REUSE_GOAL, SESSION_GOAL, SPEED_GOAL = 0.97, 0.90, 5.0
SHORT = 48  # tokens of an answer in the real run

# What is known before the session begins; the questions ask for it.
KNOWN = (
    ("payments", "Payments are retried three times, with two seconds between the tries."),
    ("gateway", "The gateway of the payments service listens on port 7443."),
    ("release", "We release on Thursdays, never on a Friday."),
    ("tests", "Tests are run with pytest, the slow ones only at night."),
    ("database", "Orders are kept in PostgreSQL, sessions in Redis."),
    ("style", "Public functions have a docstring in English."),
    ("admin", "The admin page is built with Vite and pnpm."),
    ("logs", "Logs are JSON lines, kept for thirty days."),
)
QUESTIONS = (
    "How often are payments retried?",
    "On which port does the gateway listen?",
    "On which day do we release?",
    "What are tests run with?",
    "Where are orders kept?",
    "In which language is a docstring?",
    "What builds the admin page?",
    "How long are logs kept?",
)
ANSWER = (
    "That follows from what the project has decided earlier. In short, keep it as it is, note the reason where the "
    "next reader looks for it, and change one thing at a time so that the tests tell which of them mattered."
)


def statement(turn: int) -> str:
    """What the user states in a turn; it is written to memory."""
    return f"Module {turn} of the warehouse is owned by team {chr(65 + turn % 26)}{turn}."


def said(turn: int) -> str:
    """The user's message of a turn, counted from 1."""
    return f"{statement(turn)} {QUESTIONS[turn % len(QUESTIONS)]} Answer in one short sentence."


@dataclass
class Asked:
    """One request as it went: tokens of the prompt, those the server had, and seconds to the first token."""

    turn: int
    prompt: int = 0
    cached: int = 0
    first_s: float = 0.0
    read_s: float = 0.0
    kind: str = "turn"


@dataclass
class Run:
    """All requests of one layout."""

    asked: list[Asked] = field(default_factory=list)
    special: set[int] = field(default_factory=set)
    turn: int = 0

    def share(self, turns: Sequence[int] | None = None) -> float:
        """Tokens reused of tokens sent."""
        rows = [a for a in self.asked if turns is None or a.turn in turns]
        return sum(a.cached for a in rows) / max(1, sum(a.prompt for a in rows))

    def ordinary(self) -> list[int]:
        """Turns but the first and those that restart the prefix on purpose."""
        return [n for n in sorted({a.turn for a in self.asked}) if n > 1 and n not in self.special]

    def firsts(self, turns: Sequence[int]) -> list[Asked]:
        """The first request of each turn."""
        found = {}
        for row in self.asked:
            if row.turn in turns and row.kind == "turn":
                found.setdefault(row.turn, row)
        return list(found.values())


def listen(client: Any, run: Run) -> None:
    """Note every chat of a client in ``run``."""
    chat = client.chat

    async def noted(*args: Any, **kwargs: Any) -> AsyncIterator[ChatChunk]:
        row = Asked(run.turn, kind=_kind(kwargs["options"], args[1]))
        began = time.perf_counter()
        async with aclosing(chat(*args, **kwargs)) as chunks:
            async for chunk in chunks:
                if not row.first_s and (chunk.content or chunk.thinking or chunk.tool_calls or chunk.done):
                    row.first_s = time.perf_counter() - began
                if chunk.metrics is not None:
                    _count(row, chunk.metrics)
                    run.asked.append(row)
                yield chunk

    client.chat = noted


def _kind(options: ModelOptions, messages: Sequence[JSON]) -> str:
    if options.num_predict <= 1:
        return "warm-up"
    return "summary" if messages[-1].get("content") == SUMMARY_REQUEST else "turn"


def _count(row: Asked, metrics: Metrics) -> None:
    row.prompt, row.cached = metrics.prompt_tokens or 0, metrics.cached_tokens or 0
    row.read_s = metrics.prompt_s or 0.0


@dataclass
class Spoken:
    """What a turn of ours was made of, for the usual layout to say the same."""

    text: str
    message_id: str = ""
    memories: list[str] = field(default_factory=list)
    messages: list[JSON] = field(default_factory=list)


@asynccontextmanager
async def opened(folder: Path, **flags: Any) -> AsyncIterator[Session]:
    """A session in a fresh project with the known facts."""
    user = UserPaths.find()
    paths = UserPaths(folder / "config", folder / "data", folder / "state", user.cache)
    root = folder / "warehouse"
    root.mkdir()
    project = Project.open(root)
    flags = {"model": "qwen2.5-coder:1.5b", "temperature": 0.0, "seed": 1, **flags}
    loaded = load_settings(project, paths, {}, flags)
    session = await Session.open(project, loaded, user_paths=paths, interactive=False)
    try:
        for subject, fact in KNOWN:
            session.stores.facts.add(NewFact(subject, fact, "message of an earlier session"))
        yield session
    finally:
        await session.close()


async def take_turn(session: Session, run: Run, number: int) -> Spoken:
    """One turn of ours; what was said in it."""
    run.turn = number
    before = len(session.core.prompt.log)
    spoken = Spoken(said(number))
    if number == EDITED_AT:
        rules = session.project.rules_path
        rules.parent.mkdir(parents=True, exist_ok=True)
        rules.write_text("# Rules\n\n- Name the module first.\n- No exclamation marks.\n", "utf-8")
        await asyncio.to_thread(session.core.sources.refresh)
    epoch = session.core.prompt.epoch
    async for event in session.send(spoken.text):
        if isinstance(event, UserSaved):
            spoken.message_id = event.message_id
        elif isinstance(event, Recalled):
            spoken.memories = [item.text for item in event.record.items]
        elif isinstance(event, TurnFinished) and event.status not in ("answered", "cut_off", "empty"):
            raise SystemExit(f"turn {number} ended as {event.status}: {event.error}")
        elif isinstance(event, (Notice, ToolFinished)):
            logging.debug("turn %d: %s", number, event)
    if session.core.prompt.epoch != epoch:
        run.special.add(number)
        before = 0
    turn = session.core.prompt.log[before:]
    last = max(i for i, entry in enumerate(turn) if entry.message["role"] == "user")
    spoken.messages = [entry.message for entry in turn[last + 1 :]]
    return spoken


# --- on the scripted server ---------------------------------------------------------------------------------------


def scripts(number: int) -> list[Any]:
    """What the scripted model says in a turn: it saves what was stated, looks something up, answers."""
    from tui_agent.llm.wire.script import answer, call, calling

    fact = statement(number)
    if number % 3 == 0:
        return [
            calling(call("recall", {"query": QUESTIONS[number % len(QUESTIONS)]})),
            calling(call("remember", {"fact": fact})),
            answer(ANSWER),
        ]
    if number % 3 == 1:
        write = {"path": "knowledge/projects/warehouse.md", "old_string": "", "new_string": f"{fact}\n"}
        return [calling(call("edit_file", write)), answer(ANSWER)]
    return [calling(call("remember", {"fact": fact})), answer(f"{ANSWER} {ANSWER}")]


async def scripted() -> tuple[Run, Run]:
    """Ours and the usual layout, each on a server of its own."""
    from tui_agent.llm.wire.scripted import ScriptedBackend
    from tui_agent.llm.wire.serve import WireServer

    ours, usual = Run(), Run()
    spoken: list[Spoken] = []
    summary = "The user owns modules of a warehouse and asks about payments, releases, tests and logs. " * 4
    with tempfile.TemporaryDirectory() as folder:
        async with WireServer(ScriptedBackend(default=summary)) as server:
            flags = {"host": server.url, "num_ctx": NUM_CTX, "embedder": "none"}
            async with opened(Path(folder), **flags) as session:
                await session.core.connected(lambda event: None)
                listen(session.core.client, ours)
                await session.core.warm(lambda event: None)
                for number in range(1, TURNS + 1):
                    server.backend.queue(*scripts(number))
                    spoken.append(await take_turn(session, ours, number))
                    assert server.backend.unused == 0, f"turn {number} left answers over"
                identity, tools, options = session.core.prompt.system, session.core.prompt.tools, session.core.options
        async with WireServer(ScriptedBackend(default=ANSWER)) as server:
            client = ModelClient(server.url)
            listen(client, usual)
            layout = UsualLayout(identity)
            for number, turn in enumerate(spoken, 1):
                usual.turn = number
                server.backend.queue(*scripts(number))
                messages = layout.asked(turn.text, turn.memories, number)
                for message in turn.messages:
                    if message["role"] == "assistant":
                        await _ask(client, messages, options, tools)
                    messages = layout.add(message)
            await client.aclose()
    for run in (ours, usual):
        for row in run.asked:
            row.first_s = row.read_s  # the made-up speed of the scripted server, not the loopback's
    return ours, usual


async def _ask(client: Any, messages: Sequence[JSON], options: ModelOptions, tools: Sequence[JSON]) -> None:
    async with aclosing(client.chat("qwen2.5-coder:1.5b", messages, options=options, tools=tools)) as chunks:
        async for _ in chunks:
            pass


# --- on the built-in model ----------------------------------------------------------------------------------------


async def real() -> tuple[Run, Run]:
    """Ours to turn 22, and four requests of the usual layout, on one engine."""
    ours, usual = Run(), Run()
    spoken: list[Spoken] = []
    with tempfile.TemporaryDirectory() as folder:
        flags = {"embedded": True, "num_ctx": REAL_CTX, "embedder": "builtin", "check_saves": False}
        async with opened(Path(folder), **flags) as session:
            began = time.monotonic()
            await session.core.connected(lambda event: None)
            await session.core.choose_embedder(lambda event: None)
            connection = session.core.connection
            connection.options = replace(session.core.options, num_predict=SHORT)
            listen(session.core.client, ours)
            await session.core.warm(lambda event: None)
            for number in range(1, REAL_TURNS + 1):
                spoken.append(await take_turn(session, ours, number))
                await session.save_sentence(spoken[-1].message_id, statement(number))
                row = ours.firsts([number])
                if row:
                    print(
                        f"turn {number:2d}: {row[0].cached:5,} of {row[0].prompt:5,} tokens reused, first token after "
                        f"{row[0].first_s:6.2f} s   ({time.monotonic() - began:4.0f} s so far)",
                        flush=True,
                    )
            layout = UsualLayout(session.core.prompt.system)
            brief = replace(session.core.options, num_predict=8)
            client = session.core.client
            client.chat = _unwrapped(client)
            listen(client, usual)
            for number, turn in enumerate(spoken, 1):
                usual.turn = number
                messages = layout.asked(turn.text, turn.memories, number)
                if number in COMPARED:
                    await _ask_model(client, session.core.model, messages, brief, session.core.prompt.tools)
                    row = usual.firsts([number])
                    print(
                        f"usual layout, turn {number:2d}: {row[0].cached:5,} of {row[0].prompt:5,} tokens reused, "
                        f"first token after {row[0].first_s:6.2f} s   ({time.monotonic() - began:4.0f} s so far)",
                        flush=True,
                    )
                for message in turn.messages:
                    layout.add(message)
    return ours, usual


def _unwrapped(client: Any) -> Any:
    return type(client).chat.__get__(client)


async def _ask_model(
    client: Any, model: str, messages: Sequence[JSON], options: ModelOptions, tools: Sequence[JSON]
) -> None:
    async with aclosing(client.chat(model, messages, options=options, tools=tools)) as chunks:
        async for _ in chunks:
            pass


# --- what it prints -------------------------------------------------------------------------------------------------


def _late(run: Run) -> list[Asked]:
    turns = sorted({a.turn for a in run.asked if a.turn >= LATE and a.turn not in run.special})
    return run.firsts(turns)


def _figures(run: Run) -> dict[str, float]:
    late = _late(run)
    return {
        "reused_ordinary": run.share(run.ordinary()),
        "reused_session": run.share(),
        "read_a_turn": statistics.median(a.prompt - a.cached for a in run.asked if a.turn > 1),
        "first_token_s_late": statistics.median(a.first_s for a in late) if late else 0.0,
    }


def main() -> int:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--real", action="store_true", help="on the built-in model instead (about ten minutes)")
    options = arguments.parse_args()
    ours, usual = asyncio.run(real() if options.real else scripted())
    report = Report("prefix_reuse")
    mine, theirs = _figures(ours), _figures(usual)
    for name, value in mine.items():
        report.put(name, value)
        report.put(name, theirs[name], peer="usual layout")
    rows = []
    for number in sorted({a.turn for a in ours.asked if a.turn}):
        own, other = ours.firsts([number]), usual.firsts([number])
        if not own:
            continue
        marks = [
            "a file was edited" if number == EDITED_AT else "",
            "the window was full" if number in ours.special else "",
        ]
        rows.append(
            [number, own[0].prompt, own[0].cached / max(1, own[0].prompt), own[0].first_s,
             *([other[0].prompt, other[0].cached / max(1, other[0].prompt), other[0].first_s] if other
               else [None, None, None]),
             ", ".join(filter(None, marks))]
        )  # fmt: skip
        for found, peer in ((own, ""), (other, "usual layout")):
            for row in found:
                report.put("reused", row.cached / max(1, row.prompt), category=f"turn {number}", peer=peer)
                report.put("first_token_s", row.first_s, category=f"turn {number}", peer=peer)
    table(["turn", "tokens", "reused", "first s", "usual", "reused", "first s", ""], rows)
    print()
    table(
        ["", "ours", "usual layout"],
        [
            ["reused on ordinary turns", mine["reused_ordinary"], theirs["reused_ordinary"]],
            ["reused over the session", mine["reused_session"], theirs["reused_session"]],
            ["tokens read a request, median", mine["read_a_turn"], theirs["read_a_turn"]],
            [f"first token from turn {LATE}, median s", mine["first_token_s_late"], theirs["first_token_s_late"]],
        ],
    )
    report.goal("prompt tokens reused on ordinary turns", f">= {REUSE_GOAL}", mine["reused_ordinary"],
                mine["reused_ordinary"] >= REUSE_GOAL)  # fmt: skip
    report.goal("prompt tokens reused over the session", f">= {SESSION_GOAL}", mine["reused_session"],
                mine["reused_session"] >= SESSION_GOAL)  # fmt: skip
    faster = ratio(theirs["first_token_s_late"], mine["first_token_s_late"])
    report.goal(f"first token from turn {LATE}, times faster", f">= {SPEED_GOAL:.0f}", faster,
                None if faster is None else faster >= SPEED_GOAL)  # fmt: skip
    if not options.real:
        report.goal("compactions", "1", float(len(ours.special)), len(ours.special) == 1)
        report.notes.append("tokens are 4 bytes of a ChatML rendering; 1,000 of them are read a second")
    else:
        report.notes.append("the engine reports what it had; the check of promises is off, answers end at 48 tokens")
    return report.finish(options)


if __name__ == "__main__":
    one_blas_thread()
    logging.basicConfig(level=logging.WARNING)
    sys.exit(main())
