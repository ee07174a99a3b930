"""Scripts from a JSON file, for tests that run the server as a process of its own.

The file is one object::

    {
      "models": [{"name": "qwen2.5-coder:1.5b", "capabilities": ["completion", "tools"], "context_length": 32768}],
      "turns": [
        {"match": "prefer pnpm",
         "steps": [{"call": {"name": "edit_file", "arguments": {"path": "knowledge/user.md"}}}]},
        {"match": "prefer pnpm", "after_tool": true, "steps": ["Saved: ", "you prefer pnpm."]},
        {"steps": [{"fault": "server_busy"}], "times": 3}
      ],
      "default": "OK.",
      "default_ctx": 4096,
      "tool_calling": {"gemma3:4b": "none"},
      "pulls": {"qwen3:4b": [{"plan": "cut_off", "at": 200000000}, {"plan": "whole"}]}
    }

``models`` (optional) are keyword arguments of :func:`~tui_agent.llm.wire.catalog.model`. Every chat request is
answered by the first turn, in the file's order, that still has ``times`` left (default 1, 0 = for ever), whose
``match`` is contained in the newest user message (no ``match``: any), and whose ``after_tool``, when given, says
whether the newest message is a tool result. Requests that no turn fits get ``default``. Warm-up requests and probes of
tool calling use nothing up; ``tool_calling`` says how a model answers the latter.

``pulls`` are the downloads of a model, one entry for each attempt (the last stays): a function of
:mod:`~tui_agent.llm.wire.pulls` with its arguments (``sizes`` is a list of bytes). ``max_loaded`` is how many models
fit into memory at once.

A turn has ``steps`` and, if wanted, ``load_delay``, ``prompt_delay`` (seconds) and ``load_error`` (as ``fail``). A turn
may be written as its list of steps alone; ``default`` is a turn, a list of steps or a string. Steps:

=====================================================  ==============================================================
``"text"``                                             a content chunk
``{"say": "text", "pieces": 1, "delay": 0}``           the same; ``pieces`` cuts the line into HTTP chunks
``{"answer": "text", "size": 1, "delay": 0}``          the text streamed ``size`` words a chunk
``{"think": "text", "delay": 0}``                      a thinking chunk
``{"call": {"name": …, "arguments": {}, "id": "auto"}}``  one tool call in a chunk of its own (``"id": ""`` for none)
``{"calls": [CALL, …], "content": ""}``                several in one chunk
``{"joined": [STEP, …]}``                              several lines in one HTTP chunk
``{"raw": ["\\n", …]}``                                 text sent as it is, one HTTP chunk each
``{"wait": 0.5}``                                      seconds of silence
``{"hold": true}``                                     silence until the client goes away
``{"fail": {"status": 500, "error": …, "extra": {}}}``  an error (a status before the first chunk, a line after it)
``{"reply": {"status": 502, "content": "", "content_type": "text/html"}}``  an answer that is not the API's
``{"cut": "reset"}`` or ``{"cut": "close"}``           the connection is lost
``{"stop": true}``                                     the stream ends without a final object
``{"done": {"reason": "stop", "calls": [], "content": "", "eval_count": 5}}``  the final object, when it is special
``{"fault": "server_busy", …}``                        the steps of that function in ``faults``, with its arguments
=====================================================  ==============================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .backend import JSON, ChatRequest
from .catalog import model
from .faults import FAULTS
from .pulls import PULLS
from .script import (
    AUTO_ID,
    Calls,
    Cut,
    Done,
    Fail,
    Gate,
    Joined,
    Raw,
    Reply,
    Say,
    Script,
    Step,
    Stop,
    Think,
    Wait,
    call,
    words,
)
from .scripted import ScriptedBackend, last_user_text


class ScriptFileError(ValueError):
    """The file is not a script; the message names the place."""


def load_backend(path: Path) -> ScriptedBackend:
    """The backend that a script file describes.

    Raises:
        ScriptFileError: when the file cannot be read or understood.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScriptFileError(f"{path} cannot be read as JSON: {error}") from error
    return backend_from(data)


def backend_from(data: Any) -> ScriptedBackend:
    """The same from the parsed object."""
    if not isinstance(data, dict):
        raise ScriptFileError("a script file is one JSON object")
    known = {"models", "turns", "default", "default_ctx", "parallel", "pulls", "tool_calling", "max_loaded"}
    if unknown := sorted(set(data) - known):
        raise ScriptFileError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
    models = [model(**one) for one in data["models"]] if "models" in data else None
    backend = ScriptedBackend(
        models,
        default_ctx=int(data.get("default_ctx", 4096)),
        parallel=int(data.get("parallel", 1)),
        tool_calling=data.get("tool_calling"),
        max_loaded=data.get("max_loaded"),
    )
    for name, plans in data.get("pulls", {}).items():
        backend.queue_pulls(name, *(_pull(plan, f"pull of {name}") for plan in plans))
    for number, turn in enumerate(data.get("turns", ()), 1):
        where = f"turn {number}"
        script = _script(turn, where)
        options: JSON = turn if isinstance(turn, dict) else {}
        times = int(options.get("times", 1))
        backend.when(_matcher(options, where), script, times=times or None)
    if "default" in data:
        backend.default = _script(data["default"], "default")
    return backend


