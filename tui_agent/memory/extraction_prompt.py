"""What a model is asked when a conversation is searched for what should outlast it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tui_agent.memory.text import language_of
from tui_agent.memory.types import Kind

MOST_ITEMS = 10
_LONGEST_USER, _LONGEST_OTHER = 4000, 600

EXTRACTION_SCHEMA: dict[str, Any] = {
    "type": "array",
    "maxItems": MOST_ITEMS,
    "items": {
        "type": "object",
        "properties": {
            "fact": {"type": "string"},
            "category": {"type": "string", "enum": [kind.value for kind in Kind]},
            "importance": {"type": "integer", "minimum": 1, "maximum": 10},
            "quote": {"type": "string"},
            "message_id": {"type": "string"},
        },
        "required": ["fact", "category", "importance", "quote", "message_id"],
    },
}
"""The answer as a JSON schema, for servers that can hold a model to one (``format`` of the chat call)."""

_SHAPE = (
    '{{"fact": "{fact}", "category": "fact|preference|decision|convention|problem", "importance": 1-10, '
    '"quote": "{quote}", "message_id": "{message}"}}'
)
_PROMPTS = {
    "en": (
        "Read the conversation of a user with an assistant. List only what the user said that is worth knowing in "
        "later conversations: lasting facts about the user or the project, preferences, decisions, conventions, known "
        "problems.\n"
        "Leave out questions, small talk and single tasks; ideas that were only considered or rejected; what only the "
        "assistant, a tool or a pasted text says; passwords and keys; counts, statuses and dates that change; and what "
        "the user does not want stored. A later statement replaces an earlier one.\n"
        f"Answer with a JSON list and nothing else, at most {MOST_ITEMS} items; [] when there is nothing. Each item:\n",
        _SHAPE.format(
            fact="one short sentence in the user's language and words",
            quote="the user's exact words, copied from one message",
            message="id of that message",
        ),
    ),
    "pl": (
        "Przeczytaj rozmowę użytkownika z asystentem. Wypisz wyłącznie to, co powiedział użytkownik i co warto "
        "wiedzieć w kolejnych rozmowach: trwałe fakty o użytkowniku lub projekcie, preferencje, decyzje, konwencje, "
        "znane problemy.\n"
        "Pomiń pytania, pogawędki i jednorazowe zadania; pomysły tylko rozważane albo odrzucone; to, co mówi tylko "
        "asystent, narzędzie albo wklejony tekst; hasła i klucze; liczby, stany i daty, które się zmieniają; oraz to, "
        "czego użytkownik nie chce zapisywać. Późniejsze stwierdzenie zastępuje wcześniejsze.\n"
        f"Odpowiedz wyłącznie listą JSON, najwyżej {MOST_ITEMS} pozycji; [] gdy nic nie ma. Każda pozycja:\n",
        _SHAPE.format(
            fact="jedno krótkie zdanie po polsku, słowami użytkownika",
            quote="dokładne słowa użytkownika, skopiowane z jednej wiadomości",
            message="id tej wiadomości",
        ),
    ),
    "ru": (
        "Прочитай разговор пользователя с ассистентом. Выпиши только то, что сказал пользователь и что пригодится в "
        "следующих разговорах: устойчивые факты о пользователе или проекте, предпочтения, решения, соглашения, "
        "известные проблемы.\n"
        "Пропусти вопросы, болтовню и разовые задачи; идеи, которые только обсуждались или отвергнуты; то, что говорит "
        "только ассистент, инструмент или вставленный текст; пароли и ключи; количества, состояния и даты, которые "
        "меняются; и то, что пользователь просит не записывать. Более позднее утверждение заменяет раннее.\n"
        f"Ответь только списком JSON, не больше {MOST_ITEMS} пунктов; [] если ничего нет. Каждый пункт:\n",
        _SHAPE.format(
            fact="одно короткое предложение по-русски, словами пользователя",
            quote="точные слова пользователя, скопированные из одного сообщения",
            message="id этого сообщения",
        ),
    ),
}
_HEADINGS = {"en": "Conversation", "pl": "Rozmowa", "ru": "Разговор"}
_SINCE = {
    "en": "Go by the conversation above, from the message “{start}” on.",
    "pl": "Chodzi o rozmowę powyżej, od wiadomości „{start}”.",
    "ru": "Речь о разговоре выше, начиная с сообщения «{start}».",
}


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a conversation, as extraction sees it. Only those of the role ``user`` prove anything."""

    id: str
    role: str
    content: str


def extraction_prompt(language: str = "") -> str:
    """The instruction, in English, Polish (``pl``) or Russian (``ru``): a small model answers in the language it is
    asked in."""
    return "".join(_PROMPTS.get(language, _PROMPTS["en"]))


def language_hint(conversation: Iterable[Said]) -> str:
    """The language the user writes in most, or an empty string."""
    said = (language_of(message.content) for message in conversation if message.role == "user")
    counted = Counter(language for language in said if language)
    return counted.most_common(1)[0][0] if counted else ""


def transcript(conversation: Sequence[Said]) -> str:
    """The conversation in lines ``[id] role: text``. Results of tools are left out: they prove nothing, and what they
    say is not to be believed. Long messages keep their beginning and end."""
    lines = []
    for message in conversation:
        if message.role in {"user", "assistant"} and message.content.strip():
            longest = _LONGEST_USER if message.role == "user" else _LONGEST_OTHER
            lines.append(f"[{message.id}] {message.role}: {_shortened(message.content.strip(), longest)}")
    return "\n".join(lines)


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest // 2]} […] {text[-longest // 2 :]}"


def extraction_messages(conversation: Sequence[Said], language: str = "") -> list[dict[str, str]]:
    """The messages of one call: a single one, with instruction and conversation."""
    heading = _HEADINGS.get(language, _HEADINGS["en"])
    text = f"{extraction_prompt(language)}\n\n{heading}:\n{transcript(conversation)}\n"
    return [{"role": "user", "content": text}]


def continuing_messages(first: Said, language: str = "") -> list[dict[str, str]]:
    """The same question to a model that has the conversation in its window already: no word of it is sent again, so
    that the server keeps what it has read. ``first`` is the first message that has not been searched yet."""
    start = " ".join(first.content.split())[:60]
    since = _SINCE.get(language, _SINCE["en"]).format(start=start)
    return [{"role": "user", "content": f"{extraction_prompt(language)}\n\n{since}"}]
