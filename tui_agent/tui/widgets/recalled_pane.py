"""What fed an answer: rank, score, age, and what just missed."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.memory.types import RecalledItem, RecallRecord
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import join, label, spread, wrapped
from tui_agent.tui.text import clock, day, days_since, decimals, one_line, short
from tui_agent.tui.widgets.panes import Pane, PaneList, PaneTitle
from tui_agent.tui.widgets.rows import Empty, Heading, Row

STALE_DAYS = 90
WHY_NOT = {
    "threshold": "below the threshold",
    "budget": "no room in the budget",
    "visible": "already in view of the model",
    "superseded": "replaced by a newer one",
    "cooldown": "put away just now",
    "masked": "left out on request",
    "topic": "never for this topic",
    "put away": "put away for this session",
}
_WHY_NOT_SHORT = {"threshold": "too low", "budget": "no room", "visible": "in view", "superseded": "replaced",
                  "cooldown": "resting", "masked": "left out", "topic": "never here"}  # fmt: skip
_LEAST_SHOWN = 0.005  # of a term's value: what is less reads as nothing
_TERMS = {"importance": "weight", "freshness": "fresh", "similarity": "meaning", "lexical": "words"}


def term_line(item: RecalledItem) -> str:
    """``words .44  meaning .29``: the score terms on one line, without those that say nothing."""
    telling = [term for term in item.terms if abs(term.value) >= _LEAST_SHOWN] or item.terms
    return "  ".join(
        f"{_TERMS.get(term.name, one_line(term.name))} {decimals(term.value).replace('0.', '.', 1)}" for term in telling
    )


class RecalledRow(Row):
    """Rank, score and text; kind, date and confirmation; the terms. Near misses take one line with why not."""

    def __init__(self, item: RecalledItem, number: int) -> None:
        super().__init__(f"{item.store}:{item.id}")
        self.item = item
        self.number = number
        self.sent = item.status == "sent"

    def lines(self, width: int) -> list[Content]:
        item = self.item
        if not self.sent:
            head = join(("– ", "$faint"), (f"{decimals(item.score)}  ", "$quiet"))
            words = WHY_NOT if width >= 52 else _WHY_NOT_SHORT
            why = Content.styled(words.get(item.status, one_line(item.status)), "$quiet")
            return [spread(join(head, label(item.text, "$quiet")), why, width)]
        head = join((f"{self.number} ", "$quiet"), (f"{decimals(item.score)}  ", "bold"))
        lines = wrapped(label(item.text), width, first=head, rest=" " * head.cell_length, limit=3)
        pad = " " * head.cell_length
        lines.append(join(pad, self._facts(width - len(pad))))
        if item.terms:
            lines.append(Content.styled(pad + short(term_line(item), width - len(pad)), "$faint"))
        return lines

    def _facts(self, width: int) -> Content:
        item = self.item
        facts = [one_line(item.kind or item.store), day(item.created_at)]
        unconfirmed = days_since(item.confirmed_at or item.created_at)
        stale = unconfirmed is not None and unconfirmed > STALE_DAYS
        if item.confirmed_at and item.confirmed_at != item.created_at:
            facts.append(f"confirmed {day(item.confirmed_at)}")
        content = Content.styled(" · ".join(fact for fact in facts if fact), "$quiet")
        if stale:
            words = f"▲ {unconfirmed} days unconfirmed"
            words = words if content.cell_length + len(words) + 2 <= width else f"▲ {unconfirmed} days"
            content = spread(content, Content.styled(words, "$warning"), width)
        return content.truncate(width, ellipsis=True)


class RecalledList(PaneList):
    """
    | Key | What |
    | :- | :- |
    | p | pin |
    | c | confirm |
    | f | not now |
    | w | why |
    """

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("recalled"))

    def action_confirm(self) -> None:
        self.ask("confirm")

    def action_why(self) -> None:
        self.ask("why")


class RecalledPane(Pane):
    """The items that fed the selected answer, in rank order, then those that just missed and why."""

    kind = "recalled"
    empty = "Nothing yet. What is recalled from memory for an answer appears here, with its score and age."

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.record: RecallRecord | None = None
        self.answered_at = ""
        self.has_answer = False

    def make_list(self) -> PaneList:
        return RecalledList()

    def show(self, record: RecallRecord | None, answered_at: str, *, has_answer: bool) -> None:
        """Show the record of an answer given at ``answered_at``."""
        another = record is not self.record
        self.record, self.answered_at, self.has_answer = record, answered_at, has_answer
        rows: list[Row] = []
        if record is not None:
            seen: set[str] = set()
            for number, item in enumerate(record.items, 1):
                rows.append(RecalledRow(item, item.rank or number))
            if record.near:
                rows.append(Heading("near", Content.styled("just missed", "$faint")))
                rows.extend(RecalledRow(item, 0) for item in record.near)
            rows = [row for row in rows if not (row.key in seen or seen.add(row.key))]  # type: ignore[func-returns-value]
        nothing = "Nothing was recalled for this answer: no memory was close enough to the question."
        self.list.show(rows or [Empty(nothing if has_answer else self.empty)], keep=not another)
        self.refresh_title()

    def refresh_title(self) -> None:
        when = clock(self.answered_at)
        record = self.record
        took = f"{record.took_ms:.0f} ms" if record is not None and record.took_ms else ""
        facts = (f"for the answer of {when}", f"for {when}") if when and self.has_answer else ()
        self.title.update(PaneTitle("RECALLED", facts, Content.styled(took, "$quiet")))
