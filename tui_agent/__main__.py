"""``python -m tui_agent``."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from tui_agent.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
