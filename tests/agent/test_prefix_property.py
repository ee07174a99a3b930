"""Random sessions: what is sent only grows at its end, is legal for the strictest template, and fits into the window.

A session is a list of steps drawn at random: questions in three languages, tools that work, fail or do not exist,
stops, cut connections, errors, empty and endless answers, thinking, edited files, keys that change memory, closing the
app and coming back, windows that fill up. The server is scripted and counts tokens itself.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.agent.conftest import WordEmbedder
from tests.faults.counts import seed as drawn_seed
from tests.faults.counts import share
from tui_agent.agent.events import Event, Notice, TextDelta, TurnFinished
from tui_agent.agent.session import Session
from tui_agent.llm.wire import faults
from tui_agent.llm.wire.backend import ChatRequest
from tui_agent.llm.wire.records import RequestRecord
from tui_agent.llm.wire.script import Done, Fail, Gate, Script, Think, answer, call, calling
from tui_agent.llm.wire.scripted import ScriptedBackend
from tui_agent.llm.wire.serve import WireServer
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

MODEL = "qwen2.5-coder:1.5b"
ENGLISH = "How does the retry loop in payments.py treat a gateway that answers 503 again and again? "
POLISH = "Jak pętla ponawiania w module płatności traktuje bramkę, która wciąż odpowiada 503? "
RUSSIAN = "Как цикл повторов в модуле платежей обращается со шлюзом, который снова отвечает 503? "
MODELS_OWN = {"temperature", "seed"}


# --- what a strict template accepts -------------------------------------------------------------------------------


def template_problem(messages: list[dict[str, Any]]) -> str:
    """Why a template that insists on alternation would refuse these messages, or an empty string.

    Written for this test alone: system, then user; user and assistant take turns; after an assistant message with
    calls come exactly as many tool results, in the order of the calls, then the assistant; the last message is of the
    user or a tool.
    """
    roles = [message["role"] for message in messages]
    if roles[0] != "system" or "system" in roles[1:]:
        return "the system message is not first, or not alone"
    if roles[1:2] != ["user"]:
        return "what follows the system message is not the user's"
    at, turn = 1, "user"
    while at < len(messages):
        message = messages[at]
        if message["role"] != turn:
            return f"message {at} is of {message['role']}, not of {turn}"
        if turn == "user" and not message.get("content"):
            return f"message {at} is empty"
        at += 1
        if turn == "assistant":
            calls = message.get("tool_calls") or []
            if not calls and not message.get("content"):
                return f"message {at - 1} is an empty answer"
            results = list(itertools.takewhile(lambda m: m["role"] == "tool", messages[at:]))
            names = [made["function"]["name"] for made in calls]
            if [result.get("tool_name") for result in results] != names:
                return f"the calls {names} of message {at - 1} have the results {[r.get('tool_name') for r in results]}"
            at += len(results)
            turn = "assistant" if calls else "user"
        else:
            turn = "assistant"
    return "" if roles[-1] in ("user", "tool") else "the last message waits for no answer"


def test_the_checker_itself_knows_what_is_wrong() -> None:
    system, user, said = {"role": "system", "content": "s"}, {"role": "user", "content": "u"}, "a"
    assistant = {"role": "assistant", "content": said}
    calls = {"role": "assistant", "tool_calls": [{"function": {"name": "recall", "arguments": {}}}]}
    tool = {"role": "tool", "tool_name": "recall", "content": "r"}
    assert template_problem([system, user]) == ""
    assert template_problem([system, user, assistant, user]) == ""
    assert template_problem([system, user, calls, tool]) == ""
    assert template_problem([system, user, calls, tool, assistant, user]) == ""
    for wrong in (
        [user],
        [system, assistant],
        [system, user, user],
        [system, user, assistant],
        [system, user, calls, user],
        [system, user, calls, tool, tool],
        [system, user, calls, tool, user],
        [system, user, tool],
        [system, user, system, user],
        [system, user, {"role": "assistant", "content": ""}, user],
        [system, user, calls, {**tool, "tool_name": "remember"}],
    ):
        assert template_problem(wrong), wrong


# --- a session under test -----------------------------------------------------------------------------------------


@dataclass
class World:
    """A session, its server, and how far the requests were looked at."""

    root: Path
    server: WireServer
    num_ctx: int
    session: Session | None = None
    looked: int = 0
    last: dict[str, Any] | None = None
    said: list[Event] = field(default_factory=list)
    restart: str = ""
    restarts: list[str] = field(default_factory=list)

    @property
    def backend(self) -> ScriptedBackend:
        return self.server.backend  # type: ignore[return-value]

    async def open(self, resume: str) -> None:
        home = self.root / "home"
        paths = UserPaths(home / "config", home / "data", home / "state", home / "cache")
        (self.root / "project").mkdir(exist_ok=True)
        project = Project.open(self.root / "project")
        flags = {"host": self.server.url, "model": MODEL, "num_ctx": self.num_ctx, "keep_messages": 6}
        loaded = load_settings(project, paths, {}, flags)
        self.session = await Session.open(
            project, loaded, resume=resume, user_paths=paths, embedder=WordEmbedder(), interactive=False
        )

    async def turn(self, text: str, script: Any, *more: Any, stop: bool = False) -> None:
        assert self.session is not None
        self.backend._queue.clear()
        self.backend.queue(script, *more)
        self.said = []
        async for event in self.session.send(text):
            self.said.append(event)
            if stop and isinstance(event, TextDelta):
                await self.session.stop()
        assert isinstance(self.said[-1], TurnFinished)
        if any(isinstance(event, Notice) and "summarised" in event.text for event in self.said):
            self.restart = "compaction"
        if any(isinstance(event, Notice) and event.key == "no_tools" for event in self.said):
            self.restart = "tools dropped"
        self.check()

    def check(self) -> None:
        """All requests since the last look."""
        records = self.server.chats
        for record in records[self.looked :]:
            if not record.notes.get("warm_up") and not record.notes.get("probe"):
                self.look_at(record)
        self.looked = len(records)
        self.restart = ""

    def look_at(self, record: RequestRecord) -> None:
        body = record.body
        messages = body["messages"]
        assert template_problem(messages) == "", (template_problem(messages), [m["role"] for m in messages])
        options = body["options"]
        assert options["num_ctx"] == self.num_ctx
        if record.prompt_tokens is not None:
            assert record.notes.get("dropped_messages", 0) == 0
            assert record.prompt_tokens + options["num_predict"] <= self.num_ctx, record.prompt_tokens
        if self.last is not None:
            longer = extends(body, self.last)
            if not longer:
                assert self.restart, (
                    "the prefix was restarted without a reason",
                    first_difference(body, self.last),
                )
                self.restarts.append(self.restart)
        if not is_side_question(body):
            self.last = body


def bytes_of(body: dict[str, Any]) -> list[bytes]:
    """Every message as bytes; thinking is compared apart, since it may be left out once, as a turn begins."""
    kept = [{key: value for key, value in m.items() if key != "thinking"} for m in body["messages"]]
    return [json.dumps(message, ensure_ascii=False).encode() for message in kept]


def extends(body: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether ``body`` is ``before`` to the byte, and what came after it."""
    old = bytes_of(before)
    same = {key: value for key, value in body["options"].items() if key not in MODELS_OWN}
    was = {key: value for key, value in before["options"].items() if key not in MODELS_OWN}
    return (
        bytes_of(body)[: len(old)] == old
        and json.dumps(body.get("tools")) == json.dumps(before.get("tools"))
        and same == was
        and body["model"] == before["model"]
    )


