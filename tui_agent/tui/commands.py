"""The commands that begin with a slash: which there are, what they mean, and how a line is read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command. ``argument`` is what may follow, for people; ``action`` an id of the action table, if any."""

    name: str
    help: str
    argument: str = ""
    action: str = ""


COMMANDS: tuple[Command, ...] = (
    Command("goal", "Say what this session is for; it decides what stays in the hot memory.", "TEXT"),
    Command("note", "Pin a note of yours in the hot memory of this session.", "TEXT"),
    Command("memory", "Show everything that is remembered.", "", "app.remembered"),
    Command("context", "Show the exact prompt, part by part.", "", "app.context"),
    Command("undo", "Take back the last change of memory.", "", "chat.undo"),
    Command("rebuild", "Start the prompt anew with the files as they are now."),
    Command("review", "Go through what is old, new, waiting or better looked up.", "", "app.review"),
    Command("log", "Show what happened to memory, newest first.", "", "app.log"),
    Command("learned", "Show what was found in conversations: kept, waiting, refused, and why."),
    Command("rules", "Show rules and the other files in every prompt, with their paths."),
    Command("share", "Show whether git may take this memory, and change it."),
    Command("handoff", "Hand the task on: conclusions for another agent, confirmed by you."),
    Command("reindex", "Make the index of vectors anew from the database."),
    Command("tools", "Send the next message without tools; off and on switch them for the session.", "[on|off]"),
    Command("new", "Start a new session."),
    Command("sessions", "Open an earlier session.", "", "app.sessions"),
    Command("search", "Search everything said in this project.", "TEXT"),
    Command("model", "Choose another model.", "[NAME]", "app.model"),
    Command("setup", "Start the server, download a model, or use the built-in engine."),
    Command("doctor", "Look at server, model, memory, disk and terminal: what is wrong, and what fixes it."),
    Command("theme", "Use another theme.", "[NAME]", "app.theme"),
    Command("copy", "Copy the last answer.", "", "chat.copy"),
    Command("help", "Show every key.", "", "app.help"),
    Command("quit", "Quit. The draft is kept.", "", "app.leave"),
)
BY_NAME = {command.name: command for command in COMMANDS}


def read(line: str) -> tuple[str, str] | None:
    """``(name, argument)`` of a command line, or ``None`` when the text is a message.

    Only one line that begins with a slash and a word is a command: a path such as ``/etc/hosts`` is not.
    """
    text = line.strip()
    if "\n" in text or not text.startswith("/"):
        return None
    name, _, argument = text[1:].partition(" ")
    return (name.lower(), argument.strip()) if name.isalpha() else None


def complete(line: str) -> list[Command]:
    """The commands a beginning could become; none once the name is complete and something follows."""
    if not line.startswith("/") or " " in line or "\n" in line:
        return []
    return [command for command in COMMANDS if command.name.startswith(line[1:].lower())]
