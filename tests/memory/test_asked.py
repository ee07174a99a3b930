"""Which messages ask for everything that is remembered, and which only look like it."""

from __future__ import annotations

import pytest

from tui_agent.memory.asked import Asked, asked_among, asked_in

ENGLISH = (
    "What do you remember about me?",
    "what do you know about me",
    "Hi! What do you remember about me so far?",
    "What have you saved about me?",
    "What have you learned about me so far?",
    "Tell me everything you know about me.",
    "Show me what you remember about me, please",
    "List everything you remember about me",
    "What's in your memory?",
    "What is stored about me?",
    "Which facts do you remember about me?",
    "What information do you have about me?",
    "Do you remember anything about me?",
    "Do you remember me?",
    "what do you remember?",
    "Can you tell me what you remember about me?",
    "What do you actually still remember about me?",
    "What have I told you about myself?",
    "What do you have on me?",
    "So, what've you noted about me?",
    "could you list all the things you remember about me",
    "Please show me your memory.",
    "What do you remember of me from our previous sessions?",
    "What all do you remember about me and this project?",
    "WHAT DO YOU REMEMBER ABOUT ME???",
)
POLISH = (
    "Co o mnie pamiętasz?",
    "Co pamiętasz o mnie?",
    "Co o mnie wiesz?",
    "Co wiesz na mój temat?",
    "Hej, co już o mnie zapamiętałeś?",
    "Co zapisałaś o mnie do tej pory?",
    "Pokaż, co o mnie pamiętasz",
    "Powiedz mi wszystko, co o mnie wiesz.",
    "Wypisz wszystko, co o mnie pamiętasz",
    "Jakie informacje o mnie przechowujesz?",
    "Jakie fakty pamiętasz o mnie?",
    "Czy pamiętasz coś o mnie?",
    "Czy mnie pamiętasz?",
    "Co masz o mnie zapisane?",
    "Co masz w pamięci?",
    "Pokaż swoją pamięć",
    "Co pamiętasz?",
    "Czego się o mnie dowiedziałeś?",
    "Co jest zapisane o mnie?",
    "Możesz mi powiedzieć, co o mnie pamiętasz?",
    "co o mnie pamietasz",
)
RUSSIAN = (
    "Что ты помнишь обо мне?",
    "Что ты обо мне помнишь?",
    "Что ты знаешь обо мне?",
    "Что вы обо мне знаете?",
    "Привет! Что ты про меня помнишь?",
    "Расскажи, что ты обо мне помнишь",
    "Покажи всё, что ты обо мне знаешь.",
    "Перечисли всё, что ты помнишь обо мне",
    "Какие факты обо мне ты помнишь?",
    "Какую информацию обо мне ты хранишь?",
    "Что тебе обо мне известно?",
    "Что у тебя в памяти?",
    "Что ты запомнил обо мне?",
    "Что ты помнишь?",
    "Ты меня помнишь?",
    "Помнишь ли ты что-нибудь обо мне?",
    "Что ты обо мне сохранила?",
    "Что я тебе рассказывал о себе?",
    "Что хранится в твоей памяти обо мне?",
    "Покажи свою память",
)
OTHERS = (
    "What do you remember about the deploy?",
    "What do you remember about me saying that tests come first?",
    "What do you know about Python?",
    "What do you remember about my project's retry policy?",
    "What do you know about pnpm?",
    "Do you remember what I said about the migrations?",
    "Remember that my name is Kacper",
    "What do you think about me?",
    "What do you know?",
    "What have you changed?",
    "What have you done so far?",
    "Tell me everything about me as a class in Python",
    "Remember me to Anna",
    "What did you save in the file?",
    "What is in the memory of the process?",
    "what do you know about mesh networks",
    "What do you have?",
    "show me what you changed about me.py",
    "What do you remember about me.py?",
    "What have you noted in the review?",
    "Don't remember this about me",
    "what data does the class store about users",
    "Co pamiętasz o wdrożeniu?",
    "Co wiesz o Pythonie?",
    "Co o mnie powiedziała Anna?",
    "Co zmieniłeś?",
    "Pokaż pamięć procesu",
    "Czy pamiętasz, co mówiłem o testach?",
    "Zapamiętaj, że mam na imię Kacper",
    "Co masz?",
    "Co zapisałeś w pliku?",
    "Co sądzisz o mnie?",
    "Jakie dane przechowujesz w bazie?",
    "Что ты помнишь о деплое?",
    "Что ты знаешь о Python?",
    "Что ты думаешь обо мне?",
    "Помнишь, что я говорил про тесты?",
    "Запомни, что меня зовут Анна",
    "Что ты изменил?",
    "Что у тебя есть?",
    "Что сказала обо мне Анна?",
    "Какие данные хранит класс User?",
    "Покажи память процесса",
    "Что обо мне пишут?",
    "What do you have for me?",
    "",
    "???",
    "What do you remember about me? Also fix the failing test.",  # see asked_among
    "```\nwhat do you remember about me?\n```",
)


