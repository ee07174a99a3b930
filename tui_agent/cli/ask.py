"""``tui-agent ask``: one turn through the same session as the chat, text to stdout, notices to stderr."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from typing import TextIO

from tui_agent.agent.events import (
    Event,
    MemoryChanged,
    Notice,
    SaveMissing,
    TextDelta,
    TextReplaced,
    TurnFinished,
)
from tui_agent.agent.session import Session
from tui_agent.cli.next_steps import say_next_steps
from tui_agent.cli.options import USAGE, stdin_text
from tui_agent.memory.database import StoreError
from tui_agent.project import Project, ProjectError, UserPaths
from tui_agent.settings import Loaded

STORE_FAILED = 1
INTERRUPTED = 130


def run_ask(
    project: Project, paths: UserPaths, loaded: Loaded, text: str, resume: str, *, as_json: bool = False
) -> int:
    """Ask and print; returns the exit code."""
    piped = stdin_text()
    question = "\n\n".join(part for part in (text.strip(), piped.strip()) if part)
    if not question:
        print("tui-agent: There is no question. Give it as an argument or pipe it in.", file=sys.stderr)
        return USAGE
    try:
        code = asyncio.run(_ask(project, paths, loaded, question, resume, as_json))
        if code in (2, 3, 4) and not as_json:
            say_next_steps(loaded, paths)
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 0


async def _ask(project: Project, paths: UserPaths, loaded: Loaded, question: str, resume: str, as_json: bool) -> int:
    printer = _JsonPrinter(sys.stdout) if as_json else _TextPrinter(sys.stdout, sys.stderr)
    try:
        session = await Session.open(project, loaded, resume=resume, user_paths=paths, interactive=False)
    except (StoreError, ProjectError, LookupError) as error:
        printer.show(TurnFinished("failed", error=str(error), error_kind="store_error", exit_code=STORE_FAILED))
        return STORE_FAILED if not isinstance(error, LookupError) else USAGE
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows has no signal handlers in the loop
        loop.add_signal_handler(signal.SIGINT, session.stop_now)
    code = 5
    try:
        for notice in session.problems:
            printer.show(notice)
        session.subscribe(printer.show)
        async for event in session.send(question):
            printer.show(event)
            if isinstance(event, TurnFinished):
                code = INTERRUPTED if event.status == "stopped" else event.exit_code
    finally:
        await session.close()
    return code


class _JsonPrinter:
    """One JSON object a line; the last is always ``turn_finished``."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def show(self, event: Event) -> None:
        """Print one event."""
        self._out.write(json.dumps(event.as_dict(), ensure_ascii=False, default=str) + "\n")
        self._out.flush()


class _TextPrinter:
    """The answer to ``out`` as it comes, everything else to ``err``."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self._shown = ""

    def show(self, event: Event) -> None:
        """Print one event, if people without ``--json`` should see it."""
        if isinstance(event, TextDelta):
            self._write(event.text)
        elif isinstance(event, TextReplaced):
            # What was printed cannot be taken back on a pipe: start the settled text on a line of its own.
            self._write(("\n" if self._shown else "") + event.text)
        elif isinstance(event, Notice):
            self._note(event.text)
        elif isinstance(event, MemoryChanged):
            where = f" in {event.target}" if event.target else ""
            detail = f": {event.text}" if event.text else ""
            because = f" ({event.reason})" if event.what in ("refused", "quarantined") and event.reason else ""
            self._note(f"memory: {event.what}{where}{detail}{because}")
        elif isinstance(event, SaveMissing):
            for line in event.sentence.splitlines():
                self._note(f"Not saved. To keep it: tui-agent memory add {json.dumps(line, ensure_ascii=False)}")
        elif isinstance(event, TurnFinished):
            if self._shown and not self._shown.endswith("\n"):
                self._write("\n")
            if event.error:
                self._note(event.error)

    def _write(self, text: str) -> None:
        self._shown += text
        self._out.write(text)
        self._out.flush()

    def _note(self, text: str) -> None:
        self._err.write(f"tui-agent: {text}\n")
        self._err.flush()
