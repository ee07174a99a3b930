"""The one table of everything a key can do. Bindings, footer, help, palette and the user's keymap all come from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a key does.

    ``id`` is ``context.name``; the widget or screen of that context has a method ``action_name``. ``keys`` are
    Textual key names, separated by commas. ``label`` is the word in the footer, ``help`` a sentence for the help
    screen and the palette. ``priority`` keys work before the focused widget sees them.
    """

    id: str
    keys: str
    label: str
    help: str
    group: str
    context: str
    show_in_footer: bool = False
    priority: bool = False

    @property
    def name(self) -> str:
        """The method of the owner, without ``action_``."""
        return self.id.partition(".")[2]


def _table() -> Iterator[Action]:
    def rows(
        context: str, group: str, *entries: tuple[str, str, str, str] | tuple[str, str, str, str, str]
    ) -> Iterator[Action]:
        for name, keys, word, sentence, *flags in entries:
            marks = flags[0] if flags else ""
            yield Action(f"{context}.{name}", keys, word, sentence, group, context, "f" in marks, "p" in marks)

    yield from rows(
        "app", "Everywhere",
        ("help", "f1", "help", "Show every key.", "fp"),
        ("palette", "ctrl+p", "palette", "Search all commands by name.", "fp"),
        ("model", "ctrl+o", "model", "Choose another model.", "fp"),
        ("sessions", "ctrl+l", "sessions", "Open an earlier session or start a new one.", "fp"),
        ("remembered", "f5", "remembered", "Show everything that is remembered, and what waits for approval.", "fp"),
        ("context", "f6", "context", "Show the exact prompt, part by part.", "p"),
        ("review", "f7", "review", "Go through what is old, new, waiting or better looked up.", "fp"),
        ("log", "f8", "log", "Show what happened to memory, newest first.", "p"),
        ("theme", "f9", "theme", "Switch to the next theme.", "p"),
        ("interrupt", "ctrl+c", "quit", "Copy what is selected; twice, quit.", "p"),
        ("leave", "ctrl+q", "quit", "Quit. The draft is kept.", "fp"),
    )  # fmt: skip
    yield from rows(
        "chat", "In the chat",
        ("hot", "f2", "hot", "Go to the hot working memory, and back.", "fp"),
        ("cold", "f3", "cold", "Go to what was put away, and back.", "fp"),
        ("recalled", "f4", "recalled", "Go to what fed the selected answer, and back.", "fp"),
        ("stop", "escape", "stop", "Close what is open; stop the running answer; go back to writing."),
        ("previous_answer", "alt+up", "older answer", "Select the answer before."),
        ("next_answer", "alt+down", "newer answer", "Select the answer after."),
        ("why", "alt+w", "why", "Explain why each item was recalled for the selected answer."),
        ("copy", "alt+y", "copy", "Copy the selected answer."),
        ("save", "ctrl+s", "save", "Save the sentence that was not saved."),
        ("undo", "alt+u", "undo", "Take back the last change of memory."),
        ("again", "alt+r", "ask again", "Stop the running answer and send the same message once more."),
        ("to_end", "alt+end", "newest", "Go to the newest message and follow it."),
    )  # fmt: skip
    yield from rows(
        "composer", "While writing",
        ("send", "enter", "send", "Send the message; while an answer runs, queue it.", "f"),
        ("newline", "ctrl+j,shift+enter,alt+enter", "newline", "Start a new line.", "f"),
        ("page_up", "pageup", "scroll up", "Scroll the conversation up."),
        ("page_down", "pagedown", "scroll down", "Scroll the conversation down."),
        ("line_up", "ctrl+up", "line up", "Scroll the conversation up by a line."),
        ("line_down", "ctrl+down", "line down", "Scroll the conversation down by a line."),
        ("unqueue", "alt+q", "edit queued", "Take the last queued message back for editing."),
        ("detach", "alt+x", "detach", "Remove the last attachment."),
    )  # fmt: skip
    yield from rows(
        "transcript", "In the conversation",
        ("next", "j", "next", "Select the next answer.", "f"),
        ("previous", "k", "previous", "Select the answer before.", "f"),
        ("unfold", "enter,space", "unfold", "Unfold or fold tool calls and thinking of the selected answer.", "f"),
        ("why", "w", "why", "Explain why each item was recalled.", "f"),
        ("changes", "d", "changes", "Show what the answer changed in memory.", "f"),
        ("copy", "y", "copy", "Copy the selected answer; 1 to 9 copy one of its code blocks.", "f"),
        ("save", "s", "save", "Save the sentence that was not saved."),
        ("retry", "r", "again", "Continue an answer that was cut off, or ask again after a failure."),
        ("undo", "u", "undo", "Take back the last change of memory."),
        ("larger", "L", "larger window", "Ask again with a larger window, when the model did not see the beginning."),
        ("shorter", "O", "without output", "Ask again without tool output, when the model did not see the beginning."),
        ("ignore", "i", "ignore", "Leave an answer as it is whose model did not see the beginning."),
        ("first", "g,home", "oldest", "Go to the first message."),
        ("last", "G,end", "newest", "Go to the newest message and follow it."),
    )  # fmt: skip
    common = (
        ("down", "j,down", "next", "Next item."),
        ("up", "k,up", "previous", "Item before."),
    )
    yield from rows(
        "hot", "Hot working memory", *common,
        ("pin", "p", "pin", "Pin the item, or let the pin go.", "f"),
        ("inspect", "enter", "inspect", "Show everything known of the item.", "f"),
        ("put_away", "f", "put away", "Put the item away; nothing is lost.", "f"),
        ("touch", "t", "touch", "Mark the item as used now.", "f"),
        ("edit", "e", "edit", "Edit the text of the item.", "f"),
        ("sort", "s", "sort", "Sort by score, age or tokens.", "f"),
        ("undo", "u", "undo", "Take back the last change of memory.", "f"),
    )  # fmt: skip
    yield from rows(
        "cold", "Put away (cold)", *common,
        ("bring_back", "r", "bring back", "Bring the item back into the hot working memory.", "f"),
        ("inspect", "enter", "inspect", "Show everything known of the item.", "f"),
        ("search", "slash", "search", "Search what was put away.", "f"),
        ("undo", "u", "undo", "Take back the last change of memory.", "f"),
    )  # fmt: skip
    yield from rows(
        "recalled", "Recalled for an answer", *common,
        ("pin", "p", "pin", "Pin the item, or let the pin go.", "f"),
        ("inspect", "enter", "inspect", "Show everything known of the item.", "f"),
        ("confirm", "c", "confirm", "Confirm that it still holds today.", "f"),
        ("put_away", "f", "not now", "Put the item away for now.", "f"),
        ("why", "w", "why", "Explain every score of this answer.", "f"),
        ("undo", "u", "undo", "Take back the last change of memory.", "f"),
    )  # fmt: skip
    yield from rows(
        "inspector", "Inspector",
        ("pin", "p", "pin", "Pin the item, or let the pin go.", "f"),
        ("put_away", "f", "put away", "Put the item away; nothing is lost.", "f"),
        ("bring_back", "r", "bring back", "Bring the item back into the hot working memory.", "f"),
        ("touch", "t", "touch", "Mark the item as used now.", "f"),
        ("confirm", "c", "confirm", "Confirm that it still holds today.", "f"),
        ("correct", "e", "correct", "Correct the text; the old one stays in the history.", "f"),
        ("expire", "x", "expire", "It no longer holds: keep it in the history only.", "f"),
        ("until", "h", "holds until", "Set until when it holds: a date, a number of days, or never.", "f"),
        ("undo_correction", "U", "undo correction", "Go back to what it replaced; the correction is gone.", "f"),
        ("promote", "P", "all projects", "Keep it for all your projects, or for this one only again.", "f"),
        ("delete", "D", "delete forever", "Destroy it everywhere, with all it replaced; asks first.", "f"),
        ("allow", "v", "every topic", "Recall it again for the topics it was left out for.", "f"),
        ("approve", "a", "approve", "Let the proposal into memory.", "f"),
        ("reject", "n", "reject", "Throw the proposal away.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
        ("copy", "y", "copy", "Copy the text.", "f"),
        ("undo", "u", "undo", "Take back the last change of memory.", "f"),
    )  # fmt: skip
    yield from rows(
        "why", "Why it was recalled", *common,
        ("wrong", "c", "wrong", "It is wrong: correct the text.", "f"),
        ("outdated", "x", "outdated", "It no longer holds: keep it in the history only.", "f"),
        ("put_away", "f", "not now", "Do not recall it again in this session.", "f"),
        ("pin", "p", "pin", "Pin the item, or let the pin go.", "f"),
        ("never", "n", "never for this topic", "Do not recall it for questions like this one any more.", "f"),
        ("quote", "g", "go to message", "Go to the message it is from.", "f"),
        ("without", "a", "ask without it", "Ask the same question without it, and show both answers.", "f"),
        ("inspect", "enter", "inspect", "Show everything known of the item.", "f"),
        ("copy", "y", "copy", "Copy the explanation."),
        ("undo", "u", "undo", "Take back the last change of memory.", "f"),
        ("close", "escape,q,w", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "compare", "Two answers compared",
        ("stop", "s", "stop", "Stop the second answer.", "f"),
        ("copy", "y", "copy", "Copy both answers.", "f"),
        ("close", "escape,q", "close", "Close; nothing of it is kept.", "f"),
    )  # fmt: skip
    yield from rows(
        "remembered", "Remembered", *common,
        ("inspect", "enter", "inspect", "Show everything known of the item.", "f"),
        ("approve", "a", "approve", "Let the waiting proposal into memory.", "f"),
        ("reject", "n", "reject", "Throw the waiting proposal away.", "f"),
        ("confirm", "c", "confirm", "Confirm that it still holds today.", "f"),
        ("correct", "e", "correct", "Correct the text; the old one stays in the history.", "f"),
        ("expire", "x", "expire", "It no longer holds: keep it in the history only."),
        ("until", "h", "holds until", "Set until when it holds: a date, a number of days, or never."),
        ("delete", "D", "delete forever", "Destroy it everywhere, with all it replaced; asks first."),
        ("search", "slash", "search", "Show only what contains a text.", "f"),
        ("undo", "u", "undo", "Take back the last change of memory.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "review", "Review", *common,
        ("next_part", "tab,right", "next part", "Go to the next part of the review.", "f"),
        ("previous_part", "shift+tab,left", "part before", "Go to the part before."),
        ("inspect", "enter", "inspect", "Show everything known of the item.", "f"),
        ("approve", "a", "approve", "Let the waiting proposal into memory.", "f"),
        ("reject", "n", "reject", "Throw the waiting proposal away.", "f"),
        ("confirm", "c", "confirm", "It was checked and still holds today.", "f"),
        ("correct", "e", "correct", "Correct the text; the old one stays in the history.", "f"),
        ("expire", "x", "expire", "It no longer holds: keep it in the history only.", "f"),
        ("until", "h", "holds until", "Set until when it holds: a date, a number of days, or never.", "f"),
        ("delete", "D", "delete forever", "Destroy it everywhere, with all it replaced; asks first.", "f"),
        ("search", "slash", "search", "Show only what contains a text."),
        ("undo", "u", "undo", "Take back the last change of memory.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "log", "Log of changes", *common,
        ("inspect", "enter", "inspect", "Show everything known of the item.", "f"),
        ("zone", "z", "facts or all", "Show all changes, those of facts, or moves of the working memory.", "f"),
        ("search", "slash", "search", "Show only what contains a text.", "f"),
        ("undo", "u", "undo", "Take back the last change of memory.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "handoff", "Hand-off", *common,
        ("confirm", "c,space", "confirm", "This part is right; press again to take that back.", "f"),
        ("edit", "e,enter", "edit", "Change the text of the part.", "f"),
        ("add", "o", "add", "Add a requirement.", "f"),
        ("drop", "d", "drop", "Leave the requirement out.", "f"),
        ("redraft", "r", "draft anew", "Draft the packet from the conversation again."),
        ("copy", "y", "copy", "Copy the packet as JSON.", "f"),
        ("save", "s", "save", "Write the packet to a file in the project.", "f"),
        ("view", "v", "view", "Show the packet as it will be handed on.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "sharing", "Sharing",
        ("switch", "s", "share or keep private", "Let git take the team's part of the memory, or none of it.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "picker", "Lists to choose from", *common,
        ("choose", "enter", "choose", "Choose the highlighted row.", "f"),
        ("new", "n", "new", "Start a new session.", "f"),
        ("search", "slash", "search", "Search.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "models", "Models", *common,
        ("choose", "enter", "use", "Use the model from the next message on.", "f"),
        ("pull", "p", "download", "Download a model, or go on with a download.", "f"),
        ("stop", "x", "stop download", "Stop a download; what arrived stays.", "f"),
        ("unload", "u", "unload", "Free the memory of the model now.", "f"),
        ("probe", "t", "try tools", "Ask the model to call a tool, and remember how it does.", "f"),
        ("refresh", "r", "refresh", "Ask the server again."),
        ("search", "slash", "search", "Show only names that contain a text.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "setup", "First run", *common,
        ("choose", "enter", "choose", "Choose the highlighted answer; its number does the same.", "f"),
        ("stop", "x", "stop", "Stop what is going on; what was downloaded stays.", "f"),
        ("close", "escape,q", "not now", "Leave it for now; /setup opens it again.", "f"),
    )  # fmt: skip
    yield from rows(
        "doctor", "Doctor",
        ("again", "r", "look again", "Look at everything again.", "f"),
        ("all", "a", "all or faults", "Show all checks, or only what is wrong.", "f"),
        ("copy", "y", "copy", "Copy the page.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip
    yield from rows(
        "page", "Pages to read",
        ("copy", "y", "copy", "Copy the page.", "f"),
        ("rebuild", "R", "rebuild", "Start the prompt anew with the files as they are now.", "f"),
        ("close", "escape,q", "close", "Close.", "f"),
    )  # fmt: skip


ACTIONS: tuple[Action, ...] = tuple(_table())
BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}


def in_context(context: str) -> list[Action]:
    """The actions of one context, in table order."""
    return [action for action in ACTIONS if action.context == context]


def bindings(context: str) -> list[Binding]:
    """Textual bindings of one context, with ids so that a keymap can move them."""
    return [
        Binding(
            action.keys,
            action.name,
            action.label,
            show=action.show_in_footer,
            priority=action.priority,
            tooltip=action.help,
            id=action.id,
        )
        for action in in_context(context)
    ]
