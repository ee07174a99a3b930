"""How many tokens a text has, without the model's tokenizer: an estimate by script, corrected by what servers report.

The constants were fitted to the Qwen 2.5 tokenizer on English, Polish and Russian sentences, Markdown, Python and JSON;
modern byte-level vocabularies are close to it, and the correction learns the rest.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Any

MESSAGE_TOKENS = 5  # role, line ends and the two marks around a message in ChatML-like templates
TOOLS_TOKENS = 90  # the sentence with which templates introduce the list of tools
CALL_TOKENS = 18  # the wrapping of one tool call
IMAGE_TOKENS = 768  # what the server counts for an image
KEPT_RATIOS = 9
_PIECE_KEPT = 1000  # characters
MIN_OBSERVED = 64
MIN_FACTOR, MAX_FACTOR = 0.5, 2.5

# One alternative per way of being tokenized; Latin words split where camel case does.
_RUNS = re.compile(
    r"(?P<latin>[A-Z]?[a-zß-öø-ÿĀ-ɏ]+|[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ÿĀ-ɏ])|[A-ZÀ-ÖØ-ÞĀ-ɏ][a-zß-öø-ÿĀ-ɏ]*)"
    r"|(?P<cyrillic>[Ѐ-ԯ]+)"
    r"|(?P<digit>[ ]?[0-9]+)"
    r"|(?P<east>[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+)"
    r"|(?P<line>\s*\n)"
    r"|(?P<space>[^\S\n]{2,})"
    r"|(?P<blank>\s)"
    r"|(?P<mark>[!-/:-@\[-`{-~]+)"
    r"|(?P<letter>[^\W_]+)"
    r"|(?P<other>(?P<one>.)(?P=one)*)",
    re.DOTALL,
)
_HEAD = re.compile(r"\[[^\]\n]*\] (?=\S)")
_BEYOND_ASCII = re.compile(r"[ß-öø-ÿÀ-ÖØ-ÞĀ-ɏ]")
_WORD = re.compile(r"[A-Za-zß-öø-ÿÀ-ÖØ-ÞĀ-ɏ]+")


class TokenEstimator:
    """Token counts for one model at a time, corrected per model by the counts its server reports.

    ``model`` selects the correction; :meth:`use` changes it. Not thread-safe; cheap enough for every key press.
    """

    def __init__(self, model: str = "") -> None:
        self._model = model
        self._ratios: dict[str, list[float]] = {}
        self._factors: dict[str, float] = {}

    @property
    def model(self) -> str:
        """The model whose correction is in use."""
        return self._model

    def use(self, model: str) -> None:
        """Switch to another model's correction (1 for a model never seen)."""
        self._model = model

    @property
    def factor(self) -> float:
        """The correction in use: median of the last observed ratios, between 0.5 and 2.5."""
        known = self._factors.get(self._model)
        if known is None:
            ratios = self._ratios.get(self._model)
            known = min(max(median(ratios), MIN_FACTOR), MAX_FACTOR) if ratios else 1.0
            self._factors[self._model] = known
        return known

    def estimate(self, text: str) -> int:
        """Tokens of a text, rounded up: at least 1, but 0 for the empty text."""
        return max(1, math.ceil(_raw(text) * self.factor)) if text else 0

    def estimate_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> int:
        """Tokens of a whole request as the model will read it: messages with their marks, and the tool list.

        ``thinking`` of a message counts when it is there; leave it out for turns whose template drops it.
        """
        raw = float(sum(_raw_message(message) for message in messages))
        if tools:
            raw += TOOLS_TOKENS + sum(_raw(_compact(tool)) + 1 for tool in tools)
        return math.ceil((raw + (MESSAGE_TOKENS - 2 if messages else 0)) * self.factor)

    def observe(self, estimated: int, actual: int | None) -> bool:
        """Learn from a reply: ``estimated`` is what this object said for the prompt, ``actual`` the server's count.

        Returns whether it was used. Short prompts say little; a count far below the estimate means that the server
        cut the prompt or leaves cached tokens out, and one far above that it added a text of its own: neither is
        the tokenizer's doing, so they are not learned.
        """
        if actual is None or estimated < MIN_OBSERVED or actual < MIN_OBSERVED:
            return False
        ratio = actual / estimated
        if not 0.5 <= ratio <= 2.5:
            return False
        ratios = self._ratios.setdefault(self._model, [])
        ratios.append(min(max(ratio * self.factor, MIN_FACTOR), MAX_FACTOR))
        del ratios[:-KEPT_RATIOS]
        self._factors.pop(self._model, None)
        return True

    def to_state(self) -> dict[str, Any]:
        """Everything learned, as JSON values."""
        return {"ratios": {model: [round(ratio, 4) for ratio in ratios] for model, ratios in self._ratios.items()}}

    @classmethod
    def from_state(cls, state: Any, model: str = "") -> TokenEstimator:
        """An estimator with what :meth:`to_state` gave; anything unreadable in it is left out."""
        estimator = cls(model)
        saved = state.get("ratios") if isinstance(state, Mapping) else None
        for name, values in saved.items() if isinstance(saved, Mapping) else ():
            good = [float(value) for value in values if _is_ratio(value)] if isinstance(values, list) else []
            if good:
                estimator._ratios[str(name)] = good[-KEPT_RATIOS:]
        return estimator


