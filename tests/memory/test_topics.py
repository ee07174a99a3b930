"""Never for this topic: words of a question, an item, and the questions that are about the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tui_agent.memory.database import Database
from tui_agent.memory.topics import Topics


@pytest.fixture
def db() -> Iterator[Database]:
    with Database(":memory:") as opened:
        yield opened


@pytest.mark.parametrize(
    ("asked", "again", "hidden"),
    [
        ("Which package manager does the admin page use?", "the admin page's package managers, please", True),
        ("Which package manager does the admin page use?", "Which day do we release?", False),
        ("Jak wdrażamy moduł płatności?", "Kto wdraża moduły płatności w piątek?", True),
        ("Jak wdrażamy moduł płatności?", "Jak testujemy bramkę?", False),
        ("Как мы выкатываем модуль платежей?", "Когда выкатывают модули платежей?", True),
        ("deployment", "How do deployments work?", True),
        ("package manager", "Who is the project manager?", False),
    ],
)
def test_a_question_about_the_same_is_recognised_in_any_form(
    db: Database, asked: str, again: str, hidden: bool
) -> None:
    topics = Topics(db)
    topics.add("fact:f1", asked)
    assert topics.hidden(asked) == {"fact:f1"}
    assert topics.hidden(again) == ({"fact:f1"} if hidden else frozenset())


def test_the_same_topic_is_kept_once_and_can_be_taken_back(db: Database) -> None:
    topics = Topics(db)
    first = topics.add("fact:f1", "Which port does the gateway use?")
    assert topics.add("fact:f1", "Which port does the gateway use?") == first
    assert topics.of("fact:f1") == [first]
    assert topics.remove(first.id) == first
    assert topics.hidden("Which port does the gateway use?") == frozenset()
    with pytest.raises(LookupError, match="no topic"):
        topics.remove(first.id)


def test_a_question_of_empty_words_names_no_topic(db: Database) -> None:
    with pytest.raises(ValueError, match="no word that names a topic"):
        Topics(db).add("fact:f1", "and what is it?")


def test_the_question_is_kept_without_secrets(db: Database) -> None:
    topics = Topics(db, redact=lambda text: text.replace("hunter2", "[secret removed]"))
    assert "hunter2" not in topics.add("fact:f1", "Where is hunter2 used in the gateway?").question


def test_what_is_deleted_for_good_leaves_no_topic_behind(db: Database) -> None:
    topics = Topics(db)
    topics.add("fact:f1", "Which port does the gateway use?")
    topics.add("fact:f2", "Where does Zenobia live?")
    topics.add("fact:f3", "Which editor do I use?")
    assert topics.forget(["f1"], lambda text: "Zenobia" in text) == 2
    assert [topic.ref for topic in topics.all()] == ["fact:f3"]
