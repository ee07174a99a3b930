"""From any starting state to a chat: what is missing, what the user is asked, and what each answer means.

Plain data and a state machine without input, output or clock. :mod:`tui_agent.agent.firstlook` gathers the facts,
:mod:`tui_agent.agent.setting_up` carries the answers out; the terminal interface and ``tui-agent setup`` only show the
steps and pass the answers on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tui_agent.llm.hardware import GB, Memory, Suggestion, suggestions
from tui_agent.llm.ollama_files import LocalModel
from tui_agent.llm.types import ModelInfo

State = Literal["ready", "remote", "cloud", "models", "empty", "stopped", "nothing", "odd", "far"]
ENGINE_BYTES = int(1.1 * GB)
PIP_ENGINE = "pip install 'tui-agent[embedded]'"
INSTALL_PAGE = "https://ollama.com/download"
_MOST_MODELS = 5


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts a first run is about. Sizes are bytes.

    ``wanted`` is the model the settings name; ``trouble`` why the server is of no use, in a sentence; ``odd`` that
    something answers there that is not Ollama. ``models`` are the chat models of the server, ``blobs`` those that lie
    in Ollama's folder. ``engine`` says that the built-in engine's packages are there, ``engine_model`` that its model
    is too. ``leaves_to`` is where content would go if that has not been allowed yet. ``connected`` ends it all.
    """

    url: str = ""
    local: bool = True
    answers: bool = False
    odd: bool = False
    trouble: str = ""
    version: str = ""
    wanted: str = ""
    models: tuple[ModelInfo, ...] = ()
    leaves_to: str = ""
    program: str = ""
    engine: bool = False
    engine_model: bool = False
    blobs: tuple[LocalModel, ...] = ()
    memory: Memory = field(default_factory=Memory)
    free_disk: int = 0
    container: bool = False
    connected: bool = False

    @property
    def state(self) -> State:
        """Where this machine stands."""
        if self.connected:
            return "ready"
        if self.leaves_to:
            return "cloud" if self.answers else "remote"
        if self.answers:
            if _has(self.models, self.wanted):
                return "ready"
            return "models" if self.models else "empty"
        if self.odd:
            return "odd"
        if not self.local:
            return "far"
        return "stopped" if self.program else "nothing"


