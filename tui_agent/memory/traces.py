"""Finding and taking out a text wherever it lies: in rows of a database, in its free pages, in plain files.

Spans are found in any case, with any white space between their words, composed or decomposed, and escaped as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.memory.connection import StoreError, connect
from tui_agent.memory.records import MASK
from tui_agent.memory.text import STOPWORDS, fold, words

_SHORTEST = 4
_CHUNK = 8 * 1024 * 1024
_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a text still is: the file, the place inside it (a line, or table and column), and how often."""

    path: Path
    where: str
    count: int


def can_be_sought(text: str) -> bool:
    """Whether a text says enough to be looked for everywhere. "yes" or "do it" would be found in every conversation,
    and taking it out there would destroy what nobody asked to delete."""
    plain = fold(text).strip()
    return len(plain) >= _SHORTEST and any(word not in STOPWORDS for word in words(plain))


class Spans:
    """Texts that are looked for. Those that say too little are left out (see :func:`can_be_sought`)."""

    def __init__(self, texts: Iterable[str]) -> None:
        every: dict[str, None] = {}
        for text in texts:
            if can_be_sought(text):
                every.update(dict.fromkeys(_forms(text)))
        self.texts: tuple[str, ...] = tuple(sorted(every, key=lambda text: (-len(text), text)))
        """All forms, longest first, so that a short one inside a longer leaves no rest."""
        gap = r"(?:\s|\\[nrt])+"
        parts = [gap.join(map(re.escape, text.split())) for text in self.texts]
        self._pattern = re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)

    def __bool__(self) -> bool:
        return bool(self.texts)

    def count(self, text: str) -> int:
        """How often any of the spans occurs in ``text``."""
        return sum(1 for _ in self._pattern.finditer(text))

    def mask(self, text: str, replacement: str = MASK) -> str:
        """``text`` with each span replaced."""
        return self._pattern.sub(lambda _: replacement, text)

    def lines(self, text: str) -> list[int]:
        """The numbers (from 1) of the lines on which a span begins."""
        return [text.count("\n", 0, found.start()) + 1 for found in self._pattern.finditer(text)]

    def places(self, data: bytes) -> list[tuple[int, int]]:
        """Byte ranges of the spans in ``data``, which may be anything."""
        # Every byte that is no text becomes one character of its own, so that places can be counted back in bytes.
        text = data.decode("utf-8", "surrogateescape")
        found, at, position = [], 0, 0
        for match in self._pattern.finditer(text):
            position += len(text[at : match.start()].encode("utf-8", "surrogateescape"))
            length = len(match[0].encode("utf-8", "surrogateescape"))
            found.append((position, position + length))
            position, at = position + length, match.end()
        return found

    @property
    def longest(self) -> int:
        """Bytes that the longest form may take in a file, generously."""
        return max((8 * len(text) for text in self.texts), default=0)


def _forms(text: str) -> Iterator[str]:
    for form in ("NFC", "NFD"):
        normal = " ".join(unicodedata.normalize(form, text).split())
        yield normal
        yield json.dumps(normal, ensure_ascii=False)[1:-1]
        yield json.dumps(normal)[1:-1]


# --- looking --------------------------------------------------------------------------------------


def is_database(path: Path) -> bool:
    """Whether a file begins like a SQLite database."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
    return False


def traces_in(path: Path, spans: Spans) -> list[Trace]:
    """Where the spans occur in one file: a database's rows by table and column, a text by line, else as bytes.

    In a database the bytes are searched too, because free pages and the write-ahead log can hold what no row has.
    A file that cannot be read is reported as one trace of count 0.
    """
    found: list[Trace] = []
    if spans.count(path.name):
        found.append(Trace(path, "the file's name", spans.count(path.name)))
    try:
        if is_database(path):
            inside = _rows_with(path, spans)
            found += inside or _bytes_with(path, spans, "unused pages")
        else:
            found += _bytes_with(path, spans, "")
    except (OSError, StoreError) as error:
        found.append(Trace(path, f"not readable: {error}", 0))
    return found


def _rows_with(path: Path, spans: Spans) -> list[Trace]:
    counts: dict[str, int] = {}
    with contextlib.closing(connect(path, readonly=True)) as connection:
        for table in tables(connection):
            try:
                cursor = connection.execute(f'SELECT * FROM "{table}"')
            except sqlite3.Error:  # a virtual table whose module is not here
                continue
            names = [column[0] for column in cursor.description]
            for row in cursor:
                for name, value in zip(names, row, strict=True):
                    text = value.decode("utf-8", "ignore") if isinstance(value, bytes) else value
                    if isinstance(text, str) and (count := spans.count(text)):
                        counts[f"{table}.{name}"] = counts.get(f"{table}.{name}", 0) + count
    return [Trace(path, where, count) for where, count in counts.items()]


def tables(connection: sqlite3.Connection) -> list[str]:
    """Names of all tables with rows of their own, those behind full-text indexes included."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    return [str(row[0]) for row in found]


def _bytes_with(path: Path, spans: Spans, where: str) -> list[Trace]:
    lines: list[int] = []
    count, newlines, binary = 0, 0, False
    overlap = spans.longest
    with path.open("rb") as file:
        tail = b""
        while chunk := file.read(_CHUNK):
            data = tail + chunk
            binary = binary or b"\0" in chunk
            # What touches the end of this piece is found again, whole, at the beginning of the next.
            last = len(chunk) < _CHUNK
            limit = len(data) if last else max(0, len(data) - overlap)
            found = [start for start, _ in spans.places(data) if start < limit]
            count += len(found)
            lines += [newlines + data.count(b"\n", 0, start) + 1 for start in found]
            newlines += data.count(b"\n", 0, limit)
            tail = data[limit:]
            if last:
                break
    if not count:
        return []
    shown = "line " + ", ".join(map(str, sorted(set(lines))[:5]))
    return [Trace(path, where or ("" if binary else shown), count)]


# --- taking out -----------------------------------------------------------------------------------


def overwrite_bytes(path: Path, spans: Spans) -> int:
    """Overwrites the spans in a file byte by byte; returns how many. Size and inode stay, so that a program that is
    appending to the file, or has it open, is not disturbed. Links are not followed."""
    if path.is_symlink():
        return 0
    with path.open("r+b") as file:
        places = spans.places(file.read())
        for start, end in places:
            file.seek(start)
            file.write(b"*" * (end - start))
        file.flush()
        os.fsync(file.fileno())
    return len(places)


def files_below(folders: Iterable[Path], skip: Sequence[Path] = ()) -> list[Path]:
    """Every regular file at or below ``folders``, each once, links not followed, without what is below ``skip``."""
    found: dict[Path, None] = {}
    for folder in folders:
        if folder in skip or folder.is_symlink():
            continue
        if folder.is_file():
            found[folder] = None
            continue
        for base, names, files in os.walk(folder):
            here = Path(base)
            names[:] = sorted(name for name in names if here / name not in skip)
            found.update(dict.fromkeys(here / name for name in sorted(files) if not (here / name).is_symlink()))
    return [path for path in found if path.is_file()]
