"""What may leave this machine: the user's yes, once for each host, kept in the user's own state folder.

A host is another machine's model server, the place where a cloud model runs although a local server offers it, or a
Chroma server that gets the vectors of facts. A project can never give this consent: it may have come from others.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tui_agent.llm.errors import ConsentNeeded, ModelError
from tui_agent.llm.host import Host, parse_host
from tui_agent.llm.types import ModelInfo
from tui_agent.project import UserPaths
from tui_agent.settings import Settings, is_this_machine

CLOUD = "https://ollama.com"


@dataclass(frozen=True, slots=True)
class Allowed:
    """One host that may get what the user writes, and where that is written down."""

    host: str
    source: str


class Consent:
    """Answers whether a host may be talked to, and remembers a yes."""

    def __init__(self, paths: UserPaths, settings: Settings) -> None:
        self.path = paths.allowed_hosts_path
        self._settings = settings

    def allows(self, address: str) -> bool:
        """Whether content may be sent to this address. This machine needs no yes; an unreadable address has none."""
        try:
            wanted = parse_host(address)
        except ModelError:
            return False
        if wanted.loopback or self._settings.allow_remote:
            return True
        return any(_same(one, wanted) for one in (*self._settings.allow_hosts, *self._kept()))

    def allows_machine(self, name: str) -> bool:
        """Whether a machine has a yes for anything, whatever the port: what else may go there is less than what the yes
        was for."""
        if is_this_machine(name) or self._settings.allow_remote:
            return True
        wanted = _machine(name)
        return bool(wanted) and any(_machine(one.host) == wanted for one in self.all())

    def allow(self, address: str) -> str:
        """Remember a yes; returns the host as it is kept.

        Raises:
            ModelError: it is no address.
            OSError: it cannot be kept.
        """
        host = origin(parse_host(address))
        if host not in self._kept():
            self._write([*self._kept(), host])
        return host

    def forget(self, address: str) -> bool:
        """Take a kept yes back; whether there was one. Raises as :meth:`allow`."""
        wanted = parse_host(address)
        kept = self._kept()
        left = [one for one in kept if not (_same(one, wanted) or _same(address, parse_host(one)))]
        if left != kept:
            self._write(left)
        return left != kept

    def all(self) -> list[Allowed]:
        """Every host with a yes."""
        named = [Allowed(one, "allow_hosts in your config.yaml") for one in self._settings.allow_hosts]
        kept = [Allowed(one, str(self.path)) for one in self._kept()]
        every = [Allowed("every host", "allow_remote in your config.yaml")] if self._settings.allow_remote else []
        return [*every, *named, *kept]

    def check_model(self, info: ModelInfo) -> None:
        """Raise :class:`ConsentNeeded` when the model runs on a machine that has no yes."""
        where = leaves_to(info)
        if where and not self.allows(where):
            raise ConsentNeeded(
                f"{info.name} is a cloud model: everything you write and your memory would be sent to {where}.",
                fix=f"If you want that, run `tui-agent allow {where}` once; else choose a local model (--model).",
                detail="cloud model without consent",
                host=where,
            )

    def _kept(self) -> list[str]:
        try:
            lines = self.path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        return [line.strip() for line in lines if _is_address(line.strip())]

    def _write(self, hosts: list[str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write("# Machines that may get what you write. Remove a line to be asked again.\n")
                file.writelines(f"{one}\n" for one in hosts)
            Path(temporary).replace(self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise


def _is_address(line: str) -> bool:
    if not line or line.startswith("#"):
        return False
    try:
        parse_host(line)
    except ModelError:
        return False
    return True


def leaves_to(info: ModelInfo) -> str:
    """Where a cloud model runs, as an address; empty for a model that runs where its server is."""
    if not info.remote:
        return ""
    with contextlib.suppress(ModelError):
        if info.remote_host:
            return origin(parse_host(info.remote_host))
    return CLOUD


def origin(host: Host) -> str:
    """Scheme, name and port; the port is left out where the scheme implies it."""
    name = f"[{host.hostname}]" if ":" in host.hostname else host.hostname
    usual = {"http": 80, "https": 443}.get(host.scheme)
    return f"{host.scheme}://{name}" + ("" if host.port == usual else f":{host.port}")


def _machine(address: str) -> str:
    """The name of the machine alone; empty for what cannot be read."""
    try:
        return parse_host(address).hostname.rstrip(".")
    except ModelError:
        return ""


def _same(entry: str, wanted: Host) -> bool:
    """A bare name means that host whatever the port; anything else must fit in scheme and port too."""
    try:
        host = parse_host(entry)
    except ModelError:
        return False
    if host.hostname.rstrip(".") != wanted.hostname.rstrip("."):
        return False
    bare = "://" not in entry and urlsplit(f"//{entry}").port is None
    return bare or (host.scheme, host.port) == (wanted.scheme, wanted.port)
