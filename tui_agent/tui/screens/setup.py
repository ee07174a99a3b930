"""The first run on screen: what is missing, and numbered answers. Works before any model does."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import OptionList
from textual.worker import Worker

from tui_agent.agent.firstrun import Act, Choice, FirstRun, Surroundings
from tui_agent.tui.actions import bindings
from tui_agent.tui.host import Done
from tui_agent.tui.layout import Lines, gauge, join, label, text, wrapped
from tui_agent.tui.screens.panel import QUESTION_DELAY_S, Panel
from tui_agent.tui.text import one_line
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.rows import Row, RowList

if TYPE_CHECKING:
    from tui_agent.agent.setting_up import SetUp

WATCH_S = 2.0
LOOK = Act("look")
_WIDE = 64
_LOW, _FEW = 24, 3


class ChoiceRow(Row):
    """``1  Start it now   runs `ollama serve`; it stops when you leave``; all on two lines where one is too long, but
    on one, cut, where the screen is also too low for that (``low``). ``names`` and ``details`` are the cells of the
    longest of all rows."""

    def __init__(self, choice: Choice, names: int, details: int, *, low: bool = False) -> None:
        super().__init__(choice.key)
        self.choice = choice
        self.names = names
        self.details = details
        self.low = low

    def lines(self, width: int) -> list[Content]:
        choice = self.choice
        head = join((f"{choice.key}  ", "$act"), label(choice.label))
        if self.low or (width >= _WIDE and self.details <= width - self.names - 5):
            pad = " " * (self.names - len(one_line(choice.label)) + 2)
            return [join(head, pad, label(choice.detail, "$quiet")).truncate(width, ellipsis=True)]
        detail = wrapped(label(choice.detail, "$quiet"), width, first="   ", rest="   ", limit=2)
        return [head.truncate(width, ellipsis=True), *detail]


class StepLines(Lines):
    """The sentences of a step, and what came of the last answer; on a low screen the latter alone."""

    def __init__(self, run: FirstRun, *, low: bool) -> None:
        super().__init__()
        self.run = run
        self.low = low

    def lines(self, width: int) -> list[Content]:
        run = self.run
        step = run.step
        parts: list[list[Content]] = []
        if not (self.low and (run.error or run.note)):
            parts.append(
                wrapped(text(step.text + (" It is noticed here when that changes." if step.watch else "")), width)
            )
        if run.error:
            parts.append(wrapped(text(run.error), width, first=("▲ ", "$warning"), rest="  "))
        if run.note:
            parts.append(wrapped(text(run.note), width, first=("· ", "$said"), rest="  "))
        return [line for part in parts for line in (*part, Content(""))][:-1]


class ProgressLines(Lines):
    """What is going on: words, and a bar where there is a share."""

    def __init__(self, words: str, share: float | None) -> None:
        super().__init__()
        self.words, self.share = one_line(words), share

    def lines(self, width: int) -> list[Content]:
        if not self.words:
            return [Content("")]
        if self.share is None:
            return [join(("● ", "$said"), (self.words, "$text")).truncate(width, ellipsis=True)]
        cells = max(8, min(30, width - 40))
        meter = join(gauge(self.share, 1.0, cells), (f" {self.share:4.0%}  ", "$text"), (self.words, "$quiet"))
        return [join(("● ", "$said"), meter).truncate(width, ellipsis=True)]


class SetupScreen(Panel[str]):
    """Asks until a model is there. Dismissed with ``ready`` or ``later``.

    | Key | What |
    | :- | :- |
    | 1 … 9, 0 | the answer of that number |
    | enter | the highlighted answer |
    | x | stop what is going on |
    """

    kind = "setup"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("setup"))
    AUTO_FOCUS = "#list"
    DEFAULT_CSS = """
    SetupScreen > .panel {
        width: 90;
        & > #progress { height: 1; padding: 0 1; margin-top: 1; display: none; }
        & > #progress.-on { display: block; }
        & > RowList { max-height: 60%; }
    }
    """

    def __init__(self, setup: SetUp, facts: Surroundings) -> None:
        super().__init__()
        self.setup = setup
        self.walk = FirstRun(facts)
        self._doing: Worker[None] | None = None
        self._opened_at = 0.0
        self._looking = False
        self._shown = ""

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="panel--body"):
            yield Plain(id="page")
        yield RowList(id="list")
        yield Plain(id="progress")

    def on_mount(self) -> None:
        self._opened_at = monotonic()
        if self.has_parts:  # it opens by itself, so perhaps just as the user quits
            self.set_interval(WATCH_S, self._watch)
            self.show()

    # -- showing -------------------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Draw the step there is now; close when it all ends."""
        walk = self.walk
        if walk.outcome:
            self.dismiss(walk.outcome)
            return
        if not self.has_parts:
            return
        step = walk.step
        version = one_line(walk.facts.version)
        self.set_title(step.title, f"Ollama {version}" if version else "")
        self.query_one("#page", Plain).update(StepLines(walk, low=self.app.size.height < _LOW))
        rows = self.query_one("#list", RowList)
        # While something is going on only what was chosen stays, so that its progress fits on low screens too.
        choices = [one for one in step.choices if not self._busy or one.act == walk.working]
        names = max((len(one_line(choice.label)) for choice in choices), default=0)
        details = max((len(one_line(choice.detail)) for choice in choices), default=0)
        low = self.app.size.height < _LOW and len(choices) > _FEW
        # The same question again: what was chosen stays highlighted, so that enter goes on with it.
        rows.show([ChoiceRow(choice, names, details, low=low) for choice in choices], keep=step.state == self._shown)
        self._shown = step.state
        rows.disabled = self._busy
        progress = self.query_one("#progress", Plain)
        progress.set_class(self._busy, "-on")
        if not self._busy:
            progress.update("")
            rows.focus()
        self.show_keys()

    @property
    def has_parts(self) -> bool:
        # As the app ends its parts go one after the other.
        return super().has_parts and all(self.query(part) for part in ("#page", "#list", "#progress", ".panel--title"))

    @property
    def close_word(self) -> str:
        return "stop" if self._busy else "close"

    @property
    def _busy(self) -> bool:
        return self.walk.working is not None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            return self._busy
        if action == "choose":
            return not self._busy
        return True

    # -- answering -----------------------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character.isdigit():
            event.stop()
            # A digit that was meant for the message under the panel must not become an answer.
            if monotonic() - self._opened_at >= QUESTION_DELAY_S:
                self._answer(event.character)

    @on(OptionList.OptionSelected, "#list")
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        row = self.query_one("#list", RowList).current
        if row is not None and monotonic() - self._opened_at >= QUESTION_DELAY_S:
            self._answer(row.key)

    def action_choose(self) -> None:
        self.query_one("#list", RowList).action_select()

    def action_down(self) -> None:
        self.query_one("#list", RowList).action_cursor_down()

    def action_up(self) -> None:
        self.query_one("#list", RowList).action_cursor_up()

    def _answer(self, key: str) -> None:
        act = self.walk.answer(key)
        if act is not None and self.walk.working is not None:
            self._progress("one moment", None)
            self._doing = self._carry_out(act)
        if act is not None:
            self.show()

    @work(group="setup", exclusive=True, exit_on_error=False)
    async def _carry_out(self, act: Act) -> None:
        try:
            await self.setup.carry_out(self.walk, act, self._progress)
        finally:
            self.host.post_message(Done(self._done))

    def _progress(self, words: str, share: float | None) -> None:
        self.query_one("#progress", Plain).update(ProgressLines(words, share))

    def _done(self) -> None:
        self._doing = None
        if self.is_attached:
            self.show()

    def _watch(self) -> None:
        if self.walk.step.watch and not self._busy and not self._looking and not self.walk.outcome:
            self._looking = True
            self.host.fetch(self.setup.look(), self._seen, owner=self)

    def _seen(self, facts: Surroundings) -> None:
        self._looking = False
        changed = self.walk.seen(facts)
        if self.walk.outcome == "ready":
            # The model is there, and the session still has to be connected to it.
            self.walk.outcome = ""
            self.walk.working = LOOK
            self._doing = self._carry_out(LOOK)
        if changed and self.is_attached:
            self.show()

    # -- leaving -------------------------------------------------------------------------------------------------------

    def action_stop(self) -> None:
        if self._doing is not None:
            self._doing.cancel()

    def action_close(self) -> None:
        """Stop what is going on; when nothing is, close."""
        if self._busy:
            self.action_stop()
        else:
            self.setup.model = "" if not self.setup.server else self.setup.model
            self.dismiss("later")
