"""What the model is told of put-away items: a few lines that fit the question or the goal, and what their ids open.

The lines stand in the newest message, like everything that varies. An item is named once as long as that message is
visible, and not at all while its text is. What is named can be had with the ``recall`` tool, by the id in its line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tui_agent.agent.events import Event
from tui_agent.agent.prompt import LISTED, PutAwayList, render_item
from tui_agent.memory.listing import Listed, listed
from tui_agent.memory.places import is_memory_edit
from tui_agent.memory.types import RecalledItem, RecallRecord, Term

if TYPE_CHECKING:
    from tui_agent.agent.core import Core
    from tui_agent.agent.keeping import Keeping

_MOST_LINES = 4
_MOST_TOKENS = 120  # a small machine reads some thirty tokens a second, and the user waits for each
_LOOKED_AT = 24
_SHOWN_ID = 4
_HEAD = "[put away · recall with an id shows one]"
_HEAD_WITHOUT_TOOL = "[put away · the user can bring one back]"
_WORD = re.compile(r"[0-9a-z]{3,26}")


async def put_away_list(
    core: Core,
    fitting: Sequence[str],
    visible: Collection[str],
    left_out: Collection[str],
    max_tokens: int,
) -> PutAwayList | None:
    """The list for the newest message, within ``max_tokens``, or ``None`` when there is nothing new to name.

    ``fitting`` are ids that fit the question, best first; those that fit the goal follow. ``visible`` are references
    that the window shows with this message, ``left_out`` those that must not be used.
    """
    working = core.working
    ids = list(dict.fromkeys((*fitting, *working.fitting_goal())))
    new = [i for i in ids if not _known(i, visible) and not _known(i, left_out)][:_LOOKED_AT]
    total = working.put_away_count
    offered = any(tool["function"]["name"] == "recall" for tool in core.prompt.tools or core.tools())
    head = _HEAD if offered else _HEAD_WITHOUT_TOOL
    left = min(max_tokens, _MOST_TOKENS) - core.count(f"{head}\n+{total} more\n")
    if not new or left <= 0:
        return None
    lines: list[tuple[str, str]] = []
    for one in await core.db.read_small(listed, core.stores.db, working.scope.key, new):
        if is_memory_edit(one.kind, one.source):
            continue
        line = _line(one)
        cost = core.count(line) + 1
        if cost <= left:
            lines.append((one.id, line))
            left -= cost
        if len(lines) == _MOST_LINES:
            break
    return PutAwayList(head, tuple(lines), max(0, total - len(lines))) if lines else None


def _line(one: Listed) -> str:
    return f"{one.id[-_SHOWN_ID:]} {' '.join(one.kind.split())} {one.label} ({one.tokens})"


def _known(item_id: str, refs: Collection[str]) -> bool:
    return any(f"{store}{item_id}" in refs for store in (LISTED, "cold:", "hot:"))


async def named(core: Keeping, query: str, masked: Collection[str] = ()) -> RecallRecord | None:
    """The whole texts of the items whose ids, as the model was shown them, stand in ``query``; ``None`` when none does.

    Only what the window shows can be named, so that a word which happens to end another item's id means that word.
    """
    found = _ids_in(query, core.prompt.visible)
    items: list[RecalledItem] = []
    for item_id in found:
        if f"cold:{item_id}" in masked or f"hot:{item_id}" in masked:
            continue
        item = await _whole(core, item_id, len(items) + 1)
        if item is not None:
            items.append(item)
    if not items:
        return None
    return RecallRecord(query, core.goal, tuple(items), channels=("ids",))


def _ids_in(query: str, visible: Collection[str]) -> list[str]:
    words = _WORD.findall(query.casefold())
    ids: dict[str, None] = {}
    for ref in sorted(visible):
        store, _, item_id = ref.partition(":")
        if store not in ("cold", "hot", LISTED[:-1]):
            continue
        # Three characters are enough only where nothing else was asked: "the" could end an id.
        if any(item_id.endswith(word) and (len(word) >= _SHOWN_ID or len(words) == 1) for word in words):
            ids[item_id] = None
    return list(ids)


async def _whole(core: Keeping, item_id: str, rank: int) -> RecalledItem | None:
    cold = await core.working.cold_item(item_id)
    row = cold if cold is not None else next((row for row in core.working.hot() if row.id == item_id), None)
    if row is None:
        return None
    terms = (Term("id", 1.0, "asked for by its id"),)
    return RecalledItem(
        "cold" if cold is not None else "hot", item_id, row.text, 1.0, terms, rank=rank, kind=row.kind,
        source=row.source, tokens=row.tokens,
    )  # fmt: skip


async def after_recall(core: Core, record: RecallRecord, text: str) -> tuple[tuple[str, ...], list[Event]]:
    """What follows when the ``recall`` tool found something: put-away items of this session are hot again, and those
    that the model can read in ``text`` need not be sent with the next message. Returns the references, and the moves.
    """
    found = [item for item in record.items if item.store in ("cold", "hot") and render_item(item) in text]
    refs = tuple(f"{store}:{item.id}" for item in found for store in ("hot", "cold"))
    return refs, await core.bring_recalled(record)
