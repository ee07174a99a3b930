"""Everything of one project that is on disk, opened the same way by the chat, ``ask`` and every command."""

from __future__ import annotations

from dataclasses import dataclass

from tui_agent.memory.cold import ColdStore
from tui_agent.memory.cold_index import ColdIndex
from tui_agent.memory.database import Database
from tui_agent.memory.fact_index import FactIndex
from tui_agent.memory.facts import FactStore
from tui_agent.memory.files import MemoryFiles
from tui_agent.memory.gate import Gate
from tui_agent.memory.history import History
from tui_agent.memory.known_secrets import KnownSecrets
from tui_agent.memory.known_texts import KnownTexts
from tui_agent.memory.ledger import Ledger
from tui_agent.memory.line_journal import LineJournal
from tui_agent.memory.topics import Topics
from tui_agent.memory.upkeep import working_scope
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of a project over one database. Calls that touch the disk go through ``db.run``.

    ``fact_index``, ``cold`` and ``cold_index`` keep words and vectors in memory; all conversations of the project share
    them, so that a new one does not read them again.
    """

    project: Project
    paths: UserPaths
    db: Database
    history: History
    facts: FactStore
    files: MemoryFiles
    gate: Gate
    ledger: Ledger
    topics: Topics
    secrets: KnownSecrets
    known: KnownTexts
    fact_index: FactIndex
    cold: ColdStore
    cold_index: ColdIndex

    @classmethod
    def open(cls, project: Project, settings: Settings, paths: UserPaths | None = None) -> Stores:
        """Open (and on the first run create) the project's memory.

        Raises:
            StoreError: the database cannot be used; the sentence says which file and what to do.
            ProjectError: the memory folder cannot be made.
        """
        paths = paths or UserPaths.find()
        project.ensure()
        db = Database(project.db_path, before_migration=lambda db, _: _backup(project, db))
        try:
            secrets = KnownSecrets()
            history = History(db, redact=secrets.clean)
            facts = FactStore(db)
            files = MemoryFiles(project.memory_dir, has_secret=secrets.has)
            gate = Gate(facts, files, redactor=secrets.redact, user_notes_cap=settings.user_notes_max_lines)
            everywhere = MemoryFiles(paths.config, has_secret=secrets.has, keep_versions=0)
            ledger = Ledger(db, facts, files, gate, project.facts_json_path, everywhere)
            lines = LineJournal(project.pending_dir, db, ledger.says)
            lines.watch("project", files)
            lines.watch("everywhere", everywhere)
            lines.recover()
            topics = Topics(db, redact=secrets.clean)
            known, fact_index, cold = KnownTexts(db), FactIndex(db, facts), ColdStore(db)
            cold_index = ColdIndex(cold, working_scope(project).key)
        except BaseException:
            db.close()
            raise
        return cls(
            project,
            paths,
            db,
            history,
            facts,
            files,
            gate,
            ledger,
            topics,
            secrets,
            known,
            fact_index,
            cold,
            cold_index,
        )

    def close(self) -> None:
        """Finish pending writes and close the database."""
        self.db.close()


def _backup(project: Project, db: Database) -> None:
    from tui_agent.memory.backup import Backups

    Backups(project).make(db, "before migration")
