"""Checks of the project's memory: database, vectors, index."""

from __future__ import annotations

from collections.abc import Callable

from tui_agent.agent.doctor.facts import Facts
from tui_agent.agent.doctor.troubles import Finding, found, well
from tui_agent.agent.models import size_words
from tui_agent.memory.index_status import IndexStatus


def database(facts: Facts) -> list[Finding]:
    """The SQLite file."""
    store = facts.store
    if store.interrupted:
        return [found("database.interrupted", text=store.interrupted)]
    if not store.exists:
        return [well("database", "There is no memory here yet; it begins with the first message.")]
    if store.faults:
        id = {"corrupt": "database.corrupt", "locked": "database.locked"}.get(store.kind, "database.unusable")
        return [found(id, error=store.faults[0], path=store.path)]
    facts_ = "1 fact" if store.live == 1 else f"{store.live:,} facts"
    return [well("database", f"{store.path.name} is sound: {facts_}, {size_words(store.size) or '0 MB'}.")]


def vectors(facts: Facts) -> list[Finding]:
    """Whether facts have vectors of the embedder in use."""
    store, ours = facts.store, facts.embedder.identity
    if not store.exists or store.faults or not store.live:
        return []
    if not ours:
        return [well("vectors", "Not used: there is no embedder.")]
    have = store.identities.get(ours, 0)
    others = {identity: count for identity, count in store.identities.items() if identity != ours and count}
    if have < store.live and others:
        theirs, count = max(others.items(), key=lambda one: one[1])
        return [
            found("vectors.identity", count=min(count, store.live - have), live=store.live, theirs=theirs, ours=ours)
        ]
    if have < store.live:
        return [found("vectors.missing", count=store.live - have, live=store.live)]
    return [well("vectors", f"A vector of {ours} for each of {store.live:,}.")]


def index(facts: Facts) -> list[Finding]:
    """Chroma's folder, its owner, and a second window."""
    look = facts.index
    path = facts.store.path.with_name("vector-store")
    if look.state == "link":
        return [found("index.link", path=path)]
    if look.remote_host and not look.remote_allowed:
        return [found("index.remote", host=look.remote_host, machine=look.remote_host.rpartition(":")[0])]
    if look.here is not None and look.here.state != "empty":
        return [_in_this_window(look.here)]
    if look.mode == "off":
        return [well("index", "Switched off (chroma.mode); search by meaning is exact.")]
    if look.state == "held":
        return [well("index", f"In use by process {look.pid}; a second window searches exactly meanwhile.")]
    if look.crashes > 2:
        return [found("index.crashes", crashes=look.crashes)]
    if look.busy and not look.alive:
        return [found("index.stale", pid=look.pid or "?", busy=look.busy)]
    if look.state == "unreadable":
        return [found("index.unreadable")]
    if look.gone:
        return [found("index.gone", gone=look.gone)]
    if look.mode == "http":
        leaves = ", which leaves this machine" if look.elsewhere else ""
        return [well("index", f"On the Chroma server {look.remote_host}{leaves}.")]
    if look.state == "none":
        return [well("index", "None yet; it is made once facts have vectors.")]
    if not look.emptied:
        return [found("index.deleted")]
    ours = facts.embedder.identity
    have = facts.store.identities.get(ours, 0)
    behind = f" of {have:,}; the chat takes the rest over when it starts" if ours and look.size < have else ""
    return [well("index", f"Ready: {look.size:,} facts{behind}. Vectors of {ours or 'no embedder'}.")]


def _in_this_window(here: IndexStatus) -> Finding:
    """The index as the chat that asks has it: its state, whose vectors it holds, and how far a rebuild is."""
    if here.state == "exact":
        return found("index.exact", reason=here.reason)
    whose = f" Vectors of {here.identity}." if here.identity else ""
    return well("index", f"{here.sentence()}{whose}")


STORE_CHECKS: dict[str, Callable[[Facts], list[Finding]]] = {
    "database": database,
    "vectors": vectors,
    "index": index,
}
