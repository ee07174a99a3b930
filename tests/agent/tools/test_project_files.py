"""The read-only project tools stay inside the project and honour .gitignore."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_agent.agent.tools.base import Tool, ToolResult, TurnContext
from tui_agent.agent.tools.project_files import ProjectTree, project_tools

TURN = TurnContext("question", "m1", "s1")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / ".agent-memory").mkdir()
    (root / "build").mkdir()
    (root / "src" / "retry.py").write_text("def retry_it():\n    return 1\n\n# Zażółć\n", "utf-8")
    (root / "src" / ".gitignore").write_text("*.log\n!keep.log\n", "utf-8")
    (root / "src" / "a.log").write_text("retry_it failed\n", "utf-8")
    (root / "src" / "keep.log").write_text("retry_it again\n", "utf-8")
    (root / "build" / "out.py").write_text("retry_it\n", "utf-8")
    (root / ".gitignore").write_text("build/\nsecret.txt\n", "utf-8")
    (root / "secret.txt").write_text("retry_it\n", "utf-8")
    (root / "picture.bin").write_bytes(b"\x00\x01retry_it")
    (tmp_path / "outside.txt").write_text("retry_it outside\n", "utf-8")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    return root


def tool(root: Path, name: str) -> Tool:
    return next(tool for tool in project_tools(root) if tool.name == name)


async def read(root: Path, **args: object) -> ToolResult:
    return await tool(root, "read_file").run(dict(args), TURN)


async def find(root: Path, **args: object) -> ToolResult:
    return await tool(root, "search_files").run(dict(args), TURN)


async def test_a_file_is_read_with_its_lines_counted(root: Path) -> None:
    result = await read(root, path="src/retry.py")
    assert result.ok
    assert result.text.startswith("src/retry.py lines 1-4 of 4\ndef retry_it():")
    assert (result.item_kind, result.source) == ("file", "src/retry.py")
    part = await read(root, path="./src/retry.py", start_line=2, end_line=2)
    assert part.text == "src/retry.py lines 2-2 of 4\n    return 1"


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt",
        "link.txt",
        "/etc/passwd",
        "secret.txt",
        "build/out.py",
        "src/a.log",
        ".agent-memory/x",
        "a\x00b",
        "",
    ],
)
async def test_nothing_outside_hidden_or_ignored_is_read(root: Path, path: str) -> None:
    result = await read(root, path=path)
    assert not result.ok
    assert "retry_it" not in result.text


async def test_a_file_that_is_elsewhere_is_suggested(root: Path) -> None:
    result = await read(root, path="retry.py")
    assert not result.ok
    assert "'src/retry.py'" in result.text


async def test_a_folder_is_listed_and_a_binary_refused(root: Path) -> None:
    assert "src/" in (await read(root, path=".")).text
    assert not (await read(root, path="picture.bin")).ok
    assert not (await read(root, path="src/retry.py", start_line=99)).ok


async def test_search_finds_visible_text_only_and_ignores_case(root: Path) -> None:
    result = await find(root, query="RETRY_IT")
    assert result.text.splitlines() == ["src/keep.log:1: retry_it again", "src/retry.py:1: def retry_it():"]
    assert (await find(root, query="ZAŻÓŁĆ")).text.startswith("src/retry.py:4")
    assert "contains" in (await find(root, query="nowhere to be found")).text
    assert not (await find(root, query=" ")).ok


async def test_search_can_be_kept_to_a_folder(root: Path) -> None:
    (root / "other.py").write_text("retry_it\n", "utf-8")
    assert "other.py" not in (await find(root, query="retry_it", path="src")).text
    assert not (await find(root, query="retry_it", path="../")).ok


def test_a_deeper_gitignore_may_take_a_file_back_but_not_out_of_an_ignored_folder(root: Path) -> None:
    tree = ProjectTree(root)
    assert tree.ignored(root / "src" / "a.log")
    assert not tree.ignored(root / "src" / "keep.log")
    assert tree.ignored(root / "build" / "out.py")
