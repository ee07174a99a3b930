"""The promise check: was something said that should have been kept, and was it?

Deterministic code only decides whether to ask. It never writes by itself: the user's one key does, or the model's
quotes pass the gate.
"""

from __future__ import annotations

from collections.abc import Collection

from tui_agent.agent.events import SaveMissing
from tui_agent.memory.statements import Statement, claims_save, classify
from tui_agent.memory.text import normalise


def check(
    message_id: str, user_text: str, answer: str, *, wrote: bool, known: Collection[str] = ()
) -> SaveMissing | None:
    """What was plainly stated, or claimed to be saved, and is not remembered now; ``None`` when all is well.

    ``known`` are normalised texts and quotes of everything that is remembered, this turn's writes included. Each
    statement is one line of the event's ``sentence``.
    """
    missing = [statement for statement in classify(user_text) if not is_known(statement, known)]
    claimed = claims_save(answer)
    if missing:
        targets = {statement.target for statement in missing}
        sentence = "\n".join(" ".join(statement.text.split()) for statement in missing)
        return SaveMissing(message_id, sentence, claimed and not wrote, targets.pop() if len(targets) == 1 else "")
    if claimed and not wrote and user_text.strip() and not _said_before(user_text, known):
        return SaveMissing(message_id, " ".join(user_text.split()), True, "")
    return None


def is_known(statement: Statement, known: Collection[str]) -> bool:
    """Whether the statement, or a quote that is its heart, is remembered."""
    text = normalise(statement.text)
    return any(text == other or text in other or (len(other) > 3 and other in text) for other in known)


def _said_before(text: str, known: Collection[str]) -> bool:
    wanted = normalise(text)
    return any(len(other) > 3 and other in wanted for other in known)
