"""The doctor's questions to the model server: version, models, the chat model, the embedder."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_agent.agent.consent import Consent, leaves_to
from tui_agent.agent.doctor.facts import EmbedderFacts, ModelFacts, ServerFacts
from tui_agent.agent.model_notes import ModelNotes
from tui_agent.llm.errors import ConsentNeeded, ModelError, ModelMissing
from tui_agent.llm.explain import in_container
from tui_agent.llm.host import parse_host
from tui_agent.llm.serving import ollama_program
from tui_agent.llm.types import ModelInfo, RunningModel
from tui_agent.project import UserPaths
from tui_agent.settings import Loaded

if TYPE_CHECKING:
    from tui_agent.llm.client import ModelClient

CONNECT_S = 2.0
ANSWER_S = 5.0
PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


async def look_at_server(
    loaded: Loaded, paths: UserPaths, env: Mapping[str, str]
) -> tuple[ServerFacts, ModelFacts, EmbedderFacts]:
    """Ask the server; never raises."""
    from tui_agent.llm.client import ModelClient

    settings = loaded.settings
    consent = Consent(paths, settings)
    model = ModelFacts(
        name=settings.model,
        source=loaded.sources.get("model", "default"),
        wanted_ctx=settings.num_ctx,
        ctx_source=loaded.sources.get("num_ctx", "default"),
    )
    embedder = EmbedderFacts(setting=settings.embedder)
    server = ServerFacts(
        given=settings.url,
        source=loaded.sources.get("host", "default"),
        url=settings.url,
        proxies={name: env[name] for name in (*PROXY_NAMES, *map(str.lower, PROXY_NAMES)) if env.get(name)},
        program=ollama_program(env),
        container=in_container(),
    )
    try:
        host = parse_host(settings.url)
    except ModelError as error:
        return replace(server, kind="bad_address", error=error.message, fix=error.fix), model, await _words(embedder)
    proxied = not host.private and bool(server.proxies) and not urllib.request.proxy_bypass(host.hostname)
    server = replace(
        server, url=host.url, local=host.loopback, allowed=consent.allows(settings.url), proxied=bool(proxied)
    )
    if settings.embedded:
        return server, model, await _words(embedder)
    client = ModelClient(settings.url, allow_remote=server.allowed, connect_timeout=CONNECT_S)
    try:
        return await asyncio.wait_for(_ask(client, server, model, embedder, paths, consent), ANSWER_S)
    except ModelError as error:
        server = replace(server, url=client.url, kind=kind_of(error), error=error.message, fix=error.fix)
    except (asyncio.TimeoutError, TimeoutError):
        server = replace(server, url=client.url, kind="slow", error=f"{client.url} does not answer in time.")
    finally:
        await client.aclose()
    return server, model, await _words(embedder)


async def _ask(
    client: ModelClient,
    server: ServerFacts,
    model: ModelFacts,
    embedder: EmbedderFacts,
    paths: UserPaths,
    consent: Consent,
) -> tuple[ServerFacts, ModelFacts, EmbedderFacts]:
    version = await client.version()
    models = tuple(await client.tags())
    running: tuple[RunningModel, ...] = ()
    with contextlib.suppress(ModelError):
        running = tuple(await client.ps())
    server = replace(server, url=client.url, version=version, models=models, running=running)
    info: ModelInfo | None = None
    with contextlib.suppress(ModelMissing):
        info = await client.show(model.name)
    if info is not None:
        listed = next((one for one in models if _plain(one.name) == _plain(info.name)), None)
        if listed is not None:
            info = replace(info, name=listed.name, digest=listed.digest, size=listed.size or info.size)
        note = ModelNotes(paths.model_notes_path).get(info.digest)
        where = leaves_to(info)
        model = replace(
            model,
            info=info,
            probe=note.tools,
            probed_at=note.at,
            refused=note.tools_refused,
            leaves_to=where,
            leave_allowed=not where or consent.allows(where),
        )
    return server, model, await _embedder(embedder, client, models)


async def _words(embedder: EmbedderFacts) -> EmbedderFacts:
    """What makes vectors while there is no server."""
    return await _embedder(embedder, None, ())


async def _embedder(
    embedder: EmbedderFacts, client: ModelClient | None, models: tuple[ModelInfo, ...]
) -> EmbedderFacts:
    from tui_agent.llm.embeddings import choose_embedder

    chosen, notice = await choose_embedder(embedder.setting, client, list(models))
    return replace(embedder, identity=chosen.identity if chosen is not None else "", notice=notice)


def kind_of(error: ModelError) -> str:
    """A word for the trouble with a server."""
    if isinstance(error, ConsentNeeded):
        return "consent_needed"
    words = str(error)
    if "can be prepared" in words:
        return "bad_environment"
    if "is not an Ollama server" in words or "proxy answered" in words:
        return "not_ollama"
    if "did not answer" in words:
        return "slow"
    if any(mark in words for mark in ("Nothing answers", "did not take the connection", "host name in")):
        return "closed"
    return "refused"


def _plain(name: str) -> str:
    return name.removesuffix(":latest")
