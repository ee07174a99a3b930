"""The lines around the chat: header, status, tabs, strip and keys. Each is one line that lays itself out by width."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from textual import events
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.timer import Timer

from tui_agent.tui.layout import Lines, join, label, spread
from tui_agent.tui.text import age, kilo, one_line, short, window
from tui_agent.tui.widgets.base import Plain

if TYPE_CHECKING:
    from tui_agent.agent.events import ContextUsage, Phase
    from tui_agent.agent.views import ServerStatus

_PHASES: dict[str, str] = {
    "saving": "saving",
    "recalling": "recalling",
    "connecting": "connecting",
    "loading": "loading model",
    "reading": "reading",
    "generating": "generating",
    "tool": "running a tool",
    "checking": "checking what to save",
    "draining": "waiting for the previous prompt to drain",
    "idle": "ready",
}
PANES = (("hot", "Hot"), ("cold", "Cold"), ("recalled", "Recalled"))


class HeaderLines(Lines):
    """``project ── model ── goal: …``."""

    def __init__(self, project: str, model: str, goal: str) -> None:
        super().__init__()
        self.project, self.model, self.goal = one_line(project), one_line(model), one_line(goal)

    def lines(self, width: int) -> list[Content]:
        parts = [(self.project, "bold $text")]
        if self.model:
            parts += [(" ── ", "$faint"), (self.model, "$said")]
        if self.goal and width >= 60:
            parts += [(" ── ", "$faint"), ("goal: ", "$quiet"), (self.goal, "$quiet")]
        return [join(*parts).truncate(width, ellipsis=True)]


@dataclass(slots=True)
class Status:
    """Everything the status line tells. ``since`` is the monotonic time the phase began, or, while ``silent``, the time
    of the last data."""

    phase: Phase = "idle"
    detail: str = ""
    since: float = 0.0
    silent: bool = False
    tokens_per_second: float | None = None
    usage: ContextUsage | None = None
    server: ServerStatus | None = None
    connected: bool = False
    failed: str = ""
    reviews: int = 0
    marks: tuple[str, ...] = field(default=())
    ways_out: tuple[tuple[str, str], ...] = ()


class StatusLines(Lines):
    """Phase with its age, speed, the context bar by parts, what is degraded."""

    def __init__(self, status: Status, now: float, help: str = "") -> None:
        super().__init__()
        self.status = status
        self.now = now
        self.help = help

    def lines(self, width: int) -> list[Content]:
        status = self.status
        parts: list[Content] = [self._phase()]
        if status.usage is not None:
            parts.append(self._context(status.usage, width))
        elif status.server is not None and status.server.num_ctx:
            parts.append(Content.styled(f"window {window(status.server.num_ctx)}", "$quiet"))
        if status.reviews and width >= 80:
            parts.append(Content.styled(f"{status.reviews} to review", "$act"))
        line = Content.styled(" · ", "$faint").join(parts)
        marks = [one_line(mark) for mark in status.marks]
        right = (
            Content.styled("▲ " + short(", ".join(marks), max(12, width // 2)), "$warning") if marks else Content("")
        )
        if not right and width < 80:
            right = Content.styled(self.help, "$quiet")
        server = status.server
        if server is not None and (server.memory_elsewhere or (server.ready and not server.local)):
            right = join(right, "  " if right else "", ("leaves this machine", "$warning"))
        return [spread(line, right, width)]

    def _phase(self) -> Content:
        status = self.status
        if status.failed:
            return Content.styled(f"✗ {one_line(status.failed)}", "$error")
        if not status.connected:
            return Content.styled(f"● connecting{self._age()}", "$act")
        if status.phase == "idle" and status.server is not None and not status.server.ready:
            return join(("○ no model yet", "$warning"), (" · /setup", "$act"))
        if status.phase == "idle":
            quick = status.tokens_per_second or 0.0  # after a stall there is no speed worth a number
            speed = f" · {quick:.0f} tok/s" if quick >= 0.5 else ""
            return join(("○ ready", "$quiet"), (speed, "$quiet"))
        if status.silent:
            return join((f"● no data for {age(self.now - status.since)}", "$warning"), (self._ways_out(), "$quiet"))
        words = one_line(status.detail) or _PHASES[status.phase]
        if status.phase == "generating" and status.tokens_per_second:
            words += f" {status.tokens_per_second:.0f} tok/s"
        return join(("● ", "$said"), (words, "$text"), (self._age(), "$quiet"))

    def _ways_out(self) -> str:
        return "".join(f" · {key} {word}" for key, word in self.status.ways_out)

    def _age(self) -> str:
        seconds = self.now - self.status.since
        return f" {age(seconds)}" if seconds >= 1 else ""

    def _context(self, usage: ContextUsage, width: int) -> Content:
        cells = 20 if width >= 120 else 10
        full = round(usage.used / usage.num_ctx * cells) if usage.num_ctx else 0
        tight = usage.num_ctx and usage.used > 0.8 * usage.num_ctx
        name = "context" if width >= 100 else "ctx"
        amount = f" {kilo(usage.used)}{' of ' if width >= 100 else '/'}{window(usage.num_ctx)}"
        line = join(
            (f"{name} ", "$quiet"),
            ("━" * min(cells, full), "$warning" if tight else "$act"),
            ("─" * max(0, cells - full), "$faint"),
            (amount, "$warning" if tight else "$text"),
        )
        if width >= 120 and usage.parts:
            parts = " ".join(f"{one_line(name)} {kilo(tokens)}" for name, tokens in usage.parts.items() if tokens)
            line = join(line, (f" ({parts})", "$quiet"))
        return line


class StatusLine(Plain):
    """The status line. Its one timer runs only while something is going on."""

    DEFAULT_CSS = "StatusLine { height: 1; padding: 0 2; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.status = Status(since=monotonic())
        self.help = ""
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        self.redraw()

    @property
    def ticking(self) -> bool:
        """Whether the timer runs."""
        return self._timer is not None

    def redraw(self) -> None:
        """Write the line anew, and start or stop the timer by whether there is an age to show."""
        working = not self.status.failed and (not self.status.connected or self.status.phase != "idle")
        if working and self._timer is None:
            self._timer = self.set_interval(1.0, self.redraw)
        elif not working and self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.update(StatusLines(self.status, monotonic(), self.help), layout=False)

    def phase(self, phase: Phase, detail: str = "", silent_s: float = 0.0) -> None:
        """Something else happens now; the age begins anew. ``silent_s`` is for how long no data has come."""
        status = self.status
        if silent_s:
            status.since = monotonic() - silent_s
        elif phase != status.phase or phase == "idle" or status.silent:
            status.since = monotonic()
        status.phase, status.detail, status.silent = phase, detail, silent_s > 0
        self.redraw()


class KeyLines(Lines):
    """``F1 help  F2 hot  …``: as many as fit, on at most ``most`` lines; what stands right is on the first."""

    def __init__(self, hints: list[tuple[str, str, str]], right: Content | None = None, most: int = 1) -> None:
        """``hints`` are ``(key, label, action id)``."""
        super().__init__()
        self.hints = hints
        self.right = right or Content("")
        self.most = most

    def lines(self, width: int) -> list[Content]:
        room = width - (self.right.cell_length + 2 if self.right else 0)
        rows: list[list[Content]] = [[]]
        used = 0
        for key, word, action in self.hints:
            hint = join((key, "$act"), " ", (word, "$quiet"))
            if used + hint.cell_length > room:
                if len(rows) == self.most:
                    break
                rows.append([])
                room, used = width, 0
            rows[-1].append(hint.stylize(Style.from_meta({"do": action})))
            used += hint.cell_length + 2
        first, *more = (Content("  ").join(parts) for parts in rows)
        return [spread(first, self.right, width), *(line.truncate(width) for line in more)]


class KeyBar(Plain):
    """One line of keys. A click on a key does what the key does."""

    DEFAULT_CSS = "KeyBar { height: 1; padding: 0 2; }"

    class Pressed(Message):
        """A key hint was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def show(self, hints: list[tuple[str, str, str]], right: Content | None = None, most: int = 1) -> None:
        self.update(KeyLines(hints, right, most), layout=most > 1)

    def on_click(self, event: events.Click) -> None:
        action = event.style.meta.get("do")
        if isinstance(action, str):
            event.stop()
            self.post_message(self.Pressed(action))


