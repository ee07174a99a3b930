"""The checks: each a small pure function from the facts to findings. Server and model first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from tui_agent.agent.consent import origin
from tui_agent.agent.doctor.checks_machine import MACHINE_CHECKS
from tui_agent.agent.doctor.checks_store import STORE_CHECKS
from tui_agent.agent.doctor.facts import Facts
from tui_agent.agent.doctor.troubles import TITLES, Finding, found, well
from tui_agent.agent.models import share_words, size_words
from tui_agent.llm.bodies import freeze_options
from tui_agent.llm.errors import ModelError
from tui_agent.llm.host import DEFAULT_PORT, parse_host
from tui_agent.llm.probe import WORDS
from tui_agent.llm.versions import is_too_old, trouble_with

LEAST_WINDOW = 4096
HOST_OF_CONTAINER = "http://host.docker.internal:11434"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that is looked at. ``title`` is for people, ``group`` a heading."""

    name: str
    title: str
    group: str
    look: Callable[[Facts], list[Finding]]


def address(facts: Facts) -> list[Finding]:
    """The address as written, and what it means."""
    server = facts.server
    if server.kind == "bad_address":
        return [found("address.bad", error=server.error, fix=server.fix)]
    host = parse_host(server.given)
    source = server.source
    written = server.given.strip()
    if host.port in (80, 443) and urlsplit(written).port is None and not host.path and host.scheme == "http":
        better = f"{written.rstrip('/')}:{DEFAULT_PORT}"
        return [found("address.port80", given=written, port=host.port, better=better, source=source)]
    if "0.0.0.0" in written or "[::]" in written:
        return [found("address.all", given=written, url=server.url, source=source)]
    where = "this machine" if server.local else "leaves this machine"
    return [well("address", f"{server.url}, {where} ({source})")]


def consent(facts: Facts) -> list[Finding]:
    """Whether what is written may go where it would go."""
    server, model = facts.server, facts.model
    lines = []
    if not server.local and not server.allowed:
        lines.append(found("consent.needed", host=origin(parse_host(server.given))))
    if model.leaves_to and not model.leave_allowed:
        lines.append(found("consent.cloud", model=model.name, host=model.leaves_to))
    if lines:
        return lines
    index = facts.index
    vectors = index.remote_host if index.elsewhere and index.remote_allowed else ""
    stored = [well("consent", f"You allowed {vectors} to get the vectors of your facts.")] if vectors else []
    if server.local and not model.leaves_to:
        return stored or [well("consent", "Nothing you write leaves this machine.")]
    where = model.leaves_to or server.url
    return [well("consent", f"You allowed {where} to get what you write."), *stored]


def proxy(facts: Facts) -> list[Finding]:
    """Proxy variables, which trap requests to a local server in other programs."""
    server = facts.server
    names = ", ".join(server.proxies)
    if server.kind == "bad_environment":
        return [found("proxy.broken", error=server.error, names=" ".join(server.proxies) or "ALL_PROXY")]
    if not names:
        return [well("proxy", "No proxy variables.")]
    if server.proxied:
        host = urlsplit(server.url).hostname or ""
        return [found("proxy.used", names=names, url=server.url, host=host)]
    return [well("proxy", f"{names} set, and not used for {server.url}.")]


def server(facts: Facts) -> list[Finding]:
    """Whether the server answers."""
    look, engine = facts.server, facts.engine
    if engine.wanted:
        return [well("server", "Not asked: the built-in engine answers.")]
    if look.kind in ("bad_address", "bad_environment", "consent_needed"):
        return [] if look.kind != "consent_needed" else [well("server", "Not asked: it is not allowed yet.")]
    if not look.kind:
        count = len(look.models)
        models = "1 model" if count == 1 else f"{count} models"
        return [well("server", f"Ollama {look.version or '?'} answers at {look.url}, {models}.")]
    if look.kind == "closed" and look.local and look.source == "default" and not engine.missing and engine.has_model:
        return [found("server.engine", url=look.url)]
    if look.kind == "closed":
        closed = found("server.absent" if look.local and not look.program else "server.closed", url=look.url)
        if look.container and look.local:
            # There this address is the container itself.
            closed = replace(closed, fix=f"{closed.fix}; for a server on the host: --host {HOST_OF_CONTAINER}")
        return [closed]
    if look.kind == "not_ollama":
        return [found("server.not_ollama", error=look.error, source=look.source)]
    if look.kind == "slow":
        return [found("server.slow", url=look.url)]
    return [found("server.refused", error=look.error, fix=look.fix or "The server's log says more.")]


def version(facts: Facts) -> list[Finding]:
    """Known bad versions by name."""
    look = facts.server
    if look.kind or facts.engine.wanted or not look.version:
        return []
    text = trouble_with(look.version)
    if not text:
        return [well("version", f"Ollama {look.version}: no fault of it is known.")]
    return [found("version.old" if is_too_old(look.version) else "version.bad", text=text)]


