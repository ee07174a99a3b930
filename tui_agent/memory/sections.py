"""Places in a Markdown text: exact matches, and single lines in its sections. What is around them is never touched."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tui_agent.memory.places import EditRefused
from tui_agent.memory.text import normalise

_RAW_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # splitlines also splits at U+2028, form feed and more, where files do not
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LIST_MARK = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")


@dataclass(frozen=True, slots=True)
class _Line:
    """One line: its place in the text, its words without the line end, and whether it is inside a code fence."""

    start: int
    end: int
    text: str
    fenced: bool


def _lines(text: str) -> Iterator[_Line]:
    start, fence = 0, ""
    for raw in _RAW_LINE.findall(text):
        body = raw.rstrip("\r\n")
        mark = _FENCE.match(body)
        inside = bool(fence)
        if mark and not fence:
            fence, inside = mark[1], True
        elif mark and fence and mark[1].startswith(fence[:1]) and len(mark[1]) >= len(fence):
            fence = ""
        yield _Line(start, start + len(raw), body, inside)
        start += len(raw)


def _body(text: str, section: str) -> tuple[_Line | None, list[_Line]] | None:
    """The heading of a section and the lines directly below it, up to the next heading of any level.

    An empty ``section`` is the whole text without a heading. ``None`` when there is no such section.
    """
    lines = list(_lines(text))
    if not section:
        return None, lines
    wanted = normalise(section)
    for number, line in enumerate(lines):
        heading = None if line.fenced else _HEADING.fullmatch(line.text)
        if heading and normalise(heading[2]) == wanted:
            rest = lines[number + 1 :]
            stop = next((n for n, one in enumerate(rest) if not one.fenced and _HEADING.fullmatch(one.text)), len(rest))
            return line, rest[:stop]
    return None


def statement(line: str) -> str:
    """What a line says, without indentation and list mark, as it is compared."""
    return normalise(_LIST_MARK.sub("", line, count=1))


def section_lines(text: str, section: str = "") -> list[str]:
    """The non-empty lines of a section (of the whole text when empty), headings left out, in order."""
    found = _body(text, section)
    return [
        line.text for line in (found[1] if found else ())
        if line.text.strip() and (line.fenced or not _HEADING.fullmatch(line.text))
    ]  # fmt: skip


def _find(text: str, section: str, wanted: str) -> _Line | None:
    """The line with exactly these words, else the first that says the same."""
    found = _body(text, section)
    lines = [line for line in (found[1] if found else ()) if not line.fenced]
    exact = next((line for line in lines if line.text.strip() == wanted.strip()), None)
    key = statement(wanted)
    return exact or next((line for line in lines if key and statement(line.text) == key), None)


def has_line(text: str, section: str, line: str) -> bool:
    """Whether the section already says this."""
    return _find(text, section, line) is not None


def insert_line(text: str, section: str, line: str, newline: str = "\n") -> str:
    """``text`` with ``line`` at the end of the section, which is added at the end of the text when missing."""
    found = _body(text, section)
    if found is None:
        closed = not text or text.endswith(("\n\n", "\n\r\n"))
        gap = "" if closed else newline if text.endswith("\n") else newline * 2
        return f"{text}{gap}## {section}{newline}{newline}{line}{newline}"
    heading, body = found
    filled = [one for one in body if one.text.strip()]
    if filled:
        last = filled[-1]
        joins = not section or not _LIST_MARK.match(line) or _LIST_MARK.match(last.text) or last.text[:1].isspace()
        at, before, after = last.end, "" if joins else newline, ""
    elif heading is None:
        at, before, after = len(text), "", ""
    else:
        blank = body[0] if body else None
        at, before = (blank.end, "") if blank else (heading.end, newline)
        after = newline if len(body) < 2 and at < len(text) else ""
    lead = newline if at and not text[:at].endswith("\n") else ""
    return f"{text[:at]}{lead}{before}{line}{newline}{after}{text[at:]}"


def swap_line(text: str, section: str, old: str, new: str) -> str | None:
    """``text`` with ``new`` in the place of the line that says ``old``; indentation and line end stay.

    ``None`` when no line of the section says it.
    """
    line = _find(text, section, old)
    if line is None:
        return None
    indent = line.text[: len(line.text) - len(line.text.lstrip())]
    return text[: line.start] + indent + new.lstrip() + text[line.start + len(line.text) :]


def drop_line(text: str, section: str, line: str) -> str | None:
    """``text`` without the line that says this; ``None`` when no line does."""
    found = _find(text, section, line)
    return None if found is None else text[: found.start] + text[found.end :]


def line_diff(old: str, new: str, noun: str = "line", width: int = 160) -> str:
    """What changed between two texts as one plain line: ``+ 1 rule: "tests first"  − 1 rule: "use npm"``.

    Blank lines and white space at line ends do not count. Empty when nothing else changed.
    """
    before = [line.strip() for line in old.splitlines() if line.strip()]
    after = [line.strip() for line in new.splitlines() if line.strip()]
    added, removed = _beyond(after, before), _beyond(before, after)
    parts = [_count(mark, lines, noun) for mark, lines in (("+", added), ("−", removed)) if lines]
    if not parts and before != after:
        return f"{noun}s moved"
    return _cut("  ".join(_cut(part, (width - 2) // len(parts)) for part in parts), width)


def _beyond(lines: list[str], others: list[str]) -> list[str]:
    """The lines that ``others`` does not have, or not as often, in order."""
    left = Counter(others)
    found = []
    for line in lines:
        if left[line]:
            left[line] -= 1
        else:
            found.append(line)
    return found


def _count(mark: str, lines: list[str], noun: str) -> str:
    words = "; ".join(f'"{_LIST_MARK.sub("", _printable(line), count=1)}"' for line in lines[:3])
    return f"{mark} {len(lines)} {noun}{'s' if len(lines) > 1 else ''}: {words}"


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def one_line(line: str) -> str:
    """``line`` as one line that may stand among others. Raises :class:`EditRefused` when that cannot be."""
    line = " ".join(line.split("\n")).replace("\r", " ").rstrip()
    if not statement(line + " "):
        raise EditRefused("Nothing was written: the line is empty.")
    if re.match(r"\s{0,3}(#{1,6}\s|`{3}|~{3})", line):
        raise EditRefused(
            "Nothing was written: a line that starts a heading or a code block would change the file's form."
        )
    return line


def only_match(name: str, text: str, old: str) -> tuple[int, int]:
    """Where ``old`` stands in ``text``, as offsets; line ends of both kinds match each other.

    Raises :class:`EditRefused` with a hint unless there is exactly one place.
    """
    parts = [re.escape(part) for part in old.replace("\r\n", "\n").split("\n")]
    # The look-ahead also finds matches that overlap.
    found = [match.span(1) for match in re.finditer("(?=(" + "\r?\n".join(parts) + "))", text)]
    if len(found) == 1:
        return found[0]
    if found:
        lines = [text.count("\n", 0, start) + 1 for start, _ in found]
        shown = ", ".join(map(str, lines[:8])) + (", …" if len(lines) > 8 else "")
        raise EditRefused(f"Nothing was written: old_string occurs {len(found)} times in {name} (lines {shown}). Add "
                          "neighbouring text so that it occurs once.")  # fmt: skip
    raise EditRefused(f"Nothing was written: old_string does not occur in {name}. {_closest(text, old)}")


def _closest(text: str, old: str) -> str:
    """A hint at the line that was probably meant."""
    lines = text.splitlines()
    wanted = next((line for line in old.splitlines() if line.strip()), old)
    near = difflib.get_close_matches(wanted, [line for line in lines if line.strip()], 1, 0.5)
    if not near:
        return "Read the file first, or use an empty old_string to append."
    number = lines.index(near[0]) + 1
    same = "; it differs only in case, spaces or punctuation" if normalise(near[0]) == normalise(wanted) else ""
    return f'The closest line is {number}: "{near[0][:200]}"{same}. Copy the text exactly.'
