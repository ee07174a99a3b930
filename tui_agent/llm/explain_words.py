"""What a model server's own words mean: error texts of Ollama (0.9 to 0.34) and of llama.cpp below it, by pattern.

Everything a server says is untrusted: it is quoted shortened, on one line, without control characters, and never
decides more than the class of the error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tui_agent.llm.bodies import MIN_NUM_CTX
from tui_agent.llm.errors import (
    BadRequest,
    ContextExceeded,
    GenerationFailed,
    LoadFailed,
    ModelError,
    ModelMissing,
    ServerBusy,
    ServerUnreachable,
    ThinkUnsupported,
    ToolParserFailed,
    ToolsUnsupported,
)

CHOOSE = "choose another model with ctrl+o"


@dataclass(frozen=True, slots=True)
class Call:
    """What was being done when it went wrong: enough to name URL, model and remedy.

    ``url`` is the base URL without credentials, ``tried`` further URLs that were tried as well. ``sent`` is called when
    the request has been written to the socket, maybe more than once.
    """

    url: str
    path: str = ""
    model: str = ""
    tried: tuple[str, ...] = ()
    num_ctx: int | None = None
    connect_timeout: float = 5.0
    read_timeout: float | None = None
    loopback: bool = True
    key_sent: bool = False
    sent: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """An ``error`` value taken apart: its text, and the fields llama.cpp adds when it wraps JSON in it."""

    text: str
    type: str = ""
    prompt_tokens: int | None = None
    num_ctx: int | None = None
    json: bool = True


def words_of(error: Any, depth: int = 0) -> Words:
    """The text in an ``error`` value, which may be text, an object, or a string that holds JSON, nested."""
    if isinstance(error, Mapping):
        inner = error.get("error")
        if inner and depth < 5:
            return words_of(inner, depth + 1)
        kind = error.get("type")
        prompt, window = error.get("n_prompt_tokens"), error.get("n_ctx")
        return Words(
            text=str(error.get("message") or inner or ""),
            type=kind if isinstance(kind, str) else "",
            prompt_tokens=prompt if isinstance(prompt, int) else None,
            num_ctx=window if isinstance(window, int) else None,
        )
    if isinstance(error, str):
        if error.lstrip().startswith("{") and depth < 5:
            try:
                return words_of(json.loads(error), depth + 1)
            except (ValueError, RecursionError):
                pass
        return Words(text=error)
    return Words(text="" if error is None else str(error))


def quote(text: str, limit: int = 300) -> str:
    """Foreign text for a sentence: one line, printable, shortened, without a full stop at its end."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return (flat if len(flat) <= limit else flat[: limit - 1] + "…").rstrip(". ")


