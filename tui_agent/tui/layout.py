"""Lines: the unit everything is drawn in. A line is styled text and, when a click or key can act on it, a target.

Styles are theme variables by name (``$quiet``), so one laid-out line serves every theme.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

from tui_agent.tui.text import bar, clean, one_line

Part = str | Content | tuple[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """One screen line. ``target`` names what a click on it acts on (``code:2``, ``fold:call_1``), if anything."""

    content: Content
    target: str = ""


def text(value: object, style: str = "") -> Content:
    """Foreign text as content: cleaned, never parsed as markup, line ends kept."""
    return Content.styled(clean(value), style)


def label(value: object, style: str = "") -> Content:
    """Foreign text as content on one line."""
    return Content.styled(one_line(value), style)


def join(*parts: Part) -> Content:
    """Pieces of our own text and content side by side; tuples are ``(text, style)``."""
    return Content.assemble(*parts)


def spread(left: Content, right: Content, width: int, *, gap: int = 2) -> Content:
    """``left`` and ``right`` on one line of ``width`` cells; the left part gives way, and the right one when alone
    it would not fit."""
    if right.cell_length + gap >= width or not right:
        return left.truncate(width, ellipsis=True, pad=True)
    room = width - right.cell_length - gap
    return join(left.truncate(room, ellipsis=True, pad=True), " " * gap, right)


def gauge(value: float, full: float, width: int) -> Content:
    """How much of ``full`` there is, as a bar of ``width`` cells with what is left as a thin line."""
    done = bar(value, full, width).rstrip()
    return join((done, "$meter"), ("─" * (width - len(done)), "$faint"))


def wrapped(content: Content, width: int, *, first: Part = "", rest: Part = "", limit: int = 0) -> list[Content]:
    """``content`` wrapped to ``width`` with a prefix for the first and for all other lines; at most ``limit`` lines."""
    first, rest = _content(first), _content(rest)
    room = max(4, width - max(first.cell_length, rest.cell_length))
    lines = content.wrap(room) or [Content("")]
    if limit and len(lines) > limit:
        lines = lines[:limit]
        lines[-1] = join(lines[-1].rstrip().truncate(room - 1), "…")
    return [join(rest if index else first, line) for index, line in enumerate(lines)]


def _content(part: Part) -> Content:
    return part if isinstance(part, Content) else join(part)


class Lines(Visual):
    """Something that knows its lines at any width. Subclasses implement :meth:`lines`; the last width is kept."""

    def __init__(self) -> None:
        self._kept: tuple[int, list[Content]] | None = None

    def lines(self, width: int) -> list[Content]:
        """The lines at ``width`` cells."""
        raise NotImplementedError

    def at(self, width: int) -> list[Content]:
        """The lines at ``width``, kept until the width changes."""
        if self._kept is None or self._kept[0] != width:
            self._kept = (width, self.lines(width))
        return self._kept[1]

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        """Part of the Visual protocol."""
        if width <= 0:
            return []
        rules: RulesMap = {"text_wrap": "nowrap", "text_overflow": "clip"}
        fixed = RenderOptions(options.get_style, rules, options.selection, options.selection_style, options.post_style)
        return Content("\n").join(self.at(width)).render_strips(width, height, style, fixed)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """Part of the Visual protocol: as wide as there is room."""
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """Part of the Visual protocol."""
        return len(self.at(max(1, width)))
