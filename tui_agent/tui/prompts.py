"""What stands around the editor, without widgets: the history of prompts and the queue of messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


class PromptHistory:
    """Earlier prompts, walked with up and down; the text that was there first is kept and comes back at the end."""

    def __init__(self, prompts: Iterable[str] = ()) -> None:
        self.prompts = [prompt for prompt in prompts if prompt.strip()]
        self._at: int | None = None
        self._draft = ""

    def add(self, prompt: str) -> None:
        """A prompt was sent; an immediate repeat is kept once."""
        self._at = None
        if prompt.strip() and (not self.prompts or self.prompts[-1] != prompt):
            self.prompts.append(prompt)

    def older(self, current: str) -> str | None:
        """The prompt before, or ``None`` at the oldest."""
        if self._at is not None and self.prompts[self._at] != current:
            self._at = None  # edited: walking starts anew from this text
        at = len(self.prompts) if self._at is None else self._at
        if at == 0:
            return None
        if self._at is None:
            self._draft = current
        self._at = at - 1
        return self.prompts[self._at]

    def newer(self, current: str) -> str | None:
        """The prompt after, the text from before at the end, or ``None`` when not walking."""
        if self._at is None or self.prompts[self._at] != current:
            self._at = None
            return None
        self._at += 1
        if self._at >= len(self.prompts):
            self._at = None
            return self._draft
        return self.prompts[self._at]


@dataclass(slots=True)
class Queue:
    """Messages that wait for the running answer: sent in order, taken back for editing, returned on stop."""

    waiting: list[str] = field(default_factory=list)

    def add(self, message: str) -> None:
        self.waiting.append(message)

    def next(self) -> str | None:
        """Take the message to send now."""
        return self.waiting.pop(0) if self.waiting else None

    def take_back(self) -> str | None:
        """Take the last message back."""
        return self.waiting.pop() if self.waiting else None

    def take_all(self) -> str:
        """All messages as one text, and the queue empty."""
        text = "\n\n".join(self.waiting)
        self.waiting.clear()
        return text
