"""Extraction beside the chat: conversations are searched for lasting facts while nothing else runs.

A conversation that is in the model's window is searched by one question behind its own prompt, so that the server reads
only the question, and the next message of the user extends the prefix as if nothing had been asked. Any other one (left
by a crash, say) needs a prompt of its own, which pushes the chat's out of the server's cache; that is done at the
start, before anything was said, or after a long silence, and the chat's prompt is read again afterwards. A turn that
begins, and even typing, ends the request at once; the conversation stays unsearched then and has its turn later.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tui_agent.agent.asking import Asking, Reply, ask_for_json, room_for
from tui_agent.agent.events import Event, Learned, LearnedItem, MemoryChanged, Notice
from tui_agent.llm.errors import ModelError
from tui_agent.memory.database import StoreError
from tui_agent.memory.extraction import EXTRACTION_SCHEMA, ExtractionReport, Extractor, extraction_prompt
from tui_agent.memory.extraction_check import CheckLog
from tui_agent.memory.places import MemoryFileError

if TYPE_CHECKING:
    from tui_agent.agent.core import Core
    from tui_agent.llm.types import ModelInfo

log = logging.getLogger(__name__)
JSON = dict[str, Any]

LULL_S = 3.0
"""Seconds without a turn or typing before a question behind the chat's own prompt is sent."""
QUIET_S = 120.0
"""Seconds of silence before a prompt of its own may displace that of a conversation that is going on."""
CLOSE_S = 3.0
"""The most seconds that closing waits; slower than ``_FAST`` tokens a second it does not even begin."""
_FAST = 25.0
_REPORTS_KEPT = 20


class Interrupted(Exception):
    """The user had something to say; the question was given up."""


class Errand(Protocol):
    """Something else to ask the model now and then, while nothing else runs. ``schema`` is the form of its answer."""

    schema: JSON

    async def due(self) -> bool: ...

    async def run(self, complete: Callable[[list[dict[str, str]]], Awaitable[str]]) -> object: ...


