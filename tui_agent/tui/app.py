"""The terminal application: it opens the session after the first paint, and carries out what screens ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import on, work
from textual.app import App
from textual.binding import BindingType
from textual.command import Provider
from textual.message import Message
from textual.screen import Screen
from textual.theme import Theme
from textual.widget import Widget

from tui_agent.tui import commands, text
from tui_agent.tui.actions import BY_ID, bindings
from tui_agent.tui.keymap import Keymap
from tui_agent.tui.screens.chat import ChatScreen, import_parts
from tui_agent.tui.screens.turns import Happened
from tui_agent.tui.terminal import teach_alt_enter
from tui_agent.tui.text import clean, one_line, short
from tui_agent.tui.themes import DEFAULT_THEME, INK, load_themes, with_ours

if TYPE_CHECKING:
    from tui_agent.agent.events import Event
    from tui_agent.agent.views import ActionResult
    from tui_agent.tui.clipboard import Copied
    from tui_agent.tui.session_like import SessionLike

T = TypeVar("T")
SessionFactory = Callable[[], Awaitable["SessionLike"]]
_QUIT_WINDOW_S = 2.0


class Done(Message):
    """Awaited work is done: ``then`` gets its value, here, in a handler."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then = then


def _action_commands() -> type[Provider]:
    from tui_agent.tui.palette import ActionCommands

    return ActionCommands


