"""Second tries of one turn, for failures that a changed request heals: never the identical one again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tui_agent.agent.events import Notice
from tui_agent.llm.errors import BadRequest, GenerationFailed, ToolParserFailed, ToolsUnsupported
from tui_agent.llm.explain import is_runner_crash

if TYPE_CHECKING:
    from tui_agent.agent.core import Core
    from tui_agent.agent.rounds import Outcome, Request

_WARMER = 0.3
_USUAL_TEMPERATURE = 0.8


class Recovery:
    """Decides after a failed request whether and how to try again. One per turn.

    A tool call that the server cannot read is asked for once more with other sampling (the prefix stays). A server
    error that says nothing of the model's process is tried once without tools, since some templates fail on them.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._parser_failures = 0
        self._without_tools = False
        self._first: Outcome | None = None

    def changed(self, request: Request) -> Request:
        """The request as it is to be sent now."""
        if self._parser_failures:
            extra: dict[str, Any] = dict(request.options.extra)
            extra["temperature"] = min(2.0, float(extra.get("temperature", _USUAL_TEMPERATURE)) + _WARMER)
            extra["seed"] = int(extra.get("seed", 0)) + self._parser_failures
            request = replace(request, options=replace(request.options, extra=extra))
        return replace(request, tools=[]) if self._without_tools else request

    async def again(self, outcome: Outcome) -> tuple[bool, list[Notice]]:
        """Whether to send once more after this failure, and what to tell the user."""
        core, error = self._core, outcome.error
        if outcome.raw or outcome.thinking:
            return False, []
        if isinstance(error, ToolsUnsupported):
            dropped = await core.drop_tools()
            return dropped, [Notice("warning", str(error), key="no_tools")] if dropped else []
        if isinstance(error, ToolParserFailed):
            self._parser_failures += 1
            if self._parser_failures == 1:
                return True, []
            text = (
                f"The server could not read the tool call of {core.model} twice. Servers before 0.32.15 stay like that "
                f"until the model is unloaded: run `tui-agent models unload {core.model}`, then send it again."
            )
            return False, [Notice("warning", text, key="wedged")]
        if self._without_tools:
            return False, []
        odd = isinstance(error, (BadRequest, GenerationFailed)) and (error.status or 0) == 500
        if odd and error is not None and not is_runner_crash(error) and core.prompt.tools:
            self._without_tools, self._first = True, outcome
            return True, []
        return False, []

    async def worked(self) -> list[Notice]:
        """The last request was answered: what that teaches."""
        if not self._without_tools or self._first is None:
            return []
        self._without_tools, self._first = False, None
        core = self._core
        core.connection.note_refused_tools()
        await core.drop_tools()
        text = (
            f"{core.model} answers without tools only: the server fails when tools are on offer. That is remembered "
            "for this model; it cannot save anything by itself (press s when the app offers it, or ctrl+o for another "
            "model)."
        )
        return [Notice("warning", text, key="no_tools")]

    def final(self, outcome: Outcome) -> Outcome:
        """The failure to report: the first one, when the try without tools failed too."""
        return self._first if self._first is not None and outcome.end == "failed" else outcome
