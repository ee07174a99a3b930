"""What of a model's answer is the user's own: each item needs a quote that stands in a message of the user."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tui_agent.memory.extraction_parse import ExtractedItem
from tui_agent.memory.extraction_prompt import MOST_ITEMS, Said
from tui_agent.memory.proof import MESSAGE_BREAK, find_quote, grounded
from tui_agent.memory.statement_reading import Sentence, own_spans, sentences
from tui_agent.memory.statements import Label, read
from tui_agent.memory.text import fold, language_of, normalise
from tui_agent.memory.types import Action, Origin, Proposal, Verdict

_FEW_WORDS = 3
_READS_WRONGLY = {Label.COMMAND.value, Label.TASK.value, Label.THIRD_PARTY.value, Label.REPORTED.value}
_CYRILLIC, _LATIN = re.compile("[\u0400-\u04ff]"), re.compile("[a-zà-ž]", re.IGNORECASE)
# Folded: "What you can store is …", "A zapisać możesz, że …", "А вот что запомни: …".
_MAY_BE_KEPT = re.compile(
    r"\b(?:remember|store|save|note|keep|zapamieta|zapisa|zapisz|zanotuj|запомн|запиш|записа|сохран)"
)
_ASKS = re.compile(
    r"^(?:(?:please|ok|okay|and|also|so|but|prosze|i|a|oraz|tez|ale|no|пожалуиста|и|а|но|ну|также|еще),?\s+)*"
    r"(?:(?:please\s+)?(?:remember|don'?t forget|do not forget|keep in mind|bear in mind|make a note|take a note|note)"
    r"(?:\s+(?:that|this|for (?:me|later|next time|the future)))*"
    r"|(?:save|store|write)\s+(?:this|that|it|down)(?:\s+(?:down|that))?"
    r"|(?:zapamietaj|pamietaj|zanotuj|zapisz)(?:\s+(?:sobie|prosze|to))*(?:,?\s*ze\b)?"
    r"|(?:запомни|запомните|запиши|запишите|помни|помните|учти|учтите|имеи в виду|имеите в виду)"
    r"(?:\s+(?:себе|пожалуиста|это))*(?:,?\s*что\b)?)\b[\s,:–—-]*"
)


# Folded. "This project is …" names its subject, "this is …" does not; "on Fridays" is no Polish "on".
_NAMELESS = {
    "en": re.compile(
        r"(?:it|he|she|they)(?:'(?:s|ll|d|re|ve))?\b|(?:this|that|these|those)(?:'(?:s|ll|d|re|ve)\b|\s+(?:is|are|was|were|"
        r"must|should|has|have|will|would|can|needs?|stays?|runs?|goes|go)\b)"
    ),
    "pl": re.compile(r"(?:on|ona|ono|oni)\b"),
    "ru": re.compile(r"(?:он|она|оно|они)\b"),
}


@dataclass(frozen=True, slots=True)
class Dropped:
    """An item that is not kept, the reason as a sentence, and a stable word for it."""

    item: ExtractedItem
    reason: str
    rule: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A sentence in which the user asks to remember something, and what that is."""

    message_id: str
    sentence: str
    what: str


def conversation_of(messages: Iterable[Mapping[str, Any] | Said]) -> list[Said]:
    """Messages as ``{"role", "id", "content"}`` mappings or already in shape."""
    return [
        message
        if isinstance(message, Said)
        else Said(str(message.get("id", "")), str(message.get("role", "")), str(message.get("content", "")))
        for message in messages
    ]


