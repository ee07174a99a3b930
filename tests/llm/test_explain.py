"""Every way a server can fail becomes the right class and a sentence that names where and what to do."""

from __future__ import annotations

import json
import socket
import ssl
from typing import Any

import httpx
import pytest

from tui_agent.llm import explain
from tui_agent.llm.explain import Call

CALL = Call(url="http://127.0.0.1:11434", path="/api/chat", model="qwen3:8b", num_ctx=8192)
PULL = Call(url="http://127.0.0.1:11434", path="/api/pull", model="qwen3:8b")
OVER = (
    '{"error":{"code":400,"message":"request (9412 tokens) exceeds the available context size (8192 tokens), try '
    'increasing it","type":"exceed_context_size_error","n_prompt_tokens":9412,"n_ctx":8192}}'
)
ROLES = '{"error":{"code":500,"message":"conversation roles must alternate","type":"server_error"}}'
PAGE = "<html><head><title>502 Bad Gateway</title></head><body>squid</body></html>"

ROWS: list[tuple[int, Any, str, str]] = [
    (400, "missing request body", "bad_request", "did not accept the request (400): missing request body"),
    (400, "unexpected EOF", "bad_request", "did not accept the request (400): unexpected EOF"),
    (400, "Value looks like object, but can't find closing '}' symbol", "bad_request", "Start a new session"),
    (
        400,
        "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type "
        "api.ToolCallFunctionArguments",
        "bad_request",
        "Start a new session",
    ),
    (400, "model is required", "bad_request", "is no model name"),
    (400, "invalid model name", "bad_request", "'qwen3:8b' is no model name"),
    (404, "model 'qwen3:8b' not found", "model_missing", "`ollama pull qwen3:8b`"),
    (404, 'model "qwen3:8b" not found, try pulling it first', "model_missing", "not installed at http://127.0.0.1"),
    (404, "model 'qwen3:8b:latest' not found", "model_missing", "The model qwen3:8b is not installed"),
    (400, "registry.ollama.ai/library/x:latest does not support tools", "tools_unsupported", "--no-tools"),
    (400, '"qwen3:8b" does not support thinking', "think_unsupported", "--no-think"),
    (400, '"qwen3:8b" does not support chat', "bad_request", "cannot chat. Please choose another model with ctrl+o"),
    (
        400,
        'invalid think value: "x" (must be "high", "medium", "low", "max", true, or false)',
        "bad_request",
        "low, me",
    ),
    (400, 'time: missing unit in duration "-1"', "bad_request", "30m"),
    (400, "embedding contains NaN or Inf values", "bad_request", "no numbers"),
    (400, OVER, "context_exceeded", "(9,412 tokens, the window has 8,192)"),
    (
        400,
        "the prompt is longer than the context length currently available to the model; shorten the prompt",
        "context_exceeded",
        "`num_ctx` in config.yaml",
    ),
    (400, "the input length exceeds the context length", "context_exceeded", "too long"),
    (
        500,
        "input length (9000 tokens) exceeds the model's maximum context length (8192 tokens)",
        "context_exceeded",
        "8",
    ),
    (500, ROLES, "bad_request", "does not accept this conversation: conversation roles must alternate"),
    (500, "no user query found in messages", "bad_request", "does not accept this conversation"),
    (500, 'option "num_ctx" must be of type integer', "bad_request", "Correct it in config.yaml"),
    (500, 'invalid format: "x"', "bad_request", "reply format"),
    (500, "XML syntax error on line 127: element <parameter> closed by </function>", "tool_parser_failed", "could not"),
    (500, 'llama-server returned invalid tool call arguments for "f": x', "tool_parser_failed", "tool call"),
    (500, "error parsing tool call: raw='x', err=invalid", "tool_parser_failed", "tool call"),
    (500, "llama-server process has terminated: exit status 1: boom", "load_failed", "`num_ctx: 4096`"),
    (500, "timed out waiting for llama-server to start - ", "load_failed", "OLLAMA_LOAD_TIMEOUT"),
    (500, "unable to load full model on GPU", "load_failed", "not enough memory"),
    (500, "llama-server process has terminated: cudaMalloc failed: out of memory", "load_failed", "not enough memory"),
    (500, "model requires more system memory (8.1 GiB) than is available (3.0 GiB)", "load_failed", "8.1 GiB"),
    (500, "this model may be incompatible with your version of Ollama", "load_failed", "Update Ollama"),
    (
        500,
        "model runner has unexpectedly stopped, this may be due to resource limitations",
        "generation_failed",
        "4096",
    ),
    (500, 'do completion: Post "http://127.0.0.1:39999/completion": EOF', "generation_failed", "stopped unexpectedly"),
    (500, "failed to encode response: json: unsupported value: NaN", "bad_request", "no numbers"),
    (500, "something new", "generation_failed", "while answering (500): something new"),
    (503, "server busy, please try again.  maximum pending requests exceeded", "server_busy", "its queue is full"),
    (503, "model is overloaded", "server_busy", "cloud service"),
    (429, "too many requests", "server_busy", "limits how much"),
    (401, "unauthorized", "sign_in_required", "OLLAMA_API_KEY"),
    (403, "ollama cloud is disabled: remote model is unavailable", "forbidden", "cloud models switched off"),
    (403, "no", "forbidden", "(403): no"),
    (502, "dial tcp: lookup ollama.com: no such host", "server_unreachable", "internet connection"),
    (499, "request canceled", "bad_request", "(499): request canceled"),
]


