from __future__ import annotations

import os

from tui_agent.llm.embedded.machine import cores_in, physical_cores


def test_hyper_threads_count_once() -> None:
    blocks = [
        f"processor : {cpu}\nphysical id\t: {package}\ncore id\t\t: {core}\n"
        for cpu, (package, core) in enumerate([(0, 0), (0, 1), (0, 0), (0, 1), (1, 0), (1, 0)])
    ]
    assert cores_in("\n".join(blocks)) == 3


def test_a_machine_that_does_not_tell_gives_zero() -> None:
    assert cores_in("processor : 0\nBogoMIPS : 48.00\n\nprocessor : 1\nBogoMIPS : 48.00\n") == 0


def test_there_is_at_least_one_core_and_never_more_than_the_system_has() -> None:
    assert 1 <= physical_cores() <= (os.cpu_count() or 1)