def first_difference(body: dict[str, Any], before: dict[str, Any]) -> str:
    for number, (new, old) in enumerate(itertools.zip_longest(bytes_of(body), bytes_of(before))):
        if new != old:
            return f"message {number}: {new!r:.300} was {old!r:.300}"
    return f"tools or options: {body['options']} was {before['options']}"


def is_side_question(body: dict[str, Any]) -> bool:
    """A question beside the conversation (a summary, the check of a promise): it is never part of the log."""
    return body["options"].get("temperature") == 0.0


# --- steps ---------------------------------------------------------------------------------------------------------

Step = Callable[[World, int, str], Any]


async def plain(world: World, size: int, text: str) -> None:
    await world.turn(text * size, answer("It retries three times. " * size))


async def states(world: World, size: int, text: str) -> None:
    name = f"Kacper{size}"
    write = call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": f"Name: {name}\n"})
    await world.turn(f"My name is {name}. {text}", calling(write), answer("I've noted that."))


async def remembers(world: World, size: int, text: str) -> None:
    fact = f"We deploy payments on day {size} with the blue script"
    await world.turn(f"{fact}. {text}", calling(call("remember", {"fact": fact})), answer("Saved."))


async def several_calls(world: World, size: int, text: str) -> None:
    calls = [call("recall", {"query": f"deploy {number}"}) for number in range(size)]
    await world.turn(text, calling(*calls, text="Let me look."), answer("Found."))