@pytest.mark.parametrize(("status", "text", "kind", "words"), ROWS, ids=lambda value: str(value)[:40])
def test_each_error_reply_becomes_its_class_and_names_the_fix(status: int, text: Any, kind: str, words: str) -> None:
    error = explain.explain_status(status, json.dumps({"error": text}).encode(), CALL)
    assert error.kind == kind
    assert words in str(error)
    assert error.status == status
    assert error.detail
    assert str(error).endswith(".")


@pytest.mark.parametrize(
    ("status", "text", "kind", "words"), [r for r in ROWS if r[0] in (400, 500)], ids=lambda v: str(v)[:40]
)
def test_the_same_words_as_a_line_in_the_stream_become_the_same_class(
    status: int, text: Any, kind: str, words: str
) -> None:
    error = explain.explain_line(text, CALL)
    assert error.kind == kind or (kind == "bad_request" and "did not accept" in words)
    assert error.status is None
    as_object = text if not str(text).startswith("{") else json.loads(text)["error"]
    assert explain.explain_line(as_object, CALL).kind == error.kind


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (404, b"404 page not found", "server_unreachable", "it does not know /api/chat"),
        (405, b"405 method not allowed", "server_unreachable", "not an Ollama server"),
        (404, PAGE.encode(), "server_unreachable", "not an Ollama server"),
        (403, b"", "forbidden", "only answers to local host names"),
        (403, PAGE.encode(), "forbidden", "A proxy answered"),
        (502, PAGE.encode(), "server_unreachable", "NO_PROXY"),
        (503, PAGE.encode(), "server_unreachable", "A proxy answered"),
        (504, b"", "server_unreachable", "could not reach"),
        (407, b"", "server_unreachable", "proxy"),
        (413, PAGE.encode(), "bad_request", "too large"),
        (503, b"", "server_busy", "queue is full"),
        (500, b"", "generation_failed", "(500)."),
        (500, b"[1, 2]", "generation_failed", "(500)"),
        (400, b"\xff\xfe", "bad_request", "(400)"),
        (500, b"3", "generation_failed", "(500)"),
        (302, b"", "server_unreachable", "sends us elsewhere"),
    ],
)
def test_bodies_that_are_not_ollamas_are_survived_and_explained(
    status: int, body: bytes, kind: str, words: str
) -> None:
    error = explain.explain_status(status, body, CALL)
    assert (error.kind, error.status) == (kind, status)
    assert words in str(error)
    assert "<html" not in str(error)


def test_signing_in_is_explained_with_ollamas_own_link_and_with_no_other() -> None:
    cloud = Call(url="http://127.0.0.1:11434", path="/api/chat", model="gpt-oss:120b-cloud")
    link = "https://ollama.com/connect?name=box&key=abc"
    text = str(explain.explain_status(401, json.dumps({"error": "unauthorized", "signin_url": link}).encode(), cloud))
    assert f"`ollama signin` or open {link}" in text
    for bad in ("https://ollama.com.evil.example/x", "https://ollama.com/x y", "javascript:alert(1)"):
        body = json.dumps({"error": "unauthorized", "signin_url": bad}).encode()
        text = str(explain.explain_status(401, body, cloud))
        assert bad not in text
        assert "ollama signin" in text


def test_a_refused_key_is_told_from_a_missing_one() -> None:
    remote = Call(url="https://h", model="m", loopback=False, key_sent=True)
    assert "did not accept the API key" in str(explain.explain_status(401, b"", remote))
    remote = Call(url="https://h", model="m", loopback=False)
    assert "asks for an API key" in str(explain.explain_status(401, b"", remote))


def test_foreign_words_are_quoted_short_on_one_line_and_without_control_characters() -> None:
    error = explain.explain_status(500, json.dumps({"error": "a\x1b[31m\nb " + "x" * 900}).encode(), CALL)
    assert "\x1b" not in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 500
    assert "…" in str(error)


