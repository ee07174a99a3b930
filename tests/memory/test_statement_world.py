"""What a tool can fetch is refused, and what lasts is kept, in three languages."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from tui_agent.memory.database import Database
from tui_agent.memory.facts import FactStore
from tui_agent.memory.gate import Gate
from tui_agent.memory.statements import Label, read
from tui_agent.memory.types import Action, Kind, Origin, Proposal

NOW = datetime(2026, 3, 10, 9, 0, tzinfo=timezone.utc)

# Where things stand, what comes again, what is true for good; and numbers that are rules, or the user's own.
LASTING = {
    "en": """
We use 3 environments and the tests must pass on all of them.
Our project has three modules: core, api and ui.
A function has at most 20 lines.
I have two monitors.
I have three kids.
My flat has two rooms.
Coverage must stay above 80%.
Each module has one test file.
Every service has two owners.
I work in a team of five people.
Demo is on Fridays.
We deploy to 3 regions: eu, us and asia.
The retry limit is 3.
A pull request needs two approvals.
Our CI server is in Kraków.
Our CI server lives in the Kraków office.
The production database runs in Frankfurt.
The build server stands in the basement of the Gdańsk office.
Our staging server is at staging.example.org.
The API listens on port 8080.
The project is licensed under MIT.
The backend is written in Rust.
Our office is on the third floor.
The database is hosted at Hetzner.
The release branch is called stable.
Our website is live at example.org.
The backup server is in the basement.
Backups are stored in Frankfurt.
The server is open source.
The API is closed to the public.
Our repository has two environments: staging and production.
The project has two licences, MIT and Apache.
Production runs on Kubernetes.
The sprint starts on Mondays.
Our sprint ends on Fridays.
Releases ship on Tuesdays.
The team is based in Warsaw.
Our CI runs on GitLab.
The pipeline is written in Groovy.
The shop is open on Sundays.
Our server is named Helga.
The queue is RabbitMQ.
""",
    "pl": """
Nasz projekt ma trzy moduły: core, api i ui.
Funkcja ma najwyżej 20 linii.
Mam dwa monitory.
Mam troje dzieci.
Moje mieszkanie ma dwa pokoje.
Pokrycie nie może spaść poniżej 80%.
Każdy moduł ma jeden plik testów.
Pracuję w zespole pięciu osób.
Demo jest w piątki.
Minimalne pokrycie to 80%.
U nas serwer kopii stoi w piwnicy.
Nasz serwer CI stoi w Krakowie.
Serwer CI stoi w Krakowie.
Baza produkcyjna stoi we Frankfurcie.
Serwer buildów stoi w piwnicy biura w Gdańsku.
Serwer kopii leży w drugiej serwerowni.
Nasze API stoi za Cloudflare.
Nasza aplikacja stoi na Kubernetesie.
Produkcja stoi w Hetznerze.
Drukarka stoi na drugim piętrze.
Sklep leży przy rynku.
Nasza strona stoi na Wordpressie.
Serwer stoi u klienta.
Backend stoi na porcie 8080.
Nasz serwer to Helga.
Projekt jest na licencji MIT.
Backend jest napisany w Ruście.
Baza danych jest u Hetznera.
Nasze biuro jest na trzecim piętrze.
Kod leży w GitLabie.
Wydania robimy we wtorki.
API jest otwarte dla partnerów.
Sklep jest otwarty w niedziele.
Sprint kończy się w piątki.
Projekt ma dwie licencje, MIT i Apache.
Kolejka to RabbitMQ.
Kopie bazy leżą w S3.
Dokumentacja API leży w katalogu docs.
""",
    "ru": """
В нашем проекте три модуля: core, api и ui.
В функции не более 20 строк.
У меня два монитора.
У меня трое детей.
Минимальное покрытие 80%.
Покрытие не должно быть ниже 80%.
В каждом модуле один файл тестов.
Я работаю в команде из пяти человек.
Демо по пятницам.
Релизы по вторникам.
У нас сервер бэкапов стоит в подвале.
Наш сервер CI стоит в Кракове.
Сервер CI стоит в Кракове.
Продовая база стоит во Франкфурте.
Сервер сборки стоит в подвале офиса в Гданьске.
Сервер бэкапов лежит во второй серверной.
Наш API стоит за Cloudflare.
Наше приложение работает на Kubernetes.
Прод у нас в Hetzner.
Принтер стоит на втором этаже.
База данных лежит на отдельном сервере.
Сервер стоит у клиента.
Бэкенд написан на Rust.
Проект под лицензией MIT.
Наш офис на третьем этаже.
Код лежит в GitLab.
Релизы выходят по вторникам.
Магазин открыт по воскресеньям.
Спринт заканчивается по пятницам.
У проекта две лицензии: MIT и Apache.
Очередь у нас RabbitMQ.
Бэкапы базы лежат в S3.
Документация API лежит в папке docs.
Документация проекта лежит в папке docs.
API висит на порту 8080.
""",
}

FETCHED = {
    "en": """
