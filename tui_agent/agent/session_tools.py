"""Whether tools are on offer: for one message, or until the user says otherwise."""

from __future__ import annotations

from typing import Literal

from tui_agent.agent.connection import Connection
from tui_agent.agent.core import Core
from tui_agent.agent.views import ActionResult

Offer = Literal["on", "off", "once"]
MARKS = {"off": "tools off", "once": "next one without tools"}


class SessionTools:
    """A part of :class:`~tui_agent.agent.session.Session`."""

    _core: Core
    _connection: Connection

    async def offer_tools(self, how: Offer) -> ActionResult:
        """Offer tools from the next message on (``on``), no more in this session (``off``), or not for the next
        message alone (``once``). Without tools a model can write nothing, and calls in its text stay text."""
        core, connection = self._core, self._connection
        if not self._connection.settings.tools or (connection.ready and not connection.tools):
            reason = "`tools: false` in config.yaml" if not connection.settings.tools else f"{core.model} gets none"
            return ActionResult(how != "on", f"No tools are on offer anyway: {reason}.")
        core.tools_off = "" if how == "on" else how
        if how == "on":
            return ActionResult(True, "Tools are on offer again, from the next message on.")
        if how == "once":
            return ActionResult(True, "The next message goes without tools; nothing can be saved by the model in it.")
        return ActionResult(True, "No tools are on offer in this session until /tools on; the model cannot save.")