def _is_ratio(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and MIN_FACTOR <= value <= MAX_FACTOR


def _raw_message(message: Mapping[str, Any]) -> float:
    total = float(MESSAGE_TOKENS)
    for key in ("content", "thinking", "tool_name"):
        value = message.get(key)
        if isinstance(value, str):
            total += _raw(value)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {} if isinstance(call, Mapping) else {}
        total += CALL_TOKENS + _raw(_compact(function))
    return total + IMAGE_TOKENS * len(message.get("images") or ())


def _compact(value: Any) -> str:
    # With spaces: this is how templates print JSON.
    return json.dumps(value, ensure_ascii=False, default=str)


@lru_cache(maxsize=2048)
def _raw(text: str) -> float:
    """The uncorrected estimate. Cached, since the same messages are counted before every request."""
    total = 0.0
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            # With the blanks before it, the end of a line is one token; without it the line is one seen elsewhere.
            total += 1.0
            line = line.rstrip()
        # So is what stands behind "[...] ", the head that a recalled text is sent with.
        head = _HEAD.match(line)
        for piece in (line,) if head is None else (head[0], line[head.end() :]):
            total += _raw_piece(piece) if len(piece) <= _PIECE_KEPT else _raw_piece.__wrapped__(piece)
    return total


@lru_cache(maxsize=8192)
def _raw_piece(line: str) -> float:
    """The same of a part of a line. A recalled text is counted by itself, and again in a message that holds it."""
    words = _WORD.findall(line)
    # Words of a language with diacritics are rare in the vocabularies, those without any diacritic included.
    foreign = len(_BEYOND_ASCII.findall(line)) > 0.06 * len(words)
    total = 0.0
    for run in _RUNS.finditer(line):
        length = run.end() - run.start()
        kind = run.lastgroup
        if kind == "latin":
            total += _rare_word(length) if foreign else _english_word(length)
        elif kind == "cyrillic":
            total += _rare_word(length)
        elif kind == "digit":
            total += length
        elif kind == "east":
            total += 0.7 * length
        elif kind in ("line", "space"):
            total += 1.0
        elif kind == "mark":
            total += 0.75 + 0.3 * (length - 1)
        elif kind == "letter":
            total += 0.8 * length
        elif kind == "other":
            total += 1.3 + 0.2 * (length - 1)
    return total


def _english_word(length: int) -> float:
    return 1.05 if length <= 8 else 1.05 + 0.2 * (length - 8)


def _rare_word(length: int) -> float:
    return 1.0 if length <= 2 else 0.43 + 0.33 * length
