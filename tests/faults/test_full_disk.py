"""A disk without room: each write says so in a sentence, nothing is lost, and it goes on once there is room."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.full_disk import FACT, LINE

SIZE = "8m"
_MOUNT = 'mount -t tmpfs -o size=$1 tmpfs "$2" && cd "$3" && shift 3 && exec "$@"'


def on_small_disk(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command that sees ``folder`` as a disk of its own, which goes with the command."""
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    return subprocess.run(
        [*own, "sh", "-c", _MOUNT, "sh", SIZE, str(folder), str(Path(__file__).parents[2]), *command],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def happened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("disk")
    if shutil.which("unshare") is None or on_small_disk(folder, "true").returncode:
        pytest.skip("this machine lets nobody mount a small disk")
    done = on_small_disk(folder, sys.executable, "-m", "tests.faults.full_disk", str(folder))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", ["message", "fact", "fact with line", "file", "facts.json", "backup"])
def test_a_write_on_a_full_disk_says_so_in_a_sentence_and_works_once_there_is_room(
    happened: dict[str, Any], what: str
) -> None:
    kind, _, sentence = happened["full"][what].partition(": ")
    assert kind in ("StoreError", "MemoryFileError", "EditRefused")
    assert "no room" in sentence.lower() or "No space left" in sentence
    assert happened["again"][what] == ""


def test_nothing_that_was_there_is_lost_while_the_disk_is_full(happened: dict[str, Any]) -> None:
    seen = happened["while_full"]
    assert seen["says"] == ["I keep the copper book behind shelf 1."]
    assert seen["messages"] == ["the harbour, said before"]
    assert seen["found"] == ["the harbour, said before"]
    assert seen["file kept"]
    assert seen["backups"] == [[]]  # the one from before, and it is sound
    assert seen["rest"] == []


def test_after_room_was_made_everything_new_is_there_and_check_finds_nothing(happened: dict[str, Any]) -> None:
    after = happened["after"]
    assert after["says"] == ["I keep the copper book behind shelf 1.", FACT, LINE]
    assert after["messages"] == ["the harbour, said before", "said afterwards"]
    assert after["line"]
    assert after["wrong"] == []


def test_the_working_memory_keeps_in_memory_what_it_cannot_write_and_writes_it_later(happened: dict[str, Any]) -> None:
    assert "no room" in happened["working"]["trouble"]
    assert happened["working"]["kept"]
    assert happened["working"]["after"] == ""