class Learner:
    """Searches conversations in the background, one request at a time.

    Args:
        core: the conversation that is open now.
        emit: hears :class:`Learned` and notices.
        noted: told of every fact that was kept, so that it can be taken back.
        enabled: whether there is anybody to tell; a single ``ask`` leaves its session for the next chat.
        lull_s: see :data:`LULL_S`; tests wait less. ``quiet_s`` and ``close_s`` likewise.
    """

    def __init__(
        self,
        core: Callable[[], Core],
        emit: Callable[[Event], None],
        noted: Callable[[MemoryChanged], None],
        *,
        enabled: bool = True,
        lull_s: float = LULL_S,
        quiet_s: float = QUIET_S,
        close_s: float = CLOSE_S,
    ) -> None:
        self._core = core
        self._emit = emit
        self._noted = noted
        self.enabled = enabled
        self.lull_s = lull_s
        self.quiet_s = quiet_s
        self.close_s = close_s
        self.errand: Errand | None = None
        self.reports: list[tuple[str, ExtractionReport]] = []
        """The last reports in which something was found, newest first, with the titles of their sessions."""
        self._left: list[Core] = []
        self._pending = True
        self._model_checked = False
        self._paused = False
        self._closed = False
        self._stirred = asyncio.Event()
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._asking: Asking | None = None
        self._task: asyncio.Task[None] | None = None
        self._speed: float | None = None

    @property
    def on(self) -> bool:
        """Whether conversations are searched at all."""
        return self.enabled and not self._closed and self._core().settings.extract_after_turns > 0

    @property
    def working(self) -> bool:
        """Whether it is busy or waits for a quiet moment."""
        return self._task is not None and not self._task.done()

    # -- when -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The app is up and the model ready: what earlier runs have left is searched when it is quiet."""
        self._wake()

    def pause(self) -> None:
        """A turn begins: whatever is asked is given up at once."""
        self._paused = True
        self._resumed.clear()
        self.stir()

    def resume(self, tokens_per_second: float | None = None) -> None:
        """The turn is over; ``tokens_per_second`` is how fast the model answered, when known."""
        self._paused = False
        self._speed = tokens_per_second or self._speed
        self._resumed.set()
        self._wake()

    def stir(self) -> None:
        """The user does something, typing for example: the server should be free when the message comes."""
        self._stirred.set()
        if self._asking is not None:
            self._asking.stop()

    def leave(self, core: Core) -> None:
        """Another session was opened: ``core`` is searched behind its own prompt, which the server still has."""
        if self.on:
            self._left.append(core)
            self._wake()

    async def finish(self) -> None:
        """The app is closed: search the conversation if that is a matter of moments, else at the next start."""
        on, core = self.on, self._core()
        self._closed = True
        self.stir()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        slow = self._speed is None or self._speed < _FAST
        if not on or slow or not core.connection.ready:
            return
        try:
            if await self._fresh(core) and await self._in_window(core):
                await asyncio.wait_for(self._search(core, core.session_id, in_window=True), self.close_s)
        except asyncio.TimeoutError:
            log.info("the conversation is searched at the next start; the model is too slow for it now")
        except (StoreError, MemoryFileError) as error:
            log.warning("the conversation could not be searched: %s", error)

    # -- the work -------------------------------------------------------------------------------------------------

    def _wake(self) -> None:
        if self.on and not self.working:
            self._task = asyncio.create_task(self._work())
            self._task.add_done_callback(_told)

    async def _work(self) -> None:
        """Do what is due, one after another; ends when nothing is, or when the model fails."""
        try:
            await self._check_model()
            while self.on and (due := await self._due()):
                core, session_id, in_window = due
                await self._resumed.wait()
                if not await self._quiet(self.lull_s if in_window or not self._core().prompt.log else self.quiet_s):
                    continue
                if not core.connection.ready:
                    break
                if await self._due() != due:
                    continue
                report = await self._search(core, session_id, in_window=in_window)
                if report.error and not self._stirred.is_set():
                    break  # the model's trouble: tried again after the next turn, or at the next start
                if not report.error:
                    self._left = [each for each in self._left if each.session_id != session_id]
                    if not in_window:
                        await self._warm_again()
            else:
                await self._run_errand()
        except (StoreError, MemoryFileError) as error:
            self._emit(Notice("warning", str(error), key="extraction"))

    async def _run_errand(self) -> None:
        """What else is to be asked now and then, once there is nothing to search and nobody has anything to say."""
        errand, core = self.errand, self._core()
        if errand is None or not self.on or not await errand.due() or not await self._quiet(self.quiet_s):
            return
        if not core.connection.ready or self._core() is not core:
            return

        async def complete(messages: list[dict[str, str]]) -> str:
            return await self._complete(core, messages, False, errand.schema)

        await errand.run(complete)
        await self._warm_again()

    async def _due(self) -> tuple[Core, str, bool] | None:
        """The next conversation to search, and whether it is in the model's window. Looked for while no turn runs."""
        await self._resumed.wait()
        current = self._core()
        self._left = [core for core in self._left if core.session_id != current.session_id]
        for core in self._left:
            if await self._fresh(core):
                return core, core.session_id, await self._in_window(core)
        if await self._fresh(current) >= current.settings.extract_after_turns:
            return current, current.session_id, await self._in_window(current)
        if self._pending:
            others = await current.db.run(current.history.unextracted_sessions, {current.session_id})
            if others:
                return current, others[0].id, False
            self._pending = False
        return None

    async def _quiet(self, seconds: float) -> bool:
        """Wait until no turn runs and nothing was touched for so long; false when something was meanwhile."""
        await self._resumed.wait()
        self._stirred.clear()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), seconds)
        return not self._stirred.is_set() and not self._paused

    async def _fresh(self, core: Core) -> int:
        """How many messages of the user in this session have not been searched."""
        count: int = await core.db.run(core.history.unextracted_count, core.session_id)
        return count

    async def _in_window(self, core: Core) -> bool:
        """Whether the model has every word before it that was not searched yet, and a question fits behind it."""
        entries = core.prompt.log
        if not entries or entries[-1].message["role"] != "assistant":
            return False
        seen = (await core.db.run(core.history.session, core.session_id)).extracted_seq
        stored = await core.db.run(core.history.messages, core.session_id)
        sent = [str(entry.message.get("content", "")) for entry in entries if entry.message["role"] == "user"]
        fresh = [message.content for message in stored if message.role == "user" and message.seq > seen]
        if not all(any(text.endswith(message) for text in sent) for message in fresh):
            return False
        return room_for(core, extraction_prompt())

    async def _search(self, core: Core, session_id: str, *, in_window: bool) -> ExtractionReport:
        """One run over one session, told when something was found."""

        async def complete(messages: list[dict[str, str]]) -> str:
            return await self._complete(core, messages, in_window)

        stores = core.stores
        extractor = Extractor(stores.gate, stores.history, complete, db=stores.db, facts=stores.facts, count=core.count)
        report = await extractor.run(session_id, in_window=in_window)
        if not report.error and not report.nothing_new:
            await self._tell(report)
        return report

    async def _complete(
        self, core: Core, messages: list[dict[str, str]], in_window: bool, schema: JSON = EXTRACTION_SCHEMA
    ) -> str:

        async def ask(asked: Sequence[JSON]) -> Reply:
            if self._paused:
                raise Interrupted("a message came first")
            self._asking = asking = Asking(core)
            try:
                if in_window:
                    return await asking.run([*core.prompt.messages(), *asked], tools=core.prompt.tools)
                return await asking.run(asked, format=schema)
            finally:
                asking.stop()
                self._asking = None

        reply = await ask_for_json(ask, messages)
        if reply.end == "stopped":
            raise Interrupted("a message came first")
        if reply.error is not None:
            raise reply.error
        return answer_of(reply)

    async def _tell(self, report: ExtractionReport) -> None:
        core = self._core()
        if report.kept:
            texts = "; ".join(outcome.text for outcome in report.kept)
            await core.facts_changed(f"The app noted what the user said before: {texts}")
        for outcome in report.kept:
            self._noted(MemoryChanged("saved", "fact", outcome.fact_id or "", outcome.text, undo=True))
        event = learned(report)
        if event.items or report.missed:
            session = await core.db.run(core.history.session, report.session_id)
            self.reports = [(session.title or session.preview, report), *self.reports][:_REPORTS_KEPT]
            self._emit(event)

    async def _warm_again(self) -> None:
        """The chat's prompt was displaced: let the server read it again while nobody waits."""
        core = self._core()
        if self._paused or not core.connection.ready:
            return
        if not core.prompt.log:
            with contextlib.suppress(ModelError):
                await core.warm(lambda event: None)
            return
        self._asking = Asking(core)
        try:
            messages = [*core.prompt.messages(), {"role": "user", "content": ""}]
            await self._asking.run(messages, tools=core.prompt.tools, most=1)
        finally:
            self._asking = None

    async def _check_model(self) -> None:
        """Say it when extraction was checked with another model than the one that does it now."""
        core = self._core()
        if self._model_checked or not core.connection.ready:
            return
        self._model_checked = True
        if not await core.db.run(CheckLog.exists, core.db):
            return
        digest = await digest_of(core.client, core.model)
        if concern := await core.db.run(_concern, core.db, core.model, digest):
            self._emit(Notice("warning", concern, key="extraction_check"))


