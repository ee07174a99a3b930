"""Errors of the model server as sentences a person can act on.

``str(error)`` is one or two plain sentences: what happened, where, what to do now. ``kind`` is a stable word for
programs, ``exit_code`` what ``tui-agent ask`` exits with.
"""

from __future__ import annotations


class ModelError(Exception):
    """Base of everything that can go wrong between us and the model server.

    Args:
        message: what happened and where (URL, model), a full sentence.
        fix: what to do now, a full sentence, or empty.
        detail: the server's own words, for the log and the inspector.
    """

    kind = "model_error"
    exit_code = 5
    retryable = False

    def __init__(self, message: str, *, fix: str = "", detail: str = "", status: int | None = None) -> None:
        super().__init__(f"{message} {fix}".strip())
        self.message = message
        self.fix = fix
        self.detail = detail
        self.status = status


class ServerUnreachable(ModelError):
    """Nothing answered at the URL, or what answered was not an Ollama server."""

    kind = "server_unreachable"
    exit_code = 3


class ConsentNeeded(ServerUnreachable):
    """What is written would leave this machine, and the user has not allowed that for ``host`` yet."""

    kind = "consent_needed"
    exit_code = 2

    def __init__(
        self, message: str, *, fix: str = "", detail: str = "", status: int | None = None, host: str = ""
    ) -> None:
        super().__init__(message, fix=fix, detail=detail, status=status)
        self.host = host


class ModelMissing(ModelError):
    """The server is there, the model is not."""

    kind = "model_missing"
    exit_code = 4


class SignInRequired(ModelError):
    """401: a cloud model without an account."""

    kind = "sign_in_required"


class Forbidden(ModelError):
    """403: host guard, proxy or disabled cloud."""

    kind = "forbidden"


class ToolsUnsupported(ModelError):
    """400: the model has no tool template."""

    kind = "tools_unsupported"


class ThinkUnsupported(ModelError):
    """400: ``think`` was sent to a model that cannot think."""

    kind = "think_unsupported"


class ContextExceeded(ModelError):
    """The prompt is longer than the window the server has."""

    kind = "context_exceeded"


class BadRequest(ModelError):
    """Any other 400."""

    kind = "bad_request"


class ServerBusy(ModelError):
    """503: the queue is full."""

    kind = "server_busy"
    retryable = True


class LoadFailed(ModelError):
    """500 while loading: memory, runner or file trouble."""

    kind = "load_failed"


class ToolParserFailed(ModelError):
    """500 or an error line: the server could not parse the model's own tool call."""

    kind = "tool_parser_failed"
    retryable = True


class GenerationFailed(ModelError):
    """The runner died, before or during the answer."""

    kind = "generation_failed"
    retryable = True


class StreamBroken(ModelError):
    """The connection was cut, or a line was not JSON."""

    kind = "stream_broken"


class StreamIncomplete(ModelError):
    """The stream ended cleanly but without a ``done`` object."""

    kind = "stream_incomplete"
