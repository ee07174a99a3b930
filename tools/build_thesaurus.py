"""Makes ``tui_agent/memory/thesaurus.json.gz`` of ``tools/thesaurus.txt``.

python tools/build_thesaurus.py
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tui_agent.memory import thesaurus

SOURCE = Path(__file__).with_name("thesaurus.txt")


def main() -> None:
    """Write the file anew."""
    made = thesaurus.compiled(SOURCE.read_text(encoding="utf-8").splitlines())
    plain = json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()
    out = Path(thesaurus.__file__).with_name(thesaurus.FILE)
    out.write_bytes(gzip.compress(plain, 9, mtime=0))
    print(f"{len(made['stems'])} stems and {len(made['phrases'])} phrases, {out.stat().st_size // 1024} KiB: {out}")


if __name__ == "__main__":
    main()
