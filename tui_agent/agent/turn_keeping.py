"""What a turn keeps while it runs: its messages in the log of what was sent, and the answer as far as it has come."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tui_agent.agent.events import Event, Notice
from tui_agent.agent.prompt import LogEntry
from tui_agent.memory.database import StoreError

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

JSON = dict[str, Any]
_FLUSH_S = 0.4
_SHORT_CHARS = 6_000  # of a message, up to which looking for secrets in it takes no noticeable time


class TurnLog:
    """The messages of one turn on their way into the prompt's log and onto the disk, in order."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._begun = False
        self._unwritten: deque[tuple[int, LogEntry]] = deque()
        self._writing = asyncio.Lock()

    def add(self, entry: LogEntry) -> None:
        """Put a message at the end of the prompt; :meth:`write` brings it to the disk."""
        self._core.prompt.append(entry)
        self._begun = True
        self._unwritten.append((self._core.prompt.epoch, entry))

    async def write(self) -> None:
        """Write what the prompt has and the disk has not. What fails is tried again by the next call."""
        core = self._core
        history = core.history
        async with self._writing:
            while self._unwritten:
                epoch, entry = self._unwritten[0]
                if epoch == core.prompt.epoch:  # else it was written with the rest of the log as a new prefix began
                    message = entry.as_dict()
                    if len(str(entry.message.get("content", ""))) > _SHORT_CHARS or "tool_calls" in entry.message:
                        await core.db.run(history.wire_append, core.session_id, epoch, [message])
                    else:
                        # Nothing is lost that is said here: the user's words are on the disk, and the answer will be
                        # waited for.
                        rows = history.wire_rows([message])
                        await core.db.run_small(history.wire_write, core.session_id, epoch, rows, synced=False)
                self._unwritten.popleft()

    async def say(self, entry: LogEntry) -> None:
        """Put a message at the end, and write it."""
        self.add(entry)
        await self.write()

    async def close(self, stand_in: str) -> None:
        """Make the end of the log an assistant message, whatever happened."""
        log = self._core.prompt.log
        if self._begun and log and log[-1].message["role"] != "assistant":
            await self.say(LogEntry({"role": "assistant", "content": stand_in}))


class AnswerSoFar:
    """The answer of one turn: its texts, thinking and tools, and its row in the history, kept up while it streams.

    Args:
        emit: told when a part could not be written.
    """

    def __init__(self, core: Core, emit: Callable[[Event], None]) -> None:
        self._core = core
        self._emit = emit
        self.id: str | None = None
        self.texts: list[str] = []
        self.thinking: list[str] = []
        self.tools: list[JSON] = []
        self._live = ("", "")
        self._flushed = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._beginning = asyncio.Lock()

    @property
    def live(self) -> str:
        """The text of the reply that is streaming."""
        return self._live[0]

    def streams(self, text: str, thinking: str) -> None:
        """The reply that is streaming reads so now."""
        self._live = (text, thinking)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self.flush())

    def reply_over(self) -> None:
        """No reply is streaming any more; what stays of it is in the texts."""
        self._live = ("", "")

    async def flush(self, force: bool = False) -> None:
        """Bring the answer so far to disk, at most every 0.4 s, so that a killed app loses next to nothing."""
        now = time.monotonic()
        if not force and now - self._flushed < _FLUSH_S:
            return
        self._flushed = now
        content, thinking = self.read()
        if not content.strip() and not self.tools:
            return
        core = self._core
        try:
            await core.db.run(core.history.extend_answer, await self._row(), content, thinking)
        except StoreError as error:
            self._emit(Notice("error", str(error), key="store"))

    def read(self) -> tuple[str, str]:
        """Text and thinking, the reply that is streaming included."""
        live, thinking = self._live
        content = "\n\n".join(text for text in (*self.texts, live) if text.strip())
        return content, "\n\n".join(part for part in (*self.thinking, thinking) if part)

    async def streamed(self) -> None:
        """Wait until nothing is being written any more."""
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def finish(self, status: str, meta: JSON) -> None:
        """Store the answer as it ended, if there is anything of it."""
        content, thinking = self.read()
        if content.strip() or self.tools or thinking:
            core = self._core
            answer = await self._row()
            await core.db.run(core.history.finish_answer, answer, content, thinking=thinking, status=status, meta=meta)

    async def _row(self) -> str:
        async with self._beginning:
            if self.id is None:
                self.id = await self._core.db.run(self._core.history.begin_answer, self._core.session_id)
            return self.id
