"""JSON, times and durations exactly as the Go server writes and reads them."""

from __future__ import annotations

import json
import math
import re
import time
from datetime import datetime, timedelta, timezone
from typing import Any

from .backend import BackendError

# Go's encoder escapes these in strings, and nothing else above 0x20: neither U+0085 nor 0x7f.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPED = re.compile("[<>&\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")

# time.Duration is 64 bits of nanoseconds; "for ever" is its largest value, about 292 years.
FOREVER_S = (2**63 - 1) / 1e9


def dumps(value: Any) -> bytes:
    """Compact JSON with Go's escapes. Lone surrogates become U+FFFD, NaN and infinities raise ``ValueError``."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = _ESCAPED.sub(lambda found: _ESCAPES[found.group()], text)
    return _SURROGATE.sub("\ufffd", text).encode("utf-8")


def loads(body: bytes) -> Any:
    """The first JSON value of a request body; what follows it is ignored, as the server does.

    Raises:
        BackendError: 400 with the Go decoder's words.
    """
    text = body.decode("utf-8", "replace").lstrip(" \t\r\n")
    if not text:
        raise BackendError(400, "missing request body" if not body else "EOF")
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except json.JSONDecodeError as error:
        rest = text[error.pos :].lstrip()
        if not rest or error.msg.startswith("Unterminated"):
            raise BackendError(400, "unexpected EOF") from None
        what = "looking for beginning of value" if error.pos == 0 else "after top-level value"
        if error.msg.startswith(("Expecting property name", "Illegal trailing comma")):
            what = "looking for beginning of object key string"
        elif error.msg.startswith("Expecting ','"):
            what = "after object key:value pair"
        elif error.msg.startswith("Expecting ':'"):
            what = "after object key"
        elif error.msg.startswith("Expecting value"):
            what = "looking for beginning of value"
        elif error.msg.startswith("Invalid control character"):
            what = "in string literal"
        raise BackendError(400, f"invalid character '{rest[0]}' {what}") from None


def now_utc(ns: int | None = None) -> str:
    """``created_at``: RFC 3339 in UTC with up to nine fractional digits, trailing zeros cut."""
    seconds, fraction = divmod(time.time_ns() if ns is None else ns, 1_000_000_000)
    stamp = datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    digits = f"{fraction:09d}".rstrip("0")
    return f"{stamp}.{digits}Z" if digits else f"{stamp}Z"


def local_time(seconds: float) -> str:
    """``modified_at`` and ``expires_at``: RFC 3339 with the local offset. ``seconds`` since the epoch."""
    moment = datetime.fromtimestamp(0, timezone.utc) + timedelta(seconds=seconds)
    # The C library's local time ends before year 3000 on some platforms; the offset of today is right enough then.
    try:
        local = moment.astimezone()
    except (OverflowError, OSError, ValueError):
        local = moment.astimezone(datetime.now().astimezone().tzinfo)
    text = local.isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")
_UNIT = re.compile(r"[^\d.]+")


def parse_duration(text: str) -> float:
    """Seconds of a Go duration such as ``1h30m``, ``-1m`` or ``0``.

    Raises:
        ValueError: with the words of Go's ``time.ParseDuration``.
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    sign = -1.0 if text.startswith("-") else 1.0
    if rest == "0":
        return 0.0
    if not rest:
        raise ValueError(f'time: invalid duration "{text}"')
    total = 0.0
    while rest:
        number = _NUMBER.match(rest)
        if number is None:
            raise ValueError(f'time: invalid duration "{text}"')
        rest = rest[number.end() :]
        unit = _UNIT.match(rest)
        if unit is None:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if unit.group() not in _UNITS:
            raise ValueError(f'time: unknown unit "{unit.group()}" in duration "{text}"')
        total += float(number.group()) * _UNITS[unit.group()]
        rest = rest[unit.end() :]
    return sign * total


def parse_keep_alive(value: Any) -> float | None:
    """``keep_alive`` in seconds, negative for ever, ``None`` when absent.

    A number is seconds; a string must be a Go duration, so ``"-1"`` and ``"5"`` are refused with 400.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        kind = "bool" if isinstance(value, bool) else "map[string]interface {}"
        raise BackendError(400, f"Unsupported type: '{'[]interface {}' if isinstance(value, list) else kind}'")
    if isinstance(value, str):
        try:
            seconds = parse_duration(value)
        except ValueError as error:
            raise BackendError(400, str(error)) from None
    else:
        seconds = float(value)
    return -1.0 if seconds < 0 or math.isinf(seconds) else seconds
