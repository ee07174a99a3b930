"""``tui-agent memory`` commands that keep the store: clean-up, backups, exchange, sharing, checks."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tui_agent.cli.memory_common import YesOption, changed, explained, opened, verdict_line
from tui_agent.cli.options import JsonOption, ProjectOption, fail, open_project, stdin_text
from tui_agent.cli.printing import (
    NOTHING_FOUND,
    STORE_FAILED,
    USAGE,
    Printer,
    agreed,
    asks,
    one_line,
    plain,
    table,
    write_private,
)

if TYPE_CHECKING:
    from tui_agent.agent.stores import Stores
    from tui_agent.memory.restoring import RestorePlan


def prune(
    project: ProjectOption = Path(),
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    if_due: Annotated[bool, typer.Option("--if-due", help="Only when the last clean-up was a day ago.")] = False,
    json_: JsonOption = False,
) -> None:
    """Remove expired facts, long replaced ones, and what was put away long ago. Made for a daily timer."""
    from tui_agent.memory import upkeep

    with opened(project) as stores:
        printer = Printer(json_)
        if if_due and not upkeep.prune_due(stores.db):
            printer.data({"due": False}, ["The clean-up ran less than a day ago."])
            return
        report = upkeep.prune(stores, dry=dry)
        lines = [report.sentence()]
        if report.last_run:
            lines.append(f"The last clean-up ran {report.last_run} UTC.")
        if report.backup:
            lines.append(f"The state from before is in the backup {report.backup}.")
        printer.data({"due": True, **plain(report), "total": report.total}, lines)


# --- backups --------------------------------------------------------------------------------------


def backup(
    project: ProjectOption = Path(),
    list_: Annotated[bool, typer.Option("--list", "-l", help="List the backups instead.")] = False,
    before: Annotated[
        str, typer.Option("--before", metavar="WHAT", help="Mark it as made before something; it is kept for good.")
    ] = "",
    json_: JsonOption = False,
) -> None:
    """Make a checked backup of database, files and vectors. Safe while the chat is open; made for a timer too."""
    from tui_agent.memory.backup import Backups
    from tui_agent.memory.upkeep import counted

    printer = Printer(json_)
    if list_:
        where, _ = open_project(project)
        backups = Backups(where)
        rows = []
        every = []
        with explained():
            for one in backups.all():
                faults = backups.verify(one)
                live = one.manifest.get("live_facts")
                facts = counted(live, "fact") if isinstance(live, int) else "? facts"
                state = f"unsound: {faults[0]}" if faults else f"{facts}{', ' + one.reason if one.reason else ''}"
                rows.append([one.name, f"{one.size:,} bytes", state])
                every.append({"name": one.name, "path": one.path, "made_at": one.made_at, "reason": one.reason,
                              "counts": one.counts, "bytes": one.size, "faults": faults})  # fmt: skip
        printer.data(every, table(rows))
        if not every and not json_:
            printer.note("There is no backup yet.")
        return
    with opened(project) as stores:
        made = Backups(stores.project).make(stores.db, f"before {before}" if before else "")
        data = {"name": made.name, "path": made.path, **made.manifest}
        printer.data(data, [str(made.path)])
        if not json_:
            facts = made.manifest["live_facts"]
            said = f"{counted(facts, 'fact')} and {counted(made.counts.get('messages', 0), 'message')}"
            printer.note(f"{said}, {made.size:,} bytes, checked.")


def restore(
    name: Annotated[
        str, typer.Argument(metavar="DIR|latest", help="A backup's name or folder; latest: the last sound.")
    ],
    project: ProjectOption = Path(),
    yes: YesOption = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    json_: JsonOption = False,
) -> None:
    """Bring a backup back, after saying what would change; the present state is kept as a backup first."""
    from tui_agent.memory.backup import Backups
    from tui_agent.memory.restoring import RestoreRefused, plan_restore
    from tui_agent.memory.restoring import restore as bring_back

    where, _ = open_project(project)
    printer = Printer(json_)
    with explained():
        chosen = Backups(where).find(name)
        try:
            plan = plan_restore(where, chosen)
            shown = _plan_data(plan)
            if dry or (not yes and not asks()):
                printer.data({**shown, "restored": False}, _plan_lines(plan))
                if not dry:
                    printer.note("Nothing was changed. Add --yes to restore it.")
                return
            if not yes:
                for line in _plan_lines(plan):
                    printer.note(line)
                if not agreed(f"Restore {chosen.name}?"):
                    fail("Nothing was changed.", USAGE)
            done = bring_back(where, chosen)
        except RestoreRefused as error:
            fail(str(error), STORE_FAILED)
    lines = [f"Restored {chosen.name}. The state from before is in {done.kept}."]
    if done.held_back:
        lines.append(f"{done.held_back} facts that were deleted forever since then did not come back.")
    printer.data({**shown, "restored": True, "kept": done.kept, "held_back": done.held_back}, [*lines, *done.notes])


def _plan_data(plan: RestorePlan) -> dict[str, Any]:
    data: dict[str, Any] = plain(plan)
    data["backup"] = plan.backup.name
    return data


def _plan_lines(plan: RestorePlan) -> list[str]:
    lines = [f"{plan.backup.name}, made {plan.backup.made_at} UTC:"]
    lines += [f"  + {one_line(text, 100)}" for text in plan.facts_back]
    lines += [f"  − {one_line(text, 100)}" for text in plan.facts_gone]
    lines += [f"  {name}: {now} rows now, {then} then" for name, (now, then) in plan.rows.items()]
    for words, names in (
        ("would be as it was then", plan.files_changed),
        ("would come back", plan.files_back),
        ("would be removed", plan.files_removed),
    ):
        lines += [f"  {name} {words}" for name in names]
    if not plan.changes:
        lines.append("  Nothing would change.")
    return [*lines, *(f"  {text}" for text in plan.notes)]


# --- exchange -------------------------------------------------------------------------------------


def export(
    target: Annotated[str, typer.Argument(metavar="[FILE|-]", help="Where to; - is stdout.")] = "-",
    project: ProjectOption = Path(),
    scope: Annotated[str | None, typer.Option("--scope", help="Only this: project or user.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json_: JsonOption = False,
) -> None:
    """Write the live facts as plain JSON: facts, preferences, decisions, each with its date."""
    from tui_agent.cli.memory_facts import _scope
    from tui_agent.memory.upkeep import counted

    with opened(project) as stores:
        data = stores.facts.export_tier2(scope=_scope(scope))
        count = sum(len(data[section]) for section in ("facts", "preferences", "decisions"))
        text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
        if target == "-":
            sys.stdout.write(text)
            return
        write_private(Path(target), text, force)
        printer = Printer(json_)
        printer.data({"file": target, "items": count}, [target])
        printer.note(f"{counted(count, 'item')}. A later `memory delete` does not reach this copy.")


def import_(
    source: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="A file as `memory export` writes it; - is a pipe.")
    ] = "",
    project: ProjectOption = Path(),
    legacy: Annotated[
        bool, typer.Option("--legacy", help="Instead of a file: what a plain Chroma script has left in this project.")
    ] = False,
    mine: Annotated[
        bool, typer.Option("--mine", help="These are your own words: they are live at once, not in quarantine.")
    ] = False,
    scope: Annotated[str, typer.Option("--scope", help="project, or user for all your projects.")] = "project",
    dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would become of each.")] = False,
    json_: JsonOption = False,
) -> None:
    """Take facts from a file. Each passes the gate; without --mine they wait for your approval."""
    from tui_agent.cli.memory_facts import _scope
    from tui_agent.memory.backup import Backups
    from tui_agent.memory.exchange import import_tier2
    from tui_agent.memory.types import Action, Origin, Scope

    everywhere = _scope(scope) is Scope.USER
    if bool(source) == legacy:
        fail("Give a file, - for a pipe, or --legacy.", USAGE)
    if legacy:
        if dry or everywhere:
            fail("--legacy goes with --mine and --json only.", USAGE)
        from tui_agent.cli.memory_store import import_legacy_store

        with opened(project, create=True) as stores:
            import_legacy_store(stores, Printer(json_), mine)
        return
    if everywhere and not mine:
        fail("Only your own words can be kept for all projects: add --mine, or promote them after approving.", USAGE)
    name = "a pipe" if source == "-" else source
    try:
        text = stdin_text() if source == "-" else Path(source).read_text("utf-8")
        items = import_tier2(json.loads(text))
    except OSError as error:
        fail(f"{source} cannot be read: {error.strerror or error}.", NOTHING_FOUND)
    except ValueError as error:
        fail(f"Nothing was taken from {name}: {error}", USAGE)
    with opened(project, create=True) as stores:
        printer = Printer(json_)
        proposals = [item.proposal(name, Origin.USER if mine else Origin.IMPORT, Scope.PROJECT) for item in items]
        kept = ""
        if dry:
            verdicts = [stores.gate.decide(proposal) for proposal in proposals]
        else:
            kept = Backups(stores.project).make(stores.db, "before import").name if proposals else ""
            verdicts = [stores.gate.admit(proposal) for proposal in proposals]
            if everywhere:
                for verdict in verdicts:
                    if verdict.action is Action.LIVE and verdict.fact_id is not None:
                        stores.ledger.promote(verdict.fact_id)
            changed(stores)
        counts: dict[str, int] = {}
        for verdict in verdicts:
            counts[verdict.action.value] = counts.get(verdict.action.value, 0) + 1
        data = {"counts": counts, "items": plain(verdicts), "backup": kept, "dry_run": dry}
        printer.data(data, map(verdict_line, verdicts))
        if not json_:
            words = {"live": "saved", "touch": "known already", "quarantine": "wait for you", "refuse": "refused"}
            printer.note(", ".join(f"{number} {words[action]}" for action, number in counts.items()) or "It is empty.")


# --- sharing --------------------------------------------------------------------------------------


def share(
    what: Annotated[str, typer.Argument(metavar="on|off|status", help="Share, keep private, or say what is in force.")],
    project: ProjectOption = Path(),
    yes: YesOption = False,
    json_: JsonOption = False,
) -> None:
    """Whether git may take the team's part of this memory. Your own notes never are part of it."""
    from tui_agent.memory.sharing import SharingRefused, sharing_state, unshare
    from tui_agent.memory.sharing import share as share_on

    if what not in ("on", "off", "status"):
        fail(f"{what!r} is none of on, off, status.", USAGE)
    with opened(project, create=what == "on") as stores:
        printer = Printer(json_)
        data: dict[str, Any] = {}
        try:
            if what == "on":
                data = _scanned(stores, printer, yes)
                changed(stores)
                state = share_on(stores.project)
            elif what == "off":
                state = unshare(stores.project)
            else:
                state = sharing_state(stores.project)
        except SharingRefused as error:
            fail(str(error), STORE_FAILED)
        words = {
            "private": "private: of the memory, git takes only rules and skills",
            "shared": "shared: git takes the team's part of the memory",
            "custom": "custom: .agent-memory/.gitignore was edited by hand",
        }
        lines = [words[state.mode], *(f"  {name}" for name in state.files)]
        if state.committed:
            lines.append(f"in git already: {', '.join(state.committed)}")
        printer.data({**plain(state), **data}, [*lines, *state.notes])
        if what == "off" and state.mode != "private":
            raise typer.Exit(USAGE)


