"""The sample project comes alive through the real stores, once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.conftest import WordEmbedder
from tui_agent.agent.seed import SeedError, import_seed, needs_seed
from tui_agent.agent.session import Session
from tui_agent.agent.stores import Stores
from tui_agent.cli.sample import copy_sample
from tui_agent.memory.gate import Gate
from tui_agent.memory.secrets import has_secret
from tui_agent.memory.types import Action, Origin, Proposal
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

SAMPLE = Path(__file__).parent.parent.parent / "sample_project"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("TUI_AGENT_HOME", str(tmp_path / "home"))
    return Project.open(copy_sample(SAMPLE, tmp_path / "parcel-service"))


async def test_every_pane_has_something_to_show_on_the_first_run(project: Project) -> None:
    paths = UserPaths.find()
    loaded = load_settings(project, paths, {}, {"host": "http://127.0.0.1:9"})
    stores = Stores.open(project, loaded.settings, paths)
    assert needs_seed(stores, project.seed_path)
    session_id = await import_seed(stores, loaded.settings, project.seed_path)
    assert not needs_seed(stores, project.seed_path)
    stores.close()
    session = await Session.open(
        project, loaded, resume="continue", user_paths=paths, embedder=WordEmbedder(), interactive=False
    )
    try:
        assert session.id == session_id
        hot, cold = await session.hot(), await session.cold()
        assert len(hot.rows) >= 4
        assert any(row.pinned for row in hot.rows)
        assert hot.used <= hot.budget
        assert len(cold.rows) >= 2
        transcript = await session.transcript()
        answers = [entry for entry in transcript if entry.role == "assistant"]
        assert all(entry.recall and entry.recall.items for entry in answers)
        for entry in answers:
            assert entry.recall is not None
            for item in (*entry.recall.items, *entry.recall.near):
                assert sum(term.value for term in item.terms) == pytest.approx(item.score, abs=0.006)
        remembered = await session.remembered()
        assert len(remembered) >= 8
        assert not any("npm for the admin" in item.text for item in remembered)
        assert len(await session.quarantined()) == 1
        assert session.problems == ()
    finally:
        await session.close()


def test_the_sample_says_only_what_its_quotes_prove() -> None:
    for line in (SAMPLE / ".agent-memory" / "seed.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        assert not has_secret(line)
        if row["type"] == "fact":
            assert row["source"]
            assert row["quote"]
            assert row["created_at"] < "2026-12"


def test_lines_of_the_sample_files_are_those_of_its_facts() -> None:
    rows = [json.loads(line) for line in (SAMPLE / ".agent-memory" / "seed.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        if row.get("target_line"):
            name = row["target"].partition("#")[0]
            assert row["target_line"] in (SAMPLE / ".agent-memory" / name).read_text("utf-8").splitlines()


async def test_a_broken_line_is_named(project: Project, tmp_path: Path) -> None:
    paths = UserPaths.find()
    stores = Stores.open(project, load_settings(project, paths, {}).settings, paths)
    bad = tmp_path / "seed.jsonl"
    bad.write_text('{"type": "fact"}\n', "utf-8")
    with pytest.raises(SeedError, match=r"seed\.jsonl:1"):
        await import_seed(stores, load_settings(project, paths, {}).settings, bad)
    stores.close()


def test_the_copy_is_made_once_and_the_original_stays_clean(project: Project, tmp_path: Path) -> None:
    mine = project.rules_path
    mine.write_text("- mine\n", "utf-8")
    assert copy_sample(SAMPLE, project.root) == project.root
    assert mine.read_text("utf-8") == "- mine\n"
    assert not (SAMPLE / ".agent-memory" / "memory.db").exists()


def test_the_samples_own_tests_pass(tmp_path: Path) -> None:
    root = tmp_path / "sample"
    shutil.copytree(SAMPLE, root)
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", "pyproject.toml"]
    ran = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "7 passed" in ran.stdout


def test_the_samples_quotes_would_pass_the_gate(project: Project) -> None:
    paths = UserPaths.find()
    stores = Stores.open(project, load_settings(project, paths, {}).settings, paths)
    gate = Gate(stores.facts, None)
    text = "from now on data access goes through repositories, no SQL outside repository.py"
    verdict = gate.decide(Proposal(text, Origin.MODEL, "remember", "message m1", user_text=text))
    stores.close()
    assert verdict.action is Action.LIVE