def _pull(item: Any, where: str) -> tuple[Any, ...]:
    arguments = dict(item) if isinstance(item, dict) else {"plan": item}
    plan, sizes = arguments.pop("plan", None), arguments.pop("sizes", ())
    if plan not in PULLS:
        raise ScriptFileError(f"{where}: unknown plan {plan!r}; known are {', '.join(sorted(PULLS))}")
    try:
        return PULLS[plan](*sizes, **arguments)
    except TypeError as error:
        raise ScriptFileError(f"{where}: {error}") from error


def _matcher(options: JSON, where: str) -> Any:
    text = str(options.get("match", ""))
    after_tool = options.get("after_tool")
    known = {"match", "after_tool", "times", "steps", "load_delay", "prompt_delay", "load_error"}
    if unknown := sorted(set(options) - known):
        raise ScriptFileError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")

    def matches(request: ChatRequest) -> bool:
        is_tool = bool(request.messages) and request.messages[-1].get("role") == "tool"
        return text in last_user_text(request) and (after_tool is None or after_tool == is_tool)

    return matches


def _script(turn: Any, where: str) -> Script:
    if isinstance(turn, str):
        return Script(*words(turn))
    if isinstance(turn, list):
        turn = {"steps": turn}
    if not isinstance(turn, dict) or not isinstance(turn.get("steps"), list):
        raise ScriptFileError(f"{where}: expected a list of steps, or an object with 'steps'")
    load_error = turn.get("load_error")
    script = Script(
        *_steps(turn["steps"], where),
        load_delay=float(turn.get("load_delay", 0)),
        load_error=None if load_error is None else Fail(**load_error),
        prompt_delay=float(turn.get("prompt_delay", 0)),
    )
    for step in turn["steps"]:
        if isinstance(step, dict) and "fault" in step and (fault := _fault(step, where)).load_error:
            script.load_error = fault.load_error
    return script


def _steps(items: Iterable[Any], where: str) -> list[Step]:
    found: list[Step] = []
    for number, item in enumerate(items, 1):
        try:
            found.extend(_step(item, where))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ScriptFileError):
                raise
            raise ScriptFileError(f"{where}, step {number}: {error}") from error
    return found


def _call(value: JSON) -> JSON:
    return call(value["name"], value.get("arguments"), id=value.get("id", AUTO_ID))


def _fault(item: JSON, where: str) -> Script:
    arguments = dict(item)
    name = arguments.pop("fault")
    if name not in FAULTS:
        raise ScriptFileError(f"{where}: unknown fault {name!r}; known are {', '.join(sorted(FAULTS))}")
    return FAULTS[name](**arguments)


def _step(item: Any, where: str) -> list[Step]:
    if isinstance(item, str):
        return [Say(item)]
    if not isinstance(item, dict):
        raise ScriptFileError(f"{where}: a step is a string or an object, not {item!r}")
    delay = float(item.get("delay", 0))
    if "say" in item:
        return [Say(item["say"], delay, int(item.get("pieces", 1)))]
    if "answer" in item:
        return list(words(item["answer"], delay=delay, size=int(item.get("size", 1))))
    if "think" in item:
        return [Think(item["think"], delay)]
    if "call" in item:
        return [Calls((_call(item["call"]),), str(item.get("content", "")), delay)]
    if "calls" in item:
        return [Calls(tuple(map(_call, item["calls"])), str(item.get("content", "")), delay)]
    if "joined" in item:
        inner = _steps(item["joined"], where)
        return [Joined(tuple(step for step in inner if isinstance(step, (Say, Think, Calls))), delay)]
    if "raw" in item:
        return [Raw(tuple(part.encode() for part in item["raw"]), delay)]
    if "wait" in item:
        return [Wait(float(item["wait"]))]
    if "hold" in item:
        return [Gate()]
    if "fail" in item:
        return [Fail(**item["fail"], delay=delay)]
    if "reply" in item:
        given = item["reply"]
        return [Reply(given["status"], given.get("content", "").encode(), given.get("content_type", ""), delay)]
    if "cut" in item:
        return [Cut(item["cut"] != "close", delay)]
    if "stop" in item:
        return [Stop()]
    if "done" in item:
        given = {**item["done"], "calls": tuple(map(_call, item["done"].get("calls", ())))}
        return [Done(**given, delay=delay)]
    if "fault" in item:
        return list(_fault(item, where).steps)
    raise ScriptFileError(f"{where}: unknown step {sorted(item)}")
