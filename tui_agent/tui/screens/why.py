"""Why each item was recalled for an answer, with the keys that change what happens next time; and the same question
asked without one of them, both answers beside each other."""

from __future__ import annotations

import re
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widgets import OptionList

from tui_agent.agent.views import Comparison, Inspection
from tui_agent.memory.types import RecalledItem, RecallRecord
from tui_agent.tui.actions import bindings
from tui_agent.tui.answer import AnswerEntry
from tui_agent.tui.layout import Lines, join, label, text, wrapped
from tui_agent.tui.screens.inspector import InspectorScreen, correct, score_lines
from tui_agent.tui.screens.panel import Panel
from tui_agent.tui.text import clock, day, decimals, one_line, plural, short, tail_id
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.recalled_pane import WHY_NOT
from tui_agent.tui.widgets.rows import Heading, Row, RowList

_MESSAGE = re.compile(r"\bmessage ([0-9a-z]{26})\b")
_SIDE_BY_SIDE = 76


class _Asked(Row):
    """The question, and how recall went."""

    selectable = False

    def __init__(self, record: RecallRecord) -> None:
        super().__init__("asked")
        self.record = record

    def lines(self, width: int) -> list[Content]:
        record = self.record
        lines = wrapped(label(record.query), width, first=("asked  ", "$quiet"), rest="       ")
        if record.goal:
            lines += wrapped(label(record.goal), width, first=("goal   ", "$quiet"), rest="       ")
        how = [f"threshold {record.threshold:.2f}", *map(one_line, record.channels)]
        if record.took_ms:
            how.append(f"{record.took_ms:.0f} ms")
        if record.rules_hash:
            how.append(f"rules {one_line(record.rules_hash)[:8]}")
        return [*lines, join(("how    ", "$quiet"), (" · ".join(how), "$quiet"))]


class WhyRow(Row):
    """One item: text, facts, quote, source and its terms as bars; of what just missed, one line and why."""

    def __init__(self, item: RecalledItem, number: int) -> None:
        super().__init__(f"{item.store}:{item.id}")
        self.item = item
        self.number = number
        self.sent = item.status == "sent"

    def lines(self, width: int) -> list[Content]:
        item = self.item
        if not self.sent:
            head = join((f"{decimals(item.score)}  ", "$quiet"))
            why = f"  {WHY_NOT.get(item.status, one_line(item.status))}"
            return wrapped(join(label(item.text), (why, "$quiet")), width, first=head, rest=" " * head.cell_length)
        lines = wrapped(text(item.text), width, first=(f"{self.number}  ", "bold $said"), rest="   ")
        kind = one_line(item.kind)
        facts = [kind if kind != item.store else "", f"{item.store} {tail_id(one_line(item.id))}", day(item.created_at)]
        if item.confirmed_at:
            facts.append(f"confirmed {day(item.confirmed_at)}")
        if item.tokens:
            facts.append(f"{item.tokens} tokens")
        lines += wrapped(label(" · ".join(fact for fact in facts if fact), "$quiet"), width, first="   ", rest="   ")
        if item.quote:
            lines += wrapped(label(f"“{item.quote}”", "italic $quiet"), width, first="   ", rest="   ")
        if item.source:
            lines += wrapped(label(item.source, "$quiet"), width, first=("   from ", "$quiet"), rest="   ")
        return [*lines, *(join("   ", line) for line in score_lines(item.terms, item.score, width - 3)), Content("")]


class _Rest(Row):
    """What else the request carried, so that nothing in it is unexplained."""

    selectable = False

    def __init__(self, record: RecallRecord) -> None:
        super().__init__("rest")
        self.extra = record.extra

    def lines(self, width: int) -> list[Content]:
        extra = self.extra
        notes, skills = list(extra.get("notes", ())), list(extra.get("skills", ()))
        also = [f"skill {skill['name']}" for skill in skills]
        also += [f"note: {short(one_line(note), 60)}" for note in notes]
        also += [f"the date {extra['date']}"] if extra.get("date") else []
        in_view = [ref for ref in extra.get("in_view", ()) if not str(ref).startswith(("message:", "listed:"))]
        named = extra.get("put_away") or {"lines": (), "more": 0}
        lines_of = "; ".join(one_line(str(one["line"])) for one in named["lines"])
        rows = [
            ("also sent", "; ".join(also)),
            ("put away, named", f"{lines_of}; +{named['more']} more" if lines_of else ""),
            ("in view already", f"{plural(len(in_view), 'item')} of earlier messages" if in_view else ""),
            ("fixed part", ", ".join(str(part["name"]) for part in extra.get("fixed", ()))),
        ]
        lines = []
        for name, value in rows:
            if value:
                lines += wrapped(label(value, "$quiet"), width, first=(f"{name:<16}", "$faint"), rest=" " * 16)
        return lines


