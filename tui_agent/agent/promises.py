"""The promise check: was something said that should have been kept, and was it?

Deterministic code only decides whether to ask. It never writes by itself: the user's one key does, or the model's
quotes pass the gate.
"""

from __future__ import annotations

from collections.abc import Collection

from tui_agent.agent.events import SaveMissing
from tui_agent.memory.proof import claims_of
from tui_agent.memory.statements import Statement, claims_save, classify
from tui_agent.memory.text import normalise, word_stems


def check(
    message_id: str,
    user_text: str,
    answer: str,
    *,
    wrote: bool,
    known: Collection[str] = (),
    fresh: Collection[str] = (),
) -> SaveMissing | None:
    """What was plainly stated, or claimed to be saved, and is not remembered now; ``None`` when all is well.

    ``known`` are normalised texts and quotes of everything that is remembered, ``fresh`` the texts of what was saved
    from this very message. Each statement is one line of the event's ``sentence``.
    """
    missing = [statement for statement in classify(user_text) if not is_known(statement, known, fresh)]
    claimed = claims_save(answer)
    if missing:
        targets = {statement.target for statement in missing}
        sentence = "\n".join(" ".join(statement.text.split()) for statement in missing)
        return SaveMissing(message_id, sentence, claimed and not wrote, targets.pop() if len(targets) == 1 else "")
    if claimed and not wrote and user_text.strip() and not _said_before(user_text, known):
        return SaveMissing(message_id, " ".join(user_text.split()), True, "")
    return None


def is_known(statement: Statement, known: Collection[str], fresh: Collection[str] = ()) -> bool:
    """Whether the statement is remembered: as it stands, or most of what it says; of texts saved from this message
    also in other words."""
    text = normalise(statement.text)
    if any(text == other or text in other or (other in text and _covers(other, text)) for other in known):
        return True
    return any(_covers(other, statement.text) for other in fresh)


def _covers(other: str, text: str) -> bool:
    """Whether ``other`` has at least half of the words that matter in ``text``."""
    wanted = claims_of(text)
    have = claims_of(other)
    keys = {*have.required, *have.content}
    forms = {stem for key in keys for stem in word_stems(key)}
    words = (*wanted.required, *wanted.content)
    found = sum(word in keys or not forms.isdisjoint(word_stems(word)) for word in words)
    return bool(words) and 2 * found >= len(words)


def _said_before(text: str, known: Collection[str]) -> bool:
    wanted = normalise(text)
    return any(len(other) > 3 and other in wanted for other in known)