_MISSING = re.compile(r"model ['\"].*?['\"] not found|^model not found", re.DOTALL)
_CONTEXT = re.compile(
    r"exceeds? the (available context size|context length|model's maximum context)"
    r"|longer than the context length|exceed_context_size",
    re.IGNORECASE,
)
_PARSER = re.compile(
    r"XML syntax error|invalid tool call arguments|(error|failed|unable) (to )?pars(e|ing) (the )?tool"
    r"|tool call parsing|failed to parse (the )?(input|response|output) at pos",
    re.IGNORECASE,
)
CRASH = re.compile(
    r"runner has unexpectedly stopped|error was encountered while running the model|runner process no longer running"
    r"|\bEOF\b|connection reset|forcibly closed|broken pipe|connect: connection refused",
    re.IGNORECASE,
)
_MEMORY = re.compile(
    r"out of memory|more system memory|unable to (load full model|allocate)|cudaMalloc|failed to allocate"
    r"|insufficient memory|not enough memory",
    re.IGNORECASE,
)
_LOAD = re.compile(
    r"process has terminated|timed out waiting for|incompatible with your version|error loading model"
    r"|failed to load|unsupported model architecture|unable to load",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(
    r"roles must alternate|no user query|template|raise_exception|jinja|must alternate|only user.*assistant roles",
    re.IGNORECASE,
)
_REGISTRY = re.compile(r"file does not exist|manifest unknown|pull model manifest: .*(404|not found)", re.IGNORECASE)
_OFFLINE = re.compile(r"dial tcp|no such host|i/o timeout|TLS handshake|network is unreachable", re.IGNORECASE)


def by_words(words: Words, call: Call) -> ModelError | None:  # one table, read from top to bottom
    text = words.text
    if call.path == "/api/pull":
        return _pull(text, call)
    if _MISSING.search(text):
        return missing(call)
    if words.type == "exceed_context_size_error" or _CONTEXT.search(text):
        return _context(words, call)
    if "does not support tools" in text:
        return ToolsUnsupported(
            f"{named(call)} cannot call tools, so it cannot write to its memory.",
            fix=f"Chat on with --no-tools, or {CHOOSE}.",
        )
    if "does not support thinking" in text or re.search(r"think value .* is not supported", text):
        return ThinkUnsupported(f"{named(call)} cannot think step by step.", fix=f"Use --no-think, or {CHOOSE}.")
    if re.search(r"does not support (chat|generate)", text):
        return BadRequest(f"{named(call)} makes embeddings and cannot chat.", fix=f"Please {CHOOSE}.")
    if "does not support embed" in text:
        return BadRequest(f"{named(call)} cannot make embeddings.", fix="Set --embed-model to a model that can.")
    if "invalid think value" in text:
        return BadRequest(f"{named(call)} does not know this level of thinking.", fix="Use low, medium or high.")
    if "invalid model name" in text or text == "model is required":
        return BadRequest(f"{call.model!r} is no model name.", fix="Write it like qwen3:8b, or choose one with ctrl+o.")
    if "can't find closing '}'" in text or "ToolCallFunctionArguments" in text:
        return BadRequest(
            "An earlier tool call in this session has its arguments stored as text, which the server does not take.",
            fix="Start a new session; the old one stays readable.",
        )
    if "missing unit in duration" in text:
        return BadRequest("`keep_alive` needs a unit.", fix="Write it like 30m or 1h in config.yaml.")
    if re.search(r'option ".*?" must be of type', text):
        return BadRequest(f"The server does not take a model option: {quote(text)}.", fix="Correct it in config.yaml.")
    if "invalid format" in text:
        return BadRequest("The server does not take the reply format that was asked for.")
    if re.search(r"\bNaN\b", text):
        return BadRequest(f"{named(call)} gave numbers that are no numbers for this text.")
    if _PARSER.search(text):
        return ToolParserFailed(
            f"The server at {call.url} could not read the tool call that {inside(call)} wrote.",
            fix=f"Say it in other words, or {CHOOSE}.",
        )
    if re.search(r"maximum pending requests|server busy", text):
        return ServerBusy(f"The server at {call.url} is busy: its queue is full.", fix="Try again in a moment.")
    return _runner(words, call)


def _runner(words: Words, call: Call) -> ModelError | None:
    text = words.text
    if _MEMORY.search(text):
        return LoadFailed(
            f"There is not enough memory at {call.url} to run {inside(call)}: {quote(text, 160)}.", fix=_smaller(call)
        )
    if "timed out waiting for" in text:
        return LoadFailed(
            f"{named(call)} was not loaded in time at {call.url}.",
            fix="Start the server with a longer OLLAMA_LOAD_TIMEOUT (like 15m), or choose a smaller model with ctrl+o.",
        )
    if "incompatible with your version" in text or "unsupported model architecture" in text:
        return LoadFailed(
            f"{named(call)} does not run with the Ollama version at {call.url}.", fix=f"Update Ollama, or {CHOOSE}."
        )
    if _LOAD.search(text):
        return LoadFailed(f"{named(call)} could not be loaded at {call.url}: {quote(text, 160)}.", fix=_smaller(call))
    if CRASH.search(text):
        return GenerationFailed(
            f"The process that runs {inside(call)} at {call.url} stopped unexpectedly.",
            fix=f"Your message is kept. Send it again; if it happens twice: {_smaller(call)}",
        )
    if words.type == "server_error" or _TEMPLATE.search(text):
        return BadRequest(
            f"The chat template of {inside(call)} does not accept this conversation: {quote(text, 160)}.",
            fix=f"Start a new session, or {CHOOSE}.",
        )
    return None


def _pull(text: str, call: Call) -> ModelError | None:
    if _REGISTRY.search(text):
        return ModelMissing(
            f"There is no model called {call.model} to download.", fix="Look the name up at https://ollama.com/library."
        )
    if "invalid model name" in text:
        return BadRequest(f"{call.model!r} is no model name.", fix="Write it like qwen3:8b.")
    if re.search(r"no space left|not enough space|disk (is )?full", text, re.IGNORECASE):
        return BadRequest(
            f"The disk at {call.url} is too full for {call.model}.",
            fix="Free some space (`ollama rm` removes models); the download goes on where it stopped.",
        )
    if _OFFLINE.search(text):
        return ServerUnreachable(
            f"The server at {call.url} cannot reach the place where {call.model} is downloaded from.",
            fix="Check its internet connection; the download goes on where it stopped.",
        )
    return None


def _context(words: Words, call: Call) -> ModelError:
    window = words.num_ctx or call.num_ctx
    sizes = (
        f" ({words.prompt_tokens:,} tokens, the window has {window:,})"
        if words.prompt_tokens and window
        else f" (the window has {window:,} tokens)"
        if window
        else ""
    )
    return ContextExceeded(
        f"The prompt is too long for {inside(call)}{sizes}.",
        fix="Shorten the message, or set a larger `num_ctx` in config.yaml.",
    )


def missing(call: Call) -> ModelError:
    return ModelMissing(
        f"The model {call.model} is not installed at {call.url}.",
        fix=f"Run `ollama pull {quote(call.model, 120)}` or {CHOOSE}.",
    )


def _smaller(call: Call) -> str:
    half = (call.num_ctx or 0) // 2
    if half >= MIN_NUM_CTX:
        return f"Set `num_ctx: {half}` in config.yaml, or choose a smaller model with ctrl+o."
    return "Choose a smaller model with ctrl+o."


def named(call: Call) -> str:
    return f"The model {quote(call.model, 120)}" if call.model else "The model"


def inside(call: Call) -> str:
    """The model's name inside a sentence."""
    return "the" + named(call)[3:]


def doing(call: Call) -> str:
    return {
        "/api/chat": "while answering",
        "/api/embed": "while making embeddings",
        "/api/pull": f"while downloading {quote(call.model, 120)}",
    }.get(call.path, f"at {call.path}")


def of_what(call: Call) -> str:
    return {"/api/chat": "of the answer", "/api/pull": "of the download"}.get(call.path, "of the reply")
