"""Where answers come from: the user's model server, or the embedded engine when there is none.

The connection is made once and remade after trouble. It reads the model's capabilities before anything is sent,
freezes one options object per model, and starts the embedded engine when the user asked for it or when no server
answers and the user named none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tui_agent.agent.embedding import LateEmbedder
from tui_agent.agent.events import Event, Notice, PhaseChanged
from tui_agent.agent.lessons import Lessons
from tui_agent.agent.model_notes import ModelNote, ModelNotes
from tui_agent.agent.probing import Probing
from tui_agent.agent.reaching import Reaching
from tui_agent.agent.reading import SentPrefix
from tui_agent.agent.views import ServerStatus
from tui_agent.llm.errors import ModelError, ModelMissing, ServerUnreachable
from tui_agent.llm.ollama_files import name_of
from tui_agent.llm.probe import WORDS, most_tools
from tui_agent.llm.types import ModelInfo, ModelOptions
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings

if TYPE_CHECKING:
    from tui_agent.llm.client import ModelClient
    from tui_agent.llm.embedded.process import EmbeddedEngine
    from tui_agent.llm.serving import ServerUse

Emit = Callable[[Event], None]


@dataclass(slots=True)
class Connection(Reaching, Lessons):
    """The way to a model.

    Args:
        settings: host, model, window and the rest.
        fallback: whether the embedded engine may be started when no server answers.
        client: a ready client (tests); then ``settings.host`` is not used.
        host, gguf: what the user answered in the first run; they stand above the settings.
        ask_first: whether the user is asked before the engine takes over where Ollama is installed.
    """

    project: Project
    paths: UserPaths
    settings: Settings
    fallback: bool = False
    given_client: Any = None
    given_embedder: Any = None
    ask_first: bool = False
    host: str = ""
    gguf: str | None = None
    model: str = ""
    info: ModelInfo | None = None
    options: ModelOptions | None = None
    client: Any = None
    lazy_embedder: LateEmbedder = field(default_factory=LateEmbedder)
    ready: bool = False
    tools: bool = True
    degraded: dict[str, str] = field(default_factory=dict)
    version: str = ""
    tool_calling: str = ""
    most_tools: int | None = None
    sent: SentPrefix = field(default_factory=SentPrefix)
    _swaps_told: set[frozenset[str]] = field(default_factory=set)
    _probing: Probing | None = None
    _engine: EmbeddedEngine | None = None
    _use: ServerUse | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _embedder_chosen: bool = False

    def __post_init__(self) -> None:
        self.model = self.model or self.settings.model
        self.tools = self.settings.tools

    @property
    def embedded(self) -> bool:
        """Whether the embedded engine answers."""
        return self._engine is not None

    def status(self) -> ServerStatus:
        """What the header and the status line show."""
        client = self.client
        return ServerStatus(
            url=client.url if client is not None else self.address,
            model=self.model,
            embedded=self.embedded,
            ready=self.ready,
            num_ctx=self.options.num_ctx if self.options else 0,
            tools=self.tools,
            thinking=bool(self.info and self.info.thinking),
            embedder=self.lazy_embedder.identity,
            version=self.version,
            tool_calling=self.tool_calling,
            local=bool(getattr(client, "is_local", True)) and not (self.info is not None and self.info.remote),
            degraded=tuple(self.degraded.values()),
        )

    async def ensure(self, emit: Emit) -> None:
        """Connect if need be.

        Raises:
            ModelError: no server, no model, or the engine does not start; the sentence names the fix.
        """
        async with self._lock:
            if not self.ready:
                await self._connect(emit)

    async def _connect(self, emit: Emit) -> None:
        emit(PhaseChanged("connecting", f"connecting to {self.address}"))
        if self.client is None:
            self.client = await self._make_client(emit)
        try:
            info = await self.client.show(self.model)
        except ServerUnreachable:
            if not self.fallback or self.embedded or self.given_client is not None:
                raise
            if not await asyncio.to_thread(self._engine_may_answer):
                raise
            emit(
                Notice(
                    "info",
                    f"No model server answered at {self.client.url}, so the built-in engine answers.",
                    key="fallback",
                )
            )
            await self.client.aclose()
            self.client = await self._start_engine(emit)
            info = await self.client.show(self.model)
        except ModelMissing:
            installed = await self._chat_models()
            if not installed:
                raise
            names = ", ".join(installed[:6])
            raise ModelMissing(
                f"The model {self.model!r} is not installed at {self.client.url}.",
                fix=f"Run `ollama pull {self.model}`, or choose one of those installed: {names} (ctrl+o, or --model).",
            ) from None
        info = await self._identified(info)
        self._consent.check_model(info)
        await self._learn_version(emit)
        self._accept(info, emit)

    async def _identified(self, info: ModelInfo) -> ModelInfo:
        """The model with its digest and size, which only the list of models has."""
        if info.digest or self.embedded:
            return info
        with contextlib.suppress(ModelError):
            wanted = info.name.removesuffix(":latest")
            for listed in await self.client.tags():
                if listed.name.removesuffix(":latest") == wanted:
                    return replace(info, digest=listed.digest, size=listed.size or info.size)
        return info

    async def _learn_version(self, emit: Emit) -> None:
        from tui_agent.llm.versions import is_too_old, trouble_with

        if self.embedded:
            return
        with contextlib.suppress(ModelError):
            self.version = await self.client.version()
            self.client.streams_tools = not is_too_old(self.version)
            if is_too_old(self.version):
                emit(Notice("warning", trouble_with(self.version), key="server_version"))

    @property
    def notes(self) -> ModelNotes:
        """What was found out about models in earlier runs."""
        return ModelNotes(self.paths.model_notes_path)

    async def probe(self, emit: Emit) -> bool:
        """Ask once whether a model of unknown content can call tools; returns whether that changed what to offer.

        Meant for the moment before the fixed part is sent ahead. :meth:`skip_probe` gives it up at once.
        """
        info = self.info
        if info is None or self.options is None or not self.ready or self.embedded or info.remote:
            return False
        if not info.digest or self.tool_calling or not self.tools or (info.capabilities and not info.tools):
            return False
        self._probing = Probing(self.client, info, self.options)
        try:
            found = await self._probing.run()
        finally:
            self._probing = None
        if not found:
            return False
        await asyncio.to_thread(self.notes.put, info.digest, tools=found, name=info.name, server=self.version)
        if self.info is not info or not self._offer_by(found):
            return False
        if self.most_tools == 0:
            emit(
                Notice(
                    "warning",
                    f"{info.name} {WORDS[found]}, although the server says so; it cannot save anything by itself. You "
                    "can: press s when the app offers it, or choose another model (ctrl+o).",
                    key="no_tools",
                )
            )
        return True

    def skip_probe(self) -> None:
        """The user has something to ask: the probe gives way, and is made up for in a later run."""
        if self._probing is not None:
            self._probing.stop()

    def _offer_by(self, calling: str) -> bool:
        """Decide how many tools to offer a model that calls them like this; returns whether anything changed."""
        before = (self.tools, self.most_tools)
        self.tool_calling = calling
        self.most_tools = most_tools(calling, self.info)
        if self.most_tools == 0:
            self.drop_tools()
        return before != (self.tools, self.most_tools)

    async def _chat_models(self) -> list[str]:
        try:
            models = await self.client.tags()
        except ModelError:
            return []
        return [m.name for m in models if not m.capabilities or "completion" in m.capabilities]

    def _accept(self, info: ModelInfo, emit: Emit) -> None:
        from tui_agent.llm.bodies import freeze_options

        extra: dict[str, Any] = {}
        if self.settings.temperature is not None:
            extra["temperature"] = self.settings.temperature
        if self.settings.seed is not None:
            extra["seed"] = self.settings.seed
        self.info = info
        self.options = freeze_options(info, self.settings.num_ctx, keep_alive=self.settings.keep_alive, extra=extra)
        known = bool(info.capabilities)
        if self.settings.tools and known and not info.tools:
            self.tools = False
            self.degraded["tools"] = "no tools"
            emit(
                Notice(
                    "warning",
                    f"{info.name} cannot call tools, so it cannot save anything by itself. You can: press s when the "
                    "app offers it, or choose a model with tools (ctrl+o).",
                    key="no_tools",
                )
            )
        note = self.notes.get(info.digest) if not self.embedded else ModelNote()
        if note.think_refused and info.thinking:
            info = self._cannot_think(info)
        self.tool_calling = ""
        self.most_tools = most_tools("", info) if not self.embedded else None
        if note.tools and self.tools:
            self._offer_by(note.tools)
        if note.tools_refused:
            self.drop_tools()
        if not self.tools and self.settings.tools and (note.tools == "none" or note.tools_refused):
            found = WORDS["none"] if note.tools == "none" else "answers without tools only"
            emit(
                Notice(
                    "info",
                    f"{info.name} {found}, as was found out before, so none are offered. "
                    f"`tui-agent models show {info.name} --probe` tries it again.",
                    key="no_tools",
                )
            )
        self.ready = True

    async def _make_client(self, emit: Emit) -> Any:
        if self.given_client is not None:
            return self.given_client
        if self.settings.embedded:
            return await self._start_engine(emit)
        from tui_agent.llm.client import ModelClient

        self._mark_use()
        return ModelClient(self.address, allow_remote=self._consent.allows(self.address))

    async def _start_engine(self, emit: Emit) -> ModelClient:
        from tui_agent.llm.client import ModelClient
        from tui_agent.llm.embedded.process import EmbeddedEngine, Progress

        gguf = self.gguf or self.settings.gguf
        engine = EmbeddedEngine(
            gguf=gguf,
            name=name_of(gguf) if gguf else "",
            num_ctx=self.settings.num_ctx,
            models_dir=self.paths.models_dir,
            slots_dir=self.paths.slots_dir,
            log_path=self.project.logs_dir / "engine.log",
        )

        def progress(text: Progress) -> None:
            emit(PhaseChanged("reading" if text.stage == "reading" else "loading", str(text)))

        url = await engine.start(progress)
        self._engine = engine
        client = ModelClient(url)
        models = await client.tags()
        self.model = models[0].name
        return client

    async def choose_embedder(self, emit: Emit) -> bool:
        """Choose the embedder of this session, once; returns whether it was chosen just now.

        Without one, memory goes on with words alone, which is said.
        """
        if self._embedder_chosen:
            return False
        self._embedder_chosen = True
        if self.given_embedder is not None:
            self.lazy_embedder.set(self.given_embedder)
            return True
        from tui_agent.llm.embeddings import choose_embedder

        installed: list[ModelInfo] = []
        if self.settings.embedder not in ("builtin", "none") and not self.embedded and self.ready:
            with contextlib.suppress(ModelError):
                installed = [info for info in await self.client.tags() if self._may_embed(info)]
        server = None if self.embedded or not self.ready else self.client
        embedder, notice = await choose_embedder(self.settings.embedder, server, installed)
        self.lazy_embedder.set(embedder)
        if embedder is None:
            self.degraded["embedder"] = "words only"
        # What was wished for and could not be had is said; that the usual one is used is not.
        if notice and (embedder is None or (server is not None and not notice.startswith("Memories are searched"))):
            emit(Notice("warning", notice, key="embedder"))
        return embedder is not None

    async def choose_embedder_again(self, emit: Emit) -> None:
        """Look at the embedding model anew: it may have been replaced by one with vectors of another size."""
        self._embedder_chosen = False
        self.degraded.pop("embedder", None)
        await self.choose_embedder(emit)

    def refreeze(self, emit: Emit) -> None:
        """Take over changed sampling and window settings for the model in use."""
        if self.info is not None:
            before = self.options
            self.tools = self.settings.tools
            self.degraded.pop("tools", None)
            self._accept(self.info, emit)
            if before is not None and self.options is not None and before.num_ctx != self.options.num_ctx:
                self.sent.forget()
                emit(
                    Notice(
                        "info",
                        f"The window is now {self.options.num_ctx:,} tokens, so the server loads {self.model} anew for "
                        "the next answer and reads the whole conversation again.",
                    )
                )

    def widen(self, num_ctx: int, emit: Emit) -> None:
        """Ask for a larger window from now on, for as long as the app runs."""
        self.settings = self.settings.model_copy(update={"num_ctx": num_ctx})
        self.refreeze(emit)

    async def forget_states(self) -> None:
        """Delete kept prompt states of the built-in engine: they hold text that may have to go."""
        if self._engine is not None:
            await asyncio.to_thread(self._engine.forget_states)
        else:
            from tui_agent.llm.embedded.slots import delete_slot_states

            await asyncio.to_thread(delete_slot_states, self.paths.slots_dir)

    def drop_tools(self) -> bool:
        """Go on without tools after the server refused them; false when there were none to drop."""
        if not self.tools:
            return False
        self.tools = False
        self.degraded["tools"] = "no tools"
        return True

    async def switch_model(self, name: str, emit: Emit) -> None:
        """Talk to another model from now on; the old one stays in force when the new one cannot be had."""
        async with self._lock:
            if self.client is None:
                self.model = name
                return
            info = await self._identified(await self.client.show(name))
            self._consent.check_model(info)
            self.model = name
            self.tools = self.settings.tools
            self.degraded.pop("tools", None)
            self.sent.forget()
            self._accept(info, emit)

    async def aclose(self) -> None:
        """Close the client and end the engine if we started it."""
        if self.client is not None and self.given_client is None:
            with contextlib.suppress(ModelError):
                await self.client.aclose()
        if self._engine is not None:
            await self._engine.stop()
            self._engine = None
        if self._use is not None:
            self._use.end()
        self.client = None
        self.ready = False
