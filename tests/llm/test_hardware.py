"""How much memory there is, and what is suggested for it."""

from __future__ import annotations

import pytest

from tui_agent.llm.hardware import GB, Memory, meminfo, read_memory, suggestions


@pytest.mark.parametrize(
    ("memory", "best"),
    [
        (Memory(total=2 * GB), "qwen2.5-coder:1.5b"),
        (Memory(total=4 * GB), "qwen2.5-coder:1.5b"),
        (Memory(total=8 * GB), "qwen2.5-coder:3b"),
        (Memory(total=16 * GB), "qwen2.5-coder:7b"),
        (Memory(total=8 * GB, graphics=8 * GB), "qwen2.5-coder:7b"),
        (Memory(total=16 * GB, shared=True), "qwen2.5-coder:7b"),
        (Memory(), "qwen2.5-coder:7b"),
    ],
)
def test_the_best_model_that_fits_is_suggested_first(memory: Memory, best: str) -> None:
    assert suggestions(memory)[0].name == best


def test_even_the_smallest_machine_gets_a_suggestion() -> None:
    assert [one.name for one in suggestions(Memory(total=GB // 2))] == ["qwen2.5-coder:1.5b"]


def test_the_model_that_the_settings_name_leads() -> None:
    assert suggestions(Memory(total=16 * GB), "llama3.2:3b")[0].name == "llama3.2:3b"
    assert suggestions(Memory(total=16 * GB), "qwen2.5-coder:7b")[0].name == "qwen2.5-coder:7b"


def test_the_kernels_table_is_read() -> None:
    text = "MemTotal:       24734124 kB\nMemFree:         1000000 kB\nMemAvailable:   20000000 kB\n"
    assert meminfo(text) == (24734124 * 1024, 20000000 * 1024)
    assert meminfo("nothing of it") == (0, 0)


def test_this_machine_has_memory_and_not_more_free_than_in_all() -> None:
    memory = read_memory()
    assert 0 < memory.free <= memory.total