@dataclass(frozen=True, slots=True)
class Act:
    """What an answer asks for. ``what`` is ``serve``, ``pull``, ``model``, ``engine``, ``allow``, ``here``, ``look``,
    ``tell`` or ``later``; ``value`` a model, a file or a host."""

    what: Literal["serve", "pull", "model", "engine", "allow", "here", "look", "tell", "later"]
    value: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer: the key to press, what it does in a few words, and a detail for who reads on."""

    key: str
    label: str
    detail: str
    act: Act


@dataclass(frozen=True, slots=True)
class Step:
    """What is shown: a heading, sentences, and numbered answers. ``watch`` asks to look again every few seconds."""

    state: State
    title: str
    text: str
    choices: tuple[Choice, ...]
    watch: bool = False


class FirstRun:
    """Walks from the facts to a chat. :attr:`step` is shown, :meth:`answer` takes a key, then :meth:`done` or
    :meth:`failed` reports what came of the act. ``outcome`` is empty until it ends with ``ready`` or ``later``."""

    def __init__(self, facts: Surroundings) -> None:
        self.facts = facts
        self.note = ""
        self.error = ""
        self.working: Act | None = None
        self.answers = 0
        self.outcome: Literal["", "ready", "later"] = "ready" if facts.state == "ready" else ""

    @property
    def step(self) -> Step:
        """What to ask now."""
        return step_for(self.facts)

    def answer(self, key: str) -> Act | None:
        """The act a key asks for; ``None`` for a key that means nothing now."""
        choice = next((one for one in self.step.choices if one.key == key), None)
        if choice is None or self.working is not None or self.outcome:
            return None
        self.error = self.note = ""
        self.answers += 1
        if choice.act.what == "later":
            self.outcome = "later"
        elif choice.act.what == "tell":
            self.note = choice.act.value
            self.answers -= 1  # reading a command is no decision
        else:
            self.working = choice.act
        return choice.act

    def done(self, facts: Surroundings) -> None:
        """The act was carried out; these are the facts now."""
        self.working = None
        self.facts = facts
        if facts.state == "ready":
            self.outcome = "ready"

    def failed(self, sentence: str, facts: Surroundings | None = None) -> None:
        """The act did not work; the same question stands, with the reason."""
        self.working = None
        self.error = sentence
        if facts is not None:
            self.facts = facts

    def cancelled(self) -> None:
        """The user stopped the act; the question stands again."""
        self.working = None
        self.note = "Stopped. What was downloaded stays, and the next try goes on there."

    def seen(self, facts: Surroundings) -> bool:
        """Looked again while waiting; whether that changed the question."""
        if self.working is not None or self.outcome or facts == self.facts:
            return False
        changed = facts.state != self.facts.state
        self.facts = facts
        if changed:
            self.note = self.error = ""
        if facts.state == "ready":
            self.outcome = "ready"
        return True


def step_for(facts: Surroundings) -> Step:
    """The question for a state."""
    state = facts.state
    title, text = _words(facts)
    acts = _ANSWERS[state](facts)
    detail = "nothing is sent" if state in ("remote", "cloud") else "look around without answers"
    later = ("Not now", detail, Act("later"))
    numbered = [Choice(str(number), *one) for number, one in enumerate(acts, start=1)]
    return Step(state, title, text, (*numbered, Choice("0", *later)), watch=state in ("nothing", "stopped", "odd"))


def missing(facts: Surroundings) -> str:
    """What is missing for an answer, in a sentence."""
    match facts.state:
        case "remote" | "cloud":
            return f"Sending what you write to {facts.leaves_to} is not allowed yet."
        case "models":
            return f"{facts.wanted} is not installed at {facts.url}."
        case "empty":
            return f"The server at {facts.url} has no model to chat with yet."
        case "stopped":
            return f"Ollama is not running: nothing answers at {facts.url}."
        case "nothing":
            return f"No model server answers at {facts.url}."
        case _:
            return facts.trouble


def next_commands(facts: Surroundings) -> list[tuple[str, str]]:
    """What to type to get to a chat, for people without the questions: ``(command, what it does)``, the best first."""
    best = suggestions(facts.memory, "")[0]
    setup = ("tui-agent setup", "asks what is missing and does it")
    engine = ("tui-agent --embedded", f"the built-in engine; unpacks its {_size(ENGINE_BYTES)} model once")
    pip = (PIP_ENGINE, f"the built-in engine and its model ({_size(ENGINE_BYTES)}); then tui-agent --embedded")
    with_engine = engine if facts.engine_model else pip
    pull = (f"ollama pull {best.name}", f"{_size(best.download)}, {best.good_for}")
    match facts.state:
        case "ready":
            return [("tui-agent", "everything is there")]
        case "remote" | "cloud":
            return [(f"tui-agent allow {facts.leaves_to}", "once, if what you write may go there"), engine]
        case "models":
            others = [(f"tui-agent --model {info.name}", "one of those installed") for info in facts.models[:3]]
            return [*others, (f"ollama pull {facts.wanted}", "the model your settings name"), setup]
        case "empty":
            return [pull, (f"tui-agent --model {best.name}", "then"), setup]
        case "stopped":
            return [("ollama serve", "in another terminal, or as a service"), setup, with_engine]
        case "odd":
            return [("OLLAMA_HOST=127.0.0.1:11435 ollama serve", "on a free port"),
                    ("tui-agent --host http://127.0.0.1:11435", "then")]  # fmt: skip
        case "far":
            return [(f"tui-agent doctor --host {facts.url}", "says what is wrong there"), with_engine]
        case _:
            return [(INSTALL_PAGE, "install Ollama, then run `tui-agent setup`"), with_engine]


Answer = tuple[str, str, Act]


def _words(facts: Surroundings) -> tuple[str, str]:
    match facts.state:
        case "remote":
            where = f"{facts.leaves_to} is not this machine. Everything you write there, the files the model reads and "
            return "Your words would leave this machine", where + "what is remembered would be sent to it."
        case "cloud":
            text = f"{facts.wanted} is a cloud model: what you write, the files it reads and what is remembered would "
            return "Your words would leave this machine", text + f"be sent to {facts.leaves_to}."
        case "models":
            return "Choose a model", f"The server runs, but {facts.wanted} is not installed there. Others are."
        case "empty":
            text = f"The server runs at {facts.url} and has no model to chat with yet. {_memory(facts.memory)}"
            return "Download a model", text
        case "stopped":
            return "Ollama is not running", f"It is installed, but nothing answers at {facts.url}."
        case "odd":
            return "Something else answers", facts.trouble
        case "far":
            return "The server does not answer", facts.trouble
        case "nothing":
            text = f"No model server answers at {facts.url}. Install Ollama from {INSTALL_PAGE} and start it."
            if facts.container:
                text += " In a container, a server on the host is http://host.docker.internal:11434 (--host)."
            return "A model is needed", text
        case _:
            return "Ready", "A model is there."


def _remote(facts: Surroundings) -> list[Answer]:
    allow = (f"Allow {facts.leaves_to}", "asked once, kept for next time", Act("allow", facts.leaves_to))
    here = ("Use this machine instead", "the server here, or the built-in engine", Act("here"))
    return [allow, here]


def _cloud(facts: Surroundings) -> list[Answer]:
    allow = (f"Allow {facts.leaves_to}", "asked once, kept", Act("allow", facts.leaves_to))
    return [allow, *_installed(facts)[:3]]


def _models(facts: Surroundings) -> list[Answer]:
    best = suggestions(facts.memory, facts.wanted)[0]
    return [*_installed(facts), _pull(best, facts)]


def _empty(facts: Surroundings) -> list[Answer]:
    return [*(_pull(one, facts) for one in suggestions(facts.memory, facts.wanted)[:3]), *_engine(facts)]


def _stopped(facts: Surroundings) -> list[Answer]:
    serve = ("Start it now", "runs `ollama serve`; it stops when you leave", Act("serve"))
    return [serve, *_blobs(facts), *_engine(facts)]


def _nothing(facts: Surroundings) -> list[Answer]:
    return [*_blobs(facts), *_engine(facts), ("Look again", "after installing or starting something", Act("look"))]


def _odd(facts: Surroundings) -> list[Answer]:
    return [*_engine(facts), ("Look again", "after correcting the address", Act("look"))]


def _far(facts: Surroundings) -> list[Answer]:
    here = ("Use this machine instead", "the server here, or the built-in engine", Act("here"))
    return [("Try again", f"connect to {facts.url}", Act("look")), here]


def _installed(facts: Surroundings) -> list[Answer]:
    shown = sorted(facts.models, key=lambda info: (info.remote, not info.tools))[:_MOST_MODELS]
    return [
        (f"Use {info.name}", ", ".join(filter(None, (_size(info.size or 0), _can(info)))), Act("model", info.name))
        for info in shown
    ]


def _pull(one: Suggestion, facts: Surroundings) -> Answer:
    size = f"{_size(one.download)}, " if one.download else ""
    if facts.local and 0 < facts.free_disk < one.download:
        return (f"Download {one.name}", f"{size}but only {_size(facts.free_disk)} are free", Act("pull", one.name))
    return (f"Download {one.name}", f"{size}{one.good_for}", Act("pull", one.name))


def _blobs(facts: Surroundings) -> list[Answer]:
    wanted = [one for one in facts.blobs if one.name.removesuffix(":latest") == facts.wanted.removesuffix(":latest")]
    found = [*wanted, *(one for one in facts.blobs if one not in wanted)][:2]
    if not facts.engine:
        return []
    return [
        (f"Run {one.name} without Ollama", f"already downloaded, {_size(one.size)}; built-in engine",
         Act("engine", str(one.path)))
        for one in found
    ]  # fmt: skip


def _engine(facts: Surroundings) -> list[Answer]:
    if facts.engine_model:
        return [("Use the built-in engine", f"qwen2.5-coder:1.5b, {_size(ENGINE_BYTES)}", Act("engine"))]
    more = ""
    if facts.blobs and not facts.engine:
        more = f" For models that Ollama has downloaded ({facts.blobs[0].name}) the engine alone is enough: "
        more += "pip install xllamacpp uvicorn starlette"
    command = f"In another terminal: {PIP_ENGINE} ({_size(ENGINE_BYTES)} with its model), then start again.{more}"
    return [("Use the built-in engine", "not installed; shows the command", Act("tell", command))]


_ANSWERS = {
    "ready": lambda facts: [],
    "remote": _remote,
    "cloud": _cloud,
    "models": _models,
    "empty": _empty,
    "stopped": _stopped,
    "nothing": _nothing,
    "odd": _odd,
    "far": _far,
}


def _has(models: tuple[ModelInfo, ...], wanted: str) -> bool:
    return any(info.name.removesuffix(":latest") == wanted.removesuffix(":latest") for info in models)


def _can(info: ModelInfo) -> str:
    if info.remote:
        return "leaves this machine"
    if not info.capabilities:
        return ""
    return "calls tools" if info.tools else "no tools"


def _memory(memory: Memory) -> str:
    if not memory.total:
        return ""
    graphics = f" and a graphics card with {memory.graphics / 2**30:.0f} GB" if memory.graphics else ""
    return f"This machine has {memory.total / 2**30:.0f} GB of memory{graphics}; what follows fits into it."


def _size(size: int) -> str:
    if not size:
        return ""
    return f"{size / GB:.1f} GB" if size >= GB else f"{size / 1e6:.0f} MB"
