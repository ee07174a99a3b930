"""From the server's JSON to our values, forgiving about missing, unknown and odd fields."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from tui_agent.llm.types import JSON, ChatChunk, Metrics, ModelInfo, PullProgress, RunningModel, ToolCall

_NANOSECONDS = 1e9
# Names come polluted by channel tokens (`search<|channel|>commentary`) and name spaces (`functions.search`).
_NAME_SPACE = re.compile(r"^functions?[.:]")


def chat_chunk(line: Mapping[str, Any], *, cached_tokens: int | None = None) -> ChatChunk:
    """One chat line as a chunk. ``cached_tokens`` is the figure of the response header, when there was one."""
    message = _mapping(line.get("message"))
    done = line.get("done") is True
    reason = line.get("done_reason")
    return ChatChunk(
        content=text_of(message.get("content")),
        thinking=text_of(message.get("thinking")),
        tool_calls=tool_calls(message.get("tool_calls")),
        done=done,
        done_reason=reason if isinstance(reason, str) and reason else None,
        metrics=metrics(line, cached_tokens=cached_tokens) if done else None,
    )


def metrics(line: Mapping[str, Any], *, cached_tokens: int | None = None) -> Metrics:
    """The counters of a final line: nanoseconds become seconds, absent (or nonsense) figures ``None``."""
    cached = cached_tokens if cached_tokens is not None else integer(line.get("prompt_eval_cached_count"))
    return Metrics(
        prompt_tokens=integer(line.get("prompt_eval_count")),
        cached_tokens=cached,
        output_tokens=integer(line.get("eval_count")),
        total_s=_seconds(line.get("total_duration")),
        load_s=_seconds(line.get("load_duration")),
        prompt_s=_seconds(line.get("prompt_eval_duration")),
        output_s=_seconds(line.get("eval_duration")),
    )


def tool_calls(value: Any) -> tuple[ToolCall, ...]:
    """The calls of a message, in order. Arguments always become an object."""
    if not isinstance(value, list):
        return ()
    calls = []
    for entry in value:
        function = _mapping(_mapping(entry).get("function"))
        name = function.get("name")
        if not isinstance(name, str):
            continue
        identifier = _mapping(entry).get("id")
        calls.append(
            ToolCall(
                name=_NAME_SPACE.sub("", clean(name).split("<|", 1)[0].strip()),
                arguments=arguments(function.get("arguments")),
                id=identifier if isinstance(identifier, str) else "",
            )
        )
    return tuple(calls)


def arguments(value: Any) -> JSON:
    """Tool arguments as an object: ``None`` and ``""`` are ``{}``, a JSON string (even a damaged one) is read."""
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except RecursionError:
            return {}
        except ValueError:
            value = _repaired(value)
    return {str(key): _clean_deep(item) for key, item in value.items()} if isinstance(value, Mapping) else {}


def _repaired(text: str) -> Any:
    from json_repair import repair_json  # only for damaged text, so loaded only then

    try:
        return repair_json(text, return_objects=True)
    except RecursionError:
        return None


def model_info(entry: Mapping[str, Any], *, name: str = "") -> ModelInfo:
    """A row of ``/api/tags`` or a reply of ``/api/show``, which share most fields. ``name`` is used when it has none.

    Only ``/api/tags`` knows ``digest`` and ``size``; only ``/api/show`` always knows the lengths and capabilities.
    """
    details = _mapping(entry.get("details"))
    facts = _mapping(entry.get("model_info"))
    architecture = text_of(facts.get("general.architecture"))
    called = text_of(entry.get("name")) or text_of(entry.get("model")) or name
    remote = bool(entry.get("remote_host") or entry.get("remote_model")) or is_cloud_name(called)
    return ModelInfo(
        name=called,
        digest=text_of(entry.get("digest")).removeprefix("sha256:"),
        capabilities=_capabilities(entry, architecture),
        context_length=_length(facts, architecture, "context_length") or positive(details.get("context_length")),
        embedding_length=_length(facts, architecture, "embedding_length") or positive(details.get("embedding_length")),
        family=text_of(details.get("family")) or architecture,
        parameter_size=text_of(details.get("parameter_size")),
        quantization=text_of(details.get("quantization_level")),
        size=positive(entry.get("size")),
        remote=remote,
        remote_host=text_of(entry.get("remote_host")),
        parameters=_parameters(entry.get("parameters")),
    )


def running_model(entry: Mapping[str, Any]) -> RunningModel:
    """A row of ``/api/ps``. ``size_vram`` 0 means the CPU alone, ``None`` that the server did not say."""
    return RunningModel(
        name=text_of(entry.get("name")) or text_of(entry.get("model")),
        size=positive(entry.get("size")),
        size_vram=integer(entry.get("size_vram")),
        context_length=positive(entry.get("context_length")),
        expires_at=text_of(entry.get("expires_at")),
        digest=text_of(entry.get("digest")),
    )


def is_cloud_name(name: str) -> bool:
    """Whether a model of this name runs on someone else's machine although a local server offers it."""
    return name.endswith((":cloud", "-cloud"))


