"""Items of the working memory as JSON values and back."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from tui_agent.memory.hot import Item
from tui_agent.memory.symbols import extract
from tui_agent.memory.text import utc_now
from tui_agent.memory.types import Vector

_PLAIN = ("id", "kind", "text", "summary", "source", "pinned", "birth", "touched", "references", "weighted", "recalls",
          "lineage", "origin_kind", "created_at")  # fmt: skip


def item_to_state(item: Item) -> dict[str, Any]:
    """The fields of an item that cannot be computed again, and its vector as base64 of float32."""
    state: dict[str, Any] = {name: getattr(item, name) for name in _PLAIN}
    state["shown"] = [list(span) for span in item.shown]
    if item.vector is not None:
        state["vector"] = base64.b64encode(item.vector.astype("<f4").tobytes()).decode("ascii")
    return state


def item_from_state(state: dict[str, Any], *, with_vector: bool) -> Item:
    """The item of a state. Names of the reference implementation's snapshot (``step``, ``refcount``, a list of floats
    as vector) are understood too. Raises ``KeyError``, ``TypeError`` or ``ValueError`` for anything else."""
    text, source = str(state["text"]), str(state.get("source", ""))
    references = int(state.get("references", state.get("refcount", 0)))
    return Item(
        id=str(state["id"]), kind=str(state["kind"]), text=text, summary=str(state.get("summary", "")), source=source,
        pinned=bool(state.get("pinned", False)), birth=int(state.get("birth", state.get("step", 0))),
        touched=int(state.get("touched", state.get("last_touched", -1))), references=references,
        weighted=float(state.get("weighted", references)),
        recalls=int(state.get("recalls", state.get("recall_count", 0))),
        lineage=str(state.get("lineage") or state["id"]), origin_kind=str(state.get("origin_kind", "")),
        created_at=str(state.get("created_at") or utc_now()),
        shown=tuple((int(a), int(b)) for a, b in state.get("shown", ())),
        vector=_vector(state.get("vector")) if with_vector else None, symbols=extract(text, source),
    )  # fmt: skip


def _vector(value: Any) -> Vector | None:
    if not value:
        return None
    if isinstance(value, str):
        return np.array(np.frombuffer(base64.b64decode(value), dtype="<f4"), dtype=np.float32)
    return np.asarray(value, dtype=np.float32)