class TabLines(Lines):
    """``Hot 7 ◆2 │ Cold 128 │ Recalled 3``, the open one marked."""

    def __init__(self, counts: dict[str, str], active: str) -> None:
        super().__init__()
        self.counts = counts
        self.active = active

    def lines(self, width: int) -> list[Content]:
        parts: list[Content] = []
        for name, word in PANES:
            on = name == self.active
            tab = join((f" {word} {self.counts.get(name, '')} ", "bold $act reverse" if on else "$quiet"))
            parts.append(tab.stylize(Style.from_meta({"do": f"chat.{name}"})))
        return [Content.styled("│", "$faint").join(parts).truncate(width, ellipsis=True)]


class TabBar(KeyBar):
    """The tabs of the panes, where only one of them fits."""

    DEFAULT_CSS = "TabBar { height: 1; padding: 0 1; display: none; }"

    def tabs(self, counts: dict[str, str], active: str) -> None:
        self.update(TabLines(counts, active), layout=False)


class StripLines(Lines):
    """``hot 7 ◆2 · cold 128 · recalled 3        F2 F3 F4``: the panes of a small terminal in one line."""

    def __init__(self, counts: dict[str, str], keys: dict[str, str], reviews: int) -> None:
        super().__init__()
        self.counts, self.keys, self.reviews = counts, keys, reviews

    def lines(self, width: int) -> list[Content]:
        facts = [
            join((f"{name} ", "$quiet"), label(self.counts.get(name, ""))).stylize(
                Style.from_meta({"do": f"chat.{name}"})
            )
            for name, _ in PANES
        ]
        if self.reviews:
            review = Content.styled(f"review {self.reviews}", "$act")
            facts.append(review.stylize(Style.from_meta({"do": "app.remembered"})))
        keys = Content.styled("  ".join(f"{self.keys[name]}" for name, _ in PANES), "$act")
        return [spread(Content.styled(" · ", "$faint").join(facts), keys, width)]


class Strip(KeyBar):
    """The panes of a small terminal, as counts."""

    DEFAULT_CSS = "Strip { height: 1; padding: 0 2; display: none; }"

    def counts(self, counts: dict[str, str], keys: dict[str, str], reviews: int) -> None:
        self.update(StripLines(counts, keys, reviews), layout=False)
