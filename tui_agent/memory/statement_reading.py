"""Cutting a user's message into the sentences that are the user's own words.

Fenced blocks, quoted lines, pasted logs and command output are somebody else's words, whatever they say; so is what
stands in quotation marks. Everything here keeps the places in the original text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui_agent.memory.secrets import REPLACEMENT, Redacted, redact
from tui_agent.memory.text import fold, language_of

_FENCE = re.compile(r"^[ \t]*(```+|~~~+)")
_QUOTE_LINE = re.compile(r"^[ \t]*>")
_COMMAND = re.compile(r"^[ \t]*(?:[\w.@~-]+[:~][\w/~.-]*)?[ \t]*(?:[$%❯]|>>>|PS [^>]*>|\+ )[ \t]")
_LEVEL = r"(?:INFO|WARN(?:ING)?|ERROR|ERR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE|NOTE|PASS(?:ED)?|FAIL(?:ED)?|OK|LOG|SEVERE)"
_LOG = re.compile(
    rf"^[ \t]*(?:\[?{_LEVEL}\]?(?:[ \t]+\d{{4}}-\d\d-\d\d\b|[ \t]*[:|\]]|[ \t]+\[)|\[[a-zA-Z]{{2,12}}\](?:[ \t]|:)"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|<\d+>|(?:Traceback \(|  File \"|\s+at \S+\()|@@ |diff --git "
    r"|[+-]{3} \S"
    r"|\S+:\d+(?::\d+)?: )"
)
_BARE_LEVEL = re.compile(rf"^[ \t]*{_LEVEL}[ \t]+[a-z0-9]")
_TAG = re.compile(r"^[ \t]*<(?P<name>[A-Za-zА-Яа-яЁёĄ-ż][^<>\n]{0,60})>[ \t]*$")
_TAG_END = re.compile(r"^[ \t]*</[^<>\n]{1,60}>[ \t]*$")
# An abbreviation, a list number or an initial does not end a sentence.
_STOP = re.compile(r"(?:(?<=[.!?…])|(?<=[.!?…][\"”»)'’]))(?=\s)|\n+")
_NO_STOP = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|approx|no|nr|np|m\.in|tzn|tzw|itd|itp|dr|mgr|prof|ul|godz|ok|т\.е|т\.д|т\.п|т\.к|напр|стр|гл|им|г|ул"
    r"|Mr|Mrs|Ms|St|[A-ZА-ЯĄ-Ż]|\d{1,2})\.$"
)
_SPEECH = re.compile(r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|„[^”“\"\n]{1,400}[”“\"]|«[^»\n]{1,400}»")
_LEADING = re.compile(r"^(?:[-*+•]|\d+[.)])[ \t]+")
SPEECH = " ⟨⟩ "  # what a long quotation is replaced by, for matching


@dataclass(frozen=True, slots=True)
class Sentence:
    """``text[start:end]`` of the message. ``plain`` is folded for matching, long quotations taken out (``quoted``)."""

    text: str
    start: int
    end: int
    plain: str
    cased: str
    quoted: bool
    pasted_around: bool
    languages: tuple[str, ...]


_MARKS = re.compile("[\u0300-\u036f]+")


def unmarked(text: str) -> str:
    """``text`` without diacritics, as folding does it, but with its capitals."""
    return (
        unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", text)))
        .replace("ł", "l")
        .replace("Ł", "L")
    )


def own_lines(text: str) -> Iterator[tuple[str, int, bool]]:
    """Lines of ``text`` with their place, and whether each is the user's own (not fenced, quoted, pasted or tagged)."""
    fence = tag = ""
    output = False
    at = 0
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        own = True
        mark = _FENCE.match(bare)
        if fence:
            own = False
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
                fence = ""
        elif mark:
            own, fence = False, mark[1]
        elif tag:
            own = False
            if _TAG_END.match(bare):
                tag = ""
        elif (opened := _TAG.match(bare)) is not None and "</" in text[at:]:
            own, tag = False, opened["name"]
        elif not bare.strip():
            output = False
        elif _COMMAND.match(bare):
            own, output = False, True
        elif output or _QUOTE_LINE.match(bare) or _TAG_END.match(bare) or _LOG.match(bare) or _BARE_LEVEL.match(bare):
            own = False
        yield bare, at, own
        at += len(line)