def ground(
    items: Sequence[ExtractedItem],
    conversation: Iterable[Mapping[str, Any] | Said],
    *,
    quotable: Collection[str] | None = None,
    limit: int = MOST_ITEMS,
) -> tuple[list[ExtractedItem], list[Dropped]]:
    """The items that the user's messages prove, and the others with the reason.

    ``quote`` must stand in a message of the user, fenced blocks and ``>`` lines left out (without a quote the fact
    itself must); the id of the message is repaired. Every number, identifier and proper name of the fact and at least
    half of its content words must occur in the user's messages. A fact in another language than the user's, or one that
    begins with "it", gives way to the user's own words. The same item is kept once; of more than ``limit`` the most
    important. ``quotable`` are ids of the messages that a quote may come from. Kept items come in the order of the
    messages they are proved by.
    """
    said = conversation_of(conversation)
    users = [message for message in said if message.role == "user"]
    order = {message.id: place for place, message in enumerate(said)}
    sources = [message for message in users if quotable is None or message.id in quotable]
    kept: list[ExtractedItem] = []
    dropped: list[Dropped] = []
    seen: set[str] = set()
    for item in items:
        place = _placed(item, sources)
        if place is None:
            reason = "Its quote is not in the user's messages." if item.quote else "Nothing the user wrote says this."
            dropped.append(Dropped(item, reason, "quote"))
            continue
        message, start, end = place
        found = replace(item, quote=message.content[start:end], message_id=message.id)
        if _off_record(message.content, start, end):
            dropped.append(Dropped(found, "The user asked for this not to be stored.", "off_record"))
            continue
        if _other_language(item.fact, message.content[start:end], message.content):
            found = replace(found, fact=_own_words(message.content, start, end))
        elif not _supported(item.fact, message, users, found.quote):
            dropped.append(Dropped(found, "It says more than the user's messages do.", "unsupported"))
            continue
        if _nameless(found.fact, message.content):
            whole = _with_what_is_meant(message.content, start, end)
            if not whole:
                dropped.append(Dropped(found, "It does not say what it is about.", "nameless"))
                continue
            found = replace(found, fact=" ".join(whole.split()), quote=whole)
        key = normalise(found.fact)
        if key in seen:
            dropped.append(Dropped(found, "It is in the list already.", "duplicate"))
            continue
        seen.add(key)
        kept.append(found)
    if len(kept) > limit:
        best = sorted(range(len(kept)), key=lambda n: (-kept[n].importance, n))
        chosen = set(best[:limit])
        reason = f"A session keeps at most {MOST_ITEMS} items; others mattered more."
        dropped += [Dropped(kept[n], reason, "cap") for n in sorted(best[limit:])]
        kept = [item for n, item in enumerate(kept) if n in chosen]
    return sorted(kept, key=lambda item: order[item.message_id]), dropped


def _placed(item: ExtractedItem, sources: Sequence[Said]) -> tuple[Said, int, int] | None:
    """The message and the span that prove an item: by its quote, else by the fact itself; the message it names first,
    then the newest."""
    newest_first = list(reversed(sources))
    ranked = sorted(newest_first, key=lambda message: message.id != item.message_id)
    for wanted in (item.quote, item.fact):
        for message in ranked if wanted else ():
            span = find_quote(wanted, message.content)
            if span is not None:
                return message, *span
    return None


def _supported(fact: str, message: Said, users: Sequence[Said], quote: str) -> bool:
    """Whether the user said the fact itself, or all its numbers and names and half of its words."""
    if find_quote(fact, message.content) is not None:
        return True
    return grounded(fact, [message.content, *(other.content for other in _same_language(message, users))], quote)


def _same_language(message: Said, users: Iterable[Said]) -> list[Said]:
    """What else the user said in the language of a message: words of another one prove nothing about its own."""
    language = language_of(message.content)
    others = [other for other in users if other.role == "user" and other.id != message.id]
    return [other for other in others if not language or language_of(other.content) in ("", language)]


def _off_record(text: str, start: int, end: int) -> bool:
    """Whether a span is off the record. In a message with such a sentence only those count that may expressly stay."""
    readings = read(text)
    if not any(each.label is Label.OFF_RECORD for each in readings):
        return False
    around = [each for each in readings if each.sentence.start < end and each.sentence.end > start]
    return not around or any(
        each.label is Label.OFF_RECORD or not _MAY_BE_KEPT.search(fold(each.sentence.text)) for each in around
    )


def _other_language(fact: str, quote: str, message: str) -> bool:
    if bool(_CYRILLIC.search(fact)) != bool(_CYRILLIC.search(quote)) and not (
        _LATIN.search(fact) and _LATIN.search(quote)
    ):
        return True
    written, meant = language_of(fact), language_of(quote) or language_of(message)
    return bool(written and meant and written != meant)


def _own_words(text: str, start: int, end: int) -> str:
    """The quote, or the sentence around it when it is too short to say anything by itself."""
    if len(text[start:end].split()) >= _FEW_WORDS:
        return " ".join(text[start:end].split())
    around = _sentence_at(text, start, end)
    return " ".join((text[start:end] if around is None else text[around.start : around.end]).split())


