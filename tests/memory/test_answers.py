"""What kind of answer a question asks for, and which texts hold one."""

from __future__ import annotations

import pytest

from tui_agent.memory.answers import HOLDS, LACKS, NUMBER, TIME, answer_term, asked_for, holds


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When is the greenhouse aired?", TIME),
        ("How often do we clean the tank?", TIME),
        ("On which day does the market open?", TIME),
        ("Kiedy podlewamy?", TIME),
        ("O której zaczyna się zmiana?", TIME),
        ("Jak długo trzymamy nasiona?", TIME),
        ("Po ilu dniach kiełkują?", TIME),
        ("Когда поливаем?", TIME),
        ("Во сколько начинается смена?", TIME),
        ("Как долго храним семена?", TIME),
        ("В какой день рынок?", TIME),
        ("How many seeds go into a pot?", NUMBER),
        ("What is the size of a bed?", NUMBER),
        ("Ile nasion na doniczkę?", NUMBER),
        ("Jaki jest limit zamówienia?", NUMBER),
        ("Сколько семян в горшке?", NUMBER),
        ("Какой размер грядки?", NUMBER),
        ("Who waters the plants?", ""),
        ("Whenever I look, it is dry", ""),
        ("Dlaczego ziemia jest sucha?", ""),
        ("Где лежат семена?", ""),
        ("", ""),
    ],
)
def test_a_question_says_whether_it_wants_a_time_or_a_number(question: str, kind: str) -> None:
    assert asked_for(question) == kind


@pytest.mark.parametrize(
    "text",
    [
        "The vents open at 7:30.",
        "Seeds are sown every second Tuesday.",
        "Podlewamy w poniedziałki rano.",
        "Nasiona leżą dwa lata.",
        "Zmiana w środę.",
        "Поливаем по четвергам вечером.",
        "Семена хранятся пять лет.",
        "Смена длится восемь часов.",
    ],
)
def test_a_time_is_seen_in_three_languages_and_their_forms(text: str) -> None:
    assert holds(text, TIME)


@pytest.mark.parametrize(
    "text",
    ["Tomatoes need light.", "You may water them.", "Pomidory lubią słońce.", "Помидоры любят солнце.", "v2.1.3"],
)
def test_what_names_no_time_is_not_taken_for_one(text: str) -> None:
    assert not holds(text, TIME)


@pytest.mark.parametrize(
    "text", ["Use 3 seeds.", "Sixteen pots fit.", "Trzynaście doniczek.", "Czterdzieści nasion.", "Тридцать горшков."]
)
def test_a_number_is_seen_in_digits_and_in_words(text: str) -> None:
    assert holds(text, NUMBER)
    assert not holds("Soil is dark. Ziemia jest ciemna. Земля тёмная.", NUMBER)


def test_the_term_says_what_was_asked_for_and_found() -> None:
    found, missing = answer_term(TIME, "It opens on Monday."), answer_term(TIME, "It opens slowly.")
    assert (found.name, found.value, found.note) == ("answer", HOLDS, "asked for a time, and it names one")
    assert (missing.value, missing.note) == (-LACKS, "asked for a time, and it names none")
