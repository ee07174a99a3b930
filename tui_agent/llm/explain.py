"""Server and transport trouble as one of the classes of :mod:`tui_agent.llm.errors`, in sentences that name the fix.

The sentences for a server's own error texts are in :mod:`tui_agent.llm.explain_words`.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tui_agent.llm.errors import (
    BadRequest,
    ConsentNeeded,
    Forbidden,
    GenerationFailed,
    ModelError,
    ServerBusy,
    ServerUnreachable,
    SignInRequired,
    StreamBroken,
    StreamIncomplete,
)
from tui_agent.llm.explain_words import (
    CHOOSE,
    CRASH,
    Call,
    Words,
    by_words,
    doing,
    inside,
    missing,
    named,
    of_what,
    quote,
    words_of,
)

__all__ = [
    "Call",
    "bad_environment",
    "explain_line",
    "explain_status",
    "explain_transport",
    "in_container",
    "incomplete",
    "is_runner_crash",
    "not_json",
    "not_ollama",
    "quote",
    "remote_refused",
    "words_of",
]


def explain_status(status: int, body: bytes, call: Call) -> ModelError:
    """The error for an HTTP reply with ``status`` 300 or above and this body."""
    text = body.decode("utf-8", "replace")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        words = Words(text=text, json=False)
    else:
        words = words_of(parsed)
    error = _by_status(status, words, parsed if words.json else None, call) or by_words(words, call)
    if error is None or (status < 500 and isinstance(error, GenerationFailed)):
        error = _unknown(status, words, call)
    error.status = status
    error.detail = error.detail or quote(words.text, 2000)
    return error


def explain_line(value: Any, call: Call) -> ModelError:
    """The error for an ``{"error": value}`` line inside a stream that began with status 200."""
    words = words_of(value)
    error = by_words(words, call)
    if error is None:
        said = f": {quote(words.text)}" if words.text.strip() else ""
        error = GenerationFailed(
            f"The model server at {call.url} stopped {doing(call)}{said}.",
            fix="Send it again; the server's log says more.",
        )
    error.detail = error.detail or quote(words.text, 2000)
    return error


def explain_transport(error: Exception, call: Call, *, begun: bool = False) -> ModelError:
    """The error for an exception of the transport. ``begun`` is whether a part of the reply had arrived.

    Looks at class names rather than classes, so that httpx need not be imported to explain an ``OSError``.
    """
    names = {cls.__name__ for cls in type(error).__mro__}
    detail = f"{type(error).__name__}: {error}".rstrip(": ")
    causes = list(_chain(error))
    if "ConnectTimeout" in names:
        return ServerUnreachable(
            f"{call.url} did not take the connection within {call.connect_timeout:g} seconds.",
            fix="Check that the machine is on, the address is right and no firewall is in the way.",
            detail=detail,
        )
    if "ReadTimeout" in names and call.read_timeout is not None:
        return ServerUnreachable(
            f"{call.url} took the connection but did not answer {call.path} within {call.read_timeout:g} seconds.",
            fix="Check that it is an Ollama server and that it is not stuck; restarting it helps.",
            detail=detail,
        )
    if "ProxyError" in names:
        return _proxy(call, detail)
    if names & {"InvalidURL", "UnsupportedProtocol", "LocalProtocolError"}:
        return ServerUnreachable(
            f"No request can be sent to {call.url}: {quote(str(error)) or detail}.",
            fix="Check the server address and the API key.",
            detail=detail,
        )
    if "ConnectError" in names or (isinstance(error, OSError) and not begun):
        return _no_connection(causes, call, detail)
    if "RemoteProtocolError" in names and re.search(r"illegal|invalid|malformed", str(error), re.IGNORECASE):
        return not_ollama(call, "what answered does not speak HTTP", detail)
    if begun:
        return StreamBroken(
            f"The connection to {call.url} was cut in the middle {of_what(call)}.",
            fix="What arrived is kept. Send it again, and check whether the server is still running.",
            detail=detail,
        )
    return StreamBroken(
        f"The connection to {call.url} was cut before an answer came.",
        fix="The server may have stopped or be short of memory: check that it is still running, then send it again.",
        detail=detail,
    )


def not_json(line: bytes, call: Call, *, begun: bool) -> ModelError:
    """The error for a stream line that is no JSON object."""
    shown = quote(line.decode("utf-8", "replace"), 200)
    if not begun and line.lstrip().startswith(b"<"):
        return not_ollama(call, "a web page came back", shown)
    return StreamBroken(
        f"The stream from {call.url} broke: a line was not JSON.",
        fix="Send it again; if it happens every time, something between here and the server changes the data.",
        detail=shown,
    )


def incomplete(call: Call, why: str = "the server ended the stream without finishing it") -> ModelError:
    """The error for a stream that ended cleanly, but without its last object."""
    return StreamIncomplete(
        f"The reply from {call.url} is incomplete: {why}.",
        fix="What arrived is kept. Send it again or ask to continue.",
    )


def not_ollama(call: Call, why: str, detail: str = "", status: int | None = None) -> ModelError:
    """The error for an address where something answers that is not an Ollama server."""
    return ServerUnreachable(
        f"What answers at {call.url} is not an Ollama server: {why}.",
        fix="Check the address, its port and its path; set it with --host or `host:` in config.yaml.",
        detail=detail,
        status=status,
    )


def remote_refused(url: str) -> ModelError:
    """The error for a server on another machine that the user has not allowed."""
    return ConsentNeeded(
        f"{url} is not this machine, and everything you write and your memory would be sent there.",
        fix=f"If you want that, run `tui-agent allow {url}` once, or set `allow_remote: true` in your config.yaml.",
        detail="remote host without allow_remote",
        host=url,
    )


def bad_environment(url: str, error: Exception) -> ModelError:
    """The error for a client that cannot even be built, which proxy variables of an unknown kind cause."""
    return ServerUnreachable(
        f"No connection to {url} can be prepared: {quote(str(error), 160)}.",
        fix="Unset ALL_PROXY, HTTP_PROXY and HTTPS_PROXY, or add the host to NO_PROXY.",
        detail=f"{type(error).__name__}: {error}",
    )


def is_runner_crash(error: ModelError) -> bool:
    """Whether the process that runs the model died, which one more try (it is started anew) often heals."""
    return isinstance(error, GenerationFailed) and bool(CRASH.search(error.detail))


def in_container() -> bool:
    """Whether this process seems to run in a container, where loopback is the container itself."""
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))


def _by_status(status: int, words: Words, parsed: Any, call: Call) -> ModelError | None:
    page = not words.json and words.text.lstrip()[:1] == "<"
    if 300 <= status < 400:
        return not_ollama(call, f"it sends us elsewhere (status {status})")
    if status == 401:
        return _sign_in(parsed, call)
    if status == 403:
        return _forbidden(words, call, page=page)
    if status == 407:
        return _proxy(call, quote(words.text))
    if page and status in (502, 503, 504):
        return _proxy(call, quote(words.text, 200), status)
    if status in (404, 405) and not words.json:
        return not_ollama(call, f"it does not know {call.path} (status {status})", quote(words.text, 200))
    if status == 404 and call.model:
        return missing(call)
    if status == 413:
        return BadRequest(
            f"The request is too large for {call.url}.",
            fix="A proxy in between limits the size; shorten the message or start a new session.",
        )
    if status == 429:
        return ServerBusy(
            f"The model service behind {call.url} limits how much you may ask at once.", fix="Wait a little and retry."
        )
    if status in (502, 504):
        return ServerUnreachable(
            f"The server at {call.url} could not reach the service that runs {inside(call)}.",
            fix="Check the internet connection, or choose a local model with ctrl+o.",
        )
    if status == 503:
        cloud = "overload" in words.text.lower()
        return ServerBusy(
            f"The cloud service behind {call.url} is overloaded."
            if cloud
            else f"The server at {call.url} is busy: its queue is full.",
            fix="Try again in a minute, or choose a local model with ctrl+o." if cloud else "Try again in a moment.",
        )
    return None


def _sign_in(parsed: Any, call: Call) -> ModelError:
    link = parsed.get("signin_url") if isinstance(parsed, Mapping) else None
    # Only Ollama's own address is passed on: a link in an error message is one people click.
    safe = isinstance(link, str) and re.fullmatch(r"https://ollama\.com/[\w\-./?=&%+~]*", link) is not None
    cloud = link is not None or call.model.endswith((":cloud", "-cloud"))
    if cloud:
        where = f" or open {link}" if safe else ""
        return SignInRequired(
            f"{named(call)} runs in Ollama's cloud, and {call.url} is not signed in.",
            fix=f"Run `ollama signin`{where}, or {CHOOSE}.",
        )
    said = "did not accept the API key" if call.key_sent else "asks for an API key"
    return SignInRequired(f"The server at {call.url} {said}.", fix="Set OLLAMA_API_KEY to a valid key and start again.")


def _forbidden(words: Words, call: Call, *, page: bool) -> ModelError:
    if "cloud is disabled" in words.text:
        return Forbidden(
            f"{named(call)} is a cloud model, and the server at {call.url} has cloud models switched off.",
            fix="Choose a local model with ctrl+o.",
        )
    if page:
        return _proxy(call, quote(words.text, 200), 403, Forbidden)
    if not words.text.strip():
        return Forbidden(
            f"The server at {call.url} refused the request without a word (403): it only answers to local host names.",
            fix="Use its IP address as host, or start the server with OLLAMA_HOST=0.0.0.0.",
        )
    return Forbidden(f"The server at {call.url} refused the request (403): {quote(words.text)}.")


def _proxy(call: Call, detail: str, status: int | None = None, cls: type[ModelError] = ServerUnreachable) -> ModelError:
    code = f" (status {status})" if status else ""
    return cls(
        f"A proxy answered instead of the server at {call.url}{code}.",
        fix="Add the host to NO_PROXY, or unset HTTP_PROXY, HTTPS_PROXY and ALL_PROXY; then check the address.",
        detail=detail,
        status=status,
    )


def _unknown(status: int, words: Words, call: Call) -> ModelError:
    said = f": {quote(words.text)}" if words.text.strip() else ""
    if status < 500:
        return BadRequest(f"The server at {call.url} did not accept the request ({status}){said}.")
    return GenerationFailed(
        f"The server at {call.url} failed {doing(call)} ({status}){said}.",
        fix="Send it again; the server's log says more.",
    )


def _no_connection(causes: list[BaseException], call: Call, detail: str) -> ModelError:
    if any(isinstance(cause, socket.gaierror) for cause in causes) or re.search(
        r"getaddrinfo|name or service|name resolution|nodename nor servname|no address associated", detail, re.I
    ):
        return ServerUnreachable(
            f"The host name in {call.url} is not known.",
            fix="Check its spelling and the network; set it with --host or `host:` in config.yaml.",
            detail=detail,
        )
    if any(isinstance(cause, ssl.SSLError) for cause in causes) or re.search(r"\bssl\b|certificate", detail, re.I):
        return ServerUnreachable(
            f"No secure connection to {call.url} could be made: {quote(detail, 160)}.",
            fix="Check the certificate; SSL_CERT_FILE names the file of one of your own. Or write http:// when the "
            "server does not use https.",
            detail=detail,
        )
    tried = f" (also tried {', '.join(call.tried)})" if call.tried else ""
    if not call.loopback:
        fix = "Check that the server runs there and listens on the network (OLLAMA_HOST=0.0.0.0), or use --embedded."
    else:
        fix = "Start it with `ollama serve`, or run with --embedded."
        if in_container():
            fix += (
                " In a container this address is the container itself: for a server on the host use"
                " --host http://host.docker.internal:11434, which is asked about once (or `tui-agent allow http://host.docker.internal:11434`)."
            )
    return ServerUnreachable(f"Nothing answers at {call.url}{tried}.", fix=fix, detail=detail)


def _chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        # Connection attempts over several addresses arrive as one error with all of them inside.
        for inner in getattr(current, "exceptions", ()):
            found.extend(_chain(inner))
        current = current.__cause__ or current.__context__
    return found
