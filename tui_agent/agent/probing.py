"""The probe of tool calling as a job that gives way: stopped at once, never in the way of an answer."""

from __future__ import annotations

import asyncio
import logging

from tui_agent.llm.errors import ModelError
from tui_agent.llm.probe import Chats, probe_tools
from tui_agent.llm.types import ModelInfo, ModelOptions

log = logging.getLogger(__name__)


class Probing:
    """One probe of one model."""

    def __init__(self, client: Chats, info: ModelInfo, options: ModelOptions) -> None:
        self._client = client
        self._info = info
        self._options = options
        self._task: asyncio.Task[str] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Give it up; the connection closes, and the server is free for what the user wants."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    def _was_stopped(self) -> bool:
        return self._stopped

    async def run(self) -> str:
        """``native``, ``text`` or ``none``; empty when it was given up or the server had other trouble."""
        if self._was_stopped():
            return ""
        self._task = asyncio.create_task(self._probe())
        try:
            return await self._task
        except asyncio.CancelledError:
            if not self._was_stopped():
                self._task.cancel()
                raise
            return ""
        except ModelError as error:
            log.info("the probe of %s failed: %s", self._info.name, error)
            return ""

    async def _probe(self) -> str:
        return await probe_tools(self._client, self._info, self._options)
