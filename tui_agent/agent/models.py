"""The models of the server: what is installed and loaded, downloads, unloading, and how each calls tools.

The screen and the commands both work through :class:`ModelDesk`; everything in a view is ready to be shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from tui_agent.agent.model_notes import ModelNotes
from tui_agent.agent.views import ServerStatus
from tui_agent.llm.bodies import freeze_options
from tui_agent.llm.errors import ModelError, ServerUnreachable
from tui_agent.llm.probe import WORDS, ToolCalling, probe_tools
from tui_agent.llm.pulling import PullState, follow_pull
from tui_agent.llm.types import ModelInfo, ModelOptions, RunningModel

_FOREVER_S = 10 * 365 * 86_400
_FRACTION = re.compile(r"(\.\d{6})\d+")


@dataclass(frozen=True, slots=True)
class ModelView:
    """One installed model. ``running`` is there while it is loaded; ``tool_calling`` is what the probe found, or
    empty. ``current`` marks the model of this session."""

    info: ModelInfo
    running: RunningModel | None = None
    tool_calling: str = ""
    current: bool = False

    @property
    def abilities(self) -> tuple[str, ...]:
        """What it can do, in words; the probe's finding in place of the server's word for tools."""
        info = self.info
        found: list[str] = [word for word in ("vision", "embedding", "thinking") if word in info.capabilities]
        if self.tool_calling:
            found.insert(0, WORDS[self.tool_calling])
        elif info.tools:
            found.insert(0, "tools")
        elif "completion" in info.capabilities:
            found.insert(0, "no tools")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Offer:
    """What loading a model means: ``num_ctx`` and ``num_predict`` tokens as every call will send them."""

    num_ctx: int
    num_predict: int


class ModelDesk:
    """Everything about models that is no conversation. Methods raise :class:`ModelError` unless they say otherwise.

    Args:
        client: gives the client, or ``None`` while there is no connection.
        notes: what was found out about models before.
        current: the name of the session's model.
        options: the options of calls to the current model, so that a probe does not make the server load it anew.
        num_ctx: the window to ask for with any other model.
    """

    def __init__(
        self,
        client: Callable[[], Any],
        notes: ModelNotes,
        *,
        current: Callable[[], str] = lambda: "",
        options: Callable[[], ModelOptions | None] = lambda: None,
        num_ctx: int = 8192,
    ) -> None:
        self._client = client
        self._notes = notes
        self._current = current
        self._options = options
        self._num_ctx = num_ctx

    @property
    def client(self) -> Any:
        """The client in use."""
        client = self._client()
        if client is None:
            raise ServerUnreachable(
                "There is no connection to a model server yet.", fix="Send a message, or start the server."
            )
        return client

    async def installed(self) -> list[ModelView]:
        """The installed models, newest first, each with its runner when it is loaded."""
        installed = await self.client.tags()
        running = await self.running()
        notes = await asyncio.to_thread(self._all_notes, installed)
        current = _plain(self._current())
        return [
            ModelView(
                info,
                next((one for one in running if _plain(one.name) == _plain(info.name)), None),
                notes.get(info.digest, ""),
                _plain(info.name) == current,
            )
            for info in installed
        ]

    def _all_notes(self, installed: list[ModelInfo]) -> dict[str, str]:
        return {info.digest: self._notes.get(info.digest).tools for info in installed if info.digest}

    async def running(self) -> list[RunningModel]:
        """What is loaded now; empty where the server does not say."""
        found: list[RunningModel] = []
        with contextlib.suppress(ModelError):
            found = await self.client.ps()
        return found

    async def show(self, name: str) -> ModelView:
        """One installed model with all that is known of it.

        Raises:
            ModelMissing: it is not installed.
        """
        info = await self.client.show(name)
        found = next((view for view in await self.installed() if _plain(view.info.name) == _plain(info.name)), None)
        if found is None:
            return ModelView(info, None, "", _plain(info.name) == _plain(self._current()))
        return replace(found, info=replace(info, name=found.info.name, digest=found.info.digest, size=found.info.size))

    def pull(self, name: str) -> AsyncGenerator[PullState, None]:
        """Download a model; see :func:`follow_pull`. Closing the generator stops the download."""
        return follow_pull(self.client, name.strip())

    async def unload(self, name: str) -> str:
        """Free the memory of a model now, and say what that was.

        Raises:
            ModelMissing: it is not installed.
        """
        client = self.client
        before = next((one for one in await client.ps() if _plain(one.name) == _plain(name)), None)
        await client.unload(name)
        if before is None:
            await client.show(name)  # a name that is not installed is said to be so
            return f"{name} was not loaded."
        # The server answers before the process is gone.
        for _ in range(20):
            if all(_plain(one.name) != _plain(name) for one in await client.ps()):
                freed = f" and freed {size_words(before.size)}" if before.size else ""
                return f"{name} is unloaded{freed}. The next answer loads it again."
            await asyncio.sleep(0.1)
        return f"{name} will be unloaded when its running answer is finished."

    async def probe(self, name: str) -> ToolCalling:
        """Ask the model to call a tool, and remember how it did. Loads the model when it is not loaded."""
        view = await self.show(name)
        info = view.info
        options = self._options() if view.current else None
        found = await probe_tools(self.client, info, options or freeze_options(info, self._num_ctx))
        version = ""
        with contextlib.suppress(ModelError):
            version = await self.client.version()
        await asyncio.to_thread(
            self._notes.put,
            info.digest,
            tools=found,
            tools_refused=False,
            think_refused=False,
            name=info.name,
            server=version,
        )
        return found

    def offer(self, info: ModelInfo) -> Offer:
        """The window and the answer limit this app would use with a model."""
        options = freeze_options(info, self._num_ctx)
        return Offer(options.num_ctx, options.num_predict)


def switch_sentence(name: str, before: ServerStatus, now: ServerStatus) -> str:
    """What another model changes for this conversation, which stays as it is."""
    changes = []
    if now.num_ctx != before.num_ctx:
        changes.append(f"window {now.num_ctx:,} tokens" + (f" instead of {before.num_ctx:,}" if before.num_ctx else ""))
    if now.tools != before.tools:
        changes.append("tools again" if now.tools else "no tools, so it saves nothing by itself")
    if now.thinking != before.thinking:
        changes.append("it can think" if now.thinking else "no thinking")
    tail = f" ({'; '.join(changes)})" if changes else ""
    return f"{name} answers from now on{tail}. The conversation stays; its first answer reads all of it."


def share_words(running: RunningModel) -> str:
    """Where a loaded model runs: ``GPU``, ``CPU``, or both with their shares; empty where the server does not say."""
    if running.size_vram is None or not running.size:
        return ""
    share = min(1.0, running.size_vram / running.size)
    if share <= 0:
        return "CPU"
    if share >= 1:
        return "GPU"
    percent = min(99, max(1, round(share * 100)))
    return f"{percent} % GPU, {100 - percent} % CPU"


def stay_words(expires_at: str, now: datetime) -> str:
    """When a loaded model goes: ``unloads in 12 min``, ``stays loaded``; empty for an unreadable time."""
    left = seconds_left(expires_at, now)
    if left is None:
        return ""
    if left > _FOREVER_S:
        return "stays loaded"
    if left <= 0:
        return "unloads now"
    return f"unloads in {left:.0f} s" if left < 90 else f"unloads in {round(left / 60)} min"


def seconds_left(expires_at: str, now: datetime) -> float | None:
    """Seconds from ``now`` to the server's RFC 3339 time; negative when it is past, ``None`` when unreadable."""
    # Go prints nine digits and "Z", of which Python 3.10 reads neither.
    text = _FRACTION.sub(r"\1", expires_at.strip()).replace("Z", "+00:00")
    head, dot, tail = text.partition(".")
    if dot:
        digits = re.match(r"\d+", tail)
        if digits is not None:
            text = f"{head}.{digits[0].ljust(6, '0')}{tail[digits.end() :]}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - now).total_seconds()


def size_words(size: int | None) -> str:
    """Bytes as people say them."""
    if not size:
        return ""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _plain(name: str) -> str:
    return name.strip().removesuffix(":latest")
