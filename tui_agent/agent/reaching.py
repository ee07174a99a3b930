"""Which server a connection reaches for, whether words may go there, and connecting anew after the first run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tui_agent.agent.consent import Consent, leaves_to
from tui_agent.agent.events import Event
from tui_agent.agent.firstlook import is_worth_asking
from tui_agent.llm.errors import ModelError
from tui_agent.llm.host import parse_host
from tui_agent.llm.serving import ServerUse
from tui_agent.llm.types import ModelInfo
from tui_agent.project import UserPaths
from tui_agent.settings import Settings


class Reaching:
    """The part of a connection that knows where it goes."""

    if TYPE_CHECKING:
        paths: UserPaths
        settings: Settings
        ask_first: bool
        host: str
        gguf: str | None
        model: str
        client: Any
        _lock: asyncio.Lock
        _use: ServerUse | None
        _embedder_chosen: bool

        async def aclose(self) -> None: ...
        async def _connect(self, emit: Callable[[Event], None]) -> None: ...
        async def _start_engine(self, emit: Callable[[Event], None]) -> Any: ...

    @property
    def address(self) -> str:
        """The model server's address, as given."""
        return self.host or self.settings.url

    async def begin_anew(
        self,
        emit: Callable[[Event], None],
        *,
        model: str = "",
        host: str = "",
        engine: bool = False,
        gguf: str | None = None,
    ) -> None:
        """Connect with what the user answered in the first run.

        Raises:
            ModelError: see ``Connection.ensure``.
        """
        async with self._lock:
            await self.aclose()
            self.model, self.host, self.gguf = model or self.model, host or self.host, gguf
            self._embedder_chosen = False
            if engine:
                self.client = await self._start_engine(emit)
            await self._connect(emit)

    def _mark_use(self) -> None:
        """Say that this window uses the server, so that another window which started it does not stop it."""
        self._use = self._use or ServerUse(self.paths.servers_dir)
        with contextlib.suppress(ModelError):  # an unreadable address is told by the client
            self._use.begin(parse_host(self.address))

    @property
    def _consent(self) -> Consent:
        return Consent(self.paths, self.settings)

    def _engine_may_answer(self) -> bool:
        """Whether the engine is there and may start by itself, without a question."""
        return find_spec("xllamacpp") is not None and not (self.ask_first and is_worth_asking(self.paths))

    def _may_embed(self, info: ModelInfo) -> bool:
        """Whether memories may be sent to this embedding model."""
        where = leaves_to(info)
        return not where or self._consent.allows(where)
