"""Killed with signal 9 at any moment of any operation: what was acknowledged is there, and nothing is broken."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.faults.counts import seed, share


@pytest.mark.soak
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_random_points_no_acknowledged_fact_is_missing_and_check_finds_nothing_wrong() -> None:
    count, drawn = share(200), seed()
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killing", str(drawn), str(count)],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"{count} kills" in done.stdout
    assert ", 0 faults" in done.stdout