def answer_of(reply: Reply) -> str:
    """A reply as text with JSON in it; a tool call that came instead of a list says what it wants to save."""
    if not reply.calls:
        return reply.text
    items = [
        {
            "fact": call.arguments.get("fact") or call.arguments.get("new_string") or "",
            "category": call.arguments.get("category", ""),
        }
        for call in reply.calls
    ]
    return f"{reply.text}\n{json.dumps(items, ensure_ascii=False)}"


def learned(report: ExtractionReport) -> Learned:
    """A report as an event."""
    groups = (("kept", report.kept), ("known", report.known), ("waiting", report.waiting), ("refused", report.refused))
    items = [LearnedItem(what, each.text, each.reason, each.fact_id or "") for what, group in groups for each in group]
    items += [LearnedItem("missed", sentence, "You asked to remember this.") for sentence in report.missed]
    return Learned(report.session_id, report.summary, tuple(items), report.compression)


async def digest_of(client: Any, model: str) -> str:
    """What tells this model from another of the same name; its name when the server does not say."""
    base = model.removesuffix(":latest")
    with contextlib.suppress(ModelError):
        installed: list[ModelInfo] = await client.tags()
        return next((each.digest for each in installed if each.name.removesuffix(":latest") == base), "") or base
    return base


def _concern(db: Any, model: str, digest: str) -> str:
    return CheckLog(db).concern(model, digest)


def _told(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("searching a conversation failed", exc_info=error)