def why_rows(record: RecallRecord) -> list[Row]:
    """The rows of the explanation; every item once."""
    rows: list[Row] = [_Asked(record), Heading("gap", Content(""))]
    rows += [WhyRow(item, item.rank or number) for number, item in enumerate(record.items, 1)]
    if not record.items:
        rows.append(Heading("none", Content.styled("Nothing was sent.", "$quiet")))
    if record.near:
        rows.append(Heading("near", join(("just missed", "bold $said"))))
        rows += [WhyRow(item, 0) for item in record.near]
    rest = _Rest(record)
    if rest.lines(80):
        rows += [Heading("gap2", Content("")), rest]
    seen: set[str] = set()
    return [row for row in rows if not (row.key in seen or seen.add(row.key))]  # type: ignore[func-returns-value]


class WhyScreen(Panel[None]):
    """Why each item was recalled for one answer.

    | Key | What |
    | :- | :- |
    | c, x, f, p | wrong, outdated, not now, pin |
    | n | never recall it for this topic |
    | g | go to the message it is from |
    | a | ask the question again without it |
    """

    kind = "why"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("why"))

    def __init__(self, record: RecallRecord, answered_at: str, message_id: str = "") -> None:
        super().__init__()
        self.record = record
        self.answered_at = answered_at
        self.message_id = message_id

    def body(self) -> ComposeResult:
        yield RowList(id="list")

    def on_mount(self) -> None:
        self.add_class("-tall")
        at = clock(self.answered_at)
        self.set_title("Why these were recalled", f"for the answer of {at}" if at else "")
        self.list.show(why_rows(self.record), keep=False)
        self.list.scroll_home(animate=False)
        self.list.focus()
        self.show_keys()

    @property
    def list(self) -> RowList:
        return self.query_one("#list", RowList)

    @property
    def item(self) -> RecalledItem | None:
        """The highlighted item."""
        row = self.list.current
        return row.item if isinstance(row, WhyRow) else None

    @property
    def ref(self) -> str:
        return self.list.highlighted_key if self.item is not None else ""

    @on(OptionList.OptionSelected, "#list")
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.action_inspect()

    def action_down(self) -> None:
        self.list.action_cursor_down()

    def action_up(self) -> None:
        self.list.action_cursor_up()

    def action_inspect(self) -> None:
        if self.ref:
            self.app.push_screen(InspectorScreen(self.ref))

    def _fact(self) -> RecalledItem | None:
        item = self.item
        if item is not None and item.store != "fact":
            self.host.say("Only facts can be corrected or expire; this is a piece of the working memory or a file.")
            return None
        return item

    def action_wrong(self) -> None:
        item = self._fact()
        if item is not None:
            correct(self, Inspection(self.ref, item.kind, item.text), lambda result: None)

    def action_outdated(self) -> None:
        if self._fact() is not None:
            self.host.act(self.session.expire(self.ref))

    def action_put_away(self) -> None:
        if self.ref:
            self.host.act(self.session.put_away(self.ref))

    def action_pin(self) -> None:
        item = self.item
        if item is not None:
            pinned = any(term.name == "pin" for term in item.terms)
            self.host.act(self.session.unpin(self.ref) if pinned else self.session.pin(self.ref))

    def action_never(self) -> None:
        if self.ref:
            self.host.act(self.session.never_for_topic(self.ref, self.record.query))

    def action_quote(self) -> None:
        """Go to the message an item is from: in the conversation when it is there, else in a panel."""
        item = self.item
        found = _MESSAGE.search(item.source) if item is not None else None
        if item is not None and item.store == "message":
            message_id = item.id
        elif found is not None:
            message_id = found[1]
        else:
            self.host.say("It is not from a message of this project.")
            return
        if self.host.chat.transcript.go_to(message_id):
            self.dismiss(None)
        else:
            self.app.push_screen(InspectorScreen(f"message:{message_id}"))

    def action_without(self) -> None:
        item = self.item
        if item is None:
            return
        if not self.message_id:
            self.host.say("Wait for the end of the answer, then ask again without it.")
        elif not self.sent(item):
            self.host.say("It was not sent for this answer.")
        else:
            answer = self.host.chat.transcript.answer(self.message_id)
            self.app.push_screen(CompareScreen(self.message_id, self.record.query, item, answer))

    @staticmethod
    def sent(item: RecalledItem) -> bool:
        """Whether the model saw it: with this message, or with one before."""
        return item.status in ("sent", "visible")

    def action_undo(self) -> None:
        self.host.act(self.session.undo())

    def action_copy(self) -> None:
        lines = [line for row in why_rows(self.record) for line in row.lines(100)]
        self.host.copy("\n".join(line.plain.rstrip() for line in lines), "the explanation")


