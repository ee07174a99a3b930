"""``Session``: the composition root, and the only object the TUI and the commands hold."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import replace
from typing import Any

from tui_agent.agent.actions import MemoryActions
from tui_agent.agent.connection import Connection
from tui_agent.agent.core import Core
from tui_agent.agent.events import Event, Learned, MemoryChanged, Notice, PhaseChanged
from tui_agent.agent.handing import SessionHanding
from tui_agent.agent.inspecting import Inspector
from tui_agent.agent.learning import Learner, learned
from tui_agent.agent.models import ModelDesk, switch_sentence
from tui_agent.agent.opening import open_core
from tui_agent.agent.quiet import give_way, no_collection, warm_up
from tui_agent.agent.reload import LiveReload
from tui_agent.agent.session_explain import SessionExplain
from tui_agent.agent.session_review import SessionReview
from tui_agent.agent.session_setup import SessionSetup
from tui_agent.agent.session_store import SessionStore
from tui_agent.agent.session_tools import MARKS, SessionTools
from tui_agent.agent.stores import Stores
from tui_agent.agent.turn import Turn
from tui_agent.agent.views import (
    ActionResult,
    ContextView,
    PromptPart,
    ServerStatus,
    SessionRow,
    TranscriptEntry,
)
from tui_agent.llm.errors import ConsentNeeded, ModelError
from tui_agent.llm.types import ModelInfo
from tui_agent.memory.database import StoreError
from tui_agent.memory.places import MemoryFileError
from tui_agent.memory.restoring import unfinished
from tui_agent.memory.shredding import resume
from tui_agent.memory.upkeep import prune_if_due
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Loaded, Settings

log = logging.getLogger(__name__)


class Session(SessionStore, SessionReview, SessionHanding, SessionSetup, SessionExplain, SessionTools):
    """One conversation in one project. All methods run on one event loop.

    Make it with :meth:`open`, and close it with :meth:`close`. Background events (a file changed, the server came
    up) reach the callbacks of :meth:`subscribe`; a turn's events come from :meth:`send`.
    """

    def __init__(self, stores: Stores, loaded: Loaded, connection: Connection, core: Core) -> None:
        self._stores = stores
        self.loaded = loaded
        self._connection = connection
        self._core = core
        self._listeners: list[Callable[[Event], None]] = []
        self._turn: Turn | None = None
        self._turn_task: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[Any]] = set()
        self._reload = LiveReload(self, self._emit)
        self._actions = MemoryActions(lambda: self._core, self._emit)
        self._inspector = Inspector(lambda: self._core)
        self._learner = Learner(lambda: self._core, self._emit, self._actions.noted)
        self._closed = False
        self._typed = False
        self._started = False

    @classmethod
    async def open(
        cls,
        project: Project,
        settings: Loaded | Settings,
        *,
        resume: str = "new",
        user_paths: UserPaths | None = None,
        client: Any = None,
        embedder: Any = None,
        interactive: bool = True,
        fallback: bool | None = None,
        ask_first: bool = False,
    ) -> Session:
        """Open the project's memory and a session in it; no model server is touched yet.

        Args:
            project: the project folder.
            settings: settings, with their problems when they were loaded from files.
            resume: ``new``, ``continue`` (the last session), or a session id or its unique end.
            client: a ready model client instead of one made from the settings.
            embedder: a ready embedder instead of the one the settings name.
            interactive: whether a person watches; then memory files are watched too.
            fallback: whether the built-in engine may answer when no server does; by default only for people who
                named no server.
            ask_first: whether that engine waits for the user's answer where Ollama is installed.

        Raises:
            StoreError: the project's database cannot be used.
            LookupError: there is no such session.
        """
        give_way()
        loaded = settings if isinstance(settings, Loaded) else Loaded(settings, (), {}, ())
        paths = user_paths or UserPaths.find()
        stores = await asyncio.to_thread(Stores.open, project, loaded.settings, paths)
        if fallback is None:
            fallback = interactive and loaded.settings.host is None
        connection = Connection(
            project,
            paths,
            loaded.settings,
            fallback=fallback,
            given_client=client,
            given_embedder=embedder,
            ask_first=ask_first,
        )
        try:
            core = await open_core(stores, loaded.settings, connection, resume)
        except BaseException:
            await asyncio.to_thread(stores.close)
            raise
        session = cls(stores, loaded, connection, core)
        if interactive:
            session._use_index()
            session._begin_decisions()
            session._learner.errand = session.decisions
        session._learner.enabled = interactive
        if interactive and loaded.settings.watch:
            session._reload.start()
        return session

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id."""
        return self._core.session_id

    @property
    def title(self) -> str:
        """The first request's first line."""
        return self._core.title

    @property
    def goal(self) -> str:
        """What the conversation is about, for scoring and recall."""
        return self._core.goal

    @property
    def core(self) -> Core:
        """The inside of the conversation, for the other rooms of this package."""
        return self._core

    @property
    def stores(self) -> Stores:
        """The project's stores, for the commands."""
        return self._stores

    @property
    def project(self) -> Project:
        """The project."""
        return self._stores.project

    @property
    def settings(self) -> Settings:
        """Settings in force."""
        return self.loaded.settings

    @property
    def server(self) -> ServerStatus:
        """Where answers come from."""
        status, off = self._with_index(self._connection.status()), self._core.tools_off
        return replace(status, tools=False, degraded=(*status.degraded, MARKS[off])) if off else status

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return self._turn is not None

    @property
    def problems(self) -> tuple[Notice, ...]:
        """What was wrong in the settings and the memory files, as sentences."""
        notices = [Notice(p.level, p.text, key=f"settings:{p.key}") for p in self.loaded.problems]
        notices += [Notice("warning", text, key=f"source:{text}") for text in self._core.sources.problems()]
        return tuple(notices)

    @property
    def learner(self) -> Learner:
        """What searches conversations for lasting facts in the background."""
        return self._learner

    def learned(self) -> list[tuple[str, Learned]]:
        """What was found in conversations since the app was opened, newest first, with their titles."""
        return [(title, learned(report)) for title, report in self._learner.reports]

    @property
    def todos(self) -> list[str]:
        """The model's todo list."""
        return list(self._core.todos)

    # -- events ---------------------------------------------------------------------------------------------------

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Hear background events; returns the function that ends it."""
        self._listeners.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(callback)

        return unsubscribe

    def _emit(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception:  # one listener's trouble is not another's
                log.exception("a listener failed")

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # -- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect, read what the model can do, and send the fixed part ahead, so that the first answer is quick.

        Trouble is said as a notice; the session works without a server for everything but answers.
        """
        try:
            await self._core.connected(self._emit)
        except ModelError as error:
            self._emit(PhaseChanged("idle"))
            self._emit(Notice("error", str(error), key="server"))
        await self._core.choose_embedder(self._emit)
        self._spawn(self._tidy())
        self._started = True
        if self._connection.ready:
            self._spawn(self._warm())

    async def _tidy(self) -> None:
        """Finish what a killed app began, clean up once a day, and have everything ready for the first question."""
        with no_collection():
            await asyncio.to_thread(warm_up)
            await self._clean_up()
            await self._core.recaller.warm()
            while await self._core.db.run(self._stores.known.begin):
                pass
        self._begin_index()

    async def _clean_up(self) -> None:
        if sentence := await asyncio.to_thread(unfinished, self.project):
            self._emit(Notice("warning", sentence, key="restore"))
        try:
            report = await asyncio.to_thread(resume, self._stores, drop_index=self._core.drop_index)
            if report is not None:
                self._emit(Notice("info", f"An interrupted deletion was finished: {report.sentence()}", key="upkeep"))
            await asyncio.to_thread(prune_if_due, self._stores)
            await asyncio.to_thread(self._stores.ledger.sync_files)
            await self.look_after()
        except (StoreError, MemoryFileError) as error:
            self._emit(Notice("warning", str(error), key="upkeep"))

    async def _warm(self) -> None:
        try:
            # Before warming, so that the probe does not push the fixed part out of the server's one prompt cache.
            if not self._typed and await self._connection.probe(self._emit) and not self.busy:
                await self._core.connected(self._emit)
            if not self.busy:
                await self._core.warm(self._emit)
        except ModelError as error:
            log.info("sending the fixed part ahead failed: %s", error)
        if not self.busy:
            self._emit(PhaseChanged("idle"))
        self._learner.begin()

    async def close(self) -> None:
        """Stop the turn, finish writes, close everything. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self.stop_comparing()
        await self._reload.stop()
        await self.stop()
        await self._learner.finish()
        for task in tuple(self._background):
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._core.settled()
        with contextlib.suppress(Exception):
            await self._core.leave()
        await self._connection.aclose()
        await self._end_setup()
        await self._close_index()
        await asyncio.to_thread(self._stores.close)

    # -- turns ----------------------------------------------------------------------------------------------------

    async def send(self, text: str, *, masked: Collection[str] = ()) -> AsyncIterator[Event]:
        """Run one turn and yield its events, the last always ``TurnFinished``.

        ``masked`` are references (``fact:ID``, ``cold:ID``) that must not be recalled for this question. A consumer
        that goes away does not end the turn; :meth:`stop` does. What the app still does after an answer is given up
        for a new message.

        Raises:
            RuntimeError: a turn is running already.
        """
        if self._turn is not None and self._turn.settling:
            settling = self._turn
            settling.hurry()
            await self.settled()
            self._turn_done(settling)
        if self._turn is not None:
            raise RuntimeError("A turn is running already; stop it or wait for its end.")
        async for event in self._play(Turn(self._core, text, masked)):
            yield event

    async def _play(self, turn: Turn) -> AsyncIterator[Event]:
        self._connection.skip_probe()
        self._learner.pause()
        self.stop_comparing()
        self._turn = turn
        task = self._turn_task = asyncio.create_task(turn.run())
        task.add_done_callback(lambda _: self._turn_done(turn))
        while (event := await turn.events.get()) is not None:
            if isinstance(event, MemoryChanged):
                self._actions.noted(event)
            yield event
        await asyncio.wait({task})
        self._turn_done(turn)

    def _turn_done(self, turn: Turn) -> None:
        if self._turn is turn:
            self._turn = None
            self._turn_task = None
            self._learner.resume(turn.speed)
            if self._keeper is not None:
                self._spawn(self._keeper.look_for_deletions())

    def hurry(self) -> None:
        """The user has written something new: give up what the app still does after the answer."""
        if self._turn is not None:
            self._turn.hurry()

    def stop_now(self) -> None:
        """Ask the running turn to stop, from a signal handler; does not wait."""
        if self._turn is not None:
            self._turn.stop()

    async def settled(self) -> None:
        """Wait until no turn is running any more."""
        if self._turn_task is not None:
            await asyncio.wait({self._turn_task})

    async def stop(self) -> None:
        """Stop the running turn and wait until its partial answer is stored."""
        task = self._turn_task
        if self._turn is not None:
            self._turn.stop()
        if task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(task)

    async def context(self) -> ContextView:
        """The exact prompt as it would be sent now, part by part."""
        core = self._core
        parts = [PromptPart("system", core.prompt.system, core.count(core.prompt.system))]
        tokens = core.prompt.tokens()
        if core.prompt.tools:
            import json

            text = json.dumps(core.prompt.tools, ensure_ascii=False, indent=1)
            parts.append(PromptPart("tools", text, tokens["tools"]))
        for entry in core.prompt.log:
            message = entry.message
            text = str(message.get("content", ""))
            for call in message.get("tool_calls", ()):
                text += f"\n[call] {call['function']['name']} {call['function']['arguments']}"
            parts.append(PromptPart(str(message["role"]), text.strip(), core.prompt.message_tokens(entry)))
        options = self._connection.options
        return ContextView(
            tuple(parts),
            sum(tokens.values()),
            options.num_ctx if options else self.settings.num_ctx,
            options.num_predict if options else 0,
        )

    # -- sessions, models, drafts ---------------------------------------------------------------------------------

    async def sessions(self) -> list[SessionRow]:
        """Past sessions of the project, newest first."""
        rows = await self._core.db.run(self._core.history.sessions)
        return [
            SessionRow(row.id, row.title or row.preview, row.started_at, row.last_at, row.messages, row.goal)
            for row in rows
            if row.messages or row.id == self.id
        ]

    async def switch(self, session_id: str) -> None:
        """Go to another session, or to a new one (``new``).

        Raises:
            LookupError: there is no such session.
        """
        await self.stop()
        await self._core.settled()
        core = await open_core(self._stores, self.settings, self._connection, session_id)
        left, self._core = self._core, core
        if self._keeper is not None:
            self._use_index()
        await left.leave()
        self._learner.leave(left)

    async def search_history(self, query: str) -> list[TranscriptEntry]:
        """Messages of all sessions that match ``query``."""
        found = await self._core.db.run(self._core.history.search, query, limit=50)
        return [TranscriptEntry(m.id, m.role, m.content, m.created_at, m.status) for m in found]

    async def models(self) -> list[ModelInfo]:
        """Models of the server; empty when it does not answer."""
        client = self._core.client
        if client is None:
            return []
        try:
            found: list[ModelInfo] = await client.tags()
        except ModelError as error:
            self._emit(Notice("error", str(error), key="server"))
            return []
        return found

    async def switch_model(self, name: str) -> ActionResult:
        """Answer with another model from the next message on."""
        before = self.server
        try:
            await self._connection.switch_model(name, self._emit)
            await self._core.model_changed()
        except ModelError as error:
            extra = {"allow": error.host} if isinstance(error, ConsentNeeded) else {}
            return ActionResult(False, str(error), extra=extra)
        if self._started:
            self._spawn(self._warm())
        return ActionResult(True, switch_sentence(name, before, self.server))

    @property
    def model_desk(self) -> ModelDesk:
        """What is installed and loaded on the server, downloads and unloading."""
        connection = self._connection
        return ModelDesk(
            lambda: connection.client,
            connection.notes,
            current=lambda: connection.model,
            options=lambda: connection.options,
            num_ctx=self.settings.num_ctx,
        )

    async def save_draft(self, text: str) -> None:
        """Keep what is typed and not sent, secrets left out."""
        if text.strip():
            self._typed = True
            self._learner.stir()
        await self._core.db.run(self._core.history.save_draft, self.id, text)

    async def load_draft(self) -> str:
        """The draft of this session."""
        draft: str = await self._core.db.run(self._core.history.load_draft, self.id)
        return draft

    async def prompt_history(self) -> list[str]:
        """Earlier messages of the user in this project, oldest first."""
        prompts: list[str] = await self._core.db.run(self._core.history.prompt_history)
        return prompts

    async def watching(self) -> None:
        """Wait until edits of memory files from outside are noticed."""
        await self._reload.watching()

    async def apply_settings(self, loaded: Loaded) -> None:
        """Use changed settings from the next message on; a changed model is switched to."""
        before = self.settings
        self.loaded = loaded
        self._connection.settings = loaded.settings
        self._core.settings = loaded.settings
        self._core.sources.configure(loaded.settings)
        if loaded.settings.model != before.model and not self._is_taken(loaded.settings.model):
            result = await self.switch_model(loaded.settings.model)
            self._emit(Notice("info" if result.ok else "error", result.text))
        elif self._connection.ready:
            self._connection.refreeze(self._emit)
        await self._index_settings(before)

    async def rebuild_prompt(self) -> ActionResult:
        """Fold edited files into the fixed part now; the next answer reads the whole prompt anew."""
        if self.busy:
            return ActionResult(False, "A turn is running; rebuild after it.")
        await asyncio.to_thread(self._core.sources.refresh)
        await self._core.start_epoch(self._core.prompt.log)
        return ActionResult(True, "The prompt was rebuilt with the files as they are now.")
