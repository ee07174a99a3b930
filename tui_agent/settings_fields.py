"""Every setting, its default, what is allowed and what it does. The descriptions are the documentation."""

from __future__ import annotations

import functools
import ipaddress
import operator
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, cast, get_args, get_origin
from urllib.parse import urlsplit

import annotated_types
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, TypeAdapter
from pydantic.fields import FieldInfo

DEFAULT_HOST = "http://127.0.0.1:11434"

# Go's duration: the form the model server reads; a number without a unit is an error there.
_DURATION = re.compile(r"-?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))*")


def _one_word(value: str) -> str:
    value = value.strip()
    if not value or re.search(r"[\s\x00-\x1f\x7f]", value):
        raise ValueError("one word")
    return value


def _duration(value: str) -> str:
    value = value.strip()
    if not _DURATION.fullmatch(value):
        raise ValueError("duration")
    return value


def _text(value: str) -> str:
    if not value.strip() or "\0" in value:
        raise ValueError("text")
    return value


Word = Annotated[str, AfterValidator(_one_word)]
Duration = Annotated[str, AfterValidator(_duration)]
Text = Annotated[str, AfterValidator(_text)]


def _field(default: Any, description: str, *, allowed: str = "", **limits: Any) -> Any:
    """A field whose ``allowed`` words override those made from its type."""
    extra: dict[str, JsonValue] | None = {"allowed": allowed} if allowed else None
    return Field(default, description=description, json_schema_extra=extra, **limits)


class Section(BaseModel):
    """Base of all settings: unknown keys are errors, nothing changes after loading, defaults are checked too."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True, allow_inf_nan=False)


class WorkingMemorySettings(Section):
    """The hot and cold zone."""

    max_tokens: int = _field(2048, "Budget of the hot zone, in tokens, as rendered into the prompt.", ge=128, le=131072)
    max_pinned_tokens: int | None = _field(
        None, "Most tokens that pins may hold; a third of the budget when not set.", ge=0, le=131072
    )
    recall_cooldown_steps: int = _field(3, "Steps an item stays away after it was put away.", ge=0, le=1000)
    recall_bypass_sim: float | None = _field(
        0.85, "Similarity from which a question brings an item back in spite of that; null switches it off.", ge=0, le=1
    )
    dedup_threshold: float = _field(0.92, "Similarity from which two notes are merged.", ge=0, le=1)
    calibrate: bool = _field(True, "Calibrate similarities per embedder, so that unrelated text scores about zero.")

    @property
    def pinned_cap(self) -> int:
        """The limit in force for pinned tokens."""
        return self.max_tokens // 3 if self.max_pinned_tokens is None else self.max_pinned_tokens


class RecallSettings(Section):
    """What is looked up for each message."""

    top_k: int = _field(5, "Most items recalled for one message.", ge=0, le=50)
    threshold: float = _field(0.25, "Score below which an item is shown as a near miss and not sent.", ge=-1, le=2)
    recency_days: float = _field(
        90.0, "Days without confirmation that cost a fact its full age penalty.", gt=0, le=3650
    )
    max_tokens: int = _field(600, "Most tokens of recalled items in one message.", ge=0, le=32768)


class FileSettings(Section):
    """How much of the memory files goes into the prompt. What is cut is always shown."""

    agents_max_tokens: int = _field(800, "Most tokens of AGENTS.md, CLAUDE.md and each similar file.", ge=50, le=65536)
    user_max_tokens: int = _field(600, "Most tokens of knowledge/user.md.", ge=50, le=65536)
    rules_max_tokens: int = _field(
        800, "Most tokens of each rules.md outside .agent-memory; the one inside is never cut.", ge=50, le=65536
    )
    skill_max_tokens: int = _field(800, "Most tokens of one matching skill.", ge=50, le=65536)
    total_max_tokens: int = _field(3000, "Most tokens of all memory files together.", ge=200, le=131072)


class ChromaSettings(Section):
    """The index of the facts' vectors. Without it, search by meaning is exact over the database; nothing is lost."""

    mode: Literal["local", "http", "off"] = _field(
        "local",
        "local: a store inside .agent-memory; http: a Chroma server, which gets vectors and ids, no text; off: none.",
    )
    host: Word = _field(
        "127.0.0.1",
        "Host of the Chroma server, in mode http. Another machine needs a yes, as for a model server (allow_hosts).",
        allowed="a host name or address",
    )
    port: int = _field(8000, "Port of the Chroma server, in mode http.", ge=1, le=65535)


