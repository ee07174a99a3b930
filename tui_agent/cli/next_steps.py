"""What to type next when there is no model to answer: the same facts as the first run's questions, as commands."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_agent.agent.firstrun import Surroundings
    from tui_agent.project import UserPaths
    from tui_agent.settings import Loaded

# As `ask` exits for the same trouble.
EXIT_BY_STATE = {"ready": 0, "remote": 2, "cloud": 2, "models": 4, "empty": 4}
UNREACHABLE = 3


def lines_for(facts: Surroundings) -> list[str]:
    """The commands, each with what it does, in two columns."""
    from tui_agent.agent.firstrun import next_commands

    commands = next_commands(facts)
    width = max(len(command) for command, _ in commands)
    return [f"  {command:<{width}}  {what}" for command, what in commands]


async def look_around(loaded: Loaded, paths: UserPaths) -> Surroundings:
    """The facts now."""
    from tui_agent.agent.firstlook import FirstLook

    return await FirstLook(loaded.settings, paths).look()


def say_next_steps(loaded: Loaded, paths: UserPaths) -> None:
    """Print what to type next on stderr; nothing when a model is there."""
    facts = asyncio.run(look_around(loaded, paths))
    if facts.state != "ready":
        print("To go on:", *lines_for(facts), sep="\n", file=sys.stderr)
