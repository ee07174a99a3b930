"""A conversation: sending, the events of a turn as they arrive, and what keys ask of an answer.

Events of the session arrive as :class:`Happened` messages; the handlers here own all state of the conversation.
Streamed text is only collected when it arrives and drawn at most twelve times a second, less often when drawing is
slow. The panes around the conversation are the business of the subclass.
"""

from __future__ import annotations

from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message
from textual.timer import Timer

from tui_agent.tui.answer import AnswerEntry, ToolPart
from tui_agent.tui.entries import FileEntry, UserEntry
from tui_agent.tui.keymap import shown
from tui_agent.tui.screens.notices import NoticeScreen
from tui_agent.tui.text import clean, one_line, short
from tui_agent.tui.widgets.bars import StatusLine
from tui_agent.tui.widgets.composer import Composer
from tui_agent.tui.widgets.transcript import Transcript

if TYPE_CHECKING:
    from tui_agent.agent import events as ev
    from tui_agent.agent.views import ActionResult
    from tui_agent.memory.types import RecallRecord

FRAME_S = 1 / 12


class Happened(Message):
    """An event of the session; ``in_turn`` when it belongs to the running turn, ``answered`` when a key caused it
    and its outcome is told anyway."""

    def __init__(self, event: ev.Event, *, in_turn: bool, answered: bool = False) -> None:
        super().__init__()
        self.event = event
        self.in_turn = in_turn
        self.answered = answered


