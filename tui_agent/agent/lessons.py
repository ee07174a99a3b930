"""What a connection learns about a model while it answers: said to the user, and remembered for later runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tui_agent.agent.events import Notice
from tui_agent.agent.model_notes import ModelNotes
from tui_agent.llm.types import ModelInfo


class Lessons:
    """The part of a connection that learns."""

    if TYPE_CHECKING:
        model: str
        info: ModelInfo | None
        client: Any
        version: str
        _swaps_told: set[frozenset[str]]

        @property
        def notes(self) -> ModelNotes: ...

    def note_refused_tools(self) -> None:
        """The server fails whenever tools are on offer to this model: remember it."""
        if self.info is not None:
            self.notes.put(self.info.digest, tools_refused=True, name=self.info.name, server=self.version)

    def unthinking(self) -> Notice | None:
        """A notice when the server has just refused to let the model think; remembered for later runs."""
        info, asked = self.info, getattr(self.client, "refused_to_think", None)
        if info is None or not info.thinking or asked is None or not asked(self.model):
            return None
        self._cannot_think(info)
        self.notes.put(info.digest, think_refused=True, name=info.name, server=self.version)
        return Notice(
            "info",
            f"{info.name} cannot think step by step, although the server says so, and was asked without. That is "
            "remembered for this model.",
            key="no_thinking",
        )

    def _cannot_think(self, info: ModelInfo) -> ModelInfo:
        self.info = replace(info, capabilities=info.capabilities - {"thinking"})
        return self.info

    def swapped(self) -> Notice | None:
        """A notice when chat and embedding model push each other out of memory, once."""
        loads = getattr(self.client, "loads", None)
        pair = loads.take() if loads is not None else None
        if pair is None or frozenset(pair) in self._swaps_told:
            return None
        self._swaps_told.add(frozenset(pair))
        other = pair[1] if pair[0] == self.model else pair[0]
        return Notice(
            "warning",
            f"{self.model} and {other} do not fit into the server's memory together: each is loaded anew whenever the "
            "other was used, which makes every answer wait. Set `embedder: builtin` in config.yaml, or use a smaller "
            "model (ctrl+o).",
            key="swapping",
        )
