"""Ten answers of the built-in model: does ``memory why`` account for everything memory put into the request?

A session with facts, a skill, a rules file that changes, a saved sentence, a working item and put-away ones. Every
request body is kept as it leaves. Then ``tui-agent memory why ID --json`` is run for each answer, and what it says was
sent is compared to the byte with the data block of the newest message; every other block of the body must be that of an
earlier answer, and every tool result must be one that the command lists.

    python benchmarks/explain_real.py [--json] [--check]
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from _report import Report, one_blas_thread, parser, table

from tui_agent.agent.events import TurnFinished
from tui_agent.agent.session import Session
from tui_agent.llm import client as client_module
from tui_agent.llm.bodies import chat_body, encode
from tui_agent.memory.types import NewFact
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

JSON = dict[str, Any]

FACTS = (
    ("port", "The gateway of the payments service listens on port 7443."),
    ("release", "We release on Thursdays, never on a Friday."),
    ("tests", "Tests are run with pytest, the slow ones only at night."),
    ("database", "Orders are kept in PostgreSQL, sessions in Redis."),
    ("logs", "Logs are JSON lines, kept for thirty days."),
)
QUESTIONS = (
    "On which port does the gateway listen? One short sentence.",
    "When do we release? One short sentence.",
    "What are tests run with? One short sentence.",
    "Where are orders kept? One short sentence.",
    "How long are logs kept? One short sentence.",
    "How do I deploy it? One short sentence.",
    "On which port does the gateway listen, again? One short sentence.",
    "What is in my memory about Redis? One short sentence.",
    "Which day is a bad day to release? One short sentence.",
    "Say in one short sentence what you know of the payments service.",
)
_BLOCK = re.compile(r"\A(<data.*?</data>)(?:\n\n|\Z)", re.DOTALL)


def block_in(content: str) -> str:
    found = _BLOCK.match(content)
    return found[1] if found else ""


async def talk(root: Path, paths: UserPaths) -> list[tuple[str, list[JSON]]]:
    """Ten turns; for each the answer's id and the bodies of its requests as they left."""
    sent: list[bytes] = []

    def noted(*args: Any, **kwargs: Any) -> JSON:
        body = chat_body(*args, **kwargs)
        sent.append(encode(body))
        return body

    client_module.chat_body = noted
    project = Project.open(root)
    flags = {"embedded": True, "num_ctx": 4096, "temperature": 0.0, "seed": 1, "check_saves": False}
    session = await Session.open(project, load_settings(project, paths, {}, flags), user_paths=paths, interactive=False)
    turns = []
    try:
        for subject, fact in FACTS:
            session.stores.facts.add(NewFact(subject, fact, "message of an earlier session"))
        project.skills_dir.mkdir(parents=True, exist_ok=True)
        skill = '# Deploy\n\n**Trigger**: "deploy"\n\nUse the blue script, then watch the logs.\n'
        (project.skills_dir / "deploy.md").write_text(skill, "utf-8")
        await asyncio.to_thread(session.core.sources.refresh)
        await session.core.connected(lambda event: None)
        session.core.connection.options = replace(session.core.options, num_predict=64)
        for number, question in enumerate(QUESTIONS):
            if number == 3:
                await session.core.add_item("file", "def retry(order): ...", summary="retry.py", source="retry.py")
            if number == 4:
                await session.save_sentence("m1", "I prefer pnpm over npm")
            if number == 5:
                for line in ("deploy log of the payments service, monday", "gateway log: port 7443 was busy"):
                    (hot, _), _ = await session.core.add_item("log", line, summary="", source="log")
                    await session.put_away(hot)
            if number == 6:
                project.rules_path.write_text("# Rules\n\n- be brief\n", "utf-8")
                await asyncio.to_thread(session.core.sources.refresh)
            before = len(sent)
            answer_id = ""
            async for event in session.send(question):
                if isinstance(event, TurnFinished):
                    answer_id = event.message_id or ""
                    print(f"{number + 1:2d}. {event.status}: {event.text[:90]!r}", flush=True)
            turns.append((answer_id, [json.loads(body) for body in sent[before:]]))
    finally:
        client_module.chat_body = chat_body
        await session.close()
    return turns


def explained(root: Path, environment: dict[str, str], answer_id: str) -> JSON:
    """What ``memory why`` says of one answer."""
    command = [sys.executable, "-m", "tui_agent", "memory", "why", answer_id, "-C", str(root), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if ran.returncode:
        raise SystemExit(f"memory why {answer_id} exited with {ran.returncode}: {ran.stderr}")
    return dict(json.loads(ran.stdout))


def main() -> int:
    options = parser(__doc__ or "").parse_args()
    report = Report("explain_real")
    rows, exact, strange = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder) / "home", Path(folder) / "payments"
        root.mkdir()
        user = UserPaths.find()
        paths = UserPaths(home / "config", home / "data", home / "state", user.cache)
        turns = asyncio.run(talk(root, paths))
        environment = {**os.environ, "TUI_AGENT_HOME": str(home)}
        known_blocks: set[str] = {""}
        known_results: set[str] = set()
        for number, (answer_id, bodies) in enumerate(turns, 1):
            if not answer_id:
                rows.append([number, 0, 0, 0, 0, "no answer was stored"])
                continue
            why = explained(root, environment, answer_id)
            first = bodies[0]["messages"]
            same = block_in(first[-1]["content"]).encode() == str(why["as_sent"]).encode()
            exact += same
            known_blocks.add(str(why["as_sent"]))
            known_results |= {str(call["result"]) for call in why["tools"]}
            last = bodies[-1]["messages"]
            others = [block_in(m["content"]) for m in last if m["role"] == "user"]
            results = [str(m["content"]) for m in last if m["role"] == "tool"]
            unknown = sum(block not in known_blocks for block in others)
            unknown += sum(not any(known and r.startswith(known[:200]) for known in known_results) for r in results)
            strange += unknown
            items, named = len(why["items"]), len((why["extra"].get("put_away") or {"lines": ()})["lines"])
            rows.append([number, items, named, len(why["tools"]), unknown, "to the byte" if same else "DIFFERENT"])
    table(["answer", "items", "put away, named", "tool results", "unexplained", "block"], rows)
    report.put("answers", len(turns))
    report.put("exact", exact)
    report.put("unexplained", strange)
    report.goal("answers whose block `memory why` writes again to the byte", "10", float(exact), exact == 10)
    report.goal("blocks and tool results in the requests that it does not name", "0", float(strange), strange == 0)
    return report.finish(options)


if __name__ == "__main__":
    one_blas_thread()
    sys.exit(main())
