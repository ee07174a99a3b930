"""Markdown laid out as lines, in one pass and without a widget per element.

A widget tree of a long answer costs a hundred widgets and a second of layout; the same answer as lines costs a
millisecond, wraps anew when the width changes, and can be selected with the mouse. The parsing is markdown-it's, the
colours of code are Pygments'.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rich.cells import cell_len
from textual.content import Content, Span
from textual.style import Style

from tui_agent.tui.layout import Line, join, wrapped
from tui_agent.tui.streaming import parser

if TYPE_CHECKING:
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode

_INLINE = {"strong": "bold $text", "em": "italic", "s": "strike"}
_HEADINGS = {"h1": "bold $said", "h2": "bold $said", "h3": "bold $text"}
_BULLETS = "•◦▪"
_OPENABLE = {"http", "https", "mailto"}


@dataclass(slots=True)
class Laid:
    """Laid-out markdown: its lines and the raw source of its code blocks, in order."""

    lines: list[Line] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)

    @property
    def plain(self) -> list[str]:
        """The text on screen, line by line."""
        return [line.content.plain.rstrip() for line in self.lines]


CodeLines = dict[tuple[str, tuple[Span, ...], int, int], list[Line]]


def lay_out(source: str, width: int, *, first_code: int = 1, kept: CodeLines | None = None) -> Laid:
    """``source`` (cleaned text) as lines of at most ``width`` cells; code blocks are numbered from ``first_code``.

    Blocks are separated by one blank line; there is none before the first or after the last. ``kept`` holds the lines
    of code of an earlier layout of the same, growing text: those that did not change stay the same objects.
    """
    from markdown_it.tree import SyntaxTreeNode

    laid = Laid()
    root = SyntaxTreeNode(parser().parse(source))
    laid.lines = _Layout(laid, first_code, {} if kept is None else kept).blocks(
        root.children, max(8, width), tight=False
    )
    return laid


class _Layout:
    def __init__(self, laid: Laid, first_code: int, kept: CodeLines) -> None:
        self.laid = laid
        self.next_code = first_code
        self.kept = kept

    def blocks(self, nodes: list[SyntaxTreeNode], width: int, *, tight: bool, depth: int = 0) -> list[Line]:
        lines: list[Line] = []
        for node in nodes:
            block = self.block(node, width, depth)
            if lines and block and not tight:
                lines.append(Line(Content("")))
            lines.extend(block)
        return lines

    def block(self, node: SyntaxTreeNode, width: int, depth: int) -> list[Line]:
        match node.type:
            case "paragraph":
                return _plain(wrapped(_inline(node), width))
            case "heading":
                return _plain(wrapped(_inline(node).stylize_before(_HEADINGS.get(node.tag, "bold $quiet")), width))
            case "bullet_list" | "ordered_list":
                return self.list_items(node, width, depth)
            case "blockquote":
                inner = self.blocks(list(node.children), width - 2, tight=False, depth=depth)
                return [
                    Line(join(("▏ ", "$faint"), line.content.stylize_before("$quiet")), line.target) for line in inner
                ]
            case "fence" | "code_block":
                return self.code(node.content, node.info.split()[0] if node.info.strip() else "", width)
            case "hr":
                return [Line(Content.styled("─" * width, "$faint"))]
            case "table":
                return _plain(_table(node, width))
            case "inline":
                return _plain(wrapped(_inline_tokens(node.to_tokens()), width))
            case _:
                return self.blocks(list(node.children), width, tight=False, depth=depth)

    def list_items(self, node: SyntaxTreeNode, width: int, depth: int) -> list[Line]:
        ordered = node.type == "ordered_list"
        number = int(node.attrs.get("start", 1)) if ordered else 1
        marks = [f"{number + index}." if ordered else _BULLETS[depth % 3] for index in range(len(node.children))]
        indent = max(map(cell_len, marks)) + 1
        tight = all(child.hidden for item in node.children for child in item.children if child.type == "paragraph")
        lines: list[Line] = []
        for mark, item in zip(marks, node.children, strict=True):
            inner = self.blocks(list(item.children), width - indent, tight=tight, depth=depth + 1)
            if lines and not tight:
                lines.append(Line(Content("")))
            for index, line in enumerate(inner or [Line(Content(""))]):
                prefix = (mark.rjust(indent - 1) + " ", "$said") if index == 0 else " " * indent
                lines.append(Line(join(prefix, line.content), line.target))
        return lines

    def code(self, source: str, language: str, width: int) -> list[Line]:
        number = self.next_code
        self.next_code += 1
        source = source.rstrip("\n")
        self.laid.codes.append(source)
        target = f"code:{number}"
        bar = Content.styled("┃ ", "$faint")
        name = f"[{number}]"
        laid: list[Line] = []
        for row in _coloured(source, language).split("\n", allow_blank=True):
            key = (row.plain, tuple(row.spans), width, number)
            if key not in self.kept:
                self.kept[key] = [Line(join(bar, line), target) for line in _code_line(row, max(8, width - 2))]
            laid.extend(self.kept[key])
        first = laid[0].content
        if first.cell_length + len(name) + 2 <= width:  # the number shares the first line when there is room
            laid[0] = Line(join(first, " " * (width - first.cell_length - len(name)), (name, "$faint")), target)
        else:
            laid.insert(0, Line(join(bar, " " * (width - 2 - len(name)), (name, "$faint")), target))
        return laid


def _code_line(row: Content, width: int) -> list[Content]:
    """A line of code; when too long, broken at spaces where it can be and indented two further than it begins."""
    if row.cell_length <= width:
        return [row]
    indent = len(row.plain) - len(row.plain.lstrip())
    indent = indent if indent < width // 2 else 0
    return wrapped(row[indent:], width, first=" " * indent, rest=" " * (indent + 2))


def _plain(contents: list[Content]) -> list[Line]:
    return [Line(content) for content in contents]


def _coloured(source: str, language: str) -> Content:
    from tui_agent.tui.code_colours import coloured

    return coloured(source, language)


def _inline(node: SyntaxTreeNode) -> Content:
    return _inline_tokens([token for child in node.children for token in child.to_tokens()])


def _inline_tokens(tokens: list[Token]) -> Content:
    """Inline markdown as one content; line breaks of the source stay line breaks."""
    parts: list[str] = []
    spans: list[Span] = []
    open_at: list[tuple[int, Style | str]] = []
    position = 0

    def add(value: str, style: str = "") -> None:
        nonlocal position
        if style and value:
            spans.append(Span(position, position + len(value), style))
        parts.append(value)
        position += len(value)

    for token in (child for parent in tokens for child in parent.children or []):
        kind = token.type
        if kind in ("text", "html_inline", "text_special"):
            add(token.content)
        elif kind in ("softbreak", "hardbreak"):
            add("\n")
        elif kind == "code_inline":
            add(token.content, "$code")
        elif kind == "image":
            add(f"[image: {token.content or 'no description'}] {token.attrGet('src') or ''}", "$quiet")
        elif kind == "link_open":
            open_at.append((position, _link_style(str(token.attrGet("href") or ""))))
        elif kind.endswith("_open"):
            open_at.append((position, _INLINE.get(kind[:-5], "")))
        elif kind.endswith("_close") and open_at:
            start, style = open_at.pop()
            if style and position > start:
                spans.append(Span(start, position, style))
        elif token.content:
            add(token.content)
    return Content("".join(parts), spans)


def _link_style(href: str) -> Style | str:
    """Underlined; a web or mail address also becomes a terminal hyperlink, which the terminal shows before opening."""
    try:
        safe = urlsplit(href).scheme in _OPENABLE and href.isprintable()
    except ValueError:
        safe = False
    return Style(underline=True, link=href) if safe else "underline"


def _table(node: SyntaxTreeNode, width: int) -> list[Content]:
    rows: list[list[Content]] = []
    for part in node.children:
        for row in part.children:
            style = "bold $text" if part.type == "thead" else ""
            rows.append([_inline(cell).stylize_before(style) if style else _inline(cell) for cell in row.children])
    columns = max(map(len, rows))
    natural = [max(_widest(row[index]) for row in rows if index < len(row)) for index in range(columns)]
    widths = _share(natural, width - 3 * (columns - 1))
    lines: list[Content] = []
    for number, contents in enumerate(rows):
        cells = [contents[index].wrap(widths[index]) if index < len(contents) else [] for index in range(columns)]
        for height in range(max(map(len, cells), default=0)):
            pieces: list[Content | tuple[str, str]] = []
            for index, rows_of_cell in enumerate(cells):
                if index:
                    pieces.append((" │ ", "$faint"))
                piece = rows_of_cell[height] if height < len(rows_of_cell) else Content("")
                pieces.append(piece.truncate(widths[index], pad=True))
            lines.append(join(*pieces).truncate(width))
        if number == 0:
            lines.append(Content.styled("─┼─".join("─" * w for w in widths), "$faint").truncate(width))
    return lines


def _widest(content: Content) -> int:
    return max((cell_len(line) for line in content.plain.split("\n")), default=1) or 1


def _share(natural: list[int], room: int) -> list[int]:
    """Column widths that fit into ``room``: narrow columns keep theirs, wide ones share what is left."""
    room = max(room, 3 * len(natural))
    widths = [0] * len(natural)
    open_columns = sorted(range(len(natural)), key=lambda index: natural[index])
    while open_columns:
        fair = max(3, room // len(open_columns))
        index = open_columns.pop(0)
        widths[index] = min(natural[index], fair)
        room -= widths[index]
    return widths
