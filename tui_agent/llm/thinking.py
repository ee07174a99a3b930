"""Parts a reply that arrives piece by piece into thinking and answer.

Servers usually do this themselves, but some models think in tags that no parser on the server knows, and some send
only the closing tag. What counts as thinking:

* one or more tagged blocks at the very start of the reply: ``<think>``, ``<thinking>``, ``<reasoning>``,
  ``[THINK]``, ``<|channel>thought`` and the ``analysis`` channel of ``<|channel|>analysis<|message|>…``;
* everything before a closing tag that no opening tag came before, unless that tag stands in a code block or code span
  (an answer about these tags would quote it there).

Tags anywhere else are part of the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Part = Literal["content", "thinking"]
Piece = tuple[Part, str]

_PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<reasoning>": "</reasoning>",
    "[think]": "[/think]",
}
_CHANNEL = "<|channel|>"  # harmony: a header up to <|message|> names the channel
_MESSAGE = "<|message|>"
_START = "<|start|>assistant"
_CHANNEL_ENDS = ("<|end|>", "<|start|>", _CHANNEL)
_TURN = "<|channel>"  # gemma: a label on the rest of the line, then the text up to <channel|>
_TURN_END = "<channel|>"
_OPENERS = (*_PAIRS, _CHANNEL, _START, _TURN)
_STRAYS = (*_PAIRS.values(), _TURN_END)
_STRAY_OPENERS = (*_PAIRS, _TURN)
_LONGEST = max(map(len, (*_STRAYS, *_STRAY_OPENERS)))
_ANSWER_ENDS = ("<|return|>", "<|end|>")
_HEADER_LIMIT = 100
_LABEL = re.compile(r"[ \t]*(thought|thinking|analysis)?[ \t]*(\n|(?=<channel\|>))", re.IGNORECASE)
_LABEL_LIMIT = 26
_THINKING_CHANNELS = ("analysis", "thought", "thinking", "reasoning")
_ASCII_LOWER = {ord(c): ord(c) + 32 for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_RUN = re.compile(r"`+|~+")


@dataclass(frozen=True, slots=True)
class _Code:
    """Where the scanner stands in Markdown: ``fence`` is the run that must close a block, ``run`` an open code span.

    ``margin`` is true while only indentation, quote and list marks have been seen on the line. ``opened`` counts
    opening tags in the middle of the answer, whose closing tags are part of the answer too.
    """

    fence: str = ""
    run: str = ""
    run_at_margin: bool = False
    margin: bool = True
    opened: int = 0


class ThinkingSplitter:
    """Splits one reply. Any way of cutting the reply into ``feed`` calls gives the same :meth:`finish`.

    ``feed`` returns pieces to show at once. A closing tag without an opening one turns text that was already handed
    out as content into thinking: :attr:`reclassified` then becomes true, and from that call on a display must be
    redrawn from :attr:`thinking` and :attr:`content` instead of by appending. Nothing else is ever taken back.
    """

    def __init__(self) -> None:
        self._pending = ""
        self._thinking: list[str] = []
        self._content: list[str] = []
        self._state: Literal["start", "think", "answer"] = "start"
        self._closers: tuple[str, ...] = ()
        self._blocks = 0
        self._eat_space = False
        self._harmony = False
        self._reclassified = False
        self._code = _Code()
        self._out: list[Piece] = []

    @property
    def content(self) -> str:
        """The answer so far, as known now."""
        return "".join(self._content)

    @property
    def thinking(self) -> str:
        """The thinking so far, as known now."""
        return "".join(self._thinking)

    @property
    def reclassified(self) -> bool:
        """Whether a stray closing tag has turned earlier content into thinking."""
        return self._reclassified

    def feed(self, text: str) -> list[Piece]:
        """Take the next piece of the reply; return what is certain now, in order. May return nothing."""
        self._pending += text
        return self._run(final=False)

    def finish(self) -> tuple[str, str]:
        """End the reply: the final ``(content, thinking)``. Pieces that were held back are in them."""
        self._run(final=True)
        return self.content, self.thinking

    # -- the machine -------------------------------------------------------------------------------------------------

    def _run(self, *, final: bool) -> list[Piece]:
        self._out = []
        steps = {"start": self._at_start, "think": self._in_thinking, "answer": self._in_answer}
        while self._pending and steps[self._state](final):
            pass
        return [(part, text) for part, text in self._out if text]

    def _emit(self, part: Part, text: str) -> None:
        if not text:
            return
        (self._content if part == "content" else self._thinking).append(text)
        if self._out and self._out[-1][0] == part:
            text = self._out.pop()[1] + text
        self._out.append((part, text))

    def _at_start(self, final: bool) -> bool:
        """Look for an opening tag. Returns whether something was decided."""
        stripped = self._pending.lstrip()
        low = _low(stripped)
        opener = next((tag for tag in _OPENERS if low.startswith(tag)), None)
        if opener is None:
            if not final and any(tag.startswith(low) for tag in _OPENERS):
                return False
            if self._blocks or self._harmony:
                self._pending = stripped
            self._state = "answer"
            return True
        rest = stripped[len(opener) :]
        if opener in _PAIRS:
            return self._think(rest, (_PAIRS[opener],))
        if opener == _START:
            self._pending, self._harmony = rest, True
            return True
        return self._turn(rest, final) if opener == _TURN else self._channel(stripped, rest, final)

    def _turn(self, rest: str, final: bool) -> bool:
        window = rest[:_LABEL_LIMIT]
        label = _LABEL.match(window)
        if label is None and not final and "\n" not in window and len(rest) < _LABEL_LIMIT:
            return False
        return self._think(rest[label.end() :] if label else rest, (_TURN_END,))

    def _channel(self, whole: str, rest: str, final: bool) -> bool:
        at = _low(rest[:_HEADER_LIMIT]).find(_MESSAGE)
        if at < 0 and not final and len(rest) < _HEADER_LIMIT:
            return False
        header = (rest[:at] if at >= 0 else rest[:_HEADER_LIMIT]).strip().lower()
        name = next((name for name in _THINKING_CHANNELS if header.startswith(name)), None)
        if name is not None:
            body = rest[at + len(_MESSAGE) :] if at >= 0 else rest.lstrip()[len(name) :]
            return self._think(body, _CHANNEL_ENDS)
        self._harmony = True
        if at >= 0 and header.split()[:1] == ["final"]:
            whole = rest[at + len(_MESSAGE) :]
        # Other channels hold calls or notes; they stay as they are for whoever looks for calls in the text.
        self._pending, self._state = whole, "answer"
        return True

    def _think(self, rest: str, closers: tuple[str, ...]) -> bool:
        if self._blocks and self._thinking:
            self._emit("thinking", "\n")
        self._pending, self._closers, self._state = rest, closers, "think"
        self._blocks += 1
        self._harmony = self._harmony or closers is _CHANNEL_ENDS
        self._eat_space = True
        return True

    def _in_thinking(self, final: bool) -> bool:
        if self._eat_space:
            self._pending = self._pending.lstrip()
            if not self._pending:
                return False
            self._eat_space = False
        low = _low(self._pending)
        found = [(low.find(tag), tag) for tag in self._closers if tag in low]
        if not found:
            keep = 0 if final else _overlap(low, self._closers)
            cut = len(low) - keep
            self._emit("thinking", self._pending[:cut])
            self._pending = self._pending[cut:]
            return False
        at, tag = min(found)
        self._emit("thinking", self._pending[:at])
        # In harmony the next message's own mark ends this one; it is read again as an opening.
        self._pending = self._pending[at:] if tag in (_CHANNEL, "<|start|>") else self._pending[at + len(tag) :]
        self._state = "start"
        return True

    def _in_answer(self, final: bool) -> bool:
        if self._harmony:
            return self._harmony_answer(final)
        if self._blocks:
            self._emit("content", self._pending)
            self._pending = ""
            return False
        end, code, closer = _scan(self._pending, self._code, final)
        if closer is None:
            self._emit("content", self._pending[:end])
            self._pending, self._code = self._pending[end:], code
            return False
        self._thinking = self._content
        self._content = []
        earlier = "".join(text for _, text in self._out) + self._pending[:end]
        self._out = []
        self._thinking.append(self._pending[:end])
        if not self.thinking.strip():
            self._thinking = []
        elif earlier:
            self._out.append(("thinking", earlier))
        self._pending = self._pending[end + len(closer) :]
        self._reclassified = True
        self._blocks += 1
        self._state = "start"
        return True

    def _harmony_answer(self, final: bool) -> bool:
        low = _low(self._pending)
        found = [(low.find(tag), tag) for tag in _ANSWER_ENDS if tag in low]
        if found:
            at, tag = min(found)
            self._emit("content", self._pending[:at])
            self._pending = self._pending[at + len(tag) :]
            return True
        cut = len(low) - (0 if final else _overlap(low, _ANSWER_ENDS))
        self._emit("content", self._pending[:cut])
        self._pending = self._pending[cut:]
        return False


def _low(text: str) -> str:
    """ASCII lower case; ``str.lower`` changes the length of some texts, and with it every position."""
    return text.translate(_ASCII_LOWER)


def _overlap(text: str, tags: tuple[str, ...]) -> int:
    """Length of the longest end of ``text`` that begins, but does not complete, one of ``tags``."""
    longest = max(map(len, tags)) - 1
    for size in range(min(longest, len(text)), 0, -1):
        if any(tag.startswith(text[-size:]) for tag in tags):
            return size
    return 0


def _scan(text: str, code: _Code, final: bool) -> tuple[int, _Code, str | None]:
    """Read an answer for a closing tag outside code.

    Returns ``(end, state at end, tag)``: with a tag, ``end`` is where it starts; without, how much of ``text`` is
    decided. A tag after an open backtick waits for the rest of its line, which shows whether the span is closed.
    """
    at = 0
    doubtful: tuple[int, _Code, str] | None = None  # a closing tag inside a code span that is not closed yet
    while at < len(text):
        char = text[at]
        if char == "\n":
            opens_block = _opens_block(code)
            if doubtful is not None and not opens_block:
                return doubtful
            doubtful = None
            code = _Code(fence=code.run if opens_block else code.fence, opened=code.opened)
            at += 1
        elif char in "`~":
            run = _RUN.match(text, at)
            assert run is not None
            if run.end() == len(text) and not final:
                break  # the run may go on
            code, closed = _after_run(code, run.group())
            doubtful = None if closed else doubtful
            at = run.end()
        elif char in "<[" and not code.fence:
            low = _low(text[at : at + _LONGEST])
            tag = next((tag for tag in (*_STRAYS, *_STRAY_OPENERS) if low.startswith(tag)), None)
            if tag is None and not final and any(t.startswith(low) for t in (*_STRAYS, *_STRAY_OPENERS)):
                break  # the tag may be completed
            code = replace(code, margin=False)
            if tag in _STRAY_OPENERS:
                code = replace(code, opened=code.opened + (not code.run))
            elif tag is not None and code.opened and not code.run:
                code = replace(code, opened=code.opened - 1)
            elif tag is not None and not code.run:
                return at, code, tag
            elif tag is not None and doubtful is None:
                doubtful = at, code, tag
            at += len(tag) if tag is not None else 1
        else:
            if code.margin and not (char.isspace() or char in ">-*+.)" or char.isdigit()):
                code = replace(code, margin=False)
            at += 1
    if doubtful is not None:
        if not final:
            return doubtful[0], doubtful[1], None
        if not _opens_block(code):
            return doubtful
    return at, code, None


def _opens_block(code: _Code) -> bool:
    """Whether the run that is open at the end of a line begins a code block (the line is its info string)."""
    return code.run_at_margin and len(code.run) >= 3


def _after_run(code: _Code, run: str) -> tuple[_Code, bool]:
    """The state after a run of backticks or tildes, and whether it closed a code span."""
    if code.fence:
        closes = code.margin and run[0] == code.fence[0] and len(run) >= len(code.fence)
        return (_Code(margin=False, opened=code.opened) if closes else replace(code, margin=False)), False
    if code.run:
        if run == code.run:
            return replace(code, run="", run_at_margin=False, margin=False), True
        return replace(code, margin=False), False
    if run[0] == "~" and not (code.margin and len(run) >= 3):
        return replace(code, margin=False), False
    return replace(code, run=run, run_at_margin=code.margin, margin=False), False
