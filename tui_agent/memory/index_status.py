"""What is known of the vector index, for the status line, ``memory stats``, ``memory check`` and the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tui_agent.memory.backup import indexed_ids
from tui_agent.memory.holding import holding
from tui_agent.project import Project

IndexState = Literal["off", "empty", "loading", "ready", "rebuilding", "exact"]


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """How facts are found by meaning.

    ``state`` is ``off`` (by the settings), ``empty`` (no fact has a vector yet), ``loading``, ``ready`` (Chroma names
    the candidates), ``rebuilding`` (``done`` of ``total`` rows; search is exact meanwhile) or ``exact`` (Chroma cannot
    be used; ``reason`` is a sentence that says why). ``owner`` is whether this process holds the index's lock.
    """

    mode: str = "local"
    state: IndexState = "empty"
    owner: bool = False
    reason: str = ""
    rows: int = 0
    done: int = 0
    total: int = 0
    identity: str = ""

    @property
    def search(self) -> str:
        """``chroma`` or ``exact``: what a question would use now."""
        return "chroma" if self.state == "ready" else "exact"

    @property
    def mark(self) -> str:
        """A word or two for the status line; empty while all is as it should be."""
        if self.state == "exact":
            return "exact search"
        if self.state == "rebuilding" and self.total:
            return f"indexing {100 * self.done // self.total}%"
        return ""

    def sentence(self) -> str:
        """The state in one sentence."""
        if self.state == "exact":
            return self.reason
        if self.state == "ready" and self.reason:
            return f"{self.rows:,} facts are in the vector index. {self.reason}"
        if self.state == "loading" and self.reason:
            return self.reason
        if self.state == "ready":
            where = "" if self.mode == "local" else " on the Chroma server"
            return f"{self.rows:,} facts are in the vector index{where}."
        if self.state == "rebuilding":
            return f"The vector index is being made: {self.done:,} of {self.total:,}. Search is exact meanwhile."
        return {
            "off": "The vector index is switched off (chroma.mode); search by meaning is exact.",
            "loading": "The vector index is being opened; search is exact meanwhile.",
            "empty": "There is no vector index yet; it is made once a fact has a vector.",
        }[self.state]


def index_on_disk(project: Project, mode: str = "local") -> IndexStatus:
    """What a command without a session can see of the index: who owns it and what is in its folder."""
    if mode == "off":
        return IndexStatus(mode, "off")
    if mode == "http":
        return IndexStatus(mode, "loading", reason="A Chroma server holds it; the chat asks it.")
    if not project.vector_dir.exists():
        return IndexStatus(mode, "empty")
    with holding(project.lock_path) as mine:
        if not mine:
            return IndexStatus(mode, "ready", reason="A running chat owns it.", rows=_count(project))
        ids = indexed_ids(project.vector_dir)
    if ids is None:
        reason = "The vector index cannot be read; search goes exactly over the vectors in the database."
        return IndexStatus(mode, "exact", reason=reason)
    return IndexStatus(mode, "ready", rows=len(ids))


def _count(project: Project) -> int:
    return len(indexed_ids(project.vector_dir) or ())