def model(facts: Facts) -> list[Finding]:
    """The chat model."""
    look, asked = facts.model, facts.server
    if facts.engine.wanted or asked.kind:
        return []
    if look.info is None:
        others = [info.name for info in asked.models]
        there = ", ".join(others[:4]) or "none"
        other = f", or tui-agent --model {others[0]}" if others else ""
        return [
            found("model.missing", model=look.name, source=look.source, url=asked.url, others=there, other=other)
        ]  # fmt: skip
    info = look.info
    if info.capabilities and "completion" not in info.capabilities:
        return [found("model.cannot_chat", model=info.name)]
    about = [info.parameter_size, info.quantization, size_words(info.size), "cloud" if info.remote else ""]
    loaded = next((one for one in asked.running if _plain(one.name) == _plain(info.name)), None)
    if loaded is not None:
        about.append("loaded" + (f" on {share_words(loaded)}" if share_words(loaded) else ""))
    return [well("model", f"{info.name} ({look.source}): {', '.join(filter(None, about)) or 'installed'}")]


def tools(facts: Facts) -> list[Finding]:
    """What the model can do, by the server's word and by the probe."""
    look = facts.model
    info = look.info
    if info is None or facts.engine.wanted or facts.server.kind:
        return []
    if info.capabilities and "completion" not in info.capabilities:
        return []
    if info.capabilities and not info.tools:
        return [found("tools.none", model=info.name)]
    if look.refused:
        return [found("tools.refused", model=info.name)]
    if look.probe == "none":
        return [found("tools.probed_none", model=info.name, at=look.probed_at)]
    can = sorted(info.capabilities - {"completion"}) or ["completion"]
    tried = f"tried: it {WORDS[look.probe]}" if look.probe else "tool calls not tried yet"
    return [well("tools", f"{', '.join(can)}; {tried}.")]


def window(facts: Facts) -> list[Finding]:
    """The window, and where the number comes from."""
    look = facts.model
    info = look.info
    if info is None or facts.engine.wanted or facts.server.kind:
        return []
    if info.capabilities and "completion" not in info.capabilities:
        return []
    used = freeze_options(info, look.wanted_ctx).num_ctx
    limited = bool(info.context_length) and used < look.wanted_ctx
    source = f"the most {info.name} has" if limited else f"num_ctx, {look.ctx_source}"
    loaded = next((one for one in facts.server.running if _plain(one.name) == _plain(info.name)), None)
    if used < LEAST_WINDOW:
        limit = f", with a model that has more than {info.context_length:,}" if limited else ""
        return [found("window.small", window=f"{used:,}", source=source, model_limit=limit)]
    if loaded is not None and loaded.context_length and loaded.context_length != used:
        return [
            found("window.other", model=info.name, loaded=f"{loaded.context_length:,}", window=f"{used:,}")
        ]  # fmt: skip
    most = f" of {info.context_length:,} that the model has" if info.context_length and not limited else ""
    return [well("window", f"{used:,} tokens ({source}){most}")]


def engine(facts: Facts) -> list[Finding]:
    """The built-in engine; only a fault when the settings want it."""
    look = facts.engine
    if look.gguf_error:
        return [found("engine.bad_file", error=look.gguf_error)]
    if look.missing:
        missing = ", ".join(look.missing)
        if look.wanted:
            return [found("engine.missing", missing=missing)]
        return [well("engine", "Not installed, and not needed. (pip install 'tui-agent[embedded]')")]
    if not look.has_model and not look.gguf:
        if look.wanted:
            return [found("engine.no_model")]
        return [well("engine", "Installed without its model; --embedded with `gguf:` runs a file of yours.")]
    return [well("engine", f"{'In use' if look.wanted else 'Installed'}; its log is {look.log}.")]


def embedder(facts: Facts) -> list[Finding]:
    """What makes vectors of memories."""
    look = facts.embedder
    if look.setting == "none":
        return [well("embedder", "none, as the settings say: memories are found by their words.")]
    named = look.setting not in ("auto", "builtin")
    if named and look.notice and not look.identity.startswith("ollama:"):
        return [found("embedder.missing", notice=look.notice, setting=look.setting)]
    if not look.identity:
        return [found("embedder.words")]
    return [well("embedder", look.identity)]


_SERVER_CHECKS: dict[str, Callable[[Facts], list[Finding]]] = {
    "address": address,
    "consent": consent,
    "proxy": proxy,
    "server": server,
    "version": version,
    "model": model,
    "tools": tools,
    "window": window,
    "engine": engine,
    "embedder": embedder,
}
_LOOKS = {**_SERVER_CHECKS, **STORE_CHECKS, **MACHINE_CHECKS}
CHECKS: tuple[Check, ...] = tuple(Check(name, *words, _LOOKS[name]) for name, words in TITLES.items())


def examine(facts: Facts) -> list[Finding]:
    """All findings, in the order of the table. A check that fails itself is a finding too."""
    findings: list[Finding] = []
    for check in CHECKS:
        try:
            findings += check.look(facts)
        except (ModelError, OSError, ValueError) as error:
            findings.append(Finding("broken", check.name, f"This could not be looked at: {error}"))
    return findings


def _plain(name: str) -> str:
    return name.removesuffix(":latest")
