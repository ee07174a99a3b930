"""Whether the server read what was sent. A server whose window is smaller than the prompt cuts the beginning away and
answers as if nothing were missing; only its count of the prompt gives it away, and that count is not always to be
trusted (some servers leave out what they had in their cache, some report none)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.agent.events import NotSeen
from tui_agent.llm.errors import ModelError

if TYPE_CHECKING:
    from tui_agent.agent.core import Core
    from tui_agent.agent.rounds import Request
    from tui_agent.llm.types import Metrics

_CLEARLY = 0.75
_LEAST = 256
_NEAR = 0.9
_SLACK = 64


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known of one request. All are tokens.

    ``sent`` is our calibrated estimate of the prompt and ``new`` of what this request added to the one before;
    ``read`` is the server's count, ``cached`` how many of those it says it had (``None``: it does not say);
    ``before`` is its trusted count of the request that this one extends, ``asked`` the window asked for and ``window``
    the one it really has (``None`` when unknown).
    """

    sent: int
    read: int | None
    asked: int
    cached: int | None = None
    new: int = 0
    before: int | None = None
    window: int | None = None

    @property
    def suspicious(self) -> bool:
        """Clearly fewer tokens were counted than sent, or a prompt that grew was counted as if it had not; whether it
        was cut is another question."""
        read = self.read
        if read is None or self.sent < _LEAST:
            return False
        if read < _CLEARLY * self.sent:
            return True
        return self.before is not None and read < self.before + 0.5 * self.new - _SLACK / 2

    @property
    def cut(self) -> bool:
        """Whether the beginning was cut away. In doubt it was not: a count alone that is far off proves nothing."""
        read = self.read
        if not self.suspicious or read is None:
            return False
        if self.cached is None and read <= 1.5 * self.new + _SLACK:
            return False  # only what was new was counted
        sent = max(self.sent, (self.before or 0) + self.new)
        if self.before is not None and read < self.before - _SLACK:
            return True
        return sent > _NEAR * (self.window or self.asked)


async def look(core: Core, request: Request, metrics: Metrics, new: int) -> NotSeen | None:
    """Judge one answered request; asks the server for its real window only when there is something to judge."""
    room = core.room
    reading = Reading(
        sent=request.prompt_tokens,
        read=metrics.prompt_tokens,
        asked=core.options.num_ctx,
        cached=metrics.cached_tokens,
        new=new,
        before=room.last_count,
        window=room.window,
    )
    if not reading.suspicious:
        return None
    if reading.window is None and (window := await _window(core)) is not None:
        reading = Reading(reading.sent, reading.read, reading.asked, reading.cached, new, reading.before, window)
    if not reading.cut:
        return None
    if reading.window is not None and reading.window < reading.asked:
        room.window = reading.window  # from now on nothing larger is sent
    return not_seen(core, reading.sent, reading.read or 0, reading.window or reading.asked)


def not_seen(core: Core, sent: int, read: int, window: int, *, refused: bool = False) -> NotSeen:
    """The event, with what can be done about it."""
    tools = sum(core.prompt.message_tokens(e) for e in core.prompt.log if e.message["role"] == "tool")
    larger = core.room.larger() if window >= core.options.num_ctx else 0
    return NotSeen("", sent, read, window, larger, tools, refused)


async def _window(core: Core) -> int | None:
    try:
        running = await core.client.ps()
    except ModelError:
        return None
    base = core.model.removesuffix(":latest")
    found = next((model for model in running if model.name.removesuffix(":latest") == base), None)
    return found.context_length if found is not None else None
