"""Carries out what the first run was answered: starts the server, downloads, allows a host, keeps the choice."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui_agent.agent.consent import Consent
from tui_agent.agent.firstlook import FirstLook
from tui_agent.agent.firstrun import Act, FirstRun, Surroundings
from tui_agent.llm.errors import ModelError, ServerUnreachable
from tui_agent.llm.host import Host, parse_host
from tui_agent.llm.pulling import PullState, follow_pull
from tui_agent.llm.serving import OllamaServer, ollama_program
from tui_agent.project import UserPaths
from tui_agent.settings import Loaded
from tui_agent.settings_fields import DEFAULT_HOST
from tui_agent.settings_write import keep_setting

# Told how an act goes: a line for people, and a share from 0 to 1 where there is one.
OnProgress = Callable[[str, "float | None"], None]


class SetUp:
    """The hands of the first run. One object lives as long as the program: it owns the server it started.

    Args:
        loaded: the settings, with where each is from.
        connect: connects the session to the model once something is there; returns nothing, raises ``ModelError``.
        use_engine: starts the built-in engine with a file, or with its own model for ``None``.
        use_model: makes the session use a model of the server.
        env, home: for tests.
    """

    def __init__(
        self,
        loaded: Loaded,
        paths: UserPaths,
        *,
        connect: Callable[[str], Awaitable[bool]] | None = None,
        use_engine: Callable[[Path | None], Awaitable[None]] | None = None,
        env: Mapping[str, str] | None = None,
        home: Path | None = None,
    ) -> None:
        self.loaded = loaded
        self.paths = paths
        self.env = os.environ if env is None else env
        self.server: OllamaServer | None = None
        self.model = ""
        self.host = ""
        self.engine_file: Path | None = None
        self.uses_engine = False
        self._connect = connect
        self._use_engine = use_engine
        self._look = FirstLook(loaded.settings, paths, env=env, home=home)

    async def look(self) -> Surroundings:
        """The facts now."""
        return await self._look.look(model=self.model, host=self.host)

    async def carry_out(self, run: FirstRun, act: Act, on_progress: OnProgress) -> None:
        """Do what an answer asked for, and tell ``run`` how it went. Cancelling stops a download or a start."""
        try:
            await self._do(act, on_progress)
            facts = await self.look()
            run.done(await self._connected(facts))
        except asyncio.CancelledError:
            run.cancelled()
            raise
        except ModelError as error:
            run.failed(str(error), await self.look())
        except OSError as error:
            run.failed(f"That could not be kept: {error.strerror or error}.", await self.look())

    async def connect(self) -> bool:
        """Connect the session to what is there; whether it has its model now. Raises ``ModelError``."""
        return self._connect is not None and await self._connect(self.model)

    async def _do(self, act: Act, on_progress: OnProgress) -> None:
        match act.what:
            case "serve":
                await self._serve(on_progress)
            case "pull":
                await self._pull(act.value, on_progress)
                await self._take(act.value)
            case "model":
                await self._take(act.value)
            case "allow":
                await asyncio.to_thread(self.consent.allow, act.value)
            case "here":
                self.host = DEFAULT_HOST
            case "engine":
                on_progress("starting the built-in engine", None)
                self.uses_engine = True
                self.engine_file = Path(act.value) if act.value else None
                if self._use_engine is not None:
                    await self._use_engine(self.engine_file)
            case _:
                pass

    @property
    def consent(self) -> Consent:
        """Who may get what is written."""
        return Consent(self.paths, self.loaded.settings)

    async def _connected(self, facts: Surroundings) -> Surroundings:
        """The facts, ``connected`` once the session has its model (or would have it, when there is no session yet)."""
        if self.uses_engine:
            return replace(facts, connected=True)
        if facts.state == "ready" and self._connect is not None:
            return replace(facts, connected=await self._connect(self.model))
        return facts

    async def _serve(self, on_progress: OnProgress) -> None:
        program = ollama_program(self.env)
        host = parse_host(self.host or self.loaded.settings.url)
        if not program:
            raise ServerUnreachable("The program `ollama` is not there any more.", fix="Install it again.")
        if not host.loopback:
            raise ServerUnreachable(f"{host.url} is not this machine, so it cannot be started from here.")
        self.close()
        self.server = OllamaServer(program, host, self.log_path, self.paths.servers_dir)
        on_progress(f"starting Ollama; its output goes to {self.log_path}", None)
        await self.server.start(lambda: self._answers(host))

    async def _answers(self, host: Host) -> bool:
        from tui_agent.llm.client import ModelClient

        client = ModelClient(host.url, connect_timeout=1.0)
        try:
            return await client.alive()
        finally:
            await client.aclose()

    async def _pull(self, name: str, on_progress: OnProgress) -> None:
        from tui_agent.llm.client import ModelClient

        address = self.host or self.loaded.settings.url
        client = ModelClient(address, allow_remote=self.consent.allows(address))
        on_progress(f"downloading {name}", 0.0)
        try:
            async with contextlib.aclosing(follow_pull(client, name)) as states:
                async for state in states:
                    on_progress(_pull_words(state), state.share)
        finally:
            await client.aclose()

    async def _take(self, name: str) -> None:
        """Use a model from now on, and in later runs too where the settings let us write that down."""
        self.model = name
        if self.may_keep_model:
            await asyncio.to_thread(keep_setting, self.paths.config_path, "model", name)

    @property
    def may_keep_model(self) -> bool:
        """Whether the user's own config decides the model: what a flag, a variable or a project says stands above."""
        source = self.loaded.sources.get("model", "default")
        return source == "default" or source.startswith(str(self.paths.config_path))

    @property
    def log_path(self) -> Path:
        """Where the server we start writes to."""
        return self.paths.logs_dir / "ollama.log"

    @property
    def flags(self) -> dict[str, Any]:
        """The answers as settings named on the command line, for a session that is opened after them."""
        flags: dict[str, Any] = {}
        if self.uses_engine:
            flags["embedded"] = True
            if self.engine_file is not None:
                flags["gguf"] = str(self.engine_file)
        elif self.model:
            flags["model"] = self.model
        if self.host:
            flags["host"] = self.host
        return flags

    def close(self) -> None:
        """End the server if we started it; the last window that uses it does."""
        server, self.server = self.server, None
        if server is not None:
            server.stop()


def _pull_words(state: PullState) -> str:
    if state.silent_s:
        return f"no data for {state.silent_s:.0f} s; it goes on when the network does"
    if not state.total:
        return state.status
    left = state.seconds_left
    tail = "" if left is None else f" · {left:.0f} s left" if left < 120 else f" · {left / 60:.0f} min left"
    return f"{state.completed / 1e9:.2f} of {state.total / 1e9:.2f} GB{tail}"
