"""Small words and shapes every screen shares: foreign text made safe to print, times, counts, bars.

Nothing here knows about Textual, so all of it is tested without a screen.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone

from rich.cells import cell_len, set_cell_size

# C0 controls become their visible picture (␛ for escape), C1 controls and direction overrides the replacement mark:
# raw, they would reach the terminal as commands or reorder what is read.
_UNSAFE: dict[int, int | str] = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_UNSAFE[0x7F] = "\u2421"
_UNSAFE.update(dict.fromkeys(range(0x80, 0xA0), "\ufffd"))
_UNSAFE.update(dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd"))
_UNSAFE.update({0x2028: "\n", 0x2029: "\n"})
_SPACES = re.compile(r"\s+")


def clean(text: object) -> str:
    """Text that is not ours, safe to print: no control characters but newline and tab, line ends unified."""
    return str(text).replace("\r\n", "\n").replace("\r", "\n").translate(_UNSAFE)


def decimals(value: float) -> str:
    """A score with two decimals; what rounds to nothing has no sign."""
    return f"{round(value, 2) + 0.0:.2f}"


def one_line(text: object) -> str:
    """``clean`` text folded to a single line."""
    return _SPACES.sub(" ", clean(text)).strip()


def fit(text: str, width: int) -> str:
    """``text`` cut with an ellipsis, or padded, to exactly ``width`` cells."""
    if width <= 0:
        return ""
    if cell_len(text) > width:
        text = set_cell_size(text, width - 1).rstrip() + "…"
    return text + " " * (width - cell_len(text))


def short(text: str, width: int) -> str:
    """``text`` cut with an ellipsis when it is longer than ``width`` cells, never padded."""
    return fit(text, width).rstrip() if cell_len(text) > width else text


def plural(count: int, one: str, many: str = "") -> str:
    """``1 answer``, ``2 answers``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def kilo(count: float) -> str:
    """A token count in at most five characters: ``812``, ``3.1k``, ``128k``."""
    if count < 1000:
        return f"{count:.0f}"
    return f"{count / 1000:.1f}k" if count < 99_950 else f"{count / 1000:.0f}k"


def window(tokens: int) -> str:
    """The size of a context window the way it is named: ``8k`` for 8,192."""
    return f"{tokens // 1024}k" if tokens and tokens % 1024 == 0 else kilo(tokens)


def megabytes(size: int | None) -> str:
    """A size in bytes as people say it: ``1.1 GB``."""
    if not size:
        return ""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def tail_id(id: str) -> str:
    """The last three characters of an id, enough to recognise it on one screen."""
    return id[-3:]


def bar(value: float, full: float, width: int) -> str:
    """``value`` of ``full`` as a bar of exactly ``width`` cells, in halves of a cell; nothing for nothing."""
    if full <= 0 or value <= 0 or width <= 0:
        return " " * max(0, width)
    halves = min(width * 2, max(1, round(value / full * width * 2)))
    return ("━" * (halves // 2) + "╸" * (halves % 2)).ljust(width)


def now() -> datetime:
    """The time it is, aware; the one clock of the screens."""
    return datetime.now(timezone.utc)


def parse_time(text: str) -> datetime | None:
    """UTC text ``YYYY-MM-DD HH:MM:SS`` as an aware time, ``None`` when it is something else."""
    try:
        return datetime.strptime(text[:19].replace("T", " "), "%Y-%m-%d %H:%M:%S").replace(tzinfo=timezone.utc)
    except (ValueError, TypeError):
        return None


def clock(text: str) -> str:
    """The local ``HH:MM`` of a UTC time text, empty when unreadable."""
    moment = parse_time(text)
    return moment.astimezone().strftime("%H:%M") if moment else ""


def stamp(text: str) -> str:
    """Five cells for a list: ``HH:MM`` today, ``MM-DD`` within a year, else the year."""
    moment = parse_time(text)
    if moment is None:
        return one_line(text)[:5]
    local, today = moment.astimezone(), now().astimezone().date()
    if local.date() == today:
        return local.strftime("%H:%M")
    return local.strftime("%m-%d" if abs((today - local.date()).days) < 360 else " %Y")


def day(text: str) -> str:
    """The local date of a UTC time text; text that already is a date, or unreadable, stays."""
    moment = parse_time(text)
    return moment.astimezone().strftime("%Y-%m-%d") if moment else one_line(text)[:10]


def days_since(text: str) -> int | None:
    """Whole days since a UTC time text, ``None`` when unreadable."""
    moment = parse_time(text)
    if moment is None:
        return None
    return max(0, (now() - moment).days)


def age(seconds: float) -> str:
    """``4 s``, ``2 min``, ``1 h 05``."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:02.0f}"


def arguments(values: dict[str, object], width: int = 60) -> str:
    """Tool arguments on one line, the way a call reads: the only one bare, several named."""
    if len(values) == 1:
        return short(_argument(next(iter(values.values()))), width)
    return short(", ".join(f"{one_line(name)}={_argument(value)}" for name, value in values.items()), width)


def _argument(value: object) -> str:
    return f'"{one_line(value)}"' if isinstance(value, str) else one_line(value)
