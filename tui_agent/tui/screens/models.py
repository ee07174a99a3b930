"""The models of the server: what is installed and loaded, choosing one, downloads, unloading, trying tool calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType
from textual.content import Content

from tui_agent.agent.models import ModelView, share_words, stay_words
from tui_agent.agent.views import ActionResult
from tui_agent.llm.probe import WORDS
from tui_agent.tui import text as texts
from tui_agent.tui.actions import bindings
from tui_agent.tui.downloads import Download
from tui_agent.tui.layout import gauge, join, label, spread
from tui_agent.tui.screens.lists import ListPanel
from tui_agent.tui.screens.panel import Question
from tui_agent.tui.text import megabytes, one_line, plural, window
from tui_agent.tui.widgets.rows import Empty, Row

LOAD_S = 5.0


def facts_of(view: ModelView) -> tuple[str, ...]:
    """The columns behind a model's name: its kind, size, window, and what it can do."""
    item = view.info
    return (
        " ".join(filter(None, (one_line(item.parameter_size), one_line(item.quantization)))),
        megabytes(item.size),
        f"window {window(item.context_length)}" if item.context_length else "",
        ", ".join(filter(None, (*map(one_line, view.abilities), "leaves this machine" if item.remote else ""))),
    )


class ModelRow(Row):
    """``name   7.6B Q4_K_M   4.7 GB   window 32k   tools`` in columns that all rows share (``widths``, the name's
    first), and below it where it runs while it is loaded. Where there is no room the kind goes; where there is less the
    rest stands below the name."""

    def __init__(self, view: ModelView, widths: Sequence[int]) -> None:
        super().__init__(view.info.name)
        self.view = view
        self.widths = widths

    def lines(self, width: int) -> list[Content]:
        view, item = self.view, self.view.info
        kind, size, room, can = facts_of(view)
        longest, *sizes = self.widths
        columns = [kind.ljust(sizes[0]), size.rjust(sizes[1]), room.rjust(sizes[2]), can.ljust(sizes[3])]
        name = join(("● " if view.current else "  ", "$said"), label(item.name, "bold" if view.current else ""))
        for places in ((0, 1, 2, 3), (1, 2, 3)):
            right = "  ".join(columns[place] for place in places if sizes[place])
            if longest + 4 + cell_len(right) <= width:
                lines = [spread(name, Content.styled(right, "$quiet"), width)]
                break
        else:
            words = " · ".join(filter(None, (size, room, can)))
            lines = [
                name.truncate(width, ellipsis=True),
                join("    ", (words, "$quiet")).truncate(width, ellipsis=True),
            ]
        running = view.running
        if running is not None:
            now = ["loaded", share_words(running)]
            now.append(f"window {window(running.context_length)}" if running.context_length else "")
            now.append(stay_words(running.expires_at, texts.now()))
            words = " · ".join(one_line(part) for part in now if part)
            lines.append(join("    ", (words, "$act")).truncate(width, ellipsis=True))
        return lines


class DownloadRow(Row):
    """A download: the whole as a bar, then its layers."""

    def __init__(self, job: Download) -> None:
        super().__init__(f"pull {job.name}")
        self.job = job

    def lines(self, width: int) -> list[Content]:
        job, state = self.job, self.job.state
        head = join(("↓ ", "$said"), label(job.name))
        if job.error:
            return [head, join("    ", (one_line(job.error), "$warning")).truncate(width, ellipsis=True)]
        if state is None:
            return [spread(head, Content.styled("asking", "$quiet"), width)]
        facts = [f"{state.share:.0%}"]
        if state.total:
            facts.append(f"{megabytes(state.completed) or '0 MB'} of {megabytes(state.total)}")
        if state.bytes_per_second:
            facts.append(f"{state.bytes_per_second / 1e6:.1f} MB/s")
        if state.seconds_left is not None:
            facts.append(f"{texts.age(state.seconds_left)} left")
        lines = [spread(head, Content.styled(" · ".join(facts), "$quiet"), width)]
        for layer in state.layers:
            if layer.completed < layer.total:
                meter = gauge(layer.completed, layer.total, max(8, min(40, width - 40)))
                size = f" {megabytes(layer.completed) or '0 MB'} of {megabytes(layer.total)}"
                part = join("    ", (one_line(layer.digest)[:12], "$faint"), "  ", meter, (size, "$quiet"))
                lines.append(part.truncate(width, ellipsis=True))
        if state.silent_s:
            words = f"no data for {texts.age(state.silent_s)} · x stops it, p goes on where it stopped"
            lines.append(join("    ", (words, "$warning")).truncate(width, ellipsis=True))
        elif one_line(state.status) and not state.status.startswith("pulling "):
            lines.append(join("    ", (one_line(state.status), "$quiet")).truncate(width, ellipsis=True))
        return lines