class UiSettings(Section):
    """The screen."""

    cursor_blink: bool = _field(True, "Let the cursor blink.")


class Settings(Section):
    """All settings in force. Nested keys are written ``section.key``."""

    model: Word = _field("qwen2.5-coder:7b", "Chat model, as the model server names it.", allowed="a model name")
    embedder: Word = _field(
        "auto",
        "Makes vectors: auto (nomic-embed-text where installed, else builtin), builtin, none, or a model name.",
        allowed="auto, builtin, none, or the name of an embedding model",
    )
    host: Word | None = _field(
        None,
        f"Address of the model server. OLLAMA_HOST counts when it is set here nowhere else; else {DEFAULT_HOST}.",
        allowed="an address such as http://127.0.0.1:11434",
    )
    allow_remote: bool = _field(
        False, "Allow a model server that is not on this machine. Only your own config, not a project's, can say so."
    )
    allow_hosts: tuple[Text, ...] = _field(
        (),
        "Other machines that may get what you write and your memory: model servers, https://ollama.com for cloud "
        "models, a Chroma server. The chat asks once for each and keeps your yes in its state folder. Only your own "
        "config can say so.",
        allowed="a list of addresses such as http://box:11434",
    )
    embedded: bool = _field(False, "Use the built-in engine (llama.cpp) instead of a model server.")
    gguf: Text | None = _field(
        None, "Model file for the built-in engine; the default model when not set.", allowed="the path of a .gguf file"
    )
    num_ctx: int = _field(
        8192, "Context window to ask for, in tokens; never more than the model has.", ge=2048, le=2**20
    )
    keep_alive: Duration | float = _field(
        "30m",
        "How long the server keeps the model loaded after an answer; -1 for ever.",
        allowed="a time with a unit such as 30m or 1h30m, or a number of seconds",
    )
    think: bool | Literal["low", "medium", "high"] | None = _field(
        None,
        "Ask the model to think; null leaves it to the model.",
        allowed="true, false, low, medium, high, or null",
    )
    tools: bool = _field(True, "Offer tools to the model.")
    temperature: float | None = _field(None, "Sampling temperature; the model's own when not set.", ge=0, le=2)
    seed: int | None = _field(None, "Seed of the sampling; a new one each time when not set.", ge=0, le=2**31 - 1)
    keep_messages: int = _field(
        20, "Messages that stay word for word when older ones are summarised; the prompt names it.", ge=2, le=200
    )
    max_tool_rounds: int = _field(6, "Most rounds of tool calls for one message.", ge=1, le=50)
    check_saves: bool = _field(
        True,
        "After an answer, ask the model once more for your words when something worth saving was not saved; a new "
        "message ends that at once. Off: a key offers to save it.",
    )
    extract_after_turns: int = _field(
        10,
        "Search the conversation for lasting facts after this many of your messages, while nothing else runs, and when "
        "it is left; 0 switches both off.",
        ge=0,
        le=1000,
    )
    rules: tuple[Text, ...] = _field(
        (),
        "Rules as literal text, always in the prompt; yours come first, then the project's.",
        allowed="a list of short texts",
    )
    theme: Word = _field(
        "default", "Colour theme: one of those shipped, or a file of your own.", allowed="a theme's name"
    )
    watch: bool = _field(True, "Notice changes of memory files and settings while the program runs.")
    user_notes_max_lines: int = _field(40, "Most lines of notes about you that are always sent.", ge=1, le=500)
    working_memory: WorkingMemorySettings = WorkingMemorySettings()
    recall: RecallSettings = RecallSettings()
    files: FileSettings = FileSettings()
    chroma: ChromaSettings = ChromaSettings()
    ui: UiSettings = UiSettings()
    keymap: dict[Word, Text] = _field(
        {}, "Keys of actions, as action: keys; several keys with commas.", allowed="keys such as ctrl+o or f5,ctrl+r"
    )

    @property
    def url(self) -> str:
        """The model server's address as configured (not yet normalised)."""
        return self.host or DEFAULT_HOST


