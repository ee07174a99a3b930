"""The lower half of a session: stores, model, and the prompt, kept so that it can be sent again to the byte."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tui_agent.agent.connection import Connection, Emit
from tui_agent.agent.events import ContextUsage, IndexChanged, Notice, PhaseChanged
from tui_agent.agent.prompt import LogEntry, Prompt, Section
from tui_agent.agent.put_away import named
from tui_agent.agent.quiet import CollectionPause
from tui_agent.agent.sources import PromptSources
from tui_agent.agent.stores import Stores
from tui_agent.agent.tools.memory_tools import memory_tools
from tui_agent.agent.tools.project_files import project_tools
from tui_agent.agent.tools.registry import Toolbox
from tui_agent.llm.tokens import TokenEstimator
from tui_agent.llm.types import ModelOptions
from tui_agent.memory.history import History
from tui_agent.memory.recall import Recaller
from tui_agent.memory.skills import Skill
from tui_agent.memory.types import RecalledItem, RecallRecord
from tui_agent.memory.working import WorkingMemory
from tui_agent.settings import Settings

if TYPE_CHECKING:
    from tui_agent.agent.indexing import IndexKeeper

log = logging.getLogger(__name__)

_PROMPT_STATE = "prompt"
_MOVES = {"pin_released": "released"}
_ZONES = {"evicted": "cold", "put_away": "cold"}
_GOAL_CHARS = 160
_LONG_PASTE = 2_000
_SHOWN_FROM = 200  # facts without a vector, from which making them is worth showing


class Keeping:
    """The lower half of a conversation: its prompt, kept byte for byte, and the way to the model."""

    _index_keeper: IndexKeeper | None = None

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        connection: Connection,
        sources: PromptSources,
        working: WorkingMemory,
        recaller: Recaller,
        estimator: TokenEstimator,
        session_id: str,
    ) -> None:
        self.stores = stores
        self.settings = settings
        self.connection = connection
        self.sources = sources
        self.working = working
        self.recaller = recaller
        self.estimator = estimator
        self.session_id = session_id
        self.goal = ""
        self.title = ""
        self.todos: list[str] = []
        self.not_now: set[str] = set()
        self.tools_off: Literal["", "off", "once"] = ""
        self._notes: list[str] = []
        self.collection = CollectionPause()
        self._later: list[Callable[[], Coroutine[Any, Any, object]]] = []
        self.prompt = Prompt(self.count)
        self.last_usage: ContextUsage | None = None
        self._embedding_told: set[str] = set()
        self._served: dict[str, str] = {}
        self._saving: set[asyncio.Task[object]] = set()
        keep = settings.keep_messages
        self._all_tools = [
            *memory_tools(stores, self._recall_for_tool, self._save_todos, keep, self._search_messages),
            *project_tools(stores.project.root),
        ]
        order = ("edit_file", "read_memory", "remember", "recall", "search_history", "read_file", "search_files")
        self._all_tools.sort(key=lambda tool: order.index(tool.name) if tool.name in order else len(order))
        self.toolbox = Toolbox(self._all_tools, count=self.count, cap=int(0.15 * settings.num_ctx))

    # -- short cuts -----------------------------------------------------------------------------------------------

    @property
    def db(self) -> Any:
        """The database, for ``await core.db.run(...)``."""
        return self.stores.db

    @property
    def history(self) -> History:
        """Sessions and messages."""
        return self.stores.history

    @property
    def client(self) -> Any:
        """The connected model client."""
        return self.connection.client

    @property
    def model(self) -> str:
        """The model in use."""
        return self.connection.model

    @property
    def options(self) -> ModelOptions:
        """The frozen options of the model in use; only valid once connected."""
        assert self.connection.options is not None
        return self.connection.options

    @property
    def think(self) -> bool | str | None:
        """What to send as ``think``: the user's wish, and nothing to models that cannot."""
        info = self.connection.info
        if info is None or not info.thinking:
            return None
        return self.settings.think

    def count(self, text: str) -> int:
        """Tokens of ``text`` for the model in use, estimated and calibrated."""
        return self.estimator.estimate(text)

    def use_index(self, keeper: IndexKeeper) -> None:
        """Have the nearest facts named by an index of vectors, whenever it can answer."""
        self._index_keeper = keeper
        self.recaller.index = keeper

    @property
    def drop_index(self) -> Callable[[], bool] | None:
        """What empties the vector index for a deletion, where this process has it in hand."""
        keeper = self._index_keeper
        return keeper.drop if keeper is not None and keeper.owns else None

    # -- the fixed part -------------------------------------------------------------------------------------------

    def sections(self) -> list[Section]:
        """The files that stand in the fixed part, as they are on disk now."""
        return self.sources.sections()

    def rules_hash(self) -> str:
        """Identity of the rules an answer ran under."""
        return self.sources.rules_hash()

    def matching_skills(self, text: str) -> list[Skill]:
        """Skills whose trigger matches ``text``."""
        return self.sources.matching_skills(text)

    def tools(self) -> list[dict[str, Any]]:
        """The tool schemas to offer: as many as the model can cope with, none without tools or when they are off."""
        self.toolbox.most = self.connection.most_tools
        return self.toolbox.schemas if self.connection.tools and not self.tools_off else []

    async def open_prompt(self) -> None:
        """Continue the stored prefix of this session byte for byte, or begin the first one."""
        state = await self.db.run(self.history.load_state, self.session_id, _PROMPT_STATE)
        if state and state.get("tools") == self.tools():
            entries = await self.db.run(self.history.wire_log, self.session_id, state["epoch"])
            log_ = [LogEntry(e["message"], tuple(e.get("refs", ()))) for _, e in entries]
            prompt = self.prompt
            prompt.start_epoch(
                project=self.stores.project.name,
                keep_messages=self.settings.keep_messages,
                sections=[Section(s["name"], s["text"]) for s in state["sections"]],
                tools=self.tools(),
                log=log_,
                epoch=state["epoch"],
            )
            prompt.system = state["system"]
            prompt.announced = dict(state["announced"])
            prompt.date = state.get("date", "")
            prompt.visible.update(state.get("visible", ()))
            if prompt.log and prompt.log[-1].message["role"] != "assistant":
                # The app was killed before the answer was complete: what is on disk of it closes the turn.
                await self._append(LogEntry({"role": "assistant", "content": await self._killed_answer()}))
            return
        await self.start_epoch(())

    async def _killed_answer(self) -> str:
        messages = await self.db.run(self.history.messages, self.session_id)
        last = messages[-1] if messages else None
        said = last.content.strip() if last is not None and last.role == "assistant" else ""
        return f"{said} (interrupted)".strip()

    async def start_epoch(self, log_: Sequence[LogEntry]) -> None:
        """Begin a new prefix: files folded in, ``log_`` as its first messages."""
        epoch = await self.db.run(self.history.new_epoch, self.session_id)
        self.prompt.start_epoch(
            project=self.stores.project.name,
            keep_messages=self.settings.keep_messages,
            sections=self.sections(),
            tools=self.tools(),
            log=log_,
            epoch=epoch,
        )
        if log_:
            await self.db.run(
                self.history.wire_append, self.session_id, self.prompt.epoch, [entry.as_dict() for entry in log_]
            )
        await self.save_prompt_state()

    async def save_prompt_state(self) -> None:
        """Keep what a restart needs to send the same bytes again."""
        prompt = self.prompt
        in_log = {ref for entry in prompt.log for ref in entry.refs}
        state = {
            "epoch": prompt.epoch,
            "system": prompt.system,
            "tools": prompt.tools,
            "sections": [{"name": s.name, "text": s.text} for s in prompt.sections.values()],
            "announced": prompt.announced,
            "date": prompt.date,
            "visible": sorted(prompt.visible - in_log),
            "estimator": self.estimator.to_state(),
        }
        await self.db.run(self.history.save_state, self.session_id, _PROMPT_STATE, state)

    async def _append(self, entry: LogEntry) -> None:
        self.prompt.append(entry)
        await self.db.run(self.history.wire_append, self.session_id, self.prompt.epoch, [entry.as_dict()])

    async def connected(self, emit: Emit) -> None:
        """Be connected, with the tools on offer in the prompt.

        Raises:
            ModelError: see ``Connection.ensure``.
        """
        await self.connection.ensure(emit)
        await self._note_server()
        self.toolbox.cap = max(256, int(0.15 * self.options.num_ctx))
        if self.prompt.tools != self.tools():
            await self.start_epoch(self.prompt.log)

    async def _note_server(self) -> None:
        """Keep with the session which server answers in it: what went wrong later often has to do with its version."""
        status = self.connection.status()
        served = {"url": status.url, "version": status.version, "model": status.model}
        if served != self._served:
            self._served = served
            await self.db.run(self.history.save_state, self.session_id, "server", served)

    async def drop_tools(self) -> bool:
        """Go on without tools (the server refused them); begins a new prefix without them."""
        if not self.connection.drop_tools():
            return False
        await self.start_epoch(self.prompt.log)
        return True

    async def choose_embedder(self, emit: Emit) -> None:
        """Have the session's embedder, and vectors for what has none yet (in the background)."""
        if await self.connection.choose_embedder(emit):
            self._spawn(self._index(emit))

    async def _index(self, emit: Emit) -> None:
        def progress(done: int, total: int) -> None:
            if total > _SHOWN_FROM:
                mark = f"embedding {100 * done // total}%" if done < total else ""
                self.connection.degraded.pop("embedding", None)
                if mark:
                    self.connection.degraded["embedding"] = mark
                emit(IndexChanged("embedding", "", done, total, mark))

        await self.recaller.index_missing(progress)
        while await self.working.reembed():
            pass

    def tell_embedding(self, emit: Emit) -> None:
        """Say it, once each, when texts got no vectors: search by words goes on meanwhile."""
        trouble = self.connection.lazy_embedder.take_trouble()
        if trouble and trouble not in self._embedding_told:
            self._embedding_told.add(trouble)
            emit(Notice("warning", trouble, key="embedding"))

    async def warm(self, emit: Emit) -> None:
        """Let the server read the fixed part while the user types, so that the first answer need not wait for it.

        Raises:
            ModelError: the server's trouble; nothing depends on it.
        """
        if self.prompt.log or not self.connection.ready:
            return
        emit(PhaseChanged("loading", f"loading {self.model}"))
        await self.client.load(self.model, self.options)
        if self.connection.embedded or getattr(self.client, "is_local", False):
            emit(PhaseChanged("reading", "reading the fixed part ahead"))
            ahead = ModelOptions(self.options.num_ctx, 1, self.options.keep_alive, self.options.extra)
            messages = [*self.prompt.messages(), {"role": "user", "content": ""}]
            async for _ in self.client.chat(self.model, messages, options=ahead, tools=self.prompt.tools):
                pass

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._saving.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[object]) -> None:
        self._saving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", exc_info=error)

    async def _recall_for_tool(self, query: str, turn: Any) -> RecallRecord:
        query = self.stores.secrets.clean(query)  # it is embedded
        if (found := await named(self, query, turn.masked)) is not None:
            return found
        return await self.recaller.recall(
            query,
            goal=self.goal,
            session_id=self.session_id,
            masked=turn.masked,
            put_away=self.not_now,
            never=await self.db.run(self.stores.topics.hidden, f"{turn.user_text}\n{query}"),
            top_k=max(5, self.settings.recall.top_k),
            threshold=self.settings.recall.threshold,
            max_tokens=self.toolbox.cap,
            count=self.count,
        )

    async def _search_messages(self, query: str, limit: int) -> list[RecalledItem]:
        return await self.recaller.search_messages(query, limit, session_id=self.session_id)

    async def _save_todos(self, todos: list[str]) -> None:
        self.todos = todos
        await self.db.run(self.history.save_state, self.session_id, "todos", todos)
