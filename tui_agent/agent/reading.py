"""What the model server has read of the conversation already, so that the wait can be named by what is left to read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui_agent.agent.prompt import Prompt
    from tui_agent.agent.rounds import Outcome, Request

JSON = dict[str, Any]
DRAIN_S = 15.0


@dataclass(slots=True)
class SentPrefix:
    """The last request that the server has read, as messages; an estimate, since the server may forget at any time.

    ``stopped_at`` is when a request was stopped before its first token: a server notices that only at the end of the
    piece of prompt it is reading, and the next request waits so long.
    """

    clock: Callable[[], float] = time.monotonic
    stopped_at: float | None = None
    _model: str = ""
    _tools: list[JSON] = field(default_factory=list)
    _messages: list[JSON] = field(default_factory=list)

    def common(self, model: str, tools: Sequence[JSON], messages: Sequence[JSON]) -> int:
        """How many messages at the beginning of ``messages`` the server has read, with the same tools before them."""
        if model != self._model or list(tools) != self._tools:
            return 0
        count = 0
        for old, new in zip(self._messages, messages, strict=False):
            if old != new:
                break
            count += 1
        return count

    def read(self, model: str, tools: Sequence[JSON], messages: Sequence[JSON]) -> None:
        """The server has read this request."""
        self._model, self._tools, self._messages = model, list(tools), list(messages)
        self.stopped_at = None

    def stopped(self) -> None:
        """A request was stopped before its first token."""
        self.stopped_at = self.clock()

    @property
    def draining(self) -> bool:
        """Whether the server may still be busy with a request that was stopped."""
        return self.stopped_at is not None and self.clock() - self.stopped_at < DRAIN_S

    def forget(self) -> None:
        """The model was loaded anew: nothing is read."""
        self._messages = []
        self._model = ""


def known_tokens(sent: SentPrefix, model: str, prompt: Prompt) -> int:
    """Estimated tokens of ``prompt`` that the server need not read again."""
    count = sent.common(model, prompt.tools, prompt.messages())
    if not count:
        return 0
    fixed = prompt.tokens()
    return fixed["system"] + fixed["tools"] + sum(prompt.message_tokens(entry) for entry in prompt.log[: count - 1])


def after(sent: SentPrefix, request: Request, outcome: Outcome) -> None:
    """Take note of what a request that is over has made the server read."""
    if outcome.end == "stopped" and outcome.first_token_s is None:
        sent.stopped()
    elif outcome.first_token_s is not None or outcome.metrics is not None:
        # The log holds the answer as the next request sends it; that it is cached too is not counted.
        sent.read(request.model, request.tools, request.messages)
    else:
        sent.forget()
