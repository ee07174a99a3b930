"""Streamed markdown, split into finished top-level blocks and the open tail. No Textual, no layout.

A block is finished when a later top-level block has begun on a *complete* line: CommonMark reads by lines, and a
closed top-level block never opens again, so what is laid out once is never laid out twice. Link reference
definitions are the exception (they reach back); :attr:`StreamingMarkdown.needs_whole` says when there are any.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tui_agent.tui.text import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """The markdown dialect of answers: GitHub's, with HTML shown as the text it is (a model writes ``List<int>``)."""
    from markdown_it import MarkdownIt

    return MarkdownIt("gfm-like", {"html": False})


@lru_cache(maxsize=1)
def _block_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("gfm-like", {"html": False})
    markdown.core.ruler.enableOnly(["normalize", "block"])
    return markdown


def block_starts(source: str) -> list[int]:
    """The line numbers where the top-level blocks of ``source`` begin."""
    return [
        token.map[0]
        for token in _block_parser().parse(source)
        if token.level == 0 and token.map is not None and token.nesting >= 0
    ]


class StreamingMarkdown:
    """Text that grows. ``finished`` holds sources of closed blocks, ``tail`` the rest; together they are the source.

    ``feed`` only appends (cheap, once per token); ``advance`` looks for newly finished blocks (once per frame).
    """

    def __init__(self, text: str = "") -> None:
        self.finished: list[str] = []
        self.tail = ""
        self._held = ""
        self._looked_at = 0
        if text:
            self.feed(text)

    @property
    def source(self) -> str:
        """Everything fed so far, cleaned."""
        return "".join(self.finished) + self.tail

    @property
    def needs_whole(self) -> bool:
        """Whether there may be a link reference definition, which makes blocks depend on each other."""
        return "]:" in self.source

    def feed(self, text: str) -> None:
        """Append a piece of foreign text. A carriage return at its end waits: a line feed may follow."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        self.tail += clean(text[: len(text) - len(self._held)])

    def advance(self) -> int:
        """Move blocks that are now closed from the tail to ``finished``; the number moved."""
        complete = self.tail.rfind("\n") + 1
        if complete <= self._looked_at:
            return 0
        self._looked_at = complete
        starts = block_starts(self.tail[:complete])
        if len(starts) < 2:
            return 0
        lines = self.tail.split("\n")
        cuts = [0, *starts[1:]]
        moved = ["".join(line + "\n" for line in lines[begin:end]) for begin, end in pairwise(cuts)]
        self.finished.extend(moved)
        self.tail = "\n".join(lines[cuts[-1] :])
        self._looked_at = self.tail.rfind("\n") + 1
        return len(moved)

    def finish(self) -> None:
        """No more text will come: the tail becomes the last block."""
        if self._held:
            self._held = ""
            self.tail += "\n"
        self.advance()
        if self.tail:
            self.finished.append(self.tail)
            self.tail = ""
