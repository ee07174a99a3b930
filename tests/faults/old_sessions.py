"""Sessions that an older or killed app has left in a state that a template or a server refuses."""

from __future__ import annotations

from typing import Any

from tests.agent.conftest import Desk, Open
from tui_agent.agent.prompt import LogEntry


async def old_session(open_desk: Open, *messages: dict[str, Any]) -> Desk:
    """A session that goes on after these messages were left at the end of what was sent in it."""
    before = await open_desk()
    await before.say("Is there a port?")
    await before.session.core.settled()
    core = before.session.core
    entries = [LogEntry(message).as_dict() for message in messages]
    before.session.stores.history.wire_append(core.session_id, core.prompt.epoch, entries)
    await before.session.close()
    return await open_desk(resume="continue")
