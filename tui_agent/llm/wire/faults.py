"""Ready-made scripts for everything that is known to go wrong, with the server's exact words."""

from __future__ import annotations

import json
from collections.abc import Callable

from .backend import JSON
from .script import Calls, Cut, Done, Fail, Joined, Raw, Reply, Say, Script, Stop, Think, call, words


def missing_model(name: str = "missing") -> Script:
    """404 although ``/api/tags`` lists the model: deleted in the meantime."""
    return Script(Fail(404, f"model '{name}' not found"))


def server_busy() -> Script:
    """503: the queue for loads is full (two spaces are in the original)."""
    return Script(Fail(503, "server busy, please try again.  maximum pending requests exceeded"))


def load_failure(text: str = "llama-server process has terminated: exit status 1: out of memory") -> Script:
    """500 while loading."""
    return Script(load_error=Fail(500, text))


def runner_died() -> Script:
    """500: the runner is gone before the first token."""
    text = (
        "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, "
        "check ollama server logs for details"
    )
    return Script(Fail(500, text))


def tool_parser_failed() -> Script:
    """500: the server could not parse the model's own tool call."""
    return Script(Fail(500, "XML syntax error on line 127: element <parameter> closed by </function>"))


def error_mid_stream(text: str = "This is the", error: str = "llama runner process no longer running") -> Script:
    """Some text, then an error line; the status stays 200."""
    return Script(*words(text), Fail(500, f"an error was encountered while running the model: {error}"))


def context_error(prompt: int = 9412, num_ctx: int = 8192) -> JSON:
    """llama.cpp's own error object for a prompt that is too long."""
    message = f"request ({prompt} tokens) exceeds the available context size ({num_ctx} tokens), try increasing it"
    return {
        "error": {
            "code": 400,
            "message": message,
            "type": "exceed_context_size_error",
            "n_prompt_tokens": prompt,
            "n_ctx": num_ctx,
        }
    }


def context_exceeded(prompt: int = 9412, num_ctx: int = 8192) -> Script:
    """400 whose error is a string holding JSON."""
    return Script(Fail(400, json.dumps(context_error(prompt, num_ctx), separators=(",", ":"))))


def context_exceeded_mid_stream(text: str = "So far", prompt: int = 9412, num_ctx: int = 8192) -> Script:
    """The same as an error line, where it is an object."""
    return Script(*words(text), Fail(400, context_error(prompt, num_ctx)["error"]))


def no_done(text: str = "the the the the") -> Script:
    """The stream ends cleanly without a final object (the server's guard against repetition)."""
    return Script(*words(text), Stop())


def cut_connection(text: str = "I was just about to", reset: bool = False) -> Script:
    """The connection is lost after some text; with an empty text before any byte.

    A killed server closes, so all text sent before arrives. A reset may overtake the text.
    """
    return Script(*words(text), Cut(reset))


def done_call(name: str = "read_file", arguments: JSON | None = None, text: str = "") -> Script:
    """The tool call rides on the final object, as on llama.cpp's native path."""
    return Script(*words(text), Done(calls=(call(name, arguments, id=""),)))


def empty_answer(eval_count: int = 17) -> Script:
    """No text and no call although tokens were generated: the server's parser swallowed a broken call."""
    return Script(Done(eval_count=eval_count))


def thinking_only(text: str = "Let me think about this.") -> Script:
    """All tokens went into thinking."""
    return Script(*(Think(piece.text) for piece in words(text)), Done("length"))


def too_long(text: str = "and then and then") -> Script:
    """Cut at ``num_predict``: ``done_reason`` is ``length``."""
    return Script(*words(text), Done("length"))


def load_reply() -> Script:
    """``done_reason`` ``load`` with empty content, which some servers answer to a request with messages."""
    return Script(Done("load", eval_count=0, prompt_eval_count=0))


def blank_lines(text: str = "one two") -> Script:
    """Blank lines between the objects."""
    steps = [step for piece in words(text) for step in (piece, Raw((b"\n", b"\r\n\n")))]
    return Script(*steps)


def next_line_character(text: str = "before\u0085after") -> Script:
    """A raw U+0085 inside the content; the server does not escape it, and line splitters break on it."""
    return Script(Say(text))


def split_emoji(text: str = "Zażółć 🦊 готово") -> Script:
    """Every byte of the line in an HTTP chunk of its own."""
    return Script(Say(text, pieces=10_000))


def joined_lines(text: str = "two lines") -> Script:
    """All content lines in one HTTP chunk."""
    return Script(Joined(tuple(words(text))))


def broken_json(text: str = "all well") -> Script:
    """A line that is not JSON in the middle of the stream."""
    return Script(*words(text), Raw((b'{"model":"x","message":{"role":\n',)))


def html_502() -> Script:
    """A proxy's page instead of the server's answer."""
    page = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body></html>\r\n"
    return Script(Reply(502, page, "text/html"))


def sign_in() -> Script:
    """401 of a cloud model without an account."""
    url = "https://ollama.com/connect?name=host&key=abc"
    return Script(Fail(401, "unauthorized", {"signin_url": url}))


def forbidden() -> Script:
    """403 with an empty body: the host guard, or a proxy."""
    return Script(Reply(403))


def cloud_disabled() -> Script:
    """403 of a cloud model on a server with the cloud switched off."""
    return Script(Fail(403, "ollama cloud is disabled: remote model is unavailable"))


def tools_unsupported(name: str = "x") -> Script:
    """400 although the model advertises tools."""
    return Script(Fail(400, f"registry.ollama.ai/library/{name}:latest does not support tools"))


def think_unsupported(name: str = "x") -> Script:
    """400 although the model advertises thinking."""
    return Script(Fail(400, f'"{name}" does not support thinking'))


def many_calls(*calls: JSON, one_chunk: bool = True, text: str = "") -> Script:
    """Several tool calls, in one chunk or in a chunk each."""
    found = calls or (call("read_file", {"path": "a.py"}), call("read_file", {"path": "b.py"}))
    chunks = [Calls(tuple(found))] if one_chunk else [Calls((one,)) for one in found]
    return Script(*words(text), *chunks)


FAULTS: dict[str, Callable[..., Script]] = {
    function.__name__: function
    for function in (
        missing_model,
        server_busy,
        load_failure,
        runner_died,
        tool_parser_failed,
        error_mid_stream,
        context_exceeded,
        context_exceeded_mid_stream,
        no_done,
        cut_connection,
        done_call,
        empty_answer,
        thinking_only,
        too_long,
        load_reply,
        blank_lines,
        next_line_character,
        split_emoji,
        joined_lines,
        broken_json,
        html_502,
        sign_in,
        forbidden,
        cloud_disabled,
        tools_unsupported,
        think_unsupported,
        many_calls,
    )
}
