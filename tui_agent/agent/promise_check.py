"""The promise check's second half: the model is asked which of the user's words to keep, and what is proved is kept.

Deterministic code has decided that there is something to ask about. The model only points at words; they count where
they stand in the user's message, and the gate decides on them as on any other proposal.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tui_agent.agent.asking import Asking, Reply, room_for
from tui_agent.agent.events import MemoryChanged, SaveMissing
from tui_agent.agent.promises import check, is_known
from tui_agent.agent.tools.memory_tools import verdict_event
from tui_agent.memory.extraction_parse import json_values
from tui_agent.memory.proof import find_proof, find_quote
from tui_agent.memory.statement_reading import without_secrets
from tui_agent.memory.statements import Label, Statement, classify, read
from tui_agent.memory.text import STOPWORDS, fold, language_of, words
from tui_agent.memory.types import Action, Origin, Proposal, Verdict

if TYPE_CHECKING:
    from tui_agent.agent.core import Core

log = logging.getLogger(__name__)

_KEPT = (Action.LIVE, Action.TOUCH)
_MOST_QUOTES = 12
_LONGEST = 1_200
_MARKED = re.compile(r"[“„\"«]([^“”„\"«»\n]{2,400})[”“\"»]")

_REQUESTS = {
    "en": (
        "Do not answer and call no tool now; this is a check of what to remember. From my words below copy each "
        "lasting statement, word for word: about me, what I want from you, the project, its rules, decisions and "
        "problems. Leave out questions and one-time tasks. Answer with a JSON list of strings only.\n\n"
        "Words: Hi! I'm Oda. How do I sort a list? Be brief when you answer.\n"
        'JSON: ["I\'m Oda.", "Be brief when you answer."]\n\n'
        "Now copy only from these words: {text}\n"
        "JSON:"
    ),
    "pl": (
        "Nie odpowiadaj i nie wywołuj teraz narzędzi; to sprawdzenie, co zapamiętać. Z moich słów poniżej przepisz "
        "słowo w słowo każde trwałe stwierdzenie: o mnie, czego od ciebie chcę, o projekcie, jego zasadach, decyzjach "
        "i problemach. Pomiń pytania i jednorazowe zadania. Odpowiedz tylko listą JSON z tekstami.\n\n"
        "Słowa: Cześć! Jestem Oda. Jak posortować listę? Odpowiadaj zwięźle.\n"
        'JSON: ["Jestem Oda.", "Odpowiadaj zwięźle."]\n\n'
        "Teraz przepisuj tylko z tych słów: {text}\n"
        "JSON:"
    ),
    "ru": (
        "Не отвечай и не вызывай сейчас инструменты; это проверка, что запомнить. Из моих слов ниже перепиши слово в "
        "слово каждое постоянное утверждение: обо мне, чего я от тебя хочу, о проекте, его правилах, решениях и "
        "проблемах. Пропусти вопросы и разовые задачи. Ответь только списком JSON из строк.\n\n"
        "Слова: Привет! Я Ода. Как отсортировать список? Отвечай кратко.\n"
        'JSON: ["Я Ода.", "Отвечай кратко."]\n\n'
        "Теперь переписывай только из этих слов: {text}\n"
        "JSON:"
    ),
}


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a check: the changes of memory, and what is missing all the same."""

    changes: tuple[MemoryChanged, ...] = ()
    missing: SaveMissing | None = None


def request_for(text: str) -> str:
    """The question about one message, in its language, without secrets. Of a long message the parts that state
    something are shown."""
    text = without_secrets(text)
    shown = " ".join(text.split())
    if len(shown) > _LONGEST:
        shown = " ".join(" ".join(each.text.split()) for each in classify(text))[:_LONGEST] or shown[:_LONGEST]
    return _REQUESTS.get(language_of(text), _REQUESTS["en"]).format(text=shown)


async def missing_after(core: Core, message_id: str, text: str, answer: str, *, wrote: bool) -> SaveMissing | None:
    """What of a message should have been saved by the turn and was not; see :func:`promises.check`."""

    def look() -> SaveMissing | None:
        known, fresh = _known(core, message_id)
        return check(message_id, text, answer, wrote=wrote, known=known, fresh=fresh)

    found: SaveMissing | None = await core.db.run(look)
    return found


def worth_asking(text: str) -> bool:
    """Whether anything in a message could be kept at all; of questions, orders and states of the world nothing is."""
    return any(each.statement is not None or each.label is Label.PLAIN for each in read(text))


