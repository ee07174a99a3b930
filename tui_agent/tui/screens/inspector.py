"""The inspector: everything known of one item, its score as bars that add up, and the keys that change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.views import ActionResult, Inspection
from tui_agent.memory.types import RecalledItem, RecallRecord, Term
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import Lines, join, label, text, wrapped
from tui_agent.tui.screens.panel import Panel, Question
from tui_agent.tui.text import bar, clock, day, fit, one_line, short, tail_id
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.recalled_pane import WHY_NOT

_SAME = {"unpin": "pin", "delete_forever": "delete", "edit": "correct", "not_now": "put_away"}
_ALWAYS = {"close", "copy", "undo"}


def score_lines(terms: Sequence[Term], total: float | None, width: int) -> list[Content]:
    """Score terms as bars on one scale, and their sum; a minus is a minus and a lighter bar."""
    if not terms:
        return []
    longest = max(max(abs(term.value) for term in terms), 1e-9)
    names = min(16, max(len(one_line(term.name)) for term in terms))
    room = max(8, min(24, width - names - 34))
    lines = []
    for term in terms:
        block = bar(abs(term.value), longest, room)
        if term.value < 0:
            block = block.replace("█", "░")
        lines.append(
            join(
                (fit(one_line(term.name), names) + "  ", ""),
                (block, "$meter" if term.value >= 0 else "$warning"),
                (f" {term.value:+7.3f}  ", "bold"),
                label(term.note, "$quiet"),
            ).truncate(width, ellipsis=True)
        )
    shown_total = sum(term.value for term in terms) if total is None else total
    lines.append(join((" " * (names + 2) + "─" * (room + 8), "$faint")))
    lines.append(join((fit("score", names) + "  " + " " * room, ""), (f" {shown_total:7.3f}", "bold $said")))
    return lines


class InspectionLines(Lines):
    """An inspection, laid out."""

    def __init__(self, item: Inspection) -> None:
        super().__init__()
        self.item = item

    def lines(self, width: int) -> list[Content]:
        item = self.item
        lines = wrapped(text(item.text), width)
        if item.quote:
            lines += [Content(""), *wrapped(text(f"“{item.quote.strip()}”", "italic"), width, first="  ", rest="  ")]
        if item.source:
            prefix = ("  from " if item.quote else "from ", "$quiet")
            if not item.quote:
                lines.append(Content(""))
            lines += wrapped(label(item.source, "$quiet"), width, first=prefix, rest="       ")
        if item.why:
            lines += [Content(""), *wrapped(text(item.why, "$said"), width)]
        if item.terms:
            lines += [Content(""), *score_lines(item.terms, item.total, width)]
        if item.fields:
            names = min(20, max(len(one_line(row.label)) for row in item.fields))
            lines.append(Content(""))
            for row in item.fields:
                head = (fit(one_line(row.label), names) + "  ", "$quiet")
                lines += wrapped(text(row.value), width, first=head, rest=" " * (names + 2))
        if item.history:
            lines += [Content(""), join(("history", "bold $said"))]
            for entry in item.history:
                lines += wrapped(label(entry), width, first=("· ", "$faint"), rest="  ")
        return lines


class InspectorScreen(Panel[None]):
    """
    | Key | What |
    | :- | :- |
    | p, f, r, t | pin, put away, bring back, touch |
    | c, e, x, D | confirm, correct, expire, delete forever |
    | a, n | approve, reject a proposal |
    """

    kind = "inspector"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("inspector"))

    def __init__(self, ref: str) -> None:
        super().__init__()
        self.ref = ref
        self.item: Inspection | None = None

    def on_mount(self) -> None:
        self.set_title("…")
        self.load()

    def load(self) -> None:
        """Fetch the item again."""
        self.host.fetch(self.session.inspect(self.ref), self.show, owner=self)

    def show(self, item: Inspection) -> None:
        self.item = item
        self.set_title(item.title or "Item", "◆ pinned" if item.pinned else "")
        self.query_one("#page", Plain).update(InspectionLines(item))
        self.show_keys()

    @property
    def allowed(self) -> set[str]:
        """The action names of the keys that work on this item."""
        if self.item is None:
            return {"close"}
        names = (one_line(name).lower().replace(" ", "_") for name in self.item.actions)
        return _ALWAYS | {_SAME.get(name, name) for name in names}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        ours = {binding.action for binding in bindings(self.kind)}
        return action not in ours or action in self.allowed

    def _do(self, verb: str, *, close: bool = False) -> None:
        def done(result: ActionResult) -> None:
            if close and result.ok:
                self.dismiss(None)
            elif result.ok and self.is_attached:
                self.load()

        id = self.ref.partition(":")[2]
        self.host.act(getattr(self.session, verb)(id if verb in ("approve", "reject") else self.ref), done)

    def action_pin(self) -> None:
        self._do("unpin" if self.item is not None and self.item.pinned else "pin")

    def action_put_away(self) -> None:
        self._do("put_away", close=True)

    def action_bring_back(self) -> None:
        self._do("bring_back", close=True)

    def action_touch(self) -> None:
        self._do("touch")

    def action_confirm(self) -> None:
        self._do("confirm")

    def action_expire(self) -> None:
        self._do("expire")

    def action_approve(self) -> None:
        self._do("approve", close=True)

    def action_reject(self) -> None:
        self._do("reject", close=True)

    def action_undo(self) -> None:
        self.host.act(self.session.undo(), lambda result: self.load() if result.ok and self.is_attached else None)

    def action_copy(self) -> None:
        if self.item is not None:
            self.host.copy(self.item.text, "the text")

    def action_correct(self) -> None:
        if self.item is not None:
            correct(self, self.ref, self.item.text, self.load)

    def action_delete(self) -> None:
        if self.item is None:
            return

        def answered(answer: str | None) -> None:
            if answer is not None:
                self._do("delete_forever", close=True)

        words = (
            f"“{short(one_line(self.item.text), 300)}”\n\n"
            "It is destroyed in memory, files, indexes, past prompts and backups. "
            "This cannot be undone. What lies in git or outside our folders is not reached."
        )
        self.app.push_screen(Question("Delete forever?", words, must="delete"), answered)


def correct(panel: Panel[None], ref: str, current: str, done: Callable[[], None]) -> None:
    """Ask for the new text of an item and correct it."""

    def answered(answer: str | None) -> None:
        if answer is not None and answer.strip() and answer.strip() != current.strip():
            panel.host.act(
                panel.session.correct(ref, answer.strip()), lambda result: done() if callable(done) else None
            )

    panel.app.push_screen(Question("Correct", "The old text stays in the history.", value=one_line(current)), answered)


class WhyLines(Lines):
    """Every item of a recall with its terms as bars, then what just missed."""

    def __init__(self, record: RecallRecord) -> None:
        super().__init__()
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
        lines.append(join(("how    ", "$quiet"), (" · ".join(how), "$quiet")))
        for number, item in enumerate(record.items, 1):
            lines += [Content(""), *self._item(item, f"{item.rank or number}", width)]
        if record.near:
            lines += [Content(""), join(("just missed", "bold $said"))]
            for item in record.near:
                head = join((f"{item.score:.2f}  ", "$quiet"))
                why = f"  {WHY_NOT.get(item.status, one_line(item.status))}"
                lines += wrapped(
                    join(label(item.text), (why, "$quiet")), width, first=head, rest=" " * head.cell_length
                )
        return lines

    def _item(self, item: RecalledItem, rank: str, width: int) -> list[Content]:
        lines = wrapped(text(item.text), width, first=(f"{rank}  ", "bold $said"), rest="   ")
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
        return lines + [join("   ", line) for line in score_lines(item.terms, item.score, width - 3)]


class WhyScreen(Panel[None]):
    """Why each item was recalled for one answer."""

    kind = "page"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("page"))

    def __init__(self, record: RecallRecord, answered_at: str) -> None:
        super().__init__()
        self.record = record
        self.answered_at = answered_at

    def on_mount(self) -> None:
        at = clock(self.answered_at)
        self.set_title("Why these were recalled", f"for the answer of {at}" if at else "")
        self.query_one("#page", Plain).update(WhyLines(self.record))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "rebuild"

    def action_copy(self) -> None:
        lines = WhyLines(self.record).lines(100)
        self.host.copy("\n".join(line.plain.rstrip() for line in lines), "the explanation")