class ModelsScreen(ListPanel[str]):
    """The models of the server. Dismissed with the name of the one to use, or nothing."""

    kind = "models"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("models"))
    DEFAULT_CSS = "ModelsScreen > .panel { width: 116; }"

    def __init__(self) -> None:
        super().__init__()
        self.views: list[ModelView] = []
        self.trouble = ""
        self._asking = False
        self._unlisten: Callable[[], None] | None = None

    def on_mount(self) -> None:
        self.set_title("Models", one_line(self.session.server.url))
        self.list.show([Empty("Asking the server …")])
        self._unlisten = self.host.downloads.listen(self._download_moved)
        self.load()
        self.set_interval(LOAD_S, self.load)

    def on_unmount(self) -> None:
        if self._unlisten is not None:
            self._unlisten()

    def load(self) -> None:
        """Ask the server again; once at a time."""
        if not self._asking:
            self._asking = True
            self.host.fetch(self._ask(), self.show, owner=self)

    async def _ask(self) -> tuple[list[ModelView], str]:
        try:
            return await self.session.model_desk.installed(), ""
        except Exception as error:
            return [], one_line(error)
        finally:
            self._asking = False

    def show(self, found: tuple[list[ModelView], str]) -> None:
        views, trouble = found
        if trouble and trouble != self.trouble:
            self.host.say(trouble, "error")
        self.views, self.trouble = views, trouble
        if views:
            self.set_title("Models", f"{plural(len(views), 'model')} · {one_line(self.session.server.url)}")
        self.search_changed()

    def search_changed(self) -> None:
        needle = self.words.casefold()
        rows: list[Row] = [DownloadRow(job) for job in self.host.downloads.shown]
        views = [view for view in self.views if needle in view.info.name.casefold()]
        cells = [(one_line(view.info.name), *facts_of(view)) for view in views]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rows += [ModelRow(view, widths) for view in views]
        nothing = self.trouble or (
            f"No model is called “{self.words}”." if needle else "The server has no model yet; p downloads one."
        )
        self.list.show(rows or [Empty(nothing)])
        self.show_keys()

    def _download_moved(self) -> None:
        if not self.is_attached:
            return
        jobs = self.host.downloads.shown
        if any(job.over for job in jobs) or not jobs:
            self.load()
        self.search_changed()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "stop":
            return any(not job.over for job in self.host.downloads.shown)
        return True

    def chosen(self, row: Row) -> None:
        if isinstance(row, ModelRow):
            self.dismiss(row.key)

    def _current_name(self) -> str:
        row = self.list.current
        return row.job.name if isinstance(row, DownloadRow) else row.key if isinstance(row, ModelRow) else ""

    def action_pull(self) -> None:
        row = self.list.current
        again = row.job.name if isinstance(row, DownloadRow) else ""

        def answered(name: str | None) -> None:
            if name and name.strip():
                self.host.downloads.start(name.strip(), self.session.model_desk.pull)

        words = "Its name as in ollama.com/library. A download that was stopped goes on where it stopped."
        self.app.push_screen(Question("Download a model", words, value=again, placeholder="qwen3:4b"), answered)

    def action_stop(self) -> None:
        name = self._current_name()
        jobs = [job for job in self.host.downloads.shown if not job.over]
        job = next((job for job in jobs if job.name == name), jobs[0] if jobs else None)
        if job is not None:
            self.host.downloads.stop(job.name)

    def action_unload(self) -> None:
        row = self.list.current
        if isinstance(row, ModelRow):
            self.host.act(self._unload(row.key), self._acted)

    async def _unload(self, name: str) -> ActionResult:
        return ActionResult(True, await self.session.model_desk.unload(name))

    def action_probe(self) -> None:
        row = self.list.current
        if not isinstance(row, ModelRow):
            return
        if self.session.busy:
            self.host.say("An answer is running; esc stops it.", "warning")
            return
        self.host.say(f"Asking {one_line(row.key)} to call a tool …")
        self.host.act(self._probe(row.key), self._acted)

    async def _probe(self, name: str) -> ActionResult:
        found = await self.session.model_desk.probe(name)
        return ActionResult(
            True, f"{name} {WORDS[found]}. That counts from the next start on, or when it is chosen anew."
        )

    def action_refresh(self) -> None:
        self.load()

    def _acted(self, result: ActionResult) -> None:
        if self.is_attached:
            self.load()
