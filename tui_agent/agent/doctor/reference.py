"""The tables of docs/troubleshooting.md: what the doctor says, and what the program says when a request fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby

from tui_agent.agent.consent import Consent
from tui_agent.agent.doctor.checks import CHECKS
from tui_agent.agent.doctor.troubles import TROUBLES
from tui_agent.llm import explain
from tui_agent.llm.errors import ConsentNeeded, ModelError
from tui_agent.llm.explain import Call
from tui_agent.llm.types import ModelInfo
from tui_agent.project import UserPaths
from tui_agent.settings import Settings

URL = "http://127.0.0.1:11434"
_CHAT = Call(URL, "/api/chat", "MODEL", num_ctx=8192)
_PULL = Call(URL, "/api/pull", "MODEL")
_CONTEXT = json.dumps({"error": {"type": "exceed_context_size_error", "message": "", "n_ctx": 8192}})
# Status and body of an answer, or the words of an error line, as servers give them.
_ANSWERS: tuple[tuple[Call, int, str], ...] = (
    (_CHAT, 404, "model 'MODEL' not found"),
    (_CHAT, 400, "MODEL does not support tools"),
    (_CHAT, 400, "MODEL does not support thinking"),
    (_CHAT, 400, "MODEL does not support chat"),
    (_CHAT, 400, _CONTEXT),
    (_CHAT, 401, ""),
    (Call(URL, "/api/chat", "MODEL-cloud"), 401, "unauthorized"),
    (_CHAT, 403, ""),
    (_CHAT, 403, "ollama cloud is disabled: remote model is unavailable"),
    (_CHAT, 502, "<html>"),
    (_CHAT, 503, "server busy, please try again. maximum pending requests exceeded"),
    (_CHAT, 500, "model requires more system memory (9.0 GiB) than is available (4.0 GiB)"),
    (_CHAT, 500, "timed out waiting for llama runner to start"),
    (_CHAT, 500, "this model is incompatible with your version of Ollama"),
    (_CHAT, 500, "llama runner process has terminated: exit status 2"),
    (_CHAT, 500, "an error was encountered while running the model: unexpected EOF"),
    (_CHAT, 500, "XML syntax error on line 127: element <parameter> closed by </function>"),
    (_CHAT, 500, "conversation roles must alternate"),
    (_PULL, 200, "pull model manifest: file does not exist"),
    (_PULL, 200, "no space left on device"),
    (_PULL, 200, "dial tcp: lookup registry.ollama.ai: no such host"),
)


def doctor_table() -> str:
    """Every trouble of the doctor, by group, as Markdown."""
    parts = []
    for group, checks in groupby(CHECKS, key=lambda check: check.group):
        lines = [f"### {group}", "", "| | what the doctor says | what to do |", "|---|---|---|"]
        for check in checks:
            for id, trouble in TROUBLES.items():
                if id.partition(".")[0] == check.name and trouble.level != "ok":
                    says = trouble.when or _names(trouble.says)
                    fix = "As it says." if trouble.fix == "{fix}" else _names(trouble.fix)
                    lines.append(f"| {trouble.level} | {_cell(says)} | {_cell(fix)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def error_table() -> str:
    """What the program says of a server's errors, as Markdown."""
    lines = ["| what you see | what to do |", "|---|---|"]
    seen: set[str] = set()
    for error in _errors():
        if error.message not in seen:
            seen.add(error.message)
            lines.append(f"| {_cell(error.message)} | {_cell(error.fix or 'Send it again.')} |")
    return "\n".join(lines) + "\n"


def _errors() -> Iterator[ModelError]:
    refused, slow = type("ConnectError", (Exception,), {}), type("ReadTimeout", (Exception,), {})
    # What depends on the machine the page is made on is left out: a hint for containers.
    closed = explain.explain_transport(refused("refused"), Call(URL, loopback=False))
    yield ModelError(closed.message, fix="Start it with `ollama serve` or `tui-agent setup`, or run with --embedded.")
    yield explain.explain_transport(slow(""), Call(URL, "/api/tags", read_timeout=30.0))
    yield explain.explain_transport(refused("getaddrinfo failed"), Call("http://BOX:11434", loopback=False))
    yield explain.not_ollama(Call(URL), "a web page came back")
    yield explain.remote_refused("http://BOX:11434")
    try:
        Consent(UserPaths.find({"TUI_AGENT_HOME": "/nowhere"}), Settings()).check_model(
            ModelInfo("MODEL-cloud", remote=True)
        )
    except ConsentNeeded as error:
        yield error
    for call, status, text in _ANSWERS:
        if status == 200:
            yield explain.explain_line(text, call)
        else:
            body = text if text.startswith("<") else json.dumps({"error": text})
            yield explain.explain_status(status, body.encode() if text else b"", call)
    yield explain.incomplete(_CHAT)


def _names(text: str) -> str:
    """Fields as capitals: ``{url}`` is ``URL``. Tails that are not always there are left out."""
    text = re.sub(r"\{(other|model_limit)\}", "", text)
    return re.sub(r"\{(\w+)\}", lambda field: field[1].upper().replace("_", " "), text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
