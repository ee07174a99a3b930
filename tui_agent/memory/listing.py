"""Put-away items as lines of a list: what each is, without reading its whole text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tui_agent.memory.database import Database

_BEGINNING = 400  # characters of a text that are read to find its first line
_LABEL = 72


@dataclass(frozen=True, slots=True)
class Listed:
    """One put-away item in a list. ``label`` is its summary, else the first line of its text; ``tokens`` is the length
    of its whole text."""

    id: str
    kind: str
    label: str
    tokens: int
    source: str = ""


def listed(db: Database, scope: str, ids: Sequence[str], without: Collection[str] = ()) -> list[Listed]:
    """Those of ``ids`` that are put away now and not in ``without``, in the order given."""
    wanted = [item_id for item_id in dict.fromkeys(ids) if item_id not in without]
    rows = db.rows(
        f"SELECT id, kind, source, summary, substr(text, 1, {_BEGINNING}) AS beginning, tokens FROM wm_items "
        f"WHERE scope = ? AND zone = 'cold' AND id IN ({', '.join('?' * len(wanted))})",
        (scope, *wanted),
    )
    found = {str(row["id"]): row for row in rows}
    return [
        Listed(
            item_id,
            str(row["kind"]),
            label_of(str(row["summary"]), str(row["beginning"])),
            int(row["tokens"]),
            str(row["source"]),
        )
        for item_id in wanted
        if (row := found.get(item_id)) is not None
    ]


def label_of(summary: str, text: str) -> str:
    """What a line says of an item: its summary, or the first line of its text that holds something; one line."""
    said = summary.strip() or text.strip()
    line = " ".join(said.split("\n", 1)[0].split()) if said else "(empty)"
    return line if len(line) <= _LABEL else f"{line[: _LABEL - 1]}…"
