"""``python -m tests.faults.writing ROOT NAME COUNT``: puts COUNT statements of NAME through the gate, as a window
does."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.memory.world import World
from tui_agent.memory.types import Action, Origin, Proposal

_LINES = 15


def said(name: str, number: int) -> str:
    """The statement of one number."""
    return f"I keep the {name} book {number * 7919} behind shelf {number}."


def every(count: int) -> int:
    """Each so many statements, one also gets a line in a file both processes write; there is room for 40."""
    return max(1, count // _LINES)


def main(root: Path, name: str, count: int) -> None:
    """Writes them all; one line on stdout when the stores are open, one at the end."""
    stores = World.open(root, root.parent / "home")
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(count):
        text = said(name, number)
        place = "AGENTS.md#User Preferences" if number % every(count) == 0 else "fact"
        verdict = stores.gate.admit(Proposal(text, Origin.USER, "user", "typed", user_text=text, target=place))
        assert verdict.action is Action.LIVE, verdict
        if number % every(count) == 0:
            stores.ledger.write_facts_json()
    stores.ledger.write_facts_json()
    stores.close()
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