class TurnScreen(NoticeScreen):
    """A screen with a transcript, a composer and a status line, and the turns between them."""

    def __init__(self) -> None:
        super().__init__()
        self.running = False
        self.answer: AnswerEntry | None = None
        self._frame: Timer | None = None
        self._frame_cost = 0.0
        self._pieces = 0
        self._first_piece_at = 0.0
        self._question = ""
        self._user_saved = True
        self._ask_again = False

    @property
    def composer(self) -> Composer:
        return self.query_one("#composer", Composer)

    @property
    def status(self) -> StatusLine:
        return self.query_one("#status", StatusLine)

    # -- what the subclass shows -------------------------------------------------------------------------------------

    def refresh_panes(self) -> None:
        """The working memory changed."""

    def refresh_server(self) -> None:
        """The server may have changed."""

    def refresh_keys(self) -> None:
        """Other keys work now."""

    def refresh_reviews(self) -> None:
        """Something waits for approval."""

    def show_recall(self, entry: AnswerEntry | None) -> None:
        """The recall record of an answer is known."""

    # -- sending -----------------------------------------------------------------------------------------------------

    @on(Composer.Sent)
    def _sent(self, event: Composer.Sent) -> None:
        event.stop()
        if event.text == event.typed and self.host.command(event.typed):
            return
        if self.running or self.host.session is None:
            self.composer.enqueue(event.text)
            if self.host.session is None:
                self.host.connect()
            else:
                self.host.session.hurry()
        else:
            self.send(event.text)

    def send(self, text: str) -> None:
        """Start a turn."""
        session = self.host.session
        if session is None or self.running:
            self.composer.enqueue(text)
            return
        self._begin(text)
        self.host.run_turn(session.send(text))

    def _begin(self, text: str) -> None:
        """A turn begins that answers ``text``."""
        self.running = True
        self._question = text
        self._user_saved = False
        self._pieces = 0
        self.transcript.following = True
        self.status.status.tokens_per_second = None
        self.status.phase("saving")
        self.refresh_keys()

    def _send_next(self) -> None:
        text = self.composer.queue.next() if not self.running and self.host.session is not None else None
        if text is not None:
            self.composer.show_queue()
            self.send(text)

    @on(Composer.Drafted)
    def _drafted(self, event: Composer.Drafted) -> None:
        session = self.host.session
        if session is not None:
            self.host.fetch(session.save_draft(event.text), lambda _: None, owner=self)

    @on(Composer.Scrolled)
    def _scrolled(self, event: Composer.Scrolled) -> None:
        transcript = self.transcript
        {
            "page_up": transcript.action_page_up,
            "page_down": transcript.action_page_down,
            "line_up": transcript.action_scroll_up,
            "line_down": transcript.action_scroll_down,
        }[event.what]()

    @on(Transcript.Followed)
    def _followed(self) -> None:
        key = shown(self.host.keymap.keys("chat.to_end"))
        self.composer.mark(f"↓ new · {key}" if self.transcript.unseen else "")

    # -- events of the session ---------------------------------------------------------------------------------------

    @on(Happened)
    def _happened(self, message: Happened) -> None:
        from tui_agent.agent import events as ev

        event = message.event
        match event:
            case ev.TextDelta():
                self._text(event.text)
            case ev.TextReplaced():
                self._current().replace_text(event.text)
                self._redraw()
            case ev.ThinkingDelta():
                self._current().thinking += clean(event.text)
                self._wish_frame()
            case ev.PhaseChanged():
                self.status.status.ways_out = tuple(
                    (shown(self.host.keymap.keys(f"chat.{name}")), word)
                    for name, word in (("stop", "stop"), ("again", "ask again"))
                )
                self.status.phase(event.phase, event.detail, event.silent_s)
                if event.phase == "idle":
                    self.refresh_server()
            case ev.UserSaved():
                self._user_saved = True
                self._add(UserEntry(event.message_id, event.text, self.host.now(), redacted=event.redacted))
            case ev.Recalled():
                self._recalled(event.record)
            case ev.ToolStarted():
                part = ToolPart(event.call_id, one_line(event.name), dict(event.arguments), event.rescued)
                self._current().add_tool(part)
                self._redraw()
            case ev.ToolFinished():
                self._tool_finished(event)
            case ev.MemoryChanged():
                self._memory_changed(event, in_turn=message.in_turn, answered=message.answered)
            case ev.FileChanged():
                self._number += 1
                self._add(FileEntry(f"file:{self._number}", event))
            case ev.ContextUsage():
                self.status.status.usage = event
                self.status.redraw()
            case ev.SaveMissing():
                answer = self.transcript.answer(event.message_id) or self.answer or self._last_answer()
                if answer is not None:
                    answer.missing = event
                    self.transcript.changed(answer)
            case ev.NotSeen():
                answer = self.answer or self._last_answer()
                if answer is not None:
                    answer.unseen = event
                    self.transcript.changed(answer)
            case ev.IndexChanged():
                self.refresh_server()
            case ev.Learned():
                self._learned(event)
            case ev.Notice():
                self._notice(event)
            case ev.TurnFinished():
                self._finished(event)

    def _current(self) -> AnswerEntry:
        """The answer that grows now; the first event of an answer begins it."""
        if self.answer is None:
            self._number += 1
            self.answer = AnswerEntry(f"live:{self._number}", self.host.now())
            self.answer.question = self._question
            self._add(self.answer)
        return self.answer

    def _last_answer(self) -> AnswerEntry | None:
        return next((entry for entry in reversed(self.transcript.entries) if isinstance(entry, AnswerEntry)), None)

    def _text(self, piece: str) -> None:
        now = monotonic()
        if self._pieces == 0:
            self._first_piece_at = now
        self._pieces += 1
        if now - self._first_piece_at > 0.8:
            self.status.status.tokens_per_second = self._pieces / (now - self._first_piece_at)
        self._current().add_text(piece)
        self._wish_frame()

    def _wish_frame(self) -> None:
        if self._frame is None:
            self._frame = self.set_timer(max(FRAME_S, 4 * self._frame_cost), self._draw_frame)

    def _draw_frame(self) -> None:
        self._frame = None
        self._redraw()

    def _redraw(self) -> None:
        if self.answer is None:
            return
        began = perf_counter()
        self.answer.advance()
        self.transcript.changed(self.answer)
        self._frame_cost = perf_counter() - began

    def _recalled(self, record: RecallRecord) -> None:
        answer = self._current()
        answer.recall, answer.recall_known = record, True
        self._redraw()
        self.show_recall(answer)

    def _tool_finished(self, event: ev.ToolFinished) -> None:
        answer = self._current()
        part = answer.tool(event.call_id)
        if part is None:
            part = ToolPart(event.call_id, one_line(event.name), {})
            answer.add_tool(part)
        part.running, part.ok, part.result, part.summary = False, event.ok, clean(event.result), one_line(event.summary)
        self._redraw()
        self.refresh_panes()

    def _memory_changed(self, event: ev.MemoryChanged, *, in_turn: bool, answered: bool) -> None:
        self.refresh_panes()
        if event.what == "quarantined":
            self.refresh_reviews()
        answer = self.answer if in_turn else None
        if answer is not None:
            answer.changes.append(event)
            self._redraw()
        elif in_turn and (last := self._last_answer()) is not None:
            last.changes.append(event)
            self.transcript.changed(last)
        elif event.zone in ("fact", "file") and not answered:
            undo = f" · {shown(self.host.keymap.keys('chat.undo'))} undo" if event.undo else ""
            self.host.say(f"{event.what.replace('_', ' ').capitalize()}: {short(one_line(event.text), 160)}{undo}")

    def _learned(self, event: ev.Learned) -> None:
        """A conversation was searched in the background: one quiet line; the page behind it has the details."""
        from tui_agent.agent.events import Notice

        undo = f"; {shown(self.host.keymap.keys('chat.undo'))} takes back the last" if _kept(event) else ""
        self._notice(Notice("info", f"{event.summary} /learned shows it all{undo}."))
        self.refresh_panes()
        self.refresh_reviews()

    def _finished(self, event: ev.TurnFinished) -> None:
        if self._frame is not None:
            self._frame.stop()
            self._frame = None
        if self.answer is None and (event.text or event.status != "answered"):
            self._current()
        answer, self.answer = self.answer, None
        if answer is not None:
            answer.finish(event)
            self.transcript.changed(answer)
            self.show_recall(answer)
        self.running = False
        self.status.status.tokens_per_second = event.tokens_per_second or self.status.status.tokens_per_second
        self.status.phase("idle")
        self.refresh_panes()
        self.refresh_server()
        self.refresh_keys()
        if not self._user_saved:  # it reached no disk: the editor is the only place left for it
            self.composer.put_back(self._question)
        again, self._ask_again = self._ask_again, False
        if again:
            self.send(self._question)
        elif event.status == "stopped":
            self.composer.return_queue()
        else:
            self._send_next()

    # -- what keys ask for ---------------------------------------------------------------------------------------------

    @on(Transcript.Asked)
    def _transcript_asked(self, event: Transcript.Asked) -> None:
        event.stop()
        if event.what.startswith("code "):
            self.host.copy(event.text, f"code block {event.what[5:]}")
        elif event.what == "undo":
            self.action_undo()
        elif event.what in ("larger", "shorter", "ignore"):
            self._unseen(event.entry, event.what)
        elif event.entry is not None:
            {"why": self._why, "copy": self._copy, "save": self._save, "retry": self._retry}[event.what](event.entry)

    def _why(self, entry: AnswerEntry | None) -> None:
        if entry is None or entry.recall is None:
            self.host.say("Nothing was recalled for this answer.")
        else:
            from tui_agent.tui.screens.why import WhyScreen

            self.app.push_screen(WhyScreen(entry.recall, entry.created_at, entry.message_id))

    def _unseen(self, entry: AnswerEntry | None, what: str) -> None:
        """The model did not see the beginning: ask again with more room, or let it be."""
        session = self.host.session
        if session is None or entry is None or entry.unseen is None:
            self.host.say("The model saw everything that was sent for this answer.")
        elif what == "ignore":
            entry.unseen_ignored = True
            self.transcript.changed_quietly(entry)
        elif self.running:
            self.host.say("An answer is running; esc stops it.")
        elif entry is not self._last_answer():
            self.host.say("Only the newest question can be asked again; send this one anew.")
        elif what == "larger" and not entry.unseen.larger:
            self.host.say("The model or the server has no larger window.", "warning")
        else:
            entry.unseen_ignored = True
            self.transcript.changed_quietly(entry)
            self._begin(entry.question)
            self._user_saved = True
            self.host.run_turn(session.retry("larger" if what == "larger" else "shorter"))

    def _copy(self, entry: AnswerEntry) -> None:
        self.host.copy(entry.source, "the answer")

    def _save(self, entry: AnswerEntry) -> None:
        session, missing = self.host.session, entry.missing
        if session is None or missing is None or not entry.can_save:
            self.host.say("There is nothing to save for this answer.")
            return

        def done(result: ActionResult) -> None:
            if result.ok:
                entry.saved_as = one_line(result.text)
                self.transcript.changed_quietly(entry)

        self.host.act(session.save_sentence(missing.message_id, missing.sentence, missing.target), done)

    def _retry(self, entry: AnswerEntry) -> None:
        if self.running:
            self.host.say("An answer is running; esc stops it.")
        elif entry.status == "cut_off":
            self.send("Continue exactly where you stopped.")
        elif entry.question and entry.status != "complete":
            self.composer.put_back(entry.question)
        else:
            self.host.say("This answer is complete.")

    def action_again(self) -> None:
        """Stop the running answer and send the same message once more."""
        session = self.host.session
        if not self.running or session is None:
            last = self._last_answer()
            if last is not None:
                self._retry(last)
            return
        self._ask_again = True
        self.status.phase("draining", "stopping")
        self.host.fetch(session.stop(), lambda _: None, owner=self)

    def action_why(self) -> None:
        self._why(self.transcript.selected)

    def action_copy(self) -> None:
        if self.transcript.selected is not None:
            self._copy(self.transcript.selected)

    def action_save(self) -> None:
        selected = self.transcript.selected
        last = self._last_answer()
        target = selected if selected is not None and selected.can_save else last
        if target is not None:
            self._save(target)

    def action_undo(self) -> None:
        session = self.host.session
        if session is not None:
            self.host.act(session.undo())


def _kept(event: ev.Learned) -> bool:
    return any(item.what == "kept" for item in event.items)
