"""The review: what nobody has confirmed for long, what is new, what waits, what is unused or better looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.style import Style
from textual.widgets import Input

from tui_agent.agent.review_views import ReviewView
from tui_agent.agent.views import Inspection
from tui_agent.tui.actions import bindings
from tui_agent.tui.layout import Lines, join, label, spread
from tui_agent.tui.screens.fact_keys import FACT_KEYS, WAITING_KEYS, FactKeys
from tui_agent.tui.screens.lists import ListPanel
from tui_agent.tui.text import one_line, plural
from tui_agent.tui.widgets.bars import KeyBar
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.rows import Empty, Row, RowList


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the review: ``name`` is a field of the view, ``about`` what it holds, ``empty`` what it says when it
    holds nothing."""

    name: str
    title: str
    about: str
    empty: str


PARTS = (
    Part(
        "queue",
        "old",
        "Not confirmed for 90 days. Check each: it still holds (confirm), or it changed (correct).",
        "Nothing is old. Facts that nobody confirms for 90 days come up here.",
    ),
    Part(
        "new",
        "new today",
        "Remembered in the last day. Read what is not in your own words twice.",
        "Nothing was remembered in the last day.",
    ),
    Part(
        "waiting",
        "waiting",
        "Not your own words, so not remembered until you say yes.",
        "Nothing waits. Ideas of the model and text from files and tools come here first.",
    ),
    Part(
        "unused",
        "unused",
        "Not recalled for six months. Let go what you no longer need.",
        "Everything was recalled in the last six months, or is younger.",
    ),
    Part(
        "fetchable",
        "look up",
        "Counts, statuses, dates, versions: a tool can fetch them when needed, and they go stale here.",
        "Nothing here that a tool could fetch.",
    ),
    Part(
        "by_hand",
        "by hand",
        "Lines you wrote into memory files, not looked at for a month: still right (confirm), or changed (correct).",
        "No line that you wrote by hand has gone a month without a look.",
    ),
)


class PartsBar(Lines):
    """``1 old 3   2 new today 2   …``, the part that is shown in bold, a click goes there."""

    def __init__(self, counts: dict[str, str], active: str) -> None:
        super().__init__()
        self.counts, self.active = counts, active

    def lines(self, width: int) -> list[Content]:
        pieces: list[Content] = []
        for number, part in enumerate(PARTS, 1):
            on = part.name == self.active
            piece = join(
                (f"{number} ", "$act"),
                (part.title, "bold $text underline" if on else "$quiet"),
                (f" {self.counts.get(part.name, '')}", "bold $text" if on else "$quiet"),
            )
            pieces.append(piece.stylize(Style.from_meta({"do": f"review.part({number - 1})"})))
        gap = "   " if sum(piece.cell_length for piece in pieces) + 12 <= width else "  "
        line = Content(gap).join(pieces)
        if line.cell_length <= width:
            return [line]
        first = Content(gap).join(pieces[:3])
        return [first.truncate(width, ellipsis=True), Content(gap).join(pieces[3:]).truncate(width, ellipsis=True)]


class PartsLine(Plain):
    """The parts with their counts."""

    DEFAULT_CSS = "PartsLine { height: auto; padding: 0 1; margin-top: 1; }"

    def on_click(self, event: events.Click) -> None:
        action = event.style.meta.get("do")
        if isinstance(action, str):
            event.stop()
            self.post_message(KeyBar.Pressed(action))


class ReviewRow(Row):
    """A fact with its last confirmation, and below it why it is here and where it is from."""

    def __init__(self, item: Inspection, *, waiting: bool) -> None:
        super().__init__(item.ref)
        self.item = item
        self.waiting = waiting

    def lines(self, width: int) -> list[Content]:
        item = self.item
        facts = {one_line(row.label).lower(): one_line(row.value) for row in item.fields}
        mark = ("? ", "$warning") if self.waiting else ("◆ ", "$act") if item.pinned else ("  ", "")
        kind = facts.get("kind", "")
        right = Content.styled("" if self.waiting else kind, "$quiet")
        first = spread(join(mark, label(item.text)), right, width)
        source = one_line(item.source)
        away = "not your words" in source
        why = join(("  ", ""), (one_line(item.why), "$said"), (" · ", "$faint") if source and item.why else "")
        second = join(why, (source, "$warning" if away else "$quiet"))
        check = facts.get("to check", "")
        third = [join(("  to check: ", "$faint"), (check, "$quiet"))] if check and check not in item.why else []
        return [first, *(line.truncate(width, ellipsis=True) for line in (second, *third))]


