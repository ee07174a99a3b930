"""Base widgets that never parse markup: every text that is not ours goes through these."""

from __future__ import annotations

from textual.content import Content
from textual.selection import Selection
from textual.visual import VisualType
from textual.widgets import Static

from tui_agent.tui.layout import Lines
from tui_agent.tui.text import clean


class Plain(Static):
    """A ``Static`` for foreign text: a string is cleaned and shown as it is, whatever brackets it holds."""

    def __init__(
        self, content: VisualType = "", *, id: str | None = None, classes: str | None = None, name: str | None = None
    ) -> None:
        super().__init__(_safe(content), markup=False, id=id, classes=classes, name=name)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show other content."""
        super().update(_safe(content), layout=layout)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, also of visuals that lay themselves out by width."""
        visual = self.visual
        if isinstance(visual, Lines):
            lines = visual.at(max(1, self.content_size.width))
            return selection.extract("\n".join(line.plain.rstrip() for line in lines)), "\n"
        return super().get_selection(selection)


def _safe(content: VisualType) -> VisualType:
    return Content(clean(content)) if isinstance(content, str) else content
