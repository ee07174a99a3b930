"""Between Ollama's chat requests and llama.cpp's OpenAI-style endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..wire.backend import JSON, BackendError, ChatRequest

# Ollama's defaults, which differ from llama.cpp's own; its name on the left, llama.cpp's on the right.
_SAMPLING: dict[str, tuple[str, Any]] = {
    "temperature": ("temperature", 0.8),
    "top_k": ("top_k", 40),
    "top_p": ("top_p", 0.9),
    "min_p": ("min_p", 0.0),
    "typical_p": ("typical_p", 1.0),
    "repeat_last_n": ("repeat_last_n", 64),
    "repeat_penalty": ("repeat_penalty", 1.0),
    "presence_penalty": ("presence_penalty", 0.0),
    "frequency_penalty": ("frequency_penalty", 0.0),
    "seed": ("seed", -1),
}


def messages_for(messages: Sequence[JSON]) -> list[JSON]:
    """The messages as OpenAI has them: arguments as JSON text, ids on calls and results, no thinking.

    Calls without an id get one from their place in the conversation, so that the same history always gives the same
    prompt. Results are matched with the calls before them in order.
    """
    found: list[JSON] = []
    waiting: list[str] = []
    for position, message in enumerate(messages):
        role = message.get("role") or "user"
        if message.get("images"):
            raise BackendError(400, "this model cannot see images")
        made: JSON = {"role": role, "content": message.get("content") or ""}
        if role == "assistant" and message.get("tool_calls"):
            made["tool_calls"] = []
            waiting = []
            for number, call in enumerate(message["tool_calls"]):
                function = call.get("function") or {}
                waiting.append(str(call.get("id") or f"call_{position}_{number}"))
                arguments = json.dumps(function.get("arguments") or {}, ensure_ascii=False)
                called = {"name": function.get("name", ""), "arguments": arguments}
                made["tool_calls"].append({"id": waiting[-1], "type": "function", "function": called})
        elif role == "tool":
            known = message.get("tool_call_id")
            made["tool_call_id"] = known or (waiting.pop(0) if waiting else f"call_{position}")
            if message.get("tool_name"):
                made["name"] = message["tool_name"]
        found.append(made)
    return found


def body_for(request: ChatRequest, num_ctx: int) -> JSON:
    """The body of ``/v1/chat/completions`` for a chat request."""
    options = request.options
    body: JSON = {
        "messages": messages_for(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_prompt": True,
        "timings_per_token": True,
        "return_progress": True,
        "max_tokens": _limit(options, num_ctx),
    }
    if request.tools:
        body["tools"] = request.tools
    for name, (theirs, default) in _SAMPLING.items():
        given = options.get(name)
        body[theirs] = default if given is None else given
    if options.get("stop"):
        body["stop"] = options["stop"]
    if options.get("num_keep"):
        body["n_keep"] = options["num_keep"]
    if request.think is not None:
        body["chat_template_kwargs"] = {"enable_thinking": bool(request.think)}
    if request.format == "json":
        body["response_format"] = {"type": "json_object"}
    elif isinstance(request.format, dict) and request.format:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": request.format}}
    elif request.format:
        raise BackendError(500, f'invalid format: {json.dumps(request.format)}; expected "json" or a JSON schema')
    return body


def _limit(options: Mapping[str, Any], num_ctx: int) -> int:
    """Tokens to generate at most; never without a limit, a small model may not stop by itself."""
    wanted = options.get("num_predict")
    return num_ctx if wanted is None or wanted < 0 else max(1, int(wanted))


@dataclass(slots=True)
class Answer:
    """Collects what a stream says: counters, and tool calls that arrive in pieces."""

    cached: int | None = None
    read: int = 0
    written: int = 0
    read_ms: float = 0.0
    write_ms: float = 0.0
    finish: str = ""
    total: int = 0
    processed: int = 0
    _calls: dict[int, JSON] = field(default_factory=dict)

    def take(self, event: JSON) -> tuple[str, str]:
        """Digest one event and return its content and thinking.

        Raises:
            BackendError: the event is an error.
        """
        if "error" in event:
            raise error_of(500, event)
        if timings := event.get("timings"):
            self.cached = int(timings.get("cache_n", 0))
            self.read = int(timings.get("prompt_n", 0))
            self.written = int(timings.get("predicted_n", 0))
            self.read_ms = float(timings.get("prompt_ms", 0.0))
            self.write_ms = float(timings.get("predicted_ms", 0.0))
        if progress := event.get("prompt_progress"):
            self.total = int(progress.get("total", 0))
            self.processed = int(progress.get("processed", 0))
        content = thinking = ""
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            content += delta.get("content") or ""
            thinking += delta.get("reasoning_content") or ""
            for piece in delta.get("tool_calls") or ():
                self._add(piece)
            self.finish = choice.get("finish_reason") or self.finish
        return content, thinking

    def _add(self, piece: JSON) -> None:
        call = self._calls.setdefault(int(piece.get("index", 0)), {"id": "", "name": "", "arguments": ""})
        function = piece.get("function") or {}
        call["id"] = piece.get("id") or call["id"]
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""

    @property
    def tool_calls(self) -> list[JSON]:
        """The complete calls, arguments as objects.

        Raises:
            BackendError: arguments that are no JSON object, in the server's words.
        """
        calls = []
        for index, call in sorted(self._calls.items()):
            try:
                arguments = json.loads(call["arguments"] or "{}")
            except ValueError:
                arguments = None
            if not isinstance(arguments, dict):
                text = f'llama-server returned invalid tool call arguments for "{call["name"]}": {call["arguments"]}'
                raise BackendError(500, text)
            calls.append({"id": call["id"], "function": {"index": index, "name": call["name"], "arguments": arguments}})
        return calls

    @property
    def done_reason(self) -> str:
        """``length`` or ``stop``, as Ollama says it."""
        return "length" if self.finish == "length" else "stop"


def error_of(status: int, body: Any) -> BackendError:
    """An error of llama.cpp as Ollama passes it on: a full window as a string of JSON, anything else as text."""
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return BackendError(status, str(error or body or "the model gave no answer"))
    if error.get("type") == "exceed_context_size_error":
        return BackendError(400, json.dumps({"error": error}, separators=(",", ":")))
    code = error.get("code")
    return BackendError(
        code if isinstance(code, int) and 400 <= code < 600 else status,
        f"an error was encountered while running the model: {error.get('message', '')}",
    )
