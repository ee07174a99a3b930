"""The frame of everything that opens over the chat: a panel with a title, something inside, and its keys below."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.style import Style
from textual.widgets import Input

from tui_agent.tui.actions import in_context
from tui_agent.tui.keymap import shown
from tui_agent.tui.layout import Lines, join, label, spread, text, wrapped
from tui_agent.tui.widgets.bars import KeyBar
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.rows import Row

if TYPE_CHECKING:
    from tui_agent.tui.app import TuiAgentApp
    from tui_agent.tui.session_like import SessionLike

Result = TypeVar("Result")
QUESTION_DELAY_S = 0.3


class Panel(ModalScreen[Result], Generic[Result]):
    """A panel over the chat. ``kind`` is the context of its keys; ``keys_for`` may leave some of them out."""

    kind: ClassVar[str] = "page"
    BINDINGS: ClassVar[list[BindingType]] = []
    DEFAULT_CSS = """
    Panel {
        align: center middle;
        background: $background 55%;
        & > .panel {
            width: 100; max-width: 96%; height: auto; max-height: 94%;
            background: $background; border: round $faint; padding: 0 1;
            & > .panel--title { height: 1; padding: 0 1; }
            & > .panel--body { height: auto; padding: 0 1; margin-top: 1; scrollbar-size-vertical: 1; }
            & > KeyBar { height: auto; margin-top: 1; padding: 0 1; }
            & > Input { border: none; height: 1; padding: 0 1; background: transparent; margin-top: 1; }
            & RowList { height: auto; max-height: 100%; margin-top: 1; }
        }
        &.-tall > .panel { height: 94%; & > .panel--body { height: 1fr; } & RowList { height: 1fr; } }
        &:ansi { background: transparent; }
    }
    """

    @property
    def host(self) -> TuiAgentApp:
        """The application, by its real type."""
        return cast("TuiAgentApp", self.app)

    @property
    def session(self) -> SessionLike:
        """The session; panels open only when there is one."""
        session = self.host.session
        assert session is not None
        return session

    def compose(self) -> ComposeResult:
        with Vertical(classes="panel"):
            yield Plain(classes="panel--title")
            yield from self.body()
            yield KeyBar()

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="panel--body"):
            yield Plain(id="page")

    @property
    def close_word(self) -> str:
        """What esc does now."""
        return "close"

    @property
    def has_parts(self) -> bool:
        """Whether the panel was composed; one that opens as the app ends is mounted without its parts."""
        return bool(self.query(KeyBar))

    def on_mount(self) -> None:
        if self.has_parts:
            self.show_keys()

    def on_resize(self) -> None:
        """The body scrolls inside what the screen has left."""
        if not self.has_parts:
            return
        bar = self.query_one(KeyBar).visual
        room = max(20, min(100, int(self.size.width * 0.96)) - 6)
        keys = len(bar.lines(room)) if isinstance(bar, Lines) else 1
        for body in self.query(".panel--body"):
            body.styles.max_height = max(3, int(self.size.height * 0.94) - 6 - keys)

    def set_title(self, words: str, right: str = "") -> None:
        """Write the title line."""
        title = self.query_one(".panel--title", Plain)
        title.update(_Title(words, right))

    def show_keys(self) -> None:
        """Write the keys that work now."""
        keymap = self.host.keymap
        hints = [
            (shown(keymap.keys(action.id)), action.label, action.id)
            for action in in_context(self.kind)
            if action.show_in_footer and action.name != "close" and self.check_action(action.name, ()) is True
        ]
        close = f"{self.kind}.close"
        right = join((shown(keymap.keys(close)), "$act"), (f" {self.close_word}", "$quiet"))
        self.query_one(KeyBar).show(hints, right.stylize(Style.from_meta({"do": close})), most=2)
        self.on_resize()

    @on(KeyBar.Pressed)
    async def _pressed(self, event: KeyBar.Pressed) -> None:
        event.stop()
        await self.run_action(event.action.partition(".")[2])

    def action_close(self) -> None:
        self.dismiss(None)


class _Title(Row):
    def __init__(self, words: str, right: str) -> None:
        super().__init__(words)
        self.right = right

    def lines(self, width: int) -> list[Content]:
        return [spread(label(self.key, "bold $text"), label(self.right, "$quiet"), width)]


class Question(Panel[str]):
    """Asks for a line of text. ``must`` is what has to be typed for a yes; keys are ignored for the first 0.3 s."""

    kind = "page"
    AUTO_FOCUS = ""
    DEFAULT_CSS = """
    Question > .panel { width: 76; }
    Question > .panel > Input { border: none; border-left: outer $act; }
    """

    def __init__(self, title: str, body: str, *, value: str = "", must: str = "", placeholder: str = "") -> None:
        super().__init__()
        self.words, self.explanation, self.value, self.must = title, body, value, must
        self.placeholder = placeholder or (f"type {must} to go on" if must else "")
        self.ready = False

    def body(self) -> ComposeResult:
        with VerticalScroll(classes="panel--body"):
            yield Plain(id="page")
        yield Input(value=self.value, placeholder=self.placeholder, select_on_focus=False, disabled=True)

    def on_mount(self) -> None:
        self.set_title(self.words)
        self.query_one("#page", Plain).update(self.explanation)
        self.set_timer(QUESTION_DELAY_S, self._open)

    def show_keys(self) -> None:
        self.query_one(KeyBar).show([("enter", "do it", ""), ("esc", "leave it as it is", "page.close")])

    def _open(self) -> None:
        self.ready = True
        field = self.query_one(Input)
        field.disabled = False
        field.focus()
        field.cursor_position = len(field.value)

    def key_escape(self, event: events.Key) -> None:
        event.stop()  # else it closes what is below, too
        if self.ready:
            self.dismiss(None)

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        event.stop()
        if self.must and event.value.strip().casefold() != self.must.casefold():
            self.set_title(self.words, f"not done: type {self.must}")
            return
        self.dismiss(event.value)


class Page(Row):
    """Sections of text for reading: ``(heading, body)``, the body already content or foreign text."""

    def __init__(self, sections: list[tuple[str, Content | str]]) -> None:
        super().__init__("page")
        self.sections = sections

    def lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        for heading, body in self.sections:
            if lines:
                lines.append(Content(""))
            if heading:
                lines.append(join((heading, "bold $said")))
            lines.extend(wrapped(body if isinstance(body, Content) else text(body), width))
        return lines
