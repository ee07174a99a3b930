"""One turn with a real small model: what is stated is written with proof, or the user is told that it was not.

What the model says is its own affair, and is not asserted.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.conftest import of
from tui_agent.agent.events import MemoryChanged, SaveMissing, TurnFinished
from tui_agent.agent.session import Session
from tui_agent.llm.errors import ModelMissing
from tui_agent.project import Project, UserPaths
from tui_agent.settings import load_settings

pytest.importorskip("xllamacpp")
pytestmark = pytest.mark.real_model


async def test_a_real_model_saves_with_proof_or_the_user_is_told(tmp_path: Path) -> None:
    from tui_agent.llm.embedded.models import find_parts

    try:
        find_parts()
    except ModelMissing as error:
        pytest.skip(str(error))
    user = UserPaths.find()  # the model is unpacked where the app keeps it: once for all, not once a test
    paths = UserPaths(tmp_path / "config", tmp_path / "data", tmp_path / "state", user.cache)
    (tmp_path / "project").mkdir()
    project = Project.open(tmp_path / "project")
    flags = {"embedded": True, "embedder": "none", "num_ctx": 4096, "temperature": 0.0, "seed": 1}
    session = await Session.open(project, load_settings(project, paths, {}, flags), user_paths=paths)
    try:
        events = [event async for event in session.send("My name is Kacper and I prefer pnpm")]
        finished = events[-1]
        assert isinstance(finished, TurnFinished)
        assert finished.status in ("answered", "empty", "cut_off")
        assert finished.prompt_tokens is not None
        saved = [e for e in of(events, MemoryChanged) if e.what == "saved"]
        missing = of(events, SaveMissing)
        assert saved or missing
        for fact in await session.remembered():
            assert fact.quote in "My name is Kacper and I prefer pnpm"
        assert all(("Kacper" in m.sentence) or ("pnpm" in m.sentence) for m in missing)
    finally:
        await session.close()
