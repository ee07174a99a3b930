"""What a model is asked when a conversation is searched for what should outlast it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tui_agent.memory.statements import Label, read
from tui_agent.memory.text import language_of
from tui_agent.memory.types import Kind

MOST_ITEMS = 10
_LONGEST = 4000

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

# Small models follow an example better than a rule, so each language has one. What it says is dropped when a model
# echoes it: no user has said it.
_PROMPTS = {
    "en": (
        "Go through a user's messages and list each statement that will still matter in other conversations: facts "
        "about the user or the project, preferences, decisions, conventions, known problems.\n"
        "Leave out single tasks, ideas only considered or rejected, passwords and keys, counts and statuses that "
        "change, and what must not be stored. When a later statement corrects an earlier one, list only the later.\n"
        f"Answer with a JSON list and nothing else, at most {MOST_ITEMS} items. “fact”: one short sentence in the "
        "user's language and words. “category”: fact, preference, decision, convention or problem. “importance”: 1 to "
        "10. “quote”: the user's words, copied without any change. “message_id”: where they stand.\n\n"
        "Example:\n"
        "[m1] My name is Oda. Answer with short examples, please.\n"
        "[m2] Run the linter. We always write tests with pytest.\n"
        "Worth keeping, as JSON:\n"
        '[{"fact": "The user\'s name is Oda", "category": "fact", "importance": 8, "quote": "My name is Oda", '
        '"message_id": "m1"},\n'
        ' {"fact": "Answer with short examples", "category": "preference", "importance": 7, '
        '"quote": "Answer with short examples", "message_id": "m1"},\n'
        ' {"fact": "We always write tests with pytest", "category": "convention", "importance": 7, '
        '"quote": "We always write tests with pytest", "message_id": "m2"}]'
    ),
    "pl": (
        "Przejrzyj wiadomości użytkownika i wypisz każde stwierdzenie, które będzie ważne w innych rozmowach: fakty o "
        "użytkowniku lub projekcie, preferencje, decyzje, konwencje, znane problemy.\n"
        "Pomiń jednorazowe zadania, pomysły tylko rozważane albo odrzucone, hasła i klucze, liczby i stany, które się "
        "zmieniają, oraz to, czego nie wolno zapisywać. Gdy późniejsze stwierdzenie poprawia wcześniejsze, wypisz "
        "tylko późniejsze.\n"
        f"Odpowiedz wyłącznie listą JSON, najwyżej {MOST_ITEMS} pozycji. „fact”: jedno krótkie zdanie po polsku, "
        "słowami użytkownika. „category”: fact, preference, decision, convention albo problem. „importance”: 1 do 10. "
        "„quote”: słowa użytkownika, skopiowane bez żadnej zmiany. „message_id”: gdzie stoją.\n\n"
        "Przykład:\n"
        "[m1] Mam na imię Oda. Odpowiadaj krótkimi przykładami.\n"
        "[m2] Uruchom linter. U nas testy zawsze piszemy w pytest.\n"
        "Warto zachować, jako JSON:\n"
        '[{"fact": "Użytkowniczka ma na imię Oda", "category": "fact", "importance": 8, "quote": "Mam na imię Oda", '
        '"message_id": "m1"},\n'
        ' {"fact": "Odpowiadaj krótkimi przykładami", "category": "preference", "importance": 7, '
        '"quote": "Odpowiadaj krótkimi przykładami", "message_id": "m1"},\n'
        ' {"fact": "Testy zawsze piszemy w pytest", "category": "convention", "importance": 7, '
        '"quote": "testy zawsze piszemy w pytest", "message_id": "m2"}]'
    ),
    "ru": (
        "Просмотри сообщения пользователя и выпиши каждое утверждение, которое будет важно в других разговорах: факты "
        "о пользователе или проекте, предпочтения, решения, соглашения, известные проблемы.\n"
        "Пропусти разовые задачи, идеи, которые только обсуждались или отвергнуты, пароли и ключи, количества и "
        "состояния, которые меняются, и то, что нельзя записывать. Если более позднее утверждение исправляет раннее, "
        "выпиши только позднее.\n"
        f"Ответь только списком JSON, не больше {MOST_ITEMS} пунктов. «fact»: одно короткое предложение по-русски, "
        "словами пользователя. «category»: fact, preference, decision, convention или problem. «importance»: от 1 до "
        "10. «quote»: слова пользователя, скопированные без изменений. «message_id»: где они стоят.\n\n"
        "Пример:\n"
        "[m1] Меня зовут Ода. Отвечай короткими примерами.\n"
        "[m2] Запусти линтер. У нас тесты всегда пишем на pytest.\n"
        "Стоит сохранить, как JSON:\n"
        '[{"fact": "Пользователя зовут Ода", "category": "fact", "importance": 8, "quote": "Меня зовут Ода", '
        '"message_id": "m1"},\n'
        ' {"fact": "Отвечай короткими примерами", "category": "preference", "importance": 7, '
        '"quote": "Отвечай короткими примерами", "message_id": "m1"},\n'
        ' {"fact": "Тесты всегда пишем на pytest", "category": "convention", "importance": 7, '
        '"quote": "тесты всегда пишем на pytest", "message_id": "m2"}]'
    ),
}
_HEADINGS = {
    "en": ("Now the user's messages:", "Worth keeping, as JSON:"),
    "pl": ("Teraz wiadomości użytkownika:", "Warto zachować, jako JSON:"),
    "ru": ("Теперь сообщения пользователя:", "Стоит сохранить, как JSON:"),
}
_TRANSCRIPT = {
    "en": ("Now a conversation; what an assistant says in it does not count:", "Worth keeping, as JSON:"),
    "pl": ("Teraz rozmowa; to, co mówi w niej asystent, się nie liczy:", "Warto zachować, jako JSON:"),
    "ru": ("Теперь разговор; то, что говорит в нём ассистент, не считается:", "Стоит сохранить, как JSON:"),
}
_SINCE = {
    "en": "Now the same for my messages above, from “{start}” on.",
    "pl": "Teraz to samo dla moich wiadomości powyżej, od „{start}”.",
    "ru": "Теперь то же самое для моих сообщений выше, начиная с «{start}».",
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
    return _PROMPTS.get(language, _PROMPTS["en"])


def language_hint(conversation: Iterable[Said]) -> str:
    """The language the user writes in most, or an empty string."""
    said = (language_of(message.content) for message in conversation if message.role == "user")
    counted = Counter(language for language in said if language)
    return counted.most_common(1)[0][0] if counted else ""


def transcript(conversation: Sequence[Said]) -> str:
    """What the user states, in lines ``[id] text``. Questions, greetings and pasted text are left out, and so is what
    assistants and tools say: it proves nothing, and a small model answers it instead of the question. Long messages
    keep their beginning and end."""
    stated = ((message.id, _stated(message.content)) for message in conversation if message.role == "user")
    return "\n".join(f"[{name}] {_shortened(text)}" for name, text in stated if text)


def _stated(text: str) -> str:
    kept = []
    for each in read(text):
        sentence = " ".join(text[each.sentence.start : each.sentence.end].split())
        asks = each.label is Label.QUESTION and sentence.endswith("?")
        if not asks and each.label not in (Label.SMALL_TALK, Label.OFF_RECORD):
            kept.append(sentence)
    return " ".join(kept)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} […] {text[-_LONGEST // 2 :]}"


def extraction_messages(conversation: Sequence[Said], language: str = "") -> list[dict[str, str]]:
    """The messages of one call: a single one, with the instruction and what the user said."""
    heading, ending = _HEADINGS.get(language, _HEADINGS["en"])
    text = f"{extraction_prompt(language)}\n\n{heading}\n{transcript(conversation)}\n{ending}"
    return [{"role": "user", "content": text}]


def conversation_prompt(conversation: str, language: str = "") -> str:
    """The same question about a transcript in any form."""
    heading, ending = _TRANSCRIPT.get(language, _TRANSCRIPT["en"])
    return f"{extraction_prompt(language)}\n\n{heading}\n{conversation.rstrip()}\n\n{ending}"


def continuing_messages(first: Said, language: str = "") -> list[dict[str, str]]:
    """The same question to a model that has the conversation in its window already: no word of it is sent again, so
    that the server keeps what it has read. ``first`` is the first message that has not been searched yet."""
    start = " ".join(first.content.split())[:60]
    since = _SINCE.get(language, _SINCE["en"]).format(start=start)
    return [{"role": "user", "content": f"{extraction_prompt(language)}\n\n{since}"}]