The server in Krakow is down.
The printer on the second floor is broken.
Our server in Krakow is down.
Our build is stuck in the queue.
Our release is on Friday.
The launch is on 4 May.
The server is live again at example.org.
My project has 3 modules.
The pull request is closed.
The API is down and open to the public.
The project has three modules.
Our project consists of 3 modules.
The repo contains 14 packages.
The codebase is 12,000 lines long.
The API has 27 endpoints.
The library has 412 tests.
The team has 8 people.
We are 8 people.
There are 8 of us in the team.
Our team is eight people.
We have 40 microservices.
The database has 17 tables.
Coverage is at 81 percent.
Test coverage is 81%.
The project has 3 open bugs.
The main module has 900 lines.
This project is made up of five services.
The CI server is down.
The build is red.
The server has been down since morning.
Project Falcon is delayed.
The release is due on Friday.
The repo has 1,200 stars.
The latest commit is a1b2c3d.
The current version of the app is 2.4.1.
The app has 300 users.
""",
    "pl": """
Serwer w Krakowie stoi.
Serwer w Krakowie leży.
Drukarka na drugim piętrze nie działa.
Nasz serwer w Krakowie padł.
Zgłoszenie wisi w Jirze.
PR wisi na GitHubie od wczoraj.
Dostawa leży w magazynie.
Nasz build stoi w kolejce.
Serwer CI znowu leży w Krakowie.
Mój projekt ma 3 moduły.
Premiera jest w piątek.
Termin przypada na środę.
Projekt ma trzy moduły.
Projekt składa się z 3 modułów.
Nasz projekt składa się z pięciu serwisów.
Repozytorium zawiera 14 pakietów.
Kod ma 12 tysięcy linii.
API ma 27 endpointów.
W projekcie są trzy moduły.
W repo jest 14 pakietów.
Biblioteka posiada 412 testów.
Zespół liczy 8 osób.
Jest nas ośmioro.
Jest nas ośmiu w zespole.
Mamy 40 mikroserwisów.
Baza ma 17 tabel.
Pokrycie testami to 81%.
Pokrycie testami wynosi 81 procent.
Projekt ma 3 otwarte błędy.
Główny moduł ma 900 linii.
W bazie mamy 300 użytkowników.
Serwer CI leży.
Serwer CI stoi.
Serwer stoi od rana.
Serwer CI leży od wczoraj.
Serwer nam stoi.
Produkcja leży!
Build jest czerwony.
Projekt stoi w miejscu.
Projekt stoi pod znakiem zapytania.
Zadanie wisi w kolejce.
Zgłoszenie wisi w review.
Wdrożenie stoi w kolejce.
PR wisi na review.
Produkcja leży w gruzach.
Projekt Falcon jest opóźniony.
Repo ma 1200 gwiazdek.
Ostatni commit to a1b2c3d.
Aplikacja ma 300 użytkowników.
Aktualna wersja to 2.4.1.
Kolejka stoi na 90 procent.
""",
    "ru": """
