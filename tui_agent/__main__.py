"""``python -m tui_agent``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Interrupted while it still loads, it ends as it does later: quietly."""
    try:
        from tui_agent.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
