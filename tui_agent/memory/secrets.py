"""Finding secrets in text and taking them out, before anything is written to disk, embedded or logged.

Two kept libraries know the vendors' formats (betterleaks, and detect-secrets' vendor plugins); key names, URLs, command
lines and prose in English, Polish and Russian are found by the rules of :mod:`tui_agent.memory.secret_rules`. Nothing
here raises: a library that is missing or fails leaves the work to the other rules.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tui_agent.memory import secret_rules as rules
from tui_agent.memory.secret_names import named
from tui_agent.memory.secret_rules import REPLACEMENT
from tui_agent.memory.secret_values import Span, family_of, looks_random, prose_value, stands_in, strength
from tui_agent.memory.secret_vendors import libraries, vendors
from tui_agent.memory.text import fold

__all__ = ["REPLACEMENT", "Finding", "Redacted", "has_secret", "joined", "redact", "replaced"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret at ``text[start:end]`` of the text that was looked at; ``kind`` says which rule found it."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Redacted:
    """``text`` with each secret replaced by ``[secret removed]``; ``findings`` point into the original text."""

    text: str
    findings: tuple[Finding, ...]


def redact(text: str) -> Redacted:
    """``text`` without its secrets, span by span. Never raises; redacting the result again changes nothing."""
    pieces: list[Finding] = []
    # (start in the redacted text, start in the original), one entry per stretch of untouched text
    current, stretches = text, [(0, 0)]
    while spans := _spans(current):
        pieces.extend(
            Finding(kind, _original(stretches, start), _original(stretches, end, is_end=True))
            for kind, start, end in spans
        )
        merged = joined(pieces)
        current, stretches = _apply(text, merged)
        pieces = merged
    return Redacted(current, tuple(pieces))


def has_secret(text: str) -> bool:
    """Whether ``text`` holds a secret that :func:`redact` would take out. Never raises."""
    return bool(_spans(text))


def _original(stretches: list[tuple[int, int]], position: int, *, is_end: bool = False) -> int:
    """The place in the original text of a place in the redacted text; ends look at the character before them."""
    probe = position - 1 if is_end else position
    start, source = stretches[max(bisect_right(stretches, (probe, math.inf)) - 1, 0)]
    return source + position - start


def joined(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in order, overlapping and touching ones joined (the first kind stays)."""
    merged: list[Finding] = []
    for finding in sorted(findings, key=lambda item: (item.start, -item.end)):
        if merged and finding.start <= merged[-1].end:
            last = merged[-1]
            merged[-1] = Finding(last.kind, last.start, max(last.end, finding.end))
        else:
            merged.append(finding)
    return merged


def replaced(text: str, findings: list[Finding]) -> str:
    """``text`` with the findings, in order and disjoint, replaced."""
    return _apply(text, findings)[0]


def _apply(text: str, findings: list[Finding]) -> tuple[str, list[tuple[int, int]]]:
    out: list[str] = []
    stretches: list[tuple[int, int]] = []
    length = at = 0
    for finding in findings:
        stretches.append((length, at))
        out += [text[at : finding.start], REPLACEMENT]
        length += finding.start - at + len(REPLACEMENT)
        at = finding.end
    stretches.append((length, at))
    out.append(text[at:])
    return "".join(out), stretches


# --- one pass -------------------------------------------------------------------------------------


def _spans(text: str) -> list[Span]:
    """Secrets of ``text`` that are not yet replaced, in order, disjoint."""
    found: list[Span] = []
    for rule in (libraries, vendors, _structure, _commands, named, _pairs_and_pins):
        found.extend(_guarded(rule, text))
    found.extend(_continued(text, found))
    return _clear_of_replacements(text, found)


def _guarded(rule: Callable[[str], Iterator[Span]], text: str) -> list[Span]:
    """The spans of one rule; a rule that fails on some odd text must not leave the others unused."""
    spans: list[Span] = []
    try:
        for span in rule(text):
            spans.append(span)  # noqa: PERF402 - what was found before a failure is kept
    except (ValueError, TypeError, AttributeError, IndexError, RuntimeError, OSError):
        return spans
    return spans


def _clear_of_replacements(text: str, spans: list[Span]) -> list[Span]:
    holes = [(match.start(), match.end()) for match in re.finditer(re.escape(REPLACEMENT), text)]
    ends = [high for _, high in holes]
    clear: list[Span] = []
    for kind, start, end in dict.fromkeys(spans):
        at = start
        for low, high in holes[bisect_right(ends, at) :] if holes else ():
            if low >= end:
                break
            if at < low:
                clear.append((kind, at, low))
            at = max(at, high)
        if at < end:
            clear.append((kind, at, end))
    return [(kind, start, end) for kind, start, end in clear if text[start:end].strip(" \t\r\n,;\"'")]


