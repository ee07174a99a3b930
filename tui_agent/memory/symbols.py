"""Names that a text defines and names that it mentions, for code in many languages and for prose about code.

What counts where:

* In code (a fenced block, a file whose name says so, lines that look like code) every identifier of three letters or
  more is a mention, except keywords and common built-ins. Comments and strings in it are read as prose.
* In prose only what looks like code is: names in backticks, ``snake_case``, ``camelCase``, ``dotted.names``,
  ``Type::member`` and ``call()``. "The result of the name lookup" mentions nothing.
* Definitions are functions, methods, classes, types, constants and top-level variables of Python, JavaScript,
  TypeScript, Go, Rust, Java, C#, C-like languages, shell and SQL. Names may be in any script.

There is no parser behind it, so truncated and mixed snippets work; a definition in an unusual layout can be missed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tui_agent.memory.symbol_patterns import (
    ANY_NAME,
    C_ASSIGN,
    CODE_LINE,
    CODE_SUFFIXES,
    COMMENTS,
    DIFF,
    FENCE,
    FILE_NAME,
    GO_BLOCK,
    GO_BLOCK_NAME,
    INLINE_CODE,
    KEYWORDED,
    KEYWORDS,
    LOGFMT,
    MEMBERS,
    NAME_LENGTH,
    NOT_METHODS,
    PROSE_LINE,
    PROSE_NAME,
    SHELL_OR_VARIABLE,
    SQL_COLUMN,
    SQL_DEFINITION,
    SQL_KEYWORDS,
    SQL_TABLE_BODY,
    STRINGS,
    TOP_LEVEL,
    TYPED,
)
from tui_agent.memory.text import STOPWORDS, fold

_MOST_TEXT = 200_000  # characters read; of a longer text the head and the tail
_MOST_NAMES = 4_000
_LONGEST_LINE = 240  # of a longer line (minified code, data) the rest is not read; it also bounds backtracking
_PIECE = 16_000  # characters searched in one go: the regex engine holds Python's lock for as long as a search takes


@dataclass(frozen=True, slots=True)
class Symbols:
    """Names a text defines and names it mentions (its own definitions among them), NFC, in their own spelling."""

    defs: frozenset[str] = frozenset()
    mentions: frozenset[str] = frozenset()


def extract(text: str, hint: str = "") -> Symbols:
    """The symbols of ``text``. ``hint`` may be a file name or path; its suffix tells the language.

    Never raises; text that holds no names gives empty sets.
    """
    if len(text) > _MOST_TEXT:
        text = text[: _MOST_TEXT * 3 // 4] + "\n" + text[-_MOST_TEXT // 4 :]
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if len(text) > _LONGEST_LINE:
        text = "\n".join(line[:_LONGEST_LINE] for line in text.split("\n"))
    defs: set[str] = set()
    mentions: set[str] = set()
    for language, code, is_code in _segments(text, hint):
        if is_code:
            _read_code(code, language, defs, mentions)
        else:
            _read_prose(code, mentions)
    kept = sorted(filter(_worth_keeping, defs))[:_MOST_NAMES]
    mentioned = sorted(filter(_worth_keeping, mentions | set(kept)))[:_MOST_NAMES]
    return Symbols(frozenset(kept), frozenset(mentioned))


@dataclass(frozen=True, slots=True)
class Asked:
    """Names a question asks for. ``strong`` ones look like code; ``weak`` ones are plain words that may be the name of
    something defined."""

    strong: frozenset[str] = frozenset()
    weak: frozenset[str] = frozenset()


def asked(query: str) -> Asked:
    """The names in a question, as keys (see :func:`key`)."""
    strong = {key(name) for name in extract(query).mentions}
    words = {fold(word) for word in ANY_NAME.findall(query) if len(word) >= NAME_LENGTH}
    weak = {key(word) for word in words if word not in STOPWORDS and word not in KEYWORDS}
    return Asked(frozenset(strong), frozenset(weak - strong))


@lru_cache(maxsize=32768)
def key(name: str) -> str:
    """Under which two spellings of a name meet: ``retryIt``, ``retry_it`` and ``RETRY_IT`` are one."""
    folded = fold(name)
    return folded.replace("_", "").replace("$", "") or folded


@lru_cache(maxsize=32768)
def _worth_keeping(name: str) -> bool:
    dunder = name.startswith("__") and name.endswith("__")
    return len(name) >= NAME_LENGTH and not dunder and name not in KEYWORDS and any(map(str.isalpha, name))


# --- which parts are code -------------------------------------------------------------------------


def _language_of_name(name: str) -> str:
    """The family of a file name or fence word: one of the families in ``COMMENTS``, or empty."""
    return CODE_SUFFIXES.get(name.rsplit(".", 1)[-1].strip().lower(), "")


def _segments(text: str, hint: str) -> Iterator[tuple[str, str, bool]]:
    """``(language, text, is code)`` for the parts of a text, fences taken out."""
    hinted = _language_of_name(hint) if "." in hint or "/" not in hint else ""
    if ("@@ " in text or "+++ " in text) and DIFF.search(text):
        yield from _diff_segments(text, hinted)
        return
    if "```" not in text and "~~~" not in text:
        yield from _plain_segments(text, hinted)
        return
    plain: list[str] = []
    inside: list[str] = []
    fence = language = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                yield language, "\n".join(inside), True
                fence, inside = "", []
            else:
                inside.append(line)
        elif mark:
            fence = mark[1]
            word = mark[2].strip().split(" ")[0].strip("{}.")
            language = CODE_SUFFIXES.get(word.lower(), "")
        else:
            plain.append(line)
    if inside:
        yield language, "\n".join(inside), True
    yield from _plain_segments("\n".join(plain), hinted)


def _diff_segments(text: str, hinted: str) -> Iterator[tuple[str, str, bool]]:
    """A patch: what it adds and keeps is code; what it takes away is only mentioned."""
    kept: list[str] = []
    gone: list[str] = []
    for line in text.split("\n"):
        if line.startswith("+++ "):
            hinted = hinted or _language_of_name(line)
        elif line.startswith("@@"):
            kept.append(line.rpartition("@@")[2].strip())
        elif line.startswith("-"):
            gone.append(line[1:])
        elif line.startswith(("+", " ")):
            kept.append(line[1:])
    yield hinted, "\n".join(kept), True
    yield "mentions", "\n".join(gone), True


def _plain_segments(text: str, hinted: str) -> Iterator[tuple[str, str, bool]]:
    if hinted:
        yield hinted, text, True
        return
    lines = [line for line in text.split("\n") if line.strip()]
    coded = [bool(CODE_LINE.match(line)) and not LOGFMT.search(line) for line in lines]
    if sum(coded) * 2 >= len(lines):  # code, with a sentence here and there
        coded = [code or not PROSE_LINE.match(line) for line, code in zip(lines, coded, strict=True)]
    for is_code in (True, False):
        part = "\n".join(line for line, code in zip(lines, coded, strict=True) if code is is_code)
        if part:
            yield _guess(part) if is_code else "", part, is_code


def _guess(code: str) -> str:
    """The comment family of code without a name."""
    if SQL_DEFINITION.search(code) or re.search(r"(?i)^\s*(?:select\b.+\bfrom|insert\s+into|with\s+\w+\s+as)\b", code):
        return "sql"
    if re.search(r"(?m)^\s*(?:pub |impl\b|fn |let mut |use \w+::)", code):
        return "rust"
    if re.search(r"(?m)[{;]\s*$|^\s*//", code):
        return "c"
    if re.search(r"(?m)^\s*(?:def |class |import |from |async def |@\w|elif |except\b)|:\s*$|^\s*#", code):
        return "hash"
    return ""


# --- names ----------------------------------------------------------------------------------------


def _read_code(code: str, language: str, defs: set[str], mentions: set[str]) -> None:
    aside: list[str] = []  # comments and strings

    def out(found: re.Match[str]) -> str:
        whole = found[0]
        aside.append(whole.strip("`'\""))
        # A string stays a string, so that "NAME = '…'" is still an assignment; line breaks keep lines apart.
        return ('""' if whole[0] in "'\"`" else " ") + "\n" * whole.count("\n")

    margin = _margin(code)
    for piece in _pieces(code):
        bare = _stripper(language).sub(out, piece)
        names = ANY_NAME.findall(bare)
        if language == "sql":
            names = [name for name in names if name.lower() not in SQL_KEYWORDS]
        mentions.update(names)
        if language != "mentions":
            defs.update(_definitions(bare, margin))
            if language == "sql" or not language:
                defs.update(_sql_definitions(piece))  # from the code as it was: quoted names are names there
    if aside:
        _read_prose("\n".join(aside), mentions)


def _pieces(code: str) -> Iterator[str]:
    start = 0
    while start < len(code):
        end = start + _PIECE
        if end < len(code):
            end = code.rfind("\n", start, end) + 1 or end
        yield code[start:end]
        start = end


@lru_cache(maxsize=16)
def _stripper(language: str) -> re.Pattern[str]:
    return re.compile(f"{COMMENTS.get(language, COMMENTS[''])}|{STRINGS.get(language, STRINGS[''])}", re.S | re.M)


def _definitions(code: str, margin: int) -> Iterator[str]:
    for found in KEYWORDED.finditer(code):
        yield found[1].rsplit(".", 1)[-1].rsplit("::", 1)[-1]
    for pattern in (TYPED, MEMBERS, SHELL_OR_VARIABLE):
        for found in pattern.finditer(code):
            name = next(filter(None, found.groups()), "")
            if name not in NOT_METHODS:
                yield name
    for block in GO_BLOCK.finditer(code):
        yield from GO_BLOCK_NAME.findall(block[1])
    for found in TOP_LEVEL.finditer(code):
        if len(found[1].expandtabs(4)) <= margin:
            yield found[2]
    for found in C_ASSIGN.finditer(code):
        yield found[1]


def _sql_definitions(code: str) -> Iterator[str]:
    for found in SQL_DEFINITION.finditer(code):
        yield next(filter(None, found.groups())).rsplit(".", 1)[-1].strip('"`[]')
    for body in SQL_TABLE_BODY.finditer(code):
        yield from SQL_COLUMN.findall(body[1])


def _margin(code: str) -> int:
    """The indentation of the outermost lines, in columns."""
    widths = [len(line) - len(line.lstrip()) for line in code.expandtabs(4).split("\n") if line.strip()]
    return min(widths, default=0)


def _read_prose(text: str, mentions: set[str]) -> None:
    if "`" in text:
        for code in INLINE_CODE.findall(text):
            if not FILE_NAME.fullmatch(code):
                mentions.update(ANY_NAME.findall(code))
        text = INLINE_CODE.sub(" ", text)
    # Most words are plain ones. A name holds no blank, so they go before the slower search.
    rest = " ".join([word for word in text.split() if not _plain(word)])
    for found in PROSE_NAME.finditer(rest):
        whole = found[0]
        if _plain(whole):
            continue
        if whole.endswith("()"):
            whole = whole[:-2]
        if FILE_NAME.fullmatch(whole):
            continue
        parts = ANY_NAME.findall(whole)
        if len(parts) > 1 or found[0].endswith("()") or "_" in whole.strip("_") or _has_hump(whole):
            mentions.update(parts)


def _plain(word: str) -> bool:
    return word.isalpha() and (word.islower() or word.istitle())


def _has_hump(name: str) -> bool:
    """``camelCase`` and ``HTTPClient``, but not ``Name``, ``HTTP`` or ``URLs``."""
    for i in range(len(name) - 1):
        if name[i].islower() and name[i + 1].isupper():
            return True
        if name[i : i + 2].isupper() and len(name) >= i + 4 and name[i + 2 : i + 4].islower():
            return True
    return False
