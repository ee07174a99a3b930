"""The part of a session that is used before there is a model: the first run's answers reach the connection here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_agent.agent.events import Event
from tui_agent.agent.setting_up import SetUp

if TYPE_CHECKING:
    from tui_agent.agent.connection import Connection
    from tui_agent.agent.core import Core
    from tui_agent.agent.doctor.facts import TerminalFacts
    from tui_agent.agent.doctor.troubles import Finding
    from tui_agent.memory.index_status import IndexStatus
    from tui_agent.settings import Loaded


class SessionSetup:
    """What a session does for the first run."""

    loaded: Loaded
    _connection: Connection
    _core: Core
    _emit: Callable[[Event], None]
    _spawn: Callable[[Any], None]
    _warm: Callable[[], Any]
    _setup: SetUp | None = None

    @property
    def index(self) -> IndexStatus:
        """The state of the vector index in this window."""
        raise NotImplementedError

    @property
    def setup(self) -> SetUp:
        """Looks around and carries out what the user answers; it owns a server that was started for them."""
        if self._setup is None:
            self._setup = SetUp(
                self.loaded, self._connection.paths, connect=self._reconnect, use_engine=self._start_engine
            )
        return self._setup

    def _is_taken(self, model: str) -> bool:
        """Whether a model that the settings name now answers already, or was chosen in the first run, which connects to
        it after writing it down."""
        connection = self._connection
        chosen = self._setup is not None and self._setup.model == model and not connection.ready
        return chosen or connection.model == model

    async def examine(self, terminal: TerminalFacts) -> list[Finding]:
        """Everything the doctor has to say, with the answers of the first run taken into account."""
        from tui_agent.agent.doctor.checks import examine
        from tui_agent.agent.doctor.look import look

        connection = self._connection
        changed: dict[str, Any] = {"embedded": connection.embedded, "model": connection.model}
        if connection.host:
            changed["host"] = connection.host
        loaded = replace(self.loaded, settings=self.loaded.settings.model_copy(update=changed))
        facts = await look(connection.project, connection.paths, loaded, terminal)
        return examine(replace(facts, index=replace(facts.index, here=self.index)))

    async def _reconnect(self, model: str) -> bool:
        """Connect to what the answers named; false when it still cannot be had."""
        setup = self.setup
        await self._begin_anew(model=model, host=setup.host)
        return self._connection.ready

    async def _start_engine(self, file: Path | None) -> None:
        await self._begin_anew(engine=True, gguf=str(file) if file is not None else None)

    async def _begin_anew(self, **answers: Any) -> None:
        before = self._connection.model
        await self._connection.begin_anew(self._emit, **answers)
        if self._connection.model != before:
            await self._core.model_changed()
        await self._core.connected(self._emit)
        await self._core.choose_embedder(self._emit)
        self._spawn(self._warm())

    async def _end_setup(self) -> None:
        """Stop the server that was started for the user, if one was."""
        if self._setup is not None:
            await asyncio.to_thread(self._setup.close)