def _scanned(stores: Stores, printer: Printer, yes: bool) -> dict[str, Any]:
    """Looks before sharing: secrets stop it, personal data asks."""
    from tui_agent.memory.sharing import scan
    from tui_agent.memory.upkeep import counted

    found = scan(stores)
    if not printer.as_json:
        for concern in found.concerns:
            printer.note(f"{concern.file}:{concern.line}: {concern.kind}: {one_line(concern.excerpt, 80)}")
    if found.secrets:
        first = found.secrets[0]
        fail(
            f"Nothing was shared: {first.file}:{first.line} holds what looks like a password, key or token. Remove it, "
            "and change it where it is used.",
            STORE_FAILED,
        )
    if found.concerns and not yes:
        places = counted(len(found.concerns), "place looks", "places look")
        if not asks():
            fail(f"{places} personal. Look there, then add --yes to share all the same.", USAGE)
        if not agreed(f"{places} personal. Share all the same, with everyone who has the repository?"):
            fail("Nothing was shared.", USAGE)
    return {"scanned": found.files, "concerns": plain(found.concerns)}


# --- checks ---------------------------------------------------------------------------------------


def check(
    project: ProjectOption = Path(),
    fix: Annotated[bool, typer.Option("--fix", help="Mend what can be made again from the rows.")] = False,
    backups: Annotated[bool, typer.Option("--backups", help="Read every backup whole, not only the newest.")] = False,
    json_: JsonOption = False,
) -> None:
    """Look for damage: database, indexes, lines and rows, backups, and what was interrupted."""
    from tui_agent.memory.checks import check as look
    from tui_agent.memory.checks import worst

    with opened(project) as stores:
        findings = look(stores, fix=fix, every_backup=backups)
        if fix:
            stores.db.checkpoint()
        rows = [[one.level, one.what, one.text + (f"  → {one.fix}" if one.fix else "")] for one in findings]
        state = worst(findings)
        Printer(json_).data({"state": state, "findings": plain(findings)}, table(rows))
        if state == "broken":
            raise typer.Exit(STORE_FAILED)


def paths(project: ProjectOption = Path(), json_: JsonOption = False) -> None:
    """Every path this program writes, with size, mode and purpose."""
    where, user = open_project(project)
    owned = [*where.owned_paths(), *user.owned_paths()]
    found = [_path_data(one) for one in owned]
    rows = [
        [one["mode"], f"{one['bytes']:,}" if one["exists"] else "-", one["scope"], f"{one['path']}  ({one['purpose']})"]
        for one in found
    ]
    Printer(json_).data(found, table(rows))


def _path_data(owned: Any) -> dict[str, Any]:
    from tui_agent.memory.traces import files_below

    path = owned.path
    exists = path.exists()
    return {
        "path": str(path),
        "purpose": owned.purpose,
        "scope": owned.scope,
        "exists": exists,
        "bytes": sum(file.stat().st_size for file in files_below([path])) if exists else 0,
        "mode": stat.filemode(path.stat().st_mode) if exists else "-",
    }
