"""What the newest user message carries: recalled items, hot items, a few put-away ones by name, matched skills, changed
files and the date."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.agent.events import Event, Notice
from tui_agent.agent.prompt import DataBlock, LogEntry, ref_of, render_item
from tui_agent.agent.put_away import put_away_list
from tui_agent.memory.places import is_memory_edit
from tui_agent.memory.prompt_files import PromptSection, cut_section
from tui_agent.memory.text import utc_now
from tui_agent.memory.types import RecalledItem, RecallRecord

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

_SHORT_CHARS = 6_000  # of a message, up to which its words are read in no noticeable time


@dataclass(frozen=True, slots=True)
class Fed:
    """The message to send, what recall found, what else stands in its block, and what the user should be told."""

    entry: LogEntry
    record: RecallRecord
    block: DataBlock
    events: tuple[Event, ...] = ()


async def feed(
    core: Core, text: str, masked: Collection[str] = (), query: str | None = None, shown: Collection[str] = ()
) -> Fed:
    """Build the newest user message for ``text``. Nothing that is visible in the window is sent again.

    ``query`` is what memory is searched with: the text as it is stored, because it is embedded and kept. ``shown`` are
    references to what the text itself holds (a paste).
    """
    prompt = core.prompt
    block = DataBlock()
    events: list[Event] = []

    today = utc_now()[:10]
    if prompt.date != today:
        block.date = today
        prompt.date = today

    block.notes += core.take_notes()
    for section in prompt.changed_sections(core.sections()):
        if section.text.strip():
            block.notes.append(f"{section.name} was changed; from now on it says:\n{section.text.strip()}")
        else:
            block.notes.append(f"{section.name} was emptied; what it said no longer holds.")

    visible = set(prompt.visible) | core.refs_in_files() | set(shown)
    known_before = partial(_known_before, core, visible, text)
    # The words of a long paste are not taken apart on the event loop.
    stated, never = await (core.db.read_small if len(text) <= _SHORT_CHARS else core.db.run)(known_before)
    visible |= stated
    settings = core.settings.recall
    room = core.room.for_memory(text, settings.max_tokens)
    fitting: list[str] = []
    record = await core.recaller.recall(
        text if query is None else query,
        goal=core.goal,
        session_id=core.session_id,
        visible=visible,
        masked=masked,
        put_away=core.not_now,
        never=never,
        top_k=settings.top_k,
        threshold=settings.threshold,
        max_tokens=min(settings.max_tokens, int(0.8 * room) if room < settings.max_tokens else room),
        count=core.count,
        put_away_hits=fitting,
    )
    used = sum(core.count(render_item(item)) + 2 for item in record.items)
    seen = visible | {ref_of(item) for item in record.items}
    hot = await hot_items(core, seen, masked, min(settings.max_tokens, max(0, room - used)))
    first = len(record.items) + 1
    sent = (*record.items, *(replace(item, rank=first + number) for number, item in enumerate(hot)))
    record = replace(record, items=sent, rules_hash=core.rules_hash())
    block.items.extend(sent)
    used += sum(core.count(render_item(item)) for item in hot)
    left = min(core.working.max_tokens, settings.max_tokens, max(0, room - used))
    seen |= {ref_of(item) for item in hot}
    block.put_away = await put_away_list(core, fitting, seen, {*masked, *core.not_now, *never}, left)

    for skill in core.matching_skills(text):
        ref = f"skill:{skill.name}"
        if ref not in prompt.visible:
            whole = PromptSection(skill.name, str(skill.path), skill.body)
            cut = cut_section(whole, core.settings.files.skill_max_tokens, core.count)
            block.skills.append((skill.name, cut.text))
            prompt.visible.add(ref)
            events.append(Notice("info", f"Skill loaded: {skill.name}.", key=f"skill:{skill.name}"))

    entry = prompt.user_message(text, block)
    core.mark_used([item.id for item in sent if item.store == "fact"])
    return Fed(entry, record, block, tuple(events))


def _known_before(core: Core, visible: Collection[str], text: str) -> tuple[set[str], frozenset[str]]:
    """Facts that need not be recalled because their message is visible, and what must not be for this topic."""
    return _stated_in_view(core, visible), core.stores.topics.hidden(text)


def _stated_in_view(core: Core, visible: Collection[str]) -> set[str]:
    """Facts that the user stated in messages which the model still sees."""
    ids = [ref.partition(":")[2] for ref in visible if ref.startswith("message:")]
    if not ids:
        return set()
    rows = core.stores.db.rows(f"SELECT id FROM memory WHERE message_id IN ({', '.join('?' * len(ids))})", ids)
    return {f"fact:{row['id']}" for row in rows}


async def hot_items(
    core: Core, visible: Collection[str], masked: Collection[str], max_tokens: int
) -> list[RecalledItem]:
    """Hot items the model cannot see any more, best first, within ``max_tokens``.

    What is larger stays on the user's screen and is found by recall when it is asked for: a model on a small machine
    reads some thirty tokens a second, and the user waits for each.
    """
    chosen: list[RecalledItem] = []
    left = max_tokens
    for row in await core.hot_rows():
        item = RecalledItem(
            store="hot",
            id=row.id,
            text=row.text,
            score=row.score,
            terms=row.terms,
            kind=row.kind,
            source=row.source,
            created_at=row.created_at,
            tokens=row.tokens,
        )
        ref = ref_of(item)
        if ref in visible or ref in masked or f"cold:{row.id}" in visible or is_memory_edit(row.kind, row.source):
            continue
        size = core.count(render_item(item))
        if size <= left:
            chosen.append(item)
            left -= size
    return chosen
