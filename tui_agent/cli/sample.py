"""``python -m tui_agent.cli.sample FOLDER``: chat in a copy of a sample project, so that the original stays clean."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tui_agent.project import MEMORY_DIR, UserPaths
from tui_agent.settings import load_settings


def copy_sample(source: Path, target: Path) -> Path:
    """Copy the sample once; later starts find what the user did there."""
    if not (target / MEMORY_DIR).is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(
            source,
            target,
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache", "memory.db*", "vector-store", "logs"),
        )
    return target


def server_answers(host: str | None) -> bool:
    """Whether a model server answers at ``host`` (or where the environment says)."""
    import asyncio

    from tui_agent.llm.client import ModelClient

    async def ask() -> bool:
        client = ModelClient(host, connect_timeout=1.0)
        try:
            return await client.alive()
        finally:
            await client.aclose()

    return asyncio.run(ask())


def main(argv: list[str] | None = None) -> int:
    """Run; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tui_agent.cli.sample", description=__doc__)
    parser.add_argument("source", nargs="?", type=Path, help="the sample project")
    parser.add_argument("--probe", action="store_true", help="only say by the exit code whether a model server answers")
    args = parser.parse_args(argv)
    paths = UserPaths.find().ensure()
    if args.probe:
        return 0 if server_answers(load_settings(None, paths).settings.host) else 1
    if args.source is None or not args.source.is_dir():
        parser.error("name the folder of the sample project")
    copy = copy_sample(args.source, paths.sample_dir)
    from tui_agent.cli.chat import run_chat

    return run_chat(copy, {}, "continue", seed=True)


if __name__ == "__main__":
    sys.exit(main())
