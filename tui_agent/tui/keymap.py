"""The user's keys: which are in force, how they are written on screen, and what is wrong with a keymap."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from textual.keys import KEY_ALIASES, Keys

from tui_agent.tui.actions import BY_ID

_WORDS = {
    "escape": "esc", "slash": "/", "pageup": "pgup", "pagedown": "pgdn", "question_mark": "?",
    "up": "↑", "down": "↓", "delete": "del",
}  # fmt: skip
_KNOWN = {key.value for key in Keys} | set(KEY_ALIASES)


def shown(keys: str, *, first_only: bool = True) -> str:
    """Key names as people read them: ``ctrl+j``, ``esc``, ``alt+↑``, ``F1``."""
    words = []
    for key in keys.split(",")[: 1 if first_only else None]:
        *modifiers, last = key.strip().split("+")
        last = _WORDS.get(last, last)
        if len(last) > 1 and last[0] == "f" and last[1:].isdigit():
            last = last.upper()
        words.append("+".join([*modifiers, last]))
    return ", ".join(words)


class Keymap:
    """Keys by action id, the user's over the table's."""

    def __init__(self, changed: Mapping[str, str] | None = None) -> None:
        self.changed: dict[str, str] = {}
        self.problems: list[str] = []
        for id, keys in (changed or {}).items():
            problem = self._problem(str(id), str(keys))
            if problem:
                self.problems.append(problem)
            else:
                self.changed[str(id)] = ",".join(part.strip() for part in str(keys).split(","))

    @staticmethod
    def _problem(id: str, keys: str) -> str:
        if id not in BY_ID:
            close = get_close_matches(id, BY_ID, 1)
            hint = f" Did you mean {close[0]}?" if close else ""
            return f"The keymap names an unknown action: {id}.{hint} It is ignored; F1 lists all actions."
        for key in keys.split(","):
            last = key.strip().split("+")[-1]
            if not last or (len(last) > 1 and last not in _KNOWN and not last.startswith("f")):
                return f"The keymap gives {id} a key that no terminal sends: {key.strip() or 'nothing'}. It is ignored."
        return ""

    def keys(self, id: str) -> str:
        """The keys of an action now."""
        return self.changed.get(id, BY_ID[id].keys)

    def hint(self, id: str, label: str = "") -> str:
        """``w why``: the first key and what it does."""
        return f"{shown(self.keys(id))} {label or BY_ID[id].label}"