Сервер в Кракове лежит.
Принтер на втором этаже сломан.
Наш принтер на втором этаже сломан.
Наш сервер в Кракове упал.
Задача висит в Jira.
PR висит на GitHub со вчерашнего дня.
Заказ лежит на складе.
Сервер опять лежит в Кракове.
В моём проекте 3 модуля.
Релиз в пятницу.
Дедлайн в следующую среду.
В проекте три модуля.
Проект состоит из 3 модулей.
Проект состоит из пяти сервисов.
У проекта 3 модуля.
У проекта три модуля.
Проект имеет три модуля.
В репозитории 14 пакетов.
Репозиторий содержит 14 пакетов.
В коде 12 тысяч строк.
У API 27 эндпоинтов.
В API 27 эндпоинтов.
В библиотеке 412 тестов.
В команде 8 человек.
Нас восемь человек.
Нас восемь.
Нас в команде восьмеро.
У нас 40 микросервисов.
В базе 17 таблиц.
Покрытие тестами 81%.
Покрытие тестами — 81 процент.
В проекте 3 открытых бага.
В главном модуле 900 строк.
Сервер CI лежит.
Сервер стоит с утра.
Сервер лежит со вчерашнего дня.
Прод лежит!
Билд красный.
Проект стоит на месте.
Задача висит в очереди.
PR висит на ревью.
Проект Falcon задерживается.
У репозитория 1200 звёзд.
Последний коммит a1b2c3d.
У приложения 300 пользователей.
Текущая версия 2.4.1.
Очередь стоит.
Сборка стоит.
""",
}


def is_world_state(text: str) -> bool:
    return any(item.label is Label.WORLD_STATE for item in read(text, now=NOW))


@pytest.mark.parametrize("language", list(LASTING))
def test_what_lasts_is_no_state_of_the_world(language: str) -> None:
    lines = LASTING[language].split("\n")[1:-1]
    assert len(lines) > 20
    assert [line for line in lines if is_world_state(line)] == []


@pytest.mark.parametrize("language", list(FETCHED))
def test_counts_statuses_and_dates_are_states_of_the_world(language: str) -> None:
    lines = FETCHED[language].split("\n")[1:-1]
    assert len(lines) > 30
    assert [line for line in lines if not is_world_state(line)] == []


@pytest.mark.parametrize(
    "said",
    [
        "Anna reports to Piotr.",
        "Anna is Piotr's manager.",
        "The org chart: Anna leads the backend, Piotr leads QA.",
        "Piotr podlega Annie.",
        "Kierowniczką Piotra jest Anna.",
        "Anna to szefowa Piotra.",
        "Пётр подчиняется Анне.",
        "Анна — начальник Петра.",
    ],
)
def test_who_of_other_people_reports_to_whom_is_looked_up(said: str) -> None:
    assert is_world_state(said)


@pytest.mark.parametrize(
    "said",
    [
        "I report to Anna.",
        "Anna is my manager.",
        "Moją szefową jest Anna.",
        "Анна — мой начальник.",
        "Anna owns the billing service.",
        "CI reports to Slack.",
    ],
)
def test_the_users_own_manager_and_who_owns_what_are_not(said: str) -> None:
    assert not is_world_state(said)


@pytest.mark.parametrize(
    "said", ["Nasz serwer CI stoi w Krakowie.", "Наш сервер CI стоит в Кракове.", "Our CI server stands in Kraków."]
)
def test_the_place_of_a_thing_of_the_team_is_a_fact_that_goes_live(said: str) -> None:
    facts = FactStore(Database(":memory:"))
    verdict = Gate(facts, None).admit(Proposal(said, Origin.MODEL, "remember", "message m1", user_text=said))
    assert (verdict.action, verdict.text) == (Action.LIVE, said)
    (item,) = read(said, now=NOW)
    assert item.statement is not None
    assert item.statement.ttl_days is None
    assert item.statement.kind in (Kind.FACT, Kind.CONVENTION)


@pytest.mark.parametrize("said", ["Projekt ma 3 moduły.", "В проекте 3 модуля.", "The project has 3 modules."])
def test_a_count_is_refused_with_the_reason_even_when_the_user_says_it(said: str) -> None:
    facts = FactStore(Database(":memory:"))
    verdict = Gate(facts, None).admit(Proposal(said, Origin.USER, "user", "command", user_text=said))
    assert (verdict.action, verdict.rule) == (Action.REFUSE, "world_state")
    assert "looked up" in verdict.reason
    assert facts.live() == []


@pytest.mark.parametrize(
    "said",
    [
        "Serwer stoi w Krakowie i nie działa.",
        "Сервер стоит в Кракове и не работает.",
        "Our server is in Kraków and is down.",
    ],
)
def test_a_place_does_not_carry_a_status_along(said: str) -> None:
    facts = FactStore(Database(":memory:"))
    Gate(facts, None).admit(Proposal(said, Origin.MODEL, "remember", "message m1", user_text=said))
    assert facts.live() == []