class PullMeter:
    """Makes the progress of a pull go forwards only: the server's figures fall when a part is fetched again."""

    def __init__(self) -> None:
        self._best: dict[str, int] = {}

    def read(self, line: Mapping[str, Any]) -> PullProgress:
        """One pull line, its ``completed`` never below what was shown before nor above ``total``."""
        status = text_of(line.get("status"))
        digest = text_of(line.get("digest"))
        total = positive(line.get("total"))
        if not digest:
            return PullProgress(status=status, total=total, completed=integer(line.get("completed")))
        best = max(self._best.get(digest, 0), integer(line.get("completed")) or 0)
        if total is not None:
            best = min(best, total)
        self._best[digest] = best
        return PullProgress(status=status, digest=digest, total=total, completed=best)


def text_of(value: Any) -> str:
    """A string field as valid Unicode; anything else counts as absent."""
    return clean(value) if isinstance(value, str) else ""


def clean(text: str) -> str:
    """``text`` without lone surrogates, which neither SQLite nor a terminal can take."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def integer(value: Any) -> int | None:
    """A non-negative whole number, or ``None``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return int(value)


def positive(value: Any) -> int | None:
    """A number above zero, or ``None``."""
    return integer(value) or None


def rows(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; everything else in it is skipped."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _seconds(value: Any) -> float | None:
    nanoseconds = integer(value)
    return None if nanoseconds is None else nanoseconds / _NANOSECONDS


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _clean_deep(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_clean_deep(item) for item in value]
    if isinstance(value, Mapping):
        return {clean(str(key)): _clean_deep(item) for key, item in value.items()}
    return value


def _length(facts: Mapping[str, Any], architecture: str, what: str) -> int | None:
    exact = positive(facts.get(f"{architecture}.{what}"))
    if exact is not None:
        return exact
    # Some converters write another prefix than the architecture's name; `a.vision.context_length` is not meant.
    found = [positive(item) for key, item in facts.items() if key.count(".") == 1 and key.endswith(f".{what}")]
    return next((item for item in found if item is not None), None)


def _capabilities(entry: Mapping[str, Any], architecture: str) -> frozenset[str]:
    listed = entry.get("capabilities")
    if isinstance(listed, list):
        return frozenset(item for item in listed if isinstance(item, str))
    template = text_of(entry.get("template"))
    if "bert" in architecture:
        return frozenset({"embedding"})
    if not template:
        return frozenset()
    # Servers before 0.6.4 do not list capabilities; their templates tell the two that matter.
    found = {"completion"}
    if ".Tools" in template:
        found.add("tools")
    return frozenset(found)


def _parameters(value: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text_of(value).splitlines():
        key, _, rest = line.strip().partition(" ")
        if key:
            rest = rest.strip()
            found[key] = f"{found[key]}\n{rest}" if key in found else rest
    return found
