"""Whether the table of faults is complete. Its name puts it behind the tests that write the rows."""

from __future__ import annotations

from pathlib import Path

from tests.faults.ollama_table import WRITING, WRITTEN, recorded, write

EXPECTED = {
    *(f"B{number}" for number in range(1, 35)),
    *(f"D{number}" for number in range(44, 57)),
    *(f"E{number}" for number in range(57, 65)),
    *(f"F{number}" for number in range(65, 71)),
    *(f"G{number}" for number in range(71, 78)),
    *(f"H{number}" for number in range(78, 84)),
    *(f"R{number}" for number in range(1, 13)),
    *(f"13.1{letter}" for letter in "ab"),
    "13.2",
    *(f"13.3{letter}" for letter in "abcdefghijklmnopqrstuvwx"),
    *(f"13.4{letter}" for letter in "abcdef"),
    *(f"13.5{letter}" for letter in "abcd"),
    *(f"13.6{letter}" for letter in "abcdef"),
    *(f"13.7{letter}" for letter in "abcd"),
}


def test_every_row_is_in_the_table_and_each_is_written_by_a_test() -> None:
    found = recorded()
    if WRITING and WRITTEN >= EXPECTED:
        found = {row: cells for row, cells in found.items() if row in WRITTEN}
        write(found)  # without what older tests have left
    assert EXPECTED - set(found) == set()
    # Further rows are other cases of one that is there: B25b of B25.
    assert {row for row in found if row not in EXPECTED and row[:-1] not in EXPECTED} == set()
    sources = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_ollama_*.py"))
    assert [row for row in found if f'"{row}"' not in sources] == []
    assert all(len(cells) == 4 and all(cells) for cells in found.values())
