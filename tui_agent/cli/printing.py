"""What commands print: data on stdout, everything for people's eyes alone on stderr, one JSON document with ``--json``.

Nothing that is stored is trusted: control characters, which could recolour a terminal or forge a line, are shown as a
middle dot.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from tui_agent.cli.options import fail

OK, STORE_FAILED, USAGE, NOTHING_FOUND = 0, 1, 2, 6
EXIT_CODES = "Exit codes: 0 done, 1 the store failed, 2 wrong usage or refused,\n6 nothing found"

_SHORTEST_ID = 3
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_ALLOWED = frozenset("\u200c\u200d")  # joiners inside words and emoji


def one_line(text: str, width: int = 0) -> str:
    """``text`` as one printable line, cut at ``width`` columns (0: not cut)."""
    line = " ".join("".join(map(_visible, text.replace("\t", " "))).split())
    if not width or columns(line) <= width:
        return line
    kept = line
    while kept and columns(kept) > width - 1:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def many_lines(text: str) -> str:
    """``text`` with its line ends, and nothing else that a terminal would act on."""
    return "\n".join("".join(map(_visible, line)) for line in text.replace("\r\n", "\n").split("\n"))


def _visible(sign: str) -> str:
    if sign in (" ", "\t", "\n") or sign in _ALLOWED:
        return sign
    return "·" if unicodedata.category(sign) in _INVISIBLE else sign


def columns(text: str) -> int:
    """Terminal columns of a printable line."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def width() -> int:
    """Columns of the terminal; unlimited (0) when the output goes elsewhere."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 0


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned lines; the last column is cut at the terminal's edge, never in a pipe."""
    if not rows:
        return []
    fixed = [[one_line(cell) for cell in row[:-1]] for row in rows]
    widths = [max(columns(row[place]) for row in fixed) for place in range(len(fixed[0]))]
    room = width()
    lines = []
    for cells, row in zip(fixed, rows, strict=True):
        head = "".join(
            f"{cell}{' ' * (most - columns(cell))}  " for cell, most in zip(cells, widths, strict=True) if most
        )
        left = max(20, room - columns(head)) if room else 0
        lines.append(f"{head}{one_line(row[-1], left)}".rstrip())
    return lines


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """The shortest unique end of each id, at least three characters, as the chat shows them."""
    every = list(dict.fromkeys(ids))
    length = _SHORTEST_ID
    while len({each[-length:] for each in every}) < len(every) and length < max(map(len, every), default=0):
        length += 1
    return {each: each[-length:] for each in every}


def plain(value: Any) -> Any:
    """``value`` as plain JSON data: dataclasses become objects, paths and words text, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


@dataclasses.dataclass(frozen=True)
class Printer:
    """Prints one result. ``as_json`` is what ``--json`` said."""

    as_json: bool = False

    def data(self, value: Any, lines: Iterable[str] = ()) -> None:
        """The result: ``value`` as one JSON document, or ``lines`` for people; both on stdout."""
        if self.as_json:
            self._out(json.dumps(plain(value), ensure_ascii=False, indent=2, default=str))
        else:
            for line in lines:
                self._out(line)

    def note(self, text: str) -> None:
        """Something to know beside the result, on stderr."""
        print(f"tui-agent: {many_lines(text)}", file=sys.stderr, flush=True)

    @staticmethod
    def _out(line: str) -> None:
        # Half of an emoji in a stored text must not end the program.
        sys.stdout.write(line.encode("utf-8", "replace").decode("utf-8") + "\n")
        sys.stdout.flush()


def asks() -> bool:
    """Whether there is a person at the terminal who can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str) -> bool:
    """A question on stderr, so that stdout stays clean; only "y" or "yes" (tak, да) is one."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except (OSError, KeyboardInterrupt):
        return False
    return answer.strip().casefold() in {"y", "yes", "t", "tak", "д", "да"}


def write_private(path: Path, text: str, force: bool) -> None:
    """Writes a file in one step, readable by the user alone; an existing one only with ``force``."""
    if path.exists() and not force:
        fail(f"{path} exists. Add --force to replace it.", USAGE)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        temporary.replace(path)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror or error}.", STORE_FAILED)
    finally:
        temporary.unlink(missing_ok=True)