# Of these, a project's config.yaml may not decide: it can come with a clone, and they send text or load native data.
USER_ONLY = frozenset({"allow_remote", "allow_hosts", "gguf"})
# These hold several texts.
LISTS = frozenset({"rules", "allow_hosts"})
# These may name only this machine in a project's config.yaml, for the same reason.
LOCAL_ONLY = frozenset({"host", "chroma.host"})

SECTIONS: dict[str, type[Section]] = {
    name: type(field.default) for name, field in Settings.model_fields.items() if isinstance(field.default, Section)
}


def leaves() -> Iterator[tuple[str, FieldInfo]]:
    """Every settable key with its field, in order; ``keymap`` stands for all actions."""
    for name, field in Settings.model_fields.items():
        if name in SECTIONS:
            yield from ((f"{name}.{inner}", one) for inner, one in SECTIONS[name].model_fields.items())
        else:
            yield name, field


FIELDS: dict[str, FieldInfo] = dict(leaves())


def allowed(key: str) -> str:
    """What a key accepts, in words; for an action of ``keymap`` what each action accepts."""
    field = FIELDS["keymap" if key.startswith("keymap.") else key]
    extra = field.json_schema_extra
    if isinstance(extra, dict) and "allowed" in extra:
        return str(extra["allowed"])
    kinds = kinds_of(key)
    if all(get_origin(kind) is Literal for kind in kinds):
        words = "one of " + ", ".join(str(one) for one in get_args(kinds[0]))
    elif kinds == (bool,):
        words = "true or false"
    else:
        low, high = _limits(field)
        words = f"{'a whole number' if kinds == (int,) else 'a number'} from {low} to {high}"
    return f"{words}, or null" if nullable(key) else words


def kinds_of(key: str) -> tuple[Any, ...]:
    """The types a key accepts, without ``None`` and without their checks."""
    annotation = FIELDS[key].annotation
    if get_origin(annotation) in (None, Literal, tuple, dict):
        return (annotation,)
    kinds = (get_args(one)[0] if get_origin(one) is Annotated else one for one in get_args(annotation))
    return tuple(one for one in kinds if one is not type(None))


def nullable(key: str) -> bool:
    """Whether ``null`` is a value of this key."""
    return type(None) in get_args(FIELDS[key].annotation)


@functools.cache
def _adapter(key: str) -> TypeAdapter[Any]:
    if key == "keymap.*":
        return TypeAdapter(Text)
    field = FIELDS[key]
    config = ConfigDict(allow_inf_nan=False)
    kind: Any = field.annotation
    if field.metadata:
        kind = operator.getitem(cast(Any, Annotated), (kind, *field.metadata))
    return TypeAdapter(kind, config=config)


def check(key: str, value: Any, *, strict: bool) -> Any:
    """The value as the setting holds it. Raises ``ValueError`` when it is not allowed.

    ``strict`` keeps a text from being read as a number (YAML tells them apart; the environment cannot).
    """
    return _adapter("keymap.*" if key.startswith("keymap.") else key).validate_python(value, strict=strict)


def is_this_machine(address: str) -> bool:
    """Whether an address, with or without scheme and port, surely names this machine."""
    address = address.strip()
    if "@" in address or "\\" in address:  # parsers disagree about these
        return False
    try:
        host = address.strip("[]") if address.count(":") > 1 and "/" not in address and "]:" not in address else None
        if host is None:
            host = urlsplit(address if "://" in address else f"//{address}").hostname or "127.0.0.1"
        if host == "localhost" or host.endswith(".localhost"):
            return True
        found = ipaddress.ip_address(host)
    except ValueError:
        return False
    return found.is_loopback or found.is_unspecified


def _limits(field: FieldInfo) -> tuple[str, str]:
    low = high = ""
    for rule in field.metadata:
        if isinstance(rule, annotated_types.Ge):
            low = f"{rule.ge}"
        elif isinstance(rule, annotated_types.Gt):
            low = f"more than {rule.gt}"
        elif isinstance(rule, annotated_types.Le):
            high = f"{rule.le}"
    return low, high