class TuiAgentApp(App[None]):
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
        super().__init__()
        self.session: SessionLike | None = None
        self.keymap = Keymap(keymap)
        self.project_name = project_name or Path.cwd().name
        self.cursor_blink = cursor_blink
        self._factory = session_factory
        self._on_theme = on_theme
        self._connecting = False
        self._leaving = False
        self._acting = 0
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
        for sentence in problems:
            self._warn(sentence)

    def _use_themes(self, read: tuple[list[Theme], list[str]]) -> None:
        themes, problems = read
        for item in themes:
            self.register_theme(item)
        self.theme_names = list(dict.fromkeys(item.name for item in themes))
        self._theme_problems += problems

    def _warn(self, sentence: str) -> None:
        from tui_agent.agent.events import Notice

        self.chat.post_message(Happened(Notice("warning", sentence), in_turn=False))

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
        for sentence in (*self._theme_problems, *self.keymap.problems):
            self._warn(sentence)
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
        self.fetch(session.start(), lambda _: self.chat.refresh_server(), owner=self.chat)

    def _background(self, event: Event) -> None:
        self.chat.post_message(Happened(event, in_turn=False, answered=self._acting > 0))

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

    # -- work for screens ----------------------------------------------------------------------------------------------

    def fetch(self, wanted: Awaitable[T], then: Callable[[T], None], *, owner: Widget) -> None:
        """Await something of the session and hand its value to ``then``, in a handler, if ``owner`` is still there."""
        self._await(wanted, then, owner)

    @work(group="fetch", exit_on_error=False)
    async def _await(self, wanted: Awaitable[Any], then: Callable[[Any], None], owner: Widget) -> None:
        try:
            value = await wanted
        except Exception as error:
            self.log.error(f"fetch failed: {error!r}")
            self.post_message(Done(partial(self.say, f"That did not work: {sentence(error)}", "error")))
            return

        def deliver() -> None:
            if owner.is_attached:
                then(value)

        self.post_message(Done(deliver))

    def act(self, action: Awaitable[ActionResult], then: Callable[[ActionResult], object] | None = None) -> None:
        """Carry out an action of the session, say what came of it, and show the panes anew."""

        def done(result: ActionResult) -> None:
            undo = f" · {self.keymap.hint('chat.undo')}" if result.undo and result.ok else ""
            if result.text:
                self.say(f"{result.text}{undo}", "information" if result.ok else "warning")
            self.chat.refresh_panes()
            self.chat.refresh_header()
            if then is not None:
                then(result)

        async def counted() -> ActionResult:
            self._acting += 1
            try:
                return await action
            finally:
                self._acting -= 1

        self.fetch(counted(), done, owner=self.chat)

    @on(Done)
    def _done(self, message: Done) -> None:
        message.stop()
        message.then()

    def say(self, words: str, severity: str = "information") -> None:
        """A short notice in the corner. Never markup."""
        level = severity if severity in ("information", "warning", "error") else "information"
        self.notify(clean(words), severity=level, timeout=5, markup=False)  # type: ignore[arg-type]

    def reviews(self, count: int) -> None:
        """So many proposals wait for approval."""
        self.chat.reviews(count)

    def copy(self, copied: str, what: str) -> None:
        """Copy, and say what really happened."""
        from tui_agent.tui import clipboard

        driver = self._driver

        def write(sequence: str) -> None:
            if driver is not None:
                driver.write(sequence)

        def done(outcome: Copied) -> None:
            self.say(clipboard.sentence(outcome, what))

        self.fetch(clipboard.copy(copied, write), done, owner=self.chat)

    # -- commands ------------------------------------------------------------------------------------------------------

    def run_id(self, id: str) -> None:
        """Do what the action ``id`` does, wherever its keys belong."""
        if id not in BY_ID:
            return
        context, _, name = id.partition(".")
        chat = self.chat
        target: Any = {"app": self, "chat": chat, "composer": chat.composer.editor, "transcript": chat.transcript}.get(
            context
        )
        if context in ("hot", "cold", "recalled") and chat.is_complete:
            pane = {"hot": chat.hot, "cold": chat.cold, "recalled": chat.recalled}[context]
            if not pane.list.has_focus:
                chat.open_pane(context)
            target = pane.list
        if target is not None:
            getattr(target, f"action_{name}")()

    def command_from_palette(self, command: commands.Command) -> None:
        """Run a command, or begin it in the editor when it needs an argument."""
        if command.argument:
            self.chat.focus_editor().replace_all(f"/{command.name} ")
        else:
            self.command(f"/{command.name}")

    def command(self, line: str) -> bool:
        """Run a slash command; false when the text is a message."""
        read = commands.read(line)
        if read is None:
            return False
        name, argument = read
        known = commands.BY_NAME.get(name)
        session = self.session
        if known is None:
            self.say(
                f"There is no command /{name}. F1 lists all of them; a message may not begin with / and one word.",
                "warning",
            )
            self.chat.composer.put_back(line)
        elif name == "model" and argument and session is not None:
            self.switch_model(argument)
        elif name == "theme" and argument:
            self.use_theme(argument)
        elif known.action:
            self.run_id(known.action)
        elif session is None:
            self.say("Not connected yet.", "warning")
        elif name == "goal":
            if argument:
                self.act(session.set_goal(argument))
            else:
                self.say(
                    f"The goal is: {session.goal}" if session.goal else "There is no goal yet; /goal TEXT sets one."
                )
        elif name == "rebuild":
            self.act(session.rebuild_prompt())
        elif name == "new":
            self.switch("new")
        elif name == "search":
            self._search(argument)
        return True

    def _search(self, words: str) -> None:
        from tui_agent.tui.screens.lists import FoundScreen

        if words:
            self.push_screen(FoundScreen(words))
        else:
            self.say("Say what to search: /search TEXT.")

    def switch(self, session_id: str | None) -> None:
        """Open another session, or a new one."""
        session = self.session
        if session is None or not session_id:
            return
        if self.chat.running:
            self.say("An answer is running; esc stops it.", "warning")
            return
        self.chat.composer.save_draft()
        self.fetch(session.switch(session_id), lambda _: self.chat.load_session(), owner=self.chat)

    def switch_model(self, name: str | None) -> None:
        """Use another model from the next message on."""
        if self.session is not None and name:
            self.act(self.session.switch_model(name), lambda result: self.chat.refresh_server())

    def use_theme(self, name: str) -> None:
        """The user chose a theme."""
        if name not in self.available_themes:
            self.say(f"There is no theme {one_line(name)}; known are {', '.join(self.theme_names)}.", "warning")
            return
        self.theme = name
        if self._on_theme is not None:
            self._on_theme(name)

    # -- actions -------------------------------------------------------------------------------------------------------

    def _panel(self, screen: Any, then: Callable[[Any], None] | None = None) -> None:
        if isinstance(self.screen, type(screen)):
            self.screen.dismiss(None)
        elif self.session is None:
            self.say("Not connected yet.", "warning")
        else:
            self.push_screen(screen, then)

    def action_help(self) -> None:
        from tui_agent.tui.screens.pages import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.screen.dismiss(None)
        else:
            self.push_screen(HelpScreen())

    def action_palette(self) -> None:
        self.action_command_palette()

    def action_model(self) -> None:
        from tui_agent.tui.screens.lists import ModelsScreen

        self._panel(ModelsScreen(), self.switch_model)

    def action_sessions(self) -> None:
        from tui_agent.tui.screens.lists import SessionsScreen

        self._panel(SessionsScreen(), self.switch)

    def action_remembered(self) -> None:
        from tui_agent.tui.screens.lists import RememberedScreen

        self._panel(RememberedScreen(), lambda _: self.chat.refresh_panes())

    def action_context(self) -> None:
        from tui_agent.tui.screens.pages import ContextScreen

        self._panel(ContextScreen())

    def action_theme(self) -> None:
        names = self.theme_names
        at = names.index(self.theme) if self.theme in names else -1
        self.use_theme(names[(at + 1) % len(names)])
        self.say(f"Theme {self.theme}.")

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


def sentence(error: BaseException) -> str:
    """An exception as a sentence."""
    words = short(one_line(error), 400) or type(error).__name__
    return words if words.endswith((".", "!", "?")) else words + "."
