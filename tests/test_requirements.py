"""The table of requirements: every row is there, and every test that a row names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_name("requirements.md")
COUNTS = {"R0": 43, "R1": 21, "R2": 16, "R3": 33, "R4": 16, "RT": 5}
DECISIONS = 18


def rows() -> dict[str, tuple[str, list[str]]]:
    """Each row's statement and the tests it names."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"R[0-4T]-\d\d|C\d+", cells[0]):
            assert cells[0] not in found, f"{cells[0]} is there twice"
            found[cells[0]] = (cells[1], re.findall(r"`(tests/[^`]+)`", cells[2]))
    return found


@cache
def names_in(path: str) -> frozenset[str]:
    """The names of all test functions of a file that is there, in classes or not."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, functions) and n.name.startswith("test_"))


def test_every_requirement_has_a_row_with_a_statement_and_a_test() -> None:
    wanted = [f"{part}-{number:02}" for part, count in COUNTS.items() for number in range(1, count + 1)]
    wanted += [f"C{number}" for number in range(1, DECISIONS + 1)]
    table = rows()
    assert list(table) == wanted
    assert [name for name, (words, named) in table.items() if len(words) < 10 or not named] == []


def test_every_test_that_the_table_names_exists() -> None:
    missing = []
    for name, (_, named) in rows().items():
        for node in named:
            path, _, test = node.partition("::")
            if not (ROOT / path).is_file() or test not in names_in(path):
                missing.append(f"{name}: {node}")
    assert missing == []


def test_the_table_names_each_test_of_a_row_once() -> None:
    assert [name for name, (_, named) in rows().items() if len(named) != len(set(named))] == []
