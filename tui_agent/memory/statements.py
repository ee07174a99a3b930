"""What a user's message plainly states: deterministic reading of English, Polish and Russian, without a model.

It serves three ends: the promise check asks whether something was said that should have been kept; the gate asks what
a proposed text is (a decision, a preference, small talk, the state of a build, somebody else's words); and a lasting
statement gets its kind, place and shelf life. The patterns are data: ``statement_words_en``, ``_pl``, ``_ru``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from tui_agent.memory.secrets import has_secret
from tui_agent.memory.statement_judge import judge, statement_of
from tui_agent.memory.statement_lexicon import Lexicon, lexicon
from tui_agent.memory.statement_reading import Sentence, sentences, without_secrets
from tui_agent.memory.statement_types import (
    FACT,
    LEARNED,
    PREFERENCES,
    RULES,
    STACK,
    USER,
    Judged,
    Label,
    Statement,
)
from tui_agent.memory.text import words
from tui_agent.memory.types import Kind

__all__ = [
    "FACT", "LEARNED", "PREFERENCES", "RULES", "STACK", "USER", "Judged", "Label", "Statement",
    "claims_save", "classify", "on_record", "read",
]  # fmt: skip

_MOST_SENTENCES, _LONGEST_SENTENCE = 300, 800


def classify(text: str, *, now: datetime | None = None) -> tuple[Statement, ...]:
    """What ``text`` plainly states that is worth keeping, in order; empty when in doubt, and for whatever the user
    wants to be off the record. Clauses that hold a secret are left out; the places are then those in what is left."""
    judged = read(text, now=now)
    if any(item.statement is not None for item in judged) and has_secret(text):
        judged = read(without_secrets(text), now=now)
    return tuple(item.statement for item in on_record(judged) if item.statement is not None)


def on_record(judged: Sequence[Judged]) -> list[Judged]:
    """The sentences of one message that may be stored: all, unless the user said not to store it; then those in which
    the user says what may be stored all the same."""
    off = next((number for number, item in enumerate(judged) if item.label is Label.OFF_RECORD), None)
    if off is None:
        return list(judged)
    return [item for item in judged[off + 1 :] if item.told and item.label is not Label.OFF_RECORD]


def read(text: str, *, now: datetime | None = None) -> tuple[Judged, ...]:
    """Every own sentence of ``text``, judged. ``now`` is for statements such as "until Friday"."""
    moment = now or datetime.now(timezone.utc)
    result: list[Judged] = []
    found = sentences(text)
    if len(found) > _MOST_SENTENCES:  # such a text is pasted; what the user says stands at its ends
        found = found[: _MOST_SENTENCES // 2] + found[-_MOST_SENTENCES // 2 :]
    for sentence in found:
        if sentence.end - sentence.start > _LONGEST_SENTENCE:
            result.append(Judged(sentence, Label.PLAIN))
            continue
        for part in _parts(sentence, moment):
            _add(result, part, moment, text)
    return tuple(result)


def claims_save(answer: str) -> bool:
    """Whether an assistant's answer says that something was saved, noted or will be remembered."""
    for sentence in sentences(answer):
        for language in _answer_languages(sentence):
            patterns = lexicon(language)
            claim = patterns.save_claim.search(sentence.plain)
            if (
                claim is not None
                and not patterns.save_denial.search(sentence.plain[: claim.end()])
                and not sentence.plain.endswith("?")
            ):
                return True
    return False


def _answer_languages(sentence: Sentence) -> tuple[str, ...]:
    return sentence.languages if len(sentence.text.split()) > 4 or "ru" in sentence.languages else ("en", "pl")


# --- one sentence after another -------------------------------------------------------------------

_CLAUSE = re.compile(
    r"(?:,| and| but| oraz| ale| i| и| а| но|;)+ (?=(?:and |but |i |a |ale |oraz |и |а |но )*"
    r"(?:I|I'm|I'd|my|please|wolę|lubię|jestem|mam|mieszkam|я|мне|предпочитаю|люблю|живу|отвечай|odpowiadaj)\b)"
)


def _parts(sentence: Sentence, now: datetime) -> list[Sentence]:
    """The sentence, or its halves when each of them states something else ("My name is Kacper and I prefer pnpm")."""
    for cut in _CLAUSE.finditer(sentence.text):
        left, right = sentence.text[: cut.start()].rstrip(" ,;"), sentence.text[cut.end() :]
        halves = [sentences(left), sentences(right)]
        if any(len(half) != 1 for half in halves):
            continue
        moved = [
            replace(
                half[0],
                start=sentence.start + offset + half[0].start,
                end=sentence.start + offset + half[0].end,
                languages=sentence.languages,
            )
            for half, offset in zip(halves, (0, cut.end()), strict=True)
        ]
        judged = [judge(half, None, now) for half in moved]
        if (
            all(item.statement for item in judged)
            and len({item.statement.target for item in judged if item.statement}) == 2
        ):
            return moved
    return [sentence]


def _add(result: list[Judged], sentence: Sentence, now: datetime, text: str) -> None:
    previous = result[-1] if result else None
    judged = judge(sentence, previous, now)
    if judged.label is Label.SAVE_COMMAND and previous is not None:
        kept = previous.statement or _plain_statement(previous)
        if kept is not None:
            if _any(sentence, lambda lex: lex.to_rules):
                kept = replace(kept, target=RULES, kind=Kind.CONVENTION, importance=7)
            result[-1] = replace(previous, label=Label.STATEMENT, statement=kept)
    elif (
        judged.label is Label.FOLLOW_UP
        and previous is not None
        and previous.label not in {Label.OFF_RECORD, Label.REPORTED}
    ):
        # "You keep apologising in every reply. Stop doing that." is one statement.
        start, end = previous.sentence.start, sentence.end
        statement = Statement(
            text[start:end], Kind.PREFERENCE, LEARNED, start, end, importance=7, why="correction of behaviour"
        )
        result[-1] = replace(previous, label=Label.STATEMENT, statement=statement)
        return
    elif (
        previous is not None
        and previous.statement is not None
        and previous.statement.target == LEARNED
        and judged.label in {Label.PLAIN, Label.COMMAND, Label.TASK}
        and len(words(sentence.plain)) <= 6
    ):
        # "Once more you paste the whole file. The diff is enough."
        longer = replace(previous.statement, text=text[previous.statement.start : sentence.end], end=sentence.end)
        result[-1] = replace(previous, statement=longer)
        return
    result.append(judged)


def _plain_statement(item: Judged) -> Statement | None:
    """What an otherwise unremarkable sentence states once the user asks to keep it."""
    if item.label not in {Label.PLAIN, Label.COMMAND, Label.TASK}:
        return None
    own = _any(item.sentence, lambda lex: lex.first_singular)
    return statement_of(item.sentence, Kind.FACT, USER if own else FACT, importance=6, why="the user asked to keep it")


def _any(sentence: Sentence, pick: Callable[[Lexicon], re.Pattern[str]]) -> bool:
    return any(pick(lexicon(language)).search(sentence.plain) for language in sentence.languages)
