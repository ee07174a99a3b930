"""The inspector: everything known of one item, its score as bars that add up, and the keys that change it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.views import ActionResult, Inspection
from tui_agent.memory.types import Term
from tui_agent.tui.actions import bindings
from tui_agent.tui.keymap import shown
from tui_agent.tui.layout import Lines, join, label, text, wrapped
from tui_agent.tui.screens.panel import Panel, Question
from tui_agent.tui.text import bar, fit, one_line, plural, short
from tui_agent.tui.widgets.base import Plain

_SAME = {
    "unpin": "pin",
    "delete_forever": "delete",
    "edit": "correct",
    "not_now": "put_away",
    "set_expiry": "until",
    "demote": "promote",
}
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
            block = block.replace("━", "╌").replace("╸", "╌")
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
            lines += [Content(""), join(("history, newest first", "bold $said"))]
            for entry in item.history:
                lines += wrapped(label(entry), width, first=("· ", "$faint"), rest="  ")
        if item.log:
            lines += [Content(""), join(("changes, newest first", "bold $said"))]
            for entry in item.log:
                lines += wrapped(label(entry), width, first=("· ", "$faint"), rest="  ")
        return lines


class InspectorScreen(Panel[None]):
    """
    | Key | What |
    | :- | :- |
    | p, f, r, t | pin, put away, bring back, touch |
    | c, e, x, D | confirm, correct, expire, delete forever |
    | h, U, P | set until when, undo the correction, keep for all projects |
    | a, n | approve, reject a proposal |
    | v | recall it again for every topic |
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
        self.host.fetch(self._found(), self._take, owner=self)

    async def _found(self) -> Inspection | LookupError:
        try:
            return await self.session.inspect(self.ref)
        except LookupError as error:
            return error

    def _take(self, found: Inspection | LookupError) -> None:
        if isinstance(found, LookupError):  # taken back or deleted since the row was drawn
            self.host.say(one_line(found), "warning")
            self.dismiss(None)
        else:
            self.show(found)

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

    def action_allow(self) -> None:
        self._do("allow")

    def action_undo_correction(self) -> None:
        self._do("undo_correction", close=True)

    def action_promote(self) -> None:
        everywhere = self.item is not None and "demote" in self.item.actions
        self._do("demote" if everywhere else "promote")

    def _again(self, result: ActionResult) -> None:
        if not result.ok or not self.is_attached:
            return
        if result.id and self.ref.startswith("fact:"):
            self.ref = f"fact:{result.id}"  # a correction is a new row
        self.load()

    def action_correct(self) -> None:
        if self.item is not None:
            correct(self, self.item, self._again)

    def action_until(self) -> None:
        if self.item is not None:
            set_expiry(self, self.item, self._again)

    def action_delete(self) -> None:
        if self.item is not None:
            delete_forever(self, self.item, lambda result: self.dismiss(None) if result.ok else None)


Then = Callable[[ActionResult], object]


def correct(panel: Panel[Any], item: Inspection, done: Then) -> None:
    """Ask for the new text of an item and correct it."""

    def answered(answer: str | None) -> None:
        if answer is not None and answer.strip() and answer.strip() != item.text.strip():
            panel.host.act(panel.session.correct(item.ref, answer.strip()), done)

    kept = "It is a line of your notes." if item.ref.startswith("note:") else "The old text stays in the history."
    panel.app.push_screen(Question("Correct", kept, value=one_line(item.text)), answered)


def set_expiry(panel: Panel[Any], item: Inspection, done: Then) -> None:
    """Ask until when a fact holds."""

    def answered(answer: str | None) -> None:
        if answer is not None and answer.strip():
            panel.host.act(panel.session.set_expiry(item.ref, answer.strip()), done)

    words = (
        f"“{short(one_line(item.text), 200)}”\n\nA date (2027-01-31), a time from now (7 days, 3 months), or never. "
        "From then on it is no longer recalled."
    )
    question = Question("Until when does it hold?", words, placeholder="2027-01-31, 7 days, never")
    panel.app.push_screen(question, answered)


def delete_forever(panel: Panel[Any], item: Inspection, done: Then) -> None:
    """Ask, and destroy an item with everything it replaced."""

    def answered(answer: str | None) -> None:
        if answer is not None:
            panel.host.act(panel.session.delete_forever(item.ref), done)

    older = max(0, len(item.history) - 1)
    words = [
        f"“{short(one_line(item.text), 300)}”\n",
        "It is destroyed in memory, files, indexes, past prompts and backups. "
        "This cannot be undone. What lies in git or outside our folders is not reached.",
    ]
    if older:
        words.append(f"\nWith it goes the whole chain: {plural(older, 'statement')} it is connected to.")
    if "undo_correction" in item.actions:
        key = shown(panel.host.keymap.keys("inspector.undo_correction"))
        words.append(f"To go back to what it replaced instead, undo the correction ({key} in the inspector).")
    title = "Delete the whole chain forever?" if older else "Delete forever?"
    panel.app.push_screen(Question(title, "\n".join(words), must="delete"), answered)
