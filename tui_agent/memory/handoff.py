"""Hand-off packets: what another agent needs to go on, as conclusions, in about 50 tokens.

A packet holds what was decided, never how: a conversation in it would make its reader work out again, and perhaps
differently, what the user has decided already.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from tui_agent.memory.secrets import has_secret
from tui_agent.memory.text import normalise
from tui_agent.memory.working_types import estimate_tokens

AIM_TOKENS, MOST_TOKENS = 50, 200
MOST_REQUIREMENTS, LONGEST = 12, 240

# --- what is dialogue -----------------------------------------------------------------------------

_WHO = (
    r"(?:user|human|assistant|ai|agent|bot|system|me|you|customer|client|"
    r"użytkowni(?:k|czka)|asystent(?:ka)?|klient(?:ka)?|ja|ty|"
    r"пользователь|ассистент|помощник|клиент|я|ты|вы)"
)
_SPEAKER = re.compile(
    rf"(?:^|\n|\\n)\s*(?:[-*>•]\s*)?(?:[*_(]*{_WHO}[*_)]*\s*[:：]|[\[<]+/?{_WHO}[\]>]+)",
    re.IGNORECASE,
)
_SPEAKER_INSIDE = re.compile(
    r"(?:[.!?…]|^)\s*(?:user|human|assistant|użytkownik|asystent|пользователь|ассистент)\s*[:：]", re.IGNORECASE
)
_MESSAGE_JSON = re.compile(r"[\"']role[\"']\s*:|<\|(?:im_start|user|assistant|system)|\[/?INST\]", re.IGNORECASE)
_CLOCK = re.compile(r"(?:^|\n)\s*[\[(]?\d{1,2}:\d{2}(?::\d{2})?[\])]?\s+\w+")
_MUSING = re.compile(
    r"\b(?:what if|maybe we (?:could|should)|should we|shall we|i wonder|let me think|thinking out loud|"
    r"on second thought|hmm+|wait,|"
    r"actually,? no|never ?mind|a może|a gdyby|co jeśli|może by|może jednak|zastanawiam się|albo nie|czekaj|"
    r"а что если|а если|может(?: быть)?,? (?:стоит|добав|сдела)|давай подума|хотя нет|подожди|погоди|я думаю,? может)",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:the user|user|he|she|they|i|you) (?:then )?(?:said|asked|replied|answered|wrote|told|mentioned)\b|"
    r"\b(?:użytkownik|klient) (?:powiedział|zapytał|napisał|odpowiedział)|"
    r"(?<!\w)(?:пользователь|клиент) (?:сказал|спросил|написал|ответил)",
    re.IGNORECASE,
)


def dialogue_in(text: str) -> str:
    """Why a text is dialogue and no conclusion, as the end of a sentence; empty when it is none."""
    if _SPEAKER.search(text) or _SPEAKER_INSIDE.search(text):
        return "names who speaks"
    if _MESSAGE_JSON.search(text):
        return "holds messages"
    if _CLOCK.search(text):
        return "holds times of a conversation"
    if "?" in text or "？" in text:
        return "asks a question"
    if _MUSING.search(text):
        return "is thinking aloud"
    if _REPORTED.search(text):
        return "tells who said what"
    if text.count("\n") > 2:
        return "runs over several lines"
    return ""


def _one_conclusion(text: str) -> str:
    text = " ".join(text.split()) if "\n" not in text.strip() else text.strip()
    if not text:
        raise ValueError("it is empty")
    if reason := dialogue_in(text):
        raise ValueError(f"it {reason}; write the conclusion instead, such as “exclude archived items”")
    if len(text) > LONGEST:
        raise ValueError(f"it has {len(text)} characters; a conclusion has at most {LONGEST}")
    if has_secret(text):
        raise ValueError("it holds a password, key or token")
    return " ".join(text.split())


Conclusion = Annotated[str, AfterValidator(_one_conclusion)]


class HandoffRefused(ValueError):
    """The packet is not one; ``str(error)`` says which part, why, and what to write instead."""


class Handoff(BaseModel):
    """A packet. ``constraints_confirmed_by_user`` is true only when the user has seen these requirements and said yes
    to them; whatever reads a packet from outside sets it to false first."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: Conclusion
    requirements: tuple[Conclusion, ...] = Field(default=(), max_length=MOST_REQUIREMENTS)
    format: str = ""
    constraints_confirmed_by_user: bool = False

    @field_validator("requirements", mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("requirements")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        first: dict[str, str] = {}
        for text in value:
            first.setdefault(normalise(text), text)
        return tuple(first.values())

    @field_validator("format")
    @classmethod
    def _short_format(cls, value: str) -> str:
        return _one_conclusion(value) if value.strip() else ""

    @property
    def tokens(self) -> int:
        """Tokens of the packet as JSON, estimated."""
        return estimate_tokens(self.text())

    def text(self, indent: int | None = None) -> str:
        """The packet as JSON, in the order of its fields."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, indent=indent)

    def confirmed(self, by_user: bool) -> Handoff:
        """The packet with the user's answer to "are these requirements right?"."""
        return self.model_copy(update={"constraints_confirmed_by_user": by_user})


def packet(data: object, *, transcript: Iterable[str] = ()) -> Handoff:
    """A packet from plain data (or JSON text), unconfirmed whatever it says about that.

    ``transcript`` are the messages of the conversation it is from: a part that copies a long stretch of one is none.

    Raises:
        HandoffRefused: an unknown key, a missing or wrong part, dialogue, a secret, or far too many tokens.
    """
    if isinstance(data, (str, bytes)):
        try:
            data = json.loads(data)
        except ValueError as error:
            raise HandoffRefused(f"The packet is not JSON ({error}).") from None
    if not isinstance(data, dict):
        raise HandoffRefused("The packet must be one JSON object with task, requirements and format.")
    try:
        made = Handoff.model_validate(data).confirmed(False)
    except ValidationError as error:
        raise HandoffRefused(_explained(error)) from None
    copied = copied_from(made, transcript)
    if copied:
        raise HandoffRefused(f"“{_short(copied)}” is copied from the conversation; write its conclusion.")
    if made.tokens > MOST_TOKENS:
        raise HandoffRefused(
            f"The packet has about {made.tokens} tokens; {AIM_TOKENS} are meant and {MOST_TOKENS} the most. Keep what "
            "the next agent cannot find out by itself."
        )
    return made


def copied_from(made: Handoff, transcript: Iterable[str], run: int = 16) -> str:
    """The part of a packet that repeats ``run`` or more words of a message in a row, or an empty string.

    A user's own short sentence may stand as it is: it is a conclusion already.
    """
    said = [f" {normalise(message)} " for message in transcript]
    for part in (made.task, *made.requirements, made.format):
        words = normalise(part).split()
        for start in range(len(words) - run + 1):
            stretch = f" {' '.join(words[start : start + run])} "
            if any(stretch in message for message in said):
                return part
    return ""


def _explained(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in first["loc"]) or "the packet"
    if first["type"] == "extra_forbidden":
        allowed = ", ".join(Handoff.model_fields)
        return f"“{place}” does not belong into a packet; it holds {allowed} and nothing else."
    if first["type"] == "missing":
        return f"The packet has no “{place}”."
    if first["type"] == "too_long":
        return f"There are more than {MOST_REQUIREMENTS} requirements; keep those that decide."
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"“{place}” cannot be handed on: {message}."


def _short(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
