"""The promise check: was something said that should have been kept, and was it?

Deterministic code only decides whether to ask. It never writes by itself: the user's one key does, or the model's
quotes pass the gate.
"""

from __future__ import annotations

from collections.abc import Collection

from tui_agent.agent.events import SaveMissing
from tui_agent.memory.statements import claims_save, classify
from tui_agent.memory.text import normalise


def check(message_id: str, user_text: str, answer: str, wrote: bool, known: Collection[str] = ()) -> SaveMissing | None:
    """What was promised or plainly stated and not written in this turn, or ``None``.

    ``known`` are normalised texts that are already remembered: saying them again needs no second save.
    """
    if wrote:
        return None
    statements = [s for s in classify(user_text) if normalise(s.text) not in known]
    claimed = claims_save(answer)
    if statements:
        first = statements[0]
        sentence = " ".join(s.text for s in statements if s.target == first.target) or first.text
        return SaveMissing(message_id, sentence, claimed, first.target)
    if claimed and user_text.strip():
        return SaveMissing(message_id, user_text.strip(), True, "")
    return None
