"""What ``tui-agent models`` does when it runs: a desk over the server of the project's settings, and its tables."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tui_agent.agent.consent import Consent
from tui_agent.agent.model_notes import ModelNotes
from tui_agent.agent.models import ModelDesk, ModelView, share_words, size_words, stay_words
from tui_agent.cli.options import flags_of, open_project, settings_for
from tui_agent.cli.printing import Printer, table
from tui_agent.llm.client import ModelClient
from tui_agent.llm.errors import BadRequest, ModelError
from tui_agent.llm.host import parse_host
from tui_agent.llm.probe import WORDS
from tui_agent.llm.serving import ServerUse
from tui_agent.llm.types import ModelInfo, RunningModel

INTERRUPTED = 130
USAGE = 2
Job = Callable[[ModelDesk, ModelClient], Awaitable[int]]


def run_list(project: Path, host: str | None, embedded: bool | None, *, as_json: bool) -> int:
    """All installed models."""

    async def job(desk: ModelDesk, client: ModelClient) -> int:
        views = await desk.installed()
        printer = Printer(as_json)
        if not views:
            printer.note(f"The server at {client.url} has no model yet. `tui-agent models pull NAME` downloads one.")
        head = [("NAME", "SIZE", "PARAMETERS", "WINDOW", "NOW", "CAN")] if views else []
        printer.data([_view_data(view) for view in views], table([*head, *map(_row, views)]))
        return 0

    return run(project, host, embedded, job)


def run_show(project: Path, host: str | None, embedded: bool | None, name: str, *, probe: bool, as_json: bool) -> int:
    """One model; with ``probe`` it is asked to call a tool first."""

    async def job(desk: ModelDesk, client: ModelClient) -> int:
        if probe:
            Printer().note(f"Asking {name} to call a tool; it is loaded for that if need be.")
            await desk.probe(name)
        view = await desk.show(name)
        Printer(as_json).data(_view_data(view), table(_facts(desk, view)))
        return 0

    return run(project, host, embedded, job)


def run_ps(project: Path, host: str | None, embedded: bool | None, *, as_json: bool) -> int:
    """What is loaded."""

    async def job(desk: ModelDesk, client: ModelClient) -> int:
        running = await client.ps()
        printer = Printer(as_json)
        if not running:
            printer.note(f"No model is loaded at {client.url}. The next answer loads one.")
        head = [("NAME", "SIZE", "RUNS ON", "WINDOW", "UNTIL")] if running else []
        rows = [
            (one.name, size_words(one.size), share_words(one), _number(one.context_length), _stay(one))
            for one in running
        ]
        printer.data([_running_data(one) for one in running], table([*head, *rows]))
        return 0

    return run(project, host, embedded, job)


def run_unload(project: Path, host: str | None, embedded: bool | None, name: str, *, as_json: bool) -> int:
    """Free a model's memory."""

    async def job(desk: ModelDesk, client: ModelClient) -> int:
        said = await desk.unload(name)
        Printer(as_json).data({"model": name, "result": said}, [said])
        return 0

    return run(project, host, embedded, job)


def run(project: Path, host: str | None, embedded: bool | None, job: Job) -> int:
    """Do ``job`` on the server that the project's settings name; trouble becomes one sentence and an exit code."""
    opened, paths = open_project(project)
    loaded = settings_for(opened, paths, flags_of(host=host, embedded=embedded))
    settings = loaded.settings
    if settings.embedded:
        Printer().note("The built-in engine has its one model by itself; this is about the models of a server.")

    async def main() -> int:
        use = ServerUse(paths.servers_dir)
        client = ModelClient(settings.url, allow_remote=Consent(paths, settings).allows(settings.url))
        desk = ModelDesk(
            lambda: client, ModelNotes(paths.model_notes_path), current=lambda: settings.model, num_ctx=settings.num_ctx
        )
        try:
            use.begin(parse_host(settings.url))
            return await job(desk, client)
        except ModelError as error:
            print(f"tui-agent: {error}", file=sys.stderr)
            return exit_code(error)
        finally:
            await client.aclose()
            use.end()

    try:
        return asyncio.run(main())
    except KeyboardInterrupt:
        return INTERRUPTED


def exit_code(error: ModelError) -> int:
    """The exit code of a failure: a name that is no name is wrong usage, everything else has its own."""
    return USAGE if isinstance(error, BadRequest) and "no model name" in error.message else error.exit_code


def _row(view: ModelView) -> tuple[str, ...]:
    info = view.info
    now = " ".join(filter(None, ("loaded", share_words(view.running)))) if view.running else ""
    return (
        f"{'*' if view.current else ' '} {info.name}",
        size_words(info.size),
        " ".join(filter(None, (info.parameter_size, info.quantization))),
        _number(info.context_length),
        now,
        ", ".join((*view.abilities, *(["leaves this machine"] if info.remote else []))),
    )


def _facts(desk: ModelDesk, view: ModelView) -> list[tuple[str, str]]:
    info, offer = view.info, desk.offer(view.info)
    rows = [
        ("name", info.name),
        ("size", size_words(info.size)),
        ("parameters", " ".join(filter(None, (info.parameter_size, info.quantization)))),
        ("family", info.family),
        (
            "window",
            f"{_number(info.context_length)} tokens trained, {offer.num_ctx:,} used" if info.context_length else "",
        ),
        ("can", ", ".join(sorted(info.capabilities))),
        ("tools", WORDS[view.tool_calling] if view.tool_calling else "not tried yet (--probe)"),
        (
            "now",
            " · ".join(filter(None, ("loaded", share_words(view.running), _stay(view.running))))
            if view.running
            else "not loaded",
        ),
        ("runs", "on another machine (cloud model)" if info.remote else ""),
        ("digest", info.digest),
    ]
    return [row for row in rows if row[1]]


def _view_data(view: ModelView) -> dict[str, Any]:
    info: ModelInfo = view.info
    return {
        "name": info.name,
        "digest": info.digest,
        "size": info.size,
        "parameter_size": info.parameter_size,
        "quantization": info.quantization,
        "family": info.family,
        "context_length": info.context_length,
        "embedding_length": info.embedding_length,
        "capabilities": sorted(info.capabilities),
        "tool_calling": view.tool_calling or None,
        "remote": info.remote,
        "current": view.current,
        "loaded": _running_data(view.running) if view.running else None,
    }


def _running_data(running: RunningModel) -> dict[str, Any]:
    return {
        "name": running.name,
        "size": running.size,
        "size_vram": running.size_vram,
        "context_length": running.context_length,
        "expires_at": running.expires_at,
    }


def _stay(running: RunningModel) -> str:
    return stay_words(running.expires_at, datetime.now(timezone.utc))


def _number(value: int | None) -> str:
    return f"{value:,}" if value else ""
