"""``tui-agent setup``: the first run's questions on plain lines; ``tui-agent allow``: who may get what is written."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tui_agent.cli.options import (
    EmbeddedOption,
    HostOption,
    JsonOption,
    ModelOption,
    fail,
    flags_of,
    open_project,
    settings_for,
)
from tui_agent.cli.quick import QuickCommand

if TYPE_CHECKING:
    from tui_agent.agent.firstrun import FirstRun
    from tui_agent.agent.setting_up import SetUp

INTERRUPTED = 130

SETUP_EPILOG = (
    "\b\nExamples:\n  tui-agent setup               ask what is missing, do it, and open the chat\n"
    "  tui-agent setup ~/src/shop    for another project\n"
    "  tui-agent setup < /dev/null   only say what to type\n\n"
    "\b\nExit codes: 0 a model is there, 2 usage or consent, 3 no server, 4 no model,\n130 stopped"
)
ALLOW_EPILOG = (
    "\b\nExamples:\n  tui-agent allow http://box:11434\n  tui-agent allow https://ollama.com      cloud models\n"
    "  tui-agent allow                         list what is allowed\n  tui-agent allow --remove http://box:11434\n\n"
    "\b\nExit codes: 0 done, 2 no address, or it cannot be kept"
)


def register(app: typer.Typer) -> None:
    """Adds ``setup`` and ``allow`` to the program's commands."""
    app.command("setup", cls=QuickCommand, epilog=SETUP_EPILOG)(setup)
    app.command("allow", cls=QuickCommand, epilog=ALLOW_EPILOG)(allow)


def setup(
    project: Annotated[
        Path, typer.Argument(metavar="[PROJECT]", help="Project folder.", show_default="this folder")
    ] = Path(),
    model: ModelOption = None,
    host: HostOption = None,
    embedded: EmbeddedOption = None,
) -> None:
    """Get from nothing to a chat: start Ollama, download a model that fits, or use the built-in engine.

    On a terminal it asks, does what you answer, and opens the chat. Elsewhere it prints the commands to type.
    """
    from tui_agent.agent.firstrun import FirstRun
    from tui_agent.agent.setting_up import SetUp
    from tui_agent.cli.next_steps import EXIT_BY_STATE, UNREACHABLE, lines_for

    opened, paths = open_project(project)
    loaded = settings_for(opened, paths, flags_of(model=model, host=host, embedded=embedded))
    hands = SetUp(loaded, paths.ensure())
    asking = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        walk = FirstRun(asyncio.run(hands.look()))
        if not asking:
            step = walk.step
            print(f"{step.title}. {step.text}" if not walk.outcome else f"{walk.facts.wanted} is there.")
            print("To go on:", *lines_for(walk.facts), sep="\n")
            raise typer.Exit(EXIT_BY_STATE.get(walk.facts.state, UNREACHABLE))
        asyncio.run(_ask(hands, walk))
        if walk.outcome != "ready":
            print("Nothing was changed. `tui-agent setup` asks again.")
            raise typer.Exit(EXIT_BY_STATE.get(walk.facts.state, UNREACHABLE))
        from tui_agent.cli.chat import run_chat

        given = flags_of(model=model, host=host, embedded=embedded)
        raise typer.Exit(run_chat(project, {**given, **hands.flags}, "new"))
    except KeyboardInterrupt:
        print("\nStopped. What was downloaded stays; `tui-agent setup` goes on there.", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        hands.close()


async def _ask(hands: SetUp, walk: FirstRun) -> None:
    """Ask and do until there is a model or the user has enough."""
    while not walk.outcome:
        _show(walk)
        key = (await asyncio.to_thread(_read, ", ".join(one.key for one in walk.step.choices))).strip()
        act = walk.answer(key)
        if act is None:
            walk.error = f"There is no answer {key!r}." if key else ""
        elif walk.working is not None:
            await _do(hands, walk)


async def _do(hands: SetUp, walk: FirstRun) -> None:
    act = walk.working
    assert act is not None
    task = asyncio.ensure_future(hands.carry_out(walk, act, _progress))
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError, RuntimeError):  # Windows has no signal handlers in the loop
        loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError):
            loop.remove_signal_handler(signal.SIGINT)
        print("\r\x1b[K", end="", flush=True)


def _show(walk: FirstRun) -> None:
    step = walk.step
    width = min(78, shutil.get_terminal_size().columns)
    print(f"\n{step.title}\n{textwrap.fill(step.text, width)}")
    for said in (walk.error, walk.note):
        if said:
            print(f"\n{textwrap.fill(said, width)}")
    print()
    names = max(len(choice.label) for choice in step.choices)
    for choice in step.choices:
        line = f"  {choice.key}  {choice.label:<{names}}  {choice.detail}"
        print(line if len(line) <= width else f"  {choice.key}  {choice.label}\n     {choice.detail}")


def _read(keys: str) -> str:
    try:
        return input(f"\nChoose ({keys}): ")
    except EOFError:
        return "0"


def _progress(words: str, share: float | None) -> None:
    percent = f"{share:4.0%}  " if share is not None else ""
    room = max(20, shutil.get_terminal_size().columns - 8)
    print(f"\r\x1b[K{percent}{words[:room]}", end="", flush=True)


def allow(
    host: Annotated[
        str | None, typer.Argument(metavar="[HOST]", help="The address; without it they are listed.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the permission back.")] = False,
    json_: JsonOption = False,
) -> None:
    """Allow another machine to get what you write and your memory, once for all; or list and take back."""
    from tui_agent.agent.consent import Consent
    from tui_agent.cli.printing import Printer, plain, table
    from tui_agent.llm.errors import ModelError
    from tui_agent.settings import load_settings

    opened, paths = open_project(Path())
    consent = Consent(paths, load_settings(opened, paths).settings)
    printer = Printer(json_)
    if host is None:
        rows = consent.all()
        printer.data([plain(row) for row in rows], table([[row.host, row.source] for row in rows]))
        if not rows and not json_:
            printer.note("No other machine may get what you write.")
        return
    try:
        if remove:
            gone = consent.forget(host)
            said = f"{host} may not get what you write any more." if gone else f"{host} was not allowed here."
            if gone and consent.allows(host):
                said = f"{host} is still allowed by your config.yaml (allow_hosts or allow_remote)."
        else:
            said = f"{consent.allow(host)} may get what you write. `tui-agent allow --remove {host}` takes that back."
    except ModelError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{consent.path} cannot be written: {error.strerror or error}.")
    printer.data({"host": host, "allowed": consent.allows(host)}, [said])
