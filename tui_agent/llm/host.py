"""The address of the model server: ``OLLAMA_HOST`` in all its forms, and whether it is this machine."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from tui_agent.llm.errors import ServerUnreachable

DEFAULT_PORT = 11434
LOOPBACKS = ("127.0.0.1", "::1")

_NAME = re.compile(r"[\w.\-]+", re.UNICODE)
_PRIVATE_SUFFIXES = (".local", ".internal", ".lan", ".home.arpa", ".localhost")


@dataclass(frozen=True, slots=True)
class Host:
    """A parsed server address.

    ``hostname`` carries no brackets. ``any_family`` is true for names that mean "this machine" without choosing
    between IPv4 and IPv6 (nothing given, ``localhost``, ``0.0.0.0``, ``::``). ``given`` is what the user wrote.
    """

    hostname: str = LOOPBACKS[0]
    port: int = DEFAULT_PORT
    scheme: str = "http"
    path: str = ""
    any_family: bool = False
    given: str = ""
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """Base URL without a trailing slash and without user name or password: safe to show."""
        name = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        return f"{self.scheme}://{name}:{self.port}{self.path}"

    @property
    def loopback(self) -> bool:
        """Whether the address surely is this machine. Names other than ``localhost`` are never trusted to be."""
        if self.hostname.rstrip(".") == "localhost":
            return True
        address = _address(self.hostname)
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            return address.ipv4_mapped.is_loopback
        return address is not None and address.is_loopback

    @property
    def private(self) -> bool:
        """Whether the address is on this machine or in a private network, where proxy variables must not apply."""
        if self.loopback:
            return True
        address = _address(self.hostname)
        if address is not None:
            return address.is_private or address.is_link_local
        name = self.hostname.rstrip(".")
        return "." not in name or name.endswith(_PRIVATE_SUFFIXES)

    def others(self, tried: Collection[str]) -> list[Host]:
        """The loopback addresses that ``tried`` (IP addresses) leaves, or nothing when one address was meant."""
        if not self.any_family:
            return []
        return [replace(self, hostname=address) for address in LOOPBACKS if address not in tried]


def parse_host(value: str | None) -> Host:
    """The address meant by an ``OLLAMA_HOST`` value, ``--host`` or ``host:`` setting.

    Follows Ollama's own rules (no value: ``http://127.0.0.1:11434``; ``http://h`` port 80; ``https://h`` port 443;
    ``h`` port 11434; a path is kept), takes a bare IPv6 address, and turns the bind-all addresses ``0.0.0.0`` and
    ``::`` into loopback, which is what they mean for a client.

    Raises:
        ServerUnreachable: the value is no address.
    """
    text = (value or "").strip().strip("\"'").strip()
    if not text:
        return Host(any_family=True, given=text)
    scheme, separator, rest = text.partition("://")
    if separator:
        scheme = scheme.lower()
        if scheme not in ("http", "https"):
            raise _bad(text, f"it starts with {scheme}://")
        port = 443 if scheme == "https" else 80
    else:
        scheme, rest, port = "http", text, DEFAULT_PORT
    name, slash, path = rest.partition("/")
    if isinstance(_address(name), ipaddress.IPv6Address):
        name = f"[{name}]"
    try:
        split = urllib.parse.urlsplit(f"{scheme}://{name}{slash}{path}")
        hostname = split.hostname or ""
        port = split.port if split.port is not None else port
    except ValueError as error:
        raise _bad(text, str(error).lower()) from None
    if not 1 <= port <= 65535:
        raise _bad(text, f"{port} is no port")
    if hostname and _address(hostname) is None and not _NAME.fullmatch(hostname):
        raise _bad(text, "the host name has characters that no host name has")
    any_family = hostname in ("", "localhost", "0.0.0.0", "::")
    hostname = {"": LOOPBACKS[0], "0.0.0.0": LOOPBACKS[0], "::": LOOPBACKS[1]}.get(hostname, hostname)
    clean_path = "/" + split.path.strip("/") if split.path.strip("/") else ""
    return Host(
        hostname=hostname,
        port=port,
        scheme=scheme,
        path=clean_path,
        any_family=any_family,
        given=_without_credentials(text),
        user=urllib.parse.unquote(split.username or ""),
        password=urllib.parse.unquote(split.password or ""),
    )


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _without_credentials(text: str) -> str:
    head, at, tail = text.rpartition("@")
    if not at:
        return text
    scheme, separator, _ = head.partition("://")
    return f"{scheme}{separator}{tail}" if separator else tail


def _bad(text: str, why: str) -> ServerUnreachable:
    shown = _without_credentials("".join(c if c.isprintable() else "?" for c in text))[:120]
    return ServerUnreachable(
        f"The server address {shown!r} cannot be used: {why}.",
        fix="Write it like http://127.0.0.1:11434, in --host, in `host:` of config.yaml or in OLLAMA_HOST.",
        detail=why,
    )
