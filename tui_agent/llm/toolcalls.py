"""Tool calls that arrive as text: found, checked and taken out of the answer.

Models write calls into their answer in some two dozen shapes when their template and the server's parser disagree.
:func:`rescue` reads a finished answer, :class:`HoldBack` the same answer while it streams; both give the same calls.
:func:`validate_call` checks any call, native ones too, before it runs.

A rescued call needs an offered name and arguments that fit the tool's schema. Only the first group of neighbouring
calls counts. What is quoted, shown as an example or part of a larger document is never a call, and nothing inside an
argument is ever looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tui_agent.llm.rescue import units
from tui_agent.llm.rescue.catalog import Catalog
from tui_agent.llm.rescue.scanner import Outcome, Scanner
from tui_agent.llm.rescue.source import Cut, Hopeless, Reader, Refusal, skip_closers
from tui_agent.llm.types import ToolCall

_NAME = re.compile(r"[A-Za-z_][\w.\-]{0,63}")
DEFAULT_CAP = 4000
_CALL_CAP_FACTOR = 8


@dataclass(frozen=True, slots=True)
class Rescued:
    """The calls of an answer in their order, and the text that stays visible.

    Without calls ``text`` is the answer exactly as it came. With calls it is the prose in front of them.
    """

    calls: tuple[ToolCall, ...]
    text: str


def rescue(content: str, tools: Iterable[Mapping[str, Any]]) -> Rescued:
    """Find the calls in a whole answer. ``tools`` is the list sent to ``/api/chat``. Never raises for any text."""
    hold = HoldBack(tools, cap=None)
    hold.add(content)
    return hold.finish()


def validate_call(name: str, arguments: Any, tools: Iterable[Mapping[str, Any]]) -> ToolCall | str:
    """The call with its clean name and its arguments in the types of the schema, or a sentence for the model.

    ``arguments`` is an object, its JSON text, or nothing (no arguments). An optional argument that is null is left
    out, ``"5"`` becomes 5 where an integer is wanted, and 5 becomes ``"5"`` where text is wanted. The sentence names
    the closest tool or argument and says what is expected.
    """
    outcome = Catalog(tools).check(name, arguments, rescued=False, lenient=True)
    return outcome.reason if isinstance(outcome, Refusal) else outcome


def is_bare_unknown_call(content: str, tools: Iterable[Mapping[str, Any]]) -> str | None:
    """The name, when the answer is nothing but a call to a tool that nobody offered; otherwise ``None``.

    ``None`` as well when no tools are offered at all: then such an answer is only text.
    """
    catalog = Catalog(tools)
    if not catalog.tools:
        return None
    reader = Reader(content, final=True, catalog=catalog)
    pos, name = reader.space(0), ""
    while pos < len(content):
        try:
            unit = units.unit_at(reader, pos, line_start=True)
        except (Cut, Hopeless):
            return None
        if unit is None or unit.calls or not unit.refusals or not all(each.unknown for each in unit.refusals):
            return None
        name = name or unit.refusals[0].name
        separators = units.SEPARATORS.match(content, skip_closers(reader, unit.end))
        pos = separators.end() if separators else len(content)
    return name if _NAME.fullmatch(name) else None


class HoldBack:
    """Lets the prose of a streaming answer through and keeps back what may be a call.

    ``cap``: so many characters may be kept back before they are shown all the same (``None``: any number), eight
    times as many while they begin like a call of an offered tool. Calls are found then, too, but the text that was
    shown stays part of the visible text.
    """

    def __init__(self, tools: Iterable[Mapping[str, Any]], cap: int | None = DEFAULT_CAP) -> None:
        self._cap = cap
        self._scanner = Scanner(Catalog(tools))
        self._shown: list[str] = []
        self._shown_to = 0  # index into the whole text
        self._new = 0

    def add(self, delta: str) -> None:
        """Take text without asking what may be shown."""
        self._scanner.text += delta
        self._new += len(delta)

    def feed(self, delta: str) -> str:
        """Take the next piece of the answer; returns the text that may be shown now."""
        self.add(delta)
        scanner = self._scanner
        if not scanner.catalog.tools:
            return self._show(len(scanner.text))
        # What is not decided is read again from its beginning, so a long stretch is not tried at every piece.
        undecided = len(scanner.text) - scanner.pos
        if scanner.found is None and (scanner.open_to >= 0 or self._new * 16 >= undecided):
            scanner.run(final=False)
            self._new = 0
        limit = scanner.certain()
        if self._cap is not None and scanner.found is None:
            # Long arguments of an offered tool are no reason to show raw JSON; only far beyond the cap they are.
            cap = self._cap * (_CALL_CAP_FACTOR if scanner.names_a_tool() else 1)
            limit = len(scanner.text) if len(scanner.text) - limit > cap else limit
        text = self._show(limit)
        scanner.forget(self._shown_to - scanner.dropped)
        return text

    def _show(self, limit: int) -> str:
        """Show up to ``limit``, but keep white space back until something follows it."""
        scanner = self._scanner
        start = self._shown_to - scanner.dropped
        text = scanner.text[start:limit].rstrip() if limit > start else ""
        if text:
            self._shown.append(text)
            self._shown_to += len(text)
        return text

    def finish(self) -> Rescued:
        """The answer is over. What was shown already is the beginning of ``text``."""
        scanner = self._scanner
        outcome = scanner.run(final=True) if scanner.catalog.tools else Outcome()
        shown = "".join(self._shown)
        begin = self._shown_to - scanner.dropped
        if not outcome.calls or outcome.start is None:
            return Rescued((), shown + scanner.text[begin:])
        rest = ""
        for start, end in scanner.hidden:
            if start >= begin:
                rest += scanner.text[begin:start]
                # White space behind hidden thinking goes with it where nothing visible stands in front.
                begin = end if shown or rest.strip() else Reader(scanner.text, True, scanner.catalog).space(end)
        rest += scanner.text[begin : max(begin, outcome.start)]
        return Rescued(outcome.calls, (shown + rest).rstrip())