async def reads_a_big_file(world: World, size: int, text: str) -> None:
    assert world.session is not None
    (world.session.project.root / "payments.py").write_text(
        "def retry(order):  # ponów\n    pass\n" * 60 * size, "utf-8"
    )
    rounds = [calling(call("read_file", {"path": "payments.py", "start_line": 1 + 40 * n})) for n in range(3)]
    await world.turn(text, *rounds, answer("It is long."))


async def unknown_tool(world: World, size: int, text: str) -> None:
    await world.turn(text, calling(call("run_command", {"command": "ls"})), answer("I cannot run it."))


async def bad_arguments(world: World, size: int, text: str) -> None:
    await world.turn(text, calling(call("edit_file", {"path": "../evil", "new_string": "x"})), answer("Refused."))


async def written_call(world: World, size: int, text: str) -> None:
    fenced = '```json\n{"name": "recall", "arguments": {"query": "deploy"}}\n```'
    await world.turn(text, answer(fenced), answer("Nothing."))


async def calls_without_end(world: World, size: int, text: str) -> None:
    await world.turn(text, *[calling(call("recall", {"query": f"q{n % 3}"})) for n in range(12)], answer("Enough."))


async def says_nothing(world: World, size: int, text: str) -> None:
    await world.turn(text, faults.empty_answer(), *([faults.empty_answer()] if size > 1 else [answer("Here.")]))


async def thinks(world: World, size: int, text: str) -> None:
    await world.turn(text, Script(Think("Hmm. " * size), "Yes."))


async def thinks_in_tags(world: World, size: int, text: str) -> None:
    await world.turn(text, Script("<think>" + "Hmm. " * size + "</think>"), answer("Yes."))


async def is_cut_off(world: World, size: int, text: str) -> None:
    await world.turn(text, Script("A long story that goes on", Done("length")))


async def fails_at_once(world: World, size: int, text: str) -> None:
    fail = Script(Fail(400, "bad request"))
    await world.turn(text, fail, fail, fail)


async def breaks_in_the_middle(world: World, size: int, text: str) -> None:
    await world.turn(text, Script("Half of an", Fail(500, "an error was encountered while running the model: x")))


async def ends_without_done(world: World, size: int, text: str) -> None:
    await world.turn(text, faults.no_done("Half of"))


async def is_stopped(world: World, size: int, text: str) -> None:
    await world.turn(text, Script("The first half", Gate()), stop=True)


async def stopped_in_a_tool_round(world: World, size: int, text: str) -> None:
    looks = calling(call("recall", {"query": "deploy"}))
    await world.turn(text, looks, Script("The first half", Gate()), stop=True)


async def edits_a_file(world: World, size: int, text: str) -> None:
    assert world.session is not None
    rules = world.session.project.rules_path
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text("# Rules\n\n" + f"- answer in {size} words\n" * size, "utf-8")
    await asyncio.to_thread(world.session.core.sources.refresh)


async def saves_by_key(world: World, size: int, text: str) -> None:
    assert world.session is not None
    await world.session.save_sentence("m1", f"I prefer editor number {size}")


async def a_working_item(world: World, size: int, text: str) -> None:
    assert world.session is not None
    await world.session.core.add_item(
        "file", f"def retry_{size}(): ...\n" * size, summary="retry.py", source="retry.py"
    )


