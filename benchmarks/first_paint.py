"""Time from start to first paint, beside a bare Textual app, both as real processes in a real terminal.

    python benchmarks/first_paint.py [--runs 7] [--json] [--check]

The two programs run in turn (A B A B …), each in a pseudo-terminal of 120x40. The clock stops when the first cell of
the screen is drawn (for ours: when the composer's hint is readable). At that moment a word is typed into ours, which
must appear in the composer, or the run fails: a picture of a composer would not count. Medians and their ratio are
printed. Both programs run from compiled files, as they do once installed, whatever the environment says of them.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import ptyprocess
import pyte

sys.path.insert(0, str(Path(__file__).parent))
from _report import Report, parser, table

BARE = """
from textual.app import App
from textual.widgets import Footer, Header, Static, TextArea

class Bare(App):
    def compose(self):
        yield Header()
        yield Static("READY-TO-TYPE")
        yield TextArea()
        yield Footer()

Bare().run()
"""
GOAL = 1.5


def time_to(argv: list[str], marker: str, env: dict[str, str], typed: str = "", limit_s: float = 60.0) -> float:
    """Seconds from spawn until ``marker`` can be read on the screen; ``typed`` is then typed and must appear."""
    screen = pyte.Screen(120, 40)
    stream = pyte.ByteStream(screen)
    started = time.perf_counter()
    process = ptyprocess.PtyProcess.spawn(argv, env=env, dimensions=(40, 120))

    def read_until(wanted: str) -> float:
        while time.perf_counter() - started < limit_s:
            try:
                stream.feed(process.read(65536))
            except EOFError:
                break
            if any(wanted in line for line in screen.display):
                return time.perf_counter() - started
        shown = "\n".join(line.rstrip() for line in screen.display if line.strip())
        raise SystemExit(f"{argv} never showed {wanted!r}. The screen was:\n{shown}")

    try:
        took = read_until(marker)
        if typed:
            process.write(typed.encode())
            read_until(f"> {typed}")
        return took
    finally:
        process.terminate(force=True)


def main() -> int:
    """Run the benchmark."""
    options = parser(__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=7)
    args = options.parse_args()
    runs = 3 if args.quick else args.runs
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        env = {**os.environ, "TUI_AGENT_HOME": f"{folder}/home", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        env.pop("COLUMNS", None)
        env.pop("LINES", None)
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        env["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        env["OLLAMA_HOST"] = "127.0.0.1:9"  # nothing answers there: the paint must not wait for a server
        ours_argv = [sys.executable, "-m", "tui_agent", "chat", str(project)]
        bare_argv = [sys.executable, "-c", BARE]
        ours: list[float] = []
        bare: list[float] = []
        for number in range(runs + 1):
            b = time_to(bare_argv, "READY-TO-TYPE", env)
            o = time_to(ours_argv, "enter send", env, typed="typed at once")
            if number:  # the first pair fills the disk cache and compiles
                bare.append(b)
                ours.append(o)
    ratio = statistics.median(o / b for o, b in zip(ours, bare, strict=True))
    report = Report("first_paint")
    report.put("median_s", statistics.median(ours))
    report.put("ratio", ratio)
    report.put("median_s", statistics.median(bare), peer="bare Textual app")
    table(
        ["seconds to first paint", "min", "median", "max"],
        [
            ["tui-agent chat", min(ours), statistics.median(ours), max(ours)],
            ["bare Textual app", min(bare), statistics.median(bare), max(bare)],
        ],
    )
    report.goal("ours over bare, median of pairs", f"<= {GOAL}", ratio, ratio <= GOAL)
    return report.finish(args)


if __name__ == "__main__":
    sys.exit(main())
