"""The usual layout of a chat with memory, for comparison: the time and the memories that fit the question stand in the
system prompt, and the last 20 messages follow. Every turn changes the front of the prompt, and from the eleventh turn
on a message leaves it, so that a server can reuse next to nothing.

The identity, the tools and all texts are the same as ours; only where they stand differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

JSON = dict[str, Any]

WINDOW = 20  # messages


def system(identity: str, memories: Sequence[str], minute: int) -> str:
    """The system prompt of one request. ``minute`` of the session makes the clock."""
    lines = [identity, "", f"Current time: 2026-11-30 {9 + minute // 60:02d}:{minute % 60:02d}"]
    if memories:
        lines += ["", "What you remember about the user and the project:", *(f"- {text}" for text in memories)]
    return "\n".join(lines)


class UsualLayout:
    """Builds the requests of a conversation turn by turn.

    Args:
        identity: the fixed text of the system prompt.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._said: list[JSON] = []
        self._system = ""

    def asked(self, text: str, memories: Sequence[str], minute: int) -> list[JSON]:
        """The messages of the first request of a turn."""
        self._system = system(self._identity, memories, minute)
        self._said.append({"role": "user", "content": text})
        return self.messages()

    def add(self, message: JSON) -> list[JSON]:
        """A message of the model or a tool; the messages of the next request of the turn."""
        self._said.append(message)
        return self.messages()

    def messages(self) -> list[JSON]:
        """The system prompt and the window, which begins with a message of the user."""
        window = self._said[-WINDOW:]
        while len(window) > 1 and window[0]["role"] != "user":
            window = window[1:]
        return [{"role": "system", "content": self._system}, *window]