def _nameless(fact: str, message: str) -> bool:
    """Whether a fact begins with a pronoun, so that nobody can tell later what it is about."""
    pattern = _NAMELESS.get(language_of(message) or language_of(fact) or "en")
    return pattern is not None and pattern.match(fold(fact)) is not None


def _with_what_is_meant(text: str, start: int, end: int) -> str:
    """The user's words around a span that begins with a pronoun, back to a sentence that names what it is about; empty
    when the two sentences before it do not."""
    found = sentences(text)
    last = next((place for place, each in enumerate(found) if each.start < end and each.end > start), None)
    if last is None:
        return ""
    for first in range(last, max(-1, last - 3), -1):
        whole = text[found[first].start : found[last].end].strip()
        if text[found[first].start : found[first].end].rstrip().endswith("?") or "\n\n" in whole:
            return ""
        if not _nameless(whole, text):
            return whole
    return ""


def _sentence_at(text: str, start: int, end: int) -> Sentence | None:
    return next((each for each in sentences(text) if each.start < end and each.end > start), None)


# --- for the gate ---------------------------------------------------------------------------------


class Decides(Protocol):
    """The gate, as far as extraction needs it."""

    def decide(self, proposal: Proposal) -> Verdict: ...

    def admit(self, proposal: Proposal) -> Verdict: ...


def judged(gate: Decides, item: ExtractedItem, conversation: Sequence[Said], source: str) -> Proposal:
    """The item as the proposal to admit: in the model's words, or in the user's own when the gate takes those instead.

    What a model makes of a wish ("Show diffs") may read like an order, or like a statement about somebody else.
    """
    proposal = proposal_for(item, conversation, source)
    verdict = gate.decide(proposal)
    if verdict.action is not Action.QUARANTINE or verdict.rule not in _READS_WRONGLY:
        return proposal
    for message in conversation:
        span = find_quote(item.quote, message.content) if message.id == item.message_id else None
        if span is None:
            continue
        around = _sentence_at(message.content, *span)
        sentence = item.quote if around is None else message.content[around.start : around.end]
        for text in (item.quote, sentence):
            own = replace(proposal, text=" ".join(text.split()), quote=text)
            if gate.decide(own).action in (Action.LIVE, Action.TOUCH):
                return own
    return proposal


def proposal_for(item: ExtractedItem, conversation: Sequence[Said], source: str) -> Proposal:
    """A grounded item as something that wants to be remembered.

    The user's evidence is the message of its quote, followed by what else the user said: a correction like "no, with
    nox" means nothing without what was said before. What is off the record is no evidence.
    """
    parts: list[str] = []
    for message in conversation:
        if message.id == item.message_id:
            parts = [_evidence(message.content, item.quote)]
            parts += [_evidence(other.content, "") for other in _same_language(message, conversation)]
    return Proposal(
        text=item.fact,
        origin=Origin.MODEL,
        proposer="extraction",
        source=source,
        kind=item.kind,
        importance=item.importance if item.rated else None,
        subject=item.subject,
        quote=item.quote,
        user_text=MESSAGE_BREAK.join(part for part in parts if part.strip()),
        message_id=item.message_id or None,
    )


def _evidence(text: str, quote: str) -> str:
    """A message's own lines. One that is partly off the record counts only with the quote that may be kept."""
    if any(each.label is Label.OFF_RECORD for each in read(text)):
        return quote
    return "\n".join(text[low:high].strip() for low, high in own_spans(text))


# --- what the user asked for ----------------------------------------------------------------------


def asked_to_remember(conversation: Iterable[Said]) -> list[Asked]:
    """The sentences of the user that ask to remember something: "Remember that …", "Zapamiętaj, że …", "Запомни: …"."""
    found = []
    for message in conversation:
        if message.role != "user":
            continue
        for sentence in sentences(message.content):
            text = message.content[sentence.start : sentence.end].strip()
            if text.endswith("?"):
                continue
            match = _ASKS.match(fold(text))
            # Folding may change the length of a text, so what is asked for is counted from its end.
            what = text[len(text) - (len(fold(text)) - match.end()) :].strip() if match else ""
            if len(re.findall(r"\w+", what)) > 1:
                found.append(Asked(message.id, text, what))
    return found


def covers(quote: str, sentence: str) -> bool:
    """Whether a quote and a sentence are about the same words: one stands in the other."""
    one, other = normalise(quote), normalise(sentence)
    return bool(one and other) and (one in other or other in one)