async def puts_away(world: World, size: int, text: str) -> None:
    """Items that fit the question stand in the next message as lines only, and the model asks for one by its id."""
    assert world.session is not None
    core = world.session.core
    ids = []
    for number in range(size):
        (hot, _), _ = await core.add_item(
            "log", f"{text} run {number} of {size}\nsecond line", summary="", source="log"
        )
        await world.session.put_away(hot)
        ids.append(hot)
    await world.turn(text, calling(call("recall", {"query": ids[-1][-4:]})), answer("I see."))


async def comes_back(world: World, size: int, text: str) -> None:
    assert world.session is not None
    await world.session.close()
    await world.open("continue")


async def rebuilds(world: World, size: int, text: str) -> None:
    assert world.session is not None
    if (await world.session.rebuild_prompt()).ok:
        world.restart = "rebuild"
    await plain(world, size, text)


async def deletes_for_good(world: World, size: int, text: str) -> None:
    assert world.session is not None
    facts = await world.session.remembered()
    if facts:
        world.restart = "deletion" if (await world.session.delete_forever(facts[0].ref)).ok else ""
    await plain(world, size, text)


async def a_huge_message(world: World, size: int, text: str) -> None:
    await world.turn(text * 60 * size, answer("That is a lot."))


STEPS: tuple[Step, ...] = (
    *(plain, plain, states, remembers, several_calls, reads_a_big_file, unknown_tool, bad_arguments, written_call),
    *(calls_without_end, says_nothing, thinks, thinks_in_tags, is_cut_off, fails_at_once, breaks_in_the_middle),
    *(ends_without_done, is_stopped, stopped_in_a_tool_round, edits_a_file, saves_by_key, a_working_item, puts_away),
    comes_back,
    *(rebuilds, deletes_for_good, a_huge_message),
)
STEP = st.tuples(st.sampled_from(STEPS), st.integers(1, 4), st.sampled_from((ENGLISH, POLISH, RUSSIAN)))


def default(request: ChatRequest) -> Script | str:
    """What nobody scripted: a summary of the conversation, or an empty list of quotes."""
    if "Summarise this conversation" in str(request.messages[-1].get("content")):
        return "They talked about retries. " * 12
    return "[]"


async def live(steps: list[tuple[Step, int, str]], num_ctx: int) -> World:
    with tempfile.TemporaryDirectory() as folder:
        async with WireServer(ScriptedBackend(default=default)) as server:
            world = World(Path(folder), server, num_ctx)
            await world.open("new")
            try:
                for step, size, text in steps:
                    await step(world, size, text)
                await plain(world, 1, ENGLISH)
            finally:
                assert world.session is not None
                await world.session.close()
            return world


@seed(drawn_seed())
@settings(max_examples=share(120), deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(steps=st.lists(STEP, min_size=4, max_size=14), num_ctx=st.sampled_from((3072, 4096, 8192)))
def test_every_request_extends_the_one_before_is_legal_and_fits(steps: list[Any], num_ctx: int) -> None:
    asyncio.run(live(steps, num_ctx))


@pytest.mark.parametrize("step", dict.fromkeys(STEPS), ids=lambda step: step.__name__)
async def test_each_step_alone_keeps_the_prefix(step: Step) -> None:
    world = await live([(plain, 1, POLISH), (step, 3, ENGLISH), (plain, 1, RUSSIAN), (step, 2, POLISH)], 4096)
    assert set(world.restarts) <= {"rebuild", "deletion", "compaction", "tools dropped"}


async def test_a_long_session_compacts_and_restarts_for_no_other_reason() -> None:
    steps: list[tuple[Step, int, str]] = [(plain, 4, text) for text in (ENGLISH, POLISH, RUSSIAN) * 6]
    world = await live(steps, 3072)
    assert set(world.restarts) == {"compaction"}
    assert 1 <= len(world.restarts) <= len(steps) // 2


async def test_a_summary_of_a_log_that_fills_the_window_is_asked_without_its_last_turns() -> None:
    steps = [(step, size, ENGLISH) for step, size in
             ((plain, 1),) * 4 + ((several_calls, 4), (calls_without_end, 1), (reads_a_big_file, 1))]  # fmt: skip
    world = await live(steps, 3072)
    assert set(world.restarts) == {"compaction"}