# -- ask again without this ------------------------------------------------------------------------------------------


class CompareLines(Lines):
    """Two answers: beside each other where there is room, else one above the other."""

    def __init__(self, question: str, item: str, before: str, after: str, state: str, notes: tuple[str, ...]) -> None:
        super().__init__()
        self.question, self.item = question, item
        self.before, self.after = before, after
        self.state, self.notes = state, notes

    def lines(self, width: int) -> list[Content]:
        lines = wrapped(label(self.question), width, first=("asked    ", "$quiet"), rest=" " * 9)
        lines += wrapped(label(self.item), width, first=("without  ", "$quiet"), rest=" " * 9)
        lines.append(Content(""))
        heads = (join(("with it", "bold $said")), join(("without it", "bold $said"), (f"  {self.state}", "$quiet")))
        if width >= _SIDE_BY_SIDE:
            column = (width - 3) // 2
            left = [heads[0], *wrapped(text(self.before), column)]
            right = [heads[1], *wrapped(text(self.after), width - 3 - column)]
            for number in range(max(len(left), len(right))):
                one = left[number] if number < len(left) else Content("")
                two = right[number] if number < len(right) else Content("")
                lines.append(join(one.truncate(column, pad=True), (" │ ", "$faint"), two))
        else:
            lines += [heads[0], *wrapped(text(self.before), width), Content("")]
            lines += [heads[1], *wrapped(text(self.after), width)]
        if self.notes:
            lines.append(Content(""))
            for note in self.notes:
                lines += wrapped(label(note, "$quiet"), width, first=("· ", "$faint"), rest="  ")
        return lines


class CompareScreen(Panel[None]):
    """The same question without an item; nothing of it is stored or sent again."""

    kind = "compare"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("compare"))

    def __init__(self, message_id: str, question: str, item: RecalledItem, answer: AnswerEntry | None) -> None:
        super().__init__()
        self.message_id = message_id
        self.question = question
        self.item = item
        self.before = answer.source if answer is not None else ""
        self.so_far = ""
        self.result: Comparison | None = None
        self._frames: Timer | None = None

    def on_mount(self) -> None:
        self.add_class("-tall")
        self.set_title("The same question without it", "not part of the conversation")
        self.show_keys()
        self.draw()
        self._frames = self.set_interval(0.15, self.draw)
        self.host.fetch(self._ask(), self._done, owner=self)

    async def _ask(self) -> Comparison:
        ref = f"{self.item.store}:{self.item.id}"
        try:
            return await self.session.ask_without(self.message_id, (ref,), self._heard)
        except Exception as error:
            return Comparison(self.message_id, "", self.before, self.so_far, (ref,), (), "failed", str(error))

    def _heard(self, so_far: str) -> None:
        self.so_far = so_far

    def _done(self, result: Comparison) -> None:
        if self._frames is not None:
            self._frames.stop()
        self.result = result
        self.so_far = result.after
        self.before = self.before or result.before
        self.draw()
        self.show_keys()

    def draw(self) -> None:
        """Show what there is of the second answer."""
        result = self.result
        state = "asking …"
        notes: tuple[str, ...] = ()
        if result is not None:
            state = {"answered": "", "cut_off": "cut off", "stopped": "stopped here"}.get(result.status, "")
            notes = (*result.notes, *([result.error] if result.error else []))
        page = CompareLines(self.question, self.item.text, self.before, self.so_far, state, notes)
        self.query_one("#page", Plain).update(page)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "stop" or self.result is None

    def action_stop(self) -> None:
        self.session.stop_comparing()

    def action_close(self) -> None:
        self.session.stop_comparing()
        self.dismiss(None)

    def action_copy(self) -> None:
        self.host.copy(f"With it:\n{self.before}\n\nWithout it:\n{self.so_far}", "both answers")
