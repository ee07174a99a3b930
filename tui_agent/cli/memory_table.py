"""The table of ``tui-agent memory`` commands: names, functions, examples."""

from __future__ import annotations

import typer

from tui_agent.cli import memory_care as care
from tui_agent.cli import memory_facts as facts
from tui_agent.cli import memory_find as finding
from tui_agent.cli import memory_learning as learning
from tui_agent.cli import memory_scope as scopes
from tui_agent.cli import memory_store as store
from tui_agent.cli import memory_topics as topics
from tui_agent.cli.printing import EXIT_CODES

memory = typer.Typer(name="memory", rich_markup_mode=None)


def _examples(*lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  tui-agent memory {line}" for line in lines) + f"\n\n\b\n{EXIT_CODES}"


for _name, _command, _lines in (
    ("list", facts.list_, ("list", "list --kind decision", "list --all --json")),
    ("show", facts.show, ("show k3f", "show fact:k3f --json")),
    ("add", facts.add, ('add "We use pnpm, not npm" --subject "package manager"', "add - --days 7 < note.txt")),
    ("confirm", facts.confirm, ("confirm k3f", "confirm k3f 9qx")),
    ("correct", facts.correct, ('correct k3f "We use bun"', "correct k3f - < note.txt")),
    ("expire", facts.expire, ("expire k3f", "expire k3f --at 2027-01-31", "expire k3f --never")),
    ("undo", facts.undo, ("undo", "undo k3f")),
    ("pin", facts.pin, ("pin k3f", "pin k3f --off")),
    ("promote", scopes.promote, ("promote k3f", "promote k3f --off")),
    ("put-away", facts.put_away, ("put-away 7ma",)),
    ("delete", facts.delete, ("delete k3f", "delete k3f --yes --json", "delete --text - < leaked.txt")),
    ("search", finding.search, ("search deployment", 'search --messages "line length"', "search - < question.txt")),
    ("why", finding.why, ("why last", "why 4tz", 'why "how do we deploy?" --json')),
    ("topics", topics.topics, ("topics", 'topics k3f "how do we deploy?"', "topics --remove 7ma")),
    ("review", finding.review, ("review", "review --unused", "review --fetchable")),
    ("new", finding.new, ("new", "new --days 7")),
    ("log", finding.log, ("log", "log k3f", "log --working -n 100")),
    ("quarantine", finding.quarantine, ("quarantine", "quarantine --json")),
    ("approve", finding.approve, ("approve 8wn", "approve --all")),
    ("reject", finding.reject, ("reject 8wn",)),
    ("extract", learning.extract, ("extract", "extract 9qx --json", "extract --embedded")),
    ("check-extraction", learning.check_extraction, ("check-extraction", "check-extraction --last --json")),
    ("stats", finding.stats, ("stats", "stats --schema", "stats --json")),
    ("prune", care.prune, ("prune", "prune --dry-run", "prune --if-due")),
    ("backup", care.backup, ("backup", "backup --before upgrade", "backup --list")),
    ("restore", care.restore, ("restore latest --dry-run", "restore 2026-11-30-021000", "restore latest --yes")),
    ("export", care.export, ("export > facts.json", "export facts.json --scope project")),
    ("import", care.import_, ("import facts.json --dry-run", "import --mine facts.json", "import - < facts.json")),
    ("share", care.share, ("share status", "share on", "share off")),
    ("consolidate", store.consolidate, ("consolidate", "consolidate --apply 4fz", "consolidate --all --json")),
    ("changes", store.changes, ("changes", "changes facts.json --take", "changes AGENTS.md --put-back")),
    ("reindex", store.reindex, ("reindex",)),
    ("check", care.check, ("check", "check --fix", "check --backups --json")),
    ("paths", care.paths, ("paths", "paths --json")),
):
    # The first sentence whole: the default cuts it in the list of commands.
    _first = (_command.__doc__ or "").partition(". ")[0].rstrip(".")
    memory.command(_name, short_help=_first, epilog=_examples(*_lines))(_command)
