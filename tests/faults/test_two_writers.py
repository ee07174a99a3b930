"""Two windows of one project write at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.counts import share
from tests.faults.writing import every, said
from tests.memory.world import World
from tui_agent.memory.checks import check


@pytest.mark.soak
def test_two_processes_that_write_a_thousand_facts_each_lose_none(tmp_path: Path) -> None:
    count = share(1000)
    world = World.make(tmp_path)
    world.stores.close()
    writers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.faults.writing", str(world.root), name, str(count)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in ("heron", "willow")
    ]  # fmt: skip
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
    for writer in writers:  # both are ready: now they start together
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    ended = [writer.communicate(timeout=600)[0] for writer in writers]
    assert ended == ["done\n", "done\n"]
    world.reopen()
    expected = {said(name, number) for name in ("heron", "willow") for number in range(count)}
    assert set(world.says()) == expected
    assert len(world.says()) == len(expected)
    lines = world.text("AGENTS.md").splitlines()
    with_line = [said(name, number) for name in ("heron", "willow") for number in range(0, count, every(count))]
    assert [lines.count(f"- {text}") for text in with_line] == [1] * len(with_line)
    exported = json.loads(world.project.facts_json_path.read_text("utf-8"))
    assert {row["fact"] for row in exported["facts"]} | {row["pref"] for row in exported["preferences"]} | {
        row["decision"] for row in exported["decisions"]
    } == expected
    assert [f.text for f in check(world.stores) if f.level == "broken"] == []
    world.stores.close()
