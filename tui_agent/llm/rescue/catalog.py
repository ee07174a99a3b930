"""The offered tools: clean names, fit arguments, and sentences for the model when something does not fit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rapidfuzz import fuzz, process

from tui_agent.llm.rescue import literals
from tui_agent.llm.rescue.source import Refusal
from tui_agent.llm.types import ToolCall

_ARTICLE = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_INTEGER = re.compile(r"[+-]?\d{1,30}(?:\.0*)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_MAX_DEPTH = 60
_SURROGATE = re.compile("[\ud800-\udfff]")


class Mismatch(Exception):
    """A value does not fit. The message says what is expected (``an integer``)."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One offered tool: its parameters in order, and those that must be given."""

    name: str
    parameters: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]


def clean_name(name: str) -> str:
    """The name without white space, a ``functions.`` prefix and channel debris (anything from ``<|`` on)."""
    return name.partition("<|")[0].strip().removeprefix("functions.").strip()


class Catalog:
    """The tools of one request, as sent to ``/api/chat``. Entries of another shape are ignored."""

    def __init__(self, tools: Iterable[Mapping[str, Any]]) -> None:
        self.tools: dict[str, Tool] = {}
        for entry in tools:
            function = entry.get("function")
            if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or not function["name"]:
                continue
            schema = function.get("parameters")
            schema = schema if isinstance(schema, Mapping) else {}
            properties = schema.get("properties")
            properties = properties if isinstance(properties, Mapping) else {}
            self.tools[function["name"]] = Tool(
                function["name"],
                {key: value if isinstance(value, Mapping) else {} for key, value in properties.items()},
                tuple(key for key in schema.get("required") or () if isinstance(key, str)),
            )
        # Longest first, so that no name hides another one that it begins.
        self.names = tuple(sorted(self.tools, key=lambda name: (-len(name), name)))
        self.name_pattern = "(?:" + "|".join(map(re.escape, self.names)) + ")" if self.names else "(?!)"
        self.name_inside = re.compile(rf"(?<!\w){self.name_pattern}(?!\w)")
        self.name_start = re.compile(rf"(?:functions\.)?({self.name_pattern})(?![\w-])")

    def get(self, name: str) -> Tool | None:
        """The tool of this name, after cleaning the name."""
        return self.tools.get(clean_name(name))

    def check(self, name: str, arguments: Any, *, rescued: bool, lenient: bool = False) -> ToolCall | Refusal:
        """The call, ready to run, or why it may not run.

        ``arguments`` is an object, its JSON text, or nothing. ``lenient`` also turns numbers into text where text is
        wanted, which loses nothing but is no sign that unmarked text was meant as a call.
        """
        cleaned = clean_name(name)
        tool = self.tools.get(cleaned)
        if tool is None:
            return Refusal(cleaned, self._unknown(cleaned), unknown=True)
        if isinstance(arguments, str) and arguments.strip() not in ("", "null", "None"):
            arguments = literals.parse_text(arguments)
        elif arguments is None or isinstance(arguments, str):
            arguments = {}
        if not isinstance(arguments, Mapping):
            return Refusal(cleaned, f'The arguments of "{cleaned}" must be one JSON object.', unknown=False)
        try:
            return ToolCall(cleaned, self._fit(tool, arguments, lenient), rescued=rescued)
        except Mismatch as problem:
            return Refusal(cleaned, str(problem), unknown=False)

    def _fit(self, tool: Tool, arguments: Mapping[Any, Any], lenient: bool) -> dict[str, Any]:
        fitted: dict[str, Any] = {}
        for key, value in arguments.items():
            if not isinstance(key, str) or key not in tool.parameters:
                raise Mismatch(self._stranger(tool, str(key)))
            if value is None and key not in tool.required:
                continue
            try:
                fitted[key] = _storable(fit(value, tool.parameters[key], lenient))
            except Mismatch as problem:
                message = f'The argument "{key}" of "{tool.name}" must be {problem}, not {_shown(value)}.'
                raise Mismatch(message) from None
        missing = [key for key in tool.required if key not in fitted]
        if missing:
            wanted = " and ".join(f'"{key}" ({expected(tool.parameters.get(key, {}))})' for key in missing)
            noun = "argument" if len(missing) == 1 else "arguments"
            raise Mismatch(f'The tool "{tool.name}" needs the {noun} {wanted}. Call it again with all of them.')
        return fitted

    def _unknown(self, name: str) -> str:
        if not self.tools:
            return f'There is no tool named "{name}", and no tools are available now. Answer in plain text.'
        known = ", ".join(self.tools)
        return f'There is no tool named "{name}".{_meant(name, self.tools)} The tools are: {known}.'

    @staticmethod
    def _stranger(tool: Tool, key: str) -> str:
        known = ", ".join(tool.parameters) or "none"
        return f'The tool "{tool.name}" has no argument "{key}".{_meant(key, tool.parameters)} Its arguments: {known}.'


