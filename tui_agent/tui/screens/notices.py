"""Sentences of the program in the conversation: shown once, replaced when they change, gone when their trouble is."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

from tui_agent.tui.entries import Entry, NoticeEntry, WelcomeEntry
from tui_agent.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from tui_agent.agent import events as ev
    from tui_agent.agent.firstrun import FirstRun
    from tui_agent.tui.app import TuiAgentApp

# What is said of a state: of another server or model it is said anew, in place of the old.
_REPLACED = frozenset({"server", "no_tools"})


class NoticeScreen(Screen[None]):
    """A screen with a transcript that the program can say something in."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._seen_notices: set[str] = set()

    @property
    def host(self) -> TuiAgentApp:
        """The application, by its real type."""
        return cast("TuiAgentApp", self.app)

    @property
    def transcript(self) -> Transcript:
        return self.query_one("#transcript", Transcript)

    def _add(self, entry: Entry) -> None:
        if any(isinstance(old, WelcomeEntry) for old in self.transcript.entries):
            self.transcript.load([old for old in self.transcript.entries if not isinstance(old, WelcomeEntry)])
        self.transcript.add(entry)

    def _notice(self, notice: ev.Notice) -> None:
        old = next((e for e in self.transcript.entries if isinstance(e, NoticeEntry) and e.about == notice.key), None)
        if notice.key in _REPLACED and old is not None and old.sentence != notice.text:
            self.settled(notice.key)
        if notice.key and notice.key in self._seen_notices:
            return
        self._seen_notices.add(notice.key)
        self._number += 1
        self._add(NoticeEntry.of(notice, self._number))

    def tell(self, sentence: str) -> None:
        """A quiet line in the conversation."""
        from tui_agent.agent.events import Notice

        self._notice(Notice("info", sentence))

    def forget_told(self) -> None:
        """Another conversation is opened: lines that belong to this one go, what is said of the program stays."""
        self.transcript.take_out(lambda entry: isinstance(entry, NoticeEntry) and not entry.about)

    def not_set_up(self, walk: FirstRun) -> None:
        """The first run was left: what is missing now, in place of what was said at the start."""
        from tui_agent.agent.events import Notice
        from tui_agent.agent.firstrun import missing

        self._notice(Notice("warning", f"{walk.error or missing(walk.facts)} /setup asks again.", key="server"))

    def settled(self, about: str) -> None:
        """A trouble is over: its notice goes, and would be shown anew if it came back."""
        self._seen_notices.discard(about)
        gone = self.transcript.take_out(lambda entry: isinstance(entry, NoticeEntry) and entry.about == about)
        left = self.transcript.entries
        if gone and all(isinstance(entry, NoticeEntry) for entry in left):
            self.transcript.load([WelcomeEntry(self.host.project_name), *left])
