"""What every benchmark prints: a table, on request one line of JSON at the end, and an exit code for missed goals."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Goal:
    """A promise in figures. ``met`` is ``None`` when this run did not measure it."""

    name: str
    goal: str
    value: float | str | None
    met: bool | None


@dataclass
class Report:
    """Collects rows and goals of one benchmark and prints them."""

    benchmark: str
    ours: dict[str, Any] = field(default_factory=lambda: {"overall": {}, "by_category": {}})
    peers: dict[str, dict[str, Any]] = field(default_factory=dict)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def put(self, name: str, value: Any, *, peer: str = "", category: str = "") -> None:
        """Notes one figure, of ours or of a peer, overall or in a category."""
        shape = self.peers.setdefault(peer, {"overall": {}, "by_category": {}}) if peer else self.ours
        target = shape["by_category"].setdefault(category, {}) if category else shape["overall"]
        target[name] = value

    def goal(self, name: str, goal: str, value: float | str | None, met: bool | None) -> None:
        """Notes a goal and whether this run met it."""
        self.goals.append(Goal(name, goal, value, met))

    def finish(self, arguments: argparse.Namespace) -> int:
        """Prints goals and notes, with ``--json`` the last line; gives 1 with ``--check`` and a missed goal, else 0."""
        print()
        rows = [
            [g.name, g.goal, show(g.value), {True: "met", False: "MISSED", None: "not measured"}[g.met]]
            for g in self.goals
        ]
        table(["goal", "wanted", "found", ""], rows)
        for note in self.notes:
            print(f"note: {note}")
        if arguments.json:
            line = {
                "benchmark": self.benchmark,
                "machine": machine(),
                "ours": self.ours,
                "peers": self.peers,
                "goals": [vars(goal) for goal in self.goals],
            }
            print(json.dumps(line, ensure_ascii=False))
        return 1 if arguments.check and any(goal.met is False for goal in self.goals) else 0


def parser(description: str) -> argparse.ArgumentParser:
    """An argument parser with ``--json``, ``--check`` and ``--quick``."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print the figures as one line of JSON at the end")
    made.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    made.add_argument("--quick", action="store_true", help="smaller sizes, for a first look")
    return made


def machine() -> dict[str, Any]:
    """The machine in words."""
    return {
        "cores": os.cpu_count(),
        "load": [round(value, 1) for value in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def show(value: Any) -> str:
    """A figure in at most four significant digits."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a table with aligned columns; numbers are aligned to the right."""
    texts = [[show(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(head), *texts]) for i in range(len(head))]
    right = [
        bool(rows) and all(isinstance(row[i], (int, float)) or row[i] is None for row in rows) for i in range(len(head))
    ]
    for row in [list(head), ["-" * width for width in widths], *texts]:
        cells = [cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)]
        print("  ".join(cells).rstrip())


def ratio(theirs: float | None, ours: float | None) -> float | None:
    """How many times faster ours is."""
    return None if theirs is None or not ours else theirs / ours


def one_blas_thread(environment: Mapping[str, str] = os.environ) -> None:
    """Starts the program anew with one BLAS thread: on a shared machine more are slower and make figures jump."""
    wanted = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if any(environment.get(name) != value for name, value in wanted.items()):
        os.environ.update(wanted)
        os.execv(sys.executable, [sys.executable, *sys.argv])