def _continued(text: str, spans: list[Span]) -> Iterator[Span]:
    """The rest of a token that was broken over lines: lines that hold nothing but token characters."""
    for kind, _start, end in spans:
        at = end
        for _ in range(6):
            match = _NEXT_PART.match(text, at)
            if match is None or not looks_random(match["part"], 12):
                break
            yield kind, match.start("part"), match.end("part")
            at = match.end("part")


_NEXT_PART = re.compile(
    r"(?<=[A-Za-z0-9+/=_-])[\"']?[ \t]*\\?\r?\n[ \t]*(?P<part>[A-Za-z0-9+/_-]{8,}={0,2})(?=[\"']?[ \t]*\\?\r?(?:\n|$))"
)


# --- structure ------------------------------------------------------------------------------------


def _structure(text: str) -> Iterator[Span]:
    if "PRIVATE KEY" in text:
        for pattern in (rules.PEM, rules.PEM_OPEN):
            for match in pattern.finditer(text):
                yield "private_key", match.start(), match.end()
    for match in rules.PUTTY.finditer(text):
        yield "private_key", match.start(1), match.end(1)
    if "://" in text:
        for match in rules.URL.finditer(text):
            password = match["password"]
            # The last "@" before the path ends the password.
            if not stands_in(password) and fold(password) not in rules.PLAIN_WORDS:
                yield "url", match.start("password"), match.end("password")
        for match in rules.URL_TOKEN.finditer(text):
            if looks_random(match["token"], 20):
                yield "url", match.start("token"), match.end("token")
    for match in rules.QUERY.finditer(text):
        if family_of(match["name"]) != "" or match["name"].lower() in {"sig", "signature", "auth", "jwt"}:
            value = match["value"]
            if not stands_in(value) and strength(value) >= 2 and any(map(str.isdigit, value)):
                yield "query", match.start("value"), match.end("value")
    for match in rules.AUTH_HEADER.finditer(text):
        if not stands_in(match["value"]) and (match["scheme"] or looks_random(match["value"], 12)):
            yield "authorization", match.start("value"), match.end("value")
    for match in rules.BEARER.finditer(text):
        if looks_random(match["value"], 12) and not stands_in(match["value"]):
            yield "authorization", match.start("value"), match.end("value")
    for header in rules.COOKIE.finditer(text):
        for match in rules.COOKIE_PAIR.finditer(text, header.start("pairs"), header.end("pairs")):
            if not stands_in(match["value"]):
                yield "cookie", match.start("value"), match.end("value")
    for match in rules.XML.finditer(text):
        value = match["value"].strip()
        if not stands_in(value) and fold(value) not in rules.PLAIN_WORDS and family_of(match["tag"]):
            start = match.start("value") + match["value"].find(value)
            yield "xml", start, start + len(value)
    for match in rules.PGPASS.finditer(text):
        if strength(match["value"]) >= 2 and not stands_in(match["value"]):
            yield "pgpass", match.start("value"), match.end("value")


def _commands(text: str) -> Iterator[Span]:
    for match in rules.COMMANDS.finditer(text):
        name = match.lastgroup
        if name and not stands_in(match[name]):
            yield "command_line", match.start(name), match.end(name)


# --- pairs, PINs and phrases --------------------------------------------------------------------


def _pairs_and_pins(text: str) -> Iterator[Span]:
    for match in rules.CREDENTIAL_PAIR.finditer(text):
        value = match["value"].rstrip(".,;!?)")
        if (
            prose_value(value)
            and strength(value) >= 2
            and not value.isalpha()
            and not rules.HOST_OR_PATH.fullmatch(match["user"])
        ):
            yield "credential_pair", match.start("value"), match.start("value") + len(value)
    for match in rules.PINS.finditer(text):
        name = "pin" if match["pin"] else "code"
        gap = match["gap"] if match["pin"] else match["gap2"]
        if rules.PIN_NOT.search(text, max(0, match.start() - 12), match.start(name)) or len(gap.split()) > 6:
            continue
        yield "pin", match.start(name), match.end(name)
    for match in rules.CODE_WORD.finditer(text):
        if fold(match["value"]) not in rules.PLAIN_WORDS and not stands_in(match["value"]):
            yield "code_word", match.start("value"), match.end("value")
    for match in rules.SEED_PHRASE.finditer(text):
        name = "value" if match["value"] else "value2"
        yield "seed_phrase", match.start(name), match.end(name)