@pytest.mark.parametrize("text", ENGLISH)
def test_any_ordinary_english_phrasing_is_recognised(text: str) -> None:
    assert asked_in(text) == "en"


@pytest.mark.parametrize("text", POLISH)
def test_any_ordinary_polish_phrasing_is_recognised(text: str) -> None:
    assert asked_in(text) == "pl"


@pytest.mark.parametrize("text", RUSSIAN)
def test_any_ordinary_russian_phrasing_is_recognised(text: str) -> None:
    assert asked_in(text) == "ru"


@pytest.mark.parametrize("text", OTHERS)
def test_questions_about_something_and_statements_are_left_to_the_model(text: str) -> None:
    assert asked_in(text) == ""


@pytest.mark.parametrize("word", ["hey ", "ok so tell me ", "powiedz mi ", "расскажи мне "])
def test_greetings_without_end_are_no_question(word: str) -> None:
    assert asked_in(word * 60) == ""
    assert asked_in((word * 20)[:190] + " x") == ""


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What do you remember about me? Also fix the failing test.", "en"),
        ("Fix the failing test. And what do you remember about me?", "en"),
        ("What do you remember about me, and which editor should I use?", "en"),
        ("How do I fix the import, and what do you know about me?", "en"),
        ("Napraw test. Co o mnie pamiętasz?", "pl"),
        ("Co o mnie pamiętasz i jak naprawić ten test?", "pl"),
        ("Jak uruchomić testy? A co o mnie wiesz?", "pl"),
        ("Исправь тест. Что ты обо мне помнишь?", "ru"),
        ("Что ты помнишь обо мне, и как запустить тесты?", "ru"),
        ("Как запустить тесты? И что ты знаешь обо мне?", "ru"),
    ],
)
def test_the_question_is_found_beside_something_else(text: str, language: str) -> None:
    assert asked_among(text) == Asked(language, False)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What do you remember about me?", "en"),
        ("Hi there! What do you remember about me? Thanks a lot!", "en"),
        ("Cześć! Co o mnie pamiętasz? Dzięki!", "pl"),
        ("Привет! Что ты обо мне помнишь? Спасибо!", "ru"),
    ],
)
def test_greetings_and_thanks_around_the_question_are_nothing_else(text: str, language: str) -> None:
    assert asked_among(text) == Asked(language, True)


@pytest.mark.parametrize(
    "text",
    [
        '"What do you remember about me?" is a line of my poem. Translate it.',
        "Translate: what do you remember about me?",
        "My boss asked what do you remember about me and left.",
        "What do you remember about the deploy? Fix it.",
        "What do you remember? Fix the bug.",
        "```\nwhat do you remember about me?\n```\nTranslate this.",
        "> what do you remember about me?\nWhat should I answer her?",
        "Add a button labelled «Что ты обо мне помнишь?» to the page.",
        "",
    ],
)
def test_what_is_quoted_pasted_or_about_something_else_asks_nothing(text: str) -> None:
    assert asked_among(text) == Asked()
