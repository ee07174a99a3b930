"""Records a session with the real built-in model: ``python docs/record_session.py > docs/recorded-session.md``.

Nothing is scripted: what the model says is what it says. The figures are of the machine it ran on.
"""

from __future__ import annotations

import asyncio
import os
import platform
import tempfile
import time
from pathlib import Path

from tui_agent.agent.events import MemoryChanged, Notice, Recalled, SaveMissing, ToolFinished, ToolStarted, TurnFinished
from tui_agent.agent.session import Session
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

SAID = (
    "My name is Kacper and I prefer pnpm",
    "From now on we write tests first in the payments module.",
    "What does pytest -x do?",
    "Запомни: релизы по четвергам.",
    "ok thanks",
    "When do we release?",
)
HEAD = """\
# A recorded session

A real session with the built-in model, Qwen2.5-Coder-1.5B-Instruct (Q4_K_M) on llama.cpp, recorded by
`docs/record_session.py` on {cores} CPU cores ({machine}), in an empty project. Nothing is scripted or edited. "read" is
how many prompt tokens the engine had to read for the turn, of how many in all.
"""


async def _turn(session: Session, text: str) -> None:
    print(f"\n**You:** {text}\n")
    started = time.monotonic()
    async for event in session.send(text):
        if isinstance(event, Recalled) and event.record.items:
            for item in event.record.items:
                print(f"- recalled {item.score:.2f}: {item.text}")
        elif isinstance(event, ToolStarted):
            how = " (arrived as text)" if event.rescued else ""
            arguments = ", ".join(f"{name}={value!r}" for name, value in event.arguments.items())
            print(f"- `{event.name}({arguments})`{how}")
        elif isinstance(event, ToolFinished):
            print(f"  - {'✓' if event.ok else '✗'} {event.result.splitlines()[0]}")
        elif isinstance(event, MemoryChanged):
            where = f" in `{event.target}`" if event.target else ""
            print(f"- memory: {event.what}{where}: “{event.text}”")
        elif isinstance(event, SaveMissing):
            sentences = "”, “".join(event.sentence.splitlines())
            print(f"- ▲ not saved; one key saves “{sentences}”")
            result = await session.save_sentence(event.message_id, event.sentence, event.target)
            print(f"- *(key pressed)* {result.text}")
        elif isinstance(event, Notice) and event.level != "info":
            print(f"- {event.text}")
        elif isinstance(event, TurnFinished):
            said = event.text.strip().replace("\n", "\n> ")
            print(f"\n> {said or event.error or '(no answer)'}\n")
            read = (event.prompt_tokens or 0) - (event.cached_tokens or 0)
            print(
                f"<sub>{event.status}, {time.monotonic() - started:.0f} s, read {read} of {event.prompt_tokens} prompt "
                f"tokens, first token after {event.first_token_s or 0:.1f} s, "
                f"{event.tokens_per_second or 0:.0f} tokens/s</sub>"
            )


async def _record(folder: Path) -> None:
    user = UserPaths.find()
    paths = UserPaths(folder / "config", folder / "data", folder / "state", user.cache)
    root = folder / "shop"
    root.mkdir()
    project = Project.open(root)
    flags = {"embedded": True, "num_ctx": 4096, "temperature": 0.0, "seed": 1}
    loaded = load_settings(project, paths, {}, flags)
    print(HEAD.format(cores=os.cpu_count(), machine=platform.machine()))
    for number, part in enumerate((SAID[:4], SAID[4:])):
        if number:
            print("\n*(the app is closed and started again with `--continue`)*")
        session = await Session.open(project, loaded, resume="continue", user_paths=paths)
        try:
            await session.start()
            await session.core.settled()
            for text in part:
                await _turn(session, text)
        finally:
            await session.close()
    print("\n## What is on disk afterwards\n")
    for name in ("knowledge/user.md", "AGENTS.md", "facts.json"):
        path = project.memory_dir / name
        if path.exists():
            print(f"`{name}`\n\n```\n{path.read_text('utf-8').strip()}\n```\n")


def main() -> None:
    """Record."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_record(Path(folder)))


if __name__ == "__main__":
    main()
