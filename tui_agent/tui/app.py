"""The terminal application: it opens the session after the first paint, and carries out what screens ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import work
from textual.binding import BindingType
from textual.command import Provider
from textual.screen import Screen
from textual.theme import Theme

from tui_agent.tui import text
from tui_agent.tui.actions import bindings
from tui_agent.tui.commanding import CommandingApp
from tui_agent.tui.host import Done, sentence
from tui_agent.tui.keymap import Keymap
from tui_agent.tui.screens.chat import ChatScreen, import_parts
from tui_agent.tui.screens.turns import Happened
from tui_agent.tui.terminal import teach_alt_enter
from tui_agent.tui.themes import DEFAULT_THEME, INK, load_themes, with_ours

if TYPE_CHECKING:
    from tui_agent.agent.events import Event
    from tui_agent.tui.session_like import SessionLike

T = TypeVar("T")
SessionFactory = Callable[[], Awaitable["SessionLike"]]
_QUIT_WINDOW_S = 2.0


def _action_commands() -> type[Provider]:
    from tui_agent.tui.palette import ActionCommands

    return ActionCommands


class TuiAgentApp(CommandingApp):
    """The chat with visible memory.

    ``session_factory`` is awaited after the first paint. ``theme`` is a theme name, ``keymap`` maps action ids to
    keys, ``theme_folders`` hold the user's themes. ``on_theme`` is called with a name when the user chose another
    theme, never at start.
    """

    TITLE = "tui-agent"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_action_commands}
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("app"))
    CLOSE_TIMEOUT = 5.0
    ESCAPE_TO_MINIMIZE = False

    def __init__(
        self,
        session_factory: SessionFactory,
        *,
        theme: str | None = None,
        keymap: Mapping[str, str] | None = None,
        project_name: str = "",
        theme_folders: tuple[Path, ...] = (),
        on_theme: Callable[[str], None] | None = None,
        cursor_blink: bool = False,
    ) -> None:
        teach_alt_enter()
        super().__init__(on_theme)
        self.session: SessionLike | None = None
        self.keymap = Keymap(keymap)
        self.project_name = project_name or Path.cwd().name
        self.cursor_blink = cursor_blink
        self._factory = session_factory
        self._connecting = False
        self._leaving = False
        self._interrupted_at = -_QUIT_WINDOW_S
        self._unsubscribe: Callable[[], None] | None = None
        self._theme_folders = theme_folders
        self._theme_problems: list[str] = []
        self._use_themes(([INK], []))
        wanted = theme or DEFAULT_THEME
        self._all_themes = wanted != DEFAULT_THEME or bool(theme_folders)
        if self._all_themes:  # else the others are read after the first paint
            self._use_themes(load_themes(theme_folders))
        if wanted not in self.available_themes:
            self._theme_problems.append(f"There is no theme {wanted}; known are {', '.join(self.theme_names)}.")
            wanted = DEFAULT_THEME
        self.theme = wanted
        self.chat = ChatScreen(self.project_name)

    def configure(
        self,
        *,
        theme: str | None = None,
        keymap: Mapping[str, str] | None = None,
        theme_folders: tuple[Path, ...] = (),
        cursor_blink: bool = False,
    ) -> None:
        """Take over settings that were read after the first paint."""
        self._theme_problems = []
        self._use_themes(load_themes(theme_folders))
        problems = self._theme_problems
        if theme is not None and theme not in self.available_themes:
            problems.append(f"There is no theme {theme}; known are {', '.join(self.theme_names)}.")
        elif theme is not None and theme != self.theme:
            self.theme = theme
        if keymap:
            self.keymap = Keymap(keymap)
            self.set_keymap(self.keymap.changed)
            problems += self.keymap.problems
        self.cursor_blink = cursor_blink
        self.chat.configured()
        for problem in problems:
            self._warn(problem)

    def _use_themes(self, read: tuple[list[Theme], list[str]]) -> None:
        themes, problems = read
        for item in themes:
            self.register_theme(item)
        self.theme_names = list(dict.fromkeys(item.name for item in themes))
        self._theme_problems += problems

    def _warn(self, problem: str) -> None:
        from tui_agent.agent.events import Notice

        self.chat.post_message(Happened(Notice("warning", problem), in_turn=False))

    def get_css_variables(self) -> dict[str, str]:
        self.theme_variables = with_ours(super().get_css_variables())
        return self.theme_variables

    def get_default_screen(self) -> Screen[Any]:
        return self.chat

    def on_mount(self) -> None:
        if self.keymap.changed:
            self.set_keymap(self.keymap.changed)
        self.chat.call_after_refresh(self._after_first_paint)

    @work(group="start")
    async def _after_first_paint(self) -> None:
        """Load and mount what the first paint did without, then open the session."""
        await asyncio.to_thread(import_parts)
        if not self._all_themes:
            self._use_themes(await asyncio.to_thread(load_themes, self._theme_folders))
        await self.chat.complete()
        self.post_message(Done(self._completed))

    def _completed(self) -> None:
        for problem in (*self._theme_problems, *self.keymap.problems):
            self._warn(problem)
        self.connect()

    @staticmethod
    def now() -> str:
        """The time of an entry, as the history writes it."""
        return text.now().strftime("%Y-%m-%d %H:%M:%S")

    # -- session -----------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open the session, once at a time. Before all parts are mounted this waits for them."""
        if not self._connecting and self.session is None and self.chat.is_complete:
            self._connecting = True
            self.chat.status.status.failed = ""
            self.chat.status.redraw()
            self._open()

    @work(group="session")
    async def _open(self) -> None:
        try:
            session = await self._factory()
        except Exception as error:
            self.post_message(Done(partial(self._not_opened, error)))
        else:
            self.post_message(Done(partial(self._opened, session)))

    def _not_opened(self, error: Exception) -> None:
        self._connecting = False
        self.chat.connection_failed(f"The session could not be opened: {sentence(error)}")

    def _opened(self, session: SessionLike) -> None:
        self._connecting = False
        self.session = session
        self._unsubscribe = session.subscribe(self._background)
        self.chat.connected()
        self.fetch(session.start(), lambda _: self._started(session), owner=self.chat)

    def _started(self, session: SessionLike) -> None:
        self.chat.refresh_server()
        if not session.server.ready and session.setup is not None:
            self.chat.call_after_refresh(self.first_run)  # a screen under a panel is not refreshed any more

    def _background(self, event: Event) -> None:
        self.chat.post_message(Happened(event, in_turn=False, answered=self.acting > 0))

    @work(group="turn")
    async def run_turn(self, events: AsyncIterator[Event]) -> None:
        """Pass the events of a turn on. It always ends with a ``TurnFinished``, whatever goes wrong."""
        from tui_agent.agent.events import TurnFinished

        finished = False
        try:
            async for event in events:
                finished = finished or isinstance(event, TurnFinished)
                self.chat.post_message(Happened(event, in_turn=True))
        except Exception as error:
            self.log.error(f"turn failed: {error!r}")
            if not finished:
                finished = True
                failed = TurnFinished("failed", error=f"Something went wrong in the program: {sentence(error)}")
                self.chat.post_message(Happened(failed, in_turn=True))
        if not finished:
            self.chat.post_message(Happened(TurnFinished("incomplete"), in_turn=True))

    def action_interrupt(self) -> None:
        """Copy a selection; else quit when pressed twice."""
        selected = self.screen.get_selected_text() or self.chat.composer.editor.selected_text
        now = monotonic()
        if selected and now - self._interrupted_at > _QUIT_WINDOW_S:
            self.copy(selected, "the selection")
            self.screen.clear_selection()
        elif now - self._interrupted_at <= _QUIT_WINDOW_S:
            self.action_leave()
        else:
            self._interrupted_at = now
            stop = " Esc stops the answer." if self.chat.running else ""
            self.say(f"Press {self.keymap.hint('app.interrupt', 'again to quit')}.{stop}")

    def action_leave(self) -> None:
        """Quit: keep the draft, stop the answer, close the session. Asked twice, at once."""
        if self._leaving or self.session is None:
            self.exit()
            return
        self._leaving = True
        self.chat.status.phase("saving", "closing")
        self._leave(self.session)

    @work(group="leave")
    async def _leave(self, session: SessionLike) -> None:
        composer = self.chat.composer
        waiting = composer.queue.take_all()
        draft = "\n\n".join(part for part in (waiting, composer.draft) if part)
        try:
            await session.save_draft(draft)
            if self.chat.running:
                await session.stop()
            if self._unsubscribe is not None:
                self._unsubscribe()
            await session.close()
        except Exception as error:
            self.log.error(f"closing failed: {error!r}")
        self.exit()
