"""Opens a conversation: stores to working memory to prompt, for a new session or one that goes on."""

from __future__ import annotations

import asyncio

from tui_agent.agent.connection import Connection
from tui_agent.agent.core import Core
from tui_agent.agent.sources import PromptSources
from tui_agent.agent.stores import Stores
from tui_agent.llm.tokens import TokenEstimator
from tui_agent.memory.history import StoredSession
from tui_agent.memory.recall import Recaller
from tui_agent.memory.upkeep import working_scope
from tui_agent.memory.working import WorkingMemory
from tui_agent.settings import Settings


async def open_core(stores: Stores, settings: Settings, connection: Connection, resume: str) -> Core:
    """The inside of a session.

    Args:
        resume: ``new``, ``continue`` (the last session, or a new one when there is none), or a session id or its
            unique end.

    Raises:
        LookupError: there is no such session; the sentence says how to list them.
    """
    db = stores.db
    session = await db.run(_session_for, stores, resume, connection.model)
    state = await db.run(stores.history.load_state, session.id, "prompt")
    estimator = TokenEstimator.from_state((state or {}).get("estimator"))
    sources = PromptSources(stores, settings, estimator.estimate)
    await asyncio.to_thread(sources.refresh)
    wm = settings.working_memory
    working = WorkingMemory(
        stores.cold,
        connection.lazy_embedder,
        estimator.estimate,
        max_tokens=wm.max_tokens,
        scope=working_scope(stores.project),
        max_pinned_tokens=wm.pinned_cap,
        recall_cooldown_steps=wm.recall_cooldown_steps,
        recall_bypass_sim=wm.recall_bypass_sim,
        dedup_threshold=wm.dedup_threshold,
        session_id=session.id,
        calibrate=wm.calibrate,
    )
    await working.load(session.id)
    recaller = Recaller(
        db,
        stores.facts,
        stores.history,
        working,
        connection.lazy_embedder,
        sources.notes,
        known=stores.fact_index,
        put_away=stores.cold_index,
    )
    core = Core(stores, settings, connection, sources, working, recaller, estimator, session.id)
    core.goal = session.goal
    core.title = session.title
    core.todos = await db.run(stores.history.load_state, session.id, "todos", [])
    await core.open_prompt()
    return core


def _session_for(stores: Stores, resume: str, model: str) -> StoredSession:
    history = stores.history
    if resume == "new":
        return history.start_session(model=model)
    if resume == "continue":
        latest = history.latest_session()
        return latest if latest is not None else history.start_session(model=model)
    found = [row for row in history.sessions(limit=100_000) if row.id == resume or row.id.endswith(resume)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise LookupError(f"There is no session {resume!r} in this project. List them with ctrl+l in the chat.")
    raise LookupError(f"{len(found)} sessions end in {resume!r}; give more of the id.")
