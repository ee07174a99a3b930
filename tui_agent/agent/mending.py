"""A transcript as the strictest template takes it, whatever an older version, a crash or another program left behind.

A template that refuses one message of a history refuses every later request of that session too, so what is wrong is
put right before each request, always in the same way: the result stays a prefix of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

JSON = dict[str, Any]

NO_ANSWER = "(no answer)"
CANCELLED = "(cancelled by the user)"
_EARLIER = "(the conversation so far)"


def mended(messages: Sequence[JSON]) -> list[JSON]:
    """``messages`` with roles that alternate and a result for every tool call; legal ones are returned as they are.

    Missing results and answers are added, orphan results left out, neighbours of the same role joined. Content that is
    no text becomes the text in it.
    """
    result: list[JSON] = []
    waiting: list[str] = []

    def settle() -> None:
        """Results for the calls that wait, so that something else may follow."""
        result.extend({"role": "tool", "tool_name": name, "content": CANCELLED} for name in waiting)
        waiting.clear()

    for given in messages:
        message = _sound(given)
        role = message["role"]
        if role == "tool":
            if waiting:
                waiting.pop(0)
                result.append(message)
            continue
        settle()
        before = result[-1]["role"] if result else ""
        if role == "system" and not result:
            result.append(message)
        elif role == "assistant":
            if before in ("", "system"):
                result.append({"role": "user", "content": _EARLIER})
            if not message.get("content") and not message.get("tool_calls"):
                message = {**message, "content": NO_ANSWER}
            if before == "assistant":
                message = _joined(result.pop(), message)
            result.append(message)
            waiting.extend(_names(message))
        else:
            message = {**message, "role": "user"}
            if before == "tool":
                result.append({"role": "assistant", "content": NO_ANSWER})
            if before == "user":
                message = _joined(result.pop(), message)
            result.append(message)
    settle()
    return result


def _sound(message: JSON) -> JSON:
    """The message with text as its content and a known role."""
    if not isinstance(message.get("content", ""), str):
        message = {**message, "content": _text(message["content"])}
    if message.get("role") not in ("system", "user", "assistant", "tool"):
        message = {**message, "role": "user"}
    return message


def _text(content: Any) -> str:
    """The text in content of another shape, such as the parts other programs write."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _text(content.get("text", ""))
    if isinstance(content, (list, tuple)):
        return "\n".join(filter(None, map(_text, content)))
    return "" if content is None else str(content)


def _joined(first: JSON, second: JSON) -> JSON:
    """Two messages of the same role as one, without stand-ins beside real words."""
    texts = [str(one.get("content") or "") for one in (first, second)]
    real = [text for text in texts if text.strip() and text != NO_ANSWER]
    message = {**first, **second}
    message["content"] = "\n\n".join(real) or (NO_ANSWER if first["role"] == "assistant" else "")
    if second.get("tool_calls") and not real:
        del message["content"]
    return message


def _names(message: JSON) -> list[str]:
    calls = message.get("tool_calls") or ()
    return [str((call.get("function") or {}).get("name", "")) for call in calls if isinstance(call, dict)]
