"""A project with a filled memory, for tests of housekeeping, backups, deletion and sharing."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tui_agent.agent.stores import Stores
from tui_agent.memory.text import format_utc, parse_utc, utc_now
from tui_agent.memory.traces import Spans, files_below, traces_in
from tui_agent.memory.types import Fact, NewFact
from tui_agent.project import Project, UserPaths
from tui_agent.settings import Settings

USER = "knowledge/user.md"


@dataclass
class World:
    """A project in a folder of its own, with its stores open."""

    root: Path
    stores: Stores

    @classmethod
    def make(cls, tmp_path: Path) -> World:
        """A new one below ``tmp_path``."""
        root = tmp_path / "project"
        root.mkdir()
        return cls(root, cls.open(root, tmp_path / "home"))

    @staticmethod
    def open(root: Path, home: Path) -> Stores:
        """The stores of the project at ``root``."""
        paths = UserPaths.find({"TUI_AGENT_HOME": str(home)})
        return Stores.open(Project.open(root), Settings(), paths)

    @property
    def project(self) -> Project:
        """The project."""
        return self.stores.project

    @property
    def memory_dir(self) -> Path:
        """Its memory folder."""
        return self.project.memory_dir

    def reopen(self) -> Stores:
        """Closes the stores and opens them again, as after a restart."""
        self.stores.close()
        self.stores = self.open(self.root, self.root.parent / "home")
        return self.stores

    def remember(self, text: str, *, target: str = "", **more: Any) -> Fact:
        """A fact with its line in a file, where ``target`` names one."""
        line = f"- {text}" if target else ""
        if target:
            path, _, section = target.partition("#")
            self.stores.files.append_line(path, section, line)
        new = NewFact(more.pop("subject", ""), text, more.pop("source", "message 1"), quote=more.pop("quote", text),
                      target=target, target_line=line, **more)  # fmt: skip
        fact = self.stores.facts.record(new).fact
        self.stores.ledger.write_facts_json()
        return fact

    def text(self, name: str) -> str:
        """A memory file's text, or an empty string."""
        path = self.memory_dir / name
        return path.read_text("utf-8") if path.exists() else ""

    def says(self) -> list[str]:
        """The live facts."""
        return [fact.fact for fact in self.stores.facts.live()]

    def files_with(self, text: str) -> list[str]:
        """Every file of the project and of the user that still holds a text, by its bytes or in a row."""
        spans = Spans([text])
        home = self.root.parent / "home"
        return [
            str(path) for path in files_below([self.memory_dir, home]) if any(t.count for t in traces_in(path, spans))
        ]


def plant_index(folder: Path, ids: Iterable[str]) -> None:
    """A resting vector index of ours as Chroma leaves it on disk, with these facts."""
    folder.mkdir(exist_ok=True)
    (folder / "made-by-tui-agent").touch()
    with contextlib.closing(sqlite3.connect(folder / "chroma.sqlite3")) as db, db:
        for sql in (
            "CREATE TABLE IF NOT EXISTS collections (id TEXT, name TEXT)",
            "CREATE TABLE IF NOT EXISTS collection_metadata (collection_id TEXT, key TEXT, str_value TEXT)",
            "CREATE TABLE IF NOT EXISTS segments (id TEXT, collection TEXT)",
            "CREATE TABLE IF NOT EXISTS embeddings (id INTEGER PRIMARY KEY, segment_id TEXT, embedding_id TEXT)",
            "DELETE FROM collections", "DELETE FROM collection_metadata", "DELETE FROM segments",
            "DELETE FROM embeddings",
            "INSERT INTO collections VALUES ('c', 'pamiec-a1b2c3d4e5f6')",
            "INSERT INTO collection_metadata VALUES ('c', 'made_by', 'tui-agent')",
            "INSERT INTO segments VALUES ('s', 'c')",
        ):  # fmt: skip
            db.execute(sql)
        db.executemany("INSERT INTO embeddings(segment_id, embedding_id) VALUES ('s', ?)", [(each,) for each in ids])


def days_ago(days: float) -> str:
    """A stored time so many days back."""
    return format_utc(parse_utc(utc_now()) - timedelta(days=days))
