"""The chat: conversation and composer on the left, the memory panes on the right, on screens of any width."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content

from tui_agent.tui.actions import bindings, in_context
from tui_agent.tui.answer import AnswerEntry, from_history
from tui_agent.tui.entries import Entry, NoticeEntry, UserEntry, WelcomeEntry
from tui_agent.tui.keymap import shown
from tui_agent.tui.screens.panes import PanesScreen
from tui_agent.tui.widgets.bars import PANES, HeaderLines, KeyBar, StatusLine, Strip, TabBar
from tui_agent.tui.widgets.base import Plain
from tui_agent.tui.widgets.composer import Composer
from tui_agent.tui.widgets.editor import Editor
from tui_agent.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from tui_agent.agent.views import TranscriptEntry

_FROM_EDITOR = {"why": "chat.why", "undo": "chat.undo", "save": "chat.save"}


def import_parts() -> None:
    """Import what :meth:`ChatScreen.complete` mounts; it takes a while, so it is done in a thread."""
    from tui_agent.agent import events  # noqa: F401
    from tui_agent.tui.widgets import cold_pane, completions, hot_pane, recalled_pane  # noqa: F401


class ChatScreen(PanesScreen):
    """The main screen.

    It is composed in two steps: the conversation and the composer at once, so that one can begin to write, the memory
    panes (:meth:`complete`) after the first paint. Keys for the panes that are pressed in between wait for them.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-medium"), (120, "-wide")]  # noqa: RUF012 - Textual's own form
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("chat"))
    AUTO_FOCUS = "#editor"

    def __init__(self, project_name: str) -> None:
        super().__init__()
        self.project_name = project_name
        self.is_complete = False
        self._pane_wanted = ""

    # -- parts ---------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        # Textual sets the breakpoint's class only when the first frame is laid out: it would be one of a wide screen.
        self.add_class([name for least, name in self.HORIZONTAL_BREAKPOINTS if least <= self.app.size.width][-1])
        yield Plain(id="header")
        with Horizontal(id="main"):
            with Vertical(id="left"):
                yield Transcript(self._entry_hint, id="transcript")
                yield Composer(id="composer", blink=self.host.cursor_blink)
                yield KeyBar(id="hints")
            yield Vertical(id="side")
        yield Strip(id="strip")
        yield StatusLine(id="status")
        yield KeyBar(id="keys")

    async def complete(self) -> None:
        """Mount the memory panes and the completions."""
        from tui_agent.tui.widgets.cold_pane import ColdPane
        from tui_agent.tui.widgets.hot_pane import HotPane
        from tui_agent.tui.widgets.recalled_pane import RecalledPane

        hot = HotPane(id="hot")
        hot.add_class("-active")
        await self.query_one("#side").mount(
            TabBar(id="tabs"), hot, ColdPane(id="cold"), RecalledPane(id="recalled"), KeyBar(id="side-keys")
        )
        await self.composer.complete()
        self.is_complete = True
        self.refresh_counts()
        self.refresh_keys()
        if self._pane_wanted:
            self.open_pane(self._pane_wanted)

    @property
    def size_name(self) -> str:
        """``wide``, ``medium`` or ``narrow``."""
        return next((name for name in ("wide", "medium", "narrow") if self.has_class(f"-{name}")), "wide")

    def on_mount(self) -> None:
        self.composer.set_placeholder("Ask, or say what to remember. / for commands")
        self.configured()
        self.refresh_header()
        self._refresh_strip({name: "0" for name, _ in PANES})

    def configured(self) -> None:
        """Use the keys and settings that the app holds now."""
        keymap = self.host.keymap
        self.composer.queue_key = shown(keymap.keys("composer.unqueue"))
        self.composer.editor.send_keys = frozenset(keymap.keys("composer.send").split(","))
        self.composer.editor.newline_keys = frozenset(keymap.keys("composer.newline").split(","))
        self.composer.editor.cursor_blink = self.host.cursor_blink
        self.status.help = keymap.hint("app.help")
        self.status.redraw()
        self.refresh_keys()

    # -- session ---------------------------------------------------------------------------------------------------

    def connected(self) -> None:
        """The session is there: show what it holds."""
        self.status.status.connected = True
        self.status.status.failed = ""
        self.settled("failed")
        self.refresh_server()
        self.load_session()

    def connection_failed(self, sentence: str) -> None:
        """The session could not be opened; enter tries again."""
        self.status.status.failed = "not connected"
        self.status.redraw()
        self._number += 1
        self._add(
            NoticeEntry(
                f"failed:{self._number}", "error", f"{sentence} Press enter to try again; nothing is lost.", "failed"
            )
        )

    def load_session(self) -> None:
        """Fetch conversation, draft, prompts and panes of the session that is open now."""
        session = self.host.session
        if session is None:
            return
        current = session

        async def everything() -> tuple[list[TranscriptEntry], str, list[str]]:
            return await current.transcript(), await current.load_draft(), await current.prompt_history()

        self.host.fetch(everything(), self._loaded, owner=self)
        self.refresh_reviews()
        self.refresh_panes()
        self.refresh_header()
        for problem in current.problems:
            self._notice(problem)

    def _loaded(self, everything: tuple[list[TranscriptEntry], str, list[str]]) -> None:
        history, draft, prompts = everything
        entries: list[Entry] = [from_history(entry) for entry in history]
        question = ""
        for entry in entries:
            if isinstance(entry, UserEntry):
                question = entry.said
            elif isinstance(entry, AnswerEntry):
                entry.question = question
        notices = [entry for entry in self.transcript.entries if isinstance(entry, NoticeEntry)]
        if not entries:
            entries = [WelcomeEntry(self.project_name)]
        self.transcript.load([*entries, *notices])
        self.composer.restore(draft, prompts)
        self._send_next()

    def refresh_server(self) -> None:
        """Show what the server is and what of it is degraded."""
        session = self.host.session
        if session is not None:
            self.status.status.server = session.server
            self.status.status.marks = session.server.degraded
            if session.server.ready:
                self.settled("server")
            if session.server.tools:
                self.settled("no_tools")
        self.status.redraw()
        self.refresh_header()

    def refresh_header(self) -> None:
        session = self.host.session
        model = session.server.model if session is not None else ""
        goal = session.goal if session is not None else ""
        self.query_one("#header", Plain).update(HeaderLines(self.project_name, model, goal))

    # -- moving between parts ----------------------------------------------------------------------------------------

    def open_pane(self, name: str) -> None:
        """Go to a pane; when already there, back to writing."""
        if not self.is_complete:
            self._pane_wanted = name
            return
        pane = self._pane(name)
        side = self.query_one("#side")
        if pane.list.has_focus and (self.size_name != "narrow" or side.has_class("-open")):
            self.to_editor()
            return
        for other, _ in PANES:
            self._pane(other).set_class(other == name, "-active")
        side.add_class("-open")
        self.query_one("#main").add_class("-pane")
        self.refresh_counts()
        pane.list.focus()

    def to_editor(self) -> None:
        """Back to writing; a full-screen pane closes."""
        self.query_one("#side").remove_class("-open")
        self.query_one("#main").remove_class("-pane")
        self.composer.editor.focus()

    def action_hot(self) -> None:
        self.open_pane("hot")

    def action_cold(self) -> None:
        self.open_pane("cold")

    def action_recalled(self) -> None:
        self.open_pane("recalled")

    def action_stop(self) -> None:
        """Escape: what is open, then the running answer, then back to writing."""
        self._pane_wanted = ""
        if self.composer.close_completions() or (self.is_complete and self.cold.close_search()):
            return
        session = self.host.session
        if self.running and session is not None:
            self.status.phase("draining", "stopping")
            self.host.fetch(session.stop(), lambda _: None, owner=self)
            return
        self.clear_selection()
        self.to_editor()

    def action_previous_answer(self) -> None:
        self.transcript.step(-1)

    def action_next_answer(self) -> None:
        self.transcript.step(1)

    def action_to_end(self) -> None:
        self.transcript.to_end()

    @on(events.DescendantFocus)
    def _focus_moved(self) -> None:
        self.refresh_keys()

    def _entry_hint(self, name: str, label: str, focused: bool) -> str:
        """The key that acts on the selected answer from where the focus is."""
        id = f"transcript.{name}" if focused else _FROM_EDITOR.get(name, f"transcript.{name}")
        key = shown(self.host.keymap.keys(id))
        if not focused and name not in _FROM_EDITOR:
            return ""
        return f"{key} {label}"

    def refresh_keys(self) -> None:
        """Write the keys that work where the focus is."""
        hints = self.query_one("#hints", KeyBar)
        focused = self.focused
        context = "composer"
        if focused is self.transcript:
            context = "transcript"
        hints.show(self._hints(context) if context == "transcript" else self._editor_hints())
        if self.is_complete:
            self._refresh_side_keys()
        keys = [action for context in ("app", "chat") for action in in_context(context) if action.show_in_footer]
        keys.sort(key=lambda action: _footer_place(self.host.keymap.keys(action.id)))
        self.query_one("#keys", KeyBar).show(
            [(shown(self.host.keymap.keys(action.id)), action.label, action.id) for action in keys]
        )

    def _refresh_side_keys(self) -> None:
        side = self.query_one("#side-keys", KeyBar)
        pane = next((pane for pane in (self._pane(name) for name, _ in PANES) if pane.list.has_focus), None)
        if pane is not None:
            side.show(self._hints(pane.kind))
        else:
            to = "  ".join(shown(self.host.keymap.keys(f"chat.{name}")) for name, _ in PANES)
            side.update(Content.styled(f"{to}  to act on an item", "$faint"))

    def _hints(self, context: str) -> list[tuple[str, str, str]]:
        return [
            (shown(self.host.keymap.keys(action.id)), action.label, action.id)
            for action in in_context(context)
            if action.show_in_footer
        ]

    def _editor_hints(self) -> list[tuple[str, str, str]]:
        keymap = self.host.keymap
        last = (
            [(shown(keymap.keys("chat.stop")), "stop", "chat.stop")] if self.running else [("tab", "other parts", "")]
        )
        return [
            (shown(keymap.keys("composer.send")), "queue" if self.running else "send", "composer.send"),
            (shown(keymap.keys("composer.newline")), "newline", "composer.newline"),
            ("/", "command", ""),
            *last,
        ]

    @on(KeyBar.Pressed)
    def _key_clicked(self, event: KeyBar.Pressed) -> None:
        event.stop()
        self.host.run_id(event.action)

    def focus_editor(self) -> Editor:
        """The editor, focused."""
        self.to_editor()
        return self.composer.editor


def _footer_place(keys: str) -> tuple[int, str]:
    """Function keys first, in their order, then the others, the way out before what can wait."""
    key = keys.split(",")[0]
    if key[0] == "f" and key[1:].isdigit():
        return int(key[1:]), ""
    return {"ctrl+p": 97, "ctrl+q": 98}.get(key, 99), key