class ReviewScreen(ListPanel[None], FactKeys[None]):
    """
    | Key | What |
    | :- | :- |
    | tab, 1 to 6 | the parts: old, new today, waiting, unused, look up, by hand |
    | c, e, x, h, D | confirm, correct, expire, set until when, delete forever |
    | a, n | approve, reject what waits |
    | enter, u | inspect, undo |
    """

    kind = "review"
    DEFAULT_CSS = "ReviewScreen #about { padding: 0 1; margin-top: 1; color: $quiet; }"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("review"))

    def __init__(self, part: str = "") -> None:
        super().__init__()
        self.view = ReviewView()
        self.part = part or PARTS[0].name
        self._chosen = bool(part)
        self._loaded = False

    def body(self) -> ComposeResult:
        yield PartsLine(id="parts")
        yield Plain(id="about")
        yield Input(placeholder="search", select_on_focus=False, id="search")
        yield RowList(id="list")

    def on_mount(self) -> None:
        self.set_title("Review")
        self.load()

    def load(self) -> None:
        self.host.fetch(self.session.review(seen=True), self.show, owner=self)

    def show(self, view: ReviewView) -> None:
        """Show what the session found; at first the first part that holds something."""
        self.view = view
        if not self._loaded and not self._chosen:
            self.part = next((part.name for part in PARTS if self._items(part.name)), self.part)
        self._loaded = True
        self.set_title("Review", f"{view.live:,} live of {plural(view.rows, 'row')}")
        self.search_changed()
        self.host.reviews(len(view.waiting))

    def _items(self, name: str) -> tuple[Inspection, ...]:
        items: tuple[Inspection, ...] = getattr(self.view, name)
        return items

    def search_changed(self) -> None:
        """Show the part anew."""
        part = next(part for part in PARTS if part.name == self.part)
        counts = {one.name: f"{len(self._items(one.name))}" for one in PARTS}
        if self.view.queue_total > len(self.view.queue):
            counts["queue"] = f"{len(self.view.queue)} of {self.view.queue_total}"
        if self.view.by_hand_total > len(self.view.by_hand):
            counts["by_hand"] = f"{len(self.view.by_hand)} of {self.view.by_hand_total}"
        self.query_one("#parts", PartsLine).update(PartsBar(counts, part.name))
        needle = self.words.casefold()
        found = [item for item in self._items(part.name) if needle in f"{item.text} {item.source}".casefold()]
        rows: list[Row] = [ReviewRow(item, waiting=part.name == "waiting") for item in found]
        nothing = f"Nothing here contains “{self.words}”." if needle else part.empty
        # On a small terminal the rows need the room.
        about = part.about if rows and self.size.height >= 24 else ""
        if not self.view.healthy and self.view.health:
            about = f"{about} {self.view.health}".strip()
        self.query_one("#about", Plain).update(about)
        self.query_one("#about", Plain).display = bool(about)
        self.list.show(rows or [Empty(nothing)])
        self.show_keys()

    def chosen(self, row: Row) -> None:
        self.open_item(row.key)

    def current_item(self) -> tuple[Inspection, bool] | None:
        row = self.list.current
        return (row.item, row.waiting) if isinstance(row, ReviewRow) else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in WAITING_KEYS:
            return self.part == "waiting" and bool(self.view.waiting)
        if action == "until" and self.part == "by_hand":
            return False  # a line of a file has no end
        if action in FACT_KEYS:
            return self.part != "waiting" and bool(self._items(self.part))
        return True

    # -- the parts -------------------------------------------------------------------------------------------------

    def to_part(self, number: int) -> None:
        """Show another part, counted from 0, round and round."""
        self.part = PARTS[number % len(PARTS)].name
        self._chosen = True
        self.search_changed()
        self.list.focus()

    def _step(self, by: int) -> None:
        self.to_part([part.name for part in PARTS].index(self.part) + by)

    def action_next_part(self) -> None:
        self._step(1)

    def action_previous_part(self) -> None:
        self._step(-1)

    def action_part(self, number: int) -> None:
        """A click on a part."""
        self.to_part(number)

    def key_1(self) -> None:
        self.to_part(0)

    def key_2(self) -> None:
        self.to_part(1)

    def key_3(self) -> None:
        self.to_part(2)

    def key_4(self) -> None:
        self.to_part(3)

    def key_5(self) -> None:
        self.to_part(4)

    def key_6(self) -> None:
        self.to_part(5)
