"""What the application does by name: slash commands, the palette, and the keys that work everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tui_agent.tui import commands
from tui_agent.tui.actions import BY_ID
from tui_agent.tui.host import HostApp
from tui_agent.tui.text import one_line

if TYPE_CHECKING:
    from tui_agent.agent.firstrun import FirstRun, Surroundings
    from tui_agent.agent.views import ActionResult

TYPING_PAUSE_S = 1.0


class CommandingApp(HostApp):
    """The half of the application that carries out commands; the other half opens the session and runs its turns."""

    def __init__(self, on_theme: Callable[[str], None] | None) -> None:
        super().__init__()
        self._on_theme = on_theme
        self._quiet_draft = ""

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
        elif name == "note":
            self.act(session.note(argument))
        elif name == "rebuild":
            self.act(session.rebuild_prompt())
        elif name == "reindex":
            self.act(session.reindex(), lambda _: self.chat.refresh_server())
        elif name == "tools":
            how = argument.lower()
            if how in ("", "once", "on", "off"):
                self.act(session.offer_tools(how or "once"), lambda _: self.chat.refresh_server())  # type: ignore[arg-type]
            else:
                self.say("/tools sends the next message without tools; /tools off and /tools on switch them.")
        elif name == "new":
            self.switch("new")
        elif name == "search":
            self._search(argument)
        else:
            self._open_screen(name)
        return True

    def _open_screen(self, name: str) -> None:
        """A screen that has a command and no key."""
        if name == "handoff":
            from tui_agent.tui.screens.handoff import HandoffScreen

            self._panel(HandoffScreen())
        elif name == "rules":
            from tui_agent.tui.screens.upkeep import FilesScreen

            self._panel(FilesScreen())
        elif name == "share":
            from tui_agent.tui.screens.upkeep import SharingScreen

            self._panel(SharingScreen())
        elif name == "learned":
            from tui_agent.tui.screens.learned import LearnedScreen

            self._panel(LearnedScreen())
        elif name == "setup":
            self.first_run(asked=True)
        elif name == "doctor":
            from tui_agent.tui.screens.doctor import DoctorScreen

            self._panel(DoctorScreen())

    def first_run(self, *, asked: bool = False) -> None:
        """Ask what is missing for an answer. Without being ``asked`` for it waits for a pause in typing, so that no
        letter of a message becomes an answer."""
        session = self.session
        setup = session.setup if session is not None else None
        if session is None or setup is None:
            self.say("Not connected yet.", "warning")
            return
        draft = self.chat.composer.draft
        if not asked and draft != self._quiet_draft:
            self._quiet_draft = draft
            self.set_timer(TYPING_PAUSE_S, self.first_run)
            return
        current = setup

        def found(facts: Surroundings) -> None:
            from tui_agent.tui.screens.setup import SetupScreen

            if facts.state == "ready":
                if not session.server.ready:  # it came up just now
                    self.fetch(current.connect(), self._set_up, owner=self.chat)
                elif asked:
                    self.say(f"Everything is there: {session.server.model} answers.")
                return
            if not any(isinstance(screen, SetupScreen) for screen in self.screen_stack):
                screen = SetupScreen(current, facts)
                self.push_screen(screen, lambda outcome: self._set_up(outcome == "ready", screen.walk))

        self.fetch(current.look(), found, owner=self.chat)

    def _set_up(self, ready: bool, walk: FirstRun | None = None) -> None:
        self.chat.refresh_server()
        if ready and self.session is not None:
            self.say(f"{self.session.server.model} answers from now on.")
        elif walk is not None and self.session is not None and not self.session.server.ready:
            self.chat.not_set_up(walk)

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

        def opened(_: object) -> None:
            self.chat.forget_told()
            self.chat.load_session()

        self.fetch(session.switch(session_id), opened, owner=self.chat)

    def switch_model(self, name: str | None) -> None:
        """Use another model from the next message on. What that changes stays in the conversation as a line."""
        session = self.session
        if session is None or not name:
            return
        if self.chat.running:
            self.say("An answer is running; esc stops it.", "warning")
            return

        def done(result: ActionResult) -> None:
            self.chat.refresh_server()
            if result.ok:
                self.chat.tell(result.text)
                self.chat.refresh_panes()
            else:
                self.say(result.text, "warning")
            if "allow" in result.extra and session.setup is not None:
                session.setup.model = name
                self.first_run(asked=True)

        self.fetch(session.switch_model(name), done, owner=self.chat)

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
        from tui_agent.tui.screens.models import ModelsScreen

        self._panel(ModelsScreen(), self.switch_model)

    def action_sessions(self) -> None:
        from tui_agent.tui.screens.lists import SessionsScreen

        self._panel(SessionsScreen(), self.switch)

    def action_remembered(self) -> None:
        from tui_agent.tui.screens.lists import RememberedScreen

        self._panel(RememberedScreen(), lambda _: self.chat.refresh_panes())

    def action_review(self) -> None:
        from tui_agent.tui.screens.review import ReviewScreen

        self._panel(ReviewScreen(), lambda _: self.chat.refresh_panes())

    def action_log(self) -> None:
        from tui_agent.tui.screens.upkeep import LogScreen

        self._panel(LogScreen())

    def action_context(self) -> None:
        from tui_agent.tui.screens.pages import ContextScreen

        self._panel(ContextScreen())

    def action_theme(self) -> None:
        names = self.theme_names
        at = names.index(self.theme) if self.theme in names else -1
        self.use_theme(names[(at + 1) % len(names)])
        self.say(f"Theme {self.theme}.")
