"""``python -m tests.faults.alone FOLDER``: a whole session, with every address that Python code of this process turns
to.

Prints one JSON object ``{"addresses": [...], "texts": [...], "index": state, "kept": count}``. The hook of the
interpreter sees every ``connect``, ``sendto`` and look-up of a name made through Python's sockets, in any library;
native code and child processes are for whoever runs this (:mod:`tests.faults.fenced`).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

SEEN: list[str] = []


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes the addresses of sockets."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        SEEN.append(f"{event[7:]} {arguments[1]!r}")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        SEEN.append(f"{event[7:]} {arguments[0]!r}")


async def session(folder: Path) -> dict[str, Any]:
    """Everything a session does: chat, tools, embeddings, Chroma, extraction, backup, deletion, another session."""
    from tui_agent.agent.events import TurnFinished
    from tui_agent.agent.session import Session
    from tui_agent.llm.wire.script import answer, call, calling
    from tui_agent.llm.wire.scripted import ScriptedBackend
    from tui_agent.llm.wire.serve import WireServer
    from tui_agent.memory.backup import Backups
    from tui_agent.memory.extraction import Extractor
    from tui_agent.project import Project, UserPaths
    from tui_agent.settings import load_settings

    root = folder / "project"
    root.mkdir()
    os.environ["TUI_AGENT_HOME"] = str(folder / "home")
    texts: list[str] = []
    async with WireServer(ScriptedBackend(default="OK.")) as server:
        project, paths = Project.open(root), UserPaths.find()
        flags = {"host": server.url, "model": "qwen2.5-coder:1.5b"}
        loaded = load_settings(project, paths, dict(os.environ), flags)
        made = await Session.open(project, loaded, user_paths=paths, interactive=True)
        await made.start()
        server.backend.queue(
            calling(
                call("edit_file", {"path": "knowledge/user.md", "old_string": "", "new_string": "Name: Kacper\n"}),
                call("remember", {"fact": "We deploy on Fridays."}),
            ),
            answer("Noted."),
        )
        for text in ("My name is Kacper. We deploy on Fridays.", "When do we deploy?", "Look at https://example.org/x"):
            texts += [event.status async for event in made.send(text) if isinstance(event, TurnFinished)]
        while made._background:
            await asyncio.gather(*made._background, return_exceptions=True)
        await made.core.settled()
        if made._keeper is not None:
            await made._keeper.settled()
        await made.reindex()
        index = made.index.state
        stores, session_id = made.stores, made.id

        async def complete(messages: list[dict[str, str]]) -> str:
            return '[{"fact": "We deploy on Fridays.", "quote": "We deploy on Fridays", "category": "decision"}]'

        await Extractor(stores.gate, stores.history, complete, db=stores.db, facts=stores.facts).run(session_id)
        Backups(project).make(stores.db)
        kept = await made.remembered()
        await made.models()
        await made.handoff_draft()
        await made.switch("new")
        async for _ in made.send("hello again"):
            pass
        await made.delete_forever(kept[0].ref)
        await made.close()
    return {"addresses": SEEN, "texts": texts, "index": index, "kept": len(kept), "server": server.url}


if __name__ == "__main__":
    sys.addaudithook(watch)
    print(json.dumps(asyncio.run(session(Path(sys.argv[1])))))
