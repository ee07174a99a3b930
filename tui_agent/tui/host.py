"""The lower half of the application: work for screens, awaited in workers and handed over in handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from textual import on, work
from textual.app import App
from textual.message import Message
from textual.widget import Widget

from tui_agent.tui.downloads import Downloads
from tui_agent.tui.keymap import Keymap
from tui_agent.tui.screens.chat import ChatScreen
from tui_agent.tui.text import clean, one_line, short

if TYPE_CHECKING:
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


class HostApp(App[None]):
    """What screens and widgets may ask of the application."""

    session: SessionLike | None
    chat: ChatScreen
    keymap: Keymap
    project_name: str
    cursor_blink: bool
    theme_names: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.acting = 0
        self.downloads = Downloads(self)

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
            self.acting += 1
            try:
                return await action
            finally:
                self.acting -= 1

        self.fetch(counted(), done, owner=self.chat)

    @on(Done)
    def _done(self, message: Done) -> None:
        message.stop()
        # An application that closes takes its screens apart while messages still come in.
        if self.is_running:
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


def sentence(error: BaseException) -> str:
    """An exception as a sentence."""
    words = short(one_line(error), 400) or type(error).__name__
    return words if words.endswith((".", "!", "?")) else words + "."
