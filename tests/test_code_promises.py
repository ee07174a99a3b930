"""Promises that hold for all of the code, read from the code itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

CODE = Path(__file__).parents[1] / "tui_agent"
FILES = sorted(path for path in CODE.rglob("*.py") if "__pycache__" not in path.parts)


def calls_of(path: Path, name: str) -> Iterator[str]:
    """The source of every call of ``name`` (``module.function``) in a file."""
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield ast.unparse(node)


def strings_of(path: Path) -> Iterator[str]:
    """Every text in a file that is no docstring."""
    tree = ast.parse(path.read_text("utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    notes = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
            yield node.value


def test_a_database_that_may_be_written_is_opened_in_one_place_only() -> None:
    """There every connection gets its foreign keys, its waiting and its secure deletion."""
    elsewhere = [
        (path.name, call)
        for path in FILES
        if path.name != "connection.py"
        for call in calls_of(path, "sqlite3.connect")
    ]  # fmt: skip
    assert elsewhere
    in_memory = re.compile(r"connect\((?:IN_MEMORY|':memory:')")
    assert [one for one in elsewhere if "mode=ro" not in one[1] and not in_memory.search(one[1])] == []


@pytest.mark.parametrize("room", ["memory", "agent", "llm", "tui"])
def test_nothing_that_is_kept_is_written_through_the_systems_temporary_folder(room: str) -> None:
    makers = ("tempfile.mkstemp", "tempfile.mkdtemp", "tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile")
    made = [
        (path.name, call)
        for path in FILES
        if path.is_relative_to(CODE / room)
        for maker in makers
        for call in calls_of(path, maker)
    ]
    # An empty folder for git's own bookkeeping, in which no memory is written, is the one exception.
    assert {name for name, call in made if "dir=" not in call} <= {"sharing.py"}


def test_nothing_on_screen_or_in_a_command_is_called_forgetting() -> None:
    """Putting away keeps everything and deleting keeps nothing; a word for both would hide which one is meant."""
    said = [
        (path.name, text)
        for path in FILES
        if path.relative_to(CODE).parts[0] in ("tui", "cli", "agent")
        for text in strings_of(path)
        # A name with a dot is the id of a check, no text.
        if re.search(r"(?<!\w\.)\bforget(?:s|ting)?\b|\bforgotten\b", text, re.IGNORECASE)
    ]
    assert said == []


def test_only_the_libraries_the_program_is_made_of_and_python_from_3_10() -> None:
    about = metadata.metadata("tui-agent")
    assert about["Requires-Python"] == ">=3.10"
    needed = {re.split(r"[<>=!; \[]", text)[0].lower() for text in metadata.requires("tui-agent") or ()}
    assert {"chromadb", "ollama", "textual", "pyyaml", "watchfiles"} <= needed
