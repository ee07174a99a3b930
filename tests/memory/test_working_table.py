"""The table of promises in ``WORKING_MEMORY.md`` is whole, and every test it names exists."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
TABLE = (HERE / "WORKING_MEMORY.md").read_text("utf-8")


def rows() -> dict[str, set[str]]:
    found = re.findall(r"^\| (R4-\d\d|W\d+) \|(.*)$", TABLE, re.M)
    return {row: set(re.findall(r"`(test_\w+)`", rest)) for row, rest in found}


def written() -> set[str]:
    files = [path for room in ("memory", "agent", "tui", "e2e") for path in (HERE.parent / room).rglob("test_*.py")]
    return {name for path in files for name in re.findall(r"def (test_\w+)\(", path.read_text("utf-8"))}


def test_every_row_is_in_the_table_once_with_a_test() -> None:
    wanted = [f"R4-{number:02d}" for number in range(1, 19)] + [f"W{number}" for number in range(1, 22)]
    assert sorted(rows()) == sorted(wanted)
    assert all(rows().values())
    assert len(re.findall(r"^\| (?:R4-\d\d|W\d+) \|", TABLE, re.M)) == len(wanted)


def test_every_test_the_table_names_exists() -> None:
    named = set().union(*rows().values())
    assert named - written() == set()


def test_every_trap_shows_the_fault_in_the_reference_too() -> None:
    for row, tests in rows().items():
        if row.startswith("W"):
            assert any("the_reference" in test for test in tests), row
            assert any("the_reference" not in test for test in tests), row


def test_no_test_of_a_trap_is_missing_from_the_table() -> None:
    traps = set(re.findall(r"def (test_w\d+_\w+)\(", (HERE / "test_working_traps.py").read_text("utf-8")))
    assert traps - set().union(*rows().values()) == set()
