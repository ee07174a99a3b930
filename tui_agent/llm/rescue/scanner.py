"""Reads an answer from left to right and stops at the first group of calls that is meant to run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from tui_agent.llm.rescue import examples, hidden, markup, units
from tui_agent.llm.rescue.catalog import Catalog
from tui_agent.llm.rescue.context import Context
from tui_agent.llm.rescue.skips import FenceSkip, LineSkip, MarkSkip, Skip, StructureSkip
from tui_agent.llm.rescue.source import Cut, Hopeless, NeedMore, Reader, Undecided, Unit, skip_closers
from tui_agent.llm.types import ToolCall

Verdict = Literal["run", "shown", "wait"]

_LOOK_BACK = 600
_MARKS = r"[\n`{}\[\]()<\"'„“”«»‘’‚]"
_HEADS = (r"(?<!\w)call:", rf"(?<!\w){units.ROLE_WORDS}to=functions\.")
_HEAD_TAILS = ("call:", "assistant", "commentary", "analysis", "to=functions.")
_WORDS_TAIL = re.compile(rf"(?<!\w){units.ROLE_WORDS}((?:[a-z]+(?:[:=][a-z]*\.?)?)?)$")
_DIFF_HEADS = ("@@ ", "diff --git ", "--- a/", "+++ b/")
_CODE_BEFORE = re.compile(r"(?:[=(]|=>|\breturn|\byield|[\"']\s*:)\s*$")
_CLOSING_TAG = re.compile(r"</([A-Za-z_][\w.:-]*)\s*>")
_CLOSING_TAG_PART = re.compile(r"</?(?:[A-Za-z_][\w.:-]{0,60})?\s*")


@dataclass(slots=True)
class Outcome:
    """What was found. ``start``: where the group begins, in characters of the whole text; ``None`` without calls."""

    calls: tuple[ToolCall, ...] = ()
    start: int | None = None


@dataclass(slots=True)
class Scanner:
    """The state of reading one answer. Positions are indexes into ``text``, which may lose its beginning."""

    catalog: Catalog
    text: str = ""
    dropped: int = 0
    pos: int = 0
    # Stretches that are not visible if a call follows: thinking and channel headers.
    hidden: list[tuple[int, int]] = field(default_factory=list)
    # Up to here the text is visible as well, although it is not decided yet where that stretch ends.
    open_to: int = -1
    found: int | None = None
    _line: int = 0
    _line_starts: bool = True
    _line_quoted: bool = False
    _diff: bool = False
    _blank_so_far: bool = True
    _skip: Skip | None = None
    _context: Context = field(default_factory=Context)
    _events: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        names = self.catalog.name_pattern
        self._events = re.compile("|".join((_MARKS, *_HEADS, rf"(?<=: ){names}\(")))

    # --- what a reader of the stream asks

    def certain(self) -> int:
        """The index up to which the text is visible, whatever comes."""
        limit = max(self.pos, self.open_to) if self.found is None else self.found
        return min(limit, self.hidden[0][0]) if self.hidden else limit

    def names_a_tool(self) -> bool:
        """Whether what is undecided begins with something like a call of an offered tool."""
        return self.catalog.name_inside.search(self.text, self.pos, self.pos + _LOOK_BACK // 2) is not None

    def forget(self, shown_to: int) -> None:
        """Drop text that is decided, shown (up to ``shown_to``) and too far back to matter."""
        by = min(self.pos, shown_to) - _LOOK_BACK
        if by < 4 * _LOOK_BACK or self.hidden or self.found is not None:
            return
        self.text = self.text[by:]
        self.dropped += by
        self.pos -= by
        self.open_to -= by
        self._line = max(0, self._line - by)
        self._context.shift(by)
        if self._skip is not None:
            self._skip.shift(by)

    # --- reading

    def run(self, final: bool) -> Outcome:
        """Read on as far as the text allows; ``final`` when nothing more will come."""
        reader = Reader(self.text, final, self.catalog)
        if self.found is None:
            self.open_to = -1
            try:
                while self.pos < len(self.text) and self.found is None:
                    self._step(reader)
            except Undecided:
                newline = self.text.find("\n", self.pos)
                self.open_to = max(self.pos, self._held_tail() if newline < 0 else newline)
            except NeedMore:
                pass
        if self.found is None:
            return Outcome()
        return Outcome(self._group(reader, self.found) if final else (), self.found)

    def _step(self, reader: Reader) -> None:
        if self._skip is not None:
            end = self._skip.advance(self.text, reader.final)
            if end is None:
                self.open_to = len(self.text)
                raise NeedMore
            self._skip = None
            self._go(end)
            return
        if self._line_starts:
            self._begin_line(reader)
            return
        event = self._events.search(self.text, self.pos)
        if event is None:
            self._go(len(self.text) if reader.final else self._held_tail())
            if self.pos < len(self.text):
                raise NeedMore
            return
        self._go(event.start())
        self._handle(reader, event.group())

    def _go(self, pos: int) -> None:
        """Everything up to ``pos`` is visible text."""
        if pos > self.pos:
            newline = self.text.rfind("\n", self.pos, pos)
            if newline >= 0:
                self._line = newline + 1
            if self._blank_so_far and not self.text[self.pos : pos].isspace():
                self._blank_so_far = False
            self.pos = pos

    def _held_tail(self) -> int:
        """The index up to which nothing can be the beginning of a call by words."""
        text, size = self.text, len(self.text)
        begin = max(self.pos, size - 80)
        colon = text.rfind(": ", max(0, begin - 2))
        if colon >= 0 and any((name + "(").startswith(text[colon + 2 :]) for name in self.catalog.names):
            return max(self.pos, colon + 2)
        tail = _WORDS_TAIL.search(text, begin)
        if tail is not None and any(head.startswith(tail.group(1)) for head in _HEAD_TAILS):
            return tail.start()
        return size

    def _handle(self, reader: Reader, found: str) -> None:
        pos, char = self.pos, found[0]
        if char == "\n":
            self._go(pos + 1)
            self._line_starts = True
        elif char == "`":
            self._backticks(reader)
        elif char in "{[":
            if not self._unit(reader):
                self._context.bracket(char)
                self._go(pos + 1)
        elif char in "}])(":
            self._context.bracket(char)
            self._go(pos + 1)
        elif char == "<":
            self._angle(reader)
        elif len(found) > 1:
            self._words(reader, found)
        else:
            after = reader.char(pos + 1) if char in "\"'" else ""
            self._context.mark(char, self.text[pos - 1 : pos] if pos else "", after)
            self._go(pos + 1)

    # --- lines

    def _begin_line(self, reader: Reader) -> None:
        """What stands at the beginning of a line decides how the line is read."""
        begin = self.pos
        at = reader.blank(begin)
        char = reader.char(at)
        self._line, self._line_quoted = begin, False
        if char in ("", "\n", "\r"):
            self._context.paragraph()
            self._diff = False
            self._end_line_start(at)
            return
        if self._begins_diff(reader, at) or char in ">|" or (char in "+-" and not reader.char(at + 1).isspace()):
            self._end_line_start(at)
            self._skip = LineSkip(at)
            return
        if char in "+-":
            self._line_quoted = True
        elif char in "`~" and units.fence_at(reader, at, line_start=True):
            self._fence(reader, at)
            return
        elif (char.isalpha() or char == "_") and self._unit(reader, at):
            return
        self._end_line_start(at)

    def _end_line_start(self, pos: int) -> None:
        self._line_starts = False
        self._go(pos)

    def _begins_diff(self, reader: Reader, pos: int) -> bool:
        if self._diff:
            return True
        if self.text[pos] in "@d-+":
            self._diff = any(reader.starts(pos, head) for head in _DIFF_HEADS if head[0] == self.text[pos])
        return self._diff

    # --- places where a call may begin

    def _unit(self, reader: Reader, at: int | None = None) -> bool:
        """Try a unit at the position (or at ``at``, behind blanks). False: nothing of that kind begins here."""
        start = self.pos if at is None else at
        line_start = at is not None or self._at_line_start()
        try:
            unit = units.unit_at(reader, start, line_start=line_start)
        except Cut:
            self._end_line_start(len(self.text))
            return True
        except Hopeless:
            if self.text[start] not in "{[":
                return False
            return self._document(reader, start)
        if unit is None:
            return False
        self._judge(reader, start, unit)
        return True

    def _at_line_start(self) -> bool:
        return not self.text[self._line : self.pos].strip(" \t")

    def _document(self, reader: Reader, start: int) -> bool:
        """A JSON document: visible, and nothing in it is a call."""
        if self._context.ticks:
            # Inline code ends at its mark, whatever it quotes.
            closing = self._context.closing_ticks(self.text, start, reader.final)
            if closing is None:
                raise NeedMore
            if closing >= 0:
                self._end_line_start(closing)
                return True
        self._end_line_start(start)
        self._skip = StructureSkip(self.text, start)
        return True

    def _judge(self, reader: Reader, start: int, unit: Unit) -> None:
        """Run the calls of a unit, or show it."""
        if unit.calls:
            verdict = self._verdict(reader, start, unit)
            if verdict == "wait":
                raise NeedMore
            if verdict == "run":
                self.found = start
                return
        elif (
            not reader.final
            and self._blank_so_far
            and not self.text[self.pos : start].strip()
            and reader.space(skip_closers(reader, unit.end)) >= len(self.text)
        ):
            # A refused call that is the whole answer stays back until the end: the caller may want to ask again.
            raise NeedMore
        if unit.fenced:
            self._context.paragraph()
        self._end_line_start(unit.core)

    def _verdict(self, reader: Reader, start: int, unit: Unit) -> Verdict:
        text = self.text
        if self._line_quoted:
            return "shown"
        if unit.data and _CODE_BEFORE.search(text[max(self._line, start - 60) : start]):
            return "shown"
        enclosed = self._context.encloses(text, unit.core, reader.final, block=unit.fenced)
        if enclosed is not None and enclosed >= 0:
            return "shown"
        announcement = examples.announcement(text[max(0, start - _LOOK_BACK // 2) : start])
        if announcement == "report":
            return "shown"
        announced = announcement == "example"
        if (announced or unit.fenced) and examples.is_placeholder_call(unit.calls, announced=announced):
            return "shown"
        if announced and examples.explains(text, unit.end, reader.final):
            return "shown"
        if reader.final:
            return "shown" if unit.fenced and examples.calls_it_an_example(text, unit.end) else "run"
        return "wait" if enclosed is None or announced or unit.fenced else "run"

    def _backticks(self, reader: Reader) -> None:
        pos = self.pos
        if not self._context.ticks and units.fence_at(reader, pos, line_start=False):
            self._fence(reader, pos)
            return
        marks = units.fence_marks(reader, pos)
        if pos + len(marks) == len(self.text) and not reader.final:
            raise NeedMore
        self._context.backticks(len(marks))
        self._go(pos + len(marks))

    def _fence(self, reader: Reader, at: int) -> None:
        """A code block at ``at``: calls, or code to show."""
        marks = units.fence_marks(reader, at)
        try:
            unit = units.read_fence(reader, at, 0)
        except Cut:
            self._end_line_start(len(self.text))
            return
        self._context.paragraph()
        if unit is not None:
            self._judge(reader, at, unit)
            return
        one_line = re.compile(rf"{re.escape(marks)}[^\n`]*{re.escape(marks)}").match(self.text, at)
        if one_line is None and not reader.final and "\n" not in self.text[at:]:
            raise NeedMore
        self._end_line_start(at)
        if one_line is not None:
            self._go(one_line.end())
        else:
            self._skip = FenceSkip(marks, at + len(marks))

    def _words(self, reader: Reader, found: str) -> None:
        """A call that begins with words in the middle of a line."""
        pos = self.pos
        if found.endswith(("call:", "to=functions.")):
            end = pos + len(found)
            self._go(reader.blank(pos))
            if not self._unit(reader):
                self._go(end)
            return
        # ``Let me look: name(key="value")`` counts when the call ends the line and no example is announced.
        try:
            unit = units.unit_at(reader, pos, line_start=True)
        except Cut:
            self._go(len(self.text))
            return
        lead = self.text[max(0, pos - _LOOK_BACK // 2) : pos]
        if unit is None or examples.announcement(lead) != "none":
            self._go(pos + len(found) - 1)
            return
        self._judge(reader, pos, unit)

    # --- tags and special tokens

    def _angle(self, reader: Reader) -> None:
        pos = self.pos
        if self._hidden(reader):
            return
        if reader.char(pos + 1) == "/":
            closing = _CLOSING_TAG.match(self.text, pos)
            if closing is None and not reader.final and _CLOSING_TAG_PART.fullmatch(self.text, pos):
                raise NeedMore
            if closing is not None:
                self._context.close_tag(closing.group(1))
            self._go(closing.end() if closing else pos + 1)
            return
        if reader.starts(pos, "<!--"):
            self._skip = MarkSkip("-->", pos)
            return
        if self._unit(reader):
            return
        tag = markup.tag_at(reader, pos)
        if tag is None:
            self._go(pos + 1)
            return
        if markup.RESULT_TAGS.fullmatch(tag.group(1)) and not self._context.ticks and not tag.group(3):
            self._skip = MarkSkip(f"</{tag.group(1)}>", tag.end())
        elif not tag.group(3):
            self._context.open_tag(tag.group(1))
        self._go(tag.end())

    def _hidden(self, reader: Reader) -> bool:
        """Thinking and channel headers that were left in the answer: in front of a call they are not visible."""
        pos = self.pos
        plain = not self._context.ticks and not self._context.quote and self._at_line_start()
        end = hidden.thinking_end(reader, pos, plain=plain)
        if end is None:
            end = hidden.channel_end(reader, pos, inside=bool(self.hidden))
        if end is None:
            return False
        if end == hidden.UNFINISHED:
            self._end_line_start(len(self.text))
            return True
        self.hidden.append((pos, end))
        self._go(end)
        self._blank_so_far = False
        return True

    # --- the group

    def _group(self, reader: Reader, start: int) -> tuple[ToolCall, ...]:
        """All calls from ``start`` on that are neighbours of each other."""
        calls: list[ToolCall] = []
        pos, line_start = start, not self.text[self._line : start].strip(" \t")
        while True:
            try:
                unit = units.unit_at(reader, pos, line_start=line_start or not calls)
            except (Cut, Hopeless):
                break
            if unit is None or not (unit.calls or unit.refusals):
                break
            calls += unit.calls
            end = skip_closers(reader, units.skip_extra(reader, unit).end)
            separators = units.SEPARATORS.match(self.text, end)
            pos = separators.end() if separators else end
            if pos >= len(self.text):
                break
            line_start = True
        return tuple(calls)
