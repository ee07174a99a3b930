"""Reading ``config.yaml`` so that every value knows its line, and every fault is a sentence."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_BYTES = 256 * 1024
_MAX_ITEMS = 2000

_SCALARS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "timestamp")}


@dataclass(frozen=True, slots=True)
class Item:
    """One element of a list: its line, value, and its text as written (for ``- Note: do this``, which YAML splits)."""

    line: int
    value: Any
    written: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One value with its dotted key and 1-based line.

    ``value`` is text, number, bool, ``None``, a tuple of :class:`Item`, or :data:`MAPPING`. ``written`` is a scalar's
    text as it stands in the file, before YAML reads ``off`` as false.
    """

    key: str
    line: int
    value: Any
    written: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong in the file: ``key`` is empty when no single key is to blame."""

    line: int | None
    text: str
    key: str = ""
    warning: bool = False


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """What one file says. ``broken`` means that nothing of it could be read."""

    entries: tuple[Entry, ...] = ()
    faults: tuple[Fault, ...] = ()
    broken: bool = False


class _Mapping:
    """Stands for a mapping where a value was expected."""

    def __repr__(self) -> str:
        return "a mapping"


MAPPING = _Mapping()


def read_config(path: Path, sections: Collection[str]) -> ConfigFile:
    """Read a configuration file; a missing one is empty. ``sections`` are the keys whose values are mappings."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return ConfigFile()
    except IsADirectoryError:
        return _broken(None, "is a folder, not a file")
    except OSError as error:
        return _broken(None, f"cannot be read ({error.strerror or error})")
    if len(data) > MAX_BYTES:
        return _broken(None, f"is longer than {MAX_BYTES // 1024} KB, which is no settings file")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _broken(1, "is written in UTF-16; save it as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return _broken(line, f"is not UTF-8 text (byte 0x{data[error.start]:02X}); save it as UTF-8")
    return parse_config(text, sections)


def parse_config(text: str, sections: Collection[str]) -> ConfigFile:
    """The entries of a configuration text, in file order, with what is wrong with it."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return _broken(mark.line + 1 if mark else None, f"is not valid YAML: {_words(error)}")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        code = error.character if isinstance(error.character, int) else ord(error.character)
        return _broken(line, f"is not valid YAML: the character U+{code:04X} is not allowed")
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return _broken(None, f"is not valid YAML: {type(error).__name__}")
    if root is None or (isinstance(root, ScalarNode) and _SCALARS.get(root.tag) == "null"):
        return ConfigFile()
    if not isinstance(root, MappingNode):
        kind = "a list" if isinstance(root, SequenceNode) else "a single value"
        return _broken(root.start_mark.line + 1, f"must hold lines of the form `key: value`, not {kind}")
    entries: dict[str, Entry] = {}
    faults: list[Fault] = []
    for key, node, line in _pairs(root, "", entries, faults):
        if key in sections and isinstance(node, MappingNode):
            for inner, inner_node, inner_line in _pairs(node, f"{key}.", entries, faults):
                _add(inner, inner_node, inner_line, text, entries, faults)
        elif not (key in sections and isinstance(node, ScalarNode) and _SCALARS.get(node.tag) == "null"):
            _add(key, node, line, text, entries, faults)
    return ConfigFile(tuple(entries.values()), tuple(faults))


def _pairs(
    mapping: MappingNode, prefix: str, entries: dict[str, Entry], faults: list[Fault]
) -> Iterator[tuple[str, Node, int]]:
    seen: dict[str, int] = {}
    for key_node, value_node in mapping.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, ScalarNode):
            faults.append(Fault(line, "has a key that is not plain text"))
            continue
        key = prefix + key_node.value
        if key in seen:
            faults.append(Fault(line, f"is given again (first in line {seen[key]}); the last one counts", key, True))
            entries.pop(key, None)
        seen[key] = line
        yield key, value_node, line


def _add(key: str, node: Node, line: int, text: str, entries: dict[str, Entry], faults: list[Fault]) -> None:
    try:
        if isinstance(node, ScalarNode):
            entries[key] = Entry(key, line, _scalar(node), node.value)
        elif isinstance(node, SequenceNode):
            if len(node.value) > _MAX_ITEMS:
                raise ValueError(f"has more than {_MAX_ITEMS} entries")
            entries[key] = Entry(key, line, tuple(_item(one, text) for one in node.value))
        else:
            entries[key] = Entry(key, line, MAPPING)
    except ValueError as error:
        faults.append(Fault(line, str(error), key))


def _item(node: Node, text: str) -> Item:
    line = node.start_mark.line + 1
    if isinstance(node, ScalarNode):
        return Item(line, _scalar(node), node.value)
    written = ""
    if isinstance(node, MappingNode) and not node.flow_style:
        start = node.start_mark.index
        written = text[start : node.end_mark.index].rstrip()
        written = "" if "\n" in written else written
    return Item(line, MAPPING if isinstance(node, MappingNode) else (), written)


def _scalar(node: ScalarNode) -> Any:
    kind = _SCALARS.get(node.tag)
    if kind is None:
        raise ValueError(f"has the tag {node.tag!r}, which is not allowed here")
    if kind in ("str", "timestamp"):
        return node.value
    try:
        return yaml.constructor.SafeConstructor().construct_object(node, deep=True)
    except (ValueError, OverflowError, KeyError, yaml.YAMLError):
        raise ValueError(f"has a value that is not {kind}") from None


def _words(error: yaml.MarkedYAMLError) -> str:
    """The parser's words, with the most common slip named."""
    problem = (error.problem or "it cannot be read").strip()
    if "found character '\\t'" in problem:
        return "a tab is used for indentation; use spaces"
    if problem == "mapping values are not allowed here":
        return "a second `: ` in one line; put the text in quotes"
    return f"{error.context}: {problem}" if error.context else problem


def _broken(line: int | None, text: str) -> ConfigFile:
    return ConfigFile(faults=(Fault(line, text),), broken=True)