def test_json_wrapped_in_json_is_taken_apart_but_not_for_ever() -> None:
    wrapped: Any = "deep"
    for _ in range(9):
        wrapped = json.dumps({"error": wrapped})
    assert "deep" in explain.words_of(wrapped).text
    assert explain.words_of(OVER).prompt_tokens == 9412
    assert explain.words_of({"message": "m"}).text == "m"
    assert explain.words_of(None).text == ""
    assert explain.words_of('{"not json').text == '{"not json'


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("pull model manifest: file does not exist", "model_missing", "https://ollama.com/library"),
        ('pull model manifest: Get "https://registry.ollama.ai/v2/": dial tcp: lookup: no such host',
         "server_unreachable", "internet connection"),
        ("write: no space left on device", "bad_request", "Free some space"),
        ("invalid model name", "bad_request", "no model name"),
        ("max retries exceeded: EOF", "generation_failed", "while downloading qwen3:8b: max retries exceeded: EOF"),
    ],
)  # fmt: skip
def test_errors_of_a_download_have_words_of_their_own(text: str, kind: str, words: str) -> None:
    error = explain.explain_line(text, PULL)
    assert error.kind == kind
    assert words in str(error)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (httpx.ConnectError("All connection attempts failed"), "server_unreachable", "Nothing answers at http://127"),
        (ConnectionRefusedError(111, "refused"), "server_unreachable", "`ollama serve`"),
        (caused(httpx.ConnectError("x"), socket.gaierror(-2, "Name or service not known")),
         "server_unreachable", "host name in http://127.0.0.1:11434 is not known"),
        (httpx.ConnectError("[Errno 11001] getaddrinfo failed"), "server_unreachable", "is not known"),
        (caused(httpx.ConnectError("x"), ssl.SSLError(1, "WRONG_VERSION_NUMBER")), "server_unreachable", "certificate"),
        (httpx.ConnectTimeout(""), "server_unreachable", "within 5 seconds"),
        (httpx.ProxyError("502"), "server_unreachable", "NO_PROXY"),
        (httpx.InvalidURL("bad"), "server_unreachable", "No request can be sent"),
        (httpx.UnsupportedProtocol("x"), "server_unreachable", "No request can be sent"),
        (httpx.LocalProtocolError("Illegal header value"), "server_unreachable", "API key"),
        (httpx.RemoteProtocolError("illegal status line: b'SSH'"), "server_unreachable", "does not speak HTTP"),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), "stream_broken", "before an"),
        (httpx.ReadError(""), "stream_broken", "before an answer came"),
        (httpx.ReadTimeout(""), "stream_broken", "cut"),
        (httpx.WriteError(""), "stream_broken", "cut"),
        (httpx.DecodingError("bad gzip"), "stream_broken", "cut"),
    ],
)  # fmt: skip
def test_each_transport_error_becomes_a_sentence_with_the_url(error: Exception, kind: str, words: str) -> None:
    explained = explain.explain_transport(error, CALL)
    assert explained.kind == kind
    assert words in str(explained)
    assert "http://127.0.0.1:11434" in str(explained)
    assert explained.detail.startswith(type(error).__name__)


def test_a_cut_in_the_middle_says_what_it_was_in_the_middle_of() -> None:
    cut = httpx.RemoteProtocolError("peer closed connection without sending complete message body")
    assert "in the middle of the answer" in str(explain.explain_transport(cut, CALL, begun=True))
    assert "in the middle of the download" in str(explain.explain_transport(cut, PULL, begun=True))
    assert explain.explain_transport(ConnectionResetError(), CALL, begun=True).kind == "stream_broken"


def test_in_a_container_the_host_machine_is_pointed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = httpx.ConnectError("All connection attempts failed")
    monkeypatch.setattr(explain, "in_container", lambda: True)
    assert "host.docker.internal" in str(explain.explain_transport(refused, CALL))
    remote = Call(url="http://10.0.0.2:11434", loopback=False)
    assert "host.docker.internal" not in str(explain.explain_transport(refused, remote))
    assert "OLLAMA_HOST=0.0.0.0" in str(explain.explain_transport(refused, remote))
    monkeypatch.setattr(explain, "in_container", lambda: False)
    assert "container" not in str(explain.explain_transport(refused, CALL))


def test_a_runner_crash_is_told_from_other_failures() -> None:
    def crash(text: str) -> bool:
        return explain.is_runner_crash(explain.explain_line(text, CALL))

    assert crash("model runner has unexpectedly stopped")
    assert crash("an error was encountered while running the model: unexpected EOF")
    assert not crash("llama-server process has terminated: exit status 1")
    assert not crash("something new")


def test_half_the_window_is_offered_only_while_it_is_a_window() -> None:
    small = Call(url="http://h", path="/api/chat", model="m", num_ctx=600)
    assert "num_ctx" not in str(explain.explain_line("CUDA error: out of memory", small))
    assert "`num_ctx: 4096`" in str(explain.explain_line("CUDA error: out of memory", CALL))


def test_a_body_nested_without_end_is_quoted_instead_of_read() -> None:
    assert explain.explain_status(500, b"[" * 100_000, CALL).kind == "generation_failed"
    assert explain.words_of("{" * 100_000).text.startswith("{")
