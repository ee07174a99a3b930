"""Texts on their way through the gate: what of them is worth keeping, where it goes, and the line in the file."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from datetime import datetime

from tui_agent.memory.proof import MESSAGE_BREAK, find_quote
from tui_agent.memory.statement_reading import JOIN, sentences
from tui_agent.memory.statements import FACT, PREFERENCES, RULES, USER, Judged, Label, Statement, on_record, read
from tui_agent.memory.types import Origin, Proposal

# What outweighs what when nothing of a text can be kept.
_WEIGHT = (Label.OFF_RECORD, Label.WORLD_STATE, Label.REPORTED, Label.MUSING, Label.THIRD_PARTY, Label.COMMAND,
           Label.TASK, Label.QUESTION, Label.SAVE_COMMAND, Label.FOLLOW_UP, Label.SMALL_TALK)  # fmt: skip
_BLOCKING = {
    Label.QUESTION,
    Label.MUSING,
    Label.THIRD_PARTY,
    Label.REPORTED,
    Label.WORLD_STATE,
    Label.COMMAND,
    Label.TASK,
}


class Reading:
    """What the user wrote, with its judged sentences: one message, or several with :data:`MESSAGE_BREAK` between them.

    ``now`` is for statements such as "until Friday".
    """

    def __init__(self, text: str, now: datetime) -> None:
        self.text = text
        self.judged: list[Judged] = []
        self.allowed: list[Judged] = []
        at = 0
        for message in text.split(MESSAGE_BREAK):
            judged = [_moved(item, at) for item in read(message, now=now)]
            self.judged += judged
            self.allowed += on_record(judged)
            at += len(message) + len(MESSAGE_BREAK)

    @property
    def messages(self) -> list[str]:
        """The messages one by one."""
        return self.text.split(MESSAGE_BREAK)

    def off_record(self, quote: str = "") -> bool:
        """Whether the user asked for these words not to be stored; without words, for all of it."""
        if len(self.allowed) == len(self.judged):
            return False
        place = find_quote(quote, self.text) if quote else None
        if place is None:
            return not self.allowed
        return not any(_meets(item, place) for item in self.allowed) and any(
            _meets(item, place) for item in self.judged
        )

    @property
    def statements(self) -> list[Statement]:
        """What the message plainly states."""
        return [item.statement for item in self.allowed if item.statement is not None]

    def statement_at(self, quote: str) -> Statement | None:
        """The statement a quote belongs to."""
        place = find_quote(quote, self.text)
        if place is None:
            return None
        return next((item for item in self.statements if item.start < place[1] and item.end > place[0]), None)

    def label_at(self, quote: str) -> Label | None:
        """The label that speaks against keeping a quote, if any: that of its sentence, and of its clause as well."""
        place = find_quote(quote, self.text)
        if place is None:
            return None
        for item in self.judged:
            sentence = item.sentence
            if (
                sentence.start < place[1]
                and sentence.end > place[0]
                and item.statement is None
                and item.label in _BLOCKING
            ):
                if item.label in {Label.COMMAND, Label.TASK, Label.WORLD_STATE} and self._clause_states(place):
                    return None
                return item.label
        return None

    def _clause_states(self, place: tuple[int, int]) -> bool:
        """Whether the clause around a place states something by itself ("Fix the page, we use Svelte by the way")."""
        start = 0
        for match in [*JOIN.finditer(self.text), None]:
            end = match.start() if match else len(self.text)
            if start < place[1] and end > place[0] and (start > 0 or match is not None):
                return any(item.statement for item in read(self.text[start:end]))
            start = match.end() if match else end
        return False


def _moved(item: Judged, offset: int) -> Judged:
    """The same, with places in the whole text."""
    sentence = replace(item.sentence, start=item.sentence.start + offset, end=item.sentence.end + offset)
    made = item.statement
    statement = None if made is None else replace(made, start=made.start + offset, end=made.end + offset)
    return replace(item, sentence=sentence, statement=statement)


def _meets(item: Judged, place: tuple[int, int]) -> bool:
    return item.sentence.start < place[1] and item.sentence.end > place[0]


@dataclass(frozen=True, slots=True)
class Kept:
    """The part of a text worth keeping; when empty, ``label`` says what it is instead (``None``: pasted)."""

    text: str
    statement: Statement | None = None
    label: Label | None = None


def keepable(text: str, judged: tuple[Judged, ...]) -> Kept:
    """The sentences of ``text`` that state something (or at least do not say otherwise), as they stand."""
    if not judged:
        return Kept("", None, Label.SMALL_TALK if not sentences(text) and not any(map(str.isalnum, text)) else None)
    statements = [item.statement for item in judged if item.statement is not None]
    good: list[tuple[int, int]] = []
    for item in judged:
        if item.statement is not None:
            good.append((item.statement.start, item.statement.end))
        elif item.label is Label.PLAIN:
            good.append((item.sentence.start, item.sentence.end))
    if not good:
        return Kept("", None, min((item.label for item in judged), key=_WEIGHT.index))
    statement = statements[0] if statements else None
    if len(judged) == len(good) and statement is None:
        return Kept(text.strip())
    return Kept(_joined(text, good), statement)


def _joined(text: str, spans: list[tuple[int, int]]) -> str:
    """The spans of ``text`` in order; what lies between neighbours (white space, "and") stays as it is."""
    out = text[spans[0][0] : spans[0][1]]
    for (_, end), (start, stop) in itertools.pairwise(spans):
        between = text[end:start]
        out += (between if len(between) <= 6 else " ") + text[start:stop]
    return out.strip()


# --- the line in the file ---------------------------------------------------------------------------

_NAME = r"(?P<name>[A-ZĄĆĘŁŃÓŚŹŻА-ЯЁ][\w'-]+(?: [A-ZĄĆĘŁŃÓŚŹŻА-ЯЁ][\w'-]+){0,2})"
_SAYS_NAME = {
    "Name": r"my name(?:'s| is)|i'm|i am|call me|you can call me|just call me|(?:the )?user'?s? name(?:'s| is)",
    "Imię": r"mam na imię|nazywam się|mów mi|mów do mnie|jestem|możesz mi mówić|imię użytkownika to",
    "Имя": r"меня зовут|зови меня|зовите меня|можешь называть меня|мое имя|моё имя",
}
_NAMES = tuple(
    (re.compile(rf"^(?:{says})(?: просто| —| -)? {_NAME}[.!]?$", re.IGNORECASE), label)
    for label, says in _SAYS_NAME.items()
)
_LABELLED = re.compile(r"^[^\W\d_][\w -]{0,28}: \S")


def project_line(target: str, text: str) -> tuple[str, str, str]:
    """``(path, section, line)`` of a statement in its file, or three empty strings for a row without a line.

    Names become ``Name: Kacper``; a text that has a label already stays as it is; all else is a list item in the user's
    own words.
    """
    if not target or target == FACT:
        return "", "", ""
    path, _, section = target.partition("#")
    line = " ".join(text.split())
    if path == USER:
        for pattern, label in _NAMES:
            match = pattern.match(line)
            if match is not None and match["name"][:1].isupper():
                return path, section, f"{label}: {match['name']}"
        if _LABELLED.match(line):
            return path, section, line
    return path, section, f"- {line}"


# --- places and sources ---------------------------------------------------------------------------------


def same_place(one: str, other: str) -> bool:
    return bool(other) and one.partition("#")[0] == other.partition("#")[0]


def target_of(given: str, statement: Statement | None) -> str:
    """Where it goes: where the proposal says, with the section filled in; else where the statement belongs."""
    found = statement.target if statement is not None else FACT
    if not given or given == FACT:
        return found if not given else FACT
    if given in {"rules", RULES}:
        return RULES
    path, _, section = given.partition("#")
    if path == "AGENTS.md" and not section:
        return found if found.startswith("AGENTS.md#") else PREFERENCES
    return given


def source_words(proposal: Proposal) -> str:
    names = {
        Origin.FILE: "a file",
        Origin.TOOL: "a tool's output",
        Origin.WEB: "a web page",
        Origin.IMPORT: "an import",
    }
    where = names.get(proposal.origin, "elsewhere")
    return f"{where} ({proposal.source})" if proposal.source.strip() else where
