"""What the doctor knows before it judges: plain data, gathered once by :mod:`tui_agent.agent.doctor.look`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.llm.hardware import Memory
from tui_agent.llm.types import ModelInfo, RunningModel

if TYPE_CHECKING:
    from tui_agent.memory.index_status import IndexStatus


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The model server. ``kind`` and ``error`` are those of the error, empty when it answers; ``given`` is the address
    as written and ``source`` where. ``used_port`` is the port in force; ``proxies`` the proxy variables by name, and
    ``proxied`` whether they apply to this address. ``allowed`` says whether content may be sent there at all."""

    given: str = ""
    source: str = "default"
    url: str = ""
    local: bool = True
    allowed: bool = True
    kind: str = ""
    error: str = ""
    fix: str = ""
    version: str = ""
    models: tuple[ModelInfo, ...] = ()
    running: tuple[RunningModel, ...] = ()
    proxies: Mapping[str, str] = field(default_factory=dict)
    proxied: bool = False
    program: str = ""
    container: bool = False


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The chat model. ``info`` is ``None`` when the server has no such model; ``shown`` came from ``/api/show``.

    ``probe`` is what was found out about its tool calls, ``refused`` that the server failed when tools were on offer,
    ``wanted_ctx`` the window the settings ask for and ``ctx_source`` where that is from, ``leaves_to`` where a cloud
    model runs and ``leave_allowed`` whether that has a yes.
    """

    name: str = ""
    source: str = "default"
    info: ModelInfo | None = None
    error: str = ""
    probe: str = ""
    probed_at: str = ""
    refused: bool = False
    wanted_ctx: int = 0
    ctx_source: str = "default"
    leaves_to: str = ""
    leave_allowed: bool = True


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The built-in engine: whether the settings want it, what is missing of it, and whether its model is there."""

    wanted: bool = False
    missing: tuple[str, ...] = ()
    has_model: bool = False
    gguf: str = ""
    gguf_error: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True)
class EmbedderFacts:
    """What makes vectors: the setting, and the identity of what it means here (empty: words only)."""

    setting: str = "auto"
    identity: str = ""
    notice: str = ""


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """The database. ``identities`` are vectors of live facts by the embedder that made them."""

    path: Path = Path()
    exists: bool = False
    size: int = 0
    faults: tuple[str, ...] = ()
    kind: str = ""
    live: int = 0
    identities: Mapping[str, int] = field(default_factory=dict)
    interrupted: str = ""


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """Chroma's folder. ``state`` is ``none``, ``off``, ``held`` (another process has it), ``ready``, ``unreadable`` or
    ``link``; ``pid`` is the owner as noted, ``alive`` whether that process is there, ``busy`` what it was doing,
    ``crashes`` how often in a row it died doing it. ``remote_host`` is a Chroma server's, ``elsewhere`` whether that is
    another machine. ``emptied`` is false when a deletion could not empty it. ``here`` is what the chat that asks the
    doctor knows of it."""

    state: str = "none"
    mode: str = "local"
    size: int = 0
    gone: int = 0
    pid: int = 0
    alive: bool = False
    busy: str = ""
    crashes: int = 0
    remote_host: str = ""
    remote_allowed: bool = True
    elsewhere: bool = False
    emptied: bool = True
    here: IndexStatus | None = None


@dataclass(frozen=True, slots=True)
class PathFacts:
    """One path the program writes. ``mode`` is the permission bits; ``trouble`` is ``link``, ``kind`` (a file where a
    folder belongs), ``read`` or ``write`` (no permission); ``private`` says that others must not read it."""

    path: Path
    purpose: str
    scope: str
    exists: bool = False
    folder: bool = False
    size: int = 0
    mode: int = 0
    trouble: str = ""
    private: bool = False


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """Free bytes where ``what`` lies, and the kind of file system where it is known."""

    what: str
    path: Path
    free: int
    kind: str = ""


@dataclass(frozen=True, slots=True)
class TerminalFacts:
    """What the terminal can do. ``colours`` is 0 (none), 16, 256 or 2**24; ``copies`` the ways to the clipboard,
    ``newline`` the keys that begin a line. ``here`` is false where the output is no terminal: nothing is judged then
    but what the variables say."""

    here: bool = True
    term: str = ""
    colours: int = 2**24
    no_color: bool = False
    copies: tuple[str, ...] = ()
    newline: tuple[str, ...] = ("ctrl+j",)
    columns: int = 0
    rows: int = 0
    multiplexer: str = ""
    utf8: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything. ``problems`` are faults of the settings, ``notes`` of the files in the prompt."""

    server: ServerFacts = ServerFacts()
    model: ModelFacts = ModelFacts()
    engine: EngineFacts = EngineFacts()
    embedder: EmbedderFacts = EmbedderFacts()
    store: StoreFacts = StoreFacts()
    index: IndexFacts = IndexFacts()
    paths: tuple[PathFacts, ...] = ()
    disks: tuple[DiskFacts, ...] = ()
    memory: Memory = Memory()  # noqa: RUF009
    terminal: TerminalFacts = TerminalFacts()
    problems: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    python: str = ""
    sqlite: str = ""
    fts5: bool = True
    root: Path = Path()