async def settle(core: Core, asking: Asking, missing: SaveMissing, text: str, answer: str) -> Settled:
    """Ask the model for quotes from ``text`` and keep what is proved; the rest stays missing.

    ``answer`` is what the model has said, ``missing`` what code found missing after it.
    """
    kept = await _ask(core, asking, missing.message_id, text)
    if not kept:
        return Settled((), missing)
    await core.facts_changed("The app saved what the user said: " + "; ".join(verdict.text for verdict in kept))
    left = await missing_after(core, missing.message_id, text, answer, wrote=True)
    return Settled(tuple(verdict_event(verdict) for verdict in kept), left)


def _known(core: Core, message_id: str) -> tuple[Collection[str], list[str]]:
    """Normalised texts of all that is live, and what the rows from one message say. On the database's thread."""
    rows = core.stores.facts.of_message(message_id)
    return core.stores.known.read(), [f"{row.fact}\n{row.quote}\n{row.target_line}" for row in rows]


async def _ask(core: Core, asking: Asking, message_id: str, text: str) -> list[Verdict]:
    """What of the words that the model points at is remembered now.

    The request is the conversation as it was last sent, and the question behind it. Nothing is written when the model
    fails, is stopped or points at nothing.
    """
    question = request_for(text)
    if not room_for(core, question):
        return []
    messages = [*core.prompt.messages(), {"role": "user", "content": question}]
    reply = await asking.run(messages, tools=core.prompt.tools)
    log.debug("%s: %s %s", reply.end, reply.text, [call.arguments for call in reply.calls])
    if reply.end != "done":
        return []
    kept: list[Verdict] = []
    quotes = quotes_of(reply)
    made = await core.db.run(lambda: proposals(message_id, text, quotes, *_known(core, message_id)))
    for proposal in made:
        # What the gate would refuse or keep waiting is not handed in: the user is asked about it by key anyway.
        if (await core.db.run(core.stores.gate.decide, proposal)).action in _KEPT:
            verdict = await core.db.run(core.stores.gate.admit, proposal)
            kept += [verdict] if verdict.action in _KEPT else []
    return kept


def quotes_of(reply: Reply) -> list[str]:
    """The texts a reply points at: strings of its JSON, arguments of calls it should not have made, marked words."""
    found: list[str] = [text for call in reply.calls for text in _strings(call.arguments)]
    for value in json_values(reply.text):
        found += _strings(value)
    if not found:
        found = [match[1] for match in _MARKED.finditer(reply.text)]
    return list(dict.fromkeys(text.strip() for text in found if text.strip()))[:_MOST_QUOTES]


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield from (line for line in value.splitlines() if line.strip())
    elif depth < 5 and isinstance(value, (list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each, depth + 1)


def proposals(
    message_id: str, text: str, quotes: Collection[str], known: Collection[str] = (), fresh: Collection[str] = ()
) -> list[Proposal]:
    """What to hand to the gate for the words a model pointed at.

    A statement that code reads in the message too is taken whole, with its own place. Other words count only where
    they stand in the message word for word, and no reading of theirs speaks against it.
    """
    text = without_secrets(text)
    statements = [each for each in classify(text) if not is_known(each, known, fresh)]
    made: dict[str, Proposal] = {}
    for quote in map(without_secrets, quotes):
        span = find_quote(quote, text) or _proof(quote, text)
        if span is None or not _says_something(text[span[0] : span[1]]):
            continue
        hit = [each for each in statements if each.start < span[1] and each.end > span[0]]
        for statement in hit:
            made.setdefault(statement.text, _proposal(message_id, text, statement.text, statement))
        if not hit and not statements and _plain(text[span[0] : span[1]]):
            made.setdefault(quote, _proposal(message_id, text, text[span[0] : span[1]], None))
    return list(made.values())


def _proposal(message_id: str, message: str, text: str, statement: Statement | None) -> Proposal:
    return Proposal(
        text=text,
        origin=Origin.MODEL,
        proposer="promise_check",
        source=f"message {message_id}",
        kind=statement.kind if statement is not None else None,
        quote=text,
        user_text=message,
        message_id=message_id,
        target=statement.target if statement is not None else "",
    )


def _proof(quote: str, text: str) -> tuple[int, int] | None:
    """Where the message proves words that were not copied to the letter."""
    proof = find_proof(quote, text)
    at = text.find(proof) if proof else -1
    return (at, at + len(proof)) if proof and at >= 0 else None


def _says_something(text: str) -> bool:
    return any(word not in STOPWORDS for word in words(fold(text)))


def _plain(text: str) -> bool:
    """Whether nothing in these words is a question, an order, thinking aloud, or somebody else's."""
    return all(each.label in (Label.PLAIN, Label.STATEMENT) for each in read(text))
