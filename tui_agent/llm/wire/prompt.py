"""What a model would be given: a ChatML rendering of a request, its length in tokens, and the prompt cache.

The rendering follows the Qwen 2.5 template (tools in the system block, tool results in a user turn), so a change at
the front of a prompt costs what it costs on a real server.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .backend import JSON

_DEFAULT_SYSTEM = "You are a helpful assistant."
_TOOLS_HEAD = (
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
_TOOLS_TAIL = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>"
)


class Tokenizer(Protocol):
    """Turns text into a sequence whose elements are compared one by one; its length is the token count."""

    @property
    def name(self) -> str:
        """What is counted, for people."""
        ...

    def encode(self, text: str) -> Sequence[Any]:
        """The tokens of a text. Equal beginnings must give equal first tokens."""
        ...


class ByteTokenizer:
    """A token is a fixed number of UTF-8 bytes: near enough to a real one, exact in what changed and where."""

    def __init__(self, bytes_per_token: int = 4) -> None:
        self._size = bytes_per_token

    @property
    def name(self) -> str:
        """What is counted, for people."""
        return f"{self._size} bytes of a ChatML rendering"

    def encode(self, text: str) -> Sequence[bytes]:
        """The text in pieces of ``bytes_per_token``, the last one shorter."""
        data = text.encode("utf-8", "replace")
        return [data[start : start + self._size] for start in range(0, len(data), self._size)]


def answer_text(content: str, thinking: str, calls: Sequence[JSON]) -> str:
    """The tokens a model generates for an answer, as they then stand in the cache and in the next prompt."""
    text = f"<think>\n{thinking}\n</think>\n\n" if thinking else ""
    text += content
    for call in calls:
        function = call.get("function") or {}
        body = {"name": function.get("name", ""), "arguments": function.get("arguments") or {}}
        text += ("\n" if text else "") + "<tool_call>\n" + json.dumps(body, ensure_ascii=False) + "\n</tool_call>"
    return text


def render(messages: Sequence[JSON], tools: Sequence[JSON]) -> str:
    """The whole prompt, ready for the answer. Thinking of earlier turns is left out, as most templates do."""
    rest = list(messages)
    system = _DEFAULT_SYSTEM
    if rest and rest[0].get("role") == "system":
        system = str(rest.pop(0).get("content") or "")
    if tools:
        signatures = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in tools)
        system += _TOOLS_HEAD + signatures + _TOOLS_TAIL
    parts = [f"<|im_start|>system\n{system}<|im_end|>\n"]
    last_role = ""
    for message in rest:
        role = str(message.get("role") or "user")
        content = str(message.get("content") or "")
        if role == "tool":
            opening = "" if last_role == "tool" else "<|im_start|>user"
            if last_role == "tool":
                parts[-1] = parts[-1].removesuffix("<|im_end|>\n")
            parts.append(f"{opening}\n<tool_response>\n{content}\n</tool_response><|im_end|>\n")
        elif role == "assistant":
            parts.append(
                f"<|im_start|>assistant\n{answer_text(content, '', message.get('tool_calls') or ())}<|im_end|>\n"
            )
        else:
            images = "".join("<|image|>" for _ in message.get("images") or ())
            parts.append(f"<|im_start|>{role}\n{images}{content}<|im_end|>\n")
        last_role = role
    return "".join(parts) + "<|im_start|>assistant\n"


def systems_first(messages: Sequence[JSON]) -> list[JSON]:
    """System messages moved to the front, the others in their order."""
    return sorted(messages, key=lambda message: message.get("role") != "system")


def fit(
    messages: Sequence[JSON], tools: Sequence[JSON], num_ctx: int, tokenizer: Tokenizer
) -> tuple[list[JSON], str, Sequence[Any]]:
    """Drop the oldest messages until the prompt fits the window.

    System messages and the last message always stay; pairs are not respected. When nothing was dropped the order is
    untouched, otherwise the system messages come first.

    Returns:
        The kept messages, the rendered prompt and its tokens, which may still be more than ``num_ctx``.
    """
    kept = list(messages)
    text = render(kept, tools)
    tokens = tokenizer.encode(text)
    while len(tokens) > num_ctx:
        droppable = [index for index, message in enumerate(kept[:-1]) if message.get("role") != "system"]
        if not droppable:
            break
        del kept[droppable[0]]
        kept = systems_first(kept)
        text = render(kept, tools)
        tokens = tokenizer.encode(text)
    return kept, text, tokens


def common_prefix(first: Sequence[Any], second: Sequence[Any]) -> int:
    """How many elements the two share from the start."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(slots=True)
class Slot:
    """One key-value cache: what it holds and when it was used last."""

    number: int
    tokens: Sequence[Any] = ()
    used: int = 0
    busy: bool = False


@dataclass(slots=True)
class PromptCache:
    """The slots of one runner, chosen as llama.cpp chooses them.

    The idle slot with the largest common share wins when that share is more than a tenth of the new prompt, else the
    one unused for longest. With ``spare`` states kept, a displaced prompt of which less than half would survive is
    put aside and comes back when it fits a later prompt better.
    """

    parallel: int = 1
    spare: int = 0
    slots: list[Slot] = field(default_factory=list)
    _aside: list[Sequence[Any]] = field(default_factory=list)
    _clock: int = 0

    def __post_init__(self) -> None:
        self.slots = [Slot(number) for number in range(self.parallel)]

    def take(self, tokens: Sequence[Any]) -> tuple[Slot, int]:
        """A slot for this prompt and how many of its tokens need not be read again (never all of them)."""
        idle = [slot for slot in self.slots if not slot.busy]
        shared, best = max(
            ((common_prefix(slot.tokens, tokens), slot) for slot in idle), key=lambda pair: (pair[0], -pair[1].used)
        )
        if shared <= 0.1 * len(tokens):
            best = min(idle, key=lambda slot: slot.used)
            shared = common_prefix(best.tokens, tokens)
        if self.spare:
            shared = self._swap(best, tokens, shared)
        self._clock += 1
        best.busy, best.used = True, self._clock
        best.tokens = tokens[:shared]
        return best, min(shared, max(0, len(tokens) - 1))

    def _swap(self, slot: Slot, tokens: Sequence[Any], shared: int) -> int:
        old = slot.tokens
        best = max(self._aside, key=lambda state: common_prefix(state, tokens), default=None)
        if len(old) and shared < 0.5 * len(old):
            self._aside = [*self._aside[-self.spare + 1 :], old] if self.spare > 1 else [old]
        if best is not None and (found := common_prefix(best, tokens)) > shared:
            slot.tokens = best
            return found
        return shared

    def give_back(self, slot: Slot, tokens: Sequence[Any]) -> None:
        """The answer is over (or stopped): the slot now holds the prompt and what was generated."""
        slot.tokens = tokens
        slot.busy = False