def _meant(name: str, known: Iterable[str]) -> str:
    close = process.extractOne(name, list(known), scorer=fuzz.WRatio, score_cutoff=70)
    return f' Did you mean "{close[0]}"?' if close else ""


def _storable(value: Any, depth: int = 0) -> Any:
    """Half of a surrogate pair can not be stored or sent as UTF-8, the replacement character can; depth is limited."""
    if depth > _MAX_DEPTH:
        raise Mismatch(f"nested at most {_MAX_DEPTH} levels deep")
    if isinstance(value, str):
        return _SURROGATE.sub("�", value)
    if isinstance(value, list):
        return [_storable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item, depth + 1) for key, item in value.items()}
    return value


def _shown(value: Any) -> str:
    """A value in a sentence, short."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "this"
    return text if len(text) <= 60 else text[:59] + "…"


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The JSON types a parameter may have; empty = any. ``array<string>`` counts as ``array``."""
    declared = schema.get("type")
    names = [declared] if isinstance(declared, str) else declared if isinstance(declared, (list, tuple)) else []
    return tuple(name.partition("<")[0].strip() for name in names if isinstance(name, str))


def expected(schema: Mapping[str, Any]) -> str:
    """What a parameter wants, in words for the model."""
    choices = schema.get("enum")
    if isinstance(choices, (list, tuple)) and choices:
        return "one of " + ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    types = types_of(schema)
    if types == ("array",) and isinstance(items := schema.get("items"), Mapping) and types_of(items):
        return f"an array, each item {expected(items)}"
    return " or ".join(_ARTICLE.get(name, name) for name in types) or "a value"


def fit(value: Any, schema: Mapping[str, Any], lenient: bool = False) -> Any:
    """``value`` in the type that ``schema`` wants (``"5"`` becomes 5, a JSON text an array), or :class:`Mismatch`."""
    types = types_of(schema)
    result = value
    if types:
        # A type that fits as it is goes first: text stays text where both text and numbers are allowed.
        for attempt in (_as_is, _converted):
            for name in types:
                try:
                    result = attempt(value, name, schema, lenient)
                except Mismatch:
                    continue
                return _chosen(result, schema)
        raise Mismatch(expected(schema))
    return _chosen(result, schema)


def _as_is(value: Any, name: str, schema: Mapping[str, Any], lenient: bool) -> Any:
    fits = (
        (name == "string" and isinstance(value, str))
        or (name == "integer" and isinstance(value, int) and not isinstance(value, bool))
        or (name == "number" and isinstance(value, (int, float)) and not isinstance(value, bool) and _finite(value))
        or (name == "boolean" and isinstance(value, bool))
        or (name == "object" and isinstance(value, dict))
        or (name == "null" and value is None)
        or name not in _ARTICLE
    )
    if fits:
        return value
    if name == "array" and isinstance(value, list):
        return [fit(item, _items(schema), lenient) for item in value]
    raise Mismatch(expected(schema))


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _converted(value: Any, name: str, schema: Mapping[str, Any], lenient: bool) -> Any:
    if isinstance(value, str):
        return _from_text(value, name, schema, lenient)
    if name == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if lenient and name == "string" and isinstance(value, (int, float, bool)):
        return json.dumps(value)
    raise Mismatch(expected(schema))


def _from_text(value: str, name: str, schema: Mapping[str, Any], lenient: bool) -> Any:
    text = value.strip()
    if name == "integer" and _INTEGER.fullmatch(text):
        return int(text.partition(".")[0])
    if name == "number" and _NUMBER.fullmatch(text):
        number = float(text)
        if math.isfinite(number):
            return int(text) if text.lstrip("+-").isdigit() and len(text) <= 30 else number
    if name == "boolean" and text.casefold() in ("true", "false"):
        return text.casefold() == "true"
    if name in ("array", "object") and text[:1] in ("[", "{"):
        parsed = literals.parse_text(text)
        if isinstance(parsed, list) and name == "array":
            return [fit(item, _items(schema), lenient) for item in parsed]
        if isinstance(parsed, dict) and name == "object":
            return parsed
    raise Mismatch(expected(schema))


def _items(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    items = schema.get("items")
    if isinstance(items, Mapping):
        return items
    declared = schema.get("type")
    inner = re.fullmatch(r"array<(.+)>", declared) if isinstance(declared, str) else None
    return {"type": inner.group(1)} if inner else {}


def _chosen(value: Any, schema: Mapping[str, Any]) -> Any:
    choices = schema.get("enum")
    if not isinstance(choices, (list, tuple)) or not choices or value in choices:
        return value
    if isinstance(value, str):
        same = [each for each in choices if isinstance(each, str) and each.casefold() == value.strip().casefold()]
        if len(same) == 1:
            return same[0]
    raise Mismatch(expected(schema))
