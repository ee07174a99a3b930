"""An answer as lines: streamed text, tool calls, thinking, what was recalled for it, what it changed in memory."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.tui.entries import MOST_CHARACTERS, Entry, NoticeEntry, UserEntry, View
from tui_agent.tui.layout import Line, join, label, spread, text, wrapped
from tui_agent.tui.markdown import CodeLines, Laid, lay_out
from tui_agent.tui.streaming import StreamingMarkdown
from tui_agent.tui.text import arguments, clean, clock, decimals, one_line, plural, short, tail_id

if TYPE_CHECKING:
    from tui_agent.agent.events import MemoryChanged, NotSeen, SaveMissing, TurnFinished
    from tui_agent.agent.views import ToolRow, TranscriptEntry
    from tui_agent.memory.types import RecallRecord

MOST_RESULT_LINES = 200
_PLAIN_TAIL = 24_000
_MEMORY_WORDS = {
    "put_away": "put away",
    "evicted": "put away",
    "brought_back": "brought back",
    "quarantined": "to review",
    "superseded": "replaced",
    "released": "pin released",
}
_LOUD = {"saved", "superseded", "quarantined", "refused", "deleted"}


@dataclass(slots=True)
class TextPart:
    """A stretch of answer text between tool calls."""

    stream: StreamingMarkdown = field(default_factory=StreamingMarkdown)
    done: bool = False
    codes: list[str] = field(default_factory=list)
    _laid: list[Laid] = field(default_factory=list)
    _code_lines: CodeLines = field(default_factory=dict)
    _at: tuple[int, int] = (0, 0)

    def lines(self, width: int, first_code: int) -> list[Line]:
        """Finished blocks come from what is kept; only the tail is laid out again."""
        if self._at != (width, first_code):
            self._laid, self._at = [], (width, first_code)
        if self.done and self.stream.needs_whole:
            blocks = [self.stream.source]
            self._laid = self._laid if len(self._laid) == 1 else []
        else:
            blocks = self.stream.finished
        self.codes = [code for laid in self._laid for code in laid.codes]
        for source in blocks[len(self._laid) :]:
            self._laid.append(lay_out(source, width, first_code=first_code + len(self.codes)))
            self.codes.extend(self._laid[-1].codes)
        parts = [laid.lines for laid in self._laid]
        if self.stream.tail.strip():
            parts.append(self._tail(width, first_code + len(self.codes)))
        lines: list[Line] = []
        for part in parts:
            if lines and part:
                lines.append(Line(Content("")))
            lines.extend(part)
        return lines

    def _tail(self, width: int, first_code: int) -> list[Line]:
        tail = self.stream.tail
        if len(tail) > _PLAIN_TAIL:  # laying this out many times a second would stall typing
            return [Line(line) for line in wrapped(Content(tail), width)]
        laid = lay_out(tail, width, first_code=first_code, kept=self._code_lines)
        self.codes.extend(laid.codes)
        return laid.lines

    def finish(self) -> None:
        self.stream.finish()
        self.done = True
        self._code_lines.clear()


@dataclass(slots=True)
class ToolPart:
    """A tool call and, once it is there, its result."""

    call_id: str
    name: str
    arguments: dict[str, object]
    rescued: bool = False
    running: bool = True
    ok: bool = True
    result: str = ""
    summary: str = ""
    unfolded: bool = False

    def lines(self, width: int) -> list[Line]:
        target = f"fold:{self.call_id}"
        if self.running:
            mark, style = "…", "$quiet"
        else:
            mark, style = ("✓", "$said") if self.ok else ("✗", "$error")
        summary = one_line(self.summary) or ("running" if self.running else _first_line(self.result))
        given = arguments(self.arguments, max(12, width // 2 - len(self.name)))
        call = join(
            ("▾ " if self.unfolded else "▸ ", "$quiet"), label(self.name, "bold"), (f"({given})", "$quiet"), "  "
        )
        right = Content.styled("from text", "$faint") if self.rescued else Content("")
        head = join(call, (f"{mark} ", style), label(summary, "$quiet"))
        lines = [Line(spread(head, right, width), target)]
        if self.unfolded:
            bar = ("  │ ", "$faint")
            shown = json.dumps(self.arguments, ensure_ascii=False, indent=2, default=str)
            for piece, piece_style in ((shown, "$quiet"), (self.result, "")):
                body = text(piece.rstrip()[:MOST_CHARACTERS], piece_style)
                rows = wrapped(body, width, first=bar, rest=bar) if piece.strip() else []
                if len(rows) > MOST_RESULT_LINES:
                    more = f"… {len(rows) - MOST_RESULT_LINES:,} more lines"
                    rows = [*rows[:MOST_RESULT_LINES], join(bar, (more, "$quiet"))]
                lines.extend(Line(row, target) for row in rows)
        return lines


def _first_line(result: str) -> str:
    return one_line(result.strip().split("\n", 1)[0]) if result.strip() else "done"


class AnswerEntry(Entry):
    """An answer: streamed text, tool calls, thinking, what was recalled for it and what it changed in memory."""

    selectable = True

    def __init__(self, key: str, created_at: str = "") -> None:
        super().__init__(key)
        self.message_id = ""
        self.created_at = created_at
        self.parts: list[TextPart | ToolPart] = []
        self.thinking = ""
        self.thinking_unfolded = False
        self.live = True
        self.status = "complete"
        self.error = ""
        self.recall: RecallRecord | None = None
        self.recall_known = False
        self.changes: list[MemoryChanged] = []
        self.changes_unfolded = False
        self.memory_line = ""
        self.missing: SaveMissing | None = None
        self.saved_as = ""
        self.unseen: NotSeen | None = None
        self.unseen_ignored = False
        self.tokens_per_second: float | None = None
        self.question = ""

    @classmethod
    def of(cls, entry: TranscriptEntry) -> AnswerEntry:
        """A finished answer from the history."""
        answer = cls(f"answer:{entry.message_id}", entry.created_at)
        answer.message_id = entry.message_id
        answer.parts.extend(_tool_part(row) for row in entry.tools)
        if entry.text:
            answer.add_text(entry.text)
        answer.thinking = clean(entry.thinking)
        answer.status, answer.recall, answer.memory_line = entry.status, entry.recall, one_line(entry.memory_line)
        answer.recall_known = entry.recall is not None
        answer.tokens_per_second = entry.tokens_per_second
        answer.unseen = entry.unseen
        answer.finish_parts()
        answer.live = False
        return answer

    # -- growing -------------------------------------------------------------------------------------------------

    def add_text(self, piece: str) -> None:
        """Append streamed text. Drawing happens later, once per frame."""
        if not self.parts or not isinstance(self.parts[-1], TextPart):
            self.parts.append(TextPart())
        last = self.parts[-1]
        assert isinstance(last, TextPart)
        last.stream.feed(piece)

    def replace_text(self, whole: str) -> None:
        """The text shown so far was not the answer after all: ``whole`` stands instead."""
        self.parts = [part for part in self.parts if isinstance(part, ToolPart)]
        if whole:
            self.add_text(whole)

    def add_tool(self, part: ToolPart) -> None:
        if self.parts and isinstance(self.parts[-1], TextPart):
            self.parts[-1].finish()
        self.parts.append(part)

    def tool(self, call_id: str) -> ToolPart | None:
        return next((part for part in self.parts if isinstance(part, ToolPart) and part.call_id == call_id), None)

    def advance(self) -> None:
        """Once per frame: find finished blocks and draw anew."""
        for part in self.parts:
            if isinstance(part, TextPart) and not part.done:
                part.stream.advance()
        self.touch()

    def finish(self, event: TurnFinished) -> None:
        """The turn ended: what the event says stands above what was streamed."""
        if event.text and not self.source.strip():
            self.add_text(event.text)
        self.finish_parts()
        for part in self.parts:
            if isinstance(part, ToolPart) and part.running:
                part.running, part.ok, part.summary = False, False, "no result"
        self.live = False
        self.status = {"answered": "complete", "stopped": "partial"}.get(event.status, event.status)
        self.error = one_line(event.error)
        self.message_id = event.message_id or self.message_id
        self.tokens_per_second = event.tokens_per_second
        self.touch()

    def finish_parts(self) -> None:
        for part in self.parts:
            if isinstance(part, TextPart):
                part.finish()

    # -- asking --------------------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The text of the answer, as markdown."""
        return "\n\n".join(part.stream.source.strip("\n") for part in self.parts if isinstance(part, TextPart))

    @property
    def codes(self) -> list[str]:
        """The raw code blocks, in the order of their numbers; known once the answer was drawn."""
        return [code for part in self.parts if isinstance(part, TextPart) for code in part.codes]

    @property
    def can_save(self) -> bool:
        return self.missing is not None and not self.saved_as

    def estimate(self, width: int) -> int:
        return 5 + sum(
            part.stream.source.count("\n") + len(part.stream.source) // width if isinstance(part, TextPart) else 1
            for part in self.parts
        )

    def toggle(self, target: str = "") -> bool:
        """Fold or unfold one part, or, without a target, all of them together."""
        tools = [part for part in self.parts if isinstance(part, ToolPart)]
        if target == "fold:thinking" and self.thinking:
            self.thinking_unfolded = not self.thinking_unfolded
        elif target == "fold:changes" and self.changes:
            self.changes_unfolded = not self.changes_unfolded
        elif target:
            tool = self.tool(target.removeprefix("fold:"))
            if tool is None:
                return False
            tool.unfolded = not tool.unfolded
        elif tools or self.thinking:
            open_all = not (any(tool.unfolded for tool in tools) or self.thinking_unfolded)
            self.thinking_unfolded = open_all and bool(self.thinking)
            for tool in tools:
                tool.unfolded = open_all
        else:
            return False
        self.touch()
        return True

    # -- drawing -------------------------------------------------------------------------------------------------

    def draw(self, width: int, view: View) -> list[Line]:
        lines = [Line(self._header())]
        if self.thinking:
            lines.extend(self._thinking(width))
        code, before = 1, "header"
        for part in self.parts:
            if isinstance(part, ToolPart):
                drawn, kind = part.lines(width), "tool"
            else:
                drawn, kind = part.lines(width, code), "text"
                code += len(part.codes)
            if drawn and before != "header" and "text" in (kind, before):
                lines.append(Line(Content("")))
            lines.extend(drawn)
            before = kind if drawn else before
        if self.live and not self.parts and not self.thinking:
            lines.append(Line(Content.styled("…", "$quiet")))
        lines.extend(self._ending(width, view))
        lines.extend(self._not_seen(width, view))
        quiet = [*self._recalled(width, view), *self._memory(width, view), *self._missing(width, view)]
        return [*lines, *([Line(Content(""))] if quiet else []), *quiet]

    def _header(self) -> Content:
        tools = sum(isinstance(part, ToolPart) for part in self.parts)
        facts = [clock(self.created_at), plural(tools, "tool call") if tools else ""]
        if self.tokens_per_second:
            facts.append(f"{self.tokens_per_second:.0f} tok/s")
        return join(("Assistant", "bold $said"), ("".join(f" · {fact}" for fact in facts if fact), "$quiet"))

    def _thinking(self, width: int) -> list[Line]:
        words = len(self.thinking.split())
        busy = self.live and not self.parts
        head = f"{'▾' if self.thinking_unfolded else '▸'} {'thinking' if busy else 'thought'} · {plural(words, 'word')}"
        lines = [Line(Content.styled(head, "$quiet"), "fold:thinking")]
        if self.thinking_unfolded:
            bar = ("  │ ", "$faint")
            body = Content.styled(self.thinking.strip(), "italic $quiet")
            lines.extend(Line(row, "fold:thinking") for row in wrapped(body, width, first=bar, rest=bar))
        return lines

    def _ending(self, width: int, view: View) -> list[Line]:
        marks = {
            "partial": ("◌", "$warning", "stopped here", "ask again"),
            "cut_off": ("✂", "$warning", "cut off: the answer reached its limit", "continue"),
            "failed": ("✗", "$error", self.error or "the answer failed", "ask again"),
            "incomplete": (
                "✗",
                "$error",
                self.error or "the connection ended in the middle of the answer",
                "ask again",
            ),
            "empty": ("∅", "$warning", self.error or "the model answered nothing", "ask again"),
        }
        if self.live or self.status not in marks:
            return []
        mark, style, words, again = marks[self.status]
        body = Content.styled(words, style)
        lines = wrapped(body, width - 14, first=(f"{mark} ", style), rest="  ")
        if view.selected:
            lines[-1] = spread(lines[-1], Content.styled(view.hint("retry", again), "$act"), width)
        return [Line(Content("")), *map(Line, lines)] if self.parts else [Line(line) for line in lines]

    def _not_seen(self, width: int, view: View) -> list[Line]:
        unseen = self.unseen
        if unseen is None or self.live:
            return []
        if unseen.refused:
            said = f"The model saw nothing of this: about {unseen.sent:,} tokens do not fit its window."
        else:
            said = f"The model did not see the beginning: about {unseen.sent:,} tokens were sent, {unseen.read:,} read."
        style = "$quiet" if self.unseen_ignored else "$warning"
        lines = [Line(line) for line in wrapped(text(said, style), width, first=("▲ ", style), rest="  ")]
        if view.selected and not self.unseen_ignored:
            keys = [
                view.hint("larger", f"ask again with {unseen.larger:,} tokens") if unseen.larger else "",
                view.hint("shorter", "ask again without tool output") if unseen.tool_tokens else "",
                view.hint("ignore", "ignore"),
            ]
            hint = Content.styled(" · ".join(key for key in keys if key), "$act")
            lines += [Line(line) for line in wrapped(hint, width, first="  ", rest="  ")]
        return lines

    def _recalled(self, width: int, view: View) -> list[Line]:
        record = self.recall
        if record is None or not (record.items or record.near):
            return []
        # Hot items are sent because they are hot, with a score of another scale; what was recalled stands apart.
        found = [item for item in record.items if item.store != "hot"]
        hot = len(record.items) - len(found)
        facts = [f"recalled {len(found)}"]
        facts += [f"{tail_id(one_line(item.id))} {decimals(item.score)}" for item in found[:4]]
        if len(found) > 4:
            facts.append(f"{len(found) - 4} more")
        if hot:
            facts.append(f"{hot} hot")
        if record.near:
            facts.append(plural(len(record.near), "near miss", "near misses"))
        hint = Content.styled(view.hint("why", "why"), "$act") if view.selected else Content("")
        return [Line(spread(Content.styled("  " + " · ".join(facts), "$quiet"), hint, width), "why")]

    def _memory(self, width: int, view: View) -> list[Line]:
        loud = [change for change in self.changes if change.what in _LOUD]
        lines: list[Line] = []
        for change in loud[:3]:
            where = f" in {one_line(change.target)}" if change.target else ""
            word = _MEMORY_WORDS.get(change.what, change.what)
            said = f"“{one_line(change.text)}”" if change.text.strip() else "a line"  # a refused secret is not shown
            what = f"  memory: {word} {said}{where}"
            if change.reason and change.what in ("refused", "quarantined"):
                what += f" · {one_line(change.reason)}"
            undo = view.hint("undo", "undo") if view.selected and change.undo else ""
            style = "$warning" if change.what == "refused" else "$quiet"
            lines.append(Line(spread(Content.styled(what, style), Content.styled(undo, "$act"), width)))
        counts = Counter(
            _MEMORY_WORDS.get(change.what, change.what) for change in self.changes if change not in loud[:3]
        )
        summary = ", ".join(f"{count} {word}" for word, count in counts.items()) or ("" if loud else self.memory_line)
        if summary:
            summary = summary.removeprefix("memory:").strip()
            hint = view.hint("changes", "changes") if view.selected and self.changes else ""
            left = Content.styled(f"  memory: {'also ' if loud else ''}{summary}", "$quiet")
            lines.append(Line(spread(left, Content.styled(hint, "$act"), width), "fold:changes"))
        if self.changes_unfolded:
            for change in self.changes:
                word = _MEMORY_WORDS.get(change.what, change.what)
                row = join(
                    (f"    {word:<12} ", "$quiet"), label(change.text), (f"  {one_line(change.reason)}", "$quiet")
                )
                lines.append(Line(row.truncate(width, ellipsis=True), "fold:changes"))
        return lines

    def _missing(self, width: int, view: View) -> list[Line]:
        if self.saved_as:
            return [
                Line(line)
                for line in wrapped(text(self.saved_as, "$said"), width, first=("  ✓ ", "$said"), rest="    ")
            ]
        if self.missing is None:
            return []
        if self.missing.claimed:
            said = "The answer says it saved, but nothing was saved."
        elif any(change.what in ("saved", "superseded", "touched") for change in self.changes):
            said = "Not all of it was saved."
        else:
            said = "Nothing was saved."
        key = view.hint("save", "saves")
        head = join((said, "$warning"), "  ", (f"{key}:", "bold $act"))
        quote = label(f"“{short(one_line(self.missing.sentence), 300)}”")
        gap = " " if head.cell_length + quote.cell_length + 5 <= width else "\n"
        return [
            Line(line, "save")
            for line in wrapped(join(head, gap, quote), width, first=("  ▲ ", "$warning"), rest="    ")
        ]


def _tool_part(row: ToolRow) -> ToolPart:
    return ToolPart(
        row.call_id, row.name, dict(row.arguments), row.rescued, False, row.ok, clean(row.result), one_line(row.summary)
    )


def from_history(entry: TranscriptEntry) -> Entry:
    """The entry that shows one message of the history."""
    if entry.role == "user":
        return UserEntry(entry.message_id, entry.text, entry.created_at)
    if entry.role == "assistant":
        return AnswerEntry.of(entry)
    return NoticeEntry(f"notice:{entry.message_id}", "info", entry.text)