def own_spans(text: str) -> list[tuple[int, int]]:
    """The stretches of ``text`` that are the user's own words, neighbouring lines joined."""
    spans: list[tuple[int, int]] = []
    for line, at, own in own_lines(text):
        if not own:
            continue
        if spans and not text[spans[-1][1] : at].strip("\r\n"):
            spans[-1] = (spans[-1][0], at + len(line))
        else:
            spans.append((at, at + len(line)))
    return spans


def sentences(text: str) -> list[Sentence]:
    """The user's own sentences in order. The line that introduces pasted text ("Log from CI:") is none."""
    pasted = any(not own for _, _, own in own_lines(text))
    found: list[Sentence] = []
    message_language = language_of(text)
    for low, high in own_spans(text):
        for start, end in _split(text, low, high):
            piece = text[start:end]
            if pasted and piece.rstrip().endswith(":"):
                continue
            found.append(_sentence(piece, start, end, pasted, message_language))
    return found


def _split(text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    start = low
    for stop in _STOP.finditer(text, low, high):
        if text[stop.start() : stop.end()].strip("\n") == "" and stop.end() == stop.start():
            if _NO_STOP.search(text[start : stop.start()]):
                continue
        elif stop.start() < start:
            continue
        yield from _trimmed(text, start, stop.start())
        start = stop.end()
    yield from _trimmed(text, start, high)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    lead = len(piece) - len(piece.lstrip())
    mark = _LEADING.match(piece[lead:])
    lead += mark.end() if mark else 0
    stop = start + len(piece.rstrip())
    if start + lead < stop and any(map(str.isalnum, piece)):
        yield start + lead, stop


def _sentence(piece: str, start: int, end: int, pasted: bool, message_language: str) -> Sentence:
    straight = piece.replace("’", "'").replace("ʼ", "'")
    cased = _SPEECH.sub(lambda match: match[0] if len(match[0].split()) < 3 else SPEECH, straight)
    return Sentence(
        text=piece,
        start=start,
        end=end,
        plain=" ".join(fold(cased).split()),
        cased=" ".join(cased.split()),
        quoted=cased != straight,
        pasted_around=pasted,
        languages=_languages(piece, message_language),
    )


def _languages(piece: str, message_language: str) -> tuple[str, ...]:
    """The languages whose patterns are tried: the sentence's, else the message's, else both with Latin letters."""
    if re.search(r"[а-яё]{3}", piece.lower()):
        return ("ru",)
    found = language_of(piece) or message_language
    if found == "ru":
        return ("ru", "en")
    if found == "pl":
        return ("pl",)
    return ("en", "pl") if not found else ("en",)


# --- without secrets ----------------------------------------------------------------------------------

JOIN = re.compile(r"[,;:—–]?\s+(?:and|but|so|while|a|i|ale|oraz|więc|и|а|но)\s+|[;,]\s+|(?<=[.!?])\s+|\n+")
# "The user is ops" says whose secret it was and nothing else.
_LOGIN = re.compile(
    r"\b(?:user(?:name)?|log ?in|logging in|account|admin|root|credentials?|loguj\w*|zaloguj\w*|login\w*|użytkownik\w*"
    r"|konto|konta|dane do|логин\w*|пользовател\w+|уч[её]тк\w+|аккаунт\w*|захо[дж]\w+)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^(?:and|but|so|while|a|i|ale|oraz|więc|и|а|но)\s+", re.IGNORECASE)


def without_secrets(text: str, redactor: Callable[[str], Redacted] = redact) -> str:
    """``text`` without every clause that holds a secret; unchanged when there is none.

    A name or user that only makes sense beside the secret goes with it, since both stand in one clause.
    """
    findings = [(finding.start, finding.end) for finding in redactor(text).findings]
    at = text.find(REPLACEMENT)
    while at >= 0:
        findings.append((at, at + len(REPLACEMENT)))
        at = text.find(REPLACEMENT, at + 1)
    if not findings:
        return text
    kept: list[str] = []
    start = 0
    for stop, resume in [*((match.start(), match.end()) for match in JOIN.finditer(text)), (len(text), len(text))]:
        if any(low < resume and high > start for low, high in findings):
            # A border inside the secret is none: everything up to the next border outside goes.
            if any(low < stop < high for low, high in findings):
                continue
            if kept and _LOGIN.search(kept[-1]):
                kept.pop()
        else:
            kept.append(text[start:resume])
        start = resume
    rest = "".join(kept).strip(" ,;:-—–\n\t")
    return _LEAD.sub("", rest) if rest else ""
