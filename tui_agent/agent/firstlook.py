"""Looks around for the first run: server, models, the ``ollama`` program, downloaded weights, the engine, memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tui_agent.agent.consent import Consent, leaves_to
from tui_agent.agent.firstrun import Surroundings
from tui_agent.llm.errors import ConsentNeeded, ModelError
from tui_agent.llm.explain import in_container
from tui_agent.llm.hardware import read_memory
from tui_agent.llm.host import parse_host
from tui_agent.llm.ollama_files import LocalModel, is_embedding, local_models, models_folders
from tui_agent.llm.serving import ollama_program
from tui_agent.llm.types import ModelInfo
from tui_agent.project import UserPaths
from tui_agent.settings import Settings

CONNECT_S = 2.0
_MOST_BLOBS = 20


class FirstLook:
    """Gathers the facts; nothing is written, and nothing but names of models crosses the wire.

    Args:
        env, home: for tests; the process's own when not given.
    """

    def __init__(
        self, settings: Settings, paths: UserPaths, *, env: Mapping[str, str] | None = None, home: Path | None = None
    ) -> None:
        self.settings = settings
        self.paths = paths
        self.env = os.environ if env is None else env
        self.home = home
        self._machine: Surroundings | None = None

    async def look(self, *, model: str = "", host: str = "") -> Surroundings:
        """The facts now. ``model`` and ``host`` stand above the settings'. Never raises."""
        wanted = model or self.settings.model
        if self._machine is None:
            self._machine = await asyncio.to_thread(self._static)
        around = replace(self._machine, wanted=wanted, program=ollama_program(self.env))
        if not around.program or not around.answers:
            around = replace(around, blobs=await asyncio.to_thread(self._blobs))
        return await self._server(around, host or self.settings.url)

    def _static(self) -> Surroundings:
        """What does not change while the program runs."""
        from tui_agent.llm.embedded.models import assembled_path, find_parts
        from tui_agent.llm.embedded.process import missing_packages

        engine = not missing_packages()
        engine_model = False
        if engine:
            with contextlib.suppress(ModelError):
                engine_model = assembled_path(self.paths.models_dir).is_file() or bool(find_parts())
        folder = next((one for one in (self.paths.cache, *self.paths.cache.parents) if one.is_dir()), Path("/"))
        free = 0
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(folder).free
        return Surroundings(
            engine=engine, engine_model=engine_model, memory=read_memory(), free_disk=free, container=in_container()
        )

    def _blobs(self) -> tuple[LocalModel, ...]:
        found = local_models(models_folders(self.env, self.home))[:_MOST_BLOBS]
        return tuple(model for model in found if not is_embedding(model.path))

    async def _server(self, around: Surroundings, address: str) -> Surroundings:
        from tui_agent.llm.client import ModelClient

        consent = Consent(self.paths, self.settings)
        try:
            host = parse_host(address)
        except ModelError as error:
            return replace(around, url=address, odd=True, trouble=str(error))
        around = replace(around, url=host.url, local=host.loopback)
        client = ModelClient(address, allow_remote=consent.allows(address), connect_timeout=CONNECT_S)
        try:
            version = await client.version()
            models = tuple(info for info in await client.tags() if _chats(info))
        except ConsentNeeded as error:
            return replace(around, leaves_to=error.host, trouble=str(error))
        except ModelError as error:
            odd = "not an Ollama server" in str(error) or "proxy answered" in str(error)
            return replace(around, odd=odd, trouble=str(error))
        finally:
            await client.aclose()
        found = next((one for one in models if _plain(one.name) == _plain(around.wanted)), None)
        leaves = leaves_to(found) if found is not None else ""
        if leaves and consent.allows(leaves):
            leaves = ""
        return replace(around, url=client.url, answers=True, version=version, models=models, leaves_to=leaves)


def _chats(info: ModelInfo) -> bool:
    if info.capabilities:
        return "completion" in info.capabilities
    return "bert" not in info.family and "embed" not in info.name


def _plain(name: str) -> str:
    return name.removesuffix(":latest")


def is_worth_asking(paths: UserPaths) -> bool:
    """Whether a person would rather be asked than get the built-in engine: Ollama or its models are on this machine,
    or the engine's own model is not."""
    from tui_agent.llm.embedded.models import assembled_path, find_parts

    if ollama_program() or local_models(models_folders(os.environ)):
        return True
    if assembled_path(paths.models_dir).is_file():
        return False
    try:
        find_parts()
    except ModelError:
        return True
    return False
