"""Large pastes: they become a chip beside the message instead of text in the editor, which would crawl."""

from __future__ import annotations

from dataclasses import dataclass

from tui_agent.tui.text import kilo, one_line, plural, short

MOST_CHARACTERS = 20_000
MOST_LINE = 5_000
_CHARACTERS_PER_TOKEN = 3.6  # of English, Polish and code alike, within a fifth; only for the estimate on the chip


@dataclass(frozen=True, slots=True)
class Attachment:
    """A pasted text that travels with the message, word for word."""

    number: int
    text: str

    @property
    def tokens(self) -> int:
        """An estimate; the server's count decides."""
        return max(1, round(len(self.text) / _CHARACTERS_PER_TOKEN))

    @property
    def chip(self) -> str:
        """``paste 1 · 48 kB · 1,204 lines · about 13.3k tokens · “first words…”``."""
        size = len(self.text.encode("utf-8", "replace"))
        amount = f"{size / 1000:.0f} kB" if size >= 1000 else f"{size} B"
        lines = plural(self.text.count("\n") + 1, "line")
        head = short(one_line(self.text[:200]), 28)
        return f"paste {self.number} · {amount} · {lines} · about {kilo(self.tokens)} tokens · “{head}”"


def is_large(text: str) -> bool:
    """Whether a paste is too much for the editor: over 20,000 characters, or a line over 5,000."""
    return len(text) > MOST_CHARACTERS or max(map(len, text.split("\n"))) > MOST_LINE


def with_attachments(text: str, attachments: list[Attachment]) -> str:
    """The message as sent: the text, then each attachment under its name."""
    parts = [text] if text else []
    parts += [f"[paste {item.number}]\n{item.text}" for item in attachments]
    return "\n\n".join(parts)
