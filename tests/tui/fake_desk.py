"""A model desk that plays a script: models from the fake session, a download a test moves by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from tui_agent.agent.models import ModelView
from tui_agent.llm.probe import ToolCalling
from tui_agent.llm.pulling import PullState
from tui_agent.llm.types import RunningModel


class FakeDesk:
    """Implements ``ModelDeskLike``. ``states`` is what a download says; ``ended`` lists downloads that were closed."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.running: dict[str, RunningModel] = {}
        self.found: dict[str, str] = {}
        self.states: asyncio.Queue[PullState | Exception | None] = asyncio.Queue()
        self.ended: list[str] = []

    async def installed(self) -> list[ModelView]:
        current = self.session.server.model
        return [
            ModelView(info, self.running.get(info.name), self.found.get(info.name, ""), info.name == current)
            for info in await self.session.models()
        ]

    async def pull(self, name: str) -> AsyncGenerator[PullState, None]:
        self.session.calls.append(("pull", name))
        try:
            while (state := await self.states.get()) is not None:
                if isinstance(state, Exception):
                    raise state
                yield replace(state, model=name)
        finally:
            self.ended.append(name)

    async def unload(self, name: str) -> str:
        self.session.calls.append(("unload", name))
        self.running.pop(name, None)
        return f"{name} is unloaded."

    async def probe(self, name: str) -> ToolCalling:
        self.session.calls.append(("probe", name))
        self.found[name] = "text"
        return "text"
