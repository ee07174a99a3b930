"""Search in the conversation for the ``search_history`` tool: what holds the words as they are, then what fits best."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from tui_agent.agent.tools.base import TurnContext
from tui_agent.memory.history import SEARCH_MOST, StoredMessage
from tui_agent.memory.text import fold, words
from tui_agent.memory.types import RecalledItem

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores

SearchMessages = Callable[[str, int], Awaitable[list[RecalledItem]]]


async def search_conversation(
    stores: Stores,
    search_messages: SearchMessages | None,
    query: str,
    *,
    limit: int,
    role: str | None,
    turn: TurnContext,
) -> list[StoredMessage]:
    """At most ``limit`` (1 to 50) messages of this conversation, without the one that is being answered.

    A single word is looked up as it is. Of a longer query, messages that hold it literally come first, then those the
    recaller ranks: it also looks at what was said around a message.
    """
    limit = min(max(1, limit), SEARCH_MOST)
    literal: list[StoredMessage] = await stores.db.run(
        stores.history.search,
        query,
        session_id=turn.session_id,
        limit=limit,
        role=role,
        exclude=(turn.message_id,),
    )
    if search_messages is None or len(words(query)) < 2:
        return literal
    ranked = await search_messages(query, SEARCH_MOST)
    wanted = " ".join(fold(query).split())
    found = {m.id: m for m in literal if wanted in " ".join(fold(m.content).split())}
    for item in ranked:
        if len(found) >= limit:
            break
        if item.id not in found and item.id != turn.message_id:
            message: StoredMessage = await stores.db.run(stores.history.message, item.id)
            if role in (None, message.role):
                found[message.id] = message
    for message in literal:
        found.setdefault(message.id, message)
    return list(found.values())[:limit]
