"""What a stored recall record says of the request it belongs to: the message exactly as sent, and what stood before.

The record of an answer holds, beside the items and their scores, the other parts of the data block (date, notes,
skills, the list of put-away items), which memory items the window showed already, which files stood in the fixed part,
and where in the log of sent messages the question is. From that the block can be written again to the byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tui_agent.agent.prompt import DataBlock, LogEntry, PutAwayList
from tui_agent.memory.types import RecallRecord

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question stands in what was sent: the epoch, and how many messages of the log come before it."""

    epoch: int
    index: int


def with_request(core: Core, record: RecallRecord, block: DataBlock) -> RecallRecord:
    """``record`` with everything else that the request carries; called when the question is the next to be logged."""
    prompt = core.prompt
    extra = {
        **record.extra,
        "place": {"epoch": prompt.epoch, "index": len(prompt.log)},
        "date": block.date,
        "notes": list(block.notes),
        "skills": [{"name": name, "text": text} for name, text in block.skills],
        **_put_away_extra(core, block.put_away),
        "in_view": list(dict.fromkeys(ref for entry in prompt.log for ref in entry.refs)),
        "fixed": [{"name": s.name, "hash": s.hash, "tokens": core.count(s.text)} for s in prompt.sections.values()],
    }
    return replace(record, extra=extra)


def _put_away_extra(core: Core, found: PutAwayList | None) -> JSON:
    if found is None:
        return {}
    lines = [{"id": item_id, "line": line} for item_id, line in found.lines]
    return {"put_away": {"head": found.head, "lines": lines, "more": found.more, "tokens": core.count(found.render())}}


def put_away_of(record: RecallRecord) -> PutAwayList | None:
    """The list of put-away items that the message of ``record`` carried."""
    kept = record.extra.get("put_away")
    if not isinstance(kept, dict):
        return None
    lines = tuple((str(one["id"]), str(one["line"])) for one in kept["lines"])
    return PutAwayList(str(kept["head"]), lines, int(kept["more"]))


def put_away_tokens(record: RecallRecord) -> int:
    """What that list takes of the window, in tokens."""
    kept = record.extra.get("put_away")
    return int(kept["tokens"]) if isinstance(kept, dict) else 0


def place_of(record: RecallRecord) -> Place | None:
    """Where the question of ``record`` stands, when that was kept."""
    place = record.extra.get("place")
    return Place(int(place["epoch"]), int(place["index"])) if isinstance(place, dict) else None


def block_of(record: RecallRecord, without: Sequence[str] = ()) -> str:
    """The data block as it stood before the user's words, to the byte; ``without`` leaves references out of it."""
    extra = record.extra
    left_out = set(without)
    named = put_away_of(record)
    return DataBlock(
        date=str(extra.get("date", "")),
        notes=[str(note) for note in extra.get("notes", ())],
        items=[item for item in record.items if f"{item.store}:{item.id}" not in left_out],
        skills=[(str(skill["name"]), str(skill["text"])) for skill in extra.get("skills", ())],
        put_away=named.without(left_out) if named is not None else None,
    ).render()


def question_entry(core: Core, text: str, record: RecallRecord, without: Sequence[str] = ()) -> LogEntry:
    """The question's message as it was sent, without some of its items."""
    block = block_of(record, without)
    return LogEntry({"role": "user", "content": f"{block}\n\n{text}" if block else text})
