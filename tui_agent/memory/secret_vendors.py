"""Secrets that give themselves away by their format, found by the libraries and by the prefixes of vendors."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from tui_agent.memory import secret_rules as rules
from tui_agent.memory.secret_values import PARTS, Span, is_code, stands_in
from tui_agent.memory.text import fold

_TAIL = re.compile(r"[A-Za-z0-9_\-+/=~.%]*")
_RUN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9][A-Za-z0-9_.~+-]{13,}")


def libraries(text: str) -> Iterator[Span]:
    scan = _betterleaks()
    if scan is not None:
        # The library takes a C string, so a zero byte would hide the rest; lone surrogates cannot be encoded.
        clean = text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
        seen: set[str] = set()
        for finding in scan(clean):
            generic = finding.rule_id.startswith(("generic", "curl"))
            value = finding.match.value
            if generic and "://" not in value:
                # Behind these comes the next parameter of a URL or a connection string.
                value = re.split(r"&(?=[\w.%-]{1,64}=)|&$|;", value)[0]
                if " " in value and rules.STEM.search(value):
                    continue  # a label: "Forgot your password?"
            if value not in seen:
                seen.add(value)
                yield from _everywhere(text, value, finding.rule_id, generic=generic)
    for line_start, line in _windows(text):
        for name, triggers, plugin in _plugins():
            if not any(trigger in line for trigger in triggers):
                continue
            for secret in plugin.analyze_line("text", line):
                value = secret.secret_value or ""
                if name == "basic_auth.BasicAuthDetector":
                    continue  # the URL rule below finds these and knows place holders
                for kind, start, end in _everywhere(line, value, secret.type, generic=False):
                    if any(map(str.isdigit, line[start:end])):
                        yield kind, line_start + start, line_start + end


def _everywhere(text: str, value: str, kind: str, *, generic: bool) -> Iterator[Span]:
    """Each occurrence of a value a library named, drawn out to the end of its token (some rules stop early)."""
    if not value or "PRIVATE KEY" in value:
        return  # a key is more than the line the library names; the rule for key blocks takes all of it
    at = text.find(value)
    while at >= 0:
        tail = _TAIL.match(text, at + len(value))
        end = tail.end() if tail else at + len(value)
        while end > at + len(value) and text[end - 1] in ".-/":
            end -= 1
        token = text[at:end]
        plain = generic and (fold(token) in rules.PLAIN_WORDS or is_code(text, at, end) or _other_name(text, at))
        if not plain and not stands_in(token):
            yield kind, at, end
        at = text.find(value, end)


_NAMED = re.compile(r"([\w.-]{2,40})[\"']?\s?[=:]\s?[\"']?$")


def _other_name(text: str, at: int) -> bool:
    """Whether the value is assigned to a name that says it is an id, a hash or the like."""
    match = _NAMED.search(text, max(0, at - 48), at)
    parts = [fold(part) for part in PARTS.findall(match[1])] if match else []
    return bool(parts) and parts[-1] in rules.NOT_A_SECRET


_WINDOW = 4000


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their place; very long ones in overlapping windows, since some expressions are slow on them."""
    at = 0
    for line in text.splitlines(keepends=True):
        for start in range(0, max(len(line), 1), _WINDOW):
            yield at + start, line[start : start + _WINDOW + 400]
        at += len(line)


_threads_lost = False


def _after_fork() -> None:
    """The library has a runtime with threads of its own, which a forked child does not have: asked there, it may never
    answer. The other rules go on without it."""
    global _threads_lost
    if "betterleaks" in sys.modules:
        _threads_lost = True
        _betterleaks.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@lru_cache(maxsize=1)
def _betterleaks() -> Callable[[str], list[Any]] | None:
    if _threads_lost:
        return None
    try:
        module = importlib.import_module("betterleaks")
        module.scan_string("warm")
    except Exception:  # a broken native library can raise anything; the other rules go on without it
        return None

    def scan(text: str) -> list[Any]:
        try:
            found: list[Any] = module.scan_string(text)
        except Exception:
            return []
        return found

    return scan


@lru_cache(maxsize=1)
def _plugins() -> tuple[tuple[str, tuple[str, ...], Any], ...]:
    loaded: list[tuple[str, tuple[str, ...], Any]] = []
    for name, triggers in rules.PLUGIN_TRIGGERS.items():
        module, _, class_name = name.partition(".")
        try:
            plugin = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), class_name)()
        except Exception:  # one plugin that does not load leaves the others
            continue
        loaded.append((name, triggers, plugin))
    return tuple(loaded)


def vendors(text: str) -> Iterator[Span]:
    for run in _RUN.finditer(text):
        match = rules.VENDOR.match(text, run.start())
        kind = match.lastgroup if match else None
        if match is None:
            match, kind = rules.UNMISTAKABLE.match(text, run.start()), "vendor"
        if match is None:
            continue
        tail = _TAIL.match(text, match.end())
        end = tail.end() if tail else match.end()
        token = text[run.start() : end].rstrip(".")
        if any(map(str.isdigit, token)) and not stands_in(token):
            yield kind or "vendor", run.start(), run.start() + len(token)
    for match in rules.WITH_PUNCTUATION.finditer(text):
        yield "webhook", match.start(), match.end()
